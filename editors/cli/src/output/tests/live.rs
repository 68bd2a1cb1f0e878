//! CLI-193, CLI-194: what a person sees on a terminal, according to a terminal emulator.

use serde_json::json;

use super::*;
use crate::output::live::Live;
use crate::output::render::View;

const WIDTH: u16 = 60;
const HEIGHT: u16 = 20;

struct Screen {
    run: Run,
    parser: vt100::Parser,
    seen: usize,
}

impl Screen {
    fn new() -> Screen {
        let caps = Caps { no_color: true, height: HEIGHT.into(), ..terminal(WIDTH) };
        let (options, buffer, millis, asked) = options(Format::Rich, caps.clone(), Some("y"));
        let view = View::new(Format::Rich, &caps);
        let out = Output::open_with(options, |_, writer| {
            Box::new(Live::new(view, HEIGHT.into(), writer).size(|| Some((WIDTH, HEIGHT))))
        });
        Screen {
            run: Run { out, buffer, millis, asked },
            parser: vt100::Parser::new(HEIGHT, WIDTH, 1000),
            seen: 0,
        }
    }

    /// The rows on the screen without empty ones at the end.
    fn rows(&mut self) -> Vec<String> {
        let text = self.run.text();
        // The terminal's line discipline turns a line feed into both.
        self.parser.process(text[self.seen..].replace('\n', "\r\n").as_bytes());
        self.seen = text.len();
        let mut rows: Vec<String> =
            self.parser.screen().rows(0, WIDTH).map(|r| r.trim_end().to_owned()).collect();
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows
    }

    fn tick(&mut self, millis: u64) -> Vec<String> {
        self.run.pass(millis);
        self.run.out.tick();
        self.rows()
    }
}

#[test]
fn a_quick_command_just_prints() {
    let mut screen = Screen::new();
    screen.run.out.panel(None, "P").row("a", "1");
    screen.run.out.ok("done");
    screen.run.out.finish();
    assert_eq!(screen.rows(), ["╭─ P ──╮", "│ a: 1 │", "╰──────╯", "", "✓ OK done"]);
    assert!(!screen.run.text().contains('\x1b'));
}

#[test]
fn a_spinner_turns_in_place_and_resolves() {
    let mut screen = Screen::new();
    let progress = screen.run.out.progress("Collecting");
    assert_eq!(screen.tick(0), ["⠋ Collecting"]);
    assert!(screen.parser.screen().hide_cursor());
    progress.label("Collecting (2 servers)");
    assert_eq!(screen.tick(1_300), ["⠸ Collecting (2 servers)  1.0s"]);
    progress.close();
    screen.run.out.ok("done");
    screen.run.out.finish();
    assert_eq!(screen.rows(), ["✓ Collecting (2 servers)  1.3s", "", "✓ OK done"]);
    assert!(!screen.parser.screen().hide_cursor());
}

#[test]
fn a_bar_fills_and_steps_move_on() {
    let mut screen = Screen::new();
    let progress = screen.run.out.progress("Executing");
    progress.total(4).steps(&["Collect", "Fix", "Check"]);
    progress.step("Collect", Mark::Active);
    screen.run.pass(800);
    progress.step("Collect", Mark::Done).step("Fix", Mark::Active).set(1);
    assert_eq!(
        screen.tick(2_200),
        [
            "Executing ━━━──────────── 25%  elapsed 0:00:03  ETA 0:00:09",
            "  ✓ Collect ··························· 0.8s",
            "  ⠋ Fix ······························· 2.2s",
            "  ○ Check",
        ]
        .map(|row| row.to_owned())
    );
    screen.run.out.cancel();
    assert_eq!(
        screen.rows(),
        [
            "⚠ Executing  1/4  3.0s",
            "  ✓ Collect ··························· 0.8s",
            "  ◐ Fix",
            "  ○ Check",
            "",
            "⚠ WARN Operation cancelled"
        ]
    );
}

#[test]
fn status_lines_stay_below_what_is_worked_on_and_end_up_in_their_place() {
    let mut screen = Screen::new();
    let progress = screen.run.out.progress("Working");
    screen.run.out.info("noted");
    let table = screen.run.out.table(None, "Rows", vec![col("n", "N")]);
    table.row(json!({"n": 1}));
    assert_eq!(
        screen.tick(0),
        [
            "⠋ Working",
            "",
            "╭─ Rows ⠋ ───────────╮",
            "│ N                  │",
            "│ ─                  │",
            "│ 1                  │",
            "│ 1 row (streaming…) │",
            "╰────────────────────╯",
            "",
            "ℹ INFO noted"
        ]
    );
    progress.close();
    table.close();
    screen.run.out.ok("done");
    screen.run.out.finish();
    assert_eq!(
        screen.rows(),
        [
            "✓ Working  0ms",
            "",
            "ℹ INFO noted",
            "",
            "╭─ Rows ─╮",
            "│ N      │",
            "│ ─      │",
            "│ 1      │",
            "╰────────╯",
            "",
            "✓ OK done"
        ]
    );
}

#[test]
fn streamed_text_flows_into_the_scrollback_once() {
    let mut screen = Screen::new();
    let progress = screen.run.out.progress("Working");
    screen.run.out.info("noted");
    progress.close();
    let text = screen.run.out.text(None);
    for piece in ["First ", "line.\n", "\nSecond "] {
        text.append(piece);
        screen.tick(70);
    }
    assert_eq!(screen.rows(), ["✓ Working  0ms", "", "ℹ INFO noted", "", "First line.", "", "Second"]);
    text.append("line.");
    screen.tick(70);
    screen.run.out.warn("meanwhile");
    text.append("\nThird line.");
    screen.tick(70);
    text.close();
    screen.run.out.finish();
    assert_eq!(
        screen.rows(),
        [
            "✓ Working  0ms",
            "",
            "ℹ INFO noted",
            "",
            "First line.",
            "",
            "Second line.",
            "Third line.",
            "",
            "⚠ WARN meanwhile"
        ]
    );
}

#[test]
fn a_tail_longer_than_the_screen_leaves_nothing_behind() {
    let mut screen = Screen::new();
    let labels: Vec<String> = (0..50).map(|n| format!("step {n}")).collect();
    let progress = screen.run.out.progress("Long");
    progress.steps(&labels.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(screen.tick(0).last().unwrap(), "  ○ step 49");
    screen.tick(70);
    screen.tick(70);
    progress.close();
    screen.run.out.finish();
    screen.rows();
    screen.parser.screen_mut().set_scrollback(1000);
    let text = screen.run.text();
    // Only the last, final list is complete; the frames before showed the rows that fit.
    assert_eq!(text.matches("step 0\n").count(), 1);
    let top: Vec<String> = screen.parser.screen().rows(0, WIDTH).map(|r| r.trim_end().to_owned()).collect();
    assert_eq!(&top[..3], ["✓ Long  0/50  0.1s", "  ○ step 0", "  ○ step 1"]);
}

#[test]
fn a_prompt_stands_alone_and_the_display_goes_on_after_it() {
    let mut screen = Screen::new();
    let progress = screen.run.out.progress("Working");
    screen.tick(0);
    assert!(screen.run.out.confirm("Go on?", false));
    assert_eq!(screen.rows(), Vec::<String>::new());
    assert!(!screen.parser.screen().hide_cursor());
    assert_eq!(screen.tick(100), ["", "⠙ Working"]);
    progress.close();
    screen.run.out.finish();
    assert_eq!(screen.rows(), ["", "✓ Working  0.1s"]);
}

// CLI-194
#[test]
fn updates_cost_nothing_until_the_next_frame() {
    let screen = Screen::new();
    let progress = screen.run.out.progress("Counting");
    progress.total(10_000);
    for _ in 0..10_000 {
        progress.advance(1);
    }
    assert_eq!(screen.run.text(), "");
    screen.run.out.tick();
    assert_eq!(screen.run.text().matches("\x1b[?2026h").count(), 1);
    assert!(screen.run.text().contains("100%"));
}

#[test]
fn an_open_table_shows_its_newest_rows() {
    let mut screen = Screen::new();
    let table = screen.run.out.table(None, "Calls", vec![col("n", "N").kind(Kind::Count)]);
    table.rows(&(0..1_500).map(|n| json!({"n": n})).collect());
    let rows = screen.tick(0);
    assert!(
        rows.iter().any(|r| r.contains("1,499")) && !rows.iter().any(|r| r.contains(" 1,400 ")),
        "{rows:?}"
    );
    assert!(rows.iter().any(|r| r.contains("1,500 rows (streaming…)")), "{rows:?}");
    table.close();
    assert!(screen.run.out.snapshot().slots.len() == 1);
}

#[test]
fn a_session_that_is_dropped_gives_the_cursor_back() {
    let screen = Screen::new();
    let progress = screen.run.out.progress("Working");
    screen.run.out.tick();
    let buffer = screen.run.buffer.clone();
    drop(progress);
    drop(screen);
    assert!(buffer.text().ends_with("\x1b[?25h"));
}

#[test]
fn the_display_moves_by_itself() {
    let (options, buffer, ..) = options(Format::Rich, terminal(80), None);
    let out = Output::open(Options { animate: true, ..options });
    let progress = out.progress("Working");
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while !buffer.text().contains("Working") {
        assert!(std::time::Instant::now() < deadline, "no frame came");
        std::thread::yield_now();
    }
    progress.close();
    out.finish();
    assert!(buffer.text().contains('✓'));
}
