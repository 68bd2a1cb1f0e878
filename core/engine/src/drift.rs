//! Whether the checkout has moved on since a plan began: said early, decided by Apply.

use agents_domain::Result;
use agents_domain::ids::ResourceId;
use agents_domain::plan::{Phase, PhaseSummary, Plan, State};
use agents_domain::ports::store::Writer;
use agents_sandbox::Repository;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Engine;
use crate::records::emit;
use crate::sandboxes::commit_id;

/// How a checkout differs from what a plan began on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Drift {
    /// The resource.
    pub resource_id: ResourceId,
    /// The checkout.
    pub original: String,
    /// What was checked out when the plan began.
    pub commit_before: String,
    /// What is checked out now.
    pub commit_now: String,
    /// Commits it has moved on by; `None` when the one the plan began on is no longer part of it.
    pub commits: Option<u32>,
    /// Files the plan changes that somebody has changed in the checkout since.
    pub files: Vec<String>,
    /// All of that in a sentence.
    pub message: String,
}

/// The sandboxes whose checkout has moved on; none for a plan that is over or has not written.
pub(crate) fn look(plan: &Plan) -> Vec<Drift> {
    let open = matches!(plan.phase, Phase::Execute | Phase::Apply)
        && !matches!(plan.state, State::Applied | State::Cancelled);
    if !open {
        return Vec::new();
    }
    let one = |sandbox: &agents_domain::plan::SandboxRef| -> Result<Option<Drift>> {
        let repository = Repository::reopen(sandbox.place()).map_err(crate::sandboxes::sandbox_error)?;
        let (head, base, result) =
            (commit_id(&sandbox.head_commit)?, commit_id(&sandbox.base_commit)?, commit_id(&sandbox.commit)?);
        let moved = agents_sandbox::drift(&repository, &head, &base, &result)
            .map_err(crate::sandboxes::sandbox_error)?;
        Ok(moved.map(|moved| Drift {
            resource_id: sandbox.resource_id,
            original: sandbox.original.clone(),
            commit_before: sandbox.head_commit.clone(),
            commit_now: moved.head.to_string(),
            commits: moved.commits,
            message: sentence(&sandbox.original, moved.commits, &moved.files),
            files: moved.files,
        }))
    };
    let found = plan.sandboxes.iter().filter_map(|sandbox| match one(sandbox) {
        Ok(drift) => drift,
        Err(error) => {
            tracing::warn!(plan = %plan.plan_id, %error, "it is not known whether the checkout moved on");
            None
        }
    });
    found.collect()
}

fn sentence(original: &str, commits: Option<u32>, files: &[String]) -> String {
    const NAMED: usize = 5;
    let mut facts = Vec::new();
    match commits {
        Some(0) => {}
        Some(1) => facts.push("1 commit was made".to_owned()),
        Some(n) => facts.push(format!("{n} commits were made")),
        None => {
            facts.push("the commit the plan began on is no longer part of what is checked out".to_owned())
        }
    }
    if !files.is_empty() {
        let named = files.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        let more = if files.len() > NAMED { ", ..." } else { "" };
        facts.push(format!("files that the plan changes were changed there as well ({named}{more})"));
    }
    format!("{original} has moved on since the plan began: {}", facts.join("; "))
}

/// Puts into the end of Execute that the checkout moved on.
pub(crate) fn note(
    engine: &Engine,
    w: &dyn Writer,
    plan: &Plan,
    summary: &mut PhaseSummary,
    drift: &[Drift],
) -> Result<()> {
    if drift.is_empty() || plan.phase != Phase::Execute {
        return Ok(());
    }
    if summary.facts.is_null() {
        summary.facts = json!({});
    }
    if let Value::Object(facts) = &mut summary.facts {
        facts.insert("drift".to_owned(), json!(drift));
    }
    emit(engine, w, plan, "sandbox.drifted", json!({ "drift": drift }))
}

/// What [`note`] left.
pub(crate) fn noted(plan: &Plan) -> Vec<Drift> {
    let facts = plan.summaries.get(&Phase::Execute).and_then(|s| s.facts.get("drift"));
    facts.and_then(|drift| serde_json::from_value(drift.clone()).ok()).unwrap_or_default()
}
