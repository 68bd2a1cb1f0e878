//! An engine in small.

use std::collections::{BTreeMap, BTreeSet};

use agents_actors::FixDiagnostics;
use agents_domain::decision::{Alternative, DecisionType};
use agents_domain::ids::DecisionId;
use agents_domain::plan::{AwaitingKind, Phase, PhaseSummary};
use agents_domain::ports::actor::{
    Actor, ActorFailure, DecisionDraft, KnownDecision, Observation, Request, StepInput, StepOutcome,
    StepOutput,
};
use agents_domain::text::{FileEdit, apply_edits};
use agents_domain::validation::ValidationOutcome;
use serde_json::{Value, json};

use super::{RESOURCE, Server, World};

/// How a person answers a decision, given its draft; `None` lets the proposal stand.
pub type Answer = Box<dyn Fn(&DecisionDraft) -> Option<String>>;

/// An engine in small: commits a step's state and requests, carries these out, goes on.
pub struct Engine {
    pub world: World,
    pub arguments: BTreeMap<String, Value>,
    /// The plan is read-only.
    pub read_only: bool,
    pub decisions: Vec<KnownDecision>,
    pub drafts: Vec<DecisionDraft>,
    pub handover: Value,
    pub invariants: Vec<agents_domain::invariant::Enforced>,
    pub answer: Answer,
    /// Decision, file and text before, of every write.
    pub writes: Vec<(String, String, Option<String>)>,
    /// Every request, as a word and what it is about.
    pub log: Vec<String>,
    /// Requests whose log entry starts with this fail.
    pub fail: Option<String>,
    /// After every step the servers are fresh, and each step is asked twice.
    pub crashes: bool,
    pub steps: usize,
    /// Answers to questions about servers.
    pub replies: Vec<String>,
    pub asked: Vec<(AwaitingKind, String, Vec<String>)>,
    /// Validations that do not pass when Execute is done; given once.
    pub failing: Vec<ValidationOutcome>,
    /// What the plan is asked for.
    pub description: String,
}

/// An engine over these files and servers.
pub fn engine(files: &[(&str, &str)], servers: Vec<Server>) -> Engine {
    Engine::new(World::new(files, servers))
}

impl Engine {
    pub fn new(world: World) -> Self {
        Self {
            world,
            arguments: BTreeMap::new(),
            read_only: false,
            decisions: vec![KnownDecision {
                decision_id: DecisionId::from_ulid(Default::default()),
                key: Some("root".to_owned()),
                decision_type: DecisionType::PromptDefinition,
                question: "What shall be done?".to_owned(),
                chosen_option: "Fix it".to_owned(),
                options: vec!["Fix it".to_owned()],
            }],
            drafts: Vec::new(),
            handover: Value::Null,
            invariants: Vec::new(),
            answer: Box::new(|_| None),
            writes: Vec::new(),
            log: Vec::new(),
            fail: None,
            crashes: false,
            steps: 0,
            replies: Vec::new(),
            asked: Vec::new(),
            failing: Vec::new(),
            description: String::new(),
        }
    }

    /// Both phases; the summaries.
    pub fn both(&mut self) -> (PhaseSummary, PhaseSummary) {
        let strategy = self.run(Phase::Strategize).unwrap();
        (strategy, self.run(Phase::Execute).unwrap())
    }

    pub fn run(&mut self, phase: Phase) -> Result<PhaseSummary, ActorFailure> {
        self.run_actor(&FixDiagnostics, phase)
    }

    /// What the first step of a phase is given.
    pub fn input(&self, phase: Phase) -> StepInput {
        StepInput {
            phase,
            description: self.description.clone(),
            definition_of_done: String::new(),
            arguments: self.arguments.clone(),
            read_only: self.read_only,
            state: Value::Null,
            observations: Vec::new(),
            guidance: Vec::new(),
            handover: self.handover.clone(),
            findings: Vec::new(),
            decisions: self.decisions.clone(),
            invariants: self.invariants.clone(),
            known_failures: Vec::new(),
            estimating: false,
            parent: None,
            children: Vec::new(),
            validations: Vec::new(),
        }
    }

    pub fn run_actor(&mut self, actor: &dyn Actor, phase: Phase) -> Result<PhaseSummary, ActorFailure> {
        let mut state = Value::Null;
        let mut observations = Vec::new();
        let mut guidance = Vec::new();
        let mut findings: Vec<ValidationOutcome> = Vec::new();
        for _ in 0..1000 {
            let input = StepInput {
                state: state.clone(),
                observations: std::mem::take(&mut observations),
                guidance: std::mem::take(&mut guidance),
                findings: findings.clone(),
                ..self.input(phase)
            };
            let mut output = self.step(actor, input.clone())?;
            if self.crashes {
                // Killed before the commit: the step is asked again, by a new process.
                self.world = self.world.restarted();
                let again = self.step(actor, input)?;
                assert_eq!(again, output, "a step that is asked twice gives the same");
                output = again;
            }
            self.steps += 1;
            state = serde_json::from_str(&output.state.to_string()).unwrap();
            for (at, request) in output.requests.into_iter().enumerate() {
                match self.carry_out(request) {
                    Ok(observation) => observations.push(observation),
                    Err(message) => {
                        observations.push(Observation::Failed {
                            request: at,
                            message,
                            error: Default::default(),
                        });
                        break;
                    }
                }
            }
            if self.crashes {
                self.world = self.world.restarted();
            }
            match output.outcome {
                StepOutcome::Continue => {}
                StepOutcome::Done(_) if phase == Phase::Execute && !self.failing.is_empty() => {
                    findings = std::mem::take(&mut self.failing);
                }
                StepOutcome::Done(summary) => {
                    self.handover = state;
                    return Ok(summary);
                }
                StepOutcome::TooTight { reason, .. } => panic!("too tight: {reason}"),
                StepOutcome::Ask { kind, question, options } => {
                    self.asked.push((kind, question, options));
                    guidance = vec![self.replies.remove(0)];
                }
            }
        }
        panic!("the actor does not end");
    }

    fn step(&self, actor: &dyn Actor, input: StepInput) -> Result<StepOutput, ActorFailure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(actor.step(input, &self.world))
    }

    fn carry_out(&mut self, request: Request) -> Result<Observation, String> {
        let entry = match &request {
            Request::RecordDecision(draft) => format!("decide {}", draft.key),
            Request::Tool { call_id, .. } => format!("tool {call_id}"),
            Request::Checkpoint { decision, .. } => format!("checkpoint {decision}"),
            Request::Undo { decision } => format!("undo {decision}"),
        };
        self.log.push(entry.clone());
        if self.fail.as_ref().is_some_and(|fail| entry.starts_with(fail)) {
            return Err("refused by the test".to_owned());
        }
        match request {
            Request::RecordDecision(draft) => self.record(draft),
            Request::Tool { .. } if self.read_only => Err("the plan is read-only".to_owned()),
            Request::Tool { call_id, args, decision, .. } => {
                let result = self.apply(&args, &decision.ok_or("a write needs a decision")?)?;
                Ok(Observation::Tool { call_id, result })
            }
            Request::Checkpoint { decision, .. } => Ok(Observation::Checkpointed { decision }),
            Request::Undo { decision } => self.undo(decision),
        }
    }

    fn record(&mut self, draft: DecisionDraft) -> Result<Observation, String> {
        check_draft(&draft);
        let known = |key: &str| self.decisions.iter().find(|d| d.key.as_deref() == Some(key)).cloned();
        for key in draft.depends_on.iter().chain(&draft.parent) {
            known(key).ok_or_else(|| format!("there is no decision {key}"))?;
        }
        if let Some(known) = known(&draft.key) {
            return Ok(Observation::Decided(known));
        }
        let answer = (self.answer)(&draft);
        let options: Vec<String> = draft.alternatives.iter().map(|a| a.option.clone()).collect();
        let decision = KnownDecision {
            decision_id: DecisionId::from_ulid(Default::default()),
            key: Some(draft.key.clone()),
            decision_type: draft.decision_type,
            question: draft.question.clone(),
            chosen_option: answer.unwrap_or_else(|| options[draft.chosen].clone()),
            options,
        };
        self.decisions.push(decision.clone());
        self.drafts.push(draft);
        Ok(Observation::Decided(decision))
    }

    fn apply(&mut self, args: &Value, decision: &str) -> Result<Value, String> {
        assert_eq!(args["resource"], json!(RESOURCE));
        let edits: Vec<FileEdit> = serde_json::from_value(args["edits"].clone()).unwrap();
        let mut files = self.world.files.lock().unwrap();
        let mut after = files.clone();
        for edit in &edits {
            match edit {
                FileEdit::Edit { path, edits } => {
                    let text = after.get_mut(path).ok_or_else(|| format!("{path} is not there"))?;
                    *text = apply_edits(text, edits).map_err(|error| error.to_string())?;
                }
                FileEdit::Create { path, text } => {
                    let old = after.insert(path.clone(), text.clone());
                    old.map_or(Ok(()), |_| Err(format!("{path} is there already")))?;
                }
                FileEdit::Write { path, content } => {
                    let text = String::from_utf8(content.as_bytes().to_vec()).map_err(|e| e.to_string())?;
                    after.insert(path.clone(), text);
                }
                FileEdit::Rename { path, to } => {
                    let text = after.remove(path).ok_or_else(|| format!("{path} is not there"))?;
                    after.insert(to.clone(), text);
                }
                FileEdit::Delete { path } => _ = after.remove(path),
            }
        }
        let paths: BTreeSet<String> = files.keys().chain(after.keys()).cloned().collect();
        let mut changed = Vec::new();
        for path in paths {
            let kind = match (files.get(&path), after.get(&path)) {
                (before, now) if before == now => continue,
                (None, _) => "added",
                (_, None) => "deleted",
                _ => "modified",
            };
            self.writes.push((decision.to_owned(), path.clone(), files.get(&path).cloned()));
            changed.push(json!({"path": path, "kind": kind}));
        }
        *files = after;
        Ok(json!({"files": changed}))
    }

    fn undo(&mut self, decision: String) -> Result<Observation, String> {
        let mut files = self.world.files.lock().unwrap();
        while let Some(at) = self.writes.iter().rposition(|(by, ..)| *by == decision) {
            let (_, path, before) = self.writes.remove(at);
            if self.writes[at..].iter().any(|(_, other, _)| *other == path) {
                return Err(format!("{path} was changed by another decision since"));
            }
            match before {
                Some(text) => _ = files.insert(path, text),
                None => _ = files.remove(&path),
            }
        }
        Ok(Observation::Undone { decision })
    }

    pub fn draft(&self, key: &str) -> &DecisionDraft {
        self.drafts.iter().find(|draft| draft.key == key).unwrap_or_else(|| panic!("no decision {key}"))
    }

    pub fn chosen(&self, key: &str) -> String {
        let draft = self.draft(key);
        draft.alternatives[draft.chosen].option.clone()
    }

    pub fn options(&self, key: &str) -> Vec<String> {
        self.draft(key).alternatives.iter().map(|alternative| alternative.option.clone()).collect()
    }
}

/// What holds for every decision: DEC-002, DEC-015.
fn check_draft(draft: &DecisionDraft) {
    let options: BTreeSet<&str> =
        draft.alternatives.iter().map(|a: &Alternative| a.option.as_str()).collect();
    assert_eq!(options.len(), draft.alternatives.len(), "options differ: {draft:?}");
    assert!(draft.chosen < draft.alternatives.len());
    assert!(draft.alternatives.len() >= 2, "a decision has an alternative: {draft:?}");
    assert!((0.0..=1.0).contains(&draft.confidence.unwrap()));
    assert!(!draft.rationale.is_empty() && draft.question.contains('?'));
    assert!(draft.resources.len() <= 200);
}
