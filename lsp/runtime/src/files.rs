//! Files of a workspace as they lie on disk, kept inside of it.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use agents_grammars::{LanguageId, detect};

/// The longest text shown to a server, in bytes.
pub(crate) const MAX_TEXT: u64 = 2 << 20;
/// Entries looked at to find a file of a language.
const MAX_LOOKED_AT: usize = 5_000;
/// How much of a file is looked at to tell its language.
const LOOK: u64 = 1024;

/// Joins a relative path to the root without leaving it; `Err` says what is wrong with the path.
pub(crate) fn resolve(root: &Path, path: &str) -> Result<PathBuf, String> {
    let proper = !path.is_empty() && path.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if !proper || path.contains('\0') {
        return Err(format!("`{path}` is no path inside the workspace"));
    }
    Ok(root.join(path))
}

/// The text of a file; `Err` says why it is not shown to servers.
pub(crate) fn read_text(root: &Path, path: &str) -> Result<String, String> {
    let file = resolve(root, path)?;
    let real = file.canonicalize().map_err(|error| format!("{path}: {error}"))?;
    if !real.starts_with(root) {
        return Err(format!("{path} is a link that leaves the workspace"));
    }
    let meta = real.metadata().map_err(|error| format!("{path}: {error}"))?;
    if !meta.is_file() {
        return Err(format!("{path} is no regular file"));
    }
    if meta.len() > MAX_TEXT {
        return Err(format!(
            "{path} has {} bytes; servers are shown files of at most {MAX_TEXT}",
            meta.len()
        ));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or_default());
    let opened = File::open(&real).and_then(|file| file.take(MAX_TEXT + 1).read_to_end(&mut bytes));
    opened.map_err(|error| format!("{path}: {error}"))?;
    if bytes.len() as u64 > MAX_TEXT {
        return Err(format!("{path} grew beyond {MAX_TEXT} bytes"));
    }
    String::from_utf8(bytes)
        .map_err(|error| format!("{path} is not UTF-8 (byte {})", error.utf8_error().valid_up_to()))
}

/// The language of a file; its beginning is read only when the name does not tell.
pub(crate) fn language(root: &Path, path: &str) -> Option<LanguageId> {
    let file = resolve(root, path).ok()?;
    detect(&file, &[]).or_else(|| {
        let real = file.canonicalize().ok().filter(|real| real.starts_with(root) && real.is_file())?;
        let mut start = Vec::new();
        File::open(real).ok()?.take(LOOK).read_to_end(&mut start).ok()?;
        detect(&file, &start)
    })
}

/// The text of a file outside of the workspace that a server pointed to; `None` when it is no text of a usual size.
pub(crate) fn read_outside(file: &Path) -> Option<String> {
    let meta = file.metadata().ok().filter(|meta| meta.is_file() && meta.len() <= MAX_TEXT)?;
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or_default());
    File::open(file).ok()?.take(MAX_TEXT).read_to_end(&mut bytes).ok()?;
    String::from_utf8(bytes).ok()
}

/// A file of the workspace that a server registered for some languages serves, found by its name; the search is bounded.
pub(crate) fn first_served(root: &Path, languages: &[String]) -> Option<String> {
    let mut folders = std::collections::VecDeque::from([root.to_owned()]);
    let mut left = MAX_LOOKED_AT;
    while let Some(folder) = folders.pop_front() {
        let mut entries: Vec<_> = std::fs::read_dir(folder).ok().into_iter().flatten().flatten().collect();
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            left = left.checked_sub(1)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && !name.starts_with('.') && !matches!(&*name, "node_modules" | "target") {
                folders.push_back(entry.path());
            } else if kind.is_file()
                && detect(&entry.path(), &[]).is_some_and(|language| serves(languages, language))
                && let Ok(path) = entry.path().strip_prefix(root)
            {
                return Some(path.to_string_lossy().into_owned());
            }
        }
    }
    None
}

/// Whether a server registered for some languages serves a file of this one.
///
/// One registered for `typescript` also serves its JSX variant, as its own extensions in editors do.
pub(crate) fn serves(registered: &[String], language: LanguageId) -> bool {
    let plain = match language.as_str() {
        "typescriptreact" => "typescript",
        "javascriptreact" => "javascript",
        same => same,
    };
    registered.iter().any(|name| match LanguageId::from_name(name) {
        Some(known) => known == language || known.as_str() == plain,
        None => name.eq_ignore_ascii_case(language.as_str()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_must_not_be_shown_to_a_server_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = &folder.path().canonicalize().unwrap();
        let outside = tempfile::NamedTempFile::new().unwrap();
        fs::write(root.join("latin.py"), b"x = '\xe9'").unwrap();
        fs::write(root.join("big.py"), vec![b'#'; usize::try_from(MAX_TEXT).unwrap() + 1]).unwrap();
        fs::create_dir(root.join("dir.py")).unwrap();
        std::os::unix::fs::symlink(outside.path(), root.join("link.py")).unwrap();
        for (path, why) in [
            ("latin.py", "not UTF-8 (byte 5)"),
            ("big.py", "has 2097153 bytes"),
            ("dir.py", "no regular file"),
            ("link.py", "leaves the workspace"),
            ("none.py", "No such file"),
            ("../x.py", "no path inside"),
            ("/etc/passwd", "no path inside"),
            ("", "no path inside"),
            ("a//b", "no path inside"),
        ] {
            let error = read_text(root, path).unwrap_err();
            assert!(error.contains(why), "{path}: {error}");
        }
    }

    // LSP-033
    #[test]
    fn languages_come_from_the_name_else_from_the_first_line_and_variants_are_served() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::write(root.join("tool"), "#!/usr/bin/env python3\n").unwrap();
        let language = |path| super::language(root, path);
        assert_eq!(language("tool").unwrap().as_str(), "python");
        assert_eq!(language("a.tsx").unwrap().as_str(), "typescriptreact");
        assert!(language("nothing").is_none());
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert!(serves(&names(&["typescript"]), language("a.tsx").unwrap()));
        assert!(serves(&names(&["c", "C++"]), language("a.cpp").unwrap()));
        assert!(!serves(&names(&["javascript"]), language("a.tsx").unwrap()));
    }
}
