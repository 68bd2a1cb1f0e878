//! Real servers, for truth. They come from `tests/setup`; without it these tests fail rather than pass unseen.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agents_domain::diagnostics::Diagnostic;
use agents_domain::language_server::LanguageServerDefinition;
use agents_domain::ports::language_servers::{
    CodeActionOffer, DiagnosticsMode, FileEvent, FileEventKind, LanguageServers, LanguageWorkspace,
    WorkspaceSpec,
};
use agents_domain::text::{FileEdit, apply_edits};
use agents_lsp_runtime::Runtime;
use serde_json::json;

use crate::harness::found;

const LONG: Duration = Duration::from_secs(60);

pub fn tool(name: &str) -> PathBuf {
    let tools = std::env::var_os("AGENTS_TEST_TOOLS").expect("run tests/setup: AGENTS_TEST_TOOLS is not set");
    let program = PathBuf::from(tools).join("bin").join(name);
    assert!(program.exists(), "run tests/setup: {} is missing", program.display());
    program
}

struct Real {
    folder: tempfile::TempDir,
    definition: LanguageServerDefinition,
}

impl Real {
    fn new(program: &str, args: &[&str], languages: &[&str], files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let file = folder.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        let definition = serde_json::from_value(json!({
            "name": format!("local/{program}"), "languages": languages, "command": tool(program), "args": args,
        }));
        Self { folder, definition: definition.unwrap() }
    }

    async fn open(&self) -> Arc<dyn LanguageWorkspace> {
        let spec = WorkspaceSpec {
            root: self.folder.path().to_owned(),
            servers: vec![self.definition.clone()],
            request_timeout: LONG,
            start_timeout: LONG,
        };
        Runtime::new().open(spec).await
    }

    async fn actions(
        &self,
        workspace: &Arc<dyn LanguageWorkspace>,
        path: &str,
        diagnostic: &Diagnostic,
    ) -> Vec<CodeActionOffer> {
        workspace.code_actions(&self.definition.name, path, diagnostic).await.unwrap()
    }

    fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(path)).unwrap()
    }

    /// Applies an offer to the files and tells the servers.
    async fn apply(&self, workspace: &Arc<dyn LanguageWorkspace>, offer: &CodeActionOffer) {
        for edit in offer.edits.as_ref().unwrap_or_else(|| panic!("{offer:?}")) {
            let FileEdit::Edit { path, edits } = edit else { panic!("{edit:?}") };
            let text = apply_edits(&self.text(path), edits).unwrap();
            std::fs::write(self.folder.path().join(path), text).unwrap();
            workspace.files_changed(&[FileEvent { path: path.clone(), kind: FileEventKind::Changed }]).await;
        }
    }
}

fn with_code<'a>(diagnostics: &'a [Diagnostic], code: &str) -> &'a Diagnostic {
    diagnostics
        .iter()
        .find(|one| one.rule() == code)
        .unwrap_or_else(|| panic!("no {code} in {diagnostics:#?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn ruff_gives_fixes_from_data_that_remove_their_diagnostics() {
    let real = Real::new(
        "ruff",
        &["server"],
        &["python"],
        &[
            ("a.py", "import os\nimport sys\n\nprint(f\"😀\", sys.argv)\n"),
            ("clean.py", "x = 1\n"),
            ("crlf.py", "import os\r\nx = 1\r\n"),
        ],
    );
    let workspace = real.open().await;
    let diagnostics = found(&workspace, "a.py").await;
    let unused = with_code(&diagnostics, "F401");
    assert!(unused.raw["data"].is_object(), "{}", unused.raw);
    assert_eq!(found(&workspace, "clean.py").await, []);
    let offers = real.actions(&workspace, "a.py", unused).await;
    let fix = offers.iter().find(|offer| offer.is_preferred).unwrap();
    real.apply(&workspace, fix).await;
    assert_eq!(real.text("a.py"), "import sys\n\nprint(f\"😀\", sys.argv)\n");
    let after = found(&workspace, "a.py").await;
    let prefix = with_code(&after, "F541");
    real.apply(&workspace, &real.actions(&workspace, "a.py", prefix).await[0]).await;
    assert_eq!(found(&workspace, "a.py").await, []);
    let crlf = found(&workspace, "crlf.py").await;
    real.apply(&workspace, &real.actions(&workspace, "crlf.py", with_code(&crlf, "F401")).await[0]).await;
    assert_eq!(real.text("crlf.py"), "x = 1\r\n");
    workspace.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn basedpyright_registers_pulls_and_its_actions_resolve() {
    let real = Real::new(
        "basedpyright-langserver",
        &["--stdio"],
        &["python"],
        &[
            ("a.py", "from lib import helper\n\nx: int = helper()\n"),
            ("lib.py", "def helper() -> str:\n    return \"\"\n"),
        ],
    );
    let workspace = real.open().await;
    let diagnostics = found(&workspace, "a.py").await;
    let wrong = with_code(&diagnostics, "reportAssignmentType");
    let offers = real.actions(&workspace, "a.py", wrong).await;
    assert!(!offers.is_empty());
    assert!(offers.iter().all(|offer| !offer.is_preferred), "{offers:#?}");
    let suppress = offers.iter().find(|offer| offer.title.contains("ignore")).unwrap();
    real.apply(&workspace, suppress).await;
    let after = found(&workspace, "a.py").await;
    assert!(after.iter().all(|one| one.rule() != "reportAssignmentType"), "{after:#?}");
    // A change in one file is seen in another.
    std::fs::write(real.folder.path().join("lib.py"), "def other() -> str:\n    return \"\"\n").unwrap();
    workspace.files_changed(&[FileEvent { path: "lib.py".into(), kind: FileEventKind::Changed }]).await;
    with_code(&found(&workspace, "a.py").await, "reportAttributeAccessIssue");
    workspace.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clangd_pushes_and_offers_two_equal_fixes() {
    let real = Real::new(
        "clangd",
        &["--background-index=false"],
        &["c", "cpp"],
        &[
            ("compile_flags.txt", "-Wall\n"),
            ("a.c", "int f(int a, int b) { if (a = b) { return 1; } return 0; }\n"),
            ("clean.c", "int g(void) { return 0; }\n"),
        ],
    );
    let workspace = real.open().await;
    let answers = workspace.diagnostics(&["a.c".into(), "clean.c".into()]).await;
    assert_eq!(answers[1].1[0].diagnostics.as_deref(), Some(&[][..]));
    let diagnostics = answers[0].1[0].diagnostics.clone().unwrap();
    let parentheses = with_code(&diagnostics, "-Wparentheses");
    let offers = real.actions(&workspace, "a.c", parentheses).await;
    let usable: Vec<&CodeActionOffer> = offers.iter().filter(|offer| offer.edits.is_some()).collect();
    assert_eq!(usable.len(), 2, "{offers:#?}");
    real.apply(&workspace, usable.iter().find(|offer| offer.title.contains("==")).unwrap()).await;
    assert_eq!(real.text("a.c"), "int f(int a, int b) { if (a == b) { return 1; } return 0; }\n");
    assert_eq!(found(&workspace, "a.c").await, []);
    workspace.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn typescript_pushes_an_early_empty_list_and_a_fix_may_edit_another_file() {
    let node_modules = PathBuf::from(
        std::env::var_os("AGENTS_TEST_TOOLS").expect("run tests/setup: AGENTS_TEST_TOOLS is not set"),
    )
    .join("node/node_modules");
    let mut real = Real::new(
        "typescript-language-server",
        &["--stdio"],
        &["typescript"],
        &[
            (
                "tsconfig.json",
                "{\"compilerOptions\": {\"strict\": true, \"module\": \"esnext\", \"moduleResolution\": \"bundler\", \"target\": \"es2022\", \"noEmit\": true}, \"include\": [\"src\"]}\n",
            ),
            (
                "src/a.ts",
                "import { helper } from './lib';\n/* 😀😀 */ export const used = helper();\nconst n: number = 'x';\nexport { n };\n",
            ),
            ("src/lib.ts", "/* 😀 */ function helper(): number { return 1; }\nexport const other = 1;\n"),
            ("src/clean.ts", "export const clean = 1;\n"),
        ],
    );
    real.definition.init_options = json!({"tsserver": {"path": node_modules.join("typescript/lib")}, "disableAutomaticTypingAcquisition": true});
    let workspace = real.open().await;
    let answers =
        workspace.diagnostics(&["src/a.ts".into(), "src/clean.ts".into(), "src/lib.ts".into()]).await;
    assert_eq!(answers[1].1[0].diagnostics.as_deref(), Some(&[][..]), "{answers:#?}");
    let diagnostics = answers[0].1[0].diagnostics.clone().unwrap_or_else(|| panic!("{answers:#?}"));
    with_code(&diagnostics, "2322");
    let not_exported = with_code(&diagnostics, "2459");
    let offers = real.actions(&workspace, "src/a.ts", not_exported).await;
    let export = offers.iter().find(|offer| offer.edits.is_some()).unwrap_or_else(|| panic!("{offers:#?}"));
    assert_eq!(export.edits.as_ref().unwrap()[0].path(), "src/lib.ts");
    real.apply(&workspace, export).await;
    let lib = real.text("src/lib.ts");
    assert!(lib.contains("helper }") || lib.contains("export function helper"), "{lib}");
    let after = found(&workspace, "src/a.ts").await;
    assert!(after.iter().all(|one| one.rule() != "2459"), "{after:#?}");
    with_code(&after, "2322");
    // This server does not repeat an empty list for a clean file that stays clean.
    std::fs::write(real.folder.path().join("src/clean.ts"), "export const clean = 2;\n").unwrap();
    assert_eq!(found(&workspace, "src/clean.ts").await, []);
    workspace.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ty_pulls_and_a_check_tells_what_each_server_is() {
    let real = Real::new("ty", &["server"], &["python"], &[("a.py", "x: int = 'text'\n")]);
    let workspace = real.open().await;
    with_code(&found(&workspace, "a.py").await, "invalid-assignment");
    workspace.close().await;
    for (program, args, mode, encoding) in [
        ("ruff", vec!["server"], DiagnosticsMode::Pull, "utf-8"),
        ("basedpyright-langserver", vec!["--stdio"], DiagnosticsMode::PullDynamic, "utf-16"),
        ("clangd", vec![], DiagnosticsMode::Push, "utf-8"),
    ] {
        let real = Real::new(program, &args, &["python"], &[]);
        let report = Runtime::new().check(&real.definition, Some(real.folder.path()), LONG).await;
        assert_eq!(report.problem, None, "{program}");
        assert_eq!(
            (report.diagnostics, report.encoding.as_deref()),
            (Some(mode), Some(encoding)),
            "{program}: {report:#?}"
        );
        assert!(report.resident_bytes.unwrap() > 1_000_000);
    }
}
