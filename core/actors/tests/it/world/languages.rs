//! Language servers over files in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use agents_domain::QualifiedName;
use agents_domain::diagnostics::Diagnostic;
use agents_domain::ports::BoxFuture;
use agents_domain::ports::language_servers::{
    CodeActionOffer, FileDiagnostics, FileEvent, FileEventKind, LanguageWorkspace, ServerState, ServerStatus,
};

use super::Files;

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

/// The servers over the files. They know a file as it was when they first saw it, until they are told that it changed.
pub struct FakeLanguages {
    disk: Arc<Mutex<Files>>,
    seen: Mutex<Files>,
    view: Mutex<Option<Arc<Files>>>,
    servers: Vec<Server>,
    pub answers: Mutex<BTreeMap<String, usize>>,
    pub asked: AtomicUsize,
}

impl FakeLanguages {
    /// Fresh servers.
    pub fn new(disk: Arc<Mutex<Files>>, servers: Vec<Server>) -> Self {
        Self {
            disk,
            seen: Mutex::default(),
            view: Mutex::default(),
            servers,
            answers: Mutex::default(),
            asked: AtomicUsize::new(0),
        }
    }

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
