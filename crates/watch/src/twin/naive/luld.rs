//! The words of the definition, each looked up in everything that happened.

use crate::params::ScenarioParams;
use crate::twin::naive::{FieldValue, History, NaiveAlert, Number, Twin, name};
use serde_json::Value;
use std::collections::HashMap;
use unitape_model::{Decimal, Dictionary, EventField, EventKind, InstrumentId, NameKind, Price, UnixNanos};

/// The scenario, slowly.
pub struct Slow {
    params: ScenarioParams,
    instruments: HashMap<InstrumentId, Instrument>,
}

#[derive(Default)]
struct Instrument {
    reference: Option<Reference>,
    /// The bands at the time of each print, by its seq.
    bands: HashMap<u64, Bands>,
    /// The limit state: its direction and its entry.
    limit: Option<(&'static str, i128)>,
    /// The time of the last pause.
    pause: Option<i128>,
}

/// The reference price is `sum / count`.
#[derive(Clone)]
struct Reference {
    sum: Number,
    count: i128,
    ts: i128,
}

#[derive(Clone)]
struct Bands {
    lower: Number,
    upper: Number,
}

impl Bands {
    fn contain(&self, px: Price) -> bool {
        self.lower <= Number::from(px) && Number::from(px) <= self.upper
    }
}

const SECOND: i128 = 1_000_000_000;
const WINDOW: i128 = 300 * SECOND;
const REFERENCE_AGE: i128 = 30 * SECOND;

impl Slow {
    /// Makes the twin before the first event.
    pub fn new(params: &ScenarioParams) -> Self {
        Self { params: params.clone(), instruments: HashMap::new() }
    }

    fn nanos(&self, param: &str, unit_s: i128) -> i128 {
        i128::from(self.params.uint(param)) * unit_s * SECOND
    }

    /// Returns the bands that the current event is judged by.
    fn bands(&self, history: &History, instr: InstrumentId) -> Option<Bands> {
        let now = history.now();
        let Reference { sum, count, .. } = self.instruments.get(&instr)?.reference.clone()?;
        let FieldValue::Price(prev_close) =
            history.reference_before(instr, EventField::PrevClose, now.seq)?
        else {
            return None;
        };
        let FieldValue::UInt(tier) = history.reference_before(instr, EventField::Tier, now.seq)? else {
            return None;
        };
        // "Percent by tier and PREVIOUS CLOSE"
        let prev_close = Number::from(*prev_close);
        if !prev_close.is_positive() {
            return None;
        }
        let (dollars, percent) = width(self.params.value("tiers"), *tier, &prev_close)?;
        // "doubled 15:35-16:00 ET for Tier 1 and for Tier 2 with prev close <= 3.00; no doubling 09:30-09:45
        // (Amendment 18; double_open=true restores the old regime)"
        let (_, of_day) = self.params.local_clock().read(now.ts);
        let minute = |hour: i128, minute: i128| (hour * 60 + minute) * 60 * SECOND;
        let of_day = i128::from(of_day);
        let is_close = minute(15, 35) <= of_day && of_day < minute(16, 0);
        let is_open = minute(9, 30) <= of_day && of_day < minute(9, 45);
        let is_close_doubled = *tier == 1 || (*tier == 2 && prev_close <= Number::whole(3));
        let is_doubled = is_close && is_close_doubled || is_open && self.params.flag("double_open");
        // "doubling doubles both parts"
        let factor = Number::whole(if is_doubled { 2 } else { 1 });
        // Band = (sum ± width) / count; the width of a percentage is of the reference.
        let hundredth = Number::new(1, -2);
        let mut width = sum.clone() * percent * hundredth * factor.clone();
        if let Some(dollars) = dollars {
            width = width.min(dollars * factor * Number::whole(count));
        }
        Some(Bands {
            lower: rounded_to_cents(sum.clone() - width.clone(), count),
            upper: rounded_to_cents(sum + width, count),
        })
    }

    /// Judges a print by the bands, then looks whether the reference moves.
    fn on_print(&mut self, history: &History, instr: InstrumentId, px: Price) -> bool {
        let now = history.now();
        let bands = self.bands(history, instr);
        let this = self.instruments.entry(instr).or_default();
        let (Some(bands), Some(reference)) = (bands, this.reference.clone()) else { return false };
        this.bands.insert(now.seq, bands.clone());
        // "mean of in-band trades in (t-5min,t]"; "The current in-band trade is in the mean"
        let t = i128::from(now.ts.0);
        let in_band: Vec<Price> = history
            .prints_before(instr, None, now.seq + 1)
            .into_iter()
            .filter(|print| !print.no_last)
            .filter(|print| i128::from(print.ts.0) > t - WINDOW && i128::from(print.ts.0) <= t)
            .filter(|print| this.bands.get(&print.seq).is_some_and(|bands| bands.contain(print.px)))
            .map(|print| print.px)
            .collect();
        let count = in_band.len() as i128;
        let sum = in_band.into_iter().fold(Number::whole(0), |sum, px| sum + Number::from(px));
        // "when it differs by >=1 % and the current one is >=30 s old (evaluated on trades)"
        let of_both = |number: &Number, count: i128| number.clone() * Number::whole(count);
        let difference = of_both(&sum, reference.count) - of_both(&reference.sum, count);
        let differs = count > 0
            && difference.abs() * Number::whole(100) >= of_both(&reference.sum, count)
            && sum.is_positive();
        if differs && t - reference.ts >= REFERENCE_AGE {
            // "a new reference applies from the next trade on"
            this.reference = Some(Reference { sum, count, ts: t });
        }
        // "trade_outside_band when price is strictly outside"
        !bands.contain(px)
    }

    /// Judges a quote. Returns whether it enters the limit state.
    fn on_national_best(&mut self, history: &History, names: &Dictionary, instr: InstrumentId) -> bool {
        let now = history.now();
        let t = i128::from(now.ts.0);
        let pause_length = self.nanos("pause_min", 60);
        let best = history.national_best_before(instr, now.seq + 1, names).unwrap_or_default();
        let direction = self.bands(history, instr).and_then(|bands| {
            let (bid, ask) = (Number::from(best.bid?), Number::from(best.ask?));
            // "limit_state when NBO = lower band and NBB<NBO (down) or NBB = upper band and NBO>NBB (up)"
            match () {
                _ if bid >= ask => None,
                _ if ask == bands.lower => Some("down"),
                _ if bid == bands.upper => Some("up"),
                _ => None,
            }
        });
        let this = self.instruments.entry(instr).or_default();
        // "no limit state is entered in the pause_min after a pause"
        let is_paused = this.pause.is_some_and(|pause| t < pause + pause_length);
        match (direction, this.limit) {
            (Some(direction), Some((current, _))) if direction == current => false,
            // "Entering the limit state is itself an alert (… once per entry and direction)"
            (Some(direction), _) if !is_paused => {
                this.limit = Some((direction, t));
                true
            }
            _ => {
                this.limit = None;
                false
            }
        }
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        let now = history.now();
        let alert = |ts: i128, instr: InstrumentId| NaiveAlert {
            ts: UnixNanos(i64::try_from(ts).expect("not after the time of an event")),
            key: vec![("instr", name(names, NameKind::Instrument, instr.0))],
        };
        let t = i128::from(now.ts.0);
        // "continuous for limit_state_s -> pause alert at entry+limit_state_s"
        let limit_length = self.nanos("limit_state_s", 1);
        let mut alerts = Vec::new();
        for (instr, this) in &mut self.instruments {
            if let Some((_, entry)) = this.limit.filter(|(_, entry)| entry + limit_length <= t) {
                (this.limit, this.pause) = (None, Some(entry + limit_length));
                alerts.push(alert(entry + limit_length, *instr));
            }
        }
        let Some(instr) = now.instr else { return alerts };
        let is_national = now.venue.is_some_and(|venue| names.name(NameKind::Venue, venue) == Some("NBBO"));
        match now.kind {
            // "Reference = opening price"
            EventKind::Session if now.text(EventField::Phase) == Some("open") => {
                if let Some(px) = now.px.map(Number::from).filter(Number::is_positive) {
                    let reference = Reference { sum: px, count: 1, ts: t };
                    self.instruments.entry(instr).or_default().reference = Some(reference);
                }
            }
            EventKind::Trade => {
                if let Some(print) = history.print_now().filter(|print| !print.no_last)
                    && self.on_print(history, instr, print.px)
                {
                    alerts.push(alert(t, instr));
                }
            }
            EventKind::Bbo if is_national && self.on_national_best(history, names, instr) => {
                alerts.push(alert(t, instr));
            }
            _ => {}
        }
        alerts
    }
}

/// Implements "Bands rounded half-up to 0.01": rounds `number / divisor`, which has at most 30 places times the divisor.
fn rounded_to_cents(number: Number, divisor: i128) -> Number {
    // floor(number / divisor × 100 + ½), found digit by digit.
    let twice = number * Number::whole(200) + Number::whole(divisor);
    let step = |cents: i128| Number::whole(cents) * Number::whole(2 * divisor);
    let (mut low, mut high) = (-(1i128 << 70), 1i128 << 70);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if step(middle) <= twice { low = middle } else { high = middle }
    }
    Number::new(low, -2)
}

/// Returns the dollars, if there are any, and the percent of a tier at a previous close.
fn width(tiers: &Value, tier: u64, prev_close: &Number) -> Option<(Option<Number>, Number)> {
    let number = |text: &str| Decimal::parse(text.as_bytes()).ok().map(Number::from);
    let is_in = |range: &str| match (range.strip_prefix('>'), range.strip_prefix('<')) {
        (Some(least), _) => number(least).is_some_and(|least| *prev_close > least),
        (_, Some(most)) => number(most).is_some_and(|most| *prev_close < most),
        _ => range.split_once('-').is_some_and(|(least, most)| {
            number(least).is_some_and(|least| least <= *prev_close)
                && number(most).is_some_and(|most| *prev_close <= most)
        }),
    };
    let ranges = tiers.get(tier.to_string())?.as_object()?;
    let read = |value: &str| match value.strip_prefix("min($").and_then(|rest| rest.strip_suffix(')')) {
        Some(parts) => {
            let (dollars, percent) = parts.split_once(',')?;
            Some((Some(number(dollars)?), number(percent.strip_suffix('%')?)?))
        }
        None => Some((None, number(value.strip_suffix('%')?)?)),
    };
    // A form that is none of those of the plan is as if it were not there.
    ranges.iter().filter(|(range, _)| is_in(range)).find_map(|(_, value)| read(value.as_str()?))
}
