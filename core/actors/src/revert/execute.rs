//! Doing it: decision by decision, newest first, each merged with the files as they are then.

use std::collections::BTreeMap;

use agents_domain::decision::{DecisionType, ResourceRef};
use agents_domain::ids::ResourceId;
use agents_domain::plan::PhaseSummary;
use agents_domain::ports::actor::{
    ActorFailure, ActorHost, DecisionDraft, Progress, Request, StepInput, StepOutput,
};
use agents_domain::text::FileEdit;
use agents_domain::words::count;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::reverse::{Files, Reversal, reverse};
use super::strategize::{Handover, KEEP, RESTORE, Standing, of_unit};
use super::undoing::{Unit, name};
use crate::common::{
    alternative, apply_edits, ask_for, clamp, cut, decided, done, first_line, from_state, refused, touched,
};
use crate::fixer::{LEAVE_ALONE, match_answer};

const MERGE: &str = "Merge it out of the files as they are today";

/// Where Execute is.
#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    /// Units done.
    cursor: usize,
    /// The unit at the cursor is being written, in so many files.
    writing: Option<usize>,
    taken_back: usize,
    files: usize,
    lines: Vec<String>,
}

pub(super) fn step(input: &StepInput, host: &dyn ActorHost) -> Result<StepOutput, ActorFailure> {
    let handover: Handover = from_state(&input.handover)?;
    let mut state: State = match &input.state {
        Value::Null => State::default(),
        state => from_state(state)?,
    };
    if let (Some(files), Some(unit)) = (state.writing.take(), handover.units.get(state.cursor)) {
        let what = told(unit, &handover);
        match refused(input) {
            None => {
                state.taken_back += 1;
                state.files += files;
                state.lines.push(format!("Taken back: {what} in {}", count(files, "file")));
            }
            Some(why) => state.lines.push(format!("Not taken back: {what}: {}", first_line(&why))),
        }
        state.cursor += 1;
    }
    while let Some(unit) = handover.units.get(state.cursor) {
        let total = Some(clamp(handover.units.len()));
        let label = format!("Taking back {}", name(unit, handover.plan_id));
        let progress = Progress { label, done: clamp(state.cursor), total };
        if let Some(requests) = take_back(input, host, &handover, unit, &mut state)? {
            return Ok(StepOutput { progress: Some(progress), ..ask_for(&state, requests)? });
        }
        state.cursor += 1;
    }
    finish(&handover, state)
}

/// How a unit is called in the summary.
fn told(unit: &Unit, handover: &Handover) -> String {
    format!("“{}” ({})", unit.what, name(unit, handover.plan_id))
}

/// What takes a unit back now; `None` when that is nothing, which is said in the state's lines.
fn take_back(
    input: &StepInput,
    host: &dyn ActorHost,
    handover: &Handover,
    unit: &Unit,
    state: &mut State,
) -> Result<Option<Vec<Request>>, ActorFailure> {
    let what = told(unit, handover);
    if let Standing::Leave(why) = of_unit(unit, &input.decisions) {
        state.lines.push(format!("Stays: {what}: {why}"));
        return Ok(None);
    }
    let mut files = Files::new(host);
    let mut edits: BTreeMap<ResourceId, Vec<FileEdit>> = BTreeMap::new();
    let mut depends_on = vec![unit.key()];
    let mut left = Vec::new();
    for span in &unit.spans {
        let found = match reverse(&mut files, span, input.read_only, &input.invariants)? {
            Reversal::Nothing(why) => Err(why.to_owned()),
            Reversal::Refused(why) => Err(why),
            Reversal::Clean { edits, .. } => Ok(edits),
            Reversal::Conflict { why, keep, restore, .. } => {
                let key = unit.conflict_key(span);
                let decision = decided(&input.decisions, &key);
                depends_on.extend(decision.map(|_| key));
                let option = decision
                    .and_then(|d| Some(d.options[match_answer(&d.chosen_option, &d.options)?].as_str()));
                match option {
                    Some(KEEP) => Ok(keep),
                    Some(RESTORE) => Ok(restore),
                    Some(_) | None => Err(format!("left alone: {why}")),
                }
            }
        };
        match found {
            Ok(new) if new.is_empty() => left.push(format!("{} (nothing to do)", span.path)),
            Ok(new) => {
                files.foresee(span.resource_id, &new)?;
                edits.entry(span.resource_id).or_default().extend(new);
            }
            Err(why) => left.push(format!("{} ({why})", span.path)),
        }
    }
    if !left.is_empty() {
        state.lines.push(format!("Not touched for {what}: {}", left.join(", ")));
    }
    if edits.is_empty() {
        return Ok(None);
    }
    let draft = merging(unit, handover, &edits, depends_on);
    let key = draft.key.clone();
    state.writing = Some(edits.values().map(|edits| touched(edits).len()).sum());
    let writes = edits.iter().map(|(resource, edits)| apply_edits(&key, *resource, edits));
    Ok(Some(std::iter::once(Request::RecordDecision(draft)).chain(writes).collect()))
}

/// The decision behind the lines that are written: it says what they take back.
fn merging(
    unit: &Unit,
    handover: &Handover,
    edits: &BTreeMap<ResourceId, Vec<FileEdit>>,
    depends_on: Vec<String>,
) -> DecisionDraft {
    let what = name(unit, handover.plan_id);
    let paths: Vec<(ResourceId, String)> = edits
        .iter()
        .flat_map(|(resource, edits)| touched(edits).into_iter().map(|path| (*resource, path)))
        .collect();
    DecisionDraft {
        key: unit.merge_key(),
        decision_type: DecisionType::ImplementationChoice,
        parent: Some(unit.key()),
        question: format!("How is {what} taken back in {}?", count(paths.len(), "file")),
        chosen: 0,
        alternatives: vec![
            alternative(MERGE, "A reverse three-way merge: what was changed elsewhere in the files stays."),
            alternative(LEAVE_ALONE, "Changes nothing after all."),
        ],
        confidence: Some(0.97),
        rationale: format!(
            "It takes back what {what} did (“{}”); what was changed elsewhere in the files since stays",
            unit.what
        ),
        reasoning: None,
        resources: paths
            .into_iter()
            .map(|(resource_id, path)| ResourceRef {
                resource_id,
                path,
                range: None,
                symbol: None,
                note: None,
            })
            .collect(),
        depends_on,
        context: json!({ "plan": handover.plan_id, "decision": unit.decision_id, "spans": unit.spans }),
        spawn: None,
    }
}

fn finish(handover: &Handover, mut state: State) -> Result<StepOutput, ActorFailure> {
    let headline = match state.taken_back {
        0 => format!("Nothing of plan {} was taken back", handover.plan_id),
        n => format!(
            "Took back {} of plan {} in {}",
            count(n, "decision"),
            handover.plan_id,
            count(state.files, "file")
        ),
    };
    let mut lines = std::mem::take(&mut state.lines);
    cut(&mut lines, "lines");
    lines.extend(handover.notes.iter().cloned());
    let facts = json!({
        "plan": handover.plan_id, "decisions": handover.units.len(), "taken_back": state.taken_back,
        "files": state.files,
    });
    done(&state, PhaseSummary { headline, lines, facts })
}
