//! Making child plans: what they take from their parent, and how both are linked.

use agents_domain::action::ActionState;
use agents_domain::decision::{Decision, DecisionType};
use agents_domain::ids::{DecisionId, PlanId};
use agents_domain::plan::children::{Spawn, SpawnDraft, Stage};
use agents_domain::plan::machine::Event;
use agents_domain::plan::{Phase, Plan, State};
use agents_domain::ports::actor::{KnownChild, ParentContext};
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
        given_up: false,
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
    let action = engine.view(|r| crate::built_in::action(r, name))?.ok_or_else(|| {
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
        validations: agents_domain::validation::PlanValidations::default(),
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

/// What a child plan's actor is told of the parent: the decisions above its spawn, and of the others the share that
/// `context.budget.skeleton-ratio` leaves, the most general first.
pub(crate) fn parent_context(engine: &Engine, plan: &Plan) -> Result<Option<ParentContext>> {
    let Some(parent) = plan.parent_plan_id else { return Ok(None) };
    let (parent, decisions, spawn) =
        engine.view(|r| Ok((r.plan(parent)?, r.decisions(parent)?, r.spawn_of(plan.plan_id)?)))?;
    let Some(parent) = parent else { return Ok(None) };
    let project = parent.projects.first().map(ToString::to_string);
    let ratio = engine.config.get("context.budget.skeleton-ratio", project.as_deref()).as_text();
    let ratio: f64 = ratio.parse().unwrap_or(0.0);
    let active: Vec<&Decision> = decisions.iter().filter(|d| d.superseded_by.is_none()).collect();
    let chain = |from: DecisionId| {
        let above = |id: &DecisionId| decisions.iter().find(|d| d.decision_id == *id)?.parent_decision_id;
        std::iter::successors(Some(from), above).take(decisions.len() + 1).collect::<Vec<_>>()
    };
    let mut kept = spawn.as_ref().map(|s| chain(s.decision_id)).unwrap_or_default();
    // Truncation is right: a share of a small number.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a ratio of a count is one")]
    let share = (ratio * active.len() as f64).ceil() as usize;
    let mut others: Vec<(usize, &&Decision)> = active
        .iter()
        .filter(|d| !kept.contains(&d.decision_id) && d.decision_type != DecisionType::InvariantEnforced)
        .map(|d| (chain(d.decision_id).len(), d))
        .collect();
    others.sort_by_key(|(depth, d)| (*depth, d.sequence_number));
    kept.extend(others.into_iter().take(share).map(|(_, d)| d.decision_id));
    let skeleton = active.into_iter().filter(|d| kept.contains(&d.decision_id));
    Ok(Some(ParentContext {
        plan_id: parent.plan_id,
        description: parent.description,
        decisions: skeleton.map(crate::worker::known).collect(),
        target_files: spawn.map(|s| s.draft.target_files).unwrap_or_default(),
    }))
}

/// The child plans of a plan as its actor sees them.
pub(crate) fn known(engine: &Engine, plan: &Plan) -> Result<Vec<KnownChild>> {
    if plan.phase != Phase::Execute {
        return Ok(Vec::new());
    }
    let (spawns, decisions) = engine.view(|r| Ok((r.spawns(plan.plan_id)?, r.decisions(plan.plan_id)?)))?;
    let mut known = Vec::with_capacity(spawns.len());
    for spawn in spawns {
        let Some(decision) = standing(&spawn, &decisions) else { continue };
        let child = spawn.child.map(|id| engine.view(|r| r.plan(id))).transpose()?.flatten();
        known.push(KnownChild {
            plan_id: spawn.child,
            key: decision.key.clone(),
            state: child.as_ref().map_or_else(|| "skipped".to_owned(), |c| c.status().describe()),
            headline: child.and_then(|c| c.summaries.get(&Phase::Execute).map(|s| s.headline.clone())),
        });
    }
    Ok(known)
}

/// The decision in force for a spawn: its own, or a person's answer that took the same option.
pub(crate) fn standing<'d>(spawn: &Spawn, decisions: &'d [Decision]) -> Option<&'d Decision> {
    let own = decisions.iter().find(|d| d.decision_id == spawn.decision_id)?;
    if own.superseded_by.is_none() {
        return Some(own);
    }
    let answer = records::by_key(decisions, own.key.as_deref()?)?;
    let same =
        answer.decision_type == DecisionType::UserIntervention && answer.chosen_option == own.chosen_option;
    same.then_some(answer)
}

/// Refuses to apply a child before those it builds on (APP-014).
pub(crate) fn check_apply_order(engine: &Engine, plan: &Plan) -> Result<()> {
    if plan.parent_plan_id.is_none() {
        return Ok(());
    }
    let Some(earlier) = engine.view(|r| crate::worker::unapplied_before(r, plan))? else { return Ok(()) };
    let ids = earlier.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut error = Error::invalid_state(format!(
        "plan {} builds on child plans that are not applied yet: {}",
        plan.plan_id,
        ids.join(", ")
    ));
    for id in ids {
        error = error.suggest(format!("agents plan apply {id}"));
    }
    Err(error)
}

/// What else is applied with a plan: the children it took in, and a parent of which nothing else is left.
pub(crate) fn applied(engine: &Engine, w: &dyn Writer, plan: &Plan) -> Result<()> {
    with_it(engine, w, plan)?;
    let Some(mut parent) = plan.parent_plan_id.map(|id| w.plan(id)).transpose()?.flatten() else {
        return Ok(());
    };
    if (parent.phase, parent.state) != (Phase::Execute, State::Complete) {
        return Ok(());
    }
    let spawns = w.spawns(parent.plan_id)?;
    let rows = w.child_rows(parent.plan_id)?;
    let left = rows.iter().any(|row| !matches!(row.state, State::Applied | State::Cancelled));
    let merged =
        |id: &PlanId| spawns.iter().any(|s| s.child == Some(*id) && matches!(s.stage, Stage::Merged { .. }));
    let own = w.changes(parent.plan_id)?.iter().any(|change| {
        // Work of its own, or of a child further down that was not applied by itself.
        let owner = w.decision(change.decision_id).ok().flatten().map(|d| d.plan_id);
        owner.is_none_or(|owner| !rows.iter().any(|row| row.plan_id == owner && row.state == State::Applied))
    });
    if !left && !own && rows.iter().any(|row| merged(&row.plan_id)) {
        records::advance(engine, w, &mut parent, &Event::Apply { no_commit: false })?;
    }
    Ok(())
}

fn with_it(engine: &Engine, w: &dyn Writer, plan: &Plan) -> Result<()> {
    for spawn in w.spawns(plan.plan_id)? {
        let Stage::Merged { .. } = spawn.stage else { continue };
        let Some(mut child) = spawn.child.map(|id| w.plan(id)).transpose()?.flatten() else { continue };
        if (child.phase, child.state) != (Phase::Execute, State::Complete) {
            continue;
        }
        for event in [Event::Apply { no_commit: false }, Event::WorkerTook, Event::ApplyCommitted] {
            records::advance(engine, w, &mut child, &event)?;
        }
        with_it(engine, w, &child)?;
    }
    Ok(())
}

/// Removes the sandboxes of the applied plans below a plan.
pub(crate) fn clean_up(engine: &Engine, plan: PlanId) -> Result<()> {
    for row in engine.view(|r| r.child_rows(plan))? {
        clean_up(engine, row.plan_id)?;
        if row.state == State::Applied
            && let Some(child) = engine.view(|r| r.plan(row.plan_id))?
        {
            crate::sandboxes::clean_up(&child);
        }
    }
    Ok(())
}
