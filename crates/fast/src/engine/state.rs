//! Arguments of every handler: the state of the message, its step, and the registers between them. The three types name
//! each other, so they are declared together. Nothing here depends on the handlers.

use crate::entry::DecodedEntry;
use crate::slot::DictionarySlot;
use crate::workspace::DecodeWorkspace;

/// A position in the message, or null if the exact engine must decode the message.
pub(super) type BytePtr = *const u8;

/// Runs a step and continues with the next step. The arguments are the registers of the engine: the state of the
/// message, the step, the cursor, the presence map (the first bit the highest), and the place of the next entry.
///
/// # Safety
/// - `step` is one of a block of the program that the state is of, and what follows it to the block's end does, too.
/// - From the cursor on there is memory for [`SLACK`] bytes, which the steps before the next check do not read all.
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
    /// The step's bit in the presence map, or 0 if it has no bit. For the end of a block, the bits without a meaning.
    pub mask: u64,
    /// The initial value. For a sequence, the bits of each element's entry.
    pub initial: u64,
    /// The meta word of the initial value's entry. For a group or a sequence, the meta word of the entry that ends it.
    pub beside: u64,
    /// The offset of its slot in bytes.
    pub slot: usize,
    /// The bytes of an entry if it is delivered, otherwise 0.
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

/// The position in the message and the place for its values. The state lies where the slots of the workspace begin
/// ([`HEAD`]), so that handlers need one register for both.
///
/// Its pointers point into vectors of the workspace, and into the caller's buffer or the workspace's padded copy.
/// Nobody else uses the workspace while the state lives.
#[repr(C)]
pub(super) struct EngineState {
    /// Beyond this place something is to be done before more is read: the message is over, or the buffer nearly is.
    pub check: BytePtr,
    /// The place of the next entry, between runs of steps.
    pub out: *mut DecodedEntry,
    /// After this place, there is less room for entries than a run needs.
    pub out_end: *mut DecodedEntry,
    /// The exponent of the decimal whose mantissa comes next, where an entry has it.
    pub exponent: u64,
    /// The length of the sequence that comes next.
    pub length: u64,
    /// The step at which a run paused, and its map. Null if the run reached its end.
    pub paused: *const EngineStep,
    pub map: u64,
    /// The end of the message.
    pub end: BytePtr,
    /// The address that the first byte of the message would have if the whole message were where the current part is.
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

/// The bytes that a run reads if each entity has one byte, after an entity that begins before the end: a vector's eight
/// bytes show no end.
const PAD: usize = 2 * (RUN_STEPS + 2) + 36;

/// Entries that a run needs at most: one for each step, and the ends of a sequence or group.
const ROOM: usize = RUN_STEPS + 8;

impl EngineState {
    /// Makes room for entries.
    ///
    /// # Safety
    /// The caller must have exclusive use of `self.workspace`.
    #[inline(always)]
    pub unsafe fn borrow(&mut self) {
        let workspace = self.workspace;
        // SAFETY: nobody else has `self.workspace` now, by the contract.
        unsafe { self.borrow_of(&mut *workspace, (*workspace).entries.len()) };
    }

    /// Makes room for entries of a given workspace with `len` entries. Returns the place of the next entry.
    ///
    /// # Safety
    /// The caller must pass the workspace of this state and the number of its entries.
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
    /// The caller must have called [`Self::borrow`] and must have written all entries up to `out` since.
    #[inline(always)]
    pub unsafe fn give_back(&mut self) {
        // SAFETY: `borrow` set `out` in this vector, and by the contract all entries up to it are written.
        unsafe {
            let workspace = self.workspace;
            self.give_back_to(&mut *workspace);
        }
    }

    /// Sets the length of the entries in a given workspace.
    ///
    /// # Safety
    /// The caller must uphold the contract of [`Self::give_back`] and pass the workspace of this state.
    #[inline(always)]
    pub unsafe fn give_back_to(&mut self, workspace: &mut DecodeWorkspace) {
        let entries = &mut workspace.entries;
        // SAFETY: `out` is in this vector, and all before it is written, as for `give_back`.
        unsafe { entries.set_len(self.out.offset_from_unsigned(entries.as_ptr())) };
    }

    /// Makes sure of room for a run. Returns the place of the next entry.
    ///
    /// # Safety
    /// The caller must uphold the contract of [`Self::give_back`].
    #[inline(always)]
    pub unsafe fn room(&mut self, out: *mut DecodedEntry) -> *mut DecodedEntry {
        // SAFETY: `out` is where the next entry goes, as for `give_back`.
        if out > self.out_end { unsafe { self.more_room(out) } } else { out }
    }

    /// Makes room for more entries.
    ///
    /// # Safety
    /// The caller must uphold the contract of [`Self::room`].
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

    /// Handles what is beyond [`Self::check`]. Returns null if the message is over, otherwise the place in a padded
    /// copy of the remaining bytes.
    ///
    /// # Safety
    /// The caller must pass a cursor that is inside the buffer or at its end.
    #[cold]
    #[inline(never)]
    pub unsafe fn edge(&mut self, cursor: BytePtr) -> BytePtr {
        if cursor > self.end {
            return std::ptr::null();
        }
        // SAFETY: the message extends to its end; the copy is nobody else's, and the workspace is the caller's.
        unsafe {
            let bytes_left = self.end.offset_from_unsigned(cursor);
            let padded = &mut (*self.workspace).padded_message;
            padded.clear();
            padded.reserve(bytes_left + PAD);
            std::ptr::copy_nonoverlapping(cursor, padded.as_mut_ptr(), bytes_left);
            std::ptr::write_bytes(padded.as_mut_ptr().add(bytes_left), 0x80, PAD);
            padded.set_len(bytes_left + PAD);
            let copy = padded.as_ptr();
            self.base = self.base.wrapping_add(copy.addr()).wrapping_sub(cursor.addr());
            self.end = copy.add(bytes_left);
            // After the end of the message, one byte is read at a time.
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
