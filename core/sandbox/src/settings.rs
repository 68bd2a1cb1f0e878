//! Reads what git's configuration says, and works out the settings under which no program it names is run.
//!
//! Configuration comes with a repository or a cloned template, so a program named in it is not one the user asked for.
//! Hooks, helpers for transport and the like are dead for every call (see [`crate::git`]); what is configured under a
//! name of anybody's choosing is found here, as bytes, since such a name may hold `=`, line noise or no text at all.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::error::Result;
use crate::git::{Git, nul_fields};

/// The parts of git's configuration that matter here, as seen from one git directory.
///
/// Configuration may be included for one git directory, branch or remote only, so a linked worktree has settings of
/// its own, and they are read anew where an operation begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Names of the configured content filters (`filter.<name>.*`).
    pub(crate) filters: Vec<OsString>,
    /// A name and an address for commits are configured.
    pub(crate) identity: bool,
    pub(crate) sparse: bool,
    /// Settings under which none of the configured programs runs.
    pub(crate) disarming: Vec<(OsString, OsString)>,
    /// Settings that decide how a merge of trees comes out, as the user has them.
    pub(crate) merging: Vec<(OsString, OsString)>,
}

/// Those of [`Settings::merging`]; none of them names a program.
const MERGING: &[&str] = &[
    "core.attributesfile",
    "core.autocrlf",
    "core.eol",
    "core.ignorecase",
    "core.sharedrepository",
    "diff.renamelimit",
    "diff.renames",
    "merge.directoryrenames",
    "merge.renamelimit",
    "merge.renames",
    "merge.renormalize",
];

/// Reads the configuration that holds for a git directory now.
pub(crate) fn read(git: &Git) -> Result<Settings> {
    let output = git.call(["config", "-z", "--list"]).run()?;
    let mut settings = Settings::default();
    let variable = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let mut name = variable("GIT_COMMITTER_NAME") && variable("GIT_AUTHOR_NAME");
    let mut email = variable("GIT_COMMITTER_EMAIL") && variable("GIT_AUTHOR_EMAIL");
    let mut hooks: Vec<OsString> = Vec::new();
    for field in nul_fields(&output) {
        // `<key>\n<value>`; a key without `=` has no line break. No key holds one.
        let end = field.iter().position(|b| *b == b'\n');
        let (key, value) = (&field[..end.unwrap_or(field.len())], end.map(|at| &field[at + 1..]));
        match key {
            b"user.name" => name |= value.is_some_and(|value| !value.is_empty()),
            b"user.email" => email |= value.is_some_and(|value| !value.is_empty()),
            b"core.sparsecheckout" => {
                settings.sparse = match value {
                    None => true,
                    Some(value) => {
                        [&b"true"[..], b"yes", b"on", b"1"].iter().any(|on| value.eq_ignore_ascii_case(on))
                    }
                };
            }
            _ => {
                if let Some(filter) = subsection(key, b"filter.") {
                    remember(&mut settings.filters, filter);
                } else if let Some(hook) = subsection(key, b"hook.") {
                    remember(&mut hooks, hook);
                } else if MERGING.iter().any(|known| known.as_bytes() == key) {
                    let value = value.unwrap_or(b"true");
                    let setting = (OsString::from_vec(key.to_vec()), OsString::from_vec(value.to_vec()));
                    settings.merging.push(setting);
                }
            }
        }
    }
    settings.identity = name && email;
    let disarm = |section: &str, name: &OsString, rest: &[(&str, &str)], into: &mut Vec<_>| {
        for (key, value) in rest {
            let mut full = OsString::from(section);
            full.push(name);
            full.push(".");
            full.push(key);
            into.push((full, OsString::from(value)));
        }
    };
    for filter in &settings.filters {
        let none = [("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")];
        disarm("filter.", filter, &none, &mut settings.disarming);
    }
    // Hooks that live in the configuration do not heed `core.hooksPath`; an empty event takes the list back.
    for hook in &hooks {
        disarm("hook.", hook, &[("event", ""), ("enabled", "false")], &mut settings.disarming);
    }
    Ok(settings)
}

/// `name` of `<section>.<name>.<key>`, which may hold dots.
fn subsection<'k>(key: &'k [u8], section: &[u8]) -> Option<&'k OsStr> {
    let rest = key.strip_prefix(section)?;
    let end = rest.iter().rposition(|b| *b == b'.')?;
    Some(OsStr::from_bytes(&rest[..end]))
}

fn remember(known: &mut Vec<OsString>, name: &OsStr) {
    if !known.iter().any(|known| known == name) {
        known.push(name.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_a_key_may_hold_anything() {
        let name = |key: &[u8]| subsection(key, b"filter.").map(|name| name.as_bytes().to_vec());
        assert_eq!(name(b"filter.lfs.clean").unwrap(), b"lfs");
        assert_eq!(name(b"filter.a=b.c.clean").unwrap(), b"a=b.c");
        assert_eq!(name(b"filter.\xff.clean").unwrap(), b"\xff");
        assert_eq!(name(b"filter..clean").unwrap(), b"");
        assert_eq!(name(b"filter.clean"), None);
        assert_eq!(name(b"merge.x.driver"), None);
    }
}
