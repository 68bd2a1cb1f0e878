//! Actors that people define: registering, listing, showing, removing.

use serde_json::json;

use crate::world::World;

const REVIEWER: &str = "\
name: local/reviewer
description: Reviews code
actors:
  reviewer:
    type: llm
    config:
      provider: openai
      model: ${REVIEW_MODEL:gpt-4}
      temperature: 0.2
    lsp: {languages: [python]}
";

const PIPELINE: &str = "\
name: local/pipeline
actors:
  first:
    type: llm
    config: {actor: local/reviewer}
  tool:
    type: tool
    config:
      tools:
        - name: count
          code: result = str(len(input_data))
routes:
  main:
    type: graph
    entry_point: a
    nodes:
      a: {type: agent, agent: first}
      b: {type: agent, agent: tool}
    edges: [[a, b]]
";

// CLI-152 to CLI-163, ACTOR-001, ACTOR-005, ACTOR-006, LSP-036
#[test]
fn actors_are_registered_listed_shown_and_removed() {
    let world = World::new();
    world.write("reviewer.yaml", REVIEWER);
    world.write("pipeline.yaml", PIPELINE);
    let early = world.refused(&["actor", "add", "--config", "pipeline.yaml"]);
    let why = early["error"]["message"].as_str().unwrap();
    assert!(why.starts_with("pipeline.yaml:5:21: there is no actor `local/reviewer`"), "{why}");

    let added = world.json(&["actor", "add", "--config", "reviewer.yaml"]);
    let data = &added["data"];
    assert_eq!(
        data["actor_added"],
        json!({"name": "local/reviewer", "provider": "openai", "model": "gpt-4", "default": true, "unsafe": false, "type": "graph"})
    );
    assert_eq!((&data["config"]["nodes"], &data["config"]["edges"]), (&json!(1), &json!(0)));
    assert_eq!(data["config"]["hash"].as_str().unwrap().len(), 7);
    assert_eq!(added["messages"][0]["text"], "Actor added");
    let again = world.refused(&["actor", "add", "--config", "reviewer.yaml"]);
    assert_eq!(again["data"]["error"]["message"], "Actor already exists: local/reviewer");
    assert_eq!(again["error"]["suggestions"][0], "agents actor add --update --config reviewer.yaml");
    let pipeline = world.json(&["actor", "add", "-c", "pipeline.yaml", "--unsafe"]);
    assert_eq!(pipeline["data"]["actor_added"]["default"], false);
    assert_eq!(pipeline["data"]["tools"], json!([{"tool": "count", "read_only": false, "safe": true}]));

    // A circle is refused when the second of two asks for the first.
    world.write(
        "circle.yaml",
        "name: local/reviewer\nactors:\n  a:\n    type: llm\n    config: {actor: local/pipeline}\n",
    );
    let circle = world.refused(&["actor", "add", "--update", "-c", "circle.yaml"]);
    assert_eq!(
        circle["error"]["message"],
        "actors need each other in a circle: local/reviewer -> local/pipeline -> local/reviewer"
    );
    let updated = world.json(&["actor", "add", "--update", "-c", "reviewer.yaml", "--skill", "local/files"]);
    assert_eq!(updated["data"]["actor_updated"]["status"], "updated");
    assert_eq!(
        updated["data"]["changes"],
        json!({"skills": "+1 (local/files)", "model": "unchanged", "graph": "unchanged"})
    );

    let listed = world.json(&["actor", "list"]);
    let actors = listed["data"]["actors"].as_array().unwrap();
    let find = |name: &str| actors.iter().find(|actor| actor["name"] == name).unwrap().clone();
    assert_eq!(find("openai/gpt-4")["builtin"], true);
    assert_eq!(find("local/pipeline")["unsafe"], true);
    assert_eq!(listed["data"]["summary"]["custom"], 2);

    let shown = world.json(&["actor", "show", "local/reviewer"]);
    assert_eq!(shown["data"]["options"]["temperature"], 0.2);
    assert_eq!(
        shown["data"]["graph_structure"],
        json!({"nodes": 1, "edges": 0, "entry": "reviewer", "exit": "reviewer"})
    );
    assert_eq!(shown["data"]["skills"], json!(["local/files"]));
    let missing = world.refused(&["actor", "show", "local/reviewr"]);
    assert_eq!(
        (&missing["error"]["code"], &missing["error"]["suggestions"][1]),
        (&json!("NOT_FOUND"), &json!("agents actor list"))
    );

    world.write("ruff.yaml", "name: ruff\nlanguages: [python]\ncommand: no-such-server\n");
    world.json(&["lsp", "add", "--config", "ruff.yaml"]);
    assert_eq!(world.json(&["lsp", "list"])["data"]["lsp_servers"][0]["bound_actors"], 1);
    assert_eq!(
        world.json(&["lsp", "show", "ruff"])["data"]["lsp_server"]["bound_actors"],
        json!([{"name": "local/reviewer", "binding_mode": "language_based", "language": "python"}])
    );

    assert_eq!(world.refused(&["actor", "remove", "openai/gpt-4"])["error"]["code"], "VALIDATION_FAILED");
    let removed = world.json(&["actor", "remove", "local/reviewer"]);
    assert_eq!(removed["data"]["broken_references"], json!([{"type": "actor", "name": "local/pipeline"}]));
    assert_eq!(removed["data"]["cleanup"]["config"], "kept on disk");
}

// ACTOR-055, G-18: what the environment says is looked up when it is needed and never kept
#[test]
fn the_environment_is_asked_and_never_kept() {
    let mut world = World::new();
    world.write("secret.yaml", "name: local/secret\nactors:\n  a:\n    type: llm\n    config:\n      actor: openai/gpt-4\n      system_prompt: The key is ${MY_SECRET}\n      options: {token: \"${MY_SECRET}\"}\n");
    let unset = world.refused(&["actor", "add", "--config", "secret.yaml"]);
    assert!(unset["error"]["detail"].as_str().unwrap().contains("`MY_SECRET` is not set"), "{unset:#}");
    world.env.insert("MY_SECRET", "sesame-4711".to_owned());
    world.json(&["actor", "add", "--config", "secret.yaml"]);
    let shown = world.run_in("json", &["actor", "show", "local/secret"]);
    assert!(!shown.stdout.contains("sesame"), "{}", shown.stdout);
    for entry in std::fs::read_dir(world.data()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            assert!(!bytes.windows(11).any(|part| part == b"sesame-4711"), "{}", path.display());
        }
    }
    // Without the variable, the list says what is wrong and goes on.
    world.env.remove("MY_SECRET");
    let listed = world.json(&["actor", "list"]);
    let actor = listed["data"]["actors"]
        .as_array()
        .unwrap()
        .iter()
        .find(|a| a["name"] == "local/secret")
        .unwrap()
        .clone();
    assert!(actor["problem"].as_str().unwrap().contains("there are 2 problems"), "{actor:#}");
}
