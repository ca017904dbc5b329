//! What all handlers of a message share.

use super::raw::At;
use super::steps::{Block, Step};
use super::{PAD, RUN_STEPS};
use crate::fast::decode::Decoder;
use crate::fast::record::Entry;
use crate::fast::slot::{Slot, Undo};

/// Where the message is, where its values go.
///
/// Its pointers are into vectors of the decoder, which nobody else touches while it lives, and into the caller's buffer or
/// the decoder's padded copy.
pub(super) struct State {
    pub decoder: *mut Decoder,
    pub slots: *mut Slot,
    /// Of the dictionaries, where a slot has it.
    pub epoch: u64,
    pub blocks: *const Block,
    pub steps: *const Step,
    /// Beyond this place something is to be done before more is read: the message is over, or the buffer nearly is.
    pub check: At,
    /// Where the message ends.
    pub end: At,
    /// The first byte of the message, were all of it where the part that is read now is.
    pub base: usize,
    /// Of the decimal whose mantissa comes next, where an entry has it.
    pub exponent: u64,
    /// Of the sequence that comes next.
    pub length: u64,
    /// Where entries and things to undo go on, between runs of steps.
    pub out: *mut Entry,
    pub undo: *mut Undo,
    /// Behind these there is less than a run needs.
    pub out_end: *mut Entry,
    pub undo_end: *mut Undo,
    /// Where a run paused, and its map; null where it came to its end.
    pub paused: *const Step,
    pub map: u64,
}

/// Entries and things to undo that a run needs at most: one for each step, and the ends of a sequence or group.
const ROOM: usize = RUN_STEPS + 8;

impl State {
    /// Takes the decoder's vectors as they are.
    ///
    /// # Safety
    /// `self.decoder` is exclusively the caller's.
    pub unsafe fn borrow(&mut self) {
        // SAFETY: the caller's.
        let decoder = unsafe { &mut *self.decoder };
        decoder.entries.reserve(2 * ROOM);
        decoder.undo.reserve(2 * ROOM);
        self.slots = decoder.slots.as_mut_ptr();
        self.epoch = u64::from(decoder.epoch) << 16;
        let (entries, undo) = (&mut decoder.entries, &mut decoder.undo);
        // SAFETY: both are inside of what is allocated, which is 2 × ROOM at least.
        unsafe {
            self.out = entries.as_mut_ptr().add(entries.len());
            self.out_end = entries.as_mut_ptr().add(entries.capacity() - ROOM);
            self.undo = undo.as_mut_ptr().add(undo.len());
            self.undo_end = undo.as_mut_ptr().add(undo.capacity() - ROOM);
        }
    }

    /// Tells the decoder's vectors what was written.
    ///
    /// # Safety
    /// As [`Self::borrow`], after which all up to `out` and `undo` was written.
    pub unsafe fn give_back(&mut self) {
        // SAFETY: the caller's: both are behind the beginnings of these vectors, and what is before them is written.
        unsafe {
            let decoder = &mut *self.decoder;
            decoder.entries.set_len(self.out.offset_from(decoder.entries.as_ptr()) as usize);
            decoder.undo.set_len(self.undo.offset_from(decoder.undo.as_ptr()) as usize);
        }
    }

    /// Makes sure of room for a run.
    ///
    /// # Safety
    /// As [`Self::give_back`].
    #[inline(always)]
    pub unsafe fn room(&mut self) {
        if self.out > self.out_end || self.undo > self.undo_end {
            // SAFETY: the caller's.
            unsafe { self.more_room() }
        }
    }

    /// # Safety
    /// As [`Self::room`].
    #[cold]
    #[inline(never)]
    unsafe fn more_room(&mut self) {
        // SAFETY: the caller's.
        unsafe {
            self.give_back();
            self.borrow();
        }
    }

    /// Beyond [`Self::check`]: null where the message is over, otherwise the place in a padded copy of what is left.
    ///
    /// # Safety
    /// `at` is inside the buffer, or at its end.
    #[cold]
    #[inline(never)]
    pub unsafe fn edge(&mut self, at: At) -> At {
        if at > self.end {
            return std::ptr::null();
        }
        // SAFETY: the message goes on to its end; the copy is nobody else's, and the decoder is the caller's.
        unsafe {
            let left = self.end.offset_from(at) as usize;
            let padded = &mut (*self.decoder).padded;
            padded.clear();
            padded.reserve(left + PAD);
            std::ptr::copy_nonoverlapping(at, padded.as_mut_ptr(), left);
            std::ptr::write_bytes(padded.as_mut_ptr().add(left), 0x80, PAD);
            padded.set_len(left + PAD);
            let copy = padded.as_ptr();
            self.base = self.base.wrapping_add(copy.addr()).wrapping_sub(at.addr());
            self.end = copy.add(left);
            // Where the message is over one byte is read at a time.
            self.check = self.end;
            copy
        }
    }
}
