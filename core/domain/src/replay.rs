//! Recorded writes without some of them: what the files are when certain writes had never been made.

use std::collections::{BTreeMap, BTreeSet};

use crate::changes::{Change, Hunk, content_hash};
use crate::ids::ChangeId;
use crate::provenance::hunks;

/// Files of one resource after a replay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replayed {
    /// The files that come out otherwise than they are now; `None` for one that is not there.
    pub files: BTreeMap<String, Option<Vec<u8>>>,
    /// Writes that were carried over to another text, in order.
    pub moved: Vec<Moved>,
}

/// A write that was carried over to another text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// The write.
    pub change: ChangeId,
    /// The file before it now.
    pub before: Option<Vec<u8>>,
    /// The file after it now.
    pub after: Option<Vec<u8>>,
}

/// What the files of a resource are without the writes in `dropped`.
///
/// `changes`: the standing writes to the resource, in order. `blob` gives a stored content by its hash.
///
/// A later write of the same file is carried over by a three-way merge of lines.
///
/// # Errors
/// The first write that cannot be carried over, because it is about text that a dropped one made, or because a content
/// is gone or is no text.
pub fn without(
    changes: &[&Change],
    dropped: &BTreeSet<ChangeId>,
    mut blob: impl FnMut(&str) -> Option<Vec<u8>>,
) -> Result<Replayed, ChangeId> {
    // The files that a dropped write touched, or a write that was carried over; all others are as recorded.
    let mut files: BTreeMap<String, Option<Vec<u8>>> = BTreeMap::new();
    let mut recorded: BTreeMap<String, Option<String>> = BTreeMap::new();
    let mut moved = Vec::new();
    let mut anew: BTreeSet<String> = BTreeSet::new();
    for change in changes {
        let id = change.change_id;
        let mut load = |hash: &Option<String>| match hash {
            Some(hash) => blob(hash).map(Some).ok_or(id),
            None => Ok(None),
        };
        let source = change.old_path.as_ref().unwrap_or(&change.path);
        let paths = || change.old_path.iter().chain([&change.path]);
        if dropped.contains(&id) {
            if !files.contains_key(source) {
                files.insert(source.clone(), load(&change.before_hash)?);
            }
            if change.old_path.is_some() {
                files.entry(change.path.clone()).or_insert(None);
            }
        } else if paths().any(|path| files.contains_key(path)) {
            let before = match files.get(source) {
                Some(now) => now.clone(),
                None => load(&change.before_hash)?,
            };
            if change.old_path.is_some() && files.get(&change.path).is_some_and(Option::is_some) {
                return Err(id);
            }
            let same = before.as_deref().map(content_hash) == change.before_hash;
            let after = match (&before, &change.before_hash, &change.after_hash) {
                _ if same => load(&change.after_hash)?,
                (Some(now), Some(_), Some(_)) => {
                    let (Some(base), Some(theirs)) = (load(&change.before_hash)?, load(&change.after_hash)?)
                    else {
                        return Err(id);
                    };
                    let text = |bytes| std::str::from_utf8(bytes).map_err(|_| id);
                    Some(merge(text(&base)?, text(now)?, text(&theirs)?).ok_or(id)?.into_bytes())
                }
                _ => return Err(id),
            };
            if let Some(old) = &change.old_path {
                files.insert(old.clone(), None);
            }
            files.insert(change.path.clone(), after.clone());
            // What follows a write that is recorded anew is recorded anew, too: the order of a file's writes counts.
            if !same || paths().chain([source]).any(|path| anew.contains(path)) {
                anew.extend(paths().cloned());
                moved.push(Moved { change: id, before, after });
            }
        }
        if let Some(old) = &change.old_path {
            recorded.insert(old.clone(), None);
        }
        recorded.insert(change.path.clone(), change.after_hash.clone());
    }
    files.retain(|path, bytes| recorded.get(path) != Some(&bytes.as_deref().map(content_hash)));
    Ok(Replayed { files, moved })
}

/// The three-way merge of texts by lines; `None` when both sides changed the same or neighbouring lines differently.
pub fn merge(base: &str, ours: &str, theirs: &str) -> Option<String> {
    let lines = |text: &'_ str| text.split_inclusive('\n').map(str::to_owned).collect::<Vec<_>>();
    let (base_lines, our_lines, their_lines) = (lines(base), lines(ours), lines(theirs));
    let edit = |hunk: Hunk, of: &[String]| {
        let at = |start: u32, count: u32| start as usize..(start + count) as usize;
        let new = of.get(at(hunk.new_start, hunk.new_lines)).unwrap_or_default().concat();
        (at(hunk.old_start, hunk.old_lines), new)
    };
    let mut edits: Vec<_> = hunks(base, ours).into_iter().map(|hunk| edit(hunk, &our_lines)).collect();
    for theirs in hunks(base, theirs).into_iter().map(|hunk| edit(hunk, &their_lines)) {
        if edits.contains(&theirs) {
            continue;
        }
        if edits.iter().any(|(ours, _)| ours.start <= theirs.0.end && theirs.0.start <= ours.end) {
            return None;
        }
        edits.push(theirs);
    }
    edits.sort_by_key(|(range, _)| (range.start, range.end));
    let (mut merged, mut at) = (String::with_capacity(ours.len()), 0);
    for (range, new) in edits {
        merged.extend(base_lines.get(at..range.start)?.iter().map(String::as_str));
        // The last line of a text may have no break; what follows it now begins a line of its own.
        if !merged.is_empty() && !merged.ends_with('\n') && !new.is_empty() {
            return None;
        }
        merged.push_str(&new);
        at = range.end;
    }
    merged.extend(base_lines.get(at..)?.iter().map(String::as_str));
    Some(merged)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::changes::ChangeKind;
    use crate::ids::{DecisionId, PlanId, ResourceId};

    fn ulid(n: u64) -> ulid::Ulid {
        ulid::Ulid::from_parts(n, 0)
    }

    /// Writes a file and keeps what it was and became.
    struct Files {
        now: BTreeMap<String, String>,
        blobs: HashMap<String, Vec<u8>>,
        changes: Vec<Change>,
    }

    impl Files {
        fn new(files: &[(&str, &str)]) -> Self {
            let now = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
            Self { now, blobs: HashMap::new(), changes: Vec::new() }
        }

        fn keep(&mut self, text: Option<&String>) -> Option<String> {
            let text = text?;
            let hash = content_hash(text.as_bytes());
            self.blobs.insert(hash.clone(), text.clone().into_bytes());
            Some(hash)
        }

        fn write(&mut self, path: &str, text: Option<&str>) -> ChangeId {
            let before = self.now.get(path).cloned();
            match text {
                Some(text) => self.now.insert(path.to_owned(), text.to_owned()),
                None => self.now.remove(path),
            };
            let after = self.now.get(path).cloned();
            let id = ChangeId::from_ulid(ulid(self.changes.len() as u64 + 1));
            let change = Change {
                change_id: id,
                plan_id: PlanId::from_ulid(ulid(1)),
                decision_id: DecisionId::from_ulid(ulid(1)),
                resource_id: ResourceId::from_ulid(ulid(1)),
                path: path.to_owned(),
                old_path: None,
                kind: ChangeKind::Modified,
                before_hash: self.keep(before.as_ref()),
                after_hash: self.keep(after.as_ref()),
                hunks: Vec::new(),
                tool: "t".to_owned(),
                created_at: crate::Timestamp::from_micros(0),
            };
            self.changes.push(change);
            id
        }

        fn without(&self, dropped: &[ChangeId]) -> Result<Replayed, ChangeId> {
            let changes: Vec<&Change> = self.changes.iter().collect();
            without(&changes, &dropped.iter().copied().collect(), |hash| self.blobs.get(hash).cloned())
        }
    }

    fn text(replayed: &Replayed, path: &str) -> Option<String> {
        replayed.files.get(path).cloned().flatten().map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn a_file_that_only_dropped_writes_touched_is_what_it_was() {
        let mut files = Files::new(&[("a", "1\n"), ("b", "1\n")]);
        let first = files.write("a", Some("2\n"));
        files.write("b", Some("2\n"));
        let second = files.write("a", Some("3\n"));
        let made = files.write("c", Some("new\n"));
        let replayed = files.without(&[first, second, made]).unwrap();
        assert_eq!(text(&replayed, "a").as_deref(), Some("1\n"));
        assert_eq!(replayed.files.get("c"), Some(&None));
        assert!(!replayed.files.contains_key("b") && replayed.moved.is_empty());
    }

    #[test]
    fn a_later_write_elsewhere_in_the_file_is_carried_over() {
        let mut files = Files::new(&[("a", "1\n2\n3\n4\n5\n")]);
        let dropped = files.write("a", Some("1\ntwo\nand more\n3\n4\n5\n"));
        let kept = files.write("a", Some("1\ntwo\nand more\n3\n4\nfive\n"));
        let replayed = files.without(&[dropped]).unwrap();
        assert_eq!(text(&replayed, "a").as_deref(), Some("1\n2\n3\n4\nfive\n"));
        assert_eq!(replayed.moved.len(), 1);
        assert_eq!(replayed.moved[0].change, kept);
    }

    #[test]
    fn a_later_write_on_the_same_lines_is_named() {
        let mut files = Files::new(&[("a", "1\n2\n3\n")]);
        let dropped = files.write("a", Some("1\ntwo\n3\n"));
        let on_top = files.write("a", Some("1\ntwo!\n3\n"));
        assert_eq!(files.without(&[dropped]), Err(on_top));
        assert_eq!(text(&files.without(&[dropped, on_top]).unwrap(), "a").as_deref(), Some("1\n2\n3\n"));
        let gone = files.write("a", None);
        assert_eq!(files.without(&[dropped, on_top]), Err(gone));
    }

    #[test]
    fn a_merge_takes_both_sides_or_says_that_they_meet() {
        let merged = |base: &str, ours: &str, theirs: &str| merge(base, ours, theirs);
        assert_eq!(merged("a\nb\nc\n", "a\nb\nC\n", "A\nb\nc\n").as_deref(), Some("A\nb\nC\n"));
        assert_eq!(merged("a\nb\nc\n", "a\nB\nc\n", "a\nB\nc\n").as_deref(), Some("a\nB\nc\n"));
        assert_eq!(merged("a\nb\nc\n", "A\nb\nc\n", "a\nB\nc\n"), None);
        assert_eq!(merged("a\n", "a\nb\n", "a\nc\n"), None);
        assert_eq!(merged("", "x\n", "").as_deref(), Some("x\n"));
    }

    proptest! {
        // Dropping nothing changes nothing; dropping everything gives the base back.
        #[test]
        fn dropping_none_or_all_is_exact(texts in proptest::collection::vec("[ab\n]{0,8}", 1..6)) {
            let mut files = Files::new(&[("a", "base\n")]);
            let all: Vec<ChangeId> = texts.iter().map(|text| files.write("a", Some(text))).collect();
            prop_assert!(files.without(&[]).unwrap().files.is_empty());
            let replayed = files.without(&all).unwrap();
            if files.now["a"] != "base\n" {
                let base = text(&replayed, "a");
                prop_assert_eq!(base.as_deref(), Some("base\n"));
            }
        }

        #[test]
        fn a_merge_with_an_unchanged_side_is_the_other_side(base in "[ab\n]{0,12}", other in "[ab\n]{0,12}") {
            if let Some(merged) = merge(&base, &base, &other) {
                prop_assert_eq!(&merged, &other);
            }
            if let Some(merged) = merge(&base, &other, &base) {
                prop_assert_eq!(&merged, &other);
            }
        }
    }
}
