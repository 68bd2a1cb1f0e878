//! Where the programs are that the tests run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The `agents` binary: that of the folder `AGENTS_TEST_BIN` names, else the one next to the test, brought up to date
/// once per test process.
///
/// # Panics
/// When it cannot be built: the test that asked cannot run, and says so.
pub fn agents() -> PathBuf {
    program("agents")
}

/// The fake language server, found like [`agents`].
///
/// # Panics
/// When it cannot be built.
pub fn fake_server() -> PathBuf {
    program("agents-fake-server")
}

fn program(name: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| std::env::var_os("AGENTS_TEST_BIN").map_or_else(build, PathBuf::from));
    let program = folder.join(name);
    assert!(program.is_file(), "there is no {}", program.display());
    program
}

/// A test must never run yesterday's binary, so cargo looks each time; that is quick when nothing changed. The packages
/// and features are those of `tests/run`, so that nothing is compiled twice.
fn build() -> PathBuf {
    let own = std::env::current_exe().expect("a test knows its own path");
    let deps = own.ancestors().find(|folder| folder.ends_with("deps"));
    let profile = deps.and_then(Path::parent).expect("a test lies in <target>/<profile>/deps");
    let target = profile.parent().expect("a profile's folder has a parent");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    let built = Command::new(cargo)
        .args(["build", "-q", "--workspace", "--bin", "agents", "--bin", "agents-fake-server"])
        // A target with development dependencies, so that these have a say in the features as they have there.
        .args(["--test", "features", "--target-dir"])
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo can be started");
    let errors = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "the programs under test cannot be built:\n{errors}");
    target.join("debug")
}

/// The folder of the real language servers and editors.
///
/// # Panics
/// Without it: a test that needs a tool fails, it is never left out unseen.
pub fn tools() -> PathBuf {
    let folder = std::env::var_os("AGENTS_TEST_TOOLS").map(PathBuf::from);
    folder.filter(|folder| folder.is_dir()).expect(
        "AGENTS_TEST_TOOLS names no folder: the real tools are missing. Run tests/setup, then: eval \"$(tests/setup --env)\"",
    )
}

/// A real program such as `ruff`.
///
/// # Panics
/// When it is not there.
pub fn tool(name: &str) -> PathBuf {
    let program = tools().join("bin").join(name);
    assert!(program.exists(), "{} is missing: run tests/setup", program.display());
    program
}
