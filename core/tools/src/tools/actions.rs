//! `lsp/code-actions` and `lsp/apply-code-action`.

use agents_domain::QualifiedName;
use agents_domain::language_server::Capability;
use agents_domain::ports::language_servers::CodeActionOffer;
use agents_domain::text::{LineIndex, Position, Range};
use schemars::JsonSchema;
use serde::Serialize;

use super::changes::{Changes, ProposedFile};
use crate::Tool;
use crate::lens::{File, Lens};
use crate::page::{Results, Window, line_of, touches};

arguments! {
    /// What the servers offer to do about some lines: fixes of what is wrong there, and refactorings. Nothing is written.
    CodeActions about a file {
        /// First line, from 1.
        line: u32,
        /// Last line; the first one unless given.
        #[serde(default)]
        end_line: Option<u32>,
        /// Only actions whose kind begins with this, such as `quickfix` or `refactor.extract`.
        #[serde(default)]
        kind: Option<String>,
        /// Show what each action would change.
        #[serde(default)]
        with_diff: bool,
        /// Results on the page; 50 unless given, at most 500.
        #[serde(default)]
        limit: Option<u32>,
        /// Results to leave out at the beginning: the `next_offset` of the page before.
        #[serde(default)]
        offset: Option<u32>,
    }
}

/// An action on offer.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Action {
    /// What `lsp/apply-code-action` calls it.
    title: String,
    /// Such as `quickfix`.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    /// The server.
    server: String,
    /// The server would take this one.
    preferred: bool,
    /// Why it cannot be applied here; absent when it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    unusable: Option<String>,
    /// The files it changes.
    files: Vec<String>,
    /// What it changes in them, when that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changes: Vec<ProposedFile>,
}

/// The lines from `first` to `last` (from 1) as a range.
fn lines(file: &File<'_>, first: u32, last: Option<u32>) -> Result<Range, String> {
    let text = file.text()?;
    let index = LineIndex::new(&text);
    let count = u32::try_from(index.lines()).unwrap_or(u32::MAX);
    let last = last.unwrap_or(first);
    if first == 0 || last < first || last > count {
        return Err(format!("{} has lines 1 to {count}; {first} to {last} is no part of it", file.path));
    }
    let end = u32::try_from(line_of(&text, &index, last - 1).len()).unwrap_or(u32::MAX);
    Ok(Range {
        start: Position { line: first - 1, column: 0 },
        end: Position { line: last - 1, column: end },
    })
}

/// Everything that the servers offer for some lines, each with its server, preferred ones first.
async fn offers(
    lens: &Lens,
    file: &File<'_>,
    range: Range,
    kind: Option<&str>,
) -> Result<Vec<(QualifiedName, CodeActionOffer)>, String> {
    let languages = &*file.workspace.languages;
    let said = match lens.lends(Capability::Diagnostics) {
        true => languages.diagnostics(std::slice::from_ref(&file.path)).await,
        false => Vec::new(),
    };
    let said: Vec<_> = said.into_iter().flat_map(|(_, answers)| answers).collect();
    let mut found = Vec::new();
    let mut problems = Vec::new();
    let mut asked = false;
    for server in &file.servers {
        let own = said.iter().filter(|answer| answer.server == *server);
        let there: Vec<_> = own
            .flat_map(|answer| answer.diagnostics.iter().flatten())
            .filter(|one| touches(one.range, range.start.line, range.end.line))
            .cloned()
            .collect();
        match languages.actions_in(server, &file.path, range, &there).await {
            Ok(Some(actions)) => {
                asked = true;
                found.extend(actions.into_iter().map(|action| (server.clone(), action)));
            }
            Ok(None) => {}
            Err(problem) => problems.push(problem),
        }
    }
    if !asked {
        return Err(match problems.is_empty() {
            true => format!("no server for {} offers code actions", file.path),
            false => problems.join("; "),
        });
    }
    if let Some(kind) = kind {
        let is_kind =
            |own: &str| own.strip_prefix(kind).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        found.retain(|(_, action)| action.kind.as_deref().is_some_and(is_kind));
    }
    found.sort_by_key(|(_, action)| (!action.is_preferred, action.edits.is_none()));
    Ok(found)
}

impl Tool for CodeActions {
    const NAME: &'static str = "lsp/code-actions";
    const SUMMARY: &'static str =
        "What the servers offer to do about some lines: fixes and refactorings; nothing is written";
    const CAPABILITY: Option<Capability> = Some(Capability::CodeActions);
    const WHILE_DECIDING: bool = false;
    type Output = Results<Action>;

    async fn run(self, lens: &Lens) -> Result<Self::Output, String> {
        let file = lens.file(self.resource.as_deref(), &self.path)?;
        let range = lines(&file, self.line, self.end_line)?;
        let found = offers(lens, &file, range, self.kind.as_deref()).await?;
        let servers = crate::page::names(&file.servers);
        Ok(Window::new(self.limit, self.offset).cut(&servers, &found, |(server, offer)| {
            let edits = offer.edits.clone().unwrap_or_default();
            let all = Changes::of(file.workspace, String::new(), String::new(), edits, false);
            Action {
                title: offer.title.clone(),
                kind: offer.kind.clone(),
                server: server.to_string(),
                preferred: offer.is_preferred,
                unusable: offer.unusable.clone(),
                files: all.files.iter().map(|file| file.path.clone()).collect(),
                changes: if self.with_diff { all.files } else { Vec::new() },
            }
        }))
    }
}

arguments! {
    /// Applies one of the actions that `lsp/code-actions` lists for some lines.
    ApplyCodeAction about a file {
        /// First line, from 1, as it was given to `lsp/code-actions`.
        line: u32,
        /// Last line; the first one unless given.
        #[serde(default)]
        end_line: Option<u32>,
        /// The action's title, or a part of it that no other action has.
        title: String,
        /// The server, where two offer an action of the same title.
        #[serde(default)]
        server: Option<String>,
    }
}

impl Tool for ApplyCodeAction {
    const NAME: &'static str = "lsp/apply-code-action";
    const SUMMARY: &'static str = "Applies one of the actions that lsp/code-actions lists for some lines";
    const CAPABILITY: Option<Capability> = Some(Capability::CodeActions);
    const WHILE_DECIDING: bool = false;
    const WRITES: bool = true;
    type Output = Changes;

    async fn run(self, lens: &Lens) -> Result<Changes, String> {
        let file = lens.file(self.resource.as_deref(), &self.path)?;
        let range = lines(&file, self.line, self.end_line)?;
        let mut found = offers(lens, &file, range, None).await?;
        if let Some(server) = &self.server {
            found.retain(|(name, _)| name.to_string() == *server);
        }
        let (server, offer) = choose(found, &self.title)?;
        match (offer.edits, offer.unusable) {
            (Some(edits), _) => Ok(Changes::of(file.workspace, server.to_string(), offer.title, edits, true)),
            (None, why) => {
                Err(format!("\u{201c}{}\u{201d} cannot be applied: {}", offer.title, why.unwrap_or_default()))
            }
        }
    }
}

/// The one action that is meant; never a guess between two.
fn choose(
    found: Vec<(QualifiedName, CodeActionOffer)>,
    title: &str,
) -> Result<(QualifiedName, CodeActionOffer), String> {
    let titles = found.iter().map(|(_, one)| format!("\u{201c}{}\u{201d}", one.title)).collect::<Vec<_>>();
    let exact: Vec<usize> = (0..found.len()).filter(|at| found[*at].1.title == title).collect();
    let wanted = title.to_lowercase();
    let partly = |at: &usize| found[*at].1.title.to_lowercase().contains(&wanted);
    let fitting = match exact.is_empty() {
        true => (0..found.len()).filter(partly).collect(),
        false => exact,
    };
    // The same action told twice, for two diagnostics say, is one.
    let same = fitting.windows(2).all(|two| found[two[0]] == found[two[1]]);
    match fitting.first() {
        Some(at) if same => found.into_iter().nth(*at).ok_or_else(String::new),
        Some(_) => Err(format!(
            "\u{201c}{title}\u{201d} fits several actions; give the whole title, and the `server` where two are the same: {}",
            fitting
                .iter()
                .map(|at| format!("{} by {}", titles[*at], found[*at].0))
                .collect::<Vec<_>>()
                .join(", ")
        )),
        None if titles.is_empty() => Err("nothing is offered for these lines".to_owned()),
        None => Err(format!("\u{201c}{title}\u{201d} is not offered there; there is {}", titles.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(server: &str, title: &str, kind: &str) -> (QualifiedName, CodeActionOffer) {
        let action = CodeActionOffer {
            title: title.to_owned(),
            kind: Some(kind.to_owned()),
            is_preferred: false,
            edits: None,
            unusable: None,
        };
        (server.parse().unwrap(), action)
    }

    #[test]
    fn a_title_is_matched_whole_or_by_a_part_that_only_one_has() {
        let found = || {
            vec![
                offer("l/a", "Remove unused import", "q"),
                offer("l/a", "Remove all", "q"),
                offer("l/b", "Remove all", "q"),
            ]
        };
        assert_eq!(choose(found(), "unused").unwrap().1.title, "Remove unused import");
        assert!(choose(found(), "Remove").unwrap_err().contains("fits several"));
        assert!(choose(found(), "Remove all").unwrap_err().contains("by l/b"));
        assert!(choose(found(), "Extract").unwrap_err().contains("\u{201c}Remove all\u{201d}"));
        assert!(choose(Vec::new(), "x").unwrap_err().contains("nothing is offered"));
        let twice = vec![offer("l/a", "Fix", "q"), offer("l/a", "Fix", "q")];
        assert_eq!(choose(twice, "Fix").unwrap().1.title, "Fix");
    }
}
