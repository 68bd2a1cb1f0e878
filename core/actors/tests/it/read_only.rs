//! What must not be changed is looked at, reported and left alone. PLAN-018, C-05.

use agents_domain::plan::Phase;
use serde_json::json;

use crate::world::*;

/// What a plan did to files, as far as the engine was asked.
fn writes(engine: &Engine) -> Vec<&String> {
    engine.log.iter().filter(|entry| !entry.starts_with("decide ")).collect()
}

#[test]
fn a_read_only_plan_reports_what_it_finds_and_changes_nothing() {
    for by_action in [true, false] {
        let mut world = World::new(&[("a.py", "import os\n"), ("b.py", "x = 1\n")], vec![ruff()]);
        world.workspaces[0].read_only = !by_action;
        let mut engine = Engine::new(world);
        engine.read_only = by_action;
        let (strategy, done) = engine.both();
        assert!(engine.log.is_empty(), "{:?}", engine.log);
        assert_eq!(engine.world.text("a.py"), "import os\n");
        let headline = "1 finding of 1 rule in 1 file: 1 kind is in what is read-only";
        assert_eq!(strategy.headline, headline);
        assert_eq!(
            strategy.lines[0],
            "F401 from local/ruff (imported but unused): 1 finding in 1 file; left alone, local/repo is read-only; \
             “Ruff (F401): Remove unused import: `os`” would fix it"
        );
        let whole = "The plan is read-only: it reports what it finds and changes nothing";
        assert_eq!(strategy.lines.iter().any(|line| line == whole), by_action, "{:?}", strategy.lines);
        assert_eq!((&strategy.facts["findings"], &strategy.facts["files"]), (&json!(1), &json!(2)));
        assert_eq!(done.headline, "No finding fixed: 1 read-only");
        assert_eq!(
            done.lines,
            [
                "Left: 1 finding in local/repo, which is read-only",
                "Nothing was changed; applying the plan ends it and changes nothing",
            ]
        );
        assert_eq!((&done.facts["left"], &done.facts["files_changed"]), (&json!(1), &json!([])));
    }
}

#[test]
fn of_two_resources_only_the_one_that_may_be_changed_is() {
    let world = World::new(&[("a.py", "import os\n")], vec![ruff()])
        .beside("local/lib", &[("a.py", "import re\n"), ("c.py", "import json\nimport abc\n")]);
    let mut engine = Engine::new(world);
    let (strategy, done) = engine.both();
    assert_eq!(engine.drafts[0].key, "strategy/local/repo/local/ruff/F401");
    assert!(engine.drafts.iter().all(|draft| !draft.key.contains("local/lib")));
    assert_eq!(
        strategy.headline,
        "4 findings of 2 rules in 3 files: 1 kind will be fixed, 1 kind is in what is read-only"
    );
    let said = "local/lib is read-only: what is found there is reported and not changed".to_owned();
    assert!(strategy.lines.contains(&said), "{:?}", strategy.lines);
    assert_eq!(engine.world.text("a.py"), "");
    assert_eq!(writes(&engine).len(), 2, "{:?}", engine.log);
    assert_eq!(done.headline, "Fixed 1 of 4 findings in 1 file: 3 read-only");
    assert!(done.lines.contains(&"Left: 3 findings in local/lib, which is read-only".to_owned()));
}

// A resource that was linked read-only after Strategize decided about it.
#[test]
fn what_became_read_only_is_left_alone() {
    let mut engine = engine(&[("a.py", "import os\n")], vec![ruff()]);
    engine.run(Phase::Strategize).unwrap();
    engine.world.workspaces[0].read_only = true;
    let done = engine.run(Phase::Execute).unwrap();
    assert_eq!(writes(&engine), Vec::<&String>::new());
    assert_eq!(done.facts["groups"][0]["outcome"], "left_alone");
    assert!(done.lines[0].contains("local/repo must not be changed"), "{:?}", done.lines);
}

#[test]
fn nothing_found_in_what_is_read_only_is_said_so() {
    let mut engine = engine(&[("a.py", "x = 1\n")], vec![ruff()]);
    engine.read_only = true;
    let (strategy, done) = engine.both();
    assert_eq!(strategy.headline, "Nothing found in 1 file");
    assert_eq!(done.headline, "There was nothing to fix");
}
