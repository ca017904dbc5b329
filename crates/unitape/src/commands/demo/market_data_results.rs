//! The exchange's market data on the tape, and a handler's result from the same packets, compared with the exchange.

use super::depth::{ChannelArrivals, DEPTH, ExchangeTruth, ExpectedBook, ExpectedLevel};
use super::tape_overview::{COLUMNS, PriceHistory};
use crate::output::CommandFailure;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use unitape_book::{Basis, PriceLevel, QuoteFlags, TapeBooks};
use unitape_feed::quarantine::QuarantineEntry;
use unitape_feed::{FeedSummary, TapeAccount};
use unitape_marketdata::engine::EngineStats;
use unitape_marketdata::{Handler, Subscription};
use unitape_model::{Event, EventField, EventKind, EventValue, InstrumentId, NameKind, Side, UnixNanos};
use unitape_tape::{Reader, StartPosition};

/// The results.
#[derive(Debug)]
pub struct MarketDataResults {
    /// The books at the end of the tape; none for one that is stale.
    pub tape: BTreeMap<String, Option<ExpectedBook>>,
    /// The books of a handler after the last packet.
    pub handler: BTreeMap<String, Option<ExpectedBook>>,
    /// The handler's counters.
    pub stats: EngineStats,
    /// Groups of products, by instrument.
    pub groups: BTreeMap<String, String>,
    /// Best prices and how they moved, the most active instrument first.
    pub courses: Vec<PriceHistory>,
    /// The losses recorded on the tape.
    pub loss: PacketLossSummary,
}

/// The tape's record of packets that arrived on no line.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct PacketLossSummary {
    /// Packets, by channel.
    pub packets: BTreeMap<String, u64>,
    /// Messages.
    pub messages: u64,
    /// Times that a book became stale, and times that it was mended.
    pub stale: u64,
    pub mended: u64,
    /// How long one was stale, in nanoseconds: all together, and at most.
    pub stale_ns: i64,
    pub stale_ns_max: i64,
    /// Instruments that are stale at the end.
    pub left: Vec<String>,
}

/// Looks at the tape in `dir`, and gives the capture to a handler.
pub fn read_results(
    dir: &Path,
    account: &TapeAccount,
    depth: &ExchangeTruth,
) -> Result<MarketDataResults, CommandFailure> {
    let mut handler = Handler::open(&depth.config)?;
    handler.subscribe(Subscription::All);
    handler.replay(&depth.capture, None, &mut ())?;
    let (mut by_handler, mut groups) = (BTreeMap::new(), BTreeMap::new());
    let tables = handler.tables();
    for (id, instrument) in tables.instrument_ids().zip(&tables.instruments) {
        let book = handler.book(id).filter(|book| !book.is_stale());
        let levels = |side| book.iter().flat_map(|b| b.levels(side)).map(|r| rung(r.level())).collect();
        let sides = Side::BOTH.map(levels);
        by_handler.insert(
            instrument.id.clone(),
            book.map(|_| ExpectedBook { instr: instrument.id.clone(), sides }),
        );
        groups.insert(instrument.id.clone(), tables.group(id).to_owned());
    }
    let (tape, courses, loss) = read(dir, account, &depth.span_ns)?;
    Ok(MarketDataResults { tape, handler: by_handler, stats: handler.core().stats(), groups, courses, loss })
}

type TapeReading = (BTreeMap<String, Option<ExpectedBook>>, Vec<PriceHistory>, PacketLossSummary);

/// Reads this feed's part of the tape in one pass.
fn read(dir: &Path, account: &TapeAccount, span_ns: &Range<u64>) -> Result<TapeReading, CommandFailure> {
    let Range { start, end } = *span_ns;
    let of_feed = account.sources.iter().filter(|source| source.feed == DEPTH);
    let sources: BTreeSet<u32> =
        of_feed.flat_map(|s| std::iter::once(s.id).chain(s.further.keys().copied())).collect();
    let mut books = TapeBooks::new(unitape_book::BookOptions::default());
    let mut reader = Reader::open(dir, StartPosition::Oldest)?;
    let mut courses: BTreeMap<InstrumentId, PriceHistory> = BTreeMap::new();
    let mut loss = PacketLossSummary::default();
    let mut since: BTreeMap<InstrumentId, UnixNanos> = BTreeMap::new();
    while let Some(frame) = reader.next()? {
        let Some(event) = Event::new(frame.bytes) else { continue };
        if !frame.header.is_meta() && !sources.contains(&event.source()) {
            continue;
        }
        let changes = books.on_frame(frame.position, frame.bytes)?;
        let best = changes.iter().any(|change| change.best);
        let listing = changes.first().map(|change| change.listing);
        match event.kind() {
            EventKind::Status => count_status(&event, &mut loss, &mut since),
            EventKind::Level => {
                let course = courses.entry(event.instrument()).or_default();
                course.changes += 1;
                if let Some(listing) = listing.filter(|_| best) {
                    let best = books.books.listing(listing).bbo();
                    if let (Some(bid), Some(ask)) = (best.bid, best.ask) {
                        let ts = event.ts_event().0.clamp(start as i64, end as i64 - 1) as u64 - start;
                        let column = ts * COLUMNS as u64 / (end - start).max(1);
                        course.moves[column as usize] = Some(bid.px.0.midpoint(ask.px.0));
                    }
                }
            }
            _ => {}
        }
    }
    let name = |dict, id| books.names.name(dict, id).unwrap_or("?").to_owned();
    loss.left = since.into_keys().map(|id| name(NameKind::Instrument, id.0)).collect();
    let (mut all, mut histories) = (BTreeMap::new(), Vec::new());
    for id in books.books.listings() {
        let (listing, book) = (books.books.listing(id), books.books.book(id, Basis::Levels));
        let instr = name(NameKind::Instrument, listing.instrument().0);
        let is_complete = !book.marks().contains(QuoteFlags::STALE) && listing.faults().total() == 0;
        let sides = Side::BOTH.map(|side| book.levels(side).map(rung).collect());
        all.insert(instr.clone(), is_complete.then(|| ExpectedBook { instr: instr.clone(), sides }));
        let Some(course) = courses.remove(&listing.instrument()) else { continue };
        let best = book.bbo();
        let side = |level: Option<PriceLevel>| {
            [level.map(|level| level.px.to_string()), level.map(|level| level.qty.to_string())]
        };
        let venue = name(NameKind::Venue, listing.venue().into());
        let last = side(best.bid).into_iter().chain(side(best.ask)).collect();
        histories.push(PriceHistory { venue, instr, ts: book.ts().0, last, ..course });
    }
    histories.sort_by(|a, b| (b.changes, &a.instr).cmp(&(a.changes, &b.instr)));
    Ok((all, histories, loss))
}

fn rung(level: PriceLevel) -> ExpectedLevel {
    (level.px.0, level.qty.to_string().parse().unwrap_or(u64::MAX), level.orders.unwrap_or(0))
}

/// Counts the loss that a `status` reports.
fn count_status(
    event: &Event<'_>,
    loss: &mut PacketLossSummary,
    since: &mut BTreeMap<InstrumentId, UnixNanos>,
) {
    let mut scratch = [0; 36];
    let Some(EventValue::Text(state)) = event.field(EventField::State, &mut scratch) else { return };
    let find_unmapped = |name| event.unmapped_fields().find(|(key, _)| *key == name).map(|(_, value)| value);
    let range = || {
        let number = |name| find_unmapped(name).and_then(|text| text.parse::<u64>().ok());
        number("from").zip(number("to")).map_or(0, |(from, to)| to + 1 - from)
    };
    match state {
        "stale" => {
            loss.stale += 1;
            since.insert(event.instrument(), event.ts_event());
        }
        "recovered" => {
            if let Some(since) = since.remove(&event.instrument()) {
                let ns = event.ts_event().0.saturating_sub(since.0).max(0);
                (loss.mended, loss.stale_ns) = (loss.mended + 1, loss.stale_ns + ns);
                loss.stale_ns_max = loss.stale_ns_max.max(ns);
            }
        }
        "missing" => loss.messages += range(),
        "lost" => {
            let channel = find_unmapped("channel").unwrap_or("?").trim_matches('"').to_owned();
            *loss.packets.entry(channel).or_default() += range();
        }
        _ => {}
    }
}

/// Lists the books that differ from the exchange's.
pub fn books(
    truth: &[ExpectedBook],
    owner: &str,
    books: &BTreeMap<String, Option<ExpectedBook>>,
) -> Vec<String> {
    let mut differs = Vec::new();
    for must in truth {
        let instr = &must.instr;
        match books.get(instr) {
            None => differs.push(format!("{owner} has no book of {instr}")),
            Some(None) => differs.push(format!("{owner} has {instr} as stale, or with faults")),
            Some(Some(is)) => {
                for (word, is, must) in
                    [("bids", &is.sides[0], &must.sides[0]), ("asks", &is.sides[1], &must.sides[1])]
                {
                    if is != must {
                        differs.push(format!("{owner}, {instr}: {word} {is:?}, but {must:?}"));
                    }
                }
            }
        }
    }
    let is_traded = |instr: &String| truth.iter().any(|book| book.instr == *instr);
    let untraded_books = books.keys().filter(|instr| !is_traded(instr));
    differs.extend(untraded_books.map(|instr| format!("{owner} has a book of {instr}, which nobody trades")));
    differs
}

/// Lists the counts in which the handler or the tape differs from the packets that arrived on the lines.
pub fn lines(came: &[ChannelArrivals; 3], results: &MarketDataResults) -> Vec<String> {
    let mut differs = Vec::new();
    let mut check_equal = |label: String, is: u64, must: u64| {
        if is != must {
            differs.push(format!("{label}: {is}, but {must} by the numbers"));
        }
    };
    for (channel, must) in results.stats.channels.iter().zip(came) {
        let name = &channel.name;
        for (line, (is, must)) in ["A", "B"].into_iter().zip(channel.lines.iter().zip(&must.lines)) {
            check_equal(format!("{name}, line {line}: packets"), is.packets, must.packets);
            check_equal(format!("{name}, line {line}: twice"), is.twice, must.twice);
            check_equal(format!("{name}, line {line}: missed"), is.missed, must.missed);
        }
        // Snapshots that nobody needs are not looked into: damage in them is not seen.
        let lost_packets = channel.lost - channel.late.min(channel.lost);
        check_equal(format!("{name}: lost"), lost_packets, must.lost.min(lost_packets.max(must.unheard)));
        let on_tape = results.loss.packets.get(name).copied().unwrap_or(0);
        check_equal(format!("{name}: lost, on the tape"), on_tape, channel.lost);
    }
    let [incremental, ..] = came;
    let incremental_lost = results.stats.channels.first().map_or(0, |c| c.lost - c.late.min(c.lost));
    check_equal("depth: lost".to_owned(), incremental_lost, incremental.lost);
    check_equal("messages missing".to_owned(), results.loss.messages, results.stats.products.missing);
    check_equal("books mended".to_owned(), results.loss.mended, results.loss.stale);
    differs.extend(results.loss.left.iter().map(|instr| format!("{instr} is stale at the end")));
    differs
}

/// Lists the errors of quarantine: undamaged messages in it, and damaged messages that are missing from the account.
pub fn account(
    is: Option<&FeedSummary>,
    bytes: u64,
    depth: &ExchangeTruth,
    quarantine: &[QuarantineEntry],
) -> Vec<String> {
    let Some(is) = is else { return vec![format!("{DEPTH}: nothing on the tape")] };
    let mut differs = Vec::new();
    let sum = is.with_events + is.quarantined + is.duplicates + is.ignored;
    if sum != is.messages || is.bytes != bytes || !is.complete {
        let complete = if is.complete { "" } else { ", not to its end" };
        differs.push(format!(
            "{DEPTH}: {} of {bytes} bytes{complete}; {sum} of {} messages are accounted for",
            is.bytes, is.messages
        ));
    }
    for entry in quarantine.iter().filter(|entry| is_from_exchange(entry) && entry.reason != "late") {
        if !depth.damaged.iter().any(|range| range.contains(&entry.offset)) {
            differs.push(format!("{DEPTH}: {} at byte {} was not damaged", entry.reason, entry.offset));
        }
    }
    differs
}

/// Returns whether an entry of quarantine is from the exchange's feed.
pub fn is_from_exchange(entry: &QuarantineEntry) -> bool {
    entry.source.split('/').next() == Some(DEPTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book(px: i64) -> ExpectedBook {
        ExpectedBook { instr: "1".to_owned(), sides: [vec![(px, 5, 1)], vec![]] }
    }

    /// Fails if the self-check accepts a wrong book.
    #[test]
    fn another_book_fails() {
        let truth = [book(10)];
        let books_with =
            |one: Option<Option<ExpectedBook>>| one.into_iter().map(|b| ("1".to_owned(), b)).collect();
        assert_eq!(books(&truth, "the tape", &books_with(Some(Some(book(10))))), [""; 0]);
        for wrong in [None, Some(None), Some(Some(book(11)))] {
            assert_eq!(books(&truth, "the tape", &books_with(wrong)).len(), 1);
        }
        assert_eq!(books(&[], "the tape", &books_with(Some(Some(book(10))))).len(), 1);
    }

    #[test]
    fn other_figures_of_lines_fail() {
        let channel = unitape_marketdata::engine::ChannelStats {
            name: "depth".to_owned(),
            lost: 2,
            ..Default::default()
        };
        let mut results = MarketDataResults {
            tape: BTreeMap::new(),
            handler: BTreeMap::new(),
            stats: EngineStats { channels: vec![channel], ..EngineStats::default() },
            groups: BTreeMap::new(),
            courses: Vec::new(),
            loss: PacketLossSummary {
                packets: BTreeMap::from([("depth".to_owned(), 2)]),
                ..PacketLossSummary::default()
            },
        };
        let mut came: [ChannelArrivals; 3] = Default::default();
        (came[0].lost, came[0].unheard) = (2, 2);
        assert_eq!(lines(&came, &results), [""; 0]);
        results.loss.stale = 1;
        assert_eq!(lines(&came, &results).len(), 1);
        came[0].lines[1].missed = 1;
        assert_eq!(lines(&came, &results).len(), 2);
        (came[0].lost, came[0].unheard) = (3, 3);
        assert!(lines(&came, &results).len() > 2);
    }
}
