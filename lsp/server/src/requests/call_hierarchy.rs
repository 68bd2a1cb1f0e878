//! `textDocument/prepareCallHierarchy` on plans and decisions: what a decision came from, and what hangs on it, in the tree
//! and by what was decided from what.

use std::collections::BTreeSet;

use agents_domain::ids::{DecisionId, PlanId};
use agents_engine::Named;
use agents_engine::operations::plan::{Tree, TreeNode};
use serde_json::{Value, json};
use tower_lsp::lsp_types::{
    CallHierarchyIncomingCall, CallHierarchyItem, CallHierarchyOutgoingCall, Range, SymbolKind,
    TextDocumentPositionParams, Url,
};

use super::content::{SCHEME, Subject, plan_text};
use super::document_link::ids;
use super::lines::whole_lines;
use super::{Shared, brief};
use crate::documents::{DocumentUri, Text};

/// The decisions of a plan with their edges, and where each stands in the plan's page.
struct Graph {
    plan: PlanId,
    uri: Url,
    nodes: Vec<Node>,
}

struct Node {
    id: DecisionId,
    name: String,
    kind: String,
    confidence: Option<f64>,
    parent: Option<DecisionId>,
    depends_on: Vec<DecisionId>,
    range: Range,
}

impl Shared {
    pub async fn prepare_call_hierarchy(
        &self,
        at: TextDocumentPositionParams,
    ) -> Option<Vec<CallHierarchyItem>> {
        let (_, document) = self.document(&at.text_document.uri)?;
        let subject = Subject::parse(document.uri()).ok()?;
        let line = document.text().line(at.position.line as usize)?;
        let mut named: Vec<DecisionId> = ids(&line).filter_map(|bytes| line[bytes].parse().ok()).collect();
        if let Subject::Decision(decision) = subject {
            named.push(decision);
        }
        let first = named.first()?.to_string();
        let plan = match subject.plan() {
            Some(plan) => plan,
            None => match self.blocking(move |engine| engine.named(&first)).await.ok()?? {
                Named::Decision(_, plan) => plan,
                _ => return None,
            },
        };
        let graph = self.graph(plan).await?;
        let node = named.iter().find_map(|id| graph.node(*id))?;
        Some(vec![graph.item(node, None)])
    }

    /// What a decision was made under and from.
    pub async fn incoming_calls(&self, item: &CallHierarchyItem) -> Option<Vec<CallHierarchyIncomingCall>> {
        let (graph, id) = self.graph_of(item).await?;
        let node = graph.node(id)?;
        let before: BTreeSet<DecisionId> =
            node.parent.into_iter().chain(node.depends_on.iter().copied()).collect();
        let calls = before.into_iter().filter_map(|id| graph.node(id)).map(|from| {
            let how = relation(node.parent == Some(from.id), node.depends_on.contains(&from.id));
            CallHierarchyIncomingCall { from: graph.item(from, Some(how)), from_ranges: vec![node.range] }
        });
        Some(calls.collect())
    }

    /// What was made under a decision or from it, and falls with it.
    pub async fn outgoing_calls(&self, item: &CallHierarchyItem) -> Option<Vec<CallHierarchyOutgoingCall>> {
        let (graph, id) = self.graph_of(item).await?;
        let calls = graph.nodes.iter().filter_map(|to| {
            let (child, drawn) = (to.parent == Some(id), to.depends_on.contains(&id));
            let how = (child || drawn).then(|| relation(child, drawn))?;
            Some(CallHierarchyOutgoingCall { to: graph.item(to, Some(how)), from_ranges: vec![to.range] })
        });
        Some(calls.collect())
    }

    async fn graph_of(&self, item: &CallHierarchyItem) -> Option<(Graph, DecisionId)> {
        let data = item.data.as_ref()?;
        let id = |key: &str| data.get(key).and_then(Value::as_str);
        let (plan, decision) = (id("plan")?.parse().ok()?, id("decision")?.parse().ok()?);
        Some((self.graph(plan).await?, decision))
    }

    async fn graph(&self, plan: PlanId) -> Option<Graph> {
        let uri = DocumentUri::parse(&format!("{SCHEME}:/plan/{plan}")).ok()?;
        let snapshot = self.session.snapshot();
        let open = snapshot.document(&uri).map(|document| document.text().clone());
        let asked = self.blocking(move |engine| {
            let tree = engine.call(Tree { plan: plan.to_string(), show_superseded: false })?.tree;
            let page = match open {
                Some(_) => None,
                None => Some(plan_text(engine, plan)?),
            };
            Ok((tree, open, page))
        });
        let (tree, open, page) = asked.await.ok()?;
        let page = open.unwrap_or_else(|| snapshot.text(&page.unwrap_or_default()));
        let places = lines_of_ids(&page);
        let mut nodes = Vec::new();
        let mut rest: Vec<(Option<DecisionId>, TreeNode)> =
            tree.into_iter().map(|root| (None, root)).collect();
        while let Some((parent, node)) = rest.pop() {
            let line = places.iter().find(|(_, id)| *id == node.decision_id).map_or(0, |(line, _)| *line);
            rest.extend(node.children.into_iter().rev().map(|child| (Some(node.decision_id), child)));
            nodes.push(Node {
                id: node.decision_id,
                name: brief(&node.description, 120),
                kind: node.decision_type,
                confidence: node.confidence,
                parent,
                depends_on: node.depends_on,
                range: whole_lines(&page, line, line),
            });
        }
        Some(Graph { plan, uri: uri.to_url()?, nodes })
    }
}

fn lines_of_ids(page: &Text) -> Vec<(u32, DecisionId)> {
    let lines = (0u32..).zip((0..page.line_count()).map(|line| page.line(line).unwrap_or_default()));
    // Facts below the tree name decisions, too; the first place is the one in the tree.
    lines
        .flat_map(|(at, line)| {
            ids(&line).filter_map(|bytes| Some((at, line[bytes].parse().ok()?))).collect::<Vec<_>>()
        })
        .collect()
}

fn relation(in_tree: bool, drawn: bool) -> &'static str {
    match (in_tree, drawn) {
        (true, true) => "tree and influence",
        (true, false) => "tree",
        _ => "influence",
    }
}

impl Graph {
    fn node(&self, id: DecisionId) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == id)
    }

    fn item(&self, node: &Node, how: Option<&str>) -> CallHierarchyItem {
        let confidence = node.confidence.map(|confidence| format!(" {confidence:.2}"));
        let how = how.map(|how| format!(", {how}")).unwrap_or_default();
        CallHierarchyItem {
            name: node.name.clone(),
            kind: SymbolKind::EVENT,
            tags: None,
            detail: Some(format!("{}{}{how}", node.kind, confidence.unwrap_or_default())),
            uri: self.uri.clone(),
            range: node.range,
            selection_range: node.range,
            data: Some(json!({ "plan": self.plan, "decision": node.id })),
        }
    }
}
