//! The output session: commands write into it, the format decides what becomes of it.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Map, Value};

use super::core::{Ending, Shared, State};
use super::document::{self, Document, RunStatus, Whole};
use super::element::{
    Code, Column, Element, Hint, Level, Node, Panel, Progress, Separator, Status, Table, Text, Tree,
    parse_diff,
};
use super::error::AppError;
use super::format::{Caps, Format};
use super::handles::{
    CodeHandle, PanelHandle, ProgressHandle, StatusHandle, TableHandle, TextHandle, TreeHandle,
};
use super::live::Live;
use super::prompt::{self, Input};
use super::render::View;
use super::strategy::{Accumulate, Sequential, Strategy, What};
use super::styled::{Styled, Tone};

/// Time since a session began.
pub type Clock = Box<dyn Fn() -> Duration + Send + Sync>;

/// What a session needs to know before it starts.
pub struct Options {
    /// Command path without arguments: `plan use`.
    pub command: String,
    /// The format, as [`super::format::resolve`] found it.
    pub format: Format,
    /// What the terminal can do.
    pub caps: Caps,
    /// Where the output goes.
    pub writer: Box<dyn Write + Send>,
    /// Where answers to prompts come from.
    pub input: Input,
    /// Time since the session began.
    pub clock: Clock,
    /// When it began.
    pub started: jiff::Timestamp,
    /// Whether a thread keeps a live display moving.
    pub animate: bool,
    /// Whether people get results only; documents for programs are always whole.
    pub quiet: bool,
}

impl Options {
    /// A session on this process's stdin and stdout.
    pub fn process(command: impl Into<String>, format: Format, caps: Caps) -> Self {
        let begin = Instant::now();
        Self {
            command: command.into(),
            format,
            caps,
            writer: Box::new(io::stdout()),
            input: prompt::process_input(),
            clock: Box::new(move || begin.elapsed()),
            started: jiff::Timestamp::now(),
            animate: true,
            quiet: false,
        }
    }
}

/// The output of one run of a command. Clones are handles to the same session; it may be written to from any thread.
#[derive(Clone)]
pub struct Output {
    shared: Arc<Shared>,
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").field("format", &self.shared.format).finish_non_exhaustive()
    }
}

impl Output {
    /// Starts a session in the format of the options.
    pub fn open(options: Options) -> Output {
        let view = View { quiet: options.quiet, ..View::new(options.format, &options.caps) };
        let height = options.caps.height;
        Self::open_with(options, |format, writer| match format {
            Format::Rich => Box::new(Live::new(view, height, writer)),
            Format::Table | Format::Color | Format::Plain => {
                Box::new(Sequential::new(Box::new(view), writer))
            }
            Format::Json => Box::new(Accumulate::new(document::write_json, writer)),
            Format::Yaml => Box::new(Accumulate::new(document::write_yaml, writer)),
        })
    }

    /// Starts a session with a strategy of the caller's: another front end, another format, a test.
    pub fn open_with(
        options: Options,
        strategy: impl FnOnce(Format, Box<dyn Write + Send>) -> Box<dyn Strategy>,
    ) -> Output {
        let doc = Document {
            command: options.command,
            session_id: ulid::Ulid::generate().to_string(),
            started: options.started,
            elapsed: Duration::ZERO,
            slots: Vec::new(),
            status: RunStatus::Ok,
            exit_code: 0,
            error: None,
            metadata: Map::new(),
            base: None,
            extra: Vec::new(),
        };
        let state = State {
            doc,
            strategy: strategy(options.format, options.writer),
            closed: false,
            declined: false,
            ticking: false,
            failure: None,
        };
        Output {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                input: Mutex::new(options.input),
                clock: options.clock,
                ended: Condvar::new(),
                format: options.format,
                caps: options.caps,
                animate: options.animate,
            }),
        }
    }

    /// The format in use. For prompts and logs only: what a command produces must not depend on it.
    pub fn format(&self) -> Format {
        self.shared.format
    }

    // ---- data for programs -------------------------------------------------------------------------------------

    /// Sets the whole `data` object, as the engine answered it. From then on elements are for people only: their keys no
    /// longer count. A value that is no object is put under `result`.
    pub fn set_data(&self, data: Value) -> &Self {
        self.shared.change(|doc| doc.base = Some(Whole::Value(data)));
        self
    }

    /// As [`Output::set_data`], straight from what the engine returned: for large answers. Nothing is kept where nobody
    /// reads it.
    pub fn set_answer(&self, answer: impl Serialize + Send + Sync + 'static) -> &Self {
        if self.shared.format.is_document() {
            self.shared.change(|doc| doc.base = Some(Whole::Answer(Arc::new(answer))));
        }
        self
    }

    /// Sets a value at a dotted path of `data` that no element shows.
    pub fn data(&self, path: &str, value: impl Into<Value>) -> &Self {
        self.shared.change(|doc| doc.extra.push((path.to_owned(), value.into())));
        self
    }

    /// Sets a value of the envelope's `metadata`.
    pub fn metadata(&self, key: &str, value: impl Into<Value>) -> &Self {
        self.shared.change(|doc| {
            doc.metadata.insert(key.to_owned(), value.into());
        });
        self
    }

    // ---- elements ----------------------------------------------------------------------------------------------
    // A key says where in `data` the element goes (dotted paths make nested objects); `None` is for people only.

    /// A titled group of labelled values or lines.
    pub fn panel<'k>(&self, key: impl Into<Option<&'k str>>, title: &str) -> PanelHandle {
        let panel = Panel { title: title.to_owned(), ..Panel::default() };
        PanelHandle(self.shared.add(key.into(), Element::Panel(panel)))
    }

    /// Rows under columns (see [`super::col`]). The title, in small letters, also says what there is none of when no row
    /// comes.
    pub fn table<'k>(
        &self,
        key: impl Into<Option<&'k str>>,
        title: &str,
        columns: Vec<Column>,
    ) -> TableHandle {
        let table =
            Table { title: title.to_owned(), things: title.to_lowercase(), columns, ..Table::default() };
        TableHandle(self.shared.add(key.into(), Element::Table(table)))
    }

    /// A hierarchy with one root.
    pub fn tree<'k>(&self, key: impl Into<Option<&'k str>>, title: &str, root: Node) -> TreeHandle {
        let root = Node { parent: None, ..root };
        let tree = Tree { title: title.to_owned(), nodes: vec![root], ..Tree::default() };
        TreeHandle(self.shared.add(key.into(), Element::Tree(tree)))
    }

    /// Work that goes on: a spinner, or with a total or steps a bar.
    pub fn progress(&self, label: &str) -> ProgressHandle {
        let began = (self.shared.clock)();
        let progress = Progress { label: label.to_owned(), began, ..Progress::default() };
        ProgressHandle(self.shared.add(None, Element::Progress(progress)))
    }

    /// Running text that may grow; it is shown as it comes.
    pub fn text<'k>(&self, key: impl Into<Option<&'k str>>) -> TextHandle {
        let text = Text { content: String::new(), wrap: true, indent: 0 };
        TextHandle(self.shared.add(key.into(), Element::Text(text)))
    }

    /// A paragraph for people.
    pub fn say(&self, text: &str) {
        self.text(None).append(text);
    }

    /// Source code.
    pub fn code<'k>(&self, key: impl Into<Option<&'k str>>, content: &str) -> CodeHandle {
        let code = Code { content: content.to_owned(), ..Code::default() };
        CodeHandle(self.shared.add(key.into(), Element::Code(code)))
    }

    /// A unified diff of any number of files; with a key, programs get a list with one object per file.
    pub fn diff<'k>(&self, key: impl Into<Option<&'k str>>, unified: &str) {
        self.diff_with(key, unified, |_, _| Vec::new());
    }

    /// As [`Output::diff`], with what is said about each hunk; `notes` gets the indices of file and hunk.
    pub fn diff_with<'k>(
        &self,
        key: impl Into<Option<&'k str>>,
        unified: &str,
        notes: impl Fn(usize, usize) -> Vec<Styled>,
    ) {
        let mut parsed = parse_diff(unified);
        for (file, diff) in parsed.iter_mut().enumerate() {
            for (at, hunk) in diff.hunks.iter_mut().enumerate() {
                hunk.notes = notes(file, at);
            }
        }
        let files: Vec<Element> = parsed.into_iter().map(Element::Diff).collect();
        if let Some(key) = key.into() {
            let list: Vec<Value> = files.iter().filter_map(Element::to_json).collect();
            self.shared.change(|doc| {
                // As any element with a key: the whole `data` object, where there is one, comes first.
                if doc.base.is_none() {
                    doc.extra.push((key.to_owned(), Value::Array(list)));
                }
            });
        }
        for file in files {
            drop(self.shared.add(None, file));
        }
    }

    /// A line or a gap between groups.
    pub fn separator(&self, separator: Separator) {
        drop(self.shared.add(None, Element::Separator(separator)));
    }

    /// Commands to go on with, under a title such as `Next Steps`. Nothing for no commands.
    pub fn hint<S: Into<String>>(&self, title: &str, commands: impl IntoIterator<Item = S>) {
        let commands: Vec<String> = commands.into_iter().map(Into::into).collect();
        if !commands.is_empty() {
            drop(self.shared.add(None, Element::Hint(Hint { title: title.to_owned(), commands })));
        }
    }

    // ---- messages ----------------------------------------------------------------------------------------------

    /// A line of outcome; part of `messages`.
    pub fn status(&self, level: Level, text: impl Into<String>) -> StatusHandle {
        let status = Status { level, text: text.into(), detail: None };
        StatusHandle(self.shared.add(None, Element::Status(status)))
    }

    /// It worked. The last line of nearly every command.
    pub fn ok(&self, text: impl Into<String>) -> StatusHandle {
        self.status(Level::Ok, text)
    }

    /// Worth knowing.
    pub fn info(&self, text: impl Into<String>) -> StatusHandle {
        self.status(Level::Info, text)
    }

    /// Worth a look; does not change the outcome.
    pub fn warn(&self, text: impl Into<String>) -> StatusHandle {
        self.status(Level::Warn, text)
    }

    /// A failure, or a refusal after results: the run ends with exit code 1.
    pub fn error(&self, text: impl Into<String>) -> StatusHandle {
        self.status(Level::Error, text)
    }

    /// Asks `<question> [y/N]: ` and says whether the answer was yes. With `assume_yes` nothing is asked.
    ///
    /// No, no answer, or nobody to answer: the run is cancelled (exit code 1) and the caller must change nothing and
    /// return.
    pub fn confirm(&self, question: &str, assume_yes: bool) -> bool {
        if assume_yes {
            return true;
        }
        match self.ask(None, question) {
            Some(true) => true,
            answer => {
                self.decline(answer.is_some());
                false
            }
        }
    }

    /// Asks `<question> [y/N]: `, after a line of warning where there is one. `None` when nobody answered.
    pub fn ask(&self, warning: Option<&str>, question: &str) -> Option<bool> {
        let on_output = self.shared.caps.is_tty && !self.shared.format.is_document();
        self.shared.emit(What::Suspended(on_output));
        let bold = on_output && View::new(self.shared.format, &self.shared.caps).color;
        let question = prompt::question(warning, question, bold);
        let answer = {
            let mut input = self.shared.input.lock().unwrap_or_else(PoisonError::into_inner);
            input(&question, on_output)
        };
        self.shared.emit(What::Resumed);
        answer.as_deref().map(prompt::is_yes)
    }

    /// Ends the run as cancelled (exit code 1), because of the answer or for the lack of one; the caller must change
    /// nothing and return.
    pub fn decline(&self, answered: bool) {
        self.shared.lock().declined = true;
        let status = self.warn("Operation cancelled");
        if !answered {
            status.detail("Nobody answered the question. Use --yes to go on without asking.");
        }
    }

    // ---- the end -----------------------------------------------------------------------------------------------

    /// Ends the run and gives the exit code: 0, or 1 after an [`Output::error`] or a declined prompt. Once a run has
    /// ended, its exit code stands and nothing more is written.
    pub fn finish(&self) -> u8 {
        self.shared.end(Ending::Finished)
    }

    /// Ends the run with an error: what was produced stays, then come details, suggestions and the message.
    pub fn fail(&self, error: &AppError) -> u8 {
        if let Some(detail) = &error.detail {
            let panel = self.panel(None, &format!("Error [{}] {}", error.number(), error.code.name()));
            panel.tone(Tone::Bad).line(detail);
        }
        self.hint("Try", &error.suggestions);
        self.shared.end(Ending::Failed(error.clone()))
    }

    /// Ends the run because a person stopped it (Ctrl+C): exit code 130, and still one whole document. May be called from
    /// any thread at any time.
    pub fn cancel(&self) -> u8 {
        self.cancel_with(130, None)
    }

    /// As [`Output::cancel`], with another exit code (143 after SIGTERM) and other last words than `Operation cancelled`.
    pub fn cancel_with(&self, exit_code: u8, word: Option<String>) -> u8 {
        self.shared.end(Ending::Cancelled(exit_code, word))
    }

    /// Everything produced so far.
    pub fn snapshot(&self) -> Document {
        let mut doc = self.shared.lock().doc.clone();
        doc.elapsed = (self.shared.clock)();
        doc
    }

    /// Lets the display move on, as its own thread does fifteen times a second.
    pub fn tick(&self) {
        self.shared.emit(What::Tick);
    }
}
