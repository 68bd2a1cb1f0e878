//! What is measured against: a database with many plans, and a checkout whose lines have many decisions behind them.

use std::path::Path;

use agents_domain::changes::Change;
use agents_domain::decision::DecisionType;
use agents_domain::event::NewEvent;
use agents_domain::ids::{PlanId, ResourceId};
use agents_domain::plan::{Phase, State};
use agents_domain::ports::store::{Store, StoreExt};
use agents_domain::provenance::hunks;
use agents_e2e::{Repo, World};
use agents_store::testing::{at, change, decision, fill, id, plan, root_decision};
use agents_store::{Options, SqliteStore};

/// Opens the store of a data directory.
pub fn store(data: &Path) -> SqliteStore {
    SqliteStore::open(data, Options::default()).expect("the database opens")
}

/// A world with 10,000 plans and 100,000 decisions; the ids of the plans, oldest first.
pub fn many_plans() -> (World, Vec<PlanId>) {
    let world = World::new();
    let plans = fill(&store(world.data()), 10_000, 10).expect("the database can be filled");
    (world, plans)
}

/// Files, and decisions on lines of each.
pub const FILES: u32 = 100;
/// See [`FILES`].
pub const DECISIONS: u32 = 100;

/// A world with a registered checkout of 100 files, each with 100 lines that an applied plan changed, each line under a
/// decision of its own.
pub fn decided_lines() -> (World, Repo) {
    let world = World::new();
    let repo = world.repo("repo");
    let line = |n: u32, state: &str| format!("value_{n} = compute({n})  # {state}\n");
    let text = |changed: u32| -> String {
        (0..2 * DECISIONS)
            .map(|n| line(n, if n % 2 == 0 && n / 2 < changed { "new" } else { "old" }))
            .collect()
    };
    for file in 0..FILES {
        repo.write(format!("pkg/file_{file}.py"), text(DECISIONS));
    }
    repo.commit("start");
    world.register("app", &repo);
    let store = store(world.data());
    let name = "local/app".parse().expect("a name");
    let resource =
        store.view(|r| r.resource_named(&name)).expect("it can be read").expect("it is registered");
    let texts: Vec<String> = (0..=DECISIONS).map(text).collect();
    let blobs: Vec<String> =
        texts.iter().map(|text| store.put_blob(text.as_bytes()).expect("a blob can be stored")).collect();
    for file in 0..FILES {
        applied(&store, resource.resource_id, file, &texts, &blobs);
    }
    (world, repo)
}

/// One applied plan per file, with a decision and a change for each of its lines.
fn applied(store: &SqliteStore, resource: ResourceId, file: u32, texts: &[String], blobs: &[String]) {
    let number = u64::from(file) + 1;
    let mut plan = plan(number);
    (plan.phase, plan.state, plan.completed_at) =
        (Phase::Apply, State::Applied, Some(at(number * 1000 + 500)));
    store
        .transact(|w| {
            w.insert_plan(&plan)?;
            let root = root_decision(&plan);
            w.insert_decision(&root)?;
            for n in 0..DECISIONS {
                let mut made = decision(&plan, root.decision_id, n + 2);
                made.decision_type = DecisionType::ImplementationChoice;
                w.insert_decision(&made)?;
                let (before, after) = (n as usize, n as usize + 1);
                w.insert_change(&Change {
                    change_id: id(number * 1_000_000 + u64::from(n)),
                    resource_id: resource,
                    before_hash: Some(blobs[before].clone()),
                    after_hash: Some(blobs[after].clone()),
                    hunks: hunks(&texts[before], &texts[after]),
                    ..change(&made, 1, &format!("pkg/file_{file}.py"))
                })?;
            }
            w.append_event(
                &NewEvent::of_plan("plan.created", &plan, serde_json::json!({})),
                plan.created_at,
            )?;
            Ok(())
        })
        .expect("the plan can be stored");
}
