//! From locations of the protocol to places in the engine's terms, with the line each is on.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use agents_domain::ports::code_intelligence::{Place, PlacedSymbol};
use agents_domain::text::{LineIndex, Range};
use serde_json::Value;

use crate::client::Client;
use crate::instance::Instance;
use crate::position::{Converter, Encoding};
use crate::questions::kind_name;
use crate::{files, lock, uri};

/// Places of one answer.
const MAX_PLACES: usize = 10_000;
/// Bytes of a line that are kept; whoever shows it cuts the part out that matters.
const MAX_LINE: usize = 4_000;

/// Reads locations of one server's answer.
pub(crate) struct Locations<'a> {
    instance: &'a Instance,
    encoding: Encoding,
}

impl<'a> Locations<'a> {
    pub(crate) fn new(instance: &'a Instance, client: &Client) -> Self {
        Self { instance, encoding: client.facts.encoding }
    }

    /// A `Location`, a list of them, or of `LocationLink`s, in the order given; what is no file is left out.
    pub(crate) fn read_all(&self, answer: &Value) -> Vec<Place> {
        let one = [answer];
        let list: Vec<&Value> = match answer {
            Value::Array(list) => list.iter().take(MAX_PLACES).collect(),
            _ => one.to_vec(),
        };
        let wanted = list.into_iter().map(|location| match location["targetUri"].is_string() {
            true => (&location["targetUri"], &location["targetSelectionRange"], &location["targetRange"]),
            false => (&location["uri"], &location["range"], &Value::Null),
        });
        let wanted: Vec<(Value, Vec<Value>)> = wanted
            .map(|(uri, range, other)| {
                let range = if range.is_object() { range } else { other };
                (uri.clone(), vec![range.clone()])
            })
            .collect();
        let mut places: Vec<Place> = Vec::new();
        for found in self.read(&wanted).into_iter().flatten() {
            let place = found.0;
            if !places.contains(&place) || places.len() > 1000 {
                places.push(place);
            }
        }
        places
    }

    /// Symbols with the URI, range and container that `parts` finds in each; their `calls` are ranges in the same file.
    pub(crate) fn symbols(
        &self,
        symbols: &[Value],
        parts: impl Fn(&Value) -> (Value, Value, Value),
    ) -> Vec<PlacedSymbol> {
        let parts: Vec<(Value, Value, Value)> = symbols.iter().map(parts).collect();
        let wanted: Vec<(Value, Vec<Value>)> = symbols
            .iter()
            .zip(&parts)
            .map(|(symbol, (uri, range, _))| {
                let calls = symbol["calls"].as_array().map_or(&[][..], Vec::as_slice);
                (uri.clone(), [std::slice::from_ref(range), calls].concat())
            })
            .collect();
        let mut out = Vec::new();
        for ((symbol, (_, _, container)), found) in symbols.iter().zip(parts).zip(self.read(&wanted)) {
            let (Some(name), Some((place, calls))) = (symbol["name"].as_str(), found) else { continue };
            out.push(PlacedSymbol {
                name: name.to_owned(),
                kind: kind_name(symbol["kind"].as_u64().unwrap_or_default()).to_owned(),
                container: container.as_str().filter(|text| !text.is_empty()).map(str::to_owned),
                place,
                calls,
            });
        }
        out
    }

    /// For each URI with ranges: the place of the first range, and the other ranges. Each file is read once.
    fn read(&self, wanted: &[(Value, Vec<Value>)]) -> Vec<Option<(Place, Vec<Range>)>> {
        let mut by_file: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, (uri, _)) in wanted.iter().enumerate().take(MAX_PLACES) {
            if let Some(path) = uri.as_str().and_then(uri::to_path) {
                by_file.entry(path).or_default().push(at);
            }
        }
        let mut out = vec![None; wanted.len()];
        for (file, entries) in by_file {
            let inside = uri::relative_path(&self.instance.root, &file);
            let text = self.text(&file, inside.as_deref()).unwrap_or_default();
            let converter = Converter::new(&text, self.encoding);
            let index = LineIndex::new(&text);
            let unread = text.is_empty();
            for at in entries {
                let mut ranges = wanted[at].1.iter().map(|range| match unread {
                    true => unconverted(range),
                    false => converter.range(range),
                });
                let range = ranges.next().unwrap_or_default();
                let others = ranges.collect();
                let place = Place {
                    path: inside.clone().unwrap_or_else(|| file.clone()),
                    outside: inside.is_none(),
                    range,
                    line: line(&text, &index, range.start.line),
                };
                out[at] = Some((place, others));
            }
        }
        out
    }

    /// A file as the server sees it.
    fn text(&self, file: &str, inside: Option<&str>) -> Option<Arc<str>> {
        let known = inside.and_then(|path| lock(&self.instance.documents).known(path));
        if let Some((text, _)) = known {
            return Some(text);
        }
        match inside {
            Some(path) => files::read_text(&self.instance.root, path).ok().map(Arc::from),
            None => files::read_outside(Path::new(file)).map(Arc::from),
        }
    }
}

/// A range of a file that cannot be read: its lines hold, its columns may count something else than bytes.
fn unconverted(range: &Value) -> Range {
    let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok()).unwrap_or(0);
    let at = |end: &str| (number(&range[end]["line"]), number(&range[end]["character"]));
    let (start, end) = (at("start"), at("end"));
    Range::new(start, end.max(start))
}

fn line(text: &str, index: &LineIndex, line: u32) -> String {
    let Some(start) = index.offset(text, agents_domain::text::Position { line, column: 0 }) else {
        return String::new();
    };
    let line = usize::try_from(line).unwrap_or(usize::MAX);
    if line >= index.lines() {
        return String::new();
    }
    let end = index.line_end(text, line);
    let line = text.get(start..end).unwrap_or_default().trim_end();
    match line.char_indices().find(|(at, _)| *at >= MAX_LINE) {
        Some((at, _)) => format!("{}\u{2026}", &line[..at]),
        None => line.to_owned(),
    }
}
