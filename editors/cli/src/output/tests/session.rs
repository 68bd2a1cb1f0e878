//! The life of a session: order, streaming, threads, endings.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use super::*;
use crate::output::element::Record;
use crate::output::strategy::Sequential;

// CLI-175
#[test]
fn elements_come_in_the_order_of_their_declaration() {
    let run = Run::piped(Format::Plain);
    let first = run.out.panel(None, "First");
    let second = run.out.panel(None, "Second");
    second.row("b", "2");
    second.close();
    assert_eq!(run.text(), "");
    first.row("a", "1");
    first.close();
    assert_eq!(run.text(), "First\n  a: 1\n\nSecond\n  b: 2\n");
}

// CLI-193
#[test]
fn a_status_keeps_its_place_between_others() {
    let run = Run::piped(Format::Plain);
    run.out.panel(None, "A").row("a", "1");
    run.out.info("between");
    run.out.warn("too");
    run.out.panel(None, "B").row("b", "2");
    assert_eq!(run.finish(), "A\n  a: 1\n\n[INFO] between\n[WARN] too\n\nB\n  b: 2\n");
}

#[test]
fn text_that_is_next_is_written_as_it_comes() {
    for format in [Format::Plain, Format::Color, Format::Table] {
        let run = Run::piped(format);
        let text = run.out.text("answer");
        text.append("Hel");
        assert_eq!(run.text(), "Hel");
        text.append("lo\r").append("\nworld");
        assert_eq!(run.text(), "Hello\nworld");
        text.close();
        run.out.text(None).append("next\n");
        assert_eq!(run.finish(), "Hello\nworld\n\nnext\n");
    }
}

#[test]
fn text_behind_an_open_element_waits() {
    let run = Run::piped(Format::Plain);
    let panel = run.out.panel(None, "P");
    let text = run.out.text(None);
    text.append("later");
    assert_eq!(run.text(), "");
    panel.row("a", "1");
    panel.close();
    assert_eq!(run.text(), "P\n  a: 1\n\nlater");
    text.append("!").indent(2);
    text.close();
    assert_eq!(run.text(), "P\n  a: 1\n\nlater!\n");
}

#[test]
fn text_that_was_replaced_is_written_again() {
    let run = Run::piped(Format::Plain);
    run.out.text(None).append("draft").set("final\n");
    assert_eq!(run.finish(), "draft\n\nfinal\n");
}

// CLI-177
#[test]
fn a_panel_replaces_and_removes_by_key() {
    let run = Run::piped(Format::Json);
    run.out
        .panel("p", "P")
        .value("a", "A", 1)
        .value("b", "B", 2)
        .value("a", "A", 3)
        .remove("b")
        .row("x", "people");
    run.finish();
    assert_eq!(run.json()["data"]["p"], json!({"a": 3}));
}

#[test]
fn a_panel_picks_what_there_is() {
    let answer = json!({"plan": {"id": "p1", "cost": 0.0184, "none": null}, "at": "2026-02-08T12:46:00Z"});
    let run = Run::piped(Format::Plain);
    run.out
        .panel(None, "Plan")
        .pick(&answer, "plan.id", "ID", Kind::Id)
        .pick(&answer, "plan.cost", "Cost", Kind::Money)
        .pick(&answer, "plan.none", "None", Kind::Auto)
        .pick(&answer, "absent.path", "Absent", Kind::Auto)
        .pick(&answer, "at", "At", Kind::Time);
    assert_eq!(run.finish(), "Plan\n  ID: p1\n  Cost: $0.0184\n  At: 2026-02-08 12:46\n");
}

// CLI-178, CLI-191: people are told how many rows are not shown, programs get all of them
#[test]
fn a_table_sorts_limits_and_sums_for_people_and_keeps_all_for_programs() {
    for (format, expected) in [
        (
            Format::Plain,
            "Items\n  Name  N\n  ----  -\n  b     3\n  c     2\n  (... and 1 more rows)\n\n  Total: 3\n",
        ),
        (Format::Json, ""),
    ] {
        let run = Run::piped(format);
        run.out
            .table("items", "Items", vec![col("name", "Name"), col("n", "N").kind(Kind::Count)])
            .rows(&json!([{"name": "a", "n": 1}, {"name": "b", "n": 3}, {"name": "c", "n": 2, "x": 1}]))
            .sort_by("n", true)
            .max_rows(2)
            .summary("Total", "1")
            .summary("Total", "3");
        let text = run.finish();
        if format == Format::Plain {
            assert_eq!(text, expected);
        } else {
            let names: Vec<_> =
                run.json()["data"]["items"].as_array().unwrap().iter().map(|r| r["name"].clone()).collect();
            assert_eq!(names, [json!("b"), json!("c"), json!("a")]);
            assert!(run.json()["data"]["items"][1].get("x").is_none());
        }
    }
}

// CLI-179
#[test]
fn a_column_says_how_its_values_are_shown_and_only_numbers_are_at_the_right() {
    let plain = col("name", "Name");
    assert_eq!(
        (plain.kind, plain.align, plain.width, plain.tone),
        (Kind::Auto, Align::Left, None, Tone::Plain)
    );
    assert_eq!(col("n", "N").kind(Kind::Count).align, Align::Right);
    assert_eq!(col("at", "At").kind(Kind::Time).align, Align::Left);
    assert_eq!(col("id", "ID").id().kind, Kind::Id);
    let set = col("name", "Name").align(Align::Center).width(12).tone(Tone::Dim);
    assert_eq!((set.align, set.width, set.tone), (Align::Center, Some(12), Tone::Dim));
}

// CLI-180, CLI-192
#[test]
fn a_tree_grows_from_json_and_is_cut_for_people_only() {
    let list =
        json!([{"name": "a", "children": [{"name": "b", "children": [{"name": "c"}]}]}, {"name": "d"}]);
    for format in [Format::Plain, Format::Json] {
        let run = Run::piped(format);
        let tree = run.out.tree("tree", "Tree", Node::new("root").data(json!({"name": "root"})));
        tree.grow(TreeHandle::ROOT, &list, |item| Node::new(item["name"].as_str().unwrap_or_default()))
            .max_depth(1);
        tree.close();
        let text = run.finish();
        if format == Format::Plain {
            assert_eq!(text, "Tree\n  root\n  +-- a\n  |   +-- ... (2 more levels)\n  +-- d\n");
        } else {
            assert_eq!(run.json()["data"]["tree"], json!({"name": "root", "children": list}));
        }
    }
}

#[test]
fn a_very_deep_tree_is_no_problem() {
    for format in [Format::Plain, Format::Rich] {
        let run = Run::new(format, terminal(80));
        let tree = run.out.tree("tree", "Tree", Node::new("root"));
        let mut at = TreeHandle::ROOT;
        for _ in 0..1_000 {
            at = tree.add(at, Node::new("n"));
        }
        tree.close();
        assert!(run.finish().lines().count() > 1_000);
    }
}

// CLI-181
#[test]
fn progress_is_one_line_per_step_when_it_is_over() {
    let run = Run::piped(Format::Plain);
    let progress = run.out.progress("Work");
    progress.steps(&["a", "b"]).step("a", Mark::Done).step("new", Mark::Active);
    assert_eq!(run.text(), "");
    progress.close();
    run.out.progress("Wait").label("Waited — long").close();
    run.out.progress("Count").total(10).advance(3).advance(1).set(9);
    run.out.progress("Broken").failed();
    run.out.progress("Gone").transient();
    assert_eq!(
        run.finish(),
        "Work  [1/3]\n  [x] a\n  [ ] b\n  [>] new\n\nWaited -- long [done]\n\nCount  [9/10]\n\nBroken [failed]\n"
    );
}

// CLI-182
#[test]
fn a_finished_element_takes_no_more_writes() {
    let run = Run::piped(Format::Plain);
    let panel = run.out.panel(None, "P");
    let other = panel.clone();
    assert!(other.ensure_open().is_ok());
    panel.row("a", "1");
    panel.close();
    assert_eq!(other.ensure_open().err(), Some(ElementClosed));
    other.row("b", "2");
    assert_eq!(run.finish(), "P\n  a: 1\n");
}

// CLI-182
#[test]
fn many_threads_write_without_losing_anything() {
    let run = Run::piped(Format::Json);
    let shared = run.out.table("shared", "Shared", vec![col("n", "N")]);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (out, shared) = (run.out.clone(), shared.clone());
            scope.spawn(move || {
                let own = out.table(format!("own{thread}").as_str(), "Own", vec![col("n", "N")]);
                for n in 0..200 {
                    shared.row(json!({"n": thread * 1000 + n}));
                    own.row(json!({"n": n}));
                }
            });
        }
    });
    drop(shared);
    run.finish();
    let data = &run.json()["data"];
    assert_eq!(data["shared"].as_array().unwrap().len(), 1_600);
    for thread in 0..8 {
        let own: Vec<_> = data[format!("own{thread}")]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| r["n"].as_u64().unwrap())
            .collect();
        assert!(own.iter().copied().eq(0..200));
    }
}

/// What happened, with the session and whether a time was given.
struct Recorder(Arc<Mutex<Vec<(What, String)>>>);

impl Strategy for Recorder {
    fn on(&mut self, event: &Event<'_>, doc: &Document) -> io::Result<()> {
        assert_eq!(event.session_id, doc.session_id);
        if event.what == What::SessionEnd {
            assert_eq!(doc.exit_code, 1);
        }
        let kind = match event.what {
            What::Created(i) | What::Updated(i) | What::Closed(i) => doc.slots[i].element.kind().to_owned(),
            _ => String::new(),
        };
        self.0.lock().unwrap().push((event.what, kind));
        Ok(())
    }
}

// CLI-183, CLI-184, C-13
#[test]
fn a_strategy_sees_everything_in_order() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (options, ..) = options(Format::Plain, pipe(), None);
    let out = Output::open_with(options, |_, _| Box::new(Recorder(Arc::clone(&seen))));
    out.panel(None, "P").row("a", "1");
    out.error("bad");
    let open = out.text(None);
    let before = out.snapshot();
    assert_eq!((before.slots.len(), before.exit_code, before.command.as_str()), (3, 0, "plan show"));
    assert!(!before.slots[1].open && before.slots[2].open);
    assert_eq!(out.finish(), 1);
    drop(open);
    let kinds: Vec<_> = seen.lock().unwrap().iter().map(|(what, kind)| (*what, kind.clone())).collect();
    let expected = [
        (What::Created(0), "panel"),
        (What::Updated(0), "panel"),
        (What::Closed(0), "panel"),
        (What::Created(1), "status"),
        (What::Closed(1), "status"),
        (What::Created(2), "text"),
        (What::Closed(2), "text"),
        (What::SessionEnd, ""),
    ];
    assert_eq!(kinds, expected.map(|(what, kind)| (what, kind.to_owned())));
}

/// Tables as comma-separated values, the rest left out.
struct Csv;

impl Renderer for Csv {
    fn render(&self, element: &Element, _: Duration) -> String {
        let Element::Table(table) = element else { return String::new() };
        let line = |row: &Record| {
            let cells: Vec<String> = row.values.iter().map(ToString::to_string).collect();
            cells.join(",") + "\n"
        };
        table.rows.iter().map(line).collect()
    }
}

// CLI-195
#[test]
fn another_format_can_be_plugged_in() {
    let (options, buffer, ..) = options(Format::Plain, pipe(), None);
    let out = Output::open_with(options, |_, writer| Box::new(Sequential::new(Box::new(Csv), writer)));
    out.panel(None, "P").row("a", "1");
    out.table(None, "T", vec![col("a", "A"), col("b", "B")]).row(json!({"a": 1, "b": "x"}));
    out.ok("done");
    out.finish();
    assert_eq!(buffer.text(), "1,\"x\"\n");
}

// CLI-185
#[test]
fn an_abandoned_element_is_shown_and_not_complained_about() {
    let run = Run::piped(Format::Plain);
    let panel = run.out.panel(None, "P");
    panel.row("a", "1");
    assert_eq!(run.finish(), "P\n  a: 1\n");
}

// CLI-188
#[test]
fn a_failure_in_the_middle_shows_what_there_was() {
    let run = Run::piped(Format::Plain);
    let table = run.out.table("t", "T", vec![col("a", "A")]);
    table.row(json!({"a": 1}));
    table.close();
    run.out.fail(&AppError::new(ErrorCode::Network, "connection lost"));
    assert_eq!(run.text(), "T\n  A\n  -\n  1\n\n[ERROR] connection lost\n");
}

// CLI-189, OUT-002
#[test]
fn a_cancelled_run_is_whole_and_final() {
    for format in [Format::Plain, Format::Json] {
        let run = Run::piped(format);
        let table = run.out.table("t", "T", vec![col("a", "A")]);
        let behind = run.out.panel(None, "Behind");
        behind.row("b", "2");
        table.row(json!({"a": 1}));
        assert_eq!(run.out.cancel(), 130);
        let text = run.text();
        table.row(json!({"a": 2}));
        run.out.ok("too late");
        assert!(table.ensure_open().is_err());
        assert_eq!(run.out.finish(), 130);
        assert_eq!(run.out.fail(&AppError::usage("late")), 130);
        assert_eq!(run.text(), text);
        if format == Format::Plain {
            assert_eq!(text, "T\n  A\n  -\n  1\n\nBehind\n  b: 2\n\n[WARN] Operation cancelled\n");
        } else {
            let json = run.json();
            assert_eq!((&json["status"], &json["data"]), (&json!("cancelled"), &json!({"t": [{"a": 1}]})));
        }
    }
}

/// Fails every write with one kind of error.
struct Broken(io::ErrorKind);

impl Write for Broken {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(self.0.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_reader_that_went_away_is_no_failure_and_a_full_disk_is() {
    for format in Format::ALL {
        for (kind, code) in [(io::ErrorKind::BrokenPipe, 0), (io::ErrorKind::StorageFull, 1)] {
            let (options, ..) = options(format, pipe(), None);
            let out = Output::open(Options { writer: Box::new(Broken(kind)), ..options });
            out.panel("p", "P").row("a", "1");
            out.ok("done");
            assert_eq!(out.finish(), code, "{format:?} {kind:?}");
        }
    }
}

// CLI-176
#[test]
fn borders_are_rounded_unless_asked_otherwise() {
    for (border, corner) in [
        (None, "╭─ P"),
        (Some(Border::Square), "┌─ P"),
        (Some(Border::Heavy), "┏━ P"),
        (Some(Border::None), "P\na"),
    ] {
        let run = Run::new(Format::Table, Caps { no_color: true, ..pipe() });
        let panel = run.out.panel(None, "P");
        panel.row("a", "1");
        if let Some(border) = border {
            panel.border(border);
        }
        drop(panel);
        assert!(run.finish().starts_with(corner), "{border:?}");
    }
}

#[test]
fn a_patch_survives_plain_unchanged() {
    let patch = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@ fn a()\n-\tone \r\n+\ttwo \r\n \n--- not a header\n\\ No newline at end of file\n";
    let run = Run::piped(Format::Plain);
    run.out.diff(None, patch);
    assert_eq!(run.finish(), patch);
}

#[test]
fn a_diff_of_many_files_is_many_elements() {
    let run = Run::piped(Format::Json);
    run.out.diff(
        "files",
        "garbage\n--- a/one\t2026\n+++ b/one\n@@ -1 +1 @@\n-x\n+y\n--- a/two\n+++ b/two\n@@ -0,0 +1,2 @@\n+a\n+b\n\
         diff --git a/three b/three\nBinary files a/three and b/three differ\n",
    );
    run.finish();
    let files = run.json()["data"]["files"].clone();
    let brief: Vec<_> =
        files.as_array().unwrap().iter().map(|f| (f["file_b"].clone(), f["stats"].clone())).collect();
    assert_eq!(
        brief,
        [
            (json!("b/one"), json!({"insertions": 1, "deletions": 1})),
            (json!("b/two"), json!({"insertions": 2, "deletions": 0})),
            (json!(null), json!({"insertions": 0, "deletions": 0})),
        ]
    );
}
