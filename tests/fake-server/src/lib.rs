//! Where the tests of any crate find the fake language server.
//!
//! ```no_run
//! let program = agents_fake_server::path();
//! std::process::Command::new(program).arg("script.json");
//! ```
//! What a script may say is described in `src/script.rs`.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// The binary of the fake server, built once per test process, next to the test that asks.
///
/// # Panics
/// When it cannot be built: the test that asked cannot run, and says so.
pub fn path() -> PathBuf {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(build).clone()
}

#[allow(clippy::expect_used, reason = "only tests call it, and they cannot go on without the server")]
fn build() -> PathBuf {
    // A test binary lies in <target>/<profile>/deps; the server goes to the same place, with the same settings.
    let test = std::env::current_exe().expect("a test knows its own path");
    let deps = test.ancestors().find(|folder| folder.ends_with("deps"));
    let profile = deps.and_then(|deps| deps.parent());
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into()));
    cargo.args(["build", "-q", "-p", "agents-fake-server", "--message-format=json-render-diagnostics"]);
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    if let Some((profile, target)) = profile.and_then(|profile| Some((profile, profile.parent()?))) {
        cargo.arg("--target-dir").arg(target);
        match profile.file_name().and_then(|name| name.to_str()) {
            Some("debug") | None => {}
            Some(name) => drop(cargo.args(["--profile", name])),
        }
    }
    let output = cargo.output().expect("cargo can be started");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the fake language server cannot be built:\n{errors}");
    let artifacts = String::from_utf8_lossy(&output.stdout);
    let executable = artifacts.lines().find_map(|line| {
        let artifact: serde_json::Value = serde_json::from_str(line).ok()?;
        artifact["executable"].as_str().map(PathBuf::from)
    });
    executable.expect("cargo names the binary it built")
}
