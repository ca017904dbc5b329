//! The contents of the tape, in one pass: events by feed and kind, last values and how they moved, and the evidence of alerts.
//! No command counts by feed and kind, and none draws how a price moved.

use super::feeds::{ORDERS, SPAN_NS, START_NS};
use crate::output::{CommandFailure, grouped};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use unitape_codec::events::{EventLineDetail, write_event};
use unitape_model::{
    Decimal, DefinitionTable, Event, EventField, EventKind, EventValue, InstrumentId, NameKind,
};
use unitape_tape::{Reader, StartPosition};

/// Columns of a sparkline; each is the same stretch of time.
const COLUMNS: usize = 26;

/// The time that the sparklines of the whole tape show, nanoseconds since the epoch.
const SPAN: Range<u64> = START_NS..START_NS + SPAN_NS;

/// The tape at a glance.
#[derive(Debug, Default)]
pub struct TapeOverview {
    /// Events by feed and kind.
    pub by_feed: BTreeMap<String, BTreeMap<String, u64>>,
    /// How often an event of one feed follows one of another.
    pub switches: u64,
    /// Best bid and offer of the order flow by venue and instrument, the most active first.
    pub books: Vec<PriceHistory>,
    /// Index values, the most active first.
    pub indices: Vec<PriceHistory>,
    /// The events at the positions that were asked for, as `unitape tape cat` prints them.
    pub events: BTreeMap<u64, Value>,
}

/// One instrument at one venue.
#[derive(Debug, Default)]
pub struct PriceHistory {
    /// MIC.
    pub venue: String,
    /// ISIN, or the name of the index.
    pub instr: String,
    /// How often it changed.
    pub changes: u64,
    /// Time of the last change, nanoseconds since the epoch.
    pub ts: i64,
    /// The last values, exact: bid, bid quantity, ask, ask quantity; of an index the value.
    pub last_values: Vec<Option<String>>,
    /// Last mid or value of each column of time, in billionths.
    pub moves: [Option<i64>; COLUMNS],
}

/// Reads the tape in `dir`, with the events at these positions.
pub fn read_overview(dir: &Path, positions: &[u64]) -> Result<TapeOverview, CommandFailure> {
    let mut reader = Reader::open(dir, StartPosition::Oldest)?;
    let mut definitions = DefinitionTable::default();
    let mut counts: BTreeMap<(u32, EventKind), u64> = BTreeMap::new();
    let mut histories: BTreeMap<(EventKind, u16, InstrumentId), PriceHistory> = BTreeMap::new();
    let mut overview = TapeOverview::default();
    let (mut source_before, mut line) = (0, Vec::new());
    loop {
        let ordinal = reader.ordinal();
        let Some(frame) = reader.next()? else { break };
        let Some(event) = definitions.admit_frame(frame.bytes)?.filter(|_| !frame.header.is_meta()) else {
            continue;
        };
        *counts.entry((event.source(), event.kind())).or_default() += 1;
        overview.switches += u64::from(source_before != 0 && event.source() != source_before);
        source_before = event.source();
        if positions.binary_search(&frame.position.0).is_ok() {
            line.clear();
            write_event(
                &mut line,
                &event,
                ordinal,
                definitions.dictionary(),
                &definitions,
                EventLineDetail::Plain,
            );
            overview.events.insert(frame.position.0, serde_json::from_slice(&line)?);
        }
        // Other feeds quote other instruments, on other days.
        let is_order_flow = || definitions.source(event.source()).is_some_and(|source| source.feed == ORDERS);
        let price_fields: &[EventField] = match event.kind() {
            EventKind::Index => &[EventField::Px],
            EventKind::Bbo if is_order_flow() => {
                &[EventField::Bid, EventField::BidQty, EventField::Ask, EventField::AskQty]
            }
            _ => continue,
        };
        let values = price_fields.iter().map(|field| field_text(&event, *field)).collect();
        let history = histories.entry((event.kind(), event.venue(), event.instrument())).or_default();
        history.add(event.ts_event().0, values, &SPAN);
    }
    for ((source, kind), n) in counts {
        let feed = definitions.source(source).map_or("?", |source| &source.feed);
        let by_kind = overview.by_feed.entry(feed.to_owned()).or_default();
        *by_kind.entry(kind.name().to_owned()).or_default() += n;
    }
    let name = |dict, id| definitions.name(dict, id).unwrap_or("?").to_owned();
    for ((kind, venue, instr), mut history) in histories {
        history.venue = name(NameKind::Venue, venue.into());
        history.instr = name(NameKind::Instrument, instr.0);
        if kind == EventKind::Bbo { &mut overview.books } else { &mut overview.indices }.push(history);
    }
    sort_by_changes(&mut overview.books);
    sort_by_changes(&mut overview.indices);
    Ok(overview)
}

/// Sorts histories, the most active first.
pub fn sort_by_changes(histories: &mut [PriceHistory]) {
    histories.sort_by(|a, b| (b.changes, &a.venue, &a.instr).cmp(&(a.changes, &b.venue, &b.instr)));
}

impl PriceHistory {
    /// Adds a change. The sparkline shows the time of `span`.
    pub fn add(&mut self, ts: i64, values: Vec<Option<String>>, span: &Range<u64>) {
        let billionths = |value: &Option<String>| {
            i64::try_from(Decimal::parse(value.as_ref()?.as_bytes()).ok()?.scaled(9)?).ok()
        };
        let middle = match &values[..] {
            [bid, _, ask, _] => billionths(bid).zip(billionths(ask)).map(|(bid, ask)| bid.midpoint(ask)),
            values => values.first().and_then(billionths),
        };
        let since_start = (ts.max(0) as u64).clamp(span.start, span.end - 1) - span.start;
        let column = (since_start * COLUMNS as u64 / (span.end - span.start)) as usize;
        self.moves[column] = middle.or(self.moves[column]);
        (self.changes, self.ts, self.last_values) = (self.changes + 1, ts, values);
    }

    /// Returns a last value as a cell of a table.
    pub fn cell(&self, index: usize) -> String {
        self.last_values.get(index).cloned().flatten().unwrap_or_else(|| "-".to_owned())
    }

    /// Returns bid and ask with their sizes, the changes and the sparkline as cells of a table.
    pub fn quote_cells(&self) -> Vec<String> {
        [1, 0, 2, 3]
            .map(|index| self.cell(index))
            .into_iter()
            .chain([grouped(self.changes), self.sparkline()])
            .collect()
    }

    /// Draws the course of the price as blocks, from lowest to highest. A column without a change shows the value
    /// before it.
    pub fn sparkline(&self) -> String {
        const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let values = || self.moves.iter().flatten().map(|v| i128::from(*v));
        let (Some(low), Some(high)) = (values().min(), values().max()) else { return String::new() };
        let mut previous_bests = None;
        let column = |value: &Option<i64>| {
            previous_bests = value.or(previous_bests);
            match previous_bests {
                None => ' ',
                Some(_) if low == high => BLOCKS[3],
                Some(v) => BLOCKS[((i128::from(v) - low) * 7 / (high - low)) as usize],
            }
        };
        self.moves.iter().map(column).collect()
    }

    /// Returns the history as JSON.
    pub fn json(&self) -> Value {
        json!({
            "venue": self.venue, "instr": self.instr, "changes": self.changes, "ts": self.ts, "last": self.last_values,
            "sparkline": self.sparkline(),
        })
    }
}

/// Returns a number as text.
fn field_text(event: &Event<'_>, field: EventField) -> Option<String> {
    match event.field(field, &mut [0; 36])? {
        EventValue::Price(px) => Some(px.to_string()),
        EventValue::Decimal(d) => Some(d.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a flat course divides by its range of zero, or if a gap falls to the floor instead of holding the
    /// value.
    #[test]
    fn sparklines_hold_gaps_and_survive_flatness() {
        let mut course = PriceHistory::default();
        assert_eq!(course.sparkline(), "");
        course.moves[2] = Some(5);
        assert_eq!(course.sparkline(), format!("  {}", "▄".repeat(COLUMNS - 2)));
        (course.moves[4], course.moves[5]) = (Some(i64::MIN), Some(i64::MAX));
        assert_eq!(course.sparkline(), format!("  ▄▄▁{}", "█".repeat(COLUMNS - 5)));
    }
}
