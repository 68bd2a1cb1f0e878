//! Rules that hold for any edits.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use agents_sandbox::apply::{self, ApplyMode};
use proptest::prelude::*;

use crate::support::*;

/// Something that happens to a file.
#[derive(Debug, Clone)]
enum Event {
    Write(usize, String),
    Delete(usize),
    Executable(usize, bool),
    Link(usize, usize),
}

const NAMES: &[&str] = &["a.py", "src/b.py", "src/deep/c.py", "d", "ünï cödé.txt", "-dash", "src/new/e.py"];

fn event() -> impl Strategy<Value = Event> {
    let name = || 0..NAMES.len();
    prop_oneof![
        4 => (name(), "([ab]{0,3}(\n|\r\n)){0,6}[ab]?").prop_map(|(at, text)| Event::Write(at, text)),
        2 => name().prop_map(Event::Delete),
        1 => (name(), any::<bool>()).prop_map(|(at, on)| Event::Executable(at, on)),
        1 => (name(), name()).prop_map(|(at, to)| Event::Link(at, to)),
    ]
}

/// Makes it happen, outside of any tool; says nothing when it cannot.
fn happen(root: &Path, event: &Event) {
    let at = |index: &usize| root.join(NAMES[*index]);
    match event {
        Event::Write(index, text) => {
            let path = at(index);
            let _ = fs::remove_file(&path);
            write(&path, text);
        }
        Event::Delete(index) => drop(fs::remove_file(at(index))),
        Event::Executable(index, on) => {
            let path = at(index);
            if path.is_file() && !path.is_symlink() {
                let mode = if *on { 0o755 } else { 0o644 };
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            }
        }
        Event::Link(index, to) => {
            let path = at(index);
            let _ = fs::remove_file(&path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(NAMES[*to], &path).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_state_comes_back_from_snapshot_and_checkpoint(
        users in prop::collection::vec(event(), 0..6),
        groups in prop::collection::vec(prop::collection::vec(event(), 1..5), 1..4),
    ) {
        let fixture = Fixture::new();
        users.iter().for_each(|event| happen(&fixture.repo, event));
        let before = fixture.state();
        let sandbox = fixture.sandbox();
        prop_assert_eq!(&fixture.state(), &before);
        prop_assert_eq!(&tree(sandbox.worktree.path()), &before.files);
        let mut states = vec![(sandbox.snapshot.commit.clone(), before.files.clone())];
        for group in &groups {
            group.iter().for_each(|event| happen(sandbox.worktree.path(), event));
            let commit = sandbox.worktree.checkpoint("group", &sandbox.worktree.dirty_paths().unwrap()).unwrap();
            prop_assert_eq!(sandbox.worktree.dirty_paths().unwrap(), Vec::<String>::new());
            states.push((commit, tree(sandbox.worktree.path())));
        }
        for (commit, files) in states.iter().rev().chain(&states) {
            sandbox.worktree.restore(commit).unwrap();
            prop_assert_eq!(&tree(sandbox.worktree.path()), files);
            prop_assert!(sandbox.worktree.is_clean_since(commit).unwrap());
        }
    }

    #[test]
    fn applied_to_a_clean_tree_the_checkout_is_the_result_and_undo_is_exact(
        events in prop::collection::vec(event(), 1..8),
    ) {
        let fixture = Fixture::new();
        let before = fixture.state();
        let sandbox = fixture.sandbox();
        events.iter().for_each(|event| happen(sandbox.worktree.path(), event));
        let result = sandbox.worktree.checkpoint("all", &sandbox.worktree.dirty_paths().unwrap()).unwrap();
        let applied = sandbox.apply(&fixture.journal(), ApplyMode::Commit).unwrap();
        prop_assert_eq!(tree(&fixture.repo), tree(sandbox.worktree.path()));
        prop_assert_eq!(fixture.git(&["status", "--porcelain"]), "");
        prop_assert_eq!(applied.commit.is_some(), result != sandbox.snapshot.commit);
        let tree_id = |id: &str| fixture.git(&["rev-parse", &format!("{id}^{{tree}}")]);
        prop_assert_eq!(tree_id("HEAD"), tree_id(result.as_str()));
        apply::undo(&fixture.journal()).unwrap();
        prop_assert_eq!(fixture.state(), before);
    }

    #[test]
    fn with_users_changes_around_an_apply_commits_the_plans_lines_and_keeps_the_rest(
        staged in prop::collection::vec(1usize..60, 0..4),
        unstaged in prop::collection::vec(1usize..60, 0..4),
        planned in prop::collection::vec(1usize..60, 1..4),
    ) {
        // Every tenth line belongs to one author, so that the three never touch the same or neighbouring lines.
        let mut expected: BTreeMap<usize, &str> = BTreeMap::new();
        let apply_to = |lines: &BTreeMap<usize, &str>| -> String {
            (1..=600).map(|n| match lines.get(&n) { Some(who) => format!("{who} {n}\n"), None => format!("line {n}\n") }).collect()
        };
        let fixture = Fixture::new();
        fixture.write("many.py", apply_to(&expected));
        fixture.commit("many");
        staged.iter().for_each(|n| { expected.insert(n * 10, "staged"); });
        fixture.write("many.py", apply_to(&expected));
        fixture.git(&["add", "-A"]);
        let index_before = apply_to(&expected);
        unstaged.iter().for_each(|n| { expected.insert(n * 10 - 3, "unstaged"); });
        fixture.write("many.py", apply_to(&expected));
        let sandbox = fixture.sandbox();
        let plans: BTreeMap<usize, &str> = planned.iter().map(|n| (n * 10 - 6, "plan")).collect();
        expected.extend(plans.clone());
        sandbox.change(&[("many.py", &apply_to(&expected))]);
        sandbox.apply(&fixture.journal(), ApplyMode::Commit).unwrap();
        prop_assert_eq!(fixture.read("many.py"), apply_to(&expected));
        let committed = fixture.git(&["show", "HEAD:many.py"]);
        let alone = apply_to(&plans);
        prop_assert_eq!(committed, alone.trim_end());
        let mut index = index_before;
        for n in plans.keys() {
            index = index.replace(&format!("line {n}\n"), &format!("plan {n}\n"));
        }
        prop_assert_eq!(fixture.git(&["show", ":many.py"]), index.trim_end());
    }
}
