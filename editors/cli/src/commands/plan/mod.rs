//! `agents plan`.

mod apply;
mod blame;
pub(super) mod changes;
mod correct;
mod explain;
mod follow;
mod guard;
mod list;
pub(super) mod pause;
mod start;
mod status;
pub(super) mod tree;
mod validations;

use agents_domain::ids::PlanId;
use agents_engine::Engine;
use agents_engine::operations::plan::{Status, StatusOutput};

use crate::args::PlanCommand;
use crate::failure::{Failure, Outcome};
use crate::run::Run;

pub use follow::follow;

pub fn run(run: &Run, command: PlanCommand) -> Outcome {
    match command {
        PlanCommand::Use(args) => start::make(run, args),
        PlanCommand::Revert(args) => start::revert(run, args),
        PlanCommand::Execute(args) => start::execute(run, args),
        PlanCommand::Prompt(args) => start::prompt(run, args),
        PlanCommand::Cancel(args) => start::cancel(run, args),
        PlanCommand::Apply(args) => apply::run(run, args),
        PlanCommand::Status(args) => status::run(run, &args.plan),
        PlanCommand::Tree(args) => tree::run(run, args),
        PlanCommand::Explain(args) => explain::run(run, args),
        PlanCommand::Correct(args) => correct::correct(run, args),
        PlanCommand::Rollback(args) => correct::rollback(run, args),
        PlanCommand::Diff(args) => match args.correction {
            Some(correction) => changes::correction(run, &correction),
            None => changes::diff(run, &args.plan.unwrap_or_default()),
        },
        PlanCommand::Artifacts(args) => changes::artifacts(run, &args.plan),
        PlanCommand::Errors(args) => changes::errors(run, &args.plan),
        PlanCommand::Guard(args) => guard::run(run, args),
        PlanCommand::Blame(args) => blame::run(run, &args.place),
        PlanCommand::List(args) => list::run(run, args),
        // It writes a stream, not a document, and is started before an output is opened.
        PlanCommand::Follow(_) => Err(agents_domain::Error::internal("a stream writes no document").into()),
    }
}

/// Where the plan of an id or its beginning stands.
fn find(engine: &Engine, plan: &str) -> Result<(PlanId, StatusOutput), Failure> {
    let standing = engine.call(Status { plan: plan.to_owned() })?;
    Ok((standing.plan_id, standing))
}
