//! What a message says, taken out of its fields into numbers.
//!
//! A packet is read as a whole before anything of it is used: if its last message is bad, the copy of the other line is to
//! come in its place, and none of its messages must have been seen. What was read stands in a [`Batch`], used again.

use super::config::Kind;
use super::plan::{Config, NOTHING, Tag, Type, Update, each_path};
use super::values::{code, number, px, qty, time};
use rustc_hash::FxHashMap;
use unitape_codec::fast::template::Instruction;
use unitape_codec::fast::{Item, Message, Templates, Value};
use unitape_model::{Price, Quantity};

/// Which fields of which templates are asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Tags(FxHashMap<(u32, usize), Tag>);

impl Tags {
    /// Asks for what stands at a path of a template; gives how often it is there.
    pub fn add(&mut self, templates: &Templates, template: usize, path: &str, tag: Tag) -> usize {
        let mut found = 0;
        each_path(templates, template, &mut |at, part| {
            let place = match part {
                Instruction::Field(field) if at == path => std::sync::Arc::as_ptr(field).addr(),
                Instruction::Sequence(sequence) if at == path => {
                    self.0.insert((template as u32, name_place(&sequence.name.local)), tag);
                    found += 1;
                    return;
                }
                _ => return,
            };
            self.0.insert((template as u32, place), tag);
            found += 1;
        });
        found
    }

    fn of(&self, template: usize, place: usize) -> Option<Tag> {
        self.0.get(&(template as u32, place)).copied()
    }
}

/// Sequences have no place that stays; one of a name stands for all of that name.
fn name_place(name: &str) -> usize {
    use std::hash::Hasher as _;
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write(name.as_bytes());
    hasher.finish() as usize | 1
}

/// A field or what is around some, under the tag it is asked for.
#[derive(Clone, Copy, Debug)]
enum Cell<'m> {
    Value(Tag, Value<'m>),
    Entries,
    Begin,
    Element,
    End,
}

/// All that is asked for of a message, in order.
fn cells<'m>(message: &Message<'m>, tags: &Tags) -> impl Iterator<Item = Cell<'m>> {
    let template = message.template;
    message.items().filter_map(move |item| match item {
        Item::Value(field, value) => {
            tags.of(template, std::sync::Arc::as_ptr(field).addr()).map(|tag| Cell::Value(tag, value))
        }
        Item::Group(_) => Some(Cell::Begin),
        Item::Sequence(name, _) => Some(match tags.of(template, name_place(&name.local)) {
            Some(Tag::Entries) => Cell::Entries,
            _ => Cell::Begin,
        }),
        Item::Element => Some(Cell::Element),
        Item::End => Some(Cell::End),
    })
}

/// An id of the venue: a number, or a text of up to eight bytes, or the place of a longer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Id {
    pub bits: u64,
    pub sort: u8,
}

impl Id {
    pub const NONE: Id = Id { bits: 0, sort: 255 };
    pub const NUMBER: u8 = 254;
    /// In [`Ids`].
    pub const LONG: u8 = 253;

    pub const fn number(bits: u64) -> Self {
        Id { bits, sort: Self::NUMBER }
    }
}

/// Ids that are texts of more than eight bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Ids {
    places: FxHashMap<Box<[u8]>, u32>,
    texts: Vec<Box<[u8]>>,
}

/// Long ids kept, at most.
const IDS_MAX: usize = 1 << 20;

impl Ids {
    #[inline]
    pub fn of(&mut self, value: Value<'_>) -> Option<Id> {
        match value {
            Value::UInt(n) => Some(Id::number(n)),
            Value::Int(n) => Some(Id::number(n as u64)),
            Value::Text(text) | Value::Bytes(text) if text.len() <= 8 => {
                let mut word = [0; 8];
                word[..text.len()].copy_from_slice(text);
                Some(Id { bits: u64::from_le_bytes(word), sort: text.len() as u8 })
            }
            Value::Text(text) | Value::Bytes(text) => self.long(text),
            Value::Decimal { .. } => None,
        }
    }

    #[cold]
    fn long(&mut self, text: &[u8]) -> Option<Id> {
        let bits = match self.places.get(text) {
            Some(place) => u64::from(*place),
            // What is no text is shown in two digits a byte.
            None if text.len() > ID_BYTES_MAX / 2 && std::str::from_utf8(text).is_err() => return None,
            None if self.texts.len() >= IDS_MAX || text.len() > ID_BYTES_MAX => return None,
            None => {
                let place = self.texts.len() as u32;
                self.texts.push(text.into());
                self.places.insert(text.into(), place);
                u64::from(place)
            }
        };
        Some(Id { bits, sort: Id::LONG })
    }

    /// Its bytes, where it is a text.
    pub fn text<'a>(&'a self, id: Id, short: &'a mut [u8; 8]) -> Option<&'a [u8]> {
        match id.sort {
            Id::NUMBER => None,
            Id::LONG => self.texts.get(id.bits as usize).map(|text| &text[..]),
            len => {
                *short = id.bits.to_le_bytes();
                short.get(..usize::from(len))
            }
        }
    }

    /// As it is shown; bytes that are no text in hexadecimal digits, so that no two are alike.
    pub fn shown(&self, id: Id) -> String {
        match self.text(id, &mut [0; 8]) {
            Some(text) => match std::str::from_utf8(text) {
                Ok(text) => text.to_owned(),
                Err(_) => text.iter().map(|byte| format!("{byte:02x}")).collect(),
            },
            None => id.bits.to_string(),
        }
    }
}

/// Bytes of an id, at most: as of a name in events.
pub(super) const ID_BYTES_MAX: usize = 255;

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

/// Reads messages.
pub(super) struct Reader<'r> {
    pub config: &'r Config,
    pub tags: &'r Tags,
    pub ids: &'r mut Ids,
}

impl Reader<'_> {
    /// The header of a packet.
    pub fn head(&self, message: &Message<'_>) -> Head {
        let mut head = Head::default();
        for cell in cells(message, self.tags) {
            let Cell::Value(tag, value) = cell else { continue };
            let Some(number) = number(value) else { continue };
            match tag {
                Tag::HeadSequence => head.sequence = Some(number),
                Tag::HeadSender => head.sender = number,
                Tag::HeadPartition => head.partition = number,
                Tag::HeadTime => head.time = time(value, self.config.time),
                Tag::HeadReset => head.reset = number != 0,
                _ => {}
            }
        }
        head
    }

    /// A message, behind those of the batch.
    pub fn message(&mut self, message: &Message<'_>, kind: Option<Kind>, at: usize, batch: &mut Batch) {
        let from = batch.entries.len() as u32;
        let mut told = Told {
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
        if kind.is_some_and(|kind| kind != Kind::Ignore) {
            self.fields(message, &mut told, batch);
            told.entries.1 = batch.entries.len() as u32;
        }
        batch.told.push(told);
    }

    fn fields(&mut self, message: &Message<'_>, told: &mut Told, batch: &mut Batch) {
        let mut nest = 0u32;
        // How deep the elements of the entries are, and the one in hand.
        let (mut level, mut entry) = (u32::MAX, None::<Entry>);
        for cell in cells(message, self.tags) {
            match cell {
                Cell::Value(tag, value) => {
                    let taken = entry.as_mut().is_some_and(|entry| self.entry(tag, value, entry, told));
                    if !taken {
                        self.field(tag, value, told, batch);
                    }
                }
                Cell::Begin => nest += 1,
                Cell::Entries => {
                    nest += 1;
                    level = nest;
                }
                Cell::Element => {
                    if nest == level {
                        entry = Some(empty(told.instrument));
                    }
                    nest += 1;
                }
                Cell::End => {
                    nest -= 1;
                    if nest == level
                        && let Some(entry) = entry.take()
                    {
                        self.end(entry, told, batch);
                    }
                    if nest < level {
                        level = u32::MAX;
                    }
                }
            }
        }
    }

    /// A field of an entry; false if it is one of the message, wherever it stands.
    #[inline]
    fn entry(&mut self, tag: Tag, value: Value<'_>, entry: &mut Entry, told: &mut Told) -> bool {
        let codes = &self.config.codes;
        let well = match tag {
            Tag::Instrument => self.ids.of(value).map(|id| entry.instrument = id),
            Tag::Action => match code(&codes.action, value) {
                NOTHING => None,
                n => {
                    entry.action = Some(UPDATES[usize::from(n)]);
                    Some(())
                }
            },
            Tag::Type => {
                entry.sort =
                    TYPES.get(usize::from(code(&codes.r#type, value))).copied().unwrap_or(Type::Ignore);
                Some(())
            }
            Tag::Px => px(value, self.config.px_exponent).map(|px| entry.px = px),
            Tag::Qty => qty(value, self.config.qty_exponent).map(|qty| entry.qty = Some(qty)),
            Tag::Orders => number(value).and_then(|n| u32::try_from(n).ok()).map(|n| entry.orders = n),
            Tag::Depth => number(value).and_then(|n| u16::try_from(n).ok()).map(|n| entry.depth = n),
            Tag::EntryTime => time(value, self.config.time).map(|time| entry.time = time),
            Tag::TradeId => {
                entry.trade_id = number(value).unwrap_or(NO_NUMBER);
                Some(())
            }
            Tag::Aggressor => {
                entry.aggressor = code(&codes.aggressor, value);
                Some(())
            }
            Tag::InstrumentState => self.ids.of(value).map(|id| entry.instrument_state = id),
            _ => return false,
        };
        if well.is_none() && told.bad.is_none() {
            let code = if tag == Tag::Px || tag == Tag::Qty { "decimal_fit" } else { "bad_value" };
            told.bad = Some(Bad { code, tag });
        }
        true
    }

    fn field(&mut self, tag: Tag, value: Value<'_>, told: &mut Told, batch: &mut Batch) {
        let well = match tag {
            Tag::Product => self.ids.of(value).map(|id| told.product = first(told.product, id)),
            Tag::Instrument => self.ids.of(value).map(|id| told.instrument = first(told.instrument, id)),
            Tag::Sequence => number(value).map(|n| told.sequence = n),
            Tag::Last => number(value).map(|n| told.last = n),
            Tag::Time | Tag::EntryTime => time(value, self.config.time).map(|time| told.time = time),
            Tag::ProductState => {
                self.ids.of(value).map(|id| told.product_state = first(told.product_state, id))
            }
            Tag::InstrumentState => {
                self.ids.of(value).map(|id| told.instrument_state = first(told.instrument_state, id))
            }
            Tag::Name
            | Tag::Group
            | Tag::Symbol
            | Tag::Currency
            | Tag::MarketDepth
            | Tag::Tick
            | Tag::Multiplier
            | Tag::Deleted => {
                self.define(tag, value, told, batch);
                Some(())
            }
            _ => Some(()),
        };
        if well.is_none() && told.bad.is_none() {
            told.bad = Some(Bad { code: "bad_value", tag });
        }
    }

    fn define(&mut self, tag: Tag, value: Value<'_>, told: &mut Told, batch: &mut Batch) {
        if told.definition == 0 {
            batch.definitions.push(Definition::default());
            told.definition = batch.definitions.len() as u32;
        }
        let from = batch.texts.len() as u32;
        let mut text = || match value {
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
            Tag::Tick => told.tick = told.tick.or_else(|| px(value, self.config.px_exponent)),
            Tag::Multiplier => told.multiplier = told.multiplier.or_else(|| qty(value, 0)),
            Tag::Deleted => told.deleted = code(&self.config.codes.deleted, value) == 0,
            _ => {}
        }
    }

    /// An entry is complete.
    #[inline]
    fn end(&mut self, entry: Entry, told: &mut Told, batch: &mut Batch) {
        let lacks = match (told.kind, entry.sort) {
            (Some(Kind::MassState), _) => (entry.instrument == Id::NONE).then_some(Tag::Instrument),
            (_, Type::Ignore) => {
                batch.unknown += 1;
                return self.keep_states(entry, told);
            }
            (_, Type::Empty) => None,
            (_, Type::Trade) if told.kind == Some(Kind::Snapshot) => return self.keep_states(entry, told),
            (_, Type::Trade) if entry.instrument == Id::NONE => Some(Tag::Instrument),
            (_, Type::Trade) if entry.px == Price::NONE => Some(Tag::Px),
            (_, Type::Trade) if entry.qty.is_none() => Some(Tag::Qty),
            (_, Type::Trade) => None,
            _ if entry.instrument == Id::NONE => Some(Tag::Instrument),
            (Some(Kind::Depth), _) if entry.action.is_none() => Some(Tag::Action),
            // As of market orders in an auction.
            (Some(Kind::Snapshot), _) if entry.px == Price::NONE => {
                batch.unknown += 1;
                return self.keep_states(entry, told);
            }
            _ => None,
        };
        if let Some(tag) = lacks
            && told.bad.is_none()
        {
            told.bad = Some(Bad { code: "missing", tag });
        }
        batch.entries.push(entry);
        self.keep_states(entry, told);
    }

    /// In snapshots, states stand in entries.
    #[inline]
    fn keep_states(&self, entry: Entry, told: &mut Told) {
        if told.kind == Some(Kind::Snapshot) {
            told.instrument_state = first(told.instrument_state, entry.instrument_state);
        }
    }
}

#[inline]
fn first(had: Id, id: Id) -> Id {
    if had == Id::NONE { id } else { had }
}

/// An entry of which nothing is told yet.
#[inline]
pub(super) fn empty(instrument: Id) -> Entry {
    Entry {
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
