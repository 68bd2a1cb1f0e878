//! How the pool and those who use it speak: JSON texts with their length before them over a local socket, and streams of
//! servers beside them.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use agents_domain::QualifiedName;
use agents_domain::ports::server_launcher::WarmServer;
use nix::cmsg_space;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Which programs understand each other: pools of other versions are not used.
pub(crate) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "/1");

/// The longest text.
const MAX_TEXT: usize = 64 << 20;

/// How a server is started and greeted. Who would start and greet it in the same way may have one that was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Recipe {
    pub server: QualifiedName,
    pub program: PathBuf,
    /// Tells the program from one that was installed in its place.
    pub stamp: String,
    pub args: Vec<String>,
    /// All of it, sorted; what differs from terminal to terminal is left out.
    pub environment: Vec<(String, String)>,
    pub root: PathBuf,
    pub initialize: Value,
    pub settings: Value,
    pub secrets: Vec<String>,
}

/// What a user of the pool says.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Word {
    /// I need such a server from now on, until I close the connection. Answered with [`Answer`].
    Use { version: String, recipe: Box<Recipe> },
    /// A document of this language was opened there.
    Shown { path: PathBuf, language: String },
    /// A question for settings was answered so.
    Configured { items: Value, answer: Value },
    /// No other one is to be started.
    Forget,
    /// End, with all servers that wait.
    Stop,
}

/// What the pool answers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// None waits.
    None,
    /// The streams follow: input, output and error output. The taker says with one byte that they are its own.
    Warm(Box<Handed>),
}

/// A server as it is handed over.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Handed {
    pub pid: i32,
    pub state: WarmServer,
    /// What it said that was not read to the end of a message.
    pub rest: Vec<u8>,
    /// What it printed outside of the protocol.
    pub printed: String,
}

pub(crate) fn send(mut stream: &UnixStream, word: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_vec(word)?;
    let length = u32::try_from(text.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes()[..], &text].concat())
}

pub(crate) fn receive<T: DeserializeOwned>(mut stream: &UnixStream) -> io::Result<T> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > MAX_TEXT {
        return Err(io::Error::other("the text is too long"));
    }
    let mut text = vec![0; length];
    stream.read_exact(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// Sends streams.
pub(crate) fn send_streams(socket: &UnixStream, streams: &[OwnedFd; 3]) -> io::Result<()> {
    let raw: Vec<RawFd> = streams.iter().map(AsRawFd::as_raw_fd).collect();
    let along = [ControlMessage::ScmRights(&raw)];
    sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(b"!")], &along, MsgFlags::empty(), None)?;
    Ok(())
}

/// Takes streams that were sent.
pub(crate) fn receive_streams(socket: &UnixStream) -> io::Result<[OwnedFd; 3]> {
    let mut byte = [0];
    let mut space = cmsg_space!([RawFd; 3]);
    let mut parts = [IoSliceMut::new(&mut byte)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
    let mut streams = Vec::new();
    for part in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(raw) = part {
            #[allow(unsafe_code, reason = "the system says that these are open and nobody else's")]
            // SAFETY: the kernel made these descriptors for this message, and each is taken once.
            streams.extend(raw.into_iter().map(|raw| unsafe { OwnedFd::from_raw_fd(raw) }));
        }
    }
    streams.try_into().map_err(|_| io::Error::other("the streams of the server are missing"))
}
