//! Operations on the configuration: what a key is set to, where that comes from, and setting it.

pub(crate) mod file;
mod set;

pub use set::{Effective, SavedTo, Set, SetOutput, repair};

use agents_config::{Config, KEYS, Key, Kind, Level, Resolved, Source, find_key};
use agents_domain::{Error, Result};
use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::registry;
use crate::{Engine, Operation};

impl Engine {
    /// The configuration with what the file says by now: this process may have read it long ago.
    fn fresh_config(&self) -> Result<Config> {
        let file = file::read(&file::path_of(&self.config))?;
        self.config.with_file(file, &|name| self.surroundings.variable(name))
    }

    /// The full name of a project that exists.
    fn project_name(&self, text: Option<&str>) -> Result<Option<String>> {
        text.map(|text| Ok(self.project(&self.name(text)?)?.name.to_string())).transpose()
    }
}

/// Shows the value of a key and how it came about.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Get {
    /// The key.
    pub key: String,
    /// As it is for this project.
    #[serde(default)]
    pub project: Option<String>,
}

/// A key's value with its origin.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct GetOutput {
    pub key: String,
    /// Secrets are masked.
    pub value: Value,
    /// `cli`, `env`, `project`, `config` or `default`.
    pub source: String,
    /// A weaker level sets the key too, and does not count.
    pub overridden: bool,
    /// `string`, `boolean`, `integer`, `float`, `list` or `object`.
    #[serde(rename = "type")]
    pub value_type: String,
    pub origin: Origin,
    /// Strongest first, always all five.
    pub resolution_chain: Vec<ChainLevel>,
    pub winner: Winner,
    pub description: String,
    /// The environment variable that sets it.
    pub env: Option<String>,
    /// The values it takes, where they are words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<String>,
    pub per_project: bool,
    /// This version acts on it.
    pub in_effect: bool,
}

/// Where the value stands in the file, and what it would be if nobody had set it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Origin {
    pub file: Option<String>,
    pub line: Option<u32>,
    pub default: Value,
}

/// One level of the resolution.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ChainLevel {
    pub level: u8,
    pub source: String,
    /// Null when this level does not set the key.
    pub value: Value,
    /// The flag, the variable, or `file:line`.
    pub origin: Option<String>,
}

/// The level that counts.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Winner {
    pub source: String,
    pub level: u8,
}

/// The five levels, strongest first, by the names people read.
const LEVELS: [(Source, &str); 5] = [
    (Source::Flag, "CLI flag"),
    (Source::Env, "Env var"),
    (Source::Project, "Project"),
    (Source::File, "Config file"),
    (Source::Default, "Default"),
];

impl Operation for Get {
    const METHOD: &'static str = "config/get";
    const SUMMARY: &'static str = "Show the value of a configuration key and where it comes from";
    type Output = GetOutput;

    fn run(self, engine: &Engine) -> Result<GetOutput> {
        let project = engine.project_name(self.project.as_deref())?;
        get(&engine.fresh_config()?, &self.key, project.as_deref())
    }
}

/// [`Get`] of a configuration that was just read; needs no engine, so that it works whatever state the data is in.
/// `project` must be the full name of a project.
pub fn get(config: &Config, name: &str, project: Option<&str>) -> Result<GetOutput> {
    let (key, rest) = known_key(name)?;
    let resolved = config.get(key.name, project);
    let at = |level: &Level| within(&level.value, rest);
    let found = |source: Source| resolved.chain.iter().find(|l| l.source == source);
    let chain: Vec<ChainLevel> = (1..)
        .zip(LEVELS)
        .map(|(level, (source, label))| ChainLevel {
            level,
            source: label.to_owned(),
            value: found(source).map(at).unwrap_or_default(),
            origin: found(source).and_then(|l| l.origin.clone()),
        })
        .collect();
    let (winner, level) = chain
        .iter()
        .zip(LEVELS)
        .find(|(level, _)| !level.value.is_null())
        .map_or((Source::Default, 5), |(level, (source, _))| (source, level.level));
    let weaker = || chain[usize::from(level)..].iter().take_while(|l| l.level < 5);
    let (file, line) = match winner {
        Source::Project | Source::File => place_of(&resolved, winner),
        _ => (None, None),
    };
    Ok(GetOutput {
        key: name.to_owned(),
        value: within(&resolved.shown(), rest),
        source: winner.as_str().to_owned(),
        overridden: weaker().any(|l| !l.value.is_null()),
        value_type: key.type_name().to_owned(),
        origin: Origin { file, line, default: found(Source::Default).map(at).unwrap_or_default() },
        winner: Winner { source: LEVELS[usize::from(level) - 1].1.to_lowercase(), level },
        resolution_chain: chain,
        description: key.meaning.to_owned(),
        env: key.env.map(str::to_owned),
        allowed: words(key.kind).iter().map(|word| (*word).to_owned()).collect(),
        per_project: key.per_project,
        in_effect: key.in_effect,
    })
}

/// The key a person names; a group of keys is none.
fn known_key(name: &str) -> Result<(&'static Key, &str)> {
    let group = name.trim_end_matches(['.', '*']);
    let below = |key: &Key| key.name.strip_prefix(group).is_some_and(|rest| rest.starts_with('.'));
    if agents_config::key(name).is_none()
        && !group.is_empty()
        && find_key(name).is_err()
        && KEYS.iter().any(below)
    {
        return Err(Error::validation(format!("`{name}` is a group of configuration keys, not one of them"))
            .suggest(format!("agents config list '{group}.*'")));
    }
    find_key(name)
}

/// What a value of a key that is open has at the rest of a dotted path.
fn within(value: &Value, rest: &str) -> Value {
    let parts = rest.split('.').filter(|part| !part.is_empty() && *part != "*");
    parts.fold(value, |value, part| &value[part]).clone()
}

fn words(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Choice(words) | Kind::Names(words) => words,
        _ => &[],
    }
}

/// File and line of a level's value.
fn place_of(resolved: &Resolved, source: Source) -> (Option<String>, Option<u32>) {
    let origin = resolved.chain.iter().find(|l| l.source == source).and_then(|l| l.origin.as_deref());
    match origin.and_then(|origin| origin.rsplit_once(':')) {
        Some((file, line)) => (Some(file.to_owned()), line.parse().ok()),
        None => (None, None),
    }
}

/// Lists configuration keys with their values in force; filters combine.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// Only keys that match: a subtree such as `index.*`, or a regular expression.
    #[serde(default)]
    pub pattern: Option<String>,
    /// Only values that match this regular expression.
    #[serde(default)]
    pub filter_values: Option<String>,
    /// As they are for this project.
    #[serde(default)]
    pub project: Option<String>,
}

/// Keys with their values.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ListOutput {
    pub settings: Vec<Setting>,
    pub overrides: Overrides,
    pub config_file: FileFacts,
    /// What the file says that has no effect.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A key with its value.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Setting {
    pub key: String,
    /// Secrets are masked.
    pub value: Value,
    pub source: String,
    /// Somebody set it.
    pub modified: bool,
    /// This version acts on it.
    pub in_effect: bool,
}

/// What is stronger than the file, null when nothing is.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Overrides {
    /// Names of variables.
    pub env: Option<Vec<String>>,
    /// Names of flags.
    pub cli_flags: Option<Vec<String>>,
}

/// The configuration file.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct FileFacts {
    pub path: String,
    /// 0 when it does not exist.
    pub size_bytes: u64,
    pub valid: bool,
    pub exists: bool,
}

impl Operation for List {
    const METHOD: &'static str = "config/list";
    const SUMMARY: &'static str = "List configuration keys with their values in force";
    type Output = ListOutput;

    fn run(self, engine: &Engine) -> Result<ListOutput> {
        let project = engine.project_name(self.project.as_deref())?;
        list(&engine.fresh_config()?, &List { project, ..self })
    }
}

/// [`List`] of a configuration that was just read; needs no engine. `project` must be the full name of a project.
pub fn list(config: &Config, params: &List) -> Result<ListOutput> {
    let keys = params.pattern.as_deref().map(key_pattern).transpose()?;
    let values = registry::pattern(params.filter_values.as_deref())?;
    let mut settings = Vec::new();
    for key in KEYS {
        let resolved = config.get(key.name, params.project.as_deref());
        let value = resolved.shown();
        let text = match &value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let wanted = keys.as_ref().is_none_or(|keys| keys.is_match(key.name))
            && values.as_ref().is_none_or(|values| values.is_match(&text));
        if wanted {
            settings.push(Setting {
                key: key.name.to_owned(),
                value,
                source: resolved.source.as_str().to_owned(),
                modified: resolved.source != Source::Default,
                in_effect: key.in_effect,
            });
        }
    }
    let set_by = |source: Source| {
        let of = |key: &Key| config.get(key.name, None).chain.into_iter().find(|l| l.source == source);
        let names: Vec<String> =
            KEYS.iter().filter_map(|key| of(key).filter(|l| !l.value.is_null())?.origin).collect();
        (!names.is_empty()).then_some(names)
    };
    let path = file::path_of(config);
    let size = std::fs::metadata(&path).ok().map(|m| m.len());
    Ok(ListOutput {
        settings,
        overrides: Overrides { env: set_by(Source::Env), cli_flags: set_by(Source::Flag) },
        config_file: FileFacts {
            path: path.display().to_string(),
            size_bytes: size.unwrap_or(0),
            valid: true,
            exists: size.is_some(),
        },
        warnings: config.warnings().iter().map(ToString::to_string).collect(),
    })
}

/// `index.*` names a subtree; with any other sign of a regular expression it is one.
fn key_pattern(text: &str) -> Result<Regex> {
    let is_glob =
        text.contains('*') && !text.contains(['^', '$', '+', '?', '(', ')', '[', ']', '{', '}', '|', '\\']);
    // `.*` after something that is no name of a key (`core.*dir`) matches as both would.
    let text =
        if is_glob { format!("^{}$", regex::escape(text).replace("\\*", ".*")) } else { text.to_owned() };
    registry::pattern(Some(&text))?.ok_or_else(|| Error::internal("a pattern was given"))
}
