//! Runs pip, npm and cargo in a folder of their own, and reads from what they printed what went wrong.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use agents_domain::catalogue::{Client, KnownServer, Packages};
use agents_domain::ports::installer::InstallProgress;
use agents_domain::{Error, ErrorKind, Result};
use futures::future::join3;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::Command;

use super::{Progress, failed};
use crate::guard::Janitor;
use crate::lock;
use crate::process::Tail;

/// No install takes so long; one that does hangs.
const LIMIT: Duration = Duration::from_secs(60 * 60);
/// Settings of a person's environment that would lead a client out of the folder it is to work in.
const MISLEADING: &[&str] = &[
    "PYTHONHOME",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_ROOT",
    "PIP_USER",
    "npm_config_prefix",
    "npm_config_global",
    "npm_config_location",
    "npm_config_dry_run",
    "CARGO_INSTALL_ROOT",
    "CARGO_TARGET_DIR",
    "CARGO_BUILD_TARGET_DIR",
];

/// What a client works with.
pub(super) struct ClientRun<'a> {
    /// PATH.
    pub(super) path: &'a str,
    /// `python3`, `npm` or `cargo`; absolute.
    pub(super) program: &'a Path,
    /// Where everything goes.
    pub(super) folder: &'a Path,
    pub(super) janitor: &'a Mutex<Janitor>,
    pub(super) progress: Progress<'a>,
}

impl ClientRun<'_> {
    /// Installs the packages into the folder.
    pub(super) async fn install(&self, server: &KnownServer, recipe: &Packages) -> Result<()> {
        let packages = recipe.packages.iter();
        let pins: Vec<String> = packages.map(|(name, version)| recipe.client.pin(name, version)).collect();
        let step = |text: &str| (self.progress)(InstallProgress::Step(text));
        let said: Vec<String> =
            recipe.packages.iter().map(|(name, version)| format!("{name} {version}")).collect();
        let brings = format!("{} brings {}", recipe.client.as_str(), said.join(", "));
        let fails = |failure: ClientFailure| failure.explain(server, recipe.client);
        match recipe.client {
            Client::Pip => {
                step("Makes a Python environment of its own");
                let venv = [OsStr::new("-m"), OsStr::new("venv"), self.folder.as_os_str()];
                self.run(self.program, venv).await.map_err(fails)?;
                step(&brings);
                let options =
                    ["--no-input", "--disable-pip-version-check", "--progress-bar=off", "--prefer-binary"];
                let patience = ["--retries=2", "--timeout=20"];
                let args = ["-m", "pip", "install"].into_iter().chain(options).chain(patience);
                let args = args.chain(pins.iter().map(String::as_str));
                self.run(&self.folder.join("bin/python"), args).await.map_err(fails)
            }
            Client::Npm => {
                // Without it npm would look for a package in the folders above.
                let package = self.folder.join("package.json");
                fs::write(&package, "{\"private\": true}\n")
                    .map_err(|error| failed("write", &package, &error))?;
                step(&brings);
                let options =
                    ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--no-progress"];
                let patience =
                    ["--fetch-retries=2", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=10000"];
                let prefix: [OsString; 3] = ["install".into(), "--prefix".into(), self.folder.into()];
                let args = options.into_iter().chain(patience).chain(pins.iter().map(String::as_str));
                self.run(self.program, prefix.into_iter().chain(args.map(OsString::from)))
                    .await
                    .map_err(fails)
            }
            Client::Cargo => {
                step(&format!("{brings} and compiles: this takes minutes"));
                let root: [OsString; 4] =
                    ["install".into(), "--locked".into(), "--root".into(), self.folder.into()];
                self.run(self.program, root.into_iter().chain(pins.iter().map(OsString::from)))
                    .await
                    .map_err(fails)
            }
        }
    }

    /// Runs a program to its end; its lines are reported as they come.
    async fn run(
        &self,
        program: &Path,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> std::result::Result<(), ClientFailure> {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.folder).env("PATH", self.path).env("PYTHONNOUSERSITE", "1");
        for name in MISLEADING {
            command.env_remove(name).env_remove(name.to_uppercase());
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        let mut child =
            command.spawn().map_err(|error| ClientFailure::not_run(program, &error.to_string()))?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).unwrap_or_default();
        let watched = Watched::new(self.janitor, group);
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let tail = Tail::default();
        let ended = async {
            let ended = child.wait().await;
            // What it left behind would keep the pipes open.
            drop(watched);
            ended
        };
        let all = join3(ended, self.lines(stdout, &tail), self.lines(stderr, &tail));
        let output = || tail.text(40);
        match tokio::time::timeout(LIMIT, all).await {
            Ok((Ok(status), ..)) if status.success() => Ok(()),
            Ok((Ok(status), ..)) => Err(ClientFailure { how: ending(status), output: output() }),
            Ok((Err(error), ..)) => Err(ClientFailure::not_run(program, &error.to_string())),
            Err(_) => {
                let how = format!("was not done after {} minutes", LIMIT.as_secs() / 60);
                Err(ClientFailure { how, output: output() })
            }
        }
    }

    async fn lines(&self, stream: Option<impl AsyncRead + Unpin>, tail: &Tail) {
        let Some(stream) = stream else { return };
        let mut reader = BufReader::new(stream);
        let mut bytes = Vec::new();
        while reader.read_until(b'\n', &mut bytes).await.is_ok_and(|read| read > 0) {
            let line = without_credentials(String::from_utf8_lossy(&bytes).trim_end());
            if !line.is_empty() {
                tail.push(format!("{line}\n").as_bytes());
                (self.progress)(InstallProgress::Line(&line));
            }
            bytes.clear();
        }
    }
}

/// A process group that the janitor watches and that ends with this value.
struct Watched<'a>(&'a Mutex<Janitor>, i32);

impl<'a> Watched<'a> {
    fn new(janitor: &'a Mutex<Janitor>, group: i32) -> Self {
        lock(janitor).watch(group);
        Self(janitor, group)
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        if self.1 > 1 {
            let _ = killpg(Pid::from_raw(self.1), Signal::SIGKILL);
        }
        lock(self.0).forget(self.1);
    }
}

fn ending(status: ExitStatus) -> String {
    format!("ended with {}", status.to_string().replace("exit status: ", "exit status "))
}

/// `https://user:secret@host` without what stands before the `@`.
fn without_credentials(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let end = after.find(|c: char| c == '/' || c.is_whitespace()).unwrap_or(after.len());
        rest = match after[..end].rfind('@') {
            Some(at) => {
                out.push_str("***");
                &after[at..]
            }
            None => after,
        };
    }
    out + rest
}

/// A client that did not do its work.
#[derive(Debug)]
pub(super) struct ClientFailure {
    /// `ended with exit status 1`.
    how: String,
    /// The end of what it printed.
    output: String,
}

/// What clients print when something is missing, and what it means. The first that fits counts.
const CAUSES: &[Cause] = &[
    Cause {
        said: &["no space left on device", "enospc", "disk quota exceeded"],
        kind: ErrorKind::Io,
        means: "the disk is full",
        fix: "make room, then try again",
    },
    Cause {
        said: &[
            "ensurepip is not",
            "no module named ensurepip",
            "no module named venv",
            "no module named 'ensurepip'",
            "python3-venv",
        ],
        kind: ErrorKind::Configuration,
        means: "python3 has no venv module to make environments with",
        fix: "sudo apt-get install python3-venv",
    },
    Cause {
        said: &[
            "name resolution",
            "name or service not known",
            "nodename nor servname",
            "could not resolve",
            "enotfound",
            "eai_again",
            "failed to establish a new connection",
            "connection refused",
            "econnrefused",
            "econnreset",
            "connection reset",
            "connection aborted",
            "network is unreachable",
            "enetunreach",
            "ehostunreach",
            "etimedout",
            "timed out",
            "could not connect",
            "failed to connect",
            "proxyerror",
            "tunnel connection failed",
            "certificate",
        ],
        kind: ErrorKind::Network,
        means: "its registry cannot be reached",
        fix: "check the network and the proxy, or name a mirror in the client's own configuration",
    },
    Cause {
        said: &["env: node: no such file", "env: 'node': no such file", "env: ‘node’: no such file"],
        kind: ErrorKind::Configuration,
        means: "`node` is not on PATH",
        fix: "sudo apt-get install nodejs npm",
    },
    Cause {
        said: &["no matching distribution", "notarget", "e404", "could not find `", "no matching version"],
        kind: ErrorKind::NotFound,
        means: "its registry does not offer the package in this version for this machine",
        fix: "check which registry or mirror the client is configured for, and whether it is complete",
    },
];

struct Cause {
    said: &'static [&'static str],
    kind: ErrorKind,
    means: &'static str,
    fix: &'static str,
}

impl ClientFailure {
    fn not_run(program: &Path, error: &str) -> Self {
        Self { how: format!("could not be run: {}: {error}", program.display()), output: String::new() }
    }

    fn explain(self, server: &KnownServer, client: Client) -> Error {
        let name = &server.name;
        let again = format!("agents lsp install {name}");
        let output = self.output.to_lowercase();
        let cause = CAUSES.iter().find(|cause| cause.said.iter().any(|said| output.contains(said)));
        let error = match cause {
            Some(cause) => {
                let message =
                    format!("{name} could not be installed with {}: {}", client.as_str(), cause.means);
                Error::new(cause.kind, message).suggest(cause.fix)
            }
            None => Error::new(
                ErrorKind::Configuration,
                format!("{name} could not be installed: {} {}", client.as_str(), self.how),
            ),
        };
        let printed = match self.output.is_empty() {
            true => format!("{} {}, and printed nothing", client.as_str(), self.how),
            false => format!("{} {}; it printed:\n{}", client.as_str(), self.how, self.output),
        };
        error.detail(printed).suggest(again)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agents_domain::catalogue::find;

    fn explained(output: &str) -> Error {
        let failure = ClientFailure { how: "ended with exit status 1".to_owned(), output: output.to_owned() };
        failure.explain(find("ruff").unwrap(), Client::Pip)
    }

    #[test]
    fn what_clients_print_is_understood() {
        for (printed, kind) in [
            (
                "WARNING: Retrying (Retry(total=1)) after connection broken by 'NewConnectionError(\"Failed to establish a new connection: [Errno -3] Temporary failure in name resolution\")'\nERROR: No matching distribution found for ruff==0.17.6",
                ErrorKind::Network,
            ),
            (
                "npm error code EAI_AGAIN\nnpm error request to x failed, reason: getaddrinfo EAI_AGAIN x",
                ErrorKind::Network,
            ),
            ("error: failed to download\nCaused by:\n  [6] Could not resolve host: x", ErrorKind::Network),
            ("ERROR: No matching distribution found for ruff==0.17.6", ErrorKind::NotFound),
            (
                "npm error code ETARGET\nnpm error notarget No matching version found for pyright@0.0.0.",
                ErrorKind::NotFound,
            ),
            (
                "The virtual environment was not created successfully because ensurepip is not\navailable.",
                ErrorKind::Configuration,
            ),
            ("/usr/bin/python3: No module named venv", ErrorKind::Configuration),
            (
                "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
                ErrorKind::Io,
            ),
        ] {
            let error = explained(printed);
            assert_eq!(error.kind, kind, "{printed}");
            assert!(error.detail.unwrap().contains(printed), "the tail is shown");
            assert_eq!(error.suggestions.len(), 2, "{printed}: what would be right, and the command again");
        }
        let error = explained("");
        assert_eq!(error.message, "ruff could not be installed: pip ended with exit status 1");
        assert_eq!(error.detail.as_deref(), Some("pip ended with exit status 1, and printed nothing"));
    }

    #[test]
    fn credentials_in_addresses_are_not_shown() {
        for (line, shown) in [
            (
                "Looking in indexes: https://me:s3cret@host.example/simple",
                "Looking in indexes: https://***@host.example/simple",
            ),
            ("a http://x:p@ss@h and ftp://y@z/", "a http://***@h and ftp://***@z/"),
            ("https://host/path@version me@example", "https://host/path@version me@example"),
            ("://", "://"),
        ] {
            assert_eq!(without_credentials(line), shown);
        }
    }
}
