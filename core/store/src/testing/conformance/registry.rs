//! Actions, language servers, projects and resources.

use agents_domain::QualifiedName;
use agents_domain::action::{Action, ActionState};
use agents_domain::ids::ResourceId;
use agents_domain::ports::skill_store::RegisteredSkill;
use agents_domain::ports::store::{RegisteredServer, Store, StoreError, StoreExt};
use agents_domain::project::{Project, ProjectResource};
use agents_domain::resource::Resource;
use agents_domain::skill::{Discovered, DiscoveredServer};
use serde_json::json;

use super::super::samples::{at, id};
use super::{Case, refused, write};

pub(super) const CASES: &[Case] = &[
    actions_are_kept_with_their_source,
    language_servers_come_and_go,
    skills_come_and_go,
    projects_keep_their_links_in_order,
    resources_hang_on_their_parents,
    a_linked_resource_is_not_deleted,
];

fn name(text: &str) -> QualifiedName {
    text.parse().unwrap()
}

fn action(text: &str) -> Action {
    Action {
        definition: serde_json::from_value(json!({
            "name": text,
            "description": "Fix {{ what }}",
            "definition_of_done": "Fixed",
            "strategy_actor": "builtin/fix-diagnostics",
            "execution_actor": "builtin/fix-diagnostics",
            "arguments": [{ "name": "what", "type": "string", "default": "all" }],
            "safety_profile": { "max_cost_per_plan": 1.5 }
        }))
        .unwrap(),
        config_path: "actions/fix.yaml".to_owned(),
        source: format!("name: {text}\n"),
        created_at: at(1),
        updated_at: at(1),
    }
}

fn server(text: &str) -> RegisteredServer {
    RegisteredServer {
        definition: serde_json::from_value(json!({
            "name": text,
            "languages": ["python"],
            "command": "ruff",
            "args": ["server"],
            "env": { "TOKEN": "${TOKEN}" },
            "init_options": { "settings": { "lint": true } },
            "capabilities": ["diagnostics", "code_actions"]
        }))
        .unwrap(),
        config_path: "ruff.yaml".to_owned(),
        source: format!("name: {text}\n"),
        created_at: at(1),
        updated_at: at(1),
    }
}

fn resource(n: u64, name: Option<&str>, parents: &[u64]) -> Resource {
    Resource {
        resource_id: id(n),
        name: name.map(|text| text.parse().unwrap()),
        resource_type: "git-checkout".to_owned(),
        description: Some("The application".to_owned()),
        location: Some("/home/user/app".to_owned()),
        properties: json!({ "path": "/home/user/app", "branch": "main" }).as_object().cloned().unwrap(),
        parents: parents.iter().map(|n| id(*n)).collect(),
        created_at: at(n),
        updated_at: at(n),
    }
}

fn project(text: &str, resources: &[(u64, bool)]) -> Project {
    Project {
        name: name(text),
        description: Some("An application".to_owned()),
        resources: resources
            .iter()
            .map(|(n, read_only)| ProjectResource { resource_id: id(*n), read_only: *read_only })
            .collect(),
        invariant_actor: Some("local/keeper".to_owned()),
        created_at: at(1),
        updated_at: at(1),
    }
}

// STORE-006, STORE-015
fn actions_are_kept_with_their_source(store: &dyn Store) {
    let (fix, other) = (action("local/fix"), action("acme/other"));
    write(store, |w| {
        w.insert_action(&fix)?;
        w.insert_action(&other)
    });
    assert_eq!(
        refused(store, |w| w.insert_action(&fix)),
        StoreError::Duplicate("action local/fix".to_owned())
    );
    let mut archived = Action { updated_at: at(2), ..fix.clone() };
    archived.definition.state = ActionState::Archived;
    write(store, |w| w.update_action(&archived));
    assert_eq!(store.view(|r| r.action(&name("local/fix"))), Ok(Some(archived.clone())));
    assert_eq!(store.view(|r| r.action(&name("local/none"))), Ok(None));
    assert_eq!(store.view(|r| r.actions()), Ok(vec![other, archived]));
    refused(store, |w| w.update_action(&action("local/none")));
}

fn language_servers_come_and_go(store: &dyn Store) {
    let (ruff, ty) = (server("local/ruff"), server("local/ty"));
    write(store, |w| {
        w.insert_language_server(&ty)?;
        w.insert_language_server(&ruff)
    });
    assert_eq!(
        refused(store, |w| w.insert_language_server(&ty)),
        StoreError::Duplicate("language server local/ty".to_owned())
    );
    assert_eq!(store.view(|r| r.language_servers()), Ok(vec![ruff.clone(), ty]));
    let changed = RegisteredServer { config_path: "other.yaml".to_owned(), updated_at: at(3), ..ruff };
    write(store, |w| w.update_language_server(&changed));
    assert_eq!(store.view(|r| r.language_server(&name("local/ruff"))), Ok(Some(changed)));
    write(store, |w| w.delete_language_server(&name("local/ty")));
    assert_eq!(store.view(|r| r.language_server(&name("local/ty"))), Ok(None));
    refused(store, |w| w.delete_language_server(&name("local/ty")));
    refused(store, |w| w.update_language_server(&server("local/ty")));
}

// STORE-006, MCP-017
fn skills_come_and_go(store: &dyn Store) {
    let skill = |text: &str| {
        RegisteredSkill {
        definition: serde_json::from_value(json!({
            "name": text,
            "tools": [{ "name": "read_file", "override": { "capability": { "writes": true } } }],
            "mcp_servers": [{ "name": "x", "transport": "stdio", "command": "npx", "env": { "TOKEN": "${TOKEN}" } }],
            "agent_skills": [{ "path": "./review" }]
        }))
        .unwrap(),
        discovered: Discovered::default(),
        config_path: "skill.yaml".to_owned(),
        source: format!("name: {text}\n"),
        created_at: at(1),
        updated_at: at(1),
    }
    };
    let (one, two) = (skill("local/one"), skill("acme/two"));
    write(store, |w| {
        w.insert_skill(&one)?;
        w.insert_skill(&two)
    });
    assert_eq!(refused(store, |w| w.insert_skill(&one)), StoreError::Duplicate("skill local/one".to_owned()));
    assert_eq!(store.view(|r| r.skills()), Ok(vec![two, one.clone()]));
    let mut discovered = Discovered::default();
    discovered.servers.insert("x".to_owned(), DiscoveredServer { at: Some(at(2)), ..Default::default() });
    write(store, |w| w.put_discovered(&name("local/one"), &discovered));
    let known = RegisteredSkill { discovered, ..one };
    assert_eq!(store.view(|r| r.skill(&name("local/one"))), Ok(Some(known.clone())));
    let changed = RegisteredSkill { updated_at: at(3), ..known };
    write(store, |w| w.update_skill(&changed));
    assert_eq!(store.view(|r| r.skill(&name("local/one"))), Ok(Some(changed)));
    write(store, |w| {
        w.delete_skill(&name("local/one"))?;
        w.put_discovered(&name("local/one"), &Discovered::default())
    });
    assert_eq!(store.view(|r| r.skill(&name("local/one"))), Ok(None));
    refused(store, |w| w.delete_skill(&name("local/one")));
    refused(store, |w| w.update_skill(&skill("local/one")));
}

fn projects_keep_their_links_in_order(store: &dyn Store) {
    let app = project("local/app", &[(3, false), (1, true)]);
    write(store, |w| {
        (1..=3).try_for_each(|n| w.insert_resource(&resource(n, None, &[])))?;
        w.insert_project(&app)?;
        w.insert_project(&project("local/aside", &[]))
    });
    assert_eq!(
        refused(store, |w| w.insert_project(&app)),
        StoreError::Duplicate("project local/app".to_owned())
    );
    assert_eq!(store.view(|r| r.project(&name("local/app"))), Ok(Some(app.clone())));
    let relinked =
        Project { updated_at: at(2), ..project("local/app", &[(2, false), (1, false), (3, true)]) };
    write(store, |w| w.update_project(&relinked));
    assert_eq!(store.view(|r| r.projects()), Ok(vec![relinked.clone(), project("local/aside", &[])]));
    refused(store, |w| w.update_project(&project("local/none", &[])));
    // A resource that is not there cannot be linked, nor one twice.
    refused(store, |w| w.update_project(&project("local/app", &[(9, false)])));
    refused(store, |w| w.update_project(&project("local/app", &[(1, false), (1, true)])));
    assert_eq!(store.view(|r| r.project(&relinked.name)), Ok(Some(relinked.clone())));
    write(store, |w| w.delete_project(&relinked.name));
    assert_eq!(store.view(|r| r.project(&relinked.name)), Ok(None));
    refused(store, |w| w.delete_project(&relinked.name));
}

// STORE-011
fn resources_hang_on_their_parents(store: &dyn Store) {
    let repo = resource(5, Some("local/repo"), &[]);
    let git = resource(2, None, &[5]);
    let other = resource(3, None, &[5, 2]);
    write(store, |w| {
        w.insert_resource(&repo)?;
        w.insert_resource(&git)?;
        w.insert_resource(&other)
    });
    assert_eq!(
        refused(store, |w| w.insert_resource(&resource(9, Some("local/repo"), &[]))),
        StoreError::Duplicate("resource local/repo".to_owned())
    );
    refused(store, |w| w.insert_resource(&resource(9, None, &[77])));
    refused(store, |w| w.insert_resource(&resource(9, None, &[9])));
    assert_eq!(store.view(|r| r.resources()), Ok(vec![repo.clone(), git.clone(), other.clone()]));
    assert_eq!(store.view(|r| r.resource_named(&name("local/repo"))), Ok(Some(repo.clone())));
    assert_eq!(store.view(|r| r.resource(git.resource_id)), Ok(Some(git.clone())));
    let prefix = repo.resource_id.to_string()[..25].to_owned();
    let ids: Vec<ResourceId> = vec![id(2), id(3), id(5)];
    assert_eq!(store.view(|r| r.resources_starting(&prefix, 9)), Ok(ids));
    let moved = Resource { name: Some(name("local/data")), updated_at: at(9), ..resource(3, None, &[2]) };
    let moved = Resource { created_at: other.created_at, ..moved };
    write(store, |w| w.update_resource(&moved));
    assert_eq!(store.view(|r| r.resource(moved.resource_id)), Ok(Some(moved)));
    // Deleting a parent deletes the link, not the child.
    write(store, |w| w.delete_resource(repo.resource_id));
    assert_eq!(
        store.view(|r| r.resource(git.resource_id)),
        Ok(Some(Resource { parents: Vec::new(), ..git }))
    );
    refused(store, |w| w.delete_resource(repo.resource_id));
    refused(store, |w| w.update_resource(&repo));
}

fn a_linked_resource_is_not_deleted(store: &dyn Store) {
    write(store, |w| {
        w.insert_resource(&resource(1, None, &[]))?;
        w.insert_project(&project("local/app", &[(1, false)]))
    });
    refused(store, |w| w.delete_resource(id(1)));
    write(store, |w| {
        w.delete_project(&name("local/app"))?;
        w.delete_resource(id(1))
    });
    assert_eq!(store.view(|r| r.resources()), Ok(Vec::new()));
}
