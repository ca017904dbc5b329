//! The state of a source: its orders, message by message.

use super::ItchDecoder;
use super::orders::{ItchOrderState, ItchOrderTable, OrderInsertRefusal};
use crate::mapping::MessageRefusal;
use unitape_codec::itch::OrderReplace;

/// The state of an order after an execution or a partial cancel.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReducedOrder {
    /// The order as it is now, also when nothing is left.
    pub order: ItchOrderState,
}

impl ItchDecoder {
    /// An order arrives. The locate code must name its symbol.
    #[inline]
    pub(super) fn add_order(
        &mut self,
        order: ItchOrderState,
        symbol: &[u8; 8],
    ) -> Result<(), MessageRefusal> {
        self.check_stock(order.locate, symbol)?;
        let Some(orders) = &mut self.orders else { return Ok(()) };
        orders.insert(order).map_err(|no| no_room(no, order.order, orders))
    }

    /// The code must name this symbol, or none yet.
    #[inline]
    pub(super) fn check_stock(&mut self, locate: u16, symbol: &[u8; 8]) -> Result<(), MessageRefusal> {
        if self.orders.is_some()
            && let Some(other) = self.stocks.symbol(locate)
            && other != *symbol
        {
            return Err(other_symbol(locate, &other));
        }
        self.stocks.bind(locate, symbol);
        Ok(())
    }

    /// Takes shares off an order, executed or cancelled.
    #[inline]
    pub(super) fn reduce_order(
        &mut self,
        locate: u16,
        order: u64,
        shares: u32,
        executed: bool,
    ) -> Result<ReducedOrder, MessageRefusal> {
        let orders = self.orders.as_mut().expect("asked with orders only");
        let Some(found) = orders.get(order) else { return Err(unknown(order)) };
        if found.locate != locate {
            return Err(other_code(order, found.locate, locate));
        }
        if shares > found.left {
            return Err(too_many(order, found.left, shares));
        }
        found.left -= shares;
        if executed {
            // No more than the order had, so it fits.
            found.done += shares;
        }
        let taken = ReducedOrder { order: *found };
        if taken.order.left == 0 {
            orders.remove(order);
        }
        Ok(taken)
    }

    /// An order goes.
    #[inline]
    pub(super) fn remove_order(&mut self, locate: u16, order: u64) -> Result<ItchOrderState, MessageRefusal> {
        let orders = self.orders.as_mut().expect("asked with orders only");
        match orders.get(order) {
            None => Err(unknown(order)),
            Some(found) if found.locate != locate => Err(other_code(order, found.locate, locate)),
            Some(_) => Ok(orders.remove(order).expect("just found")),
        }
    }

    /// An order goes and another comes in its place; gives both.
    #[inline]
    pub(super) fn replace_order(
        &mut self,
        locate: u16,
        replace: OrderReplace<'_>,
    ) -> Result<(ItchOrderState, ItchOrderState), MessageRefusal> {
        let (old, new) = (replace.order(), replace.new_order());
        let orders = self.orders.as_mut().expect("asked with orders only");
        if new != old && orders.get(new).is_some() {
            return Err(no_room(OrderInsertRefusal::Duplicate, new, orders));
        }
        let gone = self.remove_order(locate, old)?;
        let order =
            ItchOrderState { order: new, px: replace.price(), left: replace.shares(), done: 0, ..gone };
        let orders = self.orders.as_mut().expect("as above");
        if let Err(no) = orders.insert(order) {
            let refused = no_room(no, new, orders);
            // As if nothing had been said: the place that it left is still free.
            orders.insert(gone).map_err(|no| no_room(no, old, orders))?;
            return Err(refused);
        }
        Ok((gone, order))
    }
}

#[cold]
fn unknown(order: u64) -> MessageRefusal {
    MessageRefusal { code: "unknown_order", detail: format!("no order {order} lives") }
}

#[cold]
fn other_symbol(locate: u16, other: &[u8; 8]) -> MessageRefusal {
    let other = other.trim_ascii_end().escape_ascii();
    MessageRefusal {
        code: "bad_locate",
        detail: format!("locate code {locate} names {other} in this source"),
    }
}

#[cold]
fn other_code(order: u64, its: u16, locate: u16) -> MessageRefusal {
    MessageRefusal {
        code: "bad_locate",
        detail: format!("order {order} is of locate code {its}, not {locate}"),
    }
}

#[cold]
fn too_many(order: u64, left: u32, shares: u32) -> MessageRefusal {
    MessageRefusal {
        code: "bad_quantity",
        detail: format!("{shares} shares of order {order}, which has {left}"),
    }
}

#[cold]
fn no_room(no: OrderInsertRefusal, order: u64, orders: &ItchOrderTable) -> MessageRefusal {
    match no {
        OrderInsertRefusal::Duplicate => {
            MessageRefusal { code: "duplicate_id", detail: format!("an order {order} lives already") }
        }
        OrderInsertRefusal::Full => MessageRefusal {
            code: "orders_full",
            detail: format!("no room for order {order} beside {} others", orders.len()),
        },
    }
}
