//! A server sees the sandbox where the user's folders are meant, and what it says of the sandbox is told as the user's
//! (MCP-005).

use std::path::{Component, Path, PathBuf};

use agents_domain::ports::mcp::McpRoot;
use serde_json::{Map, Value};

/// Words in an argument's name by which it is a path.
const PATHS: &[&str] = &[
    "path",
    "paths",
    "file",
    "files",
    "filename",
    "filepath",
    "filepaths",
    "folder",
    "folders",
    "directory",
    "directories",
    "dir",
    "cwd",
];

/// Names of arguments that are paths when one of them names something that is there.
const MAYBE: &[&str] =
    &["source", "destination", "src", "dst", "dest", "from", "to", "target", "old", "new", "root"];

/// Replaces the user's folders at the beginning of a text, or of what follows `file://`.
pub(crate) fn to_sandbox(text: &str, roots: &[McpRoot]) -> String {
    for root in roots {
        let original = root.original.to_string_lossy();
        for prefix in ["", "file://"] {
            let Some(rest) = text.strip_prefix(prefix).and_then(|text| text.strip_prefix(original.as_ref()))
            else {
                continue;
            };
            if rest.is_empty() || rest.starts_with('/') {
                return format!("{prefix}{}{rest}", root.sandbox.display());
            }
        }
    }
    text.to_owned()
}

/// What a server says, with paths in the sandbox told as those of the user's files: relative to the folder.
pub(crate) fn to_user(text: &str, roots: &[McpRoot]) -> String {
    let mut text = text.to_owned();
    for root in roots {
        let sandbox = root.sandbox.to_string_lossy();
        text = text.replace(&format!("file://{sandbox}/"), "").replace(&format!("{sandbox}/"), "");
        text = text.replace(sandbox.as_ref(), ".");
    }
    text
}

/// The arguments of a call as the server gets them. `Err` names the argument that leads out of the sandbox.
pub(crate) fn arguments(arguments: &Value, roots: &[McpRoot]) -> Result<Value, String> {
    let Some(first) = roots.first() else { return Ok(arguments.clone()) };
    let Some(map) = arguments.as_object() else { return Ok(arguments.clone()) };
    let strings = |map: &Map<String, Value>| -> Vec<String> {
        map.iter()
            .filter(|(key, _)| MAYBE.contains(&key.as_str()))
            .filter_map(|(_, value)| value.as_str().map(str::to_owned))
            .collect()
    };
    let there = |text: &String| {
        let path = to_sandbox(text, roots);
        !text.is_empty() && inside(&first.sandbox, &path).is_some_and(|path| path.symlink_metadata().is_ok())
    };
    let maybe = strings(map).iter().any(there);
    let mut rewritten = Map::new();
    for (key, value) in map {
        let path = is_path(key) || (maybe && MAYBE.contains(&key.as_str()));
        rewritten.insert(key.clone(), rewrite(key, value, path, first, roots)?);
    }
    Ok(rewritten.into())
}

fn is_path(key: &str) -> bool {
    let mut word = String::new();
    let mut words = Vec::new();
    for letter in key.chars() {
        if !letter.is_alphanumeric() || letter.is_uppercase() {
            words.push(std::mem::take(&mut word));
        }
        if letter.is_alphanumeric() {
            word.extend(letter.to_lowercase());
        }
    }
    words.push(word);
    // `file_text` and `path_pattern` are none: the last word says what it is.
    words.last().is_some_and(|word| PATHS.contains(&word.as_str()))
}

fn rewrite(
    key: &str,
    value: &Value,
    path: bool,
    first: &McpRoot,
    roots: &[McpRoot],
) -> Result<Value, String> {
    match value {
        Value::String(text) if path => confined(key, text, first, roots).map(Value::String),
        Value::Array(items) => items
            .iter()
            .map(|item| rewrite(key, item, path, first, roots))
            .collect::<Result<_, _>>()
            .map(Value::Array),
        Value::Object(map) => {
            let inner = map
                .iter()
                .map(|(key, value)| Ok((key.clone(), rewrite(key, value, is_path(key), first, roots)?)));
            inner.collect::<Result<Map<_, _>, String>>().map(Value::Object)
        }
        // Elsewhere only what is a path as a whole: contents of files stay as they are.
        Value::String(text) if !text.contains(char::is_whitespace) => Ok(to_sandbox(text, roots).into()),
        other => Ok(other.clone()),
    }
}

/// A path as an absolute one in the sandbox.
fn confined(key: &str, text: &str, first: &McpRoot, roots: &[McpRoot]) -> Result<String, String> {
    let web = text.contains("://") && !text.starts_with("file://");
    if web || text.contains('\n') {
        return Ok(text.to_owned());
    }
    let meant = to_sandbox(text, roots);
    let (prefix, path) = match meant.strip_prefix("file://") {
        Some(path) => ("file://", path),
        None => ("", meant.as_str()),
    };
    let root = roots.iter().find(|root| Path::new(path).starts_with(&root.sandbox)).unwrap_or(first);
    match inside(&root.sandbox, path) {
        Some(path) => Ok(format!("{prefix}{}", path.display())),
        None => Err(format!("`{key}`: `{text}` leads out of the files of `{}`", root.name)),
    }
}

/// The place of a path below a folder; `None` when it leads out, by `..`, by being absolute, or through a link.
fn inside(folder: &Path, path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    let relative = match path.is_absolute() {
        true => path.strip_prefix(folder).ok()?,
        false => path,
    };
    let mut place = folder.to_owned();
    for part in relative.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(name) => {
                place.push(name);
                // The server follows links on its own: none may lead out.
                if place.symlink_metadata().is_ok_and(|found| found.is_symlink()) {
                    let real = place.canonicalize().ok()?;
                    if !real.starts_with(folder.canonicalize().ok()?) {
                        return None;
                    }
                }
            }
            Component::ParentDir => {
                if place == folder || !place.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(place)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn roots(folder: &Path) -> Vec<McpRoot> {
        vec![McpRoot {
            name: "local/app".to_owned(),
            original: "/home/user/app".into(),
            sandbox: folder.to_owned(),
        }]
    }

    // MCP-005
    #[test]
    fn paths_become_those_of_the_sandbox_and_come_back_relative() {
        let folder =
            std::env::temp_dir().canonicalize().unwrap().join(format!("mcp-paths-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("src")).unwrap();
        std::fs::write(folder.join("src/a.py"), "").unwrap();
        let roots = roots(&folder);
        let at = |path: &str| format!("{}{path}", folder.display());
        let given = json!({
            "path": "src/a.py", "filePath": "/home/user/app/src/a.py", "paths": ["./b", "."],
            "source": "src/a.py", "destination": "c.py", "content": "/home/user/app/x and src/a.py",
            "edits": [{ "file_path": "src/a.py", "newText": "path" }], "path_pattern": "*.py", "count": 3,
            "file": "https://example.org/x",
        });
        assert_eq!(
            arguments(&given, &roots).unwrap(),
            json!({
                "path": at("/src/a.py"), "filePath": at("/src/a.py"), "paths": [at("/b"), at("")],
                "source": at("/src/a.py"), "destination": at("/c.py"), "content": "/home/user/app/x and src/a.py",
                "edits": [{ "file_path": at("/src/a.py"), "newText": "path" }], "path_pattern": "*.py", "count": 3,
                "file": "https://example.org/x",
            })
        );
        assert_eq!(
            to_user(&format!("wrote {} in {}", at("/src/a.py"), at("")), &roots),
            "wrote src/a.py in ."
        );
        // Nothing here is a path: `source` is a language.
        let words = json!({ "source": "de", "target": "en" });
        assert_eq!(arguments(&words, &roots).unwrap(), words);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_path_that_leads_out_is_refused() {
        let folder =
            std::env::temp_dir().canonicalize().unwrap().join(format!("mcp-out-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::os::unix::fs::symlink("/etc", folder.join("etc")).unwrap();
        let roots = roots(&folder);
        for path in
            ["../x", "/etc/passwd", "a/../../x", "file:///etc/passwd", "/home/user/app2/x", "etc/passwd"]
        {
            let error = arguments(&json!({ "path": path }), &roots).unwrap_err();
            assert!(error.contains("leads out"), "{path}: {error}");
            assert!(arguments(&json!({ "edits": [{ "path": path }] }), &roots).is_err(), "{path}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
