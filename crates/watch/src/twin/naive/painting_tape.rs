//! The words of the definition, each looked up in everything that happened.

use crate::exact::QuantitySum;
use crate::params::ScenarioParams;
use crate::twin::naive::number::Number;
use crate::twin::naive::{Happened, History, NaiveAlert, Twin, name, sum};
use unitape_model::{Decimal, Dictionary, EventField, EventKind, InstrumentId, NameKind, Price};

/// The scenario, slowly.
pub struct Slow {
    params: ScenarioParams,
}

/// An execution of the group with all needed fields, and its print as it counts now.
struct Leg<'a> {
    event: &'a Happened,
    owner: u32,
    instr: InstrumentId,
    side: char,
    px: Price,
    print_qty: Decimal,
    /// The print counts in volumes alone.
    no_last: bool,
}

/// Implements "match_id per venue+instrument" and "a match_id belongs to its session date". An execution without a match id
/// differs from all others.
fn is_same_match(a: &Happened, b: &Happened) -> bool {
    let parts = |e: &Happened| (e.match_id.clone(), e.venue, e.instr, e.session_date);
    a.match_id.is_some() && parts(a) == parts(b)
}

/// Returns the leg. Returns `None` if a field is missing or the print was cancelled.
fn leg<'a>(history: &'a History, e: &'a Happened) -> Option<Leg<'a>> {
    let mut leg = Leg {
        event: e,
        owner: history.owner(e)?,
        instr: e.instr?,
        side: e.side?,
        px: e.px?,
        print_qty: e.executed_qty()?,
        no_last: e.has_flag(EventField::TradeFlags, "no_last"),
    };
    // "from its seq on the trade of that venue, instrument and match_id does not count, or counts with the new px and qty"
    let mut changes: Vec<_> =
        history.of_kind(EventKind::Trade).filter(|t| t.seq > e.seq && is_same_match(t, e)).collect();
    changes.reverse();
    for change in changes {
        match change.text(EventField::Action) {
            Some("cancel") => return None,
            Some("correct") => (leg.px, leg.print_qty) = (change.px?, change.qty?),
            _ => {}
        }
    }
    Some(leg)
}

impl Slow {
    /// Makes the twin before the first event.
    pub fn new(params: &ScenarioParams) -> Self {
        Self { params: params.clone() }
    }

    fn judge(&self, history: &History, names: &Dictionary) -> Option<NaiveAlert> {
        // "tested at every exec of the group"
        let now = leg(history, history.now())?;
        let group = history.group(now.owner);
        // All legs of the group, earliest first.
        let mut legs: Vec<Leg<'_>> = history
            .of_instr(now.instr)
            .filter_map(|e| leg(history, e))
            .filter(|leg| history.group(leg.owner) == group)
            .collect();
        legs.reverse();
        // "A print counts once for a group, at its first leg"
        let is_first = |n: usize| !legs[..n].iter().any(|leg| is_same_match(leg.event, legs[n].event));
        let firsts: Vec<bool> = (0..legs.len()).map(is_first).collect();
        let window = self.params.seconds("window_s");
        let in_window = |leg: &Leg<'_>| leg.event.is_in_window(now.event.ts, window);
        // "small prints in the window"; "(qty <= max_trade_qty)"
        let most = Number::from(self.params.amount("max_trade_qty"));
        let is_small = |leg: &Leg<'_>| !leg.no_last && most >= Number::from(leg.print_qty);
        let small: Vec<&Leg<'_>> = legs
            .iter()
            .zip(firsts)
            .filter(|(leg, is_first)| *is_first && in_window(leg) && is_small(leg))
            .map(|(leg, _)| leg)
            .collect();
        // "up- and downticks are taken between successive prints of the group (qty <= max_trade_qty), an equal price is
        // neither"
        let ups = small.windows(2).filter(|pair| pair[1].px > pair[0].px).count() as u64;
        let downs = small.windows(2).filter(|pair| pair[1].px < pair[0].px).count() as u64;
        // "volume is the sum of the legs of the group"
        let volume = |side: char| {
            let sides = legs.iter().filter(|leg| in_window(leg) && leg.side == side);
            sum(sides.map(|leg| leg.event))
        };
        let (bought, sold) = (volume('B'), volume('S'));
        // "its net position change <= 10 % of its volume"
        let net: QuantitySum = bought.max(sold).minus_earlier(&bought.min(sold));
        let flat = net.times(100) <= QuantitySum::total([bought, sold]).times(10);
        let fires = small.len() as u64 >= self.params.uint("min_trades")
            && ups.max(downs) >= self.params.uint("min_upticks")
            && flat;
        fires.then(|| NaiveAlert {
            ts: now.event.ts,
            key: vec![
                ("group", name(names, NameKind::Owner, group)),
                ("instr", name(names, NameKind::Instrument, now.instr.0)),
            ],
        })
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        self.judge(history, names).into_iter().collect()
    }
}
