//! From a `WorkspaceEdit` of the protocol to edits in the engine's terms, computed against the texts the server saw.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use agents_domain::text::{FileEdit, LineIndex, Range, TextEdit, apply_edits};
use serde_json::Value;

use crate::position::{Converter, Encoding};
use crate::uri;

/// Why an edit that changes nothing cannot be used.
pub(crate) const NOTHING: &str = "it changes nothing";

/// A file as the server sees it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    /// `None` when there is no such file.
    pub(crate) text: Option<Arc<str>>,
    /// The document's version, when it is open at the server.
    pub(crate) version: Option<i64>,
}

/// Converts a whole edit; `Err` is why it cannot be used, for people. Operations keep their order.
pub(crate) fn file_edits(
    edit: &Value,
    root: &Path,
    encoding: Encoding,
    look: &dyn Fn(&str) -> Result<Known, String>,
) -> Result<Vec<FileEdit>, String> {
    let mut plan = Plan { root, encoding, look, files: HashMap::new(), out: Vec::new() };
    if let Some((_, annotation)) = edit["changeAnnotations"]
        .as_object()
        .into_iter()
        .flatten()
        .find(|(_, annotation)| annotation["needsConfirmation"] == true)
    {
        let label = annotation["label"].as_str().unwrap_or("a part of it");
        return Err(format!("the server wants a person to confirm \u{201c}{label}\u{201d} first"));
    }
    match (edit["documentChanges"].as_array(), edit["changes"].as_object()) {
        (Some(changes), _) => changes.iter().try_for_each(|change| plan.document_change(change))?,
        (None, Some(changes)) => {
            for (uri, edits) in changes {
                plan.edit(uri, None, edits)?;
            }
        }
        (None, None) => {}
    }
    if plan.out.is_empty() { Err(NOTHING.to_owned()) } else { Ok(plan.out) }
}

struct Plan<'a> {
    root: &'a Path,
    encoding: Encoding,
    look: &'a dyn Fn(&str) -> Result<Known, String>,
    /// Files as they are after the operations so far.
    files: HashMap<String, Known>,
    out: Vec<FileEdit>,
}

impl Plan<'_> {
    fn document_change(&mut self, change: &Value) -> Result<(), String> {
        let flag = |name: &str| change["options"][name] == true;
        match change["kind"].as_str() {
            None => self.edit(
                change["textDocument"]["uri"].as_str().unwrap_or_default(),
                change["textDocument"]["version"].as_i64(),
                &change["edits"],
            ),
            Some("create") => self.create(&change["uri"], flag("overwrite"), flag("ignoreIfExists")),
            Some("rename") => {
                self.rename(&change["oldUri"], &change["newUri"], flag("overwrite"), flag("ignoreIfExists"))
            }
            Some("delete") => self.delete(&change["uri"], flag("ignoreIfNotExists")),
            Some(other) => Err(format!("it has an operation of unknown kind `{other}`")),
        }
    }

    fn path(&self, uri: &str) -> Result<String, String> {
        uri::relative(self.root, uri).ok_or_else(|| format!("it touches {uri}, outside the workspace"))
    }

    fn file(&mut self, path: &str) -> Result<&mut Known, String> {
        if !self.files.contains_key(path) {
            let known = (self.look)(path)?;
            self.files.insert(path.to_owned(), known);
        }
        Ok(self.files.entry(path.to_owned()).or_default())
    }

    fn edit(&mut self, uri: &str, version: Option<i64>, edits: &Value) -> Result<(), String> {
        let path = self.path(uri)?;
        let encoding = self.encoding;
        let known = self.file(&path)?;
        if let (Some(wanted), Some(open)) = (version, known.version)
            && wanted != open
        {
            return Err(format!("it is for version {wanted} of {path}, which is at version {open}"));
        }
        let text = known.text.clone().ok_or_else(|| format!("it edits {path}, which does not exist"))?;
        let edits = text_edits(edits, &Converter::new(&text, encoding), &text)?;
        let after = apply_edits(&text, &edits)
            .map_err(|error| format!("its edits of {path} cannot be applied: {error}"))?;
        if after == *text {
            return Ok(());
        }
        known.text = Some(Arc::from(after.as_str()));
        match self.out.last_mut() {
            Some(FileEdit::Create { path: created, text }) if *created == path => *text = after,
            Some(FileEdit::Edit { path: edited, edits: before }) if *edited == path => {
                // Two sets of edits one after the other are one set against the first text.
                let original = (self.look)(&path)?
                    .text
                    .filter(|original| apply_edits(original, before).as_deref() == Ok(&*text));
                match original {
                    Some(original) => *before = vec![difference(&original, &after)],
                    None => self.out.push(FileEdit::Edit { path, edits }),
                }
            }
            _ => self.out.push(FileEdit::Edit { path, edits }),
        }
        Ok(())
    }

    fn create(&mut self, uri: &Value, overwrite: bool, ignore: bool) -> Result<(), String> {
        let path = self.path(uri.as_str().unwrap_or_default())?;
        let known = self.file(&path)?;
        match known.text.clone() {
            // Overwriting wins over ignoring, says the protocol.
            Some(text) if overwrite => {
                known.text = Some(Arc::from(""));
                if !text.is_empty() {
                    self.out.push(FileEdit::Edit { path, edits: vec![difference(&text, "")] });
                }
                Ok(())
            }
            Some(_) if ignore => Ok(()),
            Some(_) => Err(format!("it creates {path}, which exists")),
            None => {
                known.text = Some(Arc::from(""));
                known.version = None;
                self.out.push(FileEdit::Create { path, text: String::new() });
                Ok(())
            }
        }
    }

    fn rename(&mut self, from: &Value, to: &Value, overwrite: bool, ignore: bool) -> Result<(), String> {
        let path = self.path(from.as_str().unwrap_or_default())?;
        let to = self.path(to.as_str().unwrap_or_default())?;
        if self.file(&to)?.text.is_some() {
            if ignore && !overwrite {
                return Ok(());
            }
            return Err(format!("it renames {path} to {to}, which exists"));
        }
        let known = self.file(&path)?;
        let moved = Known { text: known.text.take(), version: None };
        if moved.text.is_none() {
            return Err(format!("it renames {path}, which is no text file"));
        }
        self.files.insert(to.clone(), moved);
        self.out.push(FileEdit::Rename { path, to });
        Ok(())
    }

    fn delete(&mut self, uri: &Value, ignore: bool) -> Result<(), String> {
        let path = self.path(uri.as_str().unwrap_or_default())?;
        let known = self.file(&path)?;
        if known.text.take().is_none() {
            return if ignore { Ok(()) } else { Err(format!("it deletes {path}, which is no text file")) };
        }
        self.out.push(FileEdit::Delete { path });
        Ok(())
    }
}

fn text_edits(edits: &Value, converter: &Converter<'_>, text: &str) -> Result<Vec<TextEdit>, String> {
    let edits = edits.as_array().ok_or("its edits are no list")?;
    let crlf = ends_lines_with_crlf(text);
    edits
        .iter()
        .map(|edit| {
            // rust-analyzer's and 3.18's ways of saying that the text holds placeholders.
            if edit["insertTextFormat"] == 2 || !edit["snippet"].is_null() {
                return Err("it is a snippet with placeholders to fill in".to_owned());
            }
            let new_text = edit["newText"].as_str().ok_or("one of its edits has no text")?;
            let (start, end) = (&edit["range"]["start"], &edit["range"]["end"]);
            if [start, end]
                .iter()
                .any(|position| !position["line"].is_u64() || !position["character"].is_u64())
            {
                return Err("one of its edits has no range".to_owned());
            }
            // As given: brought into the text, both ends of a range turned around may come to be the same place.
            let place = |position: &Value| (position["line"].as_u64(), position["character"].as_u64());
            if place(start) > place(end) {
                return Err("one of its edits starts after its end".to_owned());
            }
            let new_text = if crlf { with_crlf(new_text) } else { new_text.to_owned() };
            Ok(TextEdit { range: converter.range(&edit["range"]), new_text })
        })
        .collect()
}

/// Whether all lines of a text end in CRLF; servers answer with bare `\n` nevertheless.
fn ends_lines_with_crlf(text: &str) -> bool {
    let crlf = text.matches("\r\n").count();
    crlf > 0 && crlf == text.matches('\n').count()
}

fn with_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// The smallest single edit from one text to another.
fn difference(from: &str, to: &str) -> TextEdit {
    let start = from.char_indices().zip(to.chars()).find(|((_, a), b)| a != b).map(|((at, _), _)| at);
    let mut start = start.unwrap_or_else(|| from.len().min(to.len()));
    let index = LineIndex::new(from);
    // No position points between the two characters of a line break.
    if from[..start].ends_with('\r') {
        start -= 1;
    }
    let common = from[start..].chars().rev().zip(to[start..].chars().rev()).take_while(|(a, b)| a == b);
    let mut tail: usize = common.map(|(character, _)| character.len_utf8()).sum();
    if from[..from.len() - tail].ends_with('\r') && from[from.len() - tail..].starts_with('\n') {
        tail -= 1;
    }
    let range = Range { start: index.position(start), end: index.position(from.len() - tail) };
    TextEdit { range, new_text: to[start..to.len() - tail].to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn at(line: u32, start: u32, end: u32, new_text: &str) -> Value {
        json!({"range": {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}, "newText": new_text})
    }

    fn convert(edit: &Value) -> Result<Vec<FileEdit>, String> {
        let look = |path: &str| {
            let text = match path {
                "a.py" => Some("é😀x = 1\ny = 2\n"),
                "crlf.py" => Some("one\r\ntwo\r\n"),
                "b c.py" => Some("b\n"),
                _ => None,
            };
            Ok(Known { text: text.map(Arc::from), version: (path == "a.py").then_some(4) })
        };
        file_edits(edit, Path::new("/w"), Encoding::Utf16, &look)
    }

    #[test]
    fn plain_changes_and_document_changes_become_byte_columns() {
        let expected = vec![FileEdit::Edit {
            path: "a.py".into(),
            edits: vec![TextEdit { range: Range::new((0, 6), (0, 7)), new_text: "z".into() }],
        }];
        assert_eq!(
            convert(&json!({"changes": {"file:///w/a.py": [at(0, 3, 4, "z")]}})),
            Ok(expected.clone())
        );
        for version in [json!(4), Value::Null] {
            let edit = json!({
                "documentChanges": [{"textDocument": {"uri": "file:///w/a.py", "version": version}, "edits": [at(0, 3, 4, "z")]}],
                "changes": {"file:///outside": []},
            });
            assert_eq!(convert(&edit), Ok(expected.clone()));
        }
    }

    #[test]
    fn what_cannot_be_used_says_why() {
        let change = |uri: &str, version: i64, edit: Value| json!({"documentChanges": [{"textDocument": {"uri": uri, "version": version}, "edits": [edit]}]});
        let mut snippet = at(0, 0, 0, "$0");
        snippet["insertTextFormat"] = json!(2);
        for (edit, why) in [
            (change("file:///w/a.py", 3, at(0, 0, 1, "z")), "for version 3 of a.py, which is at version 4"),
            (change("file:///x/a.py", 1, at(0, 0, 1, "z")), "outside the workspace"),
            (change("file:///w/../x", 1, at(0, 0, 1, "z")), "outside the workspace"),
            (change("file:///w/none.py", 1, at(0, 0, 1, "z")), "does not exist"),
            (change("file:///w/a.py", 4, snippet), "snippet"),
            (
                change(
                    "file:///w/a.py",
                    4,
                    json!({"range": at(0, 0, 0, "")["range"], "snippet": {"kind": "snippet", "value": "x"}}),
                ),
                "snippet",
            ),
            (change("file:///w/a.py", 4, json!({"newText": "x"})), "no range"),
            (change("file:///w/a.py", 4, json!({"range": at(0, 0, 0, "")["range"]})), "no text"),
            (change("file:///w/a.py", 4, at(1, 0, 1, "y")), "changes nothing"),
            (
                json!({"documentChanges": [{"textDocument": {"uri": "file:///w/a.py"}, "edits": [at(0, 0, 3, "z"), at(0, 1, 3, "")]}]}),
                "overlap",
            ),
            (
                change(
                    "file:///w/a.py",
                    4,
                    json!({"range": {"start": {"line": 4_294_967_295_u32, "character": 4_294_967_295_u32}, "end": {"line": 0, "character": 0}}, "newText": "x"}),
                ),
                "starts after its end",
            ),
            (change("file:///w/a.py", 4, at(0, 4, 3, "x")), "starts after its end"),
            (change("file:///w/a.py", 4, at(7, 4, 3, "x")), "starts after its end"),
            (json!({"documentChanges": [{"kind": "explode"}]}), "unknown kind `explode`"),
            (
                json!({"documentChanges": [{"kind": "create", "uri": "file:///w/a.py"}]}),
                "creates a.py, which exists",
            ),
            (json!({"documentChanges": [{"kind": "delete", "uri": "file:///w/none"}]}), "deletes none"),
            (
                json!({"documentChanges": [{"kind": "rename", "oldUri": "file:///w/a.py", "newUri": "file:///w/crlf.py"}]}),
                "which exists",
            ),
            (
                json!({"changeAnnotations": {"x": {"label": "Danger", "needsConfirmation": true}}, "changes": {"file:///w/a.py": [at(0, 0, 1, "z")]}}),
                "confirm \u{201c}Danger\u{201d}",
            ),
            (json!({}), "changes nothing"),
            (Value::Null, "changes nothing"),
        ] {
            let error = convert(&edit).unwrap_err();
            assert!(error.contains(why), "{edit}: {error}");
        }
    }

    #[test]
    fn operations_on_files_keep_their_order_and_see_what_came_before() {
        let edit = json!({"documentChanges": [
            {"kind": "create", "uri": "file:///w/new.py"},
            {"textDocument": {"uri": "file:///w/new.py", "version": null}, "edits": [{"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}, "newText": "n\n", "annotationId": "x"}]},
            {"kind": "rename", "oldUri": "file:///w/b%20c.py", "newUri": "file:///w/moved.py"},
            {"textDocument": {"uri": "file:///w/moved.py", "version": null}, "edits": [at(0, 0, 1, "m")]},
            {"kind": "delete", "uri": "file:///w/crlf.py", "options": {"recursive": true}},
            {"kind": "delete", "uri": "file:///w/none.py", "options": {"ignoreIfNotExists": true}},
        ]});
        assert_eq!(
            convert(&edit).unwrap(),
            [
                FileEdit::Create { path: "new.py".into(), text: "n\n".into() },
                FileEdit::Rename { path: "b c.py".into(), to: "moved.py".into() },
                FileEdit::Edit {
                    path: "moved.py".into(),
                    edits: vec![TextEdit { range: Range::new((0, 0), (0, 1)), new_text: "m".into() }]
                },
                FileEdit::Delete { path: "crlf.py".into() },
            ]
        );
    }

    #[test]
    fn edits_of_one_file_in_two_steps_become_one_against_the_first_text() {
        let step = |edit: Value| json!({"textDocument": {"uri": "file:///w/b%20c.py"}, "edits": [edit]});
        let edit = json!({"documentChanges": [step(at(0, 0, 1, "bb")), step(at(0, 2, 2, "!"))]});
        assert_eq!(
            convert(&edit).unwrap(),
            [FileEdit::Edit {
                path: "b c.py".into(),
                edits: vec![TextEdit { range: Range::new((0, 1), (0, 1)), new_text: "b!".into() }]
            }]
        );
    }

    #[test]
    fn inserted_lines_end_as_the_lines_of_the_file() {
        let edits = convert(&json!({"changes": {"file:///w/crlf.py": [at(1, 0, 0, "a\nb\r\n")]}})).unwrap();
        let FileEdit::Edit { edits, .. } = &edits[0] else { panic!("{edits:?}") };
        assert_eq!(edits[0].new_text, "a\r\nb\r\n");
    }

    proptest! {
        #[test]
        fn the_difference_of_two_texts_leads_from_one_to_the_other(from in "[ab\\r\\né😀]{0,12}", to in "[ab\\r\\né😀]{0,12}") {
            prop_assert_eq!(apply_edits(&from, &[difference(&from, &to)]), Ok(to));
        }
    }
}
