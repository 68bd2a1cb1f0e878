//! `lsp/preview-edit`: what edits would bring, without writing them.

use std::collections::BTreeMap;

use agents_domain::language_server::Capability;
use agents_domain::ports::code_intelligence::Draft;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::delta::{self, Delta, Snapshot, Verdict};
use crate::lens::Workspace;
use crate::{Lens, Tool};

/// Steps of one call.
const MAX_STEPS: usize = 20;

arguments! {
    /// Tries edits without writing them: which problems each step brings and takes away, and which step is the first to
    /// break something. Only the files that are edited or named in `also_check` are looked at.
    PreviewEdit {
        /// Edits one after the other; each step is checked with all before it in place.
        steps: Vec<Step>,
        /// More files to check, relative to the workspace: those that use what is edited.
        #[serde(default)]
        also_check: Vec<String>,
    }
}

/// Edits that belong together.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    /// What the step is called in the answer.
    #[serde(default)]
    label: Option<String>,
    /// Its edits, in order.
    edits: Vec<TryEdit>,
}

/// An edit of a file: of `old_text`, of whole lines, or of everything.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TryEdit {
    /// The file, relative to the workspace; one that is not there is made.
    path: String,
    /// Exactly what is replaced; it must stand in the file once.
    #[serde(default)]
    old_text: Option<String>,
    /// First line that is replaced, from 1, in place of `old_text`.
    #[serde(default)]
    start_line: Option<u32>,
    /// Last line that is replaced; the first one unless given.
    #[serde(default)]
    end_line: Option<u32>,
    /// What is there afterwards. Without `old_text` and `start_line` it is the whole file.
    new_text: String,
}

/// What the steps bring.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Preview {
    /// The first step that brings a new error, from 1; absent when none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    breaks_at: Option<usize>,
    /// All steps against the files as they are.
    overall: Delta,
    /// Each step against the one before.
    steps: Vec<StepResult>,
    /// The files that were checked.
    checked: Vec<String>,
}

/// What a step brings.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StepResult {
    /// Its number, from 1.
    step: usize,
    /// What it was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    /// What is different from the step before.
    #[serde(flatten)]
    delta: Delta,
}

impl Tool for PreviewEdit {
    const NAME: &'static str = "lsp/preview-edit";
    const SUMMARY: &'static str = "Tries edits without writing them: the problems each step would bring and take away, and which step breaks something";
    const CAPABILITY: Option<Capability> = Some(Capability::Diagnostics);
    type Output = Preview;

    async fn run(self, lens: &Lens) -> Result<Preview, String> {
        if self.steps.is_empty() || self.steps.len() > MAX_STEPS {
            return Err(format!("give 1 to {MAX_STEPS} `steps`, each with its `edits`"));
        }
        let first = self.steps.iter().flat_map(|step| &step.edits).next();
        let first = first.ok_or("there is no edit to try")?;
        let (workspace, _) = lens.locate(self.resource.as_deref(), &first.path)?;
        let path_of = |path: &str| -> Result<String, String> {
            let (of, path) = lens.locate(self.resource.as_deref(), path)?;
            match of.id == workspace.id {
                true => Ok(path),
                false => Err(format!("{path} is in another resource; preview the edits of one at a time")),
            }
        };
        // All texts first, so that a mistake in the last step costs nothing.
        let mut texts: BTreeMap<String, String> = BTreeMap::new();
        let mut states = Vec::new();
        for (number, step) in self.steps.iter().enumerate() {
            for edit in &step.edits {
                let path = path_of(&edit.path)?;
                let after = edit.apply(&path, &texts, workspace);
                texts.insert(path, after.map_err(|why| format!("step {}: {why}", number + 1))?);
            }
            states.push(texts.clone());
        }
        let mut checked: Vec<String> = texts.keys().cloned().collect();
        for path in &self.also_check {
            let path = path_of(path)?;
            if !checked.contains(&path) {
                checked.push(path);
            }
        }
        let there = |path: &&String| workspace.languages.text(path).is_ok();
        let existing: Vec<String> = checked.iter().filter(there).cloned().collect();
        let before = delta::take(lens, workspace, &existing).await;
        let mut last = before.clone();
        let mut steps = Vec::new();
        for (at, state) in states.iter().enumerate() {
            let drafts: Vec<Draft> =
                state.iter().map(|(path, text)| Draft { path: path.clone(), text: text.clone() }).collect();
            let known = |path: &&String| state.contains_key(*path) || existing.contains(path);
            let paths: Vec<String> = checked.iter().filter(known).cloned().collect();
            let answers = workspace.languages.preview(&drafts, &paths).await;
            let text = |path: &str| {
                let draft = state.get(path).cloned();
                draft.unwrap_or_else(|| workspace.languages.text(path).unwrap_or_default())
            };
            let now = Snapshot::of(lens, answers, text);
            let label = self.steps.get(at).and_then(|step| step.label.clone());
            steps.push(StepResult { step: at + 1, label, delta: now.since(&last) });
            last = now;
        }
        let breaks = steps.iter().find(|step| step.delta.verdict == Verdict::Worse);
        Ok(Preview { breaks_at: breaks.map(|step| step.step), overall: last.since(&before), steps, checked })
    }
}

impl TryEdit {
    /// The text of the file afterwards.
    fn apply(
        &self,
        path: &str,
        texts: &BTreeMap<String, String>,
        workspace: &Workspace,
    ) -> Result<String, String> {
        let known =
            || texts.get(path).map_or_else(|| workspace.languages.text(path), |text| Ok(text.clone()));
        match (&self.old_text, self.start_line) {
            (None, None) => Ok(self.new_text.clone()),
            (Some(_), Some(_)) => Err(format!("{path}: give either `old_text` or `start_line`, not both")),
            (Some(old), None) => {
                replace(&known()?, old, &self.new_text).map_err(|why| format!("{path}: {why}"))
            }
            (None, Some(first)) => {
                replace_lines(&known()?, first, self.end_line.unwrap_or(first), &self.new_text)
                    .map_err(|why| format!("{path}: {why}"))
            }
        }
    }
}

fn replace(text: &str, old: &str, new: &str) -> Result<String, String> {
    if old.is_empty() {
        return Err("`old_text` is empty".to_owned());
    }
    match text.matches(old).count() {
        1 => Ok(text.replacen(old, new, 1)),
        0 => Err("`old_text` does not stand in the file; copy it exactly, spaces too".to_owned()),
        many => Err(format!("`old_text` stands in the file {many} times; give more of the text around it")),
    }
}

fn replace_lines(text: &str, first: u32, last: u32, new: &str) -> Result<String, String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let count = lines.len();
    let at = |line: u32| usize::try_from(line).unwrap_or(usize::MAX);
    let (first, last) = (at(first), at(last));
    if first == 0 || last < first || last > count {
        return Err(format!("the file has lines 1 to {count}; {first} to {last} is no part of it"));
    }
    let ending = if lines[last - 1].ends_with("\r\n") { "\r\n" } else { "\n" };
    let closed = new.is_empty() || new.ends_with('\n') || !lines[last - 1].ends_with('\n');
    let end = if closed { "" } else { ending };
    Ok([&lines[..first - 1].concat(), new, end, &lines[last..].concat()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_replaced_only_where_it_stands_once() {
        assert_eq!(replace("a b a", "b", "c").unwrap(), "a c a");
        assert!(replace("a b a", "a", "c").unwrap_err().contains("2 times"));
        assert!(replace("a", "x", "c").unwrap_err().contains("copy it exactly"));
    }

    #[test]
    fn lines_are_replaced_whole_and_keep_their_ends() {
        assert_eq!(replace_lines("1\n2\n3\n", 2, 2, "x").unwrap(), "1\nx\n3\n");
        assert_eq!(replace_lines("1\r\n2\r\n", 1, 1, "x").unwrap(), "x\r\n2\r\n");
        assert_eq!(replace_lines("1\n2", 2, 2, "x").unwrap(), "1\nx");
        assert_eq!(replace_lines("1\n2\n3", 1, 2, "").unwrap(), "3");
        assert!(replace_lines("1\n", 2, 2, "").unwrap_err().contains("lines 1 to 1"));
        assert!(replace_lines("1\n", 0, 0, "").is_err());
    }
}
