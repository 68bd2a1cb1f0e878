//! `textDocument/codeLens`: the decision over each run of lines, the plan over the file, and what waits for an answer.

use std::sync::Arc;

use agents_domain::ids::PlanId;
use agents_domain::plan::State;
use serde_json::{Value, json};
use tower_lsp::lsp_types::{CodeLens, CodeLensParams, Command, Position, Range};

use super::command::ANSWER;
use super::inlay_hint::verdict;
use super::links;
use super::questions::asked;
use super::{Shared, brief};
use crate::ClientInfo;
use crate::documents::Document;
use crate::watch::world::OpenPlan;

impl Shared {
    pub async fn code_lens(&self, params: CodeLensParams) -> Option<Vec<CodeLens>> {
        let (snapshot, document) = self.document(&params.text_document.uri)?;
        if let Some(lenses) = self.page_lenses(snapshot.client(), &document).await {
            return Some(lenses);
        }
        let of_entity = self.entity_lenses(&document).await;
        match (self.plan_lenses_of(snapshot.client(), &document).await, of_entity) {
            (Some(lenses), more) => Some(lenses.into_iter().chain(more.into_iter().flatten()).collect()),
            (None, of_entity) => of_entity,
        }
    }

    async fn plan_lenses_of(&self, client: &ClientInfo, document: &Arc<Document>) -> Option<Vec<CodeLens>> {
        let world = self.world().await;
        let file = self.file_of(&world, document).await?;
        let found = self.provenance(document).await;
        let mut lenses = Vec::new();
        for plan in found.iter().flat_map(|found| found.proposing()) {
            if let Some(open) = world.plans.get(&plan) {
                let checks = world.checks.get(&plan).map(|checks| (checks.passed, checks.total));
                let name = links::plan_name(client, plan, &open.action);
                self.plan_lenses(plan, &name, open, checks, &mut lenses).await;
            }
        }
        let saved = self.saved_text(&world, &file).await;
        for question in asked(&world, &file, document.text(), saved.as_deref()) {
            let title = format!("decision waits: {} - answer…", brief(&question.decision.question, 60));
            let params = json!({ "decision": question.decision.decision_id });
            lenses.push(lens(question.range.start.line, command(&title, ANSWER, params)));
        }
        for place in found.iter().flat_map(|found| &found.places) {
            let (chosen, confidence) = verdict(place);
            let confidence = confidence.map(|confidence| format!(" - {confidence:.2}")).unwrap_or_default();
            let title = format!("decision{confidence} - {}", brief(chosen, 60));
            let (decision, plan) = (place.segment.decision_id, place.segment.plan_id);
            let explain = command(&title, "agents.plan.explain", json!({ "decision": decision }));
            lenses.push(lens(place.first, explain));
            if client.is_interactive() {
                let correct = links::correction("correct…", place, &world, "revert");
                lenses.extend(correct.map(|correct| lens(place.first, correct)));
            }
            lenses.push(lens(place.first, command("diff", "agents.plan.diff", json!({ "plan": plan }))));
        }
        Some(lenses)
    }

    /// `checks`: how many of the plan's validations passed, and of how many.
    async fn plan_lenses(
        &self,
        plan: PlanId,
        name: &str,
        open: &OpenPlan,
        checks: Option<(usize, usize)>,
        lenses: &mut Vec<CodeLens>,
    ) {
        let params = json!({ "plan": plan });
        let mut add = |title: String, id: &str| lenses.push(lens(0, command(&title, id, params.clone())));
        if open.can_be_applied() {
            let totals = self.totals(plan).await.map(|totals| format!(" {totals}")).unwrap_or_default();
            add(format!("plan {name}{totals} - review"), "agents.plan.diff");
            let title = match checks {
                Some((passed, total)) => format!("Apply plan (validated {passed}/{total})"),
                None => "apply".to_owned(),
            };
            add(title, "agents.plan.apply");
        } else if matches!(open.state, State::Errored | State::Constrained) {
            let why = open.failure.as_deref().unwrap_or_default();
            add(format!("plan {name} {}: {}", open.state, brief(why, 60)), "agents.plan.errors");
        } else if let Some(waits) = &open.awaiting {
            add(format!("plan {name} waits: {}", brief(&waits.question, 60)), "agents.plan.status");
        } else {
            add(format!("plan {name}: {} is {}", open.phase, open.state), "agents.plan.status");
        }
    }
}

/// A command for a person: its result is shown to them by the server unless the client takes the command over.
pub(crate) fn command(title: &str, id: &str, params: Value) -> Command {
    let arguments = Some(vec![params, json!({ "show": true })]);
    Command { title: title.to_owned(), command: id.to_owned(), arguments }
}

/// A lens over a line.
pub(crate) fn lens(line: u32, command: Command) -> CodeLens {
    let at = Position::new(line, 0);
    CodeLens { range: Range::new(at, at), command: Some(command), data: None }
}
