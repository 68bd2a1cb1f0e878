//! `builtin/apply-edits`: edits of files of one resource's sandbox, all or none.

use agents_domain::ids::ResourceId;
use agents_domain::text::FileEdit;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{Body, Edits, Tool, args, writes};

/// Its arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The id of the resource.
    resource: ResourceId,
    /// What is done, in order: all of it or nothing.
    edits: Vec<FileEdit>,
    /// Also say what language servers find that they did not find before; yes unless given.
    #[serde(default, rename = "diagnostics")]
    _diagnostics: Option<bool>,
}

pub(super) fn tool() -> Tool {
    let mut tool = writes(
        "file_operations",
        "apply-edits",
        "Edits, creates, renames and deletes files of a sandbox",
        args::schema::<Arguments>(),
        Body::Edit(|args, _| edits(args)),
    );
    tool.reads_strictly = true;
    tool
}

/// The resource and edits of a call.
pub(super) fn edits(args: &Value) -> Result<Edits, String> {
    let args: Arguments = args::read(args)?;
    Ok((args.resource, args.edits))
}
