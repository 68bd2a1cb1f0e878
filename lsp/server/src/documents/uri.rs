//! Document identity: two spellings of one URI are one document, and `file:` URIs are paths.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use tower_lsp::lsp_types::Url;

/// Bytes of a path that are escaped in a `file:` URI: all but RFC 3986's `pchar` and `/`.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@');

/// The URI of a document.
///
/// Keeps the client's spelling for everything sent back, and compares by a canonical one: escapes that need not be,
/// their case, a drive letter's case and `file://localhost` make no difference. Other schemes (`agents:`, `untitled:`,
/// ...) are opaque, only their escapes are normalised.
#[derive(Clone)]
pub struct DocumentUri {
    spelled: Arc<str>,
    canonical: Arc<str>,
}

/// Why a text is no URI of a document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a URI: it must begin with a scheme, as in `file:///home/me/a.py` or `agents:/plan/...`"
)]
pub struct UriError(String);

impl DocumentUri {
    /// Reads a URI as a client sent it.
    ///
    /// # Errors
    /// Without a scheme.
    pub fn parse(text: &str) -> Result<Self, UriError> {
        let Some((scheme, rest)) = split_scheme(text) else { return Err(UriError(text.to_owned())) };
        let canonical = if scheme.eq_ignore_ascii_case("file") {
            let file = FileUri::parse(rest);
            format!(
                "file://{}{}{}",
                file.host,
                percent_encode(&file.path, PATH),
                normalise_escapes(file.suffix)
            )
        } else {
            format!("{}:{}", scheme.to_ascii_lowercase(), normalise_escapes(rest))
        };
        let spelled: Arc<str> = text.into();
        let canonical = if *spelled == *canonical { spelled.clone() } else { canonical.into() };
        Ok(Self { spelled, canonical })
    }

    /// The URI of an absolute path; `None` for a relative one.
    pub fn from_path(path: &Path) -> Option<Self> {
        let uri: Arc<str> = uri_of_path(&path_bytes(path)?, cfg!(windows))?.into();
        Some(Self { spelled: uri.clone(), canonical: uri })
    }

    /// The identity of a URI in a typed request.
    pub fn from_url(url: &Url) -> Self {
        // Every `Url` has a scheme.
        Self::parse(url.as_str())
            .unwrap_or_else(|_| Self { spelled: url.as_str().into(), canonical: url.as_str().into() })
    }

    /// The URI as lsp-types wants it, in the client's spelling as far as its parser keeps it.
    pub fn to_url(&self) -> Option<Url> {
        Url::parse(&self.spelled).ok()
    }

    /// The URI in the client's spelling.
    pub fn as_str(&self) -> &str {
        &self.spelled
    }

    /// The scheme in lower case: `file`, `agents`, `untitled`, ...
    pub fn scheme(&self) -> &str {
        self.canonical.split_once(':').map_or("", |(scheme, _)| scheme)
    }

    /// The path of a `file:` URI; `None` for other schemes and for hosts this system has no paths for.
    pub fn to_path(&self) -> Option<PathBuf> {
        let (scheme, rest) = split_scheme(&self.canonical)?;
        let file = (scheme == "file").then(|| FileUri::parse(rest))?;
        bytes_path(path_of_uri(&file, cfg!(windows))?)
    }
}

impl PartialEq for DocumentUri {
    fn eq(&self, other: &Self) -> bool {
        self.canonical == other.canonical
    }
}

impl Eq for DocumentUri {}

impl Hash for DocumentUri {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.canonical.hash(state);
    }
}

impl fmt::Display for DocumentUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spelled)
    }
}

impl fmt::Debug for DocumentUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DocumentUri({})", self.spelled)
    }
}

/// What stands after `file:`.
struct FileUri<'a> {
    /// Lower case; empty for this machine.
    host: String,
    /// Decoded; a drive letter is in lower case.
    path: Cow<'a, [u8]>,
    /// Query and fragment with their marks, as they came. No part of the path.
    suffix: &'a str,
}

impl<'a> FileUri<'a> {
    fn parse(rest: &'a str) -> Self {
        let (host, path) = match rest.strip_prefix("//") {
            Some(rest) => rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len())),
            None => ("", rest),
        };
        let (path, suffix) = path.split_at(path.find(['?', '#']).unwrap_or(path.len()));
        let host =
            if host.eq_ignore_ascii_case("localhost") { String::new() } else { host.to_ascii_lowercase() };
        let mut path: Cow<'a, [u8]> = percent_decode_str(path).into();
        if has_drive(&path) {
            path.to_mut()[1].make_ascii_lowercase();
        }
        Self { host, path, suffix }
    }
}

/// `/c:` or `/c:/...`
fn has_drive(path: &[u8]) -> bool {
    matches!(path, [b'/', letter, b':'] | [b'/', letter, b':', b'/', ..] if letter.is_ascii_alphabetic())
}

fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let valid = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    valid.then_some((scheme, rest))
}

/// RFC 3986, 6.2.2: escapes of unreserved characters are resolved, others get upper-case digits; what no URI may hold
/// raw is escaped.
fn normalise_escapes(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut i) = (String::with_capacity(text.len()), 0);
    while i < bytes.len() {
        let escaped = (bytes[i] == b'%').then(|| hex_pair(bytes.get(i + 1..i + 3)?)).flatten();
        let byte = escaped.unwrap_or(bytes[i]);
        let unreserved = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let raw = byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte) && escaped.is_none();
        if unreserved || raw {
            out.push(char::from(byte));
        } else {
            out.extend(percent_encode(&[byte], NON_ALPHANUMERIC));
        }
        i += if escaped.is_some() { 3 } else { 1 };
    }
    out
}

fn hex_pair(digits: &[u8]) -> Option<u8> {
    let digit = |b: u8| char::from(b).to_digit(16);
    match digits {
        [high, low] => u8::try_from(digit(*high)? * 16 + digit(*low)?).ok(),
        _ => None,
    }
}

/// The native path of a `file:` URI. Of the host system only `windows` matters, so that both are tested everywhere.
fn path_of_uri(file: &FileUri<'_>, windows: bool) -> Option<Vec<u8>> {
    if file.path.contains(&0) || !file.path.starts_with(b"/") {
        return None;
    }
    if !windows {
        return file.host.is_empty().then(|| file.path.to_vec());
    }
    let path = match file.host.as_str() {
        "" if has_drive(&file.path) => file.path[1..].to_vec(),
        "" => file.path.to_vec(),
        host => [b"//", host.as_bytes(), &file.path].concat(),
    };
    Some(path.into_iter().map(|b| if b == b'/' { b'\\' } else { b }).collect())
}

fn uri_of_path(path: &[u8], windows: bool) -> Option<String> {
    if !windows {
        return path.starts_with(b"/").then(|| format!("file://{}", percent_encode(path, PATH)));
    }
    let slashed: Vec<u8> = path.iter().map(|b| if *b == b'\\' { b'/' } else { *b }).collect();
    let plain = slashed.strip_prefix(b"//?/").unwrap_or(&slashed);
    let mut local = [b"/", plain].concat();
    if has_drive(&local) {
        local[1].make_ascii_lowercase();
        return Some(format!("file://{}", percent_encode(&local, PATH)));
    }
    let share = plain.strip_prefix(b"//").filter(|share| !share.is_empty())?;
    Some(format!("file://{}", percent_encode(share, PATH)))
}

#[cfg(unix)]
fn path_bytes(path: &Path) -> Option<Cow<'_, [u8]>> {
    Some(Cow::Borrowed(std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str())))
}

#[cfg(not(unix))]
fn path_bytes(path: &Path) -> Option<Cow<'_, [u8]>> {
    path.to_str().map(|text| Cow::Borrowed(text.as_bytes()))
}

#[cfg(unix)]
fn bytes_path(bytes: Vec<u8>) -> Option<PathBuf> {
    Some(PathBuf::from(<std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(bytes)))
}

#[cfg(not(unix))]
fn bytes_path(bytes: Vec<u8>) -> Option<PathBuf> {
    String::from_utf8(bytes).ok().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn uri(text: &str) -> DocumentUri {
        DocumentUri::parse(text).unwrap()
    }

    #[test]
    fn spellings_of_one_file_are_one_document() {
        for (a, b) in [
            ("file:///home/me/a%20b.py", "file:///home/me/a b.py"),
            ("file:///home/me/%61.py", "file:///home/me/a.py"),
            ("file:///home/m%c3%a9", "file:///home/m%C3%A9"),
            ("file:///home/mé", "file:///home/m%C3%A9"),
            ("file://localhost/a", "file:///a"),
            ("FILE:///a", "file:/a"),
            ("file:///c%3A/Users/x", "file:///C:/Users/x"),
            ("agents:/plan/%41b", "AGENTS:/plan/Ab"),
            ("untitled:a b", "untitled:a%20b"),
        ] {
            assert_eq!(uri(a), uri(b), "{a} and {b}");
        }
    }

    #[test]
    fn different_documents_stay_different() {
        for (a, b) in [
            ("file:///a", "file:///A"),
            ("file:///a%2520b", "file:///a%20b"),
            ("file:///a%23b", "file:///a#b"),
            ("agents:/plan/a%2Fb", "agents:/plan/a/b"),
            ("agents:/plan/1", "untitled:/plan/1"),
        ] {
            assert_ne!(uri(a), uri(b), "{a} and {b}");
        }
    }

    #[test]
    fn the_clients_spelling_is_kept() {
        assert_eq!(uri("file:///c%3A/Users/a%20b").as_str(), "file:///c%3A/Users/a%20b");
    }

    #[test]
    fn a_scheme_other_than_file_is_opaque_and_has_no_path() {
        let plan = uri("agents:/plan/01ARZ3NDEKTSV4RRFFQ69G5FAV/diff");
        assert_eq!(plan.scheme(), "agents");
        assert_eq!(plan.to_path(), None);
        assert_eq!(plan.to_url().unwrap().as_str(), plan.as_str());
        assert_eq!(DocumentUri::from_url(&plan.to_url().unwrap()), plan);
    }

    #[test]
    fn a_text_without_a_scheme_is_refused_by_name() {
        for text in ["", "/home/me/a.py", "a.py", ":x", "1a:b"] {
            assert!(DocumentUri::parse(text).unwrap_err().to_string().contains(&format!("`{text}`")));
        }
    }

    fn native(text: &str, windows: bool) -> Option<String> {
        let (_, rest) = split_scheme(text).unwrap();
        path_of_uri(&FileUri::parse(rest), windows).map(|path| String::from_utf8(path).unwrap())
    }

    #[test]
    fn drive_letters_and_shares_are_paths_on_windows() {
        assert_eq!(native("file:///C%3A/Users/a%20b", true).unwrap(), r"c:\Users\a b");
        assert_eq!(native("file:///c:/x", true).unwrap(), r"c:\x");
        assert_eq!(native("file://Server/share/x", true).unwrap(), r"\\server\share\x");
        for path in [r"c:\Users\a b", r"\\server\share\x"] {
            assert_eq!(native(&uri_of_path(path.as_bytes(), true).unwrap(), true).unwrap(), path);
        }
        assert_eq!(uri_of_path(br"\\?\C:\x", true).unwrap(), "file:///c:/x");
        assert_eq!(uri_of_path(br"a\b", true), None);
    }

    #[test]
    fn elsewhere_a_host_has_no_path() {
        assert_eq!(native("file://server/share/x", false), None);
        assert_eq!(native("file:///home/me/a%20b", false).unwrap(), "/home/me/a b");
        assert_eq!(native("file:///a%00b", false), None);
        assert_eq!(native("file:", false), None);
        assert_eq!(uri_of_path(b"a/b", false), None);
    }

    #[cfg(unix)]
    proptest! {
        /// Any absolute path, also one that is no UTF-8, survives the way to a URI and back.
        #[test]
        fn paths_survive_the_round_trip(tail in prop::collection::vec(1u8..=255, 0..24)) {
            let path = bytes_path([b"/p".as_slice(), &tail].concat()).unwrap();
            let there = DocumentUri::from_path(&path).unwrap();
            prop_assert_eq!(there.to_path().unwrap(), path);
            prop_assert_eq!(&uri(there.as_str()), &there);
        }
    }

    proptest! {
        /// No text panics, and a typed `Url` of the same text is the same document.
        #[test]
        fn a_typed_url_is_the_same_document(tail in "[ -~é漢]{0,16}") {
            let parsed = uri(&format!("agents:/{tail}"));
            if let Some(url) = parsed.to_url() {
                prop_assert!(DocumentUri::parse(url.as_str()).is_ok());
            }
            let _ = DocumentUri::parse(&tail);
        }
    }
}
