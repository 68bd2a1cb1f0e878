//! What returning to a checkpoint would take back, worked out without changing anything.

use std::collections::{BTreeMap, BTreeSet};

use agents_domain::changes::Change;
use agents_domain::checkpoint::Checkpoint;
use agents_domain::correction::{CheckpointMark, ResourceRewind, ResumeAt, RewindTo};
use agents_domain::decision::{Approval, Decision};
use agents_domain::ids::{ChangeId, DecisionId, PlanId};
use agents_domain::plan::Phase;
use agents_domain::plan::children::Spawn;
use agents_domain::{Error, Result, tree};

use super::{Facts, children, file_states, made_in_execute};
use crate::{Engine, clock};

/// What a rollback takes back and brings again.
#[derive(Debug)]
pub(crate) struct Scope {
    /// Decisions that do not stand at the checkpoint.
    pub fallen: Vec<DecisionId>,
    /// Copies of decisions that stood at the checkpoint and do not now.
    pub reinstated: Vec<Decision>,
    pub resources: Vec<ResourceRewind>,
    pub undone: Vec<ChangeId>,
    pub rewritten: Vec<Change>,
    pub calls: Vec<(i64, DecisionId)>,
    pub recalled: Vec<DecisionId>,
    pub resume: ResumeAt,
    /// Child plans that stand otherwise at the checkpoint.
    pub spawns: Vec<Spawn>,
    /// Child plans that were made later.
    pub children: Vec<PlanId>,
    /// Files that become others than they are, and whether they are there afterwards.
    pub files: BTreeMap<String, bool>,
    /// Tool calls taken back.
    pub tool_calls: usize,
}

/// What stood at a checkpoint: as it was kept, else as far as times tell.
fn mark_of(engine: &Engine, facts: &Facts, checkpoint: &Checkpoint) -> Result<CheckpointMark> {
    if let Some(mark) = engine.view(|r| r.checkpoint_mark(checkpoint.checkpoint_id))? {
        return Ok(mark);
    }
    let before = |at: agents_domain::Timestamp| at <= checkpoint.created_at;
    let in_execute = made_in_execute(engine, &facts.decisions)?;
    let active = tree::active(&facts.decisions).into_iter();
    Ok(CheckpointMark {
        decisions: active
            .filter(|d| in_execute.contains(&d.decision_id) && before(d.created_at))
            .map(|d| d.decision_id)
            .collect(),
        changes: facts.changes.iter().filter(|c| before(c.created_at)).map(|c| c.change_id).collect(),
        calls: facts.calls.iter().filter(|c| before(c.created_at)).map(|c| c.id).collect(),
        spawns: children::before(facts, |c| before(c.created_at), checkpoint.created_at),
        run: None,
    })
}

/// What returning to a checkpoint of the plan takes back.
pub(crate) fn scope(engine: &Engine, facts: &Facts, checkpoint: &Checkpoint) -> Result<Scope> {
    let mark = mark_of(engine, facts, checkpoint)?;
    let in_execute = made_in_execute(engine, &facts.decisions)?;
    let kept: BTreeSet<DecisionId> = mark.decisions.iter().copied().collect();
    let fallen: Vec<DecisionId> = tree::active(&facts.decisions)
        .into_iter()
        .map(|d| d.decision_id)
        .filter(|id| in_execute.contains(id) && !kept.contains(id))
        .collect();
    let (reinstated, stands) = reinstate(facts, &mark, checkpoint);
    refuse_corrected_strategy(facts, &reinstated, checkpoint)?;
    let mut undone: Vec<ChangeId> = Vec::new();
    let mut rewritten = Vec::new();
    let standing: Vec<ChangeId> = facts.changes.iter().map(|c| c.change_id).collect();
    // As far as both have the same writes they stay; the rest is recorded anew, so that the order is right.
    let same = mark.changes.iter().zip(&standing).take_while(|(then, now)| then == now).count();
    undone.extend(&standing[same..]);
    for id in &mark.changes[same..] {
        let change = engine.view(|r| r.change(*id))?;
        let change = change.ok_or_else(|| Error::internal(format!("change {id} is gone")))?;
        rewritten.push(Change {
            change_id: ChangeId::from_ulid(clock::ulid()),
            decision_id: stands.get(&change.decision_id).copied().unwrap_or(change.decision_id),
            ..change
        });
    }
    let calls: BTreeSet<i64> = mark.calls.iter().copied().collect();
    let lost: Vec<&agents_domain::correction::ToolCall> =
        facts.calls.iter().filter(|c| !calls.contains(&c.id)).collect();
    let mut after: Vec<Change> = facts.changes[..same].to_vec();
    after.extend(rewritten.iter().cloned());
    let resources = checkpoint
        .sandboxes
        .iter()
        .map(|at| ResourceRewind { resource_id: at.resource_id, to: RewindTo::Commit(at.commit.clone()) });
    let child_of = |d: &&Decision| fallen.contains(&d.decision_id);
    let direct = facts.decisions.iter().filter(child_of).flat_map(|d| d.downstream_plans.iter().copied());
    let (spawns, mut given_up) = children::as_at(facts, &mark.spawns);
    given_up.extend(direct);
    Ok(Scope {
        children: children::with_all_below(facts, given_up),
        spawns,
        tool_calls: lost.len(),
        recalled: lost.iter().map(|c| c.decision_id).collect::<BTreeSet<_>>().into_iter().collect(),
        calls: engine
            .view(|r| Ok(mark.calls.iter().copied().zip(r.call_decisions(&mark.calls)?).collect::<Vec<_>>()))?
            .into_iter()
            .map(|(call, decision)| (call, stands.get(&decision).copied().unwrap_or(decision)))
            .collect(),
        files: differing(facts, &after),
        resources: resources.collect(),
        resume: ResumeAt { phase: Phase::Execute, run: mark.run },
        fallen,
        reinstated,
        undone,
        rewritten,
    })
}

/// Copies of the decisions that stood at the checkpoint and were superseded since, and which decision each one now is.
fn reinstate(
    facts: &Facts,
    mark: &CheckpointMark,
    checkpoint: &Checkpoint,
) -> (Vec<Decision>, BTreeMap<DecisionId, DecisionId>) {
    let gone: Vec<&Decision> = mark
        .decisions
        .iter()
        .filter_map(|id| facts.decision(*id))
        .filter(|d| d.superseded_by.is_some())
        .collect();
    let stands: BTreeMap<DecisionId, DecisionId> =
        gone.iter().map(|d| (d.decision_id, DecisionId::from_ulid(clock::ulid()))).collect();
    let now = |id: DecisionId| stands.get(&id).copied().unwrap_or(id);
    let copy = |d: &Decision| Decision {
        decision_id: now(d.decision_id),
        parent_decision_id: d.parent_decision_id.map(now),
        depends_on: d.depends_on.iter().copied().map(now).collect(),
        corrects_decision_id: Some(d.decision_id),
        correction_reason: Some(format!("stands again since the return to {}", checkpoint.checkpoint_id)),
        approval: Some(d.approval.unwrap_or(Approval::System)),
        pending: false,
        superseded_by: None,
        created_at: clock::now(),
        ..d.clone()
    };
    (gone.into_iter().map(copy).collect(), stands)
}

/// Work that hangs on a decision of Strategize that does not stand any more does not come back.
fn refuse_corrected_strategy(facts: &Facts, reinstated: &[Decision], checkpoint: &Checkpoint) -> Result<()> {
    let gone = |id: &DecisionId| facts.decision(*id).is_some_and(|d| d.superseded_by.is_some());
    let lost =
        reinstated.iter().flat_map(|d| d.parent_decision_id.iter().chain(&d.depends_on)).find(|id| gone(id));
    match lost {
        Some(lost) => Err(Error::invalid_state(format!(
            "the work at checkpoint {} hangs on decision {lost}, which was corrected since",
            checkpoint.checkpoint_id
        ))
        .suggest(format!("agents plan explain {lost}"))
        .suggest(format!("agents plan artifacts {}  # lists the later checkpoints", checkpoint.plan_id))),
        None => Ok(()),
    }
}

/// The files that differ between the standing writes and others, and whether they are there with the others.
fn differing(facts: &Facts, after: &[Change]) -> BTreeMap<String, bool> {
    let base = |resource, path: &String| {
        let first =
            facts.changes.iter().chain(after).find(|c| {
                c.resource_id == resource && (c.path == *path || c.old_path.as_ref() == Some(path))
            });
        first
            .filter(|c| c.old_path.is_none() || c.old_path.as_ref() == Some(path))
            .and_then(|c| c.before_hash.clone())
    };
    let table = |changes: &[Change]| -> BTreeMap<(agents_domain::ids::ResourceId, String), Option<String>> {
        file_states(changes).into_iter().map(|s| ((s.resource_id, s.path), s.hash)).collect()
    };
    let (now, then) = (table(&facts.changes), table(after));
    let mut files = BTreeMap::new();
    for (resource, path) in now.keys().chain(then.keys()) {
        let key = (*resource, path.clone());
        let of = |states: &BTreeMap<_, Option<String>>| {
            states.get(&key).cloned().unwrap_or_else(|| base(*resource, path))
        };
        if of(&now) != of(&then) {
            files.insert(path.clone(), of(&then).is_some());
        }
    }
    files
}
