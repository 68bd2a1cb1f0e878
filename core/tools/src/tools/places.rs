//! `lsp/definition`, `lsp/type-definition`, `lsp/implementation`, `lsp/references`: places of a symbol.

use agents_domain::language_server::Capability;
use agents_domain::ports::code_intelligence::PlaceQuestion;

use crate::page::{Hit, Results, Window};
use crate::{Lens, Tool};

macro_rules! place_tool {
    ($name:ident, $tool:literal, $what:literal, $summary:literal, $capability:ident, $question:expr,
     { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* }) => {
        arguments! {
            #[doc = $summary]
            $name about a symbol {
                $($(#[$field_meta])* $field: $type,)*
                /// Source lines to show before and after each place; none unless given, at most 10.
                #[serde(default)]
                context: u32,
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
            type Output = Results<Hit>;

            async fn run(self, lens: &Lens) -> Result<Self::Output, String> {
                let file = lens.file(self.resource.as_deref(), &self.path)?;
                let position = self.spot().find(&file).await?;
                let question: fn(&Self) -> PlaceQuestion = $question;
                let question = question(&self);
                let (server, mut found) = file
                    .first($what, |languages, server| languages.places(server, &file.path, position, question))
                    .await?;
                if matches!(question, PlaceQuestion::References { .. }) {
                    found.sort_by(|a, b| (a.outside, &a.path, a.range).cmp(&(b.outside, &b.path, b.range)));
                }
                let window = Window::new(self.limit, self.offset);
                Ok(window.cut(&server.to_string(), &found, |place| {
                    Hit::of(file.workspace, place, self.context)
                }))
            }
        }
    };
}

place_tool!(
    Definition,
    "lsp/definition",
    "definitions",
    "Where a symbol is defined",
    Definitions,
    |_| PlaceQuestion::Definition,
    {}
);

place_tool!(
    TypeDefinition,
    "lsp/type-definition",
    "type definitions",
    "Where the type of a symbol is defined",
    Definitions,
    |_| PlaceQuestion::TypeDefinition,
    {}
);

place_tool!(
    Implementation,
    "lsp/implementation",
    "implementations",
    "What implements an interface, a trait, an abstract method or a virtual function",
    Definitions,
    |_| PlaceQuestion::Implementation,
    {}
);

place_tool!(
    References,
    "lsp/references",
    "references",
    "Every place that refers to a symbol, in all files, in the order of the files",
    References,
    |this| PlaceQuestion::References { include_declaration: this.include_declaration },
    {
        /// Also the places where it is declared.
        #[serde(default)]
        include_declaration: bool,
    }
);
