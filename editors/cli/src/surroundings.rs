//! The machine as the engine's checks see it: this process's environment, and programs that are asked for their version.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use agents_engine::Surroundings;

use crate::compose;

/// How long a program may take to say its version.
const PATIENCE: Duration = Duration::from_secs(5);

/// This machine.
pub struct ThisMachine;

impl Surroundings for ThisMachine {
    fn variable(&self, name: &str) -> Option<String> {
        compose::env(name)
    }

    fn run(&self, program: &Path, args: &[&str]) -> Result<String, String> {
        let shown = program.display();
        let mut child = Command::new(program)
            .args(args)
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("{shown} cannot be started: {}", words(&e)))?;
        let mut pipe = child.stdout.take().ok_or_else(|| format!("{shown} has no output"))?;
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let read = pipe.read_to_end(&mut bytes);
            // Nobody listens any more when the time was up.
            let _ = sender.send(read.map(|_| bytes));
        });
        let said = receiver.recv_timeout(PATIENCE);
        if said.is_err() {
            let _ = child.kill();
        }
        let status = child.wait().map_err(|e| format!("{shown}: {}", words(&e)))?;
        match said {
            Ok(Ok(bytes)) if status.success() => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Ok(Ok(_)) => Err(format!("{shown} failed ({status})")),
            Ok(Err(error)) => Err(format!("{shown}: {}", words(&error))),
            Err(_) => Err(format!("{shown} said nothing for {} seconds", PATIENCE.as_secs())),
        }
    }
}

/// What the system says, without the number it says it with.
fn words(error: &std::io::Error) -> String {
    agents_domain::error::without_os_numbers(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_prints_is_returned_and_a_failure_told() {
        let shell = |script: &str| ThisMachine.run(Path::new("/bin/sh"), &["-c", script]);
        assert_eq!(shell("echo a; echo b >&2"), Ok("a\n".to_owned()));
        assert!(shell("exit 3").unwrap_err().contains("exit status: 3"));
        let missing = ThisMachine.run(Path::new("/no/such/program"), &[]).unwrap_err();
        assert_eq!(missing, "/no/such/program cannot be started: No such file or directory");
    }
}
