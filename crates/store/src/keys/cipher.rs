//! AES-256-GCM, HKDF-SHA256, SHA-256, HMAC-SHA256, Ed25519 and random bytes. No other file names the library that computes them.

use std::fmt;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::digest::{Context, SHA256};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::hmac::{self, HMAC_SHA256};
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

use crate::error::{Error, Result};
use crate::keys::{hex, parse_hex};

/// Bytes of a key.
pub(crate) const KEY_BYTES: usize = 32;
/// Bytes of the nonce before a ciphertext.
pub(crate) const NONCE_BYTES: usize = NONCE_LEN;
/// Bytes of the tag behind a ciphertext.
pub(crate) const TAG_BYTES: usize = 16;
/// Bytes that sealing adds.
pub(crate) const SEAL_BYTES: usize = NONCE_BYTES + TAG_BYTES;

/// A source of random bytes, from which keys, nonces and ids are drawn.
pub trait Randomness: fmt::Debug + Sync {
    /// Fills `out` with random bytes.
    ///
    /// # Errors
    /// Fails if the source has no random bytes.
    fn fill(&self, out: &mut [u8]) -> Result<()>;
}

/// The random bytes of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemRandomness;

impl Randomness for SystemRandomness {
    fn fill(&self, out: &mut [u8]) -> Result<()> {
        SystemRandom::new().fill(out).map_err(|_| Error::NoRandomness)
    }
}

/// A key as bytes. It is wiped when it is dropped, and never printed.
#[derive(Clone)]
pub(crate) struct SecretKey([u8; KEY_BYTES]);

impl SecretKey {
    pub fn new(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }

    /// Draws a key.
    pub fn random(random: &dyn Randomness) -> Result<Self> {
        let mut key = Self([0; KEY_BYTES]);
        random.fill(&mut key.0)?;
        Ok(key)
    }

    /// Derives a key from this one by HKDF-SHA256. `salt` and `info` are no secrets.
    pub fn derive(&self, salt: &[u8], info: &[&[u8]]) -> Self {
        struct Length;
        impl KeyType for Length {
            fn len(&self) -> usize {
                KEY_BYTES
            }
        }
        let mut key = Self([0; KEY_BYTES]);
        let extracted = Salt::new(HKDF_SHA256, salt).extract(&self.0);
        let expanded = extracted.expand(info, Length).expect("32 bytes are less than HKDF gives");
        expanded.fill(&mut key.0).expect("as many bytes as were asked for");
        key
    }

    pub fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// Makes the keyed hash of this key.
    pub fn keyed_hash(&self) -> KeyedHash {
        KeyedHash(hmac::Key::new(HMAC_SHA256, &self.0))
    }

    /// Makes the cipher of this key.
    pub fn cipher(&self) -> Cipher {
        Cipher(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &self.0).expect("a key of 32 bytes")))
    }
}

impl Drop for SecretKey {
    fn drop(&mut self) {
        self.0.fill(0);
        // The compiler must not remove the zeros, because it does not know their reader.
        std::hint::black_box(&self.0);
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(..)")
    }
}

/// AES-256-GCM under one key.
pub(crate) struct Cipher(LessSafeKey);

impl Cipher {
    /// Appends a fresh nonce, the ciphertext of `plaintext` and its tag to `out`. Only the same `binding` can open it.
    pub fn seal(
        &self,
        random: &dyn Randomness,
        binding: &[u8],
        plaintext: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let mut nonce = [0; NONCE_BYTES];
        random.fill(&mut nonce)?;
        out.extend_from_slice(&nonce);
        let sealed_start = out.len();
        out.extend_from_slice(plaintext);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self.0.seal_in_place_separate_tag(nonce, Aad::from(binding), &mut out[sealed_start..]);
        out.extend_from_slice(tag.map_err(|_| Error::Option("more bytes than one seal may hold"))?.as_ref());
        Ok(())
    }

    /// Opens the output of [`Cipher::seal`] in place: the plain text is put at the beginning of `sealed`. Returns `None` if
    /// any byte, the key or the binding differs.
    pub fn open<'b>(&self, binding: &[u8], sealed: &'b mut [u8]) -> Option<&'b mut [u8]> {
        let nonce = Nonce::try_assume_unique_for_key(sealed.get(..NONCE_BYTES)?).ok()?;
        self.0.open_within(nonce, Aad::from(binding), sealed, NONCE_BYTES..).ok()
    }
}

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cipher(..)")
    }
}

/// Bytes of a signature.
pub(crate) const SIGNATURE_BYTES: usize = 64;

/// The public half of the key that signs a store's manifest, as 64 hexadecimal digits. A user with this key can check a
/// store without its master key.
///
/// ```
/// use unitape_store::PublicKey;
/// let key = PublicKey::parse(&"5A".repeat(32)).unwrap();
/// assert_eq!(key.to_string(), "5a".repeat(32));
/// assert_eq!(PublicKey::parse("5a"), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct PublicKey(pub(crate) [u8; 32]);

impl PublicKey {
    /// Reads 64 hexadecimal digits, of either case.
    pub fn parse(text: &str) -> Option<Self> {
        parse_hex(&text.to_ascii_lowercase())?.try_into().ok().map(Self)
    }

    /// Returns whether the secret half of this key signed `message` with `signature`.
    pub(crate) fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, self.0).verify(message, signature).is_ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

/// Ed25519 with one key.
pub(crate) struct Signer(Ed25519KeyPair);

impl Signer {
    /// Makes the signer whose secret is this seed.
    pub fn new(seed: &SecretKey) -> Self {
        Self(Ed25519KeyPair::from_seed_unchecked(&seed.0).expect("a seed of 32 bytes"))
    }

    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.public_key().as_ref().try_into().expect("a public key of 32 bytes"))
    }

    pub fn sign(&self, message: &[u8]) -> [u8; SIGNATURE_BYTES] {
        self.0.sign(message).as_ref().try_into().expect("a signature of 64 bytes")
    }
}

/// HMAC-SHA256 under one key.
pub(crate) struct KeyedHash(hmac::Key);

impl KeyedHash {
    /// Hashes parts as if they were one text. Returns the first 16 bytes.
    pub fn hash(&self, parts: &[&[u8]]) -> [u8; 16] {
        let mut context = hmac::Context::with_key(&self.0);
        parts.iter().for_each(|part| context.update(part));
        *context.sign().as_ref().first_chunk().expect("32 bytes are a hash")
    }
}

impl fmt::Debug for KeyedHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyedHash(..)")
    }
}

/// SHA-256 of bytes that come in parts.
#[derive(Clone)]
pub(crate) struct Hasher(Context);

impl Hasher {
    pub fn new() -> Self {
        Self(Context::new(&SHA256))
    }

    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn finish(self) -> [u8; 32] {
        self.0.finish().as_ref().try_into().expect("32 bytes are a hash")
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hasher(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks an HMAC-SHA256 that the hmac module of Python gives for a key of 32 bytes.
    #[test]
    fn keyed_hashes_are_those_of_another_library() {
        let hash = SecretKey::new([0x0b; 32]).keyed_hash();
        assert_eq!(hex(&hash.hash(&[b"Hi ", b"There"])), "198a607eb44bfbc69903a0f1cf2bbdc5");
        assert_eq!(format!("{hash:?}"), "KeyedHash(..)");
    }

    /// Checks test 2 of RFC 8032, section 7.1, and the hash of "abc" of FIPS 180-2.
    #[test]
    fn signatures_and_hashes_are_the_published_ones() {
        let bytes = |text: &str| -> [u8; 32] { parse_hex(text).unwrap().try_into().unwrap() };
        let seed = bytes("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb");
        let signer = Signer::new(&SecretKey::new(seed));
        let public = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
        assert_eq!(signer.public().to_string(), public);
        let signature = signer.sign(&[0x72]);
        let want = concat!(
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da",
            "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
        );
        assert_eq!(hex(&signature), want);
        assert!(signer.public().verify(&[0x72], &signature) && !signer.public().verify(&[0x73], &signature));
        let mut hasher = Hasher::new();
        hasher.update(b"a");
        hasher.update(b"bc");
        let want = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hex(&hasher.finish()), want);
    }

    /// Checks test case 16 of the AES-GCM submission (McGrew and Viega, "The Galois/Counter Mode of Operation"). A
    /// library that computes another result could open only its own stores.
    #[test]
    fn the_library_computes_the_published_vectors() {
        #[derive(Debug)]
        struct Fixed(&'static [u8]);
        impl Randomness for Fixed {
            fn fill(&self, out: &mut [u8]) -> Result<()> {
                out.copy_from_slice(self.0);
                Ok(())
            }
        }
        let hex = |text: &str| -> Vec<u8> {
            text.as_bytes()
                .chunks(2)
                .map(|b| u8::from_str_radix(std::str::from_utf8(b).unwrap(), 16).unwrap())
                .collect()
        };
        let key = hex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");
        let plaintext = hex(concat!(
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72",
            "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
        ));
        let binding = hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
        let nonce: &[u8] = b"\xca\xfe\xba\xbe\xfa\xce\xdb\xad\xde\xca\xf8\x88";
        let cipher = SecretKey::new(key.try_into().unwrap()).cipher();
        let mut sealed = Vec::new();
        cipher.seal(&Fixed(nonce), &binding, &plaintext, &mut sealed).unwrap();
        let want = hex(concat!(
            "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa",
            "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
            "76fc6ece0f4e1768cddf8853bb2d551b"
        ));
        assert_eq!((&sealed[..NONCE_BYTES], &sealed[NONCE_BYTES..]), (nonce, &want[..]));
        assert_eq!(cipher.open(&binding, &mut sealed.clone()).unwrap(), plaintext);
        for offset in 0..sealed.len() {
            let mut bad = sealed.clone();
            bad[offset] ^= 0x10;
            assert!(cipher.open(&binding, &mut bad).is_none(), "byte {offset}");
        }
        assert!(cipher.open(&binding[1..], &mut sealed.clone()).is_none());
        assert!(cipher.open(&binding, &mut sealed[..SEAL_BYTES - 1]).is_none());

        // By RFC 5869 with the hmac module of Python, for a key of 32 bytes.
        let info: [&[u8]; 2] = [&hex("f0f1f2f3"), &hex("f4f5f6f7f8f9")];
        let derived = SecretKey::new([0x0b; 32]).derive(&hex("000102030405060708090a0b0c"), &info);
        let want = hex("d4100799f26a09615a72af3e58fa3841a2ff20d5ace3fb392e562e207fe6b718");
        assert_eq!(derived.bytes()[..], want);
    }

    #[test]
    fn no_key_is_printed() {
        let key = SecretKey::new([0x41; 32]);
        assert_eq!(format!("{key:?} {:?}", key.cipher()), "SecretKey(..) Cipher(..)");
    }
}
