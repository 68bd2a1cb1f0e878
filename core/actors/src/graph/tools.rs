//! Tools without a model: tool actors, tool nodes and functions.

use std::time::Duration;

use agents_domain::actor::Agent;
use agents_domain::ports::tool::ToolSpec;
use agents_domain::template;
use serde_json::{Map, Value, json};

use super::agent::{pause, policy};
use super::machine::{Effect, Out};
use super::program::Program;
use super::state::{Machine, Parent, Task, TaskKind, ToolsTask};
use super::toolbox::Toolbox;

/// Keys of a result whose text stands for the whole, in this order.
const TEXTS: &[&str] = &["response", "content", "output", "result", "message", "text"];

impl Machine {
    /// A tool actor is given a message: JSON with `tool` chooses, else the first tool runs (G-27).
    pub(super) fn begin_tool_agent(
        &mut self,
        of: usize,
        agent: &Agent,
        node: Option<(String, String)>,
        message: &str,
        parent: Parent,
    ) -> Result<(), String> {
        let names: Vec<&str> = agent.config.tools.iter().map(|tool| tool.name.as_str()).collect();
        let wanted = serde_json::from_str::<Value>(message)
            .ok()
            .and_then(|value| value.get("tool").and_then(Value::as_str).map(str::to_owned));
        let tool = match wanted.filter(|wanted| names.contains(&wanted.as_str())) {
            Some(wanted) => wanted,
            None => (*names.first().ok_or("it has no tools")?).to_owned(),
        };
        self.begin_tools(of, vec![tool], Map::new(), node, message, parent);
        Ok(())
    }

    /// Tools run one after another with a message.
    pub(super) fn begin_tools(
        &mut self,
        of: usize,
        tools: Vec<String>,
        parameters: Map<String, Value>,
        node: Option<(String, String)>,
        message: &str,
        parent: Parent,
    ) {
        let by = match &node {
            Some((route, id)) => format!("{route}.{id}"),
            None => "tool".to_owned(),
        };
        let first = tools.first().cloned().unwrap_or_default();
        let id = self.name_call(&by, &first);
        let task = ToolsTask {
            tools,
            at: 0,
            input: message.to_owned(),
            parameters,
            outputs: Map::new(),
            id,
            failed: 0,
            node,
        };
        self.add_task(of, parent, TaskKind::Tools(task));
    }

    pub(super) fn tools_effects(
        &self,
        program: &Program,
        toolbox: &Toolbox,
        id: u64,
        of: usize,
        task: &ToolsTask,
    ) -> Result<Vec<Effect>, String> {
        let node = task.node.as_ref().map(|(route, id)| program.node(of, route, id)).transpose()?;
        let name = task.tools.get(task.at).cloned().unwrap_or_default();
        let Some(tool) = toolbox.find(&name) else {
            return Err(format!("there is no tool `{name}`"));
        };
        let mut args = arguments(tool, &task.input, &task.parameters);
        // A tool of the file sees what its agents share (ACTOR-082, ACTOR-083).
        if toolbox.is_local(&tool.name)
            && is_open(&tool.input)
            && let (Some(args), Some(context)) = (args.as_object_mut(), self.contexts.get(&of))
        {
            args.entry("context").or_insert_with(|| context.clone());
        }
        Ok(vec![Effect::Call {
            task: id,
            id: task.id.clone(),
            tool: tool.name.clone(),
            args,
            by: task.node.as_ref().map_or_else(|| name.clone(), |(route, id)| format!("{route}.{id}")),
            reason: String::new(),
            wait: pause(&policy(node), task.failed),
            timeout: node.and_then(|node| node.timeout).map(Duration::from_secs),
        }])
    }

    pub(super) fn called(
        &mut self,
        program: &Program,
        _toolbox: &Toolbox,
        id: u64,
        call: &str,
        result: Result<Value, String>,
    ) -> Result<(), String> {
        let Some(Task { of, kind, .. }) = self.tasks.get(&id) else { return Ok(()) };
        let of = *of;
        let TaskKind::Tools(task) = kind else {
            self.model_called(id, call, result);
            return Ok(());
        };
        if task.id != call {
            return Ok(());
        }
        let mut task = task.clone();
        let name = task.tools.get(task.at).cloned().unwrap_or_default();
        let value = match result {
            Ok(value) => value,
            Err(why) => {
                task.failed += 1;
                let node = task.node.as_ref().map(|(route, id)| program.node(of, route, id)).transpose()?;
                if task.failed < policy(node).max_attempts {
                    task.id = self.name_call("again", &task.id);
                    self.put_tools(id, task);
                    return Ok(());
                }
                let place =
                    task.node.as_ref().map(|(_, node)| format!(" of the node `{node}`")).unwrap_or_default();
                return Err(format!("the tool `{name}`{place} failed: {why}"));
            }
        };
        self.tool_calls += 1;
        let value = self.take_context(of, value);
        task.outputs.insert(name, value.clone());
        task.at += 1;
        if let Some(next) = task.tools.get(task.at).cloned() {
            let by =
                task.node.as_ref().map_or_else(|| "tool".to_owned(), |(route, id)| format!("{route}.{id}"));
            task.id = self.name_call(&by, &next);
            task.failed = 0;
            self.put_tools(id, task);
            return Ok(());
        }
        // One tool: its result. Several: each under its name.
        let out = if task.outputs.len() == 1 {
            Out { text: text_of(&value), value }
        } else {
            let text = task.outputs.iter().map(|(name, value)| format!("## {name}\n{}", text_of(value)));
            Out { text: text.collect::<Vec<_>>().join("\n\n"), value: Value::Object(task.outputs) }
        };
        self.finish(program, id, out);
        Ok(())
    }

    /// What a tool of the file did to the shared context (ACTOR-083); what is left is its result.
    pub(super) fn take_context(&mut self, of: usize, value: Value) -> Value {
        let Value::Object(mut map) = value else { return value };
        let is_whole =
            map.contains_key("result") && map.get("context").is_some_and(Value::is_object) && map.len() == 2;
        if !is_whole {
            return Value::Object(map);
        }
        if let Some(changed) = map.shift_remove("context") {
            // The whole context comes back, so what is not in it any more is gone.
            self.contexts.insert(of, changed);
        }
        map.shift_remove("result").unwrap_or_default()
    }

    fn put_tools(&mut self, id: u64, task: ToolsTask) {
        if let Some(known) = self.tasks.get_mut(&id) {
            known.kind = TaskKind::Tools(task);
        }
    }
}

/// It takes anything.
fn is_open(schema: &Value) -> bool {
    schema.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty)
        && schema.get("additionalProperties") != Some(&Value::Bool(false))
}

/// The arguments of a registered tool: those of the node, over those of a message that is JSON. A plain message is the
/// one text that the tool needs.
fn arguments(tool: &ToolSpec, message: &str, parameters: &Map<String, Value>) -> Value {
    let properties = tool.input.get("properties").and_then(Value::as_object);
    let closed = tool.input.get("additionalProperties") == Some(&Value::Bool(false));
    let takes = |name: &str| properties.is_some_and(|known| known.contains_key(name));
    let mut args = match serde_json::from_str::<Value>(message) {
        Ok(Value::Object(mut map)) => {
            map.retain(|name, _| !closed || takes(name));
            Value::Object(map)
        }
        _ => {
            let required = tool.input.get("required").and_then(Value::as_array);
            let missing: Vec<&str> = required
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .filter(|name| !parameters.contains_key(*name))
                .collect();
            match missing[..] {
                [one] => json!({ one: message }),
                _ if properties.is_none_or(Map::is_empty) && !closed => {
                    json!({ "content": message, "message": message })
                }
                _ => {
                    let usual = ["content", "message", "input", "query", "text"];
                    let named = usual.iter().find(|name| takes(name) && missing.contains(name));
                    named.map_or_else(|| json!({}), |name| json!({ *name: message }))
                }
            }
        }
    };
    template::merge(&mut args, &Value::Object(parameters.clone()));
    args
}

/// A result as the text that goes on (2.9).
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Object(map) => match TEXTS.iter().find_map(|key| map.get(*key).and_then(Value::as_str)) {
            Some(text) => text.to_owned(),
            None => value.to_string(),
        },
        other => other.to_string(),
    }
}
