//! Text for people, as Markdown or without any marks, from one description.

use agents_engine::operations::plan::StrategyBehind;

use super::brief;
use super::provenance::{Place, PlaceKind};
use crate::documents::Text;
use crate::watch::world::short;

/// Lines shown of each side of a change.
const SHOWN: usize = 20;

/// A text in the making.
#[derive(Debug)]
pub(crate) struct Page {
    markdown: bool,
    text: String,
}

impl Page {
    pub fn new(markdown: bool) -> Self {
        Self { markdown, text: String::new() }
    }

    pub fn finish(self) -> String {
        self.text.trim_end().to_owned()
    }

    fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push_str(if self.text.ends_with('\n') { "\n" } else { "\n\n" });
        }
    }

    /// A paragraph of someone's words.
    pub fn words(&mut self, words: &str) -> &mut Self {
        self.gap();
        let shown = self.escaped(words);
        self.text.push_str(&shown);
        self
    }

    /// A paragraph in bold: a question and what was chosen.
    pub fn choice(&mut self, question: &str, chosen: &str) -> &mut Self {
        self.gap();
        let line = format!("{} → {}", brief(question, 200), brief(chosen, 200));
        let line = self.escaped(&line);
        self.text.push_str(&if self.markdown { format!("**{line}**") } else { line });
        self
    }

    pub fn heading(&mut self, level: usize, words: &str) -> &mut Self {
        self.gap();
        let line = self.escaped(words.lines().next().unwrap_or_default());
        if self.markdown {
            self.text.push_str(&"#".repeat(level));
            self.text.push(' ');
        }
        self.text.push_str(&line);
        self
    }

    /// An item of a list; `depth` is how far it is indented.
    pub fn item(&mut self, depth: usize, words: &str) -> &mut Self {
        match self.text.rfind('\n').map(|at| &self.text[at + 1..]) {
            Some(last) if last.trim_start().starts_with("- ") => self.text.push('\n'),
            _ => self.gap(),
        }
        let line = self.escaped(words.lines().next().unwrap_or_default());
        self.text.push_str(&"  ".repeat(depth));
        self.text.push_str("- ");
        self.text.push_str(&line);
        self
    }

    /// Documentation as its author wrote it, which is often markdown.
    pub fn documentation(&mut self, text: &str) -> &mut Self {
        self.gap();
        self.text.push_str(text);
        self
    }

    /// A line between two parts.
    pub fn rule(&mut self) -> &mut Self {
        self.gap();
        self.text.push_str("---");
        self
    }

    /// A line of links to commands; nothing without marks. The titles are ours and are not escaped.
    pub fn links(&mut self, links: &[(String, String)]) -> &mut Self {
        if self.markdown && !links.is_empty() {
            self.gap();
            let links: Vec<String> = links.iter().map(|(title, uri)| format!("[{title}]({uri})")).collect();
            self.text.push_str(&links.join(" | "));
        }
        self
    }

    /// Text as it stands, in a language.
    pub fn code(&mut self, language: &str, code: &str) -> &mut Self {
        self.gap();
        if self.markdown {
            let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or(0);
            let fence = "`".repeat(longest.max(2) + 1);
            self.text.push_str(&format!("{fence}{language}\n{code}"));
            if !code.ends_with('\n') {
                self.text.push('\n');
            }
            self.text.push_str(&fence);
        } else {
            self.text.push_str(code.trim_end_matches('\n'));
        }
        self
    }

    fn escaped(&self, words: &str) -> String {
        if self.markdown { escape(words) } else { words.to_owned() }
    }
}

/// Words of people and servers as Markdown that shows them as they are; what they set in backquotes stays code.
///
/// Only what would be read as a mark is escaped: some editors, Neovim among them, show every backslash.
fn escape(words: &str) -> String {
    let words: Vec<char> = words.trim_end().chars().collect();
    let closed = words.iter().filter(|c| **c == '`').count().is_multiple_of(2);
    let tildes = words.iter().filter(|c| **c == '~').count();
    let (mut out, mut code) = (String::with_capacity(words.len() + 8), false);
    for (at, &c) in words.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| words[at]);
        let after = words.get(at + 1).copied();
        let in_word = before.is_some_and(char::is_alphanumeric) && after.is_some_and(char::is_alphanumeric);
        let blank_around = before.is_none_or(char::is_whitespace) && after.is_none_or(char::is_whitespace);
        match c {
            '`' if closed => code = !code,
            _ if code => {}
            '`' => out.push('\\'),
            '\\' if after.is_some_and(|c| c.is_ascii_punctuation()) => out.push('\\'),
            '*' if !blank_around => out.push('\\'),
            '_' if !in_word && !blank_around => out.push('\\'),
            ']' if after.is_some_and(|c| "([:".contains(c)) => out.push('\\'),
            '#' if starts_line(&words[..at]) => out.push('\\'),
            '~' if tildes > 1 => out.push('\\'),
            '<' if after.is_some_and(|c| c.is_alphabetic() || "/!?".contains(c)) => {
                out.push_str("&lt;");
                continue;
            }
            '&' if after.is_some_and(|c| c.is_alphanumeric() || c == '#') => {
                out.push_str("&amp;");
                continue;
            }
            // Two blanks at the end of a line keep the break.
            '\n' => out.push_str("  "),
            _ => {}
        }
        out.push(c);
    }
    out
}

/// Nothing but blanks since the last line break.
fn starts_line(before: &[char]) -> bool {
    before.iter().rev().take_while(|c| **c != '\n').all(|c| c.is_whitespace())
}

/// What is known of the decision behind a place.
pub(crate) fn describe(page: &mut Page, place: &Place, document: Option<&Text>) {
    let segment = &place.segment;
    if let Some(strategy) = &segment.strategy {
        page.choice(&strategy.question, &strategy.chosen);
        page.words(&strategy.rationale);
        if let Some(confidence) = strategy.confidence {
            page.words(&format!("Confidence {confidence:.2}."));
        }
        options(page, strategy);
        if segment.question != strategy.question || segment.chosen != strategy.chosen {
            let carried = format!(
                "Carried out as: {} → {}{}",
                brief(&segment.question, 200),
                brief(&segment.chosen, 200),
                gate(segment.confidence, segment.threshold),
            );
            page.words(&carried);
        }
    } else {
        page.choice(&segment.question, &segment.chosen);
        page.words(&segment.rationale);
        let gate = gate(segment.confidence, segment.threshold);
        if !gate.is_empty() {
            page.words(&capitalised(gate.trim_start_matches([' ', '(']).trim_end_matches(')')));
        }
        for option in &segment.alternatives {
            page.item(0, &chosen_mark(option, &segment.chosen));
        }
    }
    page.words(standing(place));
    if let Some(document) = document {
        change(page, place, document);
    }
}

/// The moment a decision was made.
pub(crate) fn when(place: &Place) -> String {
    let created = &place.segment.created;
    created.get(..16).unwrap_or(created).replace('T', " ")
}

/// Which plan and decision it was, by the ids that commands take.
pub(crate) fn origin(page: &mut Page, place: &Place) {
    let segment = &place.segment;
    let (plan, when) = (short(segment.plan_id), when(place));
    page.words(&format!(
        "Plan `{plan}` of `{}`, {when} UTC. Decision `{}`.",
        segment.action, segment.decision_id
    ));
}

fn options(page: &mut Page, strategy: &StrategyBehind) {
    for (at, option) in strategy.alternatives.iter().enumerate() {
        let description = strategy.descriptions.get(at).and_then(Option::as_deref);
        let mut line = chosen_mark(option, &strategy.chosen);
        if let Some(description) = description.filter(|description| *description != option) {
            line.push_str(": ");
            line.push_str(&brief(description, 200));
        }
        page.item(0, &line);
    }
}

fn chosen_mark(option: &str, chosen: &str) -> String {
    let mark = if option == chosen { " (chosen)" } else { "" };
    format!("{}{mark}", brief(option, 200))
}

/// ` (confidence 0.85, threshold 0.60)`, or what of it is known.
fn gate(confidence: Option<f64>, threshold: Option<f64>) -> String {
    match (confidence, threshold) {
        (Some(confidence), Some(threshold)) => {
            format!(" (confidence {confidence:.2}, threshold {threshold:.2})")
        }
        (Some(confidence), None) => format!(" (confidence {confidence:.2})"),
        _ => String::new(),
    }
}

fn capitalised(words: &str) -> String {
    let mut chars = words.chars();
    chars.next().map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), chars.as_str()))
}

fn standing(place: &Place) -> &'static str {
    match place.kind {
        PlaceKind::Written => "The plan wrote these lines.",
        PlaceKind::Deleted => "The plan deleted lines that stood here.",
        PlaceKind::WouldChange => "Proposed in the sandbox, not applied: these lines would become",
        PlaceKind::WouldInsert => "Proposed in the sandbox, not applied: here would be put in",
        PlaceKind::WouldDelete => "Proposed in the sandbox, not applied: these lines would be deleted",
    }
}

/// What stands there and what would, as a small diff.
fn change(page: &mut Page, place: &Place, document: &Text) {
    let Some(proposed) = place.segment.proposed_text.as_deref() else { return };
    let mut diff = String::new();
    if place.kind != PlaceKind::WouldInsert {
        let present: Vec<String> =
            (place.first..=place.last).filter_map(|line| document.line(line as usize)).collect();
        side(&mut diff, '-', &present);
    }
    let put: Vec<String> = proposed.lines().map(str::to_owned).collect();
    side(&mut diff, '+', &put);
    page.code("diff", &diff);
}

fn side(diff: &mut String, mark: char, lines: &[String]) {
    for line in lines.iter().take(SHOWN) {
        diff.push_str(&format!("{mark}{line}\n"));
    }
    if lines.len() > SHOWN {
        diff.push_str(&format!("{mark}… {} more lines\n", lines.len() - SHOWN));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_shown_as_they_are() {
        assert_eq!(escape("`__init__` is *not* Vec<T>"), "`__init__` is \\*not\\* Vec&lt;T>");
        assert_eq!(escape("one ` two"), "one \\` two");
        assert_eq!(escape("a\nb"), "a  \nb");
        // What reads the same without a backslash gets none: editors may show it.
        for plain in
            ["issue #12", "C#", "snake_case_name", "2 * 3", "~/.config", "a & b", "1 < 2", "[x] done", "a|b"]
        {
            assert_eq!(escape(plain), plain);
        }
        assert_eq!(escape("# not a heading"), "\\# not a heading");
        assert_eq!(escape("[a](b) ~~c~~ _d_"), "[a\\](b) \\~\\~c\\~\\~ \\_d\\_");
        assert_eq!(escape("C:\\dir \\* &lt;"), "C:\\dir \\\\\\* &amp;lt;");
    }

    #[test]
    fn a_fence_is_longer_than_any_in_the_code() {
        let mut page = Page::new(true);
        page.code("diff", "+````");
        assert_eq!(page.finish(), "`````diff\n+````\n`````");
    }

    #[test]
    fn without_marks_the_words_are_the_same() {
        let make = |markdown| {
            let mut page = Page::new(markdown);
            page.choice("Why_", "So").item(0, "a").item(1, "b").words("end");
            page.finish()
        };
        assert_eq!(make(true), "**Why\\_ → So**\n\n- a\n  - b\n\nend");
        assert_eq!(make(false), "Why_ → So\n\n- a\n  - b\n\nend");
    }
}
