//! Names of events to ids, looked for a message ahead of their use.
//!
//! A hundred thousand accounts do not stay near the processor; the id of one comes from memory, which needs as much
//! time as much of the rest of a message. So where there are many, a name is only *sought* while its event is built:
//! the processor is asked for the line where its id is, and the place in the event gets a placeholder. When the next
//! message is complete, the id is there and is put into its place.
//!
//! ```text
//!  message 1   seek, seek, seek ─┐
//!  message 2   seek, seek        │ ─┐   end of message 2: ids of message 1
//!  message 3   …                    └─▶ end of message 3: ids of message 2
//! ```
//!
//! A name that the worker's snapshot does not have gets a provisional id and an entry in the fix-ups, which stay in the
//! order of the arena.

use crate::block::{BlockMessage, IdFixup};
use unitape_model::dict::{NameLookup, SOUGHT_BYTES};
use unitape_model::id::{PROVISIONAL, VENUE_PROVISIONAL};
use unitape_model::{Dictionary, NameKind, NameResolver, Refusal};

/// Finds ids in the published dictionary, or assigns provisional ids and notes their offsets.
#[derive(Debug)]
pub struct BlockNameResolver<'b> {
    pub(crate) dictionary: &'b Dictionary,
    pub(crate) local: &'b mut Dictionary,
    pub(crate) fixups: &'b mut Vec<IdFixup>,
    pub(crate) waiting_names: &'b mut WaitingNames,
    pub(crate) frame: u32,
}

/// Names whose ids are on their way.
#[derive(Debug, Default)]
pub struct WaitingNames {
    /// Pending ids of the message before the current one.
    pending_before: Vec<PendingId>,
    /// Index of its unit.
    unit_index: usize,
    /// Pending ids of the current message.
    now: Vec<PendingId>,
}

/// A place in the arena that waits for its id.
#[derive(Clone, Copy, Debug)]
struct PendingId {
    name: PendingName,
    /// Start of the frame it is in, and where it is.
    frame: u32,
    id_offset: u32,
}

#[derive(Clone, Copy, Debug)]
enum PendingName {
    /// To be looked up.
    Sought(NameLookup),
    /// Not known when it was looked up; its id in the block's own names.
    Local(NameKind, u32),
}

/// Names of a kind that stay near the processor: 64 KiB of them.
const NEAR: u32 = 2048;

/// The placeholder for an id; not 0, which means no id.
const STAND_IN: u32 = 1;

impl NameResolver for BlockNameResolver<'_> {
    #[inline]
    fn resolve(&mut self, dict: NameKind, name: &[u8], id_offset: usize) -> Result<u32, Refusal> {
        // Few names stay near, and are found at once.
        let far = self.dictionary.len(dict) > NEAR;
        let sought = if far { self.dictionary.start_lookup(dict, name) } else { None };
        match sought {
            Some(sought) => {
                self.wait_for_id(PendingName::Sought(sought), id_offset);
                Ok(STAND_IN)
            }
            None => match self.dictionary.get(dict, name) {
                Some(id) => Ok(id),
                None => self.add_provisional(dict, name, id_offset),
            },
        }
    }

    fn take_back(
        &mut self,
        dict: NameKind,
        id: u32,
        id_offset: usize,
        name: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let (frame, arena_offset, waiting) = (self.frame, id_offset as u32, &mut self.waiting_names.now);
        let pending =
            waiting.iter().rposition(|pending| (pending.frame, pending.id_offset) == (frame, arena_offset));
        let mut room = [0; SOUGHT_BYTES];
        let text = match pending.map(|i| waiting.remove(i).name) {
            Some(PendingName::Sought(sought)) => Some(sought.name(&mut room)),
            Some(PendingName::Local(dict, id)) => self.local.name(dict, id).map(str::as_bytes),
            None => self.dictionary.name(dict, id).map(str::as_bytes),
        };
        name.extend_from_slice(text.ok_or(Refusal::TwoPublishers)?);
        Ok(())
    }
}

impl BlockNameResolver<'_> {
    /// Resolves a name at once; notes a fix-up if the id is provisional. No other name may be waiting.
    ///
    /// # Errors
    /// Fails as [`NameResolver::resolve`] does.
    pub fn resolve_now(&mut self, dict: NameKind, name: &[u8], id_offset: usize) -> Result<u32, Refusal> {
        debug_assert!(self.waiting_names.pending_before.is_empty(), "fix-ups stay in the order of the arena");
        if let Some(id) = self.dictionary.get(dict, name) {
            return Ok(id);
        }
        let (id, _) = self.local.intern_up_to(dict, name, PROVISIONAL - 1)?;
        self.fixups.push(IdFixup { frame: self.frame, id_offset: id_offset as u32, dict, id });
        Ok(id | PROVISIONAL)
    }

    #[cold]
    fn add_provisional(&mut self, dict: NameKind, name: &[u8], id_offset: usize) -> Result<u32, Refusal> {
        // Whether the dictionary still has a place for it is for the sequencer to say: it depends on all that
        // comes before, which a worker does not know.
        let (id, _) = self.local.intern_up_to(dict, name, PROVISIONAL - 1)?;
        self.wait_for_id(PendingName::Local(dict, id), id_offset);
        Ok(STAND_IN)
    }

    #[inline]
    fn wait_for_id(&mut self, name: PendingName, id_offset: usize) {
        self.waiting_names.now.push(PendingId { name, frame: self.frame, id_offset: id_offset as u32 });
    }
}

impl WaitingNames {
    /// Ends the current message, whose unit will have the index `unit`. Resolves the names of the previous message.
    #[inline]
    pub fn next(&mut self, unit: usize, to: &mut IdPatchTarget<'_>) {
        self.resolve_before(to);
        std::mem::swap(&mut self.pending_before, &mut self.now);
        self.unit_index = unit;
    }

    /// Takes the current message back.
    pub fn forget_message(&mut self) {
        self.now.clear();
    }

    /// Resolves all waiting names.
    pub fn resolve_all(&mut self, to: &mut IdPatchTarget<'_>) {
        self.resolve_before(to);
        debug_assert!(self.now.is_empty(), "a message was not ended");
    }

    #[inline]
    fn resolve_before(&mut self, to: &mut IdPatchTarget<'_>) {
        for pending in &self.pending_before {
            let resolved_id = match &pending.name {
                PendingName::Sought(sought) => {
                    to.dictionary.finish_lookup(sought).map(|id| (sought.dict(), id))
                }
                PendingName::Local(..) => None,
            };
            match resolved_id {
                Some((dict, id)) => write_id(to.arena, pending.id_offset as usize, dict, id),
                None => to.patch_provisional(pending, self.unit_index),
            }
        }
        self.pending_before.clear();
    }
}

/// The destination of ids.
#[derive(Debug)]
pub struct IdPatchTarget<'b> {
    pub dictionary: &'b Dictionary,
    pub local: &'b mut Dictionary,
    pub arena: &'b mut [u8],
    pub fixups: &'b mut Vec<IdFixup>,
    pub units: &'b mut [BlockMessage],
}

impl IdPatchTarget<'_> {
    #[cold]
    fn patch_provisional(&mut self, pending: &PendingId, unit: usize) {
        let (dict, id) = match &pending.name {
            PendingName::Local(dict, id) => (*dict, *id),
            PendingName::Sought(sought) => {
                let intern_outcome = self.local.intern_up_to(
                    sought.dict(),
                    sought.name(&mut [0; SOUGHT_BYTES]),
                    PROVISIONAL - 1,
                );
                (sought.dict(), intern_outcome.expect("a short name of ASCII").0)
            }
        };
        write_id(self.arena, pending.id_offset as usize, dict, id | PROVISIONAL);
        self.fixups.push(IdFixup { frame: pending.frame, id_offset: pending.id_offset, dict, id });
        // It belongs to the unit, and all later ones begin after it.
        self.units[unit..].iter_mut().for_each(|u| u.fixups_end += 1);
    }
}

/// Writes an id to its place; that of a venue has 16 bits, with the mark of a provisional one in the top one.
#[inline]
pub fn write_id(arena: &mut [u8], offset: usize, dict: NameKind, id: u32) {
    if dict == NameKind::Venue {
        let id = id as u16 | if id & PROVISIONAL != 0 { VENUE_PROVISIONAL } else { 0 };
        arena[offset..offset + 2].copy_from_slice(&id.to_le_bytes());
    } else {
        arena[offset..offset + 4].copy_from_slice(&id.to_le_bytes());
    }
}
