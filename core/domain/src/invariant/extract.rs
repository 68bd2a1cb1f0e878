//! From a sentence to what a machine can check. Only whole sentences of these forms are read; one that nearly fits is
//! left to the actors.
//!
//! | sentence | rule |
//! |---|---|
//! | *never (do not, don't) change (modify, edit, touch) files under (in, below, matching)* PATHS | [`Rule::ForbiddenPaths`] |
//! | *do not touch* PATHS; PATHS *must not be changed* | the same |
//! | *you may change* ..., ... *may be changed* | the same, waived |
//! | *no* TEXT *in added (new) lines*; *added lines must not contain* TEXT | [`Rule::ForbiddenText`] |
//! | *added lines may contain* TEXT | the same, waived |
//! | *at most (no more than)* N *changed lines (files)*; *change at most* N *lines (files)* | [`Rule::MaxChangedLines`], [`Rule::MaxChangedFiles`] |
//! | *do not use tool* NAME; *tool* NAME *must not be used* | [`Rule::ForbiddenTool`] |
//! | *you may use tool* NAME | the same, waived |
//! | *validation* NAME *must pass* | [`Rule::RequiredValidation`] |
//! | *validation* NAME *need not pass* | the same, waived |
//! | *(any) change to* PATHS or WORDS *requires (explicit) human (manual, security) approval (review)* | [`Rule::HumanApproval`] |
//!
//! Case, spaces and a full stop at the end do not count. PATHS are patterns as in `.gitignore`, separated by commas,
//! *and* or *or*; one that does not look like a path (a slash, a star, a file's ending) stands in quotes or backticks. TEXT is one word,
//! anything in quotes or backticks, or a regular expression between slashes.
//!
//! The same as keys, for those who want to be exact: `forbid-paths`, `allow-paths`, `forbid-text`, `allow-text`,
//! `forbid-tool`, `allow-tool`, `max-changed-lines`, `max-changed-files`, `require-validation`, `waive-validation`,
//! `require-approval`, each with `: VALUE`. A value that does not fit such a key is an error ([`problem`]).

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::check::words_of;
use super::{Check, Rule, TextPattern};

/// Sentences longer than this are not read.
const LONGEST: usize = 2000;

/// The checkable form of a sentence, when it has one.
pub fn extract(text: &str) -> Option<Check> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.len() > LONGEST {
        return None;
    }
    match structured(&text) {
        Some(read) => read.ok(),
        None => sentence(&text),
    }
}

/// What is wrong with a text that uses one of the keys: for people, with what would be right.
pub fn problem(text: &str) -> Option<String> {
    structured(text.trim())?.err()
}

const KEYS: [&str; 11] = [
    "forbid-paths",
    "allow-paths",
    "forbid-text",
    "allow-text",
    "forbid-tool",
    "allow-tool",
    "max-changed-lines",
    "max-changed-files",
    "require-validation",
    "waive-validation",
    "require-approval",
];

fn structured(text: &str) -> Option<Result<Check, String>> {
    let (key, value) = text.split_once(':')?;
    let key = key.trim().to_lowercase();
    let looks_like_one = key.split_once('-').is_some_and(|(first, rest)| {
        matches!(first, "forbid" | "allow" | "max" | "require" | "waive")
            && !rest.contains(char::is_whitespace)
    });
    if !looks_like_one {
        return None;
    }
    let value = value.trim();
    let wrong = |what: &str| Err(format!("`{key}: {value}`: {what}"));
    if !KEYS.contains(&key.as_str()) {
        return Some(Err(format!("there is no key `{key}`; the keys are {}", KEYS.join(", "))));
    }
    if value.is_empty() {
        return Some(wrong("a value is missing after the colon"));
    }
    let waived = key.starts_with("allow") || key.starts_with("waive");
    let rule = match key.as_str() {
        "forbid-paths" | "allow-paths" => match path_list(value, Strictness::Any) {
            Some(paths) => Rule::ForbiddenPaths { paths },
            None => {
                return Some(wrong("expected path patterns separated by commas, such as `vendor/, *.lock`"));
            }
        },
        "forbid-text" | "allow-text" => match text_pattern(value) {
            Some(pattern) => Rule::ForbiddenText { pattern },
            None => return Some(wrong("expected a text, or a regular expression between slashes")),
        },
        "forbid-tool" | "allow-tool" => match name(value) {
            Some(tool) => Rule::ForbiddenTool { tool },
            None => return Some(wrong("expected the name of one tool")),
        },
        "max-changed-lines" | "max-changed-files" => match value.parse::<u64>() {
            Ok(lines) if key.ends_with("lines") => Rule::MaxChangedLines { lines },
            Ok(files) => Rule::MaxChangedFiles { files },
            Err(_) => return Some(wrong("expected a whole number")),
        },
        "require-approval" => {
            if matches!(value, "*" | "all" | "every decision") {
                Rule::HumanApproval { paths: Vec::new(), words: Vec::new() }
            } else {
                approval(value)
            }
        }
        _ => match validation_name(value) {
            Some(validation) => Rule::RequiredValidation { validation },
            None => return Some(wrong("expected the name of one validation")),
        },
    };
    Some(Ok(Check { rule, waived }))
}

const NEVER: &str = "(?:never|do not|don't|must not)";
const CHANGE: &str = "(?:change|modify|edit|touch)";
const CHANGED: &str = "(?:changed|modified|edited|touched)";
const FILES: &str = "(?:any |the )?(?:files?|anything|code) (?:under|in|inside|below|within|matching) ";
const LINES: &str = "(?:added|new) lines";
const QUOTED: &str = "`[^`]+`|\"[^\"]+\"|'[^']+'";

/// What a form's captures mean.
type Read = fn(&Captures<'_>) -> Option<Check>;

static FORMS: LazyLock<Vec<(Regex, Read)>> = LazyLock::new(|| {
    let forms: [(String, Read); 16] = [
        (format!("{NEVER} {CHANGE} {FILES}(.+)"), |c| paths(c, Strictness::Folder, false)),
        (format!("{NEVER} (?:{CHANGE}|write to) (.+)"), |c| paths(c, Strictness::Path, false)),
        (format!("{FILES}(.+) (?:must not|must never|may not) be {CHANGED}"), |c| {
            paths(c, Strictness::Folder, false)
        }),
        (format!("(.+) (?:must not|must never|may not) be {CHANGED}"), |c| paths(c, Strictness::Path, false)),
        (format!("(?:you )?may {CHANGE} {FILES}(.+)"), |c| paths(c, Strictness::Folder, true)),
        (format!("(?:you )?may {CHANGE} (.+)"), |c| paths(c, Strictness::Path, true)),
        (format!("{FILES}(.+) may be {CHANGED}"), |c| paths(c, Strictness::Folder, true)),
        (format!("(.+) may be {CHANGED}"), |c| paths(c, Strictness::Path, true)),
        (
            format!("(?:no|never add|do not add|don't add) ({QUOTED}|\\S+) (?:in|to|on) (?:any )?{LINES}"),
            |c| added(c, false),
        ),
        (format!("{LINES} must not contain ({QUOTED}|\\S+)"), |c| added(c, false)),
        (format!("{LINES} may contain ({QUOTED}|\\S+)"), |c| added(c, true)),
        ("(?:at most|no more than) ([0-9]+) (?:changed|modified) (lines|files)".to_owned(), limit as Read),
        ("(?:change|modify) (?:at most|no more than) ([0-9]+) (lines|files)".to_owned(), limit as Read),
        (format!("{NEVER} use (?:the )?tool ({QUOTED}|\\S+)"), |c| tool(c, false)),
        (format!("(?:the )?tool ({QUOTED}|\\S+) (?:must not|may not) be used"), |c| tool(c, false)),
        (format!("(?:you )?may use (?:the )?tool ({QUOTED}|\\S+)"), |c| tool(c, true)),
    ];
    let more: [(String, Read); 3] = [
        (format!("(?:the )?validation ({QUOTED}|\\S+) must (?:always )?pass"), |c| validation(c, false)),
        (format!("(?:the )?validation ({QUOTED}|\\S+) (?:need not|does not have to) pass"), |c| {
            validation(c, true)
        }),
        (
            "(?:any |all |every |each )?(?:changes?|decisions?)(?: (?:to|of|in|under|about) (.+?))? (?:always )?\
             (?:requires?|needs?) (?:explicit |a |an )?(?:human|manual|security|person's) \
             (?:approval|review|sign-off)"
                .to_owned(),
            |c| {
                let rule = match c.get(1) {
                    Some(about) => approval(about.as_str()),
                    None => Rule::HumanApproval { paths: Vec::new(), words: Vec::new() },
                };
                Some(Check::of(rule))
            },
        ),
    ];
    let whole = |(form, read): (String, Read)| Some((Regex::new(&format!("(?i)^(?:{form})$")).ok()?, read));
    forms.into_iter().chain(more).filter_map(whole).collect()
});

fn sentence(text: &str) -> Option<Check> {
    // A full stop ends the sentence when it does not belong to what stands before it.
    let bare = text.strip_suffix(['.', '!']).filter(|rest| !rest.ends_with('.')).unwrap_or(text);
    FORMS.iter().find_map(|(form, read)| read(&form.captures(bare)?))
}

/// How much a thing has to look like a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Strictness {
    /// It is said to be one.
    Any,
    /// The sentence says *files under*.
    Folder,
    /// Nothing says so.
    Path,
}

fn paths(captures: &Captures<'_>, strictness: Strictness, waived: bool) -> Option<Check> {
    let paths = path_list(&captures[1], strictness)?;
    Some(Check { rule: Rule::ForbiddenPaths { paths }, waived })
}

fn path_list(text: &str, strictness: Strictness) -> Option<Vec<String>> {
    let mut found: Vec<String> = Vec::new();
    for item in items(text)? {
        let quoted = unquoted(&item);
        let path = quoted.unwrap_or(&item);
        let name = path.rsplit('/').next().unwrap_or_default();
        let looks = match strictness {
            _ if quoted.is_some() => true,
            Strictness::Any => true,
            Strictness::Folder => path.contains(['/', '*']) || path.starts_with('.') || is_file_name(path),
            Strictness::Path => {
                path.ends_with('/') || path.contains('*') || path.starts_with('.') || is_file_name(name)
            }
        };
        let sound = !path.is_empty()
            && !path.contains(['\\', '\0'])
            && path.split('/').all(|part| part != "..")
            && path.chars().any(|c| c.is_alphanumeric() || c == '*' || c == '_')
            && !path.contains("://");
        if !looks || !sound {
            return None;
        }
        found.push(path.strip_prefix("./").unwrap_or(path).to_owned());
    }
    found.sort();
    found.dedup();
    (!found.is_empty()).then_some(found)
}

/// The items of a list: `a, b and c`.
fn items(text: &str) -> Option<Vec<String>> {
    let mut found = Vec::new();
    let mut rest = text.trim();
    loop {
        let end = match rest.chars().next()? {
            quote @ ('`' | '"' | '\'') => rest[1..].find(quote)? + 2,
            _ => rest.find([' ', ',']).unwrap_or(rest.len()),
        };
        let item = &rest[..end];
        if item.is_empty() || matches!(item.to_lowercase().as_str(), "and" | "or") {
            return None;
        }
        found.push(item.to_owned());
        rest = &rest[end..];
        if rest.is_empty() {
            return Some(found);
        }
        let after = rest.strip_prefix(',').map(str::trim_start);
        let joined = after.unwrap_or(rest.trim_start());
        let word = ["and ", "or "].iter().find_map(|word| {
            joined
                .get(..word.len())
                .filter(|start| start.eq_ignore_ascii_case(word))
                .map(|_| &joined[word.len()..])
        });
        rest = match (word, after) {
            (Some(rest), _) => rest.trim_start(),
            (None, Some(rest)) => rest,
            (None, None) => return None,
        };
    }
}

fn unquoted(text: &str) -> Option<&str> {
    ['`', '"', '\''].iter().find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote))
}

fn added(captures: &Captures<'_>, waived: bool) -> Option<Check> {
    let pattern = text_pattern(&captures[1])?;
    Some(Check { rule: Rule::ForbiddenText { pattern }, waived })
}

fn text_pattern(text: &str) -> Option<TextPattern> {
    if let Some(text) = unquoted(text) {
        return (!text.is_empty()).then(|| TextPattern::Literal(text.to_owned()));
    }
    match text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
        Some("") | None => (!text.is_empty()).then(|| TextPattern::Literal(text.to_owned())),
        Some(regex) => TextPattern::compile(regex).is_ok().then(|| TextPattern::Regex(regex.to_owned())),
    }
}

fn limit(captures: &Captures<'_>) -> Option<Check> {
    let n = captures[1].parse().ok()?;
    Some(Check::of(match captures[2].to_lowercase().as_str() {
        "lines" => Rule::MaxChangedLines { lines: n },
        _ => Rule::MaxChangedFiles { files: n },
    }))
}

/// One name, without spaces.
fn name(text: &str) -> Option<String> {
    let name = unquoted(text).unwrap_or(text);
    let sound = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '/' | '.' | ':');
    (!name.is_empty() && name.chars().all(sound)).then(|| name.to_owned())
}

fn tool(captures: &Captures<'_>, waived: bool) -> Option<Check> {
    Some(Check { rule: Rule::ForbiddenTool { tool: name(&captures[1])? }, waived })
}

fn validation(captures: &Captures<'_>, waived: bool) -> Option<Check> {
    Some(Check { rule: Rule::RequiredValidation { validation: validation_name(&captures[1])? }, waived })
}

/// The name of a validation, with its namespace.
fn validation_name(text: &str) -> Option<String> {
    let name = name(text)?;
    Some(if name.contains('/') { name } else { format!("local/{name}") })
}

/// Names of files without an ending that everybody knows.
const KNOWN_FILES: [&str; 20] = [
    "makefile",
    "gnumakefile",
    "dockerfile",
    "containerfile",
    "jenkinsfile",
    "vagrantfile",
    "procfile",
    "gemfile",
    "rakefile",
    "justfile",
    "pipfile",
    "brewfile",
    "license",
    "licence",
    "copying",
    "readme",
    "changelog",
    "codeowners",
    "workspace",
    "notice",
];

/// `setup.py`, `Cargo.toml`, `Makefile`: a name with an ending, or one that everybody knows.
fn is_file_name(name: &str) -> bool {
    let ending = |(stem, ending): (&str, &str)| {
        !stem.is_empty()
            && (1..=12).contains(&ending.len())
            && ending.starts_with(|c: char| c.is_ascii_alphabetic())
            && ending.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    name.rsplit_once('.').is_some_and(ending) || KNOWN_FILES.contains(&name.to_lowercase().as_str())
}

/// Words that say nothing about what a change is about.
const EMPTY_WORDS: [&str; 24] = [
    "the", "and", "any", "all", "file", "code", "change", "logic", "with", "that", "this", "from", "into",
    "every", "part", "thing", "module", "our", "folder", "under", "path", "its", "for", "not",
];

fn approval(about: &str) -> Rule {
    let about =
        about.strip_prefix("files under ").or_else(|| about.strip_prefix("files in ")).unwrap_or(about);
    match path_list(about, Strictness::Folder) {
        Some(paths) => Rule::HumanApproval { paths, words: Vec::new() },
        None => {
            let mut words = words_of(about);
            words.retain(|word| word.len() >= 3 && !EMPTY_WORDS.contains(&word.as_str()));
            words.sort();
            words.dedup();
            Rule::HumanApproval { paths: Vec::new(), words }
        }
    }
}
