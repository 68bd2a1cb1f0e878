//! Which requests can be proxied, who answers them, and what servers and clients call them.

use agents_domain::language_server::Capability;

/// Who answers when several servers could.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// All, into one answer.
    Merge,
    /// The first with a useful answer.
    First,
    /// One server: the one configured, else the first that has the feature.
    Owner,
}

/// For which documents our own features answer, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Own {
    No,
    All,
    /// Those they register themselves for.
    Some,
}

/// A request of the protocol.
#[derive(Debug)]
pub(crate) struct Feature {
    pub method: &'static str,
    /// Its key in a server's capabilities.
    pub provider: &'static str,
    /// What the provider must say to have it, as a JSON pointer; empty for being there.
    pub needs: &'static str,
    /// What a registry entry must lend.
    pub lends: Option<Capability>,
    pub strategy: Strategy,
    pub own: Own,
    /// The name it is registered by.
    pub registered: &'static str,
}

impl Feature {
    /// Whether an answer may leave out what is slow, because the next one is only a key away.
    pub fn is_impatient(&self) -> bool {
        matches!(
            self.method,
            "textDocument/hover"
                | "textDocument/completion"
                | "textDocument/codeAction"
                | "textDocument/codeLens"
                | "textDocument/inlayHint"
                | "textDocument/documentLink"
                | "textDocument/documentColor"
        )
    }

    /// Whether its answer is a list that may come in pieces.
    pub fn is_list(&self) -> bool {
        self.strategy == Strategy::Merge
            && !matches!(self.method, "textDocument/hover" | "textDocument/completion")
    }
}

/// The feature of a method.
pub(crate) fn of(method: &str) -> Option<&'static Feature> {
    FEATURES.iter().find(|feature| feature.method == method)
}

/// The request whose answer held the item that another request is about.
pub(crate) fn parent(method: &str) -> Option<&'static str> {
    Some(match method {
        "completionItem/resolve" => "textDocument/completion",
        "codeAction/resolve" => "textDocument/codeAction",
        "codeLens/resolve" => "textDocument/codeLens",
        "documentLink/resolve" => "textDocument/documentLink",
        "inlayHint/resolve" => "textDocument/inlayHint",
        "workspaceSymbol/resolve" => "workspace/symbol",
        "callHierarchy/incomingCalls" | "callHierarchy/outgoingCalls" => "textDocument/prepareCallHierarchy",
        "typeHierarchy/supertypes" | "typeHierarchy/subtypes" => "textDocument/prepareTypeHierarchy",
        _ => return None,
    })
}

use Capability::*;
use Strategy::{First, Merge, Owner};

const fn feature(
    method: &'static str,
    provider: &'static str,
    lends: Option<Capability>,
    strategy: Strategy,
) -> Feature {
    Feature { method, provider, needs: "", lends, strategy, own: Own::No, registered: method }
}

/// One that our own features have for some documents.
const fn both(
    method: &'static str,
    provider: &'static str,
    lends: Option<Capability>,
    strategy: Strategy,
) -> Feature {
    Feature { method, provider, needs: "", lends, strategy, own: Own::Some, registered: method }
}

const fn own(method: &'static str, provider: &'static str, lends: Option<Capability>) -> Feature {
    Feature { method, provider, needs: "", lends, strategy: Merge, own: Own::All, registered: method }
}

const fn part(
    method: &'static str,
    provider: &'static str,
    needs: &'static str,
    lends: Option<Capability>,
    registered: &'static str,
) -> Feature {
    Feature { method, provider, needs, lends, strategy: Owner, own: Own::No, registered }
}

const TOKENS: &str = "textDocument/semanticTokens";

/// All of them; of several of one provider the plain one comes first.
pub(crate) static FEATURES: &[Feature] = &[
    own("textDocument/hover", "hoverProvider", Some(Hover)),
    own("textDocument/codeAction", "codeActionProvider", Some(CodeActions)),
    own("textDocument/codeLens", "codeLensProvider", None),
    own("textDocument/inlayHint", "inlayHintProvider", None),
    both("textDocument/completion", "completionProvider", Some(Completions), Merge),
    both("textDocument/references", "referencesProvider", Some(References), Merge),
    both("textDocument/documentLink", "documentLinkProvider", None, Merge),
    feature("textDocument/documentColor", "colorProvider", None, Merge),
    feature("workspace/symbol", "workspaceSymbolProvider", Some(WorkspaceSymbols), Merge),
    feature("textDocument/signatureHelp", "signatureHelpProvider", Some(SignatureHelp), First),
    both("textDocument/definition", "definitionProvider", Some(Definitions), First),
    feature("textDocument/declaration", "declarationProvider", Some(Definitions), First),
    feature("textDocument/typeDefinition", "typeDefinitionProvider", Some(Definitions), First),
    feature("textDocument/implementation", "implementationProvider", Some(Definitions), First),
    feature("textDocument/documentHighlight", "documentHighlightProvider", Some(References), First),
    both("textDocument/documentSymbol", "documentSymbolProvider", Some(DocumentSymbols), First),
    feature("textDocument/foldingRange", "foldingRangeProvider", None, First),
    feature("textDocument/selectionRange", "selectionRangeProvider", None, First),
    feature("textDocument/linkedEditingRange", "linkedEditingRangeProvider", None, First),
    feature("textDocument/colorPresentation", "colorProvider", None, First),
    feature("textDocument/prepareCallHierarchy", "callHierarchyProvider", Some(References), First),
    feature("textDocument/prepareTypeHierarchy", "typeHierarchyProvider", Some(References), First),
    feature("textDocument/inlineValue", "inlineValueProvider", None, First),
    feature("textDocument/moniker", "monikerProvider", None, First),
    feature("textDocument/formatting", "documentFormattingProvider", Some(Formatting), Owner),
    feature("textDocument/rangeFormatting", "documentRangeFormattingProvider", Some(Formatting), Owner),
    feature("textDocument/onTypeFormatting", "documentOnTypeFormattingProvider", Some(Formatting), Owner),
    both("textDocument/rename", "renameProvider", Some(Rename), Owner),
    Feature {
        own: Own::Some,
        ..part(
            "textDocument/prepareRename",
            "renameProvider",
            "/prepareProvider",
            Some(Rename),
            "textDocument/rename",
        )
    },
    part("textDocument/semanticTokens/full", "semanticTokensProvider", "/full", None, TOKENS),
    part("textDocument/semanticTokens/full/delta", "semanticTokensProvider", "/full/delta", None, TOKENS),
    part("textDocument/semanticTokens/range", "semanticTokensProvider", "/range", None, TOKENS),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_is_there_once_and_every_parent_is_one_of_them() {
        for feature in FEATURES {
            assert_eq!(FEATURES.iter().filter(|other| other.method == feature.method).count(), 1);
        }
        for child in ["completionItem/resolve", "callHierarchy/incomingCalls", "workspaceSymbol/resolve"] {
            assert!(parent(child).and_then(of).is_some(), "{child}");
        }
    }
}
