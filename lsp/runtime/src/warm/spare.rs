//! One server that waits: initialised, shown one file as it is on disk, answered what it asks, and kept from blocking,
//! until somebody takes it.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agents_domain::language_server::{Transport, section};
use agents_domain::ports::language_servers::FileEventKind;
use agents_domain::ports::server_launcher::WarmServer;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::tree::{self, Tree};
use super::wire::{Handed, Recipe};
use crate::activity::Activity;
use crate::framing::{Decoder, encode};
use crate::launch::Launch;
use crate::notes::Note;
use crate::process::{Fate, Process, spawn};
use crate::protocol::METHOD_NOT_FOUND;
use crate::registrations::Registrations;
use crate::{files, uri};

/// How long a server has to answer `initialize`.
const START: Duration = Duration::from_secs(60);
/// A server that does not take a message in this time is ended.
const WRITE: Duration = Duration::from_secs(5);
/// A document is closed when its server has rested for so long.
const REST: Duration = Duration::from_secs(1);
/// It is closed after so long in any case.
const SHOWN_FOR: Duration = Duration::from_secs(60);
/// Things of a kind that are kept of what a server says.
const MAX_KEPT: usize = 2000;
/// The id of `initialize`; whoever takes the server over counts from 1.
const HELLO: i64 = 0;

/// What is known beforehand of who will use a server.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Habits {
    /// A document that is opened, with its language.
    pub document: Option<(PathBuf, String)>,
    /// Answers to `workspace/configuration`, by its `items`.
    pub answers: Vec<(Value, Value)>,
}

/// Where a server stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Starting,
    Waiting,
    /// Ended, or taken.
    Over,
}

/// A server with its streams, on its way to somebody. Killed when it does not get there.
pub(crate) struct Parcel {
    pub handed: Handed,
    pub streams: [OwnedFd; 3],
    process: Process,
}

impl Parcel {
    /// It got there.
    pub(crate) fn delivered(self) {
        self.process.hand_over();
    }
}

/// The handle of a server that waits.
pub(crate) struct Spare {
    pub phase: watch::Receiver<Phase>,
    pub since: Instant,
    take: mpsc::Sender<oneshot::Sender<Option<Parcel>>>,
}

impl Spare {
    /// Starts one; its end is told through `phase`.
    pub(crate) fn start(recipe: Recipe, habits: Habits, notes: PathBuf) -> Self {
        let (told, phase) = watch::channel(Phase::Starting);
        let (take, asked) = mpsc::channel(1);
        tokio::spawn(async move {
            let server = recipe.server.clone();
            if let Err(reason) = live(recipe, habits, &notes, &told, asked).await {
                tracing::warn!(%server, reason, "a server is not kept warm");
            }
            told.send_replace(Phase::Over);
        });
        Self { phase, since: Instant::now(), take }
    }

    /// Takes it, once it is initialised; `None` when it ended or would not know what lies on disk.
    pub(crate) async fn take(mut self, within: Duration) -> Option<Parcel> {
        let ready = self.phase.wait_for(|phase| *phase != Phase::Starting);
        tokio::time::timeout(within, ready).await.ok()?.ok()?;
        let (parcel, taken) = oneshot::channel();
        self.take.send(parcel).await.ok()?;
        taken.await.ok()?
    }
}

/// The life of a server until it is taken, which is also how it ends when the handle is dropped.
async fn live(
    recipe: Recipe,
    habits: Habits,
    notes: &Path,
    phase: &watch::Sender<Phase>,
    mut asked: mpsc::Receiver<oneshot::Sender<Option<Parcel>>>,
) -> Result<(), String> {
    let begun = Instant::now();
    // Before it reads the first file.
    let seen = look(&recipe.root).await.ok_or("its folder has too many files")?;
    let mut server = Server::start(&recipe, &habits).await?;
    server
        .send(&json!({ "jsonrpc": "2.0", "id": HELLO, "method": "initialize", "params": recipe.initialize }))
        .await?;
    while server.said.result.is_null() {
        tokio::select! {
            read = server.read() => { read?; server.take_messages().await?; }
            () = tokio::time::sleep_until(begun + START) => return Err("it does not answer `initialize`".to_owned()),
            gone = asked.recv() => if gone.is_none() { return Ok(()) },
        }
    }
    server.notify("initialized", json!({})).await?;
    if !recipe.settings.is_null() {
        server.notify("workspace/didChangeConfiguration", json!({ "settings": recipe.settings })).await?;
    }
    let pid = server.process.pid;
    let note = Note::write_warm(notes, &recipe.server, &recipe.root, pid, begun.elapsed());
    let mut shown = match &habits.document {
        Some((path, language)) => server.show(&recipe.root, path, language).await?,
        None => None,
    };
    phase.send_replace(Phase::Waiting);
    let mut activity = Activity::of(pid);
    let parcel = loop {
        let look = Instant::now() + Duration::from_millis(200);
        tokio::select! {
            read = server.read() => { read?; server.take_messages().await?; }
            () = tokio::time::sleep_until(look), if shown.is_some() => {
                let rests = activity.idle_since().is_none_or(|since| since.elapsed() > REST);
                if let Some((uri, _)) = shown.take_if(|(_, at)| at.elapsed() > SHOWN_FOR || rests && at.elapsed() > REST) {
                    server.close(&uri).await?;
                }
            }
            taker = asked.recv() => break taker,
        }
    };
    let Some(parcel) = parcel else { return Ok(()) };
    if let Some((uri, _)) = shown {
        server.close(&uri).await?;
    }
    if note.as_ref().is_some_and(Note::is_ended) || !server.catch_up(&recipe.root, &seen).await? {
        let _ = parcel.send(None);
        return Ok(());
    }
    drop(note);
    // A parcel that nobody takes is dropped, and the server killed.
    let _ = parcel
        .send(Some(server.pack().map_err(|error| format!("its streams cannot be passed on: {error}"))?));
    Ok(())
}

async fn look(root: &Path) -> Option<Tree> {
    let root = root.to_owned();
    tokio::task::spawn_blocking(move || tree::look(&root)).await.ok()?
}

struct Server {
    process: Process,
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: ChildStderr,
    decoder: Decoder,
    said: WarmServer,
    watched: Registrations,
    watches: bool,
    settings: Value,
    folders: Value,
    answers: Vec<(Value, Value)>,
    published: HashMap<String, Value>,
}

impl Server {
    async fn start(recipe: &Recipe, habits: &Habits) -> Result<Self, String> {
        let launch = Launch {
            program: recipe.program.clone(),
            args: recipe.args.clone(),
            env: recipe.environment.clone(),
            is_whole_environment: true,
            root: recipe.root.clone(),
            transport: Transport::Stdio,
            init_options: Value::Null,
            secrets: recipe.secrets.clone(),
        };
        let started = spawn(&launch, Fate::MayBeHandedOver).await;
        let started = started.map_err(|error| format!("{}: {error}", recipe.program.display()))?;
        Ok(Self {
            process: started.process,
            stdin: started.stdin,
            stdout: started.stdout,
            stderr: started.stderr,
            decoder: Decoder::default(),
            said: WarmServer::default(),
            watched: Registrations::default(),
            watches: false,
            settings: recipe.settings.clone(),
            folders: recipe.initialize["workspaceFolders"].clone(),
            answers: habits.answers.clone(),
            published: HashMap::new(),
        })
    }

    async fn send(&mut self, message: &Value) -> Result<(), String> {
        let frame = encode(message.to_string().as_bytes());
        match tokio::time::timeout(WRITE, self.stdin.write_all(&frame)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(format!("it cannot be written to: {error}")),
            Err(_) => Err("it does not read what it is sent".to_owned()),
        }
    }

    async fn notify(&mut self, method: &str, params: Value) -> Result<(), String> {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params })).await
    }

    /// Opens a document as it is on disk, if that can be.
    async fn show(
        &mut self,
        root: &Path,
        path: &Path,
        language: &str,
    ) -> Result<Option<(String, Instant)>, String> {
        let relative = path.strip_prefix(root).ok().and_then(Path::to_str);
        let Some(text) = relative.and_then(|path| files::read_text(root, path).ok()) else { return Ok(None) };
        let uri = uri::from_path(path);
        let document = json!({ "uri": uri, "languageId": language, "version": 1, "text": text });
        self.notify("textDocument/didOpen", json!({ "textDocument": document })).await?;
        Ok(Some((uri, Instant::now())))
    }

    async fn close(&mut self, uri: &str) -> Result<(), String> {
        self.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri } })).await
    }

    /// Takes a piece of what the server says and prints. Nothing is lost when this is given up half-way.
    async fn read(&mut self) -> Result<(), String> {
        let mut words = [0; 4096];
        let mut chunk = vec![0; 64 << 10];
        tokio::select! {
            printed = self.stderr.read(&mut words) => match printed {
                // Its end is told by the output.
                Ok(0) | Err(_) => tokio::time::sleep(REST).await,
                Ok(printed) => self.process.tail.push(&words[..printed]),
            },
            read = self.stdout.read(&mut chunk) => match read {
                Ok(0) => return Err(format!("it closed its output; it printed: {}", self.process.tail.text(4))),
                Ok(read) => self.decoder.feed(&chunk[..read]),
                Err(error) => return Err(format!("its output failed: {error}")),
            },
        }
        Ok(())
    }

    async fn take_messages(&mut self) -> Result<(), String> {
        while let Some(body) = self.decoder.next_body().map_err(|error| error.to_string())? {
            let Ok(message) = serde_json::from_slice::<Value>(&body) else { continue };
            self.take(message).await?;
        }
        let noise = self.decoder.take_noise();
        self.process.tail.push(&noise);
        Ok(())
    }

    async fn take(&mut self, mut message: Value) -> Result<(), String> {
        let params = message.get_mut("params").map(Value::take).unwrap_or_default();
        let id = message.get("id").filter(|id| !id.is_null()).cloned();
        match (message["method"].as_str(), id) {
            (Some(method), Some(id)) => {
                let answer = match self.answer(method, params) {
                    Some(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
                    None => {
                        let words = format!("nobody is there for {method}");
                        let error = json!({ "code": METHOD_NOT_FOUND, "message": words });
                        json!({ "jsonrpc": "2.0", "id": id, "error": error })
                    }
                };
                self.send(&answer).await
            }
            (Some("textDocument/publishDiagnostics"), None) => {
                let uri = params["uri"].as_str().unwrap_or_default().to_owned();
                if params["diagnostics"].as_array().is_none_or(Vec::is_empty) {
                    self.published.remove(&uri);
                } else if self.published.len() < MAX_KEPT {
                    self.published.insert(uri, params);
                }
                Ok(())
            }
            (Some("$/progress"), None) => {
                self.said.tokens.retain(|token| *token != params["token"]);
                if params["value"]["kind"] != "end" && self.said.tokens.len() < MAX_KEPT {
                    self.said.tokens.push(params["token"].clone());
                }
                Ok(())
            }
            (None, Some(id)) if id == HELLO => match message.get("error").filter(|error| !error.is_null()) {
                Some(error) => Err(format!("it refuses to initialize: {}", error["message"])),
                None => {
                    self.said.result =
                        Some(message["result"].take()).filter(Value::is_object).unwrap_or(json!({}));
                    Ok(())
                }
            },
            _ => Ok(()),
        }
    }

    /// The answer to what it asks; `None` for what only a person's client knows.
    fn answer(&mut self, method: &str, params: Value) -> Option<Value> {
        Some(match method {
            "workspace/configuration" => {
                let items = &params["items"];
                let known = self.answers.iter().find(|(asked, _)| asked == items);
                let answer = known.map(|(_, answer)| answer.clone()).unwrap_or_else(|| {
                    let items = items.as_array().map(Vec::as_slice).unwrap_or_default();
                    items.iter().map(|item| section(&self.settings, item["section"].as_str())).collect()
                });
                self.said.configured.retain(|(asked, _)| asked != items);
                if self.said.configured.len() < MAX_KEPT {
                    self.said.configured.push((items.clone(), answer.clone()));
                }
                answer
            }
            "client/registerCapability" => {
                self.watched.add(&params);
                for item in params["registrations"].as_array().into_iter().flatten() {
                    self.watches |= item["method"] == "workspace/didChangeWatchedFiles";
                    self.said.registrations.retain(|known| known["id"] != item["id"]);
                    if self.said.registrations.len() < MAX_KEPT {
                        self.said.registrations.push(item.clone());
                    }
                }
                Value::Null
            }
            "client/unregisterCapability" => {
                self.watched.remove(&params);
                for item in params["unregisterations"].as_array().into_iter().flatten() {
                    self.said.registrations.retain(|known| known["id"] != item["id"]);
                }
                Value::Null
            }
            "workspace/workspaceFolders" => self.folders.clone(),
            "workspace/applyEdit" => {
                json!({ "applied": false, "failureReason": "nobody works on these files" })
            }
            "window/workDoneProgress/create" | "window/showMessageRequest" => Value::Null,
            "window/showDocument" => json!({ "success": false }),
            _ if method.starts_with("workspace/") && method.ends_with("/refresh") => Value::Null,
            _ => return None,
        })
    }

    /// Tells it what has changed on disk; `false` when it cannot be told all it has to know.
    async fn catch_up(&mut self, root: &Path, seen: &Tree) -> Result<bool, String> {
        let Some(changes) = look(root).await.and_then(|now| tree::changes(seen, &now)) else {
            return Ok(false);
        };
        if changes.is_empty() {
            return Ok(true);
        }
        if !self.watches {
            return Ok(false);
        }
        let told: Vec<Value> = changes
            .iter()
            .filter(|(path, kind)| self.watched.watches(path, *kind))
            .map(|(path, kind)| {
                let number = match kind {
                    FileEventKind::Created => 1,
                    FileEventKind::Changed => 2,
                    FileEventKind::Deleted => 3,
                };
                json!({ "uri": uri::from_path(path), "type": number })
            })
            .collect();
        if !told.is_empty() {
            self.notify("workspace/didChangeWatchedFiles", json!({ "changes": told })).await?;
        }
        Ok(true)
    }

    /// Everything of it, for somebody else.
    fn pack(self) -> io::Result<Parcel> {
        let Self { process, stdin, stdout, stderr, decoder, mut said, published, .. } = self;
        said.diagnostics = published.into_values().collect();
        let (pid, printed) = (process.pid, process.tail.text(8));
        let handed = Handed { pid, state: said, rest: decoder.into_rest(), printed };
        let streams = [stdin.into_owned_fd()?, stdout.into_owned_fd()?, stderr.into_owned_fd()?];
        Ok(Parcel { handed, streams, process })
    }
}
