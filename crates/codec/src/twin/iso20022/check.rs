//! Properties that must hold for any bytes; tests and the fuzzer share them.

use super::naive;
use crate::iso20022::{
    ElementCollector, ElementValueSpan, ElementVisitor, Iso20022Decoder, MessageRoot, NextIsoMessage, Span,
    decode_json,
};

/// As [`ElementCollector`], and lets a message be parted after every element `Ntry`.
#[derive(Debug, Default)]
struct SplittingVisitor {
    leaves: ElementCollector,
    part: bool,
}

impl ElementVisitor for SplittingVisitor {
    type Mark = (u32, bool);

    fn begin(&mut self, live: usize) {
        self.leaves.begin(live);
    }

    fn root(&mut self, root: MessageRoot) -> (u32, bool) {
        (self.leaves.root(root), false)
    }

    fn open(&mut self, parent: (u32, bool), name: &[u8], offset: usize) -> (u32, bool) {
        (self.leaves.open(parent.0, name, offset), name == b"Ntry")
    }

    fn attribute(&mut self, mark: (u32, bool), name: &[u8], value: ElementValueSpan) {
        self.leaves.attribute(mark.0, name, value);
    }

    fn close(&mut self, buf: &[u8], mark: (u32, bool), text: Option<ElementValueSpan>, span: Span) -> bool {
        self.leaves.close(buf, mark.0, text, span);
        self.part && mark.1
    }
}

/// Lists the codes of the faults in `input`, reported in parts.
pub fn part_codes(max_message: usize, input: &[u8]) -> Vec<&'static str> {
    let mut decoder = Iso20022Decoder::default().with_max_message(max_message);
    let mut visit = SplittingVisitor { part: true, ..SplittingVisitor::default() };
    let (mut offset, mut codes) = (0, Vec::new());
    loop {
        offset = match decoder.next(input, offset, true, &mut visit) {
            NextIsoMessage::Message(message) => message.span.end,
            NextIsoMessage::Bad { span, fault } => {
                codes.push(fault.code().as_str());
                span.end
            }
            NextIsoMessage::Incomplete { .. } | NextIsoMessage::End => return codes,
        };
    }
}

/// Paths and texts as last reported.
fn reported(leaves: &ElementCollector, text: &[u8]) -> Vec<(String, String)> {
    let mut scratch = Vec::new();
    let string = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    leaves.iter().map(|(path, value)| (string(path), string(value.text(text, &mut scratch)))).collect()
}

/// Returns whether the bytes may be outside of messages: white space, byte order marks, comments and instructions. If
/// a wrapper was still open, the rest of the wrapper may be there too.
fn between(mut skipped: &[u8], is_standalone: bool) -> bool {
    while let Some(&byte) = skipped.first() {
        let n = match byte {
            b' ' | b'\t' | b'\r' | b'\n' => Some(1),
            0xef if skipped.starts_with(&[0xef, 0xbb, 0xbf]) => Some(3),
            b'<' if skipped.starts_with(b"<!--") => {
                memchr::memmem::find(&skipped[4..], b"-->").map(|n| n + 7)
            }
            b'<' if skipped.starts_with(b"<?") => memchr::memmem::find(skipped, b"?>").map(|n| n + 2),
            _ if !is_standalone => return true,
            _ => None,
        };
        let Some(n) = n else { return false };
        skipped = &skipped[n..];
    }
    true
}

/// Checks that the decoder reports what the slow twin reads, for every message of `input` that needs no context.
/// Every byte must be in a message, in a fault or between them.
///
/// # Errors
/// Fails at the first difference and describes it.
pub fn agree(max_message: usize, part: bool, input: &[u8]) -> Result<(), String> {
    let mut decoder = Iso20022Decoder::default().with_max_message(max_message);
    let mut visit = SplittingVisitor { part, ..SplittingVisitor::default() };
    let mut offset = 0;
    loop {
        let is_standalone = decoder.context().is_empty();
        let span = match decoder.next(input, offset, true, &mut visit) {
            NextIsoMessage::Message(message) => {
                if is_standalone && decoder.context().is_empty() {
                    let slow = naive::leaves(message.span.slice(input));
                    let fast = reported(&visit.leaves, decoder.text(&message, input));
                    if slow.as_ref() != Ok(&fast) {
                        return Err(format!("at {offset}: fast {fast:?}, slow {slow:?}"));
                    }
                }
                message.span
            }
            NextIsoMessage::Bad { span, fault } => {
                let fault_offset = fault.offset as usize;
                if fault_offset > span.len() + max_message {
                    return Err(format!("at {offset}: {fault:?} is not in {span:?}"));
                }
                if span.is_empty() && offset < input.len() {
                    return Err(format!("at {offset}: no step forward"));
                }
                span
            }
            NextIsoMessage::Incomplete { .. } => return Err(format!("at {offset}: incomplete at the end")),
            NextIsoMessage::End => {
                let none_lost = between(&input[offset..], is_standalone);
                return if none_lost { Ok(()) } else { Err(format!("at {offset}: ended too soon")) };
            }
        };
        if span.end < span.start || span.start < offset || span.end > input.len() {
            return Err(format!("at {offset}: span {span:?}"));
        }
        if !between(&input[offset..span.start], is_standalone) {
            return Err(format!("at {offset}: bytes lost before {span:?}"));
        }
        offset = span.end;
    }
}

/// Checks that the decoder says the same of a part of `input`, not knowing that more follows, as of the whole.
///
/// # Errors
/// Fails at the first difference and describes it.
pub fn cuts(max_message: usize, part: bool, input: &[u8]) -> Result<(), String> {
    let new = || Iso20022Decoder::default().with_max_message(max_message);
    let mut visit = SplittingVisitor { part, ..SplittingVisitor::default() };
    let (mut offset, mut context) = (0, Vec::new());
    loop {
        let ask = |end: usize, eof: bool, visit: &mut SplittingVisitor| {
            let mut decoder = new();
            decoder.set_context(&context);
            let next = decoder.next(&input[..end], offset, eof, visit);
            let text = match next {
                NextIsoMessage::Message(message) => {
                    reported(&visit.leaves, decoder.text(&message, &input[..end]))
                }
                _ => Vec::new(),
            };
            (next, text, decoder.context().to_vec())
        };
        let full_outcome = ask(input.len(), true, &mut visit);
        for end in offset..=input.len() {
            let cut = ask(end, false, &mut visit);
            match cut.0 {
                NextIsoMessage::Incomplete { from, need } if from >= offset && need > end => {
                    if end - from > max_message + 256 {
                        return Err(format!("at {offset}, cut {end}: waits without bound"));
                    }
                }
                _ if cut == full_outcome => {}
                _ => return Err(format!("at {offset}, cut {end}: {cut:?}, whole {full_outcome:?}")),
            }
        }
        offset = match full_outcome.0 {
            NextIsoMessage::Message(message) => message.span.end,
            NextIsoMessage::Bad { span, .. } => span.end,
            NextIsoMessage::Incomplete { .. } | NextIsoMessage::End => return Ok(()),
        };
        context = full_outcome.2;
    }
}

/// Runs the fuzzer's checks: the first byte picks the limit, the rest is the input.
///
/// # Panics
/// Panics if any property does not hold.
pub fn any_bytes(data: &[u8]) {
    let Some((&pick, input)) = data.split_first() else { return };
    let max_message = [64, 150, 400, 1 << 20][usize::from(pick & 3)];
    let part = pick & 4 != 0;
    if let Err(difference) = agree(max_message, part, input) {
        panic!("{difference}");
    }
    // Trying every cut of the rest costs the square of its length; long inputs would show no more.
    if input.len() <= 300
        && let Err(difference) = cuts(max_message, part, input)
    {
        panic!("{difference}");
    }
    assert!(Iso20022Decoder::<u32>::default().cut(input) <= input.len());
    let mut out = Vec::new();
    let summary =
        decode_json(&mut &input[..], "fuzz", max_message, &mut out).expect("memory reads and writes");
    let lines = out.iter().filter(|&&byte| byte == b'\n').count() as u64;
    assert_eq!(lines, summary.messages + summary.errors, "one line an object");
    for line in out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        serde_json::from_slice::<serde_json::Value>(line).expect("a line is JSON");
    }
    assert_eq!(summary.bytes, input.len() as u64, "all is read");
}
