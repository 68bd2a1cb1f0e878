//! Servers for somebody else's client: the process with its streams, read and written by threads that may block.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agents_domain::language_server::LanguageServerDefinition;
use agents_domain::ports::BoxFuture;
use agents_domain::ports::server_launcher::{
    LaunchedServer, ServerLauncher, ServerOutput, ServerProcess, WatchFilter,
};
use agents_grammars::LanguageId;
use serde_json::{Value, json};
use tokio::process::ChildStdin;
use tokio::time::Instant;

use crate::framing::Decoder;
use crate::notes::Note;
use crate::process::{Process, Tail};
use crate::registrations::Registrations;
use crate::transport::{Opened, Streams, start};
use crate::{Runtime, files, launch};

impl ServerLauncher for Runtime {
    fn launch<'a>(
        &'a self,
        definition: &'a LanguageServerDefinition,
        root: &'a Path,
        within: Duration,
    ) -> BoxFuture<'a, Result<LaunchedServer, String>> {
        Box::pin(async move {
            let begun = Instant::now();
            let launch = launch::prepare(definition, root)?;
            let Opened { process, streams } = start(&launch, Instant::now() + within).await?;
            let (input, output, stdin) =
                blocking(streams).map_err(|error| format!("its streams cannot be used: {error}"))?;
            let tail = process.tail.clone();
            let note = self.notes().and_then(|folder| {
                Note::write(folder, &definition.name, &launch.root, process.pid, begun.elapsed(), 0)
            });
            let output =
                Output { stream: output, decoder: Decoder::default(), chunk: vec![0; 64 << 10], tail };
            Ok(LaunchedServer {
                input,
                output: Box::new(output),
                process: Arc::new(Lent { process, note, _stdin: stdin }),
                root: launch.root,
                init_options: launch.init_options,
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
    note: Option<Note>,
    _stdin: Option<ChildStdin>,
}

impl ServerProcess for Lent {
    fn kill(&self) {
        self.process.kill();
    }

    fn is_removed(&self) -> bool {
        self.note.as_ref().is_some_and(Note::is_ended)
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
            match self.stream.read(&mut self.chunk) {
                Ok(0) => return Err("closed its output".to_owned()),
                Ok(read) => self.decoder.feed(&self.chunk[..read]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("its output failed: {error}")),
            }
        }
    }
}
