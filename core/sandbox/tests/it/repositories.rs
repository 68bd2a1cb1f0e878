//! Which directories are taken as a checkout.

use std::fs;

use agents_sandbox::{Repository, SandboxError};

use crate::support::*;

#[test]
fn each_kind_of_directory_that_is_no_checkout_is_refused_in_its_own_words() {
    // Ruling 26.
    let fixture = Fixture::new();
    let at = |name: &str| {
        let path = fixture.dir.path().canonicalize().unwrap().join(name);
        fs::create_dir_all(&path).unwrap();
        path
    };
    let plain = at("plain");
    assert!(matches!(Repository::open(&plain), Err(SandboxError::NotARepository { .. })));
    let bare = at("bare");
    git(&bare, &["init", "-q", "--bare"]);
    assert!(matches!(Repository::open(&bare), Err(SandboxError::Bare { .. })));
    let unborn = at("unborn");
    git(&unborn, &["init", "-q"]);
    assert!(matches!(Repository::open(&unborn), Err(SandboxError::Unborn { .. })));
    assert!(matches!(Repository::open(&fixture.path(".git")), Err(SandboxError::NotARepository { .. })));
    assert!(matches!(Repository::open(&at("plain").join("missing")), Err(SandboxError::Io { .. })));
    match Repository::open(&fixture.path("src")) {
        Err(SandboxError::NotTopLevel { top, .. }) => assert_eq!(top, fixture.repo),
        other => panic!("{other:?}"),
    }
}

#[test]
fn head_names_the_branch_or_says_that_it_is_detached() {
    let fixture = Fixture::new();
    let repository = fixture.open();
    assert_eq!(repository.path(), fixture.repo);
    assert_eq!(repository.head().unwrap().branch.as_deref(), Some("main"));
    fixture.git(&["checkout", "-q", "--detach"]);
    let head = repository.head().unwrap();
    assert_eq!((head.branch, head.commit.to_string()), (None, fixture.git(&["rev-parse", "HEAD"])));
}

#[test]
fn a_linked_worktree_and_a_submodule_are_checkouts_of_their_own() {
    let fixture = Fixture::new();
    let linked = fixture.dir.path().canonicalize().unwrap().join("linked");
    fixture.git(&["worktree", "add", "-q", "-b", "feature", linked.to_str().unwrap()]);
    let repository = Repository::open(&linked).unwrap();
    assert_eq!(repository.head().unwrap().branch.as_deref(), Some("feature"));
    assert_ne!(repository.git_dir(), repository.common_dir());

    let outer = Fixture::new();
    outer.git(&["submodule", "add", "-q", fixture.repo.to_str().unwrap(), "sub"]);
    let submodule = Repository::open(&outer.path("sub")).unwrap();
    assert_eq!(submodule.path(), outer.path("sub"));
}

#[test]
fn a_file_is_read_out_of_a_commit() {
    let fixture = Fixture::new();
    let repository = fixture.open();
    let head = repository.head().unwrap().commit;
    assert_eq!(repository.file_at(&head, "src/b.py").unwrap().unwrap(), b"b = 1\n");
    assert_eq!(repository.file_at(&head, "src").unwrap(), None);
    assert_eq!(repository.file_at(&head, "missing").unwrap(), None);
    assert_eq!(repository.file_at(&head, ":(glob)**").unwrap(), None);
}
