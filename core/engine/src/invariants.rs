//! The invariants of a plan: which apply, who reconciles them, how they become decisions, and whether changes keep them.

use std::collections::BTreeMap;
use std::sync::Arc;

use agents_config::nearest;
use agents_domain::changes::FileDiff;
use agents_domain::decision::{Alternative, Approval, ContextSnapshot, Decision, DecisionType};
use agents_domain::ids::{DecisionId, InvariantId, PlanId, ResourceId};
use agents_domain::invariant::{
    self, AddedLine, Attempt, Enforced, Finding, Invariant, Scope, SetAside, Totals, Touched,
};
use agents_domain::plan::Plan;
use agents_domain::ports::actor::Reconciler;
use agents_domain::ports::store::{Reader, StoreResult, Writer};
use agents_domain::{Error, QualifiedName, Result};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{Engine, clock, records, sandboxes};

/// The reconciler of plans that name none: by rule, without a model.
pub(crate) const BUILT_IN: &str = "builtin/reconcile-invariants";

/// A new invariant, checked: not empty, and when it uses one of the keys of the exact form, rightly.
pub(crate) fn new(scope: Scope, target: Option<String>, text: &str, fixed: bool) -> Result<Invariant> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Error::validation("an invariant is empty: say what plans must keep to"));
    }
    if let Some(problem) = invariant::problem(text) {
        return Err(Error::validation(format!("the invariant cannot be read: {problem}")));
    }
    Ok(Invariant {
        invariant_id: InvariantId::from_ulid(clock::ulid()),
        scope,
        target,
        text: text.to_owned(),
        non_overridable: fixed && scope == Scope::Global,
        created_at: clock::now(),
    })
}

/// A reconciler by name, or what is wrong with the name.
pub(crate) fn reconciler(engine: &Engine, name: &QualifiedName) -> Result<Arc<dyn Reconciler>> {
    engine.actors.reconciler(name).ok_or_else(|| {
        let known: Vec<String> = engine.actors.reconcilers().iter().map(ToString::to_string).collect();
        let error = Error::not_found(format!("there is no actor `{name}` that reconciles invariants"));
        let error = match nearest(&name.to_string(), known.iter().map(String::as_str)) {
            Some(meant) => error.suggest(format!("did you mean `{meant}`?")),
            None => error.suggest(format!("--invariant-actor {BUILT_IN}")),
        };
        if known.is_empty() { error } else { error.detail(format!("known: {}", known.join(", "))) }
    })
}

/// All invariants that apply to a plan.
pub(crate) fn collect(r: &dyn Reader, plan: &Plan) -> StoreResult<Vec<Invariant>> {
    let projects: Vec<String> = plan.projects.iter().map(ToString::to_string).collect();
    let (action, id) = (plan.action.to_string(), plan.plan_id.to_string());
    Ok(invariant::collected(r.invariants()?, &projects, &action, &id))
}

/// The plans that go by the invariants of `root`: itself and what hangs below it, not ended.
pub(crate) fn family(r: &dyn Reader, root: PlanId) -> StoreResult<Vec<PlanId>> {
    let rows = r.plan_rows(&agents_domain::ports::store::PlanFilter::default())?;
    let mut found = vec![root];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        let children = rows.iter().filter(|row| {
            row.parent_plan_id == Some(parent) && row.completed_at.is_none() && !found.contains(&row.plan_id)
        });
        let children: Vec<PlanId> = children.map(|row| row.plan_id).collect();
        found.extend(children);
        at += 1;
    }
    Ok(found)
}

/// What is stored with the decision that holds an invariant.
pub(crate) fn evidence(invariant: &Invariant, overridden: &[&SetAside], reconciler: &str) -> Value {
    json!({
        "invariant_id": invariant.invariant_id, "source_scope": invariant.scope, "source": invariant.target,
        "non_overridable": invariant.is_absolute(), "check": invariant.check(), "reconciler": reconciler,
        "stands_for": overridden.iter().map(|aside| json!({
            "invariant_id": aside.invariant.invariant_id, "scope": aside.invariant.scope,
            "text": aside.invariant.text, "why": aside.why, "reason": aside.reason,
        })).collect::<Vec<_>>(),
    })
}

/// The decision that puts an invariant in force in a plan.
pub(crate) fn decision(
    w: &dyn Writer,
    plan: &Plan,
    invariant: &Invariant,
    overridden: &[&SetAside],
    (context_ref, state_ref): (&str, &str),
) -> Result<Decision> {
    let root = w.decisions(plan.plan_id)?.into_iter();
    let root = root
        .into_iter()
        .find(|d| d.parent_decision_id.is_none() && d.superseded_by.is_none())
        .ok_or_else(|| Error::internal(format!("plan {} has no root decision", plan.plan_id)))?;
    let of = match &invariant.target {
        Some(target) if invariant.scope != Scope::Plan => {
            format!(" of {} {target}", invariant.scope.as_str())
        }
        _ if invariant.scope == Scope::Plan => " of this plan".to_owned(),
        _ => String::new(),
    };
    let global = if invariant.scope == Scope::Global { "global " } else { "" };
    let mut rationale = match invariant.check() {
        Some(check) if check.waived => "It allows what one of a wider scope forbids.".to_owned(),
        Some(_) => "Enforced by machine: what breaks it is refused.".to_owned(),
        None => "Handed to the actors: it has no form that a machine can check.".to_owned(),
    };
    for aside in overridden {
        let scope = aside.invariant.scope.as_str();
        rationale
            .push_str(&format!(" Stands for the {scope} one “{}”: {}.", aside.invariant.text, aside.reason));
    }
    Ok(Decision {
        decision_id: DecisionId::from_ulid(clock::ulid()),
        plan_id: plan.plan_id,
        parent_decision_id: Some(root.decision_id),
        sequence_number: w.next_sequence(plan.plan_id)?,
        key: Some(invariant::decision_key(invariant.invariant_id)),
        decision_type: DecisionType::InvariantEnforced,
        question: format!("Which {global}invariant{of} holds?"),
        chosen_option: invariant.text.clone(),
        alternatives: vec![Alternative { option: invariant.text.clone(), description: None }],
        confidence: None,
        rationale,
        actor_reasoning: None,
        context: ContextSnapshot {
            hot_context_hash: context_ref.to_owned(),
            hot_context_ref: context_ref.to_owned(),
            relevant_resources: Vec::new(),
            actor_state_ref: state_ref.to_owned(),
        },
        depends_on: Vec::new(),
        pending: false,
        approval: Some(Approval::System),
        artifacts: Vec::new(),
        downstream_plans: Vec::new(),
        corrects_decision_id: None,
        correction_reason: None,
        superseded_by: None,
        created_at: clock::now(),
    })
}

/// Records a decision that puts an invariant in force, with its events.
pub(crate) fn enforce(
    engine: &Engine,
    w: &dyn Writer,
    plan: &Plan,
    decision: &Decision,
    scope: Scope,
) -> Result<()> {
    w.insert_decision(decision)?;
    records::emit_decision(engine, w, plan, decision)?;
    let facts = json!({
        "invariant_id": invariant::of_key(decision.key.as_deref()), "scope": scope,
        "decision_id": decision.decision_id, "text": decision.chosen_option,
    });
    records::emit(engine, w, plan, "invariant.enforced", facts)
}

/// An invariant that changes break.
#[derive(Debug, Clone)]
pub(crate) struct Violation {
    pub invariant: Enforced,
    pub finding: Finding,
    /// The resource of the file it names.
    pub resource_id: Option<ResourceId>,
}

impl Violation {
    /// For people and actors.
    pub fn message(&self) -> String {
        format!("invariant “{}” would be broken: {}", self.invariant.text, self.finding.evidence)
    }

    /// The facts of `invariant.violated`.
    pub fn facts(&self, tool: Option<&str>) -> Value {
        json!({
            "invariant_id": self.invariant.invariant_id, "decision_id": self.invariant.decision_id,
            "text": self.invariant.text, "evidence": self.finding.evidence, "path": self.finding.path,
            "line": self.finding.line, "resource_id": self.resource_id, "tool_name": tool,
        })
    }
}

/// The invariants an attempt breaks.
pub(crate) fn violations(enforced: &[Enforced], attempt: &Attempt<'_>) -> Vec<Violation> {
    enforced
        .iter()
        .filter_map(|invariant| {
            let finding = invariant.check.as_ref()?.violated_by(attempt)?;
            Some(Violation { invariant: invariant.clone(), finding, resource_id: None })
        })
        .collect()
}

/// Judges all of a plan's changes by the invariants that a machine can check.
pub(crate) fn judge(
    engine: &Engine,
    plan: &Plan,
    enforced: &[Enforced],
    passed: Option<&BTreeMap<String, bool>>,
) -> Result<Vec<Violation>> {
    if enforced.iter().all(|i| i.check.as_ref().is_none_or(|check| check.waived)) {
        return Ok(Vec::new());
    }
    let changes = sandboxes::diff(engine, plan)?;
    let files: Vec<Touched> = changes.iter().map(|(_, file)| touched(file)).collect();
    let attempt = Attempt { tool: None, files: &files, totals: totals(&changes), validations: passed };
    let mut broken = violations(enforced, &attempt);
    for violation in &mut broken {
        let names = |path: &String| violation.finding.path.as_ref() == Some(path);
        let of = |(_, file): &&(ResourceId, FileDiff)| {
            names(&file.path) || file.old_path.as_ref().is_some_and(names)
        };
        violation.resource_id = changes.iter().find(of).map(|(resource, _)| *resource);
    }
    Ok(broken)
}

fn touched(file: &FileDiff) -> Touched {
    let lines = file.hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.kind == "+");
    Touched {
        path: file.path.clone(),
        old_path: file.old_path.clone(),
        added: lines.map(|l| AddedLine { line: l.new.unwrap_or(0), text: l.text.clone() }).collect(),
    }
}

/// How much a change set changes.
pub(crate) fn totals(changes: &[(ResourceId, FileDiff)]) -> Totals {
    Totals {
        lines: changes.iter().map(|(_, f)| u64::from(f.insertions) + u64::from(f.deletions)).sum(),
        files: changes.len() as u64,
    }
}

/// The invariant that makes a person approve a decision, when there is one.
pub(crate) fn wants_approval<'e>(
    enforced: &'e [Enforced],
    texts: &[&str],
    paths: &[&str],
) -> Option<&'e Enforced> {
    enforced.iter().find(|i| i.check.as_ref().is_some_and(|check| check.wants_approval(texts, paths)))
}

/// Why a decision waits for a person although its confidence would do.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Escalation {
    /// The invariant's id, or that of its decision.
    pub invariant: String,
    /// The sentence.
    pub text: String,
    /// What it does to the decision, for people.
    pub effect: String,
}

/// The invariant that made a person approve this decision, when one did.
pub(crate) fn escalation(plan: &Plan, decision: &Decision, all: &[Decision]) -> Option<Escalation> {
    let gate = decision.decision_type.gate()?;
    if decision.decision_type == DecisionType::ErrorRecovery {
        return None;
    }
    // Those in force when it was made, replaced ones too.
    let behind: Vec<Decision> = all
        .iter()
        .filter(|d| decision.depends_on.contains(&d.decision_id))
        .map(|d| Decision { superseded_by: None, ..d.clone() })
        .collect();
    let enforced = invariant::enforced(&behind);
    let paths: Vec<&str> = decision.context.relevant_resources.iter().map(|r| r.path.as_str()).collect();
    let texts = [decision.question.as_str(), decision.chosen_option.as_str()];
    let by = wants_approval(&enforced, &texts, &paths)?;
    let threshold = plan.profile.profile.thresholds.of(gate);
    let effect = match decision.confidence {
        Some(confidence) if confidence >= threshold && threshold < 1.0 => format!(
            "Confidence {confidence:.2} would go on by itself (threshold {threshold:.2}); the invariant asks a person \
             whatever the confidence"
        ),
        _ => "The invariant asks a person whatever the confidence".to_owned(),
    };
    let invariant = by.invariant_id.map_or_else(|| by.decision_id.to_string(), |id| id.to_string());
    Some(Escalation { invariant, text: by.text.clone(), effect })
}

/// Refuses to apply changes that break an invariant, such as one that was added after Execute was done.
pub(crate) fn refuse_broken(engine: &Engine, plan: &Plan) -> Result<()> {
    let enforced = invariant::enforced(&engine.view(|r| r.decisions(plan.plan_id))?);
    let Some(violation) =
        judge(engine, plan, &enforced, Some(&plan.validations.results()))?.into_iter().next()
    else {
        return Ok(());
    };
    engine.write(|w| records::emit(engine, w, plan, "invariant.violated", violation.facts(None)))?;
    let decision = violation.invariant.decision_id;
    Err(Error::invalid_state(format!(
        "plan {} is not applied: {}",
        plan.plan_id,
        violation.message().replace("would be broken", "is broken")
    ))
    .suggest(format!("agents plan explain {decision}"))
    .suggest(format!("agents plan diff {}", plan.plan_id))
    .suggest(format!("agents plan cancel {}", plan.plan_id)))
}
