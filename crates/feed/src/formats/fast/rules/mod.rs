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
    noted: FastFieldTable,
    /// No message of the current source can be located any more.
    lost: bool,
    detail: String,
    /// Heads of blocks in quarantine: a message by itself, and one that needs those before it.
    alone: Arc<[u8]>,
    after: Arc<[u8]>,
}

/// Messages of FAST by the rules of a mapping.
#[derive(Debug)]
pub struct FastMappingFormat {
    text: FastMessagesConfig,
}

/// Reads the templates of a mapping.
///
/// # Errors
/// When there are none, one cannot be read, or there are no rules.
pub fn load(mapping: &mut Mapping) -> Result<(), Error> {
    mapping.needs_rules()?;
    mapping.template_texts = read_templates(mapping)?;
    Ok(())
}

impl FastMappingFormat {
    /// By the table `[fast_messages]` of a mapping.
    ///
    /// # Errors
    /// When the table is wrong.
    pub fn new(mapping: &Mapping) -> Result<Self, Error> {
        Ok(Self { text: FastMessagesConfig::from_mapping(mapping)? })
    }
}

impl ByteFormat for FastMappingFormat {
    fn decoder(&self, mapping: &Mapping) -> Result<Box<dyn FormatDecoder>, Error> {
        Ok(Box::new(FastMappingDecoder::new(mapping, &self.text)?))
    }

    fn cut(&self, buf: &[u8]) -> usize {
        frames::cut(self.text.framing, buf)
    }

    fn statefulness(&self) -> Statefulness {
        match self.text.is_stream() {
            true => Statefulness::Stream,
            false => Statefulness::Stateless,
        }
    }
}

impl FastMappingDecoder {
    /// A decoder by `mapping`.
    ///
    /// # Errors
    /// When the mapping cannot be compiled, or its templates not be loaded.
    pub fn new(mapping: &Mapping, text: &FastMessagesConfig) -> Result<Self, Error> {
        let templates = templates(mapping)?;
        let (plan, places) = compile(mapping, &FastDialect::new(&templates))?;
        let config = text.clone();
        Ok(Self {
            decoder: Decoder::new(templates).with_strict(config.strict),
            noted: FastFieldTable::new(&places, plan.slot_count),
            mapper: MessageMapper::new(plan),
            config,
            lost: false,
            detail: String::new(),
            alone: b"="[..].into(),
            after: b"+"[..].into(),
        })
    }

    /// A message of a quarantine once more.
    #[cold]
    fn retry(&mut self, block: &mut Block, bytes: &[u8], of: SourceContext<'_>) {
        block.decoded = bytes.len();
        if block.head != self.alone {
            let detail = "what it means depends on what came before it";
            return block.quarantine(of.source, block.base, bytes, "not_alone", detail);
        }
        self.decoder.reset();
        self.packet(block, bytes, 0..bytes.len(), of, false);
    }

    /// The payload of a datagram.
    fn datagram(&mut self, block: &mut Block, bytes: &[u8], of: SourceContext<'_>) {
        block.decoded = bytes.len();
        if self.config.framing != FastMessageFraming::LengthPrefix {
            return self.packet(block, bytes, 0..bytes.len(), of, self.config.framing.has_many_messages());
        }
        let mut at = 0;
        loop {
            match frames::next(self.config.framing, bytes, at, 0, true) {
                NextFastPacket::Packet(range, end) => {
                    self.packet(block, bytes, range, of, true);
                    at = end;
                }
                NextFastPacket::Bad { end, code, what } => {
                    self.bad(block, of.source, &bytes[at..end], at, FramingFault { code, what });
                    at = end;
                }
                NextFastPacket::Open | NextFastPacket::Incomplete | NextFastPacket::End => return,
            }
        }
    }

    /// A stretch of a file or a stream.
    fn decode_block(&mut self, block: &mut Block, bytes: &[u8], of: SourceContext<'_>) {
        let mut at = 0;
        loop {
            let next = match frames::next(self.config.framing, bytes, at, block.base, block.eof) {
                NextFastPacket::Open => self.open(block, bytes, at, of),
                next => next,
            };
            let end = match next {
                NextFastPacket::Packet(range, end) => {
                    if !self.config.framing.is_open_ended() {
                        self.packet(block, bytes, range, of, self.config.framing.has_many_messages());
                    }
                    end
                }
                NextFastPacket::Bad { end, code, what } => {
                    self.bad(block, of.source, &bytes[at..end], at, FramingFault { code, what });
                    end
                }
                NextFastPacket::Open | NextFastPacket::Incomplete | NextFastPacket::End => {
                    block.decoded = at;
                    return;
                }
            };
            block.progress(block.base + at as u64, block.base + end as u64);
            at = end;
        }
    }

    /// Decodes a message that shows its own end. After a bad one, no message can be located.
    fn open(&mut self, block: &mut Block, bytes: &[u8], at: usize, of: SourceContext<'_>) -> NextFastPacket {
        if self.lost {
            return frames::piece(bytes, at, block.base, block.eof, LOST);
        }
        if self.config.reset != DictionaryResetRule::Never {
            self.decoder.reset();
        }
        // No more is looked at, so that it comes to the same however much is there.
        let end = bytes.len().min(at + PACKET_BYTES_MAX);
        let more = !block.eof && end == bytes.len() && end < at + PACKET_BYTES_MAX;
        match self.message(block, bytes, at..end, of, self.config.reset == DictionaryResetRule::Never) {
            Ok(used) => NextFastPacket::Packet(at..at + used, at + used),
            Err(fault) if fault.code == MessageFaultCode::Truncated && more => NextFastPacket::Incomplete,
            Err(fault) => match frames::piece(bytes, at, block.base, block.eof, LOST) {
                NextFastPacket::Bad { end, .. } => {
                    self.lost = true;
                    self.refuse(block, of.source, at, &bytes[at..end], &fault);
                    NextFastPacket::Packet(at..end, end)
                }
                next => next,
            },
        }
    }

    /// The messages of a packet.
    fn packet(
        &mut self,
        block: &mut Block,
        bytes: &[u8],
        range: Range<usize>,
        of: SourceContext<'_>,
        many: bool,
    ) {
        let mut at = range.start;
        if self.config.reset != DictionaryResetRule::Never {
            self.decoder.reset();
        }
        loop {
            let first = at == range.start;
            if !first && self.config.reset == DictionaryResetRule::Message {
                self.decoder.reset();
            }
            let depends = match self.config.reset {
                DictionaryResetRule::Message => false,
                DictionaryResetRule::Packet => !first,
                DictionaryResetRule::Never => true,
            };
            match self.message(block, bytes, at..range.end, of, depends) {
                Ok(used) => at += used,
                // After a bad message the rest of its packet cannot be decoded; it goes into quarantine with it.
                Err(fault) => return self.refuse(block, of.source, at, &bytes[at..range.end], &fault),
            }
            if at == range.end {
                return;
            }
            if !many {
                let fault = FramingFault { code: "rest_bytes", what: "bytes of a frame behind its message" };
                return self.bad(block, of.source, &bytes[at..range.end], at, fault);
            }
        }
    }

    /// The message at the start of a range, and how many bytes it has; `depends`: it needs those before it.
    fn message(
        &mut self,
        block: &mut Block,
        bytes: &[u8],
        range: Range<usize>,
        of: SourceContext<'_>,
        depends: bool,
    ) -> Result<usize, MessageFault> {
        let head = self.config.framing.head_bytes();
        let offset = block.base + range.start as u64;
        let raw = &bytes[range];
        let needs = if depends { &self.after } else { &self.alone };
        if !Arc::ptr_eq(&block.head, needs) {
            block.head = needs.clone();
        }
        let Some((before, body)) = raw.split_at_checked(head) else {
            return Err(MessageFault {
                code: MessageFaultCode::Truncated,
                template: String::new(),
                field: String::new(),
                at: 0,
            });
        };
        let message = self.decoder.decode(body)?;
        let used = head + message.bytes;
        let raw = &raw[..used];
        let (number, channel) = config::number_and_channel(self.config.framing, before);
        if self.noted.read(&message, number, channel).is_err() {
            let what = "more groups and sequences in each other than are taken";
            block.quarantine(of.source, offset, raw, MessageFaultCode::TooLarge.as_str(), what);
            return Ok(used);
        }
        let template = message.template;
        let templates = self.decoder.templates();
        let taken =
            FastMessageView { raw, template: &templates.list()[template].name.local, noted: &self.noted };
        self.mapper.message(block, &taken, MessageOrigin { source: of.source, offset }, of.known);
        Ok(used)
    }

    #[cold]
    fn refuse(&mut self, block: &mut Block, source: u32, at: usize, raw: &[u8], fault: &MessageFault) {
        self.detail.clear();
        // Writing to a String cannot fail.
        _ = write!(self.detail, "{fault}");
        block.quarantine(source, block.base + at as u64, raw, fault.code.as_str(), &self.detail);
    }

    /// Bytes that are no message.
    #[cold]
    fn bad(&mut self, block: &mut Block, source: u32, raw: &[u8], at: usize, fault: FramingFault) {
        block.head = self.after.clone();
        block.quarantine(source, block.base + at as u64, raw, fault.code, fault.what);
    }
}

impl FormatDecoder for FastMappingDecoder {
    fn decode_block(&mut self, block: &mut Block, source: u32, known: &Dictionary) {
        let bytes = std::mem::take(&mut block.bytes);
        let of = SourceContext { source, known };
        if !block.head.is_empty() {
            self.retry(block, &bytes, of);
        } else if block.in_packet {
            self.datagram(block, &bytes, of);
        } else {
            self.decode_block(block, &bytes, of);
        }
        block.head = Arc::default();
        block.bytes = bytes;
    }

    fn explainer(&mut self) -> Option<&mut Option<Box<MappingExplainer>>> {
        Some(self.mapper.explainer())
    }

    fn begin_source(&mut self) {
        self.decoder.reset();
        self.lost = false;
    }

    fn resume_from(&mut self, before: &mut dyn FormatDecoder) {
        let Some(before) = (before as &mut dyn Any).downcast_mut::<Self>() else { return };
        if self.config.framing == before.config.framing {
            self.lost = before.lost;
        }
        let same = |a: &Decoder, b: &Decoder| {
            format!("{:?}", a.templates().list()) == format!("{:?}", b.templates().list())
        };
        if same(&self.decoder, &before.decoder) {
            std::mem::swap(&mut self.decoder, &mut before.decoder);
        }
    }
}

const LOST: FramingFault = FramingFault {
    code: "garbage",
    what: "bytes after a bad message whose end only the message itself gives",
};

/// The message in hand.
struct FastMessageView<'m> {
    raw: &'m [u8],
    template: &'m str,
    noted: &'m FastFieldTable,
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
        self.noted.slot(slot)
    }

    #[inline]
    fn text<'v>(&'v self, found: FastFieldValue, scratch: &'v mut Vec<u8>) -> &'v [u8] {
        match found.value {
            FastStoredValue::Template => self.template.as_bytes(),
            FastStoredValue::Text { from, to } => self.noted.bytes(from, to),
            value => {
                scratch.clear();
                plain(value, self.noted, scratch);
                scratch
            }
        }
    }

    #[inline]
    fn number(&self, found: FastFieldValue) -> Option<u64> {
        match found.value {
            FastStoredValue::UInt(n) => Some(n),
            FastStoredValue::Int(n) => u64::try_from(n).ok(),
            FastStoredValue::Decimal { .. }
            | FastStoredValue::Text { .. }
            | FastStoredValue::Bytes { .. }
            | FastStoredValue::Template => parse_u64(self.text(found, &mut Vec::new())),
        }
    }

    fn time(&self, found: FastFieldValue) -> Option<UnixNanos> {
        let count = match found.value {
            FastStoredValue::UInt(n) => i64::try_from(n).ok()?,
            FastStoredValue::Int(n) => n,
            FastStoredValue::Text { from, to } => {
                let text = self.noted.bytes(from, to);
                let parsed = || time::iso(text).or_else(|| value::timestamp(text));
                return match found.reading {
                    FastValueConversion::AsItIs => parsed().map(UnixNanos),
                    // Digits, though they were written as text.
                    FastValueConversion::Count(_) | FastValueConversion::Digits(_) => {
                        let n = parse_u64(text)?;
                        self.time(FastFieldValue { value: FastStoredValue::UInt(n), ..found })
                    }
                };
            }
            FastStoredValue::Decimal { .. } | FastStoredValue::Bytes { .. } | FastStoredValue::Template => {
                return None;
            }
        };
        let nanos = match found.reading {
            FastValueConversion::AsItIs if found.unit_ns == 0 => None,
            FastValueConversion::AsItIs => count.checked_mul(i64::try_from(found.unit_ns).ok()?),
            FastValueConversion::Count(nanos) => count.checked_mul(nanos),
            FastValueConversion::Digits(picture) => picture.nanos(u64::try_from(count).ok()?),
        };
        nanos.map(UnixNanos)
    }

    #[inline]
    fn set(
        &self,
        found: FastFieldValue,
        event: &mut EventBuilder<'_>,
        spec: &EventFieldSpec,
        names: &mut BlockNameResolver<'_>,
        scratch: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let (mantissa, exponent) = match found.value {
            FastStoredValue::Decimal { mantissa, exponent } => (mantissa, exponent),
            FastStoredValue::Int(n) => (n, 0),
            FastStoredValue::UInt(n) if i64::try_from(n).is_ok() => (n as i64, 0),
            FastStoredValue::UInt(_)
            | FastStoredValue::Text { .. }
            | FastStoredValue::Bytes { .. }
            | FastStoredValue::Template => {
                return event.set_text(spec, self.text(found, scratch), names);
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
            _ => event.set_text(spec, self.text(found, scratch), names),
        }
    }

    #[inline]
    fn next_entry(
        &self,
        group: usize,
        cursor: &mut EntryCursor,
        entry: &mut [Option<FastFieldValue>],
    ) -> Result<bool, MessageRefusal> {
        let there = self.noted.entry(group, cursor.at, entry);
        *cursor = EntryCursor { at: cursor.at + 1, found: cursor.found + 1 };
        Ok(there)
    }

    fn unlisted(
        &self,
        groups: &[usize],
        mut keep: impl FnMut(&str, &[u8]) -> Result<(), MessageRefusal>,
    ) -> Result<(), MessageRefusal> {
        let (mut start, mut counts) = (0, FxHashMap::default());
        for entry in self.noted.entry_spans(groups) {
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
        let entry = self.noted.entry_span(step.group, step.before.at);
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
        for (path, found) in self.noted.unlisted_values(numbers) {
            let count: &mut u32 = counts.entry(path).or_default();
            *count += 1;
            let text = self.text(found, &mut scratch);
            match count {
                1 => keep(path, text)?,
                n => keep(&format!("{path}#{n}"), text)?,
            }
        }
        Ok(())
    }
}

/// A value in plain text: digits, with a point where there are decimals; bytes in hexadecimal.
fn plain(value: FastStoredValue, noted: &FastFieldTable, out: &mut Vec<u8>) {
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
            let (whole, fraction) = digits.split_at(digits.len() - places);
            write!(out, "{}{whole}.{fraction}", if mantissa < 0 { "-" } else { "" })
        }
        FastStoredValue::Bytes { from, to } => {
            noted.bytes(from, to).iter().try_for_each(|b| write!(out, "{b:02x}"))
        }
        FastStoredValue::Text { .. } | FastStoredValue::Template => Ok(()),
    };
}
