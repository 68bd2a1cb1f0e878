//! What a plan's validations said, as `status` and `apply` show it.

use serde_json::Value;

use crate::commands::{text, texts};
use crate::output::{Output, Styled, Tone, bad, dim, good, warn};

/// The most failures shown of one validation.
const SHOWN: usize = 5;

pub fn show(out: &Output, data: &Value) {
    let Some(summary) = data["validation_summary"].as_array().filter(|all| !all.is_empty()) else { return };
    let panel = out.panel(None, "Validation");
    let blocked = summary.iter().any(|v| v["passed"] == false && v["mode"] == "required");
    if blocked {
        panel.tone(Tone::Bad);
    }
    for (at, validation) in summary.iter().enumerate() {
        let passed = validation["passed"] == true;
        let advisory = validation["mode"] == "informational";
        let word = match (passed, advisory) {
            (true, _) => good("passed"),
            (false, true) => warn("failed (informational)"),
            (false, false) => bad("FAILED"),
        };
        let message = text(validation, "message").lines().next().unwrap_or_default();
        panel.line(
            Styled::from(text(validation, "validation")).and(": ").and(word).and(dim(format!(" {message}"))),
        );
        if passed {
            continue;
        }
        let failures = named(data, at);
        for failure in failures.iter().take(SHOWN) {
            panel.line(format!("  {failure}"));
        }
        if failures.len() > SHOWN {
            panel.line(dim(format!("  and {} more", failures.len() - SHOWN)));
        }
    }
    if let Some(seconds) = data["validation"]["duration_s"].as_f64() {
        panel.row("Duration", format!("{seconds} s"));
    }
}

/// The failures of the n-th validation; they are listed in the same order by name.
fn named(data: &Value, at: usize) -> Vec<String> {
    let entry = data["validation"].as_object().and_then(|all| all.values().nth(at));
    let failures: Vec<String> =
        entry.map(|e| texts(&e["failures"]).map(str::to_owned).collect()).unwrap_or_default();
    // One that repeats the message says nothing new.
    if failures.len() == 1 && entry.is_some_and(|e| e["message"] == failures[0].as_str()) {
        Vec::new()
    } else {
        failures
    }
}
