//! The reference of configuration keys in docs/ is written from the table.

use std::fmt::Write as _;
use std::path::PathBuf;

use agents_config::{KEYS, Key, KeyDefault, Kind};

/// The head of docs/reference/config.md.
const HEAD: &str = "\
# Configuration keys

A value comes from, strongest first: the flag, the environment variable, the project's section of the file, the file, the
default. The file is `<data-dir>/config.toml` unless `--config-path` names another. `agents config get KEY` shows every
level of one key, `agents config set KEY VALUE` writes the file.

- *Project*: `agents config set --project NAME KEY VALUE` sets it for one project.
- *Effect*: `yes` is acted on. `not yet` is read, checked and kept, and changes nothing in this version.
- A *secret* is never shown.

";

fn type_of(key: &Key) -> String {
    let words = |words: &[&str]| words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", ");
    let kind = key.type_name();
    match key.kind {
        Kind::Choice(choices) => words(choices),
        Kind::Names(choices) if !choices.is_empty() => format!("{kind} of {}", words(choices)),
        Kind::Integer(least) => format!("{kind}, at least {least}"),
        Kind::Fraction => format!("{kind}, 0 to 1"),
        Kind::Path => "path".to_owned(),
        Kind::Url => "URL".to_owned(),
        Kind::Profile => "automation profile".to_owned(),
        Kind::Name => "name".to_owned(),
        Kind::Namespace => "namespace".to_owned(),
        _ => kind.to_owned(),
    }
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    let mut group = "";
    for key in KEYS {
        let of = key.name.split('.').next().unwrap_or_default();
        if of != group {
            group = of;
            write!(
                page,
                "## {group}\n\n| key | meaning | type | default | environment | project | effect |\n"
            )
            .unwrap();
            page += "| --- | --- | --- | --- | --- | --- | --- |\n";
        }
        let default = match key.default {
            KeyDefault::Unset => "unset".to_owned(),
            _ => format!("`{}`", key.default_toml()),
        };
        let env = key.env.map_or_else(|| "none".to_owned(), |env| format!("`{env}`"));
        writeln!(
            page,
            "| `{}` | {}{} | {} | {default} | {env} | {} | {} |",
            key.name,
            key.meaning,
            if key.secret { " (secret)" } else { "" },
            type_of(key),
            if key.per_project { "yes" } else { "no" },
            if key.in_effect { "yes" } else { "not yet" },
        )
        .unwrap();
        let next = KEYS.iter().skip_while(|k| k.name != key.name).nth(1);
        if next.is_none_or(|k| k.name.split('.').next() != Some(group)) {
            page.push('\n');
        }
    }
    page.truncate(page.trim_end().len());
    page + "\n"
}

// docs/reference/config.md; `UPDATE_DOCS=1` rewrites it
#[test]
fn the_reference_of_keys_is_that_of_the_table() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/config.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, page()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page(), "docs/reference/config.md is stale: run this test with UPDATE_DOCS=1");
}

// docs/reference/entities; `UPDATE_DOCS=1` rewrites it
#[test]
fn the_json_schemas_of_entity_files_are_those_of_the_loaders() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/entities");
    for kind in agents_config::KINDS {
        let mut text = serde_json::to_string_pretty((kind.schema)()).unwrap();
        text.push('\n');
        let path = folder.join(format!("{}.schema.json", kind.name.replace([' ', '_'], "-")));
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(written == text, "{} is stale: run this test with UPDATE_DOCS=1", path.display());
    }
}
