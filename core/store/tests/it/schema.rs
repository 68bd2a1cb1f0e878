//! The schema as the specification has it, and the searches that must stay cheap.

use std::collections::BTreeMap;

use agents_domain::ports::store::{StoreError, StoreExt};
use agents_store::testing;
use rusqlite::Connection;

use crate::{folder, open, raw};

fn columns(conn: &Connection, table: &str) -> Vec<String> {
    conn.prepare("SELECT name FROM pragma_table_info(?1) ORDER BY cid")
        .unwrap()
        .query_map([table], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

// STORE-010
#[test]
fn the_tables_of_the_specification_have_their_columns_in_order() {
    let specified = [
        (
            "plans",
            "plan_id parent_plan_id root_plan_id action_name phase state attempt automation_profile_name \
             effective_profile_snapshot arguments project_names strategy_actor_name execution_actor_name \
             estimation_actor_name invariant_actor_name created_by created_at updated_at completed_at error_message \
             error_traceback cost_estimate_usd cost_actual_usd token_count_input token_count_output result_success",
        ),
        (
            "decisions",
            "decision_id plan_id parent_decision_id decision_type question chosen_option alternatives_considered \
             confidence_score rationale context_snapshot downstream_plan_ids artifacts_produced is_correction \
             corrects_decision_id superseded_by sequence_number created_at actor_reasoning correction_reason",
        ),
        (
            "resources",
            "resource_id name resource_type_name classification description properties location content_hash \
             sandbox_strategy created_at updated_at",
        ),
        ("resource_links", "parent_id child_id link_type created_at auto_discovered coherence"),
        ("project_resources", "project_name resource_id read_only linked_at alias"),
        (
            "checkpoint_metadata",
            "checkpoint_id plan_id decision_id checkpoint_type resource_id filesystem_path size_bytes created_at",
        ),
        (
            "correction_attempts",
            "correction_attempt_id plan_id original_decision_id new_decision_id mode guidance \
             archived_artifacts_path state created_at completed_at",
        ),
        ("audit_log", "id event_type plan_id project_name actor_name user_identity details created_at"),
        (
            "decision_dependencies",
            "upstream_decision_id downstream_decision_id dependency_type downstream_ref",
        ),
    ];
    let folder = folder();
    open(folder.path());
    let conn = raw(folder.path());
    for (table, expected) in specified {
        let expected: Vec<&str> = expected.split_whitespace().collect();
        let found = columns(&conn, table);
        assert!(found.len() >= expected.len(), "{table}: {found:?}");
        assert_eq!(found[..expected.len()], expected, "{table}");
    }
}

// STORE-010
#[test]
fn the_indexes_of_the_specification_are_there() {
    let specified: BTreeMap<&str, &str> = [
        ("idx_plans_parent", "plans(parent_plan_id)"),
        ("idx_plans_root", "plans(root_plan_id)"),
        ("idx_plans_phase_state", "plans(phase, state)"),
        ("idx_plans_action", "plans(action_name)"),
        ("idx_plans_created", "plans(created_at)"),
        ("idx_decisions_plan", "decisions(plan_id)"),
        ("idx_decisions_parent", "decisions(parent_decision_id)"),
        ("idx_decisions_type", "decisions(decision_type)"),
        ("idx_decisions_superseded", "decisions(superseded_by) WHERE superseded_by IS NOT NULL"),
        ("idx_resources_name", "resources(name) WHERE name IS NOT NULL"),
        ("idx_resources_type", "resources(resource_type_name)"),
        ("idx_resources_classification", "resources(classification)"),
        ("idx_resource_links_child", "resource_links(child_id)"),
        ("idx_checkpoints_plan", "checkpoint_metadata(plan_id)"),
        ("idx_corrections_plan", "correction_attempts(plan_id)"),
        ("idx_audit_event", "audit_log(event_type)"),
        ("idx_audit_plan", "audit_log(plan_id) WHERE plan_id IS NOT NULL"),
        ("idx_audit_created", "audit_log(created_at)"),
    ]
    .into();
    let folder = folder();
    open(folder.path());
    let conn = raw(folder.path());
    for (name, on) in specified {
        let sql: String = conn
            .query_row("SELECT sql FROM sqlite_schema WHERE type = 'index' AND name = ?1", [name], |row| {
                row.get(0)
            })
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(sql.split_once(" ON ").unwrap().1, on, "{name}");
    }
}

// DEC-019, STORE-016
#[test]
fn decisions_cannot_be_deleted_or_rewritten_even_by_hand() {
    let folder = folder();
    testing::fill(&open(folder.path()), 1, 3).unwrap();
    let conn = raw(folder.path());
    conn.pragma_update(None, "foreign_keys", true).unwrap();
    let refused = |sql: &str, why: &str| {
        let error = conn.execute(sql, []).expect_err(sql).to_string();
        assert!(error.contains(why), "{sql}: {error}");
    };
    refused("DELETE FROM decisions", "never deleted");
    refused("DELETE FROM decisions WHERE sequence_number = 3", "never deleted");
    refused("DELETE FROM plans", "FOREIGN KEY");
    let changing = ["superseded_by", "pending", "approval", "downstream_plan_ids", "artifacts_produced"];
    for column in columns(&conn, "decisions") {
        let sql = format!("UPDATE decisions SET {column} = {column} WHERE sequence_number = 2");
        if !changing.contains(&column.as_str()) {
            refused(&sql, "never changes");
        } else if column != "superseded_by" {
            assert_eq!(conn.execute(&sql, []), Ok(1), "{column}");
        }
    }
    refused("UPDATE decisions SET superseded_by = decision_id", "superseded once");
    refused("UPDATE decisions SET superseded_by = NULL", "superseded once");
}

// STORE-005: JSON columns can be searched.
#[test]
fn semi_structured_columns_are_json() {
    let folder = folder();
    testing::fill(&open(folder.path()), 1, 2).unwrap();
    let conn = raw(folder.path());
    let path: String = conn
        .query_row(
            "SELECT json_extract(context_snapshot, '$.relevant_resources[0].path') FROM decisions
             WHERE sequence_number = 2",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(path, "src/app.py");
}

// STORE-009
#[test]
fn the_result_of_applying_is_a_column_of_its_own() {
    use agents_domain::plan::{Phase, Plan, State};
    let folder = folder();
    let store = open(folder.path());
    let states = [
        (Phase::Execute, State::Errored, None),
        (Phase::Apply, State::Queued, None),
        (Phase::Apply, State::Errored, Some(false)),
        (Phase::Apply, State::Constrained, Some(false)),
        (Phase::Apply, State::Applied, Some(true)),
    ];
    let conn = raw(folder.path());
    for (n, (phase, state, expected)) in states.into_iter().enumerate() {
        let plan = Plan { phase, state, ..testing::plan(n as u64) };
        store.transact(|w| w.insert_plan(&plan)).unwrap();
        let found: Option<bool> = conn
            .query_row(
                "SELECT result_success FROM plans WHERE plan_id = ?1",
                [plan.plan_id.to_string()],
                |row| row.get(0),
            )
            .unwrap();
        assert_eq!(found, expected, "{phase}/{state}");
    }
}

// DEC-016, C-49
#[test]
fn edges_to_decisions_plans_and_artifacts_are_kept() {
    let folder = folder();
    let store = open(folder.path());
    let plan = testing::plan(1);
    let root = testing::root_decision(&plan);
    let below = testing::decision(&plan, root.decision_id, 2);
    store
        .transact(|w| {
            w.insert_plan(&plan)?;
            w.insert_decision(&root)?;
            w.insert_decision(&below)?;
            w.add_impact(below.decision_id, &["a.py".to_owned()], &[testing::id(7)])
        })
        .unwrap();
    let edges: Vec<(String, Option<String>, String, String)> = raw(folder.path())
        .prepare(
            "SELECT upstream_decision_id, downstream_decision_id, dependency_type, downstream_ref
             FROM decision_dependencies ORDER BY rowid",
        )
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let (root, below) = (root.decision_id.to_string(), below.decision_id.to_string());
    let seven: agents_domain::ids::PlanId = testing::id(7);
    assert_eq!(
        edges,
        [
            (root, Some(below.clone()), "decision".to_owned(), below.clone()),
            (below.clone(), None, "artifact".to_owned(), "a.py".to_owned()),
            (below, None, "plan".to_owned(), seven.to_string()),
        ]
    );
}

#[test]
fn a_defect_of_the_caller_is_told_with_the_rule_it_broke() {
    let folder = folder();
    let store = open(folder.path());
    let plan = agents_domain::plan::Plan { state: agents_domain::plan::State::Applied, ..testing::plan(1) };
    match store.transact(|w| w.insert_plan(&plan)) {
        Err(StoreError::Other(told)) => assert!(told.contains("plans_state_of_phase"), "{told}"),
        other => panic!("{other:?}"),
    }
}

// STORE-008: what the database fills in by itself reads like what the program writes
#[test]
fn default_times_have_the_format_of_written_ones() {
    let folder = folder();
    drop(open(folder.path()));
    let conn = raw(folder.path());
    let tables: Vec<String> = conn
        .prepare("SELECT sql FROM sqlite_master WHERE sql LIKE '%strftime%'")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert!(!tables.is_empty());
    const DEFAULT: &str = "strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')";
    for sql in tables {
        assert_eq!(sql.matches("strftime(").count(), sql.matches(DEFAULT).count(), "{sql}");
    }
    let now: String = conn.query_row(&format!("SELECT {DEFAULT}"), [], |row| row.get(0)).unwrap();
    assert_eq!(now.parse::<agents_domain::Timestamp>().unwrap().to_string(), now);
}

// STORE-004: what is made in numbers has a ULID, what a person names has its name
#[test]
fn rows_are_found_by_their_ulid_or_their_name() {
    let folder = folder();
    open(folder.path());
    let conn = raw(folder.path());
    let key = |table: &str| -> Vec<String> {
        let sql = "SELECT name || ' ' || type FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY pk";
        let mut statement = conn.prepare(sql).unwrap();
        statement.query_map([table], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    };
    for (table, column) in [
        ("plans", "plan_id"),
        ("decisions", "decision_id"),
        ("checkpoint_metadata", "checkpoint_id"),
        ("correction_attempts", "correction_attempt_id"),
        ("resources", "resource_id"),
        ("changes", "change_id"),
        ("validation_attachments", "attachment_id"),
        ("projects", "name"),
        ("actions", "name"),
        ("tools", "name"),
        ("lsp_servers", "name"),
        ("skills", "name"),
        ("automation_profiles", "name"),
    ] {
        assert_eq!(key(table), [format!("{column} TEXT")], "{table}");
    }
}
