//! pytest's report for people.

use std::collections::BTreeMap;

use agents_domain::validation::Finding;

use super::{Report, pattern};

pub(super) fn read(text: &str) -> Report {
    let summary = pattern(r"^(FAILED|ERROR) (\S+?)(?:::(\S+))?(?: - (.*))?$");
    let sections = sections(text);
    let mut findings = Vec::new();
    let short = text.rsplit_once("short test summary info").map_or("", |(_, rest)| rest);
    for parts in short.lines().filter_map(|line| summary.captures(line.trim_end())) {
        let file = &parts[2];
        let test = parts.get(3).map(|m| m.as_str());
        // Methods stand as `Class.method` above their section.
        let title = test.map_or_else(|| file.to_owned(), |test| test.replace("::", "."));
        let section = sections.get(title.as_str());
        let place = section.and_then(|section| section.place(file));
        let said = parts.get(4).map(|m| m.as_str().to_owned());
        let message = said.or_else(|| section.and_then(|s| s.error.clone()));
        findings.push(Finding {
            file: Some(place.as_ref().map_or_else(|| file.to_owned(), |(file, _)| file.clone())),
            line: place.map(|(_, line)| line),
            code: test.map(str::to_owned),
            ..Finding::error(message.unwrap_or_else(|| "failed".to_owned()))
        });
    }
    Report { findings, tests: tests(text) }
}

/// What stands below `____ name ____`.
#[derive(Default)]
struct Section {
    places: Vec<(String, u32)>,
    error: Option<String>,
}

impl Section {
    /// Where it failed: the last place in the test's own file, else the last of all.
    fn place(&self, file: &str) -> Option<(String, u32)> {
        let own = self.places.iter().rev().find(|(f, _)| f == file);
        own.or(self.places.last()).cloned()
    }
}

fn sections(text: &str) -> BTreeMap<String, Section> {
    let title = pattern(r"^_{2,} (?:ERROR at (?:setup|teardown) of |ERROR collecting )?(.+?) _{2,}$");
    let place = pattern(r"^(\S+\.\w+):(\d+): ");
    let mut sections: BTreeMap<String, Section> = BTreeMap::new();
    let mut current = None;
    for line in text.lines() {
        if let Some(parts) = title.captures(line) {
            current = Some(parts[1].to_owned());
        } else if line.starts_with("====") {
            current = None;
        }
        let Some(name) = &current else { continue };
        let section = sections.entry(name.clone()).or_default();
        if let Some(parts) = place.captures(line) {
            section.places.extend(parts[2].parse().ok().map(|at| (parts[1].to_owned(), at)));
        } else if let Some(error) = line.strip_prefix("E  ") {
            section.error.get_or_insert_with(|| error.trim().to_owned());
        }
    }
    sections
}

/// From the last line, such as `3 failed, 2 passed, 1 error in 0.29s`.
fn tests(text: &str) -> Option<(u64, u64)> {
    let count = pattern(r"(\d+) (passed|failed|errors?|xpassed|xfailed)\b");
    let line = text.lines().rev().find(|line| line.contains(" in ") && count.is_match(line))?;
    let (mut passed, mut all) = (0, 0);
    for parts in count.captures_iter(line) {
        let n: u64 = parts[1].parse().ok()?;
        all += n;
        if matches!(&parts[2], "passed" | "xpassed" | "xfailed") {
            passed += n;
        }
    }
    Some((passed, all))
}
