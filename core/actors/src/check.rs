//! Whether a write made files worse: more errors than before, in files that every server answered for.

use std::collections::BTreeMap;

use agents_domain::diagnostics::Severity;
use agents_domain::ports::actor::ActorWorkspace;
use agents_domain::ports::language_servers::{FileEvent, FileEventKind};
use agents_domain::words::count;

/// Errors by file.
pub(crate) type Errors = BTreeMap<String, usize>;

/// Errors of the files that every server answered for.
pub(crate) async fn errors(workspace: &ActorWorkspace, paths: &[String]) -> Errors {
    let mut errors = Errors::new();
    for (path, answers) in workspace.languages.diagnostics(paths).await {
        let counted: Option<Vec<usize>> = answers
            .iter()
            .map(|answer| {
                let found = answer.diagnostics.as_ref()?;
                Some(found.iter().filter(|d| d.severity == Severity::Error).count())
            })
            .collect();
        if let Some(counted) = counted {
            errors.insert(path, counted.iter().sum());
        }
    }
    errors
}

/// Tells the servers of written files, and says which is the first that has more errors than before.
pub(crate) async fn worse(workspace: &ActorWorkspace, before: &Errors, written: &[String]) -> Option<String> {
    let event = |path: &String| FileEvent { path: path.clone(), kind: FileEventKind::Changed };
    let events: Vec<FileEvent> = written.iter().map(event).collect();
    workspace.languages.files_changed(&events).await;
    let paths: Vec<String> = before.keys().cloned().collect();
    let now = errors(workspace, &paths).await;
    before.iter().find_map(|(path, before)| {
        let now = now.get(path)?;
        (now > before).then(|| format!("{path} has {} more", count(now - before, "error")))
    })
}
