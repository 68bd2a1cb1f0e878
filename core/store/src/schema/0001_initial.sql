-- Times are text as the program writes them: YYYY-MM-DDTHH:MM:SS.ffffffZ. The defaults are for people with a shell.
-- `data` columns hold the whole record as JSON; the columns beside it are what is searched and listed.

CREATE TABLE plans (
    plan_id TEXT PRIMARY KEY,
    parent_plan_id TEXT REFERENCES plans(plan_id),
    root_plan_id TEXT NOT NULL REFERENCES plans(plan_id),
    action_name TEXT NOT NULL,
    phase TEXT NOT NULL DEFAULT 'strategize',
    state TEXT NOT NULL DEFAULT 'queued',
    attempt INTEGER NOT NULL DEFAULT 1,
    automation_profile_name TEXT NOT NULL,
    effective_profile_snapshot TEXT NOT NULL,
    arguments TEXT,
    project_names TEXT NOT NULL,
    strategy_actor_name TEXT,
    execution_actor_name TEXT,
    estimation_actor_name TEXT,
    invariant_actor_name TEXT,
    created_by TEXT,
    created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    updated_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    completed_at TEXT,
    error_message TEXT,
    error_traceback TEXT,
    cost_estimate_usd REAL,
    cost_actual_usd REAL,
    token_count_input INTEGER DEFAULT 0,
    token_count_output INTEGER DEFAULT 0,
    result_success BOOLEAN,
    awaiting TEXT,
    data TEXT NOT NULL,
    CONSTRAINT plans_state_of_phase CHECK (
        (phase IN ('strategize', 'execute')
            AND state IN ('queued', 'processing', 'errored', 'complete', 'cancelled'))
        OR (phase = 'apply'
            AND state IN ('queued', 'processing', 'errored', 'applied', 'constrained', 'cancelled'))
    ),
    CONSTRAINT plans_awaiting CHECK (awaiting IS NULL OR CASE phase || '/' || state
        WHEN 'strategize/queued' THEN awaiting = 'confirm_strategize'
        WHEN 'strategize/processing' THEN
            awaiting IN ('decision', 'retry', 'budget', 'language_server', 'recovery')
        WHEN 'strategize/complete' THEN awaiting = 'execute_approval'
        WHEN 'execute/queued' THEN awaiting = 'rollback'
        WHEN 'execute/processing' THEN
            awaiting IN ('decision', 'spawn', 'retry', 'restore', 'validation_fix', 'strategy_revision', 'budget',
                'language_server', 'recovery', 'child_plan')
        WHEN 'execute/complete' THEN awaiting = 'apply_approval'
        WHEN 'apply/constrained' THEN awaiting = 'reversion'
        ELSE FALSE
    END)
);

CREATE INDEX idx_plans_parent ON plans(parent_plan_id);
CREATE INDEX idx_plans_root ON plans(root_plan_id);
CREATE INDEX idx_plans_phase_state ON plans(phase, state);
CREATE INDEX idx_plans_action ON plans(action_name);
CREATE INDEX idx_plans_created ON plans(created_at);
-- Everything a list shows, so that a list never touches the wide rows.
CREATE INDEX idx_plans_list ON plans(
    created_at, plan_id, parent_plan_id, phase, state, awaiting, action_name, project_names, attempt, completed_at
);

CREATE TABLE plan_projects (
    project_name TEXT NOT NULL,
    plan_id TEXT NOT NULL REFERENCES plans(plan_id),
    namespace TEXT NOT NULL,
    PRIMARY KEY (project_name, plan_id)
) WITHOUT ROWID;

CREATE INDEX idx_plan_projects_plan ON plan_projects(plan_id, namespace);

-- No key to `resources`: a plan's history outlives them.
CREATE TABLE plan_resources (
    resource_id TEXT NOT NULL,
    plan_id TEXT NOT NULL REFERENCES plans(plan_id),
    PRIMARY KEY (resource_id, plan_id)
) WITHOUT ROWID;

CREATE INDEX idx_plan_resources_plan ON plan_resources(plan_id);

CREATE TABLE leases (
    plan_id TEXT PRIMARY KEY REFERENCES plans(plan_id),
    epoch INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE actor_runs (
    plan_id TEXT NOT NULL REFERENCES plans(plan_id),
    phase TEXT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (plan_id, phase)
);

CREATE TABLE decisions (
    decision_id TEXT PRIMARY KEY,
    plan_id TEXT NOT NULL REFERENCES plans(plan_id),
    parent_decision_id TEXT REFERENCES decisions(decision_id),
    decision_type TEXT NOT NULL CHECK (decision_type IN (
        'prompt_definition', 'invariant_enforced', 'strategy_choice', 'implementation_choice', 'resource_selection',
        'subplan_spawn', 'subplan_parallel_spawn', 'tool_invocation', 'error_recovery', 'validation_response',
        'user_intervention'
    )),
    question TEXT NOT NULL,
    chosen_option TEXT NOT NULL,
    alternatives_considered TEXT,
    confidence_score REAL CHECK (confidence_score BETWEEN 0.0 AND 1.0),
    rationale TEXT,
    context_snapshot TEXT NOT NULL,
    downstream_plan_ids TEXT,
    artifacts_produced TEXT,
    is_correction BOOLEAN DEFAULT FALSE,
    corrects_decision_id TEXT REFERENCES decisions(decision_id),
    superseded_by TEXT REFERENCES decisions(decision_id),
    sequence_number INTEGER NOT NULL,
    created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    actor_reasoning TEXT,
    correction_reason TEXT,
    decision_key TEXT,
    depends_on TEXT NOT NULL,
    pending BOOLEAN NOT NULL DEFAULT FALSE,
    approval TEXT
);

CREATE INDEX idx_decisions_plan ON decisions(plan_id);
CREATE INDEX idx_decisions_parent ON decisions(parent_decision_id);
CREATE INDEX idx_decisions_type ON decisions(decision_type);
CREATE INDEX idx_decisions_superseded ON decisions(superseded_by) WHERE superseded_by IS NOT NULL;
CREATE UNIQUE INDEX idx_decisions_sequence ON decisions(plan_id, sequence_number);
CREATE INDEX idx_decisions_root ON decisions(plan_id) WHERE parent_decision_id IS NULL AND superseded_by IS NULL;
CREATE INDEX idx_decisions_pending ON decisions(plan_id) WHERE pending;

CREATE TRIGGER decisions_are_never_deleted BEFORE DELETE ON decisions
BEGIN
    SELECT RAISE(ABORT, 'a decision is never deleted');
END;

CREATE TRIGGER decisions_are_what_they_were BEFORE UPDATE OF
    decision_id, plan_id, parent_decision_id, decision_type, question, chosen_option, alternatives_considered,
    confidence_score, rationale, context_snapshot, is_correction, corrects_decision_id, sequence_number, created_at,
    actor_reasoning, correction_reason, decision_key, depends_on
ON decisions
BEGIN
    SELECT RAISE(ABORT, 'what was decided never changes');
END;

CREATE TRIGGER decisions_are_superseded_once BEFORE UPDATE OF superseded_by ON decisions
WHEN old.superseded_by IS NOT NULL OR NOT EXISTS (
    SELECT 1 FROM decisions AS other
    WHERE other.decision_id = new.superseded_by
        AND other.plan_id = old.plan_id AND other.superseded_by IS NULL
        AND other.sequence_number > old.sequence_number
)
BEGIN
    SELECT RAISE(ABORT, 'a decision is superseded once, by a later one of its plan that is in force');
END;

CREATE TRIGGER decisions_follow_each_other BEFORE INSERT ON decisions
WHEN new.sequence_number <= (
    SELECT coalesce(max(sequence_number), 0) FROM decisions WHERE plan_id = new.plan_id
)
BEGIN
    SELECT RAISE(ABORT, 'the sequence numbers of a plan rise');
END;

CREATE TRIGGER decisions_begin_in_force BEFORE INSERT ON decisions
WHEN new.superseded_by IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'a decision is recorded before it is superseded');
END;

CREATE TRIGGER decisions_hang_together BEFORE INSERT ON decisions
WHEN EXISTS (
    SELECT 1 FROM (SELECT new.parent_decision_id AS id UNION ALL SELECT new.corrects_decision_id) AS named
    WHERE named.id IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM decisions AS other WHERE other.decision_id = named.id AND other.plan_id = new.plan_id
    )
)
BEGIN
    SELECT RAISE(ABORT, 'the parent of a decision and what it corrects are of its plan');
END;

-- A replacement is recorded before the root it corrects is superseded, so both are there for a moment; that only one
-- is left is checked at the end of the transaction.
CREATE TRIGGER decisions_have_one_root BEFORE INSERT ON decisions
WHEN new.parent_decision_id IS NULL AND (new.decision_type <> 'prompt_definition' OR EXISTS (
    SELECT 1 FROM decisions AS root
    WHERE root.plan_id = new.plan_id AND root.parent_decision_id IS NULL AND root.superseded_by IS NULL
        AND root.decision_id IS NOT new.corrects_decision_id
))
BEGIN
    SELECT RAISE(ABORT, 'the decisions of a plan have one root, a prompt_definition');
END;

CREATE TABLE decision_dependencies (
    upstream_decision_id TEXT NOT NULL REFERENCES decisions(decision_id),
    downstream_decision_id TEXT REFERENCES decisions(decision_id),
    dependency_type TEXT NOT NULL CHECK (dependency_type IN ('decision', 'plan', 'artifact')),
    downstream_ref TEXT NOT NULL,
    PRIMARY KEY (upstream_decision_id, dependency_type, downstream_ref),
    CHECK ((dependency_type = 'decision') = (downstream_decision_id IS NOT NULL))
);

CREATE TRIGGER decisions_depend_on_earlier_ones BEFORE INSERT ON decision_dependencies
WHEN new.dependency_type = 'decision' AND NOT EXISTS (
    SELECT 1 FROM decisions AS upstream, decisions AS downstream
    WHERE upstream.decision_id = new.upstream_decision_id AND downstream.decision_id = new.downstream_decision_id
        AND upstream.plan_id = downstream.plan_id AND upstream.sequence_number < downstream.sequence_number
)
BEGIN
    SELECT RAISE(ABORT, 'a decision depends on earlier ones of its plan');
END;

CREATE INDEX idx_decision_dependencies_ref ON decision_dependencies(downstream_ref);

CREATE TABLE resources (
    resource_id TEXT PRIMARY KEY,
    name TEXT,
    resource_type_name TEXT NOT NULL,
    classification TEXT NOT NULL CHECK (classification IN ('physical', 'virtual')),
    description TEXT,
    properties TEXT,
    location TEXT,
    content_hash TEXT,
    sandbox_strategy TEXT,
    created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    updated_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
);

CREATE UNIQUE INDEX idx_resources_name ON resources(name) WHERE name IS NOT NULL;
CREATE INDEX idx_resources_type ON resources(resource_type_name);
CREATE INDEX idx_resources_classification ON resources(classification);

CREATE TABLE resource_links (
    parent_id TEXT NOT NULL REFERENCES resources(resource_id) ON DELETE CASCADE,
    child_id TEXT NOT NULL REFERENCES resources(resource_id) ON DELETE CASCADE,
    link_type TEXT DEFAULT 'contains'
        CHECK (link_type IN ('contains', 'references', 'derived_from', 'physical-to-virtual')),
    created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    auto_discovered BOOLEAN NOT NULL DEFAULT FALSE,
    coherence TEXT,
    PRIMARY KEY (parent_id, child_id),
    CHECK (parent_id <> child_id)
);

CREATE INDEX idx_resource_links_child ON resource_links(child_id);

CREATE TABLE projects (
    name TEXT PRIMARY KEY,
    namespace TEXT NOT NULL,
    description TEXT,
    context_policies TEXT,
    execution_environment TEXT,
    invariant_actor_name TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
);

CREATE TABLE project_resources (
    project_name TEXT NOT NULL,
    resource_id TEXT NOT NULL REFERENCES resources(resource_id),
    read_only BOOLEAN DEFAULT FALSE,
    linked_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    alias TEXT,
    PRIMARY KEY (project_name, resource_id)
);

CREATE INDEX idx_project_resources_resource ON project_resources(resource_id);

CREATE TABLE actions (
    name TEXT PRIMARY KEY,
    state TEXT NOT NULL CHECK (state IN ('available', 'archived')),
    definition TEXT NOT NULL,
    yaml_text TEXT NOT NULL,
    config_path TEXT NOT NULL,
    config_hash TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
);

CREATE TABLE lsp_servers (
    name TEXT PRIMARY KEY,
    definition TEXT NOT NULL,
    yaml_text TEXT NOT NULL,
    config_path TEXT NOT NULL,
    config_hash TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
);

-- A checkpoint outlives its resource: the key goes, the record in `data` stays.
CREATE TABLE checkpoint_metadata (
    checkpoint_id TEXT PRIMARY KEY,
    plan_id TEXT NOT NULL REFERENCES plans(plan_id),
    decision_id TEXT REFERENCES decisions(decision_id),
    checkpoint_type TEXT NOT NULL,
    resource_id TEXT REFERENCES resources(resource_id) ON DELETE SET NULL,
    filesystem_path TEXT NOT NULL,
    size_bytes INTEGER,
    created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    data TEXT NOT NULL
);

CREATE INDEX idx_checkpoints_plan ON checkpoint_metadata(plan_id);
CREATE INDEX idx_checkpoints_resource ON checkpoint_metadata(resource_id);

CREATE TABLE correction_attempts (
    correction_attempt_id TEXT PRIMARY KEY,
    plan_id TEXT NOT NULL REFERENCES plans(plan_id),
    original_decision_id TEXT NOT NULL REFERENCES decisions(decision_id),
    -- Chosen when it is asked for, recorded when what hung on the original is taken back.
    new_decision_id TEXT,
    mode TEXT NOT NULL CHECK (mode IN ('revert', 'append')),
    guidance TEXT NOT NULL,
    archived_artifacts_path TEXT,
    state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'executing', 'completed', 'failed')),
    created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    completed_at TEXT,
    original_subtree_snapshot TEXT,
    correction_reason TEXT,
    data TEXT NOT NULL
);

CREATE INDEX idx_corrections_plan ON correction_attempts(plan_id);

-- Rows are in the order written. No key to `resources`: what was changed stays on record.
CREATE TABLE changes (
    change_id TEXT PRIMARY KEY,
    plan_id TEXT NOT NULL REFERENCES plans(plan_id),
    decision_id TEXT NOT NULL REFERENCES decisions(decision_id),
    resource_id TEXT NOT NULL,
    path TEXT NOT NULL,
    old_path TEXT,
    operation TEXT NOT NULL CHECK (operation IN ('added', 'modified', 'deleted', 'renamed')),
    before_hash TEXT,
    after_hash TEXT,
    hunks TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    undone BOOLEAN NOT NULL DEFAULT FALSE,
    created_at TEXT NOT NULL
);

CREATE INDEX idx_changes_plan ON changes(plan_id);
CREATE INDEX idx_changes_path ON changes(resource_id, path) WHERE NOT undone;
CREATE INDEX idx_changes_decision ON changes(decision_id);

CREATE TABLE audit_log (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    event_type TEXT NOT NULL,
    plan_id TEXT,
    project_name TEXT,
    actor_name TEXT,
    user_identity TEXT,
    details TEXT NOT NULL,
    created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
);

CREATE INDEX idx_audit_event ON audit_log(event_type);
CREATE INDEX idx_audit_plan ON audit_log(plan_id) WHERE plan_id IS NOT NULL;
CREATE INDEX idx_audit_created ON audit_log(created_at);

CREATE TABLE events (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    event_type TEXT NOT NULL,
    timestamp TEXT NOT NULL,
    plan_id TEXT,
    root_plan_id TEXT,
    correlation_id TEXT,
    actor_name TEXT,
    project_name TEXT,
    user_identity TEXT,
    details TEXT NOT NULL
);

CREATE INDEX idx_events_plan ON events(plan_id, sequence) WHERE plan_id IS NOT NULL;
CREATE INDEX idx_events_progress ON events(plan_id, sequence) WHERE event_type = 'plan.progress';
