//! The first bytes of a source, for blocks that begin further on: a header whose date holds for the whole file.

use crate::block::Block;
use crate::decode::Format;
use crate::error::Error;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// The head of the source that is being read.
#[derive(Debug, Default)]
pub struct Head {
    /// Index of the source, and its first bytes.
    of: Option<(usize, Arc<[u8]>)>,
}

impl Head {
    /// Gives a block that was just filled the head of its source.
    ///
    /// # Errors
    /// When a run goes on in the middle of a source and its start cannot be read.
    pub fn give(&mut self, block: &mut Block, format: &Format, path: &Path) -> Result<(), Error> {
        let most = format.head_bytes();
        if most == 0 {
            return Ok(());
        }
        let known = self.of.as_ref().filter(|(source, _)| *source == block.source && block.base > 0);
        let head = match known {
            Some((_, head)) => head.clone(),
            None if block.base == 0 => Arc::from(format.head(&block.bytes)),
            None => {
                let mut bytes = Vec::new();
                let read = File::open(path).and_then(|f| f.take(most as u64).read_to_end(&mut bytes));
                read.map_err(|source| Error::Read { path: path.to_owned(), offset: 0, source })?;
                Arc::from(format.head(&bytes))
            }
        };
        block.head = head.clone();
        self.of = Some((block.source, head));
        Ok(())
    }
}
