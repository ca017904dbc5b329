//! Parts around values: groups, sequences, the beginnings and ends of runs; and the steps that the exact engine does.

use super::raw::{STOPS, give_up, go_on, groups, length, read_word};
use super::state::{BytePtr, EngineState, EngineStep};
use crate::entry::DecodedEntry;
use crate::exact;

/// Reads a presence map of up to eight bytes, with its first bit the highest. Returns `None` if the map is longer or
/// not in its shortest form.
///
/// # Safety
/// The caller must pass a cursor with eight readable bytes.
#[inline(always)]
pub(super) unsafe fn map(cursor: BytePtr) -> Option<(u64, BytePtr)> {
    // SAFETY: `cursor` has eight bytes, by the contract.
    unsafe {
        let first_byte = *cursor;
        if first_byte >= 0x80 {
            return Some((u64::from(first_byte) << 57, cursor.add(1)));
        }
        let second = *cursor.add(1);
        if second > 0x80 {
            return Some((u64::from(first_byte) << 57 | u64::from(second & 0x7f) << 50, cursor.add(2)));
        }
        long_map(cursor)
    }
}

/// Reads a presence map of more than two bytes.
///
/// # Safety
/// The caller must uphold the contract of [`map`].
#[inline(never)]
unsafe fn long_map(cursor: BytePtr) -> Option<(u64, BytePtr)> {
    // SAFETY: `cursor` has eight bytes, by the contract.
    unsafe {
        let word = read_word(cursor);
        let stops = word & STOPS;
        if stops == 0 {
            return None;
        }
        let n = length(stops);
        let bits = groups::<false>(word.swap_bytes() >> (64u32.wrapping_sub(8 * n) & 63));
        // The last byte has no set bit.
        if bits & 0x7f == 0 {
            return None;
        }
        Some((bits << (64u32.wrapping_sub(7 * n) & 63), cursor.add(n as usize)))
    }
}

/// Reads a template id, which mostly has one or two bytes.
///
/// # Safety
/// The caller must pass a cursor with eight readable bytes.
#[inline(always)]
pub(super) unsafe fn id(cursor: BytePtr) -> Option<(u32, BytePtr)> {
    // SAFETY: `cursor` has eight bytes, by the contract.
    unsafe {
        let (first, second) = (*cursor, *cursor.add(1));
        if first >= 0x80 {
            return Some((u32::from(first & 0x7f), cursor.add(1)));
        }
        if first != 0 && second >= 0x80 {
            return Some((u32::from(first) << 7 | u32::from(second & 0x7f), cursor.add(2)));
        }
        long_id(cursor)
    }
}

/// Reads a template id of up to five bytes.
///
/// # Safety
/// The caller must uphold the contract of [`id`].
#[inline(never)]
unsafe fn long_id(cursor: BytePtr) -> Option<(u32, BytePtr)> {
    // SAFETY: `cursor` has eight bytes, by the contract.
    let word = unsafe { read_word(cursor) };
    let stops = word & STOPS;
    let n = length(stops);
    // Five bytes have 35 bits.
    if stops == 0 || n > 5 || word as u8 == 0 {
        return None;
    }
    let id = groups::<false>(word.swap_bytes() >> (64 - 8 * n));
    // SAFETY: `cursor` has eight bytes, by the contract.
    Some((u32::try_from(id).ok()?, unsafe { cursor.add(n as usize) }))
}

/// Enters a group or an element: decodes its presence map and its contents. Returns null if the exact engine must
/// decode the message.
///
/// # Safety
/// The caller must pass a complete state, the first step of a block of its program, a cursor inside the buffer, and the
/// place of the next entry as `out`.
#[inline(always)]
unsafe fn enter(
    state: *mut EngineState,
    steps: NestedSteps,
    cursor: BytePtr,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: the steps are a block of the state's program, and `cursor` is in the buffer. The contract of `StepHandler`
    // is met here: the check leaves `SLACK` bytes after `cursor`, or `edge` copies the rest, and `room` leaves room for a
    // run.
    unsafe {
        let mut cursor = cursor;
        if cursor > (*state).check {
            cursor = (*state).edge(cursor);
            if cursor.is_null() {
                give_up!();
            }
        }
        let out = (*state).room(out);
        let mut bits = 0;
        if steps.has_map {
            match map(cursor) {
                Some((map_bits, next)) => (bits, cursor) = (map_bits, next),
                None => give_up!(),
            }
        }
        run(state, steps.first, cursor, bits, out)
    }
}

/// The block of a group or an element, as far as a run needs it.
#[derive(Clone, Copy)]
struct NestedSteps {
    first: *const EngineStep,
    /// A presence map of its own is before it in the message.
    has_map: bool,
}

/// Returns the steps of the block inside a step.
///
/// # Safety
/// The caller must pass a step of a program that has a block.
#[inline(always)]
unsafe fn inside(step: *const EngineStep) -> NestedSteps {
    // SAFETY: `StepProgram::block` puts the steps of a nested block `follow` steps before the step that has it.
    unsafe { NestedSteps { first: step.sub((*step).follow as usize), has_map: (*step).has_initial } }
}

/// Runs the steps of a block.
///
/// # Safety
/// The caller must uphold the contract of [`super::state::StepHandler`].
#[inline(always)]
pub(super) unsafe fn run(
    state: *mut EngineState,
    step: *const EngineStep,
    cursor: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `cursor` has `SLACK` bytes, and `out` has room.
    unsafe {
        let cursor = ((*step).run)(state, step, cursor, map, out);
        if (*state).paused.is_null() {
            return cursor;
        }
        resume(state, cursor)
    }
}

/// Resumes where a run paused.
///
/// # Safety
/// The caller must pass a complete state, and the cursor at which its last run ended.
#[inline(never)]
unsafe fn resume(state: *mut EngineState, cursor: BytePtr) -> BytePtr {
    let mut cursor = cursor;
    // SAFETY: what paused is where a run may begin.
    unsafe {
        while !(*state).paused.is_null() {
            let step = std::mem::replace(&mut (*state).paused, std::ptr::null());
            if cursor > (*state).check {
                cursor = (*state).edge(cursor);
                if cursor.is_null() {
                    give_up!();
                }
            }
            let out = (*state).room((*state).out);
            let map = (*state).map;
            cursor = ((*step).run)(state, step, cursor, map, out);
        }
    }
    cursor
}

/// Ends a block. Extra bits in the presence map are left to the exact engine.
///
/// # Safety
/// The caller must uphold the contract of [`super::state::StepHandler`].
pub(super) unsafe fn end(
    state: *mut EngineState,
    step: *const EngineStep,
    cursor: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `cursor` has `SLACK` bytes, and `out` has room.
    unsafe {
        (*state).out = out;
        if map & (*step).mask != 0 { std::ptr::null() } else { cursor }
    }
}

/// Pauses a block of many steps, which continues from here with new room; see [`resume`].
///
/// # Safety
/// The caller must uphold the contract of [`super::state::StepHandler`].
pub(super) unsafe fn pause(
    state: *mut EngineState,
    step: *const EngineStep,
    cursor: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `cursor` has `SLACK` bytes, and `out` has room; it
    // is not the last of its block.
    unsafe {
        (*state).out = out;
        (*state).map = map;
        (*state).paused = step.add(1);
    }
    cursor
}

/// Gives the message up to the exact engine.
///
/// # Safety
/// The caller must uphold the contract of [`super::state::StepHandler`].
pub(super) unsafe fn give_up_step(
    _: *mut EngineState,
    _: *const EngineStep,
    _: BytePtr,
    _: u64,
    _: *mut DecodedEntry,
) -> BytePtr {
    give_up!()
}

/// Decodes a group.
///
/// # Safety
/// The caller must uphold the contract of [`super::state::StepHandler`].
pub(super) unsafe fn group(
    state: *mut EngineState,
    step: *const EngineStep,
    cursor: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `cursor` has `SLACK` bytes, and `out` has room.
    unsafe {
        if (*step).optional && map & (*step).mask == 0 {
            return go_on!(state, step + 1, cursor, map, out);
        }
        *out = DecodedEntry { bits: 0, meta: (*step).meta };
        let cursor = enter(state, inside(step), cursor, out.byte_add((*step).advance));
        if cursor.is_null() {
            give_up!();
        }
        close(state, step, cursor, map, (*state).out)
    }
}

/// Decodes a sequence of as many elements as the previous step read.
///
/// # Safety
/// The caller must uphold the contract of [`super::state::StepHandler`].
pub(super) unsafe fn sequence(
    state: *mut EngineState,
    step: *const EngineStep,
    cursor: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `cursor` has `SLACK` bytes, and `out` has room.
    unsafe {
        let (elements, advance, element) = ((*state).length, (*step).advance, (*step).initial);
        *out = DecodedEntry { bits: elements, meta: (*step).meta };
        let (mut cursor, mut out) = (cursor, out.byte_add(advance));
        let inner_steps = inside(step);
        for _ in 0..elements {
            // Between elements there is always room for one entry, as a run has some to spare.
            *out = DecodedEntry { bits: 0, meta: element };
            let cursor_before = cursor;
            cursor = enter(state, inner_steps, cursor, out.byte_add(advance));
            // Elements without a byte are for the exact engine to count.
            if cursor.is_null() || cursor == cursor_before {
                give_up!();
            }
            out = (*state).out;
        }
        close(state, step, cursor, map, out)
    }
}

/// Continues after a group or a sequence.
///
/// # Safety
/// The caller must uphold the contract of [`super::state::StepHandler`].
#[inline(always)]
unsafe fn close(
    state: *mut EngineState,
    step: *const EngineStep,
    cursor: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `cursor` has `SLACK` bytes, and `out` has room;
    // there is room for the entry, and then for those of the steps that follow.
    unsafe {
        *out = DecodedEntry { bits: 0, meta: (*step).beside };
        let out = (*state).room(out.byte_add((*step).advance));
        let mut cursor = cursor;
        if cursor > (*state).check {
            cursor = (*state).edge(cursor);
            if cursor.is_null() {
                give_up!();
            }
        }
        go_on!(state, step + 1, cursor, map, out)
    }
}

/// Runs a single step in the exact engine: joined texts and other rare cases.
///
/// # Safety
/// The caller must uphold the contract of [`super::state::StepHandler`].
pub(super) unsafe fn exact(
    state: *mut EngineState,
    step: *const EngineStep,
    cursor: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `cursor` has `SLACK` bytes, and `out` has room;
    // `give_back` reports all written entries to the workspace first, and the state borrows it again afterwards.
    unsafe {
        if cursor > (*state).end {
            give_up!();
        }
        (*state).out = out;
        (*state).give_back();
        let bytes_left = std::slice::from_raw_parts(cursor, (*state).end.offset_from_unsigned(cursor));
        let workspace = &mut *(*state).workspace;
        let used = exact::decode_op(workspace, (*step).follow as usize, bytes_left, map & (*step).mask != 0);
        (*state).borrow();
        let Some(used) = used else { give_up!() };
        let (out, mut cursor) = ((*state).out, cursor.add(used));
        // A text may be long; from here a run needs its bytes again.
        if cursor > (*state).check {
            cursor = (*state).edge(cursor);
            if cursor.is_null() {
                give_up!();
            }
        }
        go_on!(state, step + 1, cursor, map, out)
    }
}
