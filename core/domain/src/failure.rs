//! What failed before: shapes that failures of different plans have in common, and what they tell.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::decision::DecisionType;
use crate::ids::PlanId;
use crate::plan::Phase;

/// What failures have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct FailureShape {
    /// As in `PlanFailure::category`.
    pub category: String,
    /// The tool or actor that failed.
    pub tool: Option<String>,
    /// The kind of decision it failed under.
    pub decision_type: Option<DecisionType>,
    /// The kind of files it was about: [`path_shape`].
    pub path_shape: Option<String>,
}

/// A failure as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FailureRecord {
    /// The plan.
    pub plan_id: PlanId,
    /// The phase.
    pub phase: Phase,
    /// The step, for people.
    pub step: Option<String>,
    /// What it has in common with others.
    pub shape: FailureShape,
    /// For people.
    pub message: String,
    /// What may help, most useful first.
    pub hints: Vec<String>,
    /// What was done about it: `retried`, `restored`, `refused`, `reverted`, `asked` or `failed`.
    pub outcome: String,
    /// When.
    pub created_at: Timestamp,
}

/// Failures of one shape, over all plans.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FailurePattern {
    /// What they have in common.
    pub shape: FailureShape,
    /// How many there were.
    pub count: u32,
    /// In how many plans.
    pub plans: u32,
    /// What the latest said.
    pub last_message: String,
    /// What helped against it, or may.
    pub hints: Vec<String>,
    /// When the latest was.
    pub last_seen: Timestamp,
}

impl FailurePattern {
    /// Whether a decision of this kind about these files may fail in the same way.
    pub fn concerns(&self, decision_type: DecisionType, paths: &[&str]) -> bool {
        let shape = &self.shape;
        shape.decision_type == Some(decision_type)
            && shape.path_shape.as_ref().is_none_or(|known| paths.iter().any(|p| path_shape(p) == *known))
    }

    /// How much it lowers confidence: 0.5 for one failure, more for more, below 1.0.
    pub fn weight(&self) -> f64 {
        let count = f64::from(self.count);
        count / (count + 1.0)
    }
}

/// The kind of a file by where it is and what it is called: `src/a/b.py` is `src/**/*.py`, `Makefile` is `Makefile`.
pub fn path_shape(path: &str) -> String {
    let (folder, name) = match path.rsplit_once('/') {
        Some((folder, name)) => (folder.split('/').next(), name),
        None => (None, path),
    };
    let name = match name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() && !ending.is_empty() => format!("*.{ending}"),
        _ => name.to_owned(),
    };
    match folder {
        Some(folder) => format!("{folder}/**/{name}"),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_alike_have_one_shape() {
        assert_eq!(path_shape("src/a/b/c.py"), path_shape("src/d.py"));
        assert_eq!(path_shape("src/d.py"), "src/**/*.py");
        assert_eq!(path_shape("setup.py"), "*.py");
        assert_eq!(path_shape(".bashrc"), ".bashrc");
        assert_eq!(path_shape("bin/run"), "bin/**/run");
    }

    // GUARD-020
    #[test]
    fn a_pattern_concerns_decisions_of_its_kind_about_its_files() {
        let pattern = FailurePattern {
            shape: FailureShape {
                category: "tool".to_owned(),
                tool: Some("builtin/apply-edits".to_owned()),
                decision_type: Some(DecisionType::ImplementationChoice),
                path_shape: Some("src/**/*.py".to_owned()),
            },
            count: 3,
            plans: 1,
            last_message: "no".to_owned(),
            hints: Vec::new(),
            last_seen: Timestamp::from_micros(0),
        };
        assert!(pattern.concerns(DecisionType::ImplementationChoice, &["a.c", "src/x/y.py"]));
        assert!(!pattern.concerns(DecisionType::StrategyChoice, &["src/x/y.py"]));
        assert!(!pattern.concerns(DecisionType::ImplementationChoice, &["tests/y.py"]));
        assert_eq!(pattern.weight(), 0.75);
    }
}
