//! File URIs to paths and back, in all the spellings servers use.

use std::path::Path;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// What stays as it is in the path of a URI.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The `file:` URI of an absolute path.
pub(crate) fn from_path(path: &Path) -> String {
    let text = path.to_string_lossy();
    let slash = if text.starts_with('/') { "" } else { "/" };
    format!("file://{slash}{}", utf8_percent_encode(&text, ENCODED))
}

/// The absolute path of a `file:` URI, with `/` and a lower-case drive letter; `None` for anything else.
///
/// `file:///c%3A/x`, `file:///C:/x` and `file://localhost/c:/x` are all `c:/x`.
pub(crate) fn to_path(uri: &str) -> Option<String> {
    let (scheme, rest) = uri.split_once(':')?;
    if !scheme.eq_ignore_ascii_case("file") {
        return None;
    }
    let rest = rest.split(['?', '#']).next().unwrap_or(rest);
    let (host, path) = match rest.strip_prefix("//") {
        Some(after) => after.split_at(after.find('/')?),
        None => ("", rest),
    };
    let path = percent_decode_str(path).decode_utf8().ok()?.replace('\\', "/");
    if !path.starts_with('/') {
        return None;
    }
    if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
        return Some(format!("//{host}{path}"));
    }
    let bytes = path.as_bytes();
    if bytes.len() > 2 && bytes[1].is_ascii_alphabetic() && bytes[2] == b':' {
        return Some(format!("{}{}", path[1..2].to_ascii_lowercase(), &path[2..]));
    }
    Some(path)
}

/// The path of a URI relative to a root, with `/`; `None` when it lies outside.
pub(crate) fn relative(root: &Path, uri: &str) -> Option<String> {
    relative_path(root, &to_path(uri)?)
}

/// An absolute path relative to a root; `None` when it lies outside or is the root itself.
pub(crate) fn relative_path(root: &Path, path: &str) -> Option<String> {
    let root = root.to_string_lossy();
    let rest = path.strip_prefix(root.trim_end_matches('/'))?.strip_prefix('/')?;
    let inside = !rest.is_empty() && !rest.split('/').any(|part| matches!(part, "" | "." | ".."));
    inside.then(|| rest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn drive_letters_and_hosts_have_one_spelling() {
        for uri in ["file:///c%3A/a%20b", "file:///C:/a%20b", "FILE://localhost/c%3a/a b", "file:///C:\\a b"]
        {
            assert_eq!(to_path(uri).as_deref(), Some("c:/a b"), "{uri}");
        }
        assert_eq!(to_path("file://server/share/x").as_deref(), Some("//server/share/x"));
        assert_eq!(to_path("file:/etc/x").as_deref(), Some("/etc/x"));
        for other in ["untitled:1", "file:", "file://nohost", "/x", "", "file:relative", "file:///%ff"] {
            assert_eq!(to_path(other), None, "{other}");
        }
    }

    #[test]
    fn paths_outside_the_root_are_seen() {
        let root = Path::new("/w/repo");
        assert_eq!(relative(root, "file:///w/repo/a/b%23.py").as_deref(), Some("a/b#.py"));
        for outside in [
            "file:///w/repo2/a",
            "file:///w/repo/../x",
            "file:///w/repo",
            "file:///w/repo/%2e%2e/x",
            "http://w/repo/a",
        ] {
            assert_eq!(relative(root, outside), None, "{outside}");
        }
    }

    proptest! {
        #[test]
        fn every_path_round_trips(path in "(/[a-zA-Z0-9 %#?é😀:+&@\\[\\]._-]{2,12}){1,4}") {
            let path = path.replace(':', "_");
            let uri = from_path(Path::new(&path));
            prop_assert!(uri.is_ascii());
            prop_assert_eq!(to_path(&uri), Some(path));
        }
    }
}
