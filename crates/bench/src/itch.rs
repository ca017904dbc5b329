//! `bench itch`: messages to events in final form, each by itself and with the orders kept.

use crate::context::BenchContext;
use crate::error::Error;
use crate::record::{BenchRecord, HexSha256, RepeatTimes, sha256};
use unitape_codec::twin::itch::sample::{SampleConfig, sample_messages};
use unitape_feed::{BLOCK_BYTES, Format, Mapping, SourceDecoder};

/// Runs the cases.
pub fn run(
    context: &BenchContext,
    out: &mut dyn FnMut(BenchRecord) -> Result<(), Error>,
) -> Result<(), Error> {
    let messages = context.pick(20_000, 4_000_000) as usize;
    if context.wants("itch", "events") {
        let sample = SampleConfig { messages, live: messages / 10, ..SampleConfig::default() };
        let stated = "each by itself";
        case(context, ("events", "nasdaq-itch50-stateless", stated), sample)?
            .into_iter()
            .try_for_each(&mut *out)?;
    }
    if context.wants("itch", "with-orders") {
        for live in [messages / 100, messages / 4] {
            let sample = SampleConfig { messages, live, ..SampleConfig::default() };
            let stated = format!("up to {live} orders live");
            case(context, ("with-orders", "nasdaq-itch50", &stated), sample)?
                .into_iter()
                .try_for_each(&mut *out)?;
        }
    }
    Ok(())
}

/// Measures the fast path and compares it with the path that decodes field by field.
fn case(
    context: &BenchContext,
    (case, mapping, condition): (&str, &str, &str),
    sample: SampleConfig,
) -> Result<Vec<BenchRecord>, Error> {
    let input = sample_messages(sample);
    let text = Mapping::load(mapping)?.text.replace("[itch]\n", "[itch]\nsession_date = \"2026-03-02\"\n");
    let format = Format::from_mapping(Mapping::parse(&text, mapping)?)?;
    let (mut records, mut expected) = (Vec::new(), None);
    for (path_name, mut worker) in [
        ("field by field", SourceDecoder::with_general_path(format.clone())?),
        ("images", SourceDecoder::new(format)?),
    ] {
        let mut blocks = worker.blocks(&input, BLOCK_BYTES);
        // The first pass learns the names, the second is hashed.
        worker.pass(&mut blocks, true, |_| {});
        let (mut hash, mut bytes) = (HexSha256::default(), 0);
        let tally = worker.pass(&mut blocks, false, |arena| {
            hash.add(arena);
            bytes += arena.len() as u64;
        });
        let hash = hash.hex();
        if *expected.get_or_insert_with(|| hash.clone()) != hash {
            return Err(Error::Failed(format!("itch {case}: images give other frames than fields")));
        }
        if tally.quarantined + tally.ignored > 0 || tally.messages < sample.messages as u64 {
            return Err(Error::Failed(format!("itch {case}: {tally:?}")));
        }
        let mut times = RepeatTimes::default();
        for _ in 0..context.repeats(7) {
            let mut written = 0;
            let repeat_tally =
                times.time(|| worker.pass(&mut blocks, false, |arena| written += arena.len() as u64));
            if (repeat_tally, written) != (tally, bytes) {
                return Err(Error::Failed(format!(
                    "itch {case}: {repeat_tally:?} in a repeat, {tally:?} expected"
                )));
            }
        }
        let (count, read) = (tally.messages, input.len() as u64);
        let tenths = |n: u64| format!("{}.{}", n / count, n * 10 / count % 10);
        let method = format!(
            "messages in memory ({} bytes each), in blocks of {} KiB, to finished frames ({} bytes each message) in the \
             block's arena, names known, {condition}; {path_name}; frames of both ways equal",
            tenths(read),
            BLOCK_BYTES >> 10,
            tenths(bytes),
        );
        let record = times.record("itch", case, count, read, method);
        records.push(BenchRecord {
            condition: Some(format!("{condition}, {path_name}")),
            input_sha256: Some(sha256(&input)),
            output_sha256: Some(hash),
            ..record
        });
    }
    Ok(records)
}
