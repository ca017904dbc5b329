//! Memory that both engines decode with: the dictionaries, and the message's entries and texts. It restores both
//! after a bad message.

use super::entry::{DecodedEntry, span};
use super::packed_value::PackedValue;
use super::program::{DecodeProgram, NONE};
use super::slot::{DictionarySlot, SlotState, SlotUndo};
use std::sync::Arc;

/// Bytes of all texts of a message, at most.
pub(super) const TEXT_BYTES_MAX: usize = 16 << 20;

/// Bytes of the longer texts (of more than eight) that dictionaries have from messages, at most.
const KEPT_BYTES_MAX: usize = 256 << 20;

/// Texts of earlier messages are removed from the arena when it exceeds the referenced texts by this many bytes.
const ARENA_BYTES: usize = 64 << 10;

/// Dictionaries, which are carried from a message to the next, and the entries of one message.
#[derive(Debug, Clone)]
pub(super) struct DecodeWorkspace {
    pub program: Arc<DecodeProgram>,
    /// The reportable errors R6, R7, R8 and R9 are raised as well.
    pub is_strict: bool,
    pub dictionary_slots: Vec<DictionarySlot>,
    /// Counted up where the dictionaries are emptied; what of them is of another epoch is empty.
    pub epoch: u32,
    /// The epoch of each share of the slots.
    pub share_epochs: Vec<u32>,
    /// Slots and epochs before the message that the fast engine decodes, as far as its template has them.
    pub saved: Vec<DictionarySlot>,
    pub saved_filled: Vec<u32>,
    /// The template of that message, once it is known.
    pub current_template: u32,
    pub template_id: Option<u32>,
    pub entries: Vec<DecodedEntry>,
    /// The end of a message at the end of its buffer, with room after it.
    pub padded_message: Vec<u8>,
    pub arena: Vec<u8>,
    /// Bytes of the arena at which it is looked through.
    sweep_at: usize,
    /// Bytes of it that dictionaries may have.
    pub kept_max: usize,
    /// Bytes of the message's texts so far.
    pub text_bytes: usize,
    /// Slots that the exact engine wrote over in this message, in the order of writing.
    pub undo_slots: Vec<SlotUndo>,
    undo_filled: Vec<(u32, u32)>,
}

impl DecodeWorkspace {
    /// Makes a workspace with empty dictionaries.
    pub fn new(program: Arc<DecodeProgram>) -> Self {
        Self {
            dictionary_slots: program.entries.empty.clone(),
            saved: program.entries.empty.clone(),
            share_epochs: vec![1; program.entries.shares.len()],
            saved_filled: vec![1; program.entries.shares.len()],
            current_template: NONE,
            arena: program.texts.clone(),
            sweep_at: program.texts.len() + ARENA_BYTES,
            kept_max: KEPT_BYTES_MAX,
            text_bytes: 0,
            program,
            is_strict: false,
            padded_message: Vec::new(),
            epoch: 1,
            template_id: None,
            entries: Vec::new(),
            undo_slots: Vec::new(),
            undo_filled: Vec::new(),
        }
    }

    /// Empties all dictionaries except the stored template id.
    pub fn empty(&mut self) {
        self.epoch += 1;
        // Renumbered after this message, long before they run out.
        if self.epoch > u32::MAX / 2 {
            self.sweep_at = 0;
        }
    }

    /// Counts a text; whether there were less than half of what is taken. The short ones and constants, which are not counted,
    /// are never more than that in what the fast engine decodes.
    #[inline(always)]
    pub fn text_fits(&mut self, len: usize) -> bool {
        self.text_bytes += len;
        self.text_bytes < TEXT_BYTES_MAX / 2
    }

    /// Forgets the saved state that [`Self::undo`] would restore.
    pub fn forget_undo(&mut self) {
        self.undo_slots.clear();
        self.undo_filled.clear();
    }

    /// Undoes the changes of the exact engine to the dictionaries.
    #[cold]
    pub fn undo(&mut self, before: (u32, Option<u32>)) {
        while let Some(SlotUndo { slot_index, slot }) = self.undo_slots.pop() {
            self.dictionary_slots[slot_index as usize] = slot;
        }
        while let Some((share, epoch)) = self.undo_filled.pop() {
            self.share_epochs[share as usize] = epoch;
        }
        (self.epoch, self.template_id) = before;
        self.entries.clear();
    }

    /// Empties the entries of a template that are of an earlier epoch.
    pub fn prepare_slots(&mut self, program: &DecodeProgram, template: u32) {
        let entries = &program.entries;
        for &share in &entries.template_shares[program.templates[template as usize].shared_slots.range()] {
            let share_epoch = &mut self.share_epochs[share as usize];
            if *share_epoch == self.epoch {
                continue;
            }
            self.undo_filled.push((share, *share_epoch));
            *share_epoch = self.epoch;
            for slot_index in entries.shares[share as usize].range() {
                self.undo_slots.push(SlotUndo {
                    slot: self.dictionary_slots[slot_index],
                    slot_index: slot_index as u32,
                });
                self.dictionary_slots[slot_index] = entries.empty[slot_index];
            }
        }
    }

    /// Undoes the changes of the fast engine to the dictionaries.
    #[cold]
    pub fn put_back(&mut self, before: (u32, Option<u32>)) {
        let program = self.program.clone();
        let entries = &program.entries;
        if let Some(compiled) = program.templates.get(self.current_template as usize) {
            for &share in &entries.template_shares[compiled.shared_slots.range()] {
                let (saved, range) =
                    (self.saved_filled[share as usize], entries.shares[share as usize].range());
                if saved == before.0 {
                    self.dictionary_slots[range.clone()].copy_from_slice(&self.saved[range]);
                }
                self.share_epochs[share as usize] = saved;
            }
        }
        (self.epoch, self.template_id) = before;
        self.tidy_message();
    }

    /// Returns whether the text in dictionaries is within its bound.
    #[inline(always)]
    pub fn keeps_little(&self) -> bool {
        self.arena.len() <= self.kept_max || self.kept_bytes() <= self.kept_max
    }

    /// Counts the arena bytes of dictionary values that are not initial values.
    #[cold]
    fn kept_bytes(&self) -> usize {
        let program_text_len = self.program.texts.len();
        let shares = self.program.entries.shares.iter().zip(&self.share_epochs);
        let live = shares.filter(|(_, filled)| **filled == self.epoch);
        let slots = live.flat_map(|(share, _)| &self.dictionary_slots[share.range()]);
        let long = slots.filter(|slot| slot.state() == SlotState::Long).map(|slot| span(slot.bits));
        long.filter(|span| span.start >= program_text_len).map(|span| span.len()).sum()
    }

    #[inline(always)]
    fn tidy_message(&mut self) {
        self.entries.clear();
        self.text_bytes = 0;
        self.current_template = NONE;
    }

    #[inline(always)]
    pub fn tidy(&mut self) {
        self.tidy_message();
        if self.arena.len() >= self.sweep_at {
            self.sweep();
        }
    }

    /// Keeps only the texts in the arena to which slots refer, and only the defined slots.
    #[cold]
    fn sweep(&mut self) {
        let old_arena = std::mem::replace(&mut self.arena, self.program.texts.clone());
        for (share, filled) in self.program.entries.shares.iter().zip(&mut self.share_epochs) {
            let is_current = *filled == self.epoch;
            *filled = u32::from(is_current);
            // Texts of other epochs are gone.
            for slot in self.dictionary_slots[share.range()].iter_mut().filter(|_| is_current) {
                if slot.state() == SlotState::Long {
                    let span = span(slot.bits);
                    // Initial values stay where they are.
                    if span.start < self.program.texts.len() {
                        continue;
                    }
                    let text = &old_arena[span];
                    slot.bits = PackedValue::long(self.arena.len(), text.len()).bits;
                    self.arena.extend_from_slice(text);
                }
            }
        }
        self.epoch = 1;
        self.sweep_at = 2 * self.arena.len() + ARENA_BYTES;
    }
}
