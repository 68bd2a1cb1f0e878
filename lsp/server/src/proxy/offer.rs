//! What the client is told that there is. Before any server runs: the most that the registered ones may have, to clients
//! that take no registrations; to the others each feature is registered when a server that has it is up.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use agents_domain::language_server::LanguageServerDefinition;
use serde_json::{Value, json};

use super::features::{FEATURES, Feature, Own};
use super::{Proxy, State, merge, tokens};
use crate::ClientInfo;
use crate::requests::entity::LANGUAGES;

/// What was offered.
pub(crate) struct Offered {
    /// Told at the start, by the name of registration.
    plain: HashSet<&'static str>,
    /// Registered with the client, by id.
    registered: BTreeMap<String, Value>,
}

impl Offered {
    pub fn new(servers: &[LanguageServerDefinition], client: &ClientInfo) -> Self {
        let lent = |feature: &&Feature| {
            feature.lends.is_none_or(|lent| servers.iter().any(|server| server.lends(lent)))
        };
        let plain = FEATURES
            .iter()
            .filter(lent)
            .filter(|feature| {
                feature.own != Own::All && !is_dynamic(client, feature) && client.supports(&pointer(feature))
            })
            .map(|feature| feature.registered);
        Self { plain: plain.collect(), registered: BTreeMap::new() }
    }

    /// Whether a feature was told before it was known what servers say of it.
    pub fn is_plain(&self, registered: &str) -> bool {
        self.plain.contains(registered)
    }

    /// What the answer to `initialize` holds for the proxy.
    pub fn capabilities(&self, client: &ClientInfo) -> Value {
        let mut offered = json!({
            "codeLensProvider": { "resolveProvider": true },
            "inlayHintProvider": { "resolveProvider": true },
            "executeCommandProvider": { "commands": [merge::RUN] },
        });
        if client.supports("/textDocument/codeAction/codeActionLiteralSupport") {
            offered["codeActionProvider"] = json!({
                "codeActionKinds": ["quickfix", "refactor", "source", "source.organizeImports", "source.fixAll"],
                "resolveProvider": true,
            });
        }
        for feature in FEATURES.iter().filter(|feature| self.is_plain(feature.registered)) {
            let options = match feature.registered {
                "textDocument/completion" => json!({
                    "triggerCharacters": [".", ":", ">", "\"", "'", "/", "@", "<"], "resolveProvider": true,
                }),
                "textDocument/signatureHelp" => json!({ "triggerCharacters": ["(", ","] }),
                "textDocument/documentLink" => json!({ "resolveProvider": true }),
                "textDocument/rename" if client.supports("/textDocument/rename/prepareSupport") => {
                    json!({ "prepareProvider": true })
                }
                "textDocument/semanticTokens" => tokens::plain_options(),
                "textDocument/onTypeFormatting" => continue,
                _ => json!(true),
            };
            offered[feature.provider] = options;
        }
        offered
    }
}

fn pointer(feature: &Feature) -> String {
    match feature.registered {
        "textDocument/prepareCallHierarchy" => "/textDocument/callHierarchy".to_owned(),
        "textDocument/prepareTypeHierarchy" => "/textDocument/typeHierarchy".to_owned(),
        "textDocument/documentColor" | "textDocument/colorPresentation" => {
            "/textDocument/colorProvider".to_owned()
        }
        method => format!("/{method}"),
    }
}

fn is_dynamic(client: &ClientInfo, feature: &Feature) -> bool {
    client.supports(&format!("{}/dynamicRegistration", pointer(feature)))
}

impl Proxy {
    /// The capabilities of the proxy, to be put over our own.
    pub fn capabilities(&self) -> Value {
        self.state().offered.capabilities(self.session.latest().client())
    }

    /// Registers with the client what the running servers have, and takes back what none has any more.
    pub(super) fn offer(&self, state: &mut State) {
        let wanted = self.wanted(state);
        let known = &mut state.offered.registered;
        let gone: Vec<Value> = known
            .iter()
            .filter(|(id, registration)| wanted.get(*id) != Some(*registration))
            .map(|(id, registration)| json!({ "id": id, "method": registration["method"] }))
            .collect();
        let new: Vec<Value> = wanted
            .iter()
            .filter(|(id, one)| known.get(*id) != Some(*one))
            .map(|(_, one)| one.clone())
            .collect();
        *known = wanted;
        if !gone.is_empty() {
            // The protocol misspells the key.
            let params = json!({ "unregisterations": gone }).to_string();
            self.client.forward("client/unregisterCapability", Some(&params), |_| {});
        }
        if !new.is_empty() {
            let params = json!({ "registrations": new }).to_string();
            self.client.forward("client/registerCapability", Some(&params), |answer| {
                if let Err(error) = answer {
                    tracing::warn!(error, "the client refused a registration");
                }
            });
        }
    }

    fn wanted(&self, state: &State) -> BTreeMap<String, Value> {
        let snapshot = self.session.latest();
        let client = snapshot.client();
        let mut wanted: BTreeMap<String, Value> = BTreeMap::new();
        let features = FEATURES.iter().filter(|feature| {
            feature.own != Own::All
                && feature.registered != "textDocument/colorPresentation"
                && is_dynamic(client, feature)
        });
        for feature in features {
            let mut claimed = BTreeSet::new();
            let mut servers: Vec<usize> = (0..state.servers.len()).collect();
            if let Some(owner) =
                state.owner(feature).filter(|_| feature.registered == "textDocument/semanticTokens")
            {
                servers.sort_by_key(|ix| *ix != owner);
            }
            for ix in servers {
                let server = &state.servers[ix];
                let Some(options) = server.provider(feature).filter(|_| server.is_running()) else {
                    continue;
                };
                let options = if options.is_object() { options.clone() } else { json!({}) };
                let languages = self.launcher.languages(&server.definition);
                // A legend is one server's, so each language has one server.
                let own_legend = feature.registered == "textDocument/semanticTokens";
                // What our own features are registered for is asked once, too.
                let ours = |language: &str| feature.own == Own::Some && LANGUAGES.contains(&language);
                let languages: Vec<String> = languages
                    .into_iter()
                    .filter(|one| !ours(one) && (claimed.insert(one.clone()) || !own_legend))
                    .collect();
                if languages.is_empty() {
                    continue;
                }
                let selector: Vec<Value> =
                    languages.iter().map(|language| json!({ "language": language })).collect();
                let id = match own_legend {
                    true => format!("agents.proxy/{}/{}", feature.registered, server.definition.name),
                    false => format!("agents.proxy/{}", feature.registered),
                };
                let mut registration =
                    json!({ "id": id, "method": feature.registered, "registerOptions": options });
                let options = &mut registration["registerOptions"];
                if let Some(fields) = options.as_object_mut() {
                    fields.remove("id");
                    fields.remove("documentSelector");
                }
                if feature.registered != "workspace/symbol" {
                    options["documentSelector"] = selector.into();
                }
                match wanted.get_mut(&id) {
                    Some(known) => {
                        merge::join_options(&mut known["registerOptions"], &registration["registerOptions"]);
                    }
                    None => drop(wanted.insert(id, registration)),
                }
            }
        }
        wanted
    }
}
