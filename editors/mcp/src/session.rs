//! One client's session: its directory, the servers over it, and the calls.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agents_domain::language_server::LanguageServerDefinition;
use agents_domain::plan::State;
use agents_domain::ports::language_servers::{FileEvent, FileEventKind, LanguageWorkspace};
use agents_domain::text::FileEdit;
use agents_engine::Engine;
use agents_engine::operations::plan::Status;
use agents_tools::{Lens, LspTool, Workspace, delta};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::Options;
use crate::catalogue::{self, Lent};
use crate::scan::Seen;
use crate::write;

/// Between two looks at a plan that is waited for.
const LOOK: Duration = Duration::from_millis(100);
/// Seconds a plan is waited for unless said otherwise, and at most. Many clients give a call a minute.
const WAIT: (u64, u64) = (45, 600);

const INSTRUCTIONS: &str = "\
The lsp_* tools ask the language servers of this directory. Lines and columns count from 1; in place of a column give the \
name of the symbol. Before a change, lsp_impact shows what hangs on a symbol and lsp_preview_edit tries edits without \
writing them; after one, lsp_diagnostics says what is wrong. An empty list of diagnostics is clean only when `complete` is \
true. The plan_* tools make and follow plans that change code in a sandbox until they are applied: plan_use, plan_wait, \
plan_diff, plan_apply.";

/// See the module.
pub(crate) struct Session {
    engine: Arc<Engine>,
    options: Options,
    opened: Mutex<Option<Opened>>,
}

/// The servers over the directory.
struct Opened {
    definitions: Vec<LanguageServerDefinition>,
    workspace: Workspace,
    seen: Seen,
}

impl Session {
    pub(crate) fn new(engine: Arc<Engine>, options: Options) -> Self {
        Self { engine, options, opened: Mutex::new(None) }
    }

    /// Ends the servers.
    pub(crate) async fn close(&self) {
        if let Some(opened) = self.opened.lock().await.take() {
            opened.workspace.languages.close().await;
        }
    }

    fn lent(&self) -> Vec<(String, Lent)> {
        catalogue::lent(self.options.plans, self.options.write)
    }

    /// The servers over the directory, told of what changed there since the last call; opened anew when others are
    /// registered now, which ends those that were removed.
    async fn lens(&self) -> Result<Lens, String> {
        let engine = self.engine.clone();
        let registered =
            blocking(move || engine.language_servers()).await?.map_err(|error| error.to_string())?;
        let wanted = &self.options.servers;
        let definitions: Vec<_> = registered
            .into_iter()
            .filter(|server| wanted.is_empty() || wanted.contains(&server.name))
            .collect();
        let mut opened = self.opened.lock().await;
        if let Some(old) = opened.take_if(|old| old.definitions != definitions) {
            old.workspace.languages.close().await;
        }
        let opened = match &mut *opened {
            Some(opened) => opened,
            none => {
                let languages = self.engine.open_languages(&self.options.root, definitions.clone()).await;
                none.insert(Opened {
                    definitions,
                    workspace: self.workspace(languages),
                    seen: Seen::default(),
                })
            }
        };
        let (root, mut seen) = (self.options.root.clone(), std::mem::take(&mut opened.seen));
        let (seen, events) = blocking(move || {
            let events = seen.changes(&root);
            (seen, events)
        })
        .await?;
        opened.seen = seen;
        if !events.is_empty() {
            opened.workspace.languages.files_changed(&events).await;
        }
        Ok(Lens::new(vec![opened.workspace.clone()]))
    }

    fn workspace(&self, languages: Arc<dyn LanguageWorkspace>) -> Workspace {
        let root = self.options.root.clone();
        let name = root.file_name().map_or_else(|| "workspace".into(), |name| name.to_string_lossy());
        Workspace { name: name.into_owned(), id: root.to_string_lossy().into_owned(), root, languages }
    }

    async fn call(&self, lent: Lent, arguments: Value) -> Result<Value, String> {
        match lent {
            Lent::Lsp(tool) if tool.writes => self.write(tool, arguments).await,
            Lent::Lsp(tool) => tool.call(arguments, &self.lens().await?).await,
            Lent::Operation(operation) => {
                let engine = self.engine.clone();
                let answer = blocking(move || {
                    let answer = engine.call_json(operation.method, arguments);
                    // Whoever looks starts what nobody works on.
                    let _ = engine.ensure_workers();
                    answer
                });
                answer.await?.map_err(|error| explained(&error))
            }
            Lent::Wait => self.wait(&arguments).await,
        }
    }

    /// Runs a tool whose result is to be written, writes it, and says what that brought and took away.
    async fn write(&self, tool: &LspTool, arguments: Value) -> Result<Value, String> {
        let lens = self.lens().await?;
        let mut changes = tool.call(arguments, &lens).await?;
        let edits: Vec<FileEdit> =
            serde_json::from_value(changes["edits"].take()).map_err(|error| error.to_string())?;
        let workspace = lens.workspaces().first().cloned().ok_or("there is no workspace")?;
        let there = |path: &&String| workspace.languages.text(path).is_ok();
        let paths: Vec<String> = edits.iter().map(|edit| edit.path().to_owned()).collect();
        let before: Vec<String> = paths.iter().filter(there).cloned().collect();
        let snapshot = delta::take(&lens, &workspace, &before).await;
        let (root, written) = (self.options.root.clone(), edits.clone());
        blocking(move || write::write(&root, &written)).await??;
        // What is on disk now is told at once, and not taken for somebody else's change later.
        let lens = self.lens().await?;
        let kinds =
            paths.iter().map(|path| FileEvent { path: path.clone(), kind: kind(&self.options.root, path) });
        workspace.languages.files_changed(&kinds.collect::<Vec<_>>()).await;
        let after: Vec<String> = paths.iter().filter(there).cloned().collect();
        let delta = delta::take(&lens, &workspace, &after).await.since(&snapshot);
        if let Some(fields) = changes.as_object_mut() {
            fields.remove("edits");
            fields.insert("written".into(), json!(true));
            fields.insert("diagnostics".into(), json!(delta));
        }
        Ok(changes)
    }

    /// Waits until nobody works on a plan any more, or time is over.
    async fn wait(&self, arguments: &Value) -> Result<Value, String> {
        let plan = arguments["plan"].as_str().ok_or("say which plan is meant, as `plan`")?.to_owned();
        let seconds = arguments["timeout_seconds"].as_u64().unwrap_or(WAIT.0).min(WAIT.1);
        let until = Instant::now() + Duration::from_secs(seconds);
        loop {
            let (engine, asked) = (self.engine.clone(), plan.clone());
            let status = blocking(move || {
                let _ = engine.ensure_workers();
                engine.call(Status { plan: asked })
            });
            let status = status.await?.map_err(|error| explained(&error))?;
            let queued = matches!(status.state, State::Queued | State::Processing);
            let works = status.rewinding || queued && status.awaiting.is_none();
            if !works || Instant::now() >= until {
                let mut answer = serde_json::to_value(status).map_err(|error| error.to_string())?;
                answer["timed_out"] = json!(works);
                return Ok(answer);
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

fn kind(root: &Path, path: &str) -> FileEventKind {
    match root.join(path).exists() {
        true => FileEventKind::Changed,
        false => FileEventKind::Deleted,
    }
}

/// An error with what would help.
fn explained(error: &agents_domain::Error) -> String {
    let detail = error.detail.as_deref().map(|detail| format!("\n{detail}")).unwrap_or_default();
    let help = error.suggestions.iter().map(|help| format!("\n  {help}")).collect::<String>();
    format!("{error}{detail}{help}")
}

async fn blocking<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(run).await.map_err(|error| error.to_string())
}

impl rmcp::ServerHandler for Session {
    fn get_info(&self) -> ServerConfig {
        let named = Implementation::new("cleveragents", env!("CARGO_PKG_VERSION")).with_title("CleverAgents");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(named)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.lent().into_iter().map(|(name, lent)| catalogue::tool(name, lent)).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let (name, lent) = self.lent().into_iter().find(|(known, _)| known == name)?;
        Some(catalogue::tool(name, lent))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let found = self.lent().into_iter().find(|(name, _)| *name == request.name);
        let Some((name, lent)) = found else {
            return Err(ErrorData::invalid_params(format!("there is no tool `{}`", request.name), None));
        };
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        tracing::info!(tool = name, "a tool is called");
        let answer = tokio::select! {
            answer = self.call(lent, arguments) => answer,
            () = context.ct.cancelled() => Err("it was cancelled".to_owned()),
        };
        Ok(match answer {
            Ok(value) => CallToolResult::structured(value).into(),
            Err(why) => CallToolResult::error(vec![ContentBlock::text(why)]).into(),
        })
    }
}
