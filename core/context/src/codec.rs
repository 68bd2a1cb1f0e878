//! How places are packed: numbers of seven bits a byte, lowest first, the high bit set on all but a number's last byte.

use std::collections::BTreeMap;

use agents_domain::ports::code_index::{CodeSymbol, Occurrence};
use agents_domain::text::{Position, Range};
use agents_grammars::{Reference, Role};

/// Set on a role's byte when the name is written with `r#` before it.
const RAW: u8 = 0x80;

pub(crate) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number as u8 & 0x7f) | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(crate) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn take_small(bytes: &mut &[u8]) -> Option<u32> {
    u32::try_from(take(bytes)?).ok()
}

fn cut<'b>(bytes: &mut &'b [u8], length: u64) -> Option<&'b [u8]> {
    let (piece, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
    *bytes = rest;
    Some(piece)
}

/// The ranges of a symbol.
pub(crate) fn pack_place(symbol: &CodeSymbol) -> Vec<u8> {
    let mut out = Vec::with_capacity(12);
    for range in [symbol.range, symbol.name_range] {
        for position in [range.start, range.end] {
            put(&mut out, position.line.into());
            put(&mut out, position.column.into());
        }
    }
    out
}

/// The range of a symbol and of its name.
pub(crate) fn unpack_place(mut bytes: &[u8]) -> Option<(Range, Range)> {
    let mut position = || Some(Position { line: take_small(&mut bytes)?, column: take_small(&mut bytes)? });
    let whole = Range { start: position()?, end: position()? };
    Some((whole, Range { start: position()?, end: position()? }))
}

/// The names of a text and where each stands.
pub(crate) struct Packed<'t> {
    /// In their order, for the index of words.
    pub names: Vec<&'t str>,
    /// For `occurrences.places`.
    pub places: Vec<u8>,
}

/// A name as it is looked for: without Rust's mark of a raw one.
pub(crate) fn bare(name: &str) -> &str {
    name.strip_prefix("r#").unwrap_or(name)
}

/// Packs what [`places_of`] reads: per name its length, itself, the length of its places, and these: the lines they are
/// further down than the one before, the column, the role.
pub(crate) fn pack_names<'t>(text: &'t [u8], references: &[Reference]) -> Packed<'t> {
    let mut by_name: BTreeMap<&str, (Vec<u8>, usize)> = BTreeMap::new();
    for reference in references {
        let written = text.get(reference.start_byte..reference.end_byte).unwrap_or_default();
        let Ok(written) = std::str::from_utf8(written) else { continue };
        let name = bare(written);
        if name.is_empty() {
            continue;
        }
        let (places, last) = by_name.entry(name).or_default();
        put(places, (reference.start.line - *last) as u64);
        put(places, reference.start.column as u64);
        places.push(reference.role as u8 | if written.len() == name.len() { 0 } else { RAW });
        *last = reference.start.line;
    }
    let mut places = Vec::new();
    for (name, (packed, _)) in &by_name {
        put(&mut places, name.len() as u64);
        places.extend_from_slice(name.as_bytes());
        put(&mut places, packed.len() as u64);
        places.extend_from_slice(packed);
    }
    Packed { names: by_name.into_keys().collect(), places }
}

/// Where a name stands; nothing for bytes that are none of ours.
pub(crate) fn places_of(name: &str, mut bytes: &[u8]) -> Vec<Occurrence> {
    while !bytes.is_empty() {
        let Some(found) = take(&mut bytes).and_then(|length| cut(&mut bytes, length)) else { break };
        let Some(mut packed) = take(&mut bytes).and_then(|length| cut(&mut bytes, length)) else { break };
        if found == name.as_bytes() {
            let mut line = 0;
            return std::iter::from_fn(|| occurrence(name, &mut line, &mut packed)).collect();
        }
    }
    Vec::new()
}

fn occurrence(name: &str, line: &mut u32, bytes: &mut &[u8]) -> Option<Occurrence> {
    *line = line.checked_add(take_small(bytes)?)?;
    let column = take_small(bytes)?;
    let (role, rest) = bytes.split_first()?;
    *bytes = rest;
    let length = name.len() as u32 + if role & RAW == 0 { 0 } else { 2 };
    let start = Position { line: *line, column };
    let end = Position { line: *line, column: column.checked_add(length)? };
    let role = Role::ALL.get(usize::from(role & !RAW))?.as_str();
    Some(Occurrence { range: Range { start, end }, role })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_packed_is_found_again() {
        let text = b"def area(r#fn):\n    return area + r";
        let found = |start: usize, end: usize, line, column, role| Reference {
            start_byte: start,
            end_byte: end,
            start: agents_grammars::Position { line, column },
            role,
        };
        let references = [
            found(4, 8, 0, 4, Role::Declaration),
            found(9, 13, 0, 9, Role::Parameter),
            found(27, 31, 1, 11, Role::Read),
        ];
        let packed = pack_names(text, &references);
        assert_eq!(packed.names, ["area", "fn"]);
        let places = places_of("area", &packed.places);
        assert_eq!(places.len(), 2);
        assert_eq!((places[1].range, places[1].role), (Range::new((1, 11), (1, 15)), "read"));
        assert_eq!(places_of("fn", &packed.places)[0].range, Range::new((0, 9), (0, 13)));
        assert_eq!(places_of("are", &packed.places), []);
    }

    proptest! {
        #[test]
        fn numbers_are_read_as_they_were_written(numbers in prop::collection::vec(any::<u64>(), 0..20)) {
            let mut bytes = Vec::new();
            numbers.iter().for_each(|number| put(&mut bytes, *number));
            let mut rest = &bytes[..];
            let read: Vec<u64> = std::iter::from_fn(|| take(&mut rest)).collect();
            prop_assert_eq!(read, numbers);
        }

        #[test]
        fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = places_of("a", &bytes);
            let _ = unpack_place(&bytes);
        }
    }
}
