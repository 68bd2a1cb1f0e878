//! `workspace/executeCommand`: every operation of the engine by its name, and answering by a choice of buttons.

use std::sync::{Arc, mpsc};

use agents_domain::{Error, ErrorKind};
use agents_engine::OperationInfo;
use agents_engine::operations::plan::{Pending, PendingDecision, Prompt};
use serde_json::{Value, json};
use tower_lsp::jsonrpc;
use tower_lsp::lsp_types::ExecuteCommandParams;

use super::buffers::EDIT;
use super::code_action::answer_text;
use super::entity::register::REGISTER;
use super::{Shared, brief, content, refusal};
use crate::watch::Wake;

/// Asks a person with the options as buttons. No operation of the engine: the answer is one (`plan/prompt`).
pub(crate) const ANSWER: &str = "agents.decision.answer";

/// Every command there is, sorted.
pub(crate) fn names() -> Vec<String> {
    let operations = agents_engine::catalogue().iter().map(OperationInfo::command);
    let mut names: Vec<String> = operations.chain([ANSWER, EDIT, REGISTER].map(str::to_owned)).collect();
    names.sort();
    names
}

impl Shared {
    /// Carries a command out. It goes on to its end even when the client stops waiting.
    pub async fn execute_command(
        self: &Arc<Self>,
        params: ExecuteCommandParams,
        wake: &mpsc::Sender<Wake>,
    ) -> jsonrpc::Result<Option<Value>> {
        let (name, show) = (params.command.as_str(), shown(&params.arguments));
        let given = one_object(name, params.arguments).map_err(refusal)?;
        if name == ANSWER {
            return self.ask_person(given, wake).await.map(Some).map_err(refusal);
        }
        if name == EDIT {
            return self.edit_buffers(&given).await.map(Some).map_err(|error| self.refused(show, error));
        }
        let (method, given) = match name {
            REGISTER => {
                self.registration(&given).map(|(method, params)| (Some(method), params)).map_err(refusal)?
            }
            _ => (None, given),
        };
        let wanted =
            |o: &&OperationInfo| method.map_or_else(|| o.command() == name, |method| o.method == method);
        let Some(operation) = agents_engine::catalogue().iter().find(wanted) else {
            let error = Error::new(ErrorKind::OperationNotFound, format!("there is no command `{name}`"));
            let mut refused = refusal(error);
            // -32601 would say that the client may not execute commands at all.
            refused.code = jsonrpc::ErrorCode::InvalidParams;
            return Err(refused);
        };
        let done = self.blocking(move |engine| engine.call_json(operation.method, given)).await;
        // What was done is in the store; the editor need not wait for the next poll to see it.
        let _ = wake.send(Wake::Look);
        match done {
            Ok(output) => {
                if show {
                    self.show(operation.method, &output);
                }
                Ok(Some(output))
            }
            Err(error) => Err(self.refused(show, error)),
        }
    }

    /// A refusal that a person is told, too, where they are to see the result.
    fn refused(&self, show: bool, error: Error) -> jsonrpc::Error {
        if show {
            self.message(1, &error.message);
        }
        refusal(error)
    }

    /// Puts the options of a decision to a person and answers it with what they choose, whenever that is.
    async fn ask_person(
        self: &Arc<Self>,
        given: Value,
        wake: &mpsc::Sender<Wake>,
    ) -> agents_domain::Result<Value> {
        let id = given.get("decision").and_then(Value::as_str).map(str::to_owned);
        let id = id.ok_or_else(|| Error::validation(format!("{ANSWER} at `decision`: the id is missing")))?;
        let decision = self.blocking(move |engine| pending(engine, &id)).await?;
        let titles: Vec<String> = decision.options.iter().map(|option| brief(&option.option, 80)).collect();
        let params = json!({
            "type": 3,
            "message": format!("{} Proposed: {}", brief(&decision.question, 300), brief(&decision.proposed, 100)),
            "actions": titles.iter().map(|title| json!({ "title": title })).collect::<Vec<_>>(),
        });
        let id = decision.decision_id;
        let answer = self.client.request_raw::<Option<Value>>("window/showMessageRequest", params);
        let (shared, wake) = (self.clone(), wake.clone());
        tokio::spawn(async move {
            let Ok(Some(chosen)) = answer.await else { return };
            let number = titles.iter().position(|title| chosen["title"] == title.as_str()).map(|at| at + 1);
            let Some(number) = number else { return };
            let guidance = answer_text(decision.options.iter().map(|o| o.option.as_str()), number);
            let prompt =
                Prompt { plan: decision.plan_id.to_string(), guidance, decision: Some(id.to_string()) };
            let answered = shared.blocking(move |engine| engine.call(prompt)).await;
            let _ = wake.send(Wake::Look);
            if let Err(error) = answered {
                shared.message(1, &error.message);
            }
        });
        Ok(json!({ "pending": id }))
    }

    /// Shows a result to a person: as a document where the client can open ours, else as a message.
    fn show(&self, method: &str, output: &Value) {
        let snapshot = self.session.latest();
        let client = snapshot.client();
        let opens = client.supports("/window/showDocument/support")
            && client.supports("/workspace/textDocumentContent");
        match content::uri_of(method, output).filter(|_| opens) {
            Some(uri) => {
                let params = json!({ "uri": uri, "takeFocus": true });
                drop(self.client.request_raw::<Value>("window/showDocument", params));
            }
            None => {
                // Where a plan comes to is told by the watch; a second message would wait for a key in some editors.
                let told = MOVES.contains(&method) && self.settings.notifications();
                let notification = if told { "window/logMessage" } else { "window/showMessage" };
                let words = content::summary(method, output);
                self.client.notify_raw(notification, json!({ "type": 3, "message": words }));
            }
        }
    }

    /// `window/showMessage`; `kind` is 1 for an error, 2 for a warning, 3 for information.
    pub fn message(&self, kind: u8, message: &str) {
        self.client.notify_raw("window/showMessage", json!({ "type": kind, "message": message }));
    }
}

/// Operations after which the plan goes on by itself.
const MOVES: [&str; 7] = [
    "plan/execute",
    "plan/apply",
    "plan/prompt",
    "plan/cancel",
    "plan/correct",
    "plan/rollback",
    "plan/revert",
];

/// Whether a person is to see the result: `{"show": true}` as the second argument.
fn shown(arguments: &[Value]) -> bool {
    arguments.get(1).and_then(|hint| hint.get("show")).and_then(Value::as_bool).unwrap_or(false)
}

fn one_object(command: &str, arguments: Vec<Value>) -> agents_domain::Result<Value> {
    match arguments.into_iter().next() {
        None | Some(Value::Null) => Ok(json!({})),
        Some(object @ Value::Object(_)) => Ok(object),
        Some(other) => Err(Error::validation(format!(
            "{command} at `arguments[0]`: expected an object of parameters, found {}",
            kind_of(&other)
        ))),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn pending(engine: &agents_engine::Engine, id: &str) -> agents_domain::Result<PendingDecision> {
    let wanted = id.to_ascii_uppercase();
    let waiting = engine.call(Pending { plan: None })?.decisions;
    let mut found =
        waiting.into_iter().filter(|d| !wanted.is_empty() && d.decision_id.to_string().starts_with(&wanted));
    match (found.next(), found.next()) {
        (Some(decision), None) => Ok(decision),
        (Some(_), Some(_)) => {
            Err(Error::validation(format!("`{id}` is the start of several ids of decisions that wait")))
        }
        (None, _) => Err(Error::invalid_state(format!("decision {id} does not wait for an answer"))
            .suggest(format!("agents plan explain {id}"))),
    }
}
