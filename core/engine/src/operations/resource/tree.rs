//! What hangs below a resource.

use agents_domain::Result;
use agents_domain::ids::ResourceId;
use agents_domain::resource::Resource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Graph;
use crate::{Engine, Operation};

/// Levels shown unless asked otherwise.
const DEPTH: usize = 3;

/// Children of one resource that are shown; the others are counted.
const MOST: usize = 50;

/// Shows the resources below one.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tree {
    /// Its name, its id, or the beginning of its id.
    pub resource: String,
    /// Levels below it, 3 unless given.
    #[serde(default)]
    pub depth: Option<usize>,
    /// Only children of this type.
    #[serde(default)]
    pub resource_type: Option<String>,
}

/// The tree.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct TreeOutput {
    pub resource: String,
    pub max_depth: usize,
    pub tree: ResourceNode,
    pub summary: ResourceTreeSummary,
}

/// A resource in the tree.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ResourceNode {
    #[serde(rename = "type")]
    pub resource_type: String,
    pub id: ResourceId,
    pub name: Option<String>,
    pub physical: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<ResourceNode>,
    /// Children that are not shown.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: usize,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// How much of it is shown.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ResourceTreeSummary {
    pub total_shown: usize,
    /// Itself and everything below it.
    pub total_in_subtree: usize,
    pub max_depth: usize,
}

impl Operation for Tree {
    const METHOD: &'static str = "registry/resource/tree";
    const SUMMARY: &'static str = "Show the resources below one";
    type Output = TreeOutput;

    fn run(self, engine: &Engine) -> Result<TreeOutput> {
        let resource = engine.resource(&self.resource)?;
        let graph = engine.view(|r| Graph::read(r))?;
        let max_depth = self.depth.unwrap_or(DEPTH);
        let wanted = self.resource_type.as_deref();
        let tree = node(&graph, &resource, max_depth, wanted, &mut vec![resource.resource_id]);
        let summary = ResourceTreeSummary {
            total_shown: size(&tree),
            total_in_subtree: 1 + graph.descendants(resource.resource_id).len(),
            max_depth,
        };
        Ok(TreeOutput { resource: crate::sandboxes::display_name(&resource), max_depth, tree, summary })
    }
}

/// `above` are the resources on the way down: one that hangs below itself is not followed.
fn node(
    graph: &Graph,
    resource: &Resource,
    depth: usize,
    wanted: Option<&str>,
    above: &mut Vec<ResourceId>,
) -> ResourceNode {
    let mut children = Vec::new();
    let mut more = 0;
    let fits = graph.children(resource.resource_id).filter(|c| wanted.is_none_or(|w| w == c.resource_type));
    for child in fits.filter(|child| !above.contains(&child.resource_id)).collect::<Vec<_>>() {
        if depth == 0 || children.len() == MOST {
            more += 1;
            continue;
        }
        above.push(child.resource_id);
        children.push(node(graph, child, depth - 1, wanted, above));
        above.pop();
    }
    ResourceNode {
        resource_type: resource.resource_type.clone(),
        id: resource.resource_id,
        name: resource.name.as_ref().map(ToString::to_string),
        physical: true,
        children,
        more,
    }
}

fn size(node: &ResourceNode) -> usize {
    1 + node.children.iter().map(size).sum::<usize>()
}
