//! The patterns of `data/action-patterns.txt` and of the catalogue of known servers: what suppresses, what is too broad,
//! what takes a declaration away.

use std::sync::LazyLock;

use agents_domain::catalogue::servers;
use regex::{Regex, RegexSet, RegexSetBuilder};

static DATA: &str = include_str!("../../data/action-patterns.txt");
static SUPPRESS_TITLES: LazyLock<RegexSet> = LazyLock::new(|| {
    let known = servers().iter().flat_map(|server| &server.suppress_titles);
    compile(section("suppress-titles").chain(known.map(String::as_str)))
});
static SUPPRESS_EDITS: LazyLock<RegexSet> = LazyLock::new(|| {
    let known = servers().iter().flat_map(|server| &server.suppress_edits);
    compile(section("suppress-edits").chain(known.map(String::as_str)))
});
static BROAD_TITLES: LazyLock<RegexSet> = LazyLock::new(|| compile(section("broad-titles")));
static DELETE_TITLES: LazyLock<RegexSet> = LazyLock::new(|| compile(section("delete-titles")));
/// What a server puts before the title proper: `Ruff (F401): `, `eslint: `.
static PREFIX: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^[A-Za-z][\w.-]*( \([^()]*\))?: ").ok());
static REMOVES: LazyLock<RegexSet> = LazyLock::new(|| {
    compile([r"^(remove|delete|drop)\b", r"\b(remove|delete)s? (the )?unused\b"].into_iter())
});

/// A title that silences a finding.
pub(super) fn suppresses(title: &str) -> bool {
    let title = without_prefix(title);
    SUPPRESS_TITLES.is_match(title) && !REMOVES.is_match(title)
}

/// A text whose insertion silences a finding.
pub(super) fn is_suppression(text: &str) -> bool {
    SUPPRESS_EDITS.is_match(text)
}

/// A title that promises to change more than one finding.
pub(super) fn is_broad(title: &str) -> bool {
    BROAD_TITLES.is_match(without_prefix(title))
}

/// A title that says that a declaration goes.
pub(super) fn deletes_declaration(title: &str) -> bool {
    DELETE_TITLES.is_match(title)
}

fn without_prefix(title: &str) -> &str {
    let found = PREFIX.as_ref().and_then(|prefix| prefix.find(title));
    found.map_or(title, |found| &title[found.end()..])
}

fn section(name: &str) -> impl Iterator<Item = &'static str> {
    let heading = |line: &str| line.starts_with('[') && line.ends_with("s]");
    let wanted = format!("[{name}]");
    let lines = DATA.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with("# "));
    lines.skip_while(move |line| *line != wanted).skip(1).take_while(move |line| !heading(line))
}

fn compile(patterns: impl Iterator<Item = &'static str>) -> RegexSet {
    let set = RegexSetBuilder::new(patterns).case_insensitive(true).build();
    // A pattern that does not compile is a fault of the build, which a test of this module finds.
    #[allow(clippy::expect_used)]
    set.expect("the patterns compile")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_has_patterns() {
        for set in [&SUPPRESS_TITLES, &SUPPRESS_EDITS, &BROAD_TITLES, &DELETE_TITLES] {
            assert!(!set.is_empty());
        }
        assert!(PREFIX.is_some());
    }

    #[test]
    fn titles_of_real_servers_that_suppress() {
        for title in [
            "Ruff (F401): Disable for this line",
            "Disable F401 for this line",
            "Add `# pyright: ignore[reportUnusedImport]`",
            "Add '# type: ignore'",
            "Add # noqa: E501",
            "Ignore 'unresolved-reference' for this line",
            "Ignore this error message",
            "Disable checking for this file",
            "Add '// @ts-ignore' to all error messages",
            "Disable no-unused-vars for this line",
            "Disable no-unused-vars for the entire file",
            "Disable ShellCheck rule SC2086 for this line",
            "Suppress rule lint/suspicious/noDebugger for this line.",
            "Suppress rule lint/suspicious/noDebugger for the whole file.",
            "Ignore no-explicit-any for this line",
            "Insert #[allow(dead_code)]",
            "Suppress with NOLINT comment",
            "Add @SuppressWarnings 'unused' to 'x'",
            "Add \"teh\" to user dictionary",
        ] {
            assert!(suppresses(title), "{title}");
        }
    }

    #[test]
    fn titles_of_real_servers_that_fix() {
        for title in [
            "Ruff (F401): Remove unused import",
            "Ruff (B006): Replace with `None`; initialize within function",
            "Ruff (I001): Organize imports",
            "Ruff (RUF100): Remove unused `noqa` directive",
            "Remove the unused suppression comment",
            "Remove unused eslint-disable for this line",
            "insert ';'",
            "place parentheses around the assignment to silence this warning",
            "Remove import from './b'",
            "Prefix 'a' with an underscore",
            "Export 'hidden' from module './b'",
            "Change spelling to 'console'",
            "Add async modifier to containing function",
            "Remove unnecessary `# type: ignore`",
            "import sympy.abc.l",
            "Add missing type annotation",
        ] {
            assert!(!suppresses(title), "{title}");
            assert!(!is_broad(title), "{title}");
        }
    }

    #[test]
    fn titles_that_change_more_than_was_asked_for() {
        for title in [
            "Ruff: Fix all auto-fixable problems",
            "Delete all unused imports",
            "Fix all detected spelling errors",
            "Prefix all unused declarations with '_' where possible",
            "remove all unused includes",
            "fix all includes",
            "Fix all semi problems",
        ] {
            assert!(is_broad(title), "{title}");
        }
    }

    #[test]
    fn titles_that_take_a_declaration_away() {
        assert!(deletes_declaration("Ruff (F841): Remove assignment to unused variable `x`"));
        assert!(deletes_declaration("Remove unused declaration for: 'a'"));
        assert!(!deletes_declaration("Ruff (F401): Remove unused import"));
        assert!(!deletes_declaration("Remove import from './b'"));
    }
}
