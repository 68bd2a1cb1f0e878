//! `agents quickstart`: the main job from a repository, or a sample of one, to applied changes, in one command.

mod made;
mod next;
mod place;
mod registry;
mod report;
mod sample;
mod servers;

use std::path::PathBuf;
use std::sync::Arc;

use agents_domain::Error;
use agents_domain::plan::{AwaitingKind, Phase, State};
use agents_engine::Engine;
use agents_engine::operations::lsp::{Detect, DetectOutput, DetectedLanguage};
use agents_engine::operations::plan::{
    Apply, Blame, BlamedSegment, Cancel, Diff, DiffOutput, Discard, Execute, StatusOutput, Tree, TreeNode,
    Use,
};
use agents_engine::operations::project;

use super::json;
use super::plan::{changes, pause, tree};
use crate::args::QuickstartArgs;
use crate::compose;
use crate::failure::{Failure, Outcome};
use crate::follow;
use crate::output::human::counted;
use crate::output::{Styled, Tone, dim, good, id, strong};
use crate::run::Run;
use made::Made;
use next::{Place, Program};
use registry::Registered;
pub use report::Report;
use report::{Decided, Repository};
use servers::Ready;

/// The profile of its plan: one that neither starts Execute nor applies by itself, whatever is configured.
const PROFILE: &str = "supervised";

/// A quickstart on its way.
struct Quickstart<'a> {
    run: &'a Run,
    engine: Arc<Engine>,
    made: Arc<Made>,
    yes: bool,
    report: Report,
}

/// How it ended, when nothing failed.
enum End {
    /// A question was answered with no, or by nobody; nothing has begun that is worth keeping.
    Declined,
    /// Everything was shown and said.
    Shown,
}

pub fn run(run: &Run, args: QuickstartArgs) -> Outcome {
    let engine = run.env.engine()?;
    let made = Made::begin(run, &engine);
    let mut quickstart = Quickstart { run, engine, made, yes: args.yes.yes, report: Report::default() };
    let ended = quickstart.walk(&args);
    quickstart.made.goes_on();
    quickstart.tell()?;
    // Without a plan there is nothing to come back to; with one there is, and `walk` has said to keep it.
    if !matches!(ended, Ok(End::Shown))
        && let Some(words) = quickstart.made.take_back()
    {
        run.out.info(words);
    }
    ended.map(drop)
}

impl Quickstart<'_> {
    fn walk(&mut self, args: &QuickstartArgs) -> Result<End, Failure> {
        let repository = self.repository(args)?;
        let root = repository.path.clone();
        let resource = registry::repository(&self.engine, &self.made, &root)?;
        let found = self.engine.call(Detect { dir: root.display().to_string() })?;
        self.report.languages = found.languages.clone();
        self.show_repository(&repository, &found);
        self.tell()?;
        let Some(ready) = servers::provide(self.run, &self.engine, &found, self.yes)? else {
            return Ok(End::Declined);
        };
        let registered = registry::plan_inputs(&self.engine, &self.made, &root, resource)?;
        self.show_setup(&ready, &registered);
        self.report.servers = ready;
        self.report.resource = Some(registered.resource.clone());
        self.report.project = Some(registered.project.clone());
        self.report.action = Some(registered.action.clone());
        self.tell()?;
        let standing = self.decide(&registered)?;
        let tree = self.show_decisions(&standing)?;
        if tree == 0 {
            return self.nothing(&standing, &repository);
        }
        if !awaits(&standing, AwaitingKind::ExecuteApproval) {
            return self.waits(&standing);
        }
        let standing = self.execute(&standing)?;
        if !awaits(&standing, AwaitingKind::ApplyApproval) {
            return self.waits(&standing);
        }
        let diff = self.engine.call(Diff { plan: standing.plan_id.to_string() })?;
        if diff.files.is_empty() {
            return self.nothing(&standing, &repository);
        }
        self.show_changes(&standing, &diff)?;
        self.apply(&standing, &diff, &repository)
    }

    /// Says to programs what is known so far.
    fn tell(&self) -> Result<(), Failure> {
        self.run.out.set_data(json(&self.report)?);
        Ok(())
    }

    // ---- what it works on ---------------------------------------------------------------------------------------

    fn repository(&mut self, args: &QuickstartArgs) -> Result<Repository, Failure> {
        let own = self.run.env.data_dir.join("quickstart");
        let repository = match &args.dir {
            Some(dir) if args.sample => {
                self.sample(PathBuf::from(compose::absolute(&place::expanded(dir))?))?
            }
            Some(dir) => {
                let path = place::top_level(&PathBuf::from(compose::absolute(&place::expanded(dir))?))?;
                Repository { sample: path == own, created: false, path }
            }
            None if sample::is_free(&own) => self.sample(own)?,
            None => Repository { path: place::of_sample(&own)?, sample: true, created: false },
        };
        self.report.repository = Some(repository.clone());
        Ok(repository)
    }

    fn sample(&self, path: PathBuf) -> Result<Repository, Failure> {
        self.made.note(|things| {
            sample::make(&path)?;
            things.sample = Some(path.clone());
            Ok(Repository { path, sample: true, created: true })
        })
    }

    fn show_repository(&self, repository: &Repository, found: &DetectOutput) {
        let panel = self.run.out.panel(None, "Repository");
        panel.row("Path", id(repository.path.display().to_string()));
        match (repository.sample, repository.created) {
            (true, true) => {
                panel.row("What It Is", "a small sample, made just now: a café in Python and TypeScript")
            }
            (true, false) => panel.row("What It Is", "the sample of an earlier quickstart"),
            _ => &panel,
        };
        let (served, others): (Vec<_>, Vec<_>) =
            found.languages.iter().partition(|l| !l.servers.is_empty() || !l.registered.is_empty());
        let words =
            |l: &&DetectedLanguage| format!("{} ({})", l.language, counted(l.files as u64, "file", "files"));
        let mut languages = Styled::from(served.iter().map(words).collect::<Vec<_>>().join(", "));
        if !others.is_empty() {
            let names: Vec<&str> = others.iter().map(|l| l.language.as_str()).collect();
            let and = if served.is_empty() { "" } else { "; " };
            languages = languages.and(dim(format!("{and}no server is known for {}", names.join(", "))));
        }
        panel.row("Languages", languages);
        if found.truncated {
            panel.line(dim(format!("Only the first {} files were looked at", found.files)));
        }
    }

    fn show_setup(&self, ready: &[Ready], registered: &Registered) {
        let out = &self.run.out;
        let panel = out.panel(None, "Set Up");
        for server in ready {
            let how = format!(" {}, for {}", server.source.words(), server.languages.join(", "));
            panel.row("Language Server", id(server.name.as_str()).and(dim(how)));
        }
        panel
            .row("Resource", id(registered.resource.as_str()))
            .row("Project", id(registered.project.as_str()))
            .row("Action", id(registered.action.as_str()));
        drop(panel);
        for warning in &registered.warnings {
            out.warn(warning.as_str());
        }
    }

    // ---- the plan -----------------------------------------------------------------------------------------------

    fn decide(&mut self, registered: &Registered) -> Result<StatusOutput, Failure> {
        for open in self.engine.call(project::Show { name: registered.project.clone() })?.active_plans {
            self.run
                .out
                .info(format!("An earlier plan on this repository is still open: {}", open.plan_id))
                .detail(format!("agents plan status {0}\nagents plan cancel {0}", open.plan_id));
        }
        let since = follow::now(&self.engine)?;
        let plan = self.made.note(|things| {
            let made = self.engine.call(Use {
                action: registered.action.clone(),
                projects: vec![registered.project.clone()],
                arguments: serde_json::Map::new(),
                automation_profile: Some(PROFILE.to_owned()),
                invariants: Vec::new(),
                strategy_actor: None,
                execution_actor: None,
                estimation_actor: None,
                invariant_actor: None,
            })?;
            things.plan = Some(made.plan_id);
            Ok::<_, Error>(made.plan_id)
        })?;
        self.report.plan_id = Some(plan.to_string());
        self.tell()?;
        let standing = follow::until_pause(self.run, &self.engine, plan, since);
        self.followed(standing)
    }

    fn execute(&self, standing: &StatusOutput) -> Result<StatusOutput, Failure> {
        let since = follow::now(&self.engine)?;
        let plan = standing.plan_id;
        self.made.note(|_| self.engine.call(Execute { plan: plan.to_string() }))?;
        let standing = follow::until_pause(self.run, &self.engine, plan, since);
        self.followed(standing)
    }

    /// What came of following the plan. One that failed stays: the error says how to look at it and to go on.
    fn followed(&self, standing: Result<StatusOutput, Failure>) -> Result<StatusOutput, Failure> {
        self.made.goes_on();
        let broken =
            |s: &StatusOutput| matches!(s.state, State::Errored | State::Constrained | State::Cancelled);
        match standing {
            Ok(standing) if broken(&standing) => {
                self.made.keep();
                pause::conclude(self.run, &self.engine, &standing, "")?;
                Ok(standing)
            }
            Ok(standing) => Ok(standing),
            Err(failure) => {
                self.made.keep();
                Err(failure)
            }
        }
    }

    /// The plan asks something that it does not usually ask here: a person goes on by hand.
    fn waits(&self, standing: &StatusOutput) -> Result<End, Failure> {
        self.made.keep();
        pause::conclude(self.run, &self.engine, standing, "The plan is made")?;
        Ok(End::Shown)
    }

    /// Shows the decisions of Strategize; returns how many of them are about findings.
    fn show_decisions(&mut self, standing: &StatusOutput) -> Result<usize, Failure> {
        let found = self.engine.call(Tree { plan: standing.plan_id.to_string(), show_superseded: false })?;
        let choices: Vec<&TreeNode> = found.tree.iter().flat_map(|root| root.children.iter()).collect();
        self.report.decisions = choices
            .iter()
            .map(|node| Decided {
                decision_id: node.decision_id.to_string(),
                question: node.question.clone(),
                chosen: node.chosen.clone(),
                confidence: node.confidence,
            })
            .collect();
        let count = choices.len();
        if count > 0 {
            let out = &self.run.out;
            let panel = out.panel(None, "What Was Found");
            if let Some(decided) = standing.summaries.get(&Phase::Strategize) {
                panel.line(strong(decided.headline.as_str()));
            }
            panel.line("Each kind of finding is one decision; the number at its end says how sure it is.");
            drop(panel);
            tree::show(out, &json(&found)?);
        }
        self.tell()?;
        Ok(count)
    }

    fn show_changes(&mut self, standing: &StatusOutput, diff: &DiffOutput) -> Result<(), Failure> {
        let out = &self.run.out;
        let data = json(diff)?;
        changes::show_patch(out, diff, &changes::behind(&self.engine, diff)?);
        changes::show_files(out, &data);
        let summary = &diff.diff_summary;
        self.report.files_changed = summary.files_changed;
        self.report.files = data["files"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|file| {
                let keys = ["path", "status", "insertions", "deletions", "decisions"];
                keys.into_iter().map(|key| (key.to_owned(), file[key].clone())).collect()
            })
            .collect();
        let panel = out.panel(None, "To Be Applied");
        if let Some(done) = standing.summaries.get(&Phase::Execute) {
            panel.line(strong(done.headline.as_str()));
        }
        let files = counted(summary.files_changed as u64, "file", "files");
        panel
            .row(
                "Changes",
                Styled::from(format!("{files}, "))
                    .and(good(format!("+{}", summary.insertions)))
                    .and(" ")
                    .and(Styled::new(format!("-{}", summary.deletions), Tone::Bad)),
            )
            .row("How", "one commit on the checked-out branch; until then nothing of it is in your files");
        drop(panel);
        self.tell()
    }

    fn apply(
        &mut self,
        standing: &StatusOutput,
        diff: &DiffOutput,
        repository: &Repository,
    ) -> Result<End, Failure> {
        let out = &self.run.out;
        let plan = standing.plan_id.to_string();
        if !self.yes {
            let answer = out.ask(None, "Apply these changes?");
            if answer != Some(true) {
                // The work is done: it stays, and can be applied later.
                self.made.keep();
                let program = Program::this(self.run);
                let steps = vec![
                    format!("agents plan apply {plan}"),
                    format!("agents plan tree {plan}"),
                    format!("agents plan cancel {plan}"),
                ];
                self.report.next_steps = next::commands(&program, steps);
                out.hint("Next Steps", &self.report.next_steps);
                self.tell()?;
                out.decline(answer.is_some());
                return Ok(End::Shown);
            }
        }
        let since = follow::now(&self.engine)?;
        self.made.note(|things| {
            let accepted = self.engine.call(Apply { plan: plan.clone(), no_commit: false });
            // Refused or accepted, from here on the plan is worth keeping; one that is being applied goes on anyway.
            *things = made::Things::default();
            accepted
        })?;
        let standing = follow::until_pause(self.run, &self.engine, standing.plan_id, since)?;
        if standing.state != State::Applied {
            return self.waits(&standing);
        }
        self.report.applied = true;
        let applied = standing.result.as_ref().and_then(|result| result.applied.first());
        self.report.commit = applied.and_then(|applied| applied.commit.clone());
        let panel = out.panel(None, "Applied");
        let files = counted(diff.diff_summary.files_changed as u64, "file", "files");
        panel.row(
            "Changes",
            format!("{files}, +{} -{}", diff.diff_summary.insertions, diff.diff_summary.deletions),
        );
        if let Some(commit) = &self.report.commit {
            let branch = applied.and_then(|a| a.branch.as_deref()).unwrap_or_default();
            panel.row("Commit", id(short(commit)).and(dim(format!(" on {branch}"))));
        }
        drop(panel);
        self.show_next(repository, diff)?;
        out.ok("Done: found, decided, fixed and applied");
        Ok(End::Shown)
    }

    /// There is nothing to change: the plan is of no use to anybody.
    fn nothing(&mut self, standing: &StatusOutput, repository: &Repository) -> Result<End, Failure> {
        let out = &self.run.out;
        let plan = standing.plan_id.to_string();
        let reason = Some("there is nothing to fix".to_owned());
        self.made.note(|things| {
            *things = made::Things::default();
            self.engine.call(Cancel { plan: plan.clone(), reason })
        })?;
        if let Err(error) = self.engine.call(Discard { plan: plan.clone() }) {
            tracing::warn!(%plan, %error, "the sandbox was kept");
        }
        let phases = [Phase::Execute, Phase::Strategize];
        let summary = phases.iter().find_map(|phase| standing.summaries.get(phase));
        if let Some(summary) = summary {
            let panel = out.panel(None, "What the Language Servers Say");
            panel.line(strong(summary.headline.as_str()));
            for line in &summary.lines {
                panel.line(line.as_str());
            }
        }
        let path = repository.path.display().to_string();
        let mut steps = Vec::new();
        if repository.sample {
            steps.push(format!(
                "git -C {} revert --no-edit HEAD  # brings the problems back, for another quickstart",
                next::shell(&path)
            ));
        }
        steps.push("agents plan list".to_owned());
        steps.push("agents quickstart <ANOTHER-REPOSITORY>".to_owned());
        self.report.next_steps = next::commands(&Program::this(self.run), steps);
        out.hint("Next Steps", &self.report.next_steps);
        self.tell()?;
        let servers = counted(self.report.servers.len() as u64, "language server", "language servers");
        out.ok(format!("Nothing to fix: {servers} looked, and offered no fix"));
        Ok(End::Shown)
    }

    // ---- what comes next ----------------------------------------------------------------------------------------

    fn show_next(&mut self, repository: &Repository, diff: &DiffOutput) -> Result<(), Failure> {
        let out = &self.run.out;
        let program = Program::this(self.run);
        let editors = next::editors(&program, &self.report.servers);
        let changed = self.changed(repository, diff)?;
        // A line that is there is seen more easily than one that is gone.
        let seen = changed.iter().find(|(_, segment)| !segment.deletion).or_else(|| changed.first());
        let place = seen.map(|(file, segment)| Place { file: file.clone(), line: segment.start_line });
        next::show(out, &editors, place.as_ref());
        // The decision that was least sure has the most to tell.
        let confidence = |segment: &BlamedSegment| {
            segment.strategy.as_ref().and_then(|s| s.confidence).or(segment.confidence).unwrap_or(1.0)
        };
        let doubtful = changed.iter().min_by(|(_, a), (_, b)| confidence(a).total_cmp(&confidence(b)));
        let mut steps = Vec::new();
        if let Some((_, segment)) = doubtful {
            let decision = segment.strategy.as_ref().map_or(segment.decision_id, |s| s.decision_id);
            let words = format!("why, with a confidence of {:.2}", confidence(segment));
            steps.push(format!("agents plan explain {decision}  # {words}"));
        }
        if let Some(place) = &place {
            let file = next::shell(&place.file.display().to_string());
            steps.push(format!("agents plan blame {file}:{}  # the decision behind a line", place.line));
        }
        steps.push("agents quickstart <YOUR-REPOSITORY>".to_owned());
        self.report.next_steps = next::commands(&program, steps);
        self.report.editors = Some(editors);
        out.hint("Next Steps", &self.report.next_steps);
        self.tell()
    }

    /// The changed places with the decisions behind them.
    fn changed(
        &self,
        repository: &Repository,
        diff: &DiffOutput,
    ) -> Result<Vec<(PathBuf, BlamedSegment)>, Failure> {
        let mut changed = Vec::new();
        for file in &diff.files {
            let path = repository.path.join(&file.path);
            // A file that the plan removed has no lines.
            if !path.is_file() {
                continue;
            }
            let name = path.display().to_string();
            let segments = self.engine.call(Blame { file: name, line: None, text: None })?.segments;
            let ours = segments.into_iter().filter(|s| s.plan_id == diff.diff_summary.plan);
            changed.extend(ours.map(|segment| (path.clone(), segment)));
        }
        Ok(changed)
    }
}

fn awaits(standing: &StatusOutput, kind: AwaitingKind) -> bool {
    standing.awaiting.as_ref().is_some_and(|awaiting| awaiting.kind == kind)
}

fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}
