//! Asking language servers in pieces: with progress, and with a look at whether the plan is to stop.

use agents_domain::QualifiedName;
use agents_domain::diagnostics::Diagnostic;
use agents_domain::ports::actor::{ActorHost, ActorWorkspace, Progress};
use agents_domain::ports::language_servers::{CodeActionOffer, LanguageWorkspace};
use futures::future::join_all;

use super::baseline::Answers;
pub(super) use crate::common::go_on;

use super::{Halt, clamp};

/// Files asked about at a time.
pub(super) const BATCH: usize = 64;
/// Fixes asked for at a time.
const ACTIONS_AT_A_TIME: usize = 16;

/// Shows progress.
pub(super) fn progress(host: &dyn ActorHost, label: &str, done: usize, total: usize) {
    host.progress(Progress { label: label.to_owned(), done: clamp(done), total: Some(clamp(total)) });
}

/// What the servers say about files.
pub(super) async fn diagnostics(
    host: &dyn ActorHost,
    workspace: &ActorWorkspace,
    paths: &[String],
    label: &str,
) -> Result<Answers, Halt> {
    let mut answers = Answers::new();
    for (at, batch) in paths.chunks(BATCH).enumerate() {
        go_on(host)?;
        progress(host, label, at * BATCH, paths.len());
        answers.extend(workspace.languages.diagnostics(batch).await);
    }
    Ok(answers)
}

/// What a server offers for diagnostics, in their order; `Err` is why it does not say.
pub(super) async fn actions(
    host: &dyn ActorHost,
    languages: &dyn LanguageWorkspace,
    server: &QualifiedName,
    of: &[(&str, &Diagnostic)],
    label: &str,
) -> Result<Vec<Result<Vec<CodeActionOffer>, String>>, Halt> {
    let mut answers = Vec::with_capacity(of.len());
    for chunk in of.chunks(ACTIONS_AT_A_TIME) {
        go_on(host)?;
        progress(host, label, answers.len(), of.len());
        let asked = chunk.iter().map(|(path, diagnostic)| languages.code_actions(server, path, diagnostic));
        answers.extend(join_all(asked).await);
    }
    Ok(answers)
}
