//! What automation rests on.

use agents_domain::ports::store::{Store, StoreError, StoreExt};
use agents_domain::profile::{RegisteredProfile, built_in_profile};

use super::super::samples::at;
use super::{Case, refused, write};

pub(super) const CASES: &[Case] = &[profiles_come_and_go];

fn profile(name: &str) -> RegisteredProfile {
    let mut profile = built_in_profile("cautious").unwrap();
    profile.name = name.to_owned();
    RegisteredProfile {
        profile,
        config_path: "careful.yaml".to_owned(),
        source: format!("name: {name}\n"),
        created_at: at(1),
        updated_at: at(1),
    }
}

fn profiles_come_and_go(store: &dyn Store) {
    let (one, mut two) = (profile("local/a"), profile("local/b"));
    write(store, |w| w.insert_automation_profile(&two));
    write(store, |w| w.insert_automation_profile(&one));
    assert!(matches!(refused(store, |w| w.insert_automation_profile(&one)), StoreError::Duplicate(_)));
    two.profile.thresholds.edit_code = 0.25;
    two.updated_at = at(2);
    write(store, |w| w.update_automation_profile(&two));
    assert_eq!(store.view(|r| r.automation_profiles()).unwrap(), [one, two.clone()]);
    assert_eq!(store.view(|r| r.automation_profile("local/b")).unwrap(), Some(two));
    write(store, |w| w.delete_automation_profile("local/b"));
    assert_eq!(store.view(|r| r.automation_profile("local/b")).unwrap(), None);
    refused(store, |w| w.delete_automation_profile("local/b"));
}
