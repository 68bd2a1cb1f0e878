//! Corrections, plans that are being taken back, tool calls and what stood at checkpoints.

use agents_domain::changes::Change;
use agents_domain::correction::{CheckpointMark, CorrectionAttempt, Rewind, ToolCall};
use agents_domain::ids::{ChangeId, CheckpointId, CorrectionId, DecisionId, PlanId};
use agents_domain::ports::store::{CorrectionReads, CorrectionWrites, StoreResult};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::Tx;
use super::changes;
use super::values::{Json, Parsed, Word, after_prefix, limit, text};
use crate::error::Fault;

fn attempts(
    conn: &Connection,
    rest: &str,
    params: impl rusqlite::Params,
) -> Result<Vec<CorrectionAttempt>, Fault> {
    let mut statement =
        conn.prepare_cached(&format!("SELECT correction_attempts.data FROM correction_attempts {rest}"))?;
    let rows = statement.query_map(params, |row| Ok(row.get::<_, Json<CorrectionAttempt>>(0)?.0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn call(row: &Row<'_>) -> rusqlite::Result<ToolCall> {
    Ok(ToolCall {
        id: row.get(0)?,
        plan_id: row.get::<_, Parsed<_>>(1)?.0,
        call_id: row.get(2)?,
        decision_id: row.get::<_, Parsed<_>>(3)?.0,
        tool: row.get(4)?,
        args_hash: row.get(5)?,
        result: row.get::<_, Json<_>>(6)?.0,
        created_at: row.get::<_, Parsed<_>>(7)?.0,
        side_effects: row.get::<_, Json<_>>(8)?.0,
    })
}

impl CorrectionReads for Tx<'_> {
    fn corrections(&self, plan: PlanId) -> StoreResult<Vec<CorrectionAttempt>> {
        self.run(|conn| attempts(conn, "WHERE plan_id = ?1 ORDER BY rowid", [plan.to_string()]))
    }

    fn correction(&self, id: CorrectionId) -> StoreResult<Option<CorrectionAttempt>> {
        self.run(|conn| Ok(attempts(conn, "WHERE correction_attempt_id = ?1", [id.to_string()])?.pop()))
    }

    fn corrections_starting(&self, prefix: &str, count: usize) -> StoreResult<Vec<CorrectionId>> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT correction_attempt_id FROM correction_attempts
                 WHERE correction_attempt_id >= ?1 AND correction_attempt_id < ?2
                 ORDER BY correction_attempt_id LIMIT ?3",
            )?;
            let ids = statement.query_map(params![prefix, after_prefix(prefix), limit(count)], |row| {
                Ok(row.get::<_, Parsed<CorrectionId>>(0)?.0)
            })?;
            Ok(ids.collect::<Result<_, _>>()?)
        })
    }

    fn correction_behind(&self, decision: DecisionId) -> StoreResult<Option<CorrectionAttempt>> {
        self.run(|conn| {
            Ok(attempts(conn, "WHERE new_decision_id = ?1 ORDER BY rowid", [decision.to_string()])?.pop())
        })
    }

    fn executing_corrections(&self, root: PlanId) -> StoreResult<Vec<CorrectionAttempt>> {
        self.run(|conn| {
            attempts(
                conn,
                "JOIN plans USING (plan_id) WHERE correction_attempts.state = 'executing' AND root_plan_id = ?1
                 ORDER BY correction_attempts.rowid",
                [root.to_string()],
            )
        })
    }

    fn rewind(&self, plan: PlanId) -> StoreResult<Option<Rewind>> {
        self.run(|conn| {
            let rewind = conn
                .prepare_cached("SELECT data FROM rewinds WHERE plan_id = ?1")?
                .query_row([plan.to_string()], |row| row.get::<_, Json<Rewind>>(0))
                .optional()?;
            Ok(rewind.map(|rewind| rewind.0))
        })
    }

    fn rewinding(&self) -> StoreResult<Vec<PlanId>> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached("SELECT plan_id FROM rewinds ORDER BY plan_id")?;
            let ids = statement.query_map([], |row| Ok(row.get::<_, Parsed<PlanId>>(0)?.0))?;
            Ok(ids.collect::<Result<_, _>>()?)
        })
    }

    fn tool_calls(&self, plan: PlanId) -> StoreResult<Vec<ToolCall>> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT id, plan_id, call_id, decision_id, tool_name, args_hash, result, created_at, side_effects
                 FROM tool_calls WHERE plan_id = ?1 AND NOT undone ORDER BY id",
            )?;
            let rows = statement.query_map([plan.to_string()], call)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    fn standing_ids(&self, plan: PlanId) -> StoreResult<(Vec<ChangeId>, Vec<i64>)> {
        self.run(|conn| {
            let plan = plan.to_string();
            let mut changes = conn.prepare_cached(
                "SELECT change_id FROM changes WHERE plan_id = ?1 AND NOT undone ORDER BY rowid",
            )?;
            let changes = changes.query_map([&plan], |row| Ok(row.get::<_, Parsed<_>>(0)?.0))?;
            let mut calls = conn
                .prepare_cached("SELECT id FROM tool_calls WHERE plan_id = ?1 AND NOT undone ORDER BY id")?;
            let calls = calls.query_map([&plan], |row| row.get(0))?;
            Ok((changes.collect::<Result<_, _>>()?, calls.collect::<Result<_, _>>()?))
        })
    }

    fn call_decisions(&self, calls: &[i64]) -> StoreResult<Vec<DecisionId>> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached("SELECT decision_id FROM tool_calls WHERE id = ?1")?;
            let of = |id: &i64| Ok(statement.query_row([id], |row| row.get::<_, Parsed<_>>(0))?.0);
            calls.iter().map(of).collect()
        })
    }

    fn checkpoint_mark(&self, checkpoint: CheckpointId) -> StoreResult<Option<CheckpointMark>> {
        self.run(|conn| {
            let mark = conn
                .prepare_cached("SELECT data FROM checkpoint_marks WHERE checkpoint_id = ?1")?
                .query_row([checkpoint.ulid().to_string()], |row| row.get::<_, Json<_>>(0))
                .optional()?;
            Ok(mark.map(|mark| mark.0))
        })
    }

    fn change(&self, id: ChangeId) -> StoreResult<Option<Change>> {
        self.run(|conn| Ok(changes::select(conn, "WHERE change_id = ?1", [id.to_string()])?.pop()))
    }
}

impl CorrectionWrites for Tx<'_> {
    fn put_correction(&self, attempt: &CorrectionAttempt) -> StoreResult<()> {
        self.run(|conn| {
            conn.prepare_cached(
                "INSERT INTO correction_attempts (
                     correction_attempt_id, plan_id, original_decision_id, new_decision_id, mode, guidance,
                     archived_artifacts_path, state, created_at, completed_at, original_subtree_snapshot,
                     correction_reason, data
                 ) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
                 ON CONFLICT (correction_attempt_id) DO UPDATE SET
                     archived_artifacts_path = excluded.archived_artifacts_path, state = excluded.state,
                     completed_at = excluded.completed_at, data = excluded.data",
            )?
            .execute(params![
                attempt.correction_id.to_string(),
                attempt.plan_id.to_string(),
                attempt.original_decision_id.to_string(),
                attempt.new_decision_id.to_string(),
                Word(attempt.mode),
                attempt.guidance,
                attempt.archive,
                Word(attempt.state),
                attempt.created_at.to_string(),
                text(attempt.completed_at.as_ref()),
                Json(&attempt.affected),
                attempt.guidance,
                Json(attempt),
            ])?;
            Ok(())
        })
    }

    fn put_rewind(&self, rewind: &Rewind) -> StoreResult<()> {
        self.run(|conn| {
            conn.prepare_cached(
                "INSERT INTO rewinds (plan_id, data) VALUES (?1, ?2)
                 ON CONFLICT (plan_id) DO UPDATE SET data = excluded.data",
            )?
            .execute(params![rewind.plan_id.to_string(), Json(rewind)])?;
            Ok(())
        })
    }

    fn delete_rewind(&self, plan: PlanId) -> StoreResult<()> {
        self.run(|conn| {
            conn.prepare_cached("DELETE FROM rewinds WHERE plan_id = ?1")?.execute([plan.to_string()])?;
            Ok(())
        })
    }

    fn insert_tool_call(&self, call: &ToolCall) -> StoreResult<()> {
        self.run(|conn| {
            conn.prepare_cached(
                "INSERT INTO tool_calls (plan_id, call_id, decision_id, tool_name, args_hash, result, created_at, side_effects)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute(params![
                call.plan_id.to_string(),
                call.call_id,
                call.decision_id.to_string(),
                call.tool,
                call.args_hash,
                Json(&call.result),
                call.created_at.to_string(),
                Json(&call.side_effects),
            ])?;
            Ok(())
        })
    }

    fn undo_tool_calls(&self, plan: PlanId, decision: DecisionId) -> StoreResult<()> {
        self.run(|conn| {
            conn.prepare_cached(
                "UPDATE tool_calls SET undone = TRUE WHERE plan_id = ?1 AND decision_id = ?2",
            )?
            .execute(params![plan.to_string(), decision.to_string()])?;
            Ok(())
        })
    }

    fn reinstate_tool_call(&self, id: i64, decision: DecisionId) -> StoreResult<()> {
        self.run(|conn| {
            conn.prepare_cached("UPDATE tool_calls SET undone = FALSE, decision_id = ?2 WHERE id = ?1")?
                .execute(params![id, decision.to_string()])?;
            Ok(())
        })
    }

    fn put_checkpoint_mark(&self, checkpoint: CheckpointId, mark: &CheckpointMark) -> StoreResult<()> {
        self.run(|conn| {
            conn.prepare_cached("INSERT INTO checkpoint_marks (checkpoint_id, data) VALUES (?1, ?2)")?
                .execute(params![checkpoint.ulid().to_string(), Json(mark)])?;
            Ok(())
        })
    }

    fn undo_change(&self, id: ChangeId) -> StoreResult<()> {
        self.run(|conn| {
            conn.prepare_cached("UPDATE changes SET undone = TRUE WHERE change_id = ?1")?
                .execute([id.to_string()])?;
            Ok(())
        })
    }
}
