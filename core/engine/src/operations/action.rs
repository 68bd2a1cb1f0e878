//! Operations on actions.

use agents_config::{Loaded, Problem, Severity, load_action, nearest, to_error};
use agents_domain::action::{Action, ActionArgument, ActionDefinition, ActionState, ArgumentType};
use agents_domain::invariant::Scope;
use agents_domain::ports::store::{ActionHistory, StoreResult};
use agents_domain::{Error, ErrorKind, QualifiedName, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::registry;
use crate::{Engine, Operation, built_in, clock, invariants};

/// Registers an action from the text of its file.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Create {
    /// The file as the person named it, which messages repeat.
    pub config: String,
    /// Where the file is, which is kept: absolute. As it was named unless given.
    #[serde(default)]
    pub path: Option<String>,
    /// What the file says.
    pub text: String,
}

/// A registered action.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ActionView {
    pub name: String,
    pub state: ActionState,
    pub description: String,
    pub strategy_actor: String,
    pub execution_actor: String,
    pub estimation_actor: Option<String>,
    pub invariant_actor: Option<String>,
    pub reusable: bool,
    pub read_only: bool,
    pub config: String,
    pub created: String,
    pub definition_of_done: String,
    pub arguments: Vec<ArgumentView>,
    pub automation: AutomationView,
    pub invariants: Vec<String>,
}

/// An argument of an action.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ArgumentView {
    pub name: String,
    #[serde(rename = "type")]
    pub argument_type: ArgumentType,
    pub required: bool,
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<serde_json::Value>,
}

/// The profile its plans get, and who says so.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct AutomationView {
    pub profile: String,
    pub source: String,
}

/// The registered action, with what its file could say better.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct CreateOutput {
    #[serde(flatten)]
    pub action: ActionView,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<Problem>,
}

impl Operation for Create {
    const METHOD: &'static str = "registry/action/create";
    const SUMMARY: &'static str = "Register an action from its file";
    type Output = CreateOutput;

    fn run(self, engine: &Engine) -> Result<CreateOutput> {
        let loaded = load_action(&self.text, &self.config).map_err(|problems| to_error(&problems))?;
        check_actors(engine, &loaded)?;
        let name = loaded.value.name.clone();
        registry::check_own("an action", &name)?;
        let invariant = |text: &String| invariants::new(Scope::Action, Some(name.to_string()), text, false);
        let own = loaded.value.invariants.iter().map(invariant).collect::<Result<Vec<_>>>()?;
        let now = clock::now();
        let action = Action {
            definition: loaded.value,
            config_path: self.path.unwrap_or(self.config),
            source: self.text.clone(),
            created_at: now,
            updated_at: now,
        };
        engine.write(|w| {
            if w.action(&name)?.is_some() {
                return Err(Error::new(ErrorKind::AlreadyExists, format!("Action '{name}' already exists"))
                    .suggest(format!("agents action show {name}"))
                    .suggest("give the action another `name` in its file"));
            }
            w.insert_action(&action)?;
            for invariant in &own {
                w.insert_invariant(invariant)?;
            }
            registry::changed(engine, w, "action", &name.to_string(), "created")
        })?;
        Ok(CreateOutput { action: view(engine, &action), hints: loaded.hints })
    }
}

/// Every actor an action names must exist, or its plans would fail one by one.
fn check_actors(engine: &Engine, loaded: &Loaded<ActionDefinition>) -> Result<()> {
    let action = &loaded.value;
    let named = [
        ("strategy_actor", Some(&action.strategy_actor)),
        ("execution_actor", Some(&action.execution_actor)),
        ("estimation_actor", action.estimation_actor.as_ref()),
        ("review_actor", action.review_actor.as_ref()),
        ("apply_actor", action.apply_actor.as_ref()),
        ("invariant_actor", action.invariant_actor.as_ref()),
    ];
    let known = engine.actor_names()?;
    let problems: Vec<Problem> = named
        .into_iter()
        .filter_map(|(key, name)| Some((key, name?)))
        .filter(|(key, name)| match *key {
            "invariant_actor" => engine.actors.reconciler(name).is_none(),
            _ => !engine.has_actor(name).unwrap_or(false),
        })
        .map(|(key, name)| {
            let meant = match nearest(&name.to_string(), known.iter().map(String::as_str)) {
                Some(meant) => format!(": did you mean `{meant}`?"),
                None => format!("; there is {}", known.join(", ")),
            };
            loaded.problem(Severity::Error, key, format!("there is no actor `{name}`{meant}"))
        })
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(to_error(&problems)) }
}

fn view(engine: &Engine, action: &Action) -> ActionView {
    let definition = &action.definition;
    let text = |name: Option<&QualifiedName>| name.map(ToString::to_string);
    let argument = |a: &ActionArgument| ArgumentView {
        name: a.name.clone(),
        argument_type: a.argument_type,
        required: a.required,
        description: a.description.clone(),
        default: a.default.clone(),
    };
    let automation = match &definition.automation_profile {
        Some(profile) => AutomationView { profile: profile.clone(), source: "action".to_owned() },
        None => {
            let resolved = engine.config.get("core.automation-profile", None);
            AutomationView {
                profile: resolved.as_text(),
                source: resolved.source.profile_source().to_owned(),
            }
        }
    };
    ActionView {
        name: definition.name.to_string(),
        state: definition.state,
        description: definition.description.clone(),
        strategy_actor: definition.strategy_actor.to_string(),
        execution_actor: definition.execution_actor.to_string(),
        estimation_actor: text(definition.estimation_actor.as_ref()),
        invariant_actor: text(definition.invariant_actor.as_ref()),
        reusable: definition.reusable,
        read_only: definition.read_only,
        config: action.config_path.clone(),
        created: action.created_at.seconds_rfc3339(),
        definition_of_done: definition.definition_of_done.clone(),
        arguments: definition.arguments.iter().map(argument).collect(),
        automation,
        invariants: definition.invariants.clone(),
    }
}

/// Lists actions; filters combine.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// Only this namespace.
    #[serde(default)]
    pub namespace: Option<String>,
    /// `available` unless given, `archived`, or `all`.
    #[serde(default)]
    pub state: Option<String>,
    /// A regular expression on the name.
    #[serde(default)]
    pub pattern: Option<String>,
}

/// Actions by name.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ListOutput {
    pub actions: Vec<ListedAction>,
    pub filters: Filters,
    pub summary: Summary,
}

/// An action in the list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ListedAction {
    pub name: String,
    pub state: ActionState,
    pub description: String,
    pub strategy_actor: String,
    pub execution_actor: String,
    pub reusable: bool,
    pub plans: u32,
}

/// The filters in force.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Filters {
    pub state: String,
    pub namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
}

/// Counts of what is listed.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Summary {
    pub total: usize,
    pub available: usize,
    pub archived: usize,
    pub total_plans_created: u32,
}

impl Operation for List {
    const METHOD: &'static str = "registry/action/list";
    const SUMMARY: &'static str = "List actions";
    type Output = ListOutput;

    fn run(self, engine: &Engine) -> Result<ListOutput> {
        let names = registry::Wanted::new(self.namespace.as_deref(), self.pattern.as_deref())?;
        let state = self.state.unwrap_or_else(|| "available".to_owned());
        let wanted = match state.as_str() {
            "available" => Some(ActionState::Available),
            "archived" => Some(ActionState::Archived),
            "all" => None,
            other => {
                return Err(Error::new(
                    ErrorKind::Usage,
                    format!("--state: `{other}` is not one of available, archived, all"),
                ));
            }
        };
        // Those that come with the program are listed when asked for, by their namespace.
        let with_built_in = self.namespace.as_deref() == Some("builtin");
        let mut summary = Summary::default();
        let mut actions = Vec::new();
        let counted = engine.view(|r| {
            let count = |a: Action| Ok((r.plans_of_action(&a.definition.name)?, a));
            let built_in = built_in::actions().iter().filter(|_| with_built_in).cloned();
            r.actions()?.into_iter().chain(built_in).map(count).collect::<StoreResult<Vec<_>>>()
        })?;
        for (plans, action) in counted {
            let definition = action.definition;
            if wanted.is_some_and(|s| s != definition.state) || !names.has(&definition.name) {
                continue;
            }
            summary.total += 1;
            summary.total_plans_created += plans;
            match definition.state {
                ActionState::Available => summary.available += 1,
                ActionState::Archived => summary.archived += 1,
            }
            actions.push(ListedAction {
                name: definition.name.to_string(),
                state: definition.state,
                description: definition.description,
                strategy_actor: definition.strategy_actor.to_string(),
                execution_actor: definition.execution_actor.to_string(),
                reusable: definition.reusable,
                plans,
            });
        }
        actions.sort_by(|a, b| a.name.cmp(&b.name));
        let filters = Filters { state, namespace: self.namespace, pattern: self.pattern };
        Ok(ListOutput { actions, filters, summary })
    }
}

/// Shows an action.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Show {
    /// The action's name.
    pub name: String,
}

/// An action with what became of its plans.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ShowOutput {
    #[serde(flatten)]
    pub action: ActionView,
    pub long_description: Option<String>,
    pub history: History,
}

/// What became of an action's plans.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct History {
    pub plans_created: u32,
    pub plans_completed: u32,
    pub plans_failed: u32,
    /// `HH:MM:SS` from creation to application.
    pub avg_duration: Option<String>,
    /// Such as `$0.072`; absent without a model.
    pub avg_cost: Option<String>,
}

impl Operation for Show {
    const METHOD: &'static str = "registry/action/show";
    const SUMMARY: &'static str = "Show an action";
    type Output = ShowOutput;

    fn run(self, engine: &Engine) -> Result<ShowOutput> {
        let (action, history) = find(engine, &self.name)?;
        Ok(ShowOutput {
            action: view(engine, &action),
            long_description: action.definition.long_description,
            history: History {
                plans_created: history.plans,
                plans_completed: history.applied,
                plans_failed: history.errored,
                avg_duration: history.mean_duration_ms.map(super::plan::clock_text),
                avg_cost: None,
            },
        })
    }
}

fn find(engine: &Engine, name: &str) -> Result<(Action, ActionHistory)> {
    let name = engine.name(name)?;
    let found = engine.view(|r| match built_in::action(r, &name)? {
        Some(action) => Ok(Ok((action, r.action_history(&name)?))),
        None => Ok(Err(built_in::names(r)?)),
    })?;
    found.map_err(|known| engine.no_such("action", &name, &known, "agents action list --state all"))
}

/// Takes an action out of use; its plans go on.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Archive {
    /// The action's name.
    pub name: String,
}

/// What archiving changed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ArchiveOutput {
    pub name: String,
    pub state_transition: String,
    pub archived: String,
    pub impact: Impact,
    pub history: ArchiveHistory,
}

/// What it means for others.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Impact {
    pub availability: String,
    pub existing_plans: String,
    /// None is: a plan keeps what its action said when it was made.
    pub active_plans_affected: u32,
}

/// What became of the action's plans.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ArchiveHistory {
    pub total_plans: u32,
    pub completed: u32,
    pub failed: u32,
    /// `YYYY-MM-DD`.
    pub last_used: Option<String>,
}

impl Operation for Archive {
    const METHOD: &'static str = "registry/action/archive";
    const SUMMARY: &'static str = "Take an action out of use";
    type Output = ArchiveOutput;

    fn run(self, engine: &Engine) -> Result<ArchiveOutput> {
        let (found, history) = find(engine, &self.name)?;
        let name = found.definition.name;
        built_in::check_not_built_in(&name)?;
        let archived = engine.write(|w| {
            let mut action =
                w.action(&name)?.ok_or_else(|| Error::not_found(format!("there is no action `{name}`")))?;
            if action.definition.state == ActionState::Archived {
                return Err(Error::invalid_state(format!("action `{name}` is archived already"))
                    .suggest("agents action list --state archived"));
            }
            action.definition.state = ActionState::Archived;
            action.updated_at = clock::after(action.updated_at);
            w.update_action(&action)?;
            registry::changed(engine, w, "action", &name.to_string(), "archived")?;
            Ok(action.updated_at)
        })?;
        Ok(ArchiveOutput {
            name: name.to_string(),
            state_transition: "available -> archived".to_owned(),
            archived: archived.seconds_rfc3339(),
            impact: Impact {
                availability: "hidden from list".to_owned(),
                existing_plans: "unchanged".to_owned(),
                active_plans_affected: 0,
            },
            history: ArchiveHistory {
                total_plans: history.plans,
                completed: history.applied,
                failed: history.errored,
                last_used: history.last_used.map(|t| t.seconds_rfc3339().chars().take(10).collect()),
            },
        })
    }
}
