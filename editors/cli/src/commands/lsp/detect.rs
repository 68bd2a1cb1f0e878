//! `agents lsp detect`: which languages a folder holds, and which servers are known for them.

use agents_engine::operations::lsp::{Detect, DetectOutput, DetectedServer, ServerState};

use crate::args::LspDetectArgs;
use crate::commands::json;
use crate::compose;
use crate::failure::Outcome;
use crate::output::human::counted;
use crate::output::{Kind, Row, Styled, bad, col, dim, good, warn};
use crate::run::Run;

pub fn run(run: &Run, args: LspDetectArgs) -> Outcome {
    let out = &run.out;
    let found = run.env.engine()?.call(Detect { dir: compose::absolute(&args.dir)? })?;
    let data = json(&found)?;
    let files = counted(found.files as u64, "file", "files");
    let columns = vec![
        col("language", "Language"),
        col("files", "Files").kind(Kind::Count),
        col("registered", "Served By").kind(Kind::Id),
    ];
    let table = out.table(None, &format!("Languages ({files})"), columns);
    for (language, row) in found.languages.iter().zip(data["languages"].as_array().into_iter().flatten()) {
        let row = Row::from(row);
        table.row(match (language.registered.is_empty(), language.servers.is_empty()) {
            (false, _) => row,
            (true, false) => row.show("registered", warn("nothing yet")),
            (true, true) => row.show("registered", dim("-")),
        });
    }
    table.when_empty("languages", &[]);
    drop(table);
    if !found.servers.is_empty() {
        let columns = vec![
            col("name", "Server").id(),
            col("languages", "Languages").wrap(),
            col("state", "State").wrap(),
        ];
        let table = out.table(None, "Known Language Servers", columns);
        for (server, row) in found.servers.iter().zip(data["servers"].as_array().into_iter().flatten()) {
            table.row(Row::from(row).show("state", state(server)));
        }
    }
    out.hint("Next Steps", next(&found));
    if found.truncated {
        out.warn("The folder holds more files than were looked at: the counts are too low");
    }
    let languages = counted(found.languages.len() as u64, "language", "languages");
    let servers = counted(found.servers.len() as u64, "known server", "known servers");
    out.set_data(data);
    out.ok(format!("{languages}, {servers}"));
    Ok(())
}

fn state(server: &DetectedServer) -> Styled {
    match server.state {
        ServerState::Registered => good("registered"),
        ServerState::Installed => warn("installed, not registered"),
        ServerState::OnPath => warn("on PATH, not registered"),
        ServerState::Broken => bad("registered, but its program is missing"),
        ServerState::Missing => dim("not installed"),
    }
}

/// One command per language that nothing serves yet, and what mends entries whose program is gone.
fn next(found: &DetectOutput) -> Vec<String> {
    let server = |name: &String| found.servers.iter().find(|server| server.name == *name);
    let best = |names: &[String]| {
        // One that is there comes before one that is not.
        let there = names.iter().filter_map(server).find(|server| server.installed);
        there.or_else(|| names.iter().find_map(server)).map(|server| server.install.clone())
    };
    let mut commands: Vec<String> = found
        .languages
        .iter()
        .filter(|language| language.registered.is_empty())
        .filter_map(|language| best(&language.servers))
        .collect();
    let broken = found.servers.iter().filter(|server| server.state == ServerState::Broken);
    commands.extend(broken.map(|server| server.install.clone()));
    let mut seen = std::collections::HashSet::new();
    commands.retain(|command| seen.insert(command.clone()));
    commands
}
