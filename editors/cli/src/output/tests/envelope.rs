//! The document for programs: its keys, their order, and how a run ends.

use serde_json::{Value, json};

use super::*;

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

// OUT-001, COM-001, COM-002, CLI-198
#[test]
fn the_keys_come_in_their_fixed_order() {
    let run = Run::piped(Format::Json);
    everything(&run);
    run.pass(42);
    run.finish();
    let json = run.json();
    assert_eq!(keys(&json), ["command", "status", "exit_code", "data", "timing", "messages"]);
    assert_eq!(json["command"], "plan show");
    assert_eq!(json["timing"], json!({"started": "2026-02-08T12:58:00Z", "duration_ms": 13_242}));
    assert_eq!(
        json["messages"],
        json!([
            {"level": "info", "text": "A note"},
            {"level": "warn", "text": "Look -- here", "detail": "because of this"},
            {"level": "ok", "text": "Shown"},
        ])
    );
    assert!(run.text().ends_with("}\n") && run.text().contains("\n  \"status\""));
}

#[test]
fn elements_with_keys_are_the_data_and_the_others_are_not() {
    let run = Run::piped(Format::Json);
    everything(&run);
    run.finish();
    let data = &run.json()["data"];
    assert_eq!(keys(data), ["decision", "plans", "tree", "answer", "source", "diff", "paths"]);
    assert_eq!(keys(&data["decision"]), ["id", "type", "confidence", "created_at", "pending"]);
    assert_eq!(
        data["plans"],
        json!([
            {"id": "01HXM7A9Q1Q8K2E9H7K3W2M8AB", "state": "processing", "auto": true, "files": 1247},
            {"id": "01HXM6R3Q1Q8K2E9H7K3W2M8AB", "state": "applied", "auto": false, "files": null},
        ])
    );
    assert_eq!(
        data["tree"],
        json!({"label": "Plan 01HXM8C2ZK", "children": [
            {"type": "strategy_choice", "children": [{"label": "session.py"}]},
            {"label": "E711"},
        ]})
    );
    assert_eq!(data["answer"], "It works → now.\nSecond line.");
    assert_eq!(data["diff"][0]["stats"], json!({"insertions": 1, "deletions": 1}));
    assert_eq!(data["diff"][0]["hunks"][0]["lines"][1]["line_number_old"], 2);
    assert_eq!(data["paths"], json!({"root": "/srv/x"}));
}

#[test]
fn a_whole_value_is_the_data_and_elements_are_then_for_people() {
    let run = Run::piped(Format::Json);
    run.out.set_data(json!({"plan": {"id": "p"}}));
    run.out.panel("ignored", "Plan").value("id", "ID", "p");
    run.out.diff("ignored", "--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n");
    run.out.data("plan.extra", 1).metadata("trace", "t");
    run.finish();
    assert_eq!(run.json()["data"], json!({"plan": {"id": "p", "extra": 1}}));
    assert_eq!(run.json()["metadata"], json!({"trace": "t"}));
}

#[test]
fn data_is_an_object_or_a_list() {
    for (given, expected) in [
        (json!(null), json!({})),
        (json!([1]), json!([1])),
        (json!(1), json!({"result": 1})),
        (json!({"a": 1}), json!({"a": 1})),
    ] {
        let run = Run::piped(Format::Json);
        run.out.set_data(given);
        run.finish();
        assert_eq!(run.json()["data"], expected);
    }
    let run = Run::piped(Format::Json);
    run.finish();
    assert_eq!((&run.json()["data"], &run.json()["messages"]), (&json!({}), &json!([])));
}

#[test]
fn dotted_paths_make_merge_and_replace() {
    let run = Run::piped(Format::Json);
    run.out.panel("a.b", "B").value("x", "X", 1);
    run.out.panel("a.b", "B").value("y", "Y", 2);
    run.out.data("a.c", 3).data("a.c.d", 4);
    run.finish();
    assert_eq!(run.json()["data"], json!({"a": {"b": {"x": 1, "y": 2}, "c": {"d": 4}}}));
}

// OUT-003, CLI-187, COM-004
#[test]
fn a_failure_is_one_document_with_the_error_and_what_there_was() {
    let run = Run::piped(Format::Json);
    run.out.data("partial", 1);
    let error = AppError::new(ErrorCode::NotFound, "No plan — here")
        .detail("Look → there")
        .suggest("agents plan list");
    assert_eq!(run.out.fail(&error), 1);
    let json = run.json();
    assert_eq!(keys(&json), ["command", "status", "exit_code", "data", "error", "timing", "messages"]);
    assert_eq!(
        json["error"],
        json!({"code": "NOT_FOUND", "number": 404, "message": "No plan -- here", "detail": "Look → there",
               "suggestions": ["agents plan list"]})
    );
    assert_eq!(
        (&json["status"], &json["exit_code"], &json["data"]),
        (&json!("error"), &json!(1), &json!({"partial": 1}))
    );
    assert_eq!(json["messages"], json!([{"level": "error", "text": "No plan -- here"}]));
}

// OUT-003
#[test]
fn a_refusal_with_results_keeps_them_and_gives_its_reason_first() {
    let run = Run::piped(Format::Json);
    run.out.set_data(json!({"delete_blocked": {"plans": 2}}));
    run.out.error("Project has active plans");
    assert_eq!(run.out.finish(), 1);
    let json = run.json();
    assert_eq!((&json["status"], &json["exit_code"]), (&json!("error"), &json!(1)));
    assert_eq!(json["messages"][0]["text"], "Project has active plans");
    assert_eq!(json["data"]["delete_blocked"]["plans"], 2);
    assert!(json.get("error").is_none());
}

// CLI-014, ruling 2
#[test]
fn exit_codes_follow_how_the_run_ended() {
    type End = fn(&Output) -> u8;
    let ends: [(&str, u8, End); 6] = [
        ("ok", 0, |out| out.finish()),
        ("ok", 0, |out| {
            out.warn("hm");
            out.finish()
        }),
        ("error", 1, |out| out.fail(&AppError::new(ErrorCode::Internal, "x"))),
        ("error", 2, |out| out.fail(&AppError::usage("x"))),
        ("cancelled", 130, |out| out.cancel()),
        ("cancelled", 143, |out| out.cancel_with(143, None)),
    ];
    for (status, code, end) in ends {
        for format in [Format::Json, Format::Yaml] {
            let run = Run::piped(format);
            assert_eq!(end(&run.out), code);
            let json: Value = serde_saphyr::from_str(&run.text()).unwrap();
            assert_eq!((&json["status"], &json["exit_code"]), (&json!(status), &json!(code)), "{format:?}");
        }
    }
}

#[test]
fn the_codes_and_their_numbers_are_stable() {
    let all: Vec<(&str, u16)> = ErrorCode::ALL.iter().map(|c| (c.name(), c.number())).collect();
    assert_eq!(
        all,
        [
            ("NOT_FOUND", 404),
            ("ALREADY_EXISTS", 409),
            ("VALIDATION_FAILED", 422),
            ("INVALID_STATE", 409),
            ("USAGE", 400),
            ("UNAUTHENTICATED", 401),
            ("FORBIDDEN", 403),
            ("RATE_LIMITED", 429),
            ("PROVIDER", 520),
            ("DATABASE", 522),
            ("NETWORK", 524),
            ("CONFIGURATION", 525),
            ("BUDGET_EXCEEDED", 402),
            ("PLAN_ERROR", 521),
            ("OPERATION_NOT_FOUND", 404),
            ("NOT_AVAILABLE", 501),
            ("IO", 500),
            ("INTERNAL", 500),
        ]
    );
    for code in ErrorCode::ALL {
        assert_eq!(ErrorCode::from_name(code.name()), code);
    }
    assert_eq!(ErrorCode::from_name("NEW_ONE"), ErrorCode::Internal);
}

// CLI-198: nothing in a document can drive a terminal.
#[test]
fn documents_escape_what_acts_on_a_terminal_and_keep_its_value() {
    let nasty = "\u{1b}[31m \u{9b}2J \u{7f} \u{202e} é \r\n\t";
    for format in [Format::Json, Format::Yaml] {
        let run = Run::piped(format);
        run.out.data("x", nasty);
        run.finish();
        let text = run.text();
        assert!(!text.chars().any(|c| c != '\n' && crate::output::layout::is_control(c)), "{text:?}");
        assert!(text.contains('é'));
        let back: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(back["data"]["x"], nasty);
    }
}
