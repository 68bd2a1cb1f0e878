//! The index of source files: cold, unchanged, one file changed, and what it answers.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use agents_e2e::{Editor, World, agents, memory_peak};
use serde_json::{Value, json};

use crate::{Figure, commands, repeat};

/// A small generator of numbers: the same tree in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    fn word(&mut self) -> &'static str {
        WORDS[self.below(WORDS.len())]
    }

    fn name(&mut self) -> String {
        format!("{}_{}", self.word(), self.word())
    }
}

const WORDS: [&str; 40] = [
    "account", "batch", "cache", "channel", "client", "config", "context", "cursor", "decode", "digest",
    "encode", "engine", "entry", "event", "filter", "frame", "handle", "header", "index", "item", "label",
    "layout", "limit", "loader", "message", "metric", "node", "option", "parser", "payload", "queue",
    "record", "request", "result", "route", "schema", "session", "token", "value", "worker",
];

fn title(name: &str) -> String {
    let part = |part: &str| part[..1].to_uppercase() + &part[1..];
    name.split('_').map(part).collect()
}

/// A module of classes with documented methods.
fn python(dice: &mut Dice, packages: usize) -> String {
    let mut text = format!(
        "\"\"\"Handles the {} of a {}.\"\"\"\n\nimport os\nimport logging\n",
        dice.word(),
        dice.word()
    );
    for _ in 0..3 {
        let _ = writeln!(
            text,
            "from pkg_{}.{} import {}",
            dice.below(packages),
            dice.word(),
            title(&dice.name())
        );
    }
    text += "\nlogger = logging.getLogger(__name__)\nDEFAULT_LIMIT = 100\n";
    for _ in 0..1 + dice.below(3) {
        let class = title(&dice.name());
        let _ = write!(
            text,
            "\n\nclass {class}:\n    \"\"\"Keeps one {} for each {}.\"\"\"\n\n",
            dice.word(),
            dice.word()
        );
        let (a, b) = (dice.name(), dice.name());
        let _ = write!(
            text,
            "    def __init__(self, {a}, {b}=None):\n        self.{a} = {a}\n        self.{b} = {b} or {{}}\n"
        );
        for _ in 0..2 + dice.below(6) {
            let (method, argument, local) = (dice.name(), dice.name(), dice.name());
            let (x, y) = (dice.word(), dice.word());
            let _ = write!(
                text,
                "\n    def {method}(self, {argument}, *, {x}=DEFAULT_LIMIT):\n        \"\"\"Returns the {y} of {argument}, or nothing.\n\n        Raises ValueError when {x} is too small.\n        \"\"\"\n        if {x} < 1:\n            raise ValueError(f\"{x} is {{{x}}}\")\n        {local} = [entry.{y} for entry in {argument} if entry is not None]\n        for number, {y} in enumerate({local}):\n            self.{b}[number] = self.{a}.get({y}, number)\n            logger.debug(\"%s of %s\", number, len({local}))\n        return {local}[:{x}]\n"
            );
        }
    }
    let function = dice.name();
    let _ = write!(text, "\n\ndef {function}(path):\n    return os.path.join(path, \"{}\")\n", dice.word());
    text
}

/// A module of structs with documented methods.
fn rust(dice: &mut Dice, packages: usize) -> String {
    let mut text =
        format!("//! Handles the {} of a {}.\n\nuse std::collections::HashMap;\n", dice.word(), dice.word());
    for _ in 0..3 {
        let _ = writeln!(
            text,
            "use crate::pkg_{}::{}::{{{}, {}}};",
            dice.below(packages),
            dice.word(),
            title(&dice.name()),
            title(&dice.name())
        );
    }
    for _ in 0..1 + dice.below(3) {
        let name = title(&dice.name());
        let (a, b) = (dice.name(), dice.name());
        let _ = write!(
            text,
            "\n/// Keeps one {} for each {}.\n#[derive(Debug, Clone, Default)]\npub struct {name} {{\n    /// By number.\n    pub {a}: HashMap<u64, String>,\n    {b}: Vec<u64>,\n}}\n\nimpl {name} {{\n",
            dice.word(),
            dice.word()
        );
        for _ in 0..2 + dice.below(6) {
            let (method, argument, local) = (dice.name(), dice.name(), dice.name());
            let _ = write!(
                text,
                "    /// Returns what is known of {argument}.\n    ///\n    /// # Errors\n    /// When there is none.\n    pub fn {method}(&mut self, {argument}: &[u64]) -> Result<Vec<String>, String> {{\n        let mut {local} = Vec::with_capacity({argument}.len());\n        for number in {argument}.iter().filter(|number| **number > 1) {{\n            match self.{a}.get(number) {{\n                Some(found) => {local}.push(found.clone()),\n                None => return Err(format!(\"{{number}} is not known\")),\n            }}\n        }}\n        self.{b}.extend({argument});\n        Ok({local})\n    }}\n\n"
            );
        }
        text += "}\n";
    }
    text
}

/// Writes a tree of so many files, half Python, half Rust, a hundred to a folder; how many bytes.
fn tree(root: &Path, files: usize) -> u64 {
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let packages = files / 100;
    let mut bytes = 0;
    for n in 0..files {
        let folder = root.join(format!("pkg_{}", n / 100));
        if n % 100 == 0 {
            fs::create_dir_all(&folder).expect("a folder can be made");
        }
        let (ending, text) = match n % 2 {
            0 => ("py", python(&mut dice, packages)),
            _ => ("rs", rust(&mut dice, packages)),
        };
        bytes += text.len() as u64;
        fs::write(folder.join(format!("{}_{n}.{ending}", dice.word())), text).expect("a file can be written");
    }
    bytes
}

fn index(world: &World, root: &Path, more: &[&str]) -> Value {
    let output = world
        .command(agents())
        .args(["--format", "json", "lsp", "index", root.to_str().expect("a path")])
        .args(more)
        .stdin(Stdio::null())
        .output()
        .expect("agents can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Trees of 10,000 files, and with `INDEX_LARGE` set of 100,000 as well.
pub fn measure() -> Vec<Figure> {
    let mut figures = of(10_000, 10_000.0, 3);
    if std::env::var_os("INDEX_LARGE").is_some() {
        figures.extend(of(100_000, 120_000.0, 1));
    }
    figures
}

fn of(files: usize, cold: f64, runs: usize) -> Vec<Figure> {
    let world = World::new();
    let root = world.path("tree");
    let megabytes = tree(&root, files) as f64 / 1e6;
    let path = root.to_str().expect("a path");
    let described = format!("{files} files, {megabytes:.0} MB, half Python, half Rust");
    let mut out = Vec::new();
    let times = repeat(runs, || _ = index(&world, &root, &["--rebuild"]));
    let peak = commands::peak(&world, &["lsp", "index", path, "--rebuild"]);
    let what = format!("agents lsp index --rebuild, start to end of the process, {described}");
    out.push(Figure::times(&format!("index cold, {files}"), &what, &times).budget("max", cold).memory(peak));
    if files >= 100_000 {
        let memory = peak.unwrap_or_default() as f64 / 1e6;
        out.push(Figure::values("index memory", &described, "MB", vec![memory]).budget("max", 600.0));
    }
    let times = repeat(10, || _ = index(&world, &root, &[]));
    let what = format!("agents lsp index, nothing changed, {described}");
    let unchanged = Figure::times(&format!("index unchanged, {files}"), &what, &times);
    out.push(if files <= 10_000 { unchanged.budget("p99", 1000.0) } else { unchanged });
    out.extend(served(&world, &root, files, &described));
    out
}

/// What an editor gets of it.
fn served(world: &World, root: &Path, files: usize, described: &str) -> Vec<Figure> {
    let mut editor = Editor::start(world.command(agents()).args(["lsp", "serve", "--log-level", "error"]));
    editor.initialize(root, &json!({ "general": { "positionEncodings": ["utf-16"] } }));
    let mut figures = Vec::new();
    let folder = root.join("pkg_1");
    let file = fs::read_dir(&folder)
        .expect("the tree is there")
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|ending| ending == "py"))
        .expect("it has Python");
    let text = fs::read_to_string(&file).expect("it is text");
    let uri = format!("file://{}", file.display());
    editor.open(&uri, "python", &text);
    let places: Vec<(usize, usize)> =
        text.lines().enumerate().filter_map(|(line, text)| Some((line, text.find("self.")? + 6))).collect();
    let mut nth = 0;
    let mut position = || {
        nth += 1;
        let (line, character) = places[nth % places.len()];
        json!({ "line": line, "character": character })
    };
    let document = json!({ "uri": uri });
    for (name, method) in [
        ("symbols of a document", "textDocument/documentSymbol"),
        ("hover by syntax", "textDocument/hover"),
        ("definition", "textDocument/definition"),
        ("references", "textDocument/references"),
        ("symbols of the workspace", "workspace/symbol"),
    ] {
        let mut words = WORDS.iter().cycle();
        let mut ask = || {
            let params = match method {
                "textDocument/documentSymbol" => json!({ "textDocument": document }),
                "workspace/symbol" => {
                    json!({ "query": format!("{} {}", words.next().unwrap_or(&""), words.next().unwrap_or(&"")) })
                }
                _ => json!({
                    "textDocument": document, "position": position(), "context": { "includeDeclaration": true },
                }),
            };
            _ = editor.request(method, &params);
        };
        (0..20).for_each(|_| ask());
        let times = repeat(500, ask);
        let what = format!("request to answer in lsp serve, warm index of {described}");
        figures.push(Figure::times(&format!("{name}, {files}"), &what, &times).budget("p99", 5.0));
    }
    // What is open counts as the editor has it: another file.
    let file = file.with_file_name("changing.py");
    let uri = format!("file://{}", file.display());
    let fresh = |nth: usize| format!("fresh_{nth}_name");
    let times: Vec<Duration> = (0..30)
        .map(|nth| {
            fs::write(&file, format!("{text}\n\ndef {}():\n    pass\n", fresh(nth)))
                .expect("it can be written");
            let begun = std::time::Instant::now();
            editor.notify(
                "workspace/didChangeWatchedFiles",
                &json!({ "changes": [{ "uri": uri, "type": 2 }] }),
            );
            loop {
                let found = editor.request("workspace/symbol", &json!({ "query": fresh(nth) }));
                if found.as_array().is_some_and(|found| !found.is_empty()) {
                    return begun.elapsed();
                }
            }
        })
        .collect();
    let what = format!("change event to the first answer that knows of it, {described}");
    figures.push(Figure::times(&format!("one changed file, {files}"), &what, &times).budget("p99", 20.0));
    let first = figures.remove(0).memory(memory_peak(editor.pid()));
    figures.insert(0, first);
    figures
}
