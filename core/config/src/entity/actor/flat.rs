//! Actor files with one actor at the top.

use std::sync::LazyLock;

use agents_domain::QualifiedName;
use agents_domain::actor::{
    AgentKind, ContextFiles, ContextView, Enrichment, LocalTool, Memory, Route, Settings,
};
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use super::super::{rename_keys, schema_of};
use super::{Form, multi, route};
use crate::yaml::schema::Schema;
use crate::yaml::{Entry, Node, NodeKind, Source};

pub(super) const FORM: Form = Form { schema: || &SCHEMA, normalise, rules, convert, written_path };

static SCHEMA: LazyLock<Value> = LazyLock::new(schema);

/// An actor file with one actor.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "it is only the shape of the file")]
struct FlatActor {
    /// Its name: `namespace/name`, lower case.
    name: QualifiedName,
    /// What it is.
    #[serde(rename = "type")]
    kind: AgentKind,
    /// What it does, for people.
    description: String,
    /// The version of the definition.
    #[schemars(extend("default" = "1.0"))]
    version: Option<String>,
    /// About the file itself.
    cleveragents: Option<Settings>,
    /// The provider of its model; found by the model's name where that is well known.
    provider: Option<String>,
    /// Its model.
    model: Option<String>,
    /// `provider/model` in one, or another actor that is registered.
    actor: Option<String>,
    /// What it is told first; a template that is rendered before each question to the model.
    system_prompt: Option<String>,
    /// How freely it answers; the provider's default unless given.
    #[schemars(range(min = 0.0, max = 2.0))]
    temperature: Option<f64>,
    /// Tokens of an answer at most; the provider's default unless given.
    #[schemars(range(min = 1))]
    max_tokens: Option<u32>,
    /// It may do what no sandbox keeps in; running it needs `--unsafe`.
    #[serde(rename = "unsafe")]
    is_unsafe: Option<bool>,
    /// Sent to the provider as it is.
    options: Option<Map<String, Value>>,
    /// JSON Schema that its answers have to fit.
    response_format: Option<Map<String, Value>>,
    /// Tools: registered ones by name, or written here with their code.
    tools: Option<Vec<LocalTool>>,
    /// The part of the context it sees.
    context_view: Option<ContextView>,
    /// What it remembers.
    memory: Option<Memory>,
    /// The files in its context.
    context: Option<ContextFiles>,
    /// The graph of `type: graph`.
    route: Option<Route>,
    /// Variables of the processes of its tools.
    env_vars: Option<Map<String, Value>>,
    /// Skills whose tools it may call.
    skills: Option<Vec<QualifiedName>>,
    /// The language servers it is lent: a list of names, `{languages: [...]}` or `{auto: true}`.
    lsp: Option<Value>,
    /// What of them it may use: `all`, or a list of capabilities.
    lsp_capabilities: Option<Value>,
    /// What language servers add to its context.
    lsp_context_enrichment: Option<Enrichment>,
    /// What its templates see as `context` at first.
    global_context: Option<Map<String, Value>>,
    /// Prompts by name, as `prompts` in templates.
    prompts: Option<Map<String, Value>>,
}

pub(super) fn schema() -> Value {
    let mut schema = schema_of::<FlatActor>();
    multi::loosen(&mut schema);
    for key in ["lsp", "lsp_capabilities"] {
        if let Some(property) = schema.pointer_mut(&format!("/properties/{key}")) {
            *property = json!({ "description": property.get("description").cloned().unwrap_or_default() });
        }
    }
    schema
}

fn normalise(root: &mut Node, source: &mut Source<'_>) {
    let top = Schema::new(&SCHEMA);
    let alone = ["type", "route", "tools", "system_prompt", "model", "actor", "context_view"];
    if !alone.iter().any(|key| root.entry(key).is_some()) {
        let place = root.entries().first().map_or(root.bytes.clone(), |entry| entry.key_bytes.clone());
        return source.error(
            "actors",
            &place,
            "the key `actors` is missing; a file with one actor has `type` and `description` at the top",
        );
    }
    route::quiet(
        root,
        &[
            ("provider_type", "provider"),
            ("model_id", "model"),
            ("lsp_bindings", "lsp"),
            ("include_skills", "skills"),
        ],
    );
    multi::context(root, source);
    rename_keys(root, "", &top.keys(), &[], source);
    multi::file_version(root, source);
    multi::tools(root);
    route::null_servers(root);
    if let (Some(graph), Some(schema)) = (root.get_mut("route"), top.property("route")) {
        route::normalise(graph, "route", schema, true, source);
    }
    if let Some(Node { kind, .. }) = root.get_mut("version")
        && let NodeKind::Number(number) = kind
    {
        *kind = NodeKind::Text(number.to_string());
    }
}

/// What each type needs and what it takes (ACTOR-029).
fn rules(root: &Node, source: &mut Source<'_>) {
    let kind = root.get("type").and_then(Node::text).unwrap_or_default().to_owned();
    let (needs, refuses): (&[&str], &[&str]) = match kind.as_str() {
        "llm" => (&["model"], &["route"]),
        "graph" => (&["model", "route"], &[]),
        "tool" => (
            &["tools"],
            &[
                "route",
                "model",
                "provider",
                "actor",
                "system_prompt",
                "memory",
                "context",
                "lsp",
                "lsp_capabilities",
                "lsp_context_enrichment",
                "temperature",
                "max_tokens",
                "response_format",
            ],
        ),
        _ => return,
    };
    for key in needs {
        if root.get(key).is_none() && !(*key == "model" && root.get("actor").is_some()) {
            let place = root.get("type").map_or(root.bytes.clone(), |node| node.bytes.clone());
            source.error(key, &place, format!("an actor of `type: {kind}` needs `{key}`"));
        }
    }
    for key in refuses {
        if let Some(entry) = root.entry(key) {
            source.error(
                key,
                &entry.key_bytes.clone(),
                format!("an actor of `type: {kind}` takes no `{key}`"),
            );
        }
    }
    if let Some(skill) = root.entry("skills").filter(|_| kind == "tool") {
        source.warn("skills", &skill.key_bytes.clone(), "`skills` are for actors with a model");
    }
}

/// Keys that belong to the agent, beside its `config`.
const OF_AGENT: &[&str] = &[
    "skills",
    "lsp",
    "lsp_capabilities",
    "lsp_context_enrichment",
    "context_view",
    "memory",
    "context",
    "env_vars",
];

/// Keys that belong to the agent's `config`.
const OF_CONFIG: &[&str] =
    &["actor", "system_prompt", "temperature", "max_tokens", "options", "response_format", "tools"];

/// The name of the only agent: the actor's without its namespace.
fn agent_name(root: &Node) -> String {
    let name = root.get("name").and_then(Node::text).unwrap_or_default();
    name.rsplit('/').next().unwrap_or_default().to_owned()
}

/// One agent, and its graph as a route.
fn convert(root: &mut Node) {
    let agent = match root.get("actors") {
        Some(_) => return,
        None => agent_name(root),
    };
    let bytes = root.bytes.clone();
    let map = |entries| Node { kind: NodeKind::Map(entries), bytes: bytes.clone() };
    let entry =
        |key: &str, value: Node| Entry { key: key.to_owned(), key_bytes: bytes.start..bytes.start, value };
    let text = |word: &str| Node { kind: NodeKind::Text(word.to_owned()), bytes: bytes.clone() };
    let mut config: Vec<Entry> = OF_CONFIG.iter().filter_map(|key| root.remove(key)).collect();
    let graph = root.remove("route");
    if graph.is_some() {
        config.push(entry("route", text(MAIN)));
    }
    let mut parts: Vec<Entry> = OF_AGENT.iter().filter_map(|key| root.remove(key)).collect();
    // Without a word about memory, a flat actor remembers (G-17).
    if !parts.iter().any(|part| part.key == "memory") {
        parts.push(entry("memory", map(Vec::new())));
    }
    parts.extend(root.entry("type").cloned());
    parts.push(entry("config", map(config)));
    let Some(entries) = root.entries_mut() else { return };
    entries.push(entry("actors", map(vec![entry(&agent, map(parts))])));
    if let Some(graph) = graph {
        entries.push(entry("routes", map(vec![Entry { key: MAIN.to_owned(), ..graph }])));
    }
}

/// The route of a flat graph.
const MAIN: &str = "main";

/// `actors.x.config.tools` stands in the file as `tools`, `routes.main` as `route`.
fn written_path(path: &str, root: &Node) -> String {
    let agent = format!("actors.{}", agent_name(root));
    let main = format!("routes.{MAIN}");
    if let Some(rest) = path.strip_prefix(&agent) {
        let rest = rest.trim_start_matches('.');
        return rest.strip_prefix("config").map_or(rest, |rest| rest.trim_start_matches('.')).to_owned();
    }
    match path.strip_prefix(&main) {
        Some(rest) => format!("route{rest}"),
        None => path.to_owned(),
    }
}
