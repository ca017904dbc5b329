//! The first bytes of a source, for blocks that begin further on: a header whose date holds for the whole file.

use crate::block::Block;
use crate::error::Error;
use crate::formats::format::Format;
use crate::sources::open::first_bytes;
use std::path::Path;
use std::sync::Arc;

/// The maximum length of a head, in bytes, that each quarantine event holds itself. A longer head is on the tape
/// once: a header of 64 KiB in each event would make the tape of a file of short bad rows thousands of times as long
/// as the file.
const OWN_HEAD_BYTES_MAX: usize = 256;

/// The head of the source that is being read.
#[derive(Debug, Default)]
pub struct SourceHead {
    /// Index of the source, and its first bytes.
    source_and_bytes: Option<(usize, Arc<[u8]>)>,
    /// They are what its name says.
    is_from_name: bool,
}

impl SourceHead {
    /// Gives a newly filled block the head of its source.
    ///
    /// # Errors
    /// Fails if a run resumes in the middle of a source and cannot read its start.
    pub fn give(&mut self, block: &mut Block, format: &Format, path: &Path) -> Result<(), Error> {
        self.set_head(block, format, path)?;
        block.is_head_defined = block.head.len() > OWN_HEAD_BYTES_MAX;
        Ok(())
    }

    fn set_head(&mut self, block: &mut Block, format: &Format, path: &Path) -> Result<(), Error> {
        if let Some((_, head)) =
            self.source_and_bytes.as_ref().filter(|(source, _)| self.is_from_name && *source == block.source)
        {
            block.head = head.clone();
            return Ok(());
        }
        if let Some(head) = format.context_from_file_name(path)? {
            block.head = Arc::from(head);
            (self.source_and_bytes, self.is_from_name) = (Some((block.source, block.head.clone())), true);
            return Ok(());
        }
        let head_bytes_max = format.head_bytes();
        // The start of a capture is not of the format; each packet starts afresh.
        if head_bytes_max == 0 || block.walker.is_some() {
            return Ok(());
        }
        let known_head =
            self.source_and_bytes.as_ref().filter(|(source, _)| *source == block.source && block.base > 0);
        let head = match known_head {
            Some((_, head)) => head.clone(),
            None if block.base == 0 => format.source_head(path, &block.bytes),
            None => {
                let head_bytes = first_bytes(path, head_bytes_max as u64);
                let bytes =
                    head_bytes.map_err(|source| Error::Read { path: path.to_owned(), offset: 0, source })?;
                format.source_head(path, &bytes)
            }
        };
        block.head = head.clone();
        (self.source_and_bytes, self.is_from_name) = (Some((block.source, head)), false);
        Ok(())
    }
}
