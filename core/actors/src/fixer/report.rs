//! What the phases leave for people and programs to read.

use std::collections::BTreeMap;

use agents_domain::plan::PhaseSummary;
use agents_domain::ports::actor::KnownDecision;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::baseline::SurveyedWorkspace;
use super::group::{Group, PlannedGroup, Standing};
use super::options::{Class, LEAVE_ALONE};
use super::survey::Survey;
use super::{agree, clamp, count};
use crate::common::{cut, first_line, sample};

/// Groups that a summary lists one by one.
/// Entries of a list in the facts.
pub(super) const MAX_FACTS: usize = 1000;

/// What Strategize saw, for its summary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct StrategyReport {
    findings: u32,
    files_with_findings: u32,
    files: u32,
    unchecked_files: u32,
    read_only: bool,
    /// One per decision, in their order.
    groups: Vec<GroupFacts>,
    /// Groups without a decision.
    rest: Vec<GroupFacts>,
    /// Of these, those that were only too many.
    undecided: u32,
    /// Names of the resources that must not be changed.
    kept: Vec<String>,
    gaps: Vec<String>,
    unwanted: u32,
    unserved: BTreeMap<String, usize>,
    not_checked: Vec<Value>,
    skipped: Vec<Value>,
    servers: Value,
}

/// A group, in numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct GroupFacts {
    server: String,
    rule: String,
    gist: String,
    findings: u32,
    files: u32,
    confidence: Option<f64>,
    why_none: Option<String>,
    /// Its resource must not be changed.
    read_only: bool,
}

impl GroupFacts {
    fn new(group: &Group, workspace: &SurveyedWorkspace, decided: bool) -> Self {
        let fixes = group.fixes().count();
        let why_none = (!decided).then(|| match (&group.unanswered, group.unusable.iter().next()) {
            _ if group.kept_by.is_some() => {
                let text = group.kept_by.as_deref().unwrap_or_default();
                format!("left alone, by the invariant “{text}”")
            }
            _ if workspace.read_only && fixes > 0 => {
                let options = group.fixes().map(|(_, option)| format!("“{}”", option.title));
                format!(
                    "left alone, {} is read-only; {} would fix it",
                    workspace.name,
                    sample(&options.collect::<Vec<_>>())
                )
            }
            _ if workspace.read_only => format!("left alone, {} is read-only", workspace.name),
            _ if !group.options.is_empty() => "it has options, and no decision was made".to_owned(),
            (Some((_, reason)), _) => format!("the server did not tell ({})", first_line(reason)),
            (None, Some(((title, reason), _))) => {
                format!("nothing that can be used (“{title}”: {})", first_line(reason))
            }
            (None, None) => "no fix is offered".to_owned(),
        });
        Self {
            server: group.server.to_string(),
            rule: group.rule.clone(),
            gist: group.gist(),
            findings: clamp(group.findings.len()),
            files: clamp(group.files().len()),
            confidence: decided.then(|| group.confidence().0),
            why_none,
            read_only: workspace.read_only,
        }
    }

    fn line(&self, ends: &str) -> String {
        let (findings, files) =
            (count(self.findings as usize, "finding"), count(self.files as usize, "file"));
        let gist = if self.gist.is_empty() { String::new() } else { format!(" ({})", self.gist) };
        format!("{} from {}{gist}: {findings} in {files}; {ends}", self.rule, self.server)
    }
}

impl StrategyReport {
    /// From what was seen: `chosen` groups have a decision each, `rest` have none.
    pub fn new(survey: &Survey, chosen: &[Group], rest: &[Group], undecided: usize, read_only: bool) -> Self {
        let groups = || chosen.iter().chain(rest);
        let facts =
            |group: &Group, decided| GroupFacts::new(group, &survey.workspaces[group.workspace], decided);
        let mut files: Vec<(usize, &str)> =
            groups().flat_map(|g| g.findings.iter().map(|f| (g.workspace, f.path.as_str()))).collect();
        files.sort_unstable();
        files.dedup();
        let not_checked = survey.workspaces.iter().flat_map(|workspace| {
            workspace.unchecked.iter().map(|unchecked| {
                json!({
                    "resource": workspace.name, "server": unchecked.server, "reason": unchecked.reason,
                    "files": unchecked.paths.len(),
                    "paths": unchecked.paths.iter().take(MAX_FACTS).collect::<Vec<_>>(),
                })
            })
        });
        let skipped = survey.skipped.iter().map(|(reason, paths)| {
            json!({"reason": reason, "files": paths.len(), "paths": paths.iter().take(MAX_FACTS).collect::<Vec<_>>()})
        });
        Self {
            findings: clamp(groups().map(|group| group.findings.len()).sum()),
            files_with_findings: clamp(files.len()),
            files: clamp(survey.files()),
            unchecked_files: clamp(survey.unchecked_files()),
            read_only,
            groups: chosen.iter().map(|group| facts(group, true)).collect(),
            rest: rest.iter().map(|group| facts(group, false)).collect(),
            kept: survey.workspaces.iter().filter(|w| w.read_only).map(|w| w.name.clone()).collect(),
            undecided: clamp(undecided),
            gaps: survey.gaps(),
            unwanted: clamp(survey.unwanted),
            unserved: survey.unserved.clone(),
            not_checked: not_checked.collect(),
            skipped: skipped.collect(),
            servers: serde_json::to_value(&survey.servers).unwrap_or_default(),
        }
    }

    /// The summary, with the decisions as they stand.
    pub fn summary(
        &self,
        planned: &[PlannedGroup],
        decisions: &[KnownDecision],
        guidance: &[String],
    ) -> PhaseSummary {
        let (mut fixed, mut suppressed, mut left) = (0, 0, 0);
        let mut lines = Vec::new();
        let mut groups = Vec::new();
        for (facts, group) in self.groups.iter().zip(planned) {
            let (choice, ends) = match group.standing(decisions) {
                Standing::Option(index) => {
                    let option = &group.options[index];
                    let verb = match option.class {
                        Class::Fix => "to be fixed",
                        Class::Suppress => "to be suppressed by choice",
                    };
                    match option.class {
                        Class::Fix => fixed += 1,
                        Class::Suppress => suppressed += 1,
                    }
                    (option.text.clone(), format!("{verb}: {}", option.text))
                }
                Standing::LeaveAlone | Standing::Undecided => {
                    left += 1;
                    (LEAVE_ALONE.to_owned(), "left alone".to_owned())
                }
                Standing::Unclear(words) => {
                    left += 1;
                    (LEAVE_ALONE.to_owned(), format!("left alone: “{words}” names none of its options"))
                }
            };
            lines.push(facts.line(&ends));
            let mut value = serde_json::to_value(facts).unwrap_or_default();
            value["key"] = group.strategy_key().into();
            value["choice"] = choice.into();
            groups.push(value);
        }
        cut(&mut lines, "kinds");
        let mut rest: Vec<String> =
            self.rest.iter().map(|facts| facts.line(facts.why_none.as_deref().unwrap_or_default())).collect();
        cut(&mut rest, "kinds");
        lines.append(&mut rest);
        lines.extend(self.gaps.iter().cloned());
        if self.unwanted > 0 {
            let findings = count(self.unwanted as usize, "finding");
            lines.push(format!("Left out by the plan's arguments: {findings}"));
        }
        if self.undecided > 0 {
            let kinds = count(self.undecided as usize, "kind");
            let have = agree(self.undecided as usize, "has", "have");
            lines.push(format!("{kinds} more {have} options; a plan decides about the first 200"));
        }
        if !self.unserved.is_empty() {
            let languages: Vec<String> =
                self.unserved.iter().map(|(language, n)| format!("{language}: {n}")).collect();
            lines.push(format!("Files without a registered language server: {}", languages.join(", ")));
        }
        match self.kept.as_slice() {
            [] => {}
            _ if self.read_only => {
                lines.push("The plan is read-only: it reports what it finds and changes nothing".to_owned());
            }
            kept => {
                let verb = agree(kept.len(), "is", "are");
                lines.push(format!(
                    "{} {verb} read-only: what is found there is reported and not changed",
                    kept.join(", ")
                ));
            }
        }
        lines.extend(unused_guidance(guidance));
        PhaseSummary {
            headline: self.headline(fixed, suppressed, left),
            lines,
            facts: json!({
                "findings": self.findings,
                "rules": self.groups.len() + self.rest.len(),
                "files_with_findings": self.files_with_findings,
                "files": self.files,
                "files_not_checked": self.unchecked_files,
                "kinds_to_fix": fixed,
                "kinds_to_suppress": suppressed,
                "kinds_left_alone": left,
                "groups": groups,
                "without_decision": self.rest,
                "not_checked": self.not_checked,
                "skipped": self.skipped,
                "unserved": self.unserved,
                "servers": self.servers,
            }),
        }
    }

    fn headline(&self, fixed: usize, suppressed: usize, left: usize) -> String {
        let checked = self.files.saturating_sub(self.unchecked_files);
        let unchecked = match self.unchecked_files {
            0 => String::new(),
            n => format!("; {} not checked", count(n as usize, "file")),
        };
        if self.findings == 0 {
            return match checked {
                0 => format!("Nothing was checked{unchecked}"),
                n => format!("Nothing found in {}{unchecked}", count(n as usize, "file")),
            };
        }
        let findings = count(self.findings as usize, "finding");
        let kept = self.rest.iter().filter(|group| group.read_only).count();
        let rules = count(self.groups.len() + self.rest.len(), "rule");
        let in_files = count(self.files_with_findings as usize, "file");
        let kinds = |n: usize, one: &str, many: &str| {
            (n > 0).then(|| format!("{} {}", count(n, "kind"), agree(n, one, many)))
        };
        let parts: Vec<String> = [
            kinds(fixed, "will be fixed", "will be fixed"),
            kinds(suppressed, "will be suppressed", "will be suppressed"),
            kinds(left, "is left alone", "are left alone"),
            kinds(self.rest.len() - kept, "has no usable fix", "have no usable fix"),
            kinds(kept, "is in what is read-only", "are in what is read-only"),
        ]
        .into_iter()
        .flatten()
        .collect();
        format!("{findings} of {rules} in {in_files}: {}{unchecked}", parts.join(", "))
    }
}

/// Free words that a model-free actor cannot follow are said to be unused.
pub(super) fn unused_guidance(guidance: &[String]) -> Option<String> {
    let shown: Vec<String> = guidance.iter().map(|text| format!("“{}”", first_line(text))).collect();
    (!shown.is_empty()).then(|| {
        format!(
            "Not used: {} (this actor follows the options of its decisions, not free words)",
            sample(&shown)
        )
    })
}
