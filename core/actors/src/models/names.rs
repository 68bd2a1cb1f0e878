//! Names of tools as providers take them: `[A-Za-z0-9_-]`, at most 64 characters; told apart and turned back for sure.

use std::collections::BTreeMap;

use agents_domain::changes::content_hash;

const LONGEST: usize = 64;

/// Both ways between our names and a provider's.
#[derive(Debug, Default)]
pub(super) struct Names {
    ours: BTreeMap<String, String>,
    theirs: BTreeMap<String, String>,
}

impl Names {
    /// Of these tools. Names that are fine stay; others get `__` for `/`, `-` for `.` and `:`, and where that is too long
    /// or taken the beginning of their hash at the end.
    pub fn of<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let mut map = Self::default();
        let mut names: Vec<&str> = names.into_iter().collect();
        // Those that can stay have the first word.
        names.sort_by_key(|name| (!fits(name), *name));
        names.dedup();
        for name in names {
            let mut safe = plain(name);
            if safe.len() > LONGEST || map.ours.contains_key(&safe) {
                safe.truncate(LONGEST - 9);
                let hash = content_hash(name.as_bytes());
                safe = format!("{safe}_{}", &hash[..8]);
            }
            map.theirs.insert(name.to_owned(), safe.clone());
            map.ours.insert(safe, name.to_owned());
        }
        map
    }

    /// As the provider shall be told; a tool of the past that is not offered any more, too.
    pub fn to_provider(&self, name: &str) -> String {
        self.theirs.get(name).cloned().unwrap_or_else(|| {
            let mut safe = plain(name);
            safe.truncate(LONGEST);
            safe
        })
    }

    /// As we call it; what the model made up stays as it is.
    pub fn to_ours(&self, name: &str) -> String {
        self.ours.get(name).cloned().unwrap_or_else(|| name.to_owned())
    }
}

fn fits(name: &str) -> bool {
    !name.is_empty() && name.len() <= LONGEST && plain(name) == name
}

fn plain(name: &str) -> String {
    let mut safe = String::with_capacity(name.len() + 2);
    for c in name.chars() {
        match c {
            '/' => safe.push_str("__"),
            c if c.is_ascii_alphanumeric() || c == '_' || c == '-' => safe.push(c),
            _ => safe.push('-'),
        }
    }
    if safe.is_empty() { "tool".to_owned() } else { safe }
}

#[cfg(test)]
mod tests {
    use super::*;

    // ACTOR 2.5, G-29
    #[test]
    fn names_fit_the_provider_and_come_back() {
        let long = format!("local/{}", "x".repeat(80));
        let names =
            ["lsp/hover", "lsp__hover", "local/github.create_issue", "local/github:create_issue", "a", &long];
        let map = Names::of(names.into_iter().chain(["lsp/hover"]));
        let mut seen = std::collections::BTreeSet::new();
        for name in names {
            let safe = map.to_provider(name);
            assert!(fits(&safe), "{safe}");
            assert!(seen.insert(safe.clone()), "{safe} twice");
            assert_eq!(map.to_ours(&safe), name);
        }
        assert_eq!(map.to_provider("lsp__hover"), "lsp__hover");
        assert_eq!(map.to_ours("made_up"), "made_up");
    }
}
