//! A language server for each language: one that is at hand, or one that is installed after a question.

use agents_domain::Error;
use agents_domain::catalogue::{self, Install as Recipe};
use agents_engine::Engine;
use agents_engine::operations::lsp::{
    DetectOutput, DetectedLanguage, DetectedServer, Install, Registration, ServerState,
};
use serde::Serialize;

use crate::commands::lsp::install::Shown;
use crate::failure::Failure;
use crate::output::human::counted;
use crate::output::{Output, dim, id};
use crate::run::Run;

/// Servers are installed for so many languages, those with most files; a newcomer waits for no more.
const MOST: usize = 3;

/// A server that is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Ready {
    /// Its name in the registry.
    pub name: String,
    /// The languages it is taken for.
    pub languages: Vec<String>,
    /// Where its program is, if that is known.
    pub program: Option<String>,
    /// How it came to be ready.
    pub source: Source,
}

/// How a server came to be ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// It was registered before.
    Registered,
    /// It had been installed into the data directory.
    Installed,
    /// Its program is on PATH.
    Path,
    /// It was installed by this run.
    InstalledNow,
}

impl Source {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Registered => "registered before",
            Self::Installed => "installed before",
            Self::Path => "found on PATH",
            Self::InstalledNow => "installed now",
        }
    }
}

/// What serves the languages of a folder.
#[derive(Debug, Default, PartialEq)]
struct Choice<'a> {
    /// Servers in the registry, with the languages they are taken for.
    registered: Vec<(String, Vec<String>)>,
    /// Known servers that are at hand.
    at_hand: Vec<&'a DetectedServer>,
    /// Known servers to be installed, each with one that is at hand and serves the language less well.
    missing: Vec<(&'a DetectedServer, Option<&'a DetectedServer>)>,
    /// Known servers that only a person can install.
    by_hand: Vec<&'a DetectedServer>,
}

fn choose(found: &DetectOutput) -> Choice<'_> {
    let mut choice = Choice::default();
    let mut with_missing = 0;
    for language in &found.languages {
        if let Some(name) = in_registry(found, language) {
            match choice.registered.iter_mut().find(|(known, _)| known == name) {
                Some((_, languages)) => languages.push(language.language.clone()),
                None => choice.registered.push((name.clone(), vec![language.language.clone()])),
            }
            continue;
        }
        let known: Vec<&DetectedServer> =
            found.servers.iter().filter(|server| language.servers.contains(&server.name)).collect();
        let is_at_hand =
            |server: &&&DetectedServer| matches!(server.state, ServerState::Installed | ServerState::OnPath);
        let Some(first) = known.first() else { continue };
        if is_at_hand(&first) {
            push(&mut choice.at_hand, first);
            continue;
        }
        let instead = known.iter().find(is_at_hand).copied();
        let installable =
            catalogue::find(&first.name).is_some_and(|known| matches!(known.install, Recipe::Packages(_)));
        let chosen = choice.missing.iter().any(|(server, _)| server.name == first.name);
        match (installable, instead) {
            (true, _) if chosen => {}
            (true, _) if with_missing < MOST => {
                with_missing += 1;
                choice.missing.push((first, instead));
            }
            (_, Some(instead)) => push(&mut choice.at_hand, instead),
            (false, None) => push(&mut choice.by_hand, first),
            (true, None) => {}
        }
    }
    choice
}

/// The registered server for a language whose program is not known to be missing.
fn in_registry<'a>(found: &DetectOutput, language: &'a DetectedLanguage) -> Option<&'a String> {
    let broken = |name: &String| {
        let is_it = |server: &&DetectedServer| server.registered_as.as_ref() == Some(name);
        found.servers.iter().find(is_it).is_some_and(|server| server.state == ServerState::Broken)
    };
    language.registered.iter().find(|name| !broken(name))
}

fn push<'a>(list: &mut Vec<&'a DetectedServer>, server: &'a DetectedServer) {
    if !list.iter().any(|known| known.name == server.name) {
        list.push(server);
    }
}

/// Makes a server ready for every language that has one; asks before installing any. `None` when the person would
/// rather not and nothing can be done without.
///
/// # Errors
/// When there is no server for any of the languages, or the only ones cannot be installed.
pub fn provide(
    run: &Run,
    engine: &Engine,
    found: &DetectOutput,
    yes: bool,
) -> Result<Option<Vec<Ready>>, Failure> {
    let out = &run.out;
    let choice = choose(found);
    let registered = choice.registered.iter().map(|(name, languages)| Ready {
        name: name.clone(),
        languages: languages.clone(),
        program: program(found, name),
        source: Source::Registered,
    });
    let mut so_far = SoFar { ready: registered.collect(), failures: Vec::new() };
    for server in &choice.at_hand {
        so_far.take(server, adopt(out, engine, server));
    }
    if !choice.missing.is_empty() {
        let alone = choice.missing.iter().all(|(_, instead)| instead.is_none());
        let needed = so_far.ready.is_empty() && alone;
        let agreed = yes || agrees(run, &choice, needed);
        if !agreed && needed {
            return Ok(None);
        }
        for (server, instead) in &choice.missing {
            let installed = agreed && so_far.take(server, install(out, engine, server));
            if let (false, Some(instead)) = (installed, instead) {
                so_far.take(instead, adopt(out, engine, instead));
            }
        }
    }
    for server in &choice.by_hand {
        out.info(format!("{} would serve {}", server.name, server.languages.join(", ")))
            .detail(format!("To install it: {}", server.install));
    }
    let SoFar { ready, mut failures } = so_far;
    // Where nothing is ready, the first failure is that of the command.
    let first = (ready.is_empty() && !failures.is_empty()).then(|| failures.remove(0).1);
    for (server, error) in failures {
        let warning = out.warn(format!("Without {server}: {}", error.message));
        if let Some(first) = error.suggestions.first() {
            warning.detail(first.as_str());
        }
    }
    match first {
        Some(error) => Err(error.into()),
        None if ready.is_empty() => Err(nothing_serves(found, &choice).into()),
        None => Ok(Some(ready)),
    }
}

/// What has become of the servers so far. One that does not work keeps no other from its work.
struct SoFar<'a> {
    ready: Vec<Ready>,
    failures: Vec<(&'a str, Error)>,
}

impl<'a> SoFar<'a> {
    /// Whether the server is ready.
    fn take(&mut self, server: &'a DetectedServer, outcome: Result<Option<Ready>, Error>) -> bool {
        match outcome {
            Ok(one) => {
                let is_ready = one.is_some();
                self.ready.extend(one);
                is_ready
            }
            Err(error) => {
                self.failures.push((&server.name, error));
                false
            }
        }
    }
}

/// Where the program of a registered server is, as far as the catalogue knows it.
fn program(found: &DetectOutput, name: &str) -> Option<String> {
    found.servers.iter().find(|server| server.registered_as.as_deref() == Some(name))?.program.clone()
}

/// Asks whether what is missing may be installed. Where the work can go on without, no answer means no.
fn agrees(run: &Run, choice: &Choice<'_>, needed: bool) -> bool {
    let out = &run.out;
    let panel = out.panel(None, "To Be Installed");
    for (server, _) in &choice.missing {
        let Some(known) = catalogue::find(&server.name) else { continue };
        let Recipe::Packages(recipe) = &known.install else { continue };
        let packages: Vec<String> =
            recipe.packages.iter().map(|(name, version)| format!("{name} {version}")).collect();
        let what = format!(
            " for {}, by {}: {}",
            server.languages.join(", "),
            recipe.client.as_str(),
            packages.join(", ")
        );
        panel.line(id(server.name.as_str()).and(what));
    }
    panel.line(dim(format!("Into {}, and nowhere else", run.env.data_dir.join("servers").display())));
    drop(panel);
    let question = match choice.missing.len() {
        1 => "Install this language server?",
        _ => "Install these language servers?",
    };
    match out.ask(None, question) {
        Some(true) => true,
        answer => {
            if needed {
                out.decline(answer.is_some());
            } else {
                let names: Vec<&str> = choice.missing.iter().map(|(s, _)| s.name.as_str()).collect();
                out.info(format!("Without {}: what is there will do", names.join(", ")));
            }
            false
        }
    }
}

fn install(out: &Output, engine: &Engine, server: &DetectedServer) -> Result<Option<Ready>, Error> {
    let shown = Shown::default();
    let hear = |progress: agents_domain::ports::installer::InstallProgress<'_>| {
        shown.hear(progress, || out.progress(&format!("Install {}", server.name)));
    };
    let request = Install { name: server.name.clone(), update: false, from_path: false, no_register: false };
    let done = request.run_with(engine, &hear);
    shown.end(&server.name, done.is_ok());
    let done = done?;
    let source = if done.installed_now { Source::InstalledNow } else { Source::Installed };
    Ok(ready(out, server, done.program, &done.registration, source))
}

/// Registers a server that is at hand.
fn adopt(out: &Output, engine: &Engine, server: &DetectedServer) -> Result<Option<Ready>, Error> {
    let from_path = server.state == ServerState::OnPath;
    let done =
        engine.call(Install { name: server.name.clone(), update: false, from_path, no_register: false })?;
    let source = if from_path { Source::Path } else { Source::Installed };
    Ok(ready(out, server, done.program, &done.registration, source))
}

/// The server, unless its entry in the registry runs something else that is not there.
fn ready(
    out: &Output,
    server: &DetectedServer,
    program: String,
    registration: &Registration,
    source: Source,
) -> Option<Ready> {
    let name = match registration {
        Registration::Added { name } | Registration::Present { name, current: true, .. } => name.clone(),
        Registration::Present { name, command, .. } => {
            out.warn(format!("{name} is registered with `{command}`, which is not there")).detail(format!(
                "To use {program} instead: agents lsp remove {name}, then agents quickstart again"
            ));
            return None;
        }
        Registration::Skipped => return None,
    };
    Some(Ready { name, languages: server.languages.clone(), program: Some(program), source })
}

fn nothing_serves(found: &DetectOutput, choice: &Choice<'_>) -> Error {
    if found.languages.is_empty() {
        return Error::not_found(format!("{} holds no file in a language that is known", found.dir))
            .suggest("agents quickstart <ANOTHER-DIR>");
    }
    let languages: Vec<String> = found
        .languages
        .iter()
        .map(|l| format!("{} ({})", l.language, counted(l.files as u64, "file", "files")))
        .collect();
    let error = Error::not_found(format!("there is no language server for {}", languages.join(", ")));
    let error = choice.by_hand.iter().fold(error, |error, server| error.suggest(server.install.clone()));
    error.suggest("agents lsp add --config <FILE>  # for a server of your own")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn language(name: &str, servers: &[&str], registered: &[&str]) -> DetectedLanguage {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        DetectedLanguage {
            language: name.to_owned(),
            files: 1,
            servers: owned(servers),
            registered: owned(registered),
        }
    }

    fn server(name: &str, language: &str, state: ServerState) -> DetectedServer {
        let registered = matches!(state, ServerState::Registered | ServerState::Broken);
        DetectedServer {
            name: name.to_owned(),
            description: String::new(),
            languages: vec![language.to_owned()],
            state,
            installed: !matches!(state, ServerState::Missing | ServerState::Broken),
            registered_as: registered.then(|| format!("local/{name}")),
            program: None,
            install: format!("install {name}"),
        }
    }

    fn found(languages: Vec<DetectedLanguage>, servers: Vec<DetectedServer>) -> DetectOutput {
        DetectOutput { dir: "/repo".to_owned(), files: 1, truncated: false, languages, servers }
    }

    fn names(list: &[&DetectedServer]) -> Vec<String> {
        list.iter().map(|server| server.name.clone()).collect()
    }

    #[test]
    fn a_registered_server_is_taken_before_all_others() {
        let both = found(
            vec![language("python", &["ruff", "ty"], &["acme/mine"])],
            vec![server("ruff", "python", ServerState::OnPath), server("ty", "python", ServerState::OnPath)],
        );
        let choice = choose(&both);
        assert_eq!(choice.registered, [("acme/mine".to_owned(), vec!["python".to_owned()])]);
        assert!(choice.at_hand.is_empty() && choice.missing.is_empty());
    }

    #[test]
    fn the_best_server_is_taken_when_it_is_there_and_else_installed() {
        use ServerState::{Missing, OnPath};
        let ready = found(
            vec![language("python", &["ruff", "ty"], &[])],
            vec![server("ruff", "python", OnPath), server("ty", "python", OnPath)],
        );
        assert_eq!(names(&choose(&ready).at_hand), ["ruff"]);
        let other = found(
            vec![language("python", &["ruff", "ty"], &[])],
            vec![server("ruff", "python", Missing), server("ty", "python", OnPath)],
        );
        let choice = choose(&other);
        assert!(choice.at_hand.is_empty());
        let (wanted, instead) = choice.missing[0];
        assert_eq!((wanted.name.as_str(), instead.unwrap().name.as_str()), ("ruff", "ty"));
    }

    #[test]
    fn a_registered_server_whose_program_is_gone_is_installed() {
        let gone = found(
            vec![language("python", &["ruff"], &["local/ruff"])],
            vec![server("ruff", "python", ServerState::Broken)],
        );
        assert_eq!(choose(&gone).missing[0].0.name, "ruff");
    }

    #[test]
    fn what_only_a_person_can_install_is_named_and_few_are_installed() {
        let languages = [("go", "gopls"), ("python", "ruff"), ("typescript", "typescript-language-server")];
        let more = [("shellscript", "bash-language-server"), ("yaml", "yaml-language-server")];
        let all: Vec<_> = languages.into_iter().chain(more).collect();
        let many = found(
            all.iter().map(|(l, s)| language(l, &[s], &[])).collect(),
            all.iter().map(|(l, s)| server(s, l, ServerState::Missing)).collect(),
        );
        let choice = choose(&many);
        assert_eq!(names(&choice.by_hand), ["gopls"]);
        let missing: Vec<&str> = choice.missing.iter().map(|(server, _)| server.name.as_str()).collect();
        assert_eq!(missing, ["ruff", "typescript-language-server", "bash-language-server"]);
    }
}
