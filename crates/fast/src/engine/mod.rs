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
//! At the start of a message, the dictionary entries of its template are saved, or emptied if they are of an earlier
//! epoch: see [`super::dictionary`]. So handlers overwrite them without a note, and the saved entries are restored if a
//! handler gives up.
//!
//! # Reading without a look at the end
//! A handler reads some bytes after its cursor and does not check whether they belong to the message. Each run of steps
//! begins with a check of the cursor against [`state::EngineState::check`]. A run begins in `parts::enter`, after a
//! nested block, and every [`state::RUN_STEPS`] steps. Up to the next check, a run reads less than [`SLACK`] bytes, and
//! the buffer has them. Near the end of the buffer, the rest of the message is copied, followed by `state::PAD` bytes
//! that end every entity (`80`); see [`state::EngineState::edge`]. The next check finds a message that runs over its
//! end.

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

/// Decodes the message in the range of the buffer into the workspace's entries. Returns its template and its length in
/// bytes. Returns `None` if the exact engine must decode the message; the caller must then restore the saved entries.
///
/// # Safety
/// The caller must pass steps that are made from the workspace's program.
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
    let message_start = message.as_ptr();
    // SAFETY: inside the message.
    let message_end = unsafe { message_start.add(message.len().min(steps.bytes_max)) };
    // Before the first byte if fewer bytes follow: a copy is then made at once.
    let buffer_end = buffer.as_ptr_range().end;
    let check = message_end.min(buffer_end.with_addr(buffer_end.addr().saturating_sub(SLACK)));
    let workspace: *mut DecodeWorkspace = workspace;
    // SAFETY: the slots begin with room for a state. The workspace is ours and outlives it, and so does the program; the buffer
    // is the caller's; at the first place the check is as the module says.
    unsafe {
        let state = (*workspace).dictionary_slots.as_mut_ptr().cast::<EngineState>();
        (*state).check = check;
        (*state).end = message_end;
        (*state).base = message_start.addr();
        (*state).paused = std::ptr::null();
        (*state).workspace = workspace;
        message_at(state, workspace, steps, entries, message_start)
    }
}

/// Decodes the message at `start`.
///
/// # Safety
/// The caller must pass a new state of this workspace. The steps and the entries must be of its program.
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
        let mut cursor = start;
        if cursor > (*state).check {
            cursor = (*state).edge(cursor);
            if cursor.is_null() {
                return None;
            }
        }
        let (map, cursor) = parts::map(cursor)?;
        let (id, cursor) = if map >> 63 != 0 {
            let (id, cursor) = parts::id(cursor)?;
            (*workspace).template_id = Some(id);
            (id, cursor)
        } else {
            ((*workspace).template_id?, cursor)
        };
        let entry_point = steps.start(id)?;
        begin(&mut *workspace, entries, &steps.shared_areas, entry_point);
        let out = (*state).borrow_of(&mut *workspace, 0);
        let cursor =
            parts::run(state, steps.steps.as_ptr().add(entry_point.first as usize), cursor, map, out);
        if cursor.is_null() || cursor > (*state).end {
            return None;
        }
        (*state).give_back_to(&mut *workspace);
        Some((entry_point.template, cursor.addr().wrapping_sub((*state).base)))
    }
}

/// Saves the dictionary entries of the template, or empties them if they are of an earlier epoch.
///
/// # Safety
/// The caller must pass the entries and the template of the workspace's program.
#[inline(always)]
unsafe fn begin(
    workspace: &mut DecodeWorkspace,
    entries: &DictionaryLayout,
    pieces: &[SharedArea],
    start: &steps::TemplateEntryPoint,
) {
    let old_epoch = workspace.epoch;
    workspace.current_template = start.template;
    if start.resets_dictionaries {
        workspace.empty();
    }
    // SAFETY: the pieces are of the program's entries, and so are within the slots of the workspace.
    unsafe {
        match start.shares {
            TemplateSlotRanges::None => {}
            TemplateSlotRanges::One(piece) => fill(workspace, entries, old_epoch, piece),
            TemplateSlotRanges::Several { from, to } => {
                begin_several(workspace, entries, old_epoch, &pieces[from as usize..to as usize]);
            }
        }
    }
}

/// Begins several shared areas of entries.
///
/// # Safety
/// The caller must uphold the contract of [`begin`].
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

/// Saves and fills one shared area of entries.
///
/// # Safety
/// The caller must uphold the contract of [`begin`]. `piece` must be one of the program's shares.
#[inline(always)]
unsafe fn fill(workspace: &mut DecodeWorkspace, entries: &DictionaryLayout, before: u32, piece: SharedArea) {
    let SharedArea { share, from, slot_count: slots } = piece;
    let (share, from, slots) = (share as usize, from as usize, slots as usize);
    // SAFETY: a share is a range of the program's entries, and the workspace's vectors have one for each of these.
    unsafe {
        let share_epoch = workspace.share_epochs.get_unchecked_mut(share);
        *workspace.saved_filled.get_unchecked_mut(share) = *share_epoch;
        let places = workspace.dictionary_slots.as_mut_ptr().add(from);
        let saved = workspace.saved.as_mut_ptr().add(from);
        if *share_epoch == workspace.epoch {
            std::ptr::copy_nonoverlapping(places, saved, slots);
            return;
        }
        // A template that empties the entries, after a template that did not.
        if *share_epoch == before {
            std::ptr::copy_nonoverlapping(places, saved, slots);
        }
        *share_epoch = workspace.epoch;
        std::ptr::copy_nonoverlapping(entries.empty.as_ptr().add(from), places, slots);
    }
}
