//! Source code: raw in the ASCII layout, boxed, and with colours and line numbers in the rich one.

use crate::output::element::Code;
use crate::output::layout::{self, Line};
use crate::output::styled::{Styled, Tone};

use super::View;
use super::frame::frame;

pub(super) fn rows(code: &Code, view: &View) -> Vec<Line> {
    let language = Language::of(code.language.as_deref().unwrap_or_default());
    let plain = view.lines(&code.content.as_str().into());
    let digits = code.first_line.map_or(0, |first| (first + plain.len().saturating_sub(1)).to_string().len());
    let mut body = Vec::new();
    for (i, line) in plain.into_iter().enumerate() {
        let number = code.first_line.unwrap_or(1) + i;
        let stressed = code.stressed.contains(&number);
        let mut row = Line::default();
        if digits > 0 {
            let pointer = if stressed { ">" } else { " " };
            row.push(format!("{pointer}{number:>digits$} "), if stressed { Tone::Warn } else { Tone::Dim });
        }
        let indent = row.width();
        if stressed && view.color {
            row.push(line.text(), Tone::Strong);
        } else if view.rich {
            row.extend(highlight(&line.text(), &language));
        } else {
            row.extend(line);
        }
        body.extend(if view.boxed { layout::wrap_hanging(row, view.inner(), indent) } else { vec![row] });
    }
    if view.boxed {
        let title = view.one_line(Styled::new(code.title.as_str(), Tone::Title));
        return frame(title, body, Default::default(), Tone::Plain, view);
    }
    body
}

/// What a line-by-line highlighter needs to know of a language.
struct Language {
    comment: &'static str,
    words: &'static [&'static str],
    /// Whether `key:` at the start of a line is a key (YAML, TOML, JSON-like files).
    keys: Option<char>,
}

impl Language {
    fn of(name: &str) -> Language {
        const PYTHON: &[&str] = &[
            "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif",
            "else", "except", "False", "finally", "for", "from", "global", "if", "import", "in", "is",
            "lambda", "None", "nonlocal", "not", "or", "pass", "raise", "return", "True", "try", "while",
            "with", "yield",
        ];
        const RUST: &[&str] = &[
            "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum", "false",
            "fn", "for", "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref",
            "return", "self", "Self", "static", "struct", "super", "trait", "true", "type", "unsafe", "use",
            "where", "while",
        ];
        const SCRIPT: &[&str] = &[
            "async",
            "await",
            "break",
            "case",
            "catch",
            "class",
            "const",
            "continue",
            "default",
            "delete",
            "do",
            "else",
            "enum",
            "export",
            "extends",
            "false",
            "finally",
            "for",
            "from",
            "function",
            "if",
            "implements",
            "import",
            "in",
            "instanceof",
            "interface",
            "let",
            "new",
            "null",
            "of",
            "return",
            "static",
            "super",
            "switch",
            "this",
            "throw",
            "true",
            "try",
            "type",
            "typeof",
            "undefined",
            "var",
            "void",
            "while",
            "yield",
        ];
        const DATA: &[&str] = &["true", "false", "null", "yes", "no"];
        match name {
            "python" | "py" => Language { comment: "#", words: PYTHON, keys: None },
            "rust" | "rs" => Language { comment: "//", words: RUST, keys: None },
            "typescript" | "javascript" | "ts" | "js" | "tsx" | "jsx" => {
                Language { comment: "//", words: SCRIPT, keys: None }
            }
            "yaml" | "yml" => Language { comment: "#", words: DATA, keys: Some(':') },
            "toml" => Language { comment: "#", words: DATA, keys: Some('=') },
            "json" => Language { comment: "", words: DATA, keys: None },
            "sh" | "bash" | "shell" => Language { comment: "#", words: &[], keys: None },
            _ => Language { comment: "", words: &[], keys: None },
        }
    }
}

/// Colours comments, strings, numbers, keywords and keys of one line. Strings over several lines are not followed.
fn highlight(text: &str, language: &Language) -> Line {
    let mut out = Line::default();
    if language.words.is_empty() && language.comment.is_empty() {
        out.push(text, Tone::Plain);
        return out;
    }
    let mut rest = text;
    if let Some(sign) = language.keys
        && let Some(at) = text.find(sign)
        && !text.trim_start().starts_with(['#', '"', '\'', '['])
    {
        out.push(&text[..at], Tone::Id);
        rest = &text[at..];
    }
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let starts_word = !(before.is_alphanumeric() || before == '_');
        let (taken, tone) = if !language.comment.is_empty()
            && rest.starts_with(language.comment)
            && (before == ' ' || language.comment == "//")
        {
            (rest.len(), Tone::Dim)
        } else if (first == '"' || (first == '\'' && starts_word))
            && let Some(end) = string_end(rest, first)
        {
            (end, Tone::Good)
        } else if first.is_ascii_digit() && starts_word {
            (
                rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '_'))
                    .unwrap_or(rest.len()),
                Tone::Warn,
            )
        } else if first.is_alphabetic() || first == '_' {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
            (
                end,
                if starts_word && language.words.contains(&&rest[..end]) { Tone::Word } else { Tone::Plain },
            )
        } else {
            (first.len_utf8(), Tone::Plain)
        };
        out.push(&rest[..taken], tone);
        before = rest[..taken].chars().next_back().unwrap_or(' ');
        rest = &rest[taken..];
    }
    out
}

/// Bytes of a string literal from its opening quote; none for a lone quote (a lifetime, an apostrophe).
fn string_end(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == quote {
            return Some(at + c.len_utf8());
        }
    }
    None
}
