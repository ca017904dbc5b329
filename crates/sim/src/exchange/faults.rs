//! Faults between the exchange and its listeners: copies of packets that are lost, late, doubled, damaged.

use super::{ChannelTemplates, DeliveredPacket, Error, ExchangeChannel, ExchangeConfig, ExchangeLine};
use crate::rng::Rng;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use unitape_fast::Decoder;

/// The rates of faults, of a million packets. By default there are no faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FaultRates {
    /// Lost on one line; where there is only one line, lost.
    pub lost_once: u32,
    /// Lost on both lines.
    pub lost: u32,
    /// From here on packets in a row are lost, on one line or on both.
    pub burst: u32,
    /// The most packets of a burst.
    pub burst_packets: u32,
    /// Come twice on a line.
    pub doubled: u32,
    /// Packets held back on a line, so that later packets overtake them.
    pub swapped: u32,
    /// A copy is damaged: a bit is turned, or its end is cut off.
    pub damaged: u32,
    /// A line falls silent.
    pub dead: u32,
    /// For so long, in nanoseconds.
    pub dead_ns: u64,
    /// The exchange begins again: all numbers from 1, all books empty.
    pub restarts: u32,
    /// The packets before this one are not heard.
    pub join: u64,
}

impl FaultRates {
    /// Returns rates with some faults of every kind.
    #[must_use]
    pub fn of_all_kinds() -> Self {
        FaultRates {
            lost_once: 10_000,
            lost: 2_000,
            burst: 100,
            burst_packets: 40,
            doubled: 5_000,
            swapped: 10_000,
            damaged: 2_000,
            dead: 200,
            dead_ns: 200_000_000,
            restarts: 50,
            join: 0,
        }
    }
}

/// A packet on its way to the lines of its channel.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExchangePacket<'p> {
    pub channel: ExchangeChannel,
    pub partition: u32,
    pub ts_ns: u64,
    /// The packet's sequence number in the channel.
    pub number: u32,
    pub bytes: &'p [u8],
}

/// Counts of the faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct FaultCounts {
    /// Packets that the exchange made.
    pub packets: u64,
    /// Copies that were delivered.
    pub delivered: u64,
    /// Packets lost on one line.
    pub lost_once: u64,
    /// Packets lost on both, or on the only one.
    pub lost: u64,
    /// Times that packets in a row were lost.
    pub bursts: u64,
    /// Copies that were lost in them.
    pub in_bursts: u64,
    /// Copies that came twice.
    pub doubled: u64,
    /// Copies that were held back.
    pub swapped: u64,
    /// Copies that were damaged.
    pub damaged: u64,
    /// Times that a line fell silent.
    pub dead: u64,
    /// Copies that were not heard for that.
    pub silent: u64,
    /// Times that the exchange began again.
    pub restarts: u64,
    /// Packets before the first that was heard.
    pub missed: u64,
}

/// The longest time that a copy is held back to be overtaken.
const HELD_NS: u64 = 3_000_000;
/// The delay of the later line.
const SKEW_NS: u64 = 40_000;
/// The time for which a line is the later one.
const LATER_NS: u64 = 700_000_000;
/// On its way at least.
const WAY_NS: u64 = 5_000;
/// Bits that are turned before the end is cut off instead.
const TURNS: u32 = 16;

/// The lines between.
#[derive(Debug)]
pub(super) struct FaultyLines {
    faults: FaultRates,
    rng: Rng,
    pub counts: FaultCounts,
    /// Copies on their way.
    under_way: BinaryHeap<Reverse<PacketCopy>>,
    copies: u64,
    /// By channel, partition and line.
    line_states: [Vec<[FaultyLineState; 2]>; 3],
    /// Decoders that check that damage can be detected, by channel.
    decoders: [Decoder; 3],
}

/// A line of a channel of a partition.
#[derive(Debug, Clone, Default)]
struct FaultyLineState {
    /// When the last copy came.
    last_ns: u64,
    /// Until when it is silent.
    dead_ns: u64,
    /// Packets of the burst that are still to be lost.
    burst: u32,
}

#[derive(Debug)]
struct PacketCopy {
    ts_ns: u64,
    number: u64,
    packet: DeliveredPacket,
}

impl PartialEq for PacketCopy {
    fn eq(&self, other: &Self) -> bool {
        (self.ts_ns, self.number) == (other.ts_ns, other.number)
    }
}
impl Eq for PacketCopy {}
impl PartialOrd for PacketCopy {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for PacketCopy {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.ts_ns, self.number).cmp(&(other.ts_ns, other.number))
    }
}

impl FaultyLines {
    pub fn new(config: &ExchangeConfig, templates: &ChannelTemplates) -> Self {
        let of_channels = [&templates.incremental, &templates.snapshot, &templates.reference];
        Self {
            faults: config.faults,
            rng: Rng::new(config.seed ^ 0x6c69_6e65_735f_6162),
            counts: FaultCounts::default(),
            under_way: BinaryHeap::new(),
            copies: 0,
            line_states: std::array::from_fn(|_| vec![Default::default(); config.partitions as usize + 1]),
            decoders: of_channels.map(|templates| Decoder::new(templates.clone())),
        }
    }

    /// Stops all faults from now on.
    pub fn stop_faults(&mut self) {
        self.faults = FaultRates { join: self.faults.join, ..FaultRates::default() };
        for line_state in self.line_states.iter_mut().flatten().flatten() {
            (line_state.dead_ns, line_state.burst) = (0, 0);
        }
    }

    fn happens(&mut self, of_million: u32) -> bool {
        of_million > 0 && self.rng.below(1_000_000) < u64::from(of_million)
    }

    /// Draws whether the exchange restarts now, and counts the restart.
    pub fn restarts(&mut self) -> bool {
        let now = self.happens(self.faults.restarts);
        self.counts.restarts += u64::from(now);
        now
    }

    /// Returns the next packet copy that arrives before or at `ts_ns`.
    pub fn next(&mut self, ts_ns: u64) -> Option<DeliveredPacket> {
        if self.under_way.peek()?.0.ts_ns > ts_ns {
            return None;
        }
        let Reverse(copy) = self.under_way.pop()?;
        self.counts.delivered += 1;
        Some(copy.packet)
    }

    /// Sends a packet, on both lines if its channel has them; `number` is that of its header.
    pub fn send(&mut self, config: &ExchangeConfig, packet: ExchangePacket<'_>) -> Result<(), Error> {
        let ExchangePacket { channel, partition, ts_ns, number, bytes } = packet;
        self.counts.packets += 1;
        let (channel_partition, has_two_lines) =
            ((channel as usize, partition as usize), config.lines(channel) > 1);
        if has_two_lines && self.happens(self.faults.dead) {
            let line = self.rng.below(2) as usize;
            self.line_states[channel_partition.0][channel_partition.1][line].dead_ns =
                ts_ns + self.faults.dead_ns;
            self.counts.dead += 1;
        }
        let is_lost = self.happens(self.faults.lost);
        let is_lost_once = self.happens(self.faults.lost_once);
        let first = self.rng.below(2) as usize;
        if self.faults.burst_packets > 0 && self.happens(self.faults.burst) {
            let packets = 1 + self.rng.below(self.faults.burst_packets.into()) as u32;
            let burst_line = self.rng.below(3) as usize;
            let is_hit = |line_index: usize| !has_two_lines || burst_line != line_index;
            let line_states =
                self.line_states[channel_partition.0][channel_partition.1].iter_mut().enumerate();
            line_states
                .filter(|(line_index, _)| is_hit(*line_index))
                .for_each(|(_, line_state)| line_state.burst = packets);
            self.counts.bursts += 1;
        }
        if self.counts.packets <= self.faults.join {
            self.counts.missed += 1;
            return Ok(());
        }
        if is_lost || is_lost_once && !has_two_lines {
            self.counts.lost += 1;
            return Ok(());
        }
        self.counts.lost_once += u64::from(is_lost_once);
        let damaged = self.happens(self.faults.damaged);
        let spoilt = self.rng.below(2) as usize;
        for (line_index, line) in
            [ExchangeLine::A, ExchangeLine::B].into_iter().enumerate().take(config.lines(channel))
        {
            if is_lost_once && line_index == first {
                continue;
            }
            let line_state = &mut self.line_states[channel_partition.0][channel_partition.1][line_index];
            if line_state.dead_ns > ts_ns {
                self.counts.silent += 1;
                continue;
            }
            if line_state.burst > 0 {
                line_state.burst -= 1;
                self.counts.in_bursts += 1;
                continue;
            }
            let mut copy = bytes.to_vec();
            let mut sound = copy.len();
            if damaged && (!has_two_lines || line_index == spoilt || is_lost_once) {
                sound = self.damage(channel, &mut copy);
                self.counts.damaged += 1;
            }
            // In turn one of the lines is the later one.
            let later = has_two_lines && (ts_ns / LATER_NS) as usize % 2 != line_index;
            let way_ns = WAY_NS + self.rng.below(WAY_NS) + if later { SKEW_NS } else { 0 };
            // Copies of a line come in order, but those that are held back.
            let line_state = &mut self.line_states[channel_partition.0][channel_partition.1][line_index];
            let mut come_ns = (ts_ns + way_ns).max(line_state.last_ns);
            line_state.last_ns = come_ns;
            if self.happens(self.faults.swapped) {
                self.counts.swapped += 1;
                come_ns += 1 + self.rng.below(HELD_NS);
            }
            let twice = self.happens(self.faults.doubled);
            self.counts.doubled += u64::from(twice);
            let to = config.address(channel, line, partition);
            for n in 0..1 + u64::from(twice) {
                let ts_ns = come_ns + n * (1 + self.rng.below(SKEW_NS));
                let bytes = copy.clone();
                let packet = DeliveredPacket { channel, line, partition, to, number, ts_ns, bytes, sound };
                self.copies += 1;
                self.under_way.push(Reverse(PacketCopy { ts_ns, number: self.copies, packet }));
            }
        }
        Ok(())
    }

    /// Damages a packet so that a decoder detects the damage, and decodes everything before it as sent. A receiver
    /// could not notice damage of any other kind. Returns where the first bad message begins.
    fn damage(&mut self, channel: ExchangeChannel, bytes: &mut Vec<u8>) -> usize {
        // By chance of its own: what a decoder makes of the damage must not change all that comes after.
        let mut rng = Rng::new(self.rng.bits());
        let mut ends = vec![0];
        let decoder = &mut self.decoders[channel as usize];
        decoder.reset();
        while let Some(offset) = ends.last().copied().filter(|offset| *offset < bytes.len()) {
            ends.push(offset + decoder.decode(&bytes[offset..]).expect("it was just encoded").bytes);
        }
        for _ in 0..if rng.one_in(2) { TURNS } else { 0 } {
            let (bit_offset, bit) = (rng.below(bytes.len() as u64) as usize, 1 << rng.below(8));
            bytes[bit_offset] ^= bit;
            decoder.reset();
            let mut from = 0;
            let good = ends.iter().skip(1).take_while(|end| {
                let is_good =
                    decoder.decode(&bytes[from..]).is_ok_and(|message| from + message.bytes == **end);
                from = **end;
                is_good
            });
            let last = ends[good.count()];
            decoder.reset();
            let mut from = 0;
            while from < last {
                from += decoder.decode(&bytes[from..]).expect("it was good").bytes;
            }
            // The first message that is not as it was is the one with the bit, and is seen to be bad.
            if last <= bit_offset
                && ends.iter().all(|end| !(last < *end && *end <= bit_offset))
                && decoder.decode(&bytes[last..]).is_err()
            {
                return last;
            }
            bytes[bit_offset] ^= bit;
        }
        let inside: Vec<usize> = (1..bytes.len()).filter(|offset| !ends.contains(offset)).collect();
        bytes.truncate(inside[rng.below(inside.len() as u64) as usize]);
        ends.into_iter().rfind(|end| *end < bytes.len()).unwrap_or(0)
    }
}
