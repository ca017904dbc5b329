//! `bench swift`: messages to typed components, and messages to the tape.

use super::Context;
use super::fix::tape_hash;
use super::record::{Hash, Record, Repeats, sha256};
use crate::output::Failure;
use std::fs;
use unitape_codec::swift_mt::parts::{Kind, Part, Parts, split_field};
use unitape_codec::swift_mt::sample::sample_messages;
use unitape_codec::swift_mt::{Fields, Frame, Framer, naive, naive_parts};
use unitape_feed::{Feed, Format, Options, consolidate};

/// Runs the cases.
pub fn run(context: &Context, out: &mut dyn FnMut(Record) -> Result<(), Failure>) -> Result<(), Failure> {
    if context.wants("swift", "typed") {
        out(typed(context)?)?;
    }
    if context.wants("swift", "to-tape") {
        to_tape(context)?.into_iter().try_for_each(out)?;
    }
    Ok(())
}

/// MT103, MT202, MT541 and MT940 in turn.
fn messages(context: &Context, full: u64) -> Vec<u8> {
    sample_messages(context.pick(400, full) as usize, 42)
}

/// What a pass over an input came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pass {
    messages: u64,
    faults: u64,
    fields: u64,
    parts: u64,
    /// Of all values, so that the timed loop cannot leave any of them out.
    sum: u64,
}

/// A component as a number: amounts by mantissa and exponent, days and times by their own, text by its length and
/// first byte.
#[inline]
fn number(part: &Part, value: &[u8]) -> u64 {
    match part.kind {
        Kind::Amount => (part.number as u64) << 6 | u64::from(part.exponent.unsigned_abs()),
        Kind::Date | Kind::ValueDate | Kind::DateLong | Kind::EntryDate | Kind::Time => part.number as u64,
        _ => words(part.of(value)),
    }
}

/// Text as a number.
#[inline]
fn words(text: &[u8]) -> u64 {
    text.len() as u64 ^ u64::from(text.first().copied().unwrap_or(0)) << 32
}

/// The same by the standard library.
fn slow_number(kind: Kind, value: &[u8], (start, end): (usize, usize)) -> Option<u64> {
    let text = value.get(start..end)?;
    let text_of = std::str::from_utf8(text).ok()?;
    let day = |year: i64, month: &str, day: &str| {
        let leap = |y: i64| y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
        let month_days = [31, 28 + i64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let years: i64 = (1970..year).map(|y| 365 + i64::from(leap(y))).sum();
        let months: i64 = month_days.get(..month.parse::<usize>().ok()?.checked_sub(1)?)?.iter().sum();
        Some(((years + months + day.parse::<i64>().ok()? - 1) * 86_400_000_000_000) as u64)
    };
    match kind {
        Kind::Amount => {
            let (whole, decimals) = text_of.split_once(',').unwrap_or((text_of, ""));
            let mantissa: u64 = format!("{whole}{decimals}").parse().ok()?;
            Some(mantissa << 6 | decimals.len() as u64)
        }
        Kind::Date | Kind::ValueDate => {
            day(2000 + text_of.get(..2)?.parse::<i64>().ok()?, text_of.get(2..4)?, text_of.get(4..)?)
        }
        // Of the same year as the value date before it, in these messages.
        Kind::EntryDate => {
            let year = std::str::from_utf8(value.get(..2)?).ok()?;
            day(2000 + year.parse::<i64>().ok()?, text_of.get(..2)?, text_of.get(2..)?)
        }
        Kind::DateLong => day(text_of.get(..4)?.parse().ok()?, text_of.get(4..6)?, text_of.get(6..)?),
        Kind::Time => {
            let pairs: Option<Vec<u64>> =
                (0..text.len()).step_by(2).map(|n| text_of.get(n..n + 2)?.parse().ok()).collect();
            Some(pairs?.iter().chain(&[0, 0, 0]).take(3).fold(0, |sum, pair| sum * 60 + pair))
        }
        _ => Some(words(text)),
    }
}

/// The product's way: every field of every message taken apart, every component a value.
fn fast_pass(fields: &mut Fields, input: &[u8], mut each: impl FnMut(u64)) -> Pass {
    let framer = Framer::default();
    let (mut pass, mut at, mut parts) = (Pass::default(), 0, Parts::default());
    loop {
        match fields.frame(&framer, input, at, true) {
            Frame::Message(message) => {
                let text = message.text().of(input);
                for token in fields.as_slice() {
                    let value = token.of(text);
                    pass.faults += u64::from(split_field(token, text, &mut parts).is_err());
                    for part in parts.as_slice() {
                        let number = number(part, value);
                        pass.parts += 1;
                        pass.sum = pass.sum.rotate_left(1).wrapping_add(number);
                        each(number);
                    }
                }
                pass.fields += fields.as_slice().len() as u64;
                pass.messages += 1;
                at = message.span.end;
            }
            Frame::Bad { span, .. } => {
                pass.faults += 1;
                at = span.end;
            }
            Frame::Incomplete { .. } | Frame::End => return pass,
        }
    }
}

/// The slow way: a byte at a time, the notation of the standard read as it stands.
fn slow_pass(input: &[u8], mut each: impl FnMut(u64)) -> Pass {
    let framer = Framer::default();
    let (mut pass, mut at) = (Pass::default(), 0);
    loop {
        let span = match naive::frame(&framer, input, at) {
            Frame::Message(message) => {
                let text = message.text().of(input);
                let tokens = naive::tokens(text);
                for token in &tokens {
                    let tag = String::from_utf8_lossy(token.name(text)).into_owned();
                    let value = token.of(text);
                    match naive_parts::split(&tag, value) {
                        None => {}
                        Some(Err(())) => pass.faults += 1,
                        Some(Ok(found)) => {
                            for (_, kind, start, end) in found {
                                match slow_number(kind, value, (start, end)) {
                                    Some(number) => {
                                        pass.parts += 1;
                                        pass.sum = pass.sum.rotate_left(1).wrapping_add(number);
                                        each(number);
                                    }
                                    None => pass.faults += 1,
                                }
                            }
                        }
                    }
                }
                pass.fields += tokens.len() as u64;
                pass.messages += 1;
                message.span
            }
            Frame::Bad { span, .. } => {
                pass.faults += 1;
                span
            }
            Frame::Incomplete { .. } | Frame::End => return pass,
        };
        at = span.end;
    }
}

fn typed(context: &Context) -> Result<Record, Failure> {
    // The slow twin takes its time: it says what is right of a part that is checked once, message by message alike.
    let input = messages(context, 400_000);
    let mut fields = Fields::new();
    let head = messages(context, 40_000);
    let (mut slow, mut fast) = (Hash::default(), Hash::default());
    let expected = slow_pass(&head, |number| slow.add(&number.to_le_bytes()));
    let found = fast_pass(&mut fields, &head, |number| fast.add(&number.to_le_bytes()));
    let (slow, fast) = (slow.hex(), fast.hex());
    if (expected, &slow) != (found, &fast) || !input.starts_with(&head) {
        return Err(Failure::Error(format!("swift typed: fast path {found:?}, slow twin {expected:?}")));
    }
    let expected = fast_pass(&mut fields, &input, |_| {});
    if expected.faults > 0 {
        return Err(Failure::Error(format!("swift typed: {expected:?}")));
    }
    let mut repeats = Repeats::default();
    for _ in 0..context.repeats(5) {
        let again = repeats.time(|| fast_pass(&mut fields, &input, |_| {}));
        if again != expected {
            return Err(Failure::Error(format!("swift typed: {again:?} in a repeat, {expected:?} before")));
        }
    }
    let method = format!(
        "MT103, MT202, MT541, MT940 in turn from memory: frame, all {} fields, all {} components as typed values; \
         the values of the first tenth hashed beforehand and equal to the slow twin's",
        expected.fields, expected.parts
    );
    let record = repeats.record("swift", "typed", expected.messages, input.len() as u64, method);
    Ok(Record { input_sha256: Some(sha256(&input)), output_sha256: Some(fast), ..record })
}

/// The whole way: a file in the page cache becomes a tape in a fresh directory.
fn to_tape(context: &Context) -> Result<Vec<Record>, Failure> {
    let place = context.fresh("swift-to-tape")?;
    let input = messages(context, 400_000);
    let count = context.pick(400, 400_000);
    let (file, input_sha256, input_bytes) = (place.path().join("messages.rje"), sha256(&input), input.len());
    fs::write(&file, &input)?;
    drop(input);
    let mut repeats = [Repeats::default(), Repeats::default()];
    let mut expected = None;
    // The first round warms up: page cache, memory, name tables.
    for round in 0..=context.repeats(5) {
        for (workers, times) in [1, 2].into_iter().zip(&mut repeats) {
            let tape = place.path().join("tape");
            let format = Format::named("swift", "swift-mt")?;
            let feed = Feed { name: "swift".to_owned(), format, files: vec![file.clone()] };
            let options = Options { feeds: vec![feed], workers, ..Options::default() };
            let mut throw_away = Repeats::default();
            let times = if round == 0 { &mut throw_away } else { times };
            let outcome = times.time(|| consolidate(&tape, options))?;
            let s = &outcome.summary;
            if (s.messages, s.events, s.quarantined) != (count, count, 0) {
                let what = format!("{} messages, {} events, {} refused", s.messages, s.events, s.quarantined);
                return Err(Failure::Error(format!("swift to-tape: {what}, not {count}, {count}, 0")));
            }
            let hash = tape_hash(&tape)?;
            if *expected.get_or_insert_with(|| hash.clone()) != hash {
                return Err(Failure::Error("swift to-tape: the tapes of two runs differ".to_owned()));
            }
            fs::remove_dir_all(&tape)?;
        }
    }
    let record = |(workers, times): (u32, &Repeats)| {
        let method = format!(
            "file in the page cache to a closed tape in a fresh directory: frame, fields, components, map to payments \
             and statements by swift-mt, names to ids, order, write, checksums; {workers} workers, 1 and 2 in turn; \
             tape verified, its bytes equal at 1 and 2 workers"
        );
        let record = times.record("swift", "to-tape", count, input_bytes as u64, method);
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
