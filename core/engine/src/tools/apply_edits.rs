//! `builtin/apply-edits`: edits of files of one resource's sandbox, all or none.

use agents_domain::ids::ResourceId;
use agents_domain::plan::guards::ToolFacts;
use agents_domain::text::FileEdit;
use serde::Deserialize;
use serde_json::Value;

use super::{Tool, Written};
use crate::sandboxes::OpenSandbox;

/// The tool.
pub(super) struct ApplyEdits;

static FACTS: ToolFacts = ToolFacts {
    name: "builtin/apply-edits",
    summary: "Edits, creates, renames and deletes files of a sandbox",
    category: "edit",
    writes: true,
    is_unsafe: false,
    checkpointable: true,
    side_effects: &[],
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    resource: ResourceId,
    edits: Vec<FileEdit>,
    /// See [`wants_diagnostics`](super::wants_diagnostics).
    #[serde(default, rename = "diagnostics")]
    _diagnostics: Option<bool>,
}

impl Tool for ApplyEdits {
    fn facts(&self) -> &'static ToolFacts {
        &FACTS
    }

    fn edits(&self, args: &Value) -> Option<(ResourceId, Vec<FileEdit>)> {
        let args = Arguments::deserialize(args).ok()?;
        Some((args.resource, args.edits))
    }

    fn run(&self, args: Value, sandboxes: &[OpenSandbox]) -> Result<Written, String> {
        let args: Arguments = serde_path_to_error::deserialize(args)
            .map_err(|e| format!("at `{}`: {}", e.path(), e.inner()))?;
        let sandbox = sandboxes
            .iter()
            .find(|s| s.resource_id == args.resource)
            .ok_or_else(|| format!("resource {} is not part of the plan", args.resource))?;
        if sandbox.read_only {
            return Err(format!("resource {} is linked read-only", sandbox.name));
        }
        let edits = sandbox.apply_edits(&args.edits).map_err(|e| e.message)?;
        Ok(Written { resource_id: args.resource, edits, diagnostics: None })
    }
}
