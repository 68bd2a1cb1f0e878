//! The members of a JSON object, without reading what is in them.
//!
//! Written here because every JSON library's checked skipping recurses: a body of nothing but brackets would overflow
//! the reader's stack and end the process. This one counts, so any depth is as good as another. Insides are only
//! balanced here; whoever reads a value finds what else is wrong with it.

use std::borrow::Cow;
use std::ops::Range;

use serde::de::IgnoredAny;

/// Why a text is no JSON object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{expected} expected at byte {at}")]
pub(crate) struct ScanError {
    expected: &'static str,
    at: usize,
}

/// The members of the object `text` in order: decoded keys and raw values. Nothing follows an error.
pub(crate) fn members(text: &str) -> Members<'_> {
    Members { text, at: 0, state: State::Start }
}

/// Where the id of a response is, looking no further than to the start of its result: what is behind may be long, and is
/// passed on as it is. `None` for other messages, and for those whose result comes first.
pub(crate) fn response_id(text: &str) -> Option<Range<usize>> {
    let mut members = members(text);
    members.past(b'{', "`{`").ok()?;
    let mut id = None;
    loop {
        match &*members.key().ok()? {
            "result" | "error" => return id.filter(|_| text.trim_ascii_end().ends_with('}')),
            "method" => return None,
            key => {
                let is_id = key == "id";
                let value = members.value().ok()?;
                if is_id {
                    id = Some(members.at - value.len()..members.at);
                }
            }
        }
        members.past(b',', "`,`").ok()?;
    }
}

#[derive(Debug)]
pub(crate) struct Members<'a> {
    text: &'a str,
    at: usize,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    AfterMember,
    End,
}

impl<'a> Iterator for Members<'a> {
    type Item = Result<(Cow<'a, str>, &'a str), ScanError>;

    fn next(&mut self) -> Option<Self::Item> {
        let member = match self.state {
            State::End => return None,
            State::Start => self.first(),
            State::AfterMember => self.further(),
        };
        self.state = if matches!(member, Ok(Some(_))) { State::AfterMember } else { State::End };
        member.transpose()
    }
}

impl<'a> Members<'a> {
    fn first(&mut self) -> Result<Option<(Cow<'a, str>, &'a str)>, ScanError> {
        self.past(b'{', "`{`")?;
        if self.peek() == Some(b'}') { self.end() } else { self.member().map(Some) }
    }

    fn further(&mut self) -> Result<Option<(Cow<'a, str>, &'a str)>, ScanError> {
        if self.peek() == Some(b'}') {
            return self.end();
        }
        self.past(b',', "`,` or `}`")?;
        self.member().map(Some)
    }

    /// At the closing brace: nothing may follow it.
    fn end<T>(&mut self) -> Result<Option<T>, ScanError> {
        self.at += 1;
        match self.peek() {
            None => Ok(None),
            Some(_) => Err(self.error("nothing more")),
        }
    }

    fn member(&mut self) -> Result<(Cow<'a, str>, &'a str), ScanError> {
        let key = self.key()?;
        let value = self.value()?;
        Ok((key, value))
    }

    fn key(&mut self) -> Result<Cow<'a, str>, ScanError> {
        if self.peek() != Some(b'"') {
            return Err(self.error("a key"));
        }
        let start = self.at;
        let raw = self.string()?;
        let key = match &raw[1..raw.len() - 1] {
            plain if !plain.contains('\\') => Cow::Borrowed(plain),
            _ => serde_json::from_str(raw)
                .map(Cow::Owned)
                .map_err(|_| ScanError { expected: "a key", at: start })?,
        };
        self.past(b':', "`:`")?;
        Ok(key)
    }

    fn value(&mut self) -> Result<&'a str, ScanError> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'{' | b'[') => self.container(),
            _ => self.scalar(),
        }
    }

    /// The raw string that begins here.
    fn string(&mut self) -> Result<&'a str, ScanError> {
        let start = self.at;
        self.at = self.after_string(start)?;
        Ok(&self.text[start..self.at])
    }

    /// Where the string that begins at `start` has ended.
    fn after_string(&self, start: usize) -> Result<usize, ScanError> {
        let bytes = self.text.as_bytes();
        let mut at = start + 1;
        while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
            at += found;
            if bytes[at] == b'"' {
                return Ok(at + 1);
            }
            at += 2;
        }
        Err(ScanError { expected: "`\"`", at: bytes.len() })
    }

    /// The raw object or array that begins here.
    fn container(&mut self) -> Result<&'a str, ScanError> {
        let bytes = self.text.as_bytes();
        let (start, mut at, mut depth) = (self.at, self.at, 0usize);
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'"' => {
                    at = self.after_string(at)?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            at += 1;
            if depth == 0 {
                self.at = at;
                return Ok(&self.text[start..at]);
            }
        }
        Err(ScanError { expected: "`}` or `]`", at: bytes.len() })
    }

    /// The number, `true`, `false` or `null` that begins here.
    fn scalar(&mut self) -> Result<&'a str, ScanError> {
        let rest = &self.text[self.at..];
        let length =
            rest.find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c)).unwrap_or(rest.len());
        let token = &rest[..length];
        if serde_json::from_str::<IgnoredAny>(token).is_err() {
            return Err(self.error("a value"));
        }
        self.at += length;
        Ok(token)
    }

    fn past(&mut self, byte: u8, expected: &'static str) -> Result<(), ScanError> {
        if self.peek() != Some(byte) {
            return Err(self.error(expected));
        }
        self.at += 1;
        Ok(())
    }

    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().position(|b| !b" \t\r\n".contains(b)).unwrap_or(rest.len());
        self.text.as_bytes().get(self.at).copied()
    }

    fn error(&self, expected: &'static str) -> ScanError {
        ScanError { expected, at: self.at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Map, Value};

    fn read(text: &str) -> Result<Vec<(String, String)>, ScanError> {
        members(text).map(|member| member.map(|(key, value)| (key.into_owned(), value.to_owned()))).collect()
    }

    #[test]
    fn values_come_out_raw_whatever_is_in_them() {
        let text = r#" { "a" : [1, "]\"", {"b":{}}] , "\u0062" : "}\\" ,"c":-1.5e+3,"d":null } "#;
        let expected = [("a", r#"[1, "]\"", {"b":{}}]"#), ("b", r#""}\\""#), ("c", "-1.5e+3"), ("d", "null")];
        assert_eq!(read(text).unwrap(), expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
        assert_eq!(read("{ }").unwrap(), []);
    }

    #[test]
    fn the_id_of_a_response_is_found_without_reading_its_result() {
        let id = |text: &str| response_id(text).map(|range| text[range].to_owned());
        assert_eq!(id(r#"{"jsonrpc":"2.0", "id" : 17 ,"result":[[["never read"}"#).as_deref(), Some("17"));
        assert_eq!(id(r#"{"id":"x","error":{}}"#).as_deref(), Some("\"x\""));
        for other in [
            r#"{"result":1,"id":1}"#,
            r#"{"id":1,"method":"a","result":1}"#,
            r#"{"id":1,"result":"cut"#,
            r#"{"id":1}"#,
            "[]",
            "",
        ] {
            assert_eq!(id(other), None, "{other}");
        }
    }

    #[test]
    fn an_error_says_what_was_expected_and_where() {
        for (text, expected) in [
            ("", "`{` expected at byte 0"),
            ("[]", "`{` expected at byte 0"),
            ("{", "a key expected at byte 1"),
            ("{a:1}", "a key expected at byte 1"),
            ("{\"a\"}", "`:` expected at byte 4"),
            ("{\"a\":}", "a value expected at byte 5"),
            ("{\"a\":tru}", "a value expected at byte 5"),
            ("{\"a\":01}", "a value expected at byte 5"),
            ("{\"a\":1 \"b\":2}", "`,` or `}` expected at byte 7"),
            ("{\"a\":1,}", "a key expected at byte 7"),
            ("{\"a\":1}}", "nothing more expected at byte 7"),
            ("{} {}", "nothing more expected at byte 3"),
            ("{\"a\":\"\\\"}", "`\"` expected at byte 9"),
            ("{\"a\":[[]", "`}` or `]` expected at byte 8"),
            ("{\"\\x\":1}", "a key expected at byte 1"),
        ] {
            assert_eq!(read(text).unwrap_err().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn any_depth_is_as_good_as_another() {
        let depth = 1_000_000;
        let value = "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!(read(&format!("{{\"a\":{value}}}")).unwrap(), [("a".to_owned(), value)]);
        assert!(read(&("{\"a\":".to_owned() + &"[".repeat(depth))).is_err());
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[\"\\\\{}\\[\\],:a\u{1}é]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[\"\\\\{}:a]{0,3}", inner, 0..4)
                    .prop_map(|map| Value::from(map.into_iter().collect::<Map<_, _>>())),
            ]
        })
    }

    proptest! {
        /// Any object falls into the members it was made of, in either layout.
        #[test]
        fn members_are_those_of_the_object(
            map in prop::collection::btree_map("[\"\\\\{}:ab]{0,4}", json(), 0..6),
            pretty in any::<bool>(),
        ) {
            let object = Value::from(map.into_iter().collect::<Map<_, _>>());
            let text = if pretty { serde_json::to_string_pretty(&object) } else { serde_json::to_string(&object) }.unwrap();
            let read: Map<String, Value> = read(&text).unwrap().into_iter()
                .map(|(key, value)| (key, serde_json::from_str(&value).unwrap()))
                .collect();
            // Read again: serde_json's floats do not survive their own round trip.
            prop_assert_eq!(Value::from(read), serde_json::from_str::<Value>(&text).unwrap());
        }

        /// What serde_json takes for an object is never refused, and nothing panics.
        #[test]
        fn no_object_is_refused(text in r#"\{("[a"\\é]{0,2}"|[:,{}\[\] 01ntrue.-]){0,12}\}"#) {
            let ours = read(&text);
            if serde_json::from_str::<Map<String, Value>>(&text).is_ok() {
                prop_assert!(ours.is_ok(), "{:?}", ours);
            }
        }
    }
}
