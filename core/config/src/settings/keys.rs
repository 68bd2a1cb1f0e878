//! What a configuration key is: its type, default, variable and scope; and the checks of its values.

use std::path::Path;

use agents_domain::QualifiedName;
use agents_domain::profile::built_in_profiles;
use serde_json::Value;

use super::table::KEYS;
use crate::nearest::nearest;

/// The type of a key's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// One of these words, in any case.
    Choice(&'static [&'static str]),
    /// An absolute path, or one that starts with `~/`; in a file also one relative to the file's directory.
    Path,
    /// `scheme://...`.
    Url,
    /// A qualified name.
    Name,
    /// A namespace.
    Namespace,
    /// A built-in automation profile, or the qualified name of another.
    Profile,
    /// `true` or `false`.
    Boolean,
    /// A whole number of at least this.
    Integer(i64),
    /// A number from 0 to 1.
    Fraction,
    /// A number from 0.
    Amount,
    /// A list of texts; of these words when there are any.
    Names(&'static [&'static str]),
    /// A list of whole numbers from 0.
    Integers,
    /// A table of named blocks.
    Table,
}

/// What a key is when nobody sets it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Default {
    /// Nothing.
    Unset,
    /// A text.
    Word(&'static str),
    /// A truth value.
    Is(bool),
    /// A whole number.
    Whole(i64),
    /// A number.
    Real(f64),
    /// A list of texts.
    List(&'static [&'static str]),
    /// A list of whole numbers.
    Wholes(&'static [i64]),
    /// `~/.cleveragents`.
    DataDir,
    /// A path below the data directory.
    InDataDir(&'static str),
}

/// A configuration key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Key {
    /// Its full dotted path; `.*` at the end stands for names that people choose.
    pub name: &'static str,
    /// The type of its values.
    pub kind: Kind,
    /// Its value when nobody sets it.
    pub default: Default,
    /// The environment variable that sets it.
    pub env: Option<&'static str>,
    /// What it is for.
    pub meaning: &'static str,
    /// A project may have a value of its own.
    pub per_project: bool,
    /// Its value is never shown.
    pub secret: bool,
    /// This program acts on it; the others are read, checked and kept for what comes.
    pub in_effect: bool,
    /// The command-line flag that sets it.
    pub flag: Option<&'static str>,
}

impl Key {
    pub(super) const fn new(
        name: &'static str,
        kind: Kind,
        default: Default,
        env: &'static str,
        meaning: &'static str,
    ) -> Self {
        let env = if env.is_empty() { None } else { Some(env) };
        Self {
            name,
            kind,
            default,
            env,
            meaning,
            per_project: false,
            secret: false,
            in_effect: false,
            flag: None,
        }
    }

    pub(super) const fn per_project(self) -> Self {
        Self { per_project: true, ..self }
    }

    pub(super) const fn secret(self) -> Self {
        Self { secret: true, ..self }
    }

    pub(super) const fn in_effect(self) -> Self {
        Self { in_effect: true, ..self }
    }

    pub(super) const fn flag(self, flag: &'static str) -> Self {
        Self { flag: Some(flag), ..self }
    }

    /// The type as people are told it: `string`, `boolean`, `integer`, `float`, `list` or `object`.
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            Kind::Boolean => "boolean",
            Kind::Integer(_) => "integer",
            Kind::Fraction | Kind::Amount => "float",
            Kind::Names(_) | Kind::Integers => "list",
            Kind::Table => "object",
            _ => "string",
        }
    }

    /// Its default as TOML; an unset key is an empty text.
    pub fn default_toml(&self) -> String {
        let list = |items: Vec<String>| format!("[{}]", items.join(", "));
        match self.default {
            Default::Unset => "\"\"".to_owned(),
            Default::Word(word) => format!("{word:?}"),
            Default::Is(value) => value.to_string(),
            Default::Whole(value) => value.to_string(),
            Default::Real(value) => format!("{value:?}"),
            Default::List(items) => list(items.iter().map(|item| format!("{item:?}")).collect()),
            Default::Wholes(items) => list(items.iter().map(ToString::to_string).collect()),
            Default::DataDir => "\"~/.cleveragents\"".to_owned(),
            Default::InDataDir(rest) => format!("\"~/.cleveragents/{rest}\""),
        }
    }

    /// The prefix of a key that ends in `.*`.
    pub(super) fn open_prefix(&self) -> Option<&'static str> {
        self.name.strip_suffix(".*")
    }

    /// The key is a text and the parent of other keys: in a file it may be a table with `class`.
    pub(super) fn is_parent(&self) -> bool {
        KEYS.iter().any(|k| k.name.strip_prefix(self.name).is_some_and(|rest| rest.starts_with('.')))
    }

    /// A value as it may be, in its canonical form; `Null` means that nothing is set. `Err` completes the sentence
    /// "`key` must be ...".
    pub(super) fn check(&self, value: &Value) -> Result<Value, String> {
        let wrong = || Err(format!("{}, not {}", self.kind.expected(), shown(value, self.secret)));
        match (self.kind, value) {
            (Kind::Text | Kind::Path | Kind::Url | Kind::Name, Value::String(text)) if text.is_empty() => {
                Ok(Value::Null)
            }
            (Kind::Choice(words), Value::String(text)) => {
                match words.iter().find(|w| w.eq_ignore_ascii_case(text)) {
                    Some(word) => Ok((*word).into()),
                    None => Err(format!("{}, not `{text}`{}", self.kind.expected(), meant(text, words))),
                }
            }
            (Kind::Text | Kind::Path, Value::String(_)) => Ok(value.clone()),
            (Kind::Url, Value::String(text)) if is_url(text) => Ok(value.clone()),
            (Kind::Name, Value::String(text)) => match text.parse::<QualifiedName>() {
                Ok(_) => Ok(value.clone()),
                Err(error) => Err(format!("a name: {error}")),
            },
            (Kind::Namespace, Value::String(text)) => match QualifiedName::parse_in("x", text) {
                Ok(_) => Ok(value.clone()),
                Err(error) => Err(format!("a namespace: {}", error.reason)),
            },
            (Kind::Profile, Value::String(text)) => {
                let known = built_in_profiles();
                let names: Vec<&str> = known.iter().map(|p| p.name.as_str()).collect();
                let custom = text.contains('/') && text.parse::<QualifiedName>().is_ok();
                if custom || names.contains(&text.as_str()) {
                    return Ok(value.clone());
                }
                let list = names.join(", ");
                Err(format!(
                    "one of {list}, or the full name of another profile, not `{text}`{}",
                    meant(text, &names)
                ))
            }
            (Kind::Boolean, Value::Bool(_)) => Ok(value.clone()),
            (Kind::Integer(least), Value::Number(n)) if n.as_i64().is_some_and(|n| n >= least) => {
                Ok(value.clone())
            }
            (Kind::Fraction, Value::Number(n)) if n.as_f64().is_some_and(|n| (0.0..=1.0).contains(&n)) => {
                Ok(n.as_f64().into())
            }
            (Kind::Amount, Value::Number(n)) if n.as_f64().is_some_and(|n| n >= 0.0) => Ok(n.as_f64().into()),
            (Kind::Names(words), Value::Array(items)) => {
                for item in items {
                    match item.as_str() {
                        None => return wrong(),
                        Some(text) if !words.is_empty() && !words.contains(&text) => {
                            return Err(format!(
                                "{}; `{text}` is none{}",
                                self.kind.expected(),
                                meant(text, words)
                            ));
                        }
                        Some(_) => {}
                    }
                }
                Ok(value.clone())
            }
            (Kind::Integers, Value::Array(items)) if items.iter().all(Value::is_u64) => Ok(value.clone()),
            (Kind::Table, Value::Object(_) | Value::String(_)) => Ok(value.clone()),
            _ => wrong(),
        }
    }

    /// The value that a text of the environment, a flag or a command means.
    pub(super) fn parse(&self, text: &str) -> Result<Value, String> {
        let trimmed = text.trim();
        let value = match self.kind {
            Kind::Boolean => match trimmed.to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" | "1" => Value::Bool(true),
                "false" | "no" | "off" | "0" => Value::Bool(false),
                _ => Value::String(text.to_owned()),
            },
            Kind::Integer(_) => {
                trimmed.parse::<i64>().map_or_else(|_| Value::String(text.to_owned()), Value::from)
            }
            Kind::Fraction | Kind::Amount => {
                let number = trimmed.parse::<f64>().ok().filter(|n| n.is_finite());
                number.map_or_else(|| Value::String(text.to_owned()), Value::from)
            }
            Kind::Names(_) | Kind::Integers if trimmed.starts_with('[') => {
                serde_json::from_str(trimmed).unwrap_or_else(|_| Value::String(text.to_owned()))
            }
            Kind::Names(_) => split(trimmed).map(Value::from).collect(),
            Kind::Integers => split(trimmed)
                .map(|part| part.parse::<u64>().map_or_else(|_| Value::from(part), Value::from))
                .collect(),
            Kind::Table if trimmed.starts_with('{') => {
                serde_json::from_str(trimmed).unwrap_or_else(|_| Value::String(text.to_owned()))
            }
            _ => Value::String(text.to_owned()),
        };
        self.check(&value)
    }
}

fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

fn is_url(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, rest)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
            && !rest.is_empty()
            && !text.contains(char::is_whitespace)
    })
}

fn meant(text: &str, words: &[&str]) -> String {
    nearest(text, words.iter().copied()).map(|word| format!(": did you mean `{word}`?")).unwrap_or_default()
}

/// A value in an error message; secrets are not shown.
fn shown(value: &Value, secret: bool) -> String {
    match value {
        _ if secret => "what it is".to_owned(),
        Value::String(text) => format!("`{}`", crate::yaml::shorten(text)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a table".to_owned(),
        Value::Null => "nothing".to_owned(),
        other => format!("`{other}`"),
    }
}

impl Kind {
    fn expected(self) -> String {
        match self {
            Self::Text => "a text".to_owned(),
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::Path => "a path".to_owned(),
            Self::Url => "a URL, such as https://example.org".to_owned(),
            Self::Name => "a name, such as local/my-actor".to_owned(),
            Self::Namespace => "a namespace, such as local".to_owned(),
            Self::Profile => "an automation profile".to_owned(),
            Self::Boolean => "true or false".to_owned(),
            Self::Integer(least) => format!("a whole number from {least}"),
            Self::Fraction => "a number from 0 to 1".to_owned(),
            Self::Amount => "a number from 0".to_owned(),
            Self::Names([]) => "a list of texts".to_owned(),
            Self::Names(words) => format!("a list of {}", words.join(", ")),
            Self::Integers => "a list of whole numbers from 0".to_owned(),
            Self::Table => "a table".to_owned(),
        }
    }
}

/// The key of that name.
pub fn key(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|k| k.name == name)
}

/// Other spellings of keys.
pub(super) const ALIASES: &[(&str, &str)] =
    &[("core.checkpoints.auto_create_on", "sandbox.checkpoint.auto-create-on")];

/// The key that a dotted path of a file or command sets, with what remains of the path behind a key that is open.
pub(super) fn key_of_path(path: &str) -> Option<(&'static Key, &str)> {
    let path = ALIASES.iter().find(|(alias, _)| *alias == path).map_or(path, |(_, name)| name);
    if let Some(key) = key(path) {
        return Some((key, ""));
    }
    KEYS.iter().find_map(|key| {
        let rest = path.strip_prefix(key.open_prefix()?)?;
        (rest.is_empty() || rest.starts_with('.')).then(|| (key, rest.trim_start_matches('.')))
    })
}

/// The known key nearest to an unknown one, also when only its last part was given.
pub(super) fn near(path: &str) -> Option<&'static str> {
    let names = || KEYS.iter().map(|k| k.name);
    let by_end = || {
        let mut ending =
            names().filter(|name| name.strip_suffix(path).is_some_and(|rest| rest.ends_with('.')));
        ending.next().filter(|_| ending.next().is_none())
    };
    nearest(path, names()).or_else(by_end)
}

/// `~/...` and paths relative to `base` made whole; other relative paths stay as they are.
pub(super) fn whole_path(text: &str, home: Option<&Path>, base: Option<&Path>) -> String {
    let path = match (text.strip_prefix('~'), home) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
            home.join(rest.trim_start_matches('/'))
        }
        _ => match base {
            Some(base) => base.join(text),
            None => Path::new(text).to_path_buf(),
        },
    };
    path.to_string_lossy().into_owned()
}
