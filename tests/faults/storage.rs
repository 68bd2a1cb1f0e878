//! A data directory that is full, read-only, damaged, newer or locked: clear words, and nothing broken.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use agents_e2e::{Envelope, Repo, Running, World, agents};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use rusqlite::Connection;

use super::{Outcome, undisturbed, workers_gone, world_of_work};

const LONG: Duration = Duration::from_secs(120);

fn database(world: &World) -> std::path::PathBuf {
    world.data().join("cleveragents.db")
}

/// A file system of one's own of a few megabytes, where the tests may mount one.
struct SmallDisk<'p>(&'p Path);

impl<'p> SmallDisk<'p> {
    fn mount(path: &'p Path, size: &str) -> Option<Self> {
        std::fs::create_dir_all(path).unwrap();
        let options = format!("size={size}");
        let mounted = mount(Some("tmpfs"), path, Some("tmpfs"), MsFlags::empty(), Some(options.as_str()));
        mounted.is_ok().then_some(Self(path))
    }

    fn resize(&self, size: &str) {
        let options = format!("size={size}");
        mount(Some("tmpfs"), self.0, Some("tmpfs"), MsFlags::MS_REMOUNT, Some(options.as_str())).unwrap();
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = umount2(self.0, MntFlags::MNT_DETACH);
    }
}

/// A program under limits: `sh` sets them and becomes it. A file that grows too large is an error, not a signal.
fn limited(world: &World, blocks: u32, args: &[&str]) -> Envelope {
    let mut command = world.command(Path::new("/bin/sh"));
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
    command.args(["-c", &script, "sh"]).arg(agents()).args(["--format", "json"]).args(args);
    let words: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    Envelope::check(&words, &Running::start(&mut command).finish(LONG))
}

fn speaks_of(answer: &Envelope, words: &[&str]) -> bool {
    let told = format!("{}\n{}", answer.text, answer.stderr).to_lowercase();
    words.iter().any(|word| told.contains(word))
}

#[test]
fn a_full_disk_is_said_and_the_plan_goes_on_when_there_is_room() {
    let expected = undisturbed();
    let (world, repo) = world_of_work();
    let plan = world.plan("app", "supervised", &[]);
    plan.assert_at("strategize/complete+execute_approval");
    // Room for a look, none for the work.
    let in_the_way = world.path("disk");
    if let Some(disk) = SmallDisk::mount(&in_the_way, "64m") {
        let copied =
            Command::new("cp").arg("-a").arg(world.data()).arg(in_the_way.join("data")).status().unwrap();
        assert!(copied.success());
        // The same path as before, now on the small disk.
        let real = world.data().to_owned();
        std::fs::create_dir_all(&real).unwrap();
        let bound =
            mount(Some(&in_the_way.join("data")), &real, None::<&str>, MsFlags::MS_BIND, None::<&str>);
        assert!(bound.is_ok(), "a folder that was mounted can be bound");
        let _bound = SmallDisk(&real);
        let used = Command::new("du").args(["-sk"]).arg(&in_the_way).output().unwrap();
        let used: u64 =
            String::from_utf8_lossy(&used.stdout).split_whitespace().next().unwrap().parse().unwrap();
        // First there is no room to begin, then the worker runs out of it, earlier and later.
        for room in [16, 150, 250, 350] {
            disk.resize(&format!("{}k", used + room));
            let refused = plan.call("execute", &[]);
            workers_gone(&world);
            disk.resize("64m");
            assert!(!refused.is_ok(), "{room} KB: {}", refused.text);
            assert!(
                speaks_of(&refused, &["full", "space"]),
                "{room} KB: {}\n{}",
                refused.text,
                refused.stderr
            );
            assert_eq!(repo.commits(), 1);
        }
        finish(&world, &repo, &plan.id, expected);
    } else {
        let refused = limited(&world, 16, &plan.args("execute", &[]));
        assert!(!refused.is_ok(), "{}", refused.text);
        assert!(speaks_of(&refused, &["full", "space", "i/o error"]), "{}\n{}", refused.text, refused.stderr);
        workers_gone(&world);
        assert_eq!(repo.commits(), 1);
        finish(&world, &repo, &plan.id, expected);
    }
}

/// With room again, the plan goes on from where it is to the same end.
fn finish(world: &World, repo: &Repo, plan: &str, expected: &Outcome) {
    let plan = agents_e2e::PlanHandle::new(world, plan);
    let answer = plan.call("execute", &[]);
    assert!(answer.is_ok(), "{}", answer.text);
    plan.assert_at("execute/complete+apply_approval");
    plan.apply();
    assert_eq!(Outcome::of(&plan, repo), *expected);
}

// Root may write everywhere; without the capability it is a user like any other.
#[test]
fn a_data_directory_that_cannot_be_written_is_named() {
    let (world, _) = world_of_work();
    let before = std::fs::read(database(&world)).unwrap();
    for (folder, args) in [
        (world.data().to_owned(), vec!["plan", "use", "local/fix-diagnostics", "local/app"]),
        (world.path("new"), vec!["plan", "list"]),
    ] {
        std::fs::create_dir_all(&folder).unwrap();
        let all = Command::new("chmod").args(["-R", "a-w"]).arg(&folder).status().unwrap();
        assert!(all.success());
        let mut command = if nix::unistd::geteuid().is_root() {
            let mut command = world.command(Path::new("setpriv"));
            command.args(["--bounding-set=-dac_override,-dac_read_search"]).arg(agents());
            command
        } else {
            world.command(agents())
        };
        command.args(["--format", "json", "--data-dir"]).arg(&folder).args(&args);
        let words: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let answer = Envelope::check(&words, &Running::start(&mut command).finish(LONG));
        assert_eq!((answer.status.as_str(), answer.exit_code), ("error", 1), "{}", answer.text);
        assert!(answer.words().contains(folder.to_str().unwrap()), "{}", answer.text);
        let again = Command::new("chmod").args(["-R", "u+w"]).arg(&folder).status().unwrap();
        assert!(again.success());
        assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o200, 0o200);
    }
    assert!(std::fs::read(database(&world)).unwrap() == before, "the database changed");
    assert_eq!(world.ok(&["plan", "list"]).data["total"], 0);
}

#[test]
fn a_damaged_database_is_reported_and_not_touched() {
    let (world, _) = world_of_work();
    let file = database(&world);
    // Everything into the one file, then break it.
    Connection::open(&file).unwrap().pragma_update(None, "journal_mode", "delete").unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    assert!(bytes.len() > 8192);
    for byte in bytes.iter_mut().skip(100) {
        *byte = 0xa5;
    }
    std::fs::write(&file, &bytes).unwrap();
    for args in [&["plan", "list"][..], &["plan", "use", "local/fix-diagnostics", "local/app"]] {
        let answer = world.refused(args);
        assert!(speaks_of(&answer, &["damaged"]), "{}", answer.text);
        assert!(answer.words().contains(file.to_str().unwrap()), "{}", answer.text);
    }
    assert!(std::fs::read(&file).unwrap() == bytes, "the damaged database was changed");
}

#[test]
fn a_file_that_is_no_database_is_reported_and_not_touched() {
    let world = World::new();
    std::fs::create_dir_all(world.data()).unwrap();
    let text = "this is a letter, and it is longer than the header of a database would be, which has a hundred bytes\n";
    std::fs::write(database(&world), text).unwrap();
    let answer = world.refused(&["plan", "list"]);
    assert!(speaks_of(&answer, &["damaged"]), "{}", answer.text);
    assert_eq!(std::fs::read_to_string(database(&world)).unwrap(), text);
}

#[test]
fn a_database_of_a_newer_program_is_refused_and_not_touched() {
    let (world, _) = world_of_work();
    let file = database(&world);
    let newer = Connection::open(&file).unwrap();
    newer.pragma_update(None, "user_version", 9_000).unwrap();
    drop(newer);
    let before = std::fs::read(&file).unwrap();
    let answer = world.refused(&["plan", "list"]);
    assert!(speaks_of(&answer, &["9000"]) && speaks_of(&answer, &["newer"]), "{}", answer.text);
    assert!(std::fs::read(&file).unwrap() == before, "the database changed");
}

#[test]
fn a_locked_database_is_waited_for_and_then_said() {
    let (world, _) = world_of_work();
    let holder = Connection::open(database(&world)).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    // Looking does not need the lock.
    assert_eq!(world.ok(&["plan", "list"]).data["total"], 0);
    let begun = Instant::now();
    let answer = world.refused(&["plan", "use", "local/fix-diagnostics", "local/app"]);
    assert!(speaks_of(&answer, &["locked"]), "{}", answer.text);
    assert!(begun.elapsed() < Duration::from_secs(45), "{:?}", begun.elapsed());
    holder.execute_batch("ROLLBACK").unwrap();
    let plan = world.plan("app", "ci", &[]);
    plan.assert_at("apply/applied");
}
