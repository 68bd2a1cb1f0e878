//! CLI-005, CLI-006, CLI-195, CLI-196, ruling 3: which format a run uses.

use std::ffi::OsString;

use super::*;
use crate::output::format::{Background, from_args, implicit, resolve};

fn caps(is_tty: bool, vars: &[(&str, &str)]) -> Caps {
    Caps::from_env(is_tty, None, |name| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
}

const UTF8: (&str, &str) = ("LANG", "de_DE.UTF-8");
const TERM: (&str, &str) = ("TERM", "xterm-256color");

#[test]
fn the_stronger_wish_wins() {
    let tty = caps(true, &[UTF8, TERM]);
    let pipe = caps(false, &[UTF8, TERM]);
    let ask = |flag, env, config, caps: &Caps| resolve(Asked { flag, env, config }, caps).unwrap();
    assert_eq!(ask(Some(Format::Json), Some("yaml"), Some("table"), &tty), Format::Json);
    assert_eq!(ask(None, Some("yaml"), Some("table"), &tty), Format::Yaml);
    assert_eq!(ask(None, None, Some("table"), &tty), Format::Table);
    assert_eq!(ask(None, Some(""), Some("table"), &tty), Format::Table);
    assert_eq!(ask(None, None, None, &tty), Format::Rich);
    assert_eq!(ask(None, None, None, &pipe), Format::Plain);
}

#[test]
fn what_a_terminal_cannot_show_falls_back() {
    type Vars = &'static [(&'static str, &'static str)];
    let cases: &[(Format, bool, Vars, Format)] = &[
        (Format::Rich, true, &[UTF8, TERM], Format::Rich),
        (Format::Rich, false, &[UTF8, TERM], Format::Table),
        (Format::Rich, true, &[UTF8, ("TERM", "dumb")], Format::Table),
        (Format::Rich, true, &[TERM], Format::Color),
        (Format::Rich, true, &[UTF8, TERM, ("NO_COLOR", "")], Format::Rich),
        (Format::Rich, true, &[("TERM", "dumb")], Format::Plain),
        (Format::Table, false, &[UTF8], Format::Table),
        (Format::Table, false, &[("LANG", "C")], Format::Color),
        (Format::Table, true, &[UTF8, ("NO_COLOR", "1")], Format::Table),
        (Format::Table, true, &[("NO_COLOR", "1")], Format::Plain),
        (Format::Color, false, &[], Format::Color),
        (Format::Color, true, &[UTF8, ("NO_COLOR", "")], Format::Plain),
        (Format::Color, true, &[UTF8, ("TERM", "dumb")], Format::Plain),
        (Format::Plain, true, &[UTF8, TERM], Format::Plain),
        (Format::Json, true, &[("NO_COLOR", "1"), ("TERM", "dumb")], Format::Json),
        (Format::Yaml, false, &[], Format::Yaml),
    ];
    for (asked, is_tty, vars, expected) in cases {
        let caps = caps(*is_tty, vars);
        let got = resolve(Asked { flag: Some(*asked), ..Asked::default() }, &caps).unwrap();
        assert_eq!(got, *expected, "{asked:?} {is_tty} {vars:?}");
        assert!(got.usable(&caps));
    }
}

#[test]
fn without_a_wish_a_weak_terminal_gets_what_it_can_show() {
    assert_eq!(implicit(&caps(true, &[UTF8, ("TERM", "dumb")])), Format::Table);
    assert_eq!(implicit(&caps(true, &[TERM])), Format::Color);
    assert_eq!(implicit(&caps(true, &[])), Format::Color);
    assert_eq!(implicit(&caps(false, &[UTF8, TERM])), Format::Plain);
}

#[test]
fn an_unknown_format_is_a_usage_error_that_names_its_source_and_the_six() {
    let caps = caps(true, &[UTF8]);
    let error = resolve(Asked { env: Some("xml"), ..Asked::default() }, &caps).unwrap_err();
    assert_eq!(error.code, ErrorCode::Usage);
    let detail = error.detail.unwrap();
    assert!(
        detail.contains("CLEVERAGENTS_FORMAT") && detail.contains("rich, color, table, plain, json, yaml"),
        "{detail}"
    );
    let error = resolve(Asked { config: Some("RICH"), ..Asked::default() }, &caps).unwrap_err();
    assert!(error.detail.unwrap().contains("core.format"));
    // A stronger wish hides a wrong weaker one.
    assert!(resolve(Asked { flag: Some(Format::Json), env: Some("xml"), config: None }, &caps).is_ok());
}

#[test]
fn capabilities_follow_the_environment() {
    let c = caps(
        true,
        &[UTF8, TERM, ("COLORTERM", "truecolor"), ("TERM_PROGRAM", "vscode"), ("COLORFGBG", "15;0")],
    );
    assert!(c.ansi && c.cursor && c.colors_256 && c.truecolor && c.unicode && !c.no_color && !c.dumb);
    assert_eq!((c.width, c.height, c.limit()), (80, 24, Some(80)));
    assert_eq!((c.term_program.as_deref(), c.background), (Some("vscode"), Some(Background::Dark)));

    let c = caps(false, &[("COLORTERM", "yes"), ("COLORFGBG", "0;default;15")]);
    assert!(!c.ansi && !c.cursor && c.colors_256 && !c.truecolor && !c.unicode);
    assert_eq!((c.limit(), c.background), (None, Some(Background::Light)));

    // The first locale variable that is set decides.
    assert!(!caps(true, &[("LC_ALL", "C"), UTF8]).unicode);
    assert!(caps(true, &[("LC_ALL", ""), ("LC_CTYPE", "en_US.utf8"), ("LANG", "C")]).unicode);
    // A terminal without a size counts as 80 by 24.
    assert_eq!(Caps::from_env(true, Some((0, 0)), |_| None).width, 80);
}

#[test]
fn the_format_is_found_in_raw_arguments() {
    let find = |args: &[&str]| from_args(args.iter().map(OsString::from));
    assert_eq!(find(&["plan", "--format", "json", "nonsense"]), Some(Format::Json));
    assert_eq!(find(&["--format=yaml", "plan"]), Some(Format::Yaml));
    assert_eq!(find(&["plan", "--", "--format", "json"]), None);
    assert_eq!(find(&["--format"]), None);
    assert_eq!(find(&["--format", "xml"]), None);
}
