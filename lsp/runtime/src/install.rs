//! Brings servers of the catalogue to this machine by their ecosystems' own clients, whole or not at all.
//!
//! ```text
//! servers/ruff            a link to the folder in use; programs are named through it, so an update changes no name
//! servers/.ruff@x1Y2z3    a folder, made where it stays: environments hold their own path
//! servers/.ruff.lock      held by whoever installs
//! ```

mod client;

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use agents_domain::catalogue::{Client, Install, KnownServer, Packages};
use agents_domain::ports::BoxFuture;
use agents_domain::ports::installer::{InstallProgress, Installation, Installed, ServerInstaller};
use agents_domain::ports::language_servers::ServerReport;
use agents_domain::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use crate::check;
use crate::guard::Janitor;
use crate::launch::find_program;
use client::ClientRun;

/// How long a server that was just installed may take to start: the first start compiles and unpacks.
const FIRST_START: Duration = Duration::from_secs(60);
/// What a folder of a server says of itself.
const MANIFEST: &str = "installed.json";

/// Who hears what is going on.
type Progress<'a> = &'a (dyn Fn(InstallProgress<'_>) + Send + Sync);

/// Finds programs and installs servers.
#[derive(Debug, Clone)]
pub struct Installer {
    path: String,
}

impl Default for Installer {
    fn default() -> Self {
        Self::new()
    }
}

impl Installer {
    /// Looks programs up on the PATH of this process.
    pub fn new() -> Self {
        Self::with_path(env::var("PATH").unwrap_or_default())
    }

    /// Looks programs up on this PATH, which is also the one of the clients.
    pub fn with_path(path: impl Into<String>) -> Self {
        Self { path: path.into() }
    }

    async fn bring(
        &self,
        server: &KnownServer,
        servers: &Path,
        anew: bool,
        progress: Progress<'_>,
    ) -> Result<Installation> {
        let Install::Packages(recipe) = &server.install else { return Err(by_hand(server)) };
        let place = Place::of(server, servers)?;
        let there = || self.installed(server, servers).filter(|_| !anew);
        if let Some(installed) = there() {
            return Ok(Installation { installed, report: None });
        }
        let program = self.client(recipe.client, server)?;
        let _lock = place.lock(progress).await?;
        // Somebody else may have installed it while we waited.
        if let Some(installed) = there() {
            return Ok(Installation { installed, report: None });
        }
        place.check_link()?;
        place.sweep();
        let (folder, janitor) = place.new_folder()?;
        let janitor = Mutex::new(janitor);
        let run =
            ClientRun { path: &self.path, program: &program, folder: &folder, janitor: &janitor, progress };
        run.install(server, recipe).await?;
        let report = self.try_out(server, recipe, &folder, progress).await?;
        let manifest = Manifest { packages: recipe.packages.clone() };
        write_manifest(&folder, &manifest)?;
        place.put_in_place(&folder)?;
        let installed =
            Installed { program: place.link.join(program_of(server, recipe)), packages: manifest.packages };
        Ok(Installation { installed, report: Some(report) })
    }

    /// The client's program.
    fn client(&self, client: Client, server: &KnownServer) -> Result<PathBuf> {
        let (program, right, fix) = match client {
            Client::Pip => {
                ("python3", "Python 3 with its venv module", "sudo apt-get install python3 python3-venv")
            }
            Client::Npm => ("npm", "Node.js with npm", "sudo apt-get install npm"),
            Client::Cargo => ("cargo", "Rust with cargo", "sudo apt-get install cargo"),
        };
        self.find_program(program).ok_or_else(|| {
            let name = &server.name;
            Error::new(
                ErrorKind::Configuration,
                format!("{name} is installed with {}, and `{program}` is not on PATH", client.as_str()),
            )
            .detail(format!("{name} needs {right}."))
            .suggest(fix)
            .suggest(format!("agents lsp install {name}"))
        })
    }

    /// Starts what was installed: a server that does not start here is not put in place.
    async fn try_out(
        &self,
        server: &KnownServer,
        recipe: &Packages,
        folder: &Path,
        progress: Progress<'_>,
    ) -> Result<ServerReport> {
        let name = &server.name;
        let program = folder.join(program_of(server, recipe));
        let fails =
            |what: String| Error::new(ErrorKind::Configuration, format!("{name} was installed, but {what}"));
        let Some(command) = program.to_str().filter(|command| self.find_program(command).is_some()) else {
            return Err(fails(format!("its packages bring no program `{}`", server.command))
                .suggest("compare the versions of the packages with those of the catalogue"));
        };
        progress(InstallProgress::Step(&format!("Starts {name} to see that it works")));
        let mut definition = server.definition(command)?;
        // Programs for Node.js find it on PATH.
        definition.env.insert("PATH".to_owned(), self.path.clone());
        let report = check::check_alone(&definition, FIRST_START).await;
        match report.problem {
            None => Ok(report),
            Some(problem) => {
                let error =
                    fails("it does not start here, so it was taken away again".to_owned()).detail(problem);
                Err(server.notes.iter().fold(error, |error, note| error.suggest(note)))
            }
        }
    }
}

impl ServerInstaller for Installer {
    fn find_program(&self, command: &str) -> Option<PathBuf> {
        find_program(command, Path::new("/"), Some(&self.path)).ok()
    }

    fn installed(&self, server: &KnownServer, servers: &Path) -> Option<Installed> {
        let Install::Packages(recipe) = &server.install else { return None };
        let folder = servers.join(&server.name);
        let manifest: Manifest = serde_json::from_slice(&fs::read(folder.join(MANIFEST)).ok()?).ok()?;
        let program = self.find_program(folder.join(program_of(server, recipe)).to_str()?)?;
        Some(Installed { program, packages: manifest.packages })
    }

    fn install<'a>(
        &'a self,
        server: &'a KnownServer,
        servers: &'a Path,
        anew: bool,
        progress: Progress<'a>,
    ) -> BoxFuture<'a, Result<Installation>> {
        Box::pin(self.bring(server, servers, anew, progress))
    }
}

/// Where a client puts the program of a server, below the server's folder.
fn program_of(server: &KnownServer, recipe: &Packages) -> String {
    let folder = match recipe.client {
        Client::Pip | Client::Cargo => "bin",
        Client::Npm => "node_modules/.bin",
    };
    format!("{folder}/{}", server.command)
}

fn by_hand(server: &KnownServer) -> Error {
    let name = &server.name;
    let error = Error::new(ErrorKind::Configuration, format!("{name} is not installed by this command"))
        .detail(format!(
            "It comes with the packages of your system or its toolchain; once `{}` is on PATH it is used.",
            server.command
        ));
    let Install::ByHand { by_hand } = &server.install else { return error };
    by_hand.iter().fold(error, |error, command| error.suggest(command))
}

#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    packages: BTreeMap<String, String>,
}

fn write_manifest(folder: &Path, manifest: &Manifest) -> Result<()> {
    let path = folder.join(MANIFEST);
    let text = serde_json::to_vec_pretty(manifest).map_err(|error| Error::internal(error.to_string()))?;
    fs::write(&path, text).map_err(|error| failed("write", &path, &error))
}

fn failed(verb: &str, path: &Path, error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot {verb} {}: {error}", path.display()))
}

/// The places of one server.
#[derive(Debug)]
struct Place {
    servers: PathBuf,
    name: String,
    link: PathBuf,
}

impl Place {
    fn of(server: &KnownServer, servers: &Path) -> Result<Self> {
        fs::create_dir_all(servers).map_err(|error| failed("make the folder", servers, &error))?;
        Ok(Self { servers: servers.to_owned(), name: server.name.clone(), link: servers.join(&server.name) })
    }

    /// Held until the file is dropped.
    async fn lock(&self, progress: Progress<'_>) -> Result<File> {
        let path = self.servers.join(format!(".{}.lock", self.name));
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(|error| failed("write", &path, &error))?;
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(failed("lock", &path, &error)),
        }
        progress(InstallProgress::Step(&format!("Waits for another install of {}", self.name)));
        let locked = tokio::task::spawn_blocking(move || file.lock().map(|()| file)).await;
        locked.map_err(io::Error::other).flatten().map_err(|error| failed("lock", &path, &error))
    }

    /// What stands where the link belongs is a link of ours, or nothing.
    fn check_link(&self) -> Result<()> {
        match fs::symlink_metadata(&self.link) {
            Ok(found) if !found.is_symlink() => Err(Error::new(
                ErrorKind::AlreadyExists,
                format!("{} is in the way: it was not made by `agents lsp install`", self.link.display()),
            )
            .suggest("move it elsewhere, then try again")),
            _ => Ok(()),
        }
    }

    fn prefix(&self) -> String {
        format!(".{}@", self.name)
    }

    /// Removes folders that nobody uses: left by a machine that lost power, or by an older version.
    fn sweep(&self) {
        let used = fs::read_link(&self.link).ok();
        for entry in fs::read_dir(&self.servers).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let ours = name.to_str().is_some_and(|name| name.starts_with(&self.prefix()));
            if ours && used.as_deref() != Some(Path::new(&name)) {
                // What cannot be removed costs space only.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    /// A new folder, which goes with its janitor unless it was put in place.
    fn new_folder(&self) -> Result<(PathBuf, Janitor)> {
        let folder = tempfile::Builder::new().prefix(&self.prefix()).tempdir_in(&self.servers);
        let folder = folder.map_err(|error| failed("make a folder in", &self.servers, &error))?;
        let janitor = Janitor::of(folder.path(), &self.link)
            .map_err(|error| Error::new(ErrorKind::Io, format!("cannot start /bin/sh: {error}")))?;
        Ok((folder.keep(), janitor))
    }

    /// The one moment at which the new folder takes the place of the old one.
    fn put_in_place(&self, folder: &Path) -> Result<()> {
        let fails = |error: io::Error| failed("put in place", &self.link, &error);
        let link = folder.join("link");
        symlink(folder.file_name().unwrap_or_default(), &link).map_err(fails)?;
        fs::rename(&link, &self.link).map_err(fails)?;
        self.sweep();
        Ok(())
    }
}
