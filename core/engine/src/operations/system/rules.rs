//! Checks of what plans are held to: validations whose program is missing, invariants that nothing can check.

use agents_domain::QualifiedName;
use agents_domain::invariant::{Invariant, Rule};
use agents_domain::validation::{ValidationDefinition, built_in};

use super::Check;
use crate::surroundings::find_program;
use crate::{Engine, Surroundings};

const DATABASE: &str = "See the check of the database";

/// One warning for each validation whose program is not on PATH; else how many there are.
pub(super) fn validations(engine: &Engine, surroundings: &dyn Surroundings) -> Vec<Check> {
    const NAME: &str = "Validations";
    let all = match engine.view(|r| r.validations()) {
        Ok(all) => all,
        Err(error) => return vec![Check::error(NAME, error.message, DATABASE)],
    };
    let missing = |definition: &ValidationDefinition| {
        let program = definition.command.as_ref()?.first()?;
        // A path is looked up in the sandbox, a placeholder is filled in by the attachment.
        if program.contains('/') || program.contains('{') {
            return None;
        }
        let own = definition.env.get("PATH").filter(|path| !path.contains("${"));
        let path = own.cloned().or_else(|| surroundings.variable("PATH")).unwrap_or_default();
        find_program(program, &path).is_none().then(|| {
            Check::warn(
                format!("Validation {}", definition.name),
                format!("`{program}` is not on PATH"),
                format!(
                    "Install `{program}`, or register where it is: agents validation add --update --config <FILE>"
                ),
            )
        })
    };
    let warnings: Vec<Check> = all.iter().filter_map(|v| missing(&v.definition)).collect();
    match (warnings.is_empty(), all.len()) {
        (false, _) => warnings,
        (true, 0) => vec![Check::ok(NAME, "none registered")],
        (true, count) => vec![Check::ok(NAME, format!("{count} registered"))],
    }
}

/// How many a machine enforces; a warning for one that asks for a validation that is not there.
pub(super) fn invariants(engine: &Engine) -> Check {
    const NAME: &str = "Invariants";
    let look = || -> agents_domain::Result<Check> {
        let all = engine.view(|r| r.invariants())?;
        for invariant in &all {
            if let Some(validation) = required(invariant)
                && built_in(&validation).is_none()
                && engine.view(|r| r.validation(&validation))?.is_none()
            {
                return Ok(Check::warn(
                    NAME,
                    format!("`{}`: there is no validation `{validation}`", invariant.text),
                    format!(
                        "agents validation add --config <FILE>, or agents invariant remove {}",
                        invariant.invariant_id
                    ),
                ));
            }
        }
        let by_actors = all.iter().filter(|invariant| invariant.check().is_none()).count();
        Ok(Check::ok(
            NAME,
            match (all.len(), by_actors) {
                (0, _) => "none".to_owned(),
                (count, 0) => format!("{count}, enforced by a machine"),
                (count, n) => format!("{count}, {n} of them only told to actors: no machine checks them"),
            },
        ))
    };
    look().unwrap_or_else(|error| Check::error(NAME, error.message, DATABASE))
}

fn required(invariant: &Invariant) -> Option<QualifiedName> {
    match invariant.check()? {
        check if check.waived => None,
        check => match check.rule {
            Rule::RequiredValidation { validation } => validation.parse().ok(),
            _ => None,
        },
    }
}
