//! What the JSON drivers of all formats share: input in pieces, and JSON text by hand.

use crate::fix::Error;
use std::io::Read;
use unitape_model::words;

/// Input is read in pieces of this size.
pub(crate) const READ_BYTES: usize = 256 << 10;

/// The input and the part of it in memory.
pub(crate) struct Source<'s> {
    input: &'s mut dyn Read,
    file_label: &'s str,
    pub(crate) buf: Vec<u8>,
    pub(crate) len: usize,
    /// Offset of `buf[0]` in the input.
    pub(crate) base: u64,
    pub(crate) eof: bool,
}

impl<'s> Source<'s> {
    pub(crate) fn new(input: &'s mut dyn Read, file_label: &'s str) -> Self {
        Source { input, file_label, buf: Vec::new(), len: 0, base: 0, eof: false }
    }

    /// What is there.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buf[..self.len]
    }

    /// As [`Source::fill`], with the error that most formats have.
    pub(crate) fn read(&mut self, from: usize, wanted: usize) -> Result<(), Error> {
        let file = self.file_label;
        self.fill(from, wanted).map_err(|(offset, source)| Error::Read {
            file: file.to_owned(),
            offset,
            source,
        })
    }

    /// Drops what lies before `from` and reads until `wanted` bytes are there, or the end. An error comes with
    /// the bytes read before it.
    pub(crate) fn fill(&mut self, from: usize, wanted: usize) -> Result<(), (u64, std::io::Error)> {
        self.buf.copy_within(from..self.len, 0);
        self.base += from as u64;
        self.len -= from;
        if self.buf.len() < wanted.max(self.len + READ_BYTES) {
            self.buf.resize(wanted.max(self.len + READ_BYTES), 0);
        }
        while self.len < wanted && !self.eof {
            match self.input.read(&mut self.buf[self.len..]) {
                Ok(0) => self.eof = true,
                // A reader that claims more than it was given room for is cut to the room.
                Ok(n) => self.len = (self.len + n).min(self.buf.len()),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err((self.base + self.len as u64, error)),
            }
        }
        Ok(())
    }
}

pub(crate) fn head(file_label: &str) -> Vec<u8> {
    let mut head = b"{\"file\":".to_vec();
    string(&mut head, file_label);
    head.extend_from_slice(b",\"n\":");
    head
}

/// A value: a string, or `{"hex":"…"}`.
#[inline]
pub(crate) fn value(out: &mut Vec<u8>, bytes: &[u8]) {
    if plain(bytes) {
        out.push(b'"');
        out.extend_from_slice(bytes);
        out.push(b'"');
        return;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => string(out, text),
        Err(_) => hex(out, bytes),
    }
}

/// `{"hex":"…"}`.
pub(crate) fn hex(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(b"{\"hex\":\"");
    for byte in bytes {
        out.push(HEX[usize::from(byte >> 4)]);
        out.push(HEX[usize::from(byte & 15)]);
    }
    out.extend_from_slice(b"\"}");
}

/// Whether all is ASCII that JSON takes as it is.
#[inline]
fn plain(bytes: &[u8]) -> bool {
    bytes.iter().fold(true, |all, &b| all & (b' '..0x7f).contains(&b) & (b != b'"') & (b != b'\\'))
}

pub(crate) fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = words::special_or_del(rest) {
        out.extend_from_slice(&rest[..at]);
        let byte = rest[at];
        rest = &rest[at + 1..];
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 | 0x7f => {
                out.extend_from_slice(b"\\u00");
                out.push(HEX[usize::from(byte >> 4)]);
                out.push(HEX[usize::from(byte & 15)]);
            }
            _ => out.push(byte),
        }
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

#[inline]
pub(crate) fn number(out: &mut Vec<u8>, mut n: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

const HEX: &[u8; 16] = b"0123456789abcdef";
