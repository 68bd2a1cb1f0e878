//! The skills of an actor at work: which tools it has by them, and the MCP servers behind these, which are started when the
//! actor begins and stay for as long as the worker has the plan.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agents_domain::plan::guards::ToolFacts;
use agents_domain::plan::{Plan, PlanFailure};
use agents_domain::ports::actor::Actor;
use agents_domain::ports::mcp::{McpConnection, McpPlace, McpRoot};
use agents_domain::ports::tool::ToolSpec;
use agents_domain::skill::{AvailableSkill, Discovered, Flat, Known, Origin, SkillDefinition, SkillTool};
use agents_domain::{Error, QualifiedName};
use futures::future::join_all;

use super::{Stop, Worker};
use crate::operations::registry_changed;
use crate::sandboxes::OpenSandbox;
use crate::skills::{self, folder, together};
use crate::{clock, tools};

/// How long a server may take to start for a plan.
const START: Duration = Duration::from_secs(60);

/// How long is waited for a list of tools that a server said has changed.
const SETTLING: Duration = Duration::from_secs(2);

/// A server of a skill, as its file says it: another text is another server.
type Key = (QualifiedName, String, String);

/// The MCP servers that are connected to.
#[derive(Default)]
pub(super) struct Connections(tokio::sync::Mutex<HashMap<Key, Arc<dyn McpConnection>>>);

impl Connections {
    /// Ends all of them.
    pub async fn close(&self) {
        let all: Vec<_> = self.0.lock().await.drain().map(|(_, connection)| connection).collect();
        join_all(all.iter().map(|connection| connection.close())).await;
    }
}

/// What an actor's skills come to.
pub(super) struct Skilled {
    names: Vec<QualifiedName>,
    flat: Mutex<Flat>,
    /// Why servers are not there, by skill and server.
    missing: BTreeMap<(QualifiedName, String), String>,
    servers: HashMap<(QualifiedName, String), Arc<dyn McpConnection>>,
    /// How often what each server offers had changed when it was last taken over.
    seen: Mutex<HashMap<(QualifiedName, String), u64>>,
}

/// What is known of a skill's tool, for guards.
pub(super) fn facts_of(tool: &SkillTool) -> ToolFacts {
    ToolFacts {
        name: tool.call.clone(),
        summary: tool.description.clone(),
        category: tool.category.clone(),
        capability: tool.offered.capability.clone(),
    }
}

impl Skilled {
    /// The tool a call means; `Err` says why it means none.
    pub fn find(&self, called: &str) -> Result<SkillTool, String> {
        let flat = self.flat.lock().unwrap_or_else(PoisonError::into_inner);
        flat.find(called).cloned().map_err(|why| {
            let servers: Vec<String> = self
                .missing
                .iter()
                .map(|((skill, server), why)| format!("{server} of {skill}: {why}"))
                .collect();
            if !servers.is_empty() {
                return format!("{why}; MCP servers that are not there: {}", servers.join("; "));
            }
            let names: Vec<&str> = flat.tools.iter().map(|tool| tool.call.as_str()).collect();
            format!(
                "{why}; its skills offer {}",
                if names.is_empty() { "none".to_owned() } else { names.join(", ") }
            )
        })
    }

    /// Whether several of its tools could be meant.
    pub fn is_ambiguous(&self, called: &str) -> bool {
        let flat = self.flat.lock().unwrap_or_else(PoisonError::into_inner);
        flat.tools.iter().any(|tool| tool.name == called)
    }

    /// The connected server of a skill.
    pub fn server(&self, skill: &QualifiedName, server: &str) -> Option<&Arc<dyn McpConnection>> {
        self.servers.get(&(skill.clone(), server.to_owned()))
    }

    /// The tools the actor may call in a plan's phase, by name (SKILLC-019): what else is not there for it.
    pub fn offered(&self, plan: &Plan) -> Vec<ToolSpec> {
        let safety = &plan.profile.profile.safety;
        let flat = self.flat.lock().unwrap_or_else(PoisonError::into_inner);
        let usable = flat.tools.iter().filter(|tool| {
            let facts = facts_of(tool);
            tools::may_use(plan, &facts).is_ok()
                && safety.allows_category(&facts.category)
                && (safety.allow_unsafe_tools || !facts.capability.is_unsafe)
        });
        let mut specs: BTreeMap<String, ToolSpec> = BTreeMap::new();
        usable.for_each(|tool| drop(specs.insert(tool.call.clone(), tool.spec())));
        specs.into_values().collect()
    }

    /// Of the offered tools, those of some skills (`ActorHost::tools_of`). `Err` names a skill the actor does not have.
    pub fn of(
        &self,
        plan: &Plan,
        skills: &[QualifiedName],
        known: &Known,
    ) -> Result<Vec<ToolSpec>, QualifiedName> {
        let flat = self.flat.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = skills.iter().find(|name| !self.names.contains(*name)) {
            return Err((*other).clone());
        }
        let wanted = together(skills, known).tools;
        let has = |tool: &SkillTool| wanted.iter().any(|w| w.skill == tool.skill && w.origin == tool.origin);
        let calls: Vec<String> =
            flat.tools.iter().filter(|tool| has(tool)).map(|tool| tool.call.clone()).collect();
        drop(flat);
        Ok(self.offered(plan).into_iter().filter(|spec| calls.contains(&spec.name)).collect())
    }

    /// Those of its tools that are Agent Skills.
    pub fn agent_skills(&self) -> Vec<AvailableSkill> {
        let flat = self.flat.lock().unwrap_or_else(PoisonError::into_inner);
        let skills = flat.tools.iter().filter(|tool| matches!(tool.origin, Origin::AgentSkill(_)));
        skills
            .map(|tool| AvailableSkill {
                name: tool.name.clone(),
                description: tool.description.clone(),
                tool: tool.call.clone(),
            })
            .collect()
    }
}

/// The skills and all they include, by name.
fn with_includes(names: &[QualifiedName], known: &Known) -> Vec<QualifiedName> {
    let mut all = Vec::new();
    let mut waiting = names.to_vec();
    while let Some(name) = waiting.pop() {
        if all.contains(&name) {
            continue;
        }
        if let Some((skill, _)) = known.skills.get(&name) {
            waiting.extend(skill.includes.iter().map(|include| include.name.clone()));
            all.push(name);
        }
    }
    all.sort();
    all
}

impl Worker<'_> {
    /// Brings an actor's skills up: starts the servers behind them and takes over what they offer. `None` for an actor
    /// without skills. A server that does not start costs its own tools, and no more.
    pub(super) async fn bring_up_skills(
        &self,
        actor: &dyn Actor,
        plan: &Plan,
        sandboxes: &[OpenSandbox],
    ) -> Result<Option<Skilled>, Stop> {
        let names = actor.skills(&plan.arguments);
        if names.is_empty() {
            return Ok(None);
        }
        let known = self.engine.look(|r| skills::known(self.engine, r))?;
        if let Some(gone) = names.iter().find(|name| !known.skills.contains_key(*name)) {
            return Err(Stop::Failed(no_such_skill(plan, gone)));
        }
        let place = self.place(plan, sandboxes)?;
        let mut skilled = Skilled {
            flat: Mutex::default(),
            missing: BTreeMap::new(),
            servers: HashMap::new(),
            seen: Mutex::default(),
            names,
        };
        for name in with_includes(&skilled.names, &known) {
            let registered = self.engine.view(|r| r.skill(&name))?;
            let Some(registered) = registered.filter(|skill| !skill.definition.mcp_servers.is_empty()) else {
                continue;
            };
            let place = McpPlace { skill_folder: folder::of_file(&registered.config_path), ..place.clone() };
            let servers = registered.definition.mcp_servers.iter();
            let connected = join_all(servers.map(|server| self.connect(&name, server, &place))).await;
            for (server, connected) in registered.definition.mcp_servers.iter().zip(connected) {
                let key = (name.clone(), server.name.clone());
                match connected {
                    Ok(connection) => drop(skilled.servers.insert(key, connection)),
                    Err(why) => {
                        tracing::warn!(skill = %name, server = server.name, "an MCP server is not there: {why}");
                        skilled.missing.insert(key, why);
                    }
                }
            }
        }
        self.take_over_offers(&skilled).await?;
        Ok(Some(skilled))
    }

    /// The folders of the plan as servers get them.
    fn place(&self, plan: &Plan, sandboxes: &[OpenSandbox]) -> Result<McpPlace, Stop> {
        let mut roots = Vec::with_capacity(sandboxes.len());
        for sandbox in sandboxes {
            let resource = self.engine.view(|r| r.resource(sandbox.resource_id))?;
            let location = resource.and_then(|resource| resource.location);
            let original = location.map_or_else(|| sandbox.root.clone(), Into::into);
            let root = sandbox.root.canonicalize().unwrap_or_else(|_| sandbox.root.clone());
            roots.push(McpRoot { name: sandbox.name.clone(), original, sandbox: root });
        }
        tracing::debug!(plan = %plan.plan_id, roots = roots.len(), "the folders of its MCP servers");
        Ok(McpPlace { skill_folder: None, roots })
    }

    async fn connect(
        &self,
        skill: &QualifiedName,
        server: &agents_domain::skill::McpServer,
        place: &McpPlace,
    ) -> Result<Arc<dyn McpConnection>, String> {
        let text = serde_json::to_string(server).unwrap_or_default();
        let roots: Vec<String> = place.roots.iter().map(|root| root.sandbox.display().to_string()).collect();
        let key = (skill.clone(), server.name.clone(), format!("{text} {}", roots.join(" ")));
        if let Some(connection) = self.connections.0.lock().await.get(&key) {
            return Ok(connection.clone());
        }
        let servers = self.engine.mcp_servers.as_ref().ok_or("this program connects to no MCP servers")?;
        let connection =
            servers.connect(server, place.clone(), START).await.map_err(|failure| failure.message)?;
        self.connections.0.lock().await.insert(key, connection.clone());
        Ok(connection)
    }

    /// Takes over what the servers offer now, when that changed since the last time: into the registry, for everybody, and
    /// into the actor's set (MCP-003, SKILLC-007).
    pub(super) async fn take_over_offers(&self, skilled: &Skilled) -> Result<(), Stop> {
        join_all(skilled.servers.values().map(|connection| connection.settled(SETTLING))).await;
        self.take_over_settled(skilled)
    }

    fn take_over_settled(&self, skilled: &Skilled) -> Result<(), Stop> {
        let mut seen = skilled.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = |key| skilled.servers.get(key).map_or(0, |connection| connection.changes());
        let fresh: Vec<_> =
            skilled.servers.keys().filter(|key| seen.get(*key) != Some(&changes(*key))).cloned().collect();
        if fresh.is_empty() && !seen.is_empty() {
            return Ok(());
        }
        for key in fresh {
            let (skill, server) = &key;
            let Some(connection) = skilled.servers.get(&key) else { continue };
            seen.insert(key.clone(), connection.changes());
            let mut offers = connection.offers();
            self.engine.write(|w| {
                let Some(registered) = w.skill(skill)? else { return Ok(()) };
                let mut discovered = registered.discovered;
                let known = discovered.servers.get(server).cloned().unwrap_or_default();
                offers.at = known.at;
                if known == offers {
                    return Ok(());
                }
                offers.at = Some(clock::now());
                discovered.servers.insert(server.clone(), offers.clone());
                w.put_discovered(skill, &discovered)?;
                registry_changed(self.engine, w, "skill", &skill.to_string(), "refreshed")
            })?;
        }
        let known = self.engine.look(|r| skills::known(self.engine, r))?;
        let mut flat = together(&skilled.names, &known);
        // What a server that is not there would offer cannot be called.
        flat.tools.retain(|tool| match &tool.origin {
            Origin::Mcp { server, .. } => skilled.server(&tool.skill, server).is_some(),
            _ => true,
        });
        *skilled.flat.lock().unwrap_or_else(PoisonError::into_inner) = flat;
        Ok(())
    }
}

fn no_such_skill(plan: &Plan, name: &QualifiedName) -> PlanFailure {
    PlanFailure {
        message: format!("there is no skill `{name}`, which the actor names"),
        category: "configuration".to_owned(),
        phase: plan.phase,
        tool: None,
        step: None,
        recoverable: true,
        retries: 0,
        hints: vec![
            format!("register it: agents skill add --config <FILE> (name: {name})"),
            format!("agents plan execute {}", plan.plan_id),
        ],
    }
}

/// The definition of a registered skill with the folder of its file.
pub(super) fn registered(
    worker: &Worker<'_>,
    name: &QualifiedName,
) -> Result<(SkillDefinition, Discovered, String), Error> {
    let skill = worker.engine.view(|r| r.skill(name))?;
    let skill =
        skill.ok_or_else(|| Error::not_found(format!("the skill `{name}` is not registered any more")))?;
    Ok((skill.definition, skill.discovered, skill.config_path))
}
