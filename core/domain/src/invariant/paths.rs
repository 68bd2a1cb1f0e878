//! Path patterns as in `.gitignore`: `vendor/`, `*.lock`, `src/**/gen`.

/// Whether a pattern covers a file (relative, with `/`).
///
/// A pattern without a slash before its end means that name anywhere; one with a slash starts at the root. What covers
/// a folder covers everything below it; with a `/` at its end it covers only what is below.
pub fn covers(pattern: &str, path: &str) -> bool {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let (pattern, below_only) = match pattern.strip_suffix("/**").or_else(|| pattern.strip_suffix('/')) {
        Some(folder) => (folder, true),
        None => (pattern, false),
    };
    let anchored = pattern.contains('/');
    let mut parts: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty()).collect();
    if parts.is_empty() {
        return false;
    }
    if !anchored {
        parts.insert(0, "**");
    }
    let names: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    // States of an automaton: how many parts of the pattern are behind us.
    let mut states = vec![false; parts.len() + 1];
    states[0] = true;
    skip(&mut states, &parts);
    for (at, name) in names.iter().enumerate() {
        let mut next = vec![false; parts.len() + 1];
        for (state, part) in parts.iter().enumerate().filter(|(state, _)| states[*state]) {
            if *part == "**" {
                next[state] = true;
            } else if name_matches(part, name) {
                next[state + 1] = true;
            }
        }
        skip(&mut next, &parts);
        let whole = at + 1 == names.len();
        if next[parts.len()] && !(below_only && whole) {
            return true;
        }
        states = next;
    }
    false
}

/// `**` may stand for nothing.
fn skip(states: &mut [bool], parts: &[&str]) {
    for (at, part) in parts.iter().enumerate() {
        if states[at] && *part == "**" {
            states[at + 1] = true;
        }
    }
}

fn name_matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    p = at + 1;
                    n = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}
