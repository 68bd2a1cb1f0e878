//! How sure the engine is of a decision, computed from what is on record (never from the clock or chance).

use std::collections::BTreeSet;

use agents_domain::Result;
use agents_domain::decision::{Decision, DecisionType};
use agents_domain::failure::FailurePattern;
use agents_domain::plan::Plan;
use agents_domain::plan::gates::{ComputedConfidence, Factors, computed_confidence};
use agents_domain::ports::actor::DecisionDraft;
use agents_domain::ports::store::{ActionHistory, Reader};

/// Shapes of failures that are looked at.
pub(crate) const PATTERNS: usize = 200;

/// From this many files on a decision is as broad as can be.
const BROAD: f64 = 20.0;

/// The confidence of a decision that is about to be recorded.
pub(crate) fn of_draft(
    r: &dyn Reader,
    plan: &Plan,
    draft: &DecisionDraft,
    known: &[Decision],
) -> Result<ComputedConfidence> {
    let files: BTreeSet<_> = draft.resources.iter().map(|at| (at.resource_id, at.path.as_str())).collect();
    let record = r.track_record(plan.plan_id, draft.decision_type, &draft.key)?;
    let enforced = known
        .iter()
        .filter(|d| d.superseded_by.is_none() && d.decision_type == DecisionType::InvariantEnforced)
        .count();
    let paths: Vec<&str> = files.iter().map(|(_, path)| *path).collect();
    let failed = worst(&r.failure_patterns(PATTERNS)?, draft.decision_type, &paths);
    Ok(computed_confidence(&Factors {
        past_success_rate: (record.all > 0).then(|| succession(record.stood, record.all)),
        codebase_familiarity: familiarity(r, plan, &files)?,
        risk_assessment: Some(risk(draft.decision_type, files.len())),
        invariant_complexity: Some(complexity(enforced)),
        actor_confidence: draft.confidence,
        known_failures: failed,
    }))
}

/// The confidence a plan starts with: from what became of its action's plans; neutral before the first has ended.
pub(crate) fn of_start(history: &ActionHistory, invariants: usize) -> ComputedConfidence {
    let ended = history.applied + history.errored;
    if ended == 0 {
        return computed_confidence(&Factors::default());
    }
    computed_confidence(&Factors {
        past_success_rate: Some(succession(history.applied, ended)),
        invariant_complexity: Some(complexity(invariants)),
        // Strategize changes nothing.
        risk_assessment: Some(0.1),
        ..Factors::default()
    })
}

/// How likely it goes well after `stood` of `all` did: one of one is no certainty.
fn succession(stood: u32, all: u32) -> f64 {
    (f64::from(stood) + 1.0) / (f64::from(all) + 2.0)
}

/// From 0.5 for files that no applied plan has changed to 1.0 for files that all were.
fn familiarity(
    r: &dyn Reader,
    plan: &Plan,
    files: &BTreeSet<(agents_domain::ids::ResourceId, &str)>,
) -> Result<Option<f64>> {
    if files.is_empty() {
        return Ok(None);
    }
    let mut familiar = 0u32;
    for (resource, path) in files {
        let mut changed = r.changes_of_path(*resource, path)?.into_iter().map(|c| c.plan_id);
        familiar += u32::from(changed.any(|of| of != plan.plan_id));
    }
    Ok(Some(0.5 + 0.5 * f64::from(familiar) / files.len() as f64))
}

/// By the kind of decision, and by how many files it touches.
fn risk(kind: DecisionType, files: usize) -> f64 {
    let of_kind = match kind {
        DecisionType::SubplanSpawn | DecisionType::SubplanParallelSpawn => 0.4,
        DecisionType::ErrorRecovery | DecisionType::ValidationResponse | DecisionType::ToolInvocation => 0.3,
        _ => 0.1,
    };
    (files as f64 / BROAD).min(1.0).max(of_kind)
}

/// 0.0 for nothing to keep to; 0.5 for five invariants.
fn complexity(invariants: usize) -> f64 {
    let n = invariants as f64;
    n / (n + 5.0)
}

/// The weight of the pattern that most often failed, of those that concern the decision.
fn worst(patterns: &[FailurePattern], kind: DecisionType, paths: &[&str]) -> Option<f64> {
    patterns.iter().filter(|p| p.concerns(kind, paths)).map(FailurePattern::weight).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    // T06: what has no history is asked about by a profile that goes by confidence.
    #[test]
    fn a_plan_starts_neutral_until_one_of_its_action_has_ended() {
        assert_eq!(of_start(&ActionHistory::default(), 0).score, 0.5);
        let well = ActionHistory { applied: 3, ..ActionHistory::default() };
        let badly = ActionHistory { errored: 3, ..ActionHistory::default() };
        assert!(of_start(&well, 0).score > of_start(&badly, 0).score);
        assert!(of_start(&well, 0).score > of_start(&well, 9).score);
    }
}
