//! The tools of actors that the engine itself provides: one file each, and what is known of every one of them.

mod apply_edits;

use std::collections::BTreeSet;

use agents_domain::ids::ResourceId;
use agents_domain::plan::guards::ToolFacts;
use agents_domain::plan::{Phase, Plan};
use agents_domain::ports::actor::Request;
use agents_domain::text::FileEdit;
use agents_sandbox::AppliedEdit;
use agents_tools::delta::Delta;
use serde_json::{Value, json};

use crate::sandboxes::OpenSandbox;

/// A tool.
pub(crate) trait Tool: Sync {
    /// What is known of it.
    fn facts(&self) -> &'static ToolFacts;

    /// The resource and edits of a call, when the tool edits files and its arguments can be read.
    fn edits(&self, args: &Value) -> Option<(ResourceId, Vec<FileEdit>)>;

    /// Runs it; `Err` is a reason for the actor, and nothing was changed.
    fn run(&self, args: Value, sandboxes: &[OpenSandbox]) -> Result<Written, String>;
}

/// Every tool there is.
pub(crate) const ALL: &[&dyn Tool] = &[&apply_edits::ApplyEdits];

/// Looks a tool up.
pub(crate) fn find(name: &str) -> Option<&'static dyn Tool> {
    ALL.iter().copied().find(|tool| tool.facts().name == name)
}

/// What a tool wrote.
pub(crate) struct Written {
    pub resource_id: ResourceId,
    pub edits: Vec<AppliedEdit>,
    /// What it brought and took away, where that was asked for and servers could tell.
    pub diagnostics: Option<Delta>,
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
        let mut result = json!({ "files": files });
        if let Some(delta) = &self.diagnostics {
            result["diagnostics"] = json!(delta);
        }
        result
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
    find(tool)?.edits(args)
}

/// Whether whoever calls a tool that writes wants to know what it brought and took away: yes, unless its arguments say
/// `"diagnostics": false`, as those of actors do that look for themselves.
pub(crate) fn wants_diagnostics(args: &Value) -> bool {
    args["diagnostics"] != false
}

/// The tool a plan asks for, when it may be used in its phase; else a reason for the actor.
pub(crate) fn usable(plan: &Plan, name: &str) -> Result<&'static dyn Tool, String> {
    let tool = find(name).ok_or_else(|| {
        let known: Vec<&str> = ALL.iter().map(|tool| tool.facts().name).collect();
        let lsp = agents_tools::available(plan.phase, None).into_iter().map(|tool| tool.name);
        let known: Vec<&str> = known.into_iter().chain(lsp).collect();
        format!("there is no tool `{name}`; there is {}", known.join(", "))
    })?;
    match plan.phase {
        _ if !tool.facts().writes => Ok(tool),
        Phase::Execute if plan.read_only => Err("the plan is read-only".to_owned()),
        Phase::Execute => Ok(tool),
        phase => Err(format!("nothing is written in {phase}")),
    }
}
