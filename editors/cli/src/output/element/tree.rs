//! Trees: a flat list of nodes that know their parents.

use serde_json::{Map, Value, json};

use super::{Border, Mark};
use crate::output::styled::Styled;

/// A hierarchy.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tree {
    /// Shown in the border.
    pub title: String,
    /// The line around it.
    pub border: Border,
    /// All nodes; the first is the root. A node comes after its parent.
    pub nodes: Vec<Node>,
    /// At most this many levels under the root are shown to people; programs get all.
    pub max_depth: Option<usize>,
}

/// A node of a tree.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Node {
    /// Index of the parent; the root has none.
    pub parent: Option<usize>,
    /// What people read.
    pub label: Styled,
    /// Icon before the label.
    pub mark: Option<Mark>,
    /// What programs get; without it, `{label}`.
    pub data: Map<String, Value>,
}

impl Node {
    /// A node with a label.
    pub fn new(label: impl Into<Styled>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    /// Puts an icon before the label.
    pub fn mark(mut self, mark: Mark) -> Self {
        self.mark = Some(mark);
        self
    }

    /// The fields that programs get for this node (an object; `children` is added).
    pub fn data(mut self, data: Value) -> Self {
        if let Value::Object(fields) = data {
            self.data = fields;
        }
        self
    }
}

impl Tree {
    /// The children of every node, in order, by index.
    pub fn child_lists(&self) -> Vec<Vec<usize>> {
        let mut lists = vec![Vec::new(); self.nodes.len()];
        for (i, node) in self.nodes.iter().enumerate().skip(1) {
            if let Some(list) = node.parent.and_then(|p| lists.get_mut(p)) {
                list.push(i);
            }
        }
        lists
    }

    /// Children are built before their parents, from the back, so that depth costs no stack.
    pub(super) fn to_json(&self, root: usize) -> Value {
        let mut children: Vec<Vec<Value>> = vec![Vec::new(); self.nodes.len()];
        for i in (0..self.nodes.len()).rev() {
            let node = &self.nodes[i];
            let mut fields = node.data.clone();
            if fields.is_empty() {
                fields.insert("label".into(), json!(node.label.text()));
            }
            let mut below = std::mem::take(&mut children[i]);
            if !below.is_empty() {
                below.reverse();
                fields.insert("children".into(), Value::Array(below));
            }
            match node.parent {
                Some(parent) if i != root => children[parent].push(Value::Object(fields)),
                _ => return Value::Object(fields),
            }
        }
        Value::Null
    }
}
