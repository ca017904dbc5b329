//! Words for an empty result: the search, and the available data.
//!
//! Nothing found is no error, so the exit code is 0 and stdout stays empty, also with `--json`. Without a word on stderr
//! a misspelt name and a quiet day would look the same.

use super::grouped;

/// The names besides `asked`, in words: `there are 3 instruments: VOD, BP, ABN`, or of many the nearest names.
///
/// `what` is the plural of what the names are.
pub fn list_known_names<'n>(asked: &str, what: &str, names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.collect();
    let count = grouped(names.len() as u64);
    match names.len() {
        0 => format!("there are no {what}"),
        1 => format!("there is only {}", names[0]),
        2..=LISTED_MAX => format!("there are {count} {what}: {}", names.join(", ")),
        _ => match &nearest(asked, &names)[..] {
            [] => format!("there are {count} {what}, among them {}", names[..SHOWN].join(", ")),
            near => format!("there are {count} {what}; the nearest: {}", near.join(", ")),
        },
    }
}

/// The names that are most like `asked`, the best first; none where no name is like it.
fn nearest<'n>(asked: &str, names: &[&'n str]) -> Vec<&'n str> {
    let asked: Vec<char> = asked.to_lowercase().chars().take(CHARS_MAX).collect();
    let most = (asked.len() / 3).max(1);
    let like = |name: &&'n str| {
        let lower: Vec<char> = name.to_lowercase().chars().take(CHARS_MAX).collect();
        let begins = asked.len() >= 2 && (lower.starts_with(&asked) || asked.starts_with(&lower));
        let distance = distance(&asked, &lower).min(if begins { 1 } else { usize::MAX });
        (distance <= most).then_some((distance, *name))
    };
    let mut found: Vec<(usize, &str)> = names.iter().take(NAMES_MAX).filter_map(like).collect();
    found.sort();
    found.into_iter().take(SHOWN).map(|(_, name)| name).collect()
}

/// Characters to add, remove or change, from one to the other.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut before = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = before + usize::from(x != y);
            before = row[j + 1];
            row[j + 1] = changed.min(before + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// The most names that are listed in full.
const LISTED_MAX: usize = 10;
/// The number of names shown if there are more.
const SHOWN: usize = 3;
/// The most names that are compared.
const NAMES_MAX: usize = 100_000;
/// Characters of a name that are compared.
const CHARS_MAX: usize = 64;

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
        assert_eq!(of("gb01234", &many), "there are 2,000 symbols; the nearest: GB01234, GB00234, GB01034");
        assert_eq!(of("GB123", &many), "there are 2,000 symbols, among them GB00000, GB00001, GB00002");
        assert_eq!(of("VODAFONE", &many), "there are 2,000 symbols, among them GB00000, GB00001, GB00002");
    }

    #[test]
    fn distances_count_single_changes() {
        let of = |a: &str, b: &str| distance(&a.chars().collect::<Vec<_>>(), &b.chars().collect::<Vec<_>>());
        assert_eq!(
            [of("", "abc"), of("vod", "vox"), of("vod", "vodl"), of("kitten", "sitting")],
            [3, 1, 1, 3]
        );
    }
}
