//! Measures what has a budget and prints one JSON document: `tests/bench/run`.
//!
//! Times are milliseconds of wall clock, memory is bytes. A figure over its budget is in the document like any other, with
//! `"within": false`; the program fails only when something cannot be measured.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench prints its figures, and what it cannot measure ends it"
)]

mod children;
mod commands;
mod decisions;
mod editor;
mod fixtures;
mod index;
mod models;
mod plans;
mod proxy;
mod sandbox;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// One figure.
pub struct Figure {
    name: String,
    what: String,
    samples: Vec<f64>,
    unit: &'static str,
    /// The limit, and what of the figure it is for: `p50`, `p99`, `max`, or `least` of a rate.
    budget: Option<(&'static str, f64)>,
    peak_memory: Option<u64>,
}

impl Figure {
    /// Milliseconds.
    pub fn times(name: &str, what: &str, samples: &[Duration]) -> Self {
        let samples = samples.iter().map(|time| time.as_secs_f64() * 1e3).collect();
        Self { name: name.into(), what: what.into(), samples, unit: "ms", budget: None, peak_memory: None }
    }

    /// Something else than a time.
    pub fn values(name: &str, what: &str, unit: &'static str, samples: Vec<f64>) -> Self {
        Self { name: name.into(), what: what.into(), samples, unit, budget: None, peak_memory: None }
    }

    /// What it may be at most (`least`: at least).
    pub fn budget(mut self, of: &'static str, limit: f64) -> Self {
        self.budget = Some((of, limit));
        self
    }

    /// The most memory the measured processes had.
    pub fn memory(mut self, bytes: Option<u64>) -> Self {
        self.peak_memory = bytes;
        self
    }

    fn json(&self) -> Value {
        let mut sorted = self.samples.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let rank = (share * sorted.len() as f64).ceil() as usize;
            sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
        };
        let round = |value: f64| (value * 1000.0).round() / 1000.0;
        let (p50, p99, max) = (at(0.5), at(0.99), at(1.0));
        let least = sorted.first().copied().unwrap_or(f64::NAN);
        let mut out = json!({
            "name": self.name, "what": self.what, "unit": self.unit, "samples": sorted.len(),
            "p50": round(p50), "p99": round(p99), "max": round(max), "peak_memory": self.peak_memory,
        });
        if let Some((of, limit)) = self.budget {
            let within = match of {
                "p50" => p50 <= limit,
                "p99" => p99 <= limit,
                "least" => least >= limit,
                _ => max <= limit,
            };
            out["budget"] = json!({ "of": of, "limit": limit, "within": within });
        }
        eprintln!(
            "{:44} p50 {:>10.3} p99 {:>10.3} max {:>10.3} {} {}",
            self.name,
            p50,
            p99,
            max,
            self.unit,
            self.peak_memory.map(|m| format!("{} MB", m / 1_000_000)).unwrap_or_default()
        );
        out
    }
}

/// Runs something so many times; how long each took.
pub fn repeat(times: usize, mut run: impl FnMut()) -> Vec<Duration> {
    (0..times)
        .map(|_| {
            let begun = Instant::now();
            run();
            begun.elapsed()
        })
        .collect()
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some("--peak") {
        return commands::peak_of(arguments);
    }
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let mut figures = Vec::new();
    for group in
        ["commands", "decisions", "editor", "index", "proxy", "sandbox", "children", "models", "plans"]
    {
        if wanted.is_empty() || wanted.iter().any(|one| one == group) {
            let measured = match group {
                "commands" => commands::measure(),
                "decisions" => decisions::measure(),
                "editor" => editor::measure(),
                "proxy" => proxy::measure(),
                "sandbox" => sandbox::measure(),
                "children" => children::measure(),
                "index" => index::measure(),
                "models" => models::measure(),
                _ => plans::measure(),
            };
            figures.extend(measured.iter().map(Figure::json));
        }
    }
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1)).unwrap_or("?");
    let document = json!({
        "machine": { "cores": cores, "cpu": cpu, "load": load() },
        "build": if cfg!(debug_assertions) { "debug" } else { "release" },
        "figures": figures,
    });
    println!("{document:#}");
}

/// The load of the last minute; figures of a busy machine say little.
fn load() -> Value {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|load| load.parse::<f64>().ok()).map_or(Value::Null, Value::from)
}
