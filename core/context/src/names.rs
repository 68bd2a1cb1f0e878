//! The words in a name, and which names a query means.

/// The words of a name in lower case: `get`, `user`, `name` of `getUserName`, `get_user_name` and `GetUserName`; `http`
/// and `server` of `HTTPServer`.
pub(crate) fn parts(name: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut before: Option<char> = None;
    let mut rest = name.chars().peekable();
    while let Some(c) = rest.next() {
        if !c.is_alphanumeric() {
            before = None;
            continue;
        }
        let begins = match before {
            None => true,
            Some(b) if c.is_uppercase() => {
                !b.is_uppercase() || rest.peek().is_some_and(|next| next.is_lowercase())
            }
            Some(_) => false,
        };
        if begins {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut() {
            part.extend(c.to_lowercase());
        }
        before = Some(c);
    }
    parts
}

/// Whether each word of a query begins a word of the name, in their order.
pub(crate) fn matches(query: &[String], name: &str) -> bool {
    let mut parts = parts(name).into_iter();
    query.iter().all(|wanted| parts.any(|part| part.starts_with(wanted.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fall_into_words() {
        for name in ["get_user_name", "getUserName", "GetUserName", "__get_user_name__", "GET_USER_NAME"] {
            assert_eq!(parts(name), ["get", "user", "name"], "{name}");
        }
        assert_eq!(parts("HTTPServer2"), ["http", "server2"]);
        assert_eq!(parts("impl Display for Shape"), ["impl", "display", "for", "shape"]);
        assert!(parts("__").is_empty());
    }

    #[test]
    fn words_of_a_query_begin_words_of_the_name() {
        assert!(matches(&parts("usr na"), "get_usr_name"));
        assert!(matches(&parts("GeNa"), "getUserName"));
        assert!(!matches(&parts("name user"), "get_user_name"));
        assert!(!matches(&parts("ser"), "user"));
    }
}
