//! Refresh requests: at most one of a kind is unanswered; what changes meanwhile is one more when it is answered.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::runtime::Handle;

use crate::requests::{Shared, diagnostic};
use crate::{ClientHandle, lock};

/// A client that takes longer to answer is asked again all the same.
const ANSWER: Duration = Duration::from_secs(2);

/// The kinds of refresh that the client understands.
pub(crate) struct Refreshes {
    lenses: Option<Refresh>,
    hints: Option<Refresh>,
    diagnostics: Option<Refresh>,
}

struct Refresh {
    method: &'static str,
    client: ClientHandle,
    runtime: Handle,
    state: Arc<Mutex<State>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Asked,
    /// Something changed after it was asked.
    AskAgain,
}

impl Refreshes {
    pub fn new(shared: &Shared, runtime: &Handle) -> Self {
        let snapshot = shared.session.latest();
        let client = snapshot.client();
        let refresh = |method, supported: bool| {
            let state = Arc::new(Mutex::new(State::Idle));
            supported.then(|| Refresh {
                method,
                client: shared.client.clone(),
                runtime: runtime.clone(),
                state,
            })
        };
        Self {
            lenses: refresh(
                "workspace/codeLens/refresh",
                client.supports("/workspace/codeLens/refreshSupport"),
            ),
            hints: refresh(
                "workspace/inlayHint/refresh",
                client.supports("/workspace/inlayHint/refreshSupport"),
            ),
            diagnostics: refresh("workspace/diagnostic/refresh", diagnostic::pulls(client)),
        }
    }

    pub fn lenses(&self) {
        self.lenses.iter().for_each(Refresh::ask);
    }

    pub fn hints(&self) {
        self.hints.iter().for_each(Refresh::ask);
    }

    pub fn diagnostics(&self) {
        self.diagnostics.iter().for_each(Refresh::ask);
    }
}

impl Refresh {
    fn ask(&self) {
        {
            let mut state = lock(&self.state);
            if *state != State::Idle {
                *state = State::AskAgain;
                return;
            }
            *state = State::Asked;
        }
        let (method, client, state) = (self.method, self.client.clone(), self.state.clone());
        let mut reply = client.request_raw::<Value>(method, Value::Null);
        self.runtime.spawn(async move {
            loop {
                if let Ok(Err(error)) = tokio::time::timeout(ANSWER, reply).await {
                    tracing::debug!(method, %error, "a refresh was not taken");
                }
                {
                    let mut state = lock(&state);
                    if *state == State::Asked {
                        *state = State::Idle;
                        return;
                    }
                    *state = State::Asked;
                }
                reply = client.request_raw(method, Value::Null);
            }
        });
    }
}
