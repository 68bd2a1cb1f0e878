//! The strategy: what would be taken back, and what stands in the way.

use agents_domain::decision::{DecisionType, ResourceRef};
use agents_domain::ids::PlanId;
use agents_domain::plan::PhaseSummary;
use agents_domain::ports::actor::{
    ActorFailure, ActorHost, DecisionDraft, KnownDecision, Request, StepInput, StepOutput,
};
use agents_domain::text::Range;
use agents_domain::words::{agree, count};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::reverse::{Files, Reversal, reverse};
use super::undoing::{self, Span, Unit, name};
use crate::common::{
    MAX_LINES, alternative, ask_for, clamp, cut, decided, done, from_state, root_key, standing,
};
use crate::fixer::{LEAVE_ALONE, match_answer};

/// Decisions that a plan takes back at most.
const MAX_UNITS: usize = 200;

pub(super) const KEEP: &str = "Keep today's lines and take back the rest";
pub(super) const RESTORE: &str = "Put back what was there before";

/// What Execute gets, and what Strategize waits with for its decisions.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Handover {
    /// The plan that is taken back.
    pub plan_id: PlanId,
    /// Its writes, newest first.
    pub units: Vec<Unit>,
    /// What people should know beyond the decisions.
    pub notes: Vec<String>,
}

/// What would become of a unit's files.
#[derive(Default)]
struct Foreseen<'u> {
    clean: Vec<(&'u Span, bool)>,
    conflicts: Vec<(&'u Span, Conflict)>,
    /// Files that stay as they are, with the reason.
    left: Vec<(&'u Span, String)>,
}

struct Conflict {
    why: String,
    lines: Vec<std::ops::Range<usize>>,
    keeps_something: bool,
}

pub(super) fn step(input: &StepInput, host: &dyn ActorHost) -> Result<StepOutput, ActorFailure> {
    if input.state != Value::Null {
        return finish(from_state(&input.state)?, input);
    }
    let named = undoing::plan_argument(input.arguments.get("plan"))?;
    let decisions = undoing::decisions_argument(input.arguments.get("decisions"))?;
    let recorded = host.recorded(&named)?;
    undoing::check_applied(&recorded)?;
    let mut units = undoing::units(&recorded, &undoing::selected(&recorded, &decisions)?);
    let mut notes = Vec::new();
    if units.len() > MAX_UNITS {
        let more = count(units.len() - MAX_UNITS, "older decision");
        notes.push(format!(
            "{more} of the plan stay: a plan takes back at most {MAX_UNITS}; make another one after it"
        ));
        units.truncate(MAX_UNITS);
    }
    let mut files = Files::new(host);
    let mut requests = Vec::new();
    let mut kept = Vec::new();
    for unit in units {
        let mut foreseen = Foreseen::default();
        for span in &unit.spans {
            match reverse(&mut files, span, input.read_only, &input.invariants)? {
                Reversal::Nothing(why) => foreseen.left.push((span, why.to_owned())),
                Reversal::Refused(why) => foreseen.left.push((span, why)),
                Reversal::Clean { edits, moved_on } => {
                    files.foresee(span.resource_id, &edits)?;
                    foreseen.clean.push((span, moved_on));
                }
                Reversal::Conflict { why, lines, keep, .. } => {
                    files.foresee(span.resource_id, &keep)?;
                    let conflict = Conflict { why, lines, keeps_something: !keep.is_empty() };
                    foreseen.conflicts.push((span, conflict));
                }
            }
        }
        if foreseen.clean.is_empty() && foreseen.conflicts.is_empty() {
            let left: Vec<String> =
                foreseen.left.iter().map(|(span, why)| format!("{}: {why}", span.path)).collect();
            notes.push(format!("Nothing to do for {}: {}", name(&unit, recorded.plan_id), left.join("; ")));
            continue;
        }
        requests.push(Request::RecordDecision(whether(&unit, &foreseen, recorded.plan_id, input)));
        for (span, conflict) in &foreseen.conflicts {
            requests.push(Request::RecordDecision(about_conflict(&unit, span, conflict, recorded.plan_id)));
        }
        notes.extend(foreseen.left.iter().map(|(span, why)| format!("{} stays as it is: {why}", span.path)));
        kept.push(unit);
    }
    cut(&mut notes, "notes");
    let handover = Handover { plan_id: recorded.plan_id, units: kept, notes };
    if requests.is_empty() {
        return finish(handover, input);
    }
    ask_for(&handover, requests)
}

/// The decision on whether a decision's changes are taken back.
fn whether(unit: &Unit, foreseen: &Foreseen<'_>, plan: PlanId, input: &StepInput) -> DecisionDraft {
    let moved_on = foreseen.clean.iter().filter(|(_, moved_on)| *moved_on).count();
    let as_left = foreseen.clean.len() - moved_on;
    let conflicts = foreseen.conflicts.len();
    let mut sentences = Vec::new();
    if as_left > 0 {
        let verb = agree(as_left, "is", "are");
        sentences.push(format!(
            "{} {verb} as the plan left {}.",
            count(as_left, "file"),
            agree(as_left, "it", "them")
        ));
    }
    if moved_on > 0 {
        let was = agree(moved_on, "was", "were");
        sentences
            .push(format!("{} {was} changed elsewhere since; those changes stay.", count(moved_on, "file")));
    }
    if conflicts > 0 {
        let was = agree(conflicts, "was", "were");
        sentences.push(format!(
            "{} {was} changed in the same lines since: that is decided file by file.",
            count(conflicts, "file")
        ));
    }
    if !foreseen.left.is_empty() {
        let left: Vec<String> =
            foreseen.left.iter().map(|(span, why)| format!("{} ({why})", span.path)).collect();
        sentences.push(format!("Not touched: {}.", left.join(", ")));
    }
    let confidence = if moved_on + conflicts > 0 { 0.9 } else { 0.97 };
    let files = foreseen.clean.len() + conflicts;
    let touched =
        foreseen.clean.iter().map(|(span, _)| *span).chain(foreseen.conflicts.iter().map(|(span, _)| *span));
    DecisionDraft {
        key: unit.key(),
        decision_type: DecisionType::StrategyChoice,
        parent: None,
        question: format!(
            "Should “{}” be taken back in {}? ({})",
            unit.what,
            count(files, "file"),
            name(unit, plan),
        ),
        chosen: 0,
        alternatives: vec![
            alternative(
                &format!("Take back: {}", unit.what),
                "The files become what they would be without it; what was changed since stays.",
            ),
            alternative(LEAVE_ALONE, "Changes nothing; what the decision did stays."),
        ],
        confidence: Some(confidence),
        rationale: sentences.join(" "),
        reasoning: None,
        resources: touched.map(|span| place(span, None, None)).collect(),
        depends_on: root_key(input).into_iter().collect(),
        context: json!({
            "plan": plan, "decision": unit.decision_id, "spans": unit.spans,
            "as_left": as_left, "moved_on": moved_on, "conflicts": conflicts,
            "left": foreseen.left.iter().map(|(span, why)| json!({"path": span.path, "why": why})).collect::<Vec<_>>(),
        }),
        spawn: None,
    }
}

/// The decision on a file whose lines were changed since.
fn about_conflict(unit: &Unit, span: &Span, conflict: &Conflict, plan: PlanId) -> DecisionDraft {
    let mut alternatives = vec![
        alternative(
            RESTORE,
            "What was made of it since is lost in these places (it stays in the version control).",
        ),
        alternative(LEAVE_ALONE, "This file stays as it is today."),
    ];
    let mut chosen = 1;
    if conflict.keeps_something {
        let keep = alternative(KEEP, "Only what was not changed since is taken back in this file.");
        alternatives.insert(0, keep);
        chosen = 0;
    }
    let lines: Vec<String> = conflict.lines.iter().map(line_text).collect();
    let at = if lines.is_empty() { String::new() } else { format!(" ({})", lines.join(", ")) };
    let first = conflict.lines.first();
    DecisionDraft {
        key: unit.conflict_key(span),
        decision_type: DecisionType::StrategyChoice,
        parent: Some(unit.key()),
        question: format!("What becomes of {}{at}: {}?", span.path, conflict.why),
        chosen,
        alternatives,
        confidence: Some(0.4),
        rationale: format!(
            "Taking back {} would undo later work in {}; which of the two is wanted cannot be told from the files. \
             Proposed is what loses nothing of the later work.",
            name(unit, plan),
            span.path
        ),
        reasoning: None,
        resources: vec![place(span, first, Some(conflict.why.clone()))],
        depends_on: vec![unit.key()],
        context: json!({ "plan": plan, "decision": unit.decision_id, "span": span, "lines": lines, "why": conflict.why }),
        spawn: None,
    }
}

/// `line 3`, `lines 3-5`; of lines that are gone where they were.
fn line_text(range: &std::ops::Range<usize>) -> String {
    match range.len() {
        0 | 1 => format!("line {}", range.start + 1),
        _ => format!("lines {}-{}", range.start + 1, range.end),
    }
}

fn place(span: &Span, lines: Option<&std::ops::Range<usize>>, note: Option<String>) -> ResourceRef {
    ResourceRef {
        resource_id: span.resource_id,
        path: span.path.clone(),
        range: lines.map(|lines| Range::new((clamp(lines.start), 0), (clamp(lines.end), 0))),
        symbol: None,
        note,
    }
}

/// What stands for a unit.
pub(super) enum Standing {
    TakeBack,
    /// Left alone, and why.
    Leave(String),
}

/// What was decided about a unit.
pub(super) fn of_unit(unit: &Unit, decisions: &[KnownDecision]) -> Standing {
    let Some(decision) = decided(decisions, &unit.key()) else {
        return Standing::Leave("no decision stands".to_owned());
    };
    match match_answer(&decision.chosen_option, &decision.options) {
        Some(0) => Standing::TakeBack,
        Some(_) => Standing::Leave("left alone by choice".to_owned()),
        None => Standing::Leave(format!("“{}” names none of its options", decision.chosen_option)),
    }
}

fn finish(handover: Handover, input: &StepInput) -> Result<StepOutput, ActorFailure> {
    let decisions = standing(input)?;
    let mut lines = Vec::new();
    let (mut back, mut files) = (0, 0);
    for unit in &handover.units {
        let what = format!("“{}” ({})", unit.what, name(unit, handover.plan_id));
        match of_unit(unit, &decisions) {
            Standing::TakeBack => {
                back += 1;
                files += unit.spans.len();
                lines.push(format!("To be taken back: {what} in {}", count(unit.spans.len(), "file")));
            }
            Standing::Leave(why) => lines.push(format!("Stays: {what}: {why}")),
        }
    }
    cut(&mut lines, "decisions");
    lines.extend(handover.notes.iter().take(MAX_LINES).cloned());
    let headline = match (back, handover.units.len()) {
        (_, 0) => format!("Nothing of plan {} is left to take back", handover.plan_id),
        (0, n) => format!("All of {} stay as they are", count(n, "decision")),
        (back, _) => format!("{} to be taken back in {}", count(back, "decision"), count(files, "file")),
    };
    let facts = json!({ "plan": handover.plan_id, "decisions": handover.units.len(), "to_take_back": back });
    done(&handover, PhaseSummary { headline, lines, facts })
}
