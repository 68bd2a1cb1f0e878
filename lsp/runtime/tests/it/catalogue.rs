//! Every server of the catalogue that can be installed is started as the catalogue says, and finds what is wrong.
//! They come from `tests/setup`; without it these tests fail rather than pass unseen.

use std::time::Duration;

use agents_domain::catalogue::{Install, find, servers};
use agents_domain::ports::language_servers::{LanguageServers, WorkspaceSpec};
use agents_lsp_runtime::Runtime;

use crate::harness::found;
use crate::real::tool;

const LONG: Duration = Duration::from_secs(60);

/// A file with something wrong in it, and a part of what the server says of it.
const WRONG: &[(&str, &str, &str, &str)] = &[
    ("ruff", "a.py", "import os\n", "`os` imported but unused"),
    ("basedpyright", "a.py", "x: int = 'text'\n", "is not assignable to"),
    ("pyright", "a.py", "x: int = 'text'\n", "is not assignable to"),
    ("ty", "a.py", "x: int = 'text'\n", "is not assignable to"),
    (
        "typescript-language-server",
        "a.ts",
        "export const n: number = 'x';\n",
        "is not assignable to type 'number'",
    ),
    ("bash-language-server", "a.sh", "#!/bin/sh\ncd $1\n", "Double quote to prevent globbing"),
    ("yaml-language-server", "a.yaml", "a: [1\nb: 2\n", "Flow sequence"),
    ("clangd", "a.c", "int f(void) { return x; }\n", "undeclared identifier"),
];

#[test]
fn every_server_that_can_be_installed_has_a_sample() {
    let sampled: Vec<&str> = WRONG.iter().map(|(name, ..)| *name).collect();
    let installable = servers().iter().filter(|server| matches!(server.install, Install::Packages(_)));
    assert_eq!(installable.map(|server| server.name.as_str()).collect::<Vec<_>>(), sampled);
}

#[test]
fn what_is_tested_is_what_is_installed() {
    let pins = include_str!("../../../../tests/tools/pins");
    for server in servers() {
        let Install::Packages(recipe) = &server.install else { continue };
        for (package, version) in &recipe.packages {
            let pinned = pins.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            let pinned: Vec<_> = pinned.filter(|words| words.get(1) == Some(&package.as_str())).collect();
            assert_eq!(pinned.len(), 1, "{package} in tests/tools/pins");
            assert_eq!(pinned[0][2], version, "{package} in tests/tools/pins and in the catalogue");
        }
    }
}

async fn finds(name: &str) {
    let (_, path, text, message) = WRONG.iter().find(|(server, ..)| *server == name).unwrap();
    let server = find(name).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(path), text).unwrap();
    let spec = WorkspaceSpec {
        root: folder.path().to_owned(),
        servers: vec![server.definition(tool(&server.command).to_str().unwrap()).unwrap()],
        request_timeout: LONG,
        start_timeout: LONG,
    };
    let workspace = Runtime::new().open(spec).await;
    let diagnostics = found(&workspace, path).await;
    assert!(diagnostics.iter().any(|one| one.message.contains(message)), "{name}: {diagnostics:#?}");
    workspace.close().await;
}

macro_rules! each_finds_what_is_wrong {
    ($($test:ident: $name:literal,)*) => {
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $test() {
            finds($name).await;
        })*
    };
}

each_finds_what_is_wrong! {
    ruff: "ruff",
    basedpyright: "basedpyright",
    pyright: "pyright",
    ty: "ty",
    typescript_language_server: "typescript-language-server",
    bash_language_server: "bash-language-server",
    yaml_language_server: "yaml-language-server",
    clangd: "clangd",
}
