//! Installing servers of the catalogue: by fake clients for everything that can go wrong, once for real with pip.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use agents_domain::catalogue::{KnownServer, find};
use agents_domain::ports::installer::{InstallProgress, Installation, ServerInstaller};
use agents_domain::{Error, ErrorKind, Result};
use agents_lsp_runtime::Installer;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{wait_for, wait_until_gone};

/// A machine whose PATH has these fake clients only. What a client does is a shell script: `$server` is a language server
/// that works, `runs` counts how often it was run.
struct Machine {
    folder: TempDir,
}

/// What the fake clients share: making a program that is the server.
const PRELUDE: &str = r#"
put() { mkdir -p "$(dirname "$1")"; cp "$server" "$1"; chmod +x "$1"; }
echo "$@" >>"$base/runs"
"#;
/// Makes an environment whose python is this script again, and puts `ruff` in it when asked to install.
const PIP: &str = r#"
case "$2" in
    venv) put "$3/bin/python"; cp "$0" "$3/bin/python" ;;
    pip) echo "Collecting ruff"; put "$(dirname "$0")/ruff" ;;
esac
"#;
const NPM: &str = r#"
[ -f "$3/package.json" ] || exit 9
put "$3/node_modules/.bin/pyright-langserver"
"#;
const CARGO: &str = r#"
put "$4/bin/taplo"
"#;

impl Machine {
    fn new(clients: &[(&str, &str)]) -> Self {
        let machine = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(machine.at("path")).unwrap();
        fs::write(machine.at("script.json"), json!({"log": machine.at("log")}).to_string()).unwrap();
        let (program, script) = (agents_fake_server::path(), machine.at("script.json"));
        machine.program("server", &format!("exec '{}' '{}'", program.display(), script.display()));
        for (client, script) in clients {
            machine.client(client, script);
        }
        machine
    }

    fn client(&self, name: &str, script: &str) {
        let base = self.folder.path().display();
        let head = format!("PATH=/usr/bin:/bin; base='{base}'; server=\"$base/server\"");
        self.program(&format!("path/{name}"), &format!("{head}\n{PRELUDE}\n{script}"));
    }

    fn program(&self, name: &str, script: &str) {
        fs::write(self.at(name), format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(self.at(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn servers(&self) -> PathBuf {
        self.at("data/servers")
    }

    fn installer(&self) -> Installer {
        Installer::with_path(self.at("path").to_str().unwrap())
    }

    async fn install(&self, server: &KnownServer, anew: bool) -> (Result<Installation>, Vec<String>) {
        let steps = Mutex::new(Vec::new());
        let hear = |progress: InstallProgress<'_>| {
            steps.lock().unwrap().push(match progress {
                InstallProgress::Step(step) => step.to_owned(),
                InstallProgress::Line(line) => format!("| {line}"),
            });
        };
        let done = self.installer().install(server, &self.servers(), anew, &hear).await;
        (done, steps.into_inner().unwrap())
    }

    async fn installed(&self, server: &KnownServer) -> Installation {
        self.install(server, false).await.0.unwrap_or_else(|error| panic!("{error:?}"))
    }

    async fn refused(&self, server: &KnownServer) -> Error {
        self.install(server, false).await.0.unwrap_err()
    }

    /// What is in the folder of servers, locks apart.
    fn left(&self) -> Vec<String> {
        let entries = fs::read_dir(self.servers()).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| !name.ends_with(".lock")).collect();
        names.sort();
        names
    }

    /// How often clients were run.
    fn runs(&self) -> usize {
        fs::read_to_string(self.at("runs")).unwrap_or_default().lines().count()
    }
}

fn ruff() -> &'static KnownServer {
    find("ruff").unwrap()
}

fn known(fields: Value) -> KnownServer {
    serde_json::from_value(fields).unwrap()
}

fn taplo() -> KnownServer {
    known(json!({
        "name": "taplo", "description": "TOML", "languages": ["toml"], "command": "taplo", "args": ["lsp", "stdio"],
        "install": {"client": "cargo", "packages": {"taplo-cli": "0.9.3"}},
    }))
}

#[tokio::test(flavor = "multi_thread")]
async fn pip_installs_into_an_environment_of_its_own_that_is_tried_and_then_put_in_place() {
    let machine = Machine::new(&[("python3", PIP)]);
    let (done, steps) = machine.install(ruff(), false).await;
    let done = done.unwrap();
    assert_eq!(done.installed.program, machine.servers().join("ruff/bin/ruff"));
    assert_eq!(done.installed.packages, [("ruff".to_owned(), "0.17.6".to_owned())].into());
    assert_eq!(done.report.unwrap().problem, None);
    assert_eq!(
        steps,
        [
            "Makes a Python environment of its own",
            "pip brings ruff 0.17.6",
            "| Collecting ruff",
            "Starts ruff to see that it works",
        ]
    );
    let runs = fs::read_to_string(machine.at("runs")).unwrap();
    assert!(runs.lines().last().unwrap().ends_with(" ruff==0.17.6"), "{runs}");
    assert_eq!(machine.installer().installed(ruff(), &machine.servers()), Some(done.installed));
}

#[tokio::test(flavor = "multi_thread")]
async fn npm_and_cargo_install_into_a_folder_of_their_own() {
    let machine = Machine::new(&[("npm", NPM), ("cargo", CARGO)]);
    let pyright = machine.installed(find("pyright").unwrap()).await;
    let program = "pyright/node_modules/.bin/pyright-langserver";
    assert_eq!(pyright.installed.program, machine.servers().join(program));
    let taplo = machine.installed(&taplo()).await;
    assert_eq!(taplo.installed.program, machine.servers().join("taplo/bin/taplo"));
    let runs = fs::read_to_string(machine.at("runs")).unwrap();
    assert!(runs.contains("pyright@1.1.414") && runs.contains("taplo-cli@0.9.3"), "{runs}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_installed_stays_unless_it_is_asked_for_anew() {
    let machine = Machine::new(&[("python3", PIP)]);
    machine.installed(ruff()).await;
    let (before, runs) = (machine.left(), machine.runs());
    let again = machine.installed(ruff()).await;
    assert_eq!((again.report, machine.runs(), machine.left()), (None, runs, before.clone()));
    let anew = machine.install(ruff(), true).await.0.unwrap();
    assert!(anew.report.is_some());
    assert_eq!(anew.installed, again.installed);
    let after = machine.left();
    assert_eq!((after.len(), after[1].as_str()), (2, "ruff"), "the old one is gone: {after:?}");
    assert_ne!(after, before);
    // A server whose program was taken away is no installed server.
    fs::remove_file(machine.servers().join("ruff/bin/ruff")).unwrap();
    assert_eq!(machine.installer().installed(ruff(), &machine.servers()), None);
    assert!(machine.installed(ruff()).await.report.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_client_is_named_with_what_brings_it() {
    let machine = Machine::new(&[]);
    for (server, message, fix) in [
        (
            ruff().clone(),
            "ruff is installed with pip, and `python3` is not on PATH",
            "sudo apt-get install python3 python3-venv",
        ),
        (
            find("pyright").unwrap().clone(),
            "pyright is installed with npm, and `npm` is not on PATH",
            "sudo apt-get install npm",
        ),
        (taplo(), "taplo is installed with cargo, and `cargo` is not on PATH", "sudo apt-get install cargo"),
    ] {
        let error = machine.refused(&server).await;
        assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Configuration, message));
        assert_eq!(error.suggestions, [fix.to_owned(), format!("agents lsp install {}", server.name)]);
    }
    let error = machine.refused(find("gopls").unwrap()).await;
    assert_eq!(error.message, "gopls is not installed by this command");
    assert_eq!(error.suggestions, ["sudo apt-get install gopls golang-go"]);
    assert_eq!(machine.left(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_fails_is_explained_and_leaves_nothing() {
    let no_network = r#"
        case "$2" in
            venv) put "$3/bin/python"; cp "$0" "$3/bin/python" ;;
            pip)
                put "$(dirname "$0")/half"
                echo "WARNING: Retrying after connection broken by 'NewConnectionError: Temporary failure in name resolution'" >&2
                echo "ERROR: No matching distribution found for ruff" >&2
                exit 1 ;;
        esac"#;
    let no_venv = r#"
        put "$3/bin/python"
        echo "The virtual environment was not created successfully because ensurepip is not available."
        exit 1"#;
    for (script, kind, message) in [
        (
            no_network,
            ErrorKind::Network,
            "ruff could not be installed with pip: its registry cannot be reached",
        ),
        (
            no_venv,
            ErrorKind::Configuration,
            "ruff could not be installed with pip: python3 has no venv module to make environments with",
        ),
        ("exit 3", ErrorKind::Configuration, "ruff could not be installed: pip ended with exit status 3"),
    ] {
        let machine = Machine::new(&[("python3", script)]);
        let error = machine.refused(ruff()).await;
        assert_eq!((error.kind, error.message.as_str()), (kind, message));
        assert_eq!(error.suggestions.last().map(String::as_str), Some("agents lsp install ruff"));
        assert_eq!(machine.left(), [""; 0]);
    }
    let machine = Machine::new(&[("python3", no_network)]);
    let detail = machine.refused(ruff()).await.detail.unwrap();
    assert!(detail.starts_with("pip ended with exit status 1; it printed:\nWARNING: Retrying"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_start_is_taken_away_and_the_one_before_stays() {
    let machine = Machine::new(&[("python3", PIP)]);
    machine.installed(ruff()).await;
    let before = machine.left();
    machine.program("server", "echo 'wants a newer system' >&2; exit 4");
    let error = machine.install(ruff(), true).await.0.unwrap_err();
    assert_eq!(error.message, "ruff was installed, but it does not start here, so it was taken away again");
    let detail = error.detail.unwrap();
    assert!(detail.contains("exit status 4") && detail.contains("wants a newer system"), "{detail}");
    assert_eq!(machine.left(), before);
    assert!(machine.installer().installed(ruff(), &machine.servers()).is_some());
    // Packages that do not bring the program.
    machine.client("python3", &PIP.replace("bin/ruff", "bin/other").replace("/ruff\"", "/other\""));
    let error = machine.install(ruff(), true).await.0.unwrap_err();
    assert_eq!(error.message, "ruff was installed, but its packages bring no program `ruff`");
    assert_eq!(machine.left(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_installs_at_once_are_one() {
    let machine = Machine::new(&[("python3", PIP)]);
    let (first, second) = futures::join!(machine.install(ruff(), false), machine.install(ruff(), false));
    let (first_done, second_done) = (first.0.unwrap(), second.0.unwrap());
    assert_eq!(first_done.installed, second_done.installed);
    assert_eq!(machine.runs(), 2, "one venv, one pip");
    let waited = [&first.1, &second.1]
        .into_iter()
        .filter(|steps| steps.iter().any(|step| step == "Waits for another install of ruff"));
    assert_eq!(waited.count(), 1);
    assert_eq!(machine.left().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_the_way_is_not_touched_and_what_was_left_is_swept_up() {
    let machine = Machine::new(&[("python3", PIP)]);
    let own = machine.servers().join("ruff");
    fs::create_dir_all(&own).unwrap();
    let error = machine.refused(ruff()).await;
    assert_eq!(error.kind, ErrorKind::AlreadyExists);
    assert!(error.message.contains("is in the way"), "{}", error.message);
    fs::remove_dir(&own).unwrap();
    for folder in [".ruff@lost", ".ruff-other@kept"] {
        fs::create_dir_all(machine.servers().join(folder)).unwrap();
    }
    machine.installed(ruff()).await;
    let left = machine.left();
    assert!(
        !left.contains(&".ruff@lost".to_owned()) && left.contains(&".ruff-other@kept".to_owned()),
        "{left:?}"
    );
    // A folder that cannot be made.
    let broken = Machine::new(&[("python3", PIP)]);
    fs::write(broken.at("data"), "a file").unwrap();
    let error = broken.refused(ruff()).await;
    assert_eq!(error.kind, ErrorKind::Io);
    assert!(error.message.contains("data/servers"), "{}", error.message);
}

/// Hangs once it has begun, and writes into its environment as long as it lives.
const HANGS: &str = r#"
mkdir -p "$3/bin"
echo $$ >"$base/pid"
while :; do echo more >>"$3/bin/more"; mkdir -p "$3/deep/er"; done
"#;

#[tokio::test(flavor = "multi_thread")]
async fn an_install_that_is_given_up_leaves_nothing() {
    let machine = Machine::new(&[("python3", HANGS)]);
    let begun = async {
        while !fs::read_to_string(machine.at("pid")).is_ok_and(|pid| pid.ends_with('\n')) {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        (done, _) = machine.install(ruff(), false) => panic!("{done:?}"),
        () = begun => {}
    }
    let pid = fs::read_to_string(machine.at("pid")).unwrap();
    wait_until_gone(&json!(pid.trim().parse::<u64>().unwrap()));
    assert_eq!(machine.left(), [""; 0]);
}

const CHILD: &str = "AGENTS_TEST_INSTALL_IN";

#[test]
fn an_install_whose_process_is_killed_leaves_nothing() {
    let machine = Machine::new(&[("python3", HANGS)]);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "install::installs_until_it_is_killed", "--ignored", "--nocapture"])
        .env(CHILD, machine.folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = wait_for(|| fs::read_to_string(machine.at("pid")).ok()?.trim().parse::<u64>().ok());
    assert_eq!(machine.left().len(), 1);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until_gone(&json!(pid));
    wait_for(|| machine.left().is_empty().then_some(()));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "the process that the test above kills"]
async fn installs_until_it_is_killed() {
    let Some(base) = std::env::var_os(CHILD).map(PathBuf::from) else { return };
    let installer = Installer::with_path(base.join("path").to_str().unwrap());
    let done = installer.install(ruff(), &base.join("data/servers"), false, &|_| {}).await;
    panic!("{done:?}");
}

/// With the real pip, from wherever it is configured to take packages.
#[tokio::test(flavor = "multi_thread")]
async fn ruff_is_really_installed_and_works() {
    let folder = tempfile::tempdir().unwrap();
    let servers = folder.path().join("a folder with spaces/servers");
    let done = Installer::new().install(ruff(), &servers, false, &|_| {}).await;
    let done = done.unwrap_or_else(|error| panic!("{error:?}"));
    let report = done.report.unwrap();
    assert_eq!((report.name.as_deref(), report.version.as_deref()), (Some("ruff"), Some("0.17.6")));
    assert!(is_executable(&done.installed.program));
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
