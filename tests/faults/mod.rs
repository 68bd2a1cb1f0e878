//! Killed processes and broken disks: nothing is lost, nothing is done twice, and what happened is said.

mod children;
mod gates;
mod killed;
mod races;
mod rewinds;
mod storage;

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

use agents_e2e::{PlanHandle, Records, Repo, World, wait_until};
use serde_json::json;

use crate::support::bad_to_good;

/// Work that passes every kind of step, and a validation: two kinds of fixes, one of which also edits another file, and one that makes
/// things worse and is taken back.
fn world_of_work() -> (World, Repo) {
    let world = World::new();
    let script = json!({ "rules": [
        bad_to_good(),
        {
            "files": ".py", "match": r"\bold_(\w+)", "code": "O1", "severity": 2, "message": "old $1",
            "fixes": [{
                "title": "Make `$1` new", "replace": "new_$1", "preferred": true,
                "elsewhere": { "file": "shared.py", "match": "count = (\\d+)", "replace": "count = ${1}0" },
            }],
        },
        {
            "files": ".py", "match": r"\bworse_(\w+)", "code": "W1", "severity": 2, "message": "worse $1",
            "fixes": [{ "title": "Break `$1`", "replace": "def (", "preferred": true }],
        },
    ] });
    world.fake("fake", &script);
    world.fixer();
    let repo = world.repo_with(
        "repo",
        &[
            ("a.py", "x = bad_one\ny = bad_two\n"),
            ("b.py", "x = old_thing\n"),
            ("c.py", "x = bad_three\ny = worse_one\n"),
            ("shared.py", "count = 1\n"),
        ],
    );
    world.register("app", &repo);
    world.ok(&["validation", "attach", "local/app", "builtin/syntax"]);
    (world, repo)
}

/// Everything two runs of the same work must agree on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Outcome {
    at: String,
    files: BTreeMap<String, Vec<u8>>,
    status: Vec<String>,
    commits: usize,
    committed: String,
    worktrees: usize,
    records: Records,
}

impl Outcome {
    fn of(plan: &PlanHandle<'_>, repo: &Repo) -> Self {
        Self {
            at: plan.at(),
            files: repo.files(),
            status: repo.status(),
            commits: repo.commits(),
            committed: repo.git(&["ls-tree", "-r", "HEAD"]),
            worktrees: repo.worktrees(),
            records: plan.records(),
        }
    }
}

/// The outcome when nobody disturbs.
fn undisturbed() -> &'static Outcome {
    static OUTCOME: OnceLock<Outcome> = OnceLock::new();
    OUTCOME.get_or_init(|| {
        let (world, repo) = world_of_work();
        let plan = world.plan("app", "ci", &[]);
        let outcome = Outcome::of(&plan, &repo);
        assert_eq!((outcome.at.as_str(), outcome.commits), ("apply/applied", 2), "{outcome:#?}");
        assert_eq!(repo.text("a.py"), "x = good_one\ny = good_two\n");
        assert_eq!(repo.text("b.py"), "x = new_thing\n");
        assert_eq!(repo.text("c.py"), "x = good_three\ny = worse_one\n");
        assert_eq!(repo.text("shared.py"), "count = 10\n");
        assert!(outcome.records.decisions.iter().any(|d| d.contains("error_recovery")), "{outcome:#?}");
        outcome
    })
}

/// Starts a plan that does everything by itself, in the background.
fn start<'w>(world: &'w World, env: &[(&str, &str)]) -> PlanHandle<'w> {
    let args =
        ["plan", "use", "--detach", "--automation-profile", "ci", "local/fix-diagnostics", "local/app"];
    let answer = world.call_with(&args, env);
    assert!(answer.is_ok(), "{}", answer.text);
    PlanHandle::new(world, answer.data["plan_id"].as_str().expect("a plan has an id"))
}

/// Waits until no worker lives, and what it held is free: a process that is ending has no command line any more and still
/// has its locks.
fn workers_gone(world: &World) {
    wait_until("the worker ends", Duration::from_secs(60), || {
        (world.workers().is_empty() && Records::leased(world.data()).is_empty()).then_some(())
    });
}

/// What a person does about a plan whose worker died: the command of the phase it is in.
///
/// Where it stands is read without a command: one that only looks would bring the plan on, too.
fn next_command(world: &World, plan: &PlanHandle<'_>) -> agents_e2e::Envelope {
    match agents_e2e::Records::at(world.data(), &plan.id).split_once('/') {
        Some(("apply", "applied")) => plan.call("status", &[]),
        Some(("apply", _)) => plan.call("apply", &["--yes"]),
        _ => plan.call("execute", &[]),
    }
}
