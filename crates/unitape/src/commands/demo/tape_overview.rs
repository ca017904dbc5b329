//! The contents of the tape, in one pass: events by feed and kind, last values, and how they moved.

use super::feeds::{ORDERS, SPAN_NS, START_NS};
use crate::output::CommandFailure;
use std::collections::BTreeMap;
use std::path::Path;
use unitape_feed::TapeAccount;
use unitape_model::{
    Event, EventField, EventKind, EventValue, InlineId, InstrumentId, NameKind, Position, frames,
};
use unitape_tape::{Reader, StartPosition};
use unitape_watch::Alert;

/// Columns of a sparkline; each is the same stretch of time.
pub const COLUMNS: usize = 26;

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
    pub last: Vec<Option<String>>,
    /// Last mid or value of each column of time, in billionths.
    pub moves: [Option<i64>; COLUMNS],
}

/// An alert with its evidence looked up on the tape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedAlert {
    /// The scenario.
    pub scenario: String,
    /// The arm of the scenario.
    pub arm: String,
    /// Values of its key: group, instrument.
    pub key: Vec<String>,
    /// Event time, nanoseconds since the epoch.
    pub ts: i64,
    /// The positions of its evidence.
    pub positions: Vec<Position>,
    /// The evidence in words: see [`execution`].
    pub legs: Vec<String>,
}

/// Reads the tape in `dir`, whose account is known.
pub fn read_overview(dir: &Path, account: &TapeAccount) -> Result<TapeOverview, CommandFailure> {
    let mut feeds: BTreeMap<u32, &str> = BTreeMap::new();
    for source in &account.sources {
        feeds.insert(source.id, &source.feed);
        feeds.extend(source.further.keys().map(|id| (*id, source.feed.as_str())));
    }
    let mut reader = Reader::open(dir, StartPosition::Oldest)?;
    let mut counts: BTreeMap<(u32, EventKind), u64> = BTreeMap::new();
    let mut courses: BTreeMap<(EventKind, u16, InstrumentId), PriceHistory> = BTreeMap::new();
    let (mut switches, mut source_before) = (0, 0);
    while let Some(run) = reader.next_run(1 << 20)? {
        for (_, header, frame) in frames(run.bytes) {
            let Some(event) = Event::new(frame).filter(|_| !header.is_meta()) else { continue };
            *counts.entry((event.source(), event.kind())).or_default() += 1;
            switches += u64::from(source_before != 0 && event.source() != source_before);
            source_before = event.source();
            // Other feeds quote other instruments, on other days.
            let of_flow = || feeds.get(&event.source()).is_some_and(|feed| *feed == ORDERS);
            if event.kind() == EventKind::Index || event.kind() == EventKind::Bbo && of_flow() {
                let key = (event.kind(), event.venue(), event.instrument());
                courses.entry(key).or_default().add_event(&event);
            }
        }
    }
    let mut picture = TapeOverview { switches, ..TapeOverview::default() };
    for ((source, kind), n) in counts {
        let feed = feeds.get(&source).copied().unwrap_or("?");
        let by_kind = picture.by_feed.entry(feed.to_owned()).or_default();
        *by_kind.entry(kind.name().to_owned()).or_default() += n;
    }
    let name = |dict, id| account.names.name(dict, id).unwrap_or("?").to_owned();
    for ((kind, venue, instr), course) in courses {
        let course = PriceHistory {
            venue: name(NameKind::Venue, venue.into()),
            instr: name(NameKind::Instrument, instr.0),
            ..course
        };
        if kind == EventKind::Bbo { &mut picture.books } else { &mut picture.indices }.push(course);
    }
    for courses in [&mut picture.books, &mut picture.indices] {
        courses.sort_by(|a, b| (b.changes, &a.venue, &a.instr).cmp(&(a.changes, &b.venue, &b.instr)));
    }
    Ok(picture)
}

impl PriceHistory {
    fn add_event(&mut self, event: &Event<'_>) {
        self.changes += 1;
        self.ts = event.ts_event().0;
        let fields: &[EventField] = match event.kind() {
            EventKind::Index => &[EventField::Px],
            _ => &[EventField::Bid, EventField::BidQty, EventField::Ask, EventField::AskQty],
        };
        self.last.clear();
        self.last.extend(fields.iter().map(|f| text(event, *f)));
        let middle = match event.kind() {
            EventKind::Index => billionths(event, EventField::Px),
            _ => billionths(event, EventField::Bid)
                .zip(billionths(event, EventField::Ask))
                .map(|(bid, ask)| bid.midpoint(ask)),
        };
        let since = (self.ts.saturating_sub(START_NS as i64)).clamp(0, SPAN_NS as i64 - 1);
        let column = (since as u64 * COLUMNS as u64 / SPAN_NS) as usize;
        self.moves[column] = middle.or(self.moves[column]);
    }

    /// Draws the course of the price as blocks, from lowest to highest. A column without a change shows the value
    /// before it.
    pub fn sparkline(&self) -> String {
        const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let values = || self.moves.iter().flatten().map(|v| i128::from(*v));
        let (Some(low), Some(high)) = (values().min(), values().max()) else { return String::new() };
        let mut before = None;
        let column = |value: &Option<i64>| {
            before = value.or(before);
            match before {
                None => ' ',
                Some(_) if low == high => BLOCKS[3],
                Some(v) => BLOCKS[((i128::from(v) - low) * 7 / (high - low)) as usize],
            }
        };
        self.moves.iter().map(column).collect()
    }
}

/// Looks up the evidence of `alerts` on the tape in `dir`.
pub fn evidence(
    dir: &Path,
    account: &TapeAccount,
    alerts: &[Alert],
) -> Result<Vec<ExplainedAlert>, CommandFailure> {
    let mut reader = Reader::open(dir, StartPosition::Oldest)?;
    let mut explained_alerts = Vec::with_capacity(alerts.len());
    for alert in alerts {
        let positions = alert.detail["positions"].as_array().into_iter().flatten();
        let positions: Vec<Position> = positions.filter_map(|p| p.as_u64().map(Position)).collect();
        let mut legs = Vec::new();
        for position in &positions {
            let frame = reader.frame_at(*position)?;
            legs.push(match Event::new(frame.bytes) {
                Some(event) => leg(&event, account),
                None => "no event".to_owned(),
            });
        }
        explained_alerts.push(ExplainedAlert {
            scenario: alert.scenario.to_string(),
            arm: alert.detail["arm"].as_str().unwrap_or_default().to_owned(),
            key: alert.key.iter().map(|(_, value)| value.clone()).collect(),
            ts: alert.ts.0,
            positions,
            legs,
        });
    }
    Ok(explained_alerts)
}

/// Writes an execution in words. An execution on the tape and the planted execution give the same words.
pub fn execution(ts: i64, parts: [&str; 7]) -> String {
    let [venue, oid, match_id, owner, side, px, qty] = parts;
    format!("exec at {ts} on {venue}, order {oid}, match {match_id}: {owner} {side} {qty} @ {px}")
}

fn leg(event: &Event<'_>, account: &TapeAccount) -> String {
    let name_of = |dict, id: u32| account.names.name(dict, id).unwrap_or("?").to_owned();
    let owner = match event.field(EventField::Owner, &mut [0; 36]) {
        Some(EventValue::Sym(dict, id)) => name_of(dict, id),
        _ => "?".to_owned(),
    };
    let venue = name_of(NameKind::Venue, event.venue().into());
    let part = |field| text(event, field).unwrap_or_else(|| "?".to_owned());
    let rest =
        [EventField::Oid, EventField::MatchId, EventField::Side, EventField::Px, EventField::Qty].map(part);
    let [oid, match_id, side, px, qty] = &rest;
    if event.kind() != EventKind::Exec {
        return format!("a {} at {}", event.kind().name(), event.ts_event().0);
    }
    execution(event.ts_event().0, [&venue, oid, match_id, &owner, side, px, qty])
}

/// Returns a number, a word or an id as text.
fn text(event: &Event<'_>, field: EventField) -> Option<String> {
    match event.field(field, &mut [0; 36])? {
        EventValue::Price(px) => Some(px.to_string()),
        EventValue::Decimal(d) => Some(d.to_string()),
        EventValue::Text(t) => Some(t.to_owned()),
        EventValue::Id(InlineId::Text(t)) => Some(String::from_utf8_lossy(t).into_owned()),
        EventValue::Id(InlineId::Number(n)) => Some(n.to_string()),
        _ => None,
    }
}

fn billionths(event: &Event<'_>, field: EventField) -> Option<i64> {
    match event.field(field, &mut [0; 36])? {
        EventValue::Price(px) => Some(px.0),
        EventValue::Decimal(d) => i64::try_from(d.scaled(9)?).ok(),
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
