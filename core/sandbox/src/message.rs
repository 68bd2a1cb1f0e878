//! Texts of anybody's making as lines and commit messages: bounded, printable, and without trailers but ours.

/// The most bytes of a commit message.
const MESSAGE: usize = 16 * 1024;
/// The most characters of a trailer's value.
const TRAILER: usize = 500;

/// One line of at most `length` characters: whatever breaks, hides or turns text around becomes a space.
pub(crate) fn one_line(text: &str, length: usize) -> String {
    let mut line = String::new();
    let mut count = 0;
    for word in text.split(|c: char| c.is_whitespace() || is_unprintable(c)).filter(|word| !word.is_empty()) {
        let space = usize::from(count > 0);
        let room = length.saturating_sub(count + space);
        if room == 0 {
            return ellipsis(line, length);
        }
        if space == 1 {
            line.push(' ');
        }
        match word.char_indices().nth(room) {
            Some((at, _)) => {
                line.push_str(&word[..at]);
                return ellipsis(line, length);
            }
            None => line.push_str(word),
        }
        count = line.chars().count();
    }
    line
}

/// Marks a line as cut, within its length.
fn ellipsis(mut line: String, length: usize) -> String {
    while line.chars().count() >= length && line.pop().is_some() {}
    if length > 0 {
        line.truncate(line.trim_end().len());
        line.push('\u{2026}');
    }
    line
}

/// Control characters, and those that move, hide or turn around what follows.
fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(c, '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// A commit message that ends with these trailers and has no others, however the text is worded.
pub(crate) fn commit_message(message: &str, trailers: &[(String, String)]) -> String {
    let mut end = String::new();
    for (key, value) in trailers {
        let key: String = key.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
        if !key.is_empty() && end.len() < MESSAGE / 2 {
            end.push_str(&format!("{key}: {}\n", one_line(value, TRAILER)));
        }
    }
    let mut body = body(message, MESSAGE.saturating_sub(end.len() + 2));
    if body.is_empty() {
        body.push_str("Apply plan");
    }
    if end.is_empty() {
        // Without trailers of ours the last paragraph of the text would be looked at for some.
        body = indent_last_paragraph(&body);
    }
    body.push('\n');
    if !end.is_empty() {
        body.push('\n');
        body.push_str(&end);
    }
    body
}

/// The text line by line, within so many bytes.
fn body(message: &str, room: usize) -> String {
    const MARK: &str = "\u{2026}";
    let room = room.saturating_sub(MARK.len());
    let mut body = String::new();
    for line in message.split(['\n', '\u{85}', '\u{2028}', '\u{2029}']) {
        let line = clean_line(line);
        if line.is_empty() && (body.is_empty() || body.ends_with("\n\n")) {
            continue;
        }
        // With its line break; an empty line takes room, too.
        let left = room.checked_sub(body.len() + 1);
        if left.is_none_or(|left| line.len() > left) {
            let mut at = left.unwrap_or(0);
            while !line.is_char_boundary(at) {
                at -= 1;
            }
            body.push_str(&line[..at]);
            body.push_str(MARK);
            break;
        }
        body.push_str(&line);
        body.push('\n');
    }
    body.truncate(body.trim_end().len());
    body
}

fn clean_line(line: &str) -> String {
    let mut clean: String =
        line.chars().filter(|c| *c == '\t' || !is_unprintable(*c)).collect::<String>().trim_end().to_owned();
    // Lines at which git takes a message to end, so that the paragraph before would count as its last.
    if clean.starts_with("---") || clean.contains(" >8 ") {
        clean.insert(0, ' ');
        clean = clean.replace(" >8 ", " > 8 ");
    }
    clean
}

fn indent_last_paragraph(body: &str) -> String {
    match body.rsplit_once("\n\n") {
        Some((before, last)) => {
            format!("{before}\n\n{}", indent(last))
        }
        // The subject is no trailer, but lines right below it may be.
        None => match body.split_once('\n') {
            Some((subject, rest)) => format!("{subject}\n\n{}", indent(rest)),
            None => body.to_owned(),
        },
    }
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!(" {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ours() -> Vec<(String, String)> {
        vec![("CleverAgents-Plan".into(), "01HX".into())]
    }

    #[test]
    fn a_line_is_one_line_of_bounded_length() {
        assert_eq!(one_line("a\n\tb\u{1b}[31m c\u{202e}d", 200), "a b [31m c d");
        assert_eq!(one_line("", 5), "");
        assert_eq!(one_line("abcde", 5), "abcde");
        assert_eq!(one_line("abcdef", 5), "abcd\u{2026}");
        assert_eq!(one_line("ab cd ef", 5), "ab c\u{2026}");
        assert_eq!(one_line(&"x".repeat(140_000), 200).chars().count(), 200);
    }

    #[test]
    fn a_message_keeps_its_lines_and_loses_what_cannot_be_shown() {
        let text = commit_message("Fix\u{1b}[31m it\r\n\r\n\n\n- one\n- two\u{7}\n\n", &ours());
        assert_eq!(text, "Fix[31m it\n\n- one\n- two\n\nCleverAgents-Plan: 01HX\n");
        assert_eq!(commit_message(" \n\u{0}", &[]), "Apply plan\n");
        let forged = [("A\nB: c".to_owned(), "x\nSigned-off-by: me".to_owned())];
        assert_eq!(commit_message("s", &forged), "s\n\nABc: x Signed-off-by: me\n");
        let long = commit_message(&"x".repeat(140_000), &ours());
        assert!(long.len() <= MESSAGE && long.ends_with("\u{2026}\n\nCleverAgents-Plan: 01HX\n"));
    }

    #[test]
    fn an_empty_line_at_the_very_end_of_the_room_counts() {
        for times in 800..1000 {
            let message = commit_message(&"A0\u{10000}\u{10000}\n\n\u{10000}A0".repeat(times), &ours());
            assert!(message.len() <= MESSAGE, "{times}: {}", message.len());
        }
    }

    proptest! {
        #[test]
        fn any_text_gives_a_bounded_message_that_ends_with_our_paragraph(text in "(?s).{0,40}", times in 1usize..2000) {
            let message = commit_message(&text.repeat(times), &ours());
            prop_assert!(message.len() <= MESSAGE);
            prop_assert!(message.ends_with("\n\nCleverAgents-Plan: 01HX\n"));
            prop_assert!(!message.chars().any(|c| c != '\n' && c != '\t' && is_unprintable(c)));
            let line = one_line(&text, 7);
            prop_assert!(line.chars().count() <= 7 && !line.chars().any(is_unprintable), "{line:?}");
        }
    }
}
