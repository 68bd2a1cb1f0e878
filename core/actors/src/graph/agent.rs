//! An agent with a model: what it asks, and what it does with the answer.

use std::time::Duration;

use agents_domain::actor::{ActorDefinition, Agent, Backing, Node, RetryPolicy, TemplateEngine};
use agents_domain::ports::model::{
    ChatMessage, ChatOptions, ChatReply, ChatRequest, ModelFailure, StopReason, Usage,
};
use agents_domain::template;
use serde_json::{Value, json};

use super::machine::{Effect, Out, is_passing};
use super::memory;
use super::program::Program;
use super::state::{AgentTask, Machine, Pending, Task, TaskKind};
use super::toolbox::Toolbox;

/// Times a model may answer beside the schema of its answers.
const MISFITS: u32 = 2;

/// Bytes of a tool's result that a model is given.
const LONGEST_RESULT: usize = 24_000;

impl Machine {
    pub(super) fn agent_effects(
        &self,
        program: &Program,
        toolbox: &Toolbox,
        id: u64,
        of: usize,
        task: &AgentTask,
    ) -> Result<Vec<Effect>, String> {
        let open: Vec<&Pending> = task.pending.iter().filter(|pending| pending.result.is_none()).collect();
        let by = by(of, task);
        if !open.is_empty() {
            let reason = match task.messages.iter().rev().find(|m| matches!(m, ChatMessage::Assistant { .. }))
            {
                Some(ChatMessage::Assistant { text, .. }) => text.clone(),
                _ => String::new(),
            };
            let call = |pending: &Pending| Effect::Call {
                task: id,
                id: pending.id.clone(),
                tool: toolbox
                    .find(&pending.call.tool)
                    .map_or(pending.call.tool.clone(), |tool| tool.name.clone()),
                args: pending.call.arguments.clone(),
                by: by.clone(),
                reason: reason.clone(),
                wait: Duration::ZERO,
                timeout: None,
            };
            return Ok(open.into_iter().map(call).collect());
        }
        let definition = program.definition(of)?;
        let agent = program.agent(of, &task.who)?;
        let node = task.node.as_ref().map(|(route, id)| program.node(of, route, id)).transpose()?;
        let model = match program.backing(of, &agent)? {
            Backing::Model(model) => model,
            Backing::Actor(name) => name.to_string(),
        };
        let system = self.guided(self.system_prompt(definition, of, &agent, &task.who.name())?);
        let mut messages = self.memory.get(&memory_key(of, task)).cloned().unwrap_or_default();
        messages.push(ChatMessage::User { text: task.input.clone() });
        messages.extend(task.messages.iter().cloned());
        let config = &agent.config;
        let mut tools = toolbox.of(&agent, node);
        let system = toolbox.prompt(system, &tools);
        if task.calls >= self.most_calls {
            // Enough was looked up: now it has to answer.
            tools.clear();
        }
        let timeout = node.and_then(|node| node.timeout).map(Duration::from_secs);
        let options = ChatOptions {
            temperature: self.temperature.or(config.temperature),
            max_tokens: config.max_tokens,
            response_format: config.response_format.clone().map(Value::Object),
            extra: config.options.clone(),
            timeout,
        };
        let request = Box::new(ChatRequest { system, messages, tools, options });
        let policy = node.and_then(|node| node.retry_policy.clone()).unwrap_or_default();
        Ok(vec![Effect::Ask {
            task: id,
            agent: task.who.name(),
            model,
            request,
            wait: pause(&policy, task.failed),
        }])
    }

    /// The prompt with what people said since the run began.
    fn guided(&self, system: Option<String>) -> Option<String> {
        if self.guidance.is_empty() {
            return system;
        }
        let words: String = self.guidance.iter().map(|one| format!("\n- {one}")).collect();
        let before = system.map(|system| format!("{system}\n\n")).unwrap_or_default();
        Some(format!("{before}What the person said meanwhile:{words}"))
    }

    /// The prompt with everything its template asks for (2.4).
    fn system_prompt(
        &self,
        definition: &ActorDefinition,
        of: usize,
        agent: &Agent,
        name: &str,
    ) -> Result<Option<String>, String> {
        let Some(prompt) = &agent.config.system_prompt else { return Ok(None) };
        if definition.cleveragents.template_engine == TemplateEngine::None {
            return Ok(Some(prompt.clone()));
        }
        let values = json!({
            "context": self.contexts.get(&of),
            "prompts": definition.prompts,
            "templates": definition.templates,
        });
        let includes: Vec<(String, String)> = definition
            .templates
            .iter()
            .filter_map(|(name, value)| {
                let text = value.get("template").unwrap_or(value).as_str()?;
                Some((name.clone(), text.to_owned()))
            })
            .collect();
        template::render_with(prompt, &values, &includes)
            .map(Some)
            .map_err(|why| format!("the prompt of the actor `{name}` cannot be rendered: {why}"))
    }

    pub(super) fn answered(
        &mut self,
        program: &Program,
        toolbox: &Toolbox,
        id: u64,
        answer: Result<ChatReply, ModelFailure>,
    ) -> Result<(), String> {
        let Some(Task { of, kind: TaskKind::Agent(task), .. }) = self.tasks.get(&id) else { return Ok(()) };
        let (of, mut task) = (*of, task.clone());
        let name = task.who.name();
        let agent = program.agent(of, &task.who)?;
        let node = task.node.as_ref().map(|(route, id)| program.node(of, route, id)).transpose()?;
        let reply = match answer {
            Ok(reply) => reply,
            Err(failure) => {
                task.failed += 1;
                let most =
                    node.and_then(|node| node.retry_policy.as_ref()).map_or(1, |policy| policy.max_attempts);
                if task.failed < most && is_passing(&failure) {
                    self.put(id, task);
                    return Ok(());
                }
                let hints = failure.hints.iter().map(|hint| format!("\n{hint}")).collect::<String>();
                return Err(format!(
                    "the model of the actor `{name}` did not answer: {}{hints}",
                    failure.message
                ));
            }
        };
        self.spend(reply.usage);
        task.messages.push(said(&reply));
        if reply.calls.is_empty() {
            if reply.stop == StopReason::Refused {
                return Err(format!("the model of the actor `{name}` refused to answer"));
            }
            if let Some(why) = misfit(&agent, &reply.text) {
                task.misfits += 1;
                if task.misfits > MISFITS {
                    return Err(format!(
                        "the answers of the actor `{name}` do not fit its `response_format`: {why}"
                    ));
                }
                let text = format!(
                    "This does not fit the schema of the answer: {why}. Answer again, with JSON only."
                );
                task.messages.push(ChatMessage::User { text });
                self.put(id, task);
                return Ok(());
            }
            let memory = self.memory.entry(memory_key(of, &task)).or_default();
            memory::remember(memory, agent.remembers(), &task.input, &reply.text);
            if memory.is_empty() {
                self.memory.remove(&memory_key(of, &task));
            }
            self.finish(program, id, Out::text(reply.text));
            return Ok(());
        }
        let offered = toolbox.of(&agent, node);
        let by = by(of, &task);
        task.pending = Vec::new();
        for call in reply.calls {
            let known = offered.iter().find(|tool| tool.name == call.tool);
            let refusal = match known {
                _ if task.calls >= self.most_calls => {
                    Some(format!("not run: more than {} calls for one answer", self.most_calls))
                }
                None => {
                    let names: Vec<&str> = offered.iter().map(|tool| tool.name.as_str()).collect();
                    Some(format!("failed: there is no tool `{}`; there is {}", call.tool, names.join(", ")))
                }
                Some(_) if !call.arguments.is_object() => {
                    Some("failed: the arguments are no JSON object".to_owned())
                }
                Some(tool) => misfit_of(&tool.input, &call.arguments).map(|why| format!("failed: {why}")),
            };
            if refusal.is_none() {
                self.tool_calls += 1;
            }
            task.calls += 1;
            let call_name = self.name_call(&by, &call.tool);
            task.pending.push(Pending { id: call_name, call, result: refusal });
        }
        self.take_results(id, task);
        Ok(())
    }

    /// A tool that a model called has returned.
    pub(super) fn model_called(&mut self, id: u64, call: &str, result: Result<Value, String>) {
        let Some(Task { of, kind: TaskKind::Agent(task), .. }) = self.tasks.get(&id) else { return };
        let (of, mut task) = (*of, task.clone());
        let text = match result {
            Ok(value) => {
                let value = self.take_context(of, value);
                value.as_str().map_or_else(|| value.to_string(), str::to_owned)
            }
            Err(why) => format!("failed: {why}"),
        };
        let waiting = task.pending.iter_mut().find(|pending| pending.id == call && pending.result.is_none());
        if let Some(pending) = waiting {
            pending.result = Some(bounded(&text));
        }
        self.take_results(id, task);
    }

    /// Once all calls have their results, the model is told them.
    fn take_results(&mut self, id: u64, mut task: AgentTask) {
        if task.pending.iter().all(|pending| pending.result.is_some()) {
            for pending in std::mem::take(&mut task.pending) {
                task.messages.push(ChatMessage::Tool {
                    call_id: pending.call.call_id,
                    text: pending.result.unwrap_or_default(),
                });
            }
        }
        self.put(id, task);
    }

    fn put(&mut self, id: u64, task: AgentTask) {
        if let Some(known) = self.tasks.get_mut(&id) {
            known.kind = TaskKind::Agent(task);
        }
    }

    fn spend(&mut self, usage: Usage) {
        let usd = match (self.usage.usd, usage.usd) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0.0) + b.unwrap_or(0.0)),
        };
        self.usage = Usage {
            input: self.usage.input + usage.input,
            cached: self.usage.cached + usage.cached,
            output: self.usage.output + usage.output,
            usd,
        };
    }
}

/// The wait before a node is tried again.
pub(super) fn pause(policy: &RetryPolicy, failed: u32) -> Duration {
    if failed == 0 {
        return Duration::ZERO;
    }
    let exponent = i32::try_from(failed - 1).unwrap_or(i32::MAX);
    let seconds = (policy.initial_interval * policy.backoff_factor.powi(exponent)).min(policy.max_interval);
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::ZERO)
}

fn said(reply: &ChatReply) -> ChatMessage {
    ChatMessage::Assistant { text: reply.text.clone(), calls: reply.calls.clone(), kept: reply.kept.clone() }
}

/// Who calls, for names of calls and for decisions: the node, or the agent.
fn by(of: usize, task: &AgentTask) -> String {
    let who = match &task.node {
        Some((route, node)) => format!("{route}.{node}"),
        None => task.who.name(),
    };
    if of == 0 { who } else { format!("{of}:{who}") }
}

fn memory_key(of: usize, task: &AgentTask) -> String {
    format!("{of}:{}", task.who.name())
}

/// Why an answer does not fit the schema of answers, if there is one (ACTOR-023).
fn misfit(agent: &Agent, text: &str) -> Option<String> {
    let schema = agent.config.response_format.clone()?;
    let text = text.trim();
    // Models like to put JSON into a fence.
    let bare = text
        .strip_prefix("```json")
        .or_else(|| text.strip_prefix("```"))
        .and_then(|rest| rest.strip_suffix("```"))
        .unwrap_or(text);
    match serde_json::from_str::<Value>(bare.trim()) {
        Ok(value) => misfit_of(&Value::Object(schema), &value),
        Err(error) => Some(format!("it is no JSON: {error}")),
    }
}

/// The first thing in a value that its schema does not allow. A schema that is none allows everything.
pub(super) fn misfit_of(schema: &Value, value: &Value) -> Option<String> {
    let validator = jsonschema::validator_for(schema).ok()?;
    let error = validator.iter_errors(value).next()?;
    let place = error.instance_path().to_string();
    Some(if place.is_empty() { error.to_string() } else { format!("{error} (at {place})") })
}

/// The beginning of a result that is too long.
fn bounded(text: &str) -> String {
    if text.len() <= LONGEST_RESULT {
        return text.to_owned();
    }
    let end = (0..=LONGEST_RESULT).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}\n[cut here: {} more bytes]", &text[..end], text.len() - end)
}

/// The node's policy for trying again.
pub(super) fn policy(node: Option<&Node>) -> RetryPolicy {
    node.and_then(|node| node.retry_policy.clone()).unwrap_or_default()
}
