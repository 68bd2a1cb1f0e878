//! What the sentences of the features do.

mod children;
mod commands;

use std::collections::BTreeMap;

use agents_e2e::{Envelope, PlanHandle, Repo, World, tool};
use cucumber::gherkin::Step;
use cucumber::{given, then, when};
use serde_json::Value;

/// One scenario: a home, a repository, a plan, and the last answer.
#[derive(Debug, Default, cucumber::World)]
pub struct Story {
    world: World,
    repo: Option<Repo>,
    /// Repositories by their project.
    projects: BTreeMap<String, Repo>,
    /// Where they began.
    starts: BTreeMap<String, String>,
    /// What a feature has given a name: plans, decisions, checkpoints.
    names: BTreeMap<String, String>,
    /// What a script printed.
    printed: String,
    /// What the scripted actor plays.
    script: String,
    start: String,
    plan: String,
    answer: Option<Envelope>,
}

impl Story {
    fn repo(&self) -> &Repo {
        self.repo.as_ref().expect("the background made a repository")
    }

    fn plan(&self) -> PlanHandle<'_> {
        PlanHandle::new(&self.world, &self.plan)
    }

    fn answer(&self) -> &Envelope {
        self.answer.as_ref().expect("a command was run")
    }
}

fn words<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_else(|| panic!("no {key}: {value:#}"))
}

#[given("a repository with")]
fn a_repository(story: &mut Story, step: &Step) {
    let repo = story.world.repo("repo");
    for row in step.table.as_ref().expect("a table of files").rows.iter().skip(1) {
        repo.write(&row[0], row[1].replace("\\n", "\n"));
    }
    story.start = repo.commit("start");
    story.repo = Some(repo);
}

#[given(expr = "it is registered as the resource {string} of the project {string}")]
fn registered(story: &mut Story, resource: String, project: String) {
    let path = story.repo().path().to_str().unwrap().to_owned();
    story.world.ok(&["resource", "add", "git-checkout", &resource, "--path", &path]);
    story.world.ok(&["project", "create", &project, "--resource", &resource]);
}

#[given(expr = "the language server {string} is registered for {string}")]
fn language_server(story: &mut Story, name: String, language: String) {
    story.world.real_server(&name, &["server"], &[&language]);
}

#[given(expr = "the action {string} is registered on the actor {string}")]
fn action(story: &mut Story, name: String, actor: String) {
    story.world.fixer();
    let shown = story.world.ok(&["action", "show", &name]).data;
    assert_eq!((words(&shown, "name"), words(&shown, "strategy_actor")), (name.as_str(), actor.as_str()));
}

#[then(expr = "{string} names {string}")]
fn names(story: &mut Story, command: String, name: String) {
    let args: Vec<&str> = command.split(' ').collect();
    let listed = story.world.ok(&args);
    assert!(listed.data.to_string().contains(&format!("\"{name}\"")), "{}", listed.text);
    let plain = story.world.plain(&args);
    assert!(plain.status.success() && plain.text().contains(&name), "{plain:?}");
}

#[when("the same language server is registered again")]
fn again(story: &mut Story) {
    let file = story.world.path("local-ruff.yaml");
    story.answer = Some(story.world.call(&["lsp", "add", "--config", file.to_str().unwrap()]));
}

#[then(expr = "that is refused with {string}")]
fn refused_with(story: &mut Story, text: String) {
    let answer = story.answer();
    assert_eq!((answer.status.as_str(), answer.exit_code), ("error", 1), "{}", answer.text);
    assert!(answer.words().contains(&text), "{}", answer.text);
}

#[when(expr = "the person uses the action with the profile {string}")]
fn uses(story: &mut Story, profile: String) {
    let args =
        ["plan", "use", "local/fix-diagnostics", "local/app", "--automation-profile", profile.as_str()];
    let answer = story.world.ok(&args);
    words(&answer.data, "plan_id").clone_into(&mut story.plan);
    story.answer = Some(answer);
}

#[then(expr = "the plan waits for {string} after {string}")]
fn waits_after(story: &mut Story, kind: String, phase: String) {
    story.plan().assert_at(&format!("{phase}/complete+{kind}"));
}

#[then(expr = "the plan waits for {string} in {string}")]
fn waits_in(story: &mut Story, kind: String, phase: String) {
    story.plan().assert_at(&format!("{phase}/processing+{kind}"));
}

#[then(expr = "the plan is {string} in {string}")]
fn stands(story: &mut Story, state: String, phase: String) {
    story.plan().assert_at(&format!("{phase}/{state}"));
}

#[then(expr = "the tree starts with the prompt and has a choice about {string}, {string} and {string}")]
fn tree(story: &mut Story, first: String, second: String, third: String) {
    let plan = story.plan();
    let decisions = plan.decisions();
    assert_eq!(words(&decisions[0], "type"), "prompt_definition");
    for rule in [&first, &second, &third] {
        assert_eq!(words(&plan.strategy(rule), "type"), "strategy_choice", "{rule}");
    }
    let plain = story.world.plain(&["plan", "tree", &story.plan]).text();
    for rule in [first, second, third] {
        assert!(plain.contains(&rule), "{rule} is not shown:\n{plain}");
    }
}

#[then(expr = "the choice about {string} is {string}")]
fn choice(story: &mut Story, rule: String, chosen: String) {
    let decision = story.plan().strategy(&rule);
    assert!(words(&decision, "chosen").contains(&chosen), "{decision:#}");
    let explained = story.world.ok(&["plan", "explain", words(&decision, "decision_id")]);
    story.answer = Some(explained);
}

#[then(expr = "its explanation names {int} files, its confidence, and at least {int} other options")]
fn explanation(story: &mut Story, files: usize, others: usize) {
    let explained = &story.answer().data;
    let mut paths: Vec<&str> =
        explained["resources"].as_array().unwrap().iter().map(|place| words(place, "path")).collect();
    paths.dedup();
    assert_eq!(paths.len(), files, "{explained:#}");
    let confidence = explained["confidence"].as_f64().unwrap();
    assert!((0.5..=0.99).contains(&confidence), "{explained:#}");
    let alternatives = explained["alternatives"].as_array().unwrap();
    assert!(alternatives.len() > others, "{explained:#}");
    assert_eq!(alternatives.iter().filter(|a| a["chosen"] == true).count(), 1, "{explained:#}");
    let plain = story.world.plain(&["plan", "explain", words(explained, "decision_id")]).text();
    for part in ["app/main.py", "app/util.py", &format!("{confidence:.2}")] {
        assert!(plain.contains(part), "`{part}` is not shown:\n{plain}");
    }
}

#[then(expr = "the person is told to go on with {string}")]
fn told(story: &mut Story, command: String) {
    let plain = story.world.plain(&["plan", "status", &story.plan]).text();
    assert!(plain.contains(&command), "{plain}");
}

#[then("the repository is untouched")]
fn untouched(story: &mut Story) {
    assert_eq!((story.repo().head(), story.repo().status()), (story.start.clone(), vec![]));
}

#[then("the question comes with numbered options")]
fn numbered(story: &mut Story) {
    let plain = story.world.plain(&["plan", "status", &story.plan]).text();
    assert!(plain.contains("1.") && plain.contains("2.") && plain.contains("Leave alone"), "{plain}");
}

#[when(expr = "the person answers the decision about {string} with {string}")]
fn answers(story: &mut Story, rule: String, option: String) {
    let decision = story.plan().strategy(&rule);
    let id = words(&decision, "decision_id").to_owned();
    let answer = story.plan().ok("prompt", &["--decision", &id, &option]);
    assert_eq!(answer.data["guidance_added"]["option"], option.as_str(), "{}", answer.text);
    assert_eq!(answer.data["decision_created"]["type"], "user_intervention", "{}", answer.text);
    assert_eq!(answer.data["decision_created"]["parent"], id.as_str(), "{}", answer.text);
    story.answer = Some(answer);
}

#[when("the person accepts what is proposed until nothing waits")]
fn accepts(story: &mut Story) {
    for _ in 0..20 {
        let plan = story.plan();
        let awaiting = plan.status()["awaiting"].clone();
        match awaiting["kind"].as_str() {
            Some("decision") => {
                let id = words(&awaiting, "decision_id");
                let explained = story.world.ok(&["plan", "explain", id]).data;
                plan.ok("prompt", &["--decision", id, words(&explained, "chosen")]);
            }
            Some("execute_approval") => drop(plan.call("execute", &[])),
            _ => return,
        }
    }
    panic!("the plan asks without end: {:#}", story.plan().status());
}

#[then(expr = "the decision about {string} was made by a person and is {string}")]
fn by_person(story: &mut Story, rule: String, chosen: String) {
    let decision = story.plan().strategy(&rule);
    assert_eq!(
        (words(&decision, "type"), words(&decision, "chosen")),
        ("user_intervention", chosen.as_str()),
        "{decision:#}"
    );
    let explained = story.plan().explain(&decision);
    assert_eq!(explained["gate"]["approval"], "by_person", "{explained:#}");
}

#[then(expr = "the diff changes {string}")]
fn diff_changes(story: &mut Story, file: String) {
    let diff = story.plan().ok("diff", &[]).data;
    let files: Vec<&str> = diff["files"].as_array().unwrap().iter().map(|file| words(file, "path")).collect();
    assert!(files.contains(&file.as_str()), "{files:?}");
}

#[then(expr = "the diff keeps {string}")]
fn diff_keeps(story: &mut Story, text: String) {
    let diff = story.plan().ok("diff", &[]).data;
    let removed = format!("\n-{text}\n");
    for file in diff["files"].as_array().unwrap() {
        assert!(!words(file, "patch").contains(&removed), "{file:#}");
    }
}

#[when("the person executes the plan")]
fn executes(story: &mut Story) {
    story.answer = Some(story.plan().ok("execute", &[]));
}

#[then("each changed hunk names the decision behind it")]
fn hunks(story: &mut Story) {
    let diff = story.plan().ok("diff", &[]).data;
    let mut seen = 0;
    for file in diff["patch_preview"].as_array().unwrap() {
        for hunk in file["hunks"].as_array().unwrap() {
            let decisions = hunk["decisions"].as_array().unwrap();
            assert!(!decisions.is_empty(), "{file:#}");
            for decision in decisions {
                story.world.ok(&["plan", "explain", decision.as_str().unwrap()]);
            }
            seen += 1;
        }
    }
    assert!(seen >= 2, "{diff:#}");
}

#[then("there is a checkpoint for each choice that was carried out")]
fn checkpoints(story: &mut Story) {
    let plan = story.plan();
    let artifacts = plan.ok("artifacts", &[]).data;
    let checkpoints = artifacts["checkpoints"].as_array().unwrap();
    for choice in plan.decisions_of("implementation_choice") {
        let id = &choice["decision_id"];
        assert!(
            checkpoints.iter().any(|c| c["decision_id"] == *id),
            "no checkpoint of {choice:#}: {artifacts:#}"
        );
    }
}

#[when("the person applies the plan")]
fn applies(story: &mut Story) {
    story.answer = Some(story.plan().apply());
}

#[when("the person applies the plan without confirming")]
fn applies_unconfirmed(story: &mut Story) {
    let answer = story.plan().call("apply", &[]);
    assert_eq!(answer.exit_code, 1, "{}", answer.text);
    assert!(answer.text.contains("--yes"), "the way on is named: {}", answer.text);
    story.answer = Some(answer);
}

#[then("there is one new commit that names the plan")]
fn one_commit(story: &mut Story) {
    let repo = story.repo();
    assert_eq!(repo.git(&["rev-parse", "HEAD^"]), story.start);
    assert!(repo.message().contains(&story.plan), "{}", repo.message());
    assert!(repo.status().is_empty(), "{:?}", repo.status());
}

#[then(expr = "{string} no longer contains {string}")]
fn no_longer(story: &mut Story, file: String, text: String) {
    let now = story.repo().text(&file);
    assert!(!now.contains(&text), "{now}");
}

#[then("ruff finds nothing in the repository that has an agreed fix")]
fn ruff_is_content(story: &mut Story) {
    let checked = std::process::Command::new(tool("ruff"))
        .args(["check", "--isolated", "--no-cache", "--select", "F401,F541,F632"])
        .arg(story.repo().path())
        .output()
        .unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

#[then(expr = "blame on the line with {string} in {string} names {string}")]
fn blame(story: &mut Story, text: String, file: String, rule: String) {
    let line = story.repo().text(&file).lines().position(|line| line.contains(&text)).unwrap() + 1;
    let place = format!("{}:{line}", story.repo().file(&file).display());
    let blame = story.world.ok(&["plan", "blame", &place]);
    let segment = &blame.data["segments"][0];
    assert!(segment.to_string().contains(&rule), "{}", blame.text);
    assert_eq!(words(segment, "plan_id"), story.plan);
    let plain = story.world.plain(&["plan", "blame", &place]).text();
    assert!(plain.contains(&rule), "{plain}");
}

#[then("applying it again is refused")]
fn applied_twice(story: &mut Story) {
    let answer = story.plan().refused("apply", &["--yes"]);
    assert_eq!(answer.code(), "INVALID_STATE", "{}", answer.text);
    assert_eq!(story.repo().commits(), 2);
}

#[when(expr = "the person cancels the plan because {string}")]
fn cancels(story: &mut Story, reason: String) {
    let answer = story.plan().ok("cancel", &["--reason", &reason]);
    assert_eq!((words(&answer.data, "reason"), words(&answer.data, "state")), (reason.as_str(), "cancelled"));
    story.answer = Some(answer);
}

#[then("executing it is refused, with a way to begin anew")]
fn execute_refused(story: &mut Story) {
    let answer = story.plan().refused("execute", &[]);
    assert_eq!(answer.code(), "INVALID_STATE", "{}", answer.text);
    assert!(answer.words().contains("agents plan use"), "{}", answer.text);
}
