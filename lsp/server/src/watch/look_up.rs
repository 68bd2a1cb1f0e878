//! What is read of plans where no event says it in full: when a session begins, and when something went wrong.

use std::sync::Arc;

use agents_domain::Result;
use agents_domain::ids::PlanId;
use agents_domain::plan::State;
use agents_domain::validation::Mode;
use agents_engine::Engine;
use agents_engine::operations::events::After;
use agents_engine::operations::plan::{Diff, Errors, Status, StatusOutput};
use agents_engine::operations::resource;

use super::BATCH;
use super::world::{Changes, Checks, FailedAt, OpenPlan, Registry, Trouble, Waits, World};

pub(super) fn is_trouble(state: State) -> bool {
    matches!(state, State::Errored | State::Constrained)
}

pub(super) fn registry(engine: &Engine) -> Result<Registry> {
    let mut registry = Registry::default();
    for resource in engine.call(resource::List::default())?.resources {
        for project in resource.projects {
            registry.projects.entry(project).or_default().push(resource.id);
        }
        registry.roots.extend(resource.location.map(|location| (resource.id, location.into())));
    }
    Ok(registry)
}

/// Reads a plan that no event described in full.
pub(super) fn look_up(engine: &Engine, world: &mut World, plan: PlanId, changes: &mut Changes) {
    let status = match engine.call(Status { plan: plan.to_string() }) {
        Ok(status) => status,
        Err(error) => return tracing::warn!(%plan, %error, "a plan is left out"),
    };
    take_checks(world, plan, &status);
    let open = Arc::new(OpenPlan {
        action: status.action,
        project: status.project,
        phase: status.phase,
        state: status.state,
        awaiting: status.awaiting.as_ref().map(Waits::from),
        failure: status.error.map(|error| error.message),
    });
    changes.plans.insert(plan);
    changes.questions = true;
    if matches!(open.state, State::Applied | State::Cancelled) {
        changes.ended.insert(plan, open);
    } else {
        world.plans.insert(plan, open);
    }
}

/// Takes in what the validations of a plan said; those of an ended plan are no longer shown.
pub(super) fn take_checks(world: &mut World, plan: PlanId, status: &StatusOutput) {
    let all = &status.validations.validation_summary;
    if all.is_empty() || matches!(status.state, State::Applied | State::Cancelled) {
        world.checks.remove(&plan);
        return;
    }
    let failed = all.iter().filter(|validation| !validation.passed);
    let failures = failed.flat_map(|validation| {
        validation.findings.iter().filter_map(|finding| {
            Some(FailedAt {
                file: (validation.attachment_resource, finding.file.clone()?),
                line: finding.line.unwrap_or(1).saturating_sub(1),
                message: match &finding.code {
                    Some(code) => format!("{code}: {}", finding.message),
                    None => finding.message.clone(),
                },
                validation: validation.validation.clone(),
                required: validation.mode == Mode::Required,
            })
        })
    });
    let checks = Checks {
        passed: all.iter().filter(|validation| validation.passed).count(),
        total: all.len(),
        failures: failures.collect(),
    };
    world.checks.insert(plan, Arc::new(checks));
}

/// Reads why a plan failed, and which of its files the reason names.
pub(super) fn find_trouble(engine: &Engine, world: &mut World, plan: PlanId) {
    let id = plan.to_string();
    let Some(open) = world.plans.get_mut(&plan) else { return };
    let message = match engine.call(Errors { plan: id.clone() }) {
        Ok(errors) => errors.error_message.unwrap_or_default(),
        Err(error) => return tracing::warn!(%plan, %error, "why a plan failed is not known"),
    };
    if open.failure.as_ref() != Some(&message) {
        Arc::make_mut(open).failure = Some(message.clone());
    }
    let state = open.state;
    let changed = engine.call(Diff { plan: id }).map(|diff| diff.files).unwrap_or_default();
    let named = changed.into_iter().filter(|file| names(&message, &file.path));
    let files: Vec<_> = named.map(|file| (file.resource_id, file.path)).collect();
    if !files.is_empty() {
        world.troubles.insert(plan, Arc::new(Trouble { state, message, files }));
    }
}

/// Reads from a plan's events which invariants it broke, or would have.
pub(super) fn recall_violations(engine: &Engine, world: &mut World, plan: PlanId) -> Result<()> {
    let mut after = 0;
    loop {
        let page = After { sequence: Some(after), plan: Some(plan.to_string()), limit: Some(BATCH) };
        let events = engine.call(page)?.events;
        events.iter().for_each(|event| world.note_violation(plan, event));
        match events.last() {
            Some(last) if events.len() == BATCH => after = last.sequence,
            _ => return Ok(()),
        }
    }
}

/// Whether a message names a path: the path, and not a longer one that holds it.
fn names(message: &str, path: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || matches!(c, '/' | '_' | '-');
    message.match_indices(path).any(|(at, _)| {
        let before = message[..at].chars().next_back();
        let mut after = message[at + path.len()..].chars();
        let next = after.next();
        let longer = next.is_some_and(part) || (next == Some('.') && after.next().is_some_and(part));
        !longer && !before.is_some_and(|c| part(c) || c == '.')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_a_path_only_as_a_whole() {
        for message in ["conflict in a.txt", "a.txt, b", "`a.txt`", "in a.txt."] {
            assert!(names(message, "a.txt"), "{message}");
        }
        for message in ["data.txt", "x/a.txt", "a.txt.orig", "a.txt2", ""] {
            assert!(!names(message, "a.txt"), "{message}");
        }
    }
}
