//! Validations and attachments.

use agents_domain::ids::ResourceId;
use agents_domain::ports::store::{Store, StoreError, StoreExt};
use agents_domain::ports::validation_store::RegisteredValidation;
use agents_domain::resource::Resource;
use agents_domain::validation::{Attachment, Mode, Scope};
use serde_json::json;

use super::super::samples::{at, id};
use super::{Case, refused, write};

pub(super) const CASES: &[Case] = &[validations_come_and_go_with_their_attachments];

fn validation(text: &str) -> RegisteredValidation {
    RegisteredValidation {
        definition: serde_json::from_value(json!({
            "name": text, "description": "The tests", "source": "builtin", "builtin": "builtin/command",
            "command": ["pytest", "-q"], "parser": "pytest", "validation": { "mode": "required" },
        }))
        .unwrap(),
        config_path: "tests.yaml".to_owned(),
        source: format!("name: {text}\n"),
        version: 1,
        created_at: at(1),
        updated_at: at(1),
    }
}

fn attachment(n: u64, resource: ResourceId, scope: Scope) -> Attachment {
    Attachment {
        attachment_id: id(n),
        validation: "local/tests".parse().unwrap(),
        resource_id: resource,
        scope,
        args: json!({ "threshold": 90 }).as_object().cloned().unwrap(),
        created_at: at(n),
    }
}

// STORE-004, VAL-023, TOOLCLI-011
fn validations_come_and_go_with_their_attachments(store: &dyn Store) {
    let resource = Resource {
        resource_id: id(9),
        name: None,
        resource_type: "git-checkout".to_owned(),
        description: None,
        location: None,
        properties: serde_json::Map::new(),
        parents: Vec::new(),
        created_at: at(1),
        updated_at: at(1),
    };
    let scopes = [Scope::Direct, Scope::Project("local/app".parse().unwrap()), Scope::Plan(id(7))];
    let attached: Vec<Attachment> =
        scopes.into_iter().zip(1..).map(|(scope, n)| attachment(n, id(9), scope)).collect();
    write(store, |w| {
        w.insert_resource(&resource)?;
        w.insert_validation(&validation("local/tests"))?;
        w.insert_validation(&validation("local/lint"))?;
        attached.iter().try_for_each(|a| w.insert_attachment(a))
    });
    let again = store.transact(|w| w.insert_validation(&validation("local/tests")));
    assert!(matches!(again, Err(StoreError::Duplicate(_))), "{again:?}");
    assert_eq!(store.view(|r| r.attachments()).unwrap(), attached);
    let names = |found: Vec<RegisteredValidation>| -> Vec<String> {
        found.iter().map(|v| v.definition.name.to_string()).collect()
    };
    assert_eq!(names(store.view(|r| r.validations()).unwrap()), ["local/lint", "local/tests"]);
    let mut changed = validation("local/tests");
    changed.definition.validation.mode = Mode::Informational;
    changed.version = 2;
    changed.updated_at = at(5);
    write(store, |w| w.update_validation(&changed));
    let name = "local/tests".parse().unwrap();
    assert_eq!(store.view(|r| r.validation(&name)).unwrap(), Some(changed));
    write(store, |w| w.delete_attachment(id(2)));
    assert_eq!(store.view(|r| r.attachments()).unwrap().len(), 2);
    write(store, |w| w.delete_validation(&name));
    assert_eq!(store.view(|r| r.validation(&name)).unwrap(), None);
    assert_eq!(store.view(|r| r.attachments()).unwrap(), []);
    refused(store, |w| w.delete_validation(&name));
    refused(store, |w| w.update_validation(&validation("local/none")));
    refused(store, |w| w.delete_attachment(id(1)));
}
