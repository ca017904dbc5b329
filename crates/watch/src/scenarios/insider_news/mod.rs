//! Dealing ahead of news: an owner bought before good news or sold before bad news, and the price moved.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - The last trade before the news, and the last at T, are the last by sequence among those stamped so. A print with
//!   `no_last` is neither.
//! - The event that brings T counts in the price after the news if it is itself a trade of the instrument stamped
//!   exactly T; nothing else that it changes counts. Otherwise the sentence "a trade at exactly T counts" could never
//!   apply.
//! - News that arrives when its T has passed is judged with the next event that is stamped T or later.
//! - Each news event is judged alone: a second one with the same news_id gives its own alerts, one with `revises`
//!   too. An instrument that the news names twice counts once.
//! - A price before the news that is not above zero is missing. A price that did not move has no sign, and no owner
//!   has it.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::ids::id_text;
use crate::keyed::KeyedStates;
use crate::missing::MissingValue;
use crate::number::Number;
use crate::orders::quantity;
use crate::params::ScenarioParams;
use crate::past_prices::{PastPrices, PastPrint};
use crate::prints::Print;
use crate::state::{state_value, watch_state};
use crate::time_logs::TimeLogs;
use crate::timers::DueTimer;
use crate::watch::{
    EvidencePlace, Scenario, ScenarioContext, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind,
};
use serde_json::json;
use std::collections::BTreeMap;
use unitape_model::{Decimal, EventField, EventKind, EventValue, InstrumentId, NameKind, UnixNanos};

/// The name of the scenario.
pub const ID: &str = "insider_news";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] = &[EventKind::News, EventKind::Trade, EventKind::Exec];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[SharedStateKind::Orders, SharedStateKind::Prints];

/// The scenario.
pub struct InsiderNewsScenario {
    lookback_ns: i128,
    reaction_ns: i128,
    min_move_pct: Number,
    min_profit: Number,
    prices: PastPrices<InstrumentId>,
    executions: TimeLogs<InstrumentId, OwnerExecution>,
    /// News whose reaction is not over, by the token of the timer.
    pending: KeyedStates<u64, PendingNews>,
    /// The token of the last timer.
    token: u64,
    late: u64,
}

#[derive(Clone, Copy)]
struct OwnerExecution {
    owner: u32,
    is_purchase: bool,
    qty: Decimal,
    place: EvidencePlace,
}

#[derive(Clone)]
struct PendingNews {
    id: String,
    ts: UnixNanos,
    /// In ascending order, each once.
    instrs: Vec<InstrumentId>,
    place: EvidencePlace,
}

/// The last prices of an instrument before the news and at the end of the reaction.
struct NewsMove {
    before: PastPrint,
    after: PastPrint,
}

/// What an owner bought less what the owner sold.
#[derive(Default)]
struct OwnerNet {
    qty: Number,
    evidence: Vec<EvidencePlace>,
}

state_value!(OwnerExecution { owner, is_purchase, qty, place });
state_value!(PendingNews { id, ts, instrs, place });
watch_state!(InsiderNewsScenario {
    prices, executions, pending, token, late | lookback_ns, reaction_ns, min_move_pct, min_profit
});

impl InsiderNewsScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        let lookback_ns = 3_600 * params.seconds("lookback_h");
        let reaction_ns = 60 * params.seconds("reaction_min");
        Self {
            lookback_ns,
            reaction_ns,
            min_move_pct: Number::billionths(params.nano("min_move_pct")),
            min_profit: params.amount("min_profit").into(),
            // A print of the time of the news is not before it.
            prices: PastPrices::new(reaction_ns + 1),
            executions: TimeLogs::new(lookback_ns + reaction_ns),
            pending: KeyedStates::new(),
            token: 0,
            late: 0,
        }
    }

    fn on_news(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let Some(id) = id_text(input.event, EventField::NewsId) else {
            return out.missing(MissingValue::Field(EventField::NewsId));
        };
        let mut instrs: Vec<InstrumentId> = match input.event.field(EventField::Instrs, &mut [0; 36]) {
            Some(EventValue::Syms(_, ids)) => {
                ids.as_chunks().0.iter().map(|id| InstrumentId(u32::from_le_bytes(*id))).collect()
            }
            _ => return out.missing(MissingValue::Field(EventField::Instrs)),
        };
        instrs.sort_unstable();
        instrs.dedup();
        // No event comes after the end of time.
        let Ok(due) = i64::try_from(i128::from(input.ts.0) + self.reaction_ns) else { return };
        self.token += 1;
        let news = PendingNews { id, ts: input.ts, instrs, place: input.context.place() };
        self.pending.set(self.token, news);
        out.wake_at(UnixNanos(due), self.token);
    }

    fn on_execution(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let qty = input.record.and_then(quantity).filter(|qty| qty.mantissa() > 0);
        let field = match qty {
            _ if input.owner == 0 => EventField::Owner,
            _ if input.instr.0 == 0 => EventField::Instr,
            _ if !matches!(input.side, BUY | SELL) => EventField::Side,
            None => EventField::Qty,
            Some(qty) => {
                let (owner, is_purchase, place) = (input.owner, input.side == BUY, input.context.place());
                let execution = OwnerExecution { owner, is_purchase, qty, place };
                return self.executions.add(input.instr, input.ts, execution, input.context.expiry_ts);
            }
        };
        out.missing(MissingValue::Field(field));
    }

    /// Returns the prices around news, if they moved enough. `arriving` is the print that brings the end of the reaction.
    fn price_move(
        &mut self,
        news_ts: UnixNanos,
        instr: InstrumentId,
        due_ts: UnixNanos,
        arriving: Option<&Print>,
    ) -> Option<NewsMove> {
        let (before, is_complete) = self.prices.last_until(&instr, i128::from(news_ts.0) - 1);
        let (kept, is_kept_complete) = self.prices.last_until(&instr, due_ts.0.into());
        self.late += u64::from(!(is_complete && is_kept_complete));
        let arriving = arriving.filter(|print| print.instr == instr && print.ts == due_ts);
        let news_move = NewsMove { before: before?, after: arriving.map(PastPrint::from).or(kept)? };
        let least = self.min_move_pct * news_move.before.px.into();
        let is_met = news_move.before.px.0 > 0 && news_move.change().abs() * Number::whole(100) >= least;
        is_met.then_some(news_move)
    }

    /// Judges the owners of an instrument at the end of the reaction to news.
    fn judge(
        &mut self,
        news: &PendingNews,
        instr: InstrumentId,
        due_ts: UnixNanos,
        context: &ScenarioContext<'_>,
        out: &mut ScenarioOutput<'_>,
    ) {
        let arriving = context.arriving_print(out.event()).filter(|print| !print.no_last);
        let Some(news_move) = self.price_move(news.ts, instr, due_ts, arriving.as_ref()) else { return };
        let change = news_move.change();
        let after = i128::from(news.ts.0) - self.lookback_ns;
        let window = self.executions.window(&instr, after, UnixNanos(news.ts.0.saturating_sub(1)));
        self.late += u64::from(!window.is_complete);
        let mut owners = BTreeMap::<u32, OwnerNet>::new();
        for (_, execution) in window.iter() {
            let net = owners.entry(execution.owner).or_default();
            let qty = Number::from(execution.qty);
            net.qty = if execution.is_purchase { net.qty + qty } else { net.qty - qty };
            net.evidence.push(execution.place);
        }
        for (owner, net) in owners {
            let profit = net.qty * change;
            // Net and move have the same sign.
            if !profit.is_positive() || profit < self.min_profit {
                continue;
            }
            let values = json!({
                "net_qty": net.qty.text(), "profit": profit.text(), "news_ts": news.ts.0,
                "px_before": news_move.before.px.to_string(), "px_after": news_move.after.px.to_string(),
            });
            let key = vec![
                ("owner", context.name(NameKind::Owner, owner)),
                ("instr", context.name(NameKind::Instrument, instr.0)),
                ("news_id", news.id.clone()),
            ];
            let places = [news.place, news_move.before.place, news_move.after.place];
            let detail = context.detail(values, net.evidence.into_iter().chain(places));
            out.alert(Alert::new(ID, due_ts, context.seq, key, detail));
        }
    }
}

impl NewsMove {
    fn change(&self) -> Number {
        Number::from(self.after.px) - self.before.px.into()
    }
}

impl Scenario for InsiderNewsScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        match input.event.kind() {
            EventKind::News => self.on_news(input, out),
            EventKind::Exec => self.on_execution(input, out),
            _ => {
                let Some(change) = input.print else { return };
                match change.print().instr {
                    InstrumentId(0) => out.missing(MissingValue::Field(EventField::Instr)),
                    instr => self.prices.on_change(instr, &change, input.context.expiry_ts),
                }
            }
        }
    }

    fn on_timer(&mut self, due: DueTimer, context: &ScenarioContext<'_>, out: &mut ScenarioOutput<'_>) {
        let Some(news) = self.pending.get(&due.token).cloned() else { return };
        self.pending.remove(&due.token);
        for instr in &news.instrs {
            self.judge(&news, *instr, due.due_ts, context, out);
        }
    }

    fn reset(&mut self) {
        self.prices.clear();
        self.executions.clear();
        self.pending.clear();
        self.token = 0;
    }

    fn metrics(&self) -> ScenarioMetrics {
        ScenarioMetrics {
            late: self.late,
            expired: self.executions.expired,
            bound_hit: self.executions.bound_hit + self.prices.bound_hit() + self.pending.bound_hit(),
            held_entries: (self.executions.entry_count() + self.prices.len() + self.pending.len()) as u64,
            ..ScenarioMetrics::default()
        }
    }
}

const BUY: u8 = 1;
const SELL: u8 = 2;
