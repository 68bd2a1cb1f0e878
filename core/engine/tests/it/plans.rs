//! What a plan is made of, and how plans are listed and explained.

use std::sync::Arc;

use agents_actors::scripted::Scripted;
use agents_config::{Config, Parts as ConfigParts};
use agents_domain::ErrorKind;
use agents_domain::ports::actor::Actor;
use agents_engine::{Engine, Parts};
use agents_store::SqliteStore;
use serde_json::{Value, json};

use crate::harness::{Asked, Bench, Cast, NoServers, git};
use crate::lifecycle::choose_and_edit;

const TEMPLATED: &str = "name: local/rename\ndescription: Rename {{ from }} to {{ to }}\n\
    definition_of_done: No {{ from }} is left\nstrategy_actor: local/scripted\nexecution_actor: local/scripted\n\
    automation_profile: manual\ninvariants: [Keep the tests]\n\
    arguments:\n  - {name: from, type: string, required: true}\n  - {name: to, type: string, default: new}\n";

fn actor() -> Arc<dyn Actor> {
    let done = |headline: &str| json!({ "done": { "headline": headline, "lines": [], "facts": null } });
    let script = json!({
        "strategize": [{ "outcome": done("decided") }], "execute": [{ "outcome": done("did it") }],
    });
    Arc::new(Scripted::new(serde_json::from_value(script).unwrap()))
}

fn bench() -> Bench {
    let bench = Bench::new(&[("a.txt", "one\n")], &[("local/scripted", actor()), ("local/other", actor())]);
    bench.action("local/do", "local/scripted", "local/scripted", "");
    bench.ok("registry/action/create", json!({ "config": "rename.yaml", "text": TEMPLATED }));
    bench
}

/// Another engine on the same data, with the configuration file of this text.
fn with_config(bench: &Bench, text: &str) -> Engine {
    let data_dir = bench.dir.path().join("data");
    let path = data_dir.join("config.toml");
    let env = |_: &str| None;
    let flags = vec![("core.data-dir", data_dir.display().to_string())];
    let file = Some(agents_config::ConfigFile { path, text: text.to_owned() });
    let cast = [("local/scripted".to_owned(), actor()), ("local/other".to_owned(), actor())];
    Engine::new(Parts {
        store: Arc::new(SqliteStore::open(&data_dir, agents_store::Options::default()).unwrap()),
        actors: Arc::new(Cast(cast.into())),
        language_servers: Arc::new(NoServers),
        spawner: Arc::new(Asked::default()),
        config: Arc::new(Config::load(ConfigParts { flags, env: &env, file }).unwrap()),
        data_dir,
        user: "tester".to_owned(),
    })
}

// PLAN-034, DEC-023: arguments are put into what the actor is told; the root decision is that text
#[test]
fn arguments_are_put_into_the_description_and_the_root_decision() {
    let bench = bench();
    let made = bench
        .ok("plan/use", json!({ "action": "rename", "projects": ["app"], "arguments": { "from": "old" } }));
    let plan = made["plan_id"].clone();
    assert_eq!(made["arguments"], json!({ "from": "old", "to": "new" }));
    let status = bench.ok("plan/status", json!({ "plan": plan }));
    assert_eq!(status["description"], "Rename old to new");
    assert_eq!(status["definition_of_done"], "No old is left");
    let tree = bench.ok("plan/tree", json!({ "plan": plan }));
    assert_eq!(
        (&tree["tree"]["type"], &tree["tree"]["chosen"]),
        (&json!("prompt_definition"), &json!("Rename old to new"))
    );
}

// PLAN-038, ACT-006, ACTION-005: one action, many projects; overrides and invariants are said
#[test]
fn a_plan_on_many_projects_says_all_it_was_made_with() {
    let bench = bench();
    bench.ok("registry/project/create", json!({ "name": "docs", "resources": ["repo"] }));
    let made = bench.ok(
        "plan/use",
        json!({
            "action": "rename", "projects": ["app", "docs"], "arguments": { "from": "old", "to": "young" },
            "strategy_actor": "local/other", "invariants": ["Be quick"],
        }),
    );
    assert_eq!(
        made["target_projects"],
        json!([
            { "name": "local/app", "resources": ["local/repo"] },
            { "name": "local/docs", "resources": ["local/repo"] },
        ])
    );
    assert_eq!(
        made["actor_overrides"],
        json!({ "strategy": "local/other", "execution": null, "estimation": null, "invariant": null })
    );
    assert_eq!(made["actors"]["execution"], "local/scripted");
    assert_eq!(made["arguments"]["to"], "young");
    let texts: Vec<&str> =
        made["invariants"].as_array().unwrap().iter().filter_map(|i| i["text"].as_str()).collect();
    assert_eq!(texts, ["Keep the tests", "Be quick"]);
    let shown = bench.ok("registry/action/show", json!({ "name": "rename" }));
    assert!(shown.get("project").is_none() && shown.get("projects").is_none(), "{shown}");
}

// APP-013: a resource that two projects share has one sandbox, and one commit
#[test]
fn a_shared_resource_has_one_sandbox_and_one_commit() {
    let actor: Arc<dyn Actor> = Arc::new(Scripted::new(choose_and_edit()));
    let bench = Bench::new(&[("a.txt", "one\ntwo\nthree\n")], &[("local/scripted", actor)]);
    bench.action("local/do", "local/scripted", "local/scripted", "");
    bench.ok("registry/project/create", json!({ "name": "docs", "resources": ["repo"] }));
    let made = bench.ok(
        "plan/use",
        json!({ "action": "do", "projects": ["app", "docs"], "automation_profile": "full-auto" }),
    );
    let plan = made["plan_id"].as_str().unwrap();
    bench.work(plan);
    assert_eq!(bench.at(plan), "apply/applied");
    let all = bench.ok("events/after", json!({ "sequence": 0, "plan": plan }));
    let of =
        |kind: &str| all["events"].as_array().unwrap().iter().filter(|e| e["event_type"] == kind).count();
    assert_eq!((of("sandbox.created"), of("sandbox.committed")), (1, 1));
    assert_eq!(git(&bench.repo(), &["rev-list", "--count", "HEAD"]), "2");
}

// PLAN-040, PROF-023: the strongest level names the profile
#[test]
fn the_profile_of_a_plan_is_that_of_the_strongest_level() {
    let bench = bench();
    let made = |config: &str, action: &str, flag: Option<&str>| {
        let params = json!({
            "action": action, "projects": ["app"], "automation_profile": flag, "arguments":
            if action == "rename" { json!({ "from": "old" }) } else { json!({}) },
        });
        let made = with_config(&bench, config).call_json("plan/use", params).unwrap();
        let automation = &made["automation"];
        format!("{} by {}", automation["profile"].as_str().unwrap(), automation["source"].as_str().unwrap())
    };
    let global = "[core]\nautomation-profile = \"cautious\"\n";
    let project = format!("{global}[project.\"local/app\"]\n\"core.automation-profile\" = \"review\"\n");
    assert_eq!(made("", "do", None), "supervised by default");
    assert_eq!(made(global, "do", None), "cautious by global");
    assert_eq!(made(&project, "do", None), "review by project");
    assert_eq!(made(&project, "rename", None), "manual by action");
    assert_eq!(made(&project, "rename", Some("trusted")), "trusted by CLI flag");
}

// PROF-024: what a profile or the configuration says later changes no plan
#[test]
fn the_profile_is_locked_when_the_plan_is_made() {
    let bench = bench();
    let made = bench.ok("plan/use", json!({ "action": "do", "projects": ["app"] }));
    let plan = json!({ "plan": made["plan_id"] });
    let before = bench.ok("plan/status", plan.clone());
    let later = with_config(&bench, "[core]\nautomation-profile = \"full-auto\"\n");
    let after = later.call_json("plan/status", plan).unwrap();
    assert_eq!((&before["automation"], &after["automation"]), (&json!("supervised"), &json!("supervised")));
}

// PLAN-020, PLAN-021, PLAN-023, PLAN-025
#[test]
fn plans_are_listed_by_every_filter_at_once() {
    let bench = bench();
    bench.ok("registry/project/create", json!({ "name": "docs", "resources": ["repo"] }));
    let empty = bench.ok("plan/list", json!({}));
    assert_eq!((&empty["plans"], &empty["total"]), (&json!([]), &json!(0)));
    assert!(empty.get("filters").is_none(), "no filter was given");

    let cancelled = bench.plan("local/do", "manual");
    bench.ok("plan/cancel", json!({ "plan": cancelled }));
    let applied = bench.plan("local/do", "full-auto");
    let made = bench
        .ok("plan/use", json!({ "action": "rename", "projects": ["docs"], "arguments": { "from": "x" } }));
    let waiting = made["plan_id"].as_str().unwrap();

    let ids = |params: Value| -> Vec<String> {
        let found = bench.ok("plan/list", params);
        found["plans"].as_array().unwrap().iter().map(|p| p["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(json!({})), [waiting, applied.as_str(), cancelled.as_str()], "newest first");
    assert_eq!(ids(json!({ "state": "applied" })), [applied.as_str()]);
    assert_eq!(ids(json!({ "phase": "strategize", "state": "cancelled" })), [cancelled.as_str()]);
    assert_eq!(ids(json!({ "action": "do", "project": "app", "state": "cancelled" })), [cancelled.as_str()]);
    assert_eq!(ids(json!({ "action": "do", "project": "docs" })), [""; 0]);
    assert_eq!(ids(json!({ "state": "awaiting" })), [waiting]);
    assert_eq!(ids(json!({ "state": "paused" })), ids(json!({ "state": "awaiting_input" })));
    assert_eq!(ids(json!({ "state": "failed" })), [""; 0]);
    for pattern in ["local/rename", "local/docs", waiting] {
        assert_eq!(ids(json!({ "pattern": format!("^{pattern}$") })), [waiting], "{pattern}");
    }

    let found = bench.ok("plan/list", json!({ "project": "app" }));
    assert_eq!(
        found["filters"],
        json!({
            "phase": null, "state": null, "project": "app", "action": null, "namespace": null, "pattern": null,
        })
    );
    assert_eq!(
        found["summary"],
        json!({
            "total": 2, "processing": 0, "completed": 1, "errored": 0, "cancelled": 1, "awaiting": 0,
        })
    );
    let elapsed = found["plans"][0]["elapsed"].as_str().unwrap();
    assert!(elapsed.len() == 8 && elapsed.starts_with("00:0"), "{elapsed}");
    for (filter, allowed) in [("phase", "strategize"), ("state", "applied")] {
        let error = bench.err("plan/list", json!({ filter: "nothing" }));
        assert_eq!(error.kind, ErrorKind::Usage);
        assert!(error.message.contains(allowed), "{}", error.message);
    }
    assert_eq!(bench.err("plan/list", json!({ "pattern": "(" })).kind, ErrorKind::Usage);
}

// PLAN-061: a word per state
#[test]
fn progress_says_how_far_each_phase_is() {
    let bench = bench();
    let words = |plan: &str| -> Vec<String> {
        let status = bench.status(plan);
        let steps = status["progress"].as_array().unwrap();
        steps.iter().map(|s| s["status"].as_str().unwrap().to_owned()).collect()
    };
    let waits =
        bench.ok("plan/use", json!({ "action": "do", "projects": ["app"], "automation_profile": "manual" }));
    let waits = waits["plan_id"].as_str().unwrap();
    assert_eq!(words(waits), ["paused", "waiting", "waiting"]);
    bench.ok("plan/cancel", json!({ "plan": waits }));
    assert_eq!(words(waits), ["skipped", "skipped", "skipped"]);
    let queued = bench
        .ok("plan/use", json!({ "action": "do", "projects": ["app"], "automation_profile": "full-auto" }));
    let queued = queued["plan_id"].as_str().unwrap();
    assert_eq!(words(queued), ["queued", "waiting", "waiting"]);
    bench.work(queued);
    assert_eq!(words(queued), ["done", "done", "committed"]);
}

// CKPT-011: what a plan may do is read from its record, by any process
#[test]
fn another_process_knows_what_was_applied() {
    let bench = bench();
    let plan = bench.plan("local/do", "full-auto");
    let refused = with_config(&bench, "").call_json("plan/apply", json!({ "plan": plan })).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::InvalidState);
    let refused = with_config(&bench, "").call_json("plan/cancel", json!({ "plan": plan })).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::InvalidState);
}

// SBX-004, CONF-022: a worker that was killed after Apply leaves its sandbox; whoever looks next removes it
#[test]
fn what_a_killed_worker_left_of_an_applied_plan_goes_when_somebody_looks() {
    let bench = bench();
    let manual = Bench { engine: with_config(&bench, "[sandbox]\ncleanup = \"manual\"\n"), ..bench };
    let plan = manual.plan("local/do", "full-auto");
    assert_eq!(manual.at(&plan), "apply/applied");
    let sandbox = manual.dir.path().join("data/sandboxes").join(&plan);
    assert!(sandbox.is_dir(), "the same as after a kill");
    with_config(&manual, "").call_json("plan/list", json!({})).unwrap();
    assert!(!sandbox.exists());
    assert!(!git(&manual.repo(), &["worktree", "list"]).contains(&plan));
    with_config(&manual, "").call_json("plan/list", json!({})).unwrap();
}
