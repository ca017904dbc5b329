//! Arguments of every handler: the state that all of a message share, its step, and the registers between them. The
//! three types name each other, so they are declared together; nothing here knows what any handler does.

use crate::entry::DecodedEntry;
use crate::slot::DictionarySlot;
use crate::workspace::DecodeWorkspace;

/// A place in the message; null where the exact engine is to decode it.
pub(super) type BytePtr = *const u8;

/// Does what a step says and continues with the next one. The arguments are the registers of the engine: what all of
/// the message shares, the step, the place, the presence map (the first bit the highest), and where the next entry
/// goes.
///
/// # Safety
/// - `step` is one of a block of the program that the state is of, and what follows it to the block's end does, too.
/// - From `at` on there is memory for [`SLACK`] bytes, which the steps before the next check do not read all.
/// - There is room for an entry for each step before the next pause.
///
/// `parts::enter` and `parts::resume` establish the last two before each run of steps; `StepProgram::new` the first.
pub(super) type StepHandler =
    unsafe fn(*mut EngineState, *const EngineStep, BytePtr, u64, *mut DecodedEntry) -> BytePtr;

/// An op with all that its handler needs. A cache line.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct EngineStep {
    pub run: StepHandler,
    /// The meta word of its entry.
    pub meta: u64,
    /// Its bit in the presence map, of the end those that mean nothing; none where it has none.
    pub mask: u64,
    /// The initial value; of a sequence, what each element's entry has.
    pub initial: u64,
    /// The meta word of the entry of the initial value; for a group or a sequence, that of the entry that ends it.
    pub beside: u64,
    /// Where its slot is, in bytes.
    pub slot: usize,
    /// The bytes of an entry where it is delivered, or none.
    pub advance: usize,
    /// For a field that is absent with its bit: how many steps further the next field is that differs. The bits until
    /// then are in the place of the initial value. For a group or sequence: how many steps before it the block inside
    /// begins. For a step that the exact engine does: the op.
    pub follow: u32,
    /// The exponent or length of the initial value.
    pub initial_extra: u8,
    /// There is an initial value; the block inside has a presence map.
    pub has_initial: bool,
    pub initial_long: bool,
    pub optional: bool,
}

const _: () = assert!(size_of::<EngineStep>() == 64);

/// Where the message is, where its values go. It lies where the slots of the workspace begin ([`HEAD`]), so that handlers need
/// one register for both.
///
/// Its pointers are into vectors of the workspace, which nobody else touches while it lives, and into the caller's buffer or
/// the workspace's padded copy.
#[repr(C)]
pub(super) struct EngineState {
    /// Beyond this place something is to be done before more is read: the message is over, or the buffer nearly is.
    pub check: BytePtr,
    /// Where the next entry goes, between runs of steps.
    pub out: *mut DecodedEntry,
    /// After this there is less room for entries than a run needs.
    pub out_end: *mut DecodedEntry,
    /// The exponent of the decimal whose mantissa comes next, where an entry has it.
    pub exponent: u64,
    /// The length of the sequence that comes next.
    pub length: u64,
    /// Where a run paused, and its map; null where it came to its end.
    pub paused: *const EngineStep,
    pub map: u64,
    /// Where the message ends.
    pub end: BytePtr,
    /// The first byte of the message, were all of it where the part that is read now is.
    pub base: usize,
    pub workspace: *mut DecodeWorkspace,
}

/// Slots that a state has the place of.
pub(crate) const HEAD: usize = size_of::<EngineState>().div_ceil(size_of::<DictionarySlot>());

const _: () = assert!(align_of::<EngineState>() <= align_of::<DictionarySlot>());

/// Steps before a block pauses.
pub(super) const RUN_STEPS: usize = 32;

/// More bytes than a run of steps reads: a difference of a decimal has 18, and a presence map before the run 8.
pub(super) const SLACK: usize = 18 * (RUN_STEPS + 2) + 16;

/// Bytes that a run reads where each entity has one byte, after one that begins before the end: a vector's eight
/// bytes show no end.
const PAD: usize = 2 * (RUN_STEPS + 2) + 36;

/// Entries that a run needs at most: one for each step, and the ends of a sequence or group.
const ROOM: usize = RUN_STEPS + 8;

impl EngineState {
    /// Makes room for entries.
    ///
    /// # Safety
    /// `self.workspace` is exclusively the caller's.
    #[inline(always)]
    pub unsafe fn borrow(&mut self) {
        let workspace = self.workspace;
        // SAFETY: nobody else has `self.workspace` now, by the contract.
        unsafe { self.borrow_of(&mut *workspace, (*workspace).entries.len()) };
    }

    /// Makes room for entries where the workspace is at hand, with `len` entries; returns where the next one goes.
    ///
    /// # Safety
    /// It is this one, and these are as many.
    #[inline(always)]
    pub unsafe fn borrow_of(&mut self, workspace: &mut DecodeWorkspace, len: usize) -> *mut DecodedEntry {
        let entries = &mut workspace.entries;
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

    /// Sets the length of the workspace to the entries that were written.
    ///
    /// # Safety
    /// As [`Self::borrow`], after which all up to `out` was written.
    #[inline(always)]
    pub unsafe fn give_back(&mut self) {
        // SAFETY: `borrow` set `out` in this vector, and by the contract all entries up to it are written.
        unsafe {
            let workspace = self.workspace;
            self.give_back_to(&mut *workspace);
        }
    }

    /// Sets the length where the workspace is at hand.
    ///
    /// # Safety
    /// As [`Self::give_back`]; it is this one.
    #[inline(always)]
    pub unsafe fn give_back_to(&mut self, workspace: &mut DecodeWorkspace) {
        let entries = &mut workspace.entries;
        // SAFETY: `out` is in this vector, and all before it is written, as for `give_back`.
        unsafe { entries.set_len(self.out.offset_from_unsigned(entries.as_ptr())) };
    }

    /// Makes sure of room for a run; returns where the next entry goes.
    ///
    /// # Safety
    /// As [`Self::give_back`].
    #[inline(always)]
    pub unsafe fn room(&mut self, out: *mut DecodedEntry) -> *mut DecodedEntry {
        // SAFETY: `out` is where the next entry goes, as for `give_back`.
        if out > self.out_end { unsafe { self.more_room(out) } } else { out }
    }

    /// # Safety
    /// As [`Self::room`].
    #[cold]
    #[inline(never)]
    unsafe fn more_room(&mut self, out: *mut DecodedEntry) -> *mut DecodedEntry {
        self.out = out;
        // SAFETY: `out` is where the next entry goes, and all before it is written, as for `room`.
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
    pub unsafe fn edge(&mut self, at: BytePtr) -> BytePtr {
        if at > self.end {
            return std::ptr::null();
        }
        // SAFETY: the message extends to its end; the copy is nobody else's, and the workspace is the caller's.
        unsafe {
            let left = self.end.offset_from_unsigned(at);
            let padded = &mut (*self.workspace).padded;
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
fn grow(entries: &mut Vec<DecodedEntry>) {
    entries.reserve(2 * ROOM);
}
