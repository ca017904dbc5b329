//! What a message says, taken out of its fields into numbers.
//!
//! ```text
//!  decoder ── what the mapping asks for, under its tags ──▶ Taking ──▶ Batch: told, entries, definitions of a packet
//! ```
//!
//! A packet is read as a whole before anything of it is used: if its last message is bad, the copy of the other line is to
//! come in its place, and none of its messages must have been seen. What was read stands in a [`Batch`], used again.

use super::codes::{NOTHING, Type, Update};
use super::config::Kind;
use super::ids::Id;
use super::tags::Tag;
use unitape_model::{Price, Quantity};

/// In place of a number: none.
pub(super) const NO_NUMBER: u64 = u64::MAX;

/// The number of a message, if it has one.
#[inline]
pub(super) fn some(sequence: u64) -> Option<u64> {
    (sequence != NO_NUMBER).then_some(sequence)
}

/// In place of a time: none.
pub(super) const NO_TIME: i64 = i64::MIN;

/// What a message says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    /// None for a template that nothing names.
    pub kind: Option<Kind>,
    pub template: u32,
    /// Where it stands in its packet, and its bytes.
    pub at: u32,
    pub length: u32,
    pub product: Id,
    pub instrument: Id,
    pub sequence: u64,
    pub last: u64,
    pub time: i64,
    pub product_state: Id,
    pub instrument_state: Id,
    /// Its entries in the batch.
    pub entries: (u32, u32),
    /// Its definition in the batch, one more; 0 for none.
    pub definition: u32,
    /// Why it cannot be used.
    pub bad: Option<Bad>,
}

/// Why a message cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bad {
    pub code: &'static str,
    pub tag: Tag,
}

/// An entry of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub instrument: Id,
    pub time: i64,
    /// Of [`Price::NONE`] where it is not told.
    pub px: Price,
    pub qty: Option<Quantity>,
    pub trade_id: u64,
    pub instrument_state: Id,
    /// [`u32::MAX`] for none.
    pub orders: u32,
    /// 0 for none.
    pub depth: u16,
    pub action: Option<Update>,
    pub sort: Type,
    pub aggressor: u8,
}

/// What is told of a product or an instrument. Texts are ranges of [`Batch::texts`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Definition {
    pub name: (u32, u32),
    pub group: (u32, u32),
    pub symbol: (u32, u32),
    pub currency: (u32, u32),
    pub market_depth: Option<u16>,
    pub tick: Option<Price>,
    pub multiplier: Option<Quantity>,
    pub deleted: bool,
}

/// Messages of a packet.
#[derive(Clone, Debug, Default)]
pub(super) struct Batch {
    pub told: Vec<Told>,
    pub entries: Vec<Entry>,
    pub definitions: Vec<Definition>,
    pub texts: Vec<u8>,
    /// Entries whose type the configuration does not have, and other values that were left out.
    pub unknown: u64,
}

impl Batch {
    pub fn clear(&mut self) {
        self.told.clear();
        self.entries.clear();
        self.definitions.clear();
        self.texts.clear();
        self.unknown = 0;
    }

    pub fn text(&self, (from, to): (u32, u32)) -> &[u8] {
        &self.texts[from as usize..to as usize]
    }
}

/// What a message tells of a product or an instrument.
pub(super) fn definition(told: &Told, batch: &Batch) -> Definition {
    told.definition.checked_sub(1).map_or_else(Definition::default, |at| batch.definitions[at as usize])
}

impl Told {
    /// One that says nothing.
    pub(super) const NOTHING: Self = Self {
        kind: None,
        template: 0,
        at: 0,
        length: 0,
        product: Id::NONE,
        instrument: Id::NONE,
        sequence: NO_NUMBER,
        last: NO_NUMBER,
        time: NO_TIME,
        product_state: Id::NONE,
        instrument_state: Id::NONE,
        entries: (0, 0),
        definition: 0,
        bad: None,
    };
}

impl Entry {
    /// One of which nothing is told but, perhaps, by its message whose it is.
    #[inline(always)]
    pub(super) fn nothing(instrument: Id) -> Self {
        Self {
            instrument,
            time: NO_TIME,
            px: Price::NONE,
            qty: None,
            trade_id: NO_NUMBER,
            instrument_state: Id::NONE,
            orders: u32::MAX,
            depth: 0,
            action: None,
            sort: Type::Ignore,
            aggressor: NOTHING,
        }
    }
}
