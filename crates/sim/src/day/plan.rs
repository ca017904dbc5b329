//! The places and times of scenes and halts: laid out before the day starts, each with its instrument to itself.

use std::cmp::Reverse;

use super::config::{DayTimes, S, SimConfig};
use super::market::CONSTITUENTS_MAX;
use super::scenes::{self, PlannedPayments, Scenario, Scene, ScenePlacement};
use super::world::SimulatedMarket;
use crate::error::Error;
use crate::rng::Rng;
use unitape_model::InstrumentId;

/// A scene and when it starts.
#[derive(Debug)]
pub(crate) struct PlannedScene {
    pub start_ts: u64,
    pub scenario: Scenario,
    pub scene: Box<dyn Scene>,
    /// The scene's number among all scenes.
    pub number: u32,
    /// Members that act in it and in nothing else.
    pub cast: std::ops::Range<u32>,
    /// Books that it acts in.
    pub books: [u32; 2],
    /// Where it is.
    pub stage: SceneStage,
}

impl PlannedScene {
    /// Returns the books of the scene's instruments on all venues.
    pub fn books_of_all_venues(&self, world: &SimulatedMarket) -> Vec<u32> {
        let mut instruments = self.books.map(|book| world.instr_of(book)).to_vec();
        if self.scenario == Scenario::Mwcb {
            instruments = world.instrument_ids().take(CONSTITUENTS_MAX).collect();
        }
        instruments.dedup();
        let books = |instr| (0..world.venues.len()).map(move |venue| world.book(venue, instr));
        instruments.into_iter().flat_map(books).collect()
    }
}

/// Where a scene is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SceneStage {
    Waits,
    Acts,
    /// The scene's lead continues to send, and a control refuses every request.
    Refused,
    /// Played to its end, or broken off by a control.
    Over,
}

/// A halt of an instrument on all venues, and when continuous trading starts again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlannedHalt {
    pub instr: InstrumentId,
    pub start_ts: u64,
    pub call: u64,
    pub open: u64,
}

/// The plan of a day.
#[derive(Debug)]
pub(crate) struct DayPlan {
    pub scenes: Vec<PlannedScene>,
    pub halts: Vec<PlannedHalt>,
    pub payments: Vec<PlannedPayments>,
    pub messages: Vec<PlannedMessage>,
}

/// A message between traders that is a scene.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlannedMessage {
    /// The number of the scene among all scenes.
    pub number: u32,
    pub miss: bool,
    /// The number of the scene among those of its kind.
    pub n: usize,
}

impl DayPlan {
    /// Lays a day out; its scenes are numbered from `numbered` plus one on.
    pub fn lay_out(
        config: &SimConfig,
        world: &mut SimulatedMarket,
        rng: &mut Rng,
        numbered: u32,
    ) -> Result<DayPlan, Error> {
        let times = config.times();
        let mut plan =
            DayPlan { scenes: Vec::new(), halts: Vec::new(), payments: Vec::new(), messages: Vec::new() };
        let mut calendar = InstrumentReservations::new(world.instruments.len(), times);
        let mut number = numbered;
        let wanted = Scenario::ALL.into_iter().flat_map(|s| {
            let count =
                |counts: &std::collections::BTreeMap<Scenario, u32>| counts.get(&s).copied().unwrap_or(0);
            [(s, false, count(&config.plant)), (s, true, count(&config.near_misses))]
        });
        // Scenes that need a certain time or a long one come first, or the others would have taken it.
        let mut wanted: Vec<_> = wanted.collect();
        for (scenario, ..) in wanted.iter().filter(|w| w.0.is_of_pair() && w.2 > 0) {
            scenes::link(*scenario, world);
        }
        // In a crowded day short scenes would leave no gap for a long one.
        let needed_ns: u64 = wanted.iter().map(|w| w.0.longest_ns() * u64::from(w.2)).sum();
        let is_crowded = needed_ns > (times.closing_call - times.open) * world.instruments.len() as u64 / 3;
        wanted.sort_by_key(|(scenario, ..)| match scenario {
            Scenario::MarkingClose => (0, Reverse(1)),
            Scenario::Mwcb => (0, Reverse(0)),
            pair if pair.is_of_pair() => (1, Reverse(1)),
            Scenario::InsiderNews => (1, Reverse(0)),
            other => (2, Reverse(if is_crowded { other.longest_ns() } else { 0 })),
        });
        // The whole market falls late in the day, when no scene needs the time any more, but before the closing window.
        let fall_count: u64 = wanted.iter().filter(|w| w.0 == Scenario::Mwcb).map(|w| u64::from(w.2)).sum();
        let fall_ts = times.window.saturating_sub((20 * fall_count + 100) * S);
        let mut placed_scenes = Vec::new();
        for (scenario, miss, count) in wanted {
            if count > 0 && world.venues.len() < scenario.venues_min() {
                return Err(Error::Venues { scenario: scenario.id(), least: scenario.venues_min() });
            }
            for n in 0..count {
                number += 1;
                if scenario.is_of_payments() {
                    let (n, start_ns, span_ns) = (n as usize, config.start_ns, config.span_ns);
                    plan.payments.push(PlannedPayments { number, scenario, miss, n, start_ns, span_ns });
                    continue;
                }
                if scenario == Scenario::CommsLexicon {
                    plan.messages.push(PlannedMessage { number, miss, n: n as usize });
                    continue;
                }
                let own_instruments = scenes::instruments_of(scenario, miss, n as usize, world);
                let reservation = if scenario == Scenario::MarkingClose {
                    calendar.reserve_close(rng)
                } else {
                    let is_free = |instr, start_ts| {
                        let is_excluded =
                            |&(other, other_instr, other_ts): &(Scenario, InstrumentId, u64)| {
                                other_instr == instr && scenario.excludes(other, start_ts < other_ts)
                            };
                        own_instruments.as_ref().is_none_or(|own_instruments| own_instruments[0] == instr)
                            && !placed_scenes.iter().any(is_excluded)
                    };
                    // A volume spike has ten minutes to compare with.
                    let earliest_ts = match scenario {
                        _ if scenario.measures_volume() => times.open + 600 * S,
                        Scenario::Mwcb => fall_ts,
                        _ => 0,
                    };
                    let latest_ts =
                        if scenario == Scenario::Mwcb { times.window } else { times.closing_call };
                    let long_ns = scenario.longest_ns() + 5 * S;
                    let others =
                        own_instruments.iter().flatten().skip(1).map(|instr| instr.index()).collect();
                    let request = SpanRequest { long_ns, earliest_ts, latest_ts, others };
                    calendar.reserve(&request, is_free, rng)
                };
                let (instr, start_ts) =
                    reservation.ok_or(Error::NoRoom { kind: scenario.id(), placed: n })?;
                if [true, false].iter().any(|&is_before| scenario.excludes(Scenario::RegSho201, is_before)) {
                    let instruments = own_instruments.clone().unwrap_or(vec![instr]);
                    placed_scenes.extend(instruments.into_iter().map(|instr| (scenario, instr, start_ts)));
                }
                let venues = world.venues.len();
                let mut venue = || rng.below(venues as u64) as usize;
                let (venue, mut other_venue) = (venue(), venue());
                if scenario.venues_min() > 1 && venue == other_venue {
                    other_venue = (venue + 1) % venues;
                }
                let (book, other_book) = match &own_instruments {
                    Some(own_instruments) => {
                        (world.book(venue, instr), world.book(venue, own_instruments[1]))
                    }
                    None => (world.book(venue, instr), world.book(other_venue, instr)),
                };
                let close = (times.closing_call, times.close);
                let placement = ScenePlacement { book, other_book, start_ts, close };
                let first = world.members.len() as u32;
                let scene = scenes::make(scenario, miss, n as usize, &placement, world, rng);
                let (cast, books) = (first..world.members.len() as u32, [book, other_book]);
                // Such a scene prints once just after the open, before all others.
                let start_ts = match scenario {
                    _ if scenario.measures_volume() => times.open + S,
                    _ if scenario.joins_auction() => times.call + S,
                    _ => start_ts,
                };
                plan.scenes.push(PlannedScene {
                    start_ts,
                    scenario,
                    scene,
                    number,
                    cast,
                    books,
                    stage: SceneStage::Waits,
                });
            }
        }
        for n in 0..config.halts {
            let room = config.span_ns / 50;
            let halted_ns = (room / 4).clamp(2 * S, 120 * S) + rng.below(room.clamp(S, 120 * S));
            let call_ns = (halted_ns / 4).max(S);
            let request = SpanRequest {
                long_ns: halted_ns + call_ns + S,
                earliest_ts: 0,
                latest_ts: times.closing_call,
                others: Vec::new(),
            };
            let (instr, start_ts) = calendar
                .reserve(&request, |_, _| true, rng)
                .ok_or(Error::NoRoom { kind: "halt", placed: n })?;
            let call = start_ts + halted_ns;
            plan.halts.push(PlannedHalt { instr, start_ts, call, open: call + call_ns });
        }
        Ok(plan)
    }
}

/// The span that a scene or a halt needs.
struct SpanRequest {
    long_ns: u64,
    earliest_ts: u64,
    latest_ts: u64,
    /// The indices of the other instruments that it needs.
    others: Vec<usize>,
}

/// When each instrument is taken.
struct InstrumentReservations {
    reserved_spans: Vec<Vec<(u64, u64)>>,
    times: DayTimes,
}

impl InstrumentReservations {
    fn new(instruments: usize, times: DayTimes) -> InstrumentReservations {
        InstrumentReservations { reserved_spans: vec![Vec::new(); instruments], times }
    }

    /// Reserves an instrument that `is_free` accepts and that is free for this long somewhere in the day. Returns it
    /// with the start time, which is not before `earliest_ts`.
    fn reserve(
        &mut self,
        request: &SpanRequest,
        is_free: impl Fn(InstrumentId, u64) -> bool,
        rng: &mut Rng,
    ) -> Option<(InstrumentId, u64)> {
        let &SpanRequest { long_ns, earliest_ts, latest_ts, ref others } = request;
        let instruments_of = |instr: usize| [instr].into_iter().chain(others.iter().copied());
        // The books settle first, and everything is over before the closing call.
        let (from, to) =
            (earliest_ts.max(self.times.open + 2 * S), latest_ts.min(self.times.closing_call) - S);
        let room = to.checked_sub(from + long_ns).filter(|&room| room > 0)?;
        let instruments = self.reserved_spans.len();
        let can_start = |instr: usize, start_ts: u64| {
            let mut spans = instruments_of(instr).flat_map(|instr| &self.reserved_spans[instr]);
            is_free(InstrumentId(instr as u32), start_ts)
                && spans.all(|&(start, end)| end < start_ts || start > start_ts + long_ns)
        };
        let random = (0..400).find_map(|_| {
            let instr = rng.below(instruments as u64) as usize;
            let start_ts = from + rng.below(room);
            can_start(instr, start_ts).then_some((instr, start_ts))
        });
        // In a full day: the first gap that is long enough.
        let (instr, start_ts) = random.or_else(|| {
            (0..instruments).find_map(|instr| {
                let spans = instruments_of(instr).flat_map(|instr| &self.reserved_spans[instr]);
                let ends = spans.map(|&(_, end)| end + 1);
                let mut starts = ends.chain([from]).filter(|start| (from..from + room).contains(start));
                starts.find(|&start_ts| can_start(instr, start_ts)).map(|start_ts| (instr, start_ts))
            })
        })?;
        for taken in instruments_of(instr) {
            self.reserved_spans[taken].push((start_ts, start_ts + long_ns));
        }
        Some((InstrumentId(instr as u32), start_ts))
    }

    /// Reserves an instrument that is free from before the closing window on. Returns it with the start time.
    fn reserve_close(&mut self, rng: &mut Rng) -> Option<(InstrumentId, u64)> {
        let start_ts = self.times.window - 5 * S;
        let first = rng.below(self.reserved_spans.len() as u64) as usize;
        let instruments = self.reserved_spans.len();
        let instr = (0..instruments)
            .map(|n| (first + n) % instruments)
            .find(|&n| self.reserved_spans[n].is_empty())?;
        self.reserved_spans[instr].push((start_ts, self.times.close));
        Some((InstrumentId(instr as u32), start_ts))
    }
}
