//! `lsp/rename` and `lsp/format`, and how edits that nobody has written yet are shown.

use agents_domain::language_server::Capability;
use agents_domain::ports::language_servers::FileQuestion;
use agents_domain::text::{FileEdit, apply_edits};
use schemars::JsonSchema;
use serde::Serialize;
use similar::TextDiff;

use crate::lens::Workspace;
use crate::page::cut;
use crate::{Lens, Tool};

/// Bytes of a file's difference that are shown.
const MAX_DIFF: usize = 8_000;
/// Files whose difference is shown.
const MAX_FILES: usize = 40;

/// Edits as a server proposes them; nothing was written.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Changes {
    /// The server that proposes them.
    pub server: String,
    /// What is proposed, such as the title of a code action.
    pub title: String,
    /// The workspace they are for: the `resource` of `builtin/apply-edits`.
    pub resource: String,
    /// The files with their differences; at most 40.
    pub files: Vec<ProposedFile>,
    /// How many files there are in all.
    pub total_files: usize,
    /// The edits for `builtin/apply-edits`, when they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edits: Option<Vec<FileEdit>>,
}

/// What would become of a file.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ProposedFile {
    /// The file.
    pub path: String,
    /// `edit`, `create`, `rename` or `delete`.
    pub change: &'static str,
    /// Where it is moved to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Its difference, line by line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

impl Changes {
    /// Shows edits of a workspace.
    pub(crate) fn of(
        workspace: &Workspace,
        server: String,
        title: String,
        edits: Vec<FileEdit>,
        with_edits: bool,
    ) -> Self {
        let files = edits.iter().take(MAX_FILES).map(|edit| proposed(workspace, edit)).collect();
        Self {
            server,
            title,
            resource: workspace.id.clone(),
            files,
            total_files: edits.len(),
            edits: with_edits.then_some(edits),
        }
    }
}

fn proposed(workspace: &Workspace, edit: &FileEdit) -> ProposedFile {
    let text = |path: &str| workspace.languages.text(path).unwrap_or_default();
    let shown = |change, to, diff| ProposedFile { path: edit.path().to_owned(), change, to, diff };
    match edit {
        FileEdit::Edit { path, edits } => {
            let before = text(path);
            let after = apply_edits(&before, edits).unwrap_or_else(|_| before.clone());
            shown("edit", None, Some(diff(&before, &after)))
        }
        FileEdit::Create { text, .. } => shown("create", None, Some(diff("", text))),
        FileEdit::Write { path, content } => {
            let after = String::from_utf8_lossy(content.as_bytes()).into_owned();
            shown("edit", None, Some(diff(&text(path), &after)))
        }
        FileEdit::Rename { to, .. } => shown("rename", Some(to.clone()), None),
        FileEdit::Delete { .. } => shown("delete", None, None),
    }
}

/// The hunks of a unified difference.
pub(crate) fn diff(before: &str, after: &str) -> String {
    let diff = TextDiff::from_lines(before, after);
    cut(diff.unified_diff().context_radius(2).to_string().trim_end(), MAX_DIFF)
}

arguments! {
    /// What a new name for a symbol changes, in all files. Nothing is written.
    Rename about a symbol {
        /// The new name.
        new_name: String,
        /// Also give the edits, for `builtin/apply-edits`.
        #[serde(default)]
        with_edits: bool,
    }
}

impl Tool for Rename {
    const NAME: &'static str = "lsp/rename";
    const SUMMARY: &'static str = "What a new name for a symbol changes, in all files; nothing is written";
    const CAPABILITY: Option<Capability> = Some(Capability::Rename);
    const WHILE_DECIDING: bool = false;
    type Output = Changes;

    async fn run(self, lens: &Lens) -> Result<Changes, String> {
        if self.new_name.trim().is_empty() {
            return Err("`new_name` is empty".to_owned());
        }
        let file = lens.file(self.resource.as_deref(), &self.path)?;
        let position = self.spot().find(&file).await?;
        let new_name = &self.new_name;
        let (server, edits) = file
            .first("rename", |languages, server| languages.rename(server, &file.path, position, new_name))
            .await?;
        let title = format!("Rename to `{new_name}`");
        Ok(Changes::of(file.workspace, server.to_string(), title, edits, self.with_edits))
    }
}

arguments! {
    /// How a server would format a file. Nothing is written.
    Format about a file {
        /// Also give the edits, for `builtin/apply-edits`.
        #[serde(default)]
        with_edits: bool,
    }
}

impl Tool for Format {
    const NAME: &'static str = "lsp/format";
    const SUMMARY: &'static str = "How a server would format a file; nothing is written";
    const CAPABILITY: Option<Capability> = Some(Capability::Formatting);
    const WHILE_DECIDING: bool = false;
    type Output = Changes;

    async fn run(self, lens: &Lens) -> Result<Changes, String> {
        let file = lens.file(self.resource.as_deref(), &self.path)?;
        let (server, edits) = file
            .owner("formatting", |languages, server| {
                languages.file_edits(server, &file.path, FileQuestion::Format)
            })
            .await?;
        let title = format!("Format {}", file.path);
        Ok(Changes::of(file.workspace, server.to_string(), title, edits, self.with_edits))
    }
}
