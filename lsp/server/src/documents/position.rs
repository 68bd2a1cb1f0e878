//! What a position's `character` counts, and how client and server agree on it.

use serde_json::Value;

/// The unit of `Position.character` for a whole session (LSP 3.17, `PositionEncodingKind`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PositionEncoding {
    /// Bytes of UTF-8.
    Utf8,
    /// Code units of UTF-16; what a client means that says nothing.
    #[default]
    Utf16,
    /// Unicode scalar values.
    Utf32,
}

impl PositionEncoding {
    /// The protocol's name: `utf-8`, `utf-16` or `utf-32`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Utf16 => "utf-16",
            Self::Utf32 => "utf-32",
        }
    }

    /// The encoding of that name of the protocol.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Utf8, Self::Utf16, Self::Utf32].into_iter().find(|encoding| encoding.as_str() == name)
    }

    /// Chooses from the client's capabilities: UTF-8 when offered (it is how the text is stored), else the first known
    /// one of the client's list, which is in its order of preference, else UTF-16.
    pub fn negotiate(client_capabilities: &Value) -> Self {
        let offered = client_capabilities.pointer("/general/positionEncodings").and_then(Value::as_array);
        let known: Vec<Self> =
            offered.into_iter().flatten().filter_map(Value::as_str).filter_map(Self::from_name).collect();
        match known.first() {
            _ if known.contains(&Self::Utf8) => Self::Utf8,
            Some(first) => *first,
            None => Self::Utf16,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn negotiated(offer: Value) -> &'static str {
        PositionEncoding::negotiate(&json!({ "general": { "positionEncodings": offer } })).as_str()
    }

    #[test]
    fn utf_8_is_taken_whenever_it_is_offered() {
        assert_eq!(negotiated(json!(["utf-16", "utf-8"])), "utf-8");
        assert_eq!(negotiated(json!(["utf-32", "utf-16", "utf-8"])), "utf-8");
    }

    #[test]
    fn without_utf_8_the_clients_order_of_preference_decides() {
        assert_eq!(negotiated(json!(["utf-32", "utf-16"])), "utf-32");
        assert_eq!(negotiated(json!(["utf-16", "utf-32"])), "utf-16");
        assert_eq!(negotiated(json!(["utf-7", "utf-32"])), "utf-32");
    }

    #[test]
    fn a_client_that_offers_nothing_known_means_utf_16() {
        for offer in [json!(null), json!([]), json!(["utf-7", 8]), json!("utf-8")] {
            assert_eq!(negotiated(offer), "utf-16");
        }
        assert_eq!(PositionEncoding::negotiate(&Value::Null), PositionEncoding::Utf16);
    }
}
