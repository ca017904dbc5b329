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
    pub remaining_shares: u32,
    /// Shares that were executed.
    pub executed_shares: u64,
}

/// The symbol and the id of an order. The specification does not say that ids of different symbols differ.
#[derive(Clone, Copy, Debug)]
pub(super) struct IexOrderKey<'m> {
    pub symbol: &'m [u8; 8],
    pub order: u64,
}

/// All orders of a channel.
///
/// Symbols and ids come from outside. An order beyond [`ORDERS_MAX`] is refused as `orders_full`, and the quarantine
/// counts it. A symbol without orders takes no memory, so the bound limits the symbols too.
#[derive(Debug)]
pub(super) struct IexOrderTable {
    /// No map in it is empty. Nothing depends on the order in which the maps are walked.
    by_symbol: HashMap<[u8; 8], HashMap<u64, IexOrder>>,
    count: usize,
    orders_max: usize,
}

/// Orders that may live at a time.
const ORDERS_MAX: usize = 1 << 24;

impl Default for IexOrderTable {
    fn default() -> Self {
        Self { by_symbol: HashMap::default(), count: 0, orders_max: ORDERS_MAX }
    }
}

impl IexOrderTable {
    /// Adds an order. Fails if the table is full or has the order already.
    pub fn add_order(&mut self, key: IexOrderKey<'_>, order: IexOrder) -> Result<(), MessageRefusal> {
        if self.count >= self.orders_max {
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

    /// Changes an order and returns its state before the change. Fails if the order is unknown.
    pub fn modify_order(
        &mut self,
        key: IexOrderKey<'_>,
        change: impl FnOnce(&mut IexOrder),
    ) -> Result<IexOrder, MessageRefusal> {
        let order = self.find_order(key)?;
        let order_before = *order;
        change(order);
        Ok(order_before)
    }

    /// Shares of an order are executed; returns the order as it is now, also when nothing is left.
    pub fn execute_order(&mut self, key: IexOrderKey<'_>, shares: u32) -> Result<IexOrder, MessageRefusal> {
        let order = self.find_order(key)?;
        if shares > order.remaining_shares {
            let detail =
                format!("{shares} shares of order {}, which has {}", key.order, order.remaining_shares);
            return Err(MessageRefusal { code: "bad_quantity", detail });
        }
        order.remaining_shares -= shares;
        order.executed_shares += u64::from(shares);
        let after = *order;
        if after.remaining_shares == 0 {
            self.remove(key)?;
        }
        Ok(after)
    }

    /// Removes an order and returns it. Fails if the order is unknown.
    pub fn remove(&mut self, key: IexOrderKey<'_>) -> Result<IexOrder, MessageRefusal> {
        let orders = self.by_symbol.get_mut(key.symbol).ok_or_else(|| unknown_order(key))?;
        let order = orders.remove(&key.order).ok_or_else(|| unknown_order(key))?;
        self.count -= 1;
        if orders.is_empty() {
            self.by_symbol.remove(key.symbol);
        }
        Ok(order)
    }

    /// Removes all orders of a symbol and returns their number.
    pub fn clear(&mut self, symbol: &[u8; 8]) -> usize {
        let orders = self.by_symbol.remove(symbol).map_or(0, |orders| orders.len());
        self.count -= orders;
        orders
    }

    fn find_order(&mut self, key: IexOrderKey<'_>) -> Result<&mut IexOrder, MessageRefusal> {
        let orders = self.by_symbol.get_mut(key.symbol);
        orders.and_then(|orders| orders.get_mut(&key.order)).ok_or_else(|| unknown_order(key))
    }
}

#[cold]
fn unknown_order(key: IexOrderKey<'_>) -> MessageRefusal {
    let symbol = symbol_name(key.symbol).escape_ascii();
    let detail = format!("no order {} of {symbol} lives", key.order);
    MessageRefusal { code: "unknown_order", detail }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: IexOrder = IexOrder { side: b'8', price: 10_000, remaining_shares: 5, executed_shares: 0 };

    /// Guards against unbounded memory: a feed that names ever new symbols took memory for each, though none had a
    /// live order.
    #[test]
    fn a_symbol_without_orders_takes_no_memory() {
        let mut orders = IexOrderTable::default();
        for n in 0..3_000_u64 {
            let symbol = n.to_le_bytes();
            let key = |order| IexOrderKey { symbol: &symbol, order };
            orders.add_order(key(1), ORDER).unwrap();
            orders.add_order(key(2), ORDER).unwrap();
            assert_eq!(orders.execute_order(key(1), 5).unwrap().remaining_shares, 0);
            assert_eq!(orders.by_symbol.len(), 1);
            match n % 2 {
                0 => assert_eq!(orders.remove(key(2)).unwrap(), ORDER),
                _ => assert_eq!(orders.clear(&symbol), 1),
            }
            assert_eq!(orders.remove(key(2)).unwrap_err().code, "unknown_order");
            assert_eq!((orders.by_symbol.len(), orders.count), (0, 0));
        }
    }

    #[test]
    fn an_order_beyond_the_bound_is_refused() {
        let mut orders = IexOrderTable { orders_max: 2, ..IexOrderTable::default() };
        let symbols = [*b"A       ", *b"B       ", *b"C       "];
        let keys = symbols.each_ref().map(|symbol| IexOrderKey { symbol, order: 7 });
        orders.add_order(keys[0], ORDER).unwrap();
        orders.add_order(keys[1], ORDER).unwrap();
        let refusal = orders.add_order(keys[2], ORDER).unwrap_err();
        assert_eq!((refusal.code, &*refusal.detail), ("orders_full", "no room for order 7 beside 2 others"));
        assert_eq!(orders.by_symbol.len(), 2);
        orders.remove(keys[0]).unwrap();
        orders.add_order(keys[2], ORDER).unwrap();
    }
}
