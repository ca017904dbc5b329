//! What a message says, taken out of its fields into numbers.
//!
//! ```text
//!  decoder ── what the mapping asks for, under its tags ──▶ Taking ──▶ Batch: told, entries, definitions of a packet
//! ```
//!
//! A packet is read as a whole before anything of it is used: if its last message is bad, the copy of the other line is to
//! come in its place, and none of its messages must have been seen. What was read stands in a [`Batch`], used again.

use super::config::Kind;
use super::ids::{ID_BYTES_MAX, Id, Ids};
use super::plan::{Config, NOTHING, Type, Update};
use super::tags::Tag;
use super::values::{code, number, px, qty, time};
use unitape_codec::fast::{Decoded, Message, Value, Visitor};
use unitape_model::{Price, Quantity};

/// In place of a number: none.
pub(super) const NO_NUMBER: u64 = u64::MAX;

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

/// What is told of a packet before its messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub sequence: Option<u64>,
    pub sender: u64,
    pub partition: u64,
    pub time: Option<i64>,
    pub reset: bool,
}

/// Messages of a packet.
#[derive(Clone, Debug, Default)]
pub(super) struct Batch {
    pub told: Vec<Told>,
    pub entries: Vec<Entry>,
    pub definitions: Vec<Definition>,
    pub texts: Vec<u8>,
    /// Entries whose type the configuration does not have.
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

/// The header of a packet.
pub(super) fn head(message: &Message<'_>, config: &Config) -> Head {
    struct Visiting<'c>(Head, &'c Config);
    impl Visitor for Visiting<'_> {
        #[inline(always)]
        fn value(&mut self, tag: u16, value: Decoded<'_>) {
            let Some(number) = number(value) else { return };
            let Self(head, config) = self;
            match Tag::of(tag) {
                Some(Tag::HeadSequence) => head.sequence = Some(number),
                Some(Tag::HeadSender) => head.sender = number,
                Some(Tag::HeadPartition) => head.partition = number,
                Some(Tag::HeadTime) => head.time = time(value, config.time),
                Some(Tag::HeadReset) => head.reset = number != 0,
                _ => {}
            }
        }
    }
    let mut visiting = Visiting(Head::default(), config);
    message.visit(&mut visiting);
    visiting.0
}

/// Takes what a message says, behind those of the batch.
#[inline]
pub(super) fn take(
    message: &Message<'_>,
    (kind, at): (Option<Kind>, usize),
    (config, ids): (&Config, &mut Ids),
    batch: &mut Batch,
) {
    let from = batch.entries.len() as u32;
    let told = Told {
        kind,
        template: message.template as u32,
        at: at as u32,
        length: message.bytes as u32,
        product: Id::NONE,
        instrument: Id::NONE,
        sequence: NO_NUMBER,
        last: NO_NUMBER,
        time: NO_TIME,
        product_state: Id::NONE,
        instrument_state: Id::NONE,
        entries: (from, from),
        definition: 0,
        bad: None,
    };
    let Some(meaning) = kind.filter(|kind| *kind != Kind::Ignore) else { return batch.told.push(told) };
    let entry = Entry::nothing(Id::NONE);
    let mut taking = Taking {
        config,
        ids,
        batch,
        kind: meaning,
        told,
        entry,
        place: Place::Message,
        around: Place::Message,
        nest: 0,
        level: NOWHERE,
        inner: 0,
    };
    message.visit(&mut taking);
    let Taking { mut told, batch, .. } = taking;
    told.entries.1 = batch.entries.len() as u32;
    batch.told.push(told);
}

/// A message while its fields come.
struct Taking<'r> {
    config: &'r Config,
    ids: &'r mut Ids,
    batch: &'r mut Batch,
    kind: Kind,
    told: Told,
    /// The one in hand, where there is one.
    entry: Entry,
    place: Place,
    /// The place of the message that is inside this one.
    around: Place,
    /// Groups, sequences and elements around the place, and how many of them are around the elements that are entries.
    nest: u32,
    level: u32,
    /// Messages in the message around it.
    inner: u32,
}

/// Whose fields come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Message,
    Entry,
    /// Of a message inside this one: what it says is not said by this one.
    Inner,
}

/// In place of a level: outside of all entries.
const NOWHERE: u32 = u32::MAX;

impl Visitor for Taking<'_> {
    #[inline(always)]
    fn value(&mut self, tag: u16, value: Decoded<'_>) {
        let Some(tag) = Tag::of(tag) else { return };
        if self.place == Place::Entry {
            self.of_entry(tag, value);
        } else if self.place == Place::Message {
            self.of_message(tag, value);
        }
    }

    #[inline(always)]
    fn group(&mut self, _tag: u16) {
        self.nest += 1;
    }

    #[inline(always)]
    fn sequence(&mut self, tag: u16, _elements: u32) {
        self.nest += 1;
        if tag == Tag::Entries as u16 && self.inner == 0 {
            self.level = self.nest;
        }
    }

    #[inline(always)]
    fn element(&mut self) {
        if self.nest == self.level {
            self.entry = Entry::nothing(self.told.instrument);
            self.place = Place::Entry;
        }
        self.nest += 1;
    }

    #[inline(always)]
    fn end(&mut self) {
        self.nest -= 1;
        if self.nest == self.level && self.place == Place::Entry {
            self.place = Place::Message;
            self.entry_ends();
        }
        if self.nest < self.level {
            self.level = NOWHERE;
        }
    }

    fn inner(&mut self, _template: usize) {
        if self.inner == 0 {
            self.around = std::mem::replace(&mut self.place, Place::Inner);
        }
        self.inner += 1;
    }

    fn inner_end(&mut self) {
        self.inner -= 1;
        if self.inner == 0 {
            self.place = self.around;
        }
    }
}

impl Taking<'_> {
    /// A field inside an entry: of the entry, or of the message, wherever that stands.
    #[inline(always)]
    fn of_entry(&mut self, tag: Tag, value: Decoded<'_>) {
        let Self { config, ids, entry, .. } = self;
        let codes = &config.codes;
        let well = match tag {
            Tag::Instrument => ids.of(value).map(|id| entry.instrument = id),
            Tag::Action => {
                entry.action = UPDATES.get(usize::from(code(&codes.action, value))).copied();
                entry.action.map(|_| ())
            }
            Tag::Type => {
                entry.sort =
                    TYPES.get(usize::from(code(&codes.r#type, value))).copied().unwrap_or(Type::Ignore);
                Some(())
            }
            Tag::Px => px(value, config.px_exponent).map(|px| entry.px = px),
            Tag::Qty => qty(value, config.qty_exponent).map(|qty| entry.qty = Some(qty)),
            Tag::Orders => number(value).and_then(|n| u32::try_from(n).ok()).map(|n| entry.orders = n),
            Tag::Depth => number(value).and_then(|n| u16::try_from(n).ok()).map(|n| entry.depth = n),
            Tag::EntryTime => time(value, config.time).map(|time| entry.time = time),
            Tag::TradeId => {
                entry.trade_id = number(value).unwrap_or(NO_NUMBER);
                Some(())
            }
            Tag::Aggressor => {
                entry.aggressor = code(&codes.aggressor, value);
                Some(())
            }
            Tag::InstrumentState => ids.of(value).map(|id| entry.instrument_state = id),
            _ => return self.of_message(tag, value),
        };
        if well.is_none() {
            let code = if tag == Tag::Px || tag == Tag::Qty { "decimal_fit" } else { "bad_value" };
            self.bad(code, tag);
        }
    }

    #[inline]
    fn of_message(&mut self, tag: Tag, value: Decoded<'_>) {
        let Self { config, ids, told, .. } = self;
        let well = match tag {
            Tag::Product => ids.of(value).map(|id| told.product = first(told.product, id)),
            Tag::Instrument => ids.of(value).map(|id| told.instrument = first(told.instrument, id)),
            Tag::Sequence => number(value).map(|n| told.sequence = n),
            Tag::Last => number(value).map(|n| told.last = n),
            Tag::Time | Tag::EntryTime => time(value, config.time).map(|time| told.time = time),
            Tag::ProductState => ids.of(value).map(|id| told.product_state = first(told.product_state, id)),
            Tag::InstrumentState => {
                ids.of(value).map(|id| told.instrument_state = first(told.instrument_state, id))
            }
            Tag::Name
            | Tag::Group
            | Tag::Symbol
            | Tag::Currency
            | Tag::MarketDepth
            | Tag::Tick
            | Tag::Multiplier
            | Tag::Deleted => {
                self.define(tag, value);
                Some(())
            }
            _ => Some(()),
        };
        if well.is_none() {
            self.bad("bad_value", tag);
        }
    }

    /// The first thing that is wrong counts.
    #[cold]
    fn bad(&mut self, code: &'static str, tag: Tag) {
        self.told.bad.get_or_insert(Bad { code, tag });
    }

    #[cold]
    #[inline(never)]
    fn define(&mut self, tag: Tag, value: Decoded<'_>) {
        let Self { config, told, batch, .. } = self;
        if told.definition == 0 {
            batch.definitions.push(Definition::default());
            told.definition = batch.definitions.len() as u32;
        }
        let from = batch.texts.len() as u32;
        let mut text = || match value.get() {
            Value::Text(text) | Value::Bytes(text) => {
                let text = &text[..text.len().min(ID_BYTES_MAX)];
                batch.texts.extend_from_slice(text.trim_ascii_end());
                (from, batch.texts.len() as u32)
            }
            Value::UInt(n) => {
                batch.texts.extend_from_slice(n.to_string().as_bytes());
                (from, batch.texts.len() as u32)
            }
            _ => (from, from),
        };
        let is_empty = |(from, to): (u32, u32)| from == to;
        let told = &mut batch.definitions[told.definition as usize - 1];
        match tag {
            Tag::Name if is_empty(told.name) => told.name = text(),
            Tag::Group if is_empty(told.group) => told.group = text(),
            Tag::Symbol if is_empty(told.symbol) => told.symbol = text(),
            Tag::Currency if is_empty(told.currency) => told.currency = text(),
            // The deepest of all feeds of a product; 0 is for no bound.
            Tag::MarketDepth => {
                let depth = number(value).and_then(|n| u16::try_from(n).ok()).filter(|n| *n > 0);
                told.market_depth = told.market_depth.max(depth);
            }
            Tag::Tick => told.tick = told.tick.or_else(|| px(value, config.px_exponent)),
            Tag::Multiplier => told.multiplier = told.multiplier.or_else(|| qty(value, 0)),
            Tag::Deleted => told.deleted = code(&config.codes.deleted, value) == 0,
            _ => {}
        }
    }

    /// The entry in hand is complete.
    #[inline]
    fn entry_ends(&mut self) {
        let (kind, entry) = (self.kind, &self.entry);
        // In snapshots, states stand in entries.
        if kind == Kind::Snapshot {
            self.told.instrument_state = first(self.told.instrument_state, entry.instrument_state);
        }
        let lacks = match (kind, entry.sort) {
            (Kind::MassState, _) => (entry.instrument == Id::NONE).then_some(Tag::Instrument),
            (_, Type::Ignore) => {
                self.batch.unknown += 1;
                return;
            }
            (_, Type::Empty) => None,
            (Kind::Snapshot, Type::Trade) => return,
            (_, Type::Trade) if entry.instrument == Id::NONE => Some(Tag::Instrument),
            (_, Type::Trade) if entry.px == Price::NONE => Some(Tag::Px),
            (_, Type::Trade) if entry.qty.is_none() => Some(Tag::Qty),
            (_, Type::Trade) => None,
            _ if entry.instrument == Id::NONE => Some(Tag::Instrument),
            (Kind::Depth, _) if entry.action.is_none() => Some(Tag::Action),
            // As of market orders in an auction.
            (Kind::Snapshot, _) if entry.px == Price::NONE => {
                self.batch.unknown += 1;
                return;
            }
            _ => None,
        };
        if let Some(tag) = lacks {
            self.bad("missing", tag);
        }
        self.batch.entries.push(self.entry);
    }
}

#[inline]
fn first(had: Id, id: Id) -> Id {
    if had == Id::NONE { id } else { had }
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

const UPDATES: [Update; 7] = [
    Update::New,
    Update::Change,
    Update::Delete,
    Update::Thru,
    Update::From,
    Update::Overlay,
    Update::Ignore,
];

const TYPES: [Type; 5] = [Type::Bid, Type::Offer, Type::Trade, Type::Empty, Type::Ignore];
