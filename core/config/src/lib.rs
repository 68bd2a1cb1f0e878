//! What people configure: the configuration keys with their resolution, and the YAML files that define entities.
//!
//! Nothing here reads the environment, prints, or opens a file that was not named by the caller.

pub mod editing;
mod entity;
mod nearest;
mod problem;
mod settings;
mod yaml;

pub use entity::{
    EntityKind, KINDS, LoadResult, Loaded, Reading, Registry, kind_of, language_hints, load_action,
    load_actor, load_agent_skill, load_automation_profile, load_language_server, load_skill, load_tool,
    load_validation, split_front_matter,
};
pub use nearest::nearest;
pub use problem::{Fix, MAX_FILE_BYTES, Problem, Severity, decode, read_file, read_settings, to_error};
pub use settings::{
    Config, ConfigFile, KEYS, Key, KeyDefault, Kind, Level, Locations, Parts, Resolved, Source, find_key,
    key, locate,
};
