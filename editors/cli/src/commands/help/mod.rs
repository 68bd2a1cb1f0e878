//! `agents help`: topics that concern all commands, the help of one command, and manual pages.

use std::fs;
use std::path::Path;

use clap::{Command, CommandFactory};
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::{Cli, HelpArgs};
use crate::commands::json;
use crate::compose;
use crate::failure::Outcome;
use crate::output::{AppError, ErrorCode, col, human};
use crate::reference;
use crate::run::Run;

/// A topic: its name, what it is about, and its text.
struct Topic(&'static str, &'static str, &'static str);

/// In the order in which they are worth reading.
const TOPICS: [Topic; 7] = [
    Topic("names", "Names and ids, and how they are shortened", include_str!("names.txt")),
    Topic("formats", "How output looks, on a terminal and in a pipe", include_str!("formats.txt")),
    Topic("scripting", "Using the program from scripts", include_str!("scripting.txt")),
    Topic("errors", "Exit codes and error codes", include_str!("errors.txt")),
    Topic("configuration", "Where settings come from", include_str!("configuration.txt")),
    Topic("files", "What is kept where", include_str!("files.txt")),
    Topic("logging", "Logs, events and the audit log", include_str!("logging.txt")),
];

/// The names of the topics, with what they are about.
pub fn names() -> impl Iterator<Item = (String, String)> {
    let list = ("topics", "The topics there are");
    let all = std::iter::once(list).chain(TOPICS.iter().map(|topic| (topic.0, topic.1)));
    all.map(|(name, about)| (name.to_owned(), about.to_owned()))
}

/// What programs get of `help`.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct HelpOutput {
    /// The topic or command that is explained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The explanation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The topics there are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub topics: Vec<TopicView>,
    /// The manual pages that were written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pages: Vec<String>,
}

/// A topic in the list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TopicView {
    /// What `agents help` calls it.
    pub name: String,
    /// What it is about.
    pub about: String,
}

pub fn run(run: &Run, args: HelpArgs) -> Outcome {
    if let Some(folder) = args.manual {
        return manual(run, &folder);
    }
    let words: Vec<&str> = args.words.iter().map(String::as_str).collect();
    if words == ["topics"] {
        return topics(run);
    }
    let text = match TOPICS.iter().find(|topic| words == [topic.0]) {
        Some(topic) => topic.2.trim_end().to_owned(),
        None => of_command(&words)?,
    };
    run.out.say(&text);
    let subject = words.join(" ");
    run.out.set_data(json(&HelpOutput {
        subject: (!subject.is_empty()).then_some(subject),
        text: Some(text),
        ..HelpOutput::default()
    })?);
    Ok(())
}

/// What `--help` says of a command.
fn of_command(words: &[&str]) -> Result<String, AppError> {
    let mut program = Cli::command();
    program.build();
    let mut command: &mut Command = &mut program;
    for (at, word) in words.iter().enumerate() {
        let known: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
        let path = words[..at].join(" ");
        command = command.find_subcommand_mut(word).ok_or_else(|| {
            let error = match at {
                0 => AppError::usage(format!("there is no topic or command `{word}`")),
                _ => AppError::usage(format!("`agents {path}` has no command `{word}`")),
            };
            let error = if known.is_empty() {
                error
            } else {
                error.detail(format!("Commands: {}", known.join(", ")))
            };
            error.suggest("agents help topics").suggest("agents --help")
        })?;
    }
    Ok(command.render_long_help().to_string().trim_end().to_owned())
}

fn topics(run: &Run) -> Outcome {
    let out = &run.out;
    let topics =
        TOPICS.map(|Topic(name, about, _)| TopicView { name: name.to_owned(), about: about.to_owned() });
    let data = json(&HelpOutput { topics: topics.into(), ..HelpOutput::default() })?;
    let columns = vec![col("name", "Topic").id(), col("about", "About")];
    out.table(None, "Topics", columns).rows(&data["topics"]);
    out.set_data(data);
    out.hint("Read One", ["agents help scripting"]);
    out.ok(super::listed(TOPICS.len(), "topic", "topics"));
    Ok(())
}

fn manual(run: &Run, folder: &str) -> Outcome {
    let out = &run.out;
    let folder = compose::absolute(folder)?;
    let folder = Path::new(&folder);
    let wrong = |path: &Path, e: std::io::Error| {
        AppError::new(ErrorCode::Io, format!("{} cannot be written: {e}", path.display()))
    };
    fs::create_dir_all(folder).map_err(|e| wrong(folder, e))?;
    let mut pages = Vec::new();
    for (name, text) in reference::manual().map_err(|e| wrong(folder, e))? {
        let path = folder.join(&name);
        fs::write(&path, text).map_err(|e| wrong(&path, e))?;
        pages.push(path.display().to_string());
    }
    out.panel(None, "Manual Pages")
        .row("Folder", folder.display().to_string())
        .row("Pages", human::count(pages.len() as u64));
    let count = pages.len();
    out.set_data(json(&HelpOutput { pages, ..HelpOutput::default() })?);
    out.ok(format!("{} written", human::counted(count as u64, "page", "pages")));
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn the_topic_on_errors_names_every_code_with_its_number() {
        let text = TOPICS.iter().find(|topic| topic.0 == "errors").unwrap().2;
        for code in ErrorCode::ALL {
            let line = text.lines().find(|line| line.split_whitespace().next() == Some(code.name()));
            let line = line.unwrap_or_else(|| panic!("{} is not there", code.name()));
            assert!(line.contains(&code.number().to_string()), "{line}");
        }
    }

    #[test]
    fn examples_in_topics_parse_and_topics_are_ascii_of_screen_width() {
        for Topic(name, about, text) in TOPICS {
            assert!(text.is_ascii() && !about.is_empty(), "{name}");
            assert!(text.lines().all(|line| line.len() <= 100), "{name}");
            for line in text.lines().filter_map(|line| line.strip_prefix("  agents ")) {
                let words = line.split(' ').map(|word| word.trim_matches('\''));
                let parsed = Cli::try_parse_from(std::iter::once("agents").chain(words));
                assert!(parsed.is_ok(), "{name}: {line}");
            }
        }
    }
}
