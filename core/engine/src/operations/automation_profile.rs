//! Operations on automation profiles: those that come with the program, and those people register.

use agents_config::{Problem, load_automation_profile, to_error};
use agents_domain::ports::store::Reader;
use agents_domain::profile::{
    Gate, Guards, Profile, RegisteredProfile, Safety, built_in_profile, built_in_profiles,
};
use agents_domain::{Error, ErrorKind, QualifiedName, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::registry;
use crate::{Engine, Operation, clock};

const BUILT_IN: &str = "built-in";
const CUSTOM: &str = "custom";

/// The command that shows what there is.
const LIST: &str = "agents automation-profile list";

/// A profile by name: a built-in word, or the name of a registered one.
pub(crate) fn find(r: &dyn Reader, name: &str) -> Result<Profile> {
    Ok(entry(r, name)?.0)
}

/// A profile with its registration, which a built-in one does not have.
fn entry(r: &dyn Reader, name: &str) -> Result<(Profile, Option<RegisteredProfile>)> {
    if let Some(profile) = built_in_profile(name) {
        return Ok((profile, None));
    }
    let full = name.parse::<QualifiedName>().map_or_else(|_| name.to_owned(), |full| full.to_string());
    if let Some(found) = r.automation_profile(&full)? {
        return Ok((found.profile.clone(), Some(found)));
    }
    let registered = r.automation_profiles()?.into_iter().map(|p| p.profile.name);
    let known: Vec<String> = built_in_profiles().into_iter().map(|p| p.name).chain(registered).collect();
    if let Ok(qualified) = name.parse::<QualifiedName>()
        && let Some(error) = crate::lookup::of_other_kind(r, "automation profile", &qualified)?
    {
        return Err(error.suggest(LIST));
    }
    let error = Error::not_found(format!("there is no automation profile `{name}`"));
    Err(match agents_config::nearest(name, known.iter().map(String::as_str)) {
        Some(meant) => error.suggest(format!("did you mean `{meant}`?")).suggest(LIST),
        None => error.suggest(format!("known profiles: {}", known.join(", "))).suggest(LIST),
    })
}

fn thresholds(profile: &Profile, gates: &[Gate]) -> Map<String, Value> {
    gates.iter().map(|gate| (gate.flag().to_owned(), profile.thresholds.of(*gate).into())).collect()
}

/// Registers an automation profile from the text of its file.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Add {
    /// The file as the person named it.
    pub config: String,
    /// What the file says.
    pub text: String,
    /// Replace a profile of that name.
    #[serde(default)]
    pub update: bool,
}

/// The registered profile, with what its file could say better.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct AddOutput {
    pub name: String,
    pub description: String,
    pub created: String,
    /// The eleven, by their flags.
    pub thresholds: Map<String, Value>,
    pub flags: Flags,
    pub safety: Safety,
    pub guards: Guards,
    /// It replaced one of that name.
    pub updated: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<Problem>,
}

/// The three limits every file says.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Flags {
    pub require_sandbox: bool,
    pub require_checkpoints: bool,
    pub allow_unsafe_tools: bool,
}

impl Operation for Add {
    const METHOD: &'static str = "registry/automation_profile/add";
    const SUMMARY: &'static str = "Register an automation profile from its file";
    type Output = AddOutput;

    fn run(self, engine: &Engine) -> Result<AddOutput> {
        let loaded =
            load_automation_profile(&self.text, &self.config).map_err(|problems| to_error(&problems))?;
        let profile = loaded.value;
        let name = profile.name.clone();
        registry::check_own("an automation profile", &name.parse::<QualifiedName>()?)?;
        let (created, updated) = engine.write(|w| {
            let known = w.automation_profile(&name)?;
            let now = clock::now();
            let registered = |created_at, updated_at| RegisteredProfile {
                profile: profile.clone(),
                config_path: self.config.clone(),
                source: self.text.clone(),
                created_at,
                updated_at,
            };
            match known {
                Some(_) if !self.update => {
                    let message = format!("automation profile `{name}` already exists");
                    Err(Error::new(ErrorKind::AlreadyExists, message)
                        .suggest(format!("agents automation-profile add --update --config {}", self.config)))
                }
                Some(known) => {
                    w.update_automation_profile(&registered(
                        known.created_at,
                        clock::after(known.updated_at),
                    ))?;
                    registry::changed(engine, w, "automation_profile", &name, "updated")?;
                    Ok((known.created_at, true))
                }
                None => {
                    w.insert_automation_profile(&registered(now, now))?;
                    registry::changed(engine, w, "automation_profile", &name, "added")?;
                    Ok((now, false))
                }
            }
        })?;
        Ok(AddOutput {
            thresholds: thresholds(&profile, &Gate::ALL),
            flags: Flags {
                require_sandbox: profile.safety.require_sandbox,
                require_checkpoints: profile.safety.require_checkpoints,
                allow_unsafe_tools: profile.safety.allow_unsafe_tools,
            },
            name: profile.name,
            description: profile.description,
            created: created.seconds_rfc3339(),
            safety: profile.safety,
            guards: profile.guards,
            updated,
            hints: loaded.hints,
        })
    }
}

/// Lists automation profiles, the built-in ones first.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// A regular expression on the name.
    #[serde(default)]
    pub pattern: Option<String>,
}

/// Profiles, from the most to the least asking, then those registered by name.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ListOutput {
    pub profiles: Vec<ListedProfile>,
    pub summary: ListSummary,
}

/// A profile in the list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ListedProfile {
    pub name: String,
    /// `built-in` or `custom`.
    pub source: String,
    /// From which confidence on it applies by itself.
    pub select_tool: f64,
    pub sandbox: bool,
    pub description: String,
}

/// How many were listed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ListSummary {
    pub built_in: usize,
    pub custom: usize,
    pub total: usize,
}

impl Operation for List {
    const METHOD: &'static str = "registry/automation_profile/list";
    const SUMMARY: &'static str = "List automation profiles";
    type Output = ListOutput;

    fn run(self, engine: &Engine) -> Result<ListOutput> {
        let pattern = registry::pattern(self.pattern.as_deref())?;
        let registered = engine.view(|r| r.automation_profiles())?;
        let own = registered.into_iter().map(|registered| (registered.profile, CUSTOM));
        let profiles: Vec<ListedProfile> = built_in_profiles()
            .into_iter()
            .map(|profile| (profile, BUILT_IN))
            .chain(own)
            .filter(|(profile, _)| pattern.as_ref().is_none_or(|p| p.is_match(&profile.name)))
            .map(|(profile, source)| ListedProfile {
                name: profile.name,
                source: source.to_owned(),
                select_tool: profile.thresholds.select_tool,
                sandbox: profile.safety.require_sandbox,
                description: profile.description,
            })
            .collect();
        let built_in = profiles.iter().filter(|p| p.source == BUILT_IN).count();
        let summary = ListSummary { built_in, custom: profiles.len() - built_in, total: profiles.len() };
        Ok(ListOutput { profiles, summary })
    }
}

/// Shows an automation profile.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Show {
    /// A built-in profile, or the name of a registered one.
    pub name: String,
}

/// A profile, its thresholds by what they are about.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ShowOutput {
    pub name: String,
    /// `built-in` or `custom`.
    pub source: String,
    pub description: String,
    pub phase_transitions: Map<String, Value>,
    pub decision_automation: Map<String, Value>,
    pub self_repair: Map<String, Value>,
    pub execution_controls: Map<String, Value>,
    pub safety: Safety,
    pub guards: Guards,
    /// The file it was registered from.
    pub config: Option<String>,
    pub created: Option<String>,
    pub updated: Option<String>,
}

impl Operation for Show {
    const METHOD: &'static str = "registry/automation_profile/show";
    const SUMMARY: &'static str = "Show an automation profile";
    type Output = ShowOutput;

    fn run(self, engine: &Engine) -> Result<ShowOutput> {
        let (profile, registered) = engine.look(|r| entry(r, &self.name))?;
        let mut execution_controls = thresholds(&profile, &[Gate::SpawnChild]);
        for (key, value) in [
            ("require_sandbox", profile.safety.require_sandbox),
            ("require_checkpoints", profile.safety.require_checkpoints),
            ("allow_unsafe_tools", profile.safety.allow_unsafe_tools),
        ] {
            execution_controls.insert(key.to_owned(), value.into());
        }
        Ok(ShowOutput {
            source: if registered.is_some() { CUSTOM } else { BUILT_IN }.to_owned(),
            phase_transitions: thresholds(
                &profile,
                &[Gate::AutoStrategize, Gate::AutoExecute, Gate::AutoApply],
            ),
            decision_automation: thresholds(&profile, &[Gate::StrategyDecision, Gate::ExecutionDecision]),
            self_repair: thresholds(
                &profile,
                &[
                    Gate::ValidationFix,
                    Gate::ExecuteReversion,
                    Gate::ApplyReversion,
                    Gate::Retry,
                    Gate::RestoreCheckpoint,
                ],
            ),
            execution_controls,
            name: profile.name,
            description: profile.description,
            safety: profile.safety,
            guards: profile.guards,
            config: registered.as_ref().map(|r| r.config_path.clone()),
            created: registered.as_ref().map(|r| r.created_at.seconds_rfc3339()),
            updated: registered.as_ref().map(|r| r.updated_at.seconds_rfc3339()),
        })
    }
}

/// Removes a registered automation profile. Plans keep the profile they were made with.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Remove {
    /// The profile's name.
    pub name: String,
}

/// What was removed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct RemoveOutput {
    pub name: String,
    /// What still names it and gets the inherited profile from now on.
    pub fall_back: Vec<Referent>,
}

/// Something that names a profile.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Referent {
    /// `action`, `project` or `global`.
    #[serde(rename = "type")]
    pub referent_type: String,
    pub name: String,
}

impl Operation for Remove {
    const METHOD: &'static str = "registry/automation_profile/remove";
    const SUMMARY: &'static str = "Remove an automation profile";
    type Output = RemoveOutput;

    fn run(self, engine: &Engine) -> Result<RemoveOutput> {
        let (profile, registered) = engine.look(|r| entry(r, &self.name))?;
        if registered.is_none() {
            return Err(Error::invalid_state(format!(
                "`{}` is built in: it can be neither replaced nor removed",
                profile.name
            ))
            .suggest(LIST));
        }
        let fall_back = referents(engine, &profile.name)?;
        engine.write(|w| {
            w.delete_automation_profile(&profile.name)?;
            let facts = serde_json::to_value(&fall_back).unwrap_or_default();
            registry::deleted(engine, w, "automation_profile", &profile.name, facts)
        })?;
        Ok(RemoveOutput { name: profile.name, fall_back })
    }
}

fn referents(engine: &Engine, name: &str) -> Result<Vec<Referent>> {
    let (actions, projects) = engine.view(|r| Ok((r.actions()?, r.projects()?)))?;
    let referent = |kind: &str, name: String| Referent { referent_type: kind.to_owned(), name };
    let configured = |project: Option<&str>| {
        let resolved = engine.config.get("core.automation-profile", project);
        (resolved.as_text() == name).then_some(resolved.source)
    };
    let mut found: Vec<Referent> = actions
        .iter()
        .filter(|action| action.definition.automation_profile.as_deref() == Some(name))
        .map(|action| referent("action", action.definition.name.to_string()))
        .collect();
    found.extend(
        projects
            .iter()
            .map(|project| project.name.to_string())
            .filter(|project| configured(Some(project)) == Some(agents_config::Source::Project))
            .map(|project| referent("project", project)),
    );
    if configured(None).is_some() {
        found.push(referent("global", "core.automation-profile".to_owned()));
    }
    Ok(found)
}
