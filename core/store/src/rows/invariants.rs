//! Invariants, and how each plan's were reconciled.

use agents_domain::ids::{InvariantId, PlanId};
use agents_domain::invariant::{Invariant, Scope};
use agents_domain::ports::store::{InvariantReads, InvariantWrites, Reconciliation, StoreResult};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::Tx;
use super::values::{Json, Parsed, Word, text};
use crate::error::Fault;

fn invariant(row: &Row<'_>) -> rusqlite::Result<Invariant> {
    Ok(Invariant {
        invariant_id: row.get::<_, Parsed<_>>(0)?.0,
        scope: row.get::<_, Word<_>>(1)?.0,
        target: row.get(2)?,
        text: row.get(3)?,
        non_overridable: row.get(4)?,
        created_at: row.get::<_, Parsed<_>>(5)?.0,
    })
}

fn invariants(conn: &Connection, rest: &str, params: impl rusqlite::Params) -> Result<Vec<Invariant>, Fault> {
    let mut statement = conn.prepare_cached(&format!(
        "SELECT id, scope, scope_target, text, non_overridable, created_at FROM invariants {rest} ORDER BY id"
    ))?;
    let rows = statement.query_map(params, invariant)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

impl InvariantReads for Tx<'_> {
    fn invariant(&self, id: InvariantId) -> StoreResult<Option<Invariant>> {
        self.run(|conn| Ok(invariants(conn, "WHERE id = ?1", [id.to_string()])?.pop()))
    }

    fn invariants(&self) -> StoreResult<Vec<Invariant>> {
        self.run(|conn| invariants(conn, "", []))
    }

    fn invariants_of(&self, scope: Scope, target: Option<&str>) -> StoreResult<Vec<Invariant>> {
        self.run(|conn| {
            invariants(conn, "WHERE scope = ?1 AND scope_target IS ?2", params![scope.as_str(), target])
        })
    }

    fn reconciliation(&self, plan: PlanId) -> StoreResult<Option<Reconciliation>> {
        self.run(|conn| {
            let row = conn
                .prepare_cached(
                    "SELECT plan_id, reconciler, result, created_at FROM reconciliations WHERE plan_id = ?1",
                )?
                .query_row([plan.to_string()], |row| {
                    Ok(Reconciliation {
                        plan_id: row.get::<_, Parsed<_>>(0)?.0,
                        reconciler: row.get(1)?,
                        result: row.get::<_, Json<_>>(2)?.0,
                        created_at: row.get::<_, Parsed<_>>(3)?.0,
                    })
                })
                .optional()?;
            Ok(row)
        })
    }
}

impl InvariantWrites for Tx<'_> {
    fn insert_invariant(&self, invariant: &Invariant) -> StoreResult<()> {
        self.run(|conn| {
            conn.prepare_cached(
                "INSERT INTO invariants (id, scope, scope_target, text, non_overridable, created_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![
                invariant.invariant_id.to_string(),
                invariant.scope.as_str(),
                text(invariant.target.as_ref()),
                invariant.text,
                invariant.non_overridable,
                invariant.created_at.to_string(),
            ])
            .map_err(|e| Fault::from(e).or_duplicate(|| format!("invariant {}", invariant.invariant_id)))?;
            Ok(())
        })
    }

    fn delete_invariant(&self, id: InvariantId) -> StoreResult<()> {
        self.run(|conn| {
            match conn.prepare_cached("DELETE FROM invariants WHERE id = ?1")?.execute([id.to_string()])? {
                0 => Err(Fault::other(format!("there is no invariant {id}"))),
                _ => Ok(()),
            }
        })
    }

    fn delete_invariants_of(&self, scope: Scope, target: &str) -> StoreResult<usize> {
        self.run(|conn| {
            let sql = "DELETE FROM invariants WHERE scope = ?1 AND scope_target = ?2";
            Ok(conn.prepare_cached(sql)?.execute([scope.as_str(), target])?)
        })
    }

    fn put_reconciliation(&self, reconciliation: &Reconciliation) -> StoreResult<()> {
        self.run(|conn| {
            conn.prepare_cached(
                "INSERT INTO reconciliations (plan_id, reconciler, result, created_at) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (plan_id) DO UPDATE SET
                     reconciler = excluded.reconciler, result = excluded.result",
            )?
            .execute(params![
                reconciliation.plan_id.to_string(),
                reconciliation.reconciler,
                Json(&reconciliation.result),
                reconciliation.created_at.to_string(),
            ])?;
            Ok(())
        })
    }
}
