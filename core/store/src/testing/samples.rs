//! Records with every field set, so that a round trip that drops one shows.

use std::str::FromStr;

use agents_domain::Timestamp;
use agents_domain::changes::{Change, ChangeKind, Hunk};
use agents_domain::decision::{Alternative, Approval, ContextSnapshot, Decision, DecisionType, ResourceRef};
use agents_domain::ids::{DecisionId, PlanId};
use agents_domain::plan::{
    ApplyMode, Guidance, Phase, PhaseSummary, PhaseTimes, Plan, PlanActors, PlanResource, SandboxRef, State,
};
use agents_domain::profile::{DEFAULT_PROFILE, ProfileSnapshot, built_in_profile};
use agents_domain::text::Range;
use serde_json::json;

/// The n-th id of a kind; ids of different kinds may be equal, and rise with n.
pub fn id<T: FromStr>(n: u64) -> T
where
    T::Err: std::fmt::Debug,
{
    format!("01J{n:023}").parse().expect("decimal digits are a ULID")
}

/// A number of milliseconds after a fixed moment.
pub fn at(millis: u64) -> Timestamp {
    Timestamp::from_micros(1_770_000_000_000_000 + i64::try_from(millis).expect("a small number") * 1000 + 7)
}

/// The n-th plan, of `local/fix` on `local/app`, queued in Strategize, made n seconds after the fixed moment.
pub fn plan(n: u64) -> Plan {
    let plan_id: PlanId = id(n);
    let created_at = at(n * 1000);
    Plan {
        plan_id,
        parent_plan_id: None,
        root_plan_id: plan_id,
        action: "local/fix".parse().expect("a name"),
        projects: vec!["local/app".parse().expect("a name")],
        resources: vec![PlanResource {
            resource_id: id(1),
            project: "local/app".parse().expect("a name"),
            read_only: false,
        }],
        description: "Fix what the language servers report.".to_owned(),
        definition_of_done: "No new problems.".to_owned(),
        arguments: [("paths".to_owned(), json!(["src", "tests"]))].into(),
        actors: PlanActors {
            strategy: "builtin/fix-diagnostics".parse().expect("a name"),
            execution: "builtin/fix-diagnostics".parse().expect("a name"),
            estimation: None,
            invariant: Some("local/keeper".parse().expect("a name")),
        },
        profile: ProfileSnapshot {
            profile: built_in_profile(DEFAULT_PROFILE).expect("the default profile is built in"),
            source: "default".to_owned(),
        },
        read_only: false,
        invariants: vec!["Public names stay.".to_owned()],
        subplan: Default::default(),
        phase: Phase::Strategize,
        state: State::Queued,
        awaiting: None,
        attempt: 1,
        reversions: 0,
        commanded: false,
        apply_mode: Some(ApplyMode::Commit),
        sandboxes: vec![SandboxRef {
            resource_id: id(1),
            original: "/home/user/app".to_owned(),
            store: None,
            path: "/home/user/.cleveragents/sandboxes/x".to_owned(),
            base_commit: "b".repeat(40),
            head_commit: "a".repeat(40),
            branch: Some("main".to_owned()),
            commit: "c".repeat(40),
            untouchable: vec![("logo.png".to_owned(), "it is not UTF-8".to_owned())],
        }],
        guidance: vec![Guidance {
            decision_id: id(1),
            text: "Leave the tests alone.".to_owned(),
            applied: false,
        }],
        failure: None,
        summaries: [(
            Phase::Strategize,
            PhaseSummary {
                headline: "3 kinds of problem".to_owned(),
                lines: vec!["F401: 12".to_owned()],
                facts: json!({ "groups": 3 }),
            },
        )]
        .into(),
        applied: Vec::new(),
        diff_ref: Some("f".repeat(64)),
        resumed_from: None,
        tool_calls: 4,
        spending: agents_domain::plan::guards::Spending { cost_usd: 0.25, ..Default::default() },
        validations: agents_domain::validation::PlanValidations::default(),
        created_by: "somebody".to_owned(),
        created_at,
        updated_at: created_at,
        phase_times: [(Phase::Strategize, PhaseTimes { started: created_at, finished: None })].into(),
        cancel_reason: None,
        completed_at: None,
        epoch: 0,
    }
}

/// The root decision of a plan, number 1.
pub fn root_decision(plan: &Plan) -> Decision {
    Decision {
        decision_type: DecisionType::PromptDefinition,
        parent_decision_id: None,
        depends_on: Vec::new(),
        question: "What shall be done?".to_owned(),
        chosen_option: plan.description.clone(),
        alternatives: Vec::new(),
        confidence: None,
        approval: Some(Approval::System),
        ..decision(plan, id(0), 1)
    }
}

/// The n-th decision of a plan, a `strategy_choice` below `parent` and made from it. Plan numbers must be below 10^12,
/// numbers of decisions below 10^6.
pub fn decision(plan: &Plan, parent: DecisionId, n: u32) -> Decision {
    let plan_number: u64 = plan.plan_id.to_string()[3..].parse().expect("a plan made by `plan`");
    Decision {
        decision_id: id(plan_number * 1_000_000 + u64::from(n)),
        plan_id: plan.plan_id,
        parent_decision_id: Some(parent),
        sequence_number: n,
        key: Some(format!("strategy/{n}")),
        decision_type: DecisionType::StrategyChoice,
        question: "What about the unused imports?".to_owned(),
        chosen_option: "Remove them".to_owned(),
        alternatives: vec![
            Alternative {
                option: "Remove them".to_owned(),
                description: Some("the preferred fix".to_owned()),
            },
            Alternative { option: "Leave them".to_owned(), description: None },
        ],
        confidence: Some(0.875),
        rationale: "It is the sole preferred fix of 12 diagnostics.".to_owned(),
        actor_reasoning: Some("F401 \u{1f980} — quoted: \"x\"".to_owned()),
        context: ContextSnapshot {
            hot_context_hash: "d".repeat(64),
            hot_context_ref: "d".repeat(64),
            relevant_resources: vec![ResourceRef {
                resource_id: id(1),
                path: "src/app.py".to_owned(),
                range: Some(Range::new((3, 0), (3, 9))),
                symbol: Some("App.run".to_owned()),
                note: Some("`os` imported but unused".to_owned()),
            }],
            actor_state_ref: "e".repeat(64),
        },
        depends_on: vec![parent],
        pending: false,
        approval: Some(Approval::Automatic),
        artifacts: Vec::new(),
        downstream_plans: Vec::new(),
        corrects_decision_id: None,
        correction_reason: None,
        superseded_by: None,
        created_at: at(plan_number * 1000 + u64::from(n)),
    }
}

/// The n-th change: a file of resource 1 modified under a decision.
pub fn change(decision: &Decision, n: u64, path: &str) -> Change {
    Change {
        change_id: id(n),
        plan_id: decision.plan_id,
        decision_id: decision.decision_id,
        resource_id: id(1),
        path: path.to_owned(),
        old_path: None,
        kind: ChangeKind::Modified,
        before_hash: Some("1".repeat(64)),
        after_hash: Some("2".repeat(64)),
        hunks: vec![Hunk { old_start: 3, old_lines: 1, new_start: 3, new_lines: 0 }],
        tool: "builtin/apply-edits".to_owned(),
        created_at: at(n),
    }
}
