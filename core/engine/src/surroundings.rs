//! What the engine asks of the machine around it; the composition root answers, so that the engine itself reads no
//! environment and a test decides what there is.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The machine around the engine.
pub trait Surroundings: Send + Sync {
    /// An environment variable that is set to a text.
    fn variable(&self, name: &str) -> Option<String>;

    /// Runs a program for a few seconds at most and returns what it printed. `Err` is why there is nothing, for people.
    fn run(&self, program: &Path, args: &[&str]) -> Result<String, String>;
}

/// A machine with no environment and no programs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nowhere;

impl Surroundings for Nowhere {
    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn run(&self, program: &Path, _: &[&str]) -> Result<String, String> {
        Err(format!("{} is not there", program.display()))
    }
}

/// The program that a bare name stands for in a list of folders such as `PATH`.
pub fn find_program(name: &str, path: &str) -> Option<PathBuf> {
    std::env::split_paths(path).map(|folder| folder.join(name)).find(|file| is_program(file))
}

/// A file that may be run.
pub fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}
