//! What servers find and offer.

use agents_domain::diagnostics::{Diagnostic, Severity};
use agents_domain::ports::language_servers::CodeActionOffer;
use agents_domain::text::{FileEdit, Range, TextEdit};
use serde_json::json;

use super::{Files, Found, Server, server};

pub fn diagnostic(
    code: &str,
    severity: Severity,
    line: u32,
    columns: (u32, u32),
    message: &str,
) -> Diagnostic {
    let range = Range::new((line, columns.0), (line, columns.1));
    Diagnostic {
        range,
        severity,
        code: Some(code.to_owned()),
        source: Some("fake".to_owned()),
        message: message.to_owned(),
        raw: json!({"data": [line, columns.0]}),
    }
}

pub fn edit(start: (u32, u32), end: (u32, u32), new_text: &str) -> TextEdit {
    TextEdit { range: Range::new(start, end), new_text: new_text.to_owned() }
}

pub fn in_file(path: &str, edits: Vec<TextEdit>) -> FileEdit {
    FileEdit::Edit { path: path.to_owned(), edits }
}

pub fn offer(title: &str, preferred: bool, edits: Vec<FileEdit>) -> CodeActionOffer {
    CodeActionOffer {
        title: title.to_owned(),
        kind: Some("quickfix".to_owned()),
        is_preferred: preferred,
        edits: Some(edits),
        unusable: None,
    }
}

/// Lines of a file with their numbers.
pub fn lines(files: &Files, path: &str) -> Vec<(u32, String)> {
    let text = files.get(path).cloned().unwrap_or_default();
    text.lines().enumerate().map(|(at, line)| (at as u32, line.to_owned())).collect()
}

/// As ruff: unused imports with a preferred fix and a way to suppress.
pub fn unused_imports(files: &Files, path: &str) -> Vec<Found> {
    let text = files.get(path).cloned().unwrap_or_default();
    let mut found = Vec::new();
    for (line, content) in lines(files, path) {
        let Some(names) = content.strip_prefix("import ") else { continue };
        let names: Vec<&str> = names.split(", ").collect();
        if content.contains("# noqa") {
            continue;
        }
        let mut column = "import ".len() as u32;
        for (at, name) in names.iter().enumerate() {
            let end = column + name.len() as u32;
            let used = text.matches(&format!("{name}.")).count() > 0;
            if !used {
                let removal = match (names.len(), at + 1 == names.len()) {
                    (1, _) => edit((line, 0), (line + 1, 0), ""),
                    (_, false) => edit((line, column), (line, end + 2), ""),
                    (_, true) => edit((line, column - 2), (line, end), ""),
                };
                let width = content.len() as u32;
                found.push((
                    diagnostic(
                        "F401",
                        Severity::Warning,
                        line,
                        (column, end),
                        &format!("`{name}` imported but unused"),
                    ),
                    vec![
                        offer(
                            &format!("Ruff (F401): Remove unused import: `{name}`"),
                            true,
                            vec![in_file(path, vec![removal])],
                        ),
                        offer(
                            "Ruff (F401): Disable for this line",
                            false,
                            vec![in_file(path, vec![edit((line, width), (line, width), "  # noqa: F401")])],
                        ),
                    ],
                ));
            }
            column = end + 2;
        }
    }
    found
}

/// A server with [`unused_imports`].
pub fn ruff() -> Server {
    server("local/ruff", ".py", unused_imports)
}

/// A finding in each line with `word`, fixed by putting `by` in its place.
pub fn word(
    code: &'static str,
    severity: Severity,
    word: &'static str,
    by: &'static str,
) -> impl Fn(&Files, &str) -> Vec<Found> + Send + Sync + 'static {
    move |files, path| {
        let mut found = Vec::new();
        for (line, content) in lines(files, path) {
            for (at, _) in content.match_indices(word) {
                let (start, end) = (at as u32, (at + word.len()) as u32);
                let fix = in_file(path, vec![edit((line, start), (line, end), by)]);
                found.push((
                    diagnostic(code, severity, line, (start, end), &format!("`{word}` is not good")),
                    vec![offer(&format!("Replace `{word}` by `{by}`"), true, vec![fix])],
                ));
            }
        }
        found
    }
}
