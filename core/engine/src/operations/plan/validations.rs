//! What a plan's views say of its validations, and the refusal to apply what did not pass.

use std::collections::BTreeMap;

use agents_domain::ids::{AttachmentId, ResourceId};
use agents_domain::plan::{Phase, Plan};
use agents_domain::validation::{Finding, FixAttempt, Mode, PlanValidations, ValidationOutcome};
use agents_domain::{Error, ErrorKind, Result};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{Engine, sandboxes};

/// The validations of a plan.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ValidationView {
    /// The latest run of each.
    pub validation_summary: Vec<Summary>,
    /// By validation, once Execute is complete: whether every run of it passed.
    pub final_validation_results: Option<BTreeMap<String, bool>>,
    /// Runs in all, by attachment.
    pub validation_attempts: BTreeMap<String, u32>,
    pub validation_fix_history: Vec<FixAttempt>,
    /// By short name: `status`, `failures`, counts of tests; `duration_s` of all.
    pub validation: Value,
}

/// A validation as it was last run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Summary {
    pub validation: String,
    pub mode: Mode,
    pub passed: bool,
    pub message: String,
    pub data: Map<String, Value>,
    pub findings: Vec<Finding>,
    /// It could not be run to its end.
    pub error: bool,
    pub duration_ms: u64,
    pub attempt: u32,
    pub attachment_id: AttachmentId,
    pub attachment_resource: ResourceId,
    pub attachment_scope: String,
    pub attachment_scope_target: Option<String>,
}

fn summary(outcome: &ValidationOutcome) -> Summary {
    Summary {
        validation: outcome.validation.to_string(),
        mode: outcome.mode,
        passed: outcome.passed,
        message: outcome.message.clone(),
        data: outcome.data.clone(),
        findings: outcome.findings.clone(),
        error: outcome.error,
        duration_ms: outcome.duration_ms,
        attempt: outcome.attempt,
        attachment_id: outcome.attachment_id,
        attachment_resource: outcome.attachment_resource,
        attachment_scope: outcome.attachment_scope.clone(),
        attachment_scope_target: outcome.attachment_scope_target.clone(),
    }
}

pub(super) fn view(plan: &Plan) -> ValidationView {
    let validations = &plan.validations;
    let finished = plan.phase == Phase::Apply || plan.summaries.contains_key(&Phase::Execute);
    ValidationView {
        validation_summary: validations.outcomes.iter().map(summary).collect(),
        final_validation_results: finished.then(|| validations.results()),
        validation_attempts: validations
            .outcomes
            .iter()
            .map(|o| (o.attachment_id.to_string(), o.attempt))
            .collect(),
        validation_fix_history: validations.fixes.clone(),
        validation: by_name(validations),
    }
}

/// `validation` of `plan apply`: by short name, with `duration_s` of all.
fn by_name(validations: &PlanValidations) -> Value {
    let mut out = Map::new();
    if validations.outcomes.is_empty() {
        return out.into();
    }
    for outcome in &validations.outcomes {
        let mut entry = json!({
            "status": if outcome.passed { "passed" } else { "failed" },
            "mode": outcome.mode,
            "message": outcome.message,
        });
        for key in ["passed", "total"] {
            if let Some(count) = outcome.data.get(key) {
                entry[key] = count.clone();
            }
        }
        if !outcome.passed {
            entry["failures"] = outcome.failures().into();
        }
        let name = outcome.short_name();
        let taken = |n: usize| if n == 1 { name.to_owned() } else { format!("{name}-{n}") };
        let free = (1..).map(taken).find(|key| !out.contains_key(key)).unwrap_or_default();
        out.insert(free, entry);
    }
    let total: u64 = validations.outcomes.iter().map(|o| o.duration_ms).sum();
    out.insert("duration_s".to_owned(), json!((total as f64 / 100.0).round() / 10.0));
    out.into()
}

/// Refuses to apply a plan whose Execute has a required validation that did not pass (APP-004). Whether something is
/// the matter is read from the record: nothing is run here (APP-006).
pub(super) fn refuse_unpassed(engine: &Engine, plan: &Plan) -> Result<()> {
    let failing: Vec<&ValidationOutcome> = plan.validations.blocking().collect();
    if failing.is_empty() || plan.phase != Phase::Execute || plan.status().wants_worker() {
        return Ok(());
    }
    let id = plan.plan_id;
    let diffs = sandboxes::diff(engine, plan)?;
    let checkpoint = engine.view(|r| r.checkpoints(id))?.last().map(|c| c.checkpoint_id.to_string());
    let recovery = [
        format!("agents plan prompt {id} '<GUIDANCE>'"),
        "agents plan correct <DECISION>".to_owned(),
        format!("agents plan rollback {id}"),
        format!("agents plan cancel {id}"),
    ];
    let count = failing.len();
    let plural = if count == 1 { "" } else { "s" };
    let message = format!("Apply refused -- {count} required Execute-phase validation{plural} did not pass");
    let details: Vec<String> = failing
        .iter()
        .flat_map(|o| o.failures().into_iter().take(5).map(|line| format!("{}: {line}", o.validation)))
        .collect();
    let error = Error::new(ErrorKind::InvalidState, message).detail(details.join("\n")).data(json!({
        "plan_id": id,
        "artifacts": diffs.len(),
        "changes": {
            "insertions": diffs.iter().map(|(_, d)| d.insertions).sum::<u32>(),
            "deletions": diffs.iter().map(|(_, d)| d.deletions).sum::<u32>(),
        },
        "project": super::project_text(plan),
        "validation": by_name(&plan.validations),
        "validation_summary": plan.validations.outcomes.iter().map(summary).collect::<Vec<_>>(),
        "sandbox": { "worktree": "preserved", "checkpoint": checkpoint },
        "recovery_options": recovery,
    }));
    Err(recovery.into_iter().fold(error, Error::suggest))
}
