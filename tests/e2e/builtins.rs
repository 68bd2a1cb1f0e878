//! The built-in actors other than the fixer, through the binary.

use agents_e2e::{PlanHandle, Repo, World};
use serde_json::{Value, json};

use crate::support::{bad_to_good, executed, go_on};

/// A second rule, so that a plan has two decisions to take back.
fn ugly_to_nice() -> Value {
    json!({
        "files": ".py", "match": r"\bugly_(\w+)", "code": "F2", "severity": 2, "message": "ugly $1", "data": { "id": 2 },
        "fixes": [{ "title": "Make `$1` nice", "replace": "nice_$1", "preferred": true }],
    })
}

const BEFORE: &str = "x = bad_one\ny = 2\nz = ugly_two\n\n\ndef later():\n    return 1\n";

/// A repository on which a plan of two decisions was applied.
fn applied(world: &World) -> (Repo, PlanHandle<'_>) {
    world.fake("fake", &json!({ "rules": [bad_to_good(), ugly_to_nice()] }));
    world.fixer();
    let repo = world.repo_with("repo", &[("a.py", BEFORE), ("b.py", "b = bad_b\r\n")]);
    let plan = executed(world, &repo);
    plan.apply();
    assert_eq!(repo.text("a.py"), "x = good_one\ny = 2\nz = nice_two\n\n\ndef later():\n    return 1\n");
    (repo, plan)
}

fn revert<'w>(world: &'w World, plan: &PlanHandle<'_>, more: &[&str]) -> PlanHandle<'w> {
    let mut args = vec!["plan", "revert", &plan.id];
    args.extend(more);
    let made = world.call(&args);
    PlanHandle::new(world, made.data["plan_id"].as_str().unwrap_or_else(|| panic!("{}", made.text)))
}

// PLAN-008, PLAN-012, DEC-005, DEC-016: an applied plan is taken back by a plan; what was changed since stays.
#[test]
fn an_applied_plan_is_taken_back_and_later_work_stays() {
    let world = World::new();
    let (repo, plan) = applied(&world);
    repo.write("a.py", repo.text("a.py").replace("return 1", "return 2"));
    repo.commit("later");
    let back = revert(&world, &plan, &["--automation-profile", "trusted"]);
    back.assert_at("execute/complete+apply_approval");
    assert_eq!(back.decisions_of("strategy_choice").len(), 2, "one for each decision that wrote");
    let explained = back.explain(&back.decisions_of("implementation_choice")[0]);
    let told = explained["question"].as_str().unwrap();
    assert!(told.contains(&plan.id), "{told}");
    back.apply();
    assert_eq!(repo.text("a.py"), BEFORE.replace("return 1", "return 2"));
    assert_eq!(repo.text("b.py"), "b = bad_b\r\n");

    // Who asks about the line finds that it was taken back, and from which plan.
    let blame = world.ok(&["plan", "blame", &format!("{}:1", repo.file("a.py").display())]).data;
    let segment = &blame["segments"][0];
    assert_eq!(segment["plan_id"].as_str().unwrap_or(&back.id), back.id, "{blame:#}");
    assert!(blame.to_string().contains(&plan.id), "{blame:#}");

    // A second time there is nothing left, and that is said.
    let again = revert(&world, &plan, &["--automation-profile", "trusted"]);
    go_on(&again);
    assert!(again.summary("strategize").contains("Nothing of plan"), "{}", again.summary("strategize"));
    assert_eq!(again.ok("diff", &[]).data["diff_summary"]["files_changed"], 0);
    world.assert_quiet();
}

// DEC-015: where the plan's own lines were changed since, a person is asked, and the answer is what happens.
#[test]
fn where_later_work_is_in_the_same_lines_a_person_chooses() {
    for (answer, expected) in [
        ("Keep today's lines and take back the rest", "x = good_one + 1\ny = 2\nz = ugly_two\n"),
        ("Put back what was there before", "x = bad_one\ny = 2\nz = ugly_two\n"),
        ("Leave alone", "x = good_one + 1\ny = 2\nz = ugly_two\n"),
    ] {
        let world = World::new();
        let (repo, plan) = applied(&world);
        repo.write("a.py", repo.text("a.py").replace("good_one", "good_one + 1"));
        repo.commit("later");
        let back = revert(&world, &plan, &["--automation-profile", "cautious"]);
        let mut asked = Vec::new();
        for _ in 0..12 {
            go_on(&back);
            let awaiting = back.status()["awaiting"].clone();
            let Some(options) = awaiting["options"].as_array().filter(|_| awaiting["kind"] == "decision")
            else {
                break;
            };
            asked.push(awaiting["question"].as_str().unwrap().to_owned());
            let is_conflict = options.iter().any(|option| option == "Put back what was there before");
            let wanted = options.iter().any(|option| option == answer);
            let say = if is_conflict && wanted {
                answer
            } else if is_conflict {
                "Leave alone"
            } else {
                "1"
            };
            back.ok("prompt", &[say]);
        }
        assert!(asked.iter().any(|question| question.contains("a.py (line 1)")), "{asked:#?}");
        back.assert_at("execute/complete+apply_approval");
        back.apply();
        let text = repo.text("a.py");
        assert!(text.starts_with(expected), "{answer}: {text} {asked:#?}");
        assert_eq!(repo.text("b.py"), "b = bad_b\r\n");
    }
}

#[test]
fn one_decision_is_taken_back_alone_and_what_cannot_be_is_refused_by_name() {
    let world = World::new();
    let (repo, plan) = applied(&world);
    let strategy = plan.strategy("F2");
    let id = strategy["decision_id"].as_str().unwrap();
    let back = revert(&world, &plan, &["--decision", id, "--automation-profile", "trusted"]);
    back.assert_at("execute/complete+apply_approval");
    let refused = world.refused(&["plan", "revert", &back.id]);
    assert!(refused.words().contains("is not applied"), "{}", refused.text);
    back.apply();
    assert_eq!(repo.text("a.py"), BEFORE.replace("bad_one", "good_one"));
    let refused = world.refused(&["plan", "revert", &back.id, "--decision", id]);
    assert!(refused.words().contains(&format!("not of plan {}", back.id)), "{}", refused.text);
    let refused = world.refused(&["action", "archive", "builtin/revert-plan"]);
    assert!(refused.words().contains("comes with the program"), "{}", refused.text);
    let listed = world.ok(&["action", "list", "--namespace", "builtin"]).data;
    assert!(listed.to_string().contains("builtin/revert-plan"), "{listed:#}");
}

/// A plan of a built-in action.
fn built_in<'w>(world: &'w World, action: &str, more: &[&str]) -> PlanHandle<'w> {
    let mut args = vec!["plan", "use", action, "local/app", "--automation-profile", "trusted"];
    args.extend(more);
    let made = world.call(&args);
    PlanHandle::new(world, made.data["plan_id"].as_str().unwrap_or_else(|| panic!("{}", made.text)))
}

#[test]
fn ruff_formats_and_orders_imports_and_leaves_line_endings_and_other_encodings() {
    let world = World::new();
    let repo = world.repo_with(
        "repo",
        &[
            ("src/a.py", "import sys\nimport os\nx = {  'a':1 }\nprint(os, sys, x)\n"),
            ("src/b.py", "import sys\r\nimport os\r\n\r\nprint(os, sys)\r\n"),
            ("other/c.py", "x   =   1\n"),
            ("clean.py", "x = 1\n"),
        ],
    );
    repo.write("src/latin.py", b"# -*- coding: latin-1 -*-\nimport sys\nimport os\nx   = '\xe9'\n");
    repo.commit("latin");
    world.register("app", &repo);
    world.real_server("ruff", &["server"], &["python"]);
    let latin = repo.read("src/latin.py");

    let plan = built_in(&world, "builtin/organize-imports", &[]);
    plan.assert_at("execute/complete+apply_approval");
    let decisions = plan.decisions_of("strategy_choice");
    assert_eq!(decisions.len(), 1, "one per server: {decisions:#?}");
    plan.apply();
    assert!(repo.text("src/a.py").starts_with("import os\nimport sys\n"), "{}", repo.text("src/a.py"));
    assert_eq!(repo.text("src/b.py"), "import os\r\nimport sys\r\n\r\nprint(os, sys)\r\n");

    let plan = built_in(&world, "builtin/format", &["--arg", "paths=src/"]);
    plan.assert_at("execute/complete+apply_approval");
    plan.apply();
    assert!(repo.text("src/a.py").contains("x = {\"a\": 1}\n"), "{}", repo.text("src/a.py"));
    assert_eq!(repo.text("other/c.py"), "x   =   1\n", "left out by the argument");
    assert_eq!(repo.read("src/latin.py"), latin, "a file that is not UTF-8 stays");

    // What is in order already ends with nothing to apply, and says so.
    let again = built_in(&world, "builtin/format", &["--arg", "paths=src/"]);
    go_on(&again);
    assert!(again.summary("strategize").contains("Nothing to format"), "{}", again.summary("strategize"));
    assert_eq!(again.ok("diff", &[]).data["diff_summary"]["files_changed"], 0);
    world.assert_quiet();
}

#[test]
fn a_server_that_does_not_format_is_said_and_not_asked() {
    let world = World::new();
    world.fake("fake", &json!({ "rules": [bad_to_good()] }));
    let repo = world.repo_with("repo", &[("a.py", "x  =  bad_one\n")]);
    world.register("app", &repo);
    let plan = built_in(&world, "builtin/format", &[]);
    go_on(&plan);
    let told = plan.summary("strategize");
    assert!(told.contains("No language server was found that can format"), "{told}");
    assert_eq!(repo.text("a.py"), "x  =  bad_one\n");
}

#[test]
fn basedpyright_renames_across_files_and_a_name_of_several_is_asked_about() {
    let world = World::new();
    let shop = "class Cart:\n    def total(self):\n        \"\"\"The total.\"\"\"\n        return 1\n\n\ndef total():\n    return 2\n";
    let repo = world.repo_with(
        "repo",
        &[("shop.py", shop), ("use.py", "from shop import Cart, total\n\nprint(Cart().total(), total())\n")],
    );
    world.register("app", &repo);
    world.real_server("basedpyright-langserver", &["--stdio"], &["python"]);

    // Two are called so: nothing is guessed.
    let names = ["--arg", "symbol=total", "--arg", "new_name=grand_total"];
    let plan = built_in(&world, "builtin/rename-symbol", &names);
    go_on(&plan);
    let decision = plan.explain(&plan.decisions_of("strategy_choice")[0]);
    assert_eq!(decision["chosen"], "Leave alone", "{decision:#}");
    assert_eq!(decision["alternatives"].as_array().unwrap().len(), 3, "{decision:#}");
    assert_eq!(plan.ok("diff", &[]).data["diff_summary"]["files_changed"], 0);

    let names = ["--arg", "symbol=Cart.total", "--arg", "new_name=grand_total"];
    let plan = built_in(&world, "builtin/rename-symbol", &names);
    plan.assert_at("execute/complete+apply_approval");
    assert!(plan.summary("execute").contains("The word stays"), "{}", plan.summary("execute"));
    plan.apply();
    assert_eq!(repo.text("shop.py"), shop.replacen("def total", "def grand_total", 1));
    assert_eq!(repo.text("use.py"), "from shop import Cart, total\n\nprint(Cart().grand_total(), total())\n");
    world.assert_quiet();
}
