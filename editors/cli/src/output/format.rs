//! The six output formats, and which of them a run uses: a pure rule over what was asked for and what the terminal can do.

use std::ffi::OsString;
use std::io::IsTerminal;

use super::error::{AppError, ErrorCode};

/// How output is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum Format {
    /// Boxes, colours and live updates on a terminal.
    Rich,
    /// The layout of `plain` with colours.
    Color,
    /// Boxes and colours, nothing that moves.
    Table,
    /// ASCII layout without any escape sequence.
    Plain,
    /// One JSON document.
    Json,
    /// The same document as YAML.
    Yaml,
}

impl Format {
    /// All formats, in the order in which help names them.
    pub const ALL: [Format; 6] =
        [Format::Rich, Format::Color, Format::Table, Format::Plain, Format::Json, Format::Yaml];

    /// Whether our own typography is written in ASCII for people (`plain` and `color`).
    pub fn in_ascii(self) -> bool {
        matches!(self, Format::Plain | Format::Color)
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Rich => "rich",
            Format::Color => "color",
            Format::Table => "table",
            Format::Plain => "plain",
            Format::Json => "json",
            Format::Yaml => "yaml",
        }
    }

    /// The format with this name.
    pub fn from_name(name: &str) -> Option<Format> {
        Self::ALL.into_iter().find(|f| f.name() == name)
    }

    /// Whether the output is one document for programs.
    pub fn is_document(self) -> bool {
        matches!(self, Format::Json | Format::Yaml)
    }

    /// Whether this terminal can show the format.
    pub fn usable(self, caps: &Caps) -> bool {
        match self {
            Format::Rich => caps.is_tty && caps.ansi && caps.unicode && caps.cursor,
            Format::Table => caps.unicode,
            Format::Color => !caps.no_color && !caps.dumb,
            Format::Plain | Format::Json | Format::Yaml => true,
        }
    }

    /// What is used where the format cannot be shown.
    pub fn fallback(self) -> Option<Format> {
        match self {
            Format::Rich => Some(Format::Table),
            Format::Table => Some(Format::Color),
            Format::Color => Some(Format::Plain),
            Format::Plain | Format::Json | Format::Yaml => None,
        }
    }

    /// The first format along the fallback chain that this terminal can show.
    pub fn degrade(self, caps: &Caps) -> Format {
        let mut format = self;
        while !format.usable(caps) {
            match format.fallback() {
                Some(next) => format = next,
                None => return format,
            }
        }
        format
    }
}

/// The background of the terminal, where it says so (`COLORFGBG`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Background {
    /// Light text on a dark ground.
    Dark,
    /// Dark text on a light ground.
    Light,
}

/// What the terminal behind stdout can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caps {
    /// Whether stdout is a terminal.
    pub is_tty: bool,
    /// Columns; 80 where there is no terminal.
    pub width: usize,
    /// Rows; 24 where there is no terminal.
    pub height: usize,
    /// Whether escape sequences are understood.
    pub ansi: bool,
    /// Whether there are 256 colours.
    pub colors_256: bool,
    /// Whether there are 24-bit colours.
    pub truecolor: bool,
    /// Whether the locale is UTF-8.
    pub unicode: bool,
    /// Whether the cursor can be moved.
    pub cursor: bool,
    /// Whether `NO_COLOR` is set, to any value.
    pub no_color: bool,
    /// Whether `TERM` is `dumb`.
    pub dumb: bool,
    /// The ground colour, if known.
    pub background: Option<Background>,
    /// `TERM_PROGRAM`.
    pub term_program: Option<String>,
}

impl Caps {
    /// What follows from the environment. `size` is (columns, rows) of the terminal, `var` looks a variable up.
    pub fn from_env(is_tty: bool, size: Option<(u16, u16)>, var: impl Fn(&str) -> Option<String>) -> Caps {
        let term = var("TERM").unwrap_or_default();
        let dumb = term == "dumb";
        let color_term = var("COLORTERM");
        let locale =
            ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| var(name).filter(|v| !v.is_empty()));
        let locale = locale.unwrap_or_default().to_ascii_lowercase();
        let (width, height) = size.filter(|(w, h)| *w > 0 && *h > 0).unwrap_or((80, 24));
        Caps {
            is_tty,
            width: width.into(),
            height: height.into(),
            ansi: is_tty,
            colors_256: term.contains("256color") || color_term.is_some(),
            truecolor: color_term.is_some_and(|v| v == "truecolor" || v == "24bit"),
            unicode: locale.contains("utf-8") || locale.contains("utf8"),
            cursor: is_tty && !dumb,
            no_color: var("NO_COLOR").is_some(),
            dumb,
            background: var("COLORFGBG").and_then(|v| ground(&v)),
            term_program: var("TERM_PROGRAM"),
        }
    }

    /// Looks at this process's stdout and environment.
    pub fn detect() -> Caps {
        let is_tty = std::io::stdout().is_terminal();
        let size = if is_tty { terminal_size() } else { None };
        Self::from_env(is_tty, size, |name| std::env::var_os(name).map(|v| v.to_string_lossy().into_owned()))
    }

    /// The width that layouts must keep to; none where nobody looks at a screen (a pipe is never cut or wrapped).
    pub fn limit(&self) -> Option<usize> {
        self.is_tty.then_some(self.width)
    }
}

/// Columns and rows of the terminal behind stdout, if it is one.
pub fn terminal_size() -> Option<(u16, u16)> {
    terminal_size::terminal_size_of(std::io::stdout()).map(|(w, h)| (w.0, h.0))
}

/// `COLORFGBG` is `foreground;background` in the 16 colours; 0 to 6 and 8 are dark grounds.
fn ground(value: &str) -> Option<Background> {
    let colour: u8 = value.rsplit(';').next()?.parse().ok()?;
    Some(if matches!(colour, 0..=6 | 8) { Background::Dark } else { Background::Light })
}

/// What was asked for, strongest first.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked<'a> {
    /// `--format`.
    pub flag: Option<Format>,
    /// `CLEVERAGENTS_FORMAT`; empty counts as unset.
    pub env: Option<&'a str>,
    /// `core.format` of the configuration.
    pub config: Option<&'a str>,
}

/// The format of this run. Nothing asked for: `rich` on a terminal, else `plain`. What the terminal cannot show falls
/// back (`rich`, `table`, `color`, `plain`).
///
/// # Errors
/// A value from the environment or the configuration that is no format; the message names where it came from.
pub fn resolve(asked: Asked<'_>, caps: &Caps) -> Result<Format, AppError> {
    let named = |value: Option<&str>, source: &str| match value.filter(|v| !v.is_empty()) {
        None => Ok(None),
        Some(name) => Format::from_name(name).map(Some).ok_or_else(|| unknown(name, source)),
    };
    let wanted = match asked.flag {
        Some(format) => Some(format),
        None => match named(asked.env, "the environment variable CLEVERAGENTS_FORMAT")? {
            Some(format) => Some(format),
            None => named(asked.config, "the configuration key core.format")?,
        },
    };
    Ok(wanted.map_or_else(|| implicit(caps), |format| format.degrade(caps)))
}

/// The format where nothing was asked for.
pub fn implicit(caps: &Caps) -> Format {
    if caps.is_tty { Format::Rich.degrade(caps) } else { Format::Plain }
}

/// The value of `--format` in raw arguments, for errors that come before the command line could be parsed.
pub fn from_args(args: impl IntoIterator<Item = OsString>) -> Option<Format> {
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        let arg = arg.to_string_lossy();
        if arg == "--" {
            return None;
        }
        if arg == "--format" {
            return args.next().and_then(|value| Format::from_name(&value.to_string_lossy()));
        }
        if let Some(value) = arg.strip_prefix("--format=") {
            return Format::from_name(value);
        }
    }
    None
}

fn unknown(name: &str, source: &str) -> AppError {
    let all: Vec<&str> = Format::ALL.into_iter().map(Format::name).collect();
    AppError::new(ErrorCode::Usage, format!("`{name}` is not an output format"))
        .detail(format!("It comes from {source}. Formats: {}.", all.join(", ")))
}
