//! The tools of actors that the engine itself provides.

use std::collections::BTreeSet;

use agents_domain::ids::ResourceId;
use agents_domain::plan::{Phase, Plan};
use agents_domain::ports::actor::Request;
use agents_domain::text::FileEdit;
use agents_sandbox::AppliedEdit;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::sandboxes::OpenSandbox;

/// Applies edits to files of one resource's sandbox, all or none.
pub(crate) const APPLY_EDITS: &str = "builtin/apply-edits";

/// Arguments of [`APPLY_EDITS`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ApplyEdits {
    resource: ResourceId,
    edits: Vec<FileEdit>,
}

/// What a tool wrote.
pub(crate) struct Written {
    pub resource_id: ResourceId,
    pub edits: Vec<AppliedEdit>,
}

impl Written {
    /// The files touched, a renamed one under both names.
    pub fn paths(&self) -> Vec<String> {
        let both = self.edits.iter().flat_map(|e| e.old_path.iter().chain(std::iter::once(&e.path)));
        both.collect::<BTreeSet<_>>().into_iter().cloned().collect()
    }

    /// What the actor is told.
    pub fn result(&self) -> Value {
        let files: Vec<Value> = self
            .edits
            .iter()
            .map(|e| json!({ "path": e.path, "old_path": e.old_path, "kind": e.kind }))
            .collect();
        json!({ "files": files })
    }
}

/// The files a request would write, as far as it says.
pub(crate) fn paths_of(request: &Request) -> Vec<String> {
    let Request::Tool { tool, args, .. } = request else { return Vec::new() };
    let mut paths = Vec::new();
    for edit in edits_of(tool, args).map(|(_, edits)| edits).unwrap_or_default() {
        paths.push(edit.path().to_owned());
        if let FileEdit::Rename { to, .. } = edit {
            paths.push(to);
        }
    }
    paths
}

/// The resource and edits of a call, when the tool edits files and its arguments can be read.
pub(crate) fn edits_of(tool: &str, args: &Value) -> Option<(ResourceId, Vec<FileEdit>)> {
    if tool != APPLY_EDITS {
        return None;
    }
    let args: ApplyEdits = serde_json::from_value(args.clone()).ok()?;
    Some((args.resource, args.edits))
}

/// Runs a tool; `Err` is a reason for the actor, and nothing was changed.
pub(crate) fn run(
    plan: &Plan,
    tool: &str,
    args: Value,
    sandboxes: &[OpenSandbox],
) -> Result<Written, String> {
    if tool != APPLY_EDITS {
        return Err(format!("there is no tool `{tool}`"));
    }
    match plan.phase {
        Phase::Execute if plan.read_only => return Err("the plan is read-only".to_owned()),
        Phase::Execute => {}
        phase => return Err(format!("nothing is written in {phase}")),
    }
    let args: ApplyEdits =
        serde_path_to_error::deserialize(args).map_err(|e| format!("at `{}`: {}", e.path(), e.inner()))?;
    let sandbox = sandboxes
        .iter()
        .find(|s| s.resource_id == args.resource)
        .ok_or_else(|| format!("resource {} is not part of the plan", args.resource))?;
    if sandbox.read_only {
        return Err(format!("resource {} is linked read-only", sandbox.name));
    }
    let edits = sandbox.apply_edits(&args.edits).map_err(|e| e.message)?;
    Ok(Written { resource_id: args.resource, edits })
}
