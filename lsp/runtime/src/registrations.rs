//! What a server registers after its start: pulled diagnostics, watched files, saves.

use std::collections::BTreeMap;
use std::path::Path;

use agents_domain::ports::language_servers::FileEventKind;
use globset::{GlobBuilder, GlobMatcher};
use serde_json::Value;

use crate::uri;

/// Nobody needs more; a server that loops must not fill the memory.
const MAX_REGISTRATIONS: usize = 4096;

/// The registrations in force, by their id.
#[derive(Debug, Default)]
pub(crate) struct Registrations {
    by_id: BTreeMap<String, Registration>,
}

#[derive(Debug)]
enum Registration {
    Pull { identifier: Option<String>, selector: Selector },
    Saves,
    Watch(Vec<Watcher>),
}

impl Registrations {
    /// Takes the parameters of `client/registerCapability`; methods of no use to us are dropped.
    pub(crate) fn add(&mut self, params: &Value) {
        for item in params["registrations"].as_array().into_iter().flatten() {
            let (Some(id), Some(method)) = (item["id"].as_str(), item["method"].as_str()) else { continue };
            let options = &item["registerOptions"];
            let registration = match method {
                "textDocument/diagnostic" => Registration::Pull {
                    identifier: options["identifier"].as_str().map(str::to_owned),
                    selector: Selector::read(&options["documentSelector"]),
                },
                "textDocument/didSave" => Registration::Saves,
                "workspace/didChangeWatchedFiles" => Registration::Watch(
                    options["watchers"].as_array().into_iter().flatten().filter_map(Watcher::read).collect(),
                ),
                _ => continue,
            };
            if self.by_id.len() < MAX_REGISTRATIONS || self.by_id.contains_key(id) {
                self.by_id.insert(id.to_owned(), registration);
            }
        }
    }

    /// Takes the parameters of `client/unregisterCapability`, whose key the protocol misspells.
    pub(crate) fn remove(&mut self, params: &Value) {
        let items = [&params["unregisterations"], &params["unregistrations"]];
        for item in items.into_iter().filter_map(Value::as_array).flatten() {
            if let Some(id) = item["id"].as_str() {
                self.by_id.remove(id);
            }
        }
    }

    /// The identifiers of pull providers registered for a language.
    pub(crate) fn pulls(&self, language: &str) -> Vec<Option<String>> {
        let pull = |registration: &Registration| match registration {
            Registration::Pull { identifier, selector } if selector.takes(language) => {
                Some(identifier.clone())
            }
            _ => None,
        };
        self.by_id.values().filter_map(pull).collect()
    }

    /// Whether any pull provider was registered.
    pub(crate) fn any_pull(&self) -> bool {
        self.by_id.values().any(|registration| matches!(registration, Registration::Pull { .. }))
    }

    pub(crate) fn saves(&self) -> bool {
        self.by_id.values().any(|registration| matches!(registration, Registration::Saves))
    }

    /// Whether the server wants to hear of a change to a file.
    pub(crate) fn watches(&self, path: &Path, kind: FileEventKind) -> bool {
        self.by_id.values().any(|registration| match registration {
            Registration::Watch(watchers) => watchers.iter().any(|watcher| watcher.wants(path, kind)),
            _ => false,
        })
    }
}

/// A document selector, as far as it tells languages apart; schemes other than `file` never match.
#[derive(Debug)]
enum Selector {
    All,
    Languages(Vec<String>),
}

impl Selector {
    fn read(value: &Value) -> Self {
        let Some(filters) = value.as_array() else { return Self::All };
        let mut languages = Vec::new();
        for filter in filters {
            let language = filter.as_str().or_else(|| filter["language"].as_str());
            match language {
                _ if filter["scheme"].as_str().is_some_and(|scheme| scheme != "file") => {}
                Some("*") | None => return Self::All,
                Some(language) => languages.push(language.to_owned()),
            }
        }
        Self::Languages(languages)
    }

    fn takes(&self, language: &str) -> bool {
        match self {
            Self::All => true,
            Self::Languages(languages) => languages.iter().any(|known| known == language),
        }
    }
}

/// A pattern of files and the kinds of change wanted.
#[derive(Debug)]
struct Watcher {
    base: Option<String>,
    pattern: GlobMatcher,
    /// 1 created, 2 changed, 4 deleted.
    kinds: u64,
}

impl Watcher {
    fn read(value: &Value) -> Option<Self> {
        let glob = &value["globPattern"];
        let pattern = glob.as_str().or_else(|| glob["pattern"].as_str())?;
        let base = &glob["baseUri"];
        let base = base.as_str().or_else(|| base["uri"].as_str()).and_then(uri::to_path);
        let pattern =
            GlobBuilder::new(pattern).literal_separator(true).empty_alternates(true).build().ok()?;
        Some(Self { base, pattern: pattern.compile_matcher(), kinds: value["kind"].as_u64().unwrap_or(7) })
    }

    fn wants(&self, path: &Path, kind: FileEventKind) -> bool {
        let bit = match kind {
            FileEventKind::Created => 1,
            FileEventKind::Changed => 2,
            FileEventKind::Deleted => 4,
        };
        let matches = match &self.base {
            Some(base) => path.strip_prefix(base).is_ok_and(|rest| self.pattern.is_match(rest)),
            None => self.pattern.is_match(path),
        };
        self.kinds & bit != 0 && matches
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn register(id: &str, method: &str, options: Value) -> Value {
        json!({"registrations": [{"id": id, "method": method, "registerOptions": options}]})
    }

    #[test]
    fn watchers_match_by_glob_base_and_kind() {
        let mut registrations = Registrations::default();
        registrations.add(&register(
            "w",
            "workspace/didChangeWatchedFiles",
            json!({"watchers": [
                {"globPattern": "**/*.{py,pyi}"},
                {"globPattern": {"baseUri": "file:///w/sub", "pattern": "*.json"}, "kind": 4},
                {"globPattern": {"baseUri": {"uri": "file:///w", "name": "w"}, "pattern": "**"}, "kind": 1},
                {"globPattern": "[", "kind": 7},
            ]}),
        ));
        let wants = |path: &str, kind| registrations.watches(Path::new(path), kind);
        assert!(wants("/w/a/b.pyi", FileEventKind::Changed));
        assert!(!wants("/w/a/b.rs", FileEventKind::Changed));
        assert!(
            wants("/w/sub/x.json", FileEventKind::Deleted) && !wants("/w/sub/x.json", FileEventKind::Changed)
        );
        assert!(!wants("/w/sub/deep/x.json", FileEventKind::Deleted));
        assert!(wants("/w/x", FileEventKind::Created) && !wants("/v/x", FileEventKind::Created));
        registrations
            .remove(&json!({"unregisterations": [{"id": "w", "method": "workspace/didChangeWatchedFiles"}]}));
        assert!(!registrations.watches(Path::new("/w/a/b.py"), FileEventKind::Changed));
    }

    #[test]
    fn a_pull_provider_serves_the_languages_of_its_selector() {
        let mut registrations = Registrations::default();
        registrations.add(&register("a", "textDocument/diagnostic", json!({"identifier": "x", "documentSelector": [{"language": "python"}, {"language": "rust", "scheme": "untitled"}]})));
        registrations.add(&register("b", "textDocument/diagnostic", json!({"documentSelector": null})));
        assert_eq!(registrations.pulls("python"), [Some("x".to_owned()), None]);
        assert_eq!(registrations.pulls("rust"), [None]);
        registrations.remove(&json!({"unregisterations": [{"id": "b"}]}));
        assert_eq!((registrations.pulls("rust").len(), registrations.any_pull()), (0, true));
    }

    #[test]
    fn registrations_of_odd_shapes_are_ignored() {
        let mut registrations = Registrations::default();
        for odd in [
            Value::Null,
            json!({"registrations": 1}),
            json!({"registrations": [null, {"id": 1, "method": "x"}]}),
            register("x", "textDocument/hover", Value::Null),
        ] {
            registrations.add(&odd);
            registrations.remove(&odd);
        }
        assert!(registrations.by_id.is_empty());
    }
}
