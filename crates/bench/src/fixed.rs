//! `bench fixed`: records to typed values, to events, and quotes to the tape.

use crate::context::BenchContext;
use crate::error::Error;
use crate::fix::tape_hash;
use crate::record::{BenchRecord, HexSha256, RepeatTimes, sha256};
use std::fs;
use std::sync::Arc;
use unitape_base::FramedLine;
use unitape_codec::fixed::{ColumnValue, FixedWidthDecoder, FixedWidthLayout, NextRecord};
use unitape_codec::twin::fixed::naive;
use unitape_feed::mapping::UnlistedFields;
use unitape_feed::{BLOCK_BYTES, ConsolidateOptions, FileFeed, Format, Mapping, SourceDecoder, consolidate};

/// The real file: a header and 9,994 quotes.
static FILE: &[u8] = include_bytes!("../../../vectors/fixed/taq/nyse_taq_bbo_20140206.txt");
const RECORD: usize = 98;
const LAYOUT: &str = "nyse-taq-bbo-98";

/// Runs the cases.
pub fn run(
    context: &BenchContext,
    out: &mut dyn FnMut(BenchRecord) -> Result<(), Error>,
) -> Result<(), Error> {
    let repeats = context.pick(1, 101) as usize;
    if context.wants("fixed", "taq") {
        out(typed(context, repeats)?)?;
    }
    if context.wants("fixed", "taq-events") {
        to_events(context, repeats)?.into_iter().try_for_each(&mut *out)?;
    }
    if context.wants("fixed", "taq-to-tape") {
        to_tape(context, repeats)?.into_iter().try_for_each(out)?;
    }
    Ok(())
}

/// Repeats the file's quotes under a header that counts them.
fn input(repeats: usize) -> Vec<u8> {
    let quotes = &FILE[RECORD..];
    let mut input = FILE[..RECORD].to_vec();
    input[25..33].copy_from_slice(format!("{:8}", repeats * quotes.len() / RECORD).as_bytes());
    (0..repeats).for_each(|_| input.extend_from_slice(quotes));
    input
}

fn layout() -> Result<Arc<FixedWidthLayout>, Error> {
    let text =
        FixedWidthLayout::built_in(LAYOUT).ok_or_else(|| Error::Failed(format!("no layout {LAYOUT}")))?;
    Ok(Arc::new(FixedWidthLayout::parse(text, LAYOUT)?))
}

fn typed(context: &BenchContext, repeats: usize) -> Result<BenchRecord, Error> {
    let mut decoder = FixedWidthDecoder::new(layout()?);
    let output_sha256 = equal_to_the_twin(&mut decoder)?;
    let once = pass(&mut decoder, &FILE[..RECORD]);
    let file = pass(&mut decoder, FILE);
    let input = input(repeats);
    let expected = FixedPassResult {
        records: once.records + (file.records - once.records) * repeats as u64,
        faults: 0,
        // The header's number of records is another one.
        sum: pass(&mut decoder, &input[..RECORD])
            .sum
            .wrapping_add(file.sum.wrapping_sub(once.sum).wrapping_mul(repeats as u64)),
    };
    let mut times = RepeatTimes::default();
    for _ in 0..context.repeats(5) {
        let repeat_result = times.time(|| pass(&mut decoder, &input));
        if repeat_result != expected {
            return Err(Error::Failed(format!(
                "fixed taq: {repeat_result:?} in a repeat, {expected:?} expected"
            )));
        }
    }
    let method = "frame and read all 25 columns of each 98-byte record from memory: 3 numbers and 2 prices, the \
        time as UTC nanoseconds, text trimmed; values of the file hashed beforehand and equal to the slow twin's"
        .to_owned();
    let record = times.record("fixed", "taq", expected.records, input.len() as u64, method);
    Ok(BenchRecord { input_sha256: Some(sha256(&input)), output_sha256: Some(output_sha256), ..record })
}

/// The result of a pass over an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FixedPassResult {
    records: u64,
    faults: u64,
    /// A sum over all values, so that the compiler cannot remove any value.
    sum: u64,
}

fn pass(decoder: &mut FixedWidthDecoder, input: &[u8]) -> FixedPassResult {
    let (mut pass, mut offset) = (FixedPassResult::default(), 0);
    loop {
        match decoder.next(input, offset, 0, true) {
            NextRecord::Message(record) if record.content.is_ok() => {
                pass.records += 1;
                let value_sum = decoder.values().iter().fold(0u64, |sum, v| sum.wrapping_add(number(*v)));
                // Places of text count from its record; the first byte tells the records apart.
                pass.sum = pass.sum.wrapping_add(value_sum ^ u64::from(input[record.span.start]));
                offset = record.end;
            }
            NextRecord::Message(record) => {
                pass.faults += 1;
                offset = record.end;
            }
            NextRecord::Incomplete { .. } | NextRecord::End => return pass,
        }
    }
}

#[inline]
fn number(value: ColumnValue) -> u64 {
    match value {
        ColumnValue::None => 1,
        ColumnValue::Text { start, end } => u64::from(start) << 32 | u64::from(end),
        ColumnValue::Int(n) | ColumnValue::Time(n) | ColumnValue::Instant(n) => n as u64,
        ColumnValue::Decimal { mantissa, .. } => mantissa as u64,
        ColumnValue::Date(days) => days as u64,
        ColumnValue::Flag(yes) => u64::from(yes),
    }
}

/// Hashes the values of the file as text. Fails if the twin has other values.
fn equal_to_the_twin(decoder: &mut FixedWidthDecoder) -> Result<String, Error> {
    let layout = decoder.layout().clone();
    let (mut hash, mut offset, mut text) = (HexSha256::default(), 0, Vec::new());
    for slow in naive::decode(&layout, FILE) {
        let NextRecord::Message(FramedLine { span, end, content: Ok(kind) }) =
            decoder.next(FILE, offset, 0, true)
        else {
            return Err(Error::Failed(format!(
                "fixed taq: no record at byte {offset}, where the twin has one"
            )));
        };
        let record = &layout.records()[usize::from(kind)];
        let mut fields = Vec::new();
        for (column, value) in record.columns().iter().zip(decoder.values()) {
            if *value != ColumnValue::None && column.is_output() {
                text.clear();
                value.write(span.slice(FILE), column.collapses_blanks(), &mut text);
                hash.add(&text);
                fields.push((column.name().to_owned(), text.clone()));
            }
        }
        if slow.outcome != Ok((record.name().to_owned(), fields)) {
            return Err(Error::Failed(format!("fixed taq: at byte {offset} the twin has {slow:?}")));
        }
        offset = end;
    }
    Ok(hash.hex())
}

/// Records in memory to finished frames in the arena of their block, by one worker; then the same with a mapping that
/// keeps nothing beside prices and sizes, and by the general path.
fn to_events(context: &BenchContext, repeats: usize) -> Result<Vec<BenchRecord>, Error> {
    let input = input(repeats);
    let count = (input.len() / RECORD) as u64;
    let shipped = Mapping::load(LAYOUT)?;
    let mut lean = shipped.clone();
    lean.message.unlisted = UnlistedFields::Drop;
    for event in lean.rule.iter_mut().flat_map(|rule| &mut rule.event) {
        event.keep.clear();
        // It is in the extension: with it, a frame has two lines.
        event.fields.remove("cond");
    }
    let mut records = Vec::new();
    for (condition, mapping) in [("all columns kept", shipped), ("prices and sizes", lean)] {
        let format = Format::from_mapping(mapping)?;
        let mut expected = None;
        for (path_name, mut worker) in [
            ("general", SourceDecoder::with_general_path(format.clone())?),
            ("batches", SourceDecoder::new(format)?),
        ] {
            let mut input_blocks = worker.blocks(&input, BLOCK_BYTES);
            // The first pass warms up and learns the names, the second is hashed.
            worker.pass(&mut input_blocks, true, |_| {});
            let (mut hash, mut bytes) = (HexSha256::default(), 0);
            worker.pass(&mut input_blocks, false, |arena| hash.add(arena));
            let hash = hash.hex();
            if *expected.get_or_insert_with(|| hash.clone()) != hash {
                return Err(Error::Failed("fixed taq-events: batches give other frames".to_owned()));
            }
            let mut times = RepeatTimes::default();
            for _ in 0..context.repeats(5) {
                bytes = 0;
                let tally =
                    times.time(|| worker.pass(&mut input_blocks, false, |arena| bytes += arena.len()));
                if (tally.messages, tally.events, tally.quarantined) != (count, count - 1, 0) {
                    return Err(Error::Failed(format!("fixed taq-events: {tally:?}")));
                }
            }
            let method = format!(
                "records in memory, in blocks of 256 KiB, to finished bbo frames of {} bytes (mean) in the block's \
                 arena, names known, {condition}; {path_name}; frames equal to the general way's",
                bytes as u64 / count
            );
            let record = times.record("fixed", "taq-events", count, input.len() as u64, method);
            records.push(BenchRecord {
                condition: Some(format!("{condition}, {path_name}")),
                input_sha256: Some(sha256(&input)),
                output_sha256: Some(hash),
                ..record
            });
        }
    }
    Ok(records)
}

/// Measures the whole way: a file in the page cache becomes a tape in a new directory.
fn to_tape(context: &BenchContext, repeats: usize) -> Result<Vec<BenchRecord>, Error> {
    let scratch_dir = context.fresh("taq-to-tape")?;
    let input = input(repeats);
    let count = (input.len() / RECORD) as u64;
    let (file, input_sha256, input_bytes) = (scratch_dir.path().join("taq.txt"), sha256(&input), input.len());
    fs::write(&file, &input)?;
    drop(input);
    let mut times = [RepeatTimes::default(), RepeatTimes::default()];
    let mut expected = None;
    // The first round warms up: page cache, memory, name tables.
    for round in 0..=context.repeats(5) {
        for (workers, times) in [1, 2].into_iter().zip(&mut times) {
            let tape = scratch_dir.path().join("tape");
            let mapping = Mapping::load(LAYOUT)?;
            let feed = FileFeed {
                name: "taq".to_owned(),
                format: Format::from_mapping(mapping)?,
                files: vec![file.clone()],
            };
            let options = ConsolidateOptions { feeds: vec![feed], workers, ..ConsolidateOptions::default() };
            let mut throw_away = RepeatTimes::default();
            let times = if round == 0 { &mut throw_away } else { times };
            let outcome = times.time(|| consolidate(&tape, options))?;
            let s = &outcome.summary;
            if (s.messages, s.events, s.quarantined) != (count, count - 1, 0) {
                let message =
                    format!("{} messages, {} events, {} refused", s.messages, s.events, s.quarantined);
                return Err(Error::Failed(format!("fixed taq-to-tape: {message}, not {count} and one less")));
            }
            let hash = tape_hash(&tape)?;
            if *expected.get_or_insert_with(|| hash.clone()) != hash {
                return Err(Error::Failed("fixed taq-to-tape: the tapes of two runs differ".to_owned()));
            }
            fs::remove_dir_all(&tape)?;
        }
    }
    let record = |(workers, times): (u32, &RepeatTimes)| {
        let method = format!(
            "file in the page cache to a closed tape in a fresh directory: records to bbo events that keep all \
             columns, names to ids, order, write, checksums; {workers} workers, 1 and 2 in turn; tape verified, \
             its bytes equal at 1 and 2 workers"
        );
        let record = times.record("fixed", "taq-to-tape", count, input_bytes as u64, method);
        BenchRecord {
            threads: workers,
            backing: Some("file".to_owned()),
            place: Some(context.medium.clone()),
            input_sha256: Some(input_sha256.clone()),
            output_sha256: expected.clone(),
            ..record
        }
    };
    Ok([1, 2].into_iter().zip(&times).map(record).collect())
}
