//! What is to be taken back: the writes of a plan by the decision behind them, newest first.

use std::collections::BTreeSet;

use agents_domain::changes::{Change, ChangeKind};
use agents_domain::decision::{Decision, DecisionType};
use agents_domain::ids::{DecisionId, PlanId, ResourceId};
use agents_domain::plan::State;
use agents_domain::ports::actor::{ActorFailure, RecordedPlan};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::common::{first_line, wrong_argument};

/// What a decision made of one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Span {
    /// The resource.
    pub resource_id: ResourceId,
    /// The file as it was called before and as it is called after; the same unless it was moved.
    pub before_path: String,
    /// See `before_path`.
    pub path: String,
    /// Its content before, `None` when it was not there.
    pub before: Option<String>,
    /// Its content after, `None` when it was deleted.
    pub after: Option<String>,
}

/// Writes of one decision in a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Unit {
    /// The decision that wrote.
    pub decision_id: DecisionId,
    /// What it did, in the words of the choice behind it.
    pub what: String,
    /// Unique in the plan: the decision's id, with a number when it wrote several times between others.
    pub id: String,
    /// What it made of each file.
    pub spans: Vec<Span>,
}

impl Unit {
    /// Key of the decision on whether it is taken back.
    pub fn key(&self) -> String {
        format!("revert/{}", self.id)
    }

    /// Key of the decision on how.
    pub fn merge_key(&self) -> String {
        format!("revert/{}/merge", self.id)
    }

    /// Key of the decision on a file that was changed since.
    pub fn conflict_key(&self, span: &Span) -> String {
        format!("revert/{}/conflict/{}/{}", self.id, span.resource_id, span.path)
    }
}

/// The argument `plan`.
pub(super) fn plan_argument(value: Option<&Value>) -> Result<String, ActorFailure> {
    match value.and_then(Value::as_str).map(str::trim) {
        Some(text) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err(wrong_argument(
            "argument `plan` is missing: it must be the id of the plan to take back, or its beginning"
                .to_owned(),
        )),
    }
}

/// The argument `decisions`: a list, or one text with commas.
pub(super) fn decisions_argument(value: Option<&Value>) -> Result<Vec<String>, ActorFailure> {
    let texts: Option<Vec<String>> = match value {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::String(text)) => Some(text.split(',').map(str::to_owned).collect()),
        Some(Value::Array(values)) => values.iter().map(|v| v.as_str().map(str::to_owned)).collect(),
        Some(_) => None,
    };
    let texts = texts.ok_or_else(|| {
        wrong_argument(
            "argument `decisions` must be a list of ids of decisions, or one text with commas".to_owned(),
        )
    })?;
    Ok(texts.iter().map(|text| text.trim().to_uppercase()).filter(|text| !text.is_empty()).collect())
}

/// Only what was applied can be taken back.
pub(super) fn check_applied(plan: &RecordedPlan) -> Result<(), ActorFailure> {
    if plan.state == State::Applied {
        return Ok(());
    }
    let (id, state) = (plan.plan_id, plan.state);
    Err(ActorFailure {
        hints: vec![
            format!("`agents plan status {id}` says where it stands."),
            "`agents plan list --state applied` lists the plans that were applied.".to_owned(),
        ],
        ..wrong_argument(format!(
            "plan {id} is not applied ({}/{state}), so nothing of it is in the files and there is nothing to take back",
            plan.phase
        ))
    })
}

/// The decisions that are taken back: those named and those below them, or all.
///
/// # Errors
/// Names a decision that the plan does not have, or the beginning of several.
pub(super) fn selected(plan: &RecordedPlan, named: &[String]) -> Result<BTreeSet<DecisionId>, ActorFailure> {
    if named.is_empty() {
        return Ok(plan.decisions.iter().map(|d| d.decision_id).collect());
    }
    let mut chosen = BTreeSet::new();
    for prefix in named {
        let mut found = plan.decisions.iter().filter(|d| d.decision_id.to_string().starts_with(prefix));
        match (found.next(), found.next()) {
            (Some(one), None) => _ = chosen.insert(one.decision_id),
            (None, _) => {
                return Err(wrong_argument(format!("plan {} has no decision `{prefix}`", plan.plan_id)));
            }
            (Some(_), Some(_)) => {
                return Err(wrong_argument(format!(
                    "`{prefix}` is the start of several decisions of plan {}: give more characters",
                    plan.plan_id
                )));
            }
        }
    }
    // A decision is recorded after its parent, so one pass from the oldest finds all that are below.
    for decision in &plan.decisions {
        if decision.parent_decision_id.is_some_and(|parent| chosen.contains(&parent)) {
            chosen.insert(decision.decision_id);
        }
    }
    Ok(chosen)
}

/// The plan's writes under these decisions, newest first.
pub(super) fn units(plan: &RecordedPlan, selected: &BTreeSet<DecisionId>) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    let mut last = None;
    for change in &plan.changes {
        if !selected.contains(&change.decision_id) {
            last = None;
            continue;
        }
        if last != Some(change.decision_id) {
            let before = units.iter().filter(|unit| unit.decision_id == change.decision_id).count();
            units.push(unit(&plan.decisions, change, before));
            last = Some(change.decision_id);
        }
        if let Some(unit) = units.last_mut() {
            add(&mut unit.spans, change);
        }
    }
    for unit in &mut units {
        unit.spans.retain(|span| span.before != span.after || span.before_path != span.path);
    }
    units.retain(|unit| !unit.spans.is_empty());
    units.reverse();
    units
}

fn unit(decisions: &[Decision], change: &Change, before: usize) -> Unit {
    Unit {
        decision_id: change.decision_id,
        what: choice_behind(decisions, change.decision_id),
        id: match before {
            0 => change.decision_id.to_string(),
            n => format!("{}-{}", change.decision_id, n + 1),
        },
        spans: Vec::new(),
    }
}

/// What was chosen by the strategy that a decision carries out, else by the decision itself.
fn choice_behind(decisions: &[Decision], id: DecisionId) -> String {
    let find = |id: DecisionId| decisions.iter().find(|d| d.decision_id == id);
    let own = find(id);
    let mut at = own;
    // No chain is longer than the number of decisions.
    for _ in 0..decisions.len() {
        match at {
            Some(d) if d.decision_type == DecisionType::ImplementationChoice => {
                at = d.parent_decision_id.and_then(find);
            }
            _ => break,
        }
    }
    let strategy = at.filter(|d| d.parent_decision_id.is_some()).or(own);
    strategy.map(|d| first_line(&d.chosen_option).to_owned()).unwrap_or_default()
}

/// Adds a write to what was made of the file before.
fn add(spans: &mut Vec<Span>, change: &Change) {
    let from =
        change.old_path.as_ref().filter(|_| change.kind == ChangeKind::Renamed).unwrap_or(&change.path);
    let known = spans.iter_mut().rev().find(|span| {
        span.resource_id == change.resource_id && span.path == *from && span.after == change.before_hash
    });
    match known {
        Some(span) => {
            span.path.clone_from(&change.path);
            span.after.clone_from(&change.after_hash);
        }
        None => spans.push(Span {
            resource_id: change.resource_id,
            before_path: from.clone(),
            path: change.path.clone(),
            before: change.before_hash.clone(),
            after: change.after_hash.clone(),
        }),
    }
}

/// How people see what is taken back: `decision 01HX... of plan 01HW...`.
pub(super) fn name(unit: &Unit, plan: PlanId) -> String {
    format!("decision {} of plan {plan}", unit.decision_id)
}
