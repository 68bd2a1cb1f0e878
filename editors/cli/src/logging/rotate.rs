//! Log files that are put aside every day and removed when they are old.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Puts a log aside (`.log.1`, the one before as `.log.2`, ...) when it was last written on an earlier day (UTC), and
/// removes logs beside it that were last written more than `keep` days ago. While another process does so, nothing happens.
///
/// # Errors
/// When a file cannot be renamed or removed.
pub fn rotate(log: &Path, keep: u64, now: SystemTime) -> io::Result<()> {
    let Ok(file) = File::open(log) else { return Ok(()) };
    let written = file.metadata()?.modified()?;
    if day(written) >= day(now) || file.try_lock().is_err() {
        return Ok(());
    }
    // Who waited for the lock may hold a file that is put aside already.
    if fs::metadata(log)?.modified()? != written {
        return Ok(());
    }
    let mut aside = 1;
    while numbered(log, aside).exists() {
        aside += 1;
    }
    for number in (1..aside).rev() {
        fs::rename(numbered(log, number), numbered(log, number + 1))?;
    }
    fs::rename(log, numbered(log, 1))?;
    remove_old(log, keep, now)
}

/// The log itself and those of workers are kept as long.
fn remove_old(log: &Path, keep: u64, now: SystemTime) -> io::Result<()> {
    let folder = log.parent().unwrap_or(Path::new("."));
    let name = log.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let oldest = u32::try_from(keep).ok().and_then(|days| now.checked_sub(DAY * days));
    let Some(oldest) = oldest else { return Ok(()) };
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let found = entry.file_name().to_string_lossy().into_owned();
        let aside = found.strip_prefix(&name).and_then(|rest| rest.strip_prefix('.'));
        let ours = aside.is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()))
            || (found.starts_with("worker-") && found.ends_with(".log"));
        if ours && entry.metadata()?.modified()? < oldest {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn numbered(log: &Path, number: u32) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

/// Days since the epoch.
fn day(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs() / DAY.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aged(path: &Path, text: &str, days: u32, now: SystemTime) {
        fs::write(path, text).unwrap();
        File::options().write(true).open(path).unwrap().set_modified(now - DAY * days).unwrap();
    }

    // OBS-004
    #[test]
    fn a_log_is_put_aside_every_day_and_removed_when_it_is_old() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("cleveragents.log");
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).ok();
        let now = SystemTime::now();
        rotate(&log, 30, now).unwrap();
        aged(&log, "today", 0, now);
        rotate(&log, 30, now).unwrap();
        assert_eq!(read("cleveragents.log").as_deref(), Some("today"));
        aged(&log, "yesterday", 1, now);
        aged(&numbered(&log, 1), "before", 2, now);
        aged(&numbered(&log, 2), "old", 31, now);
        aged(&dir.path().join("worker-01A.log"), "old worker", 40, now);
        aged(&dir.path().join("worker-01B.log"), "worker", 3, now);
        aged(&dir.path().join("notes.log"), "not ours", 400, now);
        rotate(&log, 30, now).unwrap();
        assert_eq!(read("cleveragents.log"), None);
        assert_eq!(read("cleveragents.log.1").as_deref(), Some("yesterday"));
        assert_eq!(read("cleveragents.log.2").as_deref(), Some("before"));
        assert_eq!((read("cleveragents.log.3"), read("worker-01A.log")), (None, None));
        assert!(read("worker-01B.log").is_some() && read("notes.log").is_some());
    }

    #[test]
    fn one_process_at_a_time_puts_a_log_aside() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("cleveragents.log");
        let now = SystemTime::now();
        aged(&log, "yesterday", 1, now);
        let other = File::open(&log).unwrap();
        other.lock().unwrap();
        rotate(&log, 30, now).unwrap();
        assert!(log.exists() && !numbered(&log, 1).exists());
        drop(other);
        rotate(&log, 30, now).unwrap();
        assert!(numbered(&log, 1).exists());
    }
}
