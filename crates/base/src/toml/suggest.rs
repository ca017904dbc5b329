//! Suggestions for misspelled words.

/// The word among `known` that is nearest to `word`, as the end of a sentence: `; did you mean `X`?`; empty where none is
/// near.
pub fn suggest_word<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    let most = (word.chars().count() / 3).clamp(1, 3);
    let near = known.into_iter().map(|k| (distance(word, k), k)).filter(|(n, _)| *n <= most);
    match near.min() {
        Some((_, k)) => format!("; did you mean `{k}`?"),
        None => String::new(),
    }
}

/// Suggests a key for an error of TOML that names an unknown key and the expected ones.
pub fn suggest_key(error: &str) -> String {
    let Some((_, rest)) = error.split_once("unknown field `") else { return String::new() };
    let Some((word, rest)) = rest.split_once('`') else { return String::new() };
    suggest_word(word, rest.split('`').skip(1).step_by(2))
}

/// Letters to change, add, leave out or swap with the next one, in small letters; words beyond 64 letters are far.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) =
        (a.to_lowercase().chars().collect(), b.to_lowercase().chars().collect());
    if a.len().max(b.len()) > 64 {
        return usize::MAX;
    }
    let (mut before, mut above) = (Vec::new(), (0..=b.len()).collect::<Vec<_>>());
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = change.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                let swapped: &Vec<usize> = &before;
                least = least.min(swapped[j - 2] + 1);
            }
            row.push(least);
        }
        (before, above) = (above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_is_meant() {
        let known = ["when", "ignore", "event"];
        for (word, want) in [("whn", "when"), ("ignroe", "ignore"), ("Event", "event")] {
            assert_eq!(suggest_word(word, known), format!("; did you mean `{want}`?"));
        }
        assert_eq!(suggest_word("price", known), "");
        assert_eq!(
            suggest_key("unknown field `whn`, expected one of `when`, `ignore`, `event`"),
            "; did you mean `when`?"
        );
        assert_eq!(suggest_key("missing field `name`"), "");
    }
}
