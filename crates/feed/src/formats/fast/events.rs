//! Packets of a capture to events: FAST as the format of a feed.
//!
//! | step | events |
//! |---|---|
//! | level | `level` |
//! | clear | `level` with the action `R` |
//! | trade | `trade` |
//! | state | `status` with the venue's code, and `session` where the mapping has a phase for it, of each instrument of the product |
//! | instrument | `ref` |
//! | stale | `status` with the state `stale`; where a snapshot will mend it also `level` with the action `R`: no book is better than a wrong one |
//! | recovered, whole, missing, lost, no_room, restart | `status` with this word as its state |
//! | line down, line up | `status` with the state `line_down`, `line_up`, with `channel`, `line` and `since` |
//!
//! Levels of snapshots, and those that waited for one, have the flag `snapshot`.
//!
//! **The account.** A message with events is one; one whose levels wait for a snapshot is ignored, and its levels
//! come with that snapshot. A packet that is not looked into (a duplicate, one of a channel that nobody needs now,
//! one that cannot be used) counts as one message. Messages held back by a missing packet reach the tape with the
//! packet that lets the channel continue. All events of a unit have one place, in that packet. Places increase, so
//! that they show what is on a tape. The event keeps the place of its own message as `place`.

use crate::block::json::json_string;
use crate::block::{Block, BlockMessageKind, MessageSpan};
use crate::error::Error;
use crate::formats::format::{ByteFormat, FormatDecoder, SourceContext, Statefulness};
use crate::mapping::Mapping;
use crate::reference::{InstrumentLookup, PlainInstruments, ReferenceLookup};
use std::any::Any;
use std::sync::Arc;
use unitape_marketdata::engine::{
    ChannelRole, Engine, EngineStats, EventContext, HandlerConfig, MarketEvent, MarketEventSink,
    MessageOutcome, Packet, StateCode, UpdateAction,
};
use unitape_model::Side;
use unitape_model::event::EventValue;
use unitape_model::{
    Dictionary, EventBuilder, EventField, EventKind, FrameHeader, InlineId, InstrumentId, Price, ProductId,
    Refusal, UnixNanos, flags, schema,
};

/// Kept with a `status` `missing`: no `lost` reported the packets of these messages.
pub(crate) const ALONE: &str = "alone";

/// Kept with a `status` `lost` of snapshots and reference data, which a venue sends again and again.
pub(crate) const SENT_AGAIN: &str = "sent_again";

/// Decodes blocks of captures; one per feed.
#[derive(Debug)]
pub struct FastDecoder {
    config: Arc<HandlerConfig>,
    venue: String,
    handler: Engine,
    /// The engine of the previous mapping, when this one was reloaded: its books are over.
    previous_engine: Option<Engine>,
    reference_lookup: Option<ReferenceLookup>,
    unit_offsets: UnitOffsetRange,
}

/// The possible place of the next unit.
#[derive(Clone, Copy, Debug, Default)]
struct UnitOffsetRange {
    /// Behind the last one.
    next_offset: u64,
    /// Units are before this.
    end_offset: u64,
}

/// Packets of captures and sockets, by a market-data handler.
#[derive(Debug)]
pub(super) struct FastChannelsFormat;

impl ByteFormat for FastChannelsFormat {
    fn decoder(&self, mapping: &Mapping) -> Result<Box<dyn FormatDecoder>, Error> {
        Ok(Box::new(FastDecoder::new(mapping)?))
    }

    /// Checks a mapping. A mapping without templates and channels has no decoder: other mappings refer to it with
    /// `like`.
    fn check_mapping(&self, mapping: &Mapping) -> Result<(), Error> {
        mapping.check_fast()
    }

    /// Captures are cut by their records.
    fn cut_offset(&self, buf: &[u8]) -> usize {
        buf.len()
    }

    fn statefulness(&self) -> Statefulness {
        Statefulness::Stream
    }

    fn books(&self) -> Option<&'static str> {
        Some("marked")
    }
}

impl FastDecoder {
    /// Makes a decoder from the table `[fast]` of a mapping.
    ///
    /// # Errors
    /// Fails if the table is wrong or missing, or has no templates.
    pub fn new(mapping: &Mapping) -> Result<Self, Error> {
        let config = mapping.fast_config()?;
        Ok(Self {
            handler: Engine::new(config.clone()),
            previous_engine: None,
            venue: mapping.fast_table()?.venue().to_owned(),
            config,
            reference_lookup: mapping.reference.clone().map(ReferenceLookup::new),
            unit_offsets: UnitOffsetRange::default(),
        })
    }

    /// Processes a packet, or the end of the source.
    fn process_packet(
        &mut self,
        block: &mut Block,
        source: u32,
        dictionary: &Dictionary,
        packet: Option<Packet<'_>>,
    ) {
        let context = SourceContext { source, dictionary };
        match self.reference_lookup.take() {
            Some(mut lookup) => {
                self.process_packet_with(block, context, &mut lookup, packet);
                self.reference_lookup = Some(lookup);
            }
            None => self.process_packet_with(block, context, &mut PlainInstruments, packet),
        }
    }

    fn process_packet_with<I: InstrumentLookup>(
        &mut self,
        block: &mut Block,
        context: SourceContext<'_>,
        lookup: &mut I,
        packet: Option<Packet<'_>>,
    ) {
        let SourceContext { source, dictionary } = context;
        let Self { handler, previous_engine: before, unit_offsets, venue, .. } = self;
        let (last, more) = (block.mark().arena, block.more);
        let mut out = FastEventWriter {
            block,
            dictionary,
            instrument_lookup: lookup,
            unit_offsets,
            venue,
            source,
            count: 0,
            ts: UnixNanos(0),
            first_start: last,
            last_start: last,
            is_quarantined: false,
        };
        if let Some(mut old_engine) = before.take() {
            old_engine.finish(&mut out);
            old_engine.close(&mut out);
        }
        match packet {
            Some(packet) => handler.packet(packet, &mut out),
            None => {
                handler.finish(&mut out);
                if more {
                    handler.close(&mut out);
                }
            }
        }
        out.extend_last_unit();
    }
}

impl FormatDecoder for FastDecoder {
    /// Decodes a block, which is a datagram.
    fn decode_block(&mut self, block: &mut Block, source: u32, dictionary: &Dictionary) {
        let bytes = std::mem::take(&mut block.bytes);
        let Some((to, ts_recv)) = block.sent.filter(|_| block.in_packet) else {
            if !bytes.is_empty() {
                let detail = "a handler reads packets: captures, or sockets";
                block.quarantine(source, block.base, &bytes, "no_packets", detail);
            }
            block.decoded = bytes.len();
            block.bytes = bytes;
            return;
        };
        let packet = Packet { to, ts_recv, position: block.base, payload: &bytes };
        self.unit_offsets.next_offset = self.unit_offsets.next_offset.max(block.base);
        self.unit_offsets.end_offset = block.base + bytes.len() as u64;
        self.process_packet(block, source, dictionary, Some(packet));
        block.decoded = bytes.len();
        block.bytes = bytes;
    }

    fn begin_source(&mut self) {
        self.handler = Engine::new(self.config.clone());
        self.unit_offsets = UnitOffsetRange::default();
    }

    /// Takes over from the previous handler: emits its waiting messages unchanged and marks its books as stale.
    fn resume_from(&mut self, before: &mut dyn FormatDecoder) {
        let Some(other_decoder) = (before as &mut dyn Any).downcast_mut::<Self>() else { return };
        self.previous_engine =
            Some(std::mem::replace(&mut other_decoder.handler, Engine::new(other_decoder.config.clone())));
        self.unit_offsets = other_decoder.unit_offsets;
    }

    /// Ends a block. Bytes of a capture that are no packet have units too, so a message that waits meanwhile gets a
    /// later offset.
    fn end_block(&mut self, block: &Block) {
        let last_unit = block.units.iter().rev().find(|unit| !unit.is_progress());
        self.unit_offsets.next_offset =
            self.unit_offsets.next_offset.max(last_unit.map_or(0, |unit| unit.offset + 1));
    }

    /// Ends a source: emits waiting messages unchanged. If another source follows, its books are stale, because this
    /// handler knows nothing of it. After the last source they stay unchanged.
    fn end_source(&mut self, block: &mut Block, source: u32, dictionary: &Dictionary) {
        self.unit_offsets.end_offset = block.base + block.bytes.len() as u64;
        self.process_packet(block, source, dictionary, None);
    }

    fn handler_stats(&self) -> Option<EngineStats> {
        Some(self.handler.stats())
    }
}

/// The destination of the events of steps.
struct FastEventWriter<'o, I> {
    block: &'o mut Block,
    dictionary: &'o Dictionary,
    instrument_lookup: &'o mut I,
    unit_offsets: &'o mut UnitOffsetRange,
    venue: &'o str,
    source: u32,
    /// Events that no unit has yet, the time of the first, and where the first and the last begin.
    count: u32,
    ts: UnixNanos,
    first_start: usize,
    last_start: usize,
    /// The current message is in quarantine, and has its unit.
    is_quarantined: bool,
}

impl<I: InstrumentLookup> MarketEventSink for FastEventWriter<'_, I> {
    fn emit(&mut self, context: &EventContext<'_>, step: MarketEvent<'_>) {
        let write_outcome = match step {
            MarketEvent::End(outcome) => return self.end_message(context, outcome),
            MarketEvent::Refused(refusal) => {
                self.extend_last_unit();
                let offset = self.offset(context.position);
                self.last_start = self.block.mark().arena;
                let offset_note = match offset == context.position {
                    true => String::new(),
                    false => format!("; its place is byte {}", context.position),
                };
                let detail = format!("{}{offset_note}", refusal.detail);
                self.block.quarantine(self.source, offset, refusal.raw, refusal.code, &detail);
                self.is_quarantined = true;
                return;
            }
            step => self.write_events(context, step),
        };
        // Our own names are short, and the handler cuts the venue's names. A name that still does not fit is
        // reported.
        if let Err(fault) = write_outcome
            && !self.is_quarantined
        {
            self.extend_last_unit();
            let offset = self.offset(context.position);
            self.last_start = self.block.mark().arena;
            self.block.quarantine(self.source, offset, &[], fault.code(), &fault.to_string());
            self.is_quarantined = true;
        }
    }
}

impl<I: InstrumentLookup> FastEventWriter<'_, I> {
    fn write_events(&mut self, context: &EventContext<'_>, step: MarketEvent<'_>) -> Result<(), Refusal> {
        let tables = context.tables;
        let instrument = |id: InstrumentId| tables.instruments[id.index()].id.as_str();
        match step {
            MarketEvent::Level(level) => self.event(context, EventKind::Level, |e| {
                e.set_listing(instrument(level.instrument))?;
                e.side(Some(level.side))?;
                e.set_text(
                    EventField::Action,
                    match level.action {
                        UpdateAction::Add => b"A",
                        UpdateAction::Change => b"C",
                        UpdateAction::Delete => b"D",
                    },
                )?;
                if level.px != Price::NONE {
                    e.set_field(EventField::Px, EventValue::Price(level.px))?;
                }
                if let Some(qty) = level.qty {
                    e.set_field(EventField::Qty, EventValue::Decimal(qty))?;
                }
                if let Some(orders) = level.orders {
                    e.set_field(EventField::Orders, EventValue::UInt(orders.into()))?;
                }
                match level.depth {
                    Some(depth) => e.set_field(EventField::Depth, EventValue::UInt(depth.into())),
                    None => Ok(()),
                }
            }),
            MarketEvent::Clear { instrument: id } => self.clear(context, instrument(id)),
            MarketEvent::Trade(trade) => self.event(context, EventKind::Trade, |e| {
                e.set_listing(instrument(trade.instrument))?;
                e.set_field(EventField::Px, EventValue::Price(trade.px))?;
                e.set_field(EventField::Qty, EventValue::Decimal(trade.qty))?;
                if let Some(id) = trade.id {
                    e.set_field(EventField::MatchId, EventValue::Id(InlineId::Number(id)))?;
                }
                e.side(trade.aggressor)
            }),
            MarketEvent::State(state) => {
                let number;
                let code = match state.code {
                    StateCode::Text(text) => text,
                    StateCode::Number(n) => {
                        number = n.to_string();
                        number.as_bytes()
                    }
                };
                let state_instrument = state.instrument.map(instrument);
                let product = &tables.products[state.product.index()];
                self.write_status(context, code, |e| {
                    match state_instrument {
                        Some(id) => e.set_listing(id)?,
                        None => e.keep_unmapped("product", &product.id)?,
                    }
                    e.set_text(
                        EventField::Reason,
                        if state_instrument.is_some() { b"instrument" } else { b"product" },
                    )
                })?;
                let Some(phase) = state.phase else { return Ok(()) };
                let instruments = tables.instruments.iter().filter(|i| i.product == state.product);
                for id in instruments
                    .map(|i| i.id.as_str())
                    .filter(|id| state_instrument.is_none_or(|selected_id| selected_id == *id))
                {
                    self.event(context, EventKind::Session, |e| {
                        e.set_listing(id)?;
                        e.set_text(EventField::Phase, phase.word().as_bytes())
                    })?;
                }
                Ok(())
            }
            MarketEvent::Instrument(id) => {
                let definition = &tables.instruments[id.index()];
                let product = &tables.products[definition.product.index()];
                self.event(context, EventKind::Ref, |e| {
                    e.instrument(&definition.id)?;
                    e.venue(EventField::Mic)?;
                    e.some_text(EventField::Symbol, &definition.symbol)?;
                    let own_currency = &definition.currency;
                    let currency = if own_currency.is_empty() { &product.currency } else { own_currency };
                    e.some_text(EventField::Ccy, currency)?;
                    if let Some(tick) = definition.tick.or(product.tick) {
                        e.set_field(EventField::Tick, EventValue::Price(tick))?;
                    }
                    if let Some(multiplier) = definition.multiplier {
                        e.set_field(EventField::Multiplier, EventValue::Decimal(multiplier))?;
                    }
                    e.keep_unmapped("product", &product.id)?;
                    e.keep_unmapped("group", tables.group(id))?;
                    match definition.depth.or(product.depth) {
                        Some(depth) => e.event.keep_unmapped("depth", &depth.to_string()),
                        None => Ok(()),
                    }
                })
            }
            MarketEvent::Stale { instrument: id, mended } => {
                self.write_status(context, b"stale", |e| e.set_listing(instrument(id)))?;
                if mended { self.clear(context, instrument(id)) } else { Ok(()) }
            }
            MarketEvent::Recovered { instrument: id } => {
                self.write_status(context, b"recovered", |e| e.set_listing(instrument(id)))
            }
            MarketEvent::Whole { product } => self.product_status(context, b"whole", product),
            MarketEvent::NoRoom { product } => self.product_status(context, b"no_room", product),
            MarketEvent::Missing { product, from, to, is_unexplained: is_single } => {
                self.block.has_findings = true;
                let id = &tables.products[product.index()].id;
                self.write_status(context, b"missing", |e| {
                    e.keep_unmapped("product", id)?;
                    e.keep_range(from, to)?;
                    if is_single { e.event.keep_unmapped(ALONE, "true") } else { Ok(()) }
                })
            }
            MarketEvent::Lost { from, to } => {
                let channel = &tables.channels[context.channel.index()];
                let is_gap = channel.role == ChannelRole::Incremental;
                self.block.has_findings |= is_gap;
                self.write_status(context, b"lost", |e| {
                    e.keep_unmapped("channel", &channel.name)?;
                    e.keep_range(from, to)?;
                    if is_gap { Ok(()) } else { e.event.keep_unmapped(SENT_AGAIN, "true") }
                })
            }
            MarketEvent::Restart => {
                let channel = &tables.channels[context.channel.index()].name;
                self.write_status(context, b"restart", |e| e.keep_unmapped("channel", channel))
            }
            MarketEvent::LineDown { line, since } => self.line_status(context, b"line_down", line, since),
            MarketEvent::LineUp { line, since } => self.line_status(context, b"line_up", line, since),
            MarketEvent::Product(_) | MarketEvent::Refused(_) | MarketEvent::End(_) => Ok(()),
        }
    }

    fn clear(&mut self, context: &EventContext<'_>, instrument: &str) -> Result<(), Refusal> {
        self.event(context, EventKind::Level, |e| {
            e.set_listing(instrument)?;
            e.set_text(EventField::Action, b"R")
        })
    }

    /// Reports that a line of a channel is down, or back.
    fn line_status(
        &mut self,
        context: &EventContext<'_>,
        state: &[u8],
        line: u8,
        since: UnixNanos,
    ) -> Result<(), Refusal> {
        let channel = &context.tables.channels[context.channel.index()].name;
        self.block.has_findings = true;
        self.write_status(context, state, |e| {
            e.keep_unmapped("channel", channel)?;
            e.keep_unmapped("line", if line == 0 { "A" } else { "B" })?;
            e.event.keep_unmapped("since", &since.0.to_string())
        })
    }

    fn product_status(
        &mut self,
        context: &EventContext<'_>,
        state: &[u8],
        product: ProductId,
    ) -> Result<(), Refusal> {
        let id = &context.tables.products[product.index()].id;
        self.write_status(context, state, |e| e.keep_unmapped("product", id))
    }

    fn write_status(
        &mut self,
        context: &EventContext<'_>,
        state: &[u8],
        fill: impl FnOnce(&mut FastEventDraft<'_, I>) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        self.event(context, EventKind::Status, |e| {
            e.venue(EventField::Venue)?;
            e.set_text(EventField::State, state)?;
            fill(e)
        })
    }

    fn event(
        &mut self,
        context: &EventContext<'_>,
        kind: EventKind,
        fill: impl FnOnce(&mut FastEventDraft<'_, I>) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let ts = context.ts_event;
        self.instrument_lookup.set_event((!self.venue.is_empty()).then_some(self.venue.as_bytes()), ts);
        let frame_start = self.block.arena.len();
        let has_waited = context.length > 0 && context.position < self.unit_offsets.next_offset;
        let (arena, names) = self.block.builder(self.dictionary);
        let mut event = EventBuilder::begin(arena, kind, ts);
        // The place is that of its unit, see `stand`.
        event.source(self.source, 0);
        if let Some(sequence) = context.sequence {
            event.sequence(sequence);
        }
        let mut draft = FastEventDraft {
            event,
            names,
            instrument_lookup: &mut *self.instrument_lookup,
            venue: self.venue,
        };
        let fill_outcome = fill(&mut draft).and_then(|()| match has_waited {
            true => draft.event.keep_unmapped("place", &context.position.to_string()),
            false => Ok(()),
        });
        let event = draft.event;
        match fill_outcome {
            Ok(()) => event.finish(if context.snapshot { flags::SNAPSHOT } else { 0 }).map(drop)?,
            Err(refusal) => {
                event.abandon();
                return Err(refusal);
            }
        }
        if self.count == 0 {
            (self.ts, self.first_start) = (context.ts_event, frame_start);
        }
        (self.count, self.last_start) = (self.count + 1, frame_start);
        Ok(())
    }

    /// Ends a message.
    fn end_message(&mut self, context: &EventContext<'_>, outcome: MessageOutcome) {
        if std::mem::take(&mut self.is_quarantined) {
            return self.extend_last_unit();
        }
        if outcome == MessageOutcome::Early {
            return self.extend_last_unit();
        }
        if self.count > 0 {
            return self.add_unit(context.position, context.length as usize);
        }
        match outcome {
            MessageOutcome::Duplicate => self.block.end_duplicate(),
            MessageOutcome::Early => {}
            MessageOutcome::Used
            | MessageOutcome::Ignored
            | MessageOutcome::Waits
            | MessageOutcome::Refused => self.block.end_ignored(),
        }
    }

    /// Makes the pending events the unit of a message.
    fn add_unit(&mut self, source_offset: u64, length: usize) {
        let has_unit = self.block.units.last().is_some_and(|unit| !unit.is_progress());
        if self.unit_offsets.next_offset >= self.unit_offsets.end_offset && has_unit {
            // The packet completes more messages than it has bytes: they are part of its last unit.
            self.block.tally.messages += 1;
            self.block.tally.with_events += 1;
            return self.extend_last_unit();
        }
        self.mark_last(true, self.last_start);
        let offset = self.offset(source_offset);
        self.set_offset(offset);
        let room = self.unit_offsets.end_offset.saturating_sub(offset) as usize;
        let span = MessageSpan { offset, length: length.min(room) };
        self.block.end_message(span, self.ts, self.count, BlockMessageKind::Events, self.dictionary);
        self.count = 0;
    }

    /// Adds the pending events, if there are any, to the previous unit.
    fn extend_last_unit(&mut self) {
        if self.count == 0 {
            return;
        }
        if self.block.units.last().is_none_or(crate::block::BlockMessage::is_progress) {
            return self.add_unit(self.unit_offsets.next_offset, 0);
        }
        let frames_start =
            self.block.units[..self.block.units.len() - 1].last().map_or(0, |u| u.end as usize);
        let (mut frame_start, mut before) = (frames_start, frames_start);
        let frames_end = self.block.units.last().map_or(0, |u| u.end as usize);
        while frame_start < frames_end {
            before = frame_start;
            frame_start += FrameHeader::read(&self.block.arena[frame_start..]).len_bytes();
        }
        self.mark_last(false, before);
        self.mark_last(true, self.last_start);
        self.set_offset(self.block.units.last().map_or(0, |u| u.offset));
        self.block.extend_last(self.count, self.dictionary);
        self.count = 0;
    }

    fn mark_last(&mut self, last: bool, frame_start: usize) {
        let header = FrameHeader::read(&self.block.arena[frame_start..]);
        let bits = header.flags() & !flags::LAST | if last { flags::LAST } else { 0 };
        header.with_flags(bits).write(&mut self.block.arena[frame_start..]);
    }

    /// Sets the source offset of the pending events.
    fn set_offset(&mut self, offset: u64) {
        let arena = &mut self.block.arena;
        let mut frame_start = self.first_start;
        while frame_start < arena.len() {
            let length = FrameHeader::read(&arena[frame_start..]).len_bytes();
            arena[frame_start + schema::at::OFFSET..][..4].copy_from_slice(&(offset as u32).to_le_bytes());
            frame_start += length;
        }
    }

    /// Returns the offset of a unit. Offsets must increase, so that they show which messages are on a tape.
    fn offset(&mut self, source_offset: u64) -> u64 {
        let offset = source_offset.max(self.unit_offsets.next_offset);
        self.unit_offsets.next_offset = offset + 1;
        offset
    }
}

/// The current event.
struct FastEventDraft<'e, I> {
    event: EventBuilder<'e>,
    names: crate::block::BlockNameResolver<'e>,
    instrument_lookup: &'e mut I,
    venue: &'e str,
}

impl<I: InstrumentLookup> FastEventDraft<'_, I> {
    fn set_field(&mut self, field: EventField, value: EventValue<'_>) -> Result<(), Refusal> {
        self.event.set_field(field, value)
    }

    fn set_text(&mut self, field: EventField, text: &[u8]) -> Result<(), Refusal> {
        let spec = self.event.schema().get(field).expect("a field of the kind");
        self.event.set_text(spec, text, &mut self.instrument_lookup.resolver(&mut self.names))
    }

    fn some_text(&mut self, field: EventField, text: &str) -> Result<(), Refusal> {
        if text.is_empty() { Ok(()) } else { self.set_text(field, text.as_bytes()) }
    }

    fn venue(&mut self, field: EventField) -> Result<(), Refusal> {
        let venue = self.venue;
        self.some_text(field, venue)
    }

    fn instrument(&mut self, id: &str) -> Result<(), Refusal> {
        self.set_text(EventField::Instr, if id.is_empty() { b"?" } else { id.as_bytes() })
    }

    /// Sets venue and instrument.
    fn set_listing(&mut self, id: &str) -> Result<(), Refusal> {
        self.venue(EventField::Venue)?;
        self.instrument(id)
    }

    fn side(&mut self, side: Option<Side>) -> Result<(), Refusal> {
        match side {
            Some(Side::Buy) => self.set_text(EventField::Side, b"B"),
            Some(Side::Sell) => self.set_text(EventField::Side, b"S"),
            None => Ok(()),
        }
    }

    fn keep_unmapped(&mut self, name: &str, text: &str) -> Result<(), Refusal> {
        if text.is_empty() { Ok(()) } else { self.event.keep_unmapped(name, &json_string(text.as_bytes())) }
    }

    fn keep_range(&mut self, from: u64, to: u64) -> Result<(), Refusal> {
        self.event.keep_unmapped("from", &from.to_string())?;
        self.event.keep_unmapped("to", &to.to_string())
    }
}
