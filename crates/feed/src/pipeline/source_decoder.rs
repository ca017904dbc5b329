//! One worker's part of the way, bytes of memory to events in a block's arena: what benches and tests measure
//! and hold when ids, order and tape are not in question.

use crate::block::{Block, MessageTally};
use crate::error::Error;
use crate::formats::decoder::{DecodeOptions, FeedDecoder};
use crate::formats::format::Format;
use unitape_model::{Dictionary, NameKind};

/// Decodes sources in blocks as a worker does, with a dictionary that knows the names of earlier passes.
#[derive(Debug)]
pub struct SourceDecoder {
    decoder: FeedDecoder,
    head_bytes: usize,
    /// Name of the source; it may contain its day.
    pub name: String,
    format: Format,
    block: Block,
    dictionary: Dictionary,
}

impl SourceDecoder {
    /// Makes a decoder for this format.
    ///
    /// # Errors
    /// Fails if its mapping cannot be compiled.
    pub fn new(format: Format) -> Result<Self, Error> {
        let (decoder, head_bytes) = (format.decoder()?, format.head_bytes());
        Ok(Self {
            decoder,
            head_bytes,
            name: String::new(),
            format,
            block: Block::default(),
            dictionary: Dictionary::default(),
        })
    }

    /// Makes a decoder that uses the general path, even if the format has a faster one.
    ///
    /// # Errors
    /// Fails if its mapping cannot be compiled.
    pub fn with_general_path(format: Format) -> Result<Self, Error> {
        let mut this = Self::new(format)?;
        this.decoder.use_general_path();
        Ok(this)
    }

    /// Cuts a source into blocks, as intake does.
    pub fn blocks(&self, mut bytes: &[u8], block_bytes: usize) -> Vec<Vec<u8>> {
        let mut blocks = Vec::new();
        while bytes.len() > block_bytes {
            let cut = match self.format.cut_offset(&bytes[..block_bytes]) {
                0 => block_bytes,
                cut => cut,
            };
            blocks.push(bytes[..cut].to_vec());
            bytes = &bytes[cut..];
        }
        blocks.push(bytes.to_vec());
        blocks
    }

    /// Decodes blocks that are cut between messages, one after the other; `each` sees the frames of each block. If
    /// `learn`, new names are known from the next block on.
    pub fn pass(
        &mut self,
        blocks: &mut [Vec<u8>],
        keep_names: bool,
        mut each: impl FnMut(&[u8]),
    ) -> MessageTally {
        let (mut tally, mut base, count) = (MessageTally::default(), 0, blocks.len());
        let head: std::sync::Arc<[u8]> = match blocks.first() {
            Some(first) if self.head_bytes > 0 => {
                self.format.source_head(std::path::Path::new(&self.name), first)
            }
            _ => std::sync::Arc::default(),
        };
        for (i, bytes) in blocks.iter_mut().enumerate() {
            std::mem::swap(&mut self.block.bytes, bytes);
            (self.block.base, self.block.eof) = (base, i + 1 == count);
            self.block.head = head.clone();
            self.block.before = Some(tally.messages);
            self.decoder.decode(&mut self.block, 1, &self.dictionary, &DecodeOptions::default());
            tally = tally.plus(self.block.tally);
            each(&self.block.arena);
            if keep_names {
                for f in &self.block.fixups {
                    let name = self.block.names.name(f.dict, f.id).unwrap_or_default();
                    // A name that finds no place stays unknown.
                    _ = self.dictionary.intern(NameKind::ALL[f.dict as usize], name.as_bytes());
                }
            }
            base += self.block.bytes.len() as u64;
            std::mem::swap(&mut self.block.bytes, bytes);
        }
        tally
    }

    /// Describes the whole block as text, for tests that compare.
    #[cfg(test)]
    pub(crate) fn describe_block(&self) -> String {
        let b = &self.block;
        format!(
            "{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
            b.units, b.fixups, b.raw, b.runs, b.tally, b.tallies, b.decoded
        )
    }
}
