//! What comes after edits: the check of a round, the end of a group that is kept, and taking back one that is not.

use std::collections::BTreeSet;

use agents_domain::ports::actor::{Observation, Request};
use agents_domain::ports::language_servers::{FileEvent, FileEventKind};

use super::super::baseline::{Answers, Prints, print};
use super::super::group::PlannedGroup;
use super::super::outcome::{GroupResult, Outcome};
use super::super::record::{self, MAX_ROUNDS, Trouble};
use super::super::round::{self, Mode};
use super::super::texts::Texts;
use super::super::verify::{self, Problem};
use super::super::{Halt, count, look};
use super::{Next, Run, Stage, State, Work, drop_removed};
use crate::common::first_line;

impl Run<'_> {
    /// Files that are looked at after a round: what was touched, what the group is about, and where anything was found.
    fn to_verify(&self, state: &State, group: &PlannedGroup, work: &Work) -> Result<BTreeSet<String>, Halt> {
        let mut paths = self.known(state).with_findings(group.resource_id);
        paths.extend(self.candidates(state, group, self.workspace(group)?));
        paths.extend(work.touched.iter().cloned());
        let resource = group.resource_id;
        for touched in [Some(&work.touched), state.touched.get(&resource)] {
            drop_removed(self.host, resource, &mut paths, touched);
        }
        Ok(paths)
    }

    /// Checks the round; then the next one, or the end of the group.
    pub(super) async fn verify(&self, state: &mut State, mut work: Work) -> Result<Next, Halt> {
        let group = self.group(state)?;
        let workspace = self.workspace(group)?;
        let paths: Vec<String> = self.to_verify(state, group, &work)?.into_iter().collect();
        let label = format!("Checking after round {} of {}", work.round, group.name());
        let answers = look::diagnostics(self.host, workspace, &paths, &label).await?;
        let mut problems = verify::compare(group.resource_id, &answers, &self.known(state)).worse;
        problems.extend(verify::new_syntax_errors(&work.syntax, &mut Texts::new(self.host, workspace)));
        if !problems.is_empty() {
            return self.undo(state, work, problems);
        }
        let now = round::tally_of(&round::findings(group, &answers));
        for (path, prints) in round::not_helped(&work.current.attempted, &work.current.found, &now) {
            work.stuck.entry(path).or_default().extend(prints);
        }
        if work.mode != Mode::OneRound && work.round < MAX_ROUNDS {
            let mut next = Work { round: work.round + 1, ..work.clone() };
            self.make_round(state, &mut next, &answers).await?;
            if !next.current.edits.is_empty() {
                self.take_baselines(state, &mut next).await?;
                return self.apply(state, next);
            }
        }
        self.close(state, work, answers, None).await
    }

    fn undo(&self, state: &mut State, work: Work, problems: Vec<Problem>) -> Result<Next, Halt> {
        let group = self.group(state)?;
        let draft = record::recovery(group, self.option(state, &work)?, Trouble::Worse(&problems));
        state.stage = Stage::Undoing { work: Box::new(work), problems };
        let undo = Request::Undo { decision: group.fix_key() };
        Ok(Next::requests(vec![undo, Request::RecordDecision(draft)]))
    }

    pub(super) async fn undone(
        &self,
        state: &mut State,
        work: Work,
        problems: Vec<Problem>,
    ) -> Result<Option<Next>, Halt> {
        let group = self.group(state)?;
        let failed = self.input.observations.iter().find_map(|observation| match observation {
            Observation::Failed { request: 0, message, .. } => Some(message.clone()),
            _ => None,
        });
        if let Some(message) = failed {
            state.stage = Stage::Stuck { work: Box::new(work), message };
            return Ok(None);
        }
        let workspace = self.workspace(group)?;
        let there = |path: &str| self.host.read(group.resource_id, path).is_ok();
        let event = |path: &String| FileEvent {
            path: path.clone(),
            kind: if there(path) { FileEventKind::Changed } else { FileEventKind::Deleted },
        };
        let events: Vec<FileEvent> = work.touched.iter().map(event).collect();
        let why = problems.first().map(Problem::line).unwrap_or_default();
        let mut result = GroupResult::new(
            Outcome::RolledBack,
            Some(self.option(state, &work)?.text.clone()),
            format!("{}: {why}", count(problems.len(), "new error")),
        );
        result.rounds = work.round;
        self.done_with(state, result);
        workspace.languages.files_changed(&events).await;
        Ok(None)
    }

    /// The end of a group that is kept: files that may depend on it are checked too.
    pub(super) async fn close(
        &self,
        state: &mut State,
        work: Work,
        mut answers: Answers,
        failed: Option<String>,
    ) -> Result<Next, Halt> {
        let group = self.group(state)?;
        let workspace = self.workspace(group)?;
        let mut checked = self.to_verify(state, group, &work)?;
        let label = format!("Checking what depends on {}", group.name());
        if answers.is_empty() {
            let paths: Vec<String> = checked.iter().cloned().collect();
            answers = look::diagnostics(self.host, workspace, &paths, &label).await?;
        }
        let files = verify::surveyed(self.handover, group.resource_id).map(|w| w.files.as_slice());
        let files = files.unwrap_or_default();
        let more = verify::dependents(self.host, workspace, files, &work.touched, &checked);
        answers.extend(look::diagnostics(self.host, workspace, &more, &label).await?);
        checked.extend(more);
        let verdict = verify::compare(group.resource_id, &answers, &self.known(state));
        if !verdict.worse.is_empty() {
            return self.undo(state, work, verdict.worse);
        }
        let option = self.option(state, &work)?;
        let mut result = GroupResult::new(Outcome::Applied, Some(option.text.clone()), String::new());
        result.unverified =
            verdict.unverified.into_iter().filter(|(path, _)| work.touched.contains(path)).collect();
        let mut requests = Vec::new();
        if let Some(message) = failed {
            result.why = format!("its last edits could not be applied: {}", first_line(&message));
            let draft = record::recovery(group, option, Trouble::NotApplied(&message));
            requests.push(Request::RecordDecision(draft));
        }
        requests.push(self.accept(state, work, answers, result)?);
        Ok(Next::requests(requests))
    }

    /// Edits that made it worse and could not be taken back: said, and what they brought counts as known from now on.
    pub(super) async fn keep_what_is_worse(
        &self,
        state: &mut State,
        work: Work,
        message: String,
    ) -> Result<Next, Halt> {
        let group = self.group(state)?;
        let paths: Vec<String> = self.to_verify(state, group, &work)?.into_iter().collect();
        let label = format!("Looking at {}", group.name());
        let answers = look::diagnostics(self.host, self.workspace(group)?, &paths, &label).await?;
        let option = self.option(state, &work)?;
        let draft = record::recovery(group, option, Trouble::NotUndone(&message));
        let why = format!("it made things worse and could not be taken back: {}", first_line(&message));
        let result = GroupResult::new(Outcome::Failed, Some(option.text.clone()), why);
        let checkpoint = self.accept(state, work, answers, result)?;
        Ok(Next::requests(vec![Request::RecordDecision(draft), checkpoint]))
    }

    fn accept(
        &self,
        state: &mut State,
        work: Work,
        answers: Answers,
        mut result: GroupResult,
    ) -> Result<Request, Halt> {
        let group = self.group(state)?;
        for (path, servers) in answers {
            for answer in servers {
                let Some(diagnostics) = answer.diagnostics else { continue };
                let prints = Prints::of(&diagnostics);
                let before = self.known(state).now(group.resource_id, &path, &answer.server);
                if before.as_ref() == Some(&prints) {
                    continue;
                }
                if let Some(before) = before {
                    let news = before.news(&diagnostics).into_iter().map(print);
                    result.brought.entry(path.clone()).or_default().extend(news);
                }
                state.accepted.set(group.resource_id, &path, &answer.server, prints);
            }
        }
        result.brought.retain(|_, prints| !prints.is_empty());
        result.rounds = work.round;
        result.applied = work.applied;
        result.stuck = round::total(&work.stuck);
        result.touched = work.touched.clone();
        state.touched.entry(group.resource_id).or_default().extend(work.touched);
        let option = result.chosen.clone().unwrap_or_default();
        let label = format!("{}: {option} ({})", group.name(), count(work.applied as usize, "finding"));
        self.done_with(state, result);
        Ok(Request::Checkpoint { decision: group.fix_key(), label })
    }
}
