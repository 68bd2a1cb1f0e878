//! Logs: what `-v` and the configuration ask for, to stderr and to a file, never mixed into the output.

mod redacting;
mod rotate;

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

use agents_config::Config;
use agents_domain::{Error, ErrorKind};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use crate::spawn::open_log;
use redacting::Redacting;

/// The file below the log directory.
const FILE: &str = "cleveragents.log";

/// Where a run logs to.
#[derive(Debug, PartialEq, Eq)]
pub struct Plan {
    /// What is logged.
    pub level: LevelFilter,
    /// To the terminal, and there to which stream.
    pub terminal: Option<Stream>,
    /// To this file, as JSON lines.
    pub file: Option<PathBuf>,
    /// For so many days.
    pub keep_days: u64,
}

/// A place for readable log lines.
#[derive(Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard error.
    Stderr,
    /// Standard output.
    Stdout,
    /// A file or device.
    Path(PathBuf),
}

/// The level of so many `-v`; `None` without any.
pub fn level_of(verbose: u8) -> Option<LevelFilter> {
    match verbose {
        0 => None,
        1 => Some(LevelFilter::ERROR),
        2 => Some(LevelFilter::WARN),
        3 => Some(LevelFilter::INFO),
        4 => Some(LevelFilter::DEBUG),
        _ => Some(LevelFilter::TRACE),
    }
}

impl Plan {
    /// What `-v` and the configuration ask for.
    pub fn new(verbose: u8, config: &Config) -> Self {
        let configured = match config.text("core.log.level", None).as_str() {
            "ERROR" => LevelFilter::ERROR,
            "WARN" => LevelFilter::WARN,
            "INFO" => LevelFilter::INFO,
            "DEBUG" => LevelFilter::DEBUG,
            "TRACE" => LevelFilter::TRACE,
            // A fatal error is the outcome of a run, which its output tells.
            _ => LevelFilter::OFF,
        };
        let level = level_of(verbose).unwrap_or(configured);
        let to_terminal = match config.text("core.log.terminal", None).as_str() {
            "always" => true,
            "never" => false,
            _ => verbose > 0,
        };
        let stream = match config.text("core.log.terminal-stream", None).as_str() {
            "" | "stderr" => Stream::Stderr,
            "stdout" => Stream::Stdout,
            path => Stream::Path(PathBuf::from(path)),
        };
        let on = level != LevelFilter::OFF;
        let folder = PathBuf::from(config.text("core.log.dir", None));
        let to_file = on && config.boolean("core.log.file-enabled", None);
        Self {
            level,
            terminal: (on && to_terminal).then_some(stream),
            file: to_file.then(|| folder.join(FILE)),
            keep_days: u64::try_from(config.integer("core.log.retention-days", None)).unwrap_or_default(),
        }
    }

    /// As [`Plan::new`], for a worker: warnings and worse always go to stderr, which is the log of its plan.
    pub fn of_worker(verbose: u8, config: &Config) -> Self {
        let asked = Self::new(verbose, config);
        Self { level: asked.level.max(LevelFilter::WARN), terminal: Some(Stream::Stderr), ..asked }
    }

    /// Warnings are logged where a person sees them.
    pub fn shows_warnings(&self) -> bool {
        self.terminal.is_some() && self.level >= LevelFilter::WARN
    }

    /// Starts to log.
    ///
    /// # Errors
    /// When a log cannot be opened.
    pub fn start(self) -> Result<(), Error> {
        if self.level == LevelFilter::OFF {
            return Ok(());
        }
        let file = match &self.file {
            None => None,
            Some(path) => {
                // A log that cannot be put aside goes on as it is.
                let _ = rotate::rotate(path, self.keep_days, SystemTime::now());
                Some(fmt::layer().json().with_writer(Mutex::new(Redacting(opened(path)?))))
            }
        };
        let terminal: Option<(Box<dyn Write + Send>, bool)> = match &self.terminal {
            None => None,
            Some(Stream::Stderr) => Some((Box::new(io::stderr()), io::stderr().is_terminal())),
            Some(Stream::Stdout) => Some((Box::new(io::stdout()), io::stdout().is_terminal())),
            Some(Stream::Path(path)) => Some((Box::new(opened(path)?), false)),
        };
        let terminal = terminal.map(|(writer, colored)| {
            fmt::layer().with_ansi(colored).with_writer(Mutex::new(Redacting(writer)))
        });
        let layers = tracing_subscriber::registry()
            .with(file.with_filter(self.level))
            .with(terminal.with_filter(self.level));
        // A second start in one process keeps the first.
        let _ = layers.try_init();
        Ok(())
    }
}

/// Starts the log of a process that has no terminal: a worker, or the language server.
///
/// # Errors
/// When the file cannot be opened.
pub fn start_plain(level: LevelFilter, file: Option<&Path>) -> Result<(), Error> {
    let writer: Box<dyn Write + Send> = match file {
        None => Box::new(io::stderr()),
        Some(path) => Box::new(opened(path)?),
    };
    let layer = fmt::layer().with_ansi(false).with_writer(Mutex::new(Redacting(writer))).with_filter(level);
    let _ = tracing_subscriber::registry().with(layer).try_init();
    Ok(())
}

fn opened(path: &Path) -> Result<std::fs::File, Error> {
    open_log(path)
        .map_err(|e| Error::new(ErrorKind::Io, format!("the log {} cannot be opened: {e}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    // CLI-011, CLI-012
    #[test]
    fn every_v_logs_more_and_none_logs_nothing() {
        let levels = [0, 1, 2, 3, 4, 5, 6, 255].map(level_of);
        use LevelFilter as L;
        let expected = [None, Some(L::ERROR), Some(L::WARN), Some(L::INFO), Some(L::DEBUG), Some(L::TRACE)];
        assert_eq!(levels[..6], expected);
        assert_eq!(levels[6..], [Some(L::TRACE), Some(L::TRACE)]);
        let config = Config::defaults(Path::new("/data"));
        assert_eq!(Plan::new(0, &config), Plan { level: L::OFF, terminal: None, file: None, keep_days: 30 });
    }

    // CLI-013
    #[test]
    fn v_logs_to_stderr_and_to_the_log_file() {
        let config = Config::defaults(Path::new("/data"));
        let plan = Plan::new(3, &config);
        assert_eq!(plan.terminal, Some(Stream::Stderr));
        assert_eq!(plan.file, Some(PathBuf::from("/data/logs/cleveragents.log")));
    }
}
