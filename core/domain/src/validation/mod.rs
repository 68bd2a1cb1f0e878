//! Validations: what is checked at the end of Execute, where it is attached, and what came of it.
//!
//! A validation looks at the sandbox and says whether something holds; it changes nothing. It is attached to a
//! resource: for everybody, for one project, or for one plan. [`applicable`] says which attachments a plan runs.

mod definition;
mod record;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::diagnostics::Severity;
use crate::ids::{AttachmentId, PlanId, ResourceId};
use crate::invariant::{Enforced, Rule};
use crate::plan::{Plan, PlanResource};
use crate::{QualifiedName, Timestamp};

pub use definition::{
    BUILT_INS, BuiltIn, DEFAULT_TIMEOUT, Gate, OutputParser, ValidationDefinition, ValidationSource, built_in,
};
pub use record::{FixAttempt, PlanValidations, Run, ValidationOutcome};

/// What a failure means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// It must pass before the plan can be applied.
    #[default]
    Required,
    /// It is reported and blocks nothing.
    Informational,
}

impl Mode {
    /// Its word in data.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::Informational => "informational",
        }
    }
}

/// Whose plans an attachment is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "scope", content = "target", rename_all = "lowercase")]
pub enum Scope {
    /// Every plan that works on the resource.
    Direct,
    /// Plans of a project.
    Project(QualifiedName),
    /// One plan, and its child plans.
    Plan(PlanId),
}

impl Scope {
    /// `direct`, `project` or `plan`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Project(_) => "project",
            Self::Plan(_) => "plan",
        }
    }

    /// The project or plan it is for.
    pub fn target(&self) -> Option<String> {
        match self {
            Self::Direct => None,
            Self::Project(name) => Some(name.to_string()),
            Self::Plan(id) => Some(id.to_string()),
        }
    }

    /// `direct (always active)`, `project local/app`, `plan 01...`.
    pub fn describe(&self) -> String {
        match self.target() {
            None => "direct (always active)".to_owned(),
            Some(target) => format!("{} {target}", self.word()),
        }
    }

    /// How narrow it is: the narrower of two equal ones is run.
    fn rank(&self) -> u8 {
        match self {
            Self::Direct => 0,
            Self::Project(_) => 1,
            Self::Plan(_) => 2,
        }
    }
}

/// A validation attached to a resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attachment {
    /// Its id.
    pub attachment_id: AttachmentId,
    /// What is run: a registered validation, or a built-in one.
    pub validation: QualifiedName,
    /// The resource that is looked at.
    pub resource_id: ResourceId,
    /// Whose plans it is for.
    pub scope: Scope,
    /// Arguments of the validation.
    pub args: Map<String, Value>,
    /// When it was attached.
    pub created_at: Timestamp,
}

/// The attachments a plan runs, in the order of its resources and, for one resource, of attaching.
///
/// `plans` are the plan and those above it, whose plan-scoped attachments it inherits. Of attachments of one validation to
/// one resource with the same arguments only one is run: the narrowest, then the oldest.
pub fn applicable<'a>(
    attachments: &'a [Attachment],
    resources: &[PlanResource],
    projects: &[QualifiedName],
    plans: &[PlanId],
) -> Vec<&'a Attachment> {
    let for_plan = |attachment: &&Attachment| match &attachment.scope {
        Scope::Direct => true,
        Scope::Project(name) => projects.contains(name),
        Scope::Plan(id) => plans.contains(id),
    };
    let mut chosen = Vec::new();
    let mut visited = HashSet::new();
    for resource in resources.iter().map(|r| r.resource_id).filter(|id| visited.insert(*id)) {
        let mut here: Vec<&Attachment> =
            attachments.iter().filter(|a| a.resource_id == resource).filter(for_plan).collect();
        here.sort_by_key(|a| (std::cmp::Reverse(a.scope.rank()), a.attachment_id));
        let mut seen: Vec<(&QualifiedName, &Map<String, Value>)> = Vec::new();
        here.retain(|a| {
            let new = !seen.contains(&(&a.validation, &a.args));
            seen.push((&a.validation, &a.args));
            new
        });
        here.sort_by_key(|a| a.attachment_id);
        chosen.extend(here);
    }
    chosen
}

/// What is run because an invariant says that it must pass and nobody attached it: on every resource the plan may change.
/// The same decision and resource give the same id.
pub fn demanded(enforced: &[Enforced], plan: &Plan, attached: &[&Attachment]) -> Vec<Attachment> {
    let mut found: Vec<Attachment> = Vec::new();
    for invariant in enforced {
        let Some(check) = invariant.check.as_ref().filter(|check| !check.waived) else { continue };
        let Rule::RequiredValidation { validation } = &check.rule else { continue };
        let Ok(validation) = validation.parse::<QualifiedName>() else { continue };
        if attached.iter().any(|a| a.validation == validation)
            || found.iter().any(|a| a.validation == validation)
        {
            continue;
        }
        let decision = invariant.decision_id.ulid();
        let resources = plan.resources.iter().filter(|r| !r.read_only).map(|r| r.resource_id);
        found.extend(resources.map(|resource_id| Attachment {
            attachment_id: AttachmentId::from_ulid(ulid::Ulid::from_parts(
                decision.timestamp_ms(),
                decision.random() ^ resource_id.ulid().random(),
            )),
            validation: validation.clone(),
            resource_id,
            scope: Scope::Plan(plan.plan_id),
            args: Map::new(),
            created_at: plan.created_at,
        }));
    }
    found
}

/// A place a validation points at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Relative to the resource, with `/`, when a file is meant.
    pub file: Option<String>,
    /// 1-based.
    pub line: Option<u32>,
    /// 1-based.
    pub column: Option<u32>,
    /// How bad.
    pub severity: Severity,
    /// For people.
    pub message: String,
    /// A rule, or the name of a test.
    pub code: Option<String>,
}

impl Finding {
    /// An error with a message.
    pub fn error(message: impl Into<String>) -> Self {
        Self {
            file: None,
            line: None,
            column: None,
            severity: Severity::Error,
            message: message.into(),
            code: None,
        }
    }

    /// `tests/a.py:3: message (code)` on one line.
    pub fn line_text(&self) -> String {
        let mut place = self.file.clone().unwrap_or_default();
        if let (false, Some(line)) = (place.is_empty(), self.line) {
            place.push_str(&format!(":{line}"));
        }
        let message = self.message.lines().next().unwrap_or_default();
        match (place.is_empty(), &self.code) {
            (true, None) => message.to_owned(),
            (true, Some(code)) => format!("{code} -- {message}"),
            (false, None) => format!("{place} -- {message}"),
            (false, Some(code)) => format!("{place} {code} -- {message}"),
        }
    }
}

/// What a run of a validation says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Whether what it looks for holds.
    pub passed: bool,
    /// For people.
    pub message: String,
    /// More, per validation.
    pub data: Map<String, Value>,
    /// The places it points at.
    pub findings: Vec<Finding>,
    /// It could not be run to its end: not found, timed out, crashed, or it wrote something.
    pub error: bool,
}

impl Verdict {
    /// It holds.
    pub fn passed(message: impl Into<String>) -> Self {
        Self { passed: true, message: message.into(), ..Self::default() }
    }

    /// It does not hold.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// It could not be found out.
    pub fn broken(message: impl Into<String>) -> Self {
        Self { message: message.into(), error: true, ..Self::default() }
    }

    /// Reads the result object of a validation tool: `passed` must be there and a boolean (VALID-005, VALID-006).
    pub fn from_output(raw: &str) -> Self {
        let parsed = serde_json::from_str::<Value>(raw.trim()).ok();
        let passed = parsed.as_ref().and_then(|v| v.get("passed")).and_then(Value::as_bool);
        let (Some(Value::Object(mut object)), Some(passed)) = (parsed, passed) else {
            let mut broken = Self::broken("the validation returned no JSON object with a boolean `passed`");
            broken.data.insert("raw_output".to_owned(), raw.into());
            return broken;
        };
        let message = object.get("message").and_then(Value::as_str).map(str::to_owned);
        let default = if passed { "passed" } else { "failed" };
        let data = match object.remove("data") {
            Some(Value::Object(data)) => data,
            _ => Map::new(),
        };
        Self { passed, message: message.unwrap_or_else(|| default.to_owned()), data, ..Self::default() }
    }
}
