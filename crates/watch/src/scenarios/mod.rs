//! The scenarios, one folder each: definition, code, and its own cases beside it. The slow twins are in `twin/naive`.
//!
//! A new one is its folder, its twin and its line in [`ALL`]; `docs/writing-a-scenario.md` explains how.

pub mod order_to_trade_ratio;
pub mod spoofing;
pub mod wash_trade;

use crate::def::ScenarioDef;
use crate::error::Error;
use crate::params::{ScenarioParams, ScenarioSelection};
#[cfg(any(test, feature = "twin"))]
use crate::twin::naive::Twin;
use crate::watch::Scenario;

/// A scenario that can be run.
pub struct ScenarioEntry {
    /// Its definition.
    pub def: &'static ScenarioDef,
    /// Makes one with empty state.
    pub make: fn(&ScenarioParams) -> Box<dyn Scenario>,
    /// Makes its slow twin.
    #[cfg(any(test, feature = "twin"))]
    pub twin: fn(&ScenarioParams) -> Box<dyn Twin>,
}

macro_rules! entry {
    ($folder:ident, $scenario:ident) => {
        ScenarioEntry {
            def: &$folder::DEF,
            make: |params| Box::new($folder::$scenario::new(params)),
            #[cfg(any(test, feature = "twin"))]
            twin: |params| Box::new(crate::twin::naive::$folder::Slow::new(params)),
        }
    };
}

/// All of them, in the order of their names.
pub const ALL: &[ScenarioEntry] = &[
    entry!(order_to_trade_ratio, OrderToTradeScenario),
    entry!(spoofing, SpoofingScenario),
    entry!(wash_trade, WashTradeScenario),
];

/// Finds the definition with this name.
pub fn find(id: &str) -> Result<&'static ScenarioDef, Error> {
    ALL.iter().map(|e| e.def).find(|d| d.id == id).ok_or_else(|| Error::UnknownScenario {
        name: id.to_owned(),
        scenarios: ALL.iter().map(|e| e.def.id).collect::<Vec<_>>().join(", "),
    })
}

/// Returns the scenarios that `selection` runs.
pub(crate) fn selected(
    selection: &ScenarioSelection,
) -> Result<impl Iterator<Item = &'static ScenarioEntry> + use<>, Error> {
    let only = selection.scenarios.iter().map(|id| find(id)).collect::<Result<Vec<_>, _>>()?;
    Ok(ALL.iter().filter(move |entry| only.is_empty() || only.iter().any(|def| def.id == entry.def.id)))
}

#[cfg(test)]
mod tests;
