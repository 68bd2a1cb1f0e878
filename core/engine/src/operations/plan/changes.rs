//! What a plan changed: `plan diff`, `plan artifacts`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use agents_domain::Result;
use agents_domain::changes::{ChangeKind, DiffHunk, DiffLine, FileDiff};
use agents_domain::checkpoint::TierVerdict;
use agents_domain::decision::Decision;
use agents_domain::ids::{DecisionId, PlanId, ResourceId};
use agents_domain::plan::State;
use agents_domain::ports::store::{Reader, StoreResult};
use agents_domain::words::{agree, count};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::project_text;
use crate::blame::{Lineage, Trail};
use crate::drift::{self, Drift};
use crate::{Engine, Operation, blame, sandboxes};

/// Shows what a plan changes.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Diff {
    /// The plan's id or its beginning.
    pub plan: String,
}

/// The change set.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct DiffOutput {
    pub diff_summary: DiffSummary,
    pub files: Vec<DiffedFile>,
    pub patch_preview: Vec<FilePatch>,
    /// Where the checkout has moved on since the plan began.
    pub drift: Vec<Drift>,
    pub risk_assessment: RiskAssessment,
}

/// Totals.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct DiffSummary {
    pub plan: PlanId,
    pub project: String,
    pub files_changed: usize,
    pub insertions: u32,
    pub deletions: u32,
    pub net_change: i64,
    /// Where the changes are: `sandbox` or `applied`.
    pub location: String,
}

/// A changed file.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct DiffedFile {
    pub path: String,
    pub old_path: Option<String>,
    /// `+8 -2`.
    pub change: String,
    pub status: String,
    pub binary: bool,
    pub resource_id: ResourceId,
    pub insertions: u32,
    pub deletions: u32,
    /// The decisions behind its lines.
    pub decisions: Vec<DecisionId>,
    /// The unified diff, as `git apply` takes it.
    pub patch: String,
    /// SHA-256 of the contents before the plan's first write; `null` for a new file, and where no tool of the plan wrote.
    pub base_hash: Option<String>,
    /// SHA-256 of the contents after its last; `null` for a deleted file, and where no tool of the plan wrote.
    pub sandbox_hash: Option<String>,
    /// The file in the plan's sandbox, while that is there.
    pub sandbox_path: Option<String>,
}

/// A file's hunks.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct FilePatch {
    pub file: String,
    pub resource_id: ResourceId,
    pub hunks: Vec<HunkView>,
}

/// A hunk.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct HunkView {
    pub range: String,
    pub deletions: Vec<String>,
    pub insertions: Vec<String>,
    /// The lines in order, with context.
    pub lines: Vec<LineView>,
    /// The decisions behind it.
    pub decisions: Vec<DecisionId>,
    /// What each of them comes from, in words: the choice that it carries out.
    pub reasons: Vec<String>,
}

/// A line of a hunk.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LineView {
    /// What it says and where it is.
    #[serde(flatten)]
    pub line: DiffLine,
    /// The decision that put it there or took it away; `null` for context, and for what no tool of the plan wrote.
    pub decision_id: Option<DecisionId>,
}

/// What deserves a look, from what is known without running anything.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct RiskAssessment {
    pub api_compatibility: String,
    pub test_coverage: String,
    pub breaking_changes: String,
}

impl Operation for Diff {
    const METHOD: &'static str = "plan/diff";
    const SUMMARY: &'static str = "Show what a plan changes";
    type Output = DiffOutput;

    fn run(self, engine: &Engine) -> Result<DiffOutput> {
        let plan = engine.plan(&self.plan)?;
        let diffs = sandboxes::diff(engine, &plan)?;
        let insertions = diffs.iter().map(|(_, d)| d.insertions).sum::<u32>();
        let deletions = diffs.iter().map(|(_, d)| d.deletions).sum::<u32>();
        let mut files = Vec::with_capacity(diffs.len());
        let mut previews = Vec::with_capacity(diffs.len());
        let behind = blame::trails(engine, plan.plan_id)?;
        let decisions_of_plan: BTreeMap<DecisionId, Decision> =
            engine.view(|r| r.decisions(plan.plan_id))?.into_iter().map(|d| (d.decision_id, d)).collect();
        let known = Lineage::of(&decisions_of_plan);
        for (resource_id, diff) in &diffs {
            let trail = behind.get(&(*resource_id, diff.path.clone()));
            let hunks: Vec<HunkView> = diff.hunks.iter().map(|hunk| hunk_view(hunk, trail, &known)).collect();
            let sandbox = plan.sandboxes.iter().find(|sandbox| sandbox.resource_id == *resource_id);
            let sandbox_path = sandbox.map(|sandbox| Path::new(&sandbox.path).join(&diff.path));
            let mut decisions: Vec<DecisionId> = hunks.iter().flat_map(|h| h.decisions.clone()).collect();
            decisions.sort_unstable();
            decisions.dedup();
            files.push(DiffedFile {
                path: diff.path.clone(),
                old_path: diff.old_path.clone(),
                change: format!("+{} -{}", diff.insertions, diff.deletions),
                status: status_word(diff.kind).to_owned(),
                binary: diff.binary,
                resource_id: *resource_id,
                insertions: diff.insertions,
                deletions: diff.deletions,
                decisions,
                patch: diff.patch.clone(),
                base_hash: trail.and_then(|trail| trail.base_hash.clone()),
                sandbox_hash: trail.and_then(|trail| trail.text_hash.clone()),
                sandbox_path: sandbox_path
                    .filter(|path| path.exists())
                    .map(|path| path.display().to_string()),
            });
            previews.push(FilePatch { file: diff.path.clone(), resource_id: *resource_id, hunks });
        }
        Ok(DiffOutput {
            diff_summary: DiffSummary {
                plan: plan.plan_id,
                project: project_text(&plan),
                files_changed: files.len(),
                insertions,
                deletions,
                net_change: i64::from(insertions) - i64::from(deletions),
                location: if plan.state == State::Applied { "applied" } else { "sandbox" }.to_owned(),
            },
            drift: drift::look(&plan),
            risk_assessment: risk(&diffs),
            files,
            patch_preview: previews,
        })
    }
}

fn hunk_view(hunk: &DiffHunk, trail: Option<&Trail>, known: &Lineage<'_>) -> HunkView {
    let text = |kind: &str| hunk.lines.iter().filter(|l| l.kind == kind).map(|l| l.text.clone()).collect();
    let behind = |line: &DiffLine| match (line.kind.as_str(), line.old, line.new) {
        ("-", Some(old), _) => trail?.taken_by(old.saturating_sub(1)),
        ("+", _, Some(new)) => trail?.put_by(new.saturating_sub(1)),
        _ => None,
    };
    let lines: Vec<LineView> =
        hunk.lines.iter().map(|line| LineView { line: line.clone(), decision_id: behind(line) }).collect();
    let decisions: BTreeSet<DecisionId> = lines.iter().filter_map(|line| line.decision_id).collect();
    let reasons = decisions
        .iter()
        .filter_map(|id| known.get(*id))
        .map(|d| blame::strategy_behind(d, known).map_or_else(|| d.chosen_option.clone(), |s| s.chosen))
        .collect();
    HunkView {
        reasons,
        range: hunk.range.clone(),
        deletions: text("-"),
        insertions: text("+"),
        lines,
        decisions: decisions.into_iter().collect(),
    }
}

fn status_word(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Added => "new file",
        ChangeKind::Modified => "modified",
        ChangeKind::Deleted => "deleted",
        ChangeKind::Renamed => "renamed",
    }
}

fn risk(diffs: &[(ResourceId, FileDiff)]) -> RiskAssessment {
    let deleted = diffs.iter().filter(|(_, d)| d.kind == ChangeKind::Deleted).count();
    let renamed = diffs.iter().filter(|(_, d)| d.kind == ChangeKind::Renamed).count();
    let tests = diffs.iter().filter(|(_, d)| is_test(&d.path)).count();
    RiskAssessment {
        api_compatibility: match (deleted, renamed) {
            (0, 0) => "no file is removed or moved".to_owned(),
            _ => format!("{} removed, {renamed} moved", count(deleted, "file")),
        },
        test_coverage: match tests {
            0 => "no test is changed".to_owned(),
            n => format!("{} {} changed", count(n, "test file"), agree(n, "is", "are")),
        },
        breaking_changes: "not analysed".to_owned(),
    }
}

fn is_test(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let file = lower.rsplit('/').next().unwrap_or(&lower);
    lower.split('/').any(|part| part == "tests" || part == "test" || part == "__tests__")
        || file.starts_with("test_")
        || file.contains(".test.")
        || file.contains("_test.")
        || file.contains(".spec.")
}

/// Lists the files a plan changed, and its checkpoints.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Artifacts {
    /// The plan's id or its beginning.
    pub plan: String,
}

/// Files and checkpoints.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ArtifactsOutput {
    pub plan_id: PlanId,
    pub artifacts: Vec<Artifact>,
    pub summary: ArtifactSummary,
    pub by_plan: BTreeMap<String, usize>,
    pub checkpoints: Vec<CheckpointView>,
    /// How far the plan's work can be taken back, and why no further.
    pub rollback: TierVerdict,
}

/// A changed file.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Artifact {
    pub path: String,
    #[serde(rename = "type")]
    pub artifact_type: String,
    /// For people, such as `2.4 KB`.
    pub size: String,
    pub size_bytes: u64,
    pub change: String,
    pub child_plan: Option<PlanId>,
    pub resource_id: ResourceId,
}

/// Totals.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ArtifactSummary {
    pub total: usize,
    pub writes: usize,
    pub edits: usize,
    pub deletes: usize,
    pub total_size: String,
    pub total_size_bytes: u64,
}

/// A checkpoint.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct CheckpointView {
    pub id: String,
    pub label: String,
    pub created: String,
    #[serde(rename = "type")]
    pub kind: agents_domain::checkpoint::CheckpointKind,
    pub decision_id: Option<DecisionId>,
    pub resource_id: ResourceId,
    pub tool: Option<String>,
    /// The files that differ from the one before.
    pub diff_paths: Vec<String>,
    pub diff_based: String,
    pub diff_hash: String,
    pub size_bytes: u64,
    pub commit: String,
}

/// `2.4 KB` and the like.
pub(crate) fn human_size(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KB", "MB", "GB"] {
        if value < 1024.0 || unit == "GB" {
            return if unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") };
        }
        value /= 1024.0;
    }
    format!("{bytes} B")
}

/// The child plan each file was last changed by, for those that came from one.
fn made_by(r: &dyn Reader, plan: PlanId) -> StoreResult<BTreeMap<(ResourceId, String), PlanId>> {
    let mut made = BTreeMap::new();
    for change in r.changes(plan)? {
        let owner = r.decision(change.decision_id)?.map(|d| d.plan_id).filter(|owner| *owner != plan);
        let key = (change.resource_id, change.path);
        match owner {
            Some(owner) => _ = made.insert(key, owner),
            None => _ = made.remove(&key),
        }
    }
    Ok(made)
}

impl Operation for Artifacts {
    const METHOD: &'static str = "plan/artifacts";
    const SUMMARY: &'static str = "List the files and checkpoints of a plan";
    type Output = ArtifactsOutput;

    fn run(self, engine: &Engine) -> Result<ArtifactsOutput> {
        let plan = engine.plan(&self.plan)?;
        let diffs = sandboxes::diff(engine, &plan)?;
        let (checkpoints, made_by) = engine.view(|r| {
            let fallen: BTreeSet<DecisionId> = r
                .decisions(plan.plan_id)?
                .iter()
                .filter(|d| d.superseded_by.is_some())
                .map(|d| d.decision_id)
                .collect();
            let mut checkpoints = r.checkpoints(plan.plan_id)?;
            // Those of work that was taken back are no steps of what stands now.
            checkpoints.retain(|c| c.decision_id.is_none_or(|id| !fallen.contains(&id)));
            Ok((checkpoints, made_by(r, plan.plan_id)?))
        })?;
        let mut by_plan = BTreeMap::new();
        let rollback = engine.view(|r| crate::checkpoints::tier_of(engine, r, &plan, None))?;
        let mut summary = ArtifactSummary { total: diffs.len(), ..ArtifactSummary::default() };
        let mut artifacts = Vec::with_capacity(diffs.len());
        for (resource_id, diff) in &diffs {
            match diff.kind {
                ChangeKind::Added => summary.writes += 1,
                ChangeKind::Modified | ChangeKind::Renamed => summary.edits += 1,
                ChangeKind::Deleted => summary.deletes += 1,
            }
            summary.total_size_bytes += diff.size;
            let child = made_by.get(&(*resource_id, diff.path.clone())).copied();
            *by_plan.entry(child.unwrap_or(plan.plan_id).to_string()).or_insert(0) += 1;
            artifacts.push(Artifact {
                path: diff.path.clone(),
                artifact_type: if diff.binary { "binary" } else { "text" }.to_owned(),
                size: human_size(diff.size),
                size_bytes: diff.size,
                change: status_word(diff.kind).to_owned(),
                child_plan: child,
                resource_id: *resource_id,
            });
        }
        summary.total_size = human_size(summary.total_size_bytes);
        Ok(ArtifactsOutput {
            plan_id: plan.plan_id,
            by_plan,
            artifacts,
            summary,
            checkpoints: checkpoints
                .into_iter()
                .map(|c| CheckpointView {
                    id: c.checkpoint_id.to_string(),
                    label: c.label,
                    created: c.created_at.seconds_rfc3339(),
                    kind: c.kind,
                    decision_id: c.decision_id,
                    resource_id: c.resource_id,
                    tool: c.source_tool,
                    diff_paths: c.diff.diff_paths,
                    diff_based: c.diff.diff_based,
                    diff_hash: c.diff.diff_hash,
                    size_bytes: c.diff.size_bytes,
                    commit: c.commit,
                })
                .collect(),
            rollback,
        })
    }
}
