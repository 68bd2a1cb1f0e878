//! A server of chat models on the loopback interface whose answers are a script, so that what asks models can be tested
//! without one.
//!
//! It speaks OpenAI's chat completions (`/v1/chat/completions`) and responses (`/v1/responses`) and Anthropic's messages
//! (`/v1/messages`), streamed and whole. A [`Script`] is a list of replies; a request gets the first one that wants it and
//! was not used up. A request that no reply wants is refused with status 400 and kept as unexpected: a test that forgot
//! something fails loudly ([`Server::assert_expected`], also when the server is dropped).
//!
//! ```json
//! {"replies": [
//!   {"when": {"last": "Decide on the strategy"}, "calls": [{"tool": "finish", "args": {"headline": "Do it"}}]},
//!   {"when": {"contains": ["Carry this plan out"]}, "fault": {"status": 429, "retry_after": 0}},
//!   {"when": {"contains": ["Carry this plan out"]}, "thinking": "hm", "text": "Done", "usage": {"input": 7, "output": 3}}]}
//! ```
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "test support: what it cannot do fails the test, with a word on why"
)]

mod answer;
mod protocol;
mod script;
mod server;

pub use protocol::Protocol;
pub use script::{Call, Fault, Reply, Script, Tokens, When};
pub use server::{Asked, Server};
