//! The loop over the items of a block, the same for the formats whose messages lie one after the other.

use crate::block::Block;
use crate::mapping::MessageOrigin;
use std::fmt::Display;
use std::ops::Range;

/// The result of one step through a block.
pub(super) enum BlockStep {
    /// An item, good or bad: its offsets in the block. The next one begins at its end.
    Item(Range<usize>),
    /// The block ends inside an item, which begins at this offset.
    Incomplete(usize),
    /// The block is decoded to its end.
    End,
}

/// Decodes the items of a block. `step` gets the block, its bytes and the offset of the next item.
#[inline(always)]
pub(super) fn decode_items(block: &mut Block, mut step: impl FnMut(&mut Block, &[u8], usize) -> BlockStep) {
    let bytes = std::mem::take(&mut block.bytes);
    let mut offset = 0;
    block.decoded = loop {
        match step(block, &bytes, offset) {
            BlockStep::Item(item) => {
                block.progress(block.base + item.start as u64, block.base + item.end as u64);
                offset = item.end;
            }
            BlockStep::Incomplete(start) => break start,
            BlockStep::End => break bytes.len(),
        }
    };
    block.bytes = bytes;
}

/// Puts a bad item into quarantine.
#[cold]
pub(super) fn refuse_item(
    block: &mut Block,
    origin: MessageOrigin,
    raw: &[u8],
    code: &str,
    fault: &dyn Display,
) {
    block.quarantine(origin.source, origin.offset, raw, code, &fault.to_string());
}
