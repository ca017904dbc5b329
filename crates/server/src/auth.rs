//! Sessions: who is logged in.
//!
//! A session is known by a random token in a cookie, and each change by a second random token that only the page of the session
//! knows. Sessions live in memory: a restart logs everybody out. Each request reads the user file again, so that an account that is
//! disabled, or that has another password, is out at once.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use unitape_run::users::{AccountStamp, NAME_BYTES_MAX, UserError};

/// A session.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// The account.
    pub user: String,
    /// The stamp of the account at the log-in.
    pub stamp: AccountStamp,
    /// The token that changes must carry.
    pub csrf: String,
    started_at: Instant,
    last_use: Instant,
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
    /// Passwords are compared one after the other: each costs much memory, and guesses that wait here are counted before the next
    /// one is compared.
    comparing: Mutex<()>,
}

/// Why a log-in failed.
#[derive(Debug)]
pub(crate) enum LoginFailure {
    /// Too many attempts have failed; this is how long the name must wait.
    Locked(Duration),
    /// The name is unknown, the password is wrong, or the account is disabled.
    Refused,
    /// The users cannot be read.
    Users(UserError),
}

#[derive(Clone, Copy, Debug)]
struct LoginFailures {
    count: u32,
    last_failure: Instant,
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
    /// Logs a user in by `authenticate`, unless too many attempts have failed, and counts a failure.
    ///
    /// # Errors
    /// Fails if the name must wait, and if `authenticate` does.
    pub fn log_in<T>(
        &self,
        user: &str,
        authenticate: impl FnOnce() -> Result<T, UserError>,
    ) -> Result<T, LoginFailure> {
        let _one = self.comparing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(wait) = self.locked_for(user) {
            return Err(LoginFailure::Locked(wait));
        }
        match authenticate() {
            Ok(login) => {
                self.lock_failures().remove(user);
                Ok(login)
            }
            Err(UserError::Refused { .. } | UserError::Disabled { .. }) => {
                self.count_failure(user);
                Err(LoginFailure::Refused)
            }
            Err(error) => Err(LoginFailure::Users(error)),
        }
    }

    /// Returns how long this user must wait before another attempt, if attempts have failed too often.
    fn locked_for(&self, user: &str) -> Option<Duration> {
        let failures = self.lock_failures();
        let failures = failures.get(user).filter(|failures| failures.count >= FAILURES_MAX)?;
        LOCK_OUT.checked_sub(failures.last_failure.elapsed()).filter(|left| !left.is_zero())
    }

    /// Counts a failed attempt.
    fn count_failure(&self, user: &str) {
        // A name that is longer than that of any account needs no lock, and cannot fill the memory.
        if user.len() > NAME_BYTES_MAX {
            return;
        }
        let mut failures = self.lock_failures();
        let now = Instant::now();
        // Names that do not exist cannot fill the memory.
        if failures.len() >= NAMES_MAX && !failures.contains_key(user) {
            failures.retain(|_, failures| failures.last_failure.elapsed() < LOCK_OUT);
            if failures.len() >= NAMES_MAX {
                return;
            }
        }
        let entry = failures.entry(user.to_owned()).or_insert(LoginFailures { count: 0, last_failure: now });
        entry.count =
            if entry.last_failure.elapsed() >= LOCK_OUT { 1 } else { entry.count.saturating_add(1) };
        entry.last_failure = now;
    }

    fn lock_failures(&self) -> MutexGuard<'_, HashMap<String, LoginFailures>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionTable {
    /// Begins a session.
    pub fn begin_session(&self, user: &str, stamp: AccountStamp) -> Result<NewSession, getrandom::Error> {
        let (token, csrf) = (random_token()?, random_token()?);
        let now = Instant::now();
        let session = Session { user: user.to_owned(), stamp, csrf, started_at: now, last_use: now };
        let mut sessions = self.lock_sessions();
        sessions.retain(|_, session| session.is_alive());
        if sessions.len() >= SESSIONS_MAX {
            let oldest = sessions.iter().min_by_key(|(_, session)| session.last_use).map(|(key, _)| *key);
            oldest.map(|key| sessions.remove(&key));
        }
        sessions.insert(key_of(&token), session.clone());
        Ok(NewSession { token, session })
    }

    /// Returns the session of a token, and notes its use.
    pub fn find_session(&self, token: &str) -> Option<Session> {
        let mut sessions = self.lock_sessions();
        let session = sessions.get_mut(&key_of(token)).filter(|session| session.is_alive())?;
        session.last_use = Instant::now();
        Some(session.clone())
    }

    /// Ends a session.
    pub fn end_session(&self, token: &str) {
        self.lock_sessions().remove(&key_of(token));
    }

    fn lock_sessions(&self) -> MutexGuard<'_, HashMap<[u8; 32], Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    fn is_alive(&self) -> bool {
        self.started_at.elapsed() < LIFETIME && self.last_use.elapsed() < IDLE
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

    /// A guess must cost time, and only for the name that is guessed. Guesses that come at once are counted as well.
    #[test]
    fn five_failures_lock_a_name() {
        let (attempts, compared) = (LoginAttempts::default(), std::sync::atomic::AtomicUsize::new(0));
        let guess = |user: &str| {
            attempts.log_in(user, || {
                compared.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                Err::<(), _>(UserError::Refused { name: user.to_owned() })
            })
        };
        std::thread::scope(|scope| (0..20).for_each(|_| drop(scope.spawn(|| guess("ann")))));
        assert_eq!(compared.into_inner(), 5);
        let log_in = |name| attempts.log_in(name, || Ok(()));
        assert!(matches!(log_in("ann"), Err(LoginFailure::Locked(left)) if left <= LOCK_OUT));
        assert!(log_in("bob").is_ok());

        let attempts = LoginAttempts::default();
        let refused = |user: &str| {
            attempts.log_in(user, || Err::<(), _>(UserError::Refused { name: user.to_owned() })).unwrap_err()
        };
        (0..4).for_each(|_| drop(refused("ann")));
        assert!(attempts.log_in("ann", || Ok(())).is_ok());
        assert!(matches!(refused("ann"), LoginFailure::Refused), "a log-in forgets the failures before it");
        (0..9).for_each(|_| drop(refused(&"x".repeat(65))));
        assert_eq!(attempts.lock_failures().len(), 1, "no account has so long a name");
    }

    /// A token of a session that ended must find nothing, and a token is never that of another session.
    #[test]
    fn a_token_finds_its_session_until_it_ends() {
        let table = SessionTable::default();
        let dir = tempfile::tempdir().unwrap();
        let path = crate::library::tests::user_file(dir.path(), &["ann", "bob"]);
        let users = unitape_run::users::UserFile::load(&path).unwrap();
        let begin = |user: &str| table.begin_session(user, users.account_stamp(user).unwrap()).unwrap();
        let (ann, bob) = (begin("ann"), begin("bob"));
        assert_ne!(ann.token, bob.token);
        assert_ne!(ann.session.csrf, bob.session.csrf);
        let session = table.find_session(&ann.token).unwrap();
        assert_eq!((&*session.user, Some(session.stamp)), ("ann", users.account_stamp("ann")));
        table.end_session(&ann.token);
        assert!(table.find_session(&ann.token).is_none());
        assert_eq!(table.find_session(&bob.token).unwrap().user, "bob");
        assert!(table.find_session("").is_none());
    }
}
