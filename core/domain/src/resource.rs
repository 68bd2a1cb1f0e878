//! Resources: what plans read and change.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::ResourceId;
use crate::{QualifiedName, Timestamp};

/// A registered or discovered resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resource {
    /// Its id.
    pub resource_id: ResourceId,
    /// Its name; discovered children have none.
    pub name: Option<QualifiedName>,
    /// The type's name, such as `git-checkout`.
    pub resource_type: String,
    /// For people.
    pub description: Option<String>,
    /// Absolute path of its root, for types that have one.
    pub location: Option<String>,
    /// The type's own properties (`path`, `branch`, ...).
    pub properties: serde_json::Map<String, serde_json::Value>,
    /// Parents in the resource graph.
    pub parents: Vec<ResourceId>,
    /// When it was registered.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// How changes to a type are kept apart until they are applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names are the specification's")]
pub enum SandboxStrategy {
    GitWorktree,
    CopyOnWrite,
    None,
}

impl SandboxStrategy {
    /// Its name in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GitWorktree => "git_worktree",
            Self::CopyOnWrite => "copy_on_write",
            Self::None => "none",
        }
    }

    /// Whether changes kept apart like this can be taken back to an earlier point.
    pub fn rolls_back(self) -> bool {
        match self {
            Self::GitWorktree | Self::CopyOnWrite => true,
            Self::None => false,
        }
    }
}

/// What a resource type is.
#[derive(Debug, Clone, Copy)]
pub struct ResourceType {
    /// Its name.
    pub name: &'static str,
    /// A person may register one.
    pub user_addable: bool,
    /// How its changes are sandboxed.
    pub strategy: SandboxStrategy,
    /// Files can be written.
    pub writable: bool,
    /// What it is, for people.
    pub description: &'static str,
    /// What registering one takes.
    pub arguments: &'static [TypeArgument],
    /// The types that are discovered in one.
    pub children: &'static [&'static str],
}

/// Something that registering a resource takes.
#[derive(Debug, Clone, Copy)]
pub struct TypeArgument {
    /// The option, without dashes.
    pub name: &'static str,
    /// `path` or `string`.
    pub kind: &'static str,
    /// It must be given.
    pub required: bool,
    /// What it is, for people.
    pub description: &'static str,
}

const PATH: TypeArgument =
    TypeArgument { name: "path", kind: "path", required: true, description: "Its directory" };

const BRANCH: TypeArgument = TypeArgument {
    name: "branch",
    kind: "string",
    required: false,
    description: "The branch plans work on; the one checked out unless given",
};

/// The built-in types in use.
pub const RESOURCE_TYPES: [ResourceType; 3] = [
    ResourceType {
        name: "git-checkout",
        user_addable: true,
        strategy: SandboxStrategy::GitWorktree,
        writable: true,
        description: "A checked-out git repository",
        arguments: &[PATH, BRANCH],
        children: &["git"],
    },
    ResourceType {
        name: "git",
        user_addable: false,
        strategy: SandboxStrategy::None,
        writable: false,
        description: "The repository data of a checkout",
        arguments: &[],
        children: &[],
    },
    ResourceType {
        name: "fs-directory",
        user_addable: true,
        strategy: SandboxStrategy::CopyOnWrite,
        writable: true,
        description: "A directory of files",
        arguments: &[PATH],
        children: &[],
    },
];

/// Looks a built-in type up.
pub fn resource_type(name: &str) -> Option<&'static ResourceType> {
    RESOURCE_TYPES.iter().find(|t| t.name == name)
}
