//! Properties that must hold for any bytes; tests and the fuzzers of all text share them.

use crate::text::{NextTextMessage, PathValues, Span, TextMessageDecoder, decode_json};

/// The result at a place: paths, values and entries with it.
type DecodeTrace = (NextTextMessage, Vec<(String, String)>, Vec<(String, u32, u32)>);

fn ask(decoder: &mut impl TextMessageDecoder, buf: &[u8], offset: usize, eof: bool) -> DecodeTrace {
    let mut leaves = PathValues::default();
    let next = decoder.next(buf, offset, eof, &mut leaves);
    if !matches!(next, NextTextMessage::Message(_)) {
        return (next, Vec::new(), Vec::new());
    }
    let values = leaves.iter().map(|(path, text)| (path.to_owned(), text.to_owned())).collect();
    let entries = leaves
        .entries()
        .iter()
        .map(|e| (leaves.path(e.path).to_owned(), e.first_value, e.value_end))
        .collect();
    (next, values, entries)
}

/// Decodes `input` and returns its spans in order. Checks that `between` accepts all bytes between the spans, so that
/// every byte is accounted for.
///
/// # Errors
/// Fails at the first byte that is not accounted for, and describes it.
pub fn accounted(
    decoder: &mut impl TextMessageDecoder,
    between: impl Fn(&[u8]) -> bool,
    input: &[u8],
) -> Result<Vec<Span>, String> {
    let (mut offset, mut spans, mut leaves) = (0, Vec::new(), PathValues::default());
    loop {
        let span = match decoder.next(input, offset, true, &mut leaves) {
            NextTextMessage::Message(message) => message.span,
            NextTextMessage::Bad { span, fault } => {
                if fault.offset as usize > span.len() {
                    return Err(format!("at {offset}: {fault:?} is not in {span:?}"));
                }
                span
            }
            NextTextMessage::Incomplete { .. } => return Err(format!("at {offset}: incomplete at the end")),
            NextTextMessage::End if between(&input[offset..]) => return Ok(spans),
            NextTextMessage::End => return Err(format!("at {offset}: ended too soon")),
        };
        if span.is_empty()
            || span.start < offset
            || span.end > input.len()
            || !between(&input[offset..span.start])
        {
            return Err(format!("at {offset}: span {span:?}"));
        }
        spans.push(span);
        offset = span.end;
    }
}

/// Checks that the decoder says the same of a part of `input`, not knowing that more follows, as of the whole; it
/// must not wait for more than `wait` bytes.
///
/// # Errors
/// Fails at the first difference and describes it.
pub fn cuts(decoder: &mut impl TextMessageDecoder, wait: usize, input: &[u8]) -> Result<(), String> {
    let mut offset = 0;
    loop {
        let full_trace = ask(decoder, input, offset, true);
        for end in offset..=input.len() {
            let cut = ask(decoder, &input[..end], offset, false);
            match cut.0 {
                NextTextMessage::Incomplete { from, need } if from >= offset && need > end => {
                    if end - from > wait {
                        return Err(format!("at {offset}, cut {end}: waits without bound"));
                    }
                }
                _ if cut == full_trace => {}
                _ => return Err(format!("at {offset}, cut {end}: {cut:?}, whole {full_trace:?}")),
            }
        }
        offset = match full_trace.0 {
            NextTextMessage::Message(message) => message.span.end,
            NextTextMessage::Bad { span, .. } => span.end,
            NextTextMessage::Incomplete { .. } | NextTextMessage::End => return Ok(()),
        };
    }
}

/// Checks that `decode` prints a line of JSON for each span.
///
/// # Panics
/// Panics if it is not.
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
