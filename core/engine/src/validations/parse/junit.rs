//! JUnit XML, as most test runners can write it. Only what is needed is read: elements, attributes, text.

use agents_domain::validation::Finding;

use super::{Report, pattern};

pub(super) fn read(text: &str) -> Report {
    let place = pattern(r"(?m)^\s*(?:File \x22)?([^\s:\x22()]+\.\w+)(?:\x22, line |:)(\d+)");
    let mut findings = Vec::new();
    let (mut all, mut bad) = (0_u64, 0_u64);
    let mut case: Vec<(String, String)> = Vec::new();
    let mut failure: Option<(String, String)> = None;
    for event in events(text) {
        match event {
            Event::Open(name, attributes) if name == "testcase" => {
                all += 1;
                case = attributes;
            }
            Event::Open(name, attributes) if name == "failure" || name == "error" => {
                let message = value(&attributes, "message").or_else(|| value(&attributes, "type"));
                failure = Some((message.unwrap_or_default().to_owned(), String::new()));
            }
            Event::Text(text) => {
                if let Some((_, body)) = &mut failure {
                    body.push_str(&text);
                }
            }
            Event::Close(name) if name == "failure" || name == "error" => {
                let Some((message, body)) = failure.take() else { continue };
                bad += 1;
                let line = message.lines().next().filter(|l| !l.trim().is_empty());
                let line = line.or_else(|| body.lines().find(|l| !l.trim().is_empty())).unwrap_or("failed");
                let named = value(&case, "file").map(str::to_owned);
                let within = place.captures_iter(&body).last();
                let at = |n: usize| within.as_ref().map(|parts| parts[n].to_owned());
                let own_line = value(&case, "line").and_then(|l| l.parse().ok());
                findings.push(Finding {
                    line: own_line.or_else(|| at(2).and_then(|l| l.parse().ok())),
                    file: named.or_else(|| at(1)),
                    code: Some(test_name(&case)),
                    ..Finding::error(line.trim())
                });
            }
            _ => {}
        }
    }
    Report { findings, tests: (all > 0).then(|| (all.saturating_sub(bad), all)) }
}

fn test_name(case: &[(String, String)]) -> String {
    match (value(case, "classname").filter(|c| !c.is_empty()), value(case, "name").unwrap_or("a test")) {
        (Some(class), name) => format!("{class}::{name}"),
        (None, name) => name.to_owned(),
    }
}

fn value<'a>(attributes: &'a [(String, String)], name: &str) -> Option<&'a str> {
    attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

enum Event {
    Open(String, Vec<(String, String)>),
    Close(String),
    Text(String),
}

/// A walk over the text that never fails: what is no XML gives nothing.
fn events(text: &str) -> Vec<Event> {
    let mut events = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        if at > 0 {
            events.push(Event::Text(unescape(&rest[..at])));
        }
        rest = &rest[at..];
        let skip = |rest: &'_ str, end: &str| rest.find(end).map_or(rest.len(), |at| at + end.len());
        if let Some(data) = rest.strip_prefix("<![CDATA[") {
            let end = data.find("]]>").unwrap_or(data.len());
            events.push(Event::Text(data[..end].to_owned()));
            rest = data.get(end + 3..).unwrap_or("");
        } else if rest.starts_with("<!--") {
            rest = &rest[skip(rest, "-->")..];
        } else if rest.starts_with("<?") || rest.starts_with("<!") {
            rest = &rest[skip(rest, ">")..];
        } else {
            let end = tag_end(rest);
            let inside = &rest[1..end];
            rest = rest.get(end + 1..).unwrap_or("");
            if let Some(name) = inside.strip_prefix('/') {
                events.push(Event::Close(name.trim().to_owned()));
                continue;
            }
            let empty = inside.ends_with('/');
            let inside = inside.trim_end_matches('/');
            let (name, attributes) = inside.split_once(|c: char| c.is_whitespace()).unwrap_or((inside, ""));
            events.push(Event::Open(name.to_owned(), attributes_of(attributes)));
            if empty {
                events.push(Event::Close(name.to_owned()));
            }
        }
    }
    events
}

/// Where a tag ends: at the first `>` outside quotes.
fn tag_end(text: &str) -> usize {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (c, quote) {
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(q)) if c == q => quote = None,
            ('>', None) => return at,
            _ => {}
        }
    }
    text.len()
}

fn attributes_of(text: &str) -> Vec<(String, String)> {
    let attribute = pattern(r#"([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')"#);
    attribute
        .captures_iter(text)
        .map(|parts| {
            let value = parts.get(2).or_else(|| parts.get(3)).map_or("", |m| m.as_str());
            (parts[1].to_owned(), unescape(value))
        })
        .collect()
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let Some(end) = rest.find(';').filter(|end| *end < 12) else {
            out.push('&');
            rest = &rest[1..];
            continue;
        };
        let entity = &rest[1..end];
        let number = entity.strip_prefix("#x").map(|hex| u32::from_str_radix(hex, 16));
        let number = number.or_else(|| entity.strip_prefix('#').map(str::parse));
        let named = match entity {
            "lt" => Some('<'),
            "gt" => Some('>'),
            "amp" => Some('&'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            _ => number.and_then(Result::ok).and_then(char::from_u32),
        };
        match named {
            Some(c) => out.push(c),
            None => out.push_str(&rest[..=end]),
        }
        rest = &rest[end + 1..];
    }
    out.push_str(rest);
    out
}
