//! An actor that plays a script, so that what runs actors can be tested without one that thinks.
//!
//! A script is JSON, given to [`Scripted::new`] or as the plan's argument `script`:
//!
//! ```json
//! {"strategize": [{"outcome": {"done": {"headline": "decided", "lines": [], "facts": null}}}],
//!  "execute": [
//!    {"requests": [{"request": "tool", "call_id": "1", "tool": "builtin/apply-edits", "decision": "fix/a",
//!                   "args": {"resource": "${resource:local/repo}", "edits": []}}]},
//!    {"expect": {"observations": [{"observed": "tool", "call_id": "1"}]},
//!     "outcome": {"done": {"headline": "done", "lines": [], "facts": null}}}]}
//! ```
//!
//! `${resource}` in any text stands for the id of the first workspace, `${resource:NAME}` for that of a named one. A
//! script that is played to its end is done.

use std::collections::BTreeMap;

use agents_domain::QualifiedName;
use agents_domain::language_server::binding::Lent;
use agents_domain::plan::{Phase, PhaseSummary};
use agents_domain::ports::BoxFuture;
use agents_domain::ports::actor::{
    Actor, ActorFailure, ActorHost, Progress, Request, StepCost, StepInput, StepOutcome, StepOutput,
};
use serde::Deserialize;
use serde_json::{Value, json};

/// What to do, step by step, in each phase.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The steps of Strategize.
    #[serde(default)]
    pub strategize: Vec<Step>,
    /// The steps of Execute.
    #[serde(default)]
    pub execute: Vec<Step>,
    /// Which language servers it is lent, and for what, as in an actor's definition.
    #[serde(default)]
    pub lsp: Value,
    /// See `lsp`.
    #[serde(default)]
    pub lsp_capabilities: Value,
    /// The skills whose tools it may call, as in an actor's definition.
    #[serde(default)]
    pub skills: Vec<QualifiedName>,
    /// The steps that estimate, when it is the estimation actor.
    #[serde(default)]
    pub estimate: Vec<Step>,
    /// The steps of Strategize when it is done again, told by the first step getting guidance; `strategize` unless given.
    #[serde(default)]
    pub again: Vec<Step>,
    /// The scripts of plans that are asked for something else, by their whole prompt.
    #[serde(default)]
    pub prompts: std::collections::BTreeMap<String, Script>,
}

/// One step of a script.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    /// What the step must be given; otherwise it fails and says what it got.
    pub expect: Expect,
    /// The step fails with this.
    pub fail: Option<ActorFailure>,
    /// What is to be done.
    pub requests: Vec<Request>,
    /// What is to be done instead where a decision says something; the first case that fits is taken.
    pub cases: Vec<Case>,
    /// How far the phase is.
    pub progress: Option<Progress>,
    /// Whether there is more; `continue` unless given.
    pub outcome: Option<StepOutcome>,
    /// What it costs.
    pub cost: StepCost,
}

/// Requests for when a decision stands with an option.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The key of the decision.
    pub decision: String,
    /// What it says.
    pub chosen: String,
    /// What is to be done then.
    pub requests: Vec<Request>,
}

/// What a step must be given. A value matches when everything it says is there: objects may have more members, lists
/// have the same length.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    /// What came of the last step's requests.
    pub observations: Option<Value>,
    /// What people said.
    pub guidance: Option<Value>,
    /// The plan's decisions.
    pub decisions: Option<Value>,
    /// What failed before.
    pub known_failures: Option<Value>,
    /// What a child plan is told of its parent.
    pub parent: Option<Value>,
    /// The child plans.
    pub children: Option<Value>,
    /// The validations that are to be fixed.
    pub findings: Option<Value>,
    /// The validations that will be run.
    pub validations: Option<Value>,
    /// The names of the tools it may call, all of them besides those of language servers and those that come with the program.
    pub tools: Option<Vec<String>>,
    /// The names of the Agent Skills it may follow.
    pub agent_skills: Option<Vec<String>>,
    /// The whole texts of files of the first workspace, by path; `null` for a file that is not there.
    pub files: std::collections::BTreeMap<String, Option<String>>,
}

/// Plays a script.
#[derive(Debug, Clone, Default)]
pub struct Scripted {
    script: Option<Value>,
}

impl Scripted {
    /// Plays this script. Whether it makes sense is said by the first step.
    pub fn new(script: Value) -> Self {
        Self { script: Some(script) }
    }

    /// Plays the script in the plan's argument `script`: the JSON itself or a text that holds it.
    pub fn from_arguments() -> Self {
        Self::default()
    }

    /// The script as far as it can be read.
    fn script_of(&self, arguments: &BTreeMap<String, Value>) -> Value {
        match self.script.as_ref().or_else(|| arguments.get("script")) {
            Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
            Some(script) => script.clone(),
            None => Value::Null,
        }
    }

    fn play(&self, input: &StepInput, host: &dyn ActorHost) -> Result<StepOutput, ActorFailure> {
        let argument = || input.arguments.get("script").cloned();
        let script = self.script.clone().or_else(argument).ok_or_else(|| {
            failure("the scripted actor has no script: give one in the argument `script`".to_owned())
        })?;
        let script = match script {
            Value::String(text) => serde_json::from_str(&text)
                .map_err(|error| failure(format!("argument `script` is not JSON: {error}")))?,
            script => script,
        };
        let mut script: Script = serde_json::from_value(fill(script, host)?)
            .map_err(|error| failure(format!("the script does not fit: {error}")))?;
        if let Some(own) = script.prompts.remove(&input.description) {
            script = own;
        }
        let begun = input.state.get("step").is_some();
        let again = match input.state.get("again") {
            Some(again) => again == true,
            None => !begun && !input.guidance.is_empty() && !script.again.is_empty(),
        };
        let steps = match input.phase {
            _ if input.estimating => script.estimate,
            Phase::Strategize if again => script.again,
            Phase::Strategize => script.strategize,
            Phase::Execute | Phase::Apply => script.execute,
        };
        let at = input.state.get("step").and_then(Value::as_u64).unwrap_or(0);
        let index = usize::try_from(at).unwrap_or(usize::MAX);
        let Some(step) = steps.get(index).cloned() else {
            let headline = format!("played {} steps", steps.len());
            let outcome = StepOutcome::Done(PhaseSummary { headline, ..PhaseSummary::default() });
            return Ok(StepOutput {
                state: input.state.clone(),
                requests: Vec::new(),
                progress: None,
                outcome,
                cost: StepCost::default(),
            });
        };
        step.expect.check(input, host).map_err(|what| failure(format!("step {at}: {what}")))?;
        match step.fail {
            Some(fail) => Err(fail),
            None => Ok(StepOutput {
                state: json!({ "step": at + 1, "again": again }),
                requests: requests(step.requests, step.cases, input),
                progress: step.progress,
                outcome: step.outcome.unwrap_or(StepOutcome::Continue),
                cost: step.cost,
            }),
        }
    }
}

impl Actor for Scripted {
    fn step<'a>(
        &'a self,
        input: StepInput,
        host: &'a dyn ActorHost,
    ) -> BoxFuture<'a, Result<StepOutput, ActorFailure>> {
        Box::pin(async move { self.play(&input, host) })
    }

    fn skills(&self, arguments: &BTreeMap<String, Value>) -> Vec<QualifiedName> {
        serde_json::from_value(self.script_of(arguments)["skills"].take()).unwrap_or_default()
    }

    fn lent(&self, arguments: &BTreeMap<String, Value>) -> Result<Lent, String> {
        let script = self.script_of(arguments);
        Lent::read(&script["lsp"], &script["lsp_capabilities"])
    }
}

impl Expect {
    fn check(&self, input: &StepInput, host: &dyn ActorHost) -> Result<(), String> {
        let got = [
            ("observations", &self.observations, serde_json::to_value(&input.observations)),
            ("guidance", &self.guidance, serde_json::to_value(&input.guidance)),
            ("decisions", &self.decisions, serde_json::to_value(&input.decisions)),
            ("known_failures", &self.known_failures, serde_json::to_value(&input.known_failures)),
            ("parent", &self.parent, serde_json::to_value(&input.parent)),
            ("children", &self.children, serde_json::to_value(&input.children)),
            ("findings", &self.findings, serde_json::to_value(&input.findings)),
            ("validations", &self.validations, serde_json::to_value(&input.validations)),
        ];
        for (name, expected, got) in got {
            let got = got.map_err(|error| error.to_string())?;
            if let Some(expected) = expected
                && !matches(expected, &got)
            {
                return Err(format!("{name} were expected to be {expected}, they are {got}"));
            }
        }
        let named = host.tools().into_iter().map(|tool| tool.name);
        let tools = || {
            named
                .filter(|name| !name.starts_with("lsp/") && !name.starts_with("builtin/"))
                .collect::<Vec<_>>()
        };
        let skills = || host.agent_skills().into_iter().map(|skill| skill.name).collect::<Vec<_>>();
        let offered = [("tools", &self.tools, tools()), ("agent skills", &self.agent_skills, skills())];
        for (name, expected, got) in offered {
            if expected.as_ref().is_some_and(|expected| *expected != got) {
                return Err(format!("{name} were expected to be {expected:?}, they are {got:?}"));
            }
        }
        for (path, expected) in &self.files {
            let resource = host.workspaces().first().ok_or("there is no workspace")?.resource_id;
            let got =
                host.read(resource, path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            if &got != expected {
                return Err(format!("file {path} was expected to be {expected:?}, it is {got:?}"));
            }
        }
        Ok(())
    }
}

fn requests(otherwise: Vec<Request>, cases: Vec<Case>, input: &StepInput) -> Vec<Request> {
    let stands = |case: &Case| {
        let mut decisions = input.decisions.iter();
        decisions.any(|d| d.key.as_ref() == Some(&case.decision) && d.chosen_option == case.chosen)
    };
    cases.into_iter().find(stands).map_or(otherwise, |case| case.requests)
}

fn matches(expected: &Value, got: &Value) -> bool {
    match (expected, got) {
        (Value::Object(expected), Value::Object(got)) => {
            expected.iter().all(|(key, value)| got.get(key).is_some_and(|got| matches(value, got)))
        }
        (Value::Array(expected), Value::Array(got)) => {
            expected.len() == got.len()
                && expected.iter().zip(got).all(|(expected, got)| matches(expected, got))
        }
        (expected, got) => expected == got,
    }
}

/// Puts resource ids in the place of their variables.
fn fill(value: Value, host: &dyn ActorHost) -> Result<Value, ActorFailure> {
    Ok(match value {
        Value::String(text) => {
            let name = match text.strip_prefix("${resource").and_then(|rest| rest.strip_suffix('}')) {
                Some("") => None,
                Some(name) if name.starts_with(':') => Some(name[1..].to_owned()),
                _ => return Ok(Value::String(text)),
            };
            let mut workspaces = host.workspaces().iter();
            let found = workspaces.find(|workspace| name.as_ref().is_none_or(|name| *name == workspace.name));
            let found = found.ok_or_else(|| failure(format!("`{text}` names no workspace of the plan")))?;
            Value::String(found.resource_id.to_string())
        }
        Value::Array(values) => {
            Value::Array(values.into_iter().map(|value| fill(value, host)).collect::<Result<_, _>>()?)
        }
        Value::Object(members) => Value::Object(
            members
                .into_iter()
                .map(|(key, value)| Ok((key, fill(value, host)?)))
                .collect::<Result<_, ActorFailure>>()?,
        ),
        other => other,
    })
}

fn failure(message: String) -> ActorFailure {
    ActorFailure { message, category: "actor".to_owned(), transient: false, hints: Vec::new() }
}
