//! `plan/set-profile`: another automation profile for a plan that is under way.

use agents_domain::ids::PlanId;
use agents_domain::profile::ProfileSnapshot;
use agents_domain::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::operations::automation_profile::find;
use crate::{Engine, Operation, clock, records};

/// Where a profile comes from that a person gave a plan under way.
const SOURCE: &str = "changed";

/// Locks another automation profile into a plan that has not ended. It holds for the gates and guards that come after,
/// and for child plans that are started after; a question that waits stays, and child plans that exist keep theirs.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetProfile {
    /// The plan's id or its beginning.
    pub plan: String,
    /// The profile's name.
    pub automation_profile: String,
}

/// The profile before and now.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct SetProfileOutput {
    pub plan_id: PlanId,
    pub automation_profile: String,
    pub previous: String,
    pub changed_at: String,
}

impl Operation for SetProfile {
    const METHOD: &'static str = "plan/set-profile";
    const SUMMARY: &'static str = "Lock another automation profile into a plan that is under way";
    type Output = SetProfileOutput;

    fn run(self, engine: &Engine) -> Result<SetProfileOutput> {
        let plan = engine.plan(&self.plan)?;
        let (id, project) = (plan.plan_id, plan.projects.first().map(ToString::to_string));
        let profile = engine.look(|r| find(r, &self.automation_profile))?;
        crate::checkpoints::refuse_unkept_promise(engine, &profile.safety, project.as_deref())?;
        engine.write(|w| {
            let mut plan = w.plan(id)?.ok_or_else(|| crate::lookup::missing_plan(id))?;
            if plan.status().ended() {
                return Err(Error::invalid_state(format!(
                    "plan {id} has ended ({}): nothing asks for its profile any more",
                    plan.state
                ))
                .suggest("agents plan use --automation-profile <NAME> <ACTION> <PROJECT>"));
            }
            let previous = plan.profile.profile.name.clone();
            plan.profile = ProfileSnapshot { profile: profile.clone(), source: SOURCE.to_owned() };
            records::touch(w, &mut plan)?;
            let facts = json!({ "from": previous, "to": profile.name });
            records::emit(engine, w, &plan, "plan.profile_changed", facts.clone())?;
            records::audit(engine, w, &plan, "plan_profile_changed", facts)?;
            Ok(SetProfileOutput {
                plan_id: id,
                automation_profile: profile.name.clone(),
                previous,
                changed_at: clock::now().seconds_rfc3339(),
            })
        })
    }
}
