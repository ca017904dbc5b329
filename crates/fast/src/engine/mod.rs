//! The fast engine. It decodes messages as they mostly are, and leaves all others.
//!
//! ```text
//!  program: blocks of ops ──▶ steps: each with the handler for its type, operator, presence       once
//!
//!  message ──▶ step ─▶ step ─▶ step ─▶ … ─▶ end      each handler jumps to the next one; all it needs is in registers
//!                │                                   (state, step, place, presence map, next entry)
//!                └ anything unusual: gives up ──▶ what it did is undone ──▶ the exact engine decodes the message
//! ```
//!
//! The exact engine accepts every message that this one accepts, with the same values. Errors, integers longer than
//! they have to be and presence maps beyond 56 bits are not decided here. So a fault has its code and place from one
//! engine alone.
//!
//! # Dictionaries
//! Where a message begins, what its template has of the dictionaries is copied aside, or emptied where it is of an earlier
//! epoch: see [`super::dictionary`]. So handlers write over it without a note, and what was there is put back where they give
//! up.
//!
//! # Reading without a look at the end
//! A handler reads some bytes from its place on, and does not ask whether they are the message's. Wherever a run of steps
//! begins (`parts::enter`, after what is nested, and every [`state::RUN_STEPS`] steps) the place is held against
//! [`state::EngineState::check`]: what can be read up to the next such place is less than [`SLACK`] bytes, and the buffer has
//! them. Where the buffer is nearly over, what is left of the message is copied and `state::PAD` bytes that end everything
//! (`80`) put after it ([`state::EngineState::edge`]). A message that runs over its end is seen at the next check.

mod ints;
mod parts;
mod raw;
mod state;
mod steps;
mod texts;

pub(super) use state::HEAD;
pub(super) use steps::StepProgram;

use super::program::DecodeProgram;
use super::slot::DictionaryLayout;
use super::workspace::DecodeWorkspace;
use state::{BytePtr, EngineState, SLACK};
use std::ops::Range;
use steps::{SharedArea, TemplateSlotRanges};

/// Decodes the message in the range of the buffer into the workspace's entries: its template and its bytes. None where the
/// exact engine is to do it; what was done until then is to be put back.
///
/// # Safety
/// The steps are made of the workspace's program.
#[inline]
pub(super) unsafe fn decode(
    workspace: &mut DecodeWorkspace,
    steps: &StepProgram,
    buffer: &[u8],
    range: Range<usize>,
) -> Option<(u32, usize)> {
    let program: *const DecodeProgram = &raw const *workspace.program;
    // SAFETY: the workspace keeps its program, and nothing below gives it another.
    let entries = unsafe { &(*program).entries };
    let message = buffer.get(range)?;
    let start = message.as_ptr();
    // SAFETY: inside the message.
    let end = unsafe { start.add(message.len().min(steps.bytes_max)) };
    // Before the first byte where there is less than that after it: a copy is made at once.
    let last = buffer.as_ptr_range().end;
    let check = end.min(last.with_addr(last.addr().saturating_sub(SLACK)));
    let workspace: *mut DecodeWorkspace = workspace;
    // SAFETY: the slots begin with room for a state. The workspace is ours and outlives it, and so does the program; the buffer
    // is the caller's; at the first place the check is as the module says.
    unsafe {
        let state = (*workspace).slots.as_mut_ptr().cast::<EngineState>();
        (*state).check = check;
        (*state).end = end;
        (*state).base = start.addr();
        (*state).paused = std::ptr::null();
        (*state).workspace = workspace;
        message_at(state, workspace, steps, entries, start)
    }
}

/// # Safety
/// The state is new, and of this workspace; the steps and the entries are of its program.
#[inline(always)]
unsafe fn message_at(
    state: *mut EngineState,
    workspace: *mut DecodeWorkspace,
    steps: &StepProgram,
    entries: &DictionaryLayout,
    start: BytePtr,
) -> Option<(u32, usize)> {
    // SAFETY: the state is of this workspace, and the steps of its program. A presence map and an id are no more bytes than
    // a run of steps reads, and the check comes first.
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
            (*workspace).template_id = Some(id);
            (id, at)
        } else {
            ((*workspace).template_id?, at)
        };
        let start = steps.start(id)?;
        begin(&mut *workspace, entries, &steps.pieces, start);
        let out = (*state).borrow_of(&mut *workspace, 0);
        let at = parts::run(state, steps.steps.as_ptr().add(start.first as usize), at, map, out);
        if at.is_null() || at > (*state).end {
            return None;
        }
        (*state).give_back_to(&mut *workspace);
        Some((start.template, at.addr().wrapping_sub((*state).base)))
    }
}

/// Saves what the template has of the dictionaries, or empties it where it is of an earlier epoch.
///
/// # Safety
/// The entries are those of the workspace's program, and so is the template.
#[inline(always)]
unsafe fn begin(
    workspace: &mut DecodeWorkspace,
    entries: &DictionaryLayout,
    pieces: &[SharedArea],
    start: &steps::TemplateEntryPoint,
) {
    let before = workspace.epoch;
    workspace.begun = start.template;
    if start.reset {
        workspace.empty();
    }
    // SAFETY: the pieces are of the program's entries, and so are within the slots of the workspace.
    unsafe {
        match start.shares {
            TemplateSlotRanges::None => {}
            TemplateSlotRanges::One(piece) => fill(workspace, entries, before, piece),
            TemplateSlotRanges::Several { from, to } => {
                begin_several(workspace, entries, before, &pieces[from as usize..to as usize]);
            }
        }
    }
}

/// # Safety
/// As [`begin`].
#[inline(never)]
unsafe fn begin_several(
    workspace: &mut DecodeWorkspace,
    entries: &DictionaryLayout,
    before: u32,
    pieces: &[SharedArea],
) {
    for &piece in pieces {
        // SAFETY: as in `begin`: the piece is of the program's entries.
        unsafe { fill(workspace, entries, before, piece) };
    }
}

/// # Safety
/// As [`begin`]; it is one of the program's shares.
#[inline(always)]
unsafe fn fill(workspace: &mut DecodeWorkspace, entries: &DictionaryLayout, before: u32, piece: SharedArea) {
    let SharedArea { share, from, slots } = piece;
    let (share, from, slots) = (share as usize, from as usize, slots as usize);
    // SAFETY: a share is a range of the program's entries, and the workspace's vectors have one for each of these.
    unsafe {
        let filled = workspace.filled.get_unchecked_mut(share);
        *workspace.saved_filled.get_unchecked_mut(share) = *filled;
        let places = workspace.slots.as_mut_ptr().add(from);
        let saved = workspace.saved.as_mut_ptr().add(from);
        if *filled == workspace.epoch {
            std::ptr::copy_nonoverlapping(places, saved, slots);
            return;
        }
        // A template that empties them, after one that did not.
        if *filled == before {
            std::ptr::copy_nonoverlapping(places, saved, slots);
        }
        *filled = workspace.epoch;
        std::ptr::copy_nonoverlapping(entries.empty.as_ptr().add(from), places, slots);
    }
}
