//! What is wrong in a file, at which place, and how it becomes the facade's error.

use std::fmt;
use std::io::Read;
use std::path::Path;

use agents_domain::ports::store::ELSEWHERE;
use agents_domain::text::{LineIndex, Range, TextEdit};
use agents_domain::{Error, ErrorKind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The largest file that is read: 1 MiB. Hand-written files are a thousand times smaller.
pub const MAX_FILE_BYTES: usize = 1024 * 1024;

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The file cannot be used.
    Error,
    /// It can be used, but does not mean what it seems to say.
    Warning,
    /// It can be written better.
    Hint,
}

/// Something wrong in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong and what would be right.
    pub message: String,
    /// The key it is about, such as `arguments[1].default`; empty for the file as a whole.
    pub field_path: String,
    /// The offending key or value.
    pub range: Range,
    /// The file, as given.
    pub file: String,
    /// What mends it, where that is known.
    #[serde(skip)]
    pub fix: Option<Fix>,
}

/// A change of a file that mends a problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    /// What it does, such as "Write `arguments`".
    pub title: String,
    /// The one edit that does it.
    pub edit: TextEdit,
}

impl fmt::Display for Problem {
    /// `file:line:column: message`, 1-based.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = self.range.start;
        write!(f, "{}:{}:{}: {}", self.file, start.line + 1, start.column + 1, self.message)
    }
}

/// The facade's error for a file that cannot be used: the message is the one problem, or how many there are; several are
/// the detail, and `data.problems` has them as a list.
pub fn to_error(problems: &[Problem]) -> Error {
    error_of(ErrorKind::ValidationFailed, problems)
}

pub(crate) fn error_of(kind: ErrorKind, problems: &[Problem]) -> Error {
    let mut errors: Vec<&Problem> = problems.iter().filter(|p| p.severity == Severity::Error).collect();
    errors.sort_by_key(|p| p.range);
    let message = match errors[..] {
        [] => "the file cannot be used".to_owned(),
        [one] => one.to_string(),
        [first, ..] => format!("{} cannot be used: there are {} problems in it", first.file, errors.len()),
    };
    let mut error = Error::new(kind, message).data(serde_json::json!({ "problems": errors }));
    if errors.len() > 1 {
        error = error.detail(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
    }
    error
}

/// The text of a file's bytes, or the one problem that keeps them from being text.
pub fn decode<'a>(bytes: &'a [u8], file: &str) -> std::result::Result<&'a str, Problem> {
    let problem = |message: String, range| Problem {
        severity: Severity::Error,
        message,
        field_path: String::new(),
        range,
        file: file.to_owned(),
        fix: None,
    };
    if bytes.len() > MAX_FILE_BYTES {
        return Err(problem(too_large(), Range::default()));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        let at = LineIndex::new(&valid).position(valid.len());
        let byte = bytes.get(error.valid_up_to()).copied().unwrap_or_default();
        problem(
            format!("the file is not UTF-8: the byte 0x{byte:02X} here is not part of a character"),
            Range { start: at, end: at },
        )
    })
}

pub(crate) fn too_large() -> String {
    format!("the file is larger than {MAX_FILE_BYTES} bytes")
}

/// Reads a file a person named: at most [`MAX_FILE_BYTES`], UTF-8. Errors name the file.
pub fn read_file(path: &Path) -> Result<String> {
    let shown = path.display().to_string();
    let io = |error: std::io::Error| {
        let kind =
            if error.kind() == std::io::ErrorKind::NotFound { ErrorKind::NotFound } else { ErrorKind::Io };
        Error::new(kind, format!("{shown}: {}", io_words(&error)))
    };
    if path.as_os_str().is_empty() {
        return Err(Error::new(ErrorKind::Usage, "the name of the file is empty"));
    }
    let file = std::fs::File::open(path).map_err(io)?;
    if file.metadata().map_err(io)?.is_dir() {
        return Err(Error::new(ErrorKind::Io, format!("{shown}: it is a directory, not a file")));
    }
    let mut bytes = Vec::new();
    // One byte more than allowed tells a file that is too large from one that just fits, also for pipes.
    file.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(io)?;
    decode(&bytes, &shown).map(str::to_owned).map_err(|problem| to_error(&[problem]))
}

/// As [`read_file`], for a file that is read without being asked for: one that would be waited for is refused.
pub fn read_settings(path: &Path) -> Result<String> {
    let kind = std::fs::metadata(path).map(|found| found.file_type());
    if kind.is_ok_and(|kind| !kind.is_file() && !kind.is_dir() && path != Path::new("/dev/null")) {
        let message = format!("{}: it is a pipe or a device, not a file", path.display());
        return Err(Error::new(ErrorKind::Io, message));
    }
    read_file(path).map_err(|error| match error.kind {
        ErrorKind::Io => error.suggest("name another: --config-path <PATH>").suggest(ELSEWHERE),
        _ => error,
    })
}

/// What an I/O error says, in the words people know.
fn io_words(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "it may not be read (permission denied)".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_utf8_are_refused_at_their_place() {
        let problem = decode(b"name: local/a\ndescription: caf\xe9\n", "a.yaml").unwrap_err();
        assert_eq!(
            problem.to_string(),
            "a.yaml:2:17: the file is not UTF-8: the byte 0xE9 here is not part of a character"
        );
    }

    #[test]
    fn the_size_limit_is_exact() {
        assert!(decode(&vec![b'#'; MAX_FILE_BYTES], "a").is_ok());
        assert!(
            decode(&vec![b'#'; MAX_FILE_BYTES + 1], "a").unwrap_err().message.contains("larger than 1048576")
        );
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named_with_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let missing = read_file(&dir.path().join("no.yaml")).unwrap_err();
        assert_eq!(missing.kind, ErrorKind::NotFound);
        assert!(missing.message.ends_with("no.yaml: there is no such file"), "{missing}");
        assert!(read_file(dir.path()).unwrap_err().message.ends_with("it is a directory, not a file"));
        let large = dir.path().join("large.yaml");
        std::fs::write(&large, vec![b'x'; 10 * 1024 * 1024]).unwrap();
        assert!(read_file(&large).unwrap_err().message.contains("larger than"));
    }
}
