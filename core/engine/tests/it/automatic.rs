//! Plans that nobody is asked about: from one command to applied, and back by themselves when the checkout moved on.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};

use agents_actors::scripted::Scripted;
use agents_domain::plan::Phase;
use agents_domain::ports::BoxFuture;
use agents_domain::ports::actor::{Actor, ActorFailure, ActorHost, StepInput, StepOutput};
use serde_json::json;

use crate::child_plans::{FILE, editing};
use crate::harness::{Bench, git};

/// Plays a script; the first time it executes, somebody commits to the checkout what is in the way.
struct Disturbed {
    script: Scripted,
    repo: OnceLock<PathBuf>,
    done: AtomicBool,
}

impl Actor for Disturbed {
    fn step<'a>(
        &'a self,
        input: StepInput,
        host: &'a dyn ActorHost,
    ) -> BoxFuture<'a, Result<StepOutput, ActorFailure>> {
        Box::pin(async move {
            if input.phase == Phase::Execute && !self.done.swap(true, SeqCst) {
                let repo = self.repo.get().unwrap();
                std::fs::write(repo.join("a.txt"), FILE.replace("two", "2")).unwrap();
                git(repo, &["commit", "-qam", "theirs"]);
            }
            self.script.step(input, host).await
        })
    }
}

// T34, T39, T41, PLAN-007: constrained, decided again on what is there now, and applied, without a question
#[test]
fn a_plan_that_is_never_asked_about_goes_back_by_itself_and_is_applied() {
    for (profile, place, text) in [
        ("full-auto", "apply/applied", FILE.replace("two", "TWO")),
        ("ci", "apply/applied", FILE.replace("two", "TWO")),
        ("auto", "execute/complete+apply_approval", FILE.replace("two", "2")),
    ] {
        let actor = Arc::new(Disturbed {
            script: Scripted::new(editing(1, "TWO\n")),
            repo: OnceLock::new(),
            done: AtomicBool::new(false),
        });
        let bench = Bench::new(&[("a.txt", FILE)], &[("test/d", actor.clone() as Arc<dyn Actor>)]);
        actor.repo.set(bench.repo()).unwrap();
        bench.action("local/act", "test/d", "test/d", "");
        let plan = bench.plan("local/act", profile);
        assert_eq!(bench.at(&plan), place, "{profile}: {}", bench.status(&plan));
        assert_eq!(std::fs::read_to_string(bench.repo().join("a.txt")).unwrap(), text, "{profile}");
        if place == "apply/applied" {
            assert_eq!(bench.status(&plan)["attempt"], 2);
            let all =
                bench.ok("events/after", json!({ "sequence": 0, "plan": plan, "limit": 1000 })).to_string();
            assert!(
                all.contains("\"state\":\"constrained\"") || all.contains("constrained"),
                "it was constrained once"
            );
        }
    }
}
