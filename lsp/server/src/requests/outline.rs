//! Symbols and folds of our virtual documents, read from their headings and lists.

use tower_lsp::lsp_types::{DocumentSymbol, FoldingRange, SymbolKind, Url};

use super::Shared;
use super::lines::whole_lines;
use crate::documents::Text;

/// A heading or an item of a list.
struct Node {
    level: usize,
    first: u32,
    last: u32,
    name: String,
}

impl Shared {
    pub async fn document_symbols(&self, uri: &Url) -> Option<Vec<DocumentSymbol>> {
        let (_, document) = self.document(uri)?;
        if document.uri().scheme() != "agents" {
            return match self.entity_symbols(uri) {
                None => self.declared(document).await,
                found => found,
            };
        }
        let nodes = nodes(document.text());
        Some(tree(document.text(), &nodes))
    }

    pub fn folding_ranges(&self, uri: &Url) -> Option<Vec<FoldingRange>> {
        let (_, document) = self.document(uri).filter(|(_, document)| document.uri().scheme() == "agents")?;
        let folds = nodes(document.text()).into_iter().filter(|node| node.last > node.first);
        Some(
            folds
                .map(|node| FoldingRange {
                    start_line: node.first,
                    start_character: None,
                    end_line: node.last,
                    end_character: None,
                    kind: None,
                    collapsed_text: None,
                })
                .collect(),
        )
    }
}

/// Headings are levels 1 to 6, items of lists come below them by their indentation.
fn level_of(line: &str) -> Option<(usize, &str)> {
    let marks = line.bytes().take_while(|b| *b == b'#').count();
    if (1..=6).contains(&marks) && line[marks..].starts_with(' ') {
        return Some((marks, line[marks..].trim()));
    }
    let item = line.trim_start();
    let indent = line.len() - item.len();
    item.strip_prefix("- ").map(|rest| (7 + indent / 2, rest.trim()))
}

fn nodes(text: &Text) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut last = 0;
    for (at, line) in (0u32..).zip((0..text.line_count()).filter_map(|line| text.line(line))) {
        if let Some((level, name)) = level_of(&line).filter(|(_, name)| !name.is_empty()) {
            nodes.push(Node { level, first: at, last: at, name: name.replace('\\', "") });
        }
        if !line.trim().is_empty() {
            last = at;
        }
    }
    for at in 0..nodes.len() {
        let next = nodes[at + 1..].iter().find(|next| next.level <= nodes[at].level);
        let end = next.map_or(last, |next| next.first.saturating_sub(1));
        nodes[at].last = end.max(nodes[at].first);
    }
    nodes
}

fn tree(text: &Text, nodes: &[Node]) -> Vec<DocumentSymbol> {
    let mut symbols = Vec::new();
    let mut rest = nodes;
    while let Some((node, after)) = rest.split_first() {
        let below = after.iter().position(|next| next.level <= node.level).unwrap_or(after.len());
        let (children, next) = after.split_at(below);
        let heading = whole_lines(text, node.first, node.first);
        #[allow(deprecated, reason = "the field must be given")]
        symbols.push(DocumentSymbol {
            name: node.name.clone(),
            detail: None,
            kind: if node.level < 7 { SymbolKind::NAMESPACE } else { SymbolKind::EVENT },
            tags: None,
            deprecated: None,
            range: whole_lines(text, node.first, node.last),
            selection_range: heading,
            children: (!children.is_empty()).then(|| tree(text, children)),
        });
        rest = next;
    }
    symbols
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::PositionEncoding;

    #[test]
    fn items_hang_below_headings_and_each_other() {
        let text = Text::new("# Plan\n\n## Tree\n\n- a\n  - b\n- c\n\n## End\n", PositionEncoding::Utf16);
        let symbols = tree(&text, &nodes(&text));
        let plan = &symbols[0];
        assert_eq!((symbols.len(), plan.name.as_str(), plan.range.end.line), (1, "Plan", 8));
        let below = plan.children.as_ref().unwrap();
        let names: Vec<_> = below.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["Tree", "End"]);
        let items = below[0].children.as_ref().unwrap();
        assert_eq!((items[0].name.as_str(), items[0].range.end.line), ("a", 5));
        assert_eq!(items[0].children.as_ref().unwrap()[0].name, "b");
    }
}
