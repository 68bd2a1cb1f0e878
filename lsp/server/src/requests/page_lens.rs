//! Lenses on a plan's own page: what the plan can do now over its title, and what can be done about each decision and
//! checkpoint over its line.

use std::collections::HashMap;

use agents_domain::ids::PlanId;
use agents_domain::plan::machine::Verb;
use agents_engine::operations::plan::{Status, Tree, TreeNode};
use serde_json::json;
use tower_lsp::lsp_types::{CodeLens, Command};

use super::Shared;
use super::code_lens::{command, lens};
use super::command::ANSWER;
use super::content::Subject;
use super::document_link::ids;
use crate::ClientInfo;
use crate::documents::Document;

impl Shared {
    /// `None` in other documents than the page of a plan.
    pub async fn page_lenses(&self, client: &ClientInfo, document: &Document) -> Option<Vec<CodeLens>> {
        let Ok(Subject::Plan(plan)) = Subject::parse(document.uri()) else { return None };
        let asked = self.blocking(move |engine| {
            let status = engine.call(Status { plan: plan.to_string() })?;
            let tree = engine.call(Tree { plan: plan.to_string(), show_superseded: false })?.tree;
            Ok((status, tree))
        });
        let (status, tree) = asked.await.ok()?;
        let verbs: Vec<Verb> = status.allowed_actions.iter().map(|allowed| allowed.verb).collect();
        let mut lenses: Vec<CodeLens> = verbs
            .iter()
            .filter_map(|verb| of_verb(*verb, plan, client))
            .map(|command| lens(0, command))
            .collect();
        let mut nodes: HashMap<String, bool> = HashMap::new();
        let mut rest: Vec<TreeNode> = tree.into_iter().collect();
        while let Some(node) = rest.pop() {
            let pending = node.status == agents_domain::decision::DecisionStatus::Pending;
            nodes.insert(node.decision_id.to_string(), pending);
            rest.extend(node.children);
        }
        let checkpoints = self.checkpoints(plan).await;
        let text = document.text();
        for (at, line) in (0u32..).zip((0..text.line_count()).filter_map(|line| text.line(line))) {
            let Some(id) = ids(&line).next().map(|bytes| &line[bytes]) else { continue };
            if let Some(pending) = nodes.remove(id) {
                lenses.push(lens(at, command("explain", "agents.plan.explain", json!({ "decision": id }))));
                if pending {
                    lenses.push(lens(at, command("answer…", ANSWER, json!({ "decision": id }))));
                } else if client.is_interactive() && verbs.contains(&Verb::Correct) {
                    let params = json!({ "decision": id, "mode": "revert" });
                    lenses.push(lens(at, command("correct…", "agents.plan.correct", params)));
                }
            } else if verbs.contains(&Verb::Rollback) {
                // What the last one holds is how things stand.
                let earlier = checkpoints.split_last().map_or(&[][..], |(_, earlier)| earlier);
                let checkpoint = earlier.iter().find(|checkpoint| checkpoint.id.ends_with(id));
                let params = |id: &str| json!({ "plan": plan, "checkpoint": id });
                lenses.extend(checkpoint.map(|checkpoint| {
                    lens(at, command("roll back to here", "agents.plan.rollback", params(&checkpoint.id)))
                }));
            }
        }
        Some(lenses)
    }
}

fn of_verb(verb: Verb, plan: PlanId, client: &ClientInfo) -> Option<Command> {
    let with = |title: &str, id: &str| Some(command(title, id, json!({ "plan": plan })));
    match verb {
        Verb::Execute => with("execute", "agents.plan.execute"),
        Verb::Apply => with("apply", "agents.plan.apply"),
        // One click gives a plan up for good only where a person is asked again.
        Verb::Cancel if client.is_interactive() => with("cancel…", "agents.plan.cancel"),
        Verb::Cancel | Verb::Prompt | Verb::Correct | Verb::Rollback => None,
    }
}
