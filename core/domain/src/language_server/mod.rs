//! The registered definition of an external language server, and which servers an actor is lent ([`binding`]).

pub mod binding;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::QualifiedName;

/// How the client and the server talk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// Over the process's standard input and output.
    #[default]
    Stdio,
    /// Over a TCP connection to the loopback interface, after the command was started.
    Tcp {
        /// Usually `127.0.0.1`.
        host: String,
        /// The port the command listens on.
        port: u16,
    },
}

/// When a silent server counts as dead, and how often it is brought back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HealthCheck {
    /// Probe at all.
    pub enabled: bool,
    /// Seconds between probes, at least 10.
    pub interval_seconds: u32,
    /// Restart a server that died or does not answer.
    pub restart_on_failure: bool,
    /// Automatic restarts before the server is given up.
    pub max_restarts: u32,
}

impl Default for HealthCheck {
    fn default() -> Self {
        Self { enabled: true, interval_seconds: 60, restart_on_failure: true, max_restarts: 3 }
    }
}

/// A capability of a language server that actors and editors can be lent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each is the LSP feature of its name")]
pub enum Capability {
    Diagnostics,
    Hover,
    Completions,
    References,
    Definitions,
    Rename,
    CodeActions,
    Formatting,
    SignatureHelp,
    DocumentSymbols,
    WorkspaceSymbols,
    /// Document and workspace symbols together.
    Symbols,
}

/// A registry entry (`agents lsp add`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LanguageServerDefinition {
    /// Its name, such as `local/ruff`.
    pub name: QualifiedName,
    /// What it is for, for people.
    #[serde(default)]
    pub description: Option<String>,
    /// Language ids as registered (`python`, `typescript`, `c`); at least one.
    pub languages: Vec<String>,
    /// The program: a name looked up on PATH, or a path.
    pub command: String,
    /// Its arguments; never passed through a shell.
    #[serde(default)]
    pub args: Vec<String>,
    /// Variables over the inherited environment; values may hold `${NAME}`, resolved when the server is started.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// How to talk to it.
    #[serde(default)]
    pub transport: Transport,
    /// Sent as `initializationOptions`.
    #[serde(default)]
    pub init_options: serde_json::Value,
    /// Answers `workspace/configuration` and is pushed after `initialized`.
    #[serde(default)]
    pub workspace_settings: serde_json::Value,
    /// Template of the workspace root; `{{ project.root }}` unless given.
    #[serde(default = "default_root")]
    pub root_path: String,
    /// What is lent; `None` is all that the server offers.
    #[serde(default)]
    pub capabilities: Option<Vec<Capability>>,
    /// Probes and restarts.
    #[serde(default)]
    pub health_check: HealthCheck,
}

pub(crate) fn default_root() -> String {
    "{{ project.root }}".to_owned()
}

impl LanguageServerDefinition {
    /// The command line as one string, for display.
    pub fn command_line(&self) -> String {
        std::iter::once(self.command.as_str())
            .chain(self.args.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Whether a capability may be lent: it is declared, or none is.
    pub fn lends(&self, capability: Capability) -> bool {
        let Some(declared) = &self.capabilities else { return true };
        let symbols = matches!(capability, Capability::DocumentSymbols | Capability::WorkspaceSymbols);
        declared.contains(&capability) || symbols && declared.contains(&Capability::Symbols)
    }
}

/// The answer to one item of `workspace/configuration`: the settings under a dotted section, `null` when unknown.
///
/// Settings may be written nested, flat (`python.analysis: ...`) or mixed.
pub fn section(settings: &serde_json::Value, section: Option<&str>) -> serde_json::Value {
    let Some(section) = section.filter(|section| !section.is_empty()) else { return settings.clone() };
    fn find<'a>(settings: &'a serde_json::Value, section: &str) -> Option<&'a serde_json::Value> {
        if let Some(value) = settings.get(section) {
            return Some(value);
        }
        section
            .match_indices('.')
            .find_map(|(dot, _)| find(settings.get(&section[..dot])?, &section[dot + 1..]))
    }
    find(settings, section).cloned().unwrap_or(serde_json::Value::Null)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn settings_are_found_nested_flat_and_mixed() {
        let settings = json!({"a": {"b": {"c": 1}, "x.y": 2}, "p.q": {"r": 3}});
        for (name, expected) in [
            (Some("a.b"), json!({"c": 1})),
            (Some("a.b.c"), json!(1)),
            (Some("a.x.y"), json!(2)),
            (Some("p.q.r"), json!(3)),
            (Some("a.none"), Value::Null),
            (Some("none"), Value::Null),
            (Some(""), settings.clone()),
            (None, settings.clone()),
        ] {
            assert_eq!(section(&settings, name), expected, "{name:?}");
        }
        assert_eq!(section(&Value::Null, Some("a")), Value::Null);
    }
}
