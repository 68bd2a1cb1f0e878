//! `node --test`: TAP, and the report for people.

use agents_domain::validation::Finding;

use super::{Report, at, pattern};

pub(super) fn read(text: &str) -> Report {
    let tap = text.trim_start().starts_with("TAP version");
    let findings = if tap { tap_findings(text) } else { spec_findings(text) };
    let count = |what: &str| {
        let line = pattern(&format!(r"(?m)^(?:#|\x{{2139}}) {what} (\d+)\s*$"));
        line.captures_iter(text).last().and_then(|parts| parts[1].parse::<u64>().ok())
    };
    Report { findings, tests: count("pass").zip(count("tests")) }
}

fn tap_findings(text: &str) -> Vec<Finding> {
    let failed = pattern(r"^\s*not ok \d+ - (.*?)(?: # .*)?$");
    let place = pattern(r"^\s*location: '?(.+?):(\d+):(\d+)'?$");
    let error = pattern(r"^\s*error: (.*)$");
    let mut found = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(parts) = failed.captures(line) else { continue };
        let name = parts[1].to_owned();
        let mut finding = Finding { code: Some(name), ..Finding::error("failed") };
        let mut only_children = false;
        while let Some(line) = lines.next_if(|l| !failed.is_match(l) && l.trim() != "...") {
            if let Some(parts) = place.captures(line) {
                let here = at(&parts[1], &parts[2], parts.get(3).map(|m| m.as_str()), "");
                (finding.file, finding.line, finding.column) = (here.file, here.line, here.column);
            } else if line.trim() == "failureType: 'subtestsFailed'" {
                only_children = true;
            } else if let Some(parts) = error.captures(line) {
                let said = parts[1].trim().trim_matches('\'').to_owned();
                finding.message = match said.as_str() {
                    "|-" | ">-" | "|" => lines.peek().map(|l| l.trim().to_owned()).unwrap_or_default(),
                    _ => said,
                };
            }
        }
        // Its own failures are listed by themselves.
        if !only_children {
            found.push(finding);
        }
    }
    found
}

fn spec_findings(text: &str) -> Vec<Finding> {
    let place = pattern(r"^test at (.+):(\d+):(\d+)$");
    let name = pattern(r"^\x{2716} (.*?)(?: \([\d.]+ms\))?$");
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(parts) = place.captures(line.trim_end()) else { continue };
        let test = lines.next().and_then(|l| name.captures(l.trim_end()).map(|p| p[1].to_owned()));
        let message = lines.next().unwrap_or("failed");
        let finding = at(&parts[1], &parts[2], parts.get(3).map(|m| m.as_str()), message);
        found.push(Finding { code: test, ..finding });
    }
    found
}
