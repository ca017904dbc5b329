//! MoldUDP64: several messages in a datagram, under the number of the first.
//!
//! ```text
//!  0          10         18      20
//! ┌──────────┬──────────┬───────┬────────┬─────────┬────────┬─────────┬──
//! │ session  │ sequence │ count │ length │ message │ length │ message │ …
//! └──────────┴──────────┴───────┴────────┴─────────┴────────┴─────────┴──
//!   10 ASCII    u64       u16      u16
//! ```
//!
//! A count of 0 is a heartbeat, which names the next number; one of 65,535 says that the session has ended.

/// Bytes before the first message.
pub const MOLD_HEAD_BYTES: usize = 20;

/// The head of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoldPacketHeader {
    /// Name of the session, with trailing blanks.
    pub session: [u8; 10],
    /// Number of its first message, or of the next one in a heartbeat.
    pub sequence: u64,
    /// Messages in it; 65,535 at the end of the session.
    pub count: u16,
}

impl MoldPacketHeader {
    /// Parses the head of a packet; `None` if the packet is shorter than a head.
    #[must_use]
    pub fn read(packet: &[u8]) -> Option<Self> {
        let head = packet.first_chunk::<MOLD_HEAD_BYTES>()?;
        let part = |from: usize, to: usize| head[from..to].iter().fold(0u64, |n, b| n << 8 | u64::from(*b));
        let session = *head.first_chunk().expect("ten of twenty bytes");
        Some(Self { session, sequence: part(10, 18), count: part(18, 20) as u16 })
    }

    /// Returns the number of messages that follow the head; 0 at the end of a session.
    #[must_use]
    pub fn messages(&self) -> u16 {
        if self.count == u16::MAX { 0 } else { self.count }
    }

    /// Writes the head.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.session);
        out.extend_from_slice(&self.sequence.to_be_bytes());
        out.extend_from_slice(&self.count.to_be_bytes());
    }
}
