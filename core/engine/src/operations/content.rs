//! Stored texts by their hash: the sides of a diff, for those who show it in their own way.

use agents_domain::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Engine, Operation};

/// Reads a stored text.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Show {
    /// The SHA-256 that another operation gave: `base_hash` and `sandbox_hash` of `plan/diff`, `before_hash` and
    /// `after_hash` of `plan/correction-diff`.
    pub hash: String,
}

/// A stored text.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ShowOutput {
    /// Its hash.
    pub hash: String,
    /// What is stored; absent where it is no UTF-8.
    pub text: Option<String>,
    /// Its size in bytes.
    pub size_bytes: usize,
}

impl Operation for Show {
    const METHOD: &'static str = "content/show";
    const SUMMARY: &'static str = "Read a stored text by its hash";
    type Output = ShowOutput;

    fn run(self, engine: &Engine) -> Result<ShowOutput> {
        let Some(bytes) = engine.store.blob(&self.hash)? else {
            return Err(Error::not_found(format!("nothing is stored under `{}`", self.hash))
                .detail("a hash is the 64 digits that `plan/diff` or `plan/correction-diff` gives"));
        };
        let size_bytes = bytes.len();
        Ok(ShowOutput { hash: self.hash, text: String::from_utf8(bytes).ok(), size_bytes })
    }
}
