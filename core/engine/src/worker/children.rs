//! The child plans of a plan: started wave by wave, worked on side by side in this worker, and taken in.

use std::time::Duration;

use agents_domain::checkpoint::Trigger;
use agents_domain::ids::PlanId;
use agents_domain::plan::children::{Next, Spawn, Stage, Standing};
use agents_domain::plan::machine::{Context, Effect, Event};
use agents_domain::plan::{Awaiting, AwaitingKind, Phase, Plan, PlanFailure, State};
use agents_domain::ports::store::PlanRow;
use agents_sandbox::fault;
use serde_json::json;

use super::family::{Family, Member};
use super::pool::{Outcome, Pool};
use super::{Stop, Worker};
use crate::records::{self, advance, emit};
use crate::{checkpoints, children as making, clock};

/// Where a fault can be injected while child plans are made and taken in.
pub(super) const POINTS: &[&str] = &["worker.child-created", "worker.child-merged", "worker.child-recorded"];

/// How often is looked whether a person has moved a child that nobody works on.
const LOOK: Duration = Duration::from_millis(100);

/// Whether a worker of the tree has something to do for a child.
fn runnable(row: &PlanRow) -> bool {
    row.phase != Phase::Apply
        && row.awaiting.is_none()
        && matches!(row.state, State::Queued | State::Processing)
}

impl Worker<'_> {
    /// Runs the open child plans of a plan in Execute and takes their work in. Returns when none is left open, or when
    /// the plan pauses or fails because of them.
    pub(super) async fn run_children(&self) -> Result<(), Stop> {
        let mut pool = Pool::new();
        self.give_another_chance()?;
        loop {
            let plan = self.plan()?;
            let rewinding = self.engine.view(|r| r.rewinding())?;
            if rewinding.contains(&self.id) {
                return Err(Stop::Moved);
            }
            if plan.phase != Phase::Execute || plan.state != State::Processing || plan.awaiting.is_some() {
                return Ok(());
            }
            let family = Family::read(self.engine, self.id)?;
            if family.members.is_empty() {
                return Ok(());
            }
            let (order, next) = match family.due(&plan) {
                Ok(due) => due,
                Err(why) => return self.no_order(&plan, &why.to_string()),
            };
            if let Some(at) = self.first_to_take_in(&family, &order, &next)? {
                // Nothing later starts before, also while the last of a wave has said that it is done and is still ending.
                if pool.is_empty() {
                    self.take_in(&plan, &family.members[at])?;
                } else {
                    self.wait_for_one(&mut pool).await?;
                }
                continue;
            }
            if pool.is_empty() && next.over {
                return self.close(&family);
            }
            if !next.skip.is_empty() {
                self.skip(&family, &next)?;
                continue;
            }
            if plan.subplan.fail_fast
                && family.count(Standing::Failed) > 0
                && family.count(Standing::Running) > 0
            {
                self.stop_running(&family, &mut pool).await?;
                continue;
            }
            if let Some(wave) = order.waves.get(next.finished_waves) {
                let unasked = |at: &&usize| {
                    family.standing(**at) == Standing::Waiting && !family.members[**at].spawn.approved
                };
                if let Some(at) = wave.iter().find(unasked) {
                    // All of a wave are asked about before one of it starts.
                    if self.may_start(&plan, &family.members[*at])? { continue } else { return Ok(()) }
                }
            }
            let mut started = false;
            for at in next.start {
                self.start(&family.members[at])?;
                started = true;
            }
            if started {
                continue;
            }
            let limit = plan.subplan.timeout_per_subplan_seconds.map(Duration::from_secs);
            for (at, member) in family.members.iter().enumerate() {
                let Some(row) = member.row.as_ref().filter(|row| !pool.holds(row.plan_id)) else {
                    continue;
                };
                // One that waits for a person is brought back all the same.
                let back = rewinding.contains(&row.plan_id);
                let due = (back || family.standing(at) == Standing::Running)
                    && pool.len() < plan.subplan.max_parallel.max(1) as usize;
                if due && (back || runnable(row) || self.try_again(&plan, row.plan_id)?) {
                    pool.start(self.engine, row.plan_id, limit)?;
                }
            }
            if pool.is_empty() {
                if let Some(paused) =
                    family.members.iter().zip(&family.units).find(|(_, u)| u.standing == Standing::Paused)
                {
                    self.pause_for(paused.0)?;
                }
                continue;
            }
            self.wait_for_one(&mut pool).await?;
        }
    }

    /// Until the work on a child ends, or it is time to look at what others did.
    async fn wait_for_one(&self, pool: &mut Pool) -> Result<(), Stop> {
        tokio::select! {
            (child, outcome) = pool.next() => self.ended(child, outcome),
            () = tokio::time::sleep(LOOK) => Ok(()),
        }
    }

    /// Lets children that failed go on when the plan itself is taken up again, whatever became of their retries.
    fn give_another_chance(&self) -> Result<(), Stop> {
        let family = Family::read(self.engine, self.id)?;
        let running =
            family.members.iter().zip(&family.units).filter(|(_, u)| u.standing == Standing::Running);
        for child in running.filter_map(|(member, _)| member.spawn.child) {
            self.write(|w, _| {
                match w.plan(child)? {
                    Some(mut failed) if failed.state == State::Errored => {
                        advance(self.engine, w, &mut failed, &Event::Execute)?;
                    }
                    _ => {}
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Takes note of how the work on a child ended.
    fn ended(&self, child: PlanId, outcome: Outcome) -> Result<(), Stop> {
        match outcome {
            Outcome::Done(done) => Ok(done?),
            Outcome::Stopped => Ok(()),
            Outcome::TimedOut(limit) => {
                let message = format!("it took longer than {} seconds", limit.as_secs());
                let hint = "raise `timeout_per_subplan_seconds` of the action's `subplan`";
                self.fail_child(child, "timeout", &message, hint)
            }
        }
    }

    /// Stops what runs because another child failed. What they have done is kept: they go on from there when the plan is
    /// taken up again.
    async fn stop_running(&self, family: &Family, pool: &mut Pool) -> Result<(), Stop> {
        for (child, outcome) in pool.stop().await {
            self.ended(child, outcome)?;
        }
        let failed = family.units.iter().find(|unit| unit.standing == Standing::Failed);
        let failed = failed.map(|unit| unit.name.as_str()).unwrap_or_default();
        let message = format!("it was stopped because `{failed}` failed");
        let hint = format!("agents plan execute {}  # goes on with it, too", self.id);
        for (member, unit) in family.members.iter().zip(&family.units) {
            let Some(row) = member.row.as_ref().filter(|_| unit.standing == Standing::Running) else {
                continue;
            };
            self.fail_child(row.plan_id, STOPPED, &message, &hint)?;
        }
        Ok(())
    }

    /// Ends the phase of a child that is at work with an error; one that was stopped is not tried again by itself.
    fn fail_child(&self, child: PlanId, category: &str, message: &str, hint: &str) -> Result<(), Stop> {
        self.write(|w, _| {
            let Some(mut plan) = w.plan(child)? else { return Ok(()) };
            if category == STOPPED {
                if (plan.state, plan.awaiting.is_some()) == (State::Queued, false) {
                    advance(self.engine, w, &mut plan, &Event::WorkerTook)?;
                }
                let stops =
                    matches!(plan.state, State::Processing | State::Errored) && plan.awaiting.is_none();
                if let Some(spawn) = w.spawn_of(child)?.filter(|_| stops) {
                    w.put_spawn(&Spawn { given_up: true, ..spawn })?;
                }
            }
            if plan.state != State::Processing || plan.awaiting.is_some() {
                return Ok(());
            }
            let failure = PlanFailure {
                message: message.to_owned(),
                category: category.to_owned(),
                phase: plan.phase,
                tool: None,
                step: None,
                recoverable: true,
                retries: 0,
                hints: vec![hint.to_owned()],
            };
            advance(self.engine, w, &mut plan, &Event::Unrecovered(failure))?;
            Ok(())
        })
    }

    /// Lets a failed child go on from its last step, as often as the plan says; then it has failed.
    fn try_again(&self, plan: &Plan, child: PlanId) -> Result<bool, Stop> {
        let allowed = if plan.subplan.retry_failed { plan.subplan.max_retries } else { 0 };
        self.write(|w, parent| {
            let (Some(mut failed), Some(mut spawn)) = (w.plan(child)?, w.spawn_of(child)?) else {
                return Ok(false);
            };
            if failed.state != State::Errored {
                return Ok(false);
            }
            let again = spawn.retries < allowed;
            spawn.given_up = !again;
            spawn.retries = if again { spawn.retries + 1 } else { 0 };
            w.put_spawn(&spawn)?;
            let facts = json!({
                "child_plan_id": child, "retry": spawn.retries, "given_up": spawn.given_up,
                "message": failed.failure.as_ref().map(|f| f.message.clone()),
            });
            emit(self.engine, w, parent, "plan.child_failed", facts)?;
            if again {
                advance(self.engine, w, &mut failed, &Event::Execute)?;
            }
            Ok(again)
        })
    }

    /// Asks the gate of a spawn; `false` when a person must answer first.
    fn may_start(&self, plan: &Plan, member: &Member) -> Result<bool, Stop> {
        let left = making::depth_left(self.engine, plan)?;
        let event = Event::SpawnWanted { label: label(member), decision: Some(member.decision.decision_id) };
        self.write(|w, plan| {
            let context = Context { child_depth_left: left, ..records::full_context(self.engine, w, plan)? };
            let effects = records::advance_in(self.engine, w, plan, &event, &context)?;
            let passed = effects.contains(&Effect::SpawnChild);
            if passed {
                w.put_spawn(&Spawn { approved: true, ..member.spawn.clone() })?;
            }
            Ok(passed)
        })
    }

    /// Makes the plan of a spawn.
    fn start(&self, member: &Member) -> Result<PlanId, Stop> {
        let plan = self.plan()?;
        if plan.sandboxes.len() < plan.resources.len() {
            // A child begins with what the parent has.
            self.open_sandboxes(&plan)?;
        }
        let plan = self.plan()?;
        let child = making::prepare(self.engine, &plan, &member.spawn.draft)?;
        self.write(|w, plan| {
            let before = format!("Before child plan: {}", label(member));
            let decision = Some(member.decision.decision_id);
            checkpoints::record_all(self.engine, w, plan, Trigger::OnSubplanSpawn, decision, &before)?;
            let mut spawn = member.spawn.clone();
            making::insert(self.engine, w, plan, &mut spawn, &child)?;
            if member.decision.decision_id != spawn.decision_id {
                w.add_impact(member.decision.decision_id, &[], &[child.plan.plan_id])?;
            }
            Ok(())
        })?;
        fault::point("worker.child-created");
        Ok(child.plan.plan_id)
    }

    fn skip(&self, family: &Family, next: &Next) -> Result<(), Stop> {
        self.write(|w, plan| {
            for (at, cause) in &next.skip {
                let reason = format!("not started because `{}` failed", family.units[*cause].name);
                let stage = Stage::Skipped { reason: reason.clone(), left_out: false };
                w.put_spawn(&Spawn { stage, ..family.members[*at].spawn.clone() })?;
                let facts =
                    json!({ "decision_id": family.members[*at].decision.decision_id, "reason": reason });
                emit(self.engine, w, plan, "plan.child_skipped", facts)?;
            }
            Ok(())
        })
    }

    /// Waits for a person to answer a child, unless one of the children can go on by now.
    fn pause_for(&self, member: &Member) -> Result<(), Stop> {
        self.write(|w, plan| {
            if w.child_rows(self.id)?.iter().any(runnable) {
                return Ok(());
            }
            let Some(child) = member.row.as_ref().map(|row| w.plan(row.plan_id)).transpose()?.flatten()
            else {
                return Ok(());
            };
            let asked = child.awaiting.as_ref().map(|a| a.question.clone()).unwrap_or_default();
            let awaiting = Awaiting {
                kind: AwaitingKind::ChildPlan,
                decision_id: None,
                question: format!(
                    "Child plan {0} waits for an answer: {asked} (agents plan prompt {0} <ANSWER>)",
                    child.plan_id
                ),
                options: Vec::new(),
                flag: None,
                threshold: None,
                confidence: None,
                since: clock::now(),
            };
            self.advance(w, plan, &Event::ActorAsked(awaiting))?;
            Ok(())
        })
    }

    /// All children are over: the plan goes on, or fails when one of them did.
    fn close(&self, family: &Family) -> Result<(), Stop> {
        let failed: Vec<PlanId> = family
            .members
            .iter()
            .zip(&family.units)
            .filter(|(_, unit)| unit.standing == Standing::Failed)
            .filter_map(|(member, _)| member.spawn.child)
            .collect();
        if failed.is_empty() {
            return Ok(());
        }
        self.write(|w, plan| {
            let mut reason: Option<(PlanId, PlanFailure)> = None;
            for child in &failed {
                let Some(failure) = w.plan(*child)?.and_then(|p| p.failure) else { continue };
                // Those that were stopped are not the reason, when there is another.
                if reason.as_ref().is_none_or(|(_, known)| known.category == STOPPED) {
                    reason = Some((*child, failure));
                }
            }
            let first = reason.as_ref().map_or(failed[0], |(child, _)| *child);
            let why = reason.map_or_else(String::new, |(_, f)| format!(": {}", f.message));
            let others = match failed.len() {
                1 => String::new(),
                n => format!(" (and {} more)", n - 1),
            };
            // When the plan is taken up again, those that failed get another chance, and those after them too.
            for (member, unit) in family.members.iter().zip(&family.units) {
                match unit.standing {
                    Standing::Failed => {
                        w.put_spawn(&Spawn { given_up: false, retries: 0, ..member.spawn.clone() })?
                    }
                    Standing::Skipped => {
                        w.put_spawn(&Spawn { stage: Stage::Decided, ..member.spawn.clone() })?
                    }
                    _ => {}
                }
            }
            let failure = PlanFailure {
                message: format!("child plan {first} failed{why}{others}"),
                category: CHILD_FAILED.to_owned(),
                phase: Phase::Execute,
                tool: None,
                step: None,
                recoverable: true,
                retries: 0,
                hints: vec![
                    format!("agents plan prompt {first} <GUIDANCE>"),
                    format!("agents plan execute {}  # try again", self.id),
                    format!("agents plan cancel {first}  # go on without it, then execute the parent"),
                ],
            };
            self.advance(w, plan, &Event::Unrecovered(failure))?;
            Ok(())
        })
    }

    fn no_order(&self, plan: &Plan, why: &str) -> Result<(), Stop> {
        let failure = PlanFailure {
            message: why.to_owned(),
            category: "actor".to_owned(),
            phase: plan.phase,
            tool: None,
            step: None,
            recoverable: false,
            retries: 0,
            hints: vec![format!("agents plan tree {}", self.id)],
        };
        Err(Stop::Failed(failure))
    }

    /// Whether children are still to be run or taken in.
    pub(super) fn has_open_children(&self) -> Result<bool, Stop> {
        let family = Family::read(self.engine, self.id)?;
        Ok(family.members.iter().zip(&family.units).any(|(member, unit)| {
            !unit.standing.over()
                || unit.standing == Standing::Failed
                || unit.standing == Standing::Done && !matches!(member.spawn.stage, Stage::Merged { .. })
        }))
    }

    /// Refuses decided children that have no order, when Strategize is done.
    pub(super) fn check_order(&self, plan: &Plan) -> Result<(), Stop> {
        match Family::read(self.engine, self.id)?.due(plan) {
            Ok(_) => Ok(()),
            Err(why) => self.no_order(plan, &why.to_string()),
        }
    }
}

/// The category of a plan's failure that is a child's.
pub(crate) const CHILD_FAILED: &str = "child_plan";

/// The category of a child's failure that is another's.
const STOPPED: &str = "stopped";

/// What a child is about, in a few words.
pub(super) fn label(member: &Member) -> String {
    let text = member.spawn.draft.prompt.as_deref().unwrap_or(&member.decision.question);
    let line = text.lines().find(|l| !l.trim().is_empty()).unwrap_or_default().trim();
    line.chars().take(80).collect()
}
