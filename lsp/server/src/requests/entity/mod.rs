//! Entity files (actions, language servers, automation profiles, validations) as a language: what is wrong, what can
//! stand here, what a name stands for, and what can be done with the file.

mod action;
mod completion;
mod diagnostic;
mod lens;
mod navigation;
pub(crate) mod register;

use std::collections::HashMap;
use std::ops::Range as Bytes;
use std::path::Path;

use agents_config::{EntityKind, Registry, kind_of};
use agents_engine::{Engine, RegistryEntry};
use tower_lsp::lsp_types::Range;

pub(crate) use diagnostic::of_text as diagnostics;

use crate::documents::{Document, Text};

/// Languages of the client that entity files are written in.
pub(crate) const LANGUAGES: [&str; 2] = ["yaml", "json"];

/// What is registered, as last looked at.
#[derive(Debug, Default)]
pub(crate) struct Names(HashMap<Registry, Vec<RegistryEntry>>);

impl Names {
    /// Reads all registries.
    pub fn read(engine: &Engine) -> agents_domain::Result<Self> {
        let all = [
            Registry::Action,
            Registry::Actor,
            Registry::AutomationProfile,
            Registry::LanguageServer,
            Registry::Skill,
            Registry::Validation,
        ];
        all.into_iter()
            .map(|registry| Ok((registry, engine.entries(registry)?)))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// All of a registry, by name.
    pub fn all(&self, registry: Registry) -> &[RegistryEntry] {
        self.0.get(&registry).map_or(&[], Vec::as_slice)
    }

    pub fn find(&self, registry: Registry, name: &str) -> Option<&RegistryEntry> {
        self.all(registry).iter().find(|entry| entry.name == name)
    }
}

/// An entity file that is open.
pub(crate) struct Entity {
    pub kind: &'static EntityKind,
    pub content: String,
}

impl Entity {
    /// `None` for a document that is no entity file.
    pub fn of(document: &Document) -> Option<Self> {
        let named = document.uri().to_path().is_some_and(|path| is_named_so(&path));
        if !named && !LANGUAGES.contains(&document.language_id()) {
            return None;
        }
        let content = document.text().to_string();
        Some(Self { kind: kind_of(&content)?, content })
    }
}

/// A file that may be an entity file by its name.
fn is_named_so(path: &Path) -> bool {
    path.extension().and_then(|e| e.to_str()).is_some_and(|e| ["yaml", "yml", "json"].contains(&e))
}

/// The positions of bytes of a document.
fn range(text: &Text, bytes: &Bytes<usize>) -> Range {
    text.range(bytes.clone())
}

/// The positions of a range of lines and byte columns, whose lines are those of the protocol.
fn protocol_range(text: &Text, range: agents_domain::text::Range) -> Range {
    let byte = |at: agents_domain::text::Position| {
        let start = text.rope().try_line_to_byte(at.line as usize).unwrap_or(text.len());
        start + at.column as usize
    };
    text.range(byte(range.start)..byte(range.end))
}
