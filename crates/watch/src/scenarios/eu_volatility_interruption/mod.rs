//! Volatility interruption: a trade prints so far from the last auction or the last trade that an EU venue would
//! interrupt trading.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - The last auction is that of the same venue and instrument. A session event that names only one of them is of
//!   neither.
//! - The last trade is the last print by sequence that counts: a cancelled print does not, a corrected one has its
//!   new price, and a print with `no_last` is not the last trade. A print with `no_last` is not judged either.
//! - A reference that is not above zero has no basis points; it is missing. The other reference is still compared.
//! - `auction_s` changes no alert: it is the length of the auction that the detail names.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::exact::compare_bps;
use crate::fields;
use crate::keyed::KeyedStates;
use crate::missing::MissingValue;
use crate::params::ScenarioParams;
use crate::prints::{Print, PrintChange};
use crate::state::{state_value, watch_state};
use crate::watch::{
    EvidencePlace, Scenario, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind,
};
use serde_json::json;
use std::cmp::Ordering;
use unitape_model::{EventField, EventKind, InstrumentId, NameKind, Price};

/// The name of the scenario.
pub const ID: &str = "eu_volatility_interruption";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] = &[EventKind::Trade, EventKind::Session];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[SharedStateKind::Prints];

/// The scenario.
pub struct VolatilityInterruptionScenario {
    /// Billionths.
    static_bps: u64,
    /// Billionths.
    dynamic_bps: u64,
    auction_s: u64,
    auctions: KeyedStates<(u16, InstrumentId), AuctionPrice>,
}

/// The price of the last auction of a venue and instrument.
#[derive(Clone, Copy)]
struct AuctionPrice {
    px: Price,
    place: EvidencePlace,
}

state_value!(AuctionPrice { px, place });
watch_state!(VolatilityInterruptionScenario { auctions | static_bps, dynamic_bps, auction_s });

impl VolatilityInterruptionScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        Self {
            static_bps: params.nano("static_bps"),
            dynamic_bps: params.nano("dynamic_bps"),
            auction_s: params.uint("auction_s"),
            auctions: KeyedStates::new(),
        }
    }

    fn on_session(&mut self, input: &ScenarioInput<'_, '_>) {
        let event = input.event;
        let (venue, instr) = (event.venue(), event.instrument());
        if venue != 0 && instr.0 != 0 && fields::has_text(event, EventField::Phase, "auction") {
            let px = fields::price(event, EventField::Px);
            let auction = px.map(|px| AuctionPrice { px, place: input.context.place() });
            auction.into_iter().for_each(|auction| self.auctions.set((venue, instr), auction));
        }
    }

    fn on_print(&mut self, print: &Print, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let auction = self.auctions.get(&(print.venue, print.instr)).copied();
        let last = input.context.prints.last_of_book_before(print.venue, print.instr, print.seq);
        let prices = [auction.map(|auction| auction.px), last.map(|last| last.px)];
        if prices.iter().flatten().any(|px| px.0 <= 0) || prices == [None, None] {
            out.missing(MissingValue::Reference(EventField::Px));
        }
        let is_beyond = |reference: Option<Price>, bps| {
            reference.filter(|reference| reference.0 > 0).is_some_and(|reference| {
                let distance = (i128::from(print.px.0) - i128::from(reference.0)).abs();
                compare_bps(distance, bps, reference.0.into()) == Ordering::Greater
            })
        };
        let [auction_px, last_px] = prices;
        let is_static = is_beyond(auction_px, self.static_bps);
        let is_dynamic = is_beyond(last_px, self.dynamic_bps);
        if is_static || is_dynamic {
            let text = |px: Option<Price>| px.map(|px| px.to_string());
            let values = json!({
                "px": print.px.to_string(),
                "auction_px": text(auction_px),
                "last_px": text(last_px),
                "static": is_static,
                "dynamic": is_dynamic,
                "auction_s": self.auction_s,
            });
            let evidence = auction.map(|auction| auction.place).into_iter().chain(last.map(Print::place));
            let detail = input.context.detail(values, evidence);
            let key = vec![
                ("venue", input.context.name(NameKind::Venue, print.venue.into())),
                ("instr", input.context.name(NameKind::Instrument, print.instr.0)),
            ];
            out.alert(Alert::new(ID, input.ts, input.context.seq, key, detail));
        }
    }
}

impl Scenario for VolatilityInterruptionScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        if input.event.kind() == EventKind::Session {
            return self.on_session(input);
        }
        let Some(PrintChange::New(print)) = input.print else { return };
        match print.lacking_of_book() {
            _ if print.no_last => {}
            Some(field) => out.missing(MissingValue::Field(field)),
            None => self.on_print(&print, input, out),
        }
    }

    fn reset(&mut self) {
        self.auctions.clear();
    }

    fn metrics(&self) -> ScenarioMetrics {
        ScenarioMetrics {
            bound_hit: self.auctions.bound_hit(),
            held_entries: self.auctions.len() as u64,
            ..ScenarioMetrics::default()
        }
    }
}
