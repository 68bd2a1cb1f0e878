//! Lenses over the name of an entity file: register it, use it, see its plans.

use agents_config::Registry;
use agents_config::editing::mentions;
use serde_json::json;
use tower_lsp::lsp_types::{CodeLens, Command, Range};

use super::{Entity, range};
use crate::documents::Document;
use crate::requests::Shared;
use crate::requests::code_lens::command;

/// Projects that get a lens of their own; with more, a person names one.
const PROJECTS: usize = 3;

impl Shared {
    /// `None` for other documents.
    pub async fn entity_lenses(&self, document: &Document) -> Option<Vec<CodeLens>> {
        let entity = Entity::of(document)?;
        let name = mentions(&entity.content).into_iter().find(|mention| mention.defines)?;
        let at = range(document.text(), &name.bytes);
        let world = self.world().await;
        let mut lenses = Vec::new();
        let mut add = |command: Command| lenses.push(lens(at, command));
        let known = world.names.find(name.registry, &name.name);
        let same = known.and_then(|entry| entry.file.as_ref()).map(|(_, text)| *text == entity.content);
        // An action that is registered keeps its text: its plans were made with it.
        let title = match same {
            None if known.is_none() => Some("Register"),
            Some(false) if name.registry != Registry::Action => Some("Register again: the file has changed"),
            _ => None,
        };
        // What no operation registers has no lens that would be refused.
        if let Some(title) = title.filter(|_| super::register::operation(entity.kind).is_some()) {
            add(command(title, super::register::REGISTER, json!({ "uri": document.uri().as_str() })));
        }
        if name.registry == Registry::Action && known.is_some() {
            if same == Some(false) {
                let shown = json!({ "name": name.name });
                add(command("registered with another text - show", "agents.action.show", shown));
            }
            let mut projects: Vec<&String> = world.registry.projects.keys().collect();
            projects.sort();
            for project in projects.into_iter().take(PROJECTS) {
                let params = json!({ "action": name.name, "projects": [project] });
                add(command(&format!("Use on {project}"), "agents.plan.use", params));
            }
            let open = world.plans.values().filter(|plan| plan.action == name.name).count();
            if open > 0 {
                let plans = if open == 1 { "1 open plan".to_owned() } else { format!("{open} open plans") };
                add(command(&plans, "agents.plan.list", json!({ "action": name.name })));
            }
        }
        if name.registry == Registry::LanguageServer && known.is_some() {
            add(command("Check", "agents.lsp.check", json!({ "name": name.name })));
        }
        Some(lenses)
    }
}

fn lens(range: Range, command: Command) -> CodeLens {
    CodeLens { range, command: Some(command), data: None }
}
