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
    before: Option<Engine>,
    by: Option<ReferenceLookup>,
    place: UnitOffsetRange,
}

/// The possible place of the next unit.
#[derive(Clone, Copy, Debug, Default)]
struct UnitOffsetRange {
    /// Behind the last one.
    next: u64,
    /// Units are before this.
    end: u64,
}

/// Packets of captures and sockets, by a market-data handler.
#[derive(Debug)]
pub(super) struct FastChannelsFormat;

impl ByteFormat for FastChannelsFormat {
    fn decoder(&self, mapping: &Mapping) -> Result<Box<dyn FormatDecoder>, Error> {
        Ok(Box::new(FastDecoder::new(mapping)?))
    }

    /// A mapping without templates and channels has no decoder: it is there for others to be like.
    fn check(&self, mapping: &Mapping) -> Result<(), Error> {
        mapping.check_fast()
    }

    /// Captures are cut by their records.
    fn cut(&self, buf: &[u8]) -> usize {
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
    /// A decoder by the table `[fast]` of a mapping.
    ///
    /// # Errors
    /// When the table is wrong or missing, or has no templates.
    pub fn new(mapping: &Mapping) -> Result<Self, Error> {
        let config = mapping.fast_config()?;
        Ok(Self {
            handler: Engine::new(config.clone()),
            before: None,
            venue: mapping.fast_table()?.venue().to_owned(),
            config,
            by: mapping.reference.clone().map(ReferenceLookup::new),
            place: UnitOffsetRange::default(),
        })
    }

    /// A packet, or the end.
    fn with(&mut self, block: &mut Block, source: u32, known: &Dictionary, packet: Option<Packet<'_>>) {
        let of = SourceContext { source, known };
        match self.by.take() {
            Some(mut by) => {
                self.with_names(block, of, &mut by, packet);
                self.by = Some(by);
            }
            None => self.with_names(block, of, &mut PlainInstruments, packet),
        }
    }

    fn with_names<I: InstrumentLookup>(
        &mut self,
        block: &mut Block,
        of: SourceContext<'_>,
        by: &mut I,
        packet: Option<Packet<'_>>,
    ) {
        let SourceContext { source, known } = of;
        let Self { handler, before, place, venue, .. } = self;
        let (last, more) = (block.mark().arena, block.more);
        let mut out = FastEventWriter {
            block,
            known,
            by,
            place,
            venue,
            source,
            count: 0,
            ts: UnixNanos(0),
            first: last,
            last,
            bad: false,
        };
        if let Some(mut before) = before.take() {
            before.finish(&mut out);
            before.close(&mut out);
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
        out.settle();
    }
}

impl FormatDecoder for FastDecoder {
    /// A stretch is a datagram.
    fn decode_block(&mut self, block: &mut Block, source: u32, known: &Dictionary) {
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
        let packet = Packet { to, ts_recv, place: block.base, payload: &bytes };
        self.place.next = self.place.next.max(block.base);
        self.place.end = block.base + bytes.len() as u64;
        self.with(block, source, known, Some(packet));
        block.decoded = bytes.len();
        block.bytes = bytes;
    }

    fn begin_source(&mut self) {
        self.handler = Engine::new(self.config.clone());
        self.place = UnitOffsetRange::default();
    }

    /// Messages that wait in the previous handler come unchanged, and its books are stale.
    fn resume_from(&mut self, before: &mut dyn FormatDecoder) {
        let Some(before) = (before as &mut dyn Any).downcast_mut::<Self>() else { return };
        self.before = Some(std::mem::replace(&mut before.handler, Engine::new(before.config.clone())));
        self.place = before.place;
    }

    /// Bytes of a capture that are no packet have units, too. A message that waits while they come has a later place.
    fn end_block(&mut self, block: &Block) {
        let last = block.units.iter().rev().find(|unit| !unit.is_progress());
        self.place.next = self.place.next.max(last.map_or(0, |unit| unit.offset + 1));
    }

    /// Waiting messages come unchanged. If another source follows, of which this handler will know nothing, its books
    /// are stale; after the last source they stay unchanged.
    fn end_source(&mut self, block: &mut Block, source: u32, known: &Dictionary) {
        self.place.end = block.base + block.bytes.len() as u64;
        self.with(block, source, known, None);
    }

    fn handler_stats(&self) -> Option<EngineStats> {
        Some(self.handler.stats())
    }
}

/// The destination of the events of steps.
struct FastEventWriter<'o, I> {
    block: &'o mut Block,
    known: &'o Dictionary,
    by: &'o mut I,
    place: &'o mut UnitOffsetRange,
    venue: &'o str,
    source: u32,
    /// Events that no unit has yet, the time of the first, and where the first and the last begin.
    count: u32,
    ts: UnixNanos,
    first: usize,
    last: usize,
    /// The message in hand is in quarantine, and has its unit.
    bad: bool,
}

impl<I: InstrumentLookup> MarketEventSink for FastEventWriter<'_, I> {
    fn emit(&mut self, at: &EventContext<'_>, step: MarketEvent<'_>) {
        let made = match step {
            MarketEvent::End(outcome) => return self.end(at, outcome),
            MarketEvent::Refused(refusal) => {
                self.settle();
                let offset = self.offset(at.place);
                self.last = self.block.mark().arena;
                let waited = match offset == at.place {
                    true => String::new(),
                    false => format!("; its place is byte {}", at.place),
                };
                let detail = format!("{}{waited}", refusal.detail);
                self.block.quarantine(self.source, offset, refusal.raw, refusal.code, &detail);
                self.bad = true;
                return;
            }
            step => self.events(at, step),
        };
        // Our own names are short, and the handler cuts the venue's names. A name that still does not fit is
        // reported.
        if let Err(why) = made
            && !self.bad
        {
            self.settle();
            let offset = self.offset(at.place);
            self.last = self.block.mark().arena;
            self.block.quarantine(self.source, offset, &[], why.code(), &why.to_string());
            self.bad = true;
        }
    }
}

impl<I: InstrumentLookup> FastEventWriter<'_, I> {
    fn events(&mut self, at: &EventContext<'_>, step: MarketEvent<'_>) -> Result<(), Refusal> {
        let tables = at.tables;
        let instrument = |id: InstrumentId| tables.instruments[id.index()].id.as_str();
        match step {
            MarketEvent::Level(level) => self.event(at, EventKind::Level, |e| {
                e.of(instrument(level.instrument))?;
                e.side(Some(level.side))?;
                e.text(
                    EventField::Action,
                    match level.action {
                        UpdateAction::Add => b"A",
                        UpdateAction::Change => b"C",
                        UpdateAction::Delete => b"D",
                    },
                )?;
                if level.px != Price::NONE {
                    e.set(EventField::Px, EventValue::Price(level.px))?;
                }
                if let Some(qty) = level.qty {
                    e.set(EventField::Qty, EventValue::Decimal(qty))?;
                }
                if let Some(orders) = level.orders {
                    e.set(EventField::Orders, EventValue::UInt(orders.into()))?;
                }
                match level.depth {
                    Some(depth) => e.set(EventField::Depth, EventValue::UInt(depth.into())),
                    None => Ok(()),
                }
            }),
            MarketEvent::Clear { instrument: id } => self.clear(at, instrument(id)),
            MarketEvent::Trade(trade) => self.event(at, EventKind::Trade, |e| {
                e.of(instrument(trade.instrument))?;
                e.set(EventField::Px, EventValue::Price(trade.px))?;
                e.set(EventField::Qty, EventValue::Decimal(trade.qty))?;
                if let Some(id) = trade.id {
                    e.set(EventField::MatchId, EventValue::Id(InlineId::Number(id)))?;
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
                let of = state.instrument.map(instrument);
                let product = &tables.products[state.product.index()];
                self.status(at, code, |e| {
                    match of {
                        Some(id) => e.of(id)?,
                        None => e.keep("product", &product.id)?,
                    }
                    e.text(EventField::Reason, if of.is_some() { b"instrument" } else { b"product" })
                })?;
                let Some(phase) = state.phase else { return Ok(()) };
                let all = tables.instruments.iter().filter(|i| i.product == state.product);
                for id in all.map(|i| i.id.as_str()).filter(|id| of.is_none_or(|of| of == *id)) {
                    self.event(at, EventKind::Session, |e| {
                        e.of(id)?;
                        e.text(EventField::Phase, phase.word().as_bytes())
                    })?;
                }
                Ok(())
            }
            MarketEvent::Instrument(id) => {
                let definition = &tables.instruments[id.index()];
                let product = &tables.products[definition.product.index()];
                self.event(at, EventKind::Ref, |e| {
                    e.instrument(&definition.id)?;
                    e.venue(EventField::Mic)?;
                    e.some_text(EventField::Symbol, &definition.symbol)?;
                    let own = &definition.currency;
                    let currency = if own.is_empty() { &product.currency } else { own };
                    e.some_text(EventField::Ccy, currency)?;
                    if let Some(tick) = definition.tick.or(product.tick) {
                        e.set(EventField::Tick, EventValue::Price(tick))?;
                    }
                    if let Some(multiplier) = definition.multiplier {
                        e.set(EventField::Multiplier, EventValue::Decimal(multiplier))?;
                    }
                    e.keep("product", &product.id)?;
                    e.keep("group", tables.group(id))?;
                    match definition.depth.or(product.depth) {
                        Some(depth) => e.event.keep_unmapped("depth", &depth.to_string()),
                        None => Ok(()),
                    }
                })
            }
            MarketEvent::Stale { instrument: id, mended } => {
                self.status(at, b"stale", |e| e.of(instrument(id)))?;
                if mended { self.clear(at, instrument(id)) } else { Ok(()) }
            }
            MarketEvent::Recovered { instrument: id } => {
                self.status(at, b"recovered", |e| e.of(instrument(id)))
            }
            MarketEvent::Whole { product } => self.product(at, b"whole", product),
            MarketEvent::NoRoom { product } => self.product(at, b"no_room", product),
            MarketEvent::Missing { product, from, to, alone } => {
                self.block.has_findings = true;
                let id = &tables.products[product.index()].id;
                self.status(at, b"missing", |e| {
                    e.keep("product", id)?;
                    e.range(from, to)?;
                    if alone { e.event.keep_unmapped(ALONE, "true") } else { Ok(()) }
                })
            }
            MarketEvent::Lost { from, to } => {
                let channel = &tables.channels[at.channel.index()];
                let is_gap = channel.role == ChannelRole::Incremental;
                self.block.has_findings |= is_gap;
                self.status(at, b"lost", |e| {
                    e.keep("channel", &channel.name)?;
                    e.range(from, to)?;
                    if is_gap { Ok(()) } else { e.event.keep_unmapped(SENT_AGAIN, "true") }
                })
            }
            MarketEvent::Restart => {
                let channel = &tables.channels[at.channel.index()].name;
                self.status(at, b"restart", |e| e.keep("channel", channel))
            }
            MarketEvent::LineDown { line, since } => self.line(at, b"line_down", line, since),
            MarketEvent::LineUp { line, since } => self.line(at, b"line_up", line, since),
            MarketEvent::Product(_) | MarketEvent::Refused(_) | MarketEvent::End(_) => Ok(()),
        }
    }

    fn clear(&mut self, at: &EventContext<'_>, instrument: &str) -> Result<(), Refusal> {
        self.event(at, EventKind::Level, |e| {
            e.of(instrument)?;
            e.text(EventField::Action, b"R")
        })
    }

    /// A line of a channel is down, or back.
    fn line(
        &mut self,
        at: &EventContext<'_>,
        state: &[u8],
        line: u8,
        since: UnixNanos,
    ) -> Result<(), Refusal> {
        let channel = &at.tables.channels[at.channel.index()].name;
        self.block.has_findings = true;
        self.status(at, state, |e| {
            e.keep("channel", channel)?;
            e.keep("line", if line == 0 { "A" } else { "B" })?;
            e.event.keep_unmapped("since", &since.0.to_string())
        })
    }

    fn product(&mut self, at: &EventContext<'_>, state: &[u8], product: ProductId) -> Result<(), Refusal> {
        let id = &at.tables.products[product.index()].id;
        self.status(at, state, |e| e.keep("product", id))
    }

    fn status(
        &mut self,
        at: &EventContext<'_>,
        state: &[u8],
        fill: impl FnOnce(&mut FastEventDraft<'_, I>) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        self.event(at, EventKind::Status, |e| {
            e.venue(EventField::Venue)?;
            e.text(EventField::State, state)?;
            fill(e)
        })
    }

    fn event(
        &mut self,
        at: &EventContext<'_>,
        kind: EventKind,
        fill: impl FnOnce(&mut FastEventDraft<'_, I>) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let ts = at.ts_event;
        self.by.set_event((!self.venue.is_empty()).then_some(self.venue.as_bytes()), ts);
        let start = self.block.arena.len();
        let waited = at.length > 0 && at.place < self.place.next;
        let (arena, names) = self.block.builder(self.known);
        let mut event = EventBuilder::begin(arena, kind, ts);
        // The place is that of its unit, see `stand`.
        event.source(self.source, 0);
        if let Some(sequence) = at.sequence {
            event.sequence(sequence);
        }
        let mut making = FastEventDraft { event, names, by: &mut *self.by, venue: self.venue };
        let filled = fill(&mut making).and_then(|()| match waited {
            true => making.event.keep_unmapped("place", &at.place.to_string()),
            false => Ok(()),
        });
        let event = making.event;
        match filled {
            Ok(()) => event.finish(if at.snapshot { flags::SNAPSHOT } else { 0 }).map(drop)?,
            Err(refusal) => {
                event.abandon();
                return Err(refusal);
            }
        }
        if self.count == 0 {
            (self.ts, self.first) = (at.ts_event, start);
        }
        (self.count, self.last) = (self.count + 1, start);
        Ok(())
    }

    /// A message is over.
    fn end(&mut self, at: &EventContext<'_>, outcome: MessageOutcome) {
        if std::mem::take(&mut self.bad) {
            return self.settle();
        }
        if outcome == MessageOutcome::Early {
            return self.settle();
        }
        if self.count > 0 {
            return self.unit(at.place, at.length as usize);
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

    /// The events in hand become the unit of a message.
    fn unit(&mut self, place: u64, length: usize) {
        let has_unit = self.block.units.last().is_some_and(|unit| !unit.is_progress());
        if self.place.next >= self.place.end && has_unit {
            // The packet completes more messages than it has bytes: they are part of its last unit.
            self.block.tally.messages += 1;
            self.block.tally.with_events += 1;
            return self.settle();
        }
        self.mark_last(true, self.last);
        let offset = self.offset(place);
        self.stand(offset);
        let room = self.place.end.saturating_sub(offset) as usize;
        let span = MessageSpan { offset, length: length.min(room) };
        self.block.end_message(span, self.ts, self.count, BlockMessageKind::Events, self.known);
        self.count = 0;
    }

    /// The events in hand, if any, become part of the unit before them.
    fn settle(&mut self) {
        if self.count == 0 {
            return;
        }
        if self.block.units.last().is_none_or(crate::block::BlockMessage::is_progress) {
            return self.unit(self.place.next, 0);
        }
        let from = self.block.units[..self.block.units.len() - 1].last().map_or(0, |u| u.end as usize);
        let (mut at, mut before) = (from, from);
        let end = self.block.units.last().map_or(0, |u| u.end as usize);
        while at < end {
            before = at;
            at += FrameHeader::read(&self.block.arena[at..]).len_bytes();
        }
        self.mark_last(false, before);
        self.mark_last(true, self.last);
        self.stand(self.block.units.last().map_or(0, |u| u.offset));
        self.block.extend_last(self.count, self.known);
        self.count = 0;
    }

    fn mark_last(&mut self, last: bool, at: usize) {
        let header = FrameHeader::read(&self.block.arena[at..]);
        let bits = header.flags() & !flags::LAST | if last { flags::LAST } else { 0 };
        header.with_flags(bits).write(&mut self.block.arena[at..]);
    }

    /// The events in hand are at this place of the source.
    fn stand(&mut self, offset: u64) {
        let arena = &mut self.block.arena;
        let mut at = self.first;
        while at < arena.len() {
            let length = FrameHeader::read(&arena[at..]).len_bytes();
            arena[at + schema::at::OFFSET..][..4].copy_from_slice(&(offset as u32).to_le_bytes());
            at += length;
        }
    }

    /// The place of a unit. Places increase, so that they show what is on a tape.
    fn offset(&mut self, place: u64) -> u64 {
        let offset = place.max(self.place.next);
        self.place.next = offset + 1;
        offset
    }
}

/// An event in hand.
struct FastEventDraft<'e, I> {
    event: EventBuilder<'e>,
    names: crate::block::BlockNameResolver<'e>,
    by: &'e mut I,
    venue: &'e str,
}

impl<I: InstrumentLookup> FastEventDraft<'_, I> {
    fn set(&mut self, field: EventField, value: EventValue<'_>) -> Result<(), Refusal> {
        self.event.set_field(field, value)
    }

    fn text(&mut self, field: EventField, text: &[u8]) -> Result<(), Refusal> {
        let spec = self.event.schema().get(field).expect("a field of the kind");
        self.event.set_text(spec, text, &mut self.by.resolver(&mut self.names))
    }

    fn some_text(&mut self, field: EventField, text: &str) -> Result<(), Refusal> {
        if text.is_empty() { Ok(()) } else { self.text(field, text.as_bytes()) }
    }

    fn venue(&mut self, field: EventField) -> Result<(), Refusal> {
        let venue = self.venue;
        self.some_text(field, venue)
    }

    fn instrument(&mut self, id: &str) -> Result<(), Refusal> {
        self.text(EventField::Instr, if id.is_empty() { b"?" } else { id.as_bytes() })
    }

    /// Venue and instrument.
    fn of(&mut self, id: &str) -> Result<(), Refusal> {
        self.venue(EventField::Venue)?;
        self.instrument(id)
    }

    fn side(&mut self, side: Option<Side>) -> Result<(), Refusal> {
        match side {
            Some(Side::Buy) => self.text(EventField::Side, b"B"),
            Some(Side::Sell) => self.text(EventField::Side, b"S"),
            None => Ok(()),
        }
    }

    fn keep(&mut self, name: &str, text: &str) -> Result<(), Refusal> {
        if text.is_empty() { Ok(()) } else { self.event.keep_unmapped(name, &json_string(text.as_bytes())) }
    }

    fn range(&mut self, from: u64, to: u64) -> Result<(), Refusal> {
        self.event.keep_unmapped("from", &from.to_string())?;
        self.event.keep_unmapped("to", &to.to_string())
    }
}
