//! What may refuse a revert, and what it would do, worked out without changing anything.

use agents_domain::checkpoint::Tier;
use agents_domain::decision::{Decision, DecisionType};
use agents_domain::plan::State;
use agents_domain::plan::machine::{self, Event};
use agents_domain::ports::store::Reader;
use agents_domain::{Error, ErrorKind, Result, invariant, tree};

use super::cost::{self, Again};
use super::{CorrectOutput, InvalidatedDecision, WouldRevert, refuse_while_executing};
use crate::operations::plan::prompt::option_meant;
use crate::records;
use crate::rewind::correction::{Scope, refuse_applied_children, scope};
use crate::rewind::{self, Facts};
use crate::{Engine, clock, worker};

/// A revert as it would be carried out.
pub(super) struct Planned {
    pub scope: Scope,
    pub chosen: String,
    /// The guidance is one of the options.
    pub option: bool,
    /// The target, an invariant, goes without a replacement.
    pub removes: bool,
    pub again: Again,
}

/// Everything that may refuse a revert, in the order of the rules; changes nothing.
pub(super) fn check(
    engine: &Engine,
    r: &dyn Reader,
    facts: &Facts,
    target: &Decision,
    guidance: &str,
) -> Result<Planned> {
    let plan = &facts.plan;
    tree::affected(target.decision_id, &facts.decisions, &[])?;
    let context = records::context_of(plan);
    let phase = rewind::made_in(engine, target, &facts.decisions)?;
    let append = format!("agents plan correct --mode append --guidance GUIDANCE {}", target.decision_id);
    let event = Event::CorrectRevert { target_phase: phase };
    machine::step(&plan.status(), &event, &context, clock::now()).map_err(|refusal| {
        let applied = plan.state == State::Applied || context.committed;
        let error = Error::from(refusal);
        if applied { error.suggest(append.clone()) } else { error }
    })?;
    let is_invariant = target.decision_type == DecisionType::InvariantEnforced;
    let plain = is_invariant || target.decision_type == DecisionType::PromptDefinition;
    let asked = Some(records::awaiting_decision(plan, target)).filter(|_| !plain);
    let option = option_meant(guidance, asked.as_ref())?;
    let chosen = option.clone().unwrap_or_else(|| guidance.to_owned());
    if chosen == target.chosen_option && !target.pending {
        return Err(Error::validation(format!(
            "`{}` is what decision {} says already",
            target.chosen_option, target.decision_id
        ))
        .suggest(format!("agents plan explain {}  # lists the options", target.decision_id)));
    }
    let removes = is_invariant
        && guidance.split_whitespace().next().is_some_and(|word| word.eq_ignore_ascii_case("remove"));
    if let Some(problem) = invariant::problem(guidance).filter(|_| is_invariant && !removes) {
        return Err(Error::validation(format!("the invariant cannot be read: {problem}")));
    }
    let mut scope = scope(engine, r, facts, target)?;
    refuse_applied_children(&scope, target)?;
    if scope.tier == Tier::None {
        return Err(Error::invalid_state(format!(
            "nothing of plan {} can be taken back: its resources have no sandbox",
            plan.plan_id
        ))
        .suggest(append));
    }
    if removes {
        scope.warnings.push(format!(
            "Invariant “{}” does not hold in this plan any more; other plans keep it",
            target.chosen_option
        ));
    }
    let again = cost::again(engine, r, facts, &scope)?;
    Ok(Planned { chosen, option: option.is_some(), scope, removes, again })
}

/// What a revert would do. What could never be done is refused here, too; what cannot be done now is said.
pub(super) fn preview(engine: &Engine, target: &Decision, guidance: &str) -> Result<CorrectOutput> {
    let id = target.plan_id;
    let facts = engine.view(|r| Facts::load(r, id))?.ok_or_else(|| crate::lookup::missing_plan(id))?;
    let plan = &facts.plan;
    let free = engine
        .look(|r| refuse_while_executing(r, plan.root_plan_id))
        .and_then(|()| worker::refuse_half_made(engine, plan));
    let checked = engine.look(|r| check(engine, r, &facts, target, guidance));
    let (scope, again, refused) = match (checked, free) {
        (Err(error), _) if error.kind == ErrorKind::ValidationFailed => return Err(error),
        (Ok(planned), free) => (planned.scope, planned.again, free.err()),
        (Err(error), _) => {
            // What would be taken back is shown all the same, where it can be told.
            let shown = engine.look(|r| {
                let scope = scope(engine, r, &facts, target)?;
                let again = cost::again(engine, r, &facts, &scope)?;
                Ok((scope, again))
            });
            match shown {
                Ok((scope, again)) => (scope, again, Some(error)),
                Err(_) => return Err(error),
            }
        }
    };
    let label = |d: &Decision| InvalidatedDecision {
        id: d.decision_id,
        decision_type: d.decision_type,
        label: crate::operations::plan::tree::first_line(&d.chosen_option),
        overlaps: scope.overlapped.contains(&d.decision_id),
    };
    Ok(CorrectOutput {
        dry_run: Some(true),
        would_revert: Some(WouldRevert {
            decisions_to_invalidate: scope
                .fallen
                .iter()
                .filter_map(|id| facts.decision(*id))
                .map(label)
                .collect(),
            child_plans_to_roll_back: scope.children.len(),
            artifacts_to_archive: scope.artifacts.len(),
            unaffected_decisions: scope.unaffected,
            child_plan_ids: scope.children.iter().map(|c| c.plan_id).collect(),
            artifacts: scope.artifacts.clone(),
        }),
        estimated_recompute_time_seconds: Some(again.seconds()),
        estimated_cost: Some(again.view()),
        tier: Some(scope.tier),
        rejected: Some(refused.is_some()),
        reason: refused.as_ref().map(|error| error.message.clone()),
        suggestions: refused.map(|error| error.suggestions).unwrap_or_default(),
        warnings: scope.warnings,
        ..CorrectOutput::at(plan)
    })
}
