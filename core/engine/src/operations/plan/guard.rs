//! `plan guard`: what a plan may do without asking, what it has used, and what would ask next.

use agents_domain::Result;
use agents_domain::ids::PlanId;
use agents_domain::plan::gates::{NEUTRAL_CONFIDENCE, phase_gate};
use agents_domain::plan::guards::{Call, Limit, Measure, Scope, ToolFacts, Verdict, check};
use agents_domain::plan::machine::Context;
use agents_domain::plan::{Phase, Plan, State};
use agents_domain::profile::{Gate, Guards, Safety};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::worker::guarding;
use crate::{Engine, Operation, records, tools};

/// Shows what guards a plan: its locked profile, its budgets, and what would ask a person next.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Guard {
    /// The plan's id or its beginning.
    pub plan: String,
}

/// What guards a plan.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct GuardOutput {
    pub plan_id: PlanId,
    pub phase: Phase,
    pub state: State,
    pub scope: Scope,
    pub profile: String,
    /// The level that named the profile.
    pub source: String,
    pub read_only: bool,
    /// Whatever a tool writes can be taken back: checkpoints are made, and the profile lets nothing else write.
    pub rollback_enabled: bool,
    /// The computed confidence of the phase: the least of its open decisions.
    pub confidence: f64,
    pub gates: Vec<GateState>,
    pub safety: Safety,
    pub guards: Guards,
    pub budgets: Vec<Budget>,
    pub tools: Vec<ToolState>,
    pub reversions: Reversions,
    /// What would ask a person next, as far as can be said now.
    pub next: Vec<String>,
}

/// A threshold, and what it would say now.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct GateState {
    pub flag: String,
    pub gates: String,
    pub threshold: f64,
    /// `automatic`, `asks`, or `by_confidence` for a gate that compares the confidence of each decision.
    pub outcome: String,
}

/// A limit with what is left of it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Budget {
    pub measure: Measure,
    pub flag: String,
    pub limit: f64,
    pub used: f64,
    pub left: f64,
    /// A person let the plan go over the limit it was made with.
    pub extended: bool,
}

/// A tool, and what the guards would say to a call of it now.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ToolState {
    #[serde(flatten)]
    pub facts: ToolFacts,
    /// `runs`, `asks` or `blocked`.
    pub outcome: String,
    pub reason: Option<String>,
}

/// Automatic returns to Strategize.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Reversions {
    pub used: u32,
    pub limit: u32,
}

impl Operation for Guard {
    const METHOD: &'static str = "plan/guard";
    const SUMMARY: &'static str = "Show what a plan may do without asking, and what it has used";
    type Output = GuardOutput;

    fn run(self, engine: &Engine) -> Result<GuardOutput> {
        let plan = engine.plan(&self.plan)?;
        let (confidence, limits) = engine.look(|r| {
            let run = r.actor_run(plan.plan_id, plan.phase)?;
            let step_calls = run.as_ref().map_or(0, guarding::step_calls);
            Ok((records::phase_confidence(r, &plan)?, guarding::limits(engine, r, &plan, step_calls)?))
        })?;
        let confidence = confidence.unwrap_or(NEUTRAL_CONFIDENCE);
        let profile = &plan.profile.profile;
        let gates: Vec<GateState> = Gate::ALL.iter().map(|gate| state_of(&plan, *gate, confidence)).collect();
        let tools: Vec<ToolState> =
            tools::all().iter().map(|tool| tool_state(&plan, &tool.facts, &limits)).collect();
        let reversions = Reversions { used: plan.reversions, limit: Context::of(&plan).reversion_cap };
        Ok(GuardOutput {
            plan_id: plan.plan_id,
            phase: plan.phase,
            state: plan.state,
            scope: guarding::scope(&plan),
            profile: profile.name.clone(),
            source: plan.profile.source.clone(),
            read_only: plan.read_only,
            rollback_enabled: profile.safety.require_checkpoints
                && crate::checkpoints::enabled(engine, &plan),
            confidence,
            next: next(&plan, &gates, &tools),
            safety: profile.safety.clone(),
            guards: profile.guards.clone(),
            budgets: limits
                .into_iter()
                .map(|limit| Budget {
                    left: limit.left(),
                    extended: plan.spending.extended.contains_key(&limit.measure),
                    measure: limit.measure,
                    flag: limit.flag,
                    limit: limit.limit,
                    used: limit.used,
                })
                .collect(),
            gates,
            tools,
            reversions,
        })
    }
}

fn state_of(plan: &Plan, gate: Gate, confidence: f64) -> GateState {
    let thresholds = &plan.profile.profile.thresholds;
    let threshold = thresholds.of(gate);
    let of_decisions = matches!(gate, Gate::StrategyDecision | Gate::ExecutionDecision);
    let outcome = match phase_gate(thresholds, gate, confidence).passes() {
        _ if of_decisions && threshold > 0.0 && threshold < 1.0 => "by_confidence",
        true => "automatic",
        false => "asks",
    };
    GateState {
        flag: gate.flag().to_owned(),
        gates: gate.meaning().to_owned(),
        threshold,
        outcome: outcome.to_owned(),
    }
}

fn tool_state(plan: &Plan, facts: &ToolFacts, limits: &[Limit]) -> ToolState {
    // Every sandbox begins with a checkpoint, so there is one whenever a tool runs.
    let call = Call { limits, scope: guarding::scope(plan), approved: false, checkpointed: true };
    let verdict = check(&plan.profile.profile, facts, &call);
    let (outcome, reason) = match verdict {
        _ if !facts.capability.read_only && plan.read_only => {
            ("blocked", Some("the plan is read-only".to_owned()))
        }
        Verdict::Allowed => ("runs", None),
        Verdict::Blocked { reason, .. } => ("blocked", Some(reason)),
        Verdict::Ask { reason, .. } => ("asks", Some(reason)),
        Verdict::Exceeded(limit) => ("asks", Some(format!("{} is used up", limit.describe(call.scope)))),
    };
    ToolState { facts: facts.clone(), outcome: outcome.to_owned(), reason }
}

/// What would ask next, on the plan's way from where it stands.
fn next(plan: &Plan, gates: &[GateState], tools: &[ToolState]) -> Vec<String> {
    if plan.status().ended() {
        return Vec::new();
    }
    if let Some(awaiting) = &plan.awaiting {
        return vec![format!("now: {}", awaiting.question)];
    }
    let way: &[Gate] = match plan.phase {
        Phase::Strategize => {
            &[Gate::StrategyDecision, Gate::AutoExecute, Gate::ExecutionDecision, Gate::AutoApply]
        }
        Phase::Execute => &[Gate::ExecutionDecision, Gate::AutoApply],
        Phase::Apply => &[Gate::ApplyReversion],
    };
    let mut next: Vec<String> = way
        .iter()
        .filter_map(|gate| gates.iter().find(|state| state.flag == gate.flag()))
        .filter(|state| state.outcome != "automatic")
        .map(|state| match state.outcome.as_str() {
            "by_confidence" => {
                format!("{} below confidence {} ({})", state.gates, state.threshold, state.flag)
            }
            _ => format!("{} ({})", state.gates, state.flag),
        })
        .collect();
    if plan.phase != Phase::Apply {
        next.extend(tools.iter().filter(|t| t.outcome == "asks").filter_map(|t| t.reason.clone()));
        let guards = &plan.profile.profile.guards;
        let applies = gates.iter().any(|g| g.flag == Gate::AutoApply.flag() && g.outcome == "automatic");
        if guards.require_approval_for_apply && applies {
            next.push("go from Execute to Apply (require_approval_for_apply)".to_owned());
        }
    }
    next
}
