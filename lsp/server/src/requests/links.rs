//! Commands for clients that act on links and ask for what a command lacks (`experimental.cleveragents.interactive`).

use agents_domain::ids::PlanId;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tower_lsp::lsp_types::Command;

use super::code_lens::command;
use super::page::{Page, when};
use super::provenance::Place;
use crate::ClientInfo;
use crate::watch::world::{World, short};

/// What a plan is called: where links lead to it, by its action; else by the beginning of its id, which commands take.
pub(crate) fn plan_name(client: &ClientInfo, plan: PlanId, action: &str) -> String {
    match action.rsplit('/').next() {
        Some(name) if client.is_interactive() => name.to_owned(),
        _ => short(plan),
    }
}

/// What a person can do about the decision behind a place.
pub(crate) fn below(page: &mut Page, place: &Place, world: &World) {
    let segment = &place.segment;
    page.words(&format!("A plan of `{}`, {} UTC.", segment.action, when(place)));
    let mut commands =
        vec![command("Explain", "agents.plan.explain", json!({ "decision": segment.decision_id }))];
    commands.extend(correction("Correct…", place, world, "revert"));
    commands.push(command("Show diff", "agents.plan.diff", json!({ "plan": segment.plan_id })));
    let links: Vec<(String, String)> = commands.into_iter().map(link).collect();
    page.links(&links);
}

/// A correction of the choice behind a place, in words that the client asks for; while its plan can still be corrected.
pub(crate) fn correction(title: &str, place: &Place, world: &World, mode: &str) -> Option<Command> {
    let segment = &place.segment;
    world.plans.get(&segment.plan_id)?;
    let decision = segment.strategy.as_ref().map_or(segment.decision_id, |strategy| strategy.decision_id);
    Some(command(title, "agents.plan.correct", json!({ "decision": decision, "mode": mode })))
}

fn link(command: Command) -> (String, String) {
    let arguments = Value::from(command.arguments.unwrap_or_default()).to_string();
    let query = utf8_percent_encode(&arguments, NON_ALPHANUMERIC);
    (command.title, format!("command:{}?{query}", command.command))
}
