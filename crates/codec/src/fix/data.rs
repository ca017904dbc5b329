//! Which fields are raw data: their value may hold separators, and a length field says how long
//! it is.

use std::sync::{Arc, LazyLock};

/// The pairs of length field and data field, for instance RawDataLength (95) and RawData (96).
#[derive(Clone)]
pub struct RawFieldTags {
    /// (length tag, data tag), sorted by length tag.
    pairs: Vec<(u32, u32)>,
    /// Data tags, sorted.
    data_tags: Vec<u32>,
    /// Bit t is set where t is a length tag below 65,536: one load answers for most fields.
    bits: Vec<u64>,
    /// Bit t is set where t is a length tag below 1,024; bit 1,024 + t mod 1,024 where t is another.
    folded: [u32; 64],
}

impl std::fmt::Debug for RawFieldTags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The bit table would fill pages and says the same.
        write!(f, "RawFieldTags({} pairs)", self.pairs.len())
    }
}

impl RawFieldTags {
    /// Returns the pairs of FIX 4.0 to 5.0 SP2 and FIXT 1.1.
    #[must_use]
    pub fn standard() -> Arc<Self> {
        static STANDARD: LazyLock<Arc<RawFieldTags>> =
            LazyLock::new(|| Arc::new(RawFieldTags::new(PAIRS.iter().copied())));
        Arc::clone(&STANDARD)
    }

    /// Makes a table of exactly these (length tag, data tag) pairs. If two pairs have the same length tag, the first
    /// pair counts.
    pub fn new(pairs: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut pairs: Vec<_> = pairs.into_iter().collect();
        pairs.sort_by_key(|&(length, _)| length);
        pairs.dedup_by_key(|&mut (length, _)| length);
        let mut data: Vec<_> = pairs.iter().map(|&(_, data)| data).collect();
        data.sort_unstable();
        let (mut bits, mut folded) = (vec![0; 1024], [0; 64]);
        for &(length, _) in &pairs {
            let bit_index = if length < 1024 { length } else { 1024 + length % 1024 };
            folded[bit_index as usize / 32] |= 1 << (bit_index % 32);
            if let Some(word) = bits.get_mut(length as usize / 64) {
                *word |= 1 << (length % 64);
            }
        }
        RawFieldTags { pairs, data_tags: data, bits, folded }
    }

    /// Makes a table of these pairs and the standard pairs. If both have the same length tag, the given pair counts.
    pub fn with_standard(pairs: impl IntoIterator<Item = (u32, u32)>) -> Self {
        Self::new(pairs.into_iter().chain(PAIRS.iter().copied()))
    }

    /// Looks up the tag of the data field that follows the length field `tag`.
    #[inline]
    #[must_use]
    pub fn data_of(&self, tag: u32) -> Option<u32> {
        let word = self.bits.get(tag as usize / 64).copied().unwrap_or(u64::MAX);
        if word >> (tag % 64) & 1 == 0 {
            return None;
        }
        let pair_index = self.pairs.binary_search_by_key(&tag, |&(length, _)| length).ok()?;
        Some(self.pairs[pair_index].1)
    }

    /// Returns a bit for each length tag below 1,024, then one for each other length tag, modulo 1,024. A set bit may
    /// thus also stand for a tag that is no length tag.
    #[inline]
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub(crate) fn folded(&self) -> &[u32; 64] {
        &self.folded
    }

    /// Returns whether `tag` is a data field.
    #[must_use]
    pub fn is_data(&self, tag: u32) -> bool {
        self.data_tags.binary_search(&tag).is_ok()
    }
}

/// Taken from the fields of type DATA and XMLDATA in FIX 4.2, 4.4, 5.0 SP2 and FIXT 1.1, and the
/// fields of type LENGTH that name them.
const PAIRS: &[(u32, u32)] = &[
    (90, 91),
    (93, 89),
    (95, 96),
    (212, 213),
    (348, 349),
    (350, 351),
    (352, 353),
    (354, 355),
    (356, 357),
    (358, 359),
    (360, 361),
    (362, 363),
    (364, 365),
    (445, 446),
    (618, 619),
    (621, 622),
    (1184, 1185),
    (1277, 1278),
    (1280, 1281),
    (1282, 1283),
    (1397, 1398),
    (1401, 1402),
    (1403, 1404),
    (1468, 1469),
    (1525, 1527),
    (1578, 1579),
    (1620, 1621),
    (1664, 1665),
    (1678, 1697),
    (1733, 1734),
    (1871, 1872),
    (1874, 1875),
    (2072, 2073),
    (2074, 2075),
    (2111, 2112),
    (2179, 2180),
    (2287, 2288),
    (2351, 2352),
    (2372, 2371),
    (2481, 2482),
    (2494, 2493),
    (2522, 2521),
    (2637, 2638),
    (2651, 2652),
    (2665, 2666),
    (2715, 2716),
    (2718, 2719),
    (2721, 2722),
    (2797, 2798),
    (2802, 2801),
    (2809, 2808),
    (2815, 2814),
    (40004, 40005),
    (40008, 40009),
    (40978, 40979),
    (40980, 40981),
    (40982, 40983),
    (40984, 40985),
    (40986, 40987),
    (40988, 40989),
    (41083, 41084),
    (41101, 41102),
    (41107, 41108),
    (41256, 41257),
    (41320, 41321),
    (41324, 41325),
    (41458, 41459),
    (41476, 41477),
    (41482, 41483),
    (41653, 41654),
    (41710, 41711),
    (41806, 41807),
    (41811, 41812),
    (41873, 41874),
    (41969, 41970),
    (42025, 42026),
    (42171, 42172),
    (42451, 42452),
    (42652, 42653),
    (42947, 42948),
    (43109, 42684),
    (43110, 42486),
    (43111, 42982),
];

#[cfg(test)]
mod tests {
    use super::*;

    // A length tag above the bit table must still be found, and its neighbours must not.
    #[test]
    fn pairs_inside_and_above_the_bit_table() {
        let tags = RawFieldTags::with_standard([(95, 9000), (70_000, 70_001)]);
        assert_eq!(tags.data_of(95), Some(9000));
        assert_eq!(tags.data_of(70_000), Some(70_001));
        assert_eq!(tags.data_of(70_001), None);
        assert_eq!(tags.data_of(96), None);
        assert_eq!(tags.data_of(43111), Some(42982));
        assert!(tags.is_data(9000) && tags.is_data(213) && !tags.is_data(95));
    }
}
