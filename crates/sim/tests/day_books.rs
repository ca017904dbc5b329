//! Books made from the frames of simulated days against the simulator's own: the matching engine's after every step,
//! and what the events say after every event.

use std::collections::{BTreeSet, HashMap};
use unitape_book::twin::naive;
use unitape_book::{Basis, Books, ListingId};
use unitape_model::{Event as Frame, Side, frames};
use unitape_sim::BestLevel;
use unitape_sim::day::{DayEventBody, MarketPhase, OrderLedger, Sim, SimConfig, SimulatedMarket};

/// The orders of a side in the order in which they would be filled: id, price in 1e-9, remaining quantity.
type Line = Vec<(String, i64, i64)>;

fn config(seed: u64) -> SimConfig {
    SimConfig {
        seed,
        events: 3_000,
        instruments: 3,
        depth: 20,
        span_ns: 1_800 * 1_000_000_000,
        halts: 2,
        payments: 5,
        news: 3,
        plant: [].into(),
        near_misses: [].into(),
        ..SimConfig::default()
    }
}

fn line(books: &Books, id: ListingId, side: Side) -> Line {
    let book = books.book(id, Basis::Orders);
    let mut line = Vec::new();
    for level in book.levels(side) {
        let from = line.len();
        line.extend(book.queue(side, level.px).map(|o| {
            let left = o.left.scaled(0).and_then(|left| i64::try_from(left).ok()).expect("whole shares");
            (o.oid.to_string(), level.px.0, left)
        }));
        let sum: i64 = line[from..].iter().map(|o| o.2).sum();
        assert_eq!(
            (level.qty.to_string(), level.orders),
            (sum.to_string(), Some((line.len() - from) as u32))
        );
    }
    line
}

/// The orders in a book according to the events. An order that was announced last and meets the other side is being
/// matched, and does not appear.
fn shown(ledger: &OrderLedger, book: u32, last: Option<u64>, continuous: bool) -> [Vec<(u64, i64, i64)>; 2] {
    let mut sides = [Side::Buy, Side::Sell].map(|side| ledger.queue(book, side));
    let crossed = matches!(&sides, [b, a] if !b.is_empty() && !a.is_empty() && b[0].1 >= a[0].1);
    if crossed && continuous {
        sides.iter_mut().for_each(|side| side.retain(|o| Some(o.0) != last));
    }
    sides
}

/// Counts of what was compared.
#[derive(Debug, Default)]
struct Compared {
    events: u64,
    halves: u64,
    steps: u64,
    published: u64,
    crossed: u64,
}

fn compare(seed: u64, sum: &mut Compared) {
    let mut sim = Sim::new(config(seed)).expect("a good config");
    let (mut books, mut ledger, mut run) = (Books::default(), OrderLedger::default(), Vec::new());
    let mut last: HashMap<u32, u64> = HashMap::new();
    let mut matches: BTreeSet<u64> = BTreeSet::new();
    while sim.step_frames(&mut run) {
        let mut touched = BTreeSet::new();
        let world = sim.world();
        for (event, (_, _, frame)) in sim.last_events().iter().zip(frames(&run)) {
            ledger.apply(event);
            let changes = books.on_event(&Frame::new(frame).expect("a frame of the simulator")).to_vec();
            let at = format!("seed {seed}, {event:?}");
            assert!(changes.iter().all(|c| c.fault.is_none()), "{at}: {changes:?}");
            let (book, mut half) = match event.body {
                DayEventBody::New(t) | DayEventBody::Amend(t) => {
                    last.insert(t.book, t.oid);
                    (t.book, false)
                }
                DayEventBody::Cancel(t) => (t.book, false),
                DayEventBody::Exec { order, match_id, .. } => (order.book, matches.insert(match_id)),
                DayEventBody::Bbo { book, .. } | DayEventBody::Session { book, .. } => (book, false),
                _ => continue,
            };
            let (venue, instr) = (world.venue_of(book), SimulatedMarket::tape_id(world.instr_of(book)));
            let id = books.find(venue as u16 + 1, instr).expect("a listing of the day");
            touched.insert((book, id));
            let listing = books.listing(id);
            let continuous = listing.phase().is_continuous();
            // Until the events have reported both sides of a match, they describe half of it. An auction is
            // different: nobody is matched on arrival.
            half &= continuous;
            let nano = |px| world.listed(book).nano(px);
            if half {
                sum.halves += 1;
            } else {
                let shown = shown(&ledger, book, last.get(&book).copied(), continuous);
                for (side, queue) in [Side::Buy, Side::Sell].into_iter().zip(shown) {
                    let name = |o: (u64, i64, i64)| (unitape_sim::day::names::oid_text(o.0), nano(o.1), o.2);
                    assert_eq!(line(&books, id, side), queue.into_iter().map(name).collect::<Line>(), "{at}");
                }
                sum.events += 1;
            }
            let bbo = books.book(id, Basis::Orders).bbo();
            let best = |l: Option<unitape_book::PriceLevel>| l.map(|l| (l.px.0, l.qty.to_string()));
            let crossed = matches!((bbo.bid, bbo.ask), (Some(b), Some(a)) if b.px >= a.px);
            assert!(!crossed || !continuous, "{at}: crossed in continuous trading");
            sum.crossed += u64::from(crossed);
            if let DayEventBody::Bbo { bid, ask, .. } = event.body {
                let best_of = |b: Option<BestLevel>| b.map(|b| (nano(b.px), b.qty.to_string()));
                assert_eq!([bbo.bid, bbo.ask].map(best), [bid, ask].map(best_of), "{at}");
                sum.published += 1;
            }
        }
        // The matching engine's own books, after the step.
        for (book, id) in touched {
            let (venue, instr) = (world.venue_of(book), world.instr_of(book));
            for side in [Side::Buy, Side::Sell] {
                let own = sim.book(venue, instr).orders(side).map(|(tag, px, left)| {
                    (
                        unitape_sim::day::names::oid_text(sim.order_number(tag)),
                        world.listed(book).nano(px),
                        left,
                    )
                });
                assert_eq!(
                    line(&books, id, side),
                    own.collect::<Line>(),
                    "seed {seed}, book {book}, {side:?}"
                );
            }
            let phase = match sim.phase(venue, instr) {
                MarketPhase::Pre => "pre",
                MarketPhase::Open => "open",
                MarketPhase::Auction => "auction",
                MarketPhase::Halt => "halt",
                MarketPhase::Close => "close",
            };
            assert_eq!(books.listing(id).phase().name(), Some(phase), "seed {seed}, book {book}");
            sum.steps += 1;
        }
        run.clear();
    }
    for id in books.listings() {
        let (checked, differs) = books.listing(id).published_checks();
        assert!(
            differs == 0 && books.listing(id).crossings() == 0,
            "seed {seed}: {differs} of {checked} differ"
        );
    }
    assert_eq!((books.orders(), books.faults_total()), (0, 0), "all orders end with the day");
}

/// A book that is not the venue's at one event shows an observer a market that was not there: through auctions,
/// halts, stops that are elected, immediate orders and the close.
#[test]
fn books_are_the_simulators_at_every_event() {
    let mut sum = Compared::default();
    (0..24).for_each(|seed| compare(seed, &mut sum));
    println!("{sum:?}");
    assert!(
        sum.events > 40_000 && sum.steps > 20_000 && sum.published > 5_000 && sum.crossed > 100,
        "{sum:?}"
    );
}

/// The slow twin reads the same days, so that it can serve as the truth where there is no simulator.
#[test]
fn the_slow_twin_agrees_on_simulated_days() {
    for seed in [50, 51] {
        let mut sim =
            Sim::new(SimConfig { plant: SimConfig::default().plant, ..config(seed) }).expect("a good config");
        let (mut books, mut twin, mut run) = (Books::default(), naive::Naive::new(None, None), Vec::new());
        let mut steps = 0;
        while sim.step_frames(&mut run) {
            for event in frames(&run).filter_map(|(_, _, frame)| Frame::new(frame)) {
                books.on_event(&event);
                twin.on_event(&event);
            }
            run.clear();
            steps += 1;
            if steps % 97 == 0 {
                assert!(naive::dump(&books) == twin.dump(), "seed {seed}, step {steps}");
            }
        }
        assert_eq!(naive::dump(&books), twin.dump());
    }
}
