//! What a plan needs in the registry, under `local/`: what is there is used again.

use std::collections::BTreeMap;
use std::path::Path;

use agents_domain::action::ActionState;
use agents_domain::{Error, ErrorKind};
use agents_engine::Engine;
use agents_engine::operations::{action, project, resource};

use super::made::Made;

/// The action that plans are made from.
const ACTION: &str = include_str!("fix-diagnostics.yaml");
/// What the action is called, and what does its work.
const ACTION_NAME: &str = "local/fix-diagnostics";
const ACTOR: &str = "builtin/fix-diagnostics";
/// What `agents action show` names as its file.
const ACTION_FILE: &str = "(agents quickstart)";

/// Longest name that is made of a folder's.
const LONGEST: usize = 64;

/// What a plan is made on and from.
pub struct Registered {
    /// The repository's resource.
    pub resource: String,
    /// A project with this resource alone.
    pub project: String,
    /// The action.
    pub action: String,
    /// What is worth knowing of the repository.
    pub warnings: Vec<String>,
}

/// Registers a repository: as the resource it is already, else under the name of its folder.
///
/// # Errors
/// When it is no repository that plans can work on; nothing is registered then.
pub fn repository(engine: &Engine, made: &Made, root: &Path) -> Result<(String, Vec<String>), Error> {
    let list = resource::List { all: false, resource_type: Some("^git-checkout$".to_owned()) };
    let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let here = |location: &Option<String>| location.as_deref().map(Path::new) == Some(&real);
    let known = engine.call(list)?.resources.into_iter().find(|r| r.name.is_some() && here(&r.location));
    let add = |name: &str, update| resource::Add {
        resource_type: "git-checkout".to_owned(),
        name: name.to_owned(),
        description: None,
        properties: BTreeMap::from([("path".to_owned(), root.display().to_string())]),
        update,
    };
    if let Some(name) = known.and_then(|known| known.name) {
        // Again, because its branch may have changed, and it may not be what it was.
        let warnings = engine.call(add(&name, true))?.warnings;
        return Ok((name, warnings));
    }
    let all = engine.call(resource::List::default())?.resources;
    let taken: Vec<String> = all.into_iter().filter_map(|r| r.name).collect();
    let name = free(&base_name(root), &taken);
    made.note(|things| {
        let added = engine.call(add(&name, false))?;
        things.resource = Some(name.clone());
        Ok((name, added.warnings))
    })
}

/// The project and the action for a registered repository.
pub fn plan_inputs(
    engine: &Engine,
    made: &Made,
    root: &Path,
    (resource, warnings): (String, Vec<String>),
) -> Result<Registered, Error> {
    let project = project(engine, made, root, &resource)?;
    let action = action(engine)?;
    Ok(Registered { resource, project, action, warnings })
}

fn project(engine: &Engine, made: &Made, root: &Path, resource: &str) -> Result<String, Error> {
    for linked in engine.call(resource::Show { resource: resource.to_owned() })?.linked_projects {
        let shown = engine.call(project::Show { name: linked.name })?;
        // One with more resources would have its plan look at all of them.
        if let [alone] = shown.linked_resources.as_slice()
            && !alone.read_only
        {
            return Ok(shown.project.name);
        }
    }
    let all = engine.call(project::List::default())?.projects;
    let taken: Vec<String> = all.into_iter().map(|project| project.name).collect();
    let name = free(&base_name(root), &taken);
    made.note(|things| {
        engine.call(project::Create {
            name: name.clone(),
            description: None,
            resources: vec![resource.to_owned()],
            invariants: Vec::new(),
            invariant_actor: None,
        })?;
        things.project = Some(name.clone());
        Ok(name)
    })
}

/// The action of that name when it does the work meant here, else one with a number behind its name.
fn action(engine: &Engine) -> Result<String, Error> {
    for name in numbered(ACTION_NAME) {
        match engine.call(action::Show { name: name.clone() }) {
            Ok(action::ShowOutput { action: found, .. }) => {
                let needs_more = found.arguments.iter().any(|a| a.required && a.default.is_none());
                let works = found.strategy_actor == ACTOR && found.execution_actor == ACTOR;
                if works && !needs_more && found.state == ActionState::Available {
                    return Ok(name);
                }
            }
            Err(error) if error.kind == ErrorKind::NotFound => {
                let text = ACTION.replacen(ACTION_NAME, &name, 1);
                engine.call(action::Create { config: ACTION_FILE.to_owned(), path: None, text })?;
                return Ok(name);
            }
            Err(error) => return Err(error),
        }
    }
    Err(Error::internal("there is no end of numbers"))
}

/// `local/<name>` for a folder: what cannot be part of a name becomes a dash.
fn base_name(root: &Path) -> String {
    let folder = root.file_name().unwrap_or_default().to_string_lossy();
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String = folder.chars().map(|c| if allowed(c) { c } else { '-' }).take(LONGEST).collect();
    let name = name.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    format!("local/{}", if name.is_empty() { "repository" } else { name })
}

/// The name, or the first with a number behind it, that is not taken.
fn free(base: &str, taken: &[String]) -> String {
    numbered(base).find(|name| !taken.contains(name)).unwrap_or_else(|| base.to_owned())
}

fn numbered(base: &str) -> impl Iterator<Item = String> {
    let rest = (2..).map({
        let base = base.to_owned();
        move |n: u32| format!("{base}-{n}")
    });
    std::iter::once(base.to_owned()).chain(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_gives_its_name_as_far_as_it_can_be_one() {
        let names = [
            ("/src/my-app", "local/my-app"),
            ("/src/My App (2)", "local/My-App--2"),
            ("/src/.dotfiles", "local/dotfiles"),
            ("/src/café.d", "local/caf-.d"),
            ("/src/日本", "local/repository"),
            ("/", "local/repository"),
        ];
        for (path, name) in names {
            assert_eq!(base_name(Path::new(path)), name);
            name.parse::<agents_domain::QualifiedName>().unwrap();
        }
        let long = base_name(Path::new(&"x".repeat(300)));
        long.parse::<agents_domain::QualifiedName>().unwrap();
    }

    #[test]
    fn a_name_that_is_taken_gets_a_number() {
        let taken = ["local/a".to_owned(), "local/a-2".to_owned()];
        assert_eq!(free("local/a", &taken), "local/a-3");
        assert_eq!(free("local/b", &taken), "local/b");
    }

    #[test]
    fn the_action_loads_under_the_name_it_is_looked_for() {
        let loaded = agents_config::load_action(ACTION, "fix-diagnostics.yaml").unwrap();
        assert_eq!(loaded.value.name.to_string(), ACTION_NAME);
        assert_eq!(loaded.value.strategy_actor.to_string(), ACTOR);
        assert!(loaded.hints.is_empty(), "{:?}", loaded.hints);
        assert_eq!(ACTION.matches(ACTION_NAME).count(), 1);
    }
}
