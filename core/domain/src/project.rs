//! Projects: what a person works on, as linked resources.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::ResourceId;
use crate::{QualifiedName, Timestamp};

/// A resource linked to a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectResource {
    /// The resource.
    pub resource_id: ResourceId,
    /// The project may not change it.
    pub read_only: bool,
}

/// A project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Project {
    /// Its name.
    pub name: QualifiedName,
    /// For people.
    pub description: Option<String>,
    /// What it is made of, in the order linked.
    pub resources: Vec<ProjectResource>,
    /// The actor that reconciles its invariants, when not the default one.
    pub invariant_actor: Option<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}
