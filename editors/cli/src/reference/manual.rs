//! Manual pages: one for the program, one for each group and command.

use clap::Command;
use clap_mangen::Man;

/// The pages with the names of their files (`agents-plan-use.1`).
///
/// # Errors
/// When a page cannot be written, which into memory does not happen.
pub fn manual() -> std::io::Result<Vec<(String, Vec<u8>)>> {
    let mut pages = Vec::new();
    write(&super::program(), "agents", &mut pages)?;
    Ok(pages)
}

fn write(command: &Command, name: &str, pages: &mut Vec<(String, Vec<u8>)>) -> std::io::Result<()> {
    let subs = command.get_subcommands().filter(|sub| super::is_ours(name == "agents", sub));
    let below: Vec<(String, &Command)> =
        subs.map(|sub| (format!("{name}-{}", sub.get_name()), sub)).collect();
    let mut text = Vec::new();
    // Ours say the same of the program, of its groups and of its commands; dates would make every build different.
    Man::new(command.clone().display_name(name.to_owned()))
        .title(name.to_uppercase())
        .source(concat!("agents ", env!("CARGO_PKG_VERSION")))
        .manual("CleverAgents")
        .render(&mut text)?;
    pages.push((format!("{name}.1"), text));
    for (name, sub) in below {
        write(sub, &name, pages)?;
    }
    Ok(())
}
