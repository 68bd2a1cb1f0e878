use super::*;
use serde_json::json;

fn shown(text: &str) -> String {
    let context = json!({
        "items": [{"name": "b", "n": 2}, {"name": "a", "n": 1}],
        "list": [3, 1, 2],
        "text": "one\ntwo",
        "map": {"b": 1, "a": [true, null]},
        "_secret": "s",
        "inner": {"_p": "s", "shown": 1},
    });
    render(text, &context).unwrap_or_else(|error| format!("error: {error}"))
}

// ACTOR-047, G-16
#[test]
fn the_four_filters_of_our_own() {
    assert_eq!(shown("{{ map | yaml }}"), "b: 1\na:\n  - true\n  - null");
    assert_eq!(shown("{{ text | indent }}"), "one\n  two");
    assert_eq!(shown("{{ text | indent(4, true) }}"), "    one\n    two");
    assert_eq!(shown("{{ list | sum }}"), "6");
    assert_eq!(shown("{{ items | selectattr('name') | join(',') }}"), "b,a");
    assert_eq!(shown("{{ items | selectattr('n', 'equalto', 2) | map(attribute='name') | join }}"), "b");
}

// ACTOR-048
#[test]
fn every_usual_filter_is_there() {
    let all = "tojson default lower upper trim join replace length first last sort unique map reject select batch \
               slice int float string list dictsort escape safe truncate wordwrap center format title capitalize \
               striptags urlencode abs round pprint groupby max min random filesizeformat wordcount reverse";
    let environment = environment();
    let missing: Vec<&str> = all
        .split_whitespace()
        .filter(|name| {
            let text = format!("{{% if '{name}' is filter %}}yes{{% endif %}}");
            environment.render_str(&text, ()).unwrap() != "yes"
        })
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(shown("{{ 'ab' | center(6) }}|"), "  ab  |");
    assert_eq!(shown("{{ 'a b' | urlencode }}"), "a%20b");
    assert_eq!(shown("{{ map | tojson }}"), r#"{"b": 1, "a": [true, null]}"#);
    assert_eq!(shown("{{ list | random }}"), shown("{{ list | random }}"));
}

// ACTOR-049
#[test]
fn functions_can_be_called() {
    assert_eq!(
        shown(
            "{{ range(3) | list | length }} {{ abs(-2) }} {{ round(2.345, 2) }} {{ len(list) }} {{ min(list) }} \
               {{ max(1, 5) }} {{ sum(list) }}"
        ),
        "3 2 2.35 3 1 5 6"
    );
}

// ACTOR-050
#[test]
fn python_s_ways_with_values() {
    assert_eq!(
        shown("{{ map.get('b', 0) }} {{ map.get('z', 7) }} {{ 'abcdef'[:2] }} {{ 'abcdef'[-2:] }}"),
        "1 7 ab ef"
    );
    assert_eq!(shown("{% set x = 'y' if 1 + 1 == 2 else 'n' %}{{ x }}{{ map is mapping }}"), "yTrue");
    assert_eq!(
        shown("{% for i in items %}{{ loop.index }}{% for j in list %}{{ j }}{% endfor %}{% endfor %}"),
        "13122312"
    );
}

// ACTOR-046
#[test]
fn private_names_files_and_code_are_out_of_reach() {
    for text in ["{{ _secret }}", "{{ inner._p }}", "{{ inner.__class__ }}", "{{ inner['_p'] }}"] {
        assert_eq!(shown(text), "", "{text}");
    }
    for text in [
        "{{ inner.__class__.__mro__ }}",
        "{% include '/etc/passwd' %}",
        "{{ ''.__class__.__base__.__subclasses__() }}",
        "{{ open('/etc/passwd') }}",
    ] {
        assert!(shown(text).starts_with("error: "), "{text}: {}", shown(text));
    }
}

#[test]
fn templates_that_would_never_end_run_out_of_fuel() {
    for bomb in [
        "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}",
        "{% set ns = namespace(s='xxxxxxxxxx') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
        "{{ 'x' * 90000000 }}{{ 'x' * 90000000 }}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{{ 'x' | center(999999999) }}",
    ] {
        assert!(shown(bomb).starts_with("error: "), "{bomb}");
    }
}

// ACTOR-038: conditions as in Python
#[test]
fn conditions_are_read_as_python_s() {
    let context = json!({"run_tests": {"passed": false}, "attempts": 3, "kind": null, "list": [1]});
    for (text, expected) in [
        ("not run_tests.passed or attempts > 9", true),
        ("run_tests.passed and attempts == 3", false),
        ("kind is None", true),
        ("kind is not None", false),
        ("len(list) == 1 and 1 in list", true),
        ("run_tests.get('message', '') == ''", true),
        ("missing", false),
    ] {
        assert_eq!(holds(text, &context), Ok(expected), "{text}");
    }
    assert!(holds("a b c", &context).is_err());
}

// ACTOR-043
#[test]
fn layers_are_laid_over_each_other() {
    let mut under = json!({"a": {"x": 1, "y": 1}, "b": 1});
    merge(&mut under, &json!({"a": {"y": 2}, "c": 3}));
    assert_eq!(under, json!({"a": {"x": 1, "y": 2}, "b": 1, "c": 3}));
}
