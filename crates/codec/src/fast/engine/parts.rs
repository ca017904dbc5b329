//! What is around values: groups, sequences, the beginnings and ends of runs; and the steps that the exact engine does.

use super::raw::{At, STOPS, eight, give_up, go_on, groups, length};
use super::state::State;
use super::steps::{Block, Step};
use crate::fast::projection::UNTAGGED;
use crate::fast::record::{Entry, Form};
use crate::fast::slot::Undo;

/// A presence map of up to eight bytes, its first bit the highest; none where it is longer, or longer than it has to be.
///
/// # Safety
/// There are eight bytes.
#[inline(always)]
pub(super) unsafe fn map(at: At) -> Option<(u64, At)> {
    // SAFETY: the caller's.
    unsafe {
        let first = *at;
        if first >= 0x80 {
            return Some((u64::from(first) << 57, at.add(1)));
        }
        let second = *at.add(1);
        if second > 0x80 {
            return Some((u64::from(first) << 57 | u64::from(second & 0x7f) << 50, at.add(2)));
        }
        let word = eight(at);
        let stops = word & STOPS;
        if stops == 0 {
            return None;
        }
        let n = length(stops);
        let bits = groups::<false>(word, n);
        // The last byte says nothing.
        if bits & 0x7f == 0 {
            return None;
        }
        Some((bits << (64u32.wrapping_sub(7 * n) & 63), at.add(n as usize)))
    }
}

/// A group or an element: its presence map, and all that is in it. Null where the exact engine is to decode the message.
///
/// # Safety
/// The state is whole, `block` one of its program's, and `at` inside the buffer.
#[inline(always)]
pub(super) unsafe fn enter(state: &mut State, block: &Block, at: At) -> At {
    // SAFETY: the caller's.
    unsafe {
        let mut at = at;
        if at > state.check {
            at = state.edge(at);
            if at.is_null() {
                return at;
            }
        }
        state.room();
        let mut bits = 0;
        if block.has_map {
            match map(at) {
                Some((found, next)) => (bits, at) = (found, next),
                None => return std::ptr::null(),
            }
        }
        run(state, state.steps.add(block.first as usize), at, bits)
    }
}

/// A block's steps.
///
/// # Safety
/// As [`super::raw::Handler`]; entries and things to undo go on where the state says.
#[inline(always)]
pub(super) unsafe fn run(state: &mut State, step: *const Step, at: At, map: u64) -> At {
    // SAFETY: the caller's.
    unsafe {
        let (out, undo) = (state.out, state.undo);
        let at = ((*step).run)(state, step, at, map, out, undo);
        if at.is_null() || state.paused.is_null() {
            return at;
        }
        resume(state, at)
    }
}

/// Goes on where a run paused.
///
/// # Safety
/// The state is whole, and `at` is where its last run came to.
#[inline(never)]
unsafe fn resume(state: &mut State, at: At) -> At {
    let mut at = at;
    // SAFETY: what paused is where a run may begin.
    unsafe {
        while !at.is_null() && !state.paused.is_null() {
            let step = std::mem::replace(&mut state.paused, std::ptr::null());
            if at > state.check {
                at = state.edge(at);
                if at.is_null() {
                    return at;
                }
            }
            state.room();
            let (map, out, undo) = (state.map, state.out, state.undo);
            at = ((*step).run)(state, step, at, map, out, undo);
        }
    }
    at
}

/// The end of a block: bits that stand for nothing are for the exact engine.
///
/// # Safety
/// As [`super::raw::Handler`].
pub(super) unsafe fn end(
    state: &mut State,
    step: *const Step,
    at: At,
    map: u64,
    out: *mut Entry,
    undo: *mut Undo,
) -> At {
    state.out = out;
    state.undo = undo;
    // SAFETY: the caller's.
    if map & unsafe { (*step).mask } != 0 { std::ptr::null() } else { at }
}

/// A block of many steps goes on from here with new room; see [`resume`].
///
/// # Safety
/// As [`super::raw::Handler`].
pub(super) unsafe fn pause(
    state: &mut State,
    step: *const Step,
    at: At,
    map: u64,
    out: *mut Entry,
    undo: *mut Undo,
) -> At {
    state.out = out;
    state.undo = undo;
    state.map = map;
    // SAFETY: it is not the last of its block.
    state.paused = unsafe { step.add(1) };
    at
}

/// For what only the exact engine knows.
///
/// # Safety
/// As [`super::raw::Handler`].
pub(super) unsafe fn other(
    state: &mut State,
    _: *const Step,
    _: At,
    _: u64,
    _: *mut Entry,
    undo: *mut Undo,
) -> At {
    give_up!(state, undo)
}

/// A group.
///
/// # Safety
/// As [`super::raw::Handler`].
pub(super) unsafe fn group(
    state: &mut State,
    step: *const Step,
    at: At,
    map: u64,
    out: *mut Entry,
    undo: *mut Undo,
) -> At {
    // SAFETY: the caller's; there is room for its entries.
    unsafe {
        if (*step).optional && map & (*step).mask == 0 {
            return go_on!(state, step + 1, at, map, out, undo);
        }
        *out = Entry { bits: 0, meta: (*step).meta };
        state.out = out.byte_add((*step).advance);
        state.undo = undo;
        let at = enter(state, &*state.blocks.add((*step).follow as usize), at);
        if at.is_null() {
            return at;
        }
        close(state, step, at, map)
    }
}

/// A sequence of as many elements as the step before said.
///
/// # Safety
/// As [`super::raw::Handler`].
pub(super) unsafe fn sequence(
    state: &mut State,
    step: *const Step,
    at: At,
    map: u64,
    out: *mut Entry,
    undo: *mut Undo,
) -> At {
    // SAFETY: the caller's; there is room for its entries.
    unsafe {
        let elements = state.length;
        *out = Entry { bits: elements, meta: (*step).meta };
        state.out = out.byte_add((*step).advance);
        state.undo = undo;
        let block = &*state.blocks.add((*step).follow as usize);
        let mut at = at;
        for _ in 0..elements {
            // Between elements there is always room for one entry, as a run has some to spare.
            *state.out = Entry { bits: 0, meta: (*step).initial };
            state.out = state.out.byte_add((*step).advance);
            let before = at;
            at = enter(state, block, at);
            // Elements without a byte are for the exact engine to count.
            if at.is_null() || at == before {
                return std::ptr::null();
            }
        }
        close(state, step, at, map)
    }
}

/// What an entry of an end has beside its field.
const END: u64 = (Form::End as u64) << 48 | (UNTAGGED as u64) << 32;

/// Goes on behind a group or a sequence.
///
/// # Safety
/// As [`super::raw::Handler`].
#[inline(always)]
unsafe fn close(state: &mut State, step: *const Step, at: At, map: u64) -> At {
    // SAFETY: the caller's; there is room for the entry, and then for those of the steps that follow.
    unsafe {
        *state.out = Entry { bits: 0, meta: (*step).meta & 0xffff_ffff | END };
        state.out = state.out.byte_add((*step).advance);
        state.room();
        let mut at = at;
        if at > state.check {
            at = state.edge(at);
            if at.is_null() {
                return at;
            }
        }
        let (out, undo) = (state.out, state.undo);
        go_on!(state, step + 1, at, map, out, undo)
    }
}

/// A step that the exact engine does, alone: what is put together, vectors and whatever else is rare.
///
/// # Safety
/// As [`super::raw::Handler`].
pub(super) unsafe fn exact(
    state: &mut State,
    step: *const Step,
    at: At,
    map: u64,
    out: *mut Entry,
    undo: *mut Undo,
) -> At {
    // SAFETY: the caller's; all that was written is told to the decoder before it goes on, and asked for anew behind it.
    unsafe {
        (state.out, state.undo) = (out, undo);
        if at > state.end {
            return std::ptr::null();
        }
        state.give_back();
        let left = std::slice::from_raw_parts(at, state.end.offset_from(at) as usize);
        let used = (*state.decoder).one((*step).follow as usize, left, map & (*step).mask != 0);
        state.borrow();
        let Some(used) = used else { return std::ptr::null() };
        let (out, undo, at) = (state.out, state.undo, at.add(used));
        // A text may be long; from here a run needs its bytes again.
        if at > state.check {
            let at = state.edge(at);
            if at.is_null() {
                return at;
            }
            return go_on!(state, step + 1, at, map, out, undo);
        }
        go_on!(state, step + 1, at, map, out, undo)
    }
}
