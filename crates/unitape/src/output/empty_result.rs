//! Words for an empty result: the search, and the available data.
//!
//! Nothing found is no error, so the exit code is 0 and stdout stays empty, also with `--json`. Without a word on stderr
//! a misspelt name and a quiet day would look the same.

use super::{CommandFailure, grouped};
use unitape_base::toml::{nearest_words, suggest_word};

/// Returns the names besides `asked`, in words: `there are 3 instruments: VOD, BP, ABN`, or of many the nearest names. A name that
/// is like `asked` is suggested.
///
/// `what` is the plural of what the names are.
pub fn list_known_names<'n>(asked: &str, what: &str, names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.collect();
    let count = grouped(names.len() as u64);
    let compared = names.iter().copied().take(NAMES_MAX);
    match names.len() {
        0 => format!("there are no {what}"),
        1 => format!("there is only {}{}", names[0], suggest_word(asked, compared)),
        2..=LISTED_MAX => {
            format!("there are {count} {what}: {}{}", names.join(", "), suggest_word(asked, compared))
        }
        _ => match &nearest_words(asked, compared)[..] {
            [] => format!("there are {count} {what}, among them {}", names[..SHOWN].join(", ")),
            near => {
                let shown = &near[..near.len().min(SHOWN)];
                format!("there are {count} {what}; did you mean {}?", shown.join(", "))
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
        let of = |asked: &str, names: &[String]| {
            list_known_names(asked, "symbols", names.iter().map(String::as_str))
        };
        assert_eq!(of("X", &[]), "there are no symbols");
        assert_eq!(of("X", &many[..1]), "there is only GB00000");
        assert_eq!(of("X", &many[..2]), "there are 2 symbols: GB00000, GB00001");
        assert_eq!(of("gb0001", &many[..1]), "there is only GB00000; did you mean `GB00000`?");
        assert_eq!(
            of("gb00002", &many[..2]),
            "there are 2 symbols: GB00000, GB00001; did you mean `GB00000`?"
        );
        assert_eq!(of("gb01234", &many), "there are 2,000 symbols; did you mean GB01234, GB00234, GB01034?");
        assert_eq!(of("GB123", &many), "there are 2,000 symbols, among them GB00000, GB00001, GB00002");
        assert_eq!(of("VODAFONE", &many), "there are 2,000 symbols, among them GB00000, GB00001, GB00002");
    }
}
