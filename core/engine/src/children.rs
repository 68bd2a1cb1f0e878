//! Making child plans: what they take from their parent, and how both are linked.

use agents_domain::action::ActionState;
use agents_domain::decision::{Decision, DecisionType};
use agents_domain::ids::{DecisionId, PlanId};
use agents_domain::plan::children::{Spawn, SpawnDraft, Stage};
use agents_domain::plan::{Phase, Plan, State};
use agents_domain::ports::store::{Reader, StoreResult, Writer};
use agents_domain::profile::ProfileSnapshot;
use agents_domain::{Error, Result};
use serde_json::json;

use crate::operations::plan::{actors_of, check_arguments, prompt_definition, substitute};
use crate::{Engine, clock, records};

/// A child plan that is not written yet.
pub(crate) struct NewChild {
    /// The plan.
    pub plan: Plan,
    root: Decision,
}

/// A decided child plan that there is nothing of yet. `call` tells several under one decision apart.
pub(crate) fn decided(parent: PlanId, decision_id: DecisionId, call: &str, draft: SpawnDraft) -> Spawn {
    Spawn {
        decision_id,
        call: call.to_owned(),
        plan_id: parent,
        draft,
        child: None,
        stage: Stage::Decided,
        approved: false,
        retries: 0,
    }
}

/// How many levels of child plans may still be below a plan.
pub(crate) fn depth_left(engine: &Engine, plan: &Plan) -> Result<u32> {
    let allowed = engine.config.integer("plan.max-child-depth", None);
    let allowed = u32::try_from(allowed).unwrap_or(u32::MAX);
    engine.view(|r| level(r, plan)).map(|level| allowed.saturating_sub(level))
}

/// 1 for a root plan.
fn level(r: &dyn Reader, plan: &Plan) -> StoreResult<u32> {
    let mut level = 1;
    let mut above = plan.parent_plan_id;
    while let Some(id) = above {
        level += 1;
        above = r.plan(id)?.and_then(|p| p.parent_plan_id);
    }
    Ok(level)
}

/// Makes the child plan of a draft: its action, projects, arguments and prompt as the draft says, the rest as the parent
/// has it. Writes blobs only; [`insert`] writes the plan. Refuses what [`insert`] could not carry through.
pub(crate) fn prepare(engine: &Engine, parent: &Plan, draft: &SpawnDraft) -> Result<NewChild> {
    if depth_left(engine, parent)? == 0 {
        return Err(Error::invalid_state(format!(
            "plan {} may have no child plans: `plan.max-child-depth` is {}",
            parent.plan_id,
            engine.config.integer("plan.max-child-depth", None)
        ))
        .suggest("agents config set plan.max-child-depth <LEVELS>"));
    }
    let name = draft.action.as_ref().unwrap_or(&parent.action);
    let own = *name == parent.action;
    let action = engine.view(|r| r.action(name))?.ok_or_else(|| {
        Error::not_found(format!("there is no action `{name}` to make a child plan from"))
            .suggest("agents action list")
    })?;
    // The parent's own action may have been for one use.
    if action.definition.state == ActionState::Archived && !own {
        return Err(Error::invalid_state(format!(
            "action `{name}` is archived: no child plan can be made from it"
        )));
    }
    let mut given: serde_json::Map<String, serde_json::Value> =
        if own { parent.arguments.clone().into_iter().collect() } else { serde_json::Map::new() };
    given.extend(draft.arguments.clone());
    let arguments = check_arguments(&action, given)?;
    let projects = if draft.projects.is_empty() { parent.projects.clone() } else { draft.projects.clone() };
    if let Some(foreign) = projects.iter().find(|p| !parent.projects.contains(p)) {
        return Err(Error::validation(format!(
            "the child plan names project `{foreign}`, which is not one of plan {}: {}",
            parent.plan_id,
            parent.projects.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        )));
    }
    let mut linked = Vec::new();
    for project in &projects {
        linked.extend(engine.project(project)?.resources.into_iter().map(|link| link.resource_id));
    }
    let resources: Vec<_> =
        parent.resources.iter().filter(|r| linked.contains(&r.resource_id)).cloned().collect();
    let definition = &action.definition;
    let description = match &draft.prompt {
        Some(prompt) => prompt.clone(),
        None => substitute("description", &definition.description, &arguments)?,
    };
    let now = clock::now();
    let mut plan = Plan {
        plan_id: PlanId::from_ulid(clock::ulid()),
        parent_plan_id: Some(parent.plan_id),
        root_plan_id: parent.root_plan_id,
        action: name.clone(),
        projects,
        resources,
        description,
        definition_of_done: substitute("definition_of_done", &definition.definition_of_done, &arguments)?,
        arguments,
        actors: if own { parent.actors.clone() } else { actors_of(engine, &action)? },
        profile: ProfileSnapshot { source: "parent plan".to_owned(), ..parent.profile.clone() },
        read_only: parent.read_only || definition.read_only,
        invariants: parent.invariants.clone(),
        subplan: definition.subplan.clone(),
        phase: Phase::Strategize,
        state: State::Queued,
        awaiting: None,
        attempt: 1,
        reversions: 0,
        commanded: false,
        apply_mode: None,
        sandboxes: Vec::new(),
        guidance: Vec::new(),
        failure: None,
        summaries: Default::default(),
        applied: Vec::new(),
        diff_ref: None,
        resumed_from: None,
        tool_calls: 0,
        spending: Default::default(),
        created_by: parent.created_by.clone(),
        created_at: now,
        updated_at: now,
        phase_times: Default::default(),
        cancel_reason: None,
        completed_at: None,
        epoch: 0,
    };
    plan.begin(&records::context_of(&plan), now);
    // A command that started the parent's phase approves what the phase consists of.
    plan.commanded = parent.commanded && parent.phase == Phase::Execute;
    let root = prompt_definition(engine, &plan)?;
    Ok(NewChild { plan, root })
}

/// Writes a child plan with its root decision and the parent's enforced invariants, and links it to the decision of its
/// spawn: impact, `plan` edge and the spawn's row, in the caller's transaction.
pub(crate) fn insert(
    engine: &Engine,
    w: &dyn Writer,
    parent: &Plan,
    spawn: &mut Spawn,
    child: &NewChild,
) -> Result<()> {
    let NewChild { plan, root } = child;
    w.insert_plan(plan)?;
    w.insert_decision(root)?;
    spawn.child = Some(plan.plan_id);
    spawn.stage = Stage::Started;
    w.put_spawn(spawn)?;
    w.add_impact(spawn.decision_id, &[], &[plan.plan_id])?;
    let facts = json!({
        "action_name": plan.action, "project_names": plan.projects,
        "automation_profile": plan.profile.profile.name, "parent_plan_id": parent.plan_id,
    });
    records::emit(engine, w, plan, "plan.created", facts)?;
    records::emit_decision(engine, w, plan, root)?;
    for inherited in w.decisions(parent.plan_id)? {
        if inherited.decision_type != DecisionType::InvariantEnforced || inherited.superseded_by.is_some() {
            continue;
        }
        let own = Decision {
            decision_id: DecisionId::from_ulid(clock::ulid()),
            plan_id: plan.plan_id,
            parent_decision_id: Some(root.decision_id),
            sequence_number: w.next_sequence(plan.plan_id)?,
            depends_on: Vec::new(),
            artifacts: Vec::new(),
            downstream_plans: Vec::new(),
            corrects_decision_id: None,
            correction_reason: None,
            created_at: clock::now(),
            ..inherited
        };
        w.insert_decision(&own)?;
        records::emit_decision(engine, w, plan, &own)?;
    }
    let facts = json!({ "child_plan_id": plan.plan_id, "decision_id": spawn.decision_id, "description": plan.description });
    records::emit(engine, w, parent, "plan.child_spawned", facts)
}
