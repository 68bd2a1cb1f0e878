//! `builtin/organize-imports` and `builtin/format`: what a language server makes of whole files.
//!
//! Strategize asks which servers do it and what they would change, and makes one decision per server. Execute asks
//! again, since files may have moved on, applies, and looks whether the file got worse.

use std::collections::BTreeMap;

use agents_domain::QualifiedName;
use agents_domain::decision::{DecisionType, ResourceRef};
use agents_domain::ids::ResourceId;
use agents_domain::plan::{Phase, PhaseSummary};
use agents_domain::ports::BoxFuture;
use agents_domain::ports::actor::{
    Actor, ActorFailure, ActorHost, ActorWorkspace, DecisionDraft, Observation, Progress, Request, StepInput,
    StepOutcome, StepOutput,
};
use agents_domain::ports::language_servers::FileQuestion;
use agents_domain::text::FileEdit;
use agents_domain::words::count;
use futures::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::check::{self, Errors};
use crate::common::{
    Halt, alternative, apply_edits, ask_for, clamp, cut, decided, done, first_line, from_state, go_on,
    internal, output, refused, root_key, sample, standing, touched,
};
use crate::fixer::{Filters, Kept, LEAVE_ALONE, match_answer};

/// Files asked about at a time.
const BATCH: usize = 32;
/// Places that a decision names.
const MAX_PLACES: usize = 200;

/// The actor of `builtin/organize-imports` or `builtin/format`, for both phases.
///
/// Arguments, both optional: `paths` (list of globs as in `.gitignore`), `max_files` (number, default 5000).
#[derive(Debug, Clone, Copy)]
pub struct Tidy(pub FileQuestion);

/// What a server would do in one resource, as Execute gets it.
#[derive(Debug, Serialize, Deserialize)]
struct Group {
    resource_id: ResourceId,
    resource: String,
    server: QualifiedName,
    files: Vec<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Handover {
    groups: Vec<Group>,
    notes: Vec<String>,
    /// Files that a server was asked about and answered for.
    looked_at: usize,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    cursor: usize,
    writing: Option<Writing>,
    /// The group at the cursor is being taken back, and why.
    undoing: Option<String>,
    files: usize,
    lines: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Writing {
    paths: Vec<String>,
    /// Errors by file before, where they are known.
    errors: Errors,
}

impl Group {
    fn key(&self, what: Tidy) -> String {
        format!("{}/{}/{}", what.word(), self.resource, self.server)
    }

    fn apply_key(&self, what: Tidy) -> String {
        format!("{}/apply", self.key(what))
    }
}

impl Actor for Tidy {
    fn step<'a>(
        &'a self,
        input: StepInput,
        host: &'a dyn ActorHost,
    ) -> BoxFuture<'a, Result<StepOutput, ActorFailure>> {
        Box::pin(async move {
            let stepped = match input.phase {
                Phase::Strategize => self.strategize(&input, host).await,
                Phase::Execute => self.execute(&input, host).await,
                Phase::Apply => Err(internal("actors decide and do nothing in Apply".to_owned()).into()),
            };
            match stepped {
                Ok(output) => Ok(output),
                // What was observed must not be lost: it is asked again from the state it began with.
                Err(Halt::Stopping) => Ok(output(input.state, StepOutcome::Continue)),
                Err(Halt::Failed(failure)) => Err(failure),
            }
        })
    }
}

impl Tidy {
    fn word(self) -> &'static str {
        match self.0 {
            FileQuestion::Format => "format",
            FileQuestion::OrganizeImports => "organize-imports",
        }
    }

    /// `format 3 files`, `put the imports of 3 files in order`.
    fn deed(self, files: usize) -> String {
        let files = count(files, "file");
        match self.0 {
            FileQuestion::Format => format!("format {files}"),
            FileQuestion::OrganizeImports => format!("put the imports of {files} in order"),
        }
    }

    async fn strategize(self, input: &StepInput, host: &dyn ActorHost) -> Result<StepOutput, Halt> {
        if input.state != Value::Null {
            return self.decided(from_state(&input.state)?, input);
        }
        let filters = Filters::read(&input.arguments)?;
        let mut handover = Handover::default();
        let mut requests = Vec::new();
        for workspace in host.workspaces() {
            if workspace.read_only || input.read_only {
                handover.notes.push(format!("{} is read-only: nothing is changed there", workspace.name));
                continue;
            }
            let mut wanted: Vec<String> = Vec::new();
            for file in host.files(workspace.resource_id)? {
                if filters.wants_path(&file.path) && !workspace.languages.servers_for(&file.path).is_empty() {
                    match refusal(workspace, Kept(&input.invariants), &file.path) {
                        Some(why) => handover.notes.push(format!("{} stays as it is: {why}", file.path)),
                        None => wanted.push(file.path),
                    }
                }
            }
            if wanted.len() > filters.max_files {
                let more = wanted.split_off(filters.max_files);
                handover.notes.push(format!(
                    "{} are not looked at: `max_files` is {}",
                    count(more.len(), "file"),
                    filters.max_files
                ));
            }
            let asked = self.ask(host, workspace, &wanted).await?;
            handover.looked_at += asked.looked_at;
            handover.notes.extend(asked.problems);
            for (server, edits) in asked.edits {
                let group = Group {
                    resource_id: workspace.resource_id,
                    resource: workspace.name.clone(),
                    server,
                    files: edits.into_iter().map(|(path, _)| path).collect(),
                };
                requests.push(Request::RecordDecision(self.proposal(&group, input)));
                handover.groups.push(group);
            }
        }
        cut(&mut handover.notes, "notes");
        if requests.is_empty() {
            return self.decided(handover, input);
        }
        Ok(ask_for(&handover, requests)?)
    }

    fn proposal(self, group: &Group, input: &StepInput) -> DecisionDraft {
        let deed = self.deed(group.files.len());
        DecisionDraft {
            key: group.key(self),
            decision_type: DecisionType::StrategyChoice,
            parent: None,
            question: format!("Should {} {deed} in {}?", group.server, group.resource),
            chosen: 0,
            alternatives: vec![
                alternative(&format!("Let {} {deed}", group.server), "Changes how the code is written down."),
                alternative(LEAVE_ALONE, "Changes nothing."),
            ],
            confidence: Some(0.95),
            rationale: format!(
                "The plan asks for it, and {} would change {}.",
                group.server,
                sample(&group.files)
            ),
            reasoning: None,
            resources: places(group, &group.files),
            depends_on: root_key(input).into_iter().collect(),
            context: json!({ "server": group.server, "files": group.files }),
            spawn: None,
        }
    }

    fn decided(self, handover: Handover, input: &StepInput) -> Result<StepOutput, Halt> {
        let decisions = standing(input)?;
        let mut lines = Vec::new();
        let mut files = 0;
        for group in &handover.groups {
            match stands(&decisions, &group.key(self)) {
                true => {
                    files += group.files.len();
                    lines.push(format!("{} will {}", group.server, self.deed(group.files.len())));
                }
                false => {
                    lines.push(format!("{} leaves {} alone", group.server, count(group.files.len(), "file")))
                }
            }
        }
        lines.extend(handover.notes.iter().cloned());
        let headline = match (handover.groups.len(), handover.looked_at) {
            (0, 0) => format!("No language server was found that can {}", self.verb()),
            (0, n) => format!("Nothing to {} in {}", self.verb(), count(n, "file")),
            _ => format!("To {}", self.deed(files)),
        };
        let facts = json!({ "files_to_change": files, "looked_at": handover.looked_at });
        Ok(done(&handover, PhaseSummary { headline, lines, facts })?)
    }

    fn verb(self) -> &'static str {
        match self.0 {
            FileQuestion::Format => "format",
            FileQuestion::OrganizeImports => "put imports in order",
        }
    }

    async fn execute(self, input: &StepInput, host: &dyn ActorHost) -> Result<StepOutput, Halt> {
        let handover: Handover = from_state(&input.handover)?;
        let mut state: State = match &input.state {
            Value::Null => State::default(),
            state => from_state(state)?,
        };
        if let (Some(why), Some(group)) = (state.undoing.take(), handover.groups.get(state.cursor)) {
            let left = match refused(input) {
                None => "taken back",
                Some(_) => "could not be taken back",
            };
            state.lines.push(format!("{}: {left}, since it made this worse: {why}", group.server));
            state.cursor += 1;
        } else if let (Some(writing), Some(group)) = (state.writing.take(), handover.groups.get(state.cursor))
        {
            if let Some(why) = refused(input) {
                state.lines.push(format!("{}: nothing was changed: {}", group.server, first_line(&why)));
            } else if let Some(worse) = self.worse(host, group, &writing, input).await? {
                state.undoing = Some(worse);
                let undo = Request::Undo { decision: group.apply_key(self) };
                return Ok(ask_for(&state, vec![undo])?);
            } else {
                state.files += writing.paths.len();
                state.lines.push(format!("{}: {} changed", group.server, count(writing.paths.len(), "file")));
            }
            state.cursor += 1;
        }
        while let Some(group) = handover.groups.get(state.cursor) {
            if !stands(&input.decisions, &group.key(self)) {
                state.lines.push(format!("{}: left alone by choice", group.server));
                state.cursor += 1;
                continue;
            }
            let workspace = host.workspaces().iter().find(|w| w.resource_id == group.resource_id);
            let workspace = workspace.ok_or_else(|| internal(format!("{} is gone", group.resource)))?;
            let asked = self.ask(host, workspace, &group.files).await?;
            let mut edits: Vec<FileEdit> = Vec::new();
            for (server, of_server) in asked.edits {
                if server == group.server {
                    edits.extend(of_server.into_iter().flat_map(|(_, edits)| edits));
                }
            }
            if edits.is_empty() {
                state.lines.push(format!("{}: nothing to do any more", group.server));
                state.cursor += 1;
                continue;
            }
            let paths: Vec<String> = touched(&edits).into_iter().collect();
            let errors = check::errors(workspace, &paths).await;
            let draft = self.applying(group, &paths);
            let key = draft.key.clone();
            state.writing = Some(Writing { paths, errors });
            let progress = Progress {
                label: format!("{} {}", group.server, self.deed(group.files.len())),
                done: clamp(state.cursor),
                total: Some(clamp(handover.groups.len())),
            };
            let requests = vec![Request::RecordDecision(draft), apply_edits(&key, group.resource_id, &edits)];
            return Ok(StepOutput { progress: Some(progress), ..ask_for(&state, requests)? });
        }
        let headline = match state.files {
            0 => "Nothing was changed".to_owned(),
            n => format!("{} changed", count(n, "file")),
        };
        let mut lines = std::mem::take(&mut state.lines);
        lines.extend(handover.notes.iter().cloned());
        let facts = json!({ "files_changed": state.files });
        Ok(done(&state, PhaseSummary { headline, lines, facts })?)
    }

    fn applying(self, group: &Group, paths: &[String]) -> DecisionDraft {
        DecisionDraft {
            key: group.apply_key(self),
            decision_type: DecisionType::ImplementationChoice,
            parent: Some(group.key(self)),
            question: format!("How does {} {}?", group.server, self.deed(paths.len())),
            chosen: 0,
            alternatives: vec![
                alternative("All of it at once", "Taken back as a whole when it brings new errors."),
                alternative(LEAVE_ALONE, "Changes nothing after all."),
            ],
            confidence: Some(0.95),
            rationale: format!("{} was decided on; it changes {} now.", group.server, sample(paths)),
            reasoning: None,
            resources: places(group, paths),
            depends_on: vec![group.key(self)],
            context: json!({ "server": group.server, "files": paths }),
            spawn: None,
        }
    }

    /// What got worse by a write: the first file that has more errors than before.
    async fn worse(
        self,
        host: &dyn ActorHost,
        group: &Group,
        writing: &Writing,
        input: &StepInput,
    ) -> Result<Option<String>, Halt> {
        go_on(host)?;
        let workspace = host.workspaces().iter().find(|w| w.resource_id == group.resource_id);
        let workspace = workspace.ok_or_else(|| internal(format!("{} is gone", group.resource)))?;
        let wrote = input.observations.iter().any(|o| matches!(o, Observation::Tool { .. }));
        if !wrote {
            return Ok(None);
        }
        Ok(check::worse(workspace, &writing.errors, &writing.paths).await)
    }

    /// What the first server that does it would change in each file.
    async fn ask(
        self,
        host: &dyn ActorHost,
        workspace: &ActorWorkspace,
        paths: &[String],
    ) -> Result<Asked, Halt> {
        let mut asked = Asked::default();
        for (at, batch) in paths.chunks(BATCH).enumerate() {
            go_on(host)?;
            host.progress(Progress {
                label: format!("Asking how to {}", self.verb()),
                done: clamp(at * BATCH),
                total: Some(clamp(paths.len())),
            });
            let answers = join_all(batch.iter().map(|path| self.ask_file(workspace, path))).await;
            for (path, answer) in batch.iter().zip(answers) {
                match answer {
                    Ok(None) => {}
                    Ok(Some((server, edits))) => {
                        asked.looked_at += 1;
                        let own = edits
                            .iter()
                            .all(|edit| matches!(edit, FileEdit::Edit { path: of, .. } if of == path));
                        if !own {
                            asked.problems.push(format!(
                                "{path} stays as it is: {server} would change other files too"
                            ));
                        } else if !edits.is_empty() {
                            asked.edits.entry(server).or_default().push((path.clone(), edits));
                        }
                    }
                    Err(why) => asked.problems.push(format!("{path} stays as it is: {}", first_line(&why))),
                }
            }
        }
        Ok(asked)
    }

    async fn ask_file(
        self,
        workspace: &ActorWorkspace,
        path: &str,
    ) -> Result<Option<(QualifiedName, Vec<FileEdit>)>, String> {
        let (mut problem, mut clean) = (None, None);
        for server in workspace.languages.servers_for(path) {
            match workspace.languages.file_edits(&server, path, self.0).await {
                // Servers say that they order imports and then offer nothing: the next one may.
                Ok(Some(edits)) if edits.is_empty() && self.0 == FileQuestion::OrganizeImports => {
                    clean.get_or_insert((server, edits));
                }
                Ok(Some(edits)) => return Ok(Some((server, edits))),
                Ok(None) => {}
                Err(why) => _ = problem.get_or_insert(why),
            }
        }
        match (clean, problem) {
            (None, Some(problem)) => Err(problem),
            (clean, _) => Ok(clean),
        }
    }
}

/// What servers said.
#[derive(Default)]
struct Asked {
    edits: BTreeMap<QualifiedName, Vec<(String, Vec<FileEdit>)>>,
    problems: Vec<String>,
    looked_at: usize,
}

fn stands(decisions: &[agents_domain::ports::actor::KnownDecision], key: &str) -> bool {
    decided(decisions, key).is_some_and(|d| match_answer(&d.chosen_option, &d.options) == Some(0))
}

fn refusal(workspace: &ActorWorkspace, kept: Kept<'_>, path: &str) -> Option<String> {
    let untouchable = workspace.untouchable.iter().find(|(of, _)| of == path);
    untouchable
        .map(|(_, why)| why.clone())
        .or_else(|| kept.file(path).map(|text| format!("an invariant keeps it: {text}")))
}

fn places(group: &Group, paths: &[String]) -> Vec<ResourceRef> {
    let place = |path: &String| ResourceRef {
        resource_id: group.resource_id,
        path: path.clone(),
        range: None,
        symbol: None,
        note: None,
    };
    paths.iter().take(MAX_PLACES).map(place).collect()
}
