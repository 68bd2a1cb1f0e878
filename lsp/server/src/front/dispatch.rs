//! Our own features: tower-lsp's typed router, called directly, a task for each request.
//!
//! tower-lsp's own transport is not used: it polls all handlers in one task, so that one panic ends the server, and a
//! cancel queues behind the requests it is meant for. Called as the service it is, each handler gets a task (and with
//! it a guard against panics, an immediate cancel, and the session as it was when its message arrived).

use std::any::Any;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};

use futures::FutureExt;
use futures::future::{AbortHandle, BoxFuture, abortable};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tower_lsp::jsonrpc::{Error, ErrorCode, Request, Response};
use tower_lsp::{ExitedError, LanguageServer, LspServiceBuilder};
use tower_service::Service;

use super::message::RequestId;
use super::outbox::Outbox;
use super::reply;
use crate::lock;
use crate::proxy::Proxy;
use crate::session::{ARRIVAL, Snapshot};

/// How many notifications may wait for the handler of an earlier one.
const QUEUED_NOTIFICATIONS: usize = 4096;

type Answer = Result<Option<Response>, ExitedError>;

/// What the features bring to the front.
pub struct App {
    capabilities: Value,
    proxy: Option<Arc<Proxy>>,
    call: Box<dyn FnMut(Request) -> BoxFuture<'static, Answer> + Send>,
}

impl App {
    /// Features behind a tower-lsp service, with the custom methods registered on its builder:
    ///
    /// `App::new(json!({ "hoverProvider": true }), LspService::build(|_| backend).custom_method("agents/plans", Backend::plans))`
    ///
    /// `capabilities` (`ServerCapabilities` as JSON) are merged over those the backend's `initialize` returns; the
    /// front adds `positionEncoding`, `textDocumentSync` and workspace folders itself. The backend's `initialize` is
    /// called once, with empty parameters, and must return at once: what the client said is in the session's
    /// snapshot, and an error it returns is the client's answer. Text synchronisation does not reach the backend, see
    /// [`SessionHandle::changes`](crate::SessionHandle::changes). tower-lsp's own `Client` is not connected; use
    /// [`ClientHandle`](crate::ClientHandle).
    pub fn new<S: LanguageServer>(capabilities: Value, service: LspServiceBuilder<S>) -> Self {
        let (mut service, _unconnected) = service.finish();
        // Ready by construction: the service waits only for states that the front never brings it into.
        Self { capabilities, proxy: None, call: Box::new(move |request| service.call(request)) }
    }

    /// Other language servers behind the same front.
    pub(crate) fn with_proxy(mut self, proxy: Option<Arc<Proxy>>) -> Self {
        self.proxy = proxy;
        self
    }

    pub(super) fn proxy(&self) -> Option<Arc<Proxy>> {
        self.proxy.clone()
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("capabilities", &self.capabilities).finish_non_exhaustive()
    }
}

/// The running features.
pub(crate) struct Features {
    app: App,
    next_id: i64,
    runtime: Handle,
    outbox: Outbox,
    max_in_flight: usize,
    in_flight: Arc<Mutex<HashMap<RequestId, AbortHandle>>>,
    notifications: mpsc::Sender<BoxFuture<'static, ()>>,
}

impl Features {
    /// Starts the features: the capabilities for the answer to `initialize`, or the error to answer it with.
    pub(crate) fn start(
        app: App,
        runtime: Handle,
        outbox: Outbox,
        max_in_flight: usize,
    ) -> Result<(Self, Value), Error> {
        let (notifications, mut queue) = mpsc::channel::<BoxFuture<'static, ()>>(QUEUED_NOTIFICATIONS);
        runtime.spawn(async move {
            // One after another: handlers see notifications in the client's order.
            while let Some(handler) = queue.recv().await {
                handler.await;
            }
        });
        let in_flight = Arc::default();
        let mut features = Self { app, next_id: 0, runtime, outbox, max_in_flight, in_flight, notifications };
        let params = json!({ "capabilities": {} }).to_string();
        let handler = features.call("initialize", Some(&params), true)?;
        let mut result = features.runtime.block_on(guarded("initialize", handler))?;
        let mut capabilities = result.get_mut("capabilities").map(Value::take).unwrap_or_default();
        merge(&mut capabilities, features.app.capabilities.take());
        Ok((features, capabilities))
    }

    /// The language servers behind the same front, if any.
    pub(crate) fn proxy(&self) -> Option<Arc<Proxy>> {
        self.app.proxy()
    }

    /// Starts the handler of a request; its answer goes to the client. The task ends once the answer is queued.
    pub(crate) fn request(
        &mut self,
        id: RequestId,
        method: &str,
        params: Option<&str>,
        arrival: Arc<Snapshot>,
    ) -> Option<JoinHandle<()>> {
        let (outbox, asked) = (self.outbox.clone(), id.clone());
        self.ask(id, method, params, arrival, move |outcome| outbox.send(reply::outcome(&asked, outcome)))
    }

    /// Starts the handler of a request; `deliver` gets its answer, once.
    pub(crate) fn ask(
        &mut self,
        id: RequestId,
        method: &str,
        params: Option<&str>,
        arrival: Arc<Snapshot>,
        deliver: impl FnOnce(Result<Value, Error>) + Send + 'static,
    ) -> Option<JoinHandle<()>> {
        let refusal = {
            let in_flight = lock(&self.in_flight);
            if in_flight.contains_key(&id) {
                Some((ErrorCode::InvalidRequest, "another request with this id is not answered yet"))
            } else if in_flight.len() >= self.max_in_flight {
                Some((ErrorCode::from(-32803), "too many requests wait for their answers"))
            } else {
                None
            }
        };
        if let Some((code, message)) = refusal {
            deliver(Err(Error { code, message: message.into(), data: None }));
            return None;
        }
        let handler = match self.call(method, params, true) {
            Ok(handler) => handler,
            Err(error) => {
                deliver(Err(error));
                return None;
            }
        };
        let handler = guarded(method.to_owned(), handler);
        let (handler, abort) = abortable(ARRIVAL.scope(arrival, handler));
        lock(&self.in_flight).insert(id.clone(), abort);
        let in_flight = self.in_flight.clone();
        Some(self.runtime.spawn(async move {
            let outcome = handler.await.unwrap_or_else(|_| Err(Error::request_cancelled()));
            lock(&in_flight).remove(&id);
            deliver(outcome);
        }))
    }

    /// Queues the handler of a notification behind those of earlier ones.
    pub(crate) fn notify(&mut self, method: &str, params: Option<&str>, arrival: Arc<Snapshot>) {
        let handler = match self.call(method, params, false) {
            Ok(handler) => handler,
            Err(error) => return tracing::warn!(method, %error, "a notification cannot be read"),
        };
        let handler = ARRIVAL.scope(arrival, guarded(method.to_owned(), handler).map(drop));
        if self.notifications.try_send(Box::pin(handler)).is_err() {
            tracing::error!(method, "a notification is dropped: the handler of an earlier one does not end");
        }
    }

    /// Cancels a request; its answer is then -32800. Does nothing for one that is answered or unknown.
    pub(crate) fn cancel(&self, id: &RequestId) {
        if let Some(abort) = lock(&self.in_flight).get(id) {
            abort.abort();
        }
    }

    /// The handler's future, or what is wrong with the parameters' text.
    fn call(
        &mut self,
        method: &str,
        params: Option<&str>,
        answered: bool,
    ) -> Result<BoxFuture<'static, Answer>, Error> {
        let mut request = Request::build(Cow::Owned(method.to_owned()));
        if answered {
            // tower-lsp's own bookkeeping wants ids; the client's stay with the front.
            self.next_id += 1;
            request = request.id(self.next_id);
        }
        if let Some(params) = params {
            let params: Value = serde_json::from_str(params).map_err(|error| Error {
                code: ErrorCode::ParseError,
                message: format!("`params` is not JSON: {error}").into(),
                data: None,
            })?;
            request = request.params(params);
        }
        let request = request.finish();
        std::panic::catch_unwind(AssertUnwindSafe(|| (self.app.call)(request)))
            .map_err(|panic| panicked(method, &*panic))
    }
}

/// A handler whose panic is an error, and whose silence is one, too: every request has an answer.
async fn guarded(method: impl AsRef<str>, handler: BoxFuture<'static, Answer>) -> Result<Value, Error> {
    match AssertUnwindSafe(handler).catch_unwind().await {
        Ok(Ok(Some(response))) => response.into_parts().1,
        Ok(Ok(None)) => Err(Error::method_not_found()),
        Ok(Err(_exited)) => Err(Error::internal_error()),
        Err(panic) => Err(panicked(method.as_ref(), &*panic)),
    }
}

pub(crate) fn panicked(method: &str, panic: &(dyn Any + Send)) -> Error {
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(method, panic = text.unwrap_or("no message"), "a handler panicked");
    let message = format!("the server failed on `{method}`; its log says why");
    Error { code: ErrorCode::InternalError, message: message.into(), data: None }
}

/// Puts `over` on top of `base`: objects key by key, anything else as a whole; `null` changes nothing.
pub(crate) fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (_, Value::Null) => {}
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_merged_key_by_key() {
        let mut base = json!({ "a": { "b": 1, "c": [1] }, "d": true });
        merge(&mut base, json!({ "a": { "c": [2], "e": {} }, "d": { "x": 1 }, "f": null }));
        assert_eq!(base, json!({ "a": { "b": 1, "c": [2], "e": {} }, "d": { "x": 1 }, "f": null }));
    }
}
