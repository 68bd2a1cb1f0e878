//! From a registry entry to a command line: program on PATH, environment, root folder, and hints when it cannot start.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use agents_domain::catalogue;
use agents_domain::language_server::{LanguageServerDefinition, Transport};
use serde_json::Value;

/// A command ready to be started.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    /// Absolute.
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    /// Over the inherited environment, or in place of it.
    pub(crate) env: Vec<(String, String)>,
    pub(crate) is_whole_environment: bool,
    /// Absolute; working directory and workspace root of the server.
    pub(crate) root: PathBuf,
    pub(crate) transport: Transport,
    pub(crate) init_options: Value,
    /// Values that `${NAME}` stood for, kept out of what people are shown.
    pub(crate) secrets: Vec<String>,
}

/// Looks everything up. `Err` says what is missing and what would help.
pub(crate) fn prepare(definition: &LanguageServerDefinition, workspace: &Path) -> Result<Launch, String> {
    prepare_with(definition, workspace, &|name| env::var(name).ok())
}

fn prepare_with(
    definition: &LanguageServerDefinition,
    workspace: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Launch, String> {
    let root = root_of(&definition.root_path, workspace)?;
    let mut secrets = Vec::new();
    let mut env = Vec::new();
    for (name, value) in &definition.env {
        let value = interpolate(value, variable, &mut secrets).map_err(|missing| {
            format!("`env.{name}` uses `${{{missing}}}`, which is not set in the environment")
        })?;
        env.push((name.clone(), value));
    }
    let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone());
    let program = find_program(&definition.command, &root, path.or_else(|| variable("PATH")).as_deref())?;
    let init_options = interpolate_value(&definition.init_options, variable, &mut secrets);
    secrets.retain(|secret| secret.len() >= 6);
    Ok(Launch {
        program,
        args: definition.args.clone(),
        env,
        is_whole_environment: false,
        root,
        transport: definition.transport.clone(),
        init_options,
        secrets,
    })
}

/// Renders `{{ project.root }}`, optionally followed by a folder inside of it.
fn root_of(template: &str, workspace: &Path) -> Result<PathBuf, String> {
    let template = template.trim();
    let rest = match template.strip_prefix("{{").and_then(|rest| rest.split_once("}}")) {
        Some((name, rest)) if name.trim() == "project.root" => rest.trim_start_matches('/'),
        _ if template.is_empty() => "",
        _ if Path::new(template) == workspace => "",
        _ => return Err(format!("`root_path` is `{template}`; it must start with `{{{{ project.root }}}}`")),
    };
    let root = if rest.is_empty() { workspace.to_owned() } else { workspace.join(rest) };
    let root = root.canonicalize().map_err(|error| format!("the root folder {}: {error}", root.display()))?;
    let workspace = workspace
        .canonicalize()
        .map_err(|error| format!("the root folder {}: {error}", workspace.display()))?;
    if !root.starts_with(&workspace) {
        return Err(format!("`root_path` is `{template}`, which leaves the workspace"));
    }
    if root.is_dir() { Ok(root) } else { Err(format!("the root folder {} is no folder", root.display())) }
}

/// Puts variables in, and remembers their values as secrets.
fn interpolate(
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
    secrets: &mut Vec<String>,
) -> Result<String, String> {
    agents_domain::interpolate::interpolate(text, &mut |name| {
        let value = variable(name)?;
        secrets.push(value.clone());
        Some(value)
    })
}

/// The same for each string of a JSON value; a string with an unknown variable stays as it is, servers have
/// placeholders of their own.
fn interpolate_value(
    value: &Value,
    variable: &dyn Fn(&str) -> Option<String>,
    secrets: &mut Vec<String>,
) -> Value {
    match value {
        Value::String(text) => {
            Value::String(interpolate(text, variable, secrets).unwrap_or_else(|_| text.clone()))
        }
        Value::Array(items) => {
            items.iter().map(|item| interpolate_value(item, variable, secrets)).collect::<Vec<_>>().into()
        }
        Value::Object(fields) => fields
            .iter()
            .map(|(key, field)| (key.clone(), interpolate_value(field, variable, secrets)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

pub(crate) fn find_program(command: &str, root: &Path, path: Option<&str>) -> Result<PathBuf, String> {
    if command.is_empty() {
        return Err("`command` is empty".to_owned());
    }
    if command.contains('/') {
        let program = root.join(command);
        return match fs::metadata(&program) {
            Ok(meta) if meta.is_file() && meta.permissions().mode() & 0o111 != 0 => Ok(program),
            Ok(_) => Err(format!("`{command}` is not an executable file")),
            Err(error) => Err(format!("`{command}` cannot be started: {error}{}", hint(command))),
        };
    }
    env::split_paths(path.unwrap_or_default())
        // A relative entry would look inside the workspace, which is not ours to run programs from.
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(command))
        .find(|file| {
            fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
        })
        .ok_or_else(|| format!("`{command}` is not on PATH{}", hint(command)))
}

/// How a known server is installed.
fn hint(command: &str) -> String {
    match catalogue::by_command(command) {
        Some(server) => {
            format!("; install it with `{}`, or give its full path as `command`", server.install_command())
        }
        None => "; install it, or give its full path as `command`".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn variable(name: &str) -> Option<String> {
        (name == "HOME_OF_X").then(|| "/opt/x-home".to_owned())
    }

    // LSP-004, LSP-006
    #[test]
    fn variables_defaults_and_escapes_are_interpolated() {
        let mut secrets = Vec::new();
        let mut run = |text| interpolate(text, &variable, &mut secrets);
        assert_eq!(run("a${HOME_OF_X}b"), Ok("a/opt/x-homeb".to_owned()));
        assert_eq!(run("${NONE:info}-${NONE:-x}"), Ok("info-x".to_owned()));
        assert_eq!(run("$${HOME_OF_X} ${open"), Ok("${HOME_OF_X} ${open".to_owned()));
        assert_eq!(run("${NONE}"), Err("NONE".to_owned()));
        assert_eq!(secrets, ["/opt/x-home"]);
        let value = json!({"a": ["${HOME_OF_X}", "${workspaceFolder}", 1]});
        let expected = json!({"a": ["/opt/x-home", "${workspaceFolder}", 1]});
        assert_eq!(interpolate_value(&value, &variable, &mut Vec::new()), expected);
    }

    #[test]
    fn a_program_that_is_missing_is_named_with_what_installs_it() {
        let error = find_program("ruff", Path::new("/"), Some("/nowhere")).unwrap_err();
        assert_eq!(
            error,
            "`ruff` is not on PATH; install it with `agents lsp install ruff`, or give its full path as `command`"
        );
        let error = find_program("no-such-server", Path::new("/"), None).unwrap_err();
        assert!(error.contains("is not on PATH; install it, or give its full path"), "{error}");
    }

    #[test]
    fn a_relative_path_entry_does_not_run_what_lies_in_the_workspace() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sneaky");
        fs::write(&file, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(find_program("sneaky", folder.path(), Some(".:")).is_err());
        assert_eq!(find_program("./sneaky", folder.path(), None).unwrap(), folder.path().join("./sneaky"));
    }

    // LSP-008
    #[test]
    fn the_root_template_names_the_workspace_or_a_folder_inside() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().canonicalize().unwrap();
        fs::create_dir(workspace.join("back")).unwrap();
        for whole in ["{{ project.root }}", "{{project.root}}", ""] {
            assert_eq!(root_of(whole, &workspace).as_deref(), Ok(workspace.as_path()));
        }
        assert_eq!(root_of("{{ project.root }}/back", &workspace), Ok(workspace.join("back")));
        for bad in ["/etc", "{{ project.root }}/../..", "{{ other }}", "{{ project.root }}/none"] {
            assert!(root_of(bad, &workspace).is_err(), "{bad}");
        }
    }
}
