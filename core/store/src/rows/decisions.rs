//! Decisions and the edges between them. The schema's triggers keep what was decided as it was.

use agents_domain::decision::Decision;
use agents_domain::ids::{DecisionId, PlanId};
use agents_domain::ports::store::{DecisionReads, DecisionWrites, StoreResult};
use rusqlite::{Connection, OptionalExtension, Row, named_params, params};

use super::Tx;
use super::values::{Json, Parsed, Word, after_prefix, limit, text};
use crate::error::Fault;

const COLUMNS: &str = "decision_id, decisions.plan_id, parent_decision_id, sequence_number, decision_key, \
    decision_type, question, chosen_option, alternatives_considered, confidence_score, rationale, actor_reasoning, \
    context_snapshot, depends_on, pending, approval, artifacts_produced, downstream_plan_ids, corrects_decision_id, \
    correction_reason, superseded_by, decisions.created_at";

fn decision(row: &Row<'_>) -> rusqlite::Result<Decision> {
    let id =
        |column| Ok::<_, rusqlite::Error>(row.get::<_, Option<Parsed<DecisionId>>>(column)?.map(|id| id.0));
    Ok(Decision {
        decision_id: row.get::<_, Parsed<_>>(0)?.0,
        plan_id: row.get::<_, Parsed<_>>(1)?.0,
        parent_decision_id: id(2)?,
        sequence_number: row.get(3)?,
        key: row.get(4)?,
        decision_type: row.get::<_, Word<_>>(5)?.0,
        question: row.get(6)?,
        chosen_option: row.get(7)?,
        alternatives: row.get::<_, Json<_>>(8)?.0,
        confidence: row.get(9)?,
        rationale: row.get(10)?,
        actor_reasoning: row.get(11)?,
        context: row.get::<_, Json<_>>(12)?.0,
        depends_on: row.get::<_, Json<_>>(13)?.0,
        pending: row.get(14)?,
        approval: row.get::<_, Option<Word<_>>>(15)?.map(|word| word.0),
        artifacts: row.get::<_, Json<_>>(16)?.0,
        downstream_plans: row.get::<_, Json<_>>(17)?.0,
        corrects_decision_id: id(18)?,
        correction_reason: row.get(19)?,
        superseded_by: id(20)?,
        created_at: row.get::<_, Parsed<_>>(21)?.0,
    })
}

fn select(conn: &Connection, rest: &str, params: impl rusqlite::Params) -> Result<Vec<Decision>, Fault> {
    let mut statement = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM decisions {rest}"))?;
    let rows = statement.query_map(params, decision)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn link(
    conn: &Connection,
    upstream: DecisionId,
    kind: &str,
    downstream: Option<DecisionId>,
    reference: &str,
) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT INTO decision_dependencies
             (upstream_decision_id, downstream_decision_id, dependency_type, downstream_ref)
         VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
    )?
    .execute(params![upstream.to_string(), text(downstream.as_ref()), kind, reference])?;
    Ok(())
}

fn missing(id: DecisionId) -> Fault {
    Fault::other(format!("there is no decision {id}"))
}

impl Tx<'_> {
    /// At the end of a transaction a plan whose root was touched has one root in force.
    pub(crate) fn check_roots(&self) -> StoreResult<()> {
        for plan in std::mem::take(&mut *self.roots.borrow_mut()) {
            let roots: u32 = self.run(|conn| {
                Ok(conn
                    .prepare_cached(
                        "SELECT count(*) FROM decisions
                         WHERE plan_id = ?1 AND parent_decision_id IS NULL AND superseded_by IS NULL",
                    )?
                    .query_row([plan.to_string()], |row| row.get(0))?)
            })?;
            if roots != 1 {
                return self.run(|_| {
                    Err(Fault::other(format!("plan {plan} was left with {roots} root decisions in force")))
                });
            }
        }
        Ok(())
    }
}

impl DecisionReads for Tx<'_> {
    fn decision(&self, id: DecisionId) -> StoreResult<Option<Decision>> {
        self.run(|conn| Ok(select(conn, "WHERE decision_id = ?1", [id.to_string()])?.pop()))
    }

    fn decisions(&self, plan: PlanId) -> StoreResult<Vec<Decision>> {
        self.run(|conn| select(conn, "WHERE plan_id = ?1 ORDER BY sequence_number", [plan.to_string()]))
    }

    fn decisions_starting(&self, prefix: &str, count: usize) -> StoreResult<Vec<DecisionId>> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT decision_id FROM decisions
                 WHERE decision_id >= ?1 AND decision_id < ?2 ORDER BY decision_id LIMIT ?3",
            )?;
            let ids = statement.query_map(params![prefix, after_prefix(prefix), limit(count)], |row| {
                Ok(row.get::<_, Parsed<DecisionId>>(0)?.0)
            })?;
            Ok(ids.collect::<Result<_, _>>()?)
        })
    }

    fn pending_decisions(&self) -> StoreResult<Vec<Decision>> {
        self.run(|conn| {
            select(
                conn,
                // In this order: few decisions wait, and each has one plan.
                "INDEXED BY idx_decisions_pending CROSS JOIN plans USING (plan_id)
                 WHERE pending AND superseded_by IS NULL AND state NOT IN ('applied', 'cancelled')
                 ORDER BY decisions.created_at, decisions.plan_id, sequence_number",
                [],
            )
        })
    }
}

impl DecisionWrites for Tx<'_> {
    fn next_sequence(&self, plan: PlanId) -> StoreResult<u32> {
        self.run(|conn| {
            Ok(conn
                .prepare_cached(
                    "SELECT coalesce(max(sequence_number), 0) + 1 FROM decisions WHERE plan_id = ?1",
                )?
                .query_row([plan.to_string()], |row| row.get(0))?)
        })
    }

    fn insert_decision(&self, decision: &Decision) -> StoreResult<()> {
        self.run(|conn| {
            let id = decision.decision_id;
            conn.prepare_cached(
                "INSERT INTO decisions (
                     decision_id, plan_id, parent_decision_id, sequence_number, decision_key, decision_type, question,
                     chosen_option, alternatives_considered, confidence_score, rationale, actor_reasoning,
                     context_snapshot, depends_on, pending, approval, artifacts_produced, downstream_plan_ids,
                     is_correction, corrects_decision_id, correction_reason, superseded_by, created_at
                 ) VALUES (
                     :id, :plan, :parent, :sequence, :key, :type, :question, :chosen, :alternatives, :confidence,
                     :rationale, :reasoning, :context, :depends_on, :pending, :approval, :artifacts, :plans,
                     :is_correction, :corrects, :reason, :superseded_by, :created_at
                 )",
            )?
            .execute(named_params! {
                ":id": id.to_string(),
                ":plan": decision.plan_id.to_string(),
                ":parent": text(decision.parent_decision_id.as_ref()),
                ":sequence": decision.sequence_number,
                ":key": decision.key,
                ":type": decision.decision_type.as_str(),
                ":question": decision.question,
                ":chosen": decision.chosen_option,
                ":alternatives": Json(&decision.alternatives),
                ":confidence": decision.confidence,
                ":rationale": decision.rationale,
                ":reasoning": decision.actor_reasoning,
                ":context": Json(&decision.context),
                ":depends_on": Json(&decision.depends_on),
                ":pending": decision.pending,
                ":approval": decision.approval.map(Word),
                ":artifacts": Json(&decision.artifacts),
                ":plans": Json(&decision.downstream_plans),
                ":is_correction": decision.corrects_decision_id.is_some(),
                ":corrects": text(decision.corrects_decision_id.as_ref()),
                ":reason": decision.correction_reason,
                ":superseded_by": text(decision.superseded_by.as_ref()),
                ":created_at": decision.created_at.to_string(),
            })
            .map_err(|e| Fault::from(e).or_duplicate(|| format!("decision {id}")))?;
            for upstream in &decision.depends_on {
                link(conn, *upstream, "decision", Some(id), &id.to_string())?;
            }
            for artifact in &decision.artifacts {
                link(conn, id, "artifact", None, artifact)?;
            }
            for plan in &decision.downstream_plans {
                link(conn, id, "plan", None, &plan.to_string())?;
            }
            if decision.parent_decision_id.is_none() {
                self.roots.borrow_mut().insert(decision.plan_id);
            }
            Ok(())
        })
    }

    fn supersede(&self, decision: DecisionId, by: DecisionId) -> StoreResult<()> {
        self.run(|conn| {
            let (plan, is_root) = conn
                .prepare_cached(
                    "UPDATE decisions SET superseded_by = ?2, pending = FALSE WHERE decision_id = ?1
                     RETURNING plan_id, parent_decision_id IS NULL",
                )?
                .query_row(params![decision.to_string(), by.to_string()], |row| {
                    Ok((row.get::<_, Parsed<PlanId>>(0)?.0, row.get::<_, bool>(1)?))
                })
                .optional()?
                .ok_or_else(|| missing(decision))?;
            if is_root {
                self.roots.borrow_mut().insert(plan);
            }
            Ok(())
        })
    }

    fn settle_decision(&self, decision: &Decision) -> StoreResult<()> {
        self.run(|conn| {
            let changed = conn
                .prepare_cached("UPDATE decisions SET pending = ?2, approval = ?3 WHERE decision_id = ?1")?
                .execute(params![
                    decision.decision_id.to_string(),
                    decision.pending,
                    decision.approval.map(Word)
                ])?;
            if changed == 1 { Ok(()) } else { Err(missing(decision.decision_id)) }
        })
    }

    fn add_impact(&self, decision: DecisionId, artifacts: &[String], plans: &[PlanId]) -> StoreResult<()> {
        self.run(|conn| {
            let id = decision.to_string();
            let (mut all_artifacts, mut all_plans) = conn
                .prepare_cached(
                    "SELECT artifacts_produced, downstream_plan_ids FROM decisions WHERE decision_id = ?1",
                )?
                .query_row([&id], |row| {
                    Ok((row.get::<_, Json<Vec<String>>>(0)?.0, row.get::<_, Json<Vec<PlanId>>>(1)?.0))
                })
                .optional()?
                .ok_or_else(|| missing(decision))?;
            for artifact in artifacts {
                if !all_artifacts.contains(artifact) {
                    all_artifacts.push(artifact.clone());
                    link(conn, decision, "artifact", None, artifact)?;
                }
            }
            for plan in plans {
                if !all_plans.contains(plan) {
                    all_plans.push(*plan);
                    link(conn, decision, "plan", None, &plan.to_string())?;
                }
            }
            conn.prepare_cached(
                "UPDATE decisions SET artifacts_produced = ?2, downstream_plan_ids = ?3 WHERE decision_id = ?1",
            )?
            .execute(params![id, Json(&all_artifacts), Json(&all_plans)])?;
            Ok(())
        })
    }
}
