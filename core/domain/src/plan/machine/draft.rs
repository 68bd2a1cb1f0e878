//! Building a transition: moves and their events in order.

use super::questions;
use super::{Context, Denied, Effect, FailureChange, Point, Status, Transition, deny};
use crate::Timestamp;
use crate::plan::gates::{GateOutcome, NEUTRAL_CONFIDENCE, phase_gate};
use crate::plan::{ApplyMode, Awaiting, AwaitingKind, Phase, PlanFailure, State};
use crate::profile::Gate;

/// A transition in the making.
pub(super) struct Draft<'a> {
    pub(super) status: Status,
    pub(super) context: &'a Context,
    pub(super) now: Timestamp,
    effects: Vec<Effect>,
    failure: FailureChange,
    apply_mode: Option<ApplyMode>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(status: &Status, context: &'a Context, now: Timestamp) -> Self {
        Self {
            status: status.clone(),
            context,
            now,
            effects: Vec::new(),
            failure: FailureChange::Keep,
            apply_mode: None,
        }
    }

    /// The present phase, state and what is waited for.
    pub(super) fn at(&self) -> (Phase, State, Option<AwaitingKind>) {
        (self.status.phase, self.status.state, self.status.awaiting_kind())
    }

    pub(super) fn finish(self, rule: &'static str) -> Result<Transition, Denied> {
        Ok(Transition {
            rule,
            status: self.status,
            effects: self.effects,
            failure: self.failure,
            apply_mode: self.apply_mode,
        })
    }

    /// Refuses with where the plan is and why that does not do.
    pub(super) fn refuse(&self, rule: &'static str, why: &str) -> Result<Transition, Denied> {
        deny(rule, format!("the plan is in {}: {why}", self.status.describe()))
    }

    pub(super) fn effect(mut self, effect: Effect) -> Self {
        self.effects.push(effect);
        self
    }

    pub(super) fn failed(mut self, failure: &PlanFailure) -> Self {
        self.failure = FailureChange::Set(failure.clone());
        self
    }

    pub(super) fn mode(mut self, no_commit: bool) -> Self {
        self.apply_mode = Some(if no_commit { ApplyMode::NoCommit } else { ApplyMode::Commit });
        self
    }

    pub(super) fn commanded(mut self) -> Self {
        self.status.commanded = true;
        self
    }

    /// Counts a re-run, reversion or correction.
    pub(super) fn again(mut self) -> Self {
        self.status.attempt = self.status.attempt.saturating_add(1);
        self
    }

    /// Moves to a state of the present phase.
    pub(super) fn state(self, state: State) -> Self {
        let phase = self.status.phase;
        self.go(phase, state, None)
    }

    /// Waits for a person where it is.
    pub(super) fn ask(self, awaiting: Awaiting) -> Self {
        let (phase, state) = (self.status.phase, self.status.state);
        self.go(phase, state, Some(awaiting))
    }

    /// Goes on with a phase: at once when a worker may be started, else as soon as one may.
    pub(super) fn run(mut self, phase: Phase) -> Self {
        self.failure = FailureChange::Clear;
        let state = if self.context.slots_free { State::Processing } else { State::Queued };
        self.go(phase, state, None)
    }

    /// Waits for a worker in a phase.
    pub(super) fn queue(mut self, phase: Phase) -> Self {
        self.failure = FailureChange::Clear;
        self.go(phase, State::Queued, None)
    }

    pub(super) fn go(mut self, phase: Phase, state: State, awaiting: Option<Awaiting>) -> Self {
        let from = self.point();
        let same_question = match (&self.status.awaiting, &awaiting) {
            (Some(old), Some(new)) => old.kind == new.kind && old.decision_id == new.decision_id,
            (None, None) => true,
            _ => false,
        };
        if phase != self.status.phase {
            self.effects.push(Effect::PhaseChanged { from: from.phase, to: phase });
            // A command starts one phase; the next one begins without. All of a child is part of its parent's phase.
            self.status.commanded &= self.context.child;
        }
        self.status.phase = phase;
        self.status.state = state;
        self.status.awaiting = awaiting;
        let to = self.point();
        if to != from || !same_question {
            self.effects.push(Effect::StateChanged { from, to });
        }
        self
    }

    fn point(&self) -> Point {
        let (phase, state, awaiting) = self.at();
        Point { phase, state, awaiting }
    }

    /// The outcome of a gate at the phase's confidence.
    pub(super) fn gate(&self, gate: Gate) -> GateOutcome {
        phase_gate(&self.context.thresholds, gate, self.context.confidence.unwrap_or(NEUTRAL_CONFIDENCE))
    }

    /// Whether the command that started the phase answers a gate that always asks (ruling 6).
    pub(super) fn approved_in_advance(&self, gate: Gate) -> bool {
        self.status.commanded && self.context.thresholds.of(gate) >= 1.0
    }

    /// Waits for a person because a gate did not pass.
    pub(super) fn ask_gate(
        self,
        kind: AwaitingKind,
        gate: Gate,
        outcome: GateOutcome,
        question: impl Into<String>,
    ) -> Self {
        let awaiting =
            questions::question(kind, question.into(), self.context, self.now).gated(gate, outcome);
        self.ask(awaiting)
    }

    /// Ends Strategize: on to Execute, or asks (T11, T15, T16).
    pub(super) fn strategized(self) -> Self {
        let gate = self.gate(Gate::AutoExecute);
        let approved = self.context.child && self.approved_in_advance(Gate::AutoExecute);
        let done = self.state(State::Complete).effect(Effect::Estimate);
        if gate.passes() || approved {
            done.queue(Phase::Execute)
        } else {
            let question = "Strategize is done. Start Execute?";
            done.ask_gate(AwaitingKind::ExecuteApproval, Gate::AutoExecute, gate, question)
        }
    }

    /// Ends Execute: on to Apply, or asks (T30, T34, T35).
    pub(super) fn executed(self) -> Self {
        let gate = self.gate(Gate::AutoApply);
        let context = self.context;
        let done = self.state(State::Complete);
        if context.child {
            // Its parent takes the work in.
            return done;
        }
        if context.required_validation_failed {
            let question =
                "A required validation did not pass, so the changes cannot be applied. What shall be done?";
            return done.ask_gate(AwaitingKind::ApplyApproval, Gate::AutoApply, gate, question);
        }
        let question = "Execute is done. Apply the changes?";
        if context.require_approval_for_apply && gate.passes() {
            let now = done.now;
            let mut awaiting =
                questions::question(AwaitingKind::ApplyApproval, question.to_owned(), context, now);
            awaiting.flag = Some("require_approval_for_apply".to_owned());
            return done.ask(awaiting);
        }
        if gate.passes() {
            done.effect(Effect::RecordApproval { by_person: false }).queue(Phase::Apply)
        } else {
            done.ask_gate(AwaitingKind::ApplyApproval, Gate::AutoApply, gate, question)
        }
    }

    /// Back to Strategize with findings, without the work of Execute (T28, T41, T45).
    pub(super) fn revert(self) -> Self {
        let back = if self.status.phase == Phase::Strategize {
            self
        } else {
            self.effect(Effect::RollBackExecuteWork)
        };
        back.again().effect(Effect::HandOverFindings).effect(Effect::RestartActor)
    }

    /// Reverts by itself: counts against the cap.
    pub(super) fn revert_automatically(mut self) -> Self {
        self.status.reversions = self.status.reversions.saturating_add(1);
        self.revert().queue(Phase::Strategize)
    }

    /// Whether the machine may still revert by itself (GUARD-018).
    pub(super) fn may_revert(&self) -> bool {
        self.status.reversions < self.context.reversion_cap
    }
}
