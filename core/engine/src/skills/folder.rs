//! An Agent Skills folder: its head, its instructions, and its files, which are read only when they are asked for.

use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use agents_config::{load_agent_skill, split_front_matter};
use agents_domain::skill::AgentSkill;

/// The file that makes a folder a skill.
const FILE: &str = "SKILL.md";

/// Bytes of a file that are read.
const MOST: u64 = 256 << 10;

/// Tokens that instructions should keep to, and the characters a token has about.
const RECOMMENDED_TOKENS: usize = 5000;
const CHARACTERS_PER_TOKEN: usize = 4;

/// Files that are listed of a folder.
const LISTED: usize = 200;

/// The folder a file is in.
pub(crate) fn of_file(config_path: &str) -> Option<PathBuf> {
    let folder = Path::new(config_path).parent()?;
    folder.is_absolute().then(|| folder.to_owned())
}

/// A path that a file names; a relative one is relative to that file.
pub(crate) fn resolve(config_path: &str, path: &str) -> PathBuf {
    match of_file(config_path) {
        Some(folder) if !Path::new(path).is_absolute() => folder.join(path),
        _ => PathBuf::from(path),
    }
}

/// The head of a folder's SKILL.md, with warnings (SKILLMD-001, SKILLMD-002, SKILLMD-011). `Err` is why there is none.
pub(crate) fn head(folder: &Path) -> Result<(AgentSkill, Vec<String>), String> {
    let text = text_of(&folder.join(FILE))?;
    let loaded = load_agent_skill(&text, FILE)
        .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
    let mut warnings: Vec<String> = loaded.hints.iter().map(ToString::to_string).collect();
    let skill = loaded.value;
    let named = folder.file_name().and_then(|name| name.to_str());
    if named.is_some_and(|named| named != skill.name) {
        let named = named.unwrap_or_default();
        warnings.push(format!(
            "the Agent Skill `{}` is in a folder `{named}`: the two usually have one name",
            skill.name
        ));
    }
    let body = split_front_matter(&text).map_or("", |(_, body)| body);
    let tokens = body.chars().count() / CHARACTERS_PER_TOKEN;
    if tokens > RECOMMENDED_TOKENS {
        warnings.push(format!(
            "the instructions of the Agent Skill `{}` have about {tokens} tokens; {RECOMMENDED_TOKENS} are recommended: move parts into references/",
            skill.name
        ));
    }
    Ok((skill, warnings))
}

/// The instructions: what follows the head (SKILLMD-004).
pub(crate) fn instructions(folder: &Path) -> Result<String, String> {
    let text = text_of(&folder.join(FILE))?;
    let (_, body) = split_front_matter(&text).ok_or_else(|| format!("{FILE} has no head"))?;
    Ok(body.trim().to_owned())
}

/// The files of a folder besides SKILL.md, relative, sorted.
pub(crate) fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(at) = waiting.pop() {
        for entry in std::fs::read_dir(&at).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if kind.is_dir() && found.len() < LISTED {
                waiting.push(path);
            } else if kind.is_file()
                && let Some(name) = path.strip_prefix(folder).ok().and_then(Path::to_str)
                && name != FILE
            {
                found.push(name.to_owned());
            }
        }
    }
    found.sort();
    found.truncate(LISTED);
    found
}

/// The text of a file of the folder (SKILLMD-005). `Err` names the file and says why it is not read.
pub(crate) fn read(folder: &Path, path: &str) -> Result<String, String> {
    text_of(&within(folder, path)?).map_err(|why| format!("`{path}`: {why}"))
}

/// A file of the folder: inside it, also when links are followed.
pub(crate) fn within(folder: &Path, path: &str) -> Result<PathBuf, String> {
    let clean =
        Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if path.is_empty() || !clean {
        return Err(format!(
            "`{path}` is no file of the skill: name it relative to the skill's folder, such as `references/guide.md`"
        ));
    }
    let root = folder.canonicalize().map_err(|error| format!("the skill's folder: {error}"))?;
    let place = folder.join(path).canonicalize().map_err(|error| format!("`{path}`: {error}"))?;
    match place.starts_with(&root) {
        true if place.is_file() => Ok(place),
        true => Err(format!("`{path}` is no file")),
        false => Err(format!("`{path}` leads out of the skill's folder")),
    }
}

fn text_of(path: &Path) -> Result<String, String> {
    let file = File::open(path).map_err(|error| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        match error.kind() {
            std::io::ErrorKind::NotFound => {
                format!("there is no {name} in {}", path.parent().unwrap_or(path).display())
            }
            _ => format!("{}: {error}", path.display()),
        }
    })?;
    let mut bytes = Vec::new();
    file.take(MOST + 1).read_to_end(&mut bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    if bytes.len() as u64 > MOST {
        return Err(format!("it is larger than {} KB", MOST >> 10));
    }
    String::from_utf8(bytes).map_err(|_| "it is no text".to_owned())
}
