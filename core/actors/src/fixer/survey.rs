//! The look at everything before anything is decided: which files, which servers, which findings, what is offered.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use agents_domain::QualifiedName;
use agents_domain::ports::actor::{ActorHost, ActorWorkspace};
use agents_domain::ports::language_servers::{ServerState, ServerStatus};

use super::arguments::Filters;
use super::baseline::{Prints, SurveyedWorkspace, Unchecked};
use super::group::{Finding, Group};
use super::kept::Kept;
use super::look::{self, BATCH};
use super::options;
use super::source::Need;
use super::texts::{MAX_FILE_BYTES, Texts};
use super::{Halt, count};
use crate::common::{first_line, sample};

/// Findings of a group that fixes are asked for; what is more is decided with the same option.
pub(super) const MAX_PROBES: usize = 400;
/// A server that leaves so many files in a row unanswered is not asked about more, so that one that hangs costs two
/// batches of waiting and not hours.
const GIVE_UP_AFTER: usize = 2 * BATCH;

/// What was seen.
#[derive(Default)]
pub(super) struct Survey {
    /// The workspaces.
    pub workspaces: Vec<SurveyedWorkspace>,
    /// Findings by workspace, server and rule.
    pub groups: Vec<Group>,
    /// Files for which no server is registered, by language.
    pub unserved: BTreeMap<String, usize>,
    /// Files that were not looked at, by reason.
    pub skipped: BTreeMap<String, Vec<String>>,
    /// Answers that were waited for, and those that came.
    pub asked: usize,
    /// See `asked`.
    pub answered: usize,
    /// Findings that the arguments leave out.
    pub unwanted: usize,
    /// Where each server stands, per workspace.
    pub servers: Vec<ServerStatus>,
}

/// Looks at all workspaces, also at those that must not be changed.
pub(super) async fn survey(
    host: &dyn ActorHost,
    filters: &Filters,
    read_only: bool,
    kept: Kept<'_>,
) -> Result<Survey, Halt> {
    let mut survey = Survey::default();
    let mut room = filters.max_files;
    for workspace in host.workspaces() {
        let paths = choose_files(host, workspace, filters, &mut room, &mut survey)?;
        collect(host, workspace, paths, filters, kept, &mut survey).await?;
        if let Some(surveyed) = survey.workspaces.last_mut() {
            surveyed.read_only |= read_only;
        }
        survey.servers.extend(workspace.languages.servers());
    }
    Ok(survey)
}

fn choose_files(
    host: &dyn ActorHost,
    workspace: &ActorWorkspace,
    filters: &Filters,
    room: &mut usize,
    survey: &mut Survey,
) -> Result<Vec<String>, Halt> {
    let untouchable: BTreeMap<&str, &str> =
        workspace.untouchable.iter().map(|(path, why)| (path.as_str(), why.as_str())).collect();
    let mut paths = Vec::new();
    for file in host.files(workspace.resource_id)? {
        if !filters.wants_path(&file.path) {
            continue;
        }
        if workspace.languages.servers_for(&file.path).is_empty() {
            let language = agents_grammars::detect(Path::new(&file.path), b"");
            let language = language.map_or("unknown language", |language| language.as_str());
            *survey.unserved.entry(language.to_owned()).or_insert(0) += 1;
            continue;
        }
        let reason = match untouchable.get(file.path.as_str()) {
            Some(why) => Some((*why).to_owned()),
            None if file.size > MAX_FILE_BYTES => {
                Some(format!("larger than {} MiB", MAX_FILE_BYTES / (1024 * 1024)))
            }
            None if *room == 0 => Some(format!("more than the {} files of `max_files`", filters.max_files)),
            None => None,
        };
        match reason {
            Some(reason) => survey.skipped.entry(reason).or_default().push(file.path),
            None => {
                *room -= 1;
                paths.push(file.path);
            }
        }
    }
    paths.sort_unstable();
    paths.dedup();
    Ok(paths)
}

async fn collect(
    host: &dyn ActorHost,
    workspace: &ActorWorkspace,
    paths: Vec<String>,
    filters: &Filters,
    kept: Kept<'_>,
    survey: &mut Survey,
) -> Result<(), Halt> {
    let index = survey.workspaces.len();
    let label = format!("Checking the files of {}", workspace.name);
    let mut groups: BTreeMap<(QualifiedName, String, Option<&str>), Vec<Finding>> = BTreeMap::new();
    let mut found: BTreeMap<String, BTreeMap<String, Prints>> = BTreeMap::new();
    let mut unchecked: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    let mut silent: BTreeMap<QualifiedName, usize> = BTreeMap::new();
    for (at, batch) in paths.chunks(BATCH).enumerate() {
        look::go_on(host)?;
        look::progress(host, &label, at * BATCH, paths.len());
        let given_up = |server: &QualifiedName| silent.get(server).is_some_and(|n| *n >= GIVE_UP_AFTER);
        let (hopeless, asked): (Vec<String>, Vec<String>) = batch
            .iter()
            .cloned()
            .partition(|path| workspace.languages.servers_for(path).iter().all(given_up));
        for path in hopeless {
            for server in workspace.languages.servers_for(&path) {
                let reason = format!("it left {GIVE_UP_AFTER} files in a row unanswered");
                unchecked.entry((server.to_string(), reason)).or_default().push(path.clone());
            }
        }
        for (path, answers) in workspace.languages.diagnostics(&asked).await {
            for answer in answers {
                survey.asked += 1;
                let server = answer.server;
                let Some(diagnostics) = answer.diagnostics else {
                    let reason = answer.problem.unwrap_or_else(|| "it did not answer in time".to_owned());
                    unchecked.entry((server.to_string(), reason)).or_default().push(path.clone());
                    *silent.entry(server).or_insert(0) += 1;
                    continue;
                };
                survey.answered += 1;
                silent.insert(server.clone(), 0);
                if diagnostics.is_empty() {
                    continue;
                }
                let prints = Prints::of(&diagnostics);
                found.entry(path.clone()).or_default().insert(server.to_string(), prints);
                for diagnostic in diagnostics {
                    if !filters.wants(diagnostic.rule(), diagnostic.severity) {
                        survey.unwanted += 1;
                        continue;
                    }
                    let group = (server.clone(), diagnostic.rule().to_owned(), kept.file(&path));
                    groups.entry(group).or_default().push(Finding { path: path.clone(), diagnostic });
                }
            }
        }
    }
    let unchecked = unchecked.into_iter().map(|((server, reason), mut paths)| {
        paths.sort_unstable();
        Unchecked { server, reason, paths }
    });
    survey.workspaces.push(SurveyedWorkspace {
        resource_id: workspace.resource_id,
        name: workspace.name.clone(),
        read_only: workspace.read_only,
        files: paths,
        unchecked: unchecked.collect(),
        found,
    });
    for ((server, rule, kept_by), mut findings) in groups {
        findings.sort_by(|a, b| {
            let place = |finding: &Finding| (finding.diagnostic.range.start, finding.diagnostic.range.end);
            a.path.cmp(&b.path).then_with(|| place(a).cmp(&place(b)))
        });
        let mut group = Group::new(index, server, rule, findings);
        group.kept_by = kept_by.map(str::to_owned);
        if kept_by.is_none() {
            probe(host, workspace, &mut group).await?;
        }
        survey.groups.push(group);
    }
    Ok(())
}

/// Asks what is offered for the findings of a group.
async fn probe(host: &dyn ActorHost, workspace: &ActorWorkspace, group: &mut Group) -> Result<(), Halt> {
    let label = format!("Asking {} for fixes of {}", group.server, group.rule);
    let asked: Vec<Finding> = group.findings.iter().take(MAX_PROBES).cloned().collect();
    let of: Vec<_> = asked.iter().map(|finding| (finding.path.as_str(), &finding.diagnostic)).collect();
    let answers = look::actions(host, workspace.languages.as_ref(), &group.server, &of, &label).await?;
    let mut texts = Texts::new(host, workspace);
    texts.prepare(of.iter().map(|(path, _)| *path), Need::Symbols);
    for answer in answers {
        let offers = answer.map(|offered| {
            let mut offers = options::sort(offered, &group.rule, &mut texts);
            let fit = |offer: &options::Offer, texts: &mut Texts<'_>| options::fits(&offer.edits, texts);
            let (usable, misfits) = offers.usable.into_iter().partition(|offer| fit(offer, &mut texts));
            offers.usable = usable;
            let misfits: Vec<options::Offer> = misfits;
            let reason = "its edits do not fit the file".to_owned();
            offers.unusable.extend(misfits.into_iter().map(|offer| (offer.title, reason.clone())));
            offers
        });
        group.add(offers, &mut texts);
    }
    group.finish();
    Ok(())
}

impl Survey {
    /// Files that servers were asked about.
    pub fn files(&self) -> usize {
        self.workspaces.iter().map(|workspace| workspace.files.len()).sum()
    }

    /// Of these, those that a server did not answer for.
    pub fn unchecked_files(&self) -> usize {
        let unchecked = self.workspaces.iter().map(|workspace| {
            let paths = workspace.unchecked.iter().flat_map(|unchecked| &unchecked.paths);
            paths.collect::<BTreeSet<_>>().len()
        });
        unchecked.sum()
    }

    /// Servers that were given up, with the reason.
    pub fn failed_servers(&self) -> Vec<(String, String)> {
        let failed = self.servers.iter().filter_map(|status| match &status.state {
            ServerState::Failed { reason } => Some((status.server.to_string(), reason.clone())),
            _ => None,
        });
        failed.collect()
    }

    /// Lines about what was not looked at.
    pub fn gaps(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for workspace in &self.workspaces {
            for Unchecked { server, reason, paths } in &workspace.unchecked {
                let files = count(paths.len(), "file");
                lines.push(format!(
                    "Not checked by {server}: {files} of {} ({})",
                    workspace.name,
                    first_line(reason)
                ));
            }
        }
        for (reason, paths) in &self.skipped {
            let (files, shown) = (count(paths.len(), "file"), sample(paths));
            lines.push(format!("Not looked at: {files}, {reason} ({shown})"));
        }
        lines
    }
}
