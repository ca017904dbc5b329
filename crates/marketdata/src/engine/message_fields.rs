//! The contents of a message, extracted from its fields into numbers.
//!
//! ```text
//!  decoder ── requested fields, under their tags ──▶ field_visitor ──▶ PacketMessages: messages, entries, definitions
//! ```
//!
//! A packet is read as a whole before anything of it is used. If its last message is bad, the other line's copy
//! replaces the packet, so none of its messages may have been used. [`PacketMessages`] holds the contents, and is
//! reused.

use super::codes::{EntryAction, EntryType, NOTHING};
use super::config::MessageKind;
use super::field_roles::FieldRole;
use super::ids::NativeId;
use unitape_model::{Price, Quantity};

/// Represents a missing number.
pub(super) const NO_NUMBER: u64 = u64::MAX;

/// Returns the number of a message, if it has a number.
#[inline]
pub(super) fn as_option(sequence: u64) -> Option<u64> {
    (sequence != NO_NUMBER).then_some(sequence)
}

/// Represents a missing time.
pub(super) const NO_TIME: i64 = i64::MIN;

/// The fields of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageFields {
    /// `None` for a template that the mapping does not name.
    pub kind: Option<MessageKind>,
    pub template: u32,
    /// The message's offset in its packet, and its length in bytes.
    pub offset: u32,
    pub length: u32,
    pub product: NativeId,
    pub instrument: NativeId,
    pub sequence: u64,
    pub last_number: u64,
    pub time_ns: i64,
    pub product_state: NativeId,
    pub instrument_state: NativeId,
    /// The message's entries in the batch.
    pub entries: BatchRange,
    /// Index of the message's definition in the batch, plus one; 0 if it has no definition.
    pub definition: u32,
    /// Why it cannot be used.
    pub message_fault: Option<MarketMessageFault>,
}

/// The place of a message's entries or text in the batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BatchRange {
    pub from: u32,
    pub to: u32,
}

impl BatchRange {
    #[inline]
    fn entry_range(self) -> std::ops::Range<usize> {
        self.from as usize..self.to as usize
    }
}

/// Why a message cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MarketMessageFault {
    pub code: &'static str,
    pub tag: FieldRole,
}

/// An entry of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryFields {
    pub instrument: NativeId,
    pub time_ns: i64,
    /// [`Price::NONE`] if the entry has no price.
    pub px: Price,
    pub qty: Option<Quantity>,
    pub trade_id: u64,
    pub instrument_state: NativeId,
    /// Number of orders; [`u32::MAX`] if it is unknown.
    pub orders: u32,
    /// Depth; 0 if it is missing.
    pub depth: u16,
    pub action: Option<EntryAction>,
    pub entry_type: EntryType,
    pub aggressor: u8,
}

/// Reference data of a product or an instrument. Texts are ranges of [`PacketMessages::texts`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DefinitionFields {
    pub name: BatchRange,
    pub group: BatchRange,
    pub symbol: BatchRange,
    pub currency: BatchRange,
    pub market_depth: Option<u16>,
    pub tick: Option<Price>,
    pub multiplier: Option<Quantity>,
    pub is_deleted: bool,
}

/// Messages of a packet.
#[derive(Clone, Debug, Default)]
pub(super) struct PacketMessages {
    pub messages: Vec<MessageFields>,
    pub entries: Vec<EntryFields>,
    pub definitions: Vec<DefinitionFields>,
    pub texts: Vec<u8>,
    /// Entries whose type the configuration does not have, and other values that were left out.
    pub unknown_values: u64,
}

impl PacketMessages {
    pub fn clear(&mut self) {
        self.messages.clear();
        self.entries.clear();
        self.definitions.clear();
        self.texts.clear();
        self.unknown_values = 0;
    }

    pub fn text_bytes(&self, range: BatchRange) -> &[u8] {
        &self.texts[range.entry_range()]
    }

    /// Returns the entries of a message in the batch.
    #[inline]
    pub fn entries_of(&self, message: &MessageFields) -> &[EntryFields] {
        &self.entries[message.entries.entry_range()]
    }
}

/// Returns the reference data of a message; all fields are absent if it has no such data.
pub(super) fn definition(message: &MessageFields, batch: &PacketMessages) -> DefinitionFields {
    message
        .definition
        .checked_sub(1)
        .map_or_else(DefinitionFields::default, |index| batch.definitions[index as usize])
}

impl MessageFields {
    /// The fields of an empty message.
    pub(super) const NOTHING: Self = Self {
        kind: None,
        template: 0,
        offset: 0,
        length: 0,
        product: NativeId::NONE,
        instrument: NativeId::NONE,
        sequence: NO_NUMBER,
        last_number: NO_NUMBER,
        time_ns: NO_TIME,
        product_state: NativeId::NONE,
        instrument_state: NativeId::NONE,
        entries: BatchRange { from: 0, to: 0 },
        definition: 0,
        message_fault: None,
    };
}

impl EntryFields {
    /// Makes an empty entry of the instrument that its message names, if any.
    #[inline(always)]
    pub(super) fn with_instrument(instrument: NativeId) -> Self {
        Self {
            instrument,
            time_ns: NO_TIME,
            px: Price::NONE,
            qty: None,
            trade_id: NO_NUMBER,
            instrument_state: NativeId::NONE,
            orders: u32::MAX,
            depth: 0,
            action: None,
            entry_type: EntryType::Ignore,
            aggressor: NOTHING,
        }
    }
}
