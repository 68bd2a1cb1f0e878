//! `search_operations`: finding files by their path and by what is in them.

use regex::RegexBuilder;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::args::{Page, read, sandbox, schema};
use super::directories::{Glob, everything};
use super::{Body, Scene, Tool, looks};

/// Results of one page, unless asked otherwise and at most.
const MATCHES: (usize, usize) = (100, 1000);
/// Matches that are counted at all.
const MOST: usize = 20_000;
/// The largest file that is searched.
const MAX_FILE: u64 = 4 << 20;
/// Characters of a line that are shown.
const LINE: usize = 300;

pub(super) const GROUP: &str = "search_operations";

pub(super) fn tools() -> Vec<Tool> {
    let mut search = looks(
        GROUP,
        "search_files",
        "Files whose path matches a pattern, or with `content_pattern` the lines in them that match a regular expression.",
        schema::<SearchFiles>(),
        Body::Look(search_files),
    );
    search.aliases = &[("content", "content_pattern"), ("regex", "content_pattern"), ("glob", "pattern")];
    vec![search]
}

/// Arguments of `search_files`.
#[derive(Deserialize, JsonSchema)]
struct SearchFiles {
    /// Which files, such as `src/**/*.py`; one without `/` is about names in any folder.
    #[serde(default = "everything")]
    pattern: String,
    /// A regular expression; without it the files themselves are listed.
    #[serde(default)]
    content_pattern: Option<String>,
    /// Upper and lower case are the same.
    #[serde(default)]
    ignore_case: bool,
    /// Lines to show before and after each match, 10 at most.
    #[serde(default)]
    #[schemars(range(max = 10))]
    context: usize,
    /// The resource, by name or id; needed only when the plan has several.
    #[serde(default)]
    resource: Option<String>,
    #[serde(flatten)]
    page: Page,
}

fn search_files(args: &Value, scene: &Scene<'_>) -> Result<Value, String> {
    let args: SearchFiles = read(args)?;
    let sandbox = sandbox(scene, args.resource.as_deref())?;
    let glob = Glob::new(&args.pattern)?;
    let files = sandbox.worktree().list_files().map_err(|error| error.to_string())?;
    let files = files.into_iter().filter(|file| !file.link && glob.is_match(&file.path));
    let Some(pattern) = &args.content_pattern else {
        let files: Vec<Value> = files.map(|file| json!({ "path": file.path, "size": file.size })).collect();
        return Ok(args.page.cut(&files, MATCHES.0, MATCHES.1));
    };
    let regex = RegexBuilder::new(pattern).case_insensitive(args.ignore_case).build().map_err(|error| {
        let text = error.to_string();
        let why = text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        format!("`{pattern}` is not a regular expression: {why}")
    })?;
    let (mut found, mut left_out, mut searched) = (Vec::new(), 0_usize, 0_usize);
    for file in files {
        if file.size > MAX_FILE {
            left_out += 1;
            continue;
        }
        let Ok(bytes) = sandbox.read(&file.path) else { continue };
        let Ok(text) = String::from_utf8(bytes) else { continue };
        searched += 1;
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| regex.is_match(line)) {
            if found.len() >= MOST {
                break;
            }
            let mut one = json!({ "path": file.path, "line": at + 1, "text": cut(line) });
            if args.context > 0 {
                let context = args.context.min(10);
                let around = |range: std::ops::Range<usize>| -> Vec<String> {
                    lines[range].iter().map(|line| cut(line)).collect()
                };
                one["before"] = around(at.saturating_sub(context)..at).into();
                one["after"] = around(at + 1..(at + 1 + context).min(lines.len())).into();
            }
            found.push(one);
        }
    }
    let mut page = args.page.cut(&found, MATCHES.0, MATCHES.1);
    page["files_searched"] = searched.into();
    if left_out > 0 {
        page["note"] = format!("{left_out} files larger than {} MB were not searched", MAX_FILE >> 20).into();
    } else if found.len() >= MOST {
        page["note"] = format!("there are more than {MOST} matches; only these were counted").into();
    }
    Ok(page)
}

/// A line as it is shown.
pub(super) fn cut(line: &str) -> String {
    match line.char_indices().nth(LINE) {
        Some((at, _)) => format!("{}\u{2026}", &line[..at]),
        None => line.to_owned(),
    }
}
