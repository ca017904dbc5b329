//! The loop over the items of a block, the same for the formats whose messages lie one after the other.

use crate::block::Block;
use crate::mapping::MessageOrigin;
use unitape_base::{FrameFault, FrameStep, NextFrame, Span};
use unitape_codec::next_line;

/// Decodes the items of a block and puts the bad items into quarantine. `step` gets the block, its bytes and the offset
/// of the next item.
#[inline(always)]
pub(super) fn decode_items<F: FrameFault>(
    block: &mut Block,
    source: u32,
    mut step: impl FnMut(&mut Block, &[u8], usize) -> FrameStep<F>,
) {
    let bytes = std::mem::take(&mut block.bytes);
    let mut offset = 0;
    block.decoded = loop {
        let span = match step(block, &bytes, offset) {
            NextFrame::Message(span) => span,
            NextFrame::Skipped(span) => {
                block.end_ignored();
                span
            }
            NextFrame::Bad { span, fault } => {
                refuse_item(block, block.origin(source, span), span.slice(&bytes), &fault);
                span
            }
            NextFrame::Incomplete { from, .. } => break from,
            NextFrame::End => break bytes.len(),
        };
        block.mark_crossed_progress(block.base + span.start as u64, block.base + span.end as u64);
        offset = span.end;
    };
    block.bytes = bytes;
}

/// Decodes the lines of a block, and puts lines of more than `bytes_max` bytes into quarantine.
#[inline(always)]
pub(super) fn decode_lines(
    block: &mut Block,
    source: u32,
    bytes_max: usize,
    mut decode: impl FnMut(&mut Block, &[u8], MessageOrigin),
) {
    decode_items(block, source, |block, bytes, offset| {
        next_line(bytes, offset, block.eof, bytes_max).map(|line| {
            let origin = block.origin(source, line.span);
            decode(block, line.span.slice(bytes), origin);
            line.with_terminator()
        })
    });
}

/// Puts a bad item into quarantine.
#[cold]
pub(super) fn refuse_item(block: &mut Block, origin: MessageOrigin, raw: &[u8], fault: &dyn FrameFault) {
    block.quarantine(origin.source, origin.offset, raw, fault.code_word(), &fault.to_string());
}

impl Block {
    /// Returns the origin of the message in these bytes of the block.
    #[inline]
    pub(super) fn origin(&self, source: u32, span: Span) -> MessageOrigin {
        MessageOrigin { source, offset: self.base + span.start as u64 }
    }
}
