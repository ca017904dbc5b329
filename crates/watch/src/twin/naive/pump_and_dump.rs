//! The words of the definition, each looked up in everything that happened.

use crate::params::ScenarioParams;
use crate::twin::naive::{Happened, History, NaiveAlert, Number, Twin, name};
use std::collections::HashMap;
use unitape_model::{CivilDate, Dictionary, EventField, EventKind, InstrumentId, NameKind, Price};

/// The scenario, slowly.
pub struct Slow {
    params: ScenarioParams,
    /// The last alert of each owner and instrument, by sequence: a campaign ended there.
    ended: HashMap<(u32, InstrumentId), u64>,
}

impl Slow {
    /// Makes the twin before the first event.
    pub fn new(params: &ScenarioParams) -> Self {
        Self { params: params.clone(), ended: HashMap::new() }
    }

    fn judge(&mut self, history: &History, names: &Dictionary) -> Option<NaiveAlert> {
        // "At a sale"
        let now = Deal::read(history, history.now()).filter(|deal| deal.side == 'S')?;
        let (owner, instr, t) = (now.owner, now.instr, i128::from(now.event.ts.0));
        let ended = self.ended.get(&(owner, instr)).copied();
        let day = 86_400_000_000_000;
        let dump = i128::from(self.params.uint("dump_days")) * day;
        let accum = i128::from(self.params.uint("accum_days")) * day;
        let mut deals: Vec<Deal<'_>> = history
            .of_instr(instr)
            .filter_map(|e| Deal::read(history, e))
            .filter(|deal| deal.owner == owner && ended.is_none_or(|ended| deal.event.seq > ended))
            .collect();
        deals.reverse();
        let in_window = |side: char, window: i128| -> Vec<&Deal<'_>> {
            let ts = |deal: &Deal<'_>| i128::from(deal.event.ts.0);
            let is_in = |deal: &&Deal<'_>| deal.side == side && ts(deal) > t - window && ts(deal) <= t;
            deals.iter().filter(is_in).collect()
        };
        // "purchases of the owner in (t - dump_days - accum_days, t], sales in (t - dump_days, t]"
        let (purchases, sales) = (in_window('B', dump + accum), in_window('S', dump));
        let first = *purchases.first()?;
        let qty = |deals: &[&Deal<'_>]| deals.iter().map(|deal| deal.qty.clone()).sum::<Number>();
        let value = |deals: &[&Deal<'_>]| deals.iter().map(|deal| deal.qty.clone() * deal.px.into()).sum();
        let (purchase_qty, sale_qty) = (qty(&purchases), qty(&sales));
        // "of at least dump_pct % of what was purchased"
        let dump_pct = Number::billionths(self.params.nano("dump_pct"));
        let is_dumped = sale_qty.clone() * Number::from(100) >= dump_pct * purchase_qty.clone();
        // "above its average price"
        let (cost, proceeds): (Number, Number) = (value(&purchases), value(&sales));
        let is_profit = proceeds * purchase_qty > cost * sale_qty;
        // "between the first purchase and the sale a news or comm that names the instrument"
        let is_between = |seq: u64| seq > first.event.seq && seq < now.event.seq;
        let promotes = |e: &Happened| is_between(e.seq) && e.names(EventField::Instrs).contains(&instr.0);
        let is_promoted =
            [EventKind::News, EventKind::Comm].iter().any(|kind| history.of_kind(*kind).any(promotes));
        // "a price pump_pct % above the first purchase"
        let prints = history.prints_before(instr, None, now.event.seq);
        let pump_pct = Number::billionths(self.params.nano("pump_pct"));
        let pump_px = Number::from(first.px) * (Number::from(100) + pump_pct);
        let is_pumped = Number::from(first.px).is_positive()
            && prints
                .iter()
                .filter(|print| is_between(print.seq) && !print.no_last)
                .any(|print| Number::from(print.px) * Number::from(100) >= pump_px);
        // "a UTC day with pump_volume_mult times the mean volume of the 30 days before it"
        let mult = Number::billionths(self.params.nano("pump_volume_mult"));
        let date = |event: &Happened| CivilDate::from_utc(event.ts).days();
        let volume = |from: i32, to: i32| -> Number {
            let is_in = |ts| (from..=to).contains(&CivilDate::from_utc(ts).days());
            prints.iter().filter(|print| is_in(print.ts)).map(|print| print.qty.into()).sum()
        };
        let is_busy = (date(first.event)..=date(now.event)).any(|day| {
            let before = volume(day - 30, day - 1);
            before.is_positive() && volume(day, day) * Number::from(30) >= mult.clone() * before
        });
        if !(is_dumped && is_profit && is_promoted && is_pumped && is_busy) {
            return None;
        }
        // "one alert a campaign"
        self.ended.insert((owner, instr), now.event.seq);
        Some(NaiveAlert {
            ts: now.event.ts,
            key: vec![
                ("owner", name(names, NameKind::Owner, owner)),
                ("instr", name(names, NameKind::Instrument, instr.0)),
            ],
        })
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        self.judge(history, names).into_iter().collect()
    }
}

/// An execution with all needed fields.
struct Deal<'a> {
    event: &'a Happened,
    owner: u32,
    instr: InstrumentId,
    side: char,
    px: Price,
    qty: Number,
}

impl<'a> Deal<'a> {
    fn read(history: &History, event: &'a Happened) -> Option<Self> {
        let qty = event.qty.filter(|qty| event.kind == EventKind::Exec && qty.mantissa() > 0)?;
        Some(Self {
            event,
            owner: history.owner(event)?,
            instr: event.instr?,
            side: event.side?,
            px: event.px?,
            qty: qty.into(),
        })
    }
}
