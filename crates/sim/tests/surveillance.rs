//! The stream of orders for measuring surveillance: the same bytes for ever, and what it says of itself.

use std::collections::{HashMap, HashSet, VecDeque};

use sha2::{Digest, Sha256};
use unitape_model::{Event, EventField, EventKind, EventValue, InlineId, frames};
use unitape_sim::{SurveillanceConfig, SurveillanceStream};

const EVENTS: u64 = 100_000;

/// All frames of a stream, and the stream at its end.
fn run(config: SurveillanceConfig) -> (Vec<u8>, SurveillanceStream) {
    let (mut stream, mut out) = (SurveillanceStream::new(config), Vec::new());
    while stream.next_unit(&mut out) {}
    (out, stream)
}

/// The id of a name of an event.
fn sym(event: &Event<'_>, field: EventField) -> Option<u32> {
    let spec = event.schema().get(field)?;
    match event.value(spec, &mut [0; 36]) {
        Some(EventValue::Sym(_, id)) => Some(id),
        _ => None,
    }
}

/// Measurements with the stream compare figures of today with those of last year: another byte would make them
/// figures of something else.
#[test]
fn stream_has_the_same_bytes_for_ever() {
    let (frames, _) = run(SurveillanceConfig::with_events(EVENTS));
    let hash: String = Sha256::digest(&frames).iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(hash, "f200b20d3280606f36862af5c7529adca081d404710bc42d46f88db9d8fa8389");
}

/// What the stream counts is what its frames are, and the shares are those that the page states.
#[test]
fn counts_are_those_of_the_frames() {
    let config = SurveillanceConfig::with_events(EVENTS);
    let (arena, stream) = run(config);
    let counts = *stream.counts();
    let mut kinds: HashMap<EventKind, u64> = HashMap::new();
    let (mut last, mut bare, mut instruments, mut traders) =
        (config.start, 0, HashSet::new(), HashSet::new());
    for (_, _, frame) in frames(&arena) {
        let event = Event::new(frame).expect("a whole frame");
        *kinds.entry(event.kind()).or_default() += 1;
        assert!(event.ts_event() >= last, "time goes back");
        last = event.ts_event();
        let sym = |field| sym(&event, field);
        if matches!(event.kind(), EventKind::OrderCancel | EventKind::Exec) {
            bare += u64::from(sym(EventField::Instr).is_none());
            assert_eq!(sym(EventField::Instr).is_none(), sym(EventField::Trader).is_none());
            assert!(sym(EventField::Venue).is_some(), "an order id belongs to a venue");
        }
        instruments.extend(sym(EventField::Instr));
        traders.extend(sym(EventField::Trader));
    }
    let of = |kind| kinds.get(&kind).copied().unwrap_or(0);
    assert_eq!(counts.events, EVENTS);
    assert_eq!(kinds.values().sum::<u64>(), EVENTS);
    assert_eq!(counts.references, of(EventKind::Ref));
    assert_eq!(counts.parties, of(EventKind::Party));
    assert_eq!(counts.orders, of(EventKind::OrderNew));
    assert_eq!(counts.amends, of(EventKind::OrderAmend));
    assert_eq!(counts.cancels, of(EventKind::OrderCancel));
    assert_eq!(counts.executions, of(EventKind::Exec));
    assert_eq!(counts.trades, of(EventKind::Trade));
    assert_eq!(counts.best_prices, of(EventKind::Bbo));
    assert_eq!(counts.bare_cancels + counts.bare_executions, bare);
    assert_eq!(instruments.len(), config.instruments as usize);
    assert!(traders.len() * 10 > config.traders as usize * 9, "{} traders", traders.len());
    let end = config.start.0 + i64::from(config.seconds) * 1_000_000_000;
    assert!(last.0 > end - 60_000_000_000 && last.0 < end + 1_000_000_000, "{}", last.0);
    let named = run(SurveillanceConfig { names_all: true, ..config }).1;
    let named = *named.counts();
    assert_eq!((named.bare_cancels, named.bare_executions), (0, 0));
    assert_eq!((named.orders, named.executions), (counts.orders, counts.executions));
    // In thousandths of all events, as docs/simulator.md states them for the whole stream.
    for (count, least, most) in [
        (counts.references, 10, 10),
        (counts.orders, 345, 365),
        (counts.amends, 70, 90),
        (counts.cancels, 185, 205),
        (counts.executions, 92, 112),
        (counts.trades, 46, 56),
        (counts.best_prices, 195, 215),
    ] {
        let share = count * 1000 / EVENTS;
        assert!((least..=most).contains(&share), "{share} is not within {least} and {most}: {counts:?}");
    }
    for (bare, all) in [(counts.bare_cancels, counts.cancels), (counts.bare_executions, counts.executions)] {
        assert!((180..=220).contains(&(bare * 1000 / all)), "one in five is bare: {counts:?}");
    }
}

/// The orders of a flood come within a second, so that a scenario that counts by the second sees each flood once.
#[test]
fn a_flood_is_over_within_a_second() {
    const FLOOD: usize = 80;
    let (arena, stream) = run(SurveillanceConfig::with_events(400_000));
    // By trader and instrument: a busy trader enters as many orders within a second, but not in one instrument.
    let mut entries: HashMap<[Option<u32>; 2], VecDeque<i64>> = HashMap::new();
    let mut floods = 0;
    for (_, _, frame) in frames(&arena) {
        let event = Event::new(frame).expect("a whole frame");
        if event.kind() != EventKind::OrderNew {
            continue;
        }
        let key = [EventField::Trader, EventField::Instr].map(|field| sym(&event, field));
        let recent = entries.entry(key).or_default();
        recent.push_back(event.ts_event().0);
        while recent[0] + 1_000_000_000 <= event.ts_event().0 {
            recent.pop_front();
        }
        if recent.len() == FLOOD {
            recent.clear();
            floods += 1;
        }
    }
    assert!(floods >= 8, "{floods}");
    assert_eq!(floods, stream.counts().floods);
}

/// An order that an event names must rest or have just come: a stream in which unknown orders are cancelled measures nothing.
#[test]
fn every_order_named_is_open() {
    let (arena, stream) = run(SurveillanceConfig::with_events(EVENTS));
    // What is left, and what was executed, of each.
    let mut open: HashMap<Vec<u8>, (i64, i64)> = HashMap::new();
    let mut most = 0;
    for (_, _, frame) in frames(&arena) {
        let event = Event::new(frame).expect("a whole frame");
        let (mut room, mut number) = ([0; 36], [0; 36]);
        let spec = |field| event.schema().get(field).expect("a field of orders");
        let mut qty = || match event.value(spec(EventField::Qty), &mut number) {
            Some(EventValue::Decimal(qty)) => qty.mantissa() * 10i64.pow(qty.exponent() as u32),
            other => panic!("{other:?}"),
        };
        let id = |room| match event.value(spec(EventField::Oid), room) {
            Some(EventValue::Id(InlineId::Text(id))) => id.to_vec(),
            other => panic!("{other:?}"),
        };
        match event.kind() {
            EventKind::OrderNew => assert_eq!(open.insert(id(&mut room), (qty(), 0)), None),
            EventKind::OrderAmend => {
                let (left, executed) = open.get_mut(&id(&mut room)).expect("an amend of an open order");
                *left = qty() - *executed;
                assert!(*left > 0, "an amend says the whole quantity");
            }
            EventKind::OrderCancel => drop(open.remove(&id(&mut room)).expect("a cancel of an open order")),
            EventKind::Exec => {
                let id = id(&mut room);
                let (left, executed) = open.get_mut(&id).expect("an execution of an open order");
                let qty = qty();
                (*left, *executed) = (*left - qty, *executed + qty);
                assert!(*left >= 0, "more is executed than is open");
                if *left == 0 {
                    open.remove(&id);
                }
            }
            _ => {}
        }
        most = most.max(open.len() as u64);
    }
    let counts = stream.counts();
    // The last request may have been cut.
    assert!(open.len().abs_diff(counts.open_orders as usize) <= 5);
    assert!(most >= u64::from(SurveillanceConfig::with_events(EVENTS).open_orders), "{most}");
}
