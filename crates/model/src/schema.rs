//! The place of each field of each kind: the one table behind the JSON codec, the mappings, the readers by name and
//! the drawing in `docs/formats-events.md`.
//!
//! Every frame begins with the same 40 bytes:
//!
//! ```text
//!  0        8          16       20       24           28         32           36      38 39 40
//! ┌────────┬──────────┬────────┬────────┬────────────┬──────────┬────────────┬───────┬──┬──┐
//! │ header │ ts_event │ source │ offset │ recv delta │ sequence │ instrument │ venue │ of kind …
//! └────────┴──────────┴────────┴────────┴────────────┴──────────┴────────────┴───────┴──┴──┘
//!   u64      i64 ns     u32      u32      i32 ns       u32        u32          u16
//! ```
//!
//! The fixed part is *narrow*, so that a quote or a trade is one line in all; a value that does not fit its
//! place appears in full in the *extension* after it, and its place holds the mark for that. Extension
//! entries are `[tag u16][length u32][payload]`, ended by tag 0 or by the frame. Nothing is ever rounded.

use crate::id::NameKind;
use crate::kind::{EventField, EventKind};
use crate::tape_position::TapePosition;

/// The type and place of a field in the fixed part. `at` counts from the start of the frame; an `at` of [`EXT_ONLY`]
/// means the field is always in the extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // `at`, `n`, `shift` are documented above
pub enum FieldLayout {
    /// Interned id, u32 (u16 for a venue); 0 none.
    Sym { dict: NameKind, offset: u16 },
    /// Interned id in the venue's place, of the venue or of the bank that quotes; bit 6 of the next byte marks a bank.
    Publisher { bank: bool },
    /// Interned id, u32 in the extension. That of a venue has 16 bits there too: the upper two bytes are 0.
    SymExt { dict: NameKind },
    /// Interned ids, u32 each, in the extension.
    Syms { dict: NameKind },
    /// i64 in 1e-9; `i64::MAX` none.
    Price { offset: u16 },
    /// i64 mantissa and i8 exponent; exponent −128 none.
    Decimal { offset: u16, exp_offset: u16 },
    /// u32 mantissa and i8 exponent; exponent −128 none, −127 in the extension.
    DecimalNarrow { offset: u16, exp_offset: u16 },
    /// i64 mantissa and i8 exponent, nine bytes in the extension.
    DecimalExt,
    /// i128 mantissa and i8 exponent; exponent −128 none.
    Amount { offset: u16, exp_offset: u16 },
    /// [`crate::InlineId`] in `n` bytes.
    Id { offset: u16, n: u16 },
    /// UTF-8 text up to `n` bytes, zero-padded; longer in the extension.
    Text { offset: u16, n: u16 },
    /// A value out of `values` (1-based, 0 none) in two or three bits.
    Code { offset: u16, shift: u8, bits: u8, values: &'static [&'static str] },
    /// false 1, true 2, none 0, in two bits; in the extension one byte.
    Bool { offset: u16, shift: u8 },
    /// true 1, in one bit; false is none.
    Flag { offset: u16, shift: u8 },
    /// Some of `values`, a bit each in one byte of the extension. With a place, three bits hold the sets of
    /// [`FLAG_SETS`]; 7 means that the set is in the extension.
    FlagSet { offset: u16, shift: u8, values: &'static [&'static str] },
    /// Unsigned integer of `width` bytes; all ones none, all ones less one in the extension.
    UInt { offset: u16, width: u8 },
    /// i64 nanoseconds since the epoch; `i64::MIN` none.
    Nanos { offset: u16 },
    /// Days since 1970-01-01 and one, u32; 0 none, 2³²−1 in the extension, as i32 days.
    Date { offset: u16 },
    /// Days after the UTC date of `ts_event` and one, u8; 0 none, 255 in the extension, as i32 days since 1970-01-01.
    DateAfter { offset: u16 },
    /// A tape's id, 16 bytes; 0 none.
    Tape { offset: u16 },
    /// A position on a named tape, 24 bytes ([`TapePosition`]); all zero none.
    TapePosition { offset: u16 },
    /// Positions on named tapes, 24 bytes each, in the extension.
    TapePositions,
    /// u16 milliseconds after `ts_event`; 65535 none, 65534 in the extension.
    MillisAfter { offset: u16 },
    /// Any JSON value, as its text, in the extension.
    Json,
}

/// `at` of a field that has no place in the fixed part.
pub const EXT_ONLY: u16 = 0;

/// A field of a kind.
#[derive(Clone, Copy, Debug)]
pub struct EventFieldSpec {
    /// The field.
    pub field: EventField,
    /// The place of the field.
    pub slot: FieldLayout,
    /// An event without it is refused.
    pub required: bool,
    /// The field came with [layout](EventSchema::layout) 1: an older frame may have an entry of its own under this name.
    pub added: bool,
}

/// The layout of a kind.
#[derive(Clone, Copy, Debug)]
pub struct EventSchema {
    /// The kind.
    pub kind: EventKind,
    /// Bytes of the fixed part: 64, 128 or 192.
    pub fixed_bytes: u16,
    /// Its fields, in the order JSON prints them.
    pub fields: &'static [EventFieldSpec],
    /// The layout of the fixed part. The frames of a kind that has had more than one ([`EventKind::has_layouts`]) say
    /// theirs at [`at::KIND_A`].
    pub layout: u8,
}

impl FieldLayout {
    /// Returns the dictionary of a slot that holds one interned id, in the fixed part or in the extension.
    pub fn dict(self) -> Option<NameKind> {
        match self {
            FieldLayout::Sym { dict, .. } | FieldLayout::SymExt { dict } => Some(dict),
            FieldLayout::Publisher { .. } => Some(NameKind::Venue),
            _ => None,
        }
    }
}

impl EventSchema {
    /// Returns the present layout of `kind`.
    #[inline]
    pub fn for_kind(kind: EventKind) -> &'static EventSchema {
        let s = &SCHEMAS[INDEX[kind as usize] as usize];
        debug_assert_eq!(s.kind, kind);
        s
    }

    /// Returns the layout with this number, or `None` if the kind has no such layout.
    pub fn for_layout(kind: EventKind, layout: u8) -> Option<&'static EventSchema> {
        let present = Self::for_kind(kind);
        if present.layout == layout {
            return Some(present);
        }
        EARLIER.iter().find(|s| s.kind == kind && s.layout == layout)
    }

    /// Returns the layout of a frame of `kind`, by the byte at [`at::KIND_A`]. Returns `None` if this build does not
    /// know the layout.
    #[inline]
    pub fn for_frame(kind: EventKind, kind_a: u8) -> Option<&'static EventSchema> {
        if kind.has_layouts() { Self::for_layout(kind, kind_a) } else { Some(Self::for_kind(kind)) }
    }

    /// Iterates over every layout of every kind.
    pub fn all() -> impl Iterator<Item = &'static EventSchema> {
        SCHEMAS.iter().chain(EARLIER)
    }

    /// Looks up the field with this name, if the kind has it.
    pub fn find(&self, name: &str) -> Option<&'static EventFieldSpec> {
        self.fields.iter().find(|s| s.field.name() == name)
    }

    /// Looks up the specification of `field`, if the kind has it.
    pub fn get(&self, field: EventField) -> Option<&'static EventFieldSpec> {
        self.fields.iter().find(|s| s.field == field)
    }
}

/// Offsets of the parts that every frame has.
#[allow(missing_docs)]
pub mod at {
    pub const HEADER: usize = 0;
    pub const TS_EVENT: usize = 8;
    pub const SOURCE: usize = 16;
    pub const OFFSET: usize = 20;
    pub const RECV_DELTA: usize = 24;
    pub const SEQUENCE: usize = 28;
    pub const INSTRUMENT: usize = 32;
    pub const VENUE: usize = 36;
    pub const KIND_A: usize = 38;
    pub const KIND_B: usize = 39;
    pub const BODY: usize = 40;
}

/// `recv delta` when there is no receive time.
pub const RECV_NONE: i32 = i32::MIN;
/// `recv delta` when the receive time is in the extension.
pub const RECV_EXT: i32 = i32::MAX;
/// `sequence` when there is none.
pub const SEQ_NONE: u32 = u32::MAX;
/// `sequence` when it is in the extension.
pub const SEQ_EXT: u32 = u32::MAX - 1;
/// Tag of an extension entry that holds an unmapped field: `[name length u16][name][JSON text]`.
pub const TAG_UNMAPPED: u16 = 0xfffe;
/// Exponent byte of a decimal that is not there.
pub const EXP_NONE: i8 = -128;
/// Exponent byte of a narrow decimal that is in the extension.
pub const EXP_EXT: i8 = -127;

/// Set in the byte at [`at::KIND_A`] when a bank takes the venue's place.
pub const PUBLISHER_IS_BANK: u8 = 1 << 6;

/// The sets of flags that the three bits of a [`FieldLayout::FlagSet`] hold, as bits of its values, by their number less one.
pub const FLAG_SETS: [u8; 5] = [1, 2, 4, 8, 2 | 8];
/// The three bits of a [`FieldLayout::FlagSet`] whose set is in the extension.
pub const FLAG_SET_EXT: u8 = 7;

const SIDES: &[&str] = &["B", "S"];
const CAPACITIES: &[&str] = &["P", "A", "R"];
const SHORTS: &[&str] = &["Y", "N", "E"];
const LIQUIDITIES: &[&str] = &["A", "R", "X"];
const LEVEL_ACTIONS: &[&str] = &["A", "C", "D", "R", "U"];
const TRADE_ACTIONS: &[&str] = &["new", "cancel", "correct"];
/// The flags of trades and executions.
pub const TRADE_FLAGS: &[&str] = &["auction", "iso", "exempt", "no_last"];
const ACCOUNT_CLASSES: &[&str] = &["personal", "proprietary", "client"];
const PAYMENT_STAGES: &[&str] = &["initiation", "interbank", "cover", "return", "recall"];
const SCOPES: &[&str] = &["venue", "instr", "firm", "trader", "owner", "acct", "desk", "algo"];

const fn required_field(field: EventField, slot: FieldLayout) -> EventFieldSpec {
    EventFieldSpec { field, slot, required: true, added: false }
}
const fn optional_field(field: EventField, slot: FieldLayout) -> EventFieldSpec {
    EventFieldSpec { field, slot, required: false, added: false }
}
/// Makes a field that layout 1 added.
const fn added_field(field: EventField, slot: FieldLayout) -> EventFieldSpec {
    EventFieldSpec { field, slot, required: false, added: true }
}
const fn sym_layout(dict: NameKind, offset: u16) -> FieldLayout {
    FieldLayout::Sym { dict, offset }
}
const fn text_layout(offset: u16, n: u16) -> FieldLayout {
    FieldLayout::Text { offset, n }
}
const fn code(offset: u16, shift: u8, bits: u8, values: &'static [&'static str]) -> FieldLayout {
    FieldLayout::Code { offset, shift, bits, values }
}
const fn uint_layout(offset: u16, width: u8) -> FieldLayout {
    FieldLayout::UInt { offset, width }
}
const fn decimal_layout(offset: u16, exp_offset: u16) -> FieldLayout {
    FieldLayout::Decimal { offset, exp_offset }
}

const VENUE: FieldLayout = sym_layout(NameKind::Venue, 36);
const INSTR: FieldLayout = sym_layout(NameKind::Instrument, 32);
const SIDE: FieldLayout = code(38, 0, 2, SIDES);
const PX: FieldLayout = FieldLayout::Price { offset: 40 };
const TEXT_EXT: FieldLayout = text_layout(EXT_ONLY, 0);
const ID_EXT: FieldLayout = FieldLayout::Id { offset: EXT_ONLY, n: 0 };
const PRICE_EXT: FieldLayout = FieldLayout::Price { offset: EXT_ONLY };
const NANOS_EXT: FieldLayout = FieldLayout::Nanos { offset: EXT_ONLY };
const fn sym_ext(dict: NameKind) -> FieldLayout {
    FieldLayout::SymExt { dict }
}

/// The order family shares one layout: see [`crate::records::OrderRecord`]. The last field is that of an amend alone.
const AMEND: [EventFieldSpec; 25] = [
    required_field(EventField::Oid, FieldLayout::Id { offset: 80, n: 24 }),
    optional_field(EventField::Side, SIDE),
    optional_field(EventField::Px, PX),
    optional_field(EventField::Qty, decimal_layout(48, 39)),
    optional_field(EventField::Venue, VENUE),
    optional_field(EventField::Instr, INSTR),
    optional_field(EventField::Trader, sym_layout(NameKind::Trader, 56)),
    optional_field(EventField::Acct, sym_layout(NameKind::Account, 60)),
    optional_field(EventField::Owner, sym_layout(NameKind::Owner, 64)),
    optional_field(EventField::Firm, sym_layout(NameKind::Firm, 68)),
    optional_field(EventField::Capacity, code(38, 2, 2, CAPACITIES)),
    optional_field(EventField::Tif, text_layout(76, 4)),
    optional_field(EventField::Algo, sym_layout(NameKind::Algo, 72)),
    optional_field(EventField::Parent, FieldLayout::Id { offset: 104, n: 16 }),
    optional_field(EventField::Type, text_layout(120, 8)),
    optional_field(EventField::StopPx, PRICE_EXT),
    optional_field(EventField::Short, code(38, 4, 2, SHORTS)),
    optional_field(EventField::Coid, ID_EXT),
    optional_field(EventField::Ccy, TEXT_EXT),
    optional_field(EventField::Left, FieldLayout::DecimalExt),
    optional_field(EventField::DisplayQty, FieldLayout::DecimalExt),
    optional_field(EventField::Reason, TEXT_EXT),
    added_field(EventField::Desk, sym_ext(NameKind::Desk)),
    added_field(EventField::Entry, sym_ext(NameKind::Name)),
    added_field(EventField::QtyReduced, FieldLayout::DecimalExt),
];
/// The fields of all kinds of the family.
const ORDER: &[EventFieldSpec] = AMEND.split_at(AMEND.len() - 1).0;

pub(crate) const SCHEMAS: &[EventSchema] = &[
    EventSchema {
        kind: EventKind::Define,
        fixed_bytes: 64,
        layout: 0,
        fields: &[
            required_field(EventField::Dict, uint_layout(38, 1)),
            required_field(EventField::Index, uint_layout(32, 4)),
            required_field(EventField::Name, text_layout(40, 24)),
        ],
    },
    EventSchema {
        kind: EventKind::Source,
        fixed_bytes: 128,
        layout: 0,
        fields: &[
            required_field(EventField::Index, uint_layout(32, 4)),
            optional_field(EventField::Of, uint_layout(36, 4)),
            optional_field(EventField::Base, uint_layout(40, 8)),
            optional_field(EventField::Size, uint_layout(48, 8)),
            optional_field(EventField::Format, text_layout(56, 8)),
            optional_field(EventField::Hash, text_layout(64, 64)),
            required_field(EventField::Feed, TEXT_EXT),
            required_field(EventField::File, TEXT_EXT),
            optional_field(EventField::Mapping, TEXT_EXT),
        ],
    },
    EventSchema {
        kind: EventKind::Progress,
        fixed_bytes: 128,
        layout: 0,
        fields: &[
            optional_field(EventField::End, FieldLayout::Bool { offset: 38, shift: 0 }),
            required_field(EventField::Through, uint_layout(40, 8)),
            required_field(EventField::Messages, uint_layout(48, 8)),
            required_field(EventField::Ignored, uint_layout(56, 8)),
            required_field(EventField::Duplicates, uint_layout(64, 8)),
            required_field(EventField::Quarantined, uint_layout(72, 8)),
            required_field(EventField::Events, uint_layout(80, 8)),
            optional_field(EventField::Unresolved, uint_layout(88, 8)),
            optional_field(EventField::Repeats, uint_layout(96, 8)),
            optional_field(EventField::Unsure, uint_layout(104, 8)),
            optional_field(EventField::Hash, TEXT_EXT),
            added_field(EventField::Entries, uint_layout(EXT_ONLY, 8)),
            added_field(EventField::EntriesUsed, uint_layout(EXT_ONLY, 8)),
            added_field(EventField::EntriesQuarantined, uint_layout(EXT_ONLY, 8)),
            added_field(EventField::EntriesIgnored, uint_layout(EXT_ONLY, 8)),
        ],
    },
    EventSchema {
        kind: EventKind::Ref,
        fixed_bytes: 128,
        layout: 0,
        fields: &[
            required_field(EventField::Instr, INSTR),
            optional_field(EventField::Tick, PX),
            optional_field(EventField::PrevClose, FieldLayout::Price { offset: 48 }),
            optional_field(EventField::Adv, decimal_layout(56, 38)),
            optional_field(EventField::Ccy, text_layout(64, 4)),
            optional_field(EventField::Tier, uint_layout(39, 1)),
            optional_field(EventField::Underlying, sym_layout(NameKind::Instrument, 68)),
            optional_field(EventField::Multiplier, decimal_layout(72, 88)),
            optional_field(EventField::Lot, decimal_layout(80, 89)),
            optional_field(EventField::Mic, VENUE),
            optional_field(EventField::Symbol, text_layout(96, 16)),
            optional_field(EventField::Figi, text_layout(112, 16)),
            added_field(EventField::Class, text_layout(90, 6)),
            added_field(EventField::LiquidityBand, uint_layout(EXT_ONLY, 8)),
            added_field(EventField::Expiry, FieldLayout::Date { offset: EXT_ONLY }),
            added_field(EventField::Strike, PRICE_EXT),
            added_field(EventField::Right, TEXT_EXT),
            added_field(EventField::Barrier, PRICE_EXT),
            added_field(EventField::Delta, FieldLayout::DecimalExt),
            added_field(EventField::Float, FieldLayout::DecimalExt),
            added_field(EventField::PriceType, TEXT_EXT),
            added_field(EventField::ValidFrom, FieldLayout::Date { offset: EXT_ONLY }),
        ],
    },
    EventSchema {
        kind: EventKind::Session,
        fixed_bytes: 64,
        layout: 0,
        fields: &[
            optional_field(EventField::Venue, VENUE),
            optional_field(EventField::Instr, INSTR),
            required_field(EventField::Phase, text_layout(48, 8)),
            optional_field(EventField::Px, PX),
        ],
    },
    EventSchema {
        kind: EventKind::Status,
        fixed_bytes: 64,
        layout: 0,
        fields: &[
            optional_field(EventField::Venue, VENUE),
            optional_field(EventField::Instr, INSTR),
            required_field(EventField::State, text_layout(40, 12)),
            optional_field(EventField::Reason, text_layout(52, 12)),
            added_field(EventField::Ref, ID_EXT),
        ],
    },
    EventSchema {
        kind: EventKind::Bbo,
        fixed_bytes: 64,
        layout: 0,
        fields: &[
            optional_field(EventField::Venue, VENUE),
            required_field(EventField::Instr, INSTR),
            optional_field(EventField::Bid, PX),
            optional_field(EventField::BidQty, FieldLayout::DecimalNarrow { offset: 56, exp_offset: 38 }),
            optional_field(EventField::Ask, FieldLayout::Price { offset: 48 }),
            optional_field(EventField::AskQty, FieldLayout::DecimalNarrow { offset: 60, exp_offset: 39 }),
            optional_field(EventField::Ccy, TEXT_EXT),
            added_field(EventField::Cause, FieldLayout::TapePosition { offset: EXT_ONLY }),
            added_field(EventField::Partial, FieldLayout::Bool { offset: EXT_ONLY, shift: 0 }),
            added_field(EventField::Cond, TEXT_EXT),
            added_field(EventField::BidVenue, sym_ext(NameKind::Venue)),
            added_field(EventField::AskVenue, sym_ext(NameKind::Venue)),
        ],
    },
    EventSchema {
        kind: EventKind::Level,
        fixed_bytes: 64,
        layout: 0,
        fields: &[
            optional_field(EventField::Venue, VENUE),
            required_field(EventField::Instr, INSTR),
            optional_field(EventField::Side, SIDE),
            required_field(EventField::Action, code(38, 2, 3, LEVEL_ACTIONS)),
            optional_field(EventField::Px, PX),
            optional_field(EventField::Qty, decimal_layout(48, 39)),
            optional_field(EventField::Orders, uint_layout(56, 4)),
            optional_field(EventField::Depth, uint_layout(60, 2)),
        ],
    },
    EventSchema {
        kind: EventKind::Quote,
        fixed_bytes: 64,
        layout: 0,
        fields: &[
            optional_field(EventField::Venue, FieldLayout::Publisher { bank: false }),
            optional_field(EventField::Bank, FieldLayout::Publisher { bank: true }),
            required_field(EventField::Instr, INSTR),
            optional_field(EventField::QuoteId, FieldLayout::Id { offset: 48, n: 8 }),
            optional_field(EventField::Tier, uint_layout(62, 1)),
            optional_field(EventField::Side, SIDE),
            optional_field(EventField::Px, PX),
            optional_field(EventField::Qty, FieldLayout::DecimalNarrow { offset: 56, exp_offset: 39 }),
            optional_field(EventField::ValidUntil, FieldLayout::MillisAfter { offset: 60 }),
            optional_field(EventField::Indicative, FieldLayout::Bool { offset: 38, shift: 2 }),
            optional_field(EventField::FullAmount, FieldLayout::Bool { offset: 38, shift: 4 }),
            added_field(EventField::Withdrawn, FieldLayout::Flag { offset: 38, shift: 7 }),
            added_field(EventField::ValueDate, FieldLayout::DateAfter { offset: 63 }),
            added_field(EventField::LastLook, FieldLayout::Bool { offset: EXT_ONLY, shift: 0 }),
        ],
    },
    EventSchema {
        kind: EventKind::Trade,
        fixed_bytes: 64,
        layout: 0,
        fields: &[
            optional_field(EventField::Venue, VENUE),
            required_field(EventField::Instr, INSTR),
            required_field(EventField::Px, PX),
            required_field(EventField::Qty, FieldLayout::DecimalNarrow { offset: 56, exp_offset: 39 }),
            optional_field(EventField::MatchId, FieldLayout::Id { offset: 48, n: 8 }),
            optional_field(EventField::Cond, text_layout(60, 4)),
            optional_field(EventField::Side, SIDE),
            optional_field(EventField::Action, code(38, 2, 3, TRADE_ACTIONS)),
            optional_field(EventField::Ccy, TEXT_EXT),
            added_field(
                EventField::TradeFlags,
                FieldLayout::FlagSet { offset: 38, shift: 5, values: TRADE_FLAGS },
            ),
        ],
    },
    EventSchema {
        kind: EventKind::OrderRecv,
        fixed_bytes: 128,
        layout: 0,
        fields: &[
            required_field(EventField::Coid, FieldLayout::Id { offset: 80, n: 24 }),
            optional_field(EventField::Owner, sym_layout(NameKind::Owner, 64)),
            optional_field(EventField::Firm, sym_layout(NameKind::Firm, 68)),
            optional_field(EventField::Instr, INSTR),
            optional_field(EventField::Side, SIDE),
            optional_field(EventField::Qty, decimal_layout(48, 39)),
            optional_field(EventField::Channel, text_layout(104, 16)),
            optional_field(EventField::Px, PX),
            optional_field(EventField::Trader, sym_layout(NameKind::Trader, 56)),
            optional_field(EventField::Acct, sym_layout(NameKind::Account, 60)),
        ],
    },
    EventSchema {
        kind: EventKind::Parent,
        fixed_bytes: 128,
        layout: 0,
        fields: &[
            required_field(EventField::Parent, FieldLayout::Id { offset: 80, n: 24 }),
            optional_field(EventField::Instr, INSTR),
            optional_field(EventField::Side, SIDE),
            optional_field(EventField::Qty, decimal_layout(48, 39)),
            optional_field(EventField::Firm, sym_layout(NameKind::Firm, 68)),
            optional_field(EventField::Owner, sym_layout(NameKind::Owner, 64)),
            optional_field(EventField::Algo, sym_layout(NameKind::Algo, 72)),
            optional_field(EventField::Px, PX),
        ],
    },
    EventSchema { kind: EventKind::OrderNew, fixed_bytes: 128, layout: 0, fields: ORDER },
    EventSchema { kind: EventKind::OrderAmend, fixed_bytes: 128, layout: 0, fields: &AMEND },
    EventSchema { kind: EventKind::OrderCancel, fixed_bytes: 128, layout: 0, fields: ORDER },
    EventSchema {
        kind: EventKind::Exec,
        fixed_bytes: 128,
        layout: 0,
        fields: &[
            required_field(EventField::Oid, FieldLayout::Id { offset: 80, n: 24 }),
            optional_field(EventField::MatchId, FieldLayout::Id { offset: 104, n: 24 }),
            optional_field(EventField::Side, SIDE),
            optional_field(EventField::Px, PX), // none where a feed names the order only and keeps no orders
            required_field(EventField::Qty, decimal_layout(48, 39)),
            optional_field(EventField::Liq, code(38, 6, 2, LIQUIDITIES)),
            optional_field(EventField::Venue, VENUE),
            optional_field(EventField::Instr, INSTR),
            optional_field(EventField::Trader, sym_layout(NameKind::Trader, 56)),
            optional_field(EventField::Acct, sym_layout(NameKind::Account, 60)),
            optional_field(EventField::Owner, sym_layout(NameKind::Owner, 64)),
            optional_field(EventField::Firm, sym_layout(NameKind::Firm, 68)),
            optional_field(EventField::Capacity, code(38, 2, 2, CAPACITIES)),
            optional_field(EventField::Short, code(38, 4, 2, SHORTS)),
            optional_field(EventField::Algo, sym_layout(NameKind::Algo, 72)),
            optional_field(EventField::Cpty, sym_layout(NameKind::Firm, 76)),
            optional_field(EventField::Parent, ID_EXT),
            optional_field(EventField::Tif, TEXT_EXT),
            optional_field(EventField::Type, TEXT_EXT),
            optional_field(EventField::StopPx, PRICE_EXT),
            optional_field(EventField::Coid, ID_EXT),
            optional_field(EventField::Ccy, TEXT_EXT),
            added_field(EventField::Desk, sym_ext(NameKind::Desk)),
            added_field(EventField::Entry, sym_ext(NameKind::Name)),
            added_field(EventField::Cond, TEXT_EXT),
            added_field(
                EventField::TradeFlags,
                FieldLayout::FlagSet { offset: EXT_ONLY, shift: 0, values: TRADE_FLAGS },
            ),
        ],
    },
    EventSchema {
        kind: EventKind::Party,
        fixed_bytes: 64,
        layout: 0,
        fields: &[
            required_field(EventField::Owner, sym_layout(NameKind::Owner, 40)),
            optional_field(EventField::Group, sym_layout(NameKind::Owner, 44)),
            optional_field(EventField::Desk, sym_layout(NameKind::Desk, 48)),
            optional_field(EventField::LinkScore, decimal_layout(56, 38)),
            added_field(EventField::Linked, sym_layout(NameKind::Owner, 52)),
            added_field(EventField::How, TEXT_EXT),
            added_field(EventField::From, NANOS_EXT),
            added_field(EventField::To, NANOS_EXT),
            added_field(EventField::Acct, sym_ext(NameKind::Account)),
            added_field(EventField::AccountClass, code(39, 0, 2, ACCOUNT_CLASSES)),
        ],
    },
    EventSchema {
        kind: EventKind::Position,
        fixed_bytes: 64,
        layout: 0,
        fields: &[
            required_field(EventField::Owner, sym_layout(NameKind::Owner, 40)),
            optional_field(EventField::Instr, INSTR),
            optional_field(EventField::Qty, decimal_layout(48, 38)),
            optional_field(EventField::OpenInterest, decimal_layout(56, 39)),
            added_field(EventField::Day, FieldLayout::Date { offset: 44 }),
            added_field(EventField::Source, TEXT_EXT),
        ],
    },
    EventSchema {
        kind: EventKind::List,
        fixed_bytes: 64,
        layout: 0,
        fields: &[
            required_field(EventField::Name, sym_layout(NameKind::Name, 40)),
            optional_field(EventField::Instr, INSTR),
            optional_field(EventField::Party, sym_layout(NameKind::Owner, 44)),
            optional_field(EventField::From, FieldLayout::Nanos { offset: 48 }),
            optional_field(EventField::To, FieldLayout::Nanos { offset: 56 }),
            added_field(EventField::Acct, sym_ext(NameKind::Account)),
            added_field(EventField::Desk, sym_ext(NameKind::Desk)),
            added_field(EventField::Trader, sym_ext(NameKind::Trader)),
            added_field(EventField::Firm, sym_ext(NameKind::Firm)),
            added_field(EventField::Role, TEXT_EXT),
            added_field(EventField::Issuer, sym_ext(NameKind::Name)),
        ],
    },
    EventSchema {
        kind: EventKind::Index,
        fixed_bytes: 64,
        layout: 0,
        fields: &[
            required_field(EventField::Index, INSTR),
            required_field(EventField::Px, decimal_layout(40, 38)),
            optional_field(EventField::Venue, VENUE),
        ],
    },
    EventSchema {
        kind: EventKind::RefPx,
        fixed_bytes: 64,
        layout: 0,
        fields: &[
            required_field(EventField::Instr, INSTR),
            required_field(EventField::Px, PX),
            optional_field(EventField::Source, text_layout(48, 16)),
        ],
    },
    EventSchema {
        kind: EventKind::News,
        fixed_bytes: 128,
        layout: 0,
        fields: &[
            optional_field(EventField::NewsId, FieldLayout::Id { offset: 40, n: 24 }),
            optional_field(EventField::Instrs, FieldLayout::Syms { dict: NameKind::Instrument }),
            optional_field(EventField::Headline, TEXT_EXT),
            optional_field(EventField::Source, text_layout(64, 16)),
            optional_field(EventField::Text, TEXT_EXT),
            added_field(EventField::Class, text_layout(80, 12)),
            added_field(EventField::Language, text_layout(92, 12)),
            added_field(EventField::Revises, FieldLayout::Id { offset: 104, n: 24 }),
        ],
    },
    EventSchema {
        kind: EventKind::Comm,
        fixed_bytes: 128,
        layout: 0,
        fields: &[
            optional_field(EventField::MsgId, FieldLayout::Id { offset: 40, n: 24 }),
            optional_field(EventField::Channel, text_layout(64, 16)),
            optional_field(EventField::From, sym_layout(NameKind::Name, 80)),
            optional_field(EventField::To, FieldLayout::Syms { dict: NameKind::Name }),
            optional_field(EventField::Text, TEXT_EXT),
            added_field(EventField::Instrs, FieldLayout::Syms { dict: NameKind::Instrument }),
            added_field(EventField::ReplyTo, FieldLayout::Id { offset: 88, n: 24 }),
            added_field(EventField::Changed, FieldLayout::Bool { offset: 38, shift: 0 }),
        ],
    },
    EventSchema {
        kind: EventKind::Payment,
        fixed_bytes: 128,
        layout: 0,
        fields: &[
            optional_field(EventField::Msg, text_layout(40, 16)),
            optional_field(EventField::Ref, FieldLayout::Id { offset: 64, n: 24 }),
            optional_field(EventField::DrAcct, sym_layout(NameKind::Account, 56)),
            optional_field(EventField::CrAcct, sym_layout(NameKind::Account, 60)),
            optional_field(EventField::DrName, TEXT_EXT),
            optional_field(EventField::CrName, TEXT_EXT),
            optional_field(EventField::Ccy, text_layout(88, 4)),
            optional_field(EventField::Amt, FieldLayout::Amount { offset: 96, exp_offset: 38 }),
            optional_field(EventField::CrBic, TEXT_EXT),
            optional_field(EventField::DrBic, text_layout(112, 12)),
            added_field(EventField::Uetr, ID_EXT),
            added_field(EventField::Stage, code(39, 0, 3, PAYMENT_STAGES)),
            added_field(EventField::DrUltimate, TEXT_EXT),
            added_field(EventField::CrUltimate, TEXT_EXT),
            added_field(EventField::DrCountry, text_layout(124, 2)),
            added_field(EventField::CrCountry, text_layout(126, 2)),
        ],
    },
    EventSchema {
        kind: EventKind::Statement,
        fixed_bytes: 128,
        layout: 0,
        fields: &[
            required_field(EventField::Acct, sym_layout(NameKind::Account, 40)),
            optional_field(EventField::Ccy, text_layout(44, 4)),
            optional_field(EventField::Ref, FieldLayout::Id { offset: 48, n: 16 }),
            optional_field(EventField::Opening, FieldLayout::Amount { offset: 64, exp_offset: 38 }),
            optional_field(EventField::Closing, FieldLayout::Amount { offset: 80, exp_offset: 39 }),
            optional_field(EventField::Entries, FieldLayout::Json),
        ],
    },
    EventSchema {
        kind: EventKind::Alert,
        fixed_bytes: 128,
        layout: 1,
        fields: &[
            required_field(EventField::Scenario, sym_layout(NameKind::Name, 40)),
            optional_field(EventField::TriggerSeq, uint_layout(48, 8)),
            optional_field(EventField::TriggerPosition, uint_layout(56, 8)),
            optional_field(EventField::Key, FieldLayout::Json),
            optional_field(EventField::Detail, FieldLayout::Json),
            added_field(EventField::SourceTape, FieldLayout::Tape { offset: 64 }),
            added_field(EventField::RuleVersion, text_layout(80, 16)),
            added_field(EventField::ParamsHash, TEXT_EXT),
            added_field(EventField::Score, decimal_layout(96, 39)),
            added_field(EventField::Owner, sym_layout(NameKind::Owner, 44)),
            added_field(EventField::Venue, VENUE),
            added_field(EventField::Instr, INSTR),
        ],
    },
    EventSchema {
        kind: EventKind::Control,
        fixed_bytes: 192,
        layout: 1,
        fields: &[
            optional_field(EventField::Venue, VENUE),
            optional_field(EventField::Instr, INSTR),
            required_field(EventField::Action, text_layout(40, 12)),
            optional_field(EventField::Reason, text_layout(52, 12)),
            optional_field(EventField::Key, FieldLayout::Json),
            optional_field(EventField::Detail, FieldLayout::Json),
            added_field(EventField::Id, FieldLayout::Id { offset: 72, n: 24 }),
            added_field(EventField::ScopeKind, code(39, 0, 4, SCOPES)),
            added_field(EventField::Firm, sym_layout(NameKind::Firm, 96)),
            added_field(EventField::Trader, sym_layout(NameKind::Trader, 100)),
            added_field(EventField::Owner, sym_layout(NameKind::Owner, 104)),
            added_field(EventField::Acct, sym_layout(NameKind::Account, 108)),
            added_field(EventField::Desk, sym_layout(NameKind::Desk, 112)),
            added_field(EventField::Algo, sym_layout(NameKind::Algo, 116)),
            added_field(EventField::Cause, FieldLayout::TapePosition { offset: 128 }),
            added_field(EventField::By, sym_layout(NameKind::Name, 120)),
            added_field(EventField::SecondBy, sym_layout(NameKind::Name, 124)),
            added_field(EventField::Until, FieldLayout::Nanos { offset: 64 }),
            added_field(EventField::DryRun, FieldLayout::Bool { offset: 39, shift: 4 }),
            added_field(EventField::State, text_layout(152, 16)),
        ],
    },
    EventSchema {
        kind: EventKind::Quarantine,
        fixed_bytes: 64,
        layout: 0,
        fields: &[
            optional_field(EventField::Length, uint_layout(48, 4)),
            required_field(EventField::Reason, text_layout(52, 12)),
            optional_field(EventField::Detail, TEXT_EXT),
            optional_field(EventField::RawAt, uint_layout(40, 8)),
            optional_field(EventField::Hash, TEXT_EXT),
        ],
    },
    EventSchema { kind: EventKind::Clock, fixed_bytes: 64, layout: 0, fields: &[] },
    EventSchema {
        kind: EventKind::QuoteReject,
        fixed_bytes: 128,
        layout: 0,
        fields: &[
            optional_field(EventField::Venue, FieldLayout::Publisher { bank: false }),
            optional_field(EventField::Bank, FieldLayout::Publisher { bank: true }),
            required_field(EventField::Instr, INSTR),
            optional_field(EventField::QuoteId, FieldLayout::Id { offset: 56, n: 24 }),
            optional_field(EventField::Tier, uint_layout(108, 1)),
            optional_field(EventField::Side, SIDE),
            optional_field(EventField::Px, PX),
            optional_field(EventField::Qty, decimal_layout(48, 39)),
            optional_field(EventField::ValueDate, FieldLayout::Date { offset: 104 }),
            optional_field(EventField::Oid, FieldLayout::Id { offset: 80, n: 24 }),
            optional_field(EventField::Reason, text_layout(112, 16)),
            optional_field(EventField::Trader, sym_ext(NameKind::Trader)),
            optional_field(EventField::Acct, sym_ext(NameKind::Account)),
            optional_field(EventField::Text, TEXT_EXT),
        ],
    },
    EventSchema {
        kind: EventKind::Deal,
        fixed_bytes: 128,
        layout: 0,
        fields: &[
            optional_field(EventField::Venue, FieldLayout::Publisher { bank: false }),
            optional_field(EventField::Bank, FieldLayout::Publisher { bank: true }),
            required_field(EventField::Instr, INSTR),
            optional_field(EventField::QuoteId, FieldLayout::Id { offset: 56, n: 24 }),
            optional_field(EventField::Tier, uint_layout(108, 1)),
            optional_field(EventField::Side, SIDE),
            required_field(EventField::Px, PX),
            required_field(EventField::Qty, decimal_layout(48, 39)),
            optional_field(EventField::ValueDate, FieldLayout::Date { offset: 104 }),
            optional_field(EventField::Oid, FieldLayout::Id { offset: 80, n: 24 }),
            optional_field(EventField::MatchId, FieldLayout::Id { offset: 112, n: 16 }),
            optional_field(EventField::Trader, sym_ext(NameKind::Trader)),
            optional_field(EventField::Acct, sym_ext(NameKind::Account)),
            optional_field(EventField::Owner, sym_ext(NameKind::Owner)),
            optional_field(EventField::Firm, sym_ext(NameKind::Firm)),
            optional_field(EventField::Desk, sym_ext(NameKind::Desk)),
            optional_field(EventField::Ccy, TEXT_EXT),
        ],
    },
    EventSchema {
        kind: EventKind::Decision,
        fixed_bytes: 128,
        layout: 0,
        fields: &[
            required_field(EventField::Oid, FieldLayout::Id { offset: 80, n: 24 }),
            optional_field(EventField::Instr, INSTR),
            optional_field(EventField::Side, SIDE),
            optional_field(EventField::Qty, decimal_layout(48, 39)),
            optional_field(EventField::Px, PX),
            optional_field(EventField::ValueDate, FieldLayout::Date { offset: 104 }),
            optional_field(EventField::Considered, FieldLayout::TapePositions),
            optional_field(EventField::Read, FieldLayout::TapePositions),
            optional_field(EventField::PolicyHash, TEXT_EXT),
            optional_field(EventField::Chosen, FieldLayout::Json),
            optional_field(EventField::ConsideredHash, TEXT_EXT),
            optional_field(EventField::Trader, sym_layout(NameKind::Trader, 56)),
            optional_field(EventField::Acct, sym_layout(NameKind::Account, 60)),
        ],
    },
    EventSchema {
        kind: EventKind::Case,
        fixed_bytes: 128,
        layout: 0,
        fields: &[
            required_field(EventField::CaseId, FieldLayout::Id { offset: 56, n: 24 }),
            required_field(EventField::Action, text_layout(40, 16)),
            optional_field(EventField::State, text_layout(80, 16)),
            optional_field(EventField::By, sym_layout(NameKind::Name, 96)),
            optional_field(EventField::Assigned, sym_layout(NameKind::Name, 100)),
            optional_field(EventField::Scenario, sym_layout(NameKind::Name, 104)),
            optional_field(EventField::Owner, sym_layout(NameKind::Owner, 108)),
            optional_field(EventField::Venue, VENUE),
            optional_field(EventField::Instr, INSTR),
            optional_field(EventField::Cause, FieldLayout::TapePosition { offset: EXT_ONLY }),
            optional_field(EventField::Reason, text_layout(112, 16)),
            optional_field(EventField::Text, TEXT_EXT),
            optional_field(EventField::Key, FieldLayout::Json),
            optional_field(EventField::Detail, FieldLayout::Json),
        ],
    },
];

/// Layouts that kinds had before their present one.
const EARLIER: &[EventSchema] = &[
    EventSchema {
        kind: EventKind::Alert,
        fixed_bytes: 64,
        layout: 0,
        fields: &[
            required_field(EventField::Scenario, sym_layout(NameKind::Name, 40)),
            optional_field(EventField::TriggerSeq, uint_layout(48, 8)),
            optional_field(EventField::TriggerPosition, uint_layout(56, 8)),
            optional_field(EventField::Key, FieldLayout::Json),
            optional_field(EventField::Detail, FieldLayout::Json),
        ],
    },
    EventSchema {
        kind: EventKind::Control,
        fixed_bytes: 64,
        layout: 0,
        fields: &[
            optional_field(EventField::Venue, VENUE),
            optional_field(EventField::Instr, INSTR),
            required_field(EventField::Action, text_layout(40, 12)),
            optional_field(EventField::Reason, text_layout(52, 12)),
            optional_field(EventField::Key, FieldLayout::Json),
            optional_field(EventField::Detail, FieldLayout::Json),
        ],
    },
];

const INDEX: [u8; EventKind::NUMBER_MAX as usize + 1] = {
    let mut table = [0u8; EventKind::NUMBER_MAX as usize + 1];
    let mut i = 0;
    while i < SCHEMAS.len() {
        table[SCHEMAS[i].kind as usize] = i as u8;
        i += 1;
    }
    table
};

/// Returns the offset and width of a slot in the fixed part, in bytes. Returns `None` if the slot is always in the
/// extension.
pub fn width_bytes(slot: FieldLayout) -> Option<(u16, u16)> {
    let (offset, n) = match slot {
        FieldLayout::Sym { dict: NameKind::Venue, offset } => (offset, 2),
        FieldLayout::Sym { offset, .. } => (offset, 4),
        FieldLayout::Publisher { .. } => (at::VENUE as u16, 2),
        FieldLayout::Price { offset }
        | FieldLayout::Decimal { offset, .. }
        | FieldLayout::Nanos { offset } => (offset, 8),
        FieldLayout::DecimalNarrow { offset, .. } => (offset, 4),
        FieldLayout::Amount { offset, .. } => (offset, 16),
        FieldLayout::Id { offset, n } | FieldLayout::Text { offset, n } => (offset, n),
        FieldLayout::Code { offset, .. }
        | FieldLayout::Bool { offset, .. }
        | FieldLayout::Flag { offset, .. }
        | FieldLayout::FlagSet { offset, .. }
        | FieldLayout::DateAfter { offset } => (offset, 1),
        FieldLayout::UInt { offset, width } => (offset, u16::from(width)),
        FieldLayout::MillisAfter { offset } => (offset, 2),
        FieldLayout::Date { offset } => (offset, 4),
        FieldLayout::Tape { offset } => (offset, 16),
        FieldLayout::TapePosition { offset } => (offset, TapePosition::BYTES as u16),
        FieldLayout::SymExt { .. }
        | FieldLayout::Syms { .. }
        | FieldLayout::DecimalExt
        | FieldLayout::TapePositions
        | FieldLayout::Json => (EXT_ONLY, 0),
    };
    (offset != EXT_ONLY).then_some((offset, n))
}

#[cfg(test)]
mod tests;
