//! What is read from answers, observations and edits.

use std::collections::{BTreeMap, BTreeSet};

use agents_domain::ids::ResourceId;
use agents_domain::ports::actor::ActorHost;
use agents_domain::ports::language_servers::{FileEvent, FileEventKind};
use agents_domain::text::FileEdit;
use serde_json::Value;

use super::super::baseline::Answers;
use super::super::count;
use super::super::group::{PlannedGroup, PlannedOption};
use super::super::outcome::Outcome;
use super::super::round::Round;

/// The id of the tool call of a round.
pub(super) fn call_id(group: &PlannedGroup, round: u32) -> String {
    format!("{}/round-{round}", group.fix_key())
}

/// The file that an edit makes.
pub(super) fn made_by(edit: &FileEdit) -> Option<&str> {
    match edit {
        FileEdit::Create { path, .. } => Some(path),
        FileEdit::Rename { to, .. } => Some(to),
        FileEdit::Edit { .. } | FileEdit::Write { .. } | FileEdit::Delete { .. } => None,
    }
}

/// Why the group's server says nothing about any of the files, if so.
pub(super) fn silence(group: &PlannedGroup, answers: &Answers) -> Option<String> {
    let of_group = || answers.values().flatten().filter(|answer| answer.server == group.server);
    if answers.is_empty() || of_group().any(|answer| answer.diagnostics.is_some()) {
        return None;
    }
    let problem = of_group().find_map(|answer| answer.problem.clone());
    let why = match of_group().next() {
        Some(_) => "no answer in time",
        None => "it is not registered any more",
    };
    Some(problem.unwrap_or_else(|| why.to_owned()))
}

/// Leaves out those of the touched files that are gone: no server can say anything about them.
pub(in crate::fixer) fn drop_removed(
    host: &dyn ActorHost,
    resource: ResourceId,
    paths: &mut BTreeSet<String>,
    touched: Option<&BTreeSet<String>>,
) {
    for path in touched.into_iter().flatten() {
        if paths.contains(path) && host.read(resource, path).is_err() {
            paths.remove(path);
        }
    }
}

/// Why there is nothing to apply of a group.
pub(super) fn nothing_to_do(
    group: &PlannedGroup,
    round: &Round,
    option: &PlannedOption,
    answers: &Answers,
) -> (Outcome, String) {
    let n = round.findings();
    let answered = |path: &String| {
        let of_group = answers.get(path).into_iter().flatten().find(|answer| answer.server == group.server);
        of_group.is_some_and(|answer| answer.diagnostics.is_some())
    };
    let unanswered = answers.keys().filter(|path| !answered(path)).count();
    if n == 0 && unanswered > 0 {
        let why = format!("{} did not answer for {}", group.server, count(unanswered, "file"));
        return (Outcome::NotChecked, why);
    }
    if n == 0 {
        return (Outcome::Gone, "its findings are gone already".to_owned());
    }
    if let Some((missing, reason)) = &round.unanswered {
        let why = format!("for {} the server did not tell: {reason}", count(*missing as usize, "finding"));
        return (Outcome::NotOffered, why);
    }
    if round.elsewhere > 0 {
        return (Outcome::LeftAlone, "every fix of it edits other files".to_owned());
    }
    (Outcome::NotOffered, format!("“{}” is not offered any more", option.text))
}

/// What the tool says it did to files; what it does not say is taken from the edits.
pub(super) fn file_events(result: &Value, touching: &BTreeSet<String>) -> Vec<FileEvent> {
    let kind = |word: &str| match word {
        "added" | "created" => FileEventKind::Created,
        "deleted" => FileEventKind::Deleted,
        _ => FileEventKind::Changed,
    };
    let mut events: BTreeMap<String, FileEventKind> = BTreeMap::new();
    for file in result["files"].as_array().into_iter().flatten() {
        if let Some(path) = file["path"].as_str() {
            events.insert(path.to_owned(), kind(file["kind"].as_str().unwrap_or_default()));
        }
    }
    for path in touching {
        events.entry(path.clone()).or_insert(FileEventKind::Changed);
    }
    events.into_iter().map(|(path, kind)| FileEvent { path, kind }).collect()
}
