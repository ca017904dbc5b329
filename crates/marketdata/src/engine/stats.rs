//! The statistics of a handler.

use super::arbitration::LineStats;
use serde::Serialize;

/// The statistics of a handler.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EngineStats {
    /// By channel.
    pub channels: Vec<ChannelStats>,
    /// The counters of products and instruments.
    pub products: ProductCounters,
    /// Levels that wait for snapshots now.
    pub waiting: usize,
    /// Packets sent to addresses of no channel.
    pub unknown: u64,
    /// Packets that could not be used.
    pub refused: u64,
}

/// The statistics of a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChannelStats {
    /// The channel's name.
    pub name: String,
    /// The channel's lines, added up over all senders.
    pub lines: [LineStats; 2],
    /// Gaps of packets that came on no line.
    pub gaps: u64,
    /// Packets in them.
    pub lost: u64,
    /// Packets that came when they had been given up, or with numbers that were over.
    pub late: u64,
    /// Packets that one line did not bring and the other did.
    pub recovered: u64,
    /// The number of restarts of numbers.
    pub restarts: u64,
}

/// The counters over all products.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProductCounters {
    /// Gaps in the numbers of messages.
    pub gaps: u64,
    /// Gaps among these that no gap of packets and no refused message explains.
    pub gaps_alone: u64,
    /// Messages that are missing in them.
    pub missing: u64,
    /// Messages whose number was there already.
    pub old: u64,
    /// Instruments that came back by a snapshot.
    pub recovered: u64,
    /// Snapshots that were used.
    pub snapshots: u64,
    /// Snapshots among these that came before their gap was noticed.
    pub snapshots_early: u64,
    /// Snapshots older than the gap, or of a product that reference data have not described yet.
    pub snapshots_old: u64,
    /// Snapshots of instruments that did not need a snapshot.
    pub snapshots_spare: u64,
    /// Levels that had to wait.
    pub waited: u64,
    /// Levels among these for which there was no room.
    pub no_room: u64,
    /// Levels beyond the depth of their product.
    pub beyond: u64,
    /// Levels at places that their side does not have.
    pub misplaced: u64,
    /// Messages of products or instruments beyond the bounds.
    pub refused: u64,
    /// Parts that were left out: entries of a type that the configuration lacks, levels of snapshots without a price.
    /// In trades and definitions: ids that are no number, ticks and multipliers that do not fit.
    pub unknown: u64,
}
