//! `plan correct`: another answer to a decision, and everything that hangs on it again.

mod check;
mod cost;
mod revert;

use agents_domain::checkpoint::Tier;
use agents_domain::correction::CorrectionMode;
use agents_domain::decision::DecisionType;
use agents_domain::ids::{CorrectionId, DecisionId, PlanId};
use agents_domain::plan::machine::AllowedAction;
use agents_domain::plan::{Awaiting, Phase, Plan, State};
use agents_domain::ports::store::Reader;
use agents_domain::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::words_of;
pub(super) use revert::cancel_children;

use crate::records;
use crate::{Engine, Operation};

/// Corrects a decision: takes back what hangs on it and decides that anew, or adds work to it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Correct {
    /// The decision's id or its beginning.
    pub decision: String,
    /// `revert` replaces it, `append` adds a child plan to it.
    pub mode: CorrectionMode,
    /// The number of an option, its text, or guidance in one's own words.
    pub guidance: String,
    /// Only show what would happen.
    #[serde(default)]
    pub dry_run: bool,
}

/// What a correction does, or would do.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct CorrectOutput {
    pub plan_id: PlanId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correction: Option<CorrectionView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affected_subtree: Option<AffectedSubtree>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox_rollback: Option<SandboxRollback>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recompute: Option<Recompute>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub append_detail: Option<AppendDetail>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued: Option<Queued>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub would_revert: Option<WouldRevert>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_cost: Option<EstimatedCost>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_recompute_time_seconds: Option<u64>,
    /// How finely work can be taken back here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// The correction would be refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected: Option<bool>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What helps against that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<String>,
    pub warnings: Vec<String>,
    pub phase: Phase,
    pub state: State,
    pub awaiting: Option<Awaiting>,
    pub allowed_actions: Vec<AllowedAction>,
}

/// The correction itself.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct CorrectionView {
    pub mode: CorrectionMode,
    pub impact: String,
    pub new_decision: DecisionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrects: Option<DecisionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub appended_after: Option<DecisionId>,
    pub attempt: u32,
    pub correction_attempt_id: CorrectionId,
    /// What is decided now: an option, or the words.
    pub chosen: String,
}

/// What falls and what stays.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct AffectedSubtree {
    pub decisions_invalidated: usize,
    pub child_plans_rolled_back: usize,
    pub artifacts_archived: usize,
    pub unaffected_decisions: usize,
    pub decision_ids: Vec<DecisionId>,
    pub child_plan_ids: Vec<PlanId>,
    pub artifacts: Vec<String>,
}

/// What becomes of the sandbox.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct SandboxRollback {
    /// The latest checkpoint before the first write that is taken back.
    pub checkpoint: Option<String>,
    pub files_reverted: usize,
    /// `none`: nothing was written; `queued`: the worker does it; `restored`; `failed`.
    pub status: String,
}

/// What is done again.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Recompute {
    pub queued: String,
    pub eta: String,
    pub eta_s: u64,
}

/// What an appended correction leaves as it is.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct AppendDetail {
    pub original_decision_preserved: bool,
    pub existing_artifacts_kept: bool,
    pub additional_work: String,
    pub note: String,
}

/// What an appended correction starts.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Queued {
    pub new_child: u32,
    pub eta: String,
    pub child_plan_id: PlanId,
}

/// What a revert would take back.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct WouldRevert {
    pub decisions_to_invalidate: Vec<InvalidatedDecision>,
    pub child_plans_to_roll_back: usize,
    pub artifacts_to_archive: usize,
    pub unaffected_decisions: usize,
    pub child_plan_ids: Vec<PlanId>,
    pub artifacts: Vec<String>,
}

/// A decision that would fall.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct InvalidatedDecision {
    pub id: DecisionId,
    #[serde(rename = "type")]
    pub decision_type: DecisionType,
    pub label: String,
    /// It falls only because it wrote over the same lines.
    pub overlaps: bool,
}

/// What doing it again would cost, from what it cost so far.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct EstimatedCost {
    pub re_strategize: String,
    pub re_execute: String,
    pub total: String,
    pub total_usd: f64,
    pub eta: String,
    /// Steps of actors that are made again.
    pub steps: u32,
    /// Tool calls that are carried out again.
    pub tool_calls: usize,
    /// Tokens of models, both ways.
    pub tokens: u64,
}

impl Operation for Correct {
    const METHOD: &'static str = "plan/correct";
    const SUMMARY: &'static str = "Correct a decision and do again what hangs on it";
    type Output = CorrectOutput;

    fn run(self, engine: &Engine) -> Result<CorrectOutput> {
        let guidance = self.checked_guidance()?;
        let target = engine.decision(&self.decision)?;
        match (self.mode, self.dry_run) {
            (CorrectionMode::Revert, true) => check::preview(engine, &target, &guidance),
            (CorrectionMode::Revert, false) => revert::revert(engine, &target, &guidance),
            (CorrectionMode::Append, dry_run) => super::append::append(engine, &target, &guidance, dry_run),
        }
    }
}

impl Correct {
    fn checked_guidance(&self) -> Result<String> {
        let text = words_of("guidance", &self.guidance)?;
        if text.is_empty() {
            return Err(Error::validation("the guidance is empty: say what shall be decided instead")
                .suggest(format!("agents plan explain {}  # lists the options", self.decision)));
        }
        Ok(text.to_owned())
    }
}

impl CorrectOutput {
    /// Of a plan as it stands, with nothing said about the correction yet.
    pub(super) fn at(plan: &Plan) -> Self {
        Self {
            plan_id: plan.plan_id,
            dry_run: None,
            correction: None,
            affected_subtree: None,
            sandbox_rollback: None,
            recompute: None,
            history: Vec::new(),
            append_detail: None,
            queued: None,
            would_revert: None,
            estimated_cost: None,
            estimated_recompute_time_seconds: None,
            tier: None,
            rejected: None,
            reason: None,
            suggestions: Vec::new(),
            warnings: Vec::new(),
            phase: plan.phase,
            state: plan.state,
            awaiting: plan.awaiting.clone(),
            allowed_actions: records::allowed(plan),
        }
    }
}

/// Another correction of the same tree of plans is under way: being taken back, or worked on.
///
/// To be asked in the transaction that records one: two commands at the same time must not both find that there is none.
pub(super) fn refuse_while_executing(r: &dyn Reader, root: PlanId) -> Result<()> {
    for attempt in r.executing_corrections(root)? {
        let (plan, rewinds) = (r.plan(attempt.plan_id)?, r.rewind(attempt.plan_id)?);
        if rewinds.is_some() || plan.is_some_and(|plan| plan.status().wants_worker()) {
            return Err(Error::invalid_state(format!(
                "correction {} of plan {} is still being carried out: correct again when the plan pauses",
                attempt.correction_id, attempt.plan_id
            ))
            .suggest(format!("agents plan follow {}", attempt.plan_id)));
        }
    }
    Ok(())
}

/// `1 decision`, `2 decisions`.
pub(super) fn counted(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// `45s`, `4m`.
pub(super) fn duration_text(seconds: u64) -> String {
    if seconds < 90 { format!("{seconds}s") } else { format!("{}m", seconds.div_ceil(60)) }
}
