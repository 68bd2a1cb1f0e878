//! Tools and validations in Python (TOOL-004, 005, 013, 014, 019, 020, 026 to 031, 037, 045, 047; VALID-001, 006, 024 to 031).

use agents_domain::ports::tool::{Capability, LocalTool, ToolSpec};
use serde_json::{Value, json};

use super::caller::{Called, with_programs};
use crate::harness::Bench;

fn add(bench: &Bench, text: &str) -> Value {
    bench.ok("registry/tool/add", json!({ "config": "tool.yaml", "text": text }))
}

const COUNT: &str = "\
name: local/count
description: Counts the lines of a file
read_only: true
input_schema: {type: object, properties: {path: {type: string}, factor: {type: integer, default: 2}}, required: [path]}
resource_slots: [{name: repo, type: fs-directory}]
code: |
  print('counting')
  return {'lines': params['factor'] * len(ctx.resources['repo'].read(params['path']).splitlines())}
";

const APPEND: &str = "\
name: local/append
description: Appends a line
writes: true
checkpointable: true
resource_slots: [{name: repo, type: git-checkout, access: read_write}]
code: |
  import os
  def run(input_data):
      with open('a.txt', 'a') as file:
          file.write(input_data['line'] + '\\n')
      return {'cwd': os.getcwd(), 'home': os.environ.get('SECRET_TOKEN')}
";

// TOOL-007, 023, 025, 031, 047
#[test]
fn code_reads_and_writes_its_sandbox_in_every_contract() {
    let named = "name: local/named\ndescription: X\nread_only: true\ncode: |\n  def named(a, b=1):\n    return a + b\n";
    let script =
        "name: local/script\ndescription: X\nread_only: true\ncode: |\n  result = input_data.upper()\n";
    let raises = "name: local/raises\ndescription: X\nwrites: true\ncheckpointable: true\ncode: |\n  open('a.txt', 'w').write('lost')\n  print('so far')\n  raise ValueError('no')\n";
    let sleeps = "name: local/sleeps\ndescription: X\nread_only: true\ntimeout: 1\ncode: |\n  import time\n  time.sleep(600)\n";
    let steals = "name: local/steals\ndescription: X\nread_only: true\ncode: |\n  open('a.txt', 'w')\n";
    let calls = [
        ("local/count", json!({ "path": "a.txt" })),
        ("local/append", json!({ "line": "two" })),
        ("local/named", json!({ "a": 2 })),
        ("local/script", json!({ "content": "abc" })),
        ("local/raises", json!({})),
        ("local/sleeps", json!({})),
        ("local/steals", json!({})),
        ("local/count", json!({ "path": "../secret" })),
        ("local/count", json!({ "path": 7 })),
        ("local/count", json!({ "path": "a.txt" })),
    ];
    let called = Called::with(&[("a.txt", "one\n")], &calls, "", "trusted", |bench| {
        with_programs(bench);
        for text in [COUNT, APPEND, named, script, raises, sleeps, steals] {
            add(bench, text);
        }
    });
    assert_eq!(called.result(0), json!({ "lines": 2 }));
    let appended = called.result(1);
    assert_eq!(
        (&appended["files"][0]["path"], &appended["home"]),
        (&json!("a.txt"), &Value::Null),
        "{appended}"
    );
    assert_eq!(called.result(2), json!({ "result": 3 }));
    assert_eq!(called.result(3), json!({ "result": "ABC" }));
    let raised = called.refused(4);
    assert!(
        raised.contains("ValueError: no") && raised.contains("so far") && raised.contains("line 3"),
        "{raised}"
    );
    assert_eq!(called.result(5)["type"], "TimeoutError");
    assert!(
        called.refused(6).contains("Read-only") || called.refused(6).contains("nothing is written"),
        "{}",
        called.refused(6)
    );
    assert!(called.refused(7).contains("escapes sandbox root"), "{}", called.refused(7));
    assert_eq!(called.result(8)["type"], "InvalidCallError");
    assert_eq!(called.result(9), json!({ "lines": 4 }));
    assert_eq!(called.text("a.txt").as_deref(), Some("one\ntwo\n"));
    assert_eq!(called.changed(), ["a.txt"]);
}

// TOOL-014, 019, 020, 026, 030
#[test]
fn hooks_limits_and_slots_decide_whether_a_tool_runs() {
    let hooks = "name: local/hooks\ndescription: X\nread_only: true\ncost_profile: {rate_limit: 2/min}\nlifecycle: {discover: found, activate: ready}\ncode: |\n  def found(context): return 1\n  def ready(context): return context['tool']\n  def run(input_data): return {'ok': True}\n";
    let broken = "name: local/broken\ndescription: X\nread_only: true\nlifecycle:\n  activate: |\n    raise RuntimeError('no licence')\ncode: return 1\n";
    let slot = "name: local/slot\ndescription: X\nread_only: true\nresource_slots: [{name: db, type: postgres}]\ncode: return 1\n";
    let container = "name: local/boxed\ndescription: X\nread_only: true\nenvironment: {required: container}\ncode: return 1\n";
    let hook = ("local/hooks", json!({}));
    let calls = [
        hook.clone(),
        hook.clone(),
        hook,
        ("local/broken", json!({})),
        ("local/slot", json!({})),
        ("local/boxed", json!({})),
    ];
    let called = Called::with(&[("a.txt", "one\n")], &calls, "", "trusted", |bench| {
        with_programs(bench);
        for text in [hooks, broken, slot, container] {
            add(bench, text);
        }
    });
    assert_eq!(called.result(0), json!({ "ok": true }));
    assert_eq!(called.result(1), json!({ "ok": true }));
    assert!(called.refused(2).contains("2 times in 60 s"), "{}", called.refused(2));
    assert!(
        called.refused(3).contains("`activate` failed: RuntimeError: no licence"),
        "{}",
        called.refused(3)
    );
    assert!(
        called.refused(4).contains("slot `db` needs a resource of type postgres"),
        "{}",
        called.refused(4)
    );
    assert!(called.refused(5).contains("only in a container"), "{}", called.refused(5));
}

// TOOL-013
#[test]
fn a_tool_that_wants_a_person_waits_for_one() {
    let text = "name: local/careful\ndescription: X\nwrites: true\ncheckpointable: true\nhuman_approval_required: true\ncode: return 1\n";
    let called = Called::with(&[("a.txt", "1\n")], &[("local/careful", json!({}))], "", "trusted", |bench| {
        with_programs(bench);
        add(bench, text);
    });
    let status = called.bench.status(&called.plan);
    let question = status["awaiting"]["question"].as_str().unwrap_or_default();
    assert!(question.contains("May `local/careful` run?"), "{status}");
    called.bench.ok("plan/prompt", json!({ "plan": called.plan, "guidance": "2" }));
    called.bench.work(&called.plan);
    assert_eq!(called.result(0)["error"], "AccessDeniedError", "{}", called.result(0));
}

// TOOL-037
#[test]
fn tools_of_an_actors_own_are_offered_and_run_and_registered_nowhere() {
    let own = LocalTool {
        spec: ToolSpec {
            name: "double".to_owned(),
            description: "Doubles".to_owned(),
            input: json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] }),
            group: None,
            capability: Capability { read_only: true, ..Capability::default() },
        },
        code: "return {'twice': 2 * params['n']}".to_owned(),
        env: Default::default(),
    };
    let calls = [("double", json!({ "n": 4 }))];
    let called = Called::with_local(
        &[("a.txt", "1\n")],
        &calls,
        &[own],
        ("read_only: true\n", "trusted"),
        with_programs,
    );
    assert_eq!(called.result(0), json!({ "twice": 8 }));
    let offered = called.kept.offered.lock().unwrap();
    assert!(offered.iter().all(|(_, specs)| specs.iter().any(|spec| spec.name == "double")));
    assert_eq!(called.bench.ok("registry/tool/list", json!({}))["summary"]["total"], 0);
}

// TOOL-004, 005, 028, 045, 048; TOOLCLI-002 to 018
#[test]
fn tools_are_registered_updated_listed_shown_and_removed() {
    let mut bench = Bench::new(&[("a.txt", "1\n")], &[]);
    with_programs(&mut bench);
    let added = add(&bench, COUNT);
    assert_eq!(added["tool_registered"]["version"], 1);
    assert_eq!(
        (&added["capability"]["read_only"], &added["capability"]["writes"]),
        (&json!(true), &json!(false))
    );
    let again = bench.err("registry/tool/add", json!({ "config": "tool.yaml", "text": COUNT }));
    assert_eq!(again.message, "Tool 'local/count' is already registered.");
    let other = COUNT
        .replace("factor: {type: integer, default: 2}", "times: {type: integer}")
        .replace("Counts the", "Counts all");
    let updated =
        bench.ok("registry/tool/add", json!({ "config": "tool.yaml", "text": other, "update": true }));
    assert_eq!(
        (&updated["tool_updated"]["previous_version"], &updated["tool_updated"]["current_version"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(updated["changes"]["input_schema"], "modified (added times; removed factor)");
    assert_eq!(
        (&updated["changes"]["capabilities"], &updated["changes"]["description"]),
        (&json!("unchanged (read_only)"), &json!("updated"))
    );
    let validation = "name: local/count\ncommand: 'true'\n";
    assert!(
        bench
            .engine
            .call_json("registry/validation/add", json!({ "config": "v.yaml", "text": validation }))
            .is_err()
    );
    let bound = COUNT
        .replace("local/count", "local/bound")
        .replace("type: fs-directory", "type: fs-directory, static_resource: local/none");
    assert!(
        bench
            .err("registry/tool/add", json!({ "config": "t.yaml", "text": bound }))
            .message
            .contains("local/none")
    );
    let listed = bench.ok("registry/tool/list", json!({}));
    assert_eq!(
        listed["summary"],
        json!({ "total": 1, "tools": 1, "validations": 0, "read_only": 1, "writes": 0 })
    );
    let shown = bench.ok("registry/tool/show", json!({ "name": "local/count" }));
    assert_eq!(shown["input_schema"]["path"], json!({ "type": "string", "required": true }));
    let ours = bench.ok("registry/tool/show", json!({ "name": "read_file" }));
    assert_eq!(ours["tool_details"]["name"], "builtin/read_file");
    assert!(
        bench.ok("registry/tool/list", json!({ "namespace": "builtin", "type": "tool" }))["summary"]["tools"]
            .as_u64()
            > Some(15)
    );
    let removed = bench.ok("registry/tool/remove", json!({ "name": "local/count" }));
    assert_eq!(
        (&removed["tool_removed"]["source"], &removed["broken_references"]),
        (&json!("custom"), &json!([]))
    );
    bench.err("registry/tool/show", json!({ "name": "local/count" }));
    bench.err("registry/tool/remove", json!({ "name": "builtin/read_file" }));
    let mcp = "name: local/m\ndescription: X\nsource: mcp\nmcp_server: x\nmcp_tool_name: y\n";
    assert!(
        bench.err("registry/tool/add", json!({ "config": "m.yaml", "text": mcp })).message.contains("skill")
    );
}

// VALID-005, 006, 024 to 031
#[test]
fn validations_in_python_and_around_tools_say_what_they_find() {
    let size = "name: local/size\ndescription: X\nread_only: true\ninput_schema: {type: object, properties: {path: {type: string}}, required: [path]}\ncode: |\n  return {'size': len(open(params['path']).read())}\n";
    let cases: [(&str, bool, &str); 8] = [
        ("name: local/v1\ncode: |\n  def run(input_data):\n    text = open('a.txt').read()\n    return {'passed': 'two' in text, 'message': 'looked', 'data': {'n': 1}}\n", true, "looked"),
        ("name: local/v2\ncode: |\n  return 'nothing'\n", false, "no `passed`"),
        ("name: local/v3\ncode: |\n  open('a.txt', 'w').write('x')\n", false, ""),
        ("name: local/v4\ncode: |\n  import socket\n  socket.create_connection(('127.0.0.1', 9), 2)\n", false, ""),
        ("name: local/v5\nwraps: local/size\nargument_mapping: {path: file}\ninput_schema: {type: object, properties: {file: {type: string, default: a.txt}}}\ntransform: |\n  def transform(tool_output):\n    return {'passed': tool_output['size'] == 4, 'message': str(tool_output['size'])}\n", true, "4"),
        ("name: local/v6\nwraps: local/size\nargument_mapping: {path: a.txt}\n", false, "write a `transform`"),
        ("name: local/v7\nwraps: read_file\nargument_mapping: {path: a.txt}\ntransform: |\n  return {'passed': tool_output['content'] == 'two\\n'}\n".trim_end(), true, "passed"),
        ("name: local/v8\nwraps: local/size\nargument_mapping: {path: nothing}\ntransform: |\n  return {'passed': True}\n", false, "FileNotFoundError"),
    ];
    let calls = [("write_file", json!({ "path": "a.txt", "content": "two\n" }))];
    let called = Called::with(&[("a.txt", "one\n")], &calls, "", "trusted", |bench| {
        with_programs(bench);
        let unknown = "name: local/v0\nwraps: local/none\n";
        let said = bench.err("registry/validation/add", json!({ "config": "v.yaml", "text": unknown }));
        assert!(said.message.contains("there is no tool `local/none`"), "{}", said.message);
        add(bench, size);
        for (text, ..) in &cases {
            let text = format!("{}\nvalidation: {{mode: informational}}\n", text.trim_end());
            bench.ok("registry/validation/add", json!({ "config": "v.yaml", "text": text }));
            let name = text.lines().next().unwrap().trim_start_matches("name: ");
            bench.ok("validation/attach", json!({ "validation": name, "resource": "local/repo" }));
        }
    });
    let status = called.bench.status(&called.plan);
    for (text, passed, said) in &cases {
        let name = text.lines().next().unwrap().trim_start_matches("name: ");
        let found = status["validation_summary"].as_array().unwrap().iter().find(|v| v["validation"] == name);
        let found = found.unwrap_or_else(|| panic!("{name}: {status}"));
        assert_eq!(found["passed"], json!(passed), "{found}");
        assert!(found["message"].as_str().unwrap().contains(said), "{found}");
    }
    assert_eq!(called.text("a.txt").as_deref(), Some("two\n"));
}
