//! Sequence numbers of messages in datagrams, as MoldUDP64 and IEX-TP count them.
//!
//! A packet states the number of its first message; the others follow. Numbers begin with 1 in each session. Packets
//! come twice (from two lines, or repeated), in part again, and not at all. Of each message the first copy is taken.
//! Messages that did not come are a gap; when they come after later ones, they are late.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;

/// The numbers of one session at a time; `S` names the session.
#[derive(Clone, Debug, Default)]
pub struct DatagramSession<S> {
    session: S,
    /// Number of the next message; 0 before the first packet.
    next_number: u64,
    /// Missing messages, the latest [`GAPS_MAX`] gaps.
    gaps: VecDeque<SequenceGap>,
}

/// Gaps that are remembered. A message from an older gap counts as a duplicate.
const GAPS_MAX: usize = 64;

/// Messages that did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceGap {
    from: u64,
    to: u64,
}

impl fmt::Display for SequenceGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SequenceGap { from, to } = self;
        write!(f, "{} messages did not come: {from} to {} of the session", to - from, to - 1)
    }
}

impl<S: Copy + PartialEq> DatagramSession<S> {
    /// Returns whether `session` differs from the session of the previous packet.
    pub fn begins_session(&self, session: S) -> bool {
        self.next_number != 0 && self.session != session
    }

    /// Accepts a packet with the messages `first..first + count` of `session`. Returns which of its messages are new,
    /// counted from 0.
    ///
    /// # Errors
    /// Fails with the messages that are missing before the packet; then all its messages are new.
    pub fn accept_packet(&mut self, session: S, first: u64, count: u16) -> Result<Range<u16>, SequenceGap> {
        if self.next_number == 0 || self.session != session {
            // A session begins with its first message, also one that another source has begun: its orders are not known here.
            *self = Self { session, next_number: 1, gaps: VecDeque::new() };
        }
        let expected_number = self.next_number;
        self.next_number = expected_number.max(first.saturating_add(count.into()));
        if first > expected_number {
            let gap = SequenceGap { from: expected_number, to: first };
            if self.gaps.len() == GAPS_MAX {
                self.gaps.pop_front();
            }
            self.gaps.push_back(gap);
            return Err(gap);
        }
        let repeated_count = u16::try_from(expected_number - first).unwrap_or(u16::MAX).min(count);
        Ok(repeated_count..count)
    }

    /// Returns whether this message was missing and arrives late, after a gap.
    pub fn was_missing(&self, sequence: u64) -> bool {
        self.gaps.iter().any(|gap| (gap.from..gap.to).contains(&sequence))
    }

    /// Returns the session of the last packet.
    pub fn last_session(&self) -> S {
        self.session
    }
}
