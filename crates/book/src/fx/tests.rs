//! What a tape of event lines cannot show: messages of several events, and bounds that are met.

use super::{FxBooks, FxOptions, OffReason, QuoteRefusal};
use unitape_codec::events::{LineParseOptions, parse_line};
use unitape_model::{Decimal, Dictionary, Event, NameKind, Side, flags};

/// Books of quotes that are fed with event lines.
struct FxFixture {
    books: FxBooks,
    names: Dictionary,
    arena: Vec<u8>,
    /// A line for each best price: time, pair, size, bid and ask.
    prices: Vec<String>,
}

impl FxFixture {
    fn new(options: FxOptions) -> Self {
        let options = FxOptions { sizes: vec![Decimal::from_int(1)], ..options };
        let books = FxBooks::new(options).unwrap();
        Self { books, names: Dictionary::default(), arena: Vec::new(), prices: Vec::new() }
    }

    /// Applies the events of a message, and returns the best prices that changed.
    fn message(&mut self, lines: &[String]) -> Vec<String> {
        for (n, line) in lines.iter().enumerate() {
            self.arena.clear();
            let last = if n + 1 == lines.len() { flags::LAST } else { 0 };
            let options = LineParseOptions { flags: last, ..LineParseOptions::default() };
            parse_line(line.as_bytes(), &mut self.names, &mut self.arena, &options).unwrap();
            for id in 1..=self.names.len(NameKind::Venue) {
                self.books.define_publisher(id as u16, self.names.name(NameKind::Venue, id).unwrap());
            }
            for id in 1..=self.names.len(NameKind::Instrument) {
                self.books.define_instrument(id, self.names.name(NameKind::Instrument, id).unwrap());
            }
            let prices = &mut self.prices;
            self.books.on_event(&Event::new(&self.arena).unwrap(), &mut |price| {
                let px = |side| price.best(side).map_or_else(|| "-".to_owned(), |best| best.px.to_string());
                let [bid, ask] = Side::BOTH.map(px);
                prices.push(format!("{} {} {} {bid} {ask}", price.ts.0, price.pair, price.size));
            });
        }
        std::mem::take(&mut self.prices)
    }

    fn event(&mut self, line: String) -> Vec<String> {
        self.message(&[line])
    }

    fn refused(&self) -> Vec<(&'static str, u64)> {
        let all = QuoteRefusal::ALL.map(|reason| (reason.name(), self.books.counters().refused(reason)));
        all.into_iter().filter(|(_, count)| *count > 0).collect()
    }
}

fn quote(ts: i64, bank: &str, instr: &str, more: &str) -> String {
    format!(r#"{{"ts":{ts},"kind":"quote","bank":"{bank}","instr":"{instr}","side":"B","qty":"1",{more}}}"#)
}

/// Between two quotes of one message a bid is new and the other old: a price that nobody ever offered.
#[test]
fn rule_1_a_message_is_evaluated_after_its_last_event() {
    let mut fixture = FxFixture::new(FxOptions::default());
    let ask = |px: &str| quote(2, "A", "EURUSD", &format!(r#""px":"{px}""#)).replace("\"B\"", "\"S\"");
    let bid = |px: &str| quote(2, "A", "EURUSD", &format!(r#""px":"{px}""#));
    assert_eq!(fixture.message(&[bid("1.1"), ask("1.2")]), ["2 EUR/USD 1 1.1 1.2"]);
    assert_eq!(fixture.message(&[bid("1.3"), bid("1.1")]), [""; 0], "the price is what it was");
    let other = quote(2, "A", "AUDUSD", r#""px":"0.7""#);
    assert_eq!(fixture.message(&[bid("1.15"), other]), ["2 AUD/USD 1 0.7 -", "2 EUR/USD 1 1.15 1.2"]);
}

/// A timer that is due between two events of a message changes other books at its time, and this one at the end.
#[test]
fn rule_1_a_timer_shows_no_half_message() {
    let mut fixture = FxFixture::new(FxOptions { stale_ms: 0, ..FxOptions::default() });
    fixture.event(quote(1, "A", "EURUSD", r#""px":"1.1","valid_until":5"#));
    fixture.event(quote(1, "A", "USDJPY", r#""px":"150","valid_until":5"#));
    let half = quote(2, "B", "EURUSD", r#""px":"1.2""#);
    let rest = quote(9, "B", "EURUSD", r#""px":"1.0""#);
    assert_eq!(fixture.message(&[half, rest]), ["5 USD/JPY 1 - -", "9 EUR/USD 1 1 -"]);
}

/// A book that lost all its quotes is made again, and must not print what it printed before.
#[test]
fn an_empty_book_is_forgotten_and_made_again() {
    let mut fixture = FxFixture::new(FxOptions::default());
    let price = r#""px":"1.1","valid_until":5"#;
    assert_eq!(fixture.event(quote(1, "A", "EURUSD", price)), ["1 EUR/USD 1 1.1 -"]);
    assert_eq!(
        fixture.event(quote(7, "A", "GBPUSD", r#""px":"1.3""#)),
        ["5 EUR/USD 1 - -", "7 GBP/USD 1 1.3 -"]
    );
    assert_eq!(fixture.books.books().len(), 1);
    let price = r#""px":"1.1","valid_until":9"#;
    assert_eq!(fixture.event(quote(8, "A", "EURUSD", price)), ["8 EUR/USD 1 1.1 -"]);
    assert_eq!(fixture.event(quote(9, "A", "NZDUSD", r#""px":"0""#)), ["9 EUR/USD 1 - -"]);
    let withdrawal = r#"{"ts":9,"kind":"quote","bank":"A","instr":"EURUSD","withdrawn":true}"#;
    assert_eq!(fixture.event(withdrawal.to_owned()), [""; 0]);
}

/// Each bound: what does not fit is counted, and what was there stays.
#[test]
fn what_has_no_room_is_counted() {
    let none: [&str; 0] = [];
    let room = |options: FxOptions| FxFixture::new(options);
    let price = r#""px":"1.1""#;

    let mut fixture = room(FxOptions { quotes_max: 2, ..FxOptions::default() });
    for (bank, count) in [("A", 1), ("B", 0), ("C", 0), ("A", 0)] {
        assert_eq!(fixture.event(quote(1, bank, "EURUSD", price)).len(), count, "{bank}");
    }
    assert_eq!(fixture.refused(), [("no_room", 1)], "one that replaces another has room");
    assert_eq!(fixture.books.books()[0].quotes(Side::Buy).len(), 2);

    let mut fixture = room(FxOptions { quotes_per_side_max: 1, ..FxOptions::default() });
    fixture.event(quote(1, "A", "EURUSD", price));
    assert_eq!(fixture.event(quote(2, "B", "EURUSD", r#""px":"1.2""#)), none);
    assert_eq!(fixture.event(quote(2, "B", "EURCHF", price)).len(), 1);

    let mut fixture = room(FxOptions { pairs_max: 1, dates_per_pair_max: 1, ..FxOptions::default() });
    fixture.event(quote(1, "A", "EURUSD", price));
    assert_eq!(fixture.event(quote(1, "A", "EURCHF", price)), none);
    assert_eq!(fixture.event(quote(1, "A", "EURUSD", r#""px":"1.1","value_date":"1970-01-06""#)), none);
    assert_eq!(fixture.event(quote(1, "A", "USDEUR", r#""px":"1.5""#)).len(), 1, "the same pair");
    assert_eq!(fixture.refused(), [("no_room", 2)]);
    let control = |action: &str, bank: &str, more: &str| {
        format!(r#"{{"ts":2,"kind":"control","venue":"{bank}","action":"{action}"{more}}}"#)
    };
    assert_eq!(fixture.event(control("disable", "A", r#","instr":"EURCHF""#)), none);
    assert_eq!(fixture.books.counters().controls_no_room, 1);

    let mut fixture = room(FxOptions { id_bytes_max: 60, ..FxOptions::default() });
    let long = format!(r#""px":"1.2","quote_id":"{}""#, "x".repeat(60));
    assert_eq!(fixture.event(quote(1, "A", "EURUSD", &long)).len(), 1);
    assert_eq!(fixture.event(quote(1, "B", "EURUSD", &long)), none);
    assert_eq!(fixture.event(quote(2, "A", "EURUSD", &long)), none, "the same content");
    assert_eq!(fixture.refused(), [("no_room", 1)]);

    let mut fixture = room(FxOptions { switches_max: 1, ..FxOptions::default() });
    fixture.event(quote(1, "A", "EURUSD", price));
    fixture.event(quote(1, "B", "EURUSD", price));
    fixture.event(control("disable", "A", ""));
    fixture.event(control("disable", "B", ""));
    fixture.event(control("disable", "A", r#","until":5"#));
    assert_eq!(fixture.books.counters().controls_no_room, 1);
    let off = |fixture: &FxFixture| {
        let book = fixture.books.books()[0];
        book.quotes(Side::Buy).map(|quote| quote.off).collect::<Vec<_>>()
    };
    assert_eq!(off(&fixture), [Some(OffReason::Disabled), None]);
    fixture.event(control("enable", "A", ""));
    fixture.event(control("disable", "B", ""));
    assert_eq!(off(&fixture), [None, Some(OffReason::Disabled)]);
}

/// A tape whose definitions are damaged has ids without a name, and quantities that no feed can write.
#[test]
fn ids_without_a_name_are_refused() {
    let mut fixture = FxFixture::new(FxOptions::default());
    let mut arena = Vec::new();
    let line = quote(1, "A", "EURUSD", r#""px":"1.1""#);
    parse_line(line.as_bytes(), &mut fixture.names, &mut arena, &LineParseOptions::default()).unwrap();
    let event = Event::new(&arena).unwrap();
    fixture.books.on_event(&event, &mut |_| panic!("a price of nobody"));
    fixture.books.define_publisher(1, "A");
    fixture.books.on_event(&event, &mut |_| panic!("a price of nothing"));
    fixture.books.define_instrument(7, "EURUSD");
    fixture.books.on_event(&event, &mut |_| panic!("a price of nothing"));
    assert_eq!(fixture.refused(), [("no_bank", 1), ("no_pair", 2)]);
}
