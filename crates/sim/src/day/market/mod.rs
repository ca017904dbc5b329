//! A market of several days: [`Market`].
//!
//! ```text
//!              Sim: a day after the other, in one world
//!                │ events of the venues, news, payments
//!                ▼
//!   controls ─▶ Market ─▶ the same, with desk, entry point, short mark and flags
//!                │         levels of the first venue, national best, index      what follows from them
//!                │         reference prices, messages, corrected news           by the clock
//!                │         lists, links, positions; statements                  as a day begins; as it ends
//!                └──────▶ truth: labels, near misses, impact of news, positions
//! ```
//!
//! [`Market::step`] plays what happens next and gives its events; [`write_market_line`] and [`write_market_frame`] write
//! them. Positions, closing prices, cash and numbers are carried over from day to day. What scenes fire is labelled over
//! all days, as [`super`] explains.
//!
//! ```
//! use unitape_sim::day::market::{ControlAction, ControlRequest, Market, MarketConfig};
//! use unitape_sim::SimConfig;
//!
//! let day = SimConfig { seed: 7, events: 3_000, instruments: 40, ..SimConfig::default() };
//! let mut market = Market::new(MarketConfig { day, days: 2, ..MarketConfig::default() })?;
//! let halt = ControlRequest { action: ControlAction::Halt, firm: Some("F03".to_owned()), ..Default::default() };
//! market.control(&halt)?; // from now on no order of this firm is accepted
//! let mut kinds = std::collections::BTreeSet::new();
//! while let Some(events) = market.step() {
//!     kinds.extend(events.iter().map(|event| event.body.kind()));
//! }
//! assert!(kinds.contains("index") && kinds.contains("statement") && kinds.contains("control"));
//! # Ok::<(), unitape_sim::Error>(())
//! ```
//!
//! # What it does not do
//!
//! Venues do not know of each other, so the national best may be locked or crossed. A control refuses requests: an
//! auction still matches what rests, and no phase changes. A scene that a control covers is broken off without a label; a runaway
//! algorithm continues to send, and each of its orders is refused and counted.

mod cash;
mod config;
mod control;
mod event;
mod frames;
mod index;
mod levels;
mod lexicon;
mod national;
mod opening;
mod shorts;
mod truth;

pub use config::MarketConfig;
pub(crate) use config::date_of;
pub(crate) use control::RequestGate;
pub use control::{ControlAction, ControlRequest, RefusedRequests};
pub use event::{
    CashEntry, CashStatement, CommMessage, LevelAction, ListEntry, ListedParty, MarketEvent, MarketEventBody,
    NewsRevision, OwnerLink, PriceLevel, ShortMark,
};
pub use frames::{write_market_frame, write_market_line};
pub(crate) use index::{CONSTITUENTS_MAX, index_value};
pub use truth::{MarketDayTotals, NewsImpact};

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use unitape_model::{InstrumentId, NameKind, Side};

use super::config::{S, SimConfig};
use super::crowd::PricePace;
use super::event::{DayEvent, DayEventBody, MarketPhase, OrderTicket};
use super::plan::{DayPlan, PlannedMessage};
use super::rate_limit::MessageRateLimiter;
use super::truth::{AlertLabel, NearMiss, OrderLife};
use super::world::SimulatedMarket;
use super::{DaySetup, PaymentGenerator, Sim};
use crate::error::Error;
use crate::rng::Rng;
use cash::CashLedger;
use index::IndexSeries;
use levels::LevelFeed;
use national::NationalBest;
use shorts::ShortMarks;

/// A market of several days under way. It holds the open orders, the labels, and the order of the events of a single
/// day.
#[derive(Debug)]
pub struct Market {
    config: MarketConfig,
    sim: Sim,
    rng: Rng,
    /// The days that are still to come.
    plans: VecDeque<PlannedDay>,
    stage: DayStage,
    out: Vec<MarketEvent>,
    bodies: Vec<MarketEventBody>,
    seq: u64,
    now: u64,
    ids: MarketNameIds,
    national: NationalBest,
    levels: LevelFeed,
    index: IndexSeries,
    cash: CashLedger,
    shorts: ShortMarks,
    /// The quantity that each owner holds of an instrument.
    holdings: BTreeMap<(u32, InstrumentId), i64>,
    closing: Vec<Option<i64>>,
    agenda: BinaryHeap<Reverse<(u64, u64, AgendaItem)>>,
    agenda_made: u64,
    controls: VecDeque<ControlRequest>,
    comms: u64,
    /// The messages of scenes of this day.
    messages: Vec<PlannedMessage>,
    last_comm: Option<CommMessage>,
    /// The first events of the day's runs without a gap: their ordinals in the day and in the market.
    runs: Vec<(u64, u64)>,
    labels: Vec<AlertLabel>,
    near_misses: Vec<NearMiss>,
    news: Vec<NewsImpact>,
    totals: Vec<MarketDayTotals>,
    by_kind: BTreeMap<&'static str, u64>,
}

/// A day that is still to come.
#[derive(Debug)]
struct PlannedDay {
    config: SimConfig,
    plan: DayPlan,
    payment_scenes: std::ops::Range<usize>,
}

/// How far a day is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DayStage {
    /// The reference data of the day are being given.
    References,
    Trading,
    /// The last day is over.
    Over,
}

/// The scheduled actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum AgendaItem {
    /// Composite prices of all instruments.
    ReferencePrices,
    Comm,
    /// The message of a scene.
    Message(u32),
    /// The news of this place in the truth is corrected.
    Revision(u32),
}

/// Ids of names that the writers need.
#[derive(Debug, Clone, Copy)]
struct MarketNameIds {
    index: u32,
    national: u32,
    /// Entry points: of algorithms, of agents, of a firm's own traders.
    entries: [u32; 3],
    /// Lists: restricted, insider, watch.
    lists: [u32; 3],
    /// The first of the senders of messages.
    senders: u32,
}

impl Market {
    /// Sets a market up; nothing has happened yet.
    pub fn new(config: MarketConfig) -> Result<Market, Error> {
        let days = config.each_day()?;
        let first = days.first().expect("there is a day at least").clone();
        let mut rng = Rng::new(first.seed);
        let mut world = SimulatedMarket::new(&first, &mut rng);
        // The cast of all days comes first: accounts of payments follow all others.
        let (mut plans, mut planned_payments, mut numbered) = (VecDeque::new(), Vec::new(), 0);
        for config in days {
            let plan = DayPlan::lay_out(&config, &mut world, &mut rng, numbered)?;
            numbered += (plan.scenes.len() + plan.payments.len() + plan.messages.len()) as u32;
            let from = planned_payments.len();
            planned_payments.extend_from_slice(&plan.payments);
            plans.push_back(PlannedDay { config, plan, payment_scenes: from..planned_payments.len() });
        }
        let payments = PaymentGenerator::new(&first, &planned_payments, &mut world, &mut rng);
        let ids = MarketNameIds::add(&mut world);
        let today = plans.pop_front().expect("there is a day at least");
        let salted = |salt: u64| Rng::new(first.seed ^ salt);
        let PlannedDay { config: day, mut plan, payment_scenes } = today;
        let messages = std::mem::take(&mut plan.messages);
        let mut sim = Sim::begin(DaySetup { config: day, world, plan, payments, payment_scenes, rng });
        sim.crowd.pace = PricePace::Days;
        sim.x.gate = Some(Box::new(RequestGate::new(config.reject_one_in, salted(GATE_SALT))));
        let (world, now) = (&sim.x.world, sim.x.now);
        let mut market = Market {
            national: NationalBest::new(world),
            levels: LevelFeed::new(world.instruments.len()),
            index: IndexSeries::new(world),
            closing: vec![None; world.instruments.len()],
            rng: salted(MARKET_SALT),
            config,
            sim,
            plans,
            stage: DayStage::References,
            out: Vec::new(),
            bodies: Vec::new(),
            seq: 0,
            now,
            ids,
            cash: CashLedger::default(),
            shorts: ShortMarks::default(),
            holdings: BTreeMap::new(),
            agenda: BinaryHeap::new(),
            agenda_made: 0,
            controls: VecDeque::new(),
            comms: 0,
            messages,
            last_comm: None,
            runs: Vec::new(),
            labels: Vec::new(),
            near_misses: Vec::new(),
            news: Vec::new(),
            totals: Vec::new(),
            by_kind: BTreeMap::new(),
        };
        market.measure_prints();
        market.endow();
        Ok(market)
    }

    /// Plays the next step and returns its events, at least one. Returns `None` when the last day is over. The events
    /// of a step belong together, as those of one message do.
    #[allow(clippy::should_implement_trait, reason = "the events are lent, not given")]
    pub fn step(&mut self) -> Option<&[MarketEvent]> {
        self.out.clear();
        while self.out.is_empty() {
            if !self.advance() {
                return None;
            }
        }
        Some(&self.out)
    }

    /// Returns the events of the last step again.
    pub fn last_events(&self) -> &[MarketEvent] {
        &self.out
    }

    /// Takes a control. The market obeys it before the first request at or after its time; it obeys at once if that
    /// time has passed, as the control's event then says. After the last event it obeys no control.
    pub fn control(&mut self, request: &ControlRequest) -> Result<(), Error> {
        request.check()?;
        for (_, dict, name) in request.scope_names() {
            if let Some(name) = name {
                self.sim.x.world.name_checked(dict, name)?;
            }
        }
        if let Some(requester) = &request.requester {
            self.sim.x.world.name_checked(NameKind::Name, requester)?;
        }
        let index = self.controls.partition_point(|queued_control| queued_control.ts <= request.ts);
        self.controls.insert(index, request.clone());
        Ok(())
    }

    /// Returns the day as its venues see it: its books and phases after the last step. Its events and labels have their
    /// own ordinals.
    pub fn sim(&self) -> &Sim {
        &self.sim
    }

    /// Returns the members, venues and instruments.
    pub fn world(&self) -> &SimulatedMarket {
        &self.sim.x.world
    }

    /// Returns the requested configuration.
    pub fn config(&self) -> &MarketConfig {
        &self.config
    }

    /// Returns the number of events so far.
    pub fn events(&self) -> u64 {
        self.seq
    }

    /// Counts the requests that controls have refused so far.
    pub fn refused(&self) -> RefusedRequests {
        self.sim.x.gate.as_deref().map(|gate| gate.refused).unwrap_or_default()
    }

    /// Returns the quantity that an owner holds of an instrument, by their indices.
    pub fn holding(&self, owner: u32, instr: InstrumentId) -> i64 {
        self.holdings.get(&(owner, instr)).copied().unwrap_or(0)
    }

    /// Orders that ended since the last call; always empty unless [`SimConfig::keep_lives`] is set.
    pub fn take_lives(&mut self) -> Vec<OrderLife> {
        let mut lives = self.sim.take_lives();
        for life in &mut lives {
            life.seq_entered = self.ordinal(life.seq_entered);
            life.seq_ended = self.ordinal(life.seq_ended);
        }
        lives
    }

    /// Plays the next thing, which may come to nothing; false when the last day is over.
    fn advance(&mut self) -> bool {
        if self.stage == DayStage::Over {
            return false;
        }
        let boot = self.sim.boot;
        if self.stage == DayStage::References && boot == self.sim.x.world.instruments.len() as u64 {
            self.stage = DayStage::Trading;
            self.open_day();
            return true;
        }
        let Some(due) = self.sim.next_ts() else {
            self.end_day();
            return true;
        };
        if self.controls.front().is_some_and(|control| control.ts <= due) {
            let control = self.controls.pop_front().expect("it was just there");
            self.sim.x.now = self.sim.x.now.max(control.ts);
            self.now = self.sim.x.now;
            self.sim.obey(&control);
            self.push_event(MarketEventBody::Control(Box::new(control)));
        } else if self.agenda.peek().is_some_and(|Reverse((ts, ..))| *ts <= due) {
            let Reverse((ts, _, item)) = self.agenda.pop().expect("it was just there");
            self.sim.x.now = self.sim.x.now.max(ts);
            self.now = self.sim.x.now;
            self.sim.x.out.clear();
            self.play(item);
        } else {
            self.sim.x.out.clear();
            self.sim.advance();
        }
        self.absorb();
        true
    }

    /// Takes over the day's new events, and adds the events that follow from them.
    fn absorb(&mut self) {
        let events = std::mem::take(&mut self.sim.x.out);
        if let Some(first) = events.first() {
            let run = (first.seq, self.seq + 1);
            if self.runs.last().is_none_or(|last| last.1 - last.0 != run.1 - run.0) {
                self.runs.push(run);
            }
            events.iter().for_each(|event| self.take_over(event));
            let (x, bodies) = (&self.sim.x, &mut self.bodies);
            self.levels.publish(x, |body| bodies.push(body));
            self.national.publish(&x.world, |body| bodies.push(body));
            bodies.extend(self.index.publish(self.now, false).map(|px| MarketEventBody::Index { px }));
            self.put_bodies();
        }
        self.sim.x.out = events;
        if let Some((instr, half_ticks)) = self.sim.x.reference_half_ticks.take() {
            self.now = self.sim.x.now;
            self.push_event(MarketEventBody::ReferencePrice { instr, half_ticks });
        }
        self.take_labels();
    }

    fn take_over(&mut self, event: &DayEvent) {
        let (world, body) = (&self.sim.x.world, &event.body);
        self.now = event.ts;
        self.levels.apply(body);
        self.national.apply(world, body);
        self.index.apply(world, body);
        self.cash.apply(world, body);
        let holder = |t: &OrderTicket| (world.members[t.member as usize].owner, world.instr_of(t.book));
        let mut short = None;
        match body {
            DayEventBody::New(t)
            | DayEventBody::Reject(t)
            | DayEventBody::Amend(t)
            | DayEventBody::Cancel(t) => {
                let holding = self.holdings.get(&holder(t)).copied().unwrap_or(0);
                short = self.shorts.mark(holding, body);
            }
            DayEventBody::Exec { order, qty, .. } => {
                let holding = self.holdings.entry(holder(order)).or_default();
                short = self.shorts.mark(*holding, body);
                *holding += if order.side == Side::Buy { *qty } else { -qty };
            }
            DayEventBody::Session { book, phase: MarketPhase::Close, px: Some(px) } => {
                self.closing[world.instr_of(*book).index()].get_or_insert(*px);
            }
            DayEventBody::News { id, instr, ticks, .. } => {
                let impact = NewsImpact {
                    id: *id,
                    instr: *instr,
                    ticks: *ticks,
                    ts: event.ts,
                    seq: self.seq + 1,
                    revises: None,
                };
                self.news.push(impact);
                if self.rng.one_in(5) {
                    let revision_ts = event.ts + self.rng.between(60, 1_800) as u64 * S;
                    let number = self.news.len() as u32 - 1;
                    self.plan(revision_ts, AgendaItem::Revision(number));
                }
            }
            _ => {}
        }
        self.push_event(match *body {
            DayEventBody::List(entry) => MarketEventBody::List(entry),
            DayEventBody::Position { owner, instr, qty, open_interest } => {
                MarketEventBody::Position { owner, instr, qty, open_interest }
            }
            body => MarketEventBody::Day { body, short },
        });
    }

    fn play(&mut self, item: AgendaItem) {
        match item {
            AgendaItem::ReferencePrices => {
                for instr in self.sim.x.world.instrument_ids() {
                    if let Some(half_ticks) = self.national.mid_half_ticks(instr) {
                        self.push_event(MarketEventBody::ReferencePrice { instr, half_ticks });
                    }
                }
            }
            AgendaItem::Comm => self.talk(),
            AgendaItem::Message(n) => self.play_message(n as usize),
            AgendaItem::Revision(number) => {
                let NewsImpact { id: revises, instr, ticks, .. } = self.news[number as usize];
                self.sim.news += 1;
                let (id, ticks) = (self.sim.news, -ticks / 2);
                self.sim.crowd.drift[instr.index()] += ticks;
                let (ts, seq) = (self.now, self.seq + 1);
                self.news.push(NewsImpact { id, instr, ticks, ts, seq, revises: Some(revises) });
                self.push_event(MarketEventBody::Revision(NewsRevision { id, revises, instr, ticks }));
            }
        }
    }

    fn talk(&mut self) {
        self.comms += 1;
        let senders = MarketNameIds::senders_of(&self.sim.x.world);
        let mut somebody = || self.rng.below(senders.into()) as u32;
        let (mut from, mut to) = (somebody(), [somebody(), somebody()]);
        let mut reply_to = None;
        let mut instr = (!self.rng.one_in(4))
            .then(|| InstrumentId(self.rng.below(self.sim.x.world.instruments.len() as u64) as u32));
        if let Some(last) = self.last_comm
            && self.rng.one_in(3)
        {
            (from, to, reply_to, instr) = (last.to[0], [last.from; 2], Some(last.number), last.instr);
        }
        let (changed, text) = (self.rng.one_in(8), self.rng.below(frames::TEXTS) as u8);
        let message = CommMessage { number: self.comms, from, to, reply_to, instr, changed, text };
        self.last_comm = Some(message);
        self.push_event(MarketEventBody::Comm(message));
    }

    /// Ends a day: the index as it closes, and the statements. The next one begins, if there is one.
    fn end_day(&mut self) {
        self.now = self.sim.x.now;
        let px = self.index.publish(self.now, true);
        self.bodies.extend(px.map(|px| MarketEventBody::Index { px }));
        let statements = self.cash.end_day().into_iter();
        self.bodies.extend(statements.map(|statement| MarketEventBody::Statement(Box::new(statement))));
        self.put_bodies();
        self.end_totals();
        let Some(PlannedDay { config, mut plan, payment_scenes }) = self.plans.pop_front() else {
            self.stage = DayStage::Over;
            return;
        };
        for (listed, px) in self.sim.x.world.instruments.iter_mut().zip(&mut self.closing) {
            listed.reference = px.take().unwrap_or(listed.reference);
        }
        self.messages = std::mem::take(&mut plan.messages);
        self.sim.begin_day(config, plan, payment_scenes);
        self.now = self.sim.x.now;
        self.national.begin_day();
        self.agenda.clear();
        self.runs.clear();
        self.stage = DayStage::References;
    }

    fn push_event(&mut self, body: MarketEventBody) {
        self.seq += 1;
        *self.by_kind.entry(body.kind()).or_default() += 1;
        let label_set = &mut self.sim.labels;
        let label = match body {
            MarketEventBody::NationalBest { instr, .. } => label_set.quote_labels.remove(&instr),
            MarketEventBody::Index { .. } => label_set.index_label.take(),
            _ => None,
        };
        self.out.push(MarketEvent { seq: self.seq, ts: self.now, body });
        label.into_iter().for_each(|label| self.complete(label));
        if !self.sim.labels.timed.is_empty() {
            self.complete_timed_labels();
        }
    }

    /// Completes the labels that are due at the last event.
    fn complete_timed_labels(&mut self) {
        let (due, later): (Vec<_>, _) =
            std::mem::take(&mut self.sim.labels.timed).into_iter().partition(|label| label.ts <= self.now);
        self.sim.labels.timed = later;
        due.into_iter().for_each(|label| self.complete(label));
    }

    /// Completes a label at the last event.
    fn complete(&mut self, mut label: AlertLabel) {
        (label.first_seq, label.trigger_seq) = (self.ordinal(label.first_seq), self.seq);
        self.labels.push(label);
    }

    /// Measures the volume of the books, and the prints of the instruments, whose scenes need it, on all days.
    fn measure_prints(&mut self) {
        let plans = self.plans.iter().flat_map(|planned| &planned.plan.scenes);
        let scenes = self.sim.scenes.iter().chain(plans);
        for book in scenes.filter_map(|planned| planned.scene.measured_book()) {
            self.sim.x.desks[book as usize].volumes.get_or_insert_default();
        }
        let plans = self.plans.iter().flat_map(|planned| &planned.plan.scenes);
        for planned in self.sim.scenes.iter().chain(plans).filter(|planned| planned.scenario.follows_prints())
        {
            let instr = self.sim.x.world.instr_of(planned.books[0]);
            self.sim.x.prints.entry(instr).or_default();
        }
    }

    fn put_bodies(&mut self) {
        let mut bodies = std::mem::take(&mut self.bodies);
        bodies.drain(..).for_each(|body| self.push_event(body));
        self.bodies = bodies;
    }

    /// Puts something on the agenda of the day, unless the closing call begins before.
    fn plan(&mut self, ts: u64, item: AgendaItem) {
        if ts < self.sim.times.closing_call {
            self.agenda_made += 1;
            self.agenda.push(Reverse((ts, self.agenda_made, item)));
        }
    }

    /// Takes new labels over, with the ordinals of the market.
    fn take_labels(&mut self) {
        let label_set = &mut self.sim.labels;
        if label_set.labels.is_empty() && label_set.near_misses.is_empty() {
            return;
        }
        let (labels, near_misses) =
            (std::mem::take(&mut label_set.labels), std::mem::take(&mut label_set.near_misses));
        for mut label in labels {
            label.first_seq = self.ordinal(label.first_seq);
            label.trigger_seq = self.ordinal(label.trigger_seq);
            self.labels.push(label);
        }
        for mut miss in near_misses {
            miss.first_seq = self.ordinal(miss.first_seq);
            miss.last_seq = self.ordinal(miss.last_seq);
            miss.trigger_seq = miss.trigger_seq.map(|seq| self.ordinal(seq));
            self.near_misses.push(miss);
        }
    }

    /// Converts an event's ordinal in its day to its ordinal in the market.
    fn ordinal(&self, seq: u64) -> u64 {
        let run_count = self.runs.partition_point(|run| run.0 <= seq);
        let run = self.runs[run_count.checked_sub(1).expect("an event of this day")];
        seq - run.0 + run.1
    }
}

impl Sim {
    /// Returns the time of the next action, or `None` when the day is over.
    fn next_ts(&self) -> Option<u64> {
        let world = &self.x.world;
        if self.boot < (world.instruments.len() + world.groups.len() + world.books()) as u64 {
            return Some(self.x.now);
        }
        let cue = self.cues.peek().map(|Reverse((cue_ts, ..))| *cue_ts);
        let request = self.has_background().then_some(self.next_request);
        let due = [cue, request].into_iter().flatten().min();
        let due = due.or((!self.expiring.is_empty()).then_some(self.x.now));
        due.map(|ts| ts.max(self.x.now))
    }

    /// Begins another day in the same world, whose instruments have their new references.
    fn begin_day(&mut self, config: SimConfig, plan: DayPlan, payment_scenes: std::ops::Range<usize>) {
        self.times = config.times();
        self.x.begin_day(config.start_ns);
        self.crowd.begin_day(&self.x);
        self.governor = MessageRateLimiter::new(self.x.world.members.len());
        (self.scenes, self.halts, self.payment_scenes) = (plan.scenes, plan.halts, payment_scenes);
        // Ordinals are counted over all days.
        self.config = SimConfig { events: self.x.seq + config.events, ..config };
        (self.boot, self.requests, self.made) = (0, 0, 0);
        self.next_request = self.times.call;
        self.at_close.clear();
        self.cues.clear();
        self.set_cues();
    }
}

impl MarketNameIds {
    fn add(world: &mut SimulatedMarket) -> MarketNameIds {
        let index_name = world.index_name();
        let index = world.name(NameKind::Instrument, &index_name);
        let national = world.name(NameKind::Venue, "NBBO");
        for desk in 0..world.desks() {
            let letter = if desk % 2 == 0 { 'A' } else { 'B' };
            let id = world.name(NameKind::Desk, &format!("D{:02}{letter}", desk / 2 + 1));
            assert_eq!(id, desk + 1);
        }
        let mut name = |name: &str| world.name(NameKind::Name, name);
        let entries = ["algo", "dma", "desk"].map(&mut name);
        let lists = ["restricted", "insider", "watch"].map(&mut name);
        let senders = lists[2] + 1;
        for member in 0..Self::senders_of(world) {
            let trader = world.trader_name(member).to_owned();
            assert_eq!(world.name(NameKind::Name, &trader), senders + member);
        }
        MarketNameIds { index, national, entries, lists, senders }
    }

    /// Returns how many members send messages: the first ones, at most 40.
    fn senders_of(world: &SimulatedMarket) -> u32 {
        world.crowd.min(40)
    }
}

/// The market's own chance is not that of the day.
const MARKET_SALT: u64 = 0x6d61_726b_6574;
const GATE_SALT: u64 = 0x6761_7465;
