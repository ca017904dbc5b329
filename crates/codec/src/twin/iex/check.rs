//! Checks of the tests and the fuzzer: the fast path finds the same as the slow twin, however the input comes.

use super::naive::{self, NaiveFields, NaiveMessage};
use super::sample;
use crate::iex::{IexFramer, decode_json};
use serde_json::Value;
use std::io::Read;
use unitape_base::capture::is_capture;

/// Checks any bytes, bare and as datagrams of a capture: the first byte chooses the size of the pieces, the rest is
/// the input.
///
/// # Panics
/// Panics if the fast path and the twin differ.
pub fn any_bytes(data: &[u8]) {
    let [piece, input @ ..] = data else { return };
    // A bare input that begins like a capture is read as one, which the twin cannot.
    if !is_capture(input) {
        let expected = naive::decode(input);
        assert_eq!(fast(input, usize::MAX), expected);
        assert_eq!(fast(input, usize::from(*piece) + 1), expected);
    }
    assert!(IexFramer.cut(input) <= input.len());
    let payloads: Vec<&[u8]> = input.chunks(usize::from(*piece) + 40).collect();
    let actual = fast(&sample::capture(&payloads), usize::MAX);
    let expected: Vec<NaiveMessage> = payloads.iter().flat_map(|payload| naive::decode(payload)).collect();
    let without_offset = |messages: &[NaiveMessage]| {
        messages.iter().map(|m| (m.length, m.outcome.clone())).collect::<Vec<_>>()
    };
    assert_eq!(without_offset(&actual), without_offset(&expected));
}

/// Decodes an input to lines of JSON by the fast path, in pieces of `piece` bytes, and parses the lines.
///
/// # Panics
/// Panics if a line is no JSON or breaks the schema.
pub fn fast(input: &[u8], piece: usize) -> Vec<NaiveMessage> {
    let mut text = Vec::new();
    let mut pieces = Pieces { input, piece };
    let summary = decode_json(&mut pieces, "f", &mut text).expect("a Vec takes all");
    assert_eq!(summary.bytes, input.len() as u64);
    let lines: Vec<Value> = text
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len() as u64, summary.messages + summary.errors);
    lines.iter().enumerate().map(|(n, line)| message(n, line)).collect()
}

fn message(n: usize, line: &Value) -> NaiveMessage {
    assert_eq!(line["n"].as_u64(), Some(n as u64));
    let offset = line["offset"].as_u64().expect("an offset") as usize;
    if let Some(error) = line.get("error") {
        assert!(!error["message"].as_str().expect("a sentence").is_empty());
        let code = CODES.iter().find(|code| error["code"] == **code).expect("a code");
        let length = line["length"].as_u64().expect("a length") as usize;
        return NaiveMessage { offset, length, outcome: Err(code) };
    }
    let letter = line["type"].as_str().expect("a letter").as_bytes()[0];
    let extra = line.get("extra").map_or(0, |extra| extra.as_u64().expect("a number")) as usize;
    let as_text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut fields: Vec<(String, String)> = line["fields"]
        .as_object()
        .expect("fields")
        .iter()
        .map(|(name, value)| (name.clone(), as_text(value)))
        .collect();
    fields.sort();
    let spec = crate::iex::specs().iter().find(|spec| spec.letter == letter).expect("a type");
    let sequence = line["sequence"].as_u64().expect("a number");
    let outcome = Ok(NaiveFields { letter, sequence, fields, extra });
    NaiveMessage { offset, length: 2 + spec.bytes + extra, outcome }
}

const CODES: [&str; 10] = [
    "bad_length",
    "unknown_type",
    "unknown_protocol",
    "garbage",
    "truncated",
    "bad_side",
    "bad_symbol",
    "bad_text",
    "bad_time",
    "bad_capture",
];

/// An input that gives this many bytes at a time.
struct Pieces<'b> {
    input: &'b [u8],
    piece: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let length = self.piece.min(out.len()).min(self.input.len());
        out[..length].copy_from_slice(&self.input[..length]);
        self.input = &self.input[length..];
        Ok(length)
    }
}
