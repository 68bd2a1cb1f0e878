//! Bringing a transition into a plan's record, and its effects into the outbox.

use serde_json::{Value, json};

use super::{Context, Effect, Event, FailureChange, Point, Refusal, Status, Transition, step};
use crate::Timestamp;
use crate::event::NewEvent;
use crate::plan::{AwaitingKind, PhaseTimes, Plan, State};

impl Plan {
    /// Where it stands.
    pub fn status(&self) -> Status {
        Status {
            phase: self.phase,
            state: self.state,
            awaiting: self.awaiting.clone(),
            attempt: self.attempt,
            reversions: self.reversions,
            commanded: self.commanded,
        }
    }

    /// Puts a new plan where plans begin.
    pub fn begin(&mut self, context: &Context, now: Timestamp) {
        self.set_status(Status::begin(context, now));
    }

    /// One step of the machine: changes the record and returns what is to be carried out.
    pub fn advance(
        &mut self,
        event: &Event,
        context: &Context,
        now: Timestamp,
    ) -> Result<Vec<Effect>, Refusal> {
        let transition = step(&self.status(), event, context, now)?;
        Ok(self.apply_transition(transition, now))
    }

    /// Brings a transition into the record: status, failure, times, and what a phase that is done again takes along.
    pub fn apply_transition(&mut self, transition: Transition, now: Timestamp) -> Vec<Effect> {
        // Reads compare this to find lost updates, so it moves on even when the clock does not.
        self.updated_at = now.max(Timestamp::from_micros(self.updated_at.micros().saturating_add(1)));
        for effect in &transition.effects {
            match effect {
                Effect::StateChanged { from, to } => self.note_times(*from, *to, now),
                Effect::PhaseChanged { to, from } if to < from => {
                    self.summaries.retain(|phase, _| phase < to);
                    self.phase_times.retain(|phase, _| phase <= to);
                }
                Effect::RestartActor => {
                    self.summaries.remove(&transition.status.phase);
                    self.validations.start_over();
                }
                Effect::FixValidation => self.validations.ask_for_fix(transition.status.attempt),
                Effect::RetryStep => self.validations.run_again(),
                _ => {}
            }
        }
        match transition.failure {
            FailureChange::Keep => {}
            FailureChange::Clear => self.failure = None,
            FailureChange::Set(failure) => self.failure = Some(failure),
        }
        if let Some(mode) = transition.apply_mode {
            self.apply_mode = Some(mode);
        }
        self.set_status(transition.status);
        let status = self.status();
        if !status.wants_worker() {
            // The worker lets go of it; whoever takes it next follows nobody who died.
            self.epoch = 0;
        }
        if status.ended() && self.completed_at.is_none() {
            self.completed_at = Some(now);
        }
        transition.effects
    }

    fn set_status(&mut self, status: Status) {
        self.phase = status.phase;
        self.state = status.state;
        self.awaiting = status.awaiting;
        self.attempt = status.attempt;
        self.reversions = status.reversions;
        self.commanded = status.commanded;
    }

    fn note_times(&mut self, from: Point, to: Point, now: Timestamp) {
        if from.state == State::Processing
            && to.state != State::Processing
            && let Some(times) = self.phase_times.get_mut(&from.phase)
        {
            times.finished = Some(now);
        }
        match to.state {
            State::Processing => {
                self.phase_times
                    .entry(to.phase)
                    .and_modify(|times| times.finished = None)
                    .or_insert(PhaseTimes { started: now, finished: None });
            }
            State::Queued => {}
            _ => {
                if let Some(times) = self.phase_times.get_mut(&to.phase) {
                    times.finished = times.finished.or(Some(now));
                }
            }
        }
    }
}

impl Effect {
    /// The domain events of this effect, in order; `plan` is the record after the transition.
    pub fn events(&self, plan: &Plan) -> Vec<NewEvent> {
        let event = |name: &str, details: Value| NewEvent::of_plan(name, plan, details);
        match self {
            Self::PhaseChanged { from, to } => {
                vec![event("plan.phase_changed", json!({ "from": from, "to": to, "attempt": plan.attempt }))]
            }
            Self::StateChanged { from, to } => {
                let awaiting = plan.awaiting.as_ref().filter(|a| Some(a.kind) == to.awaiting);
                let mut events = vec![event(
                    "plan.state_changed",
                    json!({
                        "phase": to.phase, "from": point(*from), "to": point(*to),
                        "awaiting": awaiting, "attempt": plan.attempt,
                    }),
                )];
                match (to.state, to.awaiting) {
                    (State::Applied, _) => events.push(event("plan.applied", applied(plan))),
                    (State::Cancelled, _) => {
                        events.push(event(
                            "plan.cancelled",
                            json!({
                                "reason": plan.cancel_reason, "project_names": plan.projects,
                                "cancelled_phase": from.phase, "cancelled_processing_state": from.state,
                            }),
                        ));
                    }
                    (State::Errored, _) => {
                        events.push(event("plan.errored", json!({ "failure": plan.failure })));
                    }
                    (_, Some(AwaitingKind::Decision)) => {
                        events.push(event("actor.escalated", json!({ "awaiting": awaiting })));
                    }
                    (_, Some(AwaitingKind::Budget)) => {
                        events.push(event("budget.exceeded", json!({ "awaiting": awaiting })));
                    }
                    _ => {}
                }
                events
            }
            Self::Resumed => vec![event("plan.resumed", json!({ "phase": plan.phase }))],
            Self::RestoreCheckpoint => {
                let commits: Vec<_> = plan
                    .sandboxes
                    .iter()
                    .map(|s| json!({ "resource_id": s.resource_id, "commit": s.commit }))
                    .collect();
                vec![event("checkpoint.restored", json!({ "phase": plan.phase, "sandboxes": commits }))]
            }
            Self::RetryStep => vec![event("tool.retried", json!({ "phase": plan.phase }))],
            _ => Vec::new(),
        }
    }
}

fn applied(plan: &Plan) -> Value {
    json!({
        "project_names": plan.projects,
        "files_changed": plan.applied.iter().map(|a| a.files).sum::<u32>(),
        "lines_added": plan.applied.iter().map(|a| a.insertions).sum::<u32>(),
        "lines_removed": plan.applied.iter().map(|a| a.deletions).sum::<u32>(),
        "resources_modified": plan.applied.iter().map(|a| a.resource_id).collect::<Vec<_>>(),
        "commits": plan.applied.iter().filter_map(|a| a.commit.as_ref()).collect::<Vec<_>>(),
    })
}

fn point(point: Point) -> Value {
    json!({ "phase": point.phase, "state": point.state, "awaiting": point.awaiting })
}
