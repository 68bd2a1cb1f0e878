//! `plan/discard`: what a cancelled plan left in its sandbox, taken away.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use agents_domain::ids::PlanId;
use agents_domain::plan::{Plan, State};
use agents_domain::{Error, Result};
use agents_sandbox::{Removal, Repository};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Engine, Operation, sandboxes};

/// How long the worker of a plan that was just cancelled may take to notice.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time between two looks.
const POLL: Duration = Duration::from_millis(20);

/// Removes the sandbox of a cancelled plan with everything that was done in it. Its decisions and its diff stay known;
/// waits some seconds for a worker that has not noticed yet.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Discard {
    /// The plan's id or its beginning.
    pub plan: String,
}

/// What was removed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct DiscardOutput {
    pub plan_id: PlanId,
    /// Folders that are gone.
    pub removed: Vec<String>,
}

impl Operation for Discard {
    const METHOD: &'static str = "plan/discard";
    const SUMMARY: &'static str = "Remove what a cancelled plan left in its sandbox";
    type Output = DiscardOutput;

    fn run(self, engine: &Engine) -> Result<DiscardOutput> {
        let plan = engine.plan(&self.plan)?;
        let id = plan.plan_id;
        if plan.state != State::Cancelled {
            return Err(Error::invalid_state(format!(
                "plan {id} is in {}/{}: only what a cancelled plan left is discarded",
                plan.phase, plan.state
            ))
            .suggest(format!("agents plan cancel {id}")));
        }
        let begin = Instant::now();
        while engine.store.is_leased(id)? {
            if begin.elapsed() >= PATIENCE {
                return Err(Error::invalid_state(format!("the worker of plan {id} has not ended yet")));
            }
            std::thread::sleep(POLL);
        }
        let mut removed = Vec::new();
        for checkout in checkouts(engine, &engine.plan(&id.to_string())?)? {
            let gone = Repository::reopen(&checkout)
                .and_then(|repository| agents_sandbox::cleanup(&repository, id, Removal::Discard))
                .map_err(sandboxes::sandbox_error)?;
            removed.extend(gone.iter().map(|dir| dir.display().to_string()));
        }
        // Empty by now, unless there is something in it that is no sandbox of the plan, which is left alone.
        let _ = std::fs::remove_dir(engine.data_dir.join("sandboxes").join(id.to_string()));
        Ok(DiscardOutput { plan_id: id, removed })
    }
}

/// The checkouts that a plan may have a sandbox of: those it has recorded, and all of its projects, since a plan that was
/// cancelled while its worker made one has recorded none.
pub(crate) fn checkouts(engine: &Engine, plan: &Plan) -> Result<BTreeSet<PathBuf>> {
    let mut found: BTreeSet<PathBuf> = plan.sandboxes.iter().map(|s| s.place().to_owned()).collect();
    let linked = engine.view(|r| {
        let mut linked = Vec::new();
        for name in &plan.projects {
            for link in r.project(name)?.into_iter().flat_map(|project| project.resources) {
                linked.extend(r.resource(link.resource_id)?);
            }
        }
        Ok(linked)
    })?;
    found.extend(linked.iter().filter_map(|resource| sandboxes::place_of_resource(engine, resource)));
    Ok(found)
}
