//! `bench swift`: messages to typed components, and messages to the tape.

use crate::context::BenchContext;
use crate::error::Error;
use crate::fix::tape_hash;
use crate::record::{BenchRecord, HexSha256, RepeatTimes, sha256};
use crate::swift_passes::{fast_pass, slow_pass};
use std::fs;
use unitape_codec::swift_mt::SwiftFieldTokenizer;
use unitape_codec::twin::swift_mt::sample::sample_messages;
use unitape_feed::{ConsolidateOptions, FileFeed, Format, consolidate};

/// Runs the cases.
pub fn run(
    context: &BenchContext,
    out: &mut dyn FnMut(BenchRecord) -> Result<(), Error>,
) -> Result<(), Error> {
    if context.wants("swift", "typed") {
        out(typed(context)?)?;
    }
    if context.wants("swift", "to-tape") {
        to_tape(context)?.into_iter().try_for_each(out)?;
    }
    Ok(())
}

/// Makes sample messages MT103, MT202, MT541 and MT940 in turn.
fn messages(context: &BenchContext, full: u64) -> Vec<u8> {
    sample_messages(context.pick(400, full) as usize, 42)
}

fn typed(context: &BenchContext) -> Result<BenchRecord, Error> {
    // The slow twin is slow, so it checks only a part, once, message by message.
    let input = messages(context, 400_000);
    let mut fields = SwiftFieldTokenizer::new();
    let head = messages(context, 40_000);
    let (mut slow, mut fast) = (HexSha256::default(), HexSha256::default());
    let expected = slow_pass(&head, |_| true, |value| slow.add(&value.number.to_le_bytes()));
    let fast_result = fast_pass(&mut fields, &head, |_| true, |value| fast.add(&value.number.to_le_bytes()));
    let (slow, fast) = (slow.hex(), fast.hex());
    if (expected, &slow) != (fast_result, &fast) || !input.starts_with(&head) {
        return Err(Error::Failed(format!("swift typed: fast path {fast_result:?}, slow twin {expected:?}")));
    }
    let expected = fast_pass(&mut fields, &input, |_| true, |_| {});
    if expected.faults > 0 {
        return Err(Error::Failed(format!("swift typed: {expected:?}")));
    }
    let mut repeats = RepeatTimes::default();
    for _ in 0..context.repeats(5) {
        let repeat_result = repeats.time(|| fast_pass(&mut fields, &input, |_| true, |_| {}));
        if repeat_result != expected {
            return Err(Error::Failed(format!(
                "swift typed: {repeat_result:?} in a repeat, {expected:?} before"
            )));
        }
    }
    let method = format!(
        "MT103, MT202, MT541, MT940 in turn from memory: frame, all {} fields, all {} components as typed values; \
         the values of the first tenth hashed beforehand and equal to the slow twin's",
        expected.fields, expected.parts
    );
    let record = repeats.record("swift", "typed", expected.messages, input.len() as u64, method);
    Ok(BenchRecord { input_sha256: Some(sha256(&input)), output_sha256: Some(fast), ..record })
}

/// Measures the whole way: a file in the page cache becomes a tape in a new directory.
fn to_tape(context: &BenchContext) -> Result<Vec<BenchRecord>, Error> {
    let scratch_dir = context.fresh("swift-to-tape")?;
    let input = messages(context, 400_000);
    let count = context.pick(400, 400_000);
    let (file, input_sha256, input_bytes) =
        (scratch_dir.path().join("messages.rje"), sha256(&input), input.len());
    fs::write(&file, &input)?;
    drop(input);
    let mut repeats = [RepeatTimes::default(), RepeatTimes::default()];
    let mut expected = None;
    // The first round warms up: page cache, memory, name tables.
    for round in 0..=context.repeats(5) {
        for (workers, times) in [1, 2].into_iter().zip(&mut repeats) {
            let tape = scratch_dir.path().join("tape");
            let format = Format::from_names("swift", "swift-mt")?;
            let feed = FileFeed { name: "swift".to_owned(), format, files: vec![file.clone()] };
            let options = ConsolidateOptions { feeds: vec![feed], workers, ..ConsolidateOptions::default() };
            let mut throw_away = RepeatTimes::default();
            let times = if round == 0 { &mut throw_away } else { times };
            let outcome = times.time(|| consolidate(&tape, options))?;
            let s = &outcome.summary;
            if (s.messages, s.events, s.quarantined) != (count, count, 0) {
                let message =
                    format!("{} messages, {} events, {} refused", s.messages, s.events, s.quarantined);
                return Err(Error::Failed(format!("swift to-tape: {message}, not {count}, {count}, 0")));
            }
            let hash = tape_hash(&tape)?;
            if *expected.get_or_insert_with(|| hash.clone()) != hash {
                return Err(Error::Failed("swift to-tape: the tapes of two runs differ".to_owned()));
            }
            fs::remove_dir_all(&tape)?;
        }
    }
    let record = |(workers, times): (u32, &RepeatTimes)| {
        let method = format!(
            "file in the page cache to a closed tape in a fresh directory: frame, fields, components, map to payments \
             and statements by swift-mt, names to ids, order, write, checksums; {workers} workers, 1 and 2 in turn; \
             tape verified, its bytes equal at 1 and 2 workers"
        );
        let record = times.record("swift", "to-tape", count, input_bytes as u64, method);
        BenchRecord {
            threads: workers,
            backing: Some("file".to_owned()),
            place: Some(context.medium.clone()),
            input_sha256: Some(input_sha256.clone()),
            output_sha256: expected.clone(),
            ..record
        }
    };
    Ok([1, 2].into_iter().zip(&repeats).map(record).collect())
}
