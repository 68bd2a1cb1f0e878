//! `local/create-subplan`: an actor hands a part of its work on while it executes.

use agents_domain::QualifiedName;
use agents_domain::decision::Decision;
use agents_domain::plan::Phase;
use agents_domain::plan::children::{Spawn, SpawnDraft, Stage};
use agents_domain::plan::machine::{Context, Effect, Event};
use agents_domain::ports::actor::Observation;
use agents_domain::ports::store::ActorRun;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Stop, Worker};
use crate::{children, records};

/// Makes a child plan and returns `{"subplan_id": ...}`; it is run and taken in before the actor's next step.
pub(super) const CREATE_SUBPLAN: &str = "local/create-subplan";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    action: QualifiedName,
    #[serde(default)]
    target_files: Vec<String>,
    #[serde(default)]
    prompt: Option<String>,
    #[serde(default)]
    projects: Vec<QualifiedName>,
    #[serde(default)]
    arguments: std::collections::BTreeMap<String, Value>,
}

impl Worker<'_> {
    /// Carries the tool call out; `false` when a person must say first whether the child may start.
    pub(super) fn create_subplan(
        &self,
        run: &mut ActorRun,
        call: &str,
        args: Value,
        decision: &Decision,
    ) -> Result<bool, Stop> {
        let plan = self.plan()?;
        if plan.phase != Phase::Execute {
            return self
                .refused(run, format!("{CREATE_SUBPLAN}: no child plan is started in {}", plan.phase));
        }
        let args: Arguments = match serde_path_to_error::deserialize(args) {
            Ok(args) => args,
            Err(e) => {
                return self.refused(run, format!("{CREATE_SUBPLAN}: at `{}`: {}", e.path(), e.inner()));
            }
        };
        let Arguments { action, target_files, prompt, projects, arguments } = args;
        let draft = SpawnDraft {
            action: Some(action),
            target_files,
            prompt,
            projects,
            arguments,
            depends_on: Vec::new(),
        };
        let known = self.engine.view(|r| r.spawns(self.id))?;
        let of = |call: &str| known.iter().find(|s| s.decision_id == decision.decision_id && s.call == call);
        // A spawn that Strategize decided has its plan already.
        let decided = of("").filter(|s| s.child.is_some());
        let spawn = decided.or(of(call)).cloned();
        if let Some(Stage::Skipped { reason, .. }) = spawn.as_ref().map(|s| &s.stage) {
            return self.refused(run, format!("{CREATE_SUBPLAN}: {reason}"));
        }
        if let Some(child) = spawn.as_ref().and_then(|s| s.child) {
            self.commit_request(run, Some(result(call, child)))?;
            return Ok(true);
        }
        let child = match children::prepare(self.engine, &plan, &draft) {
            Ok(child) => child,
            Err(error) => return self.refused(run, format!("{CREATE_SUBPLAN}: {}", error.message)),
        };
        let mut spawn =
            spawn.unwrap_or_else(|| children::decided(self.id, decision.decision_id, call, draft.clone()));
        let left = children::depth_left(self.engine, &plan)?;
        let label = child.plan.description.lines().next().unwrap_or_default().to_owned();
        let event = Event::SpawnWanted { label, decision: Some(decision.decision_id) };
        let mut next = run.clone();
        next.done += 1;
        next.observations.push(result(call, child.plan.plan_id));
        let started = self.write(|w, plan| {
            if !spawn.approved {
                w.put_spawn(&spawn)?;
                let context =
                    Context { child_depth_left: left, ..records::full_context(self.engine, w, plan)? };
                let effects = records::advance_in(self.engine, w, plan, &event, &context)?;
                if !effects.contains(&Effect::SpawnChild) {
                    return Ok(false);
                }
            }
            spawn.approved = true;
            children::insert(self.engine, w, plan, &mut spawn, &child)?;
            w.put_actor_run(&next)?;
            Ok(true)
        })?;
        if started {
            *run = next;
        }
        Ok(started)
    }

    fn refused(&self, run: &mut ActorRun, why: String) -> Result<bool, Stop> {
        self.refuse(run, why)?;
        Ok(true)
    }
}

fn result(call: &str, child: agents_domain::ids::PlanId) -> Observation {
    Observation::Tool { call_id: call.to_owned(), result: json!({ "subplan_id": child }) }
}

/// A spawn decided in Strategize, to be kept with its decision.
pub(super) fn of_decision(decision: &Decision, draft: &SpawnDraft) -> Spawn {
    children::decided(decision.plan_id, decision.decision_id, "", draft.clone())
}
