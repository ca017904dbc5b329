//! The checksum of one span of a segment, and a span for which none vouches.

use std::path::Path;

use unitape_model::{LINE, Position};

use crate::disk::layout::HEADER_PAGE;
use crate::error::Error;

/// A span for which nothing vouches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpanFault {
    /// Data offsets in the segment.
    pub from: u64,
    pub to: u64,
    /// The checksum is not there, so nothing says whether the bytes are right.
    pub missing: bool,
    /// The file `durable` vouches for the bytes all the same.
    pub vouched: bool,
}

impl SpanFault {
    /// As an error of the file at `path`, whose data begin at position `base`.
    pub fn error(&self, path: &Path, base: Position) -> Error {
        let (from, to) = (base.plus(self.from), base.plus(self.to));
        let what = if self.missing { "have no checksum" } else { "do not match their checksum" };
        let what = format!(
            "the bytes of positions {from} to {to} {what}, and they were durable; `unitape tape repair` says what can be \
             done"
        );
        Error::damage(path, HEADER_PAGE + self.from, what)
    }
}

/// The checksum that a span with these first bytes and zeros after them has.
pub(crate) fn span_sum(bytes: &[u8], span: u64) -> u32 {
    extend_with_zeros(crc32c::crc32c(bytes), span - bytes.len() as u64)
}

/// Whether `stored` is the sum of a start of a span with these first bytes. Also of one that a recorder was writing over
/// another when the disk refused: the first bytes are of one such sum, and the others of another.
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
        for at in 1..4 {
            heads[at] |= sum[..at] == stored[..at];
            tails[at] |= sum[at..] == stored[at..];
        }
    }
    (1..4).any(|at| heads[at] && tails[at])
}

/// The sum `crc` continued over `zeros` zero bytes.
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
        for at in 1..4 {
            for (new, old) in [(sums[1], sums[0]), (sums[2], sums[1])] {
                let mut torn = old;
                torn[..at].copy_from_slice(&new[..at]);
                assert!(matches_prefix_sum(&bytes, 4096, torn));
            }
        }
        assert!(matches_prefix_sum(&bytes, 4096, sums[1]));
        let mut other = sums[2];
        other[0] ^= 1;
        other[3] ^= 1;
        assert!(!matches_prefix_sum(&bytes, 4096, other));
    }
}
