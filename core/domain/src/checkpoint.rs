//! Checkpoints: points of a plan's sandboxes one can return to, which of them are kept, and how far they reach.

use std::collections::{BTreeMap, HashSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::ids::{CheckpointId, DecisionId, PlanId, ResourceId};
use crate::plan::Phase;
use crate::resource::SandboxStrategy;

/// Why a checkpoint was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointKind {
    /// The untouched base, when the sandbox was made.
    Base,
    /// Before a tool writes.
    PreWrite,
    /// After a tool has written.
    PostStep,
    /// After all writes under one decision.
    Decision,
    /// Before a child plan is started.
    SubplanSpawn,
    /// When Execute failed.
    OnError,
    /// Made for a person: asked for, or to keep what they edited.
    Manual,
}

/// What makes a checkpoint without being asked; the words of `sandbox.checkpoint.auto-create-on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Trigger {
    BeforeToolExecute,
    AfterToolExecute,
    OnSubplanSpawn,
    OnError,
}

impl Trigger {
    /// Its word in the configuration and in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BeforeToolExecute => "before_tool_execute",
            Self::AfterToolExecute => "after_tool_execute",
            Self::OnSubplanSpawn => "on_subplan_spawn",
            Self::OnError => "on_error",
        }
    }

    /// The kind of the checkpoints it makes.
    pub fn kind(self) -> CheckpointKind {
        match self {
            Self::BeforeToolExecute => CheckpointKind::PreWrite,
            Self::AfterToolExecute => CheckpointKind::PostStep,
            Self::OnSubplanSpawn => CheckpointKind::SubplanSpawn,
            Self::OnError => CheckpointKind::OnError,
        }
    }
}

/// The commit a sandbox was at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxAt {
    /// The sandboxed resource.
    pub resource_id: ResourceId,
    /// The commit.
    pub commit: String,
}

/// What a checkpoint holds that its predecessor does not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointDiff {
    /// The commit it differs from: that of the resource's checkpoint before it, or of the state before a decision's
    /// first write.
    pub diff_based: String,
    /// The files that differ, relative, with `/`.
    pub diff_paths: Vec<String>,
    /// SHA-256 over the differing files' names, modes and contents.
    pub diff_hash: String,
    /// Bytes of those files.
    pub size_bytes: u64,
}

/// A recorded checkpoint of one sandbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Checkpoint {
    /// Its id.
    pub checkpoint_id: CheckpointId,
    /// The plan.
    pub plan_id: PlanId,
    /// The decision whose writes it opens or closes, if any. The checkpoints of one decision are a group.
    pub decision_id: Option<DecisionId>,
    /// The sandboxed resource.
    pub resource_id: ResourceId,
    /// Why.
    pub kind: CheckpointKind,
    /// For people: what was done up to here.
    pub label: String,
    /// The sandbox's commit.
    pub commit: String,
    /// The phase it was made in.
    pub phase: Phase,
    /// The tool that was about to write, or had written.
    pub source_tool: Option<String>,
    /// What it holds that the one before does not.
    pub diff: CheckpointDiff,
    /// Where every sandbox of the plan was, this one included, so that one can return to the whole of it.
    pub sandboxes: Vec<SandboxAt>,
    /// When.
    pub created_at: Timestamp,
}

/// Which checkpoints go so that at most `max` are left, and which decisions lose the last one they had.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruned {
    /// What goes.
    pub remove: Vec<CheckpointId>,
    /// Active decisions that cannot be taken back by themselves any more.
    pub lost: Vec<DecisionId>,
}

/// Chooses what is pruned. `all` is in the order made; `active` are the decisions that still hold.
///
/// The first and the newest of each resource stay, whatever `max` says. What no active decision needs goes first, then
/// what is held by another checkpoint as well, then what lies within a decision's writes; the groups of active
/// decisions go last, oldest first and each as a whole.
pub fn prune(all: &[Checkpoint], max: usize, active: &HashSet<DecisionId>) -> Pruned {
    let mut kept: Vec<&Checkpoint> = all.iter().collect();
    let mut pruned = Pruned::default();
    while kept.len() > max {
        let Some((at, rank)) = least_needed(&kept, active) else { break };
        let group = kept[at].decision_id.filter(|_| rank == Rank::Group);
        let ends = ends(&kept);
        let goes: HashSet<CheckpointId> = match group {
            Some(decision) => {
                pruned.lost.push(decision);
                let own =
                    |(at, c): &(usize, &&Checkpoint)| c.decision_id == Some(decision) && !ends.contains(at);
                kept.iter().enumerate().filter(own).map(|(_, c)| c.checkpoint_id).collect()
            }
            None => HashSet::from([kept[at].checkpoint_id]),
        };
        pruned.remove.extend(kept.iter().map(|c| c.checkpoint_id).filter(|id| goes.contains(id)));
        kept.retain(|c| !goes.contains(&c.checkpoint_id));
    }
    pruned.lost.retain(|decision| !kept.iter().any(|c| c.decision_id == Some(*decision)));
    pruned.lost.dedup();
    pruned
}

/// How much a checkpoint is needed, least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Unneeded,
    HeldElsewhere,
    Within,
    Group,
}

/// Positions of the first and the newest of each resource.
fn ends(kept: &[&Checkpoint]) -> HashSet<usize> {
    let mut ends: BTreeMap<ResourceId, (usize, usize)> = BTreeMap::new();
    for (at, checkpoint) in kept.iter().enumerate() {
        ends.entry(checkpoint.resource_id).or_insert((at, at)).1 = at;
    }
    ends.into_values().flat_map(|(first, last)| [first, last]).collect()
}

fn least_needed(kept: &[&Checkpoint], active: &HashSet<DecisionId>) -> Option<(usize, Rank)> {
    let ends = ends(kept);
    let rank = |at: usize, checkpoint: &Checkpoint| {
        let Some(decision) = checkpoint.decision_id.filter(|d| active.contains(d)) else {
            return Rank::Unneeded;
        };
        let others = kept
            .iter()
            .enumerate()
            .filter(|(other, c)| *other != at && c.resource_id == checkpoint.resource_id);
        let own: Vec<usize> =
            others.clone().filter(|(_, c)| c.decision_id == Some(decision)).map(|(other, _)| other).collect();
        let held = others.clone().any(|(_, c)| c.commit == checkpoint.commit);
        match checkpoint.kind {
            CheckpointKind::PreWrite if held && !own.is_empty() => Rank::HeldElsewhere,
            CheckpointKind::PreWrite | CheckpointKind::PostStep if own.iter().any(|other| *other > at) => {
                Rank::Within
            }
            _ => Rank::Group,
        }
    };
    kept.iter()
        .enumerate()
        .filter(|(at, _)| !ends.contains(at))
        .map(|(at, checkpoint)| (at, rank(at, checkpoint)))
        .min_by_key(|(at, rank)| (*rank, *at))
}

/// Where each sandbox a decision wrote to was before its first write, as its checkpoints say; a resource it did not
/// write to is not there.
pub fn group_starts(all: &[Checkpoint], decision: DecisionId) -> Vec<SandboxAt> {
    let mut starts: Vec<SandboxAt> = Vec::new();
    for checkpoint in all.iter().filter(|c| c.decision_id == Some(decision)) {
        let commit = match checkpoint.kind {
            CheckpointKind::PreWrite => &checkpoint.commit,
            CheckpointKind::PostStep | CheckpointKind::Decision => &checkpoint.diff.diff_based,
            _ => continue,
        };
        if !starts.iter().any(|s| s.resource_id == checkpoint.resource_id) {
            starts.push(SandboxAt { resource_id: checkpoint.resource_id, commit: commit.clone() });
        }
    }
    starts
}

/// How far a plan's work can be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Nothing can be taken back: corrections only add.
    None,
    /// Only the whole of Execute can be taken back and done again.
    Phase,
    /// Single decisions can be taken back.
    Full,
}

impl Tier {
    /// Its word in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Phase => "phase",
            Self::Full => "full",
        }
    }
}

/// A resource that the work to be taken back wrote to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// Its name, for people.
    pub name: String,
    /// How its changes are kept apart.
    pub strategy: SandboxStrategy,
    /// The checkpoints of every decision to be taken back are there.
    pub checkpoints_kept: bool,
}

/// A tier with what keeps it from being a better one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TierVerdict {
    /// The tier.
    pub tier: Tier,
    /// For people; empty for the full tier.
    pub reasons: Vec<String>,
}

/// How far work on these resources can be taken back, when checkpoints are made or not. Work that touched nothing can
/// always be taken back.
pub fn tier(checkpoints_enabled: bool, touched: &[Touched]) -> TierVerdict {
    let mut reasons = Vec::new();
    if touched.is_empty() {
        return TierVerdict { tier: Tier::Full, reasons };
    }
    if !checkpoints_enabled {
        reasons.push("checkpoints are switched off (sandbox.checkpoint.enabled)".to_owned());
    }
    for resource in touched {
        let name = &resource.name;
        if !resource.strategy.rolls_back() {
            reasons.push(format!(
                "`{name}` has no sandbox that can be rolled back ({})",
                resource.strategy.as_str()
            ));
        } else if checkpoints_enabled && !resource.checkpoints_kept {
            reasons.push(format!(
                "checkpoints in `{name}` were removed to keep to sandbox.checkpoint.max-per-plan"
            ));
        }
    }
    let lost = !checkpoints_enabled && touched.iter().all(|r| r.strategy == SandboxStrategy::None);
    let tier = match reasons.is_empty() {
        true => Tier::Full,
        false if lost => Tier::None,
        false => Tier::Phase,
    };
    TierVerdict { tier, reasons }
}

#[cfg(test)]
mod tests;
