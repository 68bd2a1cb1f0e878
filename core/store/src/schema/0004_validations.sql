-- Tools and validations share one namespace; a validation is a tool of type `validation`.
CREATE TABLE tools (
    name TEXT PRIMARY KEY,
    type TEXT NOT NULL CHECK (type IN ('tool', 'validation')),
    source TEXT NOT NULL,
    mode TEXT CHECK (mode IN ('required', 'informational')),
    wraps TEXT,
    version INTEGER NOT NULL DEFAULT 1,
    definition TEXT NOT NULL,
    yaml_text TEXT NOT NULL,
    config_path TEXT NOT NULL,
    config_hash TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    CHECK ((type = 'validation') = (mode IS NOT NULL))
);

-- No key to `tools`: the validations that come with the program are not registered.
CREATE TABLE validation_attachments (
    attachment_id TEXT PRIMARY KEY,
    validation_name TEXT NOT NULL,
    resource_id TEXT NOT NULL REFERENCES resources(resource_id) ON DELETE CASCADE,
    scope TEXT NOT NULL CHECK (scope IN ('direct', 'project', 'plan')),
    scope_target TEXT,
    args TEXT NOT NULL,
    created_at TEXT NOT NULL,
    CHECK ((scope = 'direct') = (scope_target IS NULL))
);

CREATE INDEX idx_validation_attachments_resource ON validation_attachments(resource_id);
CREATE INDEX idx_validation_attachments_name ON validation_attachments(validation_name);
