//! One directory lent to actors with the servers that serve it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agents_domain::QualifiedName;
use agents_domain::diagnostics::Diagnostic;
use agents_domain::language_server::Capability;
use agents_domain::ports::BoxFuture;
use agents_domain::ports::code_intelligence::{
    Completions, Draft, Hierarchy, Place, PlaceQuestion, PlacedSymbol, Signature,
};
use agents_domain::ports::language_servers::{
    CodeActionOffer, FileDiagnostics, FileEvent, FileQuestion, FoundSymbol, LanguageWorkspace, ServerStatus,
    WorkspaceSpec,
};
use agents_domain::text::{FileEdit, Position, Range};
use futures::StreamExt;
use futures::future::join_all;
use futures::stream;

use crate::diagnostics::{Limits, diagnose};
use crate::instance::Instance;
use crate::preview::Preview;
use crate::runtime::{Pool, Timing};
use crate::{actions, files, intelligence, questions};

/// Files asked about at once at one server. Push servers settle a whole batch in one quiet time.
const WINDOW: usize = 64;

/// See [`LanguageWorkspace`].
#[derive(Debug)]
pub(crate) struct Workspace {
    root: PathBuf,
    limits: Limits,
    pool: Arc<Pool>,
    /// In order of preference.
    instances: Vec<Arc<Instance>>,
    closed: AtomicBool,
}

impl Workspace {
    pub(crate) fn open(pool: &Arc<Pool>, timing: Timing, spec: WorkspaceSpec) -> Self {
        // Servers resolve links themselves and would speak of other paths. A folder that is not there fails each start.
        let root = spec.root.canonicalize().unwrap_or(spec.root);
        let instances =
            spec.servers.iter().map(|definition| pool.acquire(definition, &root, timing)).collect();
        let limits = Limits { request: spec.request_timeout, start: spec.start_timeout };
        Self { root, limits, pool: pool.clone(), instances, closed: AtomicBool::new(false) }
    }

    fn serving(&self, path: &str) -> Vec<&Arc<Instance>> {
        let Some(language) = files::language(&self.root, path) else { return Vec::new() };
        self.instances
            .iter()
            .filter(|instance| files::serves(&instance.definition.languages, language))
            .collect()
    }

    /// A server by its name, for a question; nobody previews drafts there meanwhile.
    async fn turn(
        &self,
        server: &QualifiedName,
    ) -> Result<(&Arc<Instance>, tokio::sync::RwLockReadGuard<'_, ()>), String> {
        let instance = self.instance(server)?;
        Ok((instance, instance.speculation.read().await))
    }

    /// A server by its name, while the workspace is open.
    fn instance(&self, server: &QualifiedName) -> Result<&Arc<Instance>, String> {
        if self.closed.load(Ordering::SeqCst) {
            return Err("the workspace was closed".to_owned());
        }
        let found = self.instances.iter().find(|instance| instance.definition.name == *server);
        found.ok_or_else(|| format!("{server} is none of this workspace's servers"))
    }

    /// The instances nobody else uses, once.
    fn release(&self) -> Vec<&Arc<Instance>> {
        if self.closed.swap(true, Ordering::SeqCst) {
            return Vec::new();
        }
        self.instances.iter().filter(|instance| self.pool.release(instance)).collect()
    }

    async fn ask_server(
        &self,
        instance: &Arc<Instance>,
        paths: Vec<(usize, String)>,
    ) -> Vec<(usize, FileDiagnostics)> {
        let _turn = instance.speculation.read().await;
        self.ask_server_now(instance, paths).await
    }

    /// The same by whoever has the server to themselves.
    async fn ask_server_now(
        &self,
        instance: &Arc<Instance>,
        paths: Vec<(usize, String)>,
    ) -> Vec<(usize, FileDiagnostics)> {
        instance.forgive();
        let asked = paths.into_iter().map(|(at, path)| async move {
            let answer = match self.closed.load(Ordering::SeqCst) {
                true => Err("the workspace was closed".to_owned()),
                false => diagnose(instance, &path, self.limits).await,
            };
            let server = instance.definition.name.clone();
            let found = match answer {
                Ok(diagnostics) => FileDiagnostics { server, diagnostics: Some(diagnostics), problem: None },
                Err(problem) => FileDiagnostics { server, diagnostics: None, problem: Some(problem) },
            };
            (at, found)
        });
        stream::iter(asked).buffer_unordered(WINDOW).collect().await
    }

    async fn ask_all(&self, paths: &[String], drafts: &[Draft]) -> Vec<(String, Vec<FileDiagnostics>)> {
        let serving: Vec<Vec<&Arc<Instance>>> = paths.iter().map(|path| self.serving(path)).collect();
        let by_server =
            self.instances.iter().filter(|instance| instance.definition.lends(Capability::Diagnostics)).map(
                |instance| {
                    let of_server = |at: &usize| serving[*at].iter().any(|one| Arc::ptr_eq(one, instance));
                    let paths: Vec<_> =
                        (0..paths.len()).filter(of_server).map(|at| (at, paths[at].clone())).collect();
                    async move {
                        if drafts.is_empty() {
                            return self.ask_server(instance, paths).await;
                        }
                        let _preview = Preview::begin(instance, drafts, self.limits).await;
                        self.ask_server_now(instance, paths).await
                    }
                },
            );
        let mut answers: Vec<(String, Vec<FileDiagnostics>)> =
            paths.iter().map(|path| (path.clone(), Vec::new())).collect();
        for (at, found) in join_all(by_server).await.into_iter().flatten() {
            answers[at].1.push(found);
        }
        answers
    }
}

impl LanguageWorkspace for Workspace {
    fn servers_for(&self, path: &str) -> Vec<QualifiedName> {
        self.serving(path).into_iter().map(|instance| instance.definition.name.clone()).collect()
    }

    fn servers(&self) -> Vec<ServerStatus> {
        self.instances.iter().map(|instance| instance.status()).collect()
    }

    fn diagnostics<'a>(&'a self, paths: &'a [String]) -> BoxFuture<'a, Vec<(String, Vec<FileDiagnostics>)>> {
        Box::pin(self.ask_all(paths, &[]))
    }

    fn code_actions<'a>(
        &'a self,
        server: &'a QualifiedName,
        path: &'a str,
        diagnostic: &'a Diagnostic,
    ) -> BoxFuture<'a, Result<Vec<CodeActionOffer>, String>> {
        Box::pin(async move {
            let (instance, _turn) = self.turn(server).await?;
            if !instance.definition.lends(Capability::CodeActions) {
                return Err(format!("{server} is registered without the capability `code_actions`"));
            }
            actions::code_actions(instance, path, diagnostic, self.limits).await
        })
    }

    fn file_edits<'a>(
        &'a self,
        server: &'a QualifiedName,
        path: &'a str,
        question: FileQuestion,
    ) -> BoxFuture<'a, Result<Option<Vec<FileEdit>>, String>> {
        Box::pin(async move {
            let (instance, _turn) = self.turn(server).await?;
            questions::file_edits_for(instance, path, question, self.limits).await
        })
    }

    fn symbols<'a>(
        &'a self,
        server: &'a QualifiedName,
        path: &'a str,
    ) -> BoxFuture<'a, Result<Option<Vec<FoundSymbol>>, String>> {
        Box::pin(async move {
            let (instance, _turn) = self.turn(server).await?;
            questions::symbols(instance, path, self.limits).await
        })
    }

    fn rename<'a>(
        &'a self,
        server: &'a QualifiedName,
        path: &'a str,
        position: Position,
        new_name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Vec<FileEdit>>, String>> {
        Box::pin(async move {
            let (instance, _turn) = self.turn(server).await?;
            questions::rename(instance, path, position, new_name, self.limits).await
        })
    }

    fn languages(&self) -> Vec<(String, Vec<QualifiedName>)> {
        let mut languages: BTreeMap<String, Vec<QualifiedName>> = BTreeMap::new();
        for instance in &self.instances {
            for language in &instance.definition.languages {
                languages.entry(language.clone()).or_default().push(instance.definition.name.clone());
            }
        }
        languages.into_iter().collect()
    }

    fn text(&self, path: &str) -> Result<String, String> {
        files::read_text(&self.root, path)
    }

    fn places<'a>(
        &'a self,
        server: &'a QualifiedName,
        path: &'a str,
        position: Position,
        question: PlaceQuestion,
    ) -> BoxFuture<'a, Result<Option<Vec<Place>>, String>> {
        Box::pin(async move {
            let (instance, _turn) = self.turn(server).await?;
            intelligence::places(instance, path, position, question, self.limits).await
        })
    }

    fn hover<'a>(
        &'a self,
        server: &'a QualifiedName,
        path: &'a str,
        position: Position,
    ) -> BoxFuture<'a, Result<Option<String>, String>> {
        Box::pin(async move {
            let (instance, _turn) = self.turn(server).await?;
            intelligence::hover(instance, path, position, self.limits).await
        })
    }

    fn completions<'a>(
        &'a self,
        server: &'a QualifiedName,
        path: &'a str,
        position: Position,
    ) -> BoxFuture<'a, Result<Option<Completions>, String>> {
        Box::pin(async move {
            let (instance, _turn) = self.turn(server).await?;
            intelligence::completions(instance, path, position, self.limits).await
        })
    }

    fn signatures<'a>(
        &'a self,
        server: &'a QualifiedName,
        path: &'a str,
        position: Position,
    ) -> BoxFuture<'a, Result<Option<Vec<Signature>>, String>> {
        Box::pin(async move {
            let (instance, _turn) = self.turn(server).await?;
            intelligence::signatures(instance, path, position, self.limits).await
        })
    }

    fn workspace_symbols<'a>(
        &'a self,
        server: &'a QualifiedName,
        query: &'a str,
    ) -> BoxFuture<'a, Result<Option<Vec<PlacedSymbol>>, String>> {
        Box::pin(async move {
            let (instance, _turn) = self.turn(server).await?;
            intelligence::workspace_symbols(instance, query, self.limits).await
        })
    }

    fn hierarchy<'a>(
        &'a self,
        server: &'a QualifiedName,
        path: &'a str,
        position: Position,
        way: Hierarchy,
    ) -> BoxFuture<'a, Result<Option<Vec<PlacedSymbol>>, String>> {
        Box::pin(async move {
            let (instance, _turn) = self.turn(server).await?;
            intelligence::hierarchy(instance, path, position, way, self.limits).await
        })
    }

    fn actions_in<'a>(
        &'a self,
        server: &'a QualifiedName,
        path: &'a str,
        range: Range,
        diagnostics: &'a [Diagnostic],
    ) -> BoxFuture<'a, Result<Option<Vec<CodeActionOffer>>, String>> {
        Box::pin(async move {
            let (instance, _turn) = self.turn(server).await?;
            intelligence::actions_in(instance, path, range, diagnostics, self.limits).await
        })
    }

    fn preview<'a>(
        &'a self,
        drafts: &'a [Draft],
        paths: &'a [String],
    ) -> BoxFuture<'a, Vec<(String, Vec<FileDiagnostics>)>> {
        Box::pin(self.ask_all(paths, drafts))
    }

    fn files_changed<'a>(&'a self, events: &'a [FileEvent]) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let told = self.instances.iter().map(|instance| async move {
                let _turn = instance.speculation.read().await;
                instance.files_changed(events, self.limits.request).await;
            });
            join_all(told).await;
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            join_all(self.release().into_iter().map(|instance| instance.shut_down())).await;
        })
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        self.release().into_iter().for_each(|instance| instance.kill());
    }
}
