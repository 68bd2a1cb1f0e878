//! Running validations: which apply to a plan, and what one says about a sandbox.

mod code;
mod command;
pub(crate) mod diagnostics;
mod parse;
mod syntax;

use std::collections::BTreeMap;
use std::path::Path;

use agents_domain::changes::ChangeKind;
use agents_domain::diagnostics::Severity;
use agents_domain::ids::{PlanId, ResourceId};
use agents_domain::invariant;
use agents_domain::plan::{Plan, SandboxRef};
use agents_domain::ports::actor::KnownValidation;
use agents_domain::ports::language_servers::{FileEventKind, LanguageWorkspace};
use agents_domain::validation::{
    Attachment, BuiltIn, Mode, ValidationDefinition, ValidationSource, Verdict, applicable, demanded,
};
use agents_domain::{Error, Result};
use agents_sandbox::{ChangedPath, Repository};
use serde_json::{Map, Value};

use crate::operations::validation::definition;
use crate::process::confine::Reach;
use crate::process::environment;
use crate::sandboxes::{OpenSandbox, commit_id, sandbox_error};
use crate::surroundings::find_program;
use crate::{Engine, Surroundings};

pub(crate) use code::wrapped_tool;
pub(crate) use diagnostics::Survey;

/// What the language servers said before the first edit, by resource.
pub(crate) type Baseline = BTreeMap<ResourceId, Survey>;

/// A validation a plan is to run.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub attachment: Attachment,
    /// `None` when it is not registered any more.
    pub definition: Option<ValidationDefinition>,
}

impl Task {
    pub fn mode(&self) -> Mode {
        self.definition.as_ref().map_or(Mode::Required, |d| d.validation.mode)
    }

    fn built_in(&self) -> Option<BuiltIn> {
        self.definition.as_ref().and_then(|d| d.builtin)
    }

    /// It compares with what the language servers said before the first edit.
    pub fn needs_baseline(&self) -> bool {
        self.built_in() == Some(BuiltIn::NoNewDiagnostics)
    }

    /// The arguments of the attachment, over the defaults of the schema.
    fn args(&self) -> Map<String, Value> {
        let mut args = Map::new();
        for (name, schema) in self.definition.iter().flat_map(ValidationDefinition::parameters) {
            if let Some(default) = schema.get("default") {
                args.insert(name, default.clone());
            }
        }
        args.extend(self.attachment.args.clone());
        args
    }
}

/// The validations of a plan, in the order they are run and shown.
pub(crate) fn tasks(engine: &Engine, plan: &Plan) -> Result<Vec<Task>> {
    engine.view(|r| {
        let mut plans: Vec<PlanId> = vec![plan.plan_id];
        let mut above = plan.parent_plan_id;
        while let Some(id) = above.filter(|id| !plans.contains(id)) {
            plans.push(id);
            above = r.plan(id)?.and_then(|parent| parent.parent_plan_id);
        }
        let attachments = r.attachments()?;
        let attached = applicable(&attachments, &plan.resources, &plan.projects, &plans);
        let mut tasks = Vec::new();
        for attachment in &attached {
            let definition = definition(r, &attachment.validation)?;
            tasks.push(Task { attachment: (*attachment).clone(), definition });
        }
        let enforced = invariant::enforced(&r.decisions(plan.plan_id)?);
        for attachment in demanded(&enforced, plan, &attached) {
            // One that is not registered cannot be run; that it was not is what the invariant is judged by.
            let Some(mut definition) = definition(r, &attachment.validation)? else { continue };
            definition.validation.mode = Mode::Required;
            tasks.push(Task { attachment, definition: Some(definition) });
        }
        Ok(tasks)
    })
}

/// The validations of a plan as its actors are told of them.
pub(crate) fn known(engine: &Engine, plan: &Plan) -> Result<Vec<KnownValidation>> {
    let known = |task: Task| KnownValidation {
        mode: task.mode(),
        description: task.definition.and_then(|d| d.description),
        validation: task.attachment.validation,
        resource_id: task.attachment.resource_id,
    };
    Ok(tasks(engine, plan)?.into_iter().map(known).collect())
}

/// The program of a validation's command, when it is not where it would be looked for.
pub(crate) fn missing_program<'d>(
    definition: &'d ValidationDefinition,
    surroundings: &dyn Surroundings,
) -> Option<&'d str> {
    let word = definition.command.as_ref()?.first()?;
    // One of the repository, or one that is put together or looked for elsewhere, is seen when it is run.
    if word.contains('/') || word.contains("{{") || word.contains("{%") || definition.env.contains_key("PATH")
    {
        return None;
    }
    let path = surroundings.variable("PATH").unwrap_or_else(|| environment::DEFAULT_PATH.to_owned());
    find_program(word, &path).is_none().then_some(word)
}

/// What a validation looks at.
pub(crate) struct Place<'a> {
    pub sandbox: &'a OpenSandbox,
    pub state: &'a SandboxRef,
    pub languages: &'a dyn LanguageWorkspace,
    pub baseline: Option<&'a Survey>,
    pub surroundings: &'a dyn Surroundings,
    /// Where our own data are, which no validation writes.
    pub data_dir: &'a Path,
    pub engine: &'a Engine,
}

impl Place<'_> {
    fn changed(&self) -> Result<(Repository, Vec<ChangedPath>)> {
        let repository = Repository::reopen(self.state.place()).map_err(sandbox_error)?;
        let (from, to) = (commit_id(&self.state.base_commit)?, commit_id(&self.state.commit)?);
        let changed = agents_sandbox::changed_paths(&repository, &from, &to).map_err(sandbox_error)?;
        Ok((repository, changed))
    }
}

/// Runs a validation; whatever goes wrong is part of what it says.
pub(crate) async fn run(task: &Task, place: &Place<'_>) -> Verdict {
    let name = &task.attachment.validation;
    let Some(definition) = &task.definition else {
        return Verdict::broken(format!(
            "validation {name} is not registered any more; detach it: agents validation detach {}",
            task.attachment.attachment_id
        ));
    };
    if let Some(why) = definition.cannot_run() {
        return Verdict::broken(why);
    }
    let args = task.args();
    match definition.source {
        ValidationSource::Custom => return code::custom(definition, &args, place).await,
        ValidationSource::Wrapped => return code::wrapped(definition, &args, place).await,
        _ => {}
    }
    let ran = match definition.builtin.unwrap_or(BuiltIn::Command) {
        BuiltIn::Command => {
            let bounds = place.sandbox.bounds(Reach::Machine, place.data_dir);
            Ok(command::run(definition, &args, &bounds, place.surroundings).await)
        }
        BuiltIn::NoNewDiagnostics => no_new_diagnostics(definition, &args, place).await,
        BuiltIn::Syntax => syntax(place),
    };
    ran.unwrap_or_else(|error: Error| Verdict::broken(error.message))
}

fn syntax(place: &Place<'_>) -> Result<Verdict> {
    let (repository, changed) = place.changed()?;
    let base = commit_id(&place.state.base_commit)?;
    let mut files = Vec::new();
    let old = |change: &ChangedPath| change.old_path.as_ref().unwrap_or(&change.path).clone();
    let before = repository.files_at(&base, &changed.iter().map(old).collect::<Vec<_>>());
    let before = before.map_err(sandbox_error)?;
    for change in changed.into_iter().filter(|c| c.kind != ChangeKind::Deleted) {
        files.push(syntax::Changed {
            before: before.get(&old(&change)).map(|file| file.bytes.clone()),
            after: place.sandbox.read(&change.path).ok(),
            path: change.path,
        });
    }
    Ok(syntax::run(&files))
}

async fn no_new_diagnostics(
    definition: &ValidationDefinition,
    args: &Map<String, Value>,
    place: &Place<'_>,
) -> Result<Verdict> {
    let asked = args.get("severity").and_then(|word| serde_json::from_value(word.clone()).ok());
    let least = definition.severity.or(asked).unwrap_or(Severity::Warning);
    let (_, changed) = place.changed()?;
    let mut events = Vec::new();
    for change in &changed {
        events.extend(change.old_path.iter().map(|old| (old.clone(), FileEventKind::Deleted)));
        let kind = match change.kind {
            ChangeKind::Added | ChangeKind::Renamed => FileEventKind::Created,
            ChangeKind::Modified => FileEventKind::Changed,
            ChangeKind::Deleted => FileEventKind::Deleted,
        };
        events.push((change.path.clone(), kind));
    }
    diagnostics::tell_changes(place.languages, &events).await;
    let paths: Vec<String> = changed.into_iter().map(|change| change.path).collect();
    let files = place.sandbox.files()?.into_iter().map(|file| file.path).collect();
    let now = diagnostics::survey(place.languages, files, &paths).await;
    Ok(diagnostics::compare(place.baseline, &now, least, &paths))
}
