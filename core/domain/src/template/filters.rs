//! What templates can call beyond the engine's own filters and tests.

use std::borrow::Cow;

use minijinja::value::{Kwargs, Rest, Value, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, filters, tests};

use super::yaml::to_yaml;

/// The widest text that is padded.
const MAX_WIDTH: usize = 10_000;

pub(super) fn add(environment: &mut Environment<'_>) {
    environment.add_global("RAND_SEED", 0);
    environment.add_filter("filesizeformat", minijinja_contrib::filters::filesizeformat);
    environment.add_filter("random", minijinja_contrib::filters::random);
    environment.add_filter("truncate", minijinja_contrib::filters::truncate);
    environment.add_filter("wordcount", minijinja_contrib::filters::wordcount);
    environment.add_filter("wordwrap", minijinja_contrib::filters::wordwrap);
    environment.add_filter("striptags", minijinja_contrib::filters::striptags);
    environment.add_filter("center", center);
    environment.add_filter("indent", indent);
    environment.add_filter("selectattr", selectattr);
    environment.add_filter("yaml", |value: &Value| to_yaml(&json_of(value)));
    environment.add_filter("format_prompt", format_prompt);
    environment.add_test("None", tests::is_none);
    environment.add_function("abs", filters::abs);
    environment.add_function("round", filters::round);
    environment.add_function("len", filters::length);
    environment.add_function("min", least);
    environment.add_function("max", greatest);
    environment.add_function("sum", |state: &mut State, values: Value| state.apply_filter("sum", &[values]));
}

fn json_of(value: &Value) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or_default()
}

fn wrong(message: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

/// `{{ text | center(20) }}`: in the middle of so many characters.
fn center(text: Cow<'_, str>, width: Option<usize>) -> Result<String, Error> {
    let width = width.unwrap_or(80);
    if width > MAX_WIDTH {
        return Err(wrong(format!("a text is centered in at most {MAX_WIDTH} characters")));
    }
    Ok(format!("{text:^width$}"))
}

/// `{{ text | indent }}`: every line but the first goes two spaces to the right.
fn indent(
    text: Cow<'_, str>,
    width: Option<usize>,
    first: Option<bool>,
    blank: Option<bool>,
    kwargs: Kwargs,
) -> Result<String, Error> {
    let width = width.or(kwargs.get("width")?).unwrap_or(2);
    let first = first.or(kwargs.get("first")?).unwrap_or(false);
    let blank = blank.or(kwargs.get("blank")?).unwrap_or(false);
    kwargs.assert_all_used()?;
    if width > 200 {
        return Err(wrong("a text is indented by at most 200 spaces"));
    }
    let space = " ".repeat(width);
    let lines = text.split('\n').enumerate().map(|(at, line)| {
        if (at == 0 && !first) || (at > 0 && line.trim().is_empty() && !blank) {
            line.to_owned()
        } else {
            format!("{space}{line}")
        }
    });
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// With a name alone: that attribute of every item. With a test: the items whose attribute passes it, as usual.
fn selectattr(
    state: &mut State,
    value: Value,
    attribute: Cow<'_, str>,
    test: Option<Cow<'_, str>>,
    rest: Rest<ValueOrKwargs>,
) -> Result<Vec<Value>, Error> {
    if test.is_some() {
        return filters::selectattr(state, value, attribute, test, rest);
    }
    value.try_iter()?.map(|item| item.get_attr(&attribute)).collect()
}

/// `{{ prompts.deep_dive | format_prompt(topic=context.topic) }}`: puts values in the place of `{topic}`.
fn format_prompt(text: Cow<'_, str>, kwargs: Kwargs) -> Result<String, Error> {
    let mut out = text.into_owned();
    let names: Vec<String> = kwargs.args().map(str::to_owned).collect();
    for name in names {
        let value: Value = kwargs.get(&name)?;
        out = out.replace(&format!("{{{name}}}"), &value.to_string());
        if out.len() > 1024 * 1024 {
            return Err(wrong("the prompt becomes larger than 1 MiB"));
        }
    }
    Ok(out)
}

/// The items of a call such as `min(scores)` or `min(a, b)`.
fn items(state: &mut State, name: &str, args: &[Value]) -> Result<Value, Error> {
    let list = match args {
        [one] if matches!(one.kind(), ValueKind::Seq | ValueKind::Iterable | ValueKind::Map) => one.clone(),
        several => Value::from(several.to_vec()),
    };
    state.apply_filter(name, &[list])
}

fn least(state: &mut State, args: Rest<Value>) -> Result<Value, Error> {
    items(state, "min", &args)
}

fn greatest(state: &mut State, args: Rest<Value>) -> Result<Value, Error> {
    items(state, "max", &args)
}
