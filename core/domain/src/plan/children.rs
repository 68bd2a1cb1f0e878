//! Child plans: what a plan decided to hand on, how far each of it is, and which may start next.
//!
//! The order comes from one relation, *comes after*. Where any spawn of a plan names spawns it depends on, those
//! dependencies are the whole relation. Otherwise spawns come one after another as they were decided, and those under
//! one `subplan_parallel_spawn` together. The relation is cut into waves: a wave starts when the waves before it are
//! over, so that what it starts from does not depend on who was fast.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::QualifiedName;
use crate::ids::{DecisionId, PlanId, ResourceId};

/// What a child plan shall do, as the parent decided it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SpawnDraft {
    /// The action it is made from; the parent's own unless given.
    pub action: Option<QualifiedName>,
    /// Projects of the parent it works on; all of them unless given.
    pub projects: Vec<QualifiedName>,
    /// Values for the action's arguments.
    pub arguments: BTreeMap<String, Value>,
    /// What it is asked for; the action's description unless given.
    pub prompt: Option<String>,
    /// Keys of the spawn decisions (or of a parallel container) it comes after.
    pub depends_on: Vec<String>,
    /// The files it is about, relative to their resource.
    pub target_files: Vec<String>,
}

/// How child plans are merged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MergeStrategy {
    /// As git merges branches.
    #[default]
    GitThreeWay,
}

/// How a plan runs its child plans.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SubplanConfig {
    /// Child plans that run at once, 1 to 50.
    #[schemars(range(min = 1, max = 50))]
    pub max_parallel: u32,
    /// How their results come together.
    pub merge_strategy: MergeStrategy,
    /// After the first one that fails, start no other and stop those that run; they go on when the plan is taken up again.
    pub fail_fast: bool,
    /// Seconds one may run without waiting for a person; no limit unless given.
    #[schemars(range(min = 1))]
    pub timeout_per_subplan_seconds: Option<u64>,
    /// Try those that fail again.
    pub retry_failed: bool,
    /// How often.
    #[schemars(range(max = 100))]
    pub max_retries: u32,
}

impl Default for SubplanConfig {
    fn default() -> Self {
        Self {
            max_parallel: 5,
            merge_strategy: MergeStrategy::GitThreeWay,
            fail_fast: false,
            timeout_per_subplan_seconds: None,
            retry_failed: true,
            max_retries: 2,
        }
    }
}

/// How far a spawn is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "stage")]
pub enum Stage {
    /// Decided; no plan yet.
    #[default]
    Decided,
    /// Its plan was made and is not in the parent yet.
    Started,
    /// The parent's sandbox has conflict markers; a person says what shall stand.
    Conflicted {
        /// The files.
        conflicts: Vec<MergeConflict>,
        /// The parent's commits before the merge, per resource.
        before: Vec<(ResourceId, String)>,
    },
    /// The parent's sandbox has what it did.
    Merged {
        /// The child's commits that are in, per resource.
        commits: Vec<(ResourceId, String)>,
    },
    /// Not made into a plan.
    Skipped {
        /// Why.
        reason: String,
        /// A person left it out; else another one's failure did.
        left_out: bool,
    },
}

/// A file of a merge that both sides changed in ways that exclude each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MergeConflict {
    /// The resource.
    pub resource_id: ResourceId,
    /// The file, relative, with `/`.
    pub path: String,
    /// `contents`, `modify/delete`, `add/add` ...
    pub kind: String,
}

/// A child plan that was decided, with what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spawn {
    /// The decision of the parent it hangs on.
    pub decision_id: DecisionId,
    /// The tool call that asked for it; empty for a spawn decision, which has one plan.
    pub call: String,
    /// The parent.
    pub plan_id: PlanId,
    /// What it shall do.
    pub draft: SpawnDraft,
    /// The child, once there is one.
    pub child: Option<PlanId>,
    /// How far it is.
    pub stage: Stage,
    /// A person let it start.
    pub approved: bool,
    /// How often it was tried again.
    pub retries: u32,
    /// It failed, and trying again is over.
    #[serde(default)]
    pub given_up: bool,
}

/// Where a spawn stands, as far as the order cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Not started.
    Waiting,
    /// Being worked on.
    Running,
    /// Waits for a person.
    Paused,
    /// Done, merged or not.
    Done,
    /// Failed.
    Failed,
    /// Left out by a person; what comes after it in order goes on, what depends on it does not.
    LeftOut,
    /// Not started because of another.
    Skipped,
}

impl Standing {
    /// Nothing happens to it any more.
    pub fn over(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::LeftOut | Self::Skipped)
    }
}

/// A spawn for the scheduler; spawns are given in the order decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Unique name.
    pub name: String,
    /// The parallel container it is in.
    pub group: Option<String>,
    /// Names of units or groups it depends on.
    pub depends_on: Vec<String>,
    /// Where it stands.
    pub standing: Standing,
}

/// The order of a plan's spawns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Indexes of units, wave by wave.
    pub waves: Vec<Vec<usize>>,
    /// Whether the units depend on each other by name; else they follow each other as decided.
    pub by_dependency: bool,
    /// Per unit the indexes of those it comes after.
    after: Vec<Vec<usize>>,
}

impl Order {
    /// Everything a unit comes after, directly or not.
    pub fn before(&self, at: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut open = vec![at];
        while let Some(at) = open.pop() {
            open.extend(self.after[at].iter().copied().filter(|on| found.insert(*on)));
        }
        found
    }
}

/// Why spawns have no order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// They wait for each other.
    #[error("child plans wait for each other: {}", .0.join(" -> "))]
    Cycle(Vec<String>),
    /// A dependency that is no spawn.
    #[error("`{unit}` depends on `{on}`, which is no child plan of this plan")]
    Unknown {
        /// The spawn.
        unit: String,
        /// What it names.
        on: String,
    },
}

/// Orders spawns into waves, or says why they have no order.
pub fn order(units: &[Unit]) -> Result<Order, OrderError> {
    let by_dependency = units.iter().any(|u| !u.depends_on.is_empty());
    let mut after: Vec<Vec<usize>> = Vec::with_capacity(units.len());
    let mut previous: Vec<usize> = Vec::new();
    let mut current: Vec<usize> = Vec::new();
    for (at, unit) in units.iter().enumerate() {
        if by_dependency {
            let mut mine = BTreeSet::new();
            for on in &unit.depends_on {
                let named = |u: &Unit| u.name == *on || u.group.as_ref() == Some(on);
                let found: Vec<usize> = (0..units.len()).filter(|i| named(&units[*i])).collect();
                if found.is_empty() {
                    return Err(OrderError::Unknown { unit: unit.name.clone(), on: on.clone() });
                }
                mine.extend(found);
            }
            after.push(mine.into_iter().collect());
            continue;
        }
        let together = unit.group.is_some() && current.last().is_some_and(|l| units[*l].group == unit.group);
        if !together {
            previous = std::mem::take(&mut current);
        }
        current.push(at);
        after.push(previous.clone());
    }
    let mut wave_of: Vec<Option<usize>> = vec![None; units.len()];
    let mut waves: Vec<Vec<usize>> = Vec::new();
    loop {
        let free = |at: &usize| wave_of[*at].is_none() && after[*at].iter().all(|on| wave_of[*on].is_some());
        let wave: Vec<usize> = (0..units.len()).filter(free).collect();
        if wave.is_empty() {
            break;
        }
        for at in &wave {
            wave_of[*at] = Some(waves.len());
        }
        waves.push(wave);
    }
    match wave_of.iter().position(Option::is_none) {
        None => Ok(Order { waves, by_dependency, after }),
        Some(start) => Err(OrderError::Cycle(cycle(units, &after, &wave_of, start))),
    }
}

/// A cycle that is reached from `start`, by name, its first at the end again.
fn cycle(units: &[Unit], after: &[Vec<usize>], wave_of: &[Option<usize>], start: usize) -> Vec<String> {
    let mut path = vec![start];
    // Whoever has no wave comes after another without one, so this runs into its own path.
    while let Some(next) = path.last().and_then(|at| after[*at].iter().find(|on| wave_of[**on].is_none())) {
        if let Some(from) = path.iter().position(|at| at == next) {
            path.push(*next);
            return path[from..].iter().map(|at| units[*at].name.clone()).collect();
        }
        path.push(*next);
    }
    path.iter().map(|at| units[*at].name.clone()).collect()
}

/// What is to be done with a plan's spawns now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Next {
    /// Waiting ones to start, in order.
    pub start: Vec<usize>,
    /// Waiting ones that are not to be started, with the one whose failure is the reason.
    pub skip: Vec<(usize, usize)>,
    /// The waves that are over; their results can be merged.
    pub finished_waves: usize,
    /// All are over (when nothing is to be skipped).
    pub over: bool,
}

/// Which spawns start or are skipped, given where each stands; pure, so that a plan that was killed goes on the same.
pub fn next(units: &[Unit], order: &Order, config: &SubplanConfig) -> Next {
    let mut next = Next::default();
    let failed = units.iter().position(|u| u.standing == Standing::Failed);
    for (at, unit) in units.iter().enumerate().filter(|(_, u)| u.standing == Standing::Waiting) {
        let stops = |on: &&usize| match units[**on].standing {
            Standing::Failed | Standing::Skipped => true,
            Standing::LeftOut => order.by_dependency,
            _ => false,
        };
        let cause = match order.after[at].iter().find(stops) {
            Some(on) => Some(*on),
            None => failed.filter(|_| config.fail_fast),
        };
        if let Some(cause) = cause {
            debug_assert_ne!(unit.name, units[cause].name);
            next.skip.push((at, cause));
        }
    }
    next.finished_waves =
        order.waves.iter().take_while(|wave| wave.iter().all(|at| units[*at].standing.over())).count();
    next.over = next.finished_waves == order.waves.len();
    if let Some(wave) = order.waves.get(next.finished_waves) {
        let running = units.iter().filter(|u| u.standing == Standing::Running).count();
        let free = (config.max_parallel.max(1) as usize).saturating_sub(running);
        let skipped = |at: &&usize| next.skip.iter().any(|(s, _)| s == *at);
        let waiting = wave.iter().filter(|at| units[**at].standing == Standing::Waiting && !skipped(at));
        next.start = waiting.copied().take(free).collect();
    }
    next
}

/// `3/5 complete`.
pub fn progress_text(done: usize, total: usize) -> String {
    format!("{done}/{total} complete")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unit(name: &str, group: Option<&str>, depends_on: &[&str]) -> Unit {
        Unit {
            name: name.to_owned(),
            group: group.map(str::to_owned),
            depends_on: depends_on.iter().map(|d| (*d).to_owned()).collect(),
            standing: Standing::Waiting,
        }
    }

    fn config(max_parallel: u32) -> SubplanConfig {
        SubplanConfig { max_parallel, ..SubplanConfig::default() }
    }

    fn started(units: &[Unit], config: &SubplanConfig) -> Vec<String> {
        let order = order(units).unwrap();
        next(units, &order, config).start.into_iter().map(|at| units[at].name.clone()).collect()
    }

    // SUB-002, SUB-004
    #[test]
    fn bare_spawns_follow_each_other_and_a_container_is_one_step() {
        let mut units = vec![
            unit("a", None, &[]),
            unit("b", Some("g"), &[]),
            unit("c", Some("g"), &[]),
            unit("d", None, &[]),
        ];
        assert_eq!(order(&units).unwrap().waves, [vec![0], vec![1, 2], vec![3]]);
        assert_eq!(started(&units, &config(5)), ["a"]);
        units[0].standing = Standing::Done;
        assert_eq!(started(&units, &config(5)), ["b", "c"]);
        units[1].standing = Standing::Failed;
        assert_eq!(started(&units, &config(5)), ["c"], "the others of a container go on");
        let fast = SubplanConfig { fail_fast: true, ..config(5) };
        assert_eq!(started(&units, &fast), [""; 0]);
        units[2].standing = Standing::Done;
        let order = order(&units).unwrap();
        assert_eq!(next(&units, &order, &config(5)).skip, [(3, 1)], "what follows a failure is not started");
    }

    // SUB-006
    #[test]
    fn dependencies_make_waves_and_only_dependents_of_a_failure_are_skipped() {
        let mut units = vec![
            unit("lib", None, &[]),
            unit("docs", None, &[]),
            unit("user", Some("services"), &["lib"]),
            unit("order", Some("services"), &["lib"]),
            unit("site", None, &["docs"]),
            unit("all", None, &["services", "site"]),
        ];
        let order_of = order(&units).unwrap();
        assert_eq!(order_of.waves, [vec![0, 1], vec![2, 3, 4], vec![5]]);
        units[0].standing = Standing::Failed;
        units[1].standing = Standing::Done;
        let now = next(&units, &order_of, &config(5));
        assert_eq!((now.skip, now.start), (vec![(2, 0), (3, 0)], vec![4]));
    }

    // SUB-006
    #[test]
    fn a_cycle_and_an_unknown_dependency_are_named() {
        let circle = [unit("a", None, &["c"]), unit("b", None, &["a"]), unit("c", None, &["b"])];
        let why = order(&circle).unwrap_err().to_string();
        assert_eq!(why, "child plans wait for each other: a -> c -> b -> a");
        let lost = order(&[unit("a", None, &["nobody"])]).unwrap_err().to_string();
        assert_eq!(lost, "`a` depends on `nobody`, which is no child plan of this plan");
    }

    // SUB-007
    #[test]
    fn the_defaults_are_those_of_the_specification() {
        let SubplanConfig {
            max_parallel,
            merge_strategy,
            fail_fast,
            timeout_per_subplan_seconds,
            retry_failed,
            max_retries,
        } = SubplanConfig::default();
        assert_eq!((max_parallel, fail_fast, retry_failed, max_retries), (5, false, true, 2));
        assert_eq!((merge_strategy, timeout_per_subplan_seconds), (MergeStrategy::GitThreeWay, None));
    }

    fn arbitrary() -> impl Strategy<Value = Vec<Unit>> {
        let one = (proptest::option::of(0..3u8), proptest::collection::vec(0..20usize, 0..3));
        proptest::collection::vec(one, 1..20).prop_map(|rows| {
            let name = |at: usize| format!("u{at}");
            rows.into_iter()
                .enumerate()
                .map(|(at, (group, on))| Unit {
                    name: name(at),
                    group: group.map(|g| format!("g{g}")),
                    // Mostly earlier ones, so that most have an order.
                    depends_on: on.into_iter().filter(|on| *on < at).map(name).collect(),
                    standing: Standing::Waiting,
                })
                .collect()
        })
    }

    proptest! {
        // SUB-006, SUB-008: whatever fails, everything ends; nothing starts before what it comes after, never too many.
        #[test]
        fn every_run_ends_and_keeps_the_order(
            units in arbitrary(), fates in proptest::collection::vec(0..10u8, 20), parallel in 1..6u32, fail_fast: bool,
        ) {
            let config = SubplanConfig { fail_fast, ..config(parallel) };
            let order = order(&units).unwrap();
            let mut units = units;
            for _ in 0..1000 {
                let now = next(&units, &order, &config);
                if now.over {
                    break;
                }
                let running = units.iter().filter(|u| u.standing == Standing::Running).count();
                prop_assert!(!now.start.is_empty() || !now.skip.is_empty() || running > 0, "stuck: {units:?}");
                for (at, _) in now.skip {
                    units[at].standing = Standing::Skipped;
                }
                for at in now.start {
                    prop_assert!(order.after[at].iter().all(|on| units[*on].standing.over()));
                    units[at].standing = Standing::Running;
                }
                let running: Vec<usize> =
                    (0..units.len()).filter(|at| units[*at].standing == Standing::Running).collect();
                prop_assert!(running.len() <= parallel as usize);
                if let Some(at) = running.last() {
                    units[*at].standing = match fates[*at] {
                        0 => Standing::Failed,
                        1 => Standing::LeftOut,
                        _ => Standing::Done,
                    };
                }
            }
            prop_assert!(units.iter().all(|u| u.standing.over()));
        }
    }
}
