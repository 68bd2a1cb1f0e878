//! A plan's invariants in its worker: reconciled before anything is decided, checked before each write, judged once
//! more when Execute is done.

use agents_domain::decision::Decision;
use agents_domain::ids::ResourceId;
use agents_domain::invariant::{self, AddedLine, Attempt, Check, Enforced, Finding, Rule, Totals, Touched};
use agents_domain::plan::machine::Event;
use agents_domain::plan::{Phase, PhaseSummary, Plan, PlanFailure};
use agents_domain::ports::actor::ActorFailure;
use agents_domain::ports::store::Reconciliation;
use agents_domain::provenance::hunks;
use agents_domain::text::{FileEdit, apply_edits};
use agents_domain::{Error, QualifiedName};
use serde_json::{Value, json};

use super::{Stop, Worker};
use crate::clock;
use crate::invariants::{self, Violation};
use crate::records::emit;
use crate::sandboxes::{self, OpenSandbox};
use crate::tools::Edits;

impl Worker<'_> {
    /// Reconciles the invariants of a root plan once, at the start of its Strategize. Child plans have their parent's.
    pub(super) async fn reconcile_invariants(&self, plan: &Plan) -> Result<(), Stop> {
        if plan.phase != Phase::Strategize || plan.parent_plan_id.is_some() {
            return Ok(());
        }
        let name = plan.actors.invariant.as_ref();
        loop {
            let (done, all) = self
                .engine
                .view(|r| Ok((r.reconciliation(self.id)?.is_some(), invariants::collect(r, plan)?)))?;
            if done {
                return Ok(());
            }
            let result = match name.filter(|name| name.to_string() != invariants::BUILT_IN) {
                Some(name) => {
                    let reconciler = invariants::reconciler(self.engine, name)?;
                    let result = reconciler.reconcile(&all).await;
                    let result = result.map_err(|failure| Stop::Failed(failed(plan, name, failure)))?;
                    if let Some(problem) = result.problem(&all) {
                        let failure = ActorFailure {
                            message: format!("its answer is wrong: {problem}"),
                            category: "actor".to_owned(),
                            transient: false,
                            hints: vec![format!("use --invariant-actor {}", invariants::BUILT_IN)],
                        };
                        return Err(Stop::Failed(failed(plan, name, failure)));
                    }
                    result
                }
                None => invariant::reconcile(&all),
            };
            let reconciler = name.map_or(invariants::BUILT_IN.to_owned(), ToString::to_string);
            let state = self.engine.store.put_blob(b"null")?;
            let mut evidence = Vec::new();
            for invariant in &result.effective {
                let aside: Vec<_> =
                    result.set_aside.iter().filter(|a| a.by == invariant.invariant_id).collect();
                let document = invariants::evidence(invariant, &aside, &reconciler);
                let bytes = serde_json::to_vec(&document).map_err(|e| Error::internal(e.to_string()))?;
                evidence.push((invariant, aside, self.engine.store.put_blob(&bytes)?));
            }
            let recorded = self.write(|w, plan| {
                // One that was added or removed in the meantime is not missed: it is done again with it.
                if invariants::collect(w, plan)? != all {
                    return Ok(false);
                }
                for (invariant, aside, context) in &evidence {
                    let decision = invariants::decision(w, plan, invariant, aside, (context, &state))?;
                    invariants::enforce(self.engine, w, plan, &decision, invariant.scope)?;
                }
                w.put_reconciliation(&Reconciliation {
                    plan_id: self.id,
                    reconciler: reconciler.clone(),
                    result: result.clone(),
                    created_at: clock::now(),
                })?;
                let overridden = result.set_aside.iter().filter(|a| a.why == invariant::Why::Overridden);
                let facts = json!({
                    "effective_count": result.effective.len(), "conflicts_resolved": overridden.count(),
                    "reconciler": reconciler,
                });
                emit(self.engine, w, plan, "invariant.reconciled", facts)?;
                Ok(true)
            })?;
            if recorded {
                return Ok(());
            }
        }
    }

    /// Why a tool's write must not be carried out; also recorded as an event. `None`: it may, as far as can be seen.
    pub(super) fn breaks_invariant(
        &self,
        plan: &Plan,
        tool: &str,
        edits: Option<&Edits>,
        decisions: &[Decision],
        sandboxes: &[OpenSandbox],
    ) -> Result<Option<String>, Stop> {
        let enforced = invariant::enforced(decisions);
        let rules = || enforced.iter().filter_map(|i| i.check.as_ref()).filter(|check| !check.waived);
        if rules().next().is_none() {
            return Ok(None);
        }
        let files = match edits {
            Some((resource, edits)) => match sandboxes.iter().find(|s| s.resource_id == *resource) {
                Some(sandbox) => foresee(sandbox, edits),
                None => Vec::new(),
            },
            None => Vec::new(),
        };
        let limited =
            |check: &Check| matches!(check.rule, Rule::MaxChangedLines { .. } | Rule::MaxChangedFiles { .. });
        let totals = if rules().any(limited) { self.totals_after(plan, &files)? } else { Totals::default() };
        let resource = files.first().map(|file| file.resource);
        let touched: Vec<Touched> = files.into_iter().map(|file| file.touched).collect();
        let attempt = Attempt { tool: Some(tool), files: &touched, totals, validations: None };
        let mut broken = invariants::violations(&enforced, &attempt);
        broken.iter_mut().for_each(|violation| violation.resource_id = resource);
        let Some(first) = broken.first() else { return Ok(None) };
        self.write(|w, plan| {
            for violation in &broken {
                emit(self.engine, w, plan, "invariant.violated", violation.facts(Some(tool)))?;
            }
            Ok(())
        })?;
        Ok(Some(format!("{tool}: {}", first.message())))
    }

    /// How much the plan would change in all once these files are written.
    fn totals_after(&self, plan: &Plan, files: &[Foreseen]) -> Result<Totals, Stop> {
        let mut others = sandboxes::diff(self.engine, plan)?;
        let names = |file: &Foreseen| {
            file.touched.old_path.iter().chain([&file.touched.path]).cloned().collect::<Vec<_>>()
        };
        others.retain(|(resource, diff)| {
            !files.iter().any(|file| file.resource == *resource && names(file).contains(&diff.path))
        });
        let mut totals = invariants::totals(&others);
        let changes = self.engine.view(|r| r.changes(self.id))?;
        for file in files {
            let origin = file.touched.old_path.as_ref().unwrap_or(&file.touched.path);
            // What it was before the plan: the first recorded write knows, else it is untouched so far.
            let first = changes.iter().find(|c| c.resource_id == file.resource && c.path == *origin);
            let base = match first {
                Some(change) => match &change.before_hash {
                    Some(hash) => self.engine.store.blob(hash)?.map(|bytes| lossy(&bytes)),
                    None => None,
                },
                None => file.before.clone(),
            };
            if base != file.after || file.touched.old_path.is_some() {
                let hunks =
                    hunks(base.as_deref().unwrap_or_default(), file.after.as_deref().unwrap_or_default());
                totals.files += 1;
                totals.lines +=
                    hunks.iter().map(|h| u64::from(h.old_lines) + u64::from(h.new_lines)).sum::<u64>();
            }
        }
        Ok(totals)
    }

    /// Judges all changes when Execute is done; `false` when an invariant is broken and the phase is not complete.
    pub(super) async fn judge_invariants(
        &self,
        plan: &Plan,
        summary: &mut PhaseSummary,
    ) -> Result<bool, Stop> {
        if plan.phase != Phase::Execute {
            return Ok(true);
        }
        let enforced = invariant::enforced(&self.engine.view(|r| r.decisions(self.id))?);
        if enforced.is_empty() {
            return Ok(true);
        }
        let mut broken = invariants::judge(self.engine, plan, &enforced, Some(&plan.validations.results()))?;
        let (by_machine, mut left): (Vec<Enforced>, Vec<Enforced>) =
            enforced.into_iter().partition(|i| i.enforced_by() == "machine");
        left.retain(|i| i.check.is_none());
        let verdicts = match &plan.actors.invariant {
            Some(name) if !left.is_empty() => {
                let changes = sandboxes::diff(self.engine, plan)?;
                let judged = invariants::reconciler(self.engine, name)?.judge(&left, &changes).await;
                judged.map_err(|failure| Stop::Failed(failed(plan, name, failure)))?
            }
            _ => Vec::new(),
        };
        let mut told: Vec<Value> = by_machine.iter().map(|i| verdict(i, "kept")).collect();
        for invariant in &left {
            let found = verdicts.iter().find(|v| v.decision_id == invariant.decision_id);
            if let Some(found) = found.filter(|v| !v.kept) {
                let finding = Finding { evidence: found.evidence.clone(), path: None, line: None };
                broken.push(Violation { invariant: invariant.clone(), finding, resource_id: None });
            }
            told.push(verdict(invariant, if found.is_some() { "kept" } else { "not judged" }));
        }
        if let Some(first) = broken.first() {
            let failure = broken_failure(plan, first);
            self.write(|w, plan| {
                for violation in &broken {
                    emit(self.engine, w, plan, "invariant.violated", violation.facts(None))?;
                }
                self.advance(w, plan, &Event::StrategyTooTight(failure.clone()))?;
                Ok(())
            })?;
            return Ok(false);
        }
        let count = |n: usize| if n == 1 { "1 invariant".to_owned() } else { format!("{n} invariants") };
        if !told.is_empty() {
            let unjudged = told.iter().filter(|t| t["verdict"] == "not judged").count();
            summary.lines.push(match (told.len() - unjudged, unjudged) {
                (kept, 0) => format!("{} kept", count(kept)),
                (0, open) => format!("{} that no machine can check: look at the diff", count(open)),
                (kept, open) => {
                    format!("{} kept, {open} that no machine can check: look at the diff", count(kept))
                }
            });
        }
        if summary.facts.is_null() {
            summary.facts = json!({});
        }
        if let Some(facts) = summary.facts.as_object_mut() {
            facts.insert("invariants".to_owned(), Value::Array(told));
        }
        Ok(true)
    }
}

impl Worker<'_> {
    /// The last look before the checkout is changed: changes that break an invariant constrain the plan.
    pub(super) fn constrained_by_invariant(&self, plan: &Plan) -> Result<bool, Stop> {
        let enforced = invariant::enforced(&self.engine.view(|r| r.decisions(self.id))?);
        let broken = invariants::judge(self.engine, plan, &enforced, Some(&plan.validations.results()))?;
        let Some(first) = broken.first() else { return Ok(false) };
        let failure = broken_failure(plan, first);
        self.write(|w, plan| {
            for violation in &broken {
                emit(self.engine, w, plan, "invariant.violated", violation.facts(None))?;
            }
            self.advance(w, plan, &Event::ApplyConstrained(failure.clone()))?;
            Ok(())
        })?;
        Ok(true)
    }
}

fn broken_failure(plan: &Plan, violation: &Violation) -> PlanFailure {
    PlanFailure {
        message: violation.message().replace("would be broken", "is broken"),
        category: "invariant".to_owned(),
        phase: plan.phase,
        tool: None,
        step: None,
        recoverable: true,
        retries: 0,
        hints: vec![
            format!("agents plan explain {}", violation.invariant.decision_id),
            format!("agents plan diff {}", plan.plan_id),
        ],
    }
}

fn verdict(invariant: &Enforced, verdict: &str) -> Value {
    json!({
        "decision_id": invariant.decision_id, "invariant_id": invariant.invariant_id, "text": invariant.text,
        "enforced_by": invariant.enforced_by(), "verdict": verdict,
    })
}

/// A reconciler's failure as the plan records it.
fn failed(plan: &Plan, name: &QualifiedName, failure: ActorFailure) -> PlanFailure {
    PlanFailure {
        message: format!("the invariants were not reconciled by {name}: {}", failure.message),
        category: failure.category,
        phase: plan.phase,
        tool: None,
        step: None,
        recoverable: failure.transient,
        retries: 0,
        hints: failure.hints,
    }
}

/// A file as a write would leave it.
struct Foreseen {
    resource: ResourceId,
    touched: Touched,
    /// As it is now.
    before: Option<String>,
    after: Option<String>,
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What edits would make of the sandbox's files; edits that do not apply are left out, for the tool refuses them.
fn foresee(sandbox: &OpenSandbox, edits: &[FileEdit]) -> Vec<Foreseen> {
    let mut files: Vec<Foreseen> = Vec::new();
    for edit in edits {
        let path = edit.path();
        let at = files.iter().position(|file| file.touched.path == path).unwrap_or_else(|| {
            let before = sandbox.read(path).ok().map(|bytes| lossy(&bytes));
            let touched = Touched { path: path.to_owned(), ..Touched::default() };
            files.push(Foreseen { resource: sandbox.resource_id, touched, after: before.clone(), before });
            files.len() - 1
        });
        let file = &mut files[at];
        match edit {
            FileEdit::Edit { edits, .. } => {
                if let Some(after) = file.after.as_deref().and_then(|text| apply_edits(text, edits).ok()) {
                    file.after = Some(after);
                }
            }
            FileEdit::Create { text, .. } => file.after = Some(text.clone()),
            FileEdit::Write { content, .. } => file.after = Some(lossy(content.as_bytes())),
            FileEdit::Delete { .. } => file.after = None,
            FileEdit::Rename { to, .. } => {
                let old = std::mem::replace(&mut file.touched.path, to.clone());
                file.touched.old_path.get_or_insert(old);
            }
        }
    }
    for file in &mut files {
        let after = file.after.as_deref().unwrap_or_default();
        let lines: Vec<&str> = after.lines().collect();
        let new = hunks(file.before.as_deref().unwrap_or_default(), after);
        let added = new.iter().flat_map(|hunk| hunk.new_start..hunk.new_start.saturating_add(hunk.new_lines));
        file.touched.added = added
            .filter_map(|line| {
                let text = (*lines.get(line as usize)?).to_owned();
                Some(AddedLine { line: line.saturating_add(1), text })
            })
            .collect();
    }
    files
}
