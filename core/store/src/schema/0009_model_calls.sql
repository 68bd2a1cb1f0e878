-- Calls of models: what each took and what came of it, never what was said.
CREATE TABLE llm_traces (
    trace_id TEXT PRIMARY KEY,
    plan_id TEXT NOT NULL REFERENCES plans(plan_id),
    phase TEXT NOT NULL,
    decision_id TEXT REFERENCES decisions(decision_id),
    actor_name TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    total_tokens INTEGER NOT NULL,
    cost_usd REAL,
    latency_ms INTEGER NOT NULL,
    temperature REAL,
    tool_calls TEXT NOT NULL,
    context_hash TEXT NOT NULL,
    streaming INTEGER NOT NULL DEFAULT 1,
    retry_count INTEGER NOT NULL,
    error TEXT,
    created_at TEXT NOT NULL
);

CREATE INDEX idx_llm_traces_plan ON llm_traces(plan_id, trace_id);
