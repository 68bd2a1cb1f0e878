//! The quick ways for large answers show exactly what the general ones show.

use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};
use serde_json::{Value, json};

use super::*;
use crate::output::render::{self, View};
use crate::output::strategy::Renderer;

/// Cells of every sort, hostile texts among them.
fn cell() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u32>().prop_map(Value::from),
        "[a-z ]{0,12}".prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        "0[01][A0]{24}".prop_map(Value::from),
        Just(json!("2026-02-08T12:46:59Z")),
        Just(json!("two\nlines\tand a tab — über 日本")),
        Just(json!(["a", 1, null])),
    ]
}

proptest! {
    #[test]
    fn a_plain_table_is_the_same_either_way(
        rows in proptest::collection::vec(proptest::collection::vec(cell(), 5), 1..12),
        most in proptest::option::of(1usize..8),
        sorted in any::<bool>(),
    ) {
        let run = Run::piped(Format::Plain);
        let columns = vec![
            col("a", "A — first").id(),
            col("b", "B").kind(Kind::Count),
            col("c", "Ç").kind(Kind::State),
            col("d", "D").kind(Kind::Flag).align(Align::Center),
            col("e", "Last").wrap(),
        ];
        let table = run.out.table(None, "Rows → here", columns);
        table.fill(rows).instead(0, "c", warn("instead ✓")).summary("Total", own("many — or few"));
        if let Some(most) = most {
            table.max_rows(most);
        }
        if sorted {
            table.sort_by("e", true);
        }
        drop(table);
        let element = run.out.snapshot().slots[0].element.clone();
        let view = View::new(Format::Plain, &pipe());
        let general: String =
            render::rows(&element, &view).iter().map(|row| render::paint(row, &view) + "\n").collect();
        prop_assert_eq!(view.render(&element, Duration::ZERO), general);
    }

    #[test]
    fn a_large_answer_is_printed_as_a_value_would_be(
        texts in proptest::collection::vec(".{0,20}", 0..40),
        number in any::<i64>(),
    ) {
        let answer = json!({ "texts": texts, "empty": [], "none": {}, "n": number, "more": { "data": null } });
        let show = |format: Format, quick: bool| {
            let run = Run::piped(format);
            match quick {
                true => run.out.set_answer(answer.clone()),
                false => run.out.set_data(answer.clone()),
            };
            run.out.warn("data");
            run.finish()
        };
        for format in [Format::Json, Format::Yaml] {
            prop_assert_eq!(show(format, true), show(format, false));
        }
    }
}

#[test]
fn an_answer_of_many_chunks_is_whole_and_takes_more_beside_it() {
    let answer: Vec<Value> = (0..20_000).map(|n| json!({ "n": n, "text": "\u{85}ü\n" })).collect();
    let run = Run::piped(Format::Json);
    run.out.set_answer(json!({ "list": answer.clone() }));
    let text = run.finish();
    assert!(text.contains("\\u0085ü\\n"), "what drives a terminal is escaped in every chunk");
    assert_eq!(run.json()["data"]["list"], Value::from(answer.clone()));

    let run = Run::piped(Format::Json);
    run.out.set_answer(json!({ "list": answer })).data("detached", true);
    run.finish();
    assert_eq!(
        (&run.json()["data"]["detached"], &run.json()["data"]["list"][1]["n"]),
        (&json!(true), &json!(1))
    );
}
