//! CLI-173, CLI-174, CLI-197, OUT-008, COM-006, COM-007: the same producer in all six formats, as files to read and compare.

use super::*;

/// Escape sequences as `«parameters»`, so that the files can be read.
fn visible(text: &str) -> String {
    text.replace("\x1b[0m", "»").replace("\x1b[", "«")
}

fn golden(name: &str, content: String) {
    insta::with_settings!({
        snapshot_path => "golden",
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        insta::assert_snapshot!(name, content);
    });
}

#[test]
fn every_element_in_every_format() {
    for format in Format::ALL {
        let run = Run::new(format, home(format));
        everything(&run);
        golden(format.name(), visible(&run.finish()));
    }
}

#[test]
fn rich_and_table_fit_twenty_columns() {
    for format in [Format::Rich, Format::Table] {
        let run = Run::new(format, Caps { no_color: true, ..terminal(20) });
        everything(&run);
        golden(&format!("{}-20", format.name()), run.finish());
    }
}

// CLI-186, CLI-187
#[test]
fn an_error_in_every_format() {
    let error = AppError::new(ErrorCode::NotFound, "Project 'local/none' not found")
        .detail("No project has this name.")
        .suggest("agents project list");
    for format in Format::ALL {
        let run = Run::new(format, home(format));
        assert_eq!(run.out.fail(&error), 1);
        golden(&format!("{}-error", format.name()), visible(&run.text()));
    }
}

// CLI-190
#[test]
fn an_empty_list_in_every_format() {
    for format in Format::ALL {
        let run = Run::new(format, home(format));
        run.out
            .table("plans", "Plans", vec![col("id", "ID"), col("state", "State")])
            .when_empty("plans", &["agents plan use <action> <project>"]);
        golden(&format!("{}-empty", format.name()), visible(&run.finish()));
    }
}

// C-18, COM-007
#[test]
fn plain_output_of_our_own_is_ascii_without_escapes() {
    let run = Run::piped(Format::Plain);
    run.out.panel("x", "Title — one → two…").value("ok", "Done ✓", true).field(
        "n",
        "None",
        json!(null),
        own("—"),
    );
    run.out.hint("Next — steps", ["agents version"]);
    run.out.ok("All — done → really…").detail("detail");
    run.out.fail(&AppError::usage("Not — so"));
    let text = run.text();
    assert!(text.is_ascii() && !text.contains('\x1b'), "{text}");
    assert!(text.contains("Title -- one -> two..."), "{text}");
}

#[test]
fn text_of_users_keeps_its_characters_in_plain() {
    let run = Run::piped(Format::Plain);
    run.out.panel("x", "Name").value("name", "Name", "naïve → 日本");
    assert!(run.finish().contains("naïve → 日本"));
}

// G-13, C-1
#[test]
fn no_color_keeps_the_boxes_and_drops_the_colours() {
    for format in [Format::Table, Format::Rich] {
        let run = Run::new(format, Caps { no_color: true, ..terminal(80) });
        everything(&run);
        let text = run.finish();
        assert!(text.contains('╭') && !text.contains('\x1b'), "{text}");
    }
}
