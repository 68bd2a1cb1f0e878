//! CLI-027 to CLI-029, OUT-006, OUT-007, COM-008: questions to people.

use serde_json::json;

use super::*;
use crate::output::prompt::is_yes;

#[test]
fn yes_goes_on_and_anything_else_does_not() {
    for (answer, goes_on) in [
        ("y\n", true),
        ("Y\r\n", true),
        (" yes \n", true),
        ("n\n", false),
        ("\n", false),
        ("yep\n", false),
        ("", false),
    ] {
        assert_eq!(is_yes(answer), goes_on, "{answer:?}");
    }
}

#[test]
fn a_declined_question_cancels_the_run_with_exit_code_one() {
    for answer in [Some("n\n"), Some(""), None] {
        let run = Run::answering(Format::Json, terminal(80), answer);
        assert!(!run.out.confirm("Apply changes for plan X?", false));
        assert_eq!(run.out.finish(), 1);
        let json = run.json();
        assert_eq!((&json["status"], &json["exit_code"]), (&json!("cancelled"), &json!(1)));
        assert_eq!(json["messages"][0]["level"], "warn");
        assert_eq!(json["messages"][0]["text"], "Operation cancelled");
        let hints = json["messages"][0]["detail"].as_str().is_some_and(|d| d.contains("--yes"));
        assert_eq!(hints, answer.is_none());
        assert!(json.get("error").is_none());
    }
}

#[test]
fn yes_in_advance_asks_nothing() {
    let run = Run::new(Format::Plain, pipe());
    assert!(run.out.confirm("Sure?", true));
    assert!(run.asked.lock().unwrap().is_empty());
    assert_eq!(run.out.finish(), 0);
}

#[test]
fn the_question_goes_to_stderr_unless_people_read_stdout() {
    for (format, caps, on_output) in [
        (Format::Rich, terminal(80), true),
        (Format::Plain, terminal(80), true),
        (Format::Plain, pipe(), false),
        (Format::Table, pipe(), false),
        (Format::Json, terminal(80), false),
        (Format::Yaml, pipe(), false),
    ] {
        let run = Run::answering(format, Caps { no_color: true, ..caps }, Some("y"));
        assert!(run.out.confirm("Apply — all?", false));
        assert_eq!(
            *run.asked.lock().unwrap(),
            [("Apply -- all? [y/N]: ".to_owned(), on_output)],
            "{format:?}"
        );
    }
}

#[test]
fn a_question_cannot_carry_escape_sequences() {
    let run = Run::answering(Format::Plain, pipe(), Some("y"));
    run.out.confirm("Remove \u{1b}[2J\nname?", false);
    assert_eq!(run.asked.lock().unwrap()[0].0, "Remove \\x1b[2J name? [y/N]: ");
}

#[test]
fn a_blank_line_separates_the_question_from_what_surrounds_it() {
    let run = Run::answering(Format::Plain, terminal(80), Some("y"));
    run.out.say("Before");
    run.out.confirm("Go?", false);
    run.out.ok("After");
    assert_eq!(run.finish(), "Before\n\n\n[OK] After\n");
}
