//! The spawns of a plan as they stand: which hold, in which order, and how far each is.

use agents_domain::decision::{Decision, DecisionType};
use agents_domain::ids::PlanId;
use agents_domain::plan::children::{self, Next, Order, Spawn, Stage, Standing, Unit};
use agents_domain::plan::{Phase, Plan, State};
use agents_domain::ports::store::{PlanRow, Reader};

use crate::{Engine, children as making};

/// The spawns of a plan that stand, in the order decided.
pub(super) struct Family {
    pub(super) members: Vec<Member>,
    pub(super) units: Vec<Unit>,
}

/// One spawn with the decision that stands for it and the plan that was made.
pub(super) struct Member {
    pub(super) spawn: Spawn,
    pub(super) decision: Decision,
    pub(super) row: Option<PlanRow>,
}

impl Family {
    pub(super) fn read(engine: &Engine, plan: PlanId) -> agents_domain::Result<Self> {
        engine.view(|r| Self::of(r, plan))
    }

    fn of(r: &dyn Reader, plan: PlanId) -> agents_domain::ports::store::StoreResult<Self> {
        let (spawns, decisions, rows) = (r.spawns(plan)?, r.decisions(plan)?, r.child_rows(plan)?);
        let mut family = Self { members: Vec::new(), units: Vec::new() };
        for spawn in spawns {
            let Some(decision) = making::standing(&spawn, &decisions).cloned() else { continue };
            let row = rows.iter().find(|row| Some(row.plan_id) == spawn.child).cloned();
            family.units.push(unit(&spawn, &decision, &decisions, row.as_ref()));
            family.members.push(Member { spawn, decision, row });
        }
        Ok(family)
    }

    /// Their order, with what is due in it.
    pub(super) fn due(&self, plan: &Plan) -> Result<(Order, Next), children::OrderError> {
        let order = children::order(&self.units)?;
        let next = children::next(&self.units, &order, &plan.subplan);
        Ok((order, next))
    }

    pub(super) fn count(&self, standing: Standing) -> usize {
        self.units.iter().filter(|unit| unit.standing == standing).count()
    }

    pub(super) fn standing(&self, at: usize) -> Standing {
        self.units[at].standing
    }
}

fn unit(spawn: &Spawn, decision: &Decision, decisions: &[Decision], row: Option<&PlanRow>) -> Unit {
    let find = |id| decisions.iter().find(|d: &&Decision| d.decision_id == id);
    let own = find(spawn.decision_id).unwrap_or(decision);
    let container = own.parent_decision_id.and_then(find);
    let container = container.filter(|d| d.decision_type == DecisionType::SubplanParallelSpawn);
    let named = |d: &Decision| {
        let spawns =
            matches!(d.decision_type, DecisionType::SubplanSpawn | DecisionType::SubplanParallelSpawn);
        if spawns { d.key.clone() } else { None }
    };
    let edges =
        |d: &Decision| d.depends_on.iter().filter_map(|id| find(*id)).filter_map(named).collect::<Vec<_>>();
    let group = container.and_then(|d| d.key.clone());
    let mut depends_on = spawn.draft.depends_on.clone();
    depends_on.extend(edges(own));
    depends_on.extend(container.map(edges).unwrap_or_default());
    // To hang below a container is no dependency.
    depends_on.retain(|on| Some(on) != group.as_ref());
    let key = own.key.clone().unwrap_or_else(|| own.decision_id.to_string());
    let name = if spawn.call.is_empty() { key } else { format!("{key}#{}", spawn.call) };
    Unit { name, group, depends_on, standing: standing(spawn, row) }
}

fn standing(spawn: &Spawn, row: Option<&PlanRow>) -> Standing {
    if let Stage::Skipped { left_out, .. } = spawn.stage {
        return if left_out { Standing::LeftOut } else { Standing::Skipped };
    }
    let Some(row) = row else { return Standing::Waiting };
    match (row.phase, row.state) {
        (_, State::Cancelled) => Standing::LeftOut,
        (Phase::Apply, _) | (Phase::Execute, State::Complete) => Standing::Done,
        (_, State::Errored) if spawn.given_up => Standing::Failed,
        _ if row.awaiting.is_some() => Standing::Paused,
        _ => Standing::Running,
    }
}

/// The children a child builds on that are neither applied nor given up; `None` when it may be applied.
pub(crate) fn unapplied_before(
    r: &dyn Reader,
    child: &Plan,
) -> agents_domain::ports::store::StoreResult<Option<Vec<PlanId>>> {
    let Some(parent) = child.parent_plan_id else { return Ok(None) };
    let family = Family::of(r, parent)?;
    let Some(at) = family.members.iter().position(|m| m.spawn.child == Some(child.plan_id)) else {
        return Ok(None);
    };
    let Ok(order) = children::order(&family.units) else { return Ok(None) };
    let open = |at: &usize| {
        let row = family.members[*at].row.as_ref();
        row.filter(|row| !matches!(row.state, State::Applied | State::Cancelled)).map(|row| row.plan_id)
    };
    let earlier: Vec<PlanId> = order.before(at).iter().filter_map(open).collect();
    Ok((!earlier.is_empty()).then_some(earlier))
}
