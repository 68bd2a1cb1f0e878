//! `ruff check`: concise, full and JSON. `ruff format --check` names files.

use agents_domain::validation::Finding;
use serde_json::Value;

use super::{Report, at, pattern};

pub(super) fn read(text: &str) -> Report {
    if let Some(findings) = json(text) {
        return Report { findings, tests: None };
    }
    let concise = pattern(r"^(.+?):(\d+):(\d+): (?:([A-Z]+\d+|invalid-syntax):? )?(?:\[\*\] )?(.+)$");
    let heading = pattern(r"^([A-Z]+\d+|invalid-syntax|unformatted):? (?:\[\*\] )?(.+)$");
    let place = pattern(r"^\s*--> (.+):(\d+):(\d+)$");
    let would = pattern(r"^Would reformat: (.+)$");
    let mut findings = Vec::new();
    let mut pending: Option<(String, String)> = None;
    for line in text.lines().map(str::trim_end) {
        if let Some(parts) = place.captures(line) {
            if let Some((code, message)) = pending.take() {
                let finding = at(&parts[1], &parts[2], parts.get(3).map(|m| m.as_str()), &message);
                findings.push(Finding { code: Some(code), ..finding });
            }
        } else if let Some(parts) = concise.captures(line) {
            let code = parts.get(4).map(|m| m.as_str().to_owned());
            let finding = at(&parts[1], &parts[2], parts.get(3).map(|m| m.as_str()), &parts[5]);
            findings.push(Finding { code, ..finding });
        } else if let Some(parts) = heading.captures(line) {
            pending = Some((parts[1].to_owned(), parts[2].to_owned()));
        } else if let Some(parts) = would.captures(line) {
            let finding = Finding::error("would be reformatted");
            findings.push(Finding { file: Some(parts[1].to_owned()), ..finding });
        }
    }
    Report { findings, tests: None }
}

fn json(text: &str) -> Option<Vec<Finding>> {
    let items: Vec<Value> = serde_json::from_str(text.trim()).ok()?;
    let number = |value: &Value| value.as_u64().and_then(|n| u32::try_from(n).ok());
    let finding = |item: &Value| Finding {
        file: item["filename"].as_str().map(str::to_owned),
        line: number(&item["location"]["row"]),
        column: number(&item["location"]["column"]),
        code: item["code"].as_str().map(str::to_owned),
        ..Finding::error(item["message"].as_str().unwrap_or("failed"))
    };
    Some(items.iter().map(finding).collect())
}
