//! The contents of a drop copy, as its maker knows them.

use std::collections::BTreeMap;

use super::super::truth::AlertLabelKey;

/// The truth of a drop copy.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct DropCopyTruth {
    /// Totals.
    pub totals: DropCopyTotals,
    /// Wash trades that were planted, in order of their second leg. The day has no others.
    pub planted: Vec<WashTradePair>,
    /// Pairs of execs just outside the scenario, in order of their second leg.
    pub near_misses: Vec<WashTradePair>,
    /// Best bid and offer as last published, by book.
    pub bbo: Vec<LastBbo>,
}

/// Totals of a drop copy.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct DropCopyTotals {
    /// Good messages; messages that are bad on purpose count only in `bad`.
    pub messages: u64,
    /// All bytes, including bad messages and garbage.
    pub bytes: u64,
    /// Events they should become, by kind.
    pub by_kind: BTreeMap<String, u64>,
    /// Good messages that should become no event: requests and heartbeats.
    pub no_event: u64,
    /// Counts of the deliberate damage.
    pub bad: DamageCounts,
}

/// Counts of the deliberate damage. Each damaged message is one entry in quarantine and no event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct DamageCounts {
    /// Copies of an exec with a wrong `10`.
    pub checksum: u64,
    /// Copies of an exec with a wrong `9` and the `10` that fits the bytes.
    pub body_length: u64,
    /// Well framed copies of an exec whose `31` has twelve places or more.
    pub decimals: u64,
    /// Runs of bytes between messages that belong to no message.
    pub garbage: u64,
}

impl DamageCounts {
    /// Sums all counts.
    pub fn total(&self) -> u64 {
        self.checksum + self.body_length + self.decimals + self.garbage
    }
}

/// Two execs that are a wash trade, or nearly.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct WashTradePair {
    /// Always `wash_trade`.
    pub scenario: &'static str,
    /// The arm that it fires, or would if it were not a miss: `self_match` or `round_trip`.
    pub arm: &'static str,
    /// The reason of the miss; `None` for a wash trade.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub misses: Option<&'static str>,
    /// Event time of the second leg.
    pub ts: u64,
    /// Key of the alert: `group` and `instr`.
    pub key: AlertLabelKey,
    /// First and second leg in the order of the wire.
    pub legs: [WashTradeLeg; 2],
}

/// An execution of a scene, with the ids that are on the wire.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct WashTradeLeg {
    /// Event time, nanoseconds since the epoch.
    pub ts: u64,
    /// MIC.
    pub venue: &'static str,
    /// `37`.
    pub oid: String,
    /// `880`.
    pub match_id: String,
    /// Owner, `452=3`.
    pub owner: String,
    /// `B` or `S`.
    pub side: &'static str,
    /// Exact decimal, canonical.
    pub px: String,
    /// Shares.
    pub qty: String,
}

/// Best bid and offer of a book as last published; a side without orders has none.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct LastBbo {
    /// Time of the last change, nanoseconds since the epoch.
    pub ts: u64,
    /// MIC.
    pub venue: &'static str,
    /// ISIN.
    pub instr: String,
    /// Exact decimal, canonical.
    pub bid: Option<String>,
    /// Shares.
    pub bid_qty: Option<String>,
    /// Exact decimal, canonical.
    pub ask: Option<String>,
    /// Shares.
    pub ask_qty: Option<String>,
}
