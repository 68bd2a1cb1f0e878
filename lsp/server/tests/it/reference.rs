//! The reference in `docs/` lists what there is. `UPDATE_DOCS=1` writes the list anew.

use std::fmt::Write;
use std::path::Path;

const BEGIN: &str = "<!-- commands: written by the tests of lsp/server -->\n";
const END: &str = "<!-- end of commands -->\n";

fn commands() -> String {
    let mut out = String::from("| command | method | what it does | parameters |\n|---|---|---|---|\n");
    let mut rows: Vec<_> = agents_engine::catalogue().iter().collect();
    rows.sort_by_key(|operation| operation.command());
    for operation in rows {
        let schema = serde_json::to_value((operation.params)()).unwrap();
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(|name| name.as_str()).collect();
        let properties = schema["properties"].as_object().into_iter().flatten();
        let params: Vec<String> = properties
            .map(|(name, _)| {
                let optional = if required.contains(&name.as_str()) { "" } else { "?" };
                format!("`{name}{optional}`")
            })
            .collect();
        writeln!(
            out,
            "| `{}` | `{}` | {} | {} |",
            operation.command(),
            operation.method,
            operation.summary,
            params.join(", ")
        )
        .unwrap();
    }
    out
}

#[test]
fn the_reference_lists_every_command() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/lsp.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the mark before the commands");
    let (listed, after) = rest.split_once(END).expect("the mark after the commands");
    let wanted = commands();
    if std::env::var_os("UPDATE_DOCS").is_some() && listed != wanted {
        std::fs::write(&path, format!("{before}{BEGIN}{wanted}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(listed, wanted, "run this test once with UPDATE_DOCS=1");
}
