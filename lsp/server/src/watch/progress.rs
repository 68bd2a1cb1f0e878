//! Work-done progress: one for each phase that a worker is at, for plans of the client's folders.

use std::collections::{BTreeMap, HashMap};

use agents_domain::ids::PlanId;
use agents_domain::plan::Phase;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::world::{OpenPlan, Step, World};
use crate::ClientHandle;
use crate::requests::Shared;

/// The progress the client is shown.
pub(crate) struct Progress {
    supported: bool,
    runtime: Handle,
    shown: HashMap<PlanId, Shown>,
    /// Tokens are never used twice.
    count: u64,
}

struct Shown {
    phase: Phase,
    say: UnboundedSender<Word>,
}

pub(crate) enum Word {
    Report(Step),
    End(String),
}

impl Progress {
    pub fn new(shared: &Shared, runtime: &Handle) -> Self {
        let supported = shared.session.latest().client().supports("/window/workDoneProgress");
        Self { supported, runtime: runtime.clone(), shown: HashMap::new(), count: 0 }
    }

    /// Begins, reports and ends so that the client is shown what runs now.
    pub fn follow(&mut self, world: &World, steps: &BTreeMap<PlanId, Step>, shared: &Shared) {
        if !self.supported {
            return;
        }
        self.shown.retain(|plan, shown| {
            let now = world.plans.get(plan);
            let goes_on = now.is_some_and(|open| open.is_running() && open.phase == shown.phase);
            if !goes_on {
                let _ =
                    shown.say.send(Word::End(now.map_or_else(|| "ended".to_owned(), |open| outcome(open))));
            }
            goes_on
        });
        let snapshot = shared.session.latest();
        for (plan, open) in world.plans.iter().filter(|(_, open)| open.is_running()) {
            if !self.shown.contains_key(plan) && world.concerns(open, snapshot.folders()) {
                self.count += 1;
                let token = format!("agents/{plan}/{}/{}", open.phase, self.count);
                let title = format!("{}: {}", open.action, open.phase);
                let say = begin(&shared.client, &self.runtime, token, title);
                self.shown.insert(*plan, Shown { phase: open.phase, say });
            }
        }
        for (plan, step) in steps {
            if let Some(shown) = self.shown.get(plan) {
                let _ = shown.say.send(Word::Report(step.clone()));
            }
        }
    }
}

fn outcome(open: &OpenPlan) -> String {
    match &open.awaiting {
        Some(waits) => format!("waits: {}", crate::requests::brief(&waits.question, 100)),
        None => format!("{} is {}", open.phase, open.state),
    }
}

/// Begins to show one more; what is said to the sender is shown, and its end ends it.
pub(crate) fn begin(
    client: &ClientHandle,
    runtime: &Handle,
    token: String,
    title: String,
) -> UnboundedSender<Word> {
    let (say, words) = unbounded_channel();
    runtime.spawn(show(client.clone(), token, title, words));
    say
}

/// Shows one progress from its creation to its end.
async fn show(client: ClientHandle, token: String, title: String, mut words: UnboundedReceiver<Word>) {
    let created = client.request_raw::<Value>("window/workDoneProgress/create", json!({ "token": token }));
    if let Err(error) = created.await {
        return tracing::debug!(%error, "the client shows no progress");
    }
    let say = |value: Value| client.notify_raw("$/progress", json!({ "token": token, "value": value }));
    say(json!({ "kind": "begin", "title": title, "cancellable": false }));
    while let Some(word) = words.recv().await {
        match word {
            Word::Report(step) => say(report(&step)),
            Word::End(message) => return say(json!({ "kind": "end", "message": message })),
        }
    }
    say(json!({ "kind": "end" }));
}

fn report(step: &Step) -> Value {
    let mut value = json!({ "kind": "report", "cancellable": false, "message": step.label });
    if let (Some(done), Some(total)) = (step.done, step.total.filter(|total| *total > 0)) {
        value["percentage"] = (done.min(total) * 100 / total).into();
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_is_shown_where_the_total_is_known_and_never_above_100() {
        let step = |done, total| Step { label: "x".to_owned(), done, total };
        assert_eq!(report(&step(Some(1), Some(4)))["percentage"], 25);
        assert_eq!(report(&step(Some(9), Some(4)))["percentage"], 100);
        for (done, total) in [(Some(1), None), (Some(1), Some(0)), (None, Some(4))] {
            assert_eq!(report(&step(done, total)).get("percentage"), None);
        }
    }
}
