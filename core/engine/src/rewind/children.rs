//! Child plans when their parent is taken back: whose work is taken in again, and what is only decided once more.

use std::collections::{BTreeMap, BTreeSet};

use agents_domain::changes::Change;
use agents_domain::decision::Decision;
use agents_domain::ids::{ChangeId, DecisionId, PlanId};
use agents_domain::plan::State;
use agents_domain::plan::children::{Spawn, Stage};
use agents_domain::ports::store::{Reader, StoreResult};

use super::Facts;
use crate::children::standing;
use crate::worker::{MERGE, MERGE_KEY};

/// Which standing writes came from which child plan.
pub(super) fn taken_in(r: &dyn Reader, facts: &Facts) -> StoreResult<BTreeMap<ChangeId, PlanId>> {
    let mut by_decision: BTreeMap<DecisionId, Option<PlanId>> = BTreeMap::new();
    let mut found = BTreeMap::new();
    for change in facts.changes.iter().filter(|c| c.tool == MERGE) {
        let child = match by_decision.get(&change.decision_id) {
            Some(known) => *known,
            None => {
                let child = match facts.decision(change.decision_id) {
                    Some(own) => behind_own(facts, own),
                    None => r.decision(change.decision_id)?.and_then(|d| direct_child(facts, d.plan_id)),
                };
                by_decision.insert(change.decision_id, child);
                child
            }
        };
        if let Some(child) = child {
            found.insert(change.change_id, child);
        }
    }
    Ok(found)
}

/// The child whose conflicts a decision is about.
fn conflict_of(decision: &Decision) -> Option<PlanId> {
    decision.key.as_deref()?.strip_prefix(MERGE_KEY)?.split('/').next()?.parse().ok()
}

/// The child that a decision of the parent's own is about: its spawn, or what shall stand where both changed a place.
fn behind_own(facts: &Facts, decision: &Decision) -> Option<PlanId> {
    if let Some(child) = conflict_of(decision) {
        return Some(child);
    }
    let spawned = |spawn: &&Spawn| {
        spawn.decision_id == decision.decision_id
            || standing(spawn, &facts.decisions).is_some_and(|d| d.decision_id == decision.decision_id)
    };
    facts.spawns.iter().find(spawned)?.child
}

/// The plan right below the parent that a plan further down belongs to.
fn direct_child(facts: &Facts, plan: PlanId) -> Option<PlanId> {
    let mut plan = plan;
    for _ in 0..=facts.family.len() {
        let above = facts.family.iter().find(|row| row.plan_id == plan)?.parent_plan_id?;
        if above == facts.plan.plan_id {
            return Some(plan);
        }
        plan = above;
    }
    None
}

/// The child plan whose merge left conflict markers in the sandbox.
pub(super) fn in_conflict(facts: &Facts) -> Option<PlanId> {
    let open = |spawn: &&Spawn| matches!(spawn.stage, Stage::Conflicted { .. });
    facts.spawns.iter().filter(|spawn| standing(spawn, &facts.decisions).is_some()).find(open)?.child
}

/// The spawns that stay though what was taken in of their plans goes.
pub(super) fn taken_in_again(
    facts: &Facts,
    fallen: &BTreeSet<DecisionId>,
    dropped: &BTreeSet<ChangeId>,
) -> Vec<Spawn> {
    let by_write =
        facts.taken_in.iter().filter(|(change, _)| dropped.contains(change)).map(|(_, child)| *child);
    // Who kept what was there wrote nothing; another answer takes the child in all the same.
    let by_answer =
        facts.decisions.iter().filter(|d| fallen.contains(&d.decision_id)).filter_map(conflict_of);
    let gone: BTreeSet<PlanId> = by_write.chain(by_answer).collect();
    let again = |spawn: &&Spawn| {
        let stands = standing(spawn, &facts.decisions).is_some_and(|d| !fallen.contains(&d.decision_id));
        let taken = match spawn.stage {
            Stage::Merged { .. } => spawn.child.is_some_and(|child| gone.contains(&child)),
            // A merge that nobody answered for leaves no writes; whatever goes, its question is asked again.
            Stage::Conflicted { .. } => true,
            _ => false,
        };
        stands && taken
    };
    facts.spawns.iter().filter(again).map(|spawn| Spawn { stage: Stage::Started, ..spawn.clone() }).collect()
}

/// The spawns as they were at a checkpoint, those that differ from now, and the child plans that are given up for it.
pub(super) fn as_at(facts: &Facts, then: &[Spawn]) -> (Vec<Spawn>, BTreeSet<PlanId>) {
    let given_up =
        |plan: PlanId| facts.family.iter().any(|row| row.plan_id == plan && row.state == State::Cancelled);
    let (mut differ, mut lost) = (Vec::new(), BTreeSet::new());
    for now in &facts.spawns {
        let only_decided = |spawn: &Spawn| Spawn {
            child: None,
            stage: Stage::Decided,
            retries: 0,
            given_up: false,
            ..spawn.clone()
        };
        let at = |spawn: &&Spawn| spawn.decision_id == now.decision_id && spawn.call == now.call;
        let row = match then.iter().find(at) {
            // A plan that was given up since does no more work; what is in of it can come back.
            Some(row) if !matches!(row.stage, Stage::Merged { .. }) && row.child.is_some_and(given_up) => {
                only_decided(row)
            }
            Some(row) => row.clone(),
            None => only_decided(now),
        };
        lost.extend(now.child.filter(|child| row.child != Some(*child) && !given_up(*child)));
        if row != *now {
            differ.push(row);
        }
    }
    (differ, lost)
}

/// Spawns as far as times tell what they were, for a checkpoint that nothing else was kept of.
pub(super) fn before(
    facts: &Facts,
    made_before: impl Fn(&Change) -> bool,
    at: agents_domain::Timestamp,
) -> Vec<Spawn> {
    let merged: BTreeSet<PlanId> = facts
        .changes
        .iter()
        .filter(|change| made_before(change))
        .filter_map(|change| facts.taken_in.get(&change.change_id).copied())
        .collect();
    let there = |plan: PlanId| facts.family.iter().any(|row| row.plan_id == plan && row.created_at <= at);
    facts
        .spawns
        .iter()
        .filter(|spawn| spawn.child.is_none_or(there))
        .map(|spawn| match (&spawn.stage, spawn.child) {
            (Stage::Merged { .. }, Some(child)) if !merged.contains(&child) => {
                Spawn { stage: Stage::Started, ..spawn.clone() }
            }
            _ => spawn.clone(),
        })
        .collect()
}

/// Plans with everything below them.
pub(super) fn with_all_below(facts: &Facts, plans: BTreeSet<PlanId>) -> Vec<PlanId> {
    let pairs = facts.child_plans();
    let mut all: Vec<PlanId> = plans.into_iter().collect();
    let mut next = 0;
    while let Some(above) = all.get(next).copied() {
        next += 1;
        let below = pairs.iter().filter(|(parent, child)| *parent == above && !all.contains(child));
        let below: Vec<PlanId> = below.map(|(_, child)| *child).collect();
        all.extend(below);
    }
    all
}
