//! Our own typography in ASCII where the format asks for it. OUT-008, COM-007, C-18.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::*;

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true if path.ends_with("tests") || path.ends_with("output") => {}
            true => sources(&path, into),
            false if path.extension().is_some_and(|ending| ending == "rs") => into.push(path),
            false => {}
        }
    }
}

#[test]
fn every_mark_that_our_texts_use_has_an_ascii_form() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in
        ["core/actors/src", "core/domain/src", "core/engine/src", "core/sandbox/src", "grammars/src"]
    {
        sources(&root.join(folder), &mut files);
    }
    for folder in ["lsp/runtime/src", "editors/cli/src"] {
        sources(&root.join(folder), &mut files);
    }
    assert!(files.len() > 100, "{}", files.len());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            for mark in line.chars().filter(|c| !c.is_ascii() && !c.is_alphanumeric()) {
                let shown = ascii(&mark.to_string());
                assert!(shown.is_ascii(), "{}: `{mark}` (U+{:04X})", file.display(), u32::from(mark));
            }
        }
    }
}

#[test]
fn sentences_of_actors_are_ascii_in_plain_and_what_they_quote_keeps_its_letters() {
    let said = "“naïve” … → 日本 ⏎ ◆";
    for (format, shown) in [(Format::Plain, "\"naïve\" ... -> 日本 | *"), (Format::Table, said)] {
        let run = Run::piped(format);
        let data = json!({ "question": said, "rows": [{ "question": said, "name": said }] });
        run.out
            .panel("p", "Said")
            .pick(&data, "question", "Question", Kind::Prose)
            .line(prose(said, Tone::Strong))
            .row("Own", own(said));
        let columns = vec![col("question", "Question").kind(Kind::Prose), col("name", "Name").kind(Kind::Id)];
        run.out.table("t", "Table", columns).rows(&data["rows"]);
        let text = run.finish();
        assert_eq!(text.matches(shown).count(), if format == Format::Plain { 4 } else { 5 }, "{text}");
        // A name is the user's.
        assert!(text.contains(said), "{text}");
    }
}
