//! The user stories, as Gherkin: `cargo test --test features`. The real binary and real language servers.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a step that cannot be done fails its scenario")]

mod steps;

use cucumber::World as _;
use futures::FutureExt;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let features = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("features");
    runtime.block_on(
        steps::Story::cucumber()
            // A step nobody wrote is a failure, not a gap.
            .fail_on_skipped()
            .max_concurrent_scenarios(2)
            .run_and_exit(features)
            .boxed_local(),
    );
}
