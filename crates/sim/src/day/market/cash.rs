//! The cash of the accounts.

use std::collections::BTreeMap;
use unitape_model::{InstrumentId, Side};

use super::super::event::DayEventBody;
use super::super::world::SimulatedMarket;
use super::event::{CashEntry, CashStatement};

/// Cash by account and currency: it begins with nothing, and each execution is paid at once. Bounded by the pairs of
/// account and currency that traded.
#[derive(Debug, Default)]
pub(super) struct CashLedger {
    balances: BTreeMap<(u32, &'static str), i128>,
    /// Of this day: net purchase and cash by account, currency and instrument.
    moves: BTreeMap<(u32, &'static str, InstrumentId), (i64, i128)>,
    statements: u64,
}

impl CashLedger {
    pub fn apply(&mut self, world: &SimulatedMarket, body: &DayEventBody) {
        let DayEventBody::Exec { order, px, qty, .. } = *body else { return };
        let listed = world.listed(order.book);
        let value = i128::from(listed.nano(px)) * i128::from(qty);
        let key = (order.member, listed.ccy, world.instr_of(order.book));
        let (bought, cash) = self.moves.entry(key).or_default();
        match order.side {
            Side::Buy => (*bought, *cash) = (*bought + qty, *cash - value),
            Side::Sell => (*bought, *cash) = (*bought - qty, *cash + value),
        }
    }

    /// Ends the day: returns its statements by account and currency, and begins the next day.
    pub fn end_day(&mut self) -> Vec<CashStatement> {
        let mut statements: Vec<CashStatement> = Vec::new();
        for ((member, ccy, instr), (qty, amount)) in std::mem::take(&mut self.moves) {
            let entry = CashEntry { instr, qty, amount };
            match statements.last_mut() {
                Some(last) if (last.member, last.ccy) == (member, ccy) => last.entries.push(entry),
                _ => {
                    self.statements += 1;
                    let opening = self.balances.get(&(member, ccy)).copied().unwrap_or_default();
                    let (number, closing, entries) = (self.statements, opening, vec![entry]);
                    statements.push(CashStatement { member, ccy, number, opening, closing, entries });
                }
            }
        }
        for statement in &mut statements {
            statement.closing += statement.entries.iter().map(|entry| entry.amount).sum::<i128>();
            self.balances.insert((statement.member, statement.ccy), statement.closing);
        }
        statements
    }
}
