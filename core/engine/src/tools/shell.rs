//! `shell_execute`: a command in the sandbox, in bounds, whose changes become the plan's.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use agents_domain::ports::BoxFuture;
use agents_domain::ports::tool::Capability;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::args::{read, sandbox, schema};
use super::{Acted, Body, Scene, Tool, tool};
use crate::process::confine::{self, Reach};
use crate::process::{Job, Kept, environment, run, secrets};

/// Characters of each stream that the actor is shown: the end of it.
const SHOWN: usize = 16_000;

pub(super) fn tools() -> Vec<Tool> {
    let capability = Capability {
        writes: true,
        checkpointable: true,
        is_unsafe: true,
        side_effects: vec!["process".to_owned()],
        ..Capability::default()
    };
    vec![tool(
        "shell_operations",
        "shell_execute",
        "Runs a command of /bin/sh in the sandbox and says what it printed and how it ended. Files it changes become part \
         of the plan. Where the machine can confine it, it has no network and can write only to the sandbox and /tmp.",
        schema::<ShellExecute>(),
        Body::Run(shell_execute),
        "shell",
        capability,
    )]
}

/// Arguments of `shell_execute`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ShellExecute {
    /// The command, as for `sh -c`.
    command: String,
    /// Seconds it may take.
    #[serde(default = "two_minutes")]
    #[schemars(range(min = 1, max = 3600))]
    timeout: u64,
    /// A folder to run it in; the top one unless given.
    #[serde(default)]
    working_directory: Option<String>,
    /// The resource, by name or id; needed only when the plan has several.
    #[serde(default)]
    resource: Option<String>,
}

fn two_minutes() -> u64 {
    120
}

fn shell_execute<'a>(args: Value, scene: &'a Scene<'a>) -> BoxFuture<'a, Result<Acted, String>> {
    Box::pin(async move {
        let args: ShellExecute = read(&args)?;
        let sandbox = sandbox(scene, args.resource.as_deref())?;
        if sandbox.read_only {
            return Err(format!("resource {} is linked read-only", sandbox.name));
        }
        if args.command.trim().is_empty() || args.command.contains('\0') {
            return Err("`command` is empty or holds a NUL character".to_owned());
        }
        let folder = args.working_directory.as_deref().unwrap_or(".");
        let folder = sandbox.worktree().readable_path(folder).map_err(|error| error.to_string())?;
        let directory = sandbox.root.join(&folder);
        if !directory.is_dir() {
            return Err(format!("`{folder}` is no folder of {}", sandbox.name));
        }
        let surroundings = &*scene.engine.surroundings;
        let bounds = sandbox.bounds(Reach::Sandbox, &scene.engine.data_dir);
        let mut env = environment::variables(surroundings);
        env.retain(|(name, _)| !matches!(name.as_str(), "TMPDIR" | "XDG_CACHE_HOME"));
        env.push(("XDG_CACHE_HOME".to_owned(), "/tmp/.cache".to_owned()));
        let shell = PathBuf::from("/bin/sh");
        let words = ["-c".to_owned(), args.command.clone()];
        let (program, words) = confine::confined(surroundings, &bounds, &shell, &words);
        let confined = program != shell;
        let job = Job { program, args: words, env, directory, timeout: Duration::from_secs(args.timeout) };
        let began = Instant::now();
        let ended = run(&job).await?;
        let mut said = json!({
            "exit_code": ended.status.and_then(|status| status.code()),
            "stdout": shown(&ended.stdout),
            "stderr": shown(&ended.stderr),
            "duration_ms": u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        });
        if ended.status.is_none() {
            said["timed_out"] = format!("it was ended after {} s", args.timeout).into();
        }
        if !confined {
            said["note"] = "nothing confines commands on this machine (bwrap is missing)".into();
        }
        Ok((sandbox.resource_id, said))
    })
}

/// The end of a stream, without what looks like a key.
fn shown(kept: &Kept) -> String {
    let text = secrets::masked(&kept.text);
    let count = text.chars().count();
    if count <= SHOWN && kept.dropped == 0 {
        return text;
    }
    let end: String = text.chars().skip(count.saturating_sub(SHOWN)).collect();
    let left_out = kept.dropped + (text.len() - end.len()) as u64;
    format!("[{left_out} bytes before this are left out]\n{end}")
}
