//! An actor that people define as the strategy or execution actor of a plan: model calls happen inside its steps, tool
//! calls are requests.
//!
//! In Strategize its answer becomes a decision, or several where it is JSON with `decisions`. In Execute every node that
//! writes gets a decision of its own, so that each line can be traced to the node behind it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agents_domain::QualifiedName;
use agents_domain::decision::{Alternative, DecisionType};
use agents_domain::language_server::binding::{Binding, Lent, Rule};
use agents_domain::plan::{Phase, PhaseSummary};
use agents_domain::ports::BoxFuture;
use agents_domain::ports::actor::{
    Actor, ActorFailure, ActorHost, ActorWorkspace, DecisionDraft, KnownDecision, Observation, Progress,
    Request, StepCost, StepInput, StepOutcome, StepOutput,
};
use agents_domain::ports::model::{
    ChatDelta, ChatReply, ChatRequest, ModelFailure, ModelFailureKind, ModelTrace, Models,
};
use agents_domain::ports::tool::LocalTool;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Effect, Machine, Program, Status, Told, Toolbox};

/// How often it is looked whether the plan is to stop while models answer.
const LOOK: Duration = Duration::from_millis(100);

/// Characters of an answer that a decision keeps as its reason.
const LONGEST_REASON: usize = 8_000;

/// An actor made of definitions.
pub struct DefinedActor {
    program: Program,
    models: Arc<dyn Models>,
    most_calls: usize,
}

impl DefinedActor {
    /// An actor with those it needs behind it. `most_calls`: tool calls for one answer of a model.
    ///
    /// # Errors
    /// Definitions that cannot run.
    pub fn new(
        library: &[agents_domain::actor::ActorDefinition],
        models: Arc<dyn Models>,
        most_calls: usize,
    ) -> Result<Self, String> {
        Ok(Self { program: Program::new(library)?, models, most_calls })
    }
}

/// What it keeps from step to step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct State {
    machine: Machine,
    begun: bool,
    /// Requests of the last step that a tool call waits for.
    waiting: Vec<Waiting>,
    /// The answer of the phase, for who comes after.
    answer: Option<String>,
    /// What was spent and said to be.
    told_usd: f64,
    told_tokens: u64,
    /// The phase was over once; what is asked now mends it.
    mending: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Waiting {
    request: usize,
    task: u64,
    id: String,
}

impl Actor for DefinedActor {
    fn step<'a>(
        &'a self,
        input: StepInput,
        host: &'a dyn ActorHost,
    ) -> BoxFuture<'a, Result<StepOutput, ActorFailure>> {
        Box::pin(async move { self.run_step(input, host).await })
    }

    fn lent(&self, _: &BTreeMap<String, Value>) -> Result<Lent, String> {
        let main = self.program.main();
        let agents = main.actors.values().map(|agent| (&agent.lsp, &agent.lsp_capabilities));
        let nodes = main.routes.values().flat_map(|route| route.nodes.values());
        let all = agents.chain(nodes.map(|node| (&node.lsp, &node.lsp_capabilities)));
        let mut names: Vec<QualifiedName> = Vec::new();
        let mut rule = Rule::default();
        for (lsp, _) in all.filter(|(lsp, _)| !lsp.is_null()) {
            match Lent::read(lsp, &Value::Null)?.servers {
                Some(Binding::Explicit(more)) => names.extend(more),
                Some(Binding::By(more)) => {
                    rule.languages.extend(more.languages);
                    rule.auto = rule.auto.or(more.auto);
                }
                None => {}
            }
        }
        // Each part is offered what it is lent; what the plan holds ready is all of that.
        let servers = match (rule.auto, rule.languages.is_empty(), names.is_empty()) {
            (Some(true), ..) => Some(Binding::By(Rule { auto: Some(true), languages: Vec::new() })),
            (_, false, true) => Some(Binding::By(Rule { auto: None, languages: rule.languages })),
            (_, _, false) => Some(Binding::Explicit(names)),
            _ => None,
        };
        Ok(Lent { servers, capabilities: None })
    }

    fn local_tools(&self) -> Vec<LocalTool> {
        self.program.local_tools()
    }

    fn skills(&self, _: &BTreeMap<String, Value>) -> Vec<QualifiedName> {
        self.program.skills()
    }
}

impl DefinedActor {
    async fn run_step(&self, input: StepInput, host: &dyn ActorHost) -> Result<StepOutput, ActorFailure> {
        let mut state: State = match &input.state {
            Value::Null => State::default(),
            value => serde_json::from_value(value.clone())
                .map_err(|error| stuck(format!("the state of the run cannot be read: {error}")))?,
        };
        let toolbox = toolbox(&self.program, host)?;
        if !state.begun {
            state.begun = true;
            let context = context_of(&input);
            state.machine = Machine::new(&self.program, &context).with_most_calls(self.most_calls);
            state.machine.say(&self.program, &toolbox, &task(&input, host));
        } else if state.answer.is_some() && !input.findings.is_empty() {
            state.mending += 1;
            state.answer = None;
            state.machine.say(&self.program, &toolbox, &findings(&input));
        }
        if input.state != Value::Null {
            state.machine.guidance.extend(input.guidance.iter().cloned());
        }
        let told = observed(&input, &mut state);
        state.machine.tell(&self.program, &toolbox, told);
        let effects = state.machine.effects(&self.program, &toolbox);
        let asks: Vec<&Effect> =
            effects.iter().filter(|effect| matches!(effect, Effect::Ask { .. })).collect();
        if !asks.is_empty() {
            let count = u32::try_from(asks.len()).unwrap_or(u32::MAX);
            host.progress(Progress { label: names(&asks), done: 0, total: Some(count) });
            match stoppable(self.ask_all(&asks, &host), host).await {
                Some(told) => state.machine.tell(&self.program, &toolbox, told),
                // Nothing was kept of what was asked; it is asked again.
                None => return output(&state, Vec::new(), StepOutcome::Continue, StepCost::default()),
            }
        }
        let effects = state.machine.effects(&self.program, &toolbox);
        let cost = cost(&mut state);
        match state.machine.status() {
            Status::Failed => {
                let why = state.machine.failure.clone().unwrap_or_default();
                Err(stuck(format!("{}: {why}", self.program.main().name)))
            }
            Status::Done => {
                let answer = state.machine.answer();
                state.answer = Some(answer.clone());
                let (requests, summary) = self.done(&input, &answer, &state)?;
                output(&state, requests, StepOutcome::Done(summary), cost)
            }
            Status::Running => {
                let requests = self.requests(&input, &mut state, &effects, &toolbox);
                output(&state, requests, StepOutcome::Continue, cost)
            }
        }
    }

    /// Asks all models at once; the answers come in the order of the questions, whichever was first.
    async fn ask_all(&self, asks: &[&Effect], listener: &dyn Listener) -> Vec<Told> {
        let all = asks.iter().filter_map(|effect| match effect {
            Effect::Ask { task, agent, model, request, wait } => Some(async move {
                if !wait.is_zero() {
                    tokio::time::sleep(*wait).await;
                }
                let answer = ask(&*self.models, (agent, model), request, listener).await;
                Told::Answer { task: *task, answer }
            }),
            Effect::Call { .. } => None,
        });
        futures::future::join_all(all).await
    }

    /// Tool calls as requests; before the first that writes of a node, the decision it is made under.
    fn requests(
        &self,
        input: &StepInput,
        state: &mut State,
        effects: &[Effect],
        toolbox: &Toolbox,
    ) -> Vec<Request> {
        let mut requests: Vec<Request> = Vec::new();
        state.waiting.clear();
        for effect in effects {
            let Effect::Call { task, id, tool, args, by, reason, .. } = effect else { continue };
            let looks = toolbox.all.iter().any(|spec| spec.name == *tool && spec.capability.read_only);
            let decision =
                (!looks).then(|| decision_key(input.phase, &self.program.main().name, by, state.mending));
            if let Some(key) = &decision {
                let stands = |known: &KnownDecision| known.key.as_ref() == Some(key);
                let drafted =
                    requests.iter().any(|r| matches!(r, Request::RecordDecision(draft) if draft.key == *key));
                if !drafted && !input.decisions.iter().any(stands) {
                    requests.push(Request::RecordDecision(draft(
                        input,
                        key,
                        by,
                        reason,
                        tool,
                        state.mending,
                    )));
                }
            }
            state.waiting.push(Waiting { request: requests.len(), task: *task, id: id.clone() });
            let call_id = format!("{}/{id}", input.phase_word());
            requests.push(Request::Tool { call_id, tool: tool.clone(), args: args.clone(), decision });
        }
        requests
    }

    /// What the phase leaves: in Strategize the decisions, everywhere a summary.
    fn done(
        &self,
        input: &StepInput,
        answer: &str,
        state: &State,
    ) -> Result<(Vec<Request>, PhaseSummary), ActorFailure> {
        let headline = headline(answer);
        let value = json_in(answer);
        if input.estimating {
            let facts = value.ok_or_else(|| {
                stuck("an estimate has to be JSON with `cost_usd`, a number or `{low, high}`".to_owned())
            })?;
            return Ok((Vec::new(), PhaseSummary { headline, lines: Vec::new(), facts }));
        }
        let lines: Vec<String> =
            answer.lines().map(str::to_owned).filter(|line| !line.trim().is_empty()).collect();
        let facts = json!({
            "actor": self.program.main().name,
            "tool_calls": state.machine.tool_calls,
            "tokens_in": state.machine.usage.input,
            "tokens_out": state.machine.usage.output,
        });
        let summary = PhaseSummary { headline, lines: lines.into_iter().take(200).collect(), facts };
        let requests = match input.phase {
            Phase::Strategize => strategy(input, &self.program.main().name, answer, value)?,
            _ => Vec::new(),
        };
        Ok((requests, summary))
    }
}

/// A word for the phase, for names of calls.
trait PhaseWord {
    fn phase_word(&self) -> &'static str;
}

impl PhaseWord for StepInput {
    fn phase_word(&self) -> &'static str {
        if self.phase == Phase::Execute { "execute" } else { "strategize" }
    }
}

/// What is told of a question to a model while it is answered, and after.
pub trait Listener: Sync {
    /// A piece of an answer.
    fn heard(&self, piece: &ChatDelta);
    /// An agent asked a model, whatever came of it.
    fn asked(&self, trace: &ModelTrace);
}

impl Listener for &dyn ActorHost {
    fn heard(&self, piece: &ChatDelta) {
        ActorHost::heard(*self, piece);
    }

    fn asked(&self, trace: &ModelTrace) {
        ActorHost::asked(*self, trace);
    }
}

/// Asks a model, within the time it has.
pub async fn ask(
    models: &dyn Models,
    (agent, model): (&str, &str),
    request: &ChatRequest,
    listener: &dyn Listener,
) -> Result<ChatReply, ModelFailure> {
    let found = models.find(model)?;
    let began = Instant::now();
    let mut watch = |piece: ChatDelta| listener.heard(&piece);
    let asked = found.chat(request, &mut watch);
    let answer = match request.options.timeout {
        None => asked.await,
        Some(limit) => tokio::time::timeout(limit, asked).await.unwrap_or_else(|_| {
            let why = format!("it took longer than {} seconds", limit.as_secs());
            Err(ModelFailure::new(ModelFailureKind::Unavailable, why))
        }),
    };
    let (provider, name) = model.split_once('/').unwrap_or(("", model));
    let mut trace = ModelTrace {
        actor: agent.to_owned(),
        provider: provider.to_owned(),
        model: name.to_owned(),
        latency_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        temperature: request.options.temperature,
        context_hash: crate::models::cassette::request_hash(request),
        ..ModelTrace::default()
    };
    match &answer {
        Ok(reply) => {
            trace.usage = reply.usage;
            trace.retries = reply.retries;
            trace.tool_calls = reply.calls.iter().map(|call| call.tool.clone()).collect();
        }
        Err(failure) => {
            trace.retries = failure.retries;
            trace.error = Some(failure.message.clone());
        }
    }
    listener.asked(&trace);
    answer
}

/// `None` when the plan is to stop.
async fn stoppable<T>(work: impl Future<Output = T>, host: &dyn ActorHost) -> Option<T> {
    let stopped = async {
        loop {
            tokio::time::sleep(LOOK).await;
            if host.stopping() {
                return;
            }
        }
    };
    tokio::select! {
        done = work => Some(done),
        () = stopped => None,
    }
}

fn toolbox(program: &Program, host: &dyn ActorHost) -> Result<Toolbox, ActorFailure> {
    let mut by_skill = BTreeMap::new();
    let mut all = host.tools();
    for skill in program.skills() {
        let tools = host.tools_of(std::slice::from_ref(&skill))?;
        by_skill.insert(skill.to_string(), tools.iter().map(|tool| tool.name.clone()).collect());
        for tool in tools {
            if !all.iter().any(|known| known.name == tool.name) {
                all.push(tool);
            }
        }
    }
    Ok(Toolbox::new(all, &program.local_tools(), by_skill).following(host.agent_skills()))
}

fn output(
    state: &State,
    requests: Vec<Request>,
    outcome: StepOutcome,
    cost: StepCost,
) -> Result<StepOutput, ActorFailure> {
    let state = serde_json::to_value(state).map_err(|error| stuck(error.to_string()))?;
    Ok(StepOutput { state, requests, progress: None, outcome, cost })
}

/// What was spent since it was said last.
fn cost(state: &mut State) -> StepCost {
    let usage = state.machine.usage;
    let (usd, tokens) = (usage.usd.unwrap_or(0.0), usage.input + usage.output);
    let cost = StepCost { usd: usd - state.told_usd, tokens: tokens.saturating_sub(state.told_tokens) };
    (state.told_usd, state.told_tokens) = (usd, tokens);
    cost
}

/// What came of tool calls. Those that were not run because one before them failed are asked for again.
fn observed(input: &StepInput, state: &mut State) -> Vec<Told> {
    let phase = input.phase_word();
    std::mem::take(&mut state.waiting)
        .into_iter()
        .filter_map(|waiting| {
            let call = format!("{phase}/{}", waiting.id);
            let result = input.observations.iter().find_map(|observation| match observation {
                Observation::Tool { call_id, result } if *call_id == call => Some(Ok(result.clone())),
                Observation::Failed { request, message, .. } if *request == waiting.request => {
                    Some(Err(message.clone()))
                }
                _ => None,
            })?;
            Some(Told::Result { task: waiting.task, id: waiting.id, result })
        })
        .collect()
}

/// What prompts see as `context`: the plan's arguments, and what the plan is about (ACTOR-026).
fn context_of(input: &StepInput) -> Value {
    let mut context: serde_json::Map<String, Value> =
        input.arguments.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    for (key, value) in [
        ("task_description", json!(input.description)),
        ("definition_of_done", json!(input.definition_of_done)),
        ("invariants", json!(input.invariants.iter().map(|one| one.text.clone()).collect::<Vec<_>>())),
        ("phase", json!(input.phase_word())),
    ] {
        context.entry(key.to_owned()).or_insert(value);
    }
    Value::Object(context)
}

/// The message that begins a phase.
fn task(input: &StepInput, host: &dyn ActorHost) -> String {
    let mut text = format!("# Task\n{}\n", input.description.trim());
    let mut part = |title: &str, body: String| {
        if !body.trim().is_empty() {
            text.push_str(&format!("\n# {title}\n{}\n", body.trim()));
        }
    };
    part("Done when", input.definition_of_done.clone());
    let arguments = input.arguments.iter().map(|(name, value)| format!("- {name}: {value}\n"));
    part("Arguments", arguments.collect());
    part("Invariants", input.invariants.iter().map(|one| format!("- {}\n", one.text)).collect());
    part("Guidance", input.guidance.iter().map(|one| format!("- {one}\n")).collect());
    let resource = |workspace: &ActorWorkspace| {
        let how = if workspace.read_only { ", read-only" } else { "" };
        format!("- Resource {} (id {}){how}\n", workspace.name, workspace.resource_id)
    };
    part("Resources", host.workspaces().iter().map(resource).collect());
    if input.phase == Phase::Execute {
        let decisions = input.decisions.iter().filter(|decision| decision.key.is_some());
        part("Decided", decisions.map(|d| format!("- {}: {}\n", d.question, d.chosen_option)).collect());
        let strategy = input.handover.get("answer").and_then(Value::as_str).unwrap_or_default();
        part("Strategy", strategy.to_owned());
    }
    text
}

/// The message that asks for mending.
fn findings(input: &StepInput) -> String {
    let mut text =
        "# Validations did not pass\nMend what they found, in the files as they are now.\n".to_owned();
    for finding in &input.findings {
        let value = serde_json::to_value(finding).unwrap_or_default();
        text.push_str(&format!("\n{value}\n"));
    }
    text
}

fn decision_key(phase: Phase, actor: &QualifiedName, by: &str, mending: u32) -> String {
    let word = if phase == Phase::Execute { "execute" } else { "strategize" };
    match mending {
        0 => format!("{word}/{actor}/{by}"),
        n => format!("{word}/{actor}/{by}/mend-{n}"),
    }
}

/// The decision of a node that is about to write.
fn draft(input: &StepInput, key: &str, by: &str, reason: &str, tool: &str, mending: u32) -> DecisionDraft {
    let chosen = headline(if reason.trim().is_empty() { tool } else { reason });
    let parent = input
        .decisions
        .iter()
        .find(|known| {
            matches!(known.decision_type, DecisionType::StrategyChoice | DecisionType::UserIntervention)
        })
        .and_then(|known| known.key.clone());
    let decision_type = match mending {
        0 => DecisionType::ImplementationChoice,
        _ => DecisionType::ValidationResponse,
    };
    DecisionDraft {
        key: key.to_owned(),
        decision_type,
        parent: parent.filter(|_| input.phase == Phase::Execute),
        question: format!("How does `{by}` carry this out?"),
        chosen: 0,
        alternatives: vec![Alternative { option: chosen, description: None }],
        confidence: None,
        rationale: if reason.trim().is_empty() { format!("`{by}` calls {tool}") } else { bounded(reason) },
        reasoning: None,
        resources: Vec::new(),
        depends_on: Vec::new(),
        context: json!({ "node": by, "tool": tool }),
        spawn: None,
    }
}

/// A decision as an answer of Strategize may say it.
#[derive(Deserialize)]
struct Said {
    #[serde(default)]
    key: Option<String>,
    question: String,
    #[serde(default)]
    options: Vec<String>,
    chosen: String,
    #[serde(default)]
    rationale: Option<String>,
    #[serde(default)]
    confidence: Option<f64>,
}

/// The decisions of Strategize: those the answer lists, else the answer as a whole.
fn strategy(
    input: &StepInput,
    actor: &QualifiedName,
    answer: &str,
    value: Option<Value>,
) -> Result<Vec<Request>, ActorFailure> {
    if answer.trim().is_empty() {
        return Err(stuck(format!("{actor} answered nothing, which is no strategy")));
    }
    let listed: Option<Vec<Said>> =
        value.and_then(|value| serde_json::from_value(value.get("decisions")?.clone()).ok());
    let listed = listed.filter(|listed| !listed.is_empty()).unwrap_or_else(|| {
        let task = input.description.lines().next().unwrap_or_default();
        vec![Said {
            key: Some("strategy".to_owned()),
            question: format!("How is this done: {}", headline(task)),
            options: Vec::new(),
            chosen: headline(answer),
            rationale: Some(bounded(answer)),
            confidence: None,
        }]
    });
    let drafts = listed.into_iter().take(100).enumerate().map(|(at, said)| {
        let mut options = said.options;
        let chosen = options.iter().position(|option| *option == said.chosen).unwrap_or_else(|| {
            options.insert(0, said.chosen.clone());
            0
        });
        let mut seen = std::collections::BTreeSet::new();
        let chosen_text = options[chosen].clone();
        options.retain(|option| seen.insert(option.clone()));
        let chosen = options.iter().position(|option| *option == chosen_text).unwrap_or(0);
        Request::RecordDecision(DecisionDraft {
            key: format!("strategy/{}", said.key.unwrap_or_else(|| format!("{}", at + 1))),
            decision_type: DecisionType::StrategyChoice,
            parent: None,
            question: said.question,
            chosen,
            alternatives: options
                .into_iter()
                .map(|option| Alternative { option, description: None })
                .collect(),
            confidence: said.confidence.filter(|c| (0.0..=1.0).contains(c)),
            rationale: said.rationale.unwrap_or_else(|| "The actor gave no reason.".to_owned()),
            reasoning: None,
            resources: Vec::new(),
            depends_on: Vec::new(),
            context: json!({ "actor": actor, "answer": bounded(answer) }),
            spawn: None,
        })
    });
    Ok(drafts.collect())
}

/// JSON in an answer, also in a fence.
fn json_in(answer: &str) -> Option<Value> {
    let text = answer.trim();
    let fenced = text.split("```json").nth(1).and_then(|rest| rest.split("```").next());
    serde_json::from_str(fenced.unwrap_or(text).trim()).ok().filter(Value::is_object)
}

/// The first line that says something, at most 160 characters.
fn headline(text: &str) -> String {
    let line =
        text.lines().map(|line| line.trim_start_matches(['#', ' '])).find(|line| !line.trim().is_empty());
    let line = line.unwrap_or("Done").trim();
    let cut: String = line.chars().take(160).collect();
    if cut.len() < line.len() { format!("{cut}...") } else { cut }
}

fn bounded(text: &str) -> String {
    text.chars().take(LONGEST_REASON).collect()
}

fn names(asks: &[&Effect]) -> String {
    let names = asks.iter().filter_map(|effect| match effect {
        Effect::Ask { agent, .. } => Some(agent.as_str()),
        Effect::Call { .. } => None,
    });
    names.collect::<Vec<_>>().join(", ")
}

fn stuck(message: String) -> ActorFailure {
    ActorFailure { message, category: "actor".to_owned(), transient: false, hints: Vec::new() }
}
