//! The command line as a page of docs/reference.

use clap::{Arg, Command};

/// docs/reference/cli.md.
pub fn command_line() -> String {
    let program = super::program();
    let mut page = String::from(
        "# Command line\n\n\
         `agents [global options] <command> [arguments]`; the program is also known as `cleveragents`. Global options may \
         stand before or after the command. Each command with `--help` shows what is below; `agents help topics` lists what \
         holds for all of them. What a command writes with `--format json` is in [schemas](schemas).\n\n\
         Exit codes: 0 it worked, 1 an error or a refusal, 2 the command line is wrong, 130 ended by Ctrl+C.\n\n\
         ## Global options\n\n",
    );
    arguments(&mut page, program.get_arguments().filter(|arg| !arg.is_hide_set()));
    let mut group = String::new();
    for (path, leaf) in super::leaves(&program) {
        let own = path.split_once(' ').map_or(path.as_str(), |(group, _)| group);
        if own != group {
            own.clone_into(&mut group);
            page.push_str(&format!("\n## agents {group}\n"));
            if path != group
                && let Some(about) = program.find_subcommand(&group).and_then(Command::get_about)
            {
                page.push_str(&format!("\n{about}.\n").replace("..\n", ".\n"));
            }
        }
        if path != group {
            page.push_str(&format!("\n### agents {path}\n"));
        }
        command(&mut page, &path, leaf);
    }
    page
}

fn command(page: &mut String, path: &str, leaf: &Command) {
    if let Some(about) = leaf.get_long_about().or_else(|| leaf.get_about()) {
        page.push_str(&format!("\n{}\n", sentence(&about.to_string())));
    }
    let other: Vec<String> = leaf.get_visible_aliases().map(|alias| format!("`{alias}`")).collect();
    if !other.is_empty() {
        page.push_str(&format!("\nAlso called {}.\n", other.join(", ")));
    }
    let usage = leaf.clone().render_usage().to_string();
    let usage = usage.trim().strip_prefix("Usage: ").unwrap_or(&usage).replace("cleveragents", "agents");
    page.push_str(&format!("\n```text\n{}\n```\n", usage.trim()));
    let own: Vec<&Arg> = leaf
        .get_arguments()
        .filter(|arg| !arg.is_hide_set() && !arg.is_global_set() && arg.get_id() != "help")
        .collect();
    if !own.is_empty() {
        page.push('\n');
        arguments(page, own.into_iter());
    }
    if let Some(more) = leaf.get_after_help() {
        let more = more.to_string();
        let examples = more.strip_prefix("Examples:\n").or_else(|| more.strip_prefix("Example:\n"));
        let text = examples.unwrap_or(&more);
        let text = text.lines().map(|line| line.strip_prefix("  ").unwrap_or(line)).collect::<Vec<_>>();
        page.push_str(&format!("\n```text\n{}\n```\n", text.join("\n").trim_end()));
    }
    debug_assert!(!path.is_empty());
}

fn arguments<'a>(page: &mut String, arguments: impl Iterator<Item = &'a Arg>) {
    page.push_str("| argument | meaning |\n| --- | --- |\n");
    for arg in arguments {
        page.push_str(&format!("| {} | {} |\n", shown(arg), meaning(arg)));
    }
}

/// `-f`, `--format <FORMAT>`.
fn shown(arg: &Arg) -> String {
    let names = || {
        let names = arg.get_value_names().unwrap_or_default();
        names.iter().map(|name| format!("<{name}>")).collect::<Vec<_>>().join(" ")
    };
    let words = if arg.is_positional() {
        let many = arg.get_num_args().is_some_and(|range| range.max_values() > 1);
        format!("{}{}", names(), if many { "..." } else { "" })
    } else {
        let mut words: Vec<String> = arg.get_short().map(|short| format!("-{short}")).into_iter().collect();
        words.extend(arg.get_long().map(|long| format!("--{long}")));
        let takes = arg.get_action().takes_values();
        let value = if takes { format!(" {}", names()) } else { String::new() };
        format!("{}{value}", words.join(", "))
    };
    let required = if arg.is_required_set() { " (required)" } else { "" };
    format!("`{words}`{required}")
}

fn meaning(arg: &Arg) -> String {
    let help = arg.get_long_help().or_else(|| arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut meaning = sentence(&help.split_whitespace().collect::<Vec<_>>().join(" "));
    let values: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set() && arg.get_action().takes_values())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !values.is_empty() && arg.get_id() != "format" {
        meaning.push_str(&format!(" One of {}.", values.join(", ")));
    }
    meaning.replace('|', "\\|").replace('<', "&lt;")
}

fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() || text.ends_with(['.', ':', ']', ')']) { text.to_owned() } else { format!("{text}.") }
}
