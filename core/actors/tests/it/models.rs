//! Chat models over the wire, asked of a server on this machine that behaves well and badly.

use std::time::{Duration, Instant};

use agents_actors::models::{Catalogue, Custom, Prices, Protocol, Settings};
use agents_domain::ports::model::{
    ChatDelta, ChatMessage, ChatOptions, ChatReply, ChatRequest, ModelCall, ModelFailure, ModelFailureKind,
    Models, StopReason,
};
use agents_domain::ports::tool::{Capability, ToolSpec};
use agents_model_server::Server;
use serde_json::{Value, json};

const KEY: &str = "sk-test-0123456789abcdefghij";

fn settings(server: &Server) -> Settings {
    let mut settings = Settings { max_retries: 2, ..Settings::default() };
    for provider in ["openai", "anthropic"] {
        settings.keys.insert(format!("provider.{provider}.api-key"), KEY.to_owned());
        settings.keys.insert(format!("provider.{provider}.base-url"), server.base());
    }
    let custom = |protocol| Custom { base_url: server.base(), api_key: None, protocol };
    settings.custom.insert("lab".to_owned(), custom(Protocol::Responses));
    settings
}

fn asks(text: &str) -> ChatRequest {
    let messages = vec![ChatMessage::User { text: text.to_owned() }];
    ChatRequest { system: Some("You help.".to_owned()), messages, ..ChatRequest::default() }
}

fn tool(name: &str) -> ToolSpec {
    let input = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    ToolSpec {
        name: name.to_owned(),
        description: "Reads".to_owned(),
        input,
        group: None,
        capability: Capability::default(),
    }
}

fn ask_all(
    settings: Settings,
    model: &str,
    request: &ChatRequest,
) -> (Result<ChatReply, ModelFailure>, Vec<ChatDelta>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let model = Catalogue::new(settings).find(model).unwrap();
    let mut pieces = Vec::new();
    let reply = runtime.block_on(model.chat(request, &mut |piece| pieces.push(piece)));
    (reply, pieces)
}

fn ask(server: &Server, model: &str, request: &ChatRequest) -> Result<ChatReply, ModelFailure> {
    ask_all(settings(server), model, request).0
}

/// The three protocols, streamed and whole, say the same.
#[test]
fn text_calls_thinking_and_usage_come_through_every_protocol() {
    let reply = json!({ "replies": [{
        "times": 0, "text": "Let me look.", "thinking": "A file.", "usage": {"input": 1000, "cached": 400, "output": 50},
        "calls": [{"tool": "lsp/hover", "args": {"path": "ä.py"}}, {"tool": "local/x.y", "args": {"path": "b"}}] }] });
    for model in ["openai/gpt-4.1", "anthropic/claude-sonnet-4-5", "lab/anything"] {
        for whole in [false, true] {
            let server = Server::start(reply.clone());
            let mut request = asks("look");
            request.tools = vec![tool("lsp/hover"), tool("local/x.y")];
            if whole {
                request.options.extra.insert("stream".to_owned(), json!(false));
            }
            let (answer, pieces) = ask_all(settings(&server), model, &request);
            let answer = answer.unwrap_or_else(|failure| panic!("{model} {whole}: {failure:?}"));
            assert_eq!(answer.text, "Let me look.", "{model} {whole}");
            let calls: Vec<(&str, &Value)> =
                answer.calls.iter().map(|c| (c.tool.as_str(), &c.arguments)).collect();
            assert_eq!(
                calls,
                [("lsp/hover", &json!({"path": "ä.py"})), ("local/x.y", &json!({"path": "b"}))]
            );
            assert_eq!(answer.stop, StopReason::Tools);
            let usage = answer.usage;
            assert_eq!((usage.input, usage.cached, usage.output), (1000, 400, 50), "{model} {whole}");
            assert_eq!(
                usage.usd.is_some(),
                model != "lab/anything",
                "a price that is not known is not guessed"
            );
            let sent = &server.asked()[0];
            assert_eq!(sent.body["stream"] == true, !whole);
            let names: Vec<&str> = sent.body["tools"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|t| t["function"]["name"].as_str().or_else(|| t["name"].as_str()))
                .collect();
            assert_eq!(names, ["lsp__hover", "local__x-y"]);
            if !whole {
                let said: String = pieces
                    .iter()
                    .filter_map(|p| if let ChatDelta::Text(t) = p { Some(t.as_str()) } else { None })
                    .collect();
                assert_eq!(said, "Let me look.", "{model}: the answer comes in pieces");
            }
        }
    }
}

// ACTOR-020, ACTOR-022
#[test]
fn what_nobody_asks_for_is_not_sent_and_options_are_sent_as_they_are() {
    let server = Server::start(json!({"replies": [{"times": 0, "text": "yes"}]}));
    ask(&server, "openai/gpt-4.1", &asks("a")).unwrap();
    let mut request = asks("b");
    request.options = ChatOptions {
        temperature: Some(0.5),
        max_tokens: Some(77),
        extra: json!({"top_p": 0.1, "seed": 7, "logit_bias": {"5": 1}}).as_object().unwrap().clone(),
        ..ChatOptions::default()
    };
    let limited = Settings { max_tokens: Some(60), ..settings(&server) };
    ask_all(limited, "openai/gpt-4.1", &request).0.unwrap();
    // A name that ends like an effort is a name.
    ask(&server, "openai/my-model-high", &asks("c")).unwrap();
    let asked = server.asked();
    for absent in ["temperature", "max_tokens", "top_p", "response_format", "tools", "reasoning_effort"] {
        assert!(asked[0].body.get(absent).is_none(), "{absent}");
    }
    let body = &asked[1].body;
    assert_eq!((&body["temperature"], &body["max_tokens"]), (&json!(0.5), &json!(60)), "GUARD-015");
    assert_eq!(
        (&body["top_p"], &body["seed"], &body["logit_bias"]),
        (&json!(0.1), &json!(7), &json!({"5": 1}))
    );
    assert_eq!(asked[2].body["model"], "my-model-high");
    assert!(asked[2].body.get("reasoning_effort").is_none(), "{}", asked[2].body);
}

#[test]
fn a_conversation_with_results_goes_back_whole_with_what_the_provider_wants_back() {
    for model in ["openai/gpt-4.1", "anthropic/claude-sonnet-4-5"] {
        let server = Server::start(json!({"replies": [
            {"when": {"turns": 0}, "thinking": "Which?", "calls": [{"tool": "lsp/hover", "args": {"path": "a"}}, {"tool": "lsp/hover", "args": {"path": "b"}}]},
            {"when": {"turns": 1, "contains": ["it is a", "it is b"]}, "text": "Both."}]}));
        let mut request = asks("look");
        request.tools = vec![tool("lsp/hover")];
        let first = ask(&server, model, &request).unwrap();
        request.messages.push(ChatMessage::Assistant {
            text: first.text,
            calls: first.calls.clone(),
            kept: first.kept,
        });
        for (call, text) in first.calls.iter().zip(["it is a", "it is b"]) {
            request.messages.push(ChatMessage::Tool { call_id: call.call_id.clone(), text: text.to_owned() });
        }
        assert_eq!(ask(&server, model, &request).unwrap().text, "Both.");
        let body = server.asked()[1].body.to_string();
        // Signed thinking has to go back; others refuse it.
        assert_eq!(
            body.contains("Which?") && body.contains("c2ln"),
            model.starts_with("anthropic"),
            "{body}"
        );
        assert!(body.contains("lsp__hover\""), "a tool keeps its name: {body}");
    }
}

#[test]
fn what_may_pass_is_tried_again_and_what_may_not_is_not() {
    let works = |fault: Value| json!({"replies": [{"fault": fault}, {"text": "here"}]});
    for fault in [
        json!({"status": 429, "retry_after": 0}),
        json!({"status": 500, "retry_after": 0.01}),
        json!({"status": 529}),
        json!({"cut": 3}),
        json!({"cut": 0}),
        json!({"malformed": true}),
        json!({"content_type": "text/html"}),
        json!({"event": "overloaded"}),
    ] {
        for model in ["openai/gpt-4.1", "anthropic/claude-sonnet-4-5"] {
            let mut script = works(fault.clone());
            script["replies"][0]["text"] = json!("never to be seen in the end");
            let server = Server::start(script);
            let (answer, pieces) = ask_all(settings(&server), model, &asks("x"));
            let answer = answer.unwrap_or_else(|failure| panic!("{fault} {model}: {failure:?}"));
            assert_eq!((answer.text.as_str(), answer.retries), ("here", 1), "{fault} {model}");
            assert!(pieces.iter().any(|p| matches!(p, ChatDelta::Again { .. })), "whoever watches is told");
            server.assert_all_used();
        }
    }
    use ModelFailureKind as K;
    for (status, kind) in
        [(400, K::Invalid), (401, K::Denied), (403, K::Denied), (404, K::Unknown), (422, K::Invalid)]
    {
        let server = Server::start(json!({"replies": [{"fault": {"status": status}}]}));
        let failure = ask(&server, "openai/gpt-4.1", &asks("x")).unwrap_err();
        assert_eq!((failure.kind, failure.retries), (kind, 0), "{status}: {failure:?}");
        assert_eq!(server.asked().len(), 1, "{status} is not tried again");
    }
    let server =
        Server::start(json!({"replies": [{"times": 0, "fault": {"status": 503, "retry_after": 0}}]}));
    let failure = ask(&server, "openai/gpt-4.1", &asks("x")).unwrap_err();
    assert_eq!((failure.kind, failure.retries, server.asked().len()), (K::Unavailable, 2, 3));
    assert!(failure.message.contains("asked 3 times"), "{failure}");
}

#[test]
fn the_wait_a_provider_asks_for_is_kept_to_and_a_long_one_is_not_waited_for() {
    let server = Server::start(json!({"replies": [
        {"fault": {"status": 429, "retry_after": 1.2}}, {"text": "here"}]}));
    let began = Instant::now();
    ask(&server, "openai/gpt-4.1", &asks("x")).unwrap();
    assert!(began.elapsed() >= Duration::from_millis(1200), "{:?}", began.elapsed());
    let server = Server::start(json!({"replies": [{"fault": {"status": 429, "retry_after": 3000}}]}));
    let failure = ask(&server, "openai/gpt-4.1", &asks("x")).unwrap_err();
    assert_eq!(failure.kind, ModelFailureKind::Limited);
}

#[test]
fn a_model_that_never_answers_is_given_up() {
    let server = Server::start(json!({"replies": [{"times": 0, "fault": {"hangs": true}}]}));
    let impatient =
        Settings { timeout: Some(Duration::from_millis(150)), max_retries: 1, ..settings(&server) };
    let failure = ask_all(impatient, "openai/gpt-4.1", &asks("x")).0.unwrap_err();
    assert_eq!(failure.kind, ModelFailureKind::Unavailable);
    let stalled = Settings { stall: Some(Duration::from_millis(150)), max_retries: 0, ..settings(&server) };
    let failure = ask_all(stalled, "openai/gpt-4.1", &asks("x")).0.unwrap_err();
    assert!(failure.message.contains("in time"), "{failure}");
}

#[test]
fn dropping_the_question_breaks_the_request_off() {
    let server = Server::start(json!({"replies": [{"text": "a long answer", "pace_ms": 2000}]}));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let model = Catalogue::new(settings(&server)).find("openai/gpt-4.1").unwrap();
    let request = asks("x");
    runtime.block_on(async {
        let mut watch = |_| {};
        let asked = model.chat(&request, &mut watch);
        tokio::select! { _ = asked => panic!("it was answered"), () = tokio::time::sleep(Duration::from_millis(300)) => {} }
    });
    drop((model, runtime));
    server.left(1);
}

#[test]
fn a_conversation_that_is_too_long_is_known_as_such() {
    for model in ["openai/gpt-4.1", "anthropic/claude-sonnet-4-5", "lab/x"] {
        let server = Server::start(json!({"replies": [{"fault": {"too_long": true}}]}));
        let failure = ask(&server, model, &asks("x")).unwrap_err();
        assert_eq!(failure.kind, ModelFailureKind::TooLong, "{model}: {failure}");
    }
}

// ACTOR-023
#[test]
fn an_answer_that_does_not_fit_its_schema_is_asked_for_once_more_and_then_fails() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false});
    let mut request = asks("how many?");
    request.options.response_format = Some(schema);
    let server = Server::start(
        json!({"replies": [{"text": "about five"}, {"when": {"contains": ["does not fit"]}, "text": "{\"n\": 5}"}]}),
    );
    let answer = ask(&server, "openai/gpt-4.1", &request).unwrap();
    assert_eq!((answer.text.as_str(), answer.usage.input), ("{\"n\": 5}", 200), "both calls are paid for");
    assert_eq!(server.asked()[0].body["response_format"]["type"], "json_schema");
    let server = Server::start(json!({"replies": [{"text": "five"}, {"text": "{\"n\": \"five\"}"}]}));
    let failure = ask(&server, "openai/gpt-4.1", &request).unwrap_err();
    assert_eq!(failure.kind, ModelFailureKind::Malformed);
    assert!(failure.message.contains("/n"), "{failure}");
    server.assert_all_used();
}

#[test]
fn arguments_that_are_no_json_are_handed_on_as_they_are() {
    let server =
        Server::start(json!({"replies": [{"calls": [{"tool": "lsp/hover", "raw": "{\"path\": "}]}]}));
    let mut request = asks("x");
    request.tools = vec![tool("lsp/hover")];
    let answer = ask(&server, "openai/gpt-4.1", &request).unwrap();
    assert_eq!(answer.calls[0].arguments, json!("{\"path\": "));
    // They can go back to the provider.
    let server = Server::start(json!({"replies": [{"text": "sorry"}]}));
    let call =
        ModelCall { call_id: "1".to_owned(), tool: "lsp/hover".to_owned(), arguments: json!("{\"path\": ") };
    request.messages.push(ChatMessage::Assistant {
        text: String::new(),
        calls: vec![call],
        kept: Value::Null,
    });
    request.messages.push(ChatMessage::Tool { call_id: "1".to_owned(), text: "no JSON".to_owned() });
    ask(&server, "openai/gpt-4.1", &request).unwrap();
}

// PROF keys, GUARD-007: what is missing is said with what to do.
#[test]
fn a_provider_that_is_not_set_up_says_what_to_do() {
    let catalogue = Catalogue::new(Settings::default());
    let failure = catalogue.find("openai/gpt-4.1").err().unwrap();
    assert_eq!(failure.kind, ModelFailureKind::Unknown);
    assert!(failure.hints.iter().any(|hint| hint.contains("OPENAI_API_KEY")), "{failure:?}");
    let failure = catalogue.find("nobody/x").err().unwrap();
    assert!(
        failure.message.contains("anthropic") && failure.hints[0].contains("provider.custom.nobody"),
        "{failure:?}"
    );
    assert!(catalogue.find("gpt-4.1").err().unwrap().message.contains("<provider>/<model>"));
    assert!(catalogue.find("ollama/llama3:8b").is_ok(), "a local one needs no key");
    let missing: Vec<String> =
        catalogue.providers().into_iter().filter(|p| p.missing.is_none()).map(|p| p.name).collect();
    assert_eq!(missing, ["ollama"]);
    let azure = Settings {
        keys: [("provider.azure.api-key".to_owned(), KEY.to_owned())].into(),
        ..Settings::default()
    };
    let failure = Catalogue::new(azure).find("azure/mine").err().unwrap();
    assert!(failure.message.contains("endpoint"), "{failure:?}");
}

#[test]
fn azure_is_asked_at_its_deployment_with_its_own_header() {
    let server = Server::start(json!({"replies": [{"text": "hi"}]}));
    let keys = [
        ("provider.azure.api-key", KEY.to_owned()),
        ("provider.azure.endpoint", server.url()),
        ("provider.azure.api-version", "2024-06-01".to_owned()),
    ];
    let settings =
        Settings { keys: keys.into_iter().map(|(k, v)| (k.to_owned(), v)).collect(), ..Settings::default() };
    ask_all(settings, "azure/mine", &asks("x")).0.unwrap();
    let asked = &server.asked()[0];
    assert_eq!(asked.path, "/openai/deployments/mine/chat/completions");
    assert_eq!(asked.header("api-key"), Some(KEY));
    assert_eq!(asked.header("authorization"), None);
}

#[test]
fn what_was_recorded_is_played_back_without_anybody_being_asked() {
    let folder = std::env::temp_dir().join(format!("cassettes-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let server = Server::start(json!({"replies": [{"text": "hello", "usage": {"input": 9, "output": 3}}]}));
    let recording = Settings {
        record: Some(folder.join("one.jsonl")),
        prices: Prices::parse(json!({"openai/*": {"input": 1.0, "output": 1.0}})).unwrap(),
        ..settings(&server)
    };
    let first = ask_all(recording, "openai/gpt-4.1", &asks("x")).0.unwrap();
    drop(server);
    let text = std::fs::read_to_string(folder.join("one.jsonl")).unwrap();
    assert!(!text.contains(KEY), "a key is not on a cassette");
    let playing = || Settings { cassettes: folder.clone(), ..Settings::default() };
    assert_eq!(ask_all(playing(), "replay/one", &asks("x")).0.unwrap(), first);
    let failure = ask_all(playing(), "replay/one", &asks("y")).0.unwrap_err();
    assert!(failure.message.contains("/messages/0/text"), "{failure}");
    let missing = Catalogue::new(playing()).find("replay/two").err().unwrap();
    assert!(missing.message.contains("two.jsonl"), "{missing}");
    std::fs::remove_dir_all(folder).unwrap();
}
