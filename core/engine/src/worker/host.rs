//! What an actor may look at during a step.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use agents_domain::QualifiedName;
use agents_domain::ids::{PlanId, ResourceId};
use agents_domain::plan::State;
use agents_domain::ports::actor::{
    ActorFailure, ActorHost, ActorWorkspace, FileEntry, Progress, RecordedPlan,
};
use agents_domain::ports::model::{ModelTrace, RecordedTrace};
use agents_domain::ports::store::{StoreExt, Watch};
use agents_domain::ports::tool::ToolSpec;
use agents_domain::skill::AvailableSkill;

use super::skilled::Skilled;
use crate::Engine;
use crate::sandboxes::OpenSandbox;
use crate::{clock, records};

/// The least time between two recorded lines of progress.
const PROGRESS_EVERY: Duration = Duration::from_millis(500);

pub(super) struct Host<'a> {
    pub engine: &'a Engine,
    pub plan: PlanId,
    pub sandboxes: &'a [OpenSandbox],
    pub workspaces: Vec<ActorWorkspace>,
    pub watch: Mutex<Option<Box<dyn Watch>>>,
    pub stopped: std::sync::atomic::AtomicBool,
    pub told: Mutex<Option<Instant>>,
    pub tools: Vec<ToolSpec>,
    /// The skills of the actor, when it has any: it is offered their tools, too.
    pub skilled: Option<&'a Skilled>,
    pub tell: Arc<dyn Fn(Progress) + Send + Sync + 'a>,
}

impl Host<'_> {
    fn sandbox(&self, resource: ResourceId) -> Result<&OpenSandbox, ActorFailure> {
        self.sandboxes
            .iter()
            .find(|s| s.resource_id == resource)
            .ok_or_else(|| failure(format!("resource {resource} is not part of the plan")))
    }
}

fn failure(message: String) -> ActorFailure {
    ActorFailure { message, category: "io".to_owned(), transient: false, hints: Vec::new() }
}

impl ActorHost for Host<'_> {
    fn workspaces(&self) -> &[ActorWorkspace] {
        &self.workspaces
    }

    fn files(&self, resource: ResourceId) -> Result<Vec<FileEntry>, ActorFailure> {
        self.sandbox(resource)?.files().map_err(|e| failure(e.message))
    }

    fn read(&self, resource: ResourceId, path: &str) -> Result<Vec<u8>, ActorFailure> {
        self.sandbox(resource)?.read(path).map_err(|e| failure(e.message))
    }

    fn recorded(&self, plan: &str) -> Result<RecordedPlan, ActorFailure> {
        let told = |error: agents_domain::Error| ActorFailure {
            hints: vec!["`agents plan list --state applied` lists the plans that were applied.".to_owned()],
            ..failure(error.message)
        };
        let plan = self.engine.plan(plan).map_err(told)?;
        let read = self.engine.view(|r| Ok((r.changes(plan.plan_id)?, r.decisions(plan.plan_id)?)));
        let (changes, decisions) = read.map_err(told)?;
        Ok(RecordedPlan {
            plan_id: plan.plan_id,
            description: plan.description,
            phase: plan.phase,
            state: plan.state,
            changes,
            decisions,
        })
    }

    fn content(&self, hash: &str) -> Result<Vec<u8>, ActorFailure> {
        let blob = self.engine.store.blob(hash).map_err(|e| failure(e.to_string()))?;
        blob.ok_or_else(|| failure(format!("the store has no content {hash} any more")))
    }

    fn tools(&self) -> Vec<ToolSpec> {
        let Some(skilled) = self.skilled else { return self.tools.clone() };
        let Ok(Some(plan)) = self.engine.store.view(|r| r.plan(self.plan)) else { return Vec::new() };
        let ours = self.tools.iter().cloned();
        let mut tools: Vec<ToolSpec> = skilled.offered(&plan).into_iter().chain(ours).collect();
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        tools.dedup_by(|a, b| a.name == b.name);
        tools
    }

    fn tools_of(&self, skills: &[QualifiedName]) -> Result<Vec<ToolSpec>, ActorFailure> {
        let Some(skilled) = self.skilled.filter(|_| !skills.is_empty()) else { return Ok(Vec::new()) };
        let told = |error: agents_domain::Error| failure(error.message);
        let (plan, known) = self
            .engine
            .look(|r| Ok((r.plan(self.plan)?, crate::skills::known(self.engine, r)?)))
            .map_err(told)?;
        let Some(plan) = plan else { return Ok(Vec::new()) };
        skilled.of(&plan, skills, &known).map_err(|name| {
            failure(format!("the skill `{name}` is not among those the actor was brought up with"))
        })
    }

    fn agent_skills(&self) -> Vec<AvailableSkill> {
        self.skilled.map(Skilled::agent_skills).unwrap_or_default()
    }

    fn asked(&self, trace: &ModelTrace) {
        let kept = self.engine.write(|w| {
            let Some(plan) = w.plan(self.plan)? else { return Ok(()) };
            let decisions = w.decisions(self.plan)?;
            let under = trace.decision.as_deref().and_then(|key| records::by_key(&decisions, key));
            w.insert_model_trace(&RecordedTrace {
                trace_id: clock::ulid().to_string(),
                plan_id: self.plan,
                phase: plan.phase,
                decision_id: under.map(|decision| decision.decision_id),
                trace: trace.clone(),
                created_at: clock::now(),
            })?;
            Ok(())
        });
        // The work goes on without it; what it cost is in the log.
        if let Err(error) = kept {
            tracing::warn!(plan = %self.plan, %error, "the call of the model was not recorded");
        }
    }

    fn progress(&self, progress: Progress) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_none_or(|at| at.elapsed() >= PROGRESS_EVERY) {
            *told = Some(Instant::now());
            drop(told);
            (self.tell)(progress);
        }
    }

    fn stopping(&self) -> bool {
        use std::sync::atomic::Ordering::Relaxed;
        if self.stopped.load(Relaxed) {
            return true;
        }
        let changed = match self.watch.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(watch) => watch.changed().unwrap_or(true),
            None => true,
        };
        if changed {
            let seen = self.engine.store.view(|r| Ok((r.plan(self.plan)?, r.rewind(self.plan)?.is_some())));
            let goes_on = seen.is_ok_and(|(plan, rewinds)| {
                !rewinds && plan.is_some_and(|plan| plan.state == State::Processing)
            });
            self.stopped.store(!goes_on, Relaxed);
        }
        self.stopped.load(Relaxed)
    }
}
