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
    pub(super) early: Vec<EarlySnapshotBuffer>,
    /// Nothing more will come.
    pub(super) is_over: bool,
    /// By channel: the streams of the last packets, by partition.
    latest: Vec<[StreamId; LATEST]>,
    /// Some packet waits.
    waits: bool,
    held_bytes: usize,
    /// The address of the last packet, and its channel and line.
    route: Option<(SocketAddr, ChannelId, u8)>,
    spare: Vec<Vec<u8>>,
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
    pub unknown: u64,
    pub refused: u64,
}

/// Partitions of a channel whose packets come in turns, so that the last stream of each is known.
const LATEST: usize = 8;

/// Senders and partitions of a channel, at most.
const STREAMS_MAX: usize = 256;

impl Engine {
    /// A handler that has seen nothing.
    #[must_use]
    pub fn new(config: Arc<HandlerConfig>) -> Self {
        let has = |channel: usize, line: u8| {
            config.addresses.iter().any(|(_, c, l)| c.index() == channel && *l == line)
        };
        let pulse = |n: usize| LineLiveness::new(&config.window, [has(n, 0), has(n, 1)]);
        Self {
            pulses: (0..config.channels.len()).map(pulse).collect(),
            early: config.pairs.iter().map(|_| EarlySnapshotBuffer::default()).collect(),
            is_over: false,
            core: MessageProcessor::new(config.clone()),
            packets: PacketDecoder::new(config.clone()),
            streams: Vec::new(),
            latest: vec![[StreamId::NONE; LATEST]; config.channels.len()],
            waits: false,
            held_bytes: 0,
            route: None,
            spare: Vec::new(),
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

    /// Whether the levels of an instrument are whole.
    #[must_use]
    pub fn is_live(&self, instrument: InstrumentId) -> bool {
        self.core.products.instruments[instrument.index()].live
    }

    /// The book that is made of an instrument's levels turned out not to be the venue's: the next snapshot with all that has
    /// come until now gives it in full, and until then no levels come for it. False where no snapshot will come.
    pub fn want_snapshot(&mut self, instrument: InstrumentId) -> bool {
        self.core.want_snapshot(instrument)
    }

    /// Processes a datagram. Its events, and those of packets that waited for it or for a timeout, go to `out`.
    pub fn packet(&mut self, packet: Packet<'_>, out: &mut impl MarketEventSink) {
        if self.waits {
            self.time(packet.ts_recv.0, out);
        }
        let Some((channel, line)) = self.route(packet.to) else {
            self.counters.unknown += 1;
            let of = self.packet_context(ChannelId(0), 0, StreamId::NONE, &packet, PacketHeader::default());
            return self.core.emit_for_packet(
                &of,
                packet.payload.len(),
                MarketEvent::End(MessageOutcome::Ignored),
                out,
            );
        };
        if let Some(change) = self.pulses[channel.index()].note_packet(line, packet.ts_recv.0) {
            let of = self.packet_context(channel, line, StreamId::NONE, &packet, PacketHeader::default());
            self.line_changes(&of, change, packet.payload.len(), out);
        }
        let opened = match self.packets.open(channel, packet.payload) {
            Ok(opened) => opened,
            Err(why) => {
                let of = self.packet_context(channel, line, StreamId::NONE, &packet, PacketHeader::default());
                return self.refuse(&of, packet.payload, &why, out);
            }
        };
        let (head, body) = opened;
        let Some(sequence) = head.sequence else {
            let of = self.packet_context(channel, line, StreamId::NONE, &packet, head);
            self.keep_early(&of, packet.payload);
            if self.is_unneeded(channel) {
                return self.core.emit_for_packet(
                    &of,
                    packet.payload.len(),
                    MarketEvent::End(MessageOutcome::Ignored),
                    out,
                );
            }
            return match self.packets.body(
                channel,
                PacketBody { payload: packet.payload, offset: body },
                &mut self.core.ids,
            ) {
                Ok(()) => self.apply(&of, packet.payload, out),
                Err(why) => self.refuse(&of, packet.payload, &why, out),
            };
        };
        let Some(stream) = self.stream(channel, &head) else {
            let why = PacketFault {
                code: "no_room",
                detail: format!("more than {STREAMS_MAX} senders on a channel"),
            };
            let of = self.packet_context(channel, line, StreamId::NONE, &packet, head);
            return self.refuse(&of, packet.payload, &why, out);
        };
        let PacketHeader { time: sent, reset, .. } = head;
        let Packet { ts_recv: UnixNanos(ts_recv), place, .. } = packet;
        let SenderStream { origin, stream: at, .. } = &mut self.streams[stream.index()];
        let of = PacketContext { channel, line, stream, origin: *origin, ts_recv, place, sent, reset };
        let arrival = PacketArrival { line, sequence, ts_recv, sent, reset };
        at.settled = None;
        let begins = head.reset && at.expected.is_none();
        let mut verdict = at.offer(arrival, packet.payload.len());
        if verdict == ArrivalVerdict::Restart || at.settled.is_some() {
            verdict = self.settle(&of, sequence, verdict, out);
            // Another packet was decoded in between.
            if matches!(verdict, ArrivalVerdict::Now | ArrivalVerdict::Wait) {
                _ = self.packets.open(channel, packet.payload);
            }
        }
        if begins && verdict == ArrivalVerdict::Now {
            self.core.begins_behind_snapshots(&of, out);
        }
        let body = PacketBody { payload: packet.payload, offset: body };
        self.place(&of, SequenceVerdict { sequence, verdict }, body, out);
    }

    /// No packet arrived until `now`: packets that have waited too long for a missing one are processed without it.
    pub fn idle(&mut self, now: UnixNanos, out: &mut impl MarketEventSink) {
        if self.waits {
            self.time(now.0, out);
        }
    }

    /// Nothing more of these channels will come, after [`Engine::finish`]: all books are stale from here on, and stay as they
    /// are.
    pub fn close(&mut self, out: &mut impl MarketEventSink) {
        let now = self.streams.iter().map(|s| s.stream.last_heard()).max().unwrap_or(0);
        let of = PacketContext {
            channel: ChannelId(0),
            line: 0,
            stream: StreamId::NONE,
            origin: StreamId::NONE,
            ts_recv: now,
            place: 0,
            sent: None,
            reset: false,
        };
        self.core.close(&of, out);
    }

    /// The configuration it was made with.
    #[must_use]
    pub fn config(&self) -> &HandlerConfig {
        &self.config
    }

    /// Nothing more will come: waiting packets are used unchanged.
    pub fn finish(&mut self, out: &mut impl MarketEventSink) {
        self.is_over = true;
        for stream in (0..self.streams.len()).map(StreamId::new) {
            self.flush(stream, out);
            for line in 0..2 {
                if let Some((_, kept)) = self.streams[stream.index()].stream.aside[line].take() {
                    self.refuse_damaged(stream, kept, out);
                }
            }
        }
        self.waits = false;
        self.lines_end(out);
    }

    /// A line is down, or back.
    #[cold]
    fn line_changes(
        &mut self,
        of: &PacketContext,
        change: LivenessChange,
        length: usize,
        out: &mut impl MarketEventSink,
    ) {
        let LivenessChange { line, down, since } = change;
        let since = UnixNanos(since);
        let step =
            if down { MarketEvent::LineDown { line, since } } else { MarketEvent::LineUp { line, since } };
        self.core.emit_for_packet(&PacketContext { line, ..*of }, length, step, out);
    }

    /// Nothing more will come: a line that ended well before the other is down, however little time there was to see it.
    fn lines_end(&mut self, out: &mut impl MarketEventSink) {
        let now = self.streams.iter().map(|s| s.stream.last_heard()).max().unwrap_or(0);
        let channels = (0..self.pulses.len() as u16).map(ChannelId);
        for (channel, line) in channels.flat_map(|channel| [(channel, 0), (channel, 1)]) {
            let pulse = self.pulses[channel.index()];
            let of_channel = self.streams.iter().filter(|s| s.channel == channel);
            let behind = of_channel.fold(0u64, |sum, s| sum.saturating_add(s.stream.packets_behind(line)));
            if pulse.has(line) && !pulse.is_down(line) && behind > u64::from(self.config.window.packets) {
                let change = self.pulses[channel.index()].mark_down(line);
                let to = self.config.addresses[0].0;
                let packet = Packet { to, ts_recv: UnixNanos(now), place: 0, payload: &[] };
                let of = self.packet_context(channel, line, StreamId::NONE, &packet, PacketHeader::default());
                self.line_changes(&of, change, 0, out);
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
        let (sent, reset) = (head.time, head.reset);
        PacketContext {
            channel,
            line,
            stream,
            origin,
            ts_recv: packet.ts_recv.0,
            place: packet.place,
            sent,
            reset,
        }
    }

    fn origin(&self, stream: StreamId) -> StreamId {
        self.streams.get(stream.index()).map_or(StreamId::NONE, |s| s.origin)
    }

    #[inline]
    fn route(&mut self, to: SocketAddr) -> Option<(ChannelId, u8)> {
        match self.route {
            Some((known, channel, line)) if known == to => Some((channel, line)),
            _ => {
                let (to, channel, line) = *self.config.addresses.iter().find(|(known, ..)| *known == to)?;
                self.route = Some((to, channel, line));
                Some((channel, line))
            }
        }
    }

    fn apply(&mut self, of: &PacketContext, payload: &[u8], out: &mut impl MarketEventSink) {
        if self.packets.batch.messages.is_empty() {
            return self.core.emit_for_packet(
                of,
                payload.len(),
                MarketEvent::End(MessageOutcome::Ignored),
                out,
            );
        }
        self.core.batch(&self.packets.batch, of, payload, out);
        if let Some(pair) = self.core.products.gap_of.take() {
            self.use_early(pair, out);
        }
    }

    /// A packet with what is to be done with it.
    #[inline(always)]
    fn place(
        &mut self,
        of: &PacketContext,
        arrival: SequenceVerdict,
        body: PacketBody<'_>,
        out: &mut impl MarketEventSink,
    ) {
        let (SequenceVerdict { sequence, verdict }, payload) = (arrival, body.payload);
        if let ArrivalVerdict::Now | ArrivalVerdict::Wait = verdict
            && let Some(change) = self.pulses[of.channel.index()].note_first_copy(of.line, of.ts_recv)
        {
            self.line_changes(of, change, payload.len(), out);
        }
        if verdict == ArrivalVerdict::Now {
            self.keep_early(of, payload);
        }
        match verdict {
            ArrivalVerdict::Now if self.is_unneeded(of.channel) => {
                self.streams[of.stream.index()].stream.mark_used(sequence, of.line, of.sent);
                self.core.emit_for_packet(of, payload.len(), MarketEvent::End(MessageOutcome::Ignored), out);
            }
            ArrivalVerdict::Now => match self.packets.body(of.channel, body, &mut self.core.ids) {
                Ok(()) => {
                    self.streams[of.stream.index()].stream.mark_used(sequence, of.line, of.sent);
                    self.apply(of, payload, out);
                }
                Err(why) => {
                    self.streams[of.stream.index()].stream.mark_corrupt(sequence, of.line, of.ts_recv);
                    self.refuse(of, payload, &why, out);
                }
            },
            ArrivalVerdict::Wait => return self.keep(of, sequence, body, out),
            ArrivalVerdict::Duplicate => {
                self.core.emit_for_packet(
                    of,
                    payload.len(),
                    MarketEvent::End(MessageOutcome::Duplicate),
                    out,
                );
            }
            ArrivalVerdict::Late => {
                let detail = format!("packet {sequence} came when it had been given up");
                self.refuse(of, payload, &PacketFault { code: "late", detail }, out);
            }
            ArrivalVerdict::Aside => {
                let kept = self.held_packet(of, payload);
                self.streams[of.stream.index()].stream.aside[usize::from(of.line)] = Some((sequence, kept));
                self.core.products.set_aside_since(of.stream, Some(of.ts_recv));
            }
            ArrivalVerdict::Restart => unreachable!("it was settled"),
        }
        if self.streams[of.stream.index()].stream.has_waiting() {
            self.release_ready(of.stream, of.ts_recv, out);
        }
    }

    /// Places a packet that was set aside.
    #[cold]
    #[inline(never)]
    fn place_late(
        &mut self,
        of: &PacketContext,
        arrival: SequenceVerdict,
        body: PacketBody<'_>,
        out: &mut impl MarketEventSink,
    ) {
        self.place(of, arrival, body, out);
    }

    #[cold]
    fn keep(
        &mut self,
        of: &PacketContext,
        sequence: u64,
        body: PacketBody<'_>,
        out: &mut impl MarketEventSink,
    ) {
        let payload = body.payload;
        // A bad packet must not block the other line's.
        if self.config.reset != DictionaryResetMode::Never
            && let Err(why) = self.packets.body(of.channel, body, &mut self.core.ids)
        {
            self.streams[of.stream.index()].stream.mark_corrupt(sequence, of.line, of.ts_recv);
            self.refuse(of, payload, &why, out);
        } else {
            let kept = self.held_packet(of, payload);
            self.held_bytes += payload.len();
            self.streams[of.stream.index()].stream.keep(sequence, kept, of.sent);
            self.waits = true;
        }
        self.release_ready(of.stream, of.ts_recv, out);
    }

    fn held_packet(&mut self, of: &PacketContext, payload: &[u8]) -> HeldPacket {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(payload);
        HeldPacket { line: of.line, ts_recv: of.ts_recv, place: of.place, bytes }
    }

    /// Processes waiting packets of a stream that are next, or before which the missing ones are given up.
    #[cold]
    fn release_ready(&mut self, stream: StreamId, now: i64, out: &mut impl MarketEventSink) {
        loop {
            let no_room = self.held_bytes > self.config.window.bytes;
            let at = &mut self.streams[stream.index()].stream;
            if let Some((sequence, kept)) = at.next() {
                self.release(stream, sequence, kept, out);
            } else if let Some(lost) = at.give_up(now, no_room) {
                self.packets_lost(stream, now, lost, out);
            } else {
                return;
            }
        }
    }

    fn packets_lost(
        &mut self,
        stream: StreamId,
        now: i64,
        lost: SequenceRange,
        out: &mut impl MarketEventSink,
    ) {
        let channel = self.streams[stream.index()].channel;
        let origin = self.origin(stream);
        let of = PacketContext {
            channel,
            line: 0,
            stream,
            origin,
            ts_recv: now,
            place: 0,
            sent: None,
            reset: false,
        };
        self.core.packets_lost(&of, lost, out);
    }

    /// A packet that waited.
    fn release(&mut self, stream: StreamId, sequence: u64, kept: HeldPacket, out: &mut impl MarketEventSink) {
        self.held_bytes -= kept.bytes.len();
        let HeldPacket { line, ts_recv, place, bytes } = kept;
        let channel = self.streams[stream.index()].channel;
        let mut of = PacketContext {
            channel,
            line,
            stream,
            origin: self.origin(stream),
            ts_recv,
            place,
            sent: None,
            reset: false,
        };
        let read = self.packets.open(channel, &bytes).and_then(|(head, body)| {
            (of.sent, of.reset) = (head.time, head.reset);
            self.keep_early(&of, &bytes);
            match self.is_unneeded(channel) {
                true => {
                    self.packets.batch.clear();
                    Ok(())
                }
                false => self.packets.body(
                    channel,
                    PacketBody { payload: &bytes, offset: body },
                    &mut self.core.ids,
                ),
            }
        });
        match read {
            Ok(()) => {
                self.streams[stream.index()].stream.mark_used(sequence, line, of.sent);
                self.apply(&of, &bytes, out);
            }
            Err(why) => {
                let at = &mut self.streams[stream.index()].stream;
                at.mark_corrupt(sequence, line, ts_recv);
                let lost = at.skip(sequence);
                self.core.packets_lost(&of, lost, out);
                self.refuse(&of, &bytes, &why, out);
            }
        }
        if self.spare.len() < SPARE_MAX {
            self.spare.push(bytes);
        }
    }

    /// All that waits in a stream, with its gaps.
    fn flush(&mut self, stream: StreamId, out: &mut impl MarketEventSink) {
        loop {
            let at = &mut self.streams[stream.index()].stream;
            if let Some((sequence, kept)) = at.next() {
                self.release(stream, sequence, kept, out);
            } else if let Some(lost) = at.give_up_now() {
                let now = at.last_heard();
                self.packets_lost(stream, now, lost, out);
            } else {
                return;
            }
        }
    }

    /// Time has passed: processes packets that have waited too long.
    #[cold]
    fn time(&mut self, now: i64, out: &mut impl MarketEventSink) {
        self.waits = false;
        for stream in (0..self.streams.len()).map(StreamId::new) {
            if self.streams[stream.index()].stream.has_waiting() {
                self.release_ready(stream, now, out);
                self.waits |= self.streams[stream.index()].stream.has_waiting();
            }
        }
    }

    /// A packet settles whether the one that its line has set aside is good, or shows that numbers begin again.
    /// Returns how the packet itself is to be handled.
    #[cold]
    fn settle(
        &mut self,
        of: &PacketContext,
        sequence: u64,
        verdict: ArrivalVerdict,
        out: &mut impl MarketEventSink,
    ) -> ArrivalVerdict {
        let line = usize::from(of.line);
        let at = &mut self.streams[of.stream.index()].stream;
        let good = at.settled.take();
        let aside = at.aside[line].take();
        if at.aside.iter().all(Option::is_none) {
            self.core.products.set_aside_since(of.stream, None);
        }
        if verdict == ArrivalVerdict::Restart {
            // Waiting packets have old numbers: they are used, so that they are accounted for.
            let first = at.expected;
            while let Some((sequence, kept)) = self.streams[of.stream.index()].stream.drain() {
                self.release(of.stream, sequence, kept, out);
            }
            self.streams[of.stream.index()].stream.expected = first;
            self.core.restart(of, out);
        }
        match (aside, good) {
            (Some((sequence, kept)), Some(true)) => {
                let of = PacketContext {
                    ts_recv: kept.ts_recv,
                    place: kept.place,
                    sent: None,
                    reset: false,
                    ..*of
                };
                let at = &mut self.streams[of.stream.index()].stream;
                let verdict =
                    if at.is_of_stream(of.line) { at.classify(sequence) } else { ArrivalVerdict::Late };
                match self.packets.open(of.channel, &kept.bytes) {
                    Ok((head, body)) => {
                        let of = PacketContext { sent: head.time, reset: head.reset, ..of };
                        let body = PacketBody { payload: &kept.bytes, offset: body };
                        self.place_late(&of, SequenceVerdict { sequence, verdict }, body, out);
                    }
                    Err(why) => self.refuse(&of, &kept.bytes, &why, out),
                }
            }
            (Some((_, kept)), _) => self.refuse_damaged(of.stream, kept, out),
            (None, _) => {}
        }
        let at = &mut self.streams[of.stream.index()].stream;
        match verdict {
            ArrivalVerdict::Restart | ArrivalVerdict::Now | ArrivalVerdict::Wait => at.classify(sequence),
            other => other,
        }
    }

    /// A packet whose number was damaged.
    fn refuse_damaged(&mut self, stream: StreamId, kept: HeldPacket, out: &mut impl MarketEventSink) {
        let channel = self.streams[stream.index()].channel;
        let (line, origin) = (kept.line, self.origin(stream));
        let of = PacketContext {
            channel,
            line,
            stream,
            origin,
            ts_recv: kept.ts_recv,
            place: kept.place,
            sent: None,
            reset: false,
        };
        let detail = "its number is far from all others of its line".to_owned();
        self.refuse(&of, &kept.bytes, &PacketFault { code: "bad_sequence", detail }, out);
    }

    /// Whether a packet's messages are of no use to anyone now: only its number is looked at.
    #[inline]
    fn is_unneeded(&self, channel: ChannelId) -> bool {
        let channel = &self.config.channels[channel.index()];
        channel.role == ChannelRole::Snapshot
            && self.config.reset != DictionaryResetMode::Never
            && !self.core.products.needs_snapshots(channel.pair)
    }

    #[cold]
    fn refuse(
        &mut self,
        of: &PacketContext,
        payload: &[u8],
        why: &PacketFault,
        out: &mut impl MarketEventSink,
    ) {
        self.counters.refused += 1;
        let refusal = RefusedInput { code: why.code, detail: &why.detail, raw: payload };
        self.core.emit_for_packet(of, payload.len(), MarketEvent::Refused(refusal), out);
        self.core.emit_for_packet(of, payload.len(), MarketEvent::End(MessageOutcome::Refused), out);
    }

    #[inline]
    fn stream(&mut self, channel: ChannelId, head: &PacketHeader) -> Option<StreamId> {
        let latest = &mut self.latest[channel.index()][head.partition as usize % LATEST];
        let is =
            |s: &SenderStream| (s.channel, s.sender, s.partition) == (channel, head.sender, head.partition);
        if self.streams.get(latest.index()).is_some_and(is) {
            return Some(*latest);
        }
        let found = self.streams.iter().position(is);
        let found = match found {
            Some(found) => found,
            None if self.streams.iter().filter(|s| s.channel == channel).count() >= STREAMS_MAX => {
                return None;
            }
            None => {
                let PacketHeader { sender, partition, .. } = *head;
                let stream = ArbitratedStream::new(self.config.window);
                let same = |s: &SenderStream| (s.sender, s.partition) == (sender, partition);
                let origin = self.streams.iter().position(same).unwrap_or(self.streams.len());
                let origin = StreamId::new(origin);
                self.streams.push(SenderStream { channel, sender, partition, origin, stream });
                self.streams.len() - 1
            }
        };
        *latest = StreamId::new(found);
        Some(*latest)
    }
}

/// Buffers kept for packets that wait.
const SPARE_MAX: usize = 256;
