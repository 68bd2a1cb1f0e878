//! Configuration: flag, then environment, then the project's section of the file, then the file, then the default.

mod file;
mod keys;
mod set;
mod table;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use agents_domain::redact::MASK;
use agents_domain::{Error, ErrorKind, Result};
use serde_json::Value;

pub use keys::{Default as KeyDefault, Key, Kind, key};
pub use table::KEYS;

use crate::yaml::Source as Text;
use crate::{Problem, Severity, problem};
use file::{Around, Located, Values};
use keys::{near, whole_path};

/// What a configuration is made from.
pub struct Parts<'a> {
    /// Keys set on the command line, with their texts.
    pub flags: Vec<(&'a str, String)>,
    /// Looks an environment variable up.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// The configuration file, when it exists.
    pub file: Option<ConfigFile>,
}

/// A configuration file that was read.
#[derive(Debug, Clone)]
pub struct ConfigFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it says.
    pub text: String,
}

/// Where things are before the configuration file is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Locations {
    /// `core.data-dir` by flag, environment or default. The file may move it for everything but itself.
    pub data_dir: PathBuf,
    /// `core.config-path` by flag, environment or default.
    pub config_file: PathBuf,
}

/// Which level a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The command line.
    Flag,
    /// An environment variable.
    Env,
    /// The project's section of the file.
    Project,
    /// The file.
    File,
    /// Nobody set it.
    Default,
}

impl Source {
    /// Its name in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Flag => "cli",
            Self::Env => "env",
            Self::Project => "project",
            Self::File => "config",
            Self::Default => "default",
        }
    }

    /// Where the automation profile of a plan comes from, in the words of plans.
    pub fn profile_source(self) -> &'static str {
        match self {
            Self::Flag => "CLI flag",
            Self::Project => "project",
            Self::Env | Self::File => "global",
            Self::Default => "default",
        }
    }
}

/// One level of a resolution.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// Which.
    pub source: Source,
    /// Its value; `Null` when it sets none. Secrets are masked.
    pub value: Value,
    /// The flag, the variable, or `file:line`.
    pub origin: Option<String>,
}

/// A key's value with how it came about.
#[derive(Clone, PartialEq)]
pub struct Resolved {
    /// The value; `Null` when it is unset. Not masked.
    pub value: Value,
    /// The level that won.
    pub source: Source,
    /// All levels, strongest first; the project's only when a project was given.
    pub chain: Vec<Level>,
    /// The value must not be shown.
    pub secret: bool,
}

impl Resolved {
    /// The value as text; empty when unset.
    pub fn as_text(&self) -> String {
        as_text(&self.value)
    }

    /// The value for people; secrets are masked.
    pub fn shown(&self) -> Value {
        masked(&self.value, self.secret)
    }
}

impl fmt::Debug for Resolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, chain, .. } = self;
        f.debug_struct("Resolved")
            .field("value", &self.shown())
            .field("source", source)
            .field("chain", chain)
            .finish()
    }
}

fn as_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn masked(value: &Value, secret: bool) -> Value {
    if secret && !value.is_null() { MASK.into() } else { value.clone() }
}

/// Resolved configuration. Getters take full keys; a key that does not exist is a defect of the caller and reads as
/// unset.
#[derive(Clone)]
pub struct Config {
    flags: BTreeMap<&'static str, Value>,
    env: BTreeMap<&'static str, Value>,
    file: Values,
    file_path: Option<PathBuf>,
    home: Option<PathBuf>,
    data_dir: PathBuf,
    warnings: Vec<Problem>,
}

impl fmt::Debug for Config {
    /// Names only: values may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("file", &self.file_path)
            .field("set", &self.file.global.keys())
            .finish_non_exhaustive()
    }
}

/// The key that a dotted path names, with what the path adds to a key that ends in `.*`; an unknown path is refused
/// with the key that may have been meant.
pub fn find_key(path: &str) -> Result<(&'static Key, &str)> {
    keys::key_of_path(path).ok_or_else(|| unknown_key(path, ErrorKind::ValidationFailed))
}

/// Where the data directory and the configuration file are, by flag, environment or default.
pub fn locate(flags: &[(&str, String)], env: &dyn Fn(&str) -> Option<String>) -> Result<Locations> {
    let home = home(env);
    let given = |name: &str| {
        let flag = flags.iter().find(|(key, _)| *key == name).map(|(_, text)| text.clone());
        let variable = || key(name)?.env.and_then(env);
        flag.or_else(variable)
            .filter(|text| !text.is_empty())
            .map(|t| PathBuf::from(whole_path(&t, home.as_deref(), None)))
    };
    let data_dir = match (given("core.data-dir"), &home) {
        (Some(path), _) => path,
        (None, Some(home)) => home.join(".cleveragents"),
        (None, None) => {
            return Err(Error::new(
                ErrorKind::Configuration,
                "there is no home directory to keep data in: HOME is not set",
            )
            .suggest("--data-dir <PATH>")
            .suggest("set CLEVERAGENTS_DATA_DIR"));
        }
    };
    let config_file = given("core.config-path").unwrap_or_else(|| data_dir.join("config.toml"));
    Ok(Locations { data_dir, config_file })
}

fn home(env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    ["HOME", "USERPROFILE"]
        .iter()
        .find_map(|name| env(name))
        .map(PathBuf::from)
        .filter(|home| home.is_absolute())
}

impl Config {
    /// Resolves from what was given, all checked; an error names every value that is wrong and where it stands.
    pub fn load(parts: Parts<'_>) -> Result<Self> {
        let locations = locate(&parts.flags, parts.env)?;
        let home = home(parts.env);
        let mut wrong = Vec::new();
        let mut flags = BTreeMap::new();
        for (name, text) in &parts.flags {
            let Some(key) = key(name) else {
                return Err(unknown_key(name, ErrorKind::Usage));
            };
            let origin = key.flag.unwrap_or("the command line");
            parse_into(&mut flags, key, text, origin, home.as_deref()).unwrap_or_else(|e| wrong.push(e));
        }
        let mut env = BTreeMap::new();
        for key in KEYS {
            let Some(variable) = key.env else { continue };
            let Some(text) = (parts.env)(variable).filter(|text| !text.is_empty()) else { continue };
            parse_into(&mut env, key, &text, variable, home.as_deref()).unwrap_or_else(|e| wrong.push(e));
        }
        if let Some(first) = wrong.first() {
            let mut error = Error::new(ErrorKind::Configuration, first.clone());
            if wrong.len() > 1 {
                error = error.detail(wrong.join("\n"));
            }
            return Err(error);
        }
        let config = Self {
            flags,
            env,
            file: Values::default(),
            file_path: None,
            home,
            data_dir: locations.data_dir,
            warnings: Vec::new(),
        };
        config.with_file(parts.file, parts.env)
    }

    /// The same flags and environment with another text of the file: what it says by now, or would say. `env` looks
    /// up the variables that the text uses.
    pub fn with_file(&self, file: Option<ConfigFile>, env: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        let (file, mut warnings, file_path) = match file {
            Some(file) => {
                read_file(&file, env, self.home.as_deref()).map(|(v, w)| (v, w, Some(file.path)))?
            }
            None => (Values::default(), Vec::new(), None),
        };
        let mut config = Self { file, file_path, warnings: Vec::new(), ..self.clone() };
        warnings.extend(config.incomplete());
        config.warnings = warnings;
        Ok(config)
    }

    /// Locates, reads and resolves; a file that does not exist is an empty one.
    pub fn open(flags: Vec<(&str, String)>, env: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        let path = locate(&flags, env)?.config_file;
        let file = match problem::read_settings(&path) {
            Ok(text) => Some(ConfigFile { path, text }),
            Err(error) if error.kind == ErrorKind::NotFound => None,
            Err(error) => return Err(Error { kind: ErrorKind::Configuration, ..error }),
        };
        Self::load(Parts { flags, env, file })
    }

    /// The configuration of tests and tools that have none: defaults only, data in `data_dir`.
    pub fn defaults(data_dir: &Path) -> Self {
        Self {
            flags: BTreeMap::new(),
            env: BTreeMap::new(),
            file: Values::default(),
            file_path: None,
            home: None,
            data_dir: data_dir.to_path_buf(),
            warnings: Vec::new(),
        }
    }

    /// What the file says that has no effect, and settings that lack another one.
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    /// The file, when there is one.
    pub fn file_path(&self) -> Option<&Path> {
        self.file_path.as_deref()
    }

    /// Where everything that lasts is kept.
    pub fn data_dir(&self) -> PathBuf {
        PathBuf::from(self.text("core.data-dir", None))
    }

    /// The value of a key for a project, with all levels.
    pub fn get(&self, name: &str, project: Option<&str>) -> Resolved {
        let Some(key) = key(name) else {
            return Resolved {
                value: Value::Null,
                source: Source::Default,
                chain: Vec::new(),
                secret: false,
            };
        };
        let text = |origin: Option<&str>| origin.map(str::to_owned);
        let in_file = |located: Option<&Located>| {
            let origin = located.map(|l| {
                let path = self.file_path.as_deref().unwrap_or(Path::new("")).display();
                format!("{path}:{}", l.line)
            });
            (located.map_or(Value::Null, |l| l.value.clone()), origin)
        };
        // The file cannot say where it is itself.
        let global = self.file.global.get(name).filter(|_| name != "core.config-path");
        let mut levels = vec![
            (Source::Flag, (self.flags.get(name).cloned().unwrap_or_default(), text(key.flag))),
            (Source::Env, (self.env.get(name).cloned().unwrap_or_default(), text(key.env))),
        ];
        if let Some(project) = project {
            let of_project = self.file.projects.get(project).and_then(|values| values.get(name));
            levels.push((Source::Project, in_file(of_project)));
        }
        levels.push((Source::File, in_file(global)));
        levels.push((Source::Default, (self.default_of(key), None)));
        let (source, value) = levels
            .iter()
            .find(|(_, (value, _))| !value.is_null())
            .map_or((Source::Default, Value::Null), |(source, (value, _))| (*source, value.clone()));
        let chain = levels.into_iter().map(|(source, (value, origin))| Level {
            source,
            origin: origin.filter(|_| !value.is_null() || matches!(source, Source::Flag | Source::Env)),
            value: masked(&value, key.secret),
        });
        Resolved { value, source, chain: chain.collect(), secret: key.secret }
    }

    /// The value as text; empty when unset.
    pub fn text(&self, name: &str, project: Option<&str>) -> String {
        self.get(name, project).as_text()
    }

    /// The value as a whole number; 0 when unset.
    pub fn integer(&self, name: &str, project: Option<&str>) -> i64 {
        self.get(name, project).value.as_i64().unwrap_or(0)
    }

    /// The value as a number; `None` when unset.
    pub fn number(&self, name: &str, project: Option<&str>) -> Option<f64> {
        self.get(name, project).value.as_f64()
    }

    /// The value as a truth value; `false` when unset.
    pub fn boolean(&self, name: &str, project: Option<&str>) -> bool {
        self.get(name, project).value.as_bool().unwrap_or(false)
    }

    /// The value as a list of texts; empty when unset.
    pub fn list(&self, name: &str, project: Option<&str>) -> Vec<String> {
        match self.get(name, project).value {
            Value::Array(items) => items.iter().map(as_text).collect(),
            _ => Vec::new(),
        }
    }

    /// Sets a key in the text of a configuration file and returns the new text; what else the text says, comments
    /// and layout included, stays as it is. `project` sets it for that project only.
    pub fn set_text(file_text: &str, name: &str, value: &str, project: Option<&str>) -> Result<String> {
        set::set_text(file_text, name, value, project)
    }

    fn default_of(&self, key: &Key) -> Value {
        match key.default {
            KeyDefault::Unset => Value::Null,
            KeyDefault::Word(word) => word.into(),
            KeyDefault::Is(value) => value.into(),
            KeyDefault::Whole(value) => value.into(),
            KeyDefault::Real(value) => value.into(),
            KeyDefault::List(items) => items.into(),
            KeyDefault::Wholes(items) => items.into(),
            KeyDefault::DataDir => {
                let home = self.home.as_ref().map(|home| home.join(".cleveragents"));
                home.unwrap_or_else(|| self.data_dir.clone()).to_string_lossy().into()
            }
            // The configuration file stays where it was looked for, whatever it says about the data.
            KeyDefault::InDataDir(rest) if key.name == "core.config-path" => {
                self.data_dir.join(rest).to_string_lossy().into()
            }
            KeyDefault::InDataDir(rest) => self.data_dir().join(rest).to_string_lossy().into(),
        }
    }

    /// Settings that have no effect without another one.
    fn incomplete(&self) -> Vec<Problem> {
        let set = |name: &str| !self.get(name, None).value.is_null();
        let is = |name: &str, word: &str| self.text(name, None) == word;
        let rules = [
            (is("index.vector.backend", "qdrant"), "index.vector.backend", "index.vector.qdrant-url"),
            (is("index.graph.backend", "neo4j"), "index.graph.backend", "index.graph.neo4j-url"),
            (is("index.graph.backend", "neo4j"), "index.graph.backend", "index.graph.neo4j-auth"),
            (set("provider.azure.endpoint"), "provider.azure.endpoint", "provider.azure.api-key"),
            (set("server.url"), "server.url", "server.token"),
        ];
        let missing = rules.iter().filter(|(applies, _, needed)| *applies && !set(needed));
        missing
            .map(|(_, name, needed)| Problem {
                severity: Severity::Warning,
                message: format!("`{name}` is `{}`, which needs `{needed}`", self.text(name, None)),
                field_path: (*needed).to_owned(),
                range: self.file.global.get(name).map_or_else(Default::default, |l| {
                    agents_domain::text::Range::new((l.line - 1, 0), (l.line - 1, 0))
                }),
                file: self.get(name, None).chain.iter().find(|l| !l.value.is_null()).map_or_else(
                    String::new,
                    |l| match (l.source, &self.file_path) {
                        (Source::File, Some(path)) => path.display().to_string(),
                        _ => l.origin.clone().unwrap_or_default(),
                    },
                ),
                fix: None,
            })
            .collect()
    }
}

fn parse_into(
    values: &mut BTreeMap<&'static str, Value>,
    key: &'static Key,
    text: &str,
    origin: &str,
    home: Option<&Path>,
) -> std::result::Result<(), String> {
    match key.parse(text).map_err(|expected| format!("{origin}: `{}` must be {expected}", key.name))? {
        Value::Null => {}
        Value::String(text) if key.kind == Kind::Path => {
            values.insert(key.name, whole_path(&text, home, None).into());
        }
        value => {
            values.insert(key.name, value);
        }
    }
    Ok(())
}

fn read_file(
    file: &ConfigFile,
    env: &dyn Fn(&str) -> Option<String>,
    home: Option<&Path>,
) -> Result<(Values, Vec<Problem>)> {
    let shown = file.path.display().to_string();
    let mut text = Text::new(&file.text, &shown);
    let values = file::read(&mut text, &Around { env, home, base: file.path.parent() });
    if values.global.contains_key("core.config-path") {
        let line = values.global["core.config-path"].line;
        let bytes = nth_line(&file.text, line);
        text.warn("core.config-path", &bytes, "the file cannot say where it is itself: this has no effect");
    }
    if text.has_errors() {
        return Err(problem::error_of(ErrorKind::Configuration, &text.problems));
    }
    Ok((values, text.problems))
}

fn nth_line(text: &str, line: u32) -> std::ops::Range<usize> {
    let index = agents_domain::text::LineIndex::new(text);
    let line = line.saturating_sub(1);
    let start = index.offset(text, agents_domain::text::Position { line, column: 0 }).unwrap_or(0);
    let end = if (line as usize) < index.lines() { index.line_end(text, line as usize) } else { start };
    start..end
}

fn unknown_key(name: &str, kind: ErrorKind) -> Error {
    let error = Error::new(kind, format!("there is no configuration key `{name}`"));
    match near(name) {
        Some(near) => error.suggest(format!("did you mean `{near}`?")),
        None => error.suggest("agents config list"),
    }
}
