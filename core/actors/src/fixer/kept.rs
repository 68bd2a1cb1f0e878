//! What the plan's invariants keep the fixer from: findings in files that are not to be changed are left alone, by a
//! decision that names the invariant, and no fix is taken that reaches into such a file.

use agents_domain::decision::{Alternative, DecisionType};
use agents_domain::invariant::Enforced;
use agents_domain::ports::actor::{ActorHost, ActorWorkspace, DecisionDraft};
use agents_domain::text::FileEdit;
use serde_json::json;

use super::baseline::SurveyedWorkspace;
use super::count;
use super::group::Group;
use super::options::LEAVE_ALONE;
use super::propose::{places, plan};

/// The invariants of a plan, asked about files.
#[derive(Clone, Copy)]
pub(crate) struct Kept<'a>(pub &'a [Enforced]);

impl<'a> Kept<'a> {
    /// The sentence that keeps a file as it is.
    pub fn file(&self, path: &str) -> Option<&'a str> {
        let forbids = |i: &&Enforced| i.check.as_ref().is_some_and(|check| check.forbids_path(path));
        self.0.iter().find(forbids).map(|invariant| invariant.text.as_str())
    }

    /// Whether an edit would change a file that is kept.
    pub fn reached_by(&self, edits: &[FileEdit]) -> bool {
        edits.iter().any(|edit| {
            let to = match edit {
                FileEdit::Rename { to, .. } => Some(to.as_str()),
                _ => None,
            };
            [Some(edit.path()), to].into_iter().flatten().any(|path| self.file(path).is_some())
        })
    }
}

/// The decision about findings in kept files: there is one way, and the record says why.
pub(super) fn draft(
    group: &Group,
    text: &str,
    surveyed: &SurveyedWorkspace,
    workspace: &ActorWorkspace,
    root: Option<&str>,
    host: &dyn ActorHost,
) -> DecisionDraft {
    let (findings, files) = (count(group.findings.len(), "finding"), count(group.files().len(), "file"));
    DecisionDraft {
        key: format!("{}/kept", plan(group, surveyed).strategy_key()),
        decision_type: DecisionType::StrategyChoice,
        parent: None,
        question: format!(
            "What should be done about {findings} of {} from {} in {files} that are not to be changed?",
            group.rule, group.server
        ),
        chosen: 0,
        alternatives: vec![Alternative {
            option: LEAVE_ALONE.to_owned(),
            description: Some("Changes nothing; the findings stay.".to_owned()),
        }],
        confidence: Some(1.0),
        rationale: format!("The invariant “{text}” keeps these files as they are."),
        reasoning: None,
        resources: places(group, workspace, host),
        depends_on: root.map(str::to_owned).into_iter().collect(),
        context: json!({
            "server": group.server, "rule": group.rule, "invariant": text, "files": group.files(),
        }),
        spawn: None,
    }
}
