//! Where each field of each kind stands: the one table behind the JSON codec, the mappings, the readers by
//! name and the drawing in `docs/formats-events.md`.
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
//! place stands in full in the *extension* behind it, and its place holds the mark for that. Extension
//! entries are `[tag u16][length u32][payload]`, ended by tag 0 or by the frame. Nothing is ever rounded.

use crate::id::Dict;
use crate::kind::{Field, Kind};

/// How and where a field stands in the fixed part. `at` counts from the start of the frame; an `at` of
/// [`EXT_ONLY`] means the field always stands in the extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // `at`, `n`, `shift` are told above
pub enum Slot {
    /// Interned id, u32 (u16 for a venue); 0 none.
    Sym { dict: Dict, at: u16 },
    /// Interned id in the venue's place, of the venue or of the bank that quotes; bit 6 of the byte behind says of a bank.
    Publisher { bank: bool },
    /// Interned ids, u32 each, in the extension.
    Syms { dict: Dict },
    /// i64 in 1e-9; `i64::MAX` none.
    Price { at: u16 },
    /// i64 mantissa and i8 exponent; exponent −128 none.
    Decimal { at: u16, exp_at: u16 },
    /// u32 mantissa and i8 exponent; exponent −128 none, −127 in the extension.
    DecimalNarrow { at: u16, exp_at: u16 },
    /// i64 mantissa and i8 exponent, nine bytes in the extension.
    DecimalExt,
    /// i128 mantissa and i8 exponent; exponent −128 none.
    Amount { at: u16, exp_at: u16 },
    /// [`crate::InlineId`] in `n` bytes.
    Id { at: u16, n: u16 },
    /// UTF-8 text up to `n` bytes, zero-padded; longer in the extension.
    Text { at: u16, n: u16 },
    /// One of `values` (1-based, 0 none) in two or three bits.
    Code { at: u16, shift: u8, bits: u8, values: &'static [&'static str] },
    /// false 1, true 2, none 0, in two bits.
    Bool { at: u16, shift: u8 },
    /// Unsigned integer of `width` bytes; all ones none, all ones less one in the extension.
    UInt { at: u16, width: u8 },
    /// i64 nanoseconds since the epoch; `i64::MIN` none.
    Nanos { at: u16 },
    /// u16 milliseconds after `ts_event`; 65535 none, 65534 in the extension.
    MillisAfter { at: u16 },
    /// Any JSON value, as its text, in the extension.
    Json,
}

/// `at` of a field that has no place in the fixed part.
pub const EXT_ONLY: u16 = 0;

/// A field of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Which field.
    pub field: Field,
    /// Where it stands.
    pub slot: Slot,
    /// An event without it is refused.
    pub required: bool,
}

/// The layout of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Schema {
    /// Which kind.
    pub kind: Kind,
    /// Bytes of the fixed part: 64, 128 or 192.
    pub fixed_bytes: u16,
    /// Its fields, in the order JSON prints them.
    pub fields: &'static [Spec],
}

impl Slot {
    /// The dictionary of a slot that holds one interned id.
    pub fn dict(self) -> Option<Dict> {
        match self {
            Slot::Sym { dict, .. } => Some(dict),
            Slot::Publisher { .. } => Some(Dict::Venue),
            _ => None,
        }
    }
}

impl Schema {
    /// The layout of `kind`.
    #[inline]
    pub fn of(kind: Kind) -> &'static Schema {
        let s = &SCHEMAS[INDEX[kind as usize] as usize];
        debug_assert_eq!(s.kind, kind);
        s
    }

    /// The field of this name, if the kind has it.
    pub fn find(&self, name: &str) -> Option<&'static Spec> {
        self.fields.iter().find(|s| s.field.name() == name)
    }

    /// This field, if the kind has it.
    pub fn get(&self, field: Field) -> Option<&'static Spec> {
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
/// `recv delta` when the receive time stands in the extension.
pub const RECV_EXT: i32 = i32::MAX;
/// `sequence` when there is none.
pub const SEQ_NONE: u32 = u32::MAX;
/// `sequence` when it stands in the extension.
pub const SEQ_EXT: u32 = u32::MAX - 1;
/// Tag of an extension entry that holds an unmapped field: `[name length u16][name][JSON text]`.
pub const TAG_UNMAPPED: u16 = 0xfffe;
/// Exponent byte of a decimal that is not there.
pub const EXP_NONE: i8 = -128;
/// Exponent byte of a narrow decimal that stands in the extension.
pub const EXP_EXT: i8 = -127;

/// Set in the byte at [`at::KIND_A`] when a bank stands in the venue's place.
pub const PUBLISHER_IS_BANK: u8 = 1 << 6;

const SIDES: &[&str] = &["B", "S"];
const CAPACITIES: &[&str] = &["P", "A", "R"];
const SHORTS: &[&str] = &["Y", "N", "E"];
const LIQUIDITIES: &[&str] = &["A", "R", "X"];
const LEVEL_ACTIONS: &[&str] = &["A", "C", "D", "R"];
const TRADE_ACTIONS: &[&str] = &["new", "cancel", "correct"];

const fn must(field: Field, slot: Slot) -> Spec {
    Spec { field, slot, required: true }
}
const fn may(field: Field, slot: Slot) -> Spec {
    Spec { field, slot, required: false }
}
const fn sym(dict: Dict, at: u16) -> Slot {
    Slot::Sym { dict, at }
}
const fn text(at: u16, n: u16) -> Slot {
    Slot::Text { at, n }
}
const fn code(at: u16, shift: u8, bits: u8, values: &'static [&'static str]) -> Slot {
    Slot::Code { at, shift, bits, values }
}
const fn uint(at: u16, width: u8) -> Slot {
    Slot::UInt { at, width }
}
const fn dec(at: u16, exp_at: u16) -> Slot {
    Slot::Decimal { at, exp_at }
}

const VENUE: Slot = sym(Dict::Venue, 36);
const INSTR: Slot = sym(Dict::Instrument, 32);
const SIDE: Slot = code(38, 0, 2, SIDES);
const PX: Slot = Slot::Price { at: 40 };
const TEXT_EXT: Slot = text(EXT_ONLY, 0);

/// The order family shares one layout: see [`crate::records::Order`].
const ORDER: [Spec; 22] = [
    must(Field::Oid, Slot::Id { at: 80, n: 24 }),
    may(Field::Side, SIDE),
    may(Field::Px, PX),
    may(Field::Qty, dec(48, 39)),
    may(Field::Venue, VENUE),
    may(Field::Instr, INSTR),
    may(Field::Trader, sym(Dict::Trader, 56)),
    may(Field::Acct, sym(Dict::Account, 60)),
    may(Field::Owner, sym(Dict::Owner, 64)),
    may(Field::Firm, sym(Dict::Firm, 68)),
    may(Field::Capacity, code(38, 2, 2, CAPACITIES)),
    may(Field::Tif, text(76, 4)),
    may(Field::Algo, sym(Dict::Algo, 72)),
    may(Field::Parent, Slot::Id { at: 104, n: 16 }),
    may(Field::Type, text(120, 8)),
    may(Field::StopPx, Slot::Price { at: EXT_ONLY }),
    may(Field::Short, code(38, 4, 2, SHORTS)),
    may(Field::Coid, Slot::Id { at: EXT_ONLY, n: 0 }),
    may(Field::Ccy, TEXT_EXT),
    may(Field::Left, Slot::DecimalExt),
    may(Field::Display, Slot::DecimalExt),
    may(Field::Reason, TEXT_EXT),
];

pub(crate) const SCHEMAS: &[Schema] = &[
    Schema {
        kind: Kind::Define,
        fixed_bytes: 64,
        fields: &[
            must(Field::Dict, uint(38, 1)),
            must(Field::Index, uint(32, 4)),
            must(Field::Name, text(40, 24)),
        ],
    },
    Schema {
        kind: Kind::Source,
        fixed_bytes: 128,
        fields: &[
            must(Field::Index, uint(32, 4)),
            may(Field::Of, uint(36, 4)),
            may(Field::Base, uint(40, 8)),
            may(Field::Size, uint(48, 8)),
            may(Field::Format, text(56, 8)),
            may(Field::Hash, text(64, 64)),
            must(Field::Feed, TEXT_EXT),
            must(Field::File, TEXT_EXT),
            may(Field::Mapping, TEXT_EXT),
        ],
    },
    Schema {
        kind: Kind::Progress,
        fixed_bytes: 128,
        fields: &[
            may(Field::End, Slot::Bool { at: 38, shift: 0 }),
            must(Field::Through, uint(40, 8)),
            must(Field::Messages, uint(48, 8)),
            must(Field::Ignored, uint(56, 8)),
            must(Field::Duplicates, uint(64, 8)),
            must(Field::Quarantined, uint(72, 8)),
            must(Field::Events, uint(80, 8)),
            may(Field::Unresolved, uint(88, 8)),
            may(Field::Repeats, uint(96, 8)),
            may(Field::Unsure, uint(104, 8)),
            may(Field::Hash, TEXT_EXT),
        ],
    },
    Schema {
        kind: Kind::Ref,
        fixed_bytes: 128,
        fields: &[
            must(Field::Instr, INSTR),
            may(Field::Tick, PX),
            may(Field::PrevClose, Slot::Price { at: 48 }),
            may(Field::Adv, dec(56, 38)),
            may(Field::Ccy, text(64, 4)),
            may(Field::Tier, uint(39, 1)),
            may(Field::Underlying, sym(Dict::Instrument, 68)),
            may(Field::Multiplier, dec(72, 88)),
            may(Field::Lot, dec(80, 89)),
            may(Field::Mic, VENUE),
            may(Field::Symbol, text(96, 16)),
            may(Field::Figi, text(112, 16)),
        ],
    },
    Schema {
        kind: Kind::Session,
        fixed_bytes: 64,
        fields: &[
            may(Field::Venue, VENUE),
            may(Field::Instr, INSTR),
            must(Field::Phase, text(48, 8)),
            may(Field::Px, PX),
        ],
    },
    Schema {
        kind: Kind::Status,
        fixed_bytes: 64,
        fields: &[
            may(Field::Venue, VENUE),
            may(Field::Instr, INSTR),
            must(Field::State, text(40, 12)),
            may(Field::Reason, text(52, 12)),
        ],
    },
    Schema {
        kind: Kind::Bbo,
        fixed_bytes: 64,
        fields: &[
            may(Field::Venue, VENUE),
            must(Field::Instr, INSTR),
            may(Field::Bid, PX),
            may(Field::BidQty, Slot::DecimalNarrow { at: 56, exp_at: 38 }),
            may(Field::Ask, Slot::Price { at: 48 }),
            may(Field::AskQty, Slot::DecimalNarrow { at: 60, exp_at: 39 }),
            may(Field::Ccy, TEXT_EXT),
        ],
    },
    Schema {
        kind: Kind::Level,
        fixed_bytes: 64,
        fields: &[
            may(Field::Venue, VENUE),
            must(Field::Instr, INSTR),
            may(Field::Side, SIDE),
            must(Field::Action, code(38, 2, 3, LEVEL_ACTIONS)),
            may(Field::Px, PX),
            may(Field::Qty, dec(48, 39)),
            may(Field::Orders, uint(56, 4)),
            may(Field::Depth, uint(60, 2)),
        ],
    },
    Schema {
        kind: Kind::Quote,
        fixed_bytes: 64,
        fields: &[
            may(Field::Venue, Slot::Publisher { bank: false }),
            may(Field::Bank, Slot::Publisher { bank: true }),
            must(Field::Instr, INSTR),
            may(Field::QuoteId, Slot::Id { at: 48, n: 8 }),
            may(Field::Tier, uint(62, 1)),
            may(Field::Side, SIDE),
            may(Field::Px, PX),
            may(Field::Qty, Slot::DecimalNarrow { at: 56, exp_at: 39 }),
            may(Field::ValidUntil, Slot::MillisAfter { at: 60 }),
            may(Field::Indicative, Slot::Bool { at: 38, shift: 2 }),
            may(Field::FullAmount, Slot::Bool { at: 38, shift: 4 }),
        ],
    },
    Schema {
        kind: Kind::Trade,
        fixed_bytes: 64,
        fields: &[
            may(Field::Venue, VENUE),
            must(Field::Instr, INSTR),
            must(Field::Px, PX),
            must(Field::Qty, Slot::DecimalNarrow { at: 56, exp_at: 39 }),
            may(Field::MatchId, Slot::Id { at: 48, n: 8 }),
            may(Field::Cond, text(60, 4)),
            may(Field::Side, SIDE),
            may(Field::Action, code(38, 2, 3, TRADE_ACTIONS)),
            may(Field::Ccy, TEXT_EXT),
        ],
    },
    Schema {
        kind: Kind::OrderRecv,
        fixed_bytes: 128,
        fields: &[
            must(Field::Coid, Slot::Id { at: 80, n: 24 }),
            may(Field::Owner, sym(Dict::Owner, 64)),
            may(Field::Firm, sym(Dict::Firm, 68)),
            may(Field::Instr, INSTR),
            may(Field::Side, SIDE),
            may(Field::Qty, dec(48, 39)),
            may(Field::Channel, text(104, 16)),
            may(Field::Px, PX),
            may(Field::Trader, sym(Dict::Trader, 56)),
            may(Field::Acct, sym(Dict::Account, 60)),
        ],
    },
    Schema {
        kind: Kind::Parent,
        fixed_bytes: 128,
        fields: &[
            must(Field::Parent, Slot::Id { at: 80, n: 24 }),
            may(Field::Instr, INSTR),
            may(Field::Side, SIDE),
            may(Field::Qty, dec(48, 39)),
            may(Field::Firm, sym(Dict::Firm, 68)),
            may(Field::Owner, sym(Dict::Owner, 64)),
            may(Field::Algo, sym(Dict::Algo, 72)),
            may(Field::Px, PX),
        ],
    },
    Schema { kind: Kind::OrderNew, fixed_bytes: 128, fields: &ORDER },
    Schema { kind: Kind::OrderAmend, fixed_bytes: 128, fields: &ORDER },
    Schema { kind: Kind::OrderCancel, fixed_bytes: 128, fields: &ORDER },
    Schema {
        kind: Kind::Exec,
        fixed_bytes: 128,
        fields: &[
            must(Field::Oid, Slot::Id { at: 80, n: 24 }),
            may(Field::MatchId, Slot::Id { at: 104, n: 24 }),
            may(Field::Side, SIDE),
            may(Field::Px, PX), // none where a feed names the order only and keeps no orders
            must(Field::Qty, dec(48, 39)),
            may(Field::Liq, code(38, 6, 2, LIQUIDITIES)),
            may(Field::Venue, VENUE),
            may(Field::Instr, INSTR),
            may(Field::Trader, sym(Dict::Trader, 56)),
            may(Field::Acct, sym(Dict::Account, 60)),
            may(Field::Owner, sym(Dict::Owner, 64)),
            may(Field::Firm, sym(Dict::Firm, 68)),
            may(Field::Capacity, code(38, 2, 2, CAPACITIES)),
            may(Field::Short, code(38, 4, 2, SHORTS)),
            may(Field::Algo, sym(Dict::Algo, 72)),
            may(Field::Cpty, sym(Dict::Firm, 76)),
            may(Field::Parent, Slot::Id { at: EXT_ONLY, n: 0 }),
            may(Field::Tif, TEXT_EXT),
            may(Field::Type, TEXT_EXT),
            may(Field::StopPx, Slot::Price { at: EXT_ONLY }),
            may(Field::Coid, Slot::Id { at: EXT_ONLY, n: 0 }),
            may(Field::Ccy, TEXT_EXT),
        ],
    },
    Schema {
        kind: Kind::Party,
        fixed_bytes: 64,
        fields: &[
            must(Field::Owner, sym(Dict::Owner, 40)),
            may(Field::Group, sym(Dict::Owner, 44)),
            may(Field::Desk, sym(Dict::Desk, 48)),
            may(Field::LinkScore, dec(56, 38)),
        ],
    },
    Schema {
        kind: Kind::Position,
        fixed_bytes: 64,
        fields: &[
            must(Field::Owner, sym(Dict::Owner, 40)),
            may(Field::Instr, INSTR),
            may(Field::Qty, dec(48, 38)),
            may(Field::OpenInterest, dec(56, 39)),
        ],
    },
    Schema {
        kind: Kind::List,
        fixed_bytes: 64,
        fields: &[
            must(Field::Name, sym(Dict::Name, 40)),
            may(Field::Instr, INSTR),
            may(Field::Party, sym(Dict::Owner, 44)),
            may(Field::From, Slot::Nanos { at: 48 }),
            may(Field::To, Slot::Nanos { at: 56 }),
        ],
    },
    Schema {
        kind: Kind::Index,
        fixed_bytes: 64,
        fields: &[must(Field::Index, INSTR), must(Field::Px, dec(40, 38)), may(Field::Venue, VENUE)],
    },
    Schema {
        kind: Kind::RefPx,
        fixed_bytes: 64,
        fields: &[must(Field::Instr, INSTR), must(Field::Px, PX), may(Field::Source, text(48, 16))],
    },
    Schema {
        kind: Kind::News,
        fixed_bytes: 128,
        fields: &[
            may(Field::NewsId, Slot::Id { at: 40, n: 24 }),
            may(Field::Instrs, Slot::Syms { dict: Dict::Instrument }),
            may(Field::Headline, TEXT_EXT),
            may(Field::Source, text(64, 16)),
            may(Field::Text, TEXT_EXT),
        ],
    },
    Schema {
        kind: Kind::Comm,
        fixed_bytes: 128,
        fields: &[
            may(Field::MsgId, Slot::Id { at: 40, n: 24 }),
            may(Field::Channel, text(64, 16)),
            may(Field::From, sym(Dict::Name, 80)),
            may(Field::To, Slot::Syms { dict: Dict::Name }),
            may(Field::Text, TEXT_EXT),
        ],
    },
    Schema {
        kind: Kind::Payment,
        fixed_bytes: 128,
        fields: &[
            may(Field::Msg, text(40, 16)),
            may(Field::Ref, Slot::Id { at: 64, n: 24 }),
            may(Field::DrAcct, sym(Dict::Account, 56)),
            may(Field::CrAcct, sym(Dict::Account, 60)),
            may(Field::DrName, TEXT_EXT),
            may(Field::CrName, TEXT_EXT),
            may(Field::Ccy, text(88, 4)),
            may(Field::Amt, Slot::Amount { at: 96, exp_at: 38 }),
            may(Field::CrBic, text(EXT_ONLY, 0)),
            may(Field::DrBic, text(112, 12)),
        ],
    },
    Schema {
        kind: Kind::Statement,
        fixed_bytes: 128,
        fields: &[
            must(Field::Acct, sym(Dict::Account, 40)),
            may(Field::Ccy, text(44, 4)),
            may(Field::Ref, Slot::Id { at: 48, n: 16 }),
            may(Field::Opening, Slot::Amount { at: 64, exp_at: 38 }),
            may(Field::Closing, Slot::Amount { at: 80, exp_at: 39 }),
            may(Field::Entries, Slot::Json),
        ],
    },
    Schema {
        kind: Kind::Alert,
        fixed_bytes: 64,
        fields: &[
            must(Field::Scenario, sym(Dict::Name, 40)),
            may(Field::TriggerSeq, uint(48, 8)),
            may(Field::TriggerPosition, uint(56, 8)),
            may(Field::Key, Slot::Json),
            may(Field::Detail, Slot::Json),
        ],
    },
    Schema {
        kind: Kind::Control,
        fixed_bytes: 64,
        fields: &[
            may(Field::Venue, VENUE),
            may(Field::Instr, INSTR),
            must(Field::Action, text(40, 12)),
            may(Field::Reason, text(52, 12)),
            may(Field::Key, Slot::Json),
            may(Field::Detail, Slot::Json),
        ],
    },
    Schema {
        kind: Kind::Quarantine,
        fixed_bytes: 64,
        fields: &[
            may(Field::Length, uint(48, 4)),
            must(Field::Reason, text(52, 12)),
            may(Field::Detail, TEXT_EXT),
            may(Field::RawAt, uint(40, 8)),
            may(Field::Hash, TEXT_EXT),
        ],
    },
    Schema { kind: Kind::Clock, fixed_bytes: 64, fields: &[] },
];

const INDEX: [u8; 42] = {
    let mut table = [0u8; 42];
    let mut i = 0;
    while i < SCHEMAS.len() {
        table[SCHEMAS[i].kind as usize] = i as u8;
        i += 1;
    }
    table
};

/// Bytes a slot takes in the fixed part, `None` for one that is always in the extension.
pub fn width_bytes(slot: Slot) -> Option<(u16, u16)> {
    let (at, n) = match slot {
        Slot::Sym { dict: Dict::Venue, at } => (at, 2),
        Slot::Sym { at, .. } => (at, 4),
        Slot::Publisher { .. } => (at::VENUE as u16, 2),
        Slot::Price { at } | Slot::Decimal { at, .. } | Slot::Nanos { at } => (at, 8),
        Slot::DecimalNarrow { at, .. } => (at, 4),
        Slot::Amount { at, .. } => (at, 16),
        Slot::Id { at, n } | Slot::Text { at, n } => (at, n),
        Slot::Code { at, .. } | Slot::Bool { at, .. } => (at, 1),
        Slot::UInt { at, width } => (at, u16::from(width)),
        Slot::MillisAfter { at } => (at, 2),
        Slot::Syms { .. } | Slot::DecimalExt | Slot::Json => (EXT_ONLY, 0),
    };
    (at != EXT_ONLY).then_some((at, n))
}

#[cfg(test)]
mod tests;
