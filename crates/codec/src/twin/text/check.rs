//! Properties that must hold for any bytes; tests and the fuzzers of all text share them.

use crate::text::{NextTextMessage, PathValues, Span, TextMessageDecoder, decode_json};

/// The result at a place: paths, values and entries with it.
type DecodeTrace = (NextTextMessage, Vec<(String, String)>, Vec<(String, u32, u32)>);

fn ask(decoder: &mut impl TextMessageDecoder, buf: &[u8], at: usize, eof: bool) -> DecodeTrace {
    let mut leaves = PathValues::default();
    let next = decoder.next(buf, at, eof, &mut leaves);
    if !matches!(next, NextTextMessage::Message(_)) {
        return (next, Vec::new(), Vec::new());
    }
    let values = leaves.iter().map(|(path, text)| (path.to_owned(), text.to_owned())).collect();
    let entries = leaves.entries().iter().map(|e| (leaves.path(e.path).to_owned(), e.from, e.to)).collect();
    (next, values, entries)
}

/// The spans of `input` in order, what is between them skipped by `between`, and no byte of it in none.
///
/// # Errors
/// The first place where that does not hold, in words.
pub fn accounted(
    decoder: &mut impl TextMessageDecoder,
    between: impl Fn(&[u8]) -> bool,
    input: &[u8],
) -> Result<Vec<Span>, String> {
    let (mut at, mut spans, mut leaves) = (0, Vec::new(), PathValues::default());
    loop {
        let span = match decoder.next(input, at, true, &mut leaves) {
            NextTextMessage::Message(message) => message.span,
            NextTextMessage::Bad { span, fault } => {
                if fault.at as usize > span.len() {
                    return Err(format!("at {at}: {fault:?} is not in {span:?}"));
                }
                span
            }
            NextTextMessage::Incomplete { .. } => return Err(format!("at {at}: incomplete at the end")),
            NextTextMessage::End if between(&input[at..]) => return Ok(spans),
            NextTextMessage::End => return Err(format!("at {at}: ended too soon")),
        };
        if span.is_empty() || span.start < at || span.end > input.len() || !between(&input[at..span.start]) {
            return Err(format!("at {at}: span {span:?}"));
        }
        spans.push(span);
        at = span.end;
    }
}

/// Checks that the decoder says the same of a part of `input`, not knowing that more follows, as of the whole; it
/// must not wait for more than `wait` bytes.
///
/// # Errors
/// The first difference, in words.
pub fn cuts(decoder: &mut impl TextMessageDecoder, wait: usize, input: &[u8]) -> Result<(), String> {
    let mut at = 0;
    loop {
        let whole = ask(decoder, input, at, true);
        for end in at..=input.len() {
            let cut = ask(decoder, &input[..end], at, false);
            match cut.0 {
                NextTextMessage::Incomplete { from, need } if from >= at && need > end => {
                    if end - from > wait {
                        return Err(format!("at {at}, cut {end}: waits without bound"));
                    }
                }
                _ if cut == whole => {}
                _ => return Err(format!("at {at}, cut {end}: {cut:?}, whole {whole:?}")),
            }
        }
        at = match whole.0 {
            NextTextMessage::Message(message) => message.span.end,
            NextTextMessage::Bad { span, .. } => span.end,
            NextTextMessage::Incomplete { .. } | NextTextMessage::End => return Ok(()),
        };
    }
}

/// Checks that `decode` prints a line of JSON for each span.
///
/// # Panics
/// When it is not.
pub fn printed(decoder: &mut impl TextMessageDecoder, input: &[u8], spans: usize) {
    let mut out = Vec::new();
    let summary = decode_json(&mut &input[..], "fuzz", decoder, &mut out).expect("memory reads and writes");
    assert_eq!(summary.messages + summary.errors, spans as u64, "one line a span");
    assert_eq!(summary.bytes, input.len() as u64, "all is read");
    let lines: Vec<_> = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    assert_eq!(lines.len(), spans);
    for line in lines {
        serde_json::from_slice::<serde_json::Value>(line).expect("a line is JSON");
    }
}
