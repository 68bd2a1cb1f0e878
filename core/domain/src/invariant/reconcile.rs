//! From the invariants of all scopes to the ones in force: no word twice, and of two that contradict each other one.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Check, Invariant, Scope};
use crate::ids::InvariantId;

/// Why an invariant is not in force although it applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Another says the same.
    Duplicate,
    /// Another contradicts it and goes before it.
    Overridden,
}

/// An invariant that another one stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetAside {
    /// The one that is not in force.
    pub invariant: Invariant,
    /// The one in its place.
    pub by: InvariantId,
    /// Why.
    pub why: Why,
    /// Why, for people.
    pub reason: String,
}

/// The invariants in force, and what became of the others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reconciled {
    /// In force: the widest scope first, then in the order added.
    pub effective: Vec<Invariant>,
    /// The others.
    pub set_aside: Vec<SetAside>,
}

impl Reconciled {
    /// Checks an answer of a reconciler that may be wrong: every invariant is accounted for once, what is set aside
    /// names one in force, and nothing overrides a global invariant that may not be overridden.
    pub fn problem(&self, all: &[Invariant]) -> Option<String> {
        let effective: BTreeSet<InvariantId> = self.effective.iter().map(|i| i.invariant_id).collect();
        let aside = self.set_aside.iter().map(|s| s.invariant.invariant_id);
        let mut answered: Vec<InvariantId> = effective.iter().copied().chain(aside).collect();
        answered.sort_unstable();
        let mut asked: Vec<InvariantId> = all.iter().map(|i| i.invariant_id).collect();
        asked.sort_unstable();
        if answered != asked || effective.len() != self.effective.len() {
            return Some("it does not account for every invariant once".to_owned());
        }
        self.set_aside.iter().find_map(|aside| {
            let text = &aside.invariant.text;
            match self.in_force(aside.by) {
                None => Some(format!("it sets `{text}` aside for one that is not in force")),
                Some(by)
                    if aside.invariant.is_absolute() && aside.why == Why::Overridden && !by.is_absolute() =>
                {
                    Some(format!("it overrides `{text}`, which may not be overridden"))
                }
                Some(_) => None,
            }
        })
    }

    /// The invariant that is in force under an id.
    pub fn in_force(&self, id: InvariantId) -> Option<&Invariant> {
        self.effective.iter().find(|i| i.invariant_id == id)
    }
}

/// Those of `all` that apply to a plan with these projects, this action and this id.
pub fn collected(all: Vec<Invariant>, projects: &[String], action: &str, plan: &str) -> Vec<Invariant> {
    let applies = |i: &Invariant| {
        let target = i.target.as_deref();
        match i.scope {
            Scope::Global => true,
            Scope::Project => target.is_some_and(|t| projects.iter().any(|p| p == t)),
            Scope::Action => target == Some(action),
            Scope::Plan => target == Some(plan),
        }
    };
    all.into_iter().filter(applies).collect()
}

/// Reconciles by rule, without a model.
///
/// Goes before: a global invariant that may not be overridden, then plan, action, project, global; within a scope the
/// stricter of two about one thing, then the one added first. Of two the later one is set aside when
///
/// - it says the same: its text is the same but for case, spaces and a full stop, or it has the same checkable form;
/// - it contradicts: both have a checkable form about one and the same thing (the same paths, text, tool, validation, or
///   both a limit of lines or of files) and differ, or their sentences are the same but for a *not* or *never*.
///
/// All others are in force side by side.
pub fn reconcile(all: &[Invariant]) -> Reconciled {
    let mut ranked: Vec<(&Invariant, Option<Check>)> = all.iter().map(|i| (i, i.check())).collect();
    ranked.sort_by_key(|(invariant, check)| {
        (
            Reverse((invariant.is_absolute(), invariant.scope)),
            check.as_ref().map(Check::leniency),
            invariant.invariant_id,
        )
    });
    let mut kept: Vec<(&Invariant, Option<Check>)> = Vec::new();
    let mut set_aside = Vec::new();
    for (invariant, check) in ranked {
        let relation = kept.iter().find_map(|(other, others)| {
            let why = relation(invariant, check.as_ref(), other, others.as_ref())?;
            Some((*other, why))
        });
        match relation {
            None => kept.push((invariant, check)),
            Some((by, why)) => set_aside.push(SetAside {
                invariant: invariant.clone(),
                by: by.invariant_id,
                why,
                reason: reason(invariant, by, why),
            }),
        }
    }
    let mut effective: Vec<Invariant> = kept.into_iter().map(|(invariant, _)| invariant.clone()).collect();
    effective.sort_by_key(|i| (i.scope, i.invariant_id));
    Reconciled { effective, set_aside }
}

fn relation(one: &Invariant, a: Option<&Check>, other: &Invariant, b: Option<&Check>) -> Option<Why> {
    if normalised(&one.text) == normalised(&other.text) || (a.is_some() && a == b) {
        return Some(Why::Duplicate);
    }
    let contradict = match (a, b) {
        (Some(a), Some(b)) => a.subject() == b.subject(),
        _ => {
            let ((said, not), (others, others_not)) = (core(&one.text), core(&other.text));
            said == others && not != others_not
        }
    };
    contradict.then_some(Why::Overridden)
}

fn reason(one: &Invariant, by: &Invariant, why: Why) -> String {
    match why {
        Why::Duplicate => format!("the {} invariant says the same", by.scope.as_str()),
        Why::Overridden if by.is_absolute() && one.scope >= by.scope => {
            "the global invariant may not be overridden".to_owned()
        }
        Why::Overridden if one.scope == by.scope => "of one scope the stricter one holds".to_owned(),
        Why::Overridden => format!("{} goes before {}", by.scope.as_str(), one.scope.as_str()),
    }
}

/// A text without what does not count when two are compared.
pub fn normalised(text: &str) -> String {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    words.join(" ").trim_end_matches(['.', '!', ';', ' ']).to_owned()
}

/// A sentence without its *not*, and whether it had one.
fn core(text: &str) -> (String, bool) {
    let text = normalised(text);
    for start in ["do not ", "don't ", "never "] {
        if let Some(rest) = text.strip_prefix(start) {
            return (rest.to_owned(), true);
        }
    }
    for (with, without) in
        [(" must not ", " must "), (" must never ", " must "), (" should not ", " should ")]
    {
        if let Some((head, tail)) = text.split_once(with) {
            return (format!("{head}{without}{tail}"), true);
        }
    }
    (text.strip_prefix("always ").map_or(text.clone(), str::to_owned), false)
}
