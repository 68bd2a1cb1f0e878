//! Which decision is behind which line: recorded hunks folded into attribution, then carried to the text at hand.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use agents_domain::changes::{Change, ChangeKind};
use agents_domain::decision::{Decision, DecisionType};
use agents_domain::ids::{DecisionId, PlanId, ResourceId};
use agents_domain::plan::{Plan, State};
use agents_domain::provenance::{Segment, attribute, carry, hunks};
use agents_domain::resource::Resource;
use agents_domain::{Error, Result};

use crate::operations::plan::{BlameOutput, BlamedSegment, StrategyBehind};
use crate::{Engine, sandboxes};

/// The newest plans that are asked about one file.
const PLANS: usize = 50;

/// Attribution of one file as a plan left it.
#[derive(Debug, Clone, Default)]
struct Trail {
    segments: Vec<Segment>,
    /// Blob of the text the segments refer to; `None` when the file is gone.
    text_hash: Option<String>,
}

/// Folds a plan's recorded writes, in the order written, into the attribution of each file.
fn fold(changes: &[Change]) -> HashMap<(ResourceId, String), Trail> {
    let mut files: HashMap<(ResourceId, String), Trail> = HashMap::new();
    for change in changes {
        let before = change.old_path.clone().unwrap_or_else(|| change.path.clone());
        let trail = files.remove(&(change.resource_id, before)).unwrap_or_default();
        if change.kind != ChangeKind::Deleted {
            let segments = attribute(&trail.segments, &change.hunks, change.decision_id);
            let text_hash = change.after_hash.clone();
            files.insert((change.resource_id, change.path.clone()), Trail { segments, text_hash });
        }
    }
    files
}

/// The decisions behind each file's lines, in the coordinates of the plan's sandbox.
pub(crate) fn decisions_by_line(
    engine: &Engine,
    plan: PlanId,
) -> Result<HashMap<(ResourceId, String), Vec<Segment>>> {
    let changes = engine.view(|r| r.changes(plan))?;
    Ok(fold(&changes).into_iter().map(|(key, trail)| (key, trail.segments)).collect())
}

/// A file's place in what is registered.
struct Place {
    resource: Resource,
    path: String,
    /// The plan whose sandbox it is in.
    sandbox_of: Option<PlanId>,
}

/// The decisions behind a file on disk, or behind `text` in its place.
pub(crate) fn file(engine: &Engine, path: &Path, text: Option<String>) -> Result<BlameOutput> {
    let place = locate(engine, path)?.ok_or_else(|| {
        Error::not_found(format!("{} is in no registered resource", path.display()))
            .suggest("agents resource list")
            .suggest("agents resource add git-checkout <NAME> --path <DIR>")
    })?;
    let text = match text {
        Some(text) => text,
        None => match std::fs::read(path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) => return Err(Error::not_found(format!("{}: {error}", path.display()))),
        },
    };
    let segments = attribution(engine, &place, &text)?;
    Ok(BlameOutput {
        file: path.display().to_string(),
        path: place.path,
        resource_id: Some(place.resource.resource_id),
        resource: place.resource.name.as_ref().map(ToString::to_string),
        segments,
    })
}

fn locate(engine: &Engine, path: &Path) -> Result<Option<Place>> {
    if let Some((plan, resource_id, rest)) = sandboxes::place_of(engine, path) {
        let resource = engine.view(|r| r.resource(resource_id))?;
        return Ok(resource.map(|resource| Place { resource, path: rest, sandbox_of: Some(plan) }));
    }
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut best: Option<(usize, Place)> = None;
    for resource in engine.view(|r| r.resources())? {
        let Some(location) = resource.location.as_deref().filter(|_| resource.name.is_some()) else {
            continue;
        };
        let root = PathBuf::from(location);
        let rest =
            path.strip_prefix(&root).or_else(|_| real.strip_prefix(&root)).ok().map(sandboxes::slashes);
        if let Some(rest) = rest {
            let depth = root.components().count();
            if best.as_ref().is_none_or(|(known, _)| depth > *known) {
                best = Some((depth, Place { resource, path: rest, sandbox_of: None }));
            }
        }
    }
    Ok(best.map(|(_, place)| place))
}

/// One plan's attribution of the text at hand.
struct Claim {
    segment: Segment,
    proposed: bool,
    proposed_text: Option<String>,
}

fn attribution(engine: &Engine, place: &Place, text: &str) -> Result<Vec<BlamedSegment>> {
    let touching = engine.view(|r| r.changes_of_path(place.resource.resource_id, &place.path))?;
    let mut plans: Vec<PlanId> = Vec::new();
    for change in &touching {
        if !plans.contains(&change.plan_id) && place.sandbox_of.is_none_or(|only| only == change.plan_id) {
            plans.push(change.plan_id);
        }
    }
    plans.truncate(PLANS);
    let mut taken: HashSet<u32> = HashSet::new();
    let mut out = Vec::new();
    for plan_id in plans {
        let Some(plan) = engine.view(|r| r.plan(plan_id))? else { continue };
        if plan.state == State::Cancelled && place.sandbox_of.is_none() {
            continue;
        }
        let changes = engine.view(|r| r.changes(plan_id))?;
        let key = (place.resource.resource_id, place.path.clone());
        let Some(trail) = fold(&changes).remove(&key) else { continue };
        let Some(left) = read_text(engine, trail.text_hash.as_deref())? else { continue };
        let claims = if plan.state == State::Applied || place.sandbox_of.is_some() {
            applied_claims(&trail.segments, &left, text)
        } else {
            proposed_claims(&trail.segments, &left, text)
        };
        let decisions: BTreeMap<DecisionId, Decision> =
            engine.view(|r| r.decisions(plan_id))?.into_iter().map(|d| (d.decision_id, d)).collect();
        for claim in claims {
            let lines = claim.segment.start..claim.segment.start + claim.segment.lines;
            if claim.segment.lines > 0 && lines.clone().any(|line| taken.contains(&line)) {
                // A newer plan wrote these lines; what is left of the older claim is not worth splitting.
                continue;
            }
            taken.extend(lines);
            out.extend(blamed(&plan, &decisions, claim));
        }
    }
    out.sort_by_key(|s| (s.start_line, s.end_line));
    Ok(out)
}

fn read_text(engine: &Engine, hash: Option<&str>) -> Result<Option<String>> {
    let Some(hash) = hash else { return Ok(None) };
    Ok(engine.store.blob(hash)?.and_then(|bytes| String::from_utf8(bytes).ok()))
}

/// Lines a plan wrote that are still there.
fn applied_claims(segments: &[Segment], left: &str, text: &str) -> Vec<Claim> {
    let carried = if left == text { segments.to_vec() } else { carry(segments, &hunks(left, text)) };
    carried.into_iter().map(|segment| Claim { segment, proposed: false, proposed_text: None }).collect()
}

/// Places a plan would change: for each hunk from the text at hand to the sandbox, the decisions behind it.
fn proposed_claims(segments: &[Segment], sandbox: &str, text: &str) -> Vec<Claim> {
    let lines: Vec<&str> = sandbox.split_inclusive('\n').collect();
    let mut claims = Vec::new();
    for hunk in hunks(text, sandbox) {
        let new_end = hunk.new_start + hunk.new_lines;
        let behind = segments.iter().filter(|s| {
            if s.lines == 0 {
                s.start >= hunk.new_start && s.start <= new_end
            } else {
                s.start < new_end && hunk.new_start < s.start + s.lines
            }
        });
        let mut seen = HashSet::new();
        for segment in behind.filter(|s| seen.insert(s.decision_id)) {
            claims.push(Claim {
                segment: Segment {
                    start: hunk.old_start,
                    lines: hunk.old_lines,
                    decision_id: segment.decision_id,
                },
                proposed: true,
                proposed_text: lines.get(hunk.new_start as usize..new_end as usize).map(|l| l.concat()),
            });
        }
    }
    claims
}

fn blamed(plan: &Plan, decisions: &BTreeMap<DecisionId, Decision>, claim: Claim) -> Option<BlamedSegment> {
    let decision = decisions.get(&claim.segment.decision_id)?;
    let Segment { start, lines, .. } = claim.segment;
    Some(BlamedSegment {
        start_line: start + 1,
        end_line: start + lines,
        deletion: lines == 0,
        proposed: claim.proposed,
        decision_id: decision.decision_id,
        plan_id: plan.plan_id,
        question: decision.question.clone(),
        chosen: decision.chosen_option.clone(),
        confidence: decision.confidence,
        threshold: decision.decision_type.gate().map(|gate| plan.profile.profile.thresholds.of(gate)),
        rationale: decision.rationale.clone(),
        alternatives: decision.alternatives.iter().map(|a| a.option.clone()).collect(),
        status: decision.status(),
        created: decision.created_at.seconds_rfc3339(),
        action: plan.action.to_string(),
        strategy: strategy_behind(decision, decisions),
        proposed_text: claim.proposed_text,
    })
}

/// The choice of Strategize (or the answer in its place) that a decision of Execute carries out.
fn strategy_behind(
    decision: &Decision,
    decisions: &BTreeMap<DecisionId, Decision>,
) -> Option<StrategyBehind> {
    let related = decision.parent_decision_id.into_iter().chain(decision.depends_on.iter().copied());
    let found = related
        .filter_map(|id| decisions.get(&id))
        .find(|d| matches!(d.decision_type, DecisionType::StrategyChoice | DecisionType::UserIntervention))?;
    // An answer stands in for its proposal, which holds the evidence.
    let proposal = decisions.values().find(|d| d.superseded_by == Some(found.decision_id));
    let evidence = proposal.unwrap_or(found);
    Some(StrategyBehind {
        decision_id: found.decision_id,
        question: found.question.clone(),
        chosen: found.chosen_option.clone(),
        confidence: evidence.confidence,
        rationale: evidence.rationale.clone(),
        alternatives: evidence.alternatives.iter().map(|a| a.option.clone()).collect(),
        descriptions: evidence.alternatives.iter().map(|a| a.description.clone()).collect(),
    })
}
