//! The built-in model actors over an engine in small and a server of models on this machine.

use std::sync::Arc;

use agents_actors::agent::{ModelActor, ModelActorSettings};
use agents_actors::models::{Catalogue, Settings};
use agents_domain::plan::Phase;
use agents_domain::ports::actor::ActorFailure;
use agents_model_server::Server;
use serde_json::{Value, json};

use crate::world::*;

fn actor(server: &Server) -> ModelActor {
    let mut settings = Settings { max_retries: 1, ..Settings::default() };
    settings.keys.insert("provider.openai.api-key".to_owned(), "sk-test-0123456789abcdefghij".to_owned());
    settings.keys.insert("provider.openai.base-url".to_owned(), server.base());
    ModelActor {
        name: "openai/gpt-4.1".to_owned(),
        model: Some("openai/gpt-4.1".to_owned()),
        models: Arc::new(Catalogue::new(settings)),
        settings: ModelActorSettings { max_calls_per_step: 25, ..ModelActorSettings::default() },
    }
}

fn plan() -> Engine {
    let mut engine = Engine::new(World::new(&[("a.py", "x = 1\n")], Vec::new()));
    "Make x two".clone_into(&mut engine.description);
    engine
}

fn decision(key: &str, kind: &str) -> Value {
    json!({"tool": "record_decision", "args": {
        "key": key, "type": kind, "question": "How?", "options": [{"option": "so"}, {"option": "otherwise"}],
        "chosen": "so", "confidence": 0.8, "rationale": "it is simple"}})
}

fn write(text: &str) -> Value {
    json!({"tool": "builtin/apply-edits", "args": {
        "resource": RESOURCE, "decision": "how", "edits": [{"op": "write", "path": "a.py", "content": text}]}})
}

fn finish() -> Value {
    json!({"tool": "finish", "args": {"headline": "Done", "lines": ["a.py: x is two"]}})
}

fn run(replies: Value, phase: Phase, engine: &mut Engine) -> (Result<String, ActorFailure>, Server) {
    let server = Server::start(json!({ "replies": replies }));
    let actor = actor(&server);
    let done = engine.run_actor(&actor, phase).map(|summary| summary.headline);
    (done, server)
}

#[test]
fn a_model_decides_in_one_phase_and_writes_under_its_decision_in_the_next() {
    let mut engine = plan();
    let (done, _) = run(
        json!([{"calls": [decision("s", "strategy_choice")]}, {"when": {"last": "\"chosen\":\"so\""}, "calls": [finish()]}]),
        Phase::Strategize,
        &mut engine,
    );
    assert_eq!(done.unwrap(), "Done");
    let (done, server) = run(
        json!([{"calls": [decision("how", "implementation_choice"), write("x = 2\n")]}, {"calls": [finish()]}]),
        Phase::Execute,
        &mut engine,
    );
    assert_eq!(done.unwrap(), "Done");
    assert_eq!(engine.world.text("a.py"), "x = 2\n");
    assert_eq!(engine.draft("how").parent.as_deref(), Some("s"), "it hangs on the strategy it carries out");
    assert_eq!(engine.log.len(), 3, "{:?}", engine.log);
    let task = server.asked()[0].conversation();
    for part in
        ["# Strategy", "a.py: x is two", "[s] strategy_choice: How? -> so", "a.py (6 bytes)", "Make x two"]
    {
        assert!(task.contains(part), "{part} in {task}");
    }
    let traces = engine.world.traces.lock().unwrap();
    assert_eq!(traces.len(), 4, "OBS-011");
    assert_eq!((traces[3].model.as_str(), traces[3].decision.as_deref()), ("gpt-4.1", Some("how")));
}

// Observations of a step whose request failed: the rest is not run, and the model is told.
#[test]
fn a_failed_call_is_told_and_what_came_after_it_was_not_run() {
    let mut engine = plan();
    let (done, _) = run(
        json!([
            {"calls": [decision("how", "implementation_choice"), {"tool": "builtin/apply-edits", "args": {
                "resource": RESOURCE, "decision": "how", "edits": [{"op": "edit", "path": "none.py", "edits": []}]}}, write("x = 3\n")]},
            {"when": {"contains": ["failed: none.py is not there", "not run, because a call before it failed"]}, "calls": [write("x = 2\n")]},
            {"calls": [finish()]}]),
        Phase::Execute,
        &mut engine,
    );
    assert_eq!(done.unwrap(), "Done");
    assert_eq!(engine.world.text("a.py"), "x = 2\n");
}

// SEC-016: nothing that does not fit is run; each mistake is told in words that help.
#[test]
fn calls_that_do_not_fit_are_answered_and_not_run() {
    let bad_chosen = json!({"tool": "record_decision", "args": {
        "key": "how", "type": "implementation_choice", "question": "How?", "options": [{"option": "a"}], "chosen": "b",
        "confidence": 0.5, "rationale": "r"}});
    let wrong_phase = decision("how", "strategy_choice");
    for (call, told) in [
        (json!({"tool": "fly", "args": {}}), "there is no tool `fly`"),
        (json!({"tool": "finish", "args": {"lines": []}}), "headline"),
        (json!({"tool": "finish", "raw": "{\"headline\": \"x"}), "no JSON object"),
        (bad_chosen, "is none of the `options`"),
        (wrong_phase, "strategy_choice"),
        (write("x = 9\n"), "there is no decision `how`"),
        (
            json!({"tool": "record_decision", "args": {"key": "guard/x", "type": "implementation_choice", "question": "Q?",
            "options": [{"option": "a"}], "chosen": "a", "confidence": 0.5, "rationale": "r"}}),
            "not yours to give",
        ),
    ] {
        let mut engine = plan();
        let (done, _) = run(
            json!([{"calls": [call]}, {"when": {"last": told}, "calls": [finish()]}]),
            Phase::Execute,
            &mut engine,
        );
        assert_eq!(done.unwrap_or_else(|f| panic!("{told}: {f:?}")), "Done");
        assert_eq!(engine.world.text("a.py"), "x = 1\n");
        assert!(engine.log.is_empty(), "{:?}", engine.log);
    }
}

#[test]
fn a_model_that_only_talks_is_told_once_and_then_fails_and_one_that_worked_may_end_so() {
    let mut engine = plan();
    let (done, server) =
        run(json!([{"text": "I would do this."}, {"text": "And that."}]), Phase::Strategize, &mut engine);
    let failure = done.unwrap_err();
    assert!(failure.message.contains("talks and does nothing") && !failure.transient, "{failure}");
    assert_eq!(server.asked().len(), 2);
    let (done, _) = run(
        json!([{"calls": [decision("s", "strategy_choice")]}, {"text": "That is it."}, {"text": "All decided.\nOne thing."}]),
        Phase::Strategize,
        &mut plan(),
    );
    assert_eq!(done.unwrap(), "All decided.");
}

#[test]
fn the_same_call_again_and_again_ends() {
    let same = json!({"tool": "record_decision", "args": {"key": "x"}});
    let replies: Vec<Value> = (0..6).map(|_| json!({"calls": [same]})).collect();
    let (done, server) = run(json!(replies), Phase::Strategize, &mut plan());
    assert!(done.unwrap_err().message.contains("again and again"));
    assert!(server.asked()[5].conversation().contains("3 times in a row"));
}

#[test]
fn finish_waits_for_the_results_of_calls_beside_it() {
    let (done, server) = run(
        json!([{"calls": [decision("s", "strategy_choice"), finish()]}, {"when": {"contains": ["then call this alone"]}, "calls": [finish()]}]),
        Phase::Strategize,
        &mut plan(),
    );
    assert_eq!(done.unwrap(), "Done");
    server.assert_all_used();
}

// A person's answer in place of the proposal is what the model goes on with.
#[test]
fn an_answer_of_a_person_is_what_stands() {
    let mut engine = plan();
    engine.answer = Box::new(|draft| (draft.key == "s").then(|| "Quite differently".to_owned()));
    let (done, _) = run(
        json!([{"calls": [decision("s", "strategy_choice")]}, {"when": {"last": "Quite differently"}, "calls": [finish()]}]),
        Phase::Strategize,
        &mut engine,
    );
    assert_eq!(done.unwrap(), "Done");
}

#[test]
fn a_conversation_that_is_too_long_loses_its_oldest_results_and_goes_on() {
    let mut engine = plan();
    let long = format!("x = 2\n# {}\n", "y".repeat(3000));
    let (done, server) = run(
        json!([
            {"calls": [decision("how", "implementation_choice"), write(&long)]},
            {"calls": [write("x = 2\n")]},
            {"fault": {"too_long": true}},
            {"when": {"contains": ["earlier turns are left out"]}, "calls": [finish()]},
            {"calls": [finish()]}]),
        Phase::Execute,
        &mut engine,
    );
    assert_eq!(done.unwrap(), "Done");
    let asked = server.asked();
    let (before, after) = (asked[2].body.to_string().len(), asked[3].body.to_string().len());
    assert!(after < before, "{after} < {before}");
    assert!(asked[3].conversation().contains("Make x two"), "the task stays");
}

#[test]
fn too_many_calls_of_one_turn_are_not_run() {
    let server = Server::start(json!({"replies": [
        {"calls": [decision("a", "strategy_choice"), decision("b", "strategy_choice"), decision("c", "strategy_choice")]},
        {"when": {"contains": ["more than 2 calls in one turn"]}, "calls": [finish()]}]}));
    let mut actor = actor(&server);
    actor.settings.max_calls_per_step = 2;
    let mut engine = plan();
    engine.run_actor(&actor, Phase::Strategize).unwrap();
    assert_eq!(engine.log, ["decide a", "decide b"]);
}

// ACTOR-027
#[test]
fn arguments_of_the_plan_change_the_request() {
    let mut engine = plan();
    for (name, value) in [
        ("temperature", json!(0.3)),
        ("max_tokens", json!(500)),
        ("system_prompt", json!("Speak like a pirate.")),
    ] {
        engine.arguments.insert(name.to_owned(), value);
    }
    let (done, server) = run(json!([{"calls": [finish()]}]), Phase::Strategize, &mut engine);
    done.unwrap();
    let asked = &server.asked()[0];
    assert_eq!((&asked.body["temperature"], &asked.body["max_tokens"]), (&json!(0.3), &json!(500)));
    assert!(asked.conversation().contains("Speak like a pirate."));
    let mut wrong = plan();
    wrong.arguments.insert("temperature".to_owned(), json!(2.1));
    let (done, _) = run(json!([]), Phase::Strategize, &mut wrong);
    assert!(done.unwrap_err().message.contains("from 0 to 2"));
}

#[test]
fn a_plan_that_stops_breaks_the_question_off_and_loses_nothing() {
    let server = Server::start(json!({"replies": [{"barrier": "held", "text": "too late"}]}));
    let actor = actor(&server);
    let engine = plan();
    engine.world.stop_in.store(2, std::sync::atomic::Ordering::SeqCst);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let input = engine.input(Phase::Strategize);
    let output =
        runtime.block_on(agents_domain::ports::actor::Actor::step(&actor, input, &engine.world)).unwrap();
    assert!(output.state.is_null() && output.requests.is_empty());
}
