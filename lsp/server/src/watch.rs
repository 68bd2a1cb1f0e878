//! Follows what any process does to the plans, and tells the client: one thread that asks the store for changes every
//! few milliseconds, brings the world forward by the new events and sends what follows from them.

mod look_up;
pub(crate) mod progress;
pub(crate) mod publish;
pub(crate) mod refresh;
pub(crate) mod world;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use agents_domain::event::Event;
use agents_domain::plan::{Phase, State};
use agents_domain::ports::store::Watch;
use agents_domain::{Error, Result};
use agents_engine::Engine;
use agents_engine::operations::events::After;
use agents_engine::operations::plan::{List, Pending, Status};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::sync::watch;

use self::look_up::{find_trouble, is_trouble, look_up, recall_violations, registry, take_checks};
use self::progress::Progress;
use self::publish::Publisher;
use self::refresh::Refreshes;
use self::world::{Changes, OpenPlan, Questions, Waits, World, short};
use crate::EditorOptions;
use crate::documents::Document;
use crate::lock;
use crate::requests::content::Subject;
use crate::requests::entity::{Entity, Names};
use crate::requests::{Shared, brief, diagnostic};
use crate::syntax::Job;

/// How long to wait before a store that failed is tried again.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// How long edits are let come in before what syntax says of them is published.
const AFTER_EDIT: Duration = Duration::from_millis(150);

/// Events read at once.
const BATCH: usize = 1000;

/// Failed plans whose files are looked up; the newest.
const TROUBLES: usize = 20;

/// Why the watch looks before its next poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    /// Something was done from here.
    Look,
    /// Documents were opened, closed or saved, or the folders are others.
    Documents,
    /// Settings are others.
    Settings,
}

/// Starts the watch. It ends when the last sender is gone.
pub(crate) fn start(
    shared: Arc<Shared>,
    world: watch::Sender<Option<Arc<World>>>,
    options: EditorOptions,
    runtime: Handle,
) -> Sender<Wake> {
    let (wake, woken) = mpsc::channel();
    runtime.spawn(follow_documents(shared.clone(), wake.clone()));
    if let Some(every) = options.workers {
        runtime.spawn(start_workers(shared.clone(), every));
    }
    let watcher = Watcher {
        refreshes: Refreshes::new(&shared, &runtime),
        progress: Progress::new(&shared, &runtime),
        publisher: Publisher::default(),
        shared,
        world,
    };
    let thread = std::thread::Builder::new().name("agents-watch".to_owned());
    if let Err(error) = thread.spawn(move || watcher.run(&woken, options.poll)) {
        tracing::error!(%error, "changes will not be seen: the system gives no thread");
    }
    wake
}

/// Starts workers for plans that want one and have none, again and again.
async fn start_workers(shared: Arc<Shared>, every: Duration) {
    loop {
        match shared.blocking(Engine::ensure_workers).await {
            Ok(started) if started.is_empty() => {}
            Ok(started) => tracing::info!(?started, "workers were started"),
            Err(error) => tracing::warn!(%error, "workers could not be started"),
        }
        tokio::time::sleep(every).await;
    }
}

/// Wakes the watch when other documents are open or saved, and looks at new ones before anybody asks.
async fn follow_documents(shared: Arc<Shared>, wake: Sender<Wake>) {
    let mut changes = shared.session.changes();
    let mut known = BTreeMap::new();
    let pulls = diagnostic::pulls(shared.session.latest().client());
    // Who pulls asks again after an edit by itself.
    let pushes = shared.syntax.is_some() && !pulls;
    while changes.changed().await.is_ok() {
        let snapshot = shared.session.latest();
        let open: BTreeMap<String, (u64, Option<i32>)> =
            snapshot.documents().map(|d| (d.uri().as_str().to_owned(), state(d, pulls))).collect();
        if open == known {
            if pushes {
                tokio::time::sleep(AFTER_EDIT).await;
                let _ = wake.send(Wake::Documents);
            }
            continue;
        }
        shared.cache.retain(|uri| snapshot.document(uri).is_some());
        if let Some(syntax) = &shared.syntax {
            syntax.retain(|uri| snapshot.document(uri).is_some());
            let other = |d: &&Arc<Document>| {
                known.get(d.uri().as_str()).is_some_and(|(saves, _)| *saves != d.saves())
            };
            let saved = snapshot.documents().filter(other).filter_map(|d| d.uri().to_path());
            syntax.ask(Job::Changed(saved.collect()));
        }
        for document in snapshot.documents().filter(|d| !known.contains_key(d.uri().as_str())) {
            let (shared, document) = (shared.clone(), document.clone());
            tokio::spawn(async move { shared.look_ahead(&document).await });
        }
        known = open;
        if wake.send(Wake::Documents).is_err() {
            return;
        }
    }
}

/// What must be looked at anew when it is another: saves, and each edit of an entity file whose problems are pushed.
fn state(document: &Document, pulls: bool) -> (u64, Option<i32>) {
    let edits = (!pulls && Entity::of(document).is_some()).then(|| document.version());
    (document.saves(), edits)
}

struct Watcher {
    shared: Arc<Shared>,
    world: watch::Sender<Option<Arc<World>>>,
    refreshes: Refreshes,
    progress: Progress,
    publisher: Publisher,
}

impl Watcher {
    fn run(mut self, woken: &Receiver<Wake>, poll: Duration) {
        let mut told = false;
        loop {
            let followed = catch_unwind(AssertUnwindSafe(|| self.follow(woken, poll)));
            match followed
                .unwrap_or_else(|_| Err(Error::internal("a defect of the server; its log says more")))
            {
                Ok(()) => return,
                Err(error) => {
                    tracing::warn!(%error, "the store cannot be followed");
                    if !std::mem::replace(&mut told, true) {
                        self.shared.message(1, &format!("CleverAgents cannot follow its plans: {error}"));
                    }
                }
            }
            let again = Instant::now() + AFTER_FAILURE;
            while let Some(left) = again.checked_duration_since(Instant::now()) {
                if matches!(woken.recv_timeout(left), Err(RecvTimeoutError::Disconnected)) {
                    return;
                }
            }
        }
    }

    /// Looks until the session ends.
    fn follow(&mut self, woken: &Receiver<Wake>, poll: Duration) -> Result<()> {
        // Before the first look, so that nothing falls between the two.
        let mut watch: Box<dyn Watch> = self.shared.engine.0.store().watch()?;
        self.first_look()?;
        loop {
            let mut documents = false;
            let mut look = false;
            match woken.recv_timeout(poll) {
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {}
                Ok(first) => {
                    for wake in std::iter::once(first).chain(woken.try_iter()) {
                        match wake {
                            Wake::Look => look = true,
                            Wake::Documents => documents = true,
                            Wake::Settings => self.refreshes.hints(),
                        }
                    }
                }
            }
            if watch.changed()? || look {
                self.look()?;
            }
            if documents {
                self.publish();
            }
        }
    }

    fn present(&self) -> Arc<World> {
        self.world.borrow().clone().unwrap_or_default()
    }

    fn publish(&mut self) {
        let snapshot = self.shared.session.latest();
        self.publisher.publish(&self.shared, &self.present(), &snapshot);
    }

    /// The world as it is when the session begins, or after a failure.
    fn first_look(&mut self) -> Result<()> {
        let engine = self.shared.engine.0.clone();
        // The sequence first: what happens in between is looked at twice rather than never.
        let sequence = engine.call(After { sequence: None, plan: None, limit: None })?.sequence;
        let listed = engine.call(List::default())?.plans;
        let open = listed.into_iter().filter(|plan| !matches!(plan.state, State::Applied | State::Cancelled));
        let mut world = World {
            sequence,
            registry: Arc::new(registry(&engine)?),
            names: Arc::new(Names::read(&engine)?),
            ..World::default()
        };
        for plan in open {
            let awaiting = plan
                .awaiting
                .and_then(|kind| Some(Waits { kind: kind.parse().ok()?, question: String::new() }));
            let open = OpenPlan {
                action: plan.action,
                project: plan.project,
                phase: plan.phase,
                state: plan.state,
                awaiting,
                failure: None,
            };
            world.plans.insert(plan.id, Arc::new(open));
        }
        world.questions = Arc::new(Questions::new(engine.call(Pending::default())?.decisions));
        let failed = world.plans.iter().filter(|(_, open)| is_trouble(open.state)).map(|(id, _)| *id);
        for plan in failed.rev().take(TROUBLES).collect::<Vec<_>>() {
            find_trouble(&engine, &mut world, plan);
        }
        let executed = world.plans.iter().filter(|(_, open)| open.phase == Phase::Execute).map(|(id, _)| *id);
        for plan in executed.rev().take(TROUBLES).collect::<Vec<_>>() {
            match engine.call(Status { plan: plan.to_string() }) {
                Ok(status) => take_checks(&mut world, plan, &status),
                Err(error) => tracing::warn!(%plan, %error, "what the validations said is not known"),
            }
            recall_violations(&engine, &mut world, plan)?;
        }
        self.shared.cache.forget(true, &Default::default());
        self.shared.details.forget(&world.plans.keys().copied().collect());
        let again = self.world.borrow().is_some();
        let world = self.set(world);
        self.progress.follow(&world, &BTreeMap::new(), &self.shared);
        // Requests wait for this look, so that only what was asked before a failure is stale.
        if again {
            self.refreshes.lenses();
            self.refreshes.hints();
            self.refreshes.diagnostics();
        }
        self.publish();
        Ok(())
    }

    fn set(&self, world: World) -> Arc<World> {
        let world = Arc::new(world);
        self.world.send_replace(Some(world.clone()));
        world
    }

    /// Takes in what happened since the last look and tells whom it concerns.
    fn look(&mut self) -> Result<()> {
        let engine = self.shared.engine.0.clone();
        let before = self.present();
        let mut world = (*before).clone();
        let mut changes = Changes::default();
        loop {
            let after = After { sequence: Some(world.sequence), plan: None, limit: Some(BATCH) };
            let events = engine.call(after)?.events;
            events.iter().for_each(|event| world.apply(event, &mut changes));
            self.tell_subscriber(&engine, &events)?;
            if events.len() < BATCH {
                break;
            }
        }
        let registry = registry(&engine)?;
        let registered = registry != *world.registry;
        if registered {
            world.registry = Arc::new(registry);
        }
        if changes.registered {
            world.names = Arc::new(Names::read(&engine)?);
        }
        for plan in std::mem::take(&mut changes.unknown) {
            look_up(&engine, &mut world, plan, &mut changes);
        }
        let World { violations, plans, .. } = &mut world;
        violations.retain(|plan, _| plans.contains_key(plan));
        for plan in &changes.plans {
            let trouble = world.plans.get(plan).is_some_and(|open| is_trouble(open.state));
            if trouble {
                find_trouble(&engine, &mut world, *plan);
            } else {
                world.troubles.remove(plan);
            }
        }
        for plan in &changes.checks {
            match engine.call(Status { plan: plan.to_string() }) {
                Ok(status) => take_checks(&mut world, *plan, &status),
                Err(error) => tracing::warn!(%plan, %error, "what the validations said is not known"),
            }
        }
        if changes.questions {
            world.questions = Arc::new(Questions::new(engine.call(Pending::default())?.decisions));
        }
        let troubles = world.troubles != before.troubles
            || world.checks != before.checks
            || world.violations != before.violations;
        let world = self.set(world);
        self.shared.cache.forget(changes.attribution || registered, &changes.files);
        self.shared.details.forget(&changes.plans);
        let lines = changes.attribution || registered || !changes.files.is_empty();
        if lines {
            self.refreshes.hints();
        }
        if lines || changes.questions || changes.registered || !changes.plans.is_empty() {
            self.refreshes.lenses();
        }
        if changes.questions || troubles || registered || changes.registered {
            self.refreshes.diagnostics();
            self.publish();
        }
        self.refresh_contents(&changes);
        self.progress.follow(&world, &changes.progress, &self.shared);
        self.notify(&before, &world, &changes);
        Ok(())
    }

    /// Sends events to the client, if it wants them, each once.
    fn tell_subscriber(&self, engine: &Engine, events: &[Event]) -> Result<()> {
        let Some(mut wanted) = *lock(&self.shared.subscription) else { return Ok(()) };
        let begun = wanted;
        let first = events.first().map(|event| event.sequence);
        if first.is_none_or(|first| wanted.sequence + 1 < first) {
            // It asked for what was before; that includes what is new now.
            loop {
                let after = After { sequence: Some(wanted.sequence), plan: None, limit: Some(BATCH) };
                let missed = engine.call(after)?.events;
                self.send(&missed, &mut wanted);
                if missed.len() < BATCH {
                    break;
                }
            }
        } else {
            self.send(events, &mut wanted);
        }
        let mut subscription = lock(&self.shared.subscription);
        // Unless it subscribed anew in the meantime.
        if let Some(present) = subscription.as_mut().filter(|s| s.sequence == begun.sequence) {
            present.sequence = wanted.sequence;
        }
        Ok(())
    }

    fn send(&self, events: &[Event], wanted: &mut crate::requests::custom::Subscription) {
        for event in events.iter().filter(|event| event.sequence > wanted.sequence) {
            if wanted.plan.is_none_or(|plan| event.plan_id == Some(plan) || event.root_plan_id == Some(plan))
            {
                self.shared.client.notify_raw("agents/event", event);
            }
        }
        wanted.sequence = events.last().map_or(wanted.sequence, |event| event.sequence.max(wanted.sequence));
    }

    /// Asks a client with LSP 3.18 to read again the virtual documents that are other ones now.
    fn refresh_contents(&self, changes: &Changes) {
        let snapshot = self.shared.session.latest();
        if !snapshot.client().supports("/workspace/textDocumentContent") {
            return;
        }
        let moved = |plan| changes.plans.contains(&plan) || changes.progress.contains_key(&plan);
        for document in snapshot.documents() {
            let Ok(subject) = Subject::parse(document.uri()) else { continue };
            // Which plan a decision is of is not in its URI.
            if subject.plan().map_or(changes.questions || changes.attribution, moved) {
                let params = json!({ "uri": document.uri().as_str() });
                drop(
                    self.shared
                        .client
                        .request_raw::<serde_json::Value>("workspace/textDocumentContent/refresh", params),
                );
            }
        }
    }

    /// Tells a person about plans of their folders that wait for them now, or came to an end.
    fn notify(&self, before: &World, world: &World, changes: &Changes) {
        if !self.shared.settings.notifications() {
            return;
        }
        let snapshot = self.shared.session.latest();
        let mut told: Vec<(u8, String)> = Vec::new();
        for plan in &changes.plans {
            let after = changes.ended.get(plan).or_else(|| world.plans.get(plan));
            let Some(after) = after.filter(|after| world.concerns(after, snapshot.folders())) else {
                continue;
            };
            let said = match before.plans.get(plan) {
                Some(before) => {
                    (before.state, before.awaiting.clone()) == (after.state, after.awaiting.clone())
                }
                None => false,
            };
            if let Some((kind, what)) = news(after).filter(|_| !said) {
                told.push((kind, format!("Plan {} ({}) {what}", short(*plan), after.action)));
            }
        }
        // One message for all: two in a row make some editors wait for a key.
        if let Some(kind) = told.iter().map(|(kind, _)| *kind).min() {
            let words: Vec<String> = told.into_iter().map(|(_, words)| words).collect();
            self.shared.message(kind, &words.join("; "));
        }
    }
}

/// What a person should hear about where a plan stands.
fn news(plan: &OpenPlan) -> Option<(u8, String)> {
    let because = |word: &str| match &plan.failure {
        Some(failure) => format!("{word}: {}", brief(failure, 200)),
        None => word.to_owned(),
    };
    match (plan.state, &plan.awaiting) {
        (State::Errored, _) => Some((2, because("failed"))),
        (State::Constrained, _) => Some((2, because("cannot be applied"))),
        (_, Some(waits)) => Some((3, format!("waits for you: {}", brief(&waits.question, 200)))),
        (State::Applied, _) => Some((3, "was applied".to_owned())),
        (State::Cancelled, _) => Some((3, "was cancelled".to_owned())),
        _ => None,
    }
}
