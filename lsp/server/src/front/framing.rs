//! Frames of the base protocol (LSP 3.17, "Base Protocol"): headers, limits, and what is skipped without being held.

use std::io::{self, BufRead, Read};

/// The largest body that is read, in bytes (10 MB).
pub(crate) const MAX_BODY_BYTES: u64 = 10 * 1024 * 1024;
/// The most header lines a message may have, the blank line not counted.
pub(crate) const MAX_HEADER_LINES: usize = 32;
/// The longest header line that is still taken for one, in bytes with its end.
const MAX_HEADER_LINE_BYTES: u64 = 8 * 1024;

/// What stood between two message borders.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// A body.
    Message(Vec<u8>),
    /// A message that is over a limit. Its body was skipped; the next message follows.
    Rejected(Rejection),
}

/// Why a message was skipped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Rejection {
    #[error("its body of {0} bytes is over the limit of {MAX_BODY_BYTES} bytes")]
    Oversize(u64),
    #[error("its {0} header lines are over the limit of {MAX_HEADER_LINES}")]
    HeaderLines(usize),
    #[error("its Content-Type `{0}` names another character set than utf-8")]
    Charset(String),
}

/// Why the stream cannot be read any further.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FramingError {
    #[error("the stream cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("the stream ended inside a message")]
    Truncated,
    #[error("the stream is no sequence of messages with headers: {0}")]
    Malformed(String),
}

/// Reads the next message; `None` when the stream ends where a message could begin.
pub(crate) fn read_frame(input: &mut impl BufRead) -> Result<Option<Frame>, FramingError> {
    let Some(headers) = read_headers(input)? else { return Ok(None) };
    let length = headers.content_length.ok_or_else(|| malformed("a message has no Content-Length"))?;
    let rejection = if headers.lines > MAX_HEADER_LINES {
        Some(Rejection::HeaderLines(headers.lines))
    } else if length > MAX_BODY_BYTES {
        Some(Rejection::Oversize(length))
    } else {
        headers.foreign_charset.map(Rejection::Charset)
    };
    let mut body = input.take(length);
    if let Some(rejection) = rejection {
        let skipped = io::copy(&mut body, &mut io::sink())?;
        return if skipped == length {
            Ok(Some(Frame::Rejected(rejection)))
        } else {
            Err(FramingError::Truncated)
        };
    }
    // Grows with what really comes, not with what a header claims.
    let mut message = Vec::with_capacity(usize::try_from(length.min(64 * 1024)).unwrap_or(0));
    body.read_to_end(&mut message)?;
    if message.len() as u64 == length {
        Ok(Some(Frame::Message(message)))
    } else {
        Err(FramingError::Truncated)
    }
}

#[derive(Default)]
struct Headers {
    lines: usize,
    content_length: Option<u64>,
    foreign_charset: Option<String>,
}

fn read_headers(input: &mut impl BufRead) -> Result<Option<Headers>, FramingError> {
    let (mut headers, mut line) = (Headers::default(), Vec::new());
    loop {
        line.clear();
        input.take(MAX_HEADER_LINE_BYTES).read_until(b'\n', &mut line)?;
        let Some(text) = line.strip_suffix(b"\n") else {
            return match line.len() as u64 {
                0 if headers.lines == 0 => Ok(None),
                MAX_HEADER_LINE_BYTES => Err(malformed("a header line does not end")),
                _ => Err(FramingError::Truncated),
            };
        };
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        if text.is_empty() {
            return Ok(Some(headers));
        }
        headers.lines += 1;
        headers.take(text)?;
    }
}

impl Headers {
    fn take(&mut self, line: &[u8]) -> Result<(), FramingError> {
        let not_a_header =
            || malformed(format!("`{}` is not a header", String::from_utf8_lossy(line).escape_debug()));
        let text = std::str::from_utf8(line)
            .ok()
            .filter(|text| !text.contains(|c: char| c.is_control() && c != '\t'));
        let (name, value) = text.and_then(|text| text.split_once(':')).ok_or_else(not_a_header)?;
        if name.is_empty()
            || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
        {
            return Err(not_a_header());
        }
        let value = value.trim();
        if name.eq_ignore_ascii_case("Content-Length") {
            let digits = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
            let length = digits.then(|| value.parse().ok()).flatten();
            let length = length
                .ok_or_else(|| malformed(format!("Content-Length `{value}` is not a number of bytes")))?;
            if self.content_length.replace(length).is_some_and(|before| before != length) {
                return Err(malformed("a message has two different Content-Length headers"));
            }
        } else if name.eq_ignore_ascii_case("Content-Type") && !is_utf8(value) {
            self.foreign_charset = Some(value.to_owned());
        }
        Ok(())
    }
}

/// Whether a media type's charset is UTF-8, in any of the spellings clients use, or not named.
fn is_utf8(content_type: &str) -> bool {
    content_type.split(';').skip(1).filter_map(|parameter| parameter.split_once('=')).all(|(key, value)| {
        let value = value.trim().trim_matches('"');
        !key.trim().eq_ignore_ascii_case("charset")
            || value.eq_ignore_ascii_case("utf-8")
            || value.eq_ignore_ascii_case("utf8")
    })
}

fn malformed(reason: impl Into<String>) -> FramingError {
    FramingError::Malformed(reason.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(bytes: impl AsRef<[u8]>) -> Result<Option<Frame>, FramingError> {
        read_frame(&mut bytes.as_ref())
    }

    fn message(body: &str) -> Option<Frame> {
        Some(Frame::Message(body.into()))
    }

    /// A message of `lines` header lines, followed by a good one.
    fn with_header_lines(lines: usize) -> Vec<u8> {
        format!(
            "{}Content-Length: 2\r\n\r\n{{}}Content-Length: 4\r\n\r\nnext",
            "X-Filler: x\r\n".repeat(lines - 1)
        )
        .into()
    }

    #[test]
    fn headers_are_taken_in_any_case_order_and_company() {
        for headers in [
            "Content-Length: 2\r\n\r\n",
            "content-length:2\r\n\r\n",
            "CONTENT-LENGTH: \t2 \r\n\r\n",
            "Content-Length: 2\n\n",
            "Content-Length: 2\r\nContent-Length: 02\r\n\r\n",
            "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 2\r\n\r\n",
            "Content-Length: 2\r\ncontent-type: application/vscode-jsonrpc; Charset=\"UTF8\"\r\n\r\n",
            "Content-Type: application/json\r\nX-Other: a:b\r\nContent-Length: 2\r\n\r\n",
        ] {
            assert_eq!(read(format!("{headers}{{}}")).unwrap(), message("{}"), "{headers:?}");
        }
    }

    #[test]
    fn what_is_no_message_ends_the_stream_with_a_reason() {
        for (bytes, reason) in [
            ("hello\r\n\r\n", "`hello` is not a header"),
            ("{\"jsonrpc\":\"2.0\"}\r\n", "is not a header"),
            ("Content Length: 2\r\n\r\n{}", "is not a header"),
            (": 2\r\n\r\n{}", "is not a header"),
            ("Content-Length: 2\rX: y\r\n\r\n{}", "is not a header"),
            ("\r\n", "no Content-Length"),
            ("X: y\r\n\r\n{}", "no Content-Length"),
            ("Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "two different"),
            ("Content-Length: -2\r\n\r\n{}", "`-2` is not a number"),
            ("Content-Length: +2\r\n\r\n{}", "`+2` is not a number"),
            ("Content-Length: 2a\r\n\r\n{}", "is not a number"),
            ("Content-Length:\r\n\r\n{}", "is not a number"),
            ("Content-Length: 99999999999999999999\r\n\r\n", "is not a number"),
        ] {
            let error = read(bytes).unwrap_err();
            assert!(
                matches!(error, FramingError::Malformed(_)) && error.to_string().contains(reason),
                "{bytes:?}: {error}"
            );
        }
        let endless = read(vec![b'a'; 9 * 1024]).unwrap_err();
        assert!(endless.to_string().contains("does not end"), "{endless}");
    }

    #[test]
    fn the_end_of_the_stream_is_clean_only_between_messages() {
        assert_eq!(read("").unwrap(), None);
        for cut in ["C", "Content-Length: 2\r\n", "Content-Length: 2\r\n\r\n", "Content-Length: 2\r\n\r\n{"] {
            assert!(matches!(read(cut), Err(FramingError::Truncated)), "{cut:?}");
        }
        let oversize = format!("Content-Length: {}\r\n\r\n{{", MAX_BODY_BYTES + 1);
        assert!(matches!(read(oversize), Err(FramingError::Truncated)));
    }

    // LSPCLI-020
    #[test]
    fn thirty_two_header_lines_are_read_and_thirty_three_skipped_with_their_body() {
        let bytes = with_header_lines(32);
        assert_eq!(read(&bytes).unwrap(), message("{}"));
        let bytes = with_header_lines(33);
        let mut input = bytes.as_slice();
        assert_eq!(read_frame(&mut input).unwrap(), Some(Frame::Rejected(Rejection::HeaderLines(33))));
        assert_eq!(read_frame(&mut input).unwrap(), message("next"));
    }

    // LSPCLI-019
    #[test]
    fn a_body_at_the_limit_is_read_and_one_byte_more_is_skipped() {
        let framed = |length: u64| {
            let head = format!("Content-Length: {length}\r\n\r\n");
            let body = io::repeat(b' ').take(length);
            io::BufReader::new(head.as_bytes().to_vec().chain_body(body))
        };
        let mut input = framed(MAX_BODY_BYTES);
        match read_frame(&mut input).unwrap() {
            Some(Frame::Message(body)) => assert_eq!(body.len() as u64, MAX_BODY_BYTES),
            other => panic!("{other:?}"),
        }
        let mut input = framed(MAX_BODY_BYTES + 1);
        assert_eq!(
            read_frame(&mut input).unwrap(),
            Some(Frame::Rejected(Rejection::Oversize(MAX_BODY_BYTES + 1)))
        );
        assert_eq!(read_frame(&mut input).unwrap(), message("next"));
    }

    trait ChainBody {
        fn chain_body(self, body: impl Read) -> impl Read;
    }

    impl ChainBody for Vec<u8> {
        /// Head, body, and the message `next`.
        fn chain_body(self, body: impl Read) -> impl Read {
            io::Cursor::new(self).chain(body).chain(b"Content-Length: 4\r\n\r\nnext".as_slice())
        }
    }

    #[test]
    fn another_character_set_is_skipped() {
        let bytes =
            "Content-Type: a/b; charset=latin1\r\nContent-Length: 2\r\n\r\n{}Content-Length: 4\r\n\r\nnext";
        let mut input = bytes.as_bytes();
        assert!(matches!(read_frame(&mut input).unwrap(), Some(Frame::Rejected(Rejection::Charset(_)))));
        assert_eq!(read_frame(&mut input).unwrap(), message("next"));
    }

    proptest! {
        /// LSP-038: what is framed comes out again, however the stream is cut into reads.
        #[test]
        fn bodies_come_out_as_they_went_in(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..8),
            capacity in 1usize..64,
        ) {
            let bytes: Vec<u8> = bodies.iter().flat_map(|body| {
                [format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes(), body.clone()].concat()
            }).collect();
            let mut input = io::BufReader::with_capacity(capacity, bytes.as_slice());
            for body in bodies {
                prop_assert_eq!(read_frame(&mut input).unwrap(), Some(Frame::Message(body)));
            }
            prop_assert_eq!(read_frame(&mut input).unwrap(), None);
        }

        /// No bytes panic, and reading always ends.
        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let mut input = bytes.as_slice();
            while let Ok(Some(_)) = read_frame(&mut input) {}
        }
    }
}
