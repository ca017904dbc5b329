//! Limit up-limit down: a US share reaches the price bands of its plan, stays there and is paused, or trades outside
//! them.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - Every open session event with a price above zero, of any venue, begins a new reference. Before the first one
//!   there are no bands, and nothing is judged.
//! - The reference is an exact mean: it is not rounded, the bands are. Half up is upwards, below zero as well.
//! - The reference moves with any print that is not `no_last`, also with one outside the bands, which itself is not
//!   in the mean. A print is in the mean if its price, as it counts now, is inside the bands that applied when it was
//!   printed.
//! - Bands are computed at each event, from the last tier and previous close. Tier or close missing, or a close that
//!   is not above zero: no bands.
//! - A quote is judged once, when it comes; the limit state ends with the first national quote that does not meet the
//!   condition. A trade that moves the reference does not end it, nor does the clock. Both sides must have a price.
//! - A pause at P holds off entries with a time below P + `pause_min`, as a cooldown does. Prints are judged in the
//!   pause as well.
//! - `double_open` doubles 09:30:00 <= t < 09:45:00 for every tier, as before Amendment 18; the rule of the close
//!   stays.
//! - A form of `tiers` that is not `>X`, `<X` or `A-B` (both included) with `P%` or `min($D,P%)` is as if it were not
//!   there. Tiers other than 1 and 2 are never doubled.
//!
//! The bands are kept until one of their terms changes. The mean of a window is a difference of two running sums; a print that is
//! cancelled or corrected leaves the sums by the bands it was printed in. Bands, reference and limit state make the module longer
//! than most.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::ids::field_text;
use crate::keyed::KeyedStates;
use crate::missing::MissingValue;
use crate::number::Number;
use crate::params::ScenarioParams;
use crate::prints::{Print, PrintChange};
use crate::state::{state_value, watch_state};
use crate::time_logs::{RunningTotal, TimeLogs, TimeSums};
use crate::timers::DueTimer;
use crate::watch::{
    EvidencePlace, Scenario, ScenarioContext, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind,
};
use serde_json::{Value, json};
use unitape_model::{
    Decimal, EventField, EventKind, EventValue, InstrumentId, LocalClock, NameKind, Price, UnixNanos,
};

/// The name of the scenario.
pub const ID: &str = "luld";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] = &[EventKind::Ref, EventKind::Session, EventKind::Trade, EventKind::Bbo];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[SharedStateKind::Market, SharedStateKind::Prints];

/// The scenario.
pub struct LimitBandScenario {
    rules: BandRules,
    limit_ns: i128,
    pause_ns: i128,
    shares: KeyedStates<InstrumentId, ShareState>,
    /// The bands in which prints came.
    printed: TimeLogs<InstrumentId, PrintedBands>,
    /// The prints that are inside these bands.
    in_band: TimeSums<InstrumentId, PriceTotal>,
    /// The number of the last limit state.
    entries: u32,
    late: u64,
}

/// The parameters that bands depend on.
struct BandRules {
    clock: LocalClock,
    double_open: bool,
    widths: Vec<TierWidth>,
}

/// The width of the bands of a tier at a range of previous closes.
struct TierWidth {
    tier: u64,
    range: PriceRange,
    dollars: Option<Number>,
    percent: Number,
}

enum PriceRange {
    Above(Number),
    Below(Number),
    /// Both included.
    Between(Number, Number),
}

#[derive(Default)]
struct ShareState {
    reference: Option<BandReference>,
    /// The last bands, with their terms.
    bands: Option<(BandTerms, PriceBands)>,
    limit: Option<LimitState>,
    /// The time of the last pause.
    pause_ts: Option<UnixNanos>,
}

/// A reference price: the mean of prices.
#[derive(Clone, Copy)]
struct BandReference {
    prices: PriceTotal,
    ts: UnixNanos,
    place: EvidencePlace,
}

/// Prices in billionths, and their number.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct PriceTotal {
    sum: i128,
    count: i64,
}

/// What the bands depend on.
#[derive(Clone, Copy, PartialEq, Eq)]
struct BandTerms {
    prices: PriceTotal,
    tier: u64,
    prev_close: Price,
    is_doubled: bool,
}

/// In cents.
#[derive(Clone, Copy)]
struct PriceBands {
    lower: i128,
    upper: i128,
}

/// The bands in which a print came.
#[derive(Clone, Copy)]
struct PrintedBands {
    seq: u64,
    bands: PriceBands,
}

#[derive(Clone, Copy)]
struct LimitState {
    is_up: bool,
    bands: PriceBands,
    entry: EvidencePlace,
    token: u64,
}

state_value!(ShareState { reference, bands, limit, pause_ts });
state_value!(BandReference { prices, ts, place });
state_value!(PriceTotal { sum, count });
state_value!(BandTerms { prices, tier, prev_close, is_doubled });
state_value!(PriceBands { lower, upper });
state_value!(PrintedBands { seq, bands });
state_value!(LimitState { is_up, bands, entry, token });
watch_state!(LimitBandScenario {
    shares, printed, in_band, entries, late | rules, limit_ns, pause_ns
});

impl LimitBandScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        Self {
            rules: BandRules {
                clock: params.local_clock(),
                double_open: params.flag("double_open"),
                widths: tier_widths(params.value("tiers")),
            },
            limit_ns: params.seconds("limit_state_s"),
            pause_ns: 60 * params.seconds("pause_min"),
            shares: KeyedStates::new(),
            printed: TimeLogs::new(MEAN_WINDOW_NS),
            in_band: TimeSums::new(MEAN_WINDOW_NS),
            entries: 0,
            late: 0,
        }
    }

    /// Begins a new reference at the opening price.
    fn on_open(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let Some(EventValue::Price(px)) = input.event.field(EventField::Px, &mut [0; 36]) else {
            return out.missing(MissingValue::Field(EventField::Px));
        };
        if px.0 > 0 {
            let prices = PriceTotal::of_one(px);
            let reference = BandReference { prices, ts: input.ts, place: input.context.place() };
            let share = self.shares.get_or_insert_with(input.event.instrument(), ShareState::default);
            share.reference = Some(reference);
        }
    }

    /// Judges a print by the bands, then moves the reference.
    fn on_print(&mut self, print: &Print, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let (context, instr) = (input.context, print.instr);
        let Some(share) = self.shares.get_mut(&instr) else { return out.missing(MissingValue::Baseline) };
        let (bands, reference) = match share.bands(&self.rules, instr, input) {
            Ok(found) => found,
            Err(value) => return out.missing(value),
        };
        let is_inside = bands.contain(print.px);
        let printed = PrintedBands { seq: print.seq, bands };
        self.printed.add(instr, print.ts, printed, context.expiry_ts);
        if is_inside {
            self.in_band.add(instr, print.ts, &PriceTotal::of_one(print.px), context.expiry_ts);
        }
        let now = i128::from(print.ts.0);
        if now - i128::from(reference.ts.0) >= REFERENCE_AGE_NS {
            let (prices, is_complete) = self.in_band.sum(&instr, now - MEAN_WINDOW_NS, print.ts);
            self.late += u64::from(!is_complete);
            if prices.differs_from(&reference.prices) {
                share.reference = Some(BandReference { prices, ts: print.ts, place: context.place() });
            }
        }
        if !is_inside {
            let values = json!({
                "type": "trade_outside_band", "px": print.px.to_string(),
                "lower": cents_text(bands.lower), "upper": cents_text(bands.upper),
            });
            out.alert(share_alert(instr, input.ts, values, reference.place, context));
        }
    }

    /// Takes a print that is cancelled or corrected out of the mean, and puts its new price in.
    #[cold]
    fn on_change(&mut self, before: &Print, after_px: Option<Price>, expiry_ts: UnixNanos) {
        let window = self.printed.window(&before.instr, i128::from(before.ts.0) - 1, before.ts);
        let Some((_, printed)) = window.iter().find(|(_, printed)| printed.seq == before.seq) else { return };
        let total = |px: Option<Price>| {
            px.filter(|px| printed.bands.contain(*px)).map(PriceTotal::of_one).unwrap_or_default()
        };
        let change = total(after_px).minus_total(&total(Some(before.px)));
        if change != PriceTotal::default() {
            self.in_band.add(before.instr, before.ts, &change, expiry_ts);
        }
    }

    /// Judges a national quote: enters the limit state, or ends it.
    fn on_quote(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let (context, instr) = (input.context, input.event.instrument());
        let Some(share) = self.shares.get_mut(&instr) else { return out.missing(MissingValue::Baseline) };
        let best = context.market.national_best(instr, context.names);
        let prices = best.and_then(|best| best.bid.zip(best.ask));
        let limit = match (share.bands(&self.rules, instr, input), prices) {
            (Ok((bands, reference)), Some((bid, ask))) => {
                bands.limit_side(bid, ask).map(|is_up| (is_up, bands, reference))
            }
            (Err(value), _) => {
                out.missing(value);
                None
            }
            (Ok(_), None) => {
                out.missing(MissingValue::BestPrice);
                None
            }
        };
        let is_same = |(is_up, ..): &(bool, _, _)| share.limit.is_some_and(|current| current.is_up == *is_up);
        if limit.as_ref().is_some_and(is_same) {
            return;
        }
        let now = i128::from(input.ts.0);
        let is_paused = share.pause_ts.is_some_and(|pause_ts| now < i128::from(pause_ts.0) + self.pause_ns);
        share.limit = None;
        let Some((is_up, bands, reference)) = limit.filter(|_| !is_paused) else { return };
        self.entries = self.entries.wrapping_add(1);
        let token = u64::from(self.entries) << 32 | u64::from(instr.0);
        share.limit = Some(LimitState { is_up, bands, entry: context.place(), token });
        // No event comes after the end of time.
        if let Ok(due) = i64::try_from(now + self.limit_ns) {
            out.wake_at(UnixNanos(due), token);
        }
        let values = limit_values("limit_state", is_up, bands);
        out.alert(share_alert(instr, input.ts, values, reference.place, context));
    }
}

impl ShareState {
    /// Returns the bands that the current event is judged by, and their reference.
    fn bands(
        &mut self,
        rules: &BandRules,
        instr: InstrumentId,
        input: &ScenarioInput<'_, '_>,
    ) -> Result<(PriceBands, BandReference), MissingValue> {
        let reference = self.reference.ok_or(MissingValue::Baseline)?;
        let share_terms = input.context.market.reference(instr).copied().unwrap_or_default();
        let prev_close = share_terms.prev_close.filter(|px| px.0 > 0);
        let prev_close = prev_close.ok_or(MissingValue::Reference(EventField::PrevClose))?;
        let tier = share_terms.tier.ok_or(MissingValue::Reference(EventField::Tier))?;
        let is_doubled = rules.is_doubled(tier, prev_close, input.ts);
        let terms = BandTerms { prices: reference.prices, tier, prev_close, is_doubled };
        if let Some((_, bands)) = self.bands.filter(|(kept, _)| *kept == terms) {
            return Ok((bands, reference));
        }
        let bands = rules.bands(&terms).ok_or(MissingValue::Reference(EventField::Tier))?;
        self.bands = Some((terms, bands));
        Ok((bands, reference))
    }
}

impl BandRules {
    fn is_doubled(&self, tier: u64, prev_close: Price, ts: UnixNanos) -> bool {
        let (_, of_day) = self.clock.read(ts);
        let is_close = (CLOSE_START_NS..CLOSE_END_NS).contains(&of_day);
        let is_close_doubled = tier == 1 || tier == 2 && prev_close.0 <= LOW_PRICE;
        let is_open = (OPEN_START_NS..OPEN_END_NS).contains(&of_day);
        is_close && is_close_doubled || is_open && self.double_open
    }

    /// Computes (sum ± width) ÷ count, where a width in percent is of the sum.
    fn bands(&self, terms: &BandTerms) -> Option<PriceBands> {
        let prev_close = Number::from(terms.prev_close);
        let fits = |width: &&TierWidth| width.tier == terms.tier && width.range.contains(prev_close);
        let TierWidth { dollars, percent, .. } = self.widths.iter().find(fits)?;
        let PriceTotal { sum, count } = terms.prices;
        let (sum, factor) = (Number::new(sum, -9), Number::whole(if terms.is_doubled { 2 } else { 1 }));
        let of_percent = sum * *percent * Number::new(1, -2) * factor;
        let of_dollars = dollars.map(|dollars| dollars * factor * Number::whole(count.into()));
        let width = of_dollars.map_or(of_percent, |of_dollars| of_dollars.min(of_percent));
        let cents = |number| rounded_to_cents(number, count.into());
        Some(PriceBands { lower: cents(sum - width), upper: cents(sum + width) })
    }
}

impl PriceRange {
    fn parse(text: &str) -> Option<Self> {
        if let Some(least) = text.strip_prefix('>') {
            return Some(Self::Above(number(least)?));
        }
        if let Some(most) = text.strip_prefix('<') {
            return Some(Self::Below(number(most)?));
        }
        let (least, most) = text.split_once('-')?;
        Some(Self::Between(number(least)?, number(most)?))
    }

    fn contains(&self, px: Number) -> bool {
        match self {
            Self::Above(least) => px > *least,
            Self::Below(most) => px < *most,
            Self::Between(least, most) => (least..=most).contains(&&px),
        }
    }
}

impl PriceBands {
    fn contain(&self, px: Price) -> bool {
        (self.lower * CENT..=self.upper * CENT).contains(&i128::from(px.0))
    }

    /// Returns whether a quote is in the limit state of the upper band or of the lower one.
    fn limit_side(&self, bid: Price, ask: Price) -> Option<bool> {
        match () {
            () if bid >= ask => None,
            () if i128::from(ask.0) == self.lower * CENT => Some(false),
            () if i128::from(bid.0) == self.upper * CENT => Some(true),
            () => None,
        }
    }
}

impl PriceTotal {
    fn of_one(px: Price) -> Self {
        Self { sum: px.0.into(), count: 1 }
    }

    /// Returns whether the mean of these prices is above zero and differs by 1 % from another one. Sums are under 2^85 and counts
    /// under 2^22.
    fn differs_from(&self, current: &Self) -> bool {
        let current_sum = current.sum * i128::from(self.count);
        let difference = self.sum * i128::from(current.count) - current_sum;
        self.count > 0 && self.sum > 0 && 100 * difference.abs() >= current_sum
    }
}

impl RunningTotal for PriceTotal {
    fn add_total(&mut self, other: &Self) {
        self.sum += other.sum;
        self.count += other.count;
    }

    fn minus_total(&self, earlier: &Self) -> Self {
        Self { sum: self.sum - earlier.sum, count: self.count - earlier.count }
    }
}

impl Scenario for LimitBandScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let (event, context) = (input.event, input.context);
        let kind = event.kind();
        if event.instrument().0 == 0 && kind != EventKind::Ref {
            return out.missing(MissingValue::Field(EventField::Instr));
        }
        match (kind, input.print) {
            (EventKind::Session, _) if field_text(event, EventField::Phase, &mut [0; 36]) == Some("open") => {
                self.on_open(input, out);
            }
            (_, Some(PrintChange::New(print))) if !print.no_last => self.on_print(&print, input, out),
            (_, Some(PrintChange::Cancelled(before))) => self.on_change(&before, None, context.expiry_ts),
            (_, Some(PrintChange::Corrected { before, after })) => {
                self.on_change(&before, Some(after.px), context.expiry_ts);
            }
            (EventKind::Bbo, _)
                if context.names.get(NameKind::Venue, b"NBBO") == Some(event.venue().into()) =>
            {
                self.on_quote(input, out);
            }
            _ => {}
        }
    }

    fn on_timer(&mut self, due: DueTimer, context: &ScenarioContext<'_>, out: &mut ScenarioOutput<'_>) {
        let instr = InstrumentId(due.token as u32);
        let Some(share) = self.shares.get_mut(&instr) else { return };
        let Some(limit) = share.limit.filter(|limit| limit.token == due.token) else { return };
        (share.limit, share.pause_ts) = (None, Some(due.due_ts));
        let values = limit_values("pause", limit.is_up, limit.bands);
        out.alert(share_alert(instr, due.due_ts, values, limit.entry, context));
    }

    fn reset(&mut self) {
        self.shares.clear();
        self.printed.clear();
        self.in_band.clear();
        self.entries = 0;
    }

    fn metrics(&self) -> ScenarioMetrics {
        let in_band = self.in_band.logs();
        ScenarioMetrics {
            late: self.late,
            expired: self.printed.expired + in_band.expired,
            bound_hit: self.shares.bound_hit() + self.printed.bound_hit + in_band.bound_hit,
            held_entries: (self.shares.len() + self.printed.entry_count() + in_band.entry_count()) as u64,
            ..ScenarioMetrics::default()
        }
    }
}

fn share_alert(
    instr: InstrumentId,
    ts: UnixNanos,
    values: Value,
    evidence: EvidencePlace,
    context: &ScenarioContext<'_>,
) -> Alert {
    let key = vec![("instr", context.name(NameKind::Instrument, instr.0))];
    Alert::new(ID, ts, context.seq, key, context.detail(values, [evidence]))
}

fn limit_values(kind: &str, is_up: bool, bands: PriceBands) -> Value {
    json!({
        "type": kind, "direction": if is_up { "up" } else { "down" },
        "lower": cents_text(bands.lower), "upper": cents_text(bands.upper),
    })
}

fn cents_text(cents: i128) -> String {
    Number::new(cents, -2).text()
}

/// Rounds `number` ÷ `divisor` half up to cents.
fn rounded_to_cents(number: Number, divisor: i128) -> i128 {
    let twice = number * Number::whole(200) + Number::whole(divisor);
    twice.floor_quotient(2 * divisor).clamp(-CENTS_MAX, CENTS_MAX)
}

/// Reads the widths of all tiers. Leaves out a form that is none of those of the plan.
fn tier_widths(tiers: &Value) -> Vec<TierWidth> {
    let ranges = tiers.as_object().into_iter().flatten().filter_map(|(tier, ranges)| {
        let number: u64 = tier.parse().ok().filter(|number: &u64| number.to_string() == *tier)?;
        Some((number, ranges.as_object()?))
    });
    let widths = ranges.flat_map(|(tier, ranges)| {
        ranges.iter().filter_map(move |(range, width)| {
            let (dollars, percent) = parse_width(width.as_str()?)?;
            Some(TierWidth { tier, range: PriceRange::parse(range)?, dollars, percent })
        })
    });
    widths.collect()
}

/// Reads `P%` or `min($D,P%)`.
fn parse_width(text: &str) -> Option<(Option<Number>, Number)> {
    let parts = text.strip_prefix("min($").and_then(|rest| rest.strip_suffix(')'));
    let Some(parts) = parts else { return Some((None, number(text.strip_suffix('%')?)?)) };
    let (dollars, percent) = parts.split_once(',')?;
    Some((Some(number(dollars)?), number(percent.strip_suffix('%')?)?))
}

fn number(text: &str) -> Option<Number> {
    Decimal::parse(text.as_bytes()).ok().map(Number::from)
}

/// The prints of a mean are at most this old.
const MEAN_WINDOW_NS: i128 = 300_000_000_000;
/// A reference does not move before this age.
const REFERENCE_AGE_NS: i128 = 30_000_000_000;
/// A cent in billionths.
const CENT: i128 = 10_000_000;
/// No price reaches these cents.
const CENTS_MAX: i128 = 1 << 70;
/// 3.00, up to which shares of tier 2 are doubled at the close.
const LOW_PRICE: i64 = 3_000_000_000;
const MINUTE_NS: i64 = 60_000_000_000;
const OPEN_START_NS: i64 = (9 * 60 + 30) * MINUTE_NS;
const OPEN_END_NS: i64 = (9 * 60 + 45) * MINUTE_NS;
const CLOSE_START_NS: i64 = (15 * 60 + 35) * MINUTE_NS;
const CLOSE_END_NS: i64 = 16 * 60 * MINUTE_NS;
