//! The definitions a run goes by: the actor itself first, then those it needs.

use std::collections::BTreeMap;

use agents_domain::actor::{ActorDefinition, Agent, AgentConfig, AgentKind, Backing, Node, Route};
use agents_domain::ports::tool::{Capability, LocalTool, ToolSpec};
use agents_domain::{QualifiedName, actor};
use serde_json::{Map, Value};

/// What a run goes by. It does not change while the run lasts.
#[derive(Debug, Clone)]
pub struct Program {
    definitions: Vec<ActorDefinition>,
}

impl Program {
    /// An actor with those it needs, itself first.
    ///
    /// # Errors
    /// No definition, or one without anything to run.
    pub fn new(library: &[ActorDefinition]) -> Result<Self, String> {
        let first = library.first().ok_or("there is no definition")?;
        if first.entry().is_none() {
            return Err(format!("`{}` defines no actor that could answer", first.name));
        }
        Ok(Self { definitions: library.to_vec() })
    }

    /// The actor itself.
    pub fn main(&self) -> &ActorDefinition {
        &self.definitions[0]
    }

    pub(super) fn definition(&self, at: usize) -> Result<&ActorDefinition, String> {
        self.definitions.get(at).ok_or_else(|| "a part of the actor is gone since its run began".to_owned())
    }

    pub(super) fn position(&self, name: &QualifiedName) -> Option<usize> {
        self.definitions.iter().position(|definition| definition.name == *name)
    }

    pub(crate) fn route(&self, at: usize, name: &str) -> Result<&Route, String> {
        let gone = || format!("the route `{name}` is gone since the run began");
        self.definition(at)?.routes.get(name).ok_or_else(gone)
    }

    pub(super) fn node(&self, at: usize, route: &str, id: &str) -> Result<&Node, String> {
        let gone = || format!("the node `{id}` is gone since the run began");
        self.route(at, route)?.nodes.get(id).ok_or_else(gone)
    }

    /// The agent of a name; a node that describes its own agent, and a bare model, are agents as well.
    pub(super) fn agent(&self, at: usize, who: &Who) -> Result<Agent, String> {
        let definition = self.definition(at)?;
        match who {
            Who::Named(name) => match definition.actors.get(name) {
                Some(agent) => Ok(agent.clone()),
                None => Ok(plain(AgentConfig { actor: Some(name.clone()), ..AgentConfig::default() })),
            },
            Who::Node { route, node } => {
                let node = self.node(at, route, node)?;
                let main = definition.default_agent().and_then(|name| definition.actors.get(name));
                let named =
                    |name: &String| actor::LocalTool { name: name.clone(), ..actor::LocalTool::default() };
                let mut agent = plain(AgentConfig {
                    model: node.model.clone().or_else(|| definition.model.clone()),
                    provider: definition.provider.clone(),
                    actor: main.and_then(|agent| agent.config.actor.clone()).filter(|_| node.model.is_none()),
                    system_prompt: node
                        .prompt
                        .clone()
                        .or_else(|| main.and_then(|agent| agent.config.system_prompt.clone())),
                    tools: node.tools.iter().map(named).collect(),
                    ..AgentConfig::default()
                });
                if let Some(main) = main {
                    agent.skills.clone_from(&main.skills);
                    agent.lsp = main.lsp.clone();
                    agent.lsp_capabilities = main.lsp_capabilities.clone();
                }
                Ok(agent)
            }
        }
    }

    pub(super) fn backing(&self, at: usize, agent: &Agent) -> Result<Backing, String> {
        self.definition(at)?.backing(agent)
    }

    /// The tools that are written in the files, with the variables of their agents.
    pub fn local_tools(&self) -> Vec<LocalTool> {
        let mut tools: Vec<LocalTool> = Vec::new();
        let mut add = |name: String, tool: &actor::LocalTool, env: &Map<String, Value>| {
            let Some(code) = &tool.code else { return };
            if tools.iter().any(|known| known.spec.name == name) {
                return;
            }
            let env: BTreeMap<String, String> = env
                .iter()
                .map(|(key, value)| {
                    (key.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned))
                })
                .collect();
            tools.push(LocalTool { spec: spec(&name, tool), code: code.clone(), env });
        };
        for definition in &self.definitions {
            for agent in definition.actors.values() {
                for tool in &agent.config.tools {
                    add(tool.name.clone(), tool, &agent.env_vars);
                }
            }
            for (route, of) in definition.routes.iter() {
                for (id, node) in of.nodes.iter().filter(|(_, node)| node.anonymous) {
                    let tool = anonymous(id, node);
                    add(anonymous_name(route, id), &tool, &Map::new());
                }
            }
        }
        tools
    }

    /// The skills of all agents, each once.
    pub fn skills(&self) -> Vec<QualifiedName> {
        let mut skills: Vec<QualifiedName> = self
            .definitions
            .iter()
            .flat_map(|definition| definition.actors.values())
            .flat_map(|agent| agent.skills.iter().cloned())
            .collect();
        skills.sort();
        skills.dedup();
        skills
    }
}

/// Who answers: an agent of a definition, or a node that describes its own.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Who {
    /// By name; `provider/model` and `namespace/actor` are names, too.
    Named(String),
    /// A node with a model or a prompt of its own.
    #[allow(missing_docs, reason = "the names say it")]
    Node { route: String, node: String },
}

impl Who {
    /// As memory and messages name it.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Named(name) => name.clone(),
            Self::Node { route, node } => format!("{route}.{node}"),
        }
    }
}

fn plain(config: AgentConfig) -> Agent {
    Agent {
        kind: AgentKind::Llm,
        config,
        skills: Vec::new(),
        lsp: Value::Null,
        lsp_capabilities: Value::Null,
        lsp_context_enrichment: actor::Enrichment::default(),
        context_view: None,
        memory: None,
        context: None,
        env_vars: Map::new(),
    }
}

/// What the tool of an anonymous node is called.
pub(super) fn anonymous_name(route: &str, node: &str) -> String {
    format!("{route}.{node}")
}

fn anonymous(id: &str, node: &Node) -> actor::LocalTool {
    actor::LocalTool {
        name: id.to_owned(),
        code: node.code.clone(),
        description: node.description.clone(),
        parameters: Vec::new(),
        input_schema: node.input_schema.clone(),
        capability: node.capability.clone(),
    }
}

/// A tool of a file as models and engines know it.
fn spec(name: &str, tool: &actor::LocalTool) -> ToolSpec {
    let capability = tool.capability.clone().unwrap_or_default();
    let capability: Capability = serde_json::from_value(Value::Object(capability)).unwrap_or_default();
    ToolSpec {
        name: name.to_owned(),
        description: tool
            .description
            .clone()
            .unwrap_or_else(|| format!("the tool `{}` of the actor's file", tool.name)),
        input: tool.schema(),
        capability,
        ..ToolSpec::default()
    }
}
