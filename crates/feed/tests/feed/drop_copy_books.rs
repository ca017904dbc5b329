//! Books made from the events of a drop copy, against what its messages say: at every event, level by level and order by
//! order.

#[allow(dead_code)] // it is a reader for more than books
#[path = "../../../sim/tests/common/mod.rs"]
mod common;

use common::{Message, all_good};
use std::collections::HashMap;
use std::path::Path;
use unitape_book::{Basis, BookOptions, BookView, ListingId, QuoteFlags, TapeBooks};
use unitape_feed::{ConsolidateOptions as FeedOptions, consolidate, feed_of_option};
use unitape_model::{Event, EventField, EventKind, EventValue, InstrumentId, NameKind, Price, Side};
use unitape_sim::day::Scenario;
use unitape_sim::{DropCopy, InjectedNoiseConfig, SimConfig};
use unitape_tape::{Reader, StartPosition};

/// An order as the reports show it. They state the quantity left (151), which books have to compute for themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Order {
    oid: String,
    px: i64,
    left: i64,
}

/// A book in the obvious way: each side in the order in which it would be filled.
#[derive(Default)]
struct ReportedBook {
    sides: [Vec<Order>; 2],
    /// The last order that came or was amended, and whether it is seen: not while the other side still has orders
    /// that it will match.
    last: Option<(usize, String)>,
    /// Whether orders are matched as they come.
    continuous: bool,
}

impl ReportedBook {
    fn on_report(&mut self, m: &Message) {
        let (side, oid) = (usize::from(m.get(54) == "2"), m.get(37).to_owned());
        let left = m.int(151);
        // A stop waits elsewhere.
        let rests = m.get(40) == "2" && m.get(59) == "0" && left > 0;
        let queue = &mut self.sides[side];
        let was = queue.iter().position(|o| o.oid == oid);
        if !rests {
            was.map(|at| queue.remove(at));
        } else {
            let order = Order { oid: oid.clone(), px: m.nano(44).expect("nine places"), left };
            match was {
                Some(at) if queue[at].px == order.px && left <= queue[at].left => queue[at] = order,
                was => {
                    was.map(|at| queue.remove(at));
                    let better = |o: &Order| if side == 0 { o.px >= order.px } else { o.px <= order.px };
                    let at = queue.iter().rposition(better).map_or(0, |at| at + 1);
                    queue.insert(at, order);
                }
            }
        }
        if matches!(m.get(150), "0" | "5" | "L") {
            self.last = Some((side, oid));
        }
    }

    /// The visible orders: all but an order that is being matched. Nobody is before the end of an auction.
    fn seen(&self) -> [Vec<Order>; 2] {
        let mut sides = self.sides.clone();
        if let (Some(bid), Some(ask), Some((side, oid))) = (sides[0].first(), sides[1].first(), &self.last)
            && bid.px >= ask.px
            && self.continuous
        {
            sides[*side].retain(|o| o.oid != *oid);
        }
        sides
    }
}

fn seen(book: BookView<'_>) -> [Vec<Order>; 2] {
    Side::BOTH.map(|side| {
        let mut orders = Vec::new();
        for level in book.levels(side) {
            let queue: Vec<_> = book.queue(side, level.px).collect();
            assert_eq!(level.orders, Some(queue.len() as u32));
            let sum: i128 = queue.iter().map(|o| o.left.scaled(0).expect("whole shares")).sum();
            assert_eq!(level.qty.to_string(), sum.to_string());
            orders.extend(queue.iter().map(|o| Order {
                oid: o.oid.to_string(),
                px: o.px.expect("it has a price").0,
                left: o.left.scaled(0).and_then(|left| i64::try_from(left).ok()).expect("whole shares"),
            }));
        }
        orders
    })
}

fn tape_of(dir: &Path, config: SimConfig) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut copy = DropCopy::new(config, InjectedNoiseConfig::default()).expect("a good config");
    copy.write_fix(&mut bytes).expect("a vector takes all");
    let file = dir.join("flow.fix");
    std::fs::write(&file, &bytes).expect("a writable directory");
    let feed = feed_of_option(&format!("flow=fix:fix44-orders:{}", file.display())).expect("a feed");
    consolidate(&dir.join("tape"), FeedOptions { feeds: vec![feed], ..FeedOptions::default() })
        .expect("a tape");
    bytes
}

/// One venue that differs in one order from what the reports say shows every later layer a market that was not there.
#[test]
fn books_are_what_the_reports_say_at_every_event() {
    let (mut matched, mut checked, mut against_published) = (0, 0, 0);
    for seed in 0..12 {
        let dir = tempfile::tempdir().expect("a directory");
        let config = SimConfig {
            seed,
            events: 3_500,
            instruments: 6,
            depth: 20,
            halts: 2,
            plant: [(Scenario::WashTrade, 20), (Scenario::MarkingClose, 1)].into(),
            near_misses: [(Scenario::WashTrade, 10)].into(),
            ..SimConfig::default()
        };
        let messages = all_good(&tape_of(dir.path(), config));
        // The messages that become events, in their order.
        let mut messages =
            messages.iter().filter(|m| matches!(m.get(35), "8" | "W" | "X" | "d" | "h" | "f" | "UP"));
        let mut reader = Reader::open(&dir.path().join("tape"), StartPosition::Oldest).expect("a tape");
        let mut tape = TapeBooks::new(BookOptions::default());
        let mut reported: HashMap<(String, String), ReportedBook> = HashMap::new();
        let mut published: HashMap<ListingId, [Option<(Price, String)>; 2]> = HashMap::new();
        while let Some(frame) = reader.next().expect("an intact tape") {
            let (meta, bytes) = (frame.header.is_meta(), frame.bytes.to_vec());
            let changes = tape.on_frame(frame.position, &bytes).expect("frames of ours").to_vec();
            if meta {
                continue;
            }
            let m = messages.next().expect("an event has its message");
            if m.find(207).is_none() {
                continue;
            }
            let key = (m.get(207).to_owned(), m.get(48).to_owned());
            let ids = (
                tape.names.get(NameKind::Venue, key.0.as_bytes()),
                tape.names.get(NameKind::Instrument, key.1.as_bytes()),
            );
            let (Some(venue), Some(instrument)) = ids else { panic!("{key:?} has no names") };
            let book = reported.entry(key).or_default();
            match m.get(35) {
                "8" => book.on_report(m),
                "h" => book.continuous = m.get(625) == "open",
                _ => {}
            }
            let Some(id) = tape.books.find(venue as u16, InstrumentId(instrument)) else { continue };
            let (view, fault) = (tape.books.book(id, Basis::Orders), changes.iter().find_map(|c| c.fault));
            let at = format!("seed {seed}, event {}, {m:?}", reader.ordinal());
            assert_eq!(fault, None, "{at}");
            let marks = view.marks();
            assert!(
                !book.continuous
                    || !marks.contains(QuoteFlags::CROSSED) && !marks.contains(QuoteFlags::LOCKED),
                "{at}"
            );
            // Between the two reports of a match only one side of it has been reported.
            let half = m.find(150) == Some("F") && m.get(851) == "2" && book.continuous;
            if half {
                matched += 1;
            } else {
                assert_eq!(seen(view), book.seen(), "{at}");
                checked += 1;
            }
            // The venue publishes the best prices of the book, and it reports a change exactly when there is one.
            let event = Event::new(&bytes).expect("an event");
            let best = view.bbo();
            let now = [best.bid, best.ask].map(|l| l.map(|l| (l.px, l.qty.to_string())));
            if event.kind() == EventKind::Bbo {
                let of = |field| match event.field(field, &mut [0; 36]) {
                    Some(EventValue::Price(px)) => Some(px),
                    _ => None,
                };
                assert_eq!(
                    now.clone().map(|l| l.map(|l| l.0)),
                    [of(EventField::Bid), of(EventField::Ask)],
                    "{at}"
                );
            }
            let top = changes.iter().any(|c| c.basis == Some(Basis::Orders) && c.top_changed);
            let before = published.insert(id, now.clone()).unwrap_or_default();
            assert_eq!(top, before != now, "{at}");
        }
        assert!(messages.next().is_none());
        for id in tape.books.listings() {
            let listing = tape.books.listing(id);
            let (checks, differ) = listing.published_checks();
            assert_eq!((differ, listing.crossings()), (0, 0), "seed {seed}");
            against_published += checks;
        }
        assert_eq!(tape.books.faults_total(), 0);
    }
    let counts = [matched, checked, against_published];
    assert!(counts[0] > 2_000 && counts[1] > 20_000 && counts[2] > 4_000, "{counts:?}");
}
