//! What a handler has seen, counted.

use super::lines::LineStats;
use super::packets::{Engine, Sent};
use serde::Serialize;

/// What a handler has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// By channel.
    pub channels: Vec<ChannelStats>,
    /// Of products and instruments.
    pub products: Counters,
    /// Levels that wait for snapshots now.
    pub waiting: usize,
    /// Packets sent to addresses of no channel.
    pub unknown: u64,
    /// Packets that could not be used.
    pub refused: u64,
}

/// What a channel has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChannelStats {
    /// Its name.
    pub name: String,
    /// Its lines, of all senders together.
    pub lines: [LineStats; 2],
    /// Gaps of packets that came on no line.
    pub gaps: u64,
    /// Packets in them.
    pub lost: u64,
    /// Packets that came when they had been given up, or with numbers that were over.
    pub late: u64,
    /// Packets that one line did not bring and the other did.
    pub recovered: u64,
    /// How often numbers began again.
    pub restarts: u64,
}

/// What was counted over all products.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Gaps in the numbers of messages.
    pub gaps: u64,
    /// Of them, those that no gap of packets and no refused message explains.
    pub gaps_alone: u64,
    /// Messages that are missing in them.
    pub missing: u64,
    /// Messages whose number was there already.
    pub old: u64,
    /// Instruments that came back by a snapshot.
    pub recovered: u64,
    /// Snapshots that were taken.
    pub snapshots: u64,
    /// Of them, those that came before their gap was noticed.
    pub snapshots_early: u64,
    /// Snapshots older than the gap, or of a product of which reference data have not told yet.
    pub snapshots_old: u64,
    /// Snapshots of instruments that needed none.
    pub snapshots_spare: u64,
    /// Levels that had to wait.
    pub waited: u64,
    /// Of them, those for which there was no room.
    pub no_room: u64,
    /// Levels beyond the depth of their product.
    pub beyond: u64,
    /// Levels at places that their side does not have.
    pub misplaced: u64,
    /// Messages of products or instruments beyond the bounds.
    pub refused: u64,
    /// What was left out: entries of a type that the configuration does not have, levels of snapshots without a price; and of
    /// trades and definitions, ids that are no number, ticks and multipliers that do not fit.
    pub unknown: u64,
}

impl Engine {
    /// What it has seen.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut channels: Vec<_> = self
            .config
            .channels
            .iter()
            .map(|c| ChannelStats { name: c.name.clone(), ..ChannelStats::default() })
            .collect();
        for sent in &self.streams {
            let (stats, stream) = (&mut channels[usize::from(sent.channel)], &sent.stream);
            stats.gaps += stream.gaps;
            stats.lost = stats.lost.saturating_add(stream.lost_packets);
            stats.late += stream.late;
            stats.restarts += stream.restarts;
            let lines = [0, 1].map(|line| self.line_stats(sent, line));
            let missed = lines.iter().fold(0u64, |sum, line| sum.saturating_add(line.missed));
            let heard = lines.iter().filter(|l| l.packets > 0 || l.missed > 0).count() as u64;
            let lost_by_all = heard.saturating_mul(stream.lost_packets);
            stats.recovered = stats.recovered.saturating_add(missed.saturating_sub(lost_by_all));
            for (sum, line) in stats.lines.iter_mut().zip(lines) {
                sum.add(&line);
            }
        }
        for (stats, pulse) in channels.iter_mut().zip(&self.pulses) {
            for (n, line) in (0..).zip(&mut stats.lines) {
                line.down = pulse.is_down(n);
            }
        }
        Stats {
            channels,
            products: self.core.products.counters,
            waiting: self.core.products.waiting(),
            unknown: self.counters.unknown,
            refused: self.counters.refused,
        }
    }

    /// What a line of a stream did, with what is missing at its end where nothing more will come.
    fn line_stats(&self, sent: &Sent, line: u8) -> LineStats {
        let mut stats = *sent.stream.line_stats(line);
        let pulse = &self.pulses[usize::from(sent.channel)];
        if pulse.is_down(line) || self.is_over && pulse.has(line) {
            stats.missed = stats.missed.saturating_add(sent.stream.behind(line));
        }
        stats
    }
}

impl LineStats {
    /// The sum of both.
    pub(super) fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.first += other.first;
        self.twice += other.twice;
        self.missed += other.missed;
        self.reordered += other.reordered;
        self.corrupt += other.corrupt;
    }
}
