//! An Agent Skill at work: its instructions, its files on demand, and its scripts under its rules.

use std::path::Path;
use std::time::Duration;

use agents_domain::ports::tool::ToolError;
use agents_domain::skill::{SandboxPolicy, SkillDefinition, SkillTool};
use serde_json::{Value, json};

use super::Answer;
use crate::process::confine::{self, Reach};
use crate::process::{self, Job, environment, secrets};
use crate::skills::folder;
use crate::tools::Scene;

/// How long a script may take.
const WITHIN: Duration = Duration::from_secs(300);

/// Bytes of a script's output that the actor is told.
const TOLD: usize = 64 << 10;

/// Answers a call of a skill's tool (SKILLMD-004 to SKILLMD-008).
pub(super) async fn answer(
    definition: &SkillDefinition,
    tool: &SkillTool,
    path: &str,
    place: &Path,
    args: &Value,
    scene: &Scene<'_>,
) -> Answer {
    let wrong = |why: String| (ToolError::InvalidCallError, format!("{}: {why}", tool.name));
    if let Some(keys) = args.as_object()
        && let Some(other) = keys.keys().find(|key| !["file", "script", "args"].contains(&key.as_str()))
    {
        return Err(wrong(format!("there is no argument `{other}`: there are file, script, args")));
    }
    match (args["file"].as_str(), args["script"].as_str()) {
        (Some(_), Some(_)) => Err(wrong("`file` and `script` exclude each other".to_owned())),
        (Some(file), None) => {
            let text = folder::read(place, file).map_err(wrong)?;
            Ok(json!({ "agent_skill": tool.name, "file": file, "text": text }))
        }
        (None, Some(script)) => run(definition, tool, path, place, script, args, scene).await,
        (None, None) => {
            let instructions = folder::instructions(place).map_err(wrong)?;
            Ok(
                json!({ "agent_skill": tool.name, "instructions": instructions, "files": folder::files(place) }),
            )
        }
    }
}

async fn run(
    definition: &SkillDefinition,
    tool: &SkillTool,
    path: &str,
    place: &Path,
    script: &str,
    args: &Value,
    scene: &Scene<'_>,
) -> Answer {
    let denied = |why: String| (ToolError::AccessDeniedError, format!("{}: {why}", tool.name));
    let wrong = |why: String| (ToolError::InvalidCallError, format!("{}: {why}", tool.name));
    let failed = |why: String| (ToolError::ToolExecutionError, format!("{}: {why}", tool.name));
    let own = definition.agent_skills.iter().find(|folder| folder.path == path);
    match own.map(|folder| folder.sandbox_policy).unwrap_or_default() {
        SandboxPolicy::None => {
            return Err(denied("its `sandbox_policy` is `none`: its scripts are not run".to_owned()));
        }
        SandboxPolicy::Container => {
            return Err(denied(
                "its `sandbox_policy` is `container`, and this version has no containers".to_owned(),
            ));
        }
        SandboxPolicy::Process => {}
    }
    let words = match &args["args"] {
        Value::Null => Vec::new(),
        Value::Array(words) => {
            let words: Option<Vec<String>> = words.iter().map(|w| w.as_str().map(str::to_owned)).collect();
            words.ok_or_else(|| wrong("`args` must be texts".to_owned()))?
        }
        _ => return Err(wrong("`args` must be a list of texts".to_owned())),
    };
    let file = folder::within(place, script).map_err(wrong)?;
    let (head, _) = folder::head(place).map_err(failed)?;
    let allowed = own.and_then(|folder| folder.allowed_tools.clone()).or(head.allowed_tools);
    let script = script.trim_start_matches("./");
    if let Some(allowed) = &allowed
        && !permits(allowed, script, &words)
    {
        let told = if allowed.is_empty() { "nothing".to_owned() } else { allowed.join(", ") };
        return Err(denied(format!("`{script}` is not among what `allowed-tools` allows: {told}")));
    }
    let Some(sandbox) = scene.sandboxes.iter().find(|sandbox| !sandbox.read_only) else {
        return Err(denied("the plan has no resource that may be written".to_owned()));
    };
    let (program, mut arguments) = interpreter(&file);
    arguments.extend(words);
    let surroundings = &*scene.engine.surroundings;
    let mut bounds = sandbox.bounds(Reach::Sandbox, &scene.engine.data_dir);
    // Wherever it is, the skill's folder is there to read.
    bounds.protected.extend(place.canonicalize());
    let mut env = environment::variables(surroundings);
    env.retain(|(name, _)| !matches!(name.as_str(), "TMPDIR" | "XDG_CACHE_HOME"));
    let (program, arguments) = confine::confined(surroundings, &bounds, Path::new(&program), &arguments);
    let job = Job { program, args: arguments, env, directory: sandbox.root.clone(), timeout: WITHIN };
    let ended = process::run(&job).await.map_err(failed)?;
    let tail = |text: &str| {
        let mut from = text.len().saturating_sub(TOLD);
        while !text.is_char_boundary(from) {
            from += 1;
        }
        text.get(from..).unwrap_or_default().trim_end().to_owned()
    };
    let told = |text: &str| secrets::masked(&tail(text));
    let (out, err) = (told(&ended.stdout.text), told(&ended.stderr.text));
    match ended.status {
        None => Err((
            ToolError::TimeoutError,
            format!("{}: `{script}` took longer than {} s and was ended", tool.name, WITHIN.as_secs()),
        )),
        Some(status) if status.success() => {
            Ok(json!({ "agent_skill": tool.name, "script": script, "stdout": out, "stderr": err }))
        }
        Some(status) => {
            let printed = if err.is_empty() { out } else { err };
            Err(failed(format!("`{script}` failed ({status}): {printed}")))
        }
    }
}

/// How a script is started: by itself where it may be, else by what its ending says.
fn interpreter(file: &Path) -> (String, Vec<String>) {
    use std::os::unix::fs::PermissionsExt;
    let shown = file.display().to_string();
    let executable = file.metadata().is_ok_and(|found| found.permissions().mode() & 0o111 != 0);
    let by = match file.extension().and_then(|ending| ending.to_str()) {
        _ if executable => return (shown, Vec::new()),
        Some("py") => "python3",
        Some("js" | "mjs" | "cjs") => "node",
        _ => "sh",
    };
    ("/usr/bin/env".to_owned(), vec![by.to_owned(), shown])
}

/// Whether one of the patterns allows a command: `Bash`, `Bash(*)`, `Bash(scripts/a.sh:*)` for any arguments after these
/// words, `Bash(scripts/a.sh --dry)` for exactly this command line (SKILLMD-007).
fn permits(allowed: &[String], script: &str, words: &[String]) -> bool {
    let line = std::iter::once(script).chain(words.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
    allowed.iter().any(|pattern| {
        let pattern = pattern.trim();
        let Some(rest) = pattern.strip_prefix("Bash").or_else(|| pattern.strip_prefix("Shell")) else {
            return false;
        };
        let inside = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
        match (rest.is_empty(), inside) {
            (true, _) | (_, Some("*")) => true,
            (false, Some(inside)) => {
                let inside = inside.trim_start_matches("./");
                match inside.strip_suffix(":*") {
                    Some(prefix) => line == prefix || line.starts_with(&format!("{prefix} ")),
                    None => line == inside,
                }
            }
            (false, None) => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::permits;

    // SKILLMD-007
    #[test]
    fn patterns_allow_commands_by_their_first_words() {
        let is = |patterns: &[&str], script: &str, words: &[&str]| {
            let own = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
            permits(&own(patterns), script, &own(words))
        };
        assert!(is(&["Bash"], "scripts/a.sh", &["x"]));
        assert!(is(&["Read", "Bash(*)"], "scripts/a.sh", &[]));
        assert!(is(&["Bash(scripts/a.sh:*)"], "scripts/a.sh", &["x", "y"]));
        assert!(is(&["Bash(./scripts/a.sh --dry)"], "scripts/a.sh", &["--dry"]));
        assert!(!is(&["Bash(scripts/a.sh --dry)"], "scripts/a.sh", &["--wet"]));
        assert!(!is(&["Bash(scripts/a.sh:*)"], "scripts/a.shx", &[]));
        assert!(!is(&["Bash(docker:*)", "Read"], "scripts/a.sh", &[]));
        assert!(!is(&[], "scripts/a.sh", &[]));
    }
}
