//! The actions that come with the program: there without being registered, under names that nobody else can use.

use std::sync::LazyLock;

use agents_config::load_action;
use agents_domain::action::Action;
use agents_domain::ports::store::{Reader, StoreResult};
use agents_domain::{Error, QualifiedName, Result, Timestamp};

/// Takes an applied plan back.
pub(crate) const REVERT_PLAN: &str = "builtin/revert-plan";

/// Their files, as a person would write them.
const FILES: &[(&str, &str)] = &[
    ("builtin/fix-diagnostics", include_str!("fix-diagnostics.yaml")),
    ("builtin/format", include_str!("format.yaml")),
    ("builtin/organize-imports", include_str!("organize-imports.yaml")),
    ("builtin/rename-symbol", include_str!("rename-symbol.yaml")),
    (REVERT_PLAN, include_str!("revert-plan.yaml")),
];

static ALL: LazyLock<Vec<Action>> =
    LazyLock::new(|| FILES.iter().filter_map(|(_, text)| load(text)).collect());

fn load(text: &str) -> Option<Action> {
    // They are checked by a test.
    let definition = load_action(text, "built in").ok()?.value;
    Some(Action {
        definition,
        config_path: "built in".to_owned(),
        source: text.to_owned(),
        created_at: Timestamp::from_micros(0),
        updated_at: Timestamp::from_micros(0),
    })
}

/// All of them, by name.
pub(crate) fn actions() -> &'static [Action] {
    &ALL
}

/// An action that is registered or comes with the program.
pub(crate) fn action(r: &dyn Reader, name: &QualifiedName) -> StoreResult<Option<Action>> {
    let registered = r.action(name)?;
    Ok(registered.or_else(|| ALL.iter().find(|action| action.definition.name == *name).cloned()))
}

/// The names of all actions, for what may have been meant.
pub(crate) fn names(r: &dyn Reader) -> StoreResult<Vec<String>> {
    let registered = r.actions()?;
    Ok(registered.iter().chain(ALL.iter()).map(|action| action.definition.name.to_string()).collect())
}

/// Refuses to change what comes with the program.
pub(crate) fn check_not_built_in(name: &QualifiedName) -> Result<()> {
    match ALL.iter().any(|action| action.definition.name == *name) {
        true => Err(Error::validation(format!("action `{name}` comes with the program and stays as it is"))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_action_loads_under_its_name() {
        let names: Vec<String> = actions().iter().map(|a| a.definition.name.to_string()).collect();
        assert_eq!(names, FILES.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    }
}
