//! Which sales are short.

use rustc_hash::FxHashMap;
use unitape_model::Side;

use super::super::event::{DayEventBody, OrderTicket};
use super::event::ShortMark;

/// Marks sales: short if the owner holds less than the order when it is entered, and of these every eighth exempt. An
/// order keeps its mark. Bounded by the sales that are live.
#[derive(Debug, Default)]
pub(super) struct ShortMarks {
    /// Mark and executed quantity, by order.
    live: FxHashMap<u64, (ShortMark, i64)>,
}

impl ShortMarks {
    /// Returns the short-sale mark of the sale in an event. `held_qty` is the quantity that the owner holds before it.
    pub fn mark(&mut self, held_qty: i64, body: &DayEventBody) -> Option<ShortMark> {
        match body {
            DayEventBody::New(t) if t.side == Side::Sell => {
                let mark = Self::of_order(t, held_qty);
                self.live.insert(t.oid, (mark, 0));
                Some(mark)
            }
            DayEventBody::Reject(t) if t.side == Side::Sell => Some(Self::of_order(t, held_qty)),
            DayEventBody::Amend(t) => self.live.get(&t.oid).map(|live| live.0),
            DayEventBody::Cancel(t) => self.live.remove(&t.oid).map(|live| live.0),
            DayEventBody::Exec { order, qty, .. } => {
                let live = self.live.get_mut(&order.oid)?;
                live.1 += qty;
                let (mark, sold_qty) = *live;
                if sold_qty == order.qty {
                    self.live.remove(&order.oid);
                }
                Some(mark)
            }
            _ => None,
        }
    }

    fn of_order(t: &OrderTicket, held_qty: i64) -> ShortMark {
        match held_qty >= t.qty {
            true => ShortMark::Long,
            false if t.oid.is_multiple_of(8) => ShortMark::Exempt,
            false => ShortMark::Short,
        }
    }
}
