//! What the output promises, in all its formats.

mod ascii;
mod envelope;
mod golden;
mod human;
mod large;
mod layout;
mod live;
mod process;
mod prompt;
mod resolve;
mod session;
mod yaml;

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use super::*;

/// A writer that keeps what it gets.
#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Buffer {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A session whose output, time and answers are in the hands of the test.
struct Run {
    out: Output,
    buffer: Buffer,
    millis: Arc<AtomicU64>,
    /// What was asked, and whether on the stream of the output.
    asked: Arc<Mutex<Vec<(String, bool)>>>,
}

impl Run {
    fn new(format: Format, caps: Caps) -> Run {
        Self::answering(format, caps, None)
    }

    fn answering(format: Format, caps: Caps, answer: Option<&str>) -> Run {
        let (options, buffer, millis, asked) = options(format, caps, answer);
        Run { out: Output::open(options), buffer, millis, asked }
    }

    fn piped(format: Format) -> Run {
        Self::new(format, pipe())
    }

    fn text(&self) -> String {
        self.buffer.text()
    }

    /// Ends the run and gives all of its output.
    fn finish(&self) -> String {
        self.out.finish();
        self.text()
    }

    fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.text()).unwrap()
    }

    fn pass(&self, millis: u64) {
        self.millis.fetch_add(millis, Ordering::SeqCst);
    }
}

type Parts = (Options, Buffer, Arc<AtomicU64>, Arc<Mutex<Vec<(String, bool)>>>);

fn options(format: Format, caps: Caps, answer: Option<&str>) -> Parts {
    let buffer = Buffer::default();
    let millis = Arc::new(AtomicU64::new(0));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (clock, questions, answer) = (Arc::clone(&millis), Arc::clone(&asked), answer.map(str::to_owned));
    let options = Options {
        command: "plan show".into(),
        format,
        caps,
        writer: Box::new(buffer.clone()),
        input: Box::new(move |question, on_output| {
            questions.lock().unwrap().push((question.to_owned(), on_output));
            answer.clone()
        }),
        clock: Box::new(move || Duration::from_millis(clock.load(Ordering::SeqCst))),
        started: "2026-02-08T12:58:00Z".parse().unwrap(),
        animate: false,
        quiet: false,
    };
    (options, buffer, millis, asked)
}

/// A UTF-8 environment whose stdout is a pipe.
fn pipe() -> Caps {
    Caps::from_env(false, None, |name| (name == "LANG").then(|| "C.UTF-8".to_owned()))
}

/// A capable terminal of this width.
fn terminal(width: u16) -> Caps {
    Caps::from_env(true, Some((width, 40)), |name| match name {
        "LANG" => Some("C.UTF-8".to_owned()),
        "TERM" => Some("xterm-256color".to_owned()),
        _ => None,
    })
}

/// The terminal on which a format is at home.
fn home(format: Format) -> Caps {
    if matches!(format, Format::Rich | Format::Table) { terminal(80) } else { pipe() }
}

/// Writes every kind of element.
fn everything(run: &Run) {
    let out = &run.out;
    out.panel("decision", "Decision")
        .field("id", "ID", "01HXM9A1C2Q7W3R5G8Z0P4Q1X9", id("01HXM9A1C2Q7W3R5G8Z0P4Q1X9"))
        .value("type", "Type", "strategy_choice")
        .field("confidence", "Confidence", 0.82, good("0.82"))
        .value("created_at", "Created", "2026-02-08T12:58:00Z")
        .value("pending", "Pending", false)
        .row("Note", "seen — by people only");
    out.panel(None, "Rationale — why").line("- one preferred fix").line("1. nothing else uses it");
    out.table(
        "plans",
        "Plans",
        vec![
            col("id", "ID").id(),
            col("state", "State").kind(Kind::State),
            col("auto", "Auto").kind(Kind::Flag),
            col("files", "Files").kind(Kind::Count),
        ],
    )
    .row(json!({"id": "01HXM7A9Q1Q8K2E9H7K3W2M8AB", "state": "processing", "auto": true, "files": 1247, "unknown": 1}))
    .row(Row::from(json!({"id": "01HXM6R3Q1Q8K2E9H7K3W2M8AB", "state": "applied", "auto": false})).show("files", dim("few")))
    .summary("Total", "2");
    let tree = out.tree("tree", "Decision Tree", Node::new("Plan 01HXM8C2ZK"));
    let choice = tree.add(
        TreeHandle::ROOT,
        Node::new(dim("[strategy_choice] ").and("F401"))
            .mark(Mark::Done)
            .data(json!({"type": "strategy_choice"})),
    );
    tree.add(choice, Node::new("session.py").mark(Mark::Error));
    tree.add(TreeHandle::ROOT, Node::new("E711").mark(Mark::Waiting));
    tree.close();
    let progress = out.progress("Executing plan");
    progress.steps(&["Collect", "Fix", "Check", "Report"]);
    progress.step("Collect", Mark::Active);
    run.pass(800);
    progress.step("Collect", Mark::Done).step("Fix", Mark::Active).note("Fix", "8 edits");
    run.pass(12_400);
    progress.step("Fix", Mark::Error).step("Check", Mark::Skipped);
    progress.close();
    out.text("answer").append("It works → now.\n").append("Second line.");
    out.code("source", "def f():\n    return 'x'  # why\n")
        .title("x.py")
        .language("python")
        .numbered_from(9)
        .stress(&[9]);
    out.diff("diff", "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n a = 1\n-b = 2\n+b = 3\n");
    out.separator(Separator::Line);
    out.hint("Next Steps", ["agents plan execute 01HXM8C2ZK"]);
    out.data("paths.root", "/srv/x");
    out.info("A note");
    out.warn("Look — here").detail("because of this");
    out.ok("Shown");
}
