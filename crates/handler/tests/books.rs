//! Steps to books and calls: what is subscribed is told, what is not is not applied, and what cannot be trusted says so.

use proptest::prelude::*;
use unitape_feed::fast::{
    Action, At, Channel, Instrument, Level, Outcome, Product, Role, Step, Steps, Tables, Trade,
};
use unitape_handler::{Books, Gap, Listener, Side, Subscription, Update};
use unitape_model::{Decimal, Price};

/// Notes what it is told.
#[derive(Default)]
struct Notes {
    lines: Vec<String>,
}

impl Listener for Notes {
    fn book(&mut self, update: &Update<'_>) {
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

    fn trade(&mut self, _: &At<'_>, trade: &Trade) {
        self.lines.push(format!("trade {} {}", trade.instrument, trade.px.0));
    }

    fn stale(&mut self, _: &At<'_>, instrument: u32) {
        self.lines.push(format!("stale {instrument}"));
    }

    fn recovered(&mut self, _: &At<'_>, instrument: u32) {
        self.lines.push(format!("recovered {instrument}"));
    }

    fn instrument(&mut self, at: &At<'_>, instrument: u32) {
        self.lines.push(format!("instrument {}", at.tables.instruments[instrument as usize].id));
    }

    fn gap(&mut self, _: &At<'_>, gap: Gap) {
        self.lines.push(format!("{gap:?}"));
    }
}

/// Two products, `F` of the group `bonds` with instruments 0 and 1, `X` with instrument 2.
fn tables(named: bool) -> Tables {
    let name = |name: &str| if named { name.to_owned() } else { String::new() };
    let product = |id: &str, group: &str| Product {
        id: id.into(),
        name: name(id),
        group: name(group),
        ..Product::default()
    };
    let instrument =
        |id: &str, product| Instrument { id: id.into(), product, depth: Some(3), ..Instrument::default() };
    Tables {
        channels: vec![Channel { name: "ref".into(), role: Role::Reference }],
        products: vec![product("F", "bonds"), product("X", "")],
        instruments: vec![instrument("F1", 0), instrument("F2", 0), instrument("X1", 1)],
    }
}

fn give(books: &mut Books, notes: &mut Notes, tables: &Tables, steps: &[Step<'_>]) {
    let at = At {
        tables,
        channel: 0,
        line: 0,
        snapshot: false,
        sequence: Some(1),
        ts_event: 1,
        ts_recv: 2,
        place: 0,
        length: 0,
    };
    let mut taker = books.take(notes);
    for step in steps {
        taker.step(&at, *step);
    }
    taker.step(&at, Step::End(Outcome::Used));
}

fn level(instrument: u32, side: Side, action: Action, depth: u16, px: i64, qty: i64) -> Step<'static> {
    let side = match side {
        Side::Buy => unitape_feed::fast::Side::Buy,
        Side::Sell => unitape_feed::fast::Side::Sell,
    };
    Step::Level(Level {
        instrument,
        side,
        action,
        px: Price(px),
        qty: Some(Decimal::from_int(qty)),
        orders: None,
        depth: Some(depth),
    })
}

/// All instruments, of products that are whole.
const KNOWN: [Step<'static>; 5] = [
    Step::Instrument(0),
    Step::Instrument(1),
    Step::Instrument(2),
    Step::Whole { product: 0 },
    Step::Whole { product: 1 },
];

#[test]
fn one_call_for_each_book_of_a_message() {
    let tables = tables(true);
    let (mut books, mut notes) = (Books::default(), Notes::default());
    books.subscribe(Subscription::Group("bonds".into()), &tables);
    give(&mut books, &mut notes, &tables, &KNOWN);
    notes.lines.clear();
    let trade = Trade { instrument: 1, px: Price(7), qty: Decimal::from_int(1), id: None, aggressor: None };
    give(
        &mut books,
        &mut notes,
        &tables,
        &[
            level(1, Side::Buy, Action::Add, 1, 100, 5),
            level(0, Side::Sell, Action::Add, 1, 200, 3),
            level(2, Side::Sell, Action::Add, 1, 200, 3),
            level(1, Side::Buy, Action::Add, 2, 99, 6),
            Step::Trade(trade),
            Step::Trade(Trade { instrument: 2, ..trade }),
            level(1, Side::Buy, Action::Delete, 1, 100, 0),
        ],
    );
    assert_eq!(notes.lines, ["trade 1 7", "book 1 Add01 Add02 Delete01 | 6@99 |", "book 0 Add11 | | 3@200"]);
    assert_eq!(books.book(2).map(|_| ()), None, "it is not subscribed");
    let counters = books.counters();
    assert_eq!((counters.levels, counters.passed_over, counters.updates, counters.trades), (4, 1, 4, 1));
    assert_eq!(books.book(1).unwrap().best(Side::Buy).unwrap().px, 99);
    // A fourth level of three: the last one falls out, as the venue's does.
    let adds: Vec<_> = (1..=4).map(|n| level(0, Side::Buy, Action::Add, 1, n, n)).collect();
    give(&mut books, &mut notes, &tables, &adds);
    assert_eq!(notes.lines.last().unwrap(), "book 0 Add01 Add01 Add01 Add01 | 4@4 3@3 2@2 | 3@200");
}

/// Where reference data come behind the first levels, the book was once without them.
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
        &[level(0, Side::Buy, Action::Add, 1, 100, 5), level(2, Side::Buy, Action::Add, 1, 100, 5)],
    );
    assert!(notes.lines.is_empty(), "{:?}", notes.lines);
    give(&mut books, &mut notes, &after, &[Step::Product(0), Step::Product(1)]);
    assert_eq!(notes.lines, ["instrument F1", "instrument F2", "book 0 | 5@100 |", "book 1 | |"]);
    assert!(books.book(2).is_none());
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
            Step::Missing { product: 0, from: 3, to: 4 },
            Step::Stale { instrument: 0, mended: true },
            Step::Stale { instrument: 1, mended: true },
        ],
    );
    assert!(books.book(0).unwrap().is_stale());
    give(
        &mut books,
        &mut notes,
        &tables,
        &[
            Step::Clear { instrument: 0 },
            level(0, Side::Buy, Action::Add, 1, 100, 5),
            Step::Recovered { instrument: 0 },
        ],
    );
    assert_eq!(
        notes.lines,
        [
            "Messages { product: 0, from: 3, to: 4 }",
            "stale 0",
            "recovered 0",
            "book 0 cleared Add01 | 5@100 |",
        ]
    );
    // A level that cannot be: the book is not the venue's, until it is given anew.
    notes.lines.clear();
    give(&mut books, &mut notes, &tables, &[level(0, Side::Buy, Action::Change, 3, 100, 5)]);
    assert_eq!(notes.lines, ["stale 0", "book 0 stale | 5@100 |"]);
    assert_eq!((books.counters().faults, books.counters().stale), (1, 2));
    notes.lines.clear();
    give(&mut books, &mut notes, &tables, &[Step::Clear { instrument: 0 }]);
    assert_eq!(notes.lines, ["recovered 0", "book 0 cleared | |"]);
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
    let put = |depth, px| level(0, Side::Buy, Action::Add, depth, px, px);
    give(&mut books, &mut notes, &tables, &[put(1, 10), put(2, 9)]);
    let overlay = |depth, px| level(0, Side::Buy, Action::Change, depth, px, px);
    give(&mut books, &mut notes, &tables, &[overlay(1, 8), overlay(2, 7)]);
    assert_eq!((notes.lines.len(), books.counters().faults), (2, 0), "{:?}", notes.lines);
    give(&mut books, &mut notes, &tables, &[overlay(1, 6)]);
    assert_eq!(notes.lines[2..], ["stale 0", "book 0 stale Change01 | 6@6 7@7 |"]);
    assert_eq!((books.counters().faults, books.counters().stale), (1, 1));
    give(&mut books, &mut notes, &tables, &[overlay(2, 5)]);
    assert_eq!(notes.lines[4..], ["recovered 0", "book 0 Change02 | 6@6 5@5 |"]);
}

/// Where a venue has no snapshots levels go on behind a gap, and the book once passed for the venue's again with the first.
#[test]
fn what_nothing_mends_stays_stale() {
    let tables = tables(true);
    let (mut books, mut notes) = (Books::default(), Notes::default());
    books.subscribe(Subscription::All, &tables);
    give(&mut books, &mut notes, &tables, &KNOWN);
    notes.lines.clear();
    give(&mut books, &mut notes, &tables, &[Step::Stale { instrument: 0, mended: false }]);
    give(&mut books, &mut notes, &tables, &[level(0, Side::Buy, Action::Add, 1, 100, 5)]);
    assert_eq!(notes.lines, ["stale 0", "book 0 stale Add01 | 5@100 |"]);
    give(&mut books, &mut notes, &tables, &[Step::Clear { instrument: 0 }]);
    assert!(!books.book(0).unwrap().is_stale());
}

/// What came while nobody asked is not known, and a book without it must not pass for the venue's.
#[test]
fn who_subscribes_late_is_told_so() {
    let tables = tables(true);
    let (mut books, mut notes) = (Books::default(), Notes::default());
    give(&mut books, &mut notes, &tables, &KNOWN);
    give(&mut books, &mut notes, &tables, &[level(0, Side::Buy, Action::Add, 1, 100, 5)]);
    books.subscribe(Subscription::Product("F".into()), &tables);
    assert!(books.book(0).unwrap().is_stale());
    assert!(!books.book(1).unwrap().is_stale(), "nothing was told of it");
    give(&mut books, &mut notes, &tables, &[Step::Clear { instrument: 0 }]);
    assert!(!books.book(0).unwrap().is_stale());
    books.unsubscribe(&Subscription::Product("F".into()), &tables);
    assert!(books.book(0).is_none());
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
                        (Action::Add, true)
                    }
                    1 if at < levels.len() => {
                        levels[at] = (px, px);
                        (Action::Change, true)
                    }
                    2 if at < levels.len() => {
                        levels.remove(at);
                        (Action::Delete, true)
                    }
                    3 => {
                        twin[instrument as usize] = Default::default();
                        steps.push(Step::Clear { instrument });
                        (Action::Add, false)
                    }
                    _ => (Action::Add, false),
                };
                if step {
                    steps.push(level(instrument, side, action, depth, px, px));
                }
            }
            give(&mut books, &mut notes, &tables, &steps);
            for (instrument, twin) in twin.iter().enumerate() {
                let book = books.book(instrument as u32).unwrap();
                for side in Side::BOTH {
                    let levels: Vec<_> = book.levels(side).map(|l| (l.px, l.qty.0 * 10i64.pow(l.qty.1 as u32))).collect();
                    prop_assert_eq!(&levels, &twin[side as usize]);
                }
            }
        }
    }
}
