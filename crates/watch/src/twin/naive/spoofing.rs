//! The words of the definition, each looked up in everything that happened.

use crate::exact::{QuantitySum, at_most, times};
use crate::params::ScenarioParams;
use crate::twin::naive::{FieldValue, Happened, History, NaiveAlert, Twin, name, sum};
use unitape_model::{Dictionary, EventField, EventKind, NameKind};

/// The scenario, slowly.
pub struct Slow {
    params: ScenarioParams,
}

impl Slow {
    /// Makes the twin before the first event.
    pub fn new(params: &ScenarioParams) -> Self {
        Self { params: params.clone() }
    }

    fn judge(&self, history: &History, names: &Dictionary) -> Option<NaiveAlert> {
        let spoof = find_spoof(history, &self.params, Some)?;
        let new = spoof.new;
        Some(NaiveAlert {
            ts: history.now().ts,
            key: vec![
                ("owner", name(names, NameKind::Owner, spoof.party)),
                ("venue", name(names, NameKind::Venue, new.venue.unwrap_or(0))),
                ("instr", name(names, NameKind::Instrument, new.instr?.0)),
                ("side", new.side?.to_string()),
            ],
        })
    }
}

/// An order that fits the definition.
pub(super) struct Spoof<'a> {
    /// Its `order_new`.
    pub new: &'a Happened,
    /// The party of its owner.
    pub party: u32,
}

/// Returns the spoof that the current event completes. An owner acts as `party_of` the owner; an owner without a party takes
/// no part.
pub(super) fn find_spoof<'a>(
    history: &'a History,
    params: &ScenarioParams,
    party_of: impl Fn(u32) -> Option<u32>,
) -> Option<Spoof<'a>> {
    // "On order_cancel of live order O (owner P)"; a cancel that the venue made is none of the trader.
    let cancel = history.now();
    if cancel.kind != EventKind::OrderCancel || cancel.is_of_venue() {
        return None;
    }
    let order = history.order_before(cancel)?;
    let new = order.new?;
    if !order.is_live() {
        return None;
    }
    // "(latest amended qty/px)"
    let (qty, px, filled) = (order.qty?, order.px?, order.executed);
    // "An owner named only on the cancel counts when the order had none."
    let (owner, instr, side) = (order.owner.or(cancel.owner)?, new.instr?, new.side?);
    let party = party_of(owner)?;
    let (cancel_ts, new_ts) = (i128::from(cancel.ts.0), i128::from(new.ts.0));
    // "life=cancel.ts-new.ts <= max_life_ms"
    let short = cancel_ts - new_ts <= params.millis("max_life_ms");
    // "O.cum_exec*100 <= max_filled_pct*O.qty"; parameters of this kind are in billionths.
    let hardly_filled = filled.times(100).times(1_000_000_000)
        <= QuantitySum::from_decimal(qty).times(params.nano("max_filled_pct"));
    // "O.qty*O.px >= min_notional"; a price has nine places.
    let mut notional = times(qty, px.0.unsigned_abs());
    notional.exponent -= 9;
    let large = px.0 >= 0 && at_most(times(params.amount("min_notional"), 1), notional);
    // "distance of the entry price behind the same-side best (BBO last seen before entry; improving = 0)
    // <= max_dist_ticks"
    let same_book = |e: &&Happened| e.venue == new.venue && e.instr == Some(instr);
    let best = history.best_before(new.venue, instr, new.seq)?;
    let best = if side == 'B' { best.bid } else { best.ask }?;
    let tick = history.reference_before(instr, EventField::Tick, cancel.seq)?;
    let FieldValue::Price(tick) = tick else { return None };
    let entry_px = i128::from(new.px?.0);
    let behind = i128::from(best.0) - entry_px;
    let behind = if side == 'B' { behind } else { -behind };
    let max_dist = i128::from(params.nano("max_dist_ticks"));
    let near = tick.0 > 0 && behind.max(0) * 1_000_000_000 <= max_dist * i128::from(tick.0);
    // "P has exec(s) on the opposite side, same venue+instrument, between O's entry and cancel (by seq)"
    let execs: Vec<&Happened> = history
        .of_instr(instr)
        .take_while(|e| e.seq > new.seq)
        .filter(|e| history.owner(e).and_then(&party_of) == Some(party))
        .filter(|e| e.kind == EventKind::Exec && e.seq < cancel.seq)
        .filter(same_book)
        .filter(|e| matches!((side, e.side), ('B', Some('S')) | ('S', Some('B'))))
        .filter(|e| e.qty.is_some_and(|q| q.mantissa() > 0))
        .collect();
    // "the last of them is <= cancel_after_exec_ms before the cancel"; latest first.
    let last = i128::from(execs.first()?.ts.0);
    let pulled = cancel_ts - last <= params.millis("cancel_after_exec_ms");
    // "O.qty >= min_ratio * sum of those exec quantities"
    let executed = sum(execs.into_iter());
    let out_of_proportion =
        executed.times(params.nano("min_ratio")) <= QuantitySum::from_decimal(qty).times(1_000_000_000);
    let fires = short && hardly_filled && large && near && pulled && out_of_proportion;
    fires.then_some(Spoof { new, party })
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        self.judge(history, names).into_iter().collect()
    }
}
