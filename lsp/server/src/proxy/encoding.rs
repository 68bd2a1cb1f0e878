//! Servers that count columns otherwise than the client: every position in what passes is counted anew, from the texts. Such
//! servers are rare, so each message of theirs is read whole, and changes are sent to them as whole texts.

use std::collections::HashMap;
use std::sync::Mutex;

use serde_json::{Map, Value};
use tower_lsp::lsp_types::Position;

use crate::documents::{Document, DocumentUri, PositionEncoding, Text};
use crate::{SessionHandle, lock};

/// The longest file that is read to count in it, in bytes.
const MAX_FILE: u64 = 8 << 20;
/// Requests on the way that are remembered.
const MAX_ASKED: usize = 10_000;

/// Counts positions anew, both ways.
pub(crate) struct Recount {
    session: SessionHandle,
    client: PositionEncoding,
    server: PositionEncoding,
    /// What requests to the server are about, by id.
    asked: Mutex<HashMap<String, Asked>>,
}

struct Asked {
    method: String,
    /// The document as it was then.
    about: Option<(DocumentUri, Option<Text>)>,
}

impl std::fmt::Debug for Recount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recount").field("server", &self.server).finish_non_exhaustive()
    }
}

impl Recount {
    pub fn new(session: SessionHandle, server: PositionEncoding) -> Self {
        let client = session.latest().encoding();
        Self { session, client, server, asked: Mutex::default() }
    }

    /// A message to the server.
    pub fn to_server(&self, body: Vec<u8>) -> Vec<u8> {
        let Ok(mut message) = serde_json::from_slice::<Value>(&body) else { return body };
        let mut texts = Texts::of(self, self.client, self.server);
        let about = document_of(&message["params"]);
        if let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) {
            let document = about.as_ref().and_then(|uri| self.session.latest().document(uri).cloned());
            let text = document.map(|document| document.text().clone());
            let asked = Asked { method: method.to_owned(), about: about.clone().map(|uri| (uri, text)) };
            let mut all = lock(&self.asked);
            if all.len() < MAX_ASKED {
                all.insert(id.to_string(), asked);
            }
        }
        recount(&mut message, about.as_ref(), &mut texts);
        message.to_string().into_bytes()
    }

    /// A message of the server.
    pub fn to_client(&self, body: Vec<u8>) -> Vec<u8> {
        let Ok(mut message) = serde_json::from_slice::<Value>(&body) else { return body };
        let mut texts = Texts::of(self, self.server, self.client);
        let is_answer = message.get("method").is_none();
        let asked = is_answer.then(|| lock(&self.asked).remove(&message["id"].to_string())).flatten();
        let Some(Asked { method, about }) = asked else {
            let about = document_of(&message["params"]);
            recount(&mut message, about.as_ref(), &mut texts);
            return message.to_string().into_bytes();
        };
        let uri = about.map(|(uri, text)| {
            if let Some(text) = text {
                texts.known.insert(uri.clone(), Some(text));
            }
            uri
        });
        if method.starts_with("textDocument/semanticTokens/") {
            recount_tokens(&mut message["result"]["data"], uri.as_ref(), &mut texts);
        } else {
            recount(&mut message["result"], uri.as_ref(), &mut texts);
        }
        message.to_string().into_bytes()
    }
}

/// The document that parameters are about.
fn document_of(params: &Value) -> Option<DocumentUri> {
    let uri =
        ["/textDocument/uri", "/item/uri", "/uri"].iter().find_map(|path| params.pointer(path)?.as_str());
    DocumentUri::parse(uri?).ok()
}

/// The texts that positions are in.
struct Texts<'a> {
    session: &'a SessionHandle,
    from: PositionEncoding,
    to: PositionEncoding,
    known: HashMap<DocumentUri, Option<Text>>,
}

impl<'a> Texts<'a> {
    fn of(recount: &'a Recount, from: PositionEncoding, to: PositionEncoding) -> Self {
        Self { session: &recount.session, from, to, known: HashMap::new() }
    }

    fn text(&mut self, uri: &DocumentUri) -> Option<&Text> {
        let session = self.session;
        let found = self.known.entry(uri.clone()).or_insert_with(|| {
            let open = session
                .latest()
                .document(uri)
                .map(|document: &std::sync::Arc<Document>| document.text().clone());
            open.or_else(|| {
                let path = uri.to_path()?;
                let short = path.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_FILE);
                let content = short.then(|| std::fs::read_to_string(path).ok()).flatten()?;
                Some(Text::new(&content, PositionEncoding::Utf8))
            })
        });
        found.as_ref()
    }

    /// A column in the other encoding; the same where the text is not known, which is right where it is ASCII.
    fn column(&mut self, uri: Option<&DocumentUri>, line: u64, character: u64) -> u64 {
        let (from, to) = (self.from, self.to);
        let Some(text) = uri.and_then(|uri| self.text(uri)) else { return character };
        let number = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        let at = Position::new(number(line), number(character));
        // Past its end a line means the line after; that is left as it is.
        if line as usize >= text.line_count() {
            return character;
        }
        let offset = text.counted_in(from).offset(at);
        text.counted_in(to).position(offset).character.into()
    }
}

/// Counts all positions in a value anew. `uri` is the document they are in, unless something nearer says another.
fn recount(value: &mut Value, uri: Option<&DocumentUri>, texts: &mut Texts<'_>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| recount(item, uri, texts)),
        Value::Object(fields) => recount_fields(fields, uri, texts),
        _ => {}
    }
}

fn recount_fields(fields: &mut Map<String, Value>, uri: Option<&DocumentUri>, texts: &mut Texts<'_>) {
    let number = |fields: &Map<String, Value>, key: &str| fields.get(key).and_then(Value::as_u64);
    if let (Some(line), Some(character)) = (number(fields, "line"), number(fields, "character")) {
        fields.insert("character".to_owned(), texts.column(uri, line, character).into());
        return;
    }
    // Folding ranges have their numbers side by side.
    for (line, character) in [("startLine", "startCharacter"), ("endLine", "endCharacter")] {
        if let (Some(line), Some(at)) = (number(fields, line), number(fields, character)) {
            fields.insert(character.to_owned(), texts.column(uri, line, at).into());
        }
    }
    let parsed = |value: Option<&Value>| DocumentUri::parse(value?.as_str()?).ok();
    let nested = |key: &str| fields.get(key).and_then(|one| one.get("uri"));
    let own = parsed(fields.get("uri"))
        .or_else(|| parsed(nested("textDocument")))
        .or_else(|| parsed(nested("item")));
    let target = parsed(fields.get("targetUri"));
    let caller = parsed(nested("from"));
    let here = own.as_ref().or(uri);
    for (key, value) in fields.iter_mut() {
        match (key.as_str(), value) {
            ("targetRange" | "targetSelectionRange", value) => {
                recount(value, target.as_ref().or(here), texts)
            }
            ("fromRanges", value) => recount(value, caller.as_ref().or(here), texts),
            // Edits by document.
            ("changes", Value::Object(edits)) => {
                for (of, edits) in edits.iter_mut() {
                    let of = DocumentUri::parse(of).ok();
                    recount(edits, of.as_ref().or(here), texts);
                }
            }
            // Not positions, whatever they hold.
            ("text" | "newText" | "capabilities" | "settings", _) => {}
            (_, value) => recount(value, here, texts),
        }
    }
}

/// Semantic tokens: five numbers each, start and line relative to the one before.
fn recount_tokens(data: &mut Value, uri: Option<&DocumentUri>, texts: &mut Texts<'_>) {
    let Some(numbers) = data.as_array_mut() else { return };
    let (mut line, mut start, mut told) = (0u64, 0u64, 0u64);
    for token in numbers.chunks_exact_mut(5) {
        let number = |at: usize| token[at].as_u64().unwrap_or_default();
        let (down, right, length) = (number(0), number(1), number(2));
        if down > 0 {
            line = line.saturating_add(down);
            (start, told) = (0, 0);
        }
        start = start.saturating_add(right);
        let from = texts.column(uri, line, start);
        let to = texts.column(uri, line, start.saturating_add(length));
        token[1] = from.saturating_sub(told).into();
        token[2] = to.saturating_sub(from).into();
        told = from;
    }
}
