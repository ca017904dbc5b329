//! The engine: finds the facts of each event once, and hands it to the scenarios that look at its kind.

use crate::alert::Alert;
use crate::error::Error;
use crate::ids::{IdKey, id_text};
use crate::kept::OptionalPosition;
use crate::market::MarketState;
use crate::missing::{MissingCounts, MissingValue};
use crate::orders::{OrderTable, OrderUpdate, is_made_by_venue};
use crate::params::{ParamOverlay, ScenarioSelection};
use crate::parties::OwnerGroups;
use crate::prints::{Print, PrintChange, PrintTable};
use crate::scenarios::{self, ScenarioEntry};
use crate::sessions::SessionDates;
use crate::state::{StateFault, StateReader, WatchState, state_value};
use crate::timers::{DueTimer, TimerQueue};
use serde_json::Value;
use unitape_model::records::OrderRecord;
use unitape_model::{
    CivilDate, Dictionary, Event, EventField, EventKind, InstrumentId, NameKind, Position, Price, UnixNanos,
    flags,
};

/// The version of the engine. It rises when equal definitions and parameters would give other alerts than before, so that a
/// watch does not continue the alert tape of another engine.
pub const ENGINE_VERSION: u32 = 2;

/// State that is kept for all scenarios if a running scenario needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedStateKind {
    /// The life of orders, and the fields that cancels and executions inherit from them.
    Orders,
    /// Best bid and offer by venue and instrument, and reference data.
    Market,
    /// Session dates by venue.
    SessionDates,
    /// Public prints, with their cancels and corrections.
    Prints,
}

/// The shared state when an event comes, kept once for all scenarios.
pub struct ScenarioContext<'a> {
    /// Ordinal of the event.
    pub seq: u64,
    /// Its place on the tape, if it is on one.
    pub position: Option<Position>,
    /// The time at which it counts.
    pub ts: UnixNanos,
    /// The time by which state expires. One event with a wrong time does not move it.
    pub expiry_ts: UnixNanos,
    /// Names of ids.
    pub names: &'a Dictionary,
    /// Groups of owners that belong together.
    pub parties: &'a OwnerGroups,
    /// Orders; empty unless a scenario that runs needs them.
    pub orders: &'a OrderTable,
    /// Best prices and reference data; empty unless a scenario that runs needs them.
    pub market: &'a MarketState,
    /// Public prints; empty unless a scenario that runs needs them.
    pub prints: &'a PrintTable,
    /// Session dates and trading days of venues.
    pub(crate) session_dates: &'a SessionDates,
}

impl ScenarioContext<'_> {
    /// Returns the name of an id. An id without a name is shown as its number.
    pub fn name(&self, dict: NameKind, id: u32) -> String {
        self.names.name(dict, id).map_or_else(|| format!("#{id}"), str::to_owned)
    }

    /// Returns the detail of an alert: `values`, an object, with the ordinals of its evidence and of this event, in order. On a
    /// tape it has their positions as well. Of more than 1,024 events it names the latest, and counts the others.
    pub(crate) fn detail(
        &self,
        mut values: Value,
        evidence: impl IntoIterator<Item = EvidencePlace>,
    ) -> Value {
        let mut events: Vec<EvidencePlace> = evidence.into_iter().collect();
        events.push(self.place());
        events.sort_unstable_by_key(|place| place.seq);
        events.dedup_by_key(|place| place.seq);
        let left_out = events.len().saturating_sub(EVIDENCE_MAX);
        let named = &events[left_out..];
        values["seqs"] = named.iter().map(|place| place.seq).collect::<Vec<_>>().into();
        let positions = named.iter().map(|place| place.position.get().map(|position| position.0));
        if let Some(positions) = positions.collect::<Option<Vec<u64>>>() {
            values["positions"] = positions.into();
        }
        if left_out > 0 {
            values["left_out"] = left_out.into();
        }
        values
    }

    /// Returns the place of this event, for evidence.
    #[inline]
    pub(crate) fn place(&self) -> EvidencePlace {
        EvidencePlace { seq: self.seq, position: self.kept_position() }
    }

    /// Returns the print that this event makes, if it is a new one. A timer comes before the print is kept.
    pub(crate) fn arriving_print(&self, event: &Event<'_>) -> Option<Print> {
        Print::of_arriving(event, self.seq, self.position, self.ts)
    }

    /// Returns the position as scenarios keep it.
    #[inline]
    pub(crate) fn kept_position(&self) -> OptionalPosition {
        OptionalPosition::new(self.position)
    }
}

/// An owner on one side of an instrument at a venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SideBook {
    pub owner: u32,
    pub venue: u16,
    pub instr: InstrumentId,
    /// 1 buy, 2 sell.
    pub side: u8,
}

state_value!(SideBook { owner, venue, instr, side });

impl SideBook {
    /// Writes the key of an alert.
    pub fn names(self, context: &ScenarioContext<'_>) -> Vec<(&'static str, String)> {
        vec![
            ("owner", context.name(NameKind::Owner, self.owner)),
            ("venue", context.name(NameKind::Venue, self.venue.into())),
            ("instr", context.name(NameKind::Instrument, self.instr.0)),
            ("side", if self.side == 1 { "B" } else { "S" }.to_owned()),
        ]
    }
}

/// What makes a match: its id comes again at other venues, in other instruments and on other days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MatchKey {
    pub venue: u16,
    pub instr: InstrumentId,
    pub session_date: CivilDate,
    pub id: IdKey,
}

state_value!(MatchKey { venue, instr, session_date, id });

/// The place of an event that is evidence of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EvidencePlace {
    pub seq: u64,
    pub position: OptionalPosition,
}

state_value!(EvidencePlace { seq, position });

/// Events that an alert names at most.
const EVIDENCE_MAX: usize = 1024;

/// An event with the facts around it.
pub struct ScenarioInput<'a, 'e> {
    /// The event.
    pub event: &'a Event<'e>,
    /// The time at which it counts: its own or, of an event that is flagged `clock_ahead`, the latest believed one.
    pub ts: UnixNanos,
    /// The event as a record, when it is of the order family or an execution.
    pub record: Option<&'a OrderRecord>,
    /// Its effect on its order, if known.
    pub order: Option<OrderUpdate<'a>>,
    /// Venue of an event of the order family or an execution, or 0.
    pub venue: u16,
    /// Instrument, likewise. A cancel or an execution without one has that of its order.
    pub instr: InstrumentId,
    /// Side, likewise: 1 buy, 2 sell.
    pub side: u8,
    /// The beneficial owner, or 0. A cancel or an execution without an owner has the owner of its order.
    pub owner: u32,
    /// Trader, likewise.
    pub trader: u32,
    /// Algorithm, likewise.
    pub algo: u32,
    /// The session date of an event of the order family, an execution or a trade, where a running scenario needs it.
    pub session_date: Option<CivilDate>,
    /// What a trade does to the prints, where a running scenario needs it.
    pub print: Option<PrintChange>,
    /// Everything else.
    pub context: &'a ScenarioContext<'a>,
}

impl ScenarioInput<'_, '_> {
    /// Returns owner, venue, instrument and side. The error is the first field that is missing.
    pub(crate) fn side_book(&self) -> Result<SideBook, EventField> {
        let Self { owner, venue, instr, side, .. } = *self;
        match () {
            () if owner == 0 => Err(EventField::Owner),
            () if venue == 0 => Err(EventField::Venue),
            () if instr.0 == 0 => Err(EventField::Instr),
            () if !matches!(side, 1 | 2) => Err(EventField::Side),
            () => Ok(SideBook { owner, venue, instr, side }),
        }
    }

    /// Returns the match of an execution or a trade, if it names one and its session date is known.
    #[inline]
    pub(crate) fn match_key(&self) -> Option<MatchKey> {
        let (event, field) = (self.event, EventField::MatchId);
        let (venue, instr, id) = match self.record {
            Some(record) => (self.venue, self.instr, IdKey::from_slot(event, field, &record.id2)),
            None => (event.venue(), event.instrument(), IdKey::read(event, field)),
        };
        id.zip(self.session_date).map(|(id, session_date)| MatchKey { venue, instr, session_date, id })
    }

    /// Returns the parent order of the event. A cancel or an execution without a parent has the parent of its order.
    pub fn parent(&self) -> Option<IdKey> {
        let inherits = matches!(self.event.kind(), EventKind::OrderCancel | EventKind::Exec);
        let inherited = || self.order.filter(|_| inherits).and_then(|o| o.order.parent());
        IdKey::read(self.event, EventField::Parent).or_else(inherited)
    }

    /// Returns the field that an execution lacks for an alert about itself: a name of its key, or its price.
    pub(crate) fn lacking_of_execution(&self) -> Option<EventField> {
        let record = self.record?;
        let lacks_id = |field, slot| IdKey::from_slot(self.event, field, slot).is_none();
        match () {
            () if self.instr.0 == 0 => Some(EventField::Instr),
            () if lacks_id(EventField::Oid, &record.oid) => Some(EventField::Oid),
            () if lacks_id(EventField::MatchId, &record.id2) => Some(EventField::MatchId),
            () if Price(record.px.get()).as_option().is_none() => Some(EventField::Px),
            () => None,
        }
    }

    /// Returns the key of an alert about one execution: venue, instrument, order and match.
    pub(crate) fn execution_key(&self) -> Vec<(&'static str, String)> {
        let id = |field| id_text(self.event, field).unwrap_or_default();
        vec![
            ("venue", self.context.name(NameKind::Venue, self.venue.into())),
            ("instr", self.context.name(NameKind::Instrument, self.instr.0)),
            ("oid", id(EventField::Oid)),
            ("match_id", id(EventField::MatchId)),
        ]
    }
}

/// The destination of a scenario's alerts, timers and counts.
pub struct ScenarioOutput<'a> {
    alerts: &'a mut Vec<Alert>,
    timers: &'a mut TimerQueue,
    missing: &'a mut MissingCounts,
    event: &'a Event<'a>,
    scenario: usize,
}

impl<'a> ScenarioOutput<'a> {
    /// Returns the current event; of a timer, the event that brings the time.
    pub fn event(&self) -> &'a Event<'a> {
        self.event
    }

    /// Raises an alert.
    pub fn alert(&mut self, alert: Alert) {
        self.alerts.push(alert);
    }

    /// Counts that the event cannot be judged because it lacks this value.
    #[cold]
    pub fn missing(&mut self, value: MissingValue) {
        self.missing.add(value, self.event);
    }

    /// Sets a timer: [`Scenario::on_timer`] is called with `token` when the first event stamped `due_ts` or later
    /// arrives.
    pub fn wake_at(&mut self, due_ts: UnixNanos, token: u64) {
        self.timers.set(self.scenario, due_ts, token);
    }
}

/// Counters of a scenario; only `held_entries` ever goes down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScenarioMetrics {
    /// Events looked at.
    pub events: u64,
    /// Alerts given.
    pub alerts: u64,
    /// Alerts that were held back because an alert of the same key was given shortly before.
    pub held_back: u64,
    /// Events that cannot be judged because a value is missing.
    pub missing: u64,
    /// Late events for whose comparison some state was already forgotten.
    pub late: u64,
    /// Things forgotten because their time was over.
    pub expired: u64,
    /// Things forgotten because there was no room for them.
    pub bound_hit: u64,
    /// Things kept now.
    pub held_entries: u64,
}

impl ScenarioMetrics {
    /// Adds the counters of a later run. `held_entries` is the later run's.
    pub fn add(&mut self, later: &Self) {
        self.events += later.events;
        self.alerts += later.alerts;
        self.held_back += later.held_back;
        self.missing += later.missing;
        self.late += later.late;
        self.expired += later.expired;
        self.bound_hit += later.bound_hit;
        self.held_entries = later.held_entries;
    }
}

/// A scenario with its state.
pub trait Scenario: WatchState + Send {
    /// Takes an event of one of its kinds.
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>);
    /// Takes a cancel or an amend that the venue made: it changed the order, and is no message of the trader.
    fn on_venue_change(&mut self, _input: &ScenarioInput<'_, '_>) {}
    /// Handles a due timer of the scenario. The event that brings the time has changed nothing yet.
    fn on_timer(&mut self, _due: DueTimer, _context: &ScenarioContext<'_>, _out: &mut ScenarioOutput<'_>) {}
    /// Returns the longest window of prints that the scenario looks at, in nanoseconds.
    fn print_window_ns(&self) -> i128 {
        0
    }
    /// Forgets all events; counters stay.
    fn reset(&mut self);
    /// Returns the counters of the scenario's state. The engine counts events, alerts and missing values.
    fn metrics(&self) -> ScenarioMetrics;
}

/// A scenario at work.
pub(crate) struct RunningScenario {
    pub id: &'static str,
    /// The kinds that it judges.
    pub inputs: &'static [EventKind],
    pub needs: &'static [SharedStateKind],
    pub scenario: Box<dyn Scenario>,
    events: u64,
    alerts: u64,
    missing: MissingCounts,
}

impl RunningScenario {
    pub fn new(
        id: &'static str,
        inputs: &'static [EventKind],
        needs: &'static [SharedStateKind],
        scenario: Box<dyn Scenario>,
    ) -> Self {
        Self { id, inputs, needs, scenario, events: 0, alerts: 0, missing: MissingCounts::default() }
    }

    fn from_entry(entry: &ScenarioEntry, scenario: Box<dyn Scenario>) -> Self {
        Self::new(entry.id, entry.inputs, entry.needs, scenario)
    }

    /// Calls the scenario with an output, and counts the alerts that it gives.
    #[inline]
    fn call(
        &mut self,
        index: usize,
        event: &Event<'_>,
        alerts: &mut Vec<Alert>,
        timers: &mut TimerQueue,
        judge: impl FnOnce(&mut dyn Scenario, &mut ScenarioOutput<'_>),
    ) {
        let before = alerts.len();
        let missing = &mut self.missing;
        judge(&mut *self.scenario, &mut ScenarioOutput { alerts, timers, missing, event, scenario: index });
        self.alerts += (alerts.len() - before) as u64;
    }

    fn metrics(&self) -> ScenarioMetrics {
        let (events, alerts, missing) = (self.events, self.alerts, self.missing.total());
        ScenarioMetrics { events, alerts, missing, ..self.scenario.metrics() }
    }
}

/// Scenarios at work on one stream of events.
pub struct Watch {
    running: Vec<RunningScenario>,
    /// The scenarios that judge events of a kind, by its number.
    judges: [Vec<u32>; KINDS],
    parties: OwnerGroups,
    orders: OrderTable,
    market: MarketState,
    prints: PrintTable,
    session_dates: SessionDates,
    clock: BelievedClock,
    timers: TimerQueue,
    needs_orders: bool,
    needs_market: bool,
    needs_session_dates: bool,
    needs_prints: bool,
}

impl WatchState for RunningScenario {
    fn save(&self, out: &mut Vec<u8>) {
        (self.events, self.alerts).save(out);
        self.missing.save(out);
        self.scenario.save(out);
    }

    fn load(&mut self, input: &mut StateReader<'_>) -> Result<(), StateFault> {
        self.events.load(input)?;
        self.alerts.load(input)?;
        self.missing.load(input)?;
        self.scenario.load(input)
    }
}

state_value!(BelievedClock { latest, last });

impl WatchState for Watch {
    fn save(&self, out: &mut Vec<u8>) {
        let Self { parties, orders, market, prints, clock, timers, running, .. } = self;
        let shared: [&dyn WatchState; 6] = [parties, orders, market, prints, clock, timers];
        shared.into_iter().for_each(|part| part.save(out));
        running.iter().for_each(|running| running.save(out));
    }

    fn load(&mut self, input: &mut StateReader<'_>) -> Result<(), StateFault> {
        let Self { parties, orders, market, prints, clock, timers, running, session_dates, .. } = self;
        let shared: [&mut dyn WatchState; 6] = [parties, orders, market, prints, clock, timers];
        shared.into_iter().try_for_each(|part| part.load(input))?;
        session_dates.reset();
        running.iter_mut().try_for_each(|running| running.load(input))
    }
}

/// One more than the greatest number of a kind.
const KINDS: usize = EventKind::NUMBER_MAX as usize + 1;

impl Watch {
    /// Makes a watch that runs the scenarios of `selection` with their parameters.
    pub fn new(selection: &ScenarioSelection) -> Result<Self, Error> {
        Self::with_input_params(selection, &[])
    }

    /// Makes a watch as [`Watch::new`] does, with parameters of the input. They override the configuration, and the
    /// command line overrides them.
    pub(crate) fn with_input_params(
        selection: &ScenarioSelection,
        input: &[&ParamOverlay],
    ) -> Result<Self, Error> {
        let entries = scenarios::selected(selection)?;
        let params = selection.params_over(input);
        let run =
            |entry: &ScenarioEntry| RunningScenario::from_entry(entry, (entry.make)(&params(entry.def())));
        Ok(Self::from_scenarios(entries.map(run).collect(), SessionDates::new(selection.calendar.calendar())))
    }

    /// Makes a watch of these scenarios.
    pub(crate) fn from_scenarios(running: Vec<RunningScenario>, session_dates: SessionDates) -> Self {
        let needs = |need| running.iter().any(|scenario| scenario.needs.contains(&need));
        let mut judges = [const { Vec::new() }; KINDS];
        for (index, scenario) in (0..).zip(&running) {
            scenario.inputs.iter().for_each(|kind| judges[*kind as usize].push(index));
        }
        Self {
            needs_orders: needs(SharedStateKind::Orders),
            needs_market: needs(SharedStateKind::Market),
            // A match id, which a cancel of a trade names, belongs to a session date.
            needs_session_dates: needs(SharedStateKind::SessionDates) || needs(SharedStateKind::Prints),
            needs_prints: needs(SharedStateKind::Prints),
            prints: PrintTable::new(
                running.iter().map(|running| running.scenario.print_window_ns()).max().unwrap_or(0),
            ),
            running,
            judges,
            parties: OwnerGroups::default(),
            orders: OrderTable::new(),
            market: MarketState::default(),
            session_dates,
            clock: BelievedClock::default(),
            timers: TimerQueue::default(),
        }
    }

    /// Takes the next event; `seq` is its ordinal, which never goes down. Alerts are appended to `out` in
    /// the order they are printed.
    #[inline]
    pub fn on_event(
        &mut self,
        event: &Event<'_>,
        seq: u64,
        position: Option<Position>,
        names: &Dictionary,
        out: &mut Vec<Alert>,
    ) {
        let from = out.len();
        let ts = self.clock.time_of(event);
        let expiry_ts = self.clock.expiry();
        while let Some((scenario, due)) = self.timers.pop(ts) {
            let Self { running, parties, orders, market, prints, timers, session_dates, .. } = self;
            let context = ScenarioContext {
                seq,
                position,
                ts,
                expiry_ts,
                names,
                parties,
                orders,
                market,
                prints,
                session_dates,
            };
            running[scenario]
                .call(scenario, event, out, timers, |judge, output| judge.on_timer(due, &context, output));
        }
        if event.is_repeat() {
            // Its message may have been judged already.
            return complete_alerts(&mut out[from..], position);
        }
        let kind = event.kind();
        let record = OrderRecord::from_event(event);
        let (mut touched, mut print, mut session_date) = (None, None, None);
        if self.needs_session_dates && (record.is_some() || kind == EventKind::Trade) {
            session_date = Some(self.session_dates.date(event.venue(), ts, names));
        }
        match (kind, record) {
            // Nobody knows whose venue's order it is of.
            (EventKind::OrderCancel | EventKind::Exec, Some(record)) if record.common.venue.get() == 0 => {
                self.count_without_venue(event);
                return complete_alerts(&mut out[from..], position);
            }
            (_, Some(record)) if self.needs_orders => {
                touched = self.orders.apply(event, record, seq, position, ts);
            }
            (EventKind::Bbo, _) if self.needs_market => self.market.on_bbo(event, seq, position, ts),
            (EventKind::Ref, _) if self.needs_market => self.market.on_ref(event),
            (EventKind::Party, _) => self.parties.on_party(event),
            (EventKind::Trade, _) if self.needs_prints => {
                let session_date = session_date.unwrap_or(CivilDate::from_utc(ts));
                print = self.prints.on_trade(event, seq, position, ts, expiry_ts, session_date);
            }
            _ => {}
        }
        if !self.judges[kind as usize].is_empty() {
            let Self { running, judges, parties, orders, market, prints, timers, session_dates, .. } = self;
            let context = ScenarioContext {
                seq,
                position,
                ts,
                expiry_ts,
                names,
                parties,
                orders,
                market,
                prints,
                session_dates,
            };
            let order = touched.map(|touched| OrderUpdate {
                slot: touched.slot,
                order: context.orders.get(touched.slot),
                was_live: touched.was_live,
                names_owner: touched.names_owner,
            });
            let mut input = input_of(event, ts, record, order, session_date, &context);
            input.print = print;
            let is_of_venue = record.is_some() && is_made_by_venue(event);
            for &index in &judges[kind as usize] {
                let running = &mut running[index as usize];
                if is_of_venue {
                    running.scenario.on_venue_change(&input);
                    continue;
                }
                running.events += 1;
                running.call(index as usize, event, out, timers, |judge, output| {
                    judge.on_event(&input, output);
                });
            }
        }
        complete_alerts(&mut out[from..], position);
    }

    /// Counts a cancel or an execution that names no venue.
    #[cold]
    fn count_without_venue(&mut self, event: &Event<'_>) {
        for &index in &self.judges[event.kind() as usize] {
            let running = &mut self.running[index as usize];
            running.events += 1;
            running.missing.add(MissingValue::Field(EventField::Venue), event);
        }
    }

    /// Forgets all events, as before the first one; counters stay.
    pub fn reset(&mut self) {
        self.running.iter_mut().for_each(|running| running.scenario.reset());
        self.parties.reset();
        self.orders.reset();
        self.market.reset();
        self.prints.reset();
        self.session_dates.reset();
        self.clock = BelievedClock::default();
        self.timers.clear();
    }

    /// Returns the counters of each scenario.
    pub fn metrics(&self) -> impl Iterator<Item = (&'static str, ScenarioMetrics)> {
        self.running.iter().map(|running| (running.id, running.metrics()))
    }

    /// Returns the values that were missing, by scenario.
    pub fn missing_values(&self) -> impl Iterator<Item = (&'static str, &MissingCounts)> {
        self.running.iter().map(|running| (running.id, &running.missing))
    }

    /// Returns the counters of the state that all scenarios share.
    pub fn shared_metrics(&self) -> SharedMetrics {
        let (orders_bound_hit, orders_spent) = self.orders.forgotten();
        SharedMetrics {
            orders_bound_hit,
            orders_spent,
            market_bound_hit: self.market.bound_hit(),
            timers_bound_hit: self.timers.bound_hit,
            prints_bound_hit: self.prints.bound_hit(),
        }
    }
}

/// Counters of the state that all scenarios share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedMetrics {
    /// Live orders forgotten because there was no room; nothing more is known of them.
    pub orders_bound_hit: u64,
    /// Forgotten orders that were not live any more. Later executions of them may lack inherited fields.
    pub orders_spent: u64,
    /// Best prices and references not kept because there was no room.
    pub market_bound_hit: u64,
    /// Timers not set because there was no room.
    pub timers_bound_hit: u64,
    /// Prints and last prices forgotten because there was no room.
    pub prints_bound_hit: u64,
}

impl SharedMetrics {
    /// Adds the counters of another run.
    pub fn add(&mut self, later: &Self) {
        self.orders_bound_hit += later.orders_bound_hit;
        self.orders_spent += later.orders_spent;
        self.market_bound_hit += later.market_bound_hit;
        self.timers_bound_hit += later.timers_bound_hit;
        self.prints_bound_hit += later.prints_bound_hit;
    }
}

/// Sorts the alerts of one event, and gives them its position. Timers raise alerts also when the event itself is not judged.
#[inline]
fn complete_alerts(alerts: &mut [Alert], position: Option<Position>) {
    if !alerts.is_empty() {
        alerts.sort_by(Alert::order);
        alerts.iter_mut().for_each(|alert| alert.position = position);
    }
}

/// The times that are believed. An event that is flagged `clock_ahead` counts at the latest of them and moves none.
#[derive(Clone, Copy, Debug)]
struct BelievedClock {
    /// The latest time of an event.
    latest: Option<UnixNanos>,
    /// The times of the last two events.
    last: [UnixNanos; 2],
}

impl Default for BelievedClock {
    fn default() -> Self {
        Self { latest: None, last: [UnixNanos(i64::MIN); 2] }
    }
}

impl BelievedClock {
    /// Returns the time at which an event counts. Before any believed time, it is the event's own.
    #[inline]
    fn time_of(&mut self, event: &Event<'_>) -> UnixNanos {
        let ts = event.ts_event();
        if event.header().flags() & flags::CLOCK_AHEAD != 0 {
            return self.latest.unwrap_or(ts);
        }
        self.latest = Some(self.latest.map_or(ts, |latest| latest.max(ts)));
        self.last = [self.last[1], ts];
        ts
    }

    /// Returns the time by which state expires: a leap needs a second event that agrees.
    #[inline]
    fn expiry(&self) -> UnixNanos {
        self.last[0].min(self.last[1])
    }
}

/// Returns an event with its facts. A cancel or an execution takes what it does not name from its order.
#[inline]
pub(crate) fn input_of<'a, 'e>(
    event: &'a Event<'e>,
    ts: UnixNanos,
    record: Option<&'a OrderRecord>,
    order: Option<OrderUpdate<'a>>,
    session_date: Option<CivilDate>,
    context: &'a ScenarioContext<'a>,
) -> ScenarioInput<'a, 'e> {
    let mut input = ScenarioInput {
        event,
        ts,
        record,
        order,
        venue: 0,
        instr: InstrumentId(0),
        side: 0,
        owner: 0,
        trader: 0,
        algo: 0,
        session_date,
        print: None,
        context,
    };
    let Some(record) = record else { return input };
    input.venue = record.common.venue.get();
    input.instr = InstrumentId(record.common.instrument.get());
    input.side = record.side();
    (input.owner, input.trader, input.algo) = (record.owner.get(), record.trader.get(), record.algo.get());
    if let Some(update) = order
        && matches!(event.kind(), EventKind::OrderCancel | EventKind::Exec)
    {
        let order = update.order;
        let own_or_inherited = |own: u32, inherited: u32| if own == 0 { inherited } else { own };
        input.owner = own_or_inherited(input.owner, order.owner);
        input.trader = own_or_inherited(input.trader, order.trader);
        input.algo = own_or_inherited(input.algo, order.algo);
        input.instr = InstrumentId(own_or_inherited(input.instr.0, order.instr.0));
        input.side = if input.side == 0 { order.side } else { input.side };
    }
    input
}
