//! `git_operations`: what git knows of a sandbox, read-only and without running anything a repository names.

use agents_domain::changes::ChangeKind;
use agents_sandbox::history::{blame, log};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::args::{Page, place, read, sandbox, schema};
use super::{Body, Scene, Tool, looks};

/// Bytes of a difference that are shown on a page.
const DIFF: usize = 48_000;
/// Lines of one page of `git_blame`.
const LINES: (usize, usize) = (200, 1000);
/// Commits that are shown at most.
const COMMITS: u32 = 200;
/// Characters of a commit's message that are shown.
const MESSAGE: usize = 2000;

const GROUP: &str = "git_operations";

pub(super) fn tools() -> Vec<Tool> {
    vec![
        looks(
            GROUP,
            "git_status",
            "Which files the plan has changed so far, and what it began from.",
            schema::<OfResource>(),
            Body::Look(git_status),
        ),
        looks(
            GROUP,
            "git_diff",
            "What the plan has changed so far, as a patch; of one file with `path`.",
            schema::<GitDiff>(),
            Body::Look(git_diff),
        ),
        looks(
            GROUP,
            "git_log",
            "The latest commits, of one file with `path`.",
            schema::<GitLog>(),
            Body::Look(git_log),
        ),
        looks(
            GROUP,
            "git_blame",
            "Which commit made each line of a file what it is.",
            schema::<GitBlame>(),
            Body::Look(git_blame),
        ),
    ]
}

/// Arguments of `git_status`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OfResource {
    /// The resource, by name or id; needed only when the plan has several.
    #[serde(default)]
    resource: Option<String>,
}

/// Arguments of `git_diff`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GitDiff {
    /// Only this file, or what is below this folder.
    #[serde(default)]
    path: Option<String>,
    /// The resource, by name or id; needed only when the plan has several.
    #[serde(default)]
    resource: Option<String>,
    /// Bytes to leave out at the beginning: the `next_offset` of the page before.
    #[serde(default)]
    offset: usize,
}

/// Arguments of `git_log`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GitLog {
    /// How many commits; 200 at most.
    #[serde(default = "ten")]
    #[schemars(range(min = 1))]
    count: u32,
    /// Commits to leave out at the beginning.
    #[serde(default)]
    offset: u32,
    /// Only commits that changed this file.
    #[serde(default)]
    path: Option<String>,
    /// The resource, by name or id; needed only when the plan has several.
    #[serde(default)]
    resource: Option<String>,
}

/// Arguments of `git_blame`.
#[derive(Deserialize, JsonSchema)]
struct GitBlame {
    /// The file.
    path: String,
    /// The first line, counted from 1.
    #[serde(default)]
    start_line: Option<u32>,
    /// The last line.
    #[serde(default)]
    end_line: Option<u32>,
    /// The resource, by name or id; needed only when the plan has several.
    #[serde(default)]
    resource: Option<String>,
    #[serde(flatten)]
    page: Page,
}

fn ten() -> u32 {
    10
}

fn told<T>(result: agents_sandbox::Result<T>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}

fn git_status(args: &Value, scene: &Scene<'_>) -> Result<Value, String> {
    let args: OfResource = read(args)?;
    let sandbox = sandbox(scene, args.resource.as_deref())?;
    let worktree = sandbox.worktree();
    let head = told(worktree.head())?;
    let changed = told(agents_sandbox::changed_paths(worktree.repository(), worktree.base(), &head))?;
    let by = |kind: ChangeKind| -> Vec<Value> {
        let of = changed.iter().filter(|change| change.kind == kind);
        of.map(|change| match &change.old_path {
            Some(old) => json!({ "path": change.path, "from": old }),
            None => change.path.clone().into(),
        })
        .collect()
    };
    let checkout = told(worktree.repository().head())?;
    Ok(json!({
        "branch": checkout.branch, "base": worktree.base(), "clean": changed.is_empty(),
        "added": by(ChangeKind::Added), "modified": by(ChangeKind::Modified), "deleted": by(ChangeKind::Deleted),
        "renamed": by(ChangeKind::Renamed),
    }))
}

fn git_diff(args: &Value, scene: &Scene<'_>) -> Result<Value, String> {
    let args: GitDiff = read(args)?;
    let (sandbox, path) = match &args.path {
        Some(path) => {
            let (sandbox, path) = place(scene, args.resource.as_deref(), path)?;
            (sandbox, Some(path.trim_start_matches("./").trim_end_matches('/').to_owned()))
        }
        None => (sandbox(scene, args.resource.as_deref())?, None),
    };
    let worktree = sandbox.worktree();
    let files = told(agents_sandbox::diff(worktree.repository(), worktree.base(), &told(worktree.head())?))?;
    let within = |file: &str| match path.as_deref() {
        None | Some("" | ".") => true,
        Some(path) => file.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
    };
    let files =
        files.iter().filter(|file| within(&file.path) || file.old_path.as_deref().is_some_and(within));
    let (mut patch, mut insertions, mut deletions, mut count) = (String::new(), 0, 0, 0);
    for file in files {
        patch.push_str(&file.patch);
        insertions += file.insertions;
        deletions += file.deletions;
        count += 1;
    }
    let start = (args.offset.min(patch.len())..=patch.len()).find(|at| patch.is_char_boundary(*at));
    let start = start.unwrap_or(patch.len());
    let end =
        (start..=start.saturating_add(DIFF).min(patch.len())).rev().find(|at| patch.is_char_boundary(*at));
    let end = end.unwrap_or(patch.len());
    let mut answer = json!({
        "patch": patch[start..end], "files": count, "insertions": insertions, "deletions": deletions,
    });
    if end < patch.len() {
        answer["next_offset"] = end.into();
    }
    Ok(answer)
}

fn git_log(args: &Value, scene: &Scene<'_>) -> Result<Value, String> {
    let args: GitLog = read(args)?;
    let (sandbox, path) = match &args.path {
        Some(path) => {
            let (sandbox, path) = place(scene, args.resource.as_deref(), path)?;
            (sandbox, Some(told(sandbox.worktree().readable_path(&path))?))
        }
        None => (sandbox(scene, args.resource.as_deref())?, None),
    };
    let repository = sandbox.worktree().repository();
    // What people committed; the plan's own checkpoints and its snapshot are no part of their history.
    let head = told(repository.head())?.commit;
    let path = path.as_deref().filter(|path| !path.is_empty());
    let mut commits = told(log(repository, &head, args.offset, args.count.clamp(1, COMMITS), path))?;
    for commit in &mut commits {
        if let Some((at, _)) = commit.body.char_indices().nth(MESSAGE) {
            commit.body.truncate(at);
        }
    }
    Ok(json!({ "commits": commits }))
}

fn git_blame(args: &Value, scene: &Scene<'_>) -> Result<Value, String> {
    let args: GitBlame = read(args)?;
    let (sandbox, path) = place(scene, args.resource.as_deref(), &args.path)?;
    let worktree = sandbox.worktree();
    let path = told(worktree.readable_path(&path))?;
    let lines = match (args.start_line, args.end_line) {
        (None, None) => None,
        (first, last) => Some((first.unwrap_or(1), last.unwrap_or(u32::MAX))),
    };
    let blamed = told(blame(worktree.repository(), &told(worktree.head())?, &path, lines))?;
    let blamed: Vec<Value> = blamed.into_iter().map(|line| json!(line)).collect();
    Ok(args.page.cut(&blamed, LINES.0, LINES.1))
}
