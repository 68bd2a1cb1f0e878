//! The outbox, written in the transaction of the change it tells of, and the audit log.

use agents_domain::Timestamp;
use agents_domain::event::{Event, NewEvent};
use agents_domain::ids::PlanId;
use agents_domain::ports::store::{AuditEntry, EventReads, EventWrites, StoreResult};
use rusqlite::{OptionalExtension, Row, params};

use super::Tx;
use super::values::{Json, Parsed, limit, text};

const COLUMNS: &str = "sequence, timestamp, event_type, plan_id, root_plan_id, correlation_id, actor_name, \
                       project_name, user_identity, details";

fn event(row: &Row<'_>) -> rusqlite::Result<Event> {
    Ok(Event {
        sequence: row.get(0)?,
        timestamp: row.get::<_, Parsed<_>>(1)?.0,
        event_type: row.get(2)?,
        plan_id: row.get::<_, Option<Parsed<_>>>(3)?.map(|id| id.0),
        root_plan_id: row.get::<_, Option<Parsed<_>>>(4)?.map(|id| id.0),
        correlation_id: row.get(5)?,
        actor_name: row.get(6)?,
        project_name: row.get(7)?,
        user_identity: row.get(8)?,
        details: row.get::<_, Json<_>>(9)?.0,
    })
}

fn audit_entry(row: &Row<'_>) -> rusqlite::Result<AuditEntry> {
    Ok(AuditEntry {
        event_type: row.get(0)?,
        plan_id: row.get::<_, Option<Parsed<_>>>(1)?.map(|id| id.0),
        project_name: row.get(2)?,
        actor_name: row.get(3)?,
        user_identity: row.get(4)?,
        details: row.get::<_, Json<_>>(5)?.0,
        created_at: row.get::<_, Parsed<_>>(6)?.0,
    })
}

impl EventReads for Tx<'_> {
    fn events_after(&self, sequence: i64, plan: Option<PlanId>, count: usize) -> StoreResult<Vec<Event>> {
        self.run(|conn| {
            // Two statements, so that each has its index.
            let of_plan = if plan.is_some() { "plan_id = ?2" } else { "?2 IS NULL" };
            let mut statement = conn.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM events WHERE {of_plan} AND sequence > ?1 ORDER BY sequence LIMIT ?3"
            ))?;
            let rows = statement.query_map(params![sequence, text(plan.as_ref()), limit(count)], event)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    fn last_event(&self) -> StoreResult<i64> {
        self.run(|conn| {
            Ok(conn
                .prepare_cached("SELECT coalesce(max(sequence), 0) FROM events")?
                .query_row([], |row| row.get(0))?)
        })
    }

    fn last_correlation(&self, plan: PlanId) -> StoreResult<Option<String>> {
        self.run(|conn| {
            let found = conn
                .prepare_cached(
                    "SELECT correlation_id FROM events WHERE plan_id = ?1 ORDER BY sequence DESC LIMIT 1",
                )?
                .query_row([plan.to_string()], |row| row.get(0))
                .optional()?;
            Ok(found.flatten())
        })
    }

    fn last_progress(&self, plan: PlanId) -> StoreResult<Option<Event>> {
        self.run(|conn| {
            Ok(conn
                .prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM events WHERE plan_id = ?1 AND event_type = 'plan.progress'
                     ORDER BY sequence DESC LIMIT 1"
                ))?
                .query_row([plan.to_string()], event)
                .optional()?)
        })
    }

    fn audit(&self, plan: Option<PlanId>, count: usize) -> StoreResult<Vec<AuditEntry>> {
        self.run(|conn| {
            let of_plan = if plan.is_some() { "plan_id = ?1" } else { "?1 IS NULL" };
            let mut statement = conn.prepare_cached(&format!(
                "SELECT event_type, plan_id, project_name, actor_name, user_identity, details, created_at
                 FROM audit_log WHERE {of_plan} ORDER BY id DESC LIMIT ?2"
            ))?;
            let rows = statement.query_map(params![text(plan.as_ref()), limit(count)], audit_entry)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }
}

impl EventWrites for Tx<'_> {
    fn append_event(&self, event: &NewEvent, at: Timestamp) -> StoreResult<i64> {
        self.run(|conn| {
            conn.prepare_cached(
                "INSERT INTO events (
                     timestamp, event_type, plan_id, root_plan_id, correlation_id, actor_name, project_name,
                     user_identity, details
                 ) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?
            .execute(params![
                at.to_string(),
                event.event_type,
                text(event.plan_id.as_ref()),
                text(event.root_plan_id.as_ref()),
                event.correlation_id,
                event.actor_name,
                event.project_name,
                event.user_identity,
                Json(&event.details),
            ])?;
            Ok(conn.last_insert_rowid())
        })
    }

    fn append_audit(&self, entry: &AuditEntry) -> StoreResult<()> {
        self.run(|conn| {
            conn.prepare_cached(
                "INSERT INTO audit_log (
                     event_type, plan_id, project_name, actor_name, user_identity, details, created_at
                 ) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute(params![
                entry.event_type,
                text(entry.plan_id.as_ref()),
                entry.project_name,
                entry.actor_name,
                entry.user_identity,
                Json(&entry.details),
                entry.created_at.to_string(),
            ])?;
            Ok(())
        })
    }
}
