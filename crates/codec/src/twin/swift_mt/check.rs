//! Properties that must hold for any bytes; tests and the fuzzer share them.

use super::{naive, naive_parts};
use crate::swift_mt::parts::{self, SubfieldFormat, SwiftComponent, SwiftComponents};
use crate::swift_mt::{
    NextSwiftFrame, SwiftField, SwiftFieldTokenizer, SwiftFramer, SwiftTag, ValueFault, decode_json, value,
};

fn between(byte: &u8) -> bool {
    matches!(byte, b'\r' | b'\n' | b' ' | b'\t' | b'$' | 1 | 3 | 0xef | 0xbb | 0xbf)
}

/// Checks that fast and slow path agree on every frame and field of `input`. Every byte must be in a frame or between
/// messages.
///
/// # Errors
/// Fails at the first difference and describes it.
pub fn agree(framer: &SwiftFramer, input: &[u8]) -> Result<(), String> {
    let (mut fields, mut portable) = (SwiftFieldTokenizer::new(), SwiftFieldTokenizer::portable());
    let mut offset = 0;
    loop {
        let fast = framer.frame(input, offset, true);
        let slow = naive::frame(framer, input, offset);
        if fast != slow {
            return Err(format!("at {offset}: fast {fast:?}, slow {slow:?}"));
        }
        // The pass over messages of the usual shape, on both kernels.
        let quick = fields.frame(framer, input, offset, true);
        let portable_frame = portable.frame(framer, input, offset, true);
        if quick != slow || portable_frame != slow || fields.as_slice() != portable.as_slice() {
            return Err(format!("at {offset}: with fields {quick:?} and {portable_frame:?}, slow {slow:?}"));
        }
        let span = match quick {
            NextSwiftFrame::Message(message) => {
                let text = message.text().slice(input);
                let slow = naive::tokens(text);
                if fields.as_slice() != slow {
                    return Err(format!("at {offset}: fields {:?}, slow {slow:?}", fields.as_slice()));
                }
                for token in fields.as_slice() {
                    agree_on_value(token.name(text), token.slice(text))?;
                    agree_in_place(token, text)?;
                }
                message.span
            }
            NextSwiftFrame::Bad { span, .. } => span,
            NextSwiftFrame::Incomplete { .. } => return Err(format!("at {offset}: incomplete at the end")),
            NextSwiftFrame::End => {
                let none_lost = input[offset..].iter().all(between);
                return if none_lost { Ok(()) } else { Err(format!("at {offset}: ended too soon")) };
            }
        };
        if span.end <= span.start || span.start < offset || span.end > input.len() {
            return Err(format!("at {offset}: span {span:?}"));
        }
        if !input[offset..span.start].iter().all(between) {
            return Err(format!("at {offset}: bytes lost before {span:?}"));
        }
        offset = span.end;
    }
}

/// Checks that splitting a field in place gives the same parts as splitting its value alone.
fn agree_in_place(token: &SwiftField, text: &[u8]) -> Result<(), String> {
    let (mut value_parts, mut field_parts) = (SwiftComponents::default(), SwiftComponents::default());
    let value = token.slice(text);
    let results =
        (parts::split(token.tag, value, &mut value_parts), parts::split_field(token, text, &mut field_parts));
    if results.0 == results.1 && value_parts.as_slice() == field_parts.as_slice() {
        return Ok(());
    }
    Err(format!(
        "{value:?} in place: {results:?}, {:?}, alone {:?}",
        field_parts.as_slice(),
        value_parts.as_slice()
    ))
}

/// Returns the number in a component, by the plain functions of [`value`].
fn number(part: &SwiftComponent, value: &[u8], before: Option<&SwiftComponent>) -> Option<(i64, i8)> {
    let text = part.slice(value);
    let midnight = |day: Option<value::CalendarDay>| day.map(|day| (day.nanos(), 0));
    match part.kind {
        SubfieldFormat::Amount => value::amount(text).map(|amount| (amount.mantissa, amount.exponent)),
        SubfieldFormat::Date => midnight(value::date(text)),
        SubfieldFormat::ValueDate => midnight(value::value_date(text)),
        SubfieldFormat::DateLong => midnight(value::date_long(text)),
        SubfieldFormat::EntryDate => {
            let day = value::entry_date(text, value::value_date(before?.slice(value))?);
            Some((day.map_or(i64::MIN, value::CalendarDay::nanos), 0))
        }
        SubfieldFormat::Time => value::time(text).map(|seconds| (seconds, 0)),
        _ => Some((0, 0)),
    }
}

/// Checks that fast and slow path split a value in the same way.
///
/// # Errors
/// Fails if the results differ, and describes the difference.
pub fn agree_on_value(tag: &[u8], value: &[u8]) -> Result<(), String> {
    let mut parts = SwiftComponents::default();
    let fast = parts::split(SwiftTag::new(tag), value, &mut parts);
    let slow = std::str::from_utf8(tag).ok().and_then(|tag| naive_parts::split(tag, value));
    let fast_parts: Vec<_> =
        parts.as_slice().iter().map(|p| (p.name, p.kind, p.start as usize, p.end as usize)).collect();
    let is_same = match (&fast, &slow) {
        (Ok(false), None) | (Err(ValueFault { .. }), Some(Err(()))) => fast_parts.is_empty(),
        (Ok(true), Some(Ok(slow))) => {
            slow.len() == fast_parts.len()
                && slow.iter().zip(&fast_parts).all(|(s, f)| (s.0.as_str(), s.1, s.2, s.3) == *f)
        }
        _ => false,
    };
    let numbers_agree = parts.as_slice().iter().enumerate().all(|(n, part)| {
        let before = n.checked_sub(1).map(|n| &parts.as_slice()[n]);
        number(part, value, before) == Some((part.number, part.exponent))
    });
    if is_same && numbers_agree {
        return Ok(());
    }
    let (tag, value) = (String::from_utf8_lossy(tag), String::from_utf8_lossy(value));
    Err(format!(":{tag}:{value:?}: fast {fast:?} {fast_parts:?}, slow {slow:?}"))
}

/// Checks that the fast path says the same of a part of `input`, not knowing that more follows, as of the whole. A
/// part as long as it asked for must bring it on.
///
/// # Errors
/// Fails at the first difference and describes it.
pub fn cuts(framer: &SwiftFramer, input: &[u8]) -> Result<(), String> {
    let mut fields = SwiftFieldTokenizer::new();
    let mut offset = 0;
    loop {
        let full_frame = framer.frame(input, offset, true);
        for end in offset..=input.len() {
            let (tokenized_frame, plain_frame) = (
                fields.frame(framer, &input[..end], offset, false),
                framer.frame(&input[..end], offset, false),
            );
            if tokenized_frame != plain_frame {
                return Err(format!(
                    "at {offset}, cut {end}: with fields {tokenized_frame:?}, without {plain_frame:?}"
                ));
            }
            match plain_frame {
                NextSwiftFrame::Incomplete { from, need } if from >= offset && need > end => {
                    if !input[offset..from].iter().all(between) {
                        return Err(format!("at {offset}, cut {end}: skipped to {from}"));
                    }
                    if end - from > framer.max_message() + 64 {
                        return Err(format!("at {offset}, cut {end}: waits without bound"));
                    }
                }
                frame if frame == full_frame => {}
                frame => return Err(format!("at {offset}, cut {end}: {frame:?}, whole {full_frame:?}")),
            }
        }
        offset = match full_frame {
            NextSwiftFrame::Message(message) => message.span.end,
            NextSwiftFrame::Bad { span, .. } => span.end,
            NextSwiftFrame::Incomplete { .. } | NextSwiftFrame::End => return Ok(()),
        };
    }
}

/// Runs the fuzzer's checks: the first byte picks the limit, the rest is the input.
///
/// # Panics
/// Panics if any property does not hold.
pub fn any_bytes(data: &[u8]) {
    let Some((&pick, input)) = data.split_first() else { return };
    let framer = SwiftFramer::default().with_max_message(if pick & 1 != 0 { 80 } else { 1 << 20 });
    if let Err(difference) = agree(&framer, input) {
        panic!("{difference}");
    }
    // Trying every cut of the rest costs the square of its length; long inputs would show no more.
    if input.len() <= 250
        && let Err(difference) = cuts(&framer, input)
    {
        panic!("{difference}");
    }
    assert!(framer.cut(input) <= input.len());
    let mut out = Vec::new();
    let summary = decode_json(&mut &input[..], "fuzz", &framer, &mut out).expect("memory reads and writes");
    let lines = out.iter().filter(|&&byte| byte == b'\n').count() as u64;
    assert_eq!(lines, summary.messages + summary.errors, "one line an object");
    for line in out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        serde_json::from_slice::<serde_json::Value>(line).expect("a line is JSON");
    }
    assert_eq!(summary.bytes, input.len() as u64, "all is read");
}
