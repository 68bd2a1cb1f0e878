//! `${NAME}` in the values of files that people write.

/// Replaces `${NAME}` and `${NAME:default}` (or `${NAME:-default}`); `$${` is a literal `${`. What is no variable stays as
/// it is.
///
/// # Errors
/// The name of a variable that is not set and has no default.
pub fn interpolate(text: &str, variable: &mut dyn FnMut(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            out.push_str(&rest[..at - 1]);
            out.push_str("${");
            rest = &rest[at + 2..];
            continue;
        }
        let Some(end) = rest[at..].find('}').map(|end| at + end) else { break };
        let inside = &rest[at + 2..end];
        let (name, default) = match inside.split_once(':') {
            Some((name, default)) => (name, Some(default.strip_prefix('-').unwrap_or(default))),
            None => (inside, None),
        };
        out.push_str(&rest[..at]);
        if is_variable(name) {
            match (variable(name), default) {
                (Some(value), _) => out.push_str(&value),
                (None, Some(default)) => out.push_str(default),
                (None, None) => return Err(name.to_owned()),
            }
        } else {
            out.push_str(&rest[at..=end]);
        }
        rest = &rest[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::interpolate;

    // CONF-026, CONF-027
    #[test]
    fn variables_and_defaults_are_put_in_and_the_rest_stays() {
        let run = |text| interpolate(text, &mut |name| (name == "PORT").then(|| "8080".to_owned()));
        assert_eq!(run("a${PORT}b${PORT}"), Ok("a8080b8080".to_owned()));
        assert_eq!(run("${NONE:x y}-${NONE:}-${NONE:-z}"), Ok("x y--z".to_owned()));
        assert_eq!(run("$${PORT} ${1} ${PORT"), Ok("${PORT} ${1} ${PORT".to_owned()));
        assert_eq!(run("${NONE}"), Err("NONE".to_owned()));
    }
}
