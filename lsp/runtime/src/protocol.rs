//! What the client tells servers about itself, and what it reads from their `initialize` answers.

use std::path::Path;

use agents_domain::language_server::{Capability, LanguageServerDefinition};
use serde_json::{Value, json};

use crate::position::Encoding;
use crate::uri;

/// Error codes of the protocol that mean "ask again".
pub(crate) const CONTENT_MODIFIED: i64 = -32801;
pub(crate) const REQUEST_CANCELLED: i64 = -32800;
pub(crate) const SERVER_CANCELLED: i64 = -32802;
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;

/// The parameters of `initialize`. Every capability named here is really implemented by this crate.
pub(crate) fn initialize_params(root: &Path, init_options: &Value) -> Value {
    let root_uri = uri::from_path(root);
    let name = root.file_name().map_or_else(|| "workspace".into(), |name| name.to_string_lossy());
    let mut params = json!({
        "processId": std::process::id(),
        "clientInfo": { "name": "cleveragents", "version": env!("CARGO_PKG_VERSION") },
        "rootPath": root.to_string_lossy(),
        "rootUri": root_uri,
        "workspaceFolders": [{ "uri": root_uri, "name": name }],
        "capabilities": client_capabilities(),
    });
    if !init_options.is_null() {
        params["initializationOptions"] = init_options.clone();
    }
    params
}

fn client_capabilities() -> Value {
    json!({
        "general": {
            "positionEncodings": ["utf-8", "utf-16", "utf-32"],
            "staleRequestSupport": { "cancel": true, "retryOnContentModified": ["textDocument/diagnostic", "textDocument/codeAction", "codeAction/resolve"] },
        },
        "window": { "workDoneProgress": true, "showMessage": {}, "showDocument": { "support": false } },
        "workspace": {
            "applyEdit": false,
            "configuration": true,
            "workspaceFolders": true,
            "workspaceEdit": {
                "documentChanges": true,
                "resourceOperations": ["create", "rename", "delete"],
                "failureHandling": "abort",
                "normalizesLineEndings": true,
                "changeAnnotationSupport": { "groupsOnLabel": false },
            },
            "symbol": { "resolveSupport": { "properties": ["location.range"] } },
            "didChangeWatchedFiles": { "dynamicRegistration": true, "relativePatternSupport": true },
            "diagnostics": { "refreshSupport": true },
        },
        "textDocument": {
            "synchronization": { "dynamicRegistration": false, "didSave": true },
            "publishDiagnostics": {
                "relatedInformation": true,
                "tagSupport": { "valueSet": [1, 2] },
                "versionSupport": true,
                "codeDescriptionSupport": true,
                "dataSupport": true,
            },
            "diagnostic": {
                "dynamicRegistration": true,
                "relatedDocumentSupport": true,
                "relatedInformation": true,
                "tagSupport": { "valueSet": [1, 2] },
                "codeDescriptionSupport": true,
                "dataSupport": true,
            },
            "formatting": { "dynamicRegistration": false },
            "hover": { "contentFormat": ["markdown", "plaintext"] },
            "completion": {
                "completionItem": { "documentationFormat": ["markdown", "plaintext"], "labelDetailsSupport": true },
                "contextSupport": true,
            },
            "signatureHelp": {
                "signatureInformation": {
                    "documentationFormat": ["markdown", "plaintext"],
                    "parameterInformation": { "labelOffsetSupport": true },
                    "activeParameterSupport": true,
                },
            },
            "definition": { "linkSupport": true },
            "typeDefinition": { "linkSupport": true },
            "implementation": { "linkSupport": true },
            "references": {},
            "callHierarchy": {},
            "typeHierarchy": {},
            "rename": { "prepareSupport": true, "honorsChangeAnnotations": true },
            "documentSymbol": { "hierarchicalDocumentSymbolSupport": true },
            "codeAction": {
                "dynamicRegistration": false,
                "codeActionLiteralSupport": { "codeActionKind": { "valueSet": ["", "quickfix", "refactor", "source", "source.organizeImports"] } },
                "isPreferredSupport": true,
                "disabledSupport": true,
                "dataSupport": true,
                "resolveSupport": { "properties": ["edit", "command"] },
                "honorsChangeAnnotations": true,
            },
        },
        // rust-analyzer's word for "I have read the project".
        "experimental": { "serverStatusNotification": true },
    })
}

/// What an `initialize` answer says; whatever is missing or of a wrong type means "not offered".
#[derive(Debug, Clone)]
pub(crate) struct ServerFacts {
    pub(crate) name: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) capabilities: Value,
    pub(crate) encoding: Encoding,
    /// Takes `didChange`; else a change is shown by closing and opening.
    pub(crate) takes_changes: bool,
    pub(crate) wants_saves: bool,
    pub(crate) wants_saved_text: bool,
    pub(crate) resolves_actions: bool,
    /// The static pull provider, with its identifier.
    pub(crate) pull: Option<Option<String>>,
}

impl ServerFacts {
    pub(crate) fn read(result: &Value) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let capabilities = &result["capabilities"];
        let sync = &capabilities["textDocumentSync"];
        let kind = if sync.is_object() { &sync["change"] } else { sync };
        // A number; some servers send the name instead.
        let takes_changes = kind.as_u64().is_some_and(|kind| kind > 0) || kind.is_string();
        let pull = offered(&capabilities["diagnosticProvider"])
            .then(|| text(&capabilities["diagnosticProvider"]["identifier"]));
        Self {
            name: text(&result["serverInfo"]["name"]),
            version: text(&result["serverInfo"]["version"]),
            encoding: Encoding::named(capabilities["positionEncoding"].as_str()),
            takes_changes,
            wants_saves: offered(&sync["save"]),
            wants_saved_text: sync["save"]["includeText"] == true,
            resolves_actions: capabilities["codeActionProvider"]["resolveProvider"] == true,
            pull,
            capabilities: capabilities.clone(),
        }
    }

    /// Name and version for people.
    pub(crate) fn info(&self) -> Option<String> {
        let name = self.name.as_deref()?;
        Some(self.version.as_deref().map_or_else(|| name.to_owned(), |version| format!("{name} {version}")))
    }

    /// The names of all capabilities offered, as the protocol spells them, sorted.
    pub(crate) fn advertised(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .capabilities
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(_, value)| offered(value))
            .map(|(name, _)| name.clone())
            .collect();
        names.sort();
        names
    }

    /// What is lent: declared and offered. Diagnostics need no offer, servers push them unasked.
    pub(crate) fn lent(&self, definition: &LanguageServerDefinition) -> Vec<Capability> {
        use Capability as C;
        const PROVIDERS: [(C, &str); 10] = [
            (C::Hover, "hoverProvider"),
            (C::Completions, "completionProvider"),
            (C::References, "referencesProvider"),
            (C::Definitions, "definitionProvider"),
            (C::Rename, "renameProvider"),
            (C::CodeActions, "codeActionProvider"),
            (C::Formatting, "documentFormattingProvider"),
            (C::SignatureHelp, "signatureHelpProvider"),
            (C::DocumentSymbols, "documentSymbolProvider"),
            (C::WorkspaceSymbols, "workspaceSymbolProvider"),
        ];
        let providers = PROVIDERS
            .into_iter()
            .filter(|(_, provider)| offered(&self.capabilities[*provider]))
            .map(|(capability, _)| capability);
        std::iter::once(C::Diagnostics)
            .chain(providers)
            .filter(|capability| definition.lends(*capability))
            .collect()
    }
}

/// Whether a provider in the capabilities means that the server does it.
pub(crate) fn offered(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_initialize_answers_are_read_as_far_as_they_go() {
        for (sync, changes) in [
            (json!(1), true),
            (json!(0), false),
            (Value::Null, false),
            (json!("full"), true),
            (json!({"change": 2, "save": {}}), true),
            (json!([]), false),
        ] {
            let facts = ServerFacts::read(&json!({"capabilities": {"textDocumentSync": sync}}));
            assert_eq!(facts.takes_changes, changes, "{sync}");
            assert_eq!(facts.encoding, Encoding::Utf16);
        }
        let facts = ServerFacts::read(&Value::Null);
        assert_eq!((facts.info(), facts.pull, facts.resolves_actions), (None, None, false));
        let facts = ServerFacts::read(&json!({"capabilities": {"diagnosticProvider": {"identifier": "x"}}}));
        assert_eq!(facts.pull, Some(Some("x".to_owned())));
    }

    // LSP-009
    #[test]
    fn what_is_lent_is_declared_and_offered_and_diagnostics_need_no_offer() {
        let facts = ServerFacts::read(
            &json!({"capabilities": {"hoverProvider": {}, "renameProvider": false, "workspaceSymbolProvider": true}}),
        );
        let mut definition: LanguageServerDefinition =
            serde_json::from_value(json!({"name": "local/x", "languages": ["c"], "command": "x"})).unwrap();
        assert_eq!(
            facts.lent(&definition),
            [Capability::Diagnostics, Capability::Hover, Capability::WorkspaceSymbols]
        );
        definition.capabilities = Some(vec![Capability::Symbols, Capability::Rename]);
        assert_eq!(facts.lent(&definition), [Capability::WorkspaceSymbols]);
    }
}
