//! Listing actors.

use std::collections::BTreeSet;

use agents_domain::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actors::KNOWN_MODELS;
use crate::{Engine, Operation};

/// Lists actors: those that come with the program, well-known models, and those that people define.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct List {}

/// Actors by name.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ListOutput {
    pub actors: Vec<ListedActor>,
    pub summary: Summary,
}

/// An actor in the list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ListedActor {
    pub name: String,
    pub provider: Option<String>,
    pub model: Option<String>,
    pub default: bool,
    pub builtin: bool,
    #[serde(rename = "unsafe")]
    pub is_unsafe: bool,
    /// Why its file cannot be read now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// How many there are.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Summary {
    pub total: usize,
    pub builtin: usize,
    pub custom: usize,
    #[serde(rename = "unsafe")]
    pub is_unsafe: usize,
    pub providers_used: usize,
}

impl Operation for List {
    const METHOD: &'static str = "registry/actor/list";
    const SUMMARY: &'static str = "List actors";
    type Output = ListOutput;

    fn run(self, engine: &Engine) -> Result<ListOutput> {
        let ours = engine.actors.names().into_iter().map(|name| (name.to_string(), None, None));
        let models = KNOWN_MODELS.iter().map(|name| {
            let (provider, model) = name.split_once('/').unwrap_or(("", name));
            ((*name).to_owned(), Some(provider.to_owned()), Some(model.to_owned()))
        });
        let mut actors: Vec<ListedActor> = ours
            .chain(models)
            .map(|(name, provider, model)| ListedActor {
                name,
                provider,
                model,
                default: false,
                builtin: true,
                is_unsafe: false,
                problem: None,
            })
            .collect();
        for actor in engine.view(|r| r.actors())? {
            let definition = engine.definition_of(&actor, None);
            let (provider, model) =
                definition.as_ref().map(|definition| definition.shown_model()).unwrap_or_default();
            actors.push(ListedActor {
                name: actor.name.to_string(),
                provider,
                model,
                default: actor.is_default,
                builtin: false,
                is_unsafe: definition.as_ref().map_or(actor.overrides.is_unsafe, |d| d.is_unsafe()),
                problem: definition.err().map(|error| error.message),
            });
        }
        actors.sort_by(|a, b| a.name.cmp(&b.name));
        actors.dedup_by(|a, b| a.name == b.name);
        let count = |which: &dyn Fn(&&ListedActor) -> bool| actors.iter().filter(which).count();
        let providers: BTreeSet<&str> =
            actors.iter().filter(|a| !a.builtin).filter_map(|a| a.provider.as_deref()).collect();
        let summary = Summary {
            total: actors.len(),
            builtin: count(&|a| a.builtin),
            custom: count(&|a| !a.builtin),
            is_unsafe: count(&|a| a.is_unsafe),
            providers_used: providers.len(),
        };
        Ok(ListOutput { actors, summary })
    }
}
