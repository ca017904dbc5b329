//! One file, block by block, as a consolidation decodes it, and without a tape.
//!
//! ```text
//!  file ─ open ─▶ block ─ decode ─▶ each(block)
//!                   ▲         │
//!                   └ left ───┘ what the decoder left belongs to the next one
//! ```
//!
//! Used to explain a sample, and to read what must be read once before all else.

use crate::block::Block;
use crate::block::names;
use crate::error::Error;
use crate::formats::decoder::{DecodeOptions, FeedDecoder};
use crate::formats::format::Format;
use crate::sources::head::SourceHead;
use crate::sources::open::{BlockFill, SourceReader};
use crate::sources::source::PendingSource;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use unitape_model::Dictionary;

/// Gives each block of a file to `each`, decoded, until that says stop or the file ends. Ids in the arena are those of
/// the block's own names.
///
/// # Errors
/// When the file cannot be read, and what `each` says.
pub(crate) fn walk(
    format: &Format,
    path: &Path,
    decoder: &mut FeedDecoder,
    mut each: impl FnMut(&mut FeedDecoder, &mut Block) -> Result<ControlFlow<()>, Error>,
) -> Result<(), Error> {
    let pending = PendingSource { path: path.to_owned(), ..PendingSource::default() };
    let Some(mut open) = SourceReader::new(pending, false, false)? else { return Ok(()) };
    let (mut head, known, mut block) = (SourceHead::default(), Dictionary::default(), Block::default());
    let (mut left, mut messages) = (Vec::new(), 0);
    loop {
        // The decoded part, not the head, has the context of an unfinished message.
        (block.head, block.carried) = (Arc::default(), block.leaves.take());
        let BlockFill::Some(_) = open.fill(&mut block, BLOCK_BYTES, format)? else { continue };
        if !left.is_empty() {
            block.base -= left.len() as u64;
            left.append(&mut block.bytes);
            std::mem::swap(&mut left, &mut block.bytes);
        }
        head.give(&mut block, format, path)?;
        block.before = Some(messages);
        decoder.decode(&mut block, 1, &known, &DecodeOptions::default());
        messages += block.tally.messages;
        settle(&mut block);
        if each(decoder, &mut block)?.is_break() || block.eof {
            return Ok(());
        }
        left.extend_from_slice(&block.bytes[block.decoded..]);
    }
}

/// Puts the ids of the block's own names where provisional ones are.
pub(crate) fn settle(block: &mut Block) {
    for f in &block.fixups {
        names::put(&mut block.arena, f.at as usize, f.dict, f.id);
    }
}

const BLOCK_BYTES: usize = 256 << 10;
