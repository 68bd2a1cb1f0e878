CREATE TABLE automation_profiles (
    name TEXT PRIMARY KEY,
    definition TEXT NOT NULL,
    yaml_text TEXT NOT NULL,
    config_path TEXT NOT NULL,
    config_hash TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
);

-- What was computed when the decision was made; the history it came from goes on.
CREATE TABLE decision_confidences (
    decision_id TEXT PRIMARY KEY REFERENCES decisions(decision_id),
    score REAL NOT NULL CHECK (score BETWEEN 0.0 AND 1.0),
    factors TEXT NOT NULL
) WITHOUT ROWID;

CREATE INDEX idx_decisions_key ON decisions(decision_key, decision_type);
