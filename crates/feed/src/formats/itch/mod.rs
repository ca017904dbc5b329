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
use crate::formats::block_items::{decode_items, refuse_item};
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
    /// The live orders; `None` if orders are not kept.
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
    lookup: Option<ReferenceLookup>,
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
    origin: ItchMessageOrigin,
}

/// The names that have ids already, and what resolves instruments before they get one.
struct NameContext<'k, I> {
    dictionary: &'k Dictionary,
    lookup: &'k mut I,
}

/// The distance in bytes at which the lines of orders are prefetched.
const AHEAD_BYTES: usize = 512;

/// NASDAQ ITCH, by the table `[itch]` of a mapping.
pub const FORMAT: FormatEntry = FormatEntry {
    name: "itch",
    load,
    build: |mapping| Ok(Arc::new(ItchFormat { text: ItchConfig::from_mapping(mapping)? })),
};

/// Checks a mapping: its table `[itch]` must have all settings.
fn load(mapping: &mut Mapping) -> Result<(), Error> {
    if mapping.itch.is_none() {
        return Err(mapping.refuse_key("format", "format itch needs a table [itch]".to_owned()));
    }
    let has_rules = !mapping.rule.is_empty();
    if has_rules || !mapping.message.ts.is_empty() {
        let message = "format itch has no rules: its messages are fixed, and [itch] has all settings";
        return Err(mapping.refuse_key(if has_rules { "rule" } else { "message" }, message.to_owned()));
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

    fn cut_offset(&self, buf: &[u8]) -> usize {
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

    fn context_from_file_name(&self, path: &Path) -> Result<Option<Vec<u8>>, Error> {
        date_of_source(&self.text, path)
    }
}

impl ItchDecoder {
    /// Makes a decoder from the table `[itch]` of a mapping.
    ///
    /// # Errors
    /// Fails if the table is wrong.
    pub fn new(mapping: &Mapping, text: &ItchConfig) -> Result<Self, Error> {
        let config = CheckedItchConfig::new(text).map_err(|reason| mapping.refuse_key("itch", reason))?;
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
            lookup: mapping.reference.clone().map(ReferenceLookup::new),
        })
    }

    /// Decodes the block's bytes by the framing of the feed.
    fn bytes<I: InstrumentLookup>(
        &mut self,
        block: &mut Block,
        origin: ItchMessageOrigin,
        dictionary: &Dictionary,
        lookup: &mut I,
    ) {
        match self.config.framing {
            ItchFramingConfig::Mold => {
                let bytes = std::mem::take(&mut block.bytes);
                block.decoded = self.packet(block, &bytes, origin, dictionary, lookup);
                block.bytes = bytes;
            }
            ItchFramingConfig::Length | ItchFramingConfig::Soup => {
                self.stream(block, origin, dictionary, lookup);
            }
        }
    }

    /// Decodes a stream of messages.
    fn stream<I: InstrumentLookup>(
        &mut self,
        block: &mut Block,
        origin: ItchMessageOrigin,
        dictionary: &Dictionary,
        lookup: &mut I,
    ) {
        let mut lookahead = 0;
        let batches = self.orders.is_none()
            && self.config.framing == ItchFramingConfig::Length
            && (self.images.is_ready && !self.slow && origin.midnight != NO_DAY);
        decode_items(block, origin.source, |block, bytes, mut start| {
            if batches {
                start = self.decode_batch(block, bytes, start, origin);
            }
            if let Some(orders) = &self.orders {
                lookahead = self
                    .framer
                    .look_ahead(bytes, lookahead.max(start), start + AHEAD_BYTES, |o| orders.prefetch(o));
            }
            self.framer.frame(bytes, start, block.eof).map(|frame| {
                let offset = block.base + frame.span.start as u64;
                let message_origin = ItchMessageOrigin { offset, length: frame.span.len(), ..origin };
                let names = NameContext { dictionary, lookup: &mut *lookup };
                self.message(block, bytes, frame, message_origin, names);
                frame.span
            })
        });
    }

    /// Decodes the messages of one datagram.
    fn packet<I: InstrumentLookup>(
        &mut self,
        block: &mut Block,
        bytes: &[u8],
        origin: ItchMessageOrigin,
        dictionary: &Dictionary,
        lookup: &mut I,
    ) -> usize {
        let base = block.base;
        let Some(head) = MoldPacketHeader::read(bytes) else {
            block.quarantine(
                origin.source,
                base,
                bytes,
                "truncated",
                "shorter than the head of a MoldUDP64 packet",
            );
            return bytes.len();
        };
        if block.is_retry {
            self.retry(block, bytes, head, origin, NameContext { dictionary, lookup });
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
                block.quarantine(origin.source, base, &[], "gap", &gap.to_string());
                0..head.messages()
            }
        };
        if head.messages() == 0 {
            block.end_ignored();
            return bytes.len();
        }
        let mut start = MOLD_HEAD_BYTES;
        for n in 0..head.messages() {
            let sequence = head.sequence.wrapping_add(n.into());
            let single_header = MoldPacketHeader { sequence, count: 1, ..head };
            match self.framer.frame(bytes, start, true) {
                NextItchFrame::Message(frame) => {
                    let offset = base + frame.span.start as u64;
                    let message_origin = ItchMessageOrigin {
                        offset,
                        length: frame.span.len(),
                        sequence: Some(sequence),
                        ..origin
                    };
                    match fresh.contains(&n) {
                        true => self.message(
                            block,
                            bytes,
                            frame,
                            message_origin,
                            NameContext { dictionary, lookup },
                        ),
                        false if self.mold.was_missing(sequence) => {
                            let mut raw = Vec::new();
                            single_header.write(&mut raw);
                            raw.extend_from_slice(frame.span.slice(bytes));
                            let detail = format!("message {sequence} came when later ones had been taken");
                            block.quarantine(
                                message_origin.source,
                                message_origin.offset,
                                &raw,
                                "late",
                                &detail,
                            );
                        }
                        false => block.end_duplicate(),
                    }
                    start = frame.span.end;
                }
                NextItchFrame::Bad { span, fault } => {
                    // With a head of its own, so that it can be tried again.
                    let mut raw = Vec::new();
                    single_header.write(&mut raw);
                    raw.extend_from_slice(span.slice(bytes));
                    refuse_item(block, block.origin(origin.source, span), &raw, &fault);
                    start = span.end;
                }
                NextItchFrame::Skipped(span) => {
                    block.end_ignored();
                    start = span.end;
                }
                NextItchFrame::Incomplete { .. } | NextItchFrame::End => {
                    let detail = format!("{} messages are stated, {n} are there", head.messages());
                    block.quarantine(origin.source, base, bytes, "truncated", &detail);
                    return bytes.len();
                }
            }
        }
        if start < bytes.len() {
            block.quarantine(
                origin.source,
                base + start as u64,
                &bytes[start..],
                "garbage",
                "behind the last message",
            );
        }
        bytes.len()
    }

    /// Decodes a message of the quarantine again: it is a packet of its own. It keeps its offset in the source, and
    /// its number is neither new nor missing.
    #[cold]
    fn retry<I: InstrumentLookup>(
        &mut self,
        block: &mut Block,
        bytes: &[u8],
        head: MoldPacketHeader,
        origin: ItchMessageOrigin,
        names: NameContext<'_, I>,
    ) {
        match self.framer.frame(bytes, MOLD_HEAD_BYTES, true) {
            NextItchFrame::Message(frame) if head.messages() == 1 && frame.span.end == bytes.len() => {
                let length = frame.span.len();
                let message_origin =
                    ItchMessageOrigin { offset: block.base, length, sequence: Some(head.sequence), ..origin };
                self.message(block, bytes, frame, message_origin, names);
            }
            NextItchFrame::Bad { span, fault } => refuse_item(
                block,
                MessageOrigin { source: origin.source, offset: block.base },
                span.slice(bytes),
                &fault,
            ),
            _ => block.quarantine(origin.source, block.base, bytes, "truncated", "no message of its own"),
        }
    }

    /// Returns the books that a refused message may affect: those of its security, if its code has a symbol.
    ///
    /// Only with orders does the source alone show this. Without orders, any worker decodes any block, so its table
    /// has only what that worker has seen.
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
        if self.orders.is_none() || self.lookup.is_some() {
            return AffectedBooks::Feed;
        }
        let Some(symbol) = self.stocks.symbol(message.stock_locate()) else { return AffectedBooks::Feed };
        let name = [symbol.trim_ascii_end(), self.config.symbol_suffix.as_bytes()].concat();
        AffectedBooks::from_names(Some(&name), Some(self.config.venue.as_bytes()))
    }

    /// Decodes a message to events, or to an entry of the quarantine.
    #[inline]
    fn message<I: InstrumentLookup>(
        &mut self,
        block: &mut Block,
        bytes: &[u8],
        frame: FramedItchMessage,
        origin: ItchMessageOrigin,
        names: NameContext<'_, I>,
    ) {
        let Some(message) = ItchMessage::of(frame.body(bytes)) else {
            unreachable!("the framer has looked at it")
        };
        if self.images.is_ready
            && !self.slow
            && origin.sequence.is_none()
            && self.write_frequent(block, message, origin)
        {
            return;
        }
        self.decode_by_fields(block, ItchMessageInput { bytes, bounds: frame, message, origin }, names);
    }

    #[cold]
    #[inline(never)]
    fn decode_by_fields<I: InstrumentLookup>(
        &mut self,
        block: &mut Block,
        input: ItchMessageInput<'_>,
        names: NameContext<'_, I>,
    ) {
        let ItchMessageInput { bytes, bounds, message, origin } = input;
        let NameContext { dictionary, lookup } = names;
        let mark = block.mark();
        let written = general_path::write_events(self, block, message, origin, dictionary, lookup);
        let missed = lookup.take_missed();
        match written {
            Ok((ts, count)) => {
                if missed {
                    block.note_unresolved();
                }
                block.end_message(origin.span(), ts, count, BlockMessageKind::Events, dictionary);
            }
            Err(MessageRefusal { code, detail }) => {
                block.roll_back(mark);
                let raw = bounds.span.slice(bytes);
                let concern = self.concern(message);
                let message_origin = MessageOrigin { source: origin.source, offset: origin.offset };
                if let (Some(sequence), ItchFramingConfig::Mold) = (origin.sequence, self.config.framing) {
                    let mut single_packet = Vec::new();
                    MoldPacketHeader { session: self.mold.last_session(), sequence, count: 1 }
                        .write(&mut single_packet);
                    single_packet.extend_from_slice(raw);
                    return block.quarantine_message(message_origin, &single_packet, code, &detail, &concern);
                }
                block.quarantine_message(message_origin, raw, code, &detail, &concern);
            }
        }
    }
}

impl FormatDecoder for ItchDecoder {
    fn decode_block(&mut self, block: &mut Block, source: u32, dictionary: &Dictionary) {
        let midnight = self.config.midnight_of(&block.head).unwrap_or(NO_DAY);
        self.stocks.match_dictionary(dictionary);
        self.firms.match_dictionary(dictionary);
        self.images.make_frames(&self.config, source, dictionary);
        let origin = ItchMessageOrigin { source, offset: 0, length: 0, midnight, sequence: None };
        match self.lookup.take() {
            None => self.bytes(block, origin, dictionary, &mut PlainInstruments),
            Some(mut lookup) => {
                self.bytes(block, origin, dictionary, &mut lookup);
                self.lookup = Some(lookup);
            }
        }
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

/// Makes a refusal for a fault of the codec.
fn refused(fault: ItchFault) -> MessageRefusal {
    MessageRefusal { code: ItchFaultCode::as_str(fault.code), detail: fault.to_string() }
}
