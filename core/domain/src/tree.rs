//! Rules of the decision tree: its active shape, whether it is sound, and what hangs on a decision.
//!
//! Two structures share the decisions: the tree of structural parents, which people see, and the graph of what was
//! decided from what (`depends_on`), which tells what falls with a decision. Rows are never deleted: a replaced
//! decision stays and names what replaced it.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::decision::{Decision, DecisionType, effective_parent};
use crate::ids::{DecisionId, PlanId};
use crate::plan::{Phase, State};

/// The decisions in force, those that wait for a person among them, by sequence number (DEC-018).
pub fn active(decisions: &[Decision]) -> Vec<&Decision> {
    let mut active: Vec<&Decision> = decisions.iter().filter(|d| d.superseded_by.is_none()).collect();
    active.sort_by_key(|d| d.sequence_number);
    active
}

/// The active decisions below each active decision, by sequence number; the root is under `None`.
pub fn children(decisions: &[Decision]) -> HashMap<Option<DecisionId>, Vec<&Decision>> {
    let mut children: HashMap<_, Vec<&Decision>> = HashMap::new();
    for decision in active(decisions) {
        children.entry(effective_parent(decision, decisions)).or_default().push(decision);
    }
    children
}

/// Levels of the active tree: 1 for a root alone, 0 without one.
pub fn depth(decisions: &[Decision]) -> usize {
    let children = children(decisions);
    let mut level: Vec<&Decision> = children.get(&None).cloned().unwrap_or_default();
    let mut depth = 0;
    // Nobody below the root has two parents, so this ends; what is in a cycle is not below the root.
    while !level.is_empty() {
        depth += 1;
        let below = |d: &&Decision| children.get(&Some(d.decision_id)).cloned().unwrap_or_default();
        level = level.iter().flat_map(below).collect();
    }
    depth
}

/// What is wrong with a plan's decisions.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// No active decision is the root.
    #[error("no active decision is the root")]
    NoRoot,
    /// More than one active decision has no parent.
    #[error("{} active decisions have no parent: only the root may", .0.len())]
    SeveralRoots(Vec<DecisionId>),
    /// The root is something else than the prompt.
    #[error("the root {0} is no prompt_definition")]
    RootIsNoPrompt(DecisionId),
    /// An active decision does not hang below the root.
    #[error("decision {0} cannot be reached from the root")]
    Unreachable(DecisionId),
    /// Following parents comes back to the decision.
    #[error("decision {0} is its own ancestor")]
    Cycle(DecisionId),
    /// A decision names one that does not exist in the plan.
    #[error("decision {decision} refers to {missing}, which the plan does not have")]
    Missing {
        /// The one that names.
        decision: DecisionId,
        /// The one that is named.
        missing: DecisionId,
    },
    /// Two decisions have the same number.
    #[error("decisions {0} and {1} have the same sequence number")]
    RepeatedSequence(DecisionId, DecisionId),
    /// A decision has a lower number than one it comes after.
    #[error("decision {later} comes after {earlier} but has no higher sequence number")]
    OutOfOrder {
        /// The one that must have the lower number: a parent, a replaced or a corrected decision.
        earlier: DecisionId,
        /// The one that must have the higher number.
        later: DecisionId,
    },
}

/// Checks the decisions of one plan (DEC-020, DEC-022): one active root, every active decision below it, no cycles,
/// numbers that rise from parent to child and from the replaced to what replaced it.
pub fn validate(decisions: &[Decision]) -> Result<(), Vec<Violation>> {
    let mut violations = Vec::new();
    let by_id: HashMap<DecisionId, &Decision> = decisions.iter().map(|d| (d.decision_id, d)).collect();
    let mut numbers: HashMap<u32, DecisionId> = HashMap::new();
    for decision in decisions {
        let id = decision.decision_id;
        if let Some(other) = numbers.insert(decision.sequence_number, id) {
            violations.push(Violation::RepeatedSequence(other, id));
        }
        let mut ordered = |earlier: DecisionId, later: DecisionId, named: DecisionId| match by_id.get(&named)
        {
            None => violations.push(Violation::Missing { decision: id, missing: named }),
            Some(_) => {
                let number = |id| by_id.get(&id).map(|d: &&Decision| d.sequence_number);
                if number(earlier) >= number(later) {
                    violations.push(Violation::OutOfOrder { earlier, later });
                }
            }
        };
        for earlier in decision.parent_decision_id.iter().chain(&decision.corrects_decision_id) {
            ordered(*earlier, id, *earlier);
        }
        for earlier in &decision.depends_on {
            ordered(*earlier, id, *earlier);
        }
        if let Some(later) = decision.superseded_by {
            ordered(id, later, later);
        }
        if has_cycle(decision, &by_id) {
            violations.push(Violation::Cycle(id));
        }
    }
    check_active(decisions, &mut violations);
    if violations.is_empty() { Ok(()) } else { Err(violations) }
}

fn check_active(decisions: &[Decision], violations: &mut Vec<Violation>) {
    let children = children(decisions);
    let roots = children.get(&None).map_or(&[][..], Vec::as_slice);
    match roots {
        [] => violations.push(Violation::NoRoot),
        [root] if root.decision_type != DecisionType::PromptDefinition => {
            violations.push(Violation::RootIsNoPrompt(root.decision_id));
        }
        [_] => {}
        _ => violations.push(Violation::SeveralRoots(roots.iter().map(|d| d.decision_id).collect())),
    }
    let mut reached: HashSet<DecisionId> = roots.iter().map(|d| d.decision_id).collect();
    let mut queue: VecDeque<DecisionId> = roots.iter().map(|d| d.decision_id).collect();
    while let Some(id) = queue.pop_front() {
        for child in children.get(&Some(id)).map_or(&[][..], Vec::as_slice) {
            if reached.insert(child.decision_id) {
                queue.push_back(child.decision_id);
            }
        }
    }
    let unreached = active(decisions).into_iter().map(|d| d.decision_id).filter(|id| !reached.contains(id));
    violations.extend(unreached.map(Violation::Unreachable));
}

fn has_cycle(decision: &Decision, by_id: &HashMap<DecisionId, &Decision>) -> bool {
    let mut parent = decision.parent_decision_id;
    for _ in 0..by_id.len() {
        match parent {
            None => return false,
            Some(id) if id == decision.decision_id => return true,
            Some(id) => parent = by_id.get(&id).and_then(|d| d.parent_decision_id),
        }
    }
    false
}

/// Why a decision cannot be asked for what hangs on it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTarget {
    /// The plan does not have it.
    #[error("the plan has no decision {0}")]
    Unknown(DecisionId),
    /// It is replaced already.
    #[error("decision {decision} was replaced; what is in force now is {by}")]
    Superseded {
        /// The one that was asked for.
        decision: DecisionId,
        /// What stands in its place now.
        by: DecisionId,
    },
}

impl From<InvalidTarget> for crate::Error {
    fn from(target: InvalidTarget) -> Self {
        match target {
            InvalidTarget::Unknown(_) => Self::not_found(target.to_string()),
            InvalidTarget::Superseded { by, .. } => {
                Self::invalid_state(target.to_string()).suggest(format!("agents plan explain {by}"))
            }
        }
    }
}

/// What falls when a decision does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Affected {
    /// The decision itself and all that hangs on it, by sequence number.
    pub decisions: Vec<DecisionId>,
    /// Child plans that hang on them, with all of theirs, by id.
    pub plans: Vec<PlanId>,
    /// Files they produced, sorted.
    pub artifacts: Vec<String>,
    /// Active decisions that are left alone, by sequence number.
    pub unaffected: Vec<DecisionId>,
}

impl Affected {
    /// How many decisions hang on the target, itself not counted.
    pub fn downstream(&self) -> usize {
        self.decisions.len().saturating_sub(1)
    }
}

/// What falls with a decision (CORR-014): the closure over structural children and over what was decided from it.
///
/// `decisions`: all of the plan. `child_plans`: every (parent, child) pair of plans in the tree, from which come the
/// plans below those that are affected.
pub fn affected(
    target: DecisionId,
    decisions: &[Decision],
    child_plans: &[(PlanId, PlanId)],
) -> Result<Affected, InvalidTarget> {
    check_target(target, decisions)?;
    let edges = influence(decisions);
    let closure = reach([target], |id| edges.get(&id).map_or(&[][..], Vec::as_slice));
    Ok(collect(&closure, decisions, child_plans))
}

/// What falls when a decision of Strategize is taken back while Execute has begun: [`affected`], and every decision of
/// Execute, since all its work is taken back.
pub fn affected_with_execute(
    target: DecisionId,
    decisions: &[Decision],
    child_plans: &[(PlanId, PlanId)],
    made_in_execute: impl Fn(&Decision) -> bool,
) -> Result<Affected, InvalidTarget> {
    let mut closure: HashSet<DecisionId> =
        affected(target, decisions, child_plans)?.decisions.into_iter().collect();
    // Child plans of those outside the closure are kept, to be merged again.
    let plans = collect(&closure, decisions, child_plans).plans;
    closure.extend(active(decisions).into_iter().filter(|d| made_in_execute(d)).map(|d| d.decision_id));
    Ok(Affected { plans, ..collect(&closure, decisions, child_plans) })
}

fn check_target(target: DecisionId, decisions: &[Decision]) -> Result<(), InvalidTarget> {
    match decisions.iter().find(|d| d.decision_id == target) {
        None => Err(InvalidTarget::Unknown(target)),
        Some(decision) if decision.superseded_by.is_some() => Err(InvalidTarget::Superseded {
            decision: target,
            by: stand_in(target, &replacements(decisions)),
        }),
        Some(_) => Ok(()),
    }
}

fn replacements(decisions: &[Decision]) -> HashMap<DecisionId, DecisionId> {
    decisions.iter().filter_map(|d| Some((d.decision_id, d.superseded_by?))).collect()
}

/// What is in force in place of a decision; itself when it was not replaced.
fn stand_in(id: DecisionId, replacements: &HashMap<DecisionId, DecisionId>) -> DecisionId {
    let mut id = id;
    // No chain is longer than there are replacements, unless the data is damaged.
    for _ in 0..=replacements.len() {
        match replacements.get(&id) {
            Some(by) => id = *by,
            None => break,
        }
    }
    id
}

/// From each active decision to the active ones that fall with it.
fn influence(decisions: &[Decision]) -> HashMap<DecisionId, Vec<DecisionId>> {
    let replacements = replacements(decisions);
    let mut edges: HashMap<DecisionId, Vec<DecisionId>> = HashMap::new();
    for decision in active(decisions) {
        let id = decision.decision_id;
        // What was recorded below or from a proposal hangs on the answer that replaced it.
        let named = decision.parent_decision_id.iter().chain(&decision.depends_on);
        let upstream = effective_parent(decision, decisions)
            .into_iter()
            .chain(named.map(|named| stand_in(*named, &replacements)))
            .filter(|upstream| *upstream != id);
        for upstream in upstream {
            edges.entry(upstream).or_default().push(id);
        }
    }
    edges
}

fn reach<'a, T: Copy + Eq + std::hash::Hash + 'a>(
    start: impl IntoIterator<Item = T>,
    next: impl Fn(T) -> &'a [T],
) -> HashSet<T> {
    let mut seen: HashSet<T> = start.into_iter().collect();
    let mut queue: VecDeque<T> = seen.iter().copied().collect();
    while let Some(item) = queue.pop_front() {
        for below in next(item) {
            if seen.insert(*below) {
                queue.push_back(*below);
            }
        }
    }
    seen
}

fn collect(
    closure: &HashSet<DecisionId>,
    decisions: &[Decision],
    child_plans: &[(PlanId, PlanId)],
) -> Affected {
    let (fall, stay): (Vec<&Decision>, Vec<&Decision>) =
        active(decisions).into_iter().partition(|d| closure.contains(&d.decision_id));
    let mut below: HashMap<PlanId, Vec<PlanId>> = HashMap::new();
    for (parent, child) in child_plans {
        below.entry(*parent).or_default().push(*child);
    }
    let direct = fall.iter().flat_map(|d| d.downstream_plans.iter().copied());
    let plans: BTreeSet<PlanId> =
        reach(direct, |id| below.get(&id).map_or(&[][..], Vec::as_slice)).into_iter().collect();
    let artifacts: BTreeSet<String> = fall.iter().flat_map(|d| d.artifacts.iter().cloned()).collect();
    Affected {
        decisions: fall.iter().map(|d| d.decision_id).collect(),
        plans: plans.into_iter().collect(),
        artifacts: artifacts.into_iter().collect(),
        unaffected: stay.iter().map(|d| d.decision_id).collect(),
    }
}

/// How much a correction would undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names say it")]
pub enum CorrectionImpact {
    Low,
    Medium,
    High,
}

/// How much a correction would undo (DEC-033), from the decisions that hang on the target and where the affected child
/// plans stand.
pub fn correction_impact(downstream: usize, child_plans: &[(Phase, State)]) -> CorrectionImpact {
    let begun = |plan: &(Phase, State)| *plan != (Phase::Strategize, State::Queued);
    if downstream >= 4 || child_plans.iter().any(begun) {
        CorrectionImpact::High
    } else if downstream <= 1 && child_plans.is_empty() {
        CorrectionImpact::Low
    } else {
        CorrectionImpact::Medium
    }
}

/// A part of the tree that is decided again, and the rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Subtree {
    /// The node and everything structurally below it, level by level.
    pub recomputed: Vec<DecisionId>,
    /// Every other active decision, by sequence number.
    pub preserved: Vec<DecisionId>,
}

/// Splits the active tree at a node, by structure alone (CORR-028); what was decided from a decision is [`affected`].
pub fn recompute_subtree(node: DecisionId, decisions: &[Decision]) -> Result<Subtree, InvalidTarget> {
    check_target(node, decisions)?;
    let children = children(decisions);
    let mut seen = HashSet::from([node]);
    let mut recomputed = vec![node];
    let mut next = 0;
    while let Some(id) = recomputed.get(next).copied() {
        next += 1;
        for child in children.get(&Some(id)).map_or(&[][..], Vec::as_slice) {
            if seen.insert(child.decision_id) {
                recomputed.push(child.decision_id);
            }
        }
    }
    let preserved =
        active(decisions).into_iter().map(|d| d.decision_id).filter(|id| !seen.contains(id)).collect();
    Ok(Subtree { recomputed, preserved })
}

#[cfg(test)]
mod tests;
