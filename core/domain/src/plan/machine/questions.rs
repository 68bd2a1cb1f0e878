//! What a paused plan asks, what can be answered, and where each question may stand.

use super::{Context, Status};
use crate::Timestamp;
use crate::plan::gates::{GateOutcome, NEUTRAL_CONFIDENCE, phase_gate};
use crate::plan::{Awaiting, AwaitingKind, Phase, State};
use crate::profile::Gate;

/// What a person said with `plan prompt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// One of the options, by its 0-based index.
    Option(usize),
    /// Their own words.
    Words,
}

impl Answer {
    /// Reads an answer: the 1-based number or the text of an option, else their own words.
    ///
    /// A number that is no option is read as an option too, so that it is refused instead of taken for guidance.
    pub fn parse(text: &str, awaiting: Option<&Awaiting>) -> Self {
        let text = text.trim();
        let Some(awaiting) = awaiting.filter(|a| !a.options.is_empty()) else { return Self::Words };
        let same = |option: &String| option.trim().to_lowercase() == text.to_lowercase();
        if let Some(index) = awaiting.options.iter().position(same) {
            return Self::Option(index);
        }
        match text.parse::<usize>() {
            Ok(number) => Self::Option(number.wrapping_sub(1)),
            Err(_) => Self::Words,
        }
    }
}

/// What the options of the machine's own questions do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    Start,
    Execute,
    Apply,
    Retry,
    Restore,
    Fix,
    Revise,
    Continue,
    Skip,
    Cancel,
}

impl Choice {
    const ALL: [Choice; 10] = [
        Self::Start,
        Self::Execute,
        Self::Apply,
        Self::Retry,
        Self::Restore,
        Self::Fix,
        Self::Revise,
        Self::Continue,
        Self::Skip,
        Self::Cancel,
    ];

    fn text(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Execute => "execute",
            Self::Apply => "apply",
            Self::Retry => "retry",
            Self::Restore => "restore",
            Self::Fix => "fix",
            Self::Revise => "revise",
            Self::Continue => "continue",
            Self::Skip => "skip",
            Self::Cancel => "cancel",
        }
    }

    /// The choice behind an option's text.
    pub(super) fn of(option: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.text() == option)
    }
}

/// The options of a question the machine asks itself; `None` where a decision or an actor brings its own.
fn choices(kind: AwaitingKind, context: &Context) -> Option<&'static [Choice]> {
    Some(match kind {
        AwaitingKind::ConfirmStrategize => &[Choice::Start, Choice::Cancel],
        AwaitingKind::ExecuteApproval => &[Choice::Execute, Choice::Cancel],
        AwaitingKind::Spawn => &[Choice::Start, Choice::Skip, Choice::Cancel],
        AwaitingKind::Retry => &[Choice::Retry, Choice::Cancel],
        AwaitingKind::Restore => &[Choice::Restore, Choice::Cancel],
        AwaitingKind::ValidationFix => &[Choice::Fix, Choice::Revise, Choice::Cancel],
        AwaitingKind::StrategyRevision => &[Choice::Revise, Choice::Retry, Choice::Cancel],
        AwaitingKind::ApplyApproval if context.required_validation_failed => {
            &[Choice::Execute, Choice::Cancel]
        }
        AwaitingKind::ApplyApproval => &[Choice::Apply, Choice::Cancel],
        AwaitingKind::Reversion if context.committed => &[Choice::Apply, Choice::Cancel],
        AwaitingKind::Reversion => &[Choice::Revise, Choice::Apply, Choice::Cancel],
        AwaitingKind::Rollback | AwaitingKind::Budget | AwaitingKind::ChildPlan => {
            &[Choice::Continue, Choice::Cancel]
        }
        AwaitingKind::Decision | AwaitingKind::LanguageServer | AwaitingKind::Recovery => return None,
    })
}

/// A question of the machine with its options.
pub(super) fn question(kind: AwaitingKind, question: String, context: &Context, now: Timestamp) -> Awaiting {
    let options = choices(kind, context).unwrap_or(&[]);
    Awaiting {
        kind,
        decision_id: None,
        question,
        options: options.iter().map(|c| c.text().to_owned()).collect(),
        flag: None,
        threshold: None,
        confidence: None,
        since: now,
    }
}

/// What an actor asks; where the machine has options for that kind, those are the options.
pub(super) fn of_actor(asked: &Awaiting, context: &Context, now: Timestamp) -> Awaiting {
    let own = question(asked.kind, asked.question.clone(), context, now);
    let options = if choices(asked.kind, context).is_some() { own.options } else { asked.options.clone() };
    Awaiting { options, since: now, ..asked.clone() }
}

impl Awaiting {
    /// Adds the flag, threshold and confidence of the gate that asks.
    pub(super) fn gated(mut self, gate: Gate, outcome: GateOutcome) -> Self {
        self.flag = Some(gate.flag().to_owned());
        if let GateOutcome::Ask { threshold, confidence, .. } = outcome {
            self.threshold = Some(threshold);
            self.confidence = Some(confidence);
        }
        self
    }
}

/// Whether a new plan asks before Strategize (T06).
pub(super) fn confirm_strategize(context: &Context, now: Timestamp) -> Option<Awaiting> {
    if context.child {
        // Whether it starts was asked when it was spawned.
        return None;
    }
    let gate = Gate::AutoStrategize;
    let outcome = phase_gate(&context.thresholds, gate, context.confidence.unwrap_or(NEUTRAL_CONFIDENCE));
    (!outcome.passes()).then(|| {
        question(AwaitingKind::ConfirmStrategize, "Start Strategize?".to_owned(), context, now)
            .gated(gate, outcome)
    })
}

/// Where a plan may wait for what.
pub fn awaiting_fits(phase: Phase, state: State, kind: AwaitingKind) -> bool {
    use AwaitingKind as K;
    match (phase, state) {
        (Phase::Strategize, State::Queued) => kind == K::ConfirmStrategize,
        (Phase::Strategize, State::Complete) => kind == K::ExecuteApproval,
        (Phase::Strategize, State::Processing) => {
            matches!(kind, K::Decision | K::Retry | K::Budget | K::LanguageServer | K::Recovery)
        }
        (Phase::Execute, State::Queued) => kind == K::Rollback,
        (Phase::Execute, State::Complete) => kind == K::ApplyApproval,
        (Phase::Execute, State::Processing) => matches!(
            kind,
            K::Decision
                | K::Spawn
                | K::Retry
                | K::Restore
                | K::ValidationFix
                | K::StrategyRevision
                | K::Budget
                | K::LanguageServer
                | K::Recovery
                | K::ChildPlan
        ),
        (Phase::Apply, State::Constrained) => kind == K::Reversion,
        _ => false,
    }
}

impl Status {
    /// Whether the machine can be here at all: a state of the phase, and a question that may stand there.
    pub fn is_legal(&self) -> bool {
        let state = match self.phase {
            Phase::Strategize | Phase::Execute => !matches!(self.state, State::Applied | State::Constrained),
            Phase::Apply => self.state != State::Complete,
        };
        let waits = match self.awaiting_kind() {
            Some(kind) => awaiting_fits(self.phase, self.state, kind),
            // These are left by themselves at once; a plan that stays in them waits for a person, or, as a child that
            // has done its work, for its parent.
            None => match self.state {
                State::Complete => self.phase == Phase::Execute,
                state => state != State::Constrained,
            },
        };
        state && waits && self.attempt >= 1
    }
}
