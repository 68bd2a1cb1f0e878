//! A plan at work, on the screen: its phases, what its worker is at, and how much came of it so far.

use std::collections::BTreeSet;

use agents_domain::event::Event;
use agents_domain::plan::{Phase, State};
use agents_engine::operations::plan::StatusOutput;
use serde_json::Value;

use crate::output::human::counted;
use crate::output::{Mark, Output, ProgressHandle};

/// What is shown of a plan at work.
pub(super) struct Live {
    progress: ProgressHandle,
    phase: Phase,
    decisions: BTreeSet<String>,
    waiting: u64,
    files: BTreeSet<String>,
    checkpoints: u64,
    undone: u64,
}

impl Live {
    pub(super) fn new(out: &Output, standing: &StatusOutput) -> Self {
        let progress = out.progress(&format!("{} starts", title(standing.phase)));
        progress.total(0).outlives().steps(&["Strategize", "Execute", "Apply"]);
        let mut live = Self {
            progress,
            phase: standing.phase,
            decisions: BTreeSet::new(),
            waiting: 0,
            files: BTreeSet::new(),
            checkpoints: 0,
            undone: 0,
        };
        if let Some(activity) = &standing.activity {
            live.activity(&activity.label, activity.done, activity.total);
        }
        live.standing(standing);
        live
    }

    /// Where the plan stands now.
    pub(super) fn standing(&mut self, standing: &StatusOutput) {
        if self.phase != standing.phase {
            self.phase = standing.phase;
            self.decisions.clear();
            self.files.clear();
            (self.waiting, self.checkpoints, self.undone) = (0, 0, 0);
            self.activity(&format!("{} starts", title(standing.phase)), None, None);
        }
        for step in &standing.progress {
            self.progress.step(&step.step, mark(&step.status));
        }
    }

    /// Something happened.
    pub(super) fn event(&mut self, event: &Event) {
        let text = |key: &str| event.details.get(key).and_then(Value::as_str).unwrap_or_default();
        let number = |key: &str| event.details.get(key).and_then(Value::as_u64);
        match event.event_type.as_str() {
            "plan.progress" => return self.activity(text("label"), number("done"), number("total")),
            "decision.created" => {
                self.decisions.insert(text("decision_id").to_owned());
                self.waiting += u64::from(event.details.get("pending") == Some(&Value::Bool(true)));
            }
            "resource.modified" => {
                self.files.insert(text("sandbox_path").to_owned());
            }
            "checkpoint.created" => {
                let around = matches!(text("checkpoint_type"), "pre_write" | "post_step");
                self.checkpoints += u64::from(!around);
            }
            "sandbox.rolled_back" => self.undone += 1,
            _ => return,
        }
        self.progress.note(title(self.phase), self.note());
    }

    pub(super) fn waits_for_its_turn(&self) {
        self.activity(
            "Waits for its turn: as many plans are worked on as plan.concurrency allows",
            None,
            None,
        );
    }

    /// The plan paused or ended.
    pub(super) fn end(self, standing: &StatusOutput) {
        self.progress.total(0).label(match (standing.phase, standing.state) {
            _ if standing.awaiting.is_some() => match standing.state {
                State::Complete => format!("{} is complete", title(standing.phase)),
                _ => format!("{} waits for you", title(standing.phase)),
            },
            (_, State::Applied) => "Applied".to_owned(),
            (phase, State::Errored) => format!("{} failed", title(phase)),
            (_, State::Constrained) => "The changes do not fit any more".to_owned(),
            (_, State::Cancelled) => "Cancelled".to_owned(),
            (phase, _) => format!("{} is {}", title(phase), standing.state),
        });
        for step in &standing.progress {
            self.progress.step(&step.step, mark(&step.status));
        }
        match standing.state {
            State::Errored | State::Constrained | State::Cancelled => self.progress.failed(),
            State::Complete | State::Applied => &self.progress,
            State::Queued | State::Processing => self.progress.waits(),
        };
        self.progress.close();
    }

    fn activity(&self, label: &str, done: Option<u64>, total: Option<u64>) {
        self.progress.total(total.unwrap_or(0)).set(done.unwrap_or(0));
        if !label.is_empty() {
            self.progress.label(label);
        }
    }

    fn note(&self) -> String {
        let counts = [
            (self.decisions.len() as u64, "decision", "decisions"),
            (self.waiting, "waits for you", "wait for you"),
            (self.files.len() as u64, "file", "files"),
            (self.checkpoints, "checkpoint", "checkpoints"),
            (self.undone, "taken back", "taken back"),
        ];
        let counts = counts.into_iter().filter(|(n, ..)| *n > 0).map(|(n, one, many)| counted(n, one, many));
        counts.collect::<Vec<_>>().join(", ")
    }
}

/// A phase's name in the list of steps.
pub fn title(phase: Phase) -> &'static str {
    match phase {
        Phase::Strategize => "Strategize",
        Phase::Execute => "Execute",
        Phase::Apply => "Apply",
    }
}

/// The icon for a word of a plan's progress.
pub fn mark(word: &str) -> Mark {
    match word {
        "done" | "committed" => Mark::Done,
        "running" => Mark::Active,
        "paused" => Mark::Waiting,
        "failed" => Mark::Error,
        "skipped" => Mark::Skipped,
        _ => Mark::Pending,
    }
}
