//! Writes edits that were asked for to the files of the session's directory: all of them, or none.

use std::io::Write;
use std::path::{Path, PathBuf};

use agents_domain::text::{FileEdit, apply_edits};

/// What is done to one file.
enum Step {
    Put(PathBuf, String),
    Move(PathBuf, PathBuf),
    Remove(PathBuf),
}

/// Writes the edits; what is wrong with one of them is found before the first is written.
pub(crate) fn write(root: &Path, edits: &[FileEdit]) -> Result<(), String> {
    let mut steps = Vec::new();
    for edit in edits {
        let path = edit.path();
        let place = inside(root, path)?;
        let is_there = place.symlink_metadata().is_ok();
        steps.push(match edit {
            FileEdit::Edit { edits, .. } => {
                let text = std::fs::read_to_string(&place).map_err(|error| format!("{path}: {error}"))?;
                let after = apply_edits(&text, edits).map_err(|error| format!("{path}: {error}"))?;
                Step::Put(place, after)
            }
            FileEdit::Create { .. } if is_there => return Err(format!("{path} exists")),
            FileEdit::Create { text, .. } => Step::Put(place, text.clone()),
            FileEdit::Write { content, .. } => {
                let text = String::from_utf8(content.as_bytes().to_vec());
                Step::Put(place, text.map_err(|_| format!("{path} would not be text"))?)
            }
            FileEdit::Rename { to, .. } => {
                let target = inside(root, to)?;
                if target.symlink_metadata().is_ok() {
                    return Err(format!("{to} exists"));
                }
                Step::Move(place, target)
            }
            FileEdit::Delete { .. } => Step::Remove(place),
        });
    }
    steps.into_iter().try_for_each(carry_out)
}

fn carry_out(step: Step) -> Result<(), String> {
    let (place, done) = match &step {
        Step::Put(place, text) => (place, put(place, text)),
        Step::Move(place, target) => {
            let folder = target.parent().map_or(Ok(()), std::fs::create_dir_all);
            (place, folder.and_then(|()| std::fs::rename(place, target)))
        }
        Step::Remove(place) => (place, std::fs::remove_file(place)),
    };
    done.map_err(|error| format!("{}: {error}", place.display()))
}

/// A new content under the same name and with the same rights, or the old one: never half of it.
fn put(place: &Path, text: &str) -> std::io::Result<()> {
    let folder = place.parent().unwrap_or(place);
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    match place.metadata() {
        Ok(meta) => file.as_file().set_permissions(meta.permissions())?,
        #[cfg(unix)]
        Err(_) => {
            use std::os::unix::fs::PermissionsExt;
            file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
        }
        #[cfg(not(unix))]
        Err(_) => {}
    }
    file.persist(place).map(|_| ()).map_err(|error| error.error)
}

/// A path below the root; `Err` when it, or a link on the way, leaves it.
fn inside(root: &Path, path: &str) -> Result<PathBuf, String> {
    let leaves = || format!("`{path}` is no path inside of {}", root.display());
    if path.is_empty() || path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err(leaves());
    }
    let mut place = root.to_owned();
    for part in path.split('/') {
        place.push(part);
        if place.symlink_metadata().is_ok_and(|meta| meta.is_symlink()) {
            return Err(format!("{path} goes through a link, which is not written to"));
        }
    }
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use agents_domain::text::{Range, TextEdit};

    #[test]
    fn all_edits_are_written_or_none_and_nothing_outside() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::write(root.join("a.py"), "one\n").unwrap();
        std::fs::write(root.join("old.py"), "x\n").unwrap();
        std::os::unix::fs::symlink("/tmp", root.join("link")).unwrap();
        let edit = |path: &str| FileEdit::Edit {
            path: path.into(),
            edits: vec![TextEdit { range: Range::new((0, 0), (0, 3)), new_text: "two".into() }],
        };
        let create = |path: &str| FileEdit::Create { path: path.into(), text: "n\n".into() };
        for bad in [create("a.py"), create("../x"), create("/x"), create("link/x"), edit("none.py")] {
            assert!(write(root, &[edit("a.py"), bad.clone()]).is_err(), "{bad:?}");
            assert_eq!(std::fs::read_to_string(root.join("a.py")).unwrap(), "one\n");
        }
        let rename = FileEdit::Rename { path: "old.py".into(), to: "deep/new.py".into() };
        write(root, &[edit("a.py"), create("n/b.py"), rename]).unwrap();
        assert_eq!(std::fs::read_to_string(root.join("a.py")).unwrap(), "two\n");
        assert_eq!(std::fs::read_to_string(root.join("n/b.py")).unwrap(), "n\n");
        assert_eq!(std::fs::read_to_string(root.join("deep/new.py")).unwrap(), "x\n");
        write(root, &[FileEdit::Delete { path: "a.py".into() }]).unwrap();
        assert!(!root.join("a.py").exists());
    }
}
