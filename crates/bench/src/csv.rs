//! `bench csv`: rows to typed values, and to events.

use crate::context::BenchContext;
use crate::error::Error;
use crate::record::{BenchRecord, HexSha256, RepeatTimes, sha256};
use std::sync::Arc;
use unitape_codec::csv::{CsvLayout, CsvRowDecoder, CsvRowKind, NextCsvRow};
use unitape_codec::fixed::ColumnValue;
use unitape_codec::twin::csv::naive;
use unitape_feed::{BLOCK_BYTES, Format, Mapping, SourceDecoder};

/// A header, 60 trades and a trailer, in the columns of NYSE's Daily TAQ.
static FILE: &[u8] = include_bytes!("../../../vectors/csv/EQY_US_ALL_TRADE_20161024.txt");
const NAME: &str = "EQY_US_ALL_TRADE_20161024.txt";
const LAYOUT: &str = "nyse-taq-trades";

/// Runs the cases.
pub fn run(
    context: &BenchContext,
    out: &mut dyn FnMut(BenchRecord) -> Result<(), Error>,
) -> Result<(), Error> {
    let repeats = context.pick(100, 15_000) as usize;
    if context.wants("csv", "taq") {
        out(typed(context, repeats)?)?;
    }
    if context.wants("csv", "taq-events") {
        out(to_events(context, repeats)?)?;
    }
    Ok(())
}

/// Repeats the file's trades under a trailer that counts them.
fn input(repeats: usize) -> (Vec<u8>, u64) {
    let lines: Vec<&[u8]> = FILE.split_inclusive(|b| *b == b'\n').collect();
    let trades = lines.get(1..lines.len() - 1).unwrap_or_default();
    let mut input = lines.first().copied().unwrap_or_default().to_vec();
    (0..repeats).for_each(|_| trades.iter().for_each(|t| input.extend_from_slice(t)));
    let count = repeats * trades.len();
    input.extend_from_slice(format!("END|20161024|{count}\n").as_bytes());
    (input, count as u64)
}

fn typed(context: &BenchContext, repeats: usize) -> Result<BenchRecord, Error> {
    let fail = |reason: String| Error::Failed(format!("csv taq: {reason}"));
    let text = CsvLayout::built_in(LAYOUT).ok_or_else(|| fail(format!("no layout {LAYOUT}")))?;
    let layout = Arc::new(CsvLayout::parse(text, LAYOUT)?);
    let mut decoder = CsvRowDecoder::new(layout.clone());
    decoder.set_name(NAME);
    let mut hash = HexSha256::default();
    let fast = unitape_codec::twin::csv::check::fast(decoder.clone(), NAME, FILE, usize::MAX / 2);
    if fast != naive::decode(&layout, NAME, FILE) {
        return Err(fail("the twin has other values".to_owned()));
    }
    fast.iter().for_each(|decoded_row| hash.add(format!("{decoded_row:?}").as_bytes()));
    let (input, count) = input(repeats);
    let expected = pass(&mut decoder, &input);
    if expected.0 != count {
        return Err(fail(format!("{} rows, not {count}", expected.0)));
    }
    let mut times = RepeatTimes::default();
    for _ in 0..context.repeats(5) {
        if times.time(|| pass(&mut decoder, &input)) != expected {
            return Err(fail("a repeat gave other values".to_owned()));
        }
    }
    let method = "frame and read all 15 columns of each row from memory: times as UTC nanoseconds, whole numbers, \
        exact decimals, text checked for UTF-8; values of the file hashed beforehand and equal to the slow twin's"
        .to_owned();
    let record = times.record("csv", "taq", count, input.len() as u64, method);
    Ok(BenchRecord { input_sha256: Some(sha256(&input)), output_sha256: Some(hash.hex()), ..record })
}

/// Decodes the rows and sums their values, so that the compiler cannot remove any value. Returns the number of rows and
/// the sum.
fn pass(decoder: &mut CsvRowDecoder, input: &[u8]) -> (u64, u64) {
    decoder.begin_file();
    let (mut rows, mut sum, mut offset) = (0, 0u64, 0);
    loop {
        match decoder.next(input, offset, 0, true) {
            NextCsvRow::Message(row) if row.content == Ok(CsvRowKind::Row) => {
                rows += 1;
                let add_value = |sum: u64, value: &ColumnValue| match *value {
                    ColumnValue::Text { start, end } => sum.wrapping_add(u64::from(end - start)),
                    ColumnValue::Int(n)
                    | ColumnValue::Instant(n)
                    | ColumnValue::Decimal { mantissa: n, .. } => sum.wrapping_add(n as u64),
                    _ => sum,
                };
                sum = decoder.values().iter().fold(sum, add_value);
                offset = row.end;
            }
            NextCsvRow::Message(row) => offset = row.end,
            NextCsvRow::Incomplete { .. } | NextCsvRow::End => return (rows, sum),
        }
    }
}

/// Rows in memory to finished frames in the arena of their block, by one worker.
fn to_events(context: &BenchContext, repeats: usize) -> Result<BenchRecord, Error> {
    let (input, count) = input(repeats);
    let mut worker = SourceDecoder::new(Format::from_mapping(Mapping::load(LAYOUT)?)?)?;
    NAME.clone_into(&mut worker.name);
    let mut blocks = worker.blocks(&input, BLOCK_BYTES);
    worker.pass(&mut blocks, true, |_| {});
    let mut hash = HexSha256::default();
    worker.pass(&mut blocks, false, |arena| hash.add(arena));
    let mut times = RepeatTimes::default();
    for _ in 0..context.repeats(5) {
        let tally = times.time(|| worker.pass(&mut blocks, false, |_| {}));
        if (tally.events, tally.quarantined, tally.ignored) != (count, 0, 2) {
            return Err(Error::Failed(format!("csv taq-events: {tally:?}")));
        }
    }
    let method =
        "rows in memory, in blocks of 256 KiB, to finished trade frames in the block's arena that keep all \
        columns, names known"
            .to_owned();
    let record = times.record("csv", "taq-events", count, input.len() as u64, method);
    Ok(BenchRecord { input_sha256: Some(sha256(&input)), output_sha256: Some(hash.hex()), ..record })
}
