//! `file_operations`: reading and writing files of a sandbox.

use agents_domain::text::{Content, FileEdit};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::args::{place, read, schema, writable};
use super::editing::{self, Edit};
use super::{Body, Edits, Scene, Tool, looks, writes};
use crate::sandboxes::OpenSandbox;

/// Lines of one page, unless asked otherwise and at most.
const LINES: u32 = 1000;
/// Bytes of one page.
const BYTES: usize = 60_000;
/// The largest file that is read or edited as text.
const MAX_FILE: usize = 16 << 20;

const GROUP: &str = "file_operations";

pub(super) fn tools() -> Vec<Tool> {
    let mut edit = writes(
        GROUP,
        "edit_file",
        "Replaces texts or lines of a file. All edits are found in the file as it is, and all are made or none. \
         Whitespace may differ, but a text that is there several times is refused with its places.",
        schema::<EditFile>(),
        Body::Edit(edit_file),
    );
    edit.aliases = &[("changes", "edits")];
    let mut read = looks(
        GROUP,
        "read_file",
        "The text of a file, by lines; long files come in pages (`next_start_line`).",
        schema::<ReadFile>(),
        Body::Look(read_file),
    );
    read.aliases = &[("offset", "start_line")];
    let mut moves = writes(
        GROUP,
        "move_file",
        "Moves or renames a file or a folder; refused where something is at the destination.",
        schema::<FromTo>(),
        Body::Edit(move_file),
    );
    moves.aliases = &[("from", "source"), ("to", "destination"), ("path", "source")];
    let mut copies = writes(
        GROUP,
        "copy_file",
        "Copies a file; refused where something is at the destination.",
        schema::<FromTo>(),
        Body::Edit(copy_file),
    );
    copies.aliases = moves.aliases;
    vec![
        read,
        writes(
            GROUP,
            "write_file",
            "Gives a file its whole content, new or not; folders on the way are made.",
            schema::<WriteFile>(),
            Body::Edit(write_file),
        ),
        edit,
        writes(GROUP, "delete_file", "Deletes a file.", schema::<OnePath>(), Body::Edit(delete_file)),
        moves,
        copies,
        looks(
            GROUP,
            "get_file_info",
            "What is known of a file: size, lines, language, whether it is text and may be changed.",
            schema::<OnePath>(),
            Body::Look(file_info),
        ),
    ]
}

/// Arguments of `read_file`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadFile {
    /// The file, such as `src/main.py`.
    path: String,
    /// The resource it is in, by name or id; needed only when the plan has several.
    #[serde(default)]
    resource: Option<String>,
    /// The first line, counted from 1.
    #[serde(default)]
    #[schemars(range(min = 1))]
    start_line: Option<u32>,
    /// The last line.
    #[serde(default)]
    end_line: Option<u32>,
    /// Lines of the page; 1000 at most.
    #[serde(default)]
    #[schemars(range(min = 1))]
    limit: Option<u32>,
}

/// Arguments of `write_file`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WriteFile {
    /// The file, such as `src/main.py`.
    path: String,
    /// Its whole text.
    content: String,
    /// The resource it is in, by name or id; needed only when the plan has several.
    #[serde(default)]
    resource: Option<String>,
    /// Also say what language servers find that they did not find before; yes unless given.
    #[serde(default, rename = "diagnostics")]
    _diagnostics: Option<bool>,
}

/// Arguments of `edit_file`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EditFile {
    /// The file, such as `src/main.py`.
    path: String,
    /// What is replaced, and by what.
    #[schemars(length(min = 1))]
    edits: Vec<Edit>,
    /// The resource it is in, by name or id; needed only when the plan has several.
    #[serde(default)]
    resource: Option<String>,
    /// Also say what language servers find that they did not find before; yes unless given.
    #[serde(default, rename = "diagnostics")]
    _diagnostics: Option<bool>,
}

/// Arguments of tools about one file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OnePath {
    /// The file, such as `src/main.py`.
    path: String,
    /// The resource it is in, by name or id; needed only when the plan has several.
    #[serde(default)]
    resource: Option<String>,
}

/// Arguments of tools from one file to another.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FromTo {
    /// The file, such as `src/main.py`.
    source: String,
    /// Where it goes.
    destination: String,
    /// The resource both are in, by name or id; needed only when the plan has several.
    #[serde(default)]
    resource: Option<String>,
}

/// The text of a file, or why it has none.
pub(super) fn text_of(sandbox: &OpenSandbox, path: &str) -> Result<String, String> {
    let bytes = sandbox.read(path).map_err(|error| error.message)?;
    if bytes.len() > MAX_FILE {
        return Err(format!("{path} is too large to be read as text ({} MB)", bytes.len() >> 20));
    }
    let size = bytes.len();
    String::from_utf8(bytes).map_err(|_| format!("{path} is no text (UTF-8), it has {size} bytes"))
}

fn read_file(args: &Value, scene: &Scene<'_>) -> Result<Value, String> {
    let args: ReadFile = read(args)?;
    let (sandbox, path) = place(scene, args.resource.as_deref(), &args.path)?;
    let text = text_of(sandbox, &path)?;
    let total = u32::try_from(text.split_inclusive('\n').count()).unwrap_or(u32::MAX);
    let start = args.start_line.unwrap_or(1).max(1);
    if start > total.max(1) {
        return Err(format!("{path} has {total} lines; there is no line {start}"));
    }
    let most = args.limit.unwrap_or(LINES).clamp(1, LINES);
    let end = args.end_line.unwrap_or(u32::MAX).min(start.saturating_add(most - 1)).min(total);
    let mut content = String::new();
    let mut last = start.saturating_sub(1);
    let mut cut = false;
    for line in
        text.split_inclusive('\n').skip(start as usize - 1).take((end + 1).saturating_sub(start) as usize)
    {
        if content.len() + line.len() > BYTES {
            if content.is_empty() {
                // One line longer than a page: its beginning is better than nothing.
                let mut at = BYTES.min(line.len());
                while !line.is_char_boundary(at) {
                    at -= 1;
                }
                content.push_str(&line[..at]);
                last += 1;
                cut = true;
            }
            break;
        }
        content.push_str(line);
        last += 1;
    }
    let mut answer = json!({
        "path": path, "content": content, "start_line": start, "end_line": last, "total_lines": total,
    });
    if cut {
        answer["note"] = format!("line {last} is longer than a page and was cut").into();
    }
    if last < total && args.end_line.is_none_or(|wanted| last < wanted) {
        answer["next_start_line"] = (last + 1).into();
    }
    Ok(answer)
}

fn write_file(args: &Value, scene: &Scene<'_>) -> Result<Edits, String> {
    let args: WriteFile = read(args)?;
    let (_, resource, path) = writable(scene, args.resource.as_deref(), &args.path)?;
    Ok((resource, vec![FileEdit::Write { path, content: Content::Text(args.content) }]))
}

fn edit_file(args: &Value, scene: &Scene<'_>) -> Result<Edits, String> {
    let args: EditFile = read(args)?;
    let (sandbox, resource, path) = writable(scene, args.resource.as_deref(), &args.path)?;
    let text = text_of(sandbox, &path)?;
    let edited = editing::apply(&text, &args.edits).map_err(|why| format!("{path}: {why}"))?;
    if edited == text {
        return Err(format!("{path}: the edits change nothing"));
    }
    Ok((resource, vec![FileEdit::Write { path, content: Content::Text(edited) }]))
}

fn delete_file(args: &Value, scene: &Scene<'_>) -> Result<Edits, String> {
    let args: OnePath = read(args)?;
    let (_, resource, path) = writable(scene, args.resource.as_deref(), &args.path)?;
    Ok((resource, vec![FileEdit::Delete { path }]))
}

fn move_file(args: &Value, scene: &Scene<'_>) -> Result<Edits, String> {
    let args: FromTo = read(args)?;
    let (sandbox, resource, source) = writable(scene, args.resource.as_deref(), &args.source)?;
    let (_, other, destination) = writable(scene, args.resource.as_deref(), &args.destination)?;
    if resource != other {
        return Err("source and destination are in different resources; copy the text instead".to_owned());
    }
    let inside = below(sandbox, &source)?;
    if inside.is_empty() {
        return Ok((resource, vec![FileEdit::Rename { path: source, to: destination }]));
    }
    let source = source.trim_end_matches('/');
    let renamed = inside.into_iter().map(|path| {
        let to = format!("{}{}", destination.trim_end_matches('/'), &path[source.len()..]);
        FileEdit::Rename { path, to }
    });
    Ok((resource, renamed.collect()))
}

/// The files below a folder; none where the path is no folder.
pub(super) fn below(sandbox: &OpenSandbox, folder: &str) -> Result<Vec<String>, String> {
    let Ok(path) = sandbox.worktree().readable_path(folder) else { return Ok(Vec::new()) };
    if !sandbox.root.join(&path).symlink_metadata().is_ok_and(|found| found.is_dir()) {
        return Ok(Vec::new());
    }
    let files = sandbox.worktree().list_files().map_err(|error| error.to_string())?;
    let folder = format!("{}/", folder.trim_start_matches("./").trim_end_matches('/'));
    Ok(files.into_iter().map(|file| file.path).filter(|file| file.starts_with(&folder)).collect())
}

fn copy_file(args: &Value, scene: &Scene<'_>) -> Result<Edits, String> {
    let args: FromTo = read(args)?;
    let (from, source) = place(scene, args.resource.as_deref(), &args.source)?;
    let (to, resource, destination) = writable(scene, args.resource.as_deref(), &args.destination)?;
    if to.read(&destination).is_ok() {
        return Err(format!("{destination} exists already"));
    }
    let bytes = from.read(&source).map_err(|error| error.message)?;
    Ok((resource, vec![FileEdit::Write { path: destination, content: Content::of(bytes) }]))
}

fn file_info(args: &Value, scene: &Scene<'_>) -> Result<Value, String> {
    let args: OnePath = read(args)?;
    let (sandbox, given) = place(scene, args.resource.as_deref(), &args.path)?;
    let worktree = sandbox.worktree();
    let path = worktree.readable_path(&given).map_err(|error| error.to_string())?;
    let found = sandbox.root.join(&path).symlink_metadata();
    let found = found.map_err(|_| format!("{given} does not exist"))?;
    let modified = found.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    let mut answer = json!({
        "path": path,
        "type": if found.is_dir() { "directory" } else if found.is_file() { "file" } else { "other" },
        "size": found.len(),
        "modified": modified.map(|at| at.as_secs()),
    });
    if found.is_file() {
        let bytes = sandbox.read(&path).map_err(|error| error.message)?;
        let text = std::str::from_utf8(&bytes).ok();
        answer["text"] = text.is_some().into();
        answer["lines"] = text.map(|text| text.split_inclusive('\n').count()).into();
        answer["line_endings"] = text.map(|text| if text.contains("\r\n") { "crlf" } else { "lf" }).into();
        answer["language"] = agents_grammars::detect(std::path::Path::new(&path), &bytes)
            .map(|language| language.as_str())
            .into();
        answer["writable"] = (!sandbox.read_only && worktree.resolve(&path).is_ok()).into();
    }
    Ok(answer)
}
