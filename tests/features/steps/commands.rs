//! What a script types, and what it is answered: the sentences of the workflows.

use std::process::Stdio;

use agents_e2e::{Envelope, agents, is_ulid, scripts, tool};
use cucumber::gherkin::Step;
use cucumber::{given, then, when};
use serde_json::Value;

use super::{Story, words};

impl Story {
    /// A text of a feature with the names it uses filled in: `$P` for the plan, `$NAME` for what was named, `$REPO(x)` for
    /// the path of a repository, `$RUFF` for the program, `$SCRIPT` for what the actor plays, as a YAML value.
    fn fill(&self, text: &str) -> String {
        let mut filled = text.to_owned();
        for (name, repo) in &self.projects {
            filled = filled.replace(&format!("$REPO({name})"), &repo.path().display().to_string());
        }
        if filled.contains("$RUFF") {
            filled = filled.replace("$RUFF", &tool("ruff").display().to_string());
        }
        filled = filled.replace("$SCRIPT", &Value::from(self.script.as_str()).to_string());
        // Longer names first, so that `$D` is not taken for the beginning of `$D1`.
        for (name, value) in self.names.iter().rev() {
            filled = filled.replace(&format!("${name}"), value);
        }
        filled
    }

    fn run(&mut self, line: &str) -> Envelope {
        let line = self.fill(line);
        let args = split(line.strip_prefix("agents ").expect("a command begins with `agents`"));
        let answer = self.world.call(&args);
        if let Some(plan) = answer.data["plan_id"].as_str().filter(|_| answer.command == "plan use") {
            self.plan = plan.to_owned();
            self.names.insert("P".to_owned(), plan.to_owned());
        }
        self.answer = Some(answer.clone());
        answer
    }
}

/// Words as a shell takes them, with `'` and `"`.
fn split(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for char in line.chars() {
        match (quote, char) {
            (Some(open), close) if open == close => quote = None,
            (None, '\'' | '"') => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    words
}

fn text(step: &Step) -> String {
    let text = step.docstring.as_ref().expect("a text").replace("\\\\n", "\\n");
    format!("{}\n", text.trim_matches('\n'))
}

#[given(expr = "the repository {string} with")]
fn repository(story: &mut Story, name: String, step: &Step) {
    let repo = story.world.repo(&name);
    for row in &step.table.as_ref().expect("a table of files").rows {
        repo.write(&row[0], row[1].replace("\\n", "\n"));
    }
    story.starts.insert(name.clone(), repo.commit("start"));
    story.projects.insert(name, repo);
}

#[given(expr = "the file {string}")]
fn file(story: &mut Story, name: String, step: &Step) {
    let file = story.world.path(&name);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, story.fill(&text(step))).unwrap();
}

#[given("the actor plays")]
fn plays(story: &mut Story, step: &Step) {
    story.script = scripts::play(&text(step)).to_string();
}

#[given("a script has run")]
#[when("a script runs")]
fn runs(story: &mut Story, step: &Step) {
    for line in text(step).lines().filter(|line| !line.trim().is_empty()) {
        let answer = story.run(line.trim());
        assert!(answer.is_ok(), "{line}\n{}\n{}", answer.text, answer.stderr);
    }
}

#[when(expr = "a script tries")]
fn tries(story: &mut Story, step: &Step) {
    story.run(text(step).trim());
}

/// A script in bash, with `agents` as it is found on the search path and no input. When it fails, its trace says where.
#[when("this runs in bash")]
fn bash(story: &mut Story, step: &Step) {
    let folder = agents();
    let path = format!("{}:{}", folder.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut bash = story.world.command("bash");
    bash.args(["-euxo", "pipefail", "-c", &story.fill(&text(step))]).env("PATH", path).stdin(Stdio::null());
    let done = agents_e2e::Running::start(&mut bash).finish(std::time::Duration::from_secs(300));
    assert!(done.status.success(), "{}\n{}", done.text(), done.stderr);
    story.printed = done.text();
}

#[then(expr = "it prints")]
fn prints(story: &mut Story, step: &Step) {
    assert_eq!(story.printed, story.fill(&text(step)));
}

#[then(expr = "that ends with {int} and says {string}")]
fn ends_with(story: &mut Story, code: i64, says: String) {
    let (answer, says) = (story.answer(), story.fill(&says));
    assert_eq!(answer.exit_code, code, "{}", answer.text);
    assert!(answer.words().contains(&says), "{}", answer.text);
}

/// A table of places in the answer's data and what is there: a JSON value or a text; `<id>` for a full id, `<text>` for
/// any text that is not empty, `~ part` for a text that contains this, `n items`, `>= n`.
#[then("the answer has")]
fn answer_has(story: &mut Story, step: &Step) {
    let answer = story.answer();
    for row in &step.table.as_ref().expect("a table of places").rows {
        let value = answer.data.pointer(&row[0]).unwrap_or(&Value::Null);
        let expected = story.fill(&row[1]);
        let told = || format!("{} is {value}, not {expected}:\n{}", row[0], answer.text);
        assert!(fits(value, &expected), "{}", told());
    }
}

fn fits(value: &Value, expected: &str) -> bool {
    if let Some(part) = expected.strip_prefix("~ ") {
        return value.as_str().map_or_else(|| value.to_string(), str::to_owned).contains(part);
    }
    if let Some(least) = expected.strip_prefix(">= ") {
        return value.as_f64().is_some_and(|number| number >= least.parse::<f64>().unwrap());
    }
    if let Some(count) = expected.strip_suffix(" items") {
        let count: usize = count.parse().unwrap();
        return value.as_array().is_some_and(|items| items.len() == count);
    }
    match expected {
        "<id>" => value.as_str().is_some_and(is_ulid),
        "<text>" => value.as_str().is_some_and(|text| !text.trim().is_empty()),
        _ => value == expected || serde_json::from_str::<Value>(expected).is_ok_and(|json| json == *value),
    }
}

#[then(expr = "{string} names what the answer has at {string}")]
#[when(expr = "{string} names what the answer has at {string}")]
fn named(story: &mut Story, name: String, pointer: String) {
    let answer = story.answer();
    let value = answer.data.pointer(&pointer).and_then(Value::as_str);
    let value = value.unwrap_or_else(|| panic!("no text at {pointer}: {}", answer.text)).to_owned();
    story.names.insert(name, value);
}

#[then(expr = "{string} names the decision about {string}")]
#[when(expr = "{string} names the decision about {string}")]
fn named_decision(story: &mut Story, name: String, about: String) {
    let decisions = story.plan().decisions();
    let question = format!("How about {about}?");
    let found = decisions.iter().find(|decision| decision["question"] == question.as_str());
    let found = found.unwrap_or_else(|| panic!("nothing about {about}: {decisions:#?}"));
    story.names.insert(name, words(found, "decision_id").to_owned());
}

#[when(expr = "{string} names the child plan of {string}")]
fn named_child(story: &mut Story, name: String, about: String) {
    let id = story.child_about(&about).id;
    story.names.insert(name, id);
}

/// The whole tree, flat: type, what is chosen, how sure.
#[then("the tree is")]
fn tree_is(story: &mut Story, step: &Step) {
    let decisions = story.plan().decisions();
    let row = |decision: &Value| {
        let confidence = decision["confidence"].as_f64().map(|c| format!("{c:.2}")).unwrap_or_default();
        vec![words(decision, "type").to_owned(), words(decision, "chosen").to_owned(), confidence]
    };
    let found: Vec<Vec<String>> = decisions.iter().map(row).collect();
    let mut expected = step.table.as_ref().expect("a table of decisions").rows.clone();
    for (row, found) in expected.iter_mut().zip(&found) {
        if row[1] == "<text>" && !found[1].is_empty() {
            row[1].clone_from(&found[1]);
        }
    }
    assert_eq!(found, expected);
}

#[then(expr = "the repository {string} is as it was")]
fn as_it_was(story: &mut Story, name: String) {
    let repo = &story.projects[&name];
    assert_eq!((repo.head(), repo.status()), (story.starts[&name].clone(), vec![]));
}

#[then(expr = "the repository {string} has {int} new commit(s) and nothing else, changing")]
fn committed(story: &mut Story, name: String, commits: usize, step: &Step) {
    let (repo, start) = (&story.projects[&name], &story.starts[&name]);
    let changed = repo.git(&["diff", "--name-status", start, "HEAD"]);
    let changed: Vec<Vec<&str>> = changed.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(changed, step.table.as_ref().expect("a table of files").rows, "{changed:?}");
    let count = repo.git(&["rev-list", "--count", &format!("{start}..HEAD")]);
    assert_eq!((count, repo.status()), (commits.to_string(), vec![]));
}

#[then(expr = "no worktree of the repository {string} is left")]
fn no_worktrees(story: &mut Story, name: String) {
    assert_eq!(story.projects[&name].worktrees(), 0);
}

#[then(expr = "{string} of the repository {string} contains {string}")]
fn contains(story: &mut Story, file: String, name: String, part: String) {
    let now = story.projects[&name].text(&file);
    assert!(now.contains(&part.replace("\\n", "\n")), "{now}");
}

/// The text of a file in the plan's sandbox of a repository.
fn in_sandbox(story: &Story, file: &str) -> Option<String> {
    let sandboxes = story.world.data().join("sandboxes").join(&story.plan);
    let mut folders = std::fs::read_dir(sandboxes).into_iter().flatten().flatten();
    folders.find_map(|folder| std::fs::read_to_string(folder.path().join(file)).ok())
}

#[then(expr = "{string} in the sandbox contains {string}")]
fn sandbox_contains(story: &mut Story, file: String, part: String) {
    let now = in_sandbox(story, &file).unwrap_or_else(|| panic!("no {file} in the sandbox"));
    assert!(now.contains(&part.replace("\\n", "\n")), "{now}");
}

#[then(expr = "there is no {string} in the sandbox")]
fn sandbox_lacks(story: &mut Story, file: String) {
    assert!(in_sandbox(story, "main.py").is_some(), "the sandbox is there");
    assert_eq!(in_sandbox(story, &file), None);
}

#[then(expr = "the plan stands at {string}")]
fn stands_at(story: &mut Story, at: String) {
    story.plan().assert_at(&at);
}

#[when(expr = "{string} is the number the answer has at {string}")]
fn number(story: &mut Story, name: String, pointer: String) {
    let answer = story.answer();
    let value = answer.data.pointer(&pointer).and_then(Value::as_f64);
    let value = value.unwrap_or_else(|| panic!("no number at {pointer}: {}", answer.text));
    story.names.insert(name, value.to_string());
}

#[given(expr = "the actor is {float} sure of what is {string}")]
fn sure(story: &mut Story, confidence: f64, name: String) {
    story.script = story.script.replace(&Value::from(name).to_string(), &confidence.to_string());
}

/// By the events of both: the one was past Execute before the other was made.
#[then(expr = "{string} began after {string} was done")]
fn began_after(story: &mut Story, later: String, earlier: String) {
    let (later, earlier) = (story.fill(&later), story.fill(&earlier));
    let events = agents_e2e::Records::all_events(story.world.data());
    let done = events.iter().position(|(plan, kind, facts)| {
        *plan == earlier
            && kind == "plan.state_changed"
            && facts["to"]["state"] == "complete"
            && facts["phase"] == "execute"
    });
    let made = events.iter().position(|(plan, _, _)| *plan == later);
    assert!(made > done && done.is_some(), "{earlier}: {done:?}, {later}: {made:?}, {events:#?}");
}

#[then(expr = "the summary of {string} says {string}")]
fn summary_says(story: &mut Story, phase: String, part: String) {
    let summary = story.plan().summary(&phase);
    assert!(summary.contains(&part), "{summary}");
}

#[then(expr = "the plan has an event {string}")]
fn has_event(story: &mut Story, kind: String) {
    let events = agents_e2e::Records::events(story.world.data(), &story.plan);
    let kinds: Vec<&String> = events.iter().map(|(kind, _)| kind).collect();
    assert!(kinds.contains(&&kind), "{kinds:?}");
}

/// Counted along the events, which are in the order of the transactions that took and gave back each slot.
#[then(expr = "at most {int} plans were worked on at a time, and {int} at some time")]
fn at_a_time(story: &mut Story, most: usize, reached: usize) {
    let mut at_work = std::collections::BTreeSet::new();
    let mut peak = 0;
    for (plan, kind, facts) in agents_e2e::Records::all_events(story.world.data()) {
        if kind != "plan.state_changed" {
            continue;
        }
        if facts["to"]["state"] == "processing" && facts["awaiting"].is_null() {
            at_work.insert(plan);
        } else {
            at_work.remove(&plan);
        }
        peak = peak.max(at_work.len());
    }
    assert!(peak <= most && peak >= reached, "{peak} plans were worked on at a time");
}

#[when(expr = "{string} names the first checkpoint of the decision about {string}")]
fn named_checkpoint(story: &mut Story, name: String, about: String) {
    named_decision(story, name.clone(), about);
    let artifacts = story.plan().ok("artifacts", &[]).data;
    let decision = &story.names[&name];
    let mut checkpoints = artifacts["checkpoints"].as_array().unwrap().iter();
    let first = checkpoints.find(|checkpoint| checkpoint["decision_id"] == decision.as_str());
    let first = first.unwrap_or_else(|| panic!("no checkpoint of {decision}: {artifacts:#}"));
    story.names.insert(name, words(first, "id").to_owned());
}

#[given(expr = "somebody commits {string} of the repository {string} with {string} as {string}")]
fn somebody_commits(story: &mut Story, file: String, name: String, old: String, new: String) {
    let repo = &story.projects[&name];
    let text = repo.text(&file).replace(&old, &new);
    repo.write(&file, text).commit("later work");
}
