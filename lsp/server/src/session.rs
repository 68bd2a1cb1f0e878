//! What is known of the client and its workspace, handed out as immutable snapshots.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::sync::watch;
use tower_lsp::lsp_types::Url;

use crate::documents::{
    DidChange, DidClose, DidOpen, DidSave, Document, DocumentUri, PositionEncoding, Text, UriError,
};
use crate::lock;

/// What the client said of itself in `initialize`. Capabilities stay raw JSON: lsp-types lacks or misspells some.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClientInfo {
    /// `clientInfo.name`, empty when it gave none.
    pub name: String,
    /// `clientInfo.version`.
    pub version: Option<String>,
    /// `capabilities`, as sent.
    pub capabilities: Value,
    /// `initializationOptions`, as sent.
    pub initialization_options: Value,
    /// `processId`, the process whose end ends the session.
    pub process_id: Option<u64>,
    /// `locale`, as in `en-GB`.
    pub locale: Option<String>,
}

impl ClientInfo {
    /// Whether the capability at a JSON pointer is offered: `true`, or anything but `false` and `null`.
    ///
    /// `client.supports("/workspace/codeLens/refreshSupport")`
    pub fn supports(&self, pointer: &str) -> bool {
        !matches!(self.capabilities.pointer(pointer), None | Some(Value::Null | Value::Bool(false)))
    }

    /// Whether the client shows `command:` links and asks a person for the words that a correction lacks.
    pub fn is_interactive(&self) -> bool {
        self.supports("/experimental/cleveragents/interactive")
    }

    fn from_params(params: &Value) -> Self {
        let text = |pointer: &str| params.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        Self {
            name: text("/clientInfo/name").unwrap_or_default(),
            version: text("/clientInfo/version"),
            capabilities: params.get("capabilities").cloned().unwrap_or_default(),
            initialization_options: params.get("initializationOptions").cloned().unwrap_or_default(),
            process_id: params.get("processId").and_then(Value::as_u64),
            locale: text("/locale"),
        }
    }
}

/// A workspace folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// Its URI.
    pub uri: DocumentUri,
    /// The name the client shows, else the last part of its path.
    pub name: String,
    /// Its path, where it has one.
    pub path: Option<PathBuf>,
}

impl Folder {
    fn new(uri: DocumentUri, name: Option<&str>) -> Self {
        let path = uri.to_path();
        let last = path.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        let name = name.map(str::to_owned).or(last).unwrap_or_else(|| uri.to_string());
        Self { uri, name, path }
    }

    fn from_value(folder: &Value) -> Option<Self> {
        let text = folder.get("uri")?.as_str()?;
        let uri = DocumentUri::parse(text)
            .inspect_err(|error| tracing::warn!(%error, "a workspace folder is left out"))
            .ok()?;
        Some(Self::new(uri, folder.get("name").and_then(Value::as_str)))
    }
}

/// `workspaceFolders`, else `rootUri`, else `rootPath`.
fn folders_of(params: &Value) -> Vec<Folder> {
    if let Some(folders) = params.get("workspaceFolders").and_then(Value::as_array) {
        return folders.iter().filter_map(Folder::from_value).collect();
    }
    let text = |key: &str| params.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let uri = text("rootUri").and_then(|uri| DocumentUri::parse(uri).ok());
    let uri = uri.or_else(|| DocumentUri::from_path(Path::new(text("rootPath")?)));
    uri.map(|uri| Folder::new(uri, None)).into_iter().collect()
}

/// The whole session at one moment. Immutable; taking one is a reference count.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    revision: u64,
    client: Arc<ClientInfo>,
    encoding: PositionEncoding,
    folders: Arc<[Folder]>,
    documents: HashMap<DocumentUri, Arc<Document>>,
}

impl Snapshot {
    /// Grows with every change of a document or of the folders.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The client.
    pub fn client(&self) -> &ClientInfo {
        &self.client
    }

    /// What positions count in, for the whole session.
    pub fn encoding(&self) -> PositionEncoding {
        self.encoding
    }

    /// The workspace folders in the client's order.
    pub fn folders(&self) -> &[Folder] {
        &self.folders
    }

    /// The innermost workspace folder that holds `path`.
    pub fn folder_of(&self, path: &Path) -> Option<&Folder> {
        let holds = |folder: &&Folder| folder.path.as_deref().is_some_and(|root| path.starts_with(root));
        let depth = |folder: &&Folder| folder.path.as_deref().map_or(0, |root| root.components().count());
        self.folders.iter().filter(holds).max_by_key(depth)
    }

    /// An open document.
    pub fn document(&self, uri: &DocumentUri) -> Option<&Arc<Document>> {
        self.documents.get(uri)
    }

    /// An open document by the URI of a typed request.
    pub fn document_at(&self, url: &Url) -> Option<&Arc<Document>> {
        self.documents.get(&DocumentUri::from_url(url))
    }

    /// All open documents, in no order.
    pub fn documents(&self) -> impl ExactSizeIterator<Item = &Arc<Document>> {
        self.documents.values()
    }

    /// A text of this session's encoding, for content that is not open in the client.
    pub fn text(&self, content: &str) -> Text {
        Text::new(content, self.encoding)
    }
}

tokio::task_local! {
    /// The snapshot taken when the message arrived that the current task handles.
    pub(crate) static ARRIVAL: Arc<Snapshot>;
}

/// Access to the session for handlers and background tasks. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SessionHandle {
    session: Arc<Session>,
}

#[derive(Debug)]
struct Session {
    current: Mutex<Arc<Snapshot>>,
    revision: watch::Sender<u64>,
}

impl SessionHandle {
    pub(crate) fn new() -> Self {
        let session = Session { current: Mutex::default(), revision: watch::Sender::new(0) };
        Self { session: Arc::new(session) }
    }

    /// In a handler: the session as it was when its message arrived, whatever has been edited since (in the handler's
    /// own task; take the snapshot before moving work elsewhere). Anywhere else: the session as it is now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        ARRIVAL.try_with(Arc::clone).unwrap_or_else(|_| self.latest())
    }

    /// The session as it is now, also in a handler.
    pub fn latest(&self) -> Arc<Snapshot> {
        lock(&self.session.current).clone()
    }

    /// Wakes whoever waits with the revision of the latest change of a document or of the folders. Changes coalesce:
    /// compare snapshots (versions, [`Document::saves`]) to see what happened.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.session.revision.subscribe()
    }

    pub(crate) fn begin(&self, params: &Value) {
        let client = ClientInfo::from_params(params);
        self.update(|snapshot| {
            snapshot.encoding = PositionEncoding::negotiate(&client.capabilities);
            snapshot.folders = folders_of(params).into();
            snapshot.client = Arc::new(client);
        });
    }

    /// Has positions count in UTF-16, which every client and server knows; only before the first document is opened.
    pub(crate) fn use_utf16(&self) {
        self.update(|snapshot| snapshot.encoding = PositionEncoding::Utf16);
    }

    pub(crate) fn open(&self, params: DidOpen<'_>) -> Result<(), SyncError> {
        let item = params.text_document;
        let uri = DocumentUri::parse(&item.uri)?;
        let replaced = self.update(|snapshot| {
            let text = snapshot.text(&item.text);
            let document = Document::new(uri.clone(), &item.language_id, item.version.get(), text);
            snapshot.documents.insert(uri.clone(), Arc::new(document))
        });
        match replaced {
            Some(_) => Err(SyncError::OpenTwice(uri)),
            None => Ok(()),
        }
    }

    pub(crate) fn change(&self, params: &DidChange<'_>) -> Result<(), SyncError> {
        self.edit(&params.text_document.uri, |document| document.change(params))
    }

    pub(crate) fn save(&self, params: &DidSave<'_>) -> Result<(), SyncError> {
        self.edit(&params.text_document.uri, Document::saved)
    }

    pub(crate) fn close(&self, params: &DidClose<'_>) -> Result<(), SyncError> {
        let uri = DocumentUri::parse(&params.text_document.uri)?;
        self.update(|snapshot| snapshot.documents.remove(&uri)).map(drop).ok_or(SyncError::NotOpen(uri))
    }

    /// Takes the `event` of `workspace/didChangeWorkspaceFolders`.
    pub(crate) fn change_folders(&self, params: &Value) {
        let list = |pointer: &str| {
            let folders = params.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
            folders.filter_map(Folder::from_value).collect::<Vec<_>>()
        };
        let (removed, added) = (list("/event/removed"), list("/event/added"));
        self.update(|snapshot| {
            let gone = |folder: &Folder| removed.iter().chain(&added).any(|other| other.uri == folder.uri);
            let kept = snapshot.folders.iter().filter(|folder| !gone(folder)).cloned();
            snapshot.folders = kept.chain(added.iter().cloned()).collect();
        });
    }

    fn edit(&self, uri: &str, edit: impl FnOnce(&mut Document)) -> Result<(), SyncError> {
        let uri = DocumentUri::parse(uri)?;
        let found = self.update(|snapshot| {
            snapshot.documents.get_mut(&uri).map(|document| edit(Arc::make_mut(document))).is_some()
        });
        if found { Ok(()) } else { Err(SyncError::NotOpen(uri)) }
    }

    /// Changes the session; snapshots taken before keep what they had.
    fn update<T>(&self, change: impl FnOnce(&mut Snapshot) -> T) -> T {
        let mut current = lock(&self.session.current);
        let snapshot = Arc::make_mut(&mut current);
        let outcome = change(snapshot);
        snapshot.revision += 1;
        self.session.revision.send_replace(snapshot.revision);
        outcome
    }
}

/// What was odd about a message of text synchronisation; reported, never answered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SyncError {
    #[error(transparent)]
    Uri(#[from] UriError),
    #[error("{0} was opened twice; the second text counts")]
    OpenTwice(DocumentUri),
    #[error("{0} is not open; the message is left out")]
    NotOpen(DocumentUri),
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn session(params: Value) -> SessionHandle {
        let session = SessionHandle::new();
        session.begin(&params);
        session
    }

    fn uris(snapshot: &Snapshot) -> Vec<&str> {
        snapshot.folders().iter().map(|folder| folder.uri.as_str()).collect()
    }

    #[test]
    fn workspace_folders_come_before_root_uri_and_that_before_root_path() {
        let mut params = json!({
            "rootPath": "/path", "rootUri": "file:///uri",
            "workspaceFolders": [{ "uri": "file:///one", "name": "1" }, { "uri": "no uri" }, { "uri": "file:///two" }],
        });
        let snapshot = session(params.clone()).snapshot();
        assert_eq!(uris(&snapshot), ["file:///one", "file:///two"]);
        assert_eq!(snapshot.folders()[0].name, "1");
        assert_eq!(snapshot.folders()[1].name, "two");
        params["workspaceFolders"] = Value::Null;
        assert_eq!(uris(&session(params.clone()).snapshot()), ["file:///uri"]);
        params["rootUri"] = Value::Null;
        assert_eq!(uris(&session(params).snapshot()), ["file:///path"]);
        assert!(uris(&session(json!({})).snapshot()).is_empty());
    }

    #[test]
    fn the_innermost_folder_holds_a_path() {
        let folders = json!([{ "uri": "file:///a" }, { "uri": "file:///a/b" }, { "uri": "agents:/plans" }]);
        let snapshot = session(json!({ "workspaceFolders": folders })).snapshot();
        let of = |path: &str| snapshot.folder_of(Path::new(path)).map(|folder| folder.uri.as_str());
        assert_eq!(of("/a/b/c.py"), Some("file:///a/b"));
        assert_eq!(of("/a/bc"), Some("file:///a"));
        assert_eq!(of("/z"), None);
    }

    #[test]
    fn a_capability_counts_as_offered_unless_it_is_absent_null_or_false() {
        let client = ClientInfo {
            capabilities: json!({ "a": { "b": true, "c": false, "d": {}, "e": null } }),
            ..Default::default()
        };
        assert_eq!(
            ["/a/b", "/a/c", "/a/d", "/a/e", "/x"].map(|p| client.supports(p)),
            [true, false, true, false, false]
        );
    }

    #[test]
    fn a_snapshot_never_changes_and_the_change_is_announced() {
        let session = session(json!({}));
        let mut changes = session.changes();
        let open = r#"{"textDocument":{"uri":"file:///a","text":"1"}}"#;
        session.open(serde_json::from_str(open).unwrap()).unwrap();
        assert!(changes.has_changed().unwrap());
        let before = session.snapshot();
        let change = r#"{"textDocument":{"uri":"file:///%61","version":2},"contentChanges":[{"text":"2"}]}"#;
        session.change(&serde_json::from_str(change).unwrap()).unwrap();
        let uri = DocumentUri::parse("file:///a").unwrap();
        assert_eq!(before.document(&uri).unwrap().text().to_string(), "1");
        assert_eq!(session.snapshot().document(&uri).unwrap().text().to_string(), "2");
        assert_eq!(*changes.borrow_and_update(), session.latest().revision());
    }

    #[test]
    fn folders_follow_the_clients_changes() {
        let session =
            session(json!({ "workspaceFolders": [{ "uri": "file:///a" }, { "uri": "file:///b" }] }));
        session.change_folders(&json!({ "event": {
            "removed": [{ "uri": "file:///%61" }], "added": [{ "uri": "file:///c" }, { "uri": "file:///b" }],
        }}));
        assert_eq!(uris(&session.snapshot()), ["file:///c", "file:///b"]);
    }
}
