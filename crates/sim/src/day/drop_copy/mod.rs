//! A day as a FIX 4.4 drop copy that comes over a wire: the venue's reports, the requests before them, heartbeats, and
//! damage.
//!
//! | `35` | meaning | event it should become |
//! |---|---|---|
//! | `8`, `W`, `X`, `d`, `h`, `f`, `UP` | what [`super::FixDayWriter`] writes | one each |
//! | `D`, `G`, `F` | the request that led to the report right after it | none: the report has it with the venue's id |
//! | `0` | heartbeat | none |
//!
//! **Tags of the requests**: `D` and `G` carry `11`, (`G`: `41`, `37`), the parties, `1`, `21=1`, `55`, `48`, `22`, `207`,
//! `54`, `60`, `38`, `40`, `44`, `99`, `15`, `59`, `528`, `847` as the reports; `F` carries `41`, `37`, `11`, the parties,
//! `1`, `55`, `48`, `22`, `207`, `54`, `60`, `38`. A cancel that nobody asked for has none.
//!
//! A bad message is an extra copy of an exec under the session's next `34`, so losing it loses nothing, and reading it as
//! good shows. [`DropCopyTruth`] counts each kind.

mod truth;

pub use truth::{DamageCounts, DropCopyTotals, DropCopyTruth, LastBbo, WashTradeLeg, WashTradePair};

use std::collections::BTreeMap;
use std::io::{self, Write};
use unitape_model::Side;

use super::event::{DayEvent, DayEventBody, MarketPhase};
use super::fix::FixDayWriter;
use super::names;
use super::scenes::Scenario;
use super::world::SimulatedMarket;
use super::{KINDS, Sim, SimConfig, kind_index};
use crate::book::BestLevel;
use crate::error::Error;
use crate::rng::Rng;
use crate::wire::FixFrameFlaw;

/// The additions of a drop copy to the messages of the day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InjectedNoiseConfig {
    /// A heartbeat on each session about this often, in nanoseconds of the day; zero is never.
    pub heartbeat_ns: u64,
    /// After each step of the day, this many times in a million, something bad follows: in turn a wrong checksum, a wrong
    /// length, too many decimals, garbage.
    pub bad_per_million: u32,
}

/// A day that is written as a drop copy. It holds the open orders and the executions of the scenes, never the whole
/// day.
#[derive(Debug)]
pub struct DropCopy {
    sim: Sim,
    fix: FixDayWriter,
    noise: InjectedNoiseConfig,
    to_close: bool,
    /// For noise alone: the day is the same with and without.
    rng: Rng,
    next_heartbeat_ns: u64,
    /// Fields after `52` of the last exec and its venue; kept only where there is damage.
    last_exec: Option<(usize, Vec<u8>)>,
    bytes: u64,
    messages: u64,
    no_event: u64,
    by_kind: [u64; KINDS.len()],
    bad: DamageCounts,
    /// Executions of the members in scenes, by their ordinal.
    staged: BTreeMap<u64, WashTradeLeg>,
    /// Time and sides, by book.
    published: Vec<Option<(u64, [Option<BestLevel>; 2])>>,
}

impl DropCopy {
    /// Sets a drop copy up; nothing is written yet.
    pub fn new(config: SimConfig, noise: InjectedNoiseConfig) -> Result<DropCopy, Error> {
        let most = 1_000_000;
        if noise.bad_per_million > most {
            let value = noise.bad_per_million.into();
            return Err(Error::OutOfRange { name: "bad_per_million", value, least: 0, most: most.into() });
        }
        let sim = Sim::new(config)?;
        Ok(DropCopy {
            fix: FixDayWriter::with_requests(sim.world()),
            noise,
            to_close: false,
            rng: Rng::new(sim.config().seed ^ SALT),
            next_heartbeat_ns: sim.config().start_ns + noise.heartbeat_ns,
            last_exec: None,
            bytes: 0,
            messages: 0,
            no_event: 0,
            by_kind: [0; KINDS.len()],
            bad: DamageCounts::default(),
            staged: BTreeMap::new(),
            published: vec![None; sim.world().books()],
            sim,
        })
    }

    /// Ends this drop copy before the closing call, while all books still trade.
    pub fn to_close(self) -> DropCopy {
        DropCopy { to_close: true, ..self }
    }

    /// Appends the messages of the next step to `out`. Returns false when the day is over. Never stops inside a
    /// message.
    pub fn step(&mut self, out: &mut Vec<u8>) -> bool {
        if !self.sim.play_step(self.to_close) {
            return false;
        }
        let before = out.len();
        for n in 0..self.sim.last_events().len() {
            self.write(n, out);
        }
        if out.len() > before {
            self.make_noise(out);
        }
        self.bytes += (out.len() - before) as u64;
        true
    }

    /// Runs the day to its end.
    pub fn write_fix(&mut self, out: &mut dyn Write) -> io::Result<DropCopyTruth> {
        const FLUSH_AT: usize = 64 << 10;
        let mut buffer = Vec::with_capacity(2 * FLUSH_AT);
        while self.step(&mut buffer) {
            if buffer.len() >= FLUSH_AT {
                out.write_all(&buffer)?;
                buffer.clear();
            }
        }
        out.write_all(&buffer)?;
        Ok(self.truth())
    }

    /// Returns the day, after the last step.
    pub fn sim(&self) -> &Sim {
        &self.sim
    }

    /// Returns the truth of everything written so far.
    pub fn truth(&self) -> DropCopyTruth {
        let by_kind = KINDS.iter().zip(self.by_kind).filter(|(_, n)| *n > 0);
        let scene = |arm, miss_reason, key: &super::AlertLabelKey, seqs: [u64; 2]| {
            let legs = seqs.map(|seq| self.staged[&seq].clone());
            WashTradePair { scenario: WASH, arm, misses: miss_reason, ts: legs[1].ts, key: key.clone(), legs }
        };
        let planted = self.sim.labels().into_iter().filter(|l| l.scenario == WASH).map(|l| {
            let arm = l.reason.expect("a wash trade has its arm");
            scene(arm, None, &l.key, [l.first_seq, l.trigger_seq])
        });
        let mut missed: Vec<_> = self
            .sim
            .near_misses()
            .iter()
            .filter_map(|m| m.trigger_seq.filter(|_| m.scenario == WASH).map(|seq| (seq, m)))
            .collect();
        missed.sort_by_key(|(seq, _)| *seq);
        DropCopyTruth {
            totals: DropCopyTotals {
                messages: self.messages,
                bytes: self.bytes,
                by_kind: by_kind.map(|(kind, n)| ((*kind).to_owned(), n)).collect(),
                no_event: self.no_event,
                bad: self.bad,
            },
            planted: planted.collect(),
            near_misses: missed
                .into_iter()
                .map(|(seq, m)| scene("round_trip", Some(m.misses), &m.key, [m.first_seq, seq]))
                .collect(),
            bbo: (0..self.published.len() as u32).filter_map(|book| self.last_bbo(book)).collect(),
        }
    }

    /// Writes an event of the last step, with the request before it.
    fn write(&mut self, n: usize, out: &mut Vec<u8>) {
        let world = self.sim.world();
        let event = self.sim.last_events()[n];
        if let Some((kind, terms)) = self.request_of(n) {
            self.fix.request(world, kind, event.ts, &terms, out);
            self.messages += 1;
            self.no_event += 1;
        }
        if !self.fix.write(world, &event, out) {
            return;
        }
        self.messages += 1;
        self.by_kind[kind_index(&event.body)] += 1;
        match event.body {
            DayEventBody::Exec { order, .. } => {
                if order.member >= world.crowd {
                    self.staged.insert(event.seq, leg(world, &event));
                }
                if self.noise.bad_per_million > 0 {
                    let last_exec = self.last_exec.get_or_insert_with(Default::default);
                    last_exec.0 = world.venue_of(order.book);
                    last_exec.1.clear();
                    last_exec.1.extend_from_slice(self.fix.wire.body());
                }
            }
            DayEventBody::Bbo { book, bid, ask } => {
                self.published[book as usize] = Some((event.ts, [bid, ask]));
            }
            _ => {}
        }
    }

    /// Returns the request that led to an event of the last step: its type, and the terms that it asks for.
    fn request_of(&self, n: usize) -> Option<(u8, super::OrderTicket)> {
        let events = self.sim.last_events();
        let earlier = |oid| {
            let terms = events[..n].iter().filter_map(|e| match e.body {
                DayEventBody::New(t) | DayEventBody::Amend(t) => Some(t.oid),
                _ => None,
            });
            terms.into_iter().any(|earlier_oid| earlier_oid == oid)
        };
        match events[n].body {
            DayEventBody::New(t) => Some((b'D', t)),
            // An elected stop has become another kind; one that was elected before may be amended.
            DayEventBody::Amend(t)
                if t.stop_px.is_some() && !t.kind.is_waiting_stop() && !self.fix.was_elected(&t) =>
            {
                None
            }
            DayEventBody::Amend(t) => Some((b'G', t)),
            // The rest of an order that may not rest goes in the step in which it came or was elected.
            DayEventBody::Cancel(t) if earlier(t.oid) => None,
            DayEventBody::Cancel(t) => {
                let (venue, instr) = (self.sim.world().venue_of(t.book), self.sim.world().instr_of(t.book));
                (self.sim.phase(venue, instr) != MarketPhase::Close).then_some((b'F', t))
            }
            _ => None,
        }
    }

    fn last_bbo(&self, book: u32) -> Option<LastBbo> {
        let world = self.sim.world();
        let (ts, [bid, ask]) = self.published[book as usize]?;
        let px = |best: Option<BestLevel>| best.map(|best| names::decimal(world.listed(book).nano(best.px)));
        let qty = |best: Option<BestLevel>| best.map(|best| best.qty.to_string());
        let (venue, instr) = (world.venue_name(book), world.isin(book).to_owned());
        Some(LastBbo { ts, venue, instr, bid: px(bid), bid_qty: qty(bid), ask: px(ask), ask_qty: qty(ask) })
    }

    fn make_noise(&mut self, out: &mut Vec<u8>) {
        let InjectedNoiseConfig { heartbeat_ns, bad_per_million } = self.noise;
        let now = self.sim.x.now;
        if heartbeat_ns > 0 && now >= self.next_heartbeat_ns {
            self.next_heartbeat_ns = now + heartbeat_ns;
            for venue in 0..self.sim.world().venues.len() {
                self.fix.wire.begin(venue, b'0', now);
                self.fix.wire.end(out);
                self.messages += 1;
                self.no_event += 1;
            }
        }
        if bad_per_million > 0 && self.rng.below(1_000_000) < u64::from(bad_per_million) {
            self.damage(out);
        }
    }

    fn damage(&mut self, out: &mut Vec<u8>) {
        let Some((venue, body)) = &self.last_exec else { return };
        let (wire, bad, rng) = (&mut self.fix.wire, &mut self.bad, &mut self.rng);
        let kind = bad.total() % 4;
        if kind == 3 {
            bad.garbage += 1;
            // Neither digits nor letters: it cannot hold the start of a message by chance.
            let length = rng.between(8, 64);
            out.extend((0..length).map(|_| rng.pick(b"\x00\x01\x02 !#|~\x80\xff")));
            return;
        }
        wire.begin(*venue, b'8', self.sim.x.now);
        match kind {
            0 => {
                bad.checksum += 1;
                wire.raw(body);
                wire.end_flawed(FixFrameFlaw::Checksum, out);
            }
            1 => {
                bad.body_length += 1;
                wire.raw(body);
                let off = rng.between(1, 9) * rng.pick(&[-1, 1]);
                wire.end_flawed(FixFrameFlaw::BodyLength(off), out);
            }
            _ => {
                bad.decimals += 1;
                let tag = b"\x0131=";
                let price_start =
                    body.windows(tag.len()).position(|w| w == tag).expect("an exec has its price")
                        + tag.len();
                let end = price_start
                    + body[price_start..].iter().position(|&b| b == 1).expect("a field has its end");
                wire.raw(&body[..end]);
                let point: &[u8] = if body[price_start..end].contains(&b'.') { b"" } else { b"." };
                wire.raw(point);
                wire.raw(b"000000000001");
                wire.raw(&body[end..]);
                wire.end(out);
            }
        }
    }
}

/// Describes an execution as a leg of a scene.
fn leg(world: &SimulatedMarket, event: &DayEvent) -> WashTradeLeg {
    let DayEventBody::Exec { order, px, qty, match_id, .. } = event.body else { panic!("a leg is an exec") };
    WashTradeLeg {
        ts: event.ts,
        venue: world.venue_name(order.book),
        oid: names::oid_text(order.oid),
        match_id: names::match_text(match_id),
        owner: world.owner_name(order.member).to_owned(),
        side: if order.side == Side::Buy { "B" } else { "S" },
        px: names::decimal(world.listed(order.book).nano(px)),
        qty: qty.to_string(),
    }
}

const WASH: &str = Scenario::WashTrade.id();
/// So that noise and day do not draw the same numbers.
const SALT: u64 = 0x64_72_6f_70_63_6f_70_79;
