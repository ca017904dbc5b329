//! A small seeded generator, ours so that a seed means the same bytes on every machine and in every version.

/// xoshiro256++ (Blackman and Vigna), its state filled from the seed by SplitMix64.
#[derive(Debug, Clone)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// Makes the generator of `seed`. Every seed is valid, zero too.
    pub fn new(seed: u64) -> Rng {
        let mut z = seed;
        let state = std::array::from_fn(|_| {
            z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mix(z)
        });
        Rng { state }
    }

    /// Returns the next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let result = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let t = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= t;
        *d = d.rotate_left(45);
        result
    }

    /// Draws a number in `0..bound`; `bound` must not be zero. The bias of the multiply-shift is below 2⁻³² for the
    /// small bounds used here. It is the same on every run, as the simulation requires.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a number below zero was asked for");
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// Draws a number in `low..=high`.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        assert!(low <= high, "empty range {low}..={high}");
        low + self.below((high - low) as u64 + 1) as i64
    }

    /// Returns true with probability 1 in `n`.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// Draws 0, 1, 2, …, at most 32, each with half the probability of the previous number.
    pub fn halving(&mut self) -> i64 {
        i64::from((self.bits() as u32).trailing_zeros())
    }

    /// Picks one element of a slice that is not empty.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// Puts a slice in random order.
    pub fn shuffle<T>(&mut self, elements: &mut [T]) {
        for end in (1..elements.len()).rev() {
            elements.swap(end, self.below(end as u64 + 1) as usize);
        }
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change of the generator would silently change every seeded flow, and with it every frozen input.
    #[test]
    fn seed_means_the_same_forever() {
        // SplitMix64 of seed 0 is published with the generator; the first output of ours follows from it.
        assert_eq!(mix(0x9e37_79b9_7f4a_7c15), 0xe220_a839_7b1d_cdaf);
        let state =
            [0xe220_a839_7b1d_cdafu64, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f, 0xf88b_b8a8_724c_81ec];
        assert_eq!(Rng::new(0).state, state);
        let first = state[0].wrapping_add(state[3]).rotate_left(23).wrapping_add(state[0]);
        assert_eq!(Rng::new(0).bits(), first);
    }

    /// An off-by-one would leave a bound unused or, worse, pass it.
    #[test]
    fn ranges_are_met_and_kept() {
        let mut rng = Rng::new(7);
        let mut is_drawn = [false; 5];
        for _ in 0..1000 {
            is_drawn[(rng.between(-2, 2) + 2) as usize] = true;
            assert!(rng.halving() <= 32);
        }
        assert_eq!(is_drawn, [true; 5]);
    }

    /// A shuffle that loses an element would leave an instrument without buyers.
    #[test]
    fn shuffle_keeps_every_element() {
        let mut all: Vec<u32> = (0..40).collect();
        Rng::new(3).shuffle(&mut all);
        assert_ne!(all, (0..40).collect::<Vec<_>>());
        all.sort_unstable();
        assert_eq!(all, (0..40).collect::<Vec<_>>());
    }
}
