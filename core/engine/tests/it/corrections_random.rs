//! Corrections of any decision of any tree: exactly what hangs on it falls, and nothing else changes.

use std::collections::BTreeSet;
use std::sync::Arc;

use agents_actors::scripted::Scripted;
use agents_domain::decision::{Decision, DecisionType};
use agents_domain::ids::DecisionId;
use agents_domain::ports::actor::Actor;
use agents_domain::ports::store::StoreExt;
use agents_domain::tree;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::harness::{Bench, git};

/// A decision to be made: what it hangs below and what it is made from, as bits over the decisions before it.
#[derive(Debug, Clone)]
struct Shape {
    parent: Option<prop::sample::Index>,
    from: u16,
}

fn shape() -> impl Strategy<Value = Shape> {
    (proptest::option::of(any::<prop::sample::Index>()), any::<u16>())
        .prop_map(|(parent, bits)| Shape { parent, from: bits & (bits >> 5) })
}

#[derive(Debug, Clone)]
struct Case {
    strategize: Vec<Shape>,
    execute: Vec<Shape>,
    /// Which of the active decisions is corrected, one after another.
    targets: Vec<prop::sample::Index>,
    /// In Execute, or when Strategize is complete.
    in_execute: bool,
}

fn case() -> impl Strategy<Value = Case> {
    let shapes = |most| prop::collection::vec(shape(), 1..=most);
    let targets = prop::collection::vec(any::<prop::sample::Index>(), 1..=2);
    (shapes(4), shapes(4), targets, prop::bool::weighted(0.75)).prop_map(
        |(strategize, execute, targets, in_execute)| Case { strategize, execute, targets, in_execute },
    )
}

/// Each decision of Execute makes a file of its own and writes a line of a shared one.
fn script(case: &Case) -> Value {
    let mut keys: Vec<String> = Vec::new();
    let mut steps = |shapes: &[Shape], phase: &str, kind: &str| -> Vec<Value> {
        let mut steps = Vec::new();
        for (n, shape) in shapes.iter().enumerate() {
            let key = format!("{phase}/{n}");
            let parent = shape.parent.as_ref().filter(|_| !keys.is_empty()).map(|at| at.get(&keys).clone());
            let from: Vec<String> = keys
                .iter()
                .enumerate()
                .filter(|(at, _)| shape.from >> at & 1 == 1)
                .map(|(_, key)| key.clone())
                .collect();
            let mut requests = vec![json!({
                "request": "record_decision", "key": key, "decision_type": kind, "parent": parent,
                "question": format!("How about {key}?"), "chosen": 0,
                "alternatives": [{ "option": "Fix it" }, { "option": "Leave alone" }, { "option": "Other" }],
                "confidence": 0.95, "rationale": "because", "reasoning": null, "resources": [],
                "depends_on": from, "context": null,
            })];
            if phase == "e" {
                let line = 3 * n;
                requests.push(json!({
                    "request": "tool", "call_id": key, "tool": "builtin/apply-edits", "decision": key,
                    "args": { "resource": "${resource}", "edits": [
                        { "op": "create", "path": format!("{n}.txt"), "text": "new\n" },
                        { "op": "edit", "path": "shared.txt", "edits": [{
                            "range": { "start": { "line": line, "column": 0 }, "end": { "line": line + 1, "column": 0 } },
                            "new_text": format!("done {n}\n"),
                        }] },
                    ] },
                }));
            }
            steps.push(json!({ "requests": requests }));
            keys.push(key);
        }
        steps.push(json!({ "outcome": { "done": { "headline": "done", "lines": [], "facts": null } } }));
        steps
    };
    let strategize = steps(&case.strategize, "s", "strategy_choice");
    let execute = steps(&case.execute, "e", "implementation_choice");
    json!({ "strategize": strategize, "execute": execute })
}

/// What stands in the place of a decision.
fn standing(id: DecisionId, all: &[Decision]) -> DecisionId {
    match all.iter().find(|d| d.decision_id == id).and_then(|d| d.superseded_by) {
        Some(by) => standing(by, all),
        None => id,
    }
}

fn in_execute(decision: &Decision, all: &[Decision]) -> bool {
    match decision.decision_type {
        DecisionType::ImplementationChoice => true,
        DecisionType::UserIntervention => {
            let parent = all.iter().find(|d| Some(d.decision_id) == decision.parent_decision_id);
            parent.is_some_and(|parent| in_execute(parent, all))
        }
        _ => false,
    }
}

/// The closure, as slow and plain as can be.
fn hangs_on(target: DecisionId, all: &[Decision]) -> BTreeSet<DecisionId> {
    let mut closure = BTreeSet::from([target]);
    loop {
        let more: Vec<DecisionId> = all
            .iter()
            .filter(|d| d.superseded_by.is_none() && !closure.contains(&d.decision_id))
            .filter(|d| {
                let named = d.parent_decision_id.iter().chain(&d.depends_on);
                named.into_iter().any(|id| closure.contains(&standing(*id, all)))
            })
            .map(|d| d.decision_id)
            .collect();
        if more.is_empty() {
            return closure;
        }
        closure.extend(more);
    }
}

struct World {
    bench: Bench,
    plan: String,
}

impl World {
    /// A plan of the case at rest.
    fn of(case: &Case) -> Self {
        let actor: Arc<dyn Actor> = Arc::new(Scripted::new(script(case)));
        let shared: String = (0..3 * case.execute.len()).map(plain).collect();
        let bench = Bench::new(&[("shared.txt", &shared)], &[("test/scripted", actor)]);
        bench.action("local/act", "test/scripted", "test/scripted", "");
        let plan = bench.plan("local/act", if case.in_execute { "trusted" } else { "supervised" });
        Self { bench, plan }
    }

    fn names(&self, case: &Case) -> impl Iterator<Item = String> + use<> {
        (0..case.execute.len()).map(|n| format!("{n}.txt")).chain(["shared.txt".to_owned()])
    }

    fn decisions(&self) -> Vec<Decision> {
        self.bench.engine.store().view(|r| r.decisions(self.plan.parse().unwrap())).unwrap()
    }

    fn tool_calls(&self) -> u64 {
        self.bench.status(&self.plan)["execution"]["tool_calls"].as_u64().unwrap_or(0)
    }

    fn files(&self, case: &Case) -> Vec<Option<String>> {
        if !case.in_execute {
            return Vec::new();
        }
        let sandbox = &self.bench.status(&self.plan)["execution"]["sandbox"];
        let path = sandbox["path"].as_str().unwrap();
        self.names(case)
            .map(|name| std::fs::read_to_string(std::path::Path::new(path).join(name)).ok())
            .collect()
    }
}

fn plain(at: usize) -> String {
    format!("line {at}\n")
}

/// The files when these decisions of Execute have written.
fn files(case: &Case, written: &BTreeSet<&str>) -> Vec<Option<String>> {
    if !case.in_execute {
        return Vec::new();
    }
    let has = |n: usize| written.contains(format!("e/{n}").as_str());
    let line = |at: usize| {
        if at.is_multiple_of(3) && has(at / 3) { format!("done {}\n", at / 3) } else { plain(at) }
    };
    let own = (0..case.execute.len()).map(|n| has(n).then(|| "new\n".to_owned()));
    own.chain([Some((0..3 * case.execute.len()).map(line).collect())]).collect()
}

fn holds(case: &Case) {
    let world = World::of(case);
    let rests = if case.in_execute {
        "execute/complete+apply_approval"
    } else {
        "strategize/complete+execute_approval"
    };
    assert_eq!(world.bench.at(&world.plan), rests);
    let keys: Vec<String> = (0..case.execute.len()).map(|n| format!("e/{n}")).collect();
    assert_eq!(world.files(case), files(case, &keys.iter().map(String::as_str).collect()));
    for (round, target) in case.targets.iter().enumerate() {
        let before = world.decisions();
        let calls = world.tool_calls();
        // People's words are corrected, too; the root is another matter.
        let choices: Vec<&Decision> = before
            .iter()
            .filter(|d| d.superseded_by.is_none() && d.parent_decision_id.is_some())
            .filter(|d| d.decision_type != DecisionType::UserIntervention)
            .collect();
        let target = (*target.get(&choices)).clone();
        let mut expected = hangs_on(target.decision_id, &before);
        if case.in_execute && !in_execute(&target, &before) {
            // CORR-012, 4.8, C-45: all of Execute with it.
            let active = before.iter().filter(|d| d.superseded_by.is_none() && in_execute(d, &before));
            expected.extend(active.map(|d| d.decision_id));
        }
        let guidance = format!("something else, {round}");
        let corrected = world.bench.ok(
            "plan/correct",
            json!({ "decision": target.decision_id, "mode": "revert", "guidance": guidance }),
        );
        let told: BTreeSet<String> = corrected["affected_subtree"]["decision_ids"]
            .as_array()
            .unwrap()
            .iter()
            .map(|id| id.as_str().unwrap().to_owned())
            .collect();
        assert_eq!(told, expected.iter().map(ToString::to_string).collect(), "CORR-014");
        world.bench.work(&world.plan);
        assert_eq!(world.bench.at(&world.plan), rests, "{:#}", world.bench.status(&world.plan));

        let after = world.decisions();
        tree::validate(&after).unwrap_or_else(|why| panic!("DEC-020, DEC-022: {why:?}\n{after:#?}"));
        let new = after.iter().find(|d| d.corrects_decision_id == Some(target.decision_id)).unwrap();
        for (old, now) in before.iter().zip(&after) {
            let fallen = Decision { superseded_by: Some(new.decision_id), ..old.clone() };
            let wanted = if expected.contains(&old.decision_id) { &fallen } else { old };
            assert_eq!(now, wanted, "CORR-015, CORR-016, DEC-019");
        }
        assert!(after.len() > before.len());
        // Each decision that fell is made again, once: in substance nothing is missing.
        let keys = |all: &[Decision]| {
            let active = all.iter().filter(|d| d.superseded_by.is_none());
            active.filter_map(|d| d.key.clone()).collect::<BTreeSet<_>>()
        };
        assert_eq!(keys(&before), keys(&after));
        // What a person decided in their own words the script knows nothing to write for.
        let writes = |d: &&Decision| {
            d.superseded_by.is_none()
                && in_execute(d, &after)
                && d.key.is_some()
                && d.chosen_option == "Fix it"
        };
        let again = after
            .iter()
            .filter(writes)
            .filter(|d| !before.iter().any(|old| old.decision_id == d.decision_id));
        assert_eq!(world.tool_calls() - calls, again.count() as u64, "only what fell is done again");
        let written: BTreeSet<&str> = after.iter().filter(writes).filter_map(|d| d.key.as_deref()).collect();
        assert_eq!(world.files(case), files(case, &written));
    }
}

/// Back to a checkpoint, forward to where it was, and on from there: nothing is lost, and nothing is done twice.
fn goes_back_and_forward(case: &Case, to: &prop::sample::Index) {
    let world = World::of(case);
    let (before, there, calls) = (world.decisions(), world.files(case), world.tool_calls());
    let artifacts = world.bench.ok("plan/artifacts", json!({ "plan": world.plan }));
    let checkpoints = artifacts["checkpoints"].as_array().unwrap();
    let checkpoint = to.get(checkpoints).clone();
    let rolled =
        world.bench.ok("plan/rollback", json!({ "plan": world.plan, "checkpoint": checkpoint["id"] }));
    world.bench.work(&world.plan);
    assert_eq!(world.bench.at(&world.plan), "execute/queued+rollback");
    let after = world.decisions();
    tree::validate(&after).unwrap_or_else(|why| panic!("{why:?}\n{after:#?}"));
    let discarded: BTreeSet<String> = rolled["impact"]["decision_ids"]
        .as_array()
        .unwrap()
        .iter()
        .map(|id| id.as_str().unwrap().to_owned())
        .collect();
    for (old, now) in before.iter().zip(&after) {
        let falls = discarded.contains(&old.decision_id.to_string());
        assert_eq!(falls, now.superseded_by.is_some());
        assert_eq!(&Decision { superseded_by: old.superseded_by, ..now.clone() }, old, "CKPT-005, DEC-019");
    }
    let commit = checkpoint["commit"].as_str().unwrap();
    let repo = world.bench.repo();
    let held = git(&repo, &["ls-tree", "-r", "--name-only", commit]);
    let then = world.names(case).map(|name| {
        let there = held.lines().any(|line| line == name);
        there.then(|| git(&repo, &["show", &format!("{commit}:{name}")]) + "\n")
    });
    assert_eq!(world.files(case), then.collect::<Vec<_>>());

    world.bench.ok("plan/rollback", json!({ "plan": world.plan, "checkpoint": rolled["redo_checkpoint"] }));
    world.bench.work(&world.plan);
    assert_eq!(world.files(case), there);
    let substance = |all: &[Decision]| {
        let active = all.iter().filter(|d| d.superseded_by.is_none() && d.key.is_some());
        active.map(|d| (d.key.clone(), d.chosen_option.clone())).collect::<BTreeSet<_>>()
    };
    assert_eq!(substance(&world.decisions()), substance(&before));
    world.bench.ok("plan/execute", json!({ "plan": world.plan }));
    world.bench.work(&world.plan);
    assert_eq!(world.bench.at(&world.plan), "execute/complete+apply_approval");
    assert_eq!((world.files(case), world.tool_calls()), (there, calls), "nothing was done twice");
    tree::validate(&world.decisions()).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, max_shrink_iters: 20, failure_persistence: None, ..ProptestConfig::default() })]

    // DEC-019, DEC-020, DEC-022, CORR-012, CORR-014, CORR-015, CORR-016
    #[test]
    fn exactly_what_hangs_on_a_corrected_decision_falls(case in case()) {
        holds(&case);
    }

    // CKPT-002 to CKPT-005, C-33
    #[test]
    fn a_rollback_to_any_checkpoint_loses_nothing(case in case(), to in any::<prop::sample::Index>()) {
        goes_back_and_forward(&Case { in_execute: true, ..case }, &to);
    }
}
