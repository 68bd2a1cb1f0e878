//! Two commands at once on one plan, and many plans at once.

use std::time::Duration;

use agents_e2e::Envelope;

use super::{Outcome, undisturbed, workers_gone, world_of_work};

const LONG: Duration = Duration::from_secs(120);

#[test]
fn two_commands_that_execute_and_apply_one_plan_do_everything_once() {
    let (world, repo) = world_of_work();
    let plan = world.plan("app", "supervised", &[]);
    plan.assert_at("strategize/complete+execute_approval");
    for (verb, more, after) in
        [("execute", &[][..], "execute/complete+apply_approval"), ("apply", &["--yes"][..], "apply/applied")]
    {
        let args = plan.args(verb, more);
        let both: Vec<_> = (0..2).map(|_| world.start(&args)).collect();
        let words: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let answers: Vec<Envelope> =
            both.into_iter().map(|one| Envelope::check(&words, &one.finish(LONG))).collect();
        assert!(answers.iter().any(Envelope::is_ok), "{answers:#?}");
        for refused in answers.iter().filter(|answer| !answer.is_ok()) {
            assert_eq!(refused.code(), "INVALID_STATE", "{}", refused.text);
        }
        workers_gone(&world);
        plan.assert_at(after);
    }
    assert_eq!(Outcome::of(&plan, &repo), *undisturbed());
    world.assert_quiet();
}

// PLAN-056: more plans than slots wait for their turn, and all get it.
#[test]
fn six_plans_on_one_checkout_all_come_to_their_end() {
    let (world, repo) = world_of_work();
    let args = ["plan", "use", "--automation-profile", "trusted", "local/fix-diagnostics", "local/app"];
    let words: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    let all: Vec<_> = (0..6).map(|_| world.start(&args)).collect();
    for one in all {
        let answer = Envelope::check(&words, &one.finish(LONG));
        assert!(answer.is_ok(), "{}", answer.text);
    }
    let list = world.ok(&["plan", "list", "--state", "awaiting"]).data;
    assert_eq!(list["total"], 6, "{list:#}");
    assert_eq!((repo.commits(), repo.status()), (1, vec![]));
    let ids: Vec<String> =
        list["plans"].as_array().unwrap().iter().map(|p| p["id"].as_str().unwrap().to_owned()).collect();
    let plans: Vec<_> = ids.iter().map(|id| agents_e2e::PlanHandle::new(&world, id)).collect();
    // The first one is applied; the same changes again are no conflict and no second commit.
    plans[0].apply();
    assert_eq!(repo.commits(), 2);
    let second = plans[1].call("apply", &["--yes"]);
    assert!(second.is_ok(), "{}", second.text);
    assert_eq!((repo.commits(), repo.files()), (2, undisturbed().files.clone()));
    world.assert_quiet();
}
