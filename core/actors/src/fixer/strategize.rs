//! The strategy: one look at everything, one decision per group, and a summary once the decisions stand.

use std::cmp::Reverse;

use agents_domain::decision::DecisionType;
use agents_domain::plan::AwaitingKind;
use agents_domain::ports::actor::{
    ActorFailure, ActorHost, KnownDecision, Observation, Progress, Request, StepCost, StepInput, StepOutcome,
    StepOutput,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::arguments::Filters;
use super::baseline::{HANDOVER_VERSION, Handover};
use super::group::Group;
use super::kept::{self, Kept};
use super::options::match_answer;
use super::report::StrategyReport;
use super::survey::{Survey, survey};
use super::{Halt, clamp, count, from_state, internal, output, propose, to_state};
use crate::common::first_line;

/// Decisions that a plan makes at most; the groups after them are only counted.
const MAX_DECISIONS: usize = 200;

/// Answers to [`AwaitingKind::LanguageServer`].
pub(super) const TRY_AGAIN: &str = "Try again";
/// See [`TRY_AGAIN`].
pub(super) const GO_ON: &str = "Go on without it";

/// Where Strategize is; `null` is the start, and a [`Handover`] its end.
#[derive(Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
enum State {
    /// No server answered; a person was asked.
    Asked,
    /// Looks again, and does not ask any more.
    GoOn,
    /// The decisions are being recorded.
    Recorded { handover: Box<Handover>, report: Box<StrategyReport> },
}

/// One step.
pub(super) async fn step(input: &StepInput, host: &dyn ActorHost) -> Result<StepOutput, ActorFailure> {
    let filters = Filters::read(&input.arguments)?;
    let state: Option<State> = match &input.state {
        Value::Null => None,
        state => Some(from_state(state)?),
    };
    let go_on = match state {
        Some(State::Recorded { handover, report }) => return finish(*handover, *report, input),
        Some(State::GoOn) => true,
        Some(State::Asked) => input.guidance.iter().any(|answer| says_go_on(answer)),
        None => false,
    };
    match look(input, host, &filters, go_on).await {
        Ok(output) => Ok(output),
        // The answer was consumed: what it said must not be lost.
        Err(Halt::Stopping) if go_on => Ok(output(to_state(&State::GoOn)?, StepOutcome::Continue)),
        Err(Halt::Stopping) => Ok(output(Value::Null, StepOutcome::Continue)),
        Err(Halt::Failed(failure)) => Err(failure),
    }
}

/// Whether an answer to a question about a server means that the plan goes on without it.
pub(super) fn says_go_on(answer: &str) -> bool {
    match_answer(answer, &[TRY_AGAIN.to_owned(), GO_ON.to_owned()]) == Some(1)
}

/// What people said that is no answer to a question of this actor.
pub(super) fn unused_words(guidance: &[String]) -> Vec<String> {
    let answers = [TRY_AGAIN.to_owned(), GO_ON.to_owned()];
    guidance.iter().filter(|words| match_answer(words, &answers).is_none()).cloned().collect()
}

async fn look(
    input: &StepInput,
    host: &dyn ActorHost,
    filters: &Filters,
    go_on: bool,
) -> Result<StepOutput, Halt> {
    let mut survey = survey(host, filters, input.read_only, Kept(&input.invariants)).await?;
    if let Some(question) = no_answer(&survey, host)
        && !go_on
    {
        let ask = StepOutcome::Ask {
            kind: AwaitingKind::LanguageServer,
            question,
            options: vec![TRY_AGAIN.to_owned(), GO_ON.to_owned()],
        };
        return Ok(output(to_state(&State::Asked)?, ask));
    }
    survey.groups.sort_by_key(|group| {
        (group.severity(), Reverse(group.findings.len()), group.workspace, group.server.clone())
    });
    let has_choice =
        |group: &Group| !group.options.is_empty() && !survey.workspaces[group.workspace].read_only;
    let groups = std::mem::take(&mut survey.groups);
    let (mut chosen, mut rest): (Vec<Group>, Vec<Group>) = groups.into_iter().partition(has_choice);
    let too_many = chosen.split_off(chosen.len().min(MAX_DECISIONS));
    let undecided = too_many.len();
    rest.extend(too_many);

    let root = input.decisions.iter().find(|d| d.decision_type == DecisionType::PromptDefinition);
    let root = root.and_then(|decision| decision.key.as_deref());
    let several = survey.workspaces.len() > 1;
    let mut requests = Vec::with_capacity(chosen.len());
    let mut groups = Vec::with_capacity(chosen.len());
    for group in &chosen {
        let surveyed = &survey.workspaces[group.workspace];
        let workspace = host.workspaces().iter().find(|w| w.resource_id == surveyed.resource_id);
        let workspace = workspace.ok_or_else(|| internal(format!("{} is gone", surveyed.name)))?;
        let planned = propose::plan(group, surveyed);
        let draft = propose::draft(group, &planned, surveyed, workspace, several, root, host);
        requests.push(Request::RecordDecision(draft));
        groups.push(planned);
    }
    let kept = rest.iter().filter_map(|group| Some((group, group.kept_by.as_deref()?)));
    for (group, text) in kept.take(MAX_DECISIONS - chosen.len()) {
        let surveyed = &survey.workspaces[group.workspace];
        if let Some(workspace) = host.workspaces().iter().find(|w| w.resource_id == surveyed.resource_id) {
            let draft = kept::draft(group, text, surveyed, workspace, root, host);
            requests.push(Request::RecordDecision(draft));
        }
    }
    let report = StrategyReport::new(&survey, &chosen, &rest, undecided, input.read_only);
    let (kept, rest): (Vec<&Group>, Vec<&Group>) = rest.iter().partition(|group| group.kept_by.is_some());
    let (fixed, free): (Vec<&Group>, Vec<&Group>) =
        rest.into_iter().partition(|group| survey.workspaces[group.workspace].read_only);
    let findings = |groups: &[&Group]| clamp(groups.iter().map(|group| group.findings.len()).sum());
    let handover = Handover {
        version: HANDOVER_VERSION,
        severity: filters.severity,
        without_option: findings(&free),
        read_only: findings(&fixed),
        kept: findings(&kept),
        workspaces: survey.workspaces,
        groups,
    };
    if requests.is_empty() {
        return Ok(finish(handover, report, input)?);
    }
    let state = State::Recorded { handover: Box::new(handover), report: Box::new(report) };
    let label = format!("Deciding about {}", count(requests.len(), "kind"));
    let progress = Progress { label, done: 0, total: Some(clamp(requests.len())) };
    Ok(StepOutput {
        state: to_state(&state)?,
        requests,
        progress: Some(progress),
        outcome: StepOutcome::Continue,
        cost: StepCost::default(),
    })
}

/// The question when nothing was checked although there is something to check.
fn no_answer(survey: &Survey, host: &dyn ActorHost) -> Option<String> {
    if survey.answered > 0 {
        return None;
    }
    let names: Vec<&str> = host.workspaces().iter().map(|workspace| workspace.name.as_str()).collect();
    if survey.asked == 0 {
        if survey.unserved.is_empty() || survey.files() > 0 || !survey.skipped.is_empty() {
            return None;
        }
        let languages: Vec<String> = survey.unserved.iter().map(|(name, n)| format!("{name}: {n}")).collect();
        return Some(format!(
            "No registered language server serves the files of {} ({}), so nothing was checked. Register one with \
             `agents lsp add --config FILE` and try again?",
            names.join(", "),
            languages.join(", "),
        ));
    }
    let mut reasons: Vec<String> = survey
        .failed_servers()
        .into_iter()
        .map(|(server, reason)| format!("{server}: {}", first_line(&reason)))
        .collect();
    if reasons.is_empty() {
        let unchecked = survey.workspaces.iter().flat_map(|workspace| &workspace.unchecked);
        reasons = unchecked.map(|u| format!("{}: {}", u.server, first_line(&u.reason))).collect();
        reasons.dedup();
        reasons.truncate(5);
    }
    Some(format!(
        "No language server answered for any of the {} of {}, so nothing was checked. {}. Install or correct the \
         server (`agents lsp show NAME` says what is started) and try again?",
        count(survey.files(), "file"),
        names.join(", "),
        reasons.join("; "),
    ))
}

fn finish(handover: Handover, report: StrategyReport, input: &StepInput) -> Result<StepOutput, ActorFailure> {
    let mut decisions: Vec<KnownDecision> = input.decisions.clone();
    for observation in &input.observations {
        match observation {
            Observation::Decided(decision) => decisions.push(decision.clone()),
            Observation::Failed { message, .. } => {
                return Err(internal(format!("a decision could not be recorded: {message}")));
            }
            _ => {}
        }
    }
    let words = unused_words(&input.guidance);
    let summary = report.summary(&handover.groups, &decisions, &words);
    Ok(output(to_state(&handover)?, StepOutcome::Done(summary)))
}
