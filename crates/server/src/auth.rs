//! Sessions: who is logged in.
//!
//! A session is known by a random token in a cookie, and each change by a second random token that only the page of the session
//! knows. Sessions live in memory: a restart logs everybody out. Each request reads the user file again, so that an account that is
//! disabled is out at once.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use unitape_run::users::NAME_BYTES_MAX;

/// A session.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// The account.
    pub user: String,
    /// The token that changes must carry.
    pub csrf: String,
    begun: Instant,
    used: Instant,
}

/// The sessions, and the failed attempts to log in.
#[derive(Debug, Default)]
pub(crate) struct SessionTable {
    pub attempts: LoginAttempts,
    /// By the hash of the token: a dump of the memory gives no token that works.
    sessions: Mutex<HashMap<[u8; 32], Session>>,
}

/// The failed attempts to log in.
#[derive(Debug, Default)]
pub(crate) struct LoginAttempts {
    failures: Mutex<HashMap<String, LoginFailures>>,
}

#[derive(Clone, Copy, Debug)]
struct LoginFailures {
    count: u32,
    last: Instant,
}

/// A cookie and the session that it names.
#[derive(Clone, Debug)]
pub(crate) struct NewSession {
    /// The value of the cookie.
    pub token: String,
    /// The session.
    pub session: Session,
}

impl LoginAttempts {
    /// Returns how long this user must wait before another attempt, if attempts have failed too often.
    pub fn locked_for(&self, user: &str) -> Option<Duration> {
        let failures = self.lock();
        let failures = failures.get(user).filter(|failures| failures.count >= FAILURES_MAX)?;
        LOCK_OUT.checked_sub(failures.last.elapsed()).filter(|left| !left.is_zero())
    }

    /// Counts a failed attempt.
    pub fn count_failure(&self, user: &str) {
        // A name that is longer than that of any account needs no lock, and cannot fill the memory.
        if user.len() > NAME_BYTES_MAX {
            return;
        }
        let mut failures = self.lock();
        let now = Instant::now();
        // Names that do not exist cannot fill the memory.
        if failures.len() >= NAMES_MAX && !failures.contains_key(user) {
            failures.retain(|_, failures| failures.last.elapsed() < LOCK_OUT);
            if failures.len() >= NAMES_MAX {
                return;
            }
        }
        let entry = failures.entry(user.to_owned()).or_insert(LoginFailures { count: 0, last: now });
        entry.count = if entry.last.elapsed() >= LOCK_OUT { 1 } else { entry.count.saturating_add(1) };
        entry.last = now;
    }

    /// Forgets the failed attempts of a user, who is known now.
    pub fn forget(&self, user: &str) {
        self.lock().remove(user);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, LoginFailures>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionTable {
    /// Begins a session.
    pub fn begin(&self, user: &str) -> Result<NewSession, getrandom::Error> {
        let (token, csrf) = (random_token()?, random_token()?);
        let now = Instant::now();
        let session = Session { user: user.to_owned(), csrf, begun: now, used: now };
        self.attempts.forget(user);
        let mut sessions = self.lock();
        sessions.retain(|_, session| session.is_alive());
        if sessions.len() >= SESSIONS_MAX {
            let oldest = sessions.iter().min_by_key(|(_, session)| session.used).map(|(key, _)| *key);
            oldest.map(|key| sessions.remove(&key));
        }
        sessions.insert(key_of(&token), session.clone());
        Ok(NewSession { token, session })
    }

    /// Returns the session of a token, and notes its use.
    pub fn find(&self, token: &str) -> Option<Session> {
        let mut sessions = self.lock();
        let session = sessions.get_mut(&key_of(token)).filter(|session| session.is_alive())?;
        session.used = Instant::now();
        Some(session.clone())
    }

    /// Ends a session.
    pub fn end(&self, token: &str) {
        self.lock().remove(&key_of(token));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    fn is_alive(&self) -> bool {
        self.begun.elapsed() < LIFETIME && self.used.elapsed() < IDLE
    }
}

fn key_of(token: &str) -> [u8; 32] {
    *blake3::hash(token.as_bytes()).as_bytes()
}

/// Returns 32 random bytes as hexadecimal digits.
pub(crate) fn random_token() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A session that nobody uses ends.
const IDLE: Duration = Duration::from_secs(30 * 60);
/// A session ends, used or not.
const LIFETIME: Duration = Duration::from_secs(12 * 3600);
/// Failed attempts after which a name must wait.
const FAILURES_MAX: u32 = 5;
/// How long it waits.
const LOCK_OUT: Duration = Duration::from_secs(60);
const SESSIONS_MAX: usize = 1_000;
const NAMES_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// A guess must cost time, and only for the name that is guessed.
    #[test]
    fn five_failures_lock_a_name() {
        let table = SessionTable::default();
        for n in 0..5 {
            assert!(table.attempts.locked_for("ann").is_none(), "after {n}");
            table.attempts.count_failure("ann");
        }
        assert!(table.attempts.locked_for("ann").is_some());
        assert!(table.attempts.locked_for("bob").is_none());
        (0..9).for_each(|_| table.attempts.count_failure(&"x".repeat(65)));
        assert_eq!(table.attempts.lock().len(), 1, "no account has so long a name");
        table.begin("ann").unwrap();
        assert!(table.attempts.locked_for("ann").is_none());
    }

    /// A token of a session that ended must find nothing, and a token is never that of another session.
    #[test]
    fn a_token_finds_its_session_until_it_ends() {
        let table = SessionTable::default();
        let (ann, bob) = (table.begin("ann").unwrap(), table.begin("bob").unwrap());
        assert_ne!(ann.token, bob.token);
        assert_ne!(ann.session.csrf, bob.session.csrf);
        assert_eq!(table.find(&ann.token).unwrap().user, "ann");
        table.end(&ann.token);
        assert!(table.find(&ann.token).is_none());
        assert_eq!(table.find(&bob.token).unwrap().user, "bob");
        assert!(table.find("").is_none());
    }
}
