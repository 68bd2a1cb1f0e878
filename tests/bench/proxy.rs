//! What a proxied request costs beside a direct one: the same client, the same server, in turns.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use agents_e2e::{World, agents, fake_server};
use serde_json::{Value, json};

use crate::Figure;

const HOVERS: usize = 1000;
const COMPLETIONS: usize = 300;

/// A client that reads frames and looks no further than to their ids, so that it measures the way and not itself.
struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: i64,
}

impl Client {
    fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let input = child.stdin.take().expect("it is piped");
        let output = BufReader::with_capacity(64 << 10, child.stdout.take().expect("it is piped"));
        Self { child, input, output, next: 1 }
    }

    fn send(&mut self, message: &Value) {
        let body = message.to_string();
        let frame = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        self.input.write_all(frame.as_bytes()).expect("the server reads");
    }

    fn read(&mut self) -> Vec<u8> {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("headers are text") > 0, "the server ended");
            match line.trim_end().strip_prefix("Content-Length: ") {
                Some(digits) => length = digits.parse().expect("a length"),
                None if line.trim_end().is_empty() => break,
                None => {}
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).expect("a whole message");
        body
    }

    /// The length of the answer.
    fn request(&mut self, method: &str, params: &Value) -> usize {
        let id = self.next;
        self.next += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let (tight, wide) = (format!("\"id\":{id}"), format!("\"id\": {id}"));
        loop {
            let body = self.read();
            let ends = [&body[..body.len().min(100)], &body[body.len().saturating_sub(40)..]].concat();
            let ends = String::from_utf8_lossy(&ends).into_owned();
            if ends.contains(&tight) || ends.contains(&wide) {
                assert!(!ends.contains("\"error\""), "{method}: {ends}");
                return body.len();
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `rass` where `AGENTS_BENCH_RASS` names it; it is no tool of the tests.
fn peer() -> Option<PathBuf> {
    let peer = std::env::var_os("AGENTS_BENCH_RASS").map(PathBuf::from);
    if peer.is_none() {
        eprintln!("AGENTS_BENCH_RASS is not set: nothing to compare with (pip install rassumfrassum)");
    }
    peer
}

pub fn measure() -> Vec<Figure> {
    let world = World::new();
    let repo = world.repo_with("repo", &[("a.py", "alpha = 1\n")]);
    let item = |n: usize| {
        json!({
            "label": format!("completion_{n}"), "kind": 6, "sortText": format!("{n:05}"),
            "detail": "Literal[1]", "documentation": { "kind": "markdown", "value": "A \"value\" of the module." },
        })
    };
    let items: Vec<Value> = (0..1400).map(item).collect();
    let hover = json!({ "contents": { "kind": "markdown", "value": "```python\nint\n```" } });
    let script = json!({
        "diagnostics": "none",
        "capabilities": { "hoverProvider": true, "completionProvider": {} },
        "faults": [
            { "on": "textDocument/hover", "then": { "answer": hover } },
            { "on": "textDocument/completion", "then": { "answer": { "isIncomplete": false, "items": items } } },
        ],
    });
    world.fake("server", &script);
    let script = world.path("server.script.json");
    let direct = || {
        let mut command = world.command(fake_server());
        command.arg(&script);
        command
    };
    let piped = || {
        let mut command = world.command("sh");
        command.args(["-c", "cat | \"$0\" \"$1\" | cat"]).arg(fake_server()).arg(&script);
        command
    };
    let proxied = || {
        let mut command = world.command(agents());
        command.args(["lsp", "serve", "--proxy", "auto", "--log-level", "error"]);
        command
    };
    let mut ways = vec![("direct", direct()), ("cat", piped()), ("proxy", proxied())];
    if let Some(peer) = peer() {
        let mut command = world.command(peer);
        command.arg("--").arg(fake_server()).arg(&script);
        ways.push(("rass", command));
    }
    let uri = format!("file://{}/a.py", repo.path().display());
    let folder = format!("file://{}", repo.path().display());
    let mut clients: Vec<(&str, Client)> =
        ways.into_iter().map(|(name, command)| (name, Client::start(command))).collect();
    let at = json!({ "textDocument": { "uri": uri }, "position": { "line": 0, "character": 1 } });
    for (_, client) in &mut clients {
        let capabilities =
            json!({ "textDocument": { "hover": { "contentFormat": ["markdown"] }, "completion": {} } });
        client.request(
            "initialize",
            &json!({
                "processId": null, "rootUri": folder, "capabilities": capabilities,
                "workspaceFolders": [{ "uri": folder, "name": "repo" }],
            }),
        );
        client.send(&json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} }));
        let document = json!({ "uri": uri, "languageId": "python", "version": 1, "text": "alpha = 1\n" });
        let params = json!({ "textDocument": document });
        client.send(&json!({ "jsonrpc": "2.0", "method": "textDocument/didOpen", "params": params }));
    }
    let mut figures = Vec::new();
    for (name, method, times, least, budget) in [
        ("hover", "textDocument/hover", HOVERS, 50, 0.08),
        ("200 KB completion", "textDocument/completion", COMPLETIONS, 200_000, 0.3),
    ] {
        let mut samples: Vec<Vec<Duration>> = vec![Vec::new(); clients.len()];
        for nth in 0..times + 20 {
            for (at_way, (way, client)) in clients.iter_mut().enumerate() {
                let begun = Instant::now();
                let length = client.request(method, &at);
                let took = begun.elapsed();
                assert!(length > least, "{way}: {length} bytes");
                // The first ones warm up.
                if nth >= 20 {
                    samples[at_way].push(took);
                }
            }
        }
        let median = |samples: &[Duration]| {
            let mut sorted = samples.to_vec();
            sorted.sort_unstable();
            sorted[sorted.len() / 2].as_secs_f64() * 1e3
        };
        let base = median(&samples[0]);
        for ((way, _), samples) in clients.iter().zip(&samples) {
            figures.push(Figure::times(&format!("{name}, {way}"), "request to answer", samples));
            if *way != "direct" {
                let what = "over the median of a direct request, in the same run";
                let added = samples.iter().map(|one| one.as_secs_f64() * 1e3 - base).collect();
                let figure = Figure::values(&format!("{name}, added by {way}"), what, "ms", added);
                figures.push(if *way == "proxy" { figure.budget("p50", budget) } else { figure });
            }
        }
    }
    figures
}
