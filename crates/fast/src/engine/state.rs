//! What all handlers of a message share.

use super::raw::At;
use super::steps::Step;
use super::{PAD, RUN_STEPS};
use crate::decode::Decoder;
use crate::record::Entry;
use crate::slot::Slot;

/// Where the message is, where its values go. It lies where the slots of the decoder begin ([`HEAD`]), so that handlers need
/// one register for both.
///
/// Its pointers are into vectors of the decoder, which nobody else touches while it lives, and into the caller's buffer or
/// the decoder's padded copy.
#[repr(C)]
pub(super) struct State {
    /// Beyond this place something is to be done before more is read: the message is over, or the buffer nearly is.
    pub check: At,
    /// Where entries go on, between runs of steps.
    pub out: *mut Entry,
    /// Behind this there is less room for entries than a run needs.
    pub out_end: *mut Entry,
    /// Of the decimal whose mantissa comes next, where an entry has it.
    pub exponent: u64,
    /// Of the sequence that comes next.
    pub length: u64,
    /// Where a run paused, and its map; null where it came to its end.
    pub paused: *const Step,
    pub map: u64,
    /// Where the message ends.
    pub end: At,
    /// The first byte of the message, were all of it where the part that is read now is.
    pub base: usize,
    pub decoder: *mut Decoder,
}

/// Slots that a state has the place of.
pub(crate) const HEAD: usize = size_of::<State>().div_ceil(size_of::<Slot>());

const _: () = assert!(align_of::<State>() <= align_of::<Slot>());

/// Entries that a run needs at most: one for each step, and the ends of a sequence or group.
const ROOM: usize = RUN_STEPS + 8;

impl State {
    /// Makes room for entries.
    ///
    /// # Safety
    /// `self.decoder` is exclusively the caller's.
    #[inline(always)]
    pub unsafe fn borrow(&mut self) {
        let decoder = self.decoder;
        // SAFETY: the caller's.
        unsafe { self.borrow_of(&mut *decoder, (*decoder).entries.len()) };
    }

    /// The same where the decoder is at hand, and how many entries it has; where they go on.
    ///
    /// # Safety
    /// It is this one, and these are as many.
    #[inline(always)]
    pub unsafe fn borrow_of(&mut self, decoder: &mut Decoder, len: usize) -> *mut Entry {
        let entries = &mut decoder.entries;
        debug_assert_eq!(entries.len(), len);
        if entries.capacity() - len < 2 * ROOM {
            grow(entries);
        }
        // SAFETY: both are inside of what is allocated, which is 2 × ROOM at least.
        unsafe {
            self.out_end = entries.as_mut_ptr().add(entries.capacity() - ROOM);
            self.out = entries.as_mut_ptr().add(len);
        }
        self.out
    }

    /// Tells the decoder how far its entries go.
    ///
    /// # Safety
    /// As [`Self::borrow`], after which all up to `out` was written.
    #[inline(always)]
    pub unsafe fn give_back(&mut self) {
        // SAFETY: the caller's: it is behind the beginning of this vector, and what is before it is written.
        unsafe {
            let decoder = self.decoder;
            self.give_back_to(&mut *decoder);
        }
    }

    /// The same where the decoder is at hand.
    ///
    /// # Safety
    /// As [`Self::give_back`]; it is this one.
    #[inline(always)]
    pub unsafe fn give_back_to(&mut self, decoder: &mut Decoder) {
        let entries = &mut decoder.entries;
        // SAFETY: the caller's.
        unsafe { entries.set_len(self.out.offset_from_unsigned(entries.as_ptr())) };
    }

    /// Makes sure of room for a run; where entries go on.
    ///
    /// # Safety
    /// As [`Self::give_back`].
    #[inline(always)]
    pub unsafe fn room(&mut self, out: *mut Entry) -> *mut Entry {
        // SAFETY: the caller's.
        if out > self.out_end { unsafe { self.more_room(out) } } else { out }
    }

    /// # Safety
    /// As [`Self::room`].
    #[cold]
    #[inline(never)]
    unsafe fn more_room(&mut self, out: *mut Entry) -> *mut Entry {
        self.out = out;
        // SAFETY: the caller's.
        unsafe {
            self.give_back();
            self.borrow();
        }
        self.out
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
            let left = self.end.offset_from_unsigned(at);
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

#[cold]
#[inline(never)]
fn grow(entries: &mut Vec<Entry>) {
    entries.reserve(2 * ROOM);
}
