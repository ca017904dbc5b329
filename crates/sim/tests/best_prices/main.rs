//! Best prices of banks: each rule by hand, and the evaluator against one from scratch.

mod cases;
mod scratch;
mod short_form;
mod small_stream;
mod twin_cases;

use expect_test::Expect;
use short_form::{event_line, short, sizes};
use unitape_book::fx::FxOptions;
use unitape_sim::banks::{BestPriceConfig, BestPriceTruth, OrientedPair};

/// The lines of best prices of events in the short form, in the short form.
fn check(config: BestPriceConfig, events: &str, expected: Expect) {
    expected.assert_eq(&short(&apply(config, events).0));
}

/// The lines and the evaluator after the last event.
fn apply(config: BestPriceConfig, events: &str) -> (String, BestPriceTruth) {
    let mut truth = BestPriceTruth::new(config).expect("a good config");
    let mut out = Vec::new();
    for event in events.lines().map(str::trim).filter(|line| !line.is_empty()) {
        truth.apply_line(&event_line(event), &mut out).expect("an event");
    }
    (String::from_utf8(out).expect("UTF-8"), truth)
}

/// Whether these options are refused.
fn is_refused(config: BestPriceConfig) -> bool {
    BestPriceTruth::new(config).is_err()
}

/// The pair that an instrument is, and whether it has it the other way round.
fn orient(written: &str) -> Option<(String, bool)> {
    OrientedPair::parse(written).map(|pair| (pair.name, pair.inverted))
}

/// The evaluator and the engine state their defaults apart: an option that one of them changed would look like a wrong price.
#[test]
fn the_evaluator_and_the_engine_have_the_same_defaults() {
    let (truth, engine) = (BestPriceConfig::default(), FxOptions::default());
    assert_eq!(truth.sizes, engine.sizes);
    let options = [truth.stale_ms, truth.spike_pips, truth.spike_banks];
    assert_eq!(options, [engine.stale_ms, engine.spike_pips, engine.spike_banks]);
}
