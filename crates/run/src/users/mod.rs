//! Users: one file with names, roles, persons and hashes of passwords (argon2id).
//!
//! ```text
//!  users.toml (0600)   format = 1
//!                      [argon2]          the cost of new passwords; secure if it is left out
//!                      [[user]]          name, person, role, parties, disabled, password = "$argon2id$…"
//!
//!  name + password ──▶ UserFile::authenticate ──▶ Account
//! ```
//!
//! A person may have several accounts: those with the same `person`. Whatever asks for two persons compares persons
//! ([`is_same_person`]), not accounts.
//!
//! The file is refused if others may read or write it. A change makes a new file and renames it, under a lock on the directory.

mod file;
mod password;
mod person;

pub use file::{AccountStamp, NAME_BYTES_MAX, UserFile};
pub use password::PasswordCost;
pub use person::{is_invisible, is_same_person};

use std::fmt;
use std::io;
use std::path::PathBuf;
use unitape_model::ErrorCause;

/// The duty of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Works on cases.
    Analyst,
    /// Works on cases, and answers for the work of analysts.
    Supervisor,
    /// Answers for limits and halts.
    Risk,
    /// Runs the system. Closes no case.
    Admin,
    /// Reads everything and changes nothing.
    Auditor,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 5] = [Self::Analyst, Self::Supervisor, Self::Risk, Self::Admin, Self::Auditor];

    /// Returns the word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Analyst => "analyst",
            Self::Supervisor => "supervisor",
            Self::Risk => "risk",
            Self::Admin => "admin",
            Self::Auditor => "auditor",
        }
    }

    /// Returns the role with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An account of the user file, without its password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The name with which the user logs in.
    pub name: String,
    /// The human behind the account.
    pub person: String,
    /// The duty.
    pub role: Role,
    /// The names under which this person appears on tapes: trader, owner, account.
    pub parties: Vec<String>,
    /// Whether the account is disabled.
    pub is_disabled: bool,
}

/// An error of the user file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UserError {
    /// The system refused an operation.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// The operation.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// There is no user file.
    #[error("{}: there is no user file; `unitape user add` makes one", path.display())]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// Others may read or write the file.
    #[error("{}: others may read or write this file (mode {mode:04o}); run: chmod 600 {}", path.display(), path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The file cannot be understood.
    #[error("{}: {reason}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The problem, in words.
        reason: String,
    },
    /// A value of a new account, or a password, cannot be.
    #[error("{0}")]
    Value(String),
    /// The name is unknown or the password is wrong. The error does not tell which.
    #[error("there is no user `{name}` with this password")]
    Refused {
        /// The name that was given.
        name: String,
    },
    /// The account is disabled.
    #[error("the account `{name}` is disabled")]
    Disabled {
        /// Its name.
        name: String,
    },
    /// There is no account with this name.
    #[error("{}: there is no user `{name}`", path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
        /// The name that was given.
        name: String,
    },
}

impl UserError {
    /// Returns on whose side its cause lies.
    pub fn cause(&self) -> ErrorCause {
        match self {
            Self::Value(_) | Self::Unknown { .. } => ErrorCause::Call,
            _ => ErrorCause::Outside,
        }
    }
}
