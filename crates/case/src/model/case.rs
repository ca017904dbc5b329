//! A case, and the actions on it.

use super::{ActionKind, CaseState};
use std::fmt;
use unitape_run::users::Role;

/// A case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Its number.
    pub id: u64,
    /// The scenario of its alerts.
    pub scenario: String,
    /// The key of its alerts, JSON.
    pub key: String,
    /// The session date of its alerts, `2026-03-02`.
    pub session_date: String,
    /// Its state.
    pub state: CaseState,
    /// The reason for which it is closed, or proposed to be.
    pub disposition: Option<Disposition>,
    /// The user who has it.
    pub assignee: Option<String>,
    /// Its alerts.
    pub alerts: u64,
    /// How often alerts of it were read again.
    pub seen_again: u64,
    /// Event time of its first alert.
    pub first_ts: i64,
    /// Event time of its last alert.
    pub last_ts: i64,
    /// When it was opened, by our clock.
    pub opened: i64,
    /// When the last action was, by our clock.
    pub changed: i64,
}

/// The reason for which a case is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// The alert is wrong.
    FalsePositive,
    /// The conduct is unusual, and there is an innocent explanation.
    Explained,
    /// A rule was broken, and the firm deals with it.
    Breach,
    /// The suspicion was reported to an authority.
    Reported,
}

impl Disposition {
    /// All reasons.
    pub const ALL: [Self; 4] = [Self::FalsePositive, Self::Explained, Self::Breach, Self::Reported];

    /// Returns the word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FalsePositive => "false_positive",
            Self::Explained => "explained",
            Self::Breach => "breach",
            Self::Reported => "reported",
        }
    }

    /// Returns the reason with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|disposition| disposition.name() == name)
    }
}

impl fmt::Display for Disposition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An action on a case, as it was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionRecord {
    /// Its number over all cases, from 1.
    pub number: u64,
    /// The case; none for what belongs to no case.
    pub case: Option<u64>,
    /// When, by our clock, nanoseconds since 1970.
    pub ts: i64,
    /// Who did it; none if ingest did it.
    pub author: Option<ActionAuthor>,
    /// What was done.
    pub kind: ActionKind,
    /// The state after it.
    pub state: Option<CaseState>,
    /// The user who got the case.
    pub assignee: Option<String>,
    /// The reason for closing.
    pub disposition: Option<Disposition>,
    /// A note, an explanation, or the event line of a `blind` control.
    pub text: Option<String>,
    /// The alert that ingest added or saw again.
    pub alert: Option<u64>,
    /// The hash of the row, which includes that of the row before.
    pub hash: [u8; 32],
}

/// The account that acted, as it was then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionAuthor {
    /// The name of the account.
    pub user: String,
    /// The human behind it.
    pub person: String,
    /// The duty of the account.
    pub role: Role,
}
