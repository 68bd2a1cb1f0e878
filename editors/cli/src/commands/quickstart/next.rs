//! What to do after a quickstart: see the decisions in an editor, ask for one, go on with a repository of one's own.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::servers::Ready;
use crate::compose;
use crate::output::Output;
use crate::run::Run;

/// A place that a plan changed.
pub struct Place {
    /// The file; absolute.
    pub file: PathBuf,
    /// Its line, from 1.
    pub line: u32,
}

/// How this program is called from elsewhere.
pub struct Program {
    path: PathBuf,
    /// What must be said besides: the data directory, unless everybody takes this one.
    data_dir: Option<PathBuf>,
    on_path: bool,
}

impl Program {
    /// This one.
    pub fn this(run: &Run) -> Self {
        let path = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("agents"));
        let data_dir = &run.env.data_dir;
        let usual = compose::env("HOME").map(|home| Path::new(&home).join(".cleveragents"));
        let same = |at: PathBuf| at.canonicalize().ok() == path.canonicalize().ok();
        let found = compose::env("PATH").and_then(|path| {
            std::env::split_paths(&path).map(|dir| dir.join("agents")).find(|p| p.is_file())
        });
        Self {
            on_path: found.is_some_and(same),
            data_dir: (usual.as_ref() != Some(data_dir)).then(|| data_dir.clone()),
            path,
        }
    }

    /// The program and its arguments that start the language server.
    fn serve(&self) -> Vec<String> {
        let data_dir =
            self.data_dir.iter().flat_map(|dir| ["--data-dir".to_owned(), dir.display().to_string()]);
        let start = [self.path.display().to_string(), "lsp".to_owned(), "serve".to_owned()];
        start.into_iter().chain(data_dir).collect()
    }

    /// What makes `agents` mean this program and this data, where it does not.
    fn alias(&self) -> Option<String> {
        // An environment that names the data directory does so for the next command, too.
        let data_dir = self.data_dir.as_ref().filter(|_| compose::env("CLEVERAGENTS_DATA_DIR").is_none());
        if self.on_path && data_dir.is_none() {
            return None;
        }
        let mut command = shell(&self.path.display().to_string());
        if let Some(dir) = data_dir {
            command += &format!(" --data-dir {}", shell(&dir.display().to_string()));
        }
        Some(format!("alias agents={}", shell(&command)))
    }
}

/// Lines to paste into the configuration of editors.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Editors {
    /// `~/.config/nvim/init.lua`.
    pub neovim: String,
    /// `~/.config/helix/languages.toml`.
    pub helix: String,
    /// `~/.emacs.d/init.el`.
    pub emacs: String,
}

/// The lines for this program, for the languages that servers were found for.
pub fn editors(program: &Program, servers: &[Ready]) -> Editors {
    let command = program.serve();
    let list = |quote| command.iter().map(|word| quoted(word, quote)).collect::<Vec<_>>();
    let neovim = format!(
        "vim.lsp.config('agents', {{\n  cmd = {{ {} }},\n  root_markers = {{ '.git' }},\n}})\n\
         vim.lsp.enable('agents')\nvim.lsp.inlay_hint.enable()\n",
        list('\'').join(", ")
    );
    let words = list('"');
    let mut helix =
        format!("[language-server.agents]\ncommand = {}\nargs = [{}]\n", words[0], words[1..].join(", "));
    let mut modes: Vec<String> = Vec::new();
    for server in servers {
        let name = server.name.rsplit('/').next().unwrap_or_default();
        for language in &server.languages {
            let Some((helix_name, emacs_modes)) = editor_names(language) else { continue };
            helix += &format!(
                "\n[[language]]\nname = \"{helix_name}\"\nlanguage-servers = [{}, \"agents\"]\n",
                quoted(name, '"')
            );
            modes.extend(emacs_modes.iter().map(|mode| (*mode).to_owned()));
        }
    }
    if modes.is_empty() {
        modes.push("prog-mode".to_owned());
    }
    let emacs = format!(
        "(with-eval-after-load 'eglot\n  (add-to-list 'eglot-server-programs\n    '(({})\n      . ({}))))\n",
        modes.join(" "),
        words.join(" ")
    );
    Editors { neovim, helix, emacs }
}

/// What Helix and Emacs call a language.
fn editor_names(language: &str) -> Option<(&'static str, &'static [&'static str])> {
    Some(match language {
        "python" => ("python", &["python-mode", "python-ts-mode"]),
        "typescript" => ("typescript", &["typescript-mode", "typescript-ts-mode"]),
        "typescriptreact" => ("tsx", &["tsx-ts-mode"]),
        "javascript" => ("javascript", &["js-mode", "js-ts-mode"]),
        "javascriptreact" => ("jsx", &["js-jsx-mode"]),
        "rust" => ("rust", &["rust-mode", "rust-ts-mode"]),
        "go" => ("go", &["go-mode", "go-ts-mode"]),
        "c" => ("c", &["c-mode", "c-ts-mode"]),
        "cpp" => ("cpp", &["c++-mode", "c++-ts-mode"]),
        "shellscript" => ("bash", &["sh-mode", "bash-ts-mode"]),
        "yaml" => ("yaml", &["yaml-mode", "yaml-ts-mode"]),
        _ => return None,
    })
}

/// Commands that make sense now, most likely first.
pub fn commands(program: &Program, steps: Vec<String>) -> Vec<String> {
    program.alias().into_iter().chain(steps).collect()
}

/// Shows the lines for editors and what to do there. They stand free, so that they can be copied.
pub fn show(out: &Output, editors: &Editors, place: Option<&Place>) {
    let panel = out.panel(None, "See It in Your Editor");
    match place {
        Some(Place { file, line }) => panel
            .line(format!("Paste the lines for your editor, then open line {line} of"))
            .line(file.display().to_string())
            .line("and ask for documentation (in Neovim: K): you see the decision behind the line.")
            .line(crate::output::id(format!("nvim +{line} {}", shell(&file.display().to_string())))),
        None => panel.line("Paste the lines for your editor: it shows the decisions of your plans."),
    };
    drop(panel);
    for (title, text) in [
        ("Neovim 0.11, in ~/.config/nvim/init.lua:", &editors.neovim),
        ("Helix, in ~/.config/helix/languages.toml:", &editors.helix),
        ("Emacs with Eglot, in ~/.emacs.d/init.el:", &editors.emacs),
    ] {
        out.say(title);
        let lines = out.text(None);
        lines.no_wrap().indent(4).append(text);
    }
}

/// A string literal of Lua, TOML or Emacs Lisp.
fn quoted(text: &str, quote: char) -> String {
    let mut out = String::from(quote);
    for c in text.chars() {
        if c == quote || c == '\\' {
            out.push('\\');
        }
        out.push(c);
    }
    out.push(quote);
    out
}

/// A word of a shell.
pub fn shell(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+:=@%,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::super::servers::Source;
    use super::*;

    fn program(data_dir: Option<&str>) -> Program {
        Program { path: "/opt/it's here/agents".into(), data_dir: data_dir.map(PathBuf::from), on_path: true }
    }

    #[test]
    fn lines_for_editors_name_the_program_the_data_and_the_languages() {
        let ready = |name: &str, languages: &[&str]| Ready {
            name: name.to_owned(),
            languages: languages.iter().map(|l| (*l).to_owned()).collect(),
            program: None,
            source: Source::Path,
        };
        let servers = [ready("local/ruff", &["python"]), ready("acme/x", &["go.mod"])];
        let lines = editors(&program(Some("/my data")), &servers);
        assert!(
            lines
                .neovim
                .contains(r"cmd = { '/opt/it\'s here/agents', 'lsp', 'serve', '--data-dir', '/my data' }")
        );
        assert!(lines.helix.contains("command = \"/opt/it's here/agents\""), "{}", lines.helix);
        assert!(lines.helix.contains("language-servers = [\"ruff\", \"agents\"]"), "{}", lines.helix);
        assert!(!lines.helix.contains("go.mod"));
        assert!(lines.emacs.contains("(python-mode python-ts-mode)"), "{}", lines.emacs);
        let usual = editors(&program(None), &[]);
        assert!(!usual.neovim.contains("--data-dir"));
        assert!(usual.emacs.contains("(prog-mode)"));
    }

    #[test]
    fn words_for_a_shell_mean_what_they_are() {
        assert_eq!(shell("/plain/path-1.2"), "/plain/path-1.2");
        assert_eq!(shell("it's"), r"'it'\''s'");
        assert_eq!(shell(""), "''");
    }
}
