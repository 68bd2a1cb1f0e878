//! Questions to the person at the terminal. A run without one never waits: nobody there means no.

use std::io::{self, BufRead, IsTerminal, Write};
use std::os::fd::AsFd;

use nix::poll::{PollFd, PollFlags, poll};

use super::layout;

/// Shows a question (on stdout if the second argument says so, else on stderr) and returns the answer; `None` when nobody
/// answered.
pub type Input = Box<dyn FnMut(&str, bool) -> Option<String> + Send>;

/// Milliseconds that an answer may take to arrive through a pipe (`echo y | agents ...`). A pipe that stays silent longer
/// belongs to nobody who reads the question.
const PIPE_WAIT: u16 = 2_000;

/// The question as it is shown.
pub fn question(warning: Option<&str>, text: &str, bold: bool) -> String {
    let line = |text: &str| layout::clean(text).replace('\n', " ");
    let warning = warning.map(|text| format!("{}\n", line(text))).unwrap_or_default();
    let text = line(text);
    match bold {
        true => format!("{warning}\x1b[1m{text}\x1b[0m [y/N]: "),
        false => format!("{} [y/N]: ", layout::ascii(&format!("{warning}{text}"))),
    }
}

/// `y` or `yes`, in any case.
pub fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Asks on this process's terminal.
pub fn process_input() -> Input {
    Box::new(|question, on_stdout| {
        let show = |text: &str| {
            // A question that cannot be shown gets no answer, which means no.
            let shown =
                if on_stdout { write(&mut io::stdout(), text) } else { write(&mut io::stderr(), text) };
            shown.is_ok()
        };
        if !show(question) {
            return None;
        }
        let stdin = io::stdin();
        let typed = stdin.is_terminal();
        let answer = if typed || arrives(&stdin) { read_line(&stdin) } else { None };
        if !typed || answer.is_none() {
            // Nobody pressed Enter, so the line is still open.
            show("\n");
        }
        answer
    })
}

fn write(to: &mut dyn Write, text: &str) -> io::Result<()> {
    to.write_all(text.as_bytes())?;
    to.flush()
}

fn arrives(stdin: &io::Stdin) -> bool {
    let mut fds = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PIPE_WAIT).is_ok_and(|ready| ready > 0)
}

fn read_line(stdin: &io::Stdin) -> Option<String> {
    let mut line = String::new();
    stdin.lock().read_line(&mut line).ok().filter(|read| *read > 0).map(|_| line)
}
