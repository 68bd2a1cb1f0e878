-- `discovered` is what a skill's MCP servers and Agent Skills folders said of themselves; values of variables never get here.
CREATE TABLE skills (
    name TEXT PRIMARY KEY,
    definition TEXT NOT NULL,
    discovered TEXT NOT NULL,
    yaml_text TEXT NOT NULL,
    config_path TEXT NOT NULL,
    config_hash TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
);
