//! Actions: reusable descriptions of work that become plans.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::children::SubplanConfig;
use crate::{QualifiedName, Timestamp};

/// The type of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names say it")]
pub enum ArgumentType {
    String,
    Integer,
    Float,
    Boolean,
    List,
}

/// An argument a plan gives a value to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActionArgument {
    /// Its name, used as `{{ name }}` in the description.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub argument_type: ArgumentType,
    /// It has no default and must be given.
    #[serde(default)]
    pub required: bool,
    /// For people.
    #[serde(default)]
    pub description: Option<String>,
    /// Its value when not given.
    #[serde(default)]
    pub default: Option<serde_json::Value>,
    /// What a string must match, anchored by the author.
    #[serde(default)]
    pub validation_pattern: Option<String>,
    /// The least number.
    #[serde(default)]
    pub min_value: Option<f64>,
    /// The greatest number.
    #[serde(default)]
    pub max_value: Option<f64>,
}

/// Whether an action may be used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names say it")]
pub enum ActionState {
    #[default]
    Available,
    Archived,
}

/// What an action file says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActionDefinition {
    /// Its name.
    pub name: QualifiedName,
    /// What the plan shall do; may use `{{ argument }}`.
    pub description: String,
    /// More for people.
    #[serde(default)]
    pub long_description: Option<String>,
    /// When the work is done; may use `{{ argument }}`.
    pub definition_of_done: String,
    /// The actor that decides what to do.
    pub strategy_actor: QualifiedName,
    /// The actor that does it.
    pub execution_actor: QualifiedName,
    /// The actor that estimates cost.
    #[serde(default)]
    pub estimation_actor: Option<QualifiedName>,
    /// The actor that reviews.
    #[serde(default)]
    pub review_actor: Option<QualifiedName>,
    /// The actor that applies.
    #[serde(default)]
    pub apply_actor: Option<QualifiedName>,
    /// The actor that reconciles invariants.
    #[serde(default)]
    pub invariant_actor: Option<QualifiedName>,
    /// It stays after its first use.
    #[serde(default = "yes")]
    pub reusable: bool,
    /// Its plans change nothing.
    #[serde(default)]
    pub read_only: bool,
    /// Whether it may be used.
    #[serde(default)]
    pub state: ActionState,
    /// What a plan must or may say.
    #[serde(default)]
    pub arguments: Vec<ActionArgument>,
    /// The profile of its plans unless a plan names another.
    #[serde(default)]
    pub automation_profile: Option<String>,
    /// What its plans must keep to.
    #[serde(default)]
    pub invariants: Vec<String>,
    /// Limits of its plans, over those of the profile.
    #[serde(default)]
    pub safety_profile: Option<serde_json::Value>,
    /// How its plans run their child plans.
    #[serde(default)]
    pub subplan: SubplanConfig,
}

fn yes() -> bool {
    true
}

/// A registered action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// What its file said.
    pub definition: ActionDefinition,
    /// The file it came from, as given.
    pub config_path: String,
    /// The file's text.
    pub source: String,
    /// When it was registered.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}
