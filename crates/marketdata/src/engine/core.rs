//! Turns the messages of a packet, in order, into events.

use super::codes::EntryType;
use super::config::{MessageKind, NumberingScope};
use super::context::{MessageContext, PacketContext, SequenceRange};
use super::field_roles::FieldRole;
use super::id_table::IdTable;
use super::ids::{LongIdTable, NativeId};
use super::levels;
use super::market_event::{
    self, ChannelRole, EventContext, MarketEvent, MarketEventSink, MessageOutcome, ReferenceTables,
    RefusedInput, Trade, UpdateAction,
};
use super::message_fields::{
    EntryFields, MarketMessageFault, MessageFields, NO_NUMBER, NO_TIME, PacketMessages, as_option, definition,
};
use super::plan::{self, HandlerConfig};
use super::products::{ProductRecoveryTable, SequenceOutcome, WaitingLevel};
use std::sync::Arc;
use unitape_model::{InstrumentId, ProductId, Side};

mod define;
mod staleness;
mod states;

/// Products, instruments and their books' state.
#[derive(Clone, Debug)]
pub(super) struct MessageProcessor {
    pub config: Arc<HandlerConfig>,
    pub tables: ReferenceTables,
    pub products: ProductRecoveryTable,
    pub long_ids: LongIdTable,
    by_id: IdTable,
    instruments: IdTable,
    later_levels: Vec<WaitingLevel>,
}

impl MessageProcessor {
    pub fn new(config: Arc<HandlerConfig>) -> Self {
        let channels =
            config.channels.iter().map(|c| market_event::Channel { name: c.name.clone(), role: c.role });
        Self {
            tables: ReferenceTables { channels: channels.collect(), ..ReferenceTables::default() },
            products: ProductRecoveryTable::new(
                config.recovery,
                config.arbitration_window,
                config.pairs.clone(),
                config.depth_source,
            ),
            long_ids: LongIdTable::default(),
            by_id: IdTable::default(),
            instruments: IdTable::default(),
            later_levels: Vec::new(),
            config,
        }
    }

    /// Emits an event that belongs to no message.
    pub fn emit_for_packet(
        &self,
        packet_context: &PacketContext,
        length: usize,
        step: MarketEvent<'_>,
        out: &mut impl MarketEventSink,
    ) {
        let context =
            MessageContext { message_length: length as u32, ..MessageContext::from_packet(packet_context) };
        out.emit(&context.event_context(&self.tables, NO_TIME), step);
    }

    /// Processes all messages of a packet; `payload` is for the quarantine.
    #[inline]
    pub fn batch(
        &mut self,
        batch: &PacketMessages,
        packet_context: &PacketContext,
        payload: &[u8],
        out: &mut impl MarketEventSink,
    ) {
        self.products.counters.unknown += batch.unknown_values;
        let channel = &self.config.channels[packet_context.channel.index()];
        let (pair, is_incremental) = (channel.channel_pair, channel.role == ChannelRole::Incremental);
        let sent_ns = packet_context.sent_ns.unwrap_or(packet_context.ts_recv);
        for message in &batch.messages {
            let ts = if message.time_ns == NO_TIME { sent_ns } else { message.time_ns };
            let is_snapshot = message.kind == Some(MessageKind::Snapshot);
            let context = MessageContext {
                packet: packet_context,
                channel_pair: pair,
                is_incremental,
                is_snapshot,
                sequence: as_option(if is_snapshot { message.last_number } else { message.sequence }),
                ts,
                message_offset: message.offset,
                message_length: message.length,
            };
            let outcome = match self.message(message, batch, &context, out) {
                Ok(outcome) => outcome,
                Err(bad) => {
                    self.refuse_message(message, bad, &context, payload, out);
                    // Its changes of the books are missing.
                    if let Some(MessageKind::Depth | MessageKind::Reset) = message.kind
                        && let Ok(product) = self.product_of(message, out, &context)
                    {
                        match context.sequence {
                            Some(sequence) => {
                                self.products.list[product.index()].explained = Some(sequence);
                                self.apply_gap(
                                    product,
                                    SequenceRange { first: sequence, last: sequence },
                                    &context,
                                    out,
                                );
                            }
                            None => self.unnumbered_lost(product, &context, out),
                        }
                    }
                    MessageOutcome::Refused
                }
            };
            out.emit(&context.event_context(&self.tables, NO_TIME), MarketEvent::End(outcome));
        }
    }

    #[cold]
    fn refuse_message(
        &mut self,
        message: &MessageFields,
        bad: MarketMessageFault,
        context: &MessageContext<'_>,
        payload: &[u8],
        out: &mut impl MarketEventSink,
    ) {
        let set =
            &self.config.sets[usize::from(self.config.channels[context.packet.channel.index()].template_set)];
        let template = &set.templates.list()[message.template as usize].name.local;
        let detail = format!("{} of template {template}, message at byte {}", bad.tag, message.offset);
        let raw = &payload[message.offset as usize..][..message.length as usize];
        let refusal = RefusedInput { code: bad.code, detail: &detail, raw };
        out.emit(&context.event_context(&self.tables, NO_TIME), MarketEvent::Refused(refusal));
    }

    #[inline(always)]
    fn message(
        &mut self,
        message: &MessageFields,
        batch: &PacketMessages,
        context: &MessageContext<'_>,
        out: &mut impl MarketEventSink,
    ) -> Result<MessageOutcome, MarketMessageFault> {
        let Some(kind) = message.kind.filter(|kind| *kind != MessageKind::Ignore) else {
            return Ok(MessageOutcome::Ignored);
        };
        let product = self.product_of(message, out, context)?;
        match kind {
            MessageKind::Snapshot => return self.apply_snapshot(product, message, batch, context, out),
            MessageKind::Beacon => return self.apply_beacon(product, message, context, out),
            _ => {}
        }
        if let Some(sequence) = context.sequence
            && context.is_incremental
        {
            let sequence_outcome = self.products.check_sequence(product, sequence, context.packet);
            if sequence_outcome != SequenceOutcome::Next
                && !self.resolve_unexpected(product, sequence, sequence_outcome, context, out)
            {
                return Ok(MessageOutcome::Duplicate);
            }
            self.products.note_stream(product, context.packet);
        } else if context.is_incremental && self.products.list[product.index()].next_number.is_none() {
            self.products.note_stream(product, context.packet);
        }
        match (message.message_fault, kind) {
            (Some(bad), _) => Err(bad),
            (None, MessageKind::Depth) => self.entries(product, batch.entries_of(message), context, out),
            (None, _) => self.no_depth(product, message, batch, context, out),
        }
    }

    /// Handles a message with an unexpected number. Returns whether it is used.
    #[cold]
    #[inline(never)]
    fn resolve_unexpected(
        &mut self,
        product: ProductId,
        sequence: u64,
        mut sequence_outcome: SequenceOutcome,
        context: &MessageContext<'_>,
        out: &mut impl MarketEventSink,
    ) -> bool {
        if let SequenceOutcome::Old | SequenceOutcome::InSnapshot = sequence_outcome {
            if !self.detect_restart(product, sequence, context, out) {
                return false;
            }
            sequence_outcome = self.products.check_sequence(product, sequence, context.packet);
        }
        match sequence_outcome {
            SequenceOutcome::Next | SequenceOutcome::Old | SequenceOutcome::InSnapshot => {}
            SequenceOutcome::Missing(missing) => self.apply_gap(product, missing, context, out),
            SequenceOutcome::Begins => self.begin_product(product, context, out),
        }
        true
    }

    /// Handles a message of states or of reference data, or a message that empties books.
    #[inline(never)]
    fn no_depth(
        &mut self,
        product: ProductId,
        message: &MessageFields,
        batch: &PacketMessages,
        context: &MessageContext<'_>,
        out: &mut impl MarketEventSink,
    ) -> Result<MessageOutcome, MarketMessageFault> {
        let Some(kind) = message.kind else { return Ok(MessageOutcome::Ignored) };
        let no_state = match kind {
            MessageKind::ProductState => message.product_state == NativeId::NONE,
            MessageKind::InstrumentState => message.instrument_state == NativeId::NONE,
            _ => false,
        };
        if no_state {
            // Venues send these messages for other fields than the state; the mapping does not ask for them.
            self.products.counters.unknown += 1;
            return Ok(MessageOutcome::Ignored);
        }
        match kind {
            MessageKind::ProductState => {
                let state_sequence = context.sequence.unwrap_or(0);
                self.products.list[product.index()].product_state = (message.product_state, state_sequence);
                self.state(product, None, message.product_state, context, out);
                Ok(MessageOutcome::Used)
            }
            MessageKind::InstrumentState => {
                let instrument = self.instrument(message.instrument, product, context, out)?;
                self.state(product, Some(instrument), message.instrument_state, context, out);
                Ok(MessageOutcome::Used)
            }
            MessageKind::MassState => {
                if message.product_state != NativeId::NONE {
                    self.mass_state(product, message.product_state, context, out);
                }
                for entry in batch.entries_of(message) {
                    let instrument = self.instrument(entry.instrument, product, context, out)?;
                    self.state(product, Some(instrument), entry.instrument_state, context, out);
                }
                Ok(MessageOutcome::Used)
            }
            MessageKind::Reset => {
                let waits = self.clear_product(product, context, out);
                Ok(if waits { MessageOutcome::Waits } else { MessageOutcome::Used })
            }
            MessageKind::Product => {
                let defined = definition(message, batch);
                Ok(self.define_product(product, &defined, batch, context, out))
            }
            MessageKind::Instrument => {
                let instrument = self.instrument(message.instrument, product, context, out)?;
                let defined = definition(message, batch);
                Ok(self.define_instrument(
                    InstrumentKey { product, instrument },
                    &defined,
                    batch,
                    context,
                    out,
                ))
            }
            MessageKind::Depth
            | MessageKind::Sequenced
            | MessageKind::Ignore
            | MessageKind::Snapshot
            | MessageKind::Beacon => Ok(MessageOutcome::Ignored),
        }
    }

    /// Applies the entries of an incremental message. Most entries of an instrument are adjacent, so that it is looked
    /// up only once for all of them.
    #[inline(never)]
    fn entries(
        &mut self,
        product: ProductId,
        mut left: &[EntryFields],
        context: &MessageContext<'_>,
        out: &mut impl MarketEventSink,
    ) -> Result<MessageOutcome, MarketMessageFault> {
        let mut waits = false;
        while let [first, rest @ ..] = left {
            // Only one for an empty book has no instrument: all are.
            if first.instrument == NativeId::NONE {
                waits |= self.clear_product(product, context, out);
                left = rest;
                continue;
            }
            let id = self.instrument(first.instrument, product, context, out)?;
            let (tables, counters) = (&self.tables, &mut self.products.counters);
            let instrument = &mut self.products.instruments[id.index()];
            if !instrument.is_live
                || context.sequence.is_some_and(|sequence| sequence <= instrument.last_in_book)
            {
                match first.entry_type {
                    EntryType::Trade => {
                        trade_event(id, first, &context.event_context(tables, first.time_ns), out)
                    }
                    _ => waits |= self.apply_level(id, first, context, out),
                }
                left = rest;
                continue;
            }
            let levels_fit = loop {
                let [entry, rest @ ..] = left else { break true };
                if entry.instrument != first.instrument {
                    break true;
                }
                left = rest;
                let event_context = context.event_context(tables, entry.time_ns);
                let update = |side, action| levels::level_update(id, side, action, entry);
                if let Some((side, action)) = levels::apply_plain(instrument, entry) {
                    // Each by itself, so that the sink need not check which it is.
                    match action {
                        UpdateAction::Add => out.emit_level(&event_context, &update(side, UpdateAction::Add)),
                        UpdateAction::Change => {
                            out.emit_level(&event_context, &update(side, UpdateAction::Change))
                        }
                        UpdateAction::Delete => {
                            out.emit_level(&event_context, &update(side, UpdateAction::Delete))
                        }
                    }
                } else if entry.entry_type == EntryType::Trade {
                    trade_event(id, entry, &context.event_context(tables, entry.time_ns), out);
                } else {
                    let level_fits =
                        levels::apply_any(id, instrument, entry, counters, &mut |step| match step {
                            MarketEvent::Level(level) => {
                                out.emit_level(&context.event_context(tables, entry.time_ns), &level)
                            }
                            step => out.emit(&context.event_context(tables, entry.time_ns), step),
                        });
                    if !level_fits {
                        break false;
                    }
                }
            };
            if !levels_fit {
                self.mark_stale(id, context, out);
            }
        }
        Ok(if waits { MessageOutcome::Waits } else { MessageOutcome::Used })
    }

    /// Applies an entry of a level or of an empty book, or holds it for a snapshot. Returns whether it waits.
    fn apply_level(
        &mut self,
        id: InstrumentId,
        entry: &EntryFields,
        context: &MessageContext<'_>,
        out: &mut impl MarketEventSink,
    ) -> bool {
        let instrument = &mut self.products.instruments[id.index()];
        if instrument.is_live {
            if context.sequence.is_none_or(|sequence| sequence > instrument.last_in_book) {
                let (tables, counters) = (&self.tables, &mut self.products.counters);
                let level_fits = levels::apply_entry(id, instrument, entry, counters, |step| {
                    out.emit(&context.event_context(tables, entry.time_ns), step);
                });
                if !level_fits {
                    self.mark_stale(id, context, out);
                }
            }
            return false;
        }
        let (sequence, product) = (context.sequence.unwrap_or(0), instrument.product);
        let time = if entry.time_ns == NO_TIME { context.ts } else { entry.time_ns };
        if self.products.hold_level(id, *entry, sequence, time) {
            out.emit(&context.event_context(&self.tables, entry.time_ns), MarketEvent::NoRoom { product });
        }
        true
    }

    #[cold]
    #[inline(never)]
    fn apply_snapshot(
        &mut self,
        product: ProductId,
        message: &MessageFields,
        batch: &PacketMessages,
        context: &MessageContext<'_>,
        out: &mut impl MarketEventSink,
    ) -> Result<MessageOutcome, MarketMessageFault> {
        if let Some(message_fault) = message.message_fault {
            return Err(message_fault);
        }
        self.products.list[product.index()].note_snapshot_origin(context.packet.origin);
        let id = self.instrument(message.instrument, product, context, out)?;
        // One without a number is from before the first message.
        let last_number = as_option(message.last_number).unwrap_or(0);
        if !self.products.accepts_snapshot(id, last_number, context.packet) {
            self.emit_if_whole(product, context, out);
            return Ok(MessageOutcome::Ignored);
        }
        self.snapshot_state(product, message.product_state, last_number, context, out);
        let (entries, state) = (batch.entries_of(message), message.instrument_state);
        let key = InstrumentKey { product, instrument: id };
        self.replace_book(
            key,
            &SnapshotBook { last_message: last_number, entries, instrument_state: state },
            *context,
            out,
        );
        Ok(MessageOutcome::Used)
    }

    /// Replaces the book of an instrument with that of a snapshot, and applies later messages that have waited.
    pub(super) fn replace_book(
        &mut self,
        key: InstrumentKey,
        snapshot: &SnapshotBook<'_>,
        mut context: MessageContext<'_>,
        out: &mut impl MarketEventSink,
    ) {
        let SnapshotBook { last_message: last, entries, instrument_state: state } = *snapshot;
        let InstrumentKey { product, instrument: id } = key;
        context.is_snapshot = true;
        let mut later_levels = std::mem::take(&mut self.later_levels);
        self.products.apply_snapshot(id, last, &mut later_levels);
        let (tables, counters) = (&self.tables, &mut self.products.counters);
        let instrument = &mut self.products.instruments[id.index()];
        instrument.levels = [0; 2];
        let mut levels_fit = true;
        out.emit(&context.event_context(tables, NO_TIME), MarketEvent::Clear { instrument: id });
        for entry in entries {
            let entry = EntryFields { action: None, ..*entry };
            if entry.entry_type != EntryType::Empty {
                levels_fit &= levels::apply_entry(id, instrument, &entry, counters, |step| {
                    out.emit(&context.event_context(tables, NO_TIME), step);
                });
            }
        }
        for waiting in &later_levels {
            let context = MessageContext { sequence: Some(waiting.sequence), ..context };
            levels_fit &= levels::apply_entry(id, instrument, &waiting.entry, counters, |step| {
                out.emit(&context.event_context(tables, waiting.time_ns), step);
            });
        }
        self.later_levels = later_levels;
        self.state(product, Some(id), state, &context, out);
        match levels_fit {
            true => out.emit(
                &context.event_context(&self.tables, NO_TIME),
                MarketEvent::Recovered { instrument: id },
            ),
            false => self.mark_stale(id, &context, out),
        }
        self.emit_if_whole(product, &context, out);
    }

    #[cold]
    fn apply_beacon(
        &mut self,
        product: ProductId,
        message: &MessageFields,
        context: &MessageContext<'_>,
        out: &mut impl MarketEventSink,
    ) -> Result<MessageOutcome, MarketMessageFault> {
        let lacks = (message.last_number == NO_NUMBER)
            .then_some(MarketMessageFault { code: "missing", tag: FieldRole::Last });
        if let Some(message_fault) = message.message_fault.or(lacks) {
            return Err(message_fault);
        }
        let mut sequence_outcome = self.products.beacon(product, message.last_number, context.packet);
        if let SequenceOutcome::Old | SequenceOutcome::InSnapshot = sequence_outcome {
            if self.detect_restart(product, message.last_number.saturating_add(1), context, out) {
                sequence_outcome = self.products.beacon(product, message.last_number, context.packet);
            } else if self.products.is_elsewhere(product, context.packet.stream) {
                return Ok(MessageOutcome::Used);
            }
        }
        if let SequenceOutcome::Missing(missing) = sequence_outcome {
            self.apply_gap(product, missing, context, out);
        }
        self.products.note_stream(product, context.packet);
        Ok(MessageOutcome::Used)
    }

    pub(super) fn emit_if_whole(
        &mut self,
        product: ProductId,
        context: &MessageContext<'_>,
        out: &mut impl MarketEventSink,
    ) {
        if self.products.becomes_whole(product) {
            out.emit(&context.event_context(&self.tables, NO_TIME), MarketEvent::Whole { product });
        }
    }

    #[cold]
    #[inline(never)]
    fn apply_gap(
        &mut self,
        product: ProductId,
        missing: SequenceRange,
        context: &MessageContext<'_>,
        out: &mut impl MarketEventSink,
    ) {
        let (tables, mended) = (&self.tables, self.products.has_snapshots(product));
        let is_unexplained = self.products.list[product.index()].explained != Some(missing.first);
        out.emit(
            &context.event_context(tables, NO_TIME),
            MarketEvent::Missing { product, from: missing.first, to: missing.last, is_unexplained },
        );
        self.products.gap(product, missing, |instrument| {
            out.emit(&context.event_context(tables, NO_TIME), MarketEvent::Stale { instrument, mended });
        });
    }

    /// Handles a product's first message: its books are empty and complete.
    #[cold]
    fn begin_product(
        &mut self,
        product: ProductId,
        context: &MessageContext<'_>,
        out: &mut impl MarketEventSink,
    ) {
        let tracked_product = &self.products.list[product.index()];
        let is_live = |instrument: &&InstrumentId| self.products.instruments[instrument.index()].is_live;
        for instrument in tracked_product.instruments.iter().filter(is_live).copied() {
            out.emit(&context.event_context(&self.tables, NO_TIME), MarketEvent::Clear { instrument });
            out.emit(&context.event_context(&self.tables, NO_TIME), MarketEvent::Recovered { instrument });
        }
        if tracked_product.is_complete {
            out.emit(&context.event_context(&self.tables, NO_TIME), MarketEvent::Whole { product });
        }
    }

    /// Empties all books of a product, as an entry for each book would. Returns whether some of these entries wait.
    #[cold]
    fn clear_product(
        &mut self,
        product: ProductId,
        context: &MessageContext<'_>,
        out: &mut impl MarketEventSink,
    ) -> bool {
        let entry =
            EntryFields { entry_type: EntryType::Empty, ..EntryFields::with_instrument(NativeId::NONE) };
        let mut waits = false;
        for n in 0..self.products.list[product.index()].instruments.len() {
            let id = self.products.list[product.index()].instruments[n];
            waits |= self.apply_level(id, &entry, context, out);
        }
        // Instruments that are not known yet need a snapshot that has it.
        let need = &mut self.products.list[product.index()].last_missing;
        *need = context.sequence.map_or(*need, |sequence| sequence.max(*need));
        waits
    }

    /// Starts the numbering of a stream over.
    #[cold]
    pub fn restart_stream(&mut self, packet_context: &PacketContext, out: &mut impl MarketEventSink) {
        let context = MessageContext::from_packet(packet_context);
        out.emit(&context.event_context(&self.tables, NO_TIME), MarketEvent::Restart);
        let channel = &self.config.channels[packet_context.channel.index()];
        let (role, pair) = (channel.role, channel.channel_pair);
        for product in self.products.ids() {
            let tracked_product = &self.products.list[product.index()];
            let begins = match role {
                ChannelRole::Incremental => {
                    tracked_product.stream == packet_context.stream
                        || self.products.may_be_of(product, pair, packet_context.origin)
                }
                // A product that is known by snapshots alone has their numbers.
                ChannelRole::Snapshot => {
                    tracked_product.stream.is_none()
                        && tracked_product.channel_pair == pair
                        && tracked_product.is_from(packet_context.origin)
                }
                ChannelRole::Reference => false,
            };
            if begins {
                let (tables, mended) = (&self.tables, self.products.has_snapshots(product));
                self.products.restart_product(product, packet_context.ts_recv, |instrument| {
                    out.emit(
                        &context.event_context(tables, NO_TIME),
                        MarketEvent::Stale { instrument, mended },
                    );
                });
            }
        }
        if role == ChannelRole::Snapshot {
            self.products.snapshots_restart(pair, packet_context.origin, packet_context.ts_recv);
            self.restart_after_losses(pair, packet_context, out);
        }
    }

    /// Returns the product of a message.
    #[inline(always)]
    fn product_of(
        &mut self,
        message: &MessageFields,
        out: &mut impl MarketEventSink,
        context: &MessageContext<'_>,
    ) -> Result<ProductId, MarketMessageFault> {
        let pair = context.channel_pair;
        let id = match self.config.numbering_scope {
            NumberingScope::Channel => NativeId::number(0),
            NumberingScope::Product => message.product,
        };
        match self.by_id.get(pair, id) {
            Some(number) => Ok(ProductId(number)),
            None => self.other_product(id, message, out, context),
        }
    }

    /// Finds a product that is not known by its id.
    #[cold]
    #[inline(never)]
    fn other_product(
        &mut self,
        id: NativeId,
        message: &MessageFields,
        out: &mut impl MarketEventSink,
        context: &MessageContext<'_>,
    ) -> Result<ProductId, MarketMessageFault> {
        let pair = context.channel_pair;
        if id == NativeId::NONE {
            // A message that names a known instrument names its product by it.
            let instrument_number = self.instruments.get(pair, message.instrument);
            let product = instrument_number.map(|number| self.products.instruments[number as usize].product);
            return product.ok_or(MarketMessageFault { code: "missing", tag: FieldRole::Product });
        }
        let product = self.products.open(pair).ok_or_else(|| {
            self.products.counters.refused += 1;
            MarketMessageFault { code: "no_room", tag: FieldRole::Product }
        })?;
        self.by_id.insert(pair, id, product.0);
        let id = match self.config.numbering_scope {
            NumberingScope::Product => self.long_ids.display_text(id),
            NumberingScope::Channel => {
                let of_pair = |c: &&plan::ChannelPlan| c.channel_pair == pair;
                self.config.channels.iter().find(of_pair).map_or_else(String::new, |c| c.name.clone())
            }
        };
        self.tables.products.push(market_event::Product { id, ..market_event::Product::default() });
        out.emit(&context.event_context(&self.tables, NO_TIME), MarketEvent::Product(product));
        Ok(product)
    }

    /// Returns an instrument. If it is new, it belongs to this product.
    #[inline(always)]
    fn instrument(
        &mut self,
        id: NativeId,
        product: ProductId,
        context: &MessageContext<'_>,
        out: &mut impl MarketEventSink,
    ) -> Result<InstrumentId, MarketMessageFault> {
        match self.instruments.get(context.channel_pair, id) {
            Some(number) => Ok(InstrumentId(number)),
            None => self.other_instrument(id, product, context, out),
        }
    }

    /// Finds an instrument that is not known.
    #[cold]
    #[inline(never)]
    fn other_instrument(
        &mut self,
        id: NativeId,
        product: ProductId,
        context: &MessageContext<'_>,
        out: &mut impl MarketEventSink,
    ) -> Result<InstrumentId, MarketMessageFault> {
        if id == NativeId::NONE {
            return Err(MarketMessageFault { code: "missing", tag: FieldRole::Instrument });
        }
        let depth = self.tables.products[product.index()].depth.or(self.config.market_depth);
        let opened = self.products.open_instrument(product, depth.unwrap_or(0));
        let instrument = opened.ok_or_else(|| {
            self.products.counters.refused += 1;
            MarketMessageFault { code: "no_room", tag: FieldRole::Instrument }
        })?;
        self.instruments.insert(context.channel_pair, id, instrument.0);
        let id = self.long_ids.display_text(id);
        self.tables.instruments.push(market_event::Instrument {
            id,
            product,
            ..market_event::Instrument::default()
        });
        out.emit(&context.event_context(&self.tables, NO_TIME), MarketEvent::Instrument(instrument));
        if self.products.instruments[instrument.index()].is_live {
            out.emit(&context.event_context(&self.tables, NO_TIME), MarketEvent::Recovered { instrument });
        }
        Ok(instrument)
    }
}

/// An instrument, and the product that a message names with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct InstrumentKey {
    pub product: ProductId,
    pub instrument: InstrumentId,
}

/// The whole book of an instrument.
pub(super) struct SnapshotBook<'e> {
    /// The last message that it contains.
    pub last_message: u64,
    pub entries: &'e [EntryFields],
    /// The state of the instrument.
    pub instrument_state: NativeId,
}

#[inline(always)]
fn trade_event(
    instrument: InstrumentId,
    entry: &EntryFields,
    context: &EventContext<'_>,
    out: &mut impl MarketEventSink,
) {
    let trade = Trade {
        instrument,
        px: entry.px,
        qty: entry.qty.unwrap_or_default(),
        id: as_option(entry.trade_id),
        aggressor: side(entry.aggressor),
    };
    out.emit(context, MarketEvent::Trade(trade));
}

fn side(code: u8) -> Option<Side> {
    match code {
        0 => Some(Side::Buy),
        1 => Some(Side::Sell),
        _ => None,
    }
}
