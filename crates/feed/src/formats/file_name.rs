//! Parts of a file's name, as mappings of rows name them: `@file[0, "-trades-"]`.

use std::ops::Range;

/// A part of a file's name without its extensions, which a separator cuts into parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileNamePart {
    separator: String,
    choice: PartChoice,
}

/// Which of the parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartChoice {
    /// The one of this index, from 0.
    At(usize),
    /// All but this many at the end, with the separators between them.
    AllButLast(usize),
}

impl FileNamePart {
    /// Returns whether a path is meant for a part of a file's name.
    pub fn is_file_name_path(path: &str) -> bool {
        path.starts_with("@file")
    }

    /// Parses a path: `@file[0, "_"]`, `@file[:-2, "_"]`; `None` if it is no such path.
    pub fn parse(path: &str) -> Option<Self> {
        let (choice, separator) = path.strip_prefix("@file[")?.strip_suffix(']')?.split_once(',')?;
        let separator = separator.trim_start_matches(' ').strip_prefix('"')?.strip_suffix('"')?;
        let is_separator = (1..=SEPARATOR_BYTES_MAX).contains(&separator.len())
            && !separator.contains(|c: char| c.is_control() || c == '"');
        let choice = match choice.strip_prefix(":-") {
            Some(count) => PartChoice::AllButLast(parse_number(count).filter(|count| *count > 0)?),
            None => PartChoice::At(parse_number(choice)?),
        };
        is_separator.then(|| Self { separator: separator.to_owned(), choice })
    }

    /// Returns the part of `name`; `None` if the name does not have the separator, or has fewer parts or an empty one.
    pub fn find<'n>(&self, name: &'n str) -> Option<&'n str> {
        let stem = without_extensions(name);
        let mut ends: Vec<Range<usize>> = Vec::new();
        ends.extend(stem.match_indices(&self.separator).map(|(start, text)| start..start + text.len()));
        let part = match self.choice {
            _ if ends.is_empty() => return None,
            PartChoice::At(index) => stem.split(&self.separator).nth(index)?,
            PartChoice::AllButLast(count) => &stem[..ends[ends.len().checked_sub(count)?].start],
        };
        Some(part).filter(|part| !part.trim().is_empty())
    }
}

/// Parses a plain number below a hundred.
fn parse_number(text: &str) -> Option<usize> {
    let is_plain = text == "0" || !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|number| is_plain && *number < PARTS_MAX)
}

/// Strips the extensions of text, rows and compression from the end of a name. A point in an instrument stays:
/// `BRK.B`.
fn without_extensions(mut name: &str) -> &str {
    while let Some((stem, extension)) = name.rsplit_once('.')
        && EXTENSIONS.iter().any(|known_extension| extension.eq_ignore_ascii_case(known_extension))
    {
        name = stem;
    }
    name
}

/// Bytes of a separator, at most.
const SEPARATOR_BYTES_MAX: usize = 16;

/// Parts of a name that a path can count, at most.
const PARTS_MAX: usize = 100;

/// Extensions that say how a file is written, not which instrument it has.
const EXTENSIONS: [&str; 13] =
    ["csv", "tsv", "psv", "tab", "txt", "dat", "prn", "gz", "zst", "zip", "bz2", "xz", "lz4"];

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards against separators that split an instrument's name: the future `BTCUSDT_260327` became `BTCUSDT`, and
    /// BRK.A and BRK.B became one instrument.
    #[test]
    fn instruments_with_separators_in_their_names_stay_apart() {
        for (path, name, part) in [
            ("@file[0, \"-trades-\"]", "BTCUSDT-trades-2024-01-01.csv", Some("BTCUSDT")),
            ("@file[0, \"-trades-\"]", "BTCUSDT_260327-trades-2024-01.csv.gz", Some("BTCUSDT_260327")),
            ("@file[0,\"-\"]", "BTCUSD_PERP-1m-2024-01-01.csv", Some("BTCUSD_PERP")),
            ("@file[:-3, \"_\"]", "BRK.A_M1_202301030000_202312292358.csv", Some("BRK.A")),
            ("@file[:-3, \"_\"]", "US500_CASH_M1_202301030000_202312292358.csv", Some("US500_CASH")),
            ("@file[:-2, \"_\"]", "US 500_202301030000_202312292358.CSV.ZST", Some("US 500")),
            ("@file[0, \"_Ticks_\"]", "USA500.IDXUSD_Ticks_02.03.2026-02.03.2026.csv", Some("USA500.IDXUSD")),
            ("@file[0, \"-tick-\"]", "eurusd-tick-2019-01-13-2019-01-14.csv", Some("eurusd")),
            ("@file[2, \"_\"]", "DAT_ASCII_EURUSD_M1_2012.csv", Some("EURUSD")),
            ("@file[1, \"-\"]", "x-BRK.B.csv", Some("BRK.B")),
            ("@file[0, \"_\"]", "EURUSD.csv", None),
            ("@file[0, \"_\"]", ".csv", None),
            ("@file[0, \"_\"]", "_a.csv", None),
            ("@file[2, \"_\"]", "a_b.csv", None),
            ("@file[:-2, \"_\"]", "EURUSD_2023.csv", None),
            ("@file[:-1, \"_\"]", " _2023.csv", None),
            ("@file[0, \"_\"]", "", None),
        ] {
            assert_eq!(FileNamePart::parse(path).unwrap().find(name), part, "{path} {name}");
        }
        for path in [
            "@file[0]",
            "@file[]",
            "@file",
            "@file[0,]",
            "@file[0, \"\"]",
            "@file[01, \"_\"]",
            "@file[-1, \"_\"]",
            "@file[:-0, \"_\"]",
            "@file[100, \"_\"]",
            "@file[0, _]",
            "@file[0, \"\"\"]",
            "@file[0, \"12345678901234567\"]",
        ] {
            assert_eq!(FileNamePart::parse(path), None, "{path}");
        }
    }
}
