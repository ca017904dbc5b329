//! The displayed orders of DEEP+ that live, by symbol and id.

use crate::mapping::MessageRefusal;
use std::collections::HashMap;
use unitape_codec::iex::symbol_name;

/// An order that lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IexOrder {
    /// `8` buy, `5` sell.
    pub side: u8,
    /// In 1/10,000.
    pub price: i64,
    /// Shares that are left.
    pub left: u32,
    /// Shares that were executed.
    pub done: u64,
}

/// The symbol and the id of an order. The specification does not say that ids of different symbols differ.
#[derive(Clone, Copy, Debug)]
pub(super) struct IexOrderKey<'m> {
    pub symbol: &'m [u8; 8],
    pub order: u64,
}

/// All orders of a channel. No more than [`ORDERS_MAX`] live at a time.
#[derive(Debug, Default)]
pub(super) struct IexOrderTable {
    /// Nothing depends on the order in which the maps are walked.
    by_symbol: HashMap<[u8; 8], HashMap<u64, IexOrder>>,
    count: usize,
}

/// Orders that may live at a time.
const ORDERS_MAX: usize = 1 << 24;

impl IexOrderTable {
    /// An order arrives.
    pub fn add(&mut self, key: IexOrderKey<'_>, order: IexOrder) -> Result<(), MessageRefusal> {
        if self.count >= ORDERS_MAX {
            let detail = format!("no room for order {} beside {} others", key.order, self.count);
            return Err(MessageRefusal { code: "orders_full", detail });
        }
        let orders = self.by_symbol.entry(*key.symbol).or_default();
        if orders.contains_key(&key.order) {
            let detail = format!("an order {} lives already", key.order);
            return Err(MessageRefusal { code: "duplicate_id", detail });
        }
        orders.insert(key.order, order);
        self.count += 1;
        Ok(())
    }

    /// An order has another price and another number of shares; returns the order as it was.
    pub fn modify(
        &mut self,
        key: IexOrderKey<'_>,
        change: impl FnOnce(&mut IexOrder),
    ) -> Result<IexOrder, MessageRefusal> {
        let order = self.find(key)?;
        let before = *order;
        change(order);
        Ok(before)
    }

    /// Shares of an order are executed; returns the order as it is now, also when nothing is left.
    pub fn execute(&mut self, key: IexOrderKey<'_>, shares: u32) -> Result<IexOrder, MessageRefusal> {
        let order = self.find(key)?;
        if shares > order.left {
            let detail = format!("{shares} shares of order {}, which has {}", key.order, order.left);
            return Err(MessageRefusal { code: "bad_quantity", detail });
        }
        order.left -= shares;
        order.done += u64::from(shares);
        let after = *order;
        if after.left == 0 {
            self.remove(key)?;
        }
        Ok(after)
    }

    /// An order goes; returns it.
    pub fn remove(&mut self, key: IexOrderKey<'_>) -> Result<IexOrder, MessageRefusal> {
        let removed = self.by_symbol.get_mut(key.symbol).and_then(|orders| orders.remove(&key.order));
        let order = removed.ok_or_else(|| unknown(key))?;
        self.count -= 1;
        Ok(order)
    }

    /// All orders of a symbol go; returns how many.
    pub fn clear(&mut self, symbol: &[u8; 8]) -> usize {
        let orders = self.by_symbol.remove(symbol).map_or(0, |orders| orders.len());
        self.count -= orders;
        orders
    }

    fn find(&mut self, key: IexOrderKey<'_>) -> Result<&mut IexOrder, MessageRefusal> {
        let orders = self.by_symbol.get_mut(key.symbol);
        orders.and_then(|orders| orders.get_mut(&key.order)).ok_or_else(|| unknown(key))
    }
}

#[cold]
fn unknown(key: IexOrderKey<'_>) -> MessageRefusal {
    let symbol = symbol_name(key.symbol).escape_ascii();
    let detail = format!("no order {} of {symbol} lives", key.order);
    MessageRefusal { code: "unknown_order", detail }
}
