//! Guards at every tool call, and budgets at every step: the one place that asks `domain::plan::guards`.

use agents_domain::decision::{Alternative, Approval, Decision, DecisionType, ResourceRef};
use agents_domain::invariant;
use agents_domain::plan::guards::{self, Budgets, Call, Limit, Measure, Scope, ToolFacts, Usage, Verdict};
use agents_domain::plan::machine::Event;
use agents_domain::plan::{Phase, Plan};
use agents_domain::ports::actor::{DecisionDraft, Request};
use agents_domain::ports::store::{ActorRun, Reader};
use agents_domain::text::FileEdit;
use serde_json::json;

use super::{Stop, Worker};
use crate::records::{self, Evidence, emit};
use crate::tools::Edits;
use crate::{Engine, invariants};

/// Before the key of a decision on whether a tool call may run: `guard/<flag>/<call>`.
pub(crate) const GUARD_KEY: &str = "guard/";

const RUN: &str = "Run it";
const DO_NOT: &str = "Do not run it";

/// The flag of a call that an invariant asks about.
const BY_INVARIANT: &str = "invariant";

/// What becomes of a tool call.
pub(super) enum Guarded {
    /// It runs.
    Run,
    /// A person is asked first; the plan waits.
    Wait,
    /// It does not run; the reason is for the actor.
    Refuse(String),
}

/// The budgets of the configuration, as they hold for a plan.
pub(crate) fn budgets(engine: &Engine, plan: &Plan) -> Budgets {
    let project = plan.projects.first().map(ToString::to_string);
    let number = |key: &str| engine.config.get(key, project.as_deref()).value.as_f64();
    let whole = |key: &str| number(key).map(|n| n as u32);
    Budgets {
        step_calls: whole("plan.tool.max-calls-per-step"),
        calls: whole("plan.budget.tool-calls"),
        cost: number("plan.budget.per-plan"),
        seconds: whole("plan.budget.wall-clock"),
    }
}

/// The limits in force for a plan whose present step has made so many calls.
pub(crate) fn limits(
    engine: &Engine,
    r: &dyn Reader,
    plan: &Plan,
    step_calls: u32,
) -> agents_domain::Result<Vec<Limit>> {
    let usage = Usage {
        step_calls,
        calls: plan.tool_calls,
        cost: plan.spending.cost_usd,
        tree_cost: r.tree_cost(plan.root_plan_id)?,
        seconds: plan.spending.worked_ms as f64 / 1000.0,
    };
    Ok(guards::limits(&plan.profile.profile, &budgets(engine, plan), &usage, &plan.spending))
}

/// Whose limits a plan's are.
pub(crate) fn scope(plan: &Plan) -> Scope {
    if plan.parent_plan_id.is_some() { Scope::Subplan } else { Scope::Plan }
}

/// The tool calls of the present step that were carried out.
pub(crate) fn step_calls(run: &ActorRun) -> u32 {
    let done = run.requests.iter().take(run.done).filter(|r| matches!(r, Request::Tool { .. })).count();
    u32::try_from(done).unwrap_or(u32::MAX)
}

/// The flag in the key of a guard's decision.
pub(crate) fn flag_of(decision: &Decision) -> Option<&str> {
    decision.key.as_deref()?.strip_prefix(GUARD_KEY)?.split('/').next()
}

impl Worker<'_> {
    /// Whether a tool call may run now.
    pub(super) fn guard(
        &self,
        run: &ActorRun,
        facts: &ToolFacts,
        (call_id, edits): (&str, Option<&Edits>),
        behind: &Decision,
        decisions: &[Decision],
    ) -> Result<Guarded, Stop> {
        let asked = decisions.iter().rfind(|d| {
            d.superseded_by.is_none()
                && flag_of(d).is_some_and(|flag| d.key.as_deref() == Some(&guard_key(flag, call_id)))
        });
        let approved = match asked {
            Some(answer) if answer.chosen_option == RUN => true,
            Some(answer) => {
                return Ok(Guarded::Refuse(format!(
                    "{}: a person said: {}",
                    facts.name, answer.chosen_option
                )));
            }
            None => false,
        };
        let plan = self.plan()?;
        let (limits, checkpoints) = self
            .engine
            .look(|r| Ok((limits(self.engine, r, &plan, step_calls(run))?, r.checkpoints(self.id)?.len())))?;
        let call = Call { limits: &limits, scope: scope(&plan), approved, checkpointed: checkpoints > 0 };
        match guards::check(&plan.profile.profile, facts, &call) {
            Verdict::Allowed if !approved && plan.phase == Phase::Execute => {
                let Some((reason, places)) = wants_a_person(edits, behind, decisions) else {
                    self.warn_of(&limits)?;
                    return Ok(Guarded::Run);
                };
                self.ask_for_call(run, &facts.name, BY_INVARIANT, &reason, call_id, behind, places)?;
                Ok(Guarded::Wait)
            }
            Verdict::Allowed => {
                self.warn_of(&limits)?;
                Ok(Guarded::Run)
            }
            Verdict::Blocked { flag, reason } => Ok(Guarded::Refuse(format!("{reason} ({flag})"))),
            Verdict::Ask { reason, .. } if plan.phase != Phase::Execute => Ok(Guarded::Refuse(reason)),
            Verdict::Ask { flag, reason } => {
                let places = behind.context.relevant_resources.clone();
                self.ask_for_call(run, &facts.name, flag, &reason, call_id, behind, places)?;
                Ok(Guarded::Wait)
            }
            Verdict::Exceeded(limit) => {
                self.over(&limit)?;
                Ok(Guarded::Wait)
            }
        }
    }

    /// Pauses the plan when a budget of money or time is used up; says whether it did.
    pub(super) fn over_budget(&self, plan: &Plan) -> Result<bool, Stop> {
        let limits = self.engine.look(|r| limits(self.engine, r, plan, 0))?;
        let counted = |l: &&Limit| !matches!(l.measure, Measure::StepCalls | Measure::Calls);
        let of_steps: Vec<Limit> = limits.iter().filter(counted).cloned().collect();
        match guards::exceeded(&of_steps) {
            Some(limit) => self.over(limit).map(|()| true),
            None => self.warn_of(&of_steps).map(|()| false),
        }
    }

    /// Pauses the plan at a limit, or ends its phase there where `plan.budget.on-exceeded` says so.
    fn over(&self, limit: &Limit) -> Result<(), Stop> {
        let terminate = self.engine.config.text("plan.budget.on-exceeded", None) == "terminate";
        self.write(|w, plan| {
            plan.spending.reached = Some(limit.clone());
            let limit = limit.describe(scope(plan));
            self.advance(w, plan, &Event::BudgetExceeded { limit, terminate })?;
            Ok(())
        })
    }

    /// Warns once of each limit that is nearly used up.
    fn warn_of(&self, limits: &[Limit]) -> Result<(), Stop> {
        let share = self.engine.config.get("plan.budget.warn-threshold", None).value.as_f64().unwrap_or(0.8);
        let warned = self.plan()?.spending.warned;
        let near: Vec<&Limit> =
            guards::nearly_used(limits, share).filter(|l| !warned.contains(&l.measure)).collect();
        if near.is_empty() {
            return Ok(());
        }
        self.write(|w, plan| {
            for limit in &near {
                plan.spending.warned.push(limit.measure);
                let facts = json!({
                    "limit": limit, "warn_threshold": share, "scope": scope(plan),
                    "message": format!("{} of {}", limit.used, limit.describe(scope(plan))),
                });
                emit(self.engine, w, plan, "budget.warning", facts)?;
            }
            records::touch(w, plan)?;
            Ok(())
        })
    }

    /// Records the question whether a call may run as a decision that waits.
    #[allow(clippy::too_many_arguments, reason = "each is a part of one question")]
    fn ask_for_call(
        &self,
        run: &ActorRun,
        tool: &str,
        flag: &str,
        reason: &str,
        call_id: &str,
        behind: &Decision,
        places: Vec<ResourceRef>,
    ) -> Result<(), Stop> {
        let option = |text: &str, why: &str| Alternative {
            option: text.to_owned(),
            description: Some(why.to_owned()),
        };
        let draft = DecisionDraft {
            key: guard_key(flag, call_id),
            decision_type: DecisionType::ToolInvocation,
            parent: behind.key.clone(),
            question: format!("May `{tool}` run? {reason}"),
            chosen: 0,
            alternatives: vec![
                option(RUN, "This call only"),
                option(DO_NOT, "The actor is told, and goes on without it"),
            ],
            confidence: None,
            rationale: match flag {
                BY_INVARIANT => reason.to_owned(),
                _ => format!("The profile asks by `{flag}`: {reason}"),
            },
            reasoning: None,
            resources: places,
            depends_on: behind.key.iter().cloned().collect(),
            spawn: None,
            context: json!({ "request": run.requests.get(run.done), "flag": flag, "reason": reason }),
        };
        let store = &self.engine.store;
        let bytes = |value: &serde_json::Value| {
            serde_json::to_vec(value).map_err(|e| agents_domain::Error::internal(e.to_string()))
        };
        let evidence = Evidence {
            context_ref: store.put_blob(&bytes(&draft.context)?)?,
            state_ref: store.put_blob(&bytes(&run.state)?)?,
        };
        self.write(|w, plan| {
            let known = w.decisions(self.id)?;
            let (mut decision, computed) = records::decision_of(w, plan, &draft, &evidence, &known)?;
            (decision.pending, decision.approval) = (true, None);
            w.insert_decision(&decision)?;
            w.insert_confidence(decision.decision_id, &computed)?;
            records::emit_decision(self.engine, w, plan, &decision)?;
            Ok(())
        })
    }
}

/// The invariant that lets a person decide whether these files are written, as a sentence, and the files. `None` when
/// none does, or a person has approved the decision behind the write knowing that it is about such files.
fn wants_a_person(
    edits: Option<&Edits>,
    behind: &Decision,
    decisions: &[Decision],
) -> Option<(String, Vec<ResourceRef>)> {
    let enforced = invariant::enforced(decisions);
    let (resource_id, edits) = edits?;
    let asks = |texts: &[&str], paths: &[&str]| invariants::wants_approval(&enforced, texts, paths);
    let named = edits.iter().flat_map(|edit| match edit {
        FileEdit::Rename { path, to } => vec![path.as_str(), to.as_str()],
        other => vec![other.path()],
    });
    let mut touched: Vec<&str> = named.filter(|path| asks(&[], &[path]).is_some()).collect();
    touched.sort_unstable();
    touched.dedup();
    let by = asks(&[], &touched).filter(|_| !touched.is_empty())?;
    // An answer stands in the place of the decision that said what it is about.
    let answered = decisions.iter().find(|d| Some(d.decision_id) == behind.parent_decision_id);
    let known = [Some(behind), answered].into_iter().flatten().any(|d| {
        let paths: Vec<&str> = d.context.relevant_resources.iter().map(|r| r.path.as_str()).collect();
        asks(&[&d.question, &d.chosen_option], &paths).is_some()
    });
    if known && behind.approval == Some(Approval::ByPerson) {
        return None;
    }
    let reason =
        format!("It changes {}; the invariant “{}” lets a person decide that", touched.join(", "), by.text);
    let place = |path: &str| ResourceRef {
        resource_id: *resource_id,
        path: path.to_owned(),
        range: None,
        symbol: None,
        note: None,
    };
    Some((reason, touched.into_iter().map(place).collect()))
}

fn guard_key(flag: &str, call_id: &str) -> String {
    format!("{GUARD_KEY}{flag}/{call_id}")
}
