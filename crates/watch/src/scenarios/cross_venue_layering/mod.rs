//! Inter-venue layering: orders at several prices on one venue push the market for a trade on another venue.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - All readings of [`super::layering`] apply.
//! - *Venues other than that of E*: an order that names no venue takes no part.
//! - `venues` has one word, `any`: every other venue counts. Other words are not defined and mean the same.

#[cfg(test)]
mod tests;

use super::layering::LayeringScenario;
use crate::params::ScenarioParams;

/// The name of the scenario.
pub const ID: &str = "cross_venue_layering";
pub use super::layering::{INPUTS, NEEDS};

/// The scenario: [`LayeringScenario`] by other rules.
pub struct CrossVenueLayeringScenario;

impl CrossVenueLayeringScenario {
    /// Makes the scenario with empty state.
    #[expect(clippy::new_ret_no_self, reason = "it is its sibling with other rules")]
    pub fn new(params: &ScenarioParams) -> LayeringScenario {
        LayeringScenario::with_rules(params, ID, true)
    }
}
