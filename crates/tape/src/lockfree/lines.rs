//! Frames on memory that is written once: commit, look, put, and the recorder's copy.
//!
//! ```text
//!          committed: never changes      given out: claims, filled by threads in any order
//!   ┌──────┬────────────┬──────┐┌──────────────────┬───────────────┬ ─ ─ ─
//!   │ H …  │ H …  │ …   │ H …  ││ 0 …  │ H …  │ … │ 0 …  │ H …    │ 0 0 0
//!   └──────┴────────────┴──────┘└──▲───────────────┴──▲────────────┴ ─ ─ ─
//!                                  a claim's first header word, stored last
//! ```
//!
//! Invariant: a header word that is not zero is stored after every other byte of its frame. The first word of a
//! claim is stored after every other byte of the whole claim, with Release; so a reader that finds it with Acquire
//! may read all of the claim, through plain memory.
//!
//! Invariant: a reader never looks past a word that is zero. It walks from frame to frame, so the words inside a claim
//! need no order of their own, and claims may be published in any order.
//!
//! Invariant: committed bytes never change, so that they can be lent and copied without looking again.

use std::sync::atomic::Ordering;

use unitape_model::{FrameHeader, LINE, Position, frame::KIND_PAD};

use super::{SharedMemory, flaw};

/// The meaning of a header word at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderWordState {
    /// Nothing is committed there yet.
    Nothing,
    /// A frame that lies within the memory.
    Frame(FrameHeader),
    /// The rest of the memory is empty.
    Pad,
    /// Neither zero nor anything that may be there.
    Damage(FrameHeader),
}

/// Judges `header`, found at `position` with `room` bytes up to the end of its memory.
#[inline]
fn classify(header: FrameHeader, position: Position, room: u64) -> HeaderWordState {
    if header.is_at(position) {
        let length = header.len_bytes() as u64;
        if header.kind() == KIND_PAD && length == 0 {
            HeaderWordState::Pad
        } else if length > 0 && length <= room && header.kind() > KIND_PAD {
            HeaderWordState::Frame(header)
        } else {
            HeaderWordState::Damage(header)
        }
    } else if header.0 == 0 {
        HeaderWordState::Nothing
    } else {
        HeaderWordState::Damage(header)
    }
}

/// Returns the state of the header word at offset `offset` of `size` bytes that begin at position `base`. If it is a
/// frame, the whole frame may be read.
#[inline]
pub fn header_state<const FLAW: u8>(
    memory: &impl SharedMemory,
    base: Position,
    size: u64,
    offset: u64,
) -> HeaderWordState {
    // Acquire: pairs with the Release in `commit` and `copy_in`.
    let order = if FLAW == flaw::RELAXED_LOOK { Ordering::Relaxed } else { Ordering::Acquire };
    classify(FrameHeader(memory.load(offset, order)), base.plus(offset), size - offset)
}

/// Walks committed frames from offset `at` of the memory that begins at position `base`. Stops at the first frame that
/// begins beyond `limits` or that `visit` refuses, or at the end of the frames, and returns that offset. `visit` gets
/// the header and the offsets of the frame and of its end. The result is that of [`header_state`] at each frame, without its
/// cost.
#[inline(always)]
pub fn walk_frames<M: SharedMemory>(
    memory: &M,
    base: Position,
    mut at: u64,
    limits: WalkLimits,
    mut visit: impl FnMut(FrameHeader, u64, u64) -> bool,
) -> u64 {
    let mut stamp = base.plus(at).stamp();
    while at < limits.begin_before {
        // Acquire: pairs with the Release in `commit` and `copy_in`.
        let header = FrameHeader(memory.load(at, Ordering::Acquire));
        let lines = header.lines();
        let frame_end = at + u64::from(lines) * LINE as u64;
        let is_frame = header.stamp() == stamp
            && lines > 0
            && frame_end <= limits.memory_bytes
            && header.kind() > KIND_PAD;
        if !is_frame || !visit(header, at, frame_end) {
            break;
        }
        at = frame_end;
        // The stamp of the next place, see `Position::stamp`: 31 bits that go round, and the mark.
        stamp = stamp.wrapping_add(u32::from(lines)) | COMMITTED;
    }
    at
}

/// The mark that every stamp has.
const COMMITTED: u32 = Position(0).stamp();

/// The limits of a [`walk_frames`].
#[derive(Clone, Copy, Debug)]
pub struct WalkLimits {
    /// No frame that begins here or after it is visited.
    pub begin_before: u64,
    /// Bytes of the memory.
    pub memory_bytes: u64,
}

/// Publishes everything written from offset `offset` on by storing its header word.
#[inline]
pub fn commit<const FLAW: u8>(memory: &impl SharedMemory, base: Position, offset: u64, header: FrameHeader) {
    // Release: pairs with the Acquire in `header_state`.
    let order = if FLAW == flaw::RELAXED_COMMIT { Ordering::Relaxed } else { Ordering::Release };
    memory.store(offset, header.with_stamp(base.plus(offset)).0, order);
}

/// Writes a header word that is reached only through an earlier one, which is committed later.
#[inline]
pub fn stamp_header(memory: &impl SharedMemory, base: Position, offset: u64, header: FrameHeader) {
    // Relaxed: not reachable before the first header of its claim, which `commit` releases.
    memory.store(offset, header.with_stamp(base.plus(offset)).0, Ordering::Relaxed);
}

/// Copies frames to offset `start`, stamping each; leaves out the first header if `hold` is set.
///
/// # Safety
/// - `frames` is a run of whole frames, and the range lies in the memory, at a multiple of the line.
/// - Nobody else writes to the range, and it is not committed.
#[inline]
pub unsafe fn write_frames<const FLAW: u8>(
    memory: &impl SharedMemory,
    base: Position,
    start: u64,
    frames: &[u8],
    hold: bool,
) {
    let mut offset = 0;
    while offset < frames.len() {
        let header = FrameHeader::read(&frames[offset..]);
        let length = header.len_bytes();
        let frame_offset = start + offset as u64;
        // SAFETY: in the memory and the caller's alone by its duties; not reachable before a first word that is
        // not stored yet (`hold`), or before one that `commit` stores later.
        unsafe { memory.fill(frame_offset + 8, &frames[offset + 8..offset + length]) };
        if FLAW == flaw::FIRST_WORD_FIRST || !(hold && offset == 0) {
            stamp_header(memory, base, frame_offset, header);
        }
        offset += length;
    }
}

/// Copies committed bytes unchanged to offset `offset`, the first word last.
///
/// # Safety
/// - The range lies in the memory, `offset` and the length are multiples of the line, `bytes` is not empty.
/// - Nobody else writes to the range, and it is not committed in this memory.
#[inline]
pub unsafe fn copy_in<const FLAW: u8>(memory: &impl SharedMemory, offset: u64, bytes: &[u8]) {
    // SAFETY: the range is the caller's alone, and nothing in it is reachable before its first word.
    unsafe { memory.fill(offset + 8, &bytes[8..]) };
    // Release: pairs with the Acquire in `header_state`.
    let order = if FLAW == flaw::RELAXED_COMMIT { Ordering::Relaxed } else { Ordering::Release };
    memory.store(offset, FrameHeader::read(bytes).0, order);
}
