//! What a person reads in `plain` is ASCII, whatever our texts are written with. OUT-008, COM-007.

use agents_e2e::World;
use serde_json::json;

use crate::support::{bad_to_good, executed};

#[test]
fn every_view_of_a_plan_is_ascii() {
    let world = World::new();
    // Fixed, only to be suppressed, and without a fix; long lines make the examples cut theirs.
    let suppress = json!({
        "files": ".py", "match": r"\bodd_(\w+)", "code": "F2", "severity": 2, "message": "odd `$1`",
        "fixes": [{ "title": "Ignore F2 for this line", "replace": "odd_$1  # noqa: F2" }],
    });
    let bare =
        json!({ "files": ".py", "match": r"\bbare_(\w+)", "code": "F3", "severity": 1, "message": "bare" });
    world.fake("fake", &json!({ "rules": [bad_to_good(), suppress, bare] }));
    world.fixer();
    let text = format!("x = bad_one{}\ny = odd_two\nz = bare_three\n", " + 1".repeat(60));
    let repo = world.repo_with("repo", &[("a.py", text.as_str())]);
    let plan = executed(&world, &repo);
    let decision = plan.strategy("F1")["decision_id"].as_str().unwrap().to_owned();
    let file = repo.file("a.py").display().to_string();
    let mut views: Vec<Vec<&str>> = ["status", "tree", "diff", "artifacts", "errors", "follow"]
        .iter()
        .map(|verb| plan.args(verb, &[]))
        .collect();
    views.extend([
        vec!["plan", "explain", &decision],
        vec!["plan", "blame", &file],
        vec!["plan", "list"],
        plan.args("apply", &["--yes"]),
    ]);
    for view in views {
        let seen = world.plain(&view);
        assert!(seen.status.success(), "{view:?}: {seen:?}");
        let text = seen.text();
        assert!(text.is_ascii() && !text.is_empty(), "{view:?}:\n{text}");
    }
}
