//! The words of the definition: "As layering, with L and E on different venues of the same instrument (venue removed from the
//! key)."

use crate::params::ScenarioParams;
use crate::twin::naive::{History, NaiveAlert, Twin, layering};
use unitape_model::Dictionary;

/// The scenario, slowly.
pub struct Slow(layering::Slow);

impl Slow {
    /// Makes the twin before the first event.
    pub fn new(params: &ScenarioParams) -> Self {
        Self(layering::Slow::cross_venue(params))
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        self.0.on_event(history, names)
    }
}
