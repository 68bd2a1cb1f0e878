//! Numbers in sentences: the noun and the verb that go with them.

/// `1 finding`, `12 findings`, `0 findings`.
pub fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", agree(n, "", "s"))
}

/// The word that goes with a number: the first with one, the second with any other.
pub fn agree<T>(n: usize, one: T, many: T) -> T {
    if n == 1 { one } else { many }
}

/// A part of a number of things: `2 of 3 findings`, `none of 3 findings`, and of a single one `1 finding` or
/// `no finding`. The verb goes with the part.
pub fn share(part: usize, all: usize, noun: &str) -> String {
    match (part, all) {
        (0, 0 | 1) => format!("no {noun}"),
        (0, all) => format!("none of {}", count(all, noun)),
        (1, 1) => count(1, noun),
        (part, all) => format!("{part} of {}", count(all, noun)),
    }
}

/// The text with its first letter in upper case.
pub fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_and_verbs_go_with_their_number() {
        assert_eq!([0, 1, 2].map(|n| count(n, "file")), ["0 files", "1 file", "2 files"]);
        assert_eq!([0, 1, 2].map(|n| agree(n, "is", "are")), ["are", "is", "are"]);
    }

    #[test]
    fn a_share_of_one_is_not_counted_twice() {
        let table = [
            ((0, 1), "no finding"),
            ((1, 1), "1 finding"),
            ((0, 3), "none of 3 findings"),
            ((1, 3), "1 of 3 findings"),
            ((3, 3), "3 of 3 findings"),
        ];
        for ((part, all), expected) in table {
            assert_eq!(share(part, all, "finding"), expected);
        }
        assert_eq!(sentence("none of 3"), "None of 3");
        assert_eq!(sentence(""), "");
    }
}
