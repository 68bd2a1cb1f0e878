//! Skills in the store.

use super::store::StoreResult;
use crate::skill::{Discovered, SkillDefinition};
use crate::{QualifiedName, Timestamp};

/// A registered skill.
#[derive(Debug, Clone, PartialEq)]
pub struct RegisteredSkill {
    /// What its file said.
    pub definition: SkillDefinition,
    /// What its servers and folders said of themselves when they were last asked.
    pub discovered: Discovered,
    /// The file, as given.
    pub config_path: String,
    /// The file's text.
    pub source: String,
    /// When it was registered.
    pub created_at: Timestamp,
    /// When its file was last registered.
    pub updated_at: Timestamp,
}

/// Reading skills.
#[allow(missing_docs, reason = "the signatures say it")]
pub trait SkillReads {
    fn skill(&self, name: &QualifiedName) -> StoreResult<Option<RegisteredSkill>>;
    /// By name.
    fn skills(&self) -> StoreResult<Vec<RegisteredSkill>>;
}

/// Writing skills.
pub trait SkillWrites {
    /// Registers one; its name must be free.
    fn insert_skill(&self, skill: &RegisteredSkill) -> StoreResult<()>;
    /// Writes one anew.
    fn update_skill(&self, skill: &RegisteredSkill) -> StoreResult<()>;
    /// Keeps what was discovered of one; nothing happens when it is gone.
    fn put_discovered(&self, name: &QualifiedName, discovered: &Discovered) -> StoreResult<()>;
    /// Removes one.
    fn delete_skill(&self, name: &QualifiedName) -> StoreResult<()>;
}
