//! Named places where a test kills the process, so that "survives kill -9 anywhere" is shown and not claimed.
//!
//! In debug builds `AGENTS_FAULT=<name>` kills the process (SIGKILL, nothing is unwound or flushed) the first time it
//! passes that point; `<name>#3` the third time. In release builds [`point`] is empty.

/// Every point of this crate. Other crates may pass points of their own through [`point`].
pub const POINTS: &[&str] = &[
    "worktree.after-add",
    "worktree.before-state",
    "edits.before-write",
    "edits.after-first-write",
    "checkpoint.before-index",
    "checkpoint.after-index",
    "checkpoint.after-tree",
    "checkpoint.before-ref",
    "checkpoint.after-ref",
    "restore.before-index",
    "restore.after-index",
    "restore.after-files",
    "restore.after-ref",
    "apply.before-journal",
    "apply.after-journal",
    "apply.after-lock",
    "apply.after-merge",
    "apply.after-commit-object",
    "apply.after-backup",
    "apply.after-intent",
    "apply.after-first-file",
    "apply.after-files",
    "apply.before-ref",
    "apply.after-ref",
    "apply.after-head",
    "apply.before-index",
    "apply.after-index",
    "apply.before-note",
    "apply.after-note",
    "apply.before-done",
    "apply.after-done",
    "apply.after-unlock",
];

/// Points that are passed only when somebody edited files of a sandbox.
pub const EDITED: &[&str] =
    &["around.held", "around.restored", "worker.edits-taken", "worker.edits-recorded"];

/// Kills the process when a test asked for it at this point.
#[cfg(debug_assertions)]
pub fn point(name: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    static WANTED: OnceLock<Option<(String, u32)>> = OnceLock::new();
    static PASSED: AtomicU32 = AtomicU32::new(0);

    let wanted = WANTED.get_or_init(|| {
        let text = std::env::var("AGENTS_FAULT").ok().filter(|text| !text.is_empty())?;
        Some(match text.split_once('#') {
            Some((name, count)) => (name.to_owned(), count.parse().unwrap_or(1)),
            None => (text, 1),
        })
    });
    let Some((wanted, count)) = wanted else { return };
    if wanted == name && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == *count {
        // A signal to oneself is delivered before `kill` returns or soon after; nothing may run in between.
        let _ = nix::sys::signal::kill(nix::unistd::Pid::this(), nix::sys::signal::Signal::SIGKILL);
        loop {
            std::thread::park();
        }
    }
}

/// Does nothing: faults exist in debug builds only.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn point(_name: &str) {}
