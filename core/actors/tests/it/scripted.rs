//! The actor that plays a script.

use agents_actors::scripted::Scripted;
use agents_domain::plan::Phase;
use serde_json::{Value, json};

use crate::world::*;

fn script() -> Value {
    let decision = |key: &str, kind: &str| {
        json!({"request": "record_decision", "key": key, "decision_type": kind, "parent": null, "question": "How?",
               "chosen": 0, "alternatives": [{"option": "so"}, {"option": "otherwise"}], "confidence": 0.5,
               "rationale": "it is a script", "reasoning": null, "resources": [], "depends_on": [], "context": null})
    };
    json!({
        "strategize": [{"requests": [decision("s", "strategy_choice")]}],
        "execute": [
            {"requests": [decision("i", "implementation_choice"),
                          {"request": "tool", "call_id": "1", "tool": "builtin/apply-edits", "decision": "i",
                           "args": {"resource": "${resource:local/repo}",
                                    "edits": [{"op": "create", "path": "a.txt", "text": "made\n"}]}}]},
            {"expect": {"observations": [{"observed": "decided"}, {"observed": "tool", "call_id": "1"}],
                        "decisions": [{}, {"key": "s", "chosen_option": "so"}, {"key": "i"}],
                        "files": {"a.txt": "made\n", "b.txt": null}},
             "requests": [{"request": "checkpoint", "decision": "i", "label": "made"}],
             "outcome": {"done": {"headline": "played", "lines": [], "facts": {"n": 1}}}}
        ]
    })
}

#[test]
fn a_script_is_played_to_its_end() {
    let mut engine = Engine::new(World::new(&[], Vec::new()));
    engine.arguments.insert("script".to_owned(), Value::String(script().to_string()));
    let actor = Scripted::from_arguments();
    assert_eq!(engine.run_actor(&actor, Phase::Strategize).unwrap().headline, "played 1 steps");
    let done = engine.run_actor(&actor, Phase::Execute).unwrap();
    assert_eq!((done.headline.as_str(), &done.facts), ("played", &json!({"n": 1})));
    assert_eq!(engine.world.text("a.txt"), "made\n");
    assert_eq!(engine.log, ["decide s", "decide i", "tool 1", "checkpoint i"]);
}

#[test]
fn what_was_not_expected_fails_and_says_what_came() {
    let table = [
        (json!({"expect": {"observations": [{"observed": "tool"}]}}), "observations were expected to be"),
        (
            json!({"expect": {"files": {"a.txt": "x"}}}),
            "file a.txt was expected to be Some(\"x\"), it is None",
        ),
        (json!({"requests": [{"request": "fly"}]}), "the script does not fit"),
        (
            json!({"requests": [{"request": "undo", "decision": "${resource:local/other}"}]}),
            "names no workspace",
        ),
        (
            json!({"fail": {"message": "on purpose", "category": "tool", "transient": true, "hints": []}}),
            "on purpose",
        ),
    ];
    for (step, part) in table {
        let mut engine = Engine::new(World::new(&[], Vec::new()));
        let actor = Scripted::new(json!({"execute": [step]}));
        let error = engine.run_actor(&actor, Phase::Execute).unwrap_err();
        assert!(error.message.contains(part), "{}", error.message);
    }
    let mut engine = Engine::new(World::new(&[], Vec::new()));
    let error = engine.run_actor(&Scripted::from_arguments(), Phase::Execute).unwrap_err();
    assert!(error.message.contains("argument `script`"), "{}", error.message);
}
