//! `Config::set_text`: one value changes, everything else stays to the byte.

use agents_config::{Config, ConfigFile, KEYS, KeyDefault, Kind, Parts};
use agents_domain::ErrorKind;
use proptest::prelude::*;

fn set(text: &str, key: &str, value: &str) -> String {
    Config::set_text(text, key, value, None).unwrap()
}

fn load(text: &str) -> Config {
    let env = |name: &str| (name == "HOME").then(|| "/home/ada".to_owned());
    let file = Some(ConfigFile { path: "/etc/c.toml".into(), text: text.to_owned() });
    Config::load(Parts { flags: Vec::new(), env: &env, file }).unwrap()
}

// CONF-009, CFG-001
#[test]
fn a_new_key_goes_into_the_table_of_its_subtree() {
    assert_eq!(set("", "core.format", "json"), "[core]\nformat = \"json\"\n");
    assert_eq!(set("", "core.log.level", "info"), "[core.log]\nlevel = \"INFO\"\n");
    assert_eq!(
        set("# mine\n[core]\nformat = \"json\" # always\n\n[plan]\n", "core.namespace", "acme"),
        "# mine\n[core]\nformat = \"json\" # always\nnamespace = \"acme\"\n\n[plan]\n"
    );
    assert_eq!(
        set("core.format = \"json\"\n", "core.namespace", "acme"),
        "core.format = \"json\"\ncore.namespace = \"acme\"\n"
    );
    assert_eq!(
        set("core = { format = \"json\" }\n", "core.log.level", "WARN"),
        "core = { format = \"json\" , log = { level = \"WARN\" } }\n"
    );
}

#[test]
fn a_key_that_is_there_is_replaced_where_it_stands_with_its_comment() {
    assert_eq!(
        set(
            "[plan]\n# how many\nconcurrency   =  4   # four\nmax-child-depth = 2\n",
            "plan.concurrency",
            "8"
        ),
        "[plan]\n# how many\nconcurrency   =  8   # four\nmax-child-depth = 2\n"
    );
    assert_eq!(set("\"core.format\" = 'rich'\n", "core.format", "yaml"), "\"core.format\" = \"yaml\"\n");
    assert_eq!(set("core.log = {level='WARN'}\n", "core.log.level", "INFO"), "core.log = {level=\"INFO\"}\n");
}

// CONF-009
#[test]
fn a_project_has_a_section_with_quoted_keys() {
    let first = Config::set_text("", "plan.concurrency", "2", Some("local/app")).unwrap();
    assert_eq!(first, "[project.\"local/app\"]\n\"plan.concurrency\" = 2\n");
    let second = Config::set_text(&first, "context.hot.max-tokens", "9000", Some("app")).unwrap();
    assert_eq!(
        second,
        "[project.\"local/app\"]\n\"plan.concurrency\" = 2\n\"context.hot.max-tokens\" = 9000\n"
    );
    let nested = "[project.app.plan]\nconcurrency = 2\n";
    assert_eq!(
        Config::set_text(nested, "plan.concurrency", "3", Some("local/app")).unwrap(),
        "[project.app.plan]\nconcurrency = 3\n"
    );
}

// A text that gets keys below it becomes a table.
#[test]
fn a_component_becomes_a_table_when_one_of_its_keys_is_set() {
    let text = "[context.pipeline]\nfragment-scorer = \"mine:Scorer\"\n";
    let both = set(text, "context.pipeline.fragment-scorer.relevance-weight", "0.5");
    let config = load(&both);
    assert_eq!(config.text("context.pipeline.fragment-scorer", None), "mine:Scorer");
    assert_eq!(config.number("context.pipeline.fragment-scorer.relevance-weight", None), Some(0.5));
    let again = set(&both, "context.pipeline.fragment-scorer", "other:Scorer");
    assert_eq!(load(&again).text("context.pipeline.fragment-scorer", None), "other:Scorer");
    assert_eq!(load(&again).number("context.pipeline.fragment-scorer.relevance-weight", None), Some(0.5));
}

// CONF-005, CONF-006, CONF-010
#[test]
fn what_cannot_be_set_is_refused_with_what_would_be_right() {
    let refused = |key, value, project| {
        let error = Config::set_text("", key, value, project).unwrap_err();
        assert_eq!(error.kind, ErrorKind::ValidationFailed);
        (error.message, error.suggestions)
    };
    let (message, suggestions) = refused("plan.concurency", "3", None);
    assert_eq!(message, "there is no configuration key `plan.concurency`");
    assert_eq!(suggestions, ["did you mean `plan.concurrency`?"]);
    assert_eq!(refused("concurrency", "3", None).1, ["did you mean `plan.concurrency`?"]);
    assert_eq!(
        refused("plan.concurrency", "many", None).0,
        "`plan.concurrency` must be a whole number from 1, not `many`"
    );
    assert_eq!(
        refused("core.format", "json", Some("local/app")).0,
        "a project cannot have its own `core.format`"
    );
    assert_eq!(
        refused("core.config-path", "/x", None).0,
        "the configuration file cannot say where it is itself"
    );
    assert_eq!(
        refused("context.strategies.custom.*", "{}", None).0,
        "there is no configuration key `context.strategies.custom.*`"
    );
    let damaged = Config::set_text("[plan", "plan.concurrency", "3", None).unwrap_err();
    assert!(damaged.message.starts_with("the configuration file is not TOML"), "{damaged}");
    let blocked = Config::set_text("core = 3", "core.format", "json", None).unwrap_err();
    assert_eq!(blocked.message, "the configuration file has a value where `core` needs a table");
}

/// A text that is a good value of a key.
fn good_value(kind: Kind) -> BoxedStrategy<String> {
    match kind {
        Kind::Choice(words) => proptest::sample::select(words).prop_map(str::to_owned).boxed(),
        Kind::Boolean => any::<bool>().prop_map(|b| b.to_string()).boxed(),
        Kind::Integer(least) => (least..1_000_000).prop_map(|n| n.to_string()).boxed(),
        Kind::Fraction => (0..=100u8).prop_map(|n| format!("{}", f64::from(n) / 100.0)).boxed(),
        Kind::Amount => (0..10_000u32).prop_map(|n| format!("{}", f64::from(n) / 8.0)).boxed(),
        Kind::Names([]) => proptest::collection::vec("[a-z\"\\\\ ]{1,5}", 0..4)
            .prop_map(|v| serde_json::to_string(&v).unwrap())
            .boxed(),
        Kind::Names(words) => proptest::sample::subsequence(words, 0..=words.len())
            .prop_map(|v| serde_json::to_string(&v).unwrap())
            .boxed(),
        Kind::Integers => proptest::collection::vec(0..20u8, 0..4).prop_map(|v| format!("{v:?}")).boxed(),
        Kind::Url => "https?://[a-z]{1,8}\\.org".boxed(),
        Kind::Name | Kind::Profile => "[a-z]{1,5}/[a-z][a-z0-9.-]{0,5}".boxed(),
        Kind::Namespace => "[a-z]{1,8}".boxed(),
        Kind::Path => "/[a-z \"']{1,8}".boxed(),
        Kind::Text => "[a-z\"'\\\\\n\t#=é]{1,12}".boxed(),
        Kind::Table => Just(String::new()).boxed(),
    }
}

fn settable() -> impl Strategy<Value = (&'static str, String, bool)> {
    let keys: Vec<_> =
        KEYS.iter().filter(|k| k.kind != Kind::Table && k.name != "core.config-path").collect();
    proptest::sample::select(keys).prop_flat_map(|key| {
        (
            Just(key.name),
            good_value(key.kind),
            if key.per_project { any::<bool>().boxed() } else { Just(false).boxed() },
        )
    })
}

proptest! {
    // CONF-009: whatever is set, in whatever order, reads back; setting it again changes nothing.
    #[test]
    fn what_is_set_reads_back(settings in proptest::collection::vec(settable(), 1..8)) {
        let mut text = "# first\n[core]\nformat = \"plain\" # kept\n".to_owned();
        for (key, value, in_project) in &settings {
            let project = in_project.then_some("local/app");
            text = Config::set_text(&text, key, value, project).unwrap();
            prop_assert_eq!(&Config::set_text(&text, key, value, project).unwrap(), &text);
        }
        prop_assert!(text.starts_with("# first\n"));
        let config = load(&text);
        for (at, (key, value, in_project)) in settings.iter().enumerate() {
            if settings[at + 1..].iter().any(|(k, _, p)| k == key && p == in_project) {
                continue;
            }
            let resolved = config.get(key, in_project.then_some("local/app"));
            let expected = load(&Config::set_text("", key, value, None).unwrap()).get(key, None).value;
            prop_assert_eq!(resolved.value, expected, "{} in\n{}", key, text);
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "[\\[\\]a-z.\"'={}#\n\\\\u0-9 -]{0,60}", value in "\\PC{0,12}") {
        let _ = Config::set_text(&text, "core.log.level", "INFO", None);
        let _ = Config::set_text(&text, "plan.concurrency", &value, Some("local/app"));
        let _ = Config::set_text("", "context.summarize.model", &value, Some(&text));
        let env = |name: &str| (name == "HOME").then(|| value.clone());
        let file = Some(ConfigFile { path: "c.toml".into(), text });
        let _ = Config::load(Parts { flags: Vec::new(), env: &env, file });
    }
}

#[test]
fn defaults_are_good_values_of_their_keys() {
    for key in KEYS.iter().filter(|k| !matches!(k.default, KeyDefault::Unset)) {
        if key.name != "core.config-path" {
            let text = load("").text(key.name, None);
            assert!(Config::set_text("", key.name, &text, None).is_ok(), "{} {text}", key.name);
        }
    }
}

// C-37: the other spelling of a key sets the key itself, in a file and by command.
#[test]
fn another_spelling_of_a_key_is_the_key() {
    let key = "sandbox.checkpoint.auto-create-on";
    let config = load("[core.checkpoints]\nauto_create_on = [\"on_error\"]\n");
    assert_eq!(config.list(key, None), ["on_error"]);
    assert_eq!(config.warnings(), []);
    let text = Config::set_text("", "core.checkpoints.auto_create_on", "on_subplan_spawn", None).unwrap();
    assert!(text.contains("auto-create-on") && !text.contains("auto_create_on"), "{text}");
    assert_eq!(load(&text).list(key, None), ["on_subplan_spawn"]);
}
