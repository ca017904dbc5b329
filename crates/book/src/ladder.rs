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
    rungs: Vec<T>,
}

/// Looks from the touch before a binary search.
const NEAR: usize = 8;

impl<T: Copy> PriceLadder<T> {
    pub const fn new() -> Self {
        Self { keys: Vec::new(), rungs: Vec::new() }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the best value.
    #[inline]
    pub fn last(&self) -> Option<T> {
        self.rungs.last().copied()
    }

    /// Returns the key of the best value.
    #[inline]
    pub fn best_key(&self) -> Option<i64> {
        self.keys.last().copied()
    }

    /// Finds the index of `key`, or the index at which to insert it.
    #[inline]
    pub fn find(&self, key: i64) -> Result<usize, usize> {
        let mut index = self.keys.len();
        let near = index.saturating_sub(NEAR);
        while index > near {
            let k = self.keys[index - 1];
            if k <= key {
                return if k == key { Ok(index - 1) } else { Err(index) };
            }
            index -= 1;
        }
        self.keys[..index].binary_search(&key)
    }

    pub fn insert(&mut self, index: usize, key: i64, val: T) {
        self.keys.insert(index, key);
        self.rungs.insert(index, val);
    }

    pub fn remove(&mut self, index: usize) -> T {
        self.keys.remove(index);
        self.rungs.remove(index)
    }

    #[inline]
    pub fn val(&self, index: usize) -> T {
        self.rungs[index]
    }

    /// Returns whether the keys rise.
    pub fn is_sorted(&self) -> bool {
        self.keys.is_sorted_by(|a, b| a < b)
    }

    /// Keys with their values, the worst first.
    pub fn entries(&self) -> impl Iterator<Item = (i64, T)> {
        self.keys.iter().copied().zip(self.rungs.iter().copied())
    }

    /// Returns the values, best first.
    pub fn iter(&self) -> impl Iterator<Item = T> {
        self.rungs.iter().rev().copied()
    }
}

impl<T: State> State for PriceLadder<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.keys.encode(out);
        self.rungs.encode(out);
    }

    fn decode(input: &mut &[u8]) -> Option<Self> {
        let (keys, vals) = (Vec::decode(input)?, Vec::decode(input)?);
        (keys.len() == vals.len()).then_some(Self { keys, rungs: vals })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Fails if a bound is off by one between the linear look at the touch and the search.
        #[test]
        fn agrees_with_a_map(ops in proptest::collection::vec((0i64..24, any::<bool>()), 0..200)) {
            let (mut ladder, mut twin) = (PriceLadder::new(), BTreeMap::new());
            for (n, (key, is_insert)) in ops.into_iter().enumerate() {
                match (ladder.find(key), is_insert) {
                    (Err(index), true) => {
                        ladder.insert(index, key, n);
                        prop_assert_eq!(twin.insert(key, n), None);
                    }
                    (Ok(index), false) => prop_assert_eq!(Some(ladder.remove(index)), twin.remove(&key)),
                    (Ok(index), true) => prop_assert_eq!(Some(&ladder.val(index)), twin.get(&key)),
                    (Err(_), false) => prop_assert_eq!(twin.get(&key), None),
                }
                prop_assert!(ladder.iter().eq(twin.values().rev().copied()));
                prop_assert_eq!(ladder.best_key(), twin.keys().next_back().copied());
                prop_assert_eq!((ladder.len(), ladder.last()), (twin.len(), twin.values().next_back().copied()));
            }
        }
    }
}
