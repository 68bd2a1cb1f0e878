//! The sentences about child plans.

use agents_e2e::{PlanHandle, scripts};
use cucumber::{given, then, when};
use serde_json::Value;

use super::{Story, words};

const TEXT: &str = "one\ntwo\nthree\n";

impl Story {
    fn use_scripted(&mut self, script: &Value) {
        self.world.scripted("local/hand-on", "subplan: { max_parallel: 5, retry_failed: false }\n");
        self.script = script.to_string();
    }

    fn child_plans(&self) -> Vec<Value> {
        self.plan().ok("tree", &[]).data["child_plans"].as_array().unwrap().clone()
    }

    pub(super) fn child_about(&self, name: &str) -> PlanHandle<'_> {
        let about = format!("Do {name}");
        let children = self.child_plans();
        let child = children.iter().find(|child| child["description"] == about.as_str());
        let child = child.unwrap_or_else(|| panic!("no child plan about {name}: {children:#?}"));
        PlanHandle::new(&self.world, words(child, "id"))
    }

    /// Waits until nobody works on the plan any more.
    fn settle(&self) {
        self.world.plain(&["plan", "follow", &self.plan]);
    }
}

#[given(regex = r"^the projects (.+)$")]
fn projects(story: &mut Story, names: String) {
    for name in names.split('"').filter(|part| part.chars().any(char::is_alphanumeric) && *part != " and ") {
        let repo = story.world.repo_with(name, &[("main.txt", TEXT)]);
        if name == "packages" {
            for package in packages() {
                repo.write(format!("{package}.txt"), TEXT);
            }
            repo.commit("packages");
        }
        story.world.register(name, &repo);
        story.projects.insert(name.to_owned(), repo);
    }
}

fn packages() -> Vec<String> {
    (1..15).map(|n| format!("package-{n}")).chain(["workers".to_owned()]).collect()
}

#[given(expr = "a plan on all of them that hands {string} on first, and then the others together")]
fn first_then_others(story: &mut Story, first: String) {
    let mut spawns = vec![
        scripts::spawn(
            &first,
            None,
            &[&format!("local/{first}")],
            &[],
            &scripts::editing("main.txt", 0, "ONE\n"),
        ),
        scripts::decision("services", "subplan_parallel_spawn", None),
    ];
    for name in story.projects.keys().filter(|name| **name != first) {
        let project = format!("local/{name}");
        let script = scripts::editing("main.txt", 1, &format!("TWO of {name}\n"));
        spawns.push(scripts::spawn(name, Some("services"), &[&project], &[&first], &script));
    }
    story.use_scripted(&scripts::handing_on(&spawns));
}

#[given(expr = "a plan that hands {int} packages on together, of which {string} fails")]
fn packages_together(story: &mut Story, count: usize, bad: String) {
    let mut spawns = vec![scripts::decision("all", "subplan_parallel_spawn", None)];
    for package in packages() {
        let script = if package == bad {
            scripts::failing("the formatter does not know this language")
        } else {
            scripts::editing(&format!("{package}.txt"), 0, "ONE\n")
        };
        spawns.push(scripts::spawn(&package, Some("all"), &[], &[], &script));
    }
    assert_eq!(spawns.len(), count + 1);
    story.use_scripted(&scripts::handing_on(&spawns));
}

#[given("a plan in phases whose second phase asks, and whose third has two parts that change the same line")]
fn phases(story: &mut Story) {
    let mut asking = scripts::editing("main.txt", 0, "ONE\n");
    asking["strategize"][0]["requests"][0]["confidence"] = 0.3.into();
    let api = ["local/api"];
    story.use_scripted(&scripts::handing_on(&[
        scripts::spawn("protos", None, &api, &[], &scripts::editing("main.txt", 0, "ONE\n")),
        scripts::spawn("queue", None, &["local/worker"], &[], &asking),
        scripts::decision("ends", "subplan_parallel_spawn", None),
        scripts::spawn("sender", Some("ends"), &api, &[], &scripts::editing("main.txt", 2, "SENT\n")),
        scripts::spawn("reader", Some("ends"), &api, &[], &scripts::editing("main.txt", 2, "READ\n")),
    ]));
}

#[when(expr = "the person uses it with the profile {string}")]
fn uses(story: &mut Story, profile: String) {
    let script = format!("script={}", story.script);
    let projects: Vec<String> = story.projects.keys().map(|name| format!("local/{name}")).collect();
    let mut args = vec!["plan", "use", "--automation-profile", &profile, "--arg", &script, "local/hand-on"];
    args.extend(projects.iter().map(String::as_str));
    let answer = story.world.call(&args);
    words(&answer.data, "plan_id").clone_into(&mut story.plan);
    if story.plan().at() == "strategize/queued+confirm_strategize" {
        story.plan().call("execute", &[]);
    }
    story.settle();
}

#[then(expr = "{int} child plans are planned, and there is none yet")]
fn planned(story: &mut Story, count: usize) {
    assert_eq!(story.plan().status()["strategy_progress"]["child_plans_planned"], count);
    assert_eq!(story.child_plans(), [Value::Null; 0]);
}

#[then(expr = "{string} child plans are shown")]
fn shown(story: &mut Story, progress: String) {
    let status = story.plan().status();
    assert_eq!(status["execution"]["child_plans"], progress.as_str(), "{status:#}");
    let plain = story.world.plain(&["plan", "status", &story.plan]).text();
    assert!(plain.contains(&progress), "{plain}");
}

#[then("each child plan changed its own project only")]
fn own_project(story: &mut Story) {
    for name in story.projects.keys() {
        let child = story.child_about(name);
        assert_eq!(child.status()["project"], format!("local/{name}"));
        let files = child.ok("artifacts", &[]).data["artifacts"].as_array().unwrap().len();
        assert_eq!(files, 1);
    }
}

#[when(expr = "the child plan of {string} is applied")]
fn applied_early(story: &mut Story, name: String) {
    story.answer = Some(story.child_about(&name).call("apply", &["--yes"]));
}

#[when(expr = "the child plans are applied one after another, {string} first")]
fn one_by_one(story: &mut Story, first: String) {
    let others = story.projects.keys().filter(|name| **name != first);
    for name in std::iter::once(&first).chain(others) {
        story.child_about(name).apply();
    }
    story.settle();
}

#[then("each repository has one new commit")]
fn one_commit_each(story: &mut Story) {
    for (name, repo) in &story.projects {
        assert_eq!((repo.commits(), repo.status()), (2, vec![]), "{name}");
    }
}

#[then(expr = "the error names the child plan of {string}")]
fn error_names(story: &mut Story, name: String) {
    let child = story.child_about(&name).id.clone();
    let message = story.plan().status()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains(&child), "{message}");
}

#[when(expr = "the child plan of {string} is given up and the plan goes on")]
fn given_up(story: &mut Story, name: String) {
    story.child_about(&name).ok("cancel", &["--reason", "not worth it"]);
    story.plan().call("execute", &[]);
    story.settle();
}

#[then(expr = "{int} packages are changed in one commit")]
fn packages_changed(story: &mut Story, count: usize) {
    let repo = &story.projects["packages"];
    let changed = repo.git(&["diff", "--name-only", "HEAD~1", "HEAD"]);
    assert_eq!((changed.lines().count(), repo.commits()), (count, 3), "{changed}");
    assert_eq!(repo.text("workers.txt"), TEXT);
}

#[when("the person starts every child plan it asks about")]
fn starts_all(story: &mut Story) {
    for _ in 0..10 {
        if story.plan().status()["awaiting"]["kind"] != "spawn" {
            return;
        }
        story.plan().call("prompt", &["start"]);
        story.settle();
    }
    panic!("the plan asks without end: {:#}", story.plan().status());
}

/// Starts child plans and their phases until something else is asked.
#[when("the person lets every child plan go on")]
fn lets_go_on(story: &mut Story) {
    story.settle();
    for _ in 0..30 {
        let asked = story.plan().status()["awaiting"]["kind"].clone();
        if asked == "spawn" {
            story.plan().call("prompt", &["start"]);
        } else if asked == "child_plan" {
            for child in story.child_plans().iter().filter(|child| child["awaiting"] == "execute_approval") {
                PlanHandle::new(&story.world, words(child, "id")).call("execute", &[]);
            }
        } else {
            return;
        }
        story.settle();
    }
    panic!("the plan asks without end: {:#}", story.plan().status());
}

#[when(expr = "the person answers the child plan that waits with {string}")]
fn answers_child(story: &mut Story, answer: String) {
    let children = story.child_plans();
    let waiting = children.iter().find(|child| !child["awaiting"].is_null()).expect("a child plan waits");
    let question = story.plan().status()["awaiting"]["question"].as_str().unwrap().to_owned();
    assert!(question.contains(words(waiting, "id")), "{question}");
    PlanHandle::new(&story.world, words(waiting, "id")).call("prompt", &[&answer]);
    story.settle();
}

#[when(expr = "the person answers {string}")]
fn answers(story: &mut Story, answer: String) {
    story.plan().call("prompt", &[&answer]);
    story.settle();
}

fn sandbox_text(story: &Story) -> String {
    let resource = story.plan().ok("diff", &[]).data;
    drop(resource);
    let sandboxes = story.world.data().join("sandboxes").join(&story.plan);
    let texts = std::fs::read_dir(sandboxes).unwrap().flatten();
    texts.map(|entry| std::fs::read_to_string(entry.path().join("main.txt")).unwrap_or_default()).collect()
}

#[then("the sandbox shows both versions between markers")]
fn markers(story: &mut Story) {
    let text = sandbox_text(story);
    assert!(text.contains("<<<<<<< ") && text.contains("SENT\n") && text.contains("READ\n"), "{text}");
}

#[then("the line that was disagreed about leads to the decision of a child plan")]
fn leads_to_child(story: &mut Story) {
    let file = story.projects["api"].file("main.txt");
    assert_eq!(story.projects["api"].text("main.txt"), "ONE\ntwo\nREAD\n");
    let blame = story.world.ok(&["plan", "blame", &format!("{}:3", file.display())]);
    let segment = &blame.data["segments"][0];
    assert_eq!(segment["plan_id"], story.child_about("reader").id.as_str(), "{}", blame.text);
}
