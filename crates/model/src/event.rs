//! Building and reading events by field, exactly, through [`Schema`].
//!
//! [`EventBuilder`] writes one event at the end of a worker's arena; [`Event`] reads one where it lies.

use crate::dict::Resolve;
use crate::frame::{Header, LINE, flags};
use crate::id::{Dict, InlineId, pack_id, unpack_id};
use crate::kind::{Field, Kind};
use crate::num::{Amount, Decimal, NumError, Price, UnixNanos};
use crate::schema::{
    EXP_EXT, EXP_NONE, EXT_ONLY, RECV_EXT, RECV_NONE, SEQ_EXT, SEQ_NONE, Schema, Slot, Spec, TAG_UNMAPPED, at,
};
use std::sync::OnceLock;

/// Why a value or an event was refused; the code goes into quarantine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Not a number.
    #[error("not a decimal number")]
    BadDecimal,
    /// A number the field cannot hold exactly.
    #[error("decimal does not fit the field exactly")]
    DecimalFit,
    /// Not an unsigned integer, or one beyond 64 bits.
    #[error("not an unsigned integer of 64 bits")]
    BadInteger,
    /// Not one of the values the field may have.
    #[error("not one of the values of the field")]
    BadValue,
    /// Text that is not UTF-8.
    #[error("text is not UTF-8")]
    NotUtf8,
    /// A name that is empty or longer than 255 bytes.
    #[error("a name of 1 to 255 bytes is needed")]
    NameLength,
    /// A time that cannot be read or is out of range.
    #[error("not a time")]
    BadTime,
    /// A value of the wrong sort for the field (a list for a number, say).
    #[error("wrong sort of value for the field")]
    WrongSort,
    /// A field without which the event means nothing.
    #[error("field missing")]
    Missing,
    /// The event would pass 4 MiB.
    #[error("event longer than 4 MiB")]
    TooLarge,
    /// No more ids in this dictionary.
    #[error("dictionary full")]
    DictionaryFull,
}

impl Refusal {
    /// The word that quarantine events carry.
    pub const fn code(self) -> &'static str {
        match self {
            Self::BadDecimal => "bad_decimal",
            Self::DecimalFit => "decimal_fit",
            Self::BadInteger => "bad_integer",
            Self::BadValue => "bad_value",
            Self::NotUtf8 => "not_utf8",
            Self::NameLength => "name_length",
            Self::BadTime => "bad_time",
            Self::WrongSort => "wrong_sort",
            Self::Missing => "missing",
            Self::TooLarge => "too_large",
            Self::DictionaryFull => "dict_full",
        }
    }
}

impl From<NumError> for Refusal {
    fn from(e: NumError) -> Self {
        match e {
            NumError::Malformed => Self::BadDecimal,
            NumError::DoesNotFit => Self::DecimalFit,
        }
    }
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Value<'a> {
    Sym(Dict, u32),
    /// Little-endian u32 ids.
    Syms(Dict, &'a [u8]),
    Price(Price),
    Decimal(Decimal),
    Amount(Amount),
    Id(InlineId<'a>),
    Text(&'a str),
    Bool(bool),
    UInt(u64),
    Nanos(UnixNanos),
    /// A JSON value as text.
    Json(&'a str),
}

/// Writes one event at the end of an arena.
pub struct EventBuilder<'a> {
    buf: &'a mut Vec<u8>,
    start: usize,
    schema: &'static Schema,
    ext: bool,
}

impl<'a> EventBuilder<'a> {
    /// Begins an event of `kind` at the end of `buf`, all its fields none.
    #[inline]
    pub fn begin(buf: &'a mut Vec<u8>, kind: Kind, ts_event: UnixNanos) -> Self {
        let schema = Schema::of(kind);
        let start = buf.len();
        buf.extend_from_slice(template(kind));
        let mut this = Self { buf, start, schema, ext: false };
        this.put(at::TS_EVENT, ts_event.0.to_le_bytes());
        this
    }

    /// The layout of the event being built.
    pub fn schema(&self) -> &'static Schema {
        self.schema
    }

    /// Names where the event came from: the id of a source definition and the offset behind its base.
    #[inline]
    pub fn source(&mut self, source: u32, offset: u32) {
        self.put(at::SOURCE, source.to_le_bytes());
        self.put(at::OFFSET, offset.to_le_bytes());
    }

    /// When the message was received, by the clock of the capture or the kernel.
    #[inline]
    pub fn ts_recv(&mut self, ts: UnixNanos) {
        let event = i64::from_le_bytes(self.get(at::TS_EVENT));
        let delta = ts.0.checked_sub(event).and_then(|d| i32::try_from(d).ok());
        match delta.filter(|d| !matches!(*d, RECV_NONE | RECV_EXT)) {
            Some(d) => self.put(at::RECV_DELTA, d.to_le_bytes()),
            None => {
                self.put(at::RECV_DELTA, RECV_EXT.to_le_bytes());
                self.extend(Field::TsRecv as u16, &ts.0.to_le_bytes());
            }
        }
    }

    /// The feed's own sequence number.
    #[inline]
    pub fn sequence(&mut self, sequence: u64) {
        if sequence < u64::from(SEQ_EXT) {
            self.put(at::SEQUENCE, (sequence as u32).to_le_bytes());
        } else {
            self.put(at::SEQUENCE, SEQ_EXT.to_le_bytes());
            self.extend(Field::SrcSeq as u16, &sequence.to_le_bytes());
        }
    }

    /// Sets a field. The sort of `value` must be that of the slot.
    pub fn set(&mut self, spec: &Spec, value: Value<'_>) -> Result<(), Refusal> {
        let tag = spec.field as u16;
        match (spec.slot, value) {
            (Slot::Sym { dict, at }, Value::Sym(d, id)) if d == dict => self.put_sym(dict, at, id),
            (Slot::Syms { dict }, Value::Syms(d, ids)) if d == dict => self.extend(tag, ids),
            (Slot::Price { at }, Value::Price(p)) => self.put_price(at, tag, p),
            (Slot::Decimal { at, exp_at }, Value::Decimal(d)) => {
                self.put(at.into(), d.mantissa().to_le_bytes());
                self.put(exp_at.into(), d.exponent().to_le_bytes());
            }
            (Slot::DecimalNarrow { at, exp_at }, Value::Decimal(d)) => self.put_narrow(at, exp_at, tag, d),
            (Slot::Amount { at, exp_at }, Value::Amount(a)) => {
                self.put(at.into(), a.mantissa().to_le_bytes());
                self.put(exp_at.into(), a.exponent().to_le_bytes());
            }
            (Slot::Id { at, n }, Value::Id(id)) => self.put_id(at, n, tag, id),
            (Slot::Text { at, n }, Value::Text(t)) => self.put_text(at, n, tag, t),
            (Slot::Code { at, shift, values, .. }, Value::Text(t)) => {
                let code = values.iter().position(|v| *v == t).ok_or(Refusal::BadValue)? as u8 + 1;
                self.buf[self.start + usize::from(at)] |= code << shift;
            }
            (Slot::Bool { at, shift }, Value::Bool(b)) => {
                self.buf[self.start + usize::from(at)] |= (u8::from(b) + 1) << shift;
            }
            (Slot::UInt { at, width }, Value::UInt(v)) => self.put_uint(at, width, tag, v),
            (Slot::Nanos { at }, Value::Nanos(t)) if t.0 != i64::MIN => {
                self.put(at.into(), t.0.to_le_bytes())
            }
            (Slot::MillisAfter { at }, Value::Nanos(t)) => self.put_millis(at, tag, t),
            (Slot::Json, Value::Json(j)) => self.extend(tag, j.as_bytes()),
            _ => return Err(Refusal::WrongSort),
        }
        Ok(())
    }

    /// Sets a field from its text on the wire, parsed as its slot wants.
    #[inline]
    pub fn set_text(&mut self, spec: &Spec, text: &[u8], names: &mut impl Resolve) -> Result<(), Refusal> {
        match spec.slot {
            Slot::Sym { dict, at } => {
                let id = names.resolve(dict, text, self.start + usize::from(at))?;
                self.put_sym(dict, at, id);
                Ok(())
            }
            Slot::Price { at } => {
                self.put_price(at, spec.field as u16, Price::parse(text)?);
                Ok(())
            }
            Slot::Decimal { .. } | Slot::DecimalNarrow { .. } => {
                self.set(spec, Value::Decimal(Decimal::parse(text)?))
            }
            Slot::Amount { .. } => self.set(spec, Value::Amount(Amount::parse(text)?)),
            Slot::Id { at, n } => {
                check_utf8(text)?;
                self.put_id(at, n, spec.field as u16, InlineId::Text(text));
                Ok(())
            }
            Slot::Text { .. } | Slot::Code { .. } => self.set(spec, Value::Text(check_utf8(text)?)),
            Slot::Bool { .. } => match text {
                b"Y" | b"true" | b"1" => self.set(spec, Value::Bool(true)),
                b"N" | b"false" | b"0" => self.set(spec, Value::Bool(false)),
                _ => Err(Refusal::BadValue),
            },
            Slot::UInt { .. } => {
                let n = check_utf8(text)?.parse().map_err(|_| Refusal::BadInteger)?;
                self.set(spec, Value::UInt(n))
            }
            Slot::Syms { .. } | Slot::Nanos { .. } | Slot::MillisAfter { .. } | Slot::Json => {
                Err(Refusal::WrongSort)
            }
        }
    }

    /// Sets a list of names.
    pub fn set_names<'n>(
        &mut self,
        spec: &Spec,
        list: impl Iterator<Item = &'n [u8]>,
        names: &mut impl Resolve,
    ) -> Result<(), Refusal> {
        let Slot::Syms { dict } = spec.slot else { return Err(Refusal::WrongSort) };
        self.ext = true;
        let entry = self.buf.len();
        self.buf.extend_from_slice(&(spec.field as u16).to_le_bytes());
        self.buf.extend_from_slice(&[0; 4]);
        for name in list {
            let id = names.resolve(dict, name, self.buf.len())?;
            self.buf.extend_from_slice(&id.to_le_bytes());
        }
        let n = (self.buf.len() - entry - ENTRY_HEAD) as u32;
        self.buf[entry + 2..entry + ENTRY_HEAD].copy_from_slice(&n.to_le_bytes());
        Ok(())
    }

    /// Keeps a field that has no place of its own, under its name, with its value as JSON text.
    pub fn unmapped(&mut self, name: &str, json: &str) -> Result<(), Refusal> {
        let n = u16::try_from(name.len()).map_err(|_| Refusal::NameLength)?;
        self.ext = true;
        let total = (2 + name.len() + json.len()) as u32;
        self.buf.extend_from_slice(&TAG_UNMAPPED.to_le_bytes());
        self.buf.extend_from_slice(&total.to_le_bytes());
        self.buf.extend_from_slice(&n.to_le_bytes());
        self.buf.extend_from_slice(name.as_bytes());
        self.buf.extend_from_slice(json.as_bytes());
        Ok(())
    }

    /// Ends the event: pads it to whole lines and writes its header, unstamped. Refused events leave the
    /// arena as it was before [`EventBuilder::begin`].
    #[inline]
    pub fn finish(self, frame_flags: u8) -> Result<usize, Refusal> {
        let len = (self.buf.len() - self.start).next_multiple_of(LINE);
        let Ok(lines) = u16::try_from(len / LINE) else {
            self.buf.truncate(self.start);
            return Err(Refusal::TooLarge);
        };
        if self.ext {
            self.buf.resize(self.start + len, 0);
        }
        let bits = frame_flags | if self.ext { flags::EXT } else { 0 };
        let bits = bits | if self.schema.kind.is_meta() { flags::META } else { 0 };
        Header::unstamped(self.schema.kind as u8, bits, lines).write(&mut self.buf[self.start..]);
        Ok(self.start)
    }

    /// The first field without which the event means nothing, if one is missing.
    pub fn missing(&self) -> Option<&'static Spec> {
        let event =
            Event { bytes: &self.buf[self.start..], fixed: self.schema.fixed_bytes.into(), ext: self.ext };
        self.schema.fields.iter().find(|s| s.required && event.value(s, &mut [0; 36]).is_none())
    }

    /// Gives the event up and leaves the arena as before.
    pub fn abandon(self) {
        self.buf.truncate(self.start);
    }

    #[inline]
    fn put<const N: usize>(&mut self, at: usize, bytes: [u8; N]) {
        self.buf[self.start + at..self.start + at + N].copy_from_slice(&bytes);
    }

    #[inline]
    fn get<const N: usize>(&self, at: usize) -> [u8; N] {
        self.buf[self.start + at..self.start + at + N].try_into().expect("N bytes")
    }

    #[inline]
    fn put_sym(&mut self, dict: Dict, at: u16, id: u32) {
        if dict == Dict::Venue {
            // A provisional id of the 32-bit sort keeps its mark in the top bit of 16.
            let id = id as u16 | if id >> 31 != 0 { crate::id::VENUE_PROVISIONAL } else { 0 };
            self.put(at.into(), id.to_le_bytes());
        } else {
            self.put(at.into(), id.to_le_bytes());
        }
    }

    #[inline]
    fn put_price(&mut self, at: u16, tag: u16, p: Price) {
        if at == EXT_ONLY {
            self.extend(tag, &p.0.to_le_bytes());
        } else {
            self.put(at.into(), p.0.to_le_bytes());
        }
    }

    fn put_narrow(&mut self, at: u16, exp_at: u16, tag: u16, d: Decimal) {
        if let Ok(m) = u32::try_from(d.mantissa()) {
            self.put(at.into(), m.to_le_bytes());
            self.put(exp_at.into(), d.exponent().to_le_bytes());
        } else {
            self.put(exp_at.into(), EXP_EXT.to_le_bytes());
            let mut payload = [0; 9];
            payload[..8].copy_from_slice(&d.mantissa().to_le_bytes());
            payload[8] = d.exponent() as u8;
            self.extend(tag, &payload);
        }
    }

    fn put_id(&mut self, at: u16, n: u16, tag: u16, id: InlineId<'_>) {
        let slot = self.start + usize::from(at);
        if at != EXT_ONLY && pack_id(id, &mut self.buf[slot..slot + usize::from(n)]) {
            return;
        }
        match id {
            InlineId::Text(t) => self.extend(tag, t),
            // A number is told from text by its length of nine and its first byte, which no UTF-8 text has.
            InlineId::Number(v) => {
                let mut payload = [0xff; 9];
                payload[1..].copy_from_slice(&v.to_le_bytes());
                self.extend(tag, &payload);
            }
        }
    }

    fn put_text(&mut self, at: u16, n: u16, tag: u16, t: &str) {
        let n = usize::from(n);
        if t.is_empty() || t.len() > n || t.as_bytes().contains(&0) {
            return self.extend(tag, t.as_bytes());
        }
        let slot = self.start + usize::from(at);
        self.buf[slot..slot + t.len()].copy_from_slice(t.as_bytes());
    }

    fn put_uint(&mut self, at: u16, width: u8, tag: u16, v: u64) {
        let (at, width) = (self.start + usize::from(at), usize::from(width));
        let none = u64::MAX >> (64 - 8 * width);
        let inline = if v < none - 1 { v } else { none - 1 };
        self.buf[at..at + width].copy_from_slice(&inline.to_le_bytes()[..width]);
        if v >= none - 1 {
            self.extend(tag, &v.to_le_bytes());
        }
    }

    fn put_millis(&mut self, at: u16, tag: u16, t: UnixNanos) {
        let event = i64::from_le_bytes(self.get(at::TS_EVENT));
        let delta = t.0.checked_sub(event).filter(|d| d % 1_000_000 == 0).map(|d| d / 1_000_000);
        match delta.and_then(|d| u16::try_from(d).ok()).filter(|d| *d < 65534) {
            Some(d) => self.put(at.into(), d.to_le_bytes()),
            None => {
                self.put(at.into(), 65534u16.to_le_bytes());
                self.extend(tag, &t.0.to_le_bytes());
            }
        }
    }

    fn extend(&mut self, tag: u16, payload: &[u8]) {
        self.ext = true;
        self.buf.extend_from_slice(&tag.to_le_bytes());
        self.buf.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        self.buf.extend_from_slice(payload);
    }
}

/// An event where it lies: in an arena or on a mapped tape.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    bytes: &'a [u8],
    fixed: usize,
    ext: bool,
}

impl<'a> Event<'a> {
    /// Reads the frame `bytes`; `None` for a pad, an unknown kind or a frame shorter than its kind.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let header = Header::read(bytes.get(..8)?);
        let schema = Schema::of(Kind::from_u8(header.kind())?);
        let fixed = usize::from(schema.fixed_bytes);
        let bytes = bytes.get(..header.len_bytes())?;
        (bytes.len() >= fixed).then_some(Self { bytes, fixed, ext: header.flags() & flags::EXT != 0 })
    }

    /// The whole frame.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The header word.
    #[inline]
    pub fn header(&self) -> Header {
        Header::read(self.bytes)
    }

    /// The kind.
    #[inline]
    pub fn kind(&self) -> Kind {
        Kind::from_u8(self.header().kind()).expect("checked when made")
    }

    /// The layout of the kind.
    pub fn schema(&self) -> &'static Schema {
        Schema::of(self.kind())
    }

    /// Event time.
    #[inline]
    pub fn ts_event(&self) -> UnixNanos {
        UnixNanos(i64::from_le_bytes(self.get(at::TS_EVENT)))
    }

    /// Receive time, if one was recorded.
    pub fn ts_recv(&self) -> Option<UnixNanos> {
        match i32::from_le_bytes(self.get(at::RECV_DELTA)) {
            RECV_NONE => None,
            RECV_EXT => self.ext_i64(Field::TsRecv).map(UnixNanos),
            d => Some(UnixNanos(self.ts_event().0.wrapping_add(i64::from(d)))),
        }
    }

    /// Id of the source definition; 0 none.
    #[inline]
    pub fn source(&self) -> u32 {
        u32::from_le_bytes(self.get(at::SOURCE))
    }

    /// Offset of the source message behind the base of its source definition, bytes.
    #[inline]
    pub fn offset(&self) -> u32 {
        u32::from_le_bytes(self.get(at::OFFSET))
    }

    /// The feed's own sequence number.
    pub fn sequence(&self) -> Option<u64> {
        match u32::from_le_bytes(self.get(at::SEQUENCE)) {
            SEQ_NONE => None,
            SEQ_EXT => self.ext_i64(Field::SrcSeq).map(|v| v as u64),
            v => Some(v.into()),
        }
    }

    /// Id of the instrument; 0 none.
    #[inline]
    pub fn instrument(&self) -> u32 {
        u32::from_le_bytes(self.get(at::INSTRUMENT))
    }

    /// Id of the venue; 0 none.
    #[inline]
    pub fn venue(&self) -> u16 {
        u16::from_le_bytes(self.get(at::VENUE))
    }

    /// A field by its name; `None` when the kind has none such or it is not there. `scratch` takes the text
    /// of an id that is kept in a shorter form.
    pub fn field<'s>(&'s self, field: Field, scratch: &'s mut [u8; 36]) -> Option<Value<'s>> {
        self.value(self.schema().get(field)?, scratch)
    }

    /// The field of `spec`, which must be one of this kind's.
    pub fn value<'s>(&'s self, spec: &Spec, scratch: &'s mut [u8; 36]) -> Option<Value<'s>> {
        let ext = || self.ext(spec.field as u16);
        match spec.slot {
            Slot::Sym { dict: Dict::Venue, at } => {
                let id = u16::from_le_bytes(self.get(at.into()));
                (id != 0).then_some(Value::Sym(Dict::Venue, id.into()))
            }
            Slot::Sym { dict, at } => {
                let id = u32::from_le_bytes(self.get(at.into()));
                (id != 0).then_some(Value::Sym(dict, id))
            }
            Slot::Syms { dict } => ext().map(|b| Value::Syms(dict, b)),
            Slot::Price { at: EXT_ONLY } => {
                self.ext_i64(spec.field).and_then(|v| Price(v).some()).map(Value::Price)
            }
            Slot::Price { at } => Price(i64::from_le_bytes(self.get(at.into()))).some().map(Value::Price),
            Slot::Decimal { at, exp_at } => {
                let exponent = i8::from_le_bytes(self.get(exp_at.into()));
                let mantissa = i64::from_le_bytes(self.get(at.into()));
                (exponent != EXP_NONE).then(|| Value::Decimal(Decimal::from_canonical(mantissa, exponent)))
            }
            Slot::DecimalNarrow { at, exp_at } => match i8::from_le_bytes(self.get(exp_at.into())) {
                EXP_NONE => None,
                EXP_EXT => {
                    let b: &[u8; 9] = ext()?.try_into().ok()?;
                    let mantissa = i64::from_le_bytes(b[..8].try_into().expect("eight bytes"));
                    Some(Value::Decimal(Decimal::from_canonical(mantissa, b[8] as i8)))
                }
                e => {
                    let mantissa = u32::from_le_bytes(self.get(at.into()));
                    Some(Value::Decimal(Decimal::from_canonical(mantissa.into(), e)))
                }
            },
            Slot::Amount { at, exp_at } => {
                let exponent = i8::from_le_bytes(self.get(exp_at.into()));
                let mantissa = i128::from_le_bytes(self.get(at.into()));
                (exponent != EXP_NONE).then(|| Value::Amount(Amount::from_canonical(mantissa, exponent)))
            }
            Slot::Id { at, n } => {
                let slot = &self.bytes[usize::from(at)..usize::from(at + n)];
                let inline = if at == EXT_ONLY { None } else { unpack_id(slot, scratch) };
                inline.or_else(|| ext().map(ext_id)).map(Value::Id)
            }
            Slot::Text { at, n } => {
                let slot = &self.bytes[usize::from(at)..usize::from(at + n)];
                let inline = if n == 0 || slot[0] == 0 { None } else { Some(trim_zeros(slot)) };
                let text = inline.or_else(ext)?;
                std::str::from_utf8(text).ok().map(Value::Text)
            }
            Slot::Code { at, shift, bits, values } => {
                let code = self.bytes[usize::from(at)] >> shift & ((1 << bits) - 1);
                values.get(usize::from(code).wrapping_sub(1)).map(|v| Value::Text(v))
            }
            Slot::Bool { at, shift } => match self.bytes[usize::from(at)] >> shift & 3 {
                1 => Some(Value::Bool(false)),
                2 => Some(Value::Bool(true)),
                _ => None,
            },
            Slot::UInt { at, width } => {
                let (at, width) = (usize::from(at), usize::from(width));
                let mut b = [0; 8];
                b[..width].copy_from_slice(&self.bytes[at..at + width]);
                let (v, none) = (u64::from_le_bytes(b), u64::MAX >> (64 - 8 * width));
                match none - v {
                    0 => None,
                    1 => self.ext_i64(spec.field).map(|v| Value::UInt(v as u64)),
                    _ => Some(Value::UInt(v)),
                }
            }
            Slot::Nanos { at } => {
                let v = i64::from_le_bytes(self.get(at.into()));
                (v != i64::MIN).then_some(Value::Nanos(UnixNanos(v)))
            }
            Slot::MillisAfter { at } => match u16::from_le_bytes(self.get(at.into())) {
                65535 => None,
                65534 => self.ext_i64(spec.field).map(|v| Value::Nanos(UnixNanos(v))),
                ms => {
                    Some(Value::Nanos(UnixNanos(self.ts_event().0.wrapping_add(i64::from(ms) * 1_000_000))))
                }
            },
            Slot::Json => ext().and_then(|b| std::str::from_utf8(b).ok()).map(Value::Json),
        }
    }

    /// Unmapped fields: name and JSON text, in the order they were kept.
    pub fn unmapped(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.ext_entries().filter(|(tag, _)| *tag == TAG_UNMAPPED).filter_map(|(_, b)| {
            let n = usize::from(u16::from_le_bytes(b.get(..2)?.try_into().ok()?));
            let (name, json) = (b.get(2..2 + n)?, &b[2 + n..]);
            Some((std::str::from_utf8(name).ok()?, std::str::from_utf8(json).ok()?))
        })
    }

    fn ext_entries(&self) -> impl Iterator<Item = (u16, &'a [u8])> + use<'a> {
        let mut rest = if self.ext { &self.bytes[self.fixed..] } else { &[] };
        std::iter::from_fn(move || {
            let head = rest.get(..ENTRY_HEAD)?;
            let tag = u16::from_le_bytes([head[0], head[1]]);
            let n = u32::from_le_bytes([head[2], head[3], head[4], head[5]]) as usize;
            let payload = rest.get(ENTRY_HEAD..ENTRY_HEAD.checked_add(n)?)?;
            rest = &rest[ENTRY_HEAD + n..];
            (tag != 0).then_some((tag, payload))
        })
    }

    fn ext(&self, tag: u16) -> Option<&'a [u8]> {
        self.ext_entries().find(|(t, _)| *t == tag).map(|(_, b)| b)
    }

    fn ext_i64(&self, field: Field) -> Option<i64> {
        Some(i64::from_le_bytes(self.ext(field as u16)?.try_into().ok()?))
    }

    #[inline]
    fn get<const N: usize>(&self, at: usize) -> [u8; N] {
        self.bytes[at..at + N].try_into().expect("inside the fixed part")
    }
}

const ENTRY_HEAD: usize = 6;

fn ext_id(b: &[u8]) -> InlineId<'_> {
    match b {
        [0xff, n @ ..] if n.len() == 8 => InlineId::Number(u64::from_le_bytes(n.try_into().expect("eight"))),
        _ => InlineId::Text(b),
    }
}

fn trim_zeros(b: &[u8]) -> &[u8] {
    &b[..b.iter().position(|&c| c == 0).unwrap_or(b.len())]
}

#[inline]
fn check_utf8(text: &[u8]) -> Result<&str, Refusal> {
    std::str::from_utf8(text).map_err(|_| Refusal::NotUtf8)
}

/// The fixed part of a kind with every field none.
fn template(kind: Kind) -> &'static [u8] {
    static TEMPLATES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    let all = TEMPLATES.get_or_init(|| {
        (0..=Kind::Clock as u8).map(|n| Kind::from_u8(n).map_or(Vec::new(), make_template)).collect()
    });
    &all[kind as usize]
}

fn make_template(kind: Kind) -> Vec<u8> {
    let schema = Schema::of(kind);
    let mut t = vec![0u8; usize::from(schema.fixed_bytes)];
    t[at::RECV_DELTA..][..4].copy_from_slice(&RECV_NONE.to_le_bytes());
    t[at::SEQUENCE..][..4].copy_from_slice(&SEQ_NONE.to_le_bytes());
    for spec in schema.fields {
        match spec.slot {
            Slot::Price { at } if at != EXT_ONLY => {
                t[usize::from(at)..][..8].copy_from_slice(&i64::MAX.to_le_bytes());
            }
            Slot::Decimal { exp_at, .. }
            | Slot::DecimalNarrow { exp_at, .. }
            | Slot::Amount { exp_at, .. } => {
                t[usize::from(exp_at)] = EXP_NONE as u8;
            }
            Slot::UInt { at, width } => t[usize::from(at)..usize::from(at) + usize::from(width)].fill(0xff),
            Slot::Nanos { at } => t[usize::from(at)..][..8].copy_from_slice(&i64::MIN.to_le_bytes()),
            Slot::MillisAfter { at } => t[usize::from(at)..][..2].fill(0xff),
            _ => {}
        }
    }
    t
}
