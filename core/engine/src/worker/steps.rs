//! A phase as a sequence of actor steps, each committed before its requests are carried out.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agents_domain::Error;
use agents_domain::checkpoint::{CheckpointDiff, CheckpointKind};
use agents_domain::decision::Decision;
use agents_domain::ids::PlanId;
use agents_domain::invariant;
use agents_domain::plan::machine::{Context, Effect, Event};
use agents_domain::plan::{Awaiting, Phase, Plan, PlanFailure, State};
use agents_domain::ports::actor::{
    ActorFailure, ActorWorkspace, KnownDecision, Observation, Request, StepInput, StepOutcome, StepOutput,
};
use agents_domain::ports::store::ActorRun;
use agents_sandbox::fault;
use futures::FutureExt;
use serde_json::{Value, json};

use super::host::Host;
use super::{Stop, Worker, failing, rewind};
use crate::checkpoints::{self, Point};
use crate::records::{self, awaiting_decision, by_key, emit};
use crate::rewind::{end_corrections, file_states, keep_outcomes, keep_run, keep_states};
use crate::sandboxes::{OpenSandbox, strategy_of};
use crate::{children, clock, sandboxes, tools};

/// Where a fault can be injected between the commits of a phase.
pub(super) const POINTS: &[&str] = &[
    "worker.sandbox-made",
    "worker.step-returned",
    "worker.step-committed",
    "worker.edits-written",
    "worker.edits-committed",
    "worker.change-recorded",
    "worker.undo-restored",
    "worker.decision-recorded",
    "worker.checkpoint-recorded",
    "worker.validation-recorded",
    "worker.phase-finished",
    "worker.apply-done",
];

/// Steps of one phase; far more than any honest actor takes.
const MAX_STEPS: u32 = 100_000;

/// Shapes of earlier failures an actor is told of.
const KNOWN_FAILURES: usize = 20;

impl Worker<'_> {
    /// Runs Strategize or Execute until it is done, pauses or fails.
    pub(super) async fn run_phase(&self, plan: &Plan) -> Result<(), Stop> {
        let plan = &match plan.phase {
            Phase::Execute => {
                self.run_children().await?;
                self.plan()?
            }
            _ => plan.clone(),
        };
        if plan.state != State::Processing || plan.awaiting.is_some() {
            return Ok(());
        }
        self.reconcile_invariants(plan).await?;
        let sandboxes = self.open_sandboxes(plan)?;
        let name =
            if plan.phase == Phase::Strategize { &plan.actors.strategy } else { &plan.actors.execution };
        let actor = self.engine.actor(name, &plan.arguments)?.ok_or_else(|| {
            Error::not_found(format!("there is no actor `{name}`, which the plan was made with"))
        })?;
        let servers = self.engine.language_servers()?;
        let mut workspaces = Vec::new();
        for sandbox in &sandboxes {
            let languages = self.engine.open_languages(&sandbox.root, servers.clone()).await;
            workspaces.push(ActorWorkspace {
                resource_id: sandbox.resource_id,
                name: sandbox.name.clone(),
                root: sandbox.root.clone(),
                read_only: sandbox.read_only,
                languages,
                untouchable: sandbox.untouchable.clone(),
            });
        }
        let lens = self.lens(&*actor, plan, &workspaces)?;
        let skilled = self.bring_up_skills(&*actor, plan, &sandboxes).await?;
        let host = Host {
            engine: self.engine,
            plan: self.id,
            sandboxes: &sandboxes,
            workspaces,
            watch: Mutex::new(self.engine.store.watch().ok()),
            stopped: std::sync::atomic::AtomicBool::new(false),
            told: Mutex::new(None),
            tools: tools::offered(self.engine, plan, &lens, &actor.local_tools()),
            skilled: skilled.as_ref(),
            tell: Arc::new(|p| self.progress(plan, &p.label, Some(p.done), p.total)),
        };
        tracing::info!(actor = %name, sandboxes = sandboxes.len(), "the actor begins");
        let began = std::time::Instant::now();
        let told = |event: &str, facts: Value| {
            self.write(|w, plan| Ok(emit(self.engine, w, plan, event, facts.clone())?))
        };
        told("actor.invoked", json!({ "phase": plan.phase, "actor": name }))?;
        let ended = match self.take_baseline(&host, &sandboxes).await {
            Ok(()) => self.run_steps(&*actor, &host, &lens, &sandboxes).await,
            Err(stop) => Err(stop),
        };
        let scene =
            tools::Scene { engine: self.engine, plan: Some(self.id), sandboxes: &sandboxes, lens: &lens };
        tools::deactivate(&scene).await;
        for workspace in &host.workspaces {
            workspace.languages.close().await;
        }
        let (event, message) = match &ended {
            Err(Stop::Failed(failure)) => ("actor.errored", Some(failure.message.clone())),
            Err(Stop::Broken(error)) => ("actor.errored", Some(error.message.clone())),
            Ok(()) | Err(Stop::Moved) => ("actor.completed", None),
        };
        let took = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(actor = %name, duration_ms = took, "{event}");
        let facts = json!({ "phase": plan.phase, "actor": name, "duration_ms": took, "message": message });
        // The phase's own end matters more than a plan that was cancelled under it.
        if let Err(Stop::Broken(error)) = told(event, facts) {
            tracing::warn!(plan = %self.id, %error, "the end of the actor was not recorded");
        }
        ended
    }

    async fn run_steps(
        &self,
        actor: &dyn agents_domain::ports::actor::Actor,
        host: &Host<'_>,
        lens: &agents_tools::Lens,
        sandboxes: &[OpenSandbox],
    ) -> Result<(), Stop> {
        let local = actor.local_tools();
        loop {
            let plan = self.plan()?;
            if plan.state != State::Processing || plan.awaiting.is_some() {
                return Ok(());
            }
            let mut run = self.run_of(&plan)?;
            while run.done < run.requests.len() {
                if !self.carry_out(&mut run, lens, &local, sandboxes, host.skilled).await? {
                    return self.await_decision();
                }
            }
            if self.has_pending()? {
                return self.await_decision();
            }
            if plan.phase == Phase::Execute && self.has_open_children()? {
                // The phase is begun again with what they did.
                return Ok(());
            }
            match run.outcome.clone() {
                StepOutcome::Done(summary) => {
                    if plan.phase == Phase::Execute && !self.validate(&run, host, sandboxes).await? {
                        continue;
                    }
                    let estimate = match plan.phase {
                        Phase::Strategize => self.estimate(&plan, host).await,
                        _ => None,
                    };
                    return self.finish_phase(summary, estimate).await;
                }
                StepOutcome::TooTight { reason, .. } if plan.phase == Phase::Execute => {
                    return self.too_tight(&run, reason);
                }
                StepOutcome::TooTight { reason, .. } => {
                    let message = format!("the actor calls its own strategy too tight: {reason}");
                    return Err(Stop::Failed(self.failure(&plan, &run, message)));
                }
                StepOutcome::Ask { kind, question, options } => {
                    let awaiting = Awaiting {
                        kind,
                        decision_id: None,
                        question,
                        options,
                        flag: None,
                        threshold: None,
                        confidence: None,
                        since: clock::now(),
                    };
                    run.outcome = StepOutcome::Continue;
                    return self.write(|w, plan| {
                        w.put_actor_run(&run)?;
                        self.advance(w, plan, &Event::ActorAsked(awaiting.clone()))?;
                        Ok(())
                    });
                }
                StepOutcome::Continue if self.over_budget(&plan)? => return Ok(()),
                StepOutcome::Continue => {
                    self.take_edits(&mut run, host, sandboxes).await?;
                    if let Some(skilled) = host.skilled {
                        self.take_over_offers(skilled).await?;
                    }
                    self.step(actor, host, &plan, run).await?;
                }
            }
        }
    }

    /// The run as last committed, or a fresh one.
    fn run_of(&self, plan: &Plan) -> Result<ActorRun, Stop> {
        let run = self.engine.view(|r| r.actor_run(self.id, plan.phase))?;
        Ok(run.unwrap_or_else(|| fresh_run(self.id, plan.phase)))
    }

    async fn step(
        &self,
        actor: &dyn agents_domain::ports::actor::Actor,
        host: &Host<'_>,
        plan: &Plan,
        run: ActorRun,
    ) -> Result<(), Stop> {
        if run.step >= MAX_STEPS {
            return Err(Stop::Failed(self.failure(
                plan,
                &run,
                "the actor does not come to an end".to_owned(),
            )));
        }
        let decisions = self.engine.view(|r| r.decisions(self.id))?;
        let handover = match plan.phase {
            Phase::Execute => self.engine.view(|r| r.actor_run(self.id, Phase::Strategize))?.map(|r| r.state),
            _ => None,
        };
        let unseen: Vec<_> = plan.guidance.iter().filter(|g| !g.applied).cloned().collect();
        let input = StepInput {
            phase: plan.phase,
            description: plan.description.clone(),
            definition_of_done: plan.definition_of_done.clone(),
            arguments: plan.arguments.clone(),
            read_only: plan.read_only,
            state: run.state.clone(),
            observations: observations(&run, &decisions),
            guidance: unseen.iter().map(|g| g.text.clone()).collect(),
            handover: handover.unwrap_or(Value::Null),
            decisions: decisions.iter().filter(|d| d.superseded_by.is_none()).map(known).collect(),
            invariants: invariant::enforced(&decisions),
            known_failures: self.engine.view(|r| r.failure_patterns(KNOWN_FAILURES))?,
            estimating: false,
            parent: children::parent_context(self.engine, plan)?,
            children: children::known(self.engine, plan)?,
            findings: plan.validations.being_fixed().cloned().collect(),
            validations: crate::validations::known(self.engine, plan)?,
        };
        let began = std::time::Instant::now();
        let stepped = AssertUnwindSafe(actor.step(input, host)).catch_unwind().await;
        if agents_domain::ports::actor::ActorHost::stopping(host) {
            return Err(Stop::Moved);
        }
        let output = match stepped {
            Ok(Ok(output)) => output,
            Ok(Err(failure)) => return self.step_failed(plan, run, failure).await,
            Err(_) => {
                return Err(Stop::Failed(self.failure(
                    plan,
                    &run,
                    "the actor panicked; this is a defect".to_owned(),
                )));
            }
        };
        fault::point("worker.step-returned");
        let took = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.commit_step(run, output, &unseen, took)?;
        fault::point("worker.step-committed");
        Ok(())
    }

    fn commit_step(
        &self,
        run: ActorRun,
        output: StepOutput,
        seen: &[agents_domain::plan::Guidance],
        took_ms: u64,
    ) -> Result<(), Stop> {
        let StepOutput { state, requests, progress, outcome, cost } = output;
        tracing::info!(step = run.step + 1, requests = requests.len(), "the actor has made a step");
        let before = if requests.is_empty() { None } else { Some(keep_run(self.engine, &run)?) };
        let heard = run.heard.iter().copied().chain(seen.iter().map(|said| said.decision_id)).collect();
        let next = ActorRun {
            step: run.step + 1,
            state,
            requests,
            done: 0,
            observations: Vec::new(),
            outcome,
            retries: 0,
            restores: 0,
            lost_workers: 0,
            before,
            heard,
            ..run
        };
        self.write(|w, plan| {
            w.put_actor_run(&next)?;
            for guidance in &mut plan.guidance {
                guidance.applied |= seen.iter().any(|s| s.decision_id == guidance.decision_id);
            }
            plan.spending.next_step();
            plan.spending.count(plan.phase, cost.usd, cost.tokens, took_ms);
            records::touch(w, plan)?;
            if let Some(progress) = &progress {
                let facts = json!({
                    "phase": plan.phase, "label": progress.label, "done": progress.done, "total": progress.total,
                });
                emit(self.engine, w, plan, "plan.progress", facts)?;
            }
            Ok(())
        })
    }

    /// Tries a step again after a while when that may help, else fails it.
    async fn step_failed(&self, plan: &Plan, mut run: ActorRun, failure: ActorFailure) -> Result<(), Stop> {
        let mut recorded = self.failure(plan, &run, failure.message);
        // Another try of the same step helps only against what passes; from the last checkpoint a guard may be content.
        recorded.recoverable = failure.transient || failure.category == ActorFailure::SEMANTIC;
        recorded.category = failure.category;
        recorded.hints = failure.hints;
        let allowed = u32::try_from(self.engine.config.integer("plan.tool.max-retries", None)).unwrap_or(0);
        if !failure.transient || run.retries >= allowed {
            return Err(Stop::Failed(recorded));
        }
        let left = allowed - run.retries;
        run.retries += 1;
        let retried = self.write(|w, plan| {
            let confidence = records::phase_confidence(w, plan)?;
            let context = Context { tool_retries_left: left, confidence, ..records::context_of(plan) };
            let event = Event::TransientFailure(recorded.clone());
            let effects = records::advance_in(self.engine, w, plan, &event, &context)?;
            w.put_actor_run(&run)?;
            failing::record(w, plan, Some(&run), &recorded, failing::outcome_of(plan, &effects))?;
            Ok(effects.contains(&Effect::RetryStep))
        })?;
        if retried {
            tokio::time::sleep(self.backoff(run.retries)).await;
        }
        Ok(())
    }

    /// How long to wait before the n-th retry.
    fn backoff(&self, retry: u32) -> Duration {
        match self.engine.config.text("plan.tool.retry-backoff", None).as_str() {
            "none" => Duration::ZERO,
            "linear" => Duration::from_secs(2),
            _ => Duration::from_secs(1 << retry.clamp(1, 7).saturating_sub(1)),
        }
    }

    fn failure(&self, plan: &Plan, run: &ActorRun, message: String) -> PlanFailure {
        PlanFailure {
            message,
            category: "actor".to_owned(),
            phase: plan.phase,
            tool: None,
            step: Some(format!("step {}", run.step + 1)),
            recoverable: false,
            retries: run.retries,
            hints: Vec::new(),
        }
    }

    fn has_pending(&self) -> Result<bool, Stop> {
        Ok(self.engine.view(|r| r.decisions(self.id))?.iter().any(|d| d.pending && d.superseded_by.is_none()))
    }

    /// Pauses the plan for the first decision that waits.
    pub(super) fn await_decision(&self) -> Result<(), Stop> {
        self.write(|w, plan| {
            let decisions = w.decisions(self.id)?;
            let Some(first) = decisions.iter().find(|d| d.pending && d.superseded_by.is_none()) else {
                return Ok(());
            };
            let first = awaiting_decision(plan, first);
            self.advance(w, plan, &Event::DecisionsPending { first })?;
            Ok(())
        })
    }

    /// Says that Execute cannot keep to the strategy; what was decided too tightly stays in the run until it is acted on.
    fn too_tight(&self, run: &ActorRun, reason: String) -> Result<(), Stop> {
        self.write(|w, plan| {
            let failure = PlanFailure {
                category: "strategy".to_owned(),
                recoverable: true,
                ..self.failure(plan, run, reason.clone())
            };
            let effects = self.advance(w, plan, &Event::StrategyTooTight(failure.clone()))?;
            failing::record(w, plan, Some(run), &failure, failing::outcome_of(plan, &effects))?;
            Ok(())
        })
    }

    async fn finish_phase(
        &self,
        mut summary: agents_domain::plan::PhaseSummary,
        estimate: Option<agents_domain::plan::guards::Estimate>,
    ) -> Result<(), Stop> {
        let plan = self.plan()?;
        if plan.phase == Phase::Strategize {
            self.check_order(&plan)?;
        }
        if !self.judge_invariants(&plan, &mut summary).await? {
            return Ok(());
        }
        let diff_ref = match plan.phase {
            Phase::Execute => Some(sandboxes::store_diff(self.engine, &plan)?),
            _ => None,
        };
        let drift = crate::drift::look(&plan);
        let outcome = match plan.phase {
            Phase::Execute => {
                let changes = self.engine.view(|r| r.changes(self.id))?;
                Some(keep_states(self.engine, &file_states(&changes))?)
            }
            _ => None,
        };
        fault::point("worker.phase-finished");
        self.write(|w, plan| {
            let mut summary = summary.clone();
            crate::drift::note(self.engine, w, plan, &mut summary, &drift)?;
            plan.summaries.insert(plan.phase, summary);
            if diff_ref.is_some() {
                plan.diff_ref.clone_from(&diff_ref);
            }
            let phase = plan.phase;
            if estimate.is_some() {
                plan.spending.estimate.clone_from(&estimate);
            }
            self.advance(w, plan, &Event::ActorDone)?;
            if let Some(estimate) = &estimate {
                let facts = json!({
                    "actor": plan.actors.estimation, "cost_estimate_usd": estimate.cost_usd,
                    "headline": estimate.headline, "facts": estimate.facts,
                });
                emit(self.engine, w, plan, "plan.estimation_complete", facts)?;
            }
            if let Some(outcome) = &outcome {
                keep_outcomes(w, self.id, outcome)?;
            }
            end_corrections(self.engine, w, plan, phase)?;
            Ok(())
        })
    }

    /// Makes the plan's sandboxes on first use, re-opens them after that, and brings each to its last committed state.
    pub(super) fn open_sandboxes(&self, plan: &Plan) -> Result<Vec<OpenSandbox>, Stop> {
        let run = self.engine.view(|r| r.actor_run(self.id, plan.phase))?;
        let in_flight = match run.as_ref().and_then(|run| run.requests.get(run.done)) {
            // Taking back touches what was written; which of it under this decision does not matter here.
            Some(Request::Undo { .. }) => {
                let changes = self.engine.view(|r| r.changes(self.id))?;
                changes
                    .into_iter()
                    .flat_map(|change| change.old_path.into_iter().chain([change.path]))
                    .collect()
            }
            Some(request) => rewind::half_written(self.engine, self.id, request)?,
            None => Vec::new(),
        };
        let in_flight = [in_flight, rewind::in_flight(self)?].concat();
        let opened = sandboxes::open_all(self.engine, plan, &in_flight)?;
        fault::point("worker.sandbox-made");
        if opened.fresh.is_empty() && opened.kept.is_empty() {
            return Ok(opened.sandboxes);
        }
        self.write_any(|w, plan| {
            for sandbox in &opened.fresh {
                plan.sandboxes.retain(|s| s.resource_id != sandbox.resource_id);
                plan.sandboxes.push(sandbox.clone());
                let facts = json!({
                    "resource_id": sandbox.resource_id, "strategy": sandbox.strategy(), "path": sandbox.path,
                    "untouchable": sandbox.untouchable.len(),
                });
                emit(self.engine, w, plan, "sandbox.created", facts)?;
            }
            let point = |resource_id, kind, label, commit| Point {
                resource_id,
                kind,
                trigger: None,
                decision: None,
                tool: None,
                label,
                commit: Some(commit),
                diff: CheckpointDiff::default(),
                stood: None,
            };
            if checkpoints::enabled(self.engine, plan) {
                for sandbox in &opened.fresh {
                    let base = point(
                        sandbox.resource_id,
                        CheckpointKind::Base,
                        "Before the first change".to_owned(),
                        &*sandbox.commit,
                    );
                    checkpoints::record(self.engine, w, plan, base)?;
                }
            }
            for (resource, commit, paths) in &opened.kept {
                let label =
                    format!("Edits found in the sandbox, taken out and kept here: {}", paths.join(", "));
                checkpoints::record(
                    self.engine,
                    w,
                    plan,
                    point(*resource, CheckpointKind::Manual, label.clone(), &**commit),
                )?;
                let facts = json!({ "resource_id": resource, "strategy": strategy_of(plan, *resource), "reason": label });
                emit(self.engine, w, plan, "sandbox.rolled_back", facts)?;
            }
            records::touch(w, plan)?;
            Ok(())
        })?;
        Ok(opened.sandboxes)
    }
}

/// A run before its first step.
pub(super) fn fresh_run(plan_id: PlanId, phase: Phase) -> ActorRun {
    ActorRun {
        plan_id,
        phase,
        step: 0,
        state: Value::Null,
        requests: Vec::new(),
        done: 0,
        observations: Vec::new(),
        outcome: StepOutcome::Continue,
        group_starts: BTreeMap::new(),
        retries: 0,
        restores: 0,
        lost_workers: 0,
        before: None,
        heard: Vec::new(),
    }
}

/// What the last step's requests came to; decisions as they stand now, answers in place of proposals.
fn observations(run: &ActorRun, decisions: &[Decision]) -> Vec<Observation> {
    let mut out: Vec<Observation> = run
        .requests
        .iter()
        .take(run.done)
        .filter_map(|request| match request {
            Request::RecordDecision(draft) => {
                by_key(decisions, &draft.key).map(|d| Observation::Decided(known(d)))
            }
            _ => None,
        })
        .collect();
    out.extend(run.observations.iter().cloned());
    out
}

pub(crate) fn known(decision: &Decision) -> KnownDecision {
    KnownDecision {
        decision_id: decision.decision_id,
        key: decision.key.clone(),
        decision_type: decision.decision_type,
        question: decision.question.clone(),
        chosen_option: decision.chosen_option.clone(),
        options: decision.alternatives.iter().map(|a| a.option.clone()).collect(),
    }
}
