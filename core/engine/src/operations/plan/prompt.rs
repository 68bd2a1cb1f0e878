//! `plan prompt`: what a person says to a plan.

use agents_domain::ids::{DecisionId, PlanId};
use agents_domain::plan::machine::{AllowedAction, Answer, Effect, Event};
use agents_domain::plan::{ApplyMode, Awaiting, Guidance, Phase, Plan};
use agents_domain::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::records::{self, advance};
use crate::{Engine, Operation, rewind, worker};

/// Answers what a plan waits for, or gives it guidance for its next step.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prompt {
    /// The plan's id or its beginning.
    pub plan: String,
    /// The number of an option, its text, or guidance in one's own words.
    pub guidance: String,
    /// The pending decision that is answered (id or its beginning); the one the plan waits for unless given.
    #[serde(default)]
    pub decision: Option<String>,
}

/// What became of the answer.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct PromptOutput {
    pub guidance_added: GuidanceAdded,
    pub decision_created: DecisionCreated,
    pub queue: GuidanceQueue,
    pub awaiting: Option<Awaiting>,
    pub allowed_actions: Vec<AllowedAction>,
}

/// The answer.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct GuidanceAdded {
    pub plan: PlanId,
    pub guidance: String,
    /// The option it was understood as, when it was one.
    pub option: Option<String>,
    pub scope: String,
    pub phase: Phase,
    pub state_transition: String,
}

/// The decision that holds it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct DecisionCreated {
    #[serde(rename = "type")]
    pub decision_type: String,
    pub id: DecisionId,
    pub parent: Option<DecisionId>,
}

/// Guidance by whether an actor has seen it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct GuidanceQueue {
    pub pending: usize,
    pub applied: usize,
}

impl Operation for Prompt {
    const METHOD: &'static str = "plan/prompt";
    const SUMMARY: &'static str = "Answer what a plan waits for, or guide its next step";
    type Output = PromptOutput;

    fn run(self, engine: &Engine) -> Result<PromptOutput> {
        let text = super::words_of("guidance", &self.guidance)?.to_owned();
        if text.is_empty() {
            return Err(Error::validation("the guidance is empty")
                .suggest("agents plan prompt <PLAN> \"<GUIDANCE>\""));
        }
        let id = engine.plan_id(&self.plan)?;
        let answered = self.decision.as_deref().map(|text| engine.decision(text)).transpose()?;
        if let Some(decision) = answered.as_ref().filter(|d| d.plan_id != id) {
            return Err(Error::validation(format!(
                "decision {} belongs to plan {}, not to {id}",
                decision.decision_id, decision.plan_id
            )));
        }
        self.check_apply(engine, id, &text)?;
        let context_ref = engine.store.put_blob(json!({ "guidance": text }).to_string().as_bytes())?;
        let state_ref = state_now(engine, id)?;
        let output = engine.write(|w| {
            let mut plan = w.plan(id)?.ok_or_else(|| crate::lookup::missing_plan(id))?;
            let before = state_word(&plan);
            let pending: Vec<_> =
                w.decisions(id)?.into_iter().filter(|d| d.pending && d.superseded_by.is_none()).collect();
            let target = match (&answered, &plan.awaiting) {
                (Some(decision), _) => {
                    let still = pending.iter().find(|p| p.decision_id == decision.decision_id);
                    Some(still.cloned().ok_or_else(|| {
                        Error::invalid_state(format!(
                            "decision {} does not wait for an answer",
                            decision.decision_id
                        ))
                        .suggest(format!("agents plan explain {}", decision.decision_id))
                    })?)
                }
                (None, Some(awaiting)) => {
                    pending.iter().find(|p| Some(p.decision_id) == awaiting.decision_id).cloned()
                }
                (None, None) => None,
            };
            let asked = match &target {
                Some(decision) => Some(records::awaiting_decision(&plan, decision)),
                None => plan.awaiting.clone(),
            };
            let answer = Answer::parse(&text, asked.as_ref());
            let option = option_meant(&text, asked.as_ref())?;
            let intervention = records::intervention(
                w,
                &plan,
                records::Answer {
                    target: target.as_ref(),
                    chosen: option.clone().unwrap_or_else(|| text.clone()),
                    guidance: &text,
                    context_ref: &context_ref,
                    state_ref: &state_ref,
                },
            )?;
            w.insert_decision(&intervention)?;
            records::emit_decision(engine, w, &plan, &intervention)?;
            if let Some(target) = &target {
                w.supersede(target.decision_id, intervention.decision_id)?;
                let facts =
                    json!({ "decision_id": target.decision_id, "superseded_by": intervention.decision_id });
                records::emit(engine, w, &plan, "decision.superseded", facts)?;
            }
            let waited_for = plan.awaiting.as_ref().and_then(|a| a.decision_id);
            let other = target.as_ref().is_some_and(|t| waited_for != Some(t.decision_id));
            if !other {
                for effect in advance(engine, w, &mut plan, &Event::Prompt(answer))? {
                    if let Effect::QueueGuidance { option } = effect {
                        plan.guidance.push(Guidance {
                            decision_id: intervention.decision_id,
                            text: option.unwrap_or_else(|| text.clone()),
                            applied: false,
                        });
                        records::touch(w, &mut plan)?;
                    }
                }
                let next =
                    pending.iter().find(|p| target.as_ref().is_some_and(|t| t.decision_id != p.decision_id));
                if let Some(next) = next {
                    let first = records::awaiting_decision(&plan, next);
                    advance(engine, w, &mut plan, &Event::DecisionsPending { first })?;
                }
            }
            Ok(PromptOutput {
                guidance_added: GuidanceAdded {
                    plan: id,
                    guidance: text.clone(),
                    option,
                    scope: "next execution step".to_owned(),
                    phase: plan.phase,
                    state_transition: format!("{before} -> {}", state_word(&plan)),
                },
                decision_created: DecisionCreated {
                    decision_type: "user_intervention".to_owned(),
                    id: intervention.decision_id,
                    parent: intervention.parent_decision_id,
                },
                queue: GuidanceQueue {
                    pending: plan.guidance.iter().filter(|g| !g.applied).count(),
                    applied: plan.guidance.iter().filter(|g| g.applied).count(),
                },
                awaiting: plan.awaiting.clone(),
                allowed_actions: records::allowed(&plan),
            })
        })?;
        let plan = engine.plan(&id.to_string())?;
        let runnable = plan.status().wants_worker();
        if runnable && !engine.store.is_leased(id)? {
            engine.start_worker(id)?;
        }
        Ok(output)
    }
}

impl Prompt {
    /// An answer that applies the plan is checked like `plan apply`.
    fn check_apply(&self, engine: &Engine, id: PlanId, text: &str) -> Result<()> {
        let plan = engine.plan(&id.to_string())?;
        let Some(awaiting) = plan.awaiting.as_ref().filter(|a| a.decision_id.is_none()) else {
            return Ok(());
        };
        let Answer::Option(at) = Answer::parse(text, Some(awaiting)) else { return Ok(()) };
        match awaiting.options.get(at).map(String::as_str) {
            Some("apply") => worker::apply_preflight(engine, &plan, ApplyMode::Commit),
            Some("cancel" | "revise") => worker::refuse_half_made(engine, &plan),
            _ => Ok(()),
        }
    }
}

/// The option that is meant by its number or its text; `None` for words of one's own. A number that none has is refused.
pub(super) fn option_meant(text: &str, asked: Option<&Awaiting>) -> Result<Option<String>> {
    let (Answer::Option(at), Some(asked)) = (Answer::parse(text, asked), asked) else { return Ok(None) };
    let option = asked.options.get(at).cloned().ok_or_else(|| {
        Error::validation(format!("there is no option {text}: there are {}", asked.options.len()))
            .detail(numbered(&asked.options))
    })?;
    Ok(Some(option))
}

/// Options as `plan prompt` counts them.
fn numbered(options: &[String]) -> String {
    options.iter().enumerate().map(|(at, o)| format!("{}. {o}", at + 1)).collect::<Vec<_>>().join("\n")
}

/// Where the actor is when a person says something beside a question: a correction of it goes on from there.
fn state_now(engine: &Engine, id: PlanId) -> Result<String> {
    let run =
        engine.view(|r| Ok(r.plan(id)?.map(|plan| r.actor_run(id, plan.phase)).transpose()?.flatten()))?;
    match run {
        Some(run) => rewind::keep_run(engine, &run),
        None => Ok(engine.store.put_blob(b"null")?),
    }
}

/// The state as the prompt's transition shows it.
fn state_word(plan: &Plan) -> &'static str {
    if plan.awaiting.is_some() { "awaiting_input" } else { plan.state.as_str() }
}
