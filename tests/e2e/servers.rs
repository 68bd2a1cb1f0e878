//! Plans with real language servers, from a finding to a commit.

use agents_e2e::{Repo, World, tools};
use serde_json::{Value, json};

use crate::support::go_on;

fn fixed_world(repo: &str, files: &[(&str, &str)]) -> (World, Repo) {
    let world = World::new();
    world.fixer();
    let repo = world.repo_with(repo, files);
    world.register("app", &repo);
    (world, repo)
}

fn option_with<'v>(decision: &'v Value, words: &str) -> &'v str {
    let alternatives = decision["alternatives"].as_array().expect("alternatives are a list");
    let options = alternatives.iter().filter_map(|alternative| alternative["option"].as_str());
    options
        .into_iter()
        .find(|option| option.contains(words))
        .unwrap_or_else(|| panic!("{words}: {decision:#}"))
}

// PLAN-050, PLAN-101, PLAN-103, APP-002, APP-003, APP-012: from ruff's findings to one commit that names its decisions.
#[test]
fn ruff_findings_are_decided_fixed_and_applied_as_one_commit() {
    let (world, repo) = fixed_world(
        "repo",
        &[
            ("pkg/a.py", "\"\"\"Says hello.\"\"\"\nimport os\nimport sys\n\nprint(f\"😀\", sys.argv)\n"),
            ("pkg/b.py", "import json\r\nimport re\r\n\r\nprint(re)\r\n"),
            ("clean.py", "x = 1\n"),
        ],
    );
    world.real_server("ruff", &["server"], &["python"]);
    let head = repo.head();
    let plan = world.plan("app", "trusted", &[]);
    plan.assert_at("execute/complete+apply_approval");
    assert_eq!((repo.head(), repo.status()), (head.clone(), vec![]), "nothing is applied yet");

    let unused = plan.explain(&plan.strategy("F401"));
    assert!(unused["chosen"].as_str().unwrap().contains("Remove unused import"), "{unused:#}");
    assert!(unused["confidence"].as_f64().unwrap() > 0.9, "{unused:#}");
    assert!(unused["rationale"].as_str().unwrap().contains("preferred"), "{unused:#}");
    let alternatives = unused["alternatives"].as_array().unwrap();
    assert!(alternatives.len() >= 3, "fix, leave alone, suppress: {alternatives:#?}");
    let places: Vec<&str> =
        unused["resources"].as_array().unwrap().iter().filter_map(|r| r["path"].as_str()).collect();
    assert_eq!(places, ["pkg/a.py", "pkg/b.py"]);

    let diff = plan.ok("diff", &[]).data;
    assert_eq!(diff["diff_summary"]["files_changed"], 2, "{diff:#}");
    // The patches are what `git apply` takes, and what apply will make.
    let patches: String =
        diff["files"].as_array().unwrap().iter().filter_map(|f| f["patch"].as_str()).collect();
    let copy = world.path("copy");
    repo.git(&["clone", "-q", ".", copy.to_str().unwrap()]);
    std::fs::write(world.path("all.patch"), &patches).unwrap();
    let copy = Repo::init(&copy);
    copy.git(&["apply", world.path("all.patch").to_str().unwrap()]);

    let applied = plan.apply();
    plan.assert_at("apply/applied");
    assert_eq!(applied.data["lifecycle"]["state"], "applied", "{}", applied.text);
    assert_eq!(repo.text("pkg/a.py"), "\"\"\"Says hello.\"\"\"\nimport sys\n\nprint(\"😀\", sys.argv)\n");
    assert_eq!(repo.text("pkg/b.py"), "import re\r\n\r\nprint(re)\r\n");
    assert_eq!(copy.text("pkg/a.py"), repo.text("pkg/a.py"));
    assert_eq!(copy.text("pkg/b.py"), repo.text("pkg/b.py"));
    assert_eq!(repo.git(&["rev-parse", "HEAD^"]), head);
    assert_eq!((repo.status(), repo.worktrees()), (vec![], 0));
    let message = repo.message();
    assert!(message.contains(&format!("CleverAgents-Plan: {}", plan.id)), "{message}");
    assert!(message.contains("CleverAgents-Decision: "), "{message}");
    assert_eq!(repo.git(&["log", "-1", "--format=%an <%ae>"]), "Ada Example <ada@example.invalid>");
    assert_eq!(plan.records().audit, ["plan_applied"]);

    // The decision behind a line is found after apply, and after a later edit above it.
    repo.write("pkg/a.py", "# a comment\n\"\"\"Says hello.\"\"\"\nimport sys\n\nprint(\"😀\", sys.argv)\n");
    let file = repo.file("pkg/a.py");
    let blame = world.ok(&["plan", "blame", &format!("{}:5", file.display())]).data;
    let segment = &blame["segments"][0];
    assert!(segment["strategy"]["question"].as_str().unwrap().contains("F541"), "{blame:#}");
    let blame = world.ok(&["plan", "blame", &format!("{}:3", file.display())]).data;
    assert_eq!(blame["segments"][0]["deletion"], true, "the removed import is found where it was: {blame:#}");
    world.assert_quiet();
}

// Characters outside the BMP stand before the place that is edited, and the edit is in a file nobody reported.
#[test]
fn a_typescript_fix_edits_another_file_behind_characters_outside_the_bmp() {
    let (world, repo) = fixed_world(
        "repo",
        &[
            (
                "tsconfig.json",
                "{\"compilerOptions\": {\"strict\": true, \"module\": \"esnext\", \"moduleResolution\": \"bundler\", \
                 \"target\": \"es2022\", \"noEmit\": true}, \"include\": [\"src\"]}\n",
            ),
            ("src/a.ts", "import { helper } from './lib';\n/* 😀😀 */ export const used = helper();\n"),
            (
                "src/lib.ts",
                "/* 😀 𝒳 */ function helper(): number { return 1; }\nexport const other = helper();\n",
            ),
        ],
    );
    let library = tools().join("node/node_modules/typescript/lib");
    world.language_server(&json!({
        "name": "local/typescript", "languages": ["typescript"],
        "command": agents_e2e::tool("typescript-language-server"), "args": ["--stdio"],
        "init_options": { "tsserver": { "path": library }, "disableAutomaticTypingAcquisition": true },
    }));
    let plan = world.plan("app", "trusted", &[]);
    plan.assert_at("execute/complete+apply_approval");
    let decision = plan.explain(&plan.strategy("2459"));
    assert!(decision["rationale"].as_str().unwrap().contains("other files"), "{decision:#}");
    plan.apply();
    plan.assert_at("apply/applied");
    let lib = repo.text("src/lib.ts");
    let exported =
        "/* 😀 𝒳 */ export function helper(): number { return 1; }\nexport const other = helper();\n";
    let listed = "/* 😀 𝒳 */ function helper(): number { return 1; }\nexport const other = helper();\nexport { helper };\n";
    assert!(lib == exported || lib == listed, "{lib}");
    assert_eq!(repo.git(&["diff", "--name-only", "HEAD^", "HEAD"]), "src/lib.ts");
    world.assert_quiet();
}

// PROF-002, PLAN-066, PLAN-080 to PLAN-083: two fixes, none better, so a person is asked and chooses by words.
#[test]
fn clangd_offers_two_equal_fixes_and_a_person_chooses() {
    let (world, repo) = fixed_world(
        "repo",
        &[
            ("compile_flags.txt", "-Wall\n"),
            ("a.c", "int f(int a, int b) { if (a = b) { return 1; } return 0; }\n"),
        ],
    );
    world.real_server("clangd", &["--background-index=false"], &["c"]);
    let plan = world.plan("app", "cautious", &[]);
    go_on(&plan);
    plan.assert_at("strategize/processing+decision");
    let status = plan.status();
    assert_eq!(status["awaiting"]["flag"], "edit_code", "{status:#}");
    assert_eq!(status["pending_decisions"], 1);
    assert!(status["awaiting"]["confidence"].as_f64().unwrap() < 0.6, "{status:#}");
    let allowed: Vec<&str> = status["allowed_actions"].as_array().unwrap().iter().map(action_word).collect();
    assert!(allowed.contains(&"prompt") && allowed.contains(&"cancel"), "{allowed:?}");

    let asked = plan.explain(&plan.strategy("-Wparentheses"));
    assert_eq!((&asked["chosen"], &asked["status"]), (&json!("Leave alone"), &json!("pending")), "{asked:#}");
    assert!(asked["rationale"].as_str().unwrap().contains("none stands out"), "{asked:#}");
    let comparison = option_with(&asked, "==").to_owned();
    option_with(&asked, "parentheses");

    // A paused plan goes on only with an answer.
    assert_eq!(plan.refused("execute", &[]).code(), "INVALID_STATE");
    let answered = plan.ok("prompt", &[&comparison]);
    assert_eq!(answered.data["guidance_added"]["option"], json!(comparison), "{}", answered.text);
    go_on(&plan);
    plan.assert_at("execute/complete+apply_approval");
    let decision = plan.strategy("-Wparentheses");
    assert_eq!(decision["type"], "user_intervention");
    plan.apply();
    assert_eq!(repo.text("a.c"), "int f(int a, int b) { if (a == b) { return 1; } return 0; }\n");
    world.assert_quiet();
}

fn action_word(action: &Value) -> &str {
    action["action"]
        .as_str()
        .or_else(|| action["verb"].as_str())
        .or_else(|| action.as_str())
        .unwrap_or_default()
}

#[test]
fn basedpyright_findings_are_never_suppressed_without_a_person_and_the_plan_says_so() {
    let (world, repo) = fixed_world(
        "repo",
        &[
            ("a.py", "from lib import helper\n\nx: int = helper()\nprint(x)\n"),
            ("lib.py", "def helper() -> str:\n    return \"\"\n"),
        ],
    );
    world.real_server("basedpyright-langserver", &["--stdio"], &["python"]);
    let head = repo.head();
    let plan = world.plan("app", "trusted", &[]);
    plan.assert_at("execute/complete+apply_approval");
    let decision = plan.explain(&plan.strategy("reportAssignmentType"));
    assert_eq!(decision["chosen"], "Leave alone", "{decision:#}");
    assert!(decision["rationale"].as_str().unwrap().contains("suppressing hides a finding"), "{decision:#}");
    option_with(&decision, "ignore");
    let told = plan.summary("strategize");
    assert!(told.contains("left alone"), "{told}");
    assert_eq!(plan.ok("diff", &[]).data["diff_summary"]["files_changed"], 0);
    // Nothing to apply is no failure, and makes no commit.
    plan.apply();
    plan.assert_at("apply/applied");
    assert_eq!((repo.head(), repo.status()), (head, vec![]));
    world.assert_quiet();
}
