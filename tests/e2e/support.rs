//! What several groups of tests need.

use agents_e2e::{PlanHandle, Repo, World};
use serde_json::{Value, json};

/// One rule with one preferred fix: `bad_x` becomes `good_x`.
pub fn bad_to_good() -> Value {
    json!({
        "files": ".py", "match": r"\bbad_(\w+)", "code": "F1", "severity": 2, "message": "bad $1", "data": { "id": 1 },
        "fixes": [{ "title": "Make `$1` good", "replace": "good_$1", "preferred": true }],
    })
}

/// A world whose only server turns `bad_x` into `good_x`, with the fixer's action.
pub fn world_with_fake() -> World {
    let world = World::new();
    world.fake("fake", &json!({ "rules": [bad_to_good()] }));
    world.fixer();
    world
}

/// Registers a repository as `local/app` and plans on it up to the changes that wait to be applied.
pub fn executed<'w>(world: &'w World, repo: &Repo) -> PlanHandle<'w> {
    world.register("app", repo);
    let plan = world.plan("app", "trusted", &[]);
    plan.assert_at("execute/complete+apply_approval");
    plan
}

/// Goes on over the pauses between phases until the plan waits for something else, or ends.
pub fn go_on(plan: &PlanHandle<'_>) {
    for _ in 0..4 {
        let at = plan.at();
        if !at.ends_with("+confirm_strategize") && !at.ends_with("+execute_approval") {
            return;
        }
        plan.call("execute", &[]);
    }
}
