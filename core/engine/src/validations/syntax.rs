//! `builtin/syntax`: passes when no changed file has a syntax error it did not have before.

use std::collections::BTreeMap;
use std::path::Path;

use agents_domain::validation::{Finding, Verdict};
use agents_grammars::{Language, SyntaxError};
use serde_json::Map;

/// A file before and after the plan.
pub(super) struct Changed {
    pub path: String,
    pub before: Option<Vec<u8>>,
    pub after: Option<Vec<u8>>,
}

fn errors(path: &str, text: &[u8]) -> Option<Result<Vec<SyntaxError>, String>> {
    let language = agents_grammars::detect(Path::new(path), &text[..text.len().min(512)])?;
    let language = Language::from_id(language)?;
    Some(agents_grammars::syntax_errors(language, text).map_err(|e| e.to_string()))
}

pub(super) fn run(files: &[Changed]) -> Verdict {
    let (mut checked, mut findings, mut unchecked) = (0_usize, Vec::new(), Vec::new());
    for file in files {
        let Some(text) = &file.after else { continue };
        let found = match errors(&file.path, text) {
            None => continue,
            Some(Ok(found)) => found,
            Some(Err(why)) => {
                unchecked.push(format!("{}: {why}", file.path));
                continue;
            }
        };
        checked += 1;
        // The same error at another line was there before.
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        if let Some(Some(Ok(before))) = file.before.as_ref().map(|text| errors(&file.path, text)) {
            before.into_iter().for_each(|error| *known.entry(error.message).or_default() += 1);
        }
        for error in found {
            match known.get_mut(&error.message).filter(|n| **n > 0) {
                Some(left) => *left -= 1,
                None => findings.push(Finding {
                    file: Some(file.path.clone()),
                    line: u32::try_from(error.range.start.line + 1).ok(),
                    column: u32::try_from(error.range.start.column + 1).ok(),
                    code: Some("syntax".to_owned()),
                    ..Finding::error(error.message)
                }),
            }
        }
    }
    let mut data = Map::new();
    data.insert("files_checked".to_owned(), checked.into());
    if !unchecked.is_empty() {
        data.insert("not_checked".to_owned(), unchecked.clone().into());
    }
    let verdict = match (findings.len(), unchecked.first()) {
        (0, None) => Verdict::passed(match checked {
            0 => "no changed file is of a language whose syntax is known here".to_owned(),
            1 => "1 changed file has no new syntax error".to_owned(),
            n => format!("{n} changed files have no new syntax error"),
        }),
        (0, Some(first)) => Verdict::broken(format!("not every changed file could be checked: {first}")),
        (1, _) => Verdict::failed(findings[0].line_text()),
        (n, _) => Verdict::failed(format!("{n} new syntax errors")),
    };
    Verdict { data, findings, ..verdict }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(path: &str, before: &str, after: &str) -> Changed {
        let bytes = |text: &str| (!text.is_empty()).then(|| text.as_bytes().to_vec());
        Changed { path: path.to_owned(), before: bytes(before), after: bytes(after) }
    }

    #[test]
    fn only_new_syntax_errors_of_changed_files_count() {
        let broken = "def f(:\n    pass\n";
        let good = "def f():\n    pass\n";
        assert!(run(&[changed("a.py", broken, good), changed("notes.txt", "", "def f(:")]).passed);
        assert!(run(&[changed("a.py", broken, &format!("# moved\n{broken}"))]).passed);
        let new = run(&[changed("a.py", good, broken), changed("gone.py", good, "")]);
        assert!(!new.passed && !new.error);
        assert_eq!((new.findings[0].file.as_deref(), new.findings[0].line), (Some("a.py"), Some(1)));
        assert!(run(&[]).passed);
    }
}
