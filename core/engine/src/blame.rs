//! Which decision is behind which line: recorded hunks folded into attribution, then carried to the text at hand.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use agents_domain::changes::{Change, Hunk};
use agents_domain::decision::{Decision, DecisionType};
use agents_domain::ids::{DecisionId, PlanId, ResourceId};
use agents_domain::plan::children::Stage;
use agents_domain::plan::{Plan, State};
use agents_domain::ports::store::Reader;
use agents_domain::provenance::{Segment, attribute, carry, hunks, map_line};
use agents_domain::resource::Resource;
use agents_domain::{Error, Result};

use crate::operations::plan::{BlameOutput, BlamedSegment, StrategyBehind};
use crate::{Engine, notes, sandboxes};

/// The newest plans that are asked about one file.
const PLANS: usize = 50;

/// Attribution of one file as a plan left it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trail {
    segments: Vec<Segment>,
    /// Blob of the text the segments refer to; `None` when the file is gone.
    pub text_hash: Option<String>,
    /// Blob of the text before the plan's first write; `None` for a new file.
    pub base_hash: Option<String>,
    /// The hunks of each write in order, with the decision behind it.
    writes: Vec<(DecisionId, Vec<Hunk>)>,
}

impl Trail {
    /// The decision that put a line of the plan's text there (0-based).
    pub fn put_by(&self, line: u32) -> Option<DecisionId> {
        self.segments.iter().find(|s| s.lines > 0 && s.covers(line)).map(|s| s.decision_id)
    }

    /// The decision that took a line of the base text away (0-based).
    pub fn taken_by(&self, line: u32) -> Option<DecisionId> {
        removed_by(line, &self.writes)
    }
}

/// Folds a plan's recorded writes, in the order written, into the attribution of each file.
fn fold(changes: &[Change]) -> HashMap<(ResourceId, String), Trail> {
    let mut files: HashMap<(ResourceId, String), Trail> = HashMap::new();
    for change in changes {
        let before = change.old_path.clone().unwrap_or_else(|| change.path.clone());
        let known = files.remove(&(change.resource_id, before));
        let mut trail =
            known.unwrap_or_else(|| Trail { base_hash: change.before_hash.clone(), ..Trail::default() });
        trail.segments = attribute(&trail.segments, &change.hunks, change.decision_id);
        trail.text_hash.clone_from(&change.after_hash);
        trail.writes.push((change.decision_id, change.hunks.clone()));
        files.insert((change.resource_id, change.path.clone()), trail);
    }
    files
}

/// The decisions behind each file's lines, as a plan's writes tell them; a file that is gone is among them.
pub(crate) fn trails(engine: &Engine, plan: PlanId) -> Result<HashMap<(ResourceId, String), Trail>> {
    Ok(fold(&engine.view(|r| r.changes(plan))?))
}

/// The decisions behind each file's lines, from a plan's writes.
pub(crate) fn segments_of(changes: &[Change]) -> HashMap<(ResourceId, String), Vec<Segment>> {
    let there = fold(changes).into_iter().filter(|(_, trail)| trail.text_hash.is_some());
    there.map(|(key, trail)| (key, trail.segments)).collect()
}

/// A file's place in what is registered.
struct Place {
    resource: Resource,
    path: String,
    /// The plan whose sandbox it is in.
    sandbox_of: Option<PlanId>,
}

/// The decisions behind a file on disk, or behind `text` in its place, and how many lines it has.
pub(crate) fn file(engine: &Engine, path: &Path, text: Option<String>) -> Result<(BlameOutput, u32)> {
    let place = locate(engine, path)?;
    let thorough = text.is_none() && place.is_none();
    let unknown = || {
        Error::not_found(format!("{} is in no registered resource", path.display()))
            .suggest("agents resource list")
            .suggest("agents resource add git-checkout <NAME> --path <DIR>")
    };
    let text = match text {
        Some(text) => text,
        None if place.is_none() && !path.is_file() => return Err(unknown()),
        None => match std::fs::read(path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) => return Err(Error::not_found(format!("{}: {error}", path.display()))),
        },
    };
    let lines = u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
    let noted = match &place {
        Some(Place { sandbox_of: Some(_), .. }) => None,
        _ => notes::blame(engine, path, &text, thorough)?,
    };
    let Some(place) = place else {
        let noted = noted
            .filter(|noted| !noted.segments.is_empty() || !noted.warnings.is_empty())
            .ok_or_else(unknown)?;
        let output = BlameOutput {
            file: path.display().to_string(),
            path: noted.path,
            resource_id: None,
            resource: None,
            segments: noted.segments,
            warnings: noted.warnings,
        };
        return Ok((output, lines));
    };
    let mut warnings = Vec::new();
    let mut segments = attribution(engine, &place, &text, &mut warnings)?;
    if let Some(noted) = noted {
        // What the database says of a line goes before what a note says.
        let free = |new: &BlamedSegment, known: &[BlamedSegment]| {
            known.iter().all(|old| new.end_line < old.start_line || old.end_line < new.start_line)
        };
        let new: Vec<BlamedSegment> = noted.segments.into_iter().filter(|s| free(s, &segments)).collect();
        segments.extend(new);
        segments.sort_by_key(|s| (s.start_line, s.end_line));
        warnings.extend(noted.warnings);
    }
    let output = BlameOutput {
        file: path.display().to_string(),
        path: place.path,
        resource_id: Some(place.resource.resource_id),
        resource: place.resource.name.as_ref().map(ToString::to_string),
        segments,
        warnings,
    };
    Ok((output, lines))
}

fn locate(engine: &Engine, path: &Path) -> Result<Option<Place>> {
    if let Some((plan, resource_id, rest)) = sandboxes::place_of(engine, path) {
        let resource = engine.view(|r| r.resource(resource_id))?;
        return Ok(resource.map(|resource| Place { resource, path: rest, sandbox_of: Some(plan) }));
    }
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut places: Vec<(usize, Place)> = Vec::new();
    for resource in engine.view(|r| r.resources())? {
        let Some(location) = resource.location.as_deref().filter(|_| resource.name.is_some()) else {
            continue;
        };
        let root = PathBuf::from(location);
        let rest =
            path.strip_prefix(&root).or_else(|_| real.strip_prefix(&root)).ok().map(sandboxes::slashes);
        if let Some(rest) = rest {
            places.push((root.components().count(), Place { resource, path: rest, sandbox_of: None }));
        }
    }
    // A folder may be a resource within another: the innermost that plans have written the file in knows its lines.
    places.sort_by_key(|(depth, _)| std::cmp::Reverse(*depth));
    let mut innermost = None;
    let several = places.len() > 1;
    for (_, place) in places {
        let writes = |r: &dyn Reader| r.changes_of_path(place.resource.resource_id, &place.path);
        if !several || !engine.view(writes)?.is_empty() {
            return Ok(Some(place));
        }
        innermost.get_or_insert(place);
    }
    Ok(innermost)
}

/// One plan's attribution of the text at hand.
struct Claim {
    segment: Segment,
    proposed: bool,
    proposed_text: Option<String>,
}

fn attribution(
    engine: &Engine,
    place: &Place,
    text: &str,
    warnings: &mut Vec<String>,
) -> Result<Vec<BlamedSegment>> {
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
        if place.sandbox_of.is_none() && plan.parent_plan_id.is_some() && taken_in(engine, plan_id)? {
            // Its lines are in the parent's, with the same decisions.
            continue;
        }
        let key = (place.resource.resource_id, place.path.clone());
        let Some(trail) = trail_of(engine, plan_id, &key, &touching)? else { continue };
        let lost = || format!("what plan {plan_id} left here cannot be read back: its stored text is gone");
        let Some(left) = read_text(engine, trail.text_hash.as_deref())? else {
            warnings.extend(trail.text_hash.is_some().then(lost));
            continue;
        };
        let claims = if plan.state == State::Applied || place.sandbox_of.is_some() {
            applied_claims(&trail.segments, &left, text)
        } else {
            let Some(base) = read_text(engine, trail.base_hash.as_deref())? else {
                warnings.extend(trail.base_hash.is_some().then(lost));
                continue;
            };
            proposed_claims(&trail, &base, &left, text)
        };
        let newer = taken.clone();
        let decisions = behind(engine, claims.iter().map(|c| c.segment.decision_id))?;
        let known = Lineage::of(&decisions);
        for claim in claims {
            let lines = claim.segment.start..claim.segment.start + claim.segment.lines;
            if claim.segment.lines > 0 && lines.clone().any(|line| newer.contains(&line)) {
                // A newer plan wrote these lines; what is left of the older claim is not worth splitting.
                continue;
            }
            taken.extend(lines);
            out.extend(blamed(&plan, &known, claim));
        }
    }
    out.sort_by_key(|s| (s.start_line, s.end_line));
    Ok(out)
}

/// Whether a child plan's work is in its parent.
fn taken_in(engine: &Engine, child: PlanId) -> Result<bool> {
    let spawn = engine.view(|r| r.spawn_of(child))?;
    Ok(spawn.is_some_and(|s| matches!(s.stage, Stage::Merged { .. })))
}

/// A plan's attribution of one file, from that file's writes alone unless it was moved.
fn trail_of(
    engine: &Engine,
    plan: PlanId,
    key: &(ResourceId, String),
    touching: &[Change],
) -> Result<Option<Trail>> {
    let own: Vec<Change> = touching.iter().filter(|c| c.plan_id == plan).cloned().collect();
    let moved = own.iter().any(|c| c.old_path.is_some());
    let changes = if moved { engine.view(|r| r.changes(plan))? } else { own };
    Ok(fold(&changes).remove(key))
}

/// Decisions with those they were made under and from, and the proposals that answers among them replaced.
fn behind(engine: &Engine, ids: impl Iterator<Item = DecisionId>) -> Result<BTreeMap<DecisionId, Decision>> {
    let mut found: BTreeMap<DecisionId, Decision> = BTreeMap::new();
    let mut wanted: Vec<DecisionId> = ids.collect();
    // The change, the choice it carries out, and the proposals that answers to either replaced.
    for _ in 0..5 {
        let mut next = Vec::new();
        for id in std::mem::take(&mut wanted) {
            if found.contains_key(&id) {
                continue;
            }
            if let Some(decision) = engine.view(|r| r.decision(id))? {
                next.extend(
                    decision.parent_decision_id.into_iter().chain(decision.depends_on.iter().copied()),
                );
                found.insert(id, decision);
            }
        }
        wanted = next;
    }
    Ok(found)
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

/// Places a plan would change, decision by decision, in the coordinates of the text at hand.
fn proposed_claims(trail: &Trail, base: &str, sandbox: &str, text: &str) -> Vec<Claim> {
    let sandbox_lines: Vec<&str> = sandbox.split_inclusive('\n').collect();
    let mut claims = Vec::new();
    for hunk in hunks(base, sandbox) {
        let new = hunk.new_start..hunk.new_start + hunk.new_lines;
        // What each decision puts there.
        let mut puts: Vec<(DecisionId, String)> = Vec::new();
        for segment in trail.segments.iter().filter(|s| s.lines > 0) {
            for line in segment.start.max(new.start)..(segment.start + segment.lines).min(new.end) {
                let words = sandbox_lines.get(line as usize).copied().unwrap_or_default();
                match puts.iter_mut().find(|(decision, _)| *decision == segment.decision_id) {
                    Some((_, put)) => put.push_str(words),
                    None => puts.push((segment.decision_id, words.to_owned())),
                }
            }
        }
        // What each decision takes away, as runs of lines.
        let mut runs: Vec<Segment> = Vec::new();
        for line in hunk.old_start..hunk.old_start + hunk.old_lines {
            let taken_by =
                removed_by(line, &trail.writes).or_else(|| puts.first().map(|(decision, _)| *decision));
            let Some(decision_id) = taken_by else { continue };
            match runs.last_mut().filter(|r| r.decision_id == decision_id && r.start + r.lines == line) {
                Some(run) => run.lines += 1,
                None => runs.push(Segment { start: line, lines: 1, decision_id }),
            }
        }
        for (decision_id, _) in &puts {
            if !runs.iter().any(|r| r.decision_id == *decision_id) {
                runs.push(Segment {
                    start: hunk.old_start + hunk.old_lines,
                    lines: 0,
                    decision_id: *decision_id,
                });
            }
        }
        for run in runs {
            let at = puts.iter().position(|(decision, _)| *decision == run.decision_id);
            let put = at.map(|at| std::mem::take(&mut puts[at].1)).unwrap_or_default();
            claims.push(Claim { segment: run, proposed: true, proposed_text: Some(put) });
        }
    }
    if base == text {
        return claims;
    }
    let edits = hunks(base, text);
    claims
        .into_iter()
        .flat_map(|claim| {
            carry(&[claim.segment], &edits).into_iter().map(move |segment| Claim {
                segment,
                proposed: true,
                proposed_text: claim.proposed_text.clone(),
            })
        })
        .collect()
}

/// The decision whose write took a line of the base text away.
fn removed_by(line: u32, writes: &[(DecisionId, Vec<Hunk>)]) -> Option<DecisionId> {
    let mut line = line;
    for (decision, hunks) in writes {
        match map_line(line, hunks) {
            Some(moved) => line = moved,
            None => return Some(*decision),
        }
    }
    None
}

fn blamed(plan: &Plan, known: &Lineage<'_>, claim: Claim) -> Option<BlamedSegment> {
    let decision = known.get(claim.segment.decision_id)?;
    let Segment { start, lines, .. } = claim.segment;
    let strategy = strategy_behind(decision, known);
    let by_a_person = |d: &Decision| d.decision_type == DecisionType::UserIntervention;
    let standing = strategy.as_ref().and_then(|s| known.get(s.decision_id));
    Some(BlamedSegment {
        start_line: start + 1,
        end_line: start + lines,
        deletion: lines == 0,
        proposed: claim.proposed,
        decision_id: decision.decision_id,
        plan_id: decision.plan_id,
        question: decision.question.clone(),
        chosen: decision.chosen_option.clone(),
        confidence: decision.confidence,
        threshold: decision.decision_type.gate().map(|gate| plan.profile.profile.thresholds.of(gate)),
        rationale: decision.rationale.clone(),
        alternatives: decision.alternatives.iter().map(|a| a.option.clone()).collect(),
        status: decision.status(),
        created: decision.created_at.seconds_rfc3339(),
        action: plan.action.to_string(),
        answered: by_a_person(decision) || standing.is_some_and(by_a_person),
        strategy,
        proposed_text: claim.proposed_text,
        commit: None,
    })
}

/// Decisions by their ids and by what stands in their place, so that looking up the choice behind one costs its chain and
/// not all of them.
pub(crate) struct Lineage<'d> {
    decisions: &'d BTreeMap<DecisionId, Decision>,
    replaced: BTreeMap<DecisionId, &'d Decision>,
}

impl<'d> Lineage<'d> {
    pub fn of(decisions: &'d BTreeMap<DecisionId, Decision>) -> Self {
        let mut replaced = BTreeMap::new();
        for decision in decisions.values() {
            if let Some(by) = decision.superseded_by {
                replaced.entry(by).or_insert(decision);
            }
        }
        Self { decisions, replaced }
    }

    pub fn get(&self, id: DecisionId) -> Option<&'d Decision> {
        self.decisions.get(&id)
    }
}

/// The choice of Strategize that a decision of Execute carries out: what stands of it, with the proposal's evidence.
pub(crate) fn strategy_behind(decision: &Decision, known: &Lineage<'_>) -> Option<StrategyBehind> {
    let decisions = known.decisions;
    let mut at = decision;
    let mut proposal = None;
    // What a person put in its place, the last word first.
    let mut replaced_by = None;
    // Up through answers and what they answered; no chain is longer than there are decisions.
    for _ in 0..decisions.len() {
        let before = known.replaced.get(&at.decision_id).copied();
        if let Some(before) = before.filter(|_| at.decision_type != DecisionType::ImplementationChoice) {
            replaced_by.get_or_insert(at);
            at = before;
            if before.decision_type == DecisionType::ImplementationChoice {
                // An answer about how a choice is carried out is no other choice.
                replaced_by = None;
            }
            if before.decision_type == DecisionType::StrategyChoice {
                proposal = Some(before);
                break;
            }
            continue;
        }
        let above = at.parent_decision_id.and_then(|id| decisions.get(&id));
        let from = at.depends_on.iter().filter_map(|id| decisions.get(id));
        let mut near = above.into_iter().chain(from);
        proposal = near.clone().find(|d| d.decision_type == DecisionType::StrategyChoice);
        match (proposal, near.next()) {
            (None, Some(next)) => (at, replaced_by) = (next, None),
            _ => break,
        }
    }
    let evidence = proposal?;
    let answer = evidence.superseded_by.and_then(|id| decisions.get(&id));
    let standing = replaced_by.or(answer.filter(|a| a.key == evidence.key)).unwrap_or(evidence);
    Some(StrategyBehind {
        decision_id: standing.decision_id,
        question: evidence.question.clone(),
        chosen: standing.chosen_option.clone(),
        confidence: evidence.confidence,
        rationale: evidence.rationale.clone(),
        alternatives: evidence.alternatives.iter().map(|a| a.option.clone()).collect(),
        descriptions: evidence.alternatives.iter().map(|a| a.description.clone()).collect(),
    })
}
