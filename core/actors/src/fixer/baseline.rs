//! What the servers said before, in a form that is small enough to be kept with every step.

use std::collections::BTreeMap;

use agents_domain::QualifiedName;
use agents_domain::diagnostics::{Diagnostic, Severity};
use agents_domain::ids::ResourceId;
use agents_domain::ports::language_servers::FileDiagnostics;
use serde::{Deserialize, Serialize};

use super::group::PlannedGroup;

/// Diagnostics by fingerprint, with how often each occurs. A fingerprint is the severity's letter and 16 hexadecimal
/// digits; lines and columns are no part of it, so that it survives when the lines around it move.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Prints(pub BTreeMap<String, u32>);

impl Prints {
    /// Those of a file.
    pub fn of(diagnostics: &[Diagnostic]) -> Self {
        let mut prints = BTreeMap::new();
        for diagnostic in diagnostics {
            *prints.entry(print(diagnostic)).or_insert(0) += 1;
        }
        Self(prints)
    }

    /// The diagnostics that are more than these: of each fingerprint the last ones.
    pub fn news<'d>(&self, diagnostics: &'d [Diagnostic]) -> Vec<&'d Diagnostic> {
        let mut left = self.0.clone();
        let is_new = |diagnostic: &&Diagnostic| match left.get_mut(&print(diagnostic)) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        };
        diagnostics.iter().filter(is_new).collect()
    }
}

/// The fingerprint of a diagnostic.
pub(super) fn print(diagnostic: &Diagnostic) -> String {
    let (source, code, message, severity) = diagnostic.fingerprint();
    let letter = match severity {
        Severity::Error => 'E',
        Severity::Warning => 'W',
        Severity::Information => 'I',
        Severity::Hint => 'H',
    };
    // FNV-1a, which is the same on every machine and in every version.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for part in [source.unwrap_or("\u{1}"), code.unwrap_or("\u{1}"), message] {
        for byte in part.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{letter}{hash:016x}")
}

/// What was known of a workspace when Strategize looked at it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SurveyedWorkspace {
    /// The resource.
    pub resource_id: ResourceId,
    /// Its name.
    pub name: String,
    /// It must not be changed.
    pub read_only: bool,
    /// The files that servers were asked about, sorted.
    pub files: Vec<String>,
    /// Which of these got no answer.
    pub unchecked: Vec<Unchecked>,
    /// What was found, by file and server; a file that was answered for and is not here is clean.
    pub found: BTreeMap<String, BTreeMap<String, Prints>>,
}

/// Files that a server did not answer for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Unchecked {
    /// The server.
    pub server: String,
    /// Why, for people.
    pub reason: String,
    /// The files, sorted.
    pub paths: Vec<String>,
}

impl SurveyedWorkspace {
    /// What a server had said about a file; `None` when it was not asked or did not answer.
    pub fn prints(&self, path: &str, server: &str) -> Option<Prints> {
        self.files.binary_search_by(|file| file.as_str().cmp(path)).ok()?;
        let missing = |unchecked: &Unchecked| {
            unchecked.server == server
                && unchecked.paths.binary_search_by(|file| file.as_str().cmp(path)).is_ok()
        };
        if self.unchecked.iter().any(missing) {
            return None;
        }
        Some(self.found.get(path).and_then(|servers| servers.get(server)).cloned().unwrap_or_default())
    }
}

/// What Strategize leaves for Execute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Handover {
    /// Of this structure.
    pub version: u32,
    /// The mildest severity that counts as a finding.
    pub severity: Severity,
    /// The workspaces that were looked at.
    pub workspaces: Vec<SurveyedWorkspace>,
    /// The groups with a decision.
    pub groups: Vec<PlannedGroup>,
    /// Findings for which nothing is offered.
    pub without_option: u32,
    /// Findings in what must not be changed.
    pub read_only: u32,
    /// Findings in files that an invariant keeps as they are.
    #[serde(default)]
    pub kept: u32,
}

/// The version of [`Handover`] that this code writes and reads.
pub(super) const HANDOVER_VERSION: u32 = 2;

/// What changed since, by workspace, file and server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Overlay(BTreeMap<ResourceId, BTreeMap<String, BTreeMap<String, Prints>>>);

impl Overlay {
    /// What is known of a file and server, if anything.
    pub fn get(&self, resource: ResourceId, path: &str, server: &str) -> Option<&Prints> {
        self.0.get(&resource)?.get(path)?.get(server)
    }

    /// Notes what a server says now.
    pub fn set(&mut self, resource: ResourceId, path: &str, server: &QualifiedName, prints: Prints) {
        let files = self.0.entry(resource).or_default();
        files.entry(path.to_owned()).or_default().insert(server.to_string(), prints);
    }

    /// The files of a workspace with something found in them.
    pub fn paths_with_findings(&self, resource: ResourceId) -> impl Iterator<Item = &String> {
        let files = self.0.get(&resource).into_iter().flatten();
        files.filter(|(_, servers)| servers.values().any(|prints| !prints.0.is_empty())).map(|(path, _)| path)
    }
}

/// What servers say about files, by file.
pub(super) type Answers = BTreeMap<String, Vec<FileDiagnostics>>;

#[cfg(test)]
mod tests {
    use super::*;
    use agents_domain::text::Range;
    use proptest::prelude::*;
    use serde_json::Value;

    fn diagnostic(message: &str, line: u32, severity: Severity) -> Diagnostic {
        Diagnostic {
            range: Range::new((line, 0), (line, 1)),
            severity,
            code: None,
            source: Some("s".to_owned()),
            message: message.to_owned(),
            raw: Value::Null,
        }
    }

    #[test]
    fn what_moved_is_not_new_and_one_more_of_the_same_is() {
        let before = [diagnostic("a", 1, Severity::Error)];
        let after = [diagnostic("a", 9, Severity::Error), diagnostic("a", 12, Severity::Error)];
        let news = Prints::of(&before).news(&after);
        assert_eq!(news.iter().map(|d| d.range.start.line).collect::<Vec<_>>(), [12]);
    }

    #[test]
    fn a_fingerprint_never_changes_its_form() {
        assert_eq!(print(&diagnostic("a", 1, Severity::Warning)), "Wb038b0c20abad66e");
        assert_ne!(
            print(&diagnostic("a", 1, Severity::Warning)),
            print(&diagnostic("a", 1, Severity::Error))
        );
    }

    // LSP-032: an unanswered file is not a clean one.
    #[test]
    fn clean_unanswered_and_unasked_differ() {
        let workspace = SurveyedWorkspace {
            resource_id: "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap(),
            name: "local/r".to_owned(),
            read_only: false,
            files: vec!["a".to_owned(), "b".to_owned()],
            unchecked: vec![Unchecked {
                server: "local/s".to_owned(),
                reason: "died".to_owned(),
                paths: vec!["b".to_owned()],
            }],
            found: BTreeMap::new(),
        };
        assert_eq!(workspace.prints("a", "local/s"), Some(Prints::default()));
        assert_eq!(workspace.prints("b", "local/s"), None);
        assert_eq!(workspace.prints("b", "local/t"), Some(Prints::default()));
        assert_eq!(workspace.prints("c", "local/s"), None);
    }

    proptest! {
        #[test]
        fn news_are_what_is_left_when_the_old_is_taken_away(
            before in proptest::collection::vec(0u8..4, 0..12),
            after in proptest::collection::vec(0u8..4, 0..12),
        ) {
            let of = |kinds: &[u8]| -> Vec<Diagnostic> {
                kinds.iter().map(|kind| diagnostic(&kind.to_string(), 0, Severity::Error)).collect()
            };
            let after_diagnostics = of(&after);
            let before_prints = Prints::of(&of(&before));
            let news = before_prints.news(&after_diagnostics);
            let count = |kinds: &[u8], kind: u8| kinds.iter().filter(|k| **k == kind).count();
            for kind in 0..4 {
                let new = news.iter().filter(|d| d.message == kind.to_string()).count();
                prop_assert_eq!(new, count(&after, kind).saturating_sub(count(&before, kind)));
            }
        }
    }
}
