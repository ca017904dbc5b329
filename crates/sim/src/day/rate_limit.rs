//! The rate limit that keeps the background from raising alerts by accident: nobody sends more than a few messages a
//! second.
//!
//! Counts are kept by whole seconds and minutes. Any window of a second touches two whole ones at most, so that no
//! trader is ever seen with more than twice the quota, and what elected stops add.

/// Messages of a trader in a whole second.
const PER_SECOND: u8 = 15;
/// New orders of an algorithm in a whole minute.
const PER_MINUTE: u16 = 120;
/// Stops of a trader that wait at once; an election costs two messages.
pub(crate) const STOPS_MAX: u8 = 3;
/// Orders of an algorithm that rest at once.
pub(crate) const ALGO_LIVE_MAX: u16 = 100;
/// Greatest value of one order of an algorithm, whole units of the currency. In a minute it then trades at most
/// (2 × 120 + 100) × 20,000 = 6.8 million, under the 10 million of a runaway.
pub(crate) const ALGO_ORDER_MAX: i64 = 20_000;

const _: () =
    assert!(2 * PER_SECOND as u32 + 2 * STOPS_MAX as u32 + 4 < 50, "an order-to-trade alert by accident");
const _: () = assert!(
    (2 * PER_MINUTE as i64 + ALGO_LIVE_MAX as i64) * ALGO_ORDER_MAX < 9_000_000,
    "a runaway by accident"
);

#[derive(Debug, Clone, Copy, Default)]
struct MemberMessageCount {
    second: u64,
    minute: u64,
    messages: u8,
    orders: u16,
}

/// Message counts of all members.
#[derive(Debug)]
pub(crate) struct MessageRateLimiter {
    counts: Vec<MemberMessageCount>,
}

impl MessageRateLimiter {
    pub fn new(members: usize) -> MessageRateLimiter {
        MessageRateLimiter { counts: vec![MemberMessageCount::default(); members] }
    }

    /// Returns whether a member may send `cost` messages at `now`, and counts them if so.
    #[inline]
    pub fn allow(&mut self, member: u32, now: u64, cost: u8) -> bool {
        let count = &mut self.counts[member as usize];
        let second = now / 1_000_000_000;
        if count.second != second {
            (count.second, count.messages) = (second, 0);
        }
        let ok = count.messages + cost <= PER_SECOND;
        count.messages += if ok { cost } else { 0 };
        ok
    }

    /// Returns whether an algorithm may send one more order in this minute, and counts it if so.
    pub fn allow_algo_order(&mut self, member: u32, now: u64) -> bool {
        let count = &mut self.counts[member as usize];
        let minute = now / 60_000_000_000;
        if count.minute != minute {
            (count.minute, count.orders) = (minute, 0);
        }
        let ok = count.orders < PER_MINUTE;
        count.orders += u16::from(ok);
        ok
    }
}
