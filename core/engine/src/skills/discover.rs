//! Asking a skill's MCP servers and reading its Agent Skills folders.

use std::path::PathBuf;
use std::time::Duration;

use agents_domain::Result;
use agents_domain::ports::mcp::McpPlace;
use agents_domain::skill::{Discovered, DiscoveredServer, SkillDefinition};
use futures::future::join_all;

use super::folder;
use crate::{Engine, clock, wait};

/// How long a server may take to say what it offers while somebody waits for a command.
const WITHIN: Duration = Duration::from_secs(10);

/// What was found, and what is to be told of it.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub discovered: Discovered,
    /// What could not be done, as sentences.
    pub warnings: Vec<String>,
    /// What is wrong with the folders, as sentences; a skill that names such ones is not registered.
    pub errors: Vec<String>,
}

/// Asks everything a skill names. A server that does not answer keeps what it said before.
pub(crate) fn discover(
    engine: &Engine,
    skill: &SkillDefinition,
    config_path: &str,
    before: Option<&Discovered>,
) -> Result<Found> {
    let mut found = Found::default();
    folders(skill, config_path, &mut found);
    if skill.mcp_servers.is_empty() {
        return Ok(found);
    }
    let Some(servers) = &engine.mcp_servers else {
        found.warnings.push("this program connects to no MCP servers".to_owned());
        return Ok(found);
    };
    let place = McpPlace { skill_folder: folder::of_file(config_path), roots: Vec::new() };
    let asked = skill.mcp_servers.iter().map(|server| {
        let place = place.clone();
        async move {
            let connection = servers.connect(server, place, WITHIN).await?;
            let offers = connection.offers();
            connection.close().await;
            Ok::<_, agents_domain::ports::mcp::McpFailure>(offers)
        }
    });
    let answers = wait::wait(join_all(asked))?;
    for (server, answer) in skill.mcp_servers.iter().zip(answers) {
        let offers = match answer {
            Ok(offers) => DiscoveredServer { at: Some(clock::now()), problem: None, ..offers },
            Err(failure) => {
                found.warnings.push(failure.message.clone());
                let known = before.and_then(|before| before.servers.get(&server.name)).cloned();
                DiscoveredServer { problem: Some(failure.message), ..known.unwrap_or_default() }
            }
        };
        if offers.problem.is_none() {
            let has = |name: &String| offers.tools.iter().any(|tool| tool.name == *name);
            let filter = &server.tool_filter;
            let named = filter.include.iter().flatten().chain(&filter.exclude);
            let named = named.chain(server.overrides.iter().map(|said| &said.tool));
            for name in named.filter(|name| !has(name)) {
                found.warnings.push(format!("the MCP server `{}` has no tool `{name}`", server.name));
            }
        }
        found.discovered.servers.insert(server.name.clone(), offers);
    }
    Ok(found)
}

fn folders(skill: &SkillDefinition, config_path: &str, found: &mut Found) {
    for dir in &skill.agent_skill_dirs {
        let place = folder::resolve(config_path, dir);
        let mut inside: Vec<PathBuf> = match std::fs::read_dir(&place) {
            Ok(entries) => entries
                .flatten()
                .map(|entry| entry.path())
                .filter(|path| path.join("SKILL.md").is_file())
                .collect(),
            Err(error) => {
                found.errors.push(format!("the folder of Agent Skills `{dir}`: {error}"));
                continue;
            }
        };
        inside.sort();
        if inside.is_empty() {
            found.warnings.push(format!("no folder in `{dir}` has a SKILL.md"));
        }
        for path in inside {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            read(&path, &format!("{}/{name}", dir.trim_end_matches('/')), found);
        }
    }
    for named in &skill.agent_skills {
        read(&folder::resolve(config_path, &named.path), &named.path, found);
    }
}

fn read(place: &std::path::Path, named: &str, found: &mut Found) {
    match folder::head(place) {
        Ok((skill, mut warnings)) => {
            found.warnings.append(&mut warnings);
            found.discovered.agent_skills.insert(named.to_owned(), skill);
        }
        Err(why) => found.errors.push(format!("the Agent Skill `{named}`: {why}")),
    }
}
