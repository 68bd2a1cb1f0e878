//! The execution: group by group, rounds of edits, each checked before the next.
//!
//! The state names what comes next, and changes before any long piece of work, so that a step that is cut short (or
//! asked twice after a crash) does that work again and nothing else. One group goes through these stages:
//!
//! ```text
//! Looking -> Deciding -> Applying -> Verifying -> Applying -> ... -> Verifying -> Looking (next group)
//!                 \-> Planning -/        \-> Undoing -> Looking
//! ```

mod checking;
mod reading;
mod response;

use std::collections::{BTreeMap, BTreeSet};

use agents_domain::ids::ResourceId;
use agents_domain::plan::AwaitingKind;
use agents_domain::ports::actor::{
    ActorFailure, ActorHost, ActorWorkspace, KnownDecision, Observation, Progress, Request, StepCost,
    StepInput, StepOutcome, StepOutput,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::baseline::{Answers, HANDOVER_VERSION, Handover, Overlay, Prints};
use super::group::{PlannedGroup, PlannedOption, Standing};
use super::kept::Kept;
use super::look;
use super::outcome::{self, GroupResult, Outcome};
use super::propose::MAX_PLACES;
use super::record::{self, How, Trouble};
use super::round::{self, Mode, Round, RoundOf, Tally};
use super::source::Need;
use super::strategize::{GO_ON, TRY_AGAIN, says_go_on, unused_words};
use super::texts::Texts;
use super::verify::{Known, Problem, SyntaxErrors};
use super::{Halt, clamp, from_state, internal, to_state};
use crate::common::first_line;

pub(super) use reading::drop_removed;
use reading::{call_id, file_events, made_by, nothing_to_do, silence};

/// Where Execute is.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct State {
    /// Index of the present group.
    cursor: usize,
    stage: Stage,
    /// What servers said of files that the strategy had not seen, before their first edit.
    pub late: Overlay,
    /// What they say since fixes were kept, where it differs.
    pub accepted: Overlay,
    /// Files that kept fixes touched.
    pub touched: BTreeMap<ResourceId, BTreeSet<String>>,
    /// One for each group before the present one.
    pub results: Vec<GroupResult>,
    /// Servers that a person said to go on without.
    without: BTreeSet<String>,
    /// What is to be said at the end.
    pub notes: Vec<String>,
    /// What people said that could not be used.
    pub words: Vec<String>,
    /// How often fixes for validations were asked for and tried.
    #[serde(default)]
    answered: u32,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
enum Stage {
    /// At the present group's first round.
    #[default]
    Looking,
    /// Its server does not answer; a person was asked.
    Asked { server: String },
    /// How the group is applied is being decided; the edits are ready.
    Deciding { work: Box<Work> },
    /// The first round is made again, as a person chose.
    Planning { work: Box<Work> },
    /// The edits of a round are being applied.
    Applying { work: Box<Work> },
    /// They are applied.
    Verifying { work: Box<Work> },
    /// The group is kept: a round of it could not be applied, those before stay.
    Keeping { work: Box<Work>, message: String },
    /// The group's edits are being taken back.
    Undoing { work: Box<Work>, problems: Vec<Problem> },
    /// The edits of a finished group are being taken back, because a validation did not pass.
    TakingBack { group: usize, why: String },
    /// They could not be taken back.
    Stuck { work: Box<Work>, message: String },
}

/// A group that is being applied.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Work {
    /// Index of the option.
    option: usize,
    mode: Mode,
    /// From 1.
    round: u32,
    /// The present round.
    current: Round,
    /// Its files.
    touching: BTreeSet<String>,
    /// Files of all rounds applied.
    touched: BTreeSet<String>,
    /// Findings whose fix did not help.
    stuck: Tally,
    /// Findings that edits were applied for.
    applied: u32,
    /// Syntax errors of the touched files before the group.
    syntax: BTreeMap<String, SyntaxErrors>,
}

/// One step.
pub(super) async fn step(input: &StepInput, host: &dyn ActorHost) -> Result<StepOutput, ActorFailure> {
    if input.handover.is_null() {
        return Err(internal("the strategy actor left no state to execute".to_owned()));
    }
    let handover: Handover = from_state(&input.handover)?;
    if handover.version != HANDOVER_VERSION {
        return Err(internal(format!("the strategy's state has version {}", handover.version)));
    }
    let mut state: State = match &input.state {
        Value::Null => State::default(),
        state => from_state(state)?,
    };
    state.words.extend(unused_words(&input.guidance));
    let run = Run { input, host, handover: &handover };
    match run.go(&mut state).await {
        Ok(next) => Ok(StepOutput {
            progress: Some(run.progress(&state)),
            state: to_state(&state)?,
            requests: next.requests,
            outcome: next.outcome,
            cost: StepCost::default(),
        }),
        Err(Halt::Stopping) => Ok(super::output(to_state(&state)?, StepOutcome::Continue)),
        Err(Halt::Failed(failure)) => Err(failure),
    }
}

struct Run<'a> {
    input: &'a StepInput,
    host: &'a dyn ActorHost,
    handover: &'a Handover,
}

/// What a step ends with.
struct Next {
    requests: Vec<Request>,
    outcome: StepOutcome,
}

impl Next {
    fn requests(requests: Vec<Request>) -> Self {
        Self { requests, outcome: StepOutcome::Continue }
    }
}

impl<'a> Run<'a> {
    async fn go(&self, state: &mut State) -> Result<Next, Halt> {
        self.note_failed_checkpoint(state);
        loop {
            let next = match state.stage.clone() {
                Stage::Looking => self.look(state).await?,
                Stage::Asked { server } => {
                    if self.input.guidance.iter().any(|answer| says_go_on(answer)) {
                        state.without.insert(server);
                    }
                    state.stage = Stage::Looking;
                    None
                }
                Stage::Deciding { work } => self.decided(state, *work)?,
                Stage::Planning { work } => self.plan_again(state, *work).await?,
                Stage::Applying { work } => self.applied(state, *work).await?,
                Stage::Verifying { work } => Some(self.verify(state, *work).await?),
                Stage::Keeping { work, message } => {
                    Some(self.close(state, *work, Answers::new(), Some(message)).await?)
                }
                Stage::Undoing { work, problems } => self.undone(state, *work, problems).await?,
                Stage::TakingBack { group, why } => {
                    self.taken_back(state, group, why).await?;
                    None
                }
                Stage::Stuck { work, message } => Some(self.keep_what_is_worse(state, *work, message).await?),
            };
            if let Some(next) = next {
                return Ok(next);
            }
        }
    }

    fn progress(&self, state: &State) -> Progress {
        let label = match self.handover.groups.get(state.cursor) {
            Some(group) => format!("Fixing {}", group.name()),
            None => "Checked everything again".to_owned(),
        };
        let total = self.handover.groups.len();
        Progress { label, done: clamp(state.cursor), total: Some(clamp(total)) }
    }

    fn note_failed_checkpoint(&self, state: &mut State) {
        if !matches!(state.stage, Stage::Looking) {
            return;
        }
        for observation in &self.input.observations {
            if let Observation::Failed { message, .. } = observation {
                let note = format!("The last step was not recorded in full: {message}");
                if state.notes.last() != Some(&note) {
                    state.notes.push(note);
                }
            }
        }
    }

    fn group(&self, state: &State) -> Result<&'a PlannedGroup, Halt> {
        let group = self.handover.groups.get(state.cursor);
        group.ok_or_else(|| internal("the state is at a group that is not there".to_owned()).into())
    }

    fn option(&self, state: &State, work: &Work) -> Result<&'a PlannedOption, Halt> {
        let option = self.group(state)?.options.get(work.option);
        option.ok_or_else(|| internal("the state has an option that is not there".to_owned()).into())
    }

    fn workspace(&self, group: &PlannedGroup) -> Result<&'a ActorWorkspace, Halt> {
        let found = self.host.workspaces().iter().find(|w| w.resource_id == group.resource_id);
        found.ok_or_else(|| internal(format!("the workspace of {} is gone", group.id)).into())
    }

    fn known<'s>(&'s self, state: &'s State) -> Known<'s> {
        Known { handover: self.handover, late: &state.late, accepted: &state.accepted }
    }

    /// Files where findings of the group may be: where the strategy saw them, and what was edited since.
    fn candidates(
        &self,
        state: &State,
        group: &PlannedGroup,
        workspace: &ActorWorkspace,
    ) -> BTreeSet<String> {
        let touched = state.touched.get(&group.resource_id);
        let served = |path: &&String| workspace.languages.servers_for(path).contains(&group.server);
        let edited = touched.into_iter().flatten().filter(served);
        let mut paths: BTreeSet<String> = group.files.keys().chain(edited).cloned().collect();
        drop_removed(self.host, group.resource_id, &mut paths, touched);
        paths
    }

    fn done_with(&self, state: &mut State, result: GroupResult) {
        state.results.push(result);
        state.cursor += 1;
        state.stage = Stage::Looking;
    }

    /// The first round of the present group; goes on to the next group while there is nothing to do.
    async fn look(&self, state: &mut State) -> Result<Option<Next>, Halt> {
        look::go_on(self.host)?;
        let Some(group) = self.handover.groups.get(state.cursor) else {
            if let Some(next) = self.respond(state)? {
                return Ok(Some(next));
            }
            let (requests, summary) =
                outcome::finish(self.host, self.handover, state, Kept(&self.input.invariants)).await?;
            return Ok(Some(Next { requests, outcome: StepOutcome::Done(summary) }));
        };
        let index = match group.standing(&self.input.decisions) {
            Standing::Option(index) => index,
            Standing::LeaveAlone => {
                self.done_with(state, GroupResult::new(Outcome::LeftAlone, None, String::new()));
                return Ok(None);
            }
            Standing::Undecided => {
                let why = "no decision stands".to_owned();
                self.done_with(state, GroupResult::new(Outcome::LeftAlone, None, why));
                return Ok(None);
            }
            Standing::Unclear(words) => {
                let why = format!("“{words}” names none of its options");
                self.done_with(state, GroupResult::new(Outcome::LeftAlone, None, why));
                return Ok(None);
            }
        };
        let option = &group.options[index];
        let chosen = Some(option.text.clone());
        let workspace = self.workspace(group)?;
        if workspace.read_only || self.input.read_only {
            let why = format!("{} must not be changed", workspace.name);
            self.done_with(state, GroupResult::new(Outcome::LeftAlone, chosen, why));
            return Ok(None);
        }
        let server = group.server.to_string();
        if state.without.contains(&server) {
            let why = format!("{server} does not answer");
            self.done_with(state, GroupResult::new(Outcome::NotChecked, chosen, why));
            return Ok(None);
        }
        let paths: Vec<String> = self.candidates(state, group, workspace).into_iter().collect();
        let label = format!("Looking at {}", group.name());
        let answers = look::diagnostics(self.host, workspace, &paths, &label).await?;
        if let Some(reason) = silence(group, &answers) {
            let question = format!(
                "{server} does not answer for {} with {}: {}. Go on without it?",
                match paths.len() {
                    1 => "1 file".to_owned(),
                    n => format!("any of the {n} files"),
                },
                group.rule,
                first_line(&reason)
            );
            state.stage = Stage::Asked { server };
            let options = vec![TRY_AGAIN.to_owned(), GO_ON.to_owned()];
            let outcome = StepOutcome::Ask { kind: AwaitingKind::LanguageServer, question, options };
            return Ok(Some(Next { requests: Vec::new(), outcome }));
        }
        let mut work = Work { option: index, round: 1, ..Work::default() };
        self.make_round(state, &mut work, &answers).await?;
        if work.current.edits.is_empty() {
            let (outcome, why) = nothing_to_do(group, &work.current, option, &answers);
            self.done_with(state, GroupResult::new(outcome, chosen, why));
            return Ok(None);
        }
        let without_baseline = self.take_baselines(state, &mut work).await?;
        let draft = record::implementation(group, option, &work.current, without_baseline);
        work.current.places.clear();
        state.stage = Stage::Deciding { work: Box::new(work) };
        Ok(Some(Next::requests(vec![Request::RecordDecision(draft)])))
    }

    /// Makes the edits of a round from what the servers say now.
    async fn make_round(&self, state: &State, work: &mut Work, answers: &Answers) -> Result<(), Halt> {
        let group = self.group(state)?;
        let candidates = self.candidates(state, group, self.workspace(group)?);
        let mut findings = round::findings(group, answers);
        findings.retain(|(path, diagnostic)| {
            let touched = candidates.contains(*path) || work.touched.contains(*path);
            touched && diagnostic.severity <= self.handover.severity
        });
        let of = RoundOf {
            group,
            option: self.option(state, work)?,
            mode: work.mode,
            stuck: &work.stuck,
            places: if work.round == 1 { MAX_PLACES } else { 0 },
            kept: Kept(&self.input.invariants),
        };
        work.current = round::round(self.host, self.workspace(group)?, of, &findings).await?;
        work.touching = work.current.touched();
        Ok(())
    }

    /// Notes what is known of the files that are about to be edited, before they are. How many have nothing to compare
    /// with.
    async fn take_baselines(&self, state: &mut State, work: &mut Work) -> Result<usize, Halt> {
        let group = self.group(state)?;
        let workspace = self.workspace(group)?;
        let resource = group.resource_id;
        let made: BTreeSet<&str> = work.current.edits.iter().filter_map(made_by).collect();
        let mut missing = BTreeSet::new();
        for path in &work.touching {
            for server in workspace.languages.servers_for(path) {
                if self.known(state).now(resource, path, &server).is_some() {
                    continue;
                }
                match made.contains(path.as_str()) {
                    true => state.late.set(resource, path, &server, Prints::default()),
                    false => _ = missing.insert(path.clone()),
                }
            }
        }
        let missing: Vec<String> = missing.into_iter().collect();
        let label = "Taking a baseline of the files to be edited";
        let answers = look::diagnostics(self.host, workspace, &missing, label).await?;
        let mut without = 0;
        for (path, servers) in answers {
            let mut complete = true;
            for answer in servers {
                let known = self.known(state).now(resource, &path, &answer.server).is_some();
                match answer.diagnostics {
                    Some(diagnostics) if !known => {
                        state.late.set(resource, &path, &answer.server, Prints::of(&diagnostics));
                    }
                    Some(_) => {}
                    None => complete &= known,
                }
            }
            without += usize::from(!complete);
        }
        let mut texts = Texts::new(self.host, workspace);
        texts.prepare(work.touching.iter().map(String::as_str), Need::Syntax);
        for path in &work.touching {
            if !work.syntax.contains_key(path)
                && let Some(errors) = texts.syntax_errors(path)
            {
                work.syntax.insert(path.clone(), errors);
            }
        }
        Ok(without)
    }

    /// The edits of a round as a request; from here on the round is under way.
    fn apply(&self, state: &mut State, mut work: Work) -> Result<Next, Halt> {
        let group = self.group(state)?;
        let request = Request::Tool {
            call_id: call_id(group, work.round),
            tool: "builtin/apply-edits".to_owned(),
            args: json!({"resource": group.resource_id, "edits": work.current.edits, "diagnostics": false}),
            decision: Some(group.fix_key()),
        };
        work.current.edits = Vec::new();
        work.current.places = Vec::new();
        state.stage = Stage::Applying { work: Box::new(work) };
        Ok(Next::requests(vec![request]))
    }

    fn decided(&self, state: &mut State, mut work: Work) -> Result<Option<Next>, Halt> {
        let group = self.group(state)?;
        let key = group.fix_key();
        for observation in &self.input.observations {
            if let Observation::Failed { message, .. } = observation {
                return Err(internal(format!("{key} could not be recorded: {message}")).into());
            }
        }
        let observed = self.input.observations.iter().filter_map(|observation| match observation {
            Observation::Decided(decision) => Some(decision),
            _ => None,
        });
        let of_group = |decision: &&KnownDecision| decision.key.as_deref() == Some(key.as_str());
        let decision = observed.chain(self.input.decisions.iter().rev()).find(of_group);
        let how = match decision {
            Some(decision) => record::how(&decision.chosen_option, &decision.options),
            None => How::Leave("how it is applied was not decided".to_owned()),
        };
        match how {
            How::Leave(why) => {
                let chosen = Some(self.option(state, &work)?.text.clone());
                self.done_with(state, GroupResult::new(Outcome::LeftAlone, chosen, why));
                Ok(None)
            }
            How::Apply(Mode::OwnFiles) => {
                work.mode = Mode::OwnFiles;
                state.stage = Stage::Planning { work: Box::new(work) };
                Ok(None)
            }
            How::Apply(mode) => {
                work.mode = mode;
                Ok(Some(self.apply(state, work)?))
            }
        }
    }

    async fn plan_again(&self, state: &mut State, mut work: Work) -> Result<Option<Next>, Halt> {
        let group = self.group(state)?;
        let workspace = self.workspace(group)?;
        let paths: Vec<String> = self.candidates(state, group, workspace).into_iter().collect();
        let label = format!("Looking at {}", group.name());
        let answers = look::diagnostics(self.host, workspace, &paths, &label).await?;
        self.make_round(state, &mut work, &answers).await?;
        if work.current.edits.is_empty() {
            let option = self.option(state, &work)?;
            let (outcome, why) = nothing_to_do(group, &work.current, option, &answers);
            self.done_with(state, GroupResult::new(outcome, Some(option.text.clone()), why));
            return Ok(None);
        }
        self.take_baselines(state, &mut work).await?;
        Ok(Some(self.apply(state, work)?))
    }

    async fn applied(&self, state: &mut State, mut work: Work) -> Result<Option<Next>, Halt> {
        let group = self.group(state)?;
        let expected = call_id(group, work.round);
        let mut result = Err("the tool reported nothing".to_owned());
        for observation in &self.input.observations {
            match observation {
                Observation::Tool { call_id, result: value } if *call_id == expected => {
                    result = Ok(value.clone());
                }
                Observation::Failed { message, .. } => result = Err(message.clone()),
                _ => {}
            }
        }
        match result {
            Ok(value) => {
                let events = file_events(&value, &work.touching);
                work.touched.extend(events.iter().map(|event| event.path.clone()));
                work.touched.append(&mut work.touching);
                work.applied += work.current.applied;
                state.stage = Stage::Verifying { work: Box::new(work) };
                self.workspace(group)?.languages.files_changed(&events).await;
                Ok(None)
            }
            Err(message) if work.touched.is_empty() => {
                let option = self.option(state, &work)?;
                let draft = record::recovery(group, option, Trouble::NotApplied(&message));
                let why = format!("its edits could not be applied: {}", first_line(&message));
                self.done_with(state, GroupResult::new(Outcome::Failed, Some(option.text.clone()), why));
                Ok(Some(Next::requests(vec![Request::RecordDecision(draft)])))
            }
            Err(message) => {
                state.stage = Stage::Keeping { work: Box::new(work), message };
                Ok(None)
            }
        }
    }
}
