//! Single commands: how long from start to end, and how much memory.

use std::process::{Command, Stdio};

use agents_e2e::{World, agents};
use nix::sys::resource::{UsageWho, getrusage};

use crate::{Figure, fixtures, repeat};

/// Times of each command.
const RUNS: usize = 100;

pub fn measure() -> Vec<Figure> {
    let empty = World::new();
    let version = |world: &World| run(world, &["version"]);
    version(&empty);
    let mut figures = vec![
        Figure::times("agents version", "start to end of the process", &repeat(2 * RUNS, || version(&empty)))
            .budget("p99", 10.0)
            .memory(peak(&empty, &["version"])),
    ];
    let (world, plans) = fixtures::many_plans();
    let middle = plans[plans.len() / 2].to_string();
    let rows: [(&str, Vec<&str>); 5] = [
        ("plan status", vec!["plan", "status", &middle]),
        ("plan tree", vec!["plan", "tree", &middle]),
        ("plan list --state awaiting", vec!["plan", "list", "--state", "awaiting"]),
        ("plan list", vec!["plan", "list"]),
        ("plan list, plain", vec!["plan", "list", "--format", "plain"]),
    ];
    for (name, args) in rows {
        run(&world, &args);
        let times = repeat(RUNS, || run(&world, &args));
        let what = "start to end of the process, 10,000 plans and 100,000 decisions in the database";
        figures.push(Figure::times(name, what, &times).budget("p99", 30.0).memory(peak(&world, &args)));
    }
    figures
}

pub fn command(world: &World, args: &[&str]) -> Command {
    let mut command = world.command(agents());
    if !args.contains(&"--format") {
        command.args(["--format", "json"]);
    }
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// The exit code counts for nothing: the status of a failed plan is an error.
fn run(world: &World, args: &[&str]) {
    let status = command(world, args).status().expect("agents can be started");
    assert!(status.code().is_some_and(|code| code < 2), "{args:?}: {status}");
}

/// The most memory a command had, asked of this program again so that nothing else is counted.
pub fn peak(world: &World, args: &[&str]) -> Option<u64> {
    let mut own = world.command(std::env::current_exe().expect("a program knows its path"));
    own.arg("--peak").arg(agents());
    if !args.contains(&"--format") {
        own.args(["--format", "json"]);
    }
    let output = own.args(args).output().expect("this program can be started");
    String::from_utf8_lossy(&output.stdout).trim().parse().ok()
}

/// `--peak PROGRAM ARGS...`: runs it and prints the bytes it had resident at most.
pub fn peak_of(mut arguments: impl Iterator<Item = String>) {
    let program = arguments.next().expect("--peak takes a program");
    let _ = Command::new(program).args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).status();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("the system counts");
    println!("{}", usage.max_rss() * 1024);
}
