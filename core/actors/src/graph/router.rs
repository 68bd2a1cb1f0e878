//! Message routers: the text of a message says where it goes (2.6).

use agents_domain::actor::{MatchKind, Node, Route};
use serde_json::{Value, json};

/// Where a message goes, and what is left of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Routed {
    /// The node, or `None` where its edges decide.
    pub target: Option<String>,
    pub text: String,
    /// It is shown, and the graph is over.
    pub shown: bool,
}

/// Looks at the rules, then at the prefixes every router knows. What a prefix sets goes into `context`.
pub(super) fn route(route: &Route, node: &Node, message: &str, context: &mut Value) -> Routed {
    for rule in &node.rules {
        let at = match rule.kind {
            MatchKind::Prefix => message.starts_with(&rule.text).then_some(0),
            MatchKind::Contains => message.find(&rule.text),
            MatchKind::Suffix => message.ends_with(&rule.text).then(|| message.len() - rule.text.len()),
        };
        if let Some(at) = at {
            let text =
                if rule.strip_match { stripped(message, at, rule.text.len()) } else { message.to_owned() };
            return Routed { target: Some(rule.target.clone()), text, shown: false };
        }
    }
    let to = |target: Option<String>, text: &str| Routed {
        target,
        text: text.trim_start().to_owned(),
        shown: false,
    };
    let Some((prefix, rest)) = message.split_once(':') else {
        return Routed { target: None, text: message.to_owned(), shown: false };
    };
    let is_word =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if prefix == "COMMAND_OUTPUT" {
        return Routed { shown: true, ..to(None, rest) };
    }
    if prefix == "DISCOVERY_RESPONSE" {
        set(context, "discovery_response", rest.trim_start());
        return to(None, rest);
    }
    if let Some(field) = prefix.strip_prefix("SET_").filter(|field| is_word(field)) {
        set(context, &field.to_ascii_lowercase(), rest.trim_start());
        return to(None, rest);
    }
    for start in ["GOTO_", "ROUTE_"] {
        let Some(name) = prefix.strip_prefix(start).filter(|name| is_word(name)) else { continue };
        let node = route.nodes.keys().find(|id| id.eq_ignore_ascii_case(name)).map(str::to_owned);
        if node.is_none() && start == "ROUTE_" {
            set(context, "route", name);
        }
        if node.is_some() || start == "ROUTE_" {
            return to(node, rest);
        }
    }
    Routed { target: None, text: message.to_owned(), shown: false }
}

/// Takes what matched out, with one `:` and the spaces behind it.
fn stripped(message: &str, at: usize, len: usize) -> String {
    let (before, rest) = (&message[..at], &message[at + len..]);
    let rest = rest.strip_prefix(':').unwrap_or(rest).trim_start();
    format!("{before}{rest}")
}

fn set(context: &mut Value, key: &str, text: &str) {
    if !context.is_object() {
        *context = json!({});
    }
    context[key] = text.into();
}
