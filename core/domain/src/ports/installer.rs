//! Programs of language servers on this machine: finding them, and installing those of the catalogue.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::BoxFuture;
use super::language_servers::ServerReport;
use crate::Result;
use crate::catalogue::KnownServer;

/// Finds and installs programs. Implemented by the language-server runtime.
pub trait ServerInstaller: Send + Sync {
    /// Where the program of a command is: looked up on PATH, or there already when the command is an absolute path.
    fn find_program(&self, command: &str) -> Option<PathBuf>;

    /// What was installed of a server into a folder of servers, if it is whole.
    fn installed(&self, server: &KnownServer, servers: &Path) -> Option<Installed>;

    /// Installs a server into a folder of servers (made when it is missing) by its ecosystem's client, starts it once to
    /// see that it works, and only then puts it in place; on any failure, and when this process dies, what was there
    /// before is there still and nothing else. Waits for another install of the same server by any process. A server
    /// that is there is left as it is, unless `anew`.
    ///
    /// `progress` hears what is going on while it is.
    fn install<'a>(
        &'a self,
        server: &'a KnownServer,
        servers: &'a Path,
        anew: bool,
        progress: &'a (dyn Fn(InstallProgress<'_>) + Send + Sync),
    ) -> BoxFuture<'a, Result<Installation>>;
}

/// A server that is in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Its program; absolute, and the same after an update.
    pub program: PathBuf,
    /// Packages with their versions, as they were asked for.
    pub packages: BTreeMap<String, String>,
}

/// How an install ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Installation {
    /// What is in place now.
    pub installed: Installed,
    /// What it said of itself when it was started; `None` when it was there before.
    pub report: Option<ServerReport>,
}

/// What is going on during an install.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstallProgress<'a> {
    /// The next part of the work begins; a sentence without its end.
    Step(&'a str),
    /// The client printed a line.
    Line(&'a str),
}
