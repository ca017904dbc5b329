//! Reading events by field, exactly, through [`EventSchema`].

use crate::calendar::CivilDate;
use crate::frame::{FrameHeader, flags};
use crate::id::{InlineId, InstrumentId, NameKind, unpack_id};
use crate::kind::{EventField, EventKind};
use crate::num::{Amount, Decimal, Price, UnixNanos};
use crate::schema::{
    EXP_EXT, EXP_NONE, EXT_ONLY, EventFieldSpec, EventSchema, FLAG_SET_EXT, FLAG_SETS, FieldLayout,
    PUBLISHER_IS_BANK, RECV_EXT, RECV_NONE, SEQ_EXT, SEQ_NONE, TAG_UNMAPPED, at,
};
use crate::tape_position::TapePosition;
use std::ops::Range;

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum EventValue<'a> {
    Sym(NameKind, u32),
    /// Little-endian u32 ids.
    Syms(NameKind, &'a [u8]),
    Price(Price),
    Decimal(Decimal),
    Amount(Amount),
    Id(InlineId<'a>),
    Text(&'a str),
    Bool(bool),
    UInt(u64),
    Nanos(UnixNanos),
    Date(CivilDate),
    /// Names of flags, and the set of them, a bit each.
    Flags(&'static [&'static str], u8),
    /// The id of a tape.
    Tape(u128),
    TapePosition(TapePosition),
    /// [`TapePosition::BYTES`] each.
    TapePositions(&'a [u8]),
    /// A JSON value as text.
    Json(&'a str),
}

/// An event where it lies: in an arena or on a mapped tape.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    bytes: &'a [u8],
    schema: &'static EventSchema,
    has_extension: bool,
}

impl<'a> Event<'a> {
    /// Makes the event that a builder has under construction, before its header is written.
    pub(crate) fn from_unfinished(
        bytes: &'a [u8],
        schema: &'static EventSchema,
        has_extension: bool,
    ) -> Self {
        Self { bytes, schema, has_extension }
    }

    /// Reads the frame `bytes`; `None` for a pad, an unknown kind or layout, or a frame shorter than its kind.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let header = FrameHeader::read(bytes.get(..8)?);
        let kind = EventKind::from_u8(header.kind())?;
        let bytes = bytes.get(..header.len_bytes())?;
        let schema = EventSchema::for_frame(kind, *bytes.get(at::KIND_A)?)?;
        let is_complete = bytes.len() >= usize::from(schema.fixed_bytes);
        is_complete.then_some(Self { bytes, schema, has_extension: header.flags() & flags::EXT != 0 })
    }

    /// Returns the bytes of the whole frame.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the header word.
    #[inline]
    pub fn header(&self) -> FrameHeader {
        FrameHeader::read(self.bytes)
    }

    /// Returns the kind of the event.
    #[inline]
    pub fn kind(&self) -> EventKind {
        self.schema.kind
    }

    /// Returns the layout of the frame.
    #[inline]
    pub fn schema(&self) -> &'static EventSchema {
        self.schema
    }

    /// Returns whether a reader needs layout 1 for the frame: its kind has an earlier layout, or it has a field that
    /// layout 1 added.
    pub fn needs_layout_1(&self) -> bool {
        let added = |spec: &&EventFieldSpec| spec.added && self.value(spec, &mut [0; 36]).is_some();
        self.schema.layout > 0 || self.schema.fields.iter().any(|spec| added(&spec))
    }

    /// Returns the event time.
    #[inline]
    pub fn ts_event(&self) -> UnixNanos {
        UnixNanos(i64::from_le_bytes(self.get(at::TS_EVENT)))
    }

    /// Returns the receive time, if it was recorded.
    pub fn ts_recv(&self) -> Option<UnixNanos> {
        match i32::from_le_bytes(self.get(at::RECV_DELTA)) {
            RECV_NONE => None,
            RECV_EXT => self.ext_i64(EventField::TsRecv).map(UnixNanos),
            d => Some(UnixNanos(self.ts_event().0.wrapping_add(i64::from(d)))),
        }
    }

    /// Returns the id of the source definition; 0 if the event has no source.
    #[inline]
    pub fn source(&self) -> u32 {
        u32::from_le_bytes(self.get(at::SOURCE))
    }

    /// Returns the offset of the source message after the base of its source definition, in bytes.
    #[inline]
    pub fn offset(&self) -> u32 {
        u32::from_le_bytes(self.get(at::OFFSET))
    }

    /// Returns the feed's own sequence number, if it was recorded.
    pub fn sequence(&self) -> Option<u64> {
        match u32::from_le_bytes(self.get(at::SEQUENCE)) {
            SEQ_NONE => None,
            SEQ_EXT => self.ext_i64(EventField::SrcSeq).map(|v| v as u64),
            v => Some(v.into()),
        }
    }

    /// Returns the instrument's id in the dictionary of the tape; [`InstrumentId::NONE`] if the event has no
    /// instrument.
    #[inline]
    pub fn instrument(&self) -> InstrumentId {
        InstrumentId(u32::from_le_bytes(self.get(at::INSTRUMENT)))
    }

    /// Returns the id of the venue or of the quoting bank; 0 if the event has no venue.
    #[inline]
    pub fn venue(&self) -> u16 {
        u16::from_le_bytes(self.get(at::VENUE))
    }

    /// Returns the value of a field. Returns `None` if the kind has no such field, or if the field is absent. `scratch`
    /// receives the text of an id that the frame keeps in a shorter form.
    ///
    /// An older frame may have an unmapped entry with the name of a field that was added later. unitape reads the entry
    /// as that field if its JSON is a value of the field's form. Names come as text, without an id; lists and texts
    /// with escapes are not read.
    pub fn field<'s>(&'s self, field: EventField, scratch: &'s mut [u8; 36]) -> Option<EventValue<'s>> {
        let spec = self.schema.get(field)?;
        match self.value(spec, scratch) {
            None if spec.added && self.has_extension => self.unmapped_value(spec),
            value => value,
        }
    }

    #[cold]
    fn unmapped_value(&self, spec: &EventFieldSpec) -> Option<EventValue<'a>> {
        let (_, json) = self.unmapped_fields().find(|(name, _)| *name == spec.field.name())?;
        let text = json.strip_prefix('"').and_then(|t| t.strip_suffix('"')).filter(|t| !t.contains('\\'));
        let digits = text.unwrap_or(json).as_bytes();
        Some(match spec.slot {
            FieldLayout::Price { .. } => EventValue::Price(Price::parse(digits).ok()?),
            FieldLayout::Decimal { .. } | FieldLayout::DecimalNarrow { .. } | FieldLayout::DecimalExt => {
                EventValue::Decimal(Decimal::parse(digits).ok()?)
            }
            FieldLayout::Amount { .. } => EventValue::Amount(Amount::parse(digits).ok()?),
            FieldLayout::Id { .. } => match text {
                Some(text) => EventValue::Id(InlineId::Text(text.as_bytes())),
                None => EventValue::Id(InlineId::Number(json.parse().ok()?)),
            },
            FieldLayout::Code { values, .. } => {
                EventValue::Text(values.iter().find(|value| text == Some(value))?)
            }
            FieldLayout::Sym { .. }
            | FieldLayout::SymExt { .. }
            | FieldLayout::Publisher { .. }
            | FieldLayout::Text { .. } => EventValue::Text(text?),
            FieldLayout::Bool { .. } | FieldLayout::Flag { .. } => EventValue::Bool(json.parse().ok()?),
            FieldLayout::UInt { .. } => EventValue::UInt(json.parse().ok()?),
            FieldLayout::Nanos { .. } | FieldLayout::MillisAfter { .. } => {
                EventValue::Nanos(UnixNanos(json.parse().ok()?))
            }
            FieldLayout::Date { .. } | FieldLayout::DateAfter { .. } => {
                EventValue::Date(CivilDate::parse(digits)?)
            }
            FieldLayout::Json => EventValue::Json(json),
            FieldLayout::Syms { .. }
            | FieldLayout::FlagSet { .. }
            | FieldLayout::Tape { .. }
            | FieldLayout::TapePosition { .. }
            | FieldLayout::TapePositions => return None,
        })
    }

    /// Returns the value of the field `spec`, which must belong to this kind.
    pub fn value<'s>(&'s self, spec: &EventFieldSpec, scratch: &'s mut [u8; 36]) -> Option<EventValue<'s>> {
        let ext = || self.extension_value(spec.field as u16);
        match spec.slot {
            FieldLayout::Sym { dict: NameKind::Venue, offset } => {
                let id = u16::from_le_bytes(self.get(offset.into()));
                (id != 0).then_some(EventValue::Sym(NameKind::Venue, id.into()))
            }
            FieldLayout::Publisher { bank } => {
                let is_bank = self.bytes[at::KIND_A] & PUBLISHER_IS_BANK != 0;
                (self.venue() != 0 && bank == is_bank)
                    .then_some(EventValue::Sym(NameKind::Venue, self.venue().into()))
            }
            FieldLayout::Sym { dict, offset } => {
                let id = u32::from_le_bytes(self.get(offset.into()));
                (id != 0).then_some(EventValue::Sym(dict, id))
            }
            FieldLayout::SymExt { dict } => {
                let id = u32::from_le_bytes(ext()?.try_into().ok()?);
                (id != 0).then_some(EventValue::Sym(dict, id))
            }
            FieldLayout::Syms { dict } => ext().map(|b| EventValue::Syms(dict, b)),
            FieldLayout::Price { offset: EXT_ONLY } => {
                self.ext_i64(spec.field).and_then(|v| Price(v).as_option()).map(EventValue::Price)
            }
            FieldLayout::Price { offset } => {
                Price(i64::from_le_bytes(self.get(offset.into()))).as_option().map(EventValue::Price)
            }
            FieldLayout::Decimal { offset, exp_offset } => {
                let exponent = i8::from_le_bytes(self.get(exp_offset.into()));
                let mantissa = i64::from_le_bytes(self.get(offset.into()));
                (exponent != EXP_NONE)
                    .then(|| EventValue::Decimal(Decimal::from_canonical(mantissa, exponent)))
            }
            FieldLayout::DecimalNarrow { offset, exp_offset } => {
                match i8::from_le_bytes(self.get(exp_offset.into())) {
                    EXP_NONE => None,
                    EXP_EXT => ext_decimal(ext()?).map(EventValue::Decimal),
                    e => {
                        let mantissa = u32::from_le_bytes(self.get(offset.into()));
                        Some(EventValue::Decimal(Decimal::from_canonical(mantissa.into(), e)))
                    }
                }
            }
            FieldLayout::DecimalExt => ext_decimal(ext()?).map(EventValue::Decimal),
            FieldLayout::Amount { offset, exp_offset } => {
                let exponent = i8::from_le_bytes(self.get(exp_offset.into()));
                let mantissa = i128::from_le_bytes(self.get(offset.into()));
                (exponent != EXP_NONE).then(|| EventValue::Amount(Amount::from_canonical(mantissa, exponent)))
            }
            FieldLayout::Id { offset, n } => {
                let slot = &self.bytes[usize::from(offset)..usize::from(offset + n)];
                let inline = if offset == EXT_ONLY { None } else { unpack_id(slot, scratch) };
                inline.or_else(|| ext().map(ext_id)).map(EventValue::Id)
            }
            FieldLayout::Text { offset, n } => {
                let slot = &self.bytes[usize::from(offset)..usize::from(offset + n)];
                let inline = if n == 0 || slot[0] == 0 { None } else { Some(trim_zeros(slot)) };
                let text = inline.or_else(ext)?;
                std::str::from_utf8(text).ok().map(EventValue::Text)
            }
            FieldLayout::Code { offset, shift, bits, values } => {
                let code = self.bytes[usize::from(offset)] >> shift & ((1 << bits) - 1);
                values.get(usize::from(code).wrapping_sub(1)).map(|v| EventValue::Text(v))
            }
            FieldLayout::Bool { offset, shift } => {
                let code = if offset == EXT_ONLY {
                    ext_u8(ext()?)?
                } else {
                    self.bytes[usize::from(offset)] >> shift & 3
                };
                match code {
                    1 => Some(EventValue::Bool(false)),
                    2 => Some(EventValue::Bool(true)),
                    _ => None,
                }
            }
            FieldLayout::Flag { offset, shift } => {
                (self.bytes[usize::from(offset)] >> shift & 1 != 0).then_some(EventValue::Bool(true))
            }
            FieldLayout::FlagSet { offset, shift, values } => {
                let code = if offset == EXT_ONLY {
                    FLAG_SET_EXT
                } else {
                    self.bytes[usize::from(offset)] >> shift & 7
                };
                let set = match code {
                    FLAG_SET_EXT => ext_u8(ext()?)?,
                    code => *FLAG_SETS.get(usize::from(code).wrapping_sub(1))?,
                };
                let set = set & ((1u16 << values.len()) - 1) as u8;
                (set != 0).then_some(EventValue::Flags(values, set))
            }
            FieldLayout::UInt { offset: EXT_ONLY, .. } => {
                self.ext_i64(spec.field).map(|v| EventValue::UInt(v as u64))
            }
            FieldLayout::UInt { offset, width } => {
                let (start, width) = (usize::from(offset), usize::from(width));
                let mut b = [0; 8];
                b[..width].copy_from_slice(&self.bytes[start..start + width]);
                let (v, none_value) = (u64::from_le_bytes(b), u64::MAX >> (64 - 8 * width));
                match none_value - v {
                    0 => None,
                    1 => self.ext_i64(spec.field).map(|v| EventValue::UInt(v as u64)),
                    _ => Some(EventValue::UInt(v)),
                }
            }
            FieldLayout::Nanos { offset } => {
                let v = match offset {
                    EXT_ONLY => self.ext_i64(spec.field)?,
                    offset => i64::from_le_bytes(self.get(offset.into())),
                };
                (v != i64::MIN).then_some(EventValue::Nanos(UnixNanos(v)))
            }
            FieldLayout::Date { offset } => {
                let code =
                    if offset == EXT_ONLY { u32::MAX } else { u32::from_le_bytes(self.get(offset.into())) };
                let days = match code {
                    0 => return None,
                    u32::MAX => ext_i32(ext()?)?,
                    code => i32::try_from(code - 1).ok()?,
                };
                CivilDate::from_days_checked(days).map(EventValue::Date)
            }
            FieldLayout::DateAfter { offset } => {
                let days = match self.bytes[usize::from(offset)] {
                    0 => return None,
                    255 => ext_i32(ext()?)?,
                    code => CivilDate::from_utc(self.ts_event()).days() + i32::from(code) - 1,
                };
                CivilDate::from_days_checked(days).map(EventValue::Date)
            }
            FieldLayout::Tape { offset } => {
                let id = u128::from_le_bytes(self.get(offset.into()));
                (id != 0).then_some(EventValue::Tape(id))
            }
            FieldLayout::TapePosition { offset } => {
                let bytes: [u8; TapePosition::BYTES] = match offset {
                    EXT_ONLY => ext()?.try_into().ok()?,
                    offset => self.get(offset.into()),
                };
                (bytes != [0; TapePosition::BYTES])
                    .then(|| EventValue::TapePosition(TapePosition::from_bytes(&bytes)))
            }
            FieldLayout::TapePositions => ext().map(EventValue::TapePositions),
            FieldLayout::MillisAfter { offset } => match u16::from_le_bytes(self.get(offset.into())) {
                65535 => None,
                65534 => self.ext_i64(spec.field).map(|v| EventValue::Nanos(UnixNanos(v))),
                ms => Some(EventValue::Nanos(UnixNanos(
                    self.ts_event().0.wrapping_add(i64::from(ms) * 1_000_000),
                ))),
            },
            FieldLayout::Json => ext().and_then(|b| std::str::from_utf8(b).ok()).map(EventValue::Json),
        }
    }

    /// Iterates over the unmapped fields, as name and JSON text, in recorded order.
    pub fn unmapped_fields(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.ext_entries().filter(|(tag, _)| *tag == TAG_UNMAPPED).filter_map(|(_, b)| {
            let n = usize::from(u16::from_le_bytes(b.get(..2)?.try_into().ok()?));
            let (name, json) = (b.get(2..2 + n)?, &b[2 + n..]);
            Some((std::str::from_utf8(name).ok()?, std::str::from_utf8(json).ok()?))
        })
    }

    /// Returns whether the event's message may be on the tape twice: the field `repeat` has the value `Y`.
    #[inline]
    pub fn is_repeat(&self) -> bool {
        self.has_extension && self.has_repeat_field()
    }

    /// Returns whether the event is a `bbo` that states only the fields that it has; the others are unchanged.
    #[inline]
    pub fn is_partial(&self) -> bool {
        self.has_extension && self.has_partial_field()
    }

    /// Returns the quantity by which an `order_amend` reduces the remaining quantity of its order. Returns `None` if
    /// the event has `qty` or `left`, which then take precedence.
    #[inline]
    pub fn qty_reduced(&self) -> Option<Decimal> {
        if self.has_extension && self.kind() == EventKind::OrderAmend {
            self.qty_reduced_field()
        } else {
            None
        }
    }

    #[cold]
    fn qty_reduced_field(&self) -> Option<Decimal> {
        let reduced = ext_decimal(self.extension_value(EventField::QtyReduced as u16)?)?;
        let is_stated = |field| self.field(field, &mut [0; 36]).is_some();
        (!is_stated(EventField::Qty) && !is_stated(EventField::Left)).then_some(reduced)
    }

    /// Returns the text of a field that is always in the extension, such as `cond` of a `bbo`. Returns `None` if the field
    /// is absent.
    #[inline]
    pub fn extension_text(&self, field: EventField) -> Option<&'a str> {
        std::str::from_utf8(self.extension_value(field as u16)?).ok()
    }

    /// Returns whether the frame has an extension. Without one, every field that is always in the extension is absent.
    #[inline]
    pub fn has_extension(&self) -> bool {
        self.has_extension
    }

    fn has_partial_field(&self) -> bool {
        self.extension_value(EventField::Partial as u16) == Some(&[2])
    }

    fn has_repeat_field(&self) -> bool {
        self.ext_entries().any(|(tag, payload)| tag == TAG_UNMAPPED && payload == b"\x06\0repeat\"Y\"")
    }

    /// Returns the end of the extension's entries, in bytes from the start of the frame. Without an extension it is the
    /// end of the fixed part.
    pub fn extension_end(&self) -> usize {
        self.ext_entries()
            .fold(self.fixed_length(), |offset, (_, payload)| offset + ENTRY_HEAD + payload.len())
    }

    /// Iterates over the entries of the extension, as tag and payload, in frame order. The first entry with a field's
    /// number is the field's value.
    #[inline]
    pub fn extension_entries(&self) -> impl Iterator<Item = (u16, &'a [u8])> + use<'a> {
        self.ext_entries()
    }

    fn ext_entries(&self) -> impl Iterator<Item = (u16, &'a [u8])> + use<'a> {
        let (bytes, mut offset) =
            (self.bytes, if self.has_extension { self.fixed_length() } else { self.bytes.len() });
        std::iter::from_fn(move || {
            let (tag, payload) = extension_entry(bytes, offset)?;
            offset = payload.end;
            Some((tag, &bytes[payload]))
        })
    }

    #[inline]
    fn fixed_length(&self) -> usize {
        usize::from(self.schema.fixed_bytes)
    }

    fn extension_value(&self, tag: u16) -> Option<&'a [u8]> {
        self.ext_entries().find(|(t, _)| *t == tag).map(|(_, b)| b)
    }

    fn ext_i64(&self, field: EventField) -> Option<i64> {
        Some(i64::from_le_bytes(self.extension_value(field as u16)?.try_into().ok()?))
    }

    #[inline]
    fn get<const N: usize>(&self, offset: usize) -> [u8; N] {
        self.bytes[offset..offset + N].try_into().expect("inside the fixed part")
    }
}

/// Bytes before the payload of an extension entry: tag and length.
pub(crate) const ENTRY_HEAD: usize = 6;

/// Reads the extension entry at `offset` of a frame: its tag, and the range of its payload. Returns `None` after the
/// last entry, or if the entry is longer than the frame.
#[inline]
pub fn extension_entry(frame: &[u8], offset: usize) -> Option<(u16, Range<usize>)> {
    let head = frame.get(offset..)?.get(..ENTRY_HEAD)?;
    let tag = u16::from_le_bytes([head[0], head[1]]);
    let length = u32::from_le_bytes([head[2], head[3], head[4], head[5]]) as usize;
    let payload_start = offset + ENTRY_HEAD;
    let payload_end = payload_start.checked_add(length).filter(|end| *end <= frame.len())?;
    (tag != 0).then_some((tag, payload_start..payload_end))
}

/// Decodes a decimal of the extension.
fn ext_decimal(b: &[u8]) -> Option<Decimal> {
    let b: &[u8; 9] = b.try_into().ok()?;
    let mantissa = i64::from_le_bytes(b[..8].try_into().expect("eight bytes"));
    Some(Decimal::from_canonical(mantissa, b[8] as i8))
}

fn ext_u8(b: &[u8]) -> Option<u8> {
    if let [byte] = b { Some(*byte) } else { None }
}

fn ext_i32(b: &[u8]) -> Option<i32> {
    Some(i32::from_le_bytes(b.try_into().ok()?))
}

fn ext_id(b: &[u8]) -> InlineId<'_> {
    match b {
        [0xff, n @ ..] if n.len() == 8 => InlineId::Number(u64::from_le_bytes(n.try_into().expect("eight"))),
        _ => InlineId::Text(b),
    }
}

fn trim_zeros(b: &[u8]) -> &[u8] {
    &b[..b.iter().position(|&c| c == 0).unwrap_or(b.len())]
}
