//! What editors ask of entity files.

use agents_config::editing::{CompletionKind, complete, help, mention_at, mentions, outline};
use agents_config::{KINDS, Problem, Registry, kind_of};
use agents_domain::text::apply_edits;

const ACTION: &str = "\
name: local/fix
description: Fix it
definition_of_done: It is fixed
strategy_actor: builtin/fix-diagnostics
execution_actor: builtin/fix-diagnostics
automation-profile: cautious
arguments:
  - name: depth
    type: integer
";

/// What is offered at `|`.
fn offered(text: &str) -> Vec<agents_config::editing::Completion> {
    let at = text.find('|').unwrap();
    let names = |registry| match registry {
        Registry::Actor => vec![("builtin/format".to_owned(), None), ("local/mine".to_owned(), None)],
        Registry::AutomationProfile => vec![("cautious".to_owned(), Some("Asks".to_owned()))],
        _ => Vec::new(),
    };
    complete(&text.replacen('|', "", 1), at, names)
}

fn labels(text: &str) -> Vec<String> {
    offered(text).into_iter().map(|one| one.label).collect()
}

#[test]
fn keys_that_are_absent_are_offered_at_each_level_also_in_a_broken_file() {
    let top = offered(&format!("{ACTION}|"));
    assert!(top.iter().all(|one| one.kind == CompletionKind::Key && one.label != "name"));
    assert!(top.iter().any(|one| one.label == "reusable" && one.description.is_some()));
    // Spelled another way, it is there.
    assert!(top.iter().all(|one| one.label != "automation_profile"));
    let argument = labels(&format!("{ACTION}    de|"));
    assert!(
        argument.contains(&"description".to_owned()) && !argument.contains(&"type".to_owned()),
        "{argument:?}"
    );
    let broken = labels("name: local/a\nstrategy_actor: [x\nexec|");
    assert!(broken.contains(&"execution_actor".to_owned()), "{broken:?}");
    let wrapped = labels("action:\n  strategy_actor: a/b\n  |\n");
    assert!(wrapped.contains(&"name".to_owned()) && !wrapped.contains(&"strategy_actor".to_owned()));
}

#[test]
fn values_are_offered_where_they_are_known() {
    assert_eq!(labels(&format!("{ACTION}read_only: |")), ["true", "false"]);
    assert_eq!(labels(&format!("{ACTION}state: |")), ["available", "archived"]);
    assert_eq!(labels(&format!("{ACTION}review_actor: |")), ["builtin/format", "local/mine"]);
    assert_eq!(labels("name: local/a\nstrategy_actor: builtin/fo|rmat\n"), ["builtin/format", "local/mine"]);
    assert_eq!(labels("strategy_actor: a/b\nautomation_profile: |\n"), ["cautious"]);
    assert!(labels(&format!("{ACTION}description: |")).is_empty());
    let kinds = labels("strategy_actor: a/b\narguments:\n  - name: x\n    type: |\n");
    assert!(kinds.contains(&"integer".to_owned()), "{kinds:?}");
}

#[test]
fn what_is_offered_replaces_the_word_that_is_being_written() {
    let one = &offered("name: local/a\nstrategy_actor: builtin/fo|rm # as it is\n")[0];
    assert_eq!(
        &"name: local/a\nstrategy_actor: builtin/form # as it is\n"[one.bytes.clone()],
        "builtin/form"
    );
    let list =
        offered("strategy_actor: a/b\ninva|\n").into_iter().find(|one| one.label == "invariants").unwrap();
    assert_eq!(list.insert, "invariants:\n  - ");
}

#[test]
fn a_key_is_explained_by_its_schema() {
    let at = ACTION.find("type:").unwrap();
    let found = help(ACTION, at).unwrap();
    assert_eq!((found.key.as_str(), found.required), ("type", true));
    assert!(found.choices.contains(&"integer".to_owned()), "{found:?}");
    let at = ACTION.find("automation-").unwrap();
    let found = help(ACTION, at).unwrap();
    assert_eq!(found.key, "automation_profile");
    assert!(found.description.is_some());
    assert_eq!(help(ACTION, ACTION.find("integer").unwrap()), None);
    assert_eq!(help("- a\n- b\n", 0), None);
}

#[test]
fn names_are_found_with_what_they_are_names_of() {
    let found = mentions(ACTION);
    let told: Vec<_> = found.iter().map(|m| (m.registry, m.name.as_str(), m.defines)).collect();
    assert_eq!(
        told,
        [
            (Registry::Action, "local/fix", true),
            (Registry::Actor, "builtin/fix-diagnostics", false),
            (Registry::Actor, "builtin/fix-diagnostics", false),
            (Registry::AutomationProfile, "cautious", false),
        ]
    );
    let at = ACTION.find("cautious").unwrap() + 3;
    assert_eq!(mention_at(ACTION, at), Some(found[3].clone()));
    assert_eq!(mention_at(ACTION, 0), None);
    assert!(mentions("strategy_actor: ${ACTOR}\n").is_empty());
}

#[test]
fn the_outline_has_the_keys_and_the_named_items() {
    let found = outline(ACTION).unwrap();
    assert_eq!(found.len(), 7);
    let arguments = found.last().unwrap();
    assert_eq!((arguments.name.as_str(), arguments.children[0].name.as_str()), ("arguments", "depth"));
    assert_eq!(arguments.children[0].children[1].detail.as_deref(), Some("integer"));
    assert_eq!(outline("a: b\n"), None);
}

/// Applies the first fix there is until there is none.
fn mended(text: &str) -> (String, Vec<Problem>) {
    let mut text = text.to_owned();
    for _ in 0..20 {
        let problems = (kind_of(&text).unwrap().check)(&text, "a.yaml");
        let Some(fix) = problems.iter().find_map(|problem| problem.fix.clone()) else {
            return (text, problems);
        };
        text = apply_edits(&text, &[fix.edit]).unwrap();
    }
    panic!("the fixes of this never end:\n{text}");
}

#[test]
fn what_mends_a_problem_leaves_none() {
    for text in [
        "strategy-actor: a/b\nexecution_actor: a/b\nname: local/a\ndescripton: x\ndefinition_of_done: y\n",
        "strategy_actor: a/b\nexecution_actor: a/b\nname: local/a\ndescription: 12\ndefinition_of_done: y\n",
        "strategy_actor: a/b\nexecution_actor: a/b\nname: local/a\ndescription: x\ndefinition_of_done: y\nread_only: \"true\"\n",
        "strategy_actor: a/b\nexecution_actor: a/b\nname: local/a\ndescription: x\ndefinition_of_done: y\nstate: availabel\n",
        "strategy_actor: a/b\nexecution_actor: a/b\nname: local/a\ndescription: x\ndefinition_of_done: y\nargs:\n  - name: x\n",
    ] {
        let (text, left) = mended(text);
        assert!(left.is_empty(), "{text}\n{left:?}");
    }
}

#[test]
fn a_missing_key_is_added_where_it_belongs() {
    let (text, _) = mended("strategy_actor: a/b\nexecution_actor: a/b\nname: local/a\ndescription: x");
    assert!(text.ends_with("description: x\ndefinition_of_done: \"\"\n"), "{text}");
    let (text, left) = mended(
        "strategy_actor: a/b\nexecution_actor: a/b\nname: local/a\ndescription: x\ndefinition_of_done: y\narguments: [{name: x}]\n",
    );
    assert!(left.is_empty() && text.contains("[{type: string, name: x}]"), "{text}\n{left:?}");
}

#[test]
fn nothing_that_is_written_makes_it_fail() {
    let whole = format!("{ACTION}safety_profile:\n  max_cost_per_plan: 1\n");
    for at in (0..=whole.len()).filter(|at| whole.is_char_boundary(*at)) {
        let cut = &whole[..at];
        for text in [cut.to_owned(), format!("{cut}\u{1F600}"), format!("{cut}\n\t- : [{{")] {
            complete(&text, text.len(), |_| Vec::new());
            help(&text, text.len());
            mentions(&text);
            outline(&text);
        }
    }
    assert_eq!(KINDS.len(), 7, "a kind was added: say what it refers to");
}
