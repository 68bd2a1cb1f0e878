//! The command `agents.plan.edit`: a plan's changes as edits of the editor's buffers, each under the decision behind it, for
//! people who want to keep or drop them one by one. The plan itself stays where it is.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use agents_domain::changes::Hunk;
use agents_domain::ids::{DecisionId, PlanId};
use agents_domain::provenance::hunks;
use agents_domain::{Error, Result};
use agents_engine::Engine;
use agents_engine::operations::content;
use agents_engine::operations::plan::{Diff, DiffedFile, Explain, FilePatch};
use serde_json::{Value, json};
use tower_lsp::lsp_types::{Position, Range};

use super::lines::EngineLines;
use super::{Shared, brief};
use crate::documents::{DocumentUri, Text};
use crate::watch::world::World;
use crate::{ClientInfo, Snapshot};

/// Puts a plan's changes into the buffers: `{"plan": ...}`.
pub(crate) const EDIT: &str = "agents.plan.edit";

/// Edits of all files, and what of the plan is not among them.
struct Edits {
    changes: Vec<Value>,
    /// Each decision that an edit is of.
    decisions: BTreeSet<DecisionId>,
    left_out: Vec<String>,
}

/// An edit of one place with the decisions behind it.
struct Edit {
    range: Range,
    new_text: String,
    decisions: Vec<DecisionId>,
}

impl Shared {
    /// Whether the client can be asked to edit, and shows the reason of an edit.
    pub fn edits_buffers(client: &ClientInfo) -> bool {
        client.supports("/workspace/applyEdit")
            && client.supports("/workspace/workspaceEdit/documentChanges")
            && client.supports("/workspace/workspaceEdit/changeAnnotationSupport")
    }

    /// Asks the editor to take a plan's changes; its answer is told when it comes.
    pub async fn edit_buffers(self: &Arc<Self>, given: &Value) -> Result<Value> {
        let plan = given.get("plan").and_then(Value::as_str).map(str::to_owned);
        let plan = plan.ok_or_else(|| Error::validation(format!("{EDIT} at `plan`: the id is missing")))?;
        let snapshot = self.session.snapshot();
        if !Self::edits_buffers(snapshot.client()) {
            return Err(Error::validation(format!(
                "{EDIT}: this editor does not take edits with annotations; apply the plan instead"
            ))
            .suggest(format!("agents plan apply --no-commit {plan}")));
        }
        let world = self.world().await;
        let looked = self.blocking(move |engine| {
            let edits = edits(engine, &plan, &world, &snapshot)?;
            let annotations = annotations(engine, &edits)?;
            Ok((plan, edits, annotations))
        });
        let (plan, edits, annotations) = looked.await?;
        let left_out = edits.left_out;
        if edits.changes.is_empty() {
            let error =
                Error::invalid_state(format!("nothing of plan {plan} fits into the files as they are"));
            return Err(if left_out.is_empty() { error } else { error.detail(left_out.join("; ")) });
        }
        let params = json!({
            "label": format!("Changes of plan {}", brief(&plan, 8)),
            "edit": { "documentChanges": edits.changes, "changeAnnotations": annotations },
        });
        let asked = self.client.request_raw::<Value>("workspace/applyEdit", params);
        let (shared, told) = (self.clone(), left_out.clone());
        tokio::spawn(async move {
            match asked.await {
                Ok(answer) if answer["applied"] == true && told.is_empty() => {}
                Ok(answer) if answer["applied"] == true => {
                    shared.message(2, &format!("Not among the edits: {}", told.join("; ")));
                }
                Ok(answer) => tracing::info!(%answer, "the editor did not take the edits"),
                Err(error) => shared.message(1, &format!("the editor did not take the edits: {error}")),
            }
        });
        Ok(json!({ "pending": plan, "decisions": edits.decisions.len(), "left_out": left_out }))
    }
}

/// What an editor shows of each decision above its edits.
fn annotations(engine: &Engine, edits: &Edits) -> Result<Value> {
    let mut words = BTreeMap::new();
    for decision in &edits.decisions {
        let explain = Explain { decision: decision.to_string(), show_context: false, show_reasoning: false };
        words.insert(*decision, engine.call(explain)?);
    }
    let keys: BTreeSet<&str> = edits
        .changes
        .iter()
        .flat_map(|change| change["edits"].as_array().into_iter().flatten().chain([change]))
        .filter_map(|edit| edit["annotationId"].as_str())
        .collect();
    let annotation = |key: &str| {
        let of_it: Vec<_> =
            words.iter().filter(|(id, _)| key.contains(&id.to_string())).map(|(_, d)| d).collect();
        let chosen: Vec<String> = of_it.iter().map(|d| brief(&d.chosen, 80)).collect();
        let label = if chosen.is_empty() { "Edited in the sandbox".to_owned() } else { chosen.join("; ") };
        let why = of_it.first().map(|d| brief(&d.question, 120)).unwrap_or_default();
        json!({ "label": label, "description": why, "needsConfirmation": true })
    };
    Ok(keys
        .into_iter()
        .map(|key| (key.to_owned(), annotation(key)))
        .collect::<serde_json::Map<_, _>>()
        .into())
}

fn edits(engine: &Engine, plan: &str, world: &World, snapshot: &Snapshot) -> Result<Edits> {
    let diff = engine.call(Diff { plan: plan.to_owned() })?;
    let mut found = Edits { changes: Vec::new(), decisions: BTreeSet::new(), left_out: Vec::new() };
    for file in &diff.files {
        let patch =
            diff.patch_preview.iter().find(|p| p.file == file.path && p.resource_id == file.resource_id);
        match of_file(engine, file, patch, world, snapshot)? {
            Ok((changes, decisions, lost)) => {
                found.changes.extend(changes);
                found.decisions.extend(decisions);
                if lost > 0 {
                    found
                        .left_out
                        .push(format!("{}: {lost} where you have edited the same lines", file.path));
                }
            }
            Err(why) => found.left_out.push(format!("{}: {why}", file.path)),
        }
    }
    Ok(found)
}

type OfFile = std::result::Result<(Vec<Value>, Vec<DecisionId>, usize), &'static str>;

/// The edits of one file with their decisions and how many do not fit, or why there are none.
fn of_file(
    engine: &Engine,
    file: &DiffedFile,
    patch: Option<&FilePatch>,
    world: &World,
    snapshot: &Snapshot,
) -> Result<OfFile> {
    let client = snapshot.client();
    if file.binary {
        return Ok(Err("it is no text"));
    }
    let path = |path: &str| world.registry.path(&(file.resource_id, path.to_owned()));
    let uri = |path: Option<PathBuf>| path.and_then(|path| DocumentUri::from_path(&path));
    let (Some(target), old) = (uri(path(&file.path)), file.old_path.as_deref()) else {
        return Ok(Err("its folder is not on this machine"));
    };
    if old.is_some_and(|old| old != file.path) {
        return Ok(Err("it is moved, which edits cannot say"));
    }
    let stored = |hash: &Option<String>| match hash {
        Some(hash) => Ok(engine.call(content::Show { hash: hash.clone() })?.text),
        None => Ok::<_, Error>(None),
    };
    let (base, sandbox) = (stored(&file.base_hash)?, stored(&file.sandbox_hash)?);
    let creates = supports(client, "create");
    let key = |decisions: &[DecisionId]| {
        if decisions.is_empty() {
            return "sandbox".to_owned();
        }
        decisions.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    match (base, sandbox) {
        (Some(base), Some(sandbox)) => {
            let open = snapshot.document(&target);
            let text = match (open, path(&file.path).map(std::fs::read)) {
                (Some(document), _) => document.text().clone(),
                (None, Some(Ok(bytes))) => snapshot.text(&String::from_utf8_lossy(&bytes)),
                _ => return Ok(Err("it is not there any more")),
            };
            let (edits, lost) = between(&base, &sandbox, &text, patch);
            let decisions = edits.iter().flat_map(|edit| edit.decisions.iter().copied()).collect();
            let shown: Vec<Value> = edits
                .iter()
                .map(
                    |e| json!({ "range": e.range, "newText": e.new_text, "annotationId": key(&e.decisions) }),
                )
                .collect();
            let version = open.map(|document| document.version());
            let change =
                json!({ "textDocument": { "uri": target.as_str(), "version": version }, "edits": shown });
            Ok(Ok((if shown.is_empty() { Vec::new() } else { vec![change] }, decisions, lost)))
        }
        (None, Some(sandbox)) if creates && file.status != "modified" => {
            if snapshot.document(&target).is_some() || path(&file.path).is_some_and(|path| path.exists()) {
                return Ok(Err("another file with this name is there already"));
            }
            let annotation = key(&file.decisions);
            let at = Range::new(Position::new(0, 0), Position::new(0, 0));
            let text = json!({ "range": at, "newText": sandbox, "annotationId": annotation });
            let create = json!({ "kind": "create", "uri": target.as_str(), "annotationId": annotation });
            let fill =
                json!({ "textDocument": { "uri": target.as_str(), "version": null }, "edits": [text] });
            Ok(Ok((vec![create, fill], file.decisions.clone(), 0)))
        }
        (Some(base), None) if supports(client, "delete") && file.status != "modified" => {
            let same = path(&file.path)
                .and_then(|path| std::fs::read(path).ok())
                .is_some_and(|b| b == base.as_bytes());
            let edited =
                snapshot.document(&target).is_some_and(|document| *document.text().rope() != base.as_str());
            if !same || edited {
                return Ok(Err("it would be deleted, and you have edited it"));
            }
            let delete =
                json!({ "kind": "delete", "uri": target.as_str(), "annotationId": key(&file.decisions) });
            Ok(Ok((vec![delete], file.decisions.clone(), 0)))
        }
        (None, Some(_)) => Ok(Err("this editor cannot be asked to make files")),
        (Some(_), None) => Ok(Err("this editor cannot be asked to delete files")),
        (None, None) => Ok(Err("no tool of the plan wrote it")),
    }
}

fn supports(client: &ClientInfo, operation: &str) -> bool {
    let operations = client.capabilities.pointer("/workspace/workspaceEdit/resourceOperations");
    operations.and_then(Value::as_array).is_some_and(|known| known.iter().any(|one| one == operation))
}

/// From the base to the sandbox, in the places of the text at hand; what a person edited at the same place is left alone,
/// and counted.
fn between(base: &str, sandbox: &str, text: &Text, patch: Option<&FilePatch>) -> (Vec<Edit>, usize) {
    let by_new = decisions_by_line(patch, |line| line.new);
    let by_old = decisions_by_line(patch, |line| line.old);
    let lines = EngineLines::of(text);
    let (old_lines, new_lines): (Vec<&str>, Vec<&str>) =
        (base.split_inclusive('\n').collect(), sandbox.split_inclusive('\n').collect());
    let own = if *text.rope() == base { Vec::new() } else { hunks(base, &text.to_string()) };
    let (mut edits, mut lost) = (Vec::new(), 0);
    for hunk in hunks(base, sandbox) {
        let Some(start) = moved(&hunk, &own) else {
            lost += 1;
            continue;
        };
        let put: String = slice(&new_lines, hunk.new_start, hunk.new_lines).concat();
        let at = |line: u32| text.position(lines.start(line));
        let range = Range::new(at(start), at(start.saturating_add(hunk.old_lines)));
        debug_assert_eq!(
            text.slice(range),
            slice(&old_lines, hunk.old_start, hunk.old_lines).concat(),
            "no edit of a person's touches it"
        );
        let mut decisions: Vec<DecisionId> = Vec::new();
        let put_by =
            (hunk.new_start..hunk.new_start + hunk.new_lines).filter_map(|line| by_new.get(&(line + 1)));
        let taken_by =
            (hunk.old_start..hunk.old_start + hunk.old_lines).filter_map(|line| by_old.get(&(line + 1)));
        for decision in put_by.chain(taken_by) {
            if !decisions.contains(decision) {
                decisions.push(*decision);
            }
        }
        edits.push(Edit { range, new_text: put, decisions });
    }
    (edits, lost)
}

fn slice<'l>(lines: &'l [&'l str], start: u32, count: u32) -> &'l [&'l str] {
    let start = (start as usize).min(lines.len());
    &lines[start..(start + count as usize).min(lines.len())]
}

/// Where a hunk's first line is after a person's own edits; `None` when one of them touches it.
fn moved(hunk: &Hunk, own: &[Hunk]) -> Option<u32> {
    let (start, end) = (hunk.old_start, hunk.old_start + hunk.old_lines);
    let mut shift = 0i64;
    for edit in own {
        let (from, to) = (edit.old_start, edit.old_start + edit.old_lines);
        if to < start || (to == start && hunk.old_lines > 0) {
            shift += i64::from(edit.new_lines) - i64::from(edit.old_lines);
        } else if from < end || (from == end && hunk.old_lines == 0) {
            return None;
        }
    }
    u32::try_from(i64::from(start) + shift).ok()
}

fn decisions_by_line(
    patch: Option<&FilePatch>,
    number: impl Fn(&agents_domain::changes::DiffLine) -> Option<u32>,
) -> HashMap<u32, DecisionId> {
    let lines = patch.into_iter().flat_map(|patch| &patch.hunks).flat_map(|hunk| &hunk.lines);
    lines.filter_map(|line| Some((number(&line.line)?, line.decision_id?))).collect()
}

/// What the action is called that runs [`EDIT`].
pub(crate) fn title(name: &str) -> String {
    format!("Put the changes of plan {name} into the open buffers")
}

/// Its parameters.
pub(crate) fn params(plan: PlanId) -> Value {
    json!({ "plan": plan })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::PositionEncoding;

    /// The text after all edits.
    fn edited(base: &str, sandbox: &str, mine: &str) -> (String, usize) {
        let mut text = Text::new(mine, PositionEncoding::Utf16);
        let (edits, lost) = between(base, sandbox, &text, None);
        for edit in edits.into_iter().rev() {
            text.replace(edit.range, &edit.new_text);
        }
        (text.to_string(), lost)
    }

    #[test]
    fn edits_make_the_sandbox_of_the_base() {
        for (base, sandbox) in [
            ("a\nb\nc\n", "a\nB\nc\nd\n"),
            ("a\nb", "a\nb\n"),
            ("a\r\n𝄞\r\n", "𝄞\r\n"),
            ("", "new\n"),
            ("x\ny\nz\n", ""),
            ("a\n", "a\nno break"),
        ] {
            assert_eq!(edited(base, sandbox, base), (sandbox.to_owned(), 0), "{base:?} -> {sandbox:?}");
        }
    }

    #[test]
    fn what_a_person_edited_stays_and_what_touches_it_is_counted() {
        let (base, sandbox) = ("a\nb\nc\nd\ne\n", "a\nB\nc\nd\nE\n");
        assert_eq!(edited(base, sandbox, "mine\na\nb\nc\nd\ne\n"), ("mine\na\nB\nc\nd\nE\n".to_owned(), 0));
        assert_eq!(edited(base, sandbox, "a\nbb\nc\nd\ne\n"), ("a\nbb\nc\nd\nE\n".to_owned(), 1));
        assert_eq!(edited(base, sandbox, "a\nb\ne\n"), ("a\nB\nE\n".to_owned(), 0));
        // Lines put in right where the plan puts some in.
        assert_eq!(edited("a\nb\n", "a\nx\nb\n", "a\ny\nb\n"), ("a\ny\nb\n".to_owned(), 1));
    }
}
