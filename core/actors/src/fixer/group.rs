//! Findings by server and rule, with the options of each group and the one that is proposed.

use std::collections::{BTreeMap, BTreeSet};

use agents_domain::QualifiedName;
use agents_domain::diagnostics::{Diagnostic, Severity};
use agents_domain::ids::ResourceId;
use agents_domain::ports::actor::KnownDecision;
use serde::{Deserialize, Serialize};

use super::confidence::{self, Case, Factor, FixFacts};
use super::options::{Class, LEAVE_ALONE, Offers, edits_of, key, match_answer};
use super::patterns;
use super::texts::Texts;

/// Options of a group that are shown; a person who wants another one says so in words for one of these.
const MAX_OPTIONS: usize = 12;

/// One finding.
#[derive(Debug, Clone)]
pub(super) struct Finding {
    /// The file.
    pub path: String,
    /// What the server says.
    pub diagnostic: Diagnostic,
}

/// A group, as Execute needs it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct PlannedGroup {
    /// Workspace, server and rule: what the keys of its decisions end with.
    pub id: String,
    /// The resource.
    pub resource_id: ResourceId,
    /// The server.
    pub server: QualifiedName,
    /// The rule.
    pub rule: String,
    /// How many findings each file has.
    pub files: BTreeMap<String, u32>,
    /// The options; doing nothing is one more.
    pub options: Vec<PlannedOption>,
}

impl PlannedGroup {
    /// Key of its decision in Strategize.
    pub fn strategy_key(&self) -> String {
        format!("strategy/{}", self.id)
    }

    /// Key of its decision in Execute.
    pub fn fix_key(&self) -> String {
        format!("fix/{}", self.id)
    }

    /// How many findings it has.
    pub fn findings(&self) -> u32 {
        self.files.values().sum()
    }

    /// What stands for this group: its latest decision with what that means.
    pub fn standing(&self, decisions: &[KnownDecision]) -> Standing {
        let key = self.strategy_key();
        let of_group = |decision: &&KnownDecision| decision.key.as_deref() == Some(key.as_str());
        let Some(decision) = decisions.iter().rev().find(of_group) else { return Standing::Undecided };
        let own = || -> Vec<String> { self.options.iter().map(|option| option.text.clone()).collect() };
        let shown = if decision.options.is_empty() { own() } else { decision.options.clone() };
        let meant = match_answer(&decision.chosen_option, &shown).map(|index| shown[index].as_str());
        match meant {
            Some(LEAVE_ALONE) => Standing::LeaveAlone,
            Some(text) => match self.options.iter().position(|option| option.text == text) {
                Some(index) => Standing::Option(index),
                None => Standing::Unclear(decision.chosen_option.clone()),
            },
            None => Standing::Unclear(decision.chosen_option.clone()),
        }
    }

    /// `F401 from local/ruff`
    pub fn name(&self) -> String {
        format!("{} from {}", self.rule, self.server)
    }
}

/// What is to be done about a group.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Standing {
    /// Its option with this index.
    Option(usize),
    /// Nothing.
    LeaveAlone,
    /// Nothing: a person's words mean no option.
    Unclear(String),
    /// Nothing: no decision stands.
    Undecided,
}

/// An option, as Execute needs it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct PlannedOption {
    /// The alternative's text.
    pub text: String,
    /// What offers of it are known by.
    pub key: String,
    /// What it does.
    pub class: Class,
}

/// An option with what is known of it.
#[derive(Debug, Clone, Serialize)]
pub(super) struct GroupOption {
    /// What offers of it are known by.
    pub key: String,
    /// What it does.
    pub class: Class,
    /// The title, whole when all its findings have the same one.
    pub title: String,
    /// Findings that offer it.
    pub offering: usize,
    /// Of these, those where it is marked as preferred.
    pub preferred: usize,
    /// Of these, those where it takes a declaration away.
    pub deleting: usize,
    /// Of these, those where it edits other files.
    pub elsewhere: usize,
    /// The first of these: file, 1-based line, changed lines before and after.
    pub example: Option<Example>,
}

/// What an option does, at one place.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Example {
    /// The file.
    pub path: String,
    /// 1-based.
    pub line: u32,
    /// The lines that change.
    pub before: String,
    /// What they become.
    pub after: String,
}

/// All that Strategize knows of a group.
#[derive(Debug, Clone)]
pub(super) struct Group {
    /// Index of its workspace in the survey.
    pub workspace: usize,
    /// The server.
    pub server: QualifiedName,
    /// The rule.
    pub rule: String,
    /// Its findings in order of file and place.
    pub findings: Vec<Finding>,
    /// Options of each finding that was asked about: keys.
    pub offered: Vec<Vec<String>>,
    /// Its options, those for people to see first.
    pub options: Vec<GroupOption>,
    /// Options that are too many to show.
    pub more_options: usize,
    /// What is offered but is no option, with the reason and how often.
    pub unusable: BTreeMap<(String, String), usize>,
    /// Findings whose options the server did not tell, with the first reason.
    pub unanswered: Option<(usize, String)>,
    /// The invariant that keeps its files as they are.
    pub kept_by: Option<String>,
}

impl Group {
    /// A group that nothing was asked about yet.
    pub fn new(workspace: usize, server: QualifiedName, rule: String, findings: Vec<Finding>) -> Self {
        Self {
            workspace,
            server,
            rule,
            findings,
            offered: Vec::new(),
            options: Vec::new(),
            more_options: 0,
            unusable: BTreeMap::new(),
            unanswered: None,
            kept_by: None,
        }
    }

    /// Takes in what is offered for the next finding.
    pub fn add(&mut self, offers: Result<Offers, String>, texts: &mut Texts<'_>) {
        let Some(finding) = self.findings.get(self.offered.len()) else { return };
        let offers = match offers {
            Ok(offers) => offers,
            Err(reason) => {
                self.unanswered.get_or_insert((0, reason)).0 += 1;
                Offers::default()
            }
        };
        for (title, reason) in offers.unusable {
            *self.unusable.entry((key(&title), reason)).or_insert(0) += 1;
        }
        let mut keys = Vec::with_capacity(offers.usable.len());
        for offer in offers.usable {
            let known = self.options.iter().position(|known| known.key == offer.key);
            let at = known.unwrap_or_else(|| {
                let own = offer.edits.iter().find(|edit| edit.path() == finding.path);
                let shown = own.or(offer.edits.first()).map(|edit| edit.path().to_owned());
                let example = shown.and_then(|path| {
                    let edits = edits_of(&offer.edits, &path);
                    let line = edits.first()?.range.start.line.saturating_add(1);
                    let (before, after) = texts.example(&path, edits)?;
                    Some(Example { path, line, before, after })
                });
                self.options.push(GroupOption {
                    key: offer.key.clone(),
                    class: offer.class,
                    title: offer.title.clone(),
                    offering: 0,
                    preferred: 0,
                    deleting: 0,
                    elsewhere: 0,
                    example,
                });
                self.options.len() - 1
            });
            let deletes = offer.class == Class::Fix
                && (patterns::deletes_declaration(&offer.title)
                    || offer.edits.iter().any(|edit| texts.deletes_declaration(edit)));
            let option = &mut self.options[at];
            if option.title != offer.title {
                option.title.clone_from(&option.key);
            }
            option.offering += 1;
            option.preferred += usize::from(offer.preferred);
            option.deleting += usize::from(deletes);
            option.elsewhere += usize::from(offer.edits.iter().any(|edit| edit.path() != finding.path));
            keys.push(offer.key);
        }
        self.offered.push(keys);
    }

    /// Brings the options in the order that people see, and drops those that are too many.
    pub fn finish(&mut self) {
        self.options.sort_by_key(|option| {
            (option.class, std::cmp::Reverse((option.preferred.min(1), option.offering)))
        });
        self.more_options = self.options.len().saturating_sub(MAX_OPTIONS);
        if self.more_options > 0 {
            // One way to suppress stays on offer however many fixes there are.
            let suppress = self.options.iter().position(|option| option.class == Class::Suppress);
            if let Some(at) = suppress.filter(|at| *at >= MAX_OPTIONS) {
                self.options.swap(MAX_OPTIONS - 1, at);
            }
            self.options.truncate(MAX_OPTIONS);
        }
        let mut taken: BTreeSet<String> = BTreeSet::from([LEAVE_ALONE.to_owned()]);
        for option in &mut self.options {
            let title = option.title.clone();
            let mut number = 1;
            while !taken.insert(option.title.clone()) {
                number += 1;
                option.title = format!("{title} ({number})");
            }
        }
    }

    /// Index of the option that is proposed: the only preferred fix, else the only fix when none is preferred. `None`
    /// leaves the group alone.
    pub fn proposed(&self) -> Option<usize> {
        let preferred: Vec<usize> =
            self.fixes().filter(|(_, option)| option.preferred > 0).map(|(i, _)| i).collect();
        let fixes: Vec<usize> = self.fixes().map(|(index, _)| index).collect();
        match (preferred.as_slice(), fixes.as_slice()) {
            ([only], _) | ([], [only]) => Some(*only),
            _ => None,
        }
    }

    /// Options that fix, with their index.
    pub fn fixes(&self) -> impl Iterator<Item = (usize, &GroupOption)> {
        self.options.iter().enumerate().filter(|(_, option)| option.class == Class::Fix)
    }

    /// The confidence in what is proposed, and its factors.
    pub fn confidence(&self) -> (f64, Vec<Factor>) {
        let fixes = self.fixes().count();
        let case = match self.proposed().map(|index| &self.options[index]) {
            None if fixes == 0 => Case::OnlySuppressing,
            None => Case::Undecided { fixes: fixes + self.more_options },
            Some(option) => Case::Fix(FixFacts {
                probed: self.offered.len(),
                offering: option.offering,
                deleting: option.deleting,
                elsewhere: option.elsewhere,
                preferred: option.preferred > 0,
                rivals: fixes - 1,
                errors: self.severity() == Severity::Error,
                files: self.files().len(),
                unprobed: self.findings.len() - self.offered.len(),
            }),
        };
        confidence::of_strategy(case)
    }

    /// The worst severity of its findings.
    pub fn severity(&self) -> Severity {
        self.findings.iter().map(|finding| finding.diagnostic.severity).min().unwrap_or(Severity::Hint)
    }

    /// How many findings each file has.
    pub fn files(&self) -> BTreeMap<String, u32> {
        let mut files = BTreeMap::new();
        for finding in &self.findings {
            *files.entry(finding.path.clone()).or_insert(0) += 1;
        }
        files
    }

    /// What the findings say, names left out: the commonest, one line.
    pub fn gist(&self) -> String {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for finding in &self.findings {
            let first = finding.diagnostic.message.lines().next().unwrap_or_default();
            *counts.entry(key(first)).or_insert(0) += 1;
        }
        let commonest =
            counts.into_iter().max_by_key(|(text, count)| (*count, std::cmp::Reverse(text.clone())));
        let text = commonest.map(|(text, _)| text).unwrap_or_default();
        let text = text.trim_start_matches(['…', ' ']).trim_end_matches(['.', ' ']);
        let mut short: String = text.chars().take(80).collect();
        if short.len() < text.len() {
            short.push('…');
        }
        short
    }
}
