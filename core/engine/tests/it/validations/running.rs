//! Running at the end of Execute: what passes, what fails, what is fixed, and what stands in the way of Apply.

use std::path::Path;
use std::sync::Arc;

use agents_actors::scripted::Scripted;
use agents_domain::ErrorKind;
use agents_domain::ports::actor::Actor;
use agents_engine::Surroundings;
use serde_json::{Value, json};

use crate::harness::Bench;

/// A machine with the usual programs and one secret.
struct Machine;

impl Surroundings for Machine {
    fn variable(&self, name: &str) -> Option<String> {
        match name {
            "PATH" => Some("/usr/local/bin:/usr/bin:/bin".to_owned()),
            "API_TOKEN" => Some("hunter22-hunter22".to_owned()),
            "UNRELATED" => Some("never passed on".to_owned()),
            _ => None,
        }
    }

    fn run(&self, program: &Path, _: &[&str]) -> Result<String, String> {
        Err(program.display().to_string())
    }
}

fn done() -> Value {
    json!({ "done": { "headline": "did it", "lines": [], "facts": null } })
}

fn decision(key: &str, kind: &str) -> Value {
    json!({
        "request": "record_decision", "key": key, "decision_type": kind, "parent": null,
        "question": format!("How about {key}?"), "chosen": 0, "alternatives": [{ "option": "Fix it" }],
        "confidence": 0.9, "rationale": "because", "reasoning": null, "resources": [],
        "depends_on": [], "context": null,
    })
}

/// Writes a whole line of `a.txt`.
fn write(call: &str, key: &str, line: u32, text: &str) -> Value {
    json!({
        "request": "tool", "call_id": call, "tool": "builtin/apply-edits", "decision": key,
        "args": { "resource": "${resource}", "edits": [{ "op": "edit", "path": "a.txt", "edits": [{
            "range": { "start": { "line": line, "column": 0 }, "end": { "line": line + 1, "column": 0 } },
            "new_text": text,
        }] }] },
    })
}

/// Changes the second line to `bad`; asked for fixes, it plays the given steps.
fn script(fixes: Vec<Value>) -> Value {
    let mut execute = vec![
        json!({ "requests": [decision("impl/x", "implementation_choice"), write("1", "impl/x", 1, "bad\n")] }),
        json!({ "outcome": done() }),
    ];
    execute.extend(fixes);
    json!({ "strategize": [{ "outcome": done() }], "execute": execute })
}

/// Answers findings with a write of the second line.
fn fix(call: &str, text: &str) -> Vec<Value> {
    let key = format!("fix/{call}");
    vec![
        json!({
            "expect": { "findings": [{ "validation": "local/check", "passed": false }] },
            "requests": [decision(&key, "validation_response"), write(call, &key, 1, text)],
        }),
        json!({ "outcome": done() }),
    ]
}

fn bench(script: Value) -> Bench {
    let actor: Arc<dyn Actor> = Arc::new(Scripted::new(script));
    let Bench { dir, engine, asked } = Bench::new(&[("a.txt", "one\ntwo\nthree\n")], &[("test/s", actor)]);
    let bench = Bench { dir, engine: engine.with_surroundings(Arc::new(Machine)), asked };
    bench.action("local/act", "test/s", "test/s", "");
    bench
}

/// Registers and attaches a validation.
fn validation(bench: &Bench, name: &str, more: &str) {
    let text = format!("name: local/{name}\n{more}");
    bench.ok("registry/validation/add", json!({ "config": "v.yaml", "text": text }));
    bench.ok("validation/attach", json!({ "validation": format!("local/{name}"), "resource": "local/repo" }));
}

/// The names of the events about validations, with the validation's name.
fn events(bench: &Bench, plan: &str) -> Vec<String> {
    let all = bench.ok("events/after", json!({ "sequence": 0, "plan": plan, "limit": 1000 }));
    let named = |e: &Value| {
        let name = e["event_type"].as_str().unwrap().strip_prefix("validation.")?.to_owned();
        Some(format!("{name} {}", e["details"]["validation"].as_str().unwrap_or_default()))
    };
    all["events"].as_array().unwrap().iter().filter_map(named).collect()
}

fn summary<'v>(status: &'v Value, name: &str) -> &'v Value {
    let all = status["validation_summary"].as_array().unwrap();
    all.iter().find(|v| v["validation"] == format!("local/{name}")).unwrap_or_else(|| panic!("{status}"))
}

const PASSES: &str = "command: [grep, -q, bad, a.txt]\n";
const FAILS: &str = "shell: |\n  ! grep -n bad a.txt | sed 's/^/a.txt:/'\n  ! grep -q bad a.txt\n";

// VALID-016, VALID-017, VALID-022, T30, T36, APP-002, PLAN-064
#[test]
fn what_passes_lets_the_plan_be_applied_and_is_run_on_the_sandbox_only_in_execute() {
    let bench = bench(script(Vec::new()));
    validation(&bench, "check", PASSES);
    validation(&bench, "advice", "shell: exit 3\nvalidation: {mode: informational}\n");
    let plan = bench.plan("local/act", "auto");
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval");
    let status = bench.status(&plan);
    let check = summary(&status, "check");
    assert_eq!((&check["passed"], &check["attempt"]), (&json!(true), &json!(1)));
    assert_eq!(
        (&check["attachment_scope"], &check["attachment_scope_target"]),
        (&json!("direct"), &Value::Null)
    );
    assert_eq!(check["data"]["exit_code"], 0);
    // APP-007
    let advice = summary(&status, "advice");
    assert_eq!((&advice["passed"], &advice["mode"]), (&json!(false), &json!("informational")));
    let before = events(&bench, &plan).len();
    assert_eq!(before, 4);

    bench.ok("plan/apply", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "apply/applied");
    assert_eq!(events(&bench, &plan).len(), before, "APP-006: nothing is run in Apply");
    let status = bench.status(&plan);
    assert_eq!(status["result"]["validations"], "1/2 passed");
    assert_eq!(status["final_validation_results"], json!({ "local/advice": false, "local/check": true }));
    assert_eq!(status["validation"]["check"]["status"], "passed");
    assert!(status["validation"]["duration_s"].is_number());
}

// VALID-018, VALID-021, VALID-023, T26, GUARD-016
#[test]
fn a_required_failure_is_fixed_and_only_it_is_run_again() {
    let bench = bench(script([fix("2", "worse bad\n"), fix("3", "good\n")].concat()));
    validation(&bench, "check", FAILS);
    validation(&bench, "other", "command: ['true']\n");
    let plan = bench.plan("local/act", "ci");
    let said = events(&bench, &plan);
    let of = |name: &str| {
        said.iter().filter(|e| e.ends_with(name)).map(|e| e.split(' ').next().unwrap()).collect::<Vec<_>>()
    };
    let loops = [
        "started",
        "failed",
        "fix_attempted",
        "started",
        "failed",
        "fix_attempted",
        "started",
        "passed",
        "fix_succeeded",
    ];
    assert_eq!(of("local/check"), loops);
    // What passed before the fixes is run once more on what will be applied.
    assert_eq!(of("local/other"), ["started", "passed", "started", "passed"]);
    let status = bench.status(&plan);
    assert_eq!(summary(&status, "check")["attempt"], 3);
    let history = status["validation_fix_history"].as_array().unwrap();
    let came: Vec<&Value> = history.iter().map(|f| &f["succeeded"]).collect();
    assert_eq!(came, [&json!(false), &json!(true)]);
    let tree = bench.ok("plan/tree", json!({ "plan": plan }));
    assert!(tree.to_string().contains("validation_response"), "{tree}");
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "apply/applied");
}

// GUARD-016: no fourth fix. T28 or T29 is what the profile says.
#[test]
fn after_three_fixes_the_strategy_is_asked_about() {
    let fixes = ["2", "3", "4", "5"].map(|call| fix(call, &format!("bad {call}\n"))).concat();
    let bench = bench(script(fixes));
    validation(&bench, "check", FAILS);
    let plan = bench.plan("local/act", "trusted");
    assert_eq!(bench.at(&plan), "execute/processing+strategy_revision");
    let said = events(&bench, &plan);
    assert_eq!(said.iter().filter(|e| e.starts_with("fix_attempted")).count(), 3);
    assert_eq!(said.iter().filter(|e| e.starts_with("failed")).count(), 4);
    assert!(said.iter().any(|e| e.starts_with("fix_exhausted")), "{said:?}");
}

// T27: the profile asks before a fix; PLAN-080: words go along with it.
#[test]
fn a_fix_waits_for_a_person_where_the_profile_says_so() {
    let bench = bench(script(fix("2", "good\n")));
    validation(&bench, "check", FAILS);
    let plan = bench.plan("local/act", "supervised");
    bench.ok("plan/execute", json!({ "plan": plan }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "execute/processing+validation_fix");
    let status = bench.status(&plan);
    assert!(
        status["awaiting"]["question"].as_str().unwrap().contains("local/check did not pass"),
        "{status}"
    );

    // APP-004, T37, C-11
    let refused = bench.err("plan/apply", json!({ "plan": plan }));
    assert_eq!(refused.kind, ErrorKind::InvalidState);
    assert_eq!(refused.message, "Apply refused -- 1 required Execute-phase validation did not pass");
    let data = refused.data.unwrap();
    assert_eq!(data["validation"]["check"]["status"], "failed");
    assert_eq!(data["validation"]["check"]["failures"][0], "a.txt:2 -- bad");
    assert_eq!(data["sandbox"]["worktree"], "preserved");
    assert_eq!(data["recovery_options"].as_array().unwrap().len(), 4);
    assert_eq!(data["changes"], json!({ "insertions": 1, "deletions": 1 }));
    assert_eq!(bench.at(&plan), "execute/processing+validation_fix", "nothing has changed");

    bench.ok("plan/prompt", json!({ "plan": plan, "guidance": "fix" }));
    bench.work(&plan);
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval");
}

// VALID-004: what writes fails with that reason, and what it wrote is taken back.
#[test]
fn a_validation_that_changes_files_fails_and_the_changes_are_taken_back() {
    let bench = bench(script(Vec::new()));
    validation(
        &bench,
        "writes",
        "shell: |\n  echo more >> a.txt\n  echo new > b.txt\nvalidation: {mode: informational}\n",
    );
    validation(&bench, "cache", "shell: mkdir -p __pycache__ && echo x > __pycache__/a.pyc\n");
    validation(&bench, "clean", "command: ['true']\n");
    let plan = bench.plan("local/act", "auto");
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval");
    let status = bench.status(&plan);
    let writes = summary(&status, "writes");
    assert_eq!((&writes["passed"], &writes["error"]), (&json!(false), &json!(true)));
    assert_eq!(writes["data"]["changed_files"], json!(["a.txt", "b.txt"]));
    assert_eq!(summary(&status, "cache")["passed"], true);
    assert_eq!(summary(&status, "clean")["passed"], true);
    let sandbox = status["execution"]["sandbox"]["path"].as_str().unwrap();
    let sandbox = Path::new(sandbox);
    assert_eq!(std::fs::read_to_string(sandbox.join("a.txt")).unwrap(), "one\nbad\nthree\n");
    assert!(!sandbox.join("b.txt").exists() && !sandbox.join("__pycache__/a.pyc").exists());
}

// VALID-020: a hanging, a missing and a crashing one are recorded as not passed; secrets are masked, the environment is
// clean.
#[test]
fn what_cannot_be_run_to_its_end_is_recorded_and_an_informational_one_blocks_nothing() {
    let bench = bench(script(Vec::new()));
    let advice = "validation: {mode: informational}\n";
    validation(&bench, "hangs", &format!("command: [sleep, '600']\ntimeout: 1\n{advice}"));
    validation(&bench, "missing", &format!("command: [no-such-program-here]\n{advice}"));
    validation(&bench, "crashes", &format!("shell: kill -SEGV $$\n{advice}"));
    validation(&bench, "floods", &format!("shell: yes | head -c 3000000; exit 1\n{advice}"));
    validation(
        &bench,
        "tells",
        &format!("shell: env; exit 1\nenv: {{API_TOKEN: '${{API_TOKEN}}'}}\n{advice}"),
    );
    validation(&bench, "unset", &format!("shell: 'true'\nenv: {{X: '${{NOT_SET_HERE}}'}}\n{advice}"));
    let plan = bench.plan("local/act", "auto");
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval");
    let status = bench.status(&plan);
    let of = |name: &str| summary(&status, name);
    for (name, error, words) in [
        ("hangs", true, "stopped after 1 s"),
        ("missing", true, "`no-such-program-here` is not on PATH"),
        ("crashes", true, "signal 11"),
        ("floods", false, "exit code 1"),
        ("unset", true, "`${NOT_SET_HERE}`, which is not set"),
    ] {
        assert_eq!((&of(name)["passed"], &of(name)["error"]), (&json!(false), &json!(error)), "{name}");
        let message = of(name)["message"].as_str().unwrap();
        assert!(message.contains(words), "{name}: {message}");
    }
    assert!(of("floods")["data"]["stdout"].as_str().unwrap().len() < 5000);
    let told = of("tells")["data"]["stdout"].as_str().unwrap();
    assert!(told.contains("API_TOKEN=***") && !told.contains("hunter22"), "{told}");
    assert!(!told.contains("never passed on"), "{told}");
}

// VALID-011, VALID-013: arguments reach the command, equal attachments run once.
#[test]
fn arguments_reach_the_command_and_equal_attachments_run_once() {
    let bench = bench(script(Vec::new()));
    let schema = "input_schema: {type: object, properties: {word: {type: string, default: bad}, n: {type: integer}}}\n";
    validation(&bench, "check", &format!("command: [grep, -q, '{{{{ word }}}}', a.txt]\n{schema}"));
    let attach = |args: Value| {
        let params = json!({ "validation": "local/check", "resource": "local/repo", "project": "local/app", "args": args });
        bench.ok("validation/attach", params);
    };
    attach(json!({}));
    attach(json!({ "word": "one; touch hacked" }));
    let plan = bench.plan("local/act", "auto");
    let status = bench.status(&plan);
    let runs = status["validation_summary"].as_array().unwrap();
    let said: Vec<_> =
        runs.iter().map(|r| (r["attachment_scope"].as_str().unwrap(), r["passed"] == true)).collect();
    assert_eq!(said, [("project", true), ("project", false)]);
    assert_eq!(runs[1]["data"]["command"], "grep -q one; touch hacked a.txt");
}

// builtin/syntax and builtin/command, attached without being registered; VALID-014 is a rule of the domain.
#[test]
fn built_in_validations_need_no_registration() {
    let bench = bench(script(Vec::new()));
    let attach = |params: Value| bench.ok("validation/attach", params);
    attach(json!({ "validation": "builtin/syntax", "resource": "local/repo" }));
    attach(json!({
        "validation": "builtin/command", "project": "local/app", "args": { "command": "grep -c one a.txt" },
    }));
    let none =
        bench.err("validation/attach", json!({ "validation": "builtin/command", "resource": "local/repo" }));
    assert!(none.message.contains("needs the command"), "{none}");
    let plan = bench.plan("local/act", "auto");
    assert_eq!(bench.at(&plan), "execute/complete+apply_approval");
    assert_eq!(bench.status(&plan)["validation_summary"].as_array().unwrap().len(), 2);
}

// No language server serves the files: that is not a pass.
#[test]
fn no_new_diagnostics_never_passes_by_asking_nobody() {
    let bench = bench(script(Vec::new()));
    bench.ok(
        "validation/attach",
        json!({ "validation": "builtin/no-new-diagnostics", "resource": "local/repo" }),
    );
    let plan = bench.plan("local/act", "trusted");
    assert_eq!(bench.at(&plan), "execute/processing+strategy_revision");
    let status = bench.status(&plan);
    let message = status["validation_summary"][0]["message"].as_str().unwrap();
    assert!(message.contains("no registered language server"), "{message}");
}
