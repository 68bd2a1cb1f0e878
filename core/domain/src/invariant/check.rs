//! What a machine can check of an invariant, and the check of a write.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::paths::covers;

/// The form of an invariant that a machine can check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// What it is about.
    #[serde(flatten)]
    pub rule: Rule,
    /// It allows what the rule would forbid: it lifts the same rule of a wider scope and enforces nothing itself.
    #[serde(default)]
    pub waived: bool,
}

/// What is checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Rule {
    /// These files are not changed.
    ForbiddenPaths {
        /// Patterns as in `.gitignore`, sorted.
        paths: Vec<String>,
    },
    /// No added line holds this.
    ForbiddenText {
        /// What is looked for.
        pattern: TextPattern,
    },
    /// This tool is not used.
    ForbiddenTool {
        /// The tool's name.
        tool: String,
    },
    /// The plan changes no more lines than this, added and removed ones together.
    MaxChangedLines {
        /// Lines.
        lines: u64,
    },
    /// The plan changes no more files than this.
    MaxChangedFiles {
        /// Files.
        files: u64,
    },
    /// This validation has to pass before Execute is complete.
    RequiredValidation {
        /// The validation's name.
        validation: String,
    },
    /// A person approves decisions about this.
    HumanApproval {
        /// Patterns of files; with no words and no patterns, every decision.
        paths: Vec<String>,
        /// Words of which a decision mentions one.
        words: Vec<String>,
    },
}

/// What is looked for in added lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "as", content = "text", rename_all = "snake_case")]
pub enum TextPattern {
    /// This text.
    Literal(String),
    /// What this regular expression finds.
    Regex(String),
}

/// The largest program a pattern may compile to, in bytes.
const PATTERN_SIZE: usize = 1 << 20;

impl TextPattern {
    /// Compiles a regular expression within bounds.
    pub(super) fn compile(text: &str) -> Result<Regex, regex::Error> {
        regex::RegexBuilder::new(text).size_limit(PATTERN_SIZE).build()
    }

    /// A search for it; one that does not compile finds nothing.
    fn finder(&self) -> Box<dyn Fn(&str) -> bool + '_> {
        match self {
            Self::Literal(text) => Box::new(move |line| line.contains(text.as_str())),
            Self::Regex(text) => match Self::compile(text) {
                Ok(regex) => Box::new(move |line| regex.is_match(line)),
                Err(_) => Box::new(|_| false),
            },
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Literal(text) => format!("`{text}`"),
            Self::Regex(text) => format!("/{text}/"),
        }
    }
}

/// A line a change puts in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedLine {
    /// 1-based line in the new file.
    pub line: u32,
    /// Its text.
    pub text: String,
}

/// A file a change touches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Touched {
    /// The file, relative, with `/`.
    pub path: String,
    /// Its name before, for a rename.
    pub old_path: Option<String>,
    /// The lines put in.
    pub added: Vec<AddedLine>,
}

/// How much a plan changes in all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Lines added and removed.
    pub lines: u64,
    /// Files.
    pub files: u64,
}

/// What is checked: one write before it is carried out, or all of a plan's changes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Attempt<'a> {
    /// The tool that would write; `None` when all changes are judged.
    pub tool: Option<&'a str>,
    /// The files.
    pub files: &'a [Touched],
    /// The plan's changes in all, this write among them.
    pub totals: Totals,
    /// Which validations passed, once Execute is done; `None` before.
    pub validations: Option<&'a BTreeMap<String, bool>>,
}

/// How an attempt breaks an invariant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// What breaks it, for people.
    pub evidence: String,
    /// Where.
    pub path: Option<String>,
    /// 1-based.
    pub line: Option<u32>,
}

impl Finding {
    fn of(evidence: String) -> Self {
        Self { evidence, path: None, line: None }
    }
}

impl Check {
    /// A rule that holds.
    pub fn of(rule: Rule) -> Self {
        Self { rule, waived: false }
    }

    /// The first thing about an attempt that breaks it.
    pub fn violated_by(&self, attempt: &Attempt<'_>) -> Option<Finding> {
        if self.waived {
            return None;
        }
        match &self.rule {
            Rule::ForbiddenPaths { .. } => attempt.files.iter().find_map(|file| {
                let path = file.old_path.iter().chain([&file.path]).find(|path| self.forbids_path(path))?;
                let evidence = format!("`{path}` would be changed");
                Some(Finding { evidence, path: Some(path.clone()), line: None })
            }),
            Rule::ForbiddenText { pattern } => {
                let found = pattern.finder();
                attempt.files.iter().find_map(|file| {
                    let line = file.added.iter().find(|line| found(&line.text))?;
                    let evidence = format!("{} in line {} of `{}`", pattern.shown(), line.line, file.path);
                    Some(Finding { evidence, path: Some(file.path.clone()), line: Some(line.line) })
                })
            }
            Rule::ForbiddenTool { tool } => {
                (attempt.tool == Some(tool)).then(|| Finding::of(format!("tool `{tool}` would be used")))
            }
            Rule::MaxChangedLines { lines } => (attempt.totals.lines > *lines)
                .then(|| Finding::of(format!("{} changed lines", attempt.totals.lines))),
            Rule::MaxChangedFiles { files } => (attempt.totals.files > *files)
                .then(|| Finding::of(format!("{} changed files", attempt.totals.files))),
            Rule::RequiredValidation { validation } => match attempt.validations?.get(validation) {
                Some(true) => None,
                Some(false) => Some(Finding::of(format!("validation `{validation}` failed"))),
                None => Some(Finding::of(format!("validation `{validation}` was not run"))),
            },
            Rule::HumanApproval { .. } => None,
        }
    }

    /// Whether it keeps a file from being changed.
    pub fn forbids_path(&self, path: &str) -> bool {
        match &self.rule {
            Rule::ForbiddenPaths { paths } if !self.waived => paths.iter().any(|p| covers(p, path)),
            _ => false,
        }
    }

    /// Whether a person has to approve a decision that says these texts and is about these files.
    ///
    /// A word counts when the decision has it, or one that begins like it (four letters at least): it is better to ask
    /// once more than to go on unasked.
    pub fn wants_approval(&self, texts: &[&str], paths: &[&str]) -> bool {
        let Rule::HumanApproval { paths: patterns, words } = &self.rule else { return false };
        if self.waived {
            return false;
        }
        if patterns.is_empty() && words.is_empty() {
            return true;
        }
        if patterns.iter().any(|pattern| paths.iter().any(|path| covers(pattern, path))) {
            return true;
        }
        let said: BTreeSet<String> = texts.iter().chain(paths).flat_map(|text| words_of(text)).collect();
        words.iter().any(|word| {
            said.iter().any(|other| {
                let (short, long) = if word.len() < other.len() { (word, other) } else { (other, word) };
                short.len() >= 4 && long.starts_with(short.as_str())
            })
        })
    }

    /// What it is about, without how strict it is: two checks with one subject that differ are in conflict.
    pub(super) fn subject(&self) -> String {
        match &self.rule {
            Rule::ForbiddenPaths { paths } => format!("paths {}", paths.join("\n")),
            Rule::ForbiddenText { pattern } => format!("text {}", pattern.shown()),
            Rule::ForbiddenTool { tool } => format!("tool {tool}"),
            Rule::MaxChangedLines { .. } => "lines".to_owned(),
            Rule::MaxChangedFiles { .. } => "files".to_owned(),
            Rule::RequiredValidation { validation } => format!("validation {validation}"),
            Rule::HumanApproval { paths, words } => {
                format!("approval {}\n\n{}", paths.join("\n"), words.join("\n"))
            }
        }
    }

    /// Orders checks of one subject: the stricter one first.
    pub(super) fn leniency(&self) -> (bool, u64) {
        let limit = match self.rule {
            Rule::MaxChangedLines { lines } => lines,
            Rule::MaxChangedFiles { files } => files,
            _ => 0,
        };
        (self.waived, limit)
    }
}

/// The words of a text, in lower case, without the endings of a plural.
pub(super) fn words_of(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    words.map(|word| word.strip_suffix('s').map_or(word.clone(), str::to_owned)).collect()
}
