//! What a tool may do, and what is said of that where the tool is used.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ports::tool::Capability;

/// How far back a checkpoint brings what a tool wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each is the unit of its name")]
pub enum CheckpointScope {
    File,
    Transaction,
    Snapshot,
    Composite,
    Commit,
}

impl CheckpointScope {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Transaction => "transaction",
            Self::Snapshot => "snapshot",
            Self::Composite => "composite",
            Self::Commit => "commit",
        }
    }
}

/// What a tool may do, as it is offered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Offered {
    /// What it may do.
    #[serde(flatten)]
    pub capability: Capability,
    /// How far back a checkpoint brings what it wrote; `None` unless `checkpointable`.
    pub checkpoint_scope: Option<CheckpointScope>,
    /// What it may write to, such as `github:issues`, for people and the audit.
    pub write_scope: Vec<String>,
}

/// What is said of a tool in place of what it says itself; what is not named stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CapabilityOverride {
    /// It changes nothing anywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// It changes resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes: Option<bool>,
    /// What it may write to, such as `github:issues`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_scope: Option<Vec<String>>,
    /// What it wrote can be taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpointable: Option<bool>,
    /// How far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_scope: Option<CheckpointScope>,
    /// Calling it twice is the same as calling it once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// It may do harm that no sandbox keeps in.
    #[serde(rename = "unsafe", skip_serializing_if = "Option::is_none")]
    pub is_unsafe: Option<bool>,
    /// A person has to agree to each call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub human_approval_required: Option<bool>,
    /// What it does beyond the sandbox, in words such as `network`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub side_effects: Option<Vec<String>>,
}

impl CapabilityOverride {
    /// What is offered when this is said of it. Saying one of `read_only` and `writes` settles the other.
    pub fn over(&self, mut offered: Offered) -> Offered {
        fn set<T: Clone>(place: &mut T, said: Option<&T>) {
            if let Some(said) = said {
                place.clone_from(said);
            }
        }
        let of = &mut offered.capability;
        match (self.read_only, self.writes) {
            (Some(true), _) => (of.read_only, of.writes) = (true, false),
            (_, Some(true)) => (of.read_only, of.writes) = (false, true),
            (read_only, writes) => {
                set(&mut of.read_only, read_only.as_ref());
                set(&mut of.writes, writes.as_ref());
            }
        }
        set(&mut of.checkpointable, self.checkpointable.as_ref());
        set(&mut of.idempotent, self.idempotent.as_ref());
        set(&mut of.is_unsafe, self.is_unsafe.as_ref());
        set(&mut of.human_approval_required, self.human_approval_required.as_ref());
        set(&mut of.side_effects, self.side_effects.as_ref());
        set(&mut offered.write_scope, self.write_scope.as_ref());
        if self.checkpoint_scope.is_some() {
            offered.checkpoint_scope = self.checkpoint_scope;
            offered.capability.checkpointable = self.checkpointable != Some(false);
        }
        if !offered.capability.checkpointable {
            offered.checkpoint_scope = None;
        } else if offered.checkpoint_scope.is_none() {
            offered.checkpoint_scope = Some(CheckpointScope::File);
        }
        offered
    }

    /// Nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
