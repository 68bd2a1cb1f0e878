//! Language servers as tools of actors: looks that need no decision, and what a write brought and took away.

use std::collections::{BTreeMap, BTreeSet};

use agents_domain::decision::{Decision, DecisionType};
use agents_domain::ids::ResourceId;
use agents_domain::plan::guards::ToolFacts;
use agents_domain::plan::{Plan, PlanFailure};
use agents_domain::ports::actor::{Actor, ActorWorkspace, Observation, Request};
use agents_domain::ports::language_servers::{FileEvent, FileEventKind};
use agents_domain::ports::store::ActorRun;
use agents_domain::ports::tool::ToolError;
use agents_tools::delta::{self, Delta, Snapshot};
use agents_tools::{Lens, LspTool, Workspace};
use serde_json::{Value, json};

use super::guarding::Guarded;
use super::{Stop, Worker};
use crate::operations::lsp::languages_of;
use crate::records::{self, emit};
use crate::tools::{self, Edits, Scene, Tool, Written};

/// The workspaces of a plan as tools know them.
fn known(workspaces: &[ActorWorkspace]) -> Vec<Workspace> {
    let known = |workspace: &ActorWorkspace| Workspace {
        name: workspace.name.clone(),
        id: workspace.resource_id.to_string(),
        root: workspace.root.clone(),
        languages: workspace.languages.clone(),
    };
    workspaces.iter().map(known).collect()
}

fn workspace(lens: &Lens, resource: ResourceId) -> Option<&Workspace> {
    let id = resource.to_string();
    lens.workspaces().iter().find(|workspace| workspace.id == id)
}

/// Tells the servers that files were written by others than their actor, whatever became of them.
pub(super) async fn tell(lens: &Lens, written: &BTreeSet<(ResourceId, String)>) {
    for workspace in lens.workspaces() {
        let of = |id: &ResourceId| id.to_string() == workspace.id;
        let event = |path: &String| FileEvent {
            path: path.clone(),
            kind: match workspace.languages.text(path) {
                Ok(_) => FileEventKind::Changed,
                Err(_) => FileEventKind::Deleted,
            },
        };
        let events: Vec<_> = written.iter().filter(|(id, _)| of(id)).map(|(_, path)| event(path)).collect();
        if !events.is_empty() {
            workspace.languages.files_changed(&events).await;
        }
    }
}

/// The state of the files that a tool is about to write; no snapshot where no server serves any of them.
pub(super) struct Before {
    resource: ResourceId,
    snapshot: Option<Snapshot>,
}

impl Worker<'_> {
    /// What an actor looks through: all that serves the plan's workspaces, or what of it the actor is lent. One that names
    /// a server that is not registered fails here, before its first step.
    pub(super) fn lens(
        &self,
        actor: &dyn Actor,
        plan: &Plan,
        workspaces: &[ActorWorkspace],
    ) -> Result<Lens, Stop> {
        let unfit = |message: String| {
            Stop::Failed(PlanFailure {
                message,
                category: "language_server".to_owned(),
                phase: plan.phase,
                tool: None,
                step: None,
                recoverable: false,
                retries: 0,
                hints: vec!["`agents lsp list` shows the registered language servers.".to_owned()],
            })
        };
        let lens = Lens::new(known(workspaces));
        let lent = actor.lent(&plan.arguments).map_err(unfit)?;
        let lens = lens.with_capabilities(lent.capabilities);
        let Some(binding) = lent.servers else { return Ok(lens) };
        let mut languages = Vec::new();
        if binding.wants_project() {
            for workspace in workspaces {
                languages.extend(languages_of(&workspace.root)?);
            }
        }
        let bound = binding.resolve(&self.engine.language_servers()?, &languages).map_err(unfit)?;
        for warning in &bound.warnings {
            tracing::warn!(plan = %self.id, "{warning}");
        }
        Ok(lens.with_servers(Some(bound.servers)))
    }

    /// The files that stand written under a decision, a renamed one under both names.
    pub(super) fn written_under(&self, decision: &Decision) -> Result<BTreeSet<(ResourceId, String)>, Stop> {
        let changes = self.engine.view(|r| r.changes(self.id))?;
        let own = changes.into_iter().filter(|change| change.decision_id == decision.decision_id);
        Ok(own
            .flat_map(|change| {
                let paths = change.old_path.into_iter().chain([change.path]);
                paths.map(move |path| (change.resource_id, path)).collect::<Vec<_>>()
            })
            .collect())
    }

    /// Lets an actor look through the language servers and commits the answer; `false` when the plan waits.
    ///
    /// A look that comes to nothing is an answer, too (`{"error": ...}`): the requests after it are carried out all the
    /// same. One whose result is to be written becomes a request for `builtin/apply-edits`, committed before anything is
    /// written.
    pub(super) async fn look(
        &self,
        run: &mut ActorRun,
        tool: &LspTool,
        call_id: &str,
        args: &Value,
        decisions: &[Decision],
        lens: &Lens,
    ) -> Result<bool, Stop> {
        let plan = self.plan()?;
        let answer = match tool.fits(plan.phase) {
            false => {
                let why = format!("{} is not there in {}: nothing is changed yet", tool.name, plan.phase);
                Err((ToolError::AccessDeniedError, why))
            }
            true => match self.may_look(run, &tools::facts_of(tool), call_id, decisions)? {
                Guarded::Run => {
                    tool.call(args.clone(), lens).await.map_err(|why| (ToolError::ToolExecutionError, why))
                }
                Guarded::Wait => return Ok(false),
                Guarded::Refuse(why) => Err((ToolError::AccessDeniedError, why)),
            },
        };
        if let (true, Ok(changes)) = (tool.writes, &answer) {
            return self.becomes_edits(run, changes).map(|()| true);
        }
        self.answered(run, tool.name, call_id, answer)?;
        Ok(true)
    }

    /// The same for a tool of the engine's that changes nothing.
    pub(super) async fn look_into(
        &self,
        run: &mut ActorRun,
        tool: &Tool,
        call_id: &str,
        args: &Value,
        decisions: &[Decision],
        scene: &Scene<'_>,
    ) -> Result<bool, Stop> {
        let answer = match tools::checked(tool, args.clone()) {
            Err(why) => Err((ToolError::InvalidCallError, format!("{}: {why}", tool.facts.name))),
            Ok(args) => match self.may_look(run, &tool.facts, call_id, decisions)? {
                Guarded::Wait => return Ok(false),
                Guarded::Refuse(why) => Err((ToolError::AccessDeniedError, why)),
                Guarded::Run => match &tool.body {
                    tools::Body::Look(look) => {
                        look(&args, scene).map_err(|why| (ToolError::ToolExecutionError, why))
                    }
                    tools::Body::Ask(ask) => {
                        ask(args, scene).await.map_err(|why| (ToolError::ToolExecutionError, why))
                    }
                    tools::Body::Code(code) => {
                        tools::run_code(code, args, scene, false).await.map(|(_, result)| result)
                    }
                    _ => Err((ToolError::ToolExecutionError, "it does not look".to_owned())),
                },
            },
        };
        self.answered(run, &tool.facts.name, call_id, answer)?;
        Ok(true)
    }

    /// Commits what a look came to.
    pub(super) fn answered(
        &self,
        run: &mut ActorRun,
        tool: &str,
        call_id: &str,
        answer: Result<Value, (ToolError, String)>,
    ) -> Result<(), Stop> {
        let result = answer.unwrap_or_else(|(kind, why)| json!({ "error": why, "type": kind }));
        let mut next = run.clone();
        next.done += 1;
        next.observations.push(Observation::Tool { call_id: call_id.to_owned(), result });
        self.write(|w, plan| {
            plan.tool_calls += 1;
            records::touch(w, plan)?;
            let facts = json!({ "tool_name": tool, "checkpoint_created": false });
            emit(self.engine, w, plan, "tool.completed", facts)?;
            w.put_actor_run(&next)?;
            Ok(())
        })?;
        *run = next;
        Ok(())
    }

    /// Whether an actor may look now. What a profile asks a person about are changes; a look is none of them, unless the
    /// profile names the tool.
    pub(super) fn may_look(
        &self,
        run: &ActorRun,
        facts: &ToolFacts,
        call_id: &str,
        decisions: &[Decision],
    ) -> Result<Guarded, Stop> {
        // What is to be written of it is asked about when it is.
        let mut facts = facts.clone();
        facts.capability.writes = false;
        let root = decisions.iter().find(|d| d.decision_type == DecisionType::PromptDefinition);
        match root {
            Some(root) => self.guard(run, &facts, (call_id, None), root, decisions),
            None => Ok(Guarded::Run),
        }
    }

    /// Puts the edits that a look gave in the place of its request.
    fn becomes_edits(&self, run: &mut ActorRun, changes: &Value) -> Result<(), Stop> {
        let mut next = run.clone();
        if let Some(Request::Tool { tool, args, .. }) = next.requests.get_mut(run.done) {
            "builtin/apply-edits".clone_into(tool);
            *args = json!({ "resource": changes["resource"], "edits": changes["edits"] });
        }
        self.write(|w, _| Ok(w.put_actor_run(&next)?))?;
        *run = next;
        Ok(())
    }

    /// Asks about the files a tool is about to write; `None` when its actor looks for itself.
    pub(super) async fn before_writing(
        &self,
        edits: Option<&Edits>,
        args: &Value,
        lens: &Lens,
    ) -> Option<Before> {
        if !tools::wants_diagnostics(args) {
            return None;
        }
        let (resource, edits) = edits?;
        let workspace = workspace(lens, *resource)?;
        let languages = &workspace.languages;
        let mut paths: Vec<String> = edits.iter().map(|edit| edit.path().to_owned()).collect();
        paths.sort();
        paths.dedup();
        let served = paths.iter().any(|path| !languages.servers_for(path).is_empty());
        paths.retain(|path| languages.text(path).is_ok());
        let snapshot = match served {
            true => Some(delta::take(lens, workspace, &paths).await),
            false => None,
        };
        Some(Before { resource: *resource, snapshot })
    }

    /// What a write brought and took away; the servers are told of it, whichever files they serve. Those that do not
    /// answer are named, and never fail the write.
    pub(super) async fn after_writing(
        &self,
        before: Option<Before>,
        written: &Written,
        lens: &Lens,
    ) -> Option<Delta> {
        let before = before.filter(|before| before.resource == written.resource_id)?;
        let workspace = workspace(lens, before.resource)?;
        let mut events = BTreeMap::new();
        for edit in &written.edits {
            let kind = match (&edit.before, &edit.after) {
                (_, None) => FileEventKind::Deleted,
                (None, _) => FileEventKind::Created,
                _ => FileEventKind::Changed,
            };
            events.insert(edit.path.clone(), kind);
            if let Some(old) = &edit.old_path {
                events.insert(old.clone(), FileEventKind::Deleted);
            }
        }
        let left =
            |(path, kind): (&String, &FileEventKind)| (*kind != FileEventKind::Deleted).then(|| path.clone());
        let paths: Vec<String> = events.iter().filter_map(left).collect();
        let events: Vec<FileEvent> =
            events.into_iter().map(|(path, kind)| FileEvent { path, kind }).collect();
        workspace.languages.files_changed(&events).await;
        let snapshot = before.snapshot?;
        Some(delta::take(lens, workspace, &paths).await.since(&snapshot))
    }
}
