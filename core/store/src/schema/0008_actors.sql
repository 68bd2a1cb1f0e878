-- Actors that people define. What a file says depends on the environment, so only its text is kept.
CREATE TABLE actors (
    name TEXT PRIMARY KEY,
    namespace TEXT NOT NULL,
    yaml_text TEXT NOT NULL,
    config_path TEXT NOT NULL,
    config_hash TEXT NOT NULL,
    overrides TEXT NOT NULL,
    is_default INTEGER NOT NULL DEFAULT 0 CHECK (is_default IN (0, 1)),
    runs INTEGER NOT NULL DEFAULT 0 CHECK (runs >= 0),
    cost_usd REAL NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
);

CREATE UNIQUE INDEX idx_actors_default ON actors(is_default) WHERE is_default = 1;
