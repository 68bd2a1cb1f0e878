//! Carrying out what a step asked for, one request at a time, each with one commit.

use agents_domain::changes::{Change, ChangeKind};
use agents_domain::correction::ToolCall;
use agents_domain::decision::Decision;
use agents_domain::ids::{ChangeId, ResourceId};
use agents_domain::plan::{Plan, PlanFailure};
use agents_domain::ports::actor::{DecisionDraft, Observation, Request};
use agents_domain::ports::store::ActorRun;
use agents_domain::ports::tool::{LocalTool, ToolError};
use agents_domain::provenance::hunks;
use agents_domain::skill::{Origin, SkillTool};
use agents_domain::text::FileEdit;
use agents_sandbox::fault;
use agents_tools::Lens;
use serde_json::{Value, json};

use super::checkpoints::Around;
use super::guarding::Guarded;
use super::skilled::{Skilled, facts_of};
use super::subplan::{CREATE_SUBPLAN, of_decision};
use super::{Stop, Worker, failing, looking};
use crate::checkpoints::measure;
use crate::records::{self, Evidence, by_key, emit};
use crate::rewind::{args_hash, standing};
use crate::sandboxes::{OpenSandbox, strategy_of};
use crate::tools::{self, Acted, Body, Scene, Tool, Written};
use crate::{children, clock};

impl Worker<'_> {
    /// Carries the next request out and commits it; `false` when a person must answer first.
    pub(super) async fn carry_out(
        &self,
        run: &mut ActorRun,
        lens: &Lens,
        local: &[LocalTool],
        sandboxes: &[OpenSandbox],
        skilled: Option<&Skilled>,
    ) -> Result<bool, Stop> {
        let Some(request) = run.requests.get(run.done).cloned() else { return Ok(true) };
        log(run, &request);
        let decisions = self.engine.view(|r| r.decisions(self.id))?;
        if let Request::RecordDecision(draft) = &request {
            self.record(run, draft, &decisions)?;
            return Ok(true);
        }
        if decisions.iter().any(|d| d.pending && d.superseded_by.is_none()) {
            return Ok(false);
        }
        if let Request::Tool { call_id, tool, args, .. } = &request
            && let Some(tool) = agents_tools::find(tool)
        {
            return self.look(run, tool, call_id, args, &decisions, lens).await;
        }
        let scene = Scene { engine: self.engine, plan: Some(self.id), sandboxes, lens };
        let mut said = None;
        if let (Some(skilled), Request::Tool { tool, .. }) = (skilled, &request)
            && ![CREATE_SUBPLAN, tools::APPLY_EDITS].contains(&tool.as_str())
        {
            match skilled.find(tool) {
                // What comes with the program is there for every actor.
                Err(_) if tools::find(tool).is_some() && !skilled.is_ambiguous(tool) => {}
                Err(why) => {
                    self.refuse_as(run, ToolError::InvalidCallError, why)?;
                    return Ok(true);
                }
                Ok(tool) => match tool.origin {
                    Origin::Registered(_) => said = Some(tool),
                    _ => return self.call_skill(run, &request, skilled, &tool, &decisions, &scene).await,
                },
            }
        }
        let request = named_as_registered(request, said.as_ref());
        if let Request::Tool { call_id, tool, args, .. } = &request
            && tool != CREATE_SUBPLAN
            && let Some(Ok(tool)) = tools::resolve(self.engine, local, tool)
            && tool.looks()
        {
            return self.look_into(run, &tool, call_id, args, &decisions, &scene).await;
        }
        let decision = match decision_behind(&request, run, &decisions) {
            Ok(decision) => decision,
            Err(why) => {
                self.refuse(run, why)?;
                return Ok(true);
            }
        };
        match request {
            Request::RecordDecision(_) => {}
            Request::Tool { call_id, tool, args, .. } if tool == CREATE_SUBPLAN => {
                return self.create_subplan(run, &call_id, args, &decision);
            }
            Request::Tool { ref call_id, tool: ref name, ref args, .. } => {
                let call = ToolCall {
                    id: 0,
                    plan_id: self.id,
                    call_id: call_id.clone(),
                    decision_id: decision.decision_id,
                    tool: name.clone(),
                    args_hash: args_hash(args),
                    result: serde_json::Value::Null,
                    created_at: clock::now(),
                    side_effects: Vec::new(),
                };
                if let Some(result) = self.carried_out(&call)? {
                    let observation = Observation::Tool { call_id: call.call_id, result };
                    self.commit_request(run, Some(observation))?;
                    return Ok(true);
                }
                let plan = self.plan()?;
                let found = tools::resolve(self.engine, local, name);
                let tool = match found.unwrap_or_else(|| Err(tools::unknown(&plan, name))) {
                    Ok(tool) => tool,
                    Err(why) => {
                        self.refuse_as(run, ToolError::InvalidCallError, format!("{name}: {why}"))?;
                        return Ok(true);
                    }
                };
                let tool = &match said {
                    Some(said) => tool.as_said(facts_of(&said)),
                    None => (*tool).clone(),
                };
                let side_effects = tool.facts.capability.side_effects.clone();
                let call = ToolCall { side_effects, ..call };
                return self.write_with(run, tool, call, args, (&decision, &decisions), &scene, &plan).await;
            }
            Request::Checkpoint { decision: key, label } => {
                self.checkpoint(run, &key, &label, &decision, sandboxes)?;
            }
            Request::Undo { decision: key } => {
                let written = self.written_under(&decision)?;
                self.undo(run, &key, &decision, sandboxes)?;
                looking::tell(lens, &written).await;
            }
        }
        Ok(true)
    }

    /// Carries out a call of a tool that writes (TOOL-021): its arguments are checked, then whether it may run, then it
    /// runs in the sandbox and what it wrote is recorded. `false` when a person must answer first.
    #[allow(clippy::too_many_arguments, reason = "each is a part of one call")]
    async fn write_with(
        &self,
        run: &mut ActorRun,
        tool: &Tool,
        call: ToolCall,
        args: &Value,
        (decision, decisions): (&Decision, &[Decision]),
        scene: &Scene<'_>,
        plan: &Plan,
    ) -> Result<bool, Stop> {
        let (name, sandboxes, lens) = (tool.facts.name.as_str(), scene.sandboxes, scene.lens);
        if let Err(why) = tools::may_use(plan, &tool.facts) {
            self.refuse_as(run, ToolError::AccessDeniedError, format!("{name}: {why}"))?;
            return Ok(true);
        }
        let args = match tools::checked(tool, args.clone()) {
            Ok(args) => args,
            Err(why) => {
                self.keep_failure(run, name, &why)?;
                self.refuse_as(run, ToolError::InvalidCallError, format!("{name}: {why}"))?;
                return Ok(true);
            }
        };
        let edits = match &tool.body {
            Body::Edit(edit) => {
                Some(edit(&args, scene).and_then(|edits| match read_only(sandboxes, edits.0) {
                    Some(why) => Err(why),
                    None => Ok(edits),
                }))
            }
            _ => None,
        };
        let edits = match edits.transpose() {
            Ok(edits) => edits,
            Err(why) => {
                self.keep_failure(run, name, &why)?;
                self.refuse(run, format!("{name}: {why}"))?;
                return Ok(true);
            }
        };
        // Nobody is asked about what would be refused anyway.
        if let Some(why) = self.breaks_invariant(plan, name, edits.as_ref(), decisions, sandboxes)? {
            self.refuse_as(run, ToolError::AccessDeniedError, why)?;
            return Ok(true);
        }
        match self.guard(run, &tool.facts, (&call.call_id, edits.as_ref()), decision, decisions)? {
            Guarded::Run => {}
            Guarded::Wait => return Ok(false),
            Guarded::Refuse(why) => {
                self.refuse_as(run, ToolError::AccessDeniedError, why)?;
                return Ok(true);
            }
        }
        let paths = edits.as_ref().map(|(_, edits)| tools::paths_in(edits)).unwrap_or_default();
        for sandbox in sandboxes {
            let edited = match &tool.body {
                Body::Run(_) | Body::Code(_) => self.edited_at_all(sandbox)?,
                _ => self.edited_meanwhile(&paths, sandbox)?,
            };
            if let Some(why) = edited {
                self.refuse(run, why)?;
                return Ok(true);
            }
        }
        let before = self.before_writing(edits.as_ref(), &args, lens).await;
        let written = match (&tool.body, edits) {
            (Body::Act(act), _) => act(&args, scene)
                .map(|(resource_id, said)| Written {
                    resource_id,
                    edits: Vec::new(),
                    said,
                    diagnostics: None,
                })
                .map_err(|why| (ToolError::ToolExecutionError, why)),
            (Body::Run(run), _) => {
                let ran = run(args.clone(), scene).await;
                self.taken(ran.map_err(|why| (ToolError::ToolExecutionError, why)), decision, scene)?
            }
            (Body::Code(code), _) => {
                let ran = tools::run_code(code, args.clone(), scene, false).await;
                let first = sandboxes.first().map(|sandbox| sandbox.resource_id);
                let ran = ran.and_then(|(resource, said)| match resource.or(first) {
                    Some(resource) => Ok((resource, said)),
                    None => Err((ToolError::ToolExecutionError, "the plan has no resource".to_owned())),
                });
                self.taken(ran, decision, scene)?
            }
            (_, Some((resource_id, edits))) => {
                apply(sandboxes, resource_id, &edits).map_err(|why| (ToolError::ToolExecutionError, why))
            }
            _ => Err((ToolError::ToolExecutionError, "it does nothing".to_owned())),
        };
        match written {
            Ok(mut written) => {
                written.diagnostics = self.after_writing(before, &written, lens).await;
                self.record_writes(run, call, decision, &written, sandboxes)?;
            }
            Err((kind, why)) => {
                self.keep_failure(run, name, &why)?;
                self.refuse_as(run, kind, format!("{name}: {why}"))?;
            }
        }
        Ok(true)
    }

    /// Takes what a tool that ran left in its sandbox as what it wrote, also where its time was up.
    fn taken(
        &self,
        ran: Result<Acted, (ToolError, String)>,
        decision: &Decision,
        scene: &Scene<'_>,
    ) -> Result<Result<Written, (ToolError, String)>, Stop> {
        let (resource_id, mut said) = match ran {
            Ok(ran) => ran,
            Err(why) => {
                self.take_back_work(scene.sandboxes)?;
                return Ok(Err(why));
            }
        };
        let taken = sandbox_of(scene.sandboxes, resource_id)?.take_work(&decision.question)?;
        let (edits, left_out) = taken.map(|taken| (taken.edits, taken.left_out)).unwrap_or_default();
        if !left_out.is_empty() {
            said["left_out"] = json!(left_out);
        }
        Ok(Ok(Written { resource_id, edits, said, diagnostics: None }))
    }

    /// Takes back what a tool that failed had written until then.
    fn take_back_work(&self, sandboxes: &[OpenSandbox]) -> Result<(), Stop> {
        let plan = self.plan()?;
        for sandbox in sandboxes.iter().filter(|sandbox| !sandbox.read_only) {
            let dirty = sandbox.worktree().edited_paths().map_err(crate::sandboxes::sandbox_error)?;
            if !dirty.is_empty() {
                sandbox.restore_paths(&commit_of(&plan, sandbox.resource_id), &dirty)?;
            }
        }
        Ok(())
    }

    /// What the same call returned under a decision that still stands; it is not made twice.
    pub(super) fn carried_out(&self, call: &ToolCall) -> Result<Option<serde_json::Value>, Stop> {
        let calls = self.engine.view(|r| r.tool_calls(self.id))?;
        let same = |known: &&ToolCall| {
            known.call_id == call.call_id
                && known.decision_id == call.decision_id
                && known.tool == call.tool
                && known.args_hash == call.args_hash
        };
        Ok(calls.iter().rev().find(same).map(|known| known.result.clone()))
    }

    fn record(&self, run: &mut ActorRun, draft: &DecisionDraft, known: &[Decision]) -> Result<(), Stop> {
        if by_key(known, &draft.key).is_some() {
            return self.commit_request(run, None);
        }
        let store = &self.engine.store;
        let bytes = |value: &serde_json::Value| {
            serde_json::to_vec(value).map_err(|e| agents_domain::Error::internal(e.to_string()))
        };
        let evidence = Evidence {
            context_ref: store.put_blob(&bytes(&draft.context)?)?,
            state_ref: match &run.before {
                Some(before) => before.clone(),
                None => store.put_blob(&bytes(&run.state)?)?,
            },
        };
        if let Some(spawn) = &draft.spawn
            && let Err(error) = children::prepare(self.engine, &self.plan()?, spawn)
        {
            return self
                .refuse(run, format!("the decision `{}` was not recorded: {}", draft.key, error.message));
        }
        let mut next = run.clone();
        next.done += 1;
        let recorded = self.write(|w, plan| {
            let known = w.decisions(self.id)?;
            let (decision, computed) = match records::decision_of(w, plan, draft, &evidence, &known) {
                Ok(made) => made,
                Err(error) => return Ok(Err(error.message)),
            };
            w.insert_decision(&decision)?;
            w.insert_confidence(decision.decision_id, &computed)?;
            records::emit_decision(self.engine, w, plan, &decision)?;
            if let Some(spawn) = &draft.spawn {
                w.put_spawn(&of_decision(&decision, spawn))?;
            }
            w.put_actor_run(&next)?;
            Ok(Ok(()))
        })?;
        fault::point("worker.decision-recorded");
        match recorded {
            Ok(()) => {
                *run = next;
                Ok(())
            }
            Err(why) => self.refuse(run, why),
        }
    }

    /// Commits what a tool wrote: sandbox commit first, then change records and the new state together.
    fn record_writes(
        &self,
        run: &mut ActorRun,
        call: ToolCall,
        decision: &Decision,
        written: &Written,
        sandboxes: &[OpenSandbox],
    ) -> Result<(), Stop> {
        self.record_writes_of(run, call, decision, written, sandboxes, true)
    }

    /// The same for one of the sandboxes a call wrote to; with the `last` one the call is over.
    pub(super) fn record_writes_of(
        &self,
        run: &mut ActorRun,
        call: ToolCall,
        decision: &Decision,
        written: &Written,
        sandboxes: &[OpenSandbox],
        last: bool,
    ) -> Result<(), Stop> {
        fault::point("worker.edits-written");
        let sandbox = sandbox_of(sandboxes, written.resource_id)?;
        // Both sides are kept, so that lines can be followed from the base to whatever the file becomes.
        let sides = written.edits.iter().flat_map(|edit| [edit.before.as_deref(), edit.after.as_deref()]);
        let mut hashes = self.engine.store.put_blobs(&sides.flatten().collect::<Vec<_>>())?.into_iter();
        let mut kept = |bytes: &Option<Vec<u8>>| bytes.as_ref().and_then(|_| hashes.next());
        let blobs: Vec<_> =
            written.edits.iter().map(|edit| (kept(&edit.before), kept(&edit.after))).collect();
        let commit = sandbox.checkpoint(&decision.question, &written.paths())?;
        fault::point("worker.edits-committed");
        let mut next = run.clone();
        let call = ToolCall { result: written.result(), ..call };
        if last {
            next.done += 1;
            let result = call.result.clone();
            next.observations.push(Observation::Tool { call_id: call.call_id.clone(), result });
        }
        let tool = call.tool.as_str();
        let key = decision.key.clone().unwrap_or_default();
        let known =
            run.group_starts.get(&key).and_then(|starts| starts.iter().find(|s| s.0 == written.resource_id));
        let group_start = match known {
            Some((_, start)) => start.clone(),
            None => commit_of(&self.plan()?, written.resource_id),
        };
        let diff = measure(sandbox, &group_start, &commit);
        self.write(|w, plan| {
            let stood = standing(self.engine, w, plan)?;
            let start = commit_of(plan, written.resource_id);
            let before = start.clone();
            let mut next = next.clone();
            let starts = next.group_starts.entry(key.clone()).or_default();
            if !starts.iter().any(|(resource, _)| *resource == written.resource_id) {
                starts.push((written.resource_id, start));
            }
            for (edit, blob) in written.edits.iter().zip(&blobs) {
                w.insert_change(&Change {
                    change_id: ChangeId::from_ulid(clock::ulid()),
                    plan_id: self.id,
                    decision_id: decision.decision_id,
                    resource_id: written.resource_id,
                    path: edit.path.clone(),
                    old_path: edit.old_path.clone(),
                    kind: edit.kind,
                    before_hash: blob.0.clone(),
                    after_hash: blob.1.clone(),
                    hunks: text_hunks(edit.before.as_deref(), edit.after.as_deref()),
                    tool: tool.to_owned(),
                    created_at: clock::now(),
                })?;
                let kind = match edit.kind {
                    ChangeKind::Added => "created",
                    ChangeKind::Modified => "modified",
                    ChangeKind::Deleted => "deleted",
                    ChangeKind::Renamed => "renamed",
                };
                let facts = json!({
                    "resource_id": written.resource_id, "modification_type": kind, "sandbox_path": edit.path,
                    "tool_name": tool, "decision_id": decision.decision_id,
                });
                emit(self.engine, w, plan, "resource.modified", facts)?;
            }
            if last {
                w.insert_tool_call(&call)?;
            }
            w.add_impact(decision.decision_id, &written.paths(), &[])?;
            let around = Around {
                resource_id: written.resource_id,
                tool,
                decision,
                before: &before,
                after: &commit,
                diff: diff.clone(),
                stood,
            };
            self.checkpoint_around(w, plan, around)?;
            set_commit(plan, written.resource_id, &commit);
            plan.tool_calls += u32::from(last);
            records::touch(w, plan)?;
            emit(
                self.engine,
                w,
                plan,
                "tool.completed",
                json!({ "tool_name": tool, "checkpoint_created": crate::checkpoints::enabled(self.engine, plan) }),
            )?;
            w.put_actor_run(&next)?;
            Ok(())
        })?;
        fault::point("worker.change-recorded");
        *run = self.engine.view(|r| r.actor_run(self.id, run.phase))?.unwrap_or(next);
        Ok(())
    }

    /// Takes back every write under a decision, when none to the same files has come after it.
    fn undo(
        &self,
        run: &mut ActorRun,
        key: &str,
        decision: &Decision,
        sandboxes: &[OpenSandbox],
    ) -> Result<(), Stop> {
        let Some(starts) = run.group_starts.get(key).cloned() else {
            return self.refuse(run, format!("nothing was written under `{key}`"));
        };
        let changes = self.engine.view(|r| r.changes(self.id))?;
        let first = changes.iter().position(|c| c.decision_id == decision.decision_id);
        let others: Vec<&Change> = first
            .map_or(&[][..], |at| &changes[at..])
            .iter()
            .filter(|c| c.decision_id != decision.decision_id)
            .collect();
        let own: Vec<&Change> = changes.iter().filter(|c| c.decision_id == decision.decision_id).collect();
        let meets = |other: &&&Change| {
            own.iter()
                .any(|c| c.resource_id == other.resource_id && both(c).any(|p| both(other).any(|o| o == p)))
        };
        if let Some(later) = others.iter().find(meets) {
            return self.refuse(run, format!("decision {} has written since", later.decision_id));
        }
        let mut left = Vec::with_capacity(starts.len());
        for (resource, commit) in &starts {
            let sandbox = sandbox_of(sandboxes, *resource)?;
            if others.iter().any(|c| c.resource_id == *resource) {
                // What others wrote to other files since stays.
                let paths: Vec<String> = own
                    .iter()
                    .filter(|c| c.resource_id == *resource)
                    .flat_map(|c| both(c))
                    .cloned()
                    .collect();
                sandbox.restore_paths(commit, &paths)?;
                left.push((
                    *resource,
                    sandbox.checkpoint(&format!("Taken back: {}", decision.question), &paths)?,
                ));
            } else {
                sandbox.restore(commit)?;
                left.push((*resource, commit.clone()));
            }
        }
        fault::point("worker.undo-restored");
        let mut next = run.clone();
        next.done += 1;
        next.group_starts.remove(key);
        next.observations.push(Observation::Undone { decision: key.to_owned() });
        self.write(|w, plan| {
            w.undo_changes(self.id, decision.decision_id)?;
            w.undo_tool_calls(self.id, decision.decision_id)?;
            for (resource, commit) in &left {
                set_commit(plan, *resource, commit);
                let strategy = strategy_of(plan, *resource);
                let facts =
                    json!({ "resource_id": resource, "strategy": strategy, "reason": decision.question });
                emit(self.engine, w, plan, "sandbox.rolled_back", facts)?;
            }
            records::touch(w, plan)?;
            w.put_actor_run(&next)?;
            Ok(())
        })?;
        *run = next;
        Ok(())
    }

    /// Keeps what a tool failed with; its actor deals with it.
    pub(super) fn keep_failure(&self, run: &ActorRun, tool: &str, message: &str) -> Result<(), Stop> {
        self.write(|w, plan| {
            let failure = PlanFailure {
                message: message.to_owned(),
                category: "tool".to_owned(),
                phase: plan.phase,
                tool: Some(tool.to_owned()),
                step: Some(format!("step {}", run.step)),
                recoverable: true,
                retries: 0,
                hints: Vec::new(),
            };
            Ok(failing::record(w, plan, Some(run), &failure, "refused")?)
        })
    }

    /// Commits that a request failed; the step's other requests are not run.
    pub(super) fn refuse(&self, run: &mut ActorRun, message: String) -> Result<(), Stop> {
        self.refuse_as(run, ToolError::ToolExecutionError, message)
    }

    /// The same for a failure of a kind (TOOL-022: the actor is told, and goes on).
    pub(super) fn refuse_as(
        &self,
        run: &mut ActorRun,
        error: ToolError,
        message: String,
    ) -> Result<(), Stop> {
        tracing::warn!(step = run.step, request = run.done, "the request was refused: {message}");
        if let Some(Request::Tool { tool, .. }) = run.requests.get(run.done) {
            let facts = json!({ "tool_name": tool, "error_code": "refused", "error": error, "message": message, "transient": false });
            self.write(|w, plan| Ok(emit(self.engine, w, plan, "tool.errored", facts.clone())?))?;
        }
        let observation = Observation::Failed { request: run.done, message, error };
        run.requests.truncate(run.done + 1);
        self.commit_request(run, Some(observation))
    }

    pub(super) fn commit_request(
        &self,
        run: &mut ActorRun,
        observation: Option<Observation>,
    ) -> Result<(), Stop> {
        let mut next = run.clone();
        next.done += 1;
        next.observations.extend(observation);
        self.write(|w, _| Ok(w.put_actor_run(&next)?))?;
        *run = next;
        Ok(())
    }
}

/// Why a resource must not be written, when it must not.
fn read_only(sandboxes: &[OpenSandbox], resource: ResourceId) -> Option<String> {
    match sandboxes.iter().find(|s| s.resource_id == resource) {
        None => Some(format!("resource {resource} is not part of the plan")),
        Some(sandbox) => sandbox.read_only.then(|| format!("resource {} is linked read-only", sandbox.name)),
    }
}

/// Makes edits in a sandbox, all of them or none.
fn apply(sandboxes: &[OpenSandbox], resource_id: ResourceId, edits: &[FileEdit]) -> Result<Written, String> {
    let sandbox = sandboxes.iter().find(|s| s.resource_id == resource_id);
    let sandbox = sandbox.ok_or_else(|| format!("resource {resource_id} is not part of the plan"))?;
    let edits = sandbox.apply_edits(edits).map_err(|e| e.message)?;
    Ok(Written { resource_id, edits, said: Value::Null, diagnostics: None })
}

/// A request for a tool that a skill offers under its own name for it, as one for the tool itself.
fn named_as_registered(mut request: Request, said: Option<&SkillTool>) -> Request {
    if let (Request::Tool { tool, .. }, Some(SkillTool { origin: Origin::Registered(name), .. })) =
        (&mut request, said)
    {
        name.clone_into(tool);
    }
    request
}

/// What is about to be done: kinds and keys, never contents.
fn log(run: &ActorRun, request: &Request) {
    let (kind, key) = match request {
        Request::RecordDecision(draft) => ("record a decision", Some(&draft.key)),
        Request::Tool { tool, decision, .. } => (tool.as_str(), decision.as_ref()),
        Request::Checkpoint { decision, .. } => ("checkpoint", Some(decision)),
        Request::Undo { decision } => ("undo", Some(decision)),
    };
    let (step, number, of) = (run.step, run.done + 1, run.requests.len());
    tracing::info!(step, request = number, of, decision = key.map(String::as_str), "{kind}");
}

/// The active decision a request is carried out under, when it still says what the step proposed.
pub(super) fn decision_behind(
    request: &Request,
    run: &ActorRun,
    decisions: &[Decision],
) -> Result<Decision, String> {
    let key = match request {
        Request::Tool { decision: Some(key), .. } => key,
        Request::Tool { tool, .. } => return Err(format!("{tool} writes, and no decision is behind it")),
        Request::Checkpoint { decision, .. } | Request::Undo { decision } => decision,
        Request::RecordDecision(draft) => &draft.key,
    };
    let standing = by_key(decisions, key).ok_or_else(|| format!("there is no active decision `{key}`"))?;
    let proposed = run.requests.iter().find_map(|r| match r {
        Request::RecordDecision(draft) if draft.key == *key => draft.alternatives.get(draft.chosen),
        _ => None,
    });
    match proposed {
        Some(proposed) if proposed.option != standing.chosen_option => {
            Err(format!("decision `{key}` was answered otherwise: {}", standing.chosen_option))
        }
        _ => Ok(standing.clone()),
    }
}

/// The files a change is about: its path, and the one before a rename.
fn both(change: &Change) -> impl Iterator<Item = &String> {
    change.old_path.iter().chain(std::iter::once(&change.path))
}

pub(super) fn sandbox_of(sandboxes: &[OpenSandbox], resource: ResourceId) -> Result<&OpenSandbox, Stop> {
    sandboxes.iter().find(|s| s.resource_id == resource).ok_or_else(|| {
        Stop::Broken(agents_domain::Error::internal(format!("no sandbox of resource {resource} is open")))
    })
}

pub(super) fn commit_of(plan: &Plan, resource: ResourceId) -> String {
    plan.sandboxes.iter().find(|s| s.resource_id == resource).map(|s| s.commit.clone()).unwrap_or_default()
}

pub(super) fn set_commit(plan: &mut Plan, resource: ResourceId, commit: &str) {
    if let Some(sandbox) = plan.sandboxes.iter_mut().find(|s| s.resource_id == resource) {
        commit.clone_into(&mut sandbox.commit);
    }
}

/// Line hunks between two contents; none unless both sides that exist are text.
pub(super) fn text_hunks(before: Option<&[u8]>, after: Option<&[u8]>) -> Vec<agents_domain::changes::Hunk> {
    let text = |bytes: Option<&[u8]>| std::str::from_utf8(bytes.unwrap_or_default()).ok().map(str::to_owned);
    match (text(before), text(after)) {
        (Some(before), Some(after)) => hunks(&before, &after),
        _ => Vec::new(),
    }
}
