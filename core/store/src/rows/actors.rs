//! Actors that people define.

use agents_domain::QualifiedName;
use agents_domain::actor::RegisteredActor;
use agents_domain::ports::actor_store::{ActorReads, ActorWrites};
use agents_domain::ports::store::StoreResult;
use rusqlite::{Connection, Row, params};

use super::Tx;
use super::registry::one;
use super::values::{Json, Parsed};
use crate::blobs::sha256;
use crate::error::Fault;

const COLUMNS: &str = "SELECT name, yaml_text, config_path, overrides, is_default, runs, cost_usd, created_at, updated_at FROM actors";

fn registered(row: &Row<'_>) -> rusqlite::Result<RegisteredActor> {
    Ok(RegisteredActor {
        name: row.get::<_, Parsed<_>>(0)?.0,
        source: row.get(1)?,
        config_path: row.get(2)?,
        overrides: row.get::<_, Json<_>>(3)?.0,
        is_default: row.get(4)?,
        runs: row.get::<_, i64>(5)?.try_into().unwrap_or(0),
        cost_usd: row.get(6)?,
        created_at: row.get::<_, Parsed<_>>(7)?.0,
        updated_at: row.get::<_, Parsed<_>>(8)?.0,
    })
}

fn write(conn: &Connection, sql: &str, actor: &RegisteredActor) -> Result<usize, Fault> {
    Ok(conn.prepare_cached(sql)?.execute(params![
        actor.name.to_string(),
        actor.name.namespace(),
        actor.source,
        actor.config_path,
        sha256(actor.source.as_bytes()),
        Json(&actor.overrides),
        actor.is_default,
        i64::try_from(actor.runs).unwrap_or(i64::MAX),
        actor.cost_usd,
        actor.created_at.to_string(),
        actor.updated_at.to_string(),
    ])?)
}

impl ActorReads for Tx<'_> {
    fn actor(&self, name: &QualifiedName) -> StoreResult<Option<RegisteredActor>> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached(&format!("{COLUMNS} WHERE name = ?1"))?;
            let found = statement.query_map([name.to_string()], registered)?.next().transpose()?;
            Ok(found)
        })
    }

    fn actors(&self) -> StoreResult<Vec<RegisteredActor>> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached(&format!("{COLUMNS} ORDER BY name"))?;
            let rows = statement.query_map([], registered)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }
}

impl ActorWrites for Tx<'_> {
    fn insert_actor(&self, actor: &RegisteredActor) -> StoreResult<()> {
        self.run(|conn| {
            write(
                conn,
                "INSERT INTO actors (name, namespace, yaml_text, config_path, config_hash, overrides, is_default, runs,
                     cost_usd, created_at, updated_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                actor,
            )
            .map_err(|fault| fault.or_duplicate(|| format!("actor {}", actor.name)))?;
            Ok(())
        })
    }

    fn update_actor(&self, actor: &RegisteredActor) -> StoreResult<()> {
        self.run(|conn| {
            let changed = write(
                conn,
                "UPDATE actors SET namespace = ?2, yaml_text = ?3, config_path = ?4, config_hash = ?5, overrides = ?6,
                     is_default = ?7, runs = ?8, cost_usd = ?9, created_at = ?10, updated_at = ?11
                 WHERE name = ?1",
                actor,
            )?;
            match changed {
                0 => Err(Fault::other(format!("there is no actor {}", actor.name))),
                _ => Ok(()),
            }
        })
    }

    fn delete_actor(&self, name: &QualifiedName) -> StoreResult<()> {
        self.run(|conn| {
            one(conn, "DELETE FROM actors WHERE name = ?1", [name.to_string()], &format!("actor {name}"))
        })
    }

    fn count_actor_run(&self, name: &QualifiedName, cost_usd: f64) -> StoreResult<()> {
        self.run(|conn| {
            conn.prepare_cached(
                "UPDATE actors SET runs = runs + 1, cost_usd = cost_usd + ?2 WHERE name = ?1",
            )?
            .execute(params![name.to_string(), cost_usd])?;
            Ok(())
        })
    }
}
