//! The head of a SKILL.md: YAML between two lines `---`, with the instructions after it.

use std::sync::LazyLock;

use agents_domain::skill::AgentSkill;
use serde_json::Value;

use super::{LoadResult, Recipe, load, rename_keys, schema_of};
use crate::yaml::schema::Schema;
use crate::yaml::{Node, NodeKind, Source};
use crate::{Problem, Severity};

static SCHEMA: LazyLock<Value> = LazyLock::new(schema_of::<AgentSkill>);

const RECIPE: Recipe =
    Recipe { wrappers: &[], aliases: &[], schema: || &SCHEMA, normalise, rules, lower: |value| value };

/// The most characters of a name and of a description, as the standard says.
const MOST: &[(&str, usize)] = &[("name", 64), ("description", 1024), ("compatibility", 500)];

/// Reads the head of a SKILL.md. `file_name` is what problems call it.
pub fn load_agent_skill(text: &str, file_name: &str) -> LoadResult<AgentSkill> {
    let Some((head, _)) = split_front_matter(text) else {
        return Err(vec![Problem {
            severity: Severity::Error,
            message: "it must begin with a line `---`, `name:` and `description:`, and a second line `---`"
                .to_owned(),
            field_path: String::new(),
            range: Default::default(),
            file: file_name.to_owned(),
            fix: None,
        }]);
    };
    load(&RECIPE, head, file_name)
}

/// The head of a file, its `---` lines made comments so that lines keep their numbers, and what follows it.
pub fn split_front_matter(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let first = text.split_inclusive('\n').next()?;
    if first.trim_end() != "---" || !first.ends_with('\n') {
        return None;
    }
    let mut end = first.len();
    for line in text[first.len()..].split_inclusive('\n') {
        if line.trim_end() == "---" {
            // A document marker at the beginning is YAML, too.
            return Some((&text[..end], &text[end + line.len()..]));
        }
        end += line.len();
    }
    None
}

/// `Read Bash(git:*), Write` as patterns: parted by spaces and commas outside of brackets.
pub(super) fn tool_patterns(text: &str) -> Vec<String> {
    let mut depth = 0_u32;
    let mut tools = vec![String::new()];
    for letter in text.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (letter == ',' || letter.is_whitespace()) {
            tools.push(String::new());
        } else if let Some(tool) = tools.last_mut() {
            tool.push(letter);
        }
    }
    tools.retain(|tool| !tool.is_empty());
    tools
}

fn normalise(root: &mut Node, source: &mut Source<'_>) {
    // The standard writes `allowed-tools`; there is nothing to say about it.
    let before = source.problems.len();
    rename_keys(root, "", &Schema::new(&SCHEMA).keys(), RECIPE.aliases, source);
    source.problems.truncate(before);
    if let Some(node) = root.get_mut("allowed_tools")
        && let NodeKind::Text(text) = &node.kind
    {
        let bytes = node.bytes.clone();
        let tools = tool_patterns(text).into_iter();
        node.kind = NodeKind::List(
            tools.map(|tool| Node { kind: NodeKind::Text(tool), bytes: bytes.clone() }).collect(),
        );
    }
}

fn rules(root: &Node, source: &mut Source<'_>) {
    for (key, most) in MOST {
        let Some(node) = root.get(key) else { continue };
        let Some(text) = node.text() else { continue };
        if text.trim().is_empty() {
            source.error(key, &node.bytes, format!("`{key}` is empty"));
        } else if text.chars().count() > *most {
            source.error(key, &node.bytes, format!("`{key}` is longer than {most} characters"));
        }
    }
    if let Some(node) = root.get("name")
        && let Some(name) = node.text()
    {
        let odd = |c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if name.contains(odd) || name.starts_with('-') || name.ends_with('-') || name.contains("--") {
            let message = format!(
                "`{name}` is no name of an Agent Skill: lower-case letters and digits, parted by single `-`"
            );
            source.error("name", &node.bytes, message);
        }
    }
}
