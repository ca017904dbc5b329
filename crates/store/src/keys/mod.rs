//! Keys of a store, from the master key down to the key of one chunk.
//!
//! ```text
//!  master key (a file of 64 hex digits) ─ seals ─▶ access key: random, drawn anew for each master key
//!    ├─ HKDF ─▶ manifest key      seals the manifest
//!    └─ HKDF ─▶ wrapping key      seals the random keys that the manifest holds
//!                 ├─ signing key     signs the manifest
//!                 ├─ names key       seals names ─ HKDF ─▶ key of the hashes by which names are found
//!                 ├─ index key       seals the indexes of the files and the headers of blocks
//!                 └─ day key, one a day ─ HKDF: store, schema, instrument, class ─▶ leaf key, seals chunks
//! ```
//!
//! Each sealed piece has a random nonce of its own and a *binding* ([`Binding`]): the bytes that say which piece it is. A piece
//! that is moved, swapped or taken from another store does not open.

mod binding;
pub(crate) mod cipher;
mod file;
mod leaves;

pub(crate) use binding::{Binding, Piece};
pub(crate) use cipher::{Cipher, Hasher, KeyedHash, SEAL_BYTES, SIGNATURE_BYTES, SecretKey, Signer};
pub use cipher::{PublicKey, Randomness, SystemRandomness};
pub use file::{KEY_FILE_VARIABLE, MasterKey};
pub(crate) use leaves::{DayKeys, KeyOfLeaf, Leaf, LeafKeys};

use std::fmt;
use std::sync::Arc;

use crate::day::Day;
use crate::error::{Error, Result};

/// The id of a store: 16 random bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct StoreId(pub [u8; 16]);

impl fmt::Debug for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreId({})", hex(&self.0))
    }
}

/// The keys that come from the access key of a store: random, drawn anew when the store gets another master key, and wrapped by
/// the master key.
pub(crate) struct AccessKeys {
    pub store: StoreId,
    /// Distinguishes a wrong key from damage. It is in the manifest unencrypted, and reveals nothing about the key.
    pub key_id: [u8; 16],
    /// The access key as the master key wraps it. It is in the manifest unencrypted.
    pub wrapped: Vec<u8>,
    pub manifest: Cipher,
    wrapping: Cipher,
}

impl fmt::Debug for AccessKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AccessKeys({})", hex(&self.store.0))
    }
}

impl AccessKeys {
    /// Returns the id of a master key for a store.
    pub fn key_id(master: &MasterKey, store: StoreId) -> [u8; 16] {
        derive(master.secret(), store, "key id").bytes()[..16].try_into().expect("sixteen of 32 bytes")
    }

    /// Draws an access key, and wraps it.
    pub fn draw(master: &MasterKey, store: StoreId, random: &dyn Randomness) -> Result<Self> {
        let (key, mut wrapped) = (SecretKey::random(random)?, Vec::new());
        let binding = Binding::new(Piece::AccessKey, store);
        derive(master.secret(), store, "access key").cipher().seal(
            random,
            binding.bytes(),
            key.bytes(),
            &mut wrapped,
        )?;
        Ok(Self::new(master, store, &key, wrapped))
    }

    /// Opens the access key of a store. `None` if it was changed after it was wrapped.
    pub fn open(master: &MasterKey, store: StoreId, wrapped: &[u8]) -> Option<Self> {
        let cipher = derive(master.secret(), store, "access key").cipher();
        let key = unwrap_with(&cipher, &Binding::new(Piece::AccessKey, store), wrapped)?;
        Some(Self::new(master, store, &key, wrapped.to_vec()))
    }

    fn new(master: &MasterKey, store: StoreId, key: &SecretKey, wrapped: Vec<u8>) -> Self {
        Self {
            store,
            key_id: Self::key_id(master, store),
            wrapped,
            manifest: derive(key, store, "manifest").cipher(),
            wrapping: derive(key, store, "wrapped keys").cipher(),
        }
    }

    /// Seals a key for the manifest.
    pub fn wrap(&self, binding: &Binding, key: &SecretKey, random: &dyn Randomness) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        self.wrapping.seal(random, binding.bytes(), key.bytes(), &mut out)?;
        Ok(out)
    }

    /// Opens a key of the manifest.
    pub fn unwrap(&self, binding: &Binding, wrapped: &[u8]) -> Option<SecretKey> {
        unwrap_with(&self.wrapping, binding, wrapped)
    }

    /// Opens the key that signs the manifests.
    pub fn signer(&self, wrapped: &[u8]) -> Option<Signer> {
        self.unwrap(&Binding::new(Piece::SigningKey, self.store), wrapped).map(|seed| Signer::new(&seed))
    }
}

/// Derives the key for a purpose.
fn derive(key: &SecretKey, store: StoreId, purpose: &str) -> SecretKey {
    key.derive(&store.0, &[b"unitape store 1 ", purpose.as_bytes()])
}

/// The random keys of a store beside those of its days, as the manifest has them: sealed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WrappedKeys {
    pub signing: Vec<u8>,
    pub names: Vec<u8>,
    pub index: Vec<u8>,
}

/// The keys of the dictionary.
#[derive(Debug)]
pub(crate) struct NamesKeys {
    pub cipher: Cipher,
    /// By which a name is found. It comes from another key than the one that seals.
    hash: KeyedHash,
}

impl NamesKeys {
    fn new(store: StoreId, key: &SecretKey) -> Self {
        Self { cipher: key.cipher(), hash: derive(key, store, "name hashes").keyed_hash() }
    }

    /// Returns the hash by which the record of a name is found.
    pub fn hash_of(&self, kind: u8, name: &[u8]) -> [u8; 16] {
        self.hash.hash(&[&[kind], name])
    }
}

/// The keys of a store.
#[derive(Debug)]
pub(crate) struct StoreKeys {
    pub store: StoreId,
    pub access: AccessKeys,
    pub names: Arc<NamesKeys>,
    pub index: Cipher,
}

impl StoreKeys {
    /// Draws the keys of a new store.
    pub fn draw(master: &MasterKey, store: StoreId, random: &dyn Randomness) -> Result<(Self, WrappedKeys)> {
        let access = AccessKeys::draw(master, store, random)?;
        let wrap = |piece| access.wrap(&Binding::new(piece, store), &SecretKey::random(random)?, random);
        let wrapped = WrappedKeys {
            signing: wrap(Piece::SigningKey)?,
            names: wrap(Piece::NamesKey)?,
            index: wrap(Piece::IndexKey)?,
        };
        let keys = Self::open(access, &wrapped).expect("they were just wrapped");
        Ok((keys, wrapped))
    }

    /// Opens the keys that the manifest has. `None` if one of them does not open.
    pub fn open(access: AccessKeys, wrapped: &WrappedKeys) -> Option<Self> {
        let store = access.store;
        let open = |piece, key| access.unwrap(&Binding::new(piece, store), key);
        let names = Arc::new(NamesKeys::new(store, &open(Piece::NamesKey, &wrapped.names)?));
        let index = open(Piece::IndexKey, &wrapped.index)?.cipher();
        Some(Self { store, access, names, index })
    }

    /// Seals the key of a day for the manifest.
    fn wrap_key(&self, day: Day, key: &SecretKey, random: &dyn Randomness) -> Result<Vec<u8>> {
        self.access.wrap(&Binding::new(Piece::DayKey, self.store).day(day), key, random)
    }

    /// Opens the key of a day.
    fn unwrap_key(&self, day: Day, wrapped: &[u8]) -> Option<SecretKey> {
        self.access.unwrap(&Binding::new(Piece::DayKey, self.store).day(day), wrapped)
    }

    /// Draws another access key, wrapped by `master`, and wraps all keys with it.
    ///
    /// # Errors
    /// Fails with the day whose key does not open, or if there are no random bytes.
    pub fn rewrap(
        &mut self,
        master: &MasterKey,
        wrapped: &mut WrappedKeys,
        days: &mut DayKeys,
        random: &dyn Randomness,
    ) -> Result<()> {
        let (store, old) = (self.store, &self.access);
        let new = AccessKeys::draw(master, store, random)?;
        for (piece, key) in [
            (Piece::SigningKey, &mut wrapped.signing),
            (Piece::NamesKey, &mut wrapped.names),
            (Piece::IndexKey, &mut wrapped.index),
        ] {
            let binding = Binding::new(piece, store);
            let secret = old.unwrap(&binding, key).expect("it was opened with the store");
            *key = new.wrap(&binding, &secret, random)?;
        }
        for (day, key) in days {
            let binding = Binding::new(Piece::DayKey, store).day(*day);
            let secret = old.unwrap(&binding, key).ok_or(Error::NoDayKey(*day))?;
            *key = new.wrap(&binding, &secret, random)?;
        }
        self.access = new;
        Ok(())
    }
}

/// Opens a key that is sealed under another one.
fn unwrap_with(cipher: &Cipher, binding: &Binding, wrapped: &[u8]) -> Option<SecretKey> {
    let mut wrapped = wrapped.to_vec();
    let key = cipher.open(binding.bytes(), &mut wrapped)?;
    let secret = SecretKey::new((&*key).try_into().ok()?);
    key.fill(0);
    Some(secret)
}

/// Writes bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}

/// Parses lower-case hexadecimal digits into bytes.
pub(crate) fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |c: u8| match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        _ => None,
    };
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_two_stores_differ_and_a_day_key_opens_for_its_day_alone() {
        let master = MasterKey::parse(&"5a".repeat(32)).unwrap();
        let [a, b] = [1, 2].map(|n| StoreKeys::draw(&master, StoreId([n; 16]), &SystemRandomness).unwrap().0);
        assert_ne!(a.access.key_id, b.access.key_id);
        let key = SecretKey::random(&SystemRandomness).unwrap();
        let wrapped = a.wrap_key(Day(3), &key, &SystemRandomness).unwrap();
        assert_eq!(a.unwrap_key(Day(3), &wrapped).unwrap().bytes(), key.bytes());
        assert!(a.unwrap_key(Day(4), &wrapped).is_none() && b.unwrap_key(Day(3), &wrapped).is_none());
        assert_ne!(a.wrap_key(Day(3), &key, &SystemRandomness).unwrap(), wrapped, "a nonce was used twice");
    }

    /// Fails if another master key changes what keys open, or if the old one opens what came later.
    #[test]
    fn another_master_key_opens_the_same_keys_and_the_old_one_none_of_them() {
        let [old, new] = ["5a", "b7"].map(|digits| MasterKey::parse(&digits.repeat(32)).unwrap());
        let (store, random) = (StoreId([4; 16]), &SystemRandomness);
        let (mut keys, mut wrapped) = StoreKeys::draw(&old, store, random).unwrap();
        let day_key = SecretKey::random(random).unwrap();
        let mut days = DayKeys::from([(Day(3), keys.wrap_key(Day(3), &day_key, random).unwrap())]);
        let (old_access, mut sealed) = (keys.access.wrapped.clone(), Vec::new());
        let binding = Binding::new(Piece::Names, store);
        let (cipher, hash) = (&keys.names.cipher, keys.names.hash_of(1, b"XLON"));
        cipher.seal(random, binding.bytes(), b"names", &mut sealed).unwrap();
        keys.rewrap(&new, &mut wrapped, &mut days, random).unwrap();
        let access = AccessKeys::open(&new, store, &keys.access.wrapped).unwrap();
        let reopened = StoreKeys::open(access, &wrapped).unwrap();
        assert_eq!(reopened.unwrap_key(Day(3), &days[&Day(3)]).unwrap().bytes(), day_key.bytes());
        assert_eq!(reopened.names.cipher.open(binding.bytes(), &mut sealed).unwrap(), b"names");
        assert_eq!(reopened.names.hash_of(1, b"XLON"), hash, "names are not found");
        assert!(AccessKeys::open(&old, store, &keys.access.wrapped).is_none());
        let stale = AccessKeys::open(&old, store, &old_access).unwrap();
        assert!(StoreKeys::open(stale, &wrapped).is_none(), "the old access key opens new keys");
    }

    #[test]
    fn hexadecimal_digits_come_back() {
        assert_eq!(parse_hex(&hex(&[0, 0x1f, 0xff])), Some(vec![0, 0x1f, 0xff]));
        for bad in ["0", "0g", "FF"] {
            assert_eq!(parse_hex(bad), None, "{bad}");
        }
    }
}
