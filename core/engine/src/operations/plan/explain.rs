//! `plan explain` and the decisions that wait.

use agents_domain::decision::{Approval, Decision, DecisionStatus, DecisionType, ResourceRef};
use agents_domain::ids::{DecisionId, InvariantId, PlanId};
use agents_domain::invariant::{self, Check};
use agents_domain::plan::gates::ComputedConfidence;
use agents_domain::{Result, tree};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::child_plans::family;
use super::corrections::{self, CorrectionMade};
use crate::invariants::{self, Escalation};
use crate::{Engine, Operation};

/// Explains a decision.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Explain {
    /// The decision's id or its beginning.
    pub decision: String,
    /// Show what it was made from.
    #[serde(default)]
    pub show_context: bool,
    /// Show the actor's own reasoning.
    #[serde(default)]
    pub show_reasoning: bool,
}

/// A decision in full.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ExplainOutput {
    pub decision_id: DecisionId,
    #[serde(rename = "type")]
    pub decision_type: DecisionType,
    pub question: String,
    pub chosen: String,
    pub choice: String,
    pub confidence: Option<f64>,
    pub confidence_score: Option<f64>,
    /// What the engine computed when the decision was made, with each factor; `null` where people or the engine decided.
    pub computed_confidence: Option<ComputedConfidence>,
    /// The threshold it was compared with, and how it passed or did not.
    pub gate: GateView,
    pub plan_id: PlanId,
    pub plan_action: String,
    /// Its rank among the active decisions: `2 of 5`.
    pub sequence: String,
    pub sequence_number: u32,
    pub status: DecisionStatus,
    pub superseded_by: Option<DecisionId>,
    pub created: String,
    pub alternatives: Vec<AlternativeView>,
    pub alternatives_count: usize,
    pub depends_on: Vec<DecisionId>,
    pub parent_decision_id: Option<DecisionId>,
    pub impact: Impact,
    pub resources: Vec<ResourceRef>,
    pub rationale: String,
    /// For an invariant: what becomes of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invariant: Option<InvariantView>,
    /// The invariant that made a person approve it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub escalation_reason: Option<Escalation>,
    /// The command that changes it, where there is one.
    pub correction_hint: Option<String>,
    /// What was corrected about it, the first first: this decision, one it fell with, or the one it replaced.
    pub corrections: Vec<CorrectionMade>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_snapshot: Option<ContextView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_reasoning: Option<String>,
}

/// An invariant as it is enforced.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct InvariantView {
    pub id: Option<InvariantId>,
    pub text: String,
    /// `machine`, or `actors` when its sentence has no form that a machine can check.
    pub enforced_by: String,
    /// What the machine checks.
    pub check: Option<Check>,
}

/// How a decision met its profile.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct GateView {
    pub flag: Option<String>,
    pub threshold: Option<f64>,
    pub approval: Option<Approval>,
    pub profile: String,
}

/// An option.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct AlternativeView {
    pub index: usize,
    pub option: String,
    pub description: String,
    pub chosen: bool,
}

/// What hangs on it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Impact {
    pub downstream_decisions: usize,
    pub downstream_child_plans: usize,
    pub artifacts_produced: usize,
    pub artifacts: Vec<String>,
    pub correction_impact: tree::CorrectionImpact,
}

/// What it was made from.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ContextView {
    pub items: Vec<String>,
    pub hot_context_hash: String,
    pub actor_state_ref: String,
    /// What the actor checked before it decided, where it said so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub validation_performed: Vec<Value>,
    /// The stored document, or `null` when the blob is gone.
    pub document: Value,
}

impl Operation for Explain {
    const METHOD: &'static str = "plan/explain";
    const SUMMARY: &'static str = "Explain a decision";
    type Output = ExplainOutput;

    fn run(self, engine: &Engine) -> Result<ExplainOutput> {
        let decision = engine.decision(&self.decision)?;
        let plan = engine.plan(&decision.plan_id.to_string())?;
        let (all, confidences, family) = engine.view(|r| {
            Ok((
                r.decisions(decision.plan_id)?,
                r.confidences(decision.plan_id)?,
                family(r, decision.plan_id)?,
            ))
        })?;
        let computed_confidence =
            confidences.into_iter().find(|(id, _)| *id == decision.decision_id).map(|(_, computed)| computed);
        let pairs: Vec<_> = family.iter().map(|(child, parent)| (*parent, child.plan_id)).collect();
        let active: Vec<&Decision> = all.iter().filter(|d| d.superseded_by.is_none()).collect();
        let rank = active.iter().position(|d| d.decision_id == decision.decision_id);
        // Nothing hangs on a replaced decision any more.
        let (downstream, child_plans) = tree::affected(decision.decision_id, &all, &pairs)
            .map_or((0, Vec::new()), |affected| (affected.downstream(), affected.plans));
        let begun: Vec<_> = family
            .iter()
            .filter(|(child, _)| child_plans.contains(&child.plan_id))
            .map(|(child, _)| (child.phase, child.state))
            .collect();
        let flag = decision.decision_type.gate();
        let context_snapshot = match self.show_context {
            false => None,
            true => Some(context_view(engine, &decision)?),
        };
        Ok(ExplainOutput {
            decision_id: decision.decision_id,
            decision_type: decision.decision_type,
            chosen: decision.chosen_option.clone(),
            choice: decision.chosen_option.clone(),
            confidence: decision.confidence,
            confidence_score: decision.confidence,
            computed_confidence,
            gate: GateView {
                flag: flag.map(|gate| gate.flag().to_owned()),
                threshold: flag.map(|gate| plan.profile.profile.thresholds.of(gate)),
                approval: decision.approval,
                profile: plan.profile.profile.name.clone(),
            },
            plan_id: decision.plan_id,
            plan_action: plan.action.to_string(),
            sequence: match rank {
                Some(rank) => format!("{} of {}", rank + 1, active.len()),
                None => format!("superseded ({} active)", active.len()),
            },
            sequence_number: decision.sequence_number,
            status: decision.status(),
            superseded_by: decision.superseded_by,
            created: decision.created_at.seconds_rfc3339(),
            alternatives: decision
                .alternatives
                .iter()
                .enumerate()
                .map(|(at, alternative)| AlternativeView {
                    index: at + 1,
                    option: alternative.option.clone(),
                    description: alternative
                        .description
                        .clone()
                        .unwrap_or_else(|| alternative.option.clone()),
                    chosen: alternative.option == decision.chosen_option,
                })
                .collect(),
            alternatives_count: decision.alternatives.len(),
            depends_on: decision.depends_on.clone(),
            parent_decision_id: decision.parent_decision_id,
            impact: Impact {
                downstream_decisions: downstream,
                downstream_child_plans: child_plans.len(),
                artifacts_produced: decision.artifacts.len(),
                artifacts: decision.artifacts.clone(),
                correction_impact: tree::correction_impact(downstream, &begun),
            },
            resources: decision.context.relevant_resources.clone(),
            rationale: decision.rationale.clone(),
            invariant: (decision.decision_type == DecisionType::InvariantEnforced).then(|| {
                let check = invariant::extract(&decision.chosen_option);
                InvariantView {
                    id: invariant::of_key(decision.key.as_deref()),
                    text: decision.chosen_option.clone(),
                    enforced_by: invariant::enforced_by(check.as_ref()).to_owned(),
                    check,
                }
            }),
            escalation_reason: invariants::escalation(&plan, &decision, &all),
            correction_hint: corrections::hint(&plan, &decision),
            corrections: corrections::about(engine, &decision)?,
            context_snapshot,
            model_reasoning: self
                .show_reasoning
                .then(|| decision.actor_reasoning.clone().unwrap_or_default()),
            question: decision.question,
        })
    }
}

fn context_view(engine: &Engine, decision: &Decision) -> Result<ContextView> {
    let context = &decision.context;
    let document = engine
        .store
        .blob(&context.hot_context_ref)?
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or(Value::Null);
    Ok(ContextView {
        items: context
            .relevant_resources
            .iter()
            .map(|r| match r.range {
                Some(range) => format!("{}:{}", r.path, range.start.line + 1),
                None => r.path.clone(),
            })
            .collect(),
        hot_context_hash: context.hot_context_hash.clone(),
        actor_state_ref: context.actor_state_ref.clone(),
        validation_performed: document
            .get("validation_performed")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default(),
        document,
    })
}

/// Lists the decisions that wait for a person.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pending {
    /// Only those of this plan (id or its beginning).
    #[serde(default)]
    pub plan: Option<String>,
}

/// The decisions that wait, oldest first.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PendingOutput {
    /// The decisions.
    pub decisions: Vec<PendingDecision>,
}

/// A decision that waits.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct PendingDecision {
    pub decision_id: DecisionId,
    pub plan_id: PlanId,
    pub question: String,
    pub proposed: String,
    pub options: Vec<AlternativeView>,
    pub confidence: Option<f64>,
    pub rationale: String,
    pub resources: Vec<ResourceRef>,
}

impl Operation for Pending {
    const METHOD: &'static str = "plan/pending";
    const SUMMARY: &'static str = "List the decisions that wait for a person";
    type Output = PendingOutput;

    fn run(self, engine: &Engine) -> Result<PendingOutput> {
        let only = self.plan.as_deref().map(|text| engine.plan_id(text)).transpose()?;
        let decisions = engine.view(|r| r.pending_decisions())?;
        Ok(PendingOutput {
            decisions: decisions
                .into_iter()
                .filter(|d| only.is_none_or(|plan| plan == d.plan_id))
                .map(|d| PendingDecision {
                    decision_id: d.decision_id,
                    plan_id: d.plan_id,
                    question: d.question,
                    options: d
                        .alternatives
                        .iter()
                        .enumerate()
                        .map(|(at, a)| AlternativeView {
                            index: at + 1,
                            option: a.option.clone(),
                            description: a.description.clone().unwrap_or_else(|| a.option.clone()),
                            chosen: a.option == d.chosen_option,
                        })
                        .collect(),
                    proposed: d.chosen_option,
                    confidence: d.confidence,
                    rationale: d.rationale,
                    resources: d.context.relevant_resources,
                })
                .collect(),
        })
    }
}
