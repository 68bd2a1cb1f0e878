//! `project delete`.

use agents_domain::ids::PlanId;
use agents_domain::invariant::Scope;
use agents_domain::ports::store::PlanRow;
use agents_domain::validation::{self, Attachment};
use agents_domain::{Error, QualifiedName, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::super::{plan, registry};
use super::{NO_INDEX, backup, find, paths, state_text};
use crate::{Engine, Operation};

/// Deletes a project; its resources stay registered, and their files as they are.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Delete {
    /// The project's name.
    pub name: String,
    /// Cancel its active plans instead of being refused by them.
    #[serde(default)]
    pub force: bool,
}

/// What was deleted: `deletion_summary`, or `force_delete` and `deleted` when plans were cancelled.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct DeleteOutput {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_summary: Option<DeletionSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force_delete: Option<ForceDelete>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted: Option<Deleted>,
    pub index_cleanup: IndexCleanup,
    pub backups: Backups,
}

/// What went from the indexes.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct IndexCleanup {
    pub text_index: String,
    pub vectors: String,
    pub graph_triples: String,
    pub storage_freed_mb: u64,
}

/// What was kept of it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Backups {
    /// The archive: the database with its audit log as it was before, and the project as JSON.
    pub snapshot: String,
    /// Days until `agents diagnostics --cleanup` removes it; 0 keeps it.
    pub retention_days: i64,
}

/// A deleted project.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct DeletionSummary {
    pub project: String,
    pub resources_unlinked: usize,
    pub data_dir: Option<String>,
}

/// The plans that had to go.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ForceDelete {
    pub cancelled_plans: Vec<CancelledPlan>,
}

/// A plan that was cancelled.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct CancelledPlan {
    pub plan_id: PlanId,
    /// Such as `execute/processing`.
    pub previous_state: String,
}

/// A project that was deleted by force.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Deleted {
    pub project: String,
    pub resources_unlinked: usize,
    pub validations_detached: usize,
    pub plans_cancelled: usize,
    pub context_policies: String,
}

fn blocked(name: &QualifiedName, plans: &[PlanRow]) -> Error {
    let count = plans.len();
    let plural = if count == 1 { "" } else { "s" };
    let list: Vec<_> = plans
        .iter()
        .map(|p| json!({ "plan_id": p.plan_id, "phase": state_text(p), "action": p.action }))
        .collect();
    let error = plans
        .iter()
        .fold(Error::invalid_state(format!("Delete blocked — {count} active plan{plural}")), |error, p| {
            error.suggest(format!("agents plan cancel {}", p.plan_id))
        });
    error.suggest(format!("agents project delete --force {name}")).data(json!({
        "delete_blocked": { "reason": "project has active plans", "active_plans": list },
        "resolution": [
            "Cancel or complete active plans first",
            "Use --force to cancel all active plans and delete the project",
        ],
    }))
}

impl Operation for Delete {
    const METHOD: &'static str = "registry/project/delete";
    const SUMMARY: &'static str = "Delete a project";
    type Output = DeleteOutput;

    fn run(self, engine: &Engine) -> Result<DeleteOutput> {
        let (project, linked, plans) = find(engine, &self.name)?;
        let name = project.name.clone();
        if !plans.is_empty() && !self.force {
            return Err(blocked(&name, &plans));
        }
        let snapshot = backup::project(engine, &project, &linked, &plans)?;
        let mut cancelled = Vec::new();
        for row in &plans {
            let reason = Some(format!("project {name} is deleted"));
            engine.call(plan::Cancel { plan: row.plan_id.to_string(), reason })?;
            cancelled.push(CancelledPlan { plan_id: row.plan_id, previous_state: state_text(row) });
        }
        let (unlinked, detached) = engine.write(|w| {
            // A plan may have started in the meantime.
            let plans = w.active_plans_of_project(&name)?;
            if !plans.is_empty() {
                return Err(blocked(&name, &plans));
            }
            let links = w.project(&name)?.map_or(0, |p| p.resources.len());
            w.delete_invariants_of(Scope::Project, &name.to_string())?;
            let own = |a: &Attachment| a.scope == validation::Scope::Project(name.clone());
            let attached: Vec<_> = w.attachments()?.into_iter().filter(own).collect();
            attached.iter().try_for_each(|a| w.delete_attachment(a.attachment_id))?;
            w.delete_project(&name)?;
            let cascade = json!({ "resources_unlinked": links, "plans_cancelled": cancelled.len(),
                "validations_detached": attached.len() });
            registry::deleted(engine, w, "project", &name.to_string(), cascade)?;
            Ok((links, attached.len()))
        })?;
        let index_cleanup = IndexCleanup {
            text_index: NO_INDEX.to_owned(),
            vectors: NO_INDEX.to_owned(),
            graph_triples: NO_INDEX.to_owned(),
            storage_freed_mb: 0,
        };
        let backups = Backups {
            snapshot: snapshot.display().to_string(),
            retention_days: engine.config.integer("core.backup.retention-days", None),
        };
        let mut output = DeleteOutput {
            deletion_summary: None,
            force_delete: None,
            deleted: None,
            index_cleanup,
            backups,
        };
        let project = name.to_string();
        if cancelled.is_empty() {
            let data_dir = paths(engine, &linked).data_dir;
            let summary = DeletionSummary { project, resources_unlinked: unlinked, data_dir };
            output.deletion_summary = Some(summary);
            return Ok(output);
        }
        output.deleted = Some(Deleted {
            project,
            resources_unlinked: unlinked,
            validations_detached: detached,
            plans_cancelled: cancelled.len(),
            context_policies: "cleared".to_owned(),
        });
        output.force_delete = Some(ForceDelete { cancelled_plans: cancelled });
        Ok(output)
    }
}
