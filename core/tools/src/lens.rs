//! What tools look through: workspaces with their language servers, as far as they are lent.

use std::sync::Arc;

use agents_domain::QualifiedName;
use agents_domain::language_server::Capability;
use agents_domain::ports::BoxFuture;
use agents_domain::ports::code_intelligence::Completions;
use agents_domain::ports::language_servers::LanguageWorkspace;

/// A workspace under a name.
#[derive(Clone)]
pub struct Workspace {
    /// What a tool's `resource` argument calls it.
    pub name: String,
    /// The same as an id; either does.
    pub id: String,
    /// Its absolute directory, so that absolute paths in arguments are understood.
    pub root: std::path::PathBuf,
    /// The servers over it.
    pub languages: Arc<dyn LanguageWorkspace>,
}

/// The workspaces of a plan or a session, with what of their servers is lent.
#[derive(Clone, Default)]
pub struct Lens {
    workspaces: Vec<Workspace>,
    capabilities: Option<Vec<Capability>>,
    servers: Option<Vec<QualifiedName>>,
}

/// A file of a workspace with the servers that are asked about it, in order of preference.
pub(crate) struct File<'a> {
    pub(crate) workspace: &'a Workspace,
    pub(crate) path: String,
    pub(crate) servers: Vec<QualifiedName>,
}

impl Lens {
    /// Everything that serves these workspaces.
    pub fn new(workspaces: Vec<Workspace>) -> Self {
        Self { workspaces, capabilities: None, servers: None }
    }

    /// Only these capabilities.
    #[must_use]
    pub fn with_capabilities(self, capabilities: Option<Vec<Capability>>) -> Self {
        Self { capabilities, ..self }
    }

    /// Only these servers.
    #[must_use]
    pub fn with_servers(self, servers: Option<Vec<QualifiedName>>) -> Self {
        Self { servers, ..self }
    }

    /// The workspaces.
    pub fn workspaces(&self) -> &[Workspace] {
        &self.workspaces
    }

    /// Whether a capability is lent.
    pub fn lends(&self, capability: Capability) -> bool {
        self.capabilities.as_deref().is_none_or(|lent| covers(lent, capability))
    }

    pub(crate) fn is_bound(&self, server: &QualifiedName) -> bool {
        self.servers.as_ref().is_none_or(|servers| servers.contains(server))
    }

    /// The workspace an argument names; without one, the only one.
    pub(crate) fn workspace(&self, resource: Option<&str>) -> Result<&Workspace, String> {
        let names = || self.workspaces.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", ");
        match (resource, self.workspaces.as_slice()) {
            (_, []) => Err("there is no workspace to look at".to_owned()),
            (None, [only]) => Ok(only),
            (None, _) => Err(format!("say which resource is meant, as `resource`: {}", names())),
            (Some(wanted), all) => {
                let found = all.iter().find(|one| one.name == wanted || one.id == wanted);
                found.ok_or_else(|| format!("there is no resource `{wanted}`; there is {}", names()))
            }
        }
    }

    /// The file an argument names, whichever servers it has.
    pub(crate) fn locate(&self, resource: Option<&str>, path: &str) -> Result<(&Workspace, String), String> {
        let absolute = std::path::Path::new(path).is_absolute();
        if absolute && resource.is_none() {
            let holds = |one: &&Workspace| std::path::Path::new(path).starts_with(&one.root);
            if let Some(workspace) = self.workspaces.iter().find(holds) {
                return Ok((workspace, relative(workspace, path)?));
            }
        }
        if let (None, false, true) = (resource, absolute, self.workspaces.len() > 1) {
            // The path alone tells when only one of them has such a file.
            let mut having = self.workspaces.iter().filter_map(|one| {
                let path = relative(one, path).ok()?;
                one.languages.text(&path).is_ok().then_some((one, path))
            });
            if let (Some(found), None) = (having.next(), having.next()) {
                return Ok(found);
            }
        }
        let workspace = self.workspace(resource)?;
        Ok((workspace, relative(workspace, path)?))
    }

    /// The file an argument names, with the servers that serve it; `Err` when none does.
    pub(crate) fn file(&self, resource: Option<&str>, path: &str) -> Result<File<'_>, String> {
        let (workspace, path) = self.locate(resource, path)?;
        let serving = workspace.languages.servers_for(&path);
        let servers: Vec<_> = serving.into_iter().filter(|server| self.is_bound(server)).collect();
        if servers.is_empty() {
            workspace.languages.text(&path)?;
            return Err(format!(
                "no language server is bound for {path}; {}",
                self.bound_languages(workspace)
            ));
        }
        Ok(File { workspace, path, servers })
    }

    fn bound_languages(&self, workspace: &Workspace) -> String {
        let languages = workspace.languages.languages().into_iter().filter_map(|(language, servers)| {
            let bound: Vec<String> =
                servers.iter().filter(|one| self.is_bound(one)).map(ToString::to_string).collect();
            (!bound.is_empty()).then(|| format!("{language} ({})", bound.join(", ")))
        });
        let languages: Vec<String> = languages.collect();
        match languages.is_empty() {
            true => "none is bound at all (`agents lsp list` shows the registered ones)".to_owned(),
            false => format!("bound are those for {}", languages.join(", ")),
        }
    }
}

impl File<'_> {
    /// The text as the servers see it.
    pub(crate) fn text(&self) -> Result<String, String> {
        self.workspace.languages.text(&self.path)
    }

    /// The first answer of the servers, in order, that `counts`; else the first answer at all. Those that do not do
    /// this are passed over, and so are those that fail while another answers. `Err` says what each said.
    async fn ask_in_order<'f, T>(
        &'f self,
        what: &str,
        counts: impl Fn(&T) -> bool,
        ask: impl Fn(&'f dyn LanguageWorkspace, &'f QualifiedName) -> BoxFuture<'f, Result<Option<T>, String>>,
    ) -> Result<(&'f QualifiedName, T), String> {
        let mut problems = Vec::new();
        let mut reserve = None;
        for server in &self.servers {
            match ask(&*self.workspace.languages, server).await {
                Ok(Some(answer)) if counts(&answer) => return Ok((server, answer)),
                Ok(Some(answer)) => _ = reserve.get_or_insert((server, answer)),
                Ok(None) => {}
                Err(problem) => problems.push(problem),
            }
        }
        match (reserve, problems.is_empty()) {
            (Some(answer), _) => Ok(answer),
            (None, false) => Err(problems.join("; ")),
            (None, true) => {
                let asked = crate::page::names(&self.servers);
                Err(format!("no server for {} offers {what}; asked: {asked}", self.path))
            }
        }
    }

    /// The first server that has something to say; the first one's empty answer when none has.
    pub(crate) async fn first<'f, T: Answer>(
        &'f self,
        what: &str,
        ask: impl Fn(&'f dyn LanguageWorkspace, &'f QualifiedName) -> BoxFuture<'f, Result<Option<T>, String>>,
    ) -> Result<(&'f QualifiedName, T), String> {
        self.ask_in_order(what, |answer| !answer.is_nothing(), ask).await
    }

    /// The first server that does this at all, whatever it answers.
    pub(crate) async fn owner<'f, T>(
        &'f self,
        what: &str,
        ask: impl Fn(&'f dyn LanguageWorkspace, &'f QualifiedName) -> BoxFuture<'f, Result<Option<T>, String>>,
    ) -> Result<(&'f QualifiedName, T), String> {
        self.ask_in_order(what, |_| true, ask).await
    }
}

/// An answer that may have nothing in it.
pub(crate) trait Answer {
    fn is_nothing(&self) -> bool;
}

impl Answer for String {
    fn is_nothing(&self) -> bool {
        self.is_empty()
    }
}

impl<T> Answer for Vec<T> {
    fn is_nothing(&self) -> bool {
        self.is_empty()
    }
}

impl Answer for Completions {
    fn is_nothing(&self) -> bool {
        self.items.is_empty()
    }
}

/// Whether lent capabilities hold a wanted one; `symbols` is both kinds of symbols.
pub(crate) fn covers(lent: &[Capability], wanted: Capability) -> bool {
    let symbols = matches!(wanted, Capability::DocumentSymbols | Capability::WorkspaceSymbols);
    lent.contains(&wanted) || symbols && lent.contains(&Capability::Symbols)
}

/// A path of an argument as the workspace names it; `Err` when it leaves it.
fn relative(workspace: &Workspace, path: &str) -> Result<String, String> {
    let given = std::path::Path::new(path);
    let inside = match given.is_absolute() {
        true => given.strip_prefix(&workspace.root).map_err(|_| {
            format!("{path} is outside of {}; give paths relative to it", workspace.root.display())
        })?,
        false => given,
    };
    let mut parts = Vec::new();
    for part in inside.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::Normal(part) => parts.push(part.to_string_lossy()),
            _ => return Err(format!("`{path}` is no path inside the workspace")),
        }
    }
    match parts.is_empty() {
        true => Err(format!("`{path}` names no file; give a path such as `src/main.py`")),
        false => Ok(parts.join("/")),
    }
}
