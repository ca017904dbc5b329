//! Slow twins: every scenario once more, straight from the words of its definition.
//!
//! A twin keeps every event and searches them. It shares only exact numbers and the reading of events with the fast
//! code. So if both agree, both implement the definition.

pub(crate) mod abusive_squeeze;
pub mod breakers;
pub(crate) mod collusive_spoofing;
pub(crate) mod comms_lexicon;
pub(crate) mod cross_product;
pub(crate) mod cross_venue_layering;
pub(crate) mod eu_volatility_interruption;
pub(crate) mod excessive_bid;
pub(crate) mod fat_finger;
pub(crate) mod front_running;
mod history;
pub(crate) mod insider_news;
pub(crate) mod layering;
pub(crate) mod luld;
pub(crate) mod marking_close;
pub(crate) mod momentum_ignition;
pub(crate) mod mwcb;
mod number;
pub(crate) mod off_market_trade;
pub(crate) mod order_to_trade_ratio;
pub(crate) mod painting_tape;
pub(crate) mod parking;
pub(crate) mod payments_passthrough;
pub(crate) mod payments_round;
pub(crate) mod payments_sanctions;
pub(crate) mod payments_structuring;
pub(crate) mod payments_velocity;
pub(crate) mod ping_orders;
pub(crate) mod prearranged;
pub(crate) mod price_spike;
pub(crate) mod pump_and_dump;
pub(crate) mod quote_stuffing;
pub(crate) mod reg_sho_201;
pub(crate) mod restricted_list;
pub(crate) mod runaway_algo;
pub(crate) mod smoking;
pub(crate) mod spoofing;
pub(crate) mod stop_hunting;
#[cfg(test)]
pub(crate) mod stream;
pub(crate) mod tailgating;
pub(crate) mod trade_through;
mod transfers;
pub(crate) mod volume_spike;
pub(crate) mod wash_trade;

pub use history::{Best, FieldValue, Happened, History, Id, Order, Print, after_reduction, opposite, sum};
pub use number::Number;

use crate::alert::Alert;
use crate::error::Error;
use crate::jsonl::{ReplayEngine, replay};
use crate::params::{ParamOverlay, ScenarioSelection};
use crate::scenarios;
use crate::watch::{ScenarioMetrics, SharedMetrics};
use std::io::{self, BufRead};
use unitape_model::{Dictionary, Event, NameKind, UnixNanos};

/// A scenario as slow and as plain as it can be.
pub trait Twin {
    /// Returns the alerts that the current event completes. The current event is the last of `history`.
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert>;
}

/// An alert of a twin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NaiveAlert {
    /// The time of the current event or of a timer.
    pub ts: UnixNanos,
    /// The key, names and values.
    pub key: Vec<(&'static str, String)>,
}

/// Returns the name of an id. An id without a name is shown as its number.
pub fn name(names: &Dictionary, dict: NameKind, id: u32) -> String {
    names.name(dict, id).map_or_else(|| format!("#{id}"), str::to_owned)
}

/// Returns the complete text of an id, as a key shows it.
pub fn id_text(id: &Id) -> String {
    match id {
        Id::Number(number) => number.to_string(),
        Id::Text(text) => String::from_utf8_lossy(text).into_owned(),
    }
}

/// The twins of the scenarios of a selection, on one stream of events.
pub struct Twins {
    twins: Vec<(&'static str, Box<dyn Twin>)>,
    history: History,
}

impl Twins {
    /// Makes a slow watch before the first event.
    pub fn new(selection: &ScenarioSelection) -> Result<Self, Error> {
        Self::with_selection(selection, &[])
    }

    /// Takes the next event; alerts, without detail, are appended to `out` in the order they are printed.
    pub fn on_event(&mut self, event: &Event<'_>, seq: u64, names: &Dictionary, out: &mut Vec<Alert>) {
        self.history.push(event, seq, names);
        let from = out.len();
        for (id, twin) in &mut self.twins {
            out.extend(
                twin.on_event(&self.history, names)
                    .into_iter()
                    .map(|found| Alert::new(id, found.ts, seq, found.key, serde_json::Value::Null)),
            );
        }
        out[from..].sort_by(Alert::order);
    }
}

impl ReplayEngine for Twins {
    fn with_selection(selection: &ScenarioSelection, input: &[&ParamOverlay]) -> Result<Self, Error> {
        let entries = scenarios::selected(selection)?;
        let params = selection.params_over(input);
        let twins = entries.map(|entry| (entry.id, (entry.twin)(&params(entry.def())))).collect();
        Ok(Self { twins, history: History::new(selection.calendar.calendar()) })
    }

    fn process_event(&mut self, event: &Event<'_>, seq: u64, names: &Dictionary, out: &mut Vec<Alert>) {
        self.on_event(event, seq, names, out);
    }

    fn counters(&self) -> (Vec<(&'static str, ScenarioMetrics)>, SharedMetrics) {
        (Vec::new(), SharedMetrics::default())
    }
}

/// Replays events as [`crate::replay_jsonl`] does, with the slow twins.
pub fn replay_jsonl(
    input: impl BufRead,
    label: &str,
    selection: &ScenarioSelection,
    sink: impl FnMut(&Alert, Option<&str>) -> io::Result<()>,
) -> Result<(), Error> {
    replay::<Twins>(input, label, selection, sink).map(|_| ())
}
