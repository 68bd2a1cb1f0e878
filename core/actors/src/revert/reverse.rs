//! One file taken back: a three-way merge from what the plan left to what is there today and what was there before.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use agents_domain::ids::ResourceId;
use agents_domain::invariant::Enforced;
use agents_domain::merge::{Side, merge};
use agents_domain::ports::actor::{ActorFailure, ActorHost};
use agents_domain::text::{Content, FileEdit};

use super::undoing::Span;
use crate::fixer::Kept;

/// The files as they are today, with what is going to be taken back laid over them.
pub(super) struct Files<'a> {
    host: &'a dyn ActorHost,
    present: BTreeMap<ResourceId, BTreeSet<String>>,
    over: BTreeMap<(ResourceId, String), Option<Vec<u8>>>,
}

impl<'a> Files<'a> {
    pub fn new(host: &'a dyn ActorHost) -> Self {
        Self { host, present: BTreeMap::new(), over: BTreeMap::new() }
    }

    fn read(&mut self, resource: ResourceId, path: &str) -> Result<Option<Vec<u8>>, ActorFailure> {
        if let Some(known) = self.over.get(&(resource, path.to_owned())) {
            return Ok(known.clone());
        }
        if let std::collections::btree_map::Entry::Vacant(entry) = self.present.entry(resource) {
            entry.insert(self.host.files(resource)?.into_iter().map(|file| file.path).collect());
        }
        match self.present[&resource].contains(path) {
            true => self.host.read(resource, path).map(Some),
            false => Ok(None),
        }
    }

    /// Lays edits over the files.
    pub fn foresee(&mut self, resource: ResourceId, edits: &[FileEdit]) -> Result<(), ActorFailure> {
        for edit in edits {
            match edit {
                FileEdit::Write { path, content } => {
                    self.over.insert((resource, path.clone()), Some(content.as_bytes().to_vec()));
                }
                FileEdit::Delete { path } => _ = self.over.insert((resource, path.clone()), None),
                FileEdit::Rename { path, to } => {
                    let moved = self.read(resource, path)?;
                    self.over.insert((resource, path.clone()), None);
                    self.over.insert((resource, to.clone()), moved);
                }
                FileEdit::Edit { .. } | FileEdit::Create { .. } => {}
            }
        }
        Ok(())
    }
}

/// How a file can be taken back.
#[derive(Debug, PartialEq)]
pub(super) enum Reversal {
    /// There is nothing to do, and why.
    Nothing(&'static str),
    /// It must not be changed, and why.
    Refused(String),
    /// By these edits; `moved_on` when other lines of it were changed since.
    Clean { edits: Vec<FileEdit>, moved_on: bool },
    /// The plan's lines were changed since.
    Conflict {
        /// What is the matter.
        why: String,
        /// The lines of today's file, 0-based; empty when it is about the whole file.
        lines: Vec<Range<usize>>,
        /// Takes back what does not collide; empty when that is nothing.
        keep: Vec<FileEdit>,
        /// Puts back what was there before, whatever was made of it since.
        restore: Vec<FileEdit>,
    },
}

/// How a file is taken back.
pub(super) fn reverse(
    files: &mut Files<'_>,
    span: &Span,
    plan_read_only: bool,
    invariants: &[Enforced],
) -> Result<Reversal, ActorFailure> {
    if let Some(why) = refusal(files.host, span, plan_read_only, invariants) {
        return Ok(Reversal::Refused(why));
    }
    let host = files.host;
    let content = |hash: &Option<String>| match hash {
        Some(hash) => host.content(hash).map(Some),
        None => Ok(None),
    };
    let (before, after) = (content(&span.before)?, content(&span.after)?);
    let today = files.read(span.resource_id, &span.path)?;
    let moved = span.before_path != span.path;
    let taken = moved && files.read(span.resource_id, &span.before_path)?.is_some();
    let write = |bytes: Vec<u8>| FileEdit::Write { path: span.path.clone(), content: Content::of(bytes) };
    let delete = || FileEdit::Delete { path: span.path.clone() };
    // The file back under its old name, then its content.
    let back = |bytes: Vec<u8>, today: &[u8]| {
        let mut edits = Vec::new();
        let path = if moved && !taken { &span.before_path } else { &span.path };
        if path != &span.path {
            edits.push(FileEdit::Rename { path: span.path.clone(), to: path.clone() });
        }
        if bytes != today {
            edits.push(FileEdit::Write { path: path.clone(), content: Content::of(bytes) });
        }
        edits
    };
    let conflict =
        |why: &str, lines, keep, restore| Reversal::Conflict { why: why.to_owned(), lines, keep, restore };
    Ok(match (before, after, today) {
        (None, None, _) => Reversal::Nothing("it is as it was"),
        // Made by the plan.
        (None, Some(_), None) => Reversal::Nothing("it is gone already"),
        (None, Some(after), Some(today)) if after == today => {
            Reversal::Clean { edits: vec![delete()], moved_on: false }
        }
        (None, Some(_), Some(_)) => conflict(
            "the plan made this file, and it was changed since",
            Vec::new(),
            Vec::new(),
            vec![delete()],
        ),
        // Deleted by the plan.
        (Some(before), None, None) => Reversal::Clean { edits: vec![write(before)], moved_on: false },
        (Some(before), None, Some(today)) if before == today => Reversal::Nothing("it is back already"),
        (Some(before), None, Some(_)) => conflict(
            "the plan deleted this file, and another one is in its place",
            Vec::new(),
            Vec::new(),
            vec![write(before)],
        ),
        // Changed by the plan.
        (Some(before), Some(_), None) => {
            let old =
                FileEdit::Write { path: span.before_path.clone(), content: Content::of(before.clone()) };
            match files.read(span.resource_id, &span.before_path)? {
                Some(today) if moved && today == before => Reversal::Nothing("it is back already"),
                _ => conflict("the file was deleted or moved since", Vec::new(), Vec::new(), vec![old]),
            }
        }
        (Some(before), Some(_), Some(today)) if before == today && !moved => {
            Reversal::Nothing("it is as it was before")
        }
        (Some(before), Some(after), Some(today))
            if is_binary(&before) || is_binary(&after) || is_binary(&today) =>
        {
            let edits = back(before.clone(), &today);
            match today == after || today == before {
                _ if edits.is_empty() => Reversal::Nothing("it is as it was before"),
                true => Reversal::Clean { edits, moved_on: taken },
                false => conflict("it is no text, and it was changed since", Vec::new(), Vec::new(), edits),
            }
        }
        (Some(before), Some(after), Some(today)) => {
            let kept = merge(&after, &today, &before, Side::Ours);
            let keep = back(kept.bytes, &today);
            if kept.conflicts.is_empty() {
                match keep.is_empty() {
                    true => Reversal::Nothing("nothing of it is there any more"),
                    false => Reversal::Clean { edits: keep, moved_on: today != after || taken },
                }
            } else {
                let restored = merge(&after, &today, &before, Side::Theirs);
                let why = "lines that the plan wrote were changed since";
                conflict(why, kept.conflicts, keep, back(restored.bytes, &today))
            }
        }
    })
}

/// Why a file must not be changed.
fn refusal(
    host: &dyn ActorHost,
    span: &Span,
    plan_read_only: bool,
    invariants: &[Enforced],
) -> Option<String> {
    let Some(workspace) = host.workspaces().iter().find(|w| w.resource_id == span.resource_id) else {
        return Some("its resource is not part of this plan".to_owned());
    };
    if plan_read_only {
        return Some("the plan is read-only".to_owned());
    }
    if workspace.read_only {
        return Some(format!("{} is linked read-only", workspace.name));
    }
    let paths = [span.path.as_str(), span.before_path.as_str()];
    let untouchable = workspace.untouchable.iter().find(|(path, _)| paths.contains(&path.as_str()));
    if let Some((_, why)) = untouchable {
        return Some(why.clone());
    }
    paths
        .iter()
        .find_map(|path| Kept(invariants).file(path))
        .map(|text| format!("an invariant keeps it: {text}"))
}

fn is_binary(bytes: &[u8]) -> bool {
    bytes.iter().take(8000).any(|byte| *byte == 0)
}
