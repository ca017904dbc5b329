//! A simulated day against what can be known of it without the simulator.

use std::collections::HashMap;
use std::hash::Hasher;

use unitape_model::{InstrumentId, Side};
use unitape_sim::day::{
    DayEvent, DayEventBody, LiquidityFlag, MarketPhase, OrderKind, OrderLedger, Sim, SimConfig, TimeInForce,
};

fn small(seed: u64) -> SimConfig {
    SimConfig {
        seed,
        events: 40_000,
        instruments: 24,
        span_ns: 3600 * 1_000_000_000,
        halts: 3,
        ..SimConfig::default()
    }
}

fn books(sim: &Sim) -> impl Iterator<Item = (usize, InstrumentId)> + use<> {
    let (venues, instruments) = (sim.world().venues.len(), sim.world().instruments.len() as u32);
    (0..venues).flat_map(move |v| (0..instruments).map(move |i| (v, InstrumentId(i))))
}

/// A hidden source of chance (a map's order, a clock) would give every run another truth.
#[test]
fn seed_decides_the_events() {
    let run = |seed| {
        let mut events = Vec::new();
        let mut sim = Sim::new(small(seed)).expect("a good config");
        sim.for_each(|e| events.push(*e));
        let mut truth = Vec::new();
        sim.write_truth(&mut truth).expect("a vector takes all");
        (events, truth)
    };
    let (one, two) = (run(7), run(7));
    assert!(one == two, "one seed, two days");
    assert!(one != run(8), "two seeds, one day");
}

/// Every event is numbered, in time, and of a kind that its book accepts in its phase.
#[test]
fn events_are_numbered_in_time_and_in_phase() {
    let mut sim = Sim::new(small(3)).expect("a good config");
    let (mut seq, mut ts) = (0, 0);
    let mut phases: HashMap<u32, MarketPhase> = HashMap::new();
    let mut halts = 0;
    while let Some(events) = sim.step() {
        for e in events {
            seq += 1;
            assert_eq!(e.seq, seq);
            assert!(e.ts >= ts, "{e:?}");
            ts = e.ts;
            match e.body {
                DayEventBody::Session { book, phase, .. } => {
                    let before = phases.insert(book, phase);
                    let right = matches!(
                        (before, phase),
                        (None, MarketPhase::Pre)
                            | (
                                Some(MarketPhase::Pre | MarketPhase::Open | MarketPhase::Halt),
                                MarketPhase::Auction
                            )
                            | (Some(MarketPhase::Auction), MarketPhase::Open | MarketPhase::Close)
                            | (Some(MarketPhase::Open), MarketPhase::Halt)
                    );
                    assert!(right, "{before:?} to {phase:?}");
                }
                DayEventBody::Status { halted, .. } => halts += u32::from(halted),
                DayEventBody::New(t) => {
                    assert!(matches!(phases[&t.book], MarketPhase::Open | MarketPhase::Auction), "{e:?}");
                    assert!(
                        phases[&t.book] == MarketPhase::Open
                            || t.kind == OrderKind::Limit && t.tif == TimeInForce::Day
                    );
                }
                DayEventBody::Amend(t) => {
                    assert!(matches!(phases[&t.book], MarketPhase::Open | MarketPhase::Auction), "{e:?}")
                }
                DayEventBody::Exec { order, liq, .. } => {
                    let wanted =
                        if liq == LiquidityFlag::Auction { MarketPhase::Auction } else { MarketPhase::Open };
                    assert_eq!(phases[&order.book], wanted, "matched out of its phase: {e:?}");
                }
                DayEventBody::Trade { book, auction, .. } => {
                    assert_eq!(phases[&book], if auction { MarketPhase::Auction } else { MarketPhase::Open });
                }
                DayEventBody::Bbo { book, .. } => assert_eq!(phases[&book], MarketPhase::Open),
                _ => {}
            }
        }
    }
    assert_eq!(halts, 3 * 3, "three instruments on three venues");
    assert!(phases.values().all(|&p| p == MarketPhase::Close) && phases.len() == 72);
    assert!((40_000..48_000).contains(&seq), "{seq} events");
}

/// A book that is not what its events say would make every book built from a tape look wrong, or hide that it is.
#[test]
fn books_are_what_the_events_say_after_every_step() {
    for seed in [1, 2] {
        let config = SimConfig {
            events: 12_000,
            instruments: 6,
            plant: [].into(),
            near_misses: [].into(),
            ..small(seed)
        };
        let mut sim = Sim::new(SimConfig { halts: 2, ..config }).expect("a good config");
        let mut ledger = OrderLedger::default();
        let mut bbo: HashMap<u32, [Option<(i64, i64)>; 2]> = HashMap::new();
        while let Some(events) = sim.step() {
            let mut touched: Vec<u32> = Vec::new();
            for e in events {
                ledger.apply(e);
                match e.body {
                    DayEventBody::New(t) | DayEventBody::Amend(t) | DayEventBody::Cancel(t) => {
                        touched.push(t.book)
                    }
                    DayEventBody::Session { book, .. } => touched.push(book),
                    DayEventBody::Bbo { book, bid, ask } => {
                        _ = bbo.insert(book, [bid, ask].map(|b| b.map(|b| (b.px, b.qty))));
                    }
                    _ => {}
                }
            }
            touched.dedup();
            for book in touched {
                let (v, i) = (sim.world().venue_of(book), sim.world().instr_of(book));
                for side in [Side::Buy, Side::Sell] {
                    let queue: Vec<_> = sim
                        .book(v, i)
                        .orders(side)
                        .map(|(tag, px, q)| (sim.order_number(tag), px, q))
                        .collect();
                    assert_eq!(queue, ledger.queue(book, side), "book {book} {side:?}");
                    let levels: Vec<_> = sim.depth(v, i, side).iter().map(|l| (l.px, l.qty)).collect();
                    let reported: Vec<_> = ledger.depth(book, side).iter().map(|l| (l.0, l.1)).collect();
                    assert_eq!(levels, reported);
                }
                if sim.phase(v, i) == MarketPhase::Open {
                    let best = [Side::Buy, Side::Sell].map(|s| sim.book(v, i).best(s).map(|b| (b.px, b.qty)));
                    if let [Some(bid), Some(ask)] = best {
                        assert!(bid.0 < ask.0, "crossed outside an auction");
                    }
                    assert_eq!(bbo.get(&book).copied().unwrap_or_default(), best, "best is not as published");
                }
            }
        }
        assert!(ledger.is_empty(), "{} orders outlive the day", ledger.len());
        assert!(books(&sim).all(|(v, i)| sim.book(v, i).best(Side::Buy).is_none()));
    }
}

/// Quantity that appears or vanishes in a match would poison every position and every share of volume.
#[test]
fn matches_have_two_sides_and_positions_sum_to_nothing() {
    let mut sim = Sim::new(SimConfig { keep_lives: true, ..small(5) }).expect("a good config");
    let mut legs: HashMap<u64, Vec<(Side, i64, i64, LiquidityFlag)>> = HashMap::new();
    let mut prints: HashMap<u64, (i64, i64)> = HashMap::new();
    let mut net: HashMap<(u32, InstrumentId), i64> = HashMap::new();
    let (mut entered, mut done) = (0u64, HashMap::new());
    let (mut elected, mut foks) = (0, 0);
    let mut lives = Vec::new();
    while let Some(events) = sim.step().map(<[DayEvent]>::to_vec) {
        for e in events {
            match e.body {
                DayEventBody::New(t) => {
                    entered += 1;
                    foks += u32::from(t.tif == TimeInForce::Fok);
                }
                DayEventBody::Amend(t) => elected += u32::from(t.stop_px.is_some()),
                DayEventBody::Exec { order, px, qty, match_id, liq, .. } => {
                    assert!(qty > 0);
                    legs.entry(match_id).or_default().push((order.side, px, qty, liq));
                    if let Some(limit) = order.px {
                        let better = if order.side == Side::Buy { px <= limit } else { px >= limit };
                        assert!(better, "worse than its limit: {e:?}");
                    }
                    let owner = sim.world().members[order.member as usize].owner;
                    let instr = sim.world().instr_of(order.book);
                    *net.entry((owner, instr)).or_default() +=
                        if order.side == Side::Buy { qty } else { -qty };
                    *done.entry(order.oid).or_insert(0) += qty;
                }
                DayEventBody::Trade { px, qty, match_id, .. } => {
                    assert!(prints.insert(match_id, (px, qty)).is_none(), "printed twice");
                }
                _ => {}
            }
        }
        lives.extend(sim.take_lives());
    }
    assert!(legs.len() > 1_000 && elected > 20 && foks > 20, "{} {elected} {foks}", legs.len());
    for (id, legs) in &legs {
        let [a, b] = legs[..] else { panic!("match {id} has {} sides", legs.len()) };
        assert_ne!(a.0, b.0);
        assert_eq!((a.1, a.2), (b.1, b.2));
        assert_eq!(prints.get(id), Some(&(a.1, a.2)));
        assert!(matches!(
            (a.3, b.3),
            (LiquidityFlag::Aggressive, LiquidityFlag::Passive)
                | (LiquidityFlag::Auction, LiquidityFlag::Auction)
        ));
    }
    assert_eq!(prints.len(), legs.len());
    let reported: HashMap<_, _> = sim.positions().into_iter().map(|(o, i, q)| ((o, i), q)).collect();
    assert_eq!(reported, net);
    for instr in sim.world().instrument_ids() {
        assert_eq!(net.iter().filter(|(at, _)| at.1 == instr).map(|(_, q)| q).sum::<i64>(), 0);
    }
    assert_eq!(lives.len() as u64, entered, "every order has a life, and it ends");
    for life in &lives {
        assert_eq!(life.filled_qty, done.get(&life.terms.oid).copied().unwrap_or(0));
        assert!(life.filled_qty <= life.terms.qty && life.seq_entered <= life.seq_ended);
    }
}

/// A change of the simulator that nobody meant changes every frozen input; one that is meant changes this number.
#[test]
fn events_of_a_seed_are_frozen() {
    struct Fnv(u64);
    impl Hasher for Fnv {
        fn finish(&self) -> u64 {
            self.0
        }
        fn write(&mut self, bytes: &[u8]) {
            bytes.iter().for_each(|&b| self.0 = (self.0 ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
        }
    }
    let mut sim = Sim::new(small(1)).expect("a good config");
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    // Frames, and not the text of `Debug`, which changes with each name of a type.
    let mut frames = Vec::new();
    while sim.step_frames(&mut frames) {
        hash.write(&frames);
        frames.clear();
    }
    assert_eq!((sim.events(), format!("{:016x}", hash.finish())), (43_615, "583dddcaa358cbbc".to_owned()));
}
