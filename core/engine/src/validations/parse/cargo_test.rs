//! `cargo test`: failed tests with the place of their panic, and errors of the compiler.

use std::collections::BTreeMap;

use agents_domain::validation::Finding;

use super::{Report, at, pattern};

pub(super) fn read(text: &str) -> Report {
    let result = pattern(r"^test result: \w+\. (\d+) passed; (\d+) failed;");
    let ended = pattern(r"^test (.+) \.\.\. FAILED$");
    let title = pattern(r"^---- (.+) stdout ----$");
    let panicked = pattern(r"panicked at (?:'(.*)', )?([^\s,']+):(\d+):(\d+):?$");
    let error = pattern(r"^error(?:\[(E\d+)\])?: (.+)$");
    let place = pattern(r"^\s*--> (.+):(\d+):(\d+)$");
    let (mut passed, mut failed, mut counted) = (0, 0, false);
    let mut failures: Vec<String> = Vec::new();
    let mut panics: BTreeMap<String, Finding> = BTreeMap::new();
    let mut compiler: Vec<Finding> = Vec::new();
    let mut current: Option<String> = None;
    let mut pending: Option<(Option<String>, String)> = None;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let line = line.trim_end();
        if let Some(parts) = result.captures(line) {
            counted = true;
            passed += parts[1].parse::<u64>().unwrap_or(0);
            failed += parts[2].parse::<u64>().unwrap_or(0);
            current = None;
        } else if let Some(parts) = ended.captures(line) {
            failures.push(parts[1].to_owned());
        } else if let Some(parts) = title.captures(line) {
            current = Some(parts[1].to_owned());
        } else if let (Some(test), Some(parts)) = (&current, panicked.captures(line)) {
            let said = parts.get(1).map(|m| m.as_str().to_owned());
            let message =
                said.or_else(|| lines.peek().map(|next| next.trim().to_owned())).unwrap_or_default();
            let finding = at(&parts[2], &parts[3], parts.get(4).map(|m| m.as_str()), &message);
            panics.entry(test.clone()).or_insert(Finding { code: Some(test.clone()), ..finding });
        } else if let Some(parts) = error.captures(line) {
            pending = Some((parts.get(1).map(|m| m.as_str().to_owned()), parts[2].to_owned()));
        } else if let Some(parts) = place.captures(line)
            && let Some((code, message)) = pending.take()
        {
            let finding = at(&parts[1], &parts[2], parts.get(3).map(|m| m.as_str()), &message);
            let finding = Finding { code, ..finding };
            // The library is compiled twice: once as it is, once for its tests.
            if !compiler.contains(&finding) {
                compiler.push(finding);
            }
        }
    }
    let tests = failures.into_iter().map(|test| match panics.remove(&test) {
        Some(finding) => finding,
        None => Finding { code: Some(test), ..Finding::error("failed") },
    });
    Report {
        findings: compiler.into_iter().chain(tests).collect(),
        tests: counted.then_some((passed, passed + failed)),
    }
}
