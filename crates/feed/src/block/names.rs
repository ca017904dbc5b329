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

/// Finds ids in the published dictionary, or gives provisional ones and notes where they are.
#[derive(Debug)]
pub struct BlockNameResolver<'b> {
    pub(crate) known: &'b Dictionary,
    pub(crate) local: &'b mut Dictionary,
    pub(crate) fixups: &'b mut Vec<IdFixup>,
    pub(crate) waiting: &'b mut WaitingNames,
    pub(crate) frame: u32,
}

/// Names whose ids are on their way.
#[derive(Debug, Default)]
pub struct WaitingNames {
    /// Pending ids of the message before the current one.
    before: Vec<PendingId>,
    /// Index of its unit.
    unit: usize,
    /// Pending ids of the current message.
    now: Vec<PendingId>,
}

/// A place in the arena that waits for its id.
#[derive(Clone, Copy, Debug)]
struct PendingId {
    what: PendingName,
    /// Start of the frame it is in, and where it is.
    frame: u32,
    at: u32,
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

/// Stands where an id will: not 0, which is none.
const STAND_IN: u32 = 1;

impl NameResolver for BlockNameResolver<'_> {
    #[inline]
    fn resolve(&mut self, dict: NameKind, name: &[u8], at: usize) -> Result<u32, Refusal> {
        // Few names stay near, and are found at once.
        let far = self.known.len(dict) > NEAR;
        let sought = if far { self.known.start_lookup(dict, name) } else { None };
        match sought {
            Some(sought) => {
                self.wait(PendingName::Sought(sought), at);
                Ok(STAND_IN)
            }
            None => match self.known.get(dict, name) {
                Some(id) => Ok(id),
                None => self.provisional(dict, name, at),
            },
        }
    }

    fn take_back(&mut self, dict: NameKind, id: u32, at: usize, name: &mut Vec<u8>) -> Result<(), Refusal> {
        let (frame, at, waiting) = (self.frame, at as u32, &mut self.waiting.now);
        let pending = waiting.iter().rposition(|pending| (pending.frame, pending.at) == (frame, at));
        let mut room = [0; SOUGHT_BYTES];
        let text = match pending.map(|i| waiting.remove(i).what) {
            Some(PendingName::Sought(sought)) => Some(sought.name(&mut room)),
            Some(PendingName::Local(dict, id)) => self.local.name(dict, id).map(str::as_bytes),
            None => self.known.name(dict, id).map(str::as_bytes),
        };
        name.extend_from_slice(text.ok_or(Refusal::TwoPublishers)?);
        Ok(())
    }
}

impl BlockNameResolver<'_> {
    /// The id itself, which may be provisional and then is noted; only where no other name waits.
    ///
    /// # Errors
    /// As [`NameResolver::resolve`].
    pub fn resolve_now(&mut self, dict: NameKind, name: &[u8], at: usize) -> Result<u32, Refusal> {
        debug_assert!(self.waiting.before.is_empty(), "fix-ups stay in the order of the arena");
        if let Some(id) = self.known.get(dict, name) {
            return Ok(id);
        }
        let (id, _) = self.local.intern_up_to(dict, name, PROVISIONAL - 1)?;
        self.fixups.push(IdFixup { frame: self.frame, at: at as u32, dict, id });
        Ok(id | PROVISIONAL)
    }

    #[cold]
    fn provisional(&mut self, dict: NameKind, name: &[u8], at: usize) -> Result<u32, Refusal> {
        // Whether the dictionary still has a place for it is for the sequencer to say: it depends on all that
        // comes before, which a worker does not know.
        let (id, _) = self.local.intern_up_to(dict, name, PROVISIONAL - 1)?;
        self.wait(PendingName::Local(dict, id), at);
        Ok(STAND_IN)
    }

    #[inline]
    fn wait(&mut self, what: PendingName, at: usize) {
        self.waiting.now.push(PendingId { what, frame: self.frame, at: at as u32 });
    }
}

impl WaitingNames {
    /// The message in hand, whose unit will have this index, is complete: the one before gets its ids.
    #[inline]
    pub fn next(&mut self, unit: usize, to: &mut IdPatchTarget<'_>) {
        self.settle_before(to);
        std::mem::swap(&mut self.before, &mut self.now);
        self.unit = unit;
    }

    /// Takes the current message back.
    pub fn forget(&mut self) {
        self.now.clear();
    }

    /// All get their ids.
    pub fn settle(&mut self, to: &mut IdPatchTarget<'_>) {
        self.settle_before(to);
        debug_assert!(self.now.is_empty(), "a message was not ended");
    }

    #[inline]
    fn settle_before(&mut self, to: &mut IdPatchTarget<'_>) {
        for pending in &self.before {
            let known = match &pending.what {
                PendingName::Sought(sought) => to.known.finish_lookup(sought).map(|id| (sought.dict(), id)),
                PendingName::Local(..) => None,
            };
            match known {
                Some((dict, id)) => put(to.arena, pending.at as usize, dict, id),
                None => to.provisional(pending, self.unit),
            }
        }
        self.before.clear();
    }
}

/// The destination of ids.
#[derive(Debug)]
pub struct IdPatchTarget<'b> {
    pub known: &'b Dictionary,
    pub local: &'b mut Dictionary,
    pub arena: &'b mut [u8],
    pub fixups: &'b mut Vec<IdFixup>,
    pub units: &'b mut [BlockMessage],
}

impl IdPatchTarget<'_> {
    #[cold]
    fn provisional(&mut self, pending: &PendingId, unit: usize) {
        let (dict, id) = match &pending.what {
            PendingName::Local(dict, id) => (*dict, *id),
            PendingName::Sought(sought) => {
                let given = self.local.intern_up_to(
                    sought.dict(),
                    sought.name(&mut [0; SOUGHT_BYTES]),
                    PROVISIONAL - 1,
                );
                (sought.dict(), given.expect("a short name of ASCII").0)
            }
        };
        put(self.arena, pending.at as usize, dict, id | PROVISIONAL);
        self.fixups.push(IdFixup { frame: pending.frame, at: pending.at, dict, id });
        // It belongs to the unit, and all later ones begin after it.
        self.units[unit..].iter_mut().for_each(|u| u.fixups_end += 1);
    }
}

/// Writes an id to its place; that of a venue has 16 bits, with the mark of a provisional one in the top one.
#[inline]
pub fn put(arena: &mut [u8], at: usize, dict: NameKind, id: u32) {
    if dict == NameKind::Venue {
        let id = id as u16 | if id & PROVISIONAL != 0 { VENUE_PROVISIONAL } else { 0 };
        arena[at..at + 2].copy_from_slice(&id.to_le_bytes());
    } else {
        arena[at..at + 4].copy_from_slice(&id.to_le_bytes());
    }
}
