//! Passwords: hashed with argon2id, each with a salt of its own.

use super::UserError;
use argon2::{Algorithm, Argon2, Params, PasswordHash, PasswordHasher, PasswordVerifier, Version};

/// The cost of hashing a password. A hash carries its own cost, so a new cost applies to new passwords only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PasswordCost {
    /// Memory in KiB.
    pub memory_kib: u32,
    /// The number of passes over the memory.
    pub iterations: u32,
}

impl Default for PasswordCost {
    /// Returns 19 MiB and two passes, the first choice of OWASP's Password Storage Cheat Sheet for argon2id.
    fn default() -> Self {
        Self { memory_kib: 19_456, iterations: 2 }
    }
}

impl PasswordCost {
    /// Returns whether guessing is cheaper than with the default.
    pub fn is_weak(self) -> bool {
        let work = |cost: Self| u64::from(cost.memory_kib) * u64::from(cost.iterations);
        work(self) < work(Self::default())
    }

    fn hasher(self) -> Result<Argon2<'static>, UserError> {
        if self.memory_kib > MEMORY_KIB_MAX || self.iterations > ITERATIONS_MAX {
            return Err(UserError::Value(format!(
                "a password cost of {} KiB and {} iterations is over the bound of {MEMORY_KIB_MAX} KiB and {ITERATIONS_MAX}",
                self.memory_kib, self.iterations
            )));
        }
        let params = Params::new(self.memory_kib, self.iterations, 1, None);
        let params = params.map_err(|error| UserError::Value(format!("the cost of passwords: {error}")))?;
        Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
    }

    /// Returns the hash of a password, with a fresh salt.
    ///
    /// # Errors
    /// Fails if the password is empty, too short or too long, or if the cost cannot be.
    pub(super) fn hash(self, password: &str) -> Result<String, UserError> {
        if !(PASSWORD_BYTES_MIN..=PASSWORD_BYTES_MAX).contains(&password.len()) {
            return Err(UserError::Value(format!(
                "a password has {PASSWORD_BYTES_MIN} to {PASSWORD_BYTES_MAX} bytes, this one {}",
                password.len()
            )));
        }
        let hash = self.hasher()?.hash_password(password.as_bytes());
        let hash: PasswordHash = hash.map_err(|error| UserError::Value(format!("the password: {error}")))?;
        Ok(hash.to_string())
    }

    /// Spends the time of a comparison, for a name that does not exist.
    pub(super) fn spend(self, password: &str) {
        if let Ok(hasher) = self.hasher() {
            let mut key = [0; 32];
            _ = hasher.hash_password_into(password.as_bytes(), &[0; 16], &mut key);
        }
    }
}

/// Returns whether this is a hash of a password, with a bounded cost.
pub(super) fn is_hash(text: &str) -> bool {
    let Ok(hash) = PasswordHash::new(text) else { return false };
    let Ok(params) = Params::try_from(&hash) else { return false };
    hash.algorithm.as_str() == "argon2id"
        && params.m_cost() <= MEMORY_KIB_MAX
        && params.t_cost() <= ITERATIONS_MAX
}

/// Returns whether the hash belongs to the password.
pub(super) fn is_match(hash: &str, password: &str) -> bool {
    let Ok(hash) = PasswordHash::new(hash) else { return false };
    Argon2::default().verify_password(password.as_bytes(), &hash).is_ok()
}

const PASSWORD_BYTES_MIN: usize = 8;
const PASSWORD_BYTES_MAX: usize = 1024;
/// A file cannot make a comparison take more than this.
const MEMORY_KIB_MAX: u32 = 1 << 20;
const ITERATIONS_MAX: u32 = 64;
