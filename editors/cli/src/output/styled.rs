//! Text with meaning: what a piece of output is (a title, an id, bad news), so that each format can choose its looks.

/// What a piece of text means. Formats with colour give each tone a fixed look; the others ignore it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// Ordinary text, in the terminal's own colour.
    #[default]
    Plain,
    /// Titles and column headers: bold cyan.
    Title,
    /// The label of a value: bold blue.
    Key,
    /// Success and additions: green.
    Good,
    /// Something to look at: yellow.
    Warn,
    /// Failure and removals: red.
    Bad,
    /// Neutral information and progress: blue.
    Info,
    /// Names and identifiers: cyan.
    Id,
    /// Words of a language in code: magenta.
    Word,
    /// Secondary text: dim.
    Dim,
    /// Emphasis: bold.
    Strong,
}

/// A run of text with one tone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The text as given: not yet cleaned for a terminal.
    pub text: String,
    /// What it means.
    pub tone: Tone,
    /// Whether it is our own wording. Its typography (`—`, `→`, `…`) becomes ASCII where the format asks for that;
    /// text of users, models and files is never changed.
    pub own: bool,
}

/// Text made of spans. Strings convert into it as ordinary text that is not our own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Styled {
    /// The runs, in order.
    pub spans: Vec<Span>,
}

impl Styled {
    /// One run.
    pub fn new(text: impl Into<String>, tone: Tone) -> Self {
        Self { spans: vec![Span { text: text.into(), tone, own: false }] }
    }

    /// Appends more text: `dim("[choice] ").and(title)`.
    pub fn and(mut self, more: impl Into<Styled>) -> Self {
        self.spans.extend(more.into().spans);
        self
    }

    /// Gives every ordinary run this tone; runs that already mean something keep theirs.
    pub fn toned(mut self, tone: Tone) -> Self {
        for span in self.spans.iter_mut().filter(|s| s.tone == Tone::Plain) {
            span.tone = tone;
        }
        self
    }

    /// Marks the text as our own wording (see [`Span::own`]).
    pub fn owned(mut self) -> Self {
        self.spans.iter_mut().for_each(|s| s.own = true);
        self
    }

    /// The text without its tones.
    pub fn text(&self) -> String {
        self.spans.iter().map(|s| s.text.as_str()).collect()
    }
}

impl From<&str> for Styled {
    fn from(text: &str) -> Self {
        Self::new(text, Tone::Plain)
    }
}

impl From<String> for Styled {
    fn from(text: String) -> Self {
        Self::new(text, Tone::Plain)
    }
}

impl From<&String> for Styled {
    fn from(text: &String) -> Self {
        Self::new(text.as_str(), Tone::Plain)
    }
}

/// Our own wording, in the terminal's colour: `own("none — inherited")`.
pub fn own(text: impl Into<String>) -> Styled {
    Styled::new(text, Tone::Plain).owned()
}

/// A sentence of the engine, of an actor or of a server, with a tone: what it quotes may be anything, the marks that
/// it quotes and joins with are ours.
pub fn prose(text: impl Into<String>, tone: Tone) -> Styled {
    Styled::new(text, tone).owned()
}

/// Good news: green.
pub fn good(text: impl Into<String>) -> Styled {
    Styled::new(text, Tone::Good)
}

/// Something to look at: yellow.
pub fn warn(text: impl Into<String>) -> Styled {
    Styled::new(text, Tone::Warn)
}

/// Bad news: red.
pub fn bad(text: impl Into<String>) -> Styled {
    Styled::new(text, Tone::Bad)
}

/// A name or an identifier: cyan.
pub fn id(text: impl Into<String>) -> Styled {
    Styled::new(text, Tone::Id)
}

/// Secondary text: dim.
pub fn dim(text: impl Into<String>) -> Styled {
    Styled::new(text, Tone::Dim)
}

/// Emphasis: bold.
pub fn strong(text: impl Into<String>) -> Styled {
    Styled::new(text, Tone::Strong)
}
