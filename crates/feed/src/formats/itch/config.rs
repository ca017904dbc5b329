//! The settings of an ITCH feed in a mapping file: names, session date, and whether orders are kept.
//!
//! The messages of ITCH are fixed, and so is what they mean; what differs from venue to venue and from day to day
//! is in the table `[itch]`:
//!
//! ```toml
//! [itch]
//! with_orders = true               # keep the orders, so that a delete carries side and instrument
//! framing = "length"               # as in NASDAQ's files; "soup" for SoupBinTCP, "mold" for MoldUDP64 in captures
//! venue = "XNAS"
//! currency = "USD"
//! suffix = ""                      # put behind every symbol, where two venues use one symbol for two things
//! zone = "America/New_York"        # whose midnight times are counted from
//! session_date = "2020-01-30"      # without it, the date in the file's name
//! prints = true                    # an execution is a print as well
//! [itch.system_event]              # phases of the venue by event code
//! S = "open"
//! [itch.trading_state]             # phases of a security by state
//! H = "halt"
//! ```

use crate::error::Error;
use crate::mapping::Mapping;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use unitape_codec::fixed::midnight;
use unitape_codec::itch::ItchTransport;

/// The table `[itch]` of a mapping, as its file has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // documented at the head of the module
pub struct ItchConfig {
    #[serde(default = "yes")]
    pub with_orders: bool,
    #[serde(default)]
    pub framing: ItchFramingConfig,
    pub venue: String,
    pub currency: Option<String>,
    #[serde(default)]
    pub suffix: String,
    #[serde(default = "new_york")]
    pub zone: String,
    pub session_date: Option<String>,
    #[serde(default = "yes")]
    pub prints: bool,
    #[serde(default)]
    pub system_event: BTreeMap<String, String>,
    #[serde(default)]
    pub trading_state: BTreeMap<String, String>,
}

/// The framing of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ItchFramingConfig {
    /// Two bytes of length before each.
    #[default]
    Length,
    /// Packets of SoupBinTCP.
    Soup,
    /// Datagrams of MoldUDP64.
    Mold,
}

impl ItchConfig {
    /// Reads the configuration from a mapping.
    ///
    /// # Errors
    /// Fails if the settings are invalid; the error has the line.
    pub fn from_mapping(mapping: &Mapping) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct ItchMappingFile {
            itch: ItchConfig,
        }
        mapping.own_table().map(|file: ItchMappingFile| file.itch)
    }
}

impl ItchFramingConfig {
    /// Converts to the codec's framing of messages. Messages in a datagram have length prefixes too.
    pub fn to_codec(self) -> ItchTransport {
        match self {
            ItchFramingConfig::Soup => ItchTransport::Soup,
            ItchFramingConfig::Length | ItchFramingConfig::Mold => ItchTransport::Length,
        }
    }
}

/// The table, checked.
#[derive(Clone, Debug)]
pub(super) struct CheckedItchConfig {
    pub with_orders: bool,
    pub framing: ItchFramingConfig,
    pub venue: String,
    pub currency: Option<String>,
    pub symbol_suffix: String,
    pub zone: String,
    /// Midnight of the session date in UTC nanoseconds; `None` if each source states its date.
    pub midnight: Option<i64>,
    pub emits_prints: bool,
    pub system_event: BTreeMap<u8, String>,
    pub trading_state: BTreeMap<u8, String>,
}

impl CheckedItchConfig {
    /// Reads the table.
    pub fn new(text: &ItchConfig) -> Result<Self, String> {
        if text.venue.is_empty() || text.venue.len() > VENUE_BYTES_MAX {
            return Err(format!("itch.venue: a name of 1 to {VENUE_BYTES_MAX} bytes"));
        }
        let of_date = |date: &String| {
            day_midnight(date.as_bytes(), &text.zone)?
                .ok_or_else(|| format!("itch.session_date: `{date}` is no date; write it as 2020-01-30"))
        };
        // Report an unknown zone now, not with the first file.
        day_midnight(b"2020-01-30", &text.zone).map_err(|e| format!("itch.zone: {e}"))?;
        Ok(Self {
            with_orders: text.with_orders,
            framing: text.framing,
            venue: text.venue.clone(),
            currency: text.currency.clone(),
            symbol_suffix: text.suffix.clone(),
            zone: text.zone.clone(),
            midnight: text.session_date.as_ref().map(of_date).transpose()?,
            emits_prints: text.prints,
            system_event: phases_of(&text.system_event, "itch.system_event")?,
            trading_state: phases_of(&text.trading_state, "itch.trading_state")?,
        })
    }

    /// Returns the midnight of a source in UTC nanoseconds; `head` must be the source's head.
    pub fn midnight_of(&self, head: &[u8]) -> Option<i64> {
        self.midnight.or_else(|| day_midnight(head, &self.zone).ok().flatten())
    }
}

/// Reads the phases in a table of the mapping, by the letters of their codes; `key` is the table's name.
///
/// # Errors
/// Fails if a code is no letter, or a phase is unknown to books.
pub(in crate::formats) fn phases_of(
    table: &BTreeMap<String, String>,
    key: &str,
) -> Result<BTreeMap<u8, String>, String> {
    let letter_of = |(code, phase): (&String, &String)| match code.as_bytes() {
        [letter] if PHASES.contains(&phase.as_str()) => Ok((*letter, phase.clone())),
        [_] => Err(format!("{key}.{code}: no phase `{phase}`; phases: {}", PHASES.join(", "))),
        _ => Err(format!("{key}.{code}: a code is one letter")),
    };
    table.iter().map(letter_of).collect()
}

/// Reads the session date of a source from its file name, as text. Returns `None` if the mapping sets one date for
/// all sources.
///
/// # Errors
/// Fails if the name has no date.
pub fn date_of_source(text: &ItchConfig, path: &Path) -> Result<Option<Vec<u8>>, Error> {
    if text.session_date.is_some() {
        return Ok(None);
    }
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    match date_in_name(&name) {
        Some((year, month, day)) => Ok(Some(format!("{year:04}-{month:02}-{day:02}").into_bytes())),
        None => Err(Error::Config {
            origin: path.display().to_string(),
            reason:
                "ITCH counts time from midnight, and the file's name has no date (as 20200130 or 01302020 or \
                   S013020-v50 would); say session_date = \"YYYY-MM-DD\" in the mapping"
                    .to_owned(),
        }),
    }
}

/// Finds the first date in a file name: eight digits, year first or last, or six digits as NASDAQ writes
/// `S013020-v50`.
fn date_in_name(name: &str) -> Option<(u16, u8, u8)> {
    let bytes = name.as_bytes();
    let mut frame_start = 0;
    while frame_start < bytes.len() {
        let run = bytes[frame_start..].iter().take_while(|b| b.is_ascii_digit()).count();
        let part = |from: usize, to: usize| {
            bytes[frame_start + from..frame_start + to].iter().fold(0u16, |n, b| n * 10 + u16::from(b - b'0'))
        };
        let date = match run {
            8 if (1900..2200).contains(&part(0, 4)) => Some((part(0, 4), part(4, 6), part(6, 8))),
            8 => Some((part(4, 8), part(0, 2), part(2, 4))),
            6 if bytes[frame_start + 6..].starts_with(b"-v") => {
                Some((2000 + part(4, 6), part(0, 2), part(2, 4)))
            }
            _ => None,
        };
        if let Some((year, month, day)) = date
            && (1900..2200).contains(&year)
            && midnight(year.into(), month.into(), day.into(), "UTC").is_ok_and(|t| t.is_some())
        {
            return Some((year, month as u8, day as u8));
        }
        frame_start += run.max(1);
    }
    None
}

/// Converts the midnight of a date `YYYY-MM-DD` in a zone to UTC nanoseconds; `None` if it is no date.
fn day_midnight(date: &[u8], zone: &str) -> Result<Option<i64>, String> {
    let digits = |range: std::ops::Range<usize>| {
        let part = date.get(range)?;
        part.iter().try_fold(0i64, |n, b| b.is_ascii_digit().then(|| n * 10 + i64::from(b - b'0')))
    };
    let is_well_formed = date.len() == 10 && date[4] == b'-' && date[7] == b'-';
    let (Some(year), Some(month), Some(day), true) =
        (digits(0..4), digits(5..7), digits(8..10), is_well_formed)
    else {
        return Ok(None);
    };
    midnight(year, month, day, zone)
}

fn yes() -> bool {
    true
}

fn new_york() -> String {
    "America/New_York".to_owned()
}

/// Phases that books know.
const PHASES: [&str; 6] = ["pre", "open", "auction", "fixing", "halt", "close"];

const VENUE_BYTES_MAX: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the file names under which NASDAQ has published its days, and names that only look like a date.
    #[test]
    fn dates_in_file_names() {
        for (name, date) in [
            ("01302020.NASDAQ_ITCH50.gz", Some((2020, 1, 30))),
            ("20190530.BX_ITCH_50.gz", Some((2019, 5, 30))),
            ("20200130.PSX_ITCH_50.gz", Some((2020, 1, 30))),
            ("S081321-v50.txt.gz", Some((2021, 8, 13))),
            ("day-20260302.itch", Some((2026, 3, 2))),
            ("a12345678-20260302.itch", Some((2026, 3, 2))),
            ("13322020.itch", None),
            ("20200230.itch", None),
            ("202001301.itch", None),
            ("S081321.txt", None),
            ("-", None),
        ] {
            assert_eq!(date_in_name(name), date, "{name}");
        }
    }

    /// Guards against an offset that ignores summer: a time five hours off in winter and four in summer once counted
    /// as five all year.
    #[test]
    fn midnight_in_new_york() {
        let hours =
            |date: &[u8]| day_midnight(date, "America/New_York").unwrap().map(|t| t / 3_600_000_000_000 % 24);
        assert_eq!(hours(b"2020-01-30"), Some(5));
        assert_eq!(hours(b"2020-07-30"), Some(4));
        assert_eq!(hours(b"2020-03-08"), Some(5), "the day of the change begins before it");
        assert_eq!(hours(b"2020-02-30"), None);
        assert_eq!(hours(b"2020-1-30"), None);
        assert!(day_midnight(b"2020-01-30", "America/Gotham").is_err());
    }
}
