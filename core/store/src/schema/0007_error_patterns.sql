-- Rows are in the order of what happened; patterns are counted from them.
CREATE TABLE failures (
    failure_id INTEGER PRIMARY KEY AUTOINCREMENT,
    plan_id TEXT NOT NULL REFERENCES plans(plan_id),
    phase TEXT NOT NULL,
    step TEXT,
    category TEXT NOT NULL,
    tool_name TEXT,
    decision_type TEXT,
    path_shape TEXT,
    message TEXT NOT NULL,
    hints TEXT NOT NULL,
    outcome TEXT NOT NULL,
    created_at TEXT NOT NULL
);

CREATE INDEX idx_failures_plan ON failures(plan_id);
CREATE INDEX idx_failures_shape ON failures(category, tool_name, decision_type, path_shape);
