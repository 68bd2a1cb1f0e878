//! `lsp/impact`: everything that refers to a symbol, in one call.

use std::collections::BTreeMap;

use agents_domain::language_server::Capability;
use agents_domain::ports::code_intelligence::{Hierarchy, Place, PlaceQuestion};
use schemars::JsonSchema;
use serde::Serialize;

use crate::page::{Hit, cut};
use crate::{Lens, Tool};

/// Files listed on each side, and lines of each.
const MAX_FILES: usize = 60;
const MAX_LINES: usize = 12;
/// Definitions, implementations and callers listed.
const MAX_RELATED: usize = 40;

arguments! {
    /// What a change of a symbol would touch: where it is defined, every file that refers to it with tests apart, what
    /// calls it and what implements it.
    Impact about a symbol {}
}

/// What hangs on a symbol.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Touched {
    /// The server that answered.
    server: String,
    /// Where it is defined.
    defined: Vec<Hit>,
    /// How many references there are, the definition left out.
    references: usize,
    /// Files that refer to it and are no tests, those with the most references first; at most 60.
    code: Vec<Referring>,
    /// The same for tests: what to run after a change.
    tests: Vec<Referring>,
    /// Files in all, those that are not listed too.
    files: usize,
    /// What calls it, with the lines of the calls; absent where no server tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    callers: Option<Vec<Caller>>,
    /// What implements or overrides it; absent where no server tells or there is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    implementations: Option<Vec<Hit>>,
}

/// A file that refers to the symbol.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Referring {
    /// The file.
    path: String,
    /// How often.
    references: usize,
    /// `line: source` of the first ones, lines from 1.
    lines: Vec<String>,
}

/// A caller.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Caller {
    /// Its name.
    name: String,
    /// `path:line:column` of its declaration.
    at: String,
    /// It is in a test.
    test: bool,
    /// The lines of the calls, from 1.
    call_lines: Vec<u32>,
}

impl Tool for Impact {
    const NAME: &'static str = "lsp/impact";
    const SUMMARY: &'static str = "What a change of a symbol would touch: all that refers to it, calls it and implements it, tests apart";
    const CAPABILITY: Option<Capability> = Some(Capability::References);
    type Output = Touched;

    async fn run(self, lens: &Lens) -> Result<Touched, String> {
        let file = lens.file(self.resource.as_deref(), &self.path)?;
        let position = self.spot().find(&file).await?;
        let question = PlaceQuestion::References { include_declaration: false };
        let (server, references) = file
            .first("references", |languages, server| languages.places(server, &file.path, position, question))
            .await?;
        // The rest comes from the same server, and may be missing.
        let languages = &*file.workspace.languages;
        let places = |question| languages.places(server, &file.path, position, question);
        let defined = places(PlaceQuestion::Definition).await.ok().flatten().unwrap_or_default();
        let callers =
            languages.hierarchy(server, &file.path, position, Hierarchy::Callers).await.ok().flatten();
        let implementations = places(PlaceQuestion::Implementation).await.ok().flatten();
        let hit = |place: &Place| Hit::of(file.workspace, place, 0);
        let elsewhere = |place: &&Place| !defined.contains(place);
        let mut by_file: BTreeMap<&str, Vec<&Place>> = BTreeMap::new();
        let mut count = 0;
        // Some servers list the definition although it was not asked for.
        for place in references.iter().filter(elsewhere) {
            count += 1;
            by_file.entry(&place.path).or_default().push(place);
        }
        let files = by_file.len();
        let mut referring: Vec<Referring> =
            by_file.into_iter().map(|(path, places)| of_file(path, places)).collect();
        referring.sort_by(|a, b| b.references.cmp(&a.references).then_with(|| a.path.cmp(&b.path)));
        let (mut tests, mut code): (Vec<_>, Vec<_>) =
            referring.into_iter().partition(|one| is_test(&one.path));
        tests.truncate(MAX_FILES);
        code.truncate(MAX_FILES);
        let implementations = implementations.map(|list| {
            let others = list.iter().filter(elsewhere).take(MAX_RELATED);
            others.map(hit).collect::<Vec<_>>()
        });
        Ok(Touched {
            server: server.to_string(),
            defined: defined.iter().take(MAX_RELATED).map(hit).collect(),
            references: count,
            code,
            tests,
            files,
            callers: callers.map(|list| {
                list.into_iter()
                    .take(MAX_RELATED)
                    .map(|one| {
                        let mut call_lines: Vec<u32> =
                            one.calls.iter().map(|range| range.start.line + 1).collect();
                        call_lines.dedup();
                        call_lines.truncate(MAX_LINES);
                        Caller {
                            at: hit(&one.place).at,
                            test: is_test(&one.place.path),
                            name: one.name,
                            call_lines,
                        }
                    })
                    .collect()
            }),
            implementations: implementations.filter(|list| !list.is_empty()),
        })
    }
}

fn of_file(path: &str, mut places: Vec<&Place>) -> Referring {
    places.sort_by_key(|place| place.range);
    let mut lines: Vec<String> = places
        .iter()
        .map(|place| format!("{}: {}", place.range.start.line + 1, cut(place.line.trim(), 200)))
        .collect();
    lines.dedup();
    lines.truncate(MAX_LINES);
    Referring { path: path.to_owned(), references: places.len(), lines }
}

/// Whether a file holds tests, by the customs of the common languages.
pub(crate) fn is_test(path: &str) -> bool {
    let mut parts: Vec<&str> = path.split('/').collect();
    let name = parts.pop().unwrap_or_default();
    let folder = |part: &str| matches!(part, "test" | "tests" | "__tests__" | "spec" | "specs" | "testing");
    let stem = name.split('.').next().unwrap_or(name);
    parts.iter().any(|part| folder(part))
        || name.starts_with("test_")
        || [".test.", ".spec.", "_test.", "_spec.", "_tests."].iter().any(|mark| name.contains(mark))
        || matches!(stem, "conftest" | "tests" | "test")
        || ["Test", "Tests", "Spec"].iter().any(|end| stem.len() > end.len() && stem.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_known_by_the_customs_of_their_languages() {
        for path in [
            "tests/a.py",
            "src/test_a.py",
            "a_test.go",
            "a.test.ts",
            "a.spec.tsx",
            "src/FooTest.java",
            "spec/a.rb",
            "conftest.py",
            "src/lib/tests.rs",
        ] {
            assert!(is_test(path), "{path}");
        }
        for path in ["src/attest.py", "src/latest.ts", "contest/a.c", "src/Test.java/x.rs", "protest.go"] {
            assert!(!is_test(path), "{path}");
        }
    }
}
