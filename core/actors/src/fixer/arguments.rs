//! What a plan's arguments narrow the work to.

use std::collections::BTreeMap;

use agents_domain::diagnostics::Severity;
use agents_domain::ports::actor::ActorFailure;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use serde_json::Value;

/// Files looked at unless `max_files` says otherwise.
const DEFAULT_MAX_FILES: usize = 5000;

/// The arguments `max_files`, `rules`, `severity` and `paths`; all optional.
#[derive(Debug, Clone)]
pub(crate) struct Filters {
    /// The most files that servers are asked about.
    pub max_files: usize,
    /// Only findings of these rules; empty means all.
    pub rules: Vec<String>,
    /// Only findings at least this bad.
    pub severity: Severity,
    paths: Option<Gitignore>,
}

impl Filters {
    /// Reads them. Lists may be JSON lists or texts with commas.
    ///
    /// # Errors
    /// Names the argument and what would be right.
    pub fn read(arguments: &BTreeMap<String, Value>) -> Result<Self, ActorFailure> {
        let given = |name: &str| arguments.get(name).filter(|value| !is_empty(value));
        let max_files = match given("max_files") {
            None => DEFAULT_MAX_FILES,
            Some(value) => number(value)
                .filter(|n| *n > 0)
                .ok_or_else(|| wrong("max_files", value, "a whole number from 1"))?,
        };
        let severity = match given("severity") {
            None => Severity::Hint,
            Some(value) => value
                .as_str()
                .and_then(severity)
                .ok_or_else(|| wrong("severity", value, "error, warning, information or hint"))?,
        };
        let rules = list(arguments, "rules")?;
        let globs = list(arguments, "paths")?;
        let paths = match globs.is_empty() {
            true => None,
            false => Some(gitignore(&globs)?),
        };
        Ok(Self { max_files, rules, severity, paths })
    }

    /// Whether a file is among those asked for.
    pub fn wants_path(&self, path: &str) -> bool {
        let path = path.trim_start_matches('/');
        let matches = |globs: &Gitignore| globs.matched_path_or_any_parents(path, false).is_ignore();
        self.paths.as_ref().is_none_or(matches)
    }

    /// Whether a finding is among those asked for.
    pub fn wants(&self, rule: &str, severity: Severity) -> bool {
        severity <= self.severity && (self.rules.is_empty() || self.rules.iter().any(|wanted| wanted == rule))
    }
}

/// The severity that a word means.
fn severity(word: &str) -> Option<Severity> {
    Some(match word.trim().to_lowercase().as_str() {
        "error" | "errors" => Severity::Error,
        "warning" | "warnings" => Severity::Warning,
        "information" | "info" => Severity::Information,
        "hint" | "hints" => Severity::Hint,
        _ => return None,
    })
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty())
}

fn number(value: &Value) -> Option<usize> {
    let number = match value {
        Value::String(text) => text.trim().parse().ok()?,
        value => value.as_u64()?,
    };
    usize::try_from(number).ok()
}

fn list(arguments: &BTreeMap<String, Value>, name: &str) -> Result<Vec<String>, ActorFailure> {
    let Some(value) = arguments.get(name) else { return Ok(Vec::new()) };
    let texts: Vec<String> = match value {
        Value::Null => Vec::new(),
        Value::String(text) => text.split(',').map(str::to_owned).collect(),
        Value::Array(values) => values
            .iter()
            .map(|value| value.as_str().map(str::to_owned))
            .collect::<Option<_>>()
            .ok_or_else(|| wrong(name, value, "a list of texts"))?,
        value => return Err(wrong(name, value, "a list of texts, or one text with commas")),
    };
    Ok(texts.iter().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).collect())
}

fn gitignore(globs: &[String]) -> Result<Gitignore, ActorFailure> {
    let mut builder = GitignoreBuilder::new("");
    for glob in globs {
        builder
            .add_line(None, glob)
            .map_err(|error| wrong("paths", &Value::from(glob.as_str()), &format!("a glob ({error})")))?;
    }
    let globs = builder.build();
    globs.map_err(|error| failure(format!("argument `paths` cannot be used: {error}")))
}

fn wrong(name: &str, value: &Value, right: &str) -> ActorFailure {
    failure(format!("argument `{name}` is {value}; it must be {right}"))
}

fn failure(message: String) -> ActorFailure {
    ActorFailure {
        message,
        category: "actor".to_owned(),
        transient: false,
        hints: vec![
            "Make a new plan with other arguments (`agents plan use ... --arg NAME=VALUE`).".to_owned(),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(arguments: Value) -> Result<Filters, ActorFailure> {
        Filters::read(&serde_json::from_value(arguments).unwrap())
    }

    #[test]
    fn nothing_given_means_everything() {
        let filters = read(json!({})).unwrap();
        assert_eq!((filters.max_files, filters.severity), (5000, Severity::Hint));
        assert!(filters.wants_path("any/where.py") && filters.wants("X", Severity::Hint));
    }

    #[test]
    fn rules_severity_and_paths_narrow_it() {
        let filters = read(
            json!({"rules": "F401, E711", "severity": "warning", "paths": ["src/", "!src/gen/", "*.pyi"], "max_files": "7"}),
        )
        .unwrap();
        assert_eq!(filters.max_files, 7);
        assert!(filters.wants("F401", Severity::Error) && filters.wants("E711", Severity::Warning));
        assert!(!filters.wants("F401", Severity::Hint) && !filters.wants("F40", Severity::Error));
        assert!(filters.wants_path("src/a/b.py") && filters.wants_path("x/y.pyi"));
        assert!(!filters.wants_path("src/gen/b.py") && !filters.wants_path("test/a.py"));
        let empty = read(json!({"rules": "", "severity": "", "paths": [], "max_files": null})).unwrap();
        assert!(empty.rules.is_empty() && empty.wants_path("a"));
    }

    #[test]
    fn a_wrong_argument_is_named_with_what_would_be_right() {
        for (arguments, part) in [
            (json!({"max_files": 0}), "`max_files` is 0; it must be a whole number"),
            (json!({"severity": "bad"}), "error, warning, information or hint"),
            (json!({"rules": [1]}), "a list of texts"),
            (json!({"paths": 4}), "`paths` is 4"),
            (json!({"paths": "[z-a]"}), "a glob"),
        ] {
            let error = read(arguments).unwrap_err();
            assert!(error.message.contains(part), "{}", error.message);
        }
    }
}
