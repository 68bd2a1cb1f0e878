//! `find_definition` and `find_references`: by language servers where any is bound, else by syntax, else by words (G-42).

use agents_domain::ports::BoxFuture;
use agents_grammars::Language;
use regex::Regex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::args::{Page, read, sandbox, schema};
use super::searching::{GROUP, cut};
use super::{Body, Scene, Tool, looks};
use crate::sandboxes::OpenSandbox;

/// Results of one page, unless asked otherwise and at most.
const PLACES: (usize, usize) = (100, 1000);
/// The largest file that is looked into.
const MAX_FILE: u64 = 2 << 20;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        looks(
            GROUP,
            "find_definition",
            "Where a symbol is defined, by its name.",
            schema::<OfSymbol>(),
            Body::Ask(find_definition),
        ),
        looks(
            GROUP,
            "find_references",
            "Where a symbol is used, by its name.",
            schema::<OfSymbol>(),
            Body::Ask(find_references),
        ),
    ]
}

/// Arguments of `find_definition` and `find_references`.
#[derive(Deserialize, JsonSchema)]
struct OfSymbol {
    /// The name, such as `parse` or `Parser.parse`.
    symbol: String,
    /// The resource, by name or id; needed only when the plan has several.
    #[serde(default)]
    resource: Option<String>,
    #[serde(flatten)]
    page: Page,
}

fn find_definition<'a>(args: Value, scene: &'a Scene<'a>) -> BoxFuture<'a, Result<Value, String>> {
    Box::pin(async move {
        let args: OfSymbol = read(&args)?;
        let sandbox = sandbox(scene, args.resource.as_deref())?;
        let found = by_servers(scene, sandbox, &args.symbol).await;
        let (found, by) = match found.is_empty() {
            false => (found, "language server"),
            true => places(sandbox, &args.symbol, true)?,
        };
        Ok(page(&args, &found, by))
    })
}

fn find_references<'a>(args: Value, scene: &'a Scene<'a>) -> BoxFuture<'a, Result<Value, String>> {
    Box::pin(async move {
        let args: OfSymbol = read(&args)?;
        let sandbox = sandbox(scene, args.resource.as_deref())?;
        let mut all = Vec::new();
        for definition in by_servers(scene, sandbox, &args.symbol).await {
            let (Some(path), Some(line)) = (definition["path"].as_str(), definition["line"].as_u64()) else {
                continue;
            };
            let asked = json!({
                "resource": sandbox.resource_id.to_string(), "path": path, "line": line,
                "symbol": last_part(&args.symbol), "include_declaration": true, "limit": 500,
            });
            let Some(tool) = agents_tools::find("lsp/references") else { break };
            let Ok(answer) = tool.call(asked, scene.lens).await else { continue };
            for hit in answer["results"].as_array().into_iter().flatten() {
                let hit = place_of(hit);
                if !all.contains(&hit) {
                    all.push(hit);
                }
            }
        }
        let (found, by) = match all.is_empty() {
            false => (all, "language server"),
            true => places(sandbox, &args.symbol, false)?,
        };
        Ok(page(&args, &found, by))
    })
}

fn page(args: &OfSymbol, found: &[Value], by: &str) -> Value {
    let mut page = args.page.cut(found, PLACES.0, PLACES.1);
    page["by"] = by.into();
    page
}

fn last_part(symbol: &str) -> &str {
    symbol.rsplit(['.', ':', '#']).next().unwrap_or(symbol)
}

/// `path:line:column` of a language server's answer, taken apart.
fn place_of(hit: &Value) -> Value {
    let at = hit["at"].as_str().unwrap_or_default();
    let mut parts = at.rsplitn(3, ':');
    let (column, line, path) = (parts.next(), parts.next(), parts.next());
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<u64>().ok());
    json!({ "path": path, "line": number(line), "column": number(column), "text": hit["code"], "kind": hit["kind"] })
}

/// What the language servers' symbols of the workspace say.
async fn by_servers(scene: &Scene<'_>, sandbox: &OpenSandbox, symbol: &str) -> Vec<Value> {
    let Some(tool) = agents_tools::find("lsp/workspace-symbols") else { return Vec::new() };
    let name = last_part(symbol);
    let asked = json!({ "resource": sandbox.resource_id.to_string(), "query": name, "limit": 100 });
    let Ok(answer) = tool.call(asked, scene.lens).await else { return Vec::new() };
    let container = symbol.strip_suffix(name).map(|rest| rest.trim_end_matches(['.', ':', '#']));
    let container = container.filter(|rest| !rest.is_empty());
    let hits = answer["results"].as_array().into_iter().flatten();
    hits.filter(|hit| hit["name"] == name && hit["outside"] != true)
        .filter(|hit| container.is_none_or(|of| hit["container"].as_str().is_some_and(|c| c.ends_with(of))))
        .map(place_of)
        .collect()
}

/// Where a name is declared or stands: by syntax where the language is known, else by words.
fn places(
    sandbox: &OpenSandbox,
    symbol: &str,
    definitions: bool,
) -> Result<(Vec<Value>, &'static str), String> {
    let name = last_part(symbol);
    if name.is_empty() {
        return Err("`symbol` is empty".to_owned());
    }
    let word = regex::escape(name);
    let defines = format!(
        r"\b(?:def|fn|func|function|class|struct|enum|trait|interface|type|const|let|var|module|mod|macro_rules!)\s+{word}\b|^\s*{word}\s*[:=]"
    );
    let pattern = if definitions { defines } else { format!(r"(?:^|\W){word}(?:\W|$)") };
    let regex = Regex::new(&pattern).map_err(|error| error.to_string())?;
    let files = sandbox.worktree().list_files().map_err(|error| error.to_string())?;
    let (mut found, mut by) = (Vec::new(), "syntax");
    for file in files.into_iter().filter(|file| !file.link && file.size <= MAX_FILE) {
        let Ok(bytes) = sandbox.read(&file.path) else { continue };
        let Ok(text) = String::from_utf8(bytes) else { continue };
        if !text.contains(name) {
            continue;
        }
        let lines: Vec<&str> = text.lines().collect();
        let at = |line: usize, kind: Option<&str>| {
            json!({
                "path": file.path, "line": line + 1, "kind": kind,
                "text": cut(lines.get(line).copied().unwrap_or_default().trim_end()),
            })
        };
        let language = agents_grammars::detect(std::path::Path::new(&file.path), text.as_bytes());
        let language = language.and_then(Language::from_id);
        match language.map(|language| agents_grammars::facts(language, &text)) {
            Some(Ok(facts)) if definitions => {
                let declared = facts.declarations.iter().filter(|one| &*one.symbol.name == name);
                found
                    .extend(declared.map(|one| {
                        at(one.symbol.selection_range.start.line, Some(one.symbol.kind.as_str()))
                    }));
            }
            Some(Ok(facts)) => {
                let stands =
                    |one: &&agents_grammars::Reference| text.get(one.start_byte..one.end_byte) == Some(name);
                let mut of_file: Vec<Value> = facts
                    .references
                    .iter()
                    .filter(stands)
                    .map(|one| at(one.start.line, Some(one.role.as_str())))
                    .collect();
                of_file.dedup();
                found.extend(of_file);
            }
            _ => {
                let before = found.len();
                let hits = lines.iter().enumerate().filter(|(_, line)| regex.is_match(line));
                found.extend(hits.map(|(line, _)| at(line, None)));
                if found.len() > before {
                    by = "syntax and words";
                }
            }
        }
    }
    Ok((found, by))
}
