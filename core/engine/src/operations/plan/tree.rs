//! `plan tree`: the decisions of a plan as they hang on each other.

use std::collections::{BTreeMap, HashMap};

use agents_domain::Result;
use agents_domain::decision::{Decision, DecisionStatus, effective_parent};
use agents_domain::ids::{DecisionId, PlanId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::child_plans::{ChildPlan, Children};
use crate::{Engine, Operation};

/// Shows the decisions of a plan as a tree.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tree {
    /// The plan's id or its beginning.
    pub plan: String,
    /// Show replaced decisions too.
    #[serde(default)]
    pub show_superseded: bool,
}

/// The tree.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct TreeOutput {
    pub plan_id: PlanId,
    pub tree: Option<TreeNode>,
    pub summary: TreeSummary,
    pub child_plans: Vec<ChildPlan>,
    /// Label to id, for scripts.
    pub decision_ids: BTreeMap<String, DecisionId>,
}

/// A decision in the tree.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct TreeNode {
    #[serde(rename = "type")]
    pub decision_type: String,
    pub description: String,
    pub decision_id: DecisionId,
    pub sequence: u32,
    pub status: DecisionStatus,
    pub question: String,
    pub chosen: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<DecisionId>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<DecisionId>,
    pub artifacts: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plan_ids: Vec<PlanId>,
    pub children: Vec<TreeNode>,
}

/// Counts.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct TreeSummary {
    pub nodes: usize,
    pub depth: usize,
    pub child_plans: usize,
    pub invariants: usize,
    pub superseded: usize,
    pub pending: usize,
}

impl Operation for Tree {
    const METHOD: &'static str = "plan/tree";
    const SUMMARY: &'static str = "Show a plan's decisions as a tree";
    type Output = TreeOutput;

    fn run(self, engine: &Engine) -> Result<TreeOutput> {
        let id = engine.plan_id(&self.plan)?;
        let (decisions, children_of) = engine.view(|r| Ok((r.decisions(id)?, Children::of(r, id)?)))?;
        let shown: Vec<&Decision> =
            decisions.iter().filter(|d| self.show_superseded || d.superseded_by.is_none()).collect();
        let mut children: HashMap<Option<DecisionId>, Vec<&Decision>> = HashMap::new();
        for decision in &shown {
            // With the replaced ones shown, each hangs where it was recorded.
            let parent = if self.show_superseded {
                decision.parent_decision_id
            } else {
                effective_parent(decision, &decisions)
            };
            children.entry(parent).or_default().push(decision);
        }
        let mut summary = TreeSummary {
            nodes: shown.len(),
            superseded: decisions.iter().filter(|d| d.superseded_by.is_some()).count(),
            pending: decisions.iter().filter(|d| d.status() == DecisionStatus::Pending).count(),
            invariants: shown.iter().filter(|d| d.decision_type.as_str() == "invariant_enforced").count(),
            child_plans: children_of.total,
            ..TreeSummary::default()
        };
        let roots = children.remove(&None).unwrap_or_default();
        let tree = roots.first().map(|root| node(root, &mut children, 1, &mut summary.depth));
        let decision_ids = shown
            .iter()
            .map(|d| (format!("{}_{}", d.decision_type.as_str(), d.sequence_number), d.decision_id))
            .collect();
        Ok(TreeOutput { plan_id: id, tree, summary, child_plans: children_of.list, decision_ids })
    }
}

fn node(
    decision: &Decision,
    children: &mut HashMap<Option<DecisionId>, Vec<&Decision>>,
    level: usize,
    depth: &mut usize,
) -> TreeNode {
    *depth = (*depth).max(level);
    // Taken out, so that damaged data with a cycle cannot make this loop.
    let below = children.remove(&Some(decision.decision_id)).unwrap_or_default();
    TreeNode {
        decision_type: decision.decision_type.as_str().to_owned(),
        description: describe(decision),
        decision_id: decision.decision_id,
        sequence: decision.sequence_number,
        status: decision.status(),
        question: decision.question.clone(),
        chosen: decision.chosen_option.clone(),
        confidence: decision.confidence,
        superseded_by: decision.superseded_by,
        depends_on: decision.depends_on.clone(),
        artifacts: decision.artifacts.clone(),
        plan_ids: decision.downstream_plans.clone(),
        children: below.into_iter().map(|child| node(child, children, level + 1, depth)).collect(),
    }
}

/// One line: for the root what is asked, else the question with its answer.
fn describe(decision: &Decision) -> String {
    if decision.parent_decision_id.is_none() {
        return first_line(&decision.chosen_option);
    }
    format!("{} -> {}", first_line(&decision.question), first_line(&decision.chosen_option))
}

pub(super) fn first_line(text: &str) -> String {
    text.lines().find(|l| !l.trim().is_empty()).unwrap_or_default().trim().to_owned()
}
