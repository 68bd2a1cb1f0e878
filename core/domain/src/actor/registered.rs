//! An actor as it is kept: the text of its file, and what was said when it was added.

use serde::{Deserialize, Serialize};

use crate::{QualifiedName, Timestamp};

/// A registered actor. Its definition is read from `source` whenever it is needed, because it depends on the environment;
/// what the environment says is never kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegisteredActor {
    /// Its name.
    pub name: QualifiedName,
    /// The text of its file, as it was written.
    pub source: String,
    /// The file; absolute.
    pub config_path: String,
    /// What was said on the command line.
    pub overrides: Overrides,
    /// Used where no actor is named; at most one actor is.
    pub is_default: bool,
    /// How often `actor run` ran it.
    pub runs: u64,
    /// What these runs cost in US dollars, as far as it is known.
    pub cost_usd: f64,
    /// When it was registered.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// What the command line says about an actor; it goes before the file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Overrides {
    /// The provider of its models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Its model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// It is unsafe, whatever its file says.
    #[serde(rename = "unsafe")]
    pub is_unsafe: bool,
    /// More skills for all its agents that have a model.
    pub skills: Vec<QualifiedName>,
}
