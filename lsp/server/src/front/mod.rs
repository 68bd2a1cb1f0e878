//! The front: one blocking thread reads the client and decides, frame by frame in arrival order, what happens.

pub(crate) mod client;
pub(crate) mod dispatch;
mod framing;
pub(crate) mod message;
pub(crate) mod outbox;
pub(crate) mod reply;
mod route;
pub(crate) mod scan;

use std::io::{self, BufRead, BufReader, Read};
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::runtime::{Handle, Runtime};
use tokio::task::JoinHandle;

use self::client::ClientHandle;
use self::dispatch::{App, Features, merge};
use self::framing::Frame;
use self::message::{Invalid, Message, RequestId};
use self::outbox::{End, Outbox, Output};
use self::route::{Lifecycle, NotificationRoute, RequestRoute};
use crate::documents::{Addressed, DocumentUri};
use crate::proxy::{Deliver, Proxy};
use crate::session::{SessionHandle, SyncError};

/// How long the end of a session waits for the client to take what is queued, and then for blocking work to end.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// The client said `shutdown`, then `exit` or nothing more.
    Success,
    /// The client left without `shutdown`, stopped reading, or sent what is no protocol.
    Failure,
}

impl ExitStatus {
    /// The process's exit code: 0 or 1.
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failure => 1,
        }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status.code())
    }
}

/// Bounds on what a session holds for its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Messages that wait for the client to read; one more and the client is failed.
    pub queued_messages: usize,
    /// Their bytes; likewise.
    pub queued_bytes: usize,
    /// Requests of the client at work; more are refused with -32803.
    pub in_flight: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { queued_messages: 16 * 1024, queued_bytes: 64 * 1024 * 1024, in_flight: 4096 }
    }
}

/// Why the thread that waits for the session wakes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Read(ExitStatus),
    Written,
    ClientFailed,
}

/// Serves one session on the process's standard streams. See [`serve`].
pub fn serve_stdio<F>(app: F) -> io::Result<ExitStatus>
where
    F: FnOnce(ClientHandle, SessionHandle) -> App + Send + 'static,
{
    // Not `io::stdout`, whose line buffer would cut every message in two writes.
    let input = std::fs::File::from(own_stream(&io::stdin())?);
    let output = std::fs::File::from(own_stream(&io::stdout())?);
    // So that a long answer goes out in one piece; not every stream is a pipe, and not every system lets us.
    #[cfg(target_os = "linux")]
    let _ = nix::fcntl::fcntl(&output, nix::fcntl::FcntlArg::F_SETPIPE_SZ(1 << 20));
    serve(input, output, app)
}

#[cfg(unix)]
fn own_stream(stream: &impl std::os::fd::AsFd) -> io::Result<std::os::fd::OwnedFd> {
    stream.as_fd().try_clone_to_owned()
}

#[cfg(windows)]
fn own_stream(stream: &impl std::os::windows::io::AsHandle) -> io::Result<std::os::windows::io::OwnedHandle> {
    stream.as_handle().try_clone_to_owned()
}

/// Serves one session until its end, with the default [`Limits`]. Blocks the calling thread.
///
/// `app` is called once, when `initialize` has been read: the session's snapshot knows the client, the folders and the
/// encoding by then, and the answer waits for its return. It runs inside a tokio runtime of the session's own, so it
/// may spawn; slow work belongs into such a task.
///
/// # Errors
/// When the system gives no threads.
pub fn serve<R, W, F>(input: R, output: W, app: F) -> io::Result<ExitStatus>
where
    R: Read + Send + 'static,
    W: Output,
    F: FnOnce(ClientHandle, SessionHandle) -> App + Send + 'static,
{
    serve_with_limits(input, output, Limits::default(), app)
}

/// Like [`serve`], with other limits.
///
/// # Errors
/// When the system gives no threads.
pub fn serve_with_limits<R, W, F>(input: R, output: W, limits: Limits, app: F) -> io::Result<ExitStatus>
where
    R: Read + Send + 'static,
    W: Output,
    F: FnOnce(ClientHandle, SessionHandle) -> App + Send + 'static,
{
    let runtime = runtime()?;
    let (ended, ends) = mpsc::channel();
    let told = ended.clone();
    let (outbox, write) = Outbox::new(output, limits, move |end| {
        let ended = match end {
            End::Written => Ended::Written,
            End::Failed(reason) => {
                tracing::error!("the client {reason}");
                Ended::ClientFailed
            }
        };
        let _ = told.send(ended);
    });
    let client = ClientHandle::new(outbox.clone());
    let front = Front::new(app, client.clone(), outbox.clone(), runtime.handle().clone(), limits);
    // Neither thread is joined: each may hang in a client that neither reads, writes nor closes.
    std::thread::Builder::new().name("lsp-writer".to_owned()).spawn(write)?;
    std::thread::Builder::new().name("lsp-reader".to_owned()).spawn(move || {
        let status = std::panic::catch_unwind(AssertUnwindSafe(|| front.run(&mut BufReader::new(input))));
        let _ = ended.send(Ended::Read(status.unwrap_or(ExitStatus::Failure)));
    })?;
    let status = match ends.recv() {
        Ok(Ended::Read(status)) => {
            outbox.close();
            // Either the writer's end or a client that does not take the rest.
            let _ = ends.recv_timeout(LAST_WORDS);
            status
        }
        _ => ExitStatus::Failure,
    };
    client.close();
    runtime.shutdown_timeout(LAST_WORDS);
    Ok(status)
}

fn runtime() -> io::Result<Runtime> {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.clamp(2, 4))
        .thread_name("lsp-worker")
        .enable_all()
        .build()
}

/// The reader's state.
struct Front<F> {
    lifecycle: Lifecycle,
    app: Option<F>,
    features: Option<Features>,
    proxy: Option<Arc<Proxy>>,
    /// The task that answers `shutdown`.
    shutdown: Option<JoinHandle<()>>,
    session: SessionHandle,
    client: ClientHandle,
    outbox: Outbox,
    runtime: Handle,
    limits: Limits,
}

impl<F: FnOnce(ClientHandle, SessionHandle) -> App> Front<F> {
    fn new(app: F, client: ClientHandle, outbox: Outbox, runtime: Handle, limits: Limits) -> Self {
        let session = SessionHandle::new();
        let (lifecycle, app) = (Lifecycle::Created, Some(app));
        let (features, proxy, shutdown) = (None, None, None);
        Self { lifecycle, app, features, proxy, shutdown, session, client, outbox, runtime, limits }
    }

    /// Serves until the end of the session.
    fn run(mut self, input: &mut impl BufRead) -> ExitStatus {
        let status = self.read(input);
        if let Some(proxy) = self.proxy.take() {
            proxy.end(LAST_WORDS);
        }
        // A client may say `exit` without waiting for the answer to `shutdown`; it gets it all the same.
        if let Some(shutdown) = self.shutdown.take() {
            let _ = self.runtime.block_on(async { tokio::time::timeout(LAST_WORDS, shutdown).await });
        }
        status
    }

    fn read(&mut self, input: &mut impl BufRead) -> ExitStatus {
        loop {
            match framing::read_frame(input) {
                Ok(Some(Frame::Message(body))) => {
                    if let Some(status) = self.take(&body) {
                        return status;
                    }
                }
                Ok(Some(Frame::Rejected(rejection))) => tracing::warn!("a message is skipped: {rejection}"),
                Ok(None) if self.lifecycle == Lifecycle::ShutDown => return ExitStatus::Success,
                Ok(None) => {
                    tracing::warn!("the client closed the stream without `shutdown`");
                    return ExitStatus::Failure;
                }
                Err(error) => {
                    tracing::error!("the session ends: {error}");
                    self.outbox.send(reply::error(None, -32700, &error.to_string()));
                    return ExitStatus::Failure;
                }
            }
        }
    }

    /// Deals with one message. A status ends the session.
    fn take(&mut self, body: &[u8]) -> Option<ExitStatus> {
        match message::look(body) {
            Ok(Message::Request { id, method, params }) => self.request(id, &method, params),
            Ok(Message::Notification { method, params }) => self.notification(&method, params),
            Ok(Message::Response { id, outcome }) => {
                self.client.answer(&id, outcome);
                None
            }
            Err(invalid) => {
                let (id, code, reason) = match &invalid {
                    Invalid::Json(error) => (None, -32700, format!("the message is not JSON: {error}")),
                    Invalid::Message { id, reason } => (id.as_ref(), -32600, (*reason).to_owned()),
                };
                tracing::warn!("a message is refused: {reason}");
                self.outbox.send(reply::error(id, code, &reason));
                None
            }
        }
    }

    fn request(&mut self, id: RequestId, method: &str, params: Option<&str>) -> Option<ExitStatus> {
        match route::route_request(self.lifecycle, method) {
            RequestRoute::Refuse(refusal) => {
                self.outbox.send(reply::error(Some(&id), refusal.code(), refusal.message()));
            }
            RequestRoute::Initialize => return self.initialize(&id, params),
            RequestRoute::Shutdown => {
                self.lifecycle = Lifecycle::ShutDown;
                self.shutdown = self.own_request(id, method, None);
            }
            RequestRoute::Own => self.running_request(id, method, params),
        }
        None
    }

    /// To the proxied servers, to our own features, or to both.
    fn running_request(&mut self, id: RequestId, method: &str, params: Option<&str>) {
        let arrival = self.session.latest();
        let Some(features) = &mut self.features else { return };
        let Some(proxy) = &self.proxy else {
            drop(features.request(id, method, params, arrival));
            return;
        };
        let asked = id.clone();
        let own = |deliver: Deliver| drop(features.ask(id, method, params, arrival, deliver));
        proxy.request(&asked, method, params, own);
    }

    fn own_request(&mut self, id: RequestId, method: &str, params: Option<&str>) -> Option<JoinHandle<()>> {
        let arrival = self.session.latest();
        self.features.as_mut()?.request(id, method, params, arrival)
    }

    fn notification(&mut self, method: &str, params: Option<&str>) -> Option<ExitStatus> {
        let params = params.unwrap_or("null");
        match route::route_notification(self.lifecycle, method) {
            NotificationRoute::Exit => {
                let clean = self.lifecycle == Lifecycle::ShutDown;
                return Some(if clean { ExitStatus::Success } else { ExitStatus::Failure });
            }
            NotificationRoute::Cancel => self.cancel(params),
            NotificationRoute::Open => self.synchronise(method, params, SessionHandle::open),
            NotificationRoute::Change => self.synchronise(method, params, |s, change| s.change(&change)),
            NotificationRoute::Save => self.synchronise(method, params, |s, save| s.save(&save)),
            NotificationRoute::Close => self.synchronise(method, params, |s, close| s.close(&close)),
            NotificationRoute::Folders => {
                self.session.change_folders(&serde_json::from_str(params).unwrap_or_default());
                if let Some(proxy) = &self.proxy {
                    proxy.notification(method, params);
                }
                self.own_notification(method, params);
            }
            NotificationRoute::Own => {
                if self.proxy.as_ref().is_none_or(|proxy| proxy.notification(method, params)) {
                    self.own_notification(method, params);
                }
            }
            NotificationRoute::Ignore => tracing::debug!(method, "a notification is ignored"),
        }
        None
    }

    fn own_notification(&mut self, method: &str, params: &str) {
        let arrival = self.session.latest();
        if let Some(features) = &mut self.features {
            features.notify(method, Some(params).filter(|params| *params != "null"), arrival);
        }
    }

    fn synchronise<'a, P: Deserialize<'a> + Addressed>(
        &self,
        method: &str,
        params: &'a str,
        apply: impl FnOnce(&SessionHandle, P) -> Result<(), SyncError>,
    ) {
        match serde_json::from_str(params) {
            Ok(parsed) => {
                let uri = self.proxy.as_ref().and_then(|_| DocumentUri::parse(P::uri(&parsed)).ok());
                let apply = || match apply(&self.session, parsed) {
                    Ok(()) => true,
                    Err(error) => {
                        tracing::warn!(method, "{error}");
                        matches!(error, SyncError::OpenTwice(_))
                    }
                };
                match (&self.proxy, uri) {
                    (Some(proxy), Some(uri)) => proxy.synchronise(method, params, &uri, apply),
                    _ => drop(apply()),
                }
            }
            Err(error) => tracing::error!(method, "a document may differ from the client's now: {error}"),
        }
    }

    fn cancel(&self, params: &str) {
        #[derive(Deserialize)]
        struct Params<'a> {
            #[serde(borrow)]
            id: &'a RawValue,
        }
        let id = serde_json::from_str(params)
            .ok()
            .and_then(|params: Params<'_>| RequestId::from_json(params.id.get()));
        if let (Some(id), Some(features)) = (id, &self.features) {
            features.cancel(&id);
            if let Some(proxy) = &self.proxy {
                proxy.cancel(&id);
            }
        }
    }

    fn initialize(&mut self, id: &RequestId, params: Option<&str>) -> Option<ExitStatus> {
        let params = match serde_json::from_str::<Value>(params.unwrap_or("null")) {
            Ok(params) if params.is_object() => params,
            _ => {
                self.outbox.send(reply::error(
                    Some(id),
                    -32602,
                    "`initialize` needs an object of parameters",
                ));
                return None;
            }
        };
        // Present until the first `initialize` that gets here, and later ones never do.
        let app = self.app.take()?;
        self.session.begin(&params);
        let (client, session, runtime) = (self.client.clone(), self.session.clone(), self.runtime.clone());
        let started = std::panic::catch_unwind(AssertUnwindSafe(|| {
            let _inside = runtime.enter();
            app(client, session)
        }));
        let started = started.map_err(|panic| dispatch::panicked("initialize", &*panic)).and_then(|app| {
            Features::start(app, self.runtime.clone(), self.outbox.clone(), self.limits.in_flight)
        });
        match started {
            Ok((features, capabilities)) => {
                let result = self.initialize_result(capabilities);
                self.proxy = features.proxy();
                self.features = Some(features);
                self.lifecycle = Lifecycle::Running;
                self.outbox.send(reply::outcome(id, Ok(result)));
                self.client.release();
                None
            }
            Err(error) => {
                // There is no second attempt: the features are gone.
                self.outbox.send(reply::outcome(id, Err(error)));
                Some(ExitStatus::Failure)
            }
        }
    }

    /// What the features offer, and what the front does itself.
    fn initialize_result(&self, mut capabilities: Value) -> Value {
        let front = json!({
            "positionEncoding": self.session.latest().encoding().as_str(),
            "textDocumentSync": { "openClose": true, "change": 2, "save": { "includeText": false } },
            "workspace": { "workspaceFolders": { "supported": true, "changeNotifications": true } },
        });
        merge(&mut capabilities, front);
        json!({
            "capabilities": capabilities,
            "serverInfo": { "name": "agents", "version": env!("CARGO_PKG_VERSION") },
        })
    }
}

#[cfg(test)]
mod tests;
