//! The fast engine. It takes messages as they mostly are, and has no opinion on others.
//!
//! ```text
//!  program: blocks of ops ──▶ steps: each with the handler for its type, operator, presence       once
//!
//!  message ──▶ step ─▶ step ─▶ step ─▶ … ─▶ end      each handler jumps to the next one; all it needs is in registers
//!                │                                   (state, step, place, presence map, next entry)
//!                └ anything unusual: gives up ──▶ what it did is undone ──▶ the exact engine decodes the message
//! ```
//!
//! What it takes, the exact engine takes, too, and with the same values: errors, integers longer than they have to be and
//! presence maps beyond 56 bits are not decided here. So a fault has its code and place from one engine alone.
//!
//! # Dictionaries
//! Where a message begins, what its template has of the dictionaries is copied aside, or emptied where it is of an earlier
//! epoch: see [`super::dictionary`]. So handlers write over it without a note, and what was there is put back where they give
//! up.
//!
//! # Reading without a look at the end
//! A handler reads some bytes from its place on, and does not ask whether they are the message's. Wherever a run of steps
//! begins (`parts::enter`, behind what is nested, and every [`RUN_STEPS`] steps) the place is held against
//! [`state::State::check`]: what can be read up to the next such place is less than [`SLACK`] bytes, and the buffer has
//! them. Where the buffer is nearly over, what is left of the message is copied and [`PAD`] bytes that end everything
//! (`80`) put behind it ([`state::State::edge`]). A message that runs over its end is seen at the next check.

mod ints;
mod parts;
mod raw;
mod state;
pub(super) mod steps;
mod texts;

pub(super) use state::HEAD;

use super::decode::Decoder;
use super::dictionary::Entries;
use super::program::Program;
use raw::At;
use state::State;
use steps::{Piece, Shares};

/// Steps before a block pauses.
const RUN_STEPS: usize = 32;

/// More bytes than a run of steps reads: a difference of a decimal has 18, and a presence map before the run 8.
const SLACK: usize = 18 * (RUN_STEPS + 2) + 16;

/// The same where each entity has one byte, behind one that begins before the end: a vector's eight bytes tell no end.
const PAD: usize = 2 * (RUN_STEPS + 2) + 36;

/// Decodes the message at `from..to` of the buffer into the decoder's entries: its template and its bytes. None where the
/// exact engine is to do it; what was done until then is to be put back.
#[inline]
pub(super) fn decode(decoder: &mut Decoder, buffer: &[u8], from: usize, to: usize) -> Option<(u32, usize)> {
    let program: *const Program = &raw const *decoder.program;
    // SAFETY: the decoder keeps its program, and nothing below gives it another.
    let (steps, entries) = unsafe { (&(*program).steps, &(*program).entries) };
    let message = buffer.get(from..to)?;
    let start = message.as_ptr();
    // SAFETY: inside the message.
    let end = unsafe { start.add(message.len().min(steps.bytes_max)) };
    // Before the first byte where there is less than that behind it: a copy is made at once.
    let last = buffer.as_ptr_range().end;
    let check = end.min(last.with_addr(last.addr().saturating_sub(SLACK)));
    let decoder: *mut Decoder = decoder;
    // SAFETY: the slots begin with room for a state. The decoder is ours and outlives it, and so does the program; the buffer
    // is the caller's; at the first place the check is as the module says.
    unsafe {
        let state = (*decoder).slots.as_mut_ptr().cast::<State>();
        (*state).check = check;
        (*state).end = end;
        (*state).base = start.addr();
        (*state).paused = std::ptr::null();
        (*state).decoder = decoder;
        message_at((state, decoder), steps, entries, start)
    }
}

/// # Safety
/// The state is new, and of this decoder.
#[inline(always)]
unsafe fn message_at(
    (state, decoder): (*mut State, *mut Decoder),
    steps: &steps::Steps,
    entries: &Entries,
    start: At,
) -> Option<(u32, usize)> {
    // SAFETY: the caller's; what is read first is no more than any run of steps.
    unsafe {
        let mut at = start;
        if at > (*state).check {
            at = (*state).edge(at);
            if at.is_null() {
                return None;
            }
        }
        let (map, at) = parts::map(at)?;
        let (id, at) = if map >> 63 != 0 {
            let (id, at) = parts::id(at)?;
            (*decoder).template_id = Some(id);
            (id, at)
        } else {
            ((*decoder).template_id?, at)
        };
        let start = steps.start(id)?;
        begin(&mut *decoder, (entries, &steps.pieces), start);
        let out = (*state).borrow_of(&mut *decoder, 0);
        let at = parts::run(state, steps.steps.as_ptr().add(start.first as usize), at, map, out);
        if at.is_null() || at > (*state).end {
            return None;
        }
        (*state).give_back_to(&mut *decoder);
        Some((start.template, at.addr().wrapping_sub((*state).base)))
    }
}

/// Saves what the template has of the dictionaries, or empties it where it is of an earlier epoch.
///
/// # Safety
/// The entries are those of the decoder's program, and so is the template.
#[inline(always)]
unsafe fn begin(decoder: &mut Decoder, (entries, pieces): (&Entries, &[Piece]), start: &steps::Start) {
    let before = decoder.epoch;
    decoder.begun = start.template;
    if start.reset {
        decoder.empty();
    }
    // SAFETY: the caller's.
    unsafe {
        match start.shares {
            Shares::None => {}
            Shares::One(piece) => fill(decoder, entries, before, piece),
            Shares::Several { from, to } => {
                begin_several(decoder, entries, before, &pieces[from as usize..to as usize]);
            }
        }
    }
}

/// # Safety
/// As [`begin`].
#[inline(never)]
unsafe fn begin_several(decoder: &mut Decoder, entries: &Entries, before: u32, pieces: &[Piece]) {
    for &piece in pieces {
        // SAFETY: the caller's.
        unsafe { fill(decoder, entries, before, piece) };
    }
}

/// # Safety
/// As [`begin`]; it is one of the program's shares.
#[inline(always)]
unsafe fn fill(decoder: &mut Decoder, entries: &Entries, before: u32, piece: Piece) {
    let Piece { share, from, slots } = piece;
    let (share, from, slots) = (share as usize, from as usize, slots as usize);
    // SAFETY: a share is a range of the program's entries, and the decoder's vectors have one for each of these.
    unsafe {
        let filled = decoder.filled.get_unchecked_mut(share);
        *decoder.saved_filled.get_unchecked_mut(share) = *filled;
        let places = decoder.slots.as_mut_ptr().add(from);
        let saved = decoder.saved.as_mut_ptr().add(from);
        if *filled == decoder.epoch {
            std::ptr::copy_nonoverlapping(places, saved, slots);
            return;
        }
        // A template that empties them, behind one that did not.
        if *filled == before {
            std::ptr::copy_nonoverlapping(places, saved, slots);
        }
        *filled = decoder.epoch;
        std::ptr::copy_nonoverlapping(entries.empty.as_ptr().add(from), places, slots);
    }
}
