//! Registered tools in the store.

use serde::{Deserialize, Serialize};

use super::store::StoreResult;
use crate::tool::ToolDefinition;
use crate::{QualifiedName, Timestamp};

/// A registered tool with the file it came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegisteredTool {
    /// What its file said.
    pub definition: ToolDefinition,
    /// The file, as given.
    pub config_path: String,
    /// The file's text.
    pub source: String,
    /// 1 at first; each update adds 1.
    pub version: u32,
    /// When it was registered.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// Reading tools; validations are not among them.
#[allow(missing_docs, reason = "the signatures say it")]
pub trait ToolReads {
    fn tool(&self, name: &QualifiedName) -> StoreResult<Option<RegisteredTool>>;
    /// By name.
    fn tools(&self) -> StoreResult<Vec<RegisteredTool>>;
}

/// Registering and removing tools.
#[allow(missing_docs, reason = "the signatures say it")]
pub trait ToolWrites {
    /// [`super::store::StoreError::Duplicate`] when the name is taken, by a validation too.
    fn insert_tool(&self, tool: &RegisteredTool) -> StoreResult<()>;
    fn update_tool(&self, tool: &RegisteredTool) -> StoreResult<()>;
    fn delete_tool(&self, name: &QualifiedName) -> StoreResult<()>;
}
