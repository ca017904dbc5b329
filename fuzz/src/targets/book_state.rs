//! The state of good books with its bytes changed by the input: there are no books, or some that give the same state
//! again and take further events. The input is changes of 12 bytes each.

use std::sync::OnceLock;

use unitape_book::{Basis, BookOptions, Books, TapeBooks};
use unitape_codec::events::{LineParseOptions, ParsedEventLine, parse_line};
use unitape_model::{DefinitionTable, Dictionary, Event, Side};

pub fn run(data: &[u8]) {
    let mut state = good().to_vec();
    for change in data.chunks_exact(12).take(8) {
        apply(&mut state, change.try_into().expect("12 bytes"));
    }
    let Some(mut tape) = from_state(&state) else { return };
    let mut again = Vec::new();
    tape.encode_state(&mut again);
    assert_eq!(again, state);
    feed(&mut tape.books, AFTER);
    look_at(&tape.books);
}

fn from_state(state: &[u8]) -> Option<TapeBooks> {
    TapeBooks::decode_state(BookOptions::default(), DefinitionTable::default(), state)
}

/// One change: where, which, and eight bytes.
fn apply(state: &mut Vec<u8>, change: &[u8; 12]) {
    let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % state.len();
    let bytes: &[u8] = match change[2] % 5 {
        0 => &change[4..5],
        1 => &change[4..8],
        2 => &change[4..],
        // A number that may be a slot, a count or a length.
        3 => &[change[3] % 16, 0, 0, 0],
        _ => return state.truncate(at.max(1)),
    };
    let room = bytes.len().min(state.len() - at);
    state[at..at + room].copy_from_slice(&bytes[..room]);
}

fn good() -> &'static [u8] {
    static STATE: OnceLock<Vec<u8>> = OnceLock::new();
    STATE.get_or_init(|| {
        let mut tape = TapeBooks::new(BookOptions::default());
        feed(&mut tape.books, BEFORE);
        let mut state = Vec::new();
        tape.encode_state(&mut state);
        assert!(from_state(&state).is_some());
        state
    })
}

fn feed(books: &mut Books, lines: &str) {
    // The same names in both, in the same order.
    let (mut names, mut arena) = (Dictionary::default(), Vec::new());
    for line in lines.lines() {
        arena.clear();
        let read = parse_line(line.as_bytes(), &mut names, &mut arena, &LineParseOptions::default());
        let Ok(ParsedEventLine::Event { .. }) = read else { panic!("{line}: {read:?}") };
        books.on_event(&Event::new(&arena).expect("the frame just made"));
    }
}

fn look_at(books: &Books) {
    let mut orders = 0;
    for id in books.listings() {
        for basis in Basis::ALL {
            let book = books.book(id, basis);
            orders += if basis == Basis::Orders { book.unqueued_orders().count() } else { 0 };
            for side in Side::BOTH {
                for level in book.levels(side) {
                    orders += book.queue(side, level.px).count();
                }
            }
        }
    }
    assert_eq!(orders, books.orders());
}

const BEFORE: &str = r#"{"kind":"session","ts":1,"venue":"XLON","phase":"open"}
{"kind":"order_new","ts":1,"venue":"XLON","instr":"VOD","oid":"A","side":"B","px":"10","qty":"5"}
{"kind":"order_new","ts":1,"venue":"XLON","instr":"VOD","oid":"B","side":"B","px":"10","qty":"7.5","display":"2"}
{"kind":"order_new","ts":1,"venue":"XLON","instr":"VOD","oid":"C","side":"B","px":"9","qty":"1"}
{"kind":"order_new","ts":2,"venue":"XLON","instr":"VOD","oid":"D","side":"S","px":"11","qty":"20"}
{"kind":"order_new","ts":2,"venue":"XLON","instr":"VOD","oid":"E","side":"B","px":"11","qty":"30"}
{"kind":"order_new","ts":2,"venue":"XLON","instr":"VOD","oid":"F","side":"S","px":"12","qty":"3","tif":"IOC"}
{"kind":"order_new","ts":2,"venue":"XPAR","instr":"VOD","oid":"A","side":"S","px":"12","qty":"3"}
{"kind":"order_cancel","ts":3,"venue":"XLON","instr":"VOD","oid":"C"}
{"kind":"level","ts":3,"venue":"XLON","instr":"BP","action":"A","side":"B","px":"4","qty":"100"}
{"kind":"level","ts":3,"venue":"XLON","instr":"BP","action":"A","side":"B","px":"5","qty":"100","orders":2}
{"kind":"bbo","ts":4,"venue":"XPAR","instr":"BP","bid":"4","bid_qty":"1","ask":"6","ask_qty":"2"}
{"kind":"status","ts":5,"venue":"XPAR","state":"stale"}"#;

const AFTER: &str = r#"{"kind":"exec","ts":6,"venue":"XLON","instr":"VOD","oid":"D","side":"S","px":"11","qty":"20"}
{"kind":"order_amend","ts":6,"venue":"XLON","instr":"VOD","oid":"B","side":"B","px":"10","qty":"4"}
{"kind":"order_new","ts":6,"venue":"XLON","instr":"VOD","oid":"G","side":"S","px":"10","qty":"0.25"}
{"kind":"order_new","ts":6,"venue":"XLON","instr":"VOD","oid":"A","side":"S","px":"13","qty":"3"}
{"kind":"order_cancel","ts":7,"venue":"XPAR","instr":"VOD","oid":"A"}
{"kind":"exec","ts":7,"venue":"XLON","instr":"VOD","oid":"B","side":"B","px":"10","qty":"1"}
{"kind":"level","ts":7,"venue":"XLON","instr":"BP","action":"D","side":"B","px":"5"}
{"kind":"status","ts":8,"venue":"XPAR","state":"recovered"}
{"kind":"session","ts":9,"venue":"XLON","phase":"auction"}
{"kind":"session","ts":9,"venue":"XLON","phase":"close"}
{"kind":"session","ts":9,"venue":"XLON","phase":"open"}"#;
