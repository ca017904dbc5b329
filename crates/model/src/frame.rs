//! The frame: what the tape carries.
//!
//! A frame is a whole number of 64-byte lines at a *position*, the byte offset from the start of the tape.
//! Its first eight bytes are the header word:
//!
//! ```text
//!  63      56 55      48 47               32 31                               0
//! ┌──────────┬──────────┬───────────────────┬──────────────────────────────────┐
//! │  flags   │   kind   │  lines (of 64 B)  │ stamp = 1<<31 | (position/64)    │
//! └──────────┴──────────┴───────────────────┴──────────────────────────────────┘
//! ```
//!
//! The word is the commit: it is stored last, with Release, and a reader that sees the stamp which belongs
//! to the position it looks at may read everything else in the frame. Fresh memory is zero and no stamp is
//! zero, and because the stamp names the position, bytes of another place or of an earlier lap never pass
//! for a frame. Why one word and not a stamp in every line: `docs/decisions/0001-frame.md`.

/// Size of a line in bytes; frames are made of whole lines and are at multiples of it.
pub const LINE: usize = 64;

/// Place on a tape: bytes from its start, a multiple of [`LINE`]. Ours, unlike [`crate::SequenceNumber`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

impl Position {
    /// Returns the 32-bit stamp of a frame committed at this position; never zero.
    #[inline]
    pub const fn stamp(self) -> u32 {
        0x8000_0000 | ((self.0 >> 6) as u32 & 0x7fff_ffff)
    }

    /// Returns the position `bytes` further on.
    #[inline]
    pub const fn plus(self, bytes: u64) -> Self {
        Self(self.0 + bytes)
    }
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Frame flags, one bit each.
pub mod flags {
    /// The last frame of its source message: the unit of commit ends here.
    pub const LAST: u8 = 1 << 0;
    /// Appended out of its time order (a late line, a retried quarantine).
    pub const LATE: u8 = 1 << 1;
    /// Bookkeeping (definitions, progress): hidden from readers of events and not counted in the ordinal.
    pub const META: u8 = 1 << 2;
    /// Part of a snapshot, not a change.
    pub const SNAPSHOT: u8 = 1 << 3;
    /// The frame has an extension after its fixed part.
    pub const EXT: u8 = 1 << 4;
    /// The event's time leads its receive time, or the time of the other feeds, by more than the limit: the merge did
    /// not believe it.
    pub const CLOCK_AHEAD: u8 = 1 << 5;
}

/// `kind` of the frame that says: the rest of this segment is empty, continue in the next one.
pub const KIND_PAD: u8 = 1;

/// The header word of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct FrameHeader(pub u64);

impl FrameHeader {
    /// Makes a header without a stamp, for a frame whose position is not yet known.
    #[inline]
    pub const fn new_unstamped(kind: u8, flags: u8, lines: u16) -> Self {
        Self((flags as u64) << 56 | (kind as u64) << 48 | (lines as u64) << 32)
    }

    /// Returns the same header with the stamp of `position`.
    #[inline]
    pub const fn with_stamp(self, position: Position) -> Self {
        Self(self.0 & !0xffff_ffff | position.stamp() as u64)
    }

    /// Returns whether this header was committed at `position`.
    #[inline]
    pub const fn is_at(self, position: Position) -> bool {
        self.stamp() == position.stamp()
    }

    /// Returns the stamp; zero if the frame is not committed.
    #[inline]
    pub const fn stamp(self) -> u32 {
        self.0 as u32
    }

    /// Returns the length in lines; zero only for a pad.
    #[inline]
    pub const fn lines(self) -> u16 {
        (self.0 >> 32) as u16
    }

    /// Returns the length in bytes.
    #[inline]
    pub const fn len_bytes(self) -> usize {
        self.lines() as usize * LINE
    }

    /// Returns the kind byte: [`KIND_PAD`] or a [`crate::EventKind`].
    #[inline]
    pub const fn kind(self) -> u8 {
        (self.0 >> 48) as u8
    }

    /// Returns the flag bits of [`flags`].
    #[inline]
    pub const fn flags(self) -> u8 {
        (self.0 >> 56) as u8
    }

    /// Returns this header with `bits` set as well.
    #[inline]
    pub const fn with_flags(self, bits: u8) -> Self {
        Self(self.0 | (bits as u64) << 56)
    }

    /// Returns whether the unit of commit ends with this frame.
    #[inline]
    pub const fn is_last(self) -> bool {
        self.flags() & flags::LAST != 0
    }

    /// Returns whether the frame is bookkeeping and not an event.
    #[inline]
    pub const fn is_meta(self) -> bool {
        self.flags() & flags::META != 0
    }

    /// Reads the header from the first eight bytes of a frame.
    ///
    /// # Panics
    /// Panics if `frame` is shorter than eight bytes.
    #[inline]
    pub fn read(frame: &[u8]) -> Self {
        Self(u64::from_le_bytes(frame[..8].try_into().expect("eight bytes")))
    }

    /// Writes the header into the first eight bytes of `frame`.
    ///
    /// # Panics
    /// Panics if `frame` is shorter than eight bytes.
    #[inline]
    pub fn write(self, frame: &mut [u8]) {
        frame[..8].copy_from_slice(&self.0.to_le_bytes());
    }
}

/// As a part of a sentence.
impl std::fmt::Display for FrameHeader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (kind, flags, lines) = (self.kind(), self.flags(), self.lines());
        write!(f, "kind {kind}, flags {flags:#04x}, {lines} lines and stamp {:#010x}", self.stamp())
    }
}

impl std::fmt::Debug for FrameHeader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Header {{ kind {}, flags {:#04x}, lines {}, stamp {:#010x} }}",
            self.kind(),
            self.flags(),
            self.lines(),
            self.stamp()
        )
    }
}

/// Iterates over the frames in a run of whole frames, such as a worker's arena.
///
/// Yields `(offset_bytes, header, frame)`. Stops at a frame that does not fit, which in a run that we wrote
/// ourselves cannot be.
pub fn frames(run: &[u8]) -> impl Iterator<Item = (usize, FrameHeader, &[u8])> {
    let mut next_offset = 0;
    std::iter::from_fn(move || {
        let run_left = run.get(next_offset..).filter(|r| r.len() >= LINE)?;
        let header = FrameHeader::read(run_left);
        let frame = run_left.get(..header.len_bytes()).filter(|f| !f.is_empty())?;
        let offset = next_offset;
        next_offset += frame.len();
        Some((offset, header, frame))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stamp of zero would make fresh memory look committed.
    #[test]
    fn stamps_are_never_zero_and_differ_between_neighbours() {
        for line in [0, 1, 2, 0x7fff_ffff, 0x8000_0000, u64::MAX >> 6] {
            let p = Position(line << 6);
            assert_ne!(p.stamp(), 0);
            assert_ne!(p.stamp(), Position(p.0.wrapping_add(64)).stamp());
        }
    }

    #[test]
    fn header_keeps_its_parts() {
        let h = FrameHeader::new_unstamped(42, flags::LAST | flags::EXT, 65535).with_stamp(Position(640));
        assert_eq!((h.kind(), h.flags(), h.lines()), (42, flags::LAST | flags::EXT, 65535));
        assert!(h.is_at(Position(640)) && !h.is_at(Position(704)) && h.is_last());
    }
}
