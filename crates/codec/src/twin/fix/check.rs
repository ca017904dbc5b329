//! Properties that must hold for any bytes; tests and the fuzzer share them.

use super::naive;
use crate::fix::{
    FieldSeparator, FixDecodeOptions, FixFramer, FixLeniency, MessageTokenizer, NextFixFrame, decode_json,
};

/// Checks that fast and slow path agree on every frame and field of `input`. Every byte must be in a frame or be a
/// line end.
///
/// # Errors
/// Fails at the first difference and describes it.
pub fn agree(framer: &FixFramer, tokens: &mut MessageTokenizer, input: &[u8]) -> Result<(), String> {
    let mut offset = 0;
    loop {
        let fast = framer.frame(input, offset, true);
        let slow = naive::frame(framer, input, offset);
        if fast != slow {
            return Err(format!("at {offset}: fast {fast:?}, slow {slow:?}"));
        }
        let tokenized_frame = tokens.frame(framer, input, offset, true);
        let (span, fields) = match fast {
            NextFixFrame::Message(message) => {
                (message.span, Some(naive::tokens(framer, message.span.slice(input))))
            }
            NextFixFrame::Bad { span, .. } | NextFixFrame::Skipped(span) => (span, None),
            NextFixFrame::Incomplete { .. } => return Err(format!("at {offset}: incomplete at the end")),
            NextFixFrame::End => {
                let line_ends = input[offset..].iter().all(|byte| matches!(byte, b'\r' | b'\n'));
                return if line_ends { Ok(()) } else { Err(format!("at {offset}: ended too soon")) };
            }
        };
        match fields {
            None if tokenized_frame == fast => {}
            Some(Ok(fields))
                if tokenized_frame == fast && tokens.as_slice().iter().eq(fields.iter().copied()) => {}
            Some(Err(fault)) if tokenized_frame == (NextFixFrame::Bad { span, fault }) => {}
            fields => {
                let got: Vec<_> = tokens.as_slice().iter().collect();
                return Err(format!("at {offset}: {tokenized_frame:?} {got:?}, slow {fields:?}"));
            }
        }
        if span.end <= span.start || span.start < offset || span.end > input.len() {
            return Err(format!("at {offset}: span {span:?}"));
        }
        if !input[offset..span.start].iter().all(|byte| matches!(byte, b'\r' | b'\n')) {
            return Err(format!("at {offset}: bytes lost before {span:?}"));
        }
        offset = span.end;
    }
}

/// Checks that the fast path says the same of a part of `input`, not knowing that more follows, as of the whole. A
/// part as long as it asked for must bring it on.
///
/// # Errors
/// Fails at the first difference and describes it.
pub fn cuts(framer: &FixFramer, input: &[u8]) -> Result<(), String> {
    let mut offset = 0;
    loop {
        let full_frame = framer.frame(input, offset, true);
        for end in offset..=input.len() {
            match framer.frame(&input[..end], offset, false) {
                NextFixFrame::Incomplete { from, need } if from >= offset && need > end => {
                    // `from` skips line ends only.
                    if !input[offset..from].iter().all(|byte| matches!(byte, b'\r' | b'\n')) {
                        return Err(format!("at {offset}, cut {end}: skipped to {from}"));
                    }
                    if end - offset > framer.max_message() + 64 + (from - offset) {
                        return Err(format!("at {offset}, cut {end}: waits without bound"));
                    }
                }
                frame if frame == full_frame => {}
                frame => return Err(format!("at {offset}, cut {end}: {frame:?}, whole {full_frame:?}")),
            }
        }
        offset = match full_frame {
            NextFixFrame::Message(message) => message.span.end,
            NextFixFrame::Bad { span, .. } | NextFixFrame::Skipped(span) => span.end,
            NextFixFrame::Incomplete { .. } | NextFixFrame::End => return Ok(()),
        };
    }
}

/// Runs the fuzzer's checks: the first byte picks separator, leniency, limit and whether it is a log, the rest is the
/// input.
///
/// # Panics
/// Panics if any property does not hold.
pub fn any_bytes(data: &[u8]) {
    let Some((&pick, input)) = data.split_first() else { return };
    let sep = [FieldSeparator::Soh, FieldSeparator::Pipe, FieldSeparator::CaretA, FieldSeparator::Semicolon]
        [usize::from(pick & 3)];
    let lenient = match (pick & 4, pick >> 5) {
        (0, _) => FixLeniency::NONE,
        (_, 0) => FixLeniency::ALL,
        (_, kind) => FixLeniency::WORDS[usize::from(kind) % FixLeniency::WORDS.len()].1,
    };
    let framer = FixFramer::default()
        .with_sep(sep)
        .with_lenient(lenient)
        .with_log(pick & 16 != 0)
        .with_max_message(if pick & 8 != 0 { 80 } else { 1 << 20 });
    for mut tokens in MessageTokenizer::each_kernel() {
        if let Err(difference) = agree(&framer, &mut tokens, input) {
            panic!("{difference}");
        }
    }
    // Trying every cut of the rest costs the square of its length; long inputs would show no more.
    if input.len() <= 250
        && let Err(difference) = cuts(&framer, input)
    {
        panic!("{difference}");
    }
    let mut out = Vec::new();
    let opts = FixDecodeOptions { framer, dictionary: None };
    let summary = decode_json(&mut &input[..], "fuzz", &opts, &mut out).expect("memory reads and writes");
    let lines = out.iter().filter(|&&byte| byte == b'\n').count() as u64;
    assert_eq!(lines, summary.messages + summary.errors + summary.texts, "one line an object");
    assert!(std::str::from_utf8(&out).is_ok(), "JSON is UTF-8");
    assert_eq!(summary.bytes, input.len() as u64, "all is read");
}
