//! Plans whose actors are models, with a server of models on this machine.

use agents_model_server::Server;
use serde_json::{Value, json};

use crate::{PlanHandle, World};

/// The key the tests give, long enough to look like one.
pub const KEY: &str = "sk-test-0123456789abcdefghij";

impl World {
    /// `openai/...` means this server.
    pub fn openai(&self, server: &Server) {
        self.ok(&["config", "set", "provider.openai.base-url", &server.base()]);
        self.ok(&["config", "set", "provider.openai.api-key", KEY]);
    }

    /// `anthropic/...` means this server.
    pub fn anthropic(&self, server: &Server) {
        self.ok(&["config", "set", "provider.anthropic.base-url", &server.base()]);
        self.ok(&["config", "set", "provider.anthropic.api-key", KEY]);
    }

    /// Registers `local/change`, whose actors are this one. `more`: further lines of its file.
    pub fn model_action(&self, actor: &str, more: &str) {
        let file = self.path("change.yaml");
        let text = format!(
            "name: local/change\ndescription: Make the greeting polite\ndefinition_of_done: It says please\n\
             strategy_actor: {actor}\nexecution_actor: {actor}\n{more}"
        );
        std::fs::write(&file, text).expect("a file can be written");
        self.ok(&["action", "create", "--config", file.to_str().expect("the path is text")]);
    }

    /// Uses `local/change` on a project and follows the plan until it pauses or ends.
    ///
    /// # Panics
    /// When there is no plan.
    pub fn change(&self, project: &str, profile: &str, more: &[&str]) -> PlanHandle<'_> {
        let project = format!("local/{project}");
        let mut args = vec!["plan", "use", "local/change", &project, "--automation-profile", profile];
        args.extend(more);
        let answer = self.call(&args);
        let id = answer.data["plan_id"].as_str().unwrap_or_else(|| panic!("no plan: {}", answer.text));
        PlanHandle::new(self, id)
    }
}

/// A decision as a model records it.
pub fn decision(key: &str, kind: &str, question: &str, options: &[&str], chosen: usize) -> Value {
    let all: Vec<Value> =
        options.iter().map(|option| json!({ "option": option, "description": "as it says" })).collect();
    json!({ "tool": "record_decision", "args": {
        "key": key, "type": kind, "question": question, "options": all, "chosen": options[chosen],
        "confidence": 0.9, "rationale": "the task says so",
    } })
}

/// The end of a phase.
pub fn finish(headline: &str) -> Value {
    json!({ "tool": "finish", "args": { "headline": headline, "lines": [] } })
}

/// A file written whole, under a decision.
pub fn write(path: &str, text: &str, under: &str) -> Value {
    json!({ "tool": "builtin/apply-edits", "args": {
        "resource": "${find:Resource local/app \\(id ([0-9A-Z]{26})}",
        "edits": [{ "op": "write", "path": path, "content": text }], "decision": under,
    } })
}

/// A whole plan that changes `hello.py`: one strategy decision, one choice of how, one write.
pub fn polite() -> Value {
    json!([
        { "when": { "contains": ["Decide on the strategy"], "turns": 0 },
          "text": "Let me see.", "calls": [decision("greeting", "strategy_choice", "How is it made polite?", &["Say please", "Bow"], 0)] },
        { "when": { "contains": ["Decide on the strategy"], "turns": 1 }, "calls": [finish("Say please")] },
        { "when": { "contains": ["Carry this plan out"], "turns": 0 }, "calls": [
            decision("how", "implementation_choice", "Where does please go?", &["At the end", "At the beginning"], 0),
            write("hello.py", "print('hello, please')\n", "how")] },
        { "when": { "contains": ["Carry this plan out"], "turns": 1 }, "calls": [finish("It says please now")] },
    ])
}
