//! A venue of our own in few lines: templates without operators, a truth, packets, and books made from events.

mod head;
mod history;
mod hostile;
mod numberings;
mod parts;
mod scenarios;
mod view;

use super::*;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use unitape_model::{InstrumentId, UnixNanos};

const TEMPLATES: &str = r#"<templates xmlns="http://www.fixprotocol.org/ns/fast/td/1.1">
  <template name="Head" id="1"><uInt32 name="Sender"/><byteVector name="Number"/><byteVector name="Sent"/>
    <uInt32 name="Reset"/></template>
  <template name="Depth" id="2"><uInt32 name="Seq"/><uInt32 name="Product"/><sequence name="Entries">
    <uInt64 name="Id"/><uInt32 name="Action"/><uInt32 name="Type"/><int64 name="Px"/><uInt32 name="Qty"/>
    <uInt32 name="Level"/></sequence></template>
  <template name="Snapshot" id="3"><uInt32 name="Product"/><uInt32 name="Last"/><uInt64 name="Id"/>
    <sequence name="Entries"><uInt32 name="Type"/><int64 name="Px"/><uInt32 name="Qty"/><uInt32 name="Level"/>
    </sequence></template>
  <template name="Beacon" id="4"><uInt32 name="Product"/><uInt32 name="Last"/></template>
  <template name="State" id="5"><uInt32 name="Seq"/><uInt32 name="Product"/><uInt32 name="Code"/></template>
  <template name="Instrument" id="6"><uInt32 name="Product"/><uInt64 name="Id"/></template>
  <template name="Product" id="7"><uInt32 name="Product"/><string name="Name"/><uInt32 name="Depth"/></template>
</templates>"#;

const TABLE: &str = r#"
templates = ["t.xml"]
venue = "TEST"
px_exponent = -2
framing = { header = "Head", sequence = "Number", sender = "Sender", time = "Sent", reset = "Reset" }
window = { packets = 16, ns = 1000000, past = 3, dead_ns = 1000000000, far = 1000 }
channel = [{ name = "inc", role = "incremental", a = ["224.0.0.1:1"], b = ["224.0.0.2:1"] }, { name = "snap", role = "snapshot", a = ["224.0.0.1:2"], b = ["224.0.0.2:2"] }, { name = "ref", role = "reference", a = ["224.0.0.1:3"], b = ["224.0.0.2:3"] }]
action = { 0 = "new", 1 = "change", 2 = "delete", 3 = "delete_thru", 4 = "delete_from", 5 = "overlay" }
type = { 0 = "bid", 1 = "offer", 2 = "trade", 3 = "empty" }
product_state = { 3 = "open", 4 = "close" }
[[message]]
templates = ["Depth"]
kind = "depth"
entries = "Entries"
fields = { product = "Product", sequence = "Seq", instrument = "Entries.Id", action = "Entries.Action", type = "Entries.Type", px = "Entries.Px", qty = "Entries.Qty", depth = "Entries.Level" }
[[message]]
templates = ["Snapshot"]
kind = "snapshot"
entries = "Entries"
fields = { product = "Product", last = "Last", instrument = "Id", type = "Entries.Type", px = "Entries.Px", qty = "Entries.Qty", depth = "Entries.Level" }
[[message]]
templates = ["Beacon"]
kind = "beacon"
fields = { product = "Product", last = "Last" }
[[message]]
templates = ["State"]
kind = "product_state"
fields = { product = "Product", sequence = "Seq", product_state = "Code" }
[[message]]
templates = ["Instrument"]
kind = "instrument"
fields = { product = "Product", instrument = "Id" }
[[message]]
templates = ["Product"]
kind = "product"
fields = { product = "Product", name = "Name", market_depth = "Depth" }
"#;

/// The table with lines of `more` in place of those with the same key.
fn config(more: &str) -> Arc<HandlerConfig> {
    Arc::new(config_of(more, "", TEMPLATES).unwrap())
}

fn config_of(more: &str, tail: &str, templates: &str) -> Result<HandlerConfig, ConfigRefusal> {
    config_from(TABLE, more, tail, templates)
}

fn config_from(table: &str, more: &str, tail: &str, templates: &str) -> Result<HandlerConfig, ConfigRefusal> {
    let keys: Vec<&str> = more.lines().filter_map(|l| l.split_once(" =").map(|(key, _)| key)).collect();
    let kept = table.lines().filter(|l| !keys.iter().any(|key| l.starts_with(&format!("{key} ="))));
    let text: String = kept.collect::<Vec<_>>().join("\n");
    let text: ChannelsConfig = toml::from_str(&format!("{more}\n{text}\n{tail}")).unwrap();
    let files = BTreeMap::from([("t.xml".to_owned(), templates.as_bytes().to_vec())]);
    HandlerConfig::new(&text, OverrideSummary { messages: usize::MAX, has_own_framing: true }, &files)
}

/// A number with stop bit; for optional fields and signs nothing is needed here.
fn put(out: &mut Vec<u8>, n: u64) {
    let groups = (1..10).find(|g| n >> (7 * g) == 0).unwrap_or(10);
    for g in (0..groups).rev() {
        out.push((n >> (7 * g) & 0x7f) as u8 | if g == 0 { 0x80 } else { 0 });
    }
}

fn put_signed(out: &mut Vec<u8>, n: i64) {
    let groups = (1..10).find(|g| (-(1i64 << (7 * g - 1))..1i64 << (7 * g - 1)).contains(&n)).unwrap_or(10);
    for g in (0..groups).rev() {
        out.push((n >> (7 * g) & 0x7f) as u8 | if g == 0 { 0x80 } else { 0 });
    }
}

fn message(template: u64, numbers: &[u64]) -> Vec<u8> {
    let mut out = vec![0xc0];
    put(&mut out, template);
    numbers.iter().for_each(|n| put(&mut out, *n));
    out
}

fn packet(number: u64, sent: u64, reset: bool, messages: &[Vec<u8>]) -> Vec<u8> {
    let mut out = message(1, &[7, 4]);
    out.extend((number as u32).to_be_bytes());
    put(&mut out, 8);
    out.extend(sent.to_be_bytes());
    put(&mut out, reset.into());
    messages.iter().for_each(|m| out.extend(m));
    out
}

/// An entry: id, action, type, price, quantity, level.
type E = (u64, u64, u64, i64, u64, u64);

fn depth(seq: u64, product: u64, entries: &[E]) -> Vec<u8> {
    let mut out = message(2, &[seq, product, entries.len() as u64]);
    for (id, action, sort, px, qty, level) in entries {
        [*id, *action, *sort].iter().for_each(|n| put(&mut out, *n));
        put_signed(&mut out, *px);
        [*qty, *level].iter().for_each(|n| put(&mut out, *n));
    }
    out
}

fn snapshot(product: u64, last: u64, id: u64, book: &Book) -> Vec<u8> {
    let mut out = message(3, &[product, last, id, (book[0].len() + book[1].len()) as u64]);
    for (side, levels) in book.iter().enumerate() {
        for (i, (px, qty)) in levels.iter().enumerate() {
            put(&mut out, side as u64);
            put_signed(&mut out, *px);
            [*qty, i as u64 + 1].iter().for_each(|n| put(&mut out, *n));
        }
    }
    out
}

/// Bids and offers, best first: price in hundredths, and quantity.
type Book = [Vec<(i64, u64)>; 2];

/// The action of a book by depth on a level, as the venue means it.
fn act(book: &mut Book, action: u64, side: u64, px: i64, qty: u64, level: u64, max: usize) {
    let levels = &mut book[side as usize];
    let at = level as usize - 1;
    match action {
        0 if at <= levels.len() => levels.insert(at, (px, qty)),
        1 | 5 if at < levels.len() => levels[at] = (px, qty),
        2 if at < levels.len() => _ = levels.remove(at),
        3 => _ = levels.drain(..(at + 1).min(levels.len())),
        4 => levels.truncate(at),
        _ => {}
    }
    levels.truncate(max);
}

/// Books made from events, and a log of the other events.
#[derive(Default)]
struct Seen {
    books: BTreeMap<InstrumentId, Book>,
    live: BTreeMap<InstrumentId, bool>,
    log: Vec<String>,
    trades: Vec<(u64, i64)>,
    outcomes: BTreeMap<&'static str, u64>,
    /// Levels at places that a book by depth does not have.
    faults: u64,
    /// No channel has snapshots.
    goes_on: bool,
}

impl MarketEventSink for Seen {
    fn emit(&mut self, at: &EventContext<'_>, step: MarketEvent<'_>) {
        let id = |i: InstrumentId| at.tables.instruments[i.index()].id.clone();
        match step {
            MarketEvent::Level(level) => {
                let live = self.live.get(&level.instrument).copied().unwrap_or(false);
                assert!(live || at.snapshot || self.goes_on, "a level of a stale book");
                let book = &mut self.books.entry(level.instrument).or_default()[level.side as usize];
                let place = usize::from(level.depth.unwrap()) - 1;
                let rung = || {
                    (
                        level.px.0 / 10_000_000,
                        level.qty.unwrap().mantissa() as u64
                            * 10u64.pow(level.qty.unwrap().exponent() as u32),
                    )
                };
                match level.action {
                    UpdateAction::Add if place <= book.len() => book.insert(place, rung()),
                    UpdateAction::Change if place < book.len() => book[place] = rung(),
                    UpdateAction::Delete if place < book.len() => _ = book.remove(place),
                    _ => self.faults += 1,
                }
            }
            MarketEvent::Clear { instrument } => *self.books.entry(instrument).or_default() = Book::default(),
            MarketEvent::Trade(trade) => {
                self.trades.push((id(trade.instrument).parse().unwrap(), trade.px.0 / 10_000_000))
            }
            MarketEvent::Stale { instrument, .. } => {
                self.live.insert(instrument, false);
                self.log.push(format!("stale {}", id(instrument)));
            }
            MarketEvent::Recovered { instrument } => {
                self.live.insert(instrument, true);
                self.log.push(format!("recovered {}", id(instrument)));
            }
            MarketEvent::Missing { product, from, to, .. } => {
                self.log.push(format!("missing {} {from}-{to}", at.tables.products[product.index()].id));
            }
            MarketEvent::Whole { product } => {
                self.log.push(format!("whole {}", at.tables.products[product.index()].id));
            }
            MarketEvent::NoRoom { .. } => self.log.push("no room".to_owned()),
            MarketEvent::Lost { from, to } => self.log.push(format!("lost {from}-{to}")),
            MarketEvent::Restart => self.log.push("restart".to_owned()),
            MarketEvent::Refused(refusal) => self.log.push(format!("refused {}", refusal.code)),
            MarketEvent::State(state) => self.log.push(format!("state {:?} {:?}", state.code, state.phase)),
            MarketEvent::End(outcome) => *self.outcomes.entry(word(outcome)).or_default() += 1,
            MarketEvent::LineDown { .. }
            | MarketEvent::LineUp { .. }
            | MarketEvent::Product(_)
            | MarketEvent::Instrument(_) => {}
        }
    }
}

fn word(outcome: MessageOutcome) -> &'static str {
    match outcome {
        MessageOutcome::Used => "used",
        MessageOutcome::Ignored => "ignored",
        MessageOutcome::Waits => "waits",
        MessageOutcome::Duplicate => "duplicate",
        MessageOutcome::Refused => "refused",
        MessageOutcome::Early => "early",
    }
}

/// A handler that is fed, with what it said.
struct Rig {
    handler: Engine,
    seen: Seen,
    now: i64,
    place: u64,
}

/// Ports.
const INC: u16 = 1;
const SNAP: u16 = 2;
const REF: u16 = 3;

impl Rig {
    /// Books of at most a hundred levels, unless it is said otherwise.
    fn new(more: &str) -> Self {
        let depth = if more.contains("market_depth") { "" } else { "market_depth = 100\n" };
        Self::with_table_text(&format!("{depth}{more}"))
    }

    /// Only reference data give the number of levels.
    fn with_table_text(more: &str) -> Self {
        Self { handler: Engine::new(config(more)), seen: Seen::default(), now: 1_000_000, place: 0 }
    }

    /// Lines of `more` up to `@@` in place of those with the same key, those after it at the end, and other templates.
    fn with(more: &str, templates: &str) -> Self {
        let (head, tail) = more.split_once("@@").unwrap_or((more, ""));
        Self {
            handler: Engine::new(Arc::new(config_of(head, tail, templates).unwrap())),
            ..Self::with_table_text("")
        }
    }

    /// A packet on line 0 or 1 of a channel, a microsecond later.
    fn send(&mut self, line: u8, port: u16, payload: &[u8]) {
        self.now += 1000;
        self.place += 2000;
        let to = SocketAddr::from(([224, 0, 0, 1 + line], port));
        self.handler.packet(
            Packet { to, ts_recv: UnixNanos(self.now), position: self.place, payload },
            &mut self.seen,
        );
    }

    /// The incremental packet of this number on line A, and the message of the same number: a bid at a price.
    fn bid(&mut self, n: u64) {
        self.send(0, INC, &bid(n));
    }

    /// Returns the log since the last call.
    fn said(&mut self) -> String {
        std::mem::take(&mut self.seen.log).join(", ")
    }

    fn book(&self, id: &str) -> Option<&Book> {
        let tables = self.handler.tables();
        let found = tables.instrument_ids().find(|i| tables.instruments[i.index()].id == id)?;
        self.handler.is_live(found).then(|| self.seen.books.get(&found)).flatten()
    }

    fn bids(&self, id: &str) -> Vec<i64> {
        self.book(id).map_or_else(Vec::new, |book| book[0].iter().map(|(px, _)| *px).collect())
    }
}

/// Packet and message of a number: a new best bid of instrument 50 of product 9, whose price is the number.
fn bid(n: u64) -> Vec<u8> {
    packet(n, n * 10, false, &[depth(n, 9, &[(50, 0, 0, n as i64, 1, 1)])])
}

/// The book that has the bids of messages up to this one.
fn bids_up_to(n: u64) -> Book {
    [(1..=n as i64).rev().map(|px| (px, 1)).collect(), Vec::new()]
}

/// A snapshot of it.
fn snap(number: u64, last: u64) -> Vec<u8> {
    packet(number, number * 10, false, &[snapshot(9, last, 50, &bids_up_to(last))])
}
