//! `bench iso20022`: payments in XML to events.

use crate::context::BenchContext;
use crate::error::Error;
use crate::record::{BenchRecord, RepeatTimes, sha256};
use std::collections::BTreeMap;
use unitape_codec::events::{EmptySourceLookup, EventLineDetail, write_event};
use unitape_codec::twin::iso20022::naive;
use unitape_codec::twin::iso20022::sample::sample_messages;
use unitape_feed::block::{Block, MessageTally};
use unitape_feed::{DecodeOptions, Format};
use unitape_model::{Dictionary, Event};

/// Runs the case.
pub fn run(
    context: &BenchContext,
    out: &mut dyn FnMut(BenchRecord) -> Result<(), Error>,
) -> Result<(), Error> {
    if context.wants("iso20022", "pacs008") {
        out(pacs008(context)?)?;
    }
    Ok(())
}

/// Bytes of a block, as the farm has them.
const BLOCK_BYTES: usize = 256 << 10;

fn pacs008(context: &BenchContext) -> Result<BenchRecord, Error> {
    let wrong = |reason: String| Error::Failed(format!("iso20022 pacs008: {reason}"));
    let count = context.pick(400, 60_000);
    let input = sample_messages(count as usize, 42);
    let head = sample_messages(count as usize / 10, 42);
    let format = Format::from_names("iso20022", "iso20022")?;
    let mut decoder = format.decoder()?;
    let mut block = Block::default();
    let mut dictionary = Dictionary::default();
    // Names are known once they have been there, as to a worker that has run for a while.
    let mut names: Vec<(_, String)> = Vec::new();
    let mut pass = |dictionary: &Dictionary, input: &[u8], each: &mut dyn FnMut(&Block)| {
        let (mut offset, mut sum) = (0, Iso20022PassResult::default());
        while offset < input.len() {
            let end = input.len().min(offset + BLOCK_BYTES);
            let cut = if end < input.len() { format.cut_offset(&input[offset..end]) } else { end - offset };
            block.bytes.clear();
            block.bytes.extend_from_slice(&input[offset..offset + cut]);
            (block.base, block.eof) = (offset as u64, offset + cut == input.len());
            decoder.decode(&mut block, 1, dictionary, &DecodeOptions::default());
            sum.tally = sum.tally.plus(block.tally);
            let words = block.arena.as_chunks::<8>().0;
            sum.sum = words.iter().fold(sum.sum, |sum, w| sum.wrapping_add(u64::from_le_bytes(*w)));
            each(&block);
            offset += cut;
        }
        sum
    };
    pass(&dictionary, &input, &mut |block| {
        let name =
            |f: &unitape_feed::block::IdFixup| Some((f.dict, block.names.name(f.dict, f.id)?.to_owned()));
        names.extend(block.fixups.iter().filter_map(name));
    });
    for (dict, name) in names {
        dictionary.intern(dict, name.as_bytes()).map_err(|e| wrong(e.to_string()))?;
    }
    // The slow twin is slow, so it checks only a part, once.
    let mut fast = String::new();
    pass(&dictionary, &head, &mut |block| {
        for (_, _, frame) in unitape_model::frames(&block.arena) {
            let mut line = Vec::new();
            if let Some(event) = Event::new(frame) {
                write_event(&mut line, &event, 0, &dictionary, &EmptySourceLookup, EventLineDetail::Plain);
            }
            // In order of name, as the twin writes them.
            let fields: BTreeMap<String, serde_json::Value> =
                serde_json::from_slice(&line).unwrap_or_default();
            fast += &serde_json::to_string(&fields).unwrap_or_default();
            fast.push('\n');
        }
    });
    let slow = slow_lines(&head).map_err(wrong)?;
    if fast != slow {
        let differs = fast.lines().zip(slow.lines()).find(|(a, b)| a != b);
        return Err(wrong(format!("fast path and slow twin differ: {differs:?}")));
    }
    let expected = pass(&dictionary, &input, &mut |_| {});
    let t = expected.tally;
    if (t.messages, t.events, t.quarantined) != (count, count, 0) || !input.starts_with(&head) {
        return Err(wrong(format!("{t:?}, not {count} messages and events")));
    }
    let mut repeats = RepeatTimes::default();
    for _ in 0..context.repeats(5) {
        let repeat_result = repeats.time(|| pass(&dictionary, &input, &mut |_| {}));
        if repeat_result != expected {
            return Err(wrong(format!("{repeat_result:?} in a repeat, {expected:?} before")));
        }
    }
    let method = format!(
        "pacs.008.001.08 with header and wrapper, indented, {} bytes each, from memory in blocks of 256 KiB: frame, parse \
         and check all, map to payments by the shipped mapping into frames in the block's arena, account names known; \
         events of the first tenth beforehand equal to what the slow twin makes of another parser's reading",
        input.len() as u64 / count
    );
    let record = repeats.record("iso20022", "pacs008", count, input.len() as u64, method);
    Ok(BenchRecord {
        input_sha256: Some(sha256(&input)),
        output_sha256: Some(sha256(fast.as_bytes())),
        ..record
    })
}

/// The result of a pass over an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Iso20022PassResult {
    tally: MessageTally,
    /// A sum over all events, so that the compiler cannot remove any event.
    sum: u64,
}

/// Writes the events of the input, one on each line, by the slow path: another parser, paths as text and its own
/// arithmetic.
fn slow_lines(input: &[u8]) -> Result<String, String> {
    const TX: &str = "Document/FIToFICstmrCdtTrf/CdtTrfTxInf";
    let text = std::str::from_utf8(input).map_err(|e| e.to_string())?;
    let mut lines = String::new();
    for message in text.split("<?xml").skip(1) {
        let leaves = naive::leaves(format!("<?xml{message}").as_bytes())?;
        let get = |path: &str| {
            let leaf = leaves.iter().find(|(p, _)| p == path);
            leaf.map(|(_, value)| value.clone()).ok_or_else(|| format!("no {path}"))
        };
        let made = get("Document/FIToFICstmrCdtTrf/GrpHdr/CreDtTm")?;
        let amount = get(&format!("{TX}/IntrBkSttlmAmt"))?;
        let canonical = amount.trim_end_matches('0').trim_end_matches('.');
        let mut fields: BTreeMap<&str, serde_json::Value> = BTreeMap::new();
        fields.insert("seq", 0.into());
        fields.insert("ts", slow_time(&made).ok_or("no time")?.into());
        fields.insert("kind", "payment".into());
        fields.insert("msg", "pacs.008".into());
        fields.insert("stage", "interbank".into());
        fields.insert("amt", canonical.into());
        for (name, path) in [
            ("ref", "/PmtId/EndToEndId"),
            ("dr_acct", "/DbtrAcct/Id/IBAN"),
            ("cr_acct", "/CdtrAcct/Id/IBAN"),
            ("dr_name", "/Dbtr/Nm"),
            ("cr_name", "/Cdtr/Nm"),
            ("dr_bic", "/DbtrAgt/FinInstnId/BICFI"),
            ("cr_bic", "/CdtrAgt/FinInstnId/BICFI"),
            ("ccy", "/IntrBkSttlmAmt@Ccy"),
            ("instr_id", "/PmtId/InstrId"),
            ("instructed_amt", "/InstdAmt"),
            ("instructed_ccy", "/InstdAmt@Ccy"),
            ("charge_bearer", "/ChrgBr"),
            ("uetr", "/PmtId/UETR"),
            ("dr_country", "/Dbtr/PstlAdr/Ctry"),
            ("value_date", "/IntrBkSttlmDt"),
            ("info", "/RmtInf/Ustrd"),
        ] {
            fields.insert(name, get(&format!("{TX}{path}"))?.into());
        }
        fields.insert("msg_id", get("Document/FIToFICstmrCdtTrf/GrpHdr/MsgId")?.into());
        fields.insert("sender", get("AppHdr/Fr/FIId/FinInstnId/BICFI")?.into());
        fields.insert("receiver", get("AppHdr/To/FIId/FinInstnId/BICFI")?.into());
        lines += &serde_json::to_string(&fields).map_err(|e| e.to_string())?;
        lines.push('\n');
    }
    Ok(lines)
}

/// Converts `2026-03-02T09:00:00.123+01:00` to nanoseconds since 1970, day by day.
fn slow_time(text: &str) -> Option<i64> {
    let part = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    let leap = |y: i64| y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
    let month_days = [31, 28 + i64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let years: i64 = (1970..year).map(|y| 365 + i64::from(leap(y))).sum();
    let months: i64 = month_days.get(..usize::try_from(month - 1).ok()?)?.iter().sum();
    let seconds =
        (years + months + day - 1) * 86_400 + part(11, 13)? * 3600 + part(14, 16)? * 60 + part(17, 19)?;
    let east = part(24, 26)? * 3600 + part(27, 29)? * 60;
    Some((seconds - east) * 1_000_000_000 + part(20, 23)? * 1_000_000)
}
