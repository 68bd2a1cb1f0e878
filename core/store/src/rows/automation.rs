//! What automation rests on: registered profiles, computed confidences, and what failed before.

use agents_domain::decision::DecisionType;
use agents_domain::failure::{FailurePattern, FailureRecord, FailureShape};
use agents_domain::ids::{DecisionId, PlanId};
use agents_domain::plan::gates::{ComputedConfidence, Factor};
use agents_domain::ports::automation::TrackRecord;
use agents_domain::ports::model::{ModelTrace, RecordedTrace, Usage};
use agents_domain::ports::store::{AutomationReads, AutomationWrites, StoreResult};
use agents_domain::profile::RegisteredProfile;
use rusqlite::{Connection, Row, params};

use super::Tx;
use super::registry::one;
use super::values::{Json, Parsed, Word, limit};
use crate::blobs::sha256;
use crate::error::Fault;

fn profile(row: &Row<'_>) -> rusqlite::Result<RegisteredProfile> {
    Ok(RegisteredProfile {
        profile: row.get::<_, Json<_>>(0)?.0,
        config_path: row.get(1)?,
        source: row.get(2)?,
        created_at: row.get::<_, Parsed<_>>(3)?.0,
        updated_at: row.get::<_, Parsed<_>>(4)?.0,
    })
}

fn profiles(
    conn: &Connection,
    rest: &str,
    params: impl rusqlite::Params,
) -> Result<Vec<RegisteredProfile>, Fault> {
    let mut statement = conn.prepare_cached(&format!(
        "SELECT definition, config_path, yaml_text, created_at, updated_at FROM automation_profiles {rest}"
    ))?;
    let rows = statement.query_map(params, profile)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The columns of a shape, in this order from `at` on.
fn shape(row: &Row<'_>, at: usize) -> rusqlite::Result<FailureShape> {
    let kind: Option<String> = row.get(at + 2)?;
    Ok(FailureShape {
        category: row.get(at)?,
        tool: row.get(at + 1)?,
        decision_type: kind.and_then(|kind| DecisionType::ALL.into_iter().find(|k| k.as_str() == kind)),
        path_shape: row.get(at + 3)?,
    })
}

fn failure(row: &Row<'_>) -> rusqlite::Result<FailureRecord> {
    Ok(FailureRecord {
        plan_id: row.get::<_, Parsed<_>>(0)?.0,
        phase: row.get::<_, Parsed<_>>(1)?.0,
        step: row.get(2)?,
        shape: shape(row, 3)?,
        message: row.get(7)?,
        hints: row.get::<_, Json<_>>(8)?.0,
        outcome: row.get(9)?,
        created_at: row.get::<_, Parsed<_>>(10)?.0,
    })
}

fn pattern(row: &Row<'_>) -> rusqlite::Result<FailurePattern> {
    Ok(FailurePattern {
        shape: shape(row, 0)?,
        count: row.get(4)?,
        plans: row.get(5)?,
        last_message: row.get(6)?,
        hints: row.get::<_, Json<_>>(7)?.0,
        last_seen: row.get::<_, Parsed<_>>(8)?.0,
    })
}

impl AutomationReads for Tx<'_> {
    fn automation_profile(&self, name: &str) -> StoreResult<Option<RegisteredProfile>> {
        self.run(|conn| Ok(profiles(conn, "WHERE name = ?1", [name])?.pop()))
    }

    fn automation_profiles(&self) -> StoreResult<Vec<RegisteredProfile>> {
        self.run(|conn| profiles(conn, "ORDER BY name", []))
    }

    fn confidences(&self, plan: PlanId) -> StoreResult<Vec<(DecisionId, ComputedConfidence)>> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT decision_id, score, factors FROM decisions JOIN decision_confidences USING (decision_id)
                 WHERE plan_id = ?1 ORDER BY sequence_number",
            )?;
            let rows = statement.query_map([plan.to_string()], |row| {
                let factors = row.get::<_, Json<Vec<Factor>>>(2)?.0;
                Ok((row.get::<_, Parsed<_>>(0)?.0, ComputedConfidence { score: row.get(1)?, factors }))
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    fn track_record(
        &self,
        other_than: PlanId,
        decision_type: DecisionType,
        key: &str,
    ) -> StoreResult<TrackRecord> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT count(*), coalesce(sum(
                     (d.superseded_by IS NULL OR (answer.decision_type = 'user_intervention'
                         AND answer.decision_key IS d.decision_key AND answer.chosen_option = d.chosen_option))
                     AND NOT EXISTS (SELECT 1 FROM changes WHERE decision_id = d.decision_id AND undone)
                 ), 0)
                 FROM decisions AS d LEFT JOIN decisions AS answer ON answer.decision_id = d.superseded_by
                 WHERE d.decision_key = ?1 AND d.decision_type = ?2 AND d.plan_id <> ?3 AND NOT d.pending",
            )?;
            let key = params![key, decision_type.as_str(), other_than.to_string()];
            Ok(statement.query_row(key, |row| Ok(TrackRecord { all: row.get(0)?, stood: row.get(1)? }))?)
        })
    }

    fn tree_cost(&self, root: PlanId) -> StoreResult<f64> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT coalesce(sum(json_extract(data, '$.spending.cost_usd')), 0.0) FROM plans
                 WHERE root_plan_id = ?1",
            )?;
            Ok(statement.query_row([root.to_string()], |row| row.get(0))?)
        })
    }

    fn failures(&self, plan: PlanId) -> StoreResult<Vec<FailureRecord>> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT plan_id, phase, step, category, tool_name, decision_type, path_shape, message, hints, outcome,
                     created_at
                 FROM failures WHERE plan_id = ?1 ORDER BY failure_id",
            )?;
            let rows = statement.query_map([plan.to_string()], failure)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    fn failure_patterns(&self, count: usize) -> StoreResult<Vec<FailurePattern>> {
        self.run(|conn| {
            // With one max(), SQLite takes the other columns from the row that has it: the latest.
            let mut statement = conn.prepare_cached(
                "SELECT category, tool_name, decision_type, path_shape, count(*), count(DISTINCT plan_id), message, hints,
                     created_at, max(failure_id)
                 FROM failures GROUP BY category, tool_name, decision_type, path_shape
                 ORDER BY count(*) DESC, max(failure_id) DESC LIMIT ?1",
            )?;
            let rows = statement.query_map([limit(count)], pattern)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    fn model_traces(&self, plan: PlanId) -> StoreResult<Vec<RecordedTrace>> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT trace_id, plan_id, phase, decision_id, actor_name, provider, model, prompt_tokens, cached_tokens,
                     completion_tokens, cost_usd, latency_ms, temperature, tool_calls, context_hash, retry_count, error,
                     created_at
                 FROM llm_traces WHERE plan_id = ?1 ORDER BY trace_id",
            )?;
            let rows = statement.query_map([plan.to_string()], model_trace)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }
}

/// A count; SQLite has whole numbers with a sign.
fn whole(row: &Row<'_>, index: usize) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(index)?).unwrap_or(0))
}

fn model_trace(row: &Row<'_>) -> rusqlite::Result<RecordedTrace> {
    Ok(RecordedTrace {
        trace_id: row.get(0)?,
        plan_id: row.get::<_, Parsed<_>>(1)?.0,
        phase: row.get::<_, Word<_>>(2)?.0,
        decision_id: row.get::<_, Option<Parsed<_>>>(3)?.map(|id| id.0),
        trace: ModelTrace {
            actor: row.get(4)?,
            decision: None,
            provider: row.get(5)?,
            model: row.get(6)?,
            usage: Usage {
                input: whole(row, 7)?,
                cached: whole(row, 8)?,
                output: whole(row, 9)?,
                usd: row.get(10)?,
            },
            latency_ms: whole(row, 11)?,
            temperature: row.get(12)?,
            tool_calls: row.get::<_, Json<_>>(13)?.0,
            context_hash: row.get(14)?,
            retries: row.get(15)?,
            error: row.get(16)?,
        },
        created_at: row.get::<_, Parsed<_>>(17)?.0,
    })
}

impl AutomationWrites for Tx<'_> {
    fn insert_automation_profile(&self, registered: &RegisteredProfile) -> StoreResult<()> {
        self.run(|conn| {
            let name = &registered.profile.name;
            conn.prepare_cached(
                "INSERT INTO automation_profiles (
                     name, definition, yaml_text, config_path, config_hash, created_at, updated_at
                 ) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute(params![
                name,
                Json(&registered.profile),
                registered.source,
                registered.config_path,
                sha256(registered.source.as_bytes()),
                registered.created_at.to_string(),
                registered.updated_at.to_string(),
            ])
            .map_err(|e| Fault::from(e).or_duplicate(|| format!("automation profile {name}")))?;
            Ok(())
        })
    }

    fn update_automation_profile(&self, registered: &RegisteredProfile) -> StoreResult<()> {
        self.run(|conn| {
            let name = &registered.profile.name;
            one(
                conn,
                "UPDATE automation_profiles SET definition = ?2, yaml_text = ?3, config_path = ?4,
                     config_hash = ?5, updated_at = ?6
                 WHERE name = ?1",
                params![
                    name,
                    Json(&registered.profile),
                    registered.source,
                    registered.config_path,
                    sha256(registered.source.as_bytes()),
                    registered.updated_at.to_string(),
                ],
                &format!("automation profile {name}"),
            )
        })
    }

    fn delete_automation_profile(&self, name: &str) -> StoreResult<()> {
        self.run(|conn| {
            let what = format!("automation profile {name}");
            one(conn, "DELETE FROM automation_profiles WHERE name = ?1", [name], &what)
        })
    }

    fn insert_confidence(&self, decision: DecisionId, computed: &ComputedConfidence) -> StoreResult<()> {
        self.run(|conn| {
            conn.prepare_cached(
                "INSERT INTO decision_confidences (decision_id, score, factors) VALUES (?1, ?2, ?3)",
            )?
            .execute(params![decision.to_string(), computed.score, Json(&computed.factors)])?;
            Ok(())
        })
    }

    fn insert_failure(&self, failure: &FailureRecord) -> StoreResult<()> {
        self.run(|conn| {
            let shape = &failure.shape;
            conn.prepare_cached(
                "INSERT INTO failures (
                     plan_id, phase, step, category, tool_name, decision_type, path_shape, message, hints, outcome,
                     created_at
                 ) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            )?
            .execute(params![
                failure.plan_id.to_string(),
                failure.phase.as_str(),
                failure.step,
                shape.category,
                shape.tool,
                shape.decision_type.map(DecisionType::as_str),
                shape.path_shape,
                failure.message,
                Json(&failure.hints),
                failure.outcome,
                failure.created_at.to_string(),
            ])?;
            Ok(())
        })
    }

    fn insert_model_trace(&self, recorded: &RecordedTrace) -> StoreResult<()> {
        self.run(|conn| {
            let (trace, usage) = (&recorded.trace, &recorded.trace.usage);
            let whole = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
            conn.prepare_cached(
                "INSERT INTO llm_traces (
                     trace_id, plan_id, phase, decision_id, actor_name, provider, model, prompt_tokens, cached_tokens,
                     completion_tokens, total_tokens, cost_usd, latency_ms, temperature, tool_calls, context_hash,
                     retry_count, error, created_at
                 ) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)",
            )?
            .execute(params![
                recorded.trace_id,
                recorded.plan_id.to_string(),
                recorded.phase.as_str(),
                recorded.decision_id.map(|id| id.to_string()),
                trace.actor,
                trace.provider,
                trace.model,
                whole(usage.input),
                whole(usage.cached),
                whole(usage.output),
                whole(usage.input.saturating_add(usage.output)),
                usage.usd,
                whole(trace.latency_ms),
                trace.temperature,
                Json(&trace.tool_calls),
                trace.context_hash,
                trace.retries,
                trace.error,
                recorded.created_at.to_string(),
            ])?;
            Ok(())
        })
    }
}
