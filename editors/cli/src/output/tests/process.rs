//! What only a real process shows: signals, and prompts on a real stdin. Each test runs this test binary again with one of
//! the ignored tests as the program.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::*;

/// Set for the programs, so that running all ignored tests by hand does not start them.
const MARK: &str = "AGENTS_OUTPUT_TEST_PROGRAM";

fn is_program() -> bool {
    std::env::var_os(MARK).is_some()
}

/// Starts a program; it has said `ready` on stderr when this returns.
fn start(program: &str, stdin: Stdio) -> (Child, BufReader<std::process::ChildStderr>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            &format!("{}::{program}", module_path!().split_once("::").unwrap().1),
            "--ignored",
            "--nocapture",
        ])
        .env(MARK, "1")
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    wait_for("ready", &mut stderr);
    (child, stderr)
}

fn wait_for(word: &str, stderr: &mut impl BufRead) {
    let mut line = String::new();
    while line.trim() != word {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "the program ended without `{word}`");
    }
}

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().try_into().unwrap()), signal).unwrap();
}

/// The exit code and what the program wrote after the noise of the test harness.
fn end(mut child: Child) -> (Option<i32>, String) {
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    let from = text.find('{').unwrap_or(text.len());
    (child.wait().unwrap().code(), text[from..].to_owned())
}

fn say(word: &str) {
    std::io::stderr().write_all(format!("{word}\n").as_bytes()).unwrap();
}

fn wait_forever() -> ! {
    loop {
        std::thread::park();
    }
}

#[test]
#[ignore = "a program for the tests of this file"]
fn waiting() {
    if !is_program() {
        return;
    }
    let out = Output::open(Options::process("plan execute", Format::Json, Caps::detect()));
    interrupt::watch(&out, || None).unwrap();
    let table = out.table("rows", "Rows", vec![col("n", "N")]);
    table.row(json!({"n": 1}));
    say("ready");
    wait_forever();
}

#[test]
#[ignore = "a program for the tests of this file"]
fn stuck() {
    if !is_program() {
        return;
    }
    let out = Output::open(Options::process("plan execute", Format::Json, Caps::detect()));
    interrupt::watch(&out, || {
        say("stuck");
        wait_forever();
    })
    .unwrap();
    say("ready");
    wait_forever();
}

#[test]
#[ignore = "a program for the tests of this file"]
fn asking() {
    if !is_program() {
        return;
    }
    let out = Output::open(Options::process("plan apply", Format::Json, Caps::detect()));
    say("ready");
    let yes = out.confirm("Apply?", false);
    out.data("applied", yes);
    std::process::exit(out.finish().into());
}

// CLI-189, OUT-002
#[test]
fn a_signal_leaves_one_whole_document() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let (child, _stderr) = start("waiting", Stdio::null());
        send(&child, signal);
        let (exit, text) = end(child);
        let json: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(exit, Some(code));
        assert_eq!(
            (&json["status"], &json["exit_code"], &json["data"]),
            (&json!("cancelled"), &json!(code), &json!({"rows": [{"n": 1}]}))
        );
        assert_eq!(json["messages"], json!([{"level": "warn", "text": "Operation cancelled"}]));
    }
}

#[test]
fn a_second_signal_ends_a_program_that_hangs() {
    let (child, mut stderr) = start("stuck", Stdio::null());
    send(&child, Signal::SIGINT);
    wait_for("stuck", &mut stderr);
    send(&child, Signal::SIGINT);
    assert_eq!(end(child), (Some(130), String::new()));
}

// CLI-027 to CLI-029, OUT-007
#[test]
fn a_question_takes_an_answer_from_a_pipe_and_never_waits_for_nobody() {
    let answer = |text: &[u8]| {
        let (mut child, mut stderr) = start("asking", Stdio::piped());
        child.stdin.take().unwrap().write_all(text).unwrap();
        let mut asked = String::new();
        stderr.read_to_string(&mut asked).unwrap();
        assert!(asked.starts_with("Apply? [y/N]: "), "{asked}");
        let (code, text) = end(child);
        (code, serde_json::from_str::<Value>(&text).unwrap()["data"]["applied"].clone())
    };
    assert_eq!(answer(b"y\n"), (Some(0), json!(true)));
    assert_eq!(answer(b"n\n"), (Some(1), json!(false)));
    assert_eq!(answer(b""), (Some(1), json!(false)));

    let (code, _) = end(start("asking", Stdio::null()).0);
    assert_eq!(code, Some(1));

    // The pipe stays open and silent: an editor or a build server that never answers.
    let (mut child, _stderr) = start("asking", Stdio::piped());
    let open = child.stdin.take();
    assert_eq!(end(child).0, Some(1));
    drop(open);
}
