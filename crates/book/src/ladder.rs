//! One side of a book: its prices in order, the best at the end.
//!
//! ```text
//!   keys  [ 98 │ 99 │ 100 ]     what orders them: the greater, the better
//!   vals  [  · │  · │  ·  ]     the level at that key
//!                      ▲ the touch: activity is near it, so little moves and the first looks find it
//! ```
//!
//! Keys lie by themselves, eight to a cache line.

use crate::state::State;

/// Prices in order, with something at each.
#[derive(Clone, Debug)]
pub(crate) struct PriceLadder<T> {
    keys: Vec<i64>,
    vals: Vec<T>,
}

/// Looks from the touch before a binary search.
const NEAR: usize = 8;

impl<T: Copy> PriceLadder<T> {
    pub const fn new() -> Self {
        Self { keys: Vec::new(), vals: Vec::new() }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// The best.
    #[inline]
    pub fn last(&self) -> Option<T> {
        self.vals.last().copied()
    }

    /// The key of the best.
    #[inline]
    pub fn best_key(&self) -> Option<i64> {
        self.keys.last().copied()
    }

    /// The place of `key`, or the place for it.
    #[inline]
    pub fn find(&self, key: i64) -> Result<usize, usize> {
        let mut at = self.keys.len();
        let near = at.saturating_sub(NEAR);
        while at > near {
            let k = self.keys[at - 1];
            if k <= key {
                return if k == key { Ok(at - 1) } else { Err(at) };
            }
            at -= 1;
        }
        self.keys[..at].binary_search(&key)
    }

    pub fn insert(&mut self, at: usize, key: i64, val: T) {
        self.keys.insert(at, key);
        self.vals.insert(at, val);
    }

    pub fn remove(&mut self, at: usize) -> T {
        self.keys.remove(at);
        self.vals.remove(at)
    }

    #[inline]
    pub fn val(&self, at: usize) -> T {
        self.vals[at]
    }

    /// Whether the keys rise.
    pub fn is_sorted(&self) -> bool {
        self.keys.is_sorted_by(|a, b| a < b)
    }

    /// Keys with their values, the worst first.
    pub fn entries(&self) -> impl Iterator<Item = (i64, T)> {
        self.keys.iter().copied().zip(self.vals.iter().copied())
    }

    /// From the best on.
    pub fn iter(&self) -> impl Iterator<Item = T> {
        self.vals.iter().rev().copied()
    }
}

impl<T: State> State for PriceLadder<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.keys.put(out);
        self.vals.put(out);
    }

    fn get(input: &mut &[u8]) -> Option<Self> {
        let (keys, vals) = (Vec::get(input)?, Vec::get(input)?);
        (keys.len() == vals.len()).then_some(Self { keys, vals })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Where the looks from the touch end and the search begins, an edge was easily off by one.
        #[test]
        fn agrees_with_a_map(ops in proptest::collection::vec((0i64..24, any::<bool>()), 0..200)) {
            let (mut ladder, mut twin) = (PriceLadder::new(), BTreeMap::new());
            for (n, (key, put)) in ops.into_iter().enumerate() {
                match (ladder.find(key), put) {
                    (Err(at), true) => {
                        ladder.insert(at, key, n);
                        prop_assert_eq!(twin.insert(key, n), None);
                    }
                    (Ok(at), false) => prop_assert_eq!(Some(ladder.remove(at)), twin.remove(&key)),
                    (Ok(at), true) => prop_assert_eq!(Some(&ladder.val(at)), twin.get(&key)),
                    (Err(_), false) => prop_assert_eq!(twin.get(&key), None),
                }
                prop_assert!(ladder.iter().eq(twin.values().rev().copied()));
                prop_assert_eq!(ladder.best_key(), twin.keys().next_back().copied());
                prop_assert_eq!((ladder.len(), ladder.last()), (twin.len(), twin.values().next_back().copied()));
            }
        }
    }
}
