//! What is done about a validation that did not pass: the last kept fix in a file that it points at is taken back.

use agents_domain::decision::DecisionType;
use agents_domain::ports::actor::{DecisionDraft, Observation, Request};
use agents_domain::ports::language_servers::{FileEvent, FileEventKind};
use agents_domain::validation::ValidationOutcome;

use super::super::outcome::Outcome;
use super::super::record::{self, Trouble};
use super::super::{Halt, internal};
use super::{Next, Run, Stage, State};
use crate::common::first_line;

impl Run<'_> {
    /// After the last group, with validations that are to be fixed: takes a fix back, once for each time it is asked.
    pub(super) fn respond(&self, state: &mut State) -> Result<Option<Next>, Halt> {
        let asked = self.input.findings.iter().map(|failed| failed.fixes).max().unwrap_or(0);
        if asked <= state.answered {
            return Ok(None);
        }
        state.answered = asked;
        let Some((at, failed)) = self.suspect(state) else { return Ok(None) };
        let group =
            self.handover.groups.get(at).ok_or_else(|| internal("a result has no group".to_owned()))?;
        let draft = self.response(state, at, failed)?;
        let decision = group.fix_key();
        state.stage = Stage::TakingBack { group: at, why: why(failed) };
        Ok(Some(Next::requests(vec![Request::RecordDecision(draft), Request::Undo { decision }])))
    }

    /// The last group whose fix was kept in a file that a failed validation points at.
    fn suspect(&self, state: &State) -> Option<(usize, &ValidationOutcome)> {
        let results = state.results.iter().enumerate().rev();
        results.filter(|(_, result)| result.outcome == Outcome::Applied).find_map(|(at, result)| {
            let resource = self.handover.groups.get(at)?.resource_id;
            let points = |failed: &&ValidationOutcome| {
                failed.attachment_resource == resource
                    && failed
                        .findings
                        .iter()
                        .filter_map(|f| f.file.as_ref())
                        .any(|f| result.touched.contains(f))
            };
            Some((at, self.input.findings.iter().find(points)?))
        })
    }

    fn response(&self, state: &State, at: usize, failed: &ValidationOutcome) -> Result<DecisionDraft, Halt> {
        let gone = || internal("a kept group has no option".to_owned());
        let group = self.handover.groups.get(at).ok_or_else(gone)?;
        let chosen = state.results.get(at).and_then(|result| result.chosen.as_ref());
        let option = group.options.iter().find(|option| Some(&option.text) == chosen).ok_or_else(gone)?;
        let draft = record::recovery(group, option, Trouble::Worse(&[]));
        let places: Vec<String> = failed.findings.iter().take(5).map(|finding| finding.line_text()).collect();
        Ok(DecisionDraft {
            key: format!("response/{}/{}", group.id, state.answered),
            decision_type: DecisionType::ValidationResponse,
            question: format!(
                "{} did not pass after the fix “{}” for {}. What now?",
                failed.validation,
                option.text,
                group.name()
            ),
            rationale: format!("{}: {}", first_line(&failed.message), places.join("; ")),
            ..draft
        })
    }

    /// The fix is taken back, or could not be.
    pub(super) async fn taken_back(&self, state: &mut State, at: usize, why: String) -> Result<(), Halt> {
        state.stage = Stage::Looking;
        let failed = self.input.observations.iter().find_map(|observation| match observation {
            Observation::Failed { message, .. } => Some(message.clone()),
            _ => None,
        });
        if let Some(message) = failed {
            state.notes.push(format!("A fix could not be taken back: {}", first_line(&message)));
            return Ok(());
        }
        let gone = || internal("a result is gone".to_owned());
        let group = self.handover.groups.get(at).ok_or_else(gone)?;
        let result = state.results.get_mut(at).ok_or_else(gone)?;
        result.outcome = Outcome::RolledBack;
        result.why = why;
        let events: Vec<FileEvent> = std::mem::take(&mut result.touched)
            .into_iter()
            .map(|path| {
                let there = self.host.read(group.resource_id, &path).is_ok();
                let kind = if there { FileEventKind::Changed } else { FileEventKind::Deleted };
                FileEvent { path, kind }
            })
            .collect();
        result.brought.clear();
        self.workspace(group)?.languages.files_changed(&events).await;
        Ok(())
    }
}

fn why(failed: &ValidationOutcome) -> String {
    format!("{} did not pass: {}", failed.validation, first_line(&failed.message))
}
