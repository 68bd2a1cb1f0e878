//! `plan use`: an action becomes a plan on one or more projects.

use std::collections::BTreeMap;

use agents_domain::action::{Action, ActionState};
use agents_domain::decision::{Alternative, Approval, ContextSnapshot, Decision, DecisionType};
use agents_domain::ids::{DecisionId, InvariantId, PlanId};
use agents_domain::invariant::{Invariant, Scope};
use agents_domain::plan::guards::Spending;
use agents_domain::plan::machine::{AllowedAction, Context};
use agents_domain::plan::{Awaiting, Phase, Plan, PlanActors, PlanResource, State};
use agents_domain::ports::store::StoreExt;
use agents_domain::{Error, QualifiedName, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::arguments::check_arguments;
use super::{profile, project_text};
use crate::preflight::{self, Candidate};
use crate::{Engine, Operation, built_in, clock, confidence, invariants, records, sandboxes};

/// Makes a plan from an action and starts Strategize.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Use {
    /// The action's name.
    pub action: String,
    /// The projects' names, at least one.
    pub projects: Vec<String>,
    /// Values of the action's arguments; strings are converted to the argument's type.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// A profile instead of the one of the action, project or configuration.
    #[serde(default)]
    pub automation_profile: Option<String>,
    /// What this plan must keep to.
    #[serde(default)]
    pub invariants: Vec<String>,
    /// An actor instead of the action's.
    #[serde(default)]
    pub strategy_actor: Option<String>,
    /// An actor instead of the action's.
    #[serde(default)]
    pub execution_actor: Option<String>,
    /// An actor instead of the action's.
    #[serde(default)]
    pub estimation_actor: Option<String>,
    /// An actor instead of the action's.
    #[serde(default)]
    pub invariant_actor: Option<String>,
}

/// The plan that was made.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct UseOutput {
    pub plan_id: PlanId,
    pub phase: Phase,
    pub state: State,
    pub action: String,
    pub project: String,
    pub target_projects: Vec<TargetProject>,
    pub automation_profile: String,
    pub attempt: u32,
    pub inputs: BTreeMap<String, Value>,
    pub arguments: BTreeMap<String, Value>,
    pub actors: ActorNames,
    pub actor_overrides: ActorNames,
    pub automation: Automation,
    pub invariants: Vec<PlanInvariant>,
    pub context: ContextFacts,
    pub awaiting: Option<Awaiting>,
    pub allowed_actions: Vec<AllowedAction>,
    pub next_steps: Vec<String>,
    /// What people should know of how the plan came about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A project the plan works on.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct TargetProject {
    pub name: String,
    pub resources: Vec<String>,
}

/// Names of actors.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ActorNames {
    pub strategy: Option<String>,
    pub execution: Option<String>,
    pub estimation: Option<String>,
    pub invariant: Option<String>,
}

/// The profile in force.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Automation {
    pub profile: String,
    pub source: String,
    pub read_only: bool,
}

/// Something the plan must keep to.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct PlanInvariant {
    pub scope: Scope,
    /// `CLI`, `action` or `config`: where it was said.
    pub source: String,
    pub text: String,
    pub id: InvariantId,
    /// `machine`, or `actors` when its sentence has no form that a machine can check.
    pub enforced_by: String,
}

impl PlanInvariant {
    fn of(invariant: &Invariant) -> Self {
        let source = match invariant.scope {
            Scope::Plan => "CLI",
            Scope::Action => "action",
            Scope::Project | Scope::Global => "config",
        };
        Self {
            scope: invariant.scope,
            source: source.to_owned(),
            text: invariant.text.clone(),
            id: invariant.invariant_id,
            enforced_by: invariant.enforced_by().to_owned(),
        }
    }
}

/// What the plan starts from.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ContextFacts {
    pub resources: Vec<String>,
    /// Files in an index; plans work on the files themselves.
    pub indexed_files: u32,
    pub view: String,
    pub hot_token_budget: i64,
}

impl Operation for Use {
    const METHOD: &'static str = "plan/use";
    const SUMMARY: &'static str = "Make a plan from an action";
    type Output = UseOutput;

    fn run(self, engine: &Engine) -> Result<UseOutput> {
        let action_name = engine.name(&self.action)?;
        let found = engine.view(|r| match built_in::action(r, &action_name)? {
            Some(action) => Ok(Ok(action)),
            None => Ok(Err(r.actions()?.iter().map(|a| a.definition.name.to_string()).collect::<Vec<_>>())),
        })?;
        let action = found.map_err(|known| {
            engine
                .no_such("action", &action_name, &known, "agents action list")
                .suggest("agents action create --config <FILE>")
        })?;
        if action.definition.state == ActionState::Archived {
            return Err(Error::invalid_state(format!(
                "action `{action_name}` is archived: no plan can be made from it"
            ))
            .suggest("agents action list"));
        }
        let arguments = check_arguments(&action, self.arguments.clone())?;
        let (targets, resources, resource_names) = self.targets(engine)?;
        let actors = self.actors(engine, &action, &targets)?;
        let projects: Vec<_> = targets.iter().map(|(name, _)| name.clone()).collect();
        let flag = self.automation_profile.as_deref();
        let profile::Resolved { snapshot: profile, mut warnings } =
            engine.look(|r| profile::resolve(engine, r, flag, &action.definition, &projects))?;
        let project = self.projects.first().map(String::as_str);
        crate::checkpoints::refuse_unkept_promise(engine, &profile.profile.safety, project)?;

        let candidate = Candidate {
            action: &action,
            actors: &actors,
            arguments: &arguments,
            projects: &projects,
            resources: &resources,
            profile: &profile.profile,
        };
        preflight::run(engine, &candidate)?;
        warnings.extend(preflight::warnings(engine, &candidate)?);

        let now = clock::now();
        let plan_id = PlanId::from_ulid(clock::ulid());
        let definition = &action.definition;
        let invariants: Vec<String> = definition.invariants.iter().chain(&self.invariants).cloned().collect();
        let own = |text: &String| invariants::new(Scope::Plan, Some(plan_id.to_string()), text, false);
        let own = self.invariants.iter().map(own).collect::<Result<Vec<_>>>()?;
        let mut plan = Plan {
            plan_id,
            parent_plan_id: None,
            root_plan_id: plan_id,
            action: action_name.clone(),
            projects,
            resources,
            description: substitute("description", &definition.description, &arguments)?,
            definition_of_done: substitute("definition_of_done", &definition.definition_of_done, &arguments)?,
            arguments: arguments.clone(),
            actors,
            profile,
            read_only: definition.read_only,
            invariants,
            subplan: definition.subplan.clone(),
            phase: Phase::Strategize,
            state: State::Queued,
            awaiting: None,
            attempt: 1,
            reversions: 0,
            commanded: false,
            apply_mode: None,
            sandboxes: Vec::new(),
            guidance: Vec::new(),
            failure: None,
            summaries: BTreeMap::new(),
            applied: Vec::new(),
            diff_ref: None,
            resumed_from: None,
            tool_calls: 0,
            spending: Spending::default(),
            validations: agents_domain::validation::PlanValidations::default(),
            created_by: engine.user.clone(),
            created_at: now,
            updated_at: now,
            phase_times: BTreeMap::new(),
            cancel_reason: None,
            completed_at: None,
            epoch: 0,
        };
        let history = engine.view(|r| r.action_history(&action_name))?;
        let confidence = confidence::of_start(&history, plan.invariants.len()).score;
        plan.begin(&Context { confidence: Some(confidence), ..records::context_of(&plan) }, now);
        let root = prompt_definition(engine, &plan)?;
        let applying = engine.write(|w| {
            w.insert_plan(&plan)?;
            for invariant in &own {
                w.insert_invariant(invariant)?;
            }
            w.insert_decision(&root)?;
            if !definition.reusable {
                let mut used = action.clone();
                used.definition.state = ActionState::Archived;
                used.updated_at = clock::after(action.updated_at);
                w.update_action(&used)?;
            }
            let facts = json!({
                "action_name": plan.action, "project_names": plan.projects,
                "automation_profile": plan.profile.profile.name, "parent_plan_id": null,
            });
            records::emit(engine, w, &plan, "plan.created", facts)?;
            records::emit_decision(engine, w, &plan, &root)?;
            Ok(invariants::collect(w, &plan)?)
        })?;
        if plan.awaiting.is_none() {
            engine.start_worker(plan_id)?;
        }
        let first = plan.projects.first().map(ToString::to_string);
        let budget = engine.config.integer("context.hot.max-tokens", first.as_deref());
        let invariants = applying.iter().map(PlanInvariant::of).collect();
        Ok(UseOutput { invariants, warnings, ..self.output(&plan, &targets, resource_names, budget) })
    }
}

/// The actors of a plan of an action when nobody names others.
pub(crate) fn actors_of(engine: &Engine, action: &Action) -> Result<PlanActors> {
    Use {
        action: action.definition.name.to_string(),
        projects: Vec::new(),
        arguments: Map::new(),
        automation_profile: None,
        invariants: Vec::new(),
        strategy_actor: None,
        execution_actor: None,
        estimation_actor: None,
        invariant_actor: None,
    }
    .actors(engine, action, &[])
}

impl Use {
    fn actors(
        &self,
        engine: &Engine,
        action: &Action,
        targets: &[(QualifiedName, Vec<String>)],
    ) -> Result<PlanActors> {
        let pick = |role: &str,
                    flag: &Option<String>,
                    own: Option<&QualifiedName>|
         -> Result<Option<QualifiedName>> {
            let name = match (flag, own) {
                (Some(text), _) => Some(engine.name(text)?),
                (None, Some(own)) => Some(own.clone()),
                (None, None) => {
                    let default = engine.config.text(&format!("actor.default.{role}"), None);
                    if default.is_empty() { None } else { Some(engine.name(&default)?) }
                }
            };
            Ok(name)
        };
        let definition = &action.definition;
        let required = |role: &str, name: Option<QualifiedName>| {
            name.ok_or_else(|| {
                Error::validation(format!("the plan has no {role} actor"))
                    .suggest(format!("--{role}-actor <NAME>"))
            })
        };
        Ok(PlanActors {
            strategy: required(
                "strategy",
                pick("strategy", &self.strategy_actor, Some(&definition.strategy_actor))?,
            )?,
            execution: required(
                "execution",
                pick("execution", &self.execution_actor, Some(&definition.execution_actor))?,
            )?,
            estimation: pick("estimation", &self.estimation_actor, definition.estimation_actor.as_ref())?,
            invariant: self.reconciler(engine, action, targets)?,
        })
    }

    /// Plan flag, then action, then the first project that names one, then configuration.
    fn reconciler(
        &self,
        engine: &Engine,
        action: &Action,
        targets: &[(QualifiedName, Vec<String>)],
    ) -> Result<Option<QualifiedName>> {
        let mut named = self.invariant_actor.clone();
        named = named.or_else(|| action.definition.invariant_actor.as_ref().map(ToString::to_string));
        for (project, _) in targets {
            if named.is_none() {
                named = engine.project(project)?.invariant_actor;
            }
        }
        let named = named.unwrap_or_else(|| engine.config.text("actor.default.invariant", None));
        if named.is_empty() {
            return Ok(None);
        }
        Ok(Some(engine.name(&named)?))
    }

    /// The projects with the names of their resources, and the resources, each once.
    #[allow(clippy::type_complexity, reason = "used once, right where it is taken apart")]
    fn targets(
        &self,
        engine: &Engine,
    ) -> Result<(Vec<(QualifiedName, Vec<String>)>, Vec<PlanResource>, Vec<String>)> {
        if self.projects.is_empty() {
            return Err(Error::validation("a plan needs at least one project").suggest("agents project list"));
        }
        let mut targets: Vec<(QualifiedName, Vec<String>)> = Vec::new();
        let mut resources: Vec<PlanResource> = Vec::new();
        let mut names = Vec::new();
        for text in &self.projects {
            let project = engine.project(&engine.name(text)?)?;
            if targets.iter().any(|(name, _)| *name == project.name) {
                continue;
            }
            if project.resources.is_empty() {
                return Err(Error::validation(format!(
                    "project `{}` has no resource to work on",
                    project.name
                ))
                .suggest(format!("agents project link-resource {} <RESOURCE>", project.name)));
            }
            let mut of_project = Vec::new();
            for link in &project.resources {
                let resource = engine.store.view(|r| r.resource(link.resource_id))?.ok_or_else(|| {
                    Error::not_found(format!("project `{}` links a resource that is gone", project.name))
                })?;
                let name = sandboxes::display_name(&resource);
                of_project.push(name.clone());
                match resources.iter_mut().find(|r| r.resource_id == link.resource_id) {
                    Some(known) => known.read_only |= link.read_only,
                    None => {
                        names.push(name);
                        resources.push(PlanResource {
                            resource_id: link.resource_id,
                            project: project.name.clone(),
                            read_only: link.read_only,
                        });
                    }
                }
            }
            targets.push((project.name, of_project));
        }
        Ok((targets, resources, names))
    }

    fn output(
        &self,
        plan: &Plan,
        targets: &[(QualifiedName, Vec<String>)],
        resource_names: Vec<String>,
        hot_token_budget: i64,
    ) -> UseOutput {
        let id = plan.plan_id;
        UseOutput {
            plan_id: id,
            phase: plan.phase,
            state: plan.state,
            action: plan.action.to_string(),
            project: project_text(plan),
            target_projects: targets
                .iter()
                .map(|(name, resources)| TargetProject {
                    name: name.to_string(),
                    resources: resources.clone(),
                })
                .collect(),
            automation_profile: plan.profile.profile.name.clone(),
            attempt: plan.attempt,
            inputs: plan.arguments.clone(),
            arguments: plan.arguments.clone(),
            actors: ActorNames {
                strategy: Some(plan.actors.strategy.to_string()),
                execution: Some(plan.actors.execution.to_string()),
                estimation: plan.actors.estimation.as_ref().map(ToString::to_string),
                invariant: plan.actors.invariant.as_ref().map(ToString::to_string),
            },
            actor_overrides: ActorNames {
                strategy: self.strategy_actor.clone(),
                execution: self.execution_actor.clone(),
                estimation: self.estimation_actor.clone(),
                invariant: self.invariant_actor.clone(),
            },
            automation: Automation {
                profile: plan.profile.profile.name.clone(),
                source: plan.profile.source.clone(),
                read_only: plan.read_only,
            },
            invariants: Vec::new(),
            context: ContextFacts {
                resources: resource_names,
                indexed_files: 0,
                view: "strategize".to_owned(),
                hot_token_budget,
            },
            awaiting: plan.awaiting.clone(),
            allowed_actions: records::allowed(plan),
            warnings: Vec::new(),
            next_steps: ["execute", "status", "tree"].map(|verb| format!("agents plan {verb} {id}")).to_vec(),
        }
    }
}

/// Fills `{{ argument }}` in; an undefined name is an error, not an empty text.
pub(crate) fn substitute(field: &str, template: &str, arguments: &BTreeMap<String, Value>) -> Result<String> {
    let mut environment = minijinja::Environment::new();
    environment.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
    environment.render_str(template, minijinja::value::Serde(arguments)).map_err(|error| {
        let line = error.line().map(|line| format!(", line {line}")).unwrap_or_default();
        Error::validation(format!("the action's {field}{line} cannot be filled in: {error}"))
    })
}

pub(crate) fn prompt_definition(engine: &Engine, plan: &Plan) -> Result<Decision> {
    let context = json!({
        "description": plan.description, "definition_of_done": plan.definition_of_done,
        "arguments": plan.arguments, "projects": plan.projects, "profile": plan.profile,
    });
    let bytes = serde_json::to_vec(&context).map_err(|e| Error::internal(e.to_string()))?;
    let hash = engine.store.put_blob(&bytes)?;
    let state = engine.store.put_blob(b"null")?;
    Ok(Decision {
        decision_id: DecisionId::from_ulid(clock::ulid()),
        plan_id: plan.plan_id,
        parent_decision_id: None,
        sequence_number: 1,
        key: Some("prompt".to_owned()),
        decision_type: DecisionType::PromptDefinition,
        question: "What shall this plan do?".to_owned(),
        chosen_option: plan.description.clone(),
        alternatives: vec![Alternative { option: plan.description.clone(), description: None }],
        confidence: None,
        rationale: match plan.parent_plan_id {
            None => format!("Asked for by {} with action {}", plan.created_by, plan.action),
            Some(parent) => format!("Handed on by plan {parent} with action {}", plan.action),
        },
        actor_reasoning: None,
        context: ContextSnapshot {
            hot_context_ref: hash.clone(),
            hot_context_hash: hash,
            relevant_resources: Vec::new(),
            actor_state_ref: state,
        },
        depends_on: Vec::new(),
        pending: false,
        approval: Some(Approval::System),
        artifacts: Vec::new(),
        downstream_plans: Vec::new(),
        corrects_decision_id: None,
        correction_reason: None,
        superseded_by: None,
        created_at: plan.created_at,
    })
}
