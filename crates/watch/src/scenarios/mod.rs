//! The scenarios, one folder each: definition, code, and its own cases beside it. The slow twins are in `twin/naive`.
//!
//! A new one is its folder, its twin and its line in [`ALL`]; `docs/writing-a-scenario.md` explains how.

pub mod order_to_trade_ratio;
pub mod spoofing;
pub mod wash_trade;

use crate::def::{ScenarioDef, definition};
use crate::error::Error;
use crate::params::{ScenarioParams, ScenarioSelection};
#[cfg(any(test, feature = "twin"))]
use crate::twin::naive::Twin;
use crate::watch::{Scenario, SharedStateKind};
use unitape_model::EventKind;

/// A scenario that can be run.
pub struct ScenarioEntry {
    /// Its name, which is that of its definition.
    pub id: &'static str,
    /// The kinds of events that it judges.
    pub inputs: &'static [EventKind],
    /// The shared state that it needs.
    pub needs: &'static [SharedStateKind],
    /// Makes one with empty state.
    pub make: fn(&ScenarioParams) -> Box<dyn Scenario>,
    /// Makes its slow twin.
    #[cfg(any(test, feature = "twin"))]
    pub twin: fn(&ScenarioParams) -> Box<dyn Twin>,
}

impl ScenarioEntry {
    /// Returns the definition of the scenario.
    ///
    /// # Panics
    /// Panics if the agreed list, or the file of the types of parameters, has no such scenario; a test looks for each.
    pub fn def(&self) -> &'static ScenarioDef {
        definition(self.id).expect("each scenario of the registry has a definition")
    }
}

macro_rules! entry {
    ($folder:ident, $scenario:ident) => {
        ScenarioEntry {
            id: $folder::ID,
            inputs: $folder::INPUTS,
            needs: $folder::NEEDS,
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
    ALL.iter().find(|entry| entry.id == id).map(ScenarioEntry::def).ok_or_else(|| Error::UnknownScenario {
        name: id.to_owned(),
        scenarios: ALL.iter().map(|entry| entry.id).collect::<Vec<_>>().join(", "),
    })
}

/// Returns the scenarios that `selection` runs.
pub(crate) fn selected(
    selection: &ScenarioSelection,
) -> Result<impl Iterator<Item = &'static ScenarioEntry> + use<>, Error> {
    let only = selection.scenarios.iter().map(|id| find(id)).collect::<Result<Vec<_>, _>>()?;
    Ok(ALL.iter().filter(move |entry| only.is_empty() || only.iter().any(|def| def.id == entry.id)))
}

#[cfg(test)]
mod tests;
