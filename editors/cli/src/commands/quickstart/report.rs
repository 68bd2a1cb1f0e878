//! What programs get of a quickstart; filled as it goes, so that a run that stops early says what it came to.

use std::path::PathBuf;

use agents_engine::operations::lsp::DetectedLanguage;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::next::Editors;
use super::servers::Ready;

/// What programs get.
#[derive(Default, Serialize, JsonSchema)]
pub struct Report {
    pub repository: Option<Repository>,
    pub languages: Vec<DetectedLanguage>,
    pub servers: Vec<Ready>,
    pub resource: Option<String>,
    pub project: Option<String>,
    pub action: Option<String>,
    pub plan_id: Option<String>,
    pub decisions: Vec<Decided>,
    pub files_changed: usize,
    pub files: Vec<Value>,
    pub applied: bool,
    pub commit: Option<String>,
    pub next_steps: Vec<String>,
    pub editors: Option<Editors>,
}

/// The repository that was worked on.
#[derive(Clone, Serialize, JsonSchema)]
pub struct Repository {
    /// Its top level.
    pub path: PathBuf,
    /// It is a sample.
    pub sample: bool,
    /// It was made by this run.
    pub created: bool,
}

/// A decision of Strategize.
#[derive(Serialize, JsonSchema)]
pub struct Decided {
    pub decision_id: String,
    pub question: String,
    pub chosen: String,
    pub confidence: Option<f64>,
}
