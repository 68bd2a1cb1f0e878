//! A plan as a test speaks of it.

use serde_json::Value;

use crate::{Envelope, Records, World};

/// A plan of a world.
#[derive(Debug, Clone)]
pub struct PlanHandle<'w> {
    world: &'w World,
    /// Its full id.
    pub id: String,
}

impl<'w> PlanHandle<'w> {
    /// A plan by its id.
    ///
    /// # Panics
    /// When it is no full id.
    pub fn new(world: &'w World, id: &str) -> Self {
        assert!(crate::is_ulid(id), "`{id}` is no id of a plan");
        Self { world, id: id.to_owned() }
    }

    /// `agents plan <verb> <id> <more>`, whatever it answers.
    pub fn call(&self, verb: &str, more: &[&str]) -> Envelope {
        self.world.call(&self.args(verb, more))
    }

    /// The same, where it must succeed.
    pub fn ok(&self, verb: &str, more: &[&str]) -> Envelope {
        self.world.ok(&self.args(verb, more))
    }

    /// The same, where it must be refused.
    pub fn refused(&self, verb: &str, more: &[&str]) -> Envelope {
        self.world.refused(&self.args(verb, more))
    }

    /// The words of a command about it.
    pub fn args<'a>(&'a self, verb: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let mut args = vec!["plan", verb, self.id.as_str()];
        args.extend(more);
        args
    }

    /// What `plan status` tells; an errored plan tells it with an error.
    pub fn status(&self) -> Value {
        self.call("status", &[]).data
    }

    /// Where it stands: `execute/complete`, `strategize/processing+decision` and the like.
    pub fn at(&self) -> String {
        let status = self.status();
        let word = |key: &str| status[key].as_str().unwrap_or_else(|| panic!("no {key}: {status}"));
        let awaiting = status["awaiting"]["kind"].as_str().map(|kind| format!("+{kind}")).unwrap_or_default();
        format!("{}/{}{awaiting}", word("phase"), word("state"))
    }

    /// Checks where it stands, with all that is known of it when that is wrong.
    ///
    /// # Panics
    /// When it stands elsewhere.
    pub fn assert_at(&self, expected: &str) {
        let at = self.at();
        if at != expected {
            let errors = self.call("errors", &[]).text;
            panic!("the plan is at {at}, not at {expected}:\n{:#}\n{errors}", self.status());
        }
    }

    /// Applies it.
    pub fn apply(&self) -> Envelope {
        self.ok("apply", &["--yes"])
    }

    /// Every decision of the tree, the root first, parents before children.
    pub fn decisions(&self) -> Vec<Value> {
        let tree = self.ok("tree", &[]);
        let mut flat = Vec::new();
        flatten(&tree.data["tree"], &mut flat);
        flat
    }

    /// The decisions of a type.
    pub fn decisions_of(&self, decision_type: &str) -> Vec<Value> {
        self.decisions().into_iter().filter(|decision| decision["type"] == decision_type).collect()
    }

    /// The one strategy decision whose question speaks of a rule.
    ///
    /// # Panics
    /// When there is none.
    pub fn strategy(&self, rule: &str) -> Value {
        let decisions = self.decisions();
        let about = |decision: &&Value| {
            decision["question"].as_str().is_some_and(|question| question.contains(rule))
                && matches!(decision["type"].as_str(), Some("strategy_choice" | "user_intervention"))
        };
        decisions.iter().find(about).unwrap_or_else(|| panic!("nothing about {rule}: {decisions:#?}")).clone()
    }

    /// All there is to know of a decision.
    pub fn explain(&self, decision: &Value) -> Value {
        let id = decision["decision_id"].as_str().expect("a decision has an id");
        self.world.ok(&["plan", "explain", id]).data
    }

    /// The headline and lines of a phase's summary, one text.
    pub fn summary(&self, phase: &str) -> String {
        let status = self.status();
        let summary = &status["summaries"][phase];
        let mut text = summary["headline"].as_str().unwrap_or_default().to_owned();
        for line in summary["lines"].as_array().into_iter().flatten() {
            text.push('\n');
            text.push_str(line.as_str().unwrap_or_default());
        }
        text
    }

    /// What the store holds of it.
    pub fn records(&self) -> Records {
        Records::of(self.world.data(), &self.id)
    }
}

fn flatten(node: &Value, flat: &mut Vec<Value>) {
    if node.is_null() {
        return;
    }
    let mut own = node.clone();
    let children = own.as_object_mut().and_then(|own| own.remove("children")).unwrap_or_default();
    flat.push(own);
    for child in children.as_array().into_iter().flatten() {
        flatten(child, flat);
    }
}
