//! `builtin/rename-symbol`: finds a declared symbol, says what renaming it would change, and lets a server do it.

use std::collections::BTreeMap;

use agents_domain::QualifiedName;
use agents_domain::decision::{Alternative, DecisionType, ResourceRef};
use agents_domain::ids::ResourceId;
use agents_domain::plan::{Phase, PhaseSummary};
use agents_domain::ports::BoxFuture;
use agents_domain::ports::actor::{
    Actor, ActorFailure, ActorHost, ActorWorkspace, DecisionDraft, Progress, Request, StepInput, StepOutcome,
    StepOutput,
};
use agents_domain::text::{FileEdit, Position, Range};
use agents_domain::words::{agree, count};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::check::{self, Errors};
use crate::common::{
    Halt, alternative, apply_edits, ask_for, clamp, decided, done, first_line, from_state, go_on, internal,
    output, refused, root_key, sample, standing, touched, wrong_argument,
};
use crate::fixer::{Kept, LEAVE_ALONE, match_answer};

/// Symbols of the name that are looked at.
const MAX_CANDIDATES: usize = 20;
/// Files that servers are asked about.
const MAX_FILES: usize = 500;

const WHICH: &str = "rename/which";
const APPLY: &str = "rename/apply";

/// The actor of `builtin/rename-symbol`, for both phases.
///
/// Arguments: `symbol` (a name, or with what it is in: `Class.method`), `new_name`; optional `file` (where it is
/// declared) and `line` (number from 1).
#[derive(Debug, Clone, Copy, Default)]
pub struct RenameSymbol;

#[derive(Debug)]
struct Wanted {
    symbol: String,
    new_name: String,
    file: Option<String>,
    line: Option<u64>,
}

/// A declared symbol, with what renaming it would change.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Candidate {
    resource_id: ResourceId,
    server: QualifiedName,
    path: String,
    position: Position,
    /// `function total in src/a.py:12`.
    what: String,
    /// Places by file.
    places: BTreeMap<String, usize>,
    /// The same word elsewhere in these files, in comments and texts for the most part.
    untouched: usize,
}

#[derive(Debug, Serialize, Deserialize)]
struct Handover {
    candidates: Vec<Candidate>,
    notes: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
enum State {
    Writing { paths: Vec<String>, before: Errors },
    Undoing { why: String },
}

impl Actor for RenameSymbol {
    fn step<'a>(
        &'a self,
        input: StepInput,
        host: &'a dyn ActorHost,
    ) -> BoxFuture<'a, Result<StepOutput, ActorFailure>> {
        Box::pin(async move {
            let stepped = match input.phase {
                Phase::Strategize => strategize(&input, host).await,
                Phase::Execute => execute(&input, host).await,
                Phase::Apply => Err(internal("actors decide and do nothing in Apply".to_owned()).into()),
            };
            match stepped {
                Ok(output) => Ok(output),
                Err(Halt::Stopping) => Ok(output(input.state, StepOutcome::Continue)),
                Err(Halt::Failed(failure)) => Err(failure),
            }
        })
    }
}

impl Wanted {
    fn read(arguments: &BTreeMap<String, Value>) -> Result<Self, ActorFailure> {
        let text = |name: &str| {
            let given = arguments.get(name).and_then(Value::as_str).map(str::trim);
            given.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let needed =
            |name: &str| text(name).ok_or_else(|| wrong_argument(format!("argument `{name}` is missing")));
        let wanted = Self {
            symbol: needed("symbol")?,
            new_name: needed("new_name")?,
            file: text("file").map(|file| file.trim_start_matches("./").to_owned()),
            line: arguments.get("line").and_then(Value::as_u64),
        };
        if wanted.new_name.chars().any(|c| c.is_whitespace() || c == '.') {
            let given = &wanted.new_name;
            return Err(wrong_argument(format!(
                "argument `new_name` is `{given}`; it must be one plain name"
            )));
        }
        if wanted.name() == wanted.new_name {
            return Err(wrong_argument(format!("the symbol is called `{}` already", wanted.new_name)));
        }
        Ok(wanted)
    }

    /// The symbol's own name, and what it is in.
    fn name(&self) -> &str {
        self.symbol.rsplit_once('.').map_or(self.symbol.as_str(), |(_, name)| name)
    }

    fn is_in(&self, container: Option<&str>) -> bool {
        let Some((outer, _)) = self.symbol.rsplit_once('.') else { return true };
        container.is_some_and(|inside| inside == outer || inside.ends_with(&format!(".{outer}")))
    }
}

async fn strategize(input: &StepInput, host: &dyn ActorHost) -> Result<StepOutput, Halt> {
    let wanted = Wanted::read(&input.arguments)?;
    if input.state != Value::Null {
        return conclude(from_state(&input.state)?, input, &wanted);
    }
    let mut notes = Vec::new();
    let mut candidates = Vec::new();
    for workspace in host.workspaces() {
        find(input, host, workspace, &wanted, &mut candidates, &mut notes).await?;
    }
    notes.dedup();
    if candidates.is_empty() && notes.is_empty() {
        let at = wanted.file.as_ref().map(|file| format!(" in {file}")).unwrap_or_default();
        return Err(Halt::Failed(ActorFailure {
            hints: vec![
                "`agents lsp list` lists the language servers; one that knows the language must be registered.".to_owned(),
                "Name what it is in (`Class.method`), or the file and line where it is declared.".to_owned(),
            ],
            ..wrong_argument(format!("no language server knows a symbol `{}`{at}", wanted.symbol))
        }));
    }
    let handover = Handover { candidates, notes };
    if handover.candidates.is_empty() {
        return conclude(handover, input, &wanted);
    }
    let draft = which(&handover.candidates, &wanted, input);
    Ok(ask_for(&handover, vec![Request::RecordDecision(draft)])?)
}

/// The symbols of that name in a workspace, each with what renaming it would change.
async fn find(
    input: &StepInput,
    host: &dyn ActorHost,
    workspace: &ActorWorkspace,
    wanted: &Wanted,
    candidates: &mut Vec<Candidate>,
    notes: &mut Vec<String>,
) -> Result<(), Halt> {
    let mut files = Vec::new();
    for file in host.files(workspace.resource_id)? {
        let named = wanted.file.as_ref().is_none_or(|wanted| *wanted == file.path);
        if named && !workspace.languages.servers_for(&file.path).is_empty() {
            let bytes = host.read(workspace.resource_id, &file.path)?;
            if String::from_utf8(bytes).is_ok_and(|text| text.contains(wanted.name())) {
                files.push(file.path);
            }
        }
    }
    if files.len() > MAX_FILES {
        notes.push(format!(
            "Only the first {MAX_FILES} of {} that have the word were looked at",
            count(files.len(), "file")
        ));
        files.truncate(MAX_FILES);
    }
    for (at, path) in files.iter().enumerate() {
        go_on(host)?;
        let label = format!("Looking for {}", wanted.symbol);
        host.progress(Progress { label, done: clamp(at), total: Some(clamp(files.len())) });
        for server in workspace.languages.servers_for(path) {
            let found = match workspace.languages.symbols(&server, path).await {
                Ok(Some(found)) => found,
                Ok(None) => continue,
                Err(why) => {
                    notes.push(format!("{path} was not looked at: {}", first_line(&why)));
                    continue;
                }
            };
            for symbol in found {
                let line = u64::from(symbol.range.start.line) + 1;
                let fits = symbol.name == wanted.name()
                    && wanted.is_in(symbol.container.as_deref())
                    && wanted.line.is_none_or(|wanted| wanted == line);
                if !fits || candidates.len() >= MAX_CANDIDATES {
                    continue;
                }
                let inside = symbol.container.as_ref().map(|c| format!("{c}.")).unwrap_or_default();
                let what = format!("{} {inside}{} in {path}:{line}", symbol.kind, symbol.name);
                let position = name_at(host, workspace, path, symbol.range, wanted.name())?;
                let edits = renamed(workspace, path, position, &wanted.new_name).await;
                match edits {
                    Ok(Some((_, edits))) if edits.is_empty() => {
                        notes.push(format!("{what} stays: renaming it changes nothing"));
                    }
                    Ok(Some((server, edits))) => match refusal(input, workspace, &edits) {
                        Some(why) => notes.push(format!("{what} stays: {why}")),
                        None => candidates.push(candidate(
                            host,
                            workspace,
                            wanted,
                            (server, path, position, what),
                            &edits,
                        )?),
                    },
                    Ok(None) => notes.push(format!("{what} stays: no language server can rename it")),
                    Err(why) => notes.push(format!("{what} stays: {}", first_line(&why))),
                }
            }
            // One server's word on what a file declares is enough.
            break;
        }
    }
    Ok(())
}

/// Where the name itself begins in the range a server gives, which may be that of the whole declaration.
fn name_at(
    host: &dyn ActorHost,
    workspace: &ActorWorkspace,
    path: &str,
    range: Range,
    name: &str,
) -> Result<Position, ActorFailure> {
    let text = String::from_utf8(host.read(workspace.resource_id, path)?).unwrap_or_default();
    let index = agents_domain::text::LineIndex::new(&text);
    let from = index.offset(&text, range.start).unwrap_or_default();
    let found = text[from..].find(name).map(|at| index.position(from + at));
    Ok(found.unwrap_or(range.start))
}

/// What the first server that renames would change.
async fn renamed(
    workspace: &ActorWorkspace,
    path: &str,
    position: Position,
    new_name: &str,
) -> Result<Option<(QualifiedName, Vec<FileEdit>)>, String> {
    let mut problem = None;
    for server in workspace.languages.servers_for(path) {
        match workspace.languages.rename(&server, path, position, new_name).await {
            Ok(Some(edits)) => return Ok(Some((server, edits))),
            Ok(None) => {}
            Err(why) => _ = problem.get_or_insert(why),
        }
    }
    problem.map_or(Ok(None), Err)
}

/// Why edits must not be made.
fn refusal(input: &StepInput, workspace: &ActorWorkspace, edits: &[FileEdit]) -> Option<String> {
    if input.read_only || workspace.read_only {
        return Some(format!("{} is read-only", workspace.name));
    }
    touched(edits).iter().find_map(|path| {
        let untouchable = workspace.untouchable.iter().find(|(of, _)| of == path).map(|(_, why)| why.clone());
        let kept = || Kept(&input.invariants).file(path).map(|text| format!("an invariant keeps it: {text}"));
        untouchable.or_else(kept).map(|why| format!("it would change {path}, and {why}"))
    })
}

fn candidate(
    host: &dyn ActorHost,
    workspace: &ActorWorkspace,
    wanted: &Wanted,
    found: (QualifiedName, &str, Position, String),
    edits: &[FileEdit],
) -> Result<Candidate, ActorFailure> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for edit in edits {
        let changed = match edit {
            FileEdit::Edit { edits, .. } => edits.len(),
            _ => 0,
        };
        *places.entry(edit.path().to_owned()).or_default() += changed;
    }
    let mut untouched: usize = 0;
    for (path, changed) in &places {
        let text = host.read(workspace.resource_id, path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let words = text.split(|c| !word(c)).filter(|w| *w == wanted.name()).count();
        untouched += words.saturating_sub(*changed);
    }
    let (server, path, position, what) = found;
    Ok(Candidate {
        resource_id: workspace.resource_id,
        server,
        path: path.to_owned(),
        position,
        what,
        places,
        untouched,
    })
}

fn impact(candidate: &Candidate) -> String {
    let places: usize = candidate.places.values().sum();
    format!("{} in {}", count(places, "place"), count(candidate.places.len(), "file"))
}

fn which(candidates: &[Candidate], wanted: &Wanted, input: &StepInput) -> DecisionDraft {
    let mut alternatives: Vec<Alternative> = candidates
        .iter()
        .map(|candidate| {
            let files: Vec<String> = candidate.places.keys().cloned().collect();
            let left = match candidate.untouched {
                0 => String::new(),
                n => format!(
                    " {} elsewhere in them (comments, texts, other symbols) {}.",
                    count(n, "place"),
                    agree(n, "stays", "stay")
                ),
            };
            let text = format!("{} by {}: {}.{left}", impact(candidate), candidate.server, sample(&files));
            alternative(&format!("Rename {}", candidate.what), text)
        })
        .collect();
    alternatives.push(alternative(LEAVE_ALONE, "Changes nothing."));
    let several = candidates.len() > 1;
    DecisionDraft {
        key: WHICH.to_owned(),
        decision_type: DecisionType::StrategyChoice,
        parent: None,
        question: match several {
            true => format!("Which `{}` should become `{}`?", wanted.symbol, wanted.new_name),
            false => format!("Should `{}` become `{}`?", wanted.symbol, wanted.new_name),
        },
        chosen: if several { candidates.len() } else { 0 },
        alternatives,
        confidence: Some(if several { 0.3 } else { 0.95 }),
        rationale: match several {
            true => format!(
                "{} are called so, and which is meant cannot be told. Answer with one, or make a plan with `file` and `line`.",
                count(candidates.len(), "symbol")
            ),
            false => format!("It is the only symbol of that name; {} would change.", impact(&candidates[0])),
        },
        reasoning: None,
        resources: candidates
            .iter()
            .map(|candidate| ResourceRef {
                resource_id: candidate.resource_id,
                path: candidate.path.clone(),
                range: Some(Range { start: candidate.position, end: candidate.position }),
                symbol: Some(wanted.symbol.clone()),
                note: Some(candidate.what.clone()),
            })
            .collect(),
        depends_on: root_key(input).into_iter().collect(),
        context: json!({ "candidates": candidates, "new_name": wanted.new_name }),
        spawn: None,
    }
}

/// What was chosen among the candidates.
fn chosen<'c>(
    candidates: &'c [Candidate],
    decisions: &[agents_domain::ports::actor::KnownDecision],
) -> Option<&'c Candidate> {
    let decision = decided(decisions, WHICH)?;
    candidates.get(match_answer(&decision.chosen_option, &decision.options)?)
}

fn conclude(handover: Handover, input: &StepInput, wanted: &Wanted) -> Result<StepOutput, Halt> {
    let decisions = standing(input)?;
    let headline = match chosen(&handover.candidates, &decisions) {
        Some(candidate) => format!("{} becomes `{}`: {}", candidate.what, wanted.new_name, impact(candidate)),
        None => format!("`{}` keeps its name", wanted.symbol),
    };
    let facts = json!({ "candidates": handover.candidates });
    let lines = handover.notes.clone();
    Ok(done(&handover, PhaseSummary { headline, lines, facts })?)
}

async fn execute(input: &StepInput, host: &dyn ActorHost) -> Result<StepOutput, Halt> {
    let handover: Handover = from_state(&input.handover)?;
    let wanted = Wanted::read(&input.arguments)?;
    let finish = |headline: String, lines: Vec<String>| {
        let lines: Vec<String> = lines.into_iter().chain(handover.notes.iter().cloned()).collect();
        Ok(done(&Value::Null, PhaseSummary { headline, lines, facts: Value::Null })?)
    };
    let nothing = format!("`{}` keeps its name", wanted.symbol);
    let Some(candidate) = chosen(&handover.candidates, &input.decisions) else {
        return finish(nothing, Vec::new());
    };
    let workspace = host.workspaces().iter().find(|w| w.resource_id == candidate.resource_id);
    let workspace = workspace.ok_or_else(|| internal("the workspace of the symbol is gone".to_owned()))?;
    match &input.state {
        Value::Null => {}
        state => match (from_state(state)?, refused(input)) {
            (State::Writing { .. }, Some(why)) => return finish(nothing, vec![why]),
            (State::Writing { paths, before }, None) => {
                go_on(host)?;
                if let Some(why) = check::worse(workspace, &before, &paths).await {
                    let undo = Request::Undo { decision: APPLY.to_owned() };
                    return Ok(ask_for(&State::Undoing { why }, vec![undo])?);
                }
                let headline = format!(
                    "{} is `{}` now, in {}",
                    candidate.what,
                    wanted.new_name,
                    count(paths.len(), "file")
                );
                let left = (candidate.untouched > 0).then(|| {
                    format!(
                        "The word stays in {} (comments, texts, other symbols)",
                        count(candidate.untouched, "place")
                    )
                });
                return finish(headline, left.into_iter().collect());
            }
            (State::Undoing { why }, None) => {
                return finish(nothing, vec![format!("Taken back, since it made this worse: {why}")]);
            }
            (State::Undoing { why }, Some(problem)) => {
                let line = format!("It made this worse ({why}) and could not be taken back: {problem}");
                return finish(format!("{} was renamed", candidate.what), vec![line]);
            }
        },
    }
    let position = candidate.position;
    let edits = match renamed(workspace, &candidate.path, position, &wanted.new_name).await {
        Ok(Some((_, edits))) if !edits.is_empty() => edits,
        Ok(_) => return finish(nothing, vec!["No language server renames it any more".to_owned()]),
        Err(why) => return finish(nothing, vec![first_line(&why).to_owned()]),
    };
    if let Some(why) = refusal(input, workspace, &edits) {
        return finish(nothing, vec![why]);
    }
    let paths: Vec<String> = touched(&edits).into_iter().collect();
    let before = check::errors(workspace, &paths).await;
    let draft = DecisionDraft {
        key: APPLY.to_owned(),
        decision_type: DecisionType::ImplementationChoice,
        parent: Some(WHICH.to_owned()),
        question: format!("How does {} become `{}`?", candidate.what, wanted.new_name),
        chosen: 0,
        alternatives: vec![
            alternative(
                &format!("Every use that {} knows", candidate.server),
                "Comments and texts stay; taken back as a whole when it brings new errors.",
            ),
            alternative(LEAVE_ALONE, "Changes nothing after all."),
        ],
        confidence: Some(0.95),
        rationale: format!(
            "It was decided on; {} would change: {}.",
            count(paths.len(), "file"),
            sample(&paths)
        ),
        reasoning: None,
        resources: paths
            .iter()
            .map(|path| ResourceRef {
                resource_id: candidate.resource_id,
                path: path.clone(),
                range: None,
                symbol: Some(wanted.symbol.clone()),
                note: None,
            })
            .collect(),
        depends_on: vec![WHICH.to_owned()],
        context: json!({ "candidate": candidate, "files": paths }),
        spawn: None,
    };
    let writing = State::Writing { paths, before };
    let apply = apply_edits(APPLY, candidate.resource_id, &edits);
    Ok(ask_for(&writing, vec![Request::RecordDecision(draft), apply])?)
}
