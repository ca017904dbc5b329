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
    /// Adds an order. The locate code must name its symbol.
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

    /// Checks that the code names this symbol, or no symbol yet.
    #[inline]
    pub(super) fn check_stock(&mut self, locate: u16, symbol: &[u8; 8]) -> Result<(), MessageRefusal> {
        if self.orders.is_some()
            && let Some(bound_symbol) = self.stocks.symbol(locate)
            && bound_symbol != *symbol
        {
            return Err(other_symbol(locate, &bound_symbol));
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
        let Some(order_state) = orders.get(order) else { return Err(unknown_order(order)) };
        if order_state.locate != locate {
            return Err(other_code(order, order_state.locate, locate));
        }
        if shares > order_state.left {
            return Err(too_many(order, order_state.left, shares));
        }
        order_state.left -= shares;
        if executed {
            // No more than the order had, so it fits.
            order_state.done += shares;
        }
        let reduced_order = ReducedOrder { order: *order_state };
        if reduced_order.order.left == 0 {
            orders.remove(order);
        }
        Ok(reduced_order)
    }

    /// Removes an order and returns it.
    #[inline]
    pub(super) fn remove_order(&mut self, locate: u16, order: u64) -> Result<ItchOrderState, MessageRefusal> {
        let orders = self.orders.as_mut().expect("asked with orders only");
        match orders.get(order) {
            None => Err(unknown_order(order)),
            Some(order_state) if order_state.locate != locate => {
                Err(other_code(order, order_state.locate, locate))
            }
            Some(_) => Ok(orders.remove(order).expect("just found")),
        }
    }

    /// Replaces an order by another; returns both.
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
        let old_order = self.remove_order(locate, old)?;
        let order =
            ItchOrderState { order: new, px: replace.price(), left: replace.shares(), done: 0, ..old_order };
        let orders = self.orders.as_mut().expect("as above");
        if let Err(no) = orders.insert(order) {
            let refused = no_room(no, new, orders);
            // As if nothing had been said: the place that it left is still free.
            orders.insert(old_order).map_err(|no| no_room(no, old, orders))?;
            return Err(refused);
        }
        Ok((old_order, order))
    }
}

#[cold]
fn unknown_order(order: u64) -> MessageRefusal {
    MessageRefusal { code: "unknown_order", detail: format!("no order {order} lives") }
}

#[cold]
fn other_symbol(locate: u16, symbol: &[u8; 8]) -> MessageRefusal {
    let symbol_text = symbol.trim_ascii_end().escape_ascii();
    MessageRefusal {
        code: "bad_locate",
        detail: format!("locate code {locate} names {symbol_text} in this source"),
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
