//! The tools of actors that the engine itself provides, and what is known of every one of them.
//!
//! A tool looks (its answer is all there is), edits (it works out edits, which are written like those of
//! `builtin/apply-edits`), or does something that only shows afterwards in the sandbox. [`all`] lists them.

mod apply_edits;
mod args;
mod directories;
mod editing;
mod files;
mod git;
mod registered;
mod searching;
mod shell;
mod symbols;

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use agents_domain::ids::{PlanId, ResourceId};
use agents_domain::plan::guards::ToolFacts;
use agents_domain::plan::{Phase, Plan};
use agents_domain::ports::BoxFuture;
use agents_domain::ports::actor::Request;
use agents_domain::ports::tool::{Capability, LocalTool, ToolSpec};
use agents_domain::text::FileEdit;
use agents_sandbox::AppliedEdit;
use agents_tools::delta::Delta;
use agents_tools::{Lens, LspTool};
use serde_json::{Value, json};

pub(crate) use registered::{Code, deactivate, fits, run as run_code, transform};

use crate::Engine;
use crate::sandboxes::OpenSandbox;

/// Before the name of every tool that comes with the program and is not a language server's.
const PREFIX: &str = "builtin/";

/// The tool that writes edits, also those that other tools work out.
pub(crate) const APPLY_EDITS: &str = "builtin/apply-edits";

/// What a tool is given to work on.
pub(crate) struct Scene<'a> {
    pub engine: &'a Engine,
    /// The plan that calls; none for a validation.
    pub plan: Option<PlanId>,
    pub sandboxes: &'a [OpenSandbox],
    pub lens: &'a Lens,
}

/// Edits that a tool asks for.
pub(crate) type Edits = (ResourceId, Vec<FileEdit>);

/// The resource that a tool changed, and what its actor is told.
pub(crate) type Acted = (ResourceId, Value);

/// Something that runs in a sandbox.
pub(crate) type Runs = for<'a> fn(Value, &'a Scene<'a>) -> BoxFuture<'a, Result<Acted, String>>;

/// How a tool does what it does. `Err` is a sentence for the actor, and nothing was changed.
#[derive(Clone)]
pub(crate) enum Body {
    /// Looks.
    Look(fn(&Value, &Scene<'_>) -> Result<Value, String>),
    /// Looks through language servers.
    Ask(for<'a> fn(Value, &'a Scene<'a>) -> BoxFuture<'a, Result<Value, String>>),
    /// Works out edits.
    Edit(fn(&Value, &Scene<'_>) -> Result<Edits, String>),
    /// Runs Python.
    Code(Arc<Code>),
    /// Does what it does; what it changed is seen in the sandbox afterwards.
    Run(Runs),
    /// Changes what is no file's content, such as an empty directory.
    Act(fn(&Value, &Scene<'_>) -> Result<Acted, String>),
}

/// A tool.
#[derive(Clone)]
pub(crate) struct Tool {
    pub facts: ToolFacts,
    /// The group of tools it belongs to, by which skills name it.
    pub group: Option<&'static str>,
    /// JSON Schema of its arguments.
    pub input: Value,
    /// Its arguments are checked when they are read, with better words than the schema has.
    pub reads_strictly: bool,
    /// Other names of arguments.
    pub aliases: &'static [(&'static str, &'static str)],
    pub body: Body,
}

impl Tool {
    /// Whether calling it changes nothing.
    pub fn looks(&self) -> bool {
        match &self.body {
            Body::Look(_) | Body::Ask(_) => true,
            Body::Code(_) => self.facts.capability.read_only,
            _ => false,
        }
    }

    /// The same tool with what is said of it where it is used.
    pub fn as_said(&self, facts: ToolFacts) -> Self {
        Self { facts: ToolFacts { name: self.facts.name.clone(), ..facts }, ..self.clone() }
    }

    /// As actors know it.
    pub fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.facts.name.clone(),
            description: self.facts.summary.clone(),
            input: self.input.clone(),
            group: self.group.map(str::to_owned),
            capability: self.facts.capability.clone(),
        }
    }
}

/// A tool that only looks.
fn looks(group: &'static str, name: &str, summary: &str, input: Value, body: Body) -> Tool {
    let capability =
        Capability { read_only: true, checkpointable: true, idempotent: true, ..Capability::default() };
    tool(group, name, summary, input, body, "read", capability)
}

/// A tool that writes to a sandbox.
fn writes(group: &'static str, name: &str, summary: &str, input: Value, body: Body) -> Tool {
    let capability = Capability { writes: true, checkpointable: true, ..Capability::default() };
    tool(group, name, summary, input, body, "edit", capability)
}

fn tool(
    group: &'static str,
    name: &str,
    summary: &str,
    input: Value,
    body: Body,
    category: &str,
    capability: Capability,
) -> Tool {
    let facts = ToolFacts {
        name: format!("{PREFIX}{name}"),
        summary: summary.to_owned(),
        category: category.to_owned(),
        capability,
    };
    Tool { facts, group: Some(group), input, reads_strictly: false, aliases: &[], body }
}

/// Every tool that comes with the engine, by name.
pub(crate) fn all() -> &'static [Arc<Tool>] {
    static ALL: LazyLock<Vec<Arc<Tool>>> = LazyLock::new(|| {
        let mut all = vec![apply_edits::tool()];
        all.extend(files::tools());
        all.extend(directories::tools());
        all.extend(searching::tools());
        all.extend(symbols::tools());
        all.extend(git::tools());
        all.extend(shell::tools());
        all.sort_by(|a, b| a.facts.name.cmp(&b.facts.name));
        all.into_iter().map(Arc::new).collect()
    });
    &ALL
}

/// Looks a tool up by `builtin/<name>` or its bare name (TOOL-036).
pub(crate) fn find(name: &str) -> Option<&'static Arc<Tool>> {
    let bare = name.strip_prefix(PREFIX).or_else(|| (!name.contains('/')).then_some(name))?;
    all().iter().find(|tool| tool.facts.name.strip_prefix(PREFIX) == Some(bare))
}

/// A tool by name: one of the actor's own, one that comes with the program, or a registered one. `Some(Err)` says why
/// it cannot run.
pub(crate) fn resolve(engine: &Engine, local: &[LocalTool], name: &str) -> Option<Result<Arc<Tool>, String>> {
    if let Some(own) = local.iter().find(|own| own.spec.name == name) {
        return Some(Ok(Arc::new(registered::local(own))));
    }
    if let Some(ours) = find(name) {
        return Some(Ok(ours.clone()));
    }
    Some(registered::find(engine, name)?.map(Arc::new))
}

/// What is known of a language server's tool.
pub(crate) fn facts_of(tool: &LspTool) -> ToolFacts {
    ToolFacts {
        name: tool.name.to_owned(),
        summary: tool.summary.to_owned(),
        category: "lsp".to_owned(),
        capability: Capability {
            read_only: !tool.writes,
            writes: tool.writes,
            checkpointable: true,
            idempotent: !tool.writes,
            ..Capability::default()
        },
    }
}

/// A language server's tool as actors know it.
pub(crate) fn spec_of(tool: &LspTool) -> ToolSpec {
    ToolSpec {
        name: tool.name.to_owned(),
        description: tool.summary.to_owned(),
        input: args::plain((tool.input)()),
        group: None,
        capability: facts_of(tool).capability,
    }
}

/// The tools an actor may call in a plan's phase, by name: those that come with the program, registered ones, and its
/// own.
pub(crate) fn offered(engine: &Engine, plan: &Plan, lens: &Lens, local: &[LocalTool]) -> Vec<ToolSpec> {
    let safety = &plan.profile.profile.safety;
    let usable = |tool: &Tool| {
        may_use(plan, &tool.facts).is_ok()
            && (safety.allow_unsafe_tools || !tool.facts.capability.is_unsafe)
            && safety.allows_category(&tool.facts.category)
    };
    let others = registered::all(engine).into_iter().chain(local.iter().map(registered::local));
    let mut specs: Vec<ToolSpec> = all().iter().filter(|tool| usable(tool)).map(|tool| tool.spec()).collect();
    specs.extend(others.filter(|tool| usable(tool)).map(|tool| tool.spec()));
    let lent = agents_tools::catalogue().iter().filter(|tool| tool.fits(plan.phase));
    let lent = lent.filter(|tool| tool.capability.is_none_or(|capability| lens.lends(capability)));
    specs.extend(lent.filter(|tool| may_use(plan, &facts_of(tool)).is_ok()).map(spec_of));
    specs.sort_by(|a, b| a.name.cmp(&b.name));
    specs.dedup_by(|a, b| a.name == b.name);
    specs
}

/// Whether a plan may call a tool in its phase; else why not (TOOL-017, G-39).
pub(crate) fn may_use(plan: &Plan, facts: &ToolFacts) -> Result<(), String> {
    let may = &facts.capability;
    match plan.phase {
        _ if may.read_only => Ok(()),
        Phase::Execute if plan.read_only => Err("the plan is read-only".to_owned()),
        Phase::Execute => Ok(()),
        phase if may.writes => Err(format!("nothing is written in {phase}")),
        phase => Err(format!("only what changes nothing may be called in {phase}")),
    }
}

/// Why there is no such tool.
pub(crate) fn unknown(plan: &Plan, name: &str) -> String {
    let lsp = agents_tools::available(plan.phase, None).into_iter().map(|tool| tool.name);
    let known: Vec<&str> = all().iter().map(|tool| tool.facts.name.as_str()).chain(lsp).collect();
    format!("there is no tool `{name}`; there is {}", known.join(", "))
}

/// Puts arguments right and checks them: the names a tool also takes, its schema, and the schema's defaults
/// (TOOL-007, SEC-016).
pub(crate) fn checked(tool: &Tool, args: Value) -> Result<Value, String> {
    if tool.reads_strictly {
        return Ok(args);
    }
    args::checked(&tool.facts.name, &tool.input, tool.aliases, args)
}

/// What a tool wrote.
pub(crate) struct Written {
    pub resource_id: ResourceId,
    pub edits: Vec<AppliedEdit>,
    /// What else the actor is told.
    pub said: Value,
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
        if let Some(said) = self.said.as_object() {
            for (key, value) in said {
                result[key] = value.clone();
            }
        }
        if let Some(delta) = &self.diagnostics {
            result["diagnostics"] = json!(delta);
        }
        result
    }
}

/// The files that edits are about, those that are moved under both names.
pub(crate) fn paths_in(edits: &[FileEdit]) -> Vec<String> {
    let mut paths = Vec::new();
    for edit in edits {
        paths.push(edit.path().to_owned());
        if let FileEdit::Rename { to, .. } = edit {
            paths.push(to.clone());
        }
    }
    paths
}

/// In the place of a path: every file.
pub(crate) const ANYTHING: &str = "/";

/// The files a request would write, as far as its arguments say; a folder ends in `/` and stands for all in it.
pub(crate) fn paths_of(request: &Request) -> Vec<String> {
    let Request::Tool { tool, args, .. } = request else { return Vec::new() };
    if let Some((_, edits)) = find(tool).and_then(|_| apply_edits::edits(args).ok()) {
        return paths_in(&edits);
    }
    match find(tool) {
        // It may be anything.
        Some(tool) if matches!(tool.body, Body::Run(_)) => vec![ANYTHING.to_owned()],
        None if !tool.starts_with(agents_tools::PREFIX) => vec![ANYTHING.to_owned()],
        Some(tool) if !tool.looks() => {
            let named = ["path", "source", "destination"].iter().filter_map(|key| args[key].as_str());
            let clean = named.map(|path| path.trim_start_matches("./").trim_end_matches('/').to_owned());
            clean.flat_map(|path| [format!("{path}/"), path]).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether a file is among those that a cut-off write may have touched.
pub(crate) fn is_among(paths: &[String], file: &str) -> bool {
    paths.iter().any(|path| {
        path == ANYTHING || path == file || (path.ends_with('/') && file.starts_with(path.as_str()))
    })
}

/// Whether whoever calls a tool that writes wants to know what it brought and took away: yes, unless its arguments say
/// `"diagnostics": false`, as those of actors do that look for themselves.
pub(crate) fn wants_diagnostics(args: &Value) -> bool {
    args["diagnostics"] != false
}
