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
    /// Interned id, u32 in the extension.
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

const fn must(field: EventField, slot: FieldLayout) -> EventFieldSpec {
    EventFieldSpec { field, slot, required: true, added: false }
}
const fn may(field: EventField, slot: FieldLayout) -> EventFieldSpec {
    EventFieldSpec { field, slot, required: false, added: false }
}
/// Makes a field that layout 1 added.
const fn add(field: EventField, slot: FieldLayout) -> EventFieldSpec {
    EventFieldSpec { field, slot, required: false, added: true }
}
const fn sym(dict: NameKind, offset: u16) -> FieldLayout {
    FieldLayout::Sym { dict, offset }
}
const fn text(offset: u16, n: u16) -> FieldLayout {
    FieldLayout::Text { offset, n }
}
const fn code(offset: u16, shift: u8, bits: u8, values: &'static [&'static str]) -> FieldLayout {
    FieldLayout::Code { offset, shift, bits, values }
}
const fn uint(offset: u16, width: u8) -> FieldLayout {
    FieldLayout::UInt { offset, width }
}
const fn dec(offset: u16, exp_offset: u16) -> FieldLayout {
    FieldLayout::Decimal { offset, exp_offset }
}

const VENUE: FieldLayout = sym(NameKind::Venue, 36);
const INSTR: FieldLayout = sym(NameKind::Instrument, 32);
const SIDE: FieldLayout = code(38, 0, 2, SIDES);
const PX: FieldLayout = FieldLayout::Price { offset: 40 };
const TEXT_EXT: FieldLayout = text(EXT_ONLY, 0);
const ID_EXT: FieldLayout = FieldLayout::Id { offset: EXT_ONLY, n: 0 };
const PRICE_EXT: FieldLayout = FieldLayout::Price { offset: EXT_ONLY };
const NANOS_EXT: FieldLayout = FieldLayout::Nanos { offset: EXT_ONLY };
const fn sym_ext(dict: NameKind) -> FieldLayout {
    FieldLayout::SymExt { dict }
}

/// The order family shares one layout: see [`crate::records::OrderRecord`]. The last field is that of an amend alone.
const AMEND: [EventFieldSpec; 25] = [
    must(EventField::Oid, FieldLayout::Id { offset: 80, n: 24 }),
    may(EventField::Side, SIDE),
    may(EventField::Px, PX),
    may(EventField::Qty, dec(48, 39)),
    may(EventField::Venue, VENUE),
    may(EventField::Instr, INSTR),
    may(EventField::Trader, sym(NameKind::Trader, 56)),
    may(EventField::Acct, sym(NameKind::Account, 60)),
    may(EventField::Owner, sym(NameKind::Owner, 64)),
    may(EventField::Firm, sym(NameKind::Firm, 68)),
    may(EventField::Capacity, code(38, 2, 2, CAPACITIES)),
    may(EventField::Tif, text(76, 4)),
    may(EventField::Algo, sym(NameKind::Algo, 72)),
    may(EventField::Parent, FieldLayout::Id { offset: 104, n: 16 }),
    may(EventField::Type, text(120, 8)),
    may(EventField::StopPx, PRICE_EXT),
    may(EventField::Short, code(38, 4, 2, SHORTS)),
    may(EventField::Coid, ID_EXT),
    may(EventField::Ccy, TEXT_EXT),
    may(EventField::Left, FieldLayout::DecimalExt),
    may(EventField::DisplayQty, FieldLayout::DecimalExt),
    may(EventField::Reason, TEXT_EXT),
    add(EventField::Desk, sym_ext(NameKind::Desk)),
    add(EventField::Entry, sym_ext(NameKind::Name)),
    add(EventField::QtyReduced, FieldLayout::DecimalExt),
];
/// The fields of all kinds of the family.
const ORDER: &[EventFieldSpec] = AMEND.split_at(AMEND.len() - 1).0;

pub(crate) const SCHEMAS: &[EventSchema] = &[
    EventSchema {
        kind: EventKind::Define,
        fixed_bytes: 64,
        layout: 0,
        fields: &[
            must(EventField::Dict, uint(38, 1)),
            must(EventField::Index, uint(32, 4)),
            must(EventField::Name, text(40, 24)),
        ],
    },
    EventSchema {
        kind: EventKind::Source,
        fixed_bytes: 128,
        layout: 0,
        fields: &[
            must(EventField::Index, uint(32, 4)),
            may(EventField::Of, uint(36, 4)),
            may(EventField::Base, uint(40, 8)),
            may(EventField::Size, uint(48, 8)),
            may(EventField::Format, text(56, 8)),
            may(EventField::Hash, text(64, 64)),
            must(EventField::Feed, TEXT_EXT),
            must(EventField::File, TEXT_EXT),
            may(EventField::Mapping, TEXT_EXT),
        ],
    },
    EventSchema {
        kind: EventKind::Progress,
        fixed_bytes: 128,
        layout: 0,
        fields: &[
            may(EventField::End, FieldLayout::Bool { offset: 38, shift: 0 }),
            must(EventField::Through, uint(40, 8)),
            must(EventField::Messages, uint(48, 8)),
            must(EventField::Ignored, uint(56, 8)),
            must(EventField::Duplicates, uint(64, 8)),
            must(EventField::Quarantined, uint(72, 8)),
            must(EventField::Events, uint(80, 8)),
            may(EventField::Unresolved, uint(88, 8)),
            may(EventField::Repeats, uint(96, 8)),
            may(EventField::Unsure, uint(104, 8)),
            may(EventField::Hash, TEXT_EXT),
            add(EventField::Entries, uint(EXT_ONLY, 8)),
            add(EventField::EntriesUsed, uint(EXT_ONLY, 8)),
            add(EventField::EntriesQuarantined, uint(EXT_ONLY, 8)),
            add(EventField::EntriesIgnored, uint(EXT_ONLY, 8)),
        ],
    },
    EventSchema {
        kind: EventKind::Ref,
        fixed_bytes: 128,
        layout: 0,
        fields: &[
            must(EventField::Instr, INSTR),
            may(EventField::Tick, PX),
            may(EventField::PrevClose, FieldLayout::Price { offset: 48 }),
            may(EventField::Adv, dec(56, 38)),
            may(EventField::Ccy, text(64, 4)),
            may(EventField::Tier, uint(39, 1)),
            may(EventField::Underlying, sym(NameKind::Instrument, 68)),
            may(EventField::Multiplier, dec(72, 88)),
            may(EventField::Lot, dec(80, 89)),
            may(EventField::Mic, VENUE),
            may(EventField::Symbol, text(96, 16)),
            may(EventField::Figi, text(112, 16)),
            add(EventField::Class, text(90, 6)),
            add(EventField::LiquidityBand, uint(EXT_ONLY, 8)),
            add(EventField::Expiry, FieldLayout::Date { offset: EXT_ONLY }),
            add(EventField::Strike, PRICE_EXT),
            add(EventField::Right, TEXT_EXT),
            add(EventField::Barrier, PRICE_EXT),
            add(EventField::Delta, FieldLayout::DecimalExt),
            add(EventField::Float, FieldLayout::DecimalExt),
            add(EventField::PriceType, TEXT_EXT),
            add(EventField::ValidFrom, FieldLayout::Date { offset: EXT_ONLY }),
        ],
    },
    EventSchema {
        kind: EventKind::Session,
        fixed_bytes: 64,
        layout: 0,
        fields: &[
            may(EventField::Venue, VENUE),
            may(EventField::Instr, INSTR),
            must(EventField::Phase, text(48, 8)),
            may(EventField::Px, PX),
        ],
    },
    EventSchema {
        kind: EventKind::Status,
        fixed_bytes: 64,
        layout: 0,
        fields: &[
            may(EventField::Venue, VENUE),
            may(EventField::Instr, INSTR),
            must(EventField::State, text(40, 12)),
            may(EventField::Reason, text(52, 12)),
            add(EventField::Ref, ID_EXT),
        ],
    },
    EventSchema {
        kind: EventKind::Bbo,
        fixed_bytes: 64,
        layout: 0,
        fields: &[
            may(EventField::Venue, VENUE),
            must(EventField::Instr, INSTR),
            may(EventField::Bid, PX),
            may(EventField::BidQty, FieldLayout::DecimalNarrow { offset: 56, exp_offset: 38 }),
            may(EventField::Ask, FieldLayout::Price { offset: 48 }),
            may(EventField::AskQty, FieldLayout::DecimalNarrow { offset: 60, exp_offset: 39 }),
            may(EventField::Ccy, TEXT_EXT),
            add(EventField::Cause, FieldLayout::TapePosition { offset: EXT_ONLY }),
            add(EventField::Partial, FieldLayout::Bool { offset: EXT_ONLY, shift: 0 }),
        ],
    },
    EventSchema {
        kind: EventKind::Level,
        fixed_bytes: 64,
        layout: 0,
        fields: &[
            may(EventField::Venue, VENUE),
            must(EventField::Instr, INSTR),
            may(EventField::Side, SIDE),
            must(EventField::Action, code(38, 2, 3, LEVEL_ACTIONS)),
            may(EventField::Px, PX),
            may(EventField::Qty, dec(48, 39)),
            may(EventField::Orders, uint(56, 4)),
            may(EventField::Depth, uint(60, 2)),
        ],
    },
    EventSchema {
        kind: EventKind::Quote,
        fixed_bytes: 64,
        layout: 0,
        fields: &[
            may(EventField::Venue, FieldLayout::Publisher { bank: false }),
            may(EventField::Bank, FieldLayout::Publisher { bank: true }),
            must(EventField::Instr, INSTR),
            may(EventField::QuoteId, FieldLayout::Id { offset: 48, n: 8 }),
            may(EventField::Tier, uint(62, 1)),
            may(EventField::Side, SIDE),
            may(EventField::Px, PX),
            may(EventField::Qty, FieldLayout::DecimalNarrow { offset: 56, exp_offset: 39 }),
            may(EventField::ValidUntil, FieldLayout::MillisAfter { offset: 60 }),
            may(EventField::Indicative, FieldLayout::Bool { offset: 38, shift: 2 }),
            may(EventField::FullAmount, FieldLayout::Bool { offset: 38, shift: 4 }),
            add(EventField::Withdrawn, FieldLayout::Flag { offset: 38, shift: 7 }),
            add(EventField::ValueDate, FieldLayout::DateAfter { offset: 63 }),
            add(EventField::LastLook, FieldLayout::Bool { offset: EXT_ONLY, shift: 0 }),
        ],
    },
    EventSchema {
        kind: EventKind::Trade,
        fixed_bytes: 64,
        layout: 0,
        fields: &[
            may(EventField::Venue, VENUE),
            must(EventField::Instr, INSTR),
            must(EventField::Px, PX),
            must(EventField::Qty, FieldLayout::DecimalNarrow { offset: 56, exp_offset: 39 }),
            may(EventField::MatchId, FieldLayout::Id { offset: 48, n: 8 }),
            may(EventField::Cond, text(60, 4)),
            may(EventField::Side, SIDE),
            may(EventField::Action, code(38, 2, 3, TRADE_ACTIONS)),
            may(EventField::Ccy, TEXT_EXT),
            add(EventField::TradeFlags, FieldLayout::FlagSet { offset: 38, shift: 5, values: TRADE_FLAGS }),
        ],
    },
    EventSchema {
        kind: EventKind::OrderRecv,
        fixed_bytes: 128,
        layout: 0,
        fields: &[
            must(EventField::Coid, FieldLayout::Id { offset: 80, n: 24 }),
            may(EventField::Owner, sym(NameKind::Owner, 64)),
            may(EventField::Firm, sym(NameKind::Firm, 68)),
            may(EventField::Instr, INSTR),
            may(EventField::Side, SIDE),
            may(EventField::Qty, dec(48, 39)),
            may(EventField::Channel, text(104, 16)),
            may(EventField::Px, PX),
            may(EventField::Trader, sym(NameKind::Trader, 56)),
            may(EventField::Acct, sym(NameKind::Account, 60)),
        ],
    },
    EventSchema {
        kind: EventKind::Parent,
        fixed_bytes: 128,
        layout: 0,
        fields: &[
            must(EventField::Parent, FieldLayout::Id { offset: 80, n: 24 }),
            may(EventField::Instr, INSTR),
            may(EventField::Side, SIDE),
            may(EventField::Qty, dec(48, 39)),
            may(EventField::Firm, sym(NameKind::Firm, 68)),
            may(EventField::Owner, sym(NameKind::Owner, 64)),
            may(EventField::Algo, sym(NameKind::Algo, 72)),
            may(EventField::Px, PX),
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
            must(EventField::Oid, FieldLayout::Id { offset: 80, n: 24 }),
            may(EventField::MatchId, FieldLayout::Id { offset: 104, n: 24 }),
            may(EventField::Side, SIDE),
            may(EventField::Px, PX), // none where a feed names the order only and keeps no orders
            must(EventField::Qty, dec(48, 39)),
            may(EventField::Liq, code(38, 6, 2, LIQUIDITIES)),
            may(EventField::Venue, VENUE),
            may(EventField::Instr, INSTR),
            may(EventField::Trader, sym(NameKind::Trader, 56)),
            may(EventField::Acct, sym(NameKind::Account, 60)),
            may(EventField::Owner, sym(NameKind::Owner, 64)),
            may(EventField::Firm, sym(NameKind::Firm, 68)),
            may(EventField::Capacity, code(38, 2, 2, CAPACITIES)),
            may(EventField::Short, code(38, 4, 2, SHORTS)),
            may(EventField::Algo, sym(NameKind::Algo, 72)),
            may(EventField::Cpty, sym(NameKind::Firm, 76)),
            may(EventField::Parent, ID_EXT),
            may(EventField::Tif, TEXT_EXT),
            may(EventField::Type, TEXT_EXT),
            may(EventField::StopPx, PRICE_EXT),
            may(EventField::Coid, ID_EXT),
            may(EventField::Ccy, TEXT_EXT),
            add(EventField::Desk, sym_ext(NameKind::Desk)),
            add(EventField::Entry, sym_ext(NameKind::Name)),
            add(EventField::Cond, TEXT_EXT),
            add(
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
            must(EventField::Owner, sym(NameKind::Owner, 40)),
            may(EventField::Group, sym(NameKind::Owner, 44)),
            may(EventField::Desk, sym(NameKind::Desk, 48)),
            may(EventField::LinkScore, dec(56, 38)),
            add(EventField::Linked, sym(NameKind::Owner, 52)),
            add(EventField::How, TEXT_EXT),
            add(EventField::From, NANOS_EXT),
            add(EventField::To, NANOS_EXT),
            add(EventField::Acct, sym_ext(NameKind::Account)),
            add(EventField::AccountClass, code(39, 0, 2, ACCOUNT_CLASSES)),
        ],
    },
    EventSchema {
        kind: EventKind::Position,
        fixed_bytes: 64,
        layout: 0,
        fields: &[
            must(EventField::Owner, sym(NameKind::Owner, 40)),
            may(EventField::Instr, INSTR),
            may(EventField::Qty, dec(48, 38)),
            may(EventField::OpenInterest, dec(56, 39)),
            add(EventField::Day, FieldLayout::Date { offset: 44 }),
            add(EventField::Source, TEXT_EXT),
        ],
    },
    EventSchema {
        kind: EventKind::List,
        fixed_bytes: 64,
        layout: 0,
        fields: &[
            must(EventField::Name, sym(NameKind::Name, 40)),
            may(EventField::Instr, INSTR),
            may(EventField::Party, sym(NameKind::Owner, 44)),
            may(EventField::From, FieldLayout::Nanos { offset: 48 }),
            may(EventField::To, FieldLayout::Nanos { offset: 56 }),
            add(EventField::Acct, sym_ext(NameKind::Account)),
            add(EventField::Desk, sym_ext(NameKind::Desk)),
            add(EventField::Trader, sym_ext(NameKind::Trader)),
            add(EventField::Firm, sym_ext(NameKind::Firm)),
            add(EventField::Role, TEXT_EXT),
            add(EventField::Issuer, sym_ext(NameKind::Name)),
        ],
    },
    EventSchema {
        kind: EventKind::Index,
        fixed_bytes: 64,
        layout: 0,
        fields: &[
            must(EventField::Index, INSTR),
            must(EventField::Px, dec(40, 38)),
            may(EventField::Venue, VENUE),
        ],
    },
    EventSchema {
        kind: EventKind::RefPx,
        fixed_bytes: 64,
        layout: 0,
        fields: &[
            must(EventField::Instr, INSTR),
            must(EventField::Px, PX),
            may(EventField::Source, text(48, 16)),
        ],
    },
    EventSchema {
        kind: EventKind::News,
        fixed_bytes: 128,
        layout: 0,
        fields: &[
            may(EventField::NewsId, FieldLayout::Id { offset: 40, n: 24 }),
            may(EventField::Instrs, FieldLayout::Syms { dict: NameKind::Instrument }),
            may(EventField::Headline, TEXT_EXT),
            may(EventField::Source, text(64, 16)),
            may(EventField::Text, TEXT_EXT),
            add(EventField::Class, text(80, 12)),
            add(EventField::Language, text(92, 12)),
            add(EventField::Revises, FieldLayout::Id { offset: 104, n: 24 }),
        ],
    },
    EventSchema {
        kind: EventKind::Comm,
        fixed_bytes: 128,
        layout: 0,
        fields: &[
            may(EventField::MsgId, FieldLayout::Id { offset: 40, n: 24 }),
            may(EventField::Channel, text(64, 16)),
            may(EventField::From, sym(NameKind::Name, 80)),
            may(EventField::To, FieldLayout::Syms { dict: NameKind::Name }),
            may(EventField::Text, TEXT_EXT),
            add(EventField::Instrs, FieldLayout::Syms { dict: NameKind::Instrument }),
            add(EventField::ReplyTo, FieldLayout::Id { offset: 88, n: 24 }),
            add(EventField::Changed, FieldLayout::Bool { offset: 38, shift: 0 }),
        ],
    },
    EventSchema {
        kind: EventKind::Payment,
        fixed_bytes: 128,
        layout: 0,
        fields: &[
            may(EventField::Msg, text(40, 16)),
            may(EventField::Ref, FieldLayout::Id { offset: 64, n: 24 }),
            may(EventField::DrAcct, sym(NameKind::Account, 56)),
            may(EventField::CrAcct, sym(NameKind::Account, 60)),
            may(EventField::DrName, TEXT_EXT),
            may(EventField::CrName, TEXT_EXT),
            may(EventField::Ccy, text(88, 4)),
            may(EventField::Amt, FieldLayout::Amount { offset: 96, exp_offset: 38 }),
            may(EventField::CrBic, TEXT_EXT),
            may(EventField::DrBic, text(112, 12)),
            add(EventField::Uetr, ID_EXT),
            add(EventField::Stage, code(39, 0, 3, PAYMENT_STAGES)),
            add(EventField::DrUltimate, TEXT_EXT),
            add(EventField::CrUltimate, TEXT_EXT),
            add(EventField::DrCountry, text(124, 2)),
            add(EventField::CrCountry, text(126, 2)),
        ],
    },
    EventSchema {
        kind: EventKind::Statement,
        fixed_bytes: 128,
        layout: 0,
        fields: &[
            must(EventField::Acct, sym(NameKind::Account, 40)),
            may(EventField::Ccy, text(44, 4)),
            may(EventField::Ref, FieldLayout::Id { offset: 48, n: 16 }),
            may(EventField::Opening, FieldLayout::Amount { offset: 64, exp_offset: 38 }),
            may(EventField::Closing, FieldLayout::Amount { offset: 80, exp_offset: 39 }),
            may(EventField::Entries, FieldLayout::Json),
        ],
    },
    EventSchema {
        kind: EventKind::Alert,
        fixed_bytes: 128,
        layout: 1,
        fields: &[
            must(EventField::Scenario, sym(NameKind::Name, 40)),
            may(EventField::TriggerSeq, uint(48, 8)),
            may(EventField::TriggerPosition, uint(56, 8)),
            may(EventField::Key, FieldLayout::Json),
            may(EventField::Detail, FieldLayout::Json),
            add(EventField::SourceTape, FieldLayout::Tape { offset: 64 }),
            add(EventField::RuleVersion, text(80, 16)),
            add(EventField::ParamsHash, TEXT_EXT),
            add(EventField::Score, dec(96, 39)),
            add(EventField::Owner, sym(NameKind::Owner, 44)),
            add(EventField::Venue, VENUE),
            add(EventField::Instr, INSTR),
        ],
    },
    EventSchema {
        kind: EventKind::Control,
        fixed_bytes: 192,
        layout: 1,
        fields: &[
            may(EventField::Venue, VENUE),
            may(EventField::Instr, INSTR),
            must(EventField::Action, text(40, 12)),
            may(EventField::Reason, text(52, 12)),
            may(EventField::Key, FieldLayout::Json),
            may(EventField::Detail, FieldLayout::Json),
            add(EventField::Id, FieldLayout::Id { offset: 72, n: 24 }),
            add(EventField::ScopeKind, code(39, 0, 4, SCOPES)),
            add(EventField::Firm, sym(NameKind::Firm, 96)),
            add(EventField::Trader, sym(NameKind::Trader, 100)),
            add(EventField::Owner, sym(NameKind::Owner, 104)),
            add(EventField::Acct, sym(NameKind::Account, 108)),
            add(EventField::Desk, sym(NameKind::Desk, 112)),
            add(EventField::Algo, sym(NameKind::Algo, 116)),
            add(EventField::Cause, FieldLayout::TapePosition { offset: 128 }),
            add(EventField::By, sym(NameKind::Name, 120)),
            add(EventField::SecondBy, sym(NameKind::Name, 124)),
            add(EventField::Until, FieldLayout::Nanos { offset: 64 }),
            add(EventField::DryRun, FieldLayout::Bool { offset: 39, shift: 4 }),
            add(EventField::State, text(152, 16)),
        ],
    },
    EventSchema {
        kind: EventKind::Quarantine,
        fixed_bytes: 64,
        layout: 0,
        fields: &[
            may(EventField::Length, uint(48, 4)),
            must(EventField::Reason, text(52, 12)),
            may(EventField::Detail, TEXT_EXT),
            may(EventField::RawAt, uint(40, 8)),
            may(EventField::Hash, TEXT_EXT),
        ],
    },
    EventSchema { kind: EventKind::Clock, fixed_bytes: 64, layout: 0, fields: &[] },
    EventSchema {
        kind: EventKind::QuoteReject,
        fixed_bytes: 128,
        layout: 0,
        fields: &[
            may(EventField::Venue, FieldLayout::Publisher { bank: false }),
            may(EventField::Bank, FieldLayout::Publisher { bank: true }),
            must(EventField::Instr, INSTR),
            may(EventField::QuoteId, FieldLayout::Id { offset: 56, n: 24 }),
            may(EventField::Tier, uint(108, 1)),
            may(EventField::Side, SIDE),
            may(EventField::Px, PX),
            may(EventField::Qty, dec(48, 39)),
            may(EventField::ValueDate, FieldLayout::Date { offset: 104 }),
            may(EventField::Oid, FieldLayout::Id { offset: 80, n: 24 }),
            may(EventField::Reason, text(112, 16)),
            may(EventField::Trader, sym_ext(NameKind::Trader)),
            may(EventField::Acct, sym_ext(NameKind::Account)),
            may(EventField::Text, TEXT_EXT),
        ],
    },
    EventSchema {
        kind: EventKind::Deal,
        fixed_bytes: 128,
        layout: 0,
        fields: &[
            may(EventField::Venue, FieldLayout::Publisher { bank: false }),
            may(EventField::Bank, FieldLayout::Publisher { bank: true }),
            must(EventField::Instr, INSTR),
            may(EventField::QuoteId, FieldLayout::Id { offset: 56, n: 24 }),
            may(EventField::Tier, uint(108, 1)),
            may(EventField::Side, SIDE),
            must(EventField::Px, PX),
            must(EventField::Qty, dec(48, 39)),
            may(EventField::ValueDate, FieldLayout::Date { offset: 104 }),
            may(EventField::Oid, FieldLayout::Id { offset: 80, n: 24 }),
            may(EventField::MatchId, FieldLayout::Id { offset: 112, n: 16 }),
            may(EventField::Trader, sym_ext(NameKind::Trader)),
            may(EventField::Acct, sym_ext(NameKind::Account)),
            may(EventField::Owner, sym_ext(NameKind::Owner)),
            may(EventField::Firm, sym_ext(NameKind::Firm)),
            may(EventField::Desk, sym_ext(NameKind::Desk)),
            may(EventField::Ccy, TEXT_EXT),
        ],
    },
    EventSchema {
        kind: EventKind::Decision,
        fixed_bytes: 128,
        layout: 0,
        fields: &[
            must(EventField::Oid, FieldLayout::Id { offset: 80, n: 24 }),
            may(EventField::Instr, INSTR),
            may(EventField::Side, SIDE),
            may(EventField::Qty, dec(48, 39)),
            may(EventField::Px, PX),
            may(EventField::ValueDate, FieldLayout::Date { offset: 104 }),
            may(EventField::Considered, FieldLayout::TapePositions),
            may(EventField::Read, FieldLayout::TapePositions),
            may(EventField::PolicyHash, TEXT_EXT),
            may(EventField::Chosen, FieldLayout::Json),
            may(EventField::ConsideredHash, TEXT_EXT),
            may(EventField::Trader, sym(NameKind::Trader, 56)),
            may(EventField::Acct, sym(NameKind::Account, 60)),
        ],
    },
    EventSchema {
        kind: EventKind::Case,
        fixed_bytes: 128,
        layout: 0,
        fields: &[
            must(EventField::CaseId, FieldLayout::Id { offset: 56, n: 24 }),
            must(EventField::Action, text(40, 16)),
            may(EventField::State, text(80, 16)),
            may(EventField::By, sym(NameKind::Name, 96)),
            may(EventField::Assigned, sym(NameKind::Name, 100)),
            may(EventField::Scenario, sym(NameKind::Name, 104)),
            may(EventField::Owner, sym(NameKind::Owner, 108)),
            may(EventField::Venue, VENUE),
            may(EventField::Instr, INSTR),
            may(EventField::Cause, FieldLayout::TapePosition { offset: EXT_ONLY }),
            may(EventField::Reason, text(112, 16)),
            may(EventField::Text, TEXT_EXT),
            may(EventField::Key, FieldLayout::Json),
            may(EventField::Detail, FieldLayout::Json),
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
            must(EventField::Scenario, sym(NameKind::Name, 40)),
            may(EventField::TriggerSeq, uint(48, 8)),
            may(EventField::TriggerPosition, uint(56, 8)),
            may(EventField::Key, FieldLayout::Json),
            may(EventField::Detail, FieldLayout::Json),
        ],
    },
    EventSchema {
        kind: EventKind::Control,
        fixed_bytes: 64,
        layout: 0,
        fields: &[
            may(EventField::Venue, VENUE),
            may(EventField::Instr, INSTR),
            must(EventField::Action, text(40, 12)),
            may(EventField::Reason, text(52, 12)),
            may(EventField::Key, FieldLayout::Json),
            may(EventField::Detail, FieldLayout::Json),
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
