//! What happened in a flow, as known by the one who made it.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use crate::oracle::Arm;

/// The truth of a flow. [`Truth::write_jsonl`] writes it as JSON Lines, each with its `rec`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Truth {
    /// Totals.
    pub flow: Totals,
    /// Wash trades that were planted, in order of their second leg. The flow has no others.
    pub planted: Vec<Scene>,
    /// Pairs of execs just outside the scenario, in order of their second leg.
    pub near_misses: Vec<Scene>,
    /// Best bid and offer at the end, by venue, then in the order of the instruments.
    pub bbo: Vec<LastBbo>,
}

/// Totals of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// The seed.
    pub seed: u64,
    /// Good messages; those that are bad on purpose are in `bad` only.
    pub messages: u64,
    /// All bytes, those of bad messages and garbage too.
    pub bytes: u64,
    /// Good messages by `35`.
    pub by_type: BTreeMap<String, u64>,
    /// Events they should become, by kind, as the table in the head of this crate says.
    pub by_kind: BTreeMap<String, u64>,
    /// Good messages that should become no event.
    pub no_event: u64,
    /// What is bad on purpose.
    pub bad: Bad,
    /// Time of the first message, nanoseconds since the epoch.
    pub first_ts: u64,
    /// Time of the last message, nanoseconds since the epoch.
    pub last_ts: u64,
}

/// What is bad on purpose; each is one entry in quarantine, and none is an event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Bad {
    /// Copies of an exec with a wrong `10`.
    pub checksum: u64,
    /// Copies of an exec with a wrong `9` and the `10` that fits the bytes.
    pub body_length: u64,
    /// Well framed copies of an exec whose `31` has twelve places or more.
    pub decimals: u64,
    /// Runs of bytes between messages that belong to none.
    pub garbage: u64,
}

impl Bad {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.checksum + self.body_length + self.decimals + self.garbage
    }
}

/// Two execs that are a wash trade, or nearly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Scene {
    /// Always `wash_trade`.
    pub scenario: &'static str,
    /// Which arm it fires, or would if it were not a miss.
    pub arm: Arm,
    /// Why it is a miss; none for a wash trade.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub miss: Option<Miss>,
    /// Event time of the second leg.
    pub ts: u64,
    /// Key of the alert. For two owners that of the second leg.
    pub key: Key,
    /// First and second leg in the order of the wire.
    pub legs: [SceneLeg; 2],
}

/// What makes a pair of execs no wash trade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Miss {
    /// The second comes exactly a window after the first, or later.
    Window,
    /// One tick too far from the first price.
    Price,
    /// One share too far from the first quantity.
    Quantity,
    /// Both on the same side.
    Side,
    /// Two owners who have nothing to do with each other.
    Owner,
}

/// Key of an alert.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Key {
    /// Beneficial group, here the owner.
    pub group: String,
    /// ISIN.
    pub instr: String,
}

/// One exec of a scene, with the ids that are on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SceneLeg {
    /// Event time, nanoseconds since the epoch.
    pub ts: u64,
    /// MIC.
    pub venue: &'static str,
    /// `37`.
    pub oid: String,
    /// `880`.
    pub match_id: String,
    /// `17`.
    pub exec_id: String,
    /// Owner, `452=3`.
    pub owner: String,
    /// `B` or `S`.
    pub side: char,
    /// Exact decimal, canonical.
    pub px: String,
    /// Shares.
    pub qty: String,
}

/// Best bid and offer of a book at the end; a side without orders has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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

impl Truth {
    /// Writes one line for the totals (`"rec":"flow"`), then `planted`, `near_miss` and `bbo` lines.
    pub fn write_jsonl(&self, out: &mut dyn Write) -> io::Result<()> {
        line(out, "flow", &self.flow)?;
        self.planted.iter().try_for_each(|scene| line(out, "planted", scene))?;
        self.near_misses.iter().try_for_each(|scene| line(out, "near_miss", scene))?;
        self.bbo.iter().try_for_each(|bbo| line(out, "bbo", bbo))
    }
}

fn line<T: Serialize>(out: &mut dyn Write, rec: &'static str, body: &T) -> io::Result<()> {
    #[derive(Serialize)]
    struct Line<'a, T> {
        rec: &'static str,
        #[serde(flatten)]
        body: &'a T,
    }
    serde_json::to_writer(&mut *out, &Line { rec, body })?;
    out.write_all(b"\n")
}

/// Counters that run with the flow.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    types: [u64; TYPES.len()],
    pub order_new: u64,
    pub order_amend: u64,
    pub order_cancel: u64,
    pub exec: u64,
    pub trade: u64,
    pub bbo: u64,
    pub bad: Bad,
}

const TYPES: [u8; 7] = [b'0', b'8', b'D', b'F', b'G', b'W', b'X'];

impl Counts {
    pub fn message(&mut self, kind: u8) {
        let at = TYPES.iter().position(|&t| t == kind).expect("a type that this crate writes");
        self.types[at] += 1;
    }

    pub fn messages(&self) -> u64 {
        self.types.iter().sum()
    }

    pub fn totals(&self, seed: u64, bytes: u64, first_ts: u64, last_ts: u64) -> Totals {
        let by_type = TYPES.iter().zip(self.types).map(|(&t, n)| ((t as char).to_string(), n));
        let kinds = [
            ("order_new", self.order_new),
            ("order_amend", self.order_amend),
            ("order_cancel", self.order_cancel),
            ("exec", self.exec),
            ("trade", self.trade),
            ("bbo", self.bbo),
        ];
        let events: u64 = kinds.iter().map(|(_, n)| n).sum();
        Totals {
            seed,
            messages: self.messages(),
            bytes,
            by_type: by_type.filter(|(_, n)| *n > 0).collect(),
            by_kind: kinds.into_iter().map(|(kind, n)| (kind.to_owned(), n)).collect(),
            no_event: self.messages() - events,
            bad: self.bad,
            first_ts,
            last_ts,
        }
    }
}
