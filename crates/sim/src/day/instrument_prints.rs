//! The prints of an instrument on all venues, as far as a scene must know them: the volumes of the UTC days, and the
//! reference of the price bands by the definition of `luld`.

use std::collections::{BTreeMap, VecDeque};

use super::config::{DAY_NS, S};
use super::world::ListedInstrument;

/// The prints of an instrument.
#[derive(Debug, Clone, Default)]
pub(crate) struct InstrumentPrints {
    /// By the day since the epoch.
    volumes: BTreeMap<u64, i64>,
    reference: Option<BandReference>,
    /// Times and prices of the prints inside the bands, not older than five minutes. Prices are in units of 1e-9.
    in_band: VecDeque<(u64, i64)>,
}

/// The mean of prices that the bands are around.
#[derive(Debug, Clone, Copy)]
struct BandReference {
    sum: i128,
    count: i128,
    ts: u64,
}

impl InstrumentPrints {
    /// Begins a new reference at an opening price.
    pub fn open(&mut self, ts: u64, px_nano: i64) {
        self.reference = Some(BandReference { sum: px_nano.into(), count: 1, ts });
    }

    /// Adds a print, whose price is in ticks.
    pub fn add(&mut self, ts: u64, px: i64, qty: i64, listed: &ListedInstrument) {
        *self.volumes.entry(ts / DAY_NS).or_default() += qty;
        let (Some(reference), Some(bands)) = (self.reference, self.bands(ts, listed)) else { return };
        while self.in_band.front().is_some_and(|(print_ts, _)| print_ts + MEAN_NS <= ts) {
            self.in_band.pop_front();
        }
        let px_nano = listed.nano(px);
        if (bands[0]..=bands[1]).contains(&px_nano) {
            self.in_band.push_back((ts, px_nano));
        }
        let (sum, count) =
            (self.in_band.iter().map(|(_, px)| i128::from(*px)).sum::<i128>(), self.in_band.len());
        let (count, difference) = (count as i128, sum * reference.count - reference.sum * count as i128);
        let is_other = count > 0 && 100 * difference.abs() >= reference.sum * count;
        if is_other && ts - reference.ts >= REFERENCE_AGE_NS {
            self.reference = Some(BandReference { sum, count, ts });
        }
    }

    /// Returns the lower and the upper band at a time, in units of 1e-9.
    pub fn bands(&self, ts: u64, listed: &ListedInstrument) -> Option<[i64; 2]> {
        let BandReference { sum, count, .. } = self.reference?;
        let prev_close = listed.nano(listed.reference);
        let is_low = prev_close <= LOW_PRICE_NANO;
        let percent = match listed.tier {
            _ if prev_close < LEAST_PRICE_NANO => return None,
            _ if is_low => 20,
            1 => 5,
            _ => 10,
        };
        let is_close = CLOSE_NS.contains(&(ts % DAY_NS)) && (listed.tier == 1 || is_low);
        let width = if is_close { 2 * percent } else { percent };
        // Rounded to cents, halves up.
        let unit = 100 * count * CENT_NANO;
        let band = |factor: i128| ((2 * sum * factor + unit).div_euclid(2 * unit) * CENT_NANO) as i64;
        Some([band(100 - width), band(100 + width)])
    }

    /// Returns the volume of the UTC day so far.
    pub fn volume_today(&self, ts: u64) -> i64 {
        self.volumes.get(&(ts / DAY_NS)).copied().unwrap_or(0)
    }

    /// Returns the volume of the thirty UTC days before.
    pub fn volume_before(&self, ts: u64) -> i64 {
        let today = ts / DAY_NS;
        self.volumes.range(today.saturating_sub(30)..today).map(|(_, volume)| volume).sum()
    }
}

const MEAN_NS: u64 = 300 * S;
const REFERENCE_AGE_NS: u64 = 30 * S;
/// Up to this previous close the bands are wider.
const LOW_PRICE_NANO: i64 = 3_000_000_000;
/// Instruments of the market have higher prices.
const LEAST_PRICE_NANO: i64 = 750_000_000;
const CENT_NANO: i128 = 10_000_000;
/// 15:35 to 16:00 at UTC-4, since midnight UTC.
const CLOSE_NS: std::ops::Range<u64> = (19 * 3_600 + 35 * 60) * S..20 * 3_600 * S;
