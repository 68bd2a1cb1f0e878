//! The end of Execute: one last look at everything, and what was fixed, what is left and why.

use std::collections::{BTreeMap, BTreeSet};

use agents_domain::QualifiedName;
use agents_domain::diagnostics::Severity;
use agents_domain::ids::ResourceId;
use agents_domain::plan::PhaseSummary;
use agents_domain::ports::actor::{ActorHost, Request};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::baseline::{Answers, Handover, print};
use super::execute::{State, drop_removed};
use super::group::PlannedGroup;
use super::kept::Kept;
use super::options::Class;
use super::report::{MAX_FACTS, unused_guidance};
use super::verify::{Known, Problem};
use super::{Halt, agree, count, look, record, sentence, share};
use crate::common::{first_line, sample};

/// New findings of a group that are told.
const MAX_FOLLOW_UPS: usize = 50;

/// What became of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    /// Its option was applied and kept.
    Applied,
    /// As decided, or because nothing could be read from what was decided.
    LeftAlone,
    /// Its findings were gone when its turn came.
    Gone,
    /// The server does not offer its option any more.
    NotOffered,
    /// It made things worse and was taken back.
    RolledBack,
    /// Its edits could not be applied, or not taken back.
    Failed,
    /// Its server did not answer.
    NotChecked,
}

/// What became of a group, in full.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct GroupResult {
    /// What became of it.
    pub outcome: Outcome,
    /// The option that stood.
    pub chosen: Option<String>,
    /// For people; empty when the outcome says it all.
    pub why: String,
    /// Rounds of edits.
    pub rounds: u32,
    /// Findings that edits were applied for.
    pub applied: u32,
    /// Findings whose fix did not help.
    pub stuck: u32,
    /// Files edited.
    pub touched: BTreeSet<String>,
    /// Of these, those that could not be checked, with the reason.
    pub unverified: BTreeMap<String, String>,
    /// Fingerprints of what was new after it, by file.
    pub brought: BTreeMap<String, Vec<String>>,
}

impl GroupResult {
    /// Of a group that nothing was applied of.
    pub fn new(outcome: Outcome, chosen: Option<String>, why: String) -> Self {
        Self {
            outcome,
            chosen,
            why,
            rounds: 0,
            applied: 0,
            stuck: 0,
            touched: BTreeSet::new(),
            unverified: BTreeMap::new(),
            brought: BTreeMap::new(),
        }
    }
}

/// What there is at the end, of a group.
#[derive(Debug, Clone, Copy, Default)]
struct Rest {
    left: u32,
    unverified: u32,
}

/// Looks at everything once more, when anything was changed.
async fn last_look(
    host: &dyn ActorHost,
    handover: &Handover,
    state: &State,
) -> Result<BTreeMap<ResourceId, Answers>, Halt> {
    let mut looks = BTreeMap::new();
    for surveyed in &handover.workspaces {
        let Some(touched) = state.touched.get(&surveyed.resource_id) else { continue };
        let Some(workspace) = host.workspaces().iter().find(|w| w.resource_id == surveyed.resource_id) else {
            continue;
        };
        let served = touched.iter().filter(|path| !workspace.languages.servers_for(path).is_empty());
        let mut paths: BTreeSet<String> = surveyed.files.iter().chain(served).cloned().collect();
        drop_removed(host, surveyed.resource_id, &mut paths, Some(touched));
        let paths: Vec<String> = paths.into_iter().collect();
        let label = format!("Checking all of {} once more", surveyed.name);
        looks.insert(surveyed.resource_id, look::diagnostics(host, workspace, &paths, &label).await?);
    }
    Ok(looks)
}

fn rest_of(
    group: &PlannedGroup,
    looks: &BTreeMap<ResourceId, Answers>,
    severity: Severity,
    kept: Kept<'_>,
) -> Rest {
    let Some(answers) = looks.get(&group.resource_id) else {
        return Rest { left: group.findings(), unverified: 0 };
    };
    let mut rest = Rest::default();
    // What an invariant keeps is not the group's, and is counted by itself.
    for (path, servers) in answers.iter().filter(|(path, _)| kept.file(path).is_none()) {
        let Some(answer) = servers.iter().find(|answer| answer.server == group.server) else { continue };
        match &answer.diagnostics {
            Some(diagnostics) => {
                let of_group =
                    diagnostics.iter().filter(|d| d.rule() == group.rule && d.severity <= severity);
                rest.left += super::clamp(of_group.count());
            }
            None => rest.unverified += group.files.get(path).copied().unwrap_or(0),
        }
    }
    rest
}

/// What is new since before the first edit: what a kept group brought, by its index, and errors that came unnoticed.
fn news(
    handover: &Handover,
    state: &State,
    looks: &BTreeMap<ResourceId, Answers>,
) -> (BTreeMap<usize, Vec<Problem>>, Vec<Problem>) {
    let known = Known { handover, late: &state.late, accepted: &state.accepted };
    let mut of_groups: BTreeMap<usize, Vec<Problem>> = BTreeMap::new();
    let mut unnoticed = Vec::new();
    let problem = |path: &str, server: &QualifiedName, d: &agents_domain::diagnostics::Diagnostic| Problem {
        path: path.to_owned(),
        line: d.range.start.line.saturating_add(1),
        by: server.to_string(),
        rule: d.rule().to_owned(),
        message: first_line(&d.message).to_owned(),
    };
    for (resource, answers) in looks {
        for (path, answer) in answers.iter().flat_map(|(path, all)| all.iter().map(move |a| (path, a))) {
            let Some(diagnostics) = &answer.diagnostics else { continue };
            if let Some(before) = known.before(*resource, path, &answer.server) {
                for new in before.news(diagnostics) {
                    let brought = |(group, result): (&PlannedGroup, &GroupResult)| {
                        let prints = result.brought.get(path);
                        group.resource_id == *resource && prints.is_some_and(|p| p.contains(&print(new)))
                    };
                    if let Some(at) = handover.groups.iter().zip(&state.results).position(brought) {
                        of_groups.entry(at).or_default().push(problem(path, &answer.server, new));
                    }
                }
            }
            if let Some(now) = known.now(*resource, path, &answer.server) {
                let errors = now.news(diagnostics).into_iter().filter(|d| d.severity == Severity::Error);
                unnoticed.extend(errors.map(|d| problem(path, &answer.server, d)));
            }
        }
    }
    for problems in of_groups.values_mut() {
        problems.truncate(MAX_FOLLOW_UPS);
    }
    unnoticed.truncate(MAX_FOLLOW_UPS);
    (of_groups, unnoticed)
}

/// The last decisions and the summary.
pub(super) async fn finish(
    host: &dyn ActorHost,
    handover: &Handover,
    state: &State,
    kept: Kept<'_>,
) -> Result<(Vec<Request>, PhaseSummary), Halt> {
    let looks = last_look(host, handover, state).await?;
    let (follow_ups, unnoticed) = news(handover, state, &looks);
    let requests = follow_ups
        .iter()
        .map(|(at, problems)| Request::RecordDecision(record::follow_up(&handover.groups[*at], problems)))
        .collect();
    Ok((requests, summary(handover, state, &looks, (&follow_ups, unnoticed.as_slice()), kept)))
}

#[derive(Default)]
struct Totals {
    fixed: u32,
    suppressed: u32,
    left: u32,
    rolled_back: u32,
    not_checked: u32,
    not_verified: u32,
}

fn summary(
    handover: &Handover,
    state: &State,
    looks: &BTreeMap<ResourceId, Answers>,
    (follow_ups, unnoticed): (&BTreeMap<usize, Vec<Problem>>, &[Problem]),
    kept: Kept<'_>,
) -> PhaseSummary {
    let mut totals = Totals::default();
    let mut lines = Vec::new();
    let mut groups = Vec::new();
    for (group, result) in handover.groups.iter().zip(&state.results) {
        let rest = rest_of(group, looks, handover.severity, kept);
        let gone = group.findings().saturating_sub(rest.left + rest.unverified);
        let option = group.options.iter().find(|option| result.chosen.as_deref() == Some(&option.text));
        let suppresses = option.is_some_and(|option| option.class == Class::Suppress);
        if suppresses && result.outcome == Outcome::Applied {
            totals.suppressed += gone;
        } else {
            totals.fixed += gone;
        }
        match result.outcome {
            Outcome::NotChecked => totals.not_checked += rest.left + rest.unverified,
            _ => {
                totals.left += rest.left;
                totals.not_verified += rest.unverified;
            }
        }
        totals.rolled_back += u32::from(result.outcome == Outcome::RolledBack);
        lines.push(line(group, result, rest, gone, suppresses));
        groups.push(json!({
            "key": group.strategy_key(), "server": group.server, "rule": group.rule,
            "outcome": result.outcome, "chosen": result.chosen, "why": result.why,
            "findings": group.findings(), "fixed": gone, "left": rest.left, "not_verified": rest.unverified,
            "suppressed": suppresses && result.outcome == Outcome::Applied,
            "rounds": result.rounds, "applied": result.applied, "did_not_help": result.stuck,
            "files": result.touched, "unverified_files": result.unverified,
        }));
    }
    if handover.without_option > 0 {
        let findings = count(handover.without_option as usize, "finding");
        lines.push(format!("Left: {findings} without a decision (no usable fix)"));
    }
    if handover.read_only > 0 {
        let kept: Vec<&str> =
            handover.workspaces.iter().filter(|w| w.read_only).map(|w| w.name.as_str()).collect();
        let findings = count(handover.read_only as usize, "finding");
        let verb = agree(kept.len(), "is", "are");
        lines.push(format!("Left: {findings} in {}, which {verb} read-only", kept.join(", ")));
    }
    if handover.kept > 0 {
        let findings = count(handover.kept as usize, "finding");
        lines.push(format!("Left: {findings} in files that an invariant keeps as they are"));
    }
    if state.touched.is_empty() {
        lines.push("Nothing was changed; applying the plan ends it and changes nothing".to_owned());
    }
    let unchecked = handover.workspaces.iter().flat_map(|w| w.unchecked.iter().map(move |u| (w, u)));
    for (workspace, unchecked) in unchecked.clone() {
        lines.push(format!(
            "Never checked by {}: {} of {} ({})",
            unchecked.server,
            count(unchecked.paths.len(), "file"),
            workspace.name,
            first_line(&unchecked.reason)
        ));
    }
    for problem in unnoticed {
        lines.push(format!("New error after the last fix: {}", problem.line()));
    }
    for (at, problems) in follow_ups {
        let shown: Vec<String> = problems.iter().map(Problem::line).collect();
        let new = count(problems.len(), "new finding");
        lines.push(format!("Follow-up: {new} after {}: {}", handover.groups[*at].name(), sample(&shown)));
    }
    lines.extend(state.notes.iter().cloned());
    lines.extend(unused_guidance(&state.words));
    let files: BTreeSet<(ResourceId, &String)> = state
        .touched
        .iter()
        .flat_map(|(resource, paths)| paths.iter().map(move |path| (*resource, path)))
        .collect();
    let not_checked: Vec<Value> = unchecked
        .map(|(workspace, unchecked)| {
            let paths: Vec<&String> = unchecked.paths.iter().take(MAX_FACTS).collect();
            json!({"resource": workspace.name, "server": unchecked.server, "reason": unchecked.reason,
                   "files": unchecked.paths.len(), "paths": paths})
        })
        .collect();
    let all_follow_ups: Vec<&Problem> = follow_ups.values().flatten().collect();
    PhaseSummary {
        headline: headline(handover, &totals, files.len(), all_follow_ups.len(), unnoticed.len()),
        lines,
        facts: json!({
            "fixed": totals.fixed,
            "suppressed": totals.suppressed,
            "left": totals.left + handover.without_option + handover.read_only + handover.kept,
            "kept": handover.kept,
            "read_only": handover.read_only,
            "rolled_back": totals.rolled_back,
            "not_checked": totals.not_checked,
            "not_verified": totals.not_verified,
            "follow_ups": all_follow_ups,
            "new_errors": unnoticed,
            "files_changed": files.iter().take(MAX_FACTS).map(|(_, path)| path).collect::<Vec<_>>(),
            "files_never_checked": not_checked,
            "groups": groups,
        }),
    }
}

fn headline(handover: &Handover, totals: &Totals, files: usize, follow_ups: usize, errors: usize) -> String {
    let all: u32 = handover.groups.iter().map(PlannedGroup::findings).sum();
    let all = all + handover.without_option + handover.read_only + handover.kept;
    let fixed = share(totals.fixed as usize, all as usize, "finding");
    let mut text = match (all, totals.fixed) {
        (0, _) => return "There was nothing to fix".to_owned(),
        (_, 0) => format!("{} fixed", sentence(&fixed)),
        _ => format!("Fixed {fixed} in {}", count(files, "file")),
    };
    let left = totals.left + handover.without_option;
    let parts = [
        (totals.suppressed as usize, format!("{} suppressed by choice", totals.suppressed)),
        (left as usize, format!("{left} left")),
        (handover.read_only as usize, format!("{} read-only", handover.read_only)),
        (handover.kept as usize, format!("{} kept by an invariant", handover.kept)),
        (totals.rolled_back as usize, format!("{} rolled back", count(totals.rolled_back as usize, "kind"))),
        (totals.not_checked as usize, format!("{} not checked", totals.not_checked)),
        (totals.not_verified as usize, format!("{} not verified", totals.not_verified)),
        (follow_ups, format!("{} to follow up", count(follow_ups, "new finding"))),
        (errors, count(errors, "new error")),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|(n, _)| *n > 0).map(|(_, part)| part).collect();
    if !parts.is_empty() {
        text = format!("{text}: {}", parts.join(", "));
    }
    text
}

fn line(group: &PlannedGroup, result: &GroupResult, rest: Rest, gone: u32, suppresses: bool) -> String {
    let all = group.findings();
    let option = result.chosen.as_deref().unwrap_or_default();
    let mut parts = vec![match result.outcome {
        Outcome::Applied => {
            let what = if suppresses { "suppressed by choice" } else { "fixed" };
            format!("{gone} of {all} {what} with “{option}”")
        }
        Outcome::LeftAlone => "left alone".to_owned(),
        Outcome::Gone => "nothing to do".to_owned(),
        Outcome::NotOffered => "left".to_owned(),
        Outcome::RolledBack => format!("“{option}” rolled back"),
        Outcome::Failed => format!("“{option}” failed"),
        Outcome::NotChecked => "not checked".to_owned(),
    }];
    if !result.why.is_empty() {
        parts.push(result.why.clone());
    }
    if rest.left > 0 {
        parts.push(format!("{} left", rest.left));
    }
    if result.stuck > 0 {
        parts.push(format!("for {} the fix did not help", result.stuck));
    }
    if rest.unverified > 0 {
        parts.push(format!("{} not verified", rest.unverified));
    }
    if let Some((path, reason)) = result.unverified.first_key_value() {
        let files = count(result.unverified.len(), "edited file");
        parts.push(format!("{files} not verified ({path}: {reason})"));
    }
    format!("{}: {}", group.name(), parts.join("; "))
}
