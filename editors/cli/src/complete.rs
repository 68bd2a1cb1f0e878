//! Values that shells complete: names, ids and keys as they are at that moment.
//!
//! The script that a shell loads asks this program, with [`VARIABLE`] set, what could stand at the cursor. Which argument
//! takes which values is said in one table, [`VALUES`]; arguments with a fixed set of values say so themselves.

use std::ffi::{OsStr, OsString};

use agents_config::Kind;
use agents_domain::catalogue;
use agents_domain::resource::RESOURCE_TYPES;
use agents_engine::Engine;
use clap::{Arg, CommandFactory, FromArgMatches, ValueHint};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::CompleteEnv;
use serde_json::{Value, json};

use crate::args::{Cli, Global};
use crate::compose::Environment;

/// Names the shell that asks.
pub const VARIABLE: &str = "CLEVERAGENTS_COMPLETE";

/// Where the values of an argument come from.
#[derive(Clone, Copy)]
enum Values {
    /// Files of the user's.
    Files,
    /// Folders of the user's.
    Folders,
    /// These.
    Words(&'static [&'static str]),
    /// An answer of the engine.
    Listed(Listing),
    /// What is known without an engine, or takes more than one question.
    Found(fn(&Asking) -> Vec<Candidate>),
}

/// A list that an operation answers with.
#[derive(Clone, Copy)]
struct Listing {
    method: &'static str,
    list: &'static str,
    value: &'static str,
    help: &'static str,
}

/// A value and what is said of it.
type Candidate = (String, String);

const fn listed(method: &'static str, list: &'static str, value: &'static str, help: &'static str) -> Values {
    Values::Listed(Listing { method, list, value, help })
}

const PLANS: Values = listed("plan/list", "plans", "id", "action");
const PROJECTS: Values = listed("registry/project/list", "projects", "name", "description");
const RESOURCES: Values = listed("registry/resource/list", "resources", "name", "type");
const ACTIONS: Values = listed("registry/action/list", "actions", "name", "description");
const ACTORS: Values = listed("registry/actor/list", "actors", "name", "provider");
const SKILLS: Values = listed("registry/skill/list", "skills", "name", "description");
const SESSIONS: Values = listed("session/list", "sessions", "id", "name");
const SERVERS: Values = listed("registry/lsp/list", "lsp_servers", "name", "command");
const PROFILES: Values = listed("registry/automation_profile/list", "profiles", "name", "description");
const INVARIANTS: Values = listed("registry/invariant/list", "invariants", "id", "text");
const DECISIONS: Values = Values::Found(decisions);
const TOOLS: Values = Values::Found(tools);

/// Commands (a `*` at the end stands for any), the argument, and its values. The first that fits counts.
#[rustfmt::skip]
const VALUES: &[(&str, &str, Values)] = &[
    ("*", "data_dir", Values::Folders),
    ("*", "config_path", Values::Files),
    ("*", "config", Values::Files),
    ("*", "log_file", Values::Files),
    ("*", "output", Values::Files),
    ("*", "input", Values::Files),
    ("*", "file", Values::Files),
    ("*", "manual", Values::Folders),
    ("*", "load_context", Values::Files),
    ("*", "record", Values::Files),
    ("*", "context_dir", Values::Folders),
    ("*", "dir", Values::Folders),
    ("*", "root", Values::Folders),
    ("*", "path", Values::Folders),
    ("help", "words", Values::Found(topics)),
    ("config *", "key", Values::Found(keys)),
    ("config set", "value", Values::Found(values_of_key)),
    ("config list", "pattern", Values::Found(keys)),
    ("plan blame", "place", Values::Files),
    ("plan correct", "decision", DECISIONS),
    ("plan explain", "decision", DECISIONS),
    ("plan prompt", "decision", DECISIONS),
    ("plan revert", "decisions", DECISIONS),
    ("plan rollback", "checkpoint", Values::Found(checkpoints)),
    ("plan rollback", "checkpoint_flag", Values::Found(checkpoints)),
    ("plan list", "phase", Values::Words(&["strategize", "execute", "apply"])),
    ("plan list", "state", Values::Words(&["queued", "processing", "complete", "errored", "applied", "constrained", "cancelled", "awaiting"])),
    ("*", "plan", PLANS),
    ("*", "plans", PLANS),
    ("*", "session", SESSIONS),
    ("*", "project", PROJECTS),
    ("*", "projects", PROJECTS),
    ("project link-resource", "resource", RESOURCES),
    ("project *", "name", PROJECTS),
    ("*", "resource_type", Values::Found(resource_types)),
    ("resource *", "name", RESOURCES),
    ("*", "resource", RESOURCES),
    ("*", "resources", RESOURCES),
    ("*", "include_resource", RESOURCES),
    ("*", "exclude_resource", RESOURCES),
    ("*", "execution_environment", RESOURCES),
    ("*", "parent", RESOURCES),
    ("*", "child", RESOURCES),
    ("*", "action", ACTIONS),
    ("*", "actions", ACTIONS),
    ("action *", "name", ACTIONS),
    ("*", "automation_profile", PROFILES),
    ("automation-profile *", "name", PROFILES),
    ("lsp install", "name", Values::Found(known_servers)),
    ("lsp *", "name", SERVERS),
    ("lsp serve", "proxy", SERVERS),
    ("mcp serve", "server", SERVERS),
    ("*", "language", Values::Found(languages)),
    ("*", "languages", Values::Found(languages)),
    ("validation attach", "names", Values::Found(resources_and_validations)),
    ("validation detach", "attachment", Values::Found(attachments)),
    ("tool *", "name", TOOLS),
    ("tool list", "source", Values::Words(&["builtin", "custom", "mcp", "agent_skill", "wrapped"])),
    ("invariant remove", "*", INVARIANTS),
    ("*", "strategy_actor", ACTORS),
    ("*", "execution_actor", ACTORS),
    ("*", "estimation_actor", ACTORS),
    ("*", "invariant_actor", ACTORS),
    ("*", "actor", ACTORS),
    ("actor *", "name", ACTORS),
    ("*", "skill", SKILLS),
    ("*", "skills", SKILLS),
    ("skill *", "name", SKILLS),
    ("session *", "session_id", SESSIONS),
    ("session *", "id", SESSIONS),
    ("*", "namespace", Values::Words(&["local", "builtin"])),
];

/// Answers a shell that asks for completions, and ends the process. Else nothing happens.
pub fn answer_a_shell() {
    if std::env::var_os(VARIABLE).is_none() {
        return;
    }
    CompleteEnv::with_factory(with_values).var(VARIABLE).bin("agents").complete();
}

/// The command line with the values of its arguments.
fn with_values() -> clap::Command {
    annotate(Cli::command(), "")
}

fn annotate(command: clap::Command, path: &str) -> clap::Command {
    let command = command.mut_args(|arg| match values_of(path, &arg) {
        Some(values) => with(arg, values),
        None => arg,
    });
    command.mut_subcommands(|sub| {
        let path = format!("{path} {}", sub.get_name()).trim_start().to_owned();
        annotate(sub, &path)
    })
}

fn values_of(path: &str, arg: &Arg) -> Option<Values> {
    let id = arg.get_id().as_str();
    let fits = |pattern: &str| match pattern.strip_suffix('*') {
        Some(start) => path.starts_with(start),
        None => path == pattern,
    };
    let takes = arg.get_action().takes_values() && arg.get_possible_values().is_empty();
    let found = VALUES.iter().find(|(command, name, _)| fits(command) && (*name == id || *name == "*"));
    found.filter(|_| takes).map(|(.., values)| *values)
}

fn with(arg: Arg, values: Values) -> Arg {
    match values {
        Values::Files => arg.value_hint(ValueHint::FilePath),
        Values::Folders => arg.value_hint(ValueHint::DirPath),
        other => arg.add(ArgValueCompleter::new(move |current: &OsStr| candidates(other, current))),
    }
}

/// What begins with the text at the cursor. A machine on which nothing can be read has no candidates.
fn candidates(values: Values, current: &OsStr) -> Vec<CompletionCandidate> {
    let asking = Asking::now();
    let found: Vec<Candidate> = match values {
        Values::Files | Values::Folders => Vec::new(),
        Values::Words(words) => words.iter().map(|word| ((*word).to_owned(), String::new())).collect(),
        Values::Found(find) => find(&asking),
        Values::Listed(listing) => asking.listed(listing),
    };
    let start = current.to_string_lossy();
    let fits = found.into_iter().filter(|(value, _)| value.starts_with(&*start));
    fits.map(|(value, help)| {
        let help = help.lines().next().unwrap_or_default().to_owned();
        CompletionCandidate::new(value).help((!help.is_empty()).then(|| help.into()))
    })
    .collect()
}

/// Who asks: the words on the line, and the engine they speak of.
struct Asking {
    words: Vec<String>,
    engine: Option<std::sync::Arc<Engine>>,
}

impl Asking {
    fn now() -> Self {
        let words: Vec<String> = std::env::args_os()
            .skip_while(|arg| arg != "--")
            .skip(1)
            .map(|arg| arg.to_string_lossy().into_owned())
            .collect();
        let engine = global(&words).and_then(|global| {
            let env = Environment::load(&global).ok()?;
            // Looking makes nothing.
            let there = agents_store::database_path(&env.data_dir).try_exists().is_ok_and(|there| there);
            if there { env.engine().ok() } else { None }
        });
        Self { words, engine }
    }

    /// An answer of the engine; nothing where there is none.
    fn ask(&self, method: &str, params: Value) -> Value {
        let answer = self.engine.as_ref().and_then(|engine| engine.call_json(method, params).ok());
        answer.unwrap_or_default()
    }

    fn listed(&self, listing: Listing) -> Vec<Candidate> {
        let answer = self.ask(listing.method, json!({}));
        rows(&answer[listing.list], listing.value, listing.help)
    }

    /// The word that follows this one, passing over options.
    fn after(&self, word: &str) -> Option<&str> {
        let rest = self.words.iter().skip_while(|w| *w != word).skip(1);
        rest.map(String::as_str).find(|w| !w.starts_with('-') && !w.is_empty())
    }
}

/// The global options among the words of an unfinished line.
fn global(words: &[String]) -> Option<Global> {
    let command = Cli::command().ignore_errors(true);
    let mut taken: Vec<OsString> = vec!["agents".into()];
    let mut words = words.iter().skip(1);
    while let Some(word) = words.next() {
        if ["--data-dir", "--config-path"].contains(&word.as_str()) {
            taken.extend([word.into(), words.next()?.into()]);
        } else if word.starts_with("--data-dir=") || word.starts_with("--config-path=") {
            taken.push(word.into());
        }
    }
    let matches = command.try_get_matches_from(taken).ok()?;
    Some(Cli::from_arg_matches(&matches).ok()?.global)
}

/// Two texts of each object in a list.
fn rows(list: &Value, value: &str, help: &str) -> Vec<Candidate> {
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let rows = list.as_array().into_iter().flatten().map(|row| (text(row, value), text(row, help)));
    rows.filter(|(value, _)| !value.is_empty()).collect()
}

fn topics(asking: &Asking) -> Vec<Candidate> {
    let mut command = Cli::command();
    for word in asking.words.iter().skip_while(|word| *word != "help").skip(1) {
        match command.find_subcommand(word) {
            Some(sub) => command = sub.clone(),
            None => break,
        }
    }
    let subs = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    let about = |sub: &clap::Command| sub.get_about().map(ToString::to_string).unwrap_or_default();
    let commands = subs.map(|sub| (sub.get_name().to_owned(), about(sub)));
    crate::commands::help::names().chain(commands).collect()
}

fn keys(_: &Asking) -> Vec<Candidate> {
    agents_config::KEYS
        .iter()
        .map(|key| (key.name.trim_end_matches('*').to_owned(), key.meaning.to_owned()))
        .collect()
}

fn values_of_key(asking: &Asking) -> Vec<Candidate> {
    let Some(key) = asking.after("set") else { return Vec::new() };
    if key == "core.automation-profile" {
        let Values::Listed(profiles) = PROFILES else { return Vec::new() };
        return asking.listed(profiles);
    }
    let allowed: &[&str] = match agents_config::key(key).map(|key| key.kind) {
        Some(Kind::Choice(words)) => words,
        Some(Kind::Boolean) => &["true", "false"],
        _ => &[],
    };
    allowed.iter().map(|value| ((*value).to_owned(), String::new())).collect()
}

fn resource_types(_: &Asking) -> Vec<Candidate> {
    let addable = RESOURCE_TYPES.iter().filter(|kind| kind.user_addable);
    addable.map(|kind| (kind.name.to_owned(), kind.description.to_owned())).collect()
}

fn known_servers(_: &Asking) -> Vec<Candidate> {
    catalogue::servers().iter().map(|server| (server.name.clone(), server.description.clone())).collect()
}

fn languages(_: &Asking) -> Vec<Candidate> {
    let mut names: Vec<String> =
        catalogue::servers().iter().flat_map(|server| server.languages.clone()).collect();
    names.sort();
    names.dedup();
    names.into_iter().map(|name| (name, String::new())).collect()
}

fn tools(asking: &Asking) -> Vec<Candidate> {
    let answer = asking.ask("registry/tool/list", json!({}));
    let mut all = rows(&answer["tools"], "name", "source");
    all.extend(rows(&answer["validations"], "name", "mode"));
    all
}

fn resources_and_validations(asking: &Asking) -> Vec<Candidate> {
    let Values::Listed(resources) = RESOURCES else { return Vec::new() };
    let mut all = asking.listed(resources);
    let answer = asking.ask("registry/tool/list", json!({}));
    all.extend(rows(&answer["validations"], "name", "mode"));
    all
}

fn attachments(asking: &Asking) -> Vec<Candidate> {
    let answer = asking.ask("registry/tool/list", json!({}));
    let mut all = Vec::new();
    for (name, _) in rows(&answer["validations"], "name", "") {
        let shown = asking.ask("registry/tool/show", json!({ "name": name }));
        let ids = rows(&shown["attached_to"], "attachment_id", "resource");
        all.extend(ids.into_iter().map(|(id, resource)| (id, format!("{name} on {resource}"))));
    }
    all
}

/// The decisions of the newest plans.
fn decisions(asking: &Asking) -> Vec<Candidate> {
    const NEWEST: usize = 5;
    fn walk(node: &Value, found: &mut Vec<Candidate>) {
        if let Some(id) = node["decision_id"].as_str() {
            let text = |key: &str| node[key].as_str().unwrap_or_default();
            let about = if text("question").is_empty() { text("type") } else { text("question") };
            found.push((id.to_owned(), about.to_owned()));
        }
        node["children"].as_array().into_iter().flatten().for_each(|child| walk(child, found));
    }
    let plans = asking.ask("plan/list", json!({}));
    let mut found = Vec::new();
    for (plan, _) in rows(&plans["plans"], "id", "").into_iter().take(NEWEST) {
        walk(&asking.ask("plan/tree", json!({ "plan": plan }))["tree"], &mut found);
    }
    found
}

/// The checkpoints of the plan on the line.
fn checkpoints(asking: &Asking) -> Vec<Candidate> {
    let Some(plan) = asking.after("rollback") else { return Vec::new() };
    let answer = asking.ask("plan/artifacts", json!({ "plan": plan }));
    rows(&answer["checkpoints"], "id", "label")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What people make up themselves: names of new things, texts, patterns, numbers.
    const OWN_WORDS: &[&str] = &[
        "provider",
        "model",
        "prompt",
        "context",
        "temperature",
        "add name",
        "arguments",
        "args",
        "branch",
        "description",
        "filter_values",
        "invariants",
        "pattern",
        "place",
        "guidance",
        "reason",
        "text",
        "timeout",
        "port",
        "limit",
        "correction",
        "value",
        "install_completion",
        "show_completion",
        "include_path",
        "exclude_path",
        "hot_max_tokens",
        "warm_max_decisions",
        "cold_max_decisions",
        "query_limit",
        "max_file_size",
        "max_total_size",
        "summary_max_tokens",
        "strategy",
        "default_breadth",
        "default_depth",
        "depth_gradient",
        "skeleton_ratio",
        "focus",
        "breadth",
        "depth",
        "budget",
        "url",
    ];

    fn leaves(command: &clap::Command, path: &str, found: &mut Vec<(String, clap::Command)>) {
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let path = format!("{path} {}", sub.get_name()).trim_start().to_owned();
            if sub.has_subcommands() {
                leaves(sub, &path, found);
            } else {
                found.push((path, sub.clone()));
            }
        }
    }

    #[test]
    fn every_argument_completes_or_is_of_peoples_own_words() {
        let mut all = Vec::new();
        leaves(&Cli::command(), "", &mut all);
        let mut without = Vec::new();
        for (path, leaf) in all {
            for arg in leaf.get_arguments().filter(|arg| arg.get_action().takes_values()) {
                let id = arg.get_id().as_str();
                let own = OWN_WORDS.contains(&id)
                    || (id == "name" && ["server", "persona"].iter().any(|group| path.starts_with(group)))
                    || (id == "name" && (path.ends_with("add") || path.ends_with("create")));
                let known = arg.get_possible_values().len() + usize::from(values_of(&path, arg).is_some());
                if known == 0 && !own {
                    without.push(format!("{path}: {id}"));
                }
            }
        }
        assert!(without.is_empty(), "{without:#?}");
    }
}
