//! Which languages a folder holds, and which known servers serve them.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use agents_domain::catalogue;
use agents_domain::{Error, ErrorKind, Result};
use agents_grammars::LanguageId;
use ignore::{DirEntry, WalkBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ServerState, locate, registered};
use crate::{Engine, Operation};

/// More files than these are not looked at.
const MAX_FILES: usize = 200_000;
/// Nor is a folder looked at for longer.
const MAX_TIME: Duration = Duration::from_secs(10);
/// How much of a file without an ending is read for its `#!` line.
const LOOK: u64 = 512;

/// Finds the languages of a folder by its files, and the known servers for them.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Detect {
    /// The folder; absolute.
    pub dir: String,
}

/// What was found.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DetectOutput {
    /// The folder.
    pub dir: String,
    /// Files looked at: those that are not hidden, not ignored, and in no folder of dependencies.
    pub files: usize,
    /// The folder has more files than were looked at.
    pub truncated: bool,
    /// Most files first.
    pub languages: Vec<DetectedLanguage>,
    /// The known servers of these languages; where several serve one, the one to take first comes first.
    pub servers: Vec<DetectedServer>,
}

/// A language with its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DetectedLanguage {
    /// Its id in the protocol.
    pub language: String,
    /// How many files are in it.
    pub files: usize,
    /// Known servers for it, by name.
    pub servers: Vec<String>,
    /// Registered servers for it, known or not.
    pub registered: Vec<String>,
}

/// A known server that would serve files of the folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DetectedServer {
    /// Its name in the catalogue.
    pub name: String,
    /// What it is.
    pub description: String,
    /// The languages of the folder that it serves.
    pub languages: Vec<String>,
    /// How it is at hand.
    pub state: ServerState,
    /// Its program was found.
    pub installed: bool,
    /// Under which name it is registered.
    pub registered_as: Option<String>,
    /// Where its program is.
    pub program: Option<String>,
    /// The command that installs it, or registers it when it is there.
    pub install: String,
}

impl Operation for Detect {
    const METHOD: &'static str = "lsp/detect";
    const SUMMARY: &'static str = "Find the languages of a folder and the known language servers for them";
    type Output = DetectOutput;

    fn run(self, engine: &Engine) -> Result<DetectOutput> {
        let counted = count(Path::new(&self.dir))?;
        let definitions = registered(engine)?;
        let serves = |names: &[String], id: LanguageId| {
            names.iter().any(|name| LanguageId::from_name(name) == Some(id))
        };
        let mut languages: Vec<DetectedLanguage> = counted
            .languages
            .into_iter()
            .map(|(id, files)| DetectedLanguage {
                language: id.as_str().to_owned(),
                files,
                servers: catalogue::servers()
                    .iter()
                    .filter(|server| serves(&server.languages, id))
                    .map(|server| server.name.clone())
                    .collect(),
                registered: definitions
                    .iter()
                    .filter(|definition| serves(&definition.languages, id))
                    .map(|definition| definition.name.to_string())
                    .collect(),
            })
            .collect();
        languages.sort_by(|a, b| b.files.cmp(&a.files).then_with(|| a.language.cmp(&b.language)));
        let mut servers = Vec::new();
        for server in catalogue::servers() {
            let serves = languages.iter().filter(|language| language.servers.contains(&server.name));
            let serves: Vec<String> = serves.map(|language| language.language.clone()).collect();
            if serves.is_empty() {
                continue;
            }
            let located = locate(engine, server, &definitions)?;
            servers.push(DetectedServer {
                name: server.name.clone(),
                description: server.description.clone(),
                languages: serves,
                state: located.state,
                installed: !matches!(located.state, ServerState::Missing | ServerState::Broken),
                registered_as: located.registered_as,
                program: located.program.map(|program| program.display().to_string()),
                install: match located.state {
                    ServerState::OnPath => format!("agents lsp install --from-path {}", server.name),
                    _ => server.install_command(),
                },
            });
        }
        let Counted { files, truncated, .. } = counted;
        Ok(DetectOutput { dir: self.dir, files, truncated, languages, servers })
    }
}

/// The languages of a folder's files, those with the most files first.
pub(crate) fn languages_of(dir: &Path) -> Result<Vec<String>> {
    let mut languages: Vec<_> = count(dir)?.languages.into_iter().collect();
    languages.sort_by(|(a, many), (b, more)| more.cmp(many).then_with(|| a.as_str().cmp(b.as_str())));
    Ok(languages.into_iter().map(|(id, _)| id.as_str().to_owned()).collect())
}

struct Counted {
    files: usize,
    truncated: bool,
    languages: BTreeMap<LanguageId, usize>,
}

/// Counts the files of each language below a folder. What cannot be read is passed over, the folder itself apart.
fn count(dir: &Path) -> Result<Counted> {
    let unreadable = |error: &dyn std::fmt::Display| {
        Error::new(ErrorKind::Io, format!("cannot look into {}: {error}", dir.display()))
    };
    match dir.metadata() {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Err(Error::validation(format!("{} is not a folder", dir.display()))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Error::not_found(format!("there is no folder {}", dir.display())));
        }
        Err(error) => return Err(unreadable(&error)),
    }
    std::fs::read_dir(dir).map_err(|error| unreadable(&error))?;
    let dependencies: HashSet<&str> = catalogue::dependency_folders().into_iter().collect();
    let mut walk = WalkBuilder::new(dir);
    // What a folder ignores holds without git, too; a person's own global rules are not the folder's.
    walk.require_git(false).git_global(false).filter_entry(move |entry| {
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        entry.depth() == 0
            || !is_folder
            || entry.file_name().to_str().is_none_or(|name| !dependencies.contains(name))
    });
    let begun = Instant::now();
    let mut counted = Counted { files: 0, truncated: false, languages: BTreeMap::new() };
    for entry in walk.build().flatten() {
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        if counted.files >= MAX_FILES || begun.elapsed() >= MAX_TIME {
            counted.truncated = true;
            break;
        }
        counted.files += 1;
        if let Some(language) = language(&entry) {
            *counted.languages.entry(language).or_default() += 1;
        }
    }
    Ok(counted)
}

fn language(entry: &DirEntry) -> Option<LanguageId> {
    let path = entry.path();
    agents_grammars::detect(path, &[]).or_else(|| {
        // A file with an ending that says nothing is data; one without may be a script.
        if path.extension().is_some() {
            return None;
        }
        let mut beginning = Vec::new();
        File::open(path).ok()?.take(LOOK).read_to_end(&mut beginning).ok()?;
        agents_grammars::detect(path, &beginning)
    })
}
