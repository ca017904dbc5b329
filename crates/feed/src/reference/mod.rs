//! Reference data: one instrument in several notations gets one name, and so one id.
//!
//! ```text
//!  master file ─ its mapping ─▶ `ref` events ─▶ notation            days           name on the tape
//!                                               US0378331005        2007-01-01 …   AAPL
//!                                               XNAS AAPL           1980-12-12 …   AAPL
//!                                               XNYS SUN            … 2012-10-05   SUNOCO
//!                                               XNYS SUN            2014-08-01 …   SUNOCO-LP
//!
//!  event ─ venue, name, day of its time ─▶ look-up ─▶ the name that gets an id
//! ```
//!
//! A notation is an ISIN, a FIGI, a symbol on a venue (MIC), or the name on the tape itself; it holds for days of
//! UTC, the first and the last included. The meaning of a name depends only on its message and on the master. So the
//! tape is the same at any number of workers and after any restart. The master is read once, before the first block;
//! its own events are not put on the tape.
//!
//! | module | holds |
//! |---|---|
//! | `resolve` | names on their way to the tape, by reference data or as they are |

mod resolve;

pub use resolve::{InstrumentLookup, PlainInstruments, ReferenceLookup};

use rustc_hash::FxHashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use unitape_model::{CivilDate, InstrumentId, UnixNanos};

/// A day, counted from 1970-01-01.
pub type DayNumber = i32;

/// Instruments by their notations; never changed once it is loaded.
#[derive(Clone)]
pub struct InstrumentMaster {
    table: Arc<SymbologyTable>,
    identity: String,
    rejects_unknown: bool,
}

pub(crate) struct SymbologyTable {
    /// The rows of each name. Its keys come from the master files, so that messages cannot make it slow.
    pub by_name: FxHashMap<Box<[u8]>, Range<usize>>,
    /// By name, then by venue, then by day.
    pub rows: Vec<SymbologyRow>,
    /// Venues that have symbols.
    pub venues: FxHashMap<Box<[u8]>, VenueIndex>,
    /// Names on the tape, by number.
    pub instruments: Vec<String>,
}

/// One more than the index of a venue; 0 for a notation that is independent.
pub(crate) type VenueIndex = u32;

/// A notation holds for days, both included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SymbologyRow {
    pub venue: VenueIndex,
    pub from: DayNumber,
    pub to: DayNumber,
    /// Its place in [`SymbologyTable::instruments`].
    pub instrument: InstrumentId,
}

impl InstrumentMaster {
    /// Makes the lookup of a table; names that it lacks stay unchanged.
    pub(crate) fn new(table: SymbologyTable, identity: String) -> Self {
        Self { table: Arc::new(table), identity, rejects_unknown: false }
    }

    /// Finds the instrument that `name` means at a venue on a day. Tries the venue's symbols first, then ISIN, FIGI
    /// and the name itself.
    pub fn find(&self, venue: Option<&[u8]>, name: &[u8], day: DayNumber) -> Option<&str> {
        let SymbologyTable { by_name, rows, venues, instruments } = &*self.table;
        let rows = &rows[by_name.get(name)?.clone()];
        let venue = venue.and_then(|v| venues.get(v)).copied();
        let on = |venue| rows.iter().find(|r| r.venue == venue && (r.from..=r.to).contains(&day));
        let row = venue.and_then(on).or_else(|| on(0))?;
        Some(&instruments[row.instrument.index()])
    }

    /// Returns the source files as source definitions record them after the mapping: `+FILE@HASH:MAPPING@HASH` for
    /// each file, and `+strict`.
    pub fn identity(&self) -> String {
        format!("{}{}", self.identity, if self.rejects_unknown { STRICT } else { "" })
    }

    /// Returns whether an unknown name is refused.
    pub fn is_strict(&self) -> bool {
        self.rejects_unknown
    }

    /// Counts the instruments.
    pub fn instruments(&self) -> usize {
        self.table.instruments.len()
    }

    /// Sets whether an unknown name is refused.
    #[must_use]
    pub fn with_strictness(mut self, strict: bool) -> Self {
        self.rejects_unknown = strict;
        self
    }
}

/// The reference data in a source definition.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReferenceIdentity<'d> {
    /// Files and mappings, as [`InstrumentMaster::identity`] has them.
    pub files: &'d str,
    /// Every name had to be in it.
    pub rejects_unknown: bool,
}

impl<'d> ReferenceIdentity<'d> {
    /// Reads the identity from the mapping that a source definition names; none if no name was looked up.
    pub fn from_mapping_name(mapping: &'d str) -> Option<Self> {
        let has_hash_before = |index: usize| {
            let hash = mapping[..index].rsplit_once('@').map_or("", |(_, hash)| hash);
            hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit())
        };
        let of_mapping =
            || mapping.match_indices('+').map(|(index, _)| index).find(|index| has_hash_before(*index));
        let plus_index = if mapping.starts_with("events+") { Some(6) } else { of_mapping() };
        let recorded = &mapping[plus_index? + 1..];
        let (files, strict) = match recorded.strip_suffix(STRICT) {
            Some(files) => (files, true),
            None => (recorded, false),
        };
        Some(Self { files, rejects_unknown: strict })
    }
}

const STRICT: &str = "+strict";

impl fmt::Debug for InstrumentMaster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reference({}, {} instruments)", self.identity(), self.instruments())
    }
}

/// Returns the UTC day of a time.
#[inline]
pub(crate) fn day_of(ts: UnixNanos) -> DayNumber {
    CivilDate::from_utc(ts).days()
}

/// Parses a date, `2026-01-05` or `20260105`, and returns its day.
pub(crate) fn day_of_date(text: &str) -> Option<DayNumber> {
    CivilDate::parse(text.as_bytes()).map(CivilDate::days)
}
