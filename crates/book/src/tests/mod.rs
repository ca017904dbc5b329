//! Books from event lines: what each event means, case by case.

use crate::value::{OrderId, QuoteFlags};
use crate::{
    Basis, BookChange, BookFault, BookOptions, Books, DepthLimit, LevelAction, LevelBook, LevelChange,
};
use unitape_codec::events::{LineParseOptions, parse_line};
use unitape_model::{Dictionary, Event, InlineId, InstrumentId, Price, Side, flags};

mod partial;
mod reductions;
mod repeats;
mod twin;

/// Books that are fed with event lines.
struct BookFixture {
    books: Books,
    names: Dictionary,
    arena: Vec<u8>,
}

impl BookFixture {
    fn new(options: BookOptions) -> Self {
        Self { books: Books::new(options), names: Dictionary::default(), arena: Vec::new() }
    }

    fn line(&mut self, line: &str, flags: u8, offset: u32) -> &[BookChange] {
        assert!(self.parse(line, flags, offset), "{line}");
        self.books.on_event(&Event::new(&self.arena).unwrap())
    }

    /// Makes the event; false when the line is none.
    fn parse(&mut self, line: &str, flags: u8, offset: u32) -> bool {
        self.arena.clear();
        let options = LineParseOptions { flags, offset, source: 1, reads_flags: false };
        parse_line(line.as_bytes(), &mut self.names, &mut self.arena, &options).is_ok()
    }

    /// Applies a line of short form: `kind field=value …`, of VOD at XLON unless it says otherwise.
    fn feed(&mut self, short: &str) -> &[BookChange] {
        let line = long(short);
        self.line(&line, flags::LAST, 0)
    }

    /// The book of orders: bids | asks, best first, each as price:quantity(orders by id).
    fn orders(&self) -> String {
        self.show(Basis::Orders)
    }

    fn show(&self, basis: Basis) -> String {
        let Some(id) = self.books.find(1, InstrumentId(1)) else { return String::new() };
        let book = self.books.book(id, basis);
        let side = |side| {
            let level = |l: crate::PriceLevel| {
                let ids: Vec<_> = book.queue(side, l.px).map(|o| o.oid.to_string()).collect();
                let ids = if basis == Basis::Orders { format!("({})", ids.join(",")) } else { String::new() };
                format!("{}:{}{ids}", l.px, l.qty)
            };
            book.levels(side).map(level).collect::<Vec<_>>().join(" ")
        };
        format!("{} | {}", side(Side::Buy), side(Side::Sell))
    }

    fn marks(&self, basis: Basis) -> Vec<&'static str> {
        self.books.book(self.books.find(1, InstrumentId(1)).unwrap(), basis).marks().names().collect()
    }

    fn faults(&self) -> Vec<(&'static str, u64)> {
        self.books
            .listing(self.books.find(1, InstrumentId(1)).unwrap())
            .faults()
            .nonzero()
            .map(|(f, n)| (f.name(), n))
            .collect()
    }
}

/// A line from its short form.
fn long(short: &str) -> String {
    let mut words = short.split_whitespace();
    let kind = words.next().unwrap();
    let kind = match kind {
        "new" | "amend" | "cancel" => format!("order_{kind}"),
        kind => kind.to_owned(),
    };
    let mut line = format!("{{\"kind\":\"{kind}\"");
    let fields: Vec<_> = words.map(|w| w.split_once('=').unwrap()).collect();
    for (name, value) in [("ts", "1"), ("venue", "XLON"), ("instr", "VOD")] {
        if !fields.iter().any(|f| f.0 == name) {
            line += &format!(",\"{name}\":{}", json(name, value));
        }
    }
    for (name, value) in fields.iter().filter(|f| !f.1.is_empty()) {
        line += &format!(",\"{name}\":{}", json(name, value));
    }
    line + "}"
}

fn json(name: &str, value: &str) -> String {
    let number =
        matches!(name, "ts" | "depth" | "orders" | "partial") || name == "oid" && value.starts_with('+');
    if number { value.trim_start_matches('+').to_owned() } else { format!("\"{value}\"") }
}

/// Applies all lines and returns the book of orders.
fn orders(lines: &[&str]) -> String {
    let mut books = BookFixture::new(BookOptions::default());
    lines.iter().for_each(|l| _ = books.feed(l));
    books.orders()
}

/// A place in the queue decides who is executed; an amend that keeps one it should lose shows a queue that is not.
#[test]
fn an_amend_keeps_its_place_only_with_less_at_the_same_price() {
    let queue = ["new oid=A side=B px=10 qty=5", "new oid=B side=B px=10 qty=5"];
    let after = |amend: &str| orders(&[&queue[..], &[amend]].concat());
    assert_eq!(after("amend oid=A side=B px=10 qty=3"), "10:8(A,B) | ");
    assert_eq!(after("amend oid=A side=B px=10 qty=5"), "10:10(A,B) | ");
    assert_eq!(after("amend oid=A side=B px=10 qty=6"), "10:11(B,A) | ");
    assert_eq!(after("amend oid=A side=B px=11 qty=5"), "11:5(A) 10:5(B) | ");
    assert_eq!(after("amend oid=A qty=2"), "10:7(A,B) | ", "what is not said stays");
    assert_eq!(after("amend oid=A px=9"), "10:5(B) 9:5(A) | ");
}

/// FIX 38 is the whole of an order; read as what is left, an amend after an execution made the order too large.
#[test]
fn the_quantity_of_an_amend_holds_what_was_executed() {
    let head = ["new oid=A side=S px=10 qty=10", "exec oid=A side=S px=10 qty=4"];
    let after = |amend: &str| orders(&[&head[..], &[amend]].concat());
    assert_eq!(after("amend oid=A side=S px=10 qty=9"), " | 10:5(A)");
    assert_eq!(after("amend oid=A side=S px=10 qty=4"), " | ");
}

/// A venue announces first and executes then: without care, every aggressive order shows as a crossed book.
#[test]
fn an_order_that_meets_the_other_side_is_seen_when_it_is_matched() {
    let mut t = BookFixture::new(BookOptions::default());
    t.feed("new oid=S1 side=S px=10 qty=5");
    t.feed("new oid=S2 side=S px=11 qty=5");
    t.feed("new oid=B1 side=B px=10.5 qty=8");
    assert_eq!((t.orders(), t.marks(Basis::Orders)), (" | 10:5(S1) 11:5(S2)".into(), vec![]));
    let id = OrderId::from_inline(InlineId::Text(b"B1")).unwrap();
    let book = t.books.book(t.books.find(1, InstrumentId(1)).unwrap(), Basis::Orders);
    assert!(book.order(&id).is_some_and(|o| !o.is_queued) && book.unqueued_orders().count() == 1);
    t.feed("exec oid=B1 side=B px=10 qty=5");
    t.feed("exec oid=S1 side=S px=10 qty=5");
    assert_eq!(t.orders(), "10.5:3(B1) | 11:5(S2)");
    // An amend that meets is matched in the same way, and its rest goes to the end of the queue.
    t.feed("new oid=B2 side=B px=11 qty=1");
    t.feed("new oid=B3 side=B px=10 qty=1");
    assert_eq!(t.orders(), "11:1(B2) 10.5:3(B1) 10:1(B3) | 11:5(S2)", "the venue is done with B2");
    assert_eq!(t.marks(Basis::Orders), ["locked"]);
    assert_eq!(t.faults(), []);
}

/// Orders that never rest are known, so that their executions are no fault, and are never seen.
#[test]
fn immediate_stop_and_market_orders_stand_in_no_queue() {
    for terms in
        ["px=9 tif=IOC", "px=9 tif=FOK", "type=market tif=IOC", "px=9 type=stoplmt stop_px=12", "px="]
    {
        let mut t = BookFixture::new(BookOptions::default());
        t.feed(&format!("new oid=A side=B qty=8 {terms}"));
        assert_eq!(t.orders(), " | ", "{terms}");
        t.feed("exec oid=A side=B px=9 qty=2");
        t.feed("cancel oid=A side=B");
        assert_eq!((t.faults(), t.books.orders()), (vec![], 0), "{terms}");
    }
    let triggered = ["new oid=A side=B px=9 qty=5 type=stoplmt", "amend oid=A side=B px=9 qty=5 type=limit"];
    assert_eq!(orders(&triggered), "9:5(A) | ");
}

/// In an auction a crossed book is no sign of trouble, and nobody is matched as he comes.
#[test]
fn auctions_cross_and_a_new_session_begins_empty() {
    let mut t = BookFixture::new(BookOptions::default());
    t.feed("session phase=auction instr=");
    t.feed("new oid=B side=B px=11 qty=5");
    t.feed("new oid=S side=S px=10 qty=7");
    assert_eq!(
        (t.orders(), t.marks(Basis::Orders)),
        ("11:5(B) | 10:7(S)".into(), vec!["crossed", "auction"])
    );
    assert!(t.books.consolidated(InstrumentId(1)).bid.is_none(), "an auction has no best price yet");
    t.feed("exec oid=B side=B px=10.5 qty=5 liq=X");
    t.feed("exec oid=S side=S px=10.5 qty=5 liq=X");
    t.feed("session phase=open instr=");
    assert_eq!((t.orders(), t.marks(Basis::Orders)), (" | 10:2(S)".into(), vec![]));
    assert_eq!(t.books.consolidated(InstrumentId(1)).ask.unwrap().level.px, Price(10_000_000_000));
    t.feed("session phase=halt venue=");
    assert_eq!(t.marks(Basis::Orders), ["halted"]);
    assert_eq!(t.books.listing(t.books.find(1, InstrumentId(1)).unwrap()).crossings(), 0);
    t.feed("session phase=close");
    assert_eq!((t.orders().as_str(), t.marks(Basis::Orders)), (" | 10:2(S)", vec!["closed"]));
    t.feed("new oid=B side=B px=9 qty=5");
    t.feed("cancel oid=S side=S");
    assert_eq!(
        (t.orders(), t.faults()),
        ("9:5(B) | ".into(), vec![]),
        "the venue cancels what is left, or does not"
    );
    let changes = t.feed("session phase=pre").to_vec();
    assert!(changes.len() == 1 && changes[0].best_changed && changes[0].phase_changed);
    assert_eq!((t.orders(), t.books.orders()), (" | ".into(), 0));
    t.feed("session phase=close instr=");
    // A venue that is closed is closed for an instrument that it names only now.
    t.feed("bbo instr=NEW bid=1 ask=2");
    assert!(
        t.books.listing(t.books.find(1, InstrumentId(2)).unwrap()).bbo().marks.contains(QuoteFlags::CLOSED)
    );
}

/// An impossible statement of a venue must not end the run, and must not go unseen either.
#[test]
fn what_cannot_be_is_counted_and_makes_the_book_stale() {
    let cases = [
        ("exec oid=Z side=B px=10 qty=1", "unknown_order", "10:5(A) | "),
        ("amend oid=Z side=B px=10 qty=1", "unknown_order", "10:5(A) | "),
        ("cancel oid=Z side=B", "unknown_order", "10:5(A) | "),
        ("new oid=A side=B px=9 qty=1", "duplicate_order", "9:1(A) | "),
        ("exec oid=A side=B px=10 qty=6", "negative_left", " | "),
        ("amend oid=A side=B px=10 qty=-1", "negative_left", " | "),
        ("exec oid=A side=S px=10 qty=1", "wrong_side", "10:4(A) | "),
        ("amend oid=A side=S px=9 qty=1", "wrong_side", "9:1(A) | "),
        ("new oid=B px=9 qty=1", "wrong_side", "10:5(A) | "),
        ("new oid=B side=B px=9", "bad_quantity", "10:5(A) | "),
        ("new oid=B side=B px=9 qty=0", "bad_quantity", "10:5(A) | "),
        ("exec oid=A side=B px=10 qty=0", "bad_quantity", "10:5(A) | "),
        ("exec oid=A side=B px=10 qty=0.000000000000000000000000000001", "bad_quantity", "10:5(A) | "),
        ("amend oid=A qty=9000000000000000000000000000000", "bad_quantity", "10:5(A) | "),
    ];
    for (line, fault, book) in cases {
        let mut t = BookFixture::new(BookOptions::default());
        t.feed("new oid=A side=B px=10 qty=5");
        let change = t.feed(line)[0];
        assert_eq!(change.fault.map(BookFault::name), Some(fault), "{line}");
        assert_eq!((t.faults(), t.orders()), (vec![(fault, 1)], book.into()), "{line}");
        assert_eq!(t.marks(Basis::Orders), ["stale"], "{line}");
        assert!(t.books.consolidated(InstrumentId(1)).marks.contains(QuoteFlags::STALE), "{line}");
        let id = t.books.find(1, InstrumentId(1)).unwrap();
        t.books.mark_recovered(id, Basis::Orders);
        assert!(t.books.consolidated(InstrumentId(1)).marks.is_empty(), "{line}");
    }
}

/// A tiny quantity makes the book's unit finer. Stored quantities must stay exact; one that then does not fit is
/// refused.
#[test]
fn quantities_of_any_fineness_are_added_exactly() {
    let fine =
        ["new oid=A side=B px=10 qty=1000000000000", "new oid=B side=B px=10 qty=0.000000000000000001"];
    assert_eq!(orders(&fine), "10:1000000000000.000000000000000001(A,B) | ");
    let back = [&fine[..], &["exec oid=A px=10 qty=1", "cancel oid=B"]].concat();
    assert_eq!(orders(&back), "10:999999999999(A) | ");
    let beyond = [
        "new oid=A side=B px=10 qty=1000000000000000000000000000000",
        "new oid=B side=B px=10 qty=0.000000000000000000000000000001",
    ];
    assert_eq!(orders(&beyond), "10:1000000000000000000000000000000(A) | ");
}

/// Levels by price and by depth.
#[test]
fn levels_by_price_and_by_depth() {
    let mut t = BookFixture::new(BookOptions { levels_max: 3, ..BookOptions::default() });
    for (line, book) in [
        ("level side=B action=A px=10 qty=5 orders=2", "10:5 | "),
        ("level side=B action=A px=9 qty=1", "10:5 9:1 | "),
        ("level side=B action=C px=10 qty=4", "10:4 9:1 | "),
        ("level side=S action=A px=11 qty=1", "10:4 9:1 | 11:1"),
        ("level side=B action=D px=10", "9:1 | 11:1"),
        ("level side=S action=C px=11 qty=0", "9:1 | "),
        ("level side=B action=R", " | "),
        ("level side=S action=A px=11 qty=1 depth=1", " | 11:1"),
        ("level side=S action=A px=10 qty=2 depth=1", " | 10:2 11:1"),
        ("level side=S action=A px=12 qty=3 depth=3", " | 10:2 11:1 12:3"),
        ("level side=S action=D depth=3", " | 10:2 11:1"),
        ("level side=S action=A px=10.5 qty=4 depth=2", " | 10:2 10.5:4 11:1"),
        ("level side=S action=C px=10.6 qty=4 depth=2", " | 10:2 10.6:4 11:1"),
        ("level side=S action=C qty=6 depth=2", " | 10:2 10.6:6 11:1"),
        ("level side=S action=D depth=1", " | 10.6:6 11:1"),
        ("level action=R", " | "),
        ("level side=B action=U px=10 qty=5", "10:5 | "),
        ("level side=B action=U px=9 qty=1 orders=1", "10:5 9:1 | "),
        ("level side=B action=U px=10 qty=4", "10:4 9:1 | "),
        ("level side=B action=U px=9 qty=0", "10:4 | "),
        ("level side=B action=U px=9 qty=0", "10:4 | "),
        ("level side=B action=D px=9 qty=0", "10:4 | "),
        ("level side=B action=D px=10 qty=0", " | "),
    ] {
        let fault = t.feed(line)[0].fault;
        assert_eq!((t.show(Basis::Levels).as_str(), fault), (book, None), "{line}");
    }
    for (line, fault) in [
        ("level side=B action=C px=10 qty=4", "unknown_level"),
        ("level side=B action=A px=10 qty=4", "duplicate_level"),
        ("level side=B action=D px=11", "unknown_level"),
        ("level side=B action=A px=12 qty=1 depth=3", "bad_level"),
        ("level side=B action=A px=12 qty=1 depth=0", "bad_level"),
        ("level side=B action=A px=9 qty=1 depth=1", "unsorted_level"),
        ("level side=B action=A qty=1", "bad_level"),
        ("level action=A px=9 qty=1", "bad_level"),
        ("level side=B action=A px=9", "bad_quantity"),
        ("level side=S action=D depth=1", "bad_level"),
        ("level side=B action=D px=11 qty=1", "unknown_level"),
        ("level side=B action=U px=9 qty=1 depth=1", "bad_level"),
        ("level side=B action=U px=9 qty=0 depth=1", "bad_level"),
        ("level side=B action=U px=9", "bad_quantity"),
    ] {
        assert_eq!(t.feed(line)[0].fault.map(BookFault::name), Some(fault), "{line}");
    }
    assert_eq!(t.marks(Basis::Levels), ["stale"]);
    t.feed("level action=R");
    assert!(t.marks(Basis::Levels).is_empty());
}

/// The best price over venues leaves out who does not trade and who cannot be trusted, and adds who agrees.
#[test]
fn the_best_price_over_venues() {
    let mut t = BookFixture::new(BookOptions { stale_after_ns: Some(100), ..BookOptions::default() });
    t.books.set_all_venues(4);
    for (venue, bid, ask) in
        [("XLON", "10", "12"), ("CHIX", "10", "11.5"), ("BATE", "9", "13"), ("NBBO", "99", "100")]
    {
        t.feed(&format!("bbo venue={venue} bid={bid} bid_qty=5 ask={ask} ask_qty=7"));
    }
    let show = |t: &BookFixture| {
        let c = t.books.consolidated(InstrumentId(1));
        let side = |s: Option<crate::ConsolidatedSide>| {
            s.map(|s| format!("{}:{}@{}+{}", s.level.px, s.level.qty, s.venue, s.venues))
        };
        (
            side(c.bid).unwrap_or_default(),
            side(c.ask).unwrap_or_default(),
            c.marks.names().collect::<Vec<_>>(),
        )
    };
    assert_eq!(show(&t), ("10:10@1+2".into(), "11.5:7@2+1".into(), vec![]));
    let change = *t.feed("bbo venue=BATE bid=11.5 bid_qty=1 ask=13 ask_qty=7").last().unwrap();
    assert!(change.best_changed && change.consolidated_changed);
    assert_eq!(show(&t), ("11.5:1@3+1".into(), "11.5:7@2+1".into(), vec!["locked"]));
    let change = *t.feed("bbo venue=BATE bid=11.5 bid_qty=1 ask=13 ask_qty=7").last().unwrap();
    assert!(!change.best_changed && !change.consolidated_changed, "the same again is no change");
    t.feed("session venue=CHIX phase=halt");
    assert_eq!(show(&t), ("11.5:1@3+1".into(), "12:7@1+1".into(), vec![]));
    t.feed("bbo venue=BATE bid=9 ask=13 ts=102");
    assert_eq!(show(&t), ("9:0@3+1".into(), "13:0@3+1".into(), vec!["stale"]), "XLON is too old");
}

/// The venue's published best price is the best price, and is compared with the book of its orders.
#[test]
fn the_published_best_price_is_preferred_and_checked() {
    let mut t = BookFixture::new(BookOptions::default());
    t.feed("new oid=A side=B px=10 qty=5");
    t.feed("new oid=B side=S px=12 qty=5");
    let id = t.books.find(1, InstrumentId(1)).unwrap();
    assert_eq!(t.books.listing(id).basis(), Some(Basis::Orders));
    t.feed("bbo bid=10 bid_qty=5 ask=12 ask_qty=5");
    t.feed("bbo bid=10 bid_qty=5 ask=11 ask_qty=5");
    let listing = t.books.listing(id);
    assert_eq!((listing.basis(), listing.published_checks()), (Some(Basis::Bbo), (2, 1)));
    assert_eq!(listing.bbo().ask.unwrap().px, Price(11_000_000_000));
    t.books.mark_stale(id, Basis::Bbo);
    assert_eq!(t.books.listing(id).basis(), Some(Basis::Orders), "who cannot be trusted is not preferred");
}

/// A book whose feed had lost something was shown empty, as if nobody wanted to trade.
#[test]
fn a_feed_that_says_stale_is_heard() {
    let mut t = BookFixture::new(BookOptions::default());
    let mut say = |place: u32, short: &str| {
        t.line(&long(short), flags::LAST, place);
        (t.show(Basis::Levels), t.marks(Basis::Levels))
    };
    assert_eq!(say(1, "level side=B action=A px=10 qty=5 depth=1").1, [""; 0]);
    // The `clear` of a loss empties the book, and does not mend it.
    assert_eq!(say(2, "status state=stale").1, ["stale"]);
    assert_eq!(say(2, "level action=R"), (" | ".to_owned(), vec!["stale"]));
    assert_eq!(say(3, "status state=3 reason=instrument").1, ["stale"], "a state of the venue's own");
    assert_eq!(say(4, "status state=recovered").1, [""; 0]);
    // A status does not clear a fault; only a new full book does.
    say(5, "level side=B action=C px=9 qty=1 depth=7");
    assert_eq!(say(6, "status state=recovered").1, ["stale"]);
    say(7, "status state=stale");
    say(8, "level action=R");
    assert_eq!(say(8, "level side=S action=A px=11 qty=5 depth=1"), (" | 11:5".to_owned(), vec![]));
    // A listing of which no event has said anything else is not there; it is stale when it appears.
    t.feed("status state=stale instr=NEW");
    t.feed("status state=recovered instr=OTHER");
    assert_eq!(t.books.listings().len(), 1);
    t.line(&long("new oid=A side=B px=10 qty=5 instr=NEW"), flags::LAST, 9);
    assert!(t.books.consolidated(InstrumentId(2)).marks.contains(QuoteFlags::STALE));
    t.line(&long("new oid=A side=B px=10 qty=5 instr=OTHER"), flags::LAST, 9);
    assert!(!t.books.consolidated(InstrumentId(3)).marks.contains(QuoteFlags::STALE));
}

/// A feed that marks its books itself cannot say what a missing part of the tape had. A feed that begins after the part has
/// lost nothing.
#[test]
fn a_missing_part_concerns_the_feeds_that_were_there() {
    use crate::losses::SourceBookPolicy::{Marked, Plain};
    let order = "new oid=1 side=B px=10 qty=5";
    for policy in [Plain, Marked] {
        let mut t = BookFixture::new(BookOptions::default());
        t.books.define_source(1, "a", policy);
        t.feed(order);
        assert!(!t.books.lacks_part() && t.marks(Basis::Orders).is_empty());
        t.books.on_missing_part(1);
        assert!(t.books.lacks_part());
        assert_eq!(t.marks(Basis::Orders), ["stale"], "{policy:?}");

        // A book that begins later, and the next day.
        let mut t = BookFixture::new(BookOptions::default());
        t.books.define_source(1, "a", policy);
        t.books.on_missing_part_of_all();
        t.feed(order);
        assert_eq!(t.marks(Basis::Orders), ["stale"], "{policy:?}");
        t.line(r#"{"ts":1,"kind":"status","state":"restarted"}"#, flags::LAST, 1);
        t.feed(order);
        assert!(!t.books.lacks_part() && t.marks(Basis::Orders).is_empty(), "{policy:?}");

        // Another feed has the part, and this one begins after it.
        let mut t = BookFixture::new(BookOptions::default());
        t.books.define_source(2, "b", policy);
        t.books.on_missing_part_of_all();
        t.books.define_source(1, "a", policy);
        t.feed(order);
        assert!(t.books.lacks_part() && t.marks(Basis::Orders).is_empty(), "{policy:?}");

        // Nothing says of which feed the events are.
        let mut t = BookFixture::new(BookOptions::default());
        t.books.on_missing_part_of_all();
        t.feed(order);
        assert_eq!(t.marks(Basis::Orders), ["stale"]);
    }
}

/// An order that quarantine gives back a day later must not come to life again; one that is merely late must.
#[test]
fn late_events_are_taken_unless_they_are_out_of_turn() {
    let mut t = BookFixture::new(BookOptions::default());
    t.line(&long("new oid=A side=B px=10 qty=5"), flags::LAST, 500);
    t.line(&long("new oid=B side=B px=10 qty=5"), flags::LAST | flags::LATE, 600);
    t.line(&long("new oid=C side=B px=10 qty=5"), flags::LAST | flags::LATE, 400);
    assert_eq!((t.orders(), t.faults()), ("10:10(A,B) | ".into(), vec![("late", 1)]));
    assert!(t.marks(Basis::Orders).is_empty());
    t.line(&long("new oid=A side=B px=11 qty=5"), flags::LAST | flags::SNAPSHOT, 700);
    assert_eq!((t.orders(), t.faults().len()), ("11:5(A) 10:5(B) | ".into(), 1), "a snapshot says it again");
}

/// Bounds are met with a counter, not with the machine's memory.
#[test]
fn everything_has_a_bound_and_a_counter() {
    let options = BookOptions {
        orders_max: 3,
        orders_per_book_max: 2,
        levels_max: 2,
        listings_max: 2,
        ..BookOptions::default()
    };
    let mut t = BookFixture::new(options);
    for (n, line) in ["A side=B px=1", "B side=B px=2", "C side=B px=3"].iter().enumerate() {
        let fault = t.feed(&format!("new oid={line} qty=1"))[0].fault;
        assert_eq!(fault, (n == 2).then_some(BookFault::OrdersFull), "{line}");
    }
    t.feed("new oid=A side=B px=1 qty=1 instr=BP");
    assert_eq!(t.feed("new oid=B side=B px=1 qty=1 instr=BP")[0].fault, Some(BookFault::OrdersFull));
    assert!(t.feed("new oid=A side=B px=1 qty=1 instr=SHEL").is_empty());
    assert_eq!(t.books.counters().no_room, 1);
    t.feed("new oid=A side=B px=1 qty=1 instr=");
    assert_eq!(t.books.counters().unnamed_events, 1);
    // It may be any order of its feed.
    assert_eq!(t.marks(Basis::Orders), ["stale"]);
    for (px, fault) in [(1, None), (2, None), (3, Some(BookFault::LevelsFull))] {
        assert_eq!(t.feed(&format!("level side=B action=A px={px} qty=1"))[0].fault, fault);
    }
    // By depth the last level once fell out here in silence: the venue has it, and the book must not pass for the venue's.
    for (line, fault) in [
        ("A px=8 qty=1 depth=1", None),
        ("A px=7 qty=1 depth=1", None),
        ("A px=9 qty=1 depth=3", Some(BookFault::LevelsFull)),
        ("A px=6 qty=1 depth=1", Some(BookFault::LevelsFull)),
    ] {
        assert_eq!(t.feed(&format!("level side=S action={line} instr=BP"))[0].fault, fault, "{line}");
    }
    let full = t.books.book(t.books.find(1, InstrumentId(2)).unwrap(), Basis::Levels);
    assert_eq!(full.levels(Side::Sell).map(|l| l.px.to_string()).collect::<Vec<_>>(), ["6", "7"]);
    assert!(full.marks().contains(QuoteFlags::STALE));
    t.feed("cancel oid=A");
    t.feed("new oid=D side=B px=0.5 qty=1");
    assert_eq!(t.feed("new oid=E side=B px=0.5 qty=1")[0].fault, Some(BookFault::OrdersFull));
    let mut t = BookFixture::new(BookOptions { levels_max: 1, ..BookOptions::default() });
    t.feed("new oid=A side=S px=5 qty=1");
    t.feed("new oid=B side=B px=1 qty=1");
    t.feed("new oid=C side=B px=6 qty=3");
    let change = t.feed("exec oid=A side=S px=5 qty=1")[0];
    assert_eq!(
        (change.fault, t.orders().as_str()),
        (Some(BookFault::LevelsFull), "1:1(B) | "),
        "the rest has no level"
    );
    assert_eq!(t.feed("cancel oid=C")[0].fault, Some(BookFault::UnknownOrder));
    let mut t = BookFixture::new(BookOptions::default());
    assert!(t.feed("session phase=luncheon").is_empty());
    assert_eq!(t.books.counters().unknown_phase, 1);
}

/// A venue of fixed depth does not say that its last level falls out: what it publishes no more of is no fault.
#[test]
fn what_is_not_published_falls_out() {
    let mut book = LevelBook::default();
    let add = |px, depth| LevelChange {
        action: LevelAction::Add,
        side: Some(Side::Buy),
        px,
        qty: Some((1, 0)),
        orders: 1,
        depth: Some(depth),
    };
    for (px, depth) in [(10, 1), (9, 2), (11, 1)] {
        assert_eq!(book.apply(&add(px, depth), DepthLimit::Published(2)).fault, None);
    }
    assert!(book.iter(Side::Buy).map(|l| l.px).eq([11, 10]));
    // There is no third place.
    assert_eq!(book.apply(&add(9, 3), DepthLimit::Published(2)).fault, Some(BookFault::LevelsFull));
    // If the venue may have more levels, the last one goes too, but it is reported.
    let done = book.apply(&add(12, 1), DepthLimit::Kept(2));
    assert_eq!((done.fault, done.depth), (Some(BookFault::LevelsFull), 1));
    assert!(book.iter(Side::Buy).map(|l| l.px).eq([12, 11]));
}

/// Ids may be numbers, and longer than their place in an event; each is one order.
#[test]
fn ids_of_all_forms() {
    let longest = "x".repeat(60);
    let mut t = BookFixture::new(BookOptions::default());
    for (n, id) in ["7", "+7", &longest, &format!("{longest}y"), "25ecf178-55e3-4914-90d6-53db38ff46c5"]
        .iter()
        .enumerate()
    {
        t.feed(&format!("new oid={id} side=B px={} qty=1", n + 1));
    }
    assert_eq!((t.books.orders(), t.faults()), (5, vec![]));
    t.feed(&format!("cancel oid={longest}"));
    t.feed("cancel oid=+7");
    let shown = t.orders();
    assert!(
        shown.starts_with("5:1(25ecf178-55e3-4914-90d6-53db38ff46c5) 4:1(#") && shown.ends_with("1:1(7) | "),
        "{shown}"
    );
}
