//! Parts around values: groups, sequences, the beginnings and ends of runs; and the steps that the exact engine does.

use super::raw::{STOPS, eight, give_up, go_on, groups, length};
use super::state::{BytePtr, EngineState, EngineStep};
use crate::entry::DecodedEntry;
use crate::exact;

/// A presence map of up to eight bytes, its first bit the highest; none where it is longer, or longer than it has to be.
///
/// # Safety
/// There are eight bytes.
#[inline(always)]
pub(super) unsafe fn map(at: BytePtr) -> Option<(u64, BytePtr)> {
    // SAFETY: `at` has eight bytes, by the contract.
    unsafe {
        let first = *at;
        if first >= 0x80 {
            return Some((u64::from(first) << 57, at.add(1)));
        }
        let second = *at.add(1);
        if second > 0x80 {
            return Some((u64::from(first) << 57 | u64::from(second & 0x7f) << 50, at.add(2)));
        }
        long_map(at)
    }
}

/// # Safety
/// As [`map`].
#[inline(never)]
unsafe fn long_map(at: BytePtr) -> Option<(u64, BytePtr)> {
    // SAFETY: `at` has eight bytes, by the contract.
    unsafe {
        let word = eight(at);
        let stops = word & STOPS;
        if stops == 0 {
            return None;
        }
        let n = length(stops);
        let bits = groups::<false>(word.swap_bytes() >> (64u32.wrapping_sub(8 * n) & 63));
        // The last byte says nothing.
        if bits & 0x7f == 0 {
            return None;
        }
        Some((bits << (64u32.wrapping_sub(7 * n) & 63), at.add(n as usize)))
    }
}

/// The id of a template, mostly of one or two bytes.
///
/// # Safety
/// There are eight bytes.
#[inline(always)]
pub(super) unsafe fn id(at: BytePtr) -> Option<(u32, BytePtr)> {
    // SAFETY: `at` has eight bytes, by the contract.
    unsafe {
        let (first, second) = (*at, *at.add(1));
        if first >= 0x80 {
            return Some((u32::from(first & 0x7f), at.add(1)));
        }
        if first != 0 && second >= 0x80 {
            return Some((u32::from(first) << 7 | u32::from(second & 0x7f), at.add(2)));
        }
        long_id(at)
    }
}

/// # Safety
/// As [`id`].
#[inline(never)]
unsafe fn long_id(at: BytePtr) -> Option<(u32, BytePtr)> {
    // SAFETY: `at` has eight bytes, by the contract.
    let word = unsafe { eight(at) };
    let stops = word & STOPS;
    let n = length(stops);
    // Five bytes have 35 bits.
    if stops == 0 || n > 5 || word as u8 == 0 {
        return None;
    }
    let id = groups::<false>(word.swap_bytes() >> (64 - 8 * n));
    // SAFETY: `at` has eight bytes, by the contract.
    Some((u32::try_from(id).ok()?, unsafe { at.add(n as usize) }))
}

/// A group or an element: its presence map, and all that is in it. Null where the exact engine is to decode the message.
///
/// # Safety
/// The state is whole, the first step that of a block of its program, `at` inside the buffer, and `out` where the next
/// entry goes.
#[inline(always)]
unsafe fn enter(state: *mut EngineState, steps: NestedSteps, at: BytePtr, out: *mut DecodedEntry) -> BytePtr {
    // SAFETY: the steps are a block of the state's program, and `at` is in the buffer. The contract of `StepHandler`
    // is met here: the check leaves `SLACK` bytes after `at`, or `edge` copies the rest, and `room` leaves room for a
    // run.
    unsafe {
        let mut at = at;
        if at > (*state).check {
            at = (*state).edge(at);
            if at.is_null() {
                give_up!();
            }
        }
        let out = (*state).room(out);
        let mut bits = 0;
        if steps.has_map {
            match map(at) {
                Some((found, next)) => (bits, at) = (found, next),
                None => give_up!(),
            }
        }
        run(state, steps.first, at, bits, out)
    }
}

/// The block of a group or an element, as far as a run needs it.
#[derive(Clone, Copy)]
struct NestedSteps {
    first: *const EngineStep,
    /// A presence map of its own is before it in the message.
    has_map: bool,
}

/// The block of a step.
///
/// # Safety
/// The step is of a program, and has a block.
#[inline(always)]
unsafe fn inside(step: *const EngineStep) -> NestedSteps {
    // SAFETY: `StepProgram::block` puts the steps of a nested block `follow` steps before the step that has it.
    unsafe { NestedSteps { first: step.sub((*step).follow as usize), has_map: (*step).has_initial } }
}

/// A block's steps.
///
/// # Safety
/// As [`super::state::StepHandler`].
#[inline(always)]
pub(super) unsafe fn run(
    state: *mut EngineState,
    step: *const EngineStep,
    at: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `at` has `SLACK` bytes, and `out` has room.
    unsafe {
        let at = ((*step).run)(state, step, at, map, out);
        if (*state).paused.is_null() {
            return at;
        }
        resume(state, at)
    }
}

/// Resumes where a run paused.
///
/// # Safety
/// The state is whole, and `at` is where its last run came to.
#[inline(never)]
unsafe fn resume(state: *mut EngineState, at: BytePtr) -> BytePtr {
    let mut at = at;
    // SAFETY: what paused is where a run may begin.
    unsafe {
        while !(*state).paused.is_null() {
            let step = std::mem::replace(&mut (*state).paused, std::ptr::null());
            if at > (*state).check {
                at = (*state).edge(at);
                if at.is_null() {
                    give_up!();
                }
            }
            let out = (*state).room((*state).out);
            let map = (*state).map;
            at = ((*step).run)(state, step, at, map, out);
        }
    }
    at
}

/// The end of a block: bits that mean nothing are for the exact engine.
///
/// # Safety
/// As [`super::state::StepHandler`].
pub(super) unsafe fn end(
    state: *mut EngineState,
    step: *const EngineStep,
    at: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `at` has `SLACK` bytes, and `out` has room.
    unsafe {
        (*state).out = out;
        if map & (*step).mask != 0 { std::ptr::null() } else { at }
    }
}

/// A block of many steps continues from here with new room; see [`resume`].
///
/// # Safety
/// As [`super::state::StepHandler`].
pub(super) unsafe fn pause(
    state: *mut EngineState,
    step: *const EngineStep,
    at: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `at` has `SLACK` bytes, and `out` has room; it
    // is not the last of its block.
    unsafe {
        (*state).out = out;
        (*state).map = map;
        (*state).paused = step.add(1);
    }
    at
}

/// For what only the exact engine knows.
///
/// # Safety
/// As [`super::state::StepHandler`].
pub(super) unsafe fn give_up_step(
    _: *mut EngineState,
    _: *const EngineStep,
    _: BytePtr,
    _: u64,
    _: *mut DecodedEntry,
) -> BytePtr {
    give_up!()
}

/// A group.
///
/// # Safety
/// As [`super::state::StepHandler`].
pub(super) unsafe fn group(
    state: *mut EngineState,
    step: *const EngineStep,
    at: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `at` has `SLACK` bytes, and `out` has room.
    unsafe {
        if (*step).optional && map & (*step).mask == 0 {
            return go_on!(state, step + 1, at, map, out);
        }
        *out = DecodedEntry { bits: 0, meta: (*step).meta };
        let at = enter(state, inside(step), at, out.byte_add((*step).advance));
        if at.is_null() {
            give_up!();
        }
        close(state, step, at, map, (*state).out)
    }
}

/// A sequence of as many elements as the step before said.
///
/// # Safety
/// As [`super::state::StepHandler`].
pub(super) unsafe fn sequence(
    state: *mut EngineState,
    step: *const EngineStep,
    at: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `at` has `SLACK` bytes, and `out` has room.
    unsafe {
        let (elements, advance, element) = ((*state).length, (*step).advance, (*step).initial);
        *out = DecodedEntry { bits: elements, meta: (*step).meta };
        let (mut at, mut out) = (at, out.byte_add(advance));
        let inside = inside(step);
        for _ in 0..elements {
            // Between elements there is always room for one entry, as a run has some to spare.
            *out = DecodedEntry { bits: 0, meta: element };
            let before = at;
            at = enter(state, inside, at, out.byte_add(advance));
            // Elements without a byte are for the exact engine to count.
            if at.is_null() || at == before {
                give_up!();
            }
            out = (*state).out;
        }
        close(state, step, at, map, out)
    }
}

/// Continues after a group or a sequence.
///
/// # Safety
/// As [`super::state::StepHandler`].
#[inline(always)]
unsafe fn close(
    state: *mut EngineState,
    step: *const EngineStep,
    at: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `at` has `SLACK` bytes, and `out` has room;
    // there is room for the entry, and then for those of the steps that follow.
    unsafe {
        *out = DecodedEntry { bits: 0, meta: (*step).beside };
        let out = (*state).room(out.byte_add((*step).advance));
        let mut at = at;
        if at > (*state).check {
            at = (*state).edge(at);
            if at.is_null() {
                give_up!();
            }
        }
        go_on!(state, step + 1, at, map, out)
    }
}

/// A step that the exact engine does, alone: what is put together, and whatever else is rare.
///
/// # Safety
/// As [`super::state::StepHandler`].
pub(super) unsafe fn exact(
    state: *mut EngineState,
    step: *const EngineStep,
    at: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `at` has `SLACK` bytes, and `out` has room;
    // `give_back` reports all written entries to the workspace first, and the state borrows it again afterwards.
    unsafe {
        if at > (*state).end {
            give_up!();
        }
        (*state).out = out;
        (*state).give_back();
        let left = std::slice::from_raw_parts(at, (*state).end.offset_from_unsigned(at));
        let workspace = &mut *(*state).workspace;
        let used = exact::decode_op(workspace, (*step).follow as usize, left, map & (*step).mask != 0);
        (*state).borrow();
        let Some(used) = used else { give_up!() };
        let (out, mut at) = ((*state).out, at.add(used));
        // A text may be long; from here a run needs its bytes again.
        if at > (*state).check {
            at = (*state).edge(at);
            if at.is_null() {
                give_up!();
            }
        }
        go_on!(state, step + 1, at, map, out)
    }
}
