//! `textDocument/documentLink`: ids of plans and decisions, names of what is registered, and files, in our own documents,
//! in markdown and in entity files.

use std::ops::Range as Bytes;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agents_config::Registry;
use agents_config::editing::mentions;
use agents_engine::{Engine, Named};
use tower_lsp::lsp_types::{DocumentLink, Url};

use super::Shared;
use super::content::SCHEME;
use super::entity::{Entity, Names};
use super::provenance::LARGEST;
use crate::ClientInfo;
use crate::documents::{Document, DocumentUri};
use crate::watch::world::World;

/// The language of the client whose documents have links, besides entity files and our own.
pub(crate) const MARKDOWN: &str = "markdown";

/// Ids, names and paths of one document that are looked up.
const MOST: usize = 1_000;

/// The registries in which a name without its kind is looked for, in this order.
const REGISTRIES: [Registry; 5] = [
    Registry::Action,
    Registry::LanguageServer,
    Registry::Validation,
    Registry::AutomationProfile,
    Registry::Actor,
];

/// A link before its positions are counted.
struct Link {
    bytes: Bytes<usize>,
    target: Url,
    what: String,
}

impl Shared {
    pub async fn document_links(&self, uri: &Url) -> Option<Vec<DocumentLink>> {
        let (snapshot, document) = self.document(uri)?;
        let entity = Entity::of(&document);
        let ours = document.uri().scheme() == SCHEME;
        if (!ours && entity.is_none() && document.language_id() != MARKDOWN)
            || document.text().len() > LARGEST
        {
            return None;
        }
        let world = self.world().await;
        let pages = opens_pages(snapshot.client());
        let tooltips = snapshot.client().supports("/textDocument/documentLink/tooltipSupport");
        let shown = document.clone();
        let found = self
            .blocking(move |engine| {
                let mut links = match &entity {
                    Some(entity) => of_mentions(entity, &world.names),
                    None => of_names(&shown.text().to_string(), &world.names),
                };
                if pages {
                    links.extend(of_ids(engine, &shown));
                }
                if ours {
                    links.extend(of_paths(&shown, &world));
                }
                Ok(links)
            })
            .await
            .ok()?;
        let text = document.text();
        let link = |link: Link| DocumentLink {
            range: text.range(link.bytes),
            target: Some(link.target),
            tooltip: tooltips.then_some(link.what),
            data: None,
        };
        Some(found.into_iter().map(link).collect())
    }
}

/// Whether the client can show `agents:` documents; a link to one would lead nowhere otherwise.
fn opens_pages(client: &ClientInfo) -> bool {
    client.supports("/workspace/textDocumentContent") || client.supports("/experimental/cleveragents")
}

/// The names that an entity file uses, with the files that define them.
fn of_mentions(entity: &Entity, names: &Names) -> Vec<Link> {
    let used = mentions(&entity.content).into_iter().filter(|mention| !mention.defines).take(MOST);
    used.filter_map(|mention| file_link(names, &[mention.registry], &mention.name, mention.bytes)).collect()
}

/// Names with a namespace that something registered has.
fn of_names(text: &str, names: &Names) -> Vec<Link> {
    let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/');
    let words = runs(text, part).filter(|bytes| text[bytes.clone()].contains('/')).take(MOST);
    words
        .filter_map(|bytes| {
            // A sentence may end behind it.
            let name = text[bytes.clone()].trim_end_matches(['.', ':']);
            let bytes = bytes.start..bytes.start + name.len();
            file_link(names, &REGISTRIES, name, bytes)
        })
        .collect()
}

fn file_link(names: &Names, registries: &[Registry], name: &str, bytes: Bytes<usize>) -> Option<Link> {
    let found = registries.iter().find_map(|registry| {
        let (path, _) = names.find(*registry, name)?.file.as_ref()?;
        path.is_absolute().then_some((registry.word(), path))
    });
    let (word, path) = found?;
    Some(Link { bytes, target: DocumentUri::from_path(path)?.to_url()?, what: format!("{word} {name}") })
}

/// Ids of plans, decisions, corrections and checkpoints, with their pages.
fn of_ids(engine: &Engine, document: &Arc<Document>) -> Vec<Link> {
    let text = document.text().to_string();
    let links = ids(&text).take(MOST).filter_map(|bytes| {
        let id = &text[bytes.clone()];
        let named =
            engine.named(id).inspect_err(|error| tracing::warn!(%error, "an id is left out")).ok()??;
        let (target, what) = match named {
            Named::Plan(plan) => (format!("{SCHEME}:/plan/{plan}"), "plan"),
            Named::Decision(decision, _) => (format!("{SCHEME}:/decision/{decision}"), "decision"),
            Named::Correction(correction) => (format!("{SCHEME}:/correction/{correction}"), "correction"),
            Named::Checkpoint(_, plan) => (format!("{SCHEME}:/plan/{plan}"), "checkpoint of plan"),
        };
        // A document is no link to itself.
        let elsewhere = document.uri().as_str() != target;
        elsewhere.then_some(())?;
        Some(Link { bytes, target: Url::parse(&target).ok()?, what: format!("{what} {id}") })
    });
    links.collect()
}

/// Where ids stand in a text, without what may stand before them (`cp_`).
pub(crate) fn ids(text: &str) -> impl Iterator<Item = Bytes<usize>> {
    let digit = |c: char| matches!(c, '0'..='9' | 'A'..='Z') && !matches!(c, 'I' | 'L' | 'O' | 'U');
    runs(text, char::is_alphanumeric)
        .filter(move |bytes| bytes.len() == 26 && text[bytes.clone()].chars().all(digit))
}

/// Files in backquotes, such as `src/main.py:12`, in the folders that are registered.
fn of_paths(document: &Document, world: &World) -> Vec<Link> {
    let text = document.text().to_string();
    let quoted = text.split_inclusive('`').scan((0, false), |(at, inside), part| {
        let start = *at;
        *at += part.len();
        let was_inside = std::mem::replace(inside, part.ends_with('`') != *inside);
        Some(was_inside.then(|| start..start + part.trim_end_matches('`').len()))
    });
    let links = quoted.flatten().filter(|bytes| !text[bytes.clone()].contains('\n')).take(MOST);
    links
        .filter_map(|bytes| {
            let words = &text[bytes.clone()];
            let (path, line) = match words.rsplit_once(':') {
                Some((path, line)) if line.bytes().all(|b| b.is_ascii_digit()) => (path, Some(line)),
                _ => (words, None),
            };
            let relative = Path::new(path);
            let inside = relative.components().all(|c| matches!(c, std::path::Component::Normal(_)));
            let found: Option<PathBuf> = inside.then_some(()).and_then(|()| {
                world.registry.roots.iter().map(|(_, root)| root.join(relative)).find(|p| p.is_file())
            });
            let mut target = DocumentUri::from_path(&found?)?.to_url()?;
            target.set_fragment(line.map(|line| format!("L{line}")).as_deref());
            Some(Link { bytes, target, what: path.to_owned() })
        })
        .collect()
}

/// The longest runs of characters of a kind.
fn runs(text: &str, part: impl Fn(char) -> bool) -> impl Iterator<Item = Bytes<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..)?;
        let start = at + rest.find(&part)?;
        let length = text[start..].find(|c| !part(c)).unwrap_or(text.len() - start);
        at = start + length;
        Some(start..at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_whole_words_of_their_digits() {
        let id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
        let text =
            format!("`{id}` cp_{id}, x{id} {id}x 01arz3ndektsv4rrffq69g5fav 01ARZ3NDEKTSV4RRFFQ69G5FAU");
        let found: Vec<_> = ids(&text).map(|bytes| (bytes.start, &text[bytes])).collect();
        assert_eq!(found, [(1, id), (32, id)]);
    }

    #[test]
    fn runs_end_at_what_is_no_part_of_them() {
        let text = "é a/b, c";
        let found: Vec<_> = runs(text, |c| c.is_alphanumeric() || c == '/').map(|b| &text[b]).collect();
        assert_eq!(found, ["é", "a/b", "c"]);
        assert_eq!(runs("", char::is_alphanumeric).count(), 0);
    }
}
