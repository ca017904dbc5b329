//! The handler: packets of all channels in, events out.

use super::arbitration::{ArbitratedStream, ArrivalVerdict, HeldPacket, PacketArrival, SequenceVerdict};
use super::config::DictionaryResetMode;
use super::context::{PacketContext, SequenceRange, StreamId};
use super::core::MessageProcessor;
use super::early_snapshots::EarlySnapshotBuffer;
use super::framing::{PacketBody, PacketDecoder, PacketFault};
use super::market_event::{
    ChannelRole, MarketEvent, MarketEventSink, MessageOutcome, Packet, ReferenceTables, RefusedInput,
};
use super::packet_header::PacketHeader;
use super::plan::HandlerConfig;
use super::pulse::{LineLiveness, LivenessChange};
use std::net::SocketAddr;
use std::sync::Arc;
use unitape_model::{ChannelId, InstrumentId, UnixNanos};

mod early_snapshots;
mod stats;

/// Turns packets into events. It does no I/O and reads no clock.
#[derive(Debug)]
pub struct Engine {
    pub(super) config: Arc<HandlerConfig>,
    pub(super) core: MessageProcessor,
    pub(super) packets: PacketDecoder,
    /// Streams of all channels.
    pub(super) streams: Vec<SenderStream>,
    /// By channel: which of its lines are heard.
    pub(super) pulses: Vec<LineLiveness>,
    /// By pair: snapshots that no gap needed when they came.
    pub(super) early_snapshots: Vec<EarlySnapshotBuffer>,
    /// Nothing more will come.
    pub(super) is_over: bool,
    /// By channel: the streams of the last packets, by partition.
    latest_streams: Vec<[StreamId; LATEST]>,
    /// Some packet waits.
    has_waiting: bool,
    held_bytes: usize,
    /// The address of the last packet, and its channel and line.
    route: Option<(SocketAddr, ChannelId, u8)>,
    spare_buffers: Vec<Vec<u8>>,
    pub(super) counters: PacketCounters,
}

/// Packets from one sender.
#[derive(Debug)]
pub(super) struct SenderStream {
    pub channel: ChannelId,
    sender: u64,
    partition: u64,
    /// The first stream of the same sender and partition, on whichever channel.
    origin: StreamId,
    pub stream: ArbitratedStream,
}

/// The counters over all channels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PacketCounters {
    pub unknown_packets: u64,
    pub refused_packets: u64,
}

/// Partitions of a channel whose packets come in turns, so that the last stream of each is known.
const LATEST: usize = 8;

/// Senders and partitions of a channel, at most.
const STREAMS_MAX: usize = 256;

impl Engine {
    /// Makes a handler that has seen no packets.
    #[must_use]
    pub fn new(config: Arc<HandlerConfig>) -> Self {
        let line_has = |channel: usize, line: u8| {
            config.addresses.iter().any(|(_, c, l)| c.index() == channel && *l == line)
        };
        let pulse =
            |n: usize| LineLiveness::new(&config.arbitration_window, [line_has(n, 0), line_has(n, 1)]);
        Self {
            pulses: (0..config.channels.len()).map(pulse).collect(),
            early_snapshots: config.pairs.iter().map(|_| EarlySnapshotBuffer::default()).collect(),
            is_over: false,
            core: MessageProcessor::new(config.clone()),
            packets: PacketDecoder::new(config.clone()),
            streams: Vec::new(),
            latest_streams: vec![[StreamId::NONE; LATEST]; config.channels.len()],
            has_waiting: false,
            held_bytes: 0,
            route: None,
            spare_buffers: Vec::new(),
            counters: PacketCounters::default(),
            config,
        }
    }

    /// Channels, products and instruments.
    #[must_use]
    pub fn tables(&self) -> &ReferenceTables {
        &self.core.tables
    }

    /// Parts that tests look at.
    #[cfg(test)]
    pub(super) fn parts(&self) -> (&ReferenceTables, &super::products::ProductRecoveryTable) {
        (&self.core.tables, &self.core.products)
    }

    /// Returns whether the levels of an instrument are complete.
    #[must_use]
    pub fn is_live(&self, instrument: InstrumentId) -> bool {
        self.core.products.instruments[instrument.index()].is_live
    }

    /// Requests a snapshot for an instrument whose book turned out to differ from the venue's. The snapshot must
    /// include all messages received so far; until then no levels of the instrument are emitted. Returns false if no
    /// snapshot will come.
    pub fn want_snapshot(&mut self, instrument: InstrumentId) -> bool {
        self.core.want_snapshot(instrument)
    }

    /// Processes a datagram. Its events go to `out`, with the events of packets that waited for it or for a timeout.
    pub fn packet(&mut self, packet: Packet<'_>, out: &mut impl MarketEventSink) {
        if self.has_waiting {
            self.pass_time(packet.ts_recv.0, out);
        }
        let Some((channel, line)) = self.route_packet(packet.to) else {
            self.counters.unknown_packets += 1;
            let packet_context =
                self.packet_context(ChannelId(0), 0, StreamId::NONE, &packet, PacketHeader::default());
            return self.core.emit_for_packet(
                &packet_context,
                packet.payload.len(),
                MarketEvent::End(MessageOutcome::Ignored),
                out,
            );
        };
        if let Some(change) = self.pulses[channel.index()].note_packet(line, packet.ts_recv.0) {
            let packet_context =
                self.packet_context(channel, line, StreamId::NONE, &packet, PacketHeader::default());
            self.line_changes(&packet_context, change, packet.payload.len(), out);
        }
        let open_result = match self.packets.open(channel, packet.payload) {
            Ok(opened) => opened,
            Err(fault) => {
                let packet_context =
                    self.packet_context(channel, line, StreamId::NONE, &packet, PacketHeader::default());
                return self.refuse_packet(&packet_context, packet.payload, &fault, out);
            }
        };
        let (head, body) = open_result;
        let Some(sequence) = head.sequence else {
            let packet_context = self.packet_context(channel, line, StreamId::NONE, &packet, head);
            self.keep_early(&packet_context, packet.payload);
            if self.is_unneeded(channel) {
                return self.core.emit_for_packet(
                    &packet_context,
                    packet.payload.len(),
                    MarketEvent::End(MessageOutcome::Ignored),
                    out,
                );
            }
            return match self.packets.body(
                channel,
                PacketBody { payload: packet.payload, offset: body },
                &mut self.core.long_ids,
            ) {
                Ok(()) => self.apply_packet(&packet_context, packet.payload, out),
                Err(fault) => self.refuse_packet(&packet_context, packet.payload, &fault, out),
            };
        };
        let Some(stream) = self.stream_of(channel, &head) else {
            let fault = PacketFault {
                code: "no_room",
                detail: format!("more than {STREAMS_MAX} senders on a channel"),
            };
            let packet_context = self.packet_context(channel, line, StreamId::NONE, &packet, head);
            return self.refuse_packet(&packet_context, packet.payload, &fault, out);
        };
        let PacketHeader { time_ns: sent, has_reset: reset, .. } = head;
        let Packet { ts_recv: UnixNanos(ts_recv), position, .. } = packet;
        let SenderStream { origin, stream: arbitrated_stream, .. } = &mut self.streams[stream.index()];
        let packet_context = PacketContext {
            channel,
            line,
            stream,
            origin: *origin,
            ts_recv,
            position,
            sent_ns: sent,
            has_reset: reset,
        };
        let arrival = PacketArrival { line_index: line, sequence, ts_recv, sent_ns: sent, has_reset: reset };
        arbitrated_stream.aside_verdict = None;
        let begins = head.has_reset && arbitrated_stream.expected_number.is_none();
        let mut verdict = arbitrated_stream.offer_packet(arrival, packet.payload.len());
        if verdict == ArrivalVerdict::Restart || arbitrated_stream.aside_verdict.is_some() {
            verdict = self.resolve_set_aside(&packet_context, sequence, verdict, out);
            // Another packet was decoded in between.
            if matches!(verdict, ArrivalVerdict::Now | ArrivalVerdict::Wait) {
                _ = self.packets.open(channel, packet.payload);
            }
        }
        if begins && verdict == ArrivalVerdict::Now {
            self.core.begins_behind_snapshots(&packet_context, out);
        }
        let body = PacketBody { payload: packet.payload, offset: body };
        self.handle_verdict(&packet_context, SequenceVerdict { sequence, verdict }, body, out);
    }

    /// Handles a pause: no packet arrived until `now`. Packets that have waited too long for a missing packet are
    /// processed without it.
    pub fn idle(&mut self, now: UnixNanos, out: &mut impl MarketEventSink) {
        if self.has_waiting {
            self.pass_time(now.0, out);
        }
    }

    /// Closes these channels after [`Engine::finish`]. All books become stale and stay unchanged.
    pub fn close(&mut self, out: &mut impl MarketEventSink) {
        let now = self.streams.iter().map(|s| s.stream.last_heard()).max().unwrap_or(0);
        let packet_context = PacketContext {
            channel: ChannelId(0),
            line: 0,
            stream: StreamId::NONE,
            origin: StreamId::NONE,
            ts_recv: now,
            position: 0,
            sent_ns: None,
            has_reset: false,
        };
        self.core.close(&packet_context, out);
    }

    /// Returns the configuration of the engine.
    #[must_use]
    pub fn config(&self) -> &HandlerConfig {
        &self.config
    }

    /// Processes all waiting packets as they are, because no more packets will arrive.
    pub fn finish(&mut self, out: &mut impl MarketEventSink) {
        self.is_over = true;
        for stream in (0..self.streams.len()).map(StreamId::new) {
            self.flush(stream, out);
            for line in 0..2 {
                if let Some((_, held_packet)) = self.streams[stream.index()].stream.aside_packets[line].take()
                {
                    self.refuse_damaged(stream, held_packet, out);
                }
            }
        }
        self.has_waiting = false;
        self.lines_end(out);
    }

    /// Handles a line that goes down or comes back.
    #[cold]
    fn line_changes(
        &mut self,
        packet_context: &PacketContext,
        change: LivenessChange,
        length: usize,
        out: &mut impl MarketEventSink,
    ) {
        let LivenessChange { line_index: line, is_down: down, silent_since_ns: since } = change;
        let since = UnixNanos(since);
        let step =
            if down { MarketEvent::LineDown { line, since } } else { MarketEvent::LineUp { line, since } };
        self.core.emit_for_packet(&PacketContext { line, ..*packet_context }, length, step, out);
    }

    /// Marks lines as down at the end of the input. A line that ended well before the other is down, however little
    /// time there was to see it.
    fn lines_end(&mut self, out: &mut impl MarketEventSink) {
        let now = self.streams.iter().map(|s| s.stream.last_heard()).max().unwrap_or(0);
        let channels = (0..self.pulses.len() as u16).map(ChannelId);
        for (channel, line) in channels.flat_map(|channel| [(channel, 0), (channel, 1)]) {
            let pulse = self.pulses[channel.index()];
            let of_channel = self.streams.iter().filter(|s| s.channel == channel);
            let behind_count =
                of_channel.fold(0u64, |sum, s| sum.saturating_add(s.stream.packets_behind(line)));
            if pulse.has_line(line)
                && !pulse.is_down(line)
                && behind_count > u64::from(self.config.arbitration_window.packets)
            {
                let change = self.pulses[channel.index()].mark_down(line);
                let first_address = self.config.addresses[0].0;
                let packet = Packet { to: first_address, ts_recv: UnixNanos(now), position: 0, payload: &[] };
                let packet_context =
                    self.packet_context(channel, line, StreamId::NONE, &packet, PacketHeader::default());
                self.line_changes(&packet_context, change, 0, out);
            }
        }
    }

    fn packet_context(
        &self,
        channel: ChannelId,
        line: u8,
        stream: StreamId,
        packet: &Packet<'_>,
        head: PacketHeader,
    ) -> PacketContext {
        let origin = self.origin(stream);
        let (sent, reset) = (head.time_ns, head.has_reset);
        PacketContext {
            channel,
            line,
            stream,
            origin,
            ts_recv: packet.ts_recv.0,
            position: packet.position,
            sent_ns: sent,
            has_reset: reset,
        }
    }

    fn origin(&self, stream: StreamId) -> StreamId {
        self.streams.get(stream.index()).map_or(StreamId::NONE, |s| s.origin)
    }

    #[inline]
    fn route_packet(&mut self, to: SocketAddr) -> Option<(ChannelId, u8)> {
        match self.route {
            Some((cached_address, channel, line)) if cached_address == to => Some((channel, line)),
            _ => {
                let (to, channel, line) =
                    *self.config.addresses.iter().find(|(address, ..)| *address == to)?;
                self.route = Some((to, channel, line));
                Some((channel, line))
            }
        }
    }

    fn apply_packet(
        &mut self,
        packet_context: &PacketContext,
        payload: &[u8],
        out: &mut impl MarketEventSink,
    ) {
        if self.packets.batch.messages.is_empty() {
            return self.core.emit_for_packet(
                packet_context,
                payload.len(),
                MarketEvent::End(MessageOutcome::Ignored),
                out,
            );
        }
        self.core.batch(&self.packets.batch, packet_context, payload, out);
        if let Some(pair) = self.core.products.gap_of.take() {
            self.use_early(pair, out);
        }
    }

    /// Handles a packet according to the verdict about it.
    #[inline(always)]
    fn handle_verdict(
        &mut self,
        packet_context: &PacketContext,
        arrival: SequenceVerdict,
        body: PacketBody<'_>,
        out: &mut impl MarketEventSink,
    ) {
        let (SequenceVerdict { sequence, verdict }, payload) = (arrival, body.payload);
        if let ArrivalVerdict::Now | ArrivalVerdict::Wait = verdict
            && let Some(change) = self.pulses[packet_context.channel.index()]
                .note_first_copy(packet_context.line, packet_context.ts_recv)
        {
            self.line_changes(packet_context, change, payload.len(), out);
        }
        if verdict == ArrivalVerdict::Now {
            self.keep_early(packet_context, payload);
        }
        match verdict {
            ArrivalVerdict::Now if self.is_unneeded(packet_context.channel) => {
                self.streams[packet_context.stream.index()].stream.mark_used(
                    sequence,
                    packet_context.line,
                    packet_context.sent_ns,
                );
                self.core.emit_for_packet(
                    packet_context,
                    payload.len(),
                    MarketEvent::End(MessageOutcome::Ignored),
                    out,
                );
            }
            ArrivalVerdict::Now => {
                match self.packets.body(packet_context.channel, body, &mut self.core.long_ids) {
                    Ok(()) => {
                        self.streams[packet_context.stream.index()].stream.mark_used(
                            sequence,
                            packet_context.line,
                            packet_context.sent_ns,
                        );
                        self.apply_packet(packet_context, payload, out);
                    }
                    Err(fault) => {
                        self.streams[packet_context.stream.index()].stream.mark_corrupt(
                            sequence,
                            packet_context.line,
                            packet_context.ts_recv,
                        );
                        self.refuse_packet(packet_context, payload, &fault, out);
                    }
                }
            }
            ArrivalVerdict::Wait => return self.hold_packet(packet_context, sequence, body, out),
            ArrivalVerdict::Duplicate => {
                self.core.emit_for_packet(
                    packet_context,
                    payload.len(),
                    MarketEvent::End(MessageOutcome::Duplicate),
                    out,
                );
            }
            ArrivalVerdict::Late => {
                let detail = format!("packet {sequence} came when it had been given up");
                self.refuse_packet(packet_context, payload, &PacketFault { code: "late", detail }, out);
            }
            ArrivalVerdict::Aside => {
                let held_packet = self.held_packet(packet_context, payload);
                self.streams[packet_context.stream.index()].stream.aside_packets
                    [usize::from(packet_context.line)] = Some((sequence, held_packet));
                self.core.products.set_aside_since(packet_context.stream, Some(packet_context.ts_recv));
            }
            ArrivalVerdict::Restart => unreachable!("it was settled"),
        }
        if self.streams[packet_context.stream.index()].stream.has_waiting() {
            self.release_ready(packet_context.stream, packet_context.ts_recv, out);
        }
    }

    /// Places a packet that was set aside.
    #[cold]
    #[inline(never)]
    fn handle_set_aside(
        &mut self,
        packet_context: &PacketContext,
        arrival: SequenceVerdict,
        body: PacketBody<'_>,
        out: &mut impl MarketEventSink,
    ) {
        self.handle_verdict(packet_context, arrival, body, out);
    }

    #[cold]
    fn hold_packet(
        &mut self,
        packet_context: &PacketContext,
        sequence: u64,
        body: PacketBody<'_>,
        out: &mut impl MarketEventSink,
    ) {
        let payload = body.payload;
        // A bad packet must not block the other line's.
        if self.config.reset_mode != DictionaryResetMode::Never
            && let Err(fault) = self.packets.body(packet_context.channel, body, &mut self.core.long_ids)
        {
            self.streams[packet_context.stream.index()].stream.mark_corrupt(
                sequence,
                packet_context.line,
                packet_context.ts_recv,
            );
            self.refuse_packet(packet_context, payload, &fault, out);
        } else {
            let held_packet = self.held_packet(packet_context, payload);
            self.held_bytes += payload.len();
            self.streams[packet_context.stream.index()].stream.hold_packet(
                sequence,
                held_packet,
                packet_context.sent_ns,
            );
            self.has_waiting = true;
        }
        self.release_ready(packet_context.stream, packet_context.ts_recv, out);
    }

    fn held_packet(&mut self, packet_context: &PacketContext, payload: &[u8]) -> HeldPacket {
        let mut bytes = self.spare_buffers.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(payload);
        HeldPacket {
            line_index: packet_context.line,
            ts_recv: packet_context.ts_recv,
            position: packet_context.position,
            bytes,
        }
    }

    /// Processes waiting packets of a stream that are next, or whose missing predecessors are given up.
    #[cold]
    fn release_ready(&mut self, stream: StreamId, now: i64, out: &mut impl MarketEventSink) {
        loop {
            let no_room = self.held_bytes > self.config.arbitration_window.bytes;
            let arbitrated_stream = &mut self.streams[stream.index()].stream;
            if let Some((sequence, held_packet)) = arbitrated_stream.next() {
                self.release_packet(stream, sequence, held_packet, out);
            } else if let Some(lost_range) = arbitrated_stream.give_up(now, no_room) {
                self.packets_lost(stream, now, lost_range, out);
            } else {
                return;
            }
        }
    }

    fn packets_lost(
        &mut self,
        stream: StreamId,
        now: i64,
        lost_range: SequenceRange,
        out: &mut impl MarketEventSink,
    ) {
        let channel = self.streams[stream.index()].channel;
        let origin = self.origin(stream);
        let packet_context = PacketContext {
            channel,
            line: 0,
            stream,
            origin,
            ts_recv: now,
            position: 0,
            sent_ns: None,
            has_reset: false,
        };
        self.core.packets_lost(&packet_context, lost_range, out);
    }

    /// Processes a packet that has waited.
    fn release_packet(
        &mut self,
        stream: StreamId,
        sequence: u64,
        held_packet: HeldPacket,
        out: &mut impl MarketEventSink,
    ) {
        self.held_bytes -= held_packet.bytes.len();
        let HeldPacket { line_index: line, ts_recv, position, bytes } = held_packet;
        let channel = self.streams[stream.index()].channel;
        let mut packet_context = PacketContext {
            channel,
            line,
            stream,
            origin: self.origin(stream),
            ts_recv,
            position,
            sent_ns: None,
            has_reset: false,
        };
        let decode_result = self.packets.open(channel, &bytes).and_then(|(head, body)| {
            (packet_context.sent_ns, packet_context.has_reset) = (head.time_ns, head.has_reset);
            self.keep_early(&packet_context, &bytes);
            match self.is_unneeded(channel) {
                true => {
                    self.packets.batch.clear();
                    Ok(())
                }
                false => self.packets.body(
                    channel,
                    PacketBody { payload: &bytes, offset: body },
                    &mut self.core.long_ids,
                ),
            }
        });
        match decode_result {
            Ok(()) => {
                self.streams[stream.index()].stream.mark_used(sequence, line, packet_context.sent_ns);
                self.apply_packet(&packet_context, &bytes, out);
            }
            Err(fault) => {
                let arbitrated_stream = &mut self.streams[stream.index()].stream;
                arbitrated_stream.mark_corrupt(sequence, line, ts_recv);
                let lost_range = arbitrated_stream.skip_packet(sequence);
                self.core.packets_lost(&packet_context, lost_range, out);
                self.refuse_packet(&packet_context, &bytes, &fault, out);
            }
        }
        if self.spare_buffers.len() < SPARE_MAX {
            self.spare_buffers.push(bytes);
        }
    }

    /// Processes all packets that wait in a stream, and reports its gaps.
    fn flush(&mut self, stream: StreamId, out: &mut impl MarketEventSink) {
        loop {
            let arbitrated_stream = &mut self.streams[stream.index()].stream;
            if let Some((sequence, held_packet)) = arbitrated_stream.next() {
                self.release_packet(stream, sequence, held_packet, out);
            } else if let Some(lost_range) = arbitrated_stream.give_up_now() {
                let now = arbitrated_stream.last_heard();
                self.packets_lost(stream, now, lost_range, out);
            } else {
                return;
            }
        }
    }

    /// Handles the passage of time: processes packets that have waited too long.
    #[cold]
    fn pass_time(&mut self, now: i64, out: &mut impl MarketEventSink) {
        self.has_waiting = false;
        for stream in (0..self.streams.len()).map(StreamId::new) {
            if self.streams[stream.index()].stream.has_waiting() {
                self.release_ready(stream, now, out);
                self.has_waiting |= self.streams[stream.index()].stream.has_waiting();
            }
        }
    }

    /// Decides about the packet that the line has set aside: the new packet shows that it is good, or that the numbers
    /// restart. Returns how to handle the new packet.
    #[cold]
    fn resolve_set_aside(
        &mut self,
        packet_context: &PacketContext,
        sequence: u64,
        verdict: ArrivalVerdict,
        out: &mut impl MarketEventSink,
    ) -> ArrivalVerdict {
        let line = usize::from(packet_context.line);
        let arbitrated_stream = &mut self.streams[packet_context.stream.index()].stream;
        let good = arbitrated_stream.aside_verdict.take();
        let aside_packet = arbitrated_stream.aside_packets[line].take();
        if arbitrated_stream.aside_packets.iter().all(Option::is_none) {
            self.core.products.set_aside_since(packet_context.stream, None);
        }
        if verdict == ArrivalVerdict::Restart {
            // Waiting packets have old numbers: they are used, so that they are accounted for.
            let expected_number = arbitrated_stream.expected_number;
            while let Some((sequence, held_packet)) =
                self.streams[packet_context.stream.index()].stream.drain()
            {
                self.release_packet(packet_context.stream, sequence, held_packet, out);
            }
            self.streams[packet_context.stream.index()].stream.expected_number = expected_number;
            self.core.restart_stream(packet_context, out);
        }
        match (aside_packet, good) {
            (Some((sequence, held_packet)), Some(true)) => {
                let packet_context = PacketContext {
                    ts_recv: held_packet.ts_recv,
                    position: held_packet.position,
                    sent_ns: None,
                    has_reset: false,
                    ..*packet_context
                };
                let arbitrated_stream = &mut self.streams[packet_context.stream.index()].stream;
                let verdict = if arbitrated_stream.is_of_stream(packet_context.line) {
                    arbitrated_stream.classify(sequence)
                } else {
                    ArrivalVerdict::Late
                };
                match self.packets.open(packet_context.channel, &held_packet.bytes) {
                    Ok((head, body)) => {
                        let packet_context = PacketContext {
                            sent_ns: head.time_ns,
                            has_reset: head.has_reset,
                            ..packet_context
                        };
                        let body = PacketBody { payload: &held_packet.bytes, offset: body };
                        self.handle_set_aside(
                            &packet_context,
                            SequenceVerdict { sequence, verdict },
                            body,
                            out,
                        );
                    }
                    Err(fault) => self.refuse_packet(&packet_context, &held_packet.bytes, &fault, out),
                }
            }
            (Some((_, held_packet)), _) => self.refuse_damaged(packet_context.stream, held_packet, out),
            (None, _) => {}
        }
        let arbitrated_stream = &mut self.streams[packet_context.stream.index()].stream;
        match verdict {
            ArrivalVerdict::Restart | ArrivalVerdict::Now | ArrivalVerdict::Wait => {
                arbitrated_stream.classify(sequence)
            }
            other => other,
        }
    }

    /// Refuses a packet whose number was damaged.
    fn refuse_damaged(&mut self, stream: StreamId, held_packet: HeldPacket, out: &mut impl MarketEventSink) {
        let channel = self.streams[stream.index()].channel;
        let (line, origin) = (held_packet.line_index, self.origin(stream));
        let packet_context = PacketContext {
            channel,
            line,
            stream,
            origin,
            ts_recv: held_packet.ts_recv,
            position: held_packet.position,
            sent_ns: None,
            has_reset: false,
        };
        let detail = "its number is far from all others of its line".to_owned();
        self.refuse_packet(
            &packet_context,
            &held_packet.bytes,
            &PacketFault { code: "bad_sequence", detail },
            out,
        );
    }

    /// Returns whether a packet's messages are of no use now, so that only its number is read.
    #[inline]
    fn is_unneeded(&self, channel: ChannelId) -> bool {
        let channel = &self.config.channels[channel.index()];
        channel.role == ChannelRole::Snapshot
            && self.config.reset_mode != DictionaryResetMode::Never
            && !self.core.products.needs_snapshots(channel.channel_pair)
    }

    #[cold]
    fn refuse_packet(
        &mut self,
        packet_context: &PacketContext,
        payload: &[u8],
        fault: &PacketFault,
        out: &mut impl MarketEventSink,
    ) {
        self.counters.refused_packets += 1;
        let refusal = RefusedInput { code: fault.code, detail: &fault.detail, raw: payload };
        self.core.emit_for_packet(packet_context, payload.len(), MarketEvent::Refused(refusal), out);
        self.core.emit_for_packet(
            packet_context,
            payload.len(),
            MarketEvent::End(MessageOutcome::Refused),
            out,
        );
    }

    #[inline]
    fn stream_of(&mut self, channel: ChannelId, head: &PacketHeader) -> Option<StreamId> {
        let latest = &mut self.latest_streams[channel.index()][head.partition as usize % LATEST];
        let is_match =
            |s: &SenderStream| (s.channel, s.sender, s.partition) == (channel, head.sender, head.partition);
        if self.streams.get(latest.index()).is_some_and(is_match) {
            return Some(*latest);
        }
        let stream_index = self.streams.iter().position(is_match);
        let stream_index = match stream_index {
            Some(stream_index) => stream_index,
            None if self.streams.iter().filter(|s| s.channel == channel).count() >= STREAMS_MAX => {
                return None;
            }
            None => {
                let PacketHeader { sender, partition, .. } = *head;
                let stream = ArbitratedStream::new(self.config.arbitration_window);
                let is_same_sender = |s: &SenderStream| (s.sender, s.partition) == (sender, partition);
                let origin = self.streams.iter().position(is_same_sender).unwrap_or(self.streams.len());
                let origin = StreamId::new(origin);
                self.streams.push(SenderStream { channel, sender, partition, origin, stream });
                self.streams.len() - 1
            }
        };
        *latest = StreamId::new(stream_index);
        Some(*latest)
    }
}

/// Buffers kept for packets that wait.
const SPARE_MAX: usize = 256;
