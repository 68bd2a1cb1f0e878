//! From the place a model names to a position: a line and a column, a symbol on a line, or a symbol alone.

use agents_domain::text::{LineIndex, Position};

use crate::lens::File;
use crate::page::line_of;

/// A place as arguments name it. Lines and columns count from 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spot<'a> {
    pub(crate) line: Option<u32>,
    pub(crate) column: Option<u32>,
    pub(crate) symbol: Option<&'a str>,
}

impl Spot<'_> {
    /// The position in the file's text; a symbol alone is found where it is declared, else where it stands first.
    pub(crate) async fn find(self, file: &File<'_>) -> Result<Position, String> {
        let text = file.text()?;
        let index = LineIndex::new(&text);
        let path = &file.path;
        match (self.line, self.column, self.symbol) {
            (None, Some(_), _) => Err("a `column` needs its `line`".to_owned()),
            (None, None, None) => {
                Err("say which place is meant: `line` with `column` or `symbol`, or `symbol` alone"
                    .to_owned())
            }
            (None, None, Some(symbol)) => declared(file, &text, &index, symbol).await,
            (Some(line), column, symbol) => {
                let zero = line.checked_sub(1).ok_or("lines count from 1")?;
                let count = index.lines();
                if usize::try_from(zero).unwrap_or(usize::MAX) >= count {
                    return Err(format!("{path} has {count} lines; there is no line {line}"));
                }
                let content = line_of(&text, &index, zero);
                let column = match (column, symbol) {
                    (Some(column), _) => bytes_of(content, column, path, line)?,
                    (None, Some(symbol)) => {
                        let name = last_part(symbol);
                        word(content, name).ok_or_else(|| {
                            format!("`{name}` is not on line {line} of {path}, which is: {}", content.trim())
                        })?
                    }
                    // The first thing on the line that could be a name.
                    (None, None) => content.len() - content.trim_start().len(),
                };
                Ok(Position { line: zero, column: u32::try_from(column).unwrap_or(u32::MAX) })
            }
        }
    }
}

fn bytes_of(content: &str, column: u32, path: &str, line: u32) -> Result<usize, String> {
    let at = usize::try_from(column).unwrap_or(usize::MAX);
    let at = at.checked_sub(1).ok_or("columns count from 1")?;
    let ends = content.char_indices().map(|(offset, _)| offset).chain([content.len()]);
    ends.clone().nth(at).ok_or_else(|| {
        format!("line {line} of {path} has {} characters; there is no column {column}", ends.count() - 1)
    })
}

/// `b` of `a.b` and of `a::b`.
fn last_part(symbol: &str) -> &str {
    symbol.rsplit(['.', ':', '#']).next().unwrap_or(symbol)
}

/// Where a name stands as a whole word.
fn word(content: &str, name: &str) -> Option<usize> {
    words(content, name).next()
}

fn words<'t>(content: &'t str, name: &'t str) -> impl Iterator<Item = usize> + 't {
    let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
    content.match_indices(name).map(|(at, _)| at).filter(move |at| {
        !name.is_empty()
            && !content[..*at].ends_with(part_of_name)
            && !content[at + name.len()..].starts_with(part_of_name)
    })
}

async fn declared(file: &File<'_>, text: &str, index: &LineIndex, symbol: &str) -> Result<Position, String> {
    let name = last_part(symbol);
    let container = symbol.strip_suffix(name).unwrap_or_default().trim_end_matches(['.', ':', '#']);
    let found = file.first("symbols", |languages, server| languages.symbols(server, &file.path)).await;
    if let Ok((_, symbols)) = found {
        let fits = |inside: Option<&str>| {
            container.is_empty()
                || inside
                    .is_some_and(|inside| inside == container || inside.ends_with(&format!(".{container}")))
        };
        let mut named = symbols.iter().filter(|one| plain(&one.name) == name);
        if let Some(one) = named.find(|one| fits(one.container.as_deref())) {
            // Where a server gives the whole declaration, the name is somewhere in it.
            let start = index.offset(text, one.range.start).unwrap_or(0);
            let end = index.offset(text, one.range.end).unwrap_or(text.len()).max(start);
            let inside = word(&text[start..end], name).unwrap_or(0);
            return Ok(index.position(start + inside));
        }
    }
    if !container.is_empty() {
        return Err(format!("{} declares no `{symbol}`; `lsp/symbols` lists what it declares", file.path));
    }
    words(text, name).next().map(|at| index.position(at)).ok_or_else(|| {
        format!("`{symbol}` is nowhere in {}; `lsp/workspace-symbols` finds where it is declared", file.path)
    })
}

/// The name without what some servers add to it, such as `name(int)`.
fn plain(name: &str) -> &str {
    name.split(['(', '<']).next().unwrap_or(name).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_as_a_whole_word_only() {
        assert_eq!(word("xab = ab(abc, ab)", "ab"), Some(6));
        assert_eq!(word("é.ab", "ab"), Some(3));
        assert_eq!(word("ab_c", "ab"), None);
        assert_eq!(word("x", ""), None);
        assert_eq!(last_part("a.b::c"), "c");
    }

    #[test]
    fn columns_are_characters_up_to_the_end_of_the_line() {
        assert_eq!(bytes_of("é😀x", 3, "a", 1), Ok(6));
        assert_eq!(bytes_of("é😀x", 4, "a", 1), Ok(7));
        assert!(bytes_of("é😀x", 5, "a", 1).unwrap_err().contains("has 3 characters"));
        assert!(bytes_of("x", 0, "a", 1).unwrap_err().contains("from 1"));
    }
}
