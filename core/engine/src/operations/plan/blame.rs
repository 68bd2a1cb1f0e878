//! `plan blame`: which decision made a line.

use std::path::PathBuf;

use agents_domain::decision::DecisionStatus;
use agents_domain::ids::{DecisionId, PlanId, ResourceId};
use agents_domain::{Error, ErrorKind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Engine, Operation, blame};

/// Finds the decisions behind the lines of a file.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Blame {
    /// Absolute path of a file in a registered resource, in a plan's sandbox, or in a clone that has git notes of plans.
    pub file: String,
    /// Only this line, 1-based.
    #[serde(default)]
    pub line: Option<u32>,
    /// The text to look at instead of the file's (an editor's unsaved buffer).
    #[serde(default)]
    pub text: Option<String>,
}

/// The decisions behind a file.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct BlameOutput {
    pub file: String,
    pub path: String,
    pub resource_id: Option<ResourceId>,
    pub resource: Option<String>,
    pub segments: Vec<BlamedSegment>,
    /// What could not be looked at, for people.
    pub warnings: Vec<String>,
}

/// Lines and the decision behind them.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct BlamedSegment {
    /// 1-based first line; for a deletion the line now in its place.
    pub start_line: u32,
    /// 1-based last line, inclusive; before `start_line` for a deletion.
    pub end_line: u32,
    /// Lines were deleted here.
    pub deletion: bool,
    /// In a sandbox, not applied: the lines *would* change.
    pub proposed: bool,
    pub decision_id: DecisionId,
    pub plan_id: PlanId,
    pub question: String,
    pub chosen: String,
    /// The confidence of what was chosen, when an actor chose it.
    pub confidence: Option<f64>,
    /// A person chose it, here or in the strategy behind it.
    pub answered: bool,
    pub threshold: Option<f64>,
    pub rationale: String,
    pub alternatives: Vec<String>,
    pub status: DecisionStatus,
    pub created: String,
    pub action: String,
    /// The strategy decision it carries out, when it does.
    pub strategy: Option<StrategyBehind>,
    /// What stands there in the sandbox, for a proposed change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposed_text: Option<String>,
    /// The commit whose note says so, where the database does not know the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// The choice a change carries out.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct StrategyBehind {
    pub decision_id: DecisionId,
    pub question: String,
    pub chosen: String,
    pub confidence: Option<f64>,
    pub rationale: String,
    pub alternatives: Vec<String>,
    /// The alternatives' texts with the words that describe them.
    pub descriptions: Vec<Option<String>>,
}

impl Operation for Blame {
    const METHOD: &'static str = "plan/blame";
    const SUMMARY: &'static str = "Find the decision behind a line";
    type Output = BlameOutput;

    fn run(self, engine: &Engine) -> Result<BlameOutput> {
        let path = PathBuf::from(&self.file);
        if !path.is_absolute() {
            return Err(Error::validation(format!("`{}` must be an absolute path", self.file)));
        }
        if self.line == Some(0) {
            return Err(Error::new(ErrorKind::Usage, "lines are counted from 1"));
        }
        let (mut output, lines) = blame::file(engine, &path, self.text)?;
        if let Some(line) = self.line {
            // The place after the last line is where a deletion at the end shows.
            if line > lines.saturating_add(1) {
                let has = if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") };
                return Err(Error::validation(format!("{} has {has}: there is no line {line}", output.path))
                    .suggest(format!("agents plan blame {}", self.file)));
            }
            output.segments.retain(|s| {
                if s.deletion { s.start_line == line } else { s.start_line <= line && line <= s.end_line }
            });
        }
        Ok(output)
    }
}
