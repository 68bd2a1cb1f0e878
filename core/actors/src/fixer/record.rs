//! The decisions of Execute: how a fix is applied, what was taken back, what is left to follow up.

use agents_domain::decision::{Alternative, DecisionType, ResourceRef};
use agents_domain::ids::ResourceId;
use agents_domain::ports::actor::DecisionDraft;
use agents_domain::text::Range;
use serde_json::json;

use super::confidence::{self, ApplyFacts};
use super::group::{PlannedGroup, PlannedOption};
use super::options::{Class, LEAVE_ALONE, match_answer};
use super::round::{Mode, Round};
use super::verify::Problem;
use super::{agree, count, the};
use crate::common::first_line;

/// Rounds of edits of a group at most.
pub(super) const MAX_ROUNDS: u32 = 5;

const ALL: &str = "Apply all of it";
const ONE_ROUND: &str = "Apply one round only";
const OWN_FILES: &str = "Apply only what stays in the findings' own files";

/// What the answer to the implementation choice means.
pub(super) enum How {
    /// Applied so.
    Apply(Mode),
    /// Not applied, and why.
    Leave(String),
}

/// What was chosen, by text, number or words.
pub(super) fn how(chosen: &str, options: &[String]) -> How {
    let text = match_answer(chosen, options).map(|index| options[index].as_str());
    match text {
        Some(ALL) => How::Apply(Mode::Fixpoint),
        Some(ONE_ROUND) => How::Apply(Mode::OneRound),
        Some(OWN_FILES) => How::Apply(Mode::OwnFiles),
        Some(_) => How::Leave("left alone when it was to be applied".to_owned()),
        None => How::Leave(format!("“{chosen}” names none of the ways to apply it")),
    }
}

/// How a group's option is applied.
pub(super) fn implementation(
    group: &PlannedGroup,
    option: &PlannedOption,
    round: &Round,
    without_baseline: usize,
) -> DecisionDraft {
    let (now, files) = (count(round.applied as usize, "finding"), count(round.touched().len(), "file"));
    let later = match round.waiting {
        0 => String::new(),
        n => {
            let later = agree(n as usize, "follows", "follow");
            format!(" {n} with overlapping edits {later} in later rounds, {MAX_ROUNDS} at most.")
        }
    };
    let alternative = |option: &str, description: String| Alternative {
        option: option.to_owned(),
        description: Some(description),
    };
    let mut alternatives =
        vec![alternative(ALL, format!("Edits {files} for {now} in the first round.{later}"))];
    if round.waiting > 0 {
        alternatives.push(alternative(ONE_ROUND, stay(round.waiting as usize, "with overlapping edits")));
    }
    if round.elsewhere > 0 {
        alternatives
            .push(alternative(OWN_FILES, stay(round.elsewhere as usize, "whose fix edits other files too")));
    }
    alternatives.push(alternative(LEAVE_ALONE, "Changes nothing; the findings stay.".to_owned()));
    let (found, edited) = (round.findings() as usize, round.applied as usize);
    let facts = ApplyFacts {
        deleting: if option.class == Class::Fix { round.deleting as usize } else { 0 },
        elsewhere: round.elsewhere as usize,
        decided: group.findings() as usize,
        found,
        without_baseline,
        waiting: round.waiting as usize,
    };
    let (confidence, factors) = confidence::of_applying(facts);
    let mut sentences = vec![format!(
        "“{}” was decided on. There {} {} now, and {edited} {} edited in the first round.",
        option.text,
        agree(found, "is", "are"),
        count(found, "finding"),
        agree(edited, "is", "are"),
    )];
    if round.waiting > 0 {
        let (wait, their) = agree(round.waiting as usize, ("waits", "its"), ("wait", "their"));
        sentences.push(format!("{} {wait} for a later round: {their} edits overlap.", round.waiting));
    }
    if round.without > 0 {
        let verb = agree(round.without as usize, "does", "do");
        sentences.push(format!("{} {verb} not offer it.", round.without));
    }
    if let Some((n, reason)) = &round.unanswered {
        sentences.push(format!("For {n} the server did not tell: {reason}."));
    }
    let facts: Vec<String> =
        factors.iter().map(|factor| format!("{:+.2} {}", factor.effect, factor.fact)).collect();
    sentences.push(format!("Confidence {confidence:.2}: {}.", facts.join("; ")));
    let resources = round.places.iter().map(|place| ResourceRef {
        resource_id: group.resource_id,
        path: place.path.clone(),
        range: Some(place.range),
        symbol: place.symbol.clone(),
        note: Some(place.message.clone()),
    });
    DecisionDraft {
        key: group.fix_key(),
        decision_type: DecisionType::ImplementationChoice,
        parent: Some(group.strategy_key()),
        question: format!(
            "How is “{}” applied to {} of {}?",
            option.text,
            the(found, "finding"),
            group.name()
        ),
        chosen: 0,
        alternatives,
        confidence: Some(confidence),
        rationale: sentences.join(" "),
        reasoning: None,
        resources: resources.collect(),
        depends_on: vec![group.strategy_key()],
        context: json!({
            "server": group.server,
            "rule": group.rule,
            "option": option.text,
            "edits": round.edits,
            "found": round.found,
            "applied": round.applied,
            "waiting": round.waiting,
            "without": round.without,
            "elsewhere": round.elsewhere,
            "deleting": round.deleting,
            "confidence": confidence,
            "factors": factors,
        }),
        spawn: None,
    }
}

fn stay(findings: usize, which: &str) -> String {
    let stay = agree(findings, "stays as it is", "stay as they are");
    format!("{} {which} {stay}.", count(findings, "finding"))
}

/// What went wrong with a group.
pub(super) enum Trouble<'a> {
    /// Its edits made this worse, and are taken back.
    Worse(&'a [Problem]),
    /// Its edits could not be applied.
    NotApplied(&'a str),
    /// Its edits made things worse and could not be taken back.
    NotUndone(&'a str),
}

/// What is done about a group that went wrong.
pub(super) fn recovery(group: &PlannedGroup, option: &PlannedOption, trouble: Trouble<'_>) -> DecisionDraft {
    let alternative = |option: &str, description: &str| Alternative {
        option: option.to_owned(),
        description: Some(description.to_owned()),
    };
    let fix = format!("“{}” for {}", option.text, group.name());
    let (question, alternatives, rationale) = match &trouble {
        Trouble::Worse(problems) => (
            format!(
                "The fix {fix} made it worse: {} ({}). What now?",
                count(problems.len(), "new error"),
                problems.first().map(Problem::line).unwrap_or_default()
            ),
            vec![
                alternative("Rolled back", "Every edit of this group is taken back; its findings stay."),
                alternative("Keep it", "The edits stay, with the new errors."),
            ],
            problems.iter().map(Problem::line).collect::<Vec<_>>().join("; "),
        ),
        Trouble::NotApplied(message) => (
            format!("The edits of {fix} could not be applied: {}. What now?", first_line(message)),
            vec![
                alternative("Leave the rest alone", "What was applied and checked before stays."),
                alternative("Try again", "The server is asked again for the same fix."),
            ],
            (*message).to_owned(),
        ),
        Trouble::NotUndone(message) => (
            format!(
                "The fix {fix} made it worse and could not be taken back: {}. What now?",
                first_line(message)
            ),
            vec![
                alternative("Keep it", "The edits stay, with the new errors, and the summary names them."),
                alternative("Roll the plan back", "A person restores the checkpoint before this group."),
            ],
            (*message).to_owned(),
        ),
    };
    let problems = match trouble {
        Trouble::Worse(problems) => problems,
        _ => &[],
    };
    DecisionDraft {
        key: format!("recovery/{}", group.id),
        decision_type: DecisionType::ErrorRecovery,
        parent: Some(group.fix_key()),
        question,
        chosen: 0,
        alternatives,
        confidence: Some(1.0),
        rationale,
        reasoning: None,
        resources: problems.iter().map(|problem| place(group.resource_id, problem)).collect(),
        depends_on: vec![group.fix_key()],
        context: json!({"server": group.server, "rule": group.rule, "option": option.text, "problems": problems}),
        spawn: None,
    }
}

/// New warnings that a kept fix brought.
pub(super) fn follow_up(group: &PlannedGroup, problems: &[Problem]) -> DecisionDraft {
    let alternative = |option: &str, description: &str| Alternative {
        option: option.to_owned(),
        description: Some(description.to_owned()),
    };
    let lines: Vec<String> = problems.iter().map(Problem::line).collect();
    DecisionDraft {
        key: format!("follow-up/{}", group.id),
        decision_type: DecisionType::ImplementationChoice,
        parent: Some(group.fix_key()),
        question: format!(
            "Follow-up: what should be done about {} that the fix of {} brought ({})?",
            count(problems.len(), "new finding"),
            group.name(),
            lines.first().map(String::as_str).unwrap_or_default()
        ),
        chosen: 0,
        alternatives: vec![
            alternative(
                LEAVE_ALONE,
                "They are no errors; the fix is kept and they are named in the summary.",
            ),
            alternative("Fix them in another plan", "This plan leaves them; another one looks at them anew."),
        ],
        confidence: Some(1.0),
        rationale: format!("None of them is an error, so the fix is kept: {}.", lines.join("; ")),
        reasoning: None,
        resources: problems.iter().map(|problem| place(group.resource_id, problem)).collect(),
        depends_on: vec![group.fix_key()],
        context: json!({"server": group.server, "rule": group.rule, "problems": problems}),
        spawn: None,
    }
}

fn place(resource_id: ResourceId, problem: &Problem) -> ResourceRef {
    let line = problem.line.checked_sub(1);
    ResourceRef {
        resource_id,
        path: problem.path.clone(),
        range: line.map(|line| Range::new((line, 0), (line, 0))),
        symbol: None,
        note: Some(problem.message.clone()),
    }
}
