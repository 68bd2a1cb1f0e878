use super::*;

// PROF-002
#[test]
fn a_threshold_of_one_is_manual_even_when_sure_and_zero_never_asks() {
    let mut thresholds = built_in_profile("manual").unwrap().thresholds;
    assert!(!thresholds.pass(Gate::AutoApply, 1.0));
    thresholds.select_tool = 0.0;
    assert!(thresholds.pass(Gate::AutoApply, 0.0));
    thresholds.select_tool = 0.7;
    assert!(thresholds.pass(Gate::AutoApply, 0.7));
    assert!(!thresholds.pass(Gate::AutoApply, 0.69));
}

// PROF-004, PROF-005: the outcome of each gate per profile, as the state machine's table gives it.
#[test]
fn built_in_profiles_open_the_gates_of_the_table() {
    let always = |gate: Gate| {
        built_in_profiles()
            .into_iter()
            .filter(|p| p.thresholds.of(gate) == 0.0)
            .map(|p| p.name)
            .collect::<Vec<_>>()
    };
    assert_eq!(always(Gate::AutoStrategize), ["review", "supervised", "trusted", "auto", "ci", "full-auto"]);
    assert_eq!(always(Gate::AutoExecute), ["review", "trusted", "auto", "ci", "full-auto"]);
    assert_eq!(always(Gate::AutoApply), ["ci", "full-auto"]);
    assert_eq!(always(Gate::StrategyDecision), ["supervised", "trusted", "auto", "ci", "full-auto"]);
    assert_eq!(always(Gate::ExecutionDecision), ["trusted", "auto", "ci", "full-auto"]);
    assert_eq!(always(Gate::ValidationFix), ["trusted", "auto", "ci", "full-auto"]);
    assert_eq!(always(Gate::ExecuteReversion), ["auto", "ci", "full-auto"]);
    assert_eq!(always(Gate::ApplyReversion), ["ci", "full-auto"]);
    assert_eq!(always(Gate::SpawnChild), ["review", "trusted", "auto", "ci", "full-auto"]);
    assert_eq!(
        always(Gate::Retry),
        ["review", "supervised", "cautious", "trusted", "auto", "ci", "full-auto"]
    );
    assert_eq!(always(Gate::RestoreCheckpoint), ["auto", "ci", "full-auto"]);
    let cautious = built_in_profile("cautious").unwrap().thresholds;
    let between: Vec<f64> = Gate::ALL.iter().map(|g| cautious.of(*g)).collect();
    assert_eq!(between, [0.7, 0.7, 1.0, 0.6, 0.8, 0.7, 0.8, 0.9, 0.7, 0.0, 0.6]);
}

// PROF-010
#[test]
fn a_profile_says_all_that_is_wrong_with_it() {
    let mut profile = built_in_profile("ci").unwrap();
    assert_eq!(profile.problems(), []);
    profile.thresholds.edit_code = f64::NAN;
    profile.thresholds.select_tool = 1.01;
    profile.safety.max_cost_per_plan = Some(2.0);
    profile.safety.max_total_cost = Some(1.0);
    profile.safety.max_retries_per_step = 101;
    profile.guards.max_total_cost = Some(f64::INFINITY);
    let problems = profile.problems();
    let paths: Vec<&str> = problems.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "select_tool",
            "edit_code",
            "guards.max_total_cost",
            "safety.max_cost_per_plan",
            "safety.max_retries_per_step"
        ]
    );
}

// C-63
#[test]
fn of_two_profiles_the_stricter_value_of_each_holds() {
    let (auto, mut own) = (built_in_profile("auto").unwrap(), built_in_profile("cautious").unwrap());
    own.guards.tool_denylist = Some(vec!["builtin/apply-edits".to_owned()]);
    own.safety.max_cost_per_plan = Some(1.0);
    let both = auto.strictest(&own);
    for gate in Gate::ALL {
        assert_eq!(both.thresholds.of(gate), auto.thresholds.of(gate).max(own.thresholds.of(gate)));
    }
    assert_eq!(both.guards, own.guards);
    assert_eq!(both.safety.max_cost_per_plan, Some(1.0));
    assert_eq!(both.name, "auto+cautious");
    let of = |categories: &[&str]| Safety {
        allowed_skill_categories: categories.iter().map(|c| (*c).to_owned()).collect(),
        ..Safety::default()
    };
    assert!(of(&["edit"]).tightest(&of(&[])).allows_category("edit"));
    assert!(!of(&["edit"]).tightest(&of(&["test"])).allows_category("edit"));
}

// PROF-009
#[test]
fn only_full_auto_goes_without_sandbox_and_checkpoints() {
    for profile in built_in_profiles() {
        let free = profile.name == "full-auto";
        assert_eq!(
            (
                profile.safety.require_sandbox,
                profile.safety.require_checkpoints,
                profile.safety.allow_unsafe_tools
            ),
            (!free, !free, free)
        );
        assert_eq!(profile.safety.max_retries_per_step, 3);
    }
}
