//! Second processes: this test binary, started again to play one part, and killed when it must die.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use agents_domain::event::NewEvent;
use agents_domain::ports::store::{PlanReads, Store, StoreError, StoreExt};
use agents_store::testing::{at, id, plan};
use agents_store::{Options, SqliteStore};

const PART: &str = "AGENTS_STORE_TEST_PART";
const DATA_DIR: &str = "AGENTS_STORE_TEST_DATA_DIR";

/// Marks the lines of a part among those of the test harness.
const MARK: &str = "part> ";

/// A running part.
pub struct Part {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Part {
    /// Starts a part on a data directory.
    pub fn start(part: &str, data_dir: &Path) -> Part {
        Self::start_with(part, data_dir, Command::new(std::env::current_exe().unwrap()))
    }

    /// Starts a part through another program, to which the binary's path and arguments are given.
    pub fn start_through(part: &str, data_dir: &Path, mut through: Command) -> Part {
        through.arg(std::env::current_exe().unwrap());
        Self::start_with(part, data_dir, through)
    }

    fn start_with(part: &str, data_dir: &Path, mut command: Command) -> Part {
        let mut process = command
            .args(["--ignored", "--exact", "child::plays_its_part", "--nocapture", "--test-threads=1"])
            .env(PART, part)
            .env(DATA_DIR, data_dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Part { process, input, output }
    }

    /// The next thing it says, or `None` when it has ended.
    pub fn says(&mut self) -> Option<String> {
        let mut line = String::new();
        while self.output.read_line(&mut line).unwrap() > 0 {
            // The harness may have left its own line open.
            if let Some((_, said)) = line.split_once(MARK) {
                return Some(said.trim_end().to_owned());
            }
            line.clear();
        }
        None
    }

    /// Lets it go on.
    pub fn go(&mut self) {
        writeln!(self.input, "go").unwrap();
    }

    /// Kill -9, and everything it said before it died.
    pub fn kill(mut self) -> Vec<String> {
        self.process.kill().unwrap();
        let rest = std::iter::from_fn(|| self.says()).collect();
        self.process.wait().unwrap();
        rest
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[allow(clippy::print_stdout, reason = "it is how a part speaks to its test")]
fn say(text: impl std::fmt::Display) {
    println!("{MARK}{text}");
}

fn wait_for_go() {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}

#[test]
#[ignore = "a second process of other tests"]
fn plays_its_part() {
    let data_dir = std::path::PathBuf::from(std::env::var_os(DATA_DIR).expect("started by a test"));
    let open = || SqliteStore::open(&data_dir, Options::default());
    match std::env::var(PART).expect("started by a test").as_str() {
        "open" => match open() {
            Ok(_) => say("opened"),
            Err(error) => say(error),
        },
        "open together" => {
            say("ready");
            wait_for_go();
            match open().and_then(|store| store.transact(|w| w.append_event(&event(), at(1)))) {
                Ok(_) => say("wrote"),
                Err(error) => say(error),
            }
        }
        "open as nobody" => {
            let nobody = 65534;
            nix::unistd::setgid(nobody.into()).unwrap();
            nix::unistd::setuid(nobody.into()).unwrap();
            match open().and_then(|store| store.view(|r| r.last_event())) {
                Ok(_) => say("opened"),
                Err(StoreError::Io { path, problem }) => say(format!("io {path}: {problem}")),
                Err(error) => say(format!("other {error}")),
            }
        }
        "hold a lease" => {
            let store = open().unwrap();
            let lease = store.try_lease(id(1)).unwrap();
            say(lease.as_ref().map_or("none".to_owned(), |lease| lease.epoch().to_string()));
            wait_for_go();
        }
        "take leases" => {
            let store = open().unwrap();
            say("ready");
            wait_for_go();
            take_leases(&store, &data_dir, 20);
            say("done");
        }
        "write for ever" => write_for_ever(&open().unwrap()),
        "hang in a write" => {
            let store = open().unwrap();
            let hung: Result<(), StoreError> = store.transact(|w| {
                w.append_event(&event(), at(1))?;
                w.insert_plan(&plan(500))?;
                say("writing");
                wait_for_go();
                Ok(())
            });
            say(format!("{hung:?}"));
        }
        "write once" => {
            open().unwrap().transact(|w| w.append_event(&event(), at(1))).unwrap();
            say("wrote");
        }
        "fill the disk" => fill_the_disk(&open().unwrap()),
        other => panic!("no part is called {other}"),
    }
}

pub fn event() -> NewEvent {
    NewEvent::new("test.happened", serde_json::json!({ "text": "x".repeat(200) }))
}

/// Takes the lease of plan 1 some times; each time it must be the only one that holds it.
pub fn take_leases(store: &dyn Store, data_dir: &Path, times: usize) {
    let marker = data_dir.join("held");
    let mut taken = 0;
    while taken < times {
        store.is_leased(id(1)).unwrap();
        if let Some(lease) = store.try_lease(id(1)).unwrap() {
            std::fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&marker)
                .expect("nobody else holds the plan");
            store.transact(|w| w.check_lease(id(1), lease.epoch())).expect("the epoch is the present one");
            std::fs::remove_file(&marker).unwrap();
            taken += 1;
        }
    }
}

/// Writes an event and the plan of the same number together, and says each number when it is committed.
fn write_for_ever(store: &SqliteStore) {
    loop {
        let number = store
            .transact(|w| {
                let number = w.append_event(&event(), at(1))?;
                w.insert_plan(&plan(u64::try_from(number).unwrap()))?;
                Ok(number)
            })
            .unwrap();
        say(number);
    }
}

fn fill_the_disk(store: &SqliteStore) {
    let big = NewEvent::new("test.big", serde_json::json!({ "text": "x".repeat(20_000) }));
    loop {
        match store.transact(|w| w.append_event(&big, at(1))) {
            Ok(number) => say(number),
            Err(StoreError::Io { problem, .. }) => return say(format!("io: {problem}")),
            Err(error) => return say(format!("other: {error}")),
        }
    }
}

/// Whether the process may do what root may.
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Used by tests of what a reader sees.
pub fn numbers_of(store: &SqliteStore) -> (Vec<i64>, usize) {
    store
        .view(|r| {
            let events: Vec<i64> =
                r.events_after(0, None, usize::MAX)?.into_iter().map(|event| event.sequence).collect();
            let mut plans = 0;
            for number in &events {
                plans += usize::from(PlanReads::plan(r, id(u64::try_from(*number).unwrap()))?.is_some());
            }
            Ok((events, plans))
        })
        .unwrap()
}
