//! Any bytes as events, by line and as frames of a damaged tape: books take or count them, and stay whole.

use unitape_model::Side;
use unitape_book::{Basis, Books, BookOptions};
use unitape_codec::events::{ParsedEventLine, LineParseOptions, parse_line};
use unitape_model::{Dictionary, Event, frames};

pub fn run(data: &[u8]) {
    let mut books = Books::new(BookOptions { levels_max: 20, orders_per_book_max: 50, ..BookOptions::default() });
    let (mut names, mut arena) = (Dictionary::default(), Vec::new());
    for line in data.split(|b| *b == b'\n') {
        arena.clear();
        let read = parse_line(line, &mut names, &mut arena, &LineParseOptions::default());
        if let Ok(ParsedEventLine::Event { .. }) = read {
            books.on_event(&Event::new(&arena).expect("the frame just made"));
        }
    }
    for (_, _, frame) in frames(data) {
        if let Some(event) = Event::new(frame) {
            books.on_event(&event);
        }
    }
    let mut orders = 0;
    for id in books.listings() {
        let book = books.book(id, Basis::Orders);
        orders += book.unqueued_orders().count();
        for side in Side::BOTH {
            let mut last = None;
            for level in book.levels(side) {
                let better = |last| if side == Side::Buy { last > level.px } else { last < level.px };
                assert!(last.is_none_or(better), "levels out of order");
                last = Some(level.px);
                let queued = book.queue(side, level.px).count();
                assert_eq!(level.orders, Some(queued as u32));
                orders += queued;
            }
        }
        for basis in Basis::ALL {
            let bbo = books.book(id, basis).bbo();
            assert_eq!(bbo.bid, books.book(id, basis).levels(Side::Buy).next());
        }
    }
    assert_eq!(orders, books.orders());
}
