//! A model that says which invariants are in force, and judges those that no machine can check.

use std::fmt::Write as _;
use std::sync::Arc;

use agents_domain::changes::FileDiff;
use agents_domain::ids::ResourceId;
use agents_domain::invariant::{Enforced, Invariant, Reconciled, SetAside, Why};
use agents_domain::ports::BoxFuture;
use agents_domain::ports::actor::{ActorFailure, Reconciler, Verdict};
use agents_domain::ports::model::{ChatMessage, ChatOptions, ChatRequest, Models};
use serde::Deserialize;
use serde_json::{Value, json};

use super::fence::fenced;
use super::prompts::Prompts;
use super::talk::bounded;

/// Characters of the changes that are judged.
const DIFF: usize = 120_000;

/// Asks a model.
pub struct ModelReconciler {
    /// `<provider>/<model>`; `None` when the configuration names none.
    pub model: Option<String>,
    /// Where models come from.
    pub models: Arc<dyn Models>,
    /// Where prompts come from.
    pub prompts: Prompts,
}

impl ModelReconciler {
    async fn ask<T: serde::de::DeserializeOwned>(
        &self,
        prompt: &str,
        text: String,
        schema: Value,
    ) -> Result<T, ActorFailure> {
        let name = self.model.as_deref().ok_or_else(|| {
            failure(
                "no model is chosen".to_owned(),
                vec!["agents config set actor.default.model <PROVIDER>/<MODEL>".to_owned()],
            )
        })?;
        let model = self.models.find(name).map_err(|f| failure(f.message, f.hints))?;
        let system = self.prompts.render(prompt, &[]).map_err(|why| failure(why, Vec::new()))?;
        let request = ChatRequest {
            system: Some(system),
            messages: vec![ChatMessage::User { text }],
            tools: Vec::new(),
            options: ChatOptions { response_format: Some(schema), ..ChatOptions::default() },
        };
        let reply = model
            .chat(&request, &mut |_| {})
            .await
            .map_err(|f| failure(format!("the model {name} did not answer: {}", f.message), f.hints))?;
        tracing::info!(
            model = name,
            tokens_in = reply.usage.input,
            tokens_out = reply.usage.output,
            cost_usd = reply.usage.usd,
            "the model was asked about invariants"
        );
        crate::models::schema::json_of(&reply.text)
            .and_then(|value| serde_json::from_value(value).map_err(|error| error.to_string()))
            .map_err(|why| failure(format!("the model {name} answered what does not fit: {why}"), Vec::new()))
    }
}

fn failure(message: String, hints: Vec<String>) -> ActorFailure {
    ActorFailure { message, category: "model".to_owned(), transient: false, hints }
}

#[derive(Deserialize)]
struct Aside {
    number: usize,
    by: usize,
    same: bool,
    reason: String,
}

#[derive(Deserialize)]
struct Asides {
    set_aside: Vec<Aside>,
}

#[derive(Deserialize)]
struct Judged {
    number: usize,
    kept: bool,
    evidence: String,
}

#[derive(Deserialize)]
struct Verdicts {
    verdicts: Vec<Judged>,
}

impl Reconciler for ModelReconciler {
    fn reconcile<'a>(
        &'a self,
        invariants: &'a [Invariant],
    ) -> BoxFuture<'a, Result<Reconciled, ActorFailure>> {
        Box::pin(async move {
            if invariants.len() < 2 {
                return Ok(Reconciled { effective: invariants.to_vec(), set_aside: Vec::new() });
            }
            let mut list = String::new();
            for (index, invariant) in invariants.iter().enumerate() {
                let fixed = if invariant.is_absolute() { ", may not be overridden" } else { "" };
                let scope = serde_json::to_value(invariant.scope).unwrap_or_default();
                let scope = scope.as_str().unwrap_or_default();
                let _ = writeln!(list, "{}. ({scope}{fixed}) {}", index + 1, invariant.text);
            }
            let schema = json!({
                "type": "object", "additionalProperties": false, "required": ["set_aside"],
                "properties": { "set_aside": { "type": "array", "items": {
                    "type": "object", "additionalProperties": false, "required": ["number", "by", "same", "reason"],
                    "properties": {
                        "number": { "type": "integer", "description": "The rule that is not in force" },
                        "by": { "type": "integer", "description": "The rule in force that takes its place" },
                        "same": { "type": "boolean", "description": "They say the same; else the contrary" },
                        "reason": { "type": "string", "description": "One sentence for people" }
                    }
                } } }
            });
            let asides: Asides = self.ask("reconciler", fenced(&bounded(&list, DIFF)), schema).await?;
            let at = |number: usize| number.checked_sub(1).and_then(|index| invariants.get(index));
            let mut reconciled = Reconciled::default();
            for aside in &asides.set_aside {
                let (Some(invariant), Some(by)) = (at(aside.number), at(aside.by)) else {
                    let message = format!(
                        "the model sets rule {} aside for rule {}; there are {}",
                        aside.number,
                        aside.by,
                        invariants.len()
                    );
                    return Err(failure(message, Vec::new()));
                };
                reconciled.set_aside.push(SetAside {
                    invariant: invariant.clone(),
                    by: by.invariant_id,
                    why: if aside.same { Why::Duplicate } else { Why::Overridden },
                    reason: aside.reason.clone(),
                });
            }
            let aside = |invariant: &&Invariant| {
                reconciled.set_aside.iter().all(|s| s.invariant.invariant_id != invariant.invariant_id)
            };
            reconciled.effective = invariants.iter().filter(aside).cloned().collect();
            Ok(reconciled)
        })
    }

    fn judge<'a>(
        &'a self,
        invariants: &'a [Enforced],
        changes: &'a [(ResourceId, FileDiff)],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, ActorFailure>> {
        Box::pin(async move {
            if invariants.is_empty() || changes.is_empty() {
                return Ok(Vec::new());
            }
            let mut text = String::from("# Rules\n");
            let mut list = String::new();
            for (index, invariant) in invariants.iter().enumerate() {
                let _ = writeln!(list, "{}. {}", index + 1, invariant.text);
            }
            let _ = writeln!(text, "{}\n\n# Changes", fenced(&list));
            let mut diff = String::new();
            for (_, file) in changes {
                let _ = writeln!(diff, "{}", serde_json::to_string(file).unwrap_or_default());
            }
            text.push_str(&fenced(&bounded(&diff, DIFF)));
            let schema = json!({
                "type": "object", "additionalProperties": false, "required": ["verdicts"],
                "properties": { "verdicts": { "type": "array", "items": {
                    "type": "object", "additionalProperties": false, "required": ["number", "kept", "evidence"],
                    "properties": {
                        "number": { "type": "integer" }, "kept": { "type": "boolean" },
                        "evidence": { "type": "string" }
                    }
                } } }
            });
            let judged: Verdicts = self.ask("judge", text, schema).await?;
            let verdicts = judged.verdicts.into_iter().filter_map(|judged| {
                let invariant = invariants.get(judged.number.checked_sub(1)?)?;
                Some(Verdict {
                    decision_id: invariant.decision_id,
                    kept: judged.kept,
                    evidence: judged.evidence,
                })
            });
            Ok(verdicts.collect())
        })
    }
}
