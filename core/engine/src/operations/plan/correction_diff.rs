//! `plan diff --correction`: the files as they were before a correction and as they came out of it.

use std::collections::{BTreeMap, BTreeSet};

use agents_domain::changes::DiffLine;
use agents_domain::correction::{CorrectionAttempt, CorrectionMode, CorrectionState, FileState};
use agents_domain::ids::{CorrectionId, DecisionId, PlanId, ResourceId};
use agents_domain::provenance::hunks;
use agents_domain::{Error, ErrorKind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rewind::{file_states, states};
use crate::{Engine, Operation};

/// Lines of context around a change.
const CONTEXT: u32 = 3;

/// Compares the files before and after a correction.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CorrectionDiff {
    /// The id of the correction attempt or of the decision it made, or its beginning.
    pub correction: String,
}

/// The comparison.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct CorrectionDiffOutput {
    pub plan_id: PlanId,
    pub correction_diff: CorrectionSummary,
    pub comparison: Vec<ComparedFile>,
    pub patch_preview: Vec<ComparedPatch>,
}

/// What was corrected, and totals.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct CorrectionSummary {
    pub correction: DecisionId,
    pub correction_attempt_id: CorrectionId,
    pub original_decision: DecisionId,
    pub mode: CorrectionMode,
    pub guidance: String,
    pub state: CorrectionState,
    /// Why it failed, when it did.
    pub failure: Option<String>,
    /// The work is not done again yet: what is shown is how far it is.
    pub in_progress: bool,
    pub files_changed: usize,
    pub new_insertions: u32,
    pub new_deletions: u32,
}

/// One file of either side, against what it was before the plan.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ComparedFile {
    pub file: String,
    pub resource_id: ResourceId,
    /// Such as `+12 -4`.
    pub before: String,
    /// Likewise, with what became of it.
    pub after: String,
    pub changed: bool,
    pub before_hash: Option<String>,
    pub after_hash: Option<String>,
}

/// What differs between both sides of a file.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ComparedPatch {
    pub file: String,
    pub resource_id: ResourceId,
    pub context: String,
    pub hunks: Vec<ComparedHunk>,
    /// The unified diff from the original to the corrected file.
    pub patch: String,
}

/// A run of lines.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ComparedHunk {
    pub range: String,
    pub deletions: Vec<String>,
    pub insertions: Vec<String>,
    pub lines: Vec<DiffLine>,
}

impl Operation for CorrectionDiff {
    const METHOD: &'static str = "plan/correction-diff";
    const SUMMARY: &'static str = "Compare the files before and after a correction";
    type Output = CorrectionDiffOutput;

    fn run(self, engine: &Engine) -> Result<CorrectionDiffOutput> {
        let attempt = find(engine, &self.correction)?;
        let before = match &attempt.archive {
            Some(blob) => states(engine, blob)?,
            None => Vec::new(),
        };
        let after = match &attempt.outcome {
            Some(blob) => states(engine, blob)?,
            None => file_states(&engine.view(|r| r.changes(attempt.plan_id))?),
        };
        let (mut comparison, mut previews) = (Vec::new(), Vec::new());
        let (mut insertions, mut deletions) = (0, 0);
        for ((resource_id, path), (before, after)) in pairs(&before, &after) {
            let base = before.or(after).and_then(|s| s.base.clone());
            let hash = |state: Option<&FileState>| state.map_or_else(|| base.clone(), |s| s.hash.clone());
            let (old, new) = (hash(before), hash(after));
            let changed = old != new;
            let (base_text, old_text, new_text) =
                (text(engine, base.as_ref())?, text(engine, old.as_ref())?, text(engine, new.as_ref())?);
            let (was, is) = (counts(&base_text, &old_text), counts(&base_text, &new_text));
            comparison.push(ComparedFile {
                file: path.clone(),
                resource_id,
                before: side(was, base.is_some(), old.is_some()),
                after: match changed {
                    false => "(unchanged)".to_owned(),
                    true => outcome(was, is, base.is_some(), old.is_some(), new.is_some()),
                },
                changed,
                before_hash: old,
                after_hash: new,
            });
            if changed {
                let preview = patch(resource_id, path, &old_text, &new_text);
                let lines = preview.hunks.iter().flat_map(|hunk| &hunk.lines);
                let count = |kind: &str| lines.clone().filter(|l| l.kind == kind).count();
                insertions += u32::try_from(count("+")).unwrap_or(u32::MAX);
                deletions += u32::try_from(count("-")).unwrap_or(u32::MAX);
                previews.push(preview);
            }
        }
        Ok(CorrectionDiffOutput {
            plan_id: attempt.plan_id,
            correction_diff: CorrectionSummary {
                correction: attempt.new_decision_id,
                correction_attempt_id: attempt.correction_id,
                original_decision: attempt.original_decision_id,
                mode: attempt.mode,
                guidance: attempt.guidance,
                state: attempt.state,
                failure: attempt.failure,
                in_progress: attempt.outcome.is_none(),
                files_changed: previews.len(),
                new_insertions: insertions,
                new_deletions: deletions,
            },
            comparison,
            patch_preview: previews,
        })
    }
}

/// The correction of an attempt's id, or of a decision it made or corrected, or the beginning of either.
fn find(engine: &Engine, given: &str) -> Result<CorrectionAttempt> {
    let missing = || {
        Error::not_found(format!(
            "there is no correction `{given}`: expected the id of a correction attempt or of a corrected decision"
        ))
        .suggest("agents plan tree --show-superseded PLAN")
    };
    let prefix = given.trim().to_ascii_uppercase();
    if prefix.is_empty() {
        return Err(missing());
    }
    let attempts = engine.view(|r| r.corrections_starting(&prefix, 2))?;
    let decisions = engine.view(|r| r.decisions_starting(&prefix, 10))?;
    let mut found = BTreeMap::new();
    for id in attempts {
        found.extend(engine.view(|r| r.correction(id))?.map(|attempt| (attempt.correction_id, attempt)));
    }
    for id in decisions {
        found.extend(
            engine.view(|r| r.correction_behind(id))?.map(|attempt| (attempt.correction_id, attempt)),
        );
    }
    let mut found = found.into_values();
    match (found.next(), found.next()) {
        (Some(attempt), None) => Ok(attempt),
        (None, _) => Err(missing()),
        _ => Err(Error::new(
            ErrorKind::ValidationFailed,
            format!("`{given}` is the start of the ids of several corrections; give more characters"),
        )),
    }
}

type Sides<'s> = BTreeMap<(ResourceId, &'s String), (Option<&'s FileState>, Option<&'s FileState>)>;

fn pairs<'s>(before: &'s [FileState], after: &'s [FileState]) -> Sides<'s> {
    let key = |state: &'s FileState| (state.resource_id, &state.path);
    let keys: BTreeSet<_> = before.iter().chain(after).map(key).collect();
    let find = |states: &'s [FileState], wanted| states.iter().find(|state| key(state) == wanted);
    keys.into_iter().map(|wanted| (wanted, (find(before, wanted), find(after, wanted)))).collect()
}

fn text(engine: &Engine, hash: Option<&String>) -> Result<String> {
    let Some(hash) = hash else { return Ok(String::new()) };
    let bytes = engine.store.blob(hash)?.unwrap_or_default();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn counts(base: &str, text: &str) -> (u32, u32) {
    hunks(base, text).iter().fold((0, 0), |(new, old), hunk| (new + hunk.new_lines, old + hunk.old_lines))
}

fn side((insertions, deletions): (u32, u32), was_there: bool, is_there: bool) -> String {
    match (was_there, is_there) {
        (false, true) => "(new file)".to_owned(),
        (true, false) => "(deleted)".to_owned(),
        (false, false) => "(not there)".to_owned(),
        (true, true) => format!("+{insertions} -{deletions}"),
    }
}

fn outcome(was: (u32, u32), is: (u32, u32), base: bool, old: bool, new: bool) -> String {
    let now = side(is, base, new);
    let size = |(insertions, deletions): (u32, u32)| insertions + deletions;
    let word = match (old, new) {
        (true, true) if size(is) > size(was) => {
            if base {
                "expanded"
            } else {
                "larger"
            }
        }
        (true, true) if size(is) < size(was) => {
            if base {
                "reduced"
            } else {
                "smaller"
            }
        }
        (true, true) => "rewritten",
        _ => return now,
    };
    match now.strip_suffix(')') {
        Some(now) => format!("{now}, {word})"),
        None => format!("{now} ({word})"),
    }
}

fn patch(resource_id: ResourceId, path: &str, old: &str, new: &str) -> ComparedPatch {
    let diff = similar::TextDiff::from_lines(old, new);
    let mut hunks = Vec::new();
    for group in diff.grouped_ops(CONTEXT as usize) {
        let mut lines = Vec::new();
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let number = |index: Option<usize>| index.and_then(|at| u32::try_from(at + 1).ok());
            lines.push(DiffLine {
                kind: change.tag().to_string(),
                text: change.value().trim_end_matches('\n').to_owned(),
                old: number(change.old_index()),
                new: number(change.new_index()),
            });
        }
        let of = |kind: &str| lines.iter().filter(|l| l.kind == kind).map(|l| l.text.clone()).collect();
        hunks.push(ComparedHunk {
            range: similar::udiff::UnifiedHunkHeader::new(&group).to_string(),
            deletions: of("-"),
            insertions: of("+"),
            lines,
        });
    }
    ComparedPatch {
        file: path.to_owned(),
        resource_id,
        context: "corrected vs original".to_owned(),
        hunks,
        patch: diff.unified_diff().header(&format!("a/{path}"), &format!("b/{path}")).to_string(),
    }
}
