//! Whether a server is still computing although it says nothing, seen from the processor time of its processes.
//!
//! Servers that push diagnostics publish an empty list first and the real one when they are done, or nothing when
//! nothing changed; only a server at rest makes such silence an answer. Where the system has no `/proc`, nothing is
//! known and callers wait longer instead.

use std::fs;
use std::time::Duration;

use tokio::time::Instant;

/// Shortest time between two samples.
const STEP: Duration = Duration::from_millis(50);
/// How many processes of a server's tree are looked at.
const MAX_PROCESSES: usize = 32;
/// A server that uses less than this part of a processor rests: timers and garbage collectors never quite stop.
const RESTING_SHARE: f64 = 0.03;

/// Watches one process and its descendants.
#[derive(Debug)]
pub(crate) struct Activity {
    pid: i32,
    sampled: Option<(Instant, Duration)>,
    last_busy: Instant,
}

impl Activity {
    pub(crate) fn of(pid: i32) -> Self {
        Self { pid, sampled: None, last_busy: Instant::now() }
    }

    /// Since when the processes rest; `None` when the system does not tell.
    pub(crate) fn idle_since(&mut self) -> Option<Instant> {
        let now = Instant::now();
        let elapsed = self.sampled.map(|(at, _)| now.duration_since(at));
        if elapsed.is_none_or(|elapsed| elapsed >= STEP) {
            let usage = usage(self.pid)?;
            let worked = match (self.sampled, elapsed) {
                (Some((_, before)), Some(elapsed)) => {
                    usage.time.saturating_sub(before).as_secs_f64() > elapsed.as_secs_f64() * RESTING_SHARE
                }
                _ => true,
            };
            // On a loaded machine a process may be willing to work and get no time: that is not rest.
            if worked || usage.runnable {
                self.last_busy = now;
            }
            self.sampled = Some((now, usage.time));
        }
        Some(self.last_busy)
    }
}

/// What a process tree uses now.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    /// Processor time of the living threads so far.
    time: Duration,
    /// One of the processes runs or waits for the processor or the disk.
    runnable: bool,
    /// Resident memory in bytes, shared pages counted for each process.
    pub(crate) resident: u64,
}

/// When a process was started, in the system's own measure; `None` when it is gone or only its exit is left to be read.
pub(crate) fn born(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.get(stat.rfind(')')? + 1..)?.split_whitespace().collect();
    let ended = matches!(fields.first(), Some(&"Z" | &"X"));
    fields.get(19).filter(|_| !ended)?.parse().ok()
}

/// Adds up a process and its descendants; `None` without `/proc` or without the process.
pub(crate) fn usage(pid: i32) -> Option<Usage> {
    let mut total = Usage::default();
    let mut pids = vec![pid];
    let mut seen = 0;
    while let Some(pid) = pids.pop() {
        seen += 1;
        if seen > MAX_PROCESSES {
            break;
        }
        if add(&mut total, &mut pids, pid).is_none() && seen == 1 {
            return None;
        }
    }
    Some(total)
}

/// Adds one process, and its children to those to be looked at.
fn add(total: &mut Usage, pids: &mut Vec<i32>, pid: i32) -> Option<()> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program is in parentheses and may hold anything, parentheses too.
    let fields: Vec<&str> = stat.get(stat.rfind(')')? + 1..)?.split_whitespace().collect();
    let number = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
    total.runnable |= matches!(fields.first(), Some(&"R" | &"D"));
    total.resident += number(21)? * 4096;
    let mut precise = Duration::ZERO;
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let read = |file: &str| fs::read_to_string(thread.path().join(file)).unwrap_or_default();
        let nanoseconds = read("schedstat").split(' ').next().and_then(|time| time.parse().ok());
        precise += Duration::from_nanos(nanoseconds.unwrap_or_default());
        pids.extend(read("children").split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    let ticks = Duration::from_millis((number(11)? + number(12)?) * 10);
    total.time += if precise.is_zero() { ticks } else { precise };
    Some(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_that_sleeps_rests_and_one_that_computes_does_not() {
        for (program, rests) in [("exec sleep 60", true), ("while :; do :; done", false)] {
            let mut child = Command::new("sh").args(["-c", program]).spawn().unwrap();
            let mut activity = Activity::of(i32::try_from(child.id()).unwrap());
            let begun = Instant::now();
            let mut longest = Duration::ZERO;
            while begun.elapsed() < Duration::from_secs(20) && longest < Duration::from_millis(300) {
                longest = longest.max(activity.idle_since().unwrap().elapsed());
                if !rests && begun.elapsed() > Duration::from_millis(600) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!(longest >= Duration::from_millis(300), rests, "{program}: {longest:?}");
        }
        assert!(usage(i32::try_from(std::process::id()).unwrap()).unwrap().resident > 0);
        assert!(usage(i32::MAX).is_none());
    }
}
