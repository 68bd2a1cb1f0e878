//! Servers that waited for an editor. Each test is named after what it proves. LSP-025, LSP-027, LSP-029

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use agents_domain::ports::language_servers::LanguageServers;
use agents_lsp_runtime::{PoolOptions, Runtime, WarmServers, pool_runs, serve_pool, stop_pool};
use agents_lsp_server::testing::TestServer;
use serde_json::{Value, json};

use crate::proxied::{LONG, Proxied, answer, at, fixed, script};

/// A pool in a thread of this process, and servers that are started through it.
struct Pooled {
    proxied: Proxied,
    folder: PathBuf,
    serving: Option<JoinHandle<()>>,
}

impl Pooled {
    fn new(script: Value) -> Self {
        let mut proxied = Proxied::new(&[("kept", script)]);
        let (folder, notes) = (proxied.beside("pool"), proxied.beside("notes"));
        let start = Arc::new(|| Err(std::io::Error::other("the pool runs already")));
        let warm = WarmServers { folder: folder.clone(), start };
        proxied.runtime = Runtime::new().noting_in(notes.clone()).with_warm_servers(warm);
        let options = PoolOptions { folder: folder.clone(), notes, idle: LONG, servers: 2 };
        let serving = std::thread::spawn(move || assert!(serve_pool(options).unwrap()));
        wait("the pool serves", || std::os::unix::net::UnixStream::connect(folder.join("pool.sock")).is_ok());
        Self { folder, serving: Some(serving), proxied }
    }

    /// How many servers wait.
    fn waiting(&self) -> usize {
        self.proxied.runtime.running().iter().filter(|server| server.warm).count()
    }

    /// An editor that opens `a.py`, asks once, and leaves; then another server waits.
    fn come_and_go(&self, unsaved: &str) {
        let mut editor = self.proxied.editor(fixed());
        let uri = self.proxied.open(&mut editor, "a.py");
        assert_eq!(editor.request("textDocument/hover", at(&uri)), hover());
        if !unsaved.is_empty() {
            editor.change(&uri, json!([{ "text": unsaved }]));
            self.proxied.wait_told("kept", "textDocument/didChange", 1);
        }
        editor.finish();
        wait("a server waits", || self.waiting() == 1);
    }

    /// What the present servers were told since the last of `starts`.
    fn told_since_start(&self, starts: usize) -> Vec<Value> {
        let log = self.proxied.log("kept");
        let begins: Vec<usize> = (0..log.len()).filter(|at| log[*at]["method"] == "initialize").collect();
        assert_eq!(begins.len(), starts, "{log:#?}");
        log[begins[starts - 1]..].to_vec()
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        stop_pool(&self.folder);
        if let Some(serving) = self.serving.take() {
            let _ = serving.join();
        }
    }
}

#[track_caller]
fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < end, "{what}: not in time");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

fn hover() -> Value {
    json!({ "contents": { "kind": "markdown", "value": "a number" } })
}

fn hovers(faults: Value) -> Value {
    let mut all = vec![answer("textDocument/hover", hover())];
    all.extend(faults.as_array().unwrap().clone());
    script(json!({ "hoverProvider": true, "formatting": null }), Value::Array(all))
}

fn methods(messages: &[Value]) -> Vec<&str> {
    messages.iter().filter_map(|message| message["method"].as_str()).collect()
}

#[test]
fn the_next_editor_takes_the_server_that_waits_and_it_has_never_seen_unsaved_text() {
    let pooled = Pooled::new(hovers(json!([])));
    pooled.come_and_go("unsaved = True\n");
    assert_eq!(pooled.proxied.starts("kept"), 2, "the one that saw the text has ended");
    let mut editor = pooled.proxied.editor(fixed());
    let uri = pooled.proxied.open(&mut editor, "a.py");
    assert_eq!(editor.request("textDocument/hover", at(&uri)), hover());
    assert_eq!((pooled.proxied.starts("kept"), pooled.waiting()), (2, 0));
    let told = pooled.told_since_start(2);
    // The first editor's file was read beforehand, and is closed when the second one comes.
    let sync: Vec<&str> =
        methods(&told).into_iter().filter(|method| method.starts_with("textDocument/did")).collect();
    assert_eq!(sync, ["textDocument/didOpen", "textDocument/didClose", "textDocument/didOpen"]);
    assert!(!json!(told).to_string().contains("unsaved = True"), "{told:#?}");
    assert_eq!(told[0]["params"]["processId"], Value::Null, "it must not leave with a client it watches");
    editor.finish();
    // As when it was started anew, another one waits afterwards.
    wait("a server waits", || pooled.waiting() == 1 && pooled.proxied.starts("kept") == 3);
}

#[test]
fn what_it_registered_and_what_changed_on_disk_meanwhile_is_known() {
    let register = json!({ "id": 1, "method": "client/registerCapability", "params": { "registrations": [
        { "id": "watch", "method": "workspace/didChangeWatchedFiles", "registerOptions": { "watchers": [{ "globPattern": "**/*.py" }] } },
        { "id": "format", "method": "textDocument/formatting" },
    ] } });
    let edits = json!([{ "range": { "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 0 } }, "newText": "#" }]);
    let mut script = hovers(json!([answer("textDocument/formatting", edits.clone())]));
    script["after_initialized"] = json!([register]);
    let pooled = Pooled::new(script);
    pooled.come_and_go("");
    pooled.proxied.desk.write("b.py", "delta = 4\n");
    pooled.proxied.desk.write("notes.txt", "not watched\n");
    let mut editor = pooled.proxied.editor(fixed());
    let uri = pooled.proxied.open(&mut editor, "a.py");
    let options =
        json!({ "textDocument": { "uri": uri }, "options": { "tabSize": 4, "insertSpaces": true } });
    assert_eq!(editor.request("textDocument/formatting", options), edits);
    let told = pooled.told_since_start(2);
    let changes: Vec<&Value> =
        told.iter().filter(|one| one["method"] == "workspace/didChangeWatchedFiles").collect();
    let changed = json!([{ "uri": pooled.proxied.desk.uri("b.py"), "type": 2 }]);
    assert_eq!(changes.len(), 1, "{told:#?}");
    assert_eq!(changes[0]["params"]["changes"], changed);
    editor.finish();
}

#[test]
fn a_server_that_cannot_be_told_of_changes_is_not_handed_over_after_one() {
    let pooled = Pooled::new(hovers(json!([])));
    pooled.come_and_go("");
    pooled.proxied.desk.write("b.py", "delta = 4\n");
    let mut editor = pooled.proxied.editor(fixed());
    let uri = pooled.proxied.open(&mut editor, "a.py");
    assert_eq!(editor.request("textDocument/hover", at(&uri)), hover());
    assert_eq!(pooled.proxied.starts("kept"), 3);
    editor.finish();
}

#[test]
fn another_client_or_another_definition_gets_a_server_of_its_own() {
    let mut pooled = Pooled::new(hovers(json!([])));
    pooled.come_and_go("");
    let ask = |pooled: &Pooled, capabilities: Value| {
        let mut editor = pooled.proxied.editor(capabilities);
        let uri = pooled.proxied.open(&mut editor, "a.py");
        assert_eq!(editor.request("textDocument/hover", at(&uri)), hover());
        editor.finish();
    };
    let mut other = fixed();
    other["textDocument"]["hover"] = json!({ "contentFormat": ["plaintext"] });
    ask(&pooled, other);
    wait("two servers wait", || pooled.waiting() == 2);
    assert_eq!(pooled.proxied.starts("kept"), 4);
    pooled.proxied.servers[0].env.insert("ANOTHER".to_owned(), "1".to_owned());
    ask(&pooled, fixed());
    // Two may wait; the one that waited longest has ended.
    wait("a sixth start", || pooled.proxied.starts("kept") == 6 && pooled.waiting() == 2);
}

#[test]
fn settings_that_are_others_than_those_it_was_told_are_told() {
    let mut script = hovers(json!([]));
    script["after_initialized"] = json!([{ "id": 7, "method": "workspace/configuration", "params": { "items": [{ "section": "kept" }] } }]);
    let pooled = Pooled::new(script);
    let mut capabilities = fixed();
    capabilities["workspace"] = json!({ "configuration": true });
    let visit = |setting: i64| -> TestServer {
        let mut editor = pooled.proxied.editor(capabilities.clone());
        // Our own settings first.
        let (id, _) = editor.expect_request("workspace/configuration", LONG);
        editor.respond(&id, &json!([null]));
        let uri = pooled.proxied.open(&mut editor, "a.py");
        let (id, params) = editor.expect_request("workspace/configuration", LONG);
        assert_eq!(params["items"], json!([{ "section": "kept" }]));
        editor.respond(&id, &json!([{ "level": setting }]));
        assert_eq!(editor.request("textDocument/hover", at(&uri)), hover());
        editor
    };
    visit(1).finish();
    wait("a server waits", || pooled.waiting() == 1);
    // It was told what the first editor said.
    let told = pooled.proxied.wait_answers("kept", 2);
    assert_eq!(told[1]["result"], json!([{ "level": 1 }]), "{told:#?}");
    let changes = || pooled.proxied.told("kept", "workspace/didChangeConfiguration").len();
    visit(1).finish();
    assert_eq!((pooled.proxied.starts("kept") >= 2, changes()), (true, 0));
    wait("a server waits", || pooled.waiting() == 1);
    let editor = visit(2);
    pooled.proxied.wait_told("kept", "workspace/didChangeConfiguration", 1);
    editor.finish();
}

#[test]
fn a_pool_that_others_could_reach_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let pooled = Pooled::new(hovers(json!([])));
    std::fs::set_permissions(&pooled.folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut editor = pooled.proxied.editor(fixed());
    let uri = pooled.proxied.open(&mut editor, "a.py");
    assert_eq!(editor.request("textDocument/hover", at(&uri)), hover());
    editor.finish();
    assert!(!stop_pool(&pooled.folder), "nobody speaks with it");
    std::fs::set_permissions(&pooled.folder, std::fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(pooled.proxied.starts("kept"), 1, "nothing is kept");
}

#[test]
fn one_pool_serves_and_a_socket_that_nobody_listens_on_is_replaced() {
    let pooled = Pooled::new(hovers(json!([])));
    let notes = pooled.proxied.beside("notes");
    let second = PoolOptions { folder: pooled.folder.clone(), notes: notes.clone(), idle: LONG, servers: 1 };
    assert!(pool_runs(&pooled.folder));
    assert!(!serve_pool(second).unwrap(), "there is one");
    // What a killed pool leaves behind.
    let stale = pooled.proxied.beside("stale");
    std::fs::create_dir(&stale).unwrap();
    std::fs::set_permissions(&stale, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    drop(std::os::unix::net::UnixListener::bind(stale.join("pool.sock")).unwrap());
    std::fs::write(stale.join("pool.lock"), "").unwrap();
    assert!(!pool_runs(&stale) && !stop_pool(&stale));
    let options = PoolOptions { folder: stale.clone(), notes, idle: LONG, servers: 1 };
    let serving = std::thread::spawn(move || serve_pool(options).unwrap());
    wait("it listens there", || pool_runs(&stale) && stop_pool(&stale));
    assert!(serving.join().unwrap());
    assert!(!stale.join("pool.sock").exists());
}
