//! `agents lsp serve` as an editor meets it.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use agents_domain::event::NewEvent;
use agents_domain::plan::{Phase, State};
use agents_domain::ports::store::StoreExt;
use agents_e2e::{Editor, World, agents, memory_peak};
use agents_store::testing::{at, plan, root_decision};
use serde_json::{Value, json};

use crate::{Figure, fixtures, repeat};

/// What the measured client can do; refreshes, so that events come to it.
fn capabilities() -> Value {
    json!({
        "general": { "positionEncodings": ["utf-16"] },
        "textDocument": { "hover": { "contentFormat": ["markdown"] }, "codeLens": {}, "codeAction": {
            "codeActionLiteralSupport": { "codeActionKind": { "valueSet": [] } },
        } },
        "workspace": {
            "codeLens": { "refreshSupport": true }, "inlayHint": { "refreshSupport": true },
            "diagnostics": { "refreshSupport": true },
        },
    })
}

fn serve(world: &World) -> Editor {
    Editor::start(world.command(agents()).args(["lsp", "serve", "--log-level", "error"]))
}

pub fn measure() -> Vec<Figure> {
    let mut figures = vec![start()];
    figures.extend(features());
    figures.push(events());
    figures.push(edits());
    figures
}

fn start() -> Figure {
    let (world, _) = fixtures::many_plans();
    let folder = world.path("home");
    let mut peak = 0;
    let times: Vec<Duration> = (0..40)
        .map(|_| {
            let begun = Instant::now();
            let mut editor = serve(&world);
            editor.initialize(&folder, &capabilities());
            let took = begun.elapsed();
            peak = peak.max(memory_peak(editor.pid()).unwrap_or_default());
            took
        })
        .collect();
    let what = "process start to the answer to initialize, 10,000 plans in the database";
    Figure::times("lsp serve start", what, &times).budget("p99", 50.0).memory(Some(peak))
}

/// Hover, lens, code action and inlay hint on 100 open documents with 10,000 decisions.
fn features() -> Vec<Figure> {
    let (world, repo) = fixtures::decided_lines();
    let mut editor = serve(&world);
    editor.initialize(repo.path(), &capabilities());
    let uris: Vec<String> = (0..fixtures::FILES)
        .map(|file| format!("file://{}/pkg/file_{file}.py", repo.path().display()))
        .collect();
    for (file, uri) in uris.iter().enumerate() {
        editor.open(uri, "python", &repo.text(format!("pkg/file_{file}.py")));
    }
    let mut figures = Vec::new();
    for (name, method) in [
        ("own hover", "textDocument/hover"),
        ("own code lens", "textDocument/codeLens"),
        ("own code action", "textDocument/codeAction"),
        ("own inlay hint", "textDocument/inlayHint"),
    ] {
        let mut request = |nth: usize| {
            let uri = &uris[nth * 37 % uris.len()];
            let line = (nth * 2 % 200) as u32;
            let range =
                json!({ "start": { "line": line, "character": 0 }, "end": { "line": line, "character": 5 } });
            let mut params = json!({ "textDocument": { "uri": uri } });
            match method {
                "textDocument/hover" => params["position"] = range["start"].clone(),
                "textDocument/codeAction" => {
                    params["range"] = range;
                    params["context"] = json!({ "diagnostics": [] });
                }
                "textDocument/inlayHint" => {
                    params["range"] = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 60, "character": 0 } });
                }
                _ => {}
            }
            let answer = editor.request(method, &params);
            assert!(!answer.is_null() && answer != json!([]), "{method} on line {line} of {uri} has nothing");
        };
        // Every document is looked at once before, as an editor that shows it does.
        (0..uris.len()).for_each(&mut request);
        let mut nth = 0;
        let times = repeat(2000, || {
            request(nth);
            nth += 1;
        });
        let what = "request to answer, 100 open documents, 10,000 decisions";
        figures.push(Figure::times(name, what, &times).budget("p99", 5.0));
    }
    let peak = memory_peak(editor.pid());
    let megabytes = peak.unwrap_or_default() as f64 / 1e6;
    figures.push(
        Figure::values(
            "lsp serve memory",
            "most resident, 100 open documents, 10,000 decisions",
            "MB",
            vec![megabytes],
        )
        .budget("max", 60.0)
        .memory(peak),
    );
    figures
}

/// From the commit of an event by another process (this one) to the refresh the editor gets.
fn events() -> Figure {
    let (world, repo) = fixtures::decided_lines();
    let store = fixtures::store(world.data());
    let mut editor = serve(&world);
    editor.initialize(repo.path(), &capabilities());
    let uri = format!("file://{}/pkg/file_0.py", repo.path().display());
    editor.open(&uri, "python", &repo.text("pkg/file_0.py"));
    editor.request("textDocument/codeLens", &json!({ "textDocument": { "uri": uri } }));
    let times: Vec<Duration> = (0..100)
        .map(|nth| {
            let mut made = plan(1000 + nth);
            (made.phase, made.state) = (Phase::Execute, State::Complete);
            editor.unclaimed.clear();
            store
                .transact(|w| {
                    w.insert_plan(&made)?;
                    w.insert_decision(&root_decision(&made))?;
                    w.append_event(&NewEvent::of_plan("plan.created", &made, json!({})), at(nth))?;
                    Ok(())
                })
                .expect("a plan can be stored");
            let committed = Instant::now();
            let (came, _) = editor.wait_for("a refresh", Duration::from_secs(5), |message| {
                message["method"] == "workspace/codeLens/refresh"
            });
            // The next event shall not fall into the same moment of the server's clock.
            std::thread::park_timeout(Duration::from_millis(120 + nth % 29));
            came.saturating_duration_since(committed)
        })
        .collect();
    Figure::times(
        "event to refresh",
        "commit in another process to the refresh request in the editor",
        &times,
    )
    .budget("p99", 100.0)
    .memory(memory_peak(editor.pid()))
}

/// Edits of a fuzzer in four documents; the answer to a request after them says that all were taken in.
fn edits() -> Figure {
    const EDITS: usize = 100_000;
    let world = World::new();
    let repo = world.repo_with("repo", &[("a.py", "x = 1\n")]);
    world.register("app", &repo);
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut below = |limit: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % limit as u64) as usize
    };
    let text: String = (0..500).fold(String::new(), |mut text, n| {
        let _ = writeln!(text, "line_{n:03} = \"0123456789 abcdefghij\"");
        text
    });
    let uris: Vec<String> = (0..4).map(|n| format!("file://{}/doc_{n}.py", repo.path().display())).collect();
    let messages: Vec<Value> = (0..EDITS)
        .map(|nth| {
            let (line, column) = (below(499), below(20));
            let range = json!({
                "start": { "line": line, "character": column },
                "end": { "line": line, "character": column + below(3) },
            });
            let put = ["x", "yz", "", "\u{1f600}", "a\nb"][below(5)];
            json!({
                "jsonrpc": "2.0", "method": "textDocument/didChange", "params": {
                    "textDocument": { "uri": uris[below(4)], "version": nth + 2 },
                    "contentChanges": [{ "range": range, "text": put }],
                },
            })
        })
        .collect();
    let mut rates = Vec::new();
    let mut peak = None;
    for _ in 0..3 {
        let mut editor = serve(&world);
        editor.initialize(repo.path(), &capabilities());
        for uri in &uris {
            editor.open(uri, "python", &text);
        }
        editor.request("textDocument/codeLens", &json!({ "textDocument": { "uri": uris[0] } }));
        let begun = Instant::now();
        for message in &messages {
            editor.send(message);
        }
        editor.answer(
            "textDocument/hover",
            &json!({
                "textDocument": { "uri": uris[0] }, "position": { "line": 0, "character": 0 },
            }),
        );
        rates.push(EDITS as f64 / begun.elapsed().as_secs_f64());
        peak = memory_peak(editor.pid()).max(peak);
    }
    let what = "didChange, 100,000 edits in 4 documents, until a request after them is answered";
    Figure::values("edits per second", what, "1/s", rates).budget("least", 20_000.0).memory(peak)
}
