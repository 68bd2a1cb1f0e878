//! Keeps templates out of the way that are not to be rendered when a file is loaded: those in comments, and those of
//! prompts, which are rendered when their agent runs.
//!
//! The marks of a protected template are replaced by characters that mean nothing, each as long as the mark, so that
//! places stay what they are.

use std::ops::Range as Bytes;

use crate::yaml::{Node, NodeKind};

/// Marks with what stands for them: characters that Unicode has not assigned, two bytes long.
const MARKS: [(&str, char); 6] = [
    ("{{", '\u{0380}'),
    ("}}", '\u{0381}'),
    ("{%", '\u{0382}'),
    ("%}", '\u{0383}'),
    ("{#", '\u{0378}'),
    ("#}", '\u{0379}'),
];

/// Keys whose values are prompts.
pub(super) fn is_prompt(key: &str) -> bool {
    matches!(key, "system_prompt" | "prompt")
}

/// Keys whose values are not rendered when the file is loaded.
pub(super) fn is_deferred(key: &str) -> bool {
    is_prompt(key) || key == "code"
}

/// A character of the text that stands for a mark here, if there is one.
pub(super) fn taken(text: &str) -> Option<usize> {
    text.char_indices().find(|(_, c)| MARKS.iter().any(|(_, mark)| mark == c)).map(|(at, _)| at)
}

/// The marks of protected templates are there again.
pub(super) fn restore(node: &mut Node) {
    match &mut node.kind {
        NodeKind::Text(text) | NodeKind::Open(text) => *text = restored(text),
        NodeKind::List(items) => items.iter_mut().for_each(restore),
        NodeKind::Map(entries) => {
            for entry in entries {
                entry.key = restored(&entry.key);
                restore(&mut entry.value);
            }
        }
        _ => {}
    }
}

fn restored(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match MARKS.iter().find(|(_, mark)| *mark == c) {
            Some((mark, _)) => out.push_str(mark),
            None => out.push(c),
        }
    }
    out
}

fn protected(text: &str) -> String {
    MARKS.iter().fold(text.to_owned(), |text, (mark, stand_in)| text.replace(mark, &stand_in.to_string()))
}

/// A text with its protected parts, and where something was put in.
pub(super) struct Protected {
    pub text: String,
    /// Places in `text` with how many bytes were put in there, in order.
    pub inserted: Vec<(usize, usize)>,
}

impl Protected {
    /// The byte of the written text behind one of this.
    pub fn written(&self, at: usize) -> usize {
        let mut less = 0;
        for (place, len) in &self.inserted {
            if at >= place + len {
                less += len;
            } else if at > *place {
                less += at - place;
            }
        }
        at - less
    }
}

/// A loop that stands around a line.
struct Loop {
    names: Vec<String>,
}

/// Protects comments and deferred values. Inside loops, a deferred value begins with lines that give the loop's
/// variables the values they have when the file is loaded.
pub(super) fn protect(text: &str) -> Protected {
    let mut out = Protected { text: String::with_capacity(text.len() + 64), inserted: Vec::new() };
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut loops: Vec<Loop> = Vec::new();
    // The indentation of the key whose block is protected, and of any other block text.
    let mut deferred: Option<usize> = None;
    let mut block: Option<usize> = None;
    let mut pending_set = false;
    for line in lines {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let bare = line.trim();
        if !bare.is_empty() {
            deferred = deferred.filter(|of| indent > *of);
            block = block.filter(|of| indent > *of);
        }
        if deferred.is_some() {
            if pending_set && !bare.is_empty() {
                pending_set = false;
                put_loop_variables(&loops, indent, &mut out);
            }
            out.text.push_str(&protected(line));
            continue;
        }
        if block.is_some() {
            put_line(line, &mut out);
            track_loops(line, &mut loops);
            continue;
        }
        if bare.starts_with('#') {
            out.text.push_str(&protected(line));
            continue;
        }
        let Some((key, key_indent, value)) = key_of(line) else {
            put_line(line, &mut out);
            track_loops(line, &mut loops);
            continue;
        };
        // `prompts` and `templates` at the top are rendered when they are used.
        let section = key_indent == 0 && matches!(key, "prompts" | "templates");
        if !is_deferred(key) && !section {
            if starts_block(&line[value.clone()]) {
                block = Some(key_indent);
            }
            put_line(&format!("{}{}", &line[..value.start], without_comment(&line[value.start..])), &mut out);
            track_loops(line, &mut loops);
            continue;
        }
        deferred = Some(key_indent);
        let is_block = starts_block(&line[value.clone()]);
        pending_set = is_block && !loops.is_empty() && is_prompt(key);
        if !is_block && !loops.is_empty() && is_prompt(key) {
            // A text on the line of its key: the variables go inside it, behind a quote.
            out.text.push_str(&line[..value.start]);
            let quote = line[value.clone()].starts_with(['"', '\'']);
            let from = value.start + usize::from(quote);
            out.text.push_str(&line[value.start..from]);
            let quote = line[value].chars().next().filter(|c| matches!(c, '"' | '\''));
            put_inline(&loops, quote, &mut out);
            out.text.push_str(&protected(&line[from..]));
        } else {
            out.text.push_str(&line[..value.start]);
            out.text.push_str(&protected(&line[value.start..]));
        }
    }
    out
}

/// Puts a line in. One with nothing but tags leaves nothing behind when it is rendered; a tag at the beginning or end of
/// another must not take the indentation or the end of its line away.
fn put_line(line: &str, out: &mut Protected) {
    let bare = line.trim();
    let only_tags = || {
        let mut rest = bare;
        while let Some(inside) = rest.strip_prefix("{%").or_else(|| rest.strip_prefix("{#")) {
            match inside.find("%}").into_iter().chain(inside.find("#}")).min() {
                Some(end) => rest = inside[end + 2..].trim_start(),
                None => return true,
            }
        }
        rest.is_empty()
    };
    let (opens, closes) = (bare.starts_with("{%"), bare.ends_with("%}"));
    if !(opens || closes) || only_tags() {
        return out.text.push_str(line);
    }
    let start = line.len() - line.trim_start().len() + 2;
    let end = line.trim_end().len().saturating_sub(2);
    // Marks that overlap are no tag.
    if end < start || !line.is_char_boundary(start) {
        return out.text.push_str(line);
    }
    let mut from = 0;
    if opens && !line[start..].starts_with(['-', '+']) {
        out.text.push_str(&line[..start]);
        insert("+".to_owned(), out);
        from = start;
    }
    if closes && end > from && !line[..end].ends_with(['-', '+']) {
        out.text.push_str(&line[from..end]);
        insert("+".to_owned(), out);
        from = end;
    }
    out.text.push_str(&line[from..]);
}

/// `key: value`, also behind `- `: the key, where it stands, and the bytes of the value.
fn key_of(line: &str) -> Option<(&str, usize, Bytes<usize>)> {
    let mut start = line.len() - line.trim_start_matches(' ').len();
    while line[start..].starts_with("- ") {
        start += 2;
        start += line[start..].len() - line[start..].trim_start_matches(' ').len();
    }
    let rest = &line[start..];
    let len = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'))?;
    let after = rest[len..].strip_prefix(':')?;
    if len == 0 || !(after.is_empty() || after.starts_with([' ', '\n', '\r', '\t'])) {
        return None;
    }
    let value = start + len + 1;
    let value = value + (line[value..].len() - line[value..].trim_start_matches(' ').len());
    let end = value + line[value..].trim_end().len();
    Some((&rest[..len], start, value..end))
}

/// `|`, `>` and their variants.
fn starts_block(value: &str) -> bool {
    let head = value.split(" #").next().unwrap_or_default().trim_end();
    head.starts_with(['|', '>']) && head[1..].chars().all(|c| matches!(c, '+' | '-' | '0'..='9'))
}

/// Protects a comment behind a value: ` # ...` outside quotes and template marks.
fn without_comment(rest: &str) -> String {
    let bytes = rest.as_bytes();
    let (mut quote, mut inside) = (None::<u8>, 0usize);
    for (at, byte) in bytes.iter().enumerate() {
        match (quote, byte) {
            (Some(open), byte) if open == *byte => quote = None,
            (None, b'"' | b'\'') => quote = Some(*byte),
            (None, b'{') if matches!(bytes.get(at + 1), Some(b'{' | b'%')) => inside += 1,
            (None, b'}') if at > 0 && matches!(bytes[at - 1], b'}' | b'%') => {
                inside = inside.saturating_sub(1)
            }
            (None, b'#') if inside == 0 && at > 0 && bytes[at - 1] == b' ' => {
                return format!("{}{}", &rest[..at], protected(&rest[at..]));
            }
            _ => {}
        }
    }
    rest.to_owned()
}

/// Follows `{% for a, b in c %}` and `{% endfor %}`.
fn track_loops(line: &str, loops: &mut Vec<Loop>) {
    let mut rest = line;
    while let Some(at) = rest.find("{%") {
        let Some(end) = rest[at + 2..].find("%}").map(|end| end + 2) else { break };
        let tag = rest[at + 2..at + end].trim_matches(['-', '+', ' ']);
        let mut words = tag.splitn(2, char::is_whitespace);
        match (words.next(), words.next()) {
            (Some("for"), Some(head)) => {
                let names = head.split(" in ").next().unwrap_or_default();
                let names = names.split(',').map(|name| name.trim_matches(['(', ')', ' ']).to_owned());
                let names = names.filter(|name| !name.is_empty() && !name.starts_with('_')).collect();
                loops.push(Loop { names });
            }
            (Some("endfor"), _) => {
                loops.pop();
            }
            _ => {}
        }
        rest = &rest[at + end + 2..];
    }
}

/// A line for each variable of the loops, which sets it when the prompt is rendered.
fn put_loop_variables(loops: &[Loop], indent: usize, out: &mut Protected) {
    let space = " ".repeat(indent);
    let mut put = String::new();
    for name in loops.iter().flat_map(|one| &one.names) {
        put.push_str(&space);
        put.push_str(&set(name, None));
        put.push('\n');
    }
    insert(put, out);
}

fn put_inline(loops: &[Loop], quote: Option<char>, out: &mut Protected) {
    let put = loops.iter().flat_map(|one| &one.names).map(|name| set(name, quote)).collect();
    insert(put, out);
}

fn insert(put: String, out: &mut Protected) {
    out.inserted.push((out.text.len(), put.len()));
    out.text.push_str(&put);
}

/// `{% set name = <its value> %}`: the tag is rendered later, the value now. In quotes, the value must not end them.
fn set(name: &str, quote: Option<char>) -> String {
    let (open, close) = (MARKS[2].1, MARKS[3].1);
    let value = match quote {
        None => format!("{{{{ {name} | tojson }}}}"),
        Some('"') => {
            format!("{{{{ {name} | tojson | replace('\\\\', '\\\\\\\\') | replace('\"', '\\\\\"') }}}}")
        }
        Some(_) => format!("{{{{ {name} | tojson | replace(\"'\", \"''\") }}}}"),
    };
    format!("{open}- set {name} = {value} -{close}")
}
