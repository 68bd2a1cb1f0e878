//! `Content-Length` framing that survives what servers really print on their output.
//!
//! Log lines before a header, `Content-Type` and other headers, bare `\n` line ends and headers glued to the end of a
//! log line are taken in stride; what is not a message is kept as bounded noise for people to read. Nothing is
//! buffered beyond one body of at most [`MAX_BODY`] bytes.

/// The longest message accepted from a server, in bytes.
pub(crate) const MAX_BODY: usize = 64 << 20;
/// The longest line kept while looking for a header; what is longer is noise.
const MAX_LINE: usize = 8 << 10;
/// How much noise is kept between two calls of [`Decoder::take_noise`].
const MAX_NOISE: usize = 4 << 10;
/// Room behind a body, so that a few bytes more need no other place.
const SPARE: usize = 64;
const LENGTH: &[u8] = b"content-length:";

/// A header that cannot be obeyed: the stream is lost.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message header announces {announced} bytes; at most {MAX_BODY} are accepted")]
pub(crate) struct TooLong {
    announced: String,
}

/// Cuts a byte stream into message bodies.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    buffer: Vec<u8>,
    /// How far `buffer` is used up.
    at: usize,
    /// The announced length, once its header was seen.
    length: Option<usize>,
    /// The headers are over; the body follows.
    in_body: bool,
    noise: Vec<u8>,
}

impl Decoder {
    /// Adds bytes as they came.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        if self.at > 0 {
            self.buffer.drain(..self.at);
            self.at = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole body, or `None` when more bytes are needed.
    pub(crate) fn next_body(&mut self) -> Result<Option<Vec<u8>>, TooLong> {
        loop {
            if self.in_body {
                let length = self.length.unwrap_or(0);
                let Some(body) = self.buffer.get(self.at..self.at + length) else { return Ok(None) };
                let body = body.to_vec();
                self.at += length;
                self.in_body = false;
                self.length = None;
                return Ok(Some(body));
            }
            let rest = &self.buffer[self.at..];
            let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
                self.bound_line();
                return Ok(None);
            };
            let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]).to_vec();
            self.at += end + 1;
            self.take_line(&line)?;
        }
    }

    /// What is there of a body whose rest is still to come, with the length of the rest: whoever reads that can read it
    /// into its place.
    pub(crate) fn take_begun_body(&mut self) -> Option<(Vec<u8>, usize)> {
        let length = self.length.filter(|_| self.in_body)?;
        let begun = self.buffer.get(self.at..)?;
        let missing = length.checked_sub(begun.len()).filter(|missing| *missing > 0)?;
        let mut body = Vec::with_capacity(length + SPARE);
        body.extend_from_slice(begun);
        self.buffer.clear();
        self.at = 0;
        self.in_body = false;
        self.length = None;
        Some((body, missing))
    }

    /// What was fed and is not used up, as the stream had it; for whoever reads on.
    pub(crate) fn into_rest(mut self) -> Vec<u8> {
        let rest = self.buffer.split_off(self.at);
        let mut head = self.length.map(|length| format!("Content-Length: {length}\r\n")).unwrap_or_default();
        if self.in_body {
            head.push_str("\r\n");
        }
        [head.into_bytes(), rest].concat()
    }

    /// What was printed between messages since the last call, cut to its last few kilobytes.
    pub(crate) fn take_noise(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.noise)
    }

    fn take_line(&mut self, line: &[u8]) -> Result<(), TooLong> {
        if line.is_empty() {
            self.in_body = self.length.is_some();
            return Ok(());
        }
        match announced_length(line) {
            Some((glued, digits)) => {
                let length = digits.parse().ok().filter(|length| *length <= MAX_BODY);
                self.length = Some(length.ok_or_else(|| TooLong { announced: digits.to_owned() })?);
                self.add_noise(&line[..glued]);
            }
            // After the length any line is another header; before it, it is noise.
            None if self.length.is_none() => self.add_noise(line),
            None => {}
        }
        Ok(())
    }

    fn add_noise(&mut self, line: &[u8]) {
        if line.is_empty() || line.to_ascii_lowercase().starts_with(b"content-type:") {
            return;
        }
        self.noise.extend_from_slice(line);
        self.noise.push(b'\n');
        let excess = self.noise.len().saturating_sub(MAX_NOISE);
        self.noise.drain(..excess);
    }

    /// A line that never ends must not fill the memory; its tail is kept, a header may be glued to it.
    fn bound_line(&mut self) {
        let excess = (self.buffer.len() - self.at).saturating_sub(MAX_LINE);
        if excess > 0 {
            let lost = self.buffer[self.at..self.at + excess].to_vec();
            self.add_noise(&lost[lost.len().saturating_sub(MAX_NOISE)..]);
            self.at += excess;
        }
    }
}

/// Where a length header starts in a line, and its digits; `None` when the line holds none that is well formed.
fn announced_length(line: &[u8]) -> Option<(usize, &str)> {
    let start = (0..line.len().checked_sub(LENGTH.len() - 1)?)
        .rev()
        .find(|at| line[*at..*at + LENGTH.len()].eq_ignore_ascii_case(LENGTH))?;
    let digits = std::str::from_utf8(&line[start + LENGTH.len()..]).ok()?.trim();
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some((start, digits))
}

/// A body with its header, ready to be written.
pub(crate) fn encode(body: &[u8]) -> Vec<u8> {
    let mut frame = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    frame.extend_from_slice(body);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(chunks: &[&[u8]]) -> (Vec<Vec<u8>>, String) {
        let mut decoder = Decoder::default();
        let mut bodies = Vec::new();
        for chunk in chunks {
            decoder.feed(chunk);
            while let Some(body) = decoder.next_body().unwrap() {
                bodies.push(body);
            }
        }
        (bodies, String::from_utf8_lossy(&decoder.take_noise()).into_owned())
    }

    #[test]
    fn log_lines_before_and_between_messages_are_kept_as_noise() {
        let (bodies, noise) = decode(&[
            b"Starting up...\nwarn: slow\r\n\r\nContent-Length: 2\r\n\r\n{}bye\nloading Content-Length: 1\r\n\r\n1",
        ]);
        assert_eq!(bodies, [b"{}".to_vec(), b"1".to_vec()]);
        assert_eq!(noise, "Starting up...\nwarn: slow\nbye\nloading \n");
    }

    #[test]
    fn other_headers_in_any_order_and_case_and_bare_line_ends_are_accepted() {
        let (bodies, noise) = decode(&[
            b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\ncontent-LENGTH:3\r\n\r\nabc",
            b"Content-Length: 1\nContent-Type: x\n\nz",
        ]);
        assert_eq!(bodies, [b"abc".to_vec(), b"z".to_vec()]);
        assert_eq!(noise, "");
    }

    #[test]
    fn a_length_that_is_no_number_is_noise_and_one_that_is_too_long_ends_the_stream() {
        let (bodies, _) =
            decode(&[b"Content-Length: -5\r\nContent-Length: x\r\n\r\nContent-Length: 1\r\n\r\n1"]);
        assert_eq!(bodies, [b"1".to_vec()]);
        for digits in ["67108865", "99999999999999999999999999"] {
            let mut decoder = Decoder::default();
            decoder.feed(format!("Content-Length: {digits}\r\n\r\n").as_bytes());
            assert_eq!(decoder.next_body(), Err(TooLong { announced: digits.to_owned() }));
        }
    }

    #[test]
    fn the_rest_of_a_body_can_be_read_into_its_place() {
        let mut decoder = Decoder::default();
        decoder.feed(b"Content-Length: 5\r\n\r\nab");
        assert_eq!(decoder.next_body(), Ok(None));
        assert_eq!(decoder.take_begun_body(), Some((b"ab".to_vec(), 3)));
        assert_eq!(decoder.take_begun_body(), None);
        decoder.feed(b"Content-Length: 1\r\n\r\nzContent");
        assert_eq!(decoder.next_body(), Ok(Some(b"z".to_vec())));
        assert_eq!((decoder.next_body(), decoder.take_begun_body()), (Ok(None), None));
    }

    #[test]
    fn a_line_that_never_ends_does_not_fill_the_memory() {
        let mut decoder = Decoder::default();
        for _ in 0..1000 {
            decoder.feed(&[b'y'; 4096]);
            assert_eq!(decoder.next_body(), Ok(None));
        }
        assert!(decoder.buffer.len() <= MAX_LINE + 4096 && decoder.noise.len() <= MAX_NOISE);
        decoder.feed(b"Content-Length: 2\r\n\r\nok");
        assert_eq!(decoder.next_body(), Ok(Some(b"ok".to_vec())));
    }

    proptest! {
        // LSP-038
        #[test]
        fn messages_survive_any_cutting_of_the_stream_and_noise_between_them(
            messages in proptest::collection::vec(("[a-z =.\n]{0,30}", proptest::collection::vec(any::<u8>(), 0..60)), 0..6),
            cuts in proptest::collection::vec(0usize..400, 0..12),
        ) {
            let mut stream = Vec::new();
            for (noise, body) in &messages {
                stream.extend_from_slice(noise.as_bytes());
                stream.extend_from_slice(&encode(body));
            }
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();
            let expected: Vec<Vec<u8>> = messages.into_iter().map(|(_, body)| body).collect();
            prop_assert_eq!(decode(&chunks).0, expected);
        }

        #[test]
        fn who_reads_on_from_the_rest_misses_nothing(
            messages in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 1..5),
            cut in 0usize..400,
        ) {
            let stream: Vec<u8> = messages.iter().flat_map(|body| encode(body)).collect();
            let cut = cut.min(stream.len());
            let (mut first, mut second) = (Decoder::default(), Decoder::default());
            let mut bodies = Vec::new();
            first.feed(&stream[..cut]);
            while let Some(body) = first.next_body().unwrap() {
                bodies.push(body);
            }
            second.feed(&first.into_rest());
            second.feed(&stream[cut..]);
            while let Some(body) = second.next_body().unwrap() {
                bodies.push(body);
            }
            prop_assert_eq!(bodies, messages);
        }

        #[test]
        fn arbitrary_bytes_never_panic(chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..80), 0..8)) {
            let mut decoder = Decoder::default();
            for chunk in &chunks {
                decoder.feed(chunk);
                while let Ok(Some(_)) = decoder.next_body() {}
            }
        }
    }
}
