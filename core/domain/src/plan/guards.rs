//! Guards: whether a tool may run now, and whether a plan may go on spending.
//!
//! Everything here is a function of the locked profile, the configured budgets and what was used so far. Order:
//! what is blocked for good, then the denylist, the allowlist, the limit of calls, the budgets, approval of writes
//! (GUARD-003); the first that hits is told. Approval of Apply is the state machine's.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::Phase;
use crate::ports::tool::Capability;
use crate::profile::Profile;

/// What is known of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ToolFacts {
    /// Its name, such as `builtin/apply-edits`.
    pub name: String,
    /// What it does, for people.
    pub summary: String,
    /// The category of skills it belongs to.
    pub category: String,
    /// What it may do.
    #[serde(flatten)]
    pub capability: Capability,
}

/// Whose limits they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Scope {
    /// A root plan.
    Plan,
    /// A child plan.
    Subplan,
}

impl Scope {
    /// Its word in reasons.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "PLAN",
            Self::Subplan => "SUBPLAN",
        }
    }
}

/// What is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Tool calls of one step.
    StepCalls,
    /// Tool calls of the plan.
    Calls,
    /// US dollars of the plan.
    Cost,
    /// US dollars of the plan and every plan of its tree.
    TreeCost,
    /// Seconds that the plan's actors worked.
    Seconds,
}

impl Measure {
    /// In the order they are checked.
    pub const ALL: [Measure; 5] = [Self::StepCalls, Self::Calls, Self::Cost, Self::TreeCost, Self::Seconds];

    /// `1 tool call of one step`.
    fn amount(self, value: f64) -> String {
        let calls = if value == 1.0 { "tool call" } else { "tool calls" };
        match self {
            Self::StepCalls => format!("{value} {calls} in a step"),
            Self::Calls => format!("{value} {calls} in the plan"),
            Self::Cost => format!("{value} USD for the plan"),
            Self::TreeCost => format!("{value} USD for the plan and all plans of its tree"),
            Self::Seconds => format!("{value} s of work"),
        }
    }
}

/// The budgets of the configuration; `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Budgets {
    /// `plan.tool.max-calls-per-step`.
    pub step_calls: Option<u32>,
    /// `plan.budget.tool-calls`.
    pub calls: Option<u32>,
    /// `plan.budget.per-plan`, in US dollars.
    pub cost: Option<f64>,
    /// `plan.budget.wall-clock`, in seconds.
    pub seconds: Option<u32>,
}

/// What was used so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// Tool calls of the present step.
    pub step_calls: u32,
    /// Tool calls of the plan.
    pub calls: u32,
    /// US dollars of the plan.
    pub cost: f64,
    /// US dollars of its whole tree, its own among them.
    pub tree_cost: f64,
    /// Seconds worked.
    pub seconds: f64,
}

impl Usage {
    fn of(&self, measure: Measure) -> f64 {
        match measure {
            Measure::StepCalls => self.step_calls.into(),
            Measure::Calls => self.calls.into(),
            Measure::Cost => self.cost,
            Measure::TreeCost => self.tree_cost,
            Measure::Seconds => self.seconds,
        }
    }
}

/// A limit in force: the tightest of those that are set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    /// What it limits.
    pub measure: Measure,
    /// The key of the profile or the configuration that sets it.
    pub flag: String,
    /// How much is allowed, extensions included.
    pub limit: f64,
    /// How much was used.
    pub used: f64,
}

impl Limit {
    /// How much is left; never below zero.
    pub fn left(&self) -> f64 {
        (self.limit - self.used).max(0.0)
    }

    /// `the limit of 2 tool calls in a step (max_tool_calls_per_step, PLAN)`.
    pub fn describe(&self, scope: Scope) -> String {
        format!("the limit of {} ({}, {})", self.measure.amount(self.limit), self.flag, scope.as_str())
    }
}

/// What a plan has cost, is expected to cost, and may cost beyond its limits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spending {
    /// US dollars so far.
    pub cost_usd: f64,
    /// Tokens so far, of all models, both ways.
    pub tokens: u64,
    /// Milliseconds its actors worked.
    pub worked_ms: u64,
    /// Limits a person let the plan go over, with what holds instead.
    pub extended: BTreeMap<Measure, f64>,
    /// The limit the plan waits at.
    pub reached: Option<Limit>,
    /// Limits whose nearness was warned of.
    pub warned: Vec<Measure>,
    /// What the estimation actor said.
    pub estimate: Option<Estimate>,
    /// What each phase has cost, all its attempts together.
    #[serde(default)]
    pub phases: BTreeMap<Phase, PhaseSpending>,
}

/// What a phase has cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseSpending {
    /// Steps of its actor.
    pub steps: u32,
    /// US dollars.
    pub cost_usd: f64,
    /// Tokens of models, both ways.
    pub tokens: u64,
    /// Milliseconds its actor worked.
    pub worked_ms: u64,
}

/// What Execute is expected to cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// US dollars, in the middle of the range.
    pub cost_usd: Option<f64>,
    /// One sentence.
    pub headline: String,
    /// What the actor said, for programs.
    pub facts: serde_json::Value,
}

impl Spending {
    /// Counts a step of a phase's actor.
    pub fn count(&mut self, phase: Phase, cost_usd: f64, tokens: u64, worked_ms: u64) {
        let cost_usd = if cost_usd.is_finite() { cost_usd.max(0.0) } else { 0.0 };
        self.cost_usd += cost_usd;
        self.tokens = self.tokens.saturating_add(tokens);
        self.worked_ms = self.worked_ms.saturating_add(worked_ms);
        let of = self.phases.entry(phase).or_default();
        of.steps = of.steps.saturating_add(1);
        of.cost_usd += cost_usd;
        of.tokens = of.tokens.saturating_add(tokens);
        of.worked_ms = of.worked_ms.saturating_add(worked_ms);
    }

    /// Lets the plan go on over the limit it waits at: by as much again.
    pub fn extend(&mut self) {
        let Some(reached) = self.reached.take() else { return };
        let more = if reached.limit > 0.0 { reached.limit } else { 1.0 };
        self.extended.insert(reached.measure, reached.limit.max(reached.used) + more);
        self.warned.retain(|measure| *measure != reached.measure);
    }

    /// A new step begins: what was allowed for the last one is over.
    pub fn next_step(&mut self) {
        self.extended.remove(&Measure::StepCalls);
        self.warned.retain(|measure| *measure != Measure::StepCalls);
    }
}

/// The limits in force, in the order they are checked; of several on the same measure the tightest (C-58).
pub fn limits(profile: &Profile, budgets: &Budgets, usage: &Usage, spending: &Spending) -> Vec<Limit> {
    let (safety, guards) = (&profile.safety, &profile.guards);
    let set: [(Measure, &str, Option<f64>); 8] = [
        (Measure::StepCalls, "max_tool_calls_per_step", guards.max_tool_calls_per_step.map(f64::from)),
        (Measure::StepCalls, "plan.tool.max-calls-per-step", budgets.step_calls.map(f64::from)),
        (Measure::Calls, "plan.budget.tool-calls", budgets.calls.map(f64::from)),
        (Measure::Cost, "max_cost_per_plan", safety.max_cost_per_plan),
        (Measure::Cost, "guards.max_total_cost", guards.max_total_cost),
        (Measure::Cost, "plan.budget.per-plan", budgets.cost),
        (Measure::TreeCost, "safety.max_total_cost", safety.max_total_cost),
        (Measure::Seconds, "plan.budget.wall-clock", budgets.seconds.map(f64::from)),
    ];
    let tightest = |measure: Measure| {
        let of = set.iter().filter(|(of, ..)| *of == measure);
        let (_, flag, limit) = of
            .filter_map(|(of, flag, limit)| Some((of, *flag, (*limit)?)))
            .min_by(|a, b| a.2.total_cmp(&b.2))?;
        let limit = spending.extended.get(&measure).copied().unwrap_or(limit);
        Some(Limit { measure, flag: flag.to_owned(), limit, used: usage.of(measure) })
    };
    Measure::ALL.into_iter().filter_map(tightest).collect()
}

/// The first limit that is used up.
pub fn exceeded(limits: &[Limit]) -> Option<&Limit> {
    limits.iter().find(|limit| limit.used >= limit.limit)
}

/// Limits of which at least this share (0.0 to 1.0) is used, and not all.
pub fn nearly_used(limits: &[Limit], share: f64) -> impl Iterator<Item = &Limit> {
    limits.iter().filter(move |l| l.used > 0.0 && l.used < l.limit && l.used >= l.limit * share)
}

/// What the guards say to a tool call.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It runs.
    Allowed,
    /// It never runs under this profile.
    Blocked {
        /// The key of the profile that says so.
        flag: &'static str,
        /// For people, with the scope.
        reason: String,
    },
    /// It runs when a person says so.
    Ask {
        /// The key of the profile that asks.
        flag: &'static str,
        /// For people, with the scope.
        reason: String,
    },
    /// A limit is used up; a person may extend it.
    Exceeded(Limit),
}

impl Verdict {
    /// It runs by itself.
    pub fn allowed(&self) -> bool {
        matches!(self, Self::Allowed)
    }

    /// A person's word lets it run.
    pub fn requires_approval(&self) -> bool {
        matches!(self, Self::Ask { .. } | Self::Exceeded(_))
    }
}

/// What a tool call depends on beyond the tool.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Call<'a> {
    /// The limits in force.
    pub limits: &'a [Limit],
    /// Whose they are.
    pub scope: Scope,
    /// A person said that this call may run.
    pub approved: bool,
    /// A checkpoint of what it writes exists.
    pub checkpointed: bool,
}

/// Whether a list's entry means a tool; one that comes with the program goes by its bare name, too (TOOL-036).
fn same_tool(entry: &str, name: &str) -> bool {
    entry == name || (!entry.contains('/') && name.strip_prefix("builtin/") == Some(entry))
}

/// Whether a tool may run now (GUARD-002, GUARD-003).
pub fn check(profile: &Profile, tool: &ToolFacts, call: &Call<'_>) -> Verdict {
    let (safety, guards, scope) = (&profile.safety, &profile.guards, call.scope.as_str());
    let (name, may) = (&tool.name, &tool.capability);
    let blocked = |flag, why: String| Verdict::Blocked { flag, reason: format!("{scope}: {why}") };
    if may.is_unsafe && !safety.allow_unsafe_tools {
        return blocked(
            "allow_unsafe_tools",
            format!("`{name}` is unsafe, and the profile allows no unsafe tool"),
        );
    }
    if !safety.allows_category(&tool.category) {
        let allowed = safety.allowed_skill_categories.join(", ");
        return blocked(
            "allowed_skill_categories",
            format!("`{name}` is of category `{}`; the profile allows {allowed}", tool.category),
        );
    }
    if may.writes && safety.require_checkpoints && !(may.checkpointable && call.checkpointed) {
        return blocked(
            "require_checkpoints",
            format!("`{name}` would write what no checkpoint could bring back"),
        );
    }
    let ask = |flag, why: &str| Verdict::Ask { flag, reason: format!("{scope}: {why}") };
    let named =
        |list: &Option<Vec<String>>| list.as_ref().map(|list| list.iter().any(|n| same_tool(n, name)));
    if !call.approved {
        if named(&guards.tool_denylist) == Some(true) {
            return ask("tool_denylist", &format!("`{name}` is on the profile's denylist"));
        }
        if named(&guards.tool_allowlist) == Some(false) {
            return ask("tool_allowlist", &format!("`{name}` is not on the profile's allowlist"));
        }
    }
    if let Some(limit) = exceeded(call.limits) {
        return Verdict::Exceeded(limit.clone());
    }
    if !call.approved {
        if may.human_approval_required {
            return ask("human_approval_required", &format!("`{name}` wants a person's word for each call"));
        }
        if may.writes && guards.require_approval_for_writes {
            return ask(
                "require_approval_for_writes",
                &format!("`{name}` writes, and each write is asked about"),
            );
        }
        if safety.require_human_approval {
            return ask("require_human_approval", "each step is asked about");
        }
    }
    Verdict::Allowed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Guards, built_in_profile};

    const WRITES: &str = "builtin/apply-edits";

    fn write() -> ToolFacts {
        ToolFacts {
            name: WRITES.to_owned(),
            summary: String::new(),
            category: "edit".to_owned(),
            capability: Capability { writes: true, checkpointable: true, ..Capability::default() },
        }
    }

    fn strict() -> Profile {
        let mut profile = built_in_profile("ci").unwrap();
        profile.guards = Guards {
            max_tool_calls_per_step: Some(1),
            max_total_cost: Some(1.0),
            tool_allowlist: Some(vec!["builtin/read".to_owned()]),
            tool_denylist: Some(vec![WRITES.to_owned()]),
            require_approval_for_writes: true,
            require_approval_for_apply: true,
        };
        profile.safety.require_human_approval = true;
        profile
    }

    fn verdict(profile: &Profile, usage: &Usage, approved: bool) -> Verdict {
        let limits = limits(profile, &Budgets::default(), usage, &Spending::default());
        let call = Call { limits: &limits, scope: Scope::Subplan, approved, checkpointed: true };
        check(profile, &write(), &call)
    }

    fn flag(verdict: &Verdict) -> &str {
        match verdict {
            Verdict::Allowed => "allowed",
            Verdict::Blocked { flag, .. } | Verdict::Ask { flag, .. } => flag,
            Verdict::Exceeded(limit) => &limit.flag,
        }
    }

    // GUARD-002, GUARD-003, GUARD-004: each guard hits before those after it.
    #[test]
    fn the_first_guard_in_order_hits() {
        let used = Usage { step_calls: 1, cost: 1.0, ..Usage::default() };
        let mut profile = strict();
        let mut hits = Vec::new();
        let remove: [fn(&mut Profile); 6] = [
            |p| p.guards.tool_denylist = None,
            |p| p.guards.tool_allowlist = None,
            |p| p.guards.max_tool_calls_per_step = None,
            |p| p.guards.max_total_cost = None,
            |p| p.guards.require_approval_for_writes = false,
            |p| p.safety.require_human_approval = false,
        ];
        for remove in remove {
            let said = verdict(&profile, &used, false);
            assert!(!said.allowed() && said.requires_approval(), "{said:?}");
            hits.push(flag(&said).to_owned());
            remove(&mut profile);
        }
        assert_eq!(
            hits,
            [
                "tool_denylist",
                "tool_allowlist",
                "max_tool_calls_per_step",
                "guards.max_total_cost",
                "require_approval_for_writes",
                "require_human_approval"
            ]
        );
        assert_eq!(verdict(&profile, &used, false), Verdict::Allowed);
    }

    #[test]
    fn a_persons_word_lets_a_call_run_but_extends_no_limit_and_lifts_no_block() {
        let mut profile = strict();
        assert_eq!(verdict(&profile, &Usage::default(), true), Verdict::Allowed);
        let over = verdict(&profile, &Usage { step_calls: 1, ..Usage::default() }, true);
        assert_eq!(flag(&over), "max_tool_calls_per_step");
        profile.safety.allowed_skill_categories = vec!["test".to_owned()];
        let blocked = verdict(&profile, &Usage::default(), true);
        assert_eq!((flag(&blocked), blocked.requires_approval()), ("allowed_skill_categories", false));
    }

    // PROF-011
    #[test]
    fn unsafe_tools_and_writes_without_a_checkpoint_are_blocked() {
        let mut bad = write();
        bad.capability.is_unsafe = true;
        let call = Call { limits: &[], scope: Scope::Plan, approved: true, checkpointed: false };
        let (ci, free) = (built_in_profile("ci").unwrap(), built_in_profile("full-auto").unwrap());
        match check(&ci, &bad, &call) {
            Verdict::Blocked { flag: "allow_unsafe_tools", reason } => assert!(reason.starts_with("PLAN: ")),
            other => panic!("{other:?}"),
        }
        assert_eq!(flag(&check(&ci, &write(), &call)), "require_checkpoints");
        assert!(check(&free, &bad, &call).allowed());
        assert!(check(&ci, &write(), &Call { checkpointed: true, ..call }).allowed());
    }

    // GUARD-005, C-58
    #[test]
    fn of_several_limits_the_tightest_holds() {
        let mut profile = built_in_profile("ci").unwrap();
        profile.safety.max_cost_per_plan = Some(3.0);
        profile.guards.max_total_cost = Some(2.0);
        let budgets = Budgets { cost: Some(2.5), step_calls: Some(25), ..Budgets::default() };
        let usage = Usage { cost: 1.7, ..Usage::default() };
        let limits = limits(&profile, &budgets, &usage, &Spending::default());
        let flags: Vec<&str> = limits.iter().map(|l| l.flag.as_str()).collect();
        assert_eq!(flags, ["plan.tool.max-calls-per-step", "guards.max_total_cost"]);
        assert!((limits[1].left() - 0.3).abs() < 1e-9);
        assert_eq!(exceeded(&limits), None);
        // GUARD-014
        assert_eq!(nearly_used(&limits, 0.8).map(|l| l.measure).collect::<Vec<_>>(), [Measure::Cost]);
    }

    #[test]
    fn an_extended_limit_lets_as_much_again() {
        let profile = {
            let mut profile = built_in_profile("ci").unwrap();
            profile.guards.max_tool_calls_per_step = Some(0);
            profile
        };
        let mut spending = Spending::default();
        let usage = Usage::default();
        let reached = |spending: &Spending, usage: &Usage| {
            exceeded(&limits(&profile, &Budgets::default(), usage, spending)).cloned()
        };
        spending.reached = reached(&spending, &usage);
        assert!(spending.reached.is_some(), "a limit of 0 allows nothing");
        spending.extend();
        assert_eq!(reached(&spending, &usage), None);
        let one = Usage { step_calls: 1, ..usage };
        spending.reached = reached(&spending, &one);
        spending.extend();
        assert_eq!(reached(&spending, &one), None);
        spending.next_step();
        assert!(reached(&spending, &usage).is_some());
    }
}
