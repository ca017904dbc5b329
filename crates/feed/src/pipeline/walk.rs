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

/// Decodes each block of a file and gives it to `each`, until `each` stops or the file ends. Ids in the arena are ids
/// of the block's own names.
///
/// # Errors
/// Fails if the file cannot be read, and what `each` says.
pub(crate) fn walk_blocks(
    format: &Format,
    path: &Path,
    decoder: &mut FeedDecoder,
    mut each: impl FnMut(&mut FeedDecoder, &mut Block) -> Result<ControlFlow<()>, Error>,
) -> Result<(), Error> {
    let pending = PendingSource { path: path.to_owned(), ..PendingSource::default() };
    let Some(mut source_reader) = SourceReader::new(pending, false, false)? else { return Ok(()) };
    let (mut head, dictionary, mut block) = (SourceHead::default(), Dictionary::default(), Block::default());
    let (mut left, mut messages) = (Vec::new(), 0);
    loop {
        // The decoded part, not the head, has the context of an unfinished message.
        (block.head, block.carried) = (Arc::default(), block.leaves.take());
        let BlockFill::Some(_) = source_reader.fill(&mut block, BLOCK_BYTES, format)? else { continue };
        if !left.is_empty() {
            block.base -= left.len() as u64;
            left.append(&mut block.bytes);
            std::mem::swap(&mut left, &mut block.bytes);
        }
        head.give(&mut block, format, path)?;
        block.before = Some(messages);
        decoder.decode(&mut block, 1, &dictionary, &DecodeOptions::default());
        messages += block.tally.messages;
        write_own_ids(&mut block);
        if each(decoder, &mut block)?.is_break() || block.eof {
            return Ok(());
        }
        left.extend_from_slice(&block.bytes[block.decoded..]);
    }
}

/// Puts the ids of the block's own names where provisional ones are.
pub(crate) fn write_own_ids(block: &mut Block) {
    for f in &block.fixups {
        names::write_id(&mut block.arena, f.id_offset as usize, f.dict, f.id);
    }
}

const BLOCK_BYTES: usize = 256 << 10;
