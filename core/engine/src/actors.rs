//! Actors by name: those that come with the program, models, and those that people define.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agents_config::{LoadResult, Problem, Reading, load_actor, to_error};
use agents_domain::actor::{ActorDefinition, Backing, Overrides, PROVIDERS, RegisteredActor};
use agents_domain::language_server::binding::{Binding, Mode};
use agents_domain::ports::actor::Actor;
use agents_domain::{Error, QualifiedName, Result};
use serde_json::Value;

use crate::Engine;

/// The languages of a registered server, for templates of actors.
type Servers = Vec<(QualifiedName, Vec<String>)>;

/// Models that everybody knows, for lists; any other `<provider>/<model>` is an actor, too.
pub(crate) const KNOWN_MODELS: &[&str] = &[
    "anthropic/claude-3.5-sonnet",
    "anthropic/claude-3-opus",
    "google/gemini-pro",
    "openai/gpt-4",
    "openai/gpt-4o",
];

/// Another actor that a definition needs, with the key that names it.
pub(crate) struct Needed {
    pub path: String,
    pub name: QualifiedName,
}

impl Engine {
    fn servers_with_languages(&self) -> Result<Servers> {
        let servers = self.view(|r| r.language_servers())?;
        Ok(servers.into_iter().map(|server| (server.definition.name, server.definition.languages)).collect())
    }

    /// Reads an actor file with the environment. `context` goes before what the file says.
    ///
    /// # Errors
    /// When the registry cannot be read. What is wrong with the file is inside.
    pub(crate) fn read_actor(
        &self,
        text: &str,
        file: &str,
        overrides: &Overrides,
        context: Option<&Value>,
    ) -> Result<LoadResult<ActorDefinition>> {
        let servers = self.servers_with_languages()?;
        let find = |name: &str| self.surroundings.variable(name);
        let reading =
            Reading { variables: Some(&find), context, servers: &servers, overrides: overrides.clone() };
        Ok(load_actor(text, file, &reading))
    }

    /// What a registered actor's file says now.
    ///
    /// # Errors
    /// What is wrong with it: a variable that is not set any more, say.
    pub(crate) fn definition_of(
        &self,
        actor: &RegisteredActor,
        context: Option<&Value>,
    ) -> Result<ActorDefinition> {
        let loaded = self.read_actor(&actor.source, &actor.config_path, &actor.overrides, context)?;
        loaded.map(|loaded| loaded.value).map_err(|problems: Vec<Problem>| to_error(&problems))
    }

    /// The registered actor of a name.
    pub(crate) fn registered_actor(&self, name: &QualifiedName) -> Result<Option<RegisteredActor>> {
        self.view(|r| r.actor(name))
    }

    /// The actor of a name, to be run with these arguments; `None` when there is none.
    ///
    /// # Errors
    /// A registered actor whose file cannot be used now.
    pub(crate) fn actor(
        &self,
        name: &QualifiedName,
        arguments: &BTreeMap<String, Value>,
    ) -> Result<Option<Arc<dyn Actor>>> {
        if let Some(actor) = self.actors.find(name) {
            return Ok(Some(actor));
        }
        let Some(registered) = self.registered_actor(name)? else { return Ok(None) };
        let context: Value = arguments.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        let context = (!arguments.is_empty()).then_some(&context);
        let library = self.with_needed(&registered, context)?;
        self.actors.define(&library).map(Some).map_err(|why| {
            Error::validation(format!("the actor `{name}` cannot run: {why}"))
                .suggest(format!("agents actor show {name}"))
        })
    }

    /// The definition of an actor, and behind it those of all it needs.
    pub(crate) fn with_needed(
        &self,
        registered: &RegisteredActor,
        context: Option<&Value>,
    ) -> Result<Vec<ActorDefinition>> {
        let mut library: Vec<ActorDefinition> = vec![self.definition_of(registered, context)?];
        let mut at = 0;
        while let Some(definition) = library.get(at) {
            for needed in needed_by(definition) {
                if library.iter().any(|known| known.name == needed.name)
                    || self.actors.find(&needed.name).is_some()
                {
                    continue;
                }
                let Some(found) = self.registered_actor(&needed.name)? else {
                    let message = format!(
                        "the actor `{}` needs `{}`, which is not registered",
                        definition.name, needed.name
                    );
                    return Err(Error::not_found(message).suggest("agents actor list"));
                };
                let found = self.definition_of(&found, context)?;
                library.push(found);
                break;
            }
            // Looked at again until nothing is missing.
            let complete = needed_by(&library[at]).iter().all(|needed| {
                library.iter().any(|known| known.name == needed.name)
                    || self.actors.find(&needed.name).is_some()
            });
            if complete {
                at += 1;
            }
        }
        Ok(library)
    }

    /// What is run for a name outside of a plan: a registered actor with those it needs, or a model.
    ///
    /// # Errors
    /// No actor of that name, one that only works in plans, or a file that cannot be used now.
    pub fn runnable_actor(
        &self,
        name: &str,
        overrides: &Overrides,
        context: Option<&Value>,
    ) -> Result<Vec<ActorDefinition>> {
        let name = self.name(name)?;
        if let Some(mut registered) = self.registered_actor(&name)? {
            registered.overrides.is_unsafe |= overrides.is_unsafe;
            registered.overrides.skills.extend(overrides.skills.iter().cloned());
            return self.with_needed(&registered, context);
        }
        let is_model = PROVIDERS.contains(&name.namespace())
            || (name.namespace() != "builtin" && self.actors.find(&name).is_some());
        if !is_model {
            if self.actors.find(&name).is_some() {
                return Err(Error::validation(format!("`{name}` works in plans only"))
                    .suggest("agents plan use <ACTION> <PROJECT>"));
            }
            return Err(self.no_such("actor", &name, &self.actor_names()?, "agents actor list"));
        }
        let value = serde_json::json!({
            "name": name, "actors": { "model": { "type": "llm", "config": { "actor": name } } },
        });
        let definition = serde_json::from_value(value).map_err(|error| Error::internal(error.to_string()))?;
        Ok(vec![definition])
    }

    /// One more run of an actor outside of a plan, with what it cost.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn count_actor_run(&self, name: &QualifiedName, cost_usd: f64) -> Result<()> {
        self.write(|w| Ok(w.count_actor_run(name, cost_usd)?))
    }

    /// Whether plans can name an actor so.
    pub(crate) fn has_actor(&self, name: &QualifiedName) -> Result<bool> {
        Ok(self.actors.find(name).is_some() || self.registered_actor(name)?.is_some())
    }

    /// The names of all actors but those of models.
    pub(crate) fn actor_names(&self) -> Result<Vec<String>> {
        let mut names: Vec<String> = self.actors.names().iter().map(ToString::to_string).collect();
        names.extend(self.view(|r| r.actors())?.into_iter().map(|actor| actor.name.to_string()));
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// The registered actors with what they say now; those that cannot be read are left out.
    pub(crate) fn readable_actors(&self) -> Result<Vec<(RegisteredActor, ActorDefinition)>> {
        let registered = self.view(|r| r.actors())?;
        Ok(registered
            .into_iter()
            .filter_map(|actor| {
                let definition = self.definition_of(&actor, None).ok()?;
                Some((actor, definition))
            })
            .collect())
    }

    /// The actors that a server is lent to, with how, and for which language.
    pub(crate) fn bound_actors(
        &self,
        server: &QualifiedName,
        languages: &[String],
    ) -> Result<Vec<(QualifiedName, Mode, Option<String>)>> {
        let mut bound = Vec::new();
        for (actor, definition) in self.readable_actors()? {
            let agents = definition.actors.values().map(|agent| &agent.lsp);
            let nodes =
                definition.routes.values().flat_map(|route| route.nodes.values()).map(|node| &node.lsp);
            let how = agents.chain(nodes).find_map(|lsp| {
                let binding: Binding = serde_json::from_value(lsp.clone()).ok()?;
                match &binding {
                    Binding::Explicit(names) => names.contains(server).then_some((Mode::Explicit, None)),
                    Binding::By(rule) if rule.auto == Some(true) => Some((Mode::AutoDiscovery, None)),
                    Binding::By(rule) => {
                        let shared = rule
                            .languages
                            .iter()
                            .find(|one| languages.iter().any(|of| of.eq_ignore_ascii_case(one)));
                        shared.map(|language| (Mode::LanguageBased, Some(language.clone())))
                    }
                }
            });
            bound.extend(how.map(|(mode, language)| (actor.name, mode, language)));
        }
        Ok(bound)
    }

    /// A circle of actors that need each other, if the registry had one through this definition (ACTOR-005).
    pub(crate) fn actor_circle(&self, definition: &ActorDefinition) -> Result<Option<Vec<String>>> {
        let mut next: BTreeMap<QualifiedName, Vec<QualifiedName>> = BTreeMap::new();
        for (_, known) in self.readable_actors()? {
            next.insert(
                known.name.clone(),
                needed_by(&known).into_iter().map(|needed| needed.name).collect(),
            );
        }
        next.insert(
            definition.name.clone(),
            needed_by(definition).into_iter().map(|needed| needed.name).collect(),
        );
        let mut path = vec![definition.name.clone()];
        let mut seen: BTreeSet<QualifiedName> = BTreeSet::new();
        Ok(circle_to(&definition.name, &mut path, &mut seen, &next)
            .then(|| path.iter().map(ToString::to_string).collect()))
    }
}

/// Whether a way leads from the end of the path back to its beginning; the path is that way then.
fn circle_to(
    start: &QualifiedName,
    path: &mut Vec<QualifiedName>,
    seen: &mut BTreeSet<QualifiedName>,
    next: &BTreeMap<QualifiedName, Vec<QualifiedName>>,
) -> bool {
    // As deep as there are actors: each is entered once.
    let Some(targets) = path.last().and_then(|last| next.get(last)) else { return false };
    for target in targets {
        path.push(target.clone());
        if target == start || (seen.insert(target.clone()) && circle_to(start, path, seen, next)) {
            return true;
        }
        path.pop();
    }
    false
}

/// The actors that a definition needs, those of models left out.
pub(crate) fn needed_by(definition: &ActorDefinition) -> Vec<Needed> {
    let mut needed = Vec::new();
    let mut add = |path: String, name: &str| {
        let parsed: Option<QualifiedName> = name.parse().ok();
        if let Some(name) = parsed.filter(|name| !PROVIDERS.contains(&name.namespace())) {
            needed.push(Needed { path, name });
        }
    };
    for (name, agent) in definition.actors.iter() {
        if let (Some(actor), Ok(Backing::Actor(_))) = (&agent.config.actor, definition.backing(agent)) {
            add(format!("actors.{name}.config.actor"), actor);
        }
    }
    for (route, of) in definition.routes.iter() {
        for (id, node) in of.nodes.iter() {
            if let Some(agent) = node.agent.as_deref().filter(|agent| agent.contains('/')) {
                add(format!("routes.{route}.nodes.{id}.agent"), agent);
            }
        }
        for (at, operator) in of.operators.iter().enumerate() {
            let agent =
                operator.params.get("agent").and_then(Value::as_str).filter(|agent| agent.contains('/'));
            if let Some(agent) = agent {
                add(format!("routes.{route}.operators[{at}].params.agent"), agent);
            }
        }
    }
    needed
}
