//! Automation-profile files: what loads, in which spellings, and what is refused where.

use agents_config::{kind_of, load_automation_profile};
use agents_domain::profile::{Gate, Guards, Profile, Safety};

use crate::lines;

const THRESHOLDS: &str = "\
decompose_task: 0.0
create_tool: 0.5
select_tool: 1.0
edit_code: 0.3
execute_command: 0.7
create_file: 0.5
delete_content: 0.8
access_network: 0.9
install_dependency: 0.5
modify_config: 0
approve_plan: 0.6
";

const FLAGS: &str = "require_sandbox: true\nrequire_checkpoints: true\nallow_unsafe_tools: false\n";

fn flat(more: &str) -> String {
    format!("name: local/nuanced\ndescription: Nuanced\n{THRESHOLDS}{FLAGS}{more}")
}

fn load(text: &str) -> Profile {
    load_automation_profile(text, "p.yaml").unwrap_or_else(|p| panic!("{}", lines(&p))).value
}

fn refused(text: &str) -> String {
    lines(&load_automation_profile(text, "p.yaml").unwrap_err())
}

fn hints(text: &str) -> String {
    lines(&load_automation_profile(text, "p.yaml").unwrap_or_else(|p| panic!("{}", lines(&p))).hints)
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

// PROF-016, C-17: the schema's flat spelling and the nested one of the prose are the same profile.
#[test]
fn flat_and_nested_files_are_the_same_profile() {
    let flat = flat("");
    let nested =
        format!("name: local/nuanced\ndescription: Nuanced\n{THRESHOLDS}safety:\n{}", indented(FLAGS));
    let wrapped = format!(
        "automation-profile:\n  name: local/nuanced\n  description: Nuanced\n  thresholds:\n{}  safety-profile:\n{}",
        indented(&indented(THRESHOLDS)),
        indented(&indented(FLAGS)),
    );
    let profile = load(&flat);
    assert_eq!(profile, load(&nested));
    assert_eq!(hints(&flat) + &hints(&nested), "");
    assert_eq!(profile.safety, Safety::default());
    assert_eq!(profile.guards, Guards::default());
    assert_eq!(profile.thresholds.of(Gate::ExecuteReversion), 0.8);
    assert_eq!(profile, load(&wrapped.replacen("automation-profile:", "automation_profile:", 1)));
    assert_eq!(kind_of(&flat).unwrap().name, "automation_profile");
}

// PROF-010, GUARD-001
#[test]
fn every_limit_there_is() {
    let text = flat(
        "max_cost_per_plan: 1\nmax-retries-per-step: 0\nguards:\n  max_tool_calls_per_step: 0\n  max_total_cost: 2.5\n  tool_allowlist: []\n  tool_denylist: [local/deploy]\n  require_approval_for_writes: true\nsafety: {max_total_cost: 3, require_human_approval: true, allowed_skill_categories: [edit]}\n",
    );
    let profile = load(&text);
    assert_eq!(
        profile.safety,
        Safety {
            max_cost_per_plan: Some(1.0),
            max_total_cost: Some(3.0),
            max_retries_per_step: 0,
            require_human_approval: true,
            allowed_skill_categories: vec!["edit".to_owned()],
            ..Safety::default()
        }
    );
    assert_eq!(
        profile.guards,
        Guards {
            max_tool_calls_per_step: Some(0),
            max_total_cost: Some(2.5),
            tool_allowlist: Some(Vec::new()),
            tool_denylist: Some(vec!["local/deploy".to_owned()]),
            require_approval_for_writes: true,
            require_approval_for_apply: false,
        }
    );
}

// PROF-001, PROF-010, PROF-016, PROF-017
#[test]
fn what_cannot_be_is_refused_where_it_stands() {
    let twice = refused(&flat("safety: {require_sandbox: false}\n"));
    assert_eq!(
        twice,
        "14:18 require_sandbox: `require_sandbox` is set twice, to different values; the other is on line 17\n"
    );
    assert_eq!(
        refused(&flat("").replace("edit_code: 0.3", "edit_code: 1.5")),
        "6:12 edit_code: `edit_code` must be at most 1, not 1.5\n"
    );
    for (broken, message) in [
        (".nan", "`.nan` is not a finite number"),
        ("-0.1", "`edit_code` must be at least 0, not -0.1"),
        ("'0.3'", "`edit_code` must be a number, not the text `0.3`: leave the quotes out"),
    ] {
        let said = refused(&flat("").replace("edit_code: 0.3", &format!("edit_code: {broken}")));
        assert!(said.contains(message), "{said}");
    }
    let costs = refused(&flat("max_cost_per_plan: 2\nmax_total_cost: 1\n"));
    assert_eq!(
        costs,
        "17:20 safety.max_cost_per_plan: `max_cost_per_plan` (2) must not be more than `max_total_cost` (1)\n"
    );
    let negative = refused(&flat("guards: {max_total_cost: -1}\n"));
    assert!(negative.contains("`guards.max_total_cost` must be an amount from 0, not -1"), "{negative}");
    let retries = refused(&flat("max_retries_per_step: 101\n"));
    assert!(retries.contains("must be at most 100, not 101"), "{retries}");
    let missing =
        refused(&flat("").replace("approve_plan: 0.6\n", "").replace("require_sandbox: true\n", ""));
    assert!(missing.contains("the key `approve_plan` is missing"), "{missing}");
    assert!(missing.contains("the key `require_sandbox` of `safety` is missing"), "{missing}");
    let unknown = refused(&flat("auto_exec: 0.5\n"));
    assert!(unknown.contains("there is no key `auto_exec`"), "{unknown}");
    for (name, message) in [
        ("auto", "`auto` is built in and cannot be replaced"),
        ("mine", "`name` must be namespace/name, such as `local/mine`"),
        ("a b/c", "is not a name"),
    ] {
        let said = refused(&flat("").replace("local/nuanced", name));
        assert!(said.contains(message), "{said}");
    }
}
