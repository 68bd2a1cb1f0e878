//! Looks after the worker of a followed plan: one that died is replaced, one that cannot start is reported.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use agents_domain::ids::PlanId;
use agents_domain::plan::State;
use agents_domain::ports::store::StoreError;
use agents_domain::{Error, ErrorKind};
use agents_engine::Engine;
use agents_engine::operations::plan::{List, StatusOutput};

use super::live::Live;
use crate::failure::Failure;
use crate::run::Run;
use crate::spawn;

/// Time between two looks.
const ROUND: Duration = Duration::from_millis(200);

/// How long a new worker may take to begin.
const GRACE: Duration = Duration::from_secs(2);

/// Time between two tries for a plan that waits for its turn.
const TURN: Duration = Duration::from_secs(5);

/// Workers that may end in a row without getting on.
const TRIES: u32 = 5;

/// Bytes that must be free where the data is: a few transactions.
const LEAST_ROOM: u64 = 1 << 20;

/// Bytes of a worker's log that are shown when it fails.
const LAST_WORDS: u64 = 2048;

pub(super) struct Nurse {
    plan: PlanId,
    log_dir: PathBuf,
    looked: Instant,
    /// Since when nobody holds the plan.
    gone: Option<Instant>,
    /// How long it may stay so.
    patience: Duration,
    tries: u32,
}

impl Nurse {
    pub(super) fn new(plan: PlanId, log_dir: PathBuf) -> Self {
        Self { plan, log_dir, looked: Instant::now(), gone: None, patience: GRACE, tries: 0 }
    }

    /// The plan gets on.
    pub(super) fn sees_life(&mut self) {
        self.tries = 0;
    }

    pub(super) fn is_due(&self) -> bool {
        self.looked.elapsed() >= ROUND
    }

    /// Replaces a worker that is gone. `standing` was read just now.
    pub(super) fn look(
        &mut self,
        run: &Run,
        engine: &Engine,
        standing: &StatusOutput,
        live: &Live,
    ) -> Result<(), Failure> {
        self.looked = Instant::now();
        if standing.worker_alive || !super::runs(standing) {
            self.gone = None;
            // Whoever held it once and is gone later has died.
            self.patience = ROUND;
            return Ok(());
        }
        let gone = *self.gone.get_or_insert_with(Instant::now);
        if gone.elapsed() < self.patience {
            return Ok(());
        }
        self.gone = None;
        if standing.state == State::Queued && slots_taken(run, engine)? {
            live.waits_for_its_turn();
            self.patience = TURN;
            // The worker of another plan starts it when it ends; if that one died, this does.
            engine.ensure_workers()?;
            return Ok(());
        }
        self.tries += 1;
        // A worker that cannot write cannot say so either.
        if let Some(full) = full_disk(&run.env.data_dir).filter(|_| self.tries > 1) {
            return Err(full.into());
        }
        if self.tries > TRIES {
            return Err(self.gives_up().into());
        }
        self.patience = GRACE * self.tries;
        engine.ensure_workers()?;
        Ok(())
    }

    fn gives_up(&self) -> Error {
        let path = spawn::log_path(&self.log_dir, self.plan);
        let plan = self.plan;
        Error::new(
            ErrorKind::PlanError,
            format!("{TRIES} workers of plan {plan} ended in a row without getting on"),
        )
        .detail(format!("{}\nThe whole log: {}", last_words(&path).trim_end(), path.display()))
        .suggest(format!("agents plan execute {plan}"))
        .suggest(format!("agents plan cancel {plan}"))
    }
}

/// The error for a disk without room for work.
fn full_disk(data_dir: &Path) -> Option<Error> {
    let found = nix::sys::statvfs::statvfs(data_dir).ok()?;
    let left = found.blocks_available().saturating_mul(found.fragment_size());
    (left < LEAST_ROOM).then(|| StoreError::DiskFull(data_dir.display().to_string()).into())
}

/// Whether as many plans are worked on as may be.
fn slots_taken(run: &Run, engine: &Engine) -> Result<bool, Error> {
    let slots = run.env.config.integer("plan.concurrency", None).max(1);
    let processing = engine.call(List { state: Some("processing".to_owned()), ..List::default() })?;
    let at_work = processing.plans.iter().filter(|plan| plan.awaiting.is_none()).count();
    Ok(i64::try_from(at_work).is_ok_and(|n| n >= slots))
}

fn last_words(path: &Path) -> String {
    use std::io::{Read, Seek, SeekFrom};
    let read = || {
        let mut file = std::fs::File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LAST_WORDS)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        std::io::Result::Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    read().unwrap_or_else(|error| format!("its log cannot be read: {error}"))
}
