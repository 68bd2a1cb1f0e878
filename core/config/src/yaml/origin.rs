//! Which bytes of a written text the bytes of a text made from it came from.

use std::ops::Range as Bytes;

/// A piece of a made text with what it was made from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Piece {
    pub made: Bytes<usize>,
    pub written: Bytes<usize>,
    /// It is the written text, byte for byte.
    pub exact: bool,
}

/// The pieces of a made text, in order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Origin(pub Vec<Piece>);

impl Origin {
    /// The written bytes behind made ones, and whether they are the same.
    pub fn of(&self, made: &Bytes<usize>) -> (Bytes<usize>, bool) {
        let (start, first) = self.at(made.start, false);
        let (end, last) = self.at(made.end.max(made.start), made.end > made.start);
        let same = first == last && self.0.get(first).is_some_and(|piece| piece.exact);
        (start..end.max(start), same)
    }

    /// The written byte of a made one; `end`: of the end of a range, which belongs to the piece before it.
    fn at(&self, made: usize, end: bool) -> (usize, usize) {
        let inside = if end { made.saturating_sub(1) } else { made };
        let index =
            self.0.partition_point(|piece| piece.made.end <= inside).min(self.0.len().saturating_sub(1));
        let Some(piece) = self.0.get(index) else { return (0, index) };
        let into = made.saturating_sub(piece.made.start);
        let written = match (piece.exact, end) {
            (true, _) => (piece.written.start + into).min(piece.written.end),
            (false, true) => piece.written.end,
            (false, false) => piece.written.start,
        };
        (written, index)
    }
}
