//! NASDAQ ITCH 5.0 straight to events.
//!
//! ```text
//!  messages ─▶ stateless:    each stands alone ──────────────────────────▶ events: a delete names the order only
//!           ─▶ with orders:  ┌──────────────────────────────────┐
//!                            │ orders by reference, stocks by   │────────▶ events: a delete carries side, price,
//!                            │ locate code; in order, one source │          instrument and what was left
//!                            └──────────────────────────────────┘
//! ```
//!
//! The meaning of the messages is fixed, so a mapping has no rules for them. Frequent messages are images of events
//! that are made once a block, with the values put in (`image`). They are written many at a time (`batch`) or one by
//! one (`fast`). All others are written field by field (`general_path`). Every path writes the same bytes.
//! Differences between venues are in the mapping's table `[itch]` (`config`).
//!
//! **State.** With orders, the events of a message depend on all messages before it in its source. Such a feed is of
//! the class `stream`: its blocks are decoded in order, by one decoder that moves from worker to worker. The state
//! begins empty with each source and depends on its bytes alone. A run that resumes in the middle of a source reads
//! the source from its start again and leaves out what is on the tape already. So the tape is the same whenever the
//! run was stopped.

mod batch;
mod config;
mod firms;
mod general_path;
mod hot_path;
mod image;
mod orders;
mod prefetch;
mod session_state;
mod stocks;
#[cfg(test)]
mod tests;

pub use config::ItchConfig;
pub(super) use config::phases_of;

use crate::block::affected_books::AffectedBooks;
use crate::block::{Block, BlockMessageKind, MessageOrigin, MessageSpan};
use crate::error::Error;
use crate::formats::datagram_session::DatagramSession;
use crate::formats::format::{ByteFormat, FormatDecoder, FormatEntry, Statefulness};
use crate::mapping::{Mapping, MessageRefusal};
use crate::reference::{InstrumentLookup, PlainInstruments, ReferenceLookup};
use batch::ItchBatchScratch;
use config::{CheckedItchConfig, ItchFramingConfig, date_of_source};
use firms::FirmCache;
use image::FramePrototypes;
use orders::ItchOrderTable;
use std::any::Any;
use std::path::Path;
use std::sync::Arc;
use stocks::StockLocateTable;
use unitape_codec::itch::{
    FramedItchMessage, ItchFault, ItchFaultCode, ItchFramer, ItchMessage, MOLD_HEAD_BYTES, MoldPacketHeader,
    NextItchFrame,
};
use unitape_model::Dictionary;

/// Decodes blocks of ITCH; one per worker and feed, or one per feed where it keeps orders.
#[derive(Debug)]
pub struct ItchDecoder {
    config: CheckedItchConfig,
    framer: ItchFramer,
    /// The orders that live; none where they are not kept.
    orders: Option<ItchOrderTable>,
    stocks: StockLocateTable,
    firms: FirmCache,
    images: FramePrototypes,
    batch: ItchBatchScratch,
    /// The state of a session of MoldUDP64.
    mold: DatagramSession<[u8; 10]>,
    /// Another session has begun, and no event has said so yet.
    restarted: bool,
    /// Always field by field.
    slow: bool,
    /// Looks symbols up, if there is reference data. The meaning of a symbol then depends on the day of each message,
    /// so no images are made.
    by: Option<ReferenceLookup>,
}

/// The place of a message, and its send time.
#[derive(Clone, Copy, Debug)]
struct ItchMessageOrigin {
    source: u32,
    offset: u64,
    /// Its bytes with its length before it.
    length: usize,
    /// UTC nanoseconds of the session's midnight.
    midnight: i64,
    /// Its number in its session, where the framing has one.
    sequence: Option<u64>,
}

impl ItchMessageOrigin {
    #[inline(always)]
    fn span(&self) -> MessageSpan {
        MessageSpan { offset: self.offset, length: self.length }
    }
}

/// A message with the bytes that it was read from.
#[derive(Clone, Copy)]
struct ItchMessageInput<'m> {
    bytes: &'m [u8],
    /// Its place in `bytes`.
    bounds: FramedItchMessage,
    message: ItchMessage<'m>,
    place: ItchMessageOrigin,
}

/// The names that have ids already, and what resolves instruments before they get one.
struct NameContext<'k, I> {
    known: &'k Dictionary,
    by: &'k mut I,
}

/// So far ahead of the message in hand the lines of orders are fetched, bytes.
const AHEAD_BYTES: usize = 512;

/// NASDAQ ITCH, by the table `[itch]` of a mapping.
pub const FORMAT: FormatEntry = FormatEntry {
    name: "itch",
    load,
    by: |mapping| Ok(Arc::new(ItchFormat { text: ItchConfig::from_mapping(mapping)? })),
};

/// The table says all there is to say.
fn load(mapping: &mut Mapping) -> Result<(), Error> {
    if mapping.itch.is_none() {
        return Err(mapping.refuse_key("format", "format itch needs a table [itch]".to_owned()));
    }
    let has_rules = !mapping.rule.is_empty();
    if has_rules || !mapping.message.ts.is_empty() {
        let what = "format itch has no rules: its messages are fixed, and [itch] has all settings";
        return Err(mapping.refuse_key(if has_rules { "rule" } else { "message" }, what.to_owned()));
    }
    Ok(())
}

#[derive(Debug)]
struct ItchFormat {
    text: ItchConfig,
}

impl ByteFormat for ItchFormat {
    fn decoder(&self, mapping: &Mapping) -> Result<Box<dyn FormatDecoder>, Error> {
        Ok(Box::new(ItchDecoder::new(mapping, &self.text)?))
    }

    fn cut(&self, buf: &[u8]) -> usize {
        ItchFramer::new(self.text.framing.to_codec()).cut(buf)
    }

    fn statefulness(&self) -> Statefulness {
        match self.text.with_orders || self.text.framing == ItchFramingConfig::Mold {
            true => Statefulness::Stream,
            false => Statefulness::Stateless,
        }
    }

    fn books(&self) -> Option<&'static str> {
        (!self.text.with_orders).then_some("none")
    }

    fn head_of_name(&self, path: &Path) -> Result<Option<Vec<u8>>, Error> {
        date_of_source(&self.text, path)
    }
}

impl ItchDecoder {
    /// A decoder by the table `[itch]` of a mapping.
    ///
    /// # Errors
    /// When the table is wrong.
    pub fn new(mapping: &Mapping, text: &ItchConfig) -> Result<Self, Error> {
        let config = CheckedItchConfig::new(text).map_err(|what| mapping.refuse_key("itch", what))?;
        Ok(Self {
            framer: ItchFramer::new(config.framing.to_codec()),
            orders: config.with_orders.then(ItchOrderTable::default),
            stocks: StockLocateTable::default(),
            firms: FirmCache::default(),
            images: FramePrototypes::default(),
            batch: ItchBatchScratch::default(),
            mold: DatagramSession::default(),
            restarted: false,
            config,
            slow: mapping.reference.is_some(),
            by: mapping.reference.clone().map(ReferenceLookup::new),
        })
    }

    /// Decodes the block's bytes by the framing of the feed.
    fn bytes<I: InstrumentLookup>(
        &mut self,
        block: &mut Block,
        bytes: &[u8],
        place: ItchMessageOrigin,
        known: &Dictionary,
        by: &mut I,
    ) -> usize {
        match self.config.framing {
            ItchFramingConfig::Mold => self.packet(block, bytes, place, known, by),
            ItchFramingConfig::Length | ItchFramingConfig::Soup => {
                self.stream(block, bytes, place, known, by)
            }
        }
    }

    /// Decodes a stream of messages; gives where it is.
    fn stream<I: InstrumentLookup>(
        &mut self,
        block: &mut Block,
        bytes: &[u8],
        place: ItchMessageOrigin,
        known: &Dictionary,
        by: &mut I,
    ) -> usize {
        let (mut at, mut ahead, base) = (0, 0, block.base);
        let batches = self.orders.is_none()
            && self.config.framing == ItchFramingConfig::Length
            && (self.images.ready && !self.slow && place.midnight != NO_DAY);
        loop {
            if batches {
                at = self.batch(block, bytes, at, place);
            }
            if let Some(orders) = &self.orders {
                ahead =
                    self.framer.look_ahead(bytes, ahead.max(at), at + AHEAD_BYTES, |o| orders.prefetch(o));
            }
            let span = match self.framer.frame(bytes, at, block.eof) {
                NextItchFrame::Message(found) => {
                    let offset = base + found.span.start as u64;
                    let place = ItchMessageOrigin { offset, length: found.span.len(), ..place };
                    self.message(block, bytes, found, place, NameContext { known, by });
                    found.span
                }
                NextItchFrame::Skipped(span) => {
                    block.end_ignored();
                    span
                }
                NextItchFrame::Bad { span, fault } => {
                    refuse(block, place.source, base + span.start as u64, span.slice(bytes), &fault);
                    span
                }
                NextItchFrame::Incomplete { from, .. } => return from,
                NextItchFrame::End => return bytes.len(),
            };
            block.progress(base + span.start as u64, base + span.end as u64);
            at = span.end;
        }
    }

    /// Decodes the messages of one datagram.
    fn packet<I: InstrumentLookup>(
        &mut self,
        block: &mut Block,
        bytes: &[u8],
        place: ItchMessageOrigin,
        known: &Dictionary,
        by: &mut I,
    ) -> usize {
        let base = block.base;
        let Some(head) = MoldPacketHeader::read(bytes) else {
            block.quarantine(
                place.source,
                base,
                bytes,
                "truncated",
                "shorter than the head of a MoldUDP64 packet",
            );
            return bytes.len();
        };
        if block.is_retry {
            self.retry(block, bytes, head, place, NameContext { known, by });
            return bytes.len();
        }
        if self.mold.begins_session(head.session) {
            // Another session begins with no orders, and with a directory of its own.
            if let Some(orders) = &mut self.orders {
                orders.clear();
                self.stocks.clear();
            }
            self.restarted = true;
        }
        let fresh = match self.mold.accept_packet(head.session, head.sequence, head.messages()) {
            Ok(fresh) => fresh,
            Err(gap) => {
                block.quarantine(place.source, base, &[], "gap", &gap.to_string());
                0..head.messages()
            }
        };
        if head.messages() == 0 {
            block.end_ignored();
            return bytes.len();
        }
        let mut at = MOLD_HEAD_BYTES;
        for n in 0..head.messages() {
            let sequence = head.sequence.wrapping_add(n.into());
            let alone = MoldPacketHeader { sequence, count: 1, ..head };
            match self.framer.frame(bytes, at, true) {
                NextItchFrame::Message(found) => {
                    let offset = base + found.span.start as u64;
                    let place = ItchMessageOrigin {
                        offset,
                        length: found.span.len(),
                        sequence: Some(sequence),
                        ..place
                    };
                    match fresh.contains(&n) {
                        true => self.message(block, bytes, found, place, NameContext { known, by }),
                        false if self.mold.was_missing(sequence) => {
                            let mut raw = Vec::new();
                            alone.write(&mut raw);
                            raw.extend_from_slice(found.span.slice(bytes));
                            let detail = format!("message {sequence} came when later ones had been taken");
                            block.quarantine(place.source, place.offset, &raw, "late", &detail);
                        }
                        false => block.end_duplicate(),
                    }
                    at = found.span.end;
                }
                NextItchFrame::Bad { span, fault } => {
                    // With a head of its own, so that it can be tried again.
                    let mut raw = Vec::new();
                    alone.write(&mut raw);
                    raw.extend_from_slice(span.slice(bytes));
                    refuse(block, place.source, base + span.start as u64, &raw, &fault);
                    at = span.end;
                }
                NextItchFrame::Skipped(span) => {
                    block.end_ignored();
                    at = span.end;
                }
                NextItchFrame::Incomplete { .. } | NextItchFrame::End => {
                    let detail = format!("{} messages are stated, {n} are there", head.messages());
                    block.quarantine(place.source, base, bytes, "truncated", &detail);
                    return bytes.len();
                }
            }
        }
        if at < bytes.len() {
            block.quarantine(
                place.source,
                base + at as u64,
                &bytes[at..],
                "garbage",
                "behind the last message",
            );
        }
        bytes.len()
    }

    /// Decodes a message of the quarantine once more: a packet of its own, whose neighbours are of no interest. It is
    /// at the place where it was in its source, and its number is neither new nor missing.
    #[cold]
    fn retry<I: InstrumentLookup>(
        &mut self,
        block: &mut Block,
        bytes: &[u8],
        head: MoldPacketHeader,
        place: ItchMessageOrigin,
        names: NameContext<'_, I>,
    ) {
        match self.framer.frame(bytes, MOLD_HEAD_BYTES, true) {
            NextItchFrame::Message(found) if head.messages() == 1 && found.span.end == bytes.len() => {
                let length = found.span.len();
                let place =
                    ItchMessageOrigin { offset: block.base, length, sequence: Some(head.sequence), ..place };
                self.message(block, bytes, found, place, names);
            }
            NextItchFrame::Bad { span, fault } => {
                refuse(block, place.source, block.base, span.slice(bytes), &fault)
            }
            _ => block.quarantine(place.source, block.base, bytes, "truncated", "no message of its own"),
        }
    }

    /// The books that a refused message may concern: those of its security, if its code has a symbol.
    ///
    /// Only with orders is that known from the source alone. Without, blocks are decoded by any worker in any order, and its
    /// table has what that worker has seen.
    #[cold]
    fn concern(&self, message: ItchMessage<'_>) -> AffectedBooks {
        if !matches!(
            message,
            ItchMessage::AddOrder(_)
                | ItchMessage::AddOrderMpid(_)
                | ItchMessage::OrderExecuted(_)
                | ItchMessage::OrderExecutedPrice(_)
                | ItchMessage::OrderCancel(_)
                | ItchMessage::OrderDelete(_)
                | ItchMessage::OrderReplace(_)
                | ItchMessage::SystemEvent(_)
                | ItchMessage::TradingAction(_)
        ) {
            return AffectedBooks::Nothing;
        }
        if self.orders.is_none() || self.by.is_some() {
            return AffectedBooks::Feed;
        }
        let Some(symbol) = self.stocks.symbol(message.stock_locate()) else { return AffectedBooks::Feed };
        let name = [symbol.trim_ascii_end(), self.config.suffix.as_bytes()].concat();
        AffectedBooks::from_names(Some(&name), Some(self.config.venue.as_bytes()))
    }

    /// One message: events, or an entry of the quarantine.
    #[inline]
    fn message<I: InstrumentLookup>(
        &mut self,
        block: &mut Block,
        bytes: &[u8],
        found: FramedItchMessage,
        place: ItchMessageOrigin,
        names: NameContext<'_, I>,
    ) {
        let Some(message) = ItchMessage::of(found.body(bytes)) else {
            unreachable!("the framer has looked at it")
        };
        if self.images.ready
            && !self.slow
            && place.sequence.is_none()
            && self.write_frequent(block, message, place)
        {
            return;
        }
        self.by_fields(block, ItchMessageInput { bytes, bounds: found, message, place }, names);
    }

    #[cold]
    #[inline(never)]
    fn by_fields<I: InstrumentLookup>(
        &mut self,
        block: &mut Block,
        input: ItchMessageInput<'_>,
        names: NameContext<'_, I>,
    ) {
        let ItchMessageInput { bytes, bounds, message, place } = input;
        let NameContext { known, by } = names;
        let mark = block.mark();
        let written = general_path::write(self, block, message, place, known, by);
        let missed = by.take_missed();
        match written {
            Ok((ts, count)) => {
                if missed {
                    block.note_unresolved();
                }
                block.end_message(place.span(), ts, count, BlockMessageKind::Events, known);
            }
            Err(MessageRefusal { code, detail }) => {
                block.roll_back(mark);
                let raw = bounds.span.slice(bytes);
                let concern = self.concern(message);
                let at = MessageOrigin { source: place.source, offset: place.offset };
                if let (Some(sequence), ItchFramingConfig::Mold) = (place.sequence, self.config.framing) {
                    let mut alone = Vec::new();
                    MoldPacketHeader { session: self.mold.session(), sequence, count: 1 }.write(&mut alone);
                    alone.extend_from_slice(raw);
                    return block.quarantine_message(at, &alone, code, &detail, &concern);
                }
                block.quarantine_message(at, raw, code, &detail, &concern);
            }
        }
    }
}

impl FormatDecoder for ItchDecoder {
    fn decode_block(&mut self, block: &mut Block, source: u32, known: &Dictionary) {
        let bytes = std::mem::take(&mut block.bytes);
        let midnight = self.config.midnight_of(&block.head).unwrap_or(NO_DAY);
        self.stocks.match_dictionary(known);
        self.firms.match_dictionary(known);
        self.images.make(&self.config, source, known);
        let place = ItchMessageOrigin { source, offset: 0, length: 0, midnight, sequence: None };
        block.decoded = match self.by.take() {
            None => self.bytes(block, &bytes, place, known, &mut PlainInstruments),
            Some(mut by) => {
                let decoded = self.bytes(block, &bytes, place, known, &mut by);
                self.by = Some(by);
                decoded
            }
        };
        block.bytes = bytes;
    }

    fn begin_source(&mut self) {
        if let Some(orders) = &mut self.orders {
            orders.clear();
            self.stocks.clear();
        }
        self.mold = DatagramSession::default();
        self.restarted = false;
    }

    /// Takes over the orders.
    fn resume_from(&mut self, before: &mut dyn FormatDecoder) {
        let Some(before) = (before as &mut dyn Any).downcast_mut::<Self>() else { return };
        if self.orders.is_some() && before.orders.is_some() {
            self.orders = before.orders.take();
            self.stocks = std::mem::take(&mut before.stocks);
            self.stocks.forget_ids();
            self.firms.forget_ids();
        }
        self.mold = std::mem::take(&mut before.mold);
    }

    fn use_general_path(&mut self) {
        self.slow = true;
    }
}

/// The session date is not known, so no time can be computed.
const NO_DAY: i64 = i64::MIN;

#[cold]
fn refuse(block: &mut Block, source: u32, offset: u64, raw: &[u8], fault: &ItchFault) {
    block.quarantine(source, offset, raw, fault.code.as_str(), &fault.to_string());
}

/// A refusal with a fault of the codec.
fn refused(fault: ItchFault) -> MessageRefusal {
    MessageRefusal { code: ItchFaultCode::as_str(fault.code), detail: fault.to_string() }
}
