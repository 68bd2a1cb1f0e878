//! What automation rests on.

use agents_domain::plan::Phase;
use agents_domain::ports::model::{ModelTrace, RecordedTrace, Usage};
use agents_domain::ports::store::{Store, StoreError, StoreExt};
use agents_domain::profile::{RegisteredProfile, built_in_profile};

use super::super::samples::{at, plan, root_decision};
use super::{Case, refused, write};

pub(super) const CASES: &[Case] = &[profiles_come_and_go, calls_of_models_are_kept];

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

// OBS-011
fn calls_of_models_are_kept(store: &dyn Store) {
    let plan = plan(1);
    let root = root_decision(&plan);
    let recorded = |n: u64, usd: Option<f64>| RecordedTrace {
        trace_id: format!("01J{n:023}"),
        plan_id: plan.plan_id,
        phase: Phase::Execute,
        decision_id: Some(root.decision_id),
        trace: ModelTrace {
            actor: "openai/gpt-4.1".to_owned(),
            decision: None,
            provider: "openai".to_owned(),
            model: "gpt-4.1".to_owned(),
            usage: Usage { input: 10, cached: 3, output: 2, usd },
            latency_ms: 40,
            temperature: Some(0.5),
            tool_calls: vec!["finish".to_owned()],
            context_hash: "a".repeat(64),
            retries: 1,
            error: Some("cut".to_owned()),
        },
        created_at: at(n),
    };
    write(store, |w| {
        w.insert_plan(&plan)?;
        w.insert_decision(&root)?;
        w.insert_model_trace(&recorded(2, None))?;
        w.insert_model_trace(&recorded(1, Some(0.25)))
    });
    let kept = store.view(|r| r.model_traces(plan.plan_id)).unwrap();
    assert_eq!(kept, [recorded(1, Some(0.25)), recorded(2, None)]);
}
