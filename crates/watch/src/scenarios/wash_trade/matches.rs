//! The legs of matches that may make a self match, match by match.
//!
//! ```text
//!   match (venue, …, day, id)       ┌ two legs ┐ ┌ two legs ┐ …      as many as an auction prints
//!   bought = sold: complete         forgotten before those that are not
//! ```
//!
//! A match mostly has two legs, and an auction may print many under one id. No event marks the last leg. So the legs of
//! a match stay after a match of two. Once the bought and the sold quantity are equal, they are forgotten first.

use super::ExecutionLeg;
use crate::parties::OwnerGroups;
use crate::state::{state_value, watch_state};
use crate::table::{BoundedTable, EntryRank};
use crate::watch::MatchKey;

/// Legs of one match at most; later ones do not wait.
pub const LEGS_PER_MATCH_MAX: u32 = 1 << 10;
/// Pairs of legs of complete matches that are remembered.
const COMPLETE_MAX: usize = 1 << 14;

/// A leg that waits for another.
#[derive(Clone, Copy)]
struct WaitingLeg {
    leg: ExecutionLeg,
    /// Its number among the legs of round trips.
    leg_number: u64,
    /// It is evidence of an alert already.
    consumed: bool,
}

/// Two legs. The pairs of a match are numbered from 0, and the first pair has the facts about all legs.
#[derive(Clone, Copy)]
struct LegPair {
    legs: [Option<WaitingLeg>; 2],
    /// Legs of the match that wait.
    count: u32,
    /// Legs among these in pairs that are known to belong to a complete match.
    complete_legs: u32,
    /// `None` if it does not fit.
    net: Option<NetQuantity>,
    /// An alert was given.
    alerted: bool,
}

/// Bought less sold: `mantissa` × 10^`exponent`, in the least power of its legs.
#[derive(Clone, Copy)]
struct NetQuantity {
    mantissa: i128,
    exponent: i8,
}

const NO_PAIR: LegPair = LegPair {
    legs: [None; 2],
    count: 0,
    complete_legs: 0,
    net: Some(NetQuantity { mantissa: 0, exponent: 0 }),
    alerted: false,
};

/// All matches that are remembered.
pub(super) struct MatchTable {
    table: BoundedTable<(MatchKey, u32), LegPair>,
    /// Legs that did not wait because their match had too many.
    pub bound_hit: u64,
}

state_value!(WaitingLeg { leg, leg_number, consumed });
state_value!(NetQuantity { mantissa, exponent });
state_value!(LegPair { legs, count, complete_legs, net, alerted });
watch_state!(MatchTable { table, bound_hit });

impl MatchTable {
    /// Makes a table of at most `max` pairs.
    pub fn new(max: usize) -> Self {
        Self { table: BoundedTable::new(max, COMPLETE_MAX.min(max)), bound_hit: 0 }
    }

    /// Pairs of legs.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Pairs that were forgotten for want of room, and legs that did not wait.
    pub fn forgotten(&self) -> u64 {
        self.table.forgotten_entries[EntryRank::Kept as usize] + self.bound_hit
    }

    pub fn clear(&mut self) {
        self.table.clear();
    }

    /// Takes the earliest leg on the other side of the match that has the same group, with its number. Both legs are
    /// consumed, and the match gives no further alert.
    #[inline]
    pub fn take_opposite_leg(
        &mut self,
        key: &MatchKey,
        e: &ExecutionLeg,
        parties: &OwnerGroups,
    ) -> Option<(u64, ExecutionLeg)> {
        let head = self.table.find(&(*key, 0))?;
        let LegPair { count, alerted, .. } = *self.table.get(head);
        if alerted {
            return None;
        }
        let group = parties.group(e.owner);
        for pair in 0..count.div_ceil(2) {
            let Some(slot) = self.table.find(&(*key, pair)) else { continue };
            let meets = |w: &&mut WaitingLeg| {
                !w.consumed && w.leg.side != e.side && parties.group(w.leg.owner) == group
            };
            let opposite_leg = self.table.get_mut(slot).legs.iter_mut().flatten().find(meets);
            if let Some(waiting_leg) = opposite_leg {
                waiting_leg.consumed = true;
                let number_and_leg = (waiting_leg.leg_number, waiting_leg.leg);
                self.table.get_mut(head).alerted = true;
                return Some(number_and_leg);
            }
        }
        None
    }

    /// Marks a leg of the match as consumed, because it is evidence of another kind of alert.
    pub fn consume(&mut self, key: &MatchKey, number: u64) {
        let Some(head) = self.table.find(&(*key, 0)) else { return };
        for pair in 0..self.table.get(head).count.div_ceil(2) {
            let Some(slot) = self.table.find(&(*key, pair)) else { continue };
            let legs = &mut self.table.get_mut(slot).legs;
            if let Some(leg) = legs.iter_mut().flatten().find(|w| w.leg_number == number) {
                leg.consumed = true;
                return;
            }
        }
    }

    /// Adds a leg to its match, where it waits. A leg without a number is evidence already and does not wait.
    #[inline]
    pub fn add(&mut self, key: &MatchKey, leg: &ExecutionLeg, number: Option<u64>) {
        let head_slot = self.table.find(&(*key, 0));
        let mut head = head_slot.unwrap_or_else(|| self.table.insert((*key, 0), NO_PAIR, EntryRank::Kept));
        let head_match = self.table.get_mut(head);
        head_match.net = head_match.net.and_then(|net| net_of(net, leg));
        let is_complete = head_match.net.is_some_and(|net| net.mantissa == 0);
        if let Some(number) = number.filter(|_| !head_match.alerted) {
            let leg_index = head_match.count;
            if leg_index >= LEGS_PER_MATCH_MAX {
                self.bound_hit += 1;
            } else {
                head_match.count += 1;
                let slot = match leg_index {
                    0 | 1 => head,
                    leg_index => {
                        let key = (*key, leg_index / 2);
                        let open_match = (leg_index % 2 == 1).then(|| self.table.find(&key)).flatten();
                        open_match.unwrap_or_else(|| self.table.insert(key, NO_PAIR, EntryRank::Kept))
                    }
                };
                let waiting = WaitingLeg { leg: *leg, leg_number: number, consumed: false };
                self.table.get_mut(slot).legs[leg_index as usize % 2] = Some(waiting);
                if leg_index > 1 {
                    // An entry that was inserted may have pushed the head out.
                    let Some(still) = self.table.find(&(*key, 0)) else { return };
                    head = still;
                }
            }
        }
        self.rank_match(key, head, is_complete);
    }

    /// Ranks a match: complete matches are forgotten first, and a match that is no longer complete is kept again.
    #[inline]
    fn rank_match(&mut self, key: &MatchKey, head: u32, is_complete: bool) {
        let head_match = self.table.get_mut(head);
        let count = head_match.count;
        if !is_complete {
            return self.table.set_rank(head, EntryRank::Kept);
        }
        let old_rank = std::mem::replace(&mut head_match.complete_legs, count) / 2;
        let other_pairs = old_rank.max(1)..count.div_ceil(2);
        if other_pairs.is_empty() {
            return self.table.set_rank(head, EntryRank::Spent);
        }
        for pair in other_pairs {
            if let Some(slot) = self.table.find(&(*key, pair)) {
                self.table.set_rank(slot, EntryRank::Spent);
            }
        }
        // A leg that became spent may have pushed the head out.
        if let Some(head) = self.table.find(&(*key, 0)) {
            self.table.set_rank(head, EntryRank::Spent);
        }
    }
}

/// Adds a leg to the net quantity, bought less sold. Returns `None` if the result does not fit.
#[inline]
fn net_of(net: NetQuantity, leg: &ExecutionLeg) -> Option<NetQuantity> {
    let (mantissa, exponent) = (i128::from(leg.qty.mantissa()), leg.qty.exponent());
    let net_exponent = net.exponent.min(exponent);
    let scaled = |m: i128, from: i8| {
        let zeros = u32::try_from(i32::from(from) - i32::from(net_exponent)).ok()?;
        if zeros == 0 { Some(m) } else { m.checked_mul(10i128.checked_pow(zeros)?) }
    };
    let (net, more) = (scaled(net.mantissa, net.exponent)?, scaled(mantissa, exponent)?);
    let mantissa = if leg.side == 0 { net.checked_add(more)? } else { net.checked_sub(more)? };
    Some(NetQuantity { mantissa, exponent: net_exponent })
}
