//! The loop of `unitape decode`, the same for all formats: input in pieces, an item at a time, a line of JSON each.
//!
//! ```text
//! input ─▶ InputBuffer ─▶ LineDecoder::step ─▶ JsonLines ─▶ output
//!             ▲ Incomplete: read more │              written at 64 KiB, and before the loop waits for input
//!             └───────────────────────┘
//! ```

use crate::error::Error;
use crate::frame::{FrameFault, FrameStep, NextFrame};
use crate::json::{head, number, string};
use crate::source::{InputBuffer, READ_BYTES};
use std::fmt::Display;
use std::io::Write;

/// Lines are written at this size, and before the loop waits for input.
const FLUSH_BYTES: usize = 64 << 10;

/// The current bytes, and the position of the next item in them.
#[derive(Clone, Copy, Debug)]
pub struct DecodeInput<'b> {
    /// The bytes.
    pub bytes: &'b [u8],
    /// Offset of the next item in `bytes`.
    pub offset: usize,
    /// Offset of `bytes[0]` in the file.
    pub base: u64,
    /// The file ends with `bytes`.
    pub eof: bool,
}

impl DecodeInput<'_> {
    /// Returns the offset in the file of an offset in the bytes.
    #[inline]
    #[must_use]
    pub fn file_offset(&self, offset: usize) -> u64 {
        self.base + offset as u64
    }
}

/// A decoder that writes a line for each item.
pub trait LineDecoder {
    /// The fault of an item.
    type Fault: FrameFault;

    /// Decodes the item at `input.offset`, and writes its line; the loop writes the line of a bad item.
    fn step(&mut self, input: DecodeInput<'_>) -> FrameStep<Self::Fault>;

    /// Returns the lines that are not written yet.
    fn lines(&mut self) -> &mut JsonLines;
}

/// The lines of one file.
#[derive(Debug, Default)]
pub struct JsonLines {
    /// `{"file":"…","n":`
    line_head: Vec<u8>,
    /// The lines that are not written yet.
    pub pending_lines: Vec<u8>,
    /// Lines begun.
    line_count: u64,
    /// Lines of items that are not good.
    pub errors: u64,
}

impl JsonLines {
    /// Creates the lines of a file that messages name by `file_label`.
    #[must_use]
    pub fn new(file_label: &str) -> Self {
        Self {
            line_head: head(file_label),
            pending_lines: Vec::with_capacity(2 * FLUSH_BYTES),
            ..Self::default()
        }
    }

    /// Begins the line of the next item, at this offset in the file: `{"file":"…","n":…,"offset":…`.
    #[inline]
    pub fn begin(&mut self, offset: u64) {
        self.pending_lines.extend_from_slice(&self.line_head);
        number(&mut self.pending_lines, self.line_count);
        self.line_count += 1;
        self.pending_lines.extend_from_slice(b",\"offset\":");
        number(&mut self.pending_lines, offset);
    }

    /// Writes the line of `length` bytes that are no good item.
    #[cold]
    pub fn fault(&mut self, offset: u64, length: usize, code: &str, message: &dyn Display) {
        self.errors += 1;
        self.begin(offset);
        self.pending_lines.extend_from_slice(b",\"length\":");
        number(&mut self.pending_lines, length as u64);
        self.pending_lines.extend_from_slice(b",\"error\":{\"code\":\"");
        self.pending_lines.extend_from_slice(code.as_bytes());
        self.pending_lines.extend_from_slice(b"\",\"message\":");
        string(&mut self.pending_lines, &message.to_string());
        self.pending_lines.extend_from_slice(b"}}\n");
    }

    /// Takes back the current line; the text before it has this length.
    #[cold]
    pub fn cancel(&mut self, text_length: usize) {
        self.pending_lines.truncate(text_length);
        self.line_count -= 1;
    }

    fn write(&mut self, out: &mut dyn Write) -> Result<(), Error> {
        if self.pending_lines.is_empty() {
            return Ok(());
        }
        let write_result = out.write_all(&self.pending_lines).and_then(|()| out.flush());
        self.pending_lines.clear();
        write_result.map_err(|source| Error::Write { source })
    }
}

/// Decodes the input to its end, and writes the lines. Returns the number of bytes read.
///
/// # Errors
/// Fails if the input cannot be read or the output cannot be written. Lines of items before the failure are written.
pub fn decode_lines(
    mut source: InputBuffer<'_>,
    decoder: &mut impl LineDecoder,
    out: &mut dyn Write,
) -> Result<u64, Error> {
    let mut offset = 0;
    // Bytes that are read in addition when the same item stays undecided. They double each time, so that a trickle of input does
    // not cost its square.
    let mut extra = 1;
    loop {
        let input = DecodeInput { bytes: source.bytes(), offset, base: source.input_offset, eof: source.eof };
        match decoder.step(input) {
            NextFrame::Message(span) | NextFrame::Skipped(span) => (offset, extra) = (span.end, 1),
            NextFrame::Bad { span, fault } => {
                let line_offset = input.file_offset(span.start);
                decoder.lines().fault(line_offset, span.len(), fault.code_word(), &fault);
                (offset, extra) = (span.end, 1);
            }
            NextFrame::Incomplete { from, need } => {
                decoder.lines().write(out)?;
                let bytes_wanted = need.saturating_sub(from).max(source.unread_bytes - from + extra);
                extra = (extra * 2).min(READ_BYTES.max(source.unread_bytes));
                source.read(from, bytes_wanted)?;
                offset = 0;
                continue;
            }
            NextFrame::End => break,
        }
        if decoder.lines().pending_lines.len() >= FLUSH_BYTES {
            decoder.lines().write(out)?;
        }
    }
    decoder.lines().write(out)?;
    Ok(source.input_offset + source.unread_bytes as u64)
}
