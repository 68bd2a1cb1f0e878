//! Plans, their index tables, and the runs of their actors.

use agents_domain::ids::{PlanId, ResourceId};
use agents_domain::plan::{Phase, Plan, State};
use agents_domain::ports::store::{
    ActionHistory, ActorRun, PlanFilter, PlanReads, PlanRow, PlanWrites, StoreError, StoreResult,
};
use agents_domain::{QualifiedName, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, named_params, params};

use super::Tx;
use super::values::{Json, Parsed, after_prefix, limit, text};
use crate::error::Fault;

/// Columns of [`PlanRow`], all in `idx_plans_list`.
pub(super) const ROW: &str = "plan_id, parent_plan_id, phase, state, awaiting, action_name, project_names, attempt, created_at, \
                   completed_at";

pub(super) fn plan_row(row: &Row<'_>) -> rusqlite::Result<PlanRow> {
    Ok(PlanRow {
        plan_id: row.get::<_, Parsed<_>>(0)?.0,
        parent_plan_id: row.get::<_, Option<Parsed<_>>>(1)?.map(|id| id.0),
        phase: row.get::<_, Parsed<_>>(2)?.0,
        state: row.get::<_, Parsed<_>>(3)?.0,
        awaiting: row.get(4)?,
        action: row.get(5)?,
        projects: row.get::<_, Json<_>>(6)?.0,
        attempt: row.get(7)?,
        created_at: row.get::<_, Parsed<_>>(8)?.0,
        completed_at: row.get::<_, Option<Parsed<_>>>(9)?.map(|at| at.0),
    })
}

fn plan_ids(conn: &Connection, sql: &str, params: impl rusqlite::Params) -> Result<Vec<PlanId>, Fault> {
    let mut statement = conn.prepare_cached(sql)?;
    let ids = statement.query_map(params, |row| Ok(row.get::<_, Parsed<PlanId>>(0)?.0))?;
    Ok(ids.collect::<Result<_, _>>()?)
}

/// The list of plans; all in SQL, and over one index only.
fn list_sql() -> String {
    format!(
        "SELECT {ROW} FROM plans INDEXED BY idx_plans_list
         WHERE (?1 IS NULL OR phase = ?1)
             AND (?2 IS NULL OR state = ?2)
             AND (?3 IS NULL OR (awaiting IS NOT NULL) = ?3)
             AND (?4 IS NULL OR action_name = ?4)
             AND (?5 IS NULL OR EXISTS (
                 SELECT 1 FROM plan_projects AS p WHERE p.project_name = ?5 AND p.plan_id = plans.plan_id))
             AND (?6 IS NULL OR EXISTS (
                 SELECT 1 FROM plan_projects AS p WHERE p.plan_id = plans.plan_id AND p.namespace = ?6))
         ORDER BY created_at DESC, plan_id DESC"
    )
}

/// Whether the real resources were changed as planned; unknown before that.
fn result_success(plan: &Plan) -> Option<bool> {
    match (plan.phase, plan.state) {
        (_, State::Applied) => Some(true),
        (Phase::Apply, State::Errored | State::Constrained) => Some(false),
        _ => None,
    }
}

/// Writes a plan's columns with a statement that names them all.
fn write_columns(
    conn: &Connection,
    sql: &str,
    plan: &Plan,
    expected: Option<Timestamp>,
) -> rusqlite::Result<usize> {
    conn.prepare_cached(sql)?.execute(named_params! {
        ":plan_id": plan.plan_id.to_string(),
        ":expected": text(expected.as_ref()),
        ":parent": text(plan.parent_plan_id.as_ref()),
        ":root": plan.root_plan_id.to_string(),
        ":action": plan.action.to_string(),
        ":phase": plan.phase.as_str(),
        ":state": plan.state.as_str(),
        ":attempt": plan.attempt,
        ":profile": plan.profile.profile.name,
        ":snapshot": Json(&plan.profile),
        ":arguments": Json(&plan.arguments),
        ":projects": Json(&plan.projects),
        ":strategy": plan.actors.strategy.to_string(),
        ":execution": plan.actors.execution.to_string(),
        ":estimation": text(plan.actors.estimation.as_ref()),
        ":invariant": text(plan.actors.invariant.as_ref()),
        ":created_by": plan.created_by,
        ":created_at": plan.created_at.to_string(),
        ":updated_at": plan.updated_at.to_string(),
        ":completed_at": text(plan.completed_at.as_ref()),
        ":error": plan.failure.as_ref().map(|failure| &failure.message),
        ":success": result_success(plan),
        ":awaiting": plan.awaiting.as_ref().map(|awaiting| awaiting.kind.as_str()),
        ":data": Json(plan),
    })
}

/// Keeps the index tables in step with the plan.
fn write_links(conn: &Connection, plan: &Plan) -> rusqlite::Result<()> {
    let id = plan.plan_id.to_string();
    conn.prepare_cached(
        "DELETE FROM plan_projects
         WHERE plan_id = ?1 AND project_name NOT IN (SELECT value FROM json_each(?2))",
    )?
    .execute(params![id, Json(&plan.projects)])?;
    for project in &plan.projects {
        conn.prepare_cached(
            "INSERT OR IGNORE INTO plan_projects (plan_id, project_name, namespace) VALUES (?1, ?2, ?3)",
        )?
        .execute(params![id, project.to_string(), project.namespace()])?;
    }
    let resources: Vec<ResourceId> = plan.resources.iter().map(|r| r.resource_id).collect();
    conn.prepare_cached(
        "DELETE FROM plan_resources
         WHERE plan_id = ?1 AND resource_id NOT IN (SELECT value FROM json_each(?2))",
    )?
    .execute(params![id, Json(&resources)])?;
    for resource in resources {
        conn.prepare_cached("INSERT OR IGNORE INTO plan_resources (plan_id, resource_id) VALUES (?1, ?2)")?
            .execute(params![id, resource.to_string()])?;
    }
    Ok(())
}

impl PlanReads for Tx<'_> {
    fn plan(&self, id: PlanId) -> StoreResult<Option<Plan>> {
        self.run(|conn| {
            let plan = conn
                .prepare_cached("SELECT data FROM plans WHERE plan_id = ?1")?
                .query_row([id.to_string()], |row| row.get::<_, Json<Plan>>(0))
                .optional()?;
            Ok(plan.map(|plan| plan.0))
        })
    }

    fn plan_rows(&self, filter: &PlanFilter) -> StoreResult<Vec<PlanRow>> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached(&list_sql())?;
            let rows = statement.query_map(
                params![
                    filter.phase.map(Phase::as_str),
                    filter.state.map(State::as_str),
                    filter.awaiting,
                    filter.action,
                    filter.project,
                    filter.namespace,
                ],
                plan_row,
            )?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    fn plans_starting(&self, prefix: &str, count: usize) -> StoreResult<Vec<PlanId>> {
        self.run(|conn| {
            plan_ids(
                conn,
                "SELECT plan_id FROM plans WHERE plan_id >= ?1 AND plan_id < ?2 ORDER BY plan_id LIMIT ?3",
                params![prefix, after_prefix(prefix), limit(count)],
            )
        })
    }

    fn runnable_plans(&self) -> StoreResult<Vec<PlanId>> {
        self.run(|conn| {
            // The phases are named because they come first in the index.
            plan_ids(
                conn,
                "SELECT plan_id FROM plans INDEXED BY idx_plans_phase_state
                 WHERE phase IN ('strategize', 'execute', 'apply') AND state IN ('queued', 'processing')
                     AND (awaiting IS NULL OR plan_id IN (SELECT plan_id FROM rewinds))
                     AND (parent_plan_id IS NULL OR phase = 'apply'
                         OR plan_id IN (SELECT plan_id FROM rewinds) OR EXISTS (
                         SELECT 1 FROM plans AS parent
                         WHERE parent.plan_id = plans.parent_plan_id AND parent.state = 'applied'))
                 ORDER BY created_at, plan_id",
                [],
            )
        })
    }

    fn processing_count(&self) -> StoreResult<u32> {
        self.run(|conn| {
            Ok(conn
                .prepare_cached(
                    "SELECT count(*) FROM plans INDEXED BY idx_plans_phase_state
                     WHERE phase IN ('strategize', 'execute', 'apply') AND state = 'processing'
                         AND awaiting IS NULL AND parent_plan_id IS NULL",
                )?
                .query_row([], |row| row.get(0))?)
        })
    }

    fn plans_of_action(&self, action: &QualifiedName) -> StoreResult<u32> {
        self.run(|conn| {
            Ok(conn
                .prepare_cached("SELECT count(*) FROM plans WHERE action_name = ?1")?
                .query_row([action.to_string()], |row| row.get(0))?)
        })
    }

    fn actor_run(&self, plan: PlanId, phase: Phase) -> StoreResult<Option<ActorRun>> {
        self.run(|conn| {
            let run = conn
                .prepare_cached("SELECT data FROM actor_runs WHERE plan_id = ?1 AND phase = ?2")?
                .query_row(params![plan.to_string(), phase.as_str()], |row| row.get::<_, Json<ActorRun>>(0))
                .optional()?;
            Ok(run.map(|run| run.0))
        })
    }

    fn active_plans_of_resource(&self, resource: ResourceId) -> StoreResult<Vec<PlanId>> {
        self.run(|conn| {
            plan_ids(
                conn,
                "SELECT plan_id FROM plans INDEXED BY idx_plans_list
                 WHERE state NOT IN ('applied', 'cancelled') AND EXISTS (
                     SELECT 1 FROM plan_resources AS r WHERE r.resource_id = ?1 AND r.plan_id = plans.plan_id)
                 ORDER BY created_at DESC, plan_id DESC",
                [resource.to_string()],
            )
        })
    }

    fn active_plans_of_project(&self, project: &QualifiedName) -> StoreResult<Vec<PlanRow>> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached(&format!(
                "SELECT {ROW} FROM plans INDEXED BY idx_plans_list
                 WHERE state NOT IN ('applied', 'cancelled') AND EXISTS (
                     SELECT 1 FROM plan_projects AS p WHERE p.project_name = ?1 AND p.plan_id = plans.plan_id)
                 ORDER BY created_at DESC, plan_id DESC"
            ))?;
            let rows = statement.query_map([project.to_string()], plan_row)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    fn action_history(&self, action: &QualifiedName) -> StoreResult<ActionHistory> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT state, created_at, completed_at FROM plans INDEXED BY idx_plans_list
                 WHERE action_name = ?1 ORDER BY created_at",
            )?;
            let mut rows = statement.query([action.to_string()])?;
            let mut history = ActionHistory::default();
            let mut spent = 0u64;
            while let Some(row) = rows.next()? {
                let state: State = row.get::<_, Parsed<_>>(0)?.0;
                let created: Timestamp = row.get::<_, Parsed<_>>(1)?.0;
                history.plans += 1;
                history.last_used = Some(created);
                match state {
                    State::Applied => {
                        history.applied += 1;
                        let ended = row.get::<_, Option<Parsed<Timestamp>>>(2)?;
                        spent += ended.map_or(0, |ended| ended.0.millis_since(created));
                    }
                    State::Cancelled => {}
                    other => {
                        history.active += 1;
                        history.errored += u32::from(other == State::Errored);
                    }
                }
            }
            history.mean_duration_ms = spent.checked_div(u64::from(history.applied));
            Ok(history)
        })
    }
}

impl PlanWrites for Tx<'_> {
    fn insert_plan(&self, plan: &Plan) -> StoreResult<()> {
        self.run(|conn| {
            write_columns(
                conn,
                "INSERT INTO plans (
                     plan_id, parent_plan_id, root_plan_id, action_name, phase, state, attempt,
                     automation_profile_name, effective_profile_snapshot, arguments, project_names,
                     strategy_actor_name, execution_actor_name, estimation_actor_name, invariant_actor_name,
                     created_by, created_at, updated_at, completed_at, error_message, result_success, awaiting, data
                 ) SELECT
                     :plan_id, :parent, :root, :action, :phase, :state, :attempt, :profile, :snapshot, :arguments,
                     :projects, :strategy, :execution, :estimation, :invariant, :created_by, :created_at,
                     :updated_at, :completed_at, :error, :success, :awaiting, :data
                 WHERE :expected IS NULL",
                plan,
                None,
            )
            .map_err(|e| Fault::from(e).or_duplicate(|| format!("plan {}", plan.plan_id)))?;
            Ok(write_links(conn, plan)?)
        })
    }

    fn update_plan(&self, plan: &Plan, expected: Timestamp) -> StoreResult<()> {
        self.run(|conn| {
            if plan.updated_at <= expected {
                // Two writers that read the same row could not tell each other apart.
                return Err(Fault::other(format!(
                    "plan {} was written without a later `updated_at` than {expected}",
                    plan.plan_id
                )));
            }
            let changed = write_columns(
                conn,
                "UPDATE plans SET
                     parent_plan_id = :parent, root_plan_id = :root, action_name = :action, phase = :phase,
                     state = :state, attempt = :attempt, automation_profile_name = :profile,
                     effective_profile_snapshot = :snapshot, arguments = :arguments, project_names = :projects,
                     strategy_actor_name = :strategy, execution_actor_name = :execution,
                     estimation_actor_name = :estimation, invariant_actor_name = :invariant,
                     created_by = :created_by, created_at = :created_at, updated_at = :updated_at,
                     completed_at = :completed_at, error_message = :error, result_success = :success,
                     awaiting = :awaiting, data = :data
                 WHERE plan_id = :plan_id AND updated_at = :expected",
                plan,
                Some(expected),
            )?;
            if changed == 1 {
                return Ok(write_links(conn, plan)?);
            }
            let id = plan.plan_id.to_string();
            let exists = conn.prepare_cached("SELECT 1 FROM plans WHERE plan_id = ?1")?.exists([&id])?;
            Err(if exists {
                StoreError::Conflict(format!("plan {id}")).into()
            } else {
                Fault::other(format!("there is no plan {id}"))
            })
        })
    }

    fn check_lease(&self, plan: PlanId, epoch: u64) -> StoreResult<()> {
        self.run(|conn| {
            let present = conn
                .prepare_cached("SELECT epoch FROM leases WHERE plan_id = ?1")?
                .query_row([plan.to_string()], |row| row.get::<_, i64>(0))
                .optional()?;
            if present.is_some_and(|present| u64::try_from(present) == Ok(epoch)) {
                Ok(())
            } else {
                Err(StoreError::LeaseLost(plan).into())
            }
        })
    }

    fn put_actor_run(&self, run: &ActorRun) -> StoreResult<()> {
        self.run(|conn| {
            conn.prepare_cached(
                "INSERT INTO actor_runs (plan_id, phase, data) VALUES (?1, ?2, ?3)
                 ON CONFLICT (plan_id, phase) DO UPDATE SET data = excluded.data",
            )?
            .execute(params![run.plan_id.to_string(), run.phase.as_str(), Json(run)])?;
            Ok(())
        })
    }

    fn delete_actor_run(&self, plan: PlanId, phase: Phase) -> StoreResult<()> {
        self.run(|conn| {
            conn.prepare_cached("DELETE FROM actor_runs WHERE plan_id = ?1 AND phase = ?2")?
                .execute(params![plan.to_string(), phase.as_str()])?;
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_reads_one_index_in_order_and_no_row() {
        let folder = tempfile::tempdir().unwrap();
        crate::SqliteStore::open(folder.path(), crate::Options::default()).unwrap();
        let conn = Connection::open(folder.path().join("cleveragents.db")).unwrap();
        let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {}", list_sql())).unwrap();
        let none: [Option<String>; 6] = Default::default();
        let steps: Vec<String> = statement
            .query_map(rusqlite::params_from_iter(none), |row| row.get(3))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        assert!(steps[0].contains("SCAN plans USING COVERING INDEX idx_plans_list"), "{steps:?}");
        assert!(!steps.iter().any(|step| step.contains("TEMP B-TREE")), "{steps:?}");
    }
}
