//! The thread that keeps the indexes of the workspace's folders in line with their files.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use agents_domain::language_server::LanguageServerDefinition;
use agents_domain::ports::code_index::CodeIndex;
use agents_domain::ports::store::StoreExt;
use serde_json::json;
use tokio::runtime::Handle;

use super::{Syntax, relative, served};
use crate::requests::Shared;
use crate::watch::progress::{Word, begin};
use crate::watch::world::Step;
use crate::{Folder, lock};

/// Files to read from which on a scan is shown as work.
const SHOWN: usize = 200;
/// A folder is looked through again after this long at the earliest, when somebody asks something.
const AGAIN: Duration = Duration::from_secs(5);
/// And after so many times as long as it took.
const SHARE: u32 = 20;

/// What the thread is asked to do.
#[derive(Debug)]
pub(crate) enum Job {
    /// Look through folders that were not looked at yet, or not for a while.
    Look,
    /// Look at files that were saved or changed by others.
    Changed(Vec<PathBuf>),
}

/// Starts the thread; it ends with the session.
pub(crate) fn start(shared: &Arc<Shared>, runtime: &Handle) {
    let Some(syntax) = &shared.syntax else { return };
    let (jobs, wanted) = channel();
    if syntax.jobs.set(jobs).is_err() {
        return;
    }
    let (weak, runtime) = (Arc::downgrade(shared), runtime.clone());
    let thread = std::thread::Builder::new().name("agents-index".to_owned());
    if let Err(error) = thread.spawn(move || run(&weak, &wanted, &runtime)) {
        tracing::error!(%error, "nothing is indexed: the system gives no thread");
    }
}

fn run(weak: &Weak<Shared>, wanted: &Receiver<Job>, runtime: &Handle) {
    let mut count = 0u64;
    while let Ok(job) = wanted.recv() {
        let jobs: Vec<Job> = std::iter::once(job).chain(wanted.try_iter()).collect();
        let Some(shared) = weak.upgrade() else { return };
        let Some(syntax) = &shared.syntax else { return };
        match registered(&shared) {
            Ok(definitions) => syntax.leave(served(&definitions)),
            Err(error) => tracing::warn!(%error, "which servers are registered is not known"),
        }
        let folders = shared.session.latest().folders().to_vec();
        let changed: Vec<PathBuf> = jobs
            .into_iter()
            .flat_map(|job| match job {
                Job::Look => Vec::new(),
                Job::Changed(paths) => paths,
            })
            .collect();
        for folder in &folders {
            let Some(index) = syntax.index(folder).filter(|index| is_project(&**index)) else { continue };
            let key = folder.uri.as_str().to_owned();
            let due = lock(&syntax.looked).get(&key).is_none_or(|due| *due <= Instant::now());
            if due {
                count += 1;
                let took = look(&shared, weak, runtime, folder, &*index, count);
                let again = Instant::now() + AGAIN.max(took * SHARE);
                lock(&syntax.looked).insert(key, again);
                continue;
            }
            let here: BTreeSet<String> = changed.iter().filter_map(|path| relative(folder, path)).collect();
            if !here.is_empty() {
                let here: Vec<String> = here.into_iter().collect();
                if let Err(error) = index.refresh(&here) {
                    tracing::warn!(%error, "changed files are not indexed");
                }
            }
        }
    }
}

fn registered(shared: &Shared) -> agents_domain::Result<Vec<LanguageServerDefinition>> {
    let servers = shared.engine.0.store().view(|reader| reader.language_servers())?;
    Ok(servers.into_iter().map(|server| server.definition).collect())
}

/// A home folder is no project, nor is the root of all: what an editor without a folder is started in.
fn is_project(index: &dyn CodeIndex) -> bool {
    let root = index.root();
    let holds_us = index.status().is_ok_and(|status| status.file.starts_with(root));
    root.parent().is_some() && (!holds_us || root.join(".git").exists())
}

/// Looks through a folder, shown as work where there is much to read; how long it took.
fn look(
    shared: &Shared,
    weak: &Weak<Shared>,
    runtime: &Handle,
    folder: &Folder,
    index: &dyn CodeIndex,
    count: u64,
) -> Duration {
    let begun = Instant::now();
    let shows = shared.session.latest().client().supports("/window/workDoneProgress");
    let mut shown = None;
    let done = index.scan(&mut |progress| {
        if shows && progress.total >= SHOWN {
            let say = shown.get_or_insert_with(|| {
                let token = format!("agents/index/{count}");
                begin(&shared.client, runtime, token, format!("Indexing {}", folder.name))
            });
            let label = format!("{} of {} files", progress.done, progress.total);
            let step = Step { label, done: Some(progress.done as u64), total: Some(progress.total as u64) };
            let _ = say.send(Word::Report(step));
        }
        // The only one left that holds the session is this thread.
        if weak.strong_count() <= 1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let words = match &done {
        Ok(scan) => format!("{} files, {} of them read", scan.seen, scan.read),
        Err(error) => error.to_string(),
    };
    if let Some(say) = shown {
        let _ = say.send(Word::End(words.clone()));
    }
    match done {
        Ok(scan) => {
            if let Some(why) = scan.rebuilt {
                tracing::warn!(folder = %folder.name, why, "the index was made anew");
            }
            tracing::debug!(folder = %folder.name, words, "indexed");
        }
        Err(error) => tracing::warn!(%error, folder = %folder.name, "the folder is not indexed"),
    }
    begun.elapsed()
}

impl Syntax {
    /// Has the folders looked through when that was not done for a while; never waits for it.
    pub fn look_again(&self) {
        let now = Instant::now();
        if lock(&self.looked).values().any(|due| *due <= now) {
            self.ask(Job::Look);
        }
    }

    /// What the client is asked to watch.
    pub fn watchers(&self) -> serde_json::Value {
        json!({ "watchers": [
            { "globPattern": "**/*.{py,pyi,rs}" }, { "globPattern": "**/.gitignore" }, { "globPattern": "**/.ignore" },
        ] })
    }
}
