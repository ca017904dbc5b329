//! From simulated days to ITCH, to a tape, to books: after every step of the matching engine the books that were made of
//! the events are the engine's own, order by order.

use std::collections::BTreeSet;
use unitape_book::{Basis, BookOptions, ListingId, TapeBooks};
use unitape_feed::{ConsolidateOptions, FileFeed, Format, Mapping, consolidate};
use unitape_model::{Event as Frame, InstrumentId, NameKind, Side, frames};
use unitape_sim::day::{DayEventBody, ItchDayWriter, Sim, SimConfig};
use unitape_tape::{Reader, StartPosition};

/// Price in 1e-9 and shares left of the orders of a side, in the order in which they would be filled.
type Line = Vec<(i64, i64)>;

/// The orders in a book after the messages up to `offset`.
struct Truth {
    offset: u64,
    symbol: String,
    sides: [Line; 2],
}

fn day(seed: u64) -> (Vec<u8>, Vec<Truth>, String) {
    let config = SimConfig {
        seed,
        events: 4_000,
        instruments: 4,
        depth: 20,
        span_ns: 1_800 * 1_000_000_000,
        halts: 2,
        payments: 5,
        news: 3,
        plant: [].into(),
        near_misses: [].into(),
        ..SimConfig::default()
    };
    let (start_ns, span_ns) = (config.start_ns, config.span_ns);
    let mut sim = Sim::new(config).unwrap();
    let mut itch = ItchDayWriter::new(0, start_ns, span_ns).unwrap();
    let (mut bytes, mut truth) = (Vec::new(), Vec::new());
    while sim.step().is_some() {
        let mut touched = BTreeSet::new();
        for event in sim.last_events() {
            itch.write(sim.world(), event, &mut bytes);
            if let DayEventBody::New(t)
            | DayEventBody::Amend(t)
            | DayEventBody::Cancel(t)
            | DayEventBody::Exec { order: t, .. } = event.body
            {
                touched.insert(t.book);
            }
        }
        itch.flush(sim.world(), &mut bytes);
        for book in touched.into_iter().filter(|b| sim.world().venue_of(*b) == 0) {
            let line = |side| {
                let orders = sim.book(0, sim.world().instr_of(book)).orders(side);
                orders.map(|(_, px, left)| (sim.world().listed(book).nano(px), left)).collect()
            };
            truth.push(Truth {
                offset: bytes.len() as u64,
                symbol: sim.world().listed(book).symbol.clone(),
                sides: [line(Side::Buy), line(Side::Sell)],
            });
        }
    }
    itch.end(sim.world(), &mut bytes);
    (bytes, truth, itch.date())
}

fn line(books: &TapeBooks, id: ListingId, side: Side) -> Line {
    let book = books.books.book(id, Basis::Orders);
    let mut line = Vec::new();
    for level in book.levels(side) {
        for order in book.queue(side, level.px) {
            let left = order.left.scaled(0).and_then(|left| i64::try_from(left).ok()).expect("whole shares");
            line.push((level.px.0, left));
        }
    }
    line
}

#[test]
fn books_from_itch_are_the_engines_after_every_step() {
    let (mut compared, mut not_empty) = (0, 0);
    for seed in 0..10 {
        let (bytes, truth, date) = day(seed);
        let dir = tempfile::tempdir().unwrap();
        let (file, tape) = (dir.path().join(format!("sim-{date}.itch")), dir.path().join("tape"));
        std::fs::write(&file, bytes).unwrap();
        let format = Format::from_mapping(Mapping::built_in("nasdaq-itch50").unwrap().clone()).unwrap();
        let feeds = vec![FileFeed { name: "itch".to_owned(), format, files: vec![file] }];
        let summary =
            consolidate(&tape, ConsolidateOptions { feeds, workers: 2, ..ConsolidateOptions::default() })
                .unwrap()
                .summary;
        assert_eq!((summary.quarantined, summary.ignored), (0, 0), "seed {seed}: {summary:?}");
        let mut books = TapeBooks::new(BookOptions::default());
        let mut reader = Reader::open(&tape, StartPosition::Oldest).unwrap();
        let mut truth = truth.into_iter().peekable();
        let mut check = |books: &TapeBooks, upto: u64| {
            while let Some(t) = truth.next_if(|t| t.offset <= upto) {
                let instrument = books.names.get(NameKind::Instrument, t.symbol.as_bytes());
                let venue = books.names.get(NameKind::Venue, b"XNAS").expect("named") as u16;
                let listing = instrument.and_then(|i| books.books.find(venue, InstrumentId(i)));
                for (side, own) in [Side::Buy, Side::Sell].into_iter().zip(t.sides) {
                    let from_tape = listing.map(|id| line(books, id, side)).unwrap_or_default();
                    assert_eq!(from_tape, own, "seed {seed}, {} {side:?} at byte {}", t.symbol, t.offset);
                    not_empty += usize::from(!own.is_empty());
                }
                compared += 1;
            }
        };
        while let Some(run) = reader.next_run(1 << 20).unwrap() {
            for (at, header, frame) in frames(run.bytes) {
                let event = Frame::new(frame).unwrap();
                if !header.is_meta() {
                    check(&books, event.offset().into());
                }
                let position = unitape_model::Position(run.position.0 + at as u64);
                for change in books.on_frame(position, frame).unwrap() {
                    assert_eq!(change.fault, None, "seed {seed}, {event:?}");
                }
            }
        }
        check(&books, u64::MAX);
        assert!(truth.next().is_none());
        assert_eq!((books.books.orders(), books.books.faults_total()), (0, 0), "all orders end with the day");
    }
    assert!(compared > 8_000 && not_empty > 8_000, "{compared} books, {not_empty} sides with orders");
}
