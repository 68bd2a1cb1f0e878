//! Typed ULIDs, so that a decision can never be passed where a plan is meant.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ulid::Ulid;

/// A text that is not a ULID of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not {kind} id: expected 26 characters of Crockford base 32, such as 01ARZ3NDEKTSV4RRFFQ69G5FAV"
)]
pub struct InvalidId {
    /// What kind of id was expected, with its article.
    pub kind: &'static str,
    /// What was given.
    pub text: String,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $kind:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Ulid);

        impl $name {
            /// What a printed id of this kind starts with; empty for most kinds.
            pub const PREFIX: &'static str = $prefix;

            /// Wraps a ULID made elsewhere (ids are made by the engine's clock, never here).
            pub fn from_ulid(ulid: Ulid) -> Self {
                Self(ulid)
            }

            /// The bare ULID.
            pub fn ulid(self) -> Ulid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}{}", $prefix, self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                let invalid = || InvalidId { kind: $kind, text: text.to_owned() };
                let bare = text.strip_prefix($prefix).unwrap_or(text);
                if bare.len() != 26 {
                    return Err(invalid());
                }
                Ulid::from_string(bare).map(Self).map_err(|_| invalid())
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;

            fn try_from(text: String) -> Result<Self, InvalidId> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.to_string()
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string",
                    "pattern": concat!("^", $prefix, "[0-9A-HJKMNP-TV-Z]{26}$"),
                    "description": concat!("The ULID of ", $kind, ".")
                })
            }
        }
    };
}

id!(/// A plan (root or child).
    PlanId, "", "a plan");
id!(/// A decision.
    DecisionId, "", "a decision");
id!(/// A registered resource.
    ResourceId, "", "a resource");
id!(/// One recorded write of one file.
    ChangeId, "", "a change");
id!(/// A checkpoint of a plan's sandbox; printed as `cp_<ULID>`.
    CheckpointId, "cp_", "a checkpoint");
id!(/// An invariant; printed as `inv_<ULID>`.
    InvariantId, "inv_", "an invariant");
id!(/// A correction attempt.
    CorrectionId, "", "a correction attempt");
id!(/// A validation attached to a resource.
    AttachmentId, "", "an attachment");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_round_trips_with_and_without_its_prefix() {
        let bare = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
        assert_eq!(bare.parse::<PlanId>().unwrap().to_string(), bare);
        let checkpoint: CheckpointId = bare.parse().unwrap();
        assert_eq!(checkpoint.to_string(), format!("cp_{bare}"));
        assert_eq!(checkpoint.to_string().parse::<CheckpointId>().unwrap(), checkpoint);
    }

    #[test]
    fn a_wrong_id_says_which_kind_was_expected() {
        let error = "01HXM".parse::<DecisionId>().unwrap_err();
        assert!(error.to_string().contains("a decision id"), "{error}");
        assert!("01ARZ3NDEKTSV4RRFFQ69G5FAU!".parse::<PlanId>().is_err());
    }
}
