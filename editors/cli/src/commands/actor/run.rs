//! `agents actor run`: one message to an actor and its answer, outside of any plan.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Instant;

use agents_actors::graph::{Listener, Machine, Program, converse};
use agents_domain::actor::{ActorDefinition, Overrides, RouteKind, StreamKind};
use agents_domain::ports::model::{ChatDelta, ModelTrace};
use agents_domain::{Error, ErrorKind};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::ActorRunArgs;
use crate::commands::json;
use crate::failure::Outcome;
use crate::output::{Kind, TextHandle, human};
use crate::run::Run;

/// The largest file of a context that is read.
const LARGEST: u64 = 8 << 20;

/// What a run came to.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct RunReport {
    pub actor_run: ActorRun,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<Response>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_summary: Option<RunSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Inputs>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_metrics: Option<Metrics>,
}

/// What was run.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ActorRun {
    pub actor: String,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skills: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<f64>,
}

/// The answer.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Response {
    pub text: String,
}

/// What it took.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Usage {
    pub tokens: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub duration_s: f64,
    /// Such as `$0.0021`; `unknown` where the price is not known.
    pub cost: String,
    pub tool_calls: u32,
}

/// A run with a context.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct RunSummary {
    pub actor: String,
    pub context: String,
    pub temperature: Option<f64>,
    pub provider: Option<String>,
    pub model: Option<String>,
}

/// What went in.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Inputs {
    pub prompt: String,
    pub context_files: usize,
    pub context_size: String,
}

/// What came out.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Metrics {
    pub output: String,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub duration_s: f64,
    pub cost: String,
    pub tool_calls: u32,
}

/// Shows the answer as it comes, where one agent gives it.
struct Shown {
    text: Option<TextHandle>,
    shown: Mutex<String>,
}

impl Listener for Shown {
    fn heard(&self, piece: &ChatDelta) {
        let Some(handle) = &self.text else { return };
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        match piece {
            ChatDelta::Text(more) => {
                shown.push_str(more);
                handle.append(more);
            }
            // What was shown is void.
            ChatDelta::Again { .. } => {
                shown.clear();
                handle.set("");
            }
            _ => {}
        }
    }

    fn asked(&self, _: &ModelTrace) {}
}

pub fn run(run: &Run, args: ActorRunArgs) -> Outcome {
    let out = &run.out;
    if args.temperature.is_some_and(|t| !(0.0..=2.0).contains(&t)) {
        return Err(Error::new(ErrorKind::Usage, "`--temperature` must be from 0.0 to 2.0").into());
    }
    if let Some(cassette) = &args.record {
        run.env.record_models(PathBuf::from(cassette));
    }
    let engine = run.env.engine()?;
    let models = run.env.models()?;
    let store = args.context.as_deref().map(|name| context_file(run, &args, name)).transpose()?;
    let kept = store.as_deref().map_or(Ok(Value::Null), read_kept)?;
    let mut values = kept["values"].clone();
    if let Some(file) = &args.load_context {
        let text = agents_config::read_file(file.as_ref())?;
        let loaded: Value = serde_json::from_str(&text)
            .map_err(|error| Error::validation(format!("{file}: it is no JSON: {error}")))?;
        let loaded = loaded.get("values").filter(|values| values.is_object()).unwrap_or(&loaded).clone();
        if !loaded.is_object() {
            return Err(Error::validation(format!("{file}: a context is a mapping")).into());
        }
        if values.is_null() {
            values = json!({});
        }
        agents_domain::template::merge(&mut values, &loaded);
    }
    let skills = args.skills.iter().map(|name| name.parse()).collect::<Result<Vec<_>, _>>();
    let skills =
        skills.map_err(|error: agents_domain::name::InvalidName| Error::validation(error.to_string()))?;
    let overrides = Overrides { skills, ..Overrides::default() };
    let library = engine.runnable_actor(&args.name, &overrides, values.is_object().then_some(&values))?;
    let actor = &library[0];
    permitted(actor, &args)?;
    let program = Program::new(&library).map_err(Error::validation)?;
    if !program.skills().is_empty() || !program.local_tools().is_empty() {
        out.warn("Tools and skills are not available in `actor run`; an actor has them in plans.");
    }
    let mut machine = Machine::new(&program, &values).with_temperature(args.temperature);
    if let Ok(memory) = serde_json::from_value(kept["memory"].clone()) {
        machine.memory = memory;
    }
    let files = kept["files"].as_array().cloned().unwrap_or_default();
    let message = with_files(&args.prompt, &files);
    let is_single = matches!(actor.entry(), Some(agents_domain::actor::Entry::Agent(_)));
    let to_file = args.output.is_some();
    let handle = (!to_file).then(|| out.text(None));
    let shown = Shown { text: handle.filter(|_| is_single), shown: Mutex::default() };
    let began = Instant::now();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?;
    let answered = runtime.block_on(converse(&program, &mut machine, &message, &*models, &shown));
    let usage = machine.usage;
    let _ = engine.count_actor_run(&actor.name, usage.usd.unwrap_or(0.0));
    let answer = answered.map_err(|why| Error::new(ErrorKind::Provider, why))?;
    let streamed = shown.shown.into_inner().unwrap_or_else(PoisonError::into_inner);
    match &shown.text {
        Some(handle) if streamed != answer => {
            handle.set(&answer);
        }
        None if !to_file => {
            out.text(None).append(&answer);
        }
        _ => {}
    }
    if let Some(file) = &store {
        keep(file, args.context.as_deref().unwrap_or_default(), &kept, &values, &machine)?;
    }
    let seconds = (began.elapsed().as_secs_f64() * 100.0).round() / 100.0;
    let cost = usage.usd.map_or_else(|| "unknown".to_owned(), |usd| format!("${usd:.4}"));
    let tokens = usage.input + usage.output;
    if let Some(path) = &args.output {
        std::fs::write(path, &answer)
            .map_err(|error| Error::new(ErrorKind::Io, format!("{path}: {error}")))?;
        let report = RunReport {
            actor_run: ActorRun {
                actor: actor.name.to_string(),
                output: Some(path.clone()),
                tokens: Some(tokens),
                duration_s: Some(seconds),
                ..ActorRun::default()
            },
            response: None,
            usage: None,
            run_summary: None,
            inputs: None,
            result_metrics: None,
        };
        out.set_data(json(&report)?);
        out.ok(format!("Output written to {path} ({})", human::bytes(answer.len() as u64)));
        return Ok(());
    }
    let (provider, model) = actor.shown_model();
    let temperature = args.temperature.or_else(|| {
        let agent = actor.default_agent().and_then(|name| actor.actors.get(name))?;
        agent.config.temperature
    });
    let context_size = files.iter().filter_map(|file| file["content"].as_str()).map(str::len).sum::<usize>();
    let usage = Usage {
        tokens,
        input_tokens: usage.input,
        output_tokens: usage.output,
        duration_s: seconds,
        cost,
        tool_calls: machine.tool_calls,
    };
    let report = RunReport {
        actor_run: ActorRun {
            actor: actor.name.to_string(),
            kind: Some("graph".to_owned()),
            temperature,
            skill: args.skills.first().cloned(),
            skills: Some(args.skills.clone()),
            ..ActorRun::default()
        },
        response: Some(Response { text: answer }),
        run_summary: args.context.as_ref().map(|context| RunSummary {
            actor: actor.name.to_string(),
            context: context.clone(),
            temperature,
            provider,
            model,
        }),
        inputs: args.context.as_ref().map(|_| Inputs {
            prompt: args.prompt.clone(),
            context_files: files.len(),
            context_size: human::bytes(context_size as u64),
        }),
        result_metrics: args.context.as_ref().map(|_| Metrics {
            output: "stdout".to_owned(),
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            duration_s: usage.duration_s,
            cost: usage.cost.clone(),
            tool_calls: usage.tool_calls,
        }),
        usage: Some(usage),
    };
    let data = json(&report)?;
    out.panel(None, "Usage")
        .pick(&data, "actor_run.actor", "Actor", Kind::Id)
        .pick(&data, "usage.input_tokens", "Input Tokens", Kind::Count)
        .pick(&data, "usage.output_tokens", "Output Tokens", Kind::Count)
        .pick(&data, "usage.cost", "Cost", Kind::Text)
        .pick(&data, "usage.tool_calls", "Tool Calls", Kind::Count);
    out.set_data(data);
    out.ok("Actor run completed");
    Ok(())
}

/// What an actor may do has to be said where that is more than usual (ACTOR-011, CLI-144, CLI-147).
fn permitted(actor: &ActorDefinition, args: &ActorRunArgs) -> Result<(), Error> {
    if actor.is_unsafe() && !args.is_unsafe {
        return Err(Error::validation(format!(
            "`{}` is marked unsafe: it may do what no sandbox keeps in",
            actor.name
        ))
        .suggest(format!("agents actor run --unsafe {} <PROMPT>", actor.name)));
    }
    let lively = actor.routes.iter().find(|(_, route)| {
        route.kind == RouteKind::Stream && (route.stream_type != StreamKind::Cold || route.bridge.is_some())
    });
    match lively {
        Some((name, _)) if !args.allow_rxpy_in_run_mode => Err(Error::validation(format!(
            "the stream `{name}` of `{}` goes on by itself, which one run does not wait for",
            actor.name
        ))
        .suggest(format!("agents actor run --allow-rxpy-in-run-mode {} <PROMPT>", actor.name))),
        _ => Ok(()),
    }
}

/// The file of a context.
fn context_file(run: &Run, args: &ActorRunArgs, name: &str) -> Result<PathBuf, Error> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(is_plain) {
        return Err(Error::validation(format!(
            "`{name}` is no name of a context: use letters, digits, `-`, `_` and `.`"
        )));
    }
    let folder = args.context_dir.as_ref().map_or_else(|| run.env.data_dir.join("contexts"), PathBuf::from);
    Ok(folder.join(format!("{name}.json")))
}

/// What is kept of a context; nothing for one that is new.
fn read_kept(file: &Path) -> Result<Value, Error> {
    let shown = file.display();
    match std::fs::metadata(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Value::Null),
        Err(error) => return Err(Error::new(ErrorKind::Io, format!("{shown}: {error}"))),
        Ok(found) if found.len() > LARGEST => {
            return Err(Error::validation(format!("{shown}: a context has at most {LARGEST} bytes")));
        }
        Ok(_) => {}
    }
    let text = std::fs::read_to_string(file)
        .map_err(|error| Error::new(ErrorKind::Io, format!("{shown}: {error}")))?;
    serde_json::from_str(&text)
        .map_err(|error| Error::validation(format!("{shown}: it is no context: {error}")))
}

/// Keeps what is remembered, whole or not at all.
fn keep(file: &Path, name: &str, before: &Value, values: &Value, machine: &Machine) -> Result<(), Error> {
    let io = |error: std::io::Error| Error::new(ErrorKind::Io, format!("{}: {error}", file.display()));
    let mut kept = if before.is_object() { before.clone() } else { json!({ "name": name, "files": [] }) };
    kept["values"] = if values.is_object() { values.clone() } else { json!({}) };
    kept["memory"] =
        serde_json::to_value(&machine.memory).map_err(|error| Error::internal(error.to_string()))?;
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(io)?;
    let whole = file.with_extension("json.new");
    std::fs::write(&whole, kept.to_string()).map_err(io)?;
    std::fs::rename(&whole, file).map_err(io)
}

/// The message with the files of its context.
fn with_files(prompt: &str, files: &[Value]) -> String {
    let mut text = prompt.to_owned();
    for file in files {
        let (Some(name), Some(content)) = (file["name"].as_str(), file["content"].as_str()) else { continue };
        text.push_str(&format!("\n\n## {name}\n{content}"));
    }
    text
}
