//! Ids of market participants by their four letters, so that a name is looked up once.

use unitape_model::{Dictionary, NameKind};

/// The participants seen last, each at the one place that its letters may have.
#[derive(Debug)]
pub(super) struct FirmCache {
    firm_slots: Box<[FirmSlot; SLOTS]>,
    /// The number of firms in the dictionary at the last check; ids belong to one tape.
    firm_count: u32,
}

/// Letters and id; an id of 0 means no id.
type FirmSlot = ([u8; 4], u32);

const SLOTS: usize = 1024;

impl Default for FirmCache {
    fn default() -> Self {
        Self { firm_slots: Box::new([([0; 4], 0); SLOTS]), firm_count: 0 }
    }
}

impl FirmCache {
    /// Forgets the ids if `dictionary` is not a later state of the last dictionary.
    pub fn match_dictionary(&mut self, dictionary: &Dictionary) {
        let firm_count = dictionary.len(NameKind::Firm);
        if firm_count < self.firm_count {
            self.forget_ids();
        }
        self.firm_count = firm_count;
    }

    /// Forgets all ids, so that each must be looked up again.
    pub fn forget_ids(&mut self) {
        self.firm_slots.fill(([0; 4], 0));
    }

    /// Returns the cached id of these letters; 0 for an empty name. Returns `None` if the id must be looked up.
    #[inline]
    pub fn id(&self, letters: &[u8; 4]) -> Option<u32> {
        let (its, id) = self.firm_slots[slot_index(letters)];
        (its == *letters && (id != 0 || *letters == [0; 4])).then_some(id)
    }

    /// Looks the id up, if the name has one.
    pub fn resolve_id(&mut self, letters: &[u8; 4], dictionary: &Dictionary) {
        let name = letters.trim_ascii_end();
        if *letters != [0; 4]
            && !name.is_empty()
            && let Some(id) = dictionary.get(NameKind::Firm, name)
        {
            self.firm_slots[slot_index(letters)] = (*letters, id);
        }
    }
}

/// Returns the slot of these letters; the first slot is for an empty name.
#[inline]
fn slot_index(letters: &[u8; 4]) -> usize {
    let n = u32::from_le_bytes(*letters);
    match n {
        0 => 0,
        n => 1 + (n.wrapping_mul(0x9e37_79b1) >> 8) as usize % (SLOTS - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards against another firm's id on an order, which would accuse the wrong firm.
    #[test]
    fn each_has_its_own_id_or_none() {
        let (mut firms, mut dictionary) = (FirmCache::default(), Dictionary::default());
        let name = |n: u32| [b'A' + (n / 676) as u8, b'A' + (n / 26 % 26) as u8, b'A' + (n % 26) as u8, b' '];
        for n in 0..3_000 {
            let letters = name(n);
            assert_eq!(firms.id(&letters), None);
            dictionary.intern(NameKind::Firm, letters.trim_ascii_end()).unwrap();
            firms.resolve_id(&letters, &dictionary);
            assert_eq!(firms.id(&letters), dictionary.get(NameKind::Firm, letters.trim_ascii_end()));
        }
        let right = |n: u32| {
            let letters = name(n);
            firms
                .id(&letters)
                .is_none_or(|id| Some(id) == dictionary.get(NameKind::Firm, letters.trim_ascii_end()))
        };
        assert!((0..3_000).all(right));
        firms.resolve_id(b"    ", &dictionary);
        assert_eq!((firms.id(&[0; 4]), firms.id(b"    ")), (Some(0), None));
        firms.match_dictionary(&dictionary);
        firms.match_dictionary(&Dictionary::default());
        assert!((0..3_000).all(|n| firms.id(&name(n)).is_none()));
    }
}
