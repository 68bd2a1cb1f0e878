//! What a person may have meant by a word that is not known.

/// The candidate nearest to `word` (edits of one character, swaps of neighbours; case and `-`/`_` do not count), when
/// it is near enough to be meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = fold(word);
    let allowed = match folded.len() {
        0..=2 => 1,
        3..=7 => 2,
        8..=15 => 3,
        _ => 4,
    };
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let by_distance = candidates
        .iter()
        .copied()
        .map(|candidate| (distance(&folded, &fold(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && *distance < candidate.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate);
    by_distance.or_else(|| {
        // A part of the word was remembered: `pattern` for `validation_pattern`.
        let word: String = folded.iter().collect();
        let has_part = |c: &&str| {
            let candidate: String = fold(c).into_iter().collect();
            word.len() >= 3 && (candidate.starts_with(&word) || candidate.ends_with(&format!("_{word}")))
        };
        let mut found = candidates.iter().copied().filter(has_part);
        found.next().filter(|_| found.next().is_none())
    })
}

/// Longer words are no typing errors of ours, and comparing them costs their product.
const LONGEST: usize = 100;

fn fold(word: &str) -> Vec<char> {
    word.chars().take(LONGEST).map(|c| if c == '-' { '_' } else { c.to_ascii_lowercase() }).collect()
}

/// Optimal string alignment distance.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1; b.len() + 1];
        for (j, y) in b.iter().enumerate() {
            let mut best = (last[j] + usize::from(x != y)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                best = best.min(before[j - 1] + 1);
            }
            row[j + 1] = best;
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_typing_error_finds_its_word_and_a_different_word_finds_nothing() {
        let keys = ["strategy_actor", "execution_actor", "description", "name"];
        assert_eq!(nearest("strategy-actr", keys), Some("strategy_actor"));
        assert_eq!(nearest("Descripiton", keys), Some("description"));
        assert_eq!(nearest("nmae", keys), Some("name"));
        assert_eq!(nearest("exec", keys), Some("execution_actor"));
        assert_eq!(nearest("actor", keys), None);
        assert_eq!(nearest("languages", keys), None);
        assert_eq!(nearest("", keys), None);
        assert_eq!(nearest("x", ["y"]), None);
    }
}
