//! Input in pieces, for the decoders that read a stream.

use crate::error::Error;
use std::io::Read;

/// Input is read in pieces of this size.
pub const READ_BYTES: usize = 256 << 10;

/// The input and the part of it in memory.
pub struct InputBuffer<'s> {
    source_reader: &'s mut dyn Read,
    file_label: &'s str,
    /// Its first [`InputBuffer::unread_bytes`] bytes are of the input.
    pub buf: Vec<u8>,
    /// The number of bytes read and not consumed.
    pub unread_bytes: usize,
    /// Offset of `buf[0]` in the input.
    pub input_offset: u64,
    /// The input has ended.
    pub eof: bool,
}

impl<'s> InputBuffer<'s> {
    /// Makes an empty buffer for `input`; errors name it by `file_label`.
    pub fn new(input: &'s mut dyn Read, file_label: &'s str) -> Self {
        InputBuffer {
            source_reader: input,
            file_label,
            buf: Vec::new(),
            unread_bytes: 0,
            input_offset: 0,
            eof: false,
        }
    }

    /// Returns the bytes that were read and not consumed.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.buf[..self.unread_bytes]
    }

    /// Drops the bytes before `from` and reads until `wanted` bytes are in the buffer, or the input ends. After an
    /// error, the bytes read before it are in the buffer.
    ///
    /// # Errors
    /// Fails if the input cannot be read.
    pub fn read(&mut self, from: usize, wanted: usize) -> Result<(), Error> {
        let file = self.file_label;
        self.fill(from, wanted).map_err(|(offset, source)| Error::Read {
            file: file.to_owned(),
            offset,
            source,
        })
    }

    /// Drops the bytes before `from` and reads until `wanted` bytes are in the buffer, or the input ends. An error
    /// comes with the bytes read before it.
    ///
    /// # Errors
    /// Fails if the input cannot be read: where, and why.
    fn fill(&mut self, from: usize, wanted: usize) -> Result<(), (u64, std::io::Error)> {
        self.buf.copy_within(from..self.unread_bytes, 0);
        self.input_offset += from as u64;
        self.unread_bytes -= from;
        if self.buf.len() < wanted.max(self.unread_bytes + READ_BYTES) {
            self.buf.resize(wanted.max(self.unread_bytes + READ_BYTES), 0);
        }
        while self.unread_bytes < wanted && !self.eof {
            match self.source_reader.read(&mut self.buf[self.unread_bytes..]) {
                Ok(0) => self.eof = true,
                // A reader that claims more than it was given room for is cut to the room.
                Ok(n) => self.unread_bytes = (self.unread_bytes + n).min(self.buf.len()),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err((self.input_offset + self.unread_bytes as u64, error)),
            }
        }
        Ok(())
    }
}
