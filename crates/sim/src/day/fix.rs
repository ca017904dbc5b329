//! Events as a FIX 4.4 drop copy.
//!
//! One file interleaves the FIX sessions of the venues: `49` is the MIC, `56` = `UNITAPE`. `34` counts from 1 in each session,
//! without a gap. Every message is `8=FIX.4.4`, `9`, `35`, `49`, `56`, `34`, `52`, the body, `10`; times carry nine
//! decimals (`YYYYMMDD-HH:MM:SS.nnnnnnnnn`, UTC) and never go back. There are only the venue's messages; a
//! [`super::DropCopy`] has requests and heartbeats, too. Client orders, parents and news are not in it, nor are payments: they
//! are no venue's business.
//!
//! | `35` | meaning | event it should become |
//! |---|---|---|
//! | `8` with `150=0` | venue accepted a new order | `order_new` |
//! | `8` with `150=5` | venue accepted an amend | `order_amend` |
//! | `8` with `150=L` | a stop was elected | `order_amend` |
//! | `8` with `150=4` | order cancelled: asked for, the rest of one that may not rest, or after the close | `order_cancel` |
//! | `8` with `150=8` | the venue refused a new order; only in a market of several days | `order_cancel`, reason `rejected` |
//! | `8` with `150=F` | one side of a trade; both sides follow one another, the aggressor first | `exec` |
//! | `X` | public print of that trade | `trade` |
//! | `W` | best bid and offer of one venue and instrument changed | `bbo` |
//! | `d`, `h`, `f`, `UP` | reference data, phase of a book, its status, group of an owner | `ref`, `session`, `status`, `party` |
//!
//! **Tags of `35=8`** (all present unless a condition is given):
//!
//! | tag | field of the event | values |
//! |---|---|---|
//! | `60` | ts | time of the matching engine; equals `52` |
//! | `37` | oid | `O` and ten digits; stays the same through amends |
//! | `11` | – | client's id, `C` and ten digits: of the latest request where requests are written, then with `41`, the one before it (only after a request to amend or cancel) |
//! | `17` | – | `E` and ten digits, unique |
//! | `453` | – | always `3` parties, each `448`, `447=D`, `452`: |
//! | … `452=1` | firm | executing firm, `F01`… |
//! | … `452=3` | owner | client id, the beneficial owner, `OWN00001`… |
//! | … `452=11` | trader | order origination trader, `T00001`… |
//! | `1` | acct | `A00001`… |
//! | `55` | – | symbol |
//! | `48` with `22=4` | instr | ISIN |
//! | `207` | venue | MIC |
//! | `54` | side | `1` = `B`, `2` = `S` |
//! | `38` | qty of an order | total quantity, also after an amend |
//! | `40` | type | `1` market, `2` limit, `3` stop, `4` stop limit |
//! | `44` | px of an order | only with a limit |
//! | `99` | stop_px | only of a stop |
//! | `15` | ccy | `GBP` or `EUR` |
//! | `59` | tif | `0` day, `3` immediate or cancel, `4` fill or kill |
//! | `528` | capacity | `A` agency, `P` principal |
//! | `847` | algo | only for orders of an algorithm: `1001`… |
//! | `526` | parent | only for orders of a parent |
//! | `150`, `39` | – | kind of report, state of the order (`0` new, `1` part filled, `2` filled, `4` cancelled) |
//! | `31`, `32` | px, qty of an exec | only `150=F` |
//! | `30` | – | only `150=F`: equals `207` |
//! | `880` | match_id | only `150=F`: the same on both sides. The tag is one of FIX 5.0, used here by agreement, as drop copies do |
//! | `851` | liq | only `150=F`: `1` = `A` added, `2` = `R` removed, `4` = `X` auction |
//! | `151`, `14`, `6` | – | left, done, average price (cut, not rounded, to two more places than the price) |
//!
//! **Tags of `35=W`**: ts is `52`. `55`, `48`, `22=4`, `207`, then `268` with one entry for each side that exists: `269`
//! (`0` bid, `1` offer), `270`, `15`, `271`. A side without orders has no entry.
//!
//! **Tags of `35=X`**: ts is `52`. `268=1`, `279=0`, `269=2`, `278` = match_id, `55`, `48`, `22=4`, `207`, `270` px, `15`,
//! `271` qty, in an auction `277`.
//!
//! | `35` | fields beside `48`, `22=4`, `55`, `207` |
//! |---|---|
//! | `d` | `15`, `969` tick, `140` previous close, `561` lot, and by agreement `5001` average daily volume, `5002` tier |
//! | `h` | `625` the phase in a word, `31` its price |
//! | `UP` | none of these: by agreement `5003` owner, `5004` group |
//! | `f` | `326`: `2` halted, `17` ready to trade; `58` the reason in a word |

use rustc_hash::FxHashMap;
use unitape_model::{InstrumentId, Side};

use super::event::{DayEvent, DayEventBody, LiquidityFlag, OrderKind, OrderTicket, TimeInForce};
use super::names;
use super::world::SimulatedMarket;
use crate::wire::FixMessageWriter;

/// Writes the events of one day, from its first.
#[derive(Debug)]
pub struct FixDayWriter {
    pub(super) wire: FixMessageWriter,
    /// `453` and all below it, `1`, then `528` and `847`, by member.
    members: Vec<(Vec<u8>, Vec<u8>)>,
    /// `48 22 55 207`, by book.
    listings: Vec<Vec<u8>>,
    /// The executions of live orders: quantity, Σ ticks × quantity.
    executed_totals: FxHashMap<u64, (i64, i64)>,
    next_report: u64,
    requests: Option<ClientOrderIds>,
}

/// The client's requests, if they are written.
#[derive(Debug, Default)]
struct ClientOrderIds {
    /// `11` of the latest request, by order that lives.
    latest: FxHashMap<u64, u64>,
    /// `11` before the request that is to be answered.
    replaced: Option<u64>,
    made: u64,
}

impl FixDayWriter {
    /// Makes a writer for a day with this world.
    pub fn new(world: &SimulatedMarket) -> FixDayWriter {
        let listing = |book: u32| {
            let listed = world.listed(book);
            format!(
                "48={}\x0122=4\x0155={}\x01207={}\x01",
                listed.isin,
                listed.symbol,
                world.venue_name(book)
            )
            .into_bytes()
        };
        let member = |m: u32| {
            let party = |id: &str, role: u32| format!("448={id}\x01447=D\x01452={role}\x01");
            let parties = [(world.firm_name(m), 1), (world.owner_name(m), 3), (world.trader_name(m), 11)];
            let parties: String = parties.iter().map(|(id, role)| party(id, *role)).collect();
            let capacity = if world.members[m as usize].agency { "A" } else { "P" };
            let algo = world.algo_name(m).map(|id| format!("847={id}\x01")).unwrap_or_default();
            (
                format!("453=3\x01{parties}1={}\x01", world.account_name(m)).into_bytes(),
                format!("528={capacity}\x01{algo}").into_bytes(),
            )
        };
        FixDayWriter {
            wire: FixMessageWriter::new(&world.venues, "UNITAPE"),
            members: (0..world.members.len() as u32).map(member).collect(),
            listings: (0..world.books() as u32).map(listing).collect(),
            executed_totals: FxHashMap::default(),
            next_report: 0,
            requests: None,
        }
    }

    /// Makes a writer that also writes requests, each before its report: see [`FixDayWriter::request`].
    pub(super) fn with_requests(world: &SimulatedMarket) -> FixDayWriter {
        FixDayWriter { requests: Some(ClientOrderIds::default()), ..FixDayWriter::new(world) }
    }

    /// Appends the message of an event. Returns false if the event has no message.
    pub fn write(&mut self, world: &SimulatedMarket, event: &DayEvent, out: &mut Vec<u8>) -> bool {
        match event.body {
            DayEventBody::Ref { instr } => self.definition(world, event, instr),
            DayEventBody::Session { book, phase, px } => {
                self.begin(world, b'h', event, book);
                self.wire.text(b"625=", phase.word());
                px.into_iter().for_each(|px| self.px(world, b"31=", book, px));
            }
            DayEventBody::Status { book, halted } => {
                self.begin(world, b'f', event, book);
                self.wire.text(b"326=", if halted { "2" } else { "17" });
                self.wire.text(b"58=", if halted { "regulatory" } else { "resumed" });
            }
            DayEventBody::Bbo { book, bid, ask } => {
                self.begin(world, b'W', event, book);
                let sides = [(b'0', bid), (b'1', ask)];
                self.wire.int(b"268=", sides.iter().filter(|(_, best)| best.is_some()).count() as u64);
                for (code, best) in sides {
                    let Some(best) = best else { continue };
                    self.wire.char(b"269=", code);
                    self.px(world, b"270=", book, best.px);
                    self.wire.text(b"15=", world.listed(book).ccy);
                    self.wire.int(b"271=", best.qty as u64);
                }
            }
            DayEventBody::Trade { book, px, qty, match_id, auction } => {
                self.wire.begin(world.venue_of(book), b'X', event.ts);
                self.wire.raw(b"268=1\x01279=0\x01269=2\x01");
                self.ascii(b"278=", &names::match_bytes(match_id));
                self.wire.raw(&self.listings[book as usize]);
                self.px(world, b"270=", book, px);
                self.wire.text(b"15=", world.listed(book).ccy);
                self.wire.int(b"271=", qty as u64);
                if auction {
                    self.wire.raw(b"277=AUC\x01");
                }
            }
            DayEventBody::New(ref t) => {
                self.executed_totals.insert(t.oid, (0, 0));
                self.report(world, event, t, b'0', None);
            }
            DayEventBody::Amend(ref t) => {
                let elected = t.stop_px.is_some() && !t.kind.is_waiting_stop() && !self.was_elected(t);
                self.report(world, event, t, if elected { b'L' } else { b'5' }, None);
            }
            DayEventBody::Cancel(ref t) => {
                self.report(world, event, t, b'4', None);
                self.executed_totals.remove(&t.oid);
                self.forget(t.oid);
            }
            DayEventBody::Reject(ref t) => self.report(world, event, t, b'8', None),
            DayEventBody::Exec { ref order, px, qty, match_id, liq, .. } => {
                let totals = self.executed_totals.entry(order.oid).or_default();
                *totals = (totals.0 + qty, totals.1 + qty * px);
                let is_complete = totals.0 == order.qty;
                self.report(world, event, order, b'F', Some((px, qty, match_id, liq)));
                if is_complete {
                    self.executed_totals.remove(&order.oid);
                    self.forget(order.oid);
                }
            }
            DayEventBody::Party { owner } => {
                // As reference data do, groups come from the first venue.
                self.wire.begin_type(0, b"UP", event.ts);
                self.wire.text(b"5003=", world.owner_of(owner));
                self.wire.text(b"5004=", world.group_of(owner));
            }
            DayEventBody::OrderRecv { .. }
            | DayEventBody::Parent { .. }
            | DayEventBody::News { .. }
            | DayEventBody::List(_)
            | DayEventBody::Position { .. }
            | DayEventBody::Payment(_) => {
                return false;
            }
        }
        self.wire.end(out);
        true
    }

    fn begin(&mut self, world: &SimulatedMarket, kind: u8, event: &DayEvent, book: u32) {
        self.wire.begin(world.venue_of(book), kind, event.ts);
        self.wire.raw(&self.listings[book as usize]);
    }

    /// Writes reference data from the first venue, without its name: they are the same on all venues.
    fn definition(&mut self, world: &SimulatedMarket, event: &DayEvent, instr: InstrumentId) {
        let listed = &world.instruments[instr.index()];
        let wire = &mut self.wire;
        wire.begin(0, b'd', event.ts);
        wire.text(b"48=", &listed.isin);
        wire.raw(b"22=4\x01");
        wire.text(b"55=", &listed.symbol);
        wire.text(b"15=", listed.ccy);
        wire.decimal(b"969=", units(listed.tick_nano, listed.decimals), listed.decimals);
        wire.decimal(b"140=", units(listed.nano(listed.reference), listed.decimals), listed.decimals);
        wire.raw(b"561=1\x01");
        wire.int(b"5001=", listed.adv as u64);
        wire.int(b"5002=", listed.tier.into());
    }

    /// Returns whether a stop was reported as elected before. An elected stop that rests may be amended like any other
    /// order.
    pub(super) fn was_elected(&self, t: &OrderTicket) -> bool {
        self.executed_totals.contains_key(&(t.oid | ELECTED))
    }

    fn report(
        &mut self,
        world: &SimulatedMarket,
        event: &DayEvent,
        t: &OrderTicket,
        kind: u8,
        fill: Option<(i64, i64, u64, LiquidityFlag)>,
    ) {
        match kind {
            b'L' => _ = self.executed_totals.insert(t.oid | ELECTED, (0, 0)),
            b'4' | b'F' if t.stop_px.is_some() => {
                let is_complete = self.executed_totals.get(&t.oid).is_none_or(|d| d.0 == t.qty);
                if kind == b'4' || is_complete {
                    self.executed_totals.remove(&(t.oid | ELECTED));
                }
            }
            _ => {}
        }
        let (filled_qty, value) = self.executed_totals.get(&t.oid).copied().unwrap_or_default();
        self.next_report += 1;
        let leaves = if matches!(kind, b'4' | b'8') { 0 } else { t.qty - filled_qty };
        let state = match (kind, filled_qty, leaves) {
            (b'4' | b'8', ..) => kind,
            (_, 0, _) => b'0',
            (.., 0) => b'2',
            _ => b'1',
        };
        let listed = world.listed(t.book);
        self.wire.begin(world.venue_of(t.book), b'8', event.ts);
        self.ascii(b"37=", &names::oid_bytes(t.oid));
        self.client_ids(t.oid);
        self.wire.id(b"17=", b'E', self.next_report);
        self.wire.char(b"150=", kind);
        self.wire.char(b"39=", state);
        self.wire.raw(&self.members[t.member as usize].0);
        self.wire.raw(&self.listings[t.book as usize]);
        self.wire.char(b"54=", side_code(t.side));
        self.wire.int(b"38=", t.qty as u64);
        self.terms(world, t);
        if t.parent != 0 {
            self.ascii(b"526=", &names::parent_bytes(t.parent));
        }
        if let Some((px, qty, match_id, liq)) = fill {
            self.wire.int(b"32=", qty as u64);
            self.wire.decimal(b"31=", units(listed.nano(px), listed.decimals), listed.decimals);
            self.wire.text(b"30=", world.venue_name(t.book));
            self.wire.char(b"851=", liquidity(liq));
            self.ascii(b"880=", &names::match_bytes(match_id));
        }
        self.wire.int(b"151=", leaves as u64);
        self.wire.int(b"14=", filled_qty as u64);
        let nano = if filled_qty == 0 {
            0
        } else {
            i128::from(value) * i128::from(listed.tick_nano) / i128::from(filled_qty)
        };
        self.wire.decimal(b"6=", units(nano as i64, listed.decimals + 2), listed.decimals + 2);
        self.wire.time(b"60=", event.ts);
    }

    /// Writes the terms of an order, except its side and quantity.
    fn terms(&mut self, world: &SimulatedMarket, t: &OrderTicket) {
        let listed = world.listed(t.book);
        self.wire.char(b"40=", order_type(t.kind));
        if let Some(px) = t.px {
            self.wire.decimal(b"44=", units(listed.nano(px), listed.decimals), listed.decimals);
        }
        if let Some(px) = t.stop_px.filter(|_| t.kind != OrderKind::Market) {
            self.wire.decimal(b"99=", units(listed.nano(px), listed.decimals), listed.decimals);
        }
        self.wire.text(b"15=", listed.ccy);
        self.wire.char(b"59=", time_in_force(t.tif));
        self.wire.raw(&self.members[t.member as usize].1);
    }

    /// Appends the request that led to the event, which is about an order: `D`, `G` or `F`.
    pub(super) fn request(
        &mut self,
        world: &SimulatedMarket,
        kind: u8,
        ts: u64,
        t: &OrderTicket,
        out: &mut Vec<u8>,
    ) {
        let requests = self.requests.as_mut().expect("a writer with requests");
        requests.made += 1;
        let made = requests.made;
        requests.replaced = requests.latest.insert(t.oid, made);
        let was = requests.replaced;
        self.wire.begin(world.venue_of(t.book), kind, ts);
        if let Some(was) = was {
            self.wire.id(b"41=", b'C', was);
            self.ascii(b"37=", &names::oid_bytes(t.oid));
        }
        self.wire.id(b"11=", b'C', made);
        self.wire.raw(&self.members[t.member as usize].0);
        if kind != b'F' {
            self.wire.raw(b"21=1\x01");
        }
        self.wire.raw(&self.listings[t.book as usize]);
        self.wire.char(b"54=", side_code(t.side));
        self.wire.time(b"60=", ts);
        self.wire.int(b"38=", t.qty as u64);
        if kind != b'F' {
            self.terms(world, t);
        }
        self.wire.end(out);
    }

    /// Writes the client's id of an order. After a request to amend or cancel it also writes the previous id.
    fn client_ids(&mut self, oid: u64) {
        let Some(requests) = &mut self.requests else { return self.wire.id(b"11=", b'C', oid) };
        self.wire.id(b"11=", b'C', requests.latest.get(&oid).copied().unwrap_or(oid));
        if let Some(was) = requests.replaced.take() {
            self.wire.id(b"41=", b'C', was);
        }
    }

    fn forget(&mut self, oid: u64) {
        if let Some(requests) = &mut self.requests {
            requests.latest.remove(&oid);
        }
    }

    fn px(&mut self, world: &SimulatedMarket, tag: &[u8], book: u32, px: i64) {
        let listed = world.listed(book);
        self.wire.decimal(tag, units(listed.nano(px), listed.decimals), listed.decimals);
    }

    fn ascii(&mut self, tag: &[u8], value: &[u8]) {
        self.wire.raw(tag);
        self.wire.raw(value);
        self.wire.raw(b"\x01");
    }
}

/// Marks an order number, which has 34 bits at most, as one of a stop that was elected.
const ELECTED: u64 = 1 << 63;

/// Units of 1e-9 as units of 10^-`decimals`, cut.
fn units(nano: i64, decimals: u32) -> u64 {
    nano as u64 / 10u64.pow(9 - decimals)
}

fn side_code(side: Side) -> u8 {
    match side {
        Side::Buy => b'1',
        Side::Sell => b'2',
    }
}

fn order_type(kind: OrderKind) -> u8 {
    match kind {
        OrderKind::Market => b'1',
        OrderKind::Limit => b'2',
        OrderKind::Stop => b'3',
        OrderKind::StopLimit => b'4',
    }
}

fn time_in_force(tif: TimeInForce) -> u8 {
    match tif {
        TimeInForce::Day => b'0',
        TimeInForce::Ioc => b'3',
        TimeInForce::Fok => b'4',
    }
}

fn liquidity(liq: LiquidityFlag) -> u8 {
    match liq {
        LiquidityFlag::Passive => b'1',
        LiquidityFlag::Aggressive => b'2',
        LiquidityFlag::Auction => b'4',
    }
}
