//! Checks of the frames that a caller appends: they must be complete, and must not have a kind that the tape reserves.

use unitape_model::{FrameHeader, LINE, frame::KIND_PAD};

use crate::error::{Error, Result};

/// Checks that `run` is whole frames that may be appended. Returns the number of non-META frames, and whether the last
/// frame ends a unit.
#[inline]
pub(crate) fn check_frames(run: &[u8], segment_bytes: u64) -> Result<(u64, bool)> {
    check_frames_each(run, segment_bytes, |_| {})
}

/// Checks the frames of `run` as [`check_frames`] does, and passes each header to `each`.
#[inline]
pub(crate) fn check_frames_each(
    run: &[u8],
    segment_bytes: u64,
    mut each: impl FnMut(FrameHeader),
) -> Result<(u64, bool)> {
    let mut offset = 0;
    let mut ordinals = 0;
    let mut has_last = false;
    while offset < run.len() {
        let bad_unit = |reason| Err(Error::BadUnit { offset: offset as u64, reason });
        if run.len() - offset < LINE {
            return bad_unit("less than a line is left");
        }
        let header = FrameHeader::read(&run[offset..]);
        if header.lines() == 0 || header.kind() <= KIND_PAD {
            return bad_unit("no frame, or one of a kind that is the tape's own");
        }
        if header.len_bytes() > run.len() - offset {
            return bad_unit("the frame is longer than what is given");
        }
        if header.len_bytes() as u64 > segment_bytes {
            return bad_unit("the frame is longer than a segment");
        }
        each(header);
        ordinals += u64::from(!header.is_meta());
        has_last = header.is_last();
        offset += header.len_bytes();
    }
    Ok((ordinals, has_last))
}

/// Returns the header of a run that is a single frame of at most four lines and a whole unit. Returns `None` for any
/// other run, right or wrong.
#[inline(always)] // a handful of instructions, in every append
pub(crate) fn whole_unit(run: &[u8]) -> Option<FrameHeader> {
    // More lines are copied by a call, for which registers are put aside in any case.
    if !(LINE..=4 * LINE).contains(&run.len()) {
        return None;
    }
    let header = FrameHeader::read(run);
    let is_whole = header.len_bytes() == run.len() && header.is_last() && header.kind() > KIND_PAD;
    is_whole.then_some(header)
}
