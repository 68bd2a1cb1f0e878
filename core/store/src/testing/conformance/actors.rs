//! Facts about registered actors.

use agents_domain::actor::{Overrides, RegisteredActor};
use agents_domain::ports::store::{Store, StoreError, StoreExt};

use super::super::samples::at;
use super::{Case, refused, write};

pub(super) const CASES: &[Case] = &[actors_come_and_go_with_their_text, one_actor_is_the_default];

fn name(text: &str) -> agents_domain::QualifiedName {
    text.parse().unwrap()
}

fn actor(text: &str) -> RegisteredActor {
    RegisteredActor {
        name: name(text),
        source: "name: ${NAME}\n".to_owned(),
        config_path: "/home/user/actor.yaml".to_owned(),
        overrides: Overrides { model: Some("gpt-4".to_owned()), ..Overrides::default() },
        is_default: false,
        runs: 0,
        cost_usd: 0.0,
        created_at: at(1),
        updated_at: at(1),
    }
}

fn actors_come_and_go_with_their_text(store: &dyn Store) {
    let (chat, review) = (actor("local/chat"), actor("acme/review"));
    write(store, |w| {
        w.insert_actor(&chat)?;
        w.insert_actor(&review)
    });
    assert_eq!(
        refused(store, |w| w.insert_actor(&chat)),
        StoreError::Duplicate("actor local/chat".to_owned())
    );
    assert_eq!(store.view(|r| r.actors()), Ok(vec![review.clone(), chat.clone()]));
    let changed = RegisteredActor { source: "other".to_owned(), updated_at: at(3), ..chat };
    write(store, |w| w.update_actor(&changed));
    write(store, |w| {
        w.count_actor_run(&changed.name, 0.25)?;
        w.count_actor_run(&changed.name, 0.5)?;
        w.count_actor_run(&name("local/none"), 0.5)
    });
    let counted = RegisteredActor { runs: 2, cost_usd: 0.75, ..changed };
    assert_eq!(store.view(|r| r.actor(&counted.name)), Ok(Some(counted)));
    write(store, |w| w.delete_actor(&review.name));
    assert_eq!(store.view(|r| r.actor(&review.name)), Ok(None));
    refused(store, |w| w.delete_actor(&review.name));
    refused(store, |w| w.update_actor(&review));
}

fn one_actor_is_the_default(store: &dyn Store) {
    let first = RegisteredActor { is_default: true, ..actor("local/a") };
    write(store, |w| w.insert_actor(&first));
    refused(store, |w| w.insert_actor(&RegisteredActor { is_default: true, ..actor("local/b") }));
}
