//! Finding the place an edit is meant for: whitespace may differ, but between two places nothing is guessed.

use agents_domain::text::LineIndex;
use schemars::JsonSchema;
use serde::Deserialize;

/// Places that a message names.
const MAX_PLACES: usize = 5;

/// An edit of a file: a text that is there, or lines, and what they become.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Edit {
    /// The text to replace, with enough of its surroundings to be there only once. Whitespace may differ.
    #[serde(default)]
    pub old_text: Option<String>,
    /// What it becomes; empty removes it.
    pub new_text: String,
    /// Replace every occurrence of `old_text`.
    #[serde(default)]
    pub replace_all: bool,
    /// In place of `old_text`: the first line to replace, counted from 1.
    #[serde(default)]
    pub start_line: Option<u32>,
    /// The last line to replace; `start_line` unless given. One less than `start_line` inserts before it.
    #[serde(default)]
    pub end_line: Option<u32>,
}

/// The text with all edits made; each is found in the text as it was. `Err` says which edit and where.
pub(super) fn apply(text: &str, edits: &[Edit]) -> Result<String, String> {
    let ending = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut spans: Vec<(usize, usize, String)> = Vec::new();
    for (number, edit) in edits.iter().enumerate() {
        let found = match (&edit.old_text, edit.start_line) {
            (Some(old), None) => by_text(text, old, edit, ending),
            (None, Some(first)) => by_lines(text, first, edit, ending).map(|span| vec![span]),
            (Some(_), Some(_)) => Err("give either `old_text` or `start_line`, not both".to_owned()),
            (None, None) => {
                Err("say what is replaced: `old_text`, or `start_line` and `end_line`".to_owned())
            }
        };
        let which = if edits.len() > 1 { format!("edit {}: ", number + 1) } else { String::new() };
        spans.extend(found.map_err(|why| format!("{which}{why}"))?);
    }
    spans.sort_by_key(|(start, end, _)| (*start, *end));
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (start, end, new) in spans {
        if start < at {
            let line = line_of(text, start);
            return Err(format!("two of the edits are about the same text, at line {line}"));
        }
        out.push_str(&text[at..start]);
        out.push_str(&new);
        at = end;
    }
    out.push_str(&text[at..]);
    Ok(out)
}

type Span = (usize, usize, String);

fn by_lines(text: &str, first: u32, edit: &Edit, ending: &str) -> Result<Span, String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let last = edit.end_line.unwrap_or(first);
    let count = u32::try_from(lines.len()).unwrap_or(u32::MAX);
    if first == 0 || last.saturating_add(1) < first || first > count.saturating_add(1) || last > count {
        return Err(format!("lines {first} to {last} are not in the file, which has {count}"));
    }
    let offset = |line: u32| lines.iter().take(line as usize).map(|line| line.len()).sum::<usize>();
    let (start, end) = (offset(first - 1), offset(last));
    let mut new = with_endings(&edit.new_text, ending);
    // A last line without an end stays without one.
    let ends = end < text.len() || text.is_empty() || text.ends_with('\n');
    if !new.is_empty() && !new.ends_with('\n') && ends {
        new.push_str(ending);
    }
    // After a last line without an end.
    if start == text.len() && !text.is_empty() && !text.ends_with('\n') {
        new.insert_str(0, ending);
    }
    Ok((start, end, new))
}

fn by_text(text: &str, old: &str, edit: &Edit, ending: &str) -> Result<Vec<Span>, String> {
    if old.trim().is_empty() {
        return Err("`old_text` is empty: give the text to replace, or `start_line`".to_owned());
    }
    let (old, new) = (with_endings(old, ending), with_endings(&edit.new_text, ending));
    let exact: Vec<usize> = text.match_indices(&old).map(|(at, _)| at).collect();
    match exact.as_slice() {
        [] => {}
        [at] => return Ok(vec![(*at, at + old.len(), new)]),
        many if edit.replace_all => {
            return Ok(many.iter().map(|at| (*at, at + old.len(), new.clone())).collect());
        }
        many => return Err(several(text, many)),
    }
    let wanted: Vec<String> = old.lines().map(squeezed).collect();
    let wanted = trimmed(&wanted);
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut starts = Vec::with_capacity(lines.len() + 1);
    let mut at = 0;
    for line in &lines {
        starts.push(at);
        at += line.len();
    }
    starts.push(at);
    let squeezed: Vec<String> = lines.iter().map(|line| squeezed(line)).collect();
    let fits: Vec<usize> = squeezed
        .windows(wanted.len())
        .enumerate()
        .filter(|(_, window)| *window == wanted)
        .map(|(at, _)| at)
        .collect();
    let offsets: Vec<usize> = fits.iter().map(|line| starts[*line]).collect();
    if fits.is_empty() {
        return Err(nowhere(&lines, &squeezed, wanted));
    }
    if fits.len() > 1 && !edit.replace_all {
        return Err(several(text, &offsets));
    }
    let span = |line: &usize| {
        let (start, end) = (starts[*line], starts[*line + wanted.len()]);
        let end = start + text[start..end].trim_end_matches(['\n', '\r']).len();
        let there = lines[*line..*line + wanted.len()].iter().map(|line| line.trim_end_matches(['\n', '\r']));
        (start, end, indented(&new, &old, there, ending))
    };
    Ok(fits.iter().map(span).collect())
}

/// The new text with the indentation that is in the file, where that differs from what the edit was written for.
fn indented<'l>(new: &str, old: &str, there: impl Iterator<Item = &'l str>, ending: &str) -> String {
    let indent = |line: &str| line[..line.len() - line.trim_start().len()].to_owned();
    let mut old_lines = old.lines().skip_while(|line| line.trim().is_empty());
    let (mine, theirs) = match (old_lines.next(), there.into_iter().find(|line| !line.trim().is_empty())) {
        (Some(mine), Some(theirs)) => (indent(mine), indent(theirs)),
        _ => Default::default(),
    };
    let body = new.trim_start_matches(['\n', '\r']).trim_end_matches(['\n', '\r']);
    let lines = body.lines().map(|line| match line.strip_prefix(mine.as_str()) {
        _ if line.trim().is_empty() => String::new(),
        Some(rest) => format!("{theirs}{rest}"),
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join(ending)
}

fn with_endings(text: &str, ending: &str) -> String {
    let plain = text.replace("\r\n", "\n");
    if ending == "\n" { plain } else { plain.replace('\n', ending) }
}

/// A line with its whitespace at both ends gone and runs of it as one space.
fn squeezed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Without empty lines at both ends; never empty.
fn trimmed(lines: &[String]) -> &[String] {
    let first = lines.iter().position(|line| !line.is_empty()).unwrap_or(0);
    let last = lines.iter().rposition(|line| !line.is_empty()).map_or(lines.len(), |last| last + 1);
    &lines[first..last]
}

fn line_of(text: &str, offset: usize) -> u32 {
    LineIndex::new(text).position(offset).line + 1
}

fn several(text: &str, offsets: &[usize]) -> String {
    let index = LineIndex::new(text);
    let places = offsets.iter().take(MAX_PLACES).map(|at| {
        let line = index.position(*at).line as usize;
        let shown: String = text.lines().nth(line).unwrap_or_default().trim().chars().take(80).collect();
        format!("line {} (`{shown}`)", line + 1)
    });
    let places: Vec<String> = places.collect();
    let more = if offsets.len() > MAX_PLACES { ", ..." } else { "" };
    format!(
        "`old_text` is there {} times: {}{more}; give more of what is around the one that is meant, or `replace_all`",
        offsets.len(),
        places.join(", ")
    )
}

/// What is most like the text that is not there.
fn nowhere(lines: &[&str], squeezed: &[String], wanted: &[String]) -> String {
    let alike =
        |window: &[String]| window.iter().zip(wanted).filter(|(a, b)| a == b && !a.is_empty()).count();
    let best = squeezed.windows(wanted.len().min(squeezed.len()).max(1)).map(alike).enumerate();
    let best = best.filter(|(_, same)| *same > 0).max_by_key(|(at, same)| (*same, usize::MAX - at));
    let Some((at, same)) = best else {
        return "`old_text` is not in the file; read it again".to_owned();
    };
    let differs = (0..wanted.len()).find(|n| squeezed.get(at + n) != wanted.get(*n)).unwrap_or(0);
    let there = lines.get(at + differs).map_or("the end of the file", |line| line.trim());
    format!(
        "`old_text` is not in the file. The most alike are lines {} to {} ({same} of {} lines are the same); line {} is `{}`",
        at + 1,
        (at + wanted.len()).min(lines.len()),
        wanted.len(),
        at + differs + 1,
        there.chars().take(200).collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replace(old: &str, new: &str) -> Edit {
        Edit {
            old_text: Some(old.to_owned()),
            new_text: new.to_owned(),
            replace_all: false,
            start_line: None,
            end_line: None,
        }
    }

    fn lines(first: u32, last: u32, new: &str) -> Edit {
        Edit { old_text: None, start_line: Some(first), end_line: Some(last), ..replace("", new) }
    }

    // TOOL-033, G-41
    #[test]
    fn whitespace_may_differ_and_the_files_indentation_is_kept() {
        let text = "def f(x):\n\tif x:\n\t\treturn  1\n\treturn 2\n";
        let edit = replace("    if x:\n        return 1\n", "    if not x:\n    return 3\n");
        let edited = apply(text, &[edit]).unwrap();
        assert_eq!(edited, "def f(x):\n\tif not x:\n\treturn 3\n\treturn 2\n");
        let crlf = apply("a\r\nb  \r\nc\r\n", &[replace("a\nb\n", "x\ny\n")]).unwrap();
        assert_eq!(crlf, "x\r\ny\r\nc\r\n");
    }

    #[test]
    fn between_two_places_nothing_is_guessed() {
        let text = "x = 1\ny = 2\nx  =  1\n";
        let said = apply("x = 1\ny = 2\nx = 1\n", &[replace("x = 1", "x = 2")]).unwrap_err();
        assert!(said.contains("line 1 (`x = 1`)") && said.contains("line 3"), "{said}");
        assert_eq!(apply(text, &[replace("x = 1\n", "x = 2\n")]).unwrap(), "x = 2\ny = 2\nx  =  1\n");
        let said = apply(text, &[replace("  x =  1", "x = 2")]).unwrap_err();
        assert!(said.contains("2 times: line 1") && said.contains("line 3"), "{said}");
        let all = Edit { replace_all: true, ..replace("x = 1", "z") };
        assert_eq!(apply("x = 1\nx = 1\n", &[all]).unwrap(), "z\nz\n");
    }

    #[test]
    fn what_is_not_there_is_said_with_what_is_most_alike() {
        let said = apply("one\ntwo\nthree\n", &[replace("one\n2\nthree", "x")]).unwrap_err();
        assert!(said.contains("lines 1 to 3") && said.contains("line 2 is `two`"), "{said}");
        assert!(apply("one\n", &[replace("zzz", "x")]).unwrap_err().contains("read it again"));
    }

    #[test]
    fn lines_are_replaced_inserted_and_removed() {
        let text = "1\n2\n3";
        assert_eq!(apply(text, &[lines(2, 2, "b")]).unwrap(), "1\nb\n3");
        assert_eq!(apply(text, &[lines(1, 0, "0")]).unwrap(), "0\n1\n2\n3");
        assert_eq!(apply(text, &[lines(4, 3, "4")]).unwrap(), "1\n2\n3\n4");
        assert_eq!(apply(text, &[lines(2, 3, "")]).unwrap(), "1\n");
        assert_eq!(apply(text, &[lines(3, 3, "c")]).unwrap(), "1\n2\nc");
        assert!(apply(text, &[lines(5, 5, "")]).unwrap_err().contains("which has 3"));
        assert_eq!(apply(text, &[lines(1, 1, "a"), lines(3, 3, "c")]).unwrap(), "a\n2\nc");
        let both = [lines(1, 2, "a"), lines(2, 3, "c")];
        assert!(apply(text, &both).unwrap_err().contains("same text, at line 2"));
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_asked_for_no_edit_panics(text in "[ab \\n\\r\\té]{0,40}", old in "[ab \\n\\té]{0,12}", new in "[ab\\n ]{0,8}", at in 0u32..8, end in 0u32..8) {
            let _ = apply(&text, &[replace(&old, &new)]);
            let _ = apply(&text, &[lines(at, end, &new)]);
        }
    }
}
