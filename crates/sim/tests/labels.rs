//! Labels against an oracle that reads only the lines and knows only the text of the scenarios.

mod oracle;

use std::collections::BTreeMap;

use oracle::{Alert, Event};
use unitape_sim::day::market::{Market, MarketConfig, write_market_line};
use unitape_sim::day::{AlertLabel, Scenario, Sim, SimConfig, write_line};

fn run(config: SimConfig) -> (Sim, Vec<Event>) {
    let mut sim = Sim::new(config).expect("a good config");
    let (mut lines, mut scratch) = (Vec::new(), Vec::new());
    while let Some(events) = sim.step().map(<[_]>::to_vec) {
        events.iter().for_each(|e| write_line(sim.world(), e, &mut scratch, &mut lines));
    }
    let text = String::from_utf8(lines).expect("UTF-8");
    let events = text.lines().map(Event::parse).collect();
    (sim, events)
}

fn alerts(events: &[Event]) -> Vec<Alert> {
    let all = [
        oracle::spoofing,
        oracle::layering,
        oracle::wash_trade,
        oracle::order_to_trade_ratio,
        oracle::quote_stuffing,
        oracle::marking_close,
        oracle::runaway_algo,
        oracle::structuring,
    ];
    let mut found: Vec<Alert> = all.iter().flat_map(|scenario| scenario(events)).collect();
    found.sort_by(|a, b| (a.2, a.0, &a.1).cmp(&(b.2, b.0, &b.1)));
    found
}

/// Compares, and reports what is on one side only.
fn check(sim: &Sim, events: &[Event]) {
    compare(sim.config().seed, &sim.labels(), events);
}

fn compare(seed: u64, labels: &[&AlertLabel], events: &[Event]) {
    let label =
        |l: &&AlertLabel| (l.scenario, serde_json::to_string(&l.key).expect("a key is JSON"), l.trigger_seq);
    let (found, labelled): (_, Vec<Alert>) = (alerts(events), labels.iter().map(label).collect());
    let missing: Vec<_> = labelled.iter().filter(|l| !found.contains(l)).collect();
    let extra: Vec<_> = found.iter().filter(|a| !labelled.contains(a)).collect();
    assert!(
        missing.is_empty() && extra.is_empty(),
        "seed {seed}: labelled only {missing:#?}, fires only {extra:#?}"
    );
    assert_eq!(found, labelled);
    for label in labels {
        let at = events.binary_search_by_key(&label.trigger_seq, |e| e.seq).expect("an event");
        let trigger = &events[at];
        assert!(trigger.ts as u64 == label.ts && label.first_seq <= label.trigger_seq, "{label:?}");
    }
}

fn each(n: u32) -> BTreeMap<Scenario, u32> {
    Scenario::SIMPLE_DAY.into_iter().map(|s| (s, n)).collect()
}

fn config(seed: u64) -> SimConfig {
    SimConfig {
        seed,
        events: 30_000,
        instruments: 40,
        span_ns: 7_200 * 1_000_000_000,
        ..SimConfig::default()
    }
}

/// A scene that does not fire, or a background that does, would make a right detector look wrong.
#[test]
fn every_label_fires_and_nothing_else_does() {
    for seed in 1..=3 {
        let (sim, events) = run(SimConfig { plant: each(6), near_misses: each(0), ..config(seed) });
        check(&sim, &events);
        for scenario in Scenario::SIMPLE_DAY {
            let n = sim.labels().iter().filter(|l| l.scenario == scenario.id()).count();
            assert!(n >= 6, "{} has {n} labels", scenario.id());
        }
    }
}

/// A near miss that fires is no miss; what fires beside it (a flood is a flood) is labelled.
#[test]
fn near_misses_do_not_fire() {
    for seed in 11..=12 {
        let (sim, events) = run(SimConfig { plant: each(0), near_misses: each(7), ..config(seed) });
        check(&sim, &events);
        assert_eq!(sim.near_misses().len(), 8 * 7);
        let found = alerts(&events);
        for miss in sim.near_misses() {
            let key = serde_json::to_string(&miss.key).expect("a key is JSON");
            let fired = found.iter().any(|a| a.0 == miss.scenario && a.1 == key);
            assert!(!fired, "{miss:?}");
        }
    }
}

/// Busy traders, short hours and many events are what makes a background fire by accident.
#[test]
fn a_hurried_background_fires_nothing() {
    let span_ns = 1_300 * 1_000_000_000;
    let dense = SimConfig { events: 150_000, span_ns, traders: Some(120), instruments: 5, ..config(21) };
    let (sim, events) = run(SimConfig { plant: each(0), near_misses: each(0), halts: 1, ..dense });
    assert!(events.len() > 60_000, "{} events", events.len());
    check(&sim, &events);
}

/// The eight must also appear side by side in one day, at any hour of it.
#[test]
fn a_whole_day_holds_all() {
    let (sim, events) =
        run(SimConfig { events: 100_000, plant: each(10), near_misses: each(10), ..SimConfig::default() });
    check(&sim, &events);
    assert_eq!(sim.near_misses().len(), 80);
}

/// A window that reaches over a night, a price of the day before, or an ordinal of the day in place of the market's, would
/// each make labels of several days wrong.
#[test]
fn labels_hold_over_several_days() {
    // No scenario of these reads the others, and the oracle is slow.
    let others = ["level", "comm", "index", "ref_px", "statement", "position", "list"];
    for seed in 31..=32 {
        let day = SimConfig { events: 8_000, plant: each(2), near_misses: each(2), ..config(seed) };
        let config = MarketConfig { day, days: 3, ..MarketConfig::default() };
        let mut market = Market::new(config).expect("a good config");
        let (mut lines, mut scratch) = (Vec::new(), Vec::new());
        while market.step().is_some() {
            market.last_events().iter().for_each(|e| write_market_line(&market, e, &mut scratch, &mut lines));
        }
        let text = String::from_utf8(lines).expect("UTF-8");
        let mut events: Vec<Event> = text.lines().map(Event::parse).collect();
        events.retain(|e| !others.contains(&e.kind.as_str()) && e.find("venue") != Some("NBBO"));
        compare(seed, &market.labels(), &events);
        assert!(market.labels().len() >= 8 * 2 * 3, "{} labels", market.labels().len());
        assert_eq!(market.near_misses().len(), 8 * 2 * 3);
    }
}
