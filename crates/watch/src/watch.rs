//! The engine: hands each event to the scenarios that look at its kind.

use crate::alert::Alert;
use crate::def::Def;
use crate::error::Error;
use crate::orders::Orders;
use crate::params::{Overlay, Params, Selection};
use crate::parties::Parties;
use crate::scenarios;
use unitape_model::records::Order;
use unitape_model::{Dictionary, Event, Kind, Position};

/// An event with what is known around it.
pub struct Input<'a, 'e> {
    /// The event.
    pub event: &'a Event<'e>,
    /// Its ordinal.
    pub seq: u64,
    /// Its place on the tape, if it is on one.
    pub position: Option<Position>,
    /// Beneficial owner of an execution, its own or inherited from its order; 0 not known.
    pub owner: u32,
    /// Who belongs together.
    pub parties: &'a Parties,
    /// Names of ids.
    pub names: &'a Dictionary,
}

/// Counters of a scenario; only `held` ever goes down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Events looked at.
    pub events: u64,
    /// Alerts given.
    pub alerts: u64,
    /// Events that lacked something without which nothing can be said of them.
    pub missing: u64,
    /// Things forgotten because their time was over.
    pub expired: u64,
    /// Things forgotten because there was no room for them.
    pub bound_hit: u64,
    /// Things kept now.
    pub held: u64,
}

/// A scenario with its state.
pub trait Scenario: Send {
    /// What it is.
    fn def(&self) -> &'static Def;
    /// Takes an event of one of its kinds; appends alerts to `out`.
    fn on_event(&mut self, input: &Input<'_, '_>, out: &mut Vec<Alert>);
    /// Forgets all events; counters stay.
    fn reset(&mut self);
    /// Its counters.
    fn metrics(&self) -> Metrics;
}

/// Scenarios at work on one stream of events.
pub struct Watch {
    running: Vec<Box<dyn Scenario>>,
    /// One bit for each of `running`, by kind.
    wants: [u64; KINDS],
    parties: Parties,
    orders: Option<Orders>,
}

const KINDS: usize = Kind::Clock as usize + 1;

impl Watch {
    /// The scenarios of `selection` with their parameters.
    pub fn new(selection: &Selection) -> Result<Self, Error> {
        Self::with_input_params(selection, &[])
    }

    /// As [`Watch::new`], with parameters that the input brings: over the configuration, under the command
    /// line.
    pub(crate) fn with_input_params(selection: &Selection, input: &[&Overlay]) -> Result<Self, Error> {
        if let Some(id) = &selection.scenario {
            scenarios::find(id)?;
        }
        let mut overlays = vec![&selection.configuration];
        overlays.extend_from_slice(input);
        overlays.push(&selection.command_line);
        let mut this =
            Self { running: Vec::new(), wants: [0; KINDS], parties: Parties::default(), orders: None };
        for entry in scenarios::ALL {
            if selection.scenario.as_ref().is_some_and(|id| id != entry.def.id) {
                continue;
            }
            for kind in entry.def.inputs {
                this.wants[*kind as usize] |= 1 << this.running.len();
            }
            if entry.def.uses_orders {
                this.orders.get_or_insert_with(Orders::new);
            }
            this.running.push((entry.make)(&Params::resolve(entry.def, &overlays)));
        }
        Ok(this)
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
        let kind = event.kind();
        let mut owner = 0;
        match (kind, &mut self.orders) {
            (Kind::Party, _) => self.parties.on_party(event),
            (Kind::OrderNew | Kind::OrderAmend, Some(orders)) => orders.on_order(event),
            (Kind::Exec | Kind::OrderCancel, Some(orders)) => owner = orders.owner(event),
            _ => owner = Order::of(event).map_or(0, |o| o.owner.get()),
        }
        let mut wants = self.wants[kind as usize];
        if wants == 0 {
            return;
        }
        let from = out.len();
        let input = Input { event, seq, position, owner, parties: &self.parties, names };
        while wants != 0 {
            self.running[wants.trailing_zeros() as usize].on_event(&input, out);
            wants &= wants - 1;
        }
        if out.len() > from + 1 {
            out[from..].sort_by(Alert::order);
        }
    }

    /// Forgets all events, as before the first one; counters stay.
    pub fn reset(&mut self) {
        self.running.iter_mut().for_each(|s| s.reset());
        self.parties.reset();
        if let Some(orders) = &mut self.orders {
            orders.reset();
        }
    }

    /// The counters of each scenario.
    pub fn metrics(&self) -> impl Iterator<Item = (&'static str, Metrics)> {
        self.running.iter().map(|s| (s.def().id, s.metrics()))
    }

    /// How many orders were forgotten because there was no room for them.
    pub fn orders_bound_hit(&self) -> u64 {
        self.orders.as_ref().map_or(0, Orders::bound_hit)
    }
}

const _: () = assert!(scenarios::ALL.len() <= 64, "one bit each");
