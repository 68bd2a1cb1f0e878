//! Our own protocol: `agents/plans`, `agents/planTree`, `agents/decision`, `agents/content`, and the events a client
//! subscribes to. Its version is in the server's `experimental.cleveragents.protocol`.

use agents_domain::ids::PlanId;
use agents_engine::operations::events::After;
use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp::jsonrpc;

use super::{Shared, refusal};
use crate::lock;

/// The version of this protocol; it grows when something that was there changes or goes.
pub(crate) const PROTOCOL: u32 = 1;

/// Which events a client wants, and the last one it got.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subscription {
    pub plan: Option<PlanId>,
    pub sequence: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Subscribe {
    /// Only events of this plan.
    plan: Option<String>,
    /// Begin after this event instead of now.
    sequence: Option<i64>,
}

impl Shared {
    /// A request that is an operation of the engine under another name.
    pub async fn operation(&self, method: &'static str, params: Value) -> jsonrpc::Result<Value> {
        self.blocking(move |engine| engine.call_json(method, params)).await.map_err(refusal)
    }

    /// Begins to send `agents/event`; a second subscription takes the place of the first.
    pub async fn subscribe(&self, params: Value) -> jsonrpc::Result<Value> {
        let params = if params.is_null() { json!({}) } else { params };
        let wanted: Subscribe = serde_json::from_value(params)
            .map_err(|error| jsonrpc::Error::invalid_params(format!("agents/subscribe: {error}")))?;
        let plan = wanted.plan.as_deref().map(str::parse::<PlanId>).transpose();
        let plan = plan.map_err(|error| refusal(error.into()))?;
        let sequence = match wanted.sequence {
            Some(sequence) => sequence,
            None => {
                let now = After { sequence: None, plan: None, limit: None };
                self.blocking(move |engine| engine.call(now)).await.map_err(refusal)?.sequence
            }
        };
        *lock(&self.subscription) = Some(Subscription { plan, sequence });
        Ok(json!({ "protocol": PROTOCOL, "sequence": sequence }))
    }

    pub fn unsubscribe(&self) {
        *lock(&self.subscription) = None;
    }
}
