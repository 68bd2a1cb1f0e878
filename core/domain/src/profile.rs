//! Automation profiles: what a plan may do without asking, and the gates that check it.

mod built_in;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Timestamp;

pub use built_in::{built_in_profile, built_in_profiles};

/// What a threshold guards. The specification's flag names do not say what they gate; these do, and
/// [`Gate::flag`] is the name in files and output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// `decompose_task`: use to Strategize.
    AutoStrategize,
    /// `create_tool`: Strategize to Execute.
    AutoExecute,
    /// `select_tool`: Execute to Apply.
    AutoApply,
    /// `edit_code`: a decision of Strategize.
    StrategyDecision,
    /// `execute_command`: a decision of Execute.
    ExecutionDecision,
    /// `create_file`: fixing what a validation found.
    ValidationFix,
    /// `delete_content`: Execute back to Strategize.
    ExecuteReversion,
    /// `access_network`: a constrained Apply back to Strategize.
    ApplyReversion,
    /// `install_dependency`: starting a child plan.
    SpawnChild,
    /// `modify_config`: retrying a transient failure.
    Retry,
    /// `approve_plan`: restoring a checkpoint and retrying.
    RestoreCheckpoint,
}

impl Gate {
    /// Every gate, in the order of the specification's table.
    pub const ALL: [Gate; 11] = [
        Self::AutoStrategize,
        Self::AutoExecute,
        Self::AutoApply,
        Self::StrategyDecision,
        Self::ExecutionDecision,
        Self::ValidationFix,
        Self::ExecuteReversion,
        Self::ApplyReversion,
        Self::SpawnChild,
        Self::Retry,
        Self::RestoreCheckpoint,
    ];

    /// The specification's flag.
    pub fn flag(self) -> &'static str {
        match self {
            Self::AutoStrategize => "decompose_task",
            Self::AutoExecute => "create_tool",
            Self::AutoApply => "select_tool",
            Self::StrategyDecision => "edit_code",
            Self::ExecutionDecision => "execute_command",
            Self::ValidationFix => "create_file",
            Self::ExecuteReversion => "delete_content",
            Self::ApplyReversion => "access_network",
            Self::SpawnChild => "install_dependency",
            Self::Retry => "modify_config",
            Self::RestoreCheckpoint => "approve_plan",
        }
    }

    /// What passes it, for people.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::AutoStrategize => "start Strategize",
            Self::AutoExecute => "go from Strategize to Execute",
            Self::AutoApply => "go from Execute to Apply",
            Self::StrategyDecision => "decide in Strategize",
            Self::ExecutionDecision => "decide in Execute",
            Self::ValidationFix => "fix what a validation found",
            Self::ExecuteReversion => "go back from Execute to Strategize",
            Self::ApplyReversion => "go back from a constrained Apply to Strategize",
            Self::SpawnChild => "start a child plan",
            Self::Retry => "retry what failed for a passing reason",
            Self::RestoreCheckpoint => "restore a checkpoint and try again",
        }
    }
}

/// The eleven thresholds, each 0.0 to 1.0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "each is the flag of its gate")]
pub struct Thresholds {
    pub decompose_task: f64,
    pub create_tool: f64,
    pub select_tool: f64,
    pub edit_code: f64,
    pub execute_command: f64,
    pub create_file: f64,
    pub delete_content: f64,
    pub access_network: f64,
    pub install_dependency: f64,
    pub modify_config: f64,
    pub approve_plan: f64,
}

impl Thresholds {
    /// The threshold of a gate.
    pub fn of(&self, gate: Gate) -> f64 {
        match gate {
            Gate::AutoStrategize => self.decompose_task,
            Gate::AutoExecute => self.create_tool,
            Gate::AutoApply => self.select_tool,
            Gate::StrategyDecision => self.edit_code,
            Gate::ExecutionDecision => self.execute_command,
            Gate::ValidationFix => self.create_file,
            Gate::ExecuteReversion => self.delete_content,
            Gate::ApplyReversion => self.access_network,
            Gate::SpawnChild => self.install_dependency,
            Gate::Retry => self.modify_config,
            Gate::RestoreCheckpoint => self.approve_plan,
        }
    }

    /// Whether the gate lets through without a person: 0.0 always, 1.0 never, else from the threshold on.
    pub fn pass(&self, gate: Gate, confidence: f64) -> bool {
        let threshold = self.of(gate);
        threshold == 0.0 || (threshold < 1.0 && confidence >= threshold)
    }

    /// The stricter of two, threshold by threshold.
    pub fn strictest(&self, other: &Self) -> Self {
        Self::from_array(Gate::ALL.map(|gate| self.of(gate).max(other.of(gate))))
    }

    /// In the order of [`Gate::ALL`].
    fn from_array(v: [f64; 11]) -> Self {
        Self {
            decompose_task: v[0],
            create_tool: v[1],
            select_tool: v[2],
            edit_code: v[3],
            execute_command: v[4],
            create_file: v[5],
            delete_content: v[6],
            access_network: v[7],
            install_dependency: v[8],
            modify_config: v[9],
            approve_plan: v[10],
        }
    }
}

/// Limits that hold whatever the thresholds say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Safety {
    /// Execute fails without a sandbox.
    pub require_sandbox: bool,
    /// A checkpoint exists before each write.
    pub require_checkpoints: bool,
    /// Tools marked unsafe may run.
    pub allow_unsafe_tools: bool,
    /// Every step waits for a person.
    pub require_human_approval: bool,
    /// Skills that may be used; empty allows all.
    pub allowed_skill_categories: Vec<String>,
    /// US dollars per plan.
    pub max_cost_per_plan: Option<f64>,
    /// US dollars for the whole tree of plans.
    pub max_total_cost: Option<f64>,
    /// Retries of a step, 0 to 100.
    pub max_retries_per_step: u32,
}

impl Default for Safety {
    fn default() -> Self {
        Self {
            require_sandbox: true,
            require_checkpoints: true,
            allow_unsafe_tools: false,
            require_human_approval: false,
            allowed_skill_categories: Vec::new(),
            max_cost_per_plan: None,
            max_total_cost: None,
            max_retries_per_step: 3,
        }
    }
}

/// The least of two limits, where `None` is no limit.
fn tighter<T: PartialOrd>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b < a { b } else { a }),
        (a, b) => a.or(b),
    }
}

impl Safety {
    /// What satisfies both.
    pub fn tightest(&self, other: &Self) -> Self {
        let allowed = match (&self.allowed_skill_categories[..], &other.allowed_skill_categories[..]) {
            ([], allowed) | (allowed, []) => allowed.to_vec(),
            (own, others) => {
                let both: Vec<String> = own.iter().filter(|c| others.contains(c)).cloned().collect();
                // An empty list would allow all.
                if both.is_empty() { vec![NO_CATEGORY.to_owned()] } else { both }
            }
        };
        Self {
            require_sandbox: self.require_sandbox || other.require_sandbox,
            require_checkpoints: self.require_checkpoints || other.require_checkpoints,
            allow_unsafe_tools: self.allow_unsafe_tools && other.allow_unsafe_tools,
            require_human_approval: self.require_human_approval || other.require_human_approval,
            allowed_skill_categories: allowed,
            max_cost_per_plan: tighter(self.max_cost_per_plan, other.max_cost_per_plan),
            max_total_cost: tighter(self.max_total_cost, other.max_total_cost),
            max_retries_per_step: self.max_retries_per_step.min(other.max_retries_per_step),
        }
    }

    /// Whether tools of a skill category may be used.
    pub fn allows_category(&self, category: &str) -> bool {
        self.allowed_skill_categories.is_empty()
            || self.allowed_skill_categories.iter().any(|c| c == category)
    }
}

/// A category that no skill has.
const NO_CATEGORY: &str = "(none)";

/// Limits on tool calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Guards {
    /// Calls per step.
    pub max_tool_calls_per_step: Option<u32>,
    /// US dollars.
    pub max_total_cost: Option<f64>,
    /// Only these tools run by themselves.
    pub tool_allowlist: Option<Vec<String>>,
    /// These never run by themselves.
    pub tool_denylist: Option<Vec<String>>,
    /// Each write waits for a person.
    pub require_approval_for_writes: bool,
    /// Apply waits for a person.
    pub require_approval_for_apply: bool,
}

/// A profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// A built-in word, or `namespace/name`.
    pub name: String,
    /// For people.
    pub description: String,
    /// The thresholds.
    pub thresholds: Thresholds,
    /// The limits.
    pub safety: Safety,
    /// The limits on tools.
    pub guards: Guards,
}

impl Guards {
    /// What satisfies both.
    pub fn tightest(&self, other: &Self) -> Self {
        let allowed = match (&self.tool_allowlist, &other.tool_allowlist) {
            (Some(own), Some(others)) => Some(own.iter().filter(|t| others.contains(t)).cloned().collect()),
            (own, others) => own.clone().or_else(|| others.clone()),
        };
        let denied: Vec<String> =
            self.tool_denylist.iter().chain(&other.tool_denylist).flatten().cloned().collect();
        Self {
            max_tool_calls_per_step: tighter(self.max_tool_calls_per_step, other.max_tool_calls_per_step),
            max_total_cost: tighter(self.max_total_cost, other.max_total_cost),
            tool_allowlist: allowed,
            tool_denylist: (!denied.is_empty()).then_some(denied),
            require_approval_for_writes: self.require_approval_for_writes
                || other.require_approval_for_writes,
            require_approval_for_apply: self.require_approval_for_apply || other.require_approval_for_apply,
        }
    }
}

impl Profile {
    /// The profile that asks whenever one of the two does, for a plan on several projects.
    pub fn strictest(&self, other: &Self) -> Self {
        Self {
            name: format!("{}+{}", self.name, other.name),
            description: format!("The stricter of {} and {}", self.name, other.name),
            thresholds: self.thresholds.strictest(&other.thresholds),
            safety: self.safety.tightest(&other.safety),
            guards: self.guards.tightest(&other.guards),
        }
    }

    /// What cannot be, as key and message; empty for a sound profile.
    pub fn problems(&self) -> Vec<(String, String)> {
        let mut problems = Vec::new();
        let mut say = |path: &str, message: String| problems.push((path.to_owned(), message));
        for gate in Gate::ALL {
            let (flag, value) = (gate.flag(), self.thresholds.of(gate));
            // Also refuses what is no number.
            if !(0.0..=1.0).contains(&value) {
                say(flag, format!("`{flag}` must be a number from 0.0 to 1.0, not {value}"));
            }
        }
        for (path, cost) in [
            ("safety.max_cost_per_plan", self.safety.max_cost_per_plan),
            ("safety.max_total_cost", self.safety.max_total_cost),
            ("guards.max_total_cost", self.guards.max_total_cost),
        ] {
            if let Some(cost) = cost.filter(|cost| !cost.is_finite() || *cost < 0.0) {
                say(path, format!("`{path}` must be an amount from 0, not {cost}"));
            }
        }
        if let (Some(plan), Some(all)) = (self.safety.max_cost_per_plan, self.safety.max_total_cost)
            && plan > all
        {
            let message =
                format!("`max_cost_per_plan` ({plan}) must not be more than `max_total_cost` ({all})");
            say("safety.max_cost_per_plan", message);
        }
        if self.safety.max_retries_per_step > MAX_RETRIES {
            let retries = self.safety.max_retries_per_step;
            let message = format!("`max_retries_per_step` must be from 0 to {MAX_RETRIES}, not {retries}");
            say("safety.max_retries_per_step", message);
        }
        problems
    }
}

/// The most retries of a step a profile may allow.
const MAX_RETRIES: u32 = 100;

/// A registered profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegisteredProfile {
    /// What its file said.
    pub profile: Profile,
    /// The file it came from, as given.
    pub config_path: String,
    /// The file's text.
    pub source: String,
    /// When it was registered.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// A profile locked into a plan, with the level that named it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileSnapshot {
    /// The profile as it was.
    pub profile: Profile,
    /// `CLI flag`, `action`, `project`, `global` or `default`; `parent plan` of a child plan; `changed` under way.
    pub source: String,
}

/// The profile plans get when nothing names one.
pub const DEFAULT_PROFILE: &str = "supervised";
