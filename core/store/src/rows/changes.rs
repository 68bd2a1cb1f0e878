//! Recorded writes and checkpoints, in the order they were written.

use agents_domain::changes::Change;
use agents_domain::checkpoint::Checkpoint;
use agents_domain::ids::{CheckpointId, DecisionId, PlanId, ResourceId};
use agents_domain::ports::store::{ChangeReads, ChangeWrites, StoreResult};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::Tx;
use super::values::{Json, Parsed, Word, after_prefix, limit, text};
use crate::error::Fault;

const COLUMNS: &str = "change_id, changes.plan_id, decision_id, resource_id, path, old_path, operation, before_hash, \
                       after_hash, hunks, tool_name, changes.created_at";

fn change(row: &Row<'_>) -> rusqlite::Result<Change> {
    Ok(Change {
        change_id: row.get::<_, Parsed<_>>(0)?.0,
        plan_id: row.get::<_, Parsed<_>>(1)?.0,
        decision_id: row.get::<_, Parsed<_>>(2)?.0,
        resource_id: row.get::<_, Parsed<_>>(3)?.0,
        path: row.get(4)?,
        old_path: row.get(5)?,
        kind: row.get::<_, Word<_>>(6)?.0,
        before_hash: row.get(7)?,
        after_hash: row.get(8)?,
        hunks: row.get::<_, Json<_>>(9)?.0,
        tool: row.get(10)?,
        created_at: row.get::<_, Parsed<_>>(11)?.0,
    })
}

pub(super) fn select(
    conn: &Connection,
    rest: &str,
    params: impl rusqlite::Params,
) -> Result<Vec<Change>, Fault> {
    let mut statement = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM changes {rest}"))?;
    let rows = statement.query_map(params, change)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

impl ChangeReads for Tx<'_> {
    fn changes(&self, plan: PlanId) -> StoreResult<Vec<Change>> {
        self.run(|conn| {
            select(conn, "WHERE plan_id = ?1 AND NOT undone ORDER BY changes.rowid", [plan.to_string()])
        })
    }

    fn changes_of_path(&self, resource: ResourceId, path: &str) -> StoreResult<Vec<Change>> {
        self.run(|conn| {
            select(
                conn,
                "JOIN plans USING (plan_id) WHERE resource_id = ?1 AND path = ?2 AND NOT undone
                 ORDER BY plans.created_at DESC, plan_id DESC, changes.rowid",
                params![resource.to_string(), path],
            )
        })
    }

    fn changed_paths(&self, resource: ResourceId) -> StoreResult<Vec<String>> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT DISTINCT path FROM changes WHERE resource_id = ?1 AND NOT undone ORDER BY path",
            )?;
            let paths = statement.query_map([resource.to_string()], |row| row.get(0))?;
            Ok(paths.collect::<Result<_, _>>()?)
        })
    }

    fn checkpoints(&self, plan: PlanId) -> StoreResult<Vec<Checkpoint>> {
        self.run(|conn| {
            let mut statement = conn
                .prepare_cached("SELECT data FROM checkpoint_metadata WHERE plan_id = ?1 ORDER BY rowid")?;
            let rows =
                statement.query_map([plan.to_string()], |row| Ok(row.get::<_, Json<Checkpoint>>(0)?.0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    fn checkpoint(&self, id: CheckpointId) -> StoreResult<Option<Checkpoint>> {
        self.run(|conn| {
            let checkpoint = conn
                .prepare_cached("SELECT data FROM checkpoint_metadata WHERE checkpoint_id = ?1")?
                .query_row([id.ulid().to_string()], |row| row.get::<_, Json<Checkpoint>>(0))
                .optional()?;
            Ok(checkpoint.map(|checkpoint| checkpoint.0))
        })
    }

    fn checkpoints_starting(&self, prefix: &str, count: usize) -> StoreResult<Vec<CheckpointId>> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT checkpoint_id FROM checkpoint_metadata
                 WHERE checkpoint_id >= ?1 AND checkpoint_id < ?2 ORDER BY checkpoint_id LIMIT ?3",
            )?;
            let ids = statement.query_map(params![prefix, after_prefix(prefix), limit(count)], |row| {
                Ok(row.get::<_, Parsed<CheckpointId>>(0)?.0)
            })?;
            Ok(ids.collect::<Result<_, _>>()?)
        })
    }
}

impl ChangeWrites for Tx<'_> {
    fn insert_change(&self, change: &Change) -> StoreResult<()> {
        self.run(|conn| {
            conn.prepare_cached(
                "INSERT INTO changes (
                     change_id, plan_id, decision_id, resource_id, path, old_path, operation, before_hash, after_hash,
                     hunks, tool_name, created_at
                 ) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            )?
            .execute(params![
                change.change_id.to_string(),
                change.plan_id.to_string(),
                change.decision_id.to_string(),
                change.resource_id.to_string(),
                change.path,
                change.old_path,
                Word(change.kind),
                change.before_hash,
                change.after_hash,
                Json(&change.hunks),
                change.tool,
                change.created_at.to_string(),
            ])
            .map_err(|e| Fault::from(e).or_duplicate(|| format!("change {}", change.change_id)))?;
            Ok(())
        })
    }

    fn undo_changes(&self, plan: PlanId, decision: DecisionId) -> StoreResult<()> {
        self.run(|conn| {
            conn.prepare_cached("UPDATE changes SET undone = TRUE WHERE decision_id = ?1 AND plan_id = ?2")?
                .execute(params![decision.to_string(), plan.to_string()])?;
            conn.prepare_cached(
                "UPDATE decisions SET artifacts_produced = '[]' WHERE decision_id = ?1 AND plan_id = ?2",
            )?
            .execute(params![decision.to_string(), plan.to_string()])?;
            conn.prepare_cached(
                "DELETE FROM decision_dependencies
                 WHERE upstream_decision_id = ?1 AND dependency_type = 'artifact'",
            )?
            .execute(params![decision.to_string()])?;
            Ok(())
        })
    }

    fn insert_checkpoint(&self, checkpoint: &Checkpoint) -> StoreResult<()> {
        self.run(|conn| {
            conn.prepare_cached(
                "INSERT INTO checkpoint_metadata (
                     checkpoint_id, plan_id, decision_id, checkpoint_type, resource_id, filesystem_path, created_at,
                     data, size_bytes
                 ) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?
            .execute(params![
                checkpoint.checkpoint_id.ulid().to_string(),
                checkpoint.plan_id.to_string(),
                text(checkpoint.decision_id.as_ref()),
                Word(checkpoint.kind),
                checkpoint.resource_id.to_string(),
                // Of a git sandbox the state is a commit.
                checkpoint.commit,
                checkpoint.created_at.to_string(),
                Json(checkpoint),
                i64::try_from(checkpoint.diff.size_bytes).unwrap_or(i64::MAX),
            ])
            .map_err(|e| Fault::from(e).or_duplicate(|| format!("checkpoint {}", checkpoint.checkpoint_id)))?;
            Ok(())
        })
    }

    fn delete_checkpoint(&self, checkpoint: CheckpointId) -> StoreResult<()> {
        self.run(|conn| {
            conn.prepare_cached("DELETE FROM checkpoint_metadata WHERE checkpoint_id = ?1")?
                .execute([checkpoint.ulid().to_string()])?;
            Ok(())
        })
    }
}
