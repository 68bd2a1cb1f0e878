//! `directory_operations`: what is in the folders of a sandbox, and making and removing them.

use agents_domain::text::FileEdit;
use agents_sandbox::{DirectoryEntry, EntryKind};
use globset::{GlobBuilder, GlobMatcher};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::args::{Page, place, read, sandbox, schema, writable};
use super::files::below;
use super::{Acted, Body, Edits, Scene, Tool, looks, writes};

/// Entries of one page, unless asked otherwise and at most.
const ENTRIES: (usize, usize) = (500, 5000);

const GROUP: &str = "directory_operations";

pub(super) fn tools() -> Vec<Tool> {
    let create = writes(
        GROUP,
        "create_directory",
        "Makes a folder and those above it. Git keeps no empty folders: without a file in it, it is no part of the change.",
        schema::<Folder>(),
        Body::Act(create_directory),
    );
    vec![
        create,
        looks(
            GROUP,
            "list_directory",
            "What is in a folder: names, folders with `/` at the end.",
            schema::<ListDirectory>(),
            Body::Look(list_directory),
        ),
        writes(
            GROUP,
            "delete_directory",
            "Deletes a folder; one with files in it only with `recursive`. Files that git ignores stay.",
            schema::<DeleteDirectory>(),
            Body::Edit(delete_directory),
        ),
        looks(
            GROUP,
            "list_files",
            "All files, of all folders, whose path matches a pattern; those that git ignores are left out.",
            schema::<ListFiles>(),
            Body::Look(list_files),
        ),
    ]
}

/// Arguments of `create_directory`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Folder {
    /// The folder, such as `src/api`.
    path: String,
    /// The resource it is in, by name or id; needed only when the plan has several.
    #[serde(default)]
    resource: Option<String>,
}

/// Arguments of `list_directory`.
#[derive(Deserialize, JsonSchema)]
struct ListDirectory {
    /// The folder, such as `src/api`; the top one unless given.
    #[serde(default = "top")]
    path: String,
    /// Which names are shown, such as `*.py`.
    #[serde(default = "everything")]
    pattern: String,
    /// The resource it is in, by name or id; needed only when the plan has several.
    #[serde(default)]
    resource: Option<String>,
    #[serde(flatten)]
    page: Page,
}

/// Arguments of `delete_directory`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeleteDirectory {
    /// The folder.
    path: String,
    /// Delete what is in it, too.
    #[serde(default)]
    recursive: bool,
    /// The resource it is in, by name or id; needed only when the plan has several.
    #[serde(default)]
    resource: Option<String>,
}

/// Arguments of `list_files`.
#[derive(Deserialize, JsonSchema)]
struct ListFiles {
    /// Which paths, such as `src/**/*.py`; one without `/` is about names in any folder.
    #[serde(default = "everything")]
    pattern: String,
    /// Only below this folder.
    #[serde(default)]
    path: Option<String>,
    /// The resource, by name or id; needed only when the plan has several.
    #[serde(default)]
    resource: Option<String>,
    #[serde(flatten)]
    page: Page,
}

fn top() -> String {
    ".".to_owned()
}

pub(super) fn everything() -> String {
    "*".to_owned()
}

/// What a pattern of paths matches; one without `/` is about the last part of a path.
pub(super) struct Glob {
    matcher: GlobMatcher,
    of_names: bool,
}

impl Glob {
    pub(super) fn new(pattern: &str) -> Result<Self, String> {
        let clean = pattern.trim_start_matches("./").trim_start_matches('/');
        let glob = GlobBuilder::new(clean).literal_separator(true).build();
        let glob = glob.map_err(|error| format!("`{pattern}` is no pattern of paths: {error}"))?;
        Ok(Self { matcher: glob.compile_matcher(), of_names: !clean.contains('/') })
    }

    pub(super) fn is_match(&self, path: &str) -> bool {
        match self.of_names {
            true => self.matcher.is_match(path.rsplit('/').next().unwrap_or(path)),
            false => self.matcher.is_match(path),
        }
    }
}

fn list_directory(args: &Value, scene: &Scene<'_>) -> Result<Value, String> {
    let args: ListDirectory = read(args)?;
    let (sandbox, path) = place(scene, args.resource.as_deref(), &args.path)?;
    let glob = Glob::new(&args.pattern)?;
    let entries = sandbox.worktree().list_directory(&path).map_err(|error| error.to_string())?;
    let shown = |entry: DirectoryEntry| match entry.kind {
        EntryKind::Directory => format!("{}/", entry.name),
        EntryKind::Link => format!("{}@", entry.name),
        _ => entry.name,
    };
    let entries: Vec<Value> = entries
        .into_iter()
        .filter(|entry| glob.is_match(&entry.name))
        .map(|entry| shown(entry).into())
        .collect();
    Ok(args.page.cut(&entries, ENTRIES.0, ENTRIES.1))
}

fn list_files(args: &Value, scene: &Scene<'_>) -> Result<Value, String> {
    let args: ListFiles = read(args)?;
    let sandbox = sandbox(scene, args.resource.as_deref())?;
    let glob = Glob::new(&args.pattern)?;
    let folder = args.path.as_deref().map(|path| path.trim_start_matches("./").trim_matches('/'));
    let within = |path: &str| match folder {
        None | Some("" | ".") => true,
        Some(folder) => path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')),
    };
    let files = sandbox.worktree().list_files().map_err(|error| error.to_string())?;
    let files = files.into_iter().filter(|file| within(&file.path) && glob.is_match(&file.path));
    let files: Vec<Value> = files.map(|file| json!({ "path": file.path, "size": file.size })).collect();
    Ok(args.page.cut(&files, ENTRIES.0, ENTRIES.1))
}

fn create_directory(args: &Value, scene: &Scene<'_>) -> Result<Acted, String> {
    let args: Folder = read(args)?;
    let (sandbox, resource, path) = writable(scene, args.resource.as_deref(), &args.path)?;
    sandbox.worktree().create_dir_all(&path).map_err(|error| error.to_string())?;
    Ok((resource, json!({ "created": path })))
}

fn delete_directory(args: &Value, scene: &Scene<'_>) -> Result<Edits, String> {
    let args: DeleteDirectory = read(args)?;
    let (sandbox, resource, path) = writable(scene, args.resource.as_deref(), &args.path)?;
    let worktree = sandbox.worktree();
    let inside = below(sandbox, &path)?;
    if inside.is_empty() {
        worktree.remove_empty_directory(&path).map_err(|error| error.to_string())?;
    } else if !args.recursive {
        return Err(format!("{path} has {} files in it; say `recursive` to delete them, too", inside.len()));
    }
    Ok((resource, inside.into_iter().map(|path| FileEdit::Delete { path }).collect()))
}
