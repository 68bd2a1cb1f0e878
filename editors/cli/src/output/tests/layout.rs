//! No text can break a layout or drive a terminal.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::output::layout::{Keep, Line, clean, cut, is_control, width, wrap, wrap_hanging};
use crate::output::render::{self, View};

#[test]
fn what_acts_on_a_terminal_is_shown_instead() {
    assert_eq!(clean("a\u{1b}[31mb\u{7}\u{9b}2J"), "a\\x1b[31mb\\x07\\x9b2J");
    assert_eq!(clean("x\u{202e}y\u{2066}z"), "x\\u{202e}y\\u{2066}z");
    assert_eq!(clean("a\tb\r\nc\rd\n\te"), "a   b\nc\\x0dd\n    e");
    assert_eq!(clean("naïve 日本 👩‍👩‍👧"), "naïve 日本 👩‍👩‍👧");
}

#[test]
fn wide_and_combining_characters_are_measured_as_shown() {
    assert_eq!(width("日本"), 4);
    assert_eq!(width("e\u{301}"), 1);
    let row = |text: &str| Line::of(text, Tone::Plain);
    let texts = |rows: Vec<Line>| rows.iter().map(Line::text).collect::<Vec<_>>();
    assert_eq!(texts(wrap(row("日本語の名前"), 5)), ["日本", "語の", "名前"]);
    assert_eq!(texts(wrap(row("one two  three"), 7)), ["one two", "three"]);
    assert_eq!(texts(wrap(row("e\u{301}e\u{301}e\u{301}"), 2)), ["e\u{301}e\u{301}", "e\u{301}"]);
    assert_eq!(
        texts(wrap_hanging(row("Key: a long value here"), Some(12), 2)),
        ["Key: a long", "  value here"]
    );
    assert_eq!(cut(row("日本語"), 5, Keep::Start, "…").text(), "日本…");
    assert_eq!(cut(row("src/auth/session.py"), 12, Keep::End, "…").text(), "…/session.py");
    assert_eq!(cut(row("abc"), 0, Keep::Start, "…").text(), "");
}

#[test]
fn boxes_stay_straight_around_wide_and_combining_characters() {
    let run = Run::new(Format::Rich, Caps { no_color: true, ..terminal(44) });
    run.out.panel(None, "日本語").value("a", "名前", "e\u{301}\u{301}té").line("👩‍👩‍👧 family");
    run.out
        .table(None, "Rows", vec![col("a", "名前"), col("b", "B").wrap(), col("p", "Path").kind(Kind::Path)])
        .row(json!({"a": "日本語", "b": "a text of several words that goes on", "p": "src/auth/deep/down/session.py"}))
        .row(json!({"a": "x", "b": null, "p": "日本語/日本語/日本語/日本語.py"}));
    let text = run.finish();
    assert_eq!(
        text,
        "\
╭─ 日本語 ──╮
│ 名前: e\u{301}\u{301}té │
│ 👩‍👩‍👧 family │
╰───────────╯

╭─ Rows ───────────────────────────────────╮
│ 名前    B                Path            │
│ ──────  ───────────────  ─────────────── │
│ 日本語  a text of        …own/session.py │
│         several words                    │
│         that goes on                     │
│ x       -                …本語/日本語.py │
╰──────────────────────────────────────────╯
"
    );
}

// CLI-197
#[test]
fn every_second_row_is_shaded_where_the_ground_is_known() {
    let rows = |ground| {
        let run = Run::new(Format::Rich, Caps { background: ground, ..terminal(80) });
        let table = run.out.table(None, "T", vec![col("n", "N").tone(Tone::Id)]);
        table.row(json!({"n": 1})).row(json!({"n": 2})).row(json!({"n": 3}));
        drop(table);
        run.finish()
    };
    let dark = rows(Some(crate::output::format::Background::Dark));
    assert_eq!(
        dark.matches("48;5;235").count(),
        dark.lines().filter(|l| l.contains('2') && l.contains("48;5;")).count() * 3
    );
    assert!(dark.contains("\x1b[36;48;5;235m2\x1b[0m") && dark.contains("\x1b[36m3\x1b[0m"), "{dark:?}");
    assert!(!rows(None).contains("48;5"));
}

#[test]
fn code_is_coloured_by_its_language() {
    let shown = |language: &str, code: &str| {
        let run = Run::new(Format::Rich, terminal(80));
        run.out.code(None, code).language(language);
        let text = run.finish();
        let row = text.lines().nth(1).unwrap().to_owned();
        row.replace("\x1b[0m", ">")
            .replace("\x1b[2m", "<dim ")
            .replace("\x1b[35m", "<word ")
            .replace("\x1b[32m", "<text ")
            .replace("\x1b[33m", "<number ")
            .replace("\x1b[36m", "<key ")
            .replace("<dim │>", "")
            .trim()
            .to_owned()
    };
    assert_eq!(
        shown("python", "if x1 == 'a\\'b': return 10  # no"),
        "<word if> x1 == <text 'a\\'b'>: <word return> <number 10>  <dim # no>"
    );
    assert_eq!(
        shown("rust", "let x: &'a str = \"// no\"; // yes"),
        "<word let> x: &'a str = <text \"// no\">; <dim // yes>"
    );
    assert_eq!(shown("yaml", "key: true # no"), "<key key>: <word true> <dim # no>");
    assert_eq!(shown("cobol", "if 1 'x'"), "if 1 'x'");
}

proptest! {
    #[test]
    fn wrapping_keeps_every_word_within_the_limit(text in "\\PC{0,80}", limit in 2usize..60) {
        let text = clean(&text).replace('\n', " ");
        let rows = wrap(Line::of(text.as_str(), Tone::Plain), limit);
        for row in &rows {
            prop_assert!(row.width() <= limit, "{:?} {}", row.text(), limit);
        }
        let squeeze = |s: &str| s.chars().filter(|c| *c != ' ').collect::<String>();
        prop_assert_eq!(squeeze(&rows.iter().map(Line::text).collect::<String>()), squeeze(&text));
    }

    #[test]
    fn cutting_keeps_the_limit(text in "\\PC{0,60}", limit in 0usize..40, end in any::<bool>()) {
        let text = clean(&text);
        let keep = if end { Keep::End } else { Keep::Start };
        prop_assert!(cut(Line::of(text, Tone::Plain), limit, keep, "…").width() <= limit);
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // CLI-197, G-11: rich and table at any width from 20, whatever the texts are.
    #[test]
    fn no_row_is_wider_than_the_terminal_and_no_text_acts_on_it(
        texts in prop::collection::vec(any::<String>(), 6),
        columns in 20u16..200,
        open in any::<bool>(),
    ) {
        for format in [Format::Rich, Format::Table, Format::Color, Format::Plain] {
            let (out, doc) = {
                let run = Run::new(format, terminal(columns));
                nasty(&run.out, &texts);
                (run.finish(), run.out.snapshot())
            };
            let seen = without_colours(&out);
            prop_assert!(!seen.chars().any(|c| !matches!(c, '\n' | '\t' | '\r') && is_control(c)), "{seen:?}");
            let view = View { open, ..View::new(format, &terminal(columns)) };
            for slot in &doc.slots {
                for row in render::rows(&slot.element, &view) {
                    prop_assert!(!view.boxed || row.width() <= usize::from(columns), "{columns}, {}: {:?}", slot.element.kind(), row.text());
                }
            }
        }
    }
}

/// Puts the texts everywhere where a text can be.
fn nasty(out: &Output, t: &[String]) {
    out.panel("p", &t[0]).value("a", &t[1], t[2].as_str()).row(&t[3], t[4].as_str()).line(t[5].as_str());
    out.table(
        "t",
        &t[1],
        vec![col("a", &t[2]), col("b", &t[3]).wrap(), col("c", "C").kind(Kind::Path), col("d", "D").id()],
    )
    .row(json!({"a": t[0], "b": t[4], "c": t[5], "d": t[1]}))
    .row(json!({"a": t[3], "b": 12, "c": null, "d": "01HXM7A9Q1Q8K2E9H7K3W2M8AB"}))
    .summary(&t[0], t[1].as_str());
    let tree = out.tree("r", &t[2], Node::new(t[3].as_str()));
    let mut at = TreeHandle::ROOT;
    for text in t.iter().cycle().take(30) {
        tree.add(at, Node::new(text.as_str()).mark(Mark::Active));
        at = tree.add(at, Node::new(text.as_str()));
    }
    tree.max_depth(25);
    tree.close();
    let progress = out.progress(&t[4]);
    progress.total(7).set(3).step(&t[5], Mark::Active).note(&t[5], t[0].as_str());
    progress.close();
    out.progress(&t[1]).close();
    out.text("x").append(&t[2]);
    out.code("c", &t[3]).title(t[4].as_str()).language("python").numbered_from(98);
    out.diff("d", &format!("--- {}\n+++ b\n@@ -1,1 +1,2 @@ {}\n-{}\n+{}\n+\tx\r\n", t[0], t[1], t[2], t[3]));
    out.hint(&t[5], t.iter().cloned());
    out.warn(t[0].as_str()).detail(t[1].as_str());
    out.separator(Separator::Double);
}

/// The text without the colour sequences that we write.
fn without_colours(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("\x1b[") {
        out.push_str(&rest[..at]);
        let tail = &rest[at + 2..];
        let end = tail.find(|c: char| !(c.is_ascii_digit() || c == ';')).unwrap_or(tail.len());
        if tail[end..].starts_with('m') {
            rest = &tail[end + 1..];
        } else {
            out.push('\x1b');
            rest = tail;
        }
    }
    out + rest
}
