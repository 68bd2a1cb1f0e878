//! What is known of a commit of ours, in git notes: written at apply, and read in any clone.
//!
//! Notes are under [`NOTES_REF`]; a clone that fetches them keeps a remote's under `refs/notes/<remote>/cleveragents`.
//! Both are read. A commit that was rebased, amended or picked is found again by its trailers.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use crate::error::{Result, SandboxError};
use crate::git::{CommitId, ObjectId, nul_fields, os_path, parse_id};
use crate::repository::Repository;

/// Where notes are written.
pub const NOTES_REF: &str = "refs/notes/cleveragents";

/// The trailer that names the plan behind a commit.
pub const PLAN_TRAILER: &str = "CleverAgents-Plan";

/// The trailer of each decision behind a commit: its id and what was chosen.
pub const DECISION_TRAILER: &str = "CleverAgents-Decision";

/// The most notes that are looked through for a commit that has none of its own.
const SEARCHED: usize = 5000;

/// The largest note that is read, in bytes.
const LARGEST: u64 = 8 << 20;

/// A line of a file and the commit that last changed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineOrigin {
    /// `None` for a line that is not committed.
    pub commit: Option<CommitId>,
    /// The file's name in that commit.
    pub path: String,
    /// The line in that commit, 0-based.
    pub line: u32,
}

/// What a commit says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trailers {
    /// The plan.
    pub plan: Option<String>,
    /// Each decision's id and what was chosen.
    pub decisions: Vec<(String, String)>,
}

impl Repository {
    /// Gives a commit its note, in place of one it may have. Notes that were fetched from a remote are brought in first.
    pub(crate) fn add_note(&self, commit: &CommitId, text: &str) -> Result<()> {
        let notes = |args: &[&str]| {
            let ours = format!("--ref={NOTES_REF}");
            let args: Vec<&str> = ["notes", ours.as_str()].into_iter().chain(args.iter().copied()).collect();
            self.git.call(args).by_user(self.settings.identity)
        };
        for fetched in self.note_refs()?.iter().filter(|name| *name != NOTES_REF) {
            if let Err(error) = notes(&["merge", "-q", "-s", "ours", fetched]).run() {
                tracing::warn!(%error, "fetched notes were not brought in");
            }
        }
        notes(&["add", "-f", "-F", "-", commit.as_str()]).stdin(text).run().map(drop)
    }

    /// Takes the note of a commit away; one that is not there is no error.
    pub(crate) fn remove_note(&self, commit: &CommitId) -> Result<()> {
        let ours = format!("--ref={NOTES_REF}");
        let args = ["notes", ours.as_str(), "remove", "--ignore-missing", commit.as_str()];
        self.git.call(args).by_user(self.settings.identity).run().map(drop)
    }

    /// Every reference that holds notes of ours, our own first.
    fn note_refs(&self) -> Result<Vec<String>> {
        let listed = self.git.line(["for-each-ref", "--format=%(refname)", "refs/notes"])?;
        let own = listed.lines().filter(|name| *name == NOTES_REF);
        let fetched = listed.lines().filter(|name| *name != NOTES_REF && name.ends_with("/cleveragents"));
        Ok(own.chain(fetched).map(str::to_owned).collect())
    }

    /// What every reference that holds notes of ours points at, in one text: it differs when a note does.
    pub fn note_tips(&self) -> Result<String> {
        let listed = self.git.line(["for-each-ref", "--format=%(objectname) %(refname)", "refs/notes"])?;
        let ours = listed.lines().filter(|line| line.ends_with("/cleveragents"));
        Ok(ours.collect::<Vec<_>>().join("\n"))
    }

    /// Which note each commit has: its blob.
    fn note_blobs(&self) -> Result<Vec<(CommitId, ObjectId)>> {
        let mut found = Vec::new();
        for name in self.note_refs()? {
            let listed = self.git.line(["notes", &format!("--ref={name}"), "list"])?;
            for line in listed.lines() {
                let Some((blob, commit)) = line.split_once(' ') else { continue };
                found.push((parse_id("git notes list", commit)?, parse_id("git notes list", blob)?));
            }
        }
        Ok(found)
    }

    fn note_texts(&self, blobs: &[ObjectId]) -> Result<Vec<Vec<u8>>> {
        let stdin: String = blobs.iter().map(|id| format!("{id}\n")).collect();
        let sizes = self.git.call(["cat-file", "--batch-check=%(objectsize)"]).stdin(stdin).line()?;
        let fits: Vec<(&ObjectId, &str)> = blobs
            .iter()
            .zip(sizes.lines())
            .filter(|(_, size)| size.parse::<u64>().is_ok_and(|size| size <= LARGEST))
            .map(|(id, _)| (id, "note"))
            .collect();
        self.blobs(false, &fits)
    }

    /// The notes of these commits, as they were written.
    pub fn notes(&self, commits: &HashSet<CommitId>) -> Result<HashMap<CommitId, Vec<u8>>> {
        let mut wanted: BTreeMap<CommitId, ObjectId> = BTreeMap::new();
        for (commit, blob) in self.note_blobs()? {
            if commits.contains(&commit) {
                wanted.entry(commit).or_insert(blob);
            }
        }
        let blobs: Vec<ObjectId> = wanted.values().cloned().collect();
        Ok(wanted.into_keys().zip(self.note_texts(&blobs)?).collect())
    }

    /// Every note there is, with the commit it was written for, newest last as git lists them; at most 5000.
    pub fn all_notes(&self) -> Result<Vec<(CommitId, Vec<u8>)>> {
        let mut seen = HashSet::new();
        let mut all = self.note_blobs()?;
        all.retain(|(commit, _)| seen.insert(commit.clone()));
        all.truncate(SEARCHED);
        let blobs: Vec<ObjectId> = all.iter().map(|(_, blob)| blob.clone()).collect();
        Ok(all.into_iter().map(|(commit, _)| commit).zip(self.note_texts(&blobs)?).collect())
    }

    /// Which commit each line of a text in the place of a file comes from. Renames of the file are followed.
    pub fn line_origins(&self, path: &str, text: &str) -> Result<Vec<LineOrigin>> {
        // Neither commits that the configuration wants overlooked nor conversions by programs.
        let args =
            ["blame", "--porcelain", "--ignore-revs-file=", "--no-textconv", "--contents", "-", "--", path];
        // `git blame` reads no literal path specs, but this is a path already.
        let output = self.git.call(args).stdin(text).accept(&[0, 128]).checked()?;
        if output.code != 0 {
            // A file git does not know has no line that is committed.
            return Ok(Vec::new());
        }
        parse_blame(&output.stdout)
    }

    /// What commits say of themselves.
    pub fn trailers(&self, commits: &HashSet<CommitId>) -> Result<HashMap<CommitId, Trailers>> {
        if commits.is_empty() {
            return Ok(HashMap::new());
        }
        let format = format!(
            "--format=%H%x1f%(trailers:key={PLAN_TRAILER},valueonly,unfold)%x1f%(trailers:key={DECISION_TRAILER},valueonly,unfold)%x00"
        );
        let stdin: String = commits.iter().map(|id| format!("{id}\n")).collect();
        let output = self
            .git
            .call(["log", "--no-walk=unsorted", "--no-color", "--no-show-signature", "--no-notes", "--stdin"])
            .arg(format)
            .stdin(stdin)
            .run()?;
        let text = String::from_utf8_lossy(&output);
        let mut found = HashMap::new();
        for record in text.split('\0') {
            let mut parts = record.trim_start_matches('\n').splitn(3, '\x1f');
            let Some(Ok(commit)) = parts.next().map(str::parse::<CommitId>) else { continue };
            let mut lines =
                || parts.next().unwrap_or_default().lines().map(str::trim).filter(|l| !l.is_empty());
            let plan = lines().next().map(str::to_owned);
            let decisions = lines()
                .map(|line| line.split_once(' ').unwrap_or((line, "")))
                .map(|(id, chosen)| (id.to_owned(), chosen.to_owned()))
                .collect();
            found.insert(commit, Trailers { plan, decisions });
        }
        Ok(found)
    }

    /// The first parent of a commit; `None` for one without.
    pub fn parent(&self, commit: &CommitId) -> Result<Option<CommitId>> {
        let name = format!("{commit}^");
        let output = self.git.call(["rev-parse", "--verify", "-q", name.as_str()]).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().parse().ok())
    }

    /// The name of a file's content in a commit.
    pub fn blob_at(&self, commit: &CommitId, path: &str) -> Result<Option<ObjectId>> {
        let entries = self.tree_entries(commit.as_str(), &[path])?;
        Ok(entries.into_iter().find(|entry| entry.path == path).map(|entry| entry.id))
    }

    /// The text of a blob as it is stored; `None` when it is not here or not text.
    pub fn blob_text(&self, blob: &ObjectId) -> Option<String> {
        let bytes = self.blobs(false, &[(blob, "blob")]).ok()?.pop()?;
        String::from_utf8(bytes).ok()
    }

    /// Lets a clone fetch and push notes, and keep them through rebases and amended commits. Returns the settings that
    /// were added, as `key=value`; none when everything was set already. Only the repository's own configuration is
    /// written.
    pub fn share_notes(&self, remote: Option<&str>) -> Result<Vec<String>> {
        let tracking = |remote: &str| format!("refs/notes/{remote}/cleveragents");
        let mut wanted = vec![("notes.rewriteRef".to_owned(), NOTES_REF.to_owned())];
        if let Some(remote) = remote {
            // With a `*` a side that has no notes yet is no error.
            let fetched = tracking(remote);
            wanted.push(("notes.rewriteRef".to_owned(), fetched.clone()));
            wanted.push((format!("remote.{remote}.fetch"), format!("+{NOTES_REF}*:{fetched}*")));
            // Without it, naming the notes would be all that a plain `git push` pushes.
            if self.configured(&format!("remote.{remote}.push"))?.is_empty() {
                wanted.push((format!("remote.{remote}.push"), "HEAD".to_owned()));
            }
            wanted.push((format!("remote.{remote}.push"), format!("{NOTES_REF}*:{NOTES_REF}*")));
        }
        let mut added = Vec::new();
        for (key, value) in wanted {
            if !self.configured(&key)?.contains(&value) {
                self.git.run(["config", "--local", "--add", key.as_str(), value.as_str()])?;
                added.push(format!("{key}={value}"));
            }
        }
        Ok(added)
    }

    fn configured(&self, key: &str) -> Result<Vec<String>> {
        let output =
            self.git.call(["config", "--local", "-z", "--get-all", key]).accept(&[0, 1]).checked()?;
        Ok(nul_fields(&output.stdout).map(|value| String::from_utf8_lossy(value).into_owned()).collect())
    }

    /// The names of the remotes, `origin` first.
    pub fn remotes(&self) -> Result<Vec<String>> {
        let listed = self.git.line(["remote"])?;
        let mut remotes: Vec<String> = listed.lines().map(str::to_owned).collect();
        remotes.sort_by_key(|name| name != "origin");
        Ok(remotes)
    }

    /// Opens the checkout around a file, whether it is known or not, with the file's path in it.
    pub fn around(path: &Path) -> Result<(Self, String)> {
        let real = path.canonicalize().map_err(SandboxError::io("open", path))?;
        let repository = Self::around_dir(real.parent().unwrap_or(&real))?;
        let inside = real.strip_prefix(repository.path()).unwrap_or(&real);
        let inside = inside.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/");
        Ok((repository, inside))
    }
}

impl Repository {
    /// Opens the checkout that a directory is in.
    pub fn around_dir(dir: &Path) -> Result<Self> {
        match Self::open(dir) {
            Err(SandboxError::NotTopLevel { top, .. }) => Self::open(&top),
            other => other,
        }
    }
}

/// Reads `git blame --porcelain`: per line a header, the first time a commit is seen its facts, then the text.
fn parse_blame(output: &[u8]) -> Result<Vec<LineOrigin>> {
    let unexpected = |detail: &str| SandboxError::Unexpected {
        command: "git blame".to_owned(),
        detail: detail.chars().take(200).collect(),
    };
    let mut names: HashMap<String, String> = HashMap::new();
    let mut origins = Vec::new();
    let mut current: Option<(String, u32)> = None;
    for line in output.split(|b| *b == b'\n') {
        if line.first() == Some(&b'\t') {
            let Some((id, number)) = current.take() else {
                return Err(unexpected("a line without a commit"));
            };
            let committed = !id.bytes().all(|b| b == b'0');
            let path = names.get(&id).cloned().unwrap_or_default();
            let commit = if committed { Some(parse_id("git blame", &id)?) } else { None };
            origins.push(LineOrigin { commit, path, line: number.saturating_sub(1) });
            continue;
        }
        let text = String::from_utf8_lossy(line);
        match &current {
            None if text.is_empty() => {}
            None => {
                let mut parts = text.split(' ');
                let (Some(id), Some(Ok(number))) = (parts.next(), parts.next().map(str::parse)) else {
                    return Err(unexpected(&text));
                };
                current = Some((id.to_owned(), number));
            }
            Some((id, _)) => {
                if let Some(name) = text.strip_prefix("filename ") {
                    names.insert(id.clone(), os_path(name.as_bytes()).to_string_lossy().into_owned());
                }
            }
        }
    }
    Ok(origins)
}
