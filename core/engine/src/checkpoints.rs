//! Recording checkpoints: when one is made without being asked, what it says, how many are kept, how far they reach.

use std::collections::{BTreeMap, HashSet};

use agents_domain::checkpoint::{
    self, Checkpoint, CheckpointDiff, CheckpointKind, SandboxAt, Tier, TierVerdict, Touched, Trigger, tier,
};
use agents_domain::correction::CheckpointMark;
use agents_domain::ids::{CheckpointId, DecisionId, ResourceId};
use agents_domain::plan::Plan;
use agents_domain::ports::store::{Reader, StoreResult, Writer};
use agents_domain::profile::Safety;
use agents_domain::resource::{SandboxStrategy, resource_type};
use agents_domain::{Error, Result};
use agents_sandbox::{GroupError, restore_group};
use serde_json::json;

use crate::records::emit;
use crate::rewind::standing;
use crate::sandboxes::{OpenSandbox, commit_id, display_name};
use crate::{Engine, clock};

fn project(plan: &Plan) -> Option<String> {
    plan.projects.first().map(ToString::to_string)
}

/// Whether checkpoints are made at all.
pub(crate) fn enabled(engine: &Engine, plan: &Plan) -> bool {
    engine.config.boolean("sandbox.checkpoint.enabled", project(plan).as_deref())
}

/// Refuses a plan whose profile wants checkpoints where they are switched off.
pub(crate) fn refuse_unkept_promise(engine: &Engine, safety: &Safety, project: Option<&str>) -> Result<()> {
    if !safety.require_checkpoints || engine.config.boolean("sandbox.checkpoint.enabled", project) {
        return Ok(());
    }
    Err(Error::validation(
        "the automation profile requires checkpoints, and sandbox.checkpoint.enabled is false".to_owned(),
    )
    .suggest("agents config set sandbox.checkpoint.enabled true")
    .suggest("use a profile whose safety.require_checkpoints is false, such as full-auto"))
}

/// Whether this makes a checkpoint for the plan.
pub(crate) fn triggered(engine: &Engine, plan: &Plan, trigger: Trigger) -> bool {
    let on = engine.config.list("sandbox.checkpoint.auto-create-on", project(plan).as_deref());
    enabled(engine, plan) && on.iter().any(|word| word == trigger.as_str())
}

/// What a new checkpoint is about.
pub(crate) struct Point<'a> {
    pub resource_id: ResourceId,
    pub kind: CheckpointKind,
    /// What made it, when nobody asked.
    pub trigger: Option<Trigger>,
    pub decision: Option<DecisionId>,
    pub tool: Option<&'a str>,
    pub label: String,
    /// The commit, when it is not where the plan says the sandbox is.
    pub commit: Option<&'a str>,
    pub diff: CheckpointDiff,
    /// What stands at it, when that is not what stands now.
    pub stood: Option<CheckpointMark>,
}

/// Records a checkpoint of one sandbox within the caller's transaction, then takes away what is too many.
pub(crate) fn record(
    engine: &Engine,
    w: &dyn Writer,
    plan: &Plan,
    point: Point<'_>,
) -> Result<Option<CheckpointId>> {
    let mut sandboxes: Vec<SandboxAt> = plan
        .sandboxes
        .iter()
        .map(|s| SandboxAt { resource_id: s.resource_id, commit: s.commit.clone() })
        .collect();
    let Some(own) = sandboxes.iter_mut().find(|at| at.resource_id == point.resource_id) else {
        return Ok(None);
    };
    if let Some(commit) = point.commit {
        commit.clone_into(&mut own.commit);
    }
    let commit = own.commit.clone();
    let checkpoint = Checkpoint {
        checkpoint_id: CheckpointId::from_ulid(clock::ulid()),
        plan_id: plan.plan_id,
        decision_id: point.decision,
        resource_id: point.resource_id,
        kind: point.kind,
        label: point.label,
        commit,
        phase: plan.phase,
        source_tool: point.tool.map(str::to_owned),
        diff: point.diff,
        sandboxes,
        created_at: clock::now(),
    };
    w.insert_checkpoint(&checkpoint)?;
    let facts = json!({
        "checkpoint_id": checkpoint.checkpoint_id, "checkpoint_type": checkpoint.kind,
        "resource_id": checkpoint.resource_id, "trigger": point.trigger, "decision_id": checkpoint.decision_id,
    });
    emit(engine, w, plan, "checkpoint.created", facts)?;
    let stood = match point.stood {
        Some(stood) => stood,
        None => standing(engine, w, plan)?,
    };
    w.put_checkpoint_mark(checkpoint.checkpoint_id, &stood)?;
    prune(engine, w, plan)?;
    Ok(Some(checkpoint.checkpoint_id))
}

/// Keeps to `sandbox.checkpoint.max-per-plan`; says which decisions can no longer be taken back by themselves.
pub(crate) fn prune(engine: &Engine, w: &dyn Writer, plan: &Plan) -> Result<()> {
    let most = engine.config.integer("sandbox.checkpoint.max-per-plan", None).max(1);
    let all = w.checkpoints(plan.plan_id)?;
    if all.len() <= usize::try_from(most).unwrap_or(usize::MAX) {
        return Ok(());
    }
    let active: HashSet<DecisionId> = w
        .decisions(plan.plan_id)?
        .into_iter()
        .filter(|d| d.superseded_by.is_none())
        .map(|d| d.decision_id)
        .collect();
    let pruned = checkpoint::prune(&all, usize::try_from(most).unwrap_or(usize::MAX), &active);
    for id in &pruned.remove {
        w.delete_checkpoint(*id)?;
    }
    let tier = if pruned.lost.is_empty() { Tier::Full } else { Tier::Phase };
    let facts = json!({
        "removed": pruned.remove, "limit": most, "tier": tier, "decisions_without_checkpoint": pruned.lost,
    });
    emit(engine, w, plan, "checkpoint.pruned", facts)
}

/// What lies between two commits of a sandbox. A checkpoint is worth having without it.
pub(crate) fn measure(sandbox: &OpenSandbox, from: &str, to: &str) -> CheckpointDiff {
    let measured = commit_id(from).and_then(|from| Ok((from, commit_id(to)?))).and_then(|(from, to)| {
        agents_sandbox::checkpoint_diff(sandbox.worktree().repository(), &from, &to)
            .map_err(crate::sandboxes::sandbox_error)
    });
    measured.unwrap_or_else(|error| {
        tracing::warn!(%error, "a checkpoint was not measured");
        CheckpointDiff { diff_based: from.to_owned(), ..CheckpointDiff::default() }
    })
}

/// Records the state of every sandbox, under the decision that a child plan is started for or for a failure.
pub(crate) fn record_all(
    engine: &Engine,
    w: &dyn Writer,
    plan: &Plan,
    trigger: Trigger,
    decision: Option<DecisionId>,
    label: &str,
) -> Result<()> {
    if !triggered(engine, plan, trigger) {
        return Ok(());
    }
    for sandbox in &plan.sandboxes {
        let diff = CheckpointDiff { diff_based: sandbox.commit.clone(), ..CheckpointDiff::default() };
        let point = Point {
            resource_id: sandbox.resource_id,
            kind: trigger.kind(),
            trigger: Some(trigger),
            decision,
            tool: None,
            label: label.to_owned(),
            commit: None,
            diff,
            stood: None,
        };
        record(engine, w, plan, point)?;
    }
    Ok(())
}

/// How far the work under these decisions can be taken back; `None` asks about all work of the plan.
pub(crate) fn tier_of(
    engine: &Engine,
    r: &dyn Reader,
    plan: &Plan,
    decisions: Option<&HashSet<DecisionId>>,
) -> StoreResult<TierVerdict> {
    let mut wrote: BTreeMap<ResourceId, HashSet<DecisionId>> = BTreeMap::new();
    for change in r.changes(plan.plan_id)? {
        if decisions.is_none_or(|wanted| wanted.contains(&change.decision_id)) {
            wrote.entry(change.resource_id).or_default().insert(change.decision_id);
        }
    }
    let checkpoints = r.checkpoints(plan.plan_id)?;
    let mut touched = Vec::with_capacity(wrote.len());
    for (resource_id, writers) in wrote {
        let resource = r.resource(resource_id)?;
        let kept = writers.iter().all(|decision| {
            checkpoint::group_starts(&checkpoints, *decision).iter().any(|at| at.resource_id == resource_id)
        });
        touched.push(Touched {
            name: resource.as_ref().map_or_else(|| resource_id.to_string(), display_name),
            strategy: resource
                .and_then(|resource| resource_type(&resource.resource_type))
                .map_or(SandboxStrategy::None, |kind| kind.strategy),
            checkpoints_kept: kept,
        });
    }
    Ok(tier(enabled(engine, plan), &touched))
}

/// Brings the sandboxes to these commits, all or none; resources that are not named stay as they are.
pub(crate) fn restore(sandboxes: &[OpenSandbox], at: &[SandboxAt]) -> Result<()> {
    let mut targets = Vec::with_capacity(at.len());
    for wanted in at {
        let sandbox = sandboxes.iter().find(|s| s.resource_id == wanted.resource_id).ok_or_else(|| {
            Error::not_found(format!("the plan has no sandbox of resource {}", wanted.resource_id))
        })?;
        targets.push((sandbox.worktree(), commit_id(&wanted.commit)?));
    }
    let targets: Vec<_> = targets.iter().map(|(worktree, commit)| (*worktree, commit)).collect();
    restore_group(&targets).map_err(|error| match error {
        GroupError::Unknown { .. } => Error::not_found(error.to_string()),
        GroupError::Failed { .. } | GroupError::Stuck { .. } => Error::invalid_state(error.to_string()),
    })
}

impl Engine {
    /// The checkpoint of an id or the beginning of one, with or without `cp_`.
    pub(crate) fn checkpoint(&self, text: &str) -> Result<Checkpoint> {
        let missing = || {
            Error::not_found(format!("there is no checkpoint `{text}`"))
                .suggest("agents plan artifacts <PLAN>")
        };
        let bare = text.strip_prefix(CheckpointId::PREFIX).unwrap_or(text);
        let id: CheckpointId =
            self.starting("checkpoint", bare, "agents plan artifacts <PLAN>", |r, prefix, limit| {
                r.checkpoints_starting(prefix, limit)
            })?;
        self.view(|r| r.checkpoint(id))?.ok_or_else(missing)
    }
}
