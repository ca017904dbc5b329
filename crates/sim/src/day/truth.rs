//! The truth about a simulated day, as its maker knows it.

use std::io::{self, Write};
use unitape_model::{InstrumentId, Side};

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::event::OrderTicket;
use super::exchange::SimulatedVenues;
use super::scenes::Scenario;

/// An alert that a scenario must raise, with its default parameters.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct AlertLabel {
    /// The scene it belongs to; a scene that fires two scenarios has two labels.
    pub scene: u32,
    /// Id of the scenario.
    pub scenario: &'static str,
    /// Key of the alert.
    pub key: AlertLabelKey,
    /// The reason or arm of the scene, if it has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// Event time of the event that completes it, or the time at which a timer is due, nanoseconds since the epoch.
    pub ts: u64,
    /// First event of the scene.
    pub first_seq: u64,
    /// The event that completes it.
    pub trigger_seq: u64,
}

/// A near miss: it resembles a scenario but does not fulfil it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct NearMiss {
    /// Number of the scene.
    pub scene: u32,
    /// Id of the scenario that must not fire.
    pub scenario: &'static str,
    /// Key that an alert would have.
    pub key: AlertLabelKey,
    /// The reason of the miss.
    pub misses: &'static str,
    /// First event of the scene.
    pub first_seq: u64,
    /// The event that would complete it; known of wash trades.
    #[serde(skip)]
    pub trigger_seq: Option<u64>,
    /// Last event of the scene.
    pub last_seq: u64,
}

/// Key of an alert: names and values in the order of the scenario.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AlertLabelKey(pub Vec<(&'static str, String)>);

impl Serialize for AlertLabelKey {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        self.0.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
        map.end()
    }
}

/// The end of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderEnding {
    /// All of it was filled.
    Filled,
    /// The remaining quantity was cancelled.
    Cancelled,
}

/// An order from its entry to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderLife {
    /// Terms at the end.
    pub terms: OrderTicket,
    /// Quantity that was filled.
    pub filled_qty: i64,
    /// Σ price in ticks × quantity of the fills.
    pub value: i64,
    /// Ordinal of the order's `order_new`.
    pub seq_entered: u64,
    /// Time of that.
    pub ts_entered: u64,
    /// The last event that belongs to it.
    pub seq_ended: u64,
    /// Time of that.
    pub ts_ended: u64,
    /// How the order ended.
    pub ending: OrderEnding,
}

/// Labels and near misses so far.
#[derive(Debug, Default)]
pub(crate) struct LabelSet {
    pub labels: Vec<AlertLabel>,
    /// Labels that the first event at their time or later completes.
    pub timed: Vec<AlertLabel>,
    /// Labels that the next national best of the instrument completes.
    pub quote_labels: std::collections::BTreeMap<InstrumentId, AlertLabel>,
    /// The label that the next value of the index completes.
    pub index_label: Option<AlertLabel>,
    pub near_misses: Vec<NearMiss>,
}

/// Totals of a day, beside [`AlertLabel`]s and [`NearMiss`]es.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct DayTotals {
    /// The seed.
    pub seed: u64,
    /// Events.
    pub events: u64,
    /// Events by kind, in the order of `docs/events.md`.
    pub by_kind: std::collections::BTreeMap<&'static str, u64>,
    /// Time of the start, nanoseconds since the epoch.
    pub first_ts: u64,
    /// Time of the last event, nanoseconds since the epoch.
    pub last_ts: u64,
    /// Scenarios whose labels are complete: with default parameters they fire where a label is and nowhere else.
    pub covers: Vec<&'static str>,
}

/// A level of a book in the truth.
#[derive(serde::Serialize)]
struct TruthLevel {
    px: String,
    qty: i64,
    orders: Vec<String>,
}

impl OrderLife {
    /// Writes it as one line, `"rec":"order"`.
    pub fn write_jsonl(&self, x: &super::Sim, out: &mut dyn Write) -> io::Result<()> {
        #[derive(serde::Serialize)]
        struct OrderLifeLine<'a> {
            rec: &'static str,
            oid: String,
            venue: &'a str,
            instr: &'a str,
            owner: &'a str,
            trader: &'a str,
            side: &'a str,
            qty: i64,
            done: i64,
            /// Σ price × quantity of the fills, exact.
            notional: String,
            entered: (u64, u64),
            ended: (u64, u64),
            ending: OrderEnding,
        }
        let (t, world) = (&self.terms, x.world());
        let line = OrderLifeLine {
            rec: "order",
            oid: super::names::oid_text(t.oid),
            venue: world.venue_name(t.book),
            instr: world.isin(t.book),
            owner: world.owner_name(t.member),
            trader: world.trader_name(t.member),
            side: t.side.letter(),
            qty: t.qty,
            done: self.filled_qty,
            notional: notional(self.value, world.listed(t.book).tick_nano),
            entered: (self.seq_entered, self.ts_entered),
            ended: (self.seq_ended, self.ts_ended),
            ending: self.ending,
        };
        serde_json::to_writer(&mut *out, &line)?;
        out.write_all(b"\n")
    }
}

/// Writes totals, labels, near misses, positions and, where orders rest, books, as JSON Lines, each with its `rec`.
pub(crate) fn write_jsonl(
    totals: &DayTotals,
    labels: &LabelSet,
    x: &SimulatedVenues,
    out: &mut dyn Write,
) -> io::Result<()> {
    line(out, "day", totals)?;
    labels.labels.iter().try_for_each(|label| line(out, "label", label))?;
    labels.near_misses.iter().try_for_each(|miss| line(out, "near_miss", miss))?;
    let mut positions: Vec<_> = x.positions.iter().map(|(&key, &position)| (key, position)).collect();
    positions.sort_unstable();
    for ((owner, instr), (net, volume)) in positions {
        #[derive(serde::Serialize)]
        struct PositionTruthLine<'a> {
            owner: &'a str,
            instr: &'a str,
            qty: i64,
            volume: i64,
        }
        let owner = x.world.names().name(unitape_model::NameKind::Owner, owner + 1).unwrap_or_default();
        let instr = &x.world.instruments[instr.index()].isin;
        line(out, "position", &PositionTruthLine { owner, instr, qty: net, volume })?;
    }
    for (n, desk) in x.desks.iter().enumerate() {
        #[derive(serde::Serialize)]
        struct BookTruthLine<'a> {
            venue: &'a str,
            instr: &'a str,
            bids: Vec<TruthLevel>,
            asks: Vec<TruthLevel>,
        }
        let side = |side: Side| {
            let mut levels: Vec<TruthLevel> = Vec::new();
            for (slot, px, leaves) in desk.book.orders(side) {
                let px = super::names::decimal(x.world.listed(n as u32).nano(px));
                if levels.last().is_none_or(|last| last.px != px) {
                    levels.push(TruthLevel { px, qty: 0, orders: Vec::new() });
                }
                let level = levels.last_mut().expect("one was just made");
                level.qty += leaves;
                level.orders.push(super::names::oid_text(x.order(slot).terms.oid));
            }
            levels
        };
        let (bids, asks) = (side(Side::Buy), side(Side::Sell));
        if !(bids.is_empty() && asks.is_empty()) {
            let book = n as u32;
            let (venue, instr) = (x.world.venue_name(book), x.world.isin(book));
            line(out, "book", &BookTruthLine { venue, instr, bids, asks })?;
        }
    }
    Ok(())
}

/// Returns the scenarios that the labels of a simple day cover.
pub(crate) fn covers() -> Vec<&'static str> {
    Scenario::SIMPLE_DAY.iter().map(|s| s.id()).collect()
}

/// Returns the scenarios that the labels of a market of several days cover.
pub(crate) fn market_covers() -> Vec<&'static str> {
    Scenario::ALL.iter().filter(|s| s.is_covered()).map(|s| s.id()).collect()
}

/// Formats Σ ticks × quantity as exact money.
fn notional(value: i64, tick_nano: i64) -> String {
    let nano = i128::from(value) * i128::from(tick_nano);
    let text = format!("{}.{:09}", nano / NANO, nano % NANO);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

const NANO: i128 = 1_000_000_000;

pub(super) fn line<T: serde::Serialize>(out: &mut dyn Write, rec: &'static str, body: &T) -> io::Result<()> {
    #[derive(serde::Serialize)]
    struct TruthLine<'a, T> {
        rec: &'static str,
        #[serde(flatten)]
        body: &'a T,
    }
    serde_json::to_writer(&mut *out, &TruthLine { rec, body })?;
    out.write_all(b"\n")
}
