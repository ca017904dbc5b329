//! `bench fast`: FAST messages by templates that are loaded at run time, all fields and half of them.

use crate::context::BenchContext;
use crate::error::Error;
use crate::fast_handler;
use crate::fast_passes::{
    FastMessageSet, FastPassResult, SETS, half, half_values, pass, slow_half_values, slow_values, values,
};
use crate::record::{BenchRecord, HexSha256, RepeatTimes, rounded, sha256};
use std::hint::black_box;
use std::time::Instant;
use unitape_fast::Decoder;

/// The cases.
pub const CASES: [&str; 8] = [
    "cme",
    "complex30000",
    "moex2521",
    "cme-half",
    "complex30000-half",
    "moex2521-half",
    "handler",
    "book-latency",
];

/// Runs the cases.
pub fn run(
    context: &BenchContext,
    out: &mut dyn FnMut(BenchRecord) -> Result<(), Error>,
) -> Result<(), Error> {
    for set in SETS {
        let cases = CASES.into_iter().filter(|case| case.strip_suffix("-half").unwrap_or(case) == set);
        let selected_cases: Vec<_> = cases.filter(|case| context.wants("fast", case)).collect();
        if selected_cases.is_empty() {
            continue;
        }
        let set = match FastMessageSet::load(set) {
            Ok(set) => set,
            Err(reason) if context.names("fast", &selected_cases) => {
                return Err(Error::Failed(format!("fast/{set}: {reason}")));
            }
            Err(reason) => {
                (context.options.note)(&format!("fast/{set} is passed over: {reason}"));
                continue;
            }
        };
        for case in selected_cases {
            out(measure(context, case, &set)?)?;
        }
    }
    fast_handler::run(context, out)
}

fn measure(context: &BenchContext, case: &str, set: &FastMessageSet) -> Result<BenchRecord, Error> {
    let wrong = |reason: &dyn std::fmt::Display| Error::Failed(format!("fast/{case}: {reason}"));
    let halved = case.ends_with("-half");
    let (mut decoder, mut hash, mut slow) =
        (Decoder::new(set.templates.clone()), HexSha256::default(), HexSha256::default());
    if halved {
        decoder = Decoder::with_projection(half(&set.templates).map_err(|e| wrong(&e))?);
    }
    decoder = decoder.with_strict(true);
    let count = if halved {
        slow_half_values(set, |bytes| slow.add(bytes)).map_err(|e| wrong(&e))?;
        half_values(&mut decoder, set, |bytes| hash.add(bytes))
    } else {
        slow_values(set, |bytes| slow.add(bytes)).map_err(|e| wrong(&e))?;
        values(&mut decoder, set, |bytes| hash.add(bytes))
    };
    let (count, hash) = (count.map_err(|e| wrong(&e))?, hash.hex());
    if hash != slow.hex() {
        return Err(wrong(&"other values than the slow twin's"));
    }
    let good = FastPassResult { messages: set.messages.len() as u64, faults: 0, bytes: set.bytes() };
    // Enough messages for the clock.
    let rounds = context.pick(1, 300_000 / set.messages.len() as u64 + 1);
    let (mut seed, mut times) = (42, RepeatTimes::default());
    for repeat in 0..=context.repeats(9) {
        let stream = set.permuted(&mut seed);
        let mut work =
            || (0..rounds).map(|_| pass(&mut decoder, &stream)).all(|pass_result| pass_result == good);
        // The first warms up.
        let right = if repeat == 0 { work() } else { times.time(work) };
        if !right {
            return Err(wrong(&"another result in a repeat"));
        }
    }
    let (messages, values) = (good.messages * rounds, count as f64 / good.messages as f64);
    let record = times.record("fast", case, messages, good.bytes * rounds, String::new());
    let ghz = clock_ghz();
    let method = format!(
        "{}; {} messages of {} bytes and {} values delivered{}, decoded one by one from memory in an order that is new in \
         each repeat, templates loaded before, all checks on, R6, R7 and R9 too; values of all messages equal to the slow \
         twin's; the fastest repeat is {:.1} cycles a value at {ghz:.2} GHz, by a chain of additions",
        set.description,
        good.messages,
        rounded(good.bytes as f64 / good.messages as f64),
        rounded(values),
        if halved { " (every other field is subscribed to)" } else { "" },
        record.min * ghz / values,
    );
    Ok(BenchRecord { method, input_sha256: Some(sha256(&set.input)), output_sha256: Some(hash), ..record })
}

/// Cycles in a nanosecond here and now: additions that wait for each other take one each on every processor that we know.
fn clock_ghz() -> f64 {
    const TURNS: u64 = 300_000;
    const PAIRS: u64 = 16;
    let chain = || {
        // Neither of a pair can be done before the other, and a compiler that knows neither number not both in one.
        let (mut sum, mask, summand) = (black_box(1u64), black_box(3), black_box(5u64));
        let since = Instant::now();
        for _ in 0..black_box(TURNS) {
            for _ in 0..PAIRS {
                sum = (sum ^ mask).wrapping_add(summand);
            }
        }
        black_box(sum);
        since.elapsed().as_nanos() as f64
    };
    let quickest = (0..15).map(|_| chain()).fold(f64::MAX, f64::min);
    (2 * TURNS * PAIRS) as f64 / quickest
}
