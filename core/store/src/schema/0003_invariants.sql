CREATE TABLE invariants (
    id TEXT PRIMARY KEY,
    scope TEXT NOT NULL CHECK (scope IN ('global', 'project', 'action', 'plan')),
    scope_target TEXT,
    text TEXT NOT NULL,
    non_overridable BOOLEAN NOT NULL DEFAULT FALSE,
    created_at TEXT NOT NULL,
    CHECK ((scope = 'global') = (scope_target IS NULL))
);

CREATE INDEX idx_invariants_scope ON invariants(scope, scope_target);

-- What came of a plan's invariants at the start of its Strategize; once per root plan.
CREATE TABLE reconciliations (
    plan_id TEXT PRIMARY KEY REFERENCES plans(plan_id),
    reconciler TEXT NOT NULL,
    result TEXT NOT NULL,
    created_at TEXT NOT NULL
) WITHOUT ROWID;
