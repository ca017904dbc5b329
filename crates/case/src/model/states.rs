//! The states of a case, and the one table of transitions.
//!
//! ```text
//!            assign        note             escalate
//!   new ───────▶ assigned ──▶ investigating ────────▶ escalated
//!                    │              │                     │
//!                    └── close ─────┴────── close ────────┤
//!                                                         ▼
//!                 reopened ◀────── reopen ───────── pending_close ── close by a second person ──▶ closed
//!                     ▲                                                                             │
//!                     └────────────────────────────── reopen ───────────────────────────────────────┘
//! ```

use std::fmt;

/// The state of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CaseState {
    /// Nobody has it.
    New,
    /// Somebody has it.
    Assigned,
    /// Somebody works on it.
    Investigating,
    /// It needs a supervisor.
    Escalated,
    /// One person has proposed to close it.
    PendingClose,
    /// Two persons have closed it.
    Closed,
    /// It was closed, or proposed to be closed, and is open again.
    Reopened,
}

impl CaseState {
    /// All states.
    pub const ALL: [Self; 7] = [
        Self::New,
        Self::Assigned,
        Self::Investigating,
        Self::Escalated,
        Self::PendingClose,
        Self::Closed,
        Self::Reopened,
    ];

    /// Returns the word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Assigned => "assigned",
            Self::Investigating => "investigating",
            Self::Escalated => "escalated",
            Self::PendingClose => "pending_close",
            Self::Closed => "closed",
            Self::Reopened => "reopened",
        }
    }

    /// Returns the state with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

impl fmt::Display for CaseState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The kind of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ActionKind {
    /// Ingest adds an alert to the case, or opens the case with it.
    Alert,
    /// Ingest has read an alert again that the case has.
    SeenAgain,
    /// Ingest has read that a scenario was blind. It belongs to no case.
    Blind,
    /// A user gives the case to somebody.
    Assign,
    /// A user writes a note.
    Note,
    /// A user hands the case to a supervisor.
    Escalate,
    /// The first person proposes to close the case.
    ProposeClose,
    /// The second person closes it.
    ConfirmClose,
    /// A user opens it again, or refuses to close it.
    Reopen,
}

impl ActionKind {
    /// All kinds.
    pub const ALL: [Self; 9] = [
        Self::Alert,
        Self::SeenAgain,
        Self::Blind,
        Self::Assign,
        Self::Note,
        Self::Escalate,
        Self::ProposeClose,
        Self::ConfirmClose,
        Self::Reopen,
    ];

    /// Returns the word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alert => "alert",
            Self::SeenAgain => "seen_again",
            Self::Blind => "blind",
            Self::Assign => "assign",
            Self::Note => "note",
            Self::Escalate => "escalate",
            Self::ProposeClose => "propose_close",
            Self::ConfirmClose => "confirm_close",
            Self::Reopen => "reopen",
        }
    }

    /// Returns the kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the command with which a user does this.
    pub const fn command(self) -> &'static str {
        match self {
            Self::ProposeClose | Self::ConfirmClose => "close",
            other => other.name(),
        }
    }

    /// Returns whether users do this, and not ingest.
    pub const fn is_of_users(self) -> bool {
        !matches!(self, Self::Alert | Self::SeenAgain | Self::Blind)
    }
}

/// A row of the table of transitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateTransition {
    /// The state before the action.
    pub from: CaseState,
    /// The action.
    pub action: ActionKind,
    /// The state after it.
    pub to: CaseState,
}

/// Returns the state after an action, or none if the state does not allow it.
pub fn next_state(from: CaseState, action: ActionKind) -> Option<CaseState> {
    TRANSITIONS.iter().find(|row| row.from == from && row.action == action).map(|row| row.to)
}

/// Returns what users can do in a state, in the order of the table.
pub fn allowed_actions(state: CaseState) -> impl Iterator<Item = ActionKind> {
    TRANSITIONS.iter().filter(move |row| row.from == state && row.action.is_of_users()).map(|row| row.action)
}

const fn state_rule(from: CaseState, action: ActionKind, to: CaseState) -> StateTransition {
    StateTransition { from, action, to }
}

/// All transitions. What is not here is not possible.
///
/// An alert that joins a case with a proposal to close withdraws the proposal: the decision was about fewer alerts. An alert
/// never joins a closed case; it opens the next one. An alert that is seen again changes no state.
pub const TRANSITIONS: &[StateTransition] = {
    use ActionKind as Action;
    use CaseState as State;
    &[
        state_rule(State::New, Action::Alert, State::New),
        state_rule(State::New, Action::SeenAgain, State::New),
        state_rule(State::New, Action::Assign, State::Assigned),
        state_rule(State::New, Action::Note, State::New),
        state_rule(State::New, Action::Escalate, State::Escalated),
        state_rule(State::Assigned, Action::Alert, State::Assigned),
        state_rule(State::Assigned, Action::SeenAgain, State::Assigned),
        state_rule(State::Assigned, Action::Assign, State::Assigned),
        state_rule(State::Assigned, Action::Note, State::Investigating),
        state_rule(State::Assigned, Action::Escalate, State::Escalated),
        state_rule(State::Assigned, Action::ProposeClose, State::PendingClose),
        state_rule(State::Investigating, Action::Alert, State::Investigating),
        state_rule(State::Investigating, Action::SeenAgain, State::Investigating),
        state_rule(State::Investigating, Action::Assign, State::Investigating),
        state_rule(State::Investigating, Action::Note, State::Investigating),
        state_rule(State::Investigating, Action::Escalate, State::Escalated),
        state_rule(State::Investigating, Action::ProposeClose, State::PendingClose),
        state_rule(State::Escalated, Action::Alert, State::Escalated),
        state_rule(State::Escalated, Action::SeenAgain, State::Escalated),
        state_rule(State::Escalated, Action::Assign, State::Escalated),
        state_rule(State::Escalated, Action::Note, State::Escalated),
        state_rule(State::Escalated, Action::ProposeClose, State::PendingClose),
        state_rule(State::PendingClose, Action::Alert, State::Investigating),
        state_rule(State::PendingClose, Action::SeenAgain, State::PendingClose),
        state_rule(State::PendingClose, Action::Note, State::PendingClose),
        state_rule(State::PendingClose, Action::ConfirmClose, State::Closed),
        state_rule(State::PendingClose, Action::Reopen, State::Reopened),
        state_rule(State::Closed, Action::SeenAgain, State::Closed),
        state_rule(State::Closed, Action::Note, State::Closed),
        state_rule(State::Closed, Action::Reopen, State::Reopened),
        state_rule(State::Reopened, Action::Alert, State::Reopened),
        state_rule(State::Reopened, Action::SeenAgain, State::Reopened),
        state_rule(State::Reopened, Action::Assign, State::Assigned),
        state_rule(State::Reopened, Action::Note, State::Investigating),
        state_rule(State::Reopened, Action::Escalate, State::Escalated),
        state_rule(State::Reopened, Action::ProposeClose, State::PendingClose),
    ]
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_and_an_action_have_one_next_state() {
        for (n, row) in TRANSITIONS.iter().enumerate() {
            let is_same_row =
                |candidate: &&StateTransition| candidate.from == row.from && candidate.action == row.action;
            assert_eq!(TRANSITIONS.iter().filter(is_same_row).count(), 1, "row {n}: {row:?}");
        }
        for state in CaseState::ALL {
            assert_eq!(CaseState::from_name(state.name()), Some(state));
            assert!(allowed_actions(state).count() > 0, "{state} has no way out");
        }
        for kind in ActionKind::ALL {
            assert_eq!(ActionKind::from_name(kind.name()), Some(kind));
        }
    }

    /// A case that one action closes would be closed by one person.
    #[test]
    fn a_case_is_closed_from_a_proposal_alone() {
        let closing: Vec<_> = TRANSITIONS.iter().filter(|row| row.to == CaseState::Closed).collect();
        for row in closing.iter().filter(|row| row.from != CaseState::Closed) {
            assert_eq!((row.from, row.action), (CaseState::PendingClose, ActionKind::ConfirmClose));
        }
        assert_eq!(next_state(CaseState::New, ActionKind::ProposeClose), None);
        assert_eq!(next_state(CaseState::Closed, ActionKind::Alert), None);
    }
}
