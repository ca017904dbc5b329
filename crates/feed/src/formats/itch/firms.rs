//! Ids of market participants by their four letters, so that a name is looked up once.

use unitape_model::{Dictionary, NameKind};

/// The participants seen last, each at the one place that its letters may have.
#[derive(Debug)]
pub(super) struct FirmCache {
    slots: Box<[FirmSlot; SLOTS]>,
    /// Firms that the dictionary had when it was last looked at; ids are those of one tape.
    names: u32,
}

/// Letters and id; an id of 0 is none.
type FirmSlot = ([u8; 4], u32);

const SLOTS: usize = 1024;

impl Default for FirmCache {
    fn default() -> Self {
        Self { slots: Box::new([([0; 4], 0); SLOTS]), names: 0 }
    }
}

impl FirmCache {
    /// Ids hold for one dictionary and its later states.
    pub fn match_dictionary(&mut self, known: &Dictionary) {
        let names = known.len(NameKind::Firm);
        if names < self.names {
            self.forget_ids();
        }
        self.names = names;
    }

    /// All ids have to be looked up again.
    pub fn forget_ids(&mut self) {
        self.slots.fill(([0; 4], 0));
    }

    /// The id of these letters, 0 for no letters at all; none when it has to be looked up.
    #[inline]
    pub fn id(&self, letters: &[u8; 4]) -> Option<u32> {
        let (its, id) = self.slots[place(letters)];
        (its == *letters && (id != 0 || *letters == [0; 4])).then_some(id)
    }

    /// Looks the id up, if the name has one.
    pub fn look_up(&mut self, letters: &[u8; 4], known: &Dictionary) {
        let name = letters.trim_ascii_end();
        if *letters != [0; 4]
            && !name.is_empty()
            && let Some(id) = known.get(NameKind::Firm, name)
        {
            self.slots[place(letters)] = (*letters, id);
        }
    }
}

/// The place of these letters; the first place is for none.
#[inline]
fn place(letters: &[u8; 4]) -> usize {
    let n = u32::from_le_bytes(*letters);
    match n {
        0 => 0,
        n => 1 + (n.wrapping_mul(0x9e37_79b1) >> 8) as usize % (SLOTS - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An id of another firm on an order would accuse the wrong one.
    #[test]
    fn each_has_its_own_id_or_none() {
        let (mut firms, mut known) = (FirmCache::default(), Dictionary::default());
        let name = |n: u32| [b'A' + (n / 676) as u8, b'A' + (n / 26 % 26) as u8, b'A' + (n % 26) as u8, b' '];
        for n in 0..3_000 {
            let letters = name(n);
            assert_eq!(firms.id(&letters), None);
            known.intern(NameKind::Firm, letters.trim_ascii_end()).unwrap();
            firms.look_up(&letters, &known);
            assert_eq!(firms.id(&letters), known.get(NameKind::Firm, letters.trim_ascii_end()));
        }
        let right = |n: u32| {
            let letters = name(n);
            firms
                .id(&letters)
                .is_none_or(|id| Some(id) == known.get(NameKind::Firm, letters.trim_ascii_end()))
        };
        assert!((0..3_000).all(right));
        firms.look_up(b"    ", &known);
        assert_eq!((firms.id(&[0; 4]), firms.id(b"    ")), (Some(0), None));
        firms.match_dictionary(&known);
        firms.match_dictionary(&Dictionary::default());
        assert!((0..3_000).all(|n| firms.id(&name(n)).is_none()));
    }
}
