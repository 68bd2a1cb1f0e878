//! Tells from what git says why a command failed, in terms a person can act on.

use std::path::PathBuf;

use crate::error::SandboxError;
use crate::git::ObjectId;

/// The error for a git command (with its arguments) that failed.
pub(crate) fn failure(command: &str, code: i32, stderr: &str) -> SandboxError {
    if let Some(path) = locked_path(stderr) {
        return SandboxError::Locked { path };
    }
    if let Some(line) = stderr.lines().find(|line| DISK.iter().any(|error| line.contains(error))) {
        return SandboxError::Disk { detail: line.to_owned() };
    }
    if let Some((object, path)) = missing_object(stderr) {
        return SandboxError::MissingObject { object, path };
    }
    SandboxError::Git { command: short_command(command), code, stderr: shorten(stderr, 2000) }
}

/// How the system's errors about a disk read at the end of git's messages.
const DISK: &[&str] = &[
    "No space left on device",
    "Disk quota exceeded",
    "Read-only file system",
    "Input/output error",
    "Too many open files",
    "Permission denied",
    "insufficient permission",
];

/// `git` and the name of the command; the rest is for the log.
fn short_command(command: &str) -> String {
    command.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

fn shorten(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        Some((at, _)) => format!("{} ...", &text[..at]),
        None => text.to_owned(),
    }
}

/// The object, and the file where it is said, that git complains not to have.
fn missing_object(stderr: &str) -> Option<(String, Option<String>)> {
    const WORDS: &[&str] = &[
        "lazy fetching disabled",
        "from promisor remote",
        "unable to read",
        "Could not read",
        "bad object",
        "bad tree object",
        "invalid object",
        "missing blob",
        "missing tree",
        "is not a valid object",
        "not a valid 'commit' object",
    ];
    let lines = || stderr.lines().filter(|line| WORDS.iter().any(|word| line.contains(word)));
    let id = |line: &str| {
        line.split(|c: char| !c.is_ascii_hexdigit())
            .find(|word| word.parse::<ObjectId>().is_ok())
            .map(str::to_owned)
    };
    let object = lines().find_map(id)?;
    let path = lines().find_map(|line| {
        // `error: unable to read sha1 file of <path> (<id>)`
        let rest = line.split_once("file of ")?.1;
        rest.rsplit_once(" (").map(|(path, _)| path.to_owned())
    });
    Some((object, path))
}

/// `Unable to create '/x/.git/index.lock': File exists.`
fn locked_path(stderr: &str) -> Option<PathBuf> {
    let line = stderr.lines().find(|line| line.contains(".lock': File exists"))?;
    let start = line.find('\'')? + 1;
    let end = line[start..].find('\'')? + start;
    Some(PathBuf::from(&line[start..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_lock_is_told_from_other_failures() {
        let stderr =
            "fatal: Unable to create '/r/.git/index.lock': File exists.\n\nAnother git process seems";
        assert_eq!(locked_path(stderr), Some(PathBuf::from("/r/.git/index.lock")));
        assert_eq!(locked_path("fatal: bad object"), None);
    }

    #[test]
    fn a_missing_object_and_a_full_disk_are_told_from_other_failures() {
        let id = "0d37cc76b4ea286b075acbe45b794d1e11c9e32e";
        let fail = |stderr: String| failure("git read-tree -x", 128, &stderr);
        match fail(format!("error: unable to read sha1 file of src/a (1).py ({id})")) {
            SandboxError::MissingObject { object, path } => {
                assert_eq!((object.as_str(), path.as_deref()), (id, Some("src/a (1).py")));
            }
            other => panic!("{other:?}"),
        }
        let gone = fail(format!("fatal: could not fetch {id} from promisor remote"));
        assert!(matches!(gone, SandboxError::MissingObject { .. }), "{gone:?}");
        let full = fail("error: unable to write file: No space left on device".into());
        assert!(matches!(full, SandboxError::Disk { .. }), "{full:?}");
        match fail("fatal: no idea".into()) {
            SandboxError::Git { command, .. } => assert_eq!(command, "git read-tree"),
            other => panic!("{other:?}"),
        }
    }
}
