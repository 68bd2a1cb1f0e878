//! What plans hand on, and the plans made for it.

use agents_domain::ids::PlanId;
use agents_domain::plan::children::{Spawn, Stage};
use agents_domain::ports::store::{ChildReads, ChildWrites, PlanRow, StoreResult};
use rusqlite::{OptionalExtension, params};

use super::Tx;
use super::plans::{ROW, plan_row};
use super::values::{Json, text};

impl ChildReads for Tx<'_> {
    fn spawns(&self, parent: PlanId) -> StoreResult<Vec<Spawn>> {
        self.run(|conn| {
            let mut statement =
                conn.prepare_cached("SELECT data FROM spawns WHERE plan_id = ?1 ORDER BY rowid")?;
            let rows =
                statement.query_map([parent.to_string()], |row| Ok(row.get::<_, Json<Spawn>>(0)?.0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    fn spawn_of(&self, child: PlanId) -> StoreResult<Option<Spawn>> {
        self.run(|conn| {
            let spawn = conn
                .prepare_cached("SELECT data FROM spawns WHERE child_plan_id = ?1")?
                .query_row([child.to_string()], |row| row.get::<_, Json<Spawn>>(0))
                .optional()?;
            Ok(spawn.map(|spawn| spawn.0))
        })
    }

    fn child_rows(&self, parent: PlanId) -> StoreResult<Vec<PlanRow>> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached(&format!(
                "SELECT {ROW} FROM plans INDEXED BY idx_plans_parent WHERE parent_plan_id = ?1
                 ORDER BY created_at, plan_id"
            ))?;
            let rows = statement.query_map([parent.to_string()], plan_row)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }
}

impl ChildWrites for Tx<'_> {
    fn put_spawn(&self, spawn: &Spawn) -> StoreResult<()> {
        self.run(|conn| {
            conn.prepare_cached(
                "INSERT INTO spawns (decision_id, call, plan_id, child_plan_id, stage, data)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT (decision_id, call) DO UPDATE SET
                     child_plan_id = excluded.child_plan_id, stage = excluded.stage, data = excluded.data",
            )?
            .execute(params![
                spawn.decision_id.to_string(),
                spawn.call,
                spawn.plan_id.to_string(),
                text(spawn.child.as_ref()),
                word(&spawn.stage),
                Json(spawn),
            ])?;
            Ok(())
        })
    }
}

fn word(stage: &Stage) -> &'static str {
    match stage {
        Stage::Decided => "decided",
        Stage::Started => "started",
        Stage::Conflicted { .. } => "conflicted",
        Stage::Merged { .. } => "merged",
        Stage::Skipped { .. } => "skipped",
    }
}
