//! The files of a resource, as its directory holds them now.

use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use agents_domain::resource::{Resource, resource_type};
use agents_domain::{Error, ErrorKind, Result, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::system::machine::bytes as bytes_for_people;
use crate::{Engine, Operation};

/// Files and directories that are listed; a tree with more says so.
const MOST_ENTRIES: usize = 10_000;

/// Bytes of a file that are shown.
const MOST_BYTES: u64 = 1024 * 1024;

/// Looks at the files of a resource.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Inspect {
    /// Its name, its id, or the beginning of its id.
    pub resource: String,
    /// A file in it, by its path from the resource's directory; all files unless given.
    #[serde(default)]
    pub file: Option<String>,
}

/// Its tree of files, or one file.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct InspectOutput {
    pub resource: String,
    /// `tree` or `file`.
    pub mode: String,
    pub root: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<Vec<FileNode>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<FileSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<ShownFile>,
}

/// A file or directory. The names of directories end in `/`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct FileNode {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children: Option<Vec<FileNode>>,
}

/// What is in the tree.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct FileSummary {
    pub directories: usize,
    pub files: usize,
    pub total_size: String,
    pub total_size_bytes: u64,
    /// There is more than is listed.
    pub truncated: bool,
}

/// A file.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ShownFile {
    pub path: String,
    pub size: String,
    pub size_bytes: u64,
    pub language: Option<String>,
    pub last_modified: Option<String>,
    pub lines_shown: usize,
    pub total_lines: usize,
    pub content: String,
}

impl Operation for Inspect {
    const METHOD: &'static str = "registry/resource/inspect";
    const SUMMARY: &'static str = "Show the files of a resource";
    type Output = InspectOutput;

    fn run(self, engine: &Engine) -> Result<InspectOutput> {
        let resource = engine.resource(&self.resource)?;
        let root = root(&resource)?;
        let mut output = InspectOutput {
            resource: crate::sandboxes::display_name(&resource),
            mode: if self.file.is_some() { "file" } else { "tree" }.to_owned(),
            root: root.display().to_string(),
            tree: None,
            summary: None,
            file: None,
        };
        match self.file {
            Some(file) => output.file = Some(show(&root, &file)?),
            None => {
                let (tree, summary) = tree(&root);
                output.tree = Some(tree);
                output.summary = Some(summary);
            }
        }
        Ok(output)
    }
}

/// The directory of a resource that has files of its own.
fn root(resource: &Resource) -> Result<PathBuf> {
    let name = crate::sandboxes::display_name(resource);
    let has_files = resource_type(&resource.resource_type).is_some_and(|kind| kind.writable);
    let path = resource.properties.get("path").and_then(|path| path.as_str());
    let Some(path) = path.filter(|_| has_files) else {
        let message = format!("{name} is a {}: it has no files to look at", resource.resource_type);
        return Err(Error::invalid_state(message).suggest(format!("agents resource show {name}")));
    };
    let wrong = |e: io::Error| Error::new(ErrorKind::Io, format!("{path} of {name} cannot be read: {e}"));
    fs::canonicalize(path).map_err(wrong)
}

/// Files and directories that git does not ignore, each directory's entries by name.
fn tree(root: &Path) -> (Vec<FileNode>, FileSummary) {
    let mut summary = FileSummary::default();
    let mut top: Vec<FileNode> = Vec::new();
    let walk = ignore::WalkBuilder::new(root)
        .hidden(false)
        .require_git(false)
        .follow_links(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .sort_by_file_name(|a, b| a.cmp(b))
        .build();
    for entry in walk.filter_map(std::result::Result::ok).filter(|entry| entry.depth() > 0) {
        if summary.files + summary.directories == MOST_ENTRIES {
            summary.truncated = true;
            break;
        }
        let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
        let name = entry.file_name().to_string_lossy();
        let node = match is_dir {
            true => {
                summary.directories += 1;
                FileNode {
                    name: format!("{name}/"),
                    kind: "directory".to_owned(),
                    children: Some(Vec::new()),
                }
            }
            false => {
                summary.files += 1;
                summary.total_size_bytes += entry.metadata().map(|of| of.len()).unwrap_or_default();
                FileNode { name: name.into_owned(), kind: "file".to_owned(), children: None }
            }
        };
        level(&mut top, entry.depth()).push(node);
    }
    summary.total_size = bytes_for_people(summary.total_size_bytes);
    (top, summary)
}

/// The list at this depth. A walk goes into a directory right after it has named it, so the way down is the last entry of
/// each list.
fn level(entries: &mut Vec<FileNode>, depth: usize) -> &mut Vec<FileNode> {
    let Some(last) = entries.len().checked_sub(1) else { return entries };
    if depth <= 1 || entries[last].children.is_none() {
        return entries;
    }
    level(entries[last].children.get_or_insert_default(), depth - 1)
}

/// A file below the root. Neither `..` nor a link leads out of it.
fn show(root: &Path, file: &str) -> Result<ShownFile> {
    let wanted = Path::new(file);
    let inside = wanted.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if file.is_empty() || !inside {
        return Err(Error::validation(format!("`{file}` is no path inside the resource")));
    }
    let wrong = |e: io::Error| {
        let kind = if e.kind() == io::ErrorKind::NotFound { ErrorKind::NotFound } else { ErrorKind::Io };
        Error::new(kind, format!("{file} cannot be read: {e}"))
    };
    let path = fs::canonicalize(root.join(wanted)).map_err(wrong)?;
    if !path.starts_with(root) {
        return Err(Error::validation(format!("{file} is a link that leads out of the resource")));
    }
    let metadata = fs::metadata(&path).map_err(wrong)?;
    if !metadata.is_file() {
        return Err(Error::validation(format!("{file} is no file")));
    }
    let mut bytes = Vec::new();
    fs::File::open(&path).and_then(|open| open.take(MOST_BYTES).read_to_end(&mut bytes)).map_err(wrong)?;
    // What was cut in the middle of a character, or is no text at all, is shown as well as it can be.
    let content = String::from_utf8_lossy(&bytes).into_owned();
    if bytes.contains(&0) {
        return Err(Error::validation(format!("{file} is no text")));
    }
    let lines = content.lines().count();
    let whole = bytes.len() as u64 == metadata.len();
    let total_lines = if whole { lines } else { count_lines(&path).map_err(wrong)? };
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    Ok(ShownFile {
        path: file.to_owned(),
        size: bytes_for_people(metadata.len()),
        size_bytes: metadata.len(),
        language: agents_grammars::detect(wanted, &bytes).map(|id| id.to_string()),
        last_modified: modified
            .and_then(|since| i64::try_from(since.as_micros()).ok())
            .map(|micros| Timestamp::from_micros(micros).seconds_rfc3339()),
        lines_shown: lines,
        total_lines,
        content,
    })
}

/// Lines of a file of any size.
fn count_lines(path: &Path) -> io::Result<usize> {
    let mut file = fs::File::open(path)?;
    let mut buffer = [0; 64 * 1024];
    let (mut lines, mut last) = (0, b'\n');
    loop {
        let read = file.read(&mut buffer)?;
        let Some(end) = buffer[..read].last() else { break };
        last = *end;
        lines += buffer[..read].iter().filter(|byte| **byte == b'\n').count();
    }
    Ok(lines + usize::from(last != b'\n'))
}
