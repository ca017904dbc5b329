//! The configuration of a day.

use std::collections::BTreeMap;

use super::scenes::Scenario;
use super::world::MICS;
use crate::error::Error;

/// The configuration of a day. The same values make the same events, on every machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimConfig {
    /// The seed.
    pub seed: u64,
    /// Number of the market, 0 to 9. No two markets share listings, members, or ids of orders and matches. The venues
    /// are the same, so that several markets can share one tape.
    pub market: u32,
    /// About how many events; the orders that are left are cancelled after the close, and come on top.
    pub events: u64,
    /// Venues, 1 to 6.
    pub venues: usize,
    /// Instruments, each listed on every venue; 1 to 20,000.
    pub instruments: usize,
    /// Traders of the background; `None` derives the number from the rate of events.
    pub traders: Option<u32>,
    /// Orders that rest in a book, about.
    pub depth: usize,
    /// Time of the start, nanoseconds since the epoch.
    pub start_ns: u64,
    /// From the start to the close, nanoseconds; two minutes at least.
    pub span_ns: u64,
    /// Instruments that are halted for a while, on all venues.
    pub halts: u32,
    /// News.
    pub news: u32,
    /// Payments of the background.
    pub payments: u32,
    /// The number of scenes of a scenario to plant.
    pub plant: BTreeMap<Scenario, u32>,
    /// The number of scenes to plant that just miss a scenario.
    pub near_misses: BTreeMap<Scenario, u32>,
    /// Keeps the life of every order until [`super::Sim::take_lives`] takes it.
    pub keep_lives: bool,
}

impl Default for SimConfig {
    /// Returns 2026-03-02 from 07:50 to 16:35 UTC, 1,000,000 events, 3 venues, 50 instruments, three scenes of every
    /// scenario of a simple day and as many near misses.
    fn default() -> SimConfig {
        let each = |n: u32| Scenario::SIMPLE_DAY.into_iter().map(|s| (s, n)).collect();
        SimConfig {
            seed: 1,
            market: 0,
            events: 1_000_000,
            venues: 3,
            instruments: 50,
            traders: None,
            depth: 60,
            start_ns: 1_772_437_800_000_000_000,
            span_ns: (8 * 3600 + 45 * 60) * S,
            halts: 4,
            news: 20,
            payments: 500,
            plant: each(3),
            near_misses: each(3),
            keep_lives: false,
        }
    }
}

/// When the parts of the day begin, nanoseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DayTimes {
    pub call: u64,
    pub open: u64,
    pub window: u64,
    pub closing_call: u64,
    pub close: u64,
}

impl SimConfig {
    pub(crate) fn times(&self) -> DayTimes {
        let (start, close) = (self.start_ns, self.start_ns + self.span_ns);
        let call_ns = (self.span_ns / 50).clamp(10 * S, 600 * S);
        DayTimes {
            call: start + call_ns / 10,
            open: start + call_ns,
            window: close.saturating_sub(WINDOW_NS),
            closing_call: close - call_ns / 2,
            close,
        }
    }

    /// Returns the number of background traders: enough that no trader exceeds the rate limit.
    pub(crate) fn background_traders(&self) -> u32 {
        let auto = || {
            let rate = u128::from(self.events) * u128::from(S) / u128::from(self.span_ns);
            (rate * 2).clamp(400, 200_000) as u32
        };
        self.traders.unwrap_or_else(auto).next_multiple_of(4)
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let check_range = |name: &'static str, value: u64, least: u64, most: u64| {
            let ok = (least..=most).contains(&value);
            ok.then_some(()).ok_or(Error::OutOfRange { name, value, least, most })
        };
        check_range("venues", self.venues as u64, 1, MICS.len() as u64)?;
        check_range("market", self.market.into(), 0, 9)?;
        check_range("instruments", self.instruments as u64, 1, INSTRUMENTS_MAX)?;
        check_range("traders", self.traders.unwrap_or(40).into(), 40, 1_000_000)?;
        check_range("depth", self.depth as u64, 4, 100_000)?;
        check_range("events", self.events, 0, u64::MAX >> 16)?;
        check_range("span_ns", self.span_ns, 120 * S, 24 * 3600 * S)?;
        check_range("start_ns", self.start_ns, 0, YEAR_2250_NS)?;
        check_range("halts", self.halts.into(), 0, 100_000)?;
        check_range("news", self.news.into(), 0, 10_000_000)?;
        check_range("payments", self.payments.into(), 0, 99_999_999)?;
        for (scenario, &n) in self.plant.iter().chain(&self.near_misses) {
            check_range(scenario.id(), n.into(), 0, 1_000_000)?;
        }
        let planted = self.plant.iter().chain(&self.near_misses).filter(|(_, n)| **n > 0);
        let least = planted.clone().map(|(scenario, _)| scenario.instruments_min()).max().unwrap_or(1);
        let name = "instruments (for cross_product, abusive_squeeze or mwcb)";
        check_range(name, self.instruments as u64, least as u64, INSTRUMENTS_MAX)?;
        for scenario in planted.map(|(scenario, _)| *scenario).filter(|s| s.span_min_ns() > 0) {
            let name = match scenario {
                Scenario::MarkingClose => "span_ns (for marking_close)",
                Scenario::Mwcb => "span_ns (for mwcb)",
                _ => "span_ns (for payments_passthrough or insider_news)",
            };
            check_range(name, self.span_ns, scenario.span_min_ns(), 24 * 3600 * S)?;
        }
        Ok(())
    }

    /// Fails if the configuration plants a scenario that a simple day cannot have.
    pub(crate) fn check_simple_day(&self) -> Result<(), Error> {
        let mut planted = self.plant.iter().chain(&self.near_misses);
        let other = planted.find(|(scenario, n)| **n > 0 && !Scenario::SIMPLE_DAY.contains(scenario));
        other.map_or(Ok(()), |(scenario, _)| Err(Error::FullMarketOnly { scenario: scenario.id() }))
    }
}

/// The window of `marking_close`.
pub(crate) const WINDOW_NS: u64 = 600 * S;
pub(crate) const S: u64 = 1_000_000_000;
pub(crate) const DAY_NS: u64 = 86_400 * S;
pub(crate) const INSTRUMENTS_MAX: u64 = 20_000;
/// Times on the wire have four digits for the year, and 2^63 nanoseconds end in 2262.
const YEAR_2250_NS: u64 = 8_835_955_200_000_000_000;
