//! What a diff says, and that its patches apply.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use agents_domain::changes::{ChangeKind, FileDiff};
use agents_sandbox::{CommitId, changed_paths, diff};

use crate::support::*;

fn id(text: String) -> CommitId {
    text.parse().unwrap()
}

/// A history of two commits with every kind of change.
fn history() -> (Fixture, CommitId, CommitId) {
    let fixture = Fixture::new();
    fixture.write("moved.py", lines(30));
    fixture.write("gone.py", "gone\n");
    fixture.write("latin1.py", b"# caf\xe9\nx = 1\n");
    fixture.write("image.bin", b"\0\x01\x02");
    fixture.write("kind", "a file\n");
    fixture.write("run.sh", "#!/bin/sh\n");
    fixture.write("crlf.txt", "one\r\ntwo\r\n");
    fixture.write("no newline", "end");
    let from = id(fixture.commit("from"));
    fixture.write(
        "a.py",
        lines(20).replace("line 2\n", "line two\nline two and a half\n").replace("line 19\n", ""),
    );
    fs::create_dir(fixture.path("lib")).unwrap();
    fs::rename(fixture.path("moved.py"), fixture.path("lib/moved.py")).unwrap();
    fixture.write("lib/moved.py", lines(30).replace("line 7\n", "line seven\n"));
    fs::remove_file(fixture.path("gone.py")).unwrap();
    fixture.write("latin1.py", b"# caf\xe9\nx = 2 # \xe8\n");
    fixture.write("image.bin", b"\0\x01\x03\x04");
    fs::remove_file(fixture.path("kind")).unwrap();
    symlink("a.py", fixture.path("kind")).unwrap();
    fs::set_permissions(fixture.path("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    fixture.write("crlf.txt", "one\r\nzwei\r\n");
    fixture.write("no newline", "end\n");
    fixture.write("wéird \"name\" ü.py", "new\n");
    fixture.write("empty.py", "");
    let to = id(fixture.commit("to"));
    (fixture, from, to)
}

fn file<'d>(diff: &'d [FileDiff], path: &str) -> &'d FileDiff {
    diff.iter().find(|file| file.path == path).unwrap_or_else(|| panic!("{path} is not in the diff"))
}

#[test]
fn every_kind_of_change_is_told_with_gits_own_counts() {
    let (fixture, from, to) = history();
    let diff = diff(&fixture.open(), &from, &to).unwrap();
    let edited = file(&diff, "a.py");
    assert_eq!((edited.kind, edited.insertions, edited.deletions), (ChangeKind::Modified, 2, 2));
    assert_eq!(edited.hunks.len(), 2);
    assert_eq!(edited.hunks[0].range, "@@ -1,5 +1,6 @@");
    let added: Vec<_> = edited.hunks[0].lines.iter().filter(|l| l.kind == "+").collect();
    assert_eq!((added[0].text.as_str(), added[0].old, added[0].new), ("line two", None, Some(2)));
    let moved = file(&diff, "lib/moved.py");
    assert_eq!((moved.kind, moved.old_path.as_deref()), (ChangeKind::Renamed, Some("moved.py")));
    assert_eq!((moved.insertions, moved.deletions), (1, 1));
    let gone = file(&diff, "gone.py");
    assert_eq!((gone.kind, gone.deletions, gone.size), (ChangeKind::Deleted, 1, 5));
    let image = file(&diff, "image.bin");
    assert!(image.binary && image.hunks.is_empty() && image.size == 4);
    let latin = file(&diff, "latin1.py");
    assert!(latin.binary, "text that is not UTF-8 is flagged");
    assert_eq!(latin.hunks[0].lines.last().unwrap().text, "x = 2 # \u{fffd}");
    assert_eq!(file(&diff, "kind").kind, ChangeKind::Modified);
    assert!(file(&diff, "run.sh").patch.contains("new mode 100755"));
    assert_eq!(file(&diff, "crlf.txt").hunks[0].lines[1].text, "two");
    assert_eq!(file(&diff, "wéird \"name\" ü.py").kind, ChangeKind::Added);
    assert_eq!(file(&diff, "empty.py").kind, ChangeKind::Added);
    let total: u32 = diff.iter().map(|f| f.insertions).sum();
    let numstat = fixture.git(&["diff", "--numstat", "-M", from.as_str(), to.as_str()]);
    let expected: u32 = numstat.lines().filter_map(|l| l.split('\t').next()?.parse::<u32>().ok()).sum();
    assert_eq!(total, expected);
    let names: Vec<_> = changed_paths(&fixture.open(), &from, &to).unwrap();
    assert_eq!(names.len(), diff.len());
}

#[test]
fn all_patches_together_turn_one_commit_into_the_other() {
    let (fixture, from, to) = history();
    let patches: String =
        diff(&fixture.open(), &from, &to).unwrap().into_iter().map(|file| file.patch).collect();
    fixture.git(&["checkout", "-q", "--detach", from.as_str()]);
    let patch = fixture.dir.path().join("all.patch");
    fs::write(&patch, patches).unwrap();
    fixture.git(&["apply", "--index", "--whitespace=nowarn", patch.to_str().unwrap()]);
    assert_eq!(fixture.git(&["write-tree"]), fixture.git(&["rev-parse", &format!("{to}^{{tree}}")]));
}

#[test]
fn configuration_of_the_users_diffs_changes_nothing() {
    let (fixture, from, to) = history();
    let plain = diff(&fixture.open(), &from, &to).unwrap();
    for (key, value) in [
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("diff.external", "false"),
        ("diff.context", "9"),
        ("diff.suppressBlankEmpty", "true"),
        ("color.ui", "always"),
        ("core.quotePath", "true"),
        ("diff.renames", "false"),
    ] {
        fixture.git(&["config", key, value]);
    }
    assert_eq!(diff(&fixture.open(), &from, &to).unwrap(), plain);
}

#[test]
fn a_commit_does_not_differ_from_itself() {
    let (fixture, from, _) = history();
    assert_eq!(diff(&fixture.open(), &from, &from).unwrap(), []);
}
