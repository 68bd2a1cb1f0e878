-- What plans decided to hand on, and the plans that were made for it. Rows are in the order decided.
CREATE TABLE spawns (
    decision_id TEXT NOT NULL REFERENCES decisions(decision_id),
    call TEXT NOT NULL,
    plan_id TEXT NOT NULL REFERENCES plans(plan_id),
    child_plan_id TEXT UNIQUE REFERENCES plans(plan_id),
    stage TEXT NOT NULL CHECK (stage IN ('decided', 'started', 'conflicted', 'merged', 'skipped')),
    data TEXT NOT NULL,
    PRIMARY KEY (decision_id, call),
    CHECK (stage NOT IN ('started', 'conflicted', 'merged') OR child_plan_id IS NOT NULL)
);

CREATE INDEX idx_spawns_plan ON spawns(plan_id);
