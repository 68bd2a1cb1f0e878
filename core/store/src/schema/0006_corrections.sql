-- A plan that is being taken back: written before anything is changed, removed when it is settled.
CREATE TABLE rewinds (
    plan_id TEXT PRIMARY KEY REFERENCES plans(plan_id),
    data TEXT NOT NULL
) WITHOUT ROWID;

-- What was carried out already and is not run again while its decision stands.
CREATE TABLE tool_calls (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    plan_id TEXT NOT NULL REFERENCES plans(plan_id),
    call_id TEXT NOT NULL,
    decision_id TEXT NOT NULL REFERENCES decisions(decision_id),
    tool_name TEXT NOT NULL,
    args_hash TEXT NOT NULL,
    result TEXT NOT NULL,
    undone BOOLEAN NOT NULL DEFAULT FALSE,
    created_at TEXT NOT NULL
);

CREATE INDEX idx_tool_calls_plan ON tool_calls(plan_id);

-- Everything that stood at a checkpoint besides the sandboxes.
CREATE TABLE checkpoint_marks (
    checkpoint_id TEXT PRIMARY KEY REFERENCES checkpoint_metadata(checkpoint_id) ON DELETE CASCADE,
    data TEXT NOT NULL
) WITHOUT ROWID;

CREATE INDEX idx_corrections_new ON correction_attempts(new_decision_id);
CREATE INDEX idx_corrections_executing ON correction_attempts(plan_id) WHERE state = 'executing';
