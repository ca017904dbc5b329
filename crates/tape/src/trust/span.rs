//! The checksum of one span of a segment, and a span for which none vouches.

use std::path::Path;

use unitape_model::{LINE, Position};

use crate::disk::layout::HEADER_PAGE;
use crate::error::Error;

/// A span for which nothing vouches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpanFault {
    /// Data offsets in the segment.
    pub from_offset: u64,
    pub to_offset: u64,
    /// The checksum is not there, so nothing says whether the bytes are right.
    pub missing: bool,
    /// The file `durable` vouches for the bytes all the same.
    pub is_vouched: bool,
}

impl SpanFault {
    /// Makes the error for the file at `path`, whose data begin at position `base`.
    pub fn error(&self, path: &Path, base: Position) -> Error {
        let (from, to) = (base.plus(self.from_offset), base.plus(self.to_offset));
        let fault = if self.missing { "have no checksum" } else { "do not match their checksum" };
        let reason = format!(
            "the bytes of positions {from} to {to} {fault}, and they were durable; `unitape tape repair` says what can be \
             done"
        );
        Error::damage(path, HEADER_PAGE + self.from_offset, reason)
    }
}

/// Computes the checksum of a span with these first bytes and zeros after them.
pub(crate) fn span_sum(bytes: &[u8], span: u64) -> u32 {
    extend_with_zeros(crc32c::crc32c(bytes), span - bytes.len() as u64)
}

/// Returns whether `stored` is the checksum of some start of a span with these first bytes. Also accepts a checksum
/// that a recorder was overwriting when the disk refused: its first bytes belong to one such checksum, the others to
/// another.
pub(crate) fn matches_prefix_sum(bytes: &[u8], span: u64, stored: [u8; 4]) -> bool {
    let (mut heads, mut tails) = ([false; 4], [false; 4]);
    let (mut running, mut length) = (0, 0);
    for line in bytes.chunks(LINE) {
        running = crc32c::crc32c_append(running, line);
        length += line.len() as u64;
        let sum = extend_with_zeros(running, span - length).to_le_bytes();
        if sum == stored {
            return true;
        }
        for split in 1..4 {
            heads[split] |= sum[..split] == stored[..split];
            tails[split] |= sum[split..] == stored[split..];
        }
    }
    (1..4).any(|byte_index| heads[byte_index] && tails[byte_index])
}

/// Extends the checksum `crc` over `zeros` zero bytes.
pub(crate) fn extend_with_zeros(mut crc: u32, mut zeros: u64) -> u32 {
    while zeros > 0 {
        let part = zeros.min(ZEROS.len() as u64);
        crc = crc32c::crc32c_append(crc, &ZEROS[..part as usize]);
        zeros -= part;
    }
    crc
}

pub(crate) static ZEROS: [u8; 4096] = [0; 4096];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_that_was_being_written_is_known() {
        let bytes: Vec<u8> = (0..256u32).map(|i| (i * 7) as u8).collect();
        let sums: Vec<[u8; 4]> =
            [64, 128, 256].map(|n| span_sum(&bytes[..n], 4096).to_le_bytes()).into_iter().collect();
        for split in 1..4 {
            for (new, old) in [(sums[1], sums[0]), (sums[2], sums[1])] {
                let mut torn = old;
                torn[..split].copy_from_slice(&new[..split]);
                assert!(matches_prefix_sum(&bytes, 4096, torn));
            }
        }
        assert!(matches_prefix_sum(&bytes, 4096, sums[1]));
        let mut altered_sum = sums[2];
        altered_sum[0] ^= 1;
        altered_sum[3] ^= 1;
        assert!(!matches_prefix_sum(&bytes, 4096, altered_sum));
    }
}
