//! Keys of a store, from the master key down to the key of one chunk.
//!
//! ```text
//!  master key (a file of 64 hex digits)
//!    ├─ HKDF ─▶ manifest key      seals the manifest
//!    ├─ HKDF ─▶ names key         seals the dictionary
//!    ├─ HKDF ─▶ index key         seals the indexes of the files and the headers of blocks
//!    ├─ HKDF ─▶ signing wrap      seals the key that signs the manifest, which the manifest holds
//!    └─ HKDF ─▶ wrapping key      seals the random key of each day, which the manifest holds
//!                 day key ─ HKDF: store, schema, instrument, class ─▶ leaf key, seals chunks
//! ```
//!
//! Each sealed piece has a random nonce of its own and a *binding* ([`Binding`]): the bytes that say which piece it is. A piece
//! that is moved, swapped or taken from another store does not open.

mod binding;
pub(crate) mod cipher;
mod file;
mod leaves;

pub(crate) use binding::{Binding, Piece};
pub(crate) use cipher::{Cipher, Hasher, SEAL_BYTES, SIGNATURE_BYTES, SecretKey, Signer};
pub use cipher::{PublicKey, Randomness, SystemRandomness};
pub use file::{KEY_FILE_VARIABLE, MasterKey};
pub(crate) use leaves::{DayKeys, KeyOfLeaf, Leaf, LeafKeys};

use std::fmt;

use crate::day::Day;
use crate::error::Result;

/// The id of a store: 16 random bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct StoreId(pub [u8; 16]);

impl fmt::Debug for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreId({})", hex(&self.0))
    }
}

/// The keys that a store derives from its master key.
#[derive(Debug)]
pub(crate) struct StoreKeys {
    pub store: StoreId,
    /// Distinguishes a wrong key from damage. It is in the manifest unencrypted, and reveals nothing about the key.
    pub key_id: [u8; 16],
    pub manifest: Cipher,
    pub names: Cipher,
    pub index: Cipher,
    wrapping: Cipher,
    signing: Cipher,
}

impl StoreKeys {
    /// Derives the keys of the store with this id.
    pub fn new(master: &MasterKey, store: StoreId) -> Self {
        let derive =
            |purpose: &str| master.secret().derive(&store.0, &[b"unitape store 1 ", purpose.as_bytes()]);
        let id = derive("key id");
        Self {
            store,
            key_id: id.bytes()[..16].try_into().expect("sixteen of 32 bytes"),
            manifest: derive("manifest").cipher(),
            names: derive("names").cipher(),
            index: derive("index").cipher(),
            wrapping: derive("day keys").cipher(),
            signing: derive("signing key").cipher(),
        }
    }

    /// Seals the key of a day for the manifest.
    fn wrap_key(&self, day: Day, key: &SecretKey, random: &dyn Randomness) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        let binding = Binding::new(Piece::DayKey, self.store).day(day);
        self.wrapping.seal(random, binding.bytes(), key.bytes(), &mut out)?;
        Ok(out)
    }

    /// Opens the key of a day.
    fn unwrap_key(&self, day: Day, wrapped: &[u8]) -> Option<SecretKey> {
        unwrap_with(&self.wrapping, &Binding::new(Piece::DayKey, self.store).day(day), wrapped)
    }

    /// Draws the key that signs the manifests of a store, and seals it for them.
    pub fn draw_signing_key(&self, random: &dyn Randomness) -> Result<Vec<u8>> {
        let (seed, mut out) = (SecretKey::random(random)?, Vec::new());
        let binding = Binding::new(Piece::SigningKey, self.store);
        self.signing.seal(random, binding.bytes(), seed.bytes(), &mut out)?;
        Ok(out)
    }

    /// Opens the key that signs the manifests.
    pub fn signer(&self, wrapped: &[u8]) -> Option<Signer> {
        let seed = unwrap_with(&self.signing, &Binding::new(Piece::SigningKey, self.store), wrapped)?;
        Some(Signer::new(&seed))
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
        let [a, b] = [1, 2].map(|n| StoreKeys::new(&master, StoreId([n; 16])));
        assert_ne!(a.key_id, b.key_id);
        let key = SecretKey::random(&SystemRandomness).unwrap();
        let wrapped = a.wrap_key(Day(3), &key, &SystemRandomness).unwrap();
        assert_eq!(a.unwrap_key(Day(3), &wrapped).unwrap().bytes(), key.bytes());
        assert!(a.unwrap_key(Day(4), &wrapped).is_none() && b.unwrap_key(Day(3), &wrapped).is_none());
        assert_ne!(a.wrap_key(Day(3), &key, &SystemRandomness).unwrap(), wrapped, "a nonce was used twice");
    }

    #[test]
    fn hexadecimal_digits_come_back() {
        assert_eq!(parse_hex(&hex(&[0, 0x1f, 0xff])), Some(vec![0, 0x1f, 0xff]));
        for bad in ["0", "0g", "FF"] {
            assert_eq!(parse_hex(bad), None, "{bad}");
        }
    }
}
