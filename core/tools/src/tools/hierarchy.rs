//! `lsp/call-hierarchy` and `lsp/type-hierarchy`.

use agents_domain::language_server::Capability;
use agents_domain::ports::code_intelligence::Hierarchy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::page::{Hit, Results, Window};
use crate::{Lens, Tool};

/// Which way calls are followed.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CallWay {
    /// What calls the symbol.
    #[default]
    Callers,
    /// What the symbol calls.
    Callees,
}

/// Which way types are followed.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TypeWay {
    /// What is derived from the type.
    #[default]
    Subtypes,
    /// What the type is derived from.
    Supertypes,
}

/// A symbol on the other end.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Related {
    /// The symbol.
    #[serde(flatten)]
    symbol: Hit,
    /// For callers: the lines the calls are on, from 1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    call_lines: Vec<u32>,
}

macro_rules! hierarchy_tool {
    ($name:ident, $tool:literal, $what:literal, $summary:literal, $capability:ident, $way:ident) => {
        arguments! {
            #[doc = $summary]
            $name about a symbol {
                /// Which way to go.
                #[serde(default)]
                direction: $way,
                /// Results on the page; 50 unless given, at most 500.
                #[serde(default)]
                limit: Option<u32>,
                /// Results to leave out at the beginning: the `next_offset` of the page before.
                #[serde(default)]
                offset: Option<u32>,
            }
        }

        impl Tool for $name {
            const NAME: &'static str = $tool;
            const SUMMARY: &'static str = $summary;
            const CAPABILITY: Option<Capability> = Some(Capability::$capability);
            type Output = Results<Related>;

            async fn run(self, lens: &Lens) -> Result<Self::Output, String> {
                let file = lens.file(self.resource.as_deref(), &self.path)?;
                let position = self.spot().find(&file).await?;
                let way = Hierarchy::from(self.direction);
                let (server, found) = file
                    .first($what, |languages, server| languages.hierarchy(server, &file.path, position, way))
                    .await?;
                let window = Window::new(self.limit, self.offset);
                Ok(window.cut(&server.to_string(), &found, |one| {
                    let mut call_lines: Vec<u32> =
                        one.calls.iter().map(|range| range.start.line + 1).collect();
                    call_lines.dedup();
                    call_lines.truncate(100);
                    let symbol = Hit {
                        name: Some(one.name.clone()),
                        kind: Some(one.kind.clone()),
                        container: one.container.clone(),
                        ..Hit::of(file.workspace, &one.place, 0)
                    };
                    Related { symbol, call_lines }
                }))
            }
        }
    };
}

impl From<CallWay> for Hierarchy {
    fn from(way: CallWay) -> Self {
        match way {
            CallWay::Callers => Self::Callers,
            CallWay::Callees => Self::Callees,
        }
    }
}

impl From<TypeWay> for Hierarchy {
    fn from(way: TypeWay) -> Self {
        match way {
            TypeWay::Subtypes => Self::Subtypes,
            TypeWay::Supertypes => Self::Supertypes,
        }
    }
}

hierarchy_tool!(
    CallHierarchy,
    "lsp/call-hierarchy",
    "a hierarchy of calls",
    "What calls a function, or what it calls, one level at a time",
    References,
    CallWay
);

hierarchy_tool!(
    TypeHierarchy,
    "lsp/type-hierarchy",
    "a hierarchy of types",
    "What a type is derived from, or what is derived from it, one level at a time",
    Definitions,
    TypeWay
);
