//! Pruning and tiers.

use proptest::prelude::*;
use ulid::Ulid;

use super::*;

fn decision(n: u128) -> DecisionId {
    DecisionId::from_ulid(Ulid::from(n))
}

fn checkpoint(
    n: usize,
    resource: u128,
    group: Option<u128>,
    kind: CheckpointKind,
    commit: &str,
) -> Checkpoint {
    let resource_id = ResourceId::from_ulid(Ulid::from(resource));
    Checkpoint {
        checkpoint_id: CheckpointId::from_ulid(Ulid::from(n as u128 + 1)),
        plan_id: PlanId::from_ulid(Ulid::from(1u128)),
        decision_id: group.map(decision),
        resource_id,
        kind,
        label: String::new(),
        commit: commit.to_owned(),
        phase: Phase::Execute,
        source_tool: None,
        diff: CheckpointDiff { diff_based: format!("before {commit}"), ..CheckpointDiff::default() },
        sandboxes: Vec::new(),
        created_at: "2026-01-01T00:00:00Z".parse().unwrap(),
    }
}

fn after(n: usize, group: Option<u128>) -> Checkpoint {
    checkpoint(n, 1, group, CheckpointKind::Decision, &format!("c{n}"))
}

fn left(all: &[Checkpoint], pruned: &Pruned) -> Vec<usize> {
    (0..all.len()).filter(|at| !pruned.remove.contains(&all[*at].checkpoint_id)).collect()
}

// CKPT-013, STORE-017
#[test]
fn sixty_are_pruned_to_fifty_with_the_first_and_the_newest_kept() {
    let all: Vec<_> = (0..60).map(|n| after(n, None)).collect();
    let pruned = prune(&all, 50, &HashSet::new());
    assert_eq!(pruned.remove.len(), 10);
    assert_eq!(left(&all, &pruned), [vec![0], (11..60).collect()].concat());
    assert_eq!(pruned.lost, []);
}

// C-35
#[test]
fn groups_of_active_decisions_go_last_and_are_named() {
    let mut all = vec![checkpoint(0, 1, None, CheckpointKind::Base, "c0")];
    // Decision 1 is superseded; 2 and 3 hold.
    for (at, group) in [1u128, 2, 3].into_iter().enumerate() {
        let before = all.last().unwrap().commit.clone();
        all.push(checkpoint(at * 2 + 1, 1, Some(group), CheckpointKind::PreWrite, &before));
        all.push(checkpoint(at * 2 + 2, 1, Some(group), CheckpointKind::Decision, &format!("c{group}")));
    }
    let active = HashSet::from([decision(2), decision(3)]);
    let of = |max| prune(&all, max, &active);
    assert_eq!(left(&all, &of(5)), [0, 3, 4, 5, 6]);
    assert_eq!(left(&all, &of(3)), [0, 4, 6]);
    assert_eq!((left(&all, &of(2)), of(2).lost), (vec![0, 6], vec![decision(2)]));
    // The two ends stay even when fewer were asked for.
    assert_eq!(left(&all, &of(1)), [0, 6]);
    assert_eq!(of(1).lost, [decision(2)]);
}

#[test]
fn the_start_of_a_group_is_found_with_and_without_its_first_checkpoint() {
    let before = checkpoint(0, 1, Some(7), CheckpointKind::PreWrite, "start");
    let mut closing = checkpoint(1, 1, Some(7), CheckpointKind::Decision, "end");
    closing.diff.diff_based = "start".to_owned();
    let other = checkpoint(2, 2, Some(7), CheckpointKind::PreWrite, "elsewhere");
    let starts = |all: &[Checkpoint]| -> Vec<String> {
        group_starts(all, decision(7)).into_iter().map(|at| at.commit).collect()
    };
    assert_eq!(starts(&[before, closing.clone(), other]), ["start", "elsewhere"]);
    assert_eq!(starts(&[closing]), ["start"]);
    assert_eq!(group_starts(&[after(1, None)], decision(7)), []);
}

// CORR-021, CORR-022
#[test]
fn a_tier_is_full_phase_or_none_and_says_why() {
    let touched =
        |strategy, checkpoints_kept| Touched { name: "local/repo".to_owned(), strategy, checkpoints_kept };
    let git = touched(SandboxStrategy::GitWorktree, true);
    assert_eq!(tier(true, std::slice::from_ref(&git)), TierVerdict { tier: Tier::Full, reasons: Vec::new() });
    assert_eq!(tier(false, &[]).tier, Tier::Full);
    let off = tier(false, std::slice::from_ref(&git));
    assert_eq!(off.tier, Tier::Phase);
    assert!(off.reasons[0].contains("sandbox.checkpoint.enabled"));
    let pruned = tier(true, &[git.clone(), touched(SandboxStrategy::CopyOnWrite, false)]);
    assert_eq!(pruned.tier, Tier::Phase);
    assert!(pruned.reasons[0].contains("max-per-plan"));
    let mixed = tier(true, &[git.clone(), touched(SandboxStrategy::None, true)]);
    assert_eq!((mixed.tier, mixed.reasons.len()), (Tier::Phase, 1));
    assert_eq!(tier(true, &[touched(SandboxStrategy::None, true)]).tier, Tier::Phase);
    assert_eq!(tier(false, &[touched(SandboxStrategy::None, true)]).tier, Tier::None);
    assert_eq!(tier(false, &[git, touched(SandboxStrategy::None, true)]).tier, Tier::Phase);
}

proptest! {
    #[test]
    fn pruning_keeps_the_ends_the_limit_and_its_word(
        rows in proptest::collection::vec((1u128..3, proptest::option::of(0u128..6), 0usize..3, 0usize..4), 1..40),
        max in 1usize..20,
    ) {
        let kinds = [CheckpointKind::PreWrite, CheckpointKind::PostStep, CheckpointKind::Decision];
        let all: Vec<_> = rows
            .iter()
            .enumerate()
            .map(|(n, (resource, group, kind, commit))| checkpoint(n, *resource, *group, kinds[*kind], &commit.to_string()))
            .collect();
        let active: HashSet<_> = [0, 1, 2].map(decision).into();
        let pruned = prune(&all, max, &active);
        let left: Vec<&Checkpoint> = left(&all, &pruned).into_iter().map(|at| &all[at]).collect();
        let refs: Vec<&Checkpoint> = all.iter().collect();
        for end in ends(&refs) {
            prop_assert!(left.iter().any(|c| c.checkpoint_id == all[end].checkpoint_id));
        }
        prop_assert!(left.len() <= max.max(ends(&refs).len()));
        // A decision that is not named as lost still has one.
        for group in active {
            let had = all.iter().any(|c| c.decision_id == Some(group));
            let has = left.iter().any(|c| c.decision_id == Some(group));
            prop_assert_eq!(had && !has, pruned.lost.contains(&group));
        }
    }
}
