//! `plan correct`: another answer to a decision, and everything that hangs on it again.

use std::collections::BTreeSet;

use agents_domain::checkpoint::Tier;
use agents_domain::correction::{CorrectionAttempt, CorrectionMode, CorrectionState, Rewind, RewindCause};
use agents_domain::decision::{
    Alternative, Approval, ContextSnapshot, Decision, DecisionType, effective_parent,
};
use agents_domain::ids::{CorrectionId, DecisionId, PlanId};
use agents_domain::plan::machine::{self, AllowedAction, Event};
use agents_domain::plan::{Awaiting, Guidance, Phase, Plan, State};
use agents_domain::ports::store::{Reader, Writer};
use agents_domain::{Error, Result, tree};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::prompt::option_meant;
use crate::records::{self, advance};
use crate::rewind::correction::{Scope, refuse_applied_children, scope};
use crate::rewind::{self, Facts};
use crate::{Engine, Operation, clock, worker};

/// The longest guidance that is taken, in bytes.
const MAX_GUIDANCE: usize = 64 * 1024;

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

/// What doing it again would cost.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct EstimatedCost {
    pub re_strategize: String,
    pub re_execute: String,
    pub total: String,
    pub total_usd: f64,
    pub eta: String,
}

impl Operation for Correct {
    const METHOD: &'static str = "plan/correct";
    const SUMMARY: &'static str = "Correct a decision and do again what hangs on it";
    type Output = CorrectOutput;

    fn run(self, engine: &Engine) -> Result<CorrectOutput> {
        let guidance = self.checked_guidance()?;
        let target = engine.decision(&self.decision)?;
        match (self.mode, self.dry_run) {
            (CorrectionMode::Revert, true) => preview_revert(engine, &target, &guidance),
            (CorrectionMode::Revert, false) => revert(engine, &target, &guidance),
            (CorrectionMode::Append, dry_run) => super::append::append(engine, &target, &guidance, dry_run),
        }
    }
}

impl Correct {
    fn checked_guidance(&self) -> Result<String> {
        let text = self.guidance.trim();
        if text.is_empty() {
            return Err(Error::validation("the guidance is empty: say what shall be decided instead")
                .suggest(format!("agents plan explain {}  # lists the options", self.decision)));
        }
        if text.len() > MAX_GUIDANCE {
            return Err(Error::validation(format!(
                "the guidance has {} bytes; at most {MAX_GUIDANCE} are taken",
                text.len()
            ))
            .suggest("name a file that says the rest"));
        }
        Ok(text.to_owned())
    }
}

/// A revert as it would be carried out.
struct Planned {
    facts: Facts,
    scope: Scope,
    chosen: String,
    /// The guidance is one of the options.
    option: bool,
    /// The target goes without a replacement.
    removes: bool,
}

/// Everything that may refuse a revert, in the order of the rules; changes nothing.
fn check(
    engine: &Engine,
    r: &dyn Reader,
    facts: Facts,
    target: &Decision,
    guidance: &str,
) -> Result<Planned> {
    let plan = &facts.plan;
    tree::affected(target.decision_id, &facts.decisions, &[])?;
    let context = records::context_of(plan);
    let phase = rewind::made_in(engine, target, &facts.decisions)?;
    let append = format!("agents plan correct --mode append --guidance GUIDANCE {}", target.decision_id);
    let event = Event::CorrectRevert { target_phase: phase };
    machine::step(&plan.status(), &event, &context, clock::now()).map_err(|refusal| {
        let applied = plan.state == State::Applied || context.committed;
        let error = Error::from(refusal);
        if applied { error.suggest(append.clone()) } else { error }
    })?;
    let plain =
        matches!(target.decision_type, DecisionType::PromptDefinition | DecisionType::InvariantEnforced);
    let asked = Some(records::awaiting_decision(plan, target)).filter(|_| !plain);
    let option = option_meant(guidance, asked.as_ref())?;
    if option.as_ref() == Some(&target.chosen_option) && !target.pending {
        return Err(Error::validation(format!(
            "`{}` is what decision {} says already",
            target.chosen_option, target.decision_id
        ))
        .suggest(format!("agents plan explain {}  # lists the options", target.decision_id)));
    }
    let removes = target.decision_type == DecisionType::InvariantEnforced
        && guidance.split_whitespace().next().is_some_and(|word| word.eq_ignore_ascii_case("remove"));
    let scope = scope(engine, r, &facts, target)?;
    refuse_applied_children(&scope, target)?;
    if scope.tier == Tier::None {
        return Err(Error::invalid_state(format!(
            "nothing of plan {} can be taken back: its resources have no sandbox",
            plan.plan_id
        ))
        .suggest(append));
    }
    Ok(Planned {
        chosen: option.clone().unwrap_or_else(|| guidance.to_owned()),
        option: option.is_some(),
        facts,
        scope,
        removes,
    })
}

fn preview_revert(engine: &Engine, target: &Decision, guidance: &str) -> Result<CorrectOutput> {
    let id = target.plan_id;
    let load = || -> Result<Facts> {
        engine.view(|r| Facts::load(r, id))?.ok_or_else(|| crate::lookup::missing_plan(id))
    };
    let facts = load()?;
    let blocked = engine
        .view(|r| r.executing_corrections(facts.plan.root_plan_id))
        .and_then(|executing| refuse_while_executing(engine, &executing));
    let (planned, refused) = match blocked.and_then(|()| {
        let mut facts = Some(facts);
        engine
            .view(|r| Ok(facts.take().map(|facts| check(engine, r, facts, target, guidance))))?
            .unwrap_or_else(|| Err(Error::internal("read twice")))
    }) {
        Ok(planned) => (Some(planned), None),
        // What would be taken back is shown all the same, where it can be told.
        Err(error) => (None, Some(error)),
    };
    let facts = match &planned {
        Some(_) => None,
        None => Some(load()?),
    };
    let shown = match (&planned, &facts) {
        (Some(planned), _) => Some((&planned.facts, &planned.scope)),
        _ => None,
    };
    let unplanned = facts
        .as_ref()
        .and_then(|facts| Some((facts, engine.view(|r| Ok(scope(engine, r, facts, target).ok())).ok()??)));
    let (facts, scope) = match (shown, &unplanned) {
        (Some(shown), _) => shown,
        (None, Some((facts, scope))) => (*facts, scope),
        (None, None) => return Err(refused.unwrap_or_else(|| Error::internal("nothing to preview"))),
    };
    let warnings = scope.warnings.clone();
    let seconds = eta_seconds(&facts.plan, scope, target);
    let plan = &facts.plan;
    Ok(CorrectOutput {
        dry_run: Some(true),
        would_revert: Some(WouldRevert {
            decisions_to_invalidate: scope
                .fallen
                .iter()
                .filter_map(|id| facts.decision(*id))
                .map(|d| InvalidatedDecision {
                    id: d.decision_id,
                    decision_type: d.decision_type,
                    label: super::tree::first_line(&d.chosen_option),
                    overlaps: scope.overlapped.contains(&d.decision_id),
                })
                .collect(),
            child_plans_to_roll_back: scope.children.len(),
            artifacts_to_archive: scope.artifacts.len(),
            unaffected_decisions: scope.unaffected,
            child_plan_ids: scope.children.iter().map(|c| c.plan_id).collect(),
            artifacts: scope.artifacts.clone(),
        }),
        estimated_cost: Some(EstimatedCost {
            re_strategize: "$0.000".to_owned(),
            re_execute: "$0.000".to_owned(),
            total: "$0.000".to_owned(),
            total_usd: 0.0,
            eta: format!("~{}", duration_text(seconds)),
        }),
        estimated_recompute_time_seconds: Some(seconds),
        tier: Some(scope.tier),
        rejected: Some(refused.is_some()),
        reason: refused.as_ref().map(|error| error.message.clone()),
        suggestions: refused.map(|error| error.suggestions).unwrap_or_default(),
        warnings,
        ..CorrectOutput::at(plan)
    })
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
pub(super) fn refuse_while_executing(engine: &Engine, executing: &[CorrectionAttempt]) -> Result<()> {
    for attempt in executing {
        let (plan, rewinds) = engine.view(|r| Ok((r.plan(attempt.plan_id)?, r.rewind(attempt.plan_id)?)))?;
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

fn revert(engine: &Engine, target: &Decision, guidance: &str) -> Result<CorrectOutput> {
    let id = target.plan_id;
    let plan = engine.plan(&id.to_string())?;
    worker::refuse_half_made(engine, &plan)?;
    let executing = engine.view(|r| r.executing_corrections(plan.root_plan_id))?;
    refuse_while_executing(engine, &executing)?;
    let words = json!({ "guidance": guidance, "corrects": target.decision_id });
    let context_ref = engine.store.put_blob(words.to_string().as_bytes())?;
    let (output, cancelled) = engine.write(|w| {
        let facts = Facts::load(w, id)?.ok_or_else(|| crate::lookup::missing_plan(id))?;
        let planned = check(engine, w, facts, target, guidance)?;
        for overtaken in w.executing_corrections(planned.facts.plan.root_plan_id)? {
            let plan = w.plan(overtaken.plan_id)?.ok_or_else(|| crate::lookup::missing_plan(id))?;
            let why = "another correction came before it was complete".to_owned();
            rewind::end_correction(engine, w, &plan, overtaken, Some(why))?;
        }
        let mut plan = planned.facts.plan.clone();
        let event = Event::CorrectRevert { target_phase: planned.scope.phase };
        advance(engine, w, &mut plan, &event)?;
        let children: Vec<PlanId> = planned.scope.children.iter().map(|c| c.plan_id).collect();
        let why = format!("decision {} of its parent was corrected", target.decision_id);
        let cancelled = cancel_children(engine, w, &children, &why)?;
        let attempt = CorrectionAttempt {
            correction_id: CorrectionId::from_ulid(clock::ulid()),
            plan_id: id,
            original_decision_id: target.decision_id,
            new_decision_id: DecisionId::from_ulid(clock::ulid()),
            mode: CorrectionMode::Revert,
            guidance: guidance.to_owned(),
            state: CorrectionState::Executing,
            phase: planned.scope.phase,
            affected: planned.scope.fallen.clone(),
            archive: Some(rewind::keep_states(engine, &rewind::file_states(&planned.facts.changes))?),
            outcome: None,
            child_plan_id: None,
            failure: None,
            created_at: clock::now(),
            completed_at: None,
        };
        w.put_correction(&attempt)?;
        let rewind = rewind_of(&planned, target, &attempt, &context_ref);
        w.put_rewind(&rewind)?;
        let facts = json!({
            "correction_id": attempt.correction_id, "decision_id": target.decision_id, "mode": "revert",
            "decisions": attempt.affected.len(), "attempt": plan.attempt,
        });
        records::emit(engine, w, &plan, "correction.requested", facts)?;
        Ok((reverted(&plan, &planned, target, &attempt, &rewind, w.checkpoints(id)?), cancelled))
    })?;
    for child in &cancelled {
        crate::sandboxes::clean_up(child);
    }
    if !engine.store.is_leased(id)? {
        engine.start_worker(id)?;
    }
    Ok(output)
}

/// Gives up the child plans that hang on what is taken back; those that are cancelled already stay so.
pub(super) fn cancel_children(
    engine: &Engine,
    w: &dyn Writer,
    children: &[PlanId],
    why: &str,
) -> Result<Vec<Plan>> {
    let mut cancelled = Vec::new();
    for child in children {
        let Some(mut child) = w.plan(*child)? else { continue };
        if child.state != State::Cancelled {
            child.cancel_reason = Some(why.to_owned());
            advance(engine, w, &mut child, &Event::Cancel)?;
        }
        cancelled.push(child);
    }
    Ok(cancelled)
}

/// What replaces the target, and what the person said.
fn rewind_of(planned: &Planned, target: &Decision, attempt: &CorrectionAttempt, context_ref: &str) -> Rewind {
    let scope = &planned.scope;
    let guidance = &attempt.guidance;
    let is_root = target.parent_decision_id.is_none();
    let fallen: BTreeSet<DecisionId> = scope.fallen.iter().copied().collect();
    // A parent that falls with it is not there to hang below.
    let mut parent = effective_parent(target, &planned.facts.decisions);
    while let Some(above) = parent.filter(|id| fallen.contains(id)).and_then(|id| planned.facts.decision(id))
    {
        parent = effective_parent(above, &planned.facts.decisions);
    }
    let context = ContextSnapshot {
        hot_context_hash: context_ref.to_owned(),
        hot_context_ref: context_ref.to_owned(),
        ..target.context.clone()
    };
    let replacement = Decision {
        decision_id: attempt.new_decision_id,
        parent_decision_id: parent,
        chosen_option: planned.chosen.clone(),
        alternatives: if is_root {
            vec![Alternative { option: planned.chosen.clone(), description: None }]
        } else {
            target.alternatives.clone()
        },
        confidence: None,
        rationale: format!(
            "Corrected by a person; it was `{}`",
            super::tree::first_line(&target.chosen_option)
        ),
        actor_reasoning: None,
        context,
        depends_on: target.depends_on.iter().copied().filter(|id| !fallen.contains(id)).collect(),
        pending: false,
        approval: Some(Approval::ByPerson),
        artifacts: Vec::new(),
        downstream_plans: Vec::new(),
        corrects_decision_id: Some(target.decision_id),
        correction_reason: Some(guidance.clone()),
        superseded_by: None,
        created_at: clock::now(),
        ..target.clone()
    };
    let said = Decision {
        decision_id: DecisionId::from_ulid(clock::ulid()),
        parent_decision_id: Some(attempt.new_decision_id),
        key: None,
        decision_type: DecisionType::UserIntervention,
        question: "What was said about the correction?".to_owned(),
        chosen_option: guidance.clone(),
        alternatives: vec![Alternative { option: guidance.clone(), description: None }],
        rationale: "Said by a person".to_owned(),
        depends_on: Vec::new(),
        corrects_decision_id: None,
        correction_reason: None,
        created_at: clock::now(),
        ..replacement.clone()
    };
    let (recorded, holder) = if planned.removes {
        let said = Decision {
            decision_id: attempt.new_decision_id,
            parent_decision_id: parent,
            corrects_decision_id: Some(target.decision_id),
            correction_reason: Some(guidance.clone()),
            ..said
        };
        let holder = said.decision_id;
        (vec![said], holder)
    } else {
        let holder = said.decision_id;
        (vec![replacement, said], holder)
    };
    Rewind {
        plan_id: attempt.plan_id,
        cause: RewindCause::Correction(attempt.correction_id),
        resources: scope.resources.clone(),
        recorded,
        fallen: scope.fallen.clone(),
        undone: scope.undone.clone(),
        rewritten: scope.rewritten.clone(),
        calls: Vec::new(),
        recalled: scope.recalled.clone(),
        resume: scope.resume.clone(),
        guidance: (!planned.option && !is_root).then(|| Guidance {
            decision_id: holder,
            text: guidance.clone(),
            applied: false,
        }),
        description: is_root.then(|| planned.chosen.clone()),
    }
}

fn reverted(
    plan: &Plan,
    planned: &Planned,
    target: &Decision,
    attempt: &CorrectionAttempt,
    rewind: &Rewind,
    checkpoints: Vec<agents_domain::checkpoint::Checkpoint>,
) -> CorrectOutput {
    let scope = &planned.scope;
    let first = planned.facts.changes.iter().find(|c| scope.undone.contains(&c.change_id));
    let checkpoint = first.and_then(|first| {
        checkpoints
            .iter()
            .rev()
            .find(|c| c.created_at < first.created_at && c.resource_id == first.resource_id)
    });
    let seconds = eta_seconds(&planned.facts.plan, scope, target);
    let counts = [
        (scope.fallen.len(), "decision"),
        (scope.children.len(), "child plan"),
        (scope.artifacts.len(), "artifact"),
    ];
    CorrectOutput {
        correction: Some(CorrectionView {
            mode: CorrectionMode::Revert,
            impact: counts.map(|(n, noun)| counted(n, noun)).join(", "),
            new_decision: attempt.new_decision_id,
            corrects: Some(target.decision_id),
            appended_after: None,
            attempt: plan.attempt,
            correction_attempt_id: attempt.correction_id,
            chosen: planned.chosen.clone(),
        }),
        affected_subtree: Some(AffectedSubtree {
            decisions_invalidated: scope.fallen.len(),
            child_plans_rolled_back: scope.children.len(),
            artifacts_archived: scope.artifacts.len(),
            unaffected_decisions: scope.unaffected,
            decision_ids: scope.fallen.clone(),
            child_plan_ids: scope.children.iter().map(|c| c.plan_id).collect(),
            artifacts: scope.artifacts.clone(),
        }),
        sandbox_rollback: Some(SandboxRollback {
            checkpoint: checkpoint.map(|c| c.checkpoint_id.to_string()),
            files_reverted: scope.artifacts.len(),
            status: if rewind.resources.is_empty() { "none" } else { "queued" }.to_owned(),
        }),
        recompute: Some(Recompute {
            queued: counted(scope.children.len(), "child plan"),
            eta: duration_text(seconds),
            eta_s: seconds,
        }),
        history: vec![
            "Original decision superseded".to_owned(),
            "Prior artifacts archived for comparison".to_owned(),
            format!("agents plan diff --correction {}", attempt.correction_id),
        ],
        tier: Some(scope.tier),
        warnings: scope.warnings.clone(),
        ..CorrectOutput::at(plan)
    }
}

/// `1 decision`, `2 decisions`.
pub(super) fn counted(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// How long the phases that are done again took, from where they are done again.
fn eta_seconds(plan: &Plan, scope: &Scope, target: &Decision) -> u64 {
    let of = |phase: Phase, from: Option<agents_domain::Timestamp>| {
        plan.phase_times.get(&phase).map_or(0, |times| {
            let end = times.finished.unwrap_or_else(clock::now);
            end.millis_since(from.unwrap_or(times.started).max(times.started))
        })
    };
    let millis = match scope.phase {
        Phase::Strategize => of(Phase::Strategize, Some(target.created_at)) + of(Phase::Execute, None),
        phase => of(phase, Some(target.created_at)),
    };
    millis.div_ceil(1000).max(1)
}

/// `45s`, `4m`.
pub(super) fn duration_text(seconds: u64) -> String {
    if seconds < 90 { format!("{seconds}s") } else { format!("{}m", seconds.div_ceil(60)) }
}
