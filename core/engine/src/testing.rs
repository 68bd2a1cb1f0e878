//! What tests of an engine need around it: a workspace without language servers, workers that are only asked for, git.

#![allow(clippy::unwrap_used, reason = "for tests: what fails here fails the test")]

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agents_domain::QualifiedName;
use agents_domain::diagnostics::Diagnostic;
use agents_domain::ids::PlanId;
use agents_domain::language_server::LanguageServerDefinition;
use agents_domain::ports::BoxFuture;
use agents_domain::ports::language_servers::{
    CodeActionOffer, FileDiagnostics, FileEvent, LanguageServers, LanguageWorkspace, ServerReport,
    ServerStatus, WorkspaceSpec,
};

use crate::WorkerSpawner;

/// Remembers which workers were asked for.
#[derive(Default)]
pub struct Asked(pub Mutex<Vec<PlanId>>);

impl WorkerSpawner for Asked {
    fn spawn(&self, plan: PlanId) -> Result<(), String> {
        self.0.lock().unwrap().push(plan);
        Ok(())
    }
}

/// A workspace that no server serves.
pub struct NoServers;

impl LanguageServers for NoServers {
    fn open(&self, _: WorkspaceSpec) -> BoxFuture<'_, Arc<dyn LanguageWorkspace>> {
        Box::pin(async { Arc::new(NoServers) as Arc<dyn LanguageWorkspace> })
    }

    fn check<'a>(
        &'a self,
        definition: &'a LanguageServerDefinition,
        root: Option<&'a Path>,
        _: Duration,
    ) -> BoxFuture<'a, ServerReport> {
        let root = root.map_or("no root".to_owned(), |root| root.display().to_string());
        let problem = Some(format!("no server runs here, in {root}"));
        Box::pin(async move { ServerReport { problem, ..ServerReport::new(definition) } })
    }
}

impl LanguageWorkspace for NoServers {
    fn servers_for(&self, _: &str) -> Vec<QualifiedName> {
        Vec::new()
    }

    fn servers(&self) -> Vec<ServerStatus> {
        Vec::new()
    }

    fn diagnostics<'a>(&'a self, paths: &'a [String]) -> BoxFuture<'a, Vec<(String, Vec<FileDiagnostics>)>> {
        Box::pin(async { paths.iter().map(|p| (p.clone(), Vec::new())).collect() })
    }

    fn code_actions<'a>(
        &'a self,
        _: &'a QualifiedName,
        _: &'a str,
        _: &'a Diagnostic,
    ) -> BoxFuture<'a, Result<Vec<CodeActionOffer>, String>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn files_changed<'a>(&'a self, _: &'a [FileEvent]) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// Runs git in a folder, as nobody in particular and without the machine's own configuration; what it printed.
///
/// # Panics
///
/// When git fails.
pub fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=T", "-c", "user.email=t@example.invalid", "-c", "commit.gpgsign=false"])
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}
