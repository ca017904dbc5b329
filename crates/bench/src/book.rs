//! `bench book`: events to books.

use crate::context::BenchContext;
use crate::error::Error;
use crate::record::{BenchRecord, HexSha256, RepeatTimes, sha256};
use std::fs;
use unitape_book::twin::naive::{self, Naive};
use unitape_book::{BookOptions, Books};
use unitape_feed::{ConsolidateOptions as FeedOptions, consolidate, feed_of_option};
use unitape_model::{
    Decimal, Event, EventBuilder, EventField, EventKind, EventValue, InlineId, NameKind, Price, UnixNanos,
    flags, frames,
};
use unitape_sim::day::Scenario;
use unitape_sim::{DropCopy, InjectedNoiseConfig, Rng, SimConfig};
use unitape_tape::{Reader, StartPosition};

/// Runs the cases.
pub fn run(
    context: &BenchContext,
    out: &mut dyn FnMut(BenchRecord) -> Result<(), Error>,
) -> Result<(), Error> {
    if context.wants("book", "flow") {
        let description = "a simulated drop copy of three venues and twelve instruments as it stands on a tape: orders, \
                    executions, prints, best prices";
        out(books(context, "flow", &flow(context)?, description)?)?;
    }
    if context.wants("book", "deep") {
        let description = "200,000 live orders in 100 books (2,000 with --quick), orders alone: 46 % new, 42 % cancelled, \
                    6 % executed, 6 % amended, in an order that no cache foresees";
        out(books(context, "deep", &deep(context), description)?)?;
    }
    Ok(())
}

/// Measures the time for the events of `run`, frames one after another, after it compares the books with the slow twin's.
fn books(context: &BenchContext, case: &str, run: &[u8], description: &str) -> Result<BenchRecord, Error> {
    let events: Vec<Event<'_>> = frames(run).filter_map(|(_, _, frame)| Event::new(frame)).collect();
    let (mut fast, mut slow) = (HexSha256::default(), HexSha256::default());
    let (mut books, mut twin) = (Books::new(BookOptions::default()), Naive::new(None, None));
    let every = events.len() / 8 + 1;
    for (n, event) in events.iter().enumerate() {
        books.on_event(event);
        twin.on_event(event);
        if n % every == every - 1 || n + 1 == events.len() {
            fast.add(naive::dump(&books).as_bytes());
            slow.add(twin.dump().as_bytes());
        }
    }
    drop(twin);
    let (fast, slow, faults) = (fast.hex(), slow.hex(), books.faults_total());
    if fast != slow || faults > 0 {
        return Err(Error::Failed(format!("book {case}: {fast} ({faults} faults), slow twin {slow}")));
    }
    let (expected, live) = (sum(&mut Books::new(BookOptions::default()), &events), books.orders());
    drop(books);
    let mut repeats = RepeatTimes::default();
    for _ in 0..context.repeats(7) {
        // The books grow to their full size within the measured time.
        let mut books = Books::new(BookOptions::default());
        let repeat_sum = repeats.time(|| sum(&mut books, &events));
        if repeat_sum != expected {
            return Err(Error::Failed(format!(
                "book {case}: {repeat_sum:?} in a repeat, {expected:?} before"
            )));
        }
    }
    let count = events.len() as u64;
    let method = format!(
        "{count} events from memory, one thread: {description}; {live} live orders at the end; {} best prices changed; \
         levels, queues and best prices hashed at eight points beforehand and equal to the slow twin's",
        expected.0
    );
    let record = repeats.record("book", case, count, run.len() as u64, method);
    Ok(BenchRecord { input_sha256: Some(sha256(run)), output_sha256: Some(fast), ..record })
}

/// Takes all events; how many changed a best price, and which.
fn sum(books: &mut Books, events: &[Event<'_>]) -> (u64, u64) {
    let (mut changed, mut index_sum) = (0, 0u64);
    for (n, event) in events.iter().enumerate() {
        for change in books.on_event(event) {
            changed += u64::from(change.best_changed);
            index_sum =
                index_sum.wrapping_add(u64::from(change.best_changed | change.top_changed) * n as u64);
        }
    }
    (changed, index_sum)
}

/// Makes the events of a seeded day as a tape has them. With `--quick`, uses a frozen flow, so that instruction counts
/// can be compared with earlier commits.
fn flow(context: &BenchContext) -> Result<Vec<u8>, Error> {
    static FROZEN: &[u8] = include_bytes!("../../../vectors/bench/flow.fix.zst");
    let scratch_dir = context.fresh("book-flow")?;
    let file = if context.quick() {
        let file = scratch_dir.path().join("flow.fix.zst");
        fs::write(&file, FROZEN)?;
        file
    } else {
        let file = scratch_dir.path().join("flow.fix");
        let mut copy = DropCopy::new(day(), InjectedNoiseConfig::default())?.to_close();
        copy.write_fix(&mut std::io::BufWriter::new(fs::File::create(&file)?))?;
        file
    };
    let feed = feed_of_option(&format!("flow=fix:fix44-orders:{}", file.display()))?;
    let tape = scratch_dir.path().join("tape");
    consolidate(&tape, FeedOptions { feeds: vec![feed], ..FeedOptions::default() })?;
    let (mut reader, mut run) = (Reader::open(&tape, StartPosition::Oldest)?, Vec::new());
    while let Some(frame) = reader.next()? {
        if !frame.header.is_meta() {
            run.extend_from_slice(frame.bytes);
        }
    }
    Ok(run)
}

/// Returns the configuration of a day: about a million messages of three venues and twelve instruments in four hours.
fn day() -> SimConfig {
    SimConfig {
        seed: 42,
        events: 700_000,
        instruments: 12,
        start_ns: 1_772_438_400_000_000_000,
        span_ns: 4 * 3600 * 1_000_000_000,
        plant: [(Scenario::WashTrade, 20)].into(),
        near_misses: [(Scenario::WashTrade, 10)].into(),
        ..SimConfig::default()
    }
}

/// Makes many live orders in many books, from a seed.
fn deep(context: &BenchContext) -> Vec<u8> {
    let (events, target) = (context.pick(6_000, 2_000_000), context.pick(2_000, 200_000) as usize);
    let (mut rng, mut run) = (Rng::new(42), Vec::new());
    let mut live: Vec<(u64, u32, bool, i64, i64)> = Vec::with_capacity(target + 1);
    let mut next = 0;
    for n in 0..events {
        let roll = if live.len() < target / 2 { 0 } else { rng.below(100) };
        // As many come as go, around the target.
        let (new_limit, cancel_limit) = if live.len() < target { (48, 88) } else { (44, 88) };
        if roll < new_limit {
            next += 1;
            let (instrument, bid) = (1 + rng.below(100) as u32, rng.one_in(2));
            let away = 1 + rng.below(200).min(rng.below(200)) as i64;
            let px = 1_000_000 + if bid { -away } else { away };
            let qty = 100 * rng.between(1, 20);
            live.push((next, instrument, bid, px, qty));
            order(&mut run, EventKind::OrderNew, n, &live[live.len() - 1], Some(qty));
            continue;
        }
        let live_index = rng.below(live.len() as u64) as usize;
        match roll {
            _ if roll < cancel_limit => {
                let order_gone = live.swap_remove(live_index);
                order(&mut run, EventKind::OrderCancel, n, &order_gone, None);
            }
            88..94 => {
                // A quarter of an order, or the last of it.
                let part = (live[live_index].4 / 4).max(1);
                order(&mut run, EventKind::Exec, n, &live[live_index], Some(part));
                live[live_index].4 -= part;
                if live[live_index].4 == 0 {
                    live.swap_remove(live_index);
                }
            }
            _ => {
                live[live_index].3 += if live[live_index].2 { -1 } else { 1 };
                order(&mut run, EventKind::OrderAmend, n, &live[live_index], None);
            }
        }
    }
    run
}

/// Appends an event about an order: number, instrument, whether it buys, price in cents, quantity left.
fn order(
    run: &mut Vec<u8>,
    kind: EventKind,
    n: u64,
    order_state: &(u64, u32, bool, i64, i64),
    qty: Option<i64>,
) {
    let &(number, instrument, bid, px, _) = order_state;
    let oid = format!("O{number:010}");
    let mut event = EventBuilder::begin(run, kind, UnixNanos(n as i64 * 1_000));
    let mut set = |field, value| event.set_field(field, value).expect("a value of its sort");
    set(EventField::Oid, EventValue::Id(InlineId::Text(oid.as_bytes())));
    set(EventField::Venue, EventValue::Sym(NameKind::Venue, 1));
    set(EventField::Instr, EventValue::Sym(NameKind::Instrument, instrument));
    set(EventField::Side, EventValue::Text(if bid { "B" } else { "S" }));
    set(EventField::Px, EventValue::Price(Price(px * 10_000_000)));
    if let Some(qty) = qty {
        set(EventField::Qty, EventValue::Decimal(Decimal::from_int(qty)));
    }
    event.finish(flags::LAST).expect("an event of one order");
}
