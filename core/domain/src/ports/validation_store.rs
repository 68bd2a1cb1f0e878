//! Registered validations and their attachments in the store.

use serde::{Deserialize, Serialize};

use super::store::StoreResult;
use crate::ids::AttachmentId;
use crate::validation::{Attachment, ValidationDefinition};
use crate::{QualifiedName, Timestamp};

/// A registered validation with the file it came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegisteredValidation {
    /// What its file said.
    pub definition: ValidationDefinition,
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

/// Reading validations.
#[allow(missing_docs, reason = "the signatures say it")]
pub trait ValidationReads {
    fn validation(&self, name: &QualifiedName) -> StoreResult<Option<RegisteredValidation>>;
    /// By name.
    fn validations(&self) -> StoreResult<Vec<RegisteredValidation>>;
    /// All, oldest first.
    fn attachments(&self) -> StoreResult<Vec<Attachment>>;
}

/// Registering and attaching validations.
#[allow(missing_docs, reason = "the signatures say it")]
pub trait ValidationWrites {
    /// [`super::store::StoreError::Duplicate`] when the name is taken, by a tool too.
    fn insert_validation(&self, validation: &RegisteredValidation) -> StoreResult<()>;
    fn update_validation(&self, validation: &RegisteredValidation) -> StoreResult<()>;
    /// Its attachments go with it.
    fn delete_validation(&self, name: &QualifiedName) -> StoreResult<()>;
    fn insert_attachment(&self, attachment: &Attachment) -> StoreResult<()>;
    fn delete_attachment(&self, id: AttachmentId) -> StoreResult<()>;
}
