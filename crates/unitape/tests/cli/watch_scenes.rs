//! Full markets with scenes of every scenario that can be planted: the watch and its slow twins must find each scene at
//! exactly the labelled event, and no near miss. Once a scene of one scenario could trigger another one by the way.

use std::collections::BTreeMap;
use unitape_model::Event;
use unitape_sim::day::Scenario;
use unitape_sim::day::market::write_market_frame;
use unitape_sim::{Market, MarketConfig, SimConfig};
use unitape_watch::twin::naive::Twins;
use unitape_watch::{Alert, ScenarioSelection, Watch};

/// What identifies an alert: scenario, key as text, time, event.
type AlertIdentity = (String, String, i64, u64);

fn identities(alerts: &[Alert]) -> Vec<AlertIdentity> {
    let identity = |alert: &Alert| {
        let mut key = Vec::new();
        alert.write_key(&mut key);
        (alert.scenario.to_string(), String::from_utf8(key).unwrap(), alert.ts.0, alert.trigger_seq)
    };
    alerts.iter().map(identity).collect()
}

/// The number of near misses of each scenario: at least as many as there are kinds.
const NEAR_MISSES: u32 = 8;

fn config(seed: u64, days: u32, scenarios: &[Scenario]) -> MarketConfig {
    let each = |n: u32| -> BTreeMap<Scenario, u32> { scenarios.iter().map(|&s| (s, n)).collect() };
    let day = SimConfig {
        seed,
        events: 1_500,
        venues: 2,
        instruments: 24,
        depth: 12,
        traders: Some(80),
        payments: 50,
        halts: 1,
        span_ns: 7_200 * 1_000_000_000,
        plant: each(2),
        near_misses: each(NEAR_MISSES),
        ..SimConfig::default()
    };
    MarketConfig { day, days, ..MarketConfig::default() }
}

/// Plays a market and compares its labels with the alerts of the watch and, if wanted, of the twins.
fn check(config: MarketConfig, with_twins: bool) -> BTreeMap<&'static str, usize> {
    let seed = config.day.seed;
    let ids: Vec<&str> = config.day.plant.keys().map(|scenario| scenario.id()).collect();
    let mut market = Market::new(config).unwrap();
    let selection = ScenarioSelection::of(&ids);
    let (mut watch, mut twins) = (Watch::new(&selection).unwrap(), Twins::new(&selection).unwrap());
    let (mut fast, mut slow, mut frame) = (Vec::new(), Vec::new(), Vec::new());
    while market.step().is_some() {
        for event in market.last_events() {
            frame.clear();
            write_market_frame(&market, event, true, &mut frame);
            let read = Event::new(&frame).unwrap();
            watch.on_event(&read, event.seq, None, market.world().names(), &mut fast);
            if with_twins {
                twins.on_event(&read, event.seq, market.world().names(), &mut slow);
            }
        }
    }
    let fast = identities(&fast);
    if with_twins {
        assert_eq!(identities(&slow), fast, "seed {seed}: the twins");
    }
    let covered = market.days()[0].covers.clone();
    let labels: Vec<AlertIdentity> = market
        .labels()
        .iter()
        .map(|l| (l.scenario.to_owned(), serde_json::to_string(&l.key).unwrap(), l.ts as i64, l.trigger_seq))
        .collect();
    let mut counts = BTreeMap::new();
    for label in market.labels() {
        *counts.entry(label.scenario).or_insert(0) += 1;
    }
    let missing: Vec<_> = labels.iter().filter(|label| !fast.contains(label)).collect();
    assert!(missing.is_empty(), "seed {seed}: labels without alert: {missing:#?}");
    let extra: Vec<_> =
        fast.iter().filter(|alert| covered.contains(&alert.0.as_str()) && !labels.contains(alert)).collect();
    assert!(extra.is_empty(), "seed {seed}: alerts of covered scenarios without label: {extra:#?}");
    for miss in market.near_misses() {
        let key = serde_json::to_string(&miss.key).unwrap();
        let is_of_miss = |alert: &&AlertIdentity| {
            alert.0 == miss.scenario && alert.1 == key && (miss.first_seq..=miss.last_seq).contains(&alert.3)
        };
        assert!(fast.iter().find(is_of_miss).is_none(), "seed {seed}: {miss:?}");
    }
    counts
}

/// Of each scripted scenario, scenes and all kinds of near misses.
#[test]
fn scripted_scenes_fire_where_they_are_labelled() {
    let scripted: Vec<Scenario> =
        Scenario::ALL.into_iter().filter(|s| !Scenario::SIMPLE_DAY.contains(s)).collect();
    let on_day = |days: u32| scripted.iter().copied().filter(|s| s.days_min() == days).collect::<Vec<_>>();
    let seeds = std::env::var("UNITAPE_SCENE_SEEDS").map_or(4, |n| n.parse().expect("a number of seeds"));
    for seed in 1..=seeds {
        let mut counts = check(config(seed, 1, &on_day(1)), true);
        counts.extend(check(config(seed, 2, &on_day(2)), true));
        for scenario in &scripted {
            assert!(counts.get(scenario.id()).is_some_and(|n| *n >= 2), "seed {seed}: {counts:?}");
        }
    }
}

/// All scenarios side by side over two days: what one leaves in the books, lists and positions must not disturb another.
#[test]
fn all_scenes_fit_side_by_side() {
    let counts = check(config(31, 2, &Scenario::ALL), false);
    for scenario in Scenario::ALL {
        let least = 2 * (3 - scenario.days_min()) as usize;
        assert!(counts.get(scenario.id()).is_some_and(|n| *n >= least), "{}: {counts:?}", scenario.id());
    }
}

/// A simple day has the scenarios of old, byte for byte: others are refused, not silently left out.
#[test]
fn a_simple_day_refuses_other_scenarios() {
    use crate::common::run;
    let out = tempfile::tempdir().unwrap();
    let out = out.path().to_str().unwrap();
    let options = ["generate", "market", "--out", out, "--events", "2000", "--instruments", "40"];
    let refused = |more: &[&str]| run(options.iter().chain(more)).code(2);
    refused(&["--plant", "smoking=1"]).says(&["smoking", "--full"]);
    refused(&["--full", "--plant", "cross_venue=1", "--venues", "1"]).says(&["needs 2 venues"]);
    refused(&["--full", "--plant", "velocity=1"]).says(&["needs 2 days"]);
    refused(&["--full", "--plant", "insider_news=1", "--minutes", "60"]).says(&["insider_news"]);
    run(options.iter().chain(&["--plant", "all=1", "--near-miss", "all=0", "--minutes", "120"])).code(0);
    let truth = std::fs::read_to_string(format!("{out}/truth.jsonl")).unwrap();
    let labels = truth.lines().filter(|line| line.contains(r#""rec":"label""#));
    let is_old = |line: &str| {
        let label: serde_json::Value = serde_json::from_str(line).unwrap();
        Scenario::SIMPLE_DAY.iter().any(|scenario| label["scenario"] == scenario.id())
    };
    assert!(labels.clone().count() >= 8 && labels.into_iter().all(is_old), "{truth}");
}

/// A scenario without a scene would have no label in any market, and nobody would miss its alerts.
#[test]
fn every_scenario_has_a_scene() {
    let ids = |ids: &mut dyn Iterator<Item = &'static str>| ids.collect::<std::collections::BTreeSet<&str>>();
    let planted = ids(&mut Scenario::ALL.into_iter().map(Scenario::id));
    assert_eq!(planted, ids(&mut unitape_watch::scenarios::ALL.iter().map(|entry| entry.id)));
}
