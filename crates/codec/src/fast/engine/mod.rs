//! The fast engine. It takes messages as they mostly are, and has no opinion on others.
//!
//! ```text
//!  program: blocks of ops ──▶ steps: each with the handler for its type, operator, presence       once
//!
//!  message ──▶ step ─▶ step ─▶ step ─▶ … ─▶ end      each handler jumps to the next one; all it needs is in registers
//!                │                                   (state, step, place, presence map, next entry, next thing to undo)
//!                └ anything unusual: gives up ──▶ what it did is undone ──▶ the exact engine decodes the message
//! ```
//!
//! What it takes, the exact engine takes, too, and with the same values: errors, integers longer than they have to be and
//! presence maps beyond 56 bits are not decided here. So a fault has its code and place from one engine alone.
//!
//! # Reading without a look at the end
//! A handler reads some bytes from its place on, and does not ask whether they are the message's. Wherever a run of steps
//! begins ([`parts::enter`], behind what is nested, and every [`RUN_STEPS`] steps) the place is held against
//! [`state::State::check`]: what can be read up to the next such place is less than [`SLACK`] bytes, and the buffer has
//! them. Where the buffer is nearly over, what is left of the message is copied and [`PAD`] bytes that end everything
//! (`80`) put behind it ([`state::State::edge`]). A message that runs over its end is seen at the next check.

mod ints;
mod parts;
mod raw;
mod state;
pub(super) mod steps;
mod texts;

use super::decode::Decoder;
use super::program::Program;
use raw::At;
use state::State;

/// Steps before a block pauses.
const RUN_STEPS: usize = 32;

/// More bytes than a run of steps reads: a difference of a decimal has 18, and a presence map before the run 8.
const SLACK: usize = 18 * (RUN_STEPS + 2) + 16;

/// The same where each entity has one byte.
const PAD: usize = 2 * (RUN_STEPS + 2) + 28;

/// Decodes the message at `from..to` of the buffer into the decoder's entries: its template and its bytes. None where the
/// exact engine is to do it; what was done until then is in the decoder's list of things to undo.
#[inline]
pub(super) fn decode(decoder: &mut Decoder, buffer: &[u8], from: usize, to: usize) -> Option<(u32, usize)> {
    let program: *const Program = &raw const *decoder.program;
    // SAFETY: the decoder keeps its program, and nothing below gives it another.
    let steps = unsafe { &(*program).steps };
    let message = buffer.get(from..to)?;
    let end = message.len().min(steps.bytes_max);
    let room = (buffer.len() - from).checked_sub(SLACK);
    let nothing = std::ptr::null_mut::<u8>();
    let start = message.as_ptr();
    // SAFETY: inside the message.
    let end = unsafe { start.add(end) };
    let mut state = State {
        slots: nothing.cast(),
        epoch: 0,
        blocks: steps.blocks.as_ptr(),
        steps: steps.steps.as_ptr(),
        // Before the first byte where there is less than that: a copy is made at once.
        check: match room {
            // SAFETY: inside the buffer.
            Some(room) => end.min(unsafe { start.add(room) }),
            None => std::ptr::null(),
        },
        end,
        base: start.addr(),
        exponent: 0,
        length: 0,
        out: nothing.cast(),
        undo: nothing.cast(),
        out_end: nothing.cast(),
        undo_end: nothing.cast(),
        paused: std::ptr::null(),
        map: 0,
        decoder,
    };
    // SAFETY: the decoder is ours and outlives the state, and so does the program; the buffer is the caller's; at the
    // first place the check is as the module says.
    unsafe {
        let state = &mut state;
        state.borrow();
        let found = message_at(state, steps, start);
        state.give_back();
        found
    }
}

/// # Safety
/// The state is whole.
#[inline(always)]
unsafe fn message_at(state: &mut State, steps: &steps::Steps, start: At) -> Option<(u32, usize)> {
    // SAFETY: the caller's; what is read first is no more than any run of steps.
    unsafe {
        let mut at = start;
        if at > state.check {
            at = state.edge(at);
            if at.is_null() {
                return None;
            }
        }
        let (map, at) = parts::map(at)?;
        let decoder = &mut *state.decoder;
        let (id, at) = if map >> 63 != 0 {
            let (ints::Read::Value(id), at) = ints::int::<{ ints::U32 }, false, false, { raw::MORE }>(at)
            else {
                return None;
            };
            decoder.template_id = Some(id as u32);
            (id as u32, at)
        } else {
            (decoder.template_id?, at)
        };
        let start = steps.start(id)?;
        if start.reset {
            decoder.empty();
            state.epoch = u64::from(decoder.epoch) << 16;
        }
        let at = parts::run(state, state.steps.add(start.first as usize), at, map);
        if at.is_null() || at > state.end {
            return None;
        }
        Some((start.template, at.addr().wrapping_sub(state.base)))
    }
}
