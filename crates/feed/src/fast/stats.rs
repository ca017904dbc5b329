//! What a handler has seen, counted.

use super::lines::LineStats;
use super::products::Counters;
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
