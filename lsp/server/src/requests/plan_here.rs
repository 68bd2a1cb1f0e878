//! Code actions that begin a plan at a place: to fix a diagnostic of any server, or by an action that takes files; and that
//! take a plan back to the checkpoint of the decision behind a line.

use std::collections::HashSet;

use agents_config::Registry;
use agents_domain::action::{ActionArgument, ArgumentType};
use agents_engine::operations::plan::CheckpointView;
use serde_json::{Map, Value, json};
use tower_lsp::lsp_types::{CodeActionContext, CodeActionTriggerKind, Command, Diagnostic, NumberOrString};

use super::code_lens::command;
use super::diagnostic::SOURCE;
use super::provenance::Provenance;
use super::{Shared, brief};
use crate::watch::world::{FileKey, World};

/// The action that fixes what language servers report.
const FIX: &str = "builtin/fix-diagnostics";
/// Actions that are offered at a place.
const ACTIONS: usize = 10;

impl Shared {
    /// One command per diagnostic of other servers, and, when a person asks what can be done, one per action that takes
    /// a place.
    pub fn plans_here(
        &self,
        world: &World,
        file: &FileKey,
        context: &CodeActionContext,
        line: u32,
    ) -> Vec<Command> {
        let Some(project) = project_of(world, file) else { return Vec::new() };
        let mut offered = Vec::new();
        // Ours ask language servers; without one they would do nothing.
        let served = !world.names.all(Registry::LanguageServer).is_empty();
        if served {
            let foreign = context.diagnostics.iter().filter(|d| d.source.as_deref() != Some(SOURCE));
            let mut seen = HashSet::new();
            for diagnostic in foreign.filter(|d| seen.insert((rule(d), d.message.clone()))) {
                offered.push(fix(project, file, diagnostic));
            }
        }
        if context.trigger_kind != Some(CodeActionTriggerKind::AUTOMATIC) {
            let uses = world
                .names
                .all(Registry::Action)
                .iter()
                .filter(|action| action.name != FIX && (served || !action.name.starts_with("builtin/")));
            let uses = uses.filter_map(|action| {
                let arguments = place_of(&action.arguments, &file.1, line)?;
                let title = format!("Plan: use {} here", action.name);
                let params = json!({ "action": action.name, "projects": [project], "arguments": arguments });
                Some(command(&title, "agents.plan.use", params))
            });
            offered.extend(uses.take(ACTIONS));
        }
        offered
    }

    /// One command per decision behind the lines whose plan can go back to where it had just been carried out.
    pub async fn rollbacks(&self, world: &World, found: &Provenance, first: u32, last: u32) -> Vec<Command> {
        let mut offered = Vec::new();
        let mut seen = HashSet::new();
        for place in found.within(first, last) {
            let (plan, decision) = (place.segment.plan_id, place.segment.decision_id);
            let rests = world.plans.get(&plan).is_some_and(|open| !open.is_running());
            if !rests || !seen.insert(decision) {
                continue;
            }
            let checkpoints = self.checkpoints(plan).await;
            let Some(checkpoint) = left_by(&checkpoints, &decision.to_string()) else { continue };
            let title = format!("Roll back to here: after \"{}\"", brief(&place.segment.chosen, 60));
            let params = json!({ "plan": plan, "checkpoint": checkpoint.id });
            offered.push(command(&title, "agents.plan.rollback", params));
        }
        offered
    }
}

/// The first project with the file's resource.
fn project_of<'w>(world: &'w World, (resource, _): &FileKey) -> Option<&'w String> {
    world
        .registry
        .projects
        .iter()
        .filter(|(_, resources)| resources.contains(resource))
        .map(|(name, _)| name)
        .min()
}

fn fix(project: &str, (_, path): &FileKey, diagnostic: &Diagnostic) -> Command {
    let rule = rule(diagnostic);
    let mut arguments = json!({ "paths": [pattern(path)] });
    let what = match &rule {
        Some(rule) => {
            arguments["rules"] = json!([rule]);
            format!("{rule} in this file")
        }
        None => brief(&diagnostic.message, 60),
    };
    let params = json!({ "action": FIX, "projects": [project], "arguments": arguments });
    command(&format!("Plan: fix this diagnostic ({what})"), "agents.plan.use", params)
}

fn rule(diagnostic: &Diagnostic) -> Option<String> {
    match diagnostic.code.as_ref()? {
        NumberOrString::String(code) => Some(code.clone()).filter(|code| !code.is_empty()),
        NumberOrString::Number(code) => Some(code.to_string()),
    }
}

/// A pattern as in `.gitignore` that only one file has.
fn pattern(path: &str) -> String {
    let mut pattern = String::from("/");
    for c in path.chars() {
        if matches!(c, '\\' | '*' | '?' | '[' | ']' | '{' | '}' | '!' | '#' | ' ') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// The values of an action's arguments that a place gives; `None` when it takes no place, or needs more than one gives.
fn place_of(arguments: &[ActionArgument], path: &str, line: u32) -> Option<Map<String, Value>> {
    let mut values = Map::new();
    let mut placed = false;
    for argument in arguments {
        let value = match (argument.name.as_str(), argument.argument_type) {
            ("paths", ArgumentType::List) => json!([pattern(path)]),
            ("files", ArgumentType::List) => json!([path]),
            ("path" | "file", ArgumentType::String) => json!(path),
            ("line", ArgumentType::Integer) => json!(line.saturating_add(1)),
            _ if argument.required && argument.default.is_none() => return None,
            _ => continue,
        };
        placed |= argument.name != "line";
        values.insert(argument.name.clone(), value);
    }
    placed.then_some(values)
}

/// The last checkpoint of a decision, unless nothing came after it.
fn left_by<'c>(checkpoints: &'c [CheckpointView], decision: &str) -> Option<&'c CheckpointView> {
    let (last, earlier) = checkpoints.split_last()?;
    let of_it = |c: &&CheckpointView| c.decision_id.is_some_and(|id| id.to_string() == decision);
    (!of_it(&last)).then(|| earlier.iter().rfind(of_it)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argument(name: &str, kind: &str, required: bool) -> ActionArgument {
        serde_json::from_value(json!({ "name": name, "type": kind, "required": required })).unwrap()
    }

    #[test]
    fn an_action_is_offered_when_a_place_is_all_it_needs() {
        let place = |arguments: &[ActionArgument]| place_of(arguments, "src/a b.py", 4).map(Value::from);
        let file = argument("file", "string", true);
        assert_eq!(
            place(&[file.clone(), argument("line", "integer", false), argument("note", "string", false)]),
            Some(json!({ "file": "src/a b.py", "line": 5 }))
        );
        assert_eq!(place(&[argument("paths", "list", false)]), Some(json!({ "paths": ["/src/a\\ b.py"] })));
        assert_eq!(place(&[file, argument("symbol", "string", true)]), None);
        assert_eq!(place(&[argument("line", "integer", false)]), None);
        assert_eq!(place(&[]), None);
    }
}
