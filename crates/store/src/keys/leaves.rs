//! Keys of days, and the leaf keys that chunks are sealed with.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rustc_hash::FxHashMap;
use unitape_model::{FieldClass, InstrumentId};

use crate::day::Day;
use crate::error::{Error, Result};
use crate::keys::cipher::{Cipher, SecretKey};
use crate::keys::{Randomness, StoreKeys};
use crate::schema::TickSchema;

/// Sealed keys of days, as the manifest holds them.
pub(crate) type DayKeys = BTreeMap<Day, Vec<u8>>;

/// The chunks that a single key seals: the chunks of a class in the blocks of an instrument, schema and day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Leaf {
    pub day: Day,
    pub schema: TickSchema,
    pub instrument: InstrumentId,
    pub class: FieldClass,
}

/// Provides the key of a leaf.
pub(crate) trait KeyOfLeaf {
    /// Returns the key.
    ///
    /// # Errors
    /// Fails if the leaf has no key.
    fn key_of(&mut self, leaf: Leaf) -> Result<&Cipher>;
}

/// Derives leaf keys, and keeps the latest ones: each costs a microsecond.
#[derive(Debug)]
pub(crate) struct LeafKeys<'a> {
    keys: &'a StoreKeys,
    days: BTreeMap<Day, SecretKey>,
    cipher_by_leaf: FxHashMap<Leaf, Cipher>,
}

/// Leaf keys that are kept; then all are derived again.
const LEAVES_MAX: usize = 4096;

impl<'a> LeafKeys<'a> {
    pub fn new(keys: &'a StoreKeys) -> Self {
        Self { keys, days: BTreeMap::new(), cipher_by_leaf: FxHashMap::default() }
    }

    /// Opens the key of a leaf. `wrapped` must hold the key of its day.
    pub fn open(&mut self, leaf: Leaf, wrapped: &DayKeys) -> Result<&Cipher> {
        self.open_day(leaf.day, wrapped)?;
        Ok(self.leaf_cipher(leaf))
    }

    /// Returns the key of a leaf as bytes, for a reader who may have it.
    pub fn secret(&mut self, leaf: Leaf, wrapped: &DayKeys) -> Result<SecretKey> {
        self.open_day(leaf.day, wrapped)?;
        Ok(self.derive_leaf(leaf))
    }

    fn open_day(&mut self, day: Day, wrapped: &DayKeys) -> Result<()> {
        if !self.days.contains_key(&day) {
            let key = wrapped.get(&day).and_then(|key| self.keys.unwrap_key(day, key));
            self.days.insert(day, key.ok_or(Error::NoDayKey(day))?);
        }
        Ok(())
    }

    /// Opens the key of a leaf. If the day has no key, draws one and adds it to `wrapped`.
    pub fn open_or_draw(
        &mut self,
        leaf: Leaf,
        wrapped: &mut DayKeys,
        random: &dyn Randomness,
    ) -> Result<&Cipher> {
        if let Entry::Vacant(vacancy) = wrapped.entry(leaf.day) {
            let key = SecretKey::random(random)?;
            vacancy.insert(self.keys.wrap_key(leaf.day, &key, random)?);
            self.days.insert(leaf.day, key);
        }
        self.open(leaf, wrapped)
    }

    fn leaf_cipher(&mut self, leaf: Leaf) -> &Cipher {
        if self.cipher_by_leaf.len() >= LEAVES_MAX && !self.cipher_by_leaf.contains_key(&leaf) {
            self.cipher_by_leaf.clear();
        }
        if !self.cipher_by_leaf.contains_key(&leaf) {
            let cipher = self.derive_leaf(leaf).cipher();
            self.cipher_by_leaf.insert(leaf, cipher);
        }
        &self.cipher_by_leaf[&leaf]
    }

    fn derive_leaf(&self, leaf: Leaf) -> SecretKey {
        let class_bytes = [leaf.schema as u8, leaf.class as u8];
        let token = leaf.instrument.0.to_le_bytes();
        self.days[&leaf.day].derive(&self.keys.store.0, &[b"unitape store 1 leaf ", &class_bytes, &token])
    }
}
