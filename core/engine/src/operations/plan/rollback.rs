//! `plan rollback`: back to a checkpoint of Execute, and forward again.

use agents_domain::checkpoint::{Checkpoint, CheckpointDiff, CheckpointKind};
use agents_domain::correction::{Rewind, RewindCause};
use agents_domain::decision::{Alternative, Approval, ContextSnapshot, Decision, DecisionType};
use agents_domain::ids::{CheckpointId, DecisionId, PlanId};
use agents_domain::plan::machine::{self, AllowedAction, Event};
use agents_domain::plan::{Awaiting, Phase, Plan, State};
use agents_domain::ports::store::Writer;
use agents_domain::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::correct::{cancel_children, refuse_while_executing};
use crate::checkpoints::{self, Point};
use crate::records::{self, advance};
use crate::rewind::Facts;
use crate::rewind::rollback::{Scope, scope};
use crate::{Engine, Operation, clock, worker};

/// Brings a plan back to a checkpoint: what came later is taken back. The way forward again is a checkpoint, too.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rollback {
    /// The plan's id or its beginning.
    pub plan: String,
    /// The checkpoint's id or its beginning, with or without `cp_`.
    pub checkpoint: String,
    /// Only show what would happen.
    #[serde(default)]
    pub dry_run: bool,
}

/// What a rollback takes back, or would.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct RollbackOutput {
    pub plan_id: PlanId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
    pub rollback_summary: RollbackSummary,
    pub changes_reverted: Vec<RevertedFile>,
    pub impact: RollbackImpact,
    pub post_rollback_state: PostRollbackState,
    /// The checkpoint of the state before: rolling back to it goes forward again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redo_checkpoint: Option<String>,
    pub phase: Phase,
    pub state: State,
    pub awaiting: Option<Awaiting>,
    pub allowed_actions: Vec<AllowedAction>,
}

/// Where it goes.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct RollbackSummary {
    pub plan: PlanId,
    pub checkpoint: String,
    pub label: String,
    pub files_reverted: usize,
}

/// A file that becomes another than it is.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct RevertedFile {
    pub file: String,
    /// `restored` or `removed`.
    pub action: String,
}

/// What falls.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct RollbackImpact {
    pub child_plans_invalidated: usize,
    pub sandbox: String,
    pub decisions_after_cp: String,
    pub tool_calls_after_cp: String,
    pub decision_ids: Vec<DecisionId>,
    pub decisions_after_cp_n: usize,
    pub tool_calls_after_cp_n: usize,
    /// Decisions that stood at the checkpoint and stand again.
    pub decisions_reinstated: usize,
}

/// Where the plan is afterwards.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct PostRollbackState {
    pub phase: Phase,
    pub state: String,
    pub checkpoints_remaining: usize,
}

impl Operation for Rollback {
    const METHOD: &'static str = "plan/rollback";
    const SUMMARY: &'static str = "Bring a plan back to a checkpoint";
    type Output = RollbackOutput;

    fn run(self, engine: &Engine) -> Result<RollbackOutput> {
        let plan = engine.plan(&self.plan)?;
        let id = plan.plan_id;
        let checkpoints = engine.view(|r| r.checkpoints(id))?;
        let at = self.find(engine, &plan, &checkpoints)?;
        refuse(engine, &plan)?;
        refuse_made_anew(&plan, &checkpoints, at)?;
        let checkpoint = &checkpoints[at];
        let facts = || -> Result<Facts> {
            engine.view(|r| Facts::load(r, id))?.ok_or_else(|| crate::lookup::missing_plan(id))
        };
        let facts = facts()?;
        let planned = scope(engine, &facts, checkpoint)?;
        refuse_applied(&planned, &facts)?;
        if self.dry_run {
            return Ok(RollbackOutput {
                dry_run: Some(true),
                ..output(&plan, &planned, &checkpoints, at, None)
            });
        }
        refuse_edits(engine, &plan)?;
        let words = format!("Back to {}: {}", checkpoint.checkpoint_id, checkpoint.label);
        let context_ref = engine.store.put_blob(words.as_bytes())?;
        let state_ref = engine.store.put_blob(b"null")?;
        let (output, cancelled) = engine.write(|w| {
            let mut plan = w.plan(id)?.ok_or_else(|| crate::lookup::missing_plan(id))?;
            if plan.updated_at != facts.plan.updated_at {
                return Err(Error::invalid_state(format!("plan {id} moved on in the meantime; try again"))
                    .suggest(format!("agents plan status {id}")));
            }
            refuse_while_executing(w, plan.root_plan_id)?;
            let redo = way_forward(engine, w, &plan, checkpoint)?;
            advance(engine, w, &mut plan, &Event::Rollback)?;
            let why = format!("its parent went back to {}", checkpoint.checkpoint_id);
            let cancelled = cancel_children(engine, w, &planned.children, &why)?;
            let marker = marker(w, &plan, &words, &context_ref, &state_ref)?;
            w.put_rewind(&rewind_of(id, checkpoint, &planned, marker))?;
            Ok((output(&plan, &planned, &checkpoints, at, redo), cancelled))
        })?;
        for child in &cancelled {
            crate::sandboxes::clean_up(child);
        }
        if !engine.store.is_leased(id)? {
            engine.start_worker(id)?;
        }
        Ok(output)
    }
}

impl Rollback {
    /// Which of the plan's checkpoints is meant.
    fn find(&self, engine: &Engine, plan: &Plan, checkpoints: &[Checkpoint]) -> Result<usize> {
        let found = engine.checkpoint(self.checkpoint.trim())?;
        checkpoints.iter().position(|c| c.checkpoint_id == found.checkpoint_id).ok_or_else(|| {
            Error::validation(format!(
                "checkpoint {} belongs to plan {}, not to {}",
                found.checkpoint_id, found.plan_id, plan.plan_id
            ))
            .suggest(format!("agents plan artifacts {}  # lists the checkpoints", plan.plan_id))
        })
    }
}

/// Refuses what the state machine does not allow, and says how to go on (ruling 9).
fn refuse(engine: &Engine, plan: &Plan) -> Result<()> {
    let id = plan.plan_id;
    machine::step(&plan.status(), &Event::Rollback, &records::context_of(plan), clock::now()).map_err(
        |refusal| {
            let error = Error::from(refusal);
            if plan.state != State::Applied {
                return error;
            }
            error
                .suggest("agents plan correct --mode append --guidance GUIDANCE DECISION_ID")
                .suggest(format!("agents plan revert {id}"))
        },
    )?;
    worker::refuse_half_made(engine, plan)?;
    engine.look(|r| refuse_while_executing(r, plan.root_plan_id))?;
    if engine.view(|r| r.rewind(id))?.is_some() {
        return Err(Error::invalid_state(format!("plan {id} is being taken back already"))
            .suggest(format!("agents plan follow {id}")));
    }
    Ok(())
}

/// A checkpoint of a sandbox that was thrown away since is of another base.
fn refuse_made_anew(plan: &Plan, checkpoints: &[Checkpoint], at: usize) -> Result<()> {
    let of = &checkpoints[at];
    if checkpoints[at + 1..].iter().any(|c| c.kind == CheckpointKind::Base && c.resource_id == of.resource_id)
    {
        return Err(Error::invalid_state(format!(
            "the sandbox of plan {} was made anew after checkpoint {}, from newer files",
            plan.plan_id, of.checkpoint_id
        ))
        .suggest(format!("agents plan artifacts {}  # lists the later checkpoints", plan.plan_id)));
    }
    Ok(())
}

fn refuse_applied(scope: &Scope, facts: &Facts) -> Result<()> {
    let applied =
        facts.family.iter().find(|c| scope.children.contains(&c.plan_id) && c.state == State::Applied);
    match applied {
        Some(child) => Err(Error::invalid_state(format!(
            "child plan {} was started after the checkpoint and is applied; what is applied is not taken back",
            child.plan_id
        ))
        .suggest("agents plan correct --mode append --guidance GUIDANCE DECISION_ID")),
        None => Ok(()),
    }
}

/// A person's edits in the sandbox that no commit has are not overwritten.
fn refuse_edits(engine: &Engine, plan: &Plan) -> Result<()> {
    let edited = worker::edits_in_sandboxes(engine, plan)?;
    if edited.is_empty() {
        return Ok(());
    }
    let mut error = Error::invalid_state(format!(
        "files in the sandbox were edited by hand, and a rollback would overwrite them: {}",
        edited.join(", ")
    ))
    .detail("Copy what you need out of the sandbox, put the files back, and roll back again.");
    for sandbox in &plan.sandboxes {
        let files = edited.join(" ");
        error = error.suggest(format!(
            "git -C {} restore --source={} --worktree -- {files}  # drops the edits",
            sandbox.path, sandbox.commit
        ));
    }
    Err(error.data(json!({ "files": edited })))
}

/// Checkpoints of the state before a rollback, so that one can go forward to it again.
fn way_forward(
    engine: &Engine,
    w: &dyn Writer,
    plan: &Plan,
    to: &Checkpoint,
) -> Result<Option<CheckpointId>> {
    let mut first = None;
    for sandbox in &plan.sandboxes {
        let diff = CheckpointDiff { diff_based: sandbox.commit.clone(), ..CheckpointDiff::default() };
        let point = Point {
            resource_id: sandbox.resource_id,
            kind: CheckpointKind::Manual,
            trigger: None,
            decision: None,
            tool: None,
            label: format!("Before the rollback to {}", to.checkpoint_id),
            commit: None,
            diff,
            stood: None,
        };
        first = first.or(checkpoints::record(engine, w, plan, point)?);
    }
    Ok(first)
}

/// What superseded decisions are superseded by (C-33).
fn marker(w: &dyn Writer, plan: &Plan, words: &str, context_ref: &str, state_ref: &str) -> Result<Decision> {
    let root = w
        .decisions(plan.plan_id)?
        .into_iter()
        .find(|d| d.parent_decision_id.is_none() && d.superseded_by.is_none());
    Ok(Decision {
        decision_id: DecisionId::from_ulid(clock::ulid()),
        plan_id: plan.plan_id,
        parent_decision_id: root.map(|root| root.decision_id),
        sequence_number: 0,
        key: None,
        decision_type: DecisionType::UserIntervention,
        question: "What becomes of the work after the checkpoint?".to_owned(),
        chosen_option: words.to_owned(),
        alternatives: vec![Alternative { option: words.to_owned(), description: None }],
        confidence: None,
        rationale: "A person returned to a checkpoint".to_owned(),
        actor_reasoning: None,
        context: ContextSnapshot {
            hot_context_hash: context_ref.to_owned(),
            hot_context_ref: context_ref.to_owned(),
            relevant_resources: Vec::new(),
            actor_state_ref: state_ref.to_owned(),
        },
        depends_on: Vec::new(),
        pending: false,
        approval: Some(Approval::System),
        artifacts: Vec::new(),
        downstream_plans: Vec::new(),
        corrects_decision_id: None,
        correction_reason: None,
        superseded_by: None,
        created_at: clock::now(),
    })
}

fn rewind_of(plan_id: PlanId, checkpoint: &Checkpoint, scope: &Scope, marker: Decision) -> Rewind {
    let marked = !scope.fallen.is_empty();
    Rewind {
        plan_id,
        cause: RewindCause::Rollback(checkpoint.checkpoint_id),
        resources: scope.resources.clone(),
        recorded: marked.then_some(marker).into_iter().chain(scope.reinstated.clone()).collect(),
        fallen: scope.fallen.clone(),
        undone: scope.undone.clone(),
        rewritten: scope.rewritten.clone(),
        calls: scope.calls.clone(),
        recalled: scope.recalled.clone(),
        spawns: scope.spawns.clone(),
        resume: scope.resume.clone(),
        guidance: None,
        description: None,
    }
}

fn output(
    plan: &Plan,
    scope: &Scope,
    checkpoints: &[Checkpoint],
    at: usize,
    redo: Option<CheckpointId>,
) -> RollbackOutput {
    let checkpoint = &checkpoints[at];
    let file = |(file, there): (&String, &bool)| RevertedFile {
        file: file.clone(),
        action: if *there { "restored" } else { "removed" }.to_owned(),
    };
    RollbackOutput {
        plan_id: plan.plan_id,
        dry_run: None,
        rollback_summary: RollbackSummary {
            plan: plan.plan_id,
            checkpoint: checkpoint.checkpoint_id.to_string(),
            label: checkpoint.label.clone(),
            files_reverted: scope.files.len(),
        },
        changes_reverted: scope.files.iter().map(file).collect(),
        impact: RollbackImpact {
            child_plans_invalidated: scope.children.len(),
            sandbox: format!("restored to {}", checkpoint.checkpoint_id),
            decisions_after_cp: format!("{} discarded", scope.fallen.len()),
            tool_calls_after_cp: format!("{} undone", scope.tool_calls),
            decision_ids: scope.fallen.clone(),
            decisions_after_cp_n: scope.fallen.len(),
            tool_calls_after_cp_n: scope.tool_calls,
            decisions_reinstated: scope.reinstated.len(),
        },
        post_rollback_state: PostRollbackState {
            phase: Phase::Execute,
            state: "queued (awaiting input)".to_owned(),
            checkpoints_remaining: at + 1,
        },
        redo_checkpoint: redo.map(|id| id.to_string()),
        phase: plan.phase,
        state: plan.state,
        awaiting: plan.awaiting.clone(),
        allowed_actions: records::allowed(plan),
    }
}
