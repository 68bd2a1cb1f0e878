//! An actor that calls tools, one a step, and keeps what came of each.

use std::sync::{Arc, Mutex};

use agents_domain::plan::{Phase, PhaseSummary};
use agents_domain::ports::BoxFuture;
use agents_domain::ports::actor::{
    Actor, ActorFailure, ActorHost, Observation, Request, StepCost, StepInput, StepOutcome, StepOutput,
};
use agents_domain::ports::tool::{LocalTool, ToolSpec};
use serde_json::{Value, json};

use crate::harness::Bench;

/// A machine with the programs of this one, and a home of its own.
pub struct Programs(pub std::path::PathBuf);

impl agents_engine::Surroundings for Programs {
    fn variable(&self, name: &str) -> Option<String> {
        match name {
            "PATH" => Some("/usr/local/bin:/usr/bin:/bin".to_owned()),
            "HOME" => Some(self.0.display().to_string()),
            "SECRET_TOKEN" => Some("must-not-be-seen".to_owned()),
            _ => None,
        }
    }

    fn run(&self, program: &std::path::Path, _: &[&str]) -> Result<String, String> {
        Err(format!("{} is not run", program.display()))
    }
}

/// Gives an engine this machine's programs.
pub fn with_programs(bench: &mut Bench) {
    let home = bench.dir.path().join("home");
    std::fs::create_dir_all(home.join(".ssh")).unwrap();
    std::fs::write(home.join(".ssh/id"), "private\n").unwrap();
    bench.engine = bench.engine.clone().with_surroundings(Arc::new(Programs(home)));
}

/// Whether commands can be confined here; without it some facts cannot be seen.
pub fn has_bwrap() -> bool {
    std::path::Path::new("/usr/bin/bwrap").exists()
}

#[derive(Default)]
pub struct Kept {
    pub observed: Mutex<Vec<Observation>>,
    /// The tools that were there, in Strategize and in Execute.
    pub offered: Mutex<Vec<(Phase, Vec<ToolSpec>)>>,
}

struct Caller {
    calls: Vec<(String, Value)>,
    kept: Arc<Kept>,
    local: Vec<LocalTool>,
}

fn decision(key: &str, kind: &str, parent: Value) -> Request {
    serde_json::from_value(json!({
        "request": "record_decision", "key": key, "decision_type": kind, "parent": parent,
        "question": "What now?", "chosen": 0, "alternatives": [{ "option": "Act" }, { "option": "Leave alone" }],
        "confidence": 0.95, "rationale": "because", "reasoning": null, "resources": [], "depends_on": [],
        "context": null,
    }))
    .unwrap()
}

impl Actor for Caller {
    fn local_tools(&self) -> Vec<LocalTool> {
        self.local.clone()
    }

    fn step<'a>(
        &'a self,
        input: StepInput,
        host: &'a dyn ActorHost,
    ) -> BoxFuture<'a, Result<StepOutput, ActorFailure>> {
        let at = input.state["at"].as_u64().unwrap_or(0);
        if at == 0 {
            self.kept.offered.lock().unwrap().push((input.phase, host.tools()));
        }
        let index = usize::try_from(at).unwrap();
        let (requests, outcome) = match input.phase {
            Phase::Strategize => {
                let done = PhaseSummary { headline: "decided".to_owned(), ..PhaseSummary::default() };
                (vec![decision("strategy/x", "strategy_choice", Value::Null)], StepOutcome::Done(done))
            }
            _ if index == 0 => {
                (vec![decision("act/x", "implementation_choice", json!("strategy/x"))], StepOutcome::Continue)
            }
            _ => {
                if index > 1 {
                    self.kept.observed.lock().unwrap().extend(input.observations.clone());
                }
                match self.calls.get(index - 1) {
                    None => {
                        let done = PhaseSummary { headline: "done".to_owned(), ..PhaseSummary::default() };
                        (Vec::new(), StepOutcome::Done(done))
                    }
                    Some((tool, args)) => {
                        let call = Request::Tool {
                            call_id: at.to_string(),
                            tool: tool.clone(),
                            args: args.clone(),
                            decision: Some("act/x".to_owned()),
                        };
                        (vec![call], StepOutcome::Continue)
                    }
                }
            }
        };
        let state = json!({ "at": at + 1 });
        Box::pin(async move {
            Ok(StepOutput { state, requests, progress: None, outcome, cost: StepCost::default() })
        })
    }
}

/// What came of the calls, each the result or `{"failed": message, "error": kind}`, with the plan.
pub struct Called {
    pub bench: Bench,
    pub plan: String,
    pub kept: Arc<Kept>,
}

impl Called {
    /// Calls tools one after the other in Execute, under one decision.
    pub fn on(files: &[(&str, &str)], calls: &[(&str, Value)]) -> Self {
        Self::with(files, calls, "", "trusted", |_| {})
    }

    /// The same under more lines in the action, another profile, and a repository that is prepared first.
    pub fn with(
        files: &[(&str, &str)],
        calls: &[(&str, Value)],
        action: &str,
        profile: &str,
        prepare: impl FnOnce(&mut Bench),
    ) -> Self {
        Self::with_local(files, calls, &[], (action, profile), prepare)
    }

    /// The same for an actor with tools of its own.
    pub fn with_local(
        files: &[(&str, &str)],
        calls: &[(&str, Value)],
        local: &[LocalTool],
        (action, profile): (&str, &str),
        prepare: impl FnOnce(&mut Bench),
    ) -> Self {
        let kept = Arc::new(Kept::default());
        let calls = calls.iter().map(|(tool, args)| ((*tool).to_owned(), args.clone())).collect();
        let actor: Arc<dyn Actor> = Arc::new(Caller { calls, kept: kept.clone(), local: local.to_vec() });
        let mut bench = Bench::new(files, &[("test/caller", actor)]);
        prepare(&mut bench);
        bench.action("local/act", "test/caller", "test/caller", action);
        let plan = bench.plan("local/act", profile);
        Self { bench, plan, kept }
    }

    /// What came of a call.
    pub fn result(&self, at: usize) -> Value {
        let observed = self.kept.observed.lock().unwrap();
        let got = observed.get(at).unwrap_or_else(|| {
            panic!("call {at} was not made: {:?}; {}", *observed, self.bench.status(&self.plan))
        });
        match got {
            Observation::Tool { result, .. } => result.clone(),
            Observation::Failed { message, error, .. } => json!({ "failed": message, "error": error }),
            other => json!(other),
        }
    }

    /// The message of a call that failed, whichever way.
    pub fn refused(&self, at: usize) -> String {
        let result = self.result(at);
        let text = result["failed"].as_str().or(result["error"].as_str());
        text.unwrap_or_else(|| panic!("call {at} was carried out: {result}")).to_owned()
    }

    /// The text of a file in the sandbox.
    pub fn text(&self, path: &str) -> Option<String> {
        let roots = self.bench.dir.path().join("data/sandboxes").join(&self.plan);
        let root = std::fs::read_dir(roots).unwrap().flatten().map(|entry| entry.path()).find(|path| {
            path.file_name().is_some_and(|name| !name.to_string_lossy().starts_with('.')) && path.is_dir()
        });
        std::fs::read_to_string(root.unwrap().join(path)).ok()
    }

    /// The plan's difference, by path.
    pub fn changed(&self) -> Vec<String> {
        let diff = self.bench.ok("plan/diff", json!({ "plan": self.plan }));
        let files = diff["files"].as_array().cloned().unwrap_or_default();
        files.iter().filter_map(|file| file["path"].as_str().map(str::to_owned)).collect()
    }
}
