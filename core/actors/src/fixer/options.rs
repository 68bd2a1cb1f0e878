//! What a server offers for a finding, as options that can be told apart, counted, chosen and found again.

use agents_domain::ports::language_servers::CodeActionOffer;
use agents_domain::text::{FileEdit, TextEdit, apply_edits};
use serde::{Deserialize, Serialize};

use super::patterns;
use super::texts::Texts;

/// The option of doing nothing about a group.
pub(crate) const LEAVE_ALONE: &str = "Leave alone";

/// What an option is called that its server gave no title.
const UNTITLED: &str = "Fix without a title";

/// What an option does to its findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Class {
    /// Changes the code.
    Fix,
    /// Tells the tool to be silent about it.
    Suppress,
}

/// One option of one finding.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Offer {
    /// What the option is known by: the title without the names it quotes.
    pub key: String,
    /// The title as the server wrote it.
    pub title: String,
    /// What it does.
    pub class: Class,
    /// The server marks it as the one to take.
    pub preferred: bool,
    /// What it changes: one entry per edited file, edits in text order.
    pub edits: Vec<FileEdit>,
}

/// The options of one finding, and what is none and why.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Offers {
    /// In the server's order; keys differ, edits differ.
    pub usable: Vec<Offer>,
    /// Title and reason.
    pub unusable: Vec<(String, String)>,
}

/// Sorts what a server offers for a finding of `rule`.
pub(super) fn sort(offered: Vec<CodeActionOffer>, rule: &str, texts: &mut Texts<'_>) -> Offers {
    let mut offers = Offers::default();
    for action in offered {
        match usable(action, texts) {
            Ok(offer) => match offers.usable.iter_mut().find(|known| known.edits == offer.edits) {
                // The same change offered twice is one option.
                Some(known) => known.preferred |= offer.preferred,
                None => offers.usable.push(offer),
            },
            Err(reason) => offers.unusable.push(reason),
        }
    }
    drop_suppressions_of_other_rules(&mut offers, rule);
    tell_apart(&mut offers.usable);
    offers
}

fn usable(action: CodeActionOffer, texts: &mut Texts<'_>) -> Result<Offer, (String, String)> {
    let CodeActionOffer { title, kind, is_preferred, edits, unusable } = action;
    // A title of nothing but marks that cannot be seen is none.
    let title = squeeze(&title);
    let title = if title.is_empty() { UNTITLED.to_owned() } else { title };
    let kind = kind.unwrap_or_default();
    let of_kind = |base: &str| kind == base || kind.starts_with(&format!("{base}."));
    let reason = if of_kind("source") || of_kind("quickfix.all") || patterns::is_broad(&title) {
        Some("it changes more than this finding".to_owned())
    } else if of_kind("refactor") {
        Some("it is a refactoring, not a fix of this finding".to_owned())
    } else {
        None
    };
    if let Some(reason) = reason {
        return Err((title, reason));
    }
    let Some(edits) = edits else {
        return Err((title, unusable.unwrap_or_else(|| "it has no edit".to_owned())));
    };
    let edits = canonical(edits);
    if edits.is_empty() {
        return Err((title, "it changes nothing".to_owned()));
    }
    if let Some(reason) = edits.iter().find_map(|edit| texts.refusal(edit)) {
        return Err((title, reason));
    }
    let silences = patterns::suppresses(&title) || only_suppresses(&edits, texts);
    let class = if silences { Class::Suppress } else { Class::Fix };
    Ok(Offer { key: key(&title), title, class, preferred: is_preferred, edits })
}

/// One entry per edited file where no file is made, moved or removed; edits in text order; nothing that does nothing.
fn canonical(edits: Vec<FileEdit>) -> Vec<FileEdit> {
    let only_edits = edits.iter().all(|edit| matches!(edit, FileEdit::Edit { .. }));
    let mut out: Vec<FileEdit> = Vec::new();
    for edit in edits {
        let FileEdit::Edit { path, edits } = edit else {
            out.push(edit);
            continue;
        };
        let known = out.iter_mut().find_map(|known| match known {
            FileEdit::Edit { path: of, edits } if only_edits && *of == path => Some(edits),
            _ => None,
        });
        match known {
            Some(known) => known.extend(edits),
            None => out.push(FileEdit::Edit { path, edits }),
        }
    }
    for edit in &mut out {
        if let FileEdit::Edit { edits, .. } = edit {
            edits.retain(|edit| edit.range.start != edit.range.end || !edit.new_text.is_empty());
            edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
        }
    }
    out.retain(|edit| !matches!(edit, FileEdit::Edit { edits, .. } if edits.is_empty()));
    if only_edits {
        out.sort_by(|a, b| a.path().cmp(b.path()));
    }
    out
}

/// Whether all that is put in is comments that silence, and nothing but such comments and blanks is taken out.
fn only_suppresses(edits: &[FileEdit], texts: &mut Texts<'_>) -> bool {
    edits.iter().all(|edit| match edit {
        FileEdit::Edit { path, edits } => edits.iter().all(|edit| {
            let removed = texts.slice(path, edit.range).unwrap_or_default();
            let harmless = removed.trim().is_empty() || is_bare_suppression(&removed);
            harmless && is_bare_suppression(&edit.new_text)
        }),
        _ => false,
    })
}

/// Each line that is not blank starts with a suppression.
fn is_bare_suppression(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).peekable();
    let bare = |line: &str| {
        let opens =
            ["#", "//", "/*", "<!--", "--", "{-#", "@", "["].iter().any(|mark| line.starts_with(mark));
        opens && patterns::is_suppression(line)
    };
    lines.peek().is_some() && lines.all(bare)
}

/// A server answers for a place: suppressions of other rules there are no options of this one.
fn drop_suppressions_of_other_rules(offers: &mut Offers, rule: &str) {
    let names_rule = |offer: &Offer| offer.title.contains(rule);
    let suppress = |offer: &Offer| offer.class == Class::Suppress;
    if offers.usable.iter().any(|offer| suppress(offer) && names_rule(offer)) {
        offers.usable.retain(|offer| !suppress(offer) || names_rule(offer));
    }
}

/// Gives options of one finding that share a key their whole titles for keys, and numbers where these are equal too.
fn tell_apart(offers: &mut [Offer]) {
    let shared = |offers: &[Offer], at: usize| {
        offers.iter().enumerate().any(|(other, offer)| other != at && offer.key == offers[at].key)
    };
    let ambiguous: Vec<usize> = (0..offers.len()).filter(|at| shared(offers, *at)).collect();
    for at in ambiguous {
        offers[at].key = squeeze(&offers[at].title);
    }
    for at in 1..offers.len() {
        let (before, rest) = offers.split_at_mut(at);
        let base = rest[0].key.clone();
        let mut number = 1;
        while before.iter().any(|offer| offer.key == rest[0].key) {
            number += 1;
            rest[0].key = format!("{base} ({number})");
        }
    }
}

/// The title without the names it quotes: `Remove import from './b'` is `Remove import from …`.
///
/// What is quoted but is no name stays (`insert ';'`), and so does a comment (it says which tool is silenced).
pub(super) fn key(title: &str) -> String {
    let mut out = String::with_capacity(title.len());
    let mut rest = title;
    let mut before: Option<char> = None;
    while let Some(c) = rest.chars().next() {
        let closing = match c {
            '`' => Some('`'),
            '"' => Some('"'),
            '“' => Some('”'),
            '‘' => Some('’'),
            '«' => Some('»'),
            // An apostrophe inside a word quotes nothing.
            '\'' if before.is_none_or(|c| !c.is_alphanumeric()) => Some('\''),
            _ => None,
        };
        let inside = closing.and_then(|closing| quoted(&rest[c.len_utf8()..], closing));
        let (end, is_name) = match inside {
            Some(inside) => (2 * c.len_utf8() + inside.len(), is_name(inside)),
            None => (c.len_utf8(), false),
        };
        // The closing mark may be longer or shorter than the opening one.
        let end = match (inside, closing) {
            (Some(_), Some(closing)) => end - c.len_utf8() + closing.len_utf8(),
            _ => end,
        };
        out.push_str(if is_name { "…" } else { &rest[..end] });
        before = rest[..end].chars().next_back();
        rest = &rest[end..];
    }
    match out.chars().any(char::is_alphanumeric) {
        true => squeeze(&out),
        // Nothing but a name: that is what it is known by.
        false => squeeze(title),
    }
}

/// What stands before the closing mark, which for an apostrophe does not stand before a letter.
fn quoted(rest: &str, closing: char) -> Option<&str> {
    let ends = rest.match_indices(closing).map(|(at, _)| at);
    let mut ends = ends.filter(|at| {
        let after = rest[at + closing.len_utf8()..].chars().next();
        closing != '\'' || after.is_none_or(|c| !c.is_alphanumeric())
    });
    ends.next().map(|end| &rest[..end])
}

fn is_name(quoted: &str) -> bool {
    let is_comment = ["#", "//", "/*", "--", "<!--"].iter().any(|mark| quoted.trim_start().starts_with(mark));
    !is_comment && quoted.chars().any(char::is_alphanumeric)
}

/// Words with one blank between them; controls and marks that cannot be seen count as blanks.
fn squeeze(text: &str) -> String {
    let blank = |c: char| {
        c.is_whitespace()
            || c.is_control()
            || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    text.split(blank).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Which option a person means: its number from 1, its text, or words of it that no other option has. `None` when the
/// words mean none or several, or refuse one (`do not remove it`).
pub(crate) fn match_answer(answer: &str, options: &[String]) -> Option<usize> {
    let answer = answer.trim();
    if let Ok(number) = answer.trim_end_matches(['.', ')']).parse::<usize>() {
        return number.checked_sub(1).filter(|index| *index < options.len());
    }
    if let Some(exact) = options.iter().position(|option| option.trim() == answer) {
        return Some(exact);
    }
    let said = words(answer);
    if said.is_empty() {
        return None;
    }
    let unique = |fits: &dyn Fn(&[String]) -> bool| {
        let mut found = options.iter().enumerate().filter(|(_, option)| fits(&words(option)));
        match (found.next(), found.next()) {
            (Some((index, _)), None) => Some(index),
            _ => None,
        }
    };
    const REFUSING: [&str; 10] =
        ["not", "no", "never", "without", "except", "but", "dont", "don", "nothing", "instead"];
    let refuses = said.iter().any(|word| REFUSING.contains(&word.as_str()));
    unique(&|option| option == said)
        .or_else(|| unique(&|option| !refuses && contains(option, &said)))
        .or_else(|| unique(&|option| !refuses && option.len() > 1 && contains(&said, option)))
}

/// Lower-case words; punctuation and what was quoted in a title do not count.
fn words(text: &str) -> Vec<String> {
    let text = key(text).to_lowercase();
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

fn contains(words: &[String], part: &[String]) -> bool {
    !part.is_empty() && words.windows(part.len()).any(|window| window == part)
}

/// Whether an offer's edits fit the texts they are for.
pub(super) fn fits(all: &[FileEdit], texts: &mut Texts<'_>) -> bool {
    all.iter().all(|edit| match edit {
        FileEdit::Edit { path, edits } => match texts.get(path) {
            Some(text) => apply_edits(&text.text, edits).is_ok(),
            None => all.iter().any(|other| match other {
                FileEdit::Create { path: made, .. }
                | FileEdit::Write { path: made, .. }
                | FileEdit::Rename { to: made, .. } => made == path,
                FileEdit::Edit { .. } | FileEdit::Delete { .. } => false,
            }),
        },
        _ => true,
    })
}

/// All text edits of one file.
pub(super) fn edits_of<'e>(edits: &'e [FileEdit], of: &str) -> &'e [TextEdit] {
    let found = edits.iter().find_map(|edit| match edit {
        FileEdit::Edit { path, edits } if path == of => Some(edits.as_slice()),
        _ => None,
    });
    found.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_names_are_no_part_of_an_options_identity() {
        let table = [
            ("Ruff (F401): Remove unused import: `os`", "Ruff (F401): Remove unused import: …"),
            ("Remove import from './b'", "Remove import from …"),
            ("Remove unused declaration for: 'x'", "Remove unused declaration for: …"),
            ("Rename \"a\" to \"b\"", "Rename … to …"),
            ("insert ';'", "insert ';'"),
            ("change '.' to '->'", "change '.' to '->'"),
            ("Add `# pyright: ignore[reportUnusedImport]`", "Add `# pyright: ignore[reportUnusedImport]`"),
            ("Add '// @ts-ignore'", "Add '// @ts-ignore'"),
            ("Don't use `x`", "Don't use …"),
            ("Don't", "Don't"),
            ("an ' alone", "an ' alone"),
            ("  two   blanks ", "two blanks"),
            ("Change to “ünïcode”", "Change to …"),
            ("`x`", "`x`"),
            ("", ""),
        ];
        for (title, expected) in table {
            assert_eq!(key(title), expected, "{title}");
        }
    }

    #[test]
    fn an_answer_is_a_number_a_text_or_words_that_only_one_option_has() {
        let options = [
            "Ruff (F401): Remove unused import".to_owned(),
            LEAVE_ALONE.to_owned(),
            "Ruff (F401): Disable for this line".to_owned(),
        ];
        let table = [
            ("1", Some(0)),
            ("3.", Some(2)),
            ("0", None),
            ("4", None),
            ("Leave alone", Some(1)),
            ("leave it alone!", None),
            ("leave", Some(1)),
            ("remove unused import", Some(0)),
            ("Remove unused", Some(0)),
            ("disable", Some(2)),
            ("ruff", None),
            ("please leave alone", Some(1)),
            ("do not remove unused import", None),
            ("don't disable", None),
            ("rewrite it in Rust", None),
            ("", None),
            ("…", None),
        ];
        for (answer, expected) in table {
            assert_eq!(match_answer(answer, &options), expected, "{answer}");
        }
    }
}
