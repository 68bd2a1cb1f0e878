//! A run outside of a plan, from a message to its answer.

use std::collections::BTreeMap;

use agents_domain::ports::model::Models;
use serde_json::Value;

use super::plan::{Listener, ask};
use super::{Effect, Machine, Program, Status, Told, Toolbox};

/// Says something to an actor and waits for its answer. Tools are not run: whoever calls one is told so.
///
/// # Errors
/// Why the actor cannot answer.
pub async fn converse(
    program: &Program,
    machine: &mut Machine,
    message: &str,
    models: &dyn Models,
    listener: &dyn Listener,
) -> Result<String, String> {
    let toolbox = Toolbox::new(Vec::new(), &program.local_tools(), BTreeMap::new());
    machine.say(program, &toolbox, message);
    loop {
        let effects = machine.effects(program, &toolbox);
        match machine.status() {
            Status::Done => return Ok(machine.answer()),
            Status::Failed => return Err(machine.failure.clone().unwrap_or_default()),
            Status::Running => {}
        }
        let told = effects.iter().map(|effect| async move {
            match effect {
                Effect::Ask { task, agent, model, request, wait } => {
                    if !wait.is_zero() {
                        tokio::time::sleep(*wait).await;
                    }
                    let answer = ask(models, (agent, model), request, listener).await;
                    Told::Answer { task: *task, answer }
                }
                Effect::Call { task, id, tool, .. } => Told::Result {
                    task: *task,
                    id: id.clone(),
                    result: Err::<Value, _>(format!("the tool `{tool}` is run in plans only")),
                },
            }
        });
        // The answers in the order of the questions, whichever came first.
        let told = futures::future::join_all(told).await;
        machine.tell(program, &toolbox, told);
    }
}
