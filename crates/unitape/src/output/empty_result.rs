//! Words for an empty result: the search, and the available data.
//!
//! Nothing found is no error, so the exit code is 0 and stdout stays empty, also with `--json`. Without a word on stderr
//! a misspelt name and a quiet day would look the same.

use super::{CommandFailure, grouped};
use unitape_base::toml::{nearest_words, suggest_word};

/// Lists the known names: `there are 3 instruments: VOD, BP, ABN`. Of many names, lists the names nearest to `name`.
/// Suggests a name that is like `name`.
///
/// `noun` is the plural of the kind of names.
pub fn list_known_names<'n>(name: &str, noun: &str, names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.collect();
    let count = grouped(names.len() as u64);
    let compared = names.iter().copied().take(NAMES_MAX);
    match names.len() {
        0 => format!("there are no {noun}"),
        1 => format!("there is only {}{}", names[0], suggest_word(name, compared)),
        2..=LISTED_MAX => {
            format!("there are {count} {noun}: {}{}", names.join(", "), suggest_word(name, compared))
        }
        _ => match &nearest_words(name, compared)[..] {
            [] => format!("there are {count} {noun}, among them {}", names[..SHOWN].join(", ")),
            near => {
                let suggestions = &near[..near.len().min(SHOWN)];
                format!("there are {count} {noun}; did you mean {}?", suggestions.join(", "))
            }
        },
    }
}

/// Returns the refusal of a name that must be one of a fixed list, with the most similar name and the list.
///
/// `noun` and `plural` say what the names are.
pub fn refuse_name<'n>(
    name: &str,
    noun: &str,
    plural: &str,
    names: impl IntoIterator<Item = &'n str>,
) -> CommandFailure {
    let names: Vec<&str> = names.into_iter().collect();
    let suggestion = suggest_word(name, names.iter().copied());
    CommandFailure::Usage(format!("no {noun} `{name}`{suggestion}; {plural}: {}", names.join(", ")))
}

/// The most names that are listed in full.
const LISTED_MAX: usize = 10;
/// The number of names shown if there are more.
const SHOWN: usize = 3;
/// The most names that are compared.
const NAMES_MAX: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_names_are_listed_and_of_many_the_nearest_are_shown() {
        let many: Vec<String> = (0..2_000).map(|n| format!("GB{n:05}")).collect();
        let list_symbols = |asked: &str, names: &[String]| {
            list_known_names(asked, "symbols", names.iter().map(String::as_str))
        };
        assert_eq!(list_symbols("X", &[]), "there are no symbols");
        assert_eq!(list_symbols("X", &many[..1]), "there is only GB00000");
        assert_eq!(list_symbols("X", &many[..2]), "there are 2 symbols: GB00000, GB00001");
        assert_eq!(list_symbols("gb0001", &many[..1]), "there is only GB00000; did you mean `GB00000`?");
        assert_eq!(
            list_symbols("gb00002", &many[..2]),
            "there are 2 symbols: GB00000, GB00001; did you mean `GB00000`?"
        );
        assert_eq!(
            list_symbols("gb01234", &many),
            "there are 2,000 symbols; did you mean GB01234, GB00234, GB01034?"
        );
        assert_eq!(
            list_symbols("GB123", &many),
            "there are 2,000 symbols, among them GB00000, GB00001, GB00002"
        );
        assert_eq!(
            list_symbols("VODAFONE", &many),
            "there are 2,000 symbols, among them GB00000, GB00001, GB00002"
        );
    }
}
