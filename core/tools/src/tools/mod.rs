//! The tools, a file for each or for those that are alike.

/// Arguments of a tool: its own fields and those that all tools about the same thing have.
macro_rules! arguments {
    ($(#[$meta:meta])* $name:ident about a symbol { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* }) => {
        arguments! {
            $(#[$meta])* $name about a file {
                /// 1-based line of the place meant.
                #[serde(default)]
                line: Option<u32>,
                /// 1-based column in characters; needs `line`.
                #[serde(default)]
                column: Option<u32>,
                /// Name of the symbol meant, in place of a column: on `line`, or without it where the file declares it
                /// (`Class.method` is understood).
                #[serde(default)]
                symbol: Option<String>,
                $($(#[$field_meta])* $field: $type,)*
            }
        }

        impl $name {
            fn spot(&self) -> crate::place::Spot<'_> {
                crate::place::Spot { line: self.line, column: self.column, symbol: self.symbol.as_deref() }
            }
        }
    };
    ($(#[$meta:meta])* $name:ident about a file { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* }) => {
        arguments! {
            $(#[$meta])* $name {
                /// The file, relative to the workspace.
                path: String,
                $($(#[$field_meta])* $field: $type,)*
            }
        }
    };
    ($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            $($(#[$field_meta])* $field: $type,)*
            /// Which of the plan's resources, by name or id; needed only where a path is in several.
            #[serde(default)]
            resource: Option<String>,
        }
    };
}

pub(crate) mod actions;
pub(crate) mod changes;
pub(crate) mod completions;
pub(crate) mod diagnostics;
pub(crate) mod hierarchy;
pub(crate) mod hover;
pub(crate) mod impact;
pub(crate) mod places;
pub(crate) mod preview;
pub(crate) mod signature;
pub(crate) mod symbols;
