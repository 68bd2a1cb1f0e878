//! The built-in model actors: one step is one turn of the model; what it calls becomes requests.

use std::sync::Arc;

use agents_domain::changes::content_hash;
use agents_domain::decision::{Alternative, DecisionType, ResourceRef};
use agents_domain::plan::children::SpawnDraft;
use agents_domain::plan::{Phase, PhaseSummary};
use agents_domain::ports::BoxFuture;
use agents_domain::ports::actor::{
    Actor, ActorFailure, ActorHost, DecisionDraft, Progress, Request, StepInput, StepOutcome, StepOutput,
};
use agents_domain::ports::model::{ChatOptions, ModelCall, ModelFailure, Models};
use agents_domain::ports::tool::ToolSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use super::plan_tools::{CREATE_SUBPLAN, FINISH, RECORD, SUBPLAN, TOO_TIGHT};
use super::state::{Pending, State, Waits};
use super::turn::{Agent, Turn};
use super::{brief, observe, plan_tools};
use crate::common::{from_state, output, to_state};
use crate::models::schema::check;

pub use super::known::ModelActorSettings;

/// Arguments of a plan that are about the model and not about the work (ACTOR-027).
pub(super) const MODEL_ARGUMENTS: &[&str] = &["model", "temperature", "max_tokens", "system_prompt"];

/// Turns of one phase; an honest model is done long before.
const MOST_TURNS: u32 = 400;
/// The same call this often in a row is told off; twice as often ends the phase.
const REPEATED: u32 = 3;

/// A model that plans in Strategize, carries out in Execute, and estimates when asked to.
pub struct ModelActor {
    /// Its name, for traces.
    pub name: String,
    /// The model it asks, `<provider>/<model>`; `None` is that of the plan's argument `model`, else of the configuration.
    pub model: Option<String>,
    /// Where models come from.
    pub models: Arc<dyn Models>,
    /// What the configuration says.
    pub settings: ModelActorSettings,
}

impl Actor for ModelActor {
    fn step<'a>(
        &'a self,
        input: StepInput,
        host: &'a dyn ActorHost,
    ) -> BoxFuture<'a, Result<StepOutput, ActorFailure>> {
        Box::pin(async move {
            if input.estimating { self.estimate(&input, host).await } else { self.work(&input, host).await }
        })
    }
}

impl ModelActor {
    async fn work(&self, input: &StepInput, host: &dyn ActorHost) -> Result<StepOutput, ActorFailure> {
        let mut state: State =
            if input.state.is_null() { State::default() } else { from_state(&input.state)? };
        if state.talk.messages.is_empty() {
            let task = brief::task(input, host, &mut state);
            state.talk.say(task);
        } else {
            observe::answer(input, &mut state);
            if let Some(news) = brief::news(input, &mut state) {
                state.talk.say(news);
            }
        }
        if state.talk.turns >= MOST_TURNS {
            return Err(stuck(format!("the model is not done after {MOST_TURNS} turns")));
        }
        let prompt = if input.phase == Phase::Execute { "executor" } else { "strategist" };
        let offered = host.tools();
        let mut agent = self.agent(prompt, input, plan_tools::all(input, offered.clone()))?;
        agent.decision.clone_from(&state.under);
        let label = if input.phase == Phase::Execute { "Working" } else { "Deciding" };
        let progress = Progress {
            label: format!("{label} with {} (turn {})", agent.model_name, state.talk.turns + 1),
            done: state.talk.turns,
            total: None,
        };
        host.progress(progress.clone());
        let turn = agent.turn(&mut state.talk, host).await?;
        let cost = state.talk.take_cost();
        let mut next = match turn {
            Turn::Stopping => return Ok(output(input.state.clone(), StepOutcome::Continue)),
            Turn::Said(text) => said(&mut state, text)?,
            Turn::Calls { calls, .. } => {
                Calls { input, host, state: &mut state, tools: &agent.tools, offered: &offered }
                    .taken(&calls, self.settings.max_calls_per_step)?
            }
        };
        let mut kept = to_state(&state)?;
        if let StepOutcome::Done(summary) = &mut next.outcome {
            summary.facts = json!({ "model": agent.model_name, "turns": state.talk.turns });
            // The other phase is told of it through this one's state.
            kept["summary"] = json!({ "headline": summary.headline, "lines": summary.lines });
        }
        Ok(StepOutput {
            state: kept,
            requests: next.requests,
            progress: Some(progress),
            outcome: next.outcome,
            cost,
        })
    }

    /// The model with its prompt, as the plan's arguments and the configuration want it.
    fn agent(&self, prompt: &str, input: &StepInput, tools: Vec<ToolSpec>) -> Result<Agent, ActorFailure> {
        let text =
            |name: &str| input.arguments.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let model_name = self
            .model
            .as_deref()
            .or_else(|| text("model"))
            .or(self.settings.model.as_deref())
            .ok_or_else(no_model)?
            .to_owned();
        let model = self.models.find(&model_name).map_err(|failure| unready(&failure))?;
        let mut system =
            self.settings.prompts.render(prompt, &[("read_only", input.read_only)]).map_err(stuck)?;
        if let Some(own) = text("system_prompt") {
            system = format!("{system}\n\n{own}");
        }
        let options = ChatOptions {
            temperature: number(input, "temperature")?,
            max_tokens: number(input, "max_tokens")?.map(|most| most as u32),
            ..ChatOptions::default()
        };
        Ok(Agent { actor: self.name.clone(), decision: None, model, model_name, system, tools, options })
    }

    /// One turn without tools, answered as a range.
    async fn estimate(&self, input: &StepInput, host: &dyn ActorHost) -> Result<StepOutput, ActorFailure> {
        #[derive(Deserialize)]
        struct Estimate {
            low: f64,
            high: f64,
            reason: String,
        }
        let mut state = State::default();
        let task = brief::task(input, host, &mut state);
        state.talk.say(task);
        let mut agent = self.agent("estimator", input, Vec::new())?;
        agent.options.response_format = Some(json!({
            "type": "object", "additionalProperties": false, "required": ["low", "high", "reason"],
            "properties": {
                "low": { "type": "number", "minimum": 0 }, "high": { "type": "number", "minimum": 0 },
                "reason": { "type": "string" }
            }
        }));
        let turn = agent.turn(&mut state.talk, host).await?;
        let cost = state.talk.take_cost();
        let Turn::Said(text) = turn else {
            return Ok(output(input.state.clone(), StepOutcome::Continue));
        };
        let estimate: Estimate = crate::models::schema::json_of(&text)
            .and_then(|value| serde_json::from_value(value).map_err(|error| error.to_string()))
            .map_err(stuck)?;
        let summary = PhaseSummary {
            headline: format!("{:.2} to {:.2} US dollars: {}", estimate.low, estimate.high, estimate.reason),
            lines: Vec::new(),
            facts: json!({ "cost_usd": { "low": estimate.low, "high": estimate.high }, "model": agent.model_name }),
        };
        Ok(StepOutput { cost, ..output(Value::Null, StepOutcome::Done(summary)) })
    }
}

/// A number among a plan's arguments (ACTOR-020).
fn number(input: &StepInput, name: &str) -> Result<Option<f64>, ActorFailure> {
    let Some(value) = input.arguments.get(name).filter(|value| !value.is_null()) else { return Ok(None) };
    let (least, most) = if name == "temperature" { (0.0, 2.0) } else { (1.0, f64::from(u32::MAX)) };
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
    match number.filter(|n| (least..=most).contains(n)) {
        Some(number) => Ok(Some(number)),
        None => Err(crate::common::wrong_argument(format!(
            "argument `{name}` is {value}; it must be from {least} to {most}"
        ))),
    }
}

fn no_model() -> ActorFailure {
    ActorFailure {
        message: "no model is chosen".to_owned(),
        category: "model".to_owned(),
        transient: false,
        hints: vec![
            "agents config set actor.default.model <PROVIDER>/<MODEL>".to_owned(),
            "or name the model as the actor: --strategy-actor openai/gpt-4.1 --execution-actor openai/gpt-4.1".to_owned(),
        ],
    }
}

fn unready(failure: &ModelFailure) -> ActorFailure {
    ActorFailure {
        message: failure.message.clone(),
        category: "model".to_owned(),
        transient: false,
        hints: failure.hints.clone(),
    }
}

fn stuck(message: String) -> ActorFailure {
    ActorFailure { message, category: "actor".to_owned(), transient: false, hints: Vec::new() }
}

/// What a turn leads to.
struct Next {
    requests: Vec<Request>,
    outcome: StepOutcome,
}

/// The model only talks: it is asked once to use its tools. After work that is its summary; before any it is a failure.
fn said(state: &mut State, text: String) -> Result<Next, ActorFailure> {
    let go_on = Next { requests: Vec::new(), outcome: StepOutcome::Continue };
    if !state.nudged {
        state.nudged = true;
        state.talk.say(format!(
            "Nothing happens by words alone. Go on with your tools; when all is done, call `{FINISH}`."
        ));
        return Ok(go_on);
    }
    if !state.worked {
        let said: String = text.chars().take(200).collect();
        return Err(stuck(format!("the model talks and does nothing, also when asked again: {said}")));
    }
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned);
    let headline = lines.next().unwrap_or_else(|| "Done".to_owned());
    let lines = lines.take(crate::common::MAX_LINES).collect();
    Ok(Next { outcome: StepOutcome::Done(PhaseSummary { headline, lines, facts: Value::Null }), ..go_on })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    key: String,
    r#type: DecisionType,
    question: String,
    options: Vec<Alternative>,
    chosen: String,
    confidence: f64,
    rationale: String,
    #[serde(default)]
    parent: Option<String>,
    #[serde(default)]
    depends_on: Vec<String>,
    #[serde(default)]
    places: Vec<Place>,
    #[serde(default)]
    subplan: Option<SpawnDraft>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    #[serde(default)]
    resource: Option<String>,
    path: String,
    #[serde(default)]
    symbol: Option<String>,
    #[serde(default)]
    note: Option<String>,
}

/// Turns the calls of one turn into requests.
struct Calls<'a> {
    input: &'a StepInput,
    host: &'a dyn ActorHost,
    state: &'a mut State,
    /// As the model has them.
    tools: &'a [ToolSpec],
    /// As the host has them.
    offered: &'a [ToolSpec],
}

impl Calls<'_> {
    fn taken(mut self, calls: &[ModelCall], most: usize) -> Result<Next, ActorFailure> {
        let mut next = Next { requests: Vec::new(), outcome: StepOutcome::Continue };
        self.state.nudged = false;
        for (index, call) in calls.iter().enumerate() {
            let kind = if index >= most {
                Waits::Answered(format!("not run: more than {most} calls in one turn; call it again"))
            } else {
                let repeated = self.repeated(call)?;
                match repeated.map_or_else(|| self.one(call, calls.len() == 1, &mut next), Err) {
                    Ok(kind) => kind,
                    Err(why) => Waits::Answered(format!("failed: {why}")),
                }
            };
            self.state.pending.push(Pending { call_id: call.call_id.clone(), kind });
        }
        Ok(next)
    }

    /// The same call again and again: told off, in the end a failure.
    fn repeated(&mut self, call: &ModelCall) -> Result<Option<String>, ActorFailure> {
        let shape = content_hash(format!("{} {}", call.tool, call.arguments).as_bytes());
        let times = if self.state.last.0 == shape { self.state.last.1 + 1 } else { 1 };
        self.state.last = (shape, times);
        match times {
            n if n >= REPEATED * 2 => {
                Err(stuck(format!("the model calls `{}` again and again with the same arguments", call.tool)))
            }
            n if n >= REPEATED => {
                Ok(Some(format!("this same call was made {n} times in a row; do something else")))
            }
            _ => Ok(None),
        }
    }

    /// `Err` is for the model.
    fn one(&mut self, call: &ModelCall, alone: bool, next: &mut Next) -> Result<Waits, String> {
        let tool = self.tools.iter().find(|tool| tool.name == call.tool).ok_or_else(|| {
            let names: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
            format!("there is no tool `{}`; there is {}", call.tool, names.join(", "))
        })?;
        if !call.arguments.is_object() {
            return Err("the arguments are no JSON object; were they cut off?".to_owned());
        }
        // Those of the phase are checked by whoever runs them, who also knows other spellings.
        if !self.offered.iter().any(|offered| offered.name == call.tool) {
            check(&tool.input, &call.arguments)?;
        }
        match call.tool.as_str() {
            RECORD => self.record(call, next),
            FINISH | TOO_TIGHT if !alone => {
                Err("look at the results of your other calls first, then call this alone".to_owned())
            }
            FINISH => {
                next.outcome = StepOutcome::Done(PhaseSummary {
                    headline: text_in(&call.arguments, "headline"),
                    lines: texts_in(&call.arguments, "lines"),
                    facts: Value::Null,
                });
                Ok(Waits::Finished)
            }
            TOO_TIGHT => {
                next.outcome = StepOutcome::TooTight {
                    reason: text_in(&call.arguments, "reason"),
                    decisions: texts_in(&call.arguments, "decisions"),
                };
                Ok(Waits::Finished)
            }
            SUBPLAN => self.tool(CREATE_SUBPLAN, &call.arguments, next),
            other => self.tool(other, &call.arguments, next),
        }
    }

    fn record(&mut self, call: &ModelCall, next: &mut Next) -> Result<Waits, String> {
        let recorded: Recorded =
            serde_json::from_value(call.arguments.clone()).map_err(|error| error.to_string())?;
        let key = recorded.key.clone();
        if key.starts_with("guard/") || key.starts_with("invariant/") {
            return Err("keys that begin with `guard/` or `invariant/` are not yours to give".to_owned());
        }
        let chosen = recorded
            .options
            .iter()
            .position(|option| option.option == recorded.chosen)
            .or_else(|| recorded.options.iter().position(|o| o.option.trim() == recorded.chosen.trim()))
            .ok_or("`chosen` is none of the `options`, word for word")?;
        let standing = self.input.decisions.iter().find(|d| d.key.as_deref() == Some(&key));
        let drafted = next.requests.iter().any(|r| matches!(r, Request::RecordDecision(d) if d.key == key));
        if drafted {
            return Err(format!("`{key}` is recorded twice in this turn"));
        }
        let parent = self.parent(&recorded, standing.is_some(), next)?;
        let draft = DecisionDraft {
            key: key.clone(),
            decision_type: recorded.r#type,
            parent,
            question: recorded.question,
            chosen,
            alternatives: recorded.options,
            confidence: Some(recorded.confidence),
            rationale: recorded.rationale,
            reasoning: None,
            resources: self.places(recorded.places)?,
            depends_on: recorded.depends_on,
            context: json!({ "turn": self.state.talk.turns, "call": call.call_id }),
            spawn: recorded.subplan.map(Box::new),
        };
        self.state.worked = true;
        self.state.under = Some(key.clone());
        next.requests.push(Request::RecordDecision(draft));
        Ok(Waits::Decision { request: next.requests.len() - 1, key })
    }

    /// In Execute everything hangs below what was decided in Strategize, so that it is clear what it carries out.
    fn parent(&self, recorded: &Recorded, stands: bool, next: &Next) -> Result<Option<String>, String> {
        let known = |key: &str| {
            self.input.decisions.iter().any(|d| d.key.as_deref() == Some(key))
                || next.requests.iter().any(|r| matches!(r, Request::RecordDecision(d) if d.key == key))
        };
        if let Some(parent) = &recorded.parent {
            return if known(parent) { Ok(Some(parent.clone())) } else { Err(self.no_decision(parent)) };
        }
        if self.input.phase != Phase::Execute || stands {
            return Ok(None);
        }
        let strategy: Vec<&str> = self
            .input
            .decisions
            .iter()
            .filter(|d| {
                d.decision_type == DecisionType::StrategyChoice
                    || d.decision_type == DecisionType::UserIntervention
            })
            .filter_map(|d| d.key.as_deref())
            .collect();
        match strategy[..] {
            [] => Ok(None),
            [only] => Ok(Some(only.to_owned())),
            _ => Err(format!("say with `parent` which decision this carries out: {}", strategy.join(", "))),
        }
    }

    fn no_decision(&self, key: &str) -> String {
        let keys: Vec<&str> = self.input.decisions.iter().filter_map(|d| d.key.as_deref()).collect();
        format!("there is no decision `{key}`; there is {}", keys.join(", "))
    }

    fn places(&self, places: Vec<Place>) -> Result<Vec<ResourceRef>, String> {
        let workspaces = self.host.workspaces();
        places
            .into_iter()
            .map(|place| {
                let found = match &place.resource {
                    None => workspaces.first(),
                    Some(named) => {
                        workspaces.iter().find(|w| w.name == *named || w.resource_id.to_string() == *named)
                    }
                };
                let workspace = found.ok_or_else(|| {
                    let names: Vec<&str> = workspaces.iter().map(|w| w.name.as_str()).collect();
                    format!("a place names no resource of the plan; there is {}", names.join(", "))
                })?;
                Ok(ResourceRef {
                    resource_id: workspace.resource_id,
                    path: place.path,
                    range: None,
                    symbol: place.symbol,
                    note: place.note,
                })
            })
            .collect()
    }

    fn tool(&mut self, name: &str, arguments: &Value, next: &mut Next) -> Result<Waits, String> {
        let mut args = arguments.clone();
        let offered = self.offered.iter().find(|tool| tool.name == name);
        let named = plan_tools::take_under(&mut args, offered);
        if let Some(key) = &named {
            let drafted =
                next.requests.iter().any(|r| matches!(r, Request::RecordDecision(d) if d.key == *key));
            if !drafted && !self.input.decisions.iter().any(|d| d.key.as_ref() == Some(key)) {
                return Err(self.no_decision(key));
            }
        }
        let looks = offered.is_some_and(|tool| tool.capability.read_only);
        let decision = match named.or_else(|| self.state.under.clone()) {
            None if !looks && self.input.phase == Phase::Execute => {
                return Err(format!(
                    "record with `{RECORD}` first how and why, then call this with its key as `decision`"
                ));
            }
            _ if looks => None,
            decision => decision,
        };
        // The same call under the same decision has the same name in each run: what was done is not done again.
        let of = decision.as_deref().unwrap_or("look");
        let hash = content_hash(args.to_string().as_bytes());
        let shape = format!("{of}/{name}/{}", &hash[..12]);
        let made = self.state.made.entry(shape.clone()).or_default();
        *made += 1;
        let call_id = format!("{shape}#{made}");
        self.state.worked |= !looks;
        next.requests.push(Request::Tool { call_id: call_id.clone(), tool: name.to_owned(), args, decision });
        Ok(Waits::Tool { request: next.requests.len() - 1, call: call_id })
    }
}

fn text_in(arguments: &Value, name: &str) -> String {
    arguments[name].as_str().unwrap_or_default().to_owned()
}

fn texts_in(arguments: &Value, name: &str) -> Vec<String> {
    let texts = arguments[name].as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}
