//! Files in memory, language servers that look at them, and an engine that carries requests out as the real one does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use agents_actors::FixDiagnostics;
use agents_domain::QualifiedName;
use agents_domain::decision::{Alternative, DecisionType};
use agents_domain::diagnostics::{Diagnostic, Severity};
use agents_domain::ids::{DecisionId, ResourceId};
use agents_domain::plan::{AwaitingKind, Phase, PhaseSummary};
use agents_domain::ports::BoxFuture;
use agents_domain::ports::actor::{
    Actor, ActorFailure, ActorHost, ActorWorkspace, DecisionDraft, FileEntry, KnownDecision, Observation,
    Progress, Request, StepInput, StepOutcome, StepOutput,
};
use agents_domain::ports::language_servers::{
    CodeActionOffer, FileDiagnostics, FileEvent, FileEventKind, LanguageWorkspace, ServerState, ServerStatus,
};
use agents_domain::text::{FileEdit, Range, TextEdit, apply_edits};
use serde_json::{Value, json};

pub type Files = BTreeMap<String, String>;

/// What a fake server finds in a file: a diagnostic and what it offers for it.
pub type Found = (Diagnostic, Vec<CodeActionOffer>);

type Lint = Arc<dyn Fn(&Files, &str) -> Vec<Found> + Send + Sync>;

/// A fake server.
#[derive(Clone)]
pub struct Server {
    pub name: QualifiedName,
    pub ending: &'static str,
    pub lint: Lint,
    /// Files that it never answers for.
    pub mute: BTreeSet<String>,
    /// It answers this many times, then it is dead.
    pub dies_after: usize,
    /// It does not tell what it offers.
    pub no_actions: bool,
}

pub fn server(
    name: &str,
    ending: &'static str,
    lint: impl Fn(&Files, &str) -> Vec<Found> + Send + Sync + 'static,
) -> Server {
    Server {
        name: name.parse().unwrap(),
        ending,
        lint: Arc::new(lint),
        mute: BTreeSet::new(),
        dies_after: usize::MAX,
        no_actions: false,
    }
}

/// Everything outside the actor.
pub struct World {
    pub files: Arc<Mutex<Files>>,
    pub servers: Vec<Server>,
    pub workspace: ActorWorkspace,
    pub progress: Mutex<Vec<Progress>>,
    /// Calls of `stopping` until it says yes, once.
    pub stop_in: AtomicUsize,
    pub languages: Arc<FakeLanguages>,
}

/// The servers over the files. They know a file as it was when they first saw it, until they are told that it changed.
pub struct FakeLanguages {
    disk: Arc<Mutex<Files>>,
    seen: Mutex<Files>,
    view: Mutex<Option<Arc<Files>>>,
    servers: Vec<Server>,
    pub answers: Mutex<BTreeMap<String, usize>>,
    pub asked: AtomicUsize,
}

pub const RESOURCE: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

pub fn resource() -> ResourceId {
    RESOURCE.parse().unwrap()
}

impl World {
    pub fn new(files: &[(&str, &str)], servers: Vec<Server>) -> Self {
        let files: Files = files.iter().map(|(path, text)| ((*path).into(), (*text).into())).collect();
        Self::over(Arc::new(Mutex::new(files)), servers)
    }

    /// The same files with fresh servers, as after a restart.
    pub fn restarted(&self) -> Self {
        let mut world = Self::over(self.files.clone(), self.servers.clone());
        world.workspace.untouchable.clone_from(&self.workspace.untouchable);
        world.workspace.read_only = self.workspace.read_only;
        world
    }

    fn over(files: Arc<Mutex<Files>>, servers: Vec<Server>) -> Self {
        let languages = Arc::new(FakeLanguages {
            disk: files.clone(),
            seen: Mutex::default(),
            view: Mutex::default(),
            servers: servers.clone(),
            answers: Mutex::default(),
            asked: AtomicUsize::new(0),
        });
        let workspace = ActorWorkspace {
            resource_id: resource(),
            name: "local/repo".to_owned(),
            root: "/sandbox".into(),
            read_only: false,
            languages: languages.clone(),
            untouchable: Vec::new(),
        };
        Self {
            files,
            servers,
            workspace,
            progress: Mutex::default(),
            stop_in: AtomicUsize::new(usize::MAX),
            languages,
        }
    }

    pub fn text(&self, path: &str) -> String {
        self.files.lock().unwrap()[path].clone()
    }
}

impl ActorHost for World {
    fn workspaces(&self) -> &[ActorWorkspace] {
        std::slice::from_ref(&self.workspace)
    }

    fn files(&self, _: ResourceId) -> Result<Vec<FileEntry>, ActorFailure> {
        let files = self.files.lock().unwrap();
        Ok(files
            .iter()
            .map(|(path, text)| FileEntry { path: path.clone(), size: text.len() as u64 })
            .collect())
    }

    fn read(&self, _: ResourceId, path: &str) -> Result<Vec<u8>, ActorFailure> {
        let text = self.files.lock().unwrap().get(path).cloned();
        text.map(String::into_bytes).ok_or_else(|| ActorFailure {
            message: format!("{path} is not there"),
            category: "io".to_owned(),
            transient: false,
            hints: Vec::new(),
        })
    }

    fn progress(&self, progress: Progress) {
        self.progress.lock().unwrap().push(progress);
    }

    fn stopping(&self) -> bool {
        let left = self.stop_in.load(Ordering::SeqCst);
        match left {
            usize::MAX => false,
            0 => {
                self.stop_in.store(usize::MAX, Ordering::SeqCst);
                true
            }
            left => {
                self.stop_in.store(left - 1, Ordering::SeqCst);
                false
            }
        }
    }
}

impl FakeLanguages {
    fn see(&self, path: &str) {
        let disk = self.disk.lock().unwrap();
        let mut seen = self.seen.lock().unwrap();
        if let Some(text) = disk.get(path)
            && !seen.contains_key(path)
        {
            seen.insert(path.to_owned(), text.clone());
            *self.view.lock().unwrap() = None;
        }
    }

    /// All files, those that are open as the servers know them.
    fn view(&self) -> Arc<Files> {
        let mut view = self.view.lock().unwrap();
        let make = || {
            let mut files = self.disk.lock().unwrap().clone();
            files.extend(self.seen.lock().unwrap().clone());
            Arc::new(files)
        };
        view.get_or_insert_with(make).clone()
    }
}

impl LanguageWorkspace for FakeLanguages {
    fn servers_for(&self, path: &str) -> Vec<QualifiedName> {
        let serving = self.servers.iter().filter(|server| path.ends_with(server.ending));
        serving.map(|server| server.name.clone()).collect()
    }

    fn servers(&self) -> Vec<ServerStatus> {
        let answers = self.answers.lock().unwrap();
        let dead = |s: &Server| answers.get(&s.name.to_string()).copied().unwrap_or(0) >= s.dies_after;
        let state = |server: &Server| match dead(server) {
            true => ServerState::Failed { reason: "exited with status 1".to_owned() },
            false => ServerState::Running,
        };
        let status = |server: &Server| ServerStatus {
            server: server.name.clone(),
            state: state(server),
            restarts: 0,
            info: None,
        };
        self.servers.iter().map(status).collect()
    }

    fn diagnostics<'a>(&'a self, paths: &'a [String]) -> BoxFuture<'a, Vec<(String, Vec<FileDiagnostics>)>> {
        Box::pin(async move {
            for path in paths {
                self.see(path);
            }
            let view = self.view();
            let mut out = Vec::new();
            for path in paths {
                let mut of_file = Vec::new();
                for server in self.servers.iter().filter(|server| path.ends_with(server.ending)) {
                    self.asked.fetch_add(1, Ordering::SeqCst);
                    let mut answers = self.answers.lock().unwrap();
                    let answered = answers.entry(server.name.to_string()).or_insert(0);
                    let silent = server.mute.contains(path) || *answered >= server.dies_after;
                    *answered += usize::from(!silent);
                    of_file.push(FileDiagnostics {
                        server: server.name.clone(),
                        diagnostics: (!silent).then(|| {
                            (server.lint)(&view, path).into_iter().map(|(diagnostic, _)| diagnostic).collect()
                        }),
                        problem: silent.then(|| "no answer within 10 s".to_owned()),
                    });
                }
                out.push((path.clone(), of_file));
            }
            out
        })
    }

    fn code_actions<'a>(
        &'a self,
        server: &'a QualifiedName,
        path: &'a str,
        diagnostic: &'a Diagnostic,
    ) -> BoxFuture<'a, Result<Vec<CodeActionOffer>, String>> {
        Box::pin(async move {
            let server = self.servers.iter().find(|known| known.name == *server).ok_or("unknown")?;
            if server.no_actions {
                return Err("it has no code actions".to_owned());
            }
            let found = (server.lint)(&self.view(), path);
            let same = found.into_iter().find(|(known, _)| known == diagnostic);
            Ok(same.map(|(_, offers)| offers).unwrap_or_default())
        })
    }

    fn files_changed<'a>(&'a self, events: &'a [FileEvent]) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let disk = self.disk.lock().unwrap();
            let mut seen = self.seen.lock().unwrap();
            *self.view.lock().unwrap() = None;
            for event in events {
                match (event.kind, disk.get(&event.path)) {
                    (FileEventKind::Deleted, _) | (_, None) => _ = seen.remove(&event.path),
                    (_, Some(text)) => {
                        if let Some(known) = seen.get_mut(&event.path) {
                            known.clone_from(text);
                        }
                    }
                }
            }
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// How a person answers a decision, given its draft; `None` lets the proposal stand.
pub type Answer = Box<dyn Fn(&DecisionDraft) -> Option<String>>;

/// An engine in small: commits a step's state and requests, carries these out, goes on.
pub struct Engine {
    pub world: World,
    pub arguments: BTreeMap<String, Value>,
    pub read_only: bool,
    pub decisions: Vec<KnownDecision>,
    pub drafts: Vec<DecisionDraft>,
    pub handover: Value,
    pub answer: Answer,
    /// Decision, file and text before, of every write.
    pub writes: Vec<(String, String, Option<String>)>,
    /// Every request, as a word and what it is about.
    pub log: Vec<String>,
    /// Requests whose log entry starts with this fail.
    pub fail: Option<String>,
    /// After every step the servers are fresh, and each step is asked twice.
    pub crashes: bool,
    pub steps: usize,
    /// Answers to questions about servers.
    pub replies: Vec<String>,
    pub asked: Vec<(AwaitingKind, String, Vec<String>)>,
}

impl Engine {
    pub fn new(world: World) -> Self {
        Self {
            world,
            arguments: BTreeMap::new(),
            read_only: false,
            decisions: vec![KnownDecision {
                decision_id: DecisionId::from_ulid(Default::default()),
                key: Some("root".to_owned()),
                decision_type: DecisionType::PromptDefinition,
                question: "What shall be done?".to_owned(),
                chosen_option: "Fix it".to_owned(),
                options: vec!["Fix it".to_owned()],
            }],
            drafts: Vec::new(),
            handover: Value::Null,
            answer: Box::new(|_| None),
            writes: Vec::new(),
            log: Vec::new(),
            fail: None,
            crashes: false,
            steps: 0,
            replies: Vec::new(),
            asked: Vec::new(),
        }
    }

    /// Both phases; the summaries.
    pub fn both(&mut self) -> (PhaseSummary, PhaseSummary) {
        let strategy = self.run(Phase::Strategize).unwrap();
        (strategy, self.run(Phase::Execute).unwrap())
    }

    pub fn run(&mut self, phase: Phase) -> Result<PhaseSummary, ActorFailure> {
        self.run_actor(&FixDiagnostics, phase)
    }

    pub fn run_actor(&mut self, actor: &dyn Actor, phase: Phase) -> Result<PhaseSummary, ActorFailure> {
        let mut state = Value::Null;
        let mut observations = Vec::new();
        let mut guidance = Vec::new();
        for _ in 0..1000 {
            let input = StepInput {
                phase,
                description: String::new(),
                definition_of_done: String::new(),
                arguments: self.arguments.clone(),
                read_only: self.read_only,
                state: state.clone(),
                observations: std::mem::take(&mut observations),
                guidance: std::mem::take(&mut guidance),
                handover: self.handover.clone(),
                decisions: self.decisions.clone(),
            };
            let mut output = self.step(actor, input.clone())?;
            if self.crashes {
                // Killed before the commit: the step is asked again, by a new process.
                self.world = self.world.restarted();
                let again = self.step(actor, input)?;
                assert_eq!(again, output, "a step that is asked twice gives the same");
                output = again;
            }
            self.steps += 1;
            state = serde_json::from_str(&output.state.to_string()).unwrap();
            for (at, request) in output.requests.into_iter().enumerate() {
                match self.carry_out(request) {
                    Ok(observation) => observations.push(observation),
                    Err(message) => {
                        observations.push(Observation::Failed { request: at, message });
                        break;
                    }
                }
            }
            if self.crashes {
                self.world = self.world.restarted();
            }
            match output.outcome {
                StepOutcome::Continue => {}
                StepOutcome::Done(summary) => {
                    self.handover = state;
                    return Ok(summary);
                }
                StepOutcome::Ask { kind, question, options } => {
                    self.asked.push((kind, question, options));
                    guidance = vec![self.replies.remove(0)];
                }
            }
        }
        panic!("the actor does not end");
    }

    fn step(&self, actor: &dyn Actor, input: StepInput) -> Result<StepOutput, ActorFailure> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(actor.step(input, &self.world))
    }

    fn carry_out(&mut self, request: Request) -> Result<Observation, String> {
        let entry = match &request {
            Request::RecordDecision(draft) => format!("decide {}", draft.key),
            Request::Tool { call_id, .. } => format!("tool {call_id}"),
            Request::Checkpoint { decision, .. } => format!("checkpoint {decision}"),
            Request::Undo { decision } => format!("undo {decision}"),
        };
        self.log.push(entry.clone());
        if self.fail.as_ref().is_some_and(|fail| entry.starts_with(fail)) {
            return Err("refused by the test".to_owned());
        }
        match request {
            Request::RecordDecision(draft) => self.record(draft),
            Request::Tool { call_id, args, decision, .. } => {
                let result = self.apply(&args, &decision.ok_or("a write needs a decision")?)?;
                Ok(Observation::Tool { call_id, result })
            }
            Request::Checkpoint { decision, .. } => Ok(Observation::Checkpointed { decision }),
            Request::Undo { decision } => self.undo(decision),
        }
    }

    fn record(&mut self, draft: DecisionDraft) -> Result<Observation, String> {
        check_draft(&draft);
        let known = |key: &str| self.decisions.iter().find(|d| d.key.as_deref() == Some(key)).cloned();
        for key in draft.depends_on.iter().chain(&draft.parent) {
            known(key).ok_or_else(|| format!("there is no decision {key}"))?;
        }
        if let Some(known) = known(&draft.key) {
            return Ok(Observation::Decided(known));
        }
        let answer = (self.answer)(&draft);
        let options: Vec<String> = draft.alternatives.iter().map(|a| a.option.clone()).collect();
        let decision = KnownDecision {
            decision_id: DecisionId::from_ulid(Default::default()),
            key: Some(draft.key.clone()),
            decision_type: draft.decision_type,
            question: draft.question.clone(),
            chosen_option: answer.unwrap_or_else(|| options[draft.chosen].clone()),
            options,
        };
        self.decisions.push(decision.clone());
        self.drafts.push(draft);
        Ok(Observation::Decided(decision))
    }

    fn apply(&mut self, args: &Value, decision: &str) -> Result<Value, String> {
        assert_eq!(args["resource"], json!(RESOURCE));
        let edits: Vec<FileEdit> = serde_json::from_value(args["edits"].clone()).unwrap();
        let mut files = self.world.files.lock().unwrap();
        let mut after = files.clone();
        for edit in &edits {
            match edit {
                FileEdit::Edit { path, edits } => {
                    let text = after.get_mut(path).ok_or_else(|| format!("{path} is not there"))?;
                    *text = apply_edits(text, edits).map_err(|error| error.to_string())?;
                }
                FileEdit::Create { path, text } => {
                    let old = after.insert(path.clone(), text.clone());
                    old.map_or(Ok(()), |_| Err(format!("{path} is there already")))?;
                }
                FileEdit::Rename { path, to } => {
                    let text = after.remove(path).ok_or_else(|| format!("{path} is not there"))?;
                    after.insert(to.clone(), text);
                }
                FileEdit::Delete { path } => _ = after.remove(path),
            }
        }
        let paths: BTreeSet<String> = files.keys().chain(after.keys()).cloned().collect();
        let mut changed = Vec::new();
        for path in paths {
            let kind = match (files.get(&path), after.get(&path)) {
                (before, now) if before == now => continue,
                (None, _) => "added",
                (_, None) => "deleted",
                _ => "modified",
            };
            self.writes.push((decision.to_owned(), path.clone(), files.get(&path).cloned()));
            changed.push(json!({"path": path, "kind": kind}));
        }
        *files = after;
        Ok(json!({"files": changed}))
    }

    fn undo(&mut self, decision: String) -> Result<Observation, String> {
        let mut files = self.world.files.lock().unwrap();
        while let Some(at) = self.writes.iter().rposition(|(by, ..)| *by == decision) {
            let (_, path, before) = self.writes.remove(at);
            if self.writes[at..].iter().any(|(_, other, _)| *other == path) {
                return Err(format!("{path} was changed by another decision since"));
            }
            match before {
                Some(text) => _ = files.insert(path, text),
                None => _ = files.remove(&path),
            }
        }
        Ok(Observation::Undone { decision })
    }

    pub fn draft(&self, key: &str) -> &DecisionDraft {
        self.drafts.iter().find(|draft| draft.key == key).unwrap_or_else(|| panic!("no decision {key}"))
    }

    pub fn chosen(&self, key: &str) -> String {
        let draft = self.draft(key);
        draft.alternatives[draft.chosen].option.clone()
    }

    pub fn options(&self, key: &str) -> Vec<String> {
        self.draft(key).alternatives.iter().map(|alternative| alternative.option.clone()).collect()
    }
}

/// What holds for every decision: DEC-002, DEC-015.
fn check_draft(draft: &DecisionDraft) {
    let options: BTreeSet<&str> =
        draft.alternatives.iter().map(|a: &Alternative| a.option.as_str()).collect();
    assert_eq!(options.len(), draft.alternatives.len(), "options differ: {draft:?}");
    assert!(draft.chosen < draft.alternatives.len());
    assert!(draft.alternatives.len() >= 2, "a decision has an alternative: {draft:?}");
    assert!((0.0..=1.0).contains(&draft.confidence.unwrap()));
    assert!(!draft.rationale.is_empty() && draft.question.contains('?'));
    assert!(draft.resources.len() <= 200);
}

pub fn diagnostic(
    code: &str,
    severity: Severity,
    line: u32,
    columns: (u32, u32),
    message: &str,
) -> Diagnostic {
    let range = Range::new((line, columns.0), (line, columns.1));
    Diagnostic {
        range,
        severity,
        code: Some(code.to_owned()),
        source: Some("fake".to_owned()),
        message: message.to_owned(),
        raw: json!({"data": [line, columns.0]}),
    }
}

pub fn edit(start: (u32, u32), end: (u32, u32), new_text: &str) -> TextEdit {
    TextEdit { range: Range::new(start, end), new_text: new_text.to_owned() }
}

pub fn in_file(path: &str, edits: Vec<TextEdit>) -> FileEdit {
    FileEdit::Edit { path: path.to_owned(), edits }
}

pub fn offer(title: &str, preferred: bool, edits: Vec<FileEdit>) -> CodeActionOffer {
    CodeActionOffer {
        title: title.to_owned(),
        kind: Some("quickfix".to_owned()),
        is_preferred: preferred,
        edits: Some(edits),
        unusable: None,
    }
}

/// Lines of a file with their numbers.
pub fn lines(files: &Files, path: &str) -> Vec<(u32, String)> {
    let text = files.get(path).cloned().unwrap_or_default();
    text.lines().enumerate().map(|(at, line)| (at as u32, line.to_owned())).collect()
}

/// As ruff: unused imports with a preferred fix and a way to suppress.
pub fn unused_imports(files: &Files, path: &str) -> Vec<Found> {
    let text = files.get(path).cloned().unwrap_or_default();
    let mut found = Vec::new();
    for (line, content) in lines(files, path) {
        let Some(names) = content.strip_prefix("import ") else { continue };
        let names: Vec<&str> = names.split(", ").collect();
        if content.contains("# noqa") {
            continue;
        }
        let mut column = "import ".len() as u32;
        for (at, name) in names.iter().enumerate() {
            let end = column + name.len() as u32;
            let used = text.matches(&format!("{name}.")).count() > 0;
            if !used {
                let removal = match (names.len(), at + 1 == names.len()) {
                    (1, _) => edit((line, 0), (line + 1, 0), ""),
                    (_, false) => edit((line, column), (line, end + 2), ""),
                    (_, true) => edit((line, column - 2), (line, end), ""),
                };
                let width = content.len() as u32;
                found.push((
                    diagnostic(
                        "F401",
                        Severity::Warning,
                        line,
                        (column, end),
                        &format!("`{name}` imported but unused"),
                    ),
                    vec![
                        offer(
                            &format!("Ruff (F401): Remove unused import: `{name}`"),
                            true,
                            vec![in_file(path, vec![removal])],
                        ),
                        offer(
                            "Ruff (F401): Disable for this line",
                            false,
                            vec![in_file(path, vec![edit((line, width), (line, width), "  # noqa: F401")])],
                        ),
                    ],
                ));
            }
            column = end + 2;
        }
    }
    found
}

/// A finding in each line with `word`, fixed by putting `by` in its place.
pub fn word(
    code: &'static str,
    severity: Severity,
    word: &'static str,
    by: &'static str,
) -> impl Fn(&Files, &str) -> Vec<Found> + Send + Sync + 'static {
    move |files, path| {
        let mut found = Vec::new();
        for (line, content) in lines(files, path) {
            for (at, _) in content.match_indices(word) {
                let (start, end) = (at as u32, (at + word.len()) as u32);
                let fix = in_file(path, vec![edit((line, start), (line, end), by)]);
                found.push((
                    diagnostic(code, severity, line, (start, end), &format!("`{word}` is not good")),
                    vec![offer(&format!("Replace `{word}` by `{by}`"), true, vec![fix])],
                ));
            }
        }
        found
    }
}
