//! A day of a simulated market, in full: [`Sim`].
//!
//! ```text
//!   SimConfig ─▶ plan: who, where, when                       ┌──▶ write_frame events as on a tape
//!                  │                                          ├──▶ write_line  … as JSON Lines
//!   crowd ─────────┤   orders   ┌──────────────────┐  events  ├──▶ FixOut      FIX 4.4 drop copy
//!   scenes ────────┼───────────▶│ books, by venue  │─────────▶┼──▶ SwiftOut    payments, MT103 and MT202
//!   phases, halts ─┘            │ and instrument   │          ├──▶ FixedOut    fixed-width records
//!                               │                  │          ├──▶ ItchOut     ITCH 5.0, one venue
//!   news, payments ────────────▶└──────────────────┘          │
//!                                 │ Sim::book        truth: labels, near misses, lives of orders, positions
//! ```
//!
//! [`Sim::step`] plays the next thing that happens and returns its events: one request with all that follows from it.
//! [`Sim::book`] shows the books afterwards. [`OrderLedger`] derives the same from the events alone, so that a book
//! made from a tape can be compared with either, after every event or after every step.
//!
//! ```
//! use unitape_model::Side;
//! use unitape_sim::{Sim, SimConfig};
//! use unitape_sim::day::DayEventBody;
//!
//! let mut sim = Sim::new(SimConfig { seed: 7, events: 5_000, instruments: 12, ..SimConfig::default() })?;
//! let mut trades = 0;
//! while sim.step().is_some() {
//!     for event in sim.last_events() {
//!         if let DayEventBody::Trade { book, px, .. } = event.body {
//!             let (venue, instr) = (sim.world().venue_of(book), sim.world().instr_of(book));
//!             let left = sim.depth(venue, instr, Side::Sell); // its depth after the step
//!             assert!(left.is_empty() || px > 0);
//!             trades += 1;
//!         }
//!     }
//! }
//! assert!(trades > 0 && sim.labels().iter().any(|label| label.scenario == "spoofing"));
//! # Ok::<(), unitape_sim::Error>(())
//! ```
//!
//! # The day
//!
//! `pre` ▸ `auction` ▸ `open` ▸ `auction` ▸ `close`, for all books at once; an auction matches at one price. Some
//! instruments are halted for a while on all venues: a `status` and a `session` say so, only cancels are accepted,
//! and the halt ends with an auction. Orders left at the close are cancelled after it.
//!
//! A stop (`type` `stop` or `stoplmt`) waits outside the book; when its price trades it comes as an `order_amend` with
//! `type` `market` or `limit`, and matches from then on. IOC, FOK and market orders are never in a book.
//!
//! # What it does not do
//!
//! It is no model of how markets move, and it has no market makers: everybody stays on one side of an instrument. While a
//! scene acts, the background keeps out of its book (of a marked close for ten minutes). Venues do not know of each other:
//! there is no routing. Prices are not checked against bands. A consolidated best price and rejects are in a [`market`]
//! of several days only.
//!
//! # Labels
//!
//! For each scenario of [`Scenario::SIMPLE_DAY`] the labels are complete: with default parameters it fires where a label is and
//! nowhere else. The background cannot do it by accident, by construction: a group of owners trades an instrument on one
//! side only; nobody sends more than 30 messages in any second; orders of algorithms are small, few and all
//! different; the closing auction has a collar of 40 basis points, which only scenes break; and nobody pays more than
//! twice just under the threshold.

mod auction;
mod close;
mod config;
mod crowd;
mod drop_copy;
mod event;
mod exchange;
mod fix;
mod fixed;
mod frames;
mod instrument_prints;
mod itch;
mod ledger;
pub mod market;
mod minute_volumes;
pub mod names;
mod payment_flow;
mod plan;
mod rate_limit;
mod scenes;
mod swift;
mod truth;
mod world;

pub use auction::clearing;
pub use config::SimConfig;
pub use drop_copy::{
    DamageCounts, DropCopy, DropCopyTotals, DropCopyTruth, InjectedNoiseConfig, LastBbo, WashTradeLeg,
    WashTradePair,
};
pub use event::{
    DayEvent, DayEventBody, LiquidityFlag, MarketPhase, OrderKind, OrderTicket, Payment, TimeInForce,
};
pub use fix::FixDayWriter;
pub use fixed::FixedDayWriter;
pub use frames::{write_frame, write_line};
pub use itch::ItchDayWriter;
pub use ledger::{OrderLedger, RestingOrder};
pub use scenes::Scenario;
pub use swift::SwiftDayWriter;
pub use truth::{AlertLabel, AlertLabelKey, DayTotals, NearMiss, OrderEnding, OrderLife};
pub use world::{ListedInstrument, MarketMember, SimulatedMarket, isin_check_digit};

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};
use unitape_model::{InstrumentId, Side};

use crate::book::{BestLevel, MatchingBook};
use crate::error::Error;
use crate::rng::Rng;
use config::DayTimes;
use crowd::BackgroundTraders;
use exchange::SimulatedVenues;
use payment_flow::PaymentGenerator;
use plan::{DayPlan, PlannedHalt, PlannedScene, SceneStage};
use rate_limit::MessageRateLimiter;
use scenes::SceneContext;
use truth::LabelSet;

/// A day under way. It holds the open orders, never the whole day.
#[derive(Debug)]
pub struct Sim {
    config: SimConfig,
    times: DayTimes,
    rng: Rng,
    x: SimulatedVenues,
    crowd: BackgroundTraders,
    governor: MessageRateLimiter,
    labels: LabelSet,
    scenes: Vec<PlannedScene>,
    halts: Vec<PlannedHalt>,
    payments: PaymentGenerator,
    /// The scenes of payments of this day.
    payment_scenes: std::ops::Range<usize>,
    at_close: Vec<(u32, scenes::PendingLabel)>,
    cues: BinaryHeap<Reverse<(u64, u64, ScheduledAction)>>,
    cues_made: u64,
    boot: u64,
    /// Requests of the background that came to something, and the events they made.
    requests: u64,
    made: u64,
    next_request: u64,
    news: u64,
    expiring: Vec<u32>,
    by_kind: [u64; KINDS.len()],
}

/// Everything that a day needs to begin.
struct DaySetup {
    config: SimConfig,
    world: SimulatedMarket,
    plan: DayPlan,
    payments: PaymentGenerator,
    payment_scenes: std::ops::Range<usize>,
    rng: Rng,
}

/// A scheduled action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ScheduledAction {
    Call(u32),
    Fill(u32),
    Open(u32),
    Halt(u32),
    HaltCall(u32),
    HaltOpen(u32),
    Window(u32),
    Close(u32),
    Expire,
    Scene(u32),
    News,
    Payment,
    PaymentStep(u32),
}

impl Sim {
    /// Sets a day up; nothing has happened yet.
    pub fn new(config: SimConfig) -> Result<Sim, Error> {
        config.check()?;
        config.check_simple_day()?;
        let mut rng = Rng::new(config.seed);
        let mut world = SimulatedMarket::new(&config, &mut rng);
        let plan = DayPlan::lay_out(&config, &mut world, &mut rng, 0)?;
        let payments = PaymentGenerator::new(&config, &plan.payments, &mut world, &mut rng);
        let payment_scenes = 0..payments.scenes.len();
        Ok(Self::begin(DaySetup { config, world, plan, payments, payment_scenes, rng }))
    }

    /// Begins the day of a plan, in a complete world.
    fn begin(setup: DaySetup) -> Sim {
        let DaySetup { config, world, plan, payments, payment_scenes, rng } = setup;
        let times = config.times();
        let x = SimulatedVenues::new(world, &config);
        let mut sim = Sim {
            governor: MessageRateLimiter::new(x.world.members.len()),
            crowd: BackgroundTraders::new(&x, &config),
            labels: LabelSet::default(),
            scenes: plan.scenes,
            halts: plan.halts,
            payments,
            payment_scenes,
            at_close: Vec::new(),
            cues: BinaryHeap::new(),
            cues_made: 0,
            boot: 0,
            requests: 0,
            made: 0,
            next_request: times.call,
            news: 0,
            expiring: Vec::new(),
            by_kind: [0; KINDS.len()],
            config,
            times,
            rng,
            x,
        };
        sim.set_cues();
        sim
    }

    /// Plays the next step and returns its events, at least one. Returns `None` when the day is over. The events of a
    /// step belong together, as those of one message do.
    #[allow(clippy::should_implement_trait, reason = "the events are lent, not given")]
    pub fn step(&mut self) -> Option<&[DayEvent]> {
        self.play_step(false).then_some(&self.x.out)
    }

    /// Plays a step; false when the day is over, or when the closing call is next and it is `to_close`.
    fn play_step(&mut self, to_close: bool) -> bool {
        self.x.out.clear();
        while self.x.out.is_empty() {
            if to_close && self.closes() || !self.advance() {
                return false;
            }
        }
        for event in &self.x.out {
            self.by_kind[kind_index(&event.body)] += 1;
        }
        true
    }

    /// Returns the events of the last step again, so that the caller can look at the day at the same time.
    pub fn last_events(&self) -> &[DayEvent] {
        &self.x.out
    }

    /// Plays the next step and appends its frames to `out`, ready for a tape. Returns false when the day is over.
    /// Allocates nothing once `out` is large enough.
    pub fn step_frames(&mut self, out: &mut Vec<u8>) -> bool {
        let on = self.step().is_some();
        let last = self.x.seq;
        self.x.out.iter().for_each(|e| write_frame(&self.x.world, e, e.seq == last, out));
        on
    }

    /// Hands every event of the day to `each`.
    pub fn for_each(&mut self, mut each: impl FnMut(&DayEvent)) {
        while let Some(events) = self.step() {
            events.iter().for_each(&mut each);
        }
    }

    /// Returns the members, venues and instruments of the day.
    pub fn world(&self) -> &SimulatedMarket {
        &self.x.world
    }

    /// Returns the requested configuration.
    pub fn config(&self) -> &SimConfig {
        &self.config
    }

    /// Returns the book of an instrument on a venue, by their indices, after the last step. Pass an order's tag to
    /// [`Sim::order_number`].
    pub fn book(&self, venue: usize, instr: InstrumentId) -> &MatchingBook {
        &self.x.desk(self.x.world.book(venue, instr)).book
    }

    /// Returns the phase of a book.
    pub fn phase(&self, venue: usize, instr: InstrumentId) -> MarketPhase {
        self.x.desk(self.x.world.book(venue, instr)).phase
    }

    /// Returns the number of the order that a tag in a [`MatchingBook`] refers to.
    pub fn order_number(&self, tag: u32) -> u64 {
        self.x.order(tag).terms.oid
    }

    /// Returns the levels of one side, best first: price in ticks and quantity.
    pub fn depth(&self, venue: usize, instr: InstrumentId, side: Side) -> Vec<BestLevel> {
        self.book(venue, instr).levels(side).collect()
    }

    /// Returns the net position of an owner in an instrument, by their indices.
    pub fn position(&self, owner: u32, instr: InstrumentId) -> i64 {
        self.x.positions.get(&(owner, instr)).map_or(0, |p| p.0)
    }

    /// Returns all net positions, sorted: owner, instrument, quantity.
    pub fn positions(&self) -> Vec<(u32, InstrumentId, i64)> {
        let mut all: Vec<_> =
            self.x.positions.iter().map(|(&(owner, instr), position)| (owner, instr, position.0)).collect();
        all.sort_unstable();
        all
    }

    /// Labels so far, in order of the event that completes them.
    pub fn labels(&self) -> Vec<&AlertLabel> {
        let mut all: Vec<&AlertLabel> = self.labels.labels.iter().collect();
        all.sort_by_key(|l| (l.trigger_seq, l.scenario, l.key.clone()));
        all
    }

    /// Returns the near misses so far.
    pub fn near_misses(&self) -> &[NearMiss] {
        &self.labels.near_misses
    }

    /// Orders that ended since the last call; always empty unless [`SimConfig::keep_lives`] is set.
    pub fn take_lives(&mut self) -> Vec<OrderLife> {
        self.x.lives.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Returns the number of events so far.
    pub fn events(&self) -> u64 {
        self.x.seq
    }

    /// Totals so far.
    pub fn totals(&self) -> DayTotals {
        let by_kind = KINDS.iter().zip(self.by_kind).filter(|(_, n)| *n > 0);
        DayTotals {
            seed: self.config.seed,
            events: self.x.seq,
            by_kind: by_kind.map(|(&kind, n)| (kind, n)).collect(),
            first_ts: self.config.start_ns,
            last_ts: self.x.now,
            covers: truth::covers(),
        }
    }

    /// Writes the truth so far as JSON Lines: `day`, `label`, `near_miss`, `position` and, where orders rest, `book`.
    pub fn write_truth(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut label_set = LabelSet { near_misses: self.labels.near_misses.clone(), ..LabelSet::default() };
        label_set.labels = self.labels().into_iter().cloned().collect();
        truth::write_jsonl(&self.totals(), &label_set, &self.x, out)
    }

    fn set_cues(&mut self) {
        let DayTimes { call, open, window, closing_call, close } = self.times;
        let (books, depth) = (self.x.world.books() as u32, (self.config.depth / 3).clamp(4, 24) as u64);
        for book in 0..books {
            self.cue(call, ScheduledAction::Call(book));
            self.cue(open, ScheduledAction::Open(book));
            self.cue(window + 1, ScheduledAction::Window(book));
            self.cue(closing_call, ScheduledAction::Call(book));
            self.cue(close, ScheduledAction::Close(book));
        }
        // The books fill in the first half of the call, each in turn.
        for n in 0..depth * u64::from(books) {
            let ts = call + 1 + (open - call) / 2 * n / (depth * u64::from(books));
            self.cue(ts, ScheduledAction::Fill((n % u64::from(books)) as u32));
        }
        self.cue(close + config::S, ScheduledAction::Expire);
        for n in 0..self.halts.len() {
            self.cue(self.halts[n].start_ts, ScheduledAction::Halt(n as u32));
            self.cue(self.halts[n].call, ScheduledAction::HaltCall(n as u32));
            self.cue(self.halts[n].open, ScheduledAction::HaltOpen(n as u32));
        }
        for n in 0..self.scenes.len() {
            self.cue(self.scenes[n].start_ts, ScheduledAction::Scene(n as u32));
        }
        let (from, span) = (self.config.start_ns, self.config.span_ns);
        for _ in 0..self.config.news {
            let ts = open + self.rng.below(closing_call - open);
            self.cue(ts, ScheduledAction::News);
        }
        for _ in 0..self.config.payments {
            let ts = from + self.rng.below(span);
            self.cue(ts, ScheduledAction::Payment);
        }
        let day = from..from + span;
        for n in 0..self.payments.scenes.len() {
            for step in 0..self.payments.scenes[n].steps.len() {
                let ts = match self.payments.scenes[n].steps[step].ts {
                    None if self.payment_scenes.contains(&n) => from + self.rng.below(span),
                    // Also of a scene of the next day, which reaches back into this one.
                    Some(ts) if day.contains(&ts) => ts,
                    _ => continue,
                };
                self.cue(ts, ScheduledAction::PaymentStep(n as u32));
            }
        }
    }

    fn cue(&mut self, ts: u64, cue: ScheduledAction) {
        self.cues_made += 1;
        self.cues.push(Reverse((ts, self.cues_made, cue)));
    }

    /// Returns whether more requests of the background follow.
    fn has_background(&self) -> bool {
        self.x.seq < self.config.events && self.next_request < self.times.close
    }

    /// Returns whether the next action is the closing call, or later.
    fn closes(&self) -> bool {
        let call = self.times.closing_call;
        let due = self.cues.peek().map(|Reverse((cue_ts, ..))| *cue_ts);
        due.is_none_or(|ts| ts >= call) && !(self.has_background() && self.next_request < call)
    }

    /// Plays the next thing, which may come to nothing; false when the day is over.
    fn advance(&mut self) -> bool {
        if self.start() {
            return true;
        }
        let due = self.cues.peek().map(|Reverse((cue_ts, ..))| *cue_ts);
        let background = self.has_background();
        match due {
            Some(ts) if !background || ts <= self.next_request => {
                let Reverse((ts, _, cue)) = self.cues.pop().expect("it was just there");
                self.x.now = self.x.now.max(ts);
                self.play(cue);
                true
            }
            _ if background => {
                self.x.now = self.x.now.max(self.next_request);
                let before = self.x.seq;
                self.crowd.act(&mut self.x, &mut self.governor, &mut self.rng);
                // A request that was not allowed must not make the next one come sooner, or they would come without end.
                let made = self.x.seq - before;
                self.requests += u64::from(made > 0);
                self.made += made;
                let mean = self.mean_gap_ns();
                self.next_request += self.crowd.gap_ns(mean, &mut self.rng);
                true
            }
            _ => self.expire(),
        }
    }

    /// Returns the mean time between requests: the rest of the day over the remaining events, times the events per
    /// request so far.
    fn mean_gap_ns(&self) -> u64 {
        let left_ns = self.times.close.saturating_sub(self.next_request);
        let left = self.config.events.saturating_sub(self.x.seq).max(1);
        let mean = u128::from(left_ns) * u128::from(self.made.max(1))
            / u128::from(left)
            / u128::from(self.requests.max(1));
        (mean as u64).clamp(LEAST_GAP_NS, self.config.span_ns / 1000)
    }

    /// Writes reference data, groups and the first phase of every book, one event a step.
    fn start(&mut self) -> bool {
        let (instruments, owners, books) = (
            self.x.world.instruments.len() as u64,
            self.x.world.groups.len() as u64,
            self.x.world.books() as u64,
        );
        let n = self.boot;
        self.boot += 1;
        if n < instruments {
            self.x.emit(DayEventBody::Ref { instr: InstrumentId(n as u32) });
        } else if n < instruments + owners {
            let owner = (n - instruments) as u32;
            if self.x.world.groups[owner as usize] != owner + 1 {
                self.x.emit(DayEventBody::Party { owner });
            }
        } else if n < instruments + owners + books {
            let book = (n - instruments - owners) as u32;
            self.x.emit(DayEventBody::Session { book, phase: MarketPhase::Pre, px: None });
        } else {
            self.boot -= 1;
            return false;
        }
        true
    }

    fn play(&mut self, cue: ScheduledAction) {
        match cue {
            ScheduledAction::Call(book) => self.x.enter(book, MarketPhase::Auction, None),
            ScheduledAction::Fill(book) => {
                self.crowd.call(&mut self.x, book, &mut self.governor, &mut self.rng)
            }
            ScheduledAction::Open(book) => self.open(book),
            ScheduledAction::Halt(n) => {
                self.each_book(n, |sim, book| sim.x.enter(book, MarketPhase::Halt, None))
            }
            ScheduledAction::HaltCall(n) => {
                self.each_book(n, |sim, book| sim.x.enter(book, MarketPhase::Auction, None))
            }
            ScheduledAction::HaltOpen(n) => self.each_book(n, Sim::open),
            ScheduledAction::Window(book) => {
                let desk = self.x.desk_mut(book);
                desk.window = Some(desk.last_trade.or(desk.earlier_trade));
            }
            ScheduledAction::Close(book) => self.close(book),
            ScheduledAction::Expire => self.list_expiring(),
            ScheduledAction::Scene(n) => self.scene(n),
            ScheduledAction::News => {
                self.news += 1;
                let instr = InstrumentId(self.rng.below(self.x.world.instruments.len() as u64) as u32);
                let good = match self.crowd.overextension_sign(instr) {
                    0 => self.rng.one_in(2),
                    stretch => stretch < 0,
                };
                let size = self.rng.between(10, 60);
                let ticks = if good { size } else { -size };
                self.crowd.drift[instr.index()] += ticks;
                self.x.emit(DayEventBody::News { id: self.news, instr, good, ticks });
            }
            ScheduledAction::Payment => self.payments.background_payment(&mut self.x, &mut self.rng),
            ScheduledAction::PaymentStep(n) => {
                self.payments.play_step(n as usize, &mut self.x, &mut self.labels)
            }
        }
    }

    fn each_book(&mut self, halt: u32, each: impl Fn(&mut Sim, u32)) {
        let instr = self.halts[halt as usize].instr;
        (0..self.x.world.venues.len()).for_each(|venue| each(self, self.x.world.book(venue, instr)));
    }

    /// Ends a call: matches, and resumes continuous trading.
    fn open(&mut self, book: u32) {
        let reference = self.x.desk(book).last_trade.unwrap_or(self.x.world.listed(book).reference);
        let px = self.x.uncross(book, reference, None);
        self.x.enter(book, MarketPhase::Open, px);
    }

    fn scene(&mut self, n: u32) {
        if self.scenes[n as usize].stage == SceneStage::Over {
            return;
        }
        let is_covered = self.x.gate.is_some() && self.breaks_off(n);
        let is_refused = self.scenes[n as usize].stage == SceneStage::Refused;
        if is_covered != is_refused {
            // Broken off; or resumed, and the lead that was refused has given up.
            self.scenes[n as usize].stage = SceneStage::Over;
            return;
        }
        let planned = &mut self.scenes[n as usize];
        if !is_refused {
            planned.stage = SceneStage::Acts;
        }
        let mut stage = SceneContext {
            x: &mut self.x,
            rng: &mut self.rng,
            labels: &mut self.labels,
            governor: &mut self.governor,
            at_close: &mut self.at_close,
            fair: &self.crowd.fair,
            drift: &mut self.crowd.drift,
            news: &mut self.news,
            pace: self.crowd.pace,
            next_parent: &mut self.crowd.next_parent,
            scene: planned.number,
        };
        let next =
            if is_refused { planned.scene.send_refused(&mut stage) } else { planned.scene.play(&mut stage) };
        match next {
            Some(ts) => self.cue(ts, ScheduledAction::Scene(n)),
            None => planned.stage = SceneStage::Over,
        }
    }
}

/// Least mean time between two requests, so that the day ends whatever the configuration.
const LEAST_GAP_NS: u64 = 100;

/// Kinds of events that a day has.
const KINDS: [&str; 16] = [
    "ref",
    "party",
    "session",
    "status",
    "bbo",
    "trade",
    "order_recv",
    "parent",
    "order_new",
    "order_amend",
    "order_cancel",
    "exec",
    "news",
    "payment",
    "list",
    "position",
];

fn kind_index(body: &DayEventBody) -> usize {
    match body {
        DayEventBody::Ref { .. } => 0,
        DayEventBody::Party { .. } => 1,
        DayEventBody::Session { .. } => 2,
        DayEventBody::Status { .. } => 3,
        DayEventBody::Bbo { .. } => 4,
        DayEventBody::Trade { .. } => 5,
        DayEventBody::OrderRecv { .. } => 6,
        DayEventBody::Parent { .. } => 7,
        DayEventBody::New(_) => 8,
        DayEventBody::Amend(_) => 9,
        DayEventBody::Cancel(_) | DayEventBody::Reject(_) => 10,
        DayEventBody::Exec { .. } => 11,
        DayEventBody::News { .. } => 12,
        DayEventBody::Payment(_) => 13,
        DayEventBody::List(_) => 14,
        DayEventBody::Position { .. } => 15,
    }
}

impl DayEventBody {
    /// Returns the word for the event's kind, as in `docs/events.md`.
    pub fn kind(&self) -> &'static str {
        KINDS[kind_index(self)]
    }
}
