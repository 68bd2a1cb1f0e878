//! A group as a decision: the question, the alternatives, and the facts that it was made from.

use agents_domain::decision::{Alternative, DecisionType, ResourceRef};
use agents_domain::ports::actor::{ActorHost, ActorWorkspace, DecisionDraft};
use serde_json::{Value, json};

use super::baseline::SurveyedWorkspace;
use super::confidence::Factor;
use super::group::{Group, GroupOption, PlannedGroup, PlannedOption};
use super::options::{Class, LEAVE_ALONE};
use super::texts::Texts;
use super::{agree, count, share, the};
use crate::common::first_line;

/// Places that a decision names; the question says how many there are.
pub(super) const MAX_PLACES: usize = 200;

/// The group as Execute will need it.
pub(super) fn plan(group: &Group, workspace: &SurveyedWorkspace) -> PlannedGroup {
    let option = |option: &GroupOption| PlannedOption {
        text: option.title.clone(),
        key: option.key.clone(),
        class: option.class,
    };
    PlannedGroup {
        id: format!("{}/{}/{}", workspace.name, group.server, group.rule),
        resource_id: workspace.resource_id,
        server: group.server.clone(),
        rule: group.rule.clone(),
        files: group.files(),
        options: group.options.iter().map(option).collect(),
    }
}

/// The decision of Strategize about a group that has options.
pub(super) fn draft(
    group: &Group,
    planned: &PlannedGroup,
    surveyed: &SurveyedWorkspace,
    workspace: &ActorWorkspace,
    several_workspaces: bool,
    root: Option<&str>,
    host: &dyn ActorHost,
) -> DecisionDraft {
    let (confidence, factors) = group.confidence();
    let proposed = group.proposed();
    let leave_at = group.fixes().count();
    let mut alternatives: Vec<Alternative> = group
        .options
        .iter()
        .map(|option| Alternative { option: option.title.clone(), description: Some(describe(option)) })
        .collect();
    let leave = Alternative {
        option: LEAVE_ALONE.to_owned(),
        description: Some("Changes nothing; the findings stay.".to_owned()),
    };
    alternatives.insert(leave_at, leave);
    let resources = places(group, workspace, host);
    DecisionDraft {
        key: planned.strategy_key(),
        decision_type: DecisionType::StrategyChoice,
        parent: None,
        question: question(group, several_workspaces.then_some(surveyed.name.as_str())),
        chosen: proposed.unwrap_or(leave_at),
        alternatives,
        confidence: Some(confidence),
        rationale: rationale(group, proposed, confidence, &factors),
        reasoning: None,
        resources,
        depends_on: root.map(str::to_owned).into_iter().collect(),
        context: evidence(group, surveyed, proposed, confidence, &factors),
        spawn: None,
    }
}

fn question(group: &Group, of: Option<&str>) -> String {
    let findings = group.findings.len();
    let the = the(findings, "finding");
    let gist = group.gist();
    let gist = if gist.is_empty() { String::new() } else { format!(" ({gist})") };
    let of = of.map(|name| format!(" of {name}")).unwrap_or_default();
    let files = count(group.files().len(), "file");
    format!("What should be done about {the} of {}{gist} from {} in {files}{of}?", group.rule, group.server)
}

fn describe(option: &GroupOption) -> String {
    let what = match option.class {
        Class::Fix => "Changes the code",
        Class::Suppress => "Silences the finding, does not fix it",
    };
    let mut parts = vec![format!("{what}; offered for {}", count(option.offering, "finding"))];
    if option.preferred > 0 {
        parts.push("marked as preferred by the server".to_owned());
    }
    if option.deleting > 0 {
        parts.push("takes a declaration away".to_owned());
    }
    if option.elsewhere > 0 {
        parts.push(format!("edits other files too ({} of them)", option.elsewhere));
    }
    let mut text = format!("{}.", parts.join(", "));
    if let Some(example) = &option.example {
        let after = if example.after.is_empty() { "(removed)" } else { &example.after };
        let before = if example.before.is_empty() { "(nothing)" } else { &example.before };
        text.push_str(&format!(" Example, {}:{}: {before} → {after}", example.path, example.line));
    }
    text
}

fn rationale(group: &Group, proposed: Option<usize>, confidence: f64, factors: &[Factor]) -> String {
    let (findings, probed) = (group.findings.len(), group.offered.len());
    let mut sentences = Vec::new();
    if probed < findings {
        let verb = agree(probed, "was", "were");
        sentences.push(format!("{} {verb} asked about.", share(probed, findings, "finding")));
    }
    let suppressing = group.options.iter().filter(|option| option.class == Class::Suppress).count();
    match proposed.map(|index| &group.options[index]) {
        Some(option) => {
            let standing = if option.preferred > 0 { "the only preferred fix" } else { "the only fix" };
            sentences.push(format!(
                "“{}” is {standing}: {} {} it.",
                option.title,
                share(option.offering, probed, "finding"),
                agree(option.offering, "offers", "offer")
            ));
        }
        None if group.fixes().next().is_none() => {
            let ways = match suppressing {
                1 => "One way".to_owned(),
                n => count(n, "way"),
            };
            let verb = agree(suppressing, "is", "are");
            sentences.push(format!(
                "{ways} to suppress {verb} offered and no fix; suppressing hides a finding and is never chosen without a person."
            ));
        }
        None => {
            let fixes: Vec<String> = group
                .fixes()
                .map(|(_, option)| {
                    let preferred = if option.preferred > 0 { ", preferred" } else { "" };
                    format!("“{}” ({}{preferred})", option.title, option.offering)
                })
                .collect();
            sentences.push(format!("Several fixes are offered and none stands out: {}.", fixes.join(", ")));
        }
    }
    if proposed.is_some() && suppressing > 0 {
        sentences.push("Suppressing is offered too, and is never chosen without a person.".to_owned());
    }
    if group.more_options > 0 {
        let verb = agree(group.more_options, "is", "are");
        sentences.push(format!("{} {verb} not shown.", count(group.more_options, "more option")));
    }
    if let Some((missing, reason)) = &group.unanswered {
        let missing = count(*missing, "finding");
        sentences.push(format!("For {missing} the server did not tell: {}.", first_line(reason)));
    }
    if !group.unusable.is_empty() {
        let what: Vec<String> = group
            .unusable
            .iter()
            .take(3)
            .map(|((title, reason), n)| format!("“{title}” ({n}; {})", first_line(reason)))
            .collect();
        sentences.push(format!("Offered but no option: {}.", what.join(", ")));
    }
    let facts: Vec<String> =
        factors.iter().map(|factor| format!("{:+.2} {}", factor.effect, factor.fact)).collect();
    sentences.push(format!("Confidence {confidence:.2}: {}.", facts.join("; ")));
    sentences.join(" ")
}

pub(super) fn places(group: &Group, workspace: &ActorWorkspace, host: &dyn ActorHost) -> Vec<ResourceRef> {
    let mut texts = Texts::new(host, workspace);
    let place = |finding: &super::group::Finding| {
        let range = finding.diagnostic.range;
        let symbol = texts.get(&finding.path).and_then(|source| source.symbol_at(range.start));
        ResourceRef {
            resource_id: workspace.resource_id,
            path: finding.path.clone(),
            range: Some(range),
            symbol,
            note: Some(finding.diagnostic.message.clone()),
        }
    };
    group.findings.iter().take(MAX_PLACES).map(place).collect()
}

/// All that the decision was made from.
fn evidence(
    group: &Group,
    surveyed: &SurveyedWorkspace,
    proposed: Option<usize>,
    confidence: f64,
    factors: &[Factor],
) -> Value {
    let findings = group.findings.iter().enumerate().map(|(at, finding)| {
        let diagnostic = &finding.diagnostic;
        json!({
            "path": finding.path,
            "range": diagnostic.range,
            "severity": diagnostic.severity,
            "message": diagnostic.message,
            "options": group.offered.get(at),
        })
    });
    let unusable = group
        .unusable
        .iter()
        .map(|((title, reason), n)| json!({"title": title, "reason": reason, "findings": n}));
    json!({
        "workspace": surveyed.name,
        "server": group.server,
        "rule": group.rule,
        "findings": findings.collect::<Vec<_>>(),
        "asked": group.offered.len(),
        "unanswered": group.unanswered.as_ref().map(|(n, reason)| json!({"findings": n, "reason": reason})),
        "options": group.options,
        "options_not_shown": group.more_options,
        "unusable": unusable.collect::<Vec<_>>(),
        "proposed": proposed.map(|index| group.options[index].key.as_str()),
        "confidence": confidence,
        "factors": factors,
    })
}
