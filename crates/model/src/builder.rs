//! Building events by field, exactly, through [`EventSchema`].

use crate::calendar::CivilDate;
use crate::dict::{NameResolver, check_name};
use crate::event::EventValue;
use crate::event::{ENTRY_HEAD, Event};
use crate::frame::{FrameHeader, LINE, flags};
use crate::id::{InlineId, NameKind, pack_id, pack_plain};
use crate::kind::{EventField, EventKind};
use crate::num::{Amount, Decimal, Price, UnixNanos};
use crate::refusal::Refusal;
use crate::schema::{
    EXP_EXT, EXP_NONE, EXT_ONLY, EventFieldSpec, EventSchema, FLAG_SET_EXT, FLAG_SETS, FieldLayout,
    PUBLISHER_IS_BANK, RECV_EXT, RECV_NONE, SCHEMAS, SEQ_EXT, SEQ_NONE, TAG_UNMAPPED, at,
};
use crate::tape_position::TapePosition;
use crate::words;

/// A value that will be set repeatedly, for example the value of a wire code. It is written to its field as a single
/// word, over zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreparedValue {
    offset: u16,
    value_word: u64,
}

impl PreparedValue {
    /// Computes the value that [`EventBuilder::set_text`] would write to this field for `text`. Returns `None` unless
    /// the field holds a code, a flag or a text of at most eight bytes.
    pub fn new(kind: EventKind, spec: &EventFieldSpec, text: &[u8]) -> Option<Self> {
        let (offset, word) = match spec.slot {
            FieldLayout::Code { offset, shift, values, .. } => {
                let i = values.iter().position(|v| v.as_bytes() == text)?;
                (offset, (i as u64 + 1) << shift)
            }
            FieldLayout::Bool { offset, shift } if offset != EXT_ONLY => match text {
                b"Y" | b"true" | b"1" => (offset, 2 << shift),
                b"N" | b"false" | b"0" => (offset, 1 << shift),
                _ => return None,
            },
            FieldLayout::Text { offset, n } if offset != EXT_ONLY => {
                let fits = !text.is_empty() && text.len() <= usize::from(n.min(8));
                let clean = !text.contains(&0) && std::str::from_utf8(text).is_ok();
                (offset, Some(words::word(text)).filter(|_| fits && clean)?)
            }
            _ => return None,
        };
        (offset + 8 <= EventSchema::for_kind(kind).fixed_bytes).then_some(Self { offset, value_word: word })
    }
}

/// Writes one event at the end of an arena.
pub struct EventBuilder<'a> {
    buf: &'a mut Vec<u8>,
    event_start: usize,
    schema: &'static EventSchema,
    has_extension: bool,
}

impl<'a> EventBuilder<'a> {
    /// Begins an event of `kind` at the end of `buf`, with all its fields absent.
    #[inline]
    pub fn begin(buf: &'a mut Vec<u8>, kind: EventKind, ts_event: UnixNanos) -> Self {
        Self::begin_with(buf, EventSchema::for_kind(kind), &TEMPLATES[kind as usize], ts_event)
    }

    /// Begins an event of this layout, which may be an earlier one of its kind.
    #[inline]
    pub fn begin_layout(buf: &'a mut Vec<u8>, schema: &'static EventSchema, ts_event: UnixNanos) -> Self {
        if schema.layout == EventSchema::for_kind(schema.kind).layout {
            return Self::begin(buf, schema.kind, ts_event);
        }
        Self::begin_with(buf, schema, &make_template(schema), ts_event)
    }

    #[inline]
    fn begin_with(
        buf: &'a mut Vec<u8>,
        schema: &'static EventSchema,
        template: &[u8; FIXED_BYTES_MAX],
        ts_event: UnixNanos,
    ) -> Self {
        let frame_start = buf.len();
        // Each slice has a known length, so that it is copied without a call.
        match schema.fixed_bytes {
            64 => buf.extend_from_slice(&template[..64]),
            128 => buf.extend_from_slice(&template[..128]),
            _ => buf.extend_from_slice(template),
        }
        let mut this = Self { buf, event_start: frame_start, schema, has_extension: false };
        this.write_bytes(at::TS_EVENT, ts_event.0.to_le_bytes());
        this
    }

    /// Appends the definition of a name, which a tape has before the first event with its id.
    ///
    /// # Errors
    /// Fails if no dictionary accepts the name; `out` is then unchanged.
    pub fn define(out: &'a mut Vec<u8>, dict: NameKind, id: u32, name: &str) -> Result<(), Refusal> {
        check_name(name.as_bytes())?;
        let mut this = Self::begin(out, EventKind::Define, UnixNanos(0));
        this.set_field(EventField::Dict, EventValue::UInt(dict as u64))?;
        this.set_field(EventField::Index, EventValue::UInt(id.into()))?;
        this.set_field(EventField::Name, EventValue::Text(name))?;
        this.finish(0).map(drop)
    }

    /// Returns the layout of the event under construction.
    pub fn schema(&self) -> &'static EventSchema {
        self.schema
    }

    /// Sets the source of the event: the id of a source definition, and the offset after its base in bytes.
    #[inline]
    pub fn source(&mut self, source: u32, offset: u32) {
        self.write_bytes(at::SOURCE, source.to_le_bytes());
        self.write_bytes(at::OFFSET, offset.to_le_bytes());
    }

    /// Sets the receive time, by the clock of the capture or the kernel.
    #[inline]
    pub fn ts_recv(&mut self, ts: UnixNanos) {
        let event = i64::from_le_bytes(self.get(at::TS_EVENT));
        let delta = ts.0.checked_sub(event).and_then(|d| i32::try_from(d).ok());
        match delta.filter(|d| !matches!(*d, RECV_NONE | RECV_EXT)) {
            Some(d) => self.write_bytes(at::RECV_DELTA, d.to_le_bytes()),
            None => {
                self.write_bytes(at::RECV_DELTA, RECV_EXT.to_le_bytes());
                self.append_extension(EventField::TsRecv as u16, &ts.0.to_le_bytes());
            }
        }
    }

    /// Sets the feed's own sequence number.
    #[inline]
    pub fn sequence(&mut self, sequence: u64) {
        if sequence < u64::from(SEQ_EXT) {
            self.write_bytes(at::SEQUENCE, (sequence as u32).to_le_bytes());
        } else {
            self.write_bytes(at::SEQUENCE, SEQ_EXT.to_le_bytes());
            self.append_extension(EventField::SrcSeq as u16, &sequence.to_le_bytes());
        }
    }

    /// Sets a field of the kind; as [`EventBuilder::set`].
    ///
    /// # Panics
    /// Panics if the kind has no such field.
    #[inline]
    pub fn set_field(&mut self, field: EventField, value: EventValue<'_>) -> Result<(), Refusal> {
        let spec = self.schema.get(field).expect("a field of the kind");
        self.set(spec, value)
    }

    /// Sets a field. The type of `value` must be that of the slot.
    pub fn set(&mut self, spec: &EventFieldSpec, value: EventValue<'_>) -> Result<(), Refusal> {
        let tag = spec.field as u16;
        match (spec.slot, value) {
            (FieldLayout::Sym { dict, offset }, EventValue::Sym(d, id)) if d == dict => {
                self.put_sym(dict, offset, id)
            }
            (FieldLayout::Publisher { bank }, EventValue::Sym(NameKind::Venue, id)) => {
                if self.get::<2>(at::VENUE) != [0; 2] {
                    return Err(Refusal::TwoPublishers);
                }
                self.put_publisher(bank, id)
            }
            (FieldLayout::SymExt { dict }, EventValue::Sym(d, id)) if d == dict => {
                self.append_extension(tag, &id.to_le_bytes())
            }
            (FieldLayout::Syms { dict }, EventValue::Syms(d, ids)) if d == dict => {
                self.append_extension(tag, ids)
            }
            (FieldLayout::Price { offset }, EventValue::Price(p)) => self.put_price(offset, tag, p),
            (FieldLayout::Decimal { offset, exp_offset }, EventValue::Decimal(d)) => {
                self.write_bytes(offset.into(), d.mantissa().to_le_bytes());
                self.write_bytes(exp_offset.into(), d.exponent().to_le_bytes());
            }
            (FieldLayout::DecimalNarrow { offset, exp_offset }, EventValue::Decimal(d)) => {
                self.put_narrow(offset, exp_offset, tag, d)
            }
            (FieldLayout::DecimalExt, EventValue::Decimal(d)) => self.extend_decimal(tag, d),
            (FieldLayout::Amount { offset, exp_offset }, EventValue::Amount(a)) => {
                self.write_bytes(offset.into(), a.mantissa().to_le_bytes());
                self.write_bytes(exp_offset.into(), a.exponent().to_le_bytes());
            }
            (FieldLayout::Id { offset, n }, EventValue::Id(id)) => self.put_id(offset, n, tag, id),
            (FieldLayout::Text { offset, n }, EventValue::Text(t)) => self.put_text(offset, n, tag, t),
            (FieldLayout::Code { offset, shift, values, .. }, EventValue::Text(t)) => {
                let code = values.iter().position(|v| *v == t).ok_or(Refusal::BadValue)? as u8 + 1;
                self.buf[self.event_start + usize::from(offset)] |= code << shift;
            }
            (FieldLayout::Bool { offset: EXT_ONLY, .. }, EventValue::Bool(b)) => {
                self.append_extension(tag, &[u8::from(b) + 1])
            }
            (FieldLayout::Bool { offset, shift }, EventValue::Bool(b)) => {
                self.buf[self.event_start + usize::from(offset)] |= (u8::from(b) + 1) << shift;
            }
            (FieldLayout::Flag { offset, shift }, EventValue::Bool(b)) => {
                self.buf[self.event_start + usize::from(offset)] |= u8::from(b) << shift;
            }
            (FieldLayout::FlagSet { offset, shift, values }, EventValue::Flags(v, set)) if v == values => {
                self.put_flag_set(offset, shift, tag, set)
            }
            (FieldLayout::UInt { offset, width }, EventValue::UInt(v)) => {
                self.put_uint(offset, width, tag, v)
            }
            (FieldLayout::Nanos { offset: EXT_ONLY }, EventValue::Nanos(t)) if t.0 != i64::MIN => {
                self.append_extension(tag, &t.0.to_le_bytes())
            }
            (FieldLayout::Nanos { offset }, EventValue::Nanos(t)) if t.0 != i64::MIN => {
                self.write_bytes(offset.into(), t.0.to_le_bytes())
            }
            (FieldLayout::Date { offset }, EventValue::Date(date)) => self.put_date(offset, tag, date),
            (FieldLayout::DateAfter { offset }, EventValue::Date(date)) => {
                self.put_date_after(offset, tag, date)
            }
            (FieldLayout::Tape { offset }, EventValue::Tape(id)) if id != 0 => {
                self.write_bytes(offset.into(), id.to_le_bytes())
            }
            (FieldLayout::TapePosition { offset }, EventValue::TapePosition(p)) if p.tape != 0 => {
                match offset {
                    EXT_ONLY => self.append_extension(tag, &p.to_bytes()),
                    offset => self.write_bytes(offset.into(), p.to_bytes()),
                }
            }
            (FieldLayout::TapePositions, EventValue::TapePositions(list))
                if list.len().is_multiple_of(TapePosition::BYTES) =>
            {
                self.append_extension(tag, list)
            }
            (FieldLayout::MillisAfter { offset }, EventValue::Nanos(t)) => self.put_millis(offset, tag, t),
            (FieldLayout::Json, EventValue::Json(j)) => self.append_extension(tag, j.as_bytes()),
            _ => return Err(Refusal::WrongSort),
        }
        Ok(())
    }

    /// Sets a field from its text on the wire, parsed as its slot wants.
    #[inline]
    pub fn set_text(
        &mut self,
        spec: &EventFieldSpec,
        text: &[u8],
        names: &mut impl NameResolver,
    ) -> Result<(), Refusal> {
        match spec.slot {
            FieldLayout::Sym { dict, offset } => {
                let id = names.resolve(dict, text, self.event_start + usize::from(offset))?;
                self.put_sym(dict, offset, id);
                Ok(())
            }
            FieldLayout::SymExt { dict } => {
                let id = names.resolve(dict, text, self.buf.len() + ENTRY_HEAD)?;
                self.append_extension(spec.field as u16, &id.to_le_bytes());
                Ok(())
            }
            FieldLayout::Publisher { bank } => {
                if self.get::<2>(at::VENUE) != [0; 2] {
                    return self.join_publishers(bank, text, names);
                }
                let id = names.resolve(NameKind::Venue, text, self.event_start + at::VENUE)?;
                self.put_publisher(bank, id);
                Ok(())
            }
            FieldLayout::Price { offset } => {
                self.put_price(offset, spec.field as u16, Price::parse(text)?);
                Ok(())
            }
            FieldLayout::Decimal { .. } | FieldLayout::DecimalNarrow { .. } | FieldLayout::DecimalExt => {
                self.set(spec, EventValue::Decimal(Decimal::parse(text)?))
            }
            FieldLayout::Amount { .. } => self.set(spec, EventValue::Amount(Amount::parse(text)?)),
            FieldLayout::Id { offset, n } => {
                let slot = self.event_start + usize::from(offset);
                if offset != EXT_ONLY && pack_plain(text, &mut self.buf[slot..slot + usize::from(n)]) {
                    return Ok(());
                }
                check_utf8(text)?;
                self.put_id(offset, n, spec.field as u16, InlineId::Text(text));
                Ok(())
            }
            FieldLayout::Text { .. } | FieldLayout::Code { .. } => {
                self.set(spec, EventValue::Text(check_utf8(text)?))
            }
            FieldLayout::Bool { .. } | FieldLayout::Flag { .. } => match text {
                b"Y" | b"true" | b"1" => self.set(spec, EventValue::Bool(true)),
                b"N" | b"false" | b"0" => self.set(spec, EventValue::Bool(false)),
                _ => Err(Refusal::BadValue),
            },
            FieldLayout::UInt { .. } => {
                let n = check_utf8(text)?.parse().map_err(|_| Refusal::BadInteger)?;
                self.set(spec, EventValue::UInt(n))
            }
            FieldLayout::FlagSet { values, .. } => {
                let mut set = 0;
                for word in text.split(|b| matches!(b, b'+' | b' ' | b',')).filter(|word| !word.is_empty()) {
                    let i = values.iter().position(|value| value.as_bytes() == word);
                    set |= 1 << i.ok_or(Refusal::BadValue)?;
                }
                self.set(spec, EventValue::Flags(values, set))
            }
            FieldLayout::Date { .. } | FieldLayout::DateAfter { .. } => {
                self.set(spec, EventValue::Date(CivilDate::parse(text).ok_or(Refusal::BadTime)?))
            }
            FieldLayout::Syms { .. }
            | FieldLayout::Nanos { .. }
            | FieldLayout::MillisAfter { .. }
            | FieldLayout::Tape { .. }
            | FieldLayout::TapePosition { .. }
            | FieldLayout::TapePositions
            | FieldLayout::Json => Err(Refusal::WrongSort),
        }
    }

    /// Sets a field to a value that was made ready for it.
    #[inline]
    pub fn set_ready(&mut self, ready: PreparedValue) {
        let field_offset = self.event_start + usize::from(ready.offset);
        if let Some(word_bytes) = self.buf.get_mut(field_offset..).and_then(|b| b.first_chunk_mut()) {
            *word_bytes = (u64::from_le_bytes(*word_bytes) | ready.value_word).to_le_bytes();
        }
    }

    /// Sets a list of names.
    pub fn set_names<'n>(
        &mut self,
        spec: &EventFieldSpec,
        list: impl Iterator<Item = &'n [u8]>,
        names: &mut impl NameResolver,
    ) -> Result<(), Refusal> {
        let FieldLayout::Syms { dict } = spec.slot else { return Err(Refusal::WrongSort) };
        self.has_extension = true;
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
    pub fn keep_unmapped(&mut self, name: &str, json: &str) -> Result<(), Refusal> {
        self.keep_unmapped_with(name, |out| out.extend_from_slice(json.as_bytes()))
    }

    /// Keeps an unmapped field whose value is written in its final place: `json` must append JSON text and nothing
    /// else.
    #[inline]
    pub fn keep_unmapped_with(&mut self, name: &str, json: impl FnOnce(&mut Vec<u8>)) -> Result<(), Refusal> {
        let n = u16::try_from(name.len()).map_err(|_| Refusal::NameLength)?;
        self.has_extension = true;
        let entry = self.buf.len();
        let mut head = [0; ENTRY_HEAD + 2];
        head[..2].copy_from_slice(&TAG_UNMAPPED.to_le_bytes());
        head[ENTRY_HEAD..].copy_from_slice(&n.to_le_bytes());
        self.buf.extend_from_slice(&head);
        self.buf.extend_from_slice(name.as_bytes());
        json(self.buf);
        let total = (self.buf.len() - entry - ENTRY_HEAD) as u32;
        self.buf[entry + 2..entry + ENTRY_HEAD].copy_from_slice(&total.to_le_bytes());
        Ok(())
    }

    /// Ends the event: pads it to whole lines and writes its header, unstamped. Refused events leave the
    /// arena as it was before [`EventBuilder::begin`].
    #[inline]
    pub fn finish(self, frame_flags: u8) -> Result<usize, Refusal> {
        let len = (self.buf.len() - self.event_start).next_multiple_of(LINE);
        let Ok(lines) = u16::try_from(len / LINE) else {
            self.buf.truncate(self.event_start);
            return Err(Refusal::TooLarge);
        };
        if self.has_extension {
            self.buf.resize(self.event_start + len, 0);
        }
        let bits = frame_flags | if self.has_extension { flags::EXT } else { 0 };
        let bits = bits | if self.schema.kind.is_meta() { flags::META } else { 0 };
        FrameHeader::new_unstamped(self.schema.kind as u8, bits, lines)
            .write(&mut self.buf[self.event_start..]);
        Ok(self.event_start)
    }

    /// Returns whether a field of the kind has a value by now.
    pub fn has(&self, spec: &EventFieldSpec) -> bool {
        let event = Event::from_unfinished(&self.buf[self.event_start..], self.schema, self.has_extension);
        event.value(spec, &mut [0; 36]).is_some()
    }

    /// Returns the first required field that is missing, if any.
    pub fn missing_field(&self) -> Option<&'static EventFieldSpec> {
        let is_missing = |s: &&EventFieldSpec| !self.has(s);
        let fields = self.schema.fields;
        let one_of = self.schema.kind.one_of();
        fields.iter().find(|s| s.required && is_missing(s)).or_else(|| {
            let mut wanted_fields = fields.iter().filter(|s| one_of.contains(&s.field));
            let first_wanted = wanted_fields.clone().next()?;
            wanted_fields.all(|s| is_missing(&s)).then_some(first_wanted)
        })
    }

    /// Discards the event and restores the arena.
    pub fn abandon(self) {
        self.buf.truncate(self.event_start);
    }

    #[inline]
    fn write_bytes<const N: usize>(&mut self, offset: usize, bytes: [u8; N]) {
        self.buf[self.event_start + offset..self.event_start + offset + N].copy_from_slice(&bytes);
    }

    #[inline]
    fn get<const N: usize>(&self, offset: usize) -> [u8; N] {
        self.buf[self.event_start + offset..self.event_start + offset + N].try_into().expect("N bytes")
    }

    #[inline]
    fn put_sym(&mut self, dict: NameKind, offset: u16, id: u32) {
        if dict == NameKind::Venue {
            // A provisional id of the 32-bit kind keeps its mark in the top bit of 16.
            let id = id as u16 | if id >> 31 != 0 { crate::id::VENUE_PROVISIONAL } else { 0 };
            self.write_bytes(offset.into(), id.to_le_bytes());
        } else {
            self.write_bytes(offset.into(), id.to_le_bytes());
        }
    }

    /// Writes the publisher. Venue and bank share one field of the frame.
    #[inline]
    fn put_publisher(&mut self, is_bank: bool, id: u32) {
        self.put_sym(NameKind::Venue, at::VENUE as u16, id);
        self.buf[self.event_start + at::KIND_A] |= if is_bank { PUBLISHER_IS_BANK } else { 0 };
    }

    /// Joins a bank and a venue into one publisher, `BANK@VENUE`. The joined name replaces the first one.
    #[cold]
    fn join_publishers(
        &mut self,
        is_bank: bool,
        text: &[u8],
        names: &mut impl NameResolver,
    ) -> Result<(), Refusal> {
        let first_is_bank = self.buf[self.event_start + at::KIND_A] & PUBLISHER_IS_BANK != 0;
        if first_is_bank == is_bank {
            return Err(Refusal::TwoPublishers);
        }
        let (mut first, venue_offset) = (Vec::new(), self.event_start + at::VENUE);
        names.take_back(
            NameKind::Venue,
            u16::from_le_bytes(self.get(at::VENUE)).into(),
            venue_offset,
            &mut first,
        )?;
        if first.contains(&b'@') || text.contains(&b'@') {
            return Err(Refusal::PublisherName);
        }
        let (bank, venue) = if is_bank { (text, &*first) } else { (&*first, text) };
        let id = names.resolve(NameKind::Venue, &[bank, b"@", venue].concat(), venue_offset)?;
        self.put_publisher(true, id);
        Ok(())
    }

    #[inline]
    fn put_price(&mut self, offset: u16, tag: u16, p: Price) {
        if offset == EXT_ONLY {
            self.append_extension(tag, &p.0.to_le_bytes());
        } else {
            self.write_bytes(offset.into(), p.0.to_le_bytes());
        }
    }

    fn put_narrow(&mut self, offset: u16, exp_offset: u16, tag: u16, d: Decimal) {
        if let Ok(m) = u32::try_from(d.mantissa()) {
            self.write_bytes(offset.into(), m.to_le_bytes());
            self.write_bytes(exp_offset.into(), d.exponent().to_le_bytes());
        } else {
            self.write_bytes(exp_offset.into(), EXP_EXT.to_le_bytes());
            self.extend_decimal(tag, d);
        }
    }

    fn extend_decimal(&mut self, tag: u16, d: Decimal) {
        let mut payload = [0; 9];
        payload[..8].copy_from_slice(&d.mantissa().to_le_bytes());
        payload[8] = d.exponent() as u8;
        self.append_extension(tag, &payload);
    }

    fn put_id(&mut self, offset: u16, n: u16, tag: u16, id: InlineId<'_>) {
        let slot = self.event_start + usize::from(offset);
        if offset != EXT_ONLY && pack_id(id, &mut self.buf[slot..slot + usize::from(n)]) {
            return;
        }
        match id {
            InlineId::Text(t) => self.append_extension(tag, t),
            // A number differs from text by its length of nine and its first byte, which no UTF-8 text has.
            InlineId::Number(v) => {
                let mut payload = [0xff; 9];
                payload[1..].copy_from_slice(&v.to_le_bytes());
                self.append_extension(tag, &payload);
            }
        }
    }

    fn put_text(&mut self, offset: u16, n: u16, tag: u16, t: &str) {
        let n = usize::from(n);
        if t.is_empty() || t.len() > n || t.as_bytes().contains(&0) {
            return self.append_extension(tag, t.as_bytes());
        }
        let slot = self.event_start + usize::from(offset);
        self.buf[slot..slot + t.len()].copy_from_slice(t.as_bytes());
    }

    fn put_uint(&mut self, offset: u16, width: u8, tag: u16, v: u64) {
        if offset == EXT_ONLY {
            return self.append_extension(tag, &v.to_le_bytes());
        }
        let (start, width) = (self.event_start + usize::from(offset), usize::from(width));
        let none_value = u64::MAX >> (64 - 8 * width);
        let inline = if v < none_value - 1 { v } else { none_value - 1 };
        self.buf[start..start + width].copy_from_slice(&inline.to_le_bytes()[..width]);
        if v >= none_value - 1 {
            self.append_extension(tag, &v.to_le_bytes());
        }
    }

    fn put_millis(&mut self, offset: u16, tag: u16, t: UnixNanos) {
        let event = i64::from_le_bytes(self.get(at::TS_EVENT));
        let delta = t.0.checked_sub(event).filter(|d| d % 1_000_000 == 0).map(|d| d / 1_000_000);
        match delta.and_then(|d| u16::try_from(d).ok()).filter(|d| *d < 65534) {
            Some(d) => self.write_bytes(offset.into(), d.to_le_bytes()),
            None => {
                self.write_bytes(offset.into(), 65534u16.to_le_bytes());
                self.append_extension(tag, &t.0.to_le_bytes());
            }
        }
    }

    fn put_flag_set(&mut self, offset: u16, shift: u8, tag: u16, set: u8) {
        if set == 0 {
            return;
        }
        let code = match FLAG_SETS.iter().position(|s| *s == set) {
            Some(i) if offset != EXT_ONLY => i as u8 + 1,
            _ => FLAG_SET_EXT,
        };
        if offset != EXT_ONLY {
            self.buf[self.event_start + usize::from(offset)] |= code << shift;
        }
        if code == FLAG_SET_EXT {
            self.append_extension(tag, &[set]);
        }
    }

    fn put_date(&mut self, offset: u16, tag: u16, date: CivilDate) {
        let code = u32::try_from(date.days()).map_or(u32::MAX, |days| days + 1);
        if offset != EXT_ONLY {
            self.write_bytes(offset.into(), code.to_le_bytes());
        }
        if offset == EXT_ONLY || code == u32::MAX {
            self.append_extension(tag, &date.days().to_le_bytes());
        }
    }

    fn put_date_after(&mut self, offset: u16, tag: u16, date: CivilDate) {
        let of_event = CivilDate::from_utc(UnixNanos(i64::from_le_bytes(self.get(at::TS_EVENT))));
        let code = u8::try_from(i64::from(date.days()) - i64::from(of_event.days()) + 1).ok();
        match code.filter(|code| (1..255).contains(code)) {
            Some(code) => self.write_bytes(offset.into(), [code]),
            None => {
                self.write_bytes(offset.into(), [255]);
                self.append_extension(tag, &date.days().to_le_bytes());
            }
        }
    }

    fn append_extension(&mut self, tag: u16, payload: &[u8]) {
        self.has_extension = true;
        self.buf.extend_from_slice(&tag.to_le_bytes());
        self.buf.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        self.buf.extend_from_slice(payload);
    }
}

#[inline]
fn check_utf8(text: &[u8]) -> Result<&str, Refusal> {
    std::str::from_utf8(text).map_err(|_| Refusal::NotUtf8)
}

/// Bytes of the longest fixed part.
const FIXED_BYTES_MAX: usize = 192;

/// The fixed part of each kind with every field absent, by the number of the kind.
static TEMPLATES: [[u8; FIXED_BYTES_MAX]; EventKind::NUMBER_MAX as usize + 1] = {
    let mut slot_templates = [[0; FIXED_BYTES_MAX]; EventKind::NUMBER_MAX as usize + 1];
    let mut i = 0;
    while i < SCHEMAS.len() {
        slot_templates[SCHEMAS[i].kind as usize] = make_template(&SCHEMAS[i]);
        i += 1;
    }
    slot_templates
};

const fn make_template(schema: &EventSchema) -> [u8; FIXED_BYTES_MAX] {
    assert!(matches!(schema.fixed_bytes, 64 | 128 | 192));
    let mut t = [0; FIXED_BYTES_MAX];
    t = overlay(t, at::RECV_DELTA, &RECV_NONE.to_le_bytes());
    t = overlay(t, at::SEQUENCE, &SEQ_NONE.to_le_bytes());
    if schema.kind.has_layouts() {
        t = overlay(t, at::KIND_A, &[schema.layout]);
    }
    let mut i = 0;
    while i < schema.fields.len() {
        t = match schema.fields[i].slot {
            FieldLayout::Price { offset } if offset != EXT_ONLY => {
                overlay(t, offset as usize, &i64::MAX.to_le_bytes())
            }
            FieldLayout::Decimal { exp_offset, .. }
            | FieldLayout::DecimalNarrow { exp_offset, .. }
            | FieldLayout::Amount { exp_offset, .. } => overlay(t, exp_offset as usize, &[EXP_NONE as u8]),
            FieldLayout::UInt { offset, width } if offset != EXT_ONLY => {
                overlay(t, offset as usize, [0xff; 8].split_at(width as usize).0)
            }
            FieldLayout::Nanos { offset } if offset != EXT_ONLY => {
                overlay(t, offset as usize, &i64::MIN.to_le_bytes())
            }
            FieldLayout::MillisAfter { offset } => overlay(t, offset as usize, &[0xff; 2]),
            _ => t,
        };
        i += 1;
    }
    t
}

const fn overlay(mut t: [u8; FIXED_BYTES_MAX], offset: usize, bytes: &[u8]) -> [u8; FIXED_BYTES_MAX] {
    let mut i = 0;
    while i < bytes.len() {
        t[offset + i] = bytes[i];
        i += 1;
    }
    t
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dictionary;

    /// A value made ready that differs from that of the plain path would show only on some tapes of some mappings.
    #[test]
    fn a_ready_value_is_what_its_text_is() {
        let mut ready_values = 0;
        let texts =
            ["B", "S", "P", "A", "R", "Y", "N", "E", "X", "C", "D", "new", "correct", "true", "false", "1"];
        let texts =
            texts.into_iter().chain(["", "GTC", "market", "longer than its field", "a\0b", "é", "12345678"]);
        for text in texts {
            for kind in EventKind::EVENTS {
                for spec in EventSchema::for_kind(kind).fields {
                    let Some(ready) = PreparedValue::new(kind, spec, text.as_bytes()) else { continue };
                    let (mut a, mut b) = (Vec::new(), Vec::new());
                    let mut text_event = EventBuilder::begin(&mut a, kind, UnixNanos(7));
                    text_event.set_text(spec, text.as_bytes(), &mut Dictionary::default()).unwrap();
                    text_event.finish(0).unwrap();
                    let mut event = EventBuilder::begin(&mut b, kind, UnixNanos(7));
                    event.set_ready(ready);
                    event.finish(0).unwrap();
                    assert_eq!(a, b, "{kind:?} {:?} {text}", spec.field);
                    ready_values += 1;
                }
            }
        }
        assert!(ready_values > 100, "{ready_values}");
    }
}
