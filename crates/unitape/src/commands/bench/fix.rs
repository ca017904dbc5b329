//! `bench fix`: messages to typed values, and orders to the tape.

use super::Context;
use super::passes::{fast_pass, slow_pass};
use super::record::{Hash, Record, Repeats, sha256};
use crate::output::Failure;
use std::fs;
use std::path::Path;
use unitape_codec::fix::Tokens;
use unitape_codec::fix::sample::sample_orders;
use unitape_feed::{Feed, Format, Mapping, Options, consolidate};

/// Runs the cases.
pub fn run(context: &Context, out: &mut dyn FnMut(Record) -> Result<(), Failure>) -> Result<(), Failure> {
    if context.wants("fix", "orders") {
        out(typed(context, "orders", &orders(context))?)?;
    }
    if context.wants("fix", "jse") {
        out(typed(context, "jse", &jse(context))?)?;
    }
    if context.wants("fix", "orders-to-tape") {
        to_tape(context)?.into_iter().try_for_each(out)?;
    }
    Ok(())
}

/// The frozen orders.
pub fn orders(context: &Context) -> Vec<u8> {
    sample_orders(context.pick(2_000, 1_000_000) as usize, 42)
}

/// The real file, again and again, to as many messages.
pub fn jse(context: &Context) -> Vec<u8> {
    static FILE: &[u8] = include_bytes!("../../../../../vectors/fix/jse/jse_fix50_marketdata_head80.fix");
    FILE.repeat(context.pick(1, 1 + 1_000_000 / JSE_MESSAGES) as usize)
}

/// Messages of the real file.
const JSE_MESSAGES: u64 = 11_110;

fn typed(context: &Context, case: &str, input: &[u8]) -> Result<Record, Failure> {
    let mut tokens = Tokens::new();
    // The slow twin says what is right; the fast path, hashed, must say the same before it is timed.
    let (mut slow, mut fast) = (Hash::default(), Hash::default());
    let expected = slow_pass(input, |typed| slow.add(&typed.bytes()));
    let found = fast_pass(&mut tokens, input, |typed| fast.add(&typed.bytes()));
    let (slow, fast) = (slow.hex(), fast.hex());
    if (expected, &slow) != (found, &fast) {
        return Err(Failure::Error(format!("fix {case}: fast path {found:?}, slow twin {expected:?}")));
    }
    let mut repeats = Repeats::default();
    for _ in 0..context.repeats(5) {
        let again = repeats.time(|| fast_pass(&mut tokens, input, |_| {}));
        if again != expected {
            return Err(Failure::Error(format!("fix {case}: {again:?} in a repeat, {expected:?} before")));
        }
    }
    let method = format!(
        "frame, checksum, all fields, the group checked against its count, up to ten typed values and those of each \
         entry of each of {} messages from memory; {} faults; values hashed beforehand and equal to the slow twin's",
        expected.messages, expected.faults
    );
    let record = repeats.record("fix", case, expected.messages, input.len() as u64, method);
    Ok(Record { input_sha256: Some(sha256(input)), output_sha256: Some(fast), ..record })
}

/// The whole way: a file in the page cache becomes a tape in a fresh directory.
fn to_tape(context: &Context) -> Result<Vec<Record>, Failure> {
    let place = context.fresh("orders-to-tape")?;
    let input = orders(context);
    let count = context.pick(2_000, 1_000_000);
    let (file, input_sha256, input_bytes) = (place.path().join("orders.fix"), sha256(&input), input.len());
    fs::write(&file, &input)?;
    drop(input);
    let mut repeats = [Repeats::default(), Repeats::default()];
    let mut expected = None;
    // The first round warms up: page cache, memory, name tables.
    for round in 0..=context.repeats(5) {
        for (workers, times) in [1, 2].into_iter().zip(&mut repeats) {
            let tape = place.path().join("tape");
            let feed = Feed {
                name: "orders".to_owned(),
                format: Format::by(Mapping::parse(include_str!("orders.toml"), "orders.toml")?)?,
                files: vec![file.clone()],
            };
            let options = Options { feeds: vec![feed], workers, ..Options::default() };
            let mut throw_away = Repeats::default();
            let times = if round == 0 { &mut throw_away } else { times };
            let outcome = times.time(|| consolidate(&tape, options))?;
            let s = &outcome.summary;
            if (s.messages, s.events, s.quarantined) != (count, count, 0) {
                let what = format!("{} messages, {} events, {} refused", s.messages, s.events, s.quarantined);
                return Err(Failure::Error(format!("fix orders-to-tape: {what}, not {count}, {count}, 0")));
            }
            let hash = tape_hash(&tape)?;
            if *expected.get_or_insert_with(|| hash.clone()) != hash {
                let what = "fix orders-to-tape: the tapes of two runs differ".to_owned();
                return Err(Failure::Error(what));
            }
            fs::remove_dir_all(&tape)?;
        }
    }
    let record = |(workers, times): (u32, &Repeats)| {
        let method = format!(
            "file in the page cache to a closed tape in a fresh directory: frame, checksum, fields, map to \
             order_new, names to ids, order, write, checksums; {workers} workers, 1 and 2 in turn; tape verified, \
             its bytes equal at 1 and 2 workers"
        );
        let record = times.record("fix", "orders-to-tape", count, input_bytes as u64, method);
        Record {
            threads: workers,
            backing: Some("file".to_owned()),
            place: Some(context.place.clone()),
            input_sha256: Some(input_sha256.clone()),
            output_sha256: expected.clone(),
            ..record
        }
    };
    Ok([1, 2].into_iter().zip(&repeats).map(record).collect())
}

/// SHA-256 over the segments and the dictionary log of a tape that verifies.
pub fn tape_hash(dir: &Path) -> Result<String, Failure> {
    let report = unitape_tape::verify(dir)?;
    if let Some(p) = report.problems.first() {
        return Err(Failure::Error(format!("{} at {}: {}", p.file.display(), p.offset, p.what)));
    }
    let mut files = fs::read_dir(dir.join("segments"))?
        .map(|entry| entry.map(|e| e.path()))
        .collect::<Result<Vec<_>, _>>()?;
    files.sort();
    files.push(dir.join("definitions.log"));
    let mut hash = Hash::default();
    for file in files {
        hash.add(&fs::read(file)?);
    }
    Ok(hash.hex())
}
