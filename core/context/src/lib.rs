//! What a plan, an actor or an editor can know of a workspace. So far that is [`Indexes`]: a persistent index of the source
//! files of each folder, behind the port [`CodeIndexes`](agents_domain::ports::code_index::CodeIndexes).
//!
//! One SQLite database per folder, below `index/` in the data directory, and a lock file beside it that whoever writes
//! holds; readers need no lock. A file is read again when its size, times or inode are others, and its rows are replaced
//! in one transaction, so that a process may be killed anywhere: the next scan goes on. Nothing in an index is a truth of
//! its own: a damaged one, or one of another version, is made anew.

mod codec;
mod database;
mod extract;
mod index;
mod names;
mod queries;
mod resolve;
mod scan;
mod walk;

pub use index::Indexes;
