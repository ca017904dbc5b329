//! The fields of a message, as they come, become what it says.
//!
//! Most values are of the type that one expects of their field, and right: these are read in one loop, and go
//! straight to the entry in the batch ([`MessageVisitor::parts`]). All others come one by one, and so does what is
//! wrong: the slow path alone decides its kind.

use super::codes::{CodeMeanings, EntryAction, EntryType};
use super::config::{MessageKind, TimeUnit};
use super::field_roles::FieldRole;
use super::ids::{ID_BYTES_MAX, LongIdTable, NativeId};
use super::message_fields::{
    BatchRange, DefinitionFields, EntryFields, MarketMessageFault, MessageFields, NO_NUMBER, PacketMessages,
};
use super::plan::HandlerConfig;
use super::values::{code, px, px_of, qty, qty_of, time_ns, unsigned_number};
use unitape_fast::{DecodedValue, FieldValue, Message, MessagePart, MessagePartIter, MessageVisitor};
use unitape_model::Price;

/// Extracts the fields of a message and appends them to the batch's.
#[inline]
pub(super) fn extract_fields(
    message: &Message<'_>,
    kind: Option<MessageKind>,
    offset: usize,
    context: VisitorContext<'_>,
    batch: &mut PacketMessages,
) {
    if let Some(mut visitor) = FieldVisitor::new(message, kind, offset, context, batch) {
        message.visit(&mut visitor);
        visitor.message.entries.to = visitor.entries.len() as u32;
    }
}

/// The settings for reading a message's fields, and the table of its long ids.
pub(super) struct VisitorContext<'r> {
    pub config: &'r HandlerConfig,
    pub long_ids: &'r mut LongIdTable,
}

/// A message while its fields come.
pub(super) struct FieldVisitor<'r> {
    config: &'r HandlerConfig,
    long_ids: &'r mut LongIdTable,
    message: &'r mut MessageFields,
    /// The last one is in hand, where the place is in an entry.
    entries: &'r mut Vec<EntryFields>,
    definitions: &'r mut Vec<DefinitionFields>,
    texts: &'r mut Vec<u8>,
    unknown_count: &'r mut u64,
    kind: MessageKind,
    owner: FieldOwner,
    /// The place of the message that is inside this one.
    outer_owner: FieldOwner,
    /// Groups, sequences and elements around the place, and how many of them are around the elements that are entries.
    nesting_depth: u32,
    entry_depth: u32,
    /// Messages in the message around it.
    message_depth: u32,
}

/// The owner of the fields that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldOwner {
    Message,
    Entry,
    /// A message inside this one: its fields are not fields of this one.
    Inner,
}

/// In place of a level: outside of all entries.
const NOWHERE: u32 = u32::MAX;

impl MessageVisitor for FieldVisitor<'_> {
    #[inline(always)]
    fn value(&mut self, tag: u16, value: DecodedValue<'_>) {
        let Some(tag) = FieldRole::from_number(tag) else { return };
        if self.owner == FieldOwner::Entry {
            self.of_entry(tag, value);
        } else if self.owner == FieldOwner::Message {
            self.of_message(tag, value);
        }
    }

    #[inline(always)]
    fn group(&mut self, _tag: u16) {
        self.nesting_depth += 1;
    }

    #[inline(always)]
    fn sequence(&mut self, tag: u16, _elements: u32) {
        self.nesting_depth += 1;
        if tag == FieldRole::Entries as u16 && self.message_depth == 0 {
            self.entry_depth = self.nesting_depth;
        }
    }

    #[inline(always)]
    fn element(&mut self) {
        if self.nesting_depth == self.entry_depth {
            self.entries.push(EntryFields::with_instrument(self.message.instrument));
            self.owner = FieldOwner::Entry;
        }
        self.nesting_depth += 1;
    }

    #[inline(always)]
    fn end(&mut self) {
        self.nesting_depth -= 1;
        if self.nesting_depth == self.entry_depth && self.owner == FieldOwner::Entry {
            self.owner = FieldOwner::Message;
            self.entry_ends();
        }
        if self.nesting_depth < self.entry_depth {
            self.entry_depth = NOWHERE;
        }
    }

    #[inline(always)]
    fn parts(&mut self, parts: &mut MessagePartIter<'_>) {
        if self.owner == FieldOwner::Message {
            self.parts_of_message(parts);
            if self.nesting_depth != self.entry_depth || !parts.element() {
                return;
            }
            self.element();
        }
        while self.owner == FieldOwner::Entry {
            self.parts_of_entry(parts);
            if self.nesting_depth.wrapping_sub(1) != self.entry_depth || !parts.element() {
                return;
            }
            self.entry_ends();
            self.entries.push(EntryFields::with_instrument(self.message.instrument));
        }
    }

    fn inner(&mut self, _template: usize) {
        if self.message_depth == 0 {
            self.outer_owner = std::mem::replace(&mut self.owner, FieldOwner::Inner);
        }
        self.message_depth += 1;
    }

    fn inner_end(&mut self) {
        self.message_depth -= 1;
        if self.message_depth == 0 {
            self.owner = self.outer_owner;
        }
    }
}

impl<'r> FieldVisitor<'r> {
    /// Starts a message without any field read yet. Returns `None` if its fields are not needed.
    #[inline(always)]
    pub(super) fn new(
        message: &Message<'_>,
        kind: Option<MessageKind>,
        offset: usize,
        context: VisitorContext<'r>,
        batch: &'r mut PacketMessages,
    ) -> Option<Self> {
        let VisitorContext { config, long_ids: ids } = context;
        let PacketMessages { messages, entries, definitions, texts, unknown_values: unknown } = batch;
        let entries_start = entries.len() as u32;
        messages.push(MessageFields {
            kind,
            template: message.template as u32,
            offset: offset as u32,
            length: message.bytes as u32,
            entries: BatchRange { from: entries_start, to: entries_start },
            ..MessageFields::NOTHING
        });
        let (message, kind) = (messages.last_mut()?, kind.filter(|kind| *kind != MessageKind::Ignore)?);
        Some(Self {
            config,
            long_ids: ids,
            message,
            entries,
            definitions,
            texts,
            unknown_count: unknown,
            kind,
            owner: FieldOwner::Message,
            outer_owner: FieldOwner::Message,
            nesting_depth: 0,
            entry_depth: NOWHERE,
            message_depth: 0,
        })
    }

    /// Reads the usual values of an entry. The result is the same as that of [`Self::of_entry`], which reads all
    /// other values and reports faults.
    #[inline(always)]
    fn parts_of_entry(&mut self, parts: &mut MessagePartIter<'_>) {
        let Self { config, entries, .. } = self;
        let Some(entry) = entries.last_mut() else { return };
        let codes = &config.codes;
        while let Some(part) = parts.first() {
            let Some(tag) = FieldRole::from_number(part.tag()) else { return };
            let outcome = match tag {
                FieldRole::Instrument => part.uint().map(|n| entry.instrument = NativeId::number(n)),
                FieldRole::Action => meaning_of(&codes.action, part)
                    .and_then(update_of)
                    .map(|action| entry.action = Some(action)),
                FieldRole::Type => {
                    meaning_of(&codes.r#type, part).map(|meaning| entry.entry_type = type_of(meaning))
                }
                FieldRole::Px => part
                    .decimal()
                    .and_then(|(mantissa, exponent)| px_of(mantissa, exponent))
                    .map(|px| entry.px = px),
                FieldRole::Qty => {
                    let exponent = config.qty_exponent;
                    let integer = whole_number(part).map(|mantissa| (mantissa, exponent));
                    integer
                        .or_else(|| part.decimal())
                        .and_then(|(mantissa, exponent)| qty_of(mantissa, exponent))
                        .map(|qty| entry.qty = Some(qty))
                }
                FieldRole::Orders => {
                    part.uint().and_then(|n| u32::try_from(n).ok()).map(|n| entry.orders = n)
                }
                FieldRole::Depth => part.uint().and_then(|n| u16::try_from(n).ok()).map(|n| entry.depth = n),
                FieldRole::EntryTime if config.time_unit == TimeUnit::Nanos => {
                    // One below zero is above all times then.
                    let nanos = part.int().map(|nanos| nanos as u64).or_else(|| part.uint());
                    nanos.and_then(|nanos| i64::try_from(nanos).ok()).map(|time| entry.time_ns = time)
                }
                FieldRole::TradeId => part.uint().map(|n| entry.trade_id = n),
                FieldRole::Aggressor => {
                    meaning_of(&codes.aggressor, part).map(|meaning| entry.aggressor = meaning)
                }
                FieldRole::InstrumentState => {
                    part.uint().map(|n| entry.instrument_state = NativeId::number(n))
                }
                _ => None,
            };
            if outcome.is_none() {
                return;
            }
            parts.skip_value();
        }
    }

    /// Reads parts outside of entries.
    #[inline(always)]
    fn parts_of_message(&mut self, parts: &mut MessagePartIter<'_>) {
        let message = &mut *self.message;
        while let Some(part) = parts.first() {
            let Some(n) = part.uint() else { return };
            match FieldRole::from_number(part.tag()) {
                Some(FieldRole::Product) => message.product = first_id(message.product, NativeId::number(n)),
                Some(FieldRole::Instrument) => {
                    message.instrument = first_id(message.instrument, NativeId::number(n))
                }
                Some(FieldRole::Sequence) => message.sequence = n,
                Some(FieldRole::Last) => message.last_number = n,
                _ => return,
            }
            parts.skip_value();
        }
    }

    /// Takes a field inside an entry; it may belong to the entry or to the message.
    #[inline(never)]
    fn of_entry(&mut self, tag: FieldRole, value: DecodedValue<'_>) {
        let Self { config, long_ids: ids, entries, unknown_count: unknown, .. } = self;
        let Some(entry) = entries.last_mut() else { return };
        let codes = &config.codes;
        let well = match tag {
            FieldRole::Instrument => ids.intern(value).map(|id| entry.instrument = id),
            FieldRole::Action => {
                entry.action = update_of(code(&codes.action, value));
                entry.action.map(|_| ())
            }
            FieldRole::Type => {
                entry.entry_type = type_of(code(&codes.r#type, value));
                Some(())
            }
            FieldRole::Px => px(value, config.px_exponent).map(|px| entry.px = px),
            FieldRole::Qty => qty(value, config.qty_exponent).map(|qty| entry.qty = Some(qty)),
            FieldRole::Orders => {
                unsigned_number(value).and_then(|n| u32::try_from(n).ok()).map(|n| entry.orders = n)
            }
            FieldRole::Depth => {
                unsigned_number(value).and_then(|n| u16::try_from(n).ok()).map(|n| entry.depth = n)
            }
            FieldRole::EntryTime => time_ns(value, config.time_unit).map(|time| entry.time_ns = time),
            FieldRole::TradeId => {
                entry.trade_id = unsigned_number(value).unwrap_or(NO_NUMBER);
                // A trade is one without its id, too.
                **unknown += u64::from(entry.trade_id == NO_NUMBER);
                Some(())
            }
            FieldRole::Aggressor => {
                entry.aggressor = code(&codes.aggressor, value);
                Some(())
            }
            FieldRole::InstrumentState => ids.intern(value).map(|id| entry.instrument_state = id),
            _ => return self.of_message(tag, value),
        };
        if well.is_none() {
            let code =
                if tag == FieldRole::Px || tag == FieldRole::Qty { "decimal_fit" } else { "bad_value" };
            self.note_fault(code, tag);
        }
    }

    #[inline(never)]
    fn of_message(&mut self, tag: FieldRole, value: DecodedValue<'_>) {
        let Self { config, long_ids: ids, message, .. } = self;
        let well = match tag {
            FieldRole::Product => ids.intern(value).map(|id| message.product = first_id(message.product, id)),
            FieldRole::Instrument => {
                ids.intern(value).map(|id| message.instrument = first_id(message.instrument, id))
            }
            FieldRole::Sequence => unsigned_number(value).map(|n| message.sequence = n),
            FieldRole::Last => unsigned_number(value).map(|n| message.last_number = n),
            FieldRole::Time | FieldRole::EntryTime => {
                time_ns(value, config.time_unit).map(|time| message.time_ns = time)
            }
            FieldRole::ProductState => {
                ids.intern(value).map(|id| message.product_state = first_id(message.product_state, id))
            }
            FieldRole::InstrumentState => {
                ids.intern(value).map(|id| message.instrument_state = first_id(message.instrument_state, id))
            }
            FieldRole::Name
            | FieldRole::Group
            | FieldRole::Symbol
            | FieldRole::Currency
            | FieldRole::MarketDepth
            | FieldRole::Tick
            | FieldRole::Multiplier
            | FieldRole::Deleted => {
                self.define(tag, value);
                Some(())
            }
            _ => Some(()),
        };
        if well.is_none() {
            self.note_fault("bad_value", tag);
        }
    }

    /// Notes a fault of the message. Only the first fault counts.
    #[cold]
    fn note_fault(&mut self, code: &'static str, tag: FieldRole) {
        self.message.message_fault.get_or_insert(MarketMessageFault { code, tag });
    }

    #[cold]
    #[inline(never)]
    fn define(&mut self, tag: FieldRole, value: DecodedValue<'_>) {
        let Self { config, message, definitions, texts, unknown_count: unknown, .. } = self;
        if message.definition == 0 {
            definitions.push(DefinitionFields::default());
            message.definition = definitions.len() as u32;
        }
        let text_start = texts.len() as u32;
        let mut text = || match value.get() {
            FieldValue::Text(text) | FieldValue::Bytes(text) => {
                let text = &text[..text.len().min(ID_BYTES_MAX)];
                texts.extend_from_slice(text.trim_ascii_end());
                BatchRange { from: text_start, to: texts.len() as u32 }
            }
            FieldValue::UInt(n) => {
                texts.extend_from_slice(n.to_string().as_bytes());
                BatchRange { from: text_start, to: texts.len() as u32 }
            }
            _ => BatchRange { from: text_start, to: text_start },
        };
        let is_empty = |range: BatchRange| range.from == range.to;
        let definition = &mut definitions[message.definition as usize - 1];
        match tag {
            FieldRole::Name if is_empty(definition.name) => definition.name = text(),
            FieldRole::Group if is_empty(definition.group) => definition.group = text(),
            FieldRole::Symbol if is_empty(definition.symbol) => definition.symbol = text(),
            FieldRole::Currency if is_empty(definition.currency) => definition.currency = text(),
            // The deepest of all feeds of a product; 0 is for no bound.
            FieldRole::MarketDepth => {
                let depth = unsigned_number(value).and_then(|n| u16::try_from(n).ok()).filter(|n| *n > 0);
                definition.market_depth = definition.market_depth.max(depth);
            }
            FieldRole::Tick => {
                let tick = px(value, config.px_exponent);
                **unknown += u64::from(tick.is_none());
                definition.tick = definition.tick.or(tick);
            }
            FieldRole::Multiplier => {
                let multiplier = qty(value, 0);
                **unknown += u64::from(multiplier.is_none());
                definition.multiplier = definition.multiplier.or(multiplier);
            }
            FieldRole::Deleted => definition.is_deleted = code(&config.codes.deleted, value) == 0,
            _ => {}
        }
    }

    /// Completes the current entry.
    #[inline(always)]
    fn entry_ends(&mut self) {
        let Some(entry) = self.entries.last() else { return };
        let kind = self.kind;
        // In snapshots, states appear in entries.
        if kind == MessageKind::Snapshot {
            self.message.instrument_state = first_id(self.message.instrument_state, entry.instrument_state);
        }
        let missing = |tag| Some(EntryFault::Lacks(tag));
        let wrong = match (kind, entry.entry_type) {
            (MessageKind::MassState, _) if entry.instrument.is_none() => missing(FieldRole::Instrument),
            (MessageKind::MassState, _) => None,
            (_, EntryType::Ignore) => Some(EntryFault::Unknown),
            (_, EntryType::Empty) => None,
            (MessageKind::Snapshot, EntryType::Trade) => Some(EntryFault::Unused),
            (_, EntryType::Trade) if entry.instrument.is_none() => missing(FieldRole::Instrument),
            (_, EntryType::Trade) if entry.px == Price::NONE => missing(FieldRole::Px),
            (_, EntryType::Trade) if entry.qty.is_none() => missing(FieldRole::Qty),
            (_, EntryType::Trade) => None,
            _ if entry.instrument.is_none() => missing(FieldRole::Instrument),
            (MessageKind::Depth, _) if entry.action.is_none() => missing(FieldRole::Action),
            // As of market orders in an auction.
            (MessageKind::Snapshot, _) if entry.px == Price::NONE => Some(EntryFault::Unknown),
            _ => None,
        };
        if let Some(wrong) = wrong {
            self.note_wrong_entry(wrong);
        }
    }

    #[cold]
    #[inline(never)]
    fn note_wrong_entry(&mut self, wrong: EntryFault) {
        match wrong {
            EntryFault::Lacks(tag) => return self.note_fault("missing", tag),
            EntryFault::Unknown => *self.unknown_count += 1,
            EntryFault::Unused => {}
        }
        self.entries.pop();
    }
}

/// Why an entry is not as it must be.
enum EntryFault {
    Lacks(FieldRole),
    /// The message is counted, and not used.
    Unknown,
    Unused,
}

/// Returns the meaning of the code in `part`, if it has the usual encoding of codes.
#[inline(always)]
fn meaning_of(table: &CodeMeanings, part: MessagePart<'_>) -> Option<u8> {
    match part.uint() {
        Some(n) => table.numbers.get(usize::try_from(n).ok()?).copied(),
        None => Some(table.letters[usize::from(part.letter()?)]),
    }
}

/// Reads a whole number.
#[inline(always)]
fn whole_number(part: MessagePart<'_>) -> Option<i64> {
    match part.uint() {
        Some(n) => i64::try_from(n).ok(),
        None => part.int(),
    }
}

/// Returns the action with this index in the list of words.
#[inline(always)]
fn update_of(meaning: u8) -> Option<EntryAction> {
    Some(match meaning {
        0 => EntryAction::New,
        1 => EntryAction::Change,
        2 => EntryAction::Delete,
        3 => EntryAction::Thru,
        4 => EntryAction::From,
        5 => EntryAction::Overlay,
        6 => EntryAction::Ignore,
        _ => return None,
    })
}

/// Returns the type of an entry from the meaning of its code.
#[inline(always)]
fn type_of(meaning: u8) -> EntryType {
    match meaning {
        0 => EntryType::Bid,
        1 => EntryType::Offer,
        2 => EntryType::Trade,
        3 => EntryType::Empty,
        _ => EntryType::Ignore,
    }
}

#[inline]
fn first_id(had: NativeId, id: NativeId) -> NativeId {
    if had.is_none() { id } else { had }
}
