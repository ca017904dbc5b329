//! The configuration of a market of several days.

use unitape_model::{CivilDate, UnixNanos};

use super::super::config::{DAY_NS, SimConfig};
use crate::error::Error;

/// The configuration of a market of several days. The same values make the same events, on every machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarketConfig {
    /// The configuration of each day: its numbers are those of a single day, its start is that of the first day.
    pub day: SimConfig,
    /// Trading days, 1 to 60. Saturdays and Sundays are none; a start on one of them is moved to Monday.
    pub days: u32,
    /// Messages between traders a day.
    pub comms: u32,
    /// The venues refuse one order of the background in this many; 0: they refuse no order.
    pub reject_one_in: u64,
}

impl Default for MarketConfig {
    /// Returns five days of [`SimConfig::default`], 40 messages between traders a day; one order in 200 is refused.
    fn default() -> MarketConfig {
        MarketConfig { day: SimConfig::default(), days: 5, comms: 40, reject_one_in: 200 }
    }
}

impl MarketConfig {
    /// Returns the configuration of each day, in order.
    pub(super) fn each_day(&self) -> Result<Vec<SimConfig>, Error> {
        let check_range = |name: &'static str, value: u64, least: u64, most: u64| {
            let ok = (least..=most).contains(&value);
            ok.then_some(()).ok_or(Error::OutOfRange { name, value, least, most })
        };
        check_range("days", self.days.into(), 1, 60)?;
        check_range("comms", self.comms.into(), 0, 1_000_000)?;
        let planted = self.day.plant.iter().chain(&self.day.near_misses).filter(|(_, n)| **n > 0);
        let mut scenarios = planted.filter(|(scenario, _)| scenario.days_min() > self.days);
        if let Some((scenario, _)) = scenarios.next() {
            return Err(Error::Days { scenario: scenario.id(), least: scenario.days_min() });
        }
        let mut start_ns = self.day.start_ns;
        let mut days = Vec::new();
        for number in 1..=self.days {
            self.day.check()?;
            while date_of(start_ns).is_weekend() {
                start_ns += DAY_NS;
            }
            let mut day = SimConfig { start_ns, ..self.day.clone() };
            day.plant.retain(|scenario, _| scenario.days_min() <= number);
            day.near_misses.retain(|scenario, _| scenario.days_min() <= number);
            day.check()?;
            days.push(day);
            start_ns += DAY_NS;
        }
        Ok(days)
    }
}

/// Returns the UTC date at the time `ts`.
pub(crate) fn date_of(ts: u64) -> CivilDate {
    CivilDate::from_utc(UnixNanos(ts as i64))
}
