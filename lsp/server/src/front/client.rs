//! How handlers and background tasks speak to the client, without ever waiting for it to read.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tower_lsp::lsp_types::notification::Notification;
use tower_lsp::lsp_types::request::Request;

use super::message::RequestId;
use super::outbox::Outbox;
use crate::lock;

/// The client, from the server's side. Cheap to clone; sending returns at once.
///
/// What is sent before the client has its answer to `initialize` is held back until then, as the protocol demands.
#[derive(Clone)]
pub struct ClientHandle {
    shared: Arc<Shared>,
}

struct Shared {
    outbox: Outbox,
    /// What waits for the answer to `initialize`; `None` once that is sent.
    held: Mutex<Option<Vec<Vec<u8>>>>,
    next_id: AtomicI64,
    waiting: Mutex<Waiting>,
}

/// Requests the client has not answered; `None` after the end of the session.
type Waiting = Option<HashMap<i64, Waiter>>;

/// Takes the raw `result` or `error` of an answer.
type Waiter = Box<dyn FnOnce(Result<&str, &str>) + Send>;

/// Why the client gave no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ClientError {
    /// The client answered with an error.
    #[error("the client refused: {message} ({code})")]
    Refused {
        /// The JSON-RPC error code.
        code: i64,
        /// The client's words.
        message: String,
        /// `error.data`.
        data: Option<Value>,
    },
    /// The session ended before the answer came.
    #[error("the client is gone")]
    Gone,
    /// The answer is not what the method promises.
    #[error("the client's answer has an unexpected shape: {0}")]
    Shape(String),
}

impl ClientHandle {
    pub(crate) fn new(outbox: Outbox) -> Self {
        let held = Mutex::new(Some(Vec::new()));
        let waiting = Mutex::new(Some(HashMap::new()));
        Self { shared: Arc::new(Shared { outbox, held, next_id: AtomicI64::new(1), waiting }) }
    }

    /// Sends a notification.
    pub fn notify<N: Notification>(&self, params: N::Params) {
        self.notify_raw(N::METHOD, params);
    }

    /// Sends a notification by name, for methods lsp-types lacks. Parameters that serialise to `null` are left out.
    pub fn notify_raw(&self, method: &str, params: impl Serialize) {
        match message(None, method, params) {
            Ok(body) => self.shared.post(body),
            Err(error) => tracing::error!(method, %error, "a notification cannot be written as JSON"),
        }
    }

    /// Sends a request at once and returns its answer to come. Dropping that means not caring: the answer is then
    /// taken and forgotten.
    pub fn request<R: Request>(&self, params: R::Params) -> Reply<R::Result> {
        self.request_raw(R::METHOD, params)
    }

    /// Sends a request by name, for methods lsp-types lacks. Parameters that serialise to `null` are left out.
    pub fn request_raw<T>(&self, method: &str, params: impl Serialize) -> Reply<T> {
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        match message(Some(id), method, params) {
            // Without a place in the table the sender is dropped, and the reply says that the client is gone.
            Ok(body) => {
                self.shared.expect(id, Box::new(move |outcome| drop(answer.send(read(outcome)))));
                self.shared.post(body);
            }
            Err(error) => drop(answer.send(Err(ClientError::Shape(error.to_string())))),
        }
        Reply { id, answered, shared: Arc::downgrade(&self.shared), result: PhantomData }
    }

    /// Sends a request whose parameters are JSON already; the answer is given as it comes, or never. The id is for
    /// [`Self::cancel`].
    pub(crate) fn forward(
        &self,
        method: &str,
        params: Option<&str>,
        answered: impl FnOnce(Result<&str, &str>) + Send + 'static,
    ) -> i64 {
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        self.shared.expect(id, Box::new(answered));
        self.shared.post(super::reply::request(id, method, params));
        id
    }

    /// Takes a request back; its answer is not waited for any more.
    pub(crate) fn cancel(&self, id: i64) {
        let waited = lock(&self.shared.waiting).as_mut().is_some_and(|waiting| waiting.remove(&id).is_some());
        if waited {
            self.notify_raw("$/cancelRequest", json!({ "id": id }));
        }
    }

    /// Sends a message that is written already.
    pub(crate) fn post(&self, body: Vec<u8>) {
        self.shared.post(body);
    }

    /// Lets out what was held back for the answer to `initialize`.
    pub(crate) fn release(&self) {
        // Under the lock, so that nothing sent from now on overtakes what was held.
        let mut held = lock(&self.shared.held);
        held.take().into_iter().flatten().for_each(|body| self.shared.outbox.send(body));
    }

    /// Takes a response of the client.
    pub(crate) fn answer(&self, id: &RequestId, outcome: Result<&str, &str>) {
        let answer = id.as_i64().and_then(|id| lock(&self.shared.waiting).as_mut()?.remove(&id));
        match answer {
            Some(answer) => answer(outcome),
            None => tracing::debug!(?id, "the client answered a request nobody waits for"),
        }
    }

    /// Ends the session: nobody is answered any more.
    pub(crate) fn close(&self) {
        lock(&self.shared.waiting).take();
    }
}

impl fmt::Debug for ClientHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientHandle").finish_non_exhaustive()
    }
}

impl Shared {
    fn expect(&self, id: i64, waiter: Waiter) {
        if let Some(waiting) = &mut *lock(&self.waiting) {
            waiting.insert(id, waiter);
        }
    }

    fn post(&self, body: Vec<u8>) {
        let mut held = lock(&self.held);
        match &mut *held {
            Some(held) => held.push(body),
            None => self.outbox.send(body),
        }
    }
}

/// The answer to a request to the client, to be awaited or dropped.
#[must_use = "drop it explicitly where the answer does not matter"]
pub struct Reply<T> {
    id: i64,
    answered: oneshot::Receiver<Result<Value, ClientError>>,
    shared: Weak<Shared>,
    result: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Future for Reply<T> {
    type Output = Result<T, ClientError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.answered).poll(cx).map(|answer| {
            let value = answer.unwrap_or(Err(ClientError::Gone))?;
            serde_json::from_value(value).map_err(|error| ClientError::Shape(error.to_string()))
        })
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade()
            && let Some(waiting) = &mut *lock(&shared.waiting)
        {
            waiting.remove(&self.id);
        }
    }
}

fn message(id: Option<i64>, method: &str, params: impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut message = json!({ "jsonrpc": "2.0" });
    if let Some(id) = id {
        message["id"] = id.into();
    }
    message["method"] = method.into();
    match serde_json::to_value(params)? {
        Value::Null => {}
        params => message["params"] = params,
    }
    serde_json::to_vec(&message)
}

fn read(outcome: Result<&str, &str>) -> Result<Value, ClientError> {
    match outcome {
        Ok(result) => serde_json::from_str(result).map_err(|error| ClientError::Shape(error.to_string())),
        Err(error) => Err(refused(serde_json::from_str(error).unwrap_or_default())),
    }
}

fn refused(mut error: Value) -> ClientError {
    ClientError::Refused {
        code: error["code"].as_i64().unwrap_or_default(),
        message: error["message"].as_str().unwrap_or_default().to_owned(),
        data: error.get_mut("data").map(Value::take),
    }
}
