//! The server itself: it answers on a thread of its own until it is dropped.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::stream;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::answer;
use crate::protocol::{Protocol, conversation, wants};
use crate::script::{Fault, Reply, Script};

/// How long a test waits for what it expects of the server.
const DEADLINE: Duration = Duration::from_secs(60);

type Body = http_body_util::combinators::UnsyncBoxBody<Bytes, std::io::Error>;

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The path.
    pub path: String,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Value,
    /// Which reply it got; `None` for one that nobody expected.
    pub reply: Option<usize>,
    /// When it was there as a whole.
    pub at: Instant,
}

impl Asked {
    /// Everything that was said, as one text.
    pub fn conversation(&self) -> String {
        conversation(&self.body)
    }

    /// A header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

#[derive(Default)]
struct State {
    script: Script,
    used: Vec<u32>,
    asked: Vec<Asked>,
    reached: BTreeSet<String>,
    released: BTreeSet<String>,
    /// The connection broke while an answer was being sent.
    left: usize,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    go_on: Notify,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn wait_at(&self, barrier: &str) {
        self.lock().reached.insert(barrier.to_owned());
        self.changed.notify_all();
        loop {
            let go_on = self.go_on.notified();
            if self.lock().released.contains(barrier) {
                return;
            }
            go_on.await;
        }
    }
}

/// A running server.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Server {
    /// Starts one on a free port of the loopback interface.
    ///
    /// # Panics
    /// When the script does not fit or no port is free.
    pub fn start(script: Value) -> Self {
        Self::with(Script::read(script), 0)
    }

    /// Starts one on a port.
    ///
    /// # Panics
    /// When the port is taken.
    pub fn with(script: Script, port: u16) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime can be made");
        let listener = runtime
            .block_on(TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))))
            .expect("a port is free");
        let address = listener.local_addr().expect("a listener has an address");
        let shared = Arc::new(Shared::default());
        {
            let mut state = shared.lock();
            state.used = vec![0; script.replies.len()];
            state.script = script;
        }
        runtime.spawn(accept(listener, shared.clone()));
        Self { address, shared, runtime: Some(runtime) }
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The base for OpenAI's and Anthropic's protocols: `.../v1`.
    pub fn base(&self) -> String {
        format!("{}/v1", self.url())
    }

    /// More replies, after those there are.
    pub fn add(&self, replies: Value) {
        let more: Vec<Reply> = serde_json::from_value(replies).expect("the replies fit");
        let mut state = self.shared.lock();
        state.used.extend(more.iter().map(|_| 0));
        state.script.replies.extend(more);
    }

    /// All requests so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.lock().asked.clone()
    }

    /// Waits until a request stands at a barrier.
    ///
    /// # Panics
    /// When none does in time.
    pub fn reached(&self, barrier: &str) {
        self.wait(&format!("a request at barrier `{barrier}`"), |state| state.reached.contains(barrier));
    }

    /// Waits until so many answers were broken off by whoever asked.
    ///
    /// # Panics
    /// When it does not happen in time.
    pub fn left(&self, times: usize) {
        self.wait("the caller leaves", |state| state.left >= times);
    }

    fn wait(&self, what: &str, mut there: impl FnMut(&State) -> bool) {
        let until = Instant::now() + DEADLINE;
        let mut state = self.shared.lock();
        while !there(&state) {
            let left = until.checked_duration_since(Instant::now());
            let Some(left) = left else {
                panic!("{what}: not within {DEADLINE:?}; asked: {:#?}", state.asked)
            };
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Lets all requests at a barrier go on, those that come later, too.
    pub fn release(&self, barrier: &str) {
        self.shared.lock().released.insert(barrier.to_owned());
        self.shared.go_on.notify_waiters();
    }

    /// Every request was expected, and every reply that is given a number of times was given.
    ///
    /// # Panics
    /// When not, with what was asked.
    pub fn assert_expected(&self) {
        let state = self.shared.lock();
        for asked in &state.asked {
            assert!(asked.reply.is_some(), "nobody expected this request:\n{}", asked.conversation());
        }
    }

    /// Every reply was used up.
    ///
    /// # Panics
    /// When one was not.
    pub fn assert_all_used(&self) {
        let state = self.shared.lock();
        for (index, (reply, used)) in state.script.replies.iter().zip(&state.used).enumerate() {
            assert!(
                reply.times == 0 || *used == reply.times,
                "reply {index} was given {used} times: {reply:#?}"
            );
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        if !std::thread::panicking() {
            self.assert_expected();
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let shared = shared.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| respond(request, shared.clone()));
            let served = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
            if served.is_err() {
                shared.lock().left += 1;
                shared.changed.notify_all();
            }
        });
    }
}

fn full(status: u16, content_type: &str, body: impl Into<Bytes>) -> Response<Body> {
    let body = Full::new(body.into()).map_err(|never: Infallible| match never {}).boxed_unsync();
    Response::builder()
        .status(status)
        .header("content-type", content_type)
        .body(body)
        .expect("a response can be made")
}

fn json(status: u16, body: &Value) -> Response<Body> {
    full(status, "application/json", body.to_string())
}

async fn respond(request: Request<Incoming>, shared: Arc<Shared>) -> Result<Response<Body>, hyper::Error> {
    let path = request.uri().path().to_owned();
    let text = |value: &hyper::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = request.headers().iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    let bytes = request.into_body().collect().await?.to_bytes();
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let protocol = Protocol::of(&path);
    let (found, number) = {
        let mut state = shared.lock();
        let fits = |(reply, used): (&Reply, &u32)| {
            (reply.times == 0 || *used < reply.times) && wants(&reply.when, &body)
        };
        let index =
            state.script.replies.iter().zip(&state.used).position(fits).filter(|_| protocol.is_some());
        if let Some(index) = index {
            state.used[index] += 1;
        }
        state.asked.push(Asked { path, headers, body: body.clone(), reply: index, at: Instant::now() });
        shared.changed.notify_all();
        (index.map(|index| state.script.replies[index].clone()), state.asked.len())
    };
    let (Some(protocol), Some(reply)) = (protocol, found) else {
        let message = "the test server did not expect this request";
        return Ok(json(400, &answer::refusal(protocol, 400, message)));
    };
    let streamed = body["stream"] == true;
    let in_the_middle = matches!(reply.fault, Some(Fault::Cut { .. })) || reply.fault.is_none() && streamed;
    if let (Some(barrier), false) = (&reply.barrier, in_the_middle) {
        shared.wait_at(barrier).await;
    }
    Ok(match &reply.fault {
        Some(Fault::Status { status, retry_after, message }) => {
            let message = message.as_deref().unwrap_or("the script says so");
            let mut response = json(*status, &answer::refusal(Some(protocol), *status, message));
            if let Some(seconds) = retry_after {
                let value = seconds.to_string().parse().expect("a number is a header");
                response.headers_mut().insert("retry-after", value);
            }
            response
        }
        Some(Fault::TooLong { .. }) => json(400, &answer::too_long(protocol)),
        Some(Fault::ContentType { content_type }) => full(200, content_type, "<html>no model here</html>"),
        Some(Fault::Hangs { .. }) => std::future::pending().await,
        Some(Fault::Malformed { .. }) if !streamed => full(200, "application/json", "{\"choices\": [{"),
        _ if streamed => {
            let frames = answer::stream(protocol, &reply, &body, number);
            sending(protocol, reply, frames, shared)
        }
        _ => json(200, &answer::whole(protocol, &reply, &body, number)),
    })
}

/// The frames one after another, up to where something goes wrong.
fn sending(protocol: Protocol, reply: Reply, mut frames: Vec<String>, shared: Arc<Shared>) -> Response<Body> {
    let middle = frames.len() / 2;
    let mut stop = None;
    match &reply.fault {
        Some(Fault::Cut { cut }) => stop = Some((*cut).min(frames.len())),
        Some(Fault::Malformed { .. }) => {
            let named = if protocol == Protocol::Messages { "event: content_block_delta\n" } else { "" };
            frames.insert(middle, format!("{named}data: {{\"choices\": [{{\n\n"));
        }
        Some(Fault::Event { event }) => {
            frames.truncate(middle);
            frames.push(answer::error_event(protocol, event));
        }
        _ => {}
    }
    let wait_at = stop.unwrap_or(middle);
    let pace = Duration::from_millis(reply.pace_ms);
    let barrier = reply.barrier;
    let sent = stream::unfold(0, move |at| {
        let (frame, shared, barrier) = (frames.get(at).cloned(), shared.clone(), barrier.clone());
        async move {
            if let Some(barrier) = barrier.filter(|_| at == wait_at) {
                shared.wait_at(&barrier).await;
            }
            if stop == Some(at) {
                return Some((Err(std::io::Error::other("cut")), usize::MAX));
            }
            let frame = frame?;
            if !pace.is_zero() {
                tokio::time::sleep(pace).await;
            }
            Some((Ok(Frame::data(Bytes::from(frame))), at + 1))
        }
    });
    Response::builder()
        .status(200)
        .header("content-type", "text/event-stream")
        .body(StreamBody::new(sent).boxed_unsync())
        .expect("a response can be made")
}
