//! `textDocument/codeAction`: explain a decision, answer one that waits, correct one, apply a plan or take it back.

use std::collections::HashSet;

use serde_json::{Value, json};
use tower_lsp::lsp_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, CodeActionParams, Command, Diagnostic, Range,
};

use super::code_lens::command;
use super::diagnostic::CODE_PENDING;
use super::inlay_hint::verdict;
use super::links;
use super::provenance::Provenance;
use super::questions::{Asked, asked, touch};
use super::{Shared, brief, buffers};
use crate::ClientInfo;
use crate::watch::world::World;

/// Answers to decisions that wait; they belong to a diagnostic.
pub(crate) const ANSWER_KIND: &str = "quickfix";
/// Why a line is as it is.
pub(crate) const EXPLAIN_KIND: &str = "agents.explain";
/// Other choices for a decision that a plan which is still open has made.
pub(crate) const CORRECT_KIND: &str = "agents.correct";
/// What can be done with a plan.
pub(crate) const PLAN_KIND: &str = "agents.plan";

/// What a client can take, and what it asked for.
struct Offer<'c> {
    client: &'c ClientInfo,
    only: Option<Vec<CodeActionKind>>,
    actions: Vec<CodeActionOrCommand>,
}

impl Shared {
    pub async fn code_action(&self, params: CodeActionParams) -> Option<Vec<CodeActionOrCommand>> {
        let fixes = match kind_wanted(params.context.only.as_deref(), ANSWER_KIND) {
            true => self.entity_actions(&params).await,
            false => None,
        };
        match (self.plan_actions(params).await, fixes) {
            (Some(actions), fixes) => Some(fixes.into_iter().flatten().chain(actions).collect()),
            (None, fixes) => fixes,
        }
    }

    async fn plan_actions(&self, params: CodeActionParams) -> Option<Vec<CodeActionOrCommand>> {
        let (snapshot, document) = self.document(&params.text_document.uri)?;
        let world = self.world().await;
        let file = self.file_of(&world, &document).await?;
        let mut offer =
            Offer { client: snapshot.client(), only: params.context.only.clone(), actions: Vec::new() };
        if offer.wanted(ANSWER_KIND) {
            let saved = self.saved_text(&world, &file).await;
            let questions = asked(&world, &file, document.text(), saved.as_deref());
            offer.answers(questions, params.range, &params.context.diagnostics);
        }
        if let Some(found) = self.provenance(&document).await {
            let (first, last) = lines_of(params.range);
            if offer.wanted(EXPLAIN_KIND) {
                offer.explanations(&found, first, last);
            }
            if offer.wanted(CORRECT_KIND) {
                offer.corrections(&world, &found, first, last);
            }
            if offer.wanted(PLAN_KIND) {
                self.plans(&mut offer, &world, &found).await;
                offer.take_back(&world, &found, first, last);
                for back in self.rollbacks(&world, &found, first, last).await {
                    offer.add(PLAN_KIND, back, None, false);
                }
            }
        }
        if offer.wanted(PLAN_KIND) {
            for begin in self.plans_here(&world, &file, &params.context, params.range.start.line) {
                offer.add(PLAN_KIND, begin, None, false);
            }
        }
        Some(offer.actions)
    }

    async fn plans(&self, offer: &mut Offer<'_>, world: &World, found: &Provenance) {
        for plan in found.proposing() {
            let Some(open) = world.plans.get(&plan).filter(|open| open.can_be_applied()) else { continue };
            let totals = self.totals(plan).await.map(|totals| format!(" ({totals})")).unwrap_or_default();
            let params = json!({ "plan": plan });
            let name = links::plan_name(offer.client, plan, &open.action);
            let apply = command(&format!("Apply plan {name}{totals}"), "agents.plan.apply", params.clone());
            offer.add(PLAN_KIND, apply, None, false);
            offer.add(
                PLAN_KIND,
                command(&format!("Show diff of plan {name}"), "agents.plan.diff", params),
                None,
                false,
            );
            if Self::edits_buffers(offer.client) {
                let edit = command(&buffers::title(&name), buffers::EDIT, buffers::params(plan));
                offer.add(PLAN_KIND, edit, None, false);
            }
        }
    }
}

/// Whether the client asked for actions of a kind: for it, or for one it is a part of.
fn kind_wanted(only: Option<&[CodeActionKind]>, kind: &str) -> bool {
    let part = |whole: &CodeActionKind| {
        let whole = whole.as_str();
        whole.is_empty()
            || kind == whole
            || kind.strip_prefix(whole).is_some_and(|rest| rest.starts_with('.'))
    };
    only.is_none_or(|only| only.iter().any(part))
}

impl Offer<'_> {
    fn wanted(&self, kind: &str) -> bool {
        kind_wanted(self.only.as_deref(), kind)
    }

    fn add(&mut self, kind: &str, command: Command, answered: Option<Diagnostic>, preferred: bool) {
        let literal = self.client.supports("/textDocument/codeAction/codeActionLiteralSupport");
        let preferred = preferred && self.client.supports("/textDocument/codeAction/isPreferredSupport");
        self.actions.push(if literal {
            CodeActionOrCommand::CodeAction(CodeAction {
                title: command.title.clone(),
                kind: Some(CodeActionKind::from(kind.to_owned())),
                diagnostics: answered.map(|diagnostic| vec![diagnostic]),
                is_preferred: preferred.then_some(true),
                command: Some(command),
                ..CodeAction::default()
            })
        } else {
            CodeActionOrCommand::Command(command)
        });
    }

    /// One action per option of each decision that waits in the range, or that the client named by its diagnostic.
    fn answers(&mut self, questions: Vec<Asked<'_>>, range: Range, diagnostics: &[Diagnostic]) {
        let mut seen = HashSet::new();
        for question in questions {
            let (decision, id) = (question.decision, question.decision.decision_id);
            let named =
                diagnostics.iter().find(|diagnostic| is_about(diagnostic, &id.to_string(), question.range));
            if (named.is_none() && !touch(range, question.range)) || !seen.insert(id) {
                continue;
            }
            for option in &decision.options {
                let guidance = answer_text(decision.options.iter().map(|o| o.option.as_str()), option.index);
                let params = json!({ "plan": decision.plan_id, "decision": id, "guidance": guidance });
                let mark = if option.chosen { " (proposed)" } else { "" };
                let title = format!("Answer \"{}\"{mark}", brief(&option.option, 60));
                let answer = command(&title, "agents.plan.prompt", params);
                self.add(ANSWER_KIND, answer, named.cloned(), option.chosen);
            }
            let params = json!({ "decision": id });
            let title = format!("Explain decision that waits: {}", brief(&decision.question, 60));
            if self.wanted(EXPLAIN_KIND) {
                self.add(EXPLAIN_KIND, command(&title, "agents.plan.explain", params), None, false);
            }
        }
    }

    /// One action per applied plan that is behind lines of the range.
    fn take_back(&mut self, world: &World, found: &Provenance, first: u32, last: u32) {
        let mut seen = HashSet::new();
        for place in found.within(first, last).filter(|p| !world.plans.contains_key(&p.segment.plan_id)) {
            let plan = place.segment.plan_id;
            if seen.insert(plan) {
                let name = links::plan_name(self.client, plan, &place.segment.action);
                let title = format!("Take plan {name} back");
                self.add(
                    PLAN_KIND,
                    command(&title, "agents.plan.revert", json!({ "plan": plan })),
                    None,
                    false,
                );
            }
        }
    }

    fn explanations(&mut self, found: &Provenance, first: u32, last: u32) {
        let mut seen = HashSet::new();
        for place in found.within(first, last) {
            let id = place.segment.decision_id;
            if seen.insert(id) {
                let title = format!("Explain decision: {}", brief(verdict(place).0, 60));
                let explain = command(&title, "agents.plan.explain", json!({ "decision": id }));
                self.add(EXPLAIN_KIND, explain, None, false);
            }
        }
    }
}

impl Offer<'_> {
    /// One action per other option of each decision behind the lines, while its plan can still be corrected.
    fn corrections(&mut self, world: &World, found: &Provenance, first: u32, last: u32) {
        let mut seen = HashSet::new();
        for place in found.within(first, last).filter(|p| world.plans.contains_key(&p.segment.plan_id)) {
            let Some(strategy) = &place.segment.strategy else { continue };
            if !seen.insert(strategy.decision_id) {
                continue;
            }
            let options = || strategy.alternatives.iter().map(String::as_str);
            for (at, option) in options().enumerate().filter(|(_, option)| *option != strategy.chosen) {
                let title = format!("Correct: choose \"{}\"", brief(option, 60));
                let guidance = answer_text(options(), at + 1);
                let params =
                    json!({ "decision": strategy.decision_id, "mode": "revert", "guidance": guidance });
                self.add(CORRECT_KIND, command(&title, "agents.plan.correct", params), None, false);
            }
            if self.client.is_interactive() {
                for (title, mode) in [("Correct with guidance…", "revert"), ("Append a fix…", "append")] {
                    if let Some(correct) = links::correction(title, place, world, mode) {
                        self.add(CORRECT_KIND, correct, None, false);
                    }
                }
            }
        }
    }
}

/// Whether a diagnostic is ours and of a decision; clients that drop `data` are told by the place.
fn is_about(diagnostic: &Diagnostic, decision: &str, range: Range) -> bool {
    let named = diagnostic.data.as_ref().and_then(|data| data.get("decision_id")).and_then(Value::as_str);
    let code = diagnostic.code.as_ref().is_some_and(
        |code| matches!(code, tower_lsp::lsp_types::NumberOrString::String(code) if code == CODE_PENDING),
    );
    code && named.map_or(diagnostic.range == range, |named| named == decision)
}

/// What to answer to choose the option of a number: its words where no other option has the same, else the number.
pub(crate) fn answer_text<'o>(options: impl Iterator<Item = &'o str>, number: usize) -> String {
    let folded: Vec<(String, &str)> = options.map(|option| (option.trim().to_lowercase(), option)).collect();
    match folded.get(number.wrapping_sub(1)) {
        Some((key, option))
            if !key.is_empty() && folded.iter().filter(|(other, _)| other == key).count() == 1 =>
        {
            (*option).to_owned()
        }
        _ => number.to_string(),
    }
}

/// The lines of a range; one that ends before the first character of a line does not hold that line.
fn lines_of(range: Range) -> (u32, u32) {
    let (first, last) = (range.start.line, range.end.line);
    if range.end.character == 0 && last > first { (first, last - 1) } else { (first, last) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_answered_by_its_words_unless_two_have_the_same() {
        let options = ["Fix", "Leave", "leave "];
        let answers: Vec<_> = (1..=3).map(|n| answer_text(options.into_iter(), n)).collect();
        assert_eq!(answers, ["Fix", "2", "3"]);
    }

    #[test]
    fn a_kind_is_wanted_by_its_own_name_and_by_what_it_is_part_of() {
        let client = ClientInfo::default();
        let wanted = |only: Option<&[&str]>, kind| {
            let only =
                only.map(|kinds| kinds.iter().map(|k| CodeActionKind::from((*k).to_owned())).collect());
            Offer { client: &client, only, actions: Vec::new() }.wanted(kind)
        };
        assert!(
            wanted(None, PLAN_KIND) && wanted(Some(&[""]), PLAN_KIND) && wanted(Some(&["agents"]), PLAN_KIND)
        );
        assert!(!wanted(Some(&["quickfix"]), PLAN_KIND) && !wanted(Some(&["agent"]), PLAN_KIND));
        assert!(!wanted(Some(&[]), PLAN_KIND));
    }
}
