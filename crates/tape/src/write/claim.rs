//! A range of the tape that one thread fills and publishes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use unitape_model::{Header, Position, frame::KIND_PAD};

use crate::disk::frames::check_frames_each;
use crate::disk::map::Segment;
use crate::error::{Error, Result};
use crate::write::shared::Core;

/// A part of a claim within one segment.
#[derive(Debug)]
pub(crate) struct Piece {
    pub segment: Arc<Segment>,
    /// Data offset in the segment.
    pub from: u64,
    pub length: u64,
    /// The rest of the segment behind the piece is empty.
    pub pad: bool,
}

/// A range of the tape given out by [`crate::Writer::claim`]: to be filled with whole frames, then published.
///
/// Dropping it unpublished makes everything behind it unreachable, so the writer refuses to go on.
#[derive(Debug)]
pub struct Claim {
    core: Arc<Core>,
    first: Piece,
    rest: Vec<Piece>,
    /// Pieces that are full, and bytes in the one that is being filled.
    full: usize,
    filled: u64,
    /// The word that publishes the claim.
    word: Option<Header>,
    last: bool,
    published: bool,
}

impl Claim {
    pub(crate) fn new(core: Arc<Core>, first: Piece, rest: Vec<Piece>) -> Self {
        let pad = Header::unstamped(KIND_PAD, 0, 0);
        for (i, piece) in std::iter::once(&first).chain(&rest).enumerate() {
            // A pad that is the claim's first word publishes it and comes last.
            if piece.pad && (i > 0 || piece.length > 0) {
                piece.segment.commit(piece.from + piece.length, pad);
            }
        }
        let word = (first.length == 0).then_some(pad);
        let mut claim = Self { core, first, rest, full: 0, filled: 0, word, last: false, published: false };
        claim.skip_full();
        claim
    }

    /// Copies whole unstamped frames to the tape; gives the position of the first of them.
    ///
    /// # Errors
    /// Bytes that are not whole frames, or more than was claimed, or other frame boundaries than the claim was
    /// told. The claim cannot be published then.
    #[inline]
    pub fn put(&mut self, frames: &[u8]) -> Result<Position> {
        self.put_each(frames, |_| {})
    }

    /// The same, with a look at the header of each frame on the way.
    ///
    /// # Errors
    /// As [`Claim::put`].
    #[inline]
    pub fn put_each(&mut self, frames: &[u8], each: impl FnMut(Header)) -> Result<Position> {
        let segment_bytes = self.first.segment.size;
        let (_, last) = check_frames_each(frames, segment_bytes, each)?;
        let position = self.position();
        let mut done = 0;
        while done < frames.len() {
            let Some(piece) = self.piece() else {
                return Err(Error::BadUnit { offset: done as u64, what: "more than was claimed" });
            };
            let room = (piece.length - self.filled) as usize;
            let rest = &frames[done..];
            let part = if rest.len() <= room { rest.len() } else { boundary(rest, room) };
            if part == 0 {
                return Err(Error::BadUnit {
                    offset: done as u64,
                    what: "not the boundary that was claimed",
                });
            }
            let hold = self.word.is_none();
            // SAFETY: part <= room, so it lies in the piece; checked to be whole frames; the range was given to
            // this claim alone by the writer and is not committed before `publish`.
            unsafe { piece.segment.put(piece.from + self.filled, &rest[..part], hold) };
            if hold {
                self.word = Some(Header::read(rest));
            }
            self.filled += part as u64;
            done += part;
            self.skip_full();
        }
        self.last = last;
        Ok(position)
    }

    /// Where the next frame will stand.
    pub fn position(&self) -> Position {
        match self.piece() {
            Some(piece) => Position(piece.segment.base + piece.from + self.filled),
            None => {
                let piece = self.rest.last().unwrap_or(&self.first);
                Position(piece.segment.base + piece.from + piece.length)
            }
        }
    }

    /// Makes the claim visible, as far as everything before it is.
    ///
    /// # Panics
    /// If it is not exactly full.
    #[inline]
    pub fn publish(mut self) {
        assert!(self.piece().is_none(), "a claim is published full");
        debug_assert!(self.last, "a claim ends with a whole unit");
        let word = self.word.expect("a full claim has a first word");
        self.first.segment.commit(self.first.from, word);
        self.published = true;
        // Release: pairs with the Acquire in `Writer::close`.
        self.core.outstanding.fetch_sub(1, Ordering::Release);
    }

    fn piece(&self) -> Option<&Piece> {
        match self.full {
            0 => Some(&self.first),
            n => self.rest.get(n - 1),
        }
    }

    fn skip_full(&mut self) {
        while self.piece().is_some_and(|piece| piece.length == self.filled) {
            self.full += 1;
            self.filled = 0;
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.published {
            self.core.raise(Error::ClaimAbandoned(Position(self.first.segment.base + self.first.from)), true);
        }
    }
}

/// Greatest frame boundary of `run` that is not beyond `limit`.
fn boundary(run: &[u8], limit: usize) -> usize {
    let mut at = 0;
    for (offset, _, frame) in unitape_model::frames(run) {
        if offset + frame.len() > limit {
            break;
        }
        at = offset + frame.len();
    }
    at
}
