//! A machine made up for a test: its environment, and the programs on its PATH with what they print.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use agents_engine::Surroundings;
use tempfile::TempDir;

use crate::harness::Bench;

pub struct Machine {
    programs: TempDir,
    variables: BTreeMap<String, String>,
    /// By program and arguments; what is not here fails.
    prints: BTreeMap<String, String>,
}

impl Machine {
    /// Git and Python as they should be.
    pub fn sound() -> Self {
        Self::bare().with("git", "git --version", "git version 2.43.0\n").with(
            "python3",
            "python3 -I -c",
            "3.12.3\n",
        )
    }

    /// Nothing on PATH.
    pub fn bare() -> Self {
        let programs = TempDir::new().unwrap();
        let path = programs.path().display().to_string();
        let variables = BTreeMap::from([("PATH".to_owned(), path)]);
        Self { programs, variables, prints: BTreeMap::new() }
    }

    /// A program, with what it prints when its command line starts so.
    pub fn with(mut self, program: &str, line: &str, prints: &str) -> Self {
        let file = self.programs.path().join(program);
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        self.prints.insert(line.to_owned(), prints.to_owned());
        self
    }

    /// A program that does nothing, well.
    pub fn with_idle(self, program: &str) -> Self {
        let file = self.programs.path().join(program);
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    pub fn set(mut self, variable: &str, value: &str) -> Self {
        self.variables.insert(variable.to_owned(), value.to_owned());
        self
    }

    /// A bench that stands on this machine.
    pub fn under(self, bench: Bench) -> Bench {
        let Bench { dir, engine, asked } = bench;
        Bench { dir, engine: engine.with_surroundings(Arc::new(self)), asked }
    }
}

impl Surroundings for Machine {
    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    fn run(&self, program: &Path, args: &[&str]) -> Result<String, String> {
        let line = format!("{} {}", program.file_name().unwrap().to_string_lossy(), args.join(" "));
        let found = self.prints.iter().find(|(start, _)| line.starts_with(*start));
        found.map(|(_, prints)| prints.clone()).ok_or_else(|| format!("`{line}` failed"))
    }
}
