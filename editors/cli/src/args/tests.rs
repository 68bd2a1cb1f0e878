//! Facts about the command line.

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use super::*;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(line.split_whitespace())
}

fn command(line: &str) -> Command {
    parse(line).unwrap_or_else(|e| panic!("{line}: {e}")).command.unwrap()
}

fn refused(line: &str) -> ErrorKind {
    parse(line).err().unwrap_or_else(|| panic!("{line} was taken")).kind()
}

fn leaves(command: &clap::Command, path: &str, found: &mut Vec<(String, clap::Command)>) {
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        let path = format!("{path} {}", sub.get_name());
        match sub.has_subcommands() {
            true => leaves(sub, &path, found),
            false => found.push((path, sub.clone())),
        }
    }
}

fn all() -> Vec<(String, clap::Command)> {
    let mut found = Vec::new();
    leaves(&Cli::command(), "agents", &mut found);
    found
}

#[test]
fn the_definition_is_sound() {
    Cli::command().debug_assert();
}

// CLI-016 to CLI-021, CLI-106
#[test]
fn the_commands_of_the_synopsis_are_there() {
    let names: Vec<String> = all().into_iter().map(|(path, _)| path).collect();
    let expected = "quickstart version info diagnostics init resource:add,list,show,remove,inspect,tree,link-child,unlink-child,stop,rebuild \
                    project:create,list,show,delete,link-resource,unlink-resource actor:add,list,show,run,remove lsp:add,list,show,remove,detect,install,check,index,serve mcp:serve \
                    validation:add,attach,detach tool:add,list,show,remove action:create,list,show,archive \
                    invariant:add,list,remove automation-profile:add,list,show,remove \
                    plan:use,execute,apply,revert,status,cancel,prompt,correct,rollback,tree,explain,diff,artifacts,errors,guard,blame,list,follow config:set,get,list";
    let expected: Vec<String> = expected
        .split_whitespace()
        .flat_map(|group| match group.split_once(':') {
            None => vec![format!("agents {group}")],
            Some((group, leaves)) => leaves.split(',').map(|leaf| format!("agents {group} {leaf}")).collect(),
        })
        .chain(["add", "remove", "list", "show"].map(|leaf| format!("agents resource type {leaf}")))
        .chain(["set", "show", "inspect", "simulate"].map(|leaf| format!("agents project context {leaf}")))
        .collect();
    let missing: Vec<&String> = expected.iter().filter(|name| !names.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    for missing in ["agents plan strategize X", "agents project validations"] {
        assert_eq!(refused(missing), ErrorKind::InvalidSubcommand, "{missing}");
    }
}

// CLI-007
#[test]
fn every_command_has_help_with_examples_that_parse() {
    for (path, leaf) in all() {
        assert_eq!(refused(&format!("{path} --help")), ErrorKind::DisplayHelp);
        let help = leaf.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(help.contains("Example"), "{path} has no examples");
        let examples: Vec<&str> = help.lines().map(str::trim).filter(|l| l.starts_with("agents ")).collect();
        assert!(!examples.is_empty(), "{path} has no examples");
        for example in examples {
            let line = example.split(" | ").next().unwrap();
            let words: Vec<std::ffi::OsString> = shell_words(line).into_iter().map(Into::into).collect();
            let words = super::expand(&words);
            let parsed = Cli::try_parse_from(&words).unwrap_or_else(|e| panic!("{example}: {e}"));
            assert_eq!(format!("agents {}", parsed.command.unwrap().path()), path, "{example}");
        }
    }
}

/// Splits at spaces outside single quotes.
fn shell_words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match (c, quoted) {
            ('\'', _) => quoted = !quoted,
            (' ', false) => words.push(String::new()),
            (c, _) => words.last_mut().unwrap().push(c),
        }
    }
    words
}

// CLI-002, C-10
#[test]
fn global_options_stand_before_or_after_the_command() {
    for line in [
        "agents --format json --data-dir /d -vv plan list",
        "agents plan --format json --data-dir /d list -vv",
        "agents plan list --format=json --data-dir=/d -v -v",
    ] {
        let cli = parse(line).unwrap();
        assert_eq!(cli.global.format, Some(Format::Json));
        assert_eq!(cli.global.data_dir.as_deref(), Some("/d"));
        assert_eq!(cli.global.verbose, 2);
    }
}

// CLI-005
#[test]
fn a_wrong_format_is_a_usage_error_that_names_the_six() {
    let error = parse("agents version --format xml").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidValue);
    let text = error.to_string();
    assert!(
        ["rich", "color", "table", "plain", "json", "yaml"].iter().all(|name| text.contains(name)),
        "{text}"
    );
}

// PLAN-030
#[test]
fn plan_use_takes_one_action_and_at_least_one_project() {
    let Command::Plan(PlanCommand::Use(args)) = command(
        "agents plan use local/a local/p q --arg x=1 -a y=a=b --invariant I --automation-profile auto --detach",
    ) else {
        panic!()
    };
    assert_eq!((args.action.as_str(), args.projects.len()), ("local/a", 2));
    assert_eq!(args.arguments, [("x".into(), "1".into()), ("y".into(), "a=b".into())]);
    assert!(args.detach);
    assert_eq!(refused("agents plan use local/a"), ErrorKind::MissingRequiredArgument);
    assert_eq!(refused("agents plan use local/a local/p --arg x"), ErrorKind::ValueValidation);
    assert_eq!(
        refused("agents plan use a p --automation-profile x --automation-profile y"),
        ErrorKind::ArgumentConflict
    );
}

// OUT-005, CLI-023, COM-008
#[test]
fn yes_is_taken_where_a_command_asks_and_nowhere_else() {
    let asks = [
        "quickstart",
        "init",
        "resource remove",
        "resource type remove",
        "resource unlink-child",
        "resource stop",
        "resource rebuild",
        "context clear",
        "server remove",
        "persona remove",
        "project delete",
        "project unlink-resource",
        "lsp remove",
        "validation detach",
        "tool remove",
        "skill remove",
        "invariant remove",
        "automation-profile remove",
        "plan apply",
        "plan correct",
        "plan rollback",
    ];
    for (path, leaf) in all() {
        let takes =
            leaf.get_arguments().any(|arg| arg.get_long() == Some("yes") && arg.get_short() == Some('y'));
        assert_eq!(takes, asks.iter().any(|ask| path == format!("agents {ask}")), "{path}");
    }
}

// CLI-022, ACT-001, LSPCLI-001
#[test]
fn files_are_required_where_they_define_something() {
    assert_eq!(refused("agents lsp add"), ErrorKind::MissingRequiredArgument);
    assert_eq!(refused("agents action create"), ErrorKind::MissingRequiredArgument);
    assert_eq!(refused("agents action create -c f --update"), ErrorKind::UnknownArgument);
    assert!(matches!(
        command("agents lsp add -u -c f"),
        Command::Lsp(LspCommand::Add(LspAddArgs { update: true, .. }))
    ));
}

#[test]
fn plan_show_is_plan_status() {
    assert_eq!(command("agents plan show X").path(), "plan status");
}

// LSPCLI-012
#[test]
fn the_log_level_of_the_language_server_is_one_of_four() {
    for level in ["debug", "info", "warning", "error"] {
        command(&format!("agents lsp serve --log-level {level}"));
    }
    assert_eq!(refused("agents lsp serve --log-level loud"), ErrorKind::InvalidValue);
    command("agents lsp serve --stdio --log-file /tmp/x --proxy off");
    command("agents lsp serve --proxy local/a,local/b --proxy local/c");
}

#[test]
fn near_misses_are_suggested() {
    let text = parse("agents plan exectue X").unwrap_err().to_string();
    assert!(text.contains("execute"), "{text}");
    let text = parse("agents plan use a p --detatch").unwrap_err().to_string();
    assert!(text.contains("--detach"), "{text}");
}

#[cfg(unix)]
#[test]
fn arguments_that_are_no_text_are_refused_not_panicked_on() {
    use std::os::unix::ffi::OsStrExt;
    let bad = std::ffi::OsStr::from_bytes(b"\xff\xfe");
    let words = [std::ffi::OsStr::new("agents"), "plan".as_ref(), "status".as_ref(), bad];
    assert_eq!(Cli::try_parse_from(words).unwrap_err().kind(), ErrorKind::InvalidUtf8);
    let words = [std::ffi::OsStr::new("agents"), bad];
    assert!(Cli::try_parse_from(words).is_err());
}
