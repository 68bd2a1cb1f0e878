//! What happened, for whoever follows.

use agents_domain::Result;
use agents_domain::event::Event;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Engine, Operation};

/// Lists events after a sequence number.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct After {
    /// The last sequence number already seen; absent starts at the present end.
    #[serde(default)]
    pub sequence: Option<i64>,
    /// Only those of this plan (id or its beginning).
    #[serde(default)]
    pub plan: Option<String>,
    /// At most this many, 1000 unless given.
    #[serde(default)]
    pub limit: Option<usize>,
}

/// Events in order.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AfterOutput {
    /// The events.
    pub events: Vec<Event>,
    /// What to give as `sequence` next time.
    pub sequence: i64,
}

impl Operation for After {
    const METHOD: &'static str = "events/after";
    const SUMMARY: &'static str = "List what happened after a point";
    type Output = AfterOutput;

    fn run(self, engine: &Engine) -> Result<AfterOutput> {
        let plan = self.plan.as_deref().map(|text| engine.plan_id(text)).transpose()?;
        let limit = self.limit.unwrap_or(1000).clamp(1, 10_000);
        engine.view(|r| {
            let Some(after) = self.sequence else {
                return Ok(AfterOutput { events: Vec::new(), sequence: r.last_event()? });
            };
            let events = r.events_after(after, plan, limit)?;
            let sequence = events.last().map_or(after, |e| e.sequence);
            Ok(AfterOutput { events, sequence })
        })
    }
}
