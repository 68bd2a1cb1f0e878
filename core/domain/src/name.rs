//! Qualified names: `[[server:]namespace/]name`, the identity of everything a person registers.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The namespace a name gets when it has none.
pub const LOCAL_NAMESPACE: &str = "local";

/// A name such as `local/fix-diagnostics`, `builtin/fixer` or `prod:acme/deploy`.
///
/// Each part has letters, digits, `_`, `-` and, in the last part, `.`; it starts with a letter or a digit and has at
/// most 128 characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct QualifiedName {
    server: Option<String>,
    namespace: String,
    name: String,
}

/// A text that is not a qualified name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a name: {reason}; expected [[server:]namespace/]name with letters, digits, `-` and `_` (and `.` in the name), such as local/my-name"
)]
pub struct InvalidName {
    /// What was given.
    pub text: String,
    /// Which rule it breaks.
    pub reason: &'static str,
}

impl QualifiedName {
    /// Parses a name, giving it `namespace` when it has none.
    pub fn parse_in(text: &str, namespace: &str) -> Result<Self, InvalidName> {
        let invalid = |reason| InvalidName { text: text.to_owned(), reason };
        let (server, rest) = match text.split_once(':') {
            Some((server, rest)) => (Some(server), rest),
            None => (None, text),
        };
        let (namespace, name) = match rest.split_once('/') {
            Some(parts) => parts,
            None if server.is_some() => return Err(invalid("a server needs a namespace after it")),
            None => (namespace, rest),
        };
        if let Some(server) = server {
            check_part(server, false).map_err(invalid)?;
        }
        check_part(namespace, false).map_err(invalid)?;
        check_part(name, true).map_err(invalid)?;
        Ok(Self { server: server.map(str::to_owned), namespace: namespace.to_owned(), name: name.to_owned() })
    }

    /// The server part, when the name has one.
    pub fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    /// The namespace, such as `local` or `builtin`.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The last part.
    pub fn name(&self) -> &str {
        &self.name
    }
}

fn check_part(part: &str, dots: bool) -> Result<(), &'static str> {
    let mut chars = part.chars();
    match chars.next() {
        None => return Err("a part of it is empty"),
        Some(first) if !first.is_ascii_alphanumeric() => {
            return Err("a part must start with a letter or a digit");
        }
        Some(_) => {}
    }
    if part.len() > 128 {
        return Err("a part is longer than 128 characters");
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || (dots && c == '.');
    if chars.all(allowed) { Ok(()) } else { Err("it has a character that is not allowed") }
}

impl fmt::Display for QualifiedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(server) = &self.server {
            write!(f, "{server}:")?;
        }
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl FromStr for QualifiedName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        Self::parse_in(text, LOCAL_NAMESPACE)
    }
}

impl TryFrom<String> for QualifiedName {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<Self, InvalidName> {
        text.parse()
    }
}

impl From<QualifiedName> for String {
    fn from(name: QualifiedName) -> String {
        name.to_string()
    }
}

impl JsonSchema for QualifiedName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "QualifiedName".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "pattern": "^(([A-Za-z0-9][A-Za-z0-9_-]*:)?[A-Za-z0-9][A-Za-z0-9_-]*/)?[A-Za-z0-9][A-Za-z0-9_.-]*$",
            "description": "[[server:]namespace/]name; a missing namespace means `local`."
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // ACT-005, COM-009, CLI-025
    #[test]
    fn a_missing_namespace_means_local() {
        let name: QualifiedName = "code-coverage".parse().unwrap();
        assert_eq!(name.to_string(), "local/code-coverage");
        assert_eq!(QualifiedName::parse_in("x", "acme").unwrap().to_string(), "acme/x");
    }

    // NS-001
    #[test]
    fn server_namespace_and_dots_are_kept() {
        let name: QualifiedName = "prod:acme/claude-3.5-sonnet".parse().unwrap();
        assert_eq!(
            (name.server(), name.namespace(), name.name()),
            (Some("prod"), "acme", "claude-3.5-sonnet")
        );
    }

    #[test]
    fn bad_names_are_refused_with_the_rule_they_break() {
        for bad in ["", "/", "a/", "/a", "a/b/c", "srv:x", "a b/c", "-a/b", "a/../b", "ä/b", "a/.."] {
            let error = bad.parse::<QualifiedName>().unwrap_err();
            assert!(error.to_string().contains("expected [[server:]namespace/]name"), "{bad}: {error}");
        }
    }
}
