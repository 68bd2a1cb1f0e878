//! From parser events to a tree: one document, unique keys, aliases followed, everything bounded.

use std::collections::{HashMap, HashSet};
use std::ops::Range as Bytes;

use serde_saphyr::granit_parser::{Event, Options, Parser, ScalarStyle, Span, Tag};

use super::{Entry, Node, NodeKind, Source};
use crate::problem::{MAX_FILE_BYTES, too_large};

/// How deep values may nest.
const MAX_DEPTH: usize = 64;

/// Memory a file may unfold to through aliases, in bytes of text plus [`NODE_COST`] for each node.
const MAX_WEIGHT: usize = 16 * 1024 * 1024;
const NODE_COST: usize = 64;

/// A finished node with what it costs to copy.
#[derive(Clone)]
struct Built {
    node: Node,
    weight: usize,
    depth: usize,
}

/// A list or mapping that is not closed yet.
struct Open {
    anchor: usize,
    start: usize,
    weight: usize,
    depth: usize,
    kind: OpenKind,
}

enum OpenKind {
    List(Vec<Node>),
    /// `seen`: the keys so far, with their places.
    Map {
        entries: Vec<Entry>,
        merges: Vec<Built>,
        key: Option<Key>,
        seen: HashMap<String, Bytes<usize>>,
    },
}

/// A key that waits for its value; `merge` is `<<`.
struct Key {
    text: String,
    bytes: Bytes<usize>,
    merge: bool,
}

/// An explicit tag, such as `!!str`, with its place.
struct NodeTag {
    name: String,
    bytes: Bytes<usize>,
}

struct Composer<'s, 'a> {
    source: &'s mut Source<'a>,
    open: Vec<Open>,
    anchors: HashMap<usize, Built>,
    root: Option<Node>,
    weight: usize,
    documents: usize,
}

/// Reads one document. Problems are reported to `source`; `None` when there is nothing to go on with.
pub(crate) fn compose(source: &mut Source<'_>) -> Option<Node> {
    if source.text.len() > MAX_FILE_BYTES {
        source.error("", &(0..0), too_large());
        return None;
    }
    let text = source.text;
    let mut composer =
        Composer { source, open: Vec::new(), anchors: HashMap::new(), root: None, weight: 0, documents: 0 };
    let mut options = Options::default();
    options.set_emit_comments(false);
    for next in Parser::new_from_str_with_options(text, options) {
        match next {
            Ok((event, span)) => composer.event(event, span)?,
            Err(error) => {
                let at = error.marker().byte_offset().unwrap_or(text.len());
                composer.syntax(at, &error.info());
                return None;
            }
        }
    }
    let root = composer.root.take();
    if root.is_none() {
        source.error("", &(0..0), "the file is empty");
    }
    root
}

impl Composer<'_, '_> {
    /// `None` stops the reading.
    fn event(&mut self, event: Event<'_>, span: Span) -> Option<()> {
        let bytes = self.bytes(span);
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return self.refuse(&bytes, "a file holds one document: this starts a second one");
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                let tag = tag.map(|tag| self.tag(&tag, span));
                self.scalar(&text, style, anchor, tag, bytes)?;
            }
            Event::Alias(anchor) => self.alias(anchor, bytes)?,
            Event::SequenceStart(_, anchor, tag) => {
                self.expect_tag(tag.map(|tag| self.tag(&tag, span)), "seq")?;
                self.start(anchor, bytes, OpenKind::List(Vec::new()))?;
            }
            Event::MappingStart(_, anchor, tag) => {
                self.expect_tag(tag.map(|tag| self.tag(&tag, span)), "map")?;
                let kind = OpenKind::Map {
                    entries: Vec::new(),
                    merges: Vec::new(),
                    key: None,
                    seen: HashMap::new(),
                };
                self.start(anchor, bytes, kind)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(bytes)?,
            _ => {}
        }
        Some(())
    }

    fn bytes(&self, span: Span) -> Bytes<usize> {
        let len = self.source.text.len();
        let start = span.start.byte_offset().unwrap_or(len).min(len);
        start..span.end.byte_offset().unwrap_or(start).clamp(start, len)
    }

    fn tag(&self, tag: &Tag, span: Span) -> NodeTag {
        NodeTag {
            name: tag_name(tag.handle(), tag.suffix()),
            bytes: self.bytes(span.tag_span().unwrap_or(span)),
        }
    }

    fn syntax(&mut self, at: usize, message: &str) {
        let text = self.source.text;
        let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let line_start = text[..at].rfind(['\n', '\r']).map_or(0, |at| at + 1);
        // A parser stops where the tab spoils something, which may be the line before.
        let lines = text[line_start..].split_inclusive('\n').take(if message.contains("tab") {
            usize::MAX
        } else {
            1
        });
        let mut line_at = line_start;
        for line in lines {
            let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
            if let Some(tab) = line[..indent].find('\t') {
                let tab = line_at + tab;
                return self.source.error("", &(tab..tab + 1), "a tab cannot indent YAML: use spaces");
            }
            line_at += line.len();
        }
        let rest = &text[at..];
        let end = at + rest.chars().next().filter(|c| !c.is_control()).map_or(0, char::len_utf8);
        self.source.error("", &(at..end), format!("this is not YAML: {message}"));
    }

    /// Where the next value goes, such as `arguments[1].default`.
    fn path(&self) -> String {
        let mut path = String::new();
        for open in &self.open {
            match &open.kind {
                OpenKind::List(items) => path.push_str(&format!("[{}]", items.len())),
                OpenKind::Map { key: Some(key), .. } => path = super::join(&path, &key.text),
                OpenKind::Map { key: None, .. } => {}
            }
        }
        path
    }

    /// Reports and stops.
    fn refuse(&mut self, bytes: &Bytes<usize>, message: impl Into<String>) -> Option<()> {
        let path = self.path();
        self.source.error(&path, bytes, message);
        None
    }

    fn depth(&self) -> usize {
        self.open.len()
    }

    fn start(&mut self, anchor: usize, bytes: Bytes<usize>, kind: OpenKind) -> Option<()> {
        if self.depth() >= MAX_DEPTH {
            return self.refuse(&bytes, format!("values nest deeper than {MAX_DEPTH} levels here"));
        }
        if self.awaits_key() {
            return self.refuse(&bytes, "a key must be a plain text, not a list or a mapping");
        }
        self.spend(NODE_COST, &bytes)?;
        self.open.push(Open { anchor, start: bytes.start, weight: NODE_COST, depth: 1, kind });
        Some(())
    }

    fn end(&mut self, bytes: Bytes<usize>) -> Option<()> {
        let open = self.open.pop()?;
        // A block ends where the next token starts; what people see as the block ends with its last value.
        let flow_end = bytes.end;
        let (kind, last) = match open.kind {
            OpenKind::List(items) => {
                let last = items.last().map(|n| n.bytes.end);
                (NodeKind::List(items), last)
            }
            OpenKind::Map { mut entries, merges, .. } => {
                let last = entries.last().map(|e| e.value.bytes.end.max(e.key_bytes.end));
                merge(&mut entries, merges);
                (NodeKind::Map(entries), last)
            }
        };
        let closed = matches!(self.source.text.as_bytes().get(open.start), Some(b'[' | b'{'));
        let end = if closed { flow_end } else { last.unwrap_or(open.start) };
        let node = Node { kind, bytes: open.start..end.max(open.start) };
        self.finish(open.anchor, Built { node, weight: open.weight, depth: open.depth })
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<NodeTag>,
        bytes: Bytes<usize>,
    ) -> Option<()> {
        let weight = NODE_COST + text.len();
        self.spend(weight, &bytes)?;
        let plain = style == ScalarStyle::Plain;
        let bytes = bytes.start..self.source.text[bytes.clone()].trim_end().len() + bytes.start;
        if self.awaits_key() {
            if plain && text.is_empty() {
                return self.refuse(&bytes, "there is a value without a key here");
            }
            self.set_key(Key { text: text.to_owned(), merge: plain && text == "<<", bytes: bytes.clone() })?;
            if anchor != 0 {
                let node = Node { kind: NodeKind::Text(text.to_owned()), bytes };
                self.anchors.insert(anchor, Built { node, weight, depth: 0 });
            }
            return Some(());
        }
        let tag_bytes = tag.as_ref().map_or_else(|| bytes.clone(), |tag| tag.bytes.clone());
        let kind = match tag.as_ref().map(|tag| tag.name.as_str()) {
            None if plain => resolve(text),
            None | Some("str" | "!") => Some(NodeKind::Text(text.to_owned())),
            Some(tag) => match (tag, resolve(text)) {
                ("null", Some(NodeKind::Null)) => Some(NodeKind::Null),
                ("bool", Some(kind @ NodeKind::Bool(_))) => Some(kind),
                ("int" | "float", Some(kind @ NodeKind::Number(_))) => Some(kind),
                ("null" | "bool" | "int" | "float", _) => {
                    return self.refuse(&bytes, format!("`{text}` is not what its tag `!!{tag}` says"));
                }
                _ => return self.unknown_tag(tag, &tag_bytes),
            },
        };
        let Some(kind) = kind else {
            return self
                .refuse(&bytes, format!("`{text}` is not a finite number: put it in quotes to mean a text"));
        };
        self.finish(anchor, Built { node: Node { kind, bytes }, weight, depth: 0 })
    }

    fn alias(&mut self, anchor: usize, bytes: Bytes<usize>) -> Option<()> {
        let Some(built) = self.anchors.get(&anchor) else {
            return self.refuse(&bytes, "this alias stands inside the value that it names");
        };
        let (weight, depth) = (built.weight, built.depth);
        if self.depth() + depth > MAX_DEPTH {
            return self
                .refuse(&bytes, format!("values nest deeper than {MAX_DEPTH} levels through this alias"));
        }
        // Before the copy: an alias of an alias of an alias grows without bound.
        self.spend(weight, &bytes)?;
        let mut built = self.anchors.get(&anchor)?.clone();
        if self.awaits_key() {
            let Some(text) = built.node.text().map(str::to_owned) else {
                return self.refuse(&bytes, "a key must be a plain text");
            };
            return self.set_key(Key { text, bytes, merge: false });
        }
        built.node.bytes = bytes;
        self.finish(0, built)
    }

    fn awaits_key(&self) -> bool {
        matches!(self.open.last(), Some(Open { kind: OpenKind::Map { key: None, .. }, .. }))
    }

    fn set_key(&mut self, fresh: Key) -> Option<()> {
        let Some(Open { kind: OpenKind::Map { seen, key, .. }, .. }) = self.open.last_mut() else {
            return None;
        };
        let first = if fresh.merge { None } else { seen.get(&fresh.text).cloned() };
        seen.entry(fresh.text.clone()).or_insert_with(|| fresh.bytes.clone());
        let (text, bytes) = (fresh.text.clone(), fresh.bytes.clone());
        *key = Some(fresh);
        if let Some(first) = first {
            let line = self.source.range(&first).start.line + 1;
            let path = self.path();
            self.source.error(
                &path,
                &bytes,
                format!("the key `{text}` is there twice; it is first on line {line}"),
            );
        }
        Some(())
    }

    fn expect_tag(&mut self, tag: Option<NodeTag>, own: &str) -> Option<()> {
        match tag {
            Some(tag) if tag.name != own && tag.name != "!" => self.unknown_tag(&tag.name, &tag.bytes),
            _ => Some(()),
        }
    }

    fn unknown_tag(&mut self, tag: &str, bytes: &Bytes<usize>) -> Option<()> {
        self.refuse(bytes, format!("the tag `{tag}` is not known here: leave it out"))
    }

    fn spend(&mut self, weight: usize, bytes: &Bytes<usize>) -> Option<()> {
        self.weight = self.weight.saturating_add(weight);
        if self.weight > MAX_WEIGHT {
            return self.refuse(bytes, "the file unfolds to too much data through its aliases");
        }
        Some(())
    }

    /// Gives a finished value to what it stands in.
    fn finish(&mut self, anchor: usize, built: Built) -> Option<()> {
        if anchor != 0 {
            self.spend(built.weight, &built.node.bytes)?;
            self.anchors.insert(anchor, built.clone());
        }
        let Some(parent) = self.open.last_mut() else {
            self.root = Some(built.node);
            return Some(());
        };
        parent.weight = parent.weight.saturating_add(built.weight);
        parent.depth = parent.depth.max(built.depth + 1);
        match &mut parent.kind {
            OpenKind::List(items) => items.push(built.node),
            OpenKind::Map { entries, merges, key, .. } => {
                let key = key.take()?;
                if !key.merge {
                    entries.push(Entry { key: key.text, key_bytes: key.bytes, value: built.node });
                } else if is_mergeable(&built.node) {
                    merges.push(built);
                } else {
                    let bytes = built.node.bytes.clone();
                    return self.refuse(&bytes, "`<<` takes a mapping, or a list of mappings");
                }
            }
        }
        Some(())
    }
}

fn is_mergeable(node: &Node) -> bool {
    match &node.kind {
        NodeKind::Map(_) => true,
        NodeKind::List(items) => items.iter().all(|n| matches!(n.kind, NodeKind::Map(_))),
        _ => false,
    }
}

/// Adds the entries of `<<`; keys that are there already, or came from an earlier mapping, win.
fn merge(entries: &mut Vec<Entry>, merges: Vec<Built>) {
    if merges.is_empty() {
        return;
    }
    let mut seen: HashSet<String> = entries.iter().map(|e| e.key.clone()).collect();
    for built in merges {
        let maps = match built.node.kind {
            NodeKind::List(items) => items,
            _ => vec![built.node],
        };
        for map in maps {
            if let NodeKind::Map(more) = map.kind {
                entries.extend(more.into_iter().filter(|e| seen.insert(e.key.clone())));
            }
        }
    }
}

/// The name of a core tag (`str`), `!`, or the tag as a whole.
fn tag_name(handle: &str, suffix: &str) -> String {
    match (handle, suffix) {
        ("tag:yaml.org,2002:", suffix) => suffix.to_owned(),
        ("" | "!", "" | "!") => "!".to_owned(),
        (handle, suffix) => format!("{handle}{suffix}"),
    }
}

/// A plain scalar by the core schema of YAML 1.2; `None` for numbers that are not finite.
fn resolve(text: &str) -> Option<NodeKind> {
    Some(match text {
        "" | "~" | "null" | "Null" | "NULL" => NodeKind::Null,
        "true" | "True" | "TRUE" => NodeKind::Bool(true),
        "false" | "False" | "FALSE" => NodeKind::Bool(false),
        _ => match number(text) {
            Some(Some(number)) => NodeKind::Number(number),
            Some(None) => return None,
            None => NodeKind::Text(text.to_owned()),
        },
    })
}

/// `None`: not a number; `Some(None)`: a number, but not a finite one.
fn number(text: &str) -> Option<Option<serde_json::Number>> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Some(None);
    }
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            return u64::from_str_radix(digits, radix).ok().map(|n| Some(n.into()));
        }
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        || !unsigned.contains(|c: char| c.is_ascii_digit())
        || !unsigned.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'))
    {
        return None;
    }
    let bare = text.strip_prefix('+').unwrap_or(text);
    if let Ok(n) = bare.parse::<i64>() {
        return Some(Some(n.into()));
    }
    if let Ok(n) = bare.parse::<u64>() {
        return Some(Some(n.into()));
    }
    bare.parse::<f64>().ok().map(serde_json::Number::from_f64)
}
