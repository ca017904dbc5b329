//! Messages of FAST for the mapper, by any venue's templates.
//!
//! ```text
//!  block ─ frames ─▶ packet ─ codec ─▶ items ─ noted ─▶ slots, entries ─ Mapper ─▶ events
//!            └ no packet: a piece       └ fault: code, template, field, byte ─▶ quarantine
//! ```
//!
//! [`path`] documents how mappings name fields, [`config`] the table `[fast_messages]`. Decimals go into events
//! exactly, integers are plain digits, also those of enumerations; byte vectors are hexadecimal digits.
//!
//! **State.** With `reset = "message"` or `"packet"` and a framing that shows where packets end, a block is
//! independent of all others. Otherwise the feed is of the class `stream`: one decoder decodes its blocks in order,
//! and its dictionaries begin empty with each source. After a bad message the dictionaries are as they were before
//! it. Where only messages show their ends, the rest of the source is lost and goes into quarantine in pieces.
//!
//! **Quarantine** has a message's own bytes, with all that its framing puts before it except the length. It can be
//! retried if it is independent of other messages.

mod check;
mod config;
mod field_table;
mod frames;
mod path;

pub use check::try_bytes;
pub use config::FastMessagesConfig;
pub use path::FastDialect;

use crate::block::{Block, BlockNameResolver};
use crate::error::Error;
use crate::formats::fixed::price;
use crate::formats::format::{ByteFormat, FormatDecoder, SourceContext, Statefulness};
use crate::mapping::{
    EntryCursor, EntryStep, Mapping, MappingExplainer, MessageMapper, MessageOrigin, MessageRefusal,
    ParsedMessage, compile,
};
use config::{DictionaryResetRule, FastMessageFraming, read_templates, templates};
use field_table::{FastFieldTable, FastFieldValue, FastStoredValue};
use frames::{FramingFault, NextFastPacket, PACKET_BYTES_MAX};
use path::FastValueConversion;
use rustc_hash::FxHashMap;
use std::any::Any;
use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::Range;
use std::sync::Arc;
use unitape_base::digits::parse_u64;
use unitape_codec::fix::value;
use unitape_codec::text::time;
use unitape_fast::{Decoder, MessageFault, MessageFaultCode};
use unitape_model::event::EventValue;
use unitape_model::schema::{EventFieldSpec, FieldLayout};
use unitape_model::{Decimal, Dictionary, EventBuilder, Refusal, UnixNanos};

/// Decodes blocks of FAST; one per worker and feed, or one per feed where a message means what those before it say.
#[derive(Debug)]
pub struct FastMappingDecoder {
    config: FastMessagesConfig,
    decoder: Decoder,
    mapper: MessageMapper<FastFieldValue>,
    fields: FastFieldTable,
    /// No message of the current source can be located any more.
    is_lost: bool,
    detail: String,
    /// Heads of blocks in quarantine: for an independent message, and for a message that needs earlier messages.
    independent_head: Arc<[u8]>,
    dependent_head: Arc<[u8]>,
}

/// Messages of FAST by the rules of a mapping.
#[derive(Debug)]
pub struct FastMappingFormat {
    mapping_text: FastMessagesConfig,
}

/// Reads the templates of a mapping.
///
/// # Errors
/// Fails if the mapping names no templates, if one cannot be read, or if it has no rules.
pub fn load(mapping: &mut Mapping) -> Result<(), Error> {
    mapping.needs_rules()?;
    mapping.template_texts = read_templates(mapping)?;
    Ok(())
}

impl FastMappingFormat {
    /// Makes the format from the table `[fast_messages]` of a mapping.
    ///
    /// # Errors
    /// Fails if the table is wrong.
    pub fn new(mapping: &Mapping) -> Result<Self, Error> {
        Ok(Self { mapping_text: FastMessagesConfig::from_mapping(mapping)? })
    }
}

impl ByteFormat for FastMappingFormat {
    fn decoder(&self, mapping: &Mapping) -> Result<Box<dyn FormatDecoder>, Error> {
        Ok(Box::new(FastMappingDecoder::new(mapping, &self.mapping_text)?))
    }

    fn cut_offset(&self, buf: &[u8]) -> usize {
        frames::cut_packets(self.mapping_text.framing, buf)
    }

    fn statefulness(&self) -> Statefulness {
        match self.mapping_text.is_stream() {
            true => Statefulness::Stream,
            false => Statefulness::Stateless,
        }
    }
}

impl FastMappingDecoder {
    /// Makes a decoder for `mapping`.
    ///
    /// # Errors
    /// Fails if the mapping cannot be compiled, or its templates not be loaded.
    pub fn new(mapping: &Mapping, text: &FastMessagesConfig) -> Result<Self, Error> {
        let templates = templates(mapping)?;
        let (plan, places) = compile(mapping, &FastDialect::new(&templates))?;
        let config = text.clone();
        Ok(Self {
            decoder: Decoder::new(templates).with_strict(config.strict),
            fields: FastFieldTable::new(&places, plan.slot_count),
            mapper: MessageMapper::new(plan),
            config,
            is_lost: false,
            detail: String::new(),
            independent_head: b"="[..].into(),
            dependent_head: b"+"[..].into(),
        })
    }

    /// Decodes a message of the quarantine again.
    #[cold]
    fn retry_message(&mut self, block: &mut Block, bytes: &[u8], context: SourceContext<'_>) {
        block.decoded = bytes.len();
        if block.head != self.independent_head {
            let detail = "what it means depends on what came before it";
            return block.quarantine(context.source, block.base, bytes, "not_alone", detail);
        }
        self.decoder.reset();
        self.packet(block, bytes, 0..bytes.len(), context, false);
    }

    /// Decodes the payload of a datagram.
    fn decode_datagram(&mut self, block: &mut Block, bytes: &[u8], context: SourceContext<'_>) {
        block.decoded = bytes.len();
        if self.config.framing != FastMessageFraming::LengthPrefix {
            return self.packet(
                block,
                bytes,
                0..bytes.len(),
                context,
                self.config.framing.has_many_messages(),
            );
        }
        let mut packet_start = 0;
        loop {
            match frames::next(self.config.framing, bytes, packet_start, 0, true) {
                NextFastPacket::Packet(range, end) => {
                    self.packet(block, bytes, range, context, true);
                    packet_start = end;
                }
                NextFastPacket::Bad { end, code, detail } => {
                    self.quarantine_bytes(
                        block,
                        context.source,
                        &bytes[packet_start..end],
                        packet_start,
                        FramingFault { code, detail },
                    );
                    packet_start = end;
                }
                NextFastPacket::Open | NextFastPacket::Incomplete | NextFastPacket::End => return,
            }
        }
    }

    /// Decodes a block of a file or a stream.
    fn decode_block(&mut self, block: &mut Block, bytes: &[u8], context: SourceContext<'_>) {
        let mut packet_start = 0;
        loop {
            let next_packet =
                match frames::next(self.config.framing, bytes, packet_start, block.base, block.eof) {
                    NextFastPacket::Open => self.open(block, bytes, packet_start, context),
                    next => next,
                };
            let packet_end = match next_packet {
                NextFastPacket::Packet(range, end) => {
                    if !self.config.framing.is_open_ended() {
                        self.packet(block, bytes, range, context, self.config.framing.has_many_messages());
                    }
                    end
                }
                NextFastPacket::Bad { end, code, detail } => {
                    self.quarantine_bytes(
                        block,
                        context.source,
                        &bytes[packet_start..end],
                        packet_start,
                        FramingFault { code, detail },
                    );
                    end
                }
                NextFastPacket::Open | NextFastPacket::Incomplete | NextFastPacket::End => {
                    block.decoded = packet_start;
                    return;
                }
            };
            block.mark_crossed_progress(block.base + packet_start as u64, block.base + packet_end as u64);
            packet_start = packet_end;
        }
    }

    /// Decodes a message that shows its own end. After a bad one, no message can be located.
    fn open(
        &mut self,
        block: &mut Block,
        bytes: &[u8],
        start: usize,
        context: SourceContext<'_>,
    ) -> NextFastPacket {
        if self.is_lost {
            return frames::refuse_piece(bytes, start, block.base, block.eof, LOST);
        }
        if self.config.reset != DictionaryResetRule::Never {
            self.decoder.reset();
        }
        // No more is looked at, so that it comes to the same however much is there.
        let packet_end = bytes.len().min(start + PACKET_BYTES_MAX);
        let may_be_longer = !block.eof && packet_end == bytes.len() && packet_end < start + PACKET_BYTES_MAX;
        match self.message(
            block,
            bytes,
            start..packet_end,
            context,
            self.config.reset == DictionaryResetRule::Never,
        ) {
            Ok(used) => NextFastPacket::Packet(start..start + used, start + used),
            Err(fault) if fault.code == MessageFaultCode::Truncated && may_be_longer => {
                NextFastPacket::Incomplete
            }
            Err(fault) => match frames::refuse_piece(bytes, start, block.base, block.eof, LOST) {
                NextFastPacket::Bad { end, .. } => {
                    self.is_lost = true;
                    self.quarantine_message(block, context.source, start, &bytes[start..end], &fault);
                    NextFastPacket::Packet(start..end, end)
                }
                next => next,
            },
        }
    }

    /// Decodes the messages of a packet.
    fn packet(
        &mut self,
        block: &mut Block,
        bytes: &[u8],
        range: Range<usize>,
        context: SourceContext<'_>,
        many: bool,
    ) {
        let mut start = range.start;
        if self.config.reset != DictionaryResetRule::Never {
            self.decoder.reset();
        }
        loop {
            let is_first_packet = start == range.start;
            if !is_first_packet && self.config.reset == DictionaryResetRule::Message {
                self.decoder.reset();
            }
            let depends = match self.config.reset {
                DictionaryResetRule::Message => false,
                DictionaryResetRule::Packet => !is_first_packet,
                DictionaryResetRule::Never => true,
            };
            match self.message(block, bytes, start..range.end, context, depends) {
                Ok(used) => start += used,
                // After a bad message the rest of its packet cannot be decoded; it goes into quarantine with it.
                Err(fault) => {
                    return self.quarantine_message(
                        block,
                        context.source,
                        start,
                        &bytes[start..range.end],
                        &fault,
                    );
                }
            }
            if start == range.end {
                return;
            }
            if !many {
                let fault =
                    FramingFault { code: "rest_bytes", detail: "bytes of a frame behind its message" };
                return self.quarantine_bytes(block, context.source, &bytes[start..range.end], start, fault);
            }
        }
    }

    /// Decodes the message at the start of a range and returns its length in bytes. `depends` must be true if the
    /// message needs the messages before it.
    fn message(
        &mut self,
        block: &mut Block,
        bytes: &[u8],
        range: Range<usize>,
        context: SourceContext<'_>,
        depends: bool,
    ) -> Result<usize, MessageFault> {
        let head = self.config.framing.head_bytes();
        let offset = block.base + range.start as u64;
        let raw = &bytes[range];
        let needs = if depends { &self.dependent_head } else { &self.independent_head };
        if !Arc::ptr_eq(&block.head, needs) {
            block.head = needs.clone();
        }
        let Some((before, body)) = raw.split_at_checked(head) else {
            return Err(MessageFault {
                code: MessageFaultCode::Truncated,
                template: String::new(),
                field: String::new(),
                offset: 0,
            });
        };
        let message = self.decoder.decode(body)?;
        let bytes_used = head + message.bytes;
        let raw = &raw[..bytes_used];
        let (number, channel) = config::number_and_channel(self.config.framing, before);
        if self.fields.read_fields(&message, number, channel).is_err() {
            let detail = "more groups and sequences in each other than are taken";
            block.quarantine(context.source, offset, raw, MessageFaultCode::TooLarge.as_str(), detail);
            return Ok(bytes_used);
        }
        let template = message.template;
        let templates = self.decoder.templates();
        let view =
            FastMessageView { raw, template: &templates.list()[template].name.local, fields: &self.fields };
        self.mapper.message(
            block,
            &view,
            MessageOrigin { source: context.source, offset },
            context.dictionary,
        );
        Ok(bytes_used)
    }

    #[cold]
    fn quarantine_message(
        &mut self,
        block: &mut Block,
        source: u32,
        start: usize,
        raw: &[u8],
        fault: &MessageFault,
    ) {
        self.detail.clear();
        // Writing to a String cannot fail.
        _ = write!(self.detail, "{fault}");
        block.quarantine(source, block.base + start as u64, raw, fault.code.as_str(), &self.detail);
    }

    /// Puts bytes that are no message into quarantine.
    #[cold]
    fn quarantine_bytes(
        &mut self,
        block: &mut Block,
        source: u32,
        raw: &[u8],
        start: usize,
        fault: FramingFault,
    ) {
        block.head = self.dependent_head.clone();
        block.quarantine(source, block.base + start as u64, raw, fault.code, fault.detail);
    }
}

impl FormatDecoder for FastMappingDecoder {
    fn decode_block(&mut self, block: &mut Block, source: u32, dictionary: &Dictionary) {
        let bytes = std::mem::take(&mut block.bytes);
        let context = SourceContext { source, dictionary };
        if !block.head.is_empty() {
            self.retry_message(block, &bytes, context);
        } else if block.in_packet {
            self.decode_datagram(block, &bytes, context);
        } else {
            self.decode_block(block, &bytes, context);
        }
        block.head = Arc::default();
        block.bytes = bytes;
    }

    fn explainer(&mut self) -> Option<&mut Option<Box<MappingExplainer>>> {
        Some(self.mapper.explainer())
    }

    fn begin_source(&mut self) {
        self.decoder.reset();
        self.is_lost = false;
    }

    fn resume_from(&mut self, before: &mut dyn FormatDecoder) {
        let Some(other_decoder) = (before as &mut dyn Any).downcast_mut::<Self>() else { return };
        if self.config.framing == other_decoder.config.framing {
            self.is_lost = other_decoder.is_lost;
        }
        let has_same_templates = |a: &Decoder, b: &Decoder| {
            format!("{:?}", a.templates().list()) == format!("{:?}", b.templates().list())
        };
        if has_same_templates(&self.decoder, &other_decoder.decoder) {
            std::mem::swap(&mut self.decoder, &mut other_decoder.decoder);
        }
    }
}

const LOST: FramingFault = FramingFault {
    code: "garbage",
    detail: "bytes after a bad message whose end only the message itself gives",
};

/// The current message.
struct FastMessageView<'m> {
    raw: &'m [u8],
    template: &'m str,
    fields: &'m FastFieldTable,
}

impl<'m> ParsedMessage for FastMessageView<'m> {
    type Ref = FastFieldValue;
    const FIELD: &'static str = "field";
    const TYPE: &'static str = "template";
    const TIME: &'static str = "time (a timestamp of the template, text of ISO 8601 or FIX, or an integer with its form: path@ns, \
                                path@YYYYMMDDhhmmssfff)";

    fn raw(&self) -> &[u8] {
        self.raw
    }

    #[inline]
    fn slot(&self, slot: u8) -> Option<FastFieldValue> {
        self.fields.slot_value(slot)
    }

    #[inline]
    fn text<'v>(&'v self, field: FastFieldValue, scratch: &'v mut Vec<u8>) -> &'v [u8] {
        match field.value {
            FastStoredValue::Template => self.template.as_bytes(),
            FastStoredValue::Text { from, to } => self.fields.bytes(from, to),
            value => {
                scratch.clear();
                write_plain(value, self.fields, scratch);
                scratch
            }
        }
    }

    #[inline]
    fn number(&self, field: FastFieldValue) -> Option<u64> {
        match field.value {
            FastStoredValue::UInt(n) => Some(n),
            FastStoredValue::Int(n) => u64::try_from(n).ok(),
            FastStoredValue::Decimal { .. }
            | FastStoredValue::Text { .. }
            | FastStoredValue::Bytes { .. }
            | FastStoredValue::Template => parse_u64(self.text(field, &mut Vec::new())),
        }
    }

    fn time(&self, field: FastFieldValue) -> Option<UnixNanos> {
        let count = match field.value {
            FastStoredValue::UInt(n) => i64::try_from(n).ok()?,
            FastStoredValue::Int(n) => n,
            FastStoredValue::Text { from, to } => {
                let text = self.fields.bytes(from, to);
                let parsed = || time::iso(text).or_else(|| value::timestamp(text));
                return match field.reading {
                    FastValueConversion::AsItIs => parsed().map(UnixNanos),
                    // Digits, though they were written as text.
                    FastValueConversion::Count(_) | FastValueConversion::Digits(_) => {
                        let n = parse_u64(text)?;
                        self.time(FastFieldValue { value: FastStoredValue::UInt(n), ..field })
                    }
                };
            }
            FastStoredValue::Decimal { .. } | FastStoredValue::Bytes { .. } | FastStoredValue::Template => {
                return None;
            }
        };
        let nanos = match field.reading {
            FastValueConversion::AsItIs if field.unit_ns == 0 => None,
            FastValueConversion::AsItIs => count.checked_mul(i64::try_from(field.unit_ns).ok()?),
            FastValueConversion::Count(nanos) => count.checked_mul(nanos),
            FastValueConversion::Digits(picture) => picture.to_unix_nanos(u64::try_from(count).ok()?),
        };
        nanos.map(UnixNanos)
    }

    #[inline]
    fn set_field(
        &self,
        field: FastFieldValue,
        event: &mut EventBuilder<'_>,
        spec: &EventFieldSpec,
        names: &mut BlockNameResolver<'_>,
        scratch: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let (mantissa, exponent) = match field.value {
            FastStoredValue::Decimal { mantissa, exponent } => (mantissa, exponent),
            FastStoredValue::Int(n) => (n, 0),
            FastStoredValue::UInt(n) if i64::try_from(n).is_ok() => (n as i64, 0),
            FastStoredValue::UInt(_)
            | FastStoredValue::Text { .. }
            | FastStoredValue::Bytes { .. }
            | FastStoredValue::Template => {
                return event.set_text(spec, self.text(field, scratch), names);
            }
        };
        match spec.slot {
            FieldLayout::Price { .. } => event.set(spec, EventValue::Price(price(mantissa, exponent)?)),
            FieldLayout::Decimal { .. } | FieldLayout::DecimalNarrow { .. } | FieldLayout::DecimalExt => {
                event.set(spec, EventValue::Decimal(Decimal::new(mantissa, exponent)?))
            }
            FieldLayout::UInt { .. } if exponent == 0 => {
                event.set(spec, EventValue::UInt(u64::try_from(mantissa).map_err(|_| Refusal::BadInteger)?))
            }
            _ => event.set_text(spec, self.text(field, scratch), names),
        }
    }

    #[inline]
    fn next_entry(
        &self,
        group: usize,
        cursor: &mut EntryCursor,
        entry: &mut [Option<FastFieldValue>],
    ) -> Result<bool, MessageRefusal> {
        let has_entry = self.fields.entry(group, cursor.position, entry);
        *cursor = EntryCursor { position: cursor.position + 1, entry_count: cursor.entry_count + 1 };
        Ok(has_entry)
    }

    fn visit_unlisted(
        &self,
        groups: &[usize],
        mut keep: impl FnMut(&str, &[u8]) -> Result<(), MessageRefusal>,
    ) -> Result<(), MessageRefusal> {
        let (mut start, mut counts) = (0, FxHashMap::default());
        for entry in self.fields.entry_spans(groups) {
            self.keep_values(start..entry.start, &mut counts, &mut keep)?;
            start = start.max(entry.end);
        }
        self.keep_values(start..u32::MAX, &mut counts, &mut keep)
    }

    fn unlisted_in_entry(
        &self,
        step: EntryStep,
        mut keep: impl FnMut(&str, &[u8]) -> Result<(), MessageRefusal>,
    ) -> Result<(), MessageRefusal> {
        let entry = self.fields.entry_span(step.group, step.before.position);
        self.keep_values(entry, &mut FxHashMap::default(), &mut keep)
    }
}

impl<'m> FastMessageView<'m> {
    /// Keeps the unlisted values with these numbers; `counts` has how many there were so far of each path.
    fn keep_values(
        &self,
        numbers: Range<u32>,
        counts: &mut FxHashMap<&'m str, u32>,
        keep: &mut impl FnMut(&str, &[u8]) -> Result<(), MessageRefusal>,
    ) -> Result<(), MessageRefusal> {
        let mut scratch = Vec::new();
        for (path, field) in self.fields.unlisted_values(numbers) {
            let count: &mut u32 = counts.entry(path).or_default();
            *count += 1;
            let text = self.text(field, &mut scratch);
            match count {
                1 => keep(path, text)?,
                n => keep(&format!("{path}#{n}"), text)?,
            }
        }
        Ok(())
    }
}

/// Writes a value in plain text: digits, with a point before decimals; bytes in hexadecimal.
fn write_plain(value: FastStoredValue, fields: &FastFieldTable, out: &mut Vec<u8>) {
    // Writing to a Vec cannot fail.
    _ = match value {
        FastStoredValue::Int(n) => write!(out, "{n}"),
        FastStoredValue::UInt(n) => write!(out, "{n}"),
        FastStoredValue::Decimal { mantissa, exponent: 0 } => write!(out, "{mantissa}"),
        FastStoredValue::Decimal { mantissa, exponent } if exponent > 0 => {
            let zeros = if mantissa == 0 { 0 } else { exponent as usize };
            write!(out, "{mantissa}{:0>zeros$}", "")
        }
        FastStoredValue::Decimal { mantissa, exponent } => {
            let places = usize::from(exponent.unsigned_abs());
            let digits = format!("{:0>width$}", mantissa.unsigned_abs(), width = places + 1);
            let (integer, fraction) = digits.split_at(digits.len() - places);
            write!(out, "{}{integer}.{fraction}", if mantissa < 0 { "-" } else { "" })
        }
        FastStoredValue::Bytes { from, to } => {
            fields.bytes(from, to).iter().try_for_each(|b| write!(out, "{b:02x}"))
        }
        FastStoredValue::Text { .. } | FastStoredValue::Template => Ok(()),
    };
}
