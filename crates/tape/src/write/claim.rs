//! A range of the tape that one thread fills and publishes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use unitape_model::{FrameHeader, Position, frame::KIND_PAD};

use crate::disk::frames::check_frames_each;
use crate::disk::map::MappedSegment;
use crate::error::{Error, Result};
use crate::write::shared::SharedWriterState;

/// A part of a claim within one segment.
#[derive(Debug)]
pub(crate) struct ClaimPiece {
    pub segment: Arc<MappedSegment>,
    /// Data offset in the segment.
    pub data_offset: u64,
    pub length: u64,
    /// The rest of the segment after the piece is empty.
    pub needs_pad: bool,
}

/// A range of the tape given out by [`crate::Writer::claim`]: to be filled with whole frames, then published.
///
/// Dropping it unpublished makes everything after it unreachable, so the writer refuses to continue.
#[derive(Debug)]
pub struct Claim {
    core: Arc<SharedWriterState>,
    first_piece: ClaimPiece,
    more_pieces: Vec<ClaimPiece>,
    /// Number of full pieces, and bytes in the piece that is being filled.
    full_pieces: usize,
    filled_bytes: u64,
    /// The word that publishes the claim.
    publishing_word: Option<FrameHeader>,
    is_last: bool,
    is_published: bool,
    /// Frames on the way into the file, where they go there by calls.
    staged_frames: Option<StagedFrames>,
}

/// Stamped frames that follow the bytes already in the file, for the piece that is being filled.
#[derive(Debug, Default)]
pub(crate) struct StagedFrames(Vec<u8>);

/// Properties of the first and the last frame that are staged.
#[derive(Clone, Copy, Debug)]
struct StagedEnds {
    /// The first header word stays zero: it is stored last, and commits the claim.
    hold: bool,
    /// The frames fill the piece, and all of them go into the file.
    fills_piece: bool,
}

/// Bytes that are given to the system at once: few enough to be near when it copies them.
const STAGED_BYTES: usize = 64 << 10;

impl Claim {
    pub(crate) fn new(
        core: Arc<SharedWriterState>,
        first: ClaimPiece,
        rest: Vec<ClaimPiece>,
        by_call: bool,
    ) -> Self {
        let pad = FrameHeader::new_unstamped(KIND_PAD, 0, 0);
        for (i, piece) in std::iter::once(&first).chain(&rest).enumerate() {
            // A pad that is the claim's first word publishes it and comes last.
            if piece.needs_pad && (i > 0 || piece.length > 0) {
                piece.segment.commit(piece.data_offset + piece.length, pad);
            }
        }
        let word = (first.length == 0).then_some(pad);
        let staged = by_call.then(|| core.stage());
        let mut claim = Self {
            core,
            first_piece: first,
            more_pieces: rest,
            full_pieces: 0,
            filled_bytes: 0,
            publishing_word: word,
            is_last: false,
            is_published: false,
            staged_frames: staged,
        };
        claim.skip_full();
        claim
    }

    /// Copies whole unstamped frames to the tape and returns the position of the first one.
    ///
    /// # Errors
    /// Fails if the bytes are no whole frames, exceed the claim, or have other frame boundaries than those passed to
    /// the claim. Then the claim cannot be published.
    #[inline]
    pub fn write_frames(&mut self, frames: &[u8]) -> Result<Position> {
        self.write_frames_each(frames, |_| {})
    }

    /// Copies frames to the tape as [`Claim::write_frames`] does, and passes each header to `each`.
    ///
    /// # Errors
    /// Fails as [`Claim::write_frames`] does.
    #[inline]
    pub fn write_frames_each(&mut self, frames: &[u8], each: impl FnMut(FrameHeader)) -> Result<Position> {
        if !self.core.fork.is_ours() {
            return self.refuse_child();
        }
        let segment_bytes = self.first_piece.segment.data_bytes;
        let (_, last) = check_frames_each(frames, segment_bytes, each)?;
        let position = self.position();
        let mut offset = 0;
        while offset < frames.len() {
            let Some(piece) = nth_piece(&self.first_piece, &self.more_pieces, self.full_pieces) else {
                return Err(Error::BadUnit { offset: offset as u64, reason: "more than was claimed" });
            };
            let room = (piece.length - self.filled_bytes) as usize;
            let frames_left = &frames[offset..];
            let part =
                if frames_left.len() <= room { frames_left.len() } else { frame_boundary(frames_left, room) };
            if part == 0 {
                return Err(Error::BadUnit {
                    offset: offset as u64,
                    reason: "not the boundary that was claimed",
                });
            }
            let hold = self.publishing_word.is_none();
            let data_offset = piece.data_offset + self.filled_bytes;
            let fills_piece = part == room;
            match &mut self.staged_frames {
                // SAFETY: part <= room, so it lies in the piece; checked to be whole frames; the range was given to
                // this claim alone by the writer and is not committed before `publish`.
                None => unsafe { piece.segment.write_frames(data_offset, &frames_left[..part], hold) },
                Some(staged) => staged.write_frames(
                    &piece.segment,
                    data_offset,
                    &frames_left[..part],
                    StagedEnds { hold, fills_piece },
                )?,
            }
            if hold {
                self.publishing_word = Some(FrameHeader::read(frames_left));
            }
            self.filled_bytes += part as u64;
            offset += part;
            self.skip_full();
        }
        self.is_last = last;
        Ok(position)
    }

    /// Returns the position of the next frame.
    pub fn position(&self) -> Position {
        match self.current_piece() {
            Some(piece) => piece.segment.base_position.plus(piece.data_offset + self.filled_bytes),
            None => {
                let piece = self.more_pieces.last().unwrap_or(&self.first_piece);
                piece.segment.base_position.plus(piece.data_offset + piece.length)
            }
        }
    }

    /// Makes the claim visible, as far as everything before it is. In a child that was forked it does nothing.
    ///
    /// # Panics
    /// Panics if the claim is not exactly full.
    #[inline]
    pub fn publish(mut self) {
        assert!(self.current_piece().is_none(), "a claim is published full");
        debug_assert!(self.is_last, "a claim ends with a whole unit");
        let word = self.publishing_word.expect("a full claim has a first word");
        if !self.core.fork.is_ours() {
            return;
        }
        self.first_piece.segment.commit(self.first_piece.data_offset, word);
        self.is_published = true;
        if let Some(staged) = self.staged_frames.take() {
            self.core.unstage(staged);
        }
        // Release: pairs with the Acquire in `Writer::close`.
        self.core.outstanding.fetch_sub(1, Ordering::Release);
    }

    /// Returns the error of a forked child process.
    #[cold]
    fn refuse_child(&self) -> Result<Position> {
        self.core.fork.check_process().map(|()| self.position())
    }

    fn current_piece(&self) -> Option<&ClaimPiece> {
        nth_piece(&self.first_piece, &self.more_pieces, self.full_pieces)
    }

    fn skip_full(&mut self) {
        while self.current_piece().is_some_and(|piece| piece.length == self.filled_bytes) {
            self.full_pieces += 1;
            self.filled_bytes = 0;
        }
    }
}

impl StagedFrames {
    /// Stages whole frames for data offset `data_offset` and stamps them. `ends` says whether the first header is left
    /// zero, and whether the piece is complete. Large or complete pieces are written to the file.
    ///
    /// The file's pages are the mapping's pages. A reader that finds the word that `publish` stores in mapped memory
    /// also sees the bytes that the call has written: the call ends before that store, and the store releases it.
    fn write_frames(
        &mut self,
        segment: &MappedSegment,
        data_offset: u64,
        frames: &[u8],
        ends: StagedEnds,
    ) -> Result<()> {
        let StagedEnds { hold, fills_piece } = ends;
        let bytes = &mut self.0;
        let mut offset = 0;
        while offset < frames.len() {
            let begin = bytes.len();
            let piece_offset = data_offset + offset as u64 - begin as u64;
            let room = STAGED_BYTES.saturating_sub(begin);
            let frames_left = &frames[offset..];
            // At least a frame, and of a long one all of it.
            let part = match frame_boundary(frames_left, room) {
                0 if begin == 0 => FrameHeader::read(frames_left).len_bytes(),
                0 => {
                    segment.write_bytes(piece_offset, bytes)?;
                    bytes.clear();
                    continue;
                }
                part => part,
            };
            bytes.extend_from_slice(&frames_left[..part]);
            let mut frame = begin;
            while frame < bytes.len() {
                let header = FrameHeader::read(&bytes[frame..]);
                header
                    .with_stamp(segment.base_position.plus(piece_offset + frame as u64))
                    .write(&mut bytes[frame..]);
                frame += header.len_bytes();
            }
            if hold && offset == 0 {
                FrameHeader(0).write(&mut bytes[begin..]);
            }
            offset += part;
        }
        if fills_piece {
            segment.write_bytes(data_offset + offset as u64 - bytes.len() as u64, bytes)?;
            bytes.clear();
        }
        Ok(())
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // In a child that was forked the claim is its parent's.
        if !self.is_published && self.core.fork.check_process().is_ok() {
            self.core.raise(
                Error::ClaimAbandoned(
                    self.first_piece.segment.base_position.plus(self.first_piece.data_offset),
                ),
                true,
            );
        }
    }
}

/// Returns piece `n` of the claim.
fn nth_piece<'p>(first: &'p ClaimPiece, rest: &'p [ClaimPiece], n: usize) -> Option<&'p ClaimPiece> {
    match n {
        0 => Some(first),
        n => rest.get(n - 1),
    }
}

/// Returns the greatest frame boundary of `run` that is not beyond `limit`.
fn frame_boundary(run: &[u8], limit: usize) -> usize {
    let mut last_boundary = 0;
    for (offset, _, frame) in unitape_model::frames(run) {
        if offset + frame.len() > limit {
            break;
        }
        last_boundary = offset + frame.len();
    }
    last_boundary
}
