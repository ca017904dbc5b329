//! The scenarios, one folder each: definition, code, its slow twin, and its own cases beside it.
//!
//! A new one is its folder and its line in [`ALL`]; `docs/writing-a-scenario.md` explains how.

pub mod order_to_trade_ratio;
pub mod spoofing;
pub mod wash_trade;

use crate::def::ScenarioDef;
use crate::error::Error;
#[cfg(any(test, feature = "naive"))]
use crate::naive::Twin;
use crate::params::{ScenarioParams, ScenarioSelection};
use crate::watch::Scenario;

/// A scenario that can be run.
pub struct ScenarioEntry {
    /// Its definition.
    pub def: &'static ScenarioDef,
    /// Makes one with empty state.
    pub make: fn(&ScenarioParams) -> Box<dyn Scenario>,
    /// Makes its slow twin.
    #[cfg(any(test, feature = "naive"))]
    pub twin: fn(&ScenarioParams) -> Box<dyn Twin>,
}

macro_rules! entry {
    ($folder:ident, $scenario:ident) => {
        ScenarioEntry {
            def: &$folder::DEF,
            make: |params| Box::new($folder::$scenario::new(params)),
            #[cfg(any(test, feature = "naive"))]
            twin: |params| Box::new($folder::naive::Slow::new(params)),
        }
    };
}

/// All of them, in the order of their names.
pub const ALL: &[ScenarioEntry] = &[
    entry!(order_to_trade_ratio, OrderToTradeScenario),
    entry!(spoofing, SpoofingScenario),
    entry!(wash_trade, WashTradeScenario),
];

/// The definition of this name.
pub fn find(id: &str) -> Result<&'static ScenarioDef, Error> {
    ALL.iter().map(|e| e.def).find(|d| d.id == id).ok_or_else(|| Error::UnknownScenario {
        name: id.to_owned(),
        known: ALL.iter().map(|e| e.def.id).collect::<Vec<_>>().join(", "),
    })
}

/// The scenarios that `selection` runs.
pub(crate) fn selected(
    selection: &ScenarioSelection,
) -> Result<impl Iterator<Item = &'static ScenarioEntry> + use<>, Error> {
    let only = selection.scenarios.iter().map(|id| find(id)).collect::<Result<Vec<_>, _>>()?;
    Ok(ALL.iter().filter(move |entry| only.is_empty() || only.iter().any(|def| def.id == entry.def.id)))
}

#[cfg(test)]
mod tests;
