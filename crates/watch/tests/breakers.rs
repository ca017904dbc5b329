//! The closed loop: a simulated market and its breaker in lock step, with orders on their way while a trip travels.

use std::collections::{BTreeMap, BTreeSet};
use unitape_model::{
    DefinitionTable, Dictionary, Event, EventBuilder, EventField, EventKind, EventValue, InlineId, NameKind,
    Position, UnixNanos, flags, frames,
};
use unitape_sim::day::Scenario;
use unitape_sim::day::market::{ControlAction, ControlRequest, write_market_frame};
use unitape_sim::{Market, MarketConfig, SimConfig};
use unitape_watch::breakers::{Breaker, BreakerAction, BreakerRules, BreakerSignal, ControlVerb};
use unitape_watch::{ScenarioSelection, TapeWatch};

/// Each runaway breaches one of these before it is over; nobody else does.
const RULES: &str = "
[[limit]]
name = 'messages'
scope = 'algo'
messages = 60
window = '1s'
action = 'kill'
[[limit]]
name = 'repeats'
scope = 'algo'
repeats = 10
window = '10s'
action = 'kill'
[[limit]]
name = 'notional'
scope = 'algo'
gross_notional = 5_000_000
window = '60s'
action = 'kill'
[[limit]]
name = 'overfill'
scope = 'algo'
overfill = 100
action = 'kill'
";

#[derive(Default)]
struct LoopCounts {
    trips: BTreeMap<String, u64>,
    /// Orders that came through after a trip, by trip.
    most_through: u64,
    refused: u64,
    of_runaways: u64,
    cancelled: u64,
}

/// A trip whose control is on its way to the market.
struct Pending {
    signal: BreakerSignal,
    algo: String,
    through: u64,
    delivered: bool,
}

/// Plays a market; the control of a trip arrives once `on_the_way` more orders of its scope have come through.
fn play(seed: u64, on_the_way: u64, counts: &mut LoopCounts) {
    let day = SimConfig {
        seed,
        events: 1_500,
        instruments: 6,
        venues: 1,
        span_ns: 900 * 1_000_000_000,
        halts: 0,
        news: 0,
        payments: 0,
        plant: [(Scenario::RunawayAlgo, 4)].into(),
        near_misses: [].into(),
        ..SimConfig::default()
    };
    let config = MarketConfig { day, days: 1, comms: 0, reject_one_in: 0 };
    let mut market = Market::new(config).expect("a good config");
    let mut breaker = Breaker::new(BreakerRules::parse(RULES, "rules").expect("good rules"));
    let mut position = 0;
    let (mut arena, mut out) = (Vec::new(), Vec::new());
    let mut pending: Vec<Pending> = Vec::new();
    // What rests, by algorithm.
    let mut resting: BTreeMap<String, BTreeSet<Vec<u8>>> = BTreeMap::new();
    let mut refused_seen = 0;
    while market.step().is_some() {
        define_names(market.world().names(), &mut breaker.names);
        arena.clear();
        for event in market.last_events() {
            write_market_frame(&market, event, true, &mut arena);
        }
        for (_, _, frame) in frames(&arena) {
            position += frame.len() as u64;
            out.clear();
            breaker.on_frame(Position(position), frame, &mut out).expect("a frame of ours");
            let event = Event::new(frame).expect("an event");
            let algo = algo_of(&event, &breaker);
            let is_refused = text(&event, EventField::Reason).is_some_and(|reason| reason == "rejected");
            refused_seen += u64::from(is_refused);
            if let Some(algo) = &algo {
                let oid = oid_of(&event);
                match event.kind() {
                    EventKind::OrderNew => _ = resting.entry(algo.clone()).or_default().insert(oid),
                    EventKind::OrderCancel if !is_refused => {
                        let was_there = resting.get_mut(algo).is_some_and(|orders| orders.remove(&oid));
                        let is_killed = pending.iter().any(|trip| trip.delivered && trip.algo == *algo);
                        counts.cancelled += u64::from(was_there && is_killed);
                    }
                    _ => {}
                }
                for trip in pending.iter_mut().filter(|trip| trip.algo == *algo) {
                    if event.kind() == EventKind::OrderNew {
                        assert!(!trip.delivered, "seed {seed}: an order after the halt: {}", trip.signal.id);
                        trip.through += 1;
                    }
                }
            }
            for signal in out.drain(..) {
                assert_eq!(signal.verb, ControlVerb::Trip(BreakerAction::Kill));
                *counts.trips.entry(signal.limit.clone()).or_default() += 1;
                let algo = signal.scope.name.clone();
                assert!(!pending.iter().any(|other| other.algo == algo), "a second trip of one scope");
                pending.push(Pending { signal, algo, through: 0, delivered: false });
            }
        }
        for trip in pending.iter_mut().filter(|trip| !trip.delivered && trip.through >= on_the_way) {
            let request = ControlRequest {
                ts: trip.signal.ts.0 as u64,
                action: ControlAction::Kill,
                id: Some(trip.signal.id.clone()),
                scope_kind: Some("algo".to_owned()),
                algo: Some(trip.algo.clone()),
                reason: Some(trip.signal.reason.to_owned()),
                ..ControlRequest::default()
            };
            market.control(&request).expect("a good control");
            trip.delivered = true;
        }
    }
    for trip in &pending {
        counts.most_through = counts.most_through.max(trip.through);
        assert!(trip.through <= on_the_way, "seed {seed}: {} orders after {}", trip.through, trip.signal.id);
    }
    let refused = market.refused();
    assert_eq!(refused.orders, refused_seen, "each refusal is counted, and is an event");
    counts.refused += refused.orders;
    counts.of_runaways += refused.of_runaways;
    let mut truth = Vec::new();
    market.write_truth(&mut truth).expect("memory");
    let line = format!("\"rec\":\"refused\",\"orders\":{}", refused.orders);
    assert_eq!(String::from_utf8(truth).expect("text").contains(&line), refused.orders > 0);
}

/// Gives a table the names that it does not have.
fn define_names(names: &Dictionary, table: &mut DefinitionTable) {
    let mut arena = Vec::new();
    for dict in (0..=u8::MAX).filter_map(NameKind::from_u8) {
        for id in table.len(dict) + 1..=names.len(dict) {
            let name = names.name(dict, id).expect("ids have no gaps");
            EventBuilder::define(&mut arena, dict, id, name).expect("a name");
        }
    }
    for (_, _, frame) in frames(&arena) {
        table.admit_frame(frame).expect("a definition");
    }
}

fn algo_of(event: &Event<'_>, breaker: &Breaker) -> Option<String> {
    match event.field(EventField::Algo, &mut [0; 36]) {
        Some(EventValue::Sym(dict, id)) => breaker.names.name(dict, id).map(str::to_owned),
        _ => None,
    }
}

fn text(event: &Event<'_>, field: EventField) -> Option<String> {
    match event.field(field, &mut [0; 36]) {
        Some(EventValue::Text(text)) => Some(text.to_owned()),
        _ => None,
    }
}

fn oid_of(event: &Event<'_>) -> Vec<u8> {
    match event.field(EventField::Oid, &mut [0; 36]) {
        Some(EventValue::Id(InlineId::Text(text))) => text.to_vec(),
        Some(EventValue::Id(InlineId::Number(number))) => number.to_le_bytes().to_vec(),
        _ => Vec::new(),
    }
}

/// At most K orders pass after the one that tripped the limit; the others are refused, counted, and in the truth.
#[test]
fn the_market_obeys_its_breaker_in_lock_step() {
    for (on_the_way, seeds) in [(0, 1..=18), (1, 19..=34), (5, 35..=50)] {
        let mut counts = LoopCounts::default();
        for seed in seeds {
            play(seed, on_the_way, &mut counts);
        }
        let limits: Vec<_> = counts.trips.keys().map(String::as_str).collect();
        assert_eq!(limits, ["messages", "notional", "overfill", "repeats"], "{:?}", counts.trips);
        assert_eq!(counts.most_through, on_the_way);
        assert!(counts.of_runaways > 50 && counts.refused >= counts.of_runaways, "K = {on_the_way}");
        assert!(counts.cancelled > 0, "K = {on_the_way}: a kill cancels what rests");
    }
}

/// A tape has more kinds than limits look at: breaker and scenarios take one event of each.
#[test]
fn one_event_of_each_kind_is_taken() {
    let mut breaker = Breaker::new(BreakerRules::parse(RULES, "rules").expect("good rules"));
    let mut watch = TapeWatch::new(&ScenarioSelection::default()).expect("all scenarios");
    let kinds: Vec<_> = (0..=u8::MAX).filter_map(EventKind::from_u8).filter(|kind| kind.is_input()).collect();
    for (kind, seq) in kinds.iter().zip(1..) {
        let (arena, names) = frames_of(*kind);
        define_names(&names, &mut breaker.names);
        define_names(&names, &mut watch.names);
        for (_, _, frame) in frames(&arena) {
            breaker.on_frame(Position(64), frame, &mut Vec::new()).expect("an event of this kind");
            watch.on_frame(Position(64), frame, seq, &mut Vec::new()).expect("an event of this kind");
        }
    }
    assert!(kinds.len() > 20);
    assert_eq!(breaker.events(), kinds.len() as u64);
}

/// An event with the fields that its kind must have.
fn frames_of(kind: EventKind) -> (Vec<u8>, Dictionary) {
    let (mut arena, mut names) = (Vec::new(), Dictionary::default());
    for dict in (0..=u8::MAX).filter_map(NameKind::from_u8) {
        names.intern(dict, b"1").expect("the first name");
    }
    let mut event = EventBuilder::begin(&mut arena, kind, UnixNanos(1));
    while let Some(spec) = event.missing_field() {
        let texts = ["1", "A", "open", "halt", "assign", "[]"];
        let set = texts.iter().any(|text| event.set_text(spec, text.as_bytes(), &mut names).is_ok());
        assert!(set, "{kind:?}: a value of {spec:?}");
    }
    event.finish(flags::LAST).expect("all fields are there");
    (arena, names)
}
