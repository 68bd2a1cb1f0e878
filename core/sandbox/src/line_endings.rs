//! Whose line endings a file on disk has, so that what is written back keeps them.

use serde::{Deserialize, Serialize};

/// How the bytes on disk come from what git stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LineEndings {
    /// As a checkout writes them.
    CheckedOut,
    /// As they are stored, although a checkout would convert them.
    Stored,
    /// With a carriage return before each stored line feed, although a checkout would write none.
    CarriageReturns,
}

impl LineEndings {
    /// `None` when the endings are mixed: then no rule brings the bytes back.
    pub(crate) fn of(on_disk: &[u8], stored: &[u8], checked_out: &[u8]) -> Option<Self> {
        if on_disk == checked_out {
            Some(Self::CheckedOut)
        } else if on_disk == stored {
            Some(Self::Stored)
        } else if on_disk == with_carriage_returns(stored) {
            Some(Self::CarriageReturns)
        } else {
            None
        }
    }

    /// The bytes to write for other content of the same file.
    pub(crate) fn write(self, stored: Vec<u8>, checked_out: Vec<u8>) -> Vec<u8> {
        match self {
            Self::CheckedOut => checked_out,
            Self::Stored => stored,
            Self::CarriageReturns => with_carriage_returns(&stored),
        }
    }
}

fn with_carriage_returns(stored: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(stored.len() + stored.len() / 16);
    for (at, byte) in stored.iter().enumerate() {
        if *byte == b'\n' && (at == 0 || stored[at - 1] != b'\r') {
            bytes.push(b'\r');
        }
        bytes.push(*byte);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endings_of_a_file_are_recognised_and_kept() {
        let stored = b"a\nb\n".to_vec();
        let dos = b"a\r\nb\r\n".to_vec();
        assert_eq!(LineEndings::of(&dos, &stored, &dos), Some(LineEndings::CheckedOut));
        assert_eq!(LineEndings::of(&stored, &stored, &dos), Some(LineEndings::Stored));
        assert_eq!(LineEndings::of(&dos, &stored, &stored), Some(LineEndings::CarriageReturns));
        assert_eq!(LineEndings::of(b"a\r\nb\n", &stored, &stored), None);
        let new = b"x\ny".to_vec();
        assert_eq!(LineEndings::CarriageReturns.write(new.clone(), new), b"x\r\ny");
    }
}
