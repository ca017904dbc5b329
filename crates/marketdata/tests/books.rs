//! Events to books and calls: subscribed changes are reported, others are not applied, and an untrusted book says so.

use proptest::prelude::*;
use unitape_marketdata::engine::{
    Channel, ChannelRole, EventContext, Instrument, LevelUpdate, MarketEvent, MarketEventSink,
    MessageOutcome, Product, ReferenceTables, Trade, UpdateAction,
};
use unitape_marketdata::{
    BookUpdate, Books, ChannelId, InstrumentId, Listener, ProductId, SequenceGap, Side, Subscription,
    UnixNanos,
};
use unitape_model::{Decimal, Price};

/// Records its calls.
#[derive(Default)]
struct Notes {
    lines: Vec<String>,
}

impl Listener for Notes {
    fn on_book(&mut self, update: &BookUpdate<'_>) {
        let mut line = format!("book {}", update.instrument);
        if update.cleared {
            line += " cleared";
        }
        if update.book.is_stale() {
            line += " stale";
        }
        for change in update.changes {
            line += &format!(" {:?}{}{}", change.action, change.side as u8, change.depth);
        }
        for side in Side::BOTH {
            line += " |";
            for level in update.book.levels(side) {
                line += &format!(" {}@{}", level.qty.0, level.px);
            }
        }
        self.lines.push(line);
    }

    fn on_trade(&mut self, _: &EventContext<'_>, trade: &Trade) {
        self.lines.push(format!("trade {} {}", trade.instrument, trade.px.0));
    }

    fn on_stale(&mut self, _: &EventContext<'_>, instrument: InstrumentId) {
        self.lines.push(format!("stale {instrument}"));
    }

    fn on_recovered(&mut self, _: &EventContext<'_>, instrument: InstrumentId) {
        self.lines.push(format!("recovered {instrument}"));
    }

    fn on_instrument(&mut self, at: &EventContext<'_>, instrument: InstrumentId) {
        self.lines.push(format!("instrument {}", at.tables.instruments[instrument.index()].id));
    }

    fn on_gap(&mut self, _: &EventContext<'_>, gap: SequenceGap) {
        self.lines.push(format!("{gap:?}"));
    }
}

const F: ProductId = ProductId(0);
const F1: InstrumentId = InstrumentId(0);
const F2: InstrumentId = InstrumentId(1);
const X: ProductId = ProductId(1);
const X1: InstrumentId = InstrumentId(2);

/// Two products, `F` of the group `bonds` with instruments 0 and 1, `X` with instrument 2.
fn tables(named: bool) -> ReferenceTables {
    let name = |name: &str| if named { name.to_owned() } else { String::new() };
    let product = |id: &str, group: &str| Product {
        id: id.into(),
        name: name(id),
        group: name(group),
        ..Product::default()
    };
    let instrument =
        |id: &str, product| Instrument { id: id.into(), product, depth: Some(3), ..Instrument::default() };
    ReferenceTables {
        channels: vec![Channel { name: "ref".into(), role: ChannelRole::Reference }],
        products: vec![product("F", "bonds"), product("X", "")],
        instruments: vec![instrument("F1", F), instrument("F2", F), instrument("X1", X)],
    }
}

fn give(books: &mut Books, notes: &mut Notes, tables: &ReferenceTables, steps: &[MarketEvent<'_>]) {
    let at = EventContext {
        tables,
        channel: ChannelId(0),
        line: 0,
        snapshot: false,
        sequence: Some(1),
        ts_event: UnixNanos(1),
        ts_recv: UnixNanos(2),
        position: 0,
        length: 0,
    };
    let mut taker = books.updater(notes);
    for step in steps {
        taker.emit(&at, *step);
    }
    taker.emit(&at, MarketEvent::End(MessageOutcome::Used));
}

fn level(
    instrument: u32,
    side: Side,
    action: UpdateAction,
    depth: u16,
    px: i64,
    qty: i64,
) -> MarketEvent<'static> {
    MarketEvent::Level(LevelUpdate {
        instrument: InstrumentId(instrument),
        side,
        action,
        px: Price(px),
        qty: Some(Decimal::from_int(qty)),
        orders: None,
        depth: Some(depth),
    })
}

/// All instruments, of products that are whole.
const KNOWN: [MarketEvent<'static>; 8] = [
    MarketEvent::Instrument(F1),
    MarketEvent::Recovered { instrument: F1 },
    MarketEvent::Instrument(F2),
    MarketEvent::Recovered { instrument: F2 },
    MarketEvent::Instrument(X1),
    MarketEvent::Recovered { instrument: X1 },
    MarketEvent::Whole { product: F },
    MarketEvent::Whole { product: X },
];

#[test]
fn one_call_for_each_book_of_a_message() {
    let tables = tables(true);
    let (mut books, mut notes) = (Books::default(), Notes::default());
    books.subscribe(Subscription::Group("bonds".into()), &tables);
    give(&mut books, &mut notes, &tables, &KNOWN);
    notes.lines.clear();
    let trade = Trade { instrument: F2, px: Price(7), qty: Decimal::from_int(1), id: None, aggressor: None };
    give(
        &mut books,
        &mut notes,
        &tables,
        &[
            level(1, Side::Buy, UpdateAction::Add, 1, 100, 5),
            level(0, Side::Sell, UpdateAction::Add, 1, 200, 3),
            level(2, Side::Sell, UpdateAction::Add, 1, 200, 3),
            level(1, Side::Buy, UpdateAction::Add, 2, 99, 6),
            MarketEvent::Trade(trade),
            MarketEvent::Trade(Trade { instrument: X1, ..trade }),
            level(1, Side::Buy, UpdateAction::Delete, 1, 100, 0),
        ],
    );
    assert_eq!(notes.lines, ["trade 1 7", "book 1 Add01 Add02 Delete01 | 6@99 |", "book 0 Add11 | | 3@200"]);
    assert_eq!(books.book(X1).map(|_| ()), None, "it is not subscribed");
    let counters = books.counters();
    assert_eq!((counters.levels, counters.passed_over, counters.updates, counters.trades), (4, 1, 4, 1));
    assert_eq!(books.book(F2).unwrap().best(Side::Buy).unwrap().px, 99);
    // A fourth level of three: the last one falls out, as the venue's does.
    let adds: Vec<_> = (1..=4).map(|n| level(0, Side::Buy, UpdateAction::Add, 1, n, n)).collect();
    give(&mut books, &mut notes, &tables, &adds);
    assert_eq!(notes.lines.last().unwrap(), "book 0 Add01 Add01 Add01 Add01 | 4@4 3@3 2@2 | 3@200");
}

/// Where reference data come after the first levels, the book was once without them.
#[test]
fn names_may_come_later_than_levels() {
    let (before, after) = (tables(false), tables(true));
    let (mut books, mut notes) = (Books::default(), Notes::default());
    books.subscribe(Subscription::Group("bonds".into()), &before);
    give(&mut books, &mut notes, &before, &KNOWN);
    give(
        &mut books,
        &mut notes,
        &before,
        &[
            level(0, Side::Buy, UpdateAction::Add, 1, 100, 5),
            level(2, Side::Buy, UpdateAction::Add, 1, 100, 5),
        ],
    );
    assert!(notes.lines.is_empty(), "{:?}", notes.lines);
    give(&mut books, &mut notes, &after, &[MarketEvent::Product(F), MarketEvent::Product(X)]);
    assert_eq!(
        notes.lines,
        ["instrument F1", "instrument F2", "recovered 0", "book 0 | 5@100 |", "recovered 1", "book 1 | |"]
    );
    assert!(books.book(X1).is_none());
}

#[test]
fn stale_until_it_is_known_again() {
    let tables = tables(true);
    let (mut books, mut notes) = (Books::default(), Notes::default());
    books.subscribe(Subscription::Instrument("F1".into()), &tables);
    give(&mut books, &mut notes, &tables, &KNOWN);
    notes.lines.clear();
    give(
        &mut books,
        &mut notes,
        &tables,
        &[
            MarketEvent::Missing { product: F, from: 3, to: 4, is_unexplained: true },
            MarketEvent::Stale { instrument: F1, mended: true },
            MarketEvent::Stale { instrument: F2, mended: true },
        ],
    );
    assert!(books.book(F1).unwrap().is_stale());
    give(
        &mut books,
        &mut notes,
        &tables,
        &[
            MarketEvent::Clear { instrument: F1 },
            level(0, Side::Buy, UpdateAction::Add, 1, 100, 5),
            MarketEvent::Recovered { instrument: F1 },
        ],
    );
    assert_eq!(
        notes.lines,
        [
            "Messages { product: ProductId(0), from: 3, to: 4 }",
            "stale 0",
            "recovered 0",
            "book 0 cleared Add01 | 5@100 |",
        ]
    );
    // A level that cannot be: the book is not the venue's, until it is given in full.
    notes.lines.clear();
    give(&mut books, &mut notes, &tables, &[level(0, Side::Buy, UpdateAction::Change, 3, 100, 5)]);
    assert_eq!(notes.lines, ["stale 0", "book 0 stale | 5@100 |"]);
    assert_eq!((books.counters().faults, books.counters().stale), (1, 2));
    notes.lines.clear();
    give(&mut books, &mut notes, &tables, &[MarketEvent::Clear { instrument: F1 }]);
    assert_eq!(notes.lines, ["recovered 0", "book 0 cleared | |"]);
}

/// A venue describes a product and its instruments separately. A symbol that arrived after the product's name once
/// found its book dropped.
#[test]
fn a_symbol_may_come_later_than_its_products_name() {
    let mut tables = tables(true);
    let (mut books, mut notes) = (Books::default(), Notes::default());
    books.subscribe(Subscription::Instrument("VOD".into()), &tables);
    give(&mut books, &mut notes, &tables, &KNOWN);
    let put = |instrument| level(instrument, Side::Buy, UpdateAction::Add, 1, 100, 5);
    give(&mut books, &mut notes, &tables, &[MarketEvent::Product(F), put(0), put(1), put(2)]);
    assert!(notes.lines.is_empty(), "{:?}", notes.lines);
    // An instrument that was described without a symbol has none.
    tables.instruments[1].tick = Some(Price(1));
    tables.instruments[0].symbol = "VOD".into();
    give(
        &mut books,
        &mut notes,
        &tables,
        &[MarketEvent::Instrument(F2), MarketEvent::Instrument(F1), put(1)],
    );
    assert_eq!(notes.lines, ["instrument F1", "recovered 0", "book 0 | 5@100 |"]);
    assert_eq!((books.counters().passed_over, books.counters().levels), (1, 3));
    // Another instrument gets a group, but no symbol.
    tables.instruments[2].symbol = "BP".into();
    books.subscribe(Subscription::Group("stocks".into()), &tables);
    tables.products[1].group = "stocks".into();
    give(&mut books, &mut notes, &tables, &[MarketEvent::Product(X)]);
    assert_eq!(
        books.take_broken().collect::<Vec<_>>(),
        [X1],
        "its name was reported, so nobody had asked for it"
    );
}

/// An impossible level in a snapshot: the book was once reported as recovered, and it was not.
#[test]
fn a_snapshot_that_cannot_be_mends_nothing() {
    let tables = tables(true);
    let (mut books, mut notes) = (Books::default(), Notes::default());
    books.subscribe(Subscription::All, &tables);
    give(&mut books, &mut notes, &tables, &KNOWN);
    give(&mut books, &mut notes, &tables, &[MarketEvent::Stale { instrument: F1, mended: true }]);
    notes.lines.clear();
    let snapshot = |depth| {
        [
            MarketEvent::Clear { instrument: F1 },
            level(0, Side::Buy, UpdateAction::Add, 1, 100, 5),
            level(0, Side::Buy, UpdateAction::Add, depth, 98, 5),
            level(0, Side::Buy, UpdateAction::Change, 3, 98, 5),
            MarketEvent::Recovered { instrument: F1 },
            MarketEvent::Whole { product: F },
        ]
    };
    give(&mut books, &mut notes, &tables, &snapshot(3));
    assert_eq!(notes.lines, ["book 0 cleared stale Add01 | 5@100 |"]);
    // Consequences of the first fault are not reported again.
    let counters = books.counters();
    assert_eq!((counters.stale, counters.recovered, counters.faults), (1, 3, 1));
    assert_eq!(books.take_broken().collect::<Vec<_>>(), [F1]);
    assert_eq!(books.take_broken().count(), 0);
    notes.lines.clear();
    let [clear, first, .., recovered, whole] = snapshot(3);
    give(&mut books, &mut notes, &tables, &[clear, first, recovered, whole]);
    assert_eq!(notes.lines, ["recovered 0", "book 0 cleared Add01 | 5@100 |"]);
    // Stale again before the message that mended it is over.
    notes.lines.clear();
    let stale = MarketEvent::Stale { instrument: F1, mended: true };
    give(&mut books, &mut notes, &tables, &[clear, first, stale]);
    assert_eq!(notes.lines, ["stale 0", "book 0 cleared stale Add01 | 5@100 |"]);
}

/// A deleted instrument comes back without a snapshot. When the others of its product had come, its book from before
/// was once reported as recovered.
#[test]
fn a_whole_product_makes_no_book_known() {
    let tables = tables(true);
    let (mut books, mut notes) = (Books::default(), Notes::default());
    books.subscribe(Subscription::All, &tables);
    give(&mut books, &mut notes, &tables, &KNOWN);
    give(&mut books, &mut notes, &tables, &[level(1, Side::Buy, UpdateAction::Add, 1, 100, 5)]);
    let stale = |instrument| MarketEvent::Stale { instrument, mended: true };
    give(&mut books, &mut notes, &tables, &[stale(F1), stale(F2)]);
    notes.lines.clear();
    let mends = [
        MarketEvent::Clear { instrument: F1 },
        MarketEvent::Recovered { instrument: F1 },
        MarketEvent::Whole { product: F },
    ];
    give(&mut books, &mut notes, &tables, &mends);
    assert_eq!(notes.lines, ["recovered 0", "book 0 cleared | |"]);
    assert!(books.book(F2).unwrap().is_stale());
}

/// Where nothing gives the number of levels of a side, there is a bound. The last level once fell out silently beyond
/// it.
#[test]
fn a_bound_of_ours_makes_a_book_stale() {
    let mut tables = tables(true);
    // Nought is no bound either.
    (tables.instruments[0].depth, tables.instruments[1].depth) = (None, Some(0));
    let (mut books, mut notes) = (Books::default(), Notes::default());
    books.subscribe(Subscription::All, &tables);
    give(&mut books, &mut notes, &tables, &KNOWN);
    for instrument in [0, 1] {
        let add = |px| level(instrument, Side::Buy, UpdateAction::Add, 1, px, 1);
        give(&mut books, &mut notes, &tables, &(1..=4096).map(add).collect::<Vec<_>>());
        assert!(!books.book(InstrumentId(instrument)).unwrap().is_stale());
        notes.lines.clear();
        give(&mut books, &mut notes, &tables, &[add(4097)]);
        assert_eq!(notes.lines[0], format!("stale {instrument}"));
        let book = books.book(InstrumentId(instrument)).unwrap();
        assert_eq!((book.depth(Side::Buy), book.best(Side::Buy).unwrap().px), (4096, 4097));
    }
    assert_eq!(
        books.faults().nonzero().map(|(fault, n)| (fault.name(), n)).collect::<Vec<_>>(),
        [("levels_full", 2)]
    );
}

/// A message that overlays levels may put a price above a better one before that one is changed, too. It was once taken for a
/// fault, and a book that was right for stale.
#[test]
fn levels_may_pass_each_other_within_a_message() {
    let tables = tables(true);
    let (mut books, mut notes) = (Books::default(), Notes::default());
    books.subscribe(Subscription::All, &tables);
    give(&mut books, &mut notes, &tables, &KNOWN);
    notes.lines.clear();
    let put = |depth, px| level(0, Side::Buy, UpdateAction::Add, depth, px, px);
    give(&mut books, &mut notes, &tables, &[put(1, 10), put(2, 9)]);
    let overlay = |depth, px| level(0, Side::Buy, UpdateAction::Change, depth, px, px);
    give(&mut books, &mut notes, &tables, &[overlay(1, 8), overlay(2, 7)]);
    assert_eq!((notes.lines.len(), books.counters().faults), (2, 0), "{:?}", notes.lines);
    give(&mut books, &mut notes, &tables, &[overlay(1, 6)]);
    assert_eq!(notes.lines[2..], ["stale 0", "book 0 stale Change01 | 6@6 7@7 |"]);
    assert_eq!((books.counters().faults, books.counters().stale), (1, 1));
    give(&mut books, &mut notes, &tables, &[overlay(2, 5)]);
    assert_eq!(notes.lines[4..], ["recovered 0", "book 0 Change02 | 6@6 5@5 |"]);
}

/// Where a venue has no snapshots levels continue after a gap, and the book once passed for the venue's again with
/// the first.
#[test]
fn what_nothing_mends_stays_stale() {
    let tables = tables(true);
    let (mut books, mut notes) = (Books::default(), Notes::default());
    books.subscribe(Subscription::All, &tables);
    give(&mut books, &mut notes, &tables, &KNOWN);
    notes.lines.clear();
    give(&mut books, &mut notes, &tables, &[MarketEvent::Stale { instrument: F1, mended: false }]);
    give(&mut books, &mut notes, &tables, &[level(0, Side::Buy, UpdateAction::Add, 1, 100, 5)]);
    assert_eq!(notes.lines, ["stale 0", "book 0 stale Add01 | 5@100 |"]);
    give(&mut books, &mut notes, &tables, &[MarketEvent::Clear { instrument: F1 }]);
    assert!(!books.book(F1).unwrap().is_stale());
}

/// Levels that came while nobody was subscribed are unknown, and a book without them must not pass for the venue's.
#[test]
fn who_subscribes_late_is_told_so() {
    let tables = tables(true);
    let (mut books, mut notes) = (Books::default(), Notes::default());
    give(&mut books, &mut notes, &tables, &KNOWN);
    give(&mut books, &mut notes, &tables, &[level(0, Side::Buy, UpdateAction::Add, 1, 100, 5)]);
    books.subscribe(Subscription::Product("F".into()), &tables);
    assert!(books.book(F1).unwrap().is_stale());
    assert!(!books.book(F2).unwrap().is_stale(), "nothing was reported of it");
    give(&mut books, &mut notes, &tables, &[MarketEvent::Clear { instrument: F1 }]);
    assert!(!books.book(F1).unwrap().is_stale());
    books.unsubscribe(&Subscription::Product("F".into()), &tables);
    assert!(books.book(F1).is_none());
    assert_eq!(notes.lines, ["recovered 0", "book 0 cleared | |"]);
}

proptest! {
    /// Books against lists of levels that are kept the obvious way, for any steps of any instruments in any messages.
    #[test]
    fn books_are_those_of_the_obvious_way(
        messages in proptest::collection::vec(
            proptest::collection::vec((0u32..3, any::<bool>(), 0u8..4, 1u16..5, 1i64..50), 0..8), 0..30)
    ) {
        let tables = tables(true);
        let (mut books, mut notes) = (Books::default(), Notes::default());
        books.subscribe(Subscription::All, &tables);
        give(&mut books, &mut notes, &tables, &KNOWN);
        let mut twin: [[Vec<(i64, i64)>; 2]; 3] = Default::default();
        for message in messages {
            let mut steps = Vec::new();
            for (instrument, sell, action, depth, px) in message {
                let side = if sell { Side::Sell } else { Side::Buy };
                let (levels, at) = (&mut twin[instrument as usize], usize::from(depth) - 1);
                let levels = &mut levels[side as usize];
                let (action, step) = match action {
                    0 if at <= levels.len() && (levels.len() < 3 || at < 3) => {
                        levels.insert(at, (px, px));
                        levels.truncate(3);
                        (UpdateAction::Add, true)
                    }
                    1 if at < levels.len() => {
                        levels[at] = (px, px);
                        (UpdateAction::Change, true)
                    }
                    2 if at < levels.len() => {
                        levels.remove(at);
                        (UpdateAction::Delete, true)
                    }
                    3 => {
                        twin[instrument as usize] = Default::default();
                        steps.push(MarketEvent::Clear { instrument: InstrumentId(instrument) });
                        (UpdateAction::Add, false)
                    }
                    _ => (UpdateAction::Add, false),
                };
                if step {
                    steps.push(level(instrument, side, action, depth, px, px));
                }
            }
            give(&mut books, &mut notes, &tables, &steps);
            for (instrument, twin) in twin.iter().enumerate() {
                let book = books.book(InstrumentId(instrument as u32)).unwrap();
                for side in Side::BOTH {
                    let levels: Vec<_> = book.levels(side).map(|l| (l.px, l.qty.0 * 10i64.pow(l.qty.1 as u32))).collect();
                    prop_assert_eq!(&levels, &twin[side as usize]);
                }
            }
        }
    }
}
