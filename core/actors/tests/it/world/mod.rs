//! Files in memory, language servers that look at them, and an engine that carries requests out as the real one does.

mod engine;
mod languages;
mod lints;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use agents_domain::ids::ResourceId;
use agents_domain::ports::actor::{ActorFailure, ActorHost, ActorWorkspace, FileEntry, Progress};
use agents_domain::ports::model::ModelTrace;
use agents_domain::ports::tool::{Capability, ToolSpec};
use serde_json::json;

pub use engine::{Engine, engine};
pub use languages::{FakeLanguages, Found, Server, server};
pub use lints::{diagnostic, edit, in_file, lines, offer, ruff, unused_imports, word};

pub type Files = BTreeMap<String, String>;

/// Everything outside the actor.
pub struct World {
    pub files: Arc<Mutex<Files>>,
    pub servers: Vec<Server>,
    /// The first is over `files`; others are read-only.
    pub workspaces: Vec<ActorWorkspace>,
    /// The files of the others.
    pub beside: BTreeMap<ResourceId, Arc<Mutex<Files>>>,
    pub progress: Mutex<Vec<Progress>>,
    /// Calls of models.
    pub traces: Mutex<Vec<ModelTrace>>,
    /// Calls of `stopping` until it says yes, once.
    pub stop_in: AtomicUsize,
    pub languages: Arc<FakeLanguages>,
}

pub const RESOURCE: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
/// The resource beside it.
const BESIDE: &str = "01ARZ3NDEKTSV4RRFFQ69G5FBW";

pub fn resource() -> ResourceId {
    RESOURCE.parse().unwrap()
}

impl World {
    pub fn new(files: &[(&str, &str)], servers: Vec<Server>) -> Self {
        let files: Files = files.iter().map(|(path, text)| ((*path).into(), (*text).into())).collect();
        Self::over(Arc::new(Mutex::new(files)), servers)
    }

    /// The same files with fresh servers, as after a restart.
    pub fn restarted(&self) -> Self {
        let mut world = Self::over(self.files.clone(), self.servers.clone());
        world.workspaces[0].untouchable.clone_from(&self.workspaces[0].untouchable);
        world.workspaces[0].read_only = self.workspaces[0].read_only;
        for workspace in &self.workspaces[1..] {
            let files = self.beside[&workspace.resource_id].clone();
            world.put_beside(workspace.resource_id, &workspace.name, files);
        }
        world
    }

    fn over(files: Arc<Mutex<Files>>, servers: Vec<Server>) -> Self {
        let languages = Arc::new(FakeLanguages::new(files.clone(), servers.clone()));
        let workspace = ActorWorkspace {
            resource_id: resource(),
            name: "local/repo".to_owned(),
            root: "/sandbox".into(),
            read_only: false,
            languages: languages.clone(),
            untouchable: Vec::new(),
        };
        Self {
            files,
            servers,
            workspaces: vec![workspace],
            beside: BTreeMap::new(),
            progress: Mutex::default(),
            traces: Mutex::default(),
            stop_in: AtomicUsize::new(usize::MAX),
            languages,
        }
    }

    /// A resource that is linked read-only, with the same servers.
    #[must_use]
    pub fn beside(mut self, name: &str, files: &[(&str, &str)]) -> Self {
        let files: Files = files.iter().map(|(path, text)| ((*path).into(), (*text).into())).collect();
        self.put_beside(BESIDE.parse().unwrap(), name, Arc::new(Mutex::new(files)));
        self
    }

    fn put_beside(&mut self, resource_id: ResourceId, name: &str, files: Arc<Mutex<Files>>) {
        self.beside.insert(resource_id, files.clone());
        self.workspaces.push(ActorWorkspace {
            resource_id,
            name: name.to_owned(),
            root: "/beside".into(),
            read_only: true,
            languages: Arc::new(FakeLanguages::new(files, self.servers.clone())),
            untouchable: Vec::new(),
        });
    }

    pub fn text(&self, path: &str) -> String {
        self.files.lock().unwrap()[path].clone()
    }

    fn of(&self, resource: ResourceId) -> &Arc<Mutex<Files>> {
        self.beside.get(&resource).unwrap_or(&self.files)
    }
}

impl ActorHost for World {
    fn workspaces(&self) -> &[ActorWorkspace] {
        &self.workspaces
    }

    fn files(&self, resource: ResourceId) -> Result<Vec<FileEntry>, ActorFailure> {
        let files = self.of(resource).lock().unwrap();
        Ok(files
            .iter()
            .map(|(path, text)| FileEntry { path: path.clone(), size: text.len() as u64 })
            .collect())
    }

    fn read(&self, resource: ResourceId, path: &str) -> Result<Vec<u8>, ActorFailure> {
        let text = self.of(resource).lock().unwrap().get(path).cloned();
        text.map(String::into_bytes).ok_or_else(|| ActorFailure {
            message: format!("{path} is not there"),
            category: "io".to_owned(),
            transient: false,
            hints: Vec::new(),
        })
    }

    fn tools(&self) -> Vec<ToolSpec> {
        let capability = Capability { writes: true, checkpointable: true, ..Capability::default() };
        let input = json!({
            "type": "object", "required": ["resource", "edits"], "additionalProperties": false,
            "properties": { "resource": { "type": "string" }, "edits": { "type": "array", "items": { "type": "object" } } }
        });
        vec![ToolSpec {
            name: "builtin/apply-edits".to_owned(),
            description: "Edits files".to_owned(),
            input,
            group: None,
            capability,
        }]
    }

    fn asked(&self, trace: &ModelTrace) {
        self.traces.lock().unwrap().push(trace.clone());
    }

    fn progress(&self, progress: Progress) {
        self.progress.lock().unwrap().push(progress);
    }

    fn stopping(&self) -> bool {
        let left = self.stop_in.load(Ordering::SeqCst);
        match left {
            usize::MAX => false,
            0 => {
                self.stop_in.store(usize::MAX, Ordering::SeqCst);
                true
            }
            left => {
                self.stop_in.store(left - 1, Ordering::SeqCst);
                false
            }
        }
    }
}
