//! Chat models: which providers there are, how they are asked, and what happens when they fail.
//!
//! - [`Catalogue`] finds a model by `<provider>/<model>` behind the port [`Models`]; [`Settings`] says what it may use.
//! - [`cassette`] keeps calls and plays them back.
//!
//! A call goes through these hands, the outermost first: the cassette, the check of the answer's schema ([`schema`]),
//! attempts ([`attempts`]), one attempt over the wire ([`wire`], the crate `genai`). Nothing here reads the environment.

mod attempts;
pub mod cassette;
mod catalogue;
mod failing;
mod names;
mod prices;
mod providers;
pub(crate) mod schema;
mod wire;

pub(crate) use catalogue::REPLAY;
pub use catalogue::{Catalogue, Settings};
pub use prices::Prices;
pub use providers::{Custom, Protocol};
