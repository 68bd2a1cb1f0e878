//! The byte streams to a server: its standard input and output, or a loopback TCP connection to it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agents_domain::language_server::Transport;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use crate::framing::{Decoder, encode};
use crate::launch::Launch;
use crate::process::{Fate, Process, Tail, drain, spawn};

/// Callers wait while more than this is queued for a server.
const HIGH_WATER: usize = 4 << 20;
/// A server that lets this much pile up has stopped reading.
const MAX_QUEUED: usize = 96 << 20;
/// Between two attempts to connect to a server that is starting.
const CONNECT_PAUSE: Duration = Duration::from_millis(20);

/// A started server with its two streams.
pub(crate) struct Link {
    pub(crate) process: Process,
    pub(crate) reader: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) writer: Box<dyn AsyncWrite + Send + Unpin>,
}

/// A started process and the streams to it, as the system gives them.
pub(crate) struct Opened {
    pub(crate) process: Process,
    pub(crate) streams: Streams,
}

pub(crate) enum Streams {
    Stdio(ChildStdin, ChildStdout),
    /// The standard input is kept open with the connection: some servers take its end for the end of their client.
    Tcp(TcpStream, ChildStdin),
}

/// Starts the process and connects to it.
pub(crate) async fn start(launch: &Launch, deadline: Instant) -> Result<Opened, String> {
    let address = match &launch.transport {
        Transport::Stdio => None,
        Transport::Tcp { host, port } => Some(free_address(host, *port).await?),
    };
    let started = spawn(launch, Fate::DiesWithUs)
        .await
        .map_err(|error| format!("{}: {error}", launch.program.display()))?;
    let process = started.process;
    tokio::spawn(drain(started.stderr, process.tail.clone()));
    let Some(address) = address else {
        return Ok(Opened { process, streams: Streams::Stdio(started.stdin, started.stdout) });
    };
    tokio::spawn(drain(started.stdout, process.tail.clone()));
    let stream = connect(&process, address, deadline).await?;
    Ok(Opened { process, streams: Streams::Tcp(stream, started.stdin) })
}

/// The same with streams that tasks read and write.
pub(crate) async fn open(launch: &Launch, deadline: Instant) -> Result<Link, String> {
    let Opened { process, streams } = start(launch, deadline).await?;
    let (reader, writer): (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>) =
        match streams {
            Streams::Stdio(stdin, stdout) => (Box::new(stdout), Box::new(stdin)),
            Streams::Tcp(stream, stdin) => {
                let (reader, writer) = stream.into_split();
                (Box::new(reader), Box::new(WithStdin { writer, _stdin: stdin }))
            }
        };
    Ok(Link { process, reader, writer })
}

/// The loopback address to connect to, on which nobody may be listening yet.
async fn free_address(host: &str, port: u16) -> Result<SocketAddr, String> {
    let ip: IpAddr = match host {
        "localhost" => Ipv4Addr::LOCALHOST.into(),
        "::1" | "[::1]" => Ipv6Addr::LOCALHOST.into(),
        _ => host.parse().map_err(|_| {
            format!("`transport.host` is `{host}`; it must be a loopback address such as 127.0.0.1")
        })?,
    };
    if !ip.is_loopback() {
        return Err(format!(
            "`transport.host` is `{host}`; servers are only reached over the loopback interface, such as 127.0.0.1"
        ));
    }
    if port == 0 {
        return Err("`transport.port` is 0; give the port that the command listens on".to_owned());
    }
    let address = SocketAddr::new(ip, port);
    match TcpStream::connect(address).await {
        Ok(_) => {
            Err(format!("another program already listens on {address}; give this server a port of its own"))
        }
        Err(_) => Ok(address),
    }
}

async fn connect(process: &Process, address: SocketAddr, deadline: Instant) -> Result<TcpStream, String> {
    loop {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) if Instant::now() >= deadline => {
                return Err(format!("nothing listened on {address} in time ({error})"));
            }
            Err(_) => {
                if let Some(how) = process.exited(CONNECT_PAUSE).await {
                    return Err(format!("ended with {how} before it listened on {address}"));
                }
            }
        }
    }
}

struct WithStdin<W> {
    writer: W,
    _stdin: ChildStdin,
}

impl<W: AsyncWrite + Unpin> AsyncWrite for WithStdin<W> {
    fn poll_write(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> std::task::Poll<std::io::Result<usize>> {
        std::pin::Pin::new(&mut self.writer).poll_write(context, bytes)
    }

    fn poll_flush(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::pin::Pin::new(&mut self.writer).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::pin::Pin::new(&mut self.writer).poll_shutdown(context)
    }
}

/// The queue of messages to a server. Sending never blocks, so that answering a server cannot deadlock with it;
/// senders of bulk wait for room first.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    queue: mpsc::UnboundedSender<Vec<u8>>,
    load: Arc<Load>,
}

#[derive(Debug, Default)]
struct Load {
    queued: AtomicUsize,
    drained: Notify,
}

impl Outgoing {
    /// Queues one message; `false` when the server does not take it any more.
    pub(crate) fn send(&self, body: &[u8]) -> bool {
        let frame = encode(body);
        let queued = self.load.queued.fetch_add(frame.len(), Ordering::SeqCst);
        queued < MAX_QUEUED && self.queue.send(frame).is_ok()
    }

    /// Waits until there is room for bulk, at most until the deadline; `false` when there is none.
    pub(crate) async fn room(&self, deadline: Instant) -> bool {
        loop {
            let drained = self.load.drained.notified();
            if self.load.queued.load(Ordering::SeqCst) < HIGH_WATER || self.queue.is_closed() {
                return true;
            }
            if tokio::time::timeout_at(deadline, drained).await.is_err() {
                return false;
            }
        }
    }
}

/// A queue with the task that writes it out; the task ends with the queue, the stream or an error.
pub(crate) fn outgoing()
-> (Outgoing, impl FnOnce(Box<dyn AsyncWrite + Send + Unpin>) -> tokio::task::AbortHandle) {
    let (queue, mut frames) = mpsc::unbounded_channel::<Vec<u8>>();
    let load = Arc::new(Load::default());
    let outgoing = Outgoing { queue, load: load.clone() };
    let start = move |mut writer: Box<dyn AsyncWrite + Send + Unpin>| {
        tokio::spawn(async move {
            while let Some(frame) = frames.recv().await {
                let written = writer.write_all(&frame).await.is_ok() && writer.flush().await.is_ok();
                load.queued.fetch_sub(frame.len(), Ordering::SeqCst);
                if !written {
                    break;
                }
                load.drained.notify_waiters();
            }
            frames.close();
            load.drained.notify_waiters();
        })
        .abort_handle()
    };
    (outgoing, start)
}

/// Reads messages until the stream ends and hands each body over; gives why it ended.
pub(crate) async fn read(
    mut reader: Box<dyn AsyncRead + Send + Unpin>,
    tail: Arc<Tail>,
    mut message: impl FnMut(&[u8]),
) -> String {
    let mut decoder = Decoder::default();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = match reader.read(&mut buffer).await {
            Ok(0) => return "closed its output".to_owned(),
            Ok(read) => read,
            Err(error) => return format!("its output failed: {error}"),
        };
        decoder.feed(&buffer[..read]);
        loop {
            match decoder.next_body() {
                Ok(Some(body)) => message(&body),
                Ok(None) => break,
                Err(error) => return error.to_string(),
            }
        }
        let noise = decoder.take_noise();
        if !noise.is_empty() {
            tail.push(&noise);
        }
    }
}
