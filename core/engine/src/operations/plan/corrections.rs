//! The corrections of a decision: by whom, when, why, and what became of them; and how to correct it now.

use agents_domain::Result;
use agents_domain::correction::{CorrectionAttempt, CorrectionMode, CorrectionState};
use agents_domain::decision::Decision;
use agents_domain::ids::{CorrectionId, DecisionId, PlanId};
use agents_domain::plan::Plan;
use agents_domain::plan::machine::Verb;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{Engine, records};

/// A correction that a decision was part of.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct CorrectionMade {
    pub correction_attempt_id: CorrectionId,
    /// `corrected`, `made` by it, or `fell` with what was corrected.
    pub role: String,
    pub mode: CorrectionMode,
    pub by: String,
    pub at: String,
    pub guidance: String,
    pub original_decision: DecisionId,
    pub new_decision: DecisionId,
    /// What is decided by it: an option, or the words.
    pub chosen: Option<String>,
    pub state: CorrectionState,
    /// Why it failed.
    pub failure: Option<String>,
    pub decisions_invalidated: usize,
    pub child_plan: Option<PlanId>,
    pub diff_command: String,
}

/// The corrections a decision was part of, in the order asked for.
pub(super) fn about(engine: &Engine, decision: &Decision) -> Result<Vec<CorrectionMade>> {
    let id = decision.decision_id;
    engine.look(|r| {
        let mut found = Vec::new();
        for attempt in r.corrections(decision.plan_id)? {
            let role = match &attempt {
                a if a.original_decision_id == id => "corrected",
                a if a.new_decision_id == id => "made",
                a if a.affected.contains(&id) => "fell",
                _ => continue,
            };
            let chosen = r.decision(attempt.new_decision_id)?.map(|new| new.chosen_option);
            found.push(view(attempt, role, chosen));
        }
        Ok(found)
    })
}

fn view(attempt: CorrectionAttempt, role: &str, chosen: Option<String>) -> CorrectionMade {
    CorrectionMade {
        correction_attempt_id: attempt.correction_id,
        role: role.to_owned(),
        mode: attempt.mode,
        by: attempt.created_by,
        at: attempt.created_at.seconds_rfc3339(),
        guidance: attempt.guidance,
        original_decision: attempt.original_decision_id,
        new_decision: attempt.new_decision_id,
        chosen,
        state: attempt.state,
        failure: attempt.failure,
        decisions_invalidated: attempt.affected.len(),
        child_plan: attempt.child_plan_id,
        diff_command: format!("agents plan diff --correction {}", attempt.correction_id),
    }
}

/// The command that changes a decision as its plan stands; none for what is not in force.
pub(super) fn hint(plan: &Plan, decision: &Decision) -> Option<String> {
    let id = decision.decision_id;
    if decision.superseded_by.is_some() {
        return None;
    }
    if decision.pending {
        return Some(format!("agents plan prompt {} <NUMBER, OPTION OR GUIDANCE>", plan.plan_id));
    }
    let correct = records::allowed(plan).into_iter().find(|action| action.verb == Verb::Correct)?;
    let mode = if correct.command.contains("--mode append") { "append" } else { "revert" };
    let others: Vec<usize> = decision
        .alternatives
        .iter()
        .enumerate()
        .filter(|(_, other)| other.option != decision.chosen_option)
        .map(|(at, _)| at + 1)
        .collect();
    let guidance = match (mode, others.as_slice()) {
        ("revert", [at]) => at.to_string(),
        _ => "GUIDANCE".to_owned(),
    };
    Some(format!("agents plan correct --mode {mode} --guidance {guidance} {id}"))
}
