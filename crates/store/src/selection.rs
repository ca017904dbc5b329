//! Selects the parts, files, blocks and rows for a query.

use unitape_model::{Dictionary, EventField, EventKind, EventSchema, InstrumentId, NameKind, UnixNanos};

use crate::day::Day;
use crate::decode::RowFilter;
use crate::error::{Error, Result};
use crate::file::BlockLocation;
use crate::manifest::{FileEntry, GenerationBounds, SealedPart};
use crate::scan::ScanFilter;
use crate::schema::TickSchema;

/// The token of a block whose rows have no instrument.
const NO_INSTRUMENT: InstrumentId = InstrumentId(0);

/// A filter in the words of the store: tokens for names, times for days.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    pub rows: RowFilter,
    /// Tokens of instruments, sorted. `None` selects all.
    instruments: Option<Vec<InstrumentId>>,
    pub schemas: Vec<TickSchema>,
    trading_day: Option<Day>,
    /// Whether no event can be selected.
    pub is_empty: bool,
}

impl Selection {
    /// Reads a filter. Fails if it has a name that is unknown.
    pub fn new(names: &Dictionary, filter: &ScanFilter, bounds: Option<&GenerationBounds>) -> Result<Self> {
        let token = |kind: NameKind, kind_name, name: &String| {
            let was_known = |token: &u32| bounds.is_none_or(|bounds| *token <= bounds.name_count(kind));
            let token = names.get(kind, name.as_bytes()).filter(was_known);
            token.ok_or_else(|| Error::UnknownName { kind: kind_name, name: name.clone() })
        };
        let symbols = filter.symbols.iter().map(|symbol| token(NameKind::Instrument, "symbol", symbol));
        let venue = filter.venue.as_ref().map(|venue| token(NameKind::Venue, "venue", venue));
        Ok(Self::with_tokens(filter, symbols.collect::<Result<_>>()?, venue.transpose()?))
    }

    /// Reads a filter. A name that is unknown is looked for like any other, and found nowhere.
    pub fn with_unknown_names(names: &Dictionary, filter: &ScanFilter) -> Self {
        let token = |kind: NameKind, name: &String| {
            names.get(kind, name.as_bytes()).unwrap_or_else(|| names.len(kind).saturating_add(1))
        };
        let symbols = filter.symbols.iter().map(|symbol| token(NameKind::Instrument, symbol));
        let venue = filter.venue.as_ref().map(|venue| token(NameKind::Venue, venue));
        Self::with_tokens(filter, symbols.collect(), venue)
    }

    fn with_tokens(filter: &ScanFilter, symbols: Vec<u32>, venue: Option<u32>) -> Self {
        let mut symbols: Vec<_> = symbols.into_iter().map(InstrumentId).collect();
        symbols.sort_unstable();
        let from = filter.from.unwrap_or(UnixNanos(i64::MIN));
        // Before the first nanosecond there is nothing.
        let is_nothing = filter.to == Some(UnixNanos(i64::MIN));
        let to = filter.to.map_or(UnixNanos(i64::MAX), |to| UnixNanos(to.0.saturating_sub(1)));
        // Tokens of venues fit the 16 bits that a frame has for them.
        let venue = venue.map(|venue| venue as u16);
        Self {
            rows: RowFilter { from, to, venue, ..RowFilter::all() },
            instruments: (!symbols.is_empty()).then_some(symbols),
            schemas: match &filter.schemas[..] {
                [] => TickSchema::ALL.to_vec(),
                some => some.to_vec(),
            },
            trading_day: filter.date,
            is_empty: is_nothing || from > to,
        }
    }

    /// Returns whether a file may have a wanted row.
    pub fn wants_file(&self, part: &SealedPart, entry: &FileEntry) -> bool {
        !self.is_empty
            && self.trading_day.is_none_or(|date| date == part.date)
            && self.schemas.contains(&entry.schema)
            && entry.ts_min <= self.rows.to.0
            && entry.ts_max >= self.rows.from.0
    }

    /// Returns whether a block may have a wanted row.
    pub fn wants_block(&self, location: &BlockLocation) -> bool {
        let head = &location.head;
        let instrument = self.instruments.as_ref().is_none_or(|list| {
            list.binary_search(&head.instrument).is_ok()
                || (head.instrument == NO_INSTRUMENT
                    && head.kinds.any_layout(|layout| layout.instruments.is_some()))
        });
        instrument
            && (self.rows.venue.is_none() || head.kinds.any_layout(|layout| layout.has_venue))
            && head.ts_min <= self.rows.to
            && head.ts_max >= self.rows.from
    }

    /// Returns whether a file may have a wanted row in a block of this instrument, or in a block without an instrument.
    pub fn wants_instrument(&self, schema: TickSchema, instrument: InstrumentId) -> bool {
        let has_list = |kind: EventKind| {
            EventSchema::for_kind(kind).fields.iter().any(|f| f.field == EventField::Instrs)
        };
        self.instruments.as_ref().is_none_or(|list| {
            list.binary_search(&instrument).is_ok()
                || (instrument == NO_INSTRUMENT && schema.kinds().any(has_list))
        })
    }

    /// Returns whether the reader must read the rows of a wanted block to know whether the block has a wanted row.
    pub fn depends_on_rows(&self, instrument: InstrumentId) -> bool {
        self.rows.venue.is_some() || (self.instruments.is_some() && instrument == NO_INSTRUMENT)
    }

    /// Returns the filter on the rows of a block. In a block without an instrument, the filter searches the instrument
    /// lists of the rows.
    pub fn in_block(&self, instrument: InstrumentId) -> RowFilter {
        let listed = |list: &Vec<InstrumentId>| {
            instrument == NO_INSTRUMENT && list.binary_search(&NO_INSTRUMENT).is_err()
        };
        RowFilter { listed: self.instruments.clone().filter(listed), ..self.rows.clone() }
    }
}
