//! Every command in every format.

use serde_json::Value;

use crate::world::{World, choose_and_edit, failing};

/// Every command that shows something, on a world with a plan in each kind of standing.
fn commands(plans: &[String], decision: &str) -> Vec<Vec<String>> {
    let mut lines: Vec<String> = [
        "version",
        "info",
        "resource list",
        "resource list --all",
        "resource show local/repo",
        "project list",
        "project show local/app",
        "lsp list",
        "lsp show local/none",
        "lsp add -c ruff.yaml --update",
        "lsp list",
        "lsp show local/ruff",
        "action list",
        "action show local/act",
        "plan list",
        "plan list --state awaiting",
        "plan blame repo/a.txt",
        "plan blame repo/a.txt:2",
        "plan blame repo/b.txt",
        "plan status 01ZZZ",
        "plan nonsense",
        "resource add git-checkout local/repo --path repo --update",
        "project delete local/app",
    ]
    .map(str::to_owned)
    .to_vec();
    for plan in plans {
        for verb in ["status", "tree", "diff", "artifacts", "errors", "apply", "follow"] {
            lines.push(format!("plan {verb} {plan}"));
        }
        lines.push(format!("plan tree --show-superseded {plan}"));
    }
    lines.push(format!("plan explain {decision}"));
    lines.push(format!("plan explain --show-context --show-reasoning {decision}"));
    lines.iter().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
}

// COM-003, COM-007, OUT-001, OUT-008, CLI-198, CLI-199
#[test]
fn every_command_speaks_every_format() {
    let world = World::registered(&choose_and_edit(0.9));
    world.write("ruff.yaml", "name: ruff\nlanguages: [python]\ncommand: sh\n");
    let waiting = world.plan(&[]);
    let executed = world.plan(&["--automation-profile", "trusted"]);
    world.write("script.json", &failing().to_string());
    let failed = world.plan(&["--automation-profile", "trusted"]);
    let tree = world.json(&["plan", "tree", &waiting]);
    let decision = tree["data"]["tree"]["children"][0]["decision_id"].as_str().unwrap().to_owned();
    for args in commands(&[waiting, executed, failed], &decision) {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut codes = Vec::new();
        for format in ["rich", "table", "color", "plain"] {
            let ran = world.run_in(format, &args);
            assert!(!ran.stdout.trim().is_empty(), "{format} {args:?}");
            assert!(!ran.stderr.contains("panicked"), "{format} {args:?}: {}", ran.stderr);
            if format == "plain" {
                assert!(ran.stdout.is_ascii(), "{args:?}: {}", ran.stdout);
                assert!(!ran.stdout.contains('\x1b'), "{args:?}");
            }
            codes.push(ran.code);
        }
        if args.starts_with(&["plan", "follow"]) {
            continue;
        }
        let json = world.run_in("json", &args);
        let yaml = world.run_in("yaml", &args);
        codes.extend([json.code, yaml.code]);
        assert!(codes.iter().all(|code| *code == codes[0]), "{args:?}: {codes:?}");
        let document = crate::world::document(&json, &args);
        let same: Value =
            serde_saphyr::from_str(&yaml.stdout).unwrap_or_else(|e| panic!("{args:?}: {e}\n{}", yaml.stdout));
        assert_eq!(steady(document), steady(same), "{args:?}");
    }
}

/// Without what differs from run to run.
fn steady(mut document: Value) -> Value {
    fn walk(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for key in ["timing", "elapsed", "elapsed_s", "db_size_mb", "created"] {
                    fields.remove(key);
                }
                fields.values_mut().for_each(walk);
            }
            Value::Array(items) => items.iter_mut().for_each(walk),
            _ => {}
        }
    }
    walk(&mut document);
    document
}

#[test]
fn quiet_shows_results_and_no_more_and_leaves_documents_whole() {
    let world = World::registered(&choose_and_edit(0.9));
    for format in ["rich", "table", "color", "plain"] {
        let ran = world.run_in(format, &["--quiet", "resource", "list"]);
        assert!(ran.stdout.contains("local/repo") && !ran.stdout.contains("listed"), "{}", ran.stdout);
        let again = ["-q", "resource", "add", "git-checkout", "local/repo", "--path", "repo", "--update"];
        let hint = world.run_in(format, &again);
        assert!(!hint.stdout.contains("Next Steps") && hint.stdout.contains("local/repo"), "{}", hint.stdout);
        let refused = world.run_in(format, &["-q", "project", "show", "nobody"]);
        assert_eq!(refused.code, Some(1));
        assert!(refused.stdout.contains("nobody"), "{}", refused.stdout);
    }
    let document = world.json(&["--quiet", "resource", "list"]);
    assert_eq!(document["messages"][0]["text"], "1 resource listed");
}

// A definition comes from standard input where its file is called `-`
#[test]
fn definitions_are_read_from_standard_input() {
    let world = World::new();
    let files = [
        (&["action", "create", "--config", "-"][..], crate::world::ACTION),
        (&["lsp", "add", "-c", "-"], "name: local/ruff\nlanguages: [python]\ncommand: sh\n"),
        (&["validation", "add", "-c", "-"], "name: local/tests\ncommand: 'true'\n"),
    ];
    for (args, text) in files {
        let ran = crate::system::answered(&world, text, &[&["--format", "json"], args].concat());
        let document = crate::world::document(&ran, args);
        assert_eq!(document["exit_code"], 0, "{args:?}: {document:#}");
    }
    let big = "#".repeat(2 << 20);
    for (text, words) in [("name: [", "standard input:1"), (&*big, "standard input"), ("", "standard input")]
    {
        let args = ["--format", "json", "action", "create", "--config", "-"];
        let refused = crate::world::document(&crate::system::answered(&world, text, &args), &args);
        assert_eq!(refused["exit_code"], 1, "{refused:#}");
        assert!(refused["error"].to_string().contains(words), "{refused:#}");
    }
}

// CLI-190
#[test]
fn empty_lists_say_what_there_is_none_of() {
    let world = World::new();
    for (args, words) in [
        (["plan", "list"], "No plans found."),
        (["project", "list"], "No projects found."),
        (["resource", "list"], "No resources found."),
        (["action", "list"], "No actions found."),
        (["lsp", "list"], "No LSP servers found."),
    ] {
        let ran = world.run(&args);
        assert_eq!(ran.code, Some(0));
        assert!(ran.stdout.contains(words), "{}", ran.stdout);
    }
}

// PLAN-100: the changes of a plan, or those of a correction
#[test]
fn a_diff_is_of_a_plan_or_of_a_correction() {
    let world = World::new();
    for args in [&["plan", "diff"][..], &["plan", "diff", "01HXM8C2", "--correction", "01HXM9B7"]] {
        let ran = world.run_in("plain", args);
        assert_eq!(ran.code, Some(2), "{args:?}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("agents plan diff --help"), "{args:?}: {}", ran.stdout);
    }
}

// PLAN-019, CLI-013: each line that is about a plan says which, of which tree, and where it stands
#[test]
fn the_log_of_a_worker_names_the_plan_in_every_line() {
    let mut world = World::registered(&choose_and_edit(0.9));
    world.env.insert("CLEVERAGENTS_LOG_LEVEL", "INFO".to_owned());
    let plan = world.plan(&["--automation-profile", "trusted"]);
    world.wait_at(&plan, "execute/complete+apply_approval");
    let log = std::fs::read_to_string(world.data().join("logs/cleveragents.log")).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let Some(span) = line["spans"].as_array().and_then(|s| s.iter().find(|s| s["name"] == "plan")) else {
            continue;
        };
        let ids = (span["plan_id"].as_str(), span["root_plan_id"].as_str(), span.get("parent_plan_id"));
        assert_eq!(ids, (Some(plan.as_str()), Some(plan.as_str()), None), "{line:#}");
        assert_eq!(span["attempt"].as_u64(), Some(1), "{line:#}");
        seen.insert(format!("{}/{}", span["phase"].as_str().unwrap(), span["state"].as_str().unwrap()));
    }
    let places: Vec<&str> = seen.iter().map(String::as_str).collect();
    assert_eq!(
        places,
        ["execute/processing", "execute/queued", "strategize/processing", "strategize/queued"],
        "{log}"
    );
}

// CLI-012, CLI-013
#[test]
fn logs_never_mix_with_output() {
    let world = World::registered(&choose_and_edit(0.9));
    let quiet = world.run_in("json", &["plan", "list"]);
    assert_eq!(quiet.stderr, "");
    assert!(!world.data().join("logs/cleveragents.log").exists());
    let loud = world.run_in("json", &["-vvvvv", "plan", "list"]);
    crate::world::document(&loud, &["plan", "list"]);
    assert!(world.data().join("logs/cleveragents.log").exists());
}
