//! `builtin/command`: passes when a command exits with 0.

use std::cell::RefCell;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use agents_domain::interpolate::interpolate;
use agents_domain::validation::{OutputParser, ValidationDefinition, Verdict};
use serde_json::{Map, Value};

use super::parse::{self, Output};
use crate::Surroundings;
use crate::process::confine::{self, Bounds};
use crate::process::secrets::Secrets;
use crate::process::{self, Ended, Job, Kept, environment};
use crate::surroundings::{find_program, is_program};

/// The end of each stream that is kept with the result, in characters.
const SHOWN: usize = 4000;

/// Runs the command of a validation in its bounds; `args` are those of the attachment, defaults filled in.
pub(super) async fn run(
    definition: &ValidationDefinition,
    args: &Map<String, Value>,
    bounds: &Bounds,
    surroundings: &dyn Surroundings,
) -> Verdict {
    let root = bounds.root.as_path();
    let report = match tempfile::Builder::new().prefix("agents-report-").tempdir() {
        Ok(folder) => folder,
        Err(error) => return Verdict::broken(format!("no temporary folder can be made: {error}")),
    };
    let file = report.path().join("report");
    let prepared = match prepare(definition, args, bounds, &file, surroundings) {
        Ok(prepared) => prepared,
        Err(why) => return Verdict::broken(why),
    };
    let ended = match process::run(&prepared.job).await {
        Ok(ended) => Ended { status: ended.status.map(|status| told(status, prepared.confined)), ..ended },
        Err(why) => return Verdict::broken(why),
    };
    let text = read_report(&file);
    prepared.secrets.mask(verdict(&prepared, &ended, &text, root))
}

/// How a command ended: what confines it passes a signal on as an exit code, as a shell does.
fn told(status: ExitStatus, confined: bool) -> ExitStatus {
    match status.code() {
        Some(code @ 129..=192) if confined => ExitStatus::from_raw(code - 128),
        _ => status,
    }
}

/// The report, when it is of a size a report has.
fn read_report(file: &Path) -> String {
    let readable = file.symlink_metadata().is_ok_and(|m| m.is_file() && m.len() <= 16 << 20);
    let bytes = if readable { std::fs::read(file).unwrap_or_default() } else { Vec::new() };
    String::from_utf8_lossy(&bytes).into_owned()
}

struct Prepared {
    job: Job,
    /// For people.
    line: String,
    parser: OutputParser,
    secrets: Secrets,
    /// It runs in bounds.
    confined: bool,
}

fn prepare(
    definition: &ValidationDefinition,
    args: &Map<String, Value>,
    bounds: &Bounds,
    report: &Path,
    surroundings: &dyn Surroundings,
) -> Result<Prepared, String> {
    let root = bounds.root.as_path();
    let text = |key: &str| args.get(key).and_then(Value::as_str).map(str::to_owned);
    let inline = definition.command.is_none() && definition.shell.is_none();
    let own = |key: &str| if inline { text(key) } else { None };
    let directory =
        directory(root, definition.working_directory.clone().or_else(|| own("working_directory")))?;
    let mut env = environment::variables(surroundings);
    let secrets = RefCell::new(Secrets::default());
    for (name, value) in &definition.env {
        let look = |name: &str| surroundings.variable(name);
        let value =
            interpolate(value, &mut |name| look(name).inspect(|value| secrets.borrow_mut().add(name, value)))
                .map_err(|missing| format!("`env.{name}` uses `${{{missing}}}`, which is not set"))?;
        secrets.borrow_mut().add(name, &value);
        env.retain(|(known, _)| known != name);
        env.push((name.clone(), value));
    }
    let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone()).unwrap_or_default();
    let shell = definition.shell.clone().or_else(|| own("shell"));
    let (program, words, line) = match shell {
        Some(script) => {
            env.extend(args.iter().filter(|(key, _)| is_name(key)).map(|(key, v)| (key.clone(), shown(v))));
            env.push(("report".to_owned(), report.display().to_string()));
            let words = vec!["-c".to_owned(), script.clone()];
            (PathBuf::from("/bin/sh"), words, script)
        }
        None => {
            let given = own("command").map(|line| shlex::split(&line).ok_or(line)).transpose();
            let given = given.map_err(|line| format!("`{line}` has a quote that is not closed"))?;
            let command = definition.command.clone().or(given).unwrap_or_default();
            let words = rendered(&command, args, report)?;
            let (program, rest) = words.split_first().ok_or("there is no command to run")?;
            (locate(program, &directory, &path)?, rest.to_vec(), words.join(" "))
        }
    };
    let (within, words) = confine::confined(surroundings, bounds, &program, &words);
    let confined = within != program;
    let parser = own("parser").and_then(|word| serde_json::from_value(word.into()).ok());
    Ok(Prepared {
        parser: definition.parser.or(parser).unwrap_or(OutputParser::Auto),
        job: Job {
            program: within,
            args: words,
            env,
            directory,
            timeout: Duration::from_secs(u64::from(definition.timeout)),
        },
        line,
        secrets: secrets.into_inner(),
        confined,
    })
}

/// A folder inside the root, links followed.
fn directory(root: &Path, inside: Option<String>) -> Result<PathBuf, String> {
    let Some(inside) = inside else { return Ok(root.to_owned()) };
    let real = |path: &Path| path.canonicalize().map_err(|e| format!("working directory `{inside}`: {e}"));
    let (folder, root) = (real(&root.join(&inside))?, real(root)?);
    if !folder.starts_with(&root) || !folder.is_dir() {
        return Err(format!("working directory `{inside}` is no folder inside the resource"));
    }
    Ok(folder)
}

fn rendered(command: &[String], args: &Map<String, Value>, report: &Path) -> Result<Vec<String>, String> {
    let mut engine = minijinja::Environment::new();
    engine.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
    let mut values = args.clone();
    values.insert("report".to_owned(), report.display().to_string().into());
    let render = |word: &String| {
        if !word.contains("{{") && !word.contains("{%") {
            return Ok(word.clone());
        }
        engine.render_str(word, minijinja::value::Serde(&values)).map_err(|e| format!("`{word}`: {e}"))
    };
    command.iter().map(render).collect()
}

/// The program a word of the command names, absolute.
fn locate(word: &str, directory: &Path, path: &str) -> Result<PathBuf, String> {
    if word.contains('/') {
        let file = directory.join(word);
        return if is_program(&file) {
            Ok(file)
        } else {
            Err(format!("`{word}` is not a program that can be run"))
        };
    }
    // A relative entry would run what lies in the sandbox by accident.
    let absolute: Vec<PathBuf> = std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect();
    let path = std::env::join_paths(absolute).unwrap_or_default();
    find_program(word, &path.to_string_lossy())
        .ok_or_else(|| format!("`{word}` is not on PATH: install it, or give its full path"))
}

fn is_name(key: &str) -> bool {
    key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !key.starts_with(|c: char| c.is_ascii_digit())
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn verdict(prepared: &Prepared, ended: &Ended, report: &str, root: &Path) -> Verdict {
    let output =
        Output { stdout: &ended.stdout.text, stderr: &ended.stderr.text, report, command: &prepared.line };
    let found = parse::read(prepared.parser, &output, &root.to_string_lossy());
    let passed = ended.status.is_some_and(|status| status.success());
    let counts = found.tests.map(|(passed, total)| (passed.min(total), total));
    let (message, error) = match ended.status {
        None => {
            let seconds = prepared.job.timeout.as_secs();
            (format!("it was stopped after {seconds} s: `{}` did not end", prepared.line), true)
        }
        Some(status) if passed => (passed_text(counts), status.core_dumped()),
        Some(status) => (failed_text(status, counts, &found.findings, ended), status.signal().is_some()),
    };
    let mut data = Map::new();
    data.insert("command".to_owned(), prepared.line.clone().into());
    data.insert("exit_code".to_owned(), ended.status.and_then(|s| s.code()).into());
    if let Some((good, total)) = counts {
        data.insert("passed".to_owned(), good.into());
        data.insert("total".to_owned(), total.into());
    }
    for (name, stream) in [("stdout", &ended.stdout), ("stderr", &ended.stderr)] {
        if !stream.text.trim().is_empty() {
            data.insert(name.to_owned(), tail(stream).into());
        }
    }
    // What a passing command prints is no failure.
    let findings = if passed { Vec::new() } else { found.findings };
    Verdict { passed, message, data, findings, error }
}

fn passed_text(counts: Option<(u64, u64)>) -> String {
    match counts {
        Some((_, total)) => format!("{total} tests passed"),
        None => "exit code 0".to_owned(),
    }
}

fn failed_text(
    status: ExitStatus,
    counts: Option<(u64, u64)>,
    findings: &[agents_domain::validation::Finding],
    ended: &Ended,
) -> String {
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => "it did not end".to_owned(),
    };
    match counts {
        Some((good, total)) if good < total => format!("{} of {total} tests failed ({how})", total - good),
        _ if findings.len() == 1 => format!("{} ({how})", findings[0].line_text()),
        _ if !findings.is_empty() => format!("{} problems ({how})", findings.len()),
        _ => {
            let last =
                |kept: &Kept| kept.text.lines().map(str::trim).rfind(|l| !l.is_empty()).map(str::to_owned);
            match last(&ended.stderr).or_else(|| last(&ended.stdout)) {
                Some(line) => format!("{how}: {}", line.chars().take(200).collect::<String>()),
                None => how,
            }
        }
    }
}

/// The end of a stream for people, saying what is left out.
fn tail(kept: &Kept) -> String {
    let count = kept.text.chars().count();
    if count <= SHOWN && kept.dropped == 0 {
        return kept.text.clone();
    }
    let end: String = kept.text.chars().skip(count.saturating_sub(SHOWN)).collect();
    format!("[the beginning is left out]\n{end}")
}
