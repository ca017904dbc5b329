//! The check of a tape after a measurement: all its messages must be there, in order and unchanged.

use crate::error::Error;
use crate::record::HexSha256;
use std::path::Path;
use unitape_tape::twin::measure::BenchFrameGenerator;
use unitape_tape::{Reader, StartPosition};

/// Hashes of the expected and the actual messages on the tape, both without the header words.
#[derive(Clone, Debug)]
pub struct TapeHashes {
    pub input: String,
    pub output: String,
}

/// Reads the tape again, by the plain reader.
///
/// `count` messages of `lines` lines numbered from 0; with `is_tail`, whatever retention has left of their end.
pub fn read_back(tape: &Path, lines: u16, count: u64, is_tail: bool) -> Result<TapeHashes, Error> {
    let mut reader = Reader::open(tape, StartPosition::Oldest)?;
    let mut expected = BenchFrameGenerator::new(lines).next().to_vec();
    let (mut input, mut output) = (HexSha256::default(), HexSha256::default());
    let (mut next, mut first) = (0, true);
    while let Some(frame) = reader.next()? {
        if first && is_tail {
            next = BenchFrameGenerator::number(frame.bytes);
        }
        first = false;
        expected[8..16].copy_from_slice(&next.to_le_bytes());
        if frame.bytes.len() != expected.len() || frame.bytes[8..] != expected[8..] {
            let position = frame.position;
            let message =
                format!("{}: at {position} is not message {next} as it was written", tape.display());
            return Err(Error::Failed(message));
        }
        input.add(&expected[8..]);
        output.add(&frame.bytes[8..]);
        next += 1;
    }
    if next != count {
        return Err(Error::Failed(format!("{}: ends with message {next} of {count}", tape.display())));
    }
    Ok(TapeHashes { input: input.hex(), output: output.hex() })
}
