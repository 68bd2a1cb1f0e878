//! What a plan knows of its validations: the last outcome of each, what is to be run again, and the fixes tried.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Attachment, Finding, Mode, Verdict};
use crate::ids::{AttachmentId, ResourceId};
use crate::plan::Plan;
use crate::{QualifiedName, Timestamp};

/// What came of the latest run of an attachment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ValidationOutcome {
    /// The validation.
    pub validation: QualifiedName,
    /// What a failure means.
    pub mode: Mode,
    /// Whether it holds.
    pub passed: bool,
    /// For people.
    pub message: String,
    /// More, per validation.
    pub data: Map<String, Value>,
    /// The places it points at.
    pub findings: Vec<Finding>,
    /// It could not be run to its end.
    pub error: bool,
    /// How long the run took.
    pub duration_ms: u64,
    /// Which run of it this was, from 1.
    pub attempt: u32,
    /// The attachment.
    pub attachment_id: AttachmentId,
    /// The resource that was looked at.
    pub attachment_resource: ResourceId,
    /// `direct`, `project` or `plan`.
    pub attachment_scope: String,
    /// The project or plan.
    pub attachment_scope_target: Option<String>,
    /// Fixes that were tried for it.
    pub fixes: u32,
    /// The commit of each sandbox it was run on.
    pub commits: Vec<(ResourceId, String)>,
    /// The attempt of the plan it was run in.
    pub plan_attempt: u32,
    /// When it ended.
    pub finished_at: Timestamp,
    /// It was run again on the very files of the run before, and did not pass again.
    #[serde(default)]
    pub unchanged: bool,
    /// The actor is to fix it before it is run again.
    #[serde(default)]
    pub to_fix: bool,
    /// It is to be run again whatever it says.
    #[serde(default)]
    pub due: bool,
}

impl ValidationOutcome {
    /// It stands in the way of Apply.
    pub fn blocks(&self) -> bool {
        self.mode == Mode::Required && !self.passed
    }

    /// `run-tests` of `local/run-tests`.
    pub fn short_name(&self) -> &str {
        self.validation.name()
    }

    /// One line per finding, or the message where there is none.
    pub fn failures(&self) -> Vec<String> {
        if self.passed {
            return Vec::new();
        }
        if self.findings.is_empty() {
            return vec![self.message.clone()];
        }
        self.findings.iter().map(Finding::line_text).collect()
    }
}

/// A fix that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FixAttempt {
    /// The validation.
    pub validation: QualifiedName,
    /// Its attachment.
    pub attachment_id: AttachmentId,
    /// Which fix of it this was, from 1.
    pub attempt: u32,
    /// What it said before.
    pub message: String,
    /// The attempt of the plan.
    pub plan_attempt: u32,
    /// What came of it; unknown until it was run again.
    pub succeeded: Option<bool>,
}

/// The validations of a plan.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanValidations {
    /// The latest outcome of each, in the order they are run.
    pub outcomes: Vec<ValidationOutcome>,
    /// The fixes that were tried, oldest first; kept over attempts of the plan.
    pub fixes: Vec<FixAttempt>,
    /// What the language servers said before the first edit, as a blob.
    pub baseline_ref: Option<String>,
}

impl PlanValidations {
    /// The required ones that did not pass.
    pub fn blocking(&self) -> impl Iterator<Item = &ValidationOutcome> {
        self.outcomes.iter().filter(|o| o.blocks())
    }

    /// Whether a required one did not pass.
    pub fn blocked(&self) -> bool {
        self.blocking().next().is_some()
    }

    /// The outcome of an attachment.
    pub fn of(&self, attachment: AttachmentId) -> Option<&ValidationOutcome> {
        self.outcomes.iter().find(|o| o.attachment_id == attachment)
    }

    /// Whether every run of a validation passed; `None` when it was not run.
    pub fn passed(&self, validation: &QualifiedName) -> Option<bool> {
        let mut runs = self.outcomes.iter().filter(|o| o.validation == *validation).peekable();
        runs.peek()?;
        Some(runs.all(|o| o.passed))
    }

    /// By validation: whether every run of it passed.
    pub fn results(&self) -> BTreeMap<String, bool> {
        let names = self.outcomes.iter().map(|o| &o.validation);
        names.filter_map(|name| Some((name.to_string(), self.passed(name)?))).collect()
    }

    /// `2/3 passed`.
    pub fn counted(&self) -> String {
        let passed = self.outcomes.iter().filter(|o| o.passed).count();
        format!("{passed}/{} passed", self.outcomes.len())
    }

    /// The fixes tried so far of the failing required one that had most.
    pub fn fixes_tried(&self) -> u32 {
        self.blocking().map(|o| o.fixes).max().unwrap_or(0)
    }

    /// What stands in the way, in one sentence.
    pub fn failure_message(&self) -> String {
        let failing: Vec<&ValidationOutcome> = self.blocking().collect();
        match failing[..] {
            [] => "every required validation passed".to_owned(),
            [one] => format!("validation {} did not pass: {}", one.validation, first_line(&one.message)),
            _ => {
                let names: Vec<String> = failing.iter().map(|o| o.validation.to_string()).collect();
                format!("{} validations did not pass: {}", failing.len(), names.join(", "))
            }
        }
    }

    /// The actor shall fix what stands in the way; those validations are run again after it.
    pub(crate) fn ask_for_fix(&mut self, plan_attempt: u32) {
        for outcome in self.outcomes.iter_mut().filter(|o| o.blocks()) {
            outcome.fixes += 1;
            outcome.to_fix = true;
            outcome.due = true;
            self.fixes.push(FixAttempt {
                validation: outcome.validation.clone(),
                attachment_id: outcome.attachment_id,
                attempt: outcome.fixes,
                message: outcome.message.clone(),
                plan_attempt,
                succeeded: None,
            });
        }
    }

    /// What stands in the way is run again, without a fix.
    pub(crate) fn run_again(&mut self) {
        self.outcomes.iter_mut().filter(|o| o.blocks()).for_each(|o| o.due = true);
    }

    /// The work is done anew: nothing that was found counts any more.
    pub(crate) fn start_over(&mut self) {
        self.outcomes.clear();
        self.baseline_ref = None;
    }

    /// Whether the actor is to be asked for fixes.
    pub fn wants_fix(&self) -> bool {
        self.outcomes.iter().any(|o| o.to_fix)
    }

    /// The actor gets what is to be fixed with its next step.
    pub fn handed_over(&mut self) {
        self.outcomes.iter_mut().for_each(|o| o.to_fix = false);
    }

    /// What the actor is working on: failed, and to be run again after it.
    pub fn being_fixed(&self) -> impl Iterator<Item = &ValidationOutcome> {
        self.outcomes.iter().filter(|o| o.due && o.fixes > 0 && o.blocks())
    }

    /// Takes in what a run said.
    pub fn record(&mut self, plan: &Plan, attachment: &Attachment, mode: Mode, run: Run) {
        let before = self.of(attachment.attachment_id);
        let (attempt, fixes) = before.map_or((1, 0), |o| {
            // Fixes are counted within one attempt of the plan.
            (o.attempt + 1, if o.plan_attempt == plan.attempt { o.fixes } else { 0 })
        });
        let unchanged = !run.verdict.passed
            && before
                .is_some_and(|o| o.fixes > 0 && o.plan_attempt == plan.attempt && o.commits == commits(plan));
        let pending =
            |f: &&mut FixAttempt| f.attachment_id == attachment.attachment_id && f.succeeded.is_none();
        self.fixes.iter_mut().filter(pending).for_each(|f| f.succeeded = Some(run.verdict.passed));
        let Verdict { passed, message, data, findings, error } = run.verdict;
        let outcome = ValidationOutcome {
            validation: attachment.validation.clone(),
            mode,
            passed,
            message,
            data,
            findings,
            error,
            duration_ms: run.duration_ms,
            attempt,
            attachment_id: attachment.attachment_id,
            attachment_resource: attachment.resource_id,
            attachment_scope: attachment.scope.word().to_owned(),
            attachment_scope_target: attachment.scope.target(),
            fixes,
            commits: commits(plan),
            plan_attempt: plan.attempt,
            finished_at: run.finished_at,
            unchanged,
            to_fix: false,
            due: false,
        };
        match self.outcomes.iter_mut().find(|o| o.attachment_id == attachment.attachment_id) {
            Some(place) => *place = outcome,
            None => self.outcomes.push(outcome),
        }
    }

    /// Which of the attachments are to be run now, of those that apply.
    ///
    /// First what was never run in this attempt of the plan, failed and is due. When nothing of that is left and
    /// nothing stands in the way, what passed on an earlier state of the sandboxes is run once more, so that
    /// everything that passed did so on the work that is applied.
    pub fn to_run(&self, plan: &Plan, attachments: &[&Attachment]) -> Vec<AttachmentId> {
        let here = commits(plan);
        let pick = |wanted: &dyn Fn(Option<&ValidationOutcome>) -> bool| -> Vec<AttachmentId> {
            let ids = attachments.iter().map(|a| a.attachment_id);
            ids.filter(|id| wanted(self.of(*id))).collect()
        };
        let due = pick(&|known| known.is_none_or(|o| o.due || o.plan_attempt != plan.attempt));
        if !due.is_empty() || self.blocked() {
            return due;
        }
        pick(&|known| known.is_some_and(|o| o.commits != here))
    }

    /// Forgets outcomes of attachments that do not apply any more, and puts the rest into their order.
    pub fn keep(&mut self, attachments: &[&Attachment]) {
        let place = |id: AttachmentId| attachments.iter().position(|a| a.attachment_id == id);
        self.outcomes.retain(|o| place(o.attachment_id).is_some());
        self.outcomes.sort_by_key(|o| place(o.attachment_id));
    }
}

/// A run of a validation.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// What it says.
    pub verdict: Verdict,
    /// How long it took.
    pub duration_ms: u64,
    /// When it ended.
    pub finished_at: Timestamp,
}

fn commits(plan: &Plan) -> Vec<(ResourceId, String)> {
    plan.sandboxes.iter().map(|s| (s.resource_id, s.commit.clone())).collect()
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
