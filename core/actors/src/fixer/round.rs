//! One round of edits of a group: what its option changes now, without what is double or would overlap.

use std::collections::{BTreeMap, BTreeSet};

use agents_domain::diagnostics::Diagnostic;
use agents_domain::ports::actor::{ActorHost, ActorWorkspace};
use agents_domain::text::{FileEdit, Range, TextEdit, apply_edits};
use serde::{Deserialize, Serialize};

use super::baseline::{Answers, print};
use super::group::{PlannedGroup, PlannedOption};
use super::kept::Kept;
use super::options::{self, Class, Offer};
use super::patterns;
use super::source::{Need, SourceText};
use super::texts::Texts;
use super::{Halt, clamp, look};
use crate::common::{first_line, touched};

/// How much of the option is applied; a person may choose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mode {
    /// All of it, in as many rounds as it takes.
    #[default]
    Fixpoint,
    /// What does not overlap, once.
    OneRound,
    /// As `Fixpoint`, without the fixes that edit other files.
    OwnFiles,
}

/// Findings by file and fingerprint, with a number each.
pub(super) type Tally = BTreeMap<String, BTreeMap<String, u32>>;

/// The edits of a round, and what they are made of.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Round {
    /// For `builtin/apply-edits`.
    pub edits: Vec<FileEdit>,
    /// Findings of the group that these edits are for.
    pub applied: u32,
    /// Findings that wait for the next round, because their edits overlap.
    pub waiting: u32,
    /// Findings that do not offer the option.
    pub without: u32,
    /// Findings whose fix had been applied and did not help.
    pub stuck: u32,
    /// Findings whose fix edits other files: left out when the mode says so.
    pub elsewhere: u32,
    /// Findings whose fix takes a declaration away.
    pub deleting: u32,
    /// Findings that the server did not tell options for, with the first reason.
    pub unanswered: Option<(u32, String)>,
    /// Findings of the group that are there now.
    pub found: Tally,
    /// Of these, those that edits are for.
    pub attempted: Tally,
    /// Places of the latter, at most as many as a decision names.
    pub places: Vec<Place>,
}

/// Where an edit's finding is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Place {
    /// The file.
    pub path: String,
    /// The finding's range.
    pub range: Range,
    /// The declaration around it.
    pub symbol: Option<String>,
    /// Its message.
    pub message: String,
}

impl Round {
    /// The files that the edits touch, both ends of a rename.
    pub fn touched(&self) -> BTreeSet<String> {
        touched(&self.edits)
    }

    /// Findings that are there now.
    pub fn findings(&self) -> u32 {
        self.found.values().flat_map(BTreeMap::values).sum()
    }
}

/// Counts one more.
pub(super) fn tally(of: &mut Tally, path: &str, print: &str) {
    *of.entry(path.to_owned()).or_default().entry(print.to_owned()).or_insert(0) += 1;
}

/// What a round is made from.
pub(super) struct RoundOf<'a> {
    /// The group.
    pub group: &'a PlannedGroup,
    /// What is done about it.
    pub option: &'a PlannedOption,
    /// How much of it.
    pub mode: Mode,
    /// Findings whose fix did not help.
    pub stuck: &'a Tally,
    /// Places that are kept.
    pub places: usize,
    /// Files that are not to be changed.
    pub kept: Kept<'a>,
}

/// The findings of the group among what the servers say now.
pub(super) fn findings<'d>(group: &PlannedGroup, answers: &'d Answers) -> Vec<(&'d str, &'d Diagnostic)> {
    let mut found = Vec::new();
    for (path, servers) in answers {
        let of_group = servers.iter().filter(|answer| answer.server == group.server);
        let diagnostics = of_group.flat_map(|answer| answer.diagnostics.iter().flatten());
        found.extend(diagnostics.filter(|d| d.rule() == group.rule).map(|d| (path.as_str(), d)));
    }
    found
}

/// Makes a round's edits from what the servers say now.
pub(super) async fn round(
    host: &dyn ActorHost,
    workspace: &ActorWorkspace,
    of: RoundOf<'_>,
    findings: &[(&str, &Diagnostic)],
) -> Result<Round, Halt> {
    let label = format!("Asking {} for the fixes of {}", of.group.server, of.group.rule);
    let mut round = Round::default();
    let mut asked = Vec::new();
    let mut given_up = of.stuck.clone();
    for (path, diagnostic) in findings {
        let print = print(diagnostic);
        tally(&mut round.found, path, &print);
        match given_up.get_mut(*path).and_then(|prints| prints.get_mut(&print)) {
            Some(n) if *n > 0 => {
                *n -= 1;
                round.stuck += 1;
            }
            _ => asked.push((*path, *diagnostic)),
        }
    }
    let languages = workspace.languages.as_ref();
    let answers = look::actions(host, languages, &of.group.server, &asked, &label).await?;
    let mut texts = Texts::new(host, workspace);
    let mut offers: Vec<(usize, Offer)> = Vec::new();
    for (at, answer) in answers.into_iter().enumerate() {
        let path = asked[at].0;
        let offered = match answer {
            Ok(offered) => options::sort(offered, &of.group.rule, &mut texts),
            Err(reason) => {
                round.unanswered.get_or_insert((0, first_line(&reason).to_owned())).0 += 1;
                continue;
            }
        };
        let fits = |offer: &Offer, texts: &mut Texts<'_>| {
            offer.key == of.option.key && offer.class == of.option.class && options::fits(&offer.edits, texts)
        };
        let Some(offer) = offered.usable.into_iter().find(|offer| fits(offer, &mut texts)) else {
            round.without += 1;
            continue;
        };
        if of.kept.reached_by(&offer.edits) {
            round.without += 1;
            continue;
        }
        if offer.edits.iter().any(|edit| edit.path() != path) {
            round.elsewhere += 1;
            if of.mode == Mode::OwnFiles {
                continue;
            }
        }
        offers.push((at, offer));
    }
    texts.prepare(offers.iter().map(|(at, _)| asked[*at].0), Need::Symbols);
    let (merge, taken) = merge_all(&offers, &mut texts);
    for ((at, offer), taken) in offers.iter().zip(taken) {
        if !taken {
            round.waiting += 1;
            continue;
        }
        let (path, diagnostic) = asked[*at];
        round.applied += 1;
        tally(&mut round.attempted, path, &print(diagnostic));
        let deletes = offer.class == Class::Fix
            && (patterns::deletes_declaration(&offer.title)
                || offer.edits.iter().any(|edit| texts.deletes_declaration(edit)));
        round.deleting += u32::from(deletes);
        if round.places.len() < of.places {
            let symbol = texts.get(path).and_then(|source| source.symbol_at(diagnostic.range.start));
            round.places.push(Place {
                path: path.to_owned(),
                range: diagnostic.range,
                symbol,
                message: diagnostic.message.clone(),
            });
        }
    }
    round.edits = merge.into_edits();
    Ok(round)
}

/// Merges as many offers as go together. Where all of them together break the syntax of a file although none of them
/// overlap (each takes its own name out of one list), an offer is taken there only when it goes with those before it;
/// the rest comes in later rounds.
fn merge_all(offers: &[(usize, Offer)], texts: &mut Texts<'_>) -> (Merge, Vec<bool>) {
    let mut careful = BTreeSet::new();
    loop {
        let mut merge = Merge::default();
        let taken: Vec<bool> =
            offers.iter().map(|(_, offer)| merge.take_carefully(&offer.edits, &careful, texts)).collect();
        let broken: Vec<String> = merge
            .files
            .iter()
            .filter(|(path, edits)| !careful.contains(*path) && edits.len() > 1 && breaks(path, edits, texts))
            .map(|(path, _)| path.clone())
            .collect();
        if broken.is_empty() {
            return (merge, taken);
        }
        careful.extend(broken);
    }
}

fn breaks(path: &str, edits: &[TextEdit], texts: &mut Texts<'_>) -> bool {
    let Some(source) = texts.get(path) else { return false };
    let Ok(after) = apply_edits(&source.text, edits) else { return true };
    let errors = |source: &SourceText| source.syntax_errors().map(|e| e.values().sum::<u32>());
    match (errors(&source), errors(&SourceText::of(path, after))) {
        (Some(before), Some(after)) => after > before,
        _ => false,
    }
}

/// Edits of several offers that can be applied together.
#[derive(Debug, Default)]
struct Merge {
    /// By file, in text order.
    files: BTreeMap<String, Vec<TextEdit>>,
    /// Offers that make, move or remove files; each has its files to itself.
    whole: Vec<Vec<FileEdit>>,
    /// Files of these.
    reserved: BTreeSet<String>,
}

impl Merge {
    /// As [`Merge::take`]; in the files of `careful`, only when the syntax bears it with what was taken before.
    fn take_carefully(
        &mut self,
        edits: &[FileEdit],
        careful: &BTreeSet<String>,
        texts: &mut Texts<'_>,
    ) -> bool {
        let mut before = Vec::new();
        for path in touched(edits).intersection(careful) {
            if let Some(taken) = self.files.get(path) {
                before.push((path.clone(), taken.clone()));
            }
        }
        if !self.take(edits) {
            return false;
        }
        if !before.iter().any(|(path, _)| breaks(path, &self.files[path], texts)) {
            return true;
        }
        // What the offer put into other files goes too.
        for edit in edits {
            let FileEdit::Edit { path, edits } = edit else { continue };
            match before.iter().find(|(known, _)| known == path) {
                Some((_, taken)) => _ = self.files.insert(path.clone(), taken.clone()),
                None => {
                    if let Some(taken) = self.files.get_mut(path) {
                        taken.retain(|known| !edits.contains(known));
                    }
                }
            }
        }
        false
    }

    /// Takes an offer in when it goes with those taken before; the same edit twice counts as taken.
    fn take(&mut self, edits: &[FileEdit]) -> bool {
        let paths = touched(edits);
        let has_operations = edits.iter().any(|edit| !matches!(edit, FileEdit::Edit { .. }));
        if self.whole.iter().any(|taken| taken == edits) {
            return true;
        }
        if paths.iter().any(|path| self.reserved.contains(path)) {
            return false;
        }
        if has_operations {
            if paths.iter().any(|path| self.files.contains_key(path)) {
                return false;
            }
            self.reserved.extend(paths);
            self.whole.push(edits.to_vec());
            return true;
        }
        let mut new: Vec<(&str, Vec<&TextEdit>)> = Vec::new();
        let mut shares = false;
        for edit in edits {
            let FileEdit::Edit { path, edits } = edit else { continue };
            let taken = self.files.get(path).map(Vec::as_slice).unwrap_or_default();
            let (double, fresh): (Vec<&TextEdit>, Vec<&TextEdit>) =
                edits.iter().partition(|edit| taken.contains(edit));
            if fresh.iter().any(|edit| taken.iter().any(|other| collide(edit, other))) {
                return false;
            }
            shares |= double.iter().any(|edit| !is_line_insert(edit));
            new.push((path, fresh));
        }
        let adds = new.iter().any(|(_, fresh)| !fresh.is_empty());
        // Half of another's edit is no edit of one's own, unless the half is a line that both need (an import).
        if adds && shares {
            return false;
        }
        for (path, fresh) in new {
            let file = self.files.entry(path.to_owned()).or_default();
            file.extend(fresh.into_iter().cloned());
            file.sort_by_key(|edit| (edit.range.start, edit.range.end));
        }
        true
    }

    fn into_edits(self) -> Vec<FileEdit> {
        let files = self.files.into_iter().filter(|(_, edits)| !edits.is_empty());
        let mut edits: Vec<FileEdit> = files.map(|(path, edits)| FileEdit::Edit { path, edits }).collect();
        edits.extend(self.whole.into_iter().flatten());
        edits
    }
}

fn is_line_insert(edit: &TextEdit) -> bool {
    edit.range.start == edit.range.end && (edit.new_text.ends_with('\n') || edit.new_text.starts_with('\n'))
}

/// Whether two edits of one text cannot both be applied, or not without guessing their order.
fn collide(a: &TextEdit, b: &TextEdit) -> bool {
    let (a, b) = (a.range, b.range);
    let inserts = a.start == a.end || b.start == b.end;
    match inserts {
        true => a.start <= b.end && b.start <= a.end,
        false => a.start < b.end && b.start < a.end,
    }
}

/// Findings of `attempted` that are still there as often as before: their fix did not help.
pub(super) fn not_helped(attempted: &Tally, before: &Tally, now: &Tally) -> Tally {
    let number = |of: &Tally, path: &str, print: &str| {
        of.get(path).and_then(|prints| prints.get(print)).copied().unwrap_or(0)
    };
    let mut stuck = Tally::new();
    for (path, prints) in attempted {
        for print in prints.keys() {
            let now = number(now, path, print);
            if now > 0 && now >= number(before, path, print) {
                stuck.entry(path.clone()).or_default().insert(print.clone(), now);
            }
        }
    }
    stuck
}

/// The findings of the group as a tally.
pub(super) fn tally_of(findings: &[(&str, &Diagnostic)]) -> Tally {
    let mut found = Tally::new();
    for (path, diagnostic) in findings {
        tally(&mut found, path, &print(diagnostic));
    }
    found
}

/// How many findings a tally has.
pub(super) fn total(of: &Tally) -> u32 {
    clamp(of.values().flat_map(BTreeMap::values).map(|n| *n as usize).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn edit(start: (u32, u32), end: (u32, u32), new_text: &str) -> TextEdit {
        TextEdit { range: Range::new(start, end), new_text: new_text.to_owned() }
    }

    fn file(edits: Vec<TextEdit>) -> Vec<FileEdit> {
        vec![FileEdit::Edit { path: "a".to_owned(), edits }]
    }

    #[test]
    fn the_same_edit_twice_is_one_and_overlapping_ones_wait() {
        let mut merge = Merge::default();
        assert!(merge.take(&file(vec![edit((0, 0), (1, 0), "")])));
        assert!(merge.take(&file(vec![edit((0, 0), (1, 0), "")])));
        assert!(!merge.take(&file(vec![edit((0, 3), (0, 4), "x")])));
        assert!(merge.take(&file(vec![edit((1, 0), (2, 0), "")])));
        assert_eq!(merge.into_edits(), file(vec![edit((0, 0), (1, 0), ""), edit((1, 0), (2, 0), "")]));
    }

    #[test]
    fn a_line_that_two_fixes_put_in_is_put_in_once() {
        let import = edit((0, 0), (0, 0), "import os\n");
        let mut merge = Merge::default();
        assert!(merge.take(&file(vec![import.clone(), edit((3, 0), (3, 2), "os.a")])));
        assert!(merge.take(&file(vec![import.clone(), edit((4, 0), (4, 2), "os.b")])));
        let expected = vec![import, edit((3, 0), (3, 2), "os.a"), edit((4, 0), (4, 2), "os.b")];
        assert_eq!(merge.into_edits(), file(expected));
    }

    #[test]
    fn half_of_another_fix_is_not_shared() {
        let mut merge = Merge::default();
        assert!(merge.take(&file(vec![edit((0, 0), (0, 0), "("), edit((0, 5), (0, 5), ")")])));
        assert!(!merge.take(&file(vec![edit((0, 0), (0, 0), "("), edit((0, 9), (0, 9), ")")])));
    }

    #[test]
    fn a_file_that_is_moved_belongs_to_one_fix() {
        let rename = vec![FileEdit::Rename { path: "a".to_owned(), to: "b".to_owned() }];
        let mut merge = Merge::default();
        assert!(merge.take(&rename));
        assert!(merge.take(&rename));
        assert!(!merge.take(&file(vec![edit((0, 0), (0, 1), "")])));
        assert_eq!(merge.into_edits(), rename);
        let mut merge = Merge::default();
        assert!(merge.take(&file(vec![edit((0, 0), (0, 1), "")])));
        assert!(!merge.take(&rename));
    }

    #[test]
    fn a_fix_that_leaves_as_many_findings_did_not_help() {
        let tally = |n: u32| Tally::from([("a".to_owned(), BTreeMap::from([("E1".to_owned(), n)]))]);
        assert_eq!(not_helped(&tally(1), &tally(3), &tally(2)), Tally::new());
        assert_eq!(not_helped(&tally(1), &tally(3), &tally(3)), tally(3));
        assert_eq!(not_helped(&tally(1), &tally(3), &Tally::new()), Tally::new());
    }

    proptest! {
        #[test]
        fn what_is_taken_can_be_applied_and_the_order_of_offers_settles_it(
            offers in proptest::collection::vec(
                proptest::collection::vec((0u32..30, 0u32..4, "[a-c]{0,2}"), 1..3), 0..8)
        ) {
            let text = "abcdefghijklmnopqrstuvwxyzabcdefghij";
            let offers: Vec<Vec<FileEdit>> = offers.into_iter().map(|edits| {
                // The edits of one offer do not overlap, as the protocol demands.
                let mut own: Vec<TextEdit> = Vec::new();
                for (start, len, new_text) in edits {
                    let next = edit((0, start), (0, start + len), &new_text);
                    if own.iter().all(|other| !collide(other, &next)) {
                        own.push(next);
                    }
                }
                file(own)
            }).collect();
            let mut merge = Merge::default();
            let taken: Vec<bool> = offers.iter().map(|offer| merge.take(offer)).collect();
            prop_assert_eq!(taken.first().copied().unwrap_or(true), true);
            for merged in merge.into_edits() {
                let FileEdit::Edit { edits, .. } = merged else { unreachable!() };
                prop_assert!(apply_edits(text, &edits).is_ok());
            }
        }
    }
}
