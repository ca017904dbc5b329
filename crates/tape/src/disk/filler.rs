//! The filler: the bytes of the first segment before the origin of a tape that begins within a segment.
//!
//! ```text
//!  segment k   │ filler, 65535 lines │ filler … │ filler, LAST │ first unit │ …
//!              base                                            origin
//! ```
//!
//! A filler is a header word of the kind of a pad that has lines, and zeros. It counts as bookkeeping, so it changes no
//! ordinal, and only its last part ends a unit. Walks over a segment pass over it as over a frame; readers begin
//! after it and never give it out.

use unitape_model::{FrameHeader, LINE, Position, flags, frame::KIND_PAD};

/// Bytes of the longest filler: a header word counts no more lines.
const FILLER_BYTES_MAX: u64 = u16::MAX as u64 * LINE as u64;

/// Iterates over the fillers of the first `bytes` of a segment: the data offset and the header of each, in order.
pub(crate) fn fillers(bytes: u64) -> impl DoubleEndedIterator<Item = (u64, FrameHeader)> {
    (0..bytes.div_ceil(FILLER_BYTES_MAX)).map(move |i| {
        let offset = i * FILLER_BYTES_MAX;
        let lines = (bytes - offset).min(FILLER_BYTES_MAX) / LINE as u64;
        let last_flag = if offset + lines * LINE as u64 == bytes { flags::LAST } else { 0 };
        (offset, FrameHeader::new_unstamped(KIND_PAD, flags::META | last_flag, lines as u16))
    })
}

/// Returns whether `header`, found at data offset `offset` of a segment of `size` bytes that begins at `base`, is the
/// header of a filler.
pub(crate) fn is_filler(header: FrameHeader, base: Position, offset: u64, size: u64) -> bool {
    let length = header.len_bytes() as u64;
    header.kind() == KIND_PAD
        && header.flags() & !flags::LAST == flags::META
        && header.is_at(base.plus(offset))
        && offset.is_multiple_of(FILLER_BYTES_MAX)
        && length > 0
        && offset + length < size
        && (header.is_last() || length == FILLER_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A filler that a header word could not count would end at a place where no frame is.
    #[test]
    fn fillers_fill_exactly_what_comes_before_the_origin() {
        let (size, base) = (64u64 << 20, Position(3 * (64 << 20)));
        for bytes in [64, 4096, FILLER_BYTES_MAX - 64, FILLER_BYTES_MAX, FILLER_BYTES_MAX + 64, size - 64] {
            let all: Vec<_> = fillers(bytes).collect();
            let mut next = 0;
            for (i, &(offset, header)) in all.iter().enumerate() {
                assert_eq!(offset, next);
                assert_eq!(header.is_last(), i + 1 == all.len());
                let header = header.with_stamp(base.plus(offset));
                assert!(is_filler(header, base, offset, size), "{bytes}: {header}");
                assert!(
                    !is_filler(header, base, offset + 64, size)
                        && !is_filler(header, base.plus(size), offset, size)
                );
                next += header.len_bytes() as u64;
            }
            assert_eq!(next, bytes);
        }
        assert_eq!(fillers(0).count(), 0);
        // The pad at the end of a segment, whole and with a flipped bit.
        let pad = FrameHeader::new_unstamped(KIND_PAD, 0, 0).with_stamp(base);
        (0..64).for_each(|bit| assert!(!is_filler(FrameHeader(pad.0 ^ 1 << bit), base, 0, size)));
    }
}
