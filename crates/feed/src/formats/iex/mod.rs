//! IEX TOPS 1.6, DEEP 1.0 and DEEP+ 1.0 to events.
//!
//! ```text
//!  datagram ─▶ packet ─▶ session of its channel ─▶ messages that are new ─▶ events
//!              IEX-TP     gaps, duplicates, late ones      └▶ orders of DEEP+: a delete carries side and price
//! ```
//!
//! The meaning of the messages is fixed, so a mapping has no rules for them. Differences are in the mapping's table
//! `[iex]` (`config`). A packet says which protocol it is of, so one mapping reads all three.
//!
//! **State.** Each channel of each protocol has a session with its numbers, and DEEP+ the orders that live. The feed is
//! of the class `stream`: one decoder decodes its blocks in order, and a run that resumes reads the source from its
//! start. So the tape is the same whenever the run was stopped.

mod config;
mod events;
mod orders;
#[cfg(test)]
mod tests;

pub use config::IexConfig;

use crate::block::affected_books::AffectedBooks;
use crate::block::{Block, BlockMessageKind, MessageOrigin, MessageSpan};
use crate::error::Error;
use crate::formats::block_items::{decode_items, refuse_item};
use crate::formats::datagram_session::DatagramSession;
use crate::formats::format::{ByteFormat, FormatDecoder, FormatEntry, Statefulness};
use crate::mapping::{Mapping, MessageRefusal};
use crate::reference::{InstrumentLookup, PlainInstruments, ReferenceLookup};
use config::CheckedIexConfig;
use orders::IexOrderTable;
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use unitape_codec::iex::{
    IexFault, IexFramer, IexMessage, IexPacket, IexPacketHeader, IexPacketPart, IexProtocol, symbol_name,
};
use unitape_model::Dictionary;

/// Decodes blocks of IEX packets; one per feed.
#[derive(Debug)]
pub struct IexDecoder {
    config: CheckedIexConfig,
    channels: BTreeMap<(IexProtocol, u32), IexChannel>,
    /// Looks symbols up, if there is reference data.
    reference: Option<ReferenceLookup>,
}

/// A channel of a protocol.
#[derive(Debug, Default)]
struct IexChannel {
    sequence: DatagramSession<u32>,
    /// The orders of DEEP+ that live.
    orders: IexOrderTable,
    /// Another session has begun, and no event has said so yet.
    restarted: bool,
}

/// Channels that a source may have. IEX has one for each protocol.
const CHANNELS_MAX: usize = 256;

/// A message in its packet.
#[derive(Clone, Copy, Debug)]
struct IexMessageInput<'m> {
    header: IexPacketHeader,
    /// Its number in its session.
    sequence: u64,
    /// The message with the two bytes of its length.
    framed: &'m [u8],
    source: u32,
    /// Its place in the source.
    offset: u64,
}

impl IexMessageInput<'_> {
    /// Writes the message as a packet of its own, so that it can be retried from quarantine.
    #[cold]
    fn packet_of_its_own(&self) -> Vec<u8> {
        let header = IexPacketHeader {
            payload_bytes: self.framed.len() as u16,
            messages: 1,
            sequence: self.sequence,
            ..self.header
        };
        let mut raw = Vec::new();
        header.write(&mut raw);
        raw.extend_from_slice(self.framed);
        raw
    }

    fn origin(&self) -> MessageOrigin {
        MessageOrigin { source: self.source, offset: self.offset }
    }
}

/// The current source, the names that have ids already, and what resolves instruments before they get one.
struct DecodeContext<'k, I> {
    source: u32,
    dictionary: &'k Dictionary,
    instruments: &'k mut I,
}

/// IEX, by the table `[iex]` of a mapping.
pub const FORMAT: FormatEntry = FormatEntry {
    name: "iex",
    load,
    build: |mapping| Ok(Arc::new(IexFormat { text: IexConfig::from_mapping(mapping)? })),
};

/// Checks a mapping: its table `[iex]` must have all settings.
fn load(mapping: &mut Mapping) -> Result<(), Error> {
    if mapping.iex.is_none() {
        return Err(mapping.refuse_key("format", "format iex needs a table [iex]".to_owned()));
    }
    let has_rules = !mapping.rule.is_empty();
    if has_rules || !mapping.message.ts.is_empty() {
        let detail = "format iex has no rules: its messages are fixed, and [iex] has all settings";
        return Err(mapping.refuse_key(if has_rules { "rule" } else { "message" }, detail.to_owned()));
    }
    Ok(())
}

#[derive(Debug)]
struct IexFormat {
    text: IexConfig,
}

impl ByteFormat for IexFormat {
    fn decoder(&self, mapping: &Mapping) -> Result<Box<dyn FormatDecoder>, Error> {
        Ok(Box::new(IexDecoder::new(mapping, &self.text)?))
    }

    fn cut_offset(&self, buf: &[u8]) -> usize {
        IexFramer.cut(buf)
    }

    fn statefulness(&self) -> Statefulness {
        Statefulness::Stream
    }
}

impl IexDecoder {
    /// Makes a decoder from the table `[iex]` of a mapping.
    ///
    /// # Errors
    /// Fails if the table is wrong.
    pub fn new(mapping: &Mapping, text: &IexConfig) -> Result<Self, Error> {
        let config = CheckedIexConfig::new(text).map_err(|detail| mapping.refuse_key("iex", detail))?;
        Ok(Self {
            config,
            channels: BTreeMap::new(),
            reference: mapping.reference.clone().map(ReferenceLookup::new),
        })
    }

    /// Decodes the packets of a datagram, or of a stream; returns where it is.
    fn packets<I: InstrumentLookup>(&mut self, block: &mut Block, mut context: DecodeContext<'_, I>) {
        decode_items(block, context.source, |block, bytes, offset| {
            IexFramer.frame(bytes, offset, block.eof).map(|packet| {
                match block.is_retry {
                    true => self.retry(block, bytes, packet, &mut context),
                    false => self.packet(block, bytes, packet, &mut context),
                }
                packet.span
            })
        });
    }

    fn packet<I: InstrumentLookup>(
        &mut self,
        block: &mut Block,
        bytes: &[u8],
        packet: IexPacket,
        context: &mut DecodeContext<'_, I>,
    ) {
        let IexPacket { header, span } = packet;
        let (source, packet_offset) = (context.source, block.base + span.start as u64);
        let key = (header.protocol, header.channel);
        if self.channels.len() >= CHANNELS_MAX && !self.channels.contains_key(&key) {
            let detail = format!("channel {} beside {CHANNELS_MAX} others", header.channel);
            return block.quarantine(source, packet_offset, span.slice(bytes), "channels_full", &detail);
        }
        let channel = self.channels.entry(key).or_default();
        if channel.sequence.begins_session(header.session) {
            // Another session begins with no orders.
            channel.orders = IexOrderTable::default();
            channel.restarted = true;
        }
        // A message that is missing at the end of its packet was not had: another line may bring it.
        let is_message = |part: &IexPacketPart| matches!(part, IexPacketPart::Message { .. });
        let count = packet.parts(bytes).filter(is_message).count() as u16;
        let fresh = match channel.sequence.accept_packet(header.session, header.sequence, count) {
            Ok(fresh) => fresh,
            Err(gap) => {
                block.quarantine(source, packet_offset, &[], "gap", &gap.to_string());
                0..count
            }
        };
        if span.len() == HEARTBEAT_BYTES && header.messages == 0 && header.payload_bytes == 0 {
            return block.end_ignored();
        }
        let mut n = 0;
        for part in packet.parts(bytes) {
            match part {
                IexPacketPart::Message { span, sequence } => {
                    let offset = block.base + span.start as u64;
                    let input =
                        IexMessageInput { header, sequence, framed: span.slice(bytes), source, offset };
                    if fresh.contains(&n) {
                        self.message(block, input, context);
                    } else if self.channels[&key].sequence.was_missing(sequence) {
                        let detail = format!("message {sequence} came when later ones had been taken");
                        block.quarantine(source, offset, &input.packet_of_its_own(), "late", &detail);
                    } else {
                        block.end_duplicate();
                    }
                    n += 1;
                }
                IexPacketPart::Truncated { span, fault, .. } => {
                    refuse_item(block, block.origin(source, span), span.slice(bytes), &fault);
                }
                IexPacketPart::Behind(span) => {
                    let offset = block.base + span.start as u64;
                    block.quarantine(source, offset, span.slice(bytes), "garbage", "behind the last message");
                }
            }
        }
    }

    /// Decodes a message of the quarantine again: it is a packet of its own. It keeps its offset in the source, and
    /// its number is neither new nor missing.
    #[cold]
    fn retry<I: InstrumentLookup>(
        &mut self,
        block: &mut Block,
        bytes: &[u8],
        packet: IexPacket,
        context: &mut DecodeContext<'_, I>,
    ) {
        let IexPacket { header, span } = packet;
        self.channels.entry((header.protocol, header.channel)).or_default();
        let (source, offset) = (context.source, block.base);
        let mut parts = packet.parts(bytes);
        match (parts.next(), parts.next()) {
            (Some(IexPacketPart::Message { span, sequence }), None) => {
                let input = IexMessageInput { header, sequence, framed: span.slice(bytes), source, offset };
                self.message(block, input, context);
            }
            _ => block.quarantine(source, offset, span.slice(bytes), "truncated", "no message of its own"),
        }
    }

    /// Decodes a message to events, or to an entry of the quarantine.
    fn message<I: InstrumentLookup>(
        &mut self,
        block: &mut Block,
        input: IexMessageInput<'_>,
        context: &mut DecodeContext<'_, I>,
    ) {
        let message = match checked(&input) {
            Ok(message) => message,
            Err(fault) => {
                let raw = input.packet_of_its_own();
                let (code, detail) = (fault.code.as_str(), fault.to_string());
                return block.quarantine_message(input.origin(), &raw, code, &detail, &AffectedBooks::Feed);
            }
        };
        let mark = block.mark();
        let key = (input.header.protocol, input.header.channel);
        let channel = self.channels.get_mut(&key).expect("of the packet in hand");
        let state = events::FeedState { config: &self.config, channel };
        let written = events::write_events(state, block, message, &input, context);
        let missed = context.instruments.take_missed();
        match written {
            Ok((ts, count)) => {
                if missed {
                    block.note_unresolved();
                }
                let span = MessageSpan { offset: input.offset, length: input.framed.len() };
                block.end_message(span, ts, count, BlockMessageKind::Events, context.dictionary);
            }
            Err(MessageRefusal { code, detail }) => {
                block.roll_back(mark);
                let concern = self.concern(message);
                block.quarantine_message(input.origin(), &input.packet_of_its_own(), code, &detail, &concern);
            }
        }
    }

    /// Returns the books that a refused message may affect: those of its security.
    #[cold]
    fn concern(&self, message: IexMessage<'_>) -> AffectedBooks {
        let Some(symbol) = message.symbol() else { return AffectedBooks::Feed };
        if !events::changes_books(message) {
            return AffectedBooks::Nothing;
        }
        if self.reference.is_some() {
            return AffectedBooks::Feed;
        }
        let name = [symbol_name(symbol), self.config.symbol_suffix.as_bytes()].concat();
        AffectedBooks::from_names(Some(&name), Some(self.config.venue.as_bytes()))
    }
}

impl FormatDecoder for IexDecoder {
    fn decode_block(&mut self, block: &mut Block, source: u32, dictionary: &Dictionary) {
        match self.reference.take() {
            None => {
                let instruments = &mut PlainInstruments;
                self.packets(block, DecodeContext { source, dictionary, instruments });
            }
            Some(mut reference) => {
                let instruments = &mut reference;
                self.packets(block, DecodeContext { source, dictionary, instruments });
                self.reference = Some(reference);
            }
        }
    }

    fn begin_source(&mut self) {
        self.channels.clear();
    }

    fn resume_from(&mut self, before: &mut dyn FormatDecoder) {
        if let Some(before) = (before as &mut dyn Any).downcast_mut::<Self>() {
            self.channels = std::mem::take(&mut before.channels);
        }
    }
}

/// A packet without messages.
const HEARTBEAT_BYTES: usize = unitape_codec::iex::PACKET_HEAD_BYTES;

fn checked<'m>(input: &IexMessageInput<'m>) -> Result<IexMessage<'m>, IexFault> {
    let message = IexMessage::read(input.header.protocol, &input.framed[LENGTH_BYTES..])?;
    message.check()?;
    Ok(message)
}

/// Bytes of the length before a message.
const LENGTH_BYTES: usize = 2;
