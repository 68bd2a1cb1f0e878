//! Text synchronisation over the wire.

use agents_lsp_server::testing::TestServer;
use serde_json::{Value, json};

use crate::support::{running, running_with, text};

fn encoded(encoding: &str) -> TestServer {
    running_with(TestServer::builder(), json!({ "general": { "positionEncodings": [encoding] } }))
}

fn edit(line: u64, start: u64, end: u64, text: &str) -> Value {
    json!({ "range": { "start": { "line": line, "character": start }, "end": { "line": line, "character": end } }, "text": text })
}

#[test]
fn a_document_lives_from_open_to_close() {
    let mut server = running();
    let uri = "file:///w/a%20b.py";
    server.open(uri, "python", "a = 1\n");
    server.change(uri, json!([edit(0, 4, 5, "2"), edit(1, 0, 0, "b = a\n")]));
    server.save(uri);
    // Another spelling, the same document.
    let found = server.request("test/text", json!({ "uri": "file:///w/a b.py" }));
    let expected =
        json!({ "text": "a = 2\nb = a\n", "version": 2, "language": "python", "saves": 1, "uri": uri });
    assert_eq!(found, expected);
    server.close(uri);
    assert_eq!(server.request("test/text", json!({ "uri": uri })), Value::Null);
}

#[test]
fn full_and_incremental_changes_mix_in_one_message() {
    let mut server = running();
    server.open("file:///a", "x", "one");
    server.change("file:///a", json!([edit(0, 0, 3, "two"), { "text": "three\n" }, edit(0, 5, 5, "!")]));
    assert_eq!(text(&mut server, "file:///a"), "three!\n");
}

#[test]
fn positions_count_in_the_negotiated_encoding() {
    for (encoding, after) in [("utf-8", 4), ("utf-16", 2), ("utf-32", 1)] {
        let mut server = encoded(encoding);
        server.open("file:///a", "x", "𝄞word é");
        server.change("file:///a", json!([edit(0, after, after, "+")]));
        assert_eq!(text(&mut server, "file:///a"), "𝄞+word é", "{encoding}");
        let position = json!({ "line": 0, "character": after + 1 });
        let hover = server.request(
            "textDocument/hover",
            json!({ "textDocument": { "uri": "file:///a" }, "position": position }),
        );
        assert_eq!(hover["contents"], "word");
        assert_eq!(hover["range"]["end"]["character"], after + 5);
    }
}

#[test]
fn positions_past_the_end_and_ranges_the_wrong_way_round_are_taken() {
    let mut server = running();
    server.open("file:///a", "x", "ab\r\ncd\rok");
    server.change(
        "file:///a",
        json!([edit(0, 99, 99, "!"), edit(1, 2, 0, "C"), edit(99, 0, 0, "."), edit(2, 99, 99, "#")]),
    );
    assert_eq!(text(&mut server, "file:///a"), "ab!\r\nC\rok.#");
}

#[test]
fn numbers_out_of_range_do_not_lose_the_edit() {
    let mut server = running();
    server.open("file:///a", "x", "ab\ncd");
    server.notify(
        "textDocument/didChange",
        json!({ "textDocument": { "uri": "file:///a", "version": 99_999_999_999_u64 }, "contentChanges": [{
            "range": { "start": { "line": -1, "character": -1 }, "end": { "line": 0, "character": 99_999_999_999_u64 } }, "text": "x",
        }] }),
    );
    let found = server.request("test/text", json!({ "uri": "file:///a" }));
    assert_eq!((&found["text"], &found["version"]), (&json!("x\ncd"), &json!(i32::MAX)));
}

#[test]
fn virtual_documents_are_documents() {
    let mut server = running();
    let uri = "agents:/plan/01ARZ3NDEKTSV4RRFFQ69G5FAV/diff";
    server.open(uri, "diff", "+ x\n");
    assert_eq!(text(&mut server, uri), "+ x\n");
    let position = json!({ "line": 0, "character": 2 });
    let hover =
        server.request("textDocument/hover", json!({ "textDocument": { "uri": uri }, "position": position }));
    assert_eq!(hover["contents"], "x");
}

#[test]
fn odd_synchronisation_is_survived() {
    let mut server = running();
    server.change("file:///never", json!([{ "text": "x" }]));
    server.close("file:///never");
    server.save("file:///never");
    server.open("no uri", "x", "x");
    server.notify("textDocument/didOpen", json!({ "textDocument": 3 }));
    server.notify("textDocument/didChange", Value::Null);
    server.open("file:///a", "x", "first");
    server.open("file:///a", "x", "second");
    assert_eq!(text(&mut server, "file:///a"), "second");
}

/// Many edits, each of which only makes sense after all before it, with requests in between.
#[test]
fn edits_of_several_documents_are_applied_in_their_order() {
    let mut server = running();
    let uris: Vec<String> = (0..4).map(|n| format!("file:///doc{n}.py")).collect();
    let mut models = vec![String::new(); 4];
    for uri in &uris {
        server.open(uri, "python", "");
    }
    let mut seed = 7u64;
    let mut checks = Vec::new();
    for n in 0..20_000u64 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let document = (seed >> 33) as usize % 4;
        let model = &mut models[document];
        let (at, cut) = ((seed >> 35) as usize % (model.len() + 1), (seed >> 50) as usize % 6);
        let end = (at + cut).min(model.len());
        let insert = if n % 50 == 49 { String::new() } else { format!("{:x}", n % 256) };
        model.replace_range(at..end, &insert);
        server.change(&uris[document], json!([edit(0, at as u64, end as u64, &insert)]));
        if n % 1000 == 0 {
            checks.push((server.send_request("test/text", json!({ "uri": uris[document] })), model.clone()));
        }
    }
    for (id, model) in checks {
        assert_eq!(server.response(id).unwrap()["text"], model);
    }
    for (uri, model) in uris.iter().zip(models) {
        assert_eq!(text(&mut server, uri), model);
    }
}

/// A text as lines of UTF-16 units, edited in the plainest way there is.
struct Model(Vec<Vec<u16>>);

impl Model {
    fn new(text: &str) -> Self {
        Self(text.split('\n').map(|line| line.encode_utf16().collect()).collect())
    }

    fn text(&self) -> String {
        let lines: Vec<String> = self.0.iter().map(|line| String::from_utf16(line).unwrap()).collect();
        lines.join("\n")
    }

    /// The nearest place at or before a column that is not inside a character.
    fn column(&self, line: usize, column: usize) -> usize {
        let units = &self.0[line];
        let column = column.min(units.len());
        let inside = units.get(column).is_some_and(|unit| (0xDC00..0xE000).contains(unit));
        column - usize::from(inside)
    }

    fn replace(&mut self, start: (usize, usize), end: (usize, usize), text: &str) {
        let mut put: Vec<u16> = self.0[start.0][..start.1].to_vec();
        put.extend(text.encode_utf16());
        put.extend(&self.0[end.0][end.1..]);
        let lines: Vec<Vec<u16>> = put.split(|unit| *unit == u16::from(b'\n')).map(<[u16]>::to_vec).collect();
        self.0.splice(start.0..=end.0, lines);
    }
}

#[test]
fn a_hundred_thousand_edits_in_four_documents_lead_to_the_same_texts_as_in_a_model() {
    const MESSAGES: usize = 10_000;
    const CHANGES: usize = 10;
    let mut server = running();
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut below = |limit: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % limit as u64).unwrap()
    };
    let uris: Vec<String> = (0..4).map(|n| format!("file:///w/{n}.py")).collect();
    let start = "word é𝄞 = 1\n".repeat(40);
    let mut models: Vec<Model> = uris.iter().map(|_| Model::new(&start)).collect();
    for uri in &uris {
        server.open(uri, "python", &start);
    }
    for message in 1..=MESSAGES {
        let at = below(uris.len());
        let model = &mut models[at];
        let mut changes = Vec::new();
        for _ in 0..CHANGES {
            // Short texts grow and long ones shrink.
            let (most, reach) = (model.0.len(), if model.0.len() > 80 { 6 } else { 2 });
            let first = below(most);
            let last = (first + below(reach)).min(most - 1);
            let from = model.column(first, below(14));
            let to = model.column(last, below(14));
            let (from, to) = if first == last { (from.min(to), from.max(to)) } else { (from, to) };
            let text = ["x", "", "a\nb", "𝄞é", "\n", "long enough to matter"][below(6)];
            model.replace((first, from), (last, to), text);
            changes.push(json!({
                "range": { "start": { "line": first, "character": from }, "end": { "line": last, "character": to } },
                "text": text,
            }));
        }
        server.change(&uris[at], json!(changes));
        if message % 1_000 == 0 {
            for (uri, model) in uris.iter().zip(&models) {
                assert_eq!(text(&mut server, uri), model.text(), "{uri} after message {message}");
            }
        }
    }
}
