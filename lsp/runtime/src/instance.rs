//! One server over one directory: started when first needed, brought back within its budget, given up with a reason.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use agents_domain::language_server::LanguageServerDefinition;
use agents_domain::ports::language_servers::{FileEvent, FileEventKind, ServerState, ServerStatus};
use serde_json::json;
use tokio::sync::{Mutex as AsyncMutex, RwLock, Semaphore, watch};
use tokio::time::Instant;

use crate::client::{Client, Patience, StartError};
use crate::documents::{self, Documents, Snapshot};
use crate::notes::Note;
use crate::runtime::Timing;
use crate::{files, launch, lock, uri};

/// Pulls asked at once; a server that computes one after the other gains nothing from more.
const PULLS: usize = 16;
/// After so many questions in a row without an answer, the rest of a call is not asked.
const MAX_STRIKES: u32 = 16;

/// Why a question to a server has no answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Trouble {
    /// The server ended or was ended meanwhile; asking its successor makes sense.
    Gone(String),
    /// Nothing to be done, for people.
    Problem(String),
}

/// A server of the pool; see the module.
#[derive(Debug)]
pub(crate) struct Instance {
    pub(crate) definition: LanguageServerDefinition,
    /// The workspace, resolved.
    pub(crate) root: PathBuf,
    pub(crate) timing: Timing,
    pub(crate) documents: Arc<Mutex<Documents>>,
    /// When it answered last, for [`Patience::shared`].
    pub(crate) last_answer: Arc<Mutex<Instant>>,
    pub(crate) pulls: Semaphore,
    /// Questions share this; who asks again after a crash holds it alone, so that the next crash has one culprit.
    pub(crate) caution: RwLock<()>,
    /// Questions share this; a preview holds it alone, since the server sees drafts meanwhile.
    pub(crate) speculation: RwLock<()>,
    /// Texts that stand in for those on disk during a preview.
    pub(crate) drafts: Mutex<HashMap<String, Arc<str>>>,
    strikes: AtomicU32,
    /// Texts that the server died of, by path.
    poison: Mutex<HashMap<String, Arc<str>>>,
    current: Mutex<Option<Arc<Client>>>,
    status: Mutex<Status>,
    /// Held while starting, so that many askers start one process.
    starting: AsyncMutex<()>,
    /// Since when it shows no sign of life although its processes work.
    deaf: Mutex<Option<Instant>>,
    /// Held while a suspect is probed; when the last probe began.
    probing: AsyncMutex<Option<Instant>>,
    closing: watch::Sender<bool>,
    /// Where it is noted that the server runs, and the note of the present process.
    notes: Option<PathBuf>,
    note: Mutex<Option<Note>>,
}

#[derive(Debug, Default)]
struct Status {
    failed: Option<String>,
    /// Why the last client ended, when it did.
    ended: Option<String>,
    starts: u64,
    restarts: u32,
    info: Option<String>,
}

impl Instance {
    pub(crate) fn new(
        definition: LanguageServerDefinition,
        root: &Path,
        timing: Timing,
        notes: Option<PathBuf>,
    ) -> Arc<Self> {
        let instance = Arc::new(Self {
            documents: Documents::new(root),
            root: root.to_owned(),
            last_answer: Arc::new(Mutex::new(Instant::now())),
            pulls: Semaphore::new(PULLS),
            caution: RwLock::new(()),
            speculation: RwLock::new(()),
            drafts: Mutex::default(),
            strikes: AtomicU32::new(0),
            poison: Mutex::default(),
            current: Mutex::default(),
            status: Mutex::default(),
            starting: AsyncMutex::new(()),
            deaf: Mutex::default(),
            probing: AsyncMutex::new(None),
            closing: watch::Sender::new(false),
            notes,
            note: Mutex::default(),
            definition,
            timing,
        });
        if instance.definition.health_check.enabled && tokio::runtime::Handle::try_current().is_ok() {
            tokio::spawn(watch_health(Arc::downgrade(&instance)));
        }
        instance
    }

    pub(crate) fn status(&self) -> ServerStatus {
        let running = self.live().is_some();
        let status = lock(&self.status);
        let state = match &status.failed {
            Some(reason) => ServerState::Failed { reason: reason.clone() },
            None if running => ServerState::Running,
            None => ServerState::Idle,
        };
        let server = self.definition.name.clone();
        ServerStatus { server, state, restarts: status.restarts, info: status.info.clone() }
    }

    /// The running client, started when there is none. `Err` says why there cannot be one.
    pub(crate) async fn client(&self, start_timeout: Duration) -> Result<Arc<Client>, String> {
        if let Some(client) = self.live() {
            return Ok(client);
        }
        let mut closing = self.closing.subscribe();
        tokio::select! {
            client = self.start(start_timeout) => client,
            _ = closing.wait_for(|closing| *closing) => Err(format!("{} was closed", self.definition.name)),
        }
    }

    fn live(&self) -> Option<Arc<Client>> {
        lock(&self.current).clone().filter(|client| client.closed().is_none())
    }

    async fn start(&self, timeout: Duration) -> Result<Arc<Client>, String> {
        let _alone = self.starting.lock().await;
        loop {
            if let Some(client) = self.live() {
                return Ok(client);
            }
            self.bury().await;
            let Some(pause) = self.next_start()? else {
                return Err(lock(&self.status).failed.clone().unwrap_or_default());
            };
            tokio::time::sleep(pause).await;
            let generation = lock(&self.status).starts;
            let launch =
                launch::prepare(&self.definition, &self.root).map_err(|reason| self.give_up(&reason))?;
            match Client::start(&launch, &self.definition.workspace_settings, timeout, generation).await {
                Ok(client) => return Ok(self.install(Arc::new(client))),
                Err(StartError::Permanent(reason)) => return Err(self.give_up(&reason)),
                Err(StartError::Crashed(reason)) => lock(&self.status).ended = Some(reason),
            }
        }
    }

    /// Notes why the last client ended, and lets go of it.
    async fn bury(&self) {
        let ended = lock(&self.current).take();
        if let Some(client) = ended {
            let reason = client.post_mortem().await;
            tracing::warn!(server = %self.definition.name, reason, "a language server ended");
            lock(&self.status).ended = Some(reason);
        }
    }

    /// How long to wait before the next start; gives the server up when its budget is used.
    fn next_start(&self) -> Result<Option<Duration>, String> {
        let mut status = lock(&self.status);
        if status.failed.is_some() {
            return Ok(None);
        }
        let ended = lock(&self.note).take().is_some_and(|note| note.is_ended());
        if ended {
            let reason = format!("{} was removed from the registry", self.definition.name);
            status.failed = Some(reason.clone());
            return Err(reason);
        }
        let health = &self.definition.health_check;
        let pause = match &status.ended {
            None => Duration::ZERO,
            Some(reason) if !health.restart_on_failure || status.restarts >= health.max_restarts => {
                let times = match status.restarts {
                    0 => "and is not restarted".to_owned(),
                    1 => "after 1 restart".to_owned(),
                    many => format!("after {many} restarts"),
                };
                let reason = format!("{} failed {times}: {reason}", self.definition.name);
                status.failed = Some(reason.clone());
                return Err(reason);
            }
            Some(_) => {
                status.restarts += 1;
                self.timing.backoff * (1 << (status.restarts - 1).min(5))
            }
        };
        status.starts += 1;
        Ok(Some(pause))
    }

    fn give_up(&self, reason: &str) -> String {
        let reason = format!("{} cannot be started: {reason}", self.definition.name);
        lock(&self.status).failed = Some(reason.clone());
        reason
    }

    fn install(&self, client: Arc<Client>) -> Arc<Client> {
        lock(&self.documents).replay(&client);
        {
            let mut status = lock(&self.status);
            status.info = client.facts.info();
            status.ended = None;
            *lock(&self.note) = self.notes.as_deref().and_then(|folder| {
                let (name, pid) = (&self.definition.name, client.process.pid);
                Note::write(folder, name, &self.root, pid, client.start_time, status.restarts)
            });
        }
        *lock(&self.current) = Some(client.clone());
        if *self.closing.borrow() {
            client.kill("was closed");
        }
        client
    }

    /// Shows the text on disk to the server and keeps the document open while the snapshot lives.
    pub(crate) async fn open(
        self: &Arc<Self>,
        client: &Client,
        path: &str,
        limit: Duration,
    ) -> Result<Snapshot, Trouble> {
        let (text, language) = match self.read(path).await {
            Ok(read) => read,
            Err(problem) => {
                lock(&self.documents).close(client, path);
                return Err(Trouble::Problem(problem));
            }
        };
        if lock(&self.poison).get(path).is_some_and(|poison| **poison == *text) {
            return Err(Trouble::Problem(format!(
                "{} ended when it was shown this text before",
                self.definition.name
            )));
        }
        if !client.shared.room(Instant::now() + limit).await {
            client.kill("does not read what it is sent");
        }
        if let Some(reason) = client.closed() {
            return Err(Trouble::Gone(reason.to_string()));
        }
        documents::open(&self.documents, client, path, text, language)
            .ok_or_else(|| Trouble::Gone("was restarted".to_owned()))
    }

    async fn read(self: &Arc<Self>, path: &str) -> Result<(Arc<str>, &'static str), String> {
        let (this, path) = (self.clone(), path.to_owned());
        tokio::task::spawn_blocking(move || this.read_now(&path)).await.map_err(|error| error.to_string())?
    }

    fn read_now(&self, path: &str) -> Result<(Arc<str>, &'static str), String> {
        let draft = lock(&self.drafts).get(path).cloned();
        let text = match draft {
            Some(text) => text,
            None => Arc::from(files::read_text(&self.root, path)?),
        };
        let language = files::language(&self.root, path).map_or("plaintext", |language| language.as_str());
        Ok((text, language))
    }

    /// Whether the server has a document open.
    pub(crate) fn has_open(&self) -> bool {
        !lock(&self.documents).is_empty()
    }

    /// Shows the server what lies on disk of files it has open, or closes what cannot be read.
    pub(crate) fn show_disk(&self, paths: &[String]) {
        let Some(client) = self.live() else { return };
        for path in paths {
            let read = self.read_now(path);
            let mut documents = lock(&self.documents);
            match read {
                _ if documents.known(path).is_none() => {}
                Ok((text, language)) => _ = documents.show(&client, path, text, language),
                Err(_) => documents.close(&client, path),
            }
        }
    }

    /// Remembers a text that the server died of, so that it is not shown it again.
    pub(crate) fn blame(&self, path: &str, text: Arc<str>) {
        lock(&self.poison).insert(path.to_owned(), text);
    }

    /// How long an answer may take now.
    pub(crate) fn patience(&self, timeout: Duration) -> Patience {
        Patience::shared(timeout, self.last_answer.clone())
    }

    /// Notes an answer.
    pub(crate) fn answered(&self) {
        *lock(&self.last_answer) = Instant::now();
        self.strikes.store(0, Ordering::Relaxed);
    }

    /// Notes a question without an answer.
    pub(crate) fn strike(&self) {
        self.strikes.fetch_add(1, Ordering::Relaxed);
    }

    /// Gives the server another chance: at the start of a call, and to the successor of one that hung.
    pub(crate) fn forgive(&self) {
        self.strikes.store(0, Ordering::Relaxed);
    }

    /// Whether it left so many questions unanswered that more of them are a waste of time.
    pub(crate) fn is_unresponsive(&self) -> bool {
        self.strikes.load(Ordering::Relaxed) >= MAX_STRIKES
    }

    /// Probes a client that let a question time out, and ends it when it shows no sign of life and does not work either,
    /// or for too long.
    pub(crate) async fn suspect(&self, client: &Client) {
        let asked = Instant::now();
        let mut probed = self.probing.lock().await;
        if probed.is_some_and(|at| at >= asked) {
            return;
        }
        *probed = Some(Instant::now());
        if client.closed().is_some() {
            return;
        }
        // What its processes do during the probe is what counts.
        client.idle_since();
        if client.is_alive(self.timing.probe).await {
            *lock(&self.deaf) = None;
            return;
        }
        let deaf = *lock(&self.deaf).get_or_insert_with(|| asked);
        if self.computes(client) && deaf.elapsed() < self.timing.deaf {
            return;
        }
        client.kill("did not answer and showed no sign of life");
        *lock(&self.deaf) = None;
        // The questions it left open are its own fault, not its successor's.
        self.forgive();
    }

    /// Whether its processes work: one that computes hard may be deaf for a while, and is not dead.
    fn computes(&self, client: &Client) -> bool {
        client.idle_since().is_some_and(|since| since.elapsed() < self.timing.quiet)
    }

    /// Tells a running server what changed on disk.
    pub(crate) async fn files_changed(self: &Arc<Self>, events: &[FileEvent], limit: Duration) {
        let Some(client) = self.live() else { return };
        for event in events {
            if lock(&self.documents).known(&event.path).is_none() {
                continue;
            }
            let text = match event.kind {
                FileEventKind::Deleted => None,
                // What cannot be read as text any more is closed, too.
                FileEventKind::Created | FileEventKind::Changed => self.read(&event.path).await.ok(),
            };
            if !client.shared.room(Instant::now() + limit).await {
                return;
            }
            let mut documents = lock(&self.documents);
            match text {
                Some((text, language)) => _ = documents.show(&client, &event.path, text, language),
                None => documents.close(&client, &event.path),
            }
        }
        let changes: Vec<_> = events
            .iter()
            .filter_map(|event| {
                let file = files::resolve(&self.root, &event.path).ok()?;
                let number = match event.kind {
                    FileEventKind::Created => 1,
                    FileEventKind::Changed => 2,
                    FileEventKind::Deleted => 3,
                };
                client
                    .shared
                    .registrations(|registrations| registrations.watches(&file, event.kind))
                    .then(|| json!({ "uri": uri::from_path(&file), "type": number }))
            })
            .collect();
        if !changes.is_empty() {
            client.shared.pushed(|pushed| pushed.mark_change());
            client.shared.notify("workspace/didChangeWatchedFiles", json!({ "changes": changes }));
        }
    }

    /// Shuts the server down in order; what is being started is abandoned.
    pub(crate) async fn shut_down(&self) {
        self.closing.send_replace(true);
        let client = lock(&self.current).take();
        if let Some(client) = client {
            client.shut_down(self.timing.shutdown).await;
        }
        lock(&self.note).take();
    }

    /// Ends the server at once.
    pub(crate) fn kill(&self) {
        self.closing.send_replace(true);
        if let Some(client) = lock(&self.current).take() {
            client.kill("was closed");
        }
        lock(&self.note).take();
    }
}

/// Probes a server now and then while its instance lives, and ends one that is dead on its feet.
async fn watch_health(instance: Weak<Instance>) {
    loop {
        let Some(interval) = instance.upgrade().map(|instance| instance.probe_interval()) else { return };
        tokio::time::sleep(interval).await;
        let Some(instance) = instance.upgrade() else { return };
        if *instance.closing.borrow() {
            return;
        }
        if let Some(client) = instance.live()
            && !instance.computes(&client)
        {
            instance.suspect(&client).await;
        }
    }
}

impl Instance {
    fn probe_interval(&self) -> Duration {
        let seconds = self.definition.health_check.interval_seconds.max(10);
        self.timing.probe_interval.unwrap_or(Duration::from_secs(seconds.into()))
    }
}
