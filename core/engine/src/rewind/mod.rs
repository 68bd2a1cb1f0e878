//! Taking a plan back to an earlier point: by a correction of a decision, or to a checkpoint.
//!
//! What is to happen is worked out once ([`correction`], [`rollback`]) and recorded as a [`Rewind`] in the transaction
//! that moves the plan. From then on no commit of a worker on the old course gets through. The plan's worker brings the
//! sandboxes to where they belong and settles the rest (decisions, writes, tool calls, the actor's run) in one
//! transaction, which also forgets the rewind. Killed before that, the next worker does the same again.

mod children;
pub(crate) mod correction;
pub(crate) mod rollback;

use std::collections::{BTreeMap, BTreeSet};

use agents_domain::changes::{Change, content_hash};
use agents_domain::checkpoint::Checkpoint;
use agents_domain::correction::{
    CheckpointMark, CorrectionAttempt, CorrectionState, FileState, Rewind, RewindCause, RewindTo, ToolCall,
};
use agents_domain::decision::{Decision, DecisionType};
use agents_domain::ids::{ChangeId, DecisionId, PlanId, ResourceId};
use agents_domain::plan::children::Spawn;
use agents_domain::plan::{Phase, Plan, State};
use agents_domain::ports::store::{ActorRun, PlanRow, Reader, StoreResult, Writer};
use agents_domain::{Error, ErrorKind, Result};
use serde_json::{Value, json};

use crate::records::{self, emit};
use crate::{Engine, clock};

/// What is known of a plan, read in one view.
pub(crate) struct Facts {
    pub plan: Plan,
    pub decisions: Vec<Decision>,
    /// The standing writes, in order.
    pub changes: Vec<Change>,
    pub calls: Vec<ToolCall>,
    pub checkpoints: Vec<Checkpoint>,
    /// Every plan below it.
    pub family: Vec<PlanRow>,
    pub spawns: Vec<Spawn>,
    /// Writes by which work of a child plan was taken in, with the child.
    pub taken_in: BTreeMap<ChangeId, PlanId>,
}

impl Facts {
    pub fn load(r: &dyn Reader, id: PlanId) -> StoreResult<Option<Self>> {
        let Some(plan) = r.plan(id)? else { return Ok(None) };
        let mut facts = Self {
            decisions: r.decisions(id)?,
            changes: r.changes(id)?,
            calls: r.tool_calls(id)?,
            checkpoints: r.checkpoints(id)?,
            family: below(r, id)?,
            spawns: r.spawns(id)?,
            taken_in: BTreeMap::new(),
            plan,
        };
        facts.taken_in = children::taken_in(r, &facts)?;
        Ok(Some(facts))
    }

    /// Pairs of parent and child.
    pub fn child_plans(&self) -> Vec<(PlanId, PlanId)> {
        self.family.iter().filter_map(|row| Some((row.parent_plan_id?, row.plan_id))).collect()
    }

    pub fn decision(&self, id: DecisionId) -> Option<&Decision> {
        self.decisions.iter().find(|d| d.decision_id == id)
    }
}

/// Every plan below a plan, level by level.
fn below(r: &dyn Reader, plan: PlanId) -> StoreResult<Vec<PlanRow>> {
    let mut found: Vec<PlanRow> = r.child_rows(plan)?;
    let mut next = 0;
    while let Some(row) = found.get(next) {
        let children = r.child_rows(row.plan_id)?;
        found.extend(children);
        next += 1;
    }
    Ok(found)
}

/// The run of the actor just before the step that recorded a decision; `None` for what the engine recorded.
pub(crate) fn run_before(engine: &Engine, decision: &Decision) -> Result<Option<ActorRun>> {
    let Some(bytes) = engine.store.blob(&decision.context.actor_state_ref)? else { return Ok(None) };
    Ok(serde_json::from_slice(&bytes).ok())
}

/// The phase a decision was made in.
pub(crate) fn made_in(engine: &Engine, decision: &Decision, all: &[Decision]) -> Result<Phase> {
    let mut decision = decision;
    // No chain of parents is longer than there are decisions.
    for _ in 0..=all.len() {
        match decision.decision_type {
            DecisionType::PromptDefinition
            | DecisionType::InvariantEnforced
            | DecisionType::StrategyChoice
            | DecisionType::SubplanSpawn
            | DecisionType::SubplanParallelSpawn => return Ok(Phase::Strategize),
            DecisionType::ImplementationChoice
            | DecisionType::ToolInvocation
            | DecisionType::ErrorRecovery
            | DecisionType::ValidationResponse => return Ok(Phase::Execute),
            DecisionType::ResourceSelection | DecisionType::UserIntervention => {}
        }
        if let Some(run) = run_before(engine, decision)? {
            return Ok(run.phase);
        }
        let parent = decision.parent_decision_id;
        match all.iter().find(|d| Some(d.decision_id) == parent) {
            Some(parent) => decision = parent,
            None => break,
        }
    }
    Ok(Phase::Strategize)
}

/// The ids of the decisions made in Execute.
pub(crate) fn made_in_execute(engine: &Engine, all: &[Decision]) -> Result<BTreeSet<DecisionId>> {
    let mut found = BTreeSet::new();
    for decision in all {
        if made_in(engine, decision, all)? == Phase::Execute {
            found.insert(decision.decision_id);
        }
    }
    Ok(found)
}

/// Stores a run, so that a plan can go on from it.
pub(crate) fn keep_run(engine: &Engine, run: &ActorRun) -> Result<String> {
    let bytes = serde_json::to_vec(run).map_err(|e| Error::internal(e.to_string()))?;
    Ok(engine.store.put_blob(&bytes)?)
}

/// The identity of a tool call's arguments.
pub(crate) fn args_hash(args: &Value) -> String {
    content_hash(args.to_string().as_bytes())
}

/// What of Execute stands now, for a checkpoint.
pub(crate) fn standing(engine: &Engine, r: &dyn Reader, plan: &Plan) -> Result<CheckpointMark> {
    let id = plan.plan_id;
    let decisions = r.decisions(id)?;
    let in_execute = made_in_execute(engine, &decisions)?;
    let active = decisions.iter().filter(|d| d.superseded_by.is_none());
    let (changes, calls) = r.standing_ids(id)?;
    Ok(CheckpointMark {
        decisions: active.map(|d| d.decision_id).filter(|id| in_execute.contains(id)).collect(),
        changes,
        calls,
        spawns: r.spawns(id)?,
        run: r.actor_run(id, Phase::Execute)?.and_then(|run| run.before),
    })
}

/// The content of every file the plan changed, as its standing writes leave it.
pub(crate) fn file_states(changes: &[Change]) -> Vec<FileState> {
    let mut states: BTreeMap<(ResourceId, &String), FileState> = BTreeMap::new();
    let mut set = |change: &Change, path, before: &Option<String>, after: &Option<String>| {
        let resource_id = change.resource_id;
        let fresh = || FileState { resource_id, path: String::clone(path), base: before.clone(), hash: None };
        states.entry((resource_id, path)).or_insert_with(fresh).hash.clone_from(after);
    };
    for change in changes {
        if let Some(old) = &change.old_path {
            set(change, old, &change.before_hash, &None);
            set(change, &change.path, &None, &change.after_hash);
        } else {
            set(change, &change.path, &change.before_hash, &change.after_hash);
        }
    }
    states.into_values().collect()
}

/// Stores file states; returns the blob.
pub(crate) fn keep_states(engine: &Engine, states: &[FileState]) -> Result<String> {
    let bytes = serde_json::to_vec(states).map_err(|e| Error::internal(e.to_string()))?;
    Ok(engine.store.put_blob(&bytes)?)
}

/// File states from their blob.
pub(crate) fn states(engine: &Engine, blob: &str) -> Result<Vec<FileState>> {
    let gone = || Error::new(ErrorKind::Database, format!("the archived files {blob} are gone"));
    let bytes = engine.store.blob(blob)?.ok_or_else(gone)?;
    serde_json::from_slice(&bytes).map_err(|_| gone())
}

/// Everything but the sandboxes: decisions, writes, tool calls, the actor's run, the plan's record, and the end of the
/// rewind itself, in the caller's transaction. `commits` is where the sandboxes are now.
pub(crate) fn settle(
    engine: &Engine,
    w: &dyn Writer,
    plan: &mut Plan,
    rewind: &Rewind,
    run: Option<ActorRun>,
    commits: &[(ResourceId, String)],
) -> Result<()> {
    for decision in &rewind.recorded {
        let numbered = Decision { sequence_number: w.next_sequence(plan.plan_id)?, ..decision.clone() };
        w.insert_decision(&numbered)?;
        records::emit_decision(engine, w, plan, &numbered)?;
    }
    supersede(engine, w, plan, rewind)?;
    for change in &rewind.undone {
        w.undo_change(*change)?;
    }
    for change in &rewind.rewritten {
        w.insert_change(change)?;
    }
    for decision in rewind.fallen.iter().chain(&rewind.recalled) {
        w.undo_tool_calls(plan.plan_id, *decision)?;
    }
    for (call, decision) in &rewind.calls {
        w.reinstate_tool_call(*call, *decision)?;
    }
    for spawn in &rewind.spawns {
        w.put_spawn(spawn)?;
    }
    for (resource, commit) in commits {
        let Some(sandbox) = plan.sandboxes.iter_mut().find(|s| s.resource_id == *resource) else { continue };
        sandbox.commit.clone_from(commit);
        let facts =
            json!({ "resource_id": resource, "strategy": sandbox.strategy(), "reason": reason(rewind) });
        emit(engine, w, plan, "sandbox.rolled_back", facts)?;
    }
    resume(w, plan, rewind, run)?;
    if let Some(description) = &rewind.description {
        plan.description.clone_from(description);
    }
    plan.guidance.extend(rewind.guidance.clone());
    match rewind.cause {
        RewindCause::Correction(id) => {
            let attempt = w.correction(id)?;
            let facts = json!({
                "correction_id": id, "decision_id": attempt.as_ref().map(|a| a.original_decision_id),
                "new_decision_id": attempt.as_ref().map(|a| a.new_decision_id), "attempt": plan.attempt,
            });
            emit(engine, w, plan, "decision.corrected", facts.clone())?;
            emit(engine, w, plan, "correction.applied", facts)?;
        }
        RewindCause::Rollback(id) => {
            let facts = json!({ "checkpoint_id": id, "decisions": rewind.fallen.len() });
            emit(engine, w, plan, "checkpoint.restored", facts)?;
        }
    }
    w.delete_rewind(plan.plan_id)?;
    records::touch(w, plan)
}

fn supersede(engine: &Engine, w: &dyn Writer, plan: &Plan, rewind: &Rewind) -> Result<()> {
    let Some(by) = rewind.recorded.first().map(|d| d.decision_id) else { return Ok(()) };
    let standing: BTreeSet<DecisionId> = w
        .decisions(plan.plan_id)?
        .iter()
        .filter(|d| d.superseded_by.is_none())
        .map(|d| d.decision_id)
        .collect();
    for decision in rewind.fallen.iter().filter(|id| standing.contains(id)) {
        w.supersede(*decision, by)?;
        let facts = json!({ "decision_id": decision, "superseded_by": by });
        emit(engine, w, plan, "decision.superseded", facts)?;
    }
    Ok(())
}

/// Puts the actor's run to where it goes on; what people said that it has not heard there yet is heard again.
fn resume(w: &dyn Writer, plan: &mut Plan, rewind: &Rewind, run: Option<ActorRun>) -> Result<()> {
    let phase = rewind.resume.phase;
    let now = w.actor_run(plan.plan_id, phase)?;
    let mut unheard: Vec<DecisionId> = now.map(|now| now.heard).unwrap_or_default();
    if phase == Phase::Strategize {
        unheard.extend(w.actor_run(plan.plan_id, Phase::Execute)?.map(|run| run.heard).unwrap_or_default());
        w.delete_actor_run(plan.plan_id, Phase::Execute)?;
    }
    match run {
        Some(run) => {
            unheard.retain(|said| !run.heard.contains(said));
            w.put_actor_run(&ActorRun { retries: 0, lost_workers: 0, ..run })?;
        }
        None => w.delete_actor_run(plan.plan_id, phase)?,
    }
    for said in &mut plan.guidance {
        let falls = rewind.fallen.contains(&said.decision_id);
        said.applied = falls || (said.applied && !unheard.contains(&said.decision_id));
    }
    plan.summaries.retain(|done, _| *done < phase);
    plan.diff_ref = None;
    Ok(())
}

fn reason(rewind: &Rewind) -> String {
    match rewind.cause {
        RewindCause::Correction(id) => format!("correction {id}"),
        RewindCause::Rollback(id) => format!("rollback to {id}"),
    }
}

/// The files a rewind writes, so that a half-made one is not taken for a person's edits.
pub(crate) fn paths_of(rewind: &Rewind, changes: &[Change]) -> Vec<String> {
    let files = rewind.resources.iter().flat_map(|resource| match &resource.to {
        RewindTo::Files(files) => files.iter().map(|(path, _)| path.clone()).collect(),
        RewindTo::Commit(_) => Vec::new(),
    });
    let recorded = changes.iter().flat_map(|c| c.old_path.iter().chain([&c.path]).cloned());
    files.chain(recorded).collect()
}

/// Ends the corrections that a phase, complete again now, was about.
pub(crate) fn end_corrections(engine: &Engine, w: &dyn Writer, plan: &Plan, done: Phase) -> Result<()> {
    for attempt in executing(w, plan)?.into_iter().filter(|attempt| attempt.phase <= done) {
        end_correction(engine, w, plan, attempt, None)?;
    }
    Ok(())
}

/// Ends the corrections of a plan that cannot go on; a rewind that was to come is forgotten with a cancelled plan.
pub(crate) fn fail_corrections(engine: &Engine, w: &dyn Writer, plan: &Plan) -> Result<()> {
    let why = match &plan.failure {
        Some(failure) if plan.state == State::Errored => failure.message.clone(),
        _ => format!("the plan is {}", plan.state),
    };
    for attempt in executing(w, plan)? {
        end_correction(engine, w, plan, attempt, Some(why.clone()))?;
    }
    if plan.state == State::Cancelled {
        w.delete_rewind(plan.plan_id)?;
    }
    Ok(())
}

fn executing(w: &dyn Writer, plan: &Plan) -> Result<Vec<CorrectionAttempt>> {
    let all = w.corrections(plan.plan_id)?;
    Ok(all.into_iter().filter(|attempt| attempt.state == CorrectionState::Executing).collect())
}

/// Ends one correction, well or (with a reason) not.
pub(crate) fn end_correction(
    engine: &Engine,
    w: &dyn Writer,
    plan: &Plan,
    attempt: CorrectionAttempt,
    failure: Option<String>,
) -> Result<()> {
    let (state, event) = match &failure {
        Some(_) => (CorrectionState::Failed, "correction.failed"),
        None => (CorrectionState::Completed, "correction.completed"),
    };
    let facts = json!({ "correction_id": attempt.correction_id, "message": failure });
    w.put_correction(&CorrectionAttempt { state, failure, completed_at: Some(clock::now()), ..attempt })?;
    emit(engine, w, plan, event, facts)
}

/// Keeps what the files are at the end of Execute for every correction that led to it.
pub(crate) fn keep_outcomes(w: &dyn Writer, plan: PlanId, states: &str) -> Result<()> {
    for attempt in w.corrections(plan)? {
        if attempt.outcome.is_none() && attempt.archive.is_some() {
            w.put_correction(&CorrectionAttempt { outcome: Some(states.to_owned()), ..attempt })?;
        }
    }
    Ok(())
}
