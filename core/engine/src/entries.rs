//! What is registered, by its names: for whoever offers, checks or finds them.

use std::path::PathBuf;

use agents_config::Registry;
use agents_domain::Result;
use agents_domain::action::ActionArgument;
use agents_domain::profile::built_in_profiles;
use agents_domain::validation::{BUILT_INS, built_in as built_in_validation};

use crate::{Engine, built_in};

/// Something registered, or coming with the program.
#[derive(Debug, Clone, PartialEq)]
pub struct RegistryEntry {
    /// Its name, such as `local/ruff`.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// The file it was registered from and what that said; `None` for what comes with the program.
    pub file: Option<(PathBuf, String)>,
    /// What an action takes; nothing for all others.
    pub arguments: Vec<ActionArgument>,
}

impl Engine {
    /// All entries of a registry with what comes with the program, by name.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn entries(&self, registry: Registry) -> Result<Vec<RegistryEntry>> {
        let entry = |name: String, description: Option<String>| RegistryEntry {
            name,
            description,
            file: None,
            arguments: Vec::new(),
        };
        let from = |entry: RegistryEntry, path: String, source: String| RegistryEntry {
            file: Some((path.into(), source)),
            ..entry
        };
        let mut found = match registry {
            Registry::Action => {
                let registered = self.view(|r| r.actions())?.into_iter().map(|a| {
                    let about = entry(a.definition.name.to_string(), Some(a.definition.description));
                    let arguments = a.definition.arguments;
                    RegistryEntry { arguments, ..from(about, a.config_path, a.source) }
                });
                let ours = built_in::actions().iter();
                let ours = ours.map(|a| RegistryEntry {
                    arguments: a.definition.arguments.clone(),
                    ..entry(a.definition.name.to_string(), Some(a.definition.description.clone()))
                });
                registered.chain(ours).collect()
            }
            Registry::Actor => {
                let registered = self.view(|r| r.actors())?.into_iter().map(|a| {
                    let about =
                        self.definition_of(&a, None).ok().and_then(|definition| definition.description);
                    from(entry(a.name.to_string(), about), a.config_path, a.source)
                });
                let ours = self.actors.names().into_iter().map(|name| entry(name.to_string(), None));
                registered.chain(ours).collect()
            }
            Registry::AutomationProfile => {
                let registered = self.view(|r| r.automation_profiles())?.into_iter().map(|p| {
                    from(entry(p.profile.name, Some(p.profile.description)), p.config_path, p.source)
                });
                let ours = built_in_profiles().into_iter().map(|p| entry(p.name, Some(p.description)));
                registered.chain(ours).collect()
            }
            Registry::LanguageServer => {
                let registered = self.view(|r| r.language_servers())?.into_iter();
                let registered = registered.map(|s| {
                    let about = entry(s.definition.name.to_string(), s.definition.description);
                    from(about, s.config_path, s.source)
                });
                registered.collect()
            }
            Registry::Skill => {
                let registered = self.view(|r| r.skills())?.into_iter().map(|s| {
                    let about = entry(s.definition.name.to_string(), s.definition.description);
                    from(about, s.config_path, s.source)
                });
                registered.collect()
            }
            Registry::Tool => {
                let registered = self.view(|r| r.tools())?.into_iter().map(|t| {
                    let about = entry(t.definition.name.to_string(), Some(t.definition.description));
                    from(about, t.config_path, t.source)
                });
                let ours = crate::tools::all().iter();
                let ours = ours.map(|t| entry(t.facts.name.clone(), Some(t.facts.summary.clone())));
                registered.chain(ours).collect()
            }
            Registry::Validation => {
                let registered = self.view(|r| r.validations())?.into_iter().map(|v| {
                    let about = entry(v.definition.name.to_string(), v.definition.description);
                    from(about, v.config_path, v.source)
                });
                let ours = BUILT_INS.iter().filter_map(|b| built_in_validation(&b.as_str().parse().ok()?));
                let ours = ours.map(|d| entry(d.name.to_string(), d.description));
                registered.chain(ours).collect::<Vec<_>>()
            }
        };
        found.sort_by(|a: &RegistryEntry, b| a.name.cmp(&b.name));
        Ok(found)
    }
}
