//! The first phase of an actor file: its templates become YAML, with the file's own context and the run's.

use std::ops::Range as Bytes;
use std::sync::Arc;

use agents_domain::QualifiedName;
use agents_domain::template;
use minijinja::value::{Object, Value as Jinja};
use minijinja::{Error, ErrorKind, State};
use serde_json::{Map, Value};

use super::protect::{self, Protected};
use super::{Reading, at_top};
use crate::Problem;
use crate::yaml::{Node, NodeKind, Origin, Piece, Source, compose};

/// What the YAML is made of.
pub(super) struct Rendered {
    pub text: String,
    /// Where it came from, when templates were rendered.
    pub origin: Option<Origin>,
    /// Templates are still in it: there was nothing to render them with.
    pub is_open: bool,
}

/// Renders the templates of a file.
pub(super) fn render(text: &str, file: &str, reading: &Reading<'_>) -> Result<Rendered, Vec<Problem>> {
    let plain = |text: String, is_open| Ok(Rendered { text, origin: None, is_open });
    if serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() {
        // JSON is YAML but for tabs, which can only stand between its parts.
        return plain(text.replace('\t', " "), false);
    }
    if !template::is_template(text) || engine_is_none(text) {
        return plain(text.to_owned(), false);
    }
    if let Some(at) = protect::taken(text) {
        let mut source = Source::new(text, file);
        let len = text[at..].chars().next().map_or(0, char::len_utf8);
        source.error(
            "",
            &(at..at + len),
            "this character has no meaning in any script and cannot be used here",
        );
        return Err(source.problems);
    }
    let protected = protect::protect(text);
    let own = own_context(text, file)?;
    let context = match (own, reading.context) {
        (None, None) => {
            if parses(&protected.text) {
                return plain(text_of(protected, text), true);
            }
            None
        }
        (own, over) => {
            let mut context = own.unwrap_or_else(|| Value::Object(Map::new()));
            if let Some(over) = over {
                template::merge(&mut context, over);
            }
            Some(context)
        }
    };
    let rendered = run(&protected, text, file, context, reading)?;
    if parses(&rendered.text) {
        return Ok(rendered);
    }
    let split = split_lines(&rendered);
    Ok(if parses(&split.text) { split } else { rendered })
}

/// The text with comments and prompts protected, when nothing was put into it.
fn text_of(protected: Protected, written: &str) -> String {
    if protected.inserted.is_empty() { protected.text } else { written.to_owned() }
}

/// `template_engine: NONE`, found before the file can be parsed.
fn engine_is_none(text: &str) -> bool {
    text.lines().any(|line| {
        let line = line.trim_start();
        line.strip_prefix("template_engine:").is_some_and(|value| {
            let value = value.split(" #").next().unwrap_or_default();
            value.trim().trim_matches(['"', '\'']).eq_ignore_ascii_case("none")
        })
    })
}

fn parses(text: &str) -> bool {
    let mut source = Source::new(text, "");
    compose(&mut source).is_some() && !source.has_errors()
}

/// `global_context` and `context.global`, read on their own: the file as a whole may not be YAML yet.
fn own_context(text: &str, file: &str) -> Result<Option<Value>, Vec<Problem>> {
    let mut masked = String::with_capacity(text.len());
    let mut inside = false;
    let mut found = false;
    for line in text.split_inclusive('\n') {
        if line.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '"' || c == '\'') {
            inside = ["global_context:", "context:"].iter().any(|key| line.starts_with(key));
            found |= inside;
        } else if line.starts_with("{%") || line.starts_with("{#") {
            inside = false;
        }
        if inside {
            masked.push_str(line);
        } else if line.ends_with('\n') {
            masked.push('\n');
        }
    }
    if !found {
        return Ok(None);
    }
    let mut source = Source::new(&masked, file);
    let root = compose(&mut source);
    if source.has_errors() {
        return Err(source.problems);
    }
    let root = root.unwrap_or(Node { kind: NodeKind::Null, bytes: 0..0 });
    let own =
        root.get("global_context").or_else(|| root.get("context").and_then(|context| context.get("global")));
    Ok(own.map(Node::to_json).filter(Value::is_object))
}

/// The registered language servers, as templates see them.
#[derive(Debug)]
struct Servers(Vec<(QualifiedName, Vec<String>)>);

impl Object for Servers {
    fn call_method(
        self: &Arc<Self>,
        _: &mut State<'_, '_>,
        method: &str,
        args: &[Jinja],
    ) -> Result<Jinja, Error> {
        let names = |wanted: &dyn Fn(&[String]) -> bool| {
            let mut names: Vec<String> =
                self.0.iter().filter(|(_, of)| wanted(of)).map(|(name, _)| name.to_string()).collect();
            names.sort();
            Jinja::from(names)
        };
        match (method, args) {
            ("all", []) => Ok(names(&|_| true)),
            ("for_language", [language]) => {
                let language = language.to_string();
                Ok(names(&|of| of.iter().any(|one| one.eq_ignore_ascii_case(&language))))
            }
            _ => Err(Error::new(
                ErrorKind::UnknownMethod,
                format!("`lsp_registry` has `for_language(language)` and `all()`, not `{method}`"),
            )),
        }
    }
}

/// What templates of `lsp` may use although the file gives no context.
const OF_RUNS: &[&str] = &[
    "lsp_registry",
    "lsp_registry.for_language",
    "lsp_registry.all",
    "context.project_languages",
    "context.resource_languages",
];

fn run(
    protected: &Protected,
    written: &str,
    file: &str,
    context: Option<Value>,
    reading: &Reading<'_>,
) -> Result<Rendered, Vec<Problem>> {
    let mut environment = template::environment();
    environment.set_syntax(template::syntax());
    let fail = |error: &Error| {
        let mut source = Source::new(written, file);
        let bytes = error.range().map_or(0..0, |range| {
            let clamp = |at: usize| at.min(protected.text.len());
            let start = protected.written(clamp(range.start));
            let end = protected.written(clamp(range.end)).max(start);
            // Places are never inside a character.
            let start =
                (0..=start.min(written.len())).rev().find(|at| written.is_char_boundary(*at)).unwrap_or(0);
            start..(end..written.len()).find(|at| written.is_char_boundary(*at)).unwrap_or(written.len())
        });
        let why = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
        let why = match error.kind() {
            ErrorKind::OutOfFuel => "it does more than a template of a file may do".to_owned(),
            _ => why,
        };
        source.error("", &bytes, format!("the template cannot be rendered: {why}"));
        source.problems
    };
    let compiled = environment.template_from_str(&protected.text).map_err(|error| fail(&error))?;
    if context.is_none() {
        let used = compiled.undeclared_variables(true);
        let foreign = used.iter().find(|name| {
            !OF_RUNS.contains(&name.as_str())
                && !["range", "abs", "round", "len", "min", "max", "sum"].contains(&name.as_str())
        });
        if let Some(name) = foreign {
            let tag = written.find("{%").unwrap_or(0);
            let end = written[tag..].find("%}").map_or(tag, |end| tag + end + 2);
            let mut source = Source::new(written, file);
            let message = format!(
                "the file is YAML only after its templates are rendered, and nothing says what `{name}` is: give a `global_context`"
            );
            source.error("", &(tag..end), message);
            return Err(source.problems);
        }
    }
    let context = context.unwrap_or_else(|| Value::Object(Map::new()));
    let values = minijinja::context! {
        context => template::visible(&context),
        lsp_registry => Jinja::from_object(Servers(reading.servers.to_vec())),
    };
    let (text, spans) = compiled.render_with_spans(values).map_err(|error| fail(&error))?;
    if text.len() > crate::MAX_FILE_BYTES {
        return Err(vec![at_top(file, "the file becomes larger than 1 MiB when its templates are rendered")]);
    }
    let pieces =
        spans.iter().flat_map(|span| pieces(span.output_range(), span.source_range(), &text, protected));
    Ok(Rendered { origin: Some(Origin(pieces.collect())), text, is_open: false })
}

/// What a span of the output came from, apart from what was put into the text before it was rendered.
fn pieces(made: Bytes<usize>, source: Bytes<usize>, text: &str, protected: &Protected) -> Vec<Piece> {
    let is_raw = made.len() == source.len() && protected.text.get(source.clone()) == text.get(made.clone());
    if !is_raw {
        return vec![Piece {
            made,
            written: protected.written(source.start)..protected.written(source.end),
            exact: false,
        }];
    }
    let mut bounds = vec![source.start, source.end];
    for (place, len) in &protected.inserted {
        bounds.extend([*place, place + len].into_iter().filter(|at| source.contains(at)));
    }
    bounds.sort_unstable();
    bounds.dedup();
    let parts = bounds.windows(2).map(|pair| {
        let written = protected.written(pair[0])..protected.written(pair[1]);
        Piece {
            made: made.start + (pair[0] - source.start)..made.start + (pair[1] - source.start),
            exact: written.len() == pair[1] - pair[0],
            written,
        }
    });
    parts.collect()
}

/// Splits lines that a template filled with several `key: value` pairs (ACTOR-054). Texts in quotes and block texts are
/// left alone.
fn split_lines(rendered: &Rendered) -> Rendered {
    let mut text = String::with_capacity(rendered.text.len() + 64);
    let mut pieces: Vec<Piece> = Vec::new();
    let mut block: Option<usize> = None;
    let mut at = 0;
    let origin = |bytes: &Bytes<usize>| match &rendered.origin {
        Some(origin) => origin.of(bytes),
        None => (bytes.clone(), true),
    };
    for line in rendered.text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start_matches(' ').len();
        if !line.trim().is_empty() {
            block = block.filter(|of| indent > *of);
        }
        let cuts = if block.is_some() { Vec::new() } else { cuts(line) };
        if block.is_none() && line.trim_end().ends_with(['|', '>']) && line.contains(": ") {
            block = Some(indent);
        }
        let mut from = 0;
        for cut in cuts.iter().copied().chain([line.len()]) {
            let part = &line[from..cut];
            let made = text.len();
            if from > 0 {
                text.push_str(&" ".repeat(indent));
            }
            let start = text.len();
            text.push_str(if cut < line.len() { part.trim_end() } else { part });
            let (written, exact) = origin(&(at + from..at + from + (text.len() - start)));
            pieces.push(Piece { made: made..start, written: written.start..written.start, exact: false });
            pieces.push(Piece { made: start..text.len(), written, exact });
            if cut < line.len() {
                text.push('\n');
            }
            from = cut;
        }
        at += line.len();
    }
    pieces.retain(|piece| !piece.made.is_empty());
    Rendered { text, origin: Some(Origin(pieces)), is_open: rendered.is_open }
}

/// Where in a line another `key: value` begins.
fn cuts(line: &str) -> Vec<usize> {
    if line.contains(['"', '\'', '{', '[', '#']) {
        return Vec::new();
    }
    let mut cuts = Vec::new();
    let mut keys = 0;
    let mut at = 0;
    for word in line.split_inclusive(' ') {
        let is_key = word.trim_end().strip_suffix(':').is_some_and(|key| {
            !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        });
        if is_key {
            keys += 1;
            if keys > 1 {
                cuts.push(at);
            }
        }
        at += word.len();
    }
    cuts
}
