//! Checks of what is ours: configuration, database, registered servers, plans.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use agents_config::Config;
use agents_domain::plan::State;
use agents_domain::ports::language_servers::RunningServer;
use agents_domain::ports::store::{PlanFilter, RegisteredServer, StoreError};
use agents_store::{Examination, Options, examine};

use super::machine::bytes;
use super::{Check, Database, Situation};
use crate::operations::config::file;
use crate::surroundings::{find_program, is_program};
use crate::{Engine, Surroundings};

/// What is said of a part of the product that this version does not have.
const NOT_IN_USE: &str = "not in use";

/// How long somebody else may keep the database locked.
const PATIENCE: Options = Options { busy_timeout: Duration::from_secs(2) };

/// How long the database is looked through for damage.
const BUDGET: Duration = Duration::from_secs(2);

pub(super) fn config_file(situation: &Situation<'_>) -> Check {
    const NAME: &str = "Config file";
    let path = file::path_of(situation.config);
    if let Some(error) = situation.config_error {
        let shown = path.display().to_string();
        // Mistakes in the file come as a list; one that cannot be read is named itself; the rest is the environment's.
        let fix = match (&error.data, error.message.starts_with(&shown)) {
            (Some(_), _) => format!("Correct {shown}, or set the key anew: agents config set <KEY> <VALUE>"),
            (None, true) => {
                format!("See that {shown} is a file you can read, or name another: --config-path <PATH>")
            }
            (None, false) => "Correct the variable that is named, or unset it".to_owned(),
        };
        return Check::error(NAME, &error.message, fix);
    }
    let Ok(metadata) = fs::metadata(&path) else {
        return Check::ok(NAME, "not there, defaults apply");
    };
    let mut problems: Vec<String> = Vec::new();
    let mut fixes: Vec<String> = Vec::new();
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        problems.push(format!("readable, but by others too (mode {mode:04o})"));
        fixes.push(format!("Keep it to yourself: chmod 600 {}", path.display()));
    }
    let warnings = situation.config.warnings();
    problems.extend(warnings.iter().map(ToString::to_string));
    if !warnings.is_empty() {
        fixes.push(format!("Correct in {} what has no effect", path.display()));
    }
    match problems.is_empty() {
        true => Check::ok(NAME, "readable"),
        false => Check::warn(NAME, problems.join("; "), fixes.join("; ")),
    }
}

pub(super) fn database(situation: &Situation<'_>) -> Check {
    const NAME: &str = "Database";
    let way_out = || {
        format!(
            "Move {} away or restore a backup of it; `agents init` keeps a backup and starts anew",
            agents_store::database_path(situation.data_dir).display()
        )
    };
    match situation.database {
        Database::Missing => {
            return Check::ok(NAME, "not there yet, made by the first command that needs it");
        }
        Database::Unusable(error) => {
            let fix = match error.message.contains("damaged") {
                true => way_out(),
                false => "See that the data directory can be written, or choose another: --data-dir <PATH>"
                    .to_owned(),
            };
            return Check::error(NAME, &error.message, fix);
        }
        Database::Open(_) => {}
    }
    match examine(situation.data_dir, PATIENCE, BUDGET) {
        Ok(found) if !found.problems.is_empty() => {
            Check::error(NAME, format!("damaged: {}", found.problems.join("; ")), way_out())
        }
        Ok(found) => Check::ok(NAME, facts(&found)),
        Err(StoreError::Busy) => Check::error(
            NAME,
            "locked by another process",
            "Wait until the other command is done, or end it: `ps x | grep agents` shows those that run",
        ),
        Err(error @ StoreError::Damaged { .. }) => Check::error(NAME, error.to_string(), way_out()),
        Err(error) => Check::error(
            NAME,
            error.to_string(),
            "See that the data directory can be written, or choose another: --data-dir <PATH>",
        ),
    }
}

fn facts(found: &Examination) -> String {
    let state = if found.whole { "sound" } else { "too large to be checked whole" };
    format!("writable, schema {} of {}, {}, {state}", found.version, found.known_version, bytes(found.bytes))
}

/// Model providers: name of the check, the key, its variable, and how a key of theirs begins.
const PROVIDERS: [(&str, &str, &str); 9] = [
    ("OpenAI key", "provider.openai.api-key", "sk-"),
    ("Anthropic key", "provider.anthropic.api-key", ""),
    ("Google key", "provider.google.api-key", ""),
    ("Gemini key", "provider.google.gemini-api-key", ""),
    ("Azure OpenAI key", "provider.azure.api-key", ""),
    ("OpenRouter key", "provider.openrouter.api-key", ""),
    ("Cohere key", "provider.cohere.api-key", ""),
    ("Groq key", "provider.groq.api-key", ""),
    ("Together key", "provider.together.api-key", ""),
];

/// Which providers can be asked, and what to do for the others. A missing key is nobody's loss unless an actor names the
/// provider; then the plan is refused with the same words.
pub(super) fn providers(situation: &Situation<'_>) -> Vec<Check> {
    let config = situation.config;
    let another_endpoint = !config.text("provider.openai.base-url", None).is_empty();
    let check = |(name, source, start): (&str, &str, &str)| {
        let key = config.text(source, None);
        if key.is_empty() {
            let variable = agents_config::key(source).and_then(|key| key.env).unwrap_or_default();
            return Check::ok(name, format!("not set up; to use it: export {variable}=<KEY>"));
        }
        if source == "provider.azure.api-key" && config.text("provider.azure.endpoint", None).is_empty() {
            return Check::warn(
                name,
                "configured, but there is no endpoint",
                "agents config set provider.azure.endpoint https://<RESOURCE>.openai.azure.com",
            );
        }
        if another_endpoint || key.starts_with(start) {
            return Check::ok(name, "configured");
        }
        // The first part only: the rest may be a secret.
        let found: String = key.chars().take(12).take_while(|c| *c != '-' && *c != '_').take(4).collect();
        Check::warn(
            name,
            format!("invalid key format: starts with `{found}`, expected `{start}`"),
            format!("agents config set {source} <KEY>"),
        )
    };
    PROVIDERS.into_iter().map(check).collect()
}

/// Which model is asked when nobody names one, and providers of the person's own.
pub(super) fn models(config: &Config) -> Check {
    let custom = config.get("provider.custom.*", None).value;
    let names: Vec<&str> = custom.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    let own = if names.is_empty() {
        String::new()
    } else {
        format!("; providers of your own: {}", names.join(", "))
    };
    let model = config.text("actor.default.model", None);
    let model = match model.is_empty() {
        true => "none by default; to choose one: agents config set actor.default.model <PROVIDER>/<MODEL>"
            .to_owned(),
        false => model,
    };
    Check::ok("Models", format!("{model}{own}"))
}

pub(super) fn indexes() -> [Check; 3] {
    ["Text index", "Vector index", "Graph store"].map(|name| Check::ok(name, NOT_IN_USE))
}

/// The indexes of source files: none is asked for, but one that is of no use is said.
pub(super) fn code_indexes(engine: &Engine) -> Option<Check> {
    const NAME: &str = "Code index";
    let all = engine.code_indexes()?.all();
    let broken: Vec<String> = all
        .iter()
        .filter_map(|index| Some(format!("{}: {}", index.file.display(), index.problem.as_ref()?)))
        .collect();
    let size = bytes(all.iter().map(|index| index.bytes).sum());
    let files: u64 = all.iter().map(|index| index.files).sum();
    Some(match (all.len(), broken.is_empty()) {
        (0, _) => Check::ok(NAME, "none yet, made by `agents lsp index`"),
        (folders, true) => {
            let folders = if folders == 1 { "1 folder".to_owned() } else { format!("{folders} folders") };
            Check::ok(NAME, format!("{folders}, {files} files, {size}"))
        }
        (_, false) => Check::warn(
            NAME,
            broken.join("; "),
            "Nothing is lost: `agents lsp index <DIR>` makes the index of a folder anew; the file can be removed",
        ),
    })
}

/// Only where somebody configured a server.
pub(super) fn server(config: &Config) -> Vec<Check> {
    if config.get("server.url", None).value.is_null() {
        return Vec::new();
    }
    let fix = "Remove `server.url` from the configuration: this version works alone";
    vec![
        Check::warn("Server", format!("configured, {NOT_IN_USE}"), fix),
        Check::ok("Namespace", config.text("core.namespace", None)),
    ]
}

pub(super) fn language_servers(engine: &Engine, surroundings: &dyn Surroundings) -> Vec<Check> {
    const NAME: &str = "Language servers";
    match engine.view(|r| r.language_servers()) {
        Err(error) => vec![Check::error(NAME, error.message, "See the check of the database")],
        Ok(servers) if servers.is_empty() => vec![Check::warn(
            NAME,
            "none is registered",
            "See which are known for a folder: agents lsp detect <DIR>. Get one: agents lsp install <NAME>",
        )],
        Ok(servers) => {
            let registered = servers.iter().map(|server| language_server(server, surroundings));
            registered.chain(engine.language_servers.running().iter().map(running_server)).collect()
        }
    }
}

fn running_server(running: &RunningServer) -> Check {
    let mut facts = format!("process {} for {}, over {}", running.pid, running.owner, running.root.display());
    facts.push_str(&format!(": started in {} ms", running.start_ms));
    if let Some(resident) = running.resident_bytes {
        facts.push_str(&format!(", {}", bytes(resident)));
    }
    match running.restarts {
        0 => {}
        1 => facts.push_str(", restarted once"),
        times => facts.push_str(&format!(", restarted {times} times")),
    }
    let word = if running.warm { "Warm" } else { "Running" };
    Check::ok(format!("{word} {}", running.server), facts)
}

fn language_server(server: &RegisteredServer, surroundings: &dyn Surroundings) -> Check {
    let definition = &server.definition;
    let name = format!("Language server {}", definition.name);
    let languages = definition.languages.join(", ");
    let command = definition.command.as_str();
    if command.contains("${") || command.contains("{{") {
        return Check::ok(name, format!("{languages}: `{command}` is looked up when it is started"));
    }
    let own_path = definition.env.get("PATH").filter(|path| !path.contains("${"));
    let found = match command.contains('/') {
        true if Path::new(command).is_relative() => {
            return Check::ok(name, format!("{languages}: `{command}` is looked up in each workspace"));
        }
        true => Some(Path::new(command)).filter(|file| is_program(file)).map(Path::to_owned),
        false => {
            let path = own_path.cloned().or_else(|| surroundings.variable("PATH")).unwrap_or_default();
            find_program(command, &path)
        }
    };
    let place = if command.contains('/') { "no program" } else { "not on PATH" };
    match found {
        Some(program) => Check::ok(name, format!("{languages}: {}", program.display())),
        None => Check::warn(
            name,
            format!("{languages}: `{command}` is {place}"),
            format!("Install `{command}`, or register where it is: agents lsp add --update --config <FILE>"),
        ),
    }
}

pub(super) fn plans(engine: &Engine) -> Check {
    const NAME: &str = "Plans";
    let look = || -> agents_domain::Result<Check> {
        let rows = engine.view(|r| r.plan_rows(&PlanFilter::default()))?;
        let mut active = 0;
        let mut for_a_person = 0;
        for row in rows.iter().filter(|r| !matches!(r.state, State::Applied | State::Cancelled)) {
            active += 1;
            for_a_person += usize::from(row.awaiting.is_some());
        }
        let mut at_work = 0;
        let mut left = Vec::new();
        for plan in engine.view(|r| r.runnable_plans())? {
            match engine.store.is_leased(plan)? {
                true => at_work += 1,
                false => left.push(plan),
            }
        }
        let facts = format!("{active} open, {at_work} at work, {for_a_person} waiting for a person");
        Ok(match left.first() {
            None => Check::ok(NAME, facts),
            Some(plan) => Check::warn(
                NAME,
                format!("{facts}, {} without a worker", left.len()),
                format!("Any look at a plan starts its worker again: agents plan status {plan}"),
            ),
        })
    };
    look().unwrap_or_else(|error| Check::error(NAME, error.message, "See the check of the database"))
}
