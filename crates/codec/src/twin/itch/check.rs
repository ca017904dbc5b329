//! Checks of the tests and the fuzzer: the fast path finds the same as the slow twin, however the input comes.

use super::naive::{self, NaiveMessage};
use crate::itch::{ItchFramer, ItchMessage, ItchTransport, NextItchFrame};
use serde_json::Value;

/// Checks any bytes: the first two choose the framing and the size of the pieces, the rest is the input.
///
/// # Panics
/// Panics if the fast path and the twin differ.
pub fn any_bytes(data: &[u8]) {
    let [framing_choice, piece, input @ ..] = data else { return };
    let framing = [ItchTransport::Length, ItchTransport::Soup][usize::from(*framing_choice) % 2];
    let slow = naive::decode(framing, input);
    assert_eq!(fast(framing, input, usize::MAX / 2), slow);
    assert_eq!(fast(framing, input, usize::from(*piece) + 1), slow);
    let cut = ItchFramer::new(framing).cut(input);
    assert!(cut <= input.len());
    lines(framing, input, &slow);
}

/// Decodes an input by the fast path, given to it in pieces of `piece` bytes.
///
/// # Panics
/// Panics if the fast path asks for more than it needs, or for less than it has.
pub fn fast(framing: ItchTransport, input: &[u8], piece: usize) -> Vec<NaiveMessage> {
    let framer = ItchFramer::new(framing);
    let (mut out, mut start, mut end, mut offset) = (Vec::new(), 0, piece.min(input.len()), 0);
    loop {
        let buf = &input[start..end];
        let (span, outcome) = match framer.frame(buf, offset, end == input.len()) {
            NextItchFrame::Message(frame) => {
                let message = ItchMessage::of(frame.body(buf)).expect("of a known type and its length");
                let check_outcome = message.check().map(|()| (message.spec().letter, Vec::new()));
                (frame.span, Some(check_outcome.map_err(|fault| fault.code.as_str())))
            }
            NextItchFrame::Skipped(span) => (span, None),
            NextItchFrame::Bad { span, fault } => {
                assert!(!fault.to_string().is_empty());
                (span, Some(Err(fault.code.as_str())))
            }
            NextItchFrame::Incomplete { from, need } => {
                assert!(need > buf.len(), "more is asked for than is there");
                start += from;
                offset = 0;
                end = (start + need).max(end.saturating_add(piece)).min(input.len());
                continue;
            }
            NextItchFrame::End => return with_fields(framing, input, out),
        };
        assert!(!span.is_empty());
        out.push(NaiveMessage { offset: start + span.start, length: span.len(), outcome });
        offset = span.end;
    }
}

/// Fills in the fields, from the lines of JSON.
fn with_fields(framing: ItchTransport, input: &[u8], mut messages: Vec<NaiveMessage>) -> Vec<NaiveMessage> {
    let mut text = Vec::new();
    let summary = crate::itch::decode_json(&mut &input[..], "f", ItchFramer::new(framing), &mut text)
        .expect("a Vec takes all");
    assert_eq!(summary.bytes, input.len() as u64);
    let mut lines = text.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    for message in messages.iter_mut().filter(|f| f.outcome.is_some()) {
        let line: Value = serde_json::from_slice(lines.next().expect("a line for each")).expect("JSON");
        assert_eq!(line["offset"].as_u64(), Some(message.offset as u64));
        if let Some(Ok((letter, fields))) = &mut message.outcome {
            assert_eq!(line["type"].as_str().map(str::as_bytes), Some(&[*letter][..]));
            *fields =
                line["fields"].as_object().expect("fields").iter().map(|(n, v)| as_text(n, v)).collect();
            fields.sort();
        }
    }
    assert_eq!(lines.next(), None);
    messages
}

fn as_text(name: &str, value: &Value) -> (String, String) {
    (name.to_owned(), value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

/// Checks that the lines of faults have the twin's fault codes.
fn lines(framing: ItchTransport, input: &[u8], slow: &[NaiveMessage]) {
    let mut text = Vec::new();
    crate::itch::decode_json(&mut &input[..], "f", ItchFramer::new(framing), &mut text)
        .expect("a Vec takes all");
    let lines: Vec<Value> = text
        .split(|b| *b == b'\n')
        .filter(|l| !l.is_empty())
        .map(|l| serde_json::from_slice(l).expect("JSON"))
        .collect();
    let slow: Vec<_> = slow.iter().filter_map(|f| f.outcome.as_ref()).collect();
    assert_eq!(lines.len(), slow.len());
    for (line, outcome) in lines.iter().zip(slow) {
        assert_eq!(line["error"]["code"].as_str(), outcome.as_ref().err().copied());
    }
}
