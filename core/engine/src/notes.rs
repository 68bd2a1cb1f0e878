//! Decisions in git notes: written for a commit at apply, read where the database does not know the plan.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use agents_domain::Result;
use agents_domain::changes::Change;
use agents_domain::decision::{Alternative, Decision, DecisionStatus, DecisionType};
use agents_domain::ids::{DecisionId, PlanId, ResourceId};
use agents_domain::note::{CommitNote, Ground, NOTE_VERSION, NotedDecision, NotedFile};
use agents_domain::plan::Plan;
use agents_domain::provenance::{Segment, carry, hunks};
use agents_sandbox::{CommitId, LineOrigin, Repository, SandboxError};

use crate::blame::{Lineage, segments_of, strategy_behind};
use crate::operations::plan::{BlamedSegment, StrategyBehind};
use crate::sandboxes::{commit_id, sandbox_error};
use crate::{Engine, clock};

/// Characters of a text in a note.
const TEXT: usize = 4000;

fn short(text: &str) -> String {
    match text.char_indices().nth(TEXT) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

/// The note of a commit that was made of a plan's changes; `None` when no decision is behind a line of it.
pub(crate) fn note_of(
    plan: &Plan,
    decisions: &[Decision],
    changes: &[Change],
    resource: ResourceId,
    repository: &Repository,
    commit: &CommitId,
) -> Result<Option<String>> {
    let Some(sandbox) = plan.sandboxes.iter().find(|s| s.resource_id == resource) else { return Ok(None) };
    let left = commit_id(&sandbox.commit)?;
    let mut files = Vec::new();
    let mut behind: Vec<DecisionId> = Vec::new();
    let mut all: Vec<((ResourceId, String), Vec<Segment>)> = segments_of(changes).into_iter().collect();
    all.retain(|((of, _), _)| *of == resource);
    all.sort_by(|a, b| a.0.cmp(&b.0));
    let paths: Vec<String> = all.iter().map(|((_, path), _)| path.clone()).collect();
    let mut before = repository.files_at(&left, &paths).map_err(sandbox_error)?;
    let mut after = repository.files_at(commit, &paths).map_err(sandbox_error)?;
    for ((_, path), segments) in all {
        let (Some(from), Some(to)) = (before.remove(&path), after.remove(&path)) else { continue };
        let blob = to.blob;
        let (Ok(from), Ok(to)) = (String::from_utf8(from.bytes), String::from_utf8(to.bytes)) else {
            continue;
        };
        let carried = if from == to { segments } else { carry(&segments, &hunks(&from, &to)) };
        behind.extend(carried.iter().map(|s| s.decision_id));
        let lines = carried.into_iter().map(Into::into).collect();
        files.push(NotedFile { path, blob: blob.to_string(), lines });
    }
    if behind.is_empty() {
        return Ok(None);
    }
    let by_id: BTreeMap<DecisionId, Decision> =
        decisions.iter().map(|d| (d.decision_id, d.clone())).collect();
    let known = Lineage::of(&by_id);
    let mut noted: Vec<NotedDecision> = Vec::new();
    for decision in decisions.iter().filter(|d| behind.contains(&d.decision_id)) {
        let strategy = strategy_behind(decision, &known);
        noted.push(NotedDecision {
            id: decision.decision_id,
            decision_type: decision.decision_type.as_str().to_owned(),
            question: short(&decision.question),
            chosen: short(&decision.chosen_option),
            alternatives: decision.alternatives.clone(),
            confidence: decision.confidence,
            rationale: short(&decision.rationale),
            created: decision.created_at.seconds_rfc3339(),
            carries_out: strategy.as_ref().map(|s| s.decision_id),
        });
        let Some(strategy) = strategy else { continue };
        if noted.iter().all(|d| d.id != strategy.decision_id) {
            let made = by_id.get(&strategy.decision_id);
            noted.push(NotedDecision {
                id: strategy.decision_id,
                decision_type: made.map_or("strategy_choice", |d| d.decision_type.as_str()).to_owned(),
                question: short(&strategy.question),
                chosen: short(&strategy.chosen),
                alternatives: strategy
                    .alternatives
                    .into_iter()
                    .zip(strategy.descriptions)
                    .map(|(option, description)| Alternative { option, description })
                    .collect(),
                confidence: strategy.confidence,
                rationale: short(&strategy.rationale),
                created: made.map_or_else(String::new, |d| d.created_at.seconds_rfc3339()),
                carries_out: None,
            });
        }
    }
    let note = CommitNote {
        version: NOTE_VERSION,
        plan: plan.plan_id,
        action: plan.action.to_string(),
        description: short(plan.description.lines().next().unwrap_or_default()),
        actor: plan.actors.execution.to_string(),
        applied: clock::now().seconds_rfc3339(),
        decisions: noted,
        files,
    };
    let json = serde_json::to_string_pretty(&note);
    json.map(Some).map_err(|error| agents_domain::Error::internal(error.to_string()))
}

/// The notes of a repository, read.
#[derive(Default)]
struct Notes {
    by_commit: HashMap<CommitId, Arc<CommitNote>>,
    by_plan: HashMap<PlanId, Vec<Arc<CommitNote>>>,
}

/// The notes of each repository by what their references pointed at: they are read again only when those moved.
fn notes_in(repository: &Repository) -> std::result::Result<Arc<Notes>, SandboxError> {
    type Known = HashMap<PathBuf, (String, Arc<Notes>)>;
    static KNOWN: OnceLock<Mutex<Known>> = OnceLock::new();
    let known = || KNOWN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    let tips = repository.note_tips()?;
    if let Some((_, notes)) = known().get(repository.common_dir()).filter(|(at, _)| *at == tips) {
        return Ok(notes.clone());
    }
    let mut notes = Notes::default();
    for (commit, bytes) in repository.all_notes()? {
        let Some(note) = CommitNote::parse(&bytes).map(Arc::new) else { continue };
        notes.by_plan.entry(note.plan).or_default().push(note.clone());
        notes.by_commit.insert(commit, note);
    }
    let notes = Arc::new(notes);
    known().insert(repository.common_dir().to_owned(), (tips, notes.clone()));
    Ok(notes)
}

/// What notes and trailers say of a file.
#[derive(Default)]
pub(crate) struct Noted {
    /// The file's path in its repository.
    pub path: String,
    pub segments: Vec<BlamedSegment>,
    pub warnings: Vec<String>,
}

/// Whom a commit is from, as far as its note and trailers tell.
struct Source {
    plan: PlanId,
    note: Option<Arc<CommitNote>>,
    /// What its only decision chose, when it names one only.
    only: Option<String>,
    /// Lines of the commit with the decision behind each; `None` when that cannot be told.
    segments: Option<Vec<Segment>>,
}

/// Which decisions are behind the lines of a text in the place of a file, by the notes of its repository. Plans that
/// the database knows are left out. `thorough`: say what trailers tell, too, where there are no notes at all.
pub(crate) fn blame(engine: &Engine, path: &Path, text: &str, thorough: bool) -> Result<Option<Noted>> {
    let Ok((repository, inside)) = Repository::around(path) else { return Ok(None) };
    let notes = notes_in(&repository).map_err(sandbox_error)?;
    let mut foreign = false;
    for plan in notes.by_plan.keys() {
        foreign |= engine.view(|r| r.plan(*plan))?.is_none();
    }
    if !foreign && !thorough {
        return Ok(None);
    }
    let origins = repository.line_origins(&inside, text).map_err(sandbox_error)?;
    let commits: HashSet<CommitId> = origins.iter().filter_map(|o| o.commit.clone()).collect();
    let trailers = repository.trailers(&commits).map_err(sandbox_error)?;
    let mut noted = Noted { path: inside.clone(), ..Noted::default() };
    let mut sources: HashMap<(CommitId, String), Source> = HashMap::new();
    for origin in &origins {
        let Some(commit) = &origin.commit else { continue };
        let key = (commit.clone(), origin.path.clone());
        if sources.contains_key(&key) {
            continue;
        }
        let said = trailers.get(commit).cloned().unwrap_or_default();
        let direct = notes.by_commit.get(commit).cloned();
        let Some(plan) = direct.as_ref().map(|n| n.plan).or_else(|| said.plan.as_deref()?.parse().ok())
        else {
            continue;
        };
        if engine.view(|r| r.plan(plan))?.is_some() {
            continue;
        }
        let moved = || notes.by_plan.get(&plan)?.iter().find(|n| n.file(&origin.path).is_some()).cloned();
        let note = direct.or_else(moved);
        let segments = note
            .as_ref()
            .and_then(|note| note.file(&origin.path))
            .and_then(|file| located(&repository, commit, file).ok().flatten());
        let only = match &said.decisions[..] {
            [(_, chosen)] => Some(chosen.clone()),
            _ => None,
        };
        sources.insert(key, Source { plan, note, only, segments });
    }
    collect(&origins, &sources, &mut noted);
    deletions(&repository, &sources, &inside, text, &mut noted);
    noted.segments.sort_by_key(|s| (s.start_line, s.end_line));
    Ok(Some(noted))
}

/// A note's segments in the coordinates of the file in a commit.
fn located(
    repository: &Repository,
    commit: &CommitId,
    file: &NotedFile,
) -> std::result::Result<Option<Vec<Segment>>, SandboxError> {
    let Some(blob) = repository.blob_at(commit, &file.path)? else { return Ok(None) };
    if blob.to_string() == file.blob {
        return Ok(file.segments(&Ground::Same));
    }
    let Some(here) = repository.blob_text(&blob) else { return Ok(None) };
    if let Some(there) = file.blob.parse().ok().and_then(|blob| repository.blob_text(&blob)) {
        return Ok(file.segments(&Ground::Hunks(&hunks(&there, &here))));
    }
    let before = match repository.parent(commit)? {
        Some(parent) => repository.blob_at(&parent, &file.path)?.and_then(|blob| repository.blob_text(&blob)),
        None => None,
    };
    Ok(file.segments(&Ground::Changed(&hunks(&before.unwrap_or_default(), &here))))
}

/// Runs of lines with one decision, and what cannot be told of the others.
fn collect(origins: &[LineOrigin], sources: &HashMap<(CommitId, String), Source>, noted: &mut Noted) {
    let mut unclear: BTreeMap<(PlanId, CommitId), Vec<u32>> = BTreeMap::new();
    let mut last: Option<(DecisionId, CommitId)> = None;
    for (at, origin) in (1u32..).zip(origins) {
        let found = origin.commit.as_ref().and_then(|commit| {
            let source = sources.get(&(commit.clone(), origin.path.clone()))?;
            Some((commit, source))
        });
        let Some((commit, source)) = found else {
            last = None;
            continue;
        };
        let decision = match &source.segments {
            Some(segments) => {
                segments.iter().find(|s| s.lines > 0 && s.covers(origin.line)).map(|s| s.decision_id)
            }
            None => None,
        };
        let shown = decision.and_then(|id| {
            let note = source.note.as_ref()?;
            Some((id, blamed(note, id, commit)?))
        });
        match shown {
            Some((id, segment)) => {
                let run = last.as_ref() == Some(&(id, commit.clone()));
                match noted.segments.last_mut().filter(|_| run) {
                    Some(before) => before.end_line = at,
                    None => noted.segments.push(BlamedSegment { start_line: at, end_line: at, ..segment }),
                }
                last = Some((id, commit.clone()));
            }
            None => {
                last = None;
                if source.segments.is_none() {
                    unclear.entry((source.plan, commit.clone())).or_default().push(at);
                }
            }
        }
    }
    for ((plan, commit), lines) in unclear {
        let source = sources.iter().find(|((of, _), _)| *of == commit).map(|(_, source)| source);
        let chose =
            source.and_then(|s| s.only.as_ref()).map_or(String::new(), |c| format!(", which chose: {c}"));
        let why = match source.is_some_and(|s| s.note.is_some()) {
            true => {
                "its note does not fit the lines any more, so which decision is behind them cannot be told"
            }
            false => "its note is not here: agents init --git-notes, then git fetch",
        };
        let short = &commit.as_str()[..10.min(commit.as_str().len())];
        noted.warnings.push(format!("{} from plan {plan} (commit {short}){chose}; {why}", runs(&lines)));
    }
}

/// `line 3 comes`, `lines 1-4, 7 come`.
fn runs(lines: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for line in lines {
        match runs.last_mut().filter(|run| run.1 + 1 == *line) {
            Some(run) => run.1 = *line,
            None => runs.push((*line, *line)),
        }
    }
    let shown: Vec<String> =
        runs.iter().map(|(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") }).collect();
    match lines.len() {
        1 => format!("line {} comes", shown.join(", ")),
        _ => format!("lines {} come", shown.join(", ")),
    }
}

/// Places where lines were deleted, carried from the commit to the text at hand.
fn deletions(
    repository: &Repository,
    sources: &HashMap<(CommitId, String), Source>,
    inside: &str,
    text: &str,
    noted: &mut Noted,
) {
    for ((commit, path), source) in sources.iter().filter(|((_, path), _)| path == inside) {
        let gone: Vec<Segment> = source.segments.iter().flatten().filter(|s| s.lines == 0).copied().collect();
        let Some(note) = source.note.as_ref().filter(|_| !gone.is_empty()) else { continue };
        let Ok(Some(bytes)) = repository.file_at(commit, path) else { continue };
        let there = String::from_utf8_lossy(&bytes).into_owned();
        for segment in carry(&gone, &hunks(&there, text)) {
            let at = segment.start + 1;
            let made = blamed(note, segment.decision_id, commit);
            noted.segments.extend(made.map(|made| BlamedSegment {
                start_line: at,
                end_line: at - 1,
                deletion: true,
                ..made
            }));
        }
    }
}

/// A decision of a note, as blame shows it; the lines are the caller's.
fn blamed(note: &CommitNote, id: DecisionId, commit: &CommitId) -> Option<BlamedSegment> {
    let by_id = note.by_id();
    let decision = by_id.get(&id)?;
    let options = |d: &NotedDecision| d.alternatives.iter().map(|a| a.option.clone()).collect::<Vec<_>>();
    let by_a_person = |d: &NotedDecision| d.decision_type == DecisionType::UserIntervention.as_str();
    let behind = decision.carries_out.and_then(|id| by_id.get(&id));
    let by_strategy = behind.is_some_and(|strategy| by_a_person(strategy));
    let strategy = behind.map(|strategy| StrategyBehind {
        decision_id: strategy.id,
        question: strategy.question.clone(),
        chosen: strategy.chosen.clone(),
        confidence: strategy.confidence,
        rationale: strategy.rationale.clone(),
        alternatives: options(strategy),
        descriptions: strategy.alternatives.iter().map(|a| a.description.clone()).collect(),
    });
    Some(BlamedSegment {
        start_line: 0,
        end_line: 0,
        deletion: false,
        proposed: false,
        decision_id: id,
        plan_id: note.plan,
        question: decision.question.clone(),
        chosen: decision.chosen.clone(),
        confidence: decision.confidence,
        answered: by_a_person(decision) || by_strategy,
        threshold: None,
        rationale: decision.rationale.clone(),
        alternatives: options(decision),
        status: DecisionStatus::Active,
        created: decision.created.clone(),
        action: note.action.clone(),
        strategy,
        proposed_text: None,
        commit: Some(commit.to_string()),
    })
}
