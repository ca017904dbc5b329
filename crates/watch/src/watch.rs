//! The engine: hands each event to the scenarios that look at its kind.

use crate::alert::Alert;
use crate::def::{ScenarioDef, SharedStateKind};
use crate::error::Error;
use crate::ids::IdKey;
use crate::kept::OptionalPosition;
use crate::market::MarketState;
use crate::orders::{OrderTable, OrderUpdate};
use crate::params::{ParamOverlay, ScenarioSelection};
use crate::parties::OwnerGroups;
use crate::scenarios;
use crate::timers::{DueTimer, TimerQueue};
use unitape_model::records::OrderRecord;
use unitape_model::{Dictionary, Event, EventField, EventKind, NameKind, Position, UnixNanos};

/// The version of the engine. It rises when equal definitions and parameters would give other alerts than before, so that a
/// watch does not continue the alert tape of another engine.
pub const ENGINE_VERSION: u32 = 1;

/// The shared state when an event comes, kept once for all scenarios.
pub struct ScenarioContext<'a> {
    /// Ordinal of the event.
    pub seq: u64,
    /// Its place on the tape, if it is on one.
    pub position: Option<Position>,
    /// Names of ids.
    pub names: &'a Dictionary,
    /// Groups of owners that belong together.
    pub parties: &'a OwnerGroups,
    /// Orders; empty unless a scenario that runs needs them.
    pub orders: &'a OrderTable,
    /// Best prices and reference data; empty unless a scenario that runs needs them.
    pub market: &'a MarketState,
}

impl ScenarioContext<'_> {
    /// Returns the name of an id. An id without a name is shown as its number.
    pub fn name(&self, dict: NameKind, id: u32) -> String {
        self.names.name(dict, id).map_or_else(|| format!("#{id}"), str::to_owned)
    }

    /// Returns the position as scenarios keep it.
    #[inline]
    pub(crate) fn kept_position(&self) -> OptionalPosition {
        OptionalPosition::new(self.position)
    }
}

/// An event with the facts around it.
pub struct ScenarioInput<'a, 'e> {
    /// The event.
    pub event: &'a Event<'e>,
    /// The event as a record, when it is of the order family or an execution.
    pub record: Option<&'a OrderRecord>,
    /// Its effect on its order, if known.
    pub order: Option<OrderUpdate<'a>>,
    /// The beneficial owner, or 0. A cancel or an execution without an owner has the owner of its order.
    pub owner: u32,
    /// Trader, likewise.
    pub trader: u32,
    /// Algorithm, likewise.
    pub algo: u32,
    /// Everything else.
    pub context: &'a ScenarioContext<'a>,
}

impl ScenarioInput<'_, '_> {
    /// Returns the parent order of the event. A cancel or an execution without a parent has the parent of its order.
    pub fn parent(&self) -> Option<IdKey> {
        let inherits = matches!(self.event.kind(), EventKind::OrderCancel | EventKind::Exec);
        let inherited = || self.order.filter(|_| inherits).and_then(|o| o.order.parent());
        IdKey::read(self.event, EventField::Parent).or_else(inherited)
    }
}

/// The destination of a scenario's alerts and timers.
pub struct ScenarioOutput<'a> {
    alerts: &'a mut Vec<Alert>,
    timers: &'a mut TimerQueue,
    scenario: usize,
}

impl ScenarioOutput<'_> {
    /// Raises an alert.
    pub fn alert(&mut self, alert: Alert) {
        self.alerts.push(alert);
    }

    /// Sets a timer: [`Scenario::on_timer`] is called with `token` when the first event stamped `due_ts` or later
    /// arrives.
    pub fn wake_at(&mut self, due_ts: UnixNanos, token: u64) {
        self.timers.set(self.scenario, due_ts, token);
    }
}

/// Counters of a scenario; only `held` ever goes down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScenarioMetrics {
    /// Events looked at.
    pub events: u64,
    /// Alerts given.
    pub alerts: u64,
    /// Alerts that were held back because an alert of the same key was given shortly before.
    pub held_back: u64,
    /// Events that cannot be judged because a field is missing.
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
pub trait Scenario: Send {
    /// Returns the definition of the scenario.
    fn def(&self) -> &'static ScenarioDef;
    /// Takes an event of one of its kinds.
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>);
    /// Handles a due timer of the scenario. The event that brings the time has changed nothing yet.
    fn on_timer(&mut self, _due: DueTimer, _context: &ScenarioContext<'_>, _out: &mut ScenarioOutput<'_>) {}
    /// Forgets all events; counters stay.
    fn reset(&mut self);
    /// Returns the counters of the scenario.
    fn metrics(&self) -> ScenarioMetrics;
}

/// Scenarios at work on one stream of events.
pub struct Watch {
    running: Vec<Box<dyn Scenario>>,
    /// One bit for each of `running`, by kind.
    wants: [u64; KINDS],
    parties: OwnerGroups,
    orders: OrderTable,
    market: MarketState,
    timers: TimerQueue,
    needs_orders: bool,
    needs_market: bool,
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
        Ok(Self::from_scenarios(entries.map(|entry| (entry.make)(&params(entry.def))).collect()))
    }

    /// Makes a watch of these scenarios.
    pub(crate) fn from_scenarios(running: Vec<Box<dyn Scenario>>) -> Self {
        assert!(running.len() <= 64, "one bit each");
        let needs = |need| running.iter().any(|s| s.def().needs.contains(&need));
        let mut wants = [0; KINDS];
        for (i, scenario) in running.iter().enumerate() {
            for kind in scenario.def().inputs {
                wants[*kind as usize] |= 1 << i;
            }
        }
        let (needs_orders, needs_market) = (needs(SharedStateKind::Orders), needs(SharedStateKind::Market));
        Self {
            running,
            wants,
            parties: OwnerGroups::default(),
            orders: OrderTable::new(),
            market: MarketState::default(),
            timers: TimerQueue::default(),
            needs_orders,
            needs_market,
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
        while let Some((scenario, due)) = self.timers.pop(event.ts_event()) {
            let Self { running, parties, orders, market, timers, .. } = self;
            let context = ScenarioContext { seq, position, names, parties, orders, market };
            running[scenario].on_timer(due, &context, &mut ScenarioOutput { alerts: out, timers, scenario });
        }
        if event.is_repeat() {
            // Its message may have been judged already.
            return;
        }
        let kind = event.kind();
        let record = OrderRecord::from_event(event);
        let mut touched = None;
        match (kind, record) {
            (_, Some(record)) if self.needs_orders => {
                touched = self.orders.apply(event, record, seq, position);
            }
            (EventKind::Bbo, _) if self.needs_market => self.market.on_bbo(event, seq),
            (EventKind::Ref, _) if self.needs_market => self.market.on_ref(event),
            (EventKind::Party, _) => self.parties.on_party(event),
            _ => {}
        }
        let mut wants = self.wants[kind as usize];
        if wants != 0 {
            let Self { running, parties, orders, market, timers, .. } = self;
            let context = ScenarioContext { seq, position, names, parties, orders, market };
            let order = touched.map(|(slot, was_live)| OrderUpdate {
                slot,
                order: context.orders.get(slot),
                was_live,
            });
            let (owner, trader, algo) = parties_of(kind, record, order.as_ref());
            let input = ScenarioInput { event, record, order, owner, trader, algo, context: &context };
            while wants != 0 {
                let scenario = wants.trailing_zeros() as usize;
                let mut output = ScenarioOutput { alerts: out, timers, scenario };
                running[scenario].on_event(&input, &mut output);
                wants &= wants - 1;
            }
        }
        if out.len() > from {
            out[from..].sort_by(Alert::order);
            out[from..].iter_mut().for_each(|alert| alert.position = position);
        }
    }

    /// Forgets all events, as before the first one; counters stay.
    pub fn reset(&mut self) {
        self.running.iter_mut().for_each(|s| s.reset());
        self.parties.reset();
        self.orders.reset();
        self.market.reset();
        self.timers.clear();
    }

    /// Returns the counters of each scenario.
    pub fn metrics(&self) -> impl Iterator<Item = (&'static str, ScenarioMetrics)> {
        self.running.iter().map(|s| (s.def().id, s.metrics()))
    }

    /// Returns the counters of the state that all scenarios share.
    pub fn shared_metrics(&self) -> SharedMetrics {
        let (orders_bound_hit, orders_spent) = self.orders.forgotten();
        SharedMetrics {
            orders_bound_hit,
            orders_spent,
            market_bound_hit: self.market.bound_hit(),
            timers_bound_hit: self.timers.bound_hit,
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
}

impl SharedMetrics {
    /// Adds the counters of another run.
    pub fn add(&mut self, later: &Self) {
        self.orders_bound_hit += later.orders_bound_hit;
        self.orders_spent += later.orders_spent;
        self.market_bound_hit += later.market_bound_hit;
        self.timers_bound_hit += later.timers_bound_hit;
    }
}

/// Returns the owner, trader and algorithm of an event. A cancel or an execution takes missing parties from its order.
#[inline]
fn parties_of(
    kind: EventKind,
    record: Option<&OrderRecord>,
    order: Option<&OrderUpdate<'_>>,
) -> (u32, u32, u32) {
    let Some(record) = record else { return (0, 0, 0) };
    let (owner, trader, algo) = (record.owner.get(), record.trader.get(), record.algo.get());
    match order {
        Some(t) if matches!(kind, EventKind::OrderCancel | EventKind::Exec) => {
            let own_or_inherited =
                |own_id: u32, inherited_id: u32| if own_id == 0 { inherited_id } else { own_id };
            (
                own_or_inherited(owner, t.order.owner),
                own_or_inherited(trader, t.order.trader),
                own_or_inherited(algo, t.order.algo),
            )
        }
        _ => (owner, trader, algo),
    }
}
