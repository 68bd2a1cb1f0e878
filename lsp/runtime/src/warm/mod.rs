//! Servers that are kept warm for the next who needs them: an editor that is opened again does not wait until its servers
//! have read the project.
//!
//! ```text
//! agents lsp serve --proxy --- "I use such a server" ----> agents lsp pool     one process for a data directory
//!        '<------- the streams of one that waits ---------'                    nothing stands between afterwards
//! ```
//!
//! - `pool` is the process: it starts a server when the last user of one like it leaves, and passes it on.
//! - `spare` is a server that waits; `tree` tells what changed on disk meanwhile.
//! - `client` is the other side: takes a server that waits, and says that one is in use.
//! - `wire` is what both say.
//!
//! A server is handed over once and never comes back, so none has seen anybody's unsaved text. It goes only to who would
//! start and greet it in just the same way: program, arguments, environment, folder, settings, capabilities of the client.

mod client;
mod pool;
mod spare;
mod tree;
mod wire;

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

pub(crate) use client::{Lease, Taken, take};
pub use client::{PoolStarter, WarmServers};
pub use pool::{PoolOptions, pool_runs, serve_pool, stop_pool};

/// Held by the process that serves.
const LOCK: &str = "pool.lock";
/// Where it listens.
const SOCKET: &str = "pool.sock";

/// Refuses a folder that somebody else could write to or look into.
fn is_ours(folder: &Path) -> io::Result<()> {
    let meta = fs::symlink_metadata(folder)?;
    let ours = meta.is_dir() && meta.uid() == nix::unistd::geteuid().as_raw() && meta.mode() & 0o077 == 0;
    if ours {
        return Ok(());
    }
    let words = format!("{} is not a folder that only this user can open (mode 0700)", folder.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, words))
}

/// Refuses a process of somebody else at the other end.
fn peer_is_ours(stream: &UnixStream) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        let peer = nix::sys::socket::getsockopt(stream, nix::sys::socket::sockopt::PeerCredentials)?;
        if peer.uid() == nix::unistd::geteuid().as_raw() {
            return Ok(());
        }
    }
    let _ = stream;
    Err(io::Error::new(io::ErrorKind::PermissionDenied, "the other process is not this user's"))
}

/// The way to the pool of a folder.
fn connect(folder: &Path) -> io::Result<UnixStream> {
    is_ours(folder)?;
    let stream = UnixStream::connect(folder.join(SOCKET))?;
    peer_is_ours(&stream)?;
    Ok(stream)
}
