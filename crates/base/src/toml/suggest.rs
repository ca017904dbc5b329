//! Suggestions for misspelled words.

/// Returns the known word that is most like `word`, as the end of a sentence: `; did you mean `X`?`. The text is empty if no
/// known word is like it.
pub fn suggest_word<'k>(word: &str, candidates: impl IntoIterator<Item = &'k str>) -> String {
    match nearest_words(word, candidates).first() {
        Some(nearest) => format!("; did you mean `{nearest}`?"),
        None => String::new(),
    }
}

/// Returns the known words that are like `word`, the most similar first. Two words are alike if few letters differ,
/// or if one word is the beginning of the other. Case does not count.
pub fn nearest_words<'k>(word: &str, candidates: impl IntoIterator<Item = &'k str>) -> Vec<&'k str> {
    let lower_word = word.to_lowercase();
    let letters = lower_word.chars().count();
    let distance_max = (letters / 3).clamp(1, 3);
    let distance_to = |candidate: &'k str| {
        let lower_candidate = candidate.to_lowercase();
        let candidate_letters = lower_candidate.chars().count();
        if letters.max(candidate_letters) > LETTERS_MAX {
            return None;
        }
        let is_beginning = letters.min(candidate_letters) >= BEGINNING_MIN
            && (lower_candidate.starts_with(&lower_word) || lower_word.starts_with(&lower_candidate));
        let distance = strsim::osa_distance(&lower_word, &lower_candidate);
        let distance = if is_beginning { distance.min(1) } else { distance };
        (distance <= distance_max).then_some((distance, candidate))
    };
    let mut nearest: Vec<(usize, &str)> = candidates.into_iter().filter_map(distance_to).collect();
    nearest.sort_unstable();
    nearest.into_iter().map(|(_, candidate)| candidate).collect()
}

/// Suggests a key for an error of TOML that names an unknown key and the expected ones.
pub fn suggest_key(error: &str) -> String {
    let Some((_, rest)) = error.split_once("unknown field `") else { return String::new() };
    let Some((word, rest)) = rest.split_once('`') else { return String::new() };
    suggest_word(word, rest.split('`').skip(1).step_by(2))
}

/// Longer words are like no other.
const LETTERS_MAX: usize = 64;
/// A shorter beginning says nothing.
const BEGINNING_MIN: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards against a missing suggestion: `wash` for the scenario `wash_trade` differs in more letters than it has.
    #[test]
    fn a_beginning_is_like_the_word() {
        let candidates = ["wash_trade", "spoofing", "order_to_trade_ratio"];
        for word in ["wash", "WASH_", "wash_trades", "wahs_trade"] {
            assert_eq!(suggest_word(word, candidates), "; did you mean `wash_trade`?", "{word}");
        }
        assert_eq!(nearest_words("w", candidates), [""; 0]);
        assert_eq!(
            nearest_words("bbo", ["bbo-1m", "bbo-1s", "tbbo", "mbo"]),
            ["bbo-1m", "bbo-1s", "mbo", "tbbo"]
        );
        assert_eq!(nearest_words(&"x".repeat(65), [&*"x".repeat(65)]), [""; 0]);
    }

    #[test]
    fn a_similar_word_is_suggested() {
        let candidates = ["when", "ignore", "event"];
        for (word, want) in [("whn", "when"), ("ignroe", "ignore"), ("Event", "event")] {
            assert_eq!(suggest_word(word, candidates), format!("; did you mean `{want}`?"));
        }
        assert_eq!(suggest_word("price", candidates), "");
        assert_eq!(
            suggest_key("unknown field `whn`, expected one of `when`, `ignore`, `event`"),
            "; did you mean `when`?"
        );
        assert_eq!(suggest_key("missing field `name`"), "");
    }
}
