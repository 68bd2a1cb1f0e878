//! Facts about the build that `agents version` reports.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// The crates whose versions say most about what a build can do.
const REPORTED: [&str; 8] =
    ["clap", "libsqlite3-sys", "lsp-types", "rusqlite", "serde_json", "tokio", "tower-lsp", "tree-sitter"];

fn main() {
    let root = Path::new("../..");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=SOURCE_DATE_EPOCH");
    println!("cargo:rerun-if-changed=../../Cargo.lock");
    if env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        // Debug builds do not follow commits: each one would build the crate again.
        println!("cargo:rerun-if-changed=../../.git/HEAD");
        println!("cargo:rerun-if-changed=../../.git/logs/HEAD");
    }
    let output = |program: &str, args: &[&str]| {
        let output = Command::new(program).args(args).current_dir(root).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        (output.status.success() && !text.is_empty()).then_some(text)
    };
    let unknown = || "unknown".to_owned();
    let commit = output("git", &["rev-parse", "--short=7", "HEAD"]).map(|c| c.chars().take(7).collect());
    set("AGENTS_COMMIT", &commit.unwrap_or_else(unknown));
    let date = match env::var("SOURCE_DATE_EPOCH") {
        Ok(seconds) => output("date", &["-u", "-d", &format!("@{seconds}"), "+%F"]),
        Err(_) => output("date", &["-u", "+%F"]),
    };
    set("AGENTS_BUILD_DATE", &date.unwrap_or_else(unknown));
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let rust = output(&rustc, &["--version"]).and_then(|v| v.split(' ').nth(1).map(str::to_owned));
    set("AGENTS_RUST", &rust.unwrap_or_else(unknown));
    set("AGENTS_DEPENDENCIES", &dependencies(root));
}

fn set(name: &str, value: &str) {
    println!("cargo:rustc-env={name}={value}");
}

/// `clap=4.6.9 ...`, as the lock file pins them.
fn dependencies(root: &Path) -> String {
    let lock = fs::read_to_string(root.join("Cargo.lock")).unwrap_or_default();
    let mut found: Vec<String> = Vec::new();
    for package in lock.split("[[package]]") {
        let field = |name: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""));
            line.and_then(|line| line.strip_suffix('"'))
        };
        if let (Some(name), Some(version)) = (field("name"), field("version"))
            && REPORTED.contains(&name)
        {
            found.push(format!("{name}={version}"));
        }
    }
    found.join(" ")
}
