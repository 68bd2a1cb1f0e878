//! A folder with files, servers over it, and tools looking through them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use agents_domain::language_server::LanguageServerDefinition;
use agents_domain::ports::language_servers::{LanguageServers, WorkspaceSpec};
use agents_lsp_runtime::{Runtime, Timing};
use agents_tools::{Lens, Workspace};
use serde_json::{Value, json};

pub const LONG: Duration = Duration::from_secs(60);

pub struct World {
    pub folder: tempfile::TempDir,
    pub lens: Lens,
}

impl World {
    pub async fn new(files: &[(&str, &str)], servers: Vec<LanguageServerDefinition>) -> Self {
        Self::within(tempfile::tempdir().unwrap(), files, servers, Timing::default()).await
    }

    /// Files served by a fake server for Python with a script.
    pub async fn faked(files: &[(&str, &str)], script: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let definition = fake(folder.path(), "fake", script);
        Self::within(folder, files, vec![definition], Timing::default()).await
    }

    pub async fn within(
        folder: tempfile::TempDir,
        files: &[(&str, &str)],
        servers: Vec<LanguageServerDefinition>,
        timing: Timing,
    ) -> Self {
        let root = folder.path().join("root");
        std::fs::create_dir(&root).unwrap();
        for (path, text) in files {
            let file = root.join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        let spec = WorkspaceSpec { root: root.clone(), servers, request_timeout: LONG, start_timeout: LONG };
        let languages = Runtime::with_timing(timing).open(spec).await;
        let workspace = Workspace { name: "code".into(), id: "1".into(), root, languages };
        Self { folder, lens: Lens::new(vec![workspace]) }
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    pub async fn try_call(&self, tool: &str, arguments: Value) -> Result<Value, String> {
        let tool = agents_tools::find(tool).unwrap_or_else(|| panic!("there is no tool {tool}"));
        let answer = tool.call(arguments, &self.lens).await;
        if let Ok(answer) = &answer {
            let schema = serde_json::to_value((tool.output)()).unwrap();
            assert_eq!(deviation(&schema, &schema, answer), None, "{} {answer}", tool.name);
        }
        answer
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        let shown = arguments.to_string();
        self.try_call(tool, arguments).await.unwrap_or_else(|why| panic!("{tool} {shown}: {why}"))
    }

    pub async fn fails(&self, tool: &str, arguments: Value) -> String {
        match self.try_call(tool, arguments).await {
            Err(why) => why,
            Ok(answer) => panic!("{tool} answered {answer}"),
        }
    }

    pub async fn close(&self) {
        for workspace in self.lens.workspaces() {
            workspace.languages.close().await;
        }
    }

    /// The messages of one method that the fake server got.
    pub fn got(&self, method: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join("fake.log")).unwrap_or_default();
        text.lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .map(|entry| entry["in"].clone())
            .filter(|message| message["method"] == method)
            .collect()
    }
}

/// A definition of a fake server for Python.
pub fn fake(folder: &Path, name: &str, mut script: Value) -> LanguageServerDefinition {
    let at = |suffix: &str| folder.join(format!("{name}.{suffix}")).to_string_lossy().into_owned();
    script["log"] = json!(at("log"));
    std::fs::write(at("json"), script.to_string()).unwrap();
    definition(&format!("local/{name}"), &["python"], agents_fake_server::path(), &[&at("json")])
}

pub fn definition(
    name: &str,
    languages: &[&str],
    command: PathBuf,
    args: &[&str],
) -> LanguageServerDefinition {
    let entry = json!({ "name": name, "languages": languages, "command": command, "args": args });
    serde_json::from_value(entry).unwrap()
}

/// A tool that `tests/setup` brings.
pub fn tool(name: &str) -> PathBuf {
    let tools = std::env::var_os("AGENTS_TEST_TOOLS").expect("run tests/setup: AGENTS_TEST_TOOLS is not set");
    let program = PathBuf::from(tools).join("bin").join(name);
    assert!(program.exists(), "run tests/setup: {} is missing", program.display());
    program
}

/// The values of a key in a list of results.
pub fn each<'a>(answer: &'a Value, key: &str) -> Vec<&'a str> {
    answer["results"].as_array().unwrap().iter().filter_map(|one| one[key].as_str()).collect()
}

/// Where a value is not as its schema says: a required member that is missing, or one the schema does not know.
fn deviation(root: &Value, schema: &Value, value: &Value) -> Option<String> {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
        return deviation(root, &root["$defs"][name], value);
    }
    match value {
        Value::Array(items) => items.iter().find_map(|item| deviation(root, &schema["items"], item)),
        Value::Object(members) if schema["properties"].is_object() => {
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let mut missing = required.filter(|name| !members.contains_key(*name));
            if let Some(name) = missing.next() {
                return Some(format!("{name} is missing"));
            }
            members.iter().find_map(|(name, member)| match schema["properties"].get(name) {
                Some(of) => deviation(root, of, member),
                None => Some(format!("{name} is not in the schema")),
            })
        }
        _ => None,
    }
}
