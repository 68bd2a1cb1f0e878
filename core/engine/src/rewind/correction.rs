//! What a correction would take back, worked out without changing anything.

use std::collections::{BTreeMap, BTreeSet};

use agents_domain::changes::{Change, ChangeKind, content_hash};
use agents_domain::checkpoint::Tier;
use agents_domain::correction::{ResourceRewind, ResumeAt, RewindTo};
use agents_domain::decision::{Decision, DecisionType};
use agents_domain::ids::{ChangeId, DecisionId, ResourceId};
use agents_domain::plan::children::Spawn;
use agents_domain::plan::{Phase, State};
use agents_domain::ports::store::{PlanRow, Reader};
use agents_domain::provenance::hunks;
use agents_domain::replay::{self, Moved};
use agents_domain::{Error, Result, tree};

use super::{Facts, children, made_in, made_in_execute, run_before};
use crate::checkpoints::tier_of;
use crate::{Engine, clock};

/// The tool that edits by hand are recorded under.
const PERSON: &str = "person";

/// What a correction takes back and where the plan goes on.
#[derive(Debug)]
pub(crate) struct Scope {
    /// The phase the decision was made in.
    pub phase: Phase,
    pub tier: Tier,
    /// The decisions that fall, the target among them, by sequence number.
    pub fallen: Vec<DecisionId>,
    /// Of these, those that fall only because their writes are about text that falls.
    pub overlapped: Vec<DecisionId>,
    /// Active decisions that stay.
    pub unaffected: usize,
    /// The child plans that fall, where they stand.
    pub children: Vec<PlanRow>,
    /// Files whose writes are taken back.
    pub artifacts: Vec<String>,
    pub resources: Vec<ResourceRewind>,
    pub undone: Vec<ChangeId>,
    pub rewritten: Vec<Change>,
    /// Decisions that stay, whose tool calls are to be made again.
    pub recalled: Vec<DecisionId>,
    /// Child plans that stay and are taken in again.
    pub spawns: Vec<Spawn>,
    pub resume: ResumeAt,
    pub warnings: Vec<String>,
}

/// What reverting a decision takes back.
///
/// # Errors
/// The decision is unknown or replaced already.
pub(crate) fn scope(engine: &Engine, r: &dyn Reader, facts: &Facts, target: &Decision) -> Result<Scope> {
    let phase = made_in(engine, target, &facts.decisions)?;
    let in_execute = made_in_execute(engine, &facts.decisions)?;
    let mut warnings = Vec::new();
    let mut tier = Tier::Full;
    let mut falls = match phase {
        Phase::Strategize if facts.plan.phase == Phase::Strategize => {
            let affected = tree::affected(target.decision_id, &facts.decisions, &facts.child_plans())?;
            Falls { decisions: affected.decisions, plans: affected.plans, ..Falls::default() }
        }
        Phase::Strategize => {
            // Without work to take back there is nothing that could be out of reach.
            if !facts.changes.is_empty() {
                let verdict = tier_of(engine, r, &facts.plan, None)?;
                tier = verdict.tier;
                warnings.extend(
                    verdict.reasons.into_iter().map(|why| format!("Not everything can be taken back: {why}")),
                );
            }
            whole_execute(facts, target, &in_execute)?
        }
        Phase::Execute | Phase::Apply => {
            let conflict = children::in_conflict(facts);
            let fine = match conflict {
                Some(_) => None,
                None => fine(engine, facts, target, &in_execute)?,
            };
            let falling = fine.iter().flat_map(|falls| falls.decisions.iter().copied()).collect();
            let verdict = tier_of(engine, r, &facts.plan, Some(&falling))?;
            tier = verdict.tier;
            match fine {
                Some(falls) if tier == Tier::Full => falls,
                fine => {
                    let gone = fine.is_none().then(|| match conflict {
                        Some(child) => format!("the conflicts with child plan {child} are not resolved"),
                        None => "a stored text is gone".to_owned(),
                    });
                    let why: Vec<String> = verdict.reasons.into_iter().chain(gone).collect();
                    warnings.push(format!("All of Execute is taken back and done again: {}", why.join("; ")));
                    tier = tier.min(Tier::Phase);
                    all_of_execute(facts, target, &in_execute)?
                }
            }
        }
    };
    if target.decision_type == DecisionType::PromptDefinition {
        // What the plan must keep to holds whatever it is asked for.
        let enforced = |id: &DecisionId| {
            facts.decision(*id).is_some_and(|d| d.decision_type == DecisionType::InvariantEnforced)
        };
        falls.decisions.retain(|id| !enforced(id));
    }
    warn_of_edits(facts, &falls, &mut warnings);
    warn_of_side_effects(facts, &falls, &mut warnings);
    finish(engine, facts, phase, tier, falls, warnings)
}

/// What a person edited in the sandbox goes with the work it was made on; it stays in a checkpoint.
fn warn_of_edits(facts: &Facts, falls: &Falls, warnings: &mut Vec<String>) {
    let edited: BTreeSet<DecisionId> = facts
        .changes
        .iter()
        .filter(|c| c.tool == PERSON && falls.undone.contains(&c.change_id))
        .map(|c| c.decision_id)
        .collect();
    for decision in edited {
        let kept = facts.checkpoints.iter().find(|c| c.decision_id == Some(decision));
        let files: BTreeSet<&str> =
            facts.changes.iter().filter(|c| c.decision_id == decision).map(|c| c.path.as_str()).collect();
        let files = files.into_iter().collect::<Vec<_>>().join(", ");
        warnings.push(match kept {
            Some(kept) => {
                format!("Edits by hand in {files} are taken back too; {} keeps them", kept.checkpoint_id)
            }
            None => format!("Edits by hand in {files} are taken back too"),
        });
    }
}

/// What calls that are taken back did outside of every sandbox stays done (CORR-023).
fn warn_of_side_effects(facts: &Facts, falls: &Falls, warnings: &mut Vec<String>) {
    let mut stays: BTreeMap<(&str, &[String]), usize> = BTreeMap::new();
    for call in facts.calls.iter().filter(|call| !call.side_effects.is_empty()) {
        if falls.decisions.contains(&call.decision_id) || falls.recalled.contains(&call.decision_id) {
            *stays.entry((&call.tool, &call.side_effects)).or_default() += 1;
        }
    }
    for ((tool, effects), times) in stays {
        let calls = if times == 1 { "1 call".to_owned() } else { format!("{times} calls") };
        warnings.push(format!(
            "What {calls} of `{tool}` did outside the sandbox stays done ({}), and may be done again",
            effects.join(", ")
        ));
    }
}

/// The parts of a scope while it is worked out.
#[derive(Debug, Default)]
struct Falls {
    decisions: Vec<DecisionId>,
    overlapped: Vec<DecisionId>,
    plans: Vec<agents_domain::ids::PlanId>,
    resources: Vec<ResourceRewind>,
    undone: Vec<ChangeId>,
    rewritten: Vec<Change>,
    recalled: Vec<DecisionId>,
    /// Execute begins anew instead of at the step of the first decision that falls.
    from_start: bool,
}

fn to_base(facts: &Facts) -> Vec<ResourceRewind> {
    let moved = facts.plan.sandboxes.iter().filter(|s| s.commit != s.base_commit);
    let back = |s: &agents_domain::plan::SandboxRef| ResourceRewind {
        resource_id: s.resource_id,
        to: RewindTo::Commit(s.base_commit.clone()),
    };
    moved.map(back).collect()
}

/// A decision of Strategize falls while Execute has begun: all of Execute does.
fn whole_execute(facts: &Facts, target: &Decision, in_execute: &BTreeSet<DecisionId>) -> Result<Falls> {
    let affected =
        tree::affected_with_execute(target.decision_id, &facts.decisions, &facts.child_plans(), |d| {
            in_execute.contains(&d.decision_id)
        })?;
    Ok(Falls {
        decisions: affected.decisions,
        plans: affected.plans,
        resources: to_base(facts),
        undone: facts.changes.iter().map(|c| c.change_id).collect(),
        recalled: facts.calls.iter().map(|c| c.decision_id).collect(),
        ..Falls::default()
    })
}

/// A decision of Execute falls and nothing finer than all of Execute can be taken back.
fn all_of_execute(facts: &Facts, target: &Decision, in_execute: &BTreeSet<DecisionId>) -> Result<Falls> {
    let falls = whole_execute(facts, target, in_execute)?;
    Ok(Falls { from_start: true, ..falls })
}

/// A decision of Execute falls with exactly what hangs on it; `None` when a text that is needed is gone.
fn fine(
    engine: &Engine,
    facts: &Facts,
    target: &Decision,
    in_execute: &BTreeSet<DecisionId>,
) -> Result<Option<Falls>> {
    let child_plans = facts.child_plans();
    let mut fallen: BTreeSet<DecisionId> = BTreeSet::new();
    let mut plans = BTreeSet::new();
    let mut dropped: BTreeSet<ChangeId> = BTreeSet::new();
    let mut overlapped = Vec::new();
    let mut recalled = Vec::new();
    let mut next = Some(target.decision_id);
    loop {
        if let Some(decision) = next.take() {
            let affected = tree::affected(decision, &facts.decisions, &child_plans)?;
            fallen.extend(affected.decisions);
            plans.extend(affected.plans);
        }
        dropped.extend(facts.changes.iter().filter(|c| fallen.contains(&c.decision_id)).map(|c| c.change_id));
        let replayed = match replay_all(engine, facts, &dropped) {
            Ok(replayed) => replayed,
            Err(in_the_way) => {
                let Some(change) = facts.changes.iter().find(|c| c.change_id == in_the_way) else {
                    return Ok(None);
                };
                let behind = change.decision_id;
                if dropped.contains(&in_the_way) {
                    return Ok(None);
                }
                match facts.decision(behind) {
                    // What Strategize decided stands; its write is made again.
                    Some(d) if d.superseded_by.is_none() && in_execute.contains(&behind) => {
                        overlapped.push(behind);
                        next = Some(behind);
                    }
                    _ => {
                        recalled.push(behind);
                        let writes = facts.changes.iter().filter(|c| c.decision_id == behind);
                        dropped.extend(writes.map(|c| c.change_id));
                    }
                }
                continue;
            }
        };
        let (resources, rewritten, undone) = replayed;
        let active = tree::active(&facts.decisions);
        return Ok(Some(Falls {
            decisions: active.iter().map(|d| d.decision_id).filter(|id| fallen.contains(id)).collect(),
            overlapped,
            plans: plans.into_iter().collect(),
            resources,
            undone: dropped.into_iter().chain(undone).collect(),
            rewritten,
            recalled,
            from_start: false,
        }));
    }
}

type Replays = (Vec<ResourceRewind>, Vec<Change>, Vec<ChangeId>);

/// The sandboxes without some writes: what their files become, the writes that are carried over, and those they replace.
fn replay_all(
    engine: &Engine,
    facts: &Facts,
    dropped: &BTreeSet<ChangeId>,
) -> std::result::Result<Replays, ChangeId> {
    let mut by_resource: BTreeMap<ResourceId, Vec<&Change>> = BTreeMap::new();
    for change in &facts.changes {
        by_resource.entry(change.resource_id).or_default().push(change);
    }
    let (mut resources, mut rewritten, mut replaced) = (Vec::new(), Vec::new(), Vec::new());
    for (resource_id, changes) in by_resource {
        let blob = |hash: &str| engine.store.blob(hash).ok().flatten();
        let replayed = replay::without(&changes, dropped, blob)?;
        let mut files = Vec::new();
        for (path, bytes) in &replayed.files {
            // Dropped contents are in the store; carried-over ones are put there, which a preview may do as well.
            let hash = bytes.as_deref().map(|bytes| engine.store.put_blob(bytes));
            files.push((path.clone(), hash.transpose().ok().flatten()));
        }
        for Moved { change: id, before, after } in replayed.moved {
            let Some(old) = changes.iter().find(|c| c.change_id == id) else { continue };
            for bytes in [&before, &after].into_iter().flatten() {
                let _ = engine.store.put_blob(bytes);
            }
            replaced.push(id);
            rewritten.push(carried(old, before.as_deref(), after.as_deref()));
        }
        if !files.is_empty() {
            resources.push(ResourceRewind { resource_id, to: RewindTo::Files(files) });
        }
    }
    Ok((resources, rewritten, replaced))
}

/// A write as it is over another text.
fn carried(old: &Change, before: Option<&[u8]>, after: Option<&[u8]>) -> Change {
    let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
    Change {
        change_id: ChangeId::from_ulid(clock::ulid()),
        before_hash: before.map(content_hash),
        after_hash: after.map(content_hash),
        hunks: hunks(&text(before), &text(after)),
        kind: if before.is_none() { ChangeKind::Added } else { old.kind },
        ..old.clone()
    }
}

fn finish(
    engine: &Engine,
    facts: &Facts,
    phase: Phase,
    tier: Tier,
    falls: Falls,
    mut warnings: Vec<String>,
) -> Result<Scope> {
    let fallen: BTreeSet<DecisionId> = falls.decisions.iter().copied().collect();
    // The run as it was before the first of them was recorded.
    let mut first: Option<(u32, String)> = None;
    let mut restart = falls.from_start;
    for decision in facts.decisions.iter().filter(|d| fallen.contains(&d.decision_id)) {
        if made_in(engine, decision, &facts.decisions)? != phase {
            continue;
        }
        match run_before(engine, decision)?.filter(|run| run.phase == phase) {
            Some(run) if first.as_ref().is_none_or(|(step, _)| run.step < *step) => {
                first = Some((run.step, decision.context.actor_state_ref.clone()));
            }
            Some(_) => {}
            // What people said beside a question was heard in the middle; those that were asked are there themselves.
            None if decision.decision_type == DecisionType::UserIntervention && fallen.len() > 1 => {}
            None => restart = true,
        }
    }
    let run = first.map(|(_, run)| run).filter(|_| !restart);
    let children: Vec<PlanRow> =
        facts.family.iter().filter(|row| falls.plans.contains(&row.plan_id)).cloned().collect();
    let dropped: BTreeSet<ChangeId> = falls.undone.iter().copied().collect();
    let spawns = children::taken_in_again(facts, &fallen, &dropped);
    let rewritten: BTreeSet<(ResourceId, &str)> =
        falls.rewritten.iter().map(|c| (c.resource_id, c.path.as_str())).collect();
    let artifacts: BTreeSet<String> = facts
        .changes
        .iter()
        .filter(|c| dropped.contains(&c.change_id))
        .filter(|c| fallen.contains(&c.decision_id) || !rewritten.contains(&(c.resource_id, &c.path)))
        .map(|c| c.path.clone())
        .collect();
    if !falls.overlapped.is_empty() {
        let n = falls.overlapped.len();
        let (they, are) = if n == 1 { ("decision has", "it is") } else { ("decisions have", "they are") };
        warnings.push(format!(
            "{n} later {they} written over the same lines, so {are} taken back and made again too"
        ));
    }
    if !spawns.is_empty() {
        warnings.push(format!(
            "What {} did stays and is taken in again",
            if spawns.len() == 1 {
                "1 child plan".to_owned()
            } else {
                format!("{} child plans", spawns.len())
            }
        ));
    }
    for child in children.iter().filter(|c| c.state == State::Processing) {
        warnings.push(format!("Child plan {} is being worked on and will be cancelled", child.plan_id));
    }
    let active = tree::active(&facts.decisions);
    Ok(Scope {
        phase,
        tier,
        unaffected: active.iter().filter(|d| !fallen.contains(&d.decision_id)).count(),
        fallen: falls.decisions,
        overlapped: falls.overlapped,
        children,
        artifacts: artifacts.into_iter().collect(),
        resources: falls.resources,
        undone: falls.undone,
        rewritten: falls.rewritten,
        recalled: falls.recalled,
        spawns,
        resume: ResumeAt { phase, run },
        warnings,
    })
}

/// Refuses a correction that would take back what a child plan has applied (CORR-020).
pub(crate) fn refuse_applied_children(scope: &Scope, target: &Decision) -> Result<()> {
    let applied: Vec<String> = scope
        .children
        .iter()
        .filter(|child| child.state == State::Applied)
        .map(|child| child.plan_id.to_string())
        .collect();
    if applied.is_empty() {
        return Ok(());
    }
    let id = target.decision_id;
    Err(Error::invalid_state(format!(
        "decision {id} cannot be reverted: child plan {} is applied, and what is applied is not taken back",
        applied.join(", ")
    ))
    .suggest(format!("agents plan tree {}  # correct a decision of the child instead", applied[0]))
    .suggest(format!("agents plan correct --mode append --guidance GUIDANCE {id}")))
}
