//! The child plans of a plan: started wave by wave, worked on side by side in this worker, and taken in.

use std::collections::HashSet;
use std::pin::Pin;
use std::time::Duration;

use agents_domain::checkpoint::Trigger;
use agents_domain::decision::{Decision, DecisionType};
use agents_domain::ids::PlanId;
use agents_domain::plan::children::{self, Next, Order, Spawn, Stage, Standing, Unit};
use agents_domain::plan::machine::{Context, Effect, Event};
use agents_domain::plan::{Awaiting, AwaitingKind, Phase, Plan, PlanFailure, State};
use agents_domain::ports::store::{PlanRow, Reader, Writer};
use agents_sandbox::fault;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use serde_json::json;

use super::{Stop, Worker};
use crate::records::{self, advance, emit};
use crate::{Engine, checkpoints, children as making, clock};

/// Where a fault can be injected while child plans are made and taken in.
pub(super) const POINTS: &[&str] = &["worker.child-created", "worker.child-merged", "worker.child-recorded"];

/// How often is looked whether a person has moved a child that nobody works on.
const LOOK: Duration = Duration::from_millis(100);

/// The spawns of a plan that stand, in the order decided.
pub(super) struct Family {
    pub(super) members: Vec<Member>,
    units: Vec<Unit>,
}

/// One spawn with the decision that stands for it and the plan that was made.
pub(super) struct Member {
    pub(super) spawn: Spawn,
    pub(super) decision: Decision,
    pub(super) row: Option<PlanRow>,
}

impl Family {
    pub(super) fn read(engine: &Engine, plan: PlanId) -> agents_domain::Result<Self> {
        engine.view(|r| Self::of(r, plan))
    }

    fn of(r: &dyn Reader, plan: PlanId) -> agents_domain::ports::store::StoreResult<Self> {
        let (spawns, decisions, rows) = (r.spawns(plan)?, r.decisions(plan)?, r.child_rows(plan)?);
        let mut family = Self { members: Vec::new(), units: Vec::new() };
        for spawn in spawns {
            let Some(decision) = making::standing(&spawn, &decisions).cloned() else { continue };
            let row = rows.iter().find(|row| Some(row.plan_id) == spawn.child).cloned();
            family.units.push(unit(&spawn, &decision, &decisions, row.as_ref()));
            family.members.push(Member { spawn, decision, row });
        }
        Ok(family)
    }

    /// Their order, with what is due in it.
    fn due(&self, plan: &Plan) -> Result<(Order, Next), children::OrderError> {
        let order = children::order(&self.units)?;
        let next = children::next(&self.units, &order, &plan.subplan);
        Ok((order, next))
    }

    pub(super) fn standing(&self, at: usize) -> Standing {
        self.units[at].standing
    }
}

fn unit(spawn: &Spawn, decision: &Decision, decisions: &[Decision], row: Option<&PlanRow>) -> Unit {
    let find = |id| decisions.iter().find(|d: &&Decision| d.decision_id == id);
    let own = find(spawn.decision_id).unwrap_or(decision);
    let container = own.parent_decision_id.and_then(find);
    let container = container.filter(|d| d.decision_type == DecisionType::SubplanParallelSpawn);
    let named = |d: &Decision| {
        let spawns =
            matches!(d.decision_type, DecisionType::SubplanSpawn | DecisionType::SubplanParallelSpawn);
        if spawns { d.key.clone() } else { None }
    };
    let edges =
        |d: &Decision| d.depends_on.iter().filter_map(|id| find(*id)).filter_map(named).collect::<Vec<_>>();
    let group = container.and_then(|d| d.key.clone());
    let mut depends_on = spawn.draft.depends_on.clone();
    depends_on.extend(edges(own));
    depends_on.extend(container.map(edges).unwrap_or_default());
    // To hang below a container is no dependency.
    depends_on.retain(|on| Some(on) != group.as_ref());
    let key = own.key.clone().unwrap_or_else(|| own.decision_id.to_string());
    let name = if spawn.call.is_empty() { key } else { format!("{key}#{}", spawn.call) };
    Unit { name, group, depends_on, standing: standing(spawn, row) }
}

fn standing(spawn: &Spawn, row: Option<&PlanRow>) -> Standing {
    if let Stage::Skipped { left_out, .. } = spawn.stage {
        return if left_out { Standing::LeftOut } else { Standing::Skipped };
    }
    let Some(row) = row else { return Standing::Waiting };
    match (row.phase, row.state) {
        (_, State::Cancelled) => Standing::LeftOut,
        (Phase::Apply, _) | (Phase::Execute, State::Complete) => Standing::Done,
        (_, State::Errored) if spawn.given_up => Standing::Failed,
        _ if row.awaiting.is_some() => Standing::Paused,
        _ => Standing::Running,
    }
}

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
        let mut pool: FuturesUnordered<ChildRun<'_>> = FuturesUnordered::new();
        let mut running: HashSet<PlanId> = HashSet::new();
        loop {
            let plan = self.plan()?;
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
            if pool.is_empty() {
                if let Some(at) = self.first_to_take_in(&family, &order, &next)? {
                    self.take_in(&plan, &family.members[at])?;
                    continue;
                }
                if next.over {
                    return self.close(&family);
                }
            }
            if !next.skip.is_empty() {
                self.skip(&family, &next)?;
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
                let Some(row) = member.row.as_ref().filter(|row| !running.contains(&row.plan_id)) else {
                    continue;
                };
                let due = family.standing(at) == Standing::Running
                    && running.len() < plan.subplan.max_parallel.max(1) as usize;
                if due && (runnable(row) || self.try_again(&plan, row.plan_id)?) {
                    running.insert(row.plan_id);
                    pool.push(self.run_child(row.plan_id, limit));
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
            tokio::select! {
                ended = pool.next() => if let Some((child, ended)) = ended {
                    running.remove(&child);
                    ended?;
                },
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    /// Works on a child until it pauses or ends; one that takes too long is stopped and fails.
    fn run_child(&self, child: PlanId, limit: Option<Duration>) -> ChildRun<'_> {
        Box::pin(async move {
            let ended = match limit {
                None => self.work_on_child(child).await,
                Some(limit) => match tokio::time::timeout(limit, self.work_on_child(child)).await {
                    Ok(ended) => ended,
                    Err(_) => self.timed_out(child, limit),
                },
            };
            (child, ended)
        })
    }

    async fn work_on_child(&self, child: PlanId) -> Result<(), Stop> {
        let Some(lease) = self.engine.store.try_lease(child)? else {
            // Somebody applies it.
            tokio::time::sleep(LOOK).await;
            return Ok(());
        };
        let worker = Worker { engine: self.engine, id: child, lease, within: true };
        worker.work().await?;
        Ok(())
    }

    fn timed_out(&self, child: PlanId, limit: Duration) -> Result<(), Stop> {
        self.write(|w, _| {
            let Some(mut plan) = w.plan(child)? else { return Ok(()) };
            if plan.state != State::Processing {
                return Ok(());
            }
            let failure = PlanFailure {
                message: format!("it took longer than {} seconds", limit.as_secs()),
                category: "timeout".to_owned(),
                phase: plan.phase,
                tool: None,
                step: None,
                recoverable: true,
                retries: 0,
                hints: vec!["raise `timeout_per_subplan_seconds` of the action's `subplan`".to_owned()],
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
        let Some(first) = failed.first() else { return Ok(()) };
        self.write(|w, plan| {
            let why = w
                .plan(*first)?
                .and_then(|p| p.failure)
                .map_or_else(String::new, |f| format!(": {}", f.message));
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

type ChildRun<'w> = Pin<Box<dyn Future<Output = (PlanId, Result<(), Stop>)> + 'w>>;

/// What a child is about, in a few words.
pub(super) fn label(member: &Member) -> String {
    let text = member.spawn.draft.prompt.as_deref().unwrap_or(&member.decision.question);
    let line = text.lines().find(|l| !l.trim().is_empty()).unwrap_or_default().trim();
    line.chars().take(80).collect()
}

/// Cancels the children of a cancelled plan that are not done; what is done stays (PLAN-072).
pub(crate) fn cancel_all(engine: &Engine, w: &dyn Writer, parent: &Plan) -> agents_domain::Result<()> {
    for row in w.child_rows(parent.plan_id)? {
        let open = row.phase != Phase::Apply && !matches!(row.state, State::Complete | State::Cancelled);
        if !open {
            continue;
        }
        let Some(mut child) = w.plan(row.plan_id)? else { continue };
        child.cancel_reason = Some(format!("plan {}, its parent, was cancelled", parent.plan_id));
        advance(engine, w, &mut child, &Event::Cancel)?;
    }
    Ok(())
}

/// What becomes of children when their parent's phase is done anew: those whose decision fell are given up, those that
/// are done are taken in again.
pub(crate) fn start_over(engine: &Engine, w: &dyn Writer, parent: &Plan) -> agents_domain::Result<()> {
    let decisions = w.decisions(parent.plan_id)?;
    for spawn in w.spawns(parent.plan_id)? {
        let Some(child) = spawn.child else { continue };
        if making::standing(&spawn, &decisions).is_some() {
            if matches!(spawn.stage, Stage::Merged { .. } | Stage::Conflicted { .. }) {
                w.put_spawn(&Spawn { stage: Stage::Started, ..spawn })?;
            }
            continue;
        }
        let Some(mut plan) = w.plan(child)? else { continue };
        if plan.phase != Phase::Apply && !matches!(plan.state, State::Complete | State::Cancelled) {
            plan.cancel_reason = Some("its parent decided otherwise".to_owned());
            advance(engine, w, &mut plan, &Event::Cancel)?;
        }
    }
    Ok(())
}

/// Lets a parent go on that waits for a child, or failed because of one, when the child moved.
pub(crate) fn moved(engine: &Engine, w: &dyn Writer, child: &Plan) -> agents_domain::Result<()> {
    let Some(mut parent) = child.parent_plan_id.map(|id| w.plan(id)).transpose()?.flatten() else {
        return Ok(());
    };
    let moves = child.status().wants_worker() && child.phase != Phase::Apply || child.status().ended();
    let waits = match parent.awaiting.as_ref().map(|a| a.kind) {
        Some(kind) => kind == AwaitingKind::ChildPlan,
        None => {
            parent.phase == Phase::Execute
                && parent.state == State::Errored
                && parent.failure.as_ref().is_some_and(|f| f.category == CHILD_FAILED)
                && child.state != State::Cancelled
        }
    };
    if moves && waits {
        advance(engine, w, &mut parent, &Event::ChildMoved)?;
    }
    Ok(())
}

/// A person's answer to whether a child starts.
pub(crate) fn answered(w: &dyn Writer, asked: &Awaiting, start: bool) -> agents_domain::Result<()> {
    let Some(decision) = asked.decision_id.map(|id| w.decision(id)).transpose()?.flatten() else {
        return Ok(());
    };
    let known = w.decisions(decision.plan_id)?;
    let about = |spawn: &&Spawn| {
        spawn.stage == Stage::Decided
            && !spawn.approved
            && making::standing(spawn, &known).is_some_and(|d| d.decision_id == decision.decision_id)
    };
    let Some(spawn) = w.spawns(decision.plan_id)?.iter().find(about).cloned() else { return Ok(()) };
    let stage = if start {
        Stage::Decided
    } else {
        Stage::Skipped { reason: "left out by a person".to_owned(), left_out: true }
    };
    w.put_spawn(&Spawn { stage, approved: start, ..spawn })?;
    Ok(())
}

/// The children a child builds on that are neither applied nor given up; `None` when it may be applied.
pub(crate) fn unapplied_before(
    r: &dyn Reader,
    child: &Plan,
) -> agents_domain::ports::store::StoreResult<Option<Vec<PlanId>>> {
    let Some(parent) = child.parent_plan_id else { return Ok(None) };
    let family = Family::of(r, parent)?;
    let Some(at) = family.members.iter().position(|m| m.spawn.child == Some(child.plan_id)) else {
        return Ok(None);
    };
    let Ok(order) = children::order(&family.units) else { return Ok(None) };
    let open = |at: &usize| {
        let row = family.members[*at].row.as_ref();
        row.filter(|row| !matches!(row.state, State::Applied | State::Cancelled)).map(|row| row.plan_id)
    };
    let earlier: Vec<PlanId> = order.before(at).iter().filter_map(open).collect();
    Ok((!earlier.is_empty()).then_some(earlier))
}
