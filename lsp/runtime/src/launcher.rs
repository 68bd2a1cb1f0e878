//! Servers for somebody else's client: the process with its streams, read and written by threads that may block.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agents_domain::language_server::LanguageServerDefinition;
use agents_domain::ports::BoxFuture;
use agents_domain::ports::server_launcher::{
    Hello, LaunchedServer, ServerLauncher, ServerOutput, ServerProcess, WatchFilter,
};
use agents_grammars::LanguageId;
use serde_json::{Value, json};
use tokio::net::unix::pipe;
use tokio::process::ChildStdin;
use tokio::time::Instant;

use crate::activity::Activity;
use crate::framing::Decoder;
use crate::notes::Note;
use crate::process::{Process, Tail, drain};
use crate::registrations::Registrations;
use crate::transport::{Opened, Streams, start};
use crate::warm::{self, Lease, Taken};
use crate::{Runtime, files, launch, lock};

impl ServerLauncher for Runtime {
    fn launch<'a>(
        &'a self,
        definition: &'a LanguageServerDefinition,
        root: &'a Path,
        within: Duration,
        hello: &'a Hello<'a>,
    ) -> BoxFuture<'a, Result<LaunchedServer, String>> {
        Box::pin(async move {
            let begun = Instant::now();
            let launch = launch::prepare(definition, root)?;
            let initialize = hello(&launch.root, &launch.init_options);
            let note = |pid| {
                let folder = self.notes()?;
                Note::write(folder, &definition.name, &launch.root, pid, begun.elapsed(), 0)
            };
            let mut lease = None;
            if let Some(warm) = self.warm_servers().cloned() {
                let (server, how, greeting) = (definition.clone(), launch.clone(), initialize.clone());
                let look = move || warm::take(&warm, &server, &how, &greeting);
                match tokio::task::spawn_blocking(look).await.ok().flatten() {
                    Some((lease, Some(taken))) => {
                        let secrets = launch.secrets.clone();
                        return adopted(taken, lease, secrets, note, (launch.root.clone(), initialize));
                    }
                    Some((in_use, None)) => lease = Some(in_use),
                    None => {}
                }
            }
            let Opened { process, streams } = start(&launch, Instant::now() + within).await?;
            let (input, output, stdin) = blocking(streams).map_err(unusable)?;
            [&input, &output].into_iter().for_each(widen);
            let (tail, note) = (process.tail.clone(), note(process.pid));
            let output =
                Output { stream: output, decoder: Decoder::default(), chunk: vec![0; 64 << 10], tail };
            Ok(LaunchedServer {
                input,
                output: Box::new(output),
                process: Arc::new(Lent::new(process, note, lease, stdin)),
                root: launch.root,
                initialize,
                warm: None,
            })
        })
    }

    fn serves(&self, definition: &LanguageServerDefinition, language: &str) -> bool {
        match LanguageId::from_name(language) {
            Some(known) => files::serves(&definition.languages, known),
            None => definition.languages.iter().any(|name| name.eq_ignore_ascii_case(language)),
        }
    }

    fn languages(&self, definition: &LanguageServerDefinition) -> Vec<String> {
        let mut names = Vec::new();
        for name in &definition.languages {
            let name = LanguageId::from_name(name).map_or(name.as_str(), |known| known.as_str());
            let variant = match name {
                "typescript" => Some("typescriptreact"),
                "javascript" => Some("javascriptreact"),
                _ => None,
            };
            names.extend(std::iter::once(name).chain(variant).map(str::to_owned));
        }
        names
    }

    fn watches(&self, options: &Value) -> WatchFilter {
        let mut registrations = Registrations::default();
        registrations.add(&json!({ "registrations": [
            { "id": "watch", "method": "workspace/didChangeWatchedFiles", "registerOptions": options },
        ] }));
        Box::new(move |path, kind| registrations.watches(path, kind))
    }
}

/// How long its processes must do nothing for a server to be at rest.
const QUIET: Duration = Duration::from_millis(300);

/// What a pipe to or from a server may hold, so that a long answer is passed on in one piece.
#[cfg(target_os = "linux")]
const PIPE: i32 = 1 << 20;

/// Widens a pipe, where the system lets us.
fn widen(stream: &File) {
    #[cfg(target_os = "linux")]
    let _ = nix::fcntl::fcntl(stream, nix::fcntl::FcntlArg::F_SETPIPE_SZ(PIPE));
    #[cfg(not(target_os = "linux"))]
    let _ = stream;
}

/// A server that waited for us.
fn adopted(
    taken: Taken,
    lease: Lease,
    secrets: Vec<String>,
    note: impl Fn(i32) -> Option<Note>,
    (root, initialize): (PathBuf, Value),
) -> Result<LaunchedServer, String> {
    let Taken { handed, input, output, errors } = taken;
    [&input, &output].into_iter().for_each(widen);
    let tail = Arc::new(Tail::hiding(secrets));
    tail.push(handed.printed.as_bytes());
    let process = Process::adopt(handed.pid, tail.clone());
    let errors = pipe::Receiver::from_owned_fd(errors).map_err(unusable)?;
    tokio::spawn(drain(errors, tail.clone()));
    let mut decoder = Decoder::default();
    decoder.feed(&handed.rest);
    let output = Output { stream: output, decoder, chunk: vec![0; 64 << 10], tail };
    let note = note(handed.pid);
    let process = Arc::new(Lent::new(process, note, Some(lease), None));
    let warm = Some(handed.state);
    Ok(LaunchedServer { input, output: Box::new(output), process, root, initialize, warm })
}

fn unusable(error: std::io::Error) -> String {
    format!("its streams cannot be used: {error}")
}

/// Streams that block, and the standard input that must be kept open with a connection.
fn blocking(streams: Streams) -> std::io::Result<(File, File, Option<ChildStdin>)> {
    Ok(match streams {
        Streams::Stdio(stdin, stdout) => {
            (File::from(stdin.into_owned_fd()?), File::from(stdout.into_owned_fd()?), None)
        }
        Streams::Tcp(stream, stdin) => {
            let stream = stream.into_std()?;
            stream.set_nonblocking(false)?;
            let stream = OwnedFd::from(stream);
            (File::from(stream.try_clone()?), File::from(stream), Some(stdin))
        }
    })
}

struct Lent {
    process: Process,
    activity: Mutex<Activity>,
    note: Option<Note>,
    lease: Option<Lease>,
    _stdin: Option<ChildStdin>,
}

impl Lent {
    fn new(process: Process, note: Option<Note>, lease: Option<Lease>, stdin: Option<ChildStdin>) -> Self {
        let activity = Mutex::new(Activity::of(process.pid));
        Self { process, activity, note, lease, _stdin: stdin }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // The next one is not started beside this one.
        self.process.kill();
        if let Some(lease) = &self.lease {
            if self.is_removed() {
                lease.forget();
            }
            lease.end();
        }
    }
}

impl ServerProcess for Lent {
    fn kill(&self) {
        self.process.kill();
    }

    fn is_removed(&self) -> bool {
        self.note.as_ref().is_some_and(Note::is_ended)
    }

    fn computes(&self) -> bool {
        lock(&self.activity).idle_since().is_some_and(|since| since.elapsed() < QUIET)
    }

    fn is_shown(&self, path: &Path, language: &str) {
        if let Some(lease) = &self.lease {
            lease.is_shown(path, language);
        }
    }

    fn is_configured(&self, items: &Value, answer: &Value) {
        if let Some(lease) = &self.lease {
            lease.is_configured(items, answer);
        }
    }

    fn printed(&self, lines: usize) -> String {
        self.process.tail.text(lines)
    }

    fn ended(&self, within: Duration) -> BoxFuture<'_, Option<String>> {
        Box::pin(self.process.exited(within))
    }
}

struct Output {
    stream: File,
    decoder: Decoder,
    chunk: Vec<u8>,
    tail: Arc<Tail>,
}

impl ServerOutput for Output {
    fn next_message(&mut self) -> Result<Vec<u8>, String> {
        loop {
            if let Some(body) = self.decoder.next_body().map_err(|error| error.to_string())? {
                return Ok(body);
            }
            let noise = self.decoder.take_noise();
            if !noise.is_empty() {
                self.tail.push(&noise);
            }
            // A long body is read to where it stays.
            if let Some((mut body, missing)) = self.decoder.take_begun_body() {
                let wanted = body.len() + missing;
                let read = (&mut self.stream).take(missing as u64).read_to_end(&mut body);
                read.map_err(|error| format!("its output failed: {error}"))?;
                if body.len() < wanted {
                    return Err("closed its output".to_owned());
                }
                return Ok(body);
            }
            match self.stream.read(&mut self.chunk) {
                Ok(0) => return Err("closed its output".to_owned()),
                Ok(read) => self.decoder.feed(&self.chunk[..read]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("its output failed: {error}")),
            }
        }
    }
}
