//! The orders that live, by their reference.
//!
//! ```text
//!  reference ──multiply──▶ slot │ 32 bytes │ 32 bytes │ …   open addressing: the next slots are looked at in turn,
//!                               └──────────┴──────────┘     and orders after a gap move up when one goes
//! ```
//!
//! Two orders are on a line of the processor, and a reference is found on the line it belongs to mostly. The table
//! doubles when it is five eighths full; nothing else allocates. References come from outside: a reference that
//! finds no slot within [`PROBES_MAX`] is refused, as one beyond [`ORDERS_MAX`] is; the quarantine counts them.

use super::prefetch::prefetch;

/// An order that lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(32))]
pub struct ItchOrderState {
    /// Its reference.
    pub order: u64,
    /// Price, 1/10,000.
    pub px: u32,
    /// Shares left.
    pub left: u32,
    /// Shares executed.
    pub done: u32,
    /// Market participant; zeros without one.
    pub firm: [u8; 4],
    /// The code of the security.
    pub locate: u16,
    /// 1 buy, 2 sell; 0 is an empty slot.
    pub side: u8,
}

const _: () = assert!(size_of::<ItchOrderState>() == 32);

/// The reason why an order was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderInsertRefusal {
    /// The order is already in the table.
    Duplicate,
    /// The table has its greatest size.
    Full,
}

/// The table.
#[derive(Clone, Debug)]
pub struct ItchOrderTable {
    /// A power of two.
    order_slots: Vec<ItchOrderState>,
    /// The shift that makes a slot of a product.
    shift: u32,
    live_orders: usize,
    /// A larger table could not hold the present orders; growing is not tried again.
    growth_failed: bool,
}

/// Orders that may live at the same time.
pub const ORDERS_MAX: usize = 1 << 24;

/// Slots that are looked at for a reference, at most. Without it a stream of chosen references could make every
/// look-up as long as the table.
const PROBES_MAX: usize = 512;

const SLOTS_MIN: usize = 1 << 12;

impl Default for ItchOrderTable {
    fn default() -> Self {
        Self::with_slots(SLOTS_MIN)
    }
}

impl ItchOrderTable {
    fn with_slots(slots: usize) -> Self {
        let shift = 64 - slots.trailing_zeros();
        Self {
            order_slots: vec![ItchOrderState::default(); slots],
            shift,
            live_orders: 0,
            growth_failed: false,
        }
    }

    /// Orders that live.
    pub fn len(&self) -> usize {
        self.live_orders
    }

    /// Forgets all orders, and keeps the memory up to a table of middle size.
    pub fn clear(&mut self) {
        match self.order_slots.len() > SLOTS_KEPT {
            true => *self = Self::default(),
            false => self.order_slots.fill(ItchOrderState::default()),
        }
        (self.live_orders, self.growth_failed) = (0, false);
    }

    /// Brings the line of this order near.
    #[inline]
    pub fn prefetch(&self, order: u64) {
        prefetch(&self.order_slots[self.home_slot(order)]);
    }

    /// Looks up an order by its reference number.
    #[inline]
    pub fn get(&mut self, order: u64) -> Option<&mut ItchOrderState> {
        let slot_index = self.find_slot(order)?;
        Some(&mut self.order_slots[slot_index])
    }

    /// Shows `change` the order with this reference, and removes it if no shares are left. Returns false if there is
    /// no such order, or if `change` refuses it; then `change` must not have touched it.
    #[inline]
    pub fn change_order(&mut self, order: u64, change: impl FnOnce(&mut ItchOrderState) -> bool) -> bool {
        let Some(slot_index) = self.find_slot(order) else { return false };
        if !change(&mut self.order_slots[slot_index]) {
            return false;
        }
        if self.order_slots[slot_index].left == 0 {
            self.remove_at(slot_index);
        }
        true
    }

    /// Takes an order in.
    ///
    /// # Errors
    /// Fails if the order is already in the table, or if the table is full.
    #[inline]
    pub fn insert(&mut self, order: ItchOrderState) -> Result<(), OrderInsertRefusal> {
        debug_assert!(order.side != 0);
        if self.live_orders >= self.order_slots.len() / 8 * 5 && !self.grow_table() {
            return Err(OrderInsertRefusal::Full);
        }
        let mask = self.order_slots.len() - 1;
        let home = self.home_slot(order.order);
        for step in 0..PROBES_MAX {
            let slot = &mut self.order_slots[(home + step) & mask];
            if slot.side == 0 {
                *slot = order;
                self.live_orders += 1;
                return Ok(());
            }
            if slot.order == order.order {
                return Err(OrderInsertRefusal::Duplicate);
            }
        }
        Err(OrderInsertRefusal::Full)
    }

    /// Takes an order out.
    #[inline]
    pub fn remove(&mut self, order: u64) -> Option<ItchOrderState> {
        let slot_index = self.find_slot(order)?;
        let removed_order = self.order_slots[slot_index];
        self.remove_at(slot_index);
        Some(removed_order)
    }

    #[inline]
    fn remove_at(&mut self, mut gap: usize) {
        let mask = self.order_slots.len() - 1;
        // The orders after it move up if they may: no order may be after a gap that comes after its home.
        let mut slot_index = gap;
        loop {
            slot_index = (slot_index + 1) & mask;
            let order = self.order_slots[slot_index];
            if order.side == 0 {
                break;
            }
            let (away, back) = (
                slot_index.wrapping_sub(self.home_slot(order.order)) & mask,
                slot_index.wrapping_sub(gap) & mask,
            );
            if away >= back {
                self.order_slots[gap] = order;
                gap = slot_index;
            }
        }
        self.order_slots[gap] = ItchOrderState::default();
        self.live_orders -= 1;
    }

    #[inline]
    fn home_slot(&self, order: u64) -> usize {
        // References rise in small steps; the golden ratio spreads them evenly.
        (order.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    #[inline]
    fn find_slot(&self, order: u64) -> Option<usize> {
        let mask = self.order_slots.len() - 1;
        let home = self.home_slot(order);
        for step in 0..PROBES_MAX {
            let slot_index = (home + step) & mask;
            let slot = &self.order_slots[slot_index];
            if slot.side == 0 {
                return None;
            }
            if slot.order == order {
                return Some(slot_index);
            }
        }
        None
    }

    /// Doubles the table; false, and it is as before, when it may not or an order finds no place in the new one.
    #[cold]
    fn grow_table(&mut self) -> bool {
        if self.live_orders >= ORDERS_MAX {
            return false;
        }
        if self.growth_failed {
            return self.live_orders < self.order_slots.len() / 8 * 7;
        }
        let mut grown = Self::with_slots(self.order_slots.len() * 2);
        for order in self.order_slots.iter().filter(|o| o.side != 0) {
            if grown.insert(*order).is_err() {
                // Chosen references: the table stays, and is full a little later.
                self.growth_failed = true;
                return self.live_orders < self.order_slots.len() / 8 * 7;
            }
        }
        *self = grown;
        true
    }
}

/// A table of more slots than this is given back when its source ends.
const SLOTS_KEPT: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn order(order: u64, left: u32) -> ItchOrderState {
        ItchOrderState { order, left, side: 1, ..ItchOrderState::default() }
    }

    /// Guards against an order that is not found after a gap: it would be unknown for the rest of the day.
    fn like_a_map(steps: &[(u8, u64)]) {
        let (mut orders, mut map) = (ItchOrderTable::default(), HashMap::new());
        for (n, (operation, reference)) in steps.iter().enumerate() {
            let new = order(*reference, n as u32);
            match operation % 3 {
                0 | 1 => {
                    let expected =
                        if map.contains_key(reference) { Err(OrderInsertRefusal::Duplicate) } else { Ok(()) };
                    assert_eq!(orders.insert(new), expected);
                    map.entry(*reference).or_insert(new);
                }
                _ => assert_eq!(orders.remove(*reference), map.remove(reference)),
            }
            assert_eq!(orders.len(), map.len());
        }
        for (_, reference) in steps {
            assert_eq!(orders.get(*reference).copied(), map.get(reference).copied());
        }
    }

    proptest! {
        #[test]
        fn random_orders(steps in prop::collection::vec((any::<u8>(), 0u64..60), 0..400)) {
            like_a_map(&steps);
        }

        /// Checks orders that share a home slot, also around the end of the table.
        #[test]
        fn orders_of_neighbouring_homes(steps in prop::collection::vec((any::<u8>(), 0u64..40), 0..300)) {
            let steps: Vec<_> = steps.iter().map(|(operation, n)| (*operation, CROWDED[*n as usize % CROWDED.len()])).collect();
            like_a_map(&steps);
        }
    }

    /// References whose homes are the last and first slots of the smallest table.
    const CROWDED: [u64; 12] = {
        let (mut references, mut n, mut reference) = ([0; 12], 0, 1u64);
        while n < 12 {
            let home = reference.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
            if home >= 4095 || home == 0 {
                references[n] = reference;
                n += 1;
            }
            reference += 1;
        }
        references
    };

    #[test]
    fn the_table_grows_and_keeps_all() {
        let mut orders = ItchOrderTable::default();
        for n in 0..100_000u64 {
            orders.insert(order(n * 3, n as u32)).unwrap();
        }
        assert_eq!(orders.len(), 100_000);
        assert!((0..100_000u64).all(|n| orders.get(n * 3).is_some_and(|o| o.left == n as u32)));
        orders.clear();
        assert!(orders.len() == 0 && orders.get(3).is_none());
    }

    /// Guards against chosen references that share a home slot: they must neither hang nor grow the table without
    /// bound.
    #[test]
    fn chosen_references_are_refused_at_last() {
        let inverse = {
            // The odd multiplier has an inverse modulo 2^64, by which references of any home are made.
            let (mut x, a) = (1u64, 0x9e37_79b9_7f4a_7c15u64);
            (0..6).for_each(|_| x = x.wrapping_mul(2u64.wrapping_sub(a.wrapping_mul(x))));
            x
        };
        let mut orders = ItchOrderTable::default();
        let mut insert_count = 0u64;
        for n in 1..20_000u64 {
            insert_count += u64::from(orders.insert(order(n.wrapping_mul(inverse), 1)).is_ok());
        }
        assert_eq!(insert_count, PROBES_MAX as u64);
        assert!(orders.order_slots.len() == SLOTS_MIN);
    }
}
