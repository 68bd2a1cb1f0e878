//! `agents plan follow`: events as they come; a stream, not one document.

use std::io::{self, Write};
use std::process::ExitCode;

use agents_domain::event::Event;
use agents_domain::ids::PlanId;
use agents_engine::Engine;
use agents_engine::operations::plan::{Explain, List};
use serde_json::Value;

use super::pause::conclude;
use crate::args::{FollowArgs, Global};
use crate::failure::{Failure, Outcome};
use crate::follow::{self, Stream, runs};
use crate::output::human::short_id;
use crate::output::{AppError, ErrorCode, Format, ascii, to_yaml};
use crate::run::{self, Run};

/// Runs the command: in `json` and `yaml` each event is a document of its own.
pub fn follow(global: &Global, args: &FollowArgs) -> ExitCode {
    let opened = match run::open("plan follow", global) {
        Ok(opened) => opened,
        Err(code) => return ExitCode::from(code),
    };
    if !opened.out.format().is_document() {
        return run::carry_out(&opened, |run| for_people(run, args));
    }
    // Ctrl+C ends a stream of whole lines; there is nothing to close.
    for (signal, code) in [(signal_hook::consts::SIGINT, 130), (signal_hook::consts::SIGTERM, 143)] {
        let armed = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
        let _ = signal_hook::flag::register_conditional_shutdown(signal, code, armed);
    }
    match for_programs(&opened, args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => ExitCode::from(failure.report(&opened.out)),
    }
}

fn for_people(run: &Run, args: &FollowArgs) -> Outcome {
    let engine = run.env.engine()?;
    let plan = subject(&engine, args)?;
    run.when_interrupted("Not following any more; the plans go on");
    let text = run.out.text(None);
    text.no_wrap();
    each(&engine, plan, args, |event| {
        if let Some(line) = line(&engine, &event, plan.is_none()) {
            text.append(&if run.out.format().in_ascii() { ascii(&line) } else { line });
        }
        Ok(())
    })?;
    text.close();
    match plan {
        Some(plan) => {
            let standing = follow::status(&engine, plan)?;
            conclude(run, &engine, &standing, &format!("{}/{}", standing.phase, standing.state))
        }
        None => {
            run.out.ok("No plan is being worked on");
            Ok(())
        }
    }
}

fn for_programs(run: &Run, args: &FollowArgs) -> Outcome {
    let engine = run.env.engine()?;
    let plan = subject(&engine, args)?;
    let yaml = run.out.format() == Format::Yaml;
    let mut stdout = io::stdout().lock();
    let written = each(&engine, plan, args, |event| {
        let event = serde_json::to_value(&event).map_err(io::Error::other)?;
        if yaml {
            write!(stdout, "---\n{}", to_yaml(&event))?;
        } else {
            writeln!(stdout, "{event}")?;
        }
        stdout.flush()
    });
    match written {
        // Whoever read the stream has seen enough.
        Err(Stopped::Written(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

fn subject(engine: &Engine, args: &FollowArgs) -> Result<Option<PlanId>, Failure> {
    args.plan.as_deref().map(|plan| super::find(engine, plan).map(|(id, _)| id)).transpose()
}

/// Why a stream ended before its end.
enum Stopped {
    /// Reading failed.
    Read(agents_domain::Error),
    /// Writing failed.
    Written(io::Error),
}

impl From<agents_domain::Error> for Stopped {
    fn from(error: agents_domain::Error) -> Self {
        Self::Read(error)
    }
}

impl From<Stopped> for Failure {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Read(error) => error.into(),
            Stopped::Written(error) => {
                AppError::new(ErrorCode::Io, format!("the output cannot be written: {error}")).into()
            }
        }
    }
}

/// Gives every event to `show` until nothing is being worked on any more.
fn each(
    engine: &Engine,
    plan: Option<PlanId>,
    args: &FollowArgs,
    mut show: impl FnMut(Event) -> io::Result<()>,
) -> Result<(), Stopped> {
    let since = if args.from_start { 0 } else { follow::now(engine)? };
    let mut stream = Stream::after(engine, plan, since)?;
    let mut at_work = working(engine, plan)?;
    engine.ensure_workers()?;
    let mut idle = 0;
    loop {
        let events = stream.next()?;
        if events.is_empty() {
            if !at_work && !args.forever {
                return Ok(());
            }
            idle += 1;
            // A second without news: a worker may have died.
            if idle % 33 == 0 {
                at_work = working(engine, plan)?;
                engine.ensure_workers()?;
            }
            continue;
        }
        idle = 0;
        let moved = events.iter().any(|event| event.event_type.starts_with("plan."));
        for event in events {
            show(event).map_err(Stopped::Written)?;
        }
        if moved {
            at_work = working(engine, plan)?;
        }
    }
}

/// Whether the plan, or any plan, is being worked on or shall be.
fn working(engine: &Engine, plan: Option<PlanId>) -> Result<bool, agents_domain::Error> {
    if let Some(plan) = plan {
        return Ok(runs(&follow::status(engine, plan)?));
    }
    for state in ["processing", "queued"] {
        let found = engine.call(List { state: Some(state.to_owned()), ..List::default() })?;
        if found.plans.iter().any(|plan| plan.awaiting.is_none()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// An event as one line for people; nothing for what only programs need.
fn line(engine: &Engine, event: &Event, with_plan: bool) -> Option<String> {
    let details = &event.details;
    let text = |key: &str| details.get(key).and_then(Value::as_str).unwrap_or_default();
    let point = |key: &str| details.get(key).map_or_else(String::new, place);
    let what = match event.event_type.as_str() {
        "plan.progress" => {
            let counts = match (details["done"].as_u64(), details["total"].as_u64()) {
                (Some(done), Some(total)) => format!(" {done}/{total}"),
                _ => String::new(),
            };
            format!("{}{counts}", text("label"))
        }
        "plan.created" => {
            format!("plan created from {} on {}", text("action_name"), names(&details["project_names"]))
        }
        "plan.state_changed" => format!("{} -> {}", point("from"), point("to")),
        "plan.phase_changed" => format!("phase {} -> {}", text("from"), text("to")),
        "plan.errored" => format!("failed: {}", details["failure"]["message"].as_str().unwrap_or("?")),
        "decision.created" => {
            let waits = if details["pending"] == Value::Bool(true) { ", waits for you" } else { "" };
            let sure = details["confidence_score"].as_f64().map_or(String::new(), |c| format!(" ({c:.2})"));
            let what =
                decided(engine, text("decision_id")).unwrap_or_else(|| text("decision_type").to_owned());
            format!("{} {what}{sure}{waits}", short_id(text("decision_id")))
        }
        "decision.superseded" => {
            format!("{} replaced by {}", short_id(text("decision_id")), short_id(text("superseded_by")))
        }
        "resource.modified" => format!("{} {}", text("modification_type"), text("sandbox_path")),
        // The two around each write are there to go back to, not to read about.
        "checkpoint.created" if matches!(text("checkpoint_type"), "pre_write" | "post_step") => return None,
        "checkpoint.pruned" => match details["decisions_without_checkpoint"].as_array().map_or(0, Vec::len) {
            0 => return None,
            n => format!("{n} decisions can no longer be taken back by themselves: too many checkpoints"),
        },
        "sandbox.edited" => {
            let paths = details["paths"].as_array().into_iter().flatten().filter_map(Value::as_str);
            format!("edited by hand in the sandbox, kept: {}", paths.collect::<Vec<_>>().join(", "))
        }
        "sandbox.drifted" => details["drift"][0]["message"].as_str().unwrap_or_default().to_owned(),
        "checkpoint.created" => format!("checkpoint {}", short_id(text("checkpoint_id"))),
        "sandbox.rolled_back" => format!("taken back: {}", text("reason")),
        "actor.escalated" | "budget.exceeded" => {
            format!("asks: {}", details["awaiting"]["question"].as_str().unwrap_or("?"))
        }
        "plan.worker_lost" => {
            "an earlier worker died; a new one goes on from the last committed step".to_owned()
        }
        "tool.completed" => return None,
        _ => String::new(),
    };
    let time = event.timestamp.seconds_rfc3339();
    let time = time.get(11..19).unwrap_or(&time);
    let plan = match (with_plan, event.plan_id) {
        (true, Some(plan)) => format!("{}  ", short_id(&plan.to_string())),
        (true, None) => format!("{:10}  ", ""),
        (false, _) => String::new(),
    };
    Some(format!("{time}  {plan}{:<20}  {what}", event.event_type).trim_end().to_owned() + "\n")
}

/// `What about it? -> This`.
fn decided(engine: &Engine, decision: &str) -> Option<String> {
    let explain = Explain { decision: decision.to_owned(), show_context: false, show_reasoning: false };
    let found = engine.call(explain).ok()?;
    let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    Some(format!("{} -> {}", first(&found.question), first(&found.chosen)))
}

/// `strategize/complete (execute_approval)`.
fn place(point: &Value) -> String {
    if let Some(text) = point.as_str() {
        return text.to_owned();
    }
    let text = |key: &str| point[key].as_str().unwrap_or_default();
    let waits = if text("awaiting").is_empty() { String::new() } else { format!(" ({})", text("awaiting")) };
    format!("{}/{}{waits}", text("phase"), text("state"))
}

fn names(list: &Value) -> String {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
}
