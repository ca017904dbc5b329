//! Pump and dump: an owner buys, praise and volume drive the price up, and the owner sells.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - *Above its average price*: the average price of the sales is above that of the purchases. The sales are those in the
//!   window, the current one among them.
//! - The first purchase is the first by sequence among the purchases in the window. *Between* it and the sale is by sequence; the
//!   busy day is a UTC day from the date of the purchase to the date of the sale, with all its prints so far.
//! - Prices and volumes are those of public trades over all venues, after corrections; `no_last` counts in volumes
//!   alone. The mean is over 30 days, whether or not the instrument traded. Without any volume in them there is no mean,
//!   and no alert. A first purchase at a price that is not above zero has no percentages, and gives no alert.
//! - *One alert a campaign*: purchases and sales up to an alert of the owner and instrument belong to its campaign and do not
//!   count again.
//! - An execution without owner, instrument, side, price or a quantity above zero does not count and is counted as `missing`.
//!
//! Purchases and sales are running sums, which begin anew with each campaign. Of the public trades, the volume of each day is kept
//! and, of instruments that somebody bought, the highest price since any of them; these make the module longer than most:
//!
//! ```text
//!   seq ─▶  buy ── 12 ── 15 ── 11 ── 13 ── 12 ── sale
//!                        ■           ■     ■          trades that no later one is above: the first after the purchase is the
//!                                                     highest. The others stay while there is room, for cancels.
//! ```

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::keyed::KeyedStates;
use crate::missing::MissingValue;
use crate::number::Number;
use crate::orders::quantity;
use crate::params::ScenarioParams;
use crate::prints::{Print, PrintChange};
use crate::state::{state_value, watch_state};
use crate::time_logs::{TimeLogs, TimeSums};
use crate::watch::{
    EvidencePlace, Scenario, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind,
};
use serde_json::json;
use std::collections::{BTreeMap, VecDeque};
use unitape_model::{CivilDate, EventField, EventKind, EventValue, InstrumentId, NameKind, Price, UnixNanos};

/// The name of the scenario.
pub const ID: &str = "pump_and_dump";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] = &[EventKind::Exec, EventKind::Trade, EventKind::News, EventKind::Comm];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[SharedStateKind::Orders, SharedStateKind::Prints];

/// The scenario.
pub struct PumpAndDumpScenario {
    /// From the first purchase to the last sale.
    window_ns: i128,
    dump_ns: i128,
    pump_pct: Number,
    pump_volume_mult: Number,
    dump_pct: Number,
    /// Days for which volumes are kept.
    keep_days: i32,
    /// Alerts of each owner and instrument.
    campaigns: KeyedStates<(u32, InstrumentId), u32>,
    purchases: TimeLogs<CampaignKey, Purchase>,
    /// Quantity, and price times quantity.
    purchase_sums: TimeSums<CampaignKey, (Number, Number)>,
    sale_sums: TimeSums<CampaignKey, (Number, Number)>,
    /// The last news or communication that names an instrument.
    promotions: KeyedStates<InstrumentId, EvidencePlace>,
    volumes: KeyedStates<InstrumentId, DailyVolumes>,
    /// Of instruments that were purchased.
    highs: KeyedStates<InstrumentId, HighPrints>,
    late: u64,
    bound_hit: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct CampaignKey {
    owner: u32,
    instr: InstrumentId,
    /// Number of the campaign of the owner and instrument.
    campaign: u32,
}

#[derive(Clone, Copy)]
struct Purchase {
    px: Price,
    place: EvidencePlace,
}

/// The public volume of an instrument by UTC day.
struct DailyVolumes {
    days: BTreeMap<i32, Number>,
    /// The last day that was forgotten.
    forgotten: i32,
}

/// Prints of an instrument in the order of their trades, those from which on no later one is above among them.
#[derive(Default)]
struct HighPrints {
    prints: VecDeque<HighPrint>,
    /// Prints that a later one is above were dropped.
    is_thinned: bool,
}

#[derive(Clone, Copy)]
struct HighPrint {
    px: Price,
    place: EvidencePlace,
}

/// Prints of an instrument that are kept for the highest price.
const HIGHS_MAX: usize = 512;

state_value!(CampaignKey { owner, instr, campaign });
state_value!(Purchase { px, place });
state_value!(DailyVolumes { days, forgotten });
state_value!(HighPrints { prints, is_thinned });
state_value!(HighPrint { px, place });
watch_state!(PumpAndDumpScenario {
    campaigns, purchases, purchase_sums, sale_sums, promotions, volumes, highs, late, bound_hit
    | window_ns, dump_ns, pump_pct, pump_volume_mult, dump_pct, keep_days,
});

impl PumpAndDumpScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        let (accum_days, dump_days) = (params.uint("accum_days"), params.uint("dump_days"));
        let days = i128::from(accum_days) + i128::from(dump_days);
        let (window_ns, dump_ns) = (days * DAY_NS, i128::from(dump_days) * DAY_NS);
        let number = |param| Number::billionths(params.nano(param));
        Self {
            window_ns,
            dump_ns,
            pump_pct: number("pump_pct"),
            pump_volume_mult: number("pump_volume_mult"),
            dump_pct: number("dump_pct"),
            keep_days: i32::try_from(2 * days + i128::from(MEAN_DAYS) + 2).unwrap_or(i32::MAX),
            campaigns: KeyedStates::new(),
            purchases: TimeLogs::new(window_ns),
            purchase_sums: TimeSums::new(window_ns),
            sale_sums: TimeSums::new(dump_ns),
            promotions: KeyedStates::new(),
            volumes: KeyedStates::new(),
            highs: KeyedStates::new(),
            late: 0,
            bound_hit: 0,
        }
    }

    fn on_print(&mut self, change: PrintChange, expiry_ts: UnixNanos) {
        let (before, after) = match change {
            PrintChange::New(print) => (None, Some(print)),
            PrintChange::Cancelled(before) => (Some(before), None),
            PrintChange::Corrected { before, after } => (Some(before), Some(after)),
        };
        let Some(Print { instr, ts, seq, .. }) = before.or(after).filter(|print| print.instr.0 != 0) else {
            return;
        };
        let volume = |print: Option<Print>| print.map_or(Number::ZERO, |print| print.qty.into());
        let day = CivilDate::from_utc(ts).days();
        let limit = day.min(CivilDate::from_utc(expiry_ts).days()).saturating_sub(self.keep_days);
        let volumes = self.volumes.get_or_insert_with(instr, DailyVolumes::new);
        volumes.forget(limit);
        let sum = volumes.days.entry(day).or_default();
        *sum = *sum + volume(after) - volume(before);
        let Some(highs) = self.highs.get_mut(&instr) else { return };
        match before {
            Some(before) => {
                let index = highs.prints.partition_point(|print| print.place.seq < seq);
                let found = highs.prints.get_mut(index).filter(|print| print.place.seq == seq);
                // Those that it was above may be the highest now.
                let is_lower = after.is_none_or(|after| after.px < before.px);
                self.bound_hit += u64::from(found.is_some() && is_lower && highs.is_thinned);
                match (found, after) {
                    (Some(print), Some(after)) => print.px = after.px,
                    (Some(_), None) => _ = highs.prints.remove(index),
                    // A dropped print may be corrected to be above others.
                    (None, Some(after)) if !after.no_last && highs.is_thinned => {
                        let print = HighPrint { px: after.px, place: after.place() };
                        highs.prints.insert(index, print);
                    }
                    _ => {}
                }
            }
            None => {
                let print = after.filter(|print| !print.no_last);
                highs.prints.extend(print.map(|print| HighPrint { px: print.px, place: print.place() }));
            }
        }
        if highs.prints.len() > HIGHS_MAX {
            self.bound_hit += highs.thin();
        }
    }

    fn on_exec(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let (context, ts, record) = (input.context, input.ts, input.record);
        let (owner, instr) = (input.owner, input.instr);
        let px = record.and_then(|record| Price(record.px.get()).as_option());
        let qty = record.and_then(quantity).filter(|qty| qty.mantissa() > 0);
        let (px, qty) = match (owner, instr.0, input.side, px, qty) {
            (0, ..) => return out.missing(MissingValue::Field(EventField::Owner)),
            (_, 0, ..) => return out.missing(MissingValue::Field(EventField::Instr)),
            (_, _, 1 | 2, Some(px), Some(qty)) => (px, qty),
            (_, _, 1 | 2, None, _) => return out.missing(MissingValue::Field(EventField::Px)),
            (_, _, 1 | 2, _, None) => return out.missing(MissingValue::Field(EventField::Qty)),
            _ => return out.missing(MissingValue::Field(EventField::Side)),
        };
        let campaign = self.campaigns.get(&(owner, instr)).copied().unwrap_or(0);
        let key = CampaignKey { owner, instr, campaign };
        let value = (Number::from(qty), Number::from(qty) * px.into());
        if input.side == BUY {
            self.purchases.add(key, ts, Purchase { px, place: context.place() }, context.expiry_ts);
            self.purchase_sums.add(key, ts, &value, context.expiry_ts);
            self.highs.get_or_insert_with(instr, HighPrints::default);
            return;
        }
        self.sale_sums.add(key, ts, &value, context.expiry_ts);
        if let Some(alert) = self.judge(key, input) {
            self.campaigns.set((owner, instr), campaign.wrapping_add(1));
            out.alert(alert);
        }
    }

    /// Judges a sale, which is already summed up.
    fn judge(&mut self, key: CampaignKey, input: &ScenarioInput<'_, '_>) -> Option<Alert> {
        let (context, ts) = (input.context, input.ts);
        let after = |window_ns| i128::from(ts.0) - window_ns;
        let ((purchased, cost), has_purchases) = self.purchase_sums.sum(&key, after(self.window_ns), ts);
        let ((sold, proceeds), has_sales) = self.sale_sums.sum(&key, after(self.dump_ns), ts);
        self.late += u64::from(!has_purchases || !has_sales);
        let is_dumped = sold * Number::whole(100) >= self.dump_pct * purchased;
        if !is_dumped || proceeds * purchased <= cost * sold {
            return None;
        }
        let promotion = *self.promotions.get(&key.instr)?;
        let window = self.purchases.window(&key, after(self.window_ns), ts);
        let (first_ts, first) = window.iter().min_by_key(|(_, purchase)| purchase.place.seq)?;
        let pump_px = Number::from(first.px) * (Number::whole(100) + self.pump_pct);
        let high = self.highs.get(&key.instr)?.since(first.place.seq)?;
        let is_pumped = first.px.0 > 0 && Number::from(high.px) * Number::whole(100) >= pump_px;
        if promotion.seq < first.place.seq || !is_pumped {
            return None;
        }
        let days = CivilDate::from_utc(first_ts).days()..=CivilDate::from_utc(ts).days();
        let volumes = self.volumes.get(&key.instr)?;
        self.late += u64::from(days.start().saturating_sub(MEAN_DAYS) <= volumes.forgotten);
        let mut days = days.map(|day| (day, volumes.of(day, day), volumes.of(day - MEAN_DAYS, day - 1)));
        let (day, volume, before) = days.find(|(_, volume, before)| {
            let is_many = *volume * Number::whole(MEAN_DAYS.into()) >= self.pump_volume_mult * *before;
            before.is_positive() && is_many
        })?;
        let names = vec![
            ("owner", context.name(NameKind::Owner, key.owner)),
            ("instr", context.name(NameKind::Instrument, key.instr.0)),
        ];
        let values = json!({
            "purchased": purchased.text(), "cost": cost.text(), "sold": sold.text(),
            "proceeds": proceeds.text(), "first_px": first.px.to_string(), "high_px": high.px.to_string(),
            "day": CivilDate::from_days(day).to_string(), "volume": volume.text(),
            "volume_of_30_days": before.text(),
        });
        let evidence = window.iter().map(|(_, purchase)| purchase.place).chain([promotion, high.place]);
        Some(Alert::new(ID, ts, context.seq, names, context.detail(values, evidence)))
    }
}

impl DailyVolumes {
    fn new() -> Self {
        Self { days: BTreeMap::new(), forgotten: i32::MIN }
    }

    /// Forgets the days up to `limit`.
    fn forget(&mut self, limit: i32) {
        while let Some(first) = self.days.first_entry().filter(|first| *first.key() <= limit) {
            self.forgotten = self.forgotten.max(*first.key());
            first.remove();
        }
    }

    /// Returns the volume from a day to another.
    fn of(&self, from: i32, to: i32) -> Number {
        self.days.range(from..=to).fold(Number::ZERO, |sum, (_, volume)| sum + *volume)
    }
}

impl HighPrints {
    /// Returns the highest print after the event `seq`.
    fn since(&self, seq: u64) -> Option<HighPrint> {
        let from = self.prints.partition_point(|print| print.place.seq <= seq);
        self.prints.range(from..).max_by_key(|print| print.px).copied()
    }

    /// Drops the prints that a later one is above or equal to and, if too many are left, the first ones. Returns the number
    /// of these.
    #[cold]
    fn thin(&mut self) -> u64 {
        let mut highest = None;
        let mut kept: VecDeque<HighPrint> = VecDeque::new();
        for print in self.prints.iter().rev() {
            if highest.is_none_or(|highest| print.px > highest) {
                highest = Some(print.px);
                kept.push_front(*print);
            }
        }
        let surplus = kept.len().saturating_sub(HIGHS_MAX / 2);
        kept.drain(..surplus);
        (self.prints, self.is_thinned) = (kept, true);
        surplus as u64
    }
}

impl Scenario for PumpAndDumpScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let (event, context) = (input.event, input.context);
        match event.kind() {
            EventKind::Exec => self.on_exec(input, out),
            EventKind::Trade => {
                input.print.into_iter().for_each(|change| self.on_print(change, context.expiry_ts));
            }
            _ => match event.field(EventField::Instrs, &mut [0; 36]) {
                Some(EventValue::Syms(_, ids)) => {
                    for id in ids.as_chunks::<4>().0 {
                        let instr = InstrumentId(u32::from_le_bytes(*id));
                        self.promotions.set(instr, context.place());
                    }
                }
                _ => out.missing(MissingValue::Field(EventField::Instrs)),
            },
        }
    }

    fn reset(&mut self) {
        self.campaigns.clear();
        self.purchases.clear();
        self.purchase_sums.clear();
        self.sale_sums.clear();
        self.promotions.clear();
        self.volumes.clear();
        self.highs.clear();
    }

    fn metrics(&self) -> ScenarioMetrics {
        let (bought, sold) = (self.purchase_sums.logs(), self.sale_sums.logs());
        let entries = self.purchases.entry_count() + bought.entry_count() + sold.entry_count();
        let states = self.campaigns.len() + self.promotions.len() + self.volumes.len() + self.highs.len();
        let states_bound_hit = self.campaigns.bound_hit()
            + self.promotions.bound_hit()
            + self.volumes.bound_hit()
            + self.highs.bound_hit();
        ScenarioMetrics {
            late: self.late,
            expired: self.purchases.expired + bought.expired + sold.expired,
            bound_hit: self.bound_hit
                + states_bound_hit
                + self.purchases.bound_hit
                + bought.bound_hit
                + sold.bound_hit,
            held_entries: (entries + states) as u64,
            ..ScenarioMetrics::default()
        }
    }
}

const BUY: u8 = 1;
const DAY_NS: i128 = 86_400_000_000_000;
/// Days of the mean volume.
const MEAN_DAYS: i32 = 30;
