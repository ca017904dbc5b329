//! Partial quotes: a quote that named one side took the other one away.

use super::{BookFixture, long};
use crate::fx::{FxBooks, FxOptions};
use crate::{Basis, BookOptions};
use unitape_model::{Event, InstrumentId, flags};

/// Applies the lines, and returns the best prices and marks after each.
fn after(lines: &[&str]) -> Vec<(String, bool)> {
    let mut books = BookFixture::new(BookOptions::default());
    let state = |(offset, line): (usize, &&str)| {
        books.line(&long(line), flags::LAST, 64 * offset as u32);
        (books.show(Basis::Bbo), books.marks(Basis::Bbo).contains(&"stale"))
    };
    lines.iter().enumerate().map(state).collect()
}

fn last(lines: &[&str]) -> (String, bool) {
    after(lines).pop().unwrap()
}

#[test]
fn what_a_partial_quote_does_not_have_is_unchanged() {
    let whole = "bbo bid=9 bid_qty=5 ask=10 ask_qty=6";
    for (partial, book) in [
        ("ask=11 ask_qty=7", "9:5 | 11:7"),
        ("bid=8", "8:5 | 10:6"),
        ("bid_qty=4", "9:4 | 10:6"),
        ("bid_qty=4 ask_qty=3", "9:4 | 10:3"),
        ("ask_qty=0", "9:5 | "),
        ("bid=0 bid_qty=2", "0:2 | 10:6"),
        ("", "9:5 | 10:6"),
    ] {
        let lines = [whole, &format!("bbo {partial} partial=true")];
        assert_eq!(last(&lines), (book.to_owned(), false), "{partial}");
    }
    // Without `partial` a side without a price is empty, as ever.
    assert_eq!(last(&[whole, "bbo ask=11 partial=false"]), (" | 11:0".to_owned(), false));
}

/// No price is made up for a side that nobody has stated.
#[test]
fn a_book_with_an_unknown_side_is_stale() {
    let lines = [
        "bbo bid=9 partial=true",
        "bbo bid_qty=5 partial=true",
        "bbo ask_qty=7 partial=true",
        "bbo ask=10 partial=true",
    ];
    let books = [("9:0 | ", true), ("9:5 | ", true), ("9:5 | ", true), ("9:5 | 10:0", false)];
    assert_eq!(after(&lines), books.map(|(book, is_stale)| (book.to_owned(), is_stale)));
    // A side may be stated as empty.
    assert_eq!(
        last(&["bbo ask=10 partial=true", "bbo bid_qty=0 partial=true"]),
        (" | 10:0".to_owned(), false)
    );
    // The phase after a close begins without sides.
    let next_day =
        ["bbo bid=9 ask=10", "session phase=close", "session phase=open", "bbo bid=9 partial=true"];
    assert_eq!(last(&next_day), ("9:0 | ".to_owned(), true));
}

#[test]
fn a_stale_book_is_good_when_both_sides_were_stated_again() {
    let whole = "bbo bid=9 bid_qty=5 ask=10 ask_qty=6";
    let stale = [whole, "status state=stale", "bbo bid=8 partial=true"];
    // The size of before the loss is not that of the new price.
    assert_eq!(last(&stale), ("8:0 | 10:6".to_owned(), true));
    assert!(last(&[&stale[..], &["bbo bid=8.5 bid_qty=1 partial=true"]].concat()).1);
    assert!(last(&[&stale[..], &["bbo ask_qty=7 partial=true"]].concat()).1, "its price may be another");
    assert_eq!(last(&[&stale[..], &["bbo ask=11 partial=true"]].concat()), ("8:0 | 11:0".to_owned(), false));
    // A side that was stated before the next loss is not known after it.
    let again = ["status state=stale", "bbo ask=11 partial=true"];
    assert!(last(&[&stale[..], &again].concat()).1);
    assert!(!last(&[&stale[..], &again, &["bbo bid=8 partial=true"]].concat()).1);
}

/// A size of an empty side shows that its price was missed.
#[test]
fn a_size_of_an_empty_side_is_a_fault() {
    let mut books = BookFixture::new(BookOptions::default());
    books.feed("bbo bid=9 bid_qty=5");
    books.feed("bbo ask_qty=7 bid=8 partial=true");
    assert_eq!((books.show(Basis::Bbo), books.marks(Basis::Bbo)), ("9:5 | ".to_owned(), vec!["stale"]));
    assert_eq!(books.faults(), [("bad_level", 1)]);
}

/// A repeat that says nothing new leaves the book good.
#[test]
fn a_repeated_partial_quote_is_left_out() {
    let whole = "bbo bid=9 bid_qty=5 ask=10 ask_qty=6";
    let repeat = |more: &str| last(&[whole, &format!("bbo {more} partial=true repeat=Y")]);
    for more in ["bid=9", "bid_qty=5 ask=10", "ask=10 ask_qty=6"] {
        assert_eq!(repeat(more), ("9:5 | 10:6".to_owned(), false), "{more}");
    }
    for more in ["bid=8", "ask_qty=5", "bid_qty=0"] {
        assert_eq!(repeat(more), ("9:5 | 10:6".to_owned(), true), "{more}");
    }
}

/// A venue of which a side is not known is left out of the best price over all venues.
#[test]
fn an_unknown_side_takes_no_part_in_the_best_price_over_venues() {
    let mut books = BookFixture::new(BookOptions::default());
    books.feed("bbo venue=CHIX bid=9 bid_qty=5 ask=11 ask_qty=5");
    books.feed("bbo bid=10 bid_qty=1 partial=true");
    let over = |books: &BookFixture| {
        let over = books.books.consolidated(InstrumentId(1));
        let sides = [over.bid, over.ask].map(|side| side.unwrap().level.px.to_string());
        (sides, over.marks.names().any(|mark| mark == "stale"))
    };
    assert_eq!(over(&books), (["9", "11"].map(str::to_owned), true));
    let changes = books.feed("bbo ask=10.5 ask_qty=1 partial=true").to_vec();
    assert!(changes.last().unwrap().consolidated_changed);
    assert_eq!(over(&books), (["10", "10.5"].map(str::to_owned), false));
    books.feed("bbo bid=8 partial=true");
    assert_eq!(over(&books), (["9", "10.5"].map(str::to_owned), false));
}

/// The best price of many banks is made of `quote` events; a `bbo`, partial or not, is none of theirs.
#[test]
fn banks_do_not_quote_by_bbo() {
    let mut books = BookFixture::new(BookOptions::default());
    let sizes = vec![unitape_model::Decimal::from_int(1)];
    let mut fx = FxBooks::new(FxOptions { sizes, ..FxOptions::default() }).unwrap();
    fx.define_publisher(1, "XLON");
    fx.define_instrument(1, "EURUSD");
    for short in ["bbo bid=9 ask=10", "bbo ask=11 partial=true"] {
        assert!(books.parse(&long(short), flags::LAST, 0));
        fx.on_event(&Event::new(&books.arena).unwrap(), &mut |price| panic!("{price:?}"));
    }
    assert_eq!((fx.books().len(), fx.counters().quotes), (0, 0));
}
