//! Calls whose effects on the sandbox only show afterwards: tools of MCP servers and scripts of Agent Skills. What they changed
//! is found by comparing, and then goes the way of every write: invariants, diagnostics, a commit, change records under the
//! decision.

use agents_domain::correction::ToolCall;
use agents_domain::decision::Decision;
use agents_domain::plan::guards::ToolFacts;
use agents_domain::plan::{Phase, Plan};
use agents_domain::ports::actor::{Observation, Request};
use agents_domain::ports::store::ActorRun;
use agents_domain::ports::tool::ToolError;
use agents_domain::skill::{Origin, SkillTool};
use agents_domain::text::{Content, FileEdit};
use agents_sandbox::{AppliedEdit, TakenEdits, fault};
use serde_json::{Value, json};

use super::guarding::Guarded;
use super::requests::{commit_of, decision_behind};
use super::skilled::{Skilled, facts_of, registered};
use super::{Stop, Worker};
use crate::clock;
use crate::rewind::args_hash;
use crate::sandboxes::{OpenSandbox, sandbox_error};
use crate::tools::{self, Scene, Written};

mod folder;

/// What a call that was begun is recorded with until it is over: a worker that dies in between leaves it at `true`. At `false` the
/// call failed, and may be made again.
const BEGUN: &str = "begun";

/// What came of a call: what the actor is told, or why it failed.
type Answer = Result<Value, (ToolError, String)>;

/// Whether a recorded result is that of a call that was cut off.
pub(super) fn was_cut_off(result: &Value) -> bool {
    result.get(BEGUN) == Some(&Value::Bool(true))
}

impl Worker<'_> {
    /// Carries out a call of a tool of the actor's skills; `false` when a person must answer first.
    #[allow(clippy::too_many_arguments, reason = "each is a part of one call")]
    pub(super) async fn call_skill(
        &self,
        run: &mut ActorRun,
        request: &Request,
        skilled: &Skilled,
        tool: &SkillTool,
        decisions: &[Decision],
        scene: &Scene<'_>,
    ) -> Result<bool, Stop> {
        let Request::Tool { call_id, args, .. } = request else { return Ok(true) };
        let plan = self.plan()?;
        let facts = self.facts_of_call(tool, args);
        let name = facts.name.as_str();
        if let Err(why) = tools::may_use(&plan, &facts) {
            self.refuse_as(run, ToolError::AccessDeniedError, format!("{name}: {why}"))?;
            return Ok(true);
        }
        if facts.capability.read_only {
            let answer = match self.may_look(run, &facts, call_id, decisions)? {
                Guarded::Wait => return Ok(false),
                Guarded::Refuse(why) => Err((ToolError::AccessDeniedError, why)),
                Guarded::Run => {
                    let before = scene.sandboxes.iter().map(edited).collect::<Result<Vec<_>, Stop>>()?;
                    let answer = self.answer(skilled, tool, args, scene).await;
                    match self.take_back_changes(&plan, scene.sandboxes, &before, &facts)? {
                        Some(why) => Err((ToolError::ToolExecutionError, why)),
                        None => answer,
                    }
                }
            };
            self.answered(run, name, call_id, answer)?;
            return Ok(true);
        }
        let decision = match decision_behind(request, run, decisions) {
            Ok(decision) => decision,
            Err(why) => {
                self.refuse(run, why)?;
                return Ok(true);
            }
        };
        let call = ToolCall {
            id: 0,
            plan_id: self.id,
            call_id: call_id.clone(),
            decision_id: decision.decision_id,
            tool: name.to_owned(),
            args_hash: args_hash(args),
            result: json!({ BEGUN: true }),
            created_at: clock::now(),
            side_effects: facts.capability.side_effects.clone(),
        };
        match self.carried_out(&call)? {
            Some(result) if result.get(BEGUN).is_none() => {
                self.commit_request(run, Some(Observation::Tool { call_id: call.call_id, result }))?;
                return Ok(true);
            }
            // Done a second time, it might have its effects outside of the sandbox twice.
            Some(result) if was_cut_off(&result) && !facts.capability.idempotent => {
                let why = format!(
                    "{name}: the call was cut off, and what it did outside of the sandbox is unknown; look first, and call again if it is needed"
                );
                self.refuse(run, why)?;
                return Ok(true);
            }
            _ => {}
        }
        match self.guard(run, &facts, (call_id, None), &decision, decisions)? {
            Guarded::Run => {}
            Guarded::Wait => return Ok(false),
            Guarded::Refuse(why) => {
                self.refuse_as(run, ToolError::AccessDeniedError, why)?;
                return Ok(true);
            }
        }
        for sandbox in scene.sandboxes {
            let edited = edited(sandbox)?;
            if !edited.is_empty() {
                let why = format!("{} was edited in the sandbox by a person meanwhile", edited.join(", "));
                self.refuse(run, why)?;
                return Ok(true);
            }
        }
        self.write(|w, _| Ok(w.insert_tool_call(&call)?))?;
        fault::point("worker.call-begun");
        let answer = self.answer(skilled, tool, args, scene).await;
        fault::point("worker.call-returned");
        self.record_effects(run, call, (&decision, decisions), &facts, answer, scene).await?;
        Ok(true)
    }

    /// What is known of a call: what a tool may do depends on what an Agent Skill is asked for.
    fn facts_of_call(&self, tool: &SkillTool, args: &Value) -> ToolFacts {
        let mut facts = facts_of(tool);
        if matches!(tool.origin, Origin::AgentSkill(_)) {
            let may = &mut facts.capability;
            let script = args["script"].is_string();
            (may.read_only, may.writes, may.idempotent) = (!script, script, !script);
            // A script is a program with our rights.
            may.is_unsafe |= script;
            may.human_approval_required &= script;
        }
        facts
    }

    /// Makes the call.
    async fn answer(&self, skilled: &Skilled, tool: &SkillTool, args: &Value, scene: &Scene<'_>) -> Answer {
        let failed = |why: String| (ToolError::ToolExecutionError, why);
        let (definition, _, config_path) =
            registered(self, &tool.skill).map_err(|error| (ToolError::InvalidCallError, error.message))?;
        match &tool.origin {
            Origin::Mcp { server, tool: name } => {
                let connection = skilled
                    .server(&tool.skill, server)
                    .ok_or_else(|| failed(format!("the MCP server `{server}` is not there")))?;
                let seconds = definition
                    .mcp_servers
                    .iter()
                    .find(|known| known.name == *server)
                    .map_or(300, |s| s.timeout);
                let within = std::time::Duration::from_secs(seconds.into());
                match connection.call(name, args.clone(), within).await {
                    Ok(answer) if answer.is_error => Err(failed(match answer.result {
                        Value::String(said) => said,
                        other => other.to_string(),
                    })),
                    Ok(answer) => Ok(answer.result),
                    Err(failure) if failure.not_sent => Err((ToolError::InvalidCallError, failure.message)),
                    Err(failure) if failure.message.contains("did not answer within") => {
                        Err((ToolError::TimeoutError, failure.message))
                    }
                    Err(failure) => Err(failed(failure.message)),
                }
            }
            Origin::AgentSkill(path) => {
                let place = crate::skills::folder::resolve(&config_path, path);
                folder::answer(&definition, tool, path, &place, args, scene).await
            }
            Origin::Inline(_) => Err(failed(format!(
                "`{}` is written in Python in the skill `{}`, which this version does not run",
                tool.name, tool.skill
            ))),
            Origin::Registered(name) => Err(failed(format!("`{name}` is called by its own name"))),
        }
    }

    /// Takes what a tool changed back that must change nothing; says what it was. `before` is what a person had edited.
    fn take_back_changes(
        &self,
        plan: &Plan,
        sandboxes: &[OpenSandbox],
        before: &[Vec<String>],
        facts: &ToolFacts,
    ) -> Result<Option<String>, Stop> {
        let mut all = Vec::new();
        for (sandbox, before) in sandboxes.iter().zip(before) {
            let mut changed = edited(sandbox)?;
            changed.retain(|path| !before.contains(path));
            if !changed.is_empty() {
                sandbox.restore_paths(&commit_of(plan, sandbox.resource_id), &changed)?;
                all.extend(changed);
            }
        }
        Ok((!all.is_empty()).then(|| {
            format!(
                "{}: it is to change nothing, and changed {}; that was taken back",
                facts.name,
                all.join(", ")
            )
        }))
    }

    /// Finds what a call changed and records it, or takes it back where it must not stay.
    async fn record_effects(
        &self,
        run: &mut ActorRun,
        call: ToolCall,
        (decision, decisions): (&Decision, &[Decision]),
        facts: &ToolFacts,
        answer: Answer,
        scene: &Scene<'_>,
    ) -> Result<(), Stop> {
        let plan = self.plan()?;
        let name = facts.name.as_str();
        let mut changed: Vec<(&OpenSandbox, TakenEdits)> = Vec::new();
        for sandbox in scene.sandboxes {
            if let Some(taken) = take(sandbox, name)? {
                changed.push((sandbox, taken));
            }
        }
        let forbidden = match changed.iter().find(|(sandbox, _)| sandbox.read_only) {
            Some((sandbox, _)) => {
                Some(format!("{name}: it changed {}, which is linked read-only", sandbox.name))
            }
            None if plan.phase != Phase::Execute && !changed.is_empty() => {
                Some(format!("{name}: nothing is written in {}", plan.phase))
            }
            None => None,
        };
        let mut why = forbidden;
        // The sandboxes are as they were while it is looked at what the changes mean.
        for (sandbox, _) in &changed {
            sandbox.restore(&commit_of(&plan, sandbox.resource_id))?;
        }
        for (sandbox, taken) in &changed {
            if why.is_none() {
                let edits = (sandbox.resource_id, as_edits(&taken.edits));
                why = self.breaks_invariant(&plan, name, Some(&edits), decisions, scene.sandboxes)?;
            }
        }
        let over = ToolCall { result: json!({ BEGUN: false }), ..call.clone() };
        if let Some(why) = why {
            let why = format!("{why}; what it changed was taken back");
            self.write(|w, _| Ok(w.insert_tool_call(&over)?))?;
            self.keep_failure(run, name, &why)?;
            return self.refuse_as(run, ToolError::AccessDeniedError, why);
        }
        let said = match answer {
            Ok(said) => said,
            Err((kind, why)) if changed.is_empty() => {
                self.write(|w, _| Ok(w.insert_tool_call(&over)?))?;
                self.keep_failure(run, name, &why)?;
                let named = if why.starts_with(name) { why } else { format!("{name}: {why}") };
                return self.refuse_as(run, kind, named);
            }
            // It failed, and what it did before that stays: the actor sees both.
            Err((kind, why)) => json!({ "error": why, "type": kind }),
        };
        let Some(last) = changed.len().checked_sub(1) else {
            return self.record_answer(run, call, said);
        };
        for (at, (sandbox, taken)) in changed.into_iter().enumerate() {
            let edits = (sandbox.resource_id, as_edits(&taken.edits));
            let before = self.before_writing(Some(&edits), &Value::Null, scene.lens).await;
            sandbox.restore(taken.commit.as_str())?;
            let mut written = Written {
                resource_id: sandbox.resource_id,
                edits: taken.edits,
                said: said.clone(),
                diagnostics: None,
            };
            written.diagnostics = self.after_writing(before, &written, scene.lens).await;
            self.record_writes_of(run, call.clone(), decision, &written, scene.sandboxes, at == last)?;
        }
        Ok(())
    }

    /// Commits what a call came to that changed no file.
    fn record_answer(&self, run: &mut ActorRun, call: ToolCall, said: Value) -> Result<(), Stop> {
        let call = ToolCall { result: said, ..call };
        let mut next = run.clone();
        next.done += 1;
        let observation = Observation::Tool { call_id: call.call_id.clone(), result: call.result.clone() };
        next.observations.push(observation);
        self.write(|w, plan| {
            w.insert_tool_call(&call)?;
            plan.tool_calls += 1;
            crate::records::touch(w, plan)?;
            let facts = json!({ "tool_name": call.tool, "checkpoint_created": false });
            crate::records::emit(self.engine, w, plan, "tool.completed", facts)?;
            w.put_actor_run(&next)?;
            Ok(())
        })?;
        *run = next;
        Ok(())
    }
}

fn edited(sandbox: &OpenSandbox) -> Result<Vec<String>, Stop> {
    Ok(sandbox.worktree().edited_paths().map_err(sandbox_error)?)
}

fn take(sandbox: &OpenSandbox, tool: &str) -> Result<Option<TakenEdits>, Stop> {
    Ok(sandbox.take_work(&format!("What {tool} changed"))?)
}

/// What was changed, as the edits that would have done it.
fn as_edits(applied: &[AppliedEdit]) -> Vec<FileEdit> {
    let mut edits = Vec::with_capacity(applied.len());
    for edit in applied {
        if let Some(old) = &edit.old_path {
            edits.push(FileEdit::Rename { path: old.clone(), to: edit.path.clone() });
        }
        edits.push(match &edit.after {
            Some(bytes) => FileEdit::Write { path: edit.path.clone(), content: Content::of(bytes.clone()) },
            None => FileEdit::Delete { path: edit.path.clone() },
        });
    }
    edits
}
