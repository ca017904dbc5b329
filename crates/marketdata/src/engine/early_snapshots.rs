//! Snapshots that came before their gap was noticed.
//!
//! ```text
//!  messages    41 42 43 . .                   46         46 shows that 44 and 45 are missing
//!  snapshots                45 ───────────────┘ used     it has them in it; while no book was stale nobody looked into it
//! ```
//!
//! The last packets of snapshots are kept as they came, [`RecoverySettings::early_bytes`] of each pair. Where a gap is noticed they
//! are read, the latest first, as if they came then. Numbers that begin again make them worthless.

use super::config::RecoverySettings;
use super::context::PacketContext;
use std::collections::VecDeque;

/// The last packets of a pair's snapshots.
#[derive(Debug, Default)]
pub(super) struct EarlySnapshotBuffer {
    /// A ring: packets are whole in it.
    bytes: Vec<u8>,
    /// The place for the next one.
    write_offset: usize,
    /// In the order in which they came.
    packets: VecDeque<EarlyPacket>,
}

/// A packet that is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct EarlyPacket {
    pub context: PacketContext,
    /// The number of restarts of numbers before it.
    pub restarts: u64,
    raw_start: usize,
    length: usize,
}

/// Packets that are kept, at most.
const PACKETS_MAX: usize = 1 << 16;

impl EarlySnapshotBuffer {
    /// Keeps a packet and drops the oldest ones for it.
    pub fn keep_packet(
        &mut self,
        packet_context: &PacketContext,
        restarts: u64,
        payload: &[u8],
        bounds: &RecoverySettings,
    ) {
        let (room, length) = (bounds.early_bytes, payload.len());
        if length == 0 || length > room {
            return;
        }
        if self.bytes.is_empty() {
            self.bytes = vec![0; room];
        }
        if self.write_offset + length > room {
            // The oldest are those up to the end of the ring.
            while self.packets.front().is_some_and(|oldest| oldest.raw_start >= self.write_offset) {
                self.packets.pop_front();
            }
            self.write_offset = 0;
        }
        let (from, end) = (self.write_offset, self.write_offset + length);
        let is_over =
            |oldest: &EarlyPacket| oldest.raw_start < end && from < oldest.raw_start + oldest.length;
        while self.packets.len() >= PACKETS_MAX || self.packets.front().is_some_and(is_over) {
            self.packets.pop_front();
        }
        self.bytes[from..end].copy_from_slice(payload);
        self.packets.push_back(EarlyPacket { context: *packet_context, restarts, raw_start: from, length });
        self.write_offset = end;
    }

    /// Iterates over the kept packets, the latest first.
    pub fn latest_first(&self) -> impl Iterator<Item = (&EarlyPacket, &[u8])> {
        self.packets.iter().rev().map(|packet| (packet, &self.bytes[packet.raw_start..][..packet.length]))
    }
}
