//! The truth about a market of several days.

use std::collections::BTreeMap;
use std::io::{self, Write};
use unitape_model::{InstrumentId, NameKind};

use super::super::names;
use super::super::truth::{AlertLabel, NearMiss, line, market_covers};
use super::Market;
use super::config::date_of;
use super::control::RefusedRequests;

/// The effect of news on a price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewsImpact {
    /// Number of the news.
    pub id: u64,
    /// Number of the instrument.
    pub instr: InstrumentId,
    /// Ticks by which the price moves because of the news: with each request an eighth of the remaining ticks, at least
    /// one tick.
    pub ticks: i64,
    /// Time of the news.
    pub ts: u64,
    /// Its ordinal.
    pub seq: u64,
    /// Number of the news that it corrects.
    pub revises: Option<u64>,
}

/// Totals of one day of several.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct MarketDayTotals {
    /// Number of the day, from 1.
    pub day: u32,
    /// The date of the day.
    pub date: String,
    /// The seed.
    pub seed: u64,
    /// Events.
    pub events: u64,
    /// Events by kind.
    pub by_kind: BTreeMap<&'static str, u64>,
    /// Time of the start, nanoseconds since the epoch.
    pub first_ts: u64,
    /// Time of the last event, nanoseconds since the epoch.
    pub last_ts: u64,
    /// Ordinal of the first event.
    pub first_seq: u64,
    /// Scenarios whose labels are complete, where no control interferes.
    pub covers: Vec<&'static str>,
}

impl Market {
    pub(super) fn end_totals(&mut self) {
        let first_seq = 1 + self.totals.iter().map(|day| day.events).sum::<u64>();
        let first_ts = self.sim.config.start_ns;
        self.totals.push(MarketDayTotals {
            day: self.totals.len() as u32 + 1,
            date: date_of(first_ts).to_string(),
            seed: self.config.day.seed,
            events: self.seq + 1 - first_seq,
            by_kind: std::mem::take(&mut self.by_kind),
            first_ts,
            last_ts: self.now,
            first_seq,
            covers: market_covers(),
        });
    }

    /// Totals of the days that are over.
    pub fn days(&self) -> &[MarketDayTotals] {
        &self.totals
    }

    /// Labels so far, in order of the event that completes them.
    pub fn labels(&self) -> Vec<&AlertLabel> {
        let mut all: Vec<&AlertLabel> = self.labels.iter().collect();
        all.sort_by_key(|l| (l.trigger_seq, l.scenario, l.key.clone()));
        all
    }

    /// Returns the near misses so far.
    pub fn near_misses(&self) -> &[NearMiss] {
        &self.near_misses
    }

    /// Returns the impact of the news so far.
    pub fn news(&self) -> &[NewsImpact] {
        &self.news
    }

    /// Writes the truth so far as JSON Lines: `day` for each, `label`, `near_miss`, `refused` if controls have
    /// refused anything, `news`, `position`.
    pub fn write_truth(&self, out: &mut dyn Write) -> io::Result<()> {
        #[derive(serde::Serialize)]
        struct NewsTruthLine<'a> {
            news_id: String,
            instr: &'a str,
            ts: u64,
            seq: u64,
            ticks: i64,
            impact: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            revises: Option<String>,
        }
        #[derive(serde::Serialize)]
        struct PositionTruthLine<'a> {
            owner: &'a str,
            instr: &'a str,
            qty: i64,
            volume: i64,
            held: i64,
        }
        let world = self.world();
        self.totals.iter().try_for_each(|day| line(out, "day", day))?;
        self.labels().into_iter().try_for_each(|label| line(out, "label", label))?;
        self.near_misses.iter().try_for_each(|miss| line(out, "near_miss", miss))?;
        let refused = self.refused();
        if refused != RefusedRequests::default() {
            line(out, "refused", &refused)?;
        }
        for news in &self.news {
            let listed = &world.instruments[news.instr.index()];
            let body = NewsTruthLine {
                news_id: names::news_text(news.id),
                instr: &listed.isin,
                ts: news.ts,
                seq: news.seq,
                ticks: news.ticks,
                impact: names::decimal(listed.nano(news.ticks)),
                revises: news.revises.map(names::news_text),
            };
            line(out, "news", &body)?;
        }
        // What trades is held or was, so the holdings have every pair that traded or is held.
        let mut pairs: BTreeMap<(u32, InstrumentId), (i64, i64)> =
            self.sim.x.positions.iter().map(|(&key, &net)| (key, net)).collect();
        self.holdings.keys().for_each(|&key| _ = pairs.entry(key).or_default());
        for ((owner, instr), (qty, volume)) in pairs {
            let held_qty = self.holding(owner, instr);
            let owner = world.names().name(NameKind::Owner, owner + 1).unwrap_or_default();
            let instr = &world.instruments[instr.index()].isin;
            line(out, "position", &PositionTruthLine { owner, instr, qty, volume, held: held_qty })?;
        }
        Ok(())
    }
}
